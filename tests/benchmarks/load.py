"""Load a server for a minute: 500 requests a second, each of which sends a message to a queue.

    python -m tests.benchmarks.load [REQUESTS A SECOND] [SECONDS]

Prints errors, how long answers took, and the server's memory as it goes on. Requests come at their
times, whether those before have been answered or not. Fails where an answer was wrong or missing,
or where the server's memory grew by more than a tenth from a quarter of the time on.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.benchmarks.clients import Load, cpu, request, resident
from tests.benchmarks.served import ours, write_project

if TYPE_CHECKING:
    from tests.benchmarks.served import Server

_USUAL: Final = (500, 60)
_CONNECTIONS: Final = 50
_LOOKS: Final = 12
_STEP: Final = 0.002
# Seconds in which the last answers have to come.
_PATIENCE: Final = 30
_MOST_GROWTH: Final = 1.1
_ANSWER: Final = b"accepted"
_CONFIG: Final = """
"queues": {
  "producers": [{"binding": "JOBS", "queue": "jobs"}],
  "consumers": [{"queue": "jobs", "max_batch_size": 100, "max_batch_timeout": 1}]
}
"""
_WORKER: Final = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.JOBS.send({"url": request.url})
        return Response("accepted", status=202)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            message.ack()
"""


class Memory(NamedTuple):
    """The server's memory, in MiB, so many seconds after the start."""

    at: float
    size: float


class _Client(asyncio.Protocol):
    """A connection that takes requests at any time, and answers as they come."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._since: deque[float] = deque()
        self._got = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self) -> None:
        self._since.append(time.perf_counter())
        self._transport.write(request(method="POST"))

    def data_received(self, data: bytes) -> None:
        self._got += data
        while _ANSWER in self._got:
            answer, _, self._got = self._got.partition(_ANSWER)
            self._load.errors += not answer.startswith(b"HTTP/1.1 202 ")
            self._load.latencies.append(time.perf_counter() - self._since.popleft())

    def close(self) -> None:
        self._transport.close()


async def _put_under_load(server: Server, rate: int, seconds: int) -> tuple[Load, list[Memory]]:
    load, memory, sent = Load(), [], 0
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(_CONNECTIONS):
        made = await loop.create_connection(lambda: _Client(load), "127.0.0.1", server.port)
        clients.append(made[1])
    begun = loop.time()
    while (now := loop.time() - begun) < seconds:
        load.seconds = now
        while sent < now * rate:
            clients[sent % _CONNECTIONS].ask()
            sent += 1
        if now >= len(memory) * seconds / _LOOKS:
            memory.append(Memory(now, resident(server.process)))
        await asyncio.sleep(_STEP)
    end = loop.time() + _PATIENCE
    while len(load.latencies) < sent and loop.time() < end:  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(_STEP)
    memory.append(Memory(loop.time() - begun, resident(server.process)))
    load.errors += sent - len(load.latencies)
    for client in clients:
        client.close()
    return load, memory


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    rate, seconds = (*given, *_USUAL[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), _WORKER, _CONFIG)
        with ours(Path(folder)) as server:
            used = cpu(server.process)
            load, memory = asyncio.run(_put_under_load(server, rate, seconds))
            used = cpu(server.process) - used
    warm = [look for look in memory if look.at >= seconds / 4]
    growth = warm[-1].size / warm[0].size
    print(f"{len(load.latencies):,} answers, {load.errors} errors, {rate} a second for {seconds} s")
    print(f"half of them within {load.percentile(0.5):.1f} ms, 99 % in {load.percentile(0.99):.1f}")
    print(f"the server was busy for {used / seconds:.0%} of the time")
    print("its memory in MiB: " + ", ".join(f"{look.size:.1f}" for look in memory))
    print(f"after the warm-up it grew by {growth - 1:+.1%}")
    return int(load.errors > 0 or growth > _MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
