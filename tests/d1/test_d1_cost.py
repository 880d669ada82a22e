"""What an operation of D1 costs, in calls of functions; `tests.benchmarks.d1` shows times."""

from __future__ import annotations

from typing import Any

import pytest

from tests.call_counts import COUNT, calls_of
from tests.d1.d1_bench import EXTERNAL, FROZEN, running

_TABLE = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT)"


async def _run(db: Any, number: int) -> None:
    await db.prepare("INSERT INTO jobs (id, name) VALUES (?, ?)").bind(number, "a name").run()


async def _first(db: Any, number: int) -> None:
    await db.prepare("SELECT name FROM jobs WHERE id = ?").bind(number).first()


async def _all(db: Any, number: int) -> None:
    await db.prepare("SELECT id, name FROM jobs WHERE id = ?").bind(number).all()


# By the SDK of today and by the one before it. When `run` made 259 and 267 it was slower by nearly
# a quarter than with 195 and 218.
_BUDGETS = {"run": (_run, 169, 199), "first": (_first, 167, 193), "all": (_all, 161, 189)}


async def _calls(operation: Any, date: str) -> float:
    found: list[float] = []

    async def handle(env: Any) -> str:
        found.append(await calls_of(operation, env.DB))
        return "done"

    async with running(handle, _TABLE, config={"compatibility_date": date}) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done", response.text
        assert len(emulator.d1["DB"].rows("jobs")) in (0, COUNT + 1)
    return found[0]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", _BUDGETS)
async def test_an_operation_stays_within_its_budget_of_calls(name: str) -> None:
    operation, modern, frozen = _BUDGETS[name]
    assert await _calls(operation, EXTERNAL[-1]) <= modern
    assert await _calls(operation, FROZEN[-1]) <= frozen
