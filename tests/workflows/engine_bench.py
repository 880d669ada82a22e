"""A shell for the pure engine that needs no event loop: it runs `run` and the steps' bodies.

User code is a coroutine that awaits only what `step` gives and what `together` makes. A step's body
is a function of the `Attempt`; it returns a value, raises, or returns `Takes` to last for a while,
or `PENDING` to stay in `flights` until a test ends it.
Times are seconds since the start; the engine starts at an instant far from zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from emulator.workflows.engine import Engine
from emulator.workflows.model import (
    SECOND,
    Attempt,
    DelayFailed,
    Done,
    Ended,
    ErrorInfo,
    Failed,
    HistoryRow,
    InstanceView,
    Ready,
    Rollback,
    RollbackAttempt,
    Run,
    StepView,
    Stop,
    WantDelay,
    WorkflowRules,
)
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from emulator.workflows.execution import Execution

START = 1_700_000_000 * SECOND
UNSERIALISABLE = object()
PENDING = object()
HANGS = 10**9


@dataclass(frozen=True)
class Takes:
    """What a body returns to last `seconds`, and then to return, or raise, `then`."""

    seconds: float
    then: object = None


class StepError(Exception):
    """What `await step…` raises; the engine's refusals look like this too."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


def error_of(error: BaseException) -> ErrorInfo:
    """An exception as the platform sees it."""
    if isinstance(error, StepError):
        return error.info
    if isinstance(error, EngineError):
        return error.info
    return ErrorInfo(type(error).__name__, str(error))


class Promise:
    """Something that a task can await."""

    def __init__(self) -> None:
        self.done = False
        self.value: object = None
        self.error: BaseException | None = None
        self.callbacks: list[Callable[[], None]] = []

    def settle(self, value: object = None, error: BaseException | None = None) -> None:
        if not self.done:
            self.done, self.value, self.error = True, value, error
            callbacks, self.callbacks = self.callbacks, []
            for callback in callbacks:
                callback()

    def __await__(self) -> Generator[Promise, None, Any]:
        if not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(eq=False)
class Running:
    """One execution of `run`, with its tasks."""

    bench: Bench
    execution: Execution
    promises: dict[str, Promise] = field(default_factory=dict)
    bodies: dict[str, Callable[[Attempt], object]] = field(default_factory=dict)
    delays: dict[str, Callable[..., object]] = field(default_factory=dict)
    handlers: dict[str, Callable[[RollbackAttempt], object]] = field(default_factory=dict)
    dead: bool = False

    def start(self, coroutine: Coroutine[Promise, None, object]) -> Promise:
        promise = Promise()
        self._step(coroutine, promise)
        return promise

    def _step(self, coroutine: Coroutine[Promise, None, object], promise: Promise) -> None:
        if self.dead:
            return
        try:
            awaited = coroutine.send(None)
        except StopIteration as stop:
            promise.settle(stop.value)
        except Exception as error:
            promise.settle(error=error)
        else:
            awaited.callbacks.append(
                lambda: self.bench.soon(self, lambda: self._step(coroutine, promise))
            )

    # What user code calls.

    def do(
        self,
        name: str,
        body: Callable[[Attempt], object] = lambda attempt: None,
        config: dict[str, Any] | None = None,
        rollback: Callable[[RollbackAttempt], object] | None = None,
        rollback_config: object = None,
    ) -> Promise:
        promise = Promise()
        try:
            key = self.execution.do(
                name,
                config,
                has_rollback=rollback is not None,
                rollback_config=rollback_config,
            )
        except EngineError as error:
            promise.settle(error=StepError(error.info))
            return promise
        delay = ((config or {}).get("retries") or {}).get("delay")
        if callable(delay):
            self.delays[key] = delay
        if rollback is not None:
            self.handlers[key] = rollback
        self.bodies[key] = body
        return self._ask(key, promise)

    def sleep(self, name: str, duration: object) -> Promise:
        return self._asked(lambda: self.execution.sleep(name, duration))

    def sleep_until(self, name: str, at: float) -> Promise:
        milliseconds = (START + at * SECOND) / 1000
        return self._asked(
            lambda: self.execution.sleep_until(name, milliseconds, self.bench.instant)
        )

    def wait(self, name: str, type: str, timeout: object = None) -> Promise:
        return self._asked(lambda: self.execution.wait(name, type, timeout))

    def together(self, *coroutines: Coroutine[Promise, None, object]) -> Promise:
        """Promise.all: the first error wins, the others go on."""
        promises = [self.start(coroutine) for coroutine in coroutines]
        result = Promise()

        def look() -> None:
            for promise in promises:
                if promise.error is not None:
                    result.settle(error=promise.error)
            if all(promise.done for promise in promises):
                result.settle([promise.value for promise in promises])

        for promise in promises:
            if promise.done:
                continue
            promise.callbacks.append(look)
        look()
        return result

    def _asked(self, ask: Callable[[], str]) -> Promise:
        promise = Promise()
        try:
            key = ask()
        except EngineError as error:
            promise.settle(error=StepError(error.info))
            return promise
        return self._ask(key, promise)

    def _ask(self, key: str, promise: Promise) -> Promise:
        self.promises[key] = promise
        self.decide(key)
        return promise

    # What the shell does.

    def decide(self, key: str) -> None:
        promise = self.promises[key]
        match self.bench.engine.decide(self.execution, key, self.bench.instant):
            case Done(output, event):
                told = None if output is None else json.loads(output)
                promise.settle(told if event is None else event)
            case Failed(error):
                promise.settle(error=StepError(error))
            case Attempt() as attempt:
                target = f"{attempt.name}-{attempt.count}"
                self.bench.calls.append((self.bench.now, target, attempt.number))
                self.bench.flights[self.execution.id, target] = (self, attempt)
                self._run(
                    lambda: self.bodies[key](attempt),
                    lambda value: self.succeeded(attempt, value),
                    lambda error: self.failed(attempt, error),
                )

    def _run(
        self,
        body: Callable[[], object],
        succeeded: Callable[[object], None],
        failed: Callable[[Exception], None],
    ) -> None:
        try:
            value = body()
            if value is PENDING:
                return
            if isinstance(value, Takes):
                then = value.then

                def over() -> None:
                    if isinstance(then, Exception):
                        failed(then)
                    else:
                        succeeded(then)

                self.bench.later(value.seconds, self, over)
                return
        except Exception as error:
            failed(error)
        else:
            succeeded(value)

    def succeeded(self, attempt: Attempt, value: object) -> None:
        engine, now = self.bench.engine, self.bench.instant
        if value is UNSERIALISABLE:
            engine.unserialisable(self.execution, attempt.key, attempt.number, now)
        else:
            output = json.dumps(value).encode()
            engine.attempt_succeeded(self.execution, attempt.key, attempt.number, output, now)
        self.decide(attempt.key)

    def failed(self, attempt: Attempt, error: Exception) -> None:
        told = error_of(error)
        engine, now = self.bench.engine, self.bench.instant
        engine.attempt_failed(self.execution, attempt.key, attempt.number, told, now)
        self.decide(attempt.key)

    def give_delay(self, notice: WantDelay) -> None:
        delay: object
        try:
            delay = self.delays[notice.key](notice.attempt, notice.error)
        except Exception as error:
            delay = DelayFailed("threw", str(error))
        self.bench.engine.attempt_failed(
            self.execution, notice.key, notice.attempt, notice.error, self.bench.instant,
            delay=delay,  # type: ignore[arg-type]
        )  # fmt: skip
        self.decide(notice.key)

    def roll_back(self) -> None:
        engine, execution = self.bench.engine, self.execution
        found = engine.next_rollback(execution, self.bench.instant)
        if not isinstance(found, RollbackAttempt):
            return
        handler = self.handlers.get(found.key)
        if handler is None:
            engine.rollback_missing(execution, found.key, self.bench.instant)
            return

        def succeeded(value: object) -> None:
            now = self.bench.instant
            engine.rollback_succeeded(execution, found.key, found.number, now)
            self.roll_back()

        def failed(error: Exception) -> None:
            now = self.bench.instant
            engine.rollback_failed(execution, found.key, found.number, error_of(error), now)
            self.roll_back()

        self.bench.calls.append((self.bench.now, f"rollback {found.step_name}", found.number))
        self._run(lambda: handler(found), succeeded, failed)


Code = Callable[[Running], Coroutine[Promise, None, object]]


class Bench:
    """An engine with one Workflow, `w`, whose `run` is `code`."""

    def __init__(self, code: Code, *, profile: Any = "production", **rules: Any) -> None:
        self.engine = Engine(profile)
        self.profile = profile
        self.code = code
        self.rules = WorkflowRules("w", **rules)
        self.engine.configure([self.rules])
        self.instant = START
        self.calls: list[tuple[float, str, int]] = []
        self.runs: list[tuple[float, str]] = []
        self.ended: list[tuple[float, str]] = []
        self.running: dict[str, Running] = {}
        self.flights: dict[tuple[str, str], tuple[Running, Attempt]] = {}
        self.records: list[Any] = []
        self._later: list[tuple[int, int, Running, Callable[[], None]]] = []
        self._soon: list[tuple[Running, Callable[[], None]]] = []
        self._entered = 0

    @property
    def now(self) -> float:
        """Seconds since the start."""
        seconds = (self.instant - START) / SECOND
        return int(seconds) if seconds.is_integer() else seconds

    # Time.

    def soon(self, running: Running, call: Callable[[], None]) -> None:
        self._soon.append((running, call))

    def later(self, seconds: float, running: Running, call: Callable[[], None]) -> None:
        self._entered += 1
        due = self.instant + round(seconds * SECOND)
        heappush(self._later, (due, self._entered, running, call))

    def settle(self) -> None:
        """Do all that is to be done at this instant."""
        while True:
            notices = self.engine.take_notices()
            for notice in notices:
                self._obey(notice)
            if self._soon:
                running, call = self._soon.pop(0)
                if not running.dead:
                    call()
            elif not notices:
                wake = self.engine.wake_at()
                if wake is None or wake > self.instant:
                    break
                self.engine.advance(self.instant)
        self.records += self.engine.take_records()

    def advance(self, seconds: float) -> None:
        """Let so much time pass, from one due instant to the next."""
        self.settle()
        end = self.instant + round(seconds * SECOND)
        while True:
            wake = self.engine.wake_at()
            due = [due for due in (wake, self._next_later()) if due is not None and due <= end]
            if not due:
                break
            self.instant = max(self.instant, min(due))
            self.engine.advance(self.instant)
            self.settle()
            while self._later and self._later[0][0] <= self.instant:
                _, _, running, call = heappop(self._later)
                if not running.dead:
                    call()
                    self.settle()
        self.instant = end
        wake = self.engine.wake_at()
        assert wake is None or wake > end

    def to(self, seconds: float) -> None:
        """Advance to so many seconds after the start."""
        self.advance(seconds - self.now)

    def _next_later(self) -> int | None:
        return self._later[0][0] if self._later else None

    def _obey(self, notice: object) -> None:
        match notice:
            case Run(workflow, id):
                self._begin(workflow, id)
            case Stop(_, id):
                self.running.pop(id).dead = True
            case Ready(_, id, key):
                self.running[id].decide(key)
            case WantDelay(_, id):
                self.running[id].give_delay(notice)
            case Rollback(_, id):
                self.running[id].roll_back()
            case Ended(_, id):
                self.ended.append((self.now, id))

    def _begin(self, workflow: str, id: str) -> None:
        execution = self.engine.begin(workflow, id, self.instant)
        if execution is None:
            return
        running = self.running[id] = Running(self, execution)
        self.runs.append((self.now, id))
        main = running.start(self.code(running))

        def over() -> None:
            now = self.instant
            if main.error is not None:
                self.engine.raised(execution, error_of(main.error), now)
            else:
                output = None if main.value is None else json.dumps(main.value).encode()
                self.engine.finished(execution, output, now)

        if main.done:
            over()
        else:
            main.callbacks.append(over)

    # What a test does.

    def create(self, id: str = "i", **arguments: Any) -> None:
        self.engine.create("w", id, b"{}", self.instant, **arguments)
        self.settle()

    def end(self, id: str, target: str, value: object = None) -> None:
        """End a pending attempt with a value, or with an exception."""
        running, attempt = self.flights[id, target]
        if running.dead:
            return
        if isinstance(value, Exception):
            running.failed(attempt, value)
        else:
            running.succeeded(attempt, value)
        self.settle()

    def verb(self, verb: str, /, id: str = "i", **arguments: Any) -> None:
        """`pause`, `resume`, `terminate`, `restart`, `delete`."""
        getattr(self.engine, verb)("w", id, self.instant, **arguments)
        self.settle()

    def send(self, type: str, payload: object = None, id: str = "i") -> None:
        self.engine.send_event("w", id, type, json.dumps(payload).encode(), self.instant)
        self.settle()

    def lose(self, id: str = "i", *, settle: bool = True) -> None:
        """The isolate of the execution loses power."""
        running = self.running.pop(id, None)
        if running is not None:
            running.dead = True
        self.engine.lost("w", id, self.instant)
        if settle:
            self.settle()

    def restore(self, *, wake: bool | None = None) -> None:
        """A new process on what the old one stored; everything in memory is gone."""
        self.records += self.engine.take_records()
        for running in self.running.values():
            running.dead = True
        self.running = {}
        self.engine = Engine(self.profile)
        self.engine.configure([self.rules])
        self.engine.replay(json_of(self.records))
        self.engine.recover(self.instant, wake=wake)
        self.settle()

    @property
    def view(self) -> InstanceView:
        return self.engine.status("w", "i")

    @property
    def status(self) -> str:
        return self.view.status.value

    @property
    def output(self) -> object:
        output = self.view.output
        return None if output is None else json.loads(output)

    @property
    def steps(self) -> dict[str, StepView]:
        return {f"{s.name}-{s.count}": s for s in self.engine.steps("w", "i")}

    @property
    def history(self) -> list[HistoryRow]:
        return self.engine.history("w", "i")

    @property
    def trace(self) -> list[int]:
        return [int(row.event) for row in self.history]

    def times(self, target: str) -> list[float]:
        """When the attempts of a step started."""
        return [at for at, name, _ in self.calls if name == target]


def json_of(records: list[Any]) -> list[Any]:
    """Records as they come back from a store: lists instead of tuples."""
    return [_listed(record) for record in records]


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def failing(message: str = "boom") -> Callable[[Attempt], object]:
    """A body that always raises."""

    def body(attempt: Attempt) -> object:
        raise RuntimeError(message)

    return body


def gives(value: object) -> Callable[[Attempt], object]:
    """A body that returns at once."""
    return lambda attempt: value


def lasts(seconds: float, then: object = None) -> Callable[[Attempt], object]:
    """A body that takes so long."""
    return lambda attempt: Takes(seconds, then)
