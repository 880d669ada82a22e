"""Alarms: rules, runs, retries. The rules stand in `emulator/objects/alarms.py`."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from object_bench import (
    FROZEN,
    START,
    alarms,
    codes,
    inside,
    kept,
    kinds,
    object_class,
    seconds,
    stub,
    told,
    worker,
)

from emulator import Emulator, Stuck
from emulator.objects import alarms as rules
from emulator.objects.stored import Alarm, Stored

SECOND = 1_000_000


def now_ms() -> int:
    return int(time.time() * 1000)


async def set_alarm(self: Any, after: float, *_: Any) -> None:
    """A method that sets an alarm so many seconds from now."""
    await self.ctx.storage.setAlarm(now_ms() + int(after * 1000))


def ringing(alarm: Any, **members: Any) -> dict[str, Any]:
    """A Worker whose objects have this `alarm`."""
    return worker(object_class(set=set_alarm, alarm=alarm, **members))


# -- rules, pure -----------------------------------------------------------------------------------


def test_delays_double_from_two_seconds_six_times() -> None:
    alarm, delays = Alarm(0, 0), []
    while (later := rules.retried(alarm, 0)) is not None:
        delays.append(later.due // SECOND)
        alarm = later
    assert delays == [2, 4, 8, 16, 32, 64]
    assert (alarm.time, alarm.retries) == (0, rules.MOST_RETRIES)


def test_a_run_that_was_cut_off_does_not_count() -> None:
    assert rules.put_off(Alarm(5, 5, 3), 100) == Alarm(5, 100 + 2 * SECOND, 3)


def test_the_handler_decides_what_comes_next() -> None:
    stored = Stored("id", None)
    stored.set_alarm(Alarm(1, 1))
    stored.running = stored.alarm
    assert not rules.is_decided(stored)
    stored.set_alarm(Alarm(1, 1))
    assert rules.is_decided(stored)
    stored.set_alarm(None)
    assert rules.is_decided(stored)


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_an_alarm_runs_once_when_it_is_due() -> None:
    seen: list[Any] = []

    async def alarm(self: Any, info: Any) -> None:
        seen.append([info.retryCount, info.isRetry, info.scheduledTime])
        seen.append(await self.ctx.storage.getAlarm())

    async with Emulator(ringing(alarm)) as emulator:
        objects = emulator.durable_objects["OBJ"]
        assert objects.alarm("x") is None
        await stub(emulator).set(60)
        assert objects.alarm("x") == START + timedelta(seconds=60)
        await emulator.advance(59.999)
        assert seen == []
        await emulator.advance(0.001)
        assert seen == [[0, False, 1_767_225_660_000], None]
        assert objects.alarm("x") is None
        await emulator.settle()
        assert alarms(emulator) == [(60, "alarm"), (60, "alarm_done")]


@pytest.mark.asyncio
async def test_an_alarm_that_sets_itself_to_now_for_ever_is_an_error_of_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("emulator.objects.alarm_clock._MOST_AT_ONCE", 20)
    runs: list[int] = []

    async def alarm(self: Any, _: Any) -> None:
        runs.append(now_ms())
        if len(runs) != 15:
            await self.ctx.storage.setAlarm(now_ms())

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        assert len(runs) == 15  # a row that ends
        with pytest.raises(Stuck, match="ran 20 times at one instant"):
            await stub(emulator).set(0)
        assert set(runs) == {1000 * int(START.timestamp())}


@pytest.mark.asyncio
@pytest.mark.parametrize("takes", [lambda self: None, lambda self, info: None])
async def test_a_handler_takes_what_it_likes(takes: Any) -> None:
    async with Emulator(ringing(takes)) as emulator:
        await stub(emulator).set(1)
        await emulator.settle()
        assert [kind for _, kind in alarms(emulator)] == ["alarm", "alarm_done"]


@pytest.mark.asyncio
@pytest.mark.parametrize("given", [1, datetime(2020, 1, 1, tzinfo=UTC)])
async def test_a_time_in_the_past_is_now(given: Any) -> None:
    async def go(self: Any) -> Any:
        await self.ctx.storage.setAlarm(given)
        return await self.ctx.storage.getAlarm()

    async with Emulator(worker(inside(go, alarm=lambda self: None))) as emulator:
        assert await stub(emulator).go() == 1_767_225_600_000
        await emulator.advance(0)
        assert alarms(emulator) == [(0, "alarm"), (0, "alarm_done")]


@pytest.mark.asyncio
async def test_the_last_time_counts_and_an_alarm_can_be_deleted() -> None:
    async def go(self: Any) -> Any:
        storage = self.ctx.storage
        await storage.setAlarm(now_ms() + 60_000)
        await storage.setAlarm(datetime.now() + timedelta(seconds=10))
        found = [await storage.getAlarm()]
        await storage.deleteAlarm()
        found.append(await storage.getAlarm())
        await storage.setAlarm(now_ms() + 20_000)
        return found

    async with Emulator(worker(inside(go, alarm=lambda self: None))) as emulator:
        first, second = await stub(emulator).go()
        assert second is None
        assert first is not None
        await emulator.settle()
        assert alarms(emulator) == [(20, "alarm"), (20, "alarm_done")]


@pytest.mark.asyncio
async def test_a_handler_may_set_the_alarm_again() -> None:
    async def alarm(self: Any) -> None:
        count = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        if count < 3:
            await self.ctx.storage.setAlarm(now_ms() + 10_000)

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(5)
        await emulator.settle()
        assert [at for at, kind in alarms(emulator) if kind == "alarm"] == [5, 15, 25]
        assert kept(emulator) == {"count": 3}


@pytest.mark.asyncio
async def test_an_alarm_that_is_set_for_now_in_its_handler_runs_after_it() -> None:
    log: list[str] = []

    async def alarm(self: Any) -> None:
        log.append("begins")
        if len(log) == 1:
            await self.ctx.storage.setAlarm(1)
            await asyncio.sleep(30)
        log.append("ends")

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        await emulator.settle()
        assert log == ["begins", "ends", "begins", "ends"]
        assert [at for at, kind in alarms(emulator) if kind == "alarm"] == [0, 30]


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_failing_alarm_is_tried_six_times_more() -> None:
    seen: list[Any] = []

    async def alarm(self: Any, info: Any) -> None:
        seen.append((seconds(emulator), info.retryCount, info.isRetry))
        raise ValueError("always")

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(10)
        await emulator.settle()
        times = [10, 12, 16, 24, 40, 72, 136]
        assert seen == [(at, count, count > 0) for count, at in enumerate(times)]
        assert codes(emulator) == ["alarm_dropped"]
        (finding,) = emulator.findings
        assert finding.message == (
            "the alarm failed 7 times and is not tried again: ValueError: always"
        )
        assert finding.subject == "object OBJ x"
        assert emulator.durable_objects["OBJ"].alarm("x") is None
        errors = [log for log in emulator.logs if log.level == "error"]
        assert len(errors) == 7
        # A plain exception does not reset the object, as in production.
        assert kinds(emulator, "object_started", "reset") == ["object_started"]


@pytest.mark.asyncio
async def test_while_it_waits_to_be_tried_again_the_alarm_is_set() -> None:
    async def alarm(self: Any) -> None:
        raise ValueError

    async def look(self: Any) -> Any:
        return await self.ctx.storage.getAlarm()

    async with Emulator(ringing(alarm, look=look)) as emulator:
        await stub(emulator).set(10)
        await emulator.advance(11)
        assert await stub(emulator).look() == 1_767_225_610_000
        # When it runs next is what the test sees.
        alarm_at = emulator.durable_objects["OBJ"].alarm("x")
        assert alarm_at == START + timedelta(seconds=12)


@pytest.mark.asyncio
async def test_an_alarm_set_early_in_a_handler_that_fails_replaces_the_retries() -> None:
    """S-17."""
    runs: list[int] = []

    async def alarm(self: Any, info: Any) -> None:
        runs.append(info.retryCount)
        if len(runs) == 1:
            await self.ctx.storage.setAlarm(now_ms() + 60_000)
            raise ValueError("after it was set")

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        await emulator.settle()
        assert runs == [0, 0]
        assert alarms(emulator) == [
            *((0, "alarm"), (0, "alarm_failed")),
            *((60, "alarm"), (60, "alarm_done")),
        ]
        assert codes(emulator) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["deleteAlarm", "deleteAll"])
async def test_what_deletes_the_alarm_ends_it_even_if_the_handler_fails(how: str) -> None:
    async def alarm(self: Any) -> None:
        await getattr(self.ctx.storage, how)()
        raise ValueError

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        await emulator.settle()
        assert alarms(emulator) == [(0, "alarm"), (0, "alarm_failed")]


@pytest.mark.asyncio
@pytest.mark.parametrize(("date", "left"), [("2026-02-23", True), ("2026-02-24", False)])
async def test_delete_all_deletes_the_alarm_by_the_date(date: str, left: bool) -> None:
    """S-11: it works in an alarm too, which then is not tried again."""

    async def go(self: Any) -> Any:
        storage = self.ctx.storage
        await storage.put("a", 1)
        await storage.setAlarm(now_ms() + 60_000)
        await storage.deleteAll()
        return bool(await storage.getAlarm())

    async def alarm(self: Any) -> None:
        await self.ctx.storage.deleteAll()

    config = worker(inside(go, alarm=alarm), compatibility_date=date)
    async with Emulator(config) as emulator:
        assert await stub(emulator).go() is left
        await emulator.settle()
        expected = [(60, "alarm"), (60, "alarm_done")] if left else []
        assert alarms(emulator) == expected
        assert kept(emulator) == {}


@pytest.mark.asyncio
async def test_a_reset_counts_and_the_constructor_comes_before_the_retry() -> None:
    """S-08."""
    log: list[str] = []

    def init(self: Any, ctx: Any, env: Any) -> None:
        super(cls, self).__init__(ctx, env)

        async def load() -> None:
            await asyncio.sleep(5)
            log.append("loaded")

        ctx.blockConcurrencyWhile(load)

    async def alarm(self: Any, info: Any) -> None:
        log.append(f"alarm {info.retryCount}")
        if info.retryCount < 2:
            self.ctx.abort("again")

    cls = object_class(__init__=init, set=set_alarm, alarm=alarm)
    async with Emulator(worker(cls)) as emulator:
        await stub(emulator).set(100)
        await emulator.settle()
        assert log == [
            "loaded",
            *("alarm 0", "loaded", "alarm 1", "loaded", "alarm 2"),
        ]
        assert [at for at, kind in alarms(emulator) if kind == "alarm"] == [105, 107, 116]


@pytest.mark.asyncio
async def test_a_run_that_takes_a_quarter_of_an_hour_is_given_up_and_counted() -> None:
    async def alarm(self: Any, info: Any) -> None:
        if not info.isRetry:
            await asyncio.sleep(1_000)
            await self.ctx.storage.put("not", "reached")

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        await emulator.settle()
        assert alarms(emulator) == [
            *((0, "alarm"), (900, "alarm_retry")),
            *((902, "alarm"), (902, "alarm_done")),
        ]
        assert kept(emulator) == {}
        assert [e.data["error"] for e in emulator.trace if e.kind == "reset"] == [
            "Alarm exceeded its allowed execution time"
        ]


@pytest.mark.asyncio
async def test_a_class_without_the_handler_is_told_of() -> None:
    async with Emulator(worker(object_class(set=set_alarm))) as emulator:
        await stub(emulator).set(0)
        await emulator.settle()
        assert codes(emulator) == ["missing_handler", "alarm_dropped"]
        assert next(iter(emulator.findings)).message == (
            "Obj has an alarm but no alarm(); production cannot run it"
        )


# -- crashes, eviction, time -----------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_run_that_loses_its_power_comes_again_and_does_not_count() -> None:
    seen: list[int] = []

    async def alarm(self: Any, info: Any) -> None:
        seen.append(info.retryCount)
        await self.ctx.storage.put("run", len(seen))
        if len(seen) == 1:
            await asyncio.sleep(30)

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(0)
        await emulator.advance(10)
        await emulator.durable_objects["OBJ"].crash("x")
        await emulator.settle()
        assert seen == [0, 0]
        assert alarms(emulator) == [
            *((0, "alarm"), (10, "alarm_lost")),
            *((12, "alarm"), (12, "alarm_done")),
        ]
        assert kept(emulator) == {"run": 2}


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["evict", "crash", "restart", "reload"])
async def test_an_alarm_outlives_the_object_s_memory(how: str) -> None:
    """O-37: also the code; O-39: also its eviction."""

    async def alarm(self: Any) -> None:
        await self.ctx.storage.put("rang", seconds(emulator))

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(60)
        await getattr(emulator, how)()
        assert emulator.durable_objects["OBJ"].alarm("x") == START + timedelta(seconds=60)
        await emulator.advance(60)
        assert kept(emulator) == {"rang": 60}


@pytest.mark.asyncio
async def test_settle_runs_an_alarm_that_sets_itself_again_a_hundred_times() -> None:
    async def alarm(self: Any) -> None:
        await self.ctx.storage.put("count", (await self.ctx.storage.get("count") or 0) + 1)
        await self.ctx.storage.setAlarm(now_ms() + 1_000)

    async with Emulator(ringing(alarm)) as emulator:
        await stub(emulator).set(1)
        await emulator.settle()
        assert (kept(emulator), seconds(emulator)) == ({"count": 100}, 100)
        await emulator.settle()
        assert kept(emulator) == {"count": 200}
        # Time that passes runs it as often as it comes.
        await emulator.advance(150)
        assert kept(emulator) == {"count": 350}


@pytest.mark.asyncio
async def test_an_alarm_leaves_nothing_for_the_next_test() -> None:
    """O-36."""
    rang: list[str] = []
    async with Emulator(ringing(lambda self: rang.append("first"))) as emulator:
        await stub(emulator).set(5)
    async with Emulator(ringing(lambda self: rang.append("second"))) as emulator:
        await emulator.advance(3600)
        await stub(emulator).set(5)
        await emulator.reset()
        await emulator.advance(3600)
        assert emulator.durable_objects["OBJ"].objects == []
        await emulator.settle()
    assert rang == []


@pytest.mark.asyncio
async def test_a_run_at_will() -> None:
    async def alarm(self: Any, info: Any) -> None:
        await asyncio.sleep(5)
        if info.isRetry:
            raise ValueError("a retry fails")
        await self.ctx.storage.put("scheduled", info.scheduledTime)
        raise ValueError("and so does the first run")

    async with Emulator(ringing(alarm)) as emulator:
        objects = emulator.durable_objects["OBJ"]
        assert await objects.run_alarm("x") is False
        await stub(emulator).set(3600)
        assert await objects.run_alarm("x") is True
        assert seconds(emulator) == 5
        assert kept(emulator) == {"scheduled": 1_767_229_200_000}
        # It failed, and is tried again as any other.
        assert objects.alarm("x") == START + timedelta(seconds=7)


@pytest.mark.asyncio
async def test_objects_have_alarms_of_their_own() -> None:
    async def alarm(self: Any) -> None:
        await self.ctx.storage.put("rang", seconds(emulator))

    async with Emulator(ringing(alarm)) as emulator:
        for number in range(3):
            await stub(emulator, f"{number}").set(number + 1)
        await emulator.settle()
        assert [kept(emulator, f"{n}") for n in range(3)] == [{"rang": n + 1} for n in range(3)]


@pytest.mark.asyncio
async def test_the_handler_s_old_name() -> None:
    """Before 2025-08-14 methods of classes that handle events begin with `on_`."""

    async def on_fetch(self: Any, request: Any) -> Any:
        from workers import Response

        await self.ctx.storage.setAlarm(now_ms() + 1000)
        return Response("set")

    async def on_alarm(self: Any) -> None:
        await self.ctx.storage.put("rang", True)

    from types import ModuleType

    module = ModuleType("entry")
    module.Obj = object_class(on_fetch=on_fetch, on_alarm=on_alarm)  # type: ignore[attr-defined]
    bindings = {"bindings": [{"name": "OBJ", "class_name": "Obj"}]}
    config = {"main": module, "durable_objects": bindings, "compatibility_date": "2025-08-13"}
    async with Emulator(config) as emulator:
        answer = await stub(emulator).fetch("http://x/")
        assert await answer.text() == "set"
        await emulator.settle()
        assert kept(emulator) == {"rang": True}


@pytest.mark.asyncio
async def test_a_frozen_sdk_gets_javascript_s_own_times() -> None:
    async def go(self: Any) -> Any:
        await self.ctx.storage.setAlarm(now_ms() + 60_000)
        return await self.ctx.storage.getAlarm()

    config = worker(inside(go, alarm=lambda self: None), compatibility_date=FROZEN)
    async with Emulator(config) as emulator:
        assert await told(stub(emulator).go) == 1_767_225_660_000
