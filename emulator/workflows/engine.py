"""Cloudflare Workflows as one state machine, without tasks, clock, randomness or files.

Theory of operation
===================

**Who does what.** The engine keeps a journal of each instance and decides; its caller, the shell,
runs user code. A verb changes the state and leaves notices: `Run` (call `begin`, then `run`),
`Ready` (ask `decide` again), `Stop` (no line of this execution runs any more), and so on. The shell
holds one timer, at `wake_at`, and calls `advance` then.

**Instances.** `waiting` is not stored: it is a running instance whose execution waits for nothing
but sleeps, events and retry delays (I6).

    create ──▶ QUEUED ── begin ──▶ RUNNING ── finished, raised, terminate ──▶ a finite state
                 ▲                  │   ▲                                         │
                 │            pause │   │ resume                                  │ restart
                 │                  ▼   │                                         ▼
                 │          WAITING_FOR_PAUSE                                   QUEUED
                 │                  │ the last attempt in flight ends
                 └── resume ── PAUSED ◀── pause, if none is in flight

A pause freezes what runs down, and a resume lets it go on with what was left (I13). An instance
that ends freezes too, so that a restart from a step finds what it keeps (I20).

**Replay.** Each execution counts its calls of `do`, `sleep` and `wait` by name and so finds its
steps in the journal (`execution.py`). A stored result is given again at once, a stored error too;
a sleep that is not over is waited for again, until the same instant (C4, D6).

**Losses.** `lost` forgets the execution. In production an attempt in flight failed, at once and
charged to the retries; locally it leaves nothing but its number (X2, X3). Then comes a new `Run`.

**Hibernation.** Production drops an execution that for five minutes has had no attempt in flight,
and runs `run` again when a step is ready (X6). Here that happens (`Hibernate`, later `Run`) if the
execution is known to have effects outside steps, which a replay repeats; where it would show
nothing it is left out, and a year of daily sleeps stays cheap.

**Concurrency.** An instance starts when its Workflow has a slot free, in order of asking; one that
waits has none and queues for one when it wakes up (`slots.py`).

**Records.** Every verb first works out facts, then hands them to `apply` as one record or a few
(`state.py`). Executions, notices, slots and queues are not stored: `recover` starts them anew.

Letters and numbers such as I6 are the rules of the reference on Cloudflare Workflows; where it
calls a point unverified the choice is ours, and `docs/fidelity.md` lists it. Instants passed in
must not go backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from emulator.workflows import texts
from emulator.workflows.batches import Batches
from emulator.workflows.core import ACTIVE
from emulator.workflows.execution import Execution
from emulator.workflows.grammar import (
    check_event_type,
)
from emulator.workflows.journal import Step, Undoing
from emulator.workflows.model import (
    Gone,
    Ready,
    Status,
)
from emulator.workflows.retries import is_non_retryable, preserved
from emulator.workflows.texts import EngineError
from emulator.workflows.views import view_history, view_instance, view_step

if TYPE_CHECKING:
    from emulator.workflows.instance import Instance
    from emulator.workflows.model import (
        ErrorInfo,
        HistoryRow,
        InstanceView,
        Instant,
        Kind,
        Lane,
        StepView,
    )


class Engine(Batches):
    """All instances of all Workflows of one emulator.

    Every method that takes a Workflow's name raises `KeyError` for one that does not exist, and
    `EngineError` where the platform refuses.

        >>> from emulator.workflows.model import ErrorInfo, WorkflowRules
        >>> engine = Engine()
        >>> engine.configure([WorkflowRules("signup")])
        >>> engine.create("signup", "u1", b"{}", now=0)
        'u1'
        >>> engine.take_notices()
        [Run(workflow='signup', id='u1')]
        >>> execution = engine.begin("signup", "u1", now=0)
        >>> key = execution.do("send mail")
        >>> engine.decide(execution, key, now=0).number
        1
        >>> engine.attempt_succeeded(execution, key, 1, b"sent", now=5)
        >>> engine.decide(execution, key, now=5).output
        b'sent'
        >>> engine.finished(execution, b"done", now=5)
        >>> engine.status("signup", "u1").status.value
        'complete'
    """

    # Control.

    def pause(self, workflow: str, id: str, now: Instant) -> None:
        """Start nothing more, and stop once no attempt is in flight (I9 to I11).

        Nothing happens unless the instance is running; during a rollback neither.
        """
        instance = self._touched(workflow, id)
        if instance.status is not Status.RUNNING or instance.undoing is not None:
            return
        if self._busy(instance):
            self._commit("pausing", instance, now)
        else:
            self._pause_now(instance, now)

    def resume(self, workflow: str, id: str, now: Instant) -> None:
        """Run again, or cancel a pause that is not complete; else nothing happens (I13, I14)."""
        instance = self._touched(workflow, id)
        if instance.status is Status.WAITING_FOR_PAUSE:
            self._commit("unpause", instance, now)
            self._unblock(instance)
        elif instance.status is Status.PAUSED:
            self._commit("resume", instance, now)
            for step in list(instance.steps.values()):
                self._serve(instance, step, now)
            self._want_run(instance)

    def terminate(self, workflow: str, id: str, now: Instant, *, rollback: bool = False) -> None:
        """End the instance at once, or after its rollback (I16, I17).

        A rollback that is under way goes on if this asks for one, and is cut off if not.
        """
        instance = self._touched(workflow, id)
        if instance.status.finite:
            raise EngineError(*texts.CANNOT_TERMINATE)
        if not rollback or not self._undoable(instance):
            self._stop(instance)
            self._end(instance, now, Status.TERMINATED)
        elif instance.undoing is None:
            self._stop(instance)
            self._begin_undoing(instance, texts.TERMINATED, Status.TERMINATED, None, now)
            self._want_run(instance)

    def restart(
        self,
        workflow: str,
        id: str,
        now: Instant,
        *,
        name: str | None = None,
        count: int = 1,
        kind: Kind = "do",
    ) -> None:
        """Run again with the same id, payload and timestamp, from whatever state (I19).

        With a `name` the steps started before the `count`-th of that name and kind stay (I20).
        """
        instance = self._touched(workflow, id)
        number = 0
        if name is not None:
            same = [s for s in instance.steps.values() if s.name == name and s.kind == kind]
            if not 0 < count <= len(same):
                raise texts.cannot_restart(name)
            number = same[count - 1].number
        self._stop(instance)
        self._commit("restart", instance, now, number)
        self._want_run(instance)

    def send_event(
        self, workflow: str, id: str, type: str, payload: bytes | None, now: Instant
    ) -> None:
        """Give the first wait of this type an event, or keep it for one (I15, I23, D11 to D13)."""
        instance = self._touched(workflow, id)
        if self._profile == "production":
            check_event_type(type)
            limit = self.rules(workflow).max_payload
            if limit is not None and payload is not None and len(payload) > limit:
                raise EngineError(*texts.PAYLOAD_TOO_LARGE)
        if instance.status.finite:
            if self._profile == "production":
                raise EngineError(*texts.IN_FINITE_STATE)
            return
        self._commit("event", instance, now, type, payload)
        if instance.status is not Status.PAUSED and type in instance.waits:
            self._serve(instance, instance.waits[type][0], now)

    # One execution.

    def begin(self, workflow: str, id: str, now: Instant) -> Execution | None:
        """Start an execution of `run`; None if the `Run` notice is out of date."""
        instance = self._instances.get(workflow, {}).get(id)
        if instance is None or not instance.wanted:
            return None
        instance.wanted = False
        self._commit("begin", instance, now)
        execution = Execution(
            self._profile,
            instance,
            self._rules_of(instance),
            rebuilding=instance.undoing is not None,
        )
        instance.execution = execution
        return execution

    def rehearse(self, workflow: str, id: str) -> Execution:
        """An execution that repeats the one of a finished instance, from its journal.

        Steps that it does not have are `BLOCKED`. Raises `ValueError` if it is not finished.
        """
        instance = self._find(workflow, id)
        if not instance.status.finite:
            raise ValueError(
                f"instance {id!r} of {workflow!r} is {instance.status.value}, not over"
            )
        execution = Execution(self._profile, instance, self._rules_of(instance), rebuilding=False)
        execution.rehearsing = True
        return execution

    def finished(self, execution: Execution, output: bytes | None, now: Instant) -> None:
        """`run` returned."""
        instance = execution.instance
        if instance.execution is not execution or instance.status.finite:
            return
        if execution.rebuilding:
            if not execution.closed:
                self._open(execution)
            return
        self._end(instance, now, Status.COMPLETE, output=output)

    def raised(
        self, execution: Execution, error: ErrorInfo, now: Instant, *, ordinary: bool = False
    ) -> None:
        """`run` raised: roll back what there is to roll back, then the instance is over (E2).

        An `ordinary` error is no NonRetryableError, whatever its text (P14).
        """
        instance = execution.instance
        if instance.execution is not execution or instance.status.finite or execution.closed:
            return
        if execution.rebuilding:
            self._open(execution)
            return
        final = self.final_error(execution, error, ordinary=ordinary)
        if self._undoable(instance):
            self._begin_undoing(instance, error, Status.ERRORED, final, now)
            self._open(execution)
        else:
            self._end(instance, now, Status.ERRORED, error=final)

    def final_error(self, execution: Execution, error: ErrorInfo, *, ordinary: bool) -> ErrorInfo:
        """The instance's error for what `run` raised (E6, E7)."""
        if ordinary or not is_non_retryable(error):
            return error
        if not execution.rules.preserve_non_retryable:
            return texts.UNHANDLED
        return preserved(error)

    # Losses.

    def lost(self, workflow: str, id: str, now: Instant) -> None:
        """The execution is gone: so are its attempts in flight, and `run` runs again (X1 to X4).

        A pause that waited for such an attempt is complete (X7); finite, paused and queued
        instances stay as they are (X8).
        """
        instance = self._find(workflow, id)
        if instance.asleep:
            return
        self._lose(instance, now)
        if instance.wanted or instance.status in ACTIVE:
            self._want_run(instance)

    def evicted(self, workflow: str, id: str, now: Instant) -> None:
        """The execution's memory is gone: as `lost`, but one that is known to have effects outside
        steps and only waits comes back no sooner than what it waits for (X6)."""
        instance = self._find(workflow, id)
        execution = instance.execution
        if execution is not None and execution.repeats and self._is_waiting(instance):
            self._drop(instance)
            instance.asleep = True
        else:
            self.lost(workflow, id, now)

    def recover(self, now: Instant, *, wake: bool | None = None) -> None:
        """Go on after the platform itself went down: everything is lost, what was due is due.

        Without `wake` instances do nothing until something touches them, as they do locally (X5).
        """
        wake = self._profile == "production" if wake is None else wake
        self._slots.clear()
        everyone = self._everyone()
        for instance in everyone:
            instance.slot = instance.wanted = instance.asleep = False
            instance.held.clear()
            if instance.status in ACTIVE and _goes_on(instance, now):
                self._slots.take(instance)
            self._lose(instance, now)
        for instance in everyone:
            waits = instance.status in ACTIVE or instance.status is Status.QUEUED
            if waits and wake:
                self._want_run(instance)
            else:
                instance.dormant = waits

    def wake_up(self, workflow: str, id: str) -> None:
        """Run an instance again whose execution was dropped because it was idle."""
        instance = self._instances.get(workflow, {}).get(id)
        if instance is not None:
            self._wake_up(instance)

    # Time.

    def wake_at(self, lane: Lane | None = None) -> Instant | None:
        """The earliest instant at which `advance` has something to do, of one kind or of any.

        `work` is attempts, retries and rollbacks, `sleep` sleeps, `wait` what may never come to
        matter: time-outs of event waits. `idle` is when an execution may be dropped, `kept` the end
        of a retention.
        """
        return self._timers.next(lane)

    def what_is_due(self, lane: Lane) -> str:
        """What comes first in a lane, in words; empty if there is nothing."""
        first = self._timers.first(lane)
        if first is None:
            return ""
        instance, owner = cast("Instance", first[0]), first[1]
        return f"workflow {instance.workflow} {instance.id}: {_described(owner)}"

    def advance(self, now: Instant) -> None:
        """Let everything happen that is due, in order of its instant (I13, R1, R4, D6, D10)."""
        while (found := self._timers.pop(now)) is not None:
            instance, owner = cast("Instance", found[0]), found[1]
            if instance.dormant and owner is not instance:
                continue
            if isinstance(owner, Step):
                self._fall_due(instance, owner, now)
            elif isinstance(owner, Undoing):
                self._undo_due(instance, owner, now)
            elif isinstance(owner, Execution):
                self._idle_due(owner, now)
            else:
                self._stop(instance)
                self._commit("delete", instance, now)
                self._notices.append(Gone(instance.workflow, instance.id))

    # Looking.

    def instance(self, workflow: str, id: str) -> InstanceView:
        """The instance, as `get` finds it or does not (B10)."""
        found = self._instances.get(workflow, {}).get(id)
        if found is None:
            self.rules(workflow)
            local = self._profile == "miniflare"
            raise EngineError(*(texts.NOT_FOUND_LOCALLY if local else texts.NOT_FOUND))
        return view_instance(found, self._shown_status(found))

    def status(self, workflow: str, id: str) -> InstanceView:
        """The instance, for somebody who has a handle of it (I4, I8)."""
        instance = self._find(workflow, id)
        return view_instance(instance, self._shown_status(instance))

    def instances(self, workflow: str) -> list[InstanceView]:
        """All instances, in order of creation."""
        self.rules(workflow)
        named = self._instances.get(workflow, {})
        return [view_instance(one, self._shown_status(one)) for one in named.values()]

    def steps(self, workflow: str, id: str) -> list[StepView]:
        """The started steps, in order of their start."""
        return [view_step(step) for step in self._find(workflow, id).steps.values()]

    def history(self, workflow: str, id: str) -> list[HistoryRow]:
        """The instance's history (§11)."""
        instance = self._find(workflow, id)
        return view_history(instance, self._rules_of(instance))

    # What the verbs share.

    def _touched(self, workflow: str, id: str) -> Instance:
        """The instance, awake: locally a verb is what it takes after a restart (X5)."""
        instance = self._find(workflow, id)
        if instance.dormant:
            instance.dormant = False
            self._schedule_all(instance)
            self._want_run(instance)
        return instance

    def _serve(self, instance: Instance, step: Step, now: Instant) -> None:
        """Give a wait the first event of its type, if there is one."""
        waits = step.kind == "waitForEvent" and step.state == "waiting"
        if waits and step.type in instance.events:
            self._commit("take", instance, now, step.key)
            self._ready(instance, step.key)

    def _unblock(self, instance: Instance) -> None:
        """A pause was cancelled; locally not after a caught NonRetryableError, a bug (C5)."""
        execution = instance.execution
        if execution is None or execution.leaked:
            return
        blocked, execution.blocked = execution.blocked, {}
        for key in blocked:
            self._notices.append(Ready(instance.workflow, instance.id, key))

    def _lose(self, instance: Instance, now: Instant) -> None:
        """Forget the execution, without a `Stop`: its caller knows."""
        self._drop(instance)
        instance.held.clear()
        if instance.undoing is not None:
            if instance.undoing.flying:
                self._lose_undo(instance, instance.undoing, now)
                self._go_on(instance, now)
            return
        if instance.status not in ACTIVE:
            return
        for step in list(instance.steps.values()):
            if step.state == "running":
                self._undecided(instance, step, now)
        if instance.status is Status.WAITING_FOR_PAUSE:
            self._pause_now(instance, now)


def _goes_on(instance: Instance, now: Instant) -> bool:
    """Whether an attempt is in flight, or was lost at this very instant."""
    return any(
        step.kind == "do" and (step.state == "running" or step.due == now)
        for step in instance.steps.values()
    )


def _described(owner: object) -> str:
    """What falls due, in words."""
    if isinstance(owner, Step):
        if owner.kind == "sleep":
            return f"the sleep {owner.name!r}"
        if owner.kind == "waitForEvent":
            return f"the time-out of the wait {owner.name!r}"
        running = owner.state == "running"
        return f"the {'time-out' if running else 'next attempt'} of the step {owner.name!r}"
    if isinstance(owner, Undoing):
        return "a rollback"
    return "its memory" if isinstance(owner, Execution) else "its retention"
