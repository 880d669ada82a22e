"""What a search has learned so far: which plans were tried, which fail, which sites there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from emulator.faults import format_plan
from emulator.faults.grammar import SCHEDULE
from emulator.sweeping.outcome import LEAKS, Failure, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from emulator.faults import Fault, Site
    from emulator.sweeping.outcome import Outcome, Plan
    from emulator.sweeping.selection import Selection

Place: TypeAlias = tuple[str, int]
"""A site and which of its occurrences."""

_OUTLIVES: Final = (
    "now fails without a fault too: state outlives the runs (module globals of the test, wider "
    "fixtures, class attributes). Make it in the test, or put it back there"
)
# So many failures keep their error and trace, besides the first of each cause.
KEPT_FAILURES: Final = 200


def place_of(site: Site) -> Place:
    """Return the name and the occurrence of a site that was met."""
    return site.name, site.occurrence


def place_at(fault: Fault) -> Place:
    """Return where a fault strikes; a schedule, which has no occurrence, at its first."""
    return fault.site, fault.occurrence or 1


def is_concrete(fault: Fault) -> bool:
    """Whether a fault means one occurrence of one site, or is a schedule."""
    return not fault.glob and (fault.occurrence is not None or fault.site == SCHEDULE)


def has_fired(plan: Plan, outcome: Outcome) -> bool:
    """Whether every fault of the plan fired."""
    return all(fault in outcome.fired for fault in plan)


@dataclass(slots=True)
class Entry:
    """A failure, and the digest of the run in which it was found."""

    failure: Failure
    digest: bytes

    def compare(self, outcome: Outcome) -> None:
        """Mark the failure as replayed, and as flaky if this run of its plan went another way."""
        same = (outcome.cause, outcome.digest) == (self.failure.cause, self.digest)
        flaky = self.failure.flaky or outcome.error is None or not same
        self.failure = replace(self.failure, replayed=True, flaky=flaky)


class Ledger:
    """The facts of one search; the rules are in search.py."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.masker: Callable[[str], str] = str
        self.runs = 0
        self.seconds = 0.0
        self.sites: Sequence[Site] = ()
        self.sometimes: dict[str, bool] = {}
        self.kept: dict[str, None] = {}
        self.entries: list[Entry] = []
        # Plans as sets of faults, whose order is never asked for.
        self._tried: dict[frozenset[Fault], bool] = {}
        self._tried_places: dict[Place, None] = {}
        self._causes: dict[str, None] = {}
        self._clean: dict[Place, None] = {}
        self._known: dict[Place, None] = {}
        self._hidden: dict[Place, None] = {}
        self._unfired: list[Plan] = []
        self.tried: dict[int, int] = {}
        # Plans whose run was cut off (rule 12); longer ones only if none of their faults does it.
        self.cut_off: dict[frozenset[Fault], None] = {}

    # -- every run -------------------------------------------------------------------------------

    def count(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.seconds += outcome.seconds
        self.kept.update(dict.fromkeys(outcome.kept))
        for name, met in outcome.sometimes.items():
            self.sometimes[name] = self.sometimes.get(name, False) or bool(met)

    def meet_clean(self, outcome: Outcome) -> None:
        """Remember the sites of the clean run, and what may not be shown."""
        if outcome.trace is not None:
            self.masker = outcome.trace.masker
        self.sites = tuple(outcome.sites)
        self._clean = dict.fromkeys(map(place_of, self.sites))
        self._known = dict(self._clean)

    def is_clean(self, place: Place) -> bool:
        """Whether the clean run met this."""
        return place in self._clean

    def meet(self, sites: Iterable[Site]) -> None:
        """Remember the sites that were met under a fault only, where there is something to try."""
        for site in sites:
            place = (site.name, site.occurrence)
            if place not in self._known:
                self._known[place] = None
                if self._selection.at(site):
                    self._hidden[place] = None

    # -- plans -----------------------------------------------------------------------------------

    def note(self, plan: Plan, outcome: Outcome) -> None:
        """Note the outcome of a plan that was tried for the first time."""
        self._tried[frozenset(plan)] = outcome.error is not None
        self.meet(outcome.sites)
        if outcome.error is None and outcome.cut_off:
            if not any(frozenset((fault,)) in self.cut_off for fault in plan):
                self.cut_off[frozenset(plan)] = None
            return
        self.tried[len(plan)] = self.tried.get(len(plan), 0) + 1
        for fault in plan:
            self._tried_places[place_at(fault)] = None
        if not has_fired(plan, outcome):
            self._unfired.append(plan)

    def is_tried(self, plan: Plan) -> bool:
        """Whether the plan was tried, with its faults in any order."""
        return frozenset(plan) in self._tried

    def fails(self, plan: Plan) -> bool:
        """Whether the plan was tried and failed."""
        return self._tried.get(frozenset(plan), False)

    def add(self, plan: Plan, outcome: Outcome, *, replayed: bool = False) -> None:
        """List a failure; of very many only some keep what takes memory."""
        keeps = len(self.entries) < KEPT_FAILURES or outcome.cause not in self._causes
        failure = Failure(
            plan=plan,
            error=outcome.error if keeps else None,
            trace=outcome.trace if keeps else None,
            cause=outcome.cause,
            replayed=replayed,
            text=outcome.text or describe(outcome.error),
            place=outcome.place,
            shown=self.masker(format_plan(plan)),
            output=outcome.output if keeps else "",
        )
        self.enter(failure, outcome.digest)

    def enter(self, failure: Failure, digest: bytes = b"") -> None:
        """List a failure as it is."""
        self._causes[failure.cause] = None
        self.entries.append(Entry(failure, digest))

    def blame_state(self, outcome: Outcome) -> None:
        """List what a clean run failed with in the end, in place of the failures that are like it.

        They came of what the runs before them had left behind, and not of their faults.
        """
        alike = [entry.failure for entry in self.ordered if _is_like(entry.failure, outcome)]
        self.entries = [entry for entry in self.entries if entry.failure not in alike]
        text = outcome.text or describe(outcome.error)
        lines = [_OUTLIVES, text, *_put_down(alike)]
        self.enter(
            Failure(
                plan=(),
                error=outcome.error,
                trace=outcome.trace,
                cause=LEAKS,
                replayed=True,
                text="\n".join(lines),
                place=outcome.place,
                output=outcome.output,
            )
        )

    # -- what the report says --------------------------------------------------------------------

    @property
    def ordered(self) -> list[Entry]:
        """The failures: those of fewer faults first, then in the order in which they were found."""
        return sorted(self.entries, key=lambda entry: len(entry.failure.plan))

    @property
    def not_tried(self) -> dict[str, int]:
        """How many faults were left out for their class, by class; what was cut off, too."""
        counts = self._selection.other_classes(self.sites)
        if self.cut_off:
            counts["request"] = counts.get("request", 0) + len(self.cut_off)
        return counts

    @property
    def tried_sites(self) -> int:
        """At how many sites a fault was tried."""
        return len(self._tried_places)

    @property
    def hidden(self) -> list[str]:
        """The sites that appear only under a fault and at which nothing was tried."""
        return [
            self.masker(f"{name}#{occurrence}")
            for name, occurrence in self._hidden
            if (name, occurrence) not in self._tried_places
        ]

    @property
    def unfired(self) -> list[str]:
        """The plans of which not every fault fired."""
        return [self.masker(format_plan(plan)) for plan in self._unfired]

    @property
    def never(self) -> list[str]:
        """The names given to `sometimes` that were never true."""
        return [name for name, met in self.sometimes.items() if not met]


def _is_like(failure: Failure, outcome: Outcome) -> bool:
    same_line = bool(failure.place) and failure.place == outcome.place
    return failure.cause == outcome.cause or same_line


def _put_down(failures: Sequence[Failure]) -> Iterator[str]:
    if failures:
        number = len(failures)
        plans = "1 plan that failed" if number == 1 else f"{number:,} plans that failed"
        yield f"{plans} on the same line put down to it, the first: {failures[0].shown}"


def first_of_each_cause(entries: Sequence[Entry]) -> list[Entry]:
    """Return the failures with those that represent a cause in front."""
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry.failure.cause, entry)
    others = [e for e in entries if first[e.failure.cause] is not e]
    return [*first.values(), *others]
