"""Stacks of synchronous code that can be suspended, or frozen for good.

Theory of operation. The loop's work runs in a *runner*, a greenlet that waits between runs, so that
one more run costs a switch and no new stack. Code that has to wait without `await` (`run_sync`, a
synchronous HTTP client) leaves the runner with its whole stack, from the loop down: it is *parked*,
and another runner goes on with the loop. When what it waits for is done, a callback of the loop
enters the parked stack again, as a coroutine would be, and gets the control back when the code
parks once more or comes to the end of its turn. A power cut leaves the stack the same way, and
nobody ever enters it again.

    runner ── waits without await ──> parked ── future done ──> a guest in another runner's turn
       └────── power cut ──> frozen      └──── power cut ──> frozen          └── end ──> dead

No stack of a scope that is dead is entered: the callback that would do it is a handle of that
scope, which the loop skips. A suspended greenlet must not be collected either, since that would
raise `GreenletExit` inside it and run the code's `finally`: it is pinned.
"""

from __future__ import annotations

import asyncio
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.loop import SimLoop
    from emulator.scope import Scope

# What a runner says instead of the budget it has left, when it stopped in the middle of a turn.
_LEFT = object()

_OTHER_THREAD = (
    "code that waits without `await` (run_sync, a synchronous HTTP client) can go on only in the "
    "thread it began in, and the emulator is used from another one now"
)


class NoStack(RuntimeError):
    """The running code cannot be suspended: it was not entered by the loop."""


class _Stack(greenlet.greenlet):
    """A stack on which the loop's work runs; a `guest` was parked and is another's business."""

    guest = False


class Stacks:
    """The stacks of one loop."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._runner: _Stack | None = None
        # A stack belongs to a thread: the one in which the runner began.
        self._thread: int | None = None
        # Those that wait, in the order in which they were parked, and whose code they run.
        self._parked: dict[_Stack, Scope | None] = {}
        # How many were parked and have not come to their end.
        self.guests = 0

    @property
    def is_guest(self) -> bool:
        """Whether the running stack was parked: the loop's turn is another's."""
        return getattr(greenlet.getcurrent(), "guest", False)

    @property
    def can_wait(self) -> bool:
        """Whether the running code can be suspended."""
        return isinstance(greenlet.getcurrent(), _Stack)

    def run(self, work: Callable[[int], int], budget: int) -> int:
        """Do the loop's work where it can be suspended; returns what is left of the budget."""
        while True:
            runner = self._runner
            if runner is None or runner.dead or self._thread != self._loop._thread_id:
                runner = self._runner = _begin()
                self._thread = self._loop._thread_id
            runner.parent = greenlet.getcurrent()
            left: Any = runner.switch(work, budget)
            if left is not _LEFT:
                return left  # type: ignore[no-any-return]
            self._loop.running_scope = None
            budget -= 1
            if budget <= 0:
                return 0

    def wait(self, future: asyncio.Future[Any]) -> None:
        """Suspend the running synchronous code until a future is done.

        Raises `NoStack` where the loop did not enter the code.
        """
        current = greenlet.getcurrent()
        if not isinstance(current, _Stack):
            raise NoStack
        if future.done():
            return
        task = asyncio.current_task(self._loop)

        thread = self._thread

        def go_on(_: object) -> None:
            if self._thread != thread:
                self._loop.abort(RuntimeError(_OTHER_THREAD))
                return
            current.parent = greenlet.getcurrent()
            current.switch()

        future.add_done_callback(go_on, context=copy_context())
        self._parked[current] = self._loop.running_scope
        if not current.guest:
            current.guest = True
            self.guests += 1
        self._leave(current, task)
        del self._parked[current]
        if task is not None:
            asyncio._enter_task(self._loop, task)

    def cut(self) -> None:
        """Leave the running stack for ever; does nothing where that is not possible."""
        current = greenlet.getcurrent()
        if isinstance(current, _Stack):
            self._loop.pin(current)
            self.guests -= current.guest
            self._leave(current, asyncio.current_task(self._loop))
            raise AssertionError("a stack whose power was cut was entered again")

    def end_turn(self) -> None:
        """Told by a guest that its turn is over: it is a stack like any other no more."""
        self.guests -= 1

    def freeze(self, scope: Scope) -> None:
        """Keep the stacks of a scope that lost its power from ever being entered or collected."""
        for stack in [stack for stack, owner in self._parked.items() if owner is scope]:
            self._loop.pin(stack)
            del self._parked[stack]
            self.guests -= 1

    def close(self) -> None:
        """Let go of the runner, and keep what waits from being collected."""
        for stack in self._parked:
            self._loop.pin(stack)
        self._parked.clear()
        self._runner = None
        del self._loop

    def _leave(self, current: _Stack, task: asyncio.Task[Any] | None) -> None:
        if self._runner is current:
            self._runner = None
        if task is not None:
            asyncio._leave_task(self._loop, task)
        assert current.parent is not None
        current.parent.switch(_LEFT)


def _begin() -> _Stack:
    """Make a runner that waits for work, unseen by a tracer.

    A tracer such as coverage's keeps one stack a thread. It must not see the first frame of a
    runner begin, because it will not see it end: it would take it for a caller of all that follows.
    """
    runner = _Stack(_serve)
    tracer = sys.gettrace()
    if tracer is None:
        runner.switch()
        return runner
    sys.settrace(None)
    try:
        runner.switch()
    finally:
        sys.settrace(tracer)
    return runner


def _serve() -> None:
    """Run what is given, again and again, holding on to nothing in between.

    Least of all to the stack itself: nobody would ever collect a suspended one that does.
    """
    left, current = 0, greenlet.getcurrent
    while not current().guest:  # type: ignore[attr-defined]
        work, budget = current().parent.switch(left)  # type: ignore[union-attr]
        left = work(budget)
        del work
