"""Cron expressions as Cloudflare reads them: which instants one means.

Theory of operation. Five fields: minute, hour, day of the month, month, day of the week; in UTC.
The dialect is that of `saffron`, Cloudflare's own parser, which no cron library of Python has:

1. Each field is `*`, or a list of values, ranges (`2-6`) and steps (`*/15`, `5/15`, `9-17/2`). A
   range whose end comes before its start goes around (`22-2`, `FRI-MON`).
2. Days of the week are 1 to 7 from *Sunday*, or SUN to SAT; months 1 to 12, or JAN to DEC. Names
   are in any case. 0 is no day.
3. Of the day of the month: `L` the last, `L-3` three days before it, `15W` the weekday nearest to
   the 15th in that month, `LW` and `L-3W` likewise.
4. Of the day of the week: `6L` the last Friday, `MON#2` the second Monday, `L` Saturday.
5. Where neither field of days is `*`, a day has to fit one of them. `*/2` is not `*`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
_FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")
_VALUE: Final = r"[0-9]+|[A-Za-z]{3}"
_PART: Final = re.compile(
    rf"(?:(?P<all>\*)|(?P<start>{_VALUE})(?:-(?P<end>{_VALUE}))?)(?:/(?P<step>[0-9]+))?"
)
_LAST: Final = re.compile(r"L(?:-(?P<offset>[0-9]+))?(?P<weekday>W?)")
_NEAREST: Final = re.compile(r"(?P<day>[0-9]+)W")
_LAST_OF_DAY: Final = re.compile(rf"(?P<day>{_VALUE})L")
_NTH: Final = re.compile(rf"(?P<day>{_VALUE})#(?P<nth>[0-9]+)")
# Leap days are up to eight years apart.
_FARTHEST: Final = 366 * 9


class BadCron(ValueError):
    """An expression that Cloudflare refuses; the text says which field is wrong."""


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The instants of a cron expression; see `parse`."""

    minutes: Sequence[int]
    hours: Sequence[int]
    months: frozenset[int]
    is_day: Callable[[date], bool]

    def after(self, moment: datetime) -> datetime | None:
        """Return the first instant later than an aware `moment`; None if there is none."""
        start = (moment.astimezone(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
        day = start.date()
        for found in self._times(start.time()) if self._has(day) else ():
            return datetime.combine(day, found, UTC)
        for _ in range(min(_FARTHEST, (date.max - day).days)):
            day += timedelta(days=1)
            if self._has(day):
                return datetime.combine(day, time(self.hours[0], self.minutes[0]), UTC)
        return None

    def _has(self, day: date) -> bool:
        return day.month in self.months and self.is_day(day)

    def _times(self, earliest: time) -> Iterator[time]:
        for hour in self.hours:
            for minute in self.minutes if hour >= earliest.hour else ():
                if (hour, minute) >= (earliest.hour, earliest.minute):
                    yield time(hour, minute)


def parse(expression: str) -> CronTimes:
    """Read an expression; raises `BadCron`.

    >>> parse("0 17 * * sun").after(datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-04T17:00:00+00:00'
    """
    fields = [field for field in expression.split(" ") if field]
    if len(fields) != len(_FIELDS) or expression != expression.strip(" "):
        raise BadCron(f"it has {len(fields)} fields; write {', '.join(_FIELDS)}")
    minute, hour, day, month, weekday = fields
    return CronTimes(
        sorted(_Field(0, 0, 59).values(minute)),
        sorted(_Field(1, 0, 23).values(hour)),
        frozenset(_Field(3, 1, 12, _MONTHS).values(month)),
        _days(day, weekday),
    )


def _days(day: str, weekday: str) -> Callable[[date], bool]:
    fits = [
        _day_of_month(day) if day != "*" else None,
        _day_of_week(weekday) if weekday != "*" else None,
    ]
    given = [each for each in fits if each is not None]
    return lambda one: not given or any(each(one) for each in given)


@dataclass(frozen=True, slots=True)
class _Field:
    index: int
    least: int
    most: int
    names: tuple[str, ...] = ()

    def values(self, text: str) -> set[int]:
        if text == "*":
            return set(range(self.least, self.most + 1))
        return {value for part in text.split(",") for value in self._part(part)}

    def _part(self, part: str) -> Sequence[int]:
        found = _PART.fullmatch(part)
        if found is None or (found["all"] and not found["step"]):
            raise self.wrong(part)
        start = self.least if found["all"] else self.value(found["start"])
        last = self.most if found["step"] else start
        end = self.value(found["end"]) if found["end"] else last
        step = int(found["step"] or 1)
        if not 1 <= step <= self.most:
            raise self.wrong(part)
        if start <= end:
            return range(start, end + 1, step)
        return [*range(start, self.most + 1), *range(self.least, end + 1)][::step]

    def value(self, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + 1
        if not text.isdigit() or not self.least <= int(text) <= self.most:
            raise self.wrong(text)
        return int(text)

    def wrong(self, text: str) -> BadCron:
        names = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        allowed = f"{self.least} to {self.most}{names}"
        return BadCron(f"{text!r} is no {_FIELDS[self.index]}: {allowed}")


_DAY_OF_MONTH: Final = _Field(2, 1, 31)
_DAY_OF_WEEK: Final = _Field(4, 1, 7, _DAYS)


def _day_of_month(text: str) -> Callable[[date], bool]:
    if last := _LAST.fullmatch(text):
        offset = int(last["offset"] or 0)
        if last["offset"] and not 1 <= offset <= 30:
            raise _DAY_OF_MONTH.wrong(text)
        if last["weekday"]:
            return lambda day: day.day == _nearest(day, _length(day) - offset)
        return lambda day: day.day == _length(day) - offset
    if nearest := _NEAREST.fullmatch(text):
        wanted = _DAY_OF_MONTH.value(nearest["day"])
        return lambda day: day.day == _nearest(day, wanted)
    days = frozenset(_DAY_OF_MONTH.values(text))
    return lambda day: day.day in days


def _day_of_week(text: str) -> Callable[[date], bool]:
    if text == "L":
        text = "SAT"
    if last := _LAST_OF_DAY.fullmatch(text):
        of = _DAY_OF_WEEK.value(last["day"])
        return lambda day: _weekday(day) == of and day.day + 7 > _length(day)
    if nth := _NTH.fullmatch(text):
        of, count = _DAY_OF_WEEK.value(nth["day"]), int(nth["nth"])
        if not 1 <= count <= 5:
            raise _DAY_OF_WEEK.wrong(text)
        return lambda day: _weekday(day) == of and (day.day - 1) // 7 + 1 == count
    days = frozenset(_DAY_OF_WEEK.values(text))
    return lambda day: _weekday(day) in days


def _weekday(day: date) -> int:
    """The day of the week, 1 to 7 from Sunday."""
    return day.isoweekday() % 7 + 1


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _nearest(month: date, wanted: int) -> int:
    """The weekday of a month that is nearest to a day of it; 0 if it has no such day."""
    length = _length(month)
    if not 1 <= wanted <= length:
        return 0
    weekday = month.replace(day=wanted).isoweekday()
    if weekday == 6:
        return wanted - 1 if wanted > 1 else wanted + 2
    if weekday == 7:
        return wanted + 1 if wanted < length else wanted - 2
    return wanted
