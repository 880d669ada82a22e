"""The pump on a real clock, and driven by a server's loop (rules 8 and 9 of `emulator.pump`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from simulation import START

from emulator.clock import MICROSECONDS, Clock, RealClock
from emulator.errors import Stuck
from emulator.loop import SimLoop
from emulator.pump import Goal, Pump

pytestmark = pytest.mark.asyncio


class Machine:
    """A machine whose clock a test sets."""

    now = START

    def __call__(self) -> int:
        return self.now


class Driven:
    """A simulation that the test's loop drives; `ran` is what fell due, and when."""

    def __init__(self, clock: Clock, *, drive: bool = True) -> None:
        self.clock = clock
        self.loop = SimLoop(clock)
        self.pump = Pump(self.loop, list)
        self.ran: list[tuple[str, float]] = []
        if drive:
            self.pump.drive(asyncio.get_running_loop())

    def after(self, seconds: float, name: str) -> None:
        """Let something fall due."""
        due = self.clock.now + round(seconds * MICROSECONDS)
        self.loop.kernel_at(due, lambda: self._run(name), owner=name)

    def _run(self, name: str) -> None:
        self.ran.append((name, round((self.clock.now - START) / MICROSECONDS, 3)))

    async def advance(self, seconds: float) -> None:
        until = self.clock.now + round(seconds * MICROSECONDS)
        await self.pump.reach(
            Goal("advance()", lambda: self.clock.now >= until, horizon=until, stop_at=until)
        )

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: Any) -> None:
        self.loop.close()


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (what is waited for tells nobody)
            await asyncio.sleep(0)


async def test_what_falls_due_runs_though_nobody_calls() -> None:
    machine = Machine()
    with Driven(RealClock(machine)) as driven:
        driven.after(0.001, "soon")
        driven.after(3600, "later")
        machine.now += 2000
        await until(lambda: driven.ran)
        assert driven.ran == [("soon", 0.002)]


async def test_it_waits_for_the_machines_time() -> None:
    import time

    with Driven(RealClock(lambda: time.time_ns() // 1000)) as driven:
        begun = asyncio.get_running_loop().time()
        driven.after(0.03, "soon")
        await until(lambda: driven.ran)
        took = asyncio.get_running_loop().time() - begun
        assert 0.029 <= took < 5


async def test_what_was_missed_runs_in_order_at_the_time_it_is_now() -> None:
    """A machine that slept: one alarm that is overdue runs once, not for each hour it missed."""
    machine = Machine()
    with Driven(RealClock(machine)) as driven:
        driven.after(20, "second")
        driven.after(10, "first")
        machine.now += 3600 * MICROSECONDS
        await driven.advance(0)
        assert driven.ran == [("first", 3600.0), ("second", 3600.0)]


async def test_a_machine_that_slept_finds_no_time_out_before_the_sleep_it_guards() -> None:
    machine = Machine()
    with Driven(RealClock(machine)) as driven:
        outcome: list[str] = []

        async def guarded() -> None:
            try:
                async with asyncio.timeout(10):
                    await asyncio.sleep(5)
                outcome.append("slept")
            except TimeoutError:
                outcome.append("timed out")

        driven.loop.spawn_kernel(guarded(), "guarded")
        await driven.advance(0)
        machine.now += 3600 * MICROSECONDS
        await driven.advance(0)
        assert outcome == ["slept"]
        assert driven.clock.now == START + 3600 * MICROSECONDS


async def test_a_timer_that_is_always_due_again_lets_others_run() -> None:
    machine = Machine()
    with Driven(RealClock(machine)) as driven:
        count = 0

        def again() -> None:
            nonlocal count
            count += 1
            machine.now += 10
            driven.loop.kernel_at(driven.clock.now + 1, again, owner="again")

        again()
        turns = 0
        while count < 5000:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 2


async def test_advance_goes_from_one_due_time_to_the_next() -> None:
    machine = Machine()
    with Driven(RealClock(machine)) as driven:
        driven.after(20, "second")
        driven.after(10, "first")
        await driven.advance(3 * 86400)
        assert driven.ran == [("first", 10.0), ("second", 20.0)]
        assert driven.clock.offset == 3 * 86400 * MICROSECONDS
        machine.now += MICROSECONDS
        assert driven.clock.reading() == START + (3 * 86400 + 1) * MICROSECONDS


async def test_a_driven_virtual_clock_moves_only_when_it_is_told_to() -> None:
    with Driven(Clock(START)) as driven:
        driven.after(10, "due")
        for _ in range(50):
            await asyncio.sleep(0)
        assert (driven.ran, driven.clock.now) == ([], START)
        await driven.advance(10)
        assert driven.ran == [("due", 10.0)]


async def test_a_driven_virtual_clock_stands_though_a_call_waits() -> None:
    with Driven(Clock(START)) as driven:
        driven.after(10, "due")
        waiting = asyncio.ensure_future(driven.pump.reach(Goal("call()", lambda: bool(driven.ran))))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        await driven.advance(10)
        await asyncio.wait_for(waiting, 10)


async def test_a_driven_pump_is_never_stuck() -> None:
    with Driven(Clock(START)) as driven:
        never: Any = driven.loop.create_future()
        waiting = asyncio.ensure_future(driven.pump.reach(Goal("call()", never.done)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        driven.loop.call_soon(never.set_result, None)
        await asyncio.wait_for(waiting, 10)


async def test_a_real_clock_that_nobody_drives_runs_during_calls() -> None:
    import time

    with Driven(RealClock(lambda: time.time_ns() // 1000), drive=False) as driven:
        driven.after(0.01, "due")
        await driven.pump.reach(Goal("call()", lambda: bool(driven.ran)))
        never: Any = driven.loop.create_future()
        with pytest.raises(Stuck):
            await driven.pump.reach(Goal("call()", never.done))


async def test_an_error_that_no_call_gets_is_told_and_the_pump_goes_on() -> None:
    machine, told = Machine(), []
    with Driven(RealClock(machine)) as driven:
        driven.pump.on_error = told.append
        failures = [OSError("the disk is full")]

        def after_run() -> None:
            if failures:
                raise failures.pop()

        driven.loop.after_run = after_run
        driven.after(0, "due")
        await until(lambda: told)
        assert [str(error) for error in told] == ["the disk is full"]
        driven.after(0, "next")
        await until(lambda: len(driven.ran) == 2)


async def test_closing_ends_the_drive() -> None:
    driven = Driven(RealClock(Machine()))
    driven.after(60, "never")
    await asyncio.sleep(0)
    driven.loop.close()
    await asyncio.sleep(0)
    assert driven.ran == []
