"""The durable state of all instances, and the only ways in which it changes.

A record says what happened in facts (which instance, when, what); `apply` makes the change and
consults no settings, so that records replay under changed ones. `_TRANSITIONS` is the whole
vocabulary. What a transition schedules goes into the timers, which therefore need no records.

The order of the arguments of a transition is that of the record, after its kind. This module is
long because it is that whole vocabulary, and has nothing else.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from emulator.errors import StateError
from emulator.workflows.instance import Instance
from emulator.workflows.journal import Step, Undoing, config_of, error_of
from emulator.workflows.model import (
    ErrorInfo,
    Event,
    InstanceEvent,
    Retention,
    RollbackView,
    Schedule,
    Status,
)
from emulator.workflows.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from emulator.workflows.model import Instant, Record

SNAPSHOT_VERSION: Final = 1

_ENDS: Final[Mapping[str, InstanceEvent]] = {
    "complete": InstanceEvent.WORKFLOW_SUCCESS,
    "errored": InstanceEvent.WORKFLOW_FAILURE,
    "terminated": InstanceEvent.WORKFLOW_TERMINATED,
}


class State:
    """The instances by Workflow and id, in order of creation."""

    def __init__(self) -> None:
        self._instances: dict[str, dict[str, Instance]] = {}
        self._timers = Timers()
        self._next_number = 1

    def apply(self, record: Record) -> None:
        """Make the change that a record describes; every durable change goes through here."""
        _TRANSITIONS[record[0]](self, *record[1:])

    def replay(self, records: Iterable[Record]) -> None:
        """Apply stored records; raises `StateError` for one that does not fit."""
        for index, record in enumerate(records):
            with _fitting(f"record {index} ({record[0] if record else 'empty'})"):
                self.apply(record)

    def snapshot(self) -> Record:
        """The whole durable state, without the settings; equal states give equal snapshots."""
        dumped = [instance.dump() for instance in self._everyone()]
        return [SNAPSHOT_VERSION, self._next_number, dumped]

    def restore(self, snapshot: Record) -> None:
        """Take over a snapshot's state, in an engine that has none yet; raises `StateError`."""
        with _fitting("the snapshot"):
            version, *rest = snapshot
            if version > SNAPSHOT_VERSION:
                raise StateError(
                    f"the snapshot of the Workflows has version {version}, this release reads up"
                    f" to {SNAPSHOT_VERSION}: use the release that wrote it, or start with a new"
                    " state"
                )
            self._next_number, dumped = rest
            for item in dumped:
                instance = Instance.load(item)
                self._instances.setdefault(instance.workflow, {})[instance.id] = instance
                self._schedule_all(instance)

    def _everyone(self) -> list[Instance]:
        """All instances, by number."""
        everyone = [one for named in self._instances.values() for one in named.values()]
        return sorted(everyone, key=lambda instance: instance.number)

    def _schedule(self, instance: Instance, step: Step) -> None:
        self._timers.add((instance.number, step.number), instance, step)

    def _schedule_all(self, instance: Instance) -> None:
        self._timers.add((instance.number, 0), instance, instance)
        if instance.undoing is not None:
            self._timers.add((instance.number, 0), instance, instance.undoing)
        for step in instance.steps.values():
            self._schedule(instance, step)

    # The instance as a whole.

    def _created(
        self,
        workflow: str,
        id: str,
        at: Instant,
        number: int,
        params: bytes,
        trigger: str,
        schedule: Record | None,
        retention: Record,
    ) -> None:
        told = None if schedule is None else Schedule(*schedule)
        instance = Instance(workflow, id, number, at, params, trigger, told, Retention(*retention))
        self._instances.setdefault(workflow, {})[id] = instance
        self._next_number = number + 1
        instance.log(at, InstanceEvent.WORKFLOW_QUEUED, None)

    def _begun(self, workflow: str, id: str, at: Instant) -> None:
        instance = self._instances[workflow][id]
        instance.executions += 1
        instance.status = Status.RUNNING
        if instance.started is None:
            instance.started = at
            instance.log(at, InstanceEvent.WORKFLOW_START, None)

    def _pausing(self, workflow: str, id: str, at: Instant) -> None:
        self._instances[workflow][id].status = Status.WAITING_FOR_PAUSE

    def _paused(self, workflow: str, id: str, at: Instant) -> None:
        instance = self._instances[workflow][id]
        instance.status = Status.PAUSED
        for step in instance.steps.values():
            step.freeze(at)

    def _unpaused(self, workflow: str, id: str, at: Instant) -> None:
        self._instances[workflow][id].status = Status.RUNNING

    def _resumed(self, workflow: str, id: str, at: Instant) -> None:
        instance = self._instances[workflow][id]
        instance.status = Status.QUEUED
        for step in instance.steps.values():
            step.thaw(at)
            self._schedule(instance, step)

    def _ended(
        self,
        workflow: str,
        id: str,
        at: Instant,
        status: str,
        output: bytes | None,
        error: Record | None,
        expires: Instant | None,
    ) -> None:
        instance = self._instances[workflow][id]
        for step in instance.steps.values():
            step.freeze(at)
        instance.status = Status(status)
        instance.ended = at
        instance.output = output
        instance.error = error_of(error)
        instance.drop_undoing()
        instance.due = expires
        instance.log(at, _ENDS[status], None)
        self._timers.add((instance.number, 0), instance, instance)

    def _restarted(self, workflow: str, id: str, at: Instant, number: int) -> None:
        """Number 0 forgets everything, another one the steps from there on (I19, I20)."""
        instance = self._instances[workflow][id]
        instance.drop_from(number)
        instance.status = Status.QUEUED
        instance.ended = instance.due = instance.output = instance.error = None
        instance.rolled_back = None
        instance.drop_undoing()
        instance.events = {}
        if not number:
            instance.rows = []
            instance.next_row = instance.next_step = 1
            instance.started = None
            instance.log(at, InstanceEvent.WORKFLOW_QUEUED, None)
        for step in instance.steps.values():
            if step.state == "running":
                step.uncharged += 1
                step.state = "waiting"
                step.left = 0
            if step.left is not None:
                step.thaw(at)
                self._schedule(instance, step)
        instance.count_anew()

    def _deleted(self, workflow: str, id: str, at: Instant) -> None:
        instance = self._instances[workflow].pop(id)
        instance.drop_from(0)
        instance.drop_undoing()
        instance.due = None

    # Steps.

    def _step_started(
        self,
        workflow: str,
        id: str,
        at: Instant,
        key: str,
        name: str,
        count: int,
        due: Instant,
        config: Record,
        has_rollback: bool,
        rollback_config: Record | None,
    ) -> None:
        instance = self._instances[workflow][id]
        step = Step(
            key, name, count, "do", instance.next_step, at, "running", due,
            attempts=1, config=config_of(config), has_rollback=has_rollback,
            rollback_config=config_of(rollback_config),
        )  # fmt: skip
        instance.add(step)
        instance.flying += 1
        instance.log(at, InstanceEvent.STEP_START, key)
        instance.log(at, InstanceEvent.ATTEMPT_START, key, 1)
        self._schedule(instance, step)

    def _attempt_started(self, workflow: str, id: str, at: Instant, key: str, due: Instant) -> None:
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.attempts += 1
        step.state = "running"
        step.due = due
        instance.flying += 1
        instance.log(at, InstanceEvent.ATTEMPT_START, key, step.attempts)
        self._schedule(instance, step)

    def _step_succeeded(
        self, workflow: str, id: str, at: Instant, key: str, output: bytes | None
    ) -> None:
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.end("complete", at)
        step.output = output
        instance.flying -= 1
        instance.log(at, InstanceEvent.ATTEMPT_SUCCESS, key, step.attempts)
        instance.log(at, InstanceEvent.STEP_SUCCESS, key)

    def _attempt_failed(
        self,
        workflow: str,
        id: str,
        at: Instant,
        key: str,
        error: Record,
        delay: float | None,
        due: Instant,
    ) -> None:
        """`delay` is what the history shows, in milliseconds."""
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.state = "waiting"
        step.due = due
        instance.flying -= 1
        facts = (step.attempts, *error) if delay is None else (step.attempts, *error, delay)
        instance.log(at, InstanceEvent.ATTEMPT_FAILURE, key, *facts)
        self._schedule(instance, step)

    def _step_failed(
        self, workflow: str, id: str, at: Instant, key: str, logged: Record, error: Record
    ) -> None:
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.end("errored", at)
        step.error = ErrorInfo(*error)
        instance.flying -= 1
        instance.log(at, InstanceEvent.ATTEMPT_FAILURE, key, step.attempts, *logged)
        instance.log(at, InstanceEvent.STEP_FAILURE, key)

    def _attempt_lost(self, workflow: str, id: str, at: Instant, key: str) -> None:
        """An attempt whose end nobody saw, and which does not count (X3, locally)."""
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.uncharged += 1
        step.state = "waiting"
        step.due = at
        instance.flying -= 1
        self._schedule(instance, step)

    def _hastened(self, workflow: str, id: str, at: Instant, key: str) -> None:
        """A retry delay is cut short."""
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        step.due = at
        self._schedule(instance, step)

    def _fell_asleep(
        self,
        workflow: str,
        id: str,
        at: Instant,
        key: str,
        name: str,
        count: int,
        due: Instant,
        milliseconds: float,
    ) -> None:
        instance = self._instances[workflow][id]
        step = Step(key, name, count, "sleep", instance.next_step, at, "waiting", due)
        step.timeout = milliseconds
        instance.add(step)
        instance.log(at, InstanceEvent.SLEEP_START, key, milliseconds)
        self._schedule(instance, step)

    def _woke(self, workflow: str, id: str, at: Instant, key: str) -> None:
        instance = self._instances[workflow][id]
        instance.steps[key].end("complete", at)
        instance.log(at, InstanceEvent.SLEEP_COMPLETE, key)

    # Events.

    def _waited(
        self,
        workflow: str,
        id: str,
        at: Instant,
        key: str,
        name: str,
        count: int,
        due: Instant,
        type: str,
        timeout: float,
    ) -> None:
        instance = self._instances[workflow][id]
        number = instance.next_step
        step = Step(key, name, count, "waitForEvent", number, at, "waiting", due)
        step.type, step.timeout = type, timeout
        instance.add(step)
        instance.log(at, InstanceEvent.WAIT_START, key)
        self._schedule(instance, step)

    def _event_sent(
        self, workflow: str, id: str, at: Instant, type: str, payload: bytes | None
    ) -> None:
        instance = self._instances[workflow][id]
        instance.events.setdefault(type, []).append(Event(type, payload, at))

    def _event_taken(self, workflow: str, id: str, at: Instant, key: str) -> None:
        """A wait gets the first event of its type."""
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        buffered = instance.events[step.type]
        step.event = buffered.pop(0)
        if not buffered:
            del instance.events[step.type]
        instance.settle_wait(step)
        step.end("complete", at)
        instance.log(at, InstanceEvent.WAIT_COMPLETE, key)

    def _wait_failed(self, workflow: str, id: str, at: Instant, key: str, error: Record) -> None:
        instance = self._instances[workflow][id]
        step = instance.steps[key]
        instance.settle_wait(step)
        step.end("errored", at)
        step.error = ErrorInfo(*error)
        instance.log(at, InstanceEvent.WAIT_TIMED_OUT, key)

    # Rollback.

    def _undoing_begun(
        self,
        workflow: str,
        id: str,
        at: Instant,
        trigger: Record,
        status: str,
        error: Record | None,
        keys: list[str],
    ) -> None:
        instance = self._instances[workflow][id]
        told = ErrorInfo(*trigger)
        undoing = Undoing(told, status, error_of(error), list(keys), len(keys))
        instance.undoing = undoing
        instance.status = Status.RUNNING
        for step in instance.steps.values():
            step.freeze(at)
        instance.log(at, InstanceEvent.ROLLBACK_START, None, *told, len(keys))

    def _undo_started(self, workflow: str, id: str, at: Instant, due: Instant) -> None:
        instance, undoing = self._undoing(workflow, id)
        undoing.attempts += 1
        undoing.flying = True
        undoing.due = due
        key = undoing.left[0]
        if undoing.attempts == 1:
            instance.log(at, InstanceEvent.ROLLBACK_STEP_START, key)
        instance.log(at, InstanceEvent.ROLLBACK_ATTEMPT_START, key, undoing.attempts)
        self._timers.add((instance.number, 0), instance, undoing)

    def _undo_succeeded(self, workflow: str, id: str, at: Instant) -> None:
        instance, undoing = self._undoing(workflow, id)
        key = undoing.left.pop(0)
        instance.log(at, InstanceEvent.ROLLBACK_ATTEMPT_SUCCESS, key, undoing.attempts)
        instance.log(at, InstanceEvent.ROLLBACK_STEP_SUCCESS, key)
        undoing.completed += 1
        undoing.attempts = undoing.uncharged = 0
        undoing.flying = False
        undoing.due = None

    def _undo_failed(
        self,
        workflow: str,
        id: str,
        at: Instant,
        error: Record,
        delay: float | None,
        due: Instant | None,
    ) -> None:
        """Without `due` that was the last attempt, and the chain stops (K5)."""
        instance, undoing = self._undoing(workflow, id)
        key = undoing.left[0]
        facts = (undoing.attempts, *error)
        facts = facts if delay is None else (*facts, delay)
        instance.log(at, InstanceEvent.ROLLBACK_ATTEMPT_FAILURE, key, *facts)
        undoing.flying = False
        undoing.due = due
        if due is None:
            undoing.failure = ErrorInfo(*error)
            instance.log(at, InstanceEvent.ROLLBACK_STEP_FAILURE, key)
        self._timers.add((instance.number, 0), instance, undoing)

    def _undo_lost(self, workflow: str, id: str, at: Instant) -> None:
        instance, undoing = self._undoing(workflow, id)
        undoing.uncharged += 1
        undoing.flying = False
        undoing.due = at
        self._timers.add((instance.number, 0), instance, undoing)

    def _undo_impossible(self, workflow: str, id: str, at: Instant, error: Record) -> None:
        """The step's handler is not there (K5)."""
        instance, undoing = self._undoing(workflow, id)
        undoing.failure = ErrorInfo(*error)
        undoing.flying = False
        undoing.due = None
        instance.log(at, InstanceEvent.ROLLBACK_STEP_FAILURE, undoing.left[0], *error)

    def _undoing_over(self, workflow: str, id: str, at: Instant) -> None:
        instance, undoing = self._undoing(workflow, id)
        failed = undoing.failure is not None
        event = InstanceEvent.ROLLBACK_FAILED if failed else InstanceEvent.ROLLBACK_COMPLETE
        instance.log(at, event, None, undoing.total, undoing.completed)
        instance.rolled_back = RollbackView("failed" if failed else "complete", undoing.failure)

    def _undoing(self, workflow: str, id: str) -> tuple[Instance, Undoing]:
        instance = self._instances[workflow][id]
        if instance.undoing is None:
            raise ValueError(f"instance {id!r} is not rolling back")
        return instance, instance.undoing


_TRANSITIONS: Final[Mapping[str, Callable[..., None]]] = {
    "create": State._created,
    "begin": State._begun,
    "pausing": State._pausing,
    "pause": State._paused,
    "unpause": State._unpaused,
    "resume": State._resumed,
    "end": State._ended,
    "restart": State._restarted,
    "delete": State._deleted,
    "step": State._step_started,
    "attempt": State._attempt_started,
    "success": State._step_succeeded,
    "failure": State._attempt_failed,
    "failed": State._step_failed,
    "lost": State._attempt_lost,
    "hasten": State._hastened,
    "sleep": State._fell_asleep,
    "wake": State._woke,
    "wait": State._waited,
    "event": State._event_sent,
    "take": State._event_taken,
    "expire": State._wait_failed,
    "rollback": State._undoing_begun,
    "undo": State._undo_started,
    "undone": State._undo_succeeded,
    "undo_failure": State._undo_failed,
    "undo_lost": State._undo_lost,
    "undo_missing": State._undo_impossible,
    "rolled_back": State._undoing_over,
}


@contextmanager
def _fitting(what: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(
            f"{what} of the Workflows does not fit: the state is damaged, or a newer release wrote"
            f" it ({error!r})"
        ) from error
