"""One execution of `run`: what it asked for so far, and how its steps are told apart (C1 to C3).

An execution is not durable: the next one starts counting anew, and finds by the same counting what
the one before left in the journal. A step is asked for with a method here, which refuses what the
platform refuses (S3) and gives the key with which the engine decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator.values.numbers import format_number
from emulator.workflows import grammar, texts
from emulator.workflows.grammar import DEFAULTS, check_duration, check_step_name
from emulator.workflows.model import MILLISECOND
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from emulator.workflows.instance import Instance
    from emulator.workflows.model import (
        ErrorInfo,
        Instant,
        Kind,
        Lane,
        Profile,
        Schedule,
        StepConfig,
        WorkflowRules,
    )

_DAY_IN_MS: Final = 86_400_000


@dataclass(slots=True)
class Ask:
    """What `run` asked for; `milliseconds` is a sleep's duration or a wait's time-out."""

    kind: Kind
    name: str
    count: int
    config: StepConfig | None = None
    has_rollback: bool = False
    rollback_config: StepConfig | None = None
    milliseconds: float = 0
    until: Instant | None = None
    type: str = ""


class Execution:
    """One call of `run`, numbered from 1 in its instance.

    `rebuilding` executions only bring rollback handlers back (K8); register a step's handler before
    asking for a decision. `rehearsing` ones repeat what a finished instance did, and change
    nothing.
    """

    __slots__ = (
        "_profile",
        "active",
        "asks",
        "blocked",
        "calls",
        "closed",
        "counts",
        "due",
        "failing",
        "id",
        "instance",
        "leaked",
        "met",
        "number",
        "params",
        "parked",
        "rebuilding",
        "rehearsing",
        "repeats",
        "rules",
        "schedule",
        "timestamp",
        "workflow",
    )

    def __init__(
        self, profile: Profile, instance: Instance, rules: WorkflowRules, *, rebuilding: bool
    ) -> None:
        self._profile: Profile = profile
        self.instance = instance
        self.rules = rules
        self.rebuilding = rebuilding
        self.rehearsing = False
        self.workflow: str = instance.workflow
        self.id: str = instance.id
        self.number: int = instance.executions
        self.params: bytes = instance.params
        self.timestamp: Instant = instance.created
        self.schedule: Schedule | None = instance.schedule
        self.closed = False
        self.calls = 0
        self.counts: dict[tuple[Kind, str], int] = {}
        self.asks: dict[str, Ask] = {}
        # Keys that a notice will come for; keys that a cancelled pause sets free; keys that this
        # execution saw under way; attempts whose delay function is being asked.
        self.parked: dict[str, None] = {}
        self.blocked: dict[str, None] = {}
        self.met: dict[str, None] = {}
        self.failing: dict[str, int] = {}
        # Running steps that the local engine forgets to count down (C5).
        self.leaked = 0
        # Whether a replay would repeat an effect, when something last went on, and when to look
        # whether it is idle (X6).
        self.repeats = False
        self.active: Instant = 0
        self.due: Instant | None = None

    @property
    def lane(self) -> Lane:
        """An execution that is idle is nothing to wait for."""
        return "idle"

    def do(
        self,
        name: str,
        config: object = None,
        *,
        has_rollback: bool = False,
        rollback_config: object = None,
    ) -> str:
        """Ask for a step; returns its key, or raises `EngineError` (S3, E9)."""
        undo = None
        if has_rollback:
            undo = grammar.rollback_config(self._profile, name, rollback_config)
        self._check_phase()
        self.calls += 1
        if self.calls > self.rules.step_limit:
            raise texts.step_limit(self.rules.step_limit)
        check_step_name(name)
        merged = (
            DEFAULTS[self._profile]
            if config is None
            else grammar.step_config(self._profile, name, config)
        )
        count = self._count("do", name)
        key = f"do:{name}-{count}"
        self.asks[key] = Ask("do", name, count, merged, has_rollback, undo)
        return key

    def sleep(self, name: str, duration: object) -> str:
        """Ask for a sleep of so many milliseconds, or of a duration in words (D5)."""
        self._check_phase()
        return self._sleep(name, check_duration(self._profile, duration), None)

    def sleep_until(self, name: str, at: float, now: Instant) -> str:
        """Ask for a sleep until so many milliseconds after the Unix epoch (D7).

        In production the first call fixes the instant; locally the duration that is left at each
        call is part of what tells sleeps apart (C2, D8).
        """
        self._check_phase()
        wall = now // MILLISECOND
        if not math.isfinite(at):
            local = self._profile == "miniflare"
            raise EngineError(*(texts.BAD_DURATION_LOCALLY if local else texts.BAD_DURATION))
        if self._profile == "miniflare":
            self._check_future(at, wall)
            return self._sleep(name, at - wall, round(at * MILLISECOND))
        if f"sleep:{name}-{self.counts.get(('sleep', name), 0) + 1}" not in self.instance.steps:
            self._check_future(at, wall)
            check_duration(self._profile, at - wall)
        return self._sleep(name, at - wall, round(at * MILLISECOND))

    def wait(self, name: str, type: str, timeout: Any = None) -> str:
        """Ask for an event; `timeout` in milliseconds or words, and nothing is a day (D9)."""
        self._check_phase()
        milliseconds = check_duration(self._profile, timeout) if timeout else _DAY_IN_MS
        if self._profile == "production":
            grammar.check_event_type(type)
        count = self._count("waitForEvent", name)
        key = f"waitForEvent:{name}-{count}"
        self.asks[key] = Ask("waitForEvent", name, count, milliseconds=milliseconds, type=type)
        return key

    def _sleep(self, name: str, milliseconds: float, until: Instant | None) -> str:
        if self._profile == "miniflare":
            told_apart = f"{name}@{format_number(milliseconds)}"
        else:
            told_apart = name
        count = self._count("sleep", told_apart)
        key = f"sleep:{told_apart}-{count}"
        self.asks[key] = Ask("sleep", name, count, milliseconds=milliseconds, until=until)
        return key

    def _count(self, kind: Kind, name: str) -> int:
        count = self.counts.get((kind, name), 0) + 1
        self.counts[kind, name] = count
        return count

    def _check_phase(self) -> None:
        if self.closed and not self.rebuilding:
            raise EngineError(*texts.IN_ROLLBACK)

    def _check_future(self, at: float, wall: int) -> None:
        if at < wall:
            raise EngineError(*texts.IN_THE_PAST)


def time_out_of(milliseconds: float) -> ErrorInfo:
    """What an attempt, or a wait, fails with when its time is over."""
    return texts.timed_out(format_number(milliseconds))
