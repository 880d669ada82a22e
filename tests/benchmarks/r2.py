"""Print how many R2 operations a second a Worker gets through: `python -m tests.benchmarks.r2`.

The second column counts the time of this process alone, which other work on the machine leaves
mostly alone. The last rows are the same calls with a state file.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from emulator import Emulator

_ROUNDS = 3
_COUNT = 20_000
_WORKER = """
from workers import Response, WorkerEntrypoint

COUNT = {count}
LARGE = b"x" * 65_536


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await getattr(self, request.url.rsplit("/", 1)[1])(self.env.R2)
        return Response("done")

    async def put(self, r2):
        for i in range(COUNT):
            await r2.put(f"key:{{i}}", "a body")

    async def again(self, r2):
        for i in range(COUNT):
            await r2.put("key", "a body", customMetadata={{"n": "1"}})

    async def head(self, r2):
        for i in range(COUNT):
            await r2.head(f"key:{{i}}")

    async def get(self, r2):
        for i in range(COUNT):
            await r2.get(f"key:{{i}}")

    async def text(self, r2):
        for i in range(COUNT):
            await (await r2.get(f"key:{{i}}")).text()

    async def list(self, r2):
        for i in range(COUNT):
            await r2.list(prefix="key:1", limit=1)

    async def large(self, r2):
        for i in range(COUNT // 10):
            await r2.put(f"large:{{i % 100}}", LARGE)
"""
_WORK = {
    "put": "put, of a new key",
    "again": "put, of one key, with metadata",
    "head": "head",
    "get": "get",
    "text": "get, and its text",
    "list": "list, of one key among many",
    "large": "put, of 64 KiB",
}
_FEWER = {"large": 10}


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {_COUNT:,} operations each")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "entry.py")
        path.write_text(_WORKER.format(count=_COUNT))
        config = {"main": str(path), "r2_buckets": [{"binding": "R2", "bucket_name": "files"}]}
        _show("in memory", [_rates(config, None) for _ in range(_ROUNDS)])
        states = [str(Path(folder, f"state{i}.db")) for i in range(_ROUNDS)]
        _show("with a state file", [_rates(config, state) for state in states])


def _show(title: str, rounds: list[dict[str, tuple[float, float]]]) -> None:
    print(f"{title:34} {'a second':>12} {'a CPU second':>14}")
    for name, text in _WORK.items():
        wall, cpu = (statistics.median(rates[name][i] for rates in rounds) for i in (0, 1))
        print(f"  {text:32} {wall:12,.0f} {cpu:14,.0f}")


def _rates(config: dict[str, object], state: str | None) -> dict[str, tuple[float, float]]:
    """Operations per second, and per second of this process's own time."""

    async def once() -> dict[str, tuple[float, float]]:
        rates = {}
        async with Emulator(config, state=state) as emulator:
            for name in _WORK:
                wall, cpu = time.perf_counter(), time.process_time()
                await emulator.fetch(f"/{name}")
                count = _COUNT // _FEWER.get(name, 1)
                rates[name] = (
                    count / (time.perf_counter() - wall),
                    count / (time.process_time() - cpu),
                )
            found = emulator.r2["R2"].get(f"key:{_COUNT - 1}")
            assert found is not None
            assert found.text == "a body"
        return rates

    return asyncio.run(once())


if __name__ == "__main__":
    main()
