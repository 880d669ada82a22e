"""What came of a sweep, and how the report of its test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emulator.pytest_sweep_run import Phase, Repeater
    from emulator.sweeping.outcome import Failure, Plan
    from emulator.sweeping.report import SweepReport

SECTION = "fault sweep"
_CLEAN_FAILS = "The test fails without any fault, so no fault was tried."
_WIDER = 'Drop the marker, or let it try more: classes="all", less in `only` and `skip`.'


@dataclass(slots=True)
class Verdict:
    """What came of a sweep, for the run that is reported.

    `refusal` says why there was none; `skipped` that the test is skipped without faults. `failure`
    is the smallest one, `phase` where its run failed. `replaced` says that the error of `failure`
    stands in for a run that showed none.
    """

    refusal: str = ""
    skipped: bool = False
    report: SweepReport | None = None
    failure: Failure | None = None
    phase: Phase = "call"
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    replaced: bool = False

    @property
    def wrong(self) -> str:
        """What must fail the item if the run that is reported does not; empty if nothing."""
        if self.skipped:
            return "the test was skipped in its first run without faults and not in its second"
        if self.report is None:
            return ""
        if self.failure is not None:
            return str(self.failure) if self.plan else self.failure.text
        if self.report.unmatched:
            from emulator.sweeping.text import unmatched

            return unmatched(self.report, "of the marker", "this test")
        if self.report.empty:
            return f"{self.report.summary()}. {_WIDER}"
        return "" if self.report.complete else "the sweep was stopped before its end"

    @property
    def plan(self) -> Plan:
        """The smallest plan that fails; empty if none does, or the test fails without faults."""
        return () if self.failure is None else self.failure.plan


VERDICT = pytest.StashKey[Verdict]()


def notes(repeater: Repeater) -> tuple[str, ...]:
    """Return what is to be said of a sweep beside what its search knows."""
    from emulator.faults import format_plan

    if not repeater.skipped:
        return ()
    first, count = format_plan(repeater.skipped[0]), len(repeater.skipped)
    runs = "1 run" if count == 1 else f"{count} runs"
    return (f"skipped by the test itself, counted as passed: {runs}, the first under {first}",)


def tell(item: pytest.Item, verdict: Verdict, report: pytest.TestReport) -> None:
    """Write into a test's report what the sweep found."""
    from emulator.pytest_report import add_section, reproduction

    if verdict.report is None:
        return
    parts = [*_found(verdict, verdict.report), *verdict.notes]
    failure = verdict.failure
    if failure is not None and failure.plan:
        parts.append(reproduction(item, failure.shown))
        _name_plan(report, failure.shown)
    add_section(report, SECTION, "\n".join(part.rstrip() for part in parts))


def _found(verdict: Verdict, found: SweepReport) -> list[str]:
    if verdict.failure is None:
        return [found.summary()]
    if verdict.plan or verdict.replaced:
        return [found.render()]
    return [_CLEAN_FAILS]


def _name_plan(report: pytest.TestReport, plan: str) -> None:
    """Say under which plan a test failed where the short summary and JUnit files have it."""
    told: Any = report.longrepr
    crash = getattr(told, "reprcrash", None)
    if crash is not None:
        crash.message = f"under {plan}: {crash.message}"
    elif isinstance(told, str):
        report.longrepr = f"under {plan}: {told}"
