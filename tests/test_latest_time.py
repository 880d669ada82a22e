"""The end of time: no clock goes past `LATEST`, and nothing is touched where one would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.clock import LATEST, Clock, RealClock, moment
from emulator.errors import ConfigError, DurationError, NotSettled, Stuck

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "name": "w",
    "main": "entry.py",
    "compatibility_date": "2026-10-01",
    "compatibility_flags": ["python_workers"],
}
SOURCE = """
import asyncio
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await asyncio.sleep(400 * 365 * 86400)
        return Response("ok")
"""
ALARM = """
from workers import DurableObject, Response, WorkerEntrypoint

class Room(DurableObject):
    async def go(self):
        await self.ctx.storage.setAlarm(TIME)
        return str(await self.ctx.storage.getAlarm())

    async def alarm(self, info=None):
        print("alarm")

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return Response(await self.env.ROOMS.getByName("x").go())
"""
TOO_FAR = ["99999 years", 1e12, 1e17, timedelta.max]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "entry.py").write_text(SOURCE, "utf-8")
    return tmp_path


@pytest.mark.parametrize("duration", TOO_FAR)
def test_a_move_past_the_latest_time_is_refused_and_nothing_moves(
    folder: Path, duration: Any
) -> None:
    with Emulator(CONFIG, base=folder) as emulator:
        before = emulator.now
        with pytest.raises(DurationError, match=r"past 9999-01-01, the latest .* may move by \d+"):
            emulator.run(emulator.advance(duration))
        assert emulator.now == before
        emulator.run(emulator.advance("1 day"))
        assert emulator.now == before + timedelta(days=1)


def test_the_clock_may_move_to_the_latest_time_and_no_further(folder: Path) -> None:
    with Emulator(CONFIG, base=folder) as emulator:
        emulator.run(emulator.advance(moment(LATEST) - emulator.now))
        assert emulator.now == moment(LATEST)
        emulator.run(emulator.advance(0))
        with pytest.raises(ValueError, match="may move by 0 s at most"):
            emulator.run(emulator.advance(0.001))
        emulator.run(emulator.settle())
        assert emulator.now == moment(LATEST)


@pytest.mark.parametrize("limit", TOO_FAR)
def test_a_limit_past_the_latest_time_ends_there(folder: Path, limit: Any) -> None:
    with Emulator(CONFIG, base=folder) as emulator:
        with pytest.raises(NotSettled):
            emulator.run(emulator.run_until(lambda: False, limit=limit))
        assert emulator.now <= moment(LATEST)
        emulator.run(emulator.settle(limit=limit))
        assert emulator.now <= moment(LATEST)


def test_what_is_due_later_never_falls_due(folder: Path) -> None:
    (folder / "entry.py").write_text(SOURCE.replace("400 *", "7999 *"), "utf-8")
    with Emulator(CONFIG, base=folder) as emulator:
        before = emulator.now
        with pytest.raises(Stuck):
            emulator.run(emulator.fetch("/"))
        assert emulator.now == before


def test_a_start_past_the_latest_time_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no clock goes past 9999-01-01"):
        Emulator(CONFIG, base=folder, start=datetime(9999, 5, 1, tzinfo=UTC))


@pytest.mark.parametrize("too_far", [LATEST + 1, 10**21])
def test_a_state_with_a_later_time_opens_at_the_latest(too_far: int) -> None:
    """States that an earlier version has moved there."""
    virtual, real = Clock(0), RealClock(lambda: 1_000)
    for clock in (virtual, real):
        clock.resume(too_far, too_far)
        clock.catch_up()
        assert clock.now == LATEST
        with pytest.raises(ValueError, match="cannot go past"):
            clock.move_to(LATEST + 1)


def test_a_real_clock_stops_at_the_latest_time() -> None:
    machine = [LATEST - 1]
    clock = RealClock(lambda: machine[0])
    machine[0] += 5
    clock.catch_up()
    assert clock.now == LATEST


def test_a_moment_beyond_any_date_is_the_last_or_the_first() -> None:
    assert moment(10**21) == datetime.max.replace(tzinfo=UTC)
    assert moment(-(10**21)) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("time", ["8.6e15", "8.64e15"])
def test_an_alarm_may_be_at_any_time_that_javascript_has(folder: Path, time: str) -> None:
    """ECMAScript: Date's range is 8.64e15 ms. Such an alarm never runs, and stays set."""
    (folder / "entry.py").write_text(ALARM.replace("TIME", time), "utf-8")
    bindings = {"bindings": [{"name": "ROOMS", "class_name": "Room"}]}
    migrations = [{"tag": "v1", "new_sqlite_classes": ["Room"]}]
    config = {**CONFIG, "durable_objects": bindings, "migrations": migrations}
    state = folder / "state.db"
    with Emulator(config, base=folder, state=state) as emulator:
        response = emulator.run(emulator.fetch("/"))
        assert (response.status_code, float(response.text)) == (200, float(time))
        emulator.run(emulator.settle())
        assert emulator.now < datetime(2026, 1, 2, tzinfo=UTC)
        assert not emulator.logs
        emulator.run(emulator.restart())
        assert emulator.run(emulator.fetch("/")).status_code == 200
    with Emulator(config, base=folder, state=state) as emulator:
        assert emulator.run(emulator.fetch("/")).status_code == 200
