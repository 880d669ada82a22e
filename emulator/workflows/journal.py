"""What is remembered of one step, of a rollback, and of an event that nobody waited for yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.workflows.model import ErrorInfo, Event, StepConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.workflows.model import Duration, Instant, Kind, Lane, Record, StepState


_LANES: Final[Mapping[Kind, Lane]] = {"do": "work", "sleep": "sleep", "waitForEvent": "wait"}


@dataclass(slots=True, eq=False)
class Step:
    """A step that was started.

    `number` counts the steps of an instance in order of their start. `due` is when an attempt in
    flight times out (`running`), or when the sleep, wait or retry delay ends (`waiting`); while the
    instance is paused `left` is what remained of the latter. `uncharged` attempts, of those
    started, do not count against the retries. `timeout` is a wait's or a sleep's time in
    milliseconds.
    """

    key: str
    name: str
    count: int
    kind: Kind
    number: int
    started: Instant
    state: StepState = "waiting"
    due: Instant | None = None
    left: Duration | None = None
    ended: Instant | None = None
    attempts: int = 0
    uncharged: int = 0
    config: StepConfig | None = None
    has_rollback: bool = False
    rollback_config: StepConfig | None = None
    type: str = ""
    timeout: float = 0
    output: bytes | None = None
    event: Event | None = None
    error: ErrorInfo | None = None

    @property
    def lane(self) -> Lane:
        """What kind of thing falls due at `due`."""
        return _LANES[self.kind]

    @property
    def target(self) -> str:
        """The step as the platform names it."""
        return f"{self.name}-{self.count}"

    @property
    def charged(self) -> int:
        """How many attempts count against the retries."""
        return self.attempts - self.uncharged

    def freeze(self, now: Instant) -> None:
        """Stop what runs down while the instance does not run."""
        if self.state == "waiting" and self.due is not None:
            self.left = max(0, self.due - now)
        self.due = None

    def thaw(self, now: Instant) -> None:
        """Let it run down again."""
        if self.left is not None:
            self.due = now + self.left
            self.left = None

    def end(self, state: StepState, at: Instant) -> None:
        """Nothing more will happen to the step."""
        self.state = state
        self.due = self.left = None
        self.ended = at


_PLAIN: Final = tuple(
    name for name in Step.__slots__ if name not in ("config", "rollback_config", "event", "error")
)


def dump_step(step: Step) -> Record:
    """A step as a record has it."""
    plain = [getattr(step, name) for name in _PLAIN]
    values = (step.config, step.rollback_config, step.event, step.error)
    return [*plain, *(None if value is None else list(value) for value in values)]


def load_step(dumped: Record) -> Step:
    """The step that `dump_step` gave."""
    *plain, config, rollback_config, event, error = dumped
    return Step(
        **dict(zip(_PLAIN, plain, strict=True)),
        config=config_of(config),
        rollback_config=config_of(rollback_config),
        event=None if event is None else Event(*event),
        error=error_of(error),
    )


def config_of(dumped: Record | None) -> StepConfig | None:
    """Settings as a record has them; one that was not stored yet has them as they are."""
    if dumped is None or isinstance(dumped, StepConfig):
        return dumped
    return StepConfig(*dumped)


def error_of(dumped: Record | None) -> ErrorInfo | None:
    """An error as a record has it."""
    return None if dumped is None else ErrorInfo(*dumped)


@dataclass(slots=True, eq=False)
class Undoing:
    """A rollback that is under way.

    `status` and `error` are what the instance ends with, `trigger` is what the handlers are told.
    `left` are the keys of the steps still to undo; the first is being undone, in attempt number
    `attempts`, which is `flying` until its result or its time-out at `due`. Between attempts `due`
    is when the next one starts.
    """

    trigger: ErrorInfo
    status: str
    error: ErrorInfo | None
    left: list[str]
    total: int
    attempts: int = 0
    uncharged: int = 0
    flying: bool = False
    due: Instant | None = None
    completed: int = 0
    failure: ErrorInfo | None = None

    @property
    def lane(self) -> Lane:
        """A rollback is work."""
        return "work"

    @property
    def over(self) -> bool:
        """Whether no handler is called any more."""
        return not self.left or self.failure is not None


def dump_undoing(undoing: Undoing | None) -> Record | None:
    """A rollback as a record has it."""
    if undoing is None:
        return None
    plain = [getattr(undoing, name) for name in Undoing.__slots__]
    return [list(item) if isinstance(item, (ErrorInfo, list)) else item for item in plain]


def load_undoing(dumped: Record | None) -> Undoing | None:
    """The rollback that `dump_undoing` gave."""
    if dumped is None:
        return None
    trigger, status, error, left, total, *rest, failure = dumped
    undoing = Undoing(ErrorInfo(*trigger), status, error_of(error), list(left), total)
    attempts, undoing.uncharged, undoing.flying, undoing.due, undoing.completed = rest
    undoing.attempts = attempts
    undoing.failure = error_of(failure)
    return undoing
