"""Print how soon `workers-emulator dev` is there, how soon it has new code, and what it sends.

    python -m tests.benchmarks.dev_server

A send is durable when it is done: the state file is SQLite's, as for every server. Each rate is
told by the clock and by the server's own processor time, which other programs of the machine
disturb less.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks.clients import cpu
from tests.benchmarks.figures import Figure, show
from tests.benchmarks.served import ours, write_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.served import Server

_SIGNUP: Final = Path(__file__).parents[2] / "examples" / "signup"
_STARTS: Final = 10
_RELOADS: Final = 3
_ROUNDS: Final = 5
_PATIENCE: Final = 30
_QUEUE: Final = '"queues": {"producers": [{"binding": "JOBS", "queue": "jobs"}]}'
_SENDER: Final = """
import asyncio
from urllib.parse import urlsplit

from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        _, how, count = urlsplit(request.url).path.split("/")
        await getattr(self, how)(int(count))
        return Response("sent")

    async def single(self, count):
        for number in range(count):
            await self.env.JOBS.send({"number": number, "text": "hello"})

    async def concurrent(self, count):
        for _ in range(0, count, 50):
            sends = [self.env.JOBS.send({"number": n, "text": "hello"}) for n in range(50)]
            await asyncio.gather(*sends)

    async def batches(self, count):
        for _ in range(0, count, 100):
            bodies = [{"body": {"number": n, "text": "hello"}} for n in range(100)]
            await self.env.JOBS.sendBatch(bodies)
"""
_REPLACED: Final = """

async def _answer(self, request):
    from workers import Response
    return Response("version {version}")

Default.fetch = _answer
"""


def figures() -> Iterator[Figure]:
    """Yield all of them."""
    starts: list[tuple[float, float]] = []
    reloads: list[float] = []
    for _ in range(_STARTS):
        with tempfile.TemporaryDirectory() as folder:
            start, new = _start_and_reload(Path(folder, "signup"))
            starts.append(start)
            reloads += new
    by_clock, by_processor = (statistics.median(times) * 1e3 for times in zip(*starts, strict=True))
    yield Figure("dev: start to the first answer", by_clock, "ms")
    yield Figure("dev: start to the first answer, of processor time", by_processor, "ms")
    yield Figure("dev: a save to the first answer", statistics.median(reloads) * 1e3, "ms")
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), _SENDER, _QUEUE)
        with ours(Path(folder)) as server:
            for how, count in (("single", 2000), ("concurrent", 4000), ("batches", 20_000)):
                yield from _sends(server, how, count)


def _start_and_reload(project: Path) -> tuple[tuple[float, float], list[float]]:
    """Seconds that a start takes, by clock and processor, and what each save takes after it."""
    shutil.copytree(_SIGNUP, project, ignore=shutil.ignore_patterns(".workers-emulator"))
    reloads = []
    begun = time.perf_counter()
    with ours(project) as server:
        _get(server, "/")
        start = time.perf_counter() - begun, cpu(server.process)
        entry = project / "src" / "entry.py"
        code = entry.read_text()
        time.sleep(0.3)  # the files are watched a moment after the first answer
        for version in range(_RELOADS):
            new = project / "entry.new"
            new.write_text(code + _REPLACED.format(version=version))
            begun = time.perf_counter()
            new.replace(entry)
            while _get(server, "/") != f"version {version}".encode():
                assert time.perf_counter() - begun < _PATIENCE, "the new code does not come"
            reloads.append(time.perf_counter() - begun)
            time.sleep(0.3)
    return start, reloads


def _sends(server: Server, how: str, count: int) -> Iterator[Figure]:
    _get(server, f"/{how}/200")
    by_clock, by_processor = [], []
    for _ in range(_ROUNDS):
        used, begun = cpu(server.process), time.perf_counter()
        _get(server, f"/{how}/{count}")
        by_clock.append(count / (time.perf_counter() - begun))
        by_processor.append(count / max(cpu(server.process) - used, 0.01))
    name = f"dev: {how} sends, durable"
    yield Figure(name, statistics.median(by_clock), "messages/s")
    yield Figure(f"{name}, of processor time", statistics.median(by_processor), "messages/s")


def _get(server: Server, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


if __name__ == "__main__":
    show(figures())
