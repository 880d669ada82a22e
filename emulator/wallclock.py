"""What Worker code reads as the time of day.

time-machine replaces `time.time`, `datetime.now` and their kin once, while any emulator is open;
what they answer is decided at each call: in a simulation its virtual time, in a test the virtual
time of the emulator that asked for it, else real time. An emulator on a real clock reads the
machine's time here, past all that. The time zone is UTC meanwhile, as it is in
production. Time does not move during synchronous code.
"""

from __future__ import annotations

import sys
import time
from asyncio import events
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from emulator.loop import SimLoop
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from emulator.clock import Clock


class WallClock:
    """The travelling of the whole process, shared by the emulators that are open."""

    def __init__(self) -> None:
        self._open: list[Clock] = []
        self._in_tests: list[Clock] = []
        self._travel: Any = None
        self._traveller: Any = None
        self._real_time_ns: Any = None

    def open(self, clock: Clock, *, in_tests: bool) -> None:
        """Start answering for `clock`; `in_tests` also outside the simulation."""
        if not self._open:
            self._start()
        self._open.append(clock)
        if in_tests:
            self._in_tests.append(clock)

    def close(self, clock: Clock) -> None:
        """Stop answering for `clock`."""
        if clock in self._in_tests:
            self._in_tests.remove(clock)
        if clock in self._open:
            self._open.remove(clock)
            if not self._open:
                self._stop()

    def time_ns(self) -> int:
        """Nanoseconds since the epoch, for whoever asks."""
        loop = events._get_running_loop()
        if isinstance(loop, SimLoop):
            scope = SCOPE.get()
            if scope is not None:
                scope.reads("the clock")
            return loop.clock.now * 1000
        if self._in_tests:
            return self._in_tests[-1].now * 1000
        real: int = self._real_time_ns()
        return real

    def machine(self) -> int:
        """The machine's time, in microseconds since the epoch, whoever asks."""
        real: int = time.time_ns() if self._travel is None else self._real_time_ns()
        return real // 1000

    def _start(self) -> None:
        if _frozen_by_freezegun():
            # It has replaced the classes already and refuses company; the test wants its time.
            return
        import _time_machine  # type: ignore[import-not-found]
        import time_machine

        self._real_time_ns = _time_machine.original_time_ns
        self._travel = time_machine.travel(datetime(2026, 1, 1, tzinfo=UTC), tick=False)
        self._traveller = self._travel.start()
        self._traveller.time_ns = self.time_ns

    def _stop(self) -> None:
        if self._travel is not None:
            import time_machine

            # `stop` ends the innermost journey, which may be one the test still is on.
            stack: list[Any] = time_machine.traveller_stack
            stack.remove(self._traveller)
            stack.append(self._traveller)
            self._travel.stop()
            self._travel = self._traveller = None


def _frozen_by_freezegun() -> bool:
    return "freezegun" in sys.modules and datetime.__name__ == "FakeDatetime"


# One per process, as the functions it replaces are.
wall_clock = WallClock()
