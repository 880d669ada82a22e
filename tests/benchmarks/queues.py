"""Print how many messages a second go through a queue: sent by a Worker, and consumed by one.

    python -m tests.benchmarks.queues [FOLDER]

FOLDER is one in which `npm install miniflare` was run; the local JavaScript runtime then does the
same work in the same run, turn by turn with ours. The second table shows what a message costs when
many wait: it should stay the same.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import Emulator
from tests.benchmarks.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

THEIR_QUEUE = "local JavaScript runtime: 9,600 to 18,600"
_ROUNDS = 5
_MESSAGES = 20_000
_WORKER = """
from urllib.parse import parse_qs, urlsplit

from workers import Response, WorkerEntrypoint

consumed = 0


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        options = parse_qs(urlsplit(request.url).query)
        delay = {"delaySeconds": int(options["delay"][0])} if "delay" in options else {}
        for i in range(0, int(options["count"][0]), 100):
            await self.env.JOBS.sendBatch([{"body": {"i": i + k}} for k in range(100)], delay)
        return Response("sent")

    async def queue(self, batch, env, ctx):
        global consumed
        for message in batch.messages:
            if message.body["i"] >= 0:
                consumed += 1
            message.ack()
"""
_QUEUES = {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs", "max_batch_size": 100, "max_batch_timeout": 1}],
}


def figures() -> Iterator[Figure]:
    """Yield messages a second, and what one costs when many wait."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config(folder)
        rate = max(_rate(config, _MESSAGES) for _ in range(_ROUNDS))
        yield Figure(
            f"queue, {_MESSAGES:,} messages, batches of 100", rate, "messages/s", THEIR_QUEUE
        )
        for count in (1_000, 100_000):
            cost = min(1e6 / _rate(config, count) for _ in range(3))
            yield Figure(f"a message with {count:,} waiting", cost, "µs")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = _config(folder)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(_ROUNDS):
            ours.append(_rate(config, _MESSAGES))
            if sys.argv[1:]:
                theirs.append(_miniflare(sys.argv[1]))
        print(f"Python {sys.version.split()[0]}, {_MESSAGES:,} messages, batches of 100")
        _show("emulator", ours)
        if theirs:
            _show("miniflare", theirs)
            ratio = statistics.median(ours) / statistics.median(theirs)
            print(f"{'ratio of the medians':24} {ratio:12.1f}")
        print("one message, with so many pending at once")
        for count in (1_000, 10_000, 100_000):
            for name, query in (("waiting", ""), ("delayed", "&delay=600")):
                cost = min(1e6 / _rate(config, count, query) for _ in range(3))
                print(f"{count:>14,} {name:9} {cost:12.1f} µs")


def _config(folder: str) -> dict[str, object]:
    path = Path(folder, "entry.py")
    path.write_text(_WORKER)
    return {"main": str(path), "queues": _QUEUES}


def _show(name: str, rates: list[float]) -> None:
    low, middle, high = min(rates), statistics.median(rates), max(rates)
    print(f"{name:24} {middle:12,.0f} messages/s ({low:,.0f} to {high:,.0f})")


def _rate(config: dict[str, object], count: int, query: str = "") -> float:
    """Messages per second; all of them are sent before the first one is consumed."""

    async def once() -> float:
        async with Emulator(config) as emulator:
            await emulator.fetch("/?count=0")
            start = time.perf_counter()
            await emulator.fetch(f"/?count={count}{query}")
            await emulator.settle()
            taken = time.perf_counter() - start
            assert emulator.queues["jobs"].acked == count
            return count / taken

    return asyncio.run(once())


def _miniflare(folder: str) -> float:
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(
        ["node", str(script), folder, str(_MESSAGES)], check=True, capture_output=True, text=True
    )
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
