"""Dates: aware datetimes in Python, milliseconds since 1970 in JavaScript."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from emulator.values.types import Boxed, JsException

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


_MILLISECOND: Final = timedelta(milliseconds=1)


class JsDate(datetime):
    """A Date that `Date.new` made: its setters move it, to another time value or to NaN.

    A `datetime` cannot change, so that the parts of one that was moved are those it was made with;
    `settled` gives what it is now.
    """

    moved: float | None = None

    @classmethod
    def at(cls, milliseconds: float) -> JsDate:
        """Return the Date of a time value; raises `JsException` when out of range."""
        if milliseconds != milliseconds:
            made = cls(1970, 1, 1, tzinfo=UTC)
            made.moved = milliseconds
            return made
        moment = from_milliseconds(milliseconds)
        return cls.combine(moment.date(), moment.timetz())


def settled(moment: datetime) -> datetime | Boxed:
    """Return what a Date is now: itself, or what its setters made of it."""
    if not isinstance(moment, JsDate) or moment.moved is None:
        return moment
    if math.isnan(moment.moved):
        return Boxed("Date", moment.moved)
    return from_milliseconds(moment.moved)


def to_milliseconds(moment: datetime) -> float:
    """Return the Date's time value, an int unless it is NaN.

    A naive moment is UTC, fractions are cut off towards zero.
    """
    if isinstance(moment, JsDate) and moment.moved is not None:
        return moment.moved
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    return since // _MILLISECOND if since.days >= 0 else -(-since // _MILLISECOND)


def from_milliseconds(milliseconds: float) -> datetime:
    """Return the aware moment of a Date's time value; raises `JsException` when out of range."""
    try:
        return EPOCH + timedelta(milliseconds=int(milliseconds))
    except (OverflowError, ValueError):
        raise JsException("RangeError", "Invalid time value") from None


def iso_format(moment: datetime) -> str:
    """Return `Date.prototype.toISOString()`, as `2026-01-01T00:00:00.000Z`.

    Raises `RangeError` (as `JsException`) for an invalid Date.
    """
    if isinstance(moment, JsDate) and moment.moved is not None:
        moment = from_milliseconds(moment.moved)
    if moment.tzinfo:
        moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")
