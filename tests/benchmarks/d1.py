"""Print how many D1 operations a second a Worker gets through: `python -m tests.benchmarks.d1`.

A row of a batch is one statement of a batch of 10. The second column counts the time of this
process alone, which other work on the machine leaves mostly alone. Then come the same statements
with a state file (in a file, and durable), and all again for the SDK that the runtime has frozen.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import Emulator
from tests.benchmarks.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS = 5
# By what is told of the SDK; None is the newest date.
_DATES = {"": None, "frozen SDK, ": "2026-04-20"}
_COUNT = 20_000
_WORKER = """
from pyodide.ffi import to_js
from workers import Response, WorkerEntrypoint

COUNT = {count}
CONVERTS = {converts}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await getattr(self, request.url.rsplit("/", 1)[1])(self.env.DB)
        return Response("done")

    async def insert(self, db):
        for i in range(COUNT):
            await db.prepare("INSERT INTO jobs (name) VALUES (?)").bind("a name").run()

    async def first(self, db):
        for i in range(COUNT):
            await db.prepare("SELECT * FROM jobs WHERE id = ?").bind(i + 1).first()

    async def all(self, db):
        for i in range(COUNT):
            await db.prepare("SELECT id, name FROM jobs WHERE id = ?").bind(i + 1).all()

    async def again(self, db):
        statement = db.prepare("UPDATE jobs SET name = ? WHERE id = 1").bind("another")
        for i in range(COUNT):
            await statement.run()

    async def batch(self, db):
        insert = db.prepare("INSERT INTO jobs (name) VALUES (?)")
        for i in range(0, COUNT, 10):
            statements = [insert.bind("a name") for _ in range(10)]
            await db.batch(statements if CONVERTS else to_js(statements))
"""
_WORK = {
    "insert": "prepare, bind, run: an INSERT",
    "first": "prepare, bind, first: by its key",
    "all": "prepare, bind, all: by its key",
    "again": "run, of a bound UPDATE",
    "batch": "a row of a batch",
}


def figures() -> Iterator[Figure]:
    """Yield the operations in memory, in the time of this process alone."""
    for sdk, date in _DATES.items():
        with tempfile.TemporaryDirectory() as folder:
            config = _config(folder, date)
            rounds = [_rates(config, None) for _ in range(_ROUNDS)]
        for name, text in _WORK.items():
            yield Figure(f"D1, {sdk}{text}", max(rates[name][1] for rates in rounds), "/s")


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {_COUNT:,} operations each")
    for sdk, date in _DATES.items():
        with tempfile.TemporaryDirectory() as folder:
            config = _config(folder, date)
            _show(f"{sdk}in memory", [_rates(config, None) for _ in range(_ROUNDS)])
            states = [str(Path(folder, f"state{i}.db")) for i in range(_ROUNDS)]
            _show(f"{sdk}with a state file", [_rates(config, state) for state in states])


def _config(folder: str, date: str | None) -> dict[str, object]:
    path = Path(folder, "entry.py")
    path.write_text(_WORKER.format(count=_COUNT, converts=date is None))
    database = {"binding": "DB", "database_name": "jobs", "database_id": "1"}
    dated = {} if date is None else {"compatibility_date": date}
    return {"main": str(path), "d1_databases": [database], **dated}


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
            database = emulator.d1["DB"]
            database.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT)")
            for name in _WORK:
                wall, cpu = time.perf_counter(), time.process_time()
                await emulator.fetch(f"/{name}")
                rates[name] = (
                    _COUNT / (time.perf_counter() - wall),
                    _COUNT / (time.process_time() - cpu),
                )
            assert database.execute("SELECT count(*) AS n FROM jobs") == [{"n": 2 * _COUNT}]
        return rates

    return asyncio.run(once())


if __name__ == "__main__":
    main()
