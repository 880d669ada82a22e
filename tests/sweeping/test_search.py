"""Which plans a search tries and what it makes of the outcomes, in scripted worlds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from worlds import World, drive, failing, plan, texts

from emulator import PlanError
from emulator.sweeping.outcome import FindingsError, Outcome
from emulator.sweeping.search import DEFAULT_LIMIT, Search

# What can strike at one occurrence of each of these, in a sweep of the class "platform".
BATCH = [
    *("batch.a#1:shuffle", "batch.a#1:split", "batch.a#1:overlap", "batch.a#1:crash_before"),
    *("batch.a#1:fail", "batch.a#1:timeout", "batch.a#1:lose_ack"),
]
STEP = [
    *("step.w.s#1:crash_before", "step.w.s#1:crash_after"),
    *("step.w.s#1:crash_saved", "step.w.s#1:evict"),
]
MESSAGE = ["message.a#1:duplicate", "message.a#1:duplicate(1 h)", "message.a#1:delay(30 s)"]


def crash(name: str, occurrence: int = 1) -> str:
    return f"send.{name}#{occurrence}:crash_before"


# Rule 1: the clean run.


def test_clean_run_comes_first_and_twice():
    search = Search()
    plans = drive(search, World(["send.a"]))
    assert plans[:2] == [(), ()]
    assert () not in plans[2:]


def test_failing_clean_run_is_one_failure_and_ends_the_search():
    class Broken(World):
        def run(self, faults):
            outcome = super().run(faults)
            return replace(outcome, error=AssertionError("no"), cause="AssertionError at x.py:1")

    search = Search(depth=2)
    assert drive(search, Broken(["send.a"])) == [(), ()]
    report = search.report()
    (failure,) = report.failures
    assert failure.plan == ()
    assert str(failure.error) == "no"
    assert failure.cause == "AssertionError at x.py:1"
    assert not failure.flaky
    assert not report.passed
    assert not report.empty
    assert report.complete


@pytest.mark.parametrize(
    "second",
    [
        Outcome(digest=b"other"),
        Outcome(error=AssertionError("now it fails"), cause="AssertionError", digest=b"clean"),
    ],
    ids=["another trace", "another end"],
)
def test_clean_runs_that_differ_are_one_failure_and_end_the_search(second):
    search = Search()
    search.tell((), Outcome(digest=b"clean"))
    search.tell((), second)
    assert search.next() is None
    (failure,) = search.report().failures
    assert (failure.plan, failure.cause) == ((), "nondeterministic")
    assert isinstance(failure.error, FindingsError)
    assert failure.text.startswith("nondeterministic: two runs without a fault differed")
    assert list(search.report().groups) == ["nondeterministic"]


def test_two_ways_of_failing_clean_are_not_deterministic():
    search = Search()
    for cause in ("ValueError at x.py:1", "ValueError at x.py:2"):
        search.tell((), Outcome(error=ValueError(), cause=cause))
    assert [failure.cause for failure in search.report().failures] == ["nondeterministic"]


# Rule 2: nothing to sweep.


@pytest.mark.parametrize(
    ("world", "options"),
    [
        (World([]), {}),
        (World(["send.a"], requests=["send.a"]), {}),
        (World(["send.a"]), {"only": ["batch.*"]}),
        (World(["send.a"]), {"skip": ["send.*"]}),
        (World(["request.GET./"]), {"classes": ["platform", "dependency"]}),
    ],
    ids=["no site", "none of the class", "only", "skip", "classes"],
)
def test_search_without_anything_to_try_is_empty_and_has_not_passed(world, options):
    search = Search(**options)
    assert drive(search, world) == [(), ()]
    report = search.report()
    assert report.empty
    assert report.complete
    assert not report.passed
    assert report.failures == []


# Rule 3: single faults.


def test_each_fault_of_the_clean_run_is_tried_once_in_the_order_met():
    search = Search()
    plans = drive(search, World(["batch.a", "message.a", "step.w.s", "step.w.s"]))
    second = [text.replace("#1", "#2") for text in STEP]
    assert texts(plans[2:]) == [*BATCH, *MESSAGE, *STEP, *second]
    report = search.report()
    assert report.passed
    assert report.runs == len(plans)
    assert report.tried == {1: len(plans) - 2}
    assert report.tried_sites == 4
    assert [(site.name, site.occurrence) for site in report.sites] == [
        *(("batch.a", 1), ("message.a", 1), ("step.w.s", 1), ("step.w.s", 2))
    ]


def test_schedule_has_no_occurrence():
    plans = drive(Search(), World(["send.a", "schedule"]))
    assert texts(plans[4:]) == [f"schedule:{seed}" for seed in range(1, 9)]


def test_classes_decide_what_is_tried_and_the_rest_is_counted():
    world = World(["send.a", "request.GET./", "message.a"])
    search = Search()
    drive(search, world)
    assert search.report().not_tried == {"dependency": 2, "request": 3}

    search = Search(classes=["dependency"])
    assert texts(drive(search, world)[2:]) == ["send.a#1:fail", "send.a#1:lose_reply"]
    assert search.report().not_tried == {"platform": 5, "request": 3}


def test_all_classes_are_all_but_loss():
    world = World(["message.a", "request.GET./"])
    search = Search(classes="all")
    plans = texts(drive(search, world))
    assert "message.a#1:drop" not in plans
    assert "request.GET./#1:lose_reply" in plans
    assert search.report().not_tried == {}
    assert "message.a#1:drop" in texts(drive(Search(classes=["loss"]), world))


def test_only_and_skip_are_patterns_of_sites_and_of_faults():
    world = World(["batch.a", "batch.b", "step.w.s"])

    def tried(**options):
        return texts(drive(Search(**options), world)[2:])

    assert tried(only=["step.*.s"]) == STEP
    assert tried(only=["batch.a"], skip=["batch.*#*:crash_before"]) == [
        text for text in BATCH if "crash_before" not in text
    ]
    assert tried(only=["batch.*#1:lose_ack", "step.w.s#1:evict"]) == [
        *("batch.a#1:lose_ack", "batch.b#1:lose_ack", "step.w.s#1:evict")
    ]
    assert tried(only="batch.b#2:lose_ack") == []
    assert tried(skip=["batch.*", "*#*:evict"]) == STEP[:3]


def test_pattern_without_argument_means_any_and_with_one_means_that():
    world = World(["message.a", "schedule"])
    assert texts(drive(Search(only=["message.a#1:duplicate"]), world)[2:]) == MESSAGE[:2]
    assert texts(drive(Search(only=["message.a#1:duplicate(1 h)"]), world)[2:]) == MESSAGE[1:2]
    assert texts(drive(Search(only=["schedule:3"]), world)[2:]) == ["schedule:3"]
    assert len(drive(Search(only=["schedule"]), world)[2:]) == 8


def test_patterns_that_mean_nothing_are_named_and_what_they_leave_out_is_counted():
    world = World(["message.a", "batch.a"])
    search = Search(only=["message.*", "step.*.s"], skip=["batch.b#*:fail", "*#1:delay(30 s)"])
    drive(search, world)
    report = search.report()
    assert report.left_out == len(BATCH) + 1
    assert report.unmatched == ["only='step.*.s'", "skip='batch.b#*:fail'"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"depth": 0}, ValueError, "depth is 0"),
        ({"depth": True}, ValueError, "depth is True"),
        ({"depth": 1.5}, ValueError, "depth is 1.5"),
        ({"limit": 0}, ValueError, "limit is 0"),
        ({"limit": -1}, ValueError, "limit is -1"),
        ({"classes": ["platfrom"]}, ValueError, "'platfrom'.*'platform', 'dependency', 'request'"),
        ({"classes": "everything"}, ValueError, "'everything'.*\"all\""),
        ({"classes": []}, ValueError, "classes is empty"),
        ({"classes": None}, ValueError, 'classes is None; give "all"'),
        ({"only": None}, ValueError, "only is None; give texts"),
        ({"skip": 3}, ValueError, "skip is 3; give texts"),
        ({"only": ["bacth.a"]}, PlanError, 'did you mean "batch"'),
        ({"skip": ["batch.a#1:loose_ack"]}, PlanError, 'did you mean "lose_ack"'),
        ({"skip": ["batch.a#1"]}, PlanError, "action is missing"),
        ({"only": [7]}, ValueError, "only has 7"),
        ({"shard": (2, 2)}, ValueError, "shard is"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(options, error, said):
    with pytest.raises(error, match=said):
        Search(**options)


# Rule 4: sites that appear only under a fault.


def test_sites_that_appear_only_under_a_fault_are_counted_and_not_tried_alone():
    world = World(["send.a"], reveals={crash("a"): ["send.b", "send.b", "request.GET./"]})
    search = Search()
    plans = drive(search, world)
    assert texts(plans[2:]) == [crash("a"), "send.a#1:crash_after"]
    report = search.report()
    assert report.hidden == ["send.b#1", "send.b#2"]  # a request has no fault of this class
    assert report.unreached == ["send.b#1", "send.b#2"]


# Rule 5: longer plans.


def test_pairs_are_a_fault_and_one_that_could_strike_after_it():
    world = World(["send.a", "send.b"], reveals={crash("b"): ["send.c"]})
    search = Search(depth=2)
    plans = texts(drive(search, world)[2:])
    after_a, after_b = "send.a#1:crash_after", "send.b#1:crash_after"
    assert plans == [
        *(crash("a"), after_a, crash("b"), after_b),
        *(f"{crash('a')}; {crash('b')}", f"{crash('a')}; {after_b}"),
        *(f"{after_a}; {crash('b')}", f"{after_a}; {after_b}"),
        *(f"{crash('b')}; {crash('c')}", f"{crash('b')}; send.c#1:crash_after"),
    ]
    assert search.report().hidden == []
    assert search.report().tried == {1: 4, 2: 6}


def test_triples_come_after_all_pairs():
    search = Search(depth=3)
    plans = drive(search, World(["send.a", "send.b", "send.c"]))[2:]
    assert [len(each) for each in plans] == [1] * 6 + [2] * 12 + [3] * 8
    assert len(set(map(frozenset, plans))) == len(plans)


def test_bug_of_two_faults_is_found_at_depth_2_and_not_at_depth_1():
    bug = f"{crash('a')}; {crash('b')}"
    world = World(["send.a", "send.b"], bugs=[bug])
    search = Search(depth=1)
    drive(search, world)
    assert search.report().passed
    search = Search(depth=2)
    drive(search, world)
    assert failing(search.report()) == [bug]


def test_plans_of_which_a_part_fails_are_not_tried():
    world = World(["send.a", "send.b", "send.c"], bugs=[crash("b")])
    search = Search(depth=3)
    plans = drive(search, world)
    assert [each for each in texts(plans) if crash("b") in each] == [crash("b")] * 3  # two replays
    assert failing(search.report()) == [crash("b")]


def test_schedule_counts_as_the_first_fault():
    world = World(["send.a", "schedule", "send.b"], bugs=[f"schedule:3; {crash('a')}"])
    search = Search(depth=2, only=["schedule:3", "send.*#*:crash_before"])
    plans = texts(drive(search, world)[2:])
    assert plans[:3] == [crash("a"), "schedule:3", crash("b")]
    assert sorted(plans[3:6]) == [
        *("schedule:3; send.a#1:crash_before", "schedule:3; send.b#1:crash_before"),
        "send.a#1:crash_before; send.b#1:crash_before",
    ]
    assert failing(search.report()) == [f"schedule:3; {crash('a')}"]


def test_schedule_that_only_a_fault_makes_possible_extends_it_once():
    bug = f"{crash('a')}; schedule:2"
    world = World(["send.a", "send.b"], reveals={crash("a"): ["schedule"]}, bugs=[bug])
    search = Search(depth=3)
    plans = drive(search, world)
    assert failing(search.report()) == [bug]
    assert all(str(each).count("schedule'") <= 2 for each in plans)
    assert max(sum(fault.site == "schedule" for fault in each) for each in plans) == 1


# Rule 6: what does not fire.


def test_fault_that_does_not_fire_is_no_failure_and_is_not_extended():
    world = World(["batch.a", "send.b"], broken=["batch.a#1:overlap"])
    search = Search(depth=2, only=["*#*:overlap", "send.*"])
    plans = texts(drive(search, world)[2:])
    assert plans == ["batch.a#1:overlap", crash("b"), "send.b#1:crash_after"]
    report = search.report()
    assert report.passed
    assert report.unfired == report.unreached == ["batch.a#1:overlap"]


# Rule 12: crashes that cut off a request of the scenario's.


def test_crash_that_its_client_sees_is_a_request_fault():
    world = World(["send.a", "send.b"], cuts=[crash("a")])
    search = Search()
    drive(search, world)
    report = search.report()
    assert report.passed
    assert report.failures == []
    assert report.tried == {1: 3}
    assert report.candidates == 3
    assert report.not_tried == {"dependency": 4, "request": 1}

    search = Search(classes=["platform", "request"])
    drive(search, world)
    report = search.report()
    assert failing(report) == [crash("a")]
    assert report.tried == {1: 4}
    assert report.not_tried == {"dependency": 4}


def test_what_is_cut_off_is_not_extended_and_counts_once():
    """Whatever comes before it, it is the same fault that was not tried."""
    world = World(["send.a", "send.b", "send.c"], cuts=[crash("b")])
    search = Search(depth=2)
    plans = [set(map(str, each)) for each in drive(search, world)]
    assert {crash("b"), crash("c")} not in plans
    assert {crash("a"), crash("c")} in plans
    report = search.report()
    assert report.passed
    assert report.not_tried == {"dependency": 6, "request": 1}


def test_what_only_a_pair_cuts_off_counts_as_well():
    world = World(["send.a"], reveals={crash("a"): ["send.b"]}, cuts=[crash("b")])
    search = Search(depth=2)
    drive(search, world)
    assert search.report().passed
    assert search.report().not_tried == {"dependency": 2, "request": 1}
    assert search.report().tried == {1: 2, 2: 1}


def test_search_that_is_always_cut_off_has_tried_nothing():
    world = World(["send.a"], cuts=[crash("a"), "send.a#1:crash_after"])
    search = Search()
    drive(search, world)
    report = search.report()
    assert report.empty
    assert not report.passed
    assert report.summary().endswith("; not tried: 2 dependency, 2 request faults")


# Rule 7: shrinking.


def test_plan_that_was_given_is_shrunk_to_its_failing_part():
    world = World(["send.a", "send.b", "send.c"], bugs=[f"{crash('a')}; {crash('c')}"])
    given = plan(f"{crash('a')}; {crash('b')}; {crash('c')}")
    search = Search(first=[given])
    plans = drive(search, world)
    assert failing(search.report()) == [f"{crash('a')}; {crash('c')}"]
    assert plans[2] == given
    sizes = [len(each) for each in plans[3:8]]
    assert sizes == sorted(sizes)  # the smallest first
    assert len(set(plans)) == len(plans) - 4  # but for clean runs and the replays


def test_single_faults_found_by_shrinking_are_listed_once():
    world = World(["send.a", "send.b"], bugs=[crash("b")])
    search = Search(first=[plan(f"{crash('a')}; {crash('b')}"), plan(crash("b"))])
    plans = drive(search, world)
    assert failing(search.report()) == [crash("b")]
    assert texts(plans).count(crash("b")) == 3  # found, and replayed twice


def test_long_plan_is_shrunk_by_leaving_out_one_fault_after_another():
    names = "abcdefgh"
    world = World([f"send.{name}" for name in names], bugs=[f"{crash('c')}; {crash('f')}"])
    search = Search(first=[plan(";".join(map(crash, names)))], only=["send.*#*:crash_before"])
    plans = drive(search, world)
    assert failing(search.report()) == [f"{crash('c')}; {crash('f')}"]
    assert len(plans) < 60


# Plans to try first.


def test_given_plans_are_tried_before_all_others_and_not_again():
    search = Search(first=[plan("send.b#1:crash_after")])
    plans = texts(drive(search, World(["send.a", "send.b"])))
    assert plans[2:] == ["send.b#1:crash_after", crash("a"), "send.a#1:crash_after", crash("b")]


# An occurrence that is not met.
GONE = "send.a#2:crash_before"


@pytest.mark.parametrize(
    "given",
    [
        "send.gone#1:crash_before",
        GONE,
        "send.a#1:fail",  # a dependency fault, and those are not asked for
        "send.skipped#1:crash_before",
        "send.*#1:crash_before",
        "send.a#*:crash_before",
        "schedule:1; schedule:2",
    ],
)
def test_given_plans_outside_this_sweep_are_left_out(given):
    world = World(["send.a", "send.skipped", "schedule"])
    search = Search(
        first=[plan(given)], skip=["send.skipped", *map("schedule:{}".format, "345678")]
    )
    assert texts(drive(search, world)[2:]) == [
        *(crash("a"), "send.a#1:crash_after", "schedule:1", "schedule:2")
    ]
    report = search.report()
    assert report.unreached == []
    assert report.gone == ([given] if given in ("send.gone#1:crash_before", GONE) else [])


def test_given_plan_may_have_sites_that_appear_only_under_its_first_fault():
    bug = f"{crash('a')}; {crash('b')}"
    world = World(["send.a"], reveals={crash("a"): ["send.b"]}, bugs=[bug])
    search = Search(first=[plan(bug)])
    drive(search, world)
    assert failing(search.report()) == [bug]


# Rule 8: the limit.


def test_limit_cuts_single_faults_off_by_seed_and_says_how_many():
    world = World(["batch.a", "step.w.s", "message.a"])
    everything = [*BATCH, *STEP, *MESSAGE]

    def tried(seed):
        search = Search(limit=5, seed=seed)
        plans = texts(drive(search, world)[2:])
        assert search.report().cut == {1: len(everything) - 5}
        assert sorted([*plans, *search.report().unreached]) == sorted(everything)
        return plans

    assert len(tried(0)) == 5
    assert tried(0) == tried(0) == sorted(tried(0), key=everything.index)
    choices = {tuple(tried(seed)) for seed in range(10)}
    assert len(choices) > 1
    assert any(choice[-1] in MESSAGE for choice in choices)  # and not the first five


def test_limit_cuts_pairs_off_by_seed_after_all_single_faults():
    world = World([f"send.{name}" for name in "abcdef"])
    search = Search(depth=3, limit=20)
    plans = drive(search, world)[2:]
    assert [len(each) for each in plans] == [1] * 12 + [2] * 8
    assert search.report().cut[2] == 60 - 8
    firsts = {each[0].site for each in plans[12:]}
    assert len(firsts) > 1
    again = drive(Search(depth=3, limit=20), world)[2:]
    assert again == plans
    assert drive(Search(depth=3, limit=20, seed=1), world)[2:] != plans


def test_default_limit_is_of_longer_plans_only(monkeypatch):
    assert DEFAULT_LIMIT == 2000
    monkeypatch.setattr("emulator.sweeping.search.DEFAULT_LIMIT", 30)
    many = World([f"send.q{number}" for number in range(20)])
    search = Search()
    assert len(drive(search, many)) == 2 + 40
    search = Search(depth=2, only=["send.*#*:crash_before"])
    assert len(drive(search, many)) == 2 + 30
    assert search.report().cut == {2: 20 * 19 // 2 - 10}
    search = Search(depth=2)
    assert len(drive(search, many)) == 2 + 40
    assert search.report().cut == {2: 40 * 38 // 2}


def test_shrinking_and_replays_come_on_top_of_the_limit():
    world = World(["send.a", "send.b"], bugs=[crash("a")])
    search = Search(limit=1, only=["send.a#*:crash_before"])
    assert len(drive(search, world)) == 2 + 1 + 2 + 1


# Rule 9: replays, groups, order.


def test_failure_is_replayed_twice_at_the_end():
    world = World(["send.a"], bugs=[crash("a")])
    search = Search()
    plans = texts(drive(search, world)[2:])
    assert plans == [crash("a"), "send.a#1:crash_after", crash("a"), crash("a"), ""]
    (failure,) = search.report().failures
    assert failure.replayed
    assert not failure.flaky


@pytest.mark.parametrize("again", ["passes", "fails elsewhere", "another trace"])
@pytest.mark.parametrize("which", [1, 2])
def test_failure_that_goes_another_way_when_it_is_replayed_is_flaky(again, which):
    world = World(["send.a"], bugs=[crash("a")])
    search = Search()
    seen = 0
    while (each := search.next()) is not None:
        outcome = world.run(each)
        if texts([each]) == [crash("a")]:
            if seen == which:
                changes = {
                    "passes": {"error": None, "cause": ""},
                    "fails elsewhere": {"cause": "ValueError at y.py:1"},
                    "another trace": {"digest": b"?"},
                }
                outcome = replace(outcome, **changes[again])
            seen += 1
        search.tell(each, outcome)
    (failure,) = search.report().failures
    assert failure.flaky
    assert failure.replayed
    assert seen == which + 1  # one difference says enough
    assert not search.report().passed


def test_at_most_20_failures_are_replayed_those_that_represent_a_cause_first():
    names = [f"q{number}" for number in range(30)]
    bugs = [crash(name) for name in names]
    world = World([f"send.{name}" for name in names], bugs=bugs, causes={bugs[-1]: "B at b.py:2"})
    search = Search(only=["send.*#*:crash_before"])
    plans = texts(drive(search, world)[32:])
    assert plans[:6] == [bugs[0], bugs[0], bugs[-1], bugs[-1], bugs[1], bugs[1]]
    assert len(plans) == 40 + 1
    report = search.report()
    assert report.replayed == 20
    assert [group[0].replayed for group in report.groups.values()] == [True, True]
    assert "replayed: 20 of 30 failures" in report.summary()


def test_failures_are_in_order_of_size_then_in_order_tried_and_grouped_by_cause():
    pair = f"{crash('a')}; {crash('b')}"
    bugs = [pair, crash("c"), "send.c#1:crash_after"]
    world = World(
        ["send.a", "send.b", "send.c"], bugs=bugs, causes={crash("c"): "ValueError at x.py:1"}
    )
    search = Search(depth=2, first=[plan(pair)])
    drive(search, world)
    report = search.report()
    assert failing(report) == [crash("c"), "send.c#1:crash_after", pair]
    groups = {cause: texts(f.plan for f in group) for cause, group in report.groups.items()}
    assert groups == {
        "ValueError at x.py:1": [crash("c")],
        "AssertionError at test_it.py:7": ["send.c#1:crash_after", pair],
    }


# `sometimes`.


def test_names_that_were_never_true_are_listed():
    search = Search()
    world = World(["send.a"])
    truths = [{"x": False, "y": False}, {"x": False}, {"y": True, "z": False}, {"x": False}]
    for each in truths:
        search.tell(search.next(), replace(world.run(search.next()), sometimes=each))
    assert search.report().never == ["x", "z"]


# The interface.


def test_next_is_the_same_until_it_is_told_and_only_that_can_be_told():
    search = Search()
    search.tell((), World(["send.a"]).run(()))
    search.tell((), World(["send.a"]).run(()))
    assert search.next() == search.next() == plan(crash("a"))
    with pytest.raises(ValueError, match="the plan that next"):
        search.tell((), Outcome())
    assert search.done == 2


def test_nothing_can_be_told_at_the_end():
    search = Search()
    drive(search, World([]))
    assert search.next() is None
    with pytest.raises(ValueError, match="None"):
        search.tell((), Outcome())


def test_progress_reaches_its_total():
    world = World(["send.a", "send.b"], bugs=[crash("a")])
    search = Search(depth=2)
    seen = []
    while (each := search.next()) is not None:
        seen.append((search.done, search.total))
        search.tell(each, world.run(each))
    assert seen[0] == (0, 2)
    assert seen[2] == (2, 2 + 4)
    assert all(done < total for done, total in seen)
    assert (search.done, search.total) == (search.report().runs, search.report().runs)


def test_report_of_a_search_that_goes_on_is_not_complete():
    search = Search()
    search.tell((), World(["send.a"]).run(()))
    report = search.report()
    assert not report.complete
    assert not report.passed


# Shards.


@pytest.mark.parametrize("count", [2, 3, 7])
def test_shards_try_each_single_fault_once_and_find_the_same(count):
    pair = f"{crash('a')}; {crash('d')}"
    world = World([f"send.{name}" for name in "abcd"], bugs=[pair, crash("b")])
    whole = Search(depth=2)
    everything = drive(whole, world)
    searches = [Search(depth=2, shard=(index, count)) for index in range(count)]
    shares = [drive(search, world) for search in searches]
    assert all(share[:2] == [(), ()] for share in shares)
    found = sorted(text for search in searches for text in failing(search.report()))
    assert found == sorted(failing(whole.report()))
    assert not any(search.report().empty for search in searches)
    tried = {frozenset(each) for share in shares for each in share}
    assert {frozenset(each) for each in everything} <= tried


def test_shard_tries_no_more_pairs_with_a_fault_that_it_found_to_fail_alone():
    world = World(["send.a", "send.c", "send.e", "send.b"], bugs=[crash("b")])
    search = Search(depth=2, shard=(0, 2), only=["*#*:crash_before"])
    plans = texts(drive(search, world)[2:])
    assert plans == [
        *(crash("a"), crash("e")),
        *(f"{crash('a')}; {crash('c')}", f"{crash('a')}; {crash('e')}"),
        *(f"{crash('a')}; {crash('b')}", crash("b")),
    ]
    assert failing(search.report()) == []  # the other shard lists it


def test_shards_share_single_faults_and_the_limit():
    world = World([f"send.{name}" for name in "abcde"])
    shares = [drive(Search(shard=(index, 3)), world)[2:] for index in range(3)]
    assert [len(share) for share in shares] == [4, 3, 3]
    assert len({each for share in shares for each in share}) == 10
    limited = [drive(Search(shard=(index, 3), limit=4), world)[2:] for index in range(3)]
    assert [len(share) for share in limited] == [2, 1, 1]


def test_given_plans_go_to_one_shard_each():
    given = [plan(crash("b")), plan(f"{crash('a')}; {crash('b')}")]
    world = World(["send.a", "send.b"])
    shares = [drive(Search(shard=(index, 2), first=given), world)[2:] for index in range(2)]
    for each in given:
        assert [share.count(each) for share in shares].count(1) == 1
        assert sum(share.count(each) for share in shares) == 1
    assert all(share[0] in given for share in shares if any(each in given for each in share))


# Rule 10: what outlives the runs.


def leaking(*causes: str) -> Search:
    """A search of four failing plans, of these causes, and a clean run that fails in the end."""
    search = Search(only=["batch.a#*:fail", "batch.a#*:timeout", "batch.a#*:split"])
    given = list(causes)
    while (each := search.next()) is not None:
        outcome = World(["batch.a"], bugs=texts([each]) if each else []).run(each)
        if each and given:
            outcome = replace(outcome, cause=given.pop(0))
        elif not each and search.done >= 2:
            outcome = replace(outcome, error=AssertionError("12 < 10"), cause="A at x.py:3")
        search.tell(each, outcome)
    return search


def test_clean_run_that_fails_in_the_end_stands_in_for_the_failures_on_its_line():
    report = leaking("A at x.py:3", "A at x.py:3", "A at x.py:3").report()
    (failure,) = report.failures
    assert (failure.plan, failure.cause) == ((), "state outlives the runs")
    assert not failure.is_from_the_start
    assert failure.text.startswith(
        "now fails without a fault too: state outlives the runs (module glob"
    )
    assert "\nAssertionError: 12 < 10\n3 plans that failed on the same line" in failure.text
    assert "  fails without any fault, though not from the start\n" in report.render()
    assert "tried: 3 single faults at 1 site" in report.summary()


def test_failures_on_other_lines_stay_beside_what_outlives_the_runs():
    report = leaking("A at x.py:3", "B at x.py:4", "A at x.py:3").report()
    assert [failure.cause for failure in report.failures] == [
        "state outlives the runs",
        "B at x.py:4",
    ]
    assert "2 plans that failed" in report.failures[0].text


def test_search_that_found_nothing_makes_no_clean_run_at_its_end():
    assert drive(Search(), World(["send.a"])).count(()) == 2
