"""Print how many calls and storage operations of Durable Objects are done in a second.

    python -m tests.benchmarks.objects [ROUNDS]

All is called from a handler, one after the other, through the SDK of the newest date. The best of
several rounds, by the clock on the wall and by the processor's time: on a busy machine the second
is the one to look at. Nothing fails.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import Emulator
from tests.benchmarks.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLS = 10_000
_WORKER = """
import asyncio

from workers import DurableObject, Response, WorkerEntrypoint

COUNT = 10_000


class Counter(DurableObject):
    def __init__(self, ctx, env):
        super().__init__(ctx, env)
        self.count = 0
        ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")

    async def add(self, by):
        self.count += by
        return self.count

    async def stored(self):
        count = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        return count

    async def gets(self):
        for _ in range(COUNT):
            await self.ctx.storage.get("count")

    async def puts(self):
        for number in range(COUNT):
            await self.ctx.storage.put("count", number)

    async def selects(self):
        sql = self.ctx.storage.sql
        for number in range(COUNT):
            sql.exec("SELECT ? AS a", number).one()


class Plain(Counter):
    def __init__(self, ctx, env):
        DurableObject.__init__(self, ctx, env)
        self.count = 0


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        what = request.url.rsplit("/", 1)[1]
        one, sql = self.env.PLAIN.getByName("x"), self.env.COUNTERS.getByName("x")
        if what == "call":
            for _ in range(COUNT):
                await one.add(1)
        elif what == "many":
            for number in range(COUNT):
                await self.env.PLAIN.getByName(f"{number % 100}").add(1)
        elif what == "gather":
            for _ in range(COUNT // 100):
                await asyncio.gather(*(one.add(1) for _ in range(100)))
        elif what == "stored":
            for _ in range(COUNT):
                await one.stored()
        elif what == "warm":
            await one.add(1)
        elif what == "sql":
            await sql.selects()
        else:
            await getattr(one, what)()
        return Response("done")
"""
_ROWS = {
    "call": "calls, one after the other",
    "gather": "calls, a hundred at a time",
    "many": "calls of a hundred objects by name",
    "stored": "calls with a read and a write",
    "gets": "reads in one call",
    "puts": "writes in one call",
    "sql": "SQL queries in one call",
}


def figures() -> Iterator[Figure]:
    """Yield all rows, in the processor's time."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config(folder)
        for what, title in _ROWS.items():
            rate = max(asyncio.run(_once(config, what))[1] for _ in range(3))
            yield Figure(f"Durable Objects, {title}", rate, "/s")


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    with tempfile.TemporaryDirectory() as folder:
        config = _config(folder)
        print(f"Python {sys.version.split()[0]}, {_CALLS:,} of each")
        for what, title in _ROWS.items():
            figures = [asyncio.run(_once(config, what)) for _ in range(rounds)]
            wall, processor = (max(figure) for figure in zip(*figures, strict=True))
            print(f"{title:36} {wall:10,.0f} /s, {processor:10,.0f} /s of the processor's time")


def _config(folder: str) -> dict[str, object]:
    path = Path(folder, "entry.py")
    path.write_text(_WORKER)
    names = {"COUNTERS": "Counter", "PLAIN": "Plain"}
    bindings = [{"name": name, "class_name": cls} for name, cls in names.items()]
    return {"main": str(path), "durable_objects": {"bindings": bindings}}


async def _once(config: dict[str, object], what: str) -> tuple[float, float]:
    async with Emulator(config) as emulator:
        await emulator.fetch("/warm")
        wall, processor = time.perf_counter(), time.process_time()
        assert (await emulator.fetch(f"/{what}")).text == "done"
        return (
            _CALLS / (time.perf_counter() - wall),
            _CALLS / (time.process_time() - processor),
        )


if __name__ == "__main__":
    main()
