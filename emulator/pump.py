"""The pump: runs the simulation from the caller's event loop, and moves its clock.

Theory of operation. An awaited emulator call is a `Goal`: a future on the caller's loop and the
condition under which it is done. The pump is a plain callback there. One *turn* runs the simulation
until it is idle, and on, from one due time to the next, as far as the goals allow; then it leaves
the simulation, which makes durable what happened, and resolves the goals that are reached. It
returns to the caller's loop as soon as that has something to do, and is woken when something
becomes ready in the simulation.

Rules kept here, each with a test in `tests/test_pump.py`:

1. The clock moves only while the caller's loop has nothing ready: a test that is about to set an
   event wins against a time-out in the Worker.
2. By itself it moves only if every call in progress allows it, no `hold` is open and nothing real
   is in flight. `advance`, `settle` and `run_until` move it as far as they say.
3. The pump gives way after a count of callbacks, not after a time, so that a handler that spins
   cannot starve a test's `wait_for` and runs stay the same.
4. A cancelled call only leaves; the simulation goes on.
5. A foreign exception reaches every call in progress.
6. When nothing can ever happen again, the calls that wait raise `Stuck`. While the caller's loop
   may still act (a timer, a job in a thread, a socket) the pump looks again now and then.
7. The caller's loop may be another one at each call, or another simulation's.
8. A pump that is *driven* belongs to a loop that runs for good, a server's: it runs what falls due
   though nobody calls, is never stuck, and moves a virtual clock only for an explicit call.
9. A real clock moves by itself, to the machine's time; what fell due meanwhile runs in order of due
   time. An explicit call moves it further, from one due time to the next, as it does a virtual one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from asyncio import events
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Final

from emulator.clock import MICROSECONDS
from emulator.errors import (
    EmulatorClosed,
    EmulatorError,
    InsideSimulation,
    NotSettled,
    StateError,
    Stuck,
)
from emulator.location import caller
from emulator.loop import SimLoop
from emulator.outer import has_ready, is_dead, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Callbacks per turn of the pump.
_BUDGET = 1000
# Turns in a row that used up their budget without the clock moving, after which calls give up:
# whatever runs there will never end.
_ENDLESS = 5000
# After so many of them the pump really sleeps, in seconds, so that a thread of the test's can end
# it: a thread that waits for the interpreter's lock never asks for it while a loop that spins gives
# it up for moments only, and was seen to wait for more than 2 s.
_BREATHER = 50
_BREATH = 0.001

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True
# A caller's loop that is never idle holds the clock for a request, but an explicit call such as
# `advance` waits only this many turns for it.
_PATIENCE = 100
# Turns given to a loop that does not show what it has ready (uvloop) before the clock moves.
_BLIND_TURNS = 4
# Seconds of real time after which a caller's loop that could still act is looked at again.
_LOOK_AGAIN = 0.1
# Seconds after which a driven pump looks at the machine's clock at the latest: the loop's timers do
# not notice that it was put forward, or that the machine slept.
_LONGEST_WAIT = 10.0
# Seconds after which a driven pump tries again what failed, such as a commit to a full disk.
_RETRY = 1.0
_PACKAGE = os.path.dirname(__file__) + os.sep


@dataclass(slots=True, eq=False, repr=False)
class Goal:
    """One emulator call in progress.

    `reached` is asked whenever the simulation is idle, and with `each_event` after each callback.
    A goal with a `horizon` moves the clock up to that instant by itself; `stop_at` is where an
    `advance` must stop on the way, `limit` where `settle` gives up.
    """

    name: str
    reached: Callable[[], bool]
    advance: bool = True
    each_event: bool = False
    horizon: int | None = None
    stop_at: int | None = None
    limit: int | None = None
    where: str = ""
    future: asyncio.Future[None] | Told = field(init=False)


class Told:
    """Takes the place of a goal's future where nobody awaits it: calls back, once.

    The argument is what went wrong, or None: then it is called at once.
    """

    __slots__ = ("_call", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, call: Callable[[BaseException | None], None]
    ) -> None:
        self._loop = loop
        self._call: Callable[[BaseException | None], None] | None = call

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def done(self) -> bool:
        return self._call is None

    def set_result(self, _: None) -> None:
        self._take()(None)

    def set_exception(self, error: BaseException) -> None:
        # Goals are being gone through, perhaps inside the simulation.
        self._loop.call_soon(self._take(), error)

    def _take(self) -> Callable[[BaseException | None], None]:
        call, self._call = self._call, None
        assert call is not None
        return call


class Pump:
    """Drives one `SimLoop` from whatever asyncio loop its caller runs on."""

    def __init__(self, loop: SimLoop, pending: Callable[[], list[str]]) -> None:
        self.loop = loop
        self.holds = 0
        # How many calls there were from outside.
        self.calls = 0
        # Asked before calling it `Stuck`: may end requests that can never be answered.
        self.cancel_hung: Callable[[], bool] | None = None
        self._pending = pending
        self._goals: list[Goal] = []
        self._reached: list[Goal] = []
        self._outer: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        # Between `gather` and `go`, and whether a turn is to run at its end.
        self._gathering = self._gathered = False
        self._turns_waited = 0
        self._turns_at_once = 0
        # The timer that runs a turn, and its instant in the time of its loop. It is None from when
        # it fires on, which uvloop's may do up to a millisecond early.
        self._look_again: asyncio.TimerHandle | None = None
        self._looks_at = 0.0
        self._holds_lock = threading.Lock()
        # The loop that runs the simulation for good, and who hears of errors that no call gets.
        self._driver: asyncio.AbstractEventLoop | None = None
        self.on_error: Callable[[BaseException], None] | None = None
        # While the last turn of a driven pump failed, what waits for one that does not.
        self._failed = False
        self._leaving: list[asyncio.Future[None]] = []
        # The same inside the simulation.
        self._unwritten: list[asyncio.Future[None]] = []
        # Not the one of whoever calls or wakes it.
        self._context = Context()
        loop.wake = self._wake
        loop.wake_threadsafe = self._wake_threadsafe
        loop.on_close = self._closed

    # -- for callers ---------------------------------------------------------------------------

    @property
    def inside(self) -> bool:
        """Whether the caller's code runs in the simulation."""
        return self.loop.draining and self.loop._thread_id == threading.get_ident()

    @property
    def outer(self) -> asyncio.AbstractEventLoop:
        """The loop of whoever calls the emulator now."""
        assert self._outer is not None, "the simulation runs only when pumped"
        return self._outer

    def drive(self, outer: asyncio.AbstractEventLoop) -> None:
        """Run whatever falls due from now on, on this loop, until the simulation is closed."""
        self._driver = outer
        self._schedule(outer)

    def let_go(self) -> None:
        """Be driven no more: run only while somebody calls."""
        self._driver = None
        self._stop_looking()

    def gather(self) -> None:
        """Run no turn until `go`: what comes in meanwhile is one turn's work."""
        self._gathering = True

    def go(self) -> None:
        """Run the turn that was held back; at once, if the driver's loop has nothing else to do."""
        self._gathering = False
        if not self._gathered:
            return
        self._gathered = False
        outer = self._outer
        assert outer is not None
        if has_ready(outer, _OWN) is False:
            self._context.run(self._turn, outer)
        else:
            outer.call_soon(self._turn, outer, context=self._context)

    async def may_leave(self) -> None:
        """Wait, on the driver's loop, until what happened so far is durable.

        It is already, unless it could not be written. Awaited before a part of an answer leaves.
        """
        while self._failed:
            leaving = asyncio.get_running_loop().create_future()
            self._leaving.append(leaving)
            await leaving

    async def until_written(self, write: Callable[[], None]) -> None:
        """Write what happened so far; wait, inside the simulation, until that works on a server.

        The Worker whose request is to leave hears nothing of a full disk: no such thing is there in
        production. Elsewhere it hears what `write` raises.
        """
        while True:
            try:
                write()
            except StateError:
                if self._driver is None:
                    raise
                written = self.loop.create_future()
                self._unwritten.append(written)
                await written
            else:
                return

    async def reach(self, goal: Goal) -> None:
        """Pump until the goal is reached, or raise what prevents it."""
        if self.loop.draining:
            raise self._misplaced(goal)
        outer = running_loop()
        if self.loop.is_closed():
            raise EmulatorClosed(f"{goal.name}: this emulator is closed; make a new one")
        goal.future = outer.create_future()
        # Asked for where a call is stuck, which one on a server never is, or gives up.
        if self._driver is None or goal.limit is not None:
            goal.where = _caller()
        self._add(goal, outer)
        try:
            await goal.future
        finally:
            self._leave(goal)

    def follow(self, goal: Goal, call: Callable[[BaseException | None], None]) -> None:
        """Pump until the goal is reached, of a loop that drives this pump, and then call back.

        What `reach` raises is the argument. The callback runs where a turn of the pump ends, and
        must not raise.
        """
        assert self._driver is not None
        goal.future = Told(self._driver, partial(self._tell, goal, call))
        self._add(goal, self._driver)

    def _tell(
        self, goal: Goal, call: Callable[[BaseException | None], None], error: BaseException | None
    ) -> None:
        self._leave(goal)
        call(error)

    def _add(self, goal: Goal, outer: asyncio.AbstractEventLoop) -> None:
        if self._goals:
            self._goals = [other for other in self._goals if not _is_lost(other)]
        self.calls += 1
        self._goals.append(goal)
        self._schedule(outer)

    def _misplaced(self, goal: Goal) -> EmulatorError:
        if self.inside:
            return InsideSimulation(
                f"{goal.name} moves the simulation, so code that runs inside it (a Worker, a "
                "mock's callback) cannot call it; call it from the test"
            )
        return EmulatorError(
            f"{goal.name} was called from another thread while the simulation runs; an emulator "
            "belongs to one thread at a time"
        )

    def _leave(self, goal: Goal) -> None:
        if goal in self._goals:
            self._goals.remove(goal)
        if self._driver is not None:
            return
        self._stop_looking()
        if self._goals:
            # What keeps the others waiting may have been this goal; they may be on another loop.
            loop = self._goals[0].future.get_loop()
            if loop is events._get_running_loop():
                self._schedule(loop)
            elif not loop.is_closed():
                loop.call_soon(self._turn, loop, context=self._context)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Stop the clock from moving by itself; any thread may."""
        self._count_hold(1)
        try:
            yield
        finally:
            self._count_hold(-1)
            if events._get_running_loop() is None:
                self._wake_threadsafe()
            else:
                self._wake()

    def _count_hold(self, step: int) -> None:
        with self._holds_lock:
            self.holds += step

    # -- the callback --------------------------------------------------------------------------

    def _schedule(self, outer: asyncio.AbstractEventLoop) -> None:
        if self._scheduled and self._outer is outer:
            return
        self._scheduled, self._outer = True, outer
        if self._gathering and outer is self._driver:
            self._gathered = True
        elif isinstance(outer, SimLoop):
            # The turn is not part of the invocation that called, which may lose its power.
            outer.kernel_soon(self._turn, outer)
        else:
            outer.call_soon(self._turn, outer, context=self._context)

    def _wake(self) -> None:
        outer = events._get_running_loop()
        if self._outer is not None and self._outer.is_running():
            outer = self._outer
        if outer is not None and outer is not self.loop:
            self._schedule(outer)

    def _wake_threadsafe(self) -> None:
        outer = self._outer
        if outer is not None and not outer.is_closed():
            try:
                outer.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # closed in this very moment: the next call finds what was sent

    def _turn(self, outer: asyncio.AbstractEventLoop) -> None:
        self._scheduled, self._outer = False, outer
        if self._driver is None:
            self._stop_looking()
        if self.loop.is_closed() or self.loop.draining:
            return
        try:
            again = self.loop.enter(self._run, outer)
            if self._failed or self._unwritten:
                self._succeeded()
            # Not before the simulation was left, which makes durable what happened.
            for goal in self._reached:
                if not goal.future.done():
                    goal.future.set_result(None)
            if again is None:
                again = self._wait(outer)
        except BaseException as error:
            self._failed = self._driver is not None
            self._fail_all(error)
            if self._driver is not None:
                self._look_in(_RETRY, outer)
        else:
            if again or self.loop.has_ready:
                self._schedule(outer)
        finally:
            self._reached.clear()

    def _run(self, outer: asyncio.AbstractEventLoop) -> bool | None:
        """Run as far as allowed; return whether to run again, None if the clock stands still."""
        budget = _BUDGET
        self._watch()
        self.loop.clock.catch_up()
        while True:
            budget = self.loop.drain(budget)
            idle = budget > 0
            if idle and self._release_overdue():
                budget -= 1
                if budget == 0:
                    return True
                continue
            if self._find_reached(idle=idle) or not idle:
                self._give_up_endless(idle=idle)
                if idle and self._driver is not None and not self._is_asked_to_move():
                    return None
                return not idle or bool(self._goals) or self._driver is not None
            if not self._goals and self._driver is None:
                return False
            if self._give_up_overdue():
                return True
            target = self._next_instant()
            if target is None:
                return None
            if self._give_way(outer):
                return True
            self.loop.clock.move_to(target)
            self._turns_at_once = 0
            budget -= 1
            if budget == 0:
                return True

    def _watch(self) -> None:
        self.loop.watch = None
        for goal in self._goals:
            if goal.each_event:
                self.loop.watch = self._any_reached

    def _any_reached(self) -> bool:
        return any(goal.each_event and self._is_reached(goal) for goal in self._goals)

    def _is_reached(self, goal: Goal) -> bool:
        if goal.future.done():
            return True
        try:
            return goal.reached()
        except Exception as error:
            goal.future.set_exception(error)
            return True

    def _find_reached(self, *, idle: bool) -> bool:
        """Collect the goals that are reached; return whether there was one."""
        for goal in self._goals:
            if (idle or goal.each_event) and self._is_reached(goal):
                self._reached.append(goal)
        return bool(self._reached)

    def _release_overdue(self) -> bool:
        """On a real clock: let what is due first run, of all that is due; whether there was any."""
        clock = self.loop.clock
        if not clock.is_real:
            return False
        due = self.loop.next_due
        if due is None or due > clock.reading():
            return False
        clock.catch_up()
        clock.release(due)
        return True

    def _is_asked_to_move(self) -> bool:
        """Whether there is a call, not reached yet, that moves the clock by itself."""
        return any(goal.horizon is not None and goal not in self._reached for goal in self._goals)

    # -- where the clock may go ----------------------------------------------------------------

    def _next_instant(self) -> int | None:
        """The instant the clock may move to now, or None if it has to stand still."""
        loop = self.loop
        if loop.in_flight:
            return None
        stands = self._driver is not None or self.holds or loop.clock.is_real
        by_itself = not stands and loop.has_work
        horizon, target = -1, None
        for goal in self._goals:
            by_itself = by_itself and goal.advance
            if goal.horizon is not None:
                horizon = max(horizon, goal.horizon)
            if goal.stop_at is not None and (target is None or goal.stop_at < target):
                target = goal.stop_at
        due = loop.next_due
        if due is not None and (by_itself or due <= horizon) and (target is None or due < target):
            target = due
        return target

    def _give_way(self, outer: asyncio.AbstractEventLoop) -> bool:
        """Whether the caller's loop must run before the clock may move (rule 1)."""
        ready = has_ready(outer, _OWN)
        if ready is None:
            patience = _BLIND_TURNS
        elif not ready:
            patience = 0
        else:
            explicit = any(goal.horizon is not None for goal in self._goals)
            patience = _PATIENCE if explicit else sys.maxsize
        if self._turns_waited < patience:
            self._turns_waited += 1
            return True
        self._turns_waited = 0
        return False

    def _wait(self, outer: asyncio.AbstractEventLoop) -> bool:
        """Nothing to run and the clock stands still: sleep until woken, or call it stuck."""
        if self._driver is not None or (self.loop.clock.is_real and self.loop.has_work):
            self._wait_for_due(outer)
            return False
        if self.holds or self.loop.in_flight:
            return False
        dead = is_dead(outer, _OWN)
        if dead is False:
            self._look_in(_LOOK_AGAIN, outer)
        if not dead:
            return False
        if self.cancel_hung is not None and self.cancel_hung():
            return True
        limited = [goal for goal in self._goals if goal.limit is not None]
        if limited:
            self._give_up(limited, "waits in vain: nothing more can happen")
        else:
            self._fail(self._goals, self._stuck())
        return False

    def _wait_for_due(self, outer: asyncio.AbstractEventLoop) -> None:
        """Let the caller's loop call again when the next timer falls due."""
        clock, due = self.loop.clock, self.loop.next_due
        if clock.is_real and due is not None:
            wait = min(max(due - clock.reading(), 0) / MICROSECONDS, _LONGEST_WAIT)
            if self._look_again is not None and self._looks_at <= outer.time() + wait:
                return  # early enough: a timer for each request would cost more than it does
            self._look_in(wait, outer)

    def _look_in(self, seconds: float, outer: asyncio.AbstractEventLoop) -> None:
        """Run a turn after some seconds of real time."""
        self._stop_looking()
        self._looks_at = outer.time() + seconds
        self._look_again = outer.call_later(seconds, self._look, outer, context=self._context)

    def _look(self, outer: asyncio.AbstractEventLoop) -> None:
        self._look_again = None
        self._turn(outer)

    def _stop_looking(self) -> None:
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    # -- failing -------------------------------------------------------------------------------

    def _give_up_overdue(self) -> bool:
        """Fail the goals whose limit comes before the next event; return whether there was one."""
        due = self.loop.next_due
        if due is None:
            return False
        overdue = [goal for goal in self._goals if goal.limit is not None and due > goal.limit]
        return self._give_up(overdue, "reached its limit of virtual time")

    def _give_up_endless(self, *, idle: bool) -> None:
        """Fail the goals when time does not move any more: neither a limit of virtual time nor
        the moment when all that is due has run will ever come."""
        self._turns_at_once = 0 if idle else self._turns_at_once + 1
        if self._turns_at_once % _BREATHER == _BREATHER - 1:
            sleep(_BREATH)
        if self._turns_at_once <= _ENDLESS:
            return
        self._turns_at_once = 0
        why = f"saw {_ENDLESS * _BUDGET:,} things happen at one instant, without an end"
        self._give_up([goal for goal in self._goals if goal.limit is not None], why)
        if self._driver is None:  # a server answers others meanwhile
            for goal in self._goals:
                self._fail([goal], self._endless(goal, why))

    def _give_up(self, goals: list[Goal], why: str) -> bool:
        failed = [
            self._fail(
                [goal],
                NotSettled(
                    f"{goal.name}, called at {goal.where}, {why}. "
                    f"Still pending:\n{self._list_pending()}"
                ),
            )
            for goal in goals
        ]
        return any(failed)

    def _list_pending(self) -> str:
        return "\n".join(f"  - {line}" for line in self._pending()) or "  (nothing)"

    def _stuck(self) -> Stuck:
        calls = "\n".join(f"  - {goal.name}, called at {goal.where}" for goal in self._goals)
        return Stuck(
            f"nothing can ever happen again, and these calls still wait:\n{calls}\n"
            f"Pending in the simulation:\n{self._list_pending()}\n"
            "If the Worker waits for something the test does, do it in another task, or before; "
            "if only time is missing, use `advance`; if a thread will act, open `emulator.hold()`."
        )

    def _endless(self, goal: Goal, why: str) -> Stuck:
        return Stuck(
            f"{goal.name}, called at {goal.where}, {why}. Pending in the simulation:\n"
            f"{self._list_pending()}\n"
            "Something starts itself again and no time passes between: a consumer that sends to "
            "its own queue or an alarm that is set to now needs a delay; code that waits with "
            "`asyncio.sleep(0)` should await an `asyncio.Event`."
        )

    def _fail_all(self, error: BaseException) -> None:
        if self._driver is not None and isinstance(error, Exception):
            self._fail(self._goals, error)
            if self.on_error is not None:
                self.on_error(error)
        elif not self._fail(self._goals, error):
            raise error

    def _fail(self, goals: Iterable[Goal], error: BaseException) -> bool:
        failed = False
        for goal in goals:
            if not goal.future.done():
                goal.future.set_exception(error)
                failed = True
        return failed

    def _succeeded(self) -> None:
        self._failed = False
        waiting = [*self._leaving, *self._unwritten]
        self._leaving, self._unwritten = [], []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _closed(self) -> None:
        self._stop_looking()
        for goal in self._goals:
            if not _is_lost(goal):
                text = f"{goal.name}: the emulator was closed during this call"
                self._fail([goal], EmulatorClosed(text))
        # What these refer to refers to the pump.
        self._pending, self.cancel_hung = list, None
        self._driver = self.on_error = None
        for future in self._leaving:
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(EmulatorClosed("the emulator was closed"))
        self._leaving.clear()
        self._unwritten.clear()


# What the pump lets a caller's loop call.
_OWN: Final = (Pump._turn, Pump._look)


def _is_lost(goal: Goal) -> bool:
    """Whether the loop of the goal was closed before the goal was reached."""
    return goal.future.get_loop().is_closed()


def _caller() -> str:
    """The line of user code that called, as `file:line`; else the nearest outside this package."""
    where = caller()
    if where is not None:
        return f"{where.file}:{where.line}"
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
