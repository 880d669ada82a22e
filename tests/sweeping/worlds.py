"""Scripted worlds for a search to sweep: what a run meets under a plan, and when it fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from emulator import WorkerCrashed
from emulator.faults import Fault, Site, actions_at
from emulator.faults.grammar import SCHEDULE
from emulator.faults.sites import class_of
from emulator.sweeping.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from emulator.sweeping.outcome import Plan
    from emulator.sweeping.report import SweepReport
    from emulator.sweeping.search import Search


def plan(text: str) -> Plan:
    """The faults of a text, separated by semicolons."""
    return tuple(Fault.parse(part) for part in text.split(";"))


def texts(plans: Iterable[Plan]) -> list[str]:
    return ["; ".join(map(str, each)) for each in plans]


@cache
@cache
def site(name: str, occurrence: int, **options: bool) -> Site:
    actions = {action.name: class_of(action, **options) for action in actions_at(name)}
    return Site(name, occurrence, actions, 0)


@dataclass
class World:
    """A scenario that meets `sites` in this order, and more of them after some faults.

    `reveals` maps a fault's text to the sites that are met right after it fired. The run fails if
    all faults of one of the plans in `bugs` fired. `requests` are sites inside a request of the
    test's; `broken` are faults that cannot fire; `cuts` are those that cut off such a request, and
    with it the scenario.
    """

    sites: Sequence[str]
    bugs: Sequence[str] = ()
    reveals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    requests: Sequence[str] = ()
    broken: Sequence[str] = ()
    cuts: Sequence[str] = ()

    def run(self, faults: Plan) -> Outcome:
        met: list[Site] = []
        fired: list[Fault] = []
        counts: dict[str, int] = {}
        waiting = list(self.sites)
        waiting.reverse()
        while waiting:
            name = waiting.pop()
            counts[name] = counts.get(name, 0) + 1
            met.append(site(name, counts[name], in_request=name in self.requests))
            for fault in faults:
                occurrence = 1 if fault.site == SCHEDULE else fault.occurrence
                if (fault.site, occurrence) == (name, counts[name]):
                    if str(fault) in self.broken:
                        continue
                    fired.append(fault)
                    waiting += reversed(self.reveals.get(str(fault), ()))
                    if str(fault) in self.cuts:
                        return self._cut_off(met, fired)
        bug = next((bug for bug in self.bugs if set(plan(bug)) <= set(fired)), None)
        digest = repr((sorted(map(str, fired)), [(s.name, s.occurrence) for s in met])).encode()
        if bug is None:
            return Outcome(sites=met, fired=fired, digest=digest)
        cause = self.causes.get(bug, "AssertionError at test_it.py:7")
        error = AssertionError(f"broken by {bug}")
        return Outcome(error=error, cause=cause, sites=met, fired=fired, digest=digest)

    @staticmethod
    def _cut_off(met: list[Site], fired: list[Fault]) -> Outcome:
        error, digest = WorkerCrashed("cut off"), repr(fired).encode()
        cause = "WorkerCrashed at test_it.py:3"
        return Outcome(error, cause, sites=met, fired=fired, digest=digest, cut_off=True)


def drive(search: Search, world: World, *, most: int = 100_000) -> list[Plan]:
    """Run a search to its end; returns the plans in the order in which they were run."""
    plans: list[Plan] = []
    while (each := search.next()) is not None:
        plans.append(each)
        assert len(plans) <= most, "the search does not end"
        search.tell(each, world.run(each))
    return plans


def failing(report: SweepReport) -> list[str]:
    """The texts of the plans that fail, in the report's order."""
    return texts(failure.plan for failure in report.failures)
