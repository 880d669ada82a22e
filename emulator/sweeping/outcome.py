"""What one run of a scenario came to, and the failures a sweep makes of such runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from emulator.faults.plan import format_plan
from emulator.location import describe_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.faults import Fault, Site
    from emulator.findings import Finding
    from emulator.trace import Trace

Plan: TypeAlias = "tuple[Fault, ...]"
"""The faults of one run; `()` is the clean run."""

Cause: TypeAlias = str
"""What groups failures: an exception's type and line (`AssertionError at tests/test_x.py:12`)."""

NONDETERMINISTIC: Final[Cause] = "nondeterministic"
LEAKS: Final[Cause] = "state outlives the runs"


class FindingsError(AssertionError):
    """A run whose findings fail it, though the scenario raised nothing."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        codes = ", ".join(dict.fromkeys(finding.code for finding in findings))
        lines = (f"the emulator found {codes}", *(f"  {finding}" for finding in findings))
        super().__init__("\n".join(lines))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, as `Search.tell` takes it; `observe` makes it of an emulator.

    `error` is what the scenario raised, or the findings that fail it; None if the run passed.
    `cause` groups failures. `sites`, `fired` and `sometimes` are the run's. `digest` (of the trace)
    and `trace` are needed for clean runs and for failing ones, and left out of others, to save time
    and memory. `seconds` is real time, for people only. `text` and `place` are how a report tells
    the error and its line; where they are empty they are made of `error` and `cause`. `cut_off`
    says that the error is a crash that a request of the scenario's own met with. `kept` names what
    the memory of a Worker kept though an isolate was lost. `output` is what Workers printed, where
    the run failed and it was kept.
    """

    error: BaseException | None = None
    cause: Cause = ""
    sites: Sequence[Site] = ()
    fired: Sequence[Fault] = ()
    sometimes: Mapping[str, bool] = field(default_factory=dict)
    digest: bytes = b""
    trace: Trace | None = None
    seconds: float = 0.0
    text: str = ""
    place: str = ""
    cut_off: bool = False
    kept: Sequence[str] = ()
    output: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A smallest plan under which the scenario fails.

    `plan` is empty if it fails without faults. `error` and `trace` are those of the first run under
    the plan; they are None for the 201st failure and those after it, which keep their `text` only.
    `cause` is what groups failures, `place` the line of the user's code with its source. `flaky`
    says that it did not fail in the same way when it was run again, `replayed` that this was tried.
    `other_trace` is that of the second run where two runs of one plan differ; `shown` is the plan's
    text with secrets masked; `output` is what the Workers printed in that run, where it was kept
    from the terminal, masked too.
    """

    plan: Plan
    error: BaseException | None
    trace: Trace | None
    cause: Cause
    flaky: bool = False
    replayed: bool = False
    text: str = ""
    place: str = ""
    other_trace: Trace | None = None
    shown: str = ""
    output: str = ""

    @property
    def is_from_the_start(self) -> bool:
        """Whether the scenario fails without faults, and before any was tried."""
        return not self.plan and self.cause != LEAKS

    def __str__(self) -> str:
        return f"{self.shown or format_plan(self.plan) or 'no fault'}: {self.text}"


def describe(error: BaseException | None) -> str:
    """Return an exception's type and text; empty for None."""
    return "" if error is None else describe_error(error)
