"""The binding `version_metadata`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator

pytestmark = pytest.mark.asyncio


class Worker(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        version = self.env.VERSION
        kind = type(version).__name__
        return Response.json([kind, version.id, version.tag, version.timestamp])


CONFIG: dict[str, Any] = {"main": Worker, "version_metadata": {"binding": "VERSION"}}


async def told(config: Any = CONFIG, **arguments: Any) -> Any:
    async with Emulator(config, **arguments) as emulator:
        first = (await emulator.fetch("/")).json()
        await emulator.crash()
        assert (await emulator.fetch("/")).json() == first
        return first


async def test_it_is_the_same_in_every_run_of_one_seed() -> None:
    kind, id, tag, timestamp = await told()
    assert (kind, tag, timestamp) == ("JsProxy", "", "2026-01-01T00:00:00.000Z")
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id)
    assert (await told())[1] == id
    assert (await told(seed=1))[1] != id
    assert (await told({**CONFIG, "name": "other"}))[1] != id
    start = datetime(2026, 5, 4, 3, 2, 1, 234_567, tzinfo=UTC)
    assert (await told(start=start))[3] == "2026-05-04T03:02:01.234Z"


async def test_it_needs_a_binding() -> None:
    with pytest.raises(ConfigError, match='binding should have a string "binding" field'):
        Emulator({"main": Worker, "version_metadata": {"name": "VERSION"}})
    with pytest.raises(ConfigError, match="VERSION assigned to "):
        Emulator({**CONFIG, "vars": {"VERSION": "1"}})
