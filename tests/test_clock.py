"""Instants and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from emulator.clock import Clock, instant, moment


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
