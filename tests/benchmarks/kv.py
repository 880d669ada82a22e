"""Print how many KV operations a second a Worker gets through: `python -m tests.benchmarks.kv`.

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


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await getattr(self, request.url.rsplit("/", 1)[1])(self.env.KV)
        return Response("done")

    async def put(self, kv):
        for i in range(COUNT):
            await kv.put(f"key:{{i}}", "a value")

    async def again(self, kv):
        for i in range(COUNT):
            await kv.put("key", "a value", expirationTtl=3600)

    async def get(self, kv):
        for i in range(COUNT):
            await kv.get(f"key:{{i}}")

    async def json(self, kv):
        await kv.put("json", '{{"a": [1, 2, 3]}}')
        for i in range(COUNT):
            await kv.get("json", "json")

    async def list(self, kv):
        for i in range(COUNT):
            await kv.list(prefix="key:1", limit=1)
"""
_WORK = {
    "put": "put, of a new key",
    "again": "put, of one key, with a TTL",
    "get": "get",
    "json": "get, json",
    "list": "list, of one key among many",
}


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {_COUNT:,} operations each")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "entry.py")
        path.write_text(_WORKER.format(count=_COUNT))
        config = {"main": str(path), "kv_namespaces": [{"binding": "KV"}]}
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
                rates[name] = (
                    _COUNT / (time.perf_counter() - wall),
                    _COUNT / (time.process_time() - cpu),
                )
            assert await emulator.env.KV.get(f"key:{_COUNT - 1}") == "a value"
        return rates

    return asyncio.run(once())


if __name__ == "__main__":
    main()
