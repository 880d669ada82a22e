"""The virtual clock: one integer, moved only by the pump.

Instants are microseconds since the Unix epoch, the resolution of `datetime`. A float of seconds
would lose the microsecond after 136 years and could make asyncio spin on a timer that is due
"now, almost"; an integer does neither.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NewType

Instant = NewType("Instant", int)

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def instant(moment: datetime) -> int:
    """Return an aware datetime as microseconds since the epoch."""
    return (moment - _EPOCH) // _TICK


def moment(at: int) -> datetime:
    """Return an instant as an aware datetime."""
    return _EPOCH + timedelta(microseconds=at)


class Clock:
    """Virtual time of one emulator."""

    __slots__ = ("now", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.now = start

    def move_to(self, at: int) -> None:
        """Move forward to `at`; time never runs backwards."""
        if at < self.now:
            raise ValueError(
                f"the clock is at {moment(self.now)}, it cannot go back to {moment(at)}"
            )
        self.now = at
