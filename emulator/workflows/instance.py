"""One instance: what is durable of it, and beside that what the current execution needs.

The rules are in `emulator.workflows.engine`; `state.py` is the only one that changes the durable
part, so that every change is a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.workflows.journal import (
    Step,
    Undoing,
    dump_step,
    dump_undoing,
    error_of,
    load_step,
    load_undoing,
)
from emulator.workflows.model import Event, InstanceEvent, Retention, RollbackView, Schedule, Status

if TYPE_CHECKING:
    from emulator.workflows.execution import Execution
    from emulator.workflows.model import ErrorInfo, Instant, Lane, Record

# A row of the history: its id, the instant, the event, the key of the step, and the facts that the
# step itself does not have.
Row = tuple[int, int, int, str | None, tuple[object, ...]]

QUEUED_OR_STARTED = (InstanceEvent.WORKFLOW_QUEUED, InstanceEvent.WORKFLOW_START)


@dataclass(slots=True, eq=False)
class Instance:
    """An instance of a Workflow.

    `due` is when its retention ends. `waits` has the waits that no event reached yet, by type and
    in order of their start; `flying` counts attempts in flight. Both follow from `steps`.
    """

    workflow: str
    id: str
    number: int
    created: Instant
    params: bytes
    trigger: str
    schedule: Schedule | None
    retention: Retention

    status: Status = Status.QUEUED
    started: Instant | None = None
    ended: Instant | None = None
    due: Instant | None = None
    output: bytes | None = None
    error: ErrorInfo | None = None
    rolled_back: RollbackView | None = None
    undoing: Undoing | None = None
    executions: int = 0
    steps: dict[str, Step] = field(default_factory=dict)
    next_step: int = 1
    rows: list[Row] = field(default_factory=list)
    next_row: int = 1
    events: dict[str, list[Event]] = field(default_factory=dict)

    waits: dict[str, list[Step]] = field(default_factory=dict)
    flying: int = 0

    # Not durable. `wanted`: a `Run` was noticed and nobody began yet. `slot`: it counts against the
    # Workflow's concurrency. `held`: what it is not told for want of a slot. `dormant`: it does
    # nothing until it is touched. `asleep`: its execution was dropped because it was idle.
    execution: Execution | None = None
    wanted: bool = False
    slot: bool = False
    held: list[str] = field(default_factory=list)
    dormant: bool = False
    asleep: bool = False

    @property
    def lane(self) -> Lane:
        """The end of its retention."""
        return "kept"

    def log(self, at: Instant, event: InstanceEvent, key: str | None, *facts: object) -> None:
        """Add a row to the history."""
        self.rows.append((self.next_row, at, event, key, facts))
        self.next_row += 1

    def add(self, step: Step) -> None:
        """Take up a step that was just started."""
        self.steps[step.key] = step
        self.next_step = step.number + 1
        if step.kind == "waitForEvent" and step.state == "waiting":
            self.waits.setdefault(step.type, []).append(step)

    def settle_wait(self, step: Step) -> None:
        """A wait is over."""
        waiting = self.waits[step.type]
        waiting.remove(step)
        if not waiting:
            del self.waits[step.type]

    def drop_undoing(self) -> None:
        """A rollback is over, or nobody goes on with it."""
        if self.undoing is not None:
            self.undoing.due = None
            self.undoing = None

    def drop_from(self, number: int) -> None:
        """Forget the steps from this number on, and every row but theirs that are kept (I20)."""
        kept = {key: step for key, step in self.steps.items() if step.number < number}
        for step in self.steps.values():
            if step.number >= number:
                step.due = None
        self.steps = kept
        self.rows = [
            row
            for row in self.rows
            if (row[3] in kept if row[3] is not None else row[2] in QUEUED_OR_STARTED)
            and row[2] < InstanceEvent.ROLLBACK_START
        ]
        self.count_anew()

    def count_anew(self) -> None:
        """Work out what follows from the steps."""
        self.waits = {}
        self.flying = 0
        for step in self.steps.values():
            self.flying += step.state == "running"
            if step.kind == "waitForEvent" and step.state == "waiting":
                self.waits.setdefault(step.type, []).append(step)

    # Snapshots.

    def dump(self) -> Record:
        """All that is durable; equal instances give equal dumps."""
        return [
            self.workflow,
            self.id,
            self.number,
            self.created,
            self.params,
            self.trigger,
            None if self.schedule is None else list(self.schedule),
            list(self.retention),
            self.status.value,
            self.started,
            self.ended,
            self.due,
            self.output,
            None if self.error is None else list(self.error),
            None if self.rolled_back is None else _flat(self.rolled_back),
            dump_undoing(self.undoing),
            self.executions,
            [dump_step(step) for step in self.steps.values()],
            self.next_step,
            [[id, at, int(event), key, _flat(facts)] for id, at, event, key, facts in self.rows],
            self.next_row,
            [[type, [list(e) for e in events]] for type, events in sorted(self.events.items())],
        ]

    @classmethod
    def load(cls, dumped: Record) -> Instance:
        """The instance that `dump` gave."""
        workflow, id, number, created, params, trigger, schedule, retention, *rest = dumped
        instance = cls(
            workflow,
            id,
            number,
            created,
            params,
            trigger,
            None if schedule is None else Schedule(*schedule),
            Retention(*retention),
        )
        status, instance.started, instance.ended, instance.due, instance.output, *rest = rest
        error, rolled_back, undoing, instance.executions, steps, *rest = rest
        instance.next_step, rows, instance.next_row, events = rest
        instance.status = Status(status)
        instance.error = error_of(error)
        if rolled_back is not None:
            outcome, failure = rolled_back
            instance.rolled_back = RollbackView(outcome, error_of(failure))
        instance.undoing = load_undoing(undoing)
        instance.steps = {step.key: step for step in map(load_step, steps)}
        instance.rows = [
            (id, at, InstanceEvent(event), key, _deep(facts)) for id, at, event, key, facts in rows
        ]
        instance.events = {type: [Event(*e) for e in listed] for type, listed in events}
        instance.count_anew()
        return instance


def _flat(facts: tuple[object, ...]) -> Record:
    return [_flat(item) if isinstance(item, tuple) else item for item in facts]


def _deep(facts: Record) -> tuple[object, ...]:
    return tuple([_deep(item) if isinstance(item, list) else item for item in facts])
