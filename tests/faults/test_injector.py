"""Which planned faults strike: counting, choosing, order, and what is said of those that missed."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.durations import HOUR, SECOND
from emulator.errors import PlanError
from emulator.faults import Fault, Faults, parse_plan
from emulator.faults.sites import site_name

if TYPE_CHECKING:
    from collections.abc import Callable


def ticking() -> Callable[[], int]:
    """A clock that moves by a second each time it is read."""
    times = count(1_000_000, SECOND)
    return lambda: next(times)


def make(*plan: str | Fault) -> Faults:
    return Faults(ticking(), plan)


def texts(faults: object) -> list[str]:
    assert isinstance(faults, tuple | list)
    return [str(fault) for fault in faults]


def test_nothing_strikes_without_a_plan():
    faults = make()
    assert faults.meet("batch.emails") == ()
    assert faults.fired == []
    assert faults.plan == ()


def test_occurrences_are_counted_per_site_in_the_order_met():
    faults = make()
    for site in ("batch.a", "message.a", "batch.a", "batch.b"):
        faults.meet(site)
    assert [(s.name, s.occurrence, s.at) for s in faults.sites] == [
        ("batch.a", 1, 1_000_000),
        ("message.a", 1, 2_000_000),
        ("batch.a", 2, 3_000_000),
        ("batch.b", 1, 4_000_000),
    ]


def test_fault_strikes_its_occurrence_only():
    faults = make("batch.emails#2:lose_ack")
    struck = [texts(faults.meet("batch.emails")) for _ in range(3)]
    assert struck == [[], ["batch.emails#2:lose_ack"], []]
    assert texts(faults.fired) == ["batch.emails#2:lose_ack"]


def test_star_strikes_every_occurrence_and_fires_one_concrete_fault_each():
    faults = make("message.*#*:duplicate(1 h)")
    faults.meet("message.a")
    faults.meet("message.b")
    faults.meet("message.a")
    assert faults.fired == [
        Fault("message.a", 1, "duplicate", HOUR),
        Fault("message.b", 1, "duplicate", HOUR),
        Fault("message.a", 2, "duplicate", HOUR),
    ]
    assert texts(faults.plan) == ["message.*#*:duplicate(1 h)"]


def test_pattern_applies_where_the_action_is_allowed():
    faults = make("kv.*.*#*:stale", "*#1:lose_reply(504)")
    assert texts(faults.meet("kv.CACHE.get")) == ["kv.CACHE.get#1:stale"]
    assert faults.meet("kv.CACHE.put") == ()
    # Only an outbound request's reply is lost with a status.
    assert faults.meet("send.q") == ()
    assert texts(faults.meet("fetch.GET.a/b")) == ["fetch.GET.a/b#1:lose_reply(504)"]


def test_caller_may_restrict_the_actions_of_an_occurrence():
    faults = make("batch.q#*:overlap")
    assert faults.meet("batch.q", available=("lose_ack",)) == ()
    assert texts(faults.meet("batch.q", available=("lose_ack", "overlap"))) == ["batch.q#2:overlap"]
    assert list(faults.sites[0].actions) == ["lose_ack"]
    assert list(faults.sites[1].actions) == ["overlap", "lose_ack"]


def test_several_faults_strike_in_the_order_of_the_table():
    faults = make("batch.q#1:lose_ack; batch.q#1:split; batch.q#1:shuffle")
    assert texts(faults.meet("batch.q")) == [
        "batch.q#1:shuffle",
        "batch.q#1:split",
        "batch.q#1:lose_ack",
    ]


def test_equal_actions_strike_in_the_order_of_the_plan():
    faults = make("message.q#1:duplicate(2 s); message.*#*:duplicate; message.q#1:duplicate(1 s)")
    assert texts(faults.meet("message.q")) == [
        "message.q#1:duplicate(2 s)",
        "message.q#1:duplicate",
        "message.q#1:duplicate(1 s)",
    ]


def test_only_the_first_fault_that_ends_an_occurrence_strikes():
    faults = make("batch.q#1:lose_ack; batch.q#1:crash_before")
    assert texts(faults.meet("batch.q")) == ["batch.q#1:crash_before"]
    assert [unfired.message for unfired in faults.unfired()] == [
        "batch.q#1:lose_ack never fired: batch.q was met, but it was not possible there "
        "then, or another fault ended that occurrence first"
    ]


def test_two_plans_of_the_same_fault_strike_once_and_both_have_fired():
    faults = make("batch.q#1:fail; batch.*#*:fail")
    assert texts(faults.meet("batch.q")) == ["batch.q#1:fail"]
    assert texts(faults.fired) == ["batch.q#1:fail"]
    assert faults.unfired() == []


def test_faults_may_be_added_in_the_middle_of_a_run():
    faults = make("message.q#1:drop")
    faults.meet("message.q")
    faults.add("batch.q#1:fail;batch.q#2:fail", Fault("send.q", 1, "fail"))
    assert texts(faults.plan) == [
        "message.q#1:drop",
        "batch.q#1:fail",
        "batch.q#2:fail",
        "send.q#1:fail",
    ]
    assert texts(faults.meet("batch.q")) == ["batch.q#1:fail"]
    faults.add("batch.q#2:shuffle")
    assert texts(faults.meet("batch.q")) == ["batch.q#2:shuffle", "batch.q#2:fail"]


def test_a_plan_that_cannot_be_read_adds_nothing():
    faults = make()
    with pytest.raises(PlanError, match='no action is called "fial"'):
        faults.add("batch.q#1:fail", "batch.q#2:fial")
    assert faults.plan == ()


def test_a_fault_that_can_never_fire_is_refused_when_added():
    with pytest.raises(PlanError, match=r'no action is called "stale" at kv\.CACHE\.put'):
        make(Fault("kv.CACHE.put", 1, "stale"))
    with pytest.raises(PlanError, match="takes no argument"):
        make(Fault("batch.q", 1, "fail", 5))


@pytest.mark.parametrize("wrong", [3, None, b"batch.q#1:fail", object()])
def test_a_plan_of_something_else_is_refused(wrong: Any):
    with pytest.raises(PlanError, match=r"a fault is a text such as .*, or a Fault, not "):
        Faults(ticking(), wrong)
    faults = make("batch.q#1:fail")
    with pytest.raises(PlanError, match=r"a fault is a text such as .*, or a Fault, not "):
        faults.add("batch.q#2:fail", wrong)
    for empty in ("", " ; "):
        with pytest.raises(PlanError, match=r"plans nothing; a fault is a text such as batch"):
            faults.add("batch.q#2:fail", empty)
    with pytest.raises(PlanError, match=r"give its items, as in add\(\*faults\)"):
        faults.add(["batch.q#2:fail"])  # type: ignore[arg-type]
    assert texts(faults.plan) == ["batch.q#1:fail"]


def test_plan_may_be_one_fault():
    fault = Fault("batch.q", 1, "fail")
    assert Faults(ticking(), fault).plan == (fault,)


def test_plan_may_be_one_text():
    assert texts(Faults(ticking(), "batch.q#1:fail; batch.q#2:fail").plan) == [
        "batch.q#1:fail",
        "batch.q#2:fail",
    ]


def test_clear_takes_the_plan_away_and_keeps_what_happened():
    faults = make("batch.q#*:shuffle; schedule:3")
    faults.meet("batch.q")
    faults.clear()
    assert faults.meet("batch.q") == ()
    assert faults.schedule() is None
    assert faults.plan == ()
    assert texts(faults.fired) == ["batch.q#1:shuffle"]
    assert [site.occurrence for site in faults.sites] == [1, 2, 1]
    assert faults.unfired() == []


def test_reset_starts_again_with_the_first_plan():
    faults = make("batch.q#1:fail")
    faults.meet("batch.q")
    faults.add("batch.q#2:fail")
    faults.reset()
    assert faults.sites == []
    assert faults.fired == []
    assert texts(faults.plan) == ["batch.q#1:fail"]
    assert texts(faults.meet("batch.q")) == ["batch.q#1:fail"]


def test_firing_is_told():
    told: list[Fault] = []
    faults = Faults(ticking(), ["message.q#*:drop", "schedule:2"], on_fired=told.append)
    faults.meet("message.q")
    faults.schedule()
    assert told == faults.fired
    assert texts(told) == ["message.q#1:drop", "schedule:2"]


def test_sites_tell_the_class_of_each_action_from_the_context():
    faults = make()
    faults.meet("fetch.GET.a/b")
    faults.meet("fetch.GET.a/b", in_request=True)
    faults.meet("fetch.GET.a/b", retried=True)
    plain, in_request, retried = faults.sites
    assert dict(plain.actions) == {
        "crash_before": "platform",
        "fail": "dependency",
        "status": "dependency",
        "crash_after": "platform",
        "lose_reply": "dependency",
        "timeout": "dependency",
    }
    assert set(in_request.actions.values()) == {"request"}
    assert set(retried.actions.values()) == {"platform"}


def test_site_gives_the_faults_a_sweep_tries():
    faults = make()
    faults.meet("message.q")
    faults.meet("fetch.GET.a/b")
    faults.schedule()
    message, fetch, schedule = faults.sites
    assert texts(message.faults(["platform"])) == [
        "message.q#1:duplicate",
        "message.q#1:duplicate(1 h)",
        "message.q#1:delay(30 s)",
    ]
    assert texts(message.faults())[-1] == "message.q#1:drop"
    assert texts(fetch.faults(["dependency"])) == [
        "fetch.GET.a/b#1:fail",
        "fetch.GET.a/b#1:status(503)",
        "fetch.GET.a/b#1:lose_reply",
        "fetch.GET.a/b#1:timeout",
    ]
    assert texts(schedule.faults()) == [f"schedule:{seed}" for seed in range(1, 9)]


def test_schedule_is_a_site_once_and_fires_when_it_first_matters():
    faults = make("schedule:7")
    assert faults.unfired()[0].message == (
        "schedule:7 never fired: no two invocations were ready at the same time"
    )
    assert [faults.schedule(), faults.schedule()] == [7, 7]
    assert [(site.name, site.occurrence) for site in faults.sites] == [("schedule", 1)]
    assert texts(faults.fired) == ["schedule:7"]
    assert faults.unfired() == []


def test_schedule_is_met_without_a_plan_too():
    faults = make()
    assert faults.schedule() is None
    assert dict(faults.sites[0].actions) == {"schedule": "platform"}


def test_a_plan_has_one_schedule():
    faults = make("schedule:7")
    with pytest.raises(PlanError) as caught:
        faults.add("schedule:8")
    assert str(caught.value) == "a plan has one schedule, and this would be a second: schedule:8"
    assert faults.schedule() == 7


def test_server_counts_sites_without_keeping_them():
    faults = Faults(ticking(), ["batch.q#2:fail"], remember=False)
    assert faults.meet("batch.q") == ()
    assert texts(faults.meet("batch.q")) == ["batch.q#2:fail"]
    assert faults.sites == []


@pytest.mark.parametrize(
    ("planned", "nearest", "message"),
    [
        (
            "batch.emials#1:lose_ack",
            ("batch.emails",),
            "no such site was met; nearest: batch.emails (met twice)",
        ),
        (
            "step.onboarding.charge-crad#1:fail",
            ("step.onboarding.charge-card",),
            "no such site was met; nearest: step.onboarding.charge-card (met once)",
        ),
        (
            "step.x.*#*:fail",
            ("step.onboarding.charge-card",),
            "no such site was met; nearest: step.onboarding.charge-card (met once)",
        ),
        (
            "cron.w#1:miss",
            ("batch.emails", "step.onboarding.charge-card", "kv.CACHE.put"),
            "no such site was met; nearest: batch.emails (met twice), "
            "step.onboarding.charge-card (met once), kv.CACHE.put (met once)",
        ),
        ("batch.emails#3:fail", ("batch.emails",), "batch.emails was met twice only"),
        (
            "*#5:crash_before",
            ("batch.emails", "step.onboarding.charge-card", "kv.CACHE.put"),
            "each such site was met 3 times only",
        ),
        (
            "kv.*.*#*:stale",
            ("kv.CACHE.put",),
            "kv.CACHE.put was met, but it was not possible there then, "
            "or another fault ended that occurrence first",
        ),
    ],
)
def test_fault_that_never_fired_is_explained(planned: str, nearest: tuple[str, ...], message: str):
    faults = make(planned)
    for site in ("batch.emails", "step.onboarding.charge-card", "kv.CACHE.put", "batch.emails"):
        faults.meet(site)
    if planned.startswith("*"):
        faults.meet("batch.emails")
    (unfired,) = faults.unfired()
    assert unfired.fault == Fault.parse(planned)
    assert unfired.nearest == nearest
    assert unfired.message == f"{planned} never fired: {message}"


def test_fault_added_too_late_is_explained():
    faults = make()
    faults.meet("batch.q")
    faults.add("batch.q#1:fail; batch.q#*:shuffle")
    assert [unfired.message for unfired in faults.unfired()] == [
        f"{fault} never fired: that occurrence had passed when the fault was planned; "
        "plan it earlier"
        for fault in ("batch.q#1:fail", "batch.q#*:shuffle")
    ]


def test_fault_in_a_run_that_met_nothing_is_explained():
    (unfired,) = make("batch.q#1:fail").unfired()
    assert unfired.nearest == ()
    assert unfired.message == "batch.q#1:fail never fired: no site was met"


def test_repr_shows_the_plan():
    faults = make("batch.q#*:shuffle")
    faults.meet("batch.q")
    assert repr(faults) == "<Faults: batch.q#*:shuffle; 1 fired>"
    assert repr(make()) == "<Faults: nothing planned; 0 fired>"


SITES = ["batch.a", "batch.b", "message.a", "kv.C.get", "kv.C.put", "step.w.s"]
PLANS = st.lists(
    st.sampled_from(
        [
            *("batch.*#*:shuffle", "batch.a#1:fail", "batch.a#2:lose_ack", "*#1:crash_before"),
            *("kv.*.*#2:stale", "message.a#*:duplicate", "message.?#1:drop", "step.w.s#1:evict"),
        ]
    )
)


@given(PLANS, st.lists(st.sampled_from(SITES)))
def test_firings_are_possible_ordered_and_the_same_again(plan: list[str], met: list[str]):
    first, second = (make(*plan) for _ in range(2))
    for site in met:
        struck = first.meet(site)
        assert struck == second.meet(site)
        assert len(set(struck)) == len(struck)
    assert first.fired == second.fired
    known = {(site.name, site.occurrence): site.actions for site in first.sites}
    assert all(f.action in known[f.site, f.occurrence or 0] for f in first.fired)


@given(PLANS, st.lists(st.sampled_from(SITES)))
def test_replaying_what_fired_fires_the_same(plan: list[str], met: list[str]):
    first = make(*plan)
    for site in met:
        first.meet(site)
    again = make(*first.fired)
    for site in met:
        again.meet(site)
    assert again.fired == first.fired
    assert again.unfired() == []
    assert parse_plan("; ".join(texts(first.fired))) == tuple(first.fired)


def test_a_server_forgets_sites_that_it_seldom_met() -> None:
    """It meets one for each path it is asked for, for days."""
    faults = Faults(ticking(), ["request.GET./7#*:lose_reply"], remember=False)
    for number in range(50):
        faults.meet(site_name("request", "GET", f"/{number}"), in_request=True)
        faults.meet("batch.q")
    faults.meet(site_name("request", "GET", "/7"), in_request=True)
    faults.forget(5)
    assert len(faults.counts) <= 6
    assert faults.counts["batch.q"] == 50
    assert faults.counts["request.GET./7"] == 2, "a planned fault counts on"
    assert [str(fault) for fault in faults.fired] == [
        "request.GET./7#1:lose_reply",
        "request.GET./7#2:lose_reply",
    ]
    faults.forget(1)
    assert [str(fault) for fault in faults.fired] == ["request.GET./7#2:lose_reply"]
