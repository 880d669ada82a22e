"""What waits for its time, as `emulator.clock.timers` and the error messages show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.clock import moment
from emulator.invocation import Invocation
from emulator.location import waiting_at

if TYPE_CHECKING:
    import asyncio
    from datetime import datetime

    from emulator.handles import Timer
    from emulator.kernel import Kernel


@dataclass(frozen=True, slots=True)
class PendingTimer:
    """Something that waits for its time.

    `due` is in virtual time, `owner` says in words what waits (`queue emails: the next batch`,
    `request GET /slow`), and `location` is the user's line that waits (`src/entry.py:12`), None for
    the platform's own timers.
    """

    due: datetime
    owner: str
    location: str | None = None

    @property
    def line(self) -> str | None:
        """The same as `location`."""
        return self.location

    def __str__(self) -> str:
        return f"{self.owner} at {self.location}" if self.location else self.owner


class ClockView:
    """`emulator.clock`: the virtual time, and what waits for it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @property
    def now(self) -> datetime:
        """Virtual now, aware."""
        return moment(self._kernel.now)

    @property
    def timers(self) -> list[PendingTimer]:
        """What is pending, in the order in which it will run.

        The platform's own tidying is nothing that is pending: the end of a finished Workflow's
        retention, the memory of one that is idle.
        """
        return [describe(timer) for timer in self._kernel.loop.timers if not timer.tidies]


def describe(timer: Timer) -> PendingTimer:
    """Tell whose timer this is, and which line waits for it."""
    scope = timer.scope
    if timer.owner or not isinstance(scope, Invocation):
        return PendingTimer(moment(timer.due), timer.owner or "a timer")
    task = _waiter(timer, scope)
    where = waiting_at(task.get_coro()) if task is not None else None
    return PendingTimer(moment(timer.due), scope.subject, scope.place(where) if where else None)


def _waiter(timer: Timer, scope: Invocation) -> asyncio.Task[Any] | None:
    """The task that a timer of user code will wake: of a sleep, or of a time-out."""
    own: Any = getattr(getattr(timer._callback, "__self__", None), "_task", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    awaited = timer._args[:1] if timer._args else ()
    for task in scope.tasks:
        if getattr(task, "_fut_waiter", None) in awaited:
            return task
    return None
