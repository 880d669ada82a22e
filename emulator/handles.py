"""What is ready to run and what waits for its time, each with the scope it belongs to."""

from __future__ import annotations

from asyncio import events
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from emulator.loop import SimLoop
    from emulator.scope import Scope


class Handle(events.Handle):
    """A callback that is ready to run, and the scope it belongs to; `make_handle` makes one."""

    __slots__ = ("scope",)
    # Only the base's own constructor sets another.
    _source_traceback = None
    # Not the base's: what has no function of Python's to call is made in half the time.
    __init__ = object.__init__
    scope: Scope | None


def make_handle(
    callback: Callable[..., object],
    args: tuple[Any, ...],
    loop: SimLoop,
    context: Context,
    scope: Scope | None,
) -> Handle:
    """Make a handle.

    A function, which sets the base's attributes too, in place of a constructor, which Python calls
    by way of C: nothing of the emulator's is made more often.
    """
    made: Any = Handle()  # asyncio's stubs do not tell its attributes
    made._callback = callback
    made._args = args
    made._loop = loop
    made._context = context
    made._cancelled = False
    made._repr = None
    made.scope = scope
    return made  # type: ignore[no-any-return]


class Timer(events.TimerHandle):
    """A callback that becomes ready at an instant.

    A `passive` timer (retention, cron) runs when its time comes but never keeps `settle` going.
    `owner` says in words what waits. One that `tidies` only drops what is over: nothing waits.
    """

    __slots__ = ("due", "owner", "passive", "scope", "tidies")

    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self,
        due: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: SimLoop,
        context: Context,
        scope: Scope | None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = loop.time_of(due)
        self._scheduled = True
        self.due = due
        self.scope = scope
        self.passive = False
        self.tidies = False
        self.owner = ""

    # Two timers are never equal: asyncio would compare their callbacks and arguments.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def cancel(self) -> None:
        if not self._cancelled:
            events.Handle.cancel(self)
            self._loop._timer_handle_cancelled(self)
