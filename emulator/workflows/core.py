"""What all verbs of the engine share: finding, committing, telling, and the turns of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.workflows import texts
from emulator.workflows.model import (
    Ended,
    Hibernate,
    Notice,
    Ready,
    Run,
    Status,
    Stop,
    WorkflowRules,
)
from emulator.workflows.slots import Slots
from emulator.workflows.state import State
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.workflows.execution import Execution
    from emulator.workflows.instance import Instance
    from emulator.workflows.journal import Step
    from emulator.workflows.model import ErrorInfo, Instant, Profile, Record

ACTIVE: Final = (Status.RUNNING, Status.WAITING_FOR_PAUSE)
"""The durable statuses in which an instance has, or is about to have, an execution."""

_LAST: Final = 2**62  # of what falls due at one instant

_GRACE: Final = 300_000_000
"""For how long nothing must go on before production drops an execution (X6)."""


class Core(State):
    """Instances with settings, records to store, notices to give, and slots to run in."""

    def __init__(
        self, profile: Profile = "production", *, observe: Callable[[Record], None] | None = None
    ) -> None:
        """`observe` is told of each record, once its change was made."""
        super().__init__()
        self._profile: Profile = profile
        self._observe = observe
        self._rules: dict[str, WorkflowRules] = {}
        self._slots = Slots()
        self._records: list[Record] = []
        self._notices: list[Notice] = []

    def configure(self, rules: Sequence[WorkflowRules]) -> None:
        """Take over new settings; instances of a Workflow that is no longer named stay."""
        self._rules = {item.name: item for item in rules}
        limited = self._profile == "production"
        limits = {item.name: item.concurrency if limited else None for item in rules}
        self._slots.configure(limits)
        for name in self._rules:
            self._admit_next(name)
            for instance in list(self._instances.get(name, {}).values()):
                if self._is_stranded(instance):
                    self._want_run(instance)

    @property
    def workflows(self) -> tuple[str, ...]:
        """The names of all Workflows, in the order they were configured in."""
        return tuple(self._rules)

    def rules(self, workflow: str) -> WorkflowRules:
        """The settings of a Workflow; raises `KeyError`."""
        found = self._rules.get(workflow)
        if found is None:
            known = ", ".join(self._rules) or "none"
            raise KeyError(f"there is no Workflow {workflow!r}; there are: {known}")
        return found

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def take_notices(self) -> list[Notice]:
        """What is to be done since the last call, in this order."""
        notices, self._notices = self._notices, []
        return notices

    # Finding and committing.

    def _find(self, workflow: str, id: str) -> Instance:
        """The instance that a verb is about (I8)."""
        found = self._instances.get(workflow, {}).get(id)
        if found is None:
            self.rules(workflow)
            local = self._profile == "miniflare"
            raise EngineError(*(texts.NOT_FOUND_LOCALLY if local else texts.NOT_THERE))
        return found

    def _rules_of(self, instance: Instance) -> WorkflowRules:
        return self._rules.get(instance.workflow) or WorkflowRules(instance.workflow)

    def _commit(self, kind: str, instance: Instance, now: Instant, *facts: object) -> None:
        self._keep((kind, instance.workflow, instance.id, now, *facts))

    def _keep(self, record: Record) -> None:
        self.apply(record)
        self._records.append(record)
        if self._observe is not None:
            self._observe(record)

    def step_of(self, workflow: str, id: str, key: str) -> Step:
        """A started step, for somebody who saw its record."""
        return self._instances[workflow][id].steps[key]

    # Turns.

    def _is_stranded(self, instance: Instance) -> bool:
        """Whether nobody runs it although it is to run: its Workflow had no settings."""
        due = instance.status is Status.QUEUED or instance.status in ACTIVE
        idle = instance.execution is None and not (
            instance.wanted or instance.dormant or instance.asleep
        )
        return due and idle and not self._slots.queues(instance)

    def _want_run(self, instance: Instance) -> None:
        """`run` is to be called as soon as there is a slot; one that was started has a right."""
        if instance.workflow not in self._rules:
            return
        if instance.status is not Status.QUEUED or self._slots.take(instance):
            instance.wanted = True
            self._notices.append(Run(instance.workflow, instance.id))

    def _wake_up(self, instance: Instance) -> None:
        if instance.asleep:
            instance.asleep = False
            self._want_run(instance)

    def _stop(self, instance: Instance) -> None:
        """Nothing of the instance runs any more."""
        instance.wanted = instance.asleep = False
        instance.held.clear()
        if instance.execution is not None:
            self._drop(instance)
            self._notices.append(Stop(instance.workflow, instance.id))
        self._leave(instance)

    def _drop(self, instance: Instance) -> None:
        if instance.execution is not None:
            instance.execution.due = None
            instance.execution = None

    def _leave(self, instance: Instance) -> None:
        self._slots.leave(instance)
        self._admit_next(instance.workflow)

    def _admit_next(self, workflow: str) -> None:
        while (first := self._slots.admit(workflow)) is not None:
            if first.status is Status.QUEUED:
                self._want_run(first)
            held, first.held = first.held, []
            for key in held:
                self._notices.append(Ready(first.workflow, first.id, key))

    def _take_turn(self, execution: Execution, key: str) -> bool:
        """Whether an attempt may start; if not, a notice comes when there is a slot."""
        instance = execution.instance
        if self._slots.take(instance):
            return True
        if key not in instance.held:
            instance.held.append(key)
        return False

    def _ready(self, instance: Instance, key: str) -> None:
        """Something happened to a step that the execution was told to wait for."""
        execution = instance.execution
        self._wake_up(instance)
        if execution is None or execution.parked.pop(key, _NOT_THERE) is _NOT_THERE:
            return
        if self._take_turn(execution, key):
            self._notices.append(Ready(instance.workflow, instance.id, key))

    def _rest(self, execution: Execution, now: Instant) -> None:
        """Let others have the slot if all that the execution asked for is waiting."""
        execution.active = now
        instance = execution.instance
        if not self._is_waiting(instance):
            return
        if instance.slot:
            self._leave(instance)
        if execution.repeats and execution.due is None and self._profile == "production":
            self._look_again(execution, now + _GRACE)

    def _look_again(self, execution: Execution, due: Instant) -> None:
        execution.due = due
        instance = execution.instance
        self._timers.add((instance.number, _LAST), instance, execution)

    def _idle_due(self, execution: Execution, now: Instant) -> None:
        """Drop an execution for which nothing has gone on for long enough, until something does.

        One that asks for something later is looked at again then.
        """
        instance = execution.instance
        execution.due = None
        if not self._is_waiting(instance) or instance.held:
            return
        if now < execution.active + _GRACE:
            self._look_again(execution, execution.active + _GRACE)
            return
        self._drop(instance)
        instance.asleep = True
        self._notices.append(Hibernate(instance.workflow, instance.id))

    def _is_waiting(self, instance: Instance) -> bool:
        execution = instance.execution
        return bool(
            (instance.asleep or (execution is not None and execution.parked))
            and not instance.flying
            and instance.status is Status.RUNNING
            and instance.undoing is None
        )

    # The end.

    def _end(
        self,
        instance: Instance,
        now: Instant,
        status: Status,
        *,
        output: bytes | None = None,
        error: ErrorInfo | None = None,
    ) -> None:
        """The instance is over; whoever calls stops its execution, or leaves attempts to end."""
        expires = self._expires(instance, status, now)
        told = None if error is None else list(error)
        self._commit("end", instance, now, status.value, output, told, expires)
        instance.wanted = instance.asleep = False
        if instance.execution is not None:
            instance.execution.due = None
        instance.held.clear()
        self._leave(instance)
        self._notices.append(Ended(instance.workflow, instance.id))

    def _expires(self, instance: Instance, status: Status, now: Instant) -> Instant | None:
        """When an instance that ends now is forgotten; locally never (B12)."""
        if self._profile == "miniflare":
            return None
        field = "success" if status is Status.COMPLETE else "error"
        kept = getattr(instance.retention, field)
        if kept is None:
            kept = getattr(self._rules_of(instance).retention, field)
        return None if kept is None else now + int(kept)

    def _shown_status(self, instance: Instance) -> Status:
        """The status as the platform shows it: locally an instance never queues or waits (§14)."""
        if self._profile == "miniflare":
            return Status.RUNNING if instance.status is Status.QUEUED else instance.status
        if instance.status is not Status.RUNNING:
            return instance.status
        if self._slots.queues(instance):
            return Status.QUEUED
        return Status.WAITING if self._is_waiting(instance) else instance.status


_NOT_THERE: Final = object()
