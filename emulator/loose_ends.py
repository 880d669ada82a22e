"""Work of an invocation that nobody waits for, and what is said of it when the invocation ends.

Theory of operation. A call of a binding is made at once; the invocation notes it (`track`) and says
`never_awaited` if nobody ever awaited it. A promise is noted too (`track_promise`): one that is
still pending, and that nobody awaited, is a `floating_task`, as is a task of the user's own.
Whoever awaited something and gave up (`asyncio.timeout`, an abort) has taken care of it. Tasks
that the runtime's modules made (`Task.inner`) do the work of calls and promises, and are never
spoken of.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from emulator.location import Location, caller, waiting_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.invocation import Invocation
    from emulator.runtime.promises import BindingCall, PyodideFuture

_IN_VAIN = (
    "in a global handler ctx.waitUntil takes promises of JavaScript only. Give it "
    "`create_proxy(...)` of the coroutine (from pyodide.ffi), or handle the event in a class "
    "(`class Default(WorkerEntrypoint)`), whose ctx takes both"
)


# So many calls are looked through for those that were awaited, and each time they have doubled.
_MANY = 256


class _Ignored(NamedTuple):
    """Work that `waitUntil` did not take, and the line of that call."""

    work: Any
    where: Location | None


class LooseEnds:
    """What one invocation began, to tell at its end what nobody waited for."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._calls: list[BindingCall] = []
        self._many = _MANY
        # Weak, because a promise that is done and forgotten is nobody's concern; in order.
        # Made when there is one: most invocations have none.
        self._promises: WeakKeyDictionary[PyodideFuture, None] | None = None
        self._ignored: list[_Ignored] = []

    def track(self, call: Any) -> None:
        """Note a call of a binding."""
        calls = self._calls
        calls.append(call)
        if len(calls) > self._many:
            # What was awaited is nobody's concern any more, and would be kept with its result.
            self._calls = [call for call in calls if not call.awaited]
            self._many = max(_MANY, 2 * len(self._calls))

    def track_promise(self, promise: PyodideFuture) -> None:
        """Note a promise whose work begins."""
        if self._promises is None:
            self._promises = WeakKeyDictionary()
        self._promises[promise] = None

    def ignore(self, work: Any) -> None:
        """Note work that was given to `waitUntil` in vain."""
        self._ignored.append(_Ignored(work, caller()))

    def report(self, left: Sequence[asyncio.Task[Any]]) -> None:
        """Make findings, what is alike of a line once; `left` are the tasks that still run."""
        if not (left or self._calls or self._promises or self._ignored):
            return
        running = [task.get_coro() for task in left]
        told = [ignored.work for ignored in self._ignored if self._report_ignored(ignored, running)]
        lines: list[Location | None] = []
        for call in self._calls:
            # One that a task was made of is that task's affair.
            if not (call.awaited or _is_in(call, running) or _is_in(call, told)):
                self._report_call(call)
                lines.append(call.created)
        for promise in list(self._promises or ()):
            # One that a call is resolved into, on its line, is told with that.
            told_already = promise.created in lines or _is_in(promise, self._calls)
            if not (promise.awaited or promise.done() or told_already):
                name = f"the promise of {promise.method}()" if promise.method else "the promise"
                self._report_floating(name, promise.created)
        for task in left:
            # One that the user cancelled, and that has yet to see it, was taken care of.
            if not (getattr(task, "inner", False) or task.cancelling() or _is_in(task, told)):
                name = getattr(task.get_coro(), "__qualname__", "a coroutine")
                where = getattr(task, "created", None) or waiting_at(task.get_coro())
                self._report_floating(f"the task {name}", where)

    def close(self) -> None:
        """Close what never started: that was told, and Python need not warn of it.

        It lets go of the invocation, which is over: the two would wait for the garbage collector.
        """
        for work, _ in self._ignored:
            if inspect.iscoroutine(work) and _never_started(work):
                work.close()
        self._ignored.clear()
        del self._invocation

    def forget(self) -> None:
        """Let go of the calls, and of what they refer to."""
        self._calls.clear()
        self._promises = None

    def _report_ignored(self, ignored: _Ignored, running: Sequence[Any]) -> bool:
        work, where = ignored
        place = self._invocation.place(where)
        if isinstance(work, asyncio.Future):
            if not work.done():
                text = f"the task given to ctx.waitUntil at {place} was not waited for"
                self._invocation.find("floating_task", f"{text}: {_IN_VAIN}", where)
        elif _never_started(work) and not _is_in(work, running):
            text = f"the coroutine given to ctx.waitUntil at {place} was never awaited"
            self._invocation.find("never_awaited", f"{text}: {_IN_VAIN}", where)
        return True

    def _report_call(self, call: BindingCall) -> None:
        where = call.created
        self._invocation.find(
            "never_awaited",
            f"{call.js_class}.{call.method}() at {self._invocation.place(where)} was neither "
            "awaited nor given to waitUntil; production may drop it when the handler returns",
            where,
        )

    def _report_floating(self, what: str, where: Location | None) -> None:
        advice = _IN_VAIN if self._ignored else "await it or give it to waitUntil"
        self._invocation.find(
            "floating_task",
            f"{what} made at {self._invocation.place(where)} was still running when the "
            f"invocation ended, and was cancelled: {advice}",
            where,
        )


def _never_started(work: Any) -> bool:
    if inspect.iscoroutine(work):
        return inspect.getcoroutinestate(work) == inspect.CORO_CREATED
    return not getattr(work, "awaited", True)


def _is_in(one: Any, several: Sequence[Any]) -> bool:
    return any(one is other for other in several)
