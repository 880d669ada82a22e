"""The time of day: virtual in the simulation, the test's choice outside."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from simulation import START, Simulation, simulate

from emulator.clock import MICROSECONDS, moment
from emulator.wallclock import WallClock

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def wall_clock() -> Iterator[WallClock]:
    clock = WallClock()
    yield clock
    assert not clock._open
    assert not time_machine.traveller_stack


def read() -> list[Any]:
    return [
        time.time(),
        time.time_ns() / 1e9,
        dt.datetime.now(dt.UTC).timestamp(),
        dt.datetime.now().astimezone(dt.UTC).timestamp(),
        time.mktime(time.localtime()),
    ]


async def read_inside(after: float = 0) -> list[Any]:
    await asyncio.sleep(after)
    return read()


def test_worker_code_reads_virtual_time(wall_clock: WallClock) -> None:
    async def test(simulation: Simulation) -> list[Any]:
        wall_clock.open(simulation.clock, in_tests=False)
        try:
            return await simulation.call(read_inside(3600))
        finally:
            wall_clock.close(simulation.clock)

    assert simulate(test) == [START / MICROSECONDS + 3600] * 5


def test_a_test_reads_real_time_unless_it_asks_for_virtual_time(wall_clock: WallClock) -> None:
    async def test(simulation: Simulation) -> None:
        real = time.time()
        wall_clock.open(simulation.clock, in_tests=False)
        assert 0 <= time.time() - real < 60
        wall_clock.close(simulation.clock)
        wall_clock.open(simulation.clock, in_tests=True)
        await simulation.advance(60)
        assert read() == [START / MICROSECONDS + 60] * 5
        wall_clock.close(simulation.clock)
        assert 0 <= time.time() - real < 60

    simulate(test)


def test_the_time_zone_is_utc(wall_clock: WallClock, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("this platform has no time.tzset")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()

    async def local() -> list[Any]:
        return [dt.datetime.now().hour, time.localtime().tm_hour, time.tzname[0]]

    async def test(simulation: Simulation) -> None:
        wall_clock.open(simulation.clock, in_tests=False)
        assert await simulation.call(local()) == [0, 0, "UTC"]
        wall_clock.close(simulation.clock)
        assert time.tzname[0] == "EST"

    try:
        simulate(test)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_time_does_not_move_in_synchronous_code(wall_clock: WallClock) -> None:
    async def twice() -> bool:
        first = time.time_ns()
        sum(range(50_000))
        return first == time.time_ns()

    async def test(simulation: Simulation) -> None:
        wall_clock.open(simulation.clock, in_tests=False)
        assert await simulation.call(twice())
        wall_clock.close(simulation.clock)

    simulate(test)


def test_time_based_ids_are_virtual_too(wall_clock: WallClock) -> None:
    async def make() -> int:
        return uuid.uuid1().time

    async def test(simulation: Simulation) -> None:
        wall_clock.open(simulation.clock, in_tests=False)
        ticks = await simulation.call(make())
        wall_clock.close(simulation.clock)
        epoch = (moment(START) - dt.datetime(1582, 10, 15, tzinfo=dt.UTC)) // dt.timedelta(
            microseconds=1
        )
        assert ticks == epoch * 10

    simulate(test)


def test_the_loops_own_clocks_are_left_alone(wall_clock: WallClock) -> None:
    async def test(simulation: Simulation) -> None:
        wall_clock.open(simulation.clock, in_tests=True)
        before = time.monotonic()
        await asyncio.sleep(0.01)
        assert 0.005 < time.monotonic() - before < 10
        wall_clock.close(simulation.clock)

    simulate(test)


def test_two_emulators_each_have_their_own_time(wall_clock: WallClock) -> None:
    async def test(first: Simulation) -> None:
        with Simulation() as second:
            wall_clock.open(first.clock, in_tests=True)
            wall_clock.open(second.clock, in_tests=True)
            await first.advance(10)
            await second.advance(20)
            start = START / MICROSECONDS
            assert (await first.call(read_inside()))[0] == start + 10
            assert (await second.call(read_inside()))[0] == start + 20
            assert time.time() == start + 20  # the one opened last
            wall_clock.close(second.clock)
            assert time.time() == start + 10
            wall_clock.close(first.clock)

    simulate(test)


def test_closing_twice_or_what_was_never_opened_does_nothing(wall_clock: WallClock) -> None:
    with Simulation() as simulation:
        wall_clock.close(simulation.clock)
        wall_clock.open(simulation.clock, in_tests=True)
        wall_clock.close(simulation.clock)
        wall_clock.close(simulation.clock)


def test_a_journey_of_the_tests_own_may_begin_and_end_in_any_order(wall_clock: WallClock) -> None:
    with Simulation() as simulation:
        travel = time_machine.travel(dt.datetime(1999, 1, 1, tzinfo=dt.UTC), tick=False)
        wall_clock.open(simulation.clock, in_tests=True)
        travel.start()
        wall_clock.close(simulation.clock)
        assert dt.datetime.now(dt.UTC).year == 1999
        travel.stop()
        assert dt.datetime.now(dt.UTC).year > 2000


def test_freezegun_keeps_its_time(wall_clock: WallClock) -> None:
    freezegun = pytest.importorskip("freezegun")
    assert "freezegun" in sys.modules
    with Simulation() as simulation, freezegun.freeze_time("2001-02-03"):
        wall_clock.open(simulation.clock, in_tests=True)
        assert dt.datetime.now(dt.UTC).year == 2001
        wall_clock.close(simulation.clock)
