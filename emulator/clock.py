"""The clocks of an emulator: virtual, or the machine's with an offset.

A virtual clock is one integer, moved only by the pump. A real one reads the machine's clock when
the simulation begins to run, and stands still while it runs, as time does in production during
synchronous code; moving it forward ("three days later") is one addition to its offset.

Instants are microseconds since the Unix epoch, the resolution of `datetime`. A float of seconds
would lose the microsecond after 136 years and could make asyncio spin on a timer that is due
"now, almost"; an integer does neither.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final, NewType

from emulator.durations import describe
from emulator.errors import DurationError

if TYPE_CHECKING:
    from collections.abc import Callable

Instant = NewType("Instant", int)

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def instant(moment: datetime) -> int:
    """Return an aware datetime as microseconds since the epoch."""
    return (moment - _EPOCH) // _TICK


_FIRST: Final = instant(datetime.min.replace(tzinfo=UTC))
_LAST: Final = instant(datetime.max.replace(tzinfo=UTC))


def moment(at: int) -> datetime:
    """Return an instant as an aware datetime: the first or last there is, for what it cannot say.

    JavaScript's dates, as of an alarm, go on for 270,000 years.
    """
    return _EPOCH + timedelta(microseconds=min(max(at, _FIRST), _LAST))


# No clock goes further. `datetime` ends a year later, which leaves room for what is shown of the
# time after now: retention, time-outs, the next cron.
LATEST: Final = instant(datetime(9999, 1, 1, tzinfo=UTC))


def check_reach(now: int, span: int, name: str) -> None:
    """Raise `DurationError` where a move by so many microseconds would pass `LATEST`."""
    if now + span > LATEST:
        raise DurationError(
            f"{name} would move the clock past {moment(LATEST).date()}, the latest time it can "
            f"have; from now on it may move by {describe(max(LATEST - now, 0))} at most"
        )


class Clock:
    """Virtual time of one emulator; timers run that are due at `horizon`, which is now."""

    __slots__ = ("horizon", "now", "start")

    is_real: ClassVar[bool] = False

    def __init__(self, start: int) -> None:
        self.start = start
        self.now = self.horizon = start

    @property
    def offset(self) -> int:
        """By how much a real clock was put forward; a virtual one has none."""
        return 0

    def reading(self) -> int:
        """The instant up to which things may have fallen due."""
        return self.now

    def catch_up(self) -> None:
        """Take notice of the time that has passed by itself: none."""

    def release(self, due: int) -> None:
        """Let what is due at this instant run, now."""
        self.horizon = max(self.horizon, due)

    def resume(self, now: int, offset: int) -> None:
        """Go on where an earlier process stopped."""
        self.now = self.horizon = min(max(now, self.start), LATEST)

    def restart(self) -> None:
        """Go back to the start."""
        self.now = self.horizon = self.start

    def move_to(self, at: int) -> None:
        """Move forward to `at`; time never runs backwards."""
        if at < self.now:
            raise ValueError(
                f"the clock is at {moment(self.now)}, it cannot go back to {moment(at)}"
            )
        if at > LATEST:
            raise ValueError(f"the clock cannot go past {moment(LATEST)}")
        self.now = self.horizon = at


class RealClock(Clock):
    """The machine's time plus an offset; `machine` reads it, in microseconds since the epoch.

    What fell due while nobody looked runs late, at the time that is now, but in order: `release`
    lets what was due first come to its end before what was due later, so that a machine that slept
    finds no time-out that struck before the sleep it guards was over.

    Time never runs backwards. Where the machine's clock is put back, this one goes on from where it
    stood, and `on_step_back` is told by how many microseconds the two now differ; where it is put
    forward, or the machine slept, time has passed here too. With `start` it begins at that instant.
    """

    __slots__ = ("_ahead", "_last", "_machine", "_offset", "on_step_back")

    is_real: ClassVar[bool] = True

    def __init__(self, machine: Callable[[], int], start: int | None = None) -> None:
        self._machine = machine
        self._last = machine()
        # What somebody added, and what makes up for a machine whose clock was put back. Only the
        # first outlives the process.
        self._offset = 0 if start is None else start - self._last
        self._ahead = 0
        self.on_step_back: Callable[[int], None] | None = None
        super().__init__(self._last + self._offset)

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def ahead(self) -> int:
        """By how much it is ahead of the machine, whatever was the cause."""
        return self._offset + self._ahead

    def reading(self) -> int:
        machine = self._machine()
        if machine < self._last:
            self._ahead += self._last - machine
            if self.on_step_back is not None:
                self.on_step_back(self._last - machine)
        self._last = machine
        return min(machine + self._offset + self._ahead, LATEST)

    def catch_up(self) -> None:
        self.now = max(self.now, self.reading())

    def move_to(self, at: int) -> None:
        reading = self.reading()
        super().move_to(at)
        if at > reading:
            self._offset += at - reading

    def resume(self, now: int, offset: int) -> None:
        now = min(now, LATEST)
        self._offset, self._ahead = min(offset, LATEST - self._machine()), 0
        reading = self.reading()
        if now > reading:
            self._ahead = now - reading
        self.now = self.horizon = max(now, reading)

    def restart(self) -> None:
        self._offset = self._ahead = 0
        self.now = self.horizon = self.reading()
