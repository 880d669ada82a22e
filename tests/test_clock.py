"""Instants and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from emulator.clock import Clock, RealClock, instant, moment


def test_an_instant_and_its_moment_are_exact_to_the_microsecond() -> None:
    at = datetime(2026, 1, 1, 12, 30, 59, 999_999, tzinfo=UTC)

    assert moment(instant(at)) == at


def test_an_instant_does_not_depend_on_the_time_zone() -> None:
    east = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    assert instant(east) == instant(datetime(2026, 1, 1, tzinfo=UTC))


def test_moments_before_the_epoch_and_in_the_last_year_are_exact() -> None:
    for at in (datetime(1901, 2, 3, 4, 5, 6, 7, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert moment(instant(at)) == at


def test_the_clock_moves_forward() -> None:
    clock = Clock(10)

    clock.move_to(10)
    clock.move_to(25)

    assert (clock.start, clock.now) == (10, 25)


def test_the_clock_refuses_to_go_back_and_says_where_it_is() -> None:
    clock = Clock(instant(datetime(2026, 1, 2, tzinfo=UTC)))

    with pytest.raises(ValueError, match=r"2026-01-02.*cannot go back to 2026-01-01"):
        clock.move_to(instant(datetime(2026, 1, 1, tzinfo=UTC)))


class Machine:
    """A machine whose clock a test sets."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_real_clock_stands_still_until_it_catches_up() -> None:
    machine = Machine(100)
    clock = RealClock(machine)
    machine.now = 150
    assert (clock.now, clock.reading()) == (100, 150)
    clock.catch_up()
    assert clock.now == 150


def test_moving_a_real_clock_forward_is_one_addition() -> None:
    machine = Machine(100)
    clock = RealClock(machine)
    machine.now = 110
    clock.move_to(1000)
    assert (clock.now, clock.offset) == (1000, 890)
    machine.now = 120
    assert clock.reading() == 1010


def test_moving_a_real_clock_to_what_is_past_adds_nothing() -> None:
    machine = Machine(100)
    clock = RealClock(machine)
    machine.now = 200
    clock.move_to(150)
    assert (clock.now, clock.offset, clock.reading()) == (150, 0, 200)


def test_a_machine_that_is_put_back_does_not_take_time_back() -> None:
    machine, told = Machine(1000), []
    clock = RealClock(machine)
    clock.on_step_back = told.append
    machine.now = 400
    clock.catch_up()
    assert (clock.now, told) == (1000, [600])
    machine.now = 450
    clock.catch_up()
    assert (clock.now, clock.offset, told) == (1050, 0, [600])


def test_a_machine_that_is_put_forward_makes_time_pass() -> None:
    machine = Machine(1000)
    clock = RealClock(machine)
    machine.now = 5000
    clock.catch_up()
    assert clock.now == 5000


def test_a_real_clock_may_begin_elsewhere() -> None:
    machine = Machine(1000)
    clock = RealClock(machine, start=50)
    machine.now = 1001
    assert (clock.now, clock.reading()) == (50, 51)


def test_a_real_clock_resumes_where_the_process_before_stopped() -> None:
    clock = RealClock(Machine(1000))
    clock.resume(900, offset=50)
    assert (clock.now, clock.offset) == (1050, 50)
    clock.resume(3000, offset=0)
    assert (clock.now, clock.offset) == (3000, 0)


def test_a_virtual_clock_resumes_where_it_stood_and_never_before_its_start() -> None:
    clock = Clock(100)
    clock.resume(500, offset=7)
    assert (clock.now, clock.offset) == (500, 0)
    clock.resume(20, offset=0)
    assert clock.now == 100
