"""Futures and tasks of the simulation: awaitable from any loop, numbered, and watched.

Theory of operation. A task of asyncio refuses a future of another loop, and a test's futures are on
another loop than the Worker's. So each coroutine of the simulation is driven by `_steps`, which
stands between it and its task, and replaces a future of another loop by a *follower*: a future of
this loop that is done as soon as the other one is. The coroutine then takes the result from the
original. In the other direction `Future` and `Task` hand out followers when another loop awaits
them. Cancelling whoever waits cancels the follower only: what a test made is not the Worker's to
cancel, and the other way round.

Sets of tasks are ordered by hash, and asyncio keeps tasks in sets (`asyncio.wait`, `as_completed`,
`TaskGroup`): numbers instead of addresses make the order the same in every run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio import events
from contextvars import Context, copy_context
from types import coroutine as generator_coroutine
from typing import TYPE_CHECKING, Any

from emulator.foreign import is_foreign
from emulator.location import Location, is_users_file, running_at
from emulator.scope import KERNEL, SCOPE, Scope

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from types import FrameType

    from emulator.loop import SimLoop

# Who makes a task here does the platform's work, not the user's.
_RUNTIME = os.path.join(os.path.dirname(__file__), "runtime") + os.sep


class _Crossing:
    """How futures and tasks of the simulation are awaited and hashed."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        future: Any = self  # as in each await of the simulation: no call of `cast`
        try:
            if not future.done():
                running, own = events._get_running_loop(), future._loop
                if running is own or running is None:
                    future._asyncio_future_blocking = True
                    yield future
                else:
                    yield from _follower(future, running).__await__()
            return future.result()
        finally:
            # The traceback of its exception holds this frame.
            del self, future

    __iter__ = __await__

    def __hash__(self) -> int:
        future: Any = self
        try:
            return future.number  # type: ignore[no-any-return]
        except AttributeError:
            number: int = next(future._loop.numbers)
            future.number = number
            return number


class Future(_Crossing, asyncio.Future[Any]):
    """A future of the simulation that any loop may await."""

    __slots__ = ("number",)
    number: int


class Answer(Future):
    """The answer of a call of a binding: what lets it fail retrieves the failure as well.

    Nobody else need see to it that a failure for which nobody waits is not reported.
    """

    __slots__ = ()


class Over(Future):
    """Done, without a result, when other work has told it that it is over."""

    __slots__ = ()

    def tell(self, _: object) -> None:
        """What the other work calls back; whoever waited may be gone."""
        if not self.done():
            self.set_result(None)


class Task(_Crossing, asyncio.Task[Any]):
    """A task of the simulation.

    `origin` is its coroutine, `created` the user's line. An `inner` one is no task of the user's:
    the runtime's modules made it, to do the work of a promise.
    """

    __slots__ = ("created", "inner", "number", "origin", "scope")
    number: int
    origin: Coroutine[Any, Any, Any]
    created: Location | None
    inner: bool
    scope: Scope | None

    def get_coro(self) -> Any:
        return self.origin

    # What asyncio prints, and what `get_stack` walks.
    @property
    def _coro(self) -> Any:
        return self.origin


def make_task(
    loop: SimLoop,
    coroutine: Coroutine[Any, Any, Any],
    *,
    context: Context | None = None,
    name: str | None = None,
    **options: Any,
) -> Task:
    """Make a task for user code, or for the emulator's, whichever runs."""
    if not asyncio.iscoroutine(coroutine):
        raise TypeError(f"a coroutine was expected, got {coroutine!r}")
    if context is None:
        context = copy_context()
    owner = context.get(SCOPE)
    scope = owner or loop.running_scope
    if scope is not owner:
        # An empty `Context()` does not take a task out of its isolate.
        context.run(SCOPE.set, scope)
    created, inner = _creator(loop)
    return start(loop, coroutine, scope, context, name, created, inner=inner, **options)


def start(
    loop: SimLoop,
    coroutine: Coroutine[Any, Any, Any],
    scope: Scope | None,
    context: Context,
    name: str | None,
    created: Location | None = None,
    *,
    inner: bool = False,
    **options: Any,
) -> Task:
    """Make a task of a scope."""
    owned = scope is not None and scope is not KERNEL
    driven = _drive(coroutine, scope if owned else None, loop)
    # Up to the first `yield` of `_steps`: a task that is cancelled before its first step then
    # throws into a coroutine that has begun, and the user's one counts as awaited.
    driven.send(None)
    task = Task(driven, loop=loop, name=name, context=context, **options)
    task.origin = coroutine
    task.scope = scope
    task.created = created
    task.inner = inner
    if owned and scope is not None and not task.done():
        scope.tasks[task] = None
        if scope.dead:
            # Code that a power cut unwinds went on to make a task: it never starts, nor ends.
            loop.pin(task)
    return task


async def _drive(coroutine: Coroutine[Any, Any, Any], scope: Scope | None, loop: SimLoop) -> Any:
    try:
        return await _steps(coroutine, loop)
    finally:
        if scope is not None:
            _end(scope, loop)


def _end(scope: Scope, loop: SimLoop) -> None:
    # Not in `_drive`: the traceback of a task's exception would hold the task by a local variable.
    # When a loop that was closed early is collected there is no current task.
    task: Any = asyncio.current_task(loop)
    if scope.tasks.pop(task, task) is task:
        scope.closing.pop(task, None)


@generator_coroutine
def _steps(coroutine: Coroutine[Any, Any, Any], loop: SimLoop) -> Generator[Any, Any, Any]:
    awaited: Any = None
    try:
        while True:
            try:
                yield awaited
            except GeneratorExit:
                # Collected while suspended, after the loop was closed.
                coroutine.close()
                raise
            except BaseException as error:
                awaited = None  # it may hold the error, and the traceback holds this frame
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(None)
            if getattr(awaited, "_loop", loop) is not loop:
                awaited._asyncio_future_blocking = False
                awaited = _follower(awaited, loop)
                awaited._asyncio_future_blocking = True
    except StopIteration as end:
        return end.value
    except BaseException as error:
        loop.task_failed(error, foreign=is_foreign(error))
        raise


def _follower(source: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    """Return a future of `loop` that is done as soon as `source` is, without its result."""
    follower = loop.create_future()

    def done(_: object) -> None:
        if not follower.done() and not loop.is_closed():
            follower.set_result(None)

    # The emulator's own context: telling the test is no line of a Worker that may be dead by then.
    source.add_done_callback(done, context=_kernel_context())
    follower.add_done_callback(lambda _: source.remove_done_callback(done))
    return follower


def mirror(source: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    """Return a future of `loop` that gets the outcome of a future of another loop."""
    copy = loop.create_future()

    def done(_: object) -> None:
        if copy.done() or loop.is_closed():
            return
        if source.cancelled():
            copy.cancel()
        elif (error := source.exception()) is not None:
            copy.set_exception(error)
        else:
            copy.set_result(source.result())

    if source.done():
        done(source)
    else:
        source.add_done_callback(done, context=_kernel_context())
    return copy


def _kernel_context() -> Context:
    context = Context()
    context.run(SCOPE.set, KERNEL)
    return context


def _creator(loop: SimLoop) -> tuple[Location | None, bool]:
    """The line of user code that makes a task, and whether the runtime's modules do it for it.

    Looked for no deeper than the simulation's stack; a task made by one that has no line of the
    user's on its stack is of the line that made that one.
    """
    frame: FrameType | None = sys._getframe(2)
    inner = False
    while frame is not None and (code := frame.f_code) is not loop.bottom:
        if is_users_file(code.co_filename):
            return Location(code.co_filename, frame.f_lineno), inner
        inner = inner or code.co_filename.startswith(_RUNTIME)
        frame = frame.f_back
    return running_at(), inner
