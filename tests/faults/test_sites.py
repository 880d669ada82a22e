"""The table of sites: it says what api.md section 4 says, and classes follow its rules."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emulator.faults.sites
from emulator.durations import HOUR, SECOND
from emulator.faults import CLASSES, KINDS, Action, actions_at, class_of, site_name, split_site
from emulator.faults.sites import ARGUMENTS, Takes

# Kind -> (names, platform, dependency, request, loss), copied by hand from api.md section 4, where
# `cache` has no row: docs/cache.md says why its `evict` is the platform's.
TABLE = {
    "request": (2, "", "", "crash_before crash_after lose_reply", ""),
    "send": (1, "crash_before crash_after", "fail lose_reply", "", ""),
    "message": (1, "duplicate delay", "", "", "drop"),
    "batch": (1, "crash_before lose_ack fail timeout shuffle split overlap", "", "", ""),
    "step": (2, "crash_before crash_after crash_saved evict", "fail timeout", "", ""),
    "sleep": (2, "evict", "", "", ""),
    "wait": (2, "evict", "timeout", "", ""),
    "create": (1, "crash_before crash_after", "fail lose_reply", "", ""),
    "event": (2, "duplicate crash_before crash_after", "delay fail lose_reply", "", "drop"),
    "fetch": (2, "crash_before crash_after", "fail status lose_reply timeout", "", ""),
    "kv": (2, "crash_before crash_after stale", "fail lose_reply", "", ""),
    "d1": (2, "crash_before crash_after", "fail lose_reply", "", ""),
    "cache": (2, "crash_before crash_after evict", "", "", ""),
    "r2": (2, "crash_before crash_after", "fail lose_reply", "", ""),
    # Not in api.md, which says to add freely; they are calls like the others.
    "ratelimit": (2, "crash_before crash_after", "fail lose_reply", "", ""),
    "email": (2, "crash_before crash_after", "fail lose_reply", "", ""),
    "service": (2, "crash_before crash_after", "fail lose_reply", "", ""),
    "object": (2, "crash_before crash_after evict", "fail lose_reply", "", ""),
    "websocket": (2, "crash_before crash_after evict", "", "disconnect", ""),
    "storage": (2, "crash_before crash_after", "", "", ""),
    "alarm": (1, "duplicate crash_before crash_after", "fail", "", ""),
    "cron": (1, "duplicate crash_before crash_after", "fail", "", "miss"),
    # Not in api.md: docs/tail.md says why a crash is the platform's.
    "tail": (1, "crash_before crash_after", "", "", "drop"),
    "wait_until": (1, "evict", "", "", ""),
    "schedule": (0, "schedule", "", "", ""),
}


def find(kind: str, name: str) -> Action:
    return next(action for action in KINDS[kind].actions if action.name == name)


def test_table_has_every_row_of_the_documentation():
    assert list(KINDS) == list(TABLE)


@pytest.mark.parametrize("kind", TABLE)
def test_row_has_the_actions_and_classes_of_the_documentation(kind: str):
    names, *columns = TABLE[kind]
    expected = {
        name: fault_class
        for fault_class, column in zip(
            ("platform", "dependency", "request", "loss"), columns, strict=True
        )
        for name in column.split()
    }
    assert {a.name: a.fault_class for a in KINDS[kind].actions} == expected
    assert len(KINDS[kind].names) == names


def test_sweep_arguments_are_those_of_the_documentation():
    tried = {
        (action.name, action.tried)
        for kind in KINDS.values()
        for action in kind.actions
        if action.tried != (None,)
    }
    assert tried == {
        ("duplicate", (None, HOUR)),
        ("delay", (30 * SECOND,)),
        ("status", (503,)),
        ("schedule", (1, 2, 3, 4, 5, 6, 7, 8)),
    }


def test_an_action_takes_the_same_kind_of_argument_at_every_site_that_gives_it_one():
    for kind in KINDS.values():
        for action in kind.actions:
            assert action.takes in (Takes.NOTHING, ARGUMENTS.get(action.name))


def test_actions_that_only_change_an_occurrence_come_before_those_that_end_it():
    for kind in KINDS.values():
        ends = [action.ends for action in kind.actions]
        assert ends == sorted(ends), kind.name


def test_action_names_are_unique_in_their_row():
    for kind in KINDS.values():
        names = [action.name for action in kind.actions]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("operation", ["get", "getWithMetadata", "list"])
def test_kv_reads_may_be_stale(operation: str):
    assert "stale" in [action.name for action in actions_at(f"kv.CACHE.{operation}")]


@pytest.mark.parametrize("operation", ["put", "delete"])
def test_kv_writes_cannot_be_stale(operation: str):
    assert "stale" not in [action.name for action in actions_at(f"kv.CACHE.{operation}")]


@pytest.mark.parametrize(
    ("kind", "action", "context", "expected"),
    [
        ("batch", "lose_ack", {}, "platform"),
        ("fetch", "status", {}, "dependency"),
        # The platform repeats the caller, so correct code must bear it.
        ("fetch", "status", {"retried": True}, "platform"),
        ("step", "timeout", {"retried": True}, "platform"),
        ("event", "fail", {"retried": True}, "platform"),
        ("event", "delay", {"retried": True}, "dependency"),
        ("fetch", "crash_after", {"retried": True}, "platform"),
        # The client of the request sees it, whatever the site.
        ("kv", "fail", {"in_request": True}, "request"),
        ("send", "crash_before", {"in_request": True}, "request"),
        ("storage", "crash_after", {"in_request": True}, "request"),
        ("fetch", "lose_reply", {"in_request": True, "retried": True}, "request"),
        # Nobody sees these at once.
        ("kv", "stale", {"in_request": True}, "platform"),
        ("object", "evict", {"in_request": True}, "platform"),
        ("event", "duplicate", {"in_request": True}, "platform"),
        ("event", "delay", {"in_request": True}, "dependency"),
        ("schedule", "schedule", {"in_request": True}, "platform"),
        # The client of the request is the test itself.
        ("request", "crash_before", {}, "request"),
        ("request", "lose_reply", {"retried": True}, "request"),
        ("message", "drop", {"retried": True}, "loss"),
        ("event", "drop", {"in_request": True}, "loss"),
    ],
)
def test_class_depends_on_who_called(
    kind: str, action: str, context: dict[str, bool], expected: str
):
    assert class_of(find(kind, action), **context) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("batch", "emails"), "batch.emails"),
        (("send", "orders.eu"), "send.orders.eu"),
        (
            ("step", "onboarding", "create-billing-account"),
            "step.onboarding.create-billing-account",
        ),
        (("step", "a.b", "c.d"), "step.a%2Eb.c.d"),
        (("fetch", "POST", "mail.example/send"), "fetch.POST.mail.example/send"),
        (("fetch", "GET", "localhost:8080/a b"), "fetch.GET.localhost%3A8080/a b"),
        (("request", "GET", "/a;b#c*d?e[f]%"), "request.GET./a%3Bb%23c%2Ad%3Fe%5Bf]%25"),
        (("sleep", "wf", "a\nb\x7f\u2028"), "sleep.wf.a%0Ab%7F%E2%80%A8"),
        (("wait", "wf", "\ud800"), "wait.wf.%ED%A0%80"),
        (("event", "wf", "größe"), "event.wf.größe"),
        (("send", ""), "send."),
        (("schedule",), "schedule"),
    ],
)
def test_site_names_hold_names_verbatim_except_for_special_characters(
    arguments: tuple[str, ...], expected: str
):
    assert site_name(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("btch", "emails"),
            "no site 'btch' with 1 names; known: request, send, message, batch, step, sleep, wait, "
            "create, event, fetch, kv, d1, cache, r2, ratelimit, email, service, object, "
            "websocket, storage, alarm, cron, tail, wait_until, schedule",
        ),
        (("step", "charge"), "no site 'step' with 1 names; known: step.<workflow>.<step>"),
        (("schedule", "x"), "no site 'schedule' with 1 names; known: schedule"),
    ],
)
def test_site_name_refuses_what_is_not_in_the_table(arguments: tuple[str, ...], message: str):
    with pytest.raises(ValueError, match=r"^no site") as caught:
        site_name(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("site", ["", "btch.emails", "send", "step.charge", "schedule.x"])
def test_split_site_refuses_what_is_not_in_the_table(site: str):
    with pytest.raises(ValueError, match="not the name of a site") as caught:
        split_site(site)
    assert str(caught.value) == f"not the name of a site: {site!r}"


@given(st.data())
def test_split_site_gives_back_any_names(data: st.DataObject):
    kind = data.draw(st.sampled_from(list(KINDS.values())))
    names = tuple(data.draw(st.text()) for _ in kind.names)
    site = site_name(kind.name, *names)
    assert split_site(site) == (kind, names)
    assert len(site.splitlines()) == 1


def test_classes_are_in_the_order_in_which_a_sweep_tries_them():
    assert CLASSES == ("platform", "dependency", "request", "loss")


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(emulator.faults.sites).failed == 0
