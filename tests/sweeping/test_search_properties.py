"""A search against every small world that Hypothesis can think of, and against trying it all."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from worlds import World, drive, plan, texts

from emulator.sweeping.search import Search
from emulator.sweeping.selection import Selection

if TYPE_CHECKING:
    from emulator.faults import Fault
    from emulator.sweeping.outcome import Plan

# Few actions at each, so that all plans of three faults can be tried.
NAMES = ["sleep.w.a", "sleep.w.b", "send.a", "send.b", "message.a", "schedule"]
SELECTION = {"skip": ["schedule:3", "schedule:4", "schedule:5", "schedule:6", "schedule:7"]}
FAULTS = [
    *("sleep.w.a#1:evict", "sleep.w.a#2:evict", "sleep.w.b#1:evict"),
    *("send.a#1:crash_before", "send.a#1:crash_after", "send.a#2:crash_before"),
    *("send.b#1:crash_before", "message.a#1:duplicate", "message.a#1:duplicate(1 h)"),
    *("schedule:1", "schedule:2"),
]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world of up to four sites, two more under faults, and up to three bugs."""
    faults = st.sampled_from(FAULTS)
    return World(
        sites=draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)),
        reveals=draw(st.dictionaries(faults, st.lists(st.sampled_from(NAMES), max_size=2))),
        bugs=[
            "; ".join(bug)
            for bug in draw(
                st.lists(st.lists(faults, min_size=1, max_size=3, unique=True), max_size=3)
            )
        ],
        broken=draw(st.lists(faults, max_size=2)),
    )


def all_faults(world: World) -> list[Fault]:
    """Whatever can strike at a site that any run of this world meets, with some room."""
    selection = Selection(("platform",), (), SELECTION["skip"])
    many = World([name for name in NAMES for _ in range(3)]).run(())
    return [fault for site in many.sites for fault in selection.at(site)]


def smallest_failing(world: World, depth: int) -> set[frozenset[Fault]]:
    """The smallest plans that fail, found by trying every plan there is.

    Those count of which each fault strikes at an occurrence of its own, and fires.
    """
    found: list[frozenset[Fault]] = []
    # A plan fires as far as its faults are met: nothing else can be a bug.
    useful = {fault for bug in world.bugs for fault in plan(bug)}
    helpful = {fault for text in world.reveals for fault in plan(text)}
    faults = [fault for fault in all_faults(world) if fault in useful | helpful]
    for size in range(1, depth + 1):
        for each in combinations(faults, size):
            places = {(fault.site, fault.occurrence) for fault in each}
            if len(places) < size or any(part <= frozenset(each) for part in found):
                continue
            outcome = world.run(each)
            if outcome.error is not None and set(each) <= set(outcome.fired):
                found.append(frozenset(each))
    return set(found)


def search(depth: int, **options: object) -> Search:
    return Search(depth=depth, skip=SELECTION["skip"], **options)  # type: ignore[arg-type]


def without_replays(plans: list[Plan], failures: list[Plan]) -> list[Plan]:
    """The plans that a search ran to find something: in the end it runs failures again."""
    left = list(plans)
    for each in failures:
        for _ in range(2):
            index = len(left) - 1 - left[::-1].index(each)
            del left[index]
    return left


@given(worlds(), st.integers(1, 3))
def test_search_finds_each_smallest_failing_plan_and_nothing_else(world, depth):
    done = search(depth)
    drive(done, world)
    found = [frozenset(failure.plan) for failure in done.report().failures]
    assert len(set(found)) == len(found)
    assert set(found) == smallest_failing(world, depth)


@given(worlds(), st.integers(1, 3))
def test_no_plan_is_tried_twice_and_each_single_fault_is_tried(world, depth):
    done = search(depth)
    plans = drive(done, world)
    failures = [failure.plan for failure in done.report().failures]
    assert len(failures) <= 20
    assert plans[:2] == [(), ()]
    tried = without_replays(plans[2:], failures)
    assert len(set(map(frozenset, tried))) == len(tried)
    clean = world.run(()).sites
    selection = Selection(("platform",), (), SELECTION["skip"])
    singles = list(dict.fromkeys(fault for site in clean for fault in selection.at(site)))
    assert [each[0] for each in tried if len(each) == 1] == singles
    # Shorter plans come first, but for parts of a failing plan that had not been tried.
    lengths = [
        len(each)
        for index, each in enumerate(tried)
        if not any(set(each) < set(earlier) for earlier in tried[:index])
    ]
    assert lengths == sorted(lengths)


@given(worlds(), st.integers(1, 3), st.integers(1, 4))
def test_shards_find_together_what_one_search_finds(world, depth, count):
    searches = [search(depth, shard=(index, count)) for index in range(count)]
    shares = [drive(each, world) for each in searches]
    found = [frozenset(f.plan) for each in searches for f in each.report().failures]
    assert set(found) == smallest_failing(world, depth)
    alone = {one[0] for share in shares for one in share if len(one) == 1}
    clean = world.run(()).sites
    selection = Selection(("platform",), (), SELECTION["skip"])
    assert alone == {fault for site in clean for fault in selection.at(site)}


@given(worlds(), st.integers(1, 3), st.integers(1, 12), st.integers(0, 3))
def test_limited_search_is_always_the_same_and_reports_nothing_wrong(world, depth, limit, seed):
    first, second = (search(depth, limit=limit, seed=seed) for _ in range(2))
    plans = drive(first, world)
    assert plans == drive(second, world)
    assert first.report().render() == second.report().render()
    for failure in first.report().failures:
        assert world.run(failure.plan).error is not None
        for size in range(1, len(failure.plan)):
            for part in combinations(failure.plan, size):
                assert world.run(part).error is None


@given(
    worlds(),
    st.integers(1, 2),
    st.lists(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=4, unique=True), max_size=3),
)
def test_plans_given_first_change_only_the_order(world, depth, given_plans):
    seeds = [each for each in given_plans if sum(text.startswith("sched") for text in each) < 2]
    done = search(depth, first=[plan("; ".join(each)) for each in seeds])
    plans = drive(done, world)
    found = {frozenset(failure.plan) for failure in done.report().failures}
    expected = smallest_failing(world, depth)
    assert expected <= found
    for more in found - expected:
        # Only a plan that was given can be longer, or of faults at one occurrence.
        assert any(set(map(str, more)) <= plain(each) for each in seeds), texts(plans)


def plain(faults: list[str]) -> set[str]:
    """These faults, and what they are without arguments."""
    return {*faults, *(text.partition("(")[0] for text in faults)}
