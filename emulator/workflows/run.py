"""One execution of `run`: user code's side of it.

What the engine decides about a step is carried out here: a body is called, a result or an error is
handed over, a promise is kept waiting. Bodies and rollback handlers are tasks of the run's own, so
that a power cut or a `Stop` takes all of it at once. The run lives on after `run` has ended as long
as attempts or rollbacks go on.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from emulator.durations import describe
from emulator.errors import WorkerLoadError
from emulator.event_record import Onset, Place
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.location import asked_by, caller
from emulator.runtime.context import ExecutionContext
from emulator.runtime.proxies import wrap
from emulator.runtime.rpc import raw_env
from emulator.runtime.sdk.entrypoints import WorkflowEntrypoint
from emulator.runtime.sdk.workflow_errors import folded, is_final, run_error, step_error
from emulator.runtime.sdk.workflows import call_step_function, run_workflow
from emulator.values import (
    UNDEFINED,
    JsException,
    from_milliseconds,
    from_v8,
    to_milliseconds,
    to_v8,
)
from emulator.workflows import grammar
from emulator.workflows.bindings import WorkflowStep
from emulator.workflows.model import (
    BLOCKED,
    PARKED,
    Attempt,
    DelayFailed,
    Done,
    ErrorInfo,
    Failed,
)
from emulator.workflows.shown import decoded, event_object, raised, received
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from emulator.isolate import Isolate
    from emulator.location import Location
    from emulator.workflow_config import WorkflowConfig
    from emulator.workflows.execution import Execution
    from emulator.workflows.journal import Step
    from emulator.workflows.model import RollbackAttempt
    from emulator.workflows.service import Workflows

# None between steps; in a step's body, whether the platform would repeat it.
_IN_STEP: ContextVar[bool | None] = ContextVar("in_step", default=None)
_DELAY_TIME = 5_000_000  # how long a delay function may take (R3)
_RETRIED = (
    "before compatibility date 2026-04-21 production retries a NonRetryableError like any other "
    "error, since the SDK frozen in the runtime does not tell the engine of it: use a newer date, "
    "or the flag enable_python_external_sdk"
)


class Call:
    """A step that `run` asked for: its body, and the promise that is to be kept."""

    __slots__ = ("body", "delay", "promise")

    def __init__(self, promise: asyncio.Future[Any], body: Any = None, delay: Any = None) -> None:
        self.promise = promise
        self.body = body
        self.delay = delay


class WorkflowRun(Invocation):
    """One execution of a Workflow instance."""

    minds_effects = True

    def __init__(
        self,
        isolate: Isolate,
        execution: Execution,
        config: WorkflowConfig,
        workflows: Workflows,
    ) -> None:
        super().__init__(isolate, f"workflow {execution.workflow} {execution.id}")
        self.execution = execution
        self.sender = self.subject
        self.limit = None
        self.stopped = False  # by the engine, which knows
        self._config = config
        self._workflows = workflows
        self._calls: dict[str, Call] = {}
        self._handlers: dict[str, Any] = {}
        self._read: set[tuple[str, Location]] = set()
        self._busy = 0  # bodies and handlers that run
        self._suspected: tuple[Step, str, Location | None] | None = None

    # -- life ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Call `run`."""
        self.watch(Onset.call("run"), Place(self._config.class_name, model="workflow"))
        self.start(self._run())

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed."""
        super().cut_links()
        del self._workflows, self.execution

    def stop(self) -> None:
        """Let no line of it run any more, because the engine says so."""
        self.stopped = True
        self.kill()

    async def _run(self) -> None:
        try:
            output = await run_workflow(self._entrypoint(), self._event(), WorkflowStep(self))
            data = None if output is UNDEFINED else self._stored(output)
        except BaseException as error:
            if is_foreign(error):
                raise
            self.threw(error)
            self.fails()
            told = run_error(error)
            ordinary = told is not error and not is_final(error)
            self._failed(ErrorInfo(told.name, told.message), ordinary=ordinary)
        else:
            self._finished(data)
        self.judge_replay()
        self._workflows.touch()

    def _finished(self, data: bytes | None) -> None:
        self._workflows.engine.finished(self.execution, data, self.kernel.now)

    def _failed(self, error: ErrorInfo, *, ordinary: bool) -> None:
        engine, now = self._workflows.engine, self.kernel.now
        engine.raised(self.execution, error, now, ordinary=ordinary)

    def _stored(self, output: Any) -> bytes:
        try:
            return to_v8(output)
        except JsException as error:
            if self.kernel.profile == "miniflare" and error.message.startswith("function"):
                text = "RpcStub cannot be serialized in this context."
                raise JsException("DataCloneError", text) from error
            raise

    def _entrypoint(self) -> Any:
        cls = workflow_class(self.isolate, self._config)
        return cls(wrap(ExecutionContext(self, patched=True)), raw_env())

    def _event(self) -> dict[str, Any]:
        execution = self.execution
        event: dict[str, Any] = {
            "timestamp": from_milliseconds(execution.timestamp // 1000),
            "payload": from_v8(execution.params),
            "instanceId": execution.id,
            "workflowName": execution.workflow,
        }
        if execution.schedule is not None:
            cron, at = execution.schedule
            event["schedule"] = {"cron": cron, "scheduledTime": at // 1000}
        return event

    def _main_finished(self) -> None:
        self.main_done = True
        if not self.dead:
            self.end_if_idle()

    def end_if_idle(self) -> None:
        """End when neither `run` nor a body nor a rollback goes on."""
        idle = self.main_done and not self.background.pending and not self._busy
        if idle and not self._workflows.rolls_back(self):
            self.end()

    # -- what `step` does ------------------------------------------------------------------------

    def ask(self, question: Callable[[], tuple[str, Call]]) -> asyncio.Future[Any]:
        """Ask for a step; what the platform refuses is the promise's error."""
        try:
            key, call = question()
        except EngineError as error:
            promise = self.kernel.loop.create_future()
            promise.set_exception(raised(self.kernel.profile, error))
            promise.exception()  # not awaiting it is a finding of its own
            return promise
        self._calls[key] = call
        self.proceed(key)
        self._workflows.touch()
        return call.promise

    def do(self, name: str, config: Any, body: Any, options: Any) -> tuple[str, Call]:
        """Ask for a step with a body."""
        grammar.check_callback(name, body if callable(body) else None)
        options = None if options is UNDEFINED else options
        handler, undo = (
            grammar.check_rollback(name, options) if options is not None else (None, None)
        )
        key = self.execution.do(
            name, config, has_rollback=handler is not None, rollback_config=undo
        )
        if handler is not None:
            self._handlers[key] = handler
        self._suspect("step", name, key)
        return key, Call(self._promise(), body, _delay_function(config))

    def sleep(self, name: str, duration: Any) -> tuple[str, Call]:
        """Ask for a sleep."""
        key = self.execution.sleep(name, _number_or_text(duration))
        self._compare_sleep(name, key, self.execution.asks[key].milliseconds)
        self._suspect("sleep", name, key)
        return key, Call(self._promise())

    def sleep_until(self, name: str, moment: Any) -> tuple[str, Call]:
        """Ask for a sleep until a Date or a number of milliseconds."""
        now = self.kernel.now
        key = self.execution.sleep_until(name, _milliseconds(moment), now)
        known = self.execution.instance.steps.get(key)
        if known is not None:
            self._compare_sleep(name, key, _milliseconds(moment) - known.started / 1000)
        self._suspect("sleep", name, key)
        return key, Call(self._promise())

    def _compare_sleep(self, name: str, key: str, milliseconds: float) -> None:
        """Look whether a replay asks for another time than before, which production ignores."""
        known = self.execution.instance.steps.get(key)
        if known is not None and known.timeout != milliseconds:
            text = (
                f"the sleep {name!r} was started with {_described(known.timeout)}, and a replay "
                f"asked for {_described(milliseconds)}: the first call fixes when it ends"
            )
            self.find("sleep_changed", text, caller())

    def wait(self, name: str, kind: str, timeout: Any) -> tuple[str, Call]:
        """Ask for an event."""
        given = None if timeout is UNDEFINED or timeout is None else timeout
        key = self.execution.wait(name, kind, given)
        self._suspect("wait", name, key)
        return key, Call(self._promise())

    def _promise(self) -> asyncio.Future[Any]:
        return self.kernel.loop.create_future()

    # -- what the engine decides -----------------------------------------------------------------

    def proceed(self, key: str) -> None:
        """Do what the engine decides about a step now."""
        call = self._calls.get(key)
        if call is None or self.gone:
            return
        fresh = key not in self.execution.instance.steps
        decision = self._workflows.engine.decide(self.execution, key, self.kernel.now)
        match decision:
            case Done(output, event):
                value = decoded(output) if event is None else event_object(event)
                self._keep(call, value)
            case Failed(error, replayed):
                if replayed and self.kernel.profile == "miniflare":
                    error = ErrorInfo("Error", error.message)  # its class is not stored
                _refuse(call.promise, raised(self.kernel.profile, error))
            case Attempt():
                self._workflows.attempt(self, call, decision)
            case _ if decision is PARKED:
                if self._suspected is not None and not self.execution.instance.flying:
                    self.at_end_of_instant(self.judge_replay)
                self._workflows.parked(self, key, fresh=fresh)
            case _:
                assert decision is BLOCKED

    def _keep(self, call: Call, value: Any) -> None:
        if not call.promise.done():
            call.promise.set_result(value)

    def run_body(
        self,
        call: Call,
        attempt: Attempt,
        then: Callable[[Any, Any], None],
        *,
        repeated: bool,
    ) -> None:
        """Call a step's body; `then` gets its value, or its error."""
        ctx = {
            "step": {"name": attempt.name, "count": attempt.count},
            "attempt": attempt.number,
            "config": grammar.shown_config(attempt.config),
        }
        self.spawn(call.body, (ctx,), then, f"step {attempt.name}", repeated=repeated)

    def run_rollback(self, attempt: RollbackAttempt, then: Callable[[Any, Any], None]) -> bool:
        """Call a rollback handler; false if there is none."""
        handler = self._handlers.get(attempt.key)
        if handler is None:
            return False
        given = {
            "ctx": {
                "step": {"name": attempt.name, "count": attempt.count},
                "attempt": attempt.attempt,
                "config": grammar.shown_config(attempt.config),
            },
            "error": self._trigger(attempt.error),
            "output": decoded(attempt.output),
            "stepName": attempt.step_name,
        }
        self.spawn(handler, (given,), then, f"rollback of {attempt.name}")
        return True

    def _trigger(self, error: ErrorInfo) -> JsException:
        """What a rollback handler is told; locally without the class of the engine's own (K8)."""
        seen = JsException(error.name, error.message)
        if self.kernel.profile == "production":
            return seen
        return JsException("Error", error.message) if error.name == "Terminated" else folded(seen)

    def ask_delay(
        self, key: str, attempt: int, error: ErrorInfo, then: Callable[[Any], None]
    ) -> None:
        """Ask a step's delay function how long to wait before it is tried again (R3)."""
        call = self._calls[key]
        answered: list[object] = []

        def answer(value: Any) -> None:
            if not answered:
                answered.append(value)
                timer.cancel()
                then(value)

        def ended(value: Any, failure: BaseException | None) -> None:
            if failure is not None:
                answer(DelayFailed("threw", _message(failure)))
            else:
                answer(value)

        timer = self.kernel.loop.kernel_at(
            self.kernel.now + _DELAY_TIME,
            lambda: answer(DelayFailed("timeout")),
            owner="a delay function's time",
        )
        step = self.execution.instance.steps[key]
        ctx = {
            "step": {"name": step.name, "count": step.count},
            "attempt": attempt,
            "config": {} if step.config is None else grammar.shown_config(step.config),
        }
        given = {"ctx": ctx, "error": raised(self.kernel.profile, error)}
        self.spawn(call.delay, (given,), ended, "a delay function")

    def spawn(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        then: Callable[[Any, Any], None],
        name: str,
        *,
        repeated: bool = True,
    ) -> None:
        """Call a function of user code's as a task of the run's own; `then` is told how it went."""
        self._busy += 1
        body = self._body(function, arguments, then, repeated=repeated)
        self.kernel.loop.spawn(self, body, name)

    async def _body(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        then: Callable[[Any, Any], None],
        *,
        repeated: bool,
    ) -> None:
        _IN_STEP.set(repeated)
        value: Any = UNDEFINED
        failure: BaseException | None = None
        try:
            value = await call_step_function(function, *arguments)
        except BaseException as error:
            if is_foreign(error):
                raise
            failure = error
        self._busy -= 1
        self.kernel.loop.kernel_soon(self._body_ended, then, value, failure)

    def _body_ended(
        self, then: Callable[[Any, Any], None], value: Any, failure: BaseException | None
    ) -> None:
        if not self.gone:
            then(value, failure)
            self.end_if_idle()

    # -- reports ---------------------------------------------------------------------------------

    def told(self, error: BaseException) -> ErrorInfo:
        """What the engine gets of what a body or a handler raised."""
        modern = "enable_python_external_sdk" in self.flags
        if not modern and is_final(error):
            self._warn_of_retries()
        seen = step_error(error, self.isolate.worker.folder, modern=modern)
        return received(self.kernel.profile, seen)

    def _warn_of_retries(self) -> None:
        id = (self.execution.workflow, self.execution.id)
        if id not in self._workflows.warned:
            self._workflows.warned.add(id)
            self.log("warn", _RETRIED)

    def repeats(self) -> bool:
        """Whether the platform repeats the code that runs now: a step with a retry left."""
        return bool(_IN_STEP.get())

    def _suspect(self, kind: str, name: str, key: str) -> None:
        """Remember a new step of a replay that came where a known one was expected (O-17)."""
        execution = self.execution
        known = execution.instance.steps
        if execution.number == 1 or key in known or self._suspected is not None:
            return
        missed = next((step for step in known.values() if step.key not in execution.asks), None)
        if missed is not None:
            self._suspected = (missed, f"{kind} {name!r}", caller())

    def judge_replay(self) -> None:
        """Report a replay that never asked for what was there before.

        Called when `run` comes to rest: branches that run side by side may change places.
        """
        if self._suspected is None:
            return
        expected, met, where = self._suspected
        if expected.key not in self.execution.asks:
            self._suspected = None
            text = (
                f"the replay expected the {expected.kind} {expected.name!r}, and `run` asked for "
                f"the {met}: names and order may depend on the event and on results only"
            )
            self.find("replay_diverged", text, where)

    def reads(self, what: str) -> None:
        """Note that `run` asked for what is different at each replay (O-16)."""
        if _IN_STEP.get() is not None or self.gone:
            return
        where = asked_by()
        if where is None or (what, where) in self._read:
            return
        self._read.add((what, where))
        text = (
            f"{what} is read outside a step: it is another one each time `run` starts over, after "
            "a sleep, a wait, a crash; read it in a step (`sleep_until` keeps its first moment)"
        )
        self.find("effect_outside_step", text, where)

    def effect(self, what: str) -> None:
        """Note an effect of user code; between steps it happens again at each replay (O-16)."""
        if _IN_STEP.get() is None:
            self.execution.repeats = True
            text = (
                f"{what} outside a step: it happens again each time `run` starts over, after a "
                "sleep, a wait, a crash; put it into a step"
            )
            self.find("effect_outside_step", text, caller())


def workflow_class(isolate: Isolate, config: WorkflowConfig) -> type[Any]:
    """The class of a Workflow; raises `WorkerLoadError` if the Worker does not export it."""
    named = isolate.script.named
    cls = config.cls if config.cls is not None else named.get(config.class_name)
    if cls is None or not issubclass(cls, WorkflowEntrypoint):
        known = [name for name, one in named.items() if issubclass(one, WorkflowEntrypoint)]
        raise WorkerLoadError(
            f"the Workflow {config.name!r} needs {config.class_name}, a WorkflowEntrypoint that "
            f"the Worker {isolate.worker.name} exports; it exports: {', '.join(known) or 'none'}"
        )
    return cls


def _described(milliseconds: float) -> str:
    return describe(round(milliseconds * 1000))


def _refuse(promise: asyncio.Future[Any], error: Exception) -> None:
    if not promise.done():
        promise.set_exception(error)
        promise.exception()


def _message(error: BaseException) -> str:
    return error.message if isinstance(error, JsException) else str(error)


def _delay_function(config: Any) -> Any:
    retries = config.get("retries") if isinstance(config, dict) else None
    delay = retries.get("delay") if isinstance(retries, dict) else None
    return delay if callable(delay) else None


def _number_or_text(duration: Any) -> Any:
    if duration is UNDEFINED:
        raise EngineError("TypeError", "Cannot read properties of undefined (reading 'toString')")
    return duration


def _milliseconds(moment: Any) -> float:
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        return float(moment)
    if hasattr(moment, "timestamp"):
        return float(to_milliseconds(moment))
    return float("nan")
