"""Which faults strike: every site that is met is counted here, and the plan looked up.

The emulator's parts call `meet` where the platform may fail, with the name of the site, and do
what the faults they get back say. Nothing else decides: the same plan over the same run strikes
the same places.

1. Occurrences are counted per site from 1, in the order met, whatever the plan.
2. A planned fault strikes where its site (or pattern) and occurrence match, and its action is
   possible: it is in the site's row of the table, takes this argument there, and is among
   `available` where the caller can do only some of them now.
3. Several faults on one occurrence are handed out in the order of the site's row, and in the
   plan's order among equal actions. Of the actions that end the occurrence only the first strikes;
   two equal faults strike once.
4. A fault that did not strike has not fired; at the end it is a finding, with the nearest sites.
   One whose effect comes later (`overlap`) has fired when its effect has come: `take_effect`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from emulator.errors import PlanError
from emulator.faults.grammar import SCHEDULE, SitePattern
from emulator.faults.plan import Fault, parse_plan, parse_site, read_plan
from emulator.faults.sites import CLASSES, Action, FaultClass, actions_at, class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

# A plan that cannot be read is shown at the line that gave it.
__tracebackhide__ = True


@dataclass(frozen=True, slots=True)
class Site:
    """A site that was met: its name, which occurrence this was, and what could have happened.

    `actions` maps each action possible then to its class; `at` is the virtual time in microseconds
    since the Unix epoch.
    """

    name: str
    occurrence: int
    actions: Mapping[str, FaultClass]
    at: int

    def faults(self, classes: Collection[str] = CLASSES) -> tuple[Fault, ...]:
        """Return the faults a sweep tries here, with a sweep's arguments."""
        occurrence = None if self.name == SCHEDULE else self.occurrence
        return tuple(
            Fault(self.name, occurrence, action.name, argument)
            for action in actions_at(self.name)
            if self.actions.get(action.name) in classes
            for argument in action.tried
        )


@dataclass(frozen=True, slots=True)
class Unfired:
    """A planned fault that never fired, the nearest sites that were met, and why, in a sentence."""

    fault: Fault
    nearest: tuple[str, ...]
    message: str


# An occurrence as `meet` keeps it: site, count, in_request, retried, available, time.
_Met = tuple[str, int, bool, bool, "Collection[str] | None", int]


class _Planned:
    """A fault of the plan, and whether it fired."""

    __slots__ = ("fault", "fired", "passed", "pattern")

    def __init__(self, fault: Fault, passed: int) -> None:
        self.fault = fault
        self.pattern: SitePattern = parse_site(fault.site)
        self.fired = False
        self.passed = passed  # occurrences of its very site met before it was planned


class Faults:
    """The plan of one emulator, what it met and what fired (`emulator.faults`).

    `now` gives the virtual time; `on_fired` is told of every firing, for the trace. With `remember`
    false the sites met are counted but not kept, for a server that runs for days.
    """

    def __init__(
        self,
        now: Callable[[], int],
        plan: Fault | Iterable[str | Fault] = (),
        *,
        on_fired: Callable[[Fault], None] | None = None,
        remember: bool = True,
    ) -> None:
        self._now = now
        self._on_fired = on_fired
        self._remember = remember
        self._planned: list[_Planned] = []
        self._counts: dict[str, int] = {}
        self._met: list[_Met] = []
        self._fired: list[Fault] = []
        self._striking: dict[str, tuple[tuple[_Planned, Action], ...]] = {}
        self._seed: int | None = None
        self._take(read_plan(plan))
        self._initial = self.plan

    # What tests use.

    def add(self, *faults: str | Fault) -> None:
        """Plan faults; a text may hold several, separated by `;`.

        Raises `PlanError` for a text that cannot be read, for a fault that can never fire and for
        what is no fault, and then plans none of them.
        """
        read = read_plan(faults)
        for text in faults:
            if isinstance(text, str) and not parse_plan(text):
                advice = "a fault is a text such as batch.emails#1:lose_ack"
                raise PlanError(f"add({text!r}) plans nothing; {advice}")
        self._take(read)

    def _take(self, read: tuple[Fault, ...]) -> None:
        seeds = [f.argument for f in (*self.plan, *read) if f.site == SCHEDULE]
        if len(dict.fromkeys(seeds)) > 1:
            raise PlanError(f"a plan has one schedule, and this would be a second: {read[-1]}")
        self._planned += [_Planned(fault, self._counts.get(fault.site, 0)) for fault in read]
        self._seed = seeds[0] if seeds else None
        self._striking.clear()

    def clear(self) -> None:
        """Take every fault out of the plan; what was met and what fired stays."""
        self._planned.clear()
        self._striking.clear()
        self._seed = None

    def reset(self) -> None:
        """Go back to the plan the emulator was made with, with nothing met and nothing fired."""
        self.clear()
        self._counts.clear()
        self._met.clear()
        self._fired.clear()
        self._take(self._initial)

    @property
    def plan(self) -> tuple[Fault, ...]:
        """The planned faults, in the order they were added."""
        return tuple(planned.fault for planned in self._planned)

    @property
    def fired(self) -> list[Fault]:
        """One fault per firing, in order, each with its very site and occurrence."""
        return list(self._fired)

    @property
    def sites(self) -> list[Site]:
        """The sites met so far, in order, one per occurrence."""
        return [_site(*met) for met in self._met]

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each site was met so far, in the order in which they first were."""
        return MappingProxyType(self._counts)

    def unfired(self) -> list[Unfired]:
        """Return the planned faults that did not fire so far, with the nearest sites met."""
        return [self._explain(planned) for planned in self._planned if not planned.fired]

    def __repr__(self) -> str:
        plan = "; ".join(map(str, self.plan)) or "nothing planned"
        return f"<Faults: {plan}; {len(self._fired)} fired>"

    # What the emulator's parts call.

    def forget(self, keep: int) -> None:
        """Keep so many firings, and of the sites those met most often and those with a fault.

        A site that is met again counts from 1: a server meets one for each path it is asked for.
        """
        del self._fired[: max(len(self._fired) - keep, 0)]
        seldom = sorted(self._counts, key=self._counts.__getitem__)
        for site in seldom[: max(len(seldom) - keep, 0)]:
            if not (self._planned and tuple(self._find(site))):
                del self._counts[site]
                self._striking.pop(site, None)

    def meet(
        self,
        site: str,
        *,
        in_request: bool = False,
        retried: bool = False,
        available: Collection[str] | None = None,
    ) -> tuple[Fault, ...]:
        """Count an occurrence of a site and return the faults that strike it, in order.

        `site` is what `site_name` made; `in_request` and `retried` decide the classes, as in
        `class_of`. `available` names the actions possible now, where not all of the site's are.
        """
        count = self._counts.get(site, 0) + 1
        self._counts[site] = count
        if self._remember:
            self._met.append((site, count, in_request, retried, available, self._now()))
        return self._strike(site, count, available) if self._planned else ()

    def pass_by(self, site: str, times: int, *, retried: bool = False) -> bool:
        """Count so many occurrences at once if no fault is planned; whether that was so."""
        if self._planned:
            return False
        count = self._counts.get(site, 0)
        self._counts[site] = count + times
        if self._remember:
            now = self._now()
            self._met += [
                (site, number, False, retried, None, now)
                for number in range(count + 1, count + times + 1)
            ]
        return True

    def take_effect(self, fault: Fault) -> None:
        """Let a fault fire that struck earlier, now that its effect has come."""
        for planned, action in self._striking[fault.site]:
            if action.name == fault.action and planned.fault.occurrence in (None, fault.occurrence):
                planned.fired = True
        self._report(fault)

    def schedule(self) -> int | None:
        """Return the seed that picks which of several ready invocations goes on first.

        To be called when two or more are ready. None means first come, first served.
        """
        if SCHEDULE not in self._counts:
            self.meet(SCHEDULE)
        if self._seed is not None:
            self._fire_schedule()
        return self._seed

    def _fire_schedule(self) -> None:
        for planned in self._planned:
            if planned.fault.site == SCHEDULE and not planned.fired:
                planned.fired = True
                self._report(planned.fault)

    def _strike(
        self, site: str, count: int, available: Collection[str] | None
    ) -> tuple[Fault, ...]:
        striking = self._striking.get(site)
        if striking is None:
            striking = self._striking[site] = tuple(self._find(site))
        if not striking:
            return ()
        struck: list[Fault] = []
        ended: Fault | None = None
        for planned, action in striking:
            if planned.fault.occurrence not in (None, count):
                continue
            if available is not None and action.name not in available:
                continue
            fault = replace(planned.fault, site=site, occurrence=count)
            if fault not in struck:
                if action.ends and ended is not None:
                    continue
                struck.append(fault)
                if not action.late:
                    self._report(fault)
            if action.ends:
                ended = fault
            planned.fired = planned.fired or not action.late
        return tuple(struck)

    def _find(self, site: str) -> Iterator[tuple[_Planned, Action]]:
        """Yield the planned faults that may strike a site, in the order in which they would."""
        if site == SCHEDULE:
            return
        for action in actions_at(site):
            for planned in self._planned:
                fault = planned.fault
                if (
                    fault.action == action.name
                    and action.accepts(fault.argument)
                    and planned.pattern.matches(site)
                ):
                    yield planned, action

    def _report(self, fault: Fault) -> None:
        self._fired.append(fault)
        if self._on_fired is not None:
            self._on_fired(fault)

    def _explain(self, planned: _Planned) -> Unfired:
        fault = planned.fault
        hits = tuple(site for site in self._counts if planned.pattern.matches(site))
        if not hits:
            nearest = self._nearest(fault.site)
            return Unfired(fault, nearest, f"{fault} never fired: {self._missed(fault, nearest)}")
        most = max(self._counts[site] for site in hits)
        if fault.occurrence is not None and most < fault.occurrence:
            why = f"{hits[0] if len(hits) == 1 else 'each such site'} was met {_times(most)} only"
        elif (fault.occurrence or most) <= planned.passed:
            why = "that occurrence had passed when the fault was planned; plan it earlier"
        else:
            why = f"{hits[0]} was met, but {self._impossible(planned)}"
        return Unfired(fault, hits[:3], f"{fault} never fired: {why}")

    def _impossible(self, planned: _Planned) -> str:
        fault = planned.fault
        needs = [
            action.needs
            for site in self._counts
            if planned.pattern.matches(site)
            for action in actions_at(site)
            if action.name == fault.action and action.needs
        ]
        what = f"{fault.action} needs {needs[0]}" if needs else "it was not possible there then"
        return f"{what}, or another fault ended that occurrence first"

    def _missed(self, fault: Fault, nearest: tuple[str, ...]) -> str:
        if fault.site == SCHEDULE:
            return "no two invocations were ready at the same time"
        if not nearest:
            return "no site was met"
        met = ", ".join(f"{site} (met {_times(self._counts[site])})" for site in nearest)
        return f"no such site was met; nearest: {met}"

    def _nearest(self, wanted: str) -> tuple[str, ...]:
        """Return up to three sites: similar names, else some of the same kind, else any."""
        met = [site for site in self._counts if site != SCHEDULE]
        same_kind = [site for site in met if site.split(".")[0] == wanted.split(".")[0]]
        close = get_close_matches(wanted, met, n=3)
        return tuple((close or same_kind or met)[:3])


def _site(
    name: str,
    occurrence: int,
    in_request: bool,
    retried: bool,
    available: Collection[str] | None,
    at: int,
) -> Site:
    among = None if available is None else tuple(available)
    return Site(name, occurrence, _possible(name, in_request, retried, among), at)


@lru_cache(maxsize=1024)
def _possible(
    name: str, in_request: bool, retried: bool, available: tuple[str, ...] | None
) -> Mapping[str, FaultClass]:
    """The actions possible at a site, with their classes; most are met again in each run."""
    actions = {
        action.name: class_of(action, in_request=in_request, retried=retried)
        for action in actions_at(name)
        if available is None or action.name in available
    }
    return MappingProxyType(actions)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
