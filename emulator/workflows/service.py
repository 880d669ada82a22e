"""The Workflows of one emulator: the engine, and everything between it and the code it runs.

The engine decides and leaves notices; `attend` carries them out in the kernel's own turn, never in
the middle of user code. One timer stands for everything that falls due.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.tasks import Answer
from emulator.values import UNDEFINED, JsException, to_v8
from emulator.workflows import texts
from emulator.workflows.attempts import Attempts
from emulator.workflows.bindings import WorkflowImpl
from emulator.workflows.engine import Engine
from emulator.workflows.livelock import Livelock
from emulator.workflows.model import (
    Ended,
    ErrorInfo,
    Gone,
    Hibernate,
    NewInstance,
    Ready,
    Rollback,
    RollbackAttempt,
    Run,
    Schedule,
    Stop,
    WantDelay,
)
from emulator.workflows.rehearsal import Rehearsal
from emulator.workflows.run import WorkflowRun
from emulator.workflows.shown import raised
from emulator.workflows.subscription import Feed
from emulator.workflows.subscription import note as note_of
from emulator.workflows.texts import EngineError
from emulator.workflows.traced import traced

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from emulator.faults import Fault
    from emulator.invocation import Invocation
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.loop import Timer
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig
    from emulator.workflow_config import WorkflowConfig
    from emulator.workflows.model import (
        Attempt,
        BatchResult,
        Lane,
        Notice,
        Profile,
        Record,
        WorkflowRules,
    )
    from emulator.workflows.run import Call

# One timer each; a passive one is nothing that `settle` waits for, and one that tidies nothing that
# anybody waits for.
_LANES: tuple[Lane, ...] = ("work", "sleep", "wait", "idle", "kept")
_TIDYING: frozenset[Lane] = frozenset({"idle", "kept"})
_PASSIVE: frozenset[Lane] = _TIDYING | {"wait"}
# What can happen to an event that a test sends: there is no Worker to crash.
_OF_TESTS = frozenset({"duplicate", "delay", "drop", "fail", "lose_reply"})
_INTERNAL = ErrorInfo("WorkflowInternalError", "Internal server error")


class Workflows:
    """Workflows with their Workers; what tests see of one is `control.Workflow`."""

    def __init__(self, kernel: Kernel, rules: Sequence[WorkflowRules]) -> None:
        self.kernel = kernel
        self.profile: Profile = kernel.profile
        self._rules = rules
        self._feeds: dict[tuple[str, str], Feed] = {}
        self.attempts = Attempts(self)
        self._livelock = Livelock(kernel)
        self.engine = self._new_engine()
        self.configs: dict[str, WorkflowConfig] = {}
        self.workers: dict[str, Worker] = {}
        self._runs: dict[tuple[str, str], WorkflowRun] = {}
        self._bindings: list[WorkflowImpl] = []
        self._timers: dict[Lane, Timer] = {}
        self._touched = False
        self.warned: set[tuple[str, str]] = set()  # instances whose log has a warning already
        kernel.pending.append(self._describe_pending)

    def _new_engine(self) -> Engine:
        engine = Engine(self.profile, observe=self._observe)
        engine.configure(self._rules)
        return engine

    def _observe(self, record: Record) -> None:
        event = traced(self.engine, record)
        if event is not None:
            kind, subject, facts = event
            self.kernel.record(kind, subject, **facts)
        workflow, id = record[1], record[2]
        if record[0] == "delete":
            self._feeds.pop((workflow, id), None)
            return
        if record[0] == "take":
            self.attempts.consumed(workflow, id, self.engine.step_of(workflow, id, record[4]).type)
        noted = note_of(self.engine, record)
        if noted is not None:
            self._feed(workflow, id).note(noted)

    def _feed(self, workflow: str, id: str) -> Feed:
        feed = self._feeds.get((workflow, id))
        if feed is None:
            feed = self._feeds[workflow, id] = Feed(self.kernel)
        return feed

    def feed(self, workflow: str, id: str) -> Feed:
        """The events of an instance that exists; raises `EngineError`."""
        self.engine.status(workflow, id)
        return self._feed(workflow, id)

    def add(self, config: WorkflowConfig, worker: Worker) -> None:
        """The Worker that has the class of a Workflow."""
        self.configs[config.name], self.workers[config.name] = config, worker

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The bindings of a Worker to the Workflows that are there."""
        found = {
            workflow.binding: WorkflowImpl(workflow.name, self)
            for workflow in config.workflows
            if workflow.name in self.engine.workflows
        }
        self._bindings += found.values()
        return {**found}

    # -- calls of user code and of tests ---------------------------------------------------------

    def call(
        self, invocation: Invocation, perform: Callable[[], Any], *, site: str = ""
    ) -> asyncio.Future[Any]:
        """Do something for a caller when its turn comes; faults of `site` strike on the way."""
        answer = Answer(loop=self.kernel.loop)
        caller = (invocation, invocation.repeats())
        self.kernel.loop.kernel_soon(self._perform, caller, perform, site, answer)
        return answer

    def _perform(
        self,
        caller: tuple[Invocation, bool],
        perform: Callable[[], Any],
        site: str,
        answer: asyncio.Future[Any],
    ) -> None:
        invocation, repeats = caller
        if invocation.dead and invocation.gone:
            return
        fault = calls.meet(invocation, site, repeats=repeats).ending
        if fault == "crash_before":
            invocation.cut_power()
            return
        if fault == "fail":
            calls.reject(answer, raised(self.profile, _INTERNAL))
            return
        result, refused = None, None
        try:
            result = perform()
        except EngineError as error:
            refused = raised(self.profile, error)
        except JsException as error:
            refused = error
        self._tell(invocation, fault, answer, result, refused)
        self.attend()

    def _tell(
        self,
        invocation: Invocation,
        fault: str,
        answer: asyncio.Future[Any],
        result: Any,
        refused: JsException | None,
    ) -> None:
        """Answer a call that was performed, or refused, unless a fault takes the answer away."""
        if fault == "crash_after":
            invocation.cut_power()
        elif fault == "lose_reply":
            calls.reject(answer, raised(self.profile, _INTERNAL))
        elif refused is not None:
            calls.reject(answer, refused)
        else:
            calls.resolve(answer, result)

    def create(self, workflow: str, item: NewInstance, trigger: str = "binding") -> None:
        """Create one instance."""
        id, params, retention = item
        now = self.kernel.now
        self.engine.create(workflow, id, params, now, trigger=trigger, retention=retention)
        self._created(workflow, id)

    def is_scheduled(self, worker: Worker, cron: str) -> bool:
        """Whether a cron trigger of a Worker starts Workflows."""
        return any(True for _ in self._scheduled(worker, cron))

    def fire(self, worker: Worker, cron: str, at: int) -> None:
        """Create the instances that a cron trigger starts, once for an instant (B11, B14)."""
        for name in self._scheduled(worker, cron):
            id = f"{cron}-{at // 1000}"
            schedule = Schedule(cron, at)
            with suppress(EngineError):  # it was there
                params, now = to_v8({}), self.kernel.now
                self.engine.create(name, id, params, now, trigger="cron", schedule=schedule)
                self._created(name, id)
        self.attend()

    def _scheduled(self, worker: Worker, cron: str) -> Iterator[str]:
        for name, config in self.configs.items():
            if self.workers[name] is worker and cron in config.schedules:
                yield name

    def create_batch(
        self, workflow: str, items: Sequence[NewInstance], trigger: str = "binding"
    ) -> list[str]:
        """Create several instances; ids that exist are left out."""
        made = self.engine.create_batch(workflow, items, self.kernel.now, trigger=trigger)
        for id in made:
            self._created(workflow, id)
        return made

    def create_each(self, workflow: str, items: Sequence[NewInstance]) -> BatchResult:
        """Create several instances, each on its own."""
        result = self.engine.create_each(workflow, items, self.kernel.now)
        for id in result.done:
            self._created(workflow, id)
        return result

    def _created(self, workflow: str, id: str) -> None:
        for kind, payload in self.attempts.created(workflow, id):
            self.engine.send_event(workflow, id, kind, payload, self.kernel.now)

    def delete_batch(self, workflow: str, ids: Sequence[Any]) -> BatchResult:
        """Delete several instances."""
        return self.engine.delete_batch(workflow, ids, self.kernel.now)

    def control(self, verb: str, workflow: str, id: str, /, **options: Any) -> object:
        """Pause, resume, terminate, restart or delete an instance."""
        getattr(self.engine, verb)(workflow, id, self.kernel.now, **options)
        if verb == "restart":
            for kind, payload in self.attempts.events_of(workflow, id):
                self.engine.send_event(workflow, id, kind, payload, self.kernel.now)
        return UNDEFINED

    def send_event(
        self, invocation: Invocation, workflow: str, id: str, kind: str, payload: bytes | None
    ) -> asyncio.Future[Any]:
        """Send an event, from user code or a test; the faults of `event` strike either."""
        answer = Answer(loop=self.kernel.loop)
        caller = (invocation, invocation.repeats())
        event = (workflow, id, kind, payload)
        self.kernel.loop.kernel_soon(self._send_event, caller, event, answer)
        return answer

    def _send_event(
        self,
        caller: tuple[Invocation, bool],
        event: tuple[str, str, str, bytes | None],
        answer: asyncio.Future[Any],
    ) -> None:
        invocation, repeats = caller
        if invocation.dead and invocation.gone:
            return
        workflow, id, kind, _ = event
        faults = self.kernel.faults.meet(
            site_name("event", workflow, kind),
            in_request=invocation.in_request and not invocation.main_done,
            retried=repeats,
            available=_OF_TESTS if invocation.is_test else None,
        )
        actions = [fault.action for fault in faults]
        invocation.struck = invocation.struck or bool(actions)
        if "crash_before" in actions:
            invocation.cut_power()
            return
        if "fail" in actions:
            calls.reject(answer, raised(self.profile, _INTERNAL))
            return
        refused = None
        try:
            self.engine.status(workflow, id)
            if "drop" in actions:
                self.kernel.record("lost", f"workflow {workflow} {id}", type=kind)
            else:
                self._deliver_with(faults, *event)
        except EngineError as error:
            refused = raised(self.profile, error)
        ending = next((name for name in ("crash_after", "lose_reply") if name in actions), "")
        self._tell(invocation, ending, answer, UNDEFINED, refused)
        self.attend()

    def _deliver_with(
        self, faults: Sequence[Fault], workflow: str, id: str, kind: str, payload: bytes | None
    ) -> None:
        """Deliver an event as late, and as often, as faults say."""
        deliver = partial(self._deliver, workflow, id, kind, payload)
        delays = [fault.argument or 0 for fault in faults if fault.action == "delay"]
        if delays:
            self._later(sum(delays), deliver)
        else:
            deliver()
        for fault in faults:
            if fault.action == "duplicate":
                self._later(fault.argument or 0, deliver)

    def _deliver(self, workflow: str, id: str, kind: str, payload: bytes | None) -> None:
        self.engine.send_event(workflow, id, kind, payload, self.kernel.now)

    def _later(self, delay: int, deliver: Callable[[], None]) -> None:
        def strike() -> None:
            try:
                deliver()
            except EngineError:
                return  # the instance is over: nobody is left to be told
            self.attend()

        self.kernel.loop.kernel_at(
            self.kernel.now + delay, strike, owner="an event that a fault delayed"
        )

    # -- notices ---------------------------------------------------------------------------------

    def touch(self) -> None:
        """Attend to the engine's notices at the next turn: user code asked for something."""
        if not self._touched:
            self._touched = True
            self.kernel.loop.kernel_soon(self._attend_soon)

    def _attend_soon(self) -> None:
        self._touched = False
        self.attend()

    def attend(self) -> None:
        """Carry out what the engine noticed, and set the timer."""
        while notices := self.engine.take_notices():
            for notice in notices:
                self._carry_out(notice)
        self._arm()

    def _carry_out(self, notice: Notice) -> None:
        key = (notice.workflow, notice.id)
        run = self._runs.get(key)
        match notice:
            case Run():
                self._begin(*key)
            case Stop() | Gone() if run is not None:
                self._stop(run)
            case Hibernate() if run is not None:
                self.kernel.record("workflow_hibernated", run.subject)
                self._stop(run)
            case Ready(_, _, step) if run is not None:
                run.proceed(step)
            case WantDelay(_, _, step, attempt, error) if run is not None:
                run.ask_delay(step, attempt, error, partial(self._delay, run, step, attempt, error))
            case Rollback() if run is not None:
                self._roll_back(run)
            case Ended():
                if run is not None:
                    self.kernel.loop.kernel_soon(self._end_if_idle, run)

    def _begin(self, workflow: str, id: str) -> None:
        worker, config = self.workers[workflow], self.configs[workflow]
        now = self.kernel.now
        execution = self.engine.begin(workflow, id, now)
        if execution is None:
            return
        try:
            isolate = worker.isolate
        except WorkerLoadError as error:
            told_error = ErrorInfo("Error", str(error))
            self.engine.raised(execution, told_error, now)
            return
        run = WorkflowRun(isolate, execution, config, self)
        run.on_killed = partial(self._lost, run)
        run.on_end = partial(self._over, run)
        self._runs[workflow, id] = run
        run.begin()

    def rehearse(self, workflow: str, id: str) -> Rehearsal:
        """Start `run` of a finished instance once more; raises `ValueError` for another one."""
        execution = self.engine.rehearse(workflow, id)
        isolate, config = self.workers[workflow].isolate, self.configs[workflow]
        run = Rehearsal(isolate, execution, config, self)
        run.on_killed = run.on_end = run.finish
        run.begin()
        return run

    def _stop(self, run: WorkflowRun) -> None:
        del self._runs[run.execution.workflow, run.execution.id]
        self.attempts.leave(run)
        run.stop()

    def _lost(self, run: WorkflowRun) -> None:
        key = (run.execution.workflow, run.execution.id)
        if run.stopped or self._runs.get(key) is not run:
            return
        del self._runs[key]
        self.attempts.leave(run)
        self._livelock.lost(run.execution)
        self.engine.lost(*key, self.kernel.now)
        self.touch()

    def _over(self, run: WorkflowRun) -> None:
        key = (run.execution.workflow, run.execution.id)
        if self._runs.get(key) is run:
            del self._runs[key]

    def _end_if_idle(self, run: WorkflowRun) -> None:
        if not run.gone:
            run.end_if_idle()

    def _delay(
        self, run: WorkflowRun, key: str, attempt: int, error: ErrorInfo, value: Any
    ) -> None:
        if run.gone:
            return
        now = self.kernel.now
        self.engine.attempt_failed(run.execution, key, attempt, error, now, delay=value)
        run.proceed(key)
        self.attend()

    # -- rollbacks -------------------------------------------------------------------------------

    def rolls_back(self, run: WorkflowRun) -> bool:
        """Whether a rollback goes on, for which the run has the handlers."""
        return run.execution.instance.undoing is not None

    def _roll_back(self, run: WorkflowRun) -> None:
        engine = self.engine
        while True:
            attempt = engine.next_rollback(run.execution, self.kernel.now)
            if not isinstance(attempt, RollbackAttempt):
                return
            if run.run_rollback(attempt, partial(self._rolled_back, run, attempt)):
                return
            engine.rollback_missing(run.execution, attempt.key, self.kernel.now)

    def _rolled_back(
        self, run: WorkflowRun, attempt: Any, value: Any, failure: BaseException | None
    ) -> None:
        now = self.kernel.now
        if failure is None:
            self.engine.rollback_succeeded(run.execution, attempt.key, attempt.number, now)
        else:
            error = run.told(failure)
            self.engine.rollback_failed(run.execution, attempt.key, attempt.number, error, now)
        self._roll_back(run)
        self.attend()

    # -- steps -----------------------------------------------------------------------------------

    def attempt(self, run: WorkflowRun, call: Call, attempt: Attempt) -> None:
        """Start an attempt that the engine decided on."""
        self.attempts.start(run, call, attempt)

    def parked(self, run: WorkflowRun, key: str, *, fresh: bool) -> None:
        """A step waits."""
        self.attempts.parked(run, key, fresh=fresh)

    # -- time ------------------------------------------------------------------------------------

    def _arm(self) -> None:
        for lane in _LANES:
            due = self.engine.wake_at(lane)
            if due is not None:
                due = max(due, self.kernel.now)
            timer = self._timers.get(lane)
            if timer is not None:
                if timer.due == due:
                    continue
                self._timers.pop(lane).cancel()
            if due is not None:
                self._timers[lane] = self.kernel.loop.kernel_at(
                    due,
                    partial(self._strike, lane),
                    owner=self.engine.what_is_due(lane),
                    passive=lane in _PASSIVE,
                )
                self._timers[lane].tidies = lane in _TIDYING

    def _strike(self, lane: Lane) -> None:
        self._timers.pop(lane, None)
        self.engine.advance(self.kernel.now)
        self.attend()

    @property
    def only_sleeps(self) -> bool:
        """Whether a sleep is all that the loop has still to do."""
        return "sleep" in self._timers and not self.kernel.loop.has_work_besides(1)

    # -- life ------------------------------------------------------------------------------------

    def evict_run(self, run: WorkflowRun, *, goes_on: bool = False) -> None:
        """Drop the memory of a Worker: this run starts over, what else runs finishes in the old.

        A run that `goes_on` has not been told of a step's end, and starts over at once.
        """
        key = (run.execution.workflow, run.execution.id)
        if self._runs.get(key) is run:
            run.isolate.worker.evict()
            self._stop(run)
            forget = self.engine.lost if goes_on else self.engine.evicted
            forget(*key, self.kernel.now)
            self.attend()

    def evict_instance(self, workflow: str, id: str) -> None:
        """Drop the memory of an instance, its Worker's globals included."""
        run = self._runs.get((workflow, id))
        if run is not None:
            self.evict_run(run)

    def crash_instance(self, workflow: str, id: str) -> None:
        """Cut the power of one instance's execution."""
        run = self._runs.get((workflow, id))
        if run is not None:
            self.kernel.record("crash", f"workflow {workflow} {id}")
            run.isolate.worker.evict()
            run.kill()
            self.attend()

    def mock_event(self, workflow: str, id: str, kind: str, payload: bytes | None) -> None:
        """Give an instance an event at the next turn; raises `EngineError` if it is over."""
        if self.engine.status(workflow, id).status.finite:
            raise EngineError(*texts.IN_FINITE_STATE)
        self.kernel.loop.kernel_soon(self._deliver_and_attend, workflow, id, kind, payload)

    def _deliver_and_attend(self, *event: Any) -> None:
        self._deliver(*event)
        self.attend()

    def hasten(self, workflow: str, id: str | None) -> None:
        """Look again at what waits: a test has just said that some of it takes no time."""
        self.kernel.loop.kernel_soon(self._hasten, workflow, id)

    def _hasten(self, workflow: str, id: str | None) -> None:
        for run in list(self._runs.values()):
            if run.execution.workflow == workflow and id in (None, run.execution.id):
                for key in list(run.execution.parked):
                    self.attempts.parked(run, key, fresh=False)
        if id is not None:
            self.engine.wake_up(workflow, id)
        self.attend()

    def interrupt(self, worker: Worker) -> None:
        """A Worker's memory was dropped: its runs are interrupted at once."""
        for run in [run for run in self._runs.values() if run.isolate.worker is worker]:
            self._stop(run)
            self.engine.evicted(run.execution.workflow, run.execution.id, self.kernel.now)
        self.attend()

    @property
    def stored(self) -> int:
        """How many instances and steps there are."""
        return sum(
            1 + len(self.engine.steps(workflow, view.id))
            for workflow in self.engine.workflows
            for view in self.engine.instances(workflow)
        )

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        return self.engine.take_records()

    def snapshot(self) -> Record:
        """The whole state of the Workflows."""
        return self.engine.snapshot()

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored state."""
        self._runs.clear()
        while self._timers:
            self._timers.popitem()[1].cancel()
        self.engine = self._new_engine()
        if snapshot is not None:
            self.engine.restore(snapshot)
        self.engine.replay(records)
        self.engine.recover(self.kernel.now)
        self.attend()

    def reset(self) -> None:
        """Forget all instances and mocks."""
        self.attempts.clear()
        self._livelock.clear()
        self._feeds.clear()
        self.rebuild(None, [])

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()

    def unreached_mocks(self) -> Iterator[tuple[str, str]]:
        """What tests mocked in vain: the Workflow, and what it was."""
        for (workflow, _), mocks in self.attempts.mocks.items():
            for what in mocks.unreached():
                yield workflow, what

    def _describe_pending(self) -> list[str]:
        return [
            f"workflow {workflow} {view.id}: {view.status.value}"
            for workflow in self.engine.workflows
            for view in self.engine.instances(workflow)
            if not view.status.finite
        ]
