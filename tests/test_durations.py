"""Durations users write: what is read, what is refused and how, and the way back to text."""

from __future__ import annotations

import doctest
import math
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emulator.durations
from emulator.durations import describe, microseconds
from emulator.errors import DurationError, EmulatorError

MS = 1_000
S = 1_000_000
MIN = 60 * S
H = 60 * MIN
DAY = 24 * H


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (timedelta(0), 0),
        (timedelta(microseconds=1), 1),
        (timedelta(days=3, seconds=1, microseconds=5), 3 * DAY + S + 5),
        (0, 0),
        (30, 30 * S),
        (0.5, 500 * MS),
        (0.1, 100 * MS),
        (1e-6, 1),
        (1e-7, 0),
        (10**9, 10**9 * S),
    ],
)
def test_timedeltas_and_numbers_of_seconds_are_read(value: timedelta | float, expected: int):
    assert microseconds(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500 ms", 500 * MS),
        ("1 millisecond", MS),
        ("20 milliseconds", 20 * MS),
        ("1 s", S),
        ("2 sec", 2 * S),
        ("2 secs", 2 * S),
        ("1 second", S),
        ("30 seconds", 30 * S),
        ("5 m", 5 * MIN),
        ("5 min", 5 * MIN),
        ("5 mins", 5 * MIN),
        ("1 minute", MIN),
        ("90 minutes", 90 * MIN),
        ("1 h", H),
        ("1 hr", H),
        ("1 hour", H),
        ("24 hours", DAY),
        ("3 d", 3 * DAY),
        ("1 day", DAY),
        ("365 days", 365 * DAY),
        ("2 w", 14 * DAY),
        ("1 week", 7 * DAY),
        ("2 weeks", 14 * DAY),
    ],
)
def test_every_unit_has_short_singular_and_plural_forms(text: str, expected: int):
    assert microseconds(text) == expected


def test_month_and_year_are_as_long_as_the_workflows_engine_has_them():
    """workflows.md D1: a month is 30 days, a year 365.25 days."""
    assert microseconds("1 month") == 30 * DAY
    assert microseconds("1 year") == microseconds("1 y") == 31_557_600 * S


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5 s", 1_500 * MS),
        (".5 s", 500 * MS),
        ("0.001 ms", 1),
        ("30s", 30 * S),
        ("1h30m", 90 * MIN),
        ("1 h 30 min", 90 * MIN),
        ("1 day 2 hours 3 minutes 4 seconds", DAY + 2 * H + 3 * MIN + 4 * S),
        ("  30 Seconds\n", 30 * S),
        ("0 s", 0),
        ("0.1 s", 100 * MS),
    ],
)
def test_fractions_sums_spacing_and_capitals_are_read(text: str, expected: int):
    assert microseconds(text) == expected


@pytest.mark.parametrize(
    "value", ["", "soon", "30", "s", "3 3 s", "1,5 s", "٣ s", "5 s ago", "9" * 5000 + " s"]
)
def test_text_without_number_and_unit_is_refused(value: str):
    with pytest.raises(DurationError) as caught:
        microseconds(value)
    assert str(caught.value) == (
        f"{value!r} is not a duration: give a timedelta, a number of seconds, or text such as "
        '"30 seconds", "500 ms", "1 h 30 min"'
    )


def test_an_unknown_unit_is_named_with_the_known_ones():
    with pytest.raises(DurationError) as caught:
        microseconds("5 fortnights")
    assert str(caught.value) == (
        "'5 fortnights': 'fortnights' is not a unit of time; use milliseconds, seconds, minutes, "
        "hours, days, weeks, months, years"
    )


@pytest.mark.parametrize("value", [None, True, False, [], b"3 s", 3j, Decimal(3), object])
def test_other_types_are_refused_booleans_included(value: object):
    with pytest.raises(DurationError) as caught:
        microseconds(value)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{value!r} is not a duration: give a timedelta")


@pytest.mark.parametrize("value", [-1, -0.5, timedelta(seconds=-1), "-1 s", "- 3 days"])
def test_negative_durations_are_refused(value: timedelta | float | str):
    with pytest.raises(DurationError) as caught:
        microseconds(value)
    assert str(caught.value).startswith(f"{value!r} is negative, and time only moves forward")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_refused(value: float):
    with pytest.raises(DurationError, match="is not a finite number of seconds"):
        microseconds(value)


def test_duration_errors_are_value_errors_and_emulator_errors():
    with pytest.raises(ValueError, match="not a duration"):
        microseconds("soon")
    with pytest.raises(EmulatorError, match="not a duration"):
        microseconds("soon")


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 s"),
        (1, "0.001 ms"),
        (1_500, "1.5 ms"),
        (500 * MS, "500 ms"),
        (S, "1 s"),
        (1_500 * MS, "1.5 s"),
        (S + 1, "1.000001 s"),
        (30 * S, "30 s"),
        (MIN, "1 min"),
        (90 * MIN, "1 h 30 min"),
        (H + S, "1 h 1 s"),
        (DAY, "1 day"),
        (3 * DAY, "3 days"),
        (365 * DAY, "365 days"),
        (DAY + 500 * MS, "1 day 0.5 s"),
    ],
)
def test_durations_are_described_in_few_words(us: int, text: str):
    assert describe(us) == text


@given(st.integers(min_value=0, max_value=10**18))
def test_a_description_reads_back_as_the_same_duration(us: int):
    assert microseconds(describe(us)) == us


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_timedelta_is_read_exactly(value: timedelta):
    assert timedelta(microseconds=microseconds(value)) == value


def test_a_negative_duration_is_not_described():
    with pytest.raises(DurationError, match="-1 microseconds is negative"):
        describe(-1)


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(emulator.durations).failed == 0
