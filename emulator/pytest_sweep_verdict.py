"""What came of a sweep, and how the report of its test says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from emulator.pytest_plugin import SWEEP_SECTION

if TYPE_CHECKING:
    from emulator.pytest_sweep_run import Phase, Repeater
    from emulator.sweeping.outcome import Failure, Plan
    from emulator.sweeping.report import SweepReport

_MOST_LINES = 20
_IN_PROCESS_ONLY = "determinism was checked in this process only: "
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

    @property
    def differs(self) -> bool:
        """Whether two runs without faults were not the same."""
        from emulator.sweeping.outcome import NONDETERMINISTIC

        return self.failure is not None and self.failure.cause == NONDETERMINISTIC

    @property
    def leaks(self) -> bool:
        """Whether the test has come to fail without faults, and did not at first."""
        from emulator.sweeping.outcome import LEAKS

        return self.failure is not None and self.failure.cause == LEAKS

    @property
    def fails_clean(self) -> bool:
        """Whether the test fails without faults, and does so each time."""
        return self.failure is not None and not self.failure.plan and not self.differs

    @property
    def shown_in(self) -> Phase:
        """The phase whose report has the failure of the sweep."""
        return "teardown" if self.fails_clean and self.phase == "teardown" else "call"

    def replaces(self, *, skipped: bool) -> bool:
        """Whether the run that is reported is to fail with the sweep's error instead of its own.

        `skipped` says that it was skipped.
        """
        if skipped:
            return bool(self.wrong) and not self.skipped
        return self.differs  # then its own error says little


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
        if report.when == "call":
            _say_when(report, f"under {failure.shown}")
    if failure is not None and verdict.leaks:
        _say_when(report, failure.cause)
    add_section(report, SWEEP_SECTION, "\n".join(part.rstrip() for part in parts))


def _found(verdict: Verdict, found: SweepReport) -> list[str]:
    if verdict.failure is None:
        return [found.summary()]
    if verdict.leaks and not verdict.replaced:  # the run that is reported has its own timeline
        first, *others = found.failures
        return [replace(found, failures=[replace(first, trace=None), *others]).render()]
    return [_CLEAN_FAILS if verdict.fails_clean and not verdict.replaced else found.render()]


def _say_when(report: pytest.TestReport, when: str) -> None:
    """Say under which plan a test failed where the short summary and JUnit files have it."""
    told: Any = report.longrepr
    crash = getattr(told, "reprcrash", None)
    if crash is not None:
        crash.message = f"{when}: {crash.message}"
    elif isinstance(told, str):
        report.longrepr = f"{when}: {told}"


def summarise(reporter: Any, swept: dict[str, str]) -> None:
    """Say at the end of a session what the sweeps that found nothing tried, and what they did not.

    `swept` are the texts of their reports by node id.
    """
    reporter.write_sep("=", "fault sweeps that found nothing")
    for nodeid, text in list(swept.items())[:_MOST_LINES]:
        reporter.write_line(f"{nodeid}: {'; '.join(text.splitlines())}")
    more = len(swept) - _MOST_LINES
    if more > 0:
        reporter.write_line(f"and {more} more; -rP shows what each tried")


def warn(reporter: Any, swept: dict[str, str]) -> None:
    """Say of sweeps that found nothing only why one did not check all: for `-q`.

    `swept` are the texts of their reports by node id.
    """
    reasons: dict[str, list[str]] = {}
    for nodeid, text in swept.items():
        _, found, why = text.partition(_IN_PROCESS_ONLY)
        if found:
            reasons.setdefault(found + why.partition("\n")[0], []).append(nodeid)
    for reason, (first, *others) in reasons.items():
        more = f" and {len(others)} more" if others else ""
        reporter.write_line(f"fault sweep of {first}{more}: {reason}")
