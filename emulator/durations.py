"""Durations of the emulator's own API: what users write, to whole microseconds and back.

A test says `advance("30 seconds")`, `advance(30)` or `advance(timedelta(seconds=30))`; inside, a
duration is an `int` of microseconds. Numbers in *Worker* code keep the platform's meaning (those
of a Workflow are milliseconds) and are not read here.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

from emulator.errors import DurationError

MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# Month and year are as long as the Workflows engine has them (workflows.md D1), so that
# `advance("1 year")` reaches the end of a Worker's `step.sleep(…, "1 year")`.
_UNITS: Final = (
    (MILLISECOND, ("ms", "millisecond", "milliseconds")),
    (SECOND, ("s", "sec", "secs", "second", "seconds")),
    (MINUTE, ("m", "min", "mins", "minute", "minutes")),
    (HOUR, ("h", "hr", "hrs", "hour", "hours")),
    (DAY, ("d", "day", "days")),
    (7 * DAY, ("w", "week", "weeks")),
    (30 * DAY, ("month", "months")),
    (365 * DAY + 6 * HOUR, ("y", "year", "years")),
)
_LENGTHS: Final = {name: length for length, names in _UNITS for name in names}
_SHORT: Final = {MILLISECOND: "ms", SECOND: "s", MINUTE: "min", HOUR: "h"}
_UNIT_NAMES: Final = ", ".join(names[-1] for _, names in _UNITS)

_PART: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?|\.[0-9]{1,18})\s*([a-z]+)")
_TEXT: Final = re.compile(rf"{_PART.pattern}(?:\s*{_PART.pattern})*")
_ALLOWED: Final = (
    'give a timedelta, a number of seconds, or text such as "30 seconds", "500 ms", "1 h 30 min"'
)


def microseconds(value: timedelta | float | str) -> int:
    """Read a duration: a `timedelta`, a number of seconds, or text such as `"3 days"`.

    The result is rounded to the nearest microsecond. Raises `DurationError` for anything else,
    and for what is negative or not finite.

    >>> microseconds("1.5 s"), microseconds(30), microseconds(timedelta(minutes=1))
    (1500000, 30000000, 60000000)
    """
    if isinstance(value, timedelta):
        result = value // timedelta(microseconds=1)
    elif isinstance(value, str):
        result = _from_text(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        result = _from_seconds(value)
    else:
        raise DurationError(f"{value!r} is not a duration: {_ALLOWED}")
    if result < 0:
        raise DurationError(f"{value!r} is negative, and time only moves forward: {_ALLOWED}")
    return result


def describe(us: int) -> str:
    """Give the shortest text for people that `microseconds` reads back as the same value.

    >>> describe(30_000_000), describe(5_400_000_000), describe(500_000), describe(0)
    ('30 s', '1 h 30 min', '500 ms', '0 s')
    """
    if us < 0:
        raise DurationError(f"{us} microseconds is negative, and no duration is")
    if 0 < us < SECOND:
        return f"{_decimal(us, MILLISECOND)} ms"
    days, rest = divmod(us, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, seconds = divmod(rest, MINUTE)
    parts = [f"{days} {'day' if days == 1 else 'days'}"] if days else []
    parts += [f"{count} {unit}" for count, unit in ((hours, "h"), (minutes, "min")) if count]
    if seconds or not parts:
        parts.append(f"{_decimal(seconds, SECOND)} s")
    return " ".join(parts)


def tidied(text: str) -> str:
    """Give the text of a duration as `describe` would write it, but in the unit that was chosen.

    >>> tidied("90 seconds"), tidied("24h"), tidied("90 min 30 s")
    ('90 s', '24 h', '1 h 30 min 30 s')
    """
    one = _PART.fullmatch(text.strip().lower())
    unit = _SHORT.get(_LENGTHS.get(one[2], 0)) if one else None
    return f"{one[1]} {unit}" if one and unit else describe(microseconds(text))


def _from_seconds(value: float) -> int:
    if not math.isfinite(value):
        raise DurationError(f"{value!r} is not a finite number of seconds: {_ALLOWED}")
    return round(Fraction(value) * SECOND)


def _from_text(text: str) -> int:
    words = text.strip().lower()
    negative = words.startswith("-")
    words = words.removeprefix("-").lstrip()
    if not _TEXT.fullmatch(words):
        raise DurationError(f"{text!r} is not a duration: {_ALLOWED}")
    total = Fraction(0)
    for number, unit in _PART.findall(words):
        if unit not in _LENGTHS:
            raise DurationError(f"{text!r}: {unit!r} is not a unit of time; use {_UNIT_NAMES}")
        total += Fraction(number) * _LENGTHS[unit]
    return -round(total) if negative else round(total)


def _decimal(amount: int, unit: int) -> str:
    """Write `amount / unit` with as many decimals as it needs; `unit` is a power of ten."""
    whole, rest = divmod(amount, unit)
    decimals = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)
