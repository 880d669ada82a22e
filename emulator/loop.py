"""The simulation's event loop: virtual time, no selector, and handles that can die.

Theory of operation. The loop never waits. `drain` runs what is ready at the present instant and
says whether it became idle; the pump (`pump.py`) then decides whether the clock may move. Every
handle and timer carries the `Scope` it was made in, and handles of a dead scope are skipped: that
is the whole crash mechanism. What a crash leaves suspended is made immortal, because collecting a
suspended coroutine or generator would run its `finally`, and lines of a dead isolate never run.

Rules kept here, each with a test in `tests/test_loop.py`:

1. Equal due times run first in, first out.
2. Due times are integers of microseconds; a delay above zero is at least one microsecond.
3. Tasks and futures hash by number, so that sets of them iterate in the same order in every run.
4. A task may await a future of another loop (a test's), and a test one of this loop.
5. Executor jobs run inline, sockets and processes are refused.
6. Cancelled timers are dropped from the heap once they outnumber the live ones.
7. An exception that comes from outside (Ctrl-C, a test's time-out) aborts the run, even one that
   user code swallows; one of user code, `SystemExit` and `KeyboardInterrupt` included, ends only
   its own task.
8. Where a scope has a gate (`gate.py`), what one of its handles makes ready in the scopes of that
   gate runs before anything else; then the gate is told that the turn is over.

Synchronous code can be suspended, and frozen by a power cut (`cut_here`), because each drain runs
in a greenlet (`stacks.py`) that is parked between drains. Reasons for the form, measured on CPython
3.11:

- A parked greenlet costs 1.5 us a drain, a new one 6 to 13, and a whole call that does nothing 18.
- Greenlets for each task would cost as much for each task, and buy nothing: what is suspended at an
  `await` is frozen without one.
- Which code will wait in the middle cannot be told before it does (`run_sync` in a library), so
  that no code can do without.
- Its price: a debugger in Worker code shows no frame of the test below it, and where code was
  suspended coverage's C tracer, which keeps one stack a thread, needs `concurrency = greenlet`.

This module and its neighbours (`handles.py`, `tasks.py`, `refusals.py`, `adaptations.py`,
`unawaited.py`, `immortal.py`, and `outer.py` for the caller's loop) are the only ones that know
CPython's private event-loop names; `tests/test_loop_contract.py` checks each, so that a new Python
fails with a clear message. It is longer than others because a loop is one class.
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import inspect
import itertools
import sys
import threading
import weakref
from asyncio import events
from contextvars import Context, copy_context
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, TypeVarTuple, Unpack, cast

from emulator import adaptations, immortal, unawaited
from emulator.clock import LATEST, MICROSECONDS, Clock
from emulator.foreign import is_foreign, unwatch_time_outs, watch_time_outs
from emulator.handles import Handle, Timer, make_handle
from emulator.refusals import Refusals
from emulator.scope import KERNEL, SCOPE, Scope
from emulator.stacks import NoStack, Stacks
from emulator.tasks import Future, Task, make_task, start

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable
    from concurrent.futures import Executor

    from emulator.gate import InputGate
    from emulator.location import Location

__all__ = ["Future", "Handle", "PowerCut", "SimLoop", "Task", "Timer"]

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_CREATED = inspect.CORO_CREATED
# Fewer cancelled timers than this are not worth a rebuild of the heap.
_COMPACT_FROM = 64
# Later than any clock goes: such a timer never falls due (`asyncio.sleep(math.inf)`).
_NEVER = LATEST + 1


class PowerCut(BaseException):
    """Unwinds synchronous code of a dead isolate where no greenlet can freeze it."""


class SimLoop(Refusals):
    """An event loop whose time is a `Clock` and whose handles belong to scopes."""

    # What `BaseEventLoop` keeps and its stubs do not tell.
    _ready: collections.deque[Any]
    _closed: bool
    _thread_id: int | None
    _asyncgens: weakref.WeakSet[AsyncGenerator[Any, Any]]
    _check_closed: Callable[[], None]
    _exception_handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None

    def __init__(self, clock: Clock) -> None:
        adaptations.install(self)
        super().__init__()
        self.clock = clock
        self.numbers = itertools.count(1)
        self.running_scope: Scope | None = None
        self.draining = False
        # Whether synchronous code can be suspended, and frozen by a power cut.
        self.suspends = True
        self.stacks = Stacks(self)
        # Real work that holds the clock still: outbound requests that are really sent.
        self.in_flight = 0
        self._anyio_adapted = False
        self._aborted: BaseException | None = None
        self._ended_by_exit: BaseException | None = None
        self._timers: list[tuple[int, int, Timer]] = []
        self._never: dict[Timer, None] = {}
        self._working_timers = 0
        self._cancelled_timers = 0
        self._inbox: collections.deque[Handle] = collections.deque()
        # The gate of the object whose turn it is, and what that turn has made ready.
        self._turn: InputGate | None = None
        self._steps: collections.deque[Handle] = collections.deque()
        self._origin = clock.start
        self._kernel_context = Context()
        self._kernel_context.run(SCOPE.set, KERNEL)
        # The async generators that user code began, by id, and the scopes of those about to be
        # finalised.
        self._generators: dict[int, _Generator] = {}
        self._dying: dict[int, Scope] = {}
        self._killed: list[Scope] = []
        # What no garbage collection may touch: see immortal.py and remains.py.
        self.pinned: list[object] = []
        self._dropped = unawaited.hook(self._never_awaited)
        self._clear_hooks()

    def _clear_hooks(self) -> None:
        # Called when something becomes ready while the loop does not run.
        self.wake: Callable[[], None] = _nothing
        self.wake_threadsafe: Callable[[], None] = _nothing
        # Called for a scope's error that nobody awaits, and for a refused socket.
        self.on_lost_error: Callable[[Scope | None, dict[str, Any]], None] = _nothing
        self.on_socket = OSError
        # Called with the scope, the name and the line of a coroutine that user code dropped
        # without awaiting it; true if that is taken care of, else Python warns.
        self.on_never_awaited: Callable[[Scope | None, str, Location | None], bool] = _unclaimed
        # Called when the loop starts and stops running, and when another scope starts to run.
        self.before_run: Callable[[], None] = _nothing
        self.after_run: Callable[[], None] = _nothing
        self.on_scope: Callable[[Scope | None], None] = _nothing
        self.on_close: Callable[[], None] = _nothing
        # Asked when several invocations are ready: what picks the one that goes on first, by its
        # place in the order in which they became ready. None is the first.
        self.on_contention: Callable[[], Callable[[int], int] | None] = _nothing
        # After each callback: True stops the run there (`run_until`, `wait_for`).
        self.watch: Callable[[], bool] | None = None

    # -- time and callbacks --------------------------------------------------------------------

    def time(self) -> float:
        """Seconds since the emulator's start, small enough to stay exact."""
        return (self.clock.now - self._origin) / MICROSECONDS

    def time_of(self, due: int) -> float:
        """The `time()` of an instant."""
        return (due - self._origin) / MICROSECONDS

    def instant_of(self, when: float) -> int:
        """The instant of a `time()` value: later than now by at least a microsecond, or now."""
        if when > _NEVER:
            return _NEVER
        due = self._origin + round(when * MICROSECONDS)
        if due <= self.clock.now and when > self.time():
            return self.clock.now + 1
        return due

    def call_soon(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> Handle:
        if context is None:
            context = copy_context()
        scope = context.get(SCOPE) or self.running_scope
        handle = make_handle(callback, args, self, context, scope)
        if self._closed:
            # A test may set an event after its emulator is gone; nobody waits any more.
            return handle
        if self._turn is not None and scope is not None and scope.gate is self._turn:
            self._steps.append(handle)
        else:
            self._ready.append(handle)
        if not self.draining:
            self.wake()
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> Timer:
        return self.call_at_instant(self.instant_of(when), callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> Timer:
        due = self.clock.now
        if delay > 0:
            due += max(round(delay * MICROSECONDS), 1) if delay < _NEVER else _NEVER
        return self.call_at_instant(due, callback, *args, context=context)

    def call_at_instant(
        self, due: int, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Timer:
        """Like `call_at`, with microseconds since the epoch."""
        if self._closed:
            self._check_closed()
        if context is None:
            context = copy_context()
        scope = context.get(SCOPE) or self.running_scope
        timer = Timer(due, callback, args, self, context, scope)
        if due >= _NEVER:
            self._never[timer] = None
            return timer
        heapq.heappush(self._timers, (due, next(self.numbers), timer))
        self._working_timers += 1
        if not self.draining:
            self.wake()
        return timer

    def kernel_soon(self, callback: Callable[..., object], *args: Any) -> Handle:
        """`call_soon` for the emulator's own work, whoever asks for it."""
        # Not by `call_soon`: the emulator itself has no gate.
        handle = make_handle(callback, args, self, self._kernel_context, KERNEL)
        if not self._closed:
            self._ready.append(handle)
            if not self.draining:
                self.wake()
        return handle

    def kernel_at(
        self, due: int, callback: Callable[..., object], *, owner: str, passive: bool = False
    ) -> Timer:
        """A timer of the emulator's own; a passive one never keeps `settle` going."""
        timer = self.call_at_instant(due, callback, context=self._kernel_context)
        timer.owner = owner
        if passive and due < _NEVER:
            timer.passive = True
            self._working_timers -= 1
        return timer

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> Handle:
        self._check_closed()
        if self.draining and threading.get_ident() == self._thread_id:
            return self.call_soon(callback, *args, context=context)
        if context is None:
            context = copy_context()
        handle = make_handle(callback, args, self, context, context.get(SCOPE))
        self._inbox.append(handle)
        self.wake_threadsafe()
        return handle

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle.due >= _NEVER:
            self._never.pop(handle, None)
            return
        if not handle._scheduled:
            return  # it ran already; `asyncio.sleep` cancels its timer in any case
        handle._scheduled = False
        self._timer_gone(handle)

    def _timer_gone(self, timer: Timer) -> None:
        """Count a timer that was cancelled while it lay in the heap."""
        if not timer.passive:
            self._working_timers -= 1
        self._cancelled_timers += 1
        if self._cancelled_timers > _COMPACT_FROM and self._cancelled_timers * 2 > len(
            self._timers
        ):
            self._timers = [entry for entry in self._timers if not entry[2]._cancelled]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    @property
    def next_due(self) -> int | None:
        """The instant of the earliest live timer."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled_timers -= 1
        return timers[0][0] if timers else None

    @property
    def has_work(self) -> bool:
        """Whether a timer is pending that `settle` waits for."""
        return self._working_timers > 0

    def has_work_besides(self, timers: int) -> bool:
        """Whether there is something to do besides so many timers that count as work."""
        return bool(self._ready) or self._turn is not None or self._working_timers > timers

    @property
    def has_ready(self) -> bool:
        """Whether a callback is ready to run."""
        return bool(self._ready or self._inbox or self._turn is not None)

    @property
    def timers(self) -> list[Timer]:
        """The live timers in the order they will run."""
        return [timer for _, _, timer in sorted(self._timers) if not timer._cancelled]

    def timers_of(self, scope: Scope) -> list[Timer]:
        """The live timers of one scope, in no particular order."""
        return [
            timer for _, _, timer in self._timers if timer.scope is scope and not timer._cancelled
        ]

    # -- tasks ---------------------------------------------------------------------------------

    def create_future(self) -> Future:
        return Future(loop=self)

    def set_debug(self, enabled: bool) -> None:
        super().set_debug(enabled)
        # Each future that is made asks: here without a frame of Python's.
        self.get_debug = partial(bool, True) if enabled else bool  # type: ignore[method-assign]

    def create_task(self, coro: Any, **options: Any) -> Task:
        if self._closed:
            self._check_closed()
        return make_task(self, coro, **options)

    def set_task_factory(self, factory: object) -> None:
        if factory is not None:
            raise NotImplementedError("the simulation makes its tasks itself")

    def spawn(self, scope: Scope, coroutine: Coroutine[Any, Any, Any], name: str) -> Task:
        """Start a task in a fresh context that belongs to `scope`."""
        if self._closed:
            self._check_closed()
        context = Context()
        context.run(SCOPE.set, scope)
        return start(self, coroutine, scope, context, name)

    def spawn_kernel(self, coroutine: Coroutine[Any, Any, Any], name: str) -> Task:
        """Start a task of the emulator's own."""
        return self.spawn(KERNEL, coroutine, name)

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        if self._dying:
            self._dying.clear()
        scope = self.running_scope
        if scope is None:
            cast("Any", super())._asyncgen_firstiter_hook(agen)
        elif scope is not KERNEL:
            self._generators[id(agen)] = _Generator(agen, self._generator_dies, scope)

    def _generator_dies(self, reference: _Generator) -> None:
        """Called before the finalizer hook, which then finds the scope; maybe for several."""
        if self._generators.get(reference.key) is reference:
            del self._generators[reference.key]
            self._dying[reference.key] = reference.scope

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        scope = self._dying.pop(id(agen), KERNEL)
        if agen in self._asyncgens:
            cast("Any", super())._asyncgen_finalizer_hook(agen)
        elif scope.dead or self._closed:
            self.pin(agen)
        else:
            closing = self.spawn(scope, agen.aclose(), "aclose")
            # Not a task the code made: nobody is to be told that it was not awaited.
            if scope.tasks.pop(closing, closing) is None:
                scope.closing[closing] = None

    # -- running -------------------------------------------------------------------------------

    def drain(self, budget: int) -> int:
        """Run at most `budget` callbacks of this instant; return how much of it is left.

        Above 0 the loop is idle, at 0 more is ready, and at -1 `watch` asked to stop.
        """
        if not self.draining:
            return self.enter(self.drain, budget)
        if self.suspends:
            return self.stacks.run(self._run_ready, budget)
        return self._run_ready(budget)

    def call_inside(self, function: Callable[..., _T], *args: Any) -> _T:
        """Call a synchronous function as the simulation would; its exceptions come through."""
        try:
            return self.enter(function, *args)
        finally:
            if self.has_ready:
                self.wake()

    def enter(self, function: Callable[..., _T], *args: Any) -> _T:
        """Call a function of the emulator's that runs the simulation."""
        self._check_closed()
        if self.draining:
            raise RuntimeError("the simulation runs already")
        outer = events._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        if not self._anyio_adapted:
            self._anyio_adapted = adaptations.adapt_anyio(SimLoop)
        watch_time_outs()
        finalizer = immortal.newest_finalizer()
        warned = unawaited.install(self._dropped)
        self._thread_id = threading.get_ident()
        try:
            sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
            events._set_running_loop(self)
            self.draining = True
            self.before_run()
            return function(*args)
        finally:
            self.running_scope = None
            try:
                self.after_run()
            finally:
                self.draining = False
                self._aborted = self._ended_by_exit = None
                events._set_running_loop(outer)
                sys.set_asyncgen_hooks(*hooks)
                unawaited.restore(warned)
                if immortal.newest_finalizer() is not finalizer:
                    immortal.disarm_since(finalizer)
                self._thread_id = None
                if isinstance(outer, SimLoop):
                    outer.on_scope(outer.running_scope)

    # Where the simulation's part of a stack ends.
    bottom = enter.__code__

    def _run_ready(self, budget: int) -> int:
        ready, steps, stacks, tracked = self._ready, self._steps, self.stacks, unawaited.inside()
        handle: Any = None
        try:
            while True:
                self._release()
                if not ready and self._turn is None:
                    return budget
                while True:
                    if steps:
                        handle = steps.popleft()
                    elif self._turn is not None:
                        self._end_turn()
                        continue
                    elif ready:
                        handle = ready.popleft()
                    else:
                        break
                    scope = handle.scope
                    if scope is not None and scope.dead:
                        self.pin(handle)
                        continue
                    if handle._cancelled:
                        continue
                    if scope is not self.running_scope:
                        if (
                            ready
                            and ready[0].scope is not scope
                            and self._turn is None
                            and self._is_contended(scope, ready[0])
                        ):
                            handle = self._pick(handle)
                            scope = handle.scope
                        self.running_scope = scope
                        unawaited.track(0 if scope is KERNEL else tracked)
                        self.on_scope(scope)
                    if scope is not None and scope.gate is not None and self._turn is None:
                        if not scope.gate.admit(handle):
                            continue
                        self._turn = scope.gate
                    try:
                        handle._context.run(handle._callback, *handle._args)
                    except BaseException as error:
                        self._callback_failed(handle, error)
                    if stacks.guests and stacks.is_guest:
                        stacks.end_turn()
                        return 0
                    budget -= 1
                    if self._aborted is not None:
                        self._raise_aborted()
                    if self.watch is not None and self.watch():
                        return -1
                    if budget == 0:
                        return 0
        finally:
            # Its argument may be a future whose exception's traceback holds this frame.
            handle = None

    def _end_turn(self) -> None:
        gate, self._turn = self._turn, None
        if gate is not None:
            self.running_scope = KERNEL
            self._kernel_context.run(gate.end_turn)

    def admit_again(self, events: Iterable[Handle]) -> None:
        """Let events ask their gate once more, which kept them."""
        self._ready.extend(events)

    @staticmethod
    def _is_contended(one: Scope | None, handle: Handle) -> bool:
        """Whether this handle is of another invocation than that one."""
        other = handle.scope
        if one is other or one is None or other is None or other.dead:
            return False
        return not (getattr(one, "is_test", True) or getattr(other, "is_test", True))

    def _pick(self, first: Handle) -> Handle:
        """One of the handles that come first in their invocations; the others keep their order."""
        choose = self.on_contention()
        if choose is None:
            return first
        firsts: dict[int, Handle] = {id(first.scope): first}
        for handle in self._ready:
            scope = handle.scope
            if getattr(scope, "is_test", True):
                break  # the platform, or the test, acts in between
            if not scope.dead and not handle._cancelled:
                firsts.setdefault(id(scope), handle)
        picked = list(firsts.values())[choose(len(firsts))]
        if picked is not first:
            self._ready.remove(picked)
            self._ready.appendleft(first)
        return picked

    def _release(self) -> None:
        """Make ready what other threads sent and what is due now."""
        while self._inbox:
            self._ready.append(self._inbox.popleft())
        timers, now = self._timers, self.clock.horizon
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            if timer._cancelled:
                self._cancelled_timers -= 1
                continue
            timer._scheduled = False
            if not timer.passive:
                self._working_timers -= 1
            self._ready.append(timer)

    def _callback_failed(self, handle: Handle, error: BaseException) -> None:
        if is_foreign(error):
            raise error
        # asyncio lets these through although the task has them already; they end only the task.
        if error is not self._ended_by_exit and not isinstance(error, PowerCut):
            message = f"Exception in callback {handle!r}"
            self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def task_failed(self, error: BaseException, *, foreign: bool) -> None:
        """Told by each task that ends with an exception, before its awaiter sees it."""
        if foreign:
            self.abort(error)
        elif isinstance(error, (SystemExit, KeyboardInterrupt)):
            self._ended_by_exit = error

    def abort(self, error: BaseException) -> None:
        """Stop the run after the present callback and raise `error` to the caller."""
        if self._aborted is None:
            self._aborted = error

    def _raise_aborted(self) -> NoReturn:
        error, self._aborted = self._aborted, None
        assert error is not None
        raise error

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self._closed or (error is not None and is_foreign(error)):
            return  # what came from outside reached the caller already
        if isinstance(error, (PowerCut, asyncio.CancelledError)):
            return  # no error: its work was dropped
        if self._exception_handler is not None:
            self._exception_handler(self, context)
            return
        owner = context.get("handle") or context.get("task") or context.get("future")
        # The future of `gather` belongs to nobody, its children do.
        tasks = (owner, *getattr(owner, "_children", ()))
        scopes = [task.scope for task in tasks if hasattr(task, "scope")]
        self.on_lost_error(scopes[0] if scopes else None, context)

    def _never_awaited(self, name: str, where: Location) -> bool:
        return self.on_never_awaited(self.running_scope or SCOPE.get(), name, where)

    # -- power cuts ----------------------------------------------------------------------------

    def pin(self, subject: object) -> None:
        """Keep something of a dead scope, and all it refers to, for the life of the process."""
        immortal.pin(subject)
        self.pinned.append(subject)

    def kill(self, scope: Scope) -> None:
        """Power cut: no line of this scope runs again, no callback, no `except`, no `finally`."""
        if scope.dead:
            return
        scope.dead = True
        self._killed.append(scope)
        self.pin(scope)
        self.stacks.freeze(scope)
        for task in (*scope.tasks, *scope.closing):
            asyncio._unregister_task(task)
            self.pin(task)
        for reference in self._generators.values():
            if reference.scope is scope and (agen := reference()) is not None:
                self.pin(agen)
        for handle in (*self._ready, *self._steps, *self._inbox):
            if handle.scope is scope:
                self.pin(handle)
        for timer in [*self._never, *(entry[2] for entry in self._timers)]:
            if timer.scope is scope and not timer._cancelled:
                self._freeze_timer(timer)

    def _freeze_timer(self, timer: Timer) -> None:
        # `cancel` would drop the arguments, and with them objects of the dead scope.
        self.pin(timer)
        timer._cancelled = True
        self._timer_handle_cancelled(timer)

    def cut_here(self) -> NoReturn:
        """End the running synchronous code of a scope that was just killed.

        In a greenlet the code is never resumed. Elsewhere `PowerCut` is raised, which a bare
        `except` may see, with nothing durable left to touch.
        """
        scope = self.running_scope
        if scope is None or not scope.dead:
            raise RuntimeError("only the running code of a killed scope can be cut")
        self.stacks.cut()
        raise PowerCut

    # -- what a Worker does not have -----------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., _T], *args: Any
    ) -> asyncio.Future[_T]:
        """Run the function now: a Worker has no threads, and the simulation no real waiting."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            # A future refuses it, as coroutines do.
            future.set_exception(RuntimeError(f"the function raised {error!r}"))
        except Exception as error:
            future.set_exception(error)
        return future

    def check_socket(self, host: object, port: object) -> None:
        """Refuse a blocking connection of Worker code; the emulator's own work may have one."""
        scope = SCOPE.get() or self.running_scope
        if scope is not None and scope is not KERNEL:
            raise self._refuse(None, host, port)

    def _write_to_self(self) -> None:
        self.wake_threadsafe()

    def run_until_complete(self, future: Generator[Any, None, _T] | Awaitable[_T]) -> _T:
        """Wait without `await`, as Pyodide's loop does where it can switch stacks."""
        awaited = asyncio.ensure_future(cast("Awaitable[_T]", future), loop=self)
        try:
            self.stacks.wait(awaited)
        except NoStack:
            raise RuntimeError("This event loop is already running") from None
        return awaited.result()

    def run_forever(self) -> NoReturn:
        raise RuntimeError(
            "the simulation's loop is pumped by the emulator, it does not run itself"
        )

    def stop(self) -> None:
        raise RuntimeError("the simulation's loop is pumped by the emulator, it cannot be stopped")

    def close(self) -> None:
        """Stop for good: nothing here runs again, and nothing here keeps the emulator alive."""
        if self.draining:
            raise RuntimeError("the simulation cannot be closed from inside")
        if self._closed:
            return
        self._close_unstarted()
        for handle in (*self._ready, *self._steps, *self._inbox):
            if handle.scope is not None and handle.scope.dead:
                self.pin(handle)  # as if its turn had come
        super().close()
        self.stacks.close()
        self.on_close()
        self._clear_hooks()
        self._exception_handler = None
        self._dropped = _nothing
        self._timers.clear()
        self._never.clear()
        self._inbox.clear()
        self._steps.clear()
        self._turn = None
        self._generators.clear()
        self._dying.clear()
        for scope in self._killed:
            scope.cut_links()
            for task in (*scope.tasks, *scope.closing):
                immortal.release(task.get_coro(), self._is_part)
        self._killed.clear()
        adaptations.uninstall(self)
        unwatch_time_outs()

    def _close_unstarted(self) -> None:
        # They will not start any more, which is no reason to warn that nobody awaited them. The
        # order of the set does not show: no line of theirs runs.
        for task in asyncio.all_tasks(self):
            coroutine: Any = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == _CREATED:
                coroutine.close()

    def _is_part(self, value: object) -> bool:
        """Whether this is a part of the emulator that this loop belongs to, or leads to one."""
        if isinstance(value, Scope):
            return False
        if isinstance(value, (FunctionType, MethodType)):
            return (value.__module__ or "").startswith("emulator.")
        kernel = _attribute(value, "kernel") or _attribute(value, "_kernel") or value
        return _attribute(kernel, "loop") is self


def _attribute(value: object, name: str) -> Any:
    """An attribute, without the user's `__getattr__`: that may be code of a dead isolate."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


class _Generator(weakref.ref[Any]):
    """A suspended async generator, and the scope it began in."""

    __slots__ = ("key", "scope")
    key: int
    scope: Scope

    def __new__(cls, agen: Any, gone: Callable[[Any], None], scope: Scope) -> _Generator:
        self = super().__new__(cls, agen, gone)
        self.key, self.scope = id(agen), scope
        return self

    def __init__(self, agen: Any, gone: Callable[[Any], None], scope: Scope) -> None:
        super().__init__(agen, gone)  # type: ignore[call-arg]


def _nothing(*_: object) -> None:
    """The default of most hooks."""


def _unclaimed(*_: object) -> bool:
    return False
