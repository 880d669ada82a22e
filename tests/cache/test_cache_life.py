"""How long entries live: virtual time, crashes, restarts, and the faults of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cache_bench import URL, response, running, worker

from emulator import Emulator, WorkerCrashed, sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio


async def cached(_: Any) -> Any:
    """Answer from the cache, and say `made` when that was not possible."""
    from js import caches

    found = await caches.default.match(URL)
    if found is not None:
        return f"found {found.headers.get('age')}"
    await caches.default.put(URL, response(Cache_Control="max-age=60"))
    return "made"


async def texts(emulator: Emulator, *, count: int = 1) -> list[str]:
    return [(await emulator.fetch("/")).text for _ in range(count)]


@pytest.mark.parametrize("profile", ["production", "miniflare"])
async def test_an_entry_lives_as_long_as_its_headers_say(profile: Any) -> None:
    async with running(cached, profile=profile) as emulator:
        assert await texts(emulator, count=2) == ["made", "found 0"]
        await emulator.advance("59.999 s")
        age = "59" if profile == "production" else "0"
        assert await texts(emulator) == [f"found {age}"]
        await emulator.advance("1 ms")
        assert await texts(emulator) == ["made"]


async def test_entries_outlive_crash_and_eviction_but_no_restart(tmp_path: Path) -> None:
    """A cache promises nothing: what production may lose at any time is lost at a restart."""
    state = tmp_path / "state"
    async with running(cached, state=state) as emulator:
        await texts(emulator)
        await emulator.evict()
        await emulator.crash()
        await emulator.reload()
        assert await texts(emulator) == ["found 0"]
        await emulator.restart()
        assert await texts(emulator, count=2) == ["made", "found 0"]
        await emulator.reset()
        assert await texts(emulator) == ["made"]
    async with running(cached, state=state) as emulator:
        assert await texts(emulator) == ["made"]


async def test_workers_share_the_caches() -> None:
    configs = [worker(cached, name="a"), worker(cached, name="b")]
    async with Emulator(configs) as emulator:
        first = await emulator.fetch("/", worker="a")
        second = await emulator.fetch("/", worker="b")
        assert [first.text, second.text] == ["made", "found 0"]


@pytest.mark.parametrize(("profile", "stored"), [("production", []), ("miniflare", [URL])])
async def test_a_put_that_nothing_waits_for_is_dropped(profile: Any, stored: list[str]) -> None:
    async def handle(_: Any) -> str:
        from js import caches

        caches.default.put(URL, response(Cache_Control="max-age=60"))
        return "ok"

    async with running(handle, profile=profile) as emulator:
        emulator.findings.expect("floating_task")
        assert await texts(emulator) == ["ok"]
        assert emulator.caches["default"].urls == stored


async def test_a_put_given_to_wait_until_is_made() -> None:
    async def handle(entrypoint: Any) -> str:
        from js import caches

        put = caches.default.put(URL, response(Cache_Control="max-age=60"))
        entrypoint.ctx.waitUntil(put)
        return "ok"

    async with running(handle) as emulator:
        await texts(emulator)
        await emulator.settle()
        assert emulator.caches["default"].urls == [URL]
        assert [str(one) for one in emulator.findings.unexpected()] == []


async def test_an_evicted_entry_is_gone_for_good() -> None:
    async with running(cached, faults="cache.default.match#2:evict") as emulator:
        assert await texts(emulator, count=3) == ["made", "made", "found 0"]
        assert [str(fault) for fault in emulator.faults.fired] == ["cache.default.match#2:evict"]
        calls = [event.data for event in emulator.trace if event.kind == "cache"]
        assert [(data["call"], data["outcome"]) for data in calls] == [
            ("match", "miss"),
            ("put", "stored"),
            ("match", "evicted"),
            ("put", "stored"),
            ("match", "hit"),
        ]
        assert {data["url"] for data in calls} == {URL}


async def test_what_is_not_there_cannot_be_evicted() -> None:
    async with running(cached, faults="cache.default.match#1:evict") as emulator:
        assert await texts(emulator) == ["made"]
        assert [one.code for one in emulator.findings] == ["fault_not_fired"]


@pytest.mark.parametrize(("action", "stored"), [("crash_before", []), ("crash_after", [URL])])
async def test_a_crash_at_a_put(action: str, stored: list[str]) -> None:
    async with running(cached, faults=f"cache.default.put#1:{action}") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert emulator.caches["default"].urls == stored


async def test_a_refused_put_is_told_in_the_trace() -> None:
    async def handle(_: Any) -> str:
        from js import caches

        await caches.default.put(URL, response(Set_Cookie="a=b"))
        return "ok"

    async with running(handle) as emulator:
        await texts(emulator)
        (event,) = [event for event in emulator.trace if event.kind == "cache"]
        assert event.subject == "cache default"
        assert event.data["outcome"] == "not stored: Set-Cookie"


async def test_a_sweep_finds_code_that_counts_on_a_cache() -> None:
    async def scenario(emulator: Emulator) -> None:
        assert await texts(emulator, count=2) == ["made", "found 0"]

    report = await sweep(scenario, worker(cached))
    assert [str(failure.plan[0]) for failure in report.failures] == ["cache.default.match#2:evict"]
