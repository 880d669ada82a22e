"""Dates: aware datetimes in Python, milliseconds since 1970 in JavaScript."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from emulator.values.types import JsException

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


_MILLISECOND: Final = timedelta(milliseconds=1)


def to_milliseconds(moment: datetime) -> int:
    """Return the Date's time value; a naive moment is UTC, fractions are cut off towards zero."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    return since // _MILLISECOND if since.days >= 0 else -(-since // _MILLISECOND)


def from_milliseconds(milliseconds: float) -> datetime:
    """Return the aware moment of a Date's time value; raises `JsException` when out of range."""
    try:
        return EPOCH + timedelta(milliseconds=int(milliseconds))
    except (OverflowError, ValueError):
        raise JsException("RangeError", "Invalid time value") from None


def iso_format(moment: datetime) -> str:
    """Return `Date.prototype.toISOString()`, as `2026-01-01T00:00:00.000Z`."""
    if moment.tzinfo:
        moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")
