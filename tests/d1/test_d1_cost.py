"""What an operation costs, in calls of functions: the same on any machine, however busy it is.

`tests.benchmarks.d1` shows the time. It is spent in no one place: what makes operations slower is a
call more here and there, and that is what the budgets notice.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.d1.d1_bench import EXTERNAL, FROZEN, running

_TABLE = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT)"
_COUNT = 50


async def _run(db: Any, number: int) -> None:
    await db.prepare("INSERT INTO jobs (id, name) VALUES (?, ?)").bind(number, "a name").run()


async def _first(db: Any, number: int) -> None:
    await db.prepare("SELECT name FROM jobs WHERE id = ?").bind(number).first()


async def _all(db: Any, number: int) -> None:
    await db.prepare("SELECT id, name FROM jobs WHERE id = ?").bind(number).all()


# By the SDK of today and by the one before it; a call of a Python function, or one of its steps,
# counts as one of C's does. When `run` made 259 and 267 it was slower by nearly a quarter.
_BUDGETS = {"run": (_run, 195, 218), "first": (_first, 180, 209), "all": (_all, 184, 205)}


async def _calls(operation: Any, date: str) -> float:
    """How many calls of functions one operation makes."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    async def handle(env: Any) -> str:
        await operation(env.DB, _COUNT)  # what is looked up but once
        sys.setprofile(count)
        try:
            for number in range(_COUNT):
                await operation(env.DB, number)
        finally:
            sys.setprofile(None)
        return "done"

    async with running(handle, _TABLE, config={"compatibility_date": date}) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done", response.text
        assert len(emulator.d1["DB"].rows("jobs")) in (0, _COUNT + 1)
    return counted / _COUNT


@pytest.mark.asyncio
@pytest.mark.parametrize("name", _BUDGETS)
async def test_an_operation_stays_within_its_budget_of_calls(name: str) -> None:
    operation, modern, frozen = _BUDGETS[name]
    assert await _calls(operation, EXTERNAL[-1]) <= modern
    assert await _calls(operation, FROZEN[-1]) <= frozen
