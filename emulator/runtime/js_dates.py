"""JavaScript's `Date`: how it is made of numbers and texts.

Texts are read as V8 reads them (`dateparser`): those of ISO 8601 by its rules, and others as far as
they name a day, such as `Jan 2 2026 10:30 PM GMT+0200`. A Worker's local time is UTC.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, Final

from emulator.runtime.js_basics import Constructor
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import PyProxy
from emulator.values import (
    Boxed,
    Function,
    JsDate,
    JsException,
    from_milliseconds,
    to_milliseconds,
    to_number,
)

INVALID: Final = Boxed("Date", math.nan)

# What a Date can hold, in milliseconds on both sides of the epoch.
_REACH: Final = 8.64e15
_DAY: Final = 86_400_000
_ISO: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?"
    r"(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:?\d\d)?)?"
)
_TOKEN: Final = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<clock>\d+:\d+(?::\d+(?:\.\d+)?)?)|(?P<number>\d+)|(?P<sign>[+-])|."
)
_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
# Hours from UTC of the zones that V8 knows by name.
_ZONES: Final = {
    "utc": 0,
    "gmt": 0,
    "ut": 0,
    "z": 0,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
}


def now() -> datetime:
    """Return the wall clock's time, which in a Worker is the emulator's."""
    return from_milliseconds(to_milliseconds(datetime.now(UTC)))


def now_in_milliseconds() -> float:
    """Return `Date.now()`."""
    return to_milliseconds(now())


def time_of(value: datetime | Boxed) -> float:
    """Return the time value of a Date, in milliseconds since the epoch; NaN for an invalid one."""
    return to_milliseconds(value) if isinstance(value, datetime) else math.nan


def reachable(milliseconds: float) -> float:
    """Return the time value that a Date has for a number: NaN outside what one can hold here."""
    if not abs(milliseconds) <= _REACH:
        return math.nan
    try:
        from_milliseconds(milliseconds)
    except JsException:
        return math.nan
    return int(milliseconds)


def at(milliseconds: float) -> JsDate:
    """Return the Date of a time value."""
    return JsDate.at(milliseconds if abs(milliseconds) <= _REACH else math.nan)


def new(*args: Any) -> JsDate:
    """Do `new Date(…)`."""
    if not args:
        return at(now_in_milliseconds())
    if len(args) > 1:
        return at(_of_parts(*args))
    first = args[0].obj if isinstance(args[0], PyProxy) else args[0]
    if isinstance(first, Boxed):
        first = first.value
    return at(parse(first) if isinstance(first, str) else to_number(first))


def _of_parts(*args: Any) -> float:
    numbers = [to_number(arg) for arg in args[:7]]
    if not all(map(math.isfinite, numbers)):
        return math.nan
    year, *rest = map(int, numbers)
    month, day, hour, minute, second, milli = (*rest, *(0, 1, 0, 0, 0, 0)[len(rest) :])
    if 0 <= year <= 99:
        year += 1900
    return time_of_parts(year, month, day, hour, minute, second, milli)


def time_of_parts(
    year: int, month: int, day: int, hour: int, minute: int, second: int, milli: int
) -> float:
    """Return the time value of parts, of which all but the year may be too large; months from 0."""
    return _time(year, month, day, ((hour * 60 + minute) * 60 + second) * 1000 + milli)


def _time(year: int, month: int, day: int, milliseconds: int) -> float:
    """Return the time value of parts, of which all but the year may be too large; months from 0."""
    year, month = year + month // 12, month % 12 + 1
    if not 1 <= year <= 9999:
        return math.nan
    first = to_milliseconds(datetime(year, month, 1, tzinfo=UTC))
    return first + (day - 1) * _DAY + milliseconds


# -- texts -------------------------------------------------------------------------------------


def parse(text: str) -> float:
    """Do `Date.parse(text)`."""
    text = text.strip()
    match = _ISO.fullmatch(text)
    return _Text(text).time if match is None else _of_iso(match)


def _of_iso(match: re.Match[str]) -> float:
    year, month, day, hour, minute, second = (
        int(part or default)
        for part, default in zip(match.groups()[:6], (0, 1, 1, 0, 0, 0), strict=True)
    )
    milli = int(((match[7] or "") + "000")[:3])
    if not (1 <= month <= 12 and 1 <= day <= 31) or not _is_time(hour, minute, second, milli):
        return math.nan
    clock = ((hour * 60 + minute) * 60 + second) * 1000 + milli
    return _time(year, month - 1, day, clock) - _offset(match[8] or "Z")


def _offset(zone: str) -> int:
    """How far a zone written as `+02:00` is from UTC, in milliseconds."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[0] == "-" else minutes) * 60_000


def _is_time(hour: int, minute: int, second: int, milli: int) -> bool:
    if hour == 24:
        return minute == second == milli == 0
    return hour < 24 and minute < 60 and second < 60


class _Text:
    """A text that is not of ISO 8601, read from left to right."""

    def __init__(self, text: str) -> None:
        self._numbers: list[int] = []
        self._month: int | None = None
        self._clock: tuple[int, int, int, int] | None = None
        self._half: int | None = None  # hours that AM or PM adds
        self._zone: int | None = None  # minutes from UTC
        self._sign = 0
        self._is_wrong = False
        for token in _TOKEN.finditer(re.sub(r"\([^)]*\)?", " ", text)):
            self._take(token)
        self.time = math.nan if self._is_wrong else self._whole()

    def _take(self, token: re.Match[str]) -> None:
        kind, text = token.lastgroup, token[0]
        if kind == "word":
            self._word(text.lower())
        elif kind == "sign":
            # Of a zone behind a time or a zone's name; a separator elsewhere.
            has_begun = self._clock is not None or self._zone is not None
            self._sign = (-1 if text == "-" else 1) if has_begun else 0
        elif kind is not None:
            self._figure(text, is_clock=kind == "clock")

    def _word(self, word: str) -> None:
        if word[:3] in _MONTHS and word != "t":
            self._month = _MONTHS.index(word[:3])
        elif word in ("am", "pm") and self._clock is not None:
            self._half = 12 if word == "pm" else 0
        elif word in _ZONES:
            self._zone = _ZONES[word] * 60
        elif word != "t" and (self._numbers or self._clock):
            self._is_wrong = True  # a word that says nothing may only come first

    def _figure(self, text: str, *, is_clock: bool) -> None:
        if self._sign:
            hours, _, minutes = text.partition(":")
            if not minutes and len(hours) > 2:
                hours, minutes = hours[:-2], hours[-2:]
            self._zone = self._sign * (int(hours) * 60 + int(minutes or 0))
            self._sign = 0
        elif is_clock:
            whole, _, fraction = text.partition(".")
            hour, minute, second = (*map(int, whole.split(":")), 0)[:3]
            self._clock = hour, minute, second, int((fraction + "000")[:3])
        else:
            self._numbers.append(int(text))

    def _whole(self) -> float:
        day = self._day()
        clock = self._time_of_day()
        if day is None or clock is None:
            return math.nan
        year, month, of_month = day
        if not (0 <= month < 12 and 1 <= of_month <= 31):
            return math.nan
        return _time(year, month, of_month, clock - (self._zone or 0) * 60_000)

    def _day(self) -> tuple[int, int, int] | None:
        if not 1 <= len(self._numbers) <= 3:
            return None
        first, second, third = (*self._numbers, 1, 1)[:3]
        if self._month is not None:
            day, year = (first, second) if 1 <= first <= 31 else (second, first)
            return _full(year), self._month, day
        if len(self._numbers) == 3 and not 1 <= first <= 31:
            return _full(first), second - 1, third
        return _full(third), first - 1, second

    def _time_of_day(self) -> int | None:
        hour, minute, second, milli = self._clock or (0, 0, 0, 0)
        if self._half is not None:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + self._half
        if not _is_time(hour, minute, second, milli):
            return None
        return ((hour * 60 + minute) * 60 + second) * 1000 + milli


def _full(year: int) -> int:
    """Return the year that two digits mean."""
    if year < 50:
        return 2000 + year
    return 1900 + year if year < 100 else year


def _utc(*args: Any) -> float:
    return reachable(_of_parts(*args, *(() if args[1:] else (0,)))) if args else math.nan


DATE: Final = Constructor(
    "Date",
    new,
    call=lambda *args: display(now()),
    statics={
        "now": Function(now_in_milliseconds, "now", raw=True),
        "parse": Function(lambda text="": time_of(at(parse(display(text)))), "parse", raw=True),
        "UTC": Function(
            _utc,
            "UTC",
            raw=True,
        ),
    },
)
