"""What a test puts in place of steps, sleeps and events (§13, api names of Cloudflare's plugin).

Mocks are the test's: they survive crashes and restarts, and are no part of the durable state. Those
of one instance come before those for all later instances of a Workflow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.workflows.gates import Gate
    from emulator.workflows.model import ErrorInfo

NOTHING: Final = object()


class Failure(NamedTuple):
    """Attempts that are to fail: this many of them, None for all that follow."""

    kind: Literal["error", "timeout"]
    error: ErrorInfo | None
    times: int | None


@dataclass(slots=True)
class Mark:
    """A name that a test gave, and whether the Workflow came to it."""

    reached: bool = False


@dataclass(slots=True)
class StepMock:
    """What becomes of one step: failures first, in the order they were asked for, then a result."""

    result: Any = NOTHING
    failures: list[Failure] = field(default_factory=list)
    reached: bool = False

    def failure(self, attempt: int) -> Failure | None:
        """How this attempt is to fail, if it is (V3); of two without an end, the error (V4)."""
        before = 0
        for failure in self.failures:
            if failure.times is None:
                forever = [one for one in self.failures if one.times is None]
                return min(forever, key=lambda one: one.kind != "error")
            if attempt <= before + failure.times:
                return failure
            before += failure.times
        return None


@dataclass(slots=True)
class Mocks:
    """The mocks of one instance, or those for the later ones of a Workflow."""

    steps: dict[tuple[str, int], StepMock] = field(default_factory=dict)
    events: list[tuple[str, bytes | None, Mark]] = field(default_factory=list)
    timed_out: dict[str, Mark] = field(default_factory=dict)
    # Names whose sleeps, and retry delays, take no time; None stands for all.
    no_sleeps: dict[str | None, Mark] = field(default_factory=dict)
    no_delays: dict[str | None, Mark] = field(default_factory=dict)
    gates: dict[tuple[str, int], Gate] = field(default_factory=dict)

    def step(self, name: str, index: int) -> StepMock:
        """The mock of a step, made if there is none."""
        return self.steps.setdefault((name, index), StepMock())

    def for_an_instance(self) -> Mocks:
        """These mocks as an instance gets them that is created now: later ones are not its."""
        return Mocks(
            dict(self.steps),
            list(self.events),
            dict(self.timed_out),
            dict(self.no_sleeps),
            dict(self.no_delays),
            dict(self.gates),
        )

    def unreached(self) -> Iterator[str]:
        """Say what was mocked in vain."""
        for (name, index), mock in self.steps.items():
            if not mock.reached:
                yield f"the step {name!r}" + (f" (number {index})" if index > 1 else "")
        for (name, index), gate in self.gates.items():
            if not gate.was_reached:
                yield f"the held step {name!r}" + (f" (number {index})" if index > 1 else "")
        for kind, _, mark in self.events:
            if not mark.reached:
                yield f"the event {kind!r}"
        for what, marks in (
            ("the event wait", self.timed_out),
            ("the sleep", self.no_sleeps),
            ("the retry delay of", self.no_delays),
        ):
            for given, mark in marks.items():
                if given is not None and not mark.reached:
                    yield f"{what} {given!r}"


def marked(marks: Mapping[Any, Mark], name: str) -> bool:
    """Whether a name, or every name, was given; notes that the Workflow came to it."""
    for known in (name, None):
        if known in marks:
            marks[known].reached = True
            return True
    return False
