"""Dicts that nobody converted: what JavaScript sees of them, by generation of Pyodide."""

from __future__ import annotations

import js
import pytest
from pyodide.ffi import to_js
from workers import WorkerEntrypoint

from emulator import Emulator

FLAGS = ["python_workers", "disable_python_no_global_handlers"]
CONFIG = {
    "compatibility_flags": FLAGS,
    "kv_namespaces": [{"binding": "KV", "id": "kv"}],
    "queues": {"producers": [{"binding": "JOBS", "queue": "jobs"}], "consumers": []},
}


class Unconverted(WorkerEntrypoint):
    async def on_fetch(self, request, env, ctx):
        await self.env.KV.put("key", "value", {"expirationTtl": 60})
        await self.env.JOBS.send({"to": "somebody"})
        return js.Response.new("gone", {"status": 410, "statusText": "Gone"})


class Converted(WorkerEntrypoint):
    async def on_fetch(self, request, env, ctx):
        job = to_js({"to": "somebody"}, dict_converter=js.Object.fromEntries)
        await self.env.KV.put("key", "value", expirationTtl=60)
        await self.env.KV.put("other", "value", {})
        await self.env.JOBS.send(job)
        js.console.log({"shown": "by its own text"})
        return js.Response.new("gone", status=410)


async def told(main: type, date: str) -> tuple[int, bool, list[str]]:
    """The status, whether the key has expired after two minutes, and findings about options."""
    async with Emulator({**CONFIG, "main": main, "compatibility_date": date}) as emulator:
        response = await emulator.fetch("/")
        await emulator.advance("2 minutes")
        has_expired = emulator.kv["KV"].get("key") is None
        found = [one for one in emulator.findings if one.code == "ignored_option"]
        assert all("test_pyproxy.py:" in str(one.location) for one in found)
        return response.status_code, has_expired, [one.message for one in found]


@pytest.mark.asyncio
async def test_what_javascript_does_not_see_of_a_dict_is_told() -> None:
    """python-api.md 3.1: Pyodide 0.26 shows JavaScript no items of a dict."""
    status, has_expired, found = await told(Unconverted, "2025-01-10")
    assert (status, has_expired) == (200, False)
    for message, names in zip(
        found, ("'expirationTtl'", "'to'", "'status', 'statusText'"), strict=True
    ):
        assert message.startswith(f"JavaScript does not see what is in this dict ({names}): ")


@pytest.mark.asyncio
async def test_later_generations_see_it() -> None:
    assert await told(Unconverted, "2026-01-01") == (410, True, [])


@pytest.mark.asyncio
@pytest.mark.parametrize("date", ["2025-01-10", "2026-01-01"])
async def test_what_is_converted_or_given_by_keyword_is_seen(date: str) -> None:
    assert await told(Converted, date) == (410, True, [])
