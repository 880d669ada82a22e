"""What goes into the engine and what comes out of it.

    rules       WorkflowRules, Retention                 how a Workflow is set up
    input       NewInstance, Schedule, DelayFailed       what to start, how a delay function failed
    decisions   Done, Failed, Attempt, PARKED, BLOCKED   what becomes of a step that `run` asks for
    notices     Run, Stop, Ready, WantDelay, Rollback,   what the caller is to do
                Ended, Gone
    views       InstanceView, StepView, HistoryRow, …    what there is to see

All of it is immutable. Instants and durations are integers, in microseconds; an instant counts
from the Unix epoch. What Worker code hands over stays as it wrote it (milliseconds or text), and
its values are bytes that nobody here looks into. Letters and numbers such as I6 are the rules of
the reference on Cloudflare Workflows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Instant: TypeAlias = int
Duration: TypeAlias = int

Profile: TypeAlias = Literal["production", "miniflare"]

Kind: TypeAlias = Literal["do", "sleep", "waitForEvent"]

StepState: TypeAlias = Literal["running", "waiting", "complete", "errored"]
"""`running` has an attempt in flight, `waiting` a sleep, an event or a retry ahead of it."""

Lane: TypeAlias = Literal["work", "sleep", "wait", "idle", "kept"]
"""What falls due: work that goes on, a sleep, what may never come to matter (an event's time-out),
the time after which an idle execution is dropped (X6), or the end of a retention."""

Record: TypeAlias = Sequence[Any]
"""One durable change: its kind, the Workflow, the instance, the instant, and facts (`str`, `int`,
`float`, `bytes`, None, lists of these).

`Any`, because the kind decides what follows; the engine's transition of that kind declares it.
"""

MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND


class Status(StrEnum):
    """The status of an instance as Worker code reads it (I2)."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    ERRORED = "errored"
    TERMINATED = "terminated"
    COMPLETE = "complete"
    WAITING_FOR_PAUSE = "waitingForPause"
    WAITING = "waiting"

    @property
    def number(self) -> int:
        """The platform's number of the status."""
        return list(Status).index(self)

    @property
    def finite(self) -> bool:
        """Whether the instance has come to its end (I3)."""
        return self in _FINITE


_FINITE: Final = (Status.ERRORED, Status.TERMINATED, Status.COMPLETE)


class InstanceEvent(IntEnum):
    """The kinds of rows in an instance's history (§11)."""

    WORKFLOW_QUEUED = 0
    WORKFLOW_START = 1
    WORKFLOW_SUCCESS = 2
    WORKFLOW_FAILURE = 3
    WORKFLOW_TERMINATED = 4
    STEP_START = 5
    STEP_SUCCESS = 6
    STEP_FAILURE = 7
    SLEEP_START = 8
    SLEEP_COMPLETE = 9
    ATTEMPT_START = 10
    ATTEMPT_SUCCESS = 11
    ATTEMPT_FAILURE = 12
    WAIT_START = 14
    WAIT_COMPLETE = 15
    WAIT_TIMED_OUT = 16
    ROLLBACK_START = 17
    ROLLBACK_STEP_START = 18
    ROLLBACK_ATTEMPT_START = 19
    ROLLBACK_ATTEMPT_SUCCESS = 20
    ROLLBACK_ATTEMPT_FAILURE = 21
    ROLLBACK_STEP_SUCCESS = 22
    ROLLBACK_STEP_FAILURE = 23
    ROLLBACK_COMPLETE = 24
    ROLLBACK_FAILED = 25


class ErrorInfo(NamedTuple):
    """An error as the platform keeps it: without a stack."""

    name: str
    message: str


class Event(NamedTuple):
    """An event sent to an instance; `payload=None` was sent without one (I25)."""

    type: str
    payload: bytes | None
    timestamp: Instant


class Schedule(NamedTuple):
    """The cron run that created an instance (B14)."""

    cron: str
    scheduled_time: Instant


class StepConfig(NamedTuple):
    """A step's settings as written, the defaults filled in (S4 to S6).

    `delay=None` stands for a function. `delay` and `timeout` are milliseconds, or text.
    """

    limit: float
    delay: float | str | None
    backoff: str
    timeout: float | str
    sensitive: bool = False


class Retention(NamedTuple):
    """How long an instance is kept after a success, and after any other end (B12)."""

    success: Duration | None = None
    error: Duration | None = None


KEEP: Final = Retention()


@dataclass(frozen=True, slots=True)
class WorkflowRules:
    """The settings of a Workflow.

    `max_output` and `max_payload` are sizes in bytes of encoded values, None leaves them unchecked;
    so do a `concurrency` and a retention of None. `preserve_non_retryable` is the compatibility
    flag `workflows_preserve_non_retryable_error_message` (E6). `version` is the deployed version's
    id, where there is one.
    """

    name: str
    step_limit: int = 10_000
    concurrency: int | None = None
    retention: Retention = KEEP
    preserve_non_retryable: bool = True
    max_output: int | None = None
    max_payload: int | None = None
    version: str | None = None


class NewInstance(NamedTuple):
    """An instance to be created; None in its retention is the Workflow's (B12)."""

    id: str
    params: bytes
    retention: Retention = KEEP


class DelayFailed(NamedTuple):
    """A delay function that gave no delay (R3); `message` is what it threw."""

    kind: Literal["threw", "timeout", "invalid"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why one item of a batch was left out (B9, B11)."""

    index: int
    id: str
    code: int
    message: str


class BatchResult(NamedTuple):
    """The ids that a batch created, or deleted, and the items it left out."""

    done: list[str]
    errors: list[ItemError]


# Decisions.


class Done(NamedTuple):
    """The step is complete: `output` of a do, `event` of a wait.

    `replayed` says that this execution never saw it under way. In a replay that only rebuilds the
    rollback handlers an unfinished step is done without a value (K8).
    """

    output: bytes | None = None
    event: Event | None = None
    replayed: bool = False


class Failed(NamedTuple):
    """The step failed for good; `replayed` as in `Done`."""

    error: ErrorInfo
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """The step's body is to run now; `number` is `ctx.attempt` (R5)."""

    key: str
    name: str
    count: int
    number: int
    config: StepConfig
    timeout_at: Instant


class Waiting(Enum):
    """Why there is nothing to do yet."""

    PARKED = "a sleep, an event, a retry delay: a notice tells"
    BLOCKED = "the instance is being paused, or is over"


PARKED: Final = Waiting.PARKED
BLOCKED: Final = Waiting.BLOCKED

Decision: TypeAlias = Done | Failed | Attempt | Waiting


@dataclass(frozen=True, slots=True)
class RollbackAttempt:
    """A rollback handler is to run now (K4).

    `attempt` is the last attempt of the step, `error` what set the rollback off, `output` the
    step's, None if it has none.
    """

    key: str
    name: str
    count: int
    number: int
    attempt: int
    config: StepConfig
    error: ErrorInfo
    output: bytes | None
    timeout_at: Instant

    @property
    def step_name(self) -> str:
        """The step as the platform names it."""
        return f"{self.name}-{self.count}"


# Notices.


class Run(NamedTuple):
    """Begin an execution and call `run`."""

    workflow: str
    id: str


class Stop(NamedTuple):
    """Cut the execution off: no further line of it runs."""

    workflow: str
    id: str


class Hibernate(NamedTuple):
    """Cut the execution off as `Stop` does: it was idle for so long that its memory goes (X6)."""

    workflow: str
    id: str


class Ready(NamedTuple):
    """Ask again what becomes of this step."""

    workflow: str
    id: str
    key: str


class WantDelay(NamedTuple):
    """Ask the step's delay function, then report the attempt as failed with what it gave (R3)."""

    workflow: str
    id: str
    key: str
    attempt: int
    error: ErrorInfo


class Rollback(NamedTuple):
    """Ask for the next rollback handler to run."""

    workflow: str
    id: str


class Ended(NamedTuple):
    """The instance came to its end; attempts in flight go on unless a `Stop` came before."""

    workflow: str
    id: str


class Gone(NamedTuple):
    """The instance's retention is over."""

    workflow: str
    id: str


Notice: TypeAlias = Run | Stop | Hibernate | Ready | WantDelay | Rollback | Ended | Gone

# Views.


class RollbackView(NamedTuple):
    """How a rollback ended (I4)."""

    outcome: Literal["complete", "failed"]
    error: ErrorInfo | None


@dataclass(frozen=True, slots=True)
class InstanceView:
    """An instance as it is now.

    `timestamp` is that of the event which `run` gets, `executions` how often `run` was called.
    """

    workflow: str
    id: str
    number: int
    status: Status
    output: bytes | None
    error: ErrorInfo | None
    rollback: RollbackView | None
    rolling_back: bool
    params: bytes
    timestamp: Instant
    started: Instant | None
    ended: Instant | None
    trigger: str
    schedule: Schedule | None
    executions: int


@dataclass(frozen=True, slots=True)
class StepView:
    """A started step as it is now; `due` is when its sleep, wait or retry delay ends.

    `attempts` counts started ones, lost ones included. `sensitive` asks not to show the output.
    """

    key: str
    name: str
    count: int
    kind: Kind
    state: StepState
    attempts: int
    output: bytes | None
    event: Event | None
    error: ErrorInfo | None
    started: Instant
    ended: Instant | None
    due: Instant | None
    config: StepConfig | None
    sensitive: bool


class HistoryRow(NamedTuple):
    """One row of an instance's history (§11); `result`, `params` and `payload` in `data` are the
    encoded values."""

    id: int
    at: Instant
    event: InstanceEvent
    group: str | None
    target: str | None
    data: Mapping[str, object]
