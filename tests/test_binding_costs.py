"""What a call of KV and of Queues costs, in calls of functions; test_d1_cost.py has it for D1."""

from __future__ import annotations

from typing import Any

import pytest

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

from emulator import Emulator
from tests.call_counts import COUNT, calls_of
from tests.d1.d1_bench import EXTERNAL, FROZEN


async def _get(env: Any, number: int) -> None:
    await env.KV.get("key")


async def _put(env: Any, number: int) -> None:
    await env.KV.put("key", "value")


async def _send(env: Any, number: int) -> None:
    await env.QUEUE.send("message")


# By the SDK of today and by the one before it.
_BUDGETS = {"get": (_get, 136, 143), "put": (_put, 152, 154), "send": (_send, 210, 215)}


async def _calls(operation: Any, date: str) -> float:
    found: list[float] = []

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            found.append(await calls_of(operation, self.env))
            return Response("done")

    config = {
        "main": Default,
        "compatibility_date": date,
        "kv_namespaces": [{"binding": "KV", "id": "kv"}],
        "queues": {"producers": [{"binding": "QUEUE", "queue": "jobs"}]},
    }
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done", response.text
        made = [event for event in emulator.trace if event.kind in ("kv", "send")]
        assert len(made) == COUNT + 1
    return found[0]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", _BUDGETS)
async def test_a_call_stays_within_its_budget_of_calls(name: str) -> None:
    operation, modern, frozen = _BUDGETS[name]
    assert await _calls(operation, EXTERNAL[-1]) <= modern
    assert await _calls(operation, FROZEN[-1]) <= frozen
