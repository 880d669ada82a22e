"""Which plan a sweep tries next, and what the outcomes mean.

A plan is a set of faults; its outcome is what a run of the scenario under it came to. The search
knows nothing of emulators: it hands out plans and is told outcomes. Its rules:

1. The clean run, `()`, comes first, and twice. If the two are not the same (error, trace), or if
   it fails, that is the one failure, and the search ends.
2. Where the clean run met no site, or none is left after `classes`, `only` and `skip`, there is
   nothing to sweep: the report is `empty`.
3. Each fault that could strike at a site of the clean run is tried alone, in the order met, once.
4. A site that only a run under a fault has met is remembered; at depth 1 nothing is tried there.
5. At a greater depth each plan that passed, and all of whose faults fired, is extended by each
   fault whose site that run met after the last of them. All plans of one length come before longer
   ones. A plan of which a part fails is not tried: it would not be the smallest.
6. A plan whose faults did not all fire is no failure; it is counted as not reached.
7. A failing plan of several faults is shrunk: its parts are tried, the smallest first, if they have
   not been. What fails and is smallest is the failure.
8. `limit` is of the plans tried. Where more could be, those tried are chosen by seed, so that they
   are not all alike. Shrinking and replays come on top.
9. In the end failures are replayed, twice, those first that represent a cause, and at most 20. One
   that goes another way then is flaky.
10. After failures the scenario runs clean once more. If that fails now, something outlives the
    runs: this is a failure without a plan, and stands in for those on the same line.
11. Everything follows from the arguments and the outcomes: the same ones give the same plans.
12. A run that ends since a crash cut off a request of the scenario's own is of class *request*,
    whatever site the crash was at: the client has seen it, and no Worker could have kept it from
    that. Without the class it is neither a failure nor tried, and it is not extended.

Of several shards each runs clean; the single faults are dealt out, and what extends one stays with
it. A `schedule` is for the whole run: it counts as the first fault of a plan.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final, Literal

from emulator.faults.grammar import SCHEDULE
from emulator.faults.plan import format_plan
from emulator.sweeping import determinism
from emulator.sweeping.ledger import (
    Ledger,
    first_of_each_cause,
    has_fired,
    is_concrete,
    place_at,
    place_of,
)
from emulator.sweeping.report import SweepReport
from emulator.sweeping.sampling import Sampler
from emulator.sweeping.selection import Selection
from emulator.sweeping.shrinking import parts

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence

    from emulator.faults import Fault
    from emulator.sweeping.outcome import Outcome, Plan

# Plans beyond the single faults, where nothing else is said.
DEFAULT_LIMIT: Final = 2000
MOST_REPLAYED: Final = 20
_REPLAYS: Final = 2


class Search:
    """Hands out plans one after another and is told what each came to.

        search = Search(depth=2)
        while (plan := search.next()) is not None:
            search.tell(plan, run(plan))
        report = search.report()

    `depth` is the number of faults in a plan; `classes` are those to try, "all" means all but
    "loss"; `only` and `skip` are patterns of sites or faults; `limit` is the most plans to try
    besides the clean one and `seed` chooses them; `first` are plans to try before all others, left
    out where the clean run does not meet their sites; `shard` is which of how many, each with its
    share of the limit.

    Raises `ValueError` or `PlanError`, which say what is allowed, for arguments that are wrong.
    """

    def __init__(
        self,
        *,
        depth: int = 1,
        classes: Collection[str] | Literal["all"] = ("platform",),
        only: Sequence[str] = (),
        skip: Sequence[str] = (),
        limit: int | None = None,
        seed: int = 0,
        first: Sequence[Plan] = (),
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        self._shard = _check_shard(shard)
        self._depth = _whole("depth", depth)
        self._limit = None if limit is None else _share(_whole("limit", limit), shard)
        self._selection = Selection(classes, only, skip)
        self._first = list(dict.fromkeys(tuple(plan) for plan in first if plan))
        self._seed = seed
        self._sampler = Sampler(seed)
        self._ledger = Ledger(self._selection)
        self._singles: dict[Fault, int] = {}
        # What a plan that passed can be extended with, by the plan's length.
        self._extensions: dict[int, list[tuple[Plan, list[Fault]]]] = {}
        # How many plans of each length the limit cuts off, and which of one fault.
        self._cut: dict[int, int] = {}
        self._cut_off: list[Fault] = []
        self._tried = 0
        self._ahead = 1
        self._steps = self._search()
        self._pending: Plan | None = next(self._steps)

    def next(self) -> Plan | None:
        """Return the plan to run now; None when all is tried. The same one until `tell`."""
        return self._pending

    def tell(self, plan: Plan, outcome: Outcome) -> None:
        """Say what the plan that `next` returned came to; `ValueError` for any other plan."""
        if self._pending is None or plan != self._pending:
            raise ValueError(f"tell() is for the plan that next() returned, {self._pending!r}")
        self._ledger.count(outcome)
        if plan and outcome.cut_off and "request" not in self._selection.classes:
            outcome = replace(outcome, error=None)
        try:
            self._pending = self._steps.send(outcome)
        except StopIteration:
            self._pending = None

    def report(self) -> SweepReport:
        """Return what is known so far; complete once `next` has returned None."""
        ledger = self._ledger
        failures = [entry.failure for entry in ledger.ordered]
        cut_off = [ledger.masker(str(fault)) for fault in self._cut_off]
        return SweepReport(
            runs=ledger.runs,
            failures=failures,
            sites=list(ledger.sites),
            unreached=[*cut_off, *ledger.unfired, *ledger.hidden],
            not_tried=ledger.not_tried,
            never=ledger.never,
            kept_memory=list(ledger.kept),
            complete=self._pending is None,
            tried=dict(sorted(ledger.tried.items())),
            tried_sites=ledger.tried_sites,
            candidates=sum(frozenset((f,)) not in ledger.cut_off for f in self._singles),
            left_out=self._selection.left_out(ledger.sites),
            cut=dict(self._cut),
            unfired=ledger.unfired,
            hidden=ledger.hidden,
            unmatched=self._selection.unmatched(ledger.sites),
            gone=[ledger.masker(format_plan(plan)) for plan in self._first if self._is_gone(plan)],
            replayed=sum(failure.replayed for failure in failures),
            depth=self._depth,
            selection=str(self._selection),
            seed=self._seed,
            shard=self._shard,
            seconds=ledger.seconds,
            masker=ledger.masker,
        )

    @property
    def done(self) -> int:
        """The runs told so far, the clean ones included."""
        return self._ledger.runs

    @property
    def total(self) -> int:
        """The runs known to come and those done, for a progress bar; it may grow."""
        return self.done + (self._ahead + 1 if self._pending is not None else 0)

    # -- the phases ------------------------------------------------------------------------------

    def _search(self) -> Generator[Plan, Outcome, None]:
        if not (yield from self._run_clean()):
            return
        yield from self._try_first()
        yield from self._try_singles()
        for length in range(2, self._depth + 1):
            yield from self._try_longer(length)
        yield from self._replay()
        yield from self._run_clean_again()

    def _run_clean(self) -> Generator[Plan, Outcome, bool]:
        """Run clean, twice; return whether there is something to sweep (rules 1 and 2)."""
        first = yield ()
        self._ahead = 0
        second = yield ()
        ledger = self._ledger
        ledger.meet_clean(first)
        singles = [fault for site in ledger.sites for fault in self._selection.at(site)]
        self._singles = {fault: index for index, fault in enumerate(dict.fromkeys(singles))}
        if not determinism.is_same(first, second):
            ledger.enter(determinism.differing(first, second))
            return False
        if first.error is not None:
            ledger.add((), first, replayed=True)
            return False
        return bool(self._singles)

    def _try_first(self) -> Generator[Plan, Outcome, None]:
        """Try the plans that were given, those whose sites are met and that are mine."""
        plans = [plan for plan in self._first if self._is_wanted(plan)]
        mine = [plan for index, plan in enumerate(plans) if self._is_given_to_me(plan, index)]
        yield from self._try_all(mine[: self._limit])

    def _try_singles(self) -> Generator[Plan, Outcome, None]:
        mine = [(fault,) for fault in self._singles if self._is_mine(fault)]
        plans = [plan for plan in mine if not self._ledger.is_tried(plan)]
        if self._limit is not None and len(plans) > (budget := self._budget()):
            chosen = dict.fromkeys(self._sampler.pick(plans, budget))
            self._cut_off = [fault for (fault,) in plans if (fault,) not in chosen]
            self._cut[1] = len(self._cut_off)
            plans = list(chosen)
        yield from self._try_all(plans)

    def _try_longer(self, length: int) -> Generator[Plan, Outcome, None]:
        extensions = self._extensions.pop(length - 1, [])
        # There may be so many that they had better not be all in memory.
        budget = self._budget()
        plans = list(islice(self._extended(extensions), budget + 1))
        if len(plans) > budget:
            number = sum(1 for _ in self._extended(extensions))
            chosen = dict.fromkeys(self._sampler.pick(range(number), budget))
            plans = [p for index, p in enumerate(self._extended(extensions)) if index in chosen]
            self._cut[length] = number - budget
        yield from self._try_all(plans)

    def _extended(self, extensions: list[tuple[Plan, list[Fault]]]) -> Iterator[Plan]:
        """Yield the plans of one length that are to be tried."""
        for plan, faults in extensions:
            for fault in faults:
                longer = (*plan, fault)
                if not self._ledger.is_tried(longer) and not self._has_failing_part(longer):
                    yield longer

    def _budget(self) -> int:
        """How many plans may still be tried (rule 8)."""
        limit = _share(DEFAULT_LIMIT, self._shard) if self._limit is None else self._limit
        return max(limit - self._tried, 0)

    def _try_all(self, plans: Sequence[Plan]) -> Generator[Plan, Outcome, None]:
        for index, plan in enumerate(plans):
            self._ahead = len(plans) - index - 1
            # What was tried meanwhile, to shrink another, says enough of this one.
            if not self._ledger.is_tried(plan) and not self._has_failing_part(plan):
                self._tried += 1
                yield from self._try(plan)

    def _try(self, plan: Plan) -> Generator[Plan, Outcome, None]:
        outcome = yield plan
        self._note(plan, outcome)
        if outcome.error is not None:
            yield from self._shrink(plan, outcome)

    def _note(self, plan: Plan, outcome: Outcome) -> None:
        self._ledger.note(plan, outcome)
        if outcome.error is not None or outcome.cut_off or not has_fired(plan, outcome):
            return
        if len(plan) < self._depth and self._is_mine(plan[0]):
            extensions = self._extensions.setdefault(len(plan), [])
            extensions.append((plan, list(self._faults_after(plan, outcome))))

    def _faults_after(self, plan: Plan, outcome: Outcome) -> Iterator[Fault]:
        """The faults that could strike in this run after the plan's last one (rule 5)."""
        places = {place_of(site): index for index, site in enumerate(outcome.sites)}
        struck = [place_at(fault) for fault in plan if fault.site != SCHEDULE]
        last = max((places.get(place, -1) for place in struck), default=-1)
        for index, site in enumerate(outcome.sites):
            if site.name != SCHEDULE:
                if index > last:
                    yield from self._selection.at(site)
            elif len(struck) == len(plan) and not self._ledger.is_clean(place_of(site)):
                # Where the clean run has it too, this plan is that of the schedule, extended.
                yield from self._selection.at(site)

    # -- failures --------------------------------------------------------------------------------

    def _shrink(self, plan: Plan, outcome: Outcome) -> Generator[Plan, Outcome, None]:
        """Find the smallest part of a failing plan that fails, and list it (rule 7)."""
        while len(plan) > 1:
            failing = yield from self._first_failing(parts(plan))
            if failing is None:
                break
            if failing[1] is None:
                return  # it is listed already
            plan, outcome = failing[0], failing[1]
        if not self._is_anothers(plan):
            self._ledger.add(plan, outcome)

    def _first_failing(
        self, plans: Iterable[Plan]
    ) -> Generator[Plan, Outcome, tuple[Plan, Outcome | None] | None]:
        """Return the first of these plans that fails; without outcome if that was known."""
        for plan in plans:
            if self._ledger.fails(plan):
                return plan, None
            if self._ledger.is_tried(plan) or self._is_clean_run(plan):
                continue
            outcome = yield plan
            self._note(plan, outcome)
            if outcome.error is not None:
                return plan, outcome
        return None

    def _is_clean_run(self, plan: Plan) -> bool:
        """Whether nothing of the plan can fire: its sites appear only under other faults."""
        return not any(self._ledger.is_clean(place_at(fault)) for fault in plan)

    def _has_failing_part(self, plan: Plan) -> bool:
        return any(
            self._ledger.fails(part)
            for size in range(1, len(plan))
            for part in combinations(plan, size)
        )

    def _replay(self) -> Generator[Plan, Outcome, None]:
        """Run failing plans again, and mark those that go another way (rule 9)."""
        entries = first_of_each_cause(self._ledger.ordered)[:MOST_REPLAYED]
        for index, entry in enumerate(entries):
            for again in range(_REPLAYS):
                self._ahead = _REPLAYS * (len(entries) - index) - again
                entry.compare((yield entry.failure.plan))
                if entry.failure.flaky:
                    break

    def _run_clean_again(self) -> Generator[Plan, Outcome, None]:
        """Run clean after failures, and see whether it still passes (rule 10)."""
        if self._ledger.entries:
            self._ahead = 0
            last = yield ()
            if last.error is not None:
                self._ledger.blame_state(last)

    # -- shards ----------------------------------------------------------------------------------

    def _is_wanted(self, plan: Plan) -> bool:
        """Whether a plan that was given is within this sweep, and the clean run meets its sites.

        Sites that appear only under the plan's first faults are not asked for.
        """
        met = [fault for fault in plan if self._ledger.is_clean(place_at(fault))]
        return (
            bool(met)
            and sum(fault.site == SCHEDULE for fault in plan) <= 1
            and all(fault in self._singles for fault in met)
            and all(is_concrete(fault) and self._selection.allows(fault) for fault in plan)
        )

    def _is_gone(self, plan: Plan) -> bool:
        """Whether a plan that was given is about sites that the clean run does not meet."""
        return bool(self._ledger.sites) and all(
            is_concrete(fault) and not self._ledger.is_clean(place_at(fault)) for fault in plan
        )

    def _is_given_to_me(self, plan: Plan, index: int) -> bool:
        if len(plan) == 1:
            return self._is_mine(plan[0])
        return index % self._shard[1] == self._shard[0]

    def _is_mine(self, first: Fault) -> bool:
        """Whether plans that begin with this fault are tried by this shard."""
        return self._singles.get(first, self._shard[0]) % self._shard[1] == self._shard[0]

    def _is_anothers(self, plan: Plan) -> bool:
        """Whether another shard lists this failure, as it tries each of its single faults."""
        return len(plan) == 1 and self._limit is None and not self._is_mine(plan[0])


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; give a whole number from 1")
    return value


def _check_shard(shard: tuple[int, int]) -> tuple[int, int]:
    index, count = shard
    if not 0 <= index < count:
        raise ValueError(f"shard is {shard!r}; give its index, from 0, and how many there are")
    return index, count


def _share(limit: int, shard: tuple[int, int]) -> int:
    """What of a limit is a shard's."""
    index, count = shard
    return limit // count + (index < limit % count)
