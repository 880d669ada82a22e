"""The text form of faults: what is read, what is refused and how, and that it is one text."""

from __future__ import annotations

import doctest
import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emulator.faults.plan
from emulator.durations import HOUR, MILLISECOND, SECOND
from emulator.errors import EmulatorError, PlanError
from emulator.faults import KINDS, Fault, format_plan, parse_plan, parse_site, site_name
from emulator.faults.sites import Action, Takes


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        # The examples of api.md, sections 1 and 4.
        ("batch.emails#1:lose_ack", Fault("batch.emails", 1, "lose_ack")),
        ("batch.emails#2:lose_ack", Fault("batch.emails", 2, "lose_ack")),
        (
            "message.emails#1:duplicate(30 s)",
            Fault("message.emails", 1, "duplicate", 30 * SECOND),
        ),
        (
            "step.onboarding.create-billing-account#1:crash_after",
            Fault("step.onboarding.create-billing-account", 1, "crash_after"),
        ),
        (
            "fetch.POST.mail.example/send#1:lose_reply",
            Fault("fetch.POST.mail.example/send", 1, "lose_reply"),
        ),
        ("step.*.*#*:evict", Fault("step.*.*", None, "evict")),
        ("schedule:7", Fault("schedule", None, "schedule", 7)),
        ("message.q#1:delay(30 s)", Fault("message.q", 1, "delay", 30 * SECOND)),
        ("message.q#1:duplicate(1 h)", Fault("message.q", 1, "duplicate", HOUR)),
        ("message.q#1:duplicate", Fault("message.q", 1, "duplicate")),
        ("fetch.GET.a/b#1:status(503)", Fault("fetch.GET.a/b", 1, "status", 503)),
        ("fetch.GET.a/b#1:lose_reply(504)", Fault("fetch.GET.a/b", 1, "lose_reply", 504)),
        # Names with dots, slashes, spaces; only those before the last have none.
        ("send.orders.eu west/1#1:fail", Fault("send.orders.eu west/1", 1, "fail")),
        ("request.GET./a/b.c#12:lose_reply", Fault("request.GET./a/b.c", 12, "lose_reply")),
        ("request.M-SEARCH./a#1:lose_reply", Fault("request.M-SEARCH./a", 1, "lose_reply")),
        ("step.a%2Eb.c.d#1:fail", Fault("step.a%2Eb.c.d", 1, "fail")),
        ("wait.wf.#1:timeout", Fault("wait.wf.", 1, "timeout")),
        ("kv.CACHE.get#1:stale", Fault("kv.CACHE.get", 1, "stale")),
        ("schedule:0", Fault("schedule", None, "schedule", 0)),
        # Globs, of the kind too.
        ("*#*:crash_before", Fault("*", None, "crash_before")),
        ("*emails#1:duplicate", Fault("*emails", 1, "duplicate")),
        ("kv.[A-C%2D]?.*#1:stale", Fault("kv.[A-C%2D]?.*", 1, "stale")),
    ],
)
def test_fault_is_read_and_written_as_the_same_text(text: str, fault: Fault):
    assert Fault.parse(text) == fault
    assert str(fault) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  batch.emails#1:lose_ack\n", "batch.emails#1:lose_ack"),
        ("batch.emails#007:lose_ack", "batch.emails#7:lose_ack"),
        ("message.q#1:duplicate(30s)", "message.q#1:duplicate(30 s)"),
        ("message.q#1:delay( 90 seconds )", "message.q#1:delay(90 s)"),
        ("message.q#1:delay(24H)", "message.q#1:delay(24 h)"),
        ("message.q#1:delay(60)", "message.q#1:delay(60 s)"),
        ("message.q#1:delay(90 min 30 s)", "message.q#1:delay(1 h 30 min 30 s)"),
        ("message.q#1:delay(2 weeks)", "message.q#1:delay(14 days)"),
        ("fetch.GET.a/b#1:status( 503 )", "fetch.GET.a/b#1:status(503)"),
        ("schedule: 07", "schedule:7"),
        # The last # ends the site, so what needs encoding may also stand as it is.
        ("step.wf.a#1#2:fail", "step.wf.a%231#2:fail"),
        ("fetch.GET.localhost:80/x#1:fail", "fetch.GET.localhost%3A80/x#1:fail"),
        # A star at the end is for the names that are left out as well.
        ("step.*#*:evict", "step.*.*#*:evict"),
        ("step.on*#*:evict", "step.on*.*#*:evict"),
        ("fetch.*#1:status(503)", "fetch.*.*#1:status(503)"),
        # What needs no encoding is decoded, hexadecimal digits become capitals.
        ("send.%65m%61ils%3b#1:fail", "send.emails%3B#1:fail"),
        ("send.a%2Eb#1:fail", "send.a.b#1:fail"),
        ("send.gr%C3%B6%c3%9fe#1:fail", "send.größe#1:fail"),
        ("send.a\tb#1:fail", "send.a%09b#1:fail"),
        ("send.[!%5D%21-]#1:fail", "send.[!%5D%21%2D]#1:fail"),
    ],
)
def test_texts_of_the_same_fault_have_one_canonical_form(text: str, canonical: str):
    assert str(Fault.parse(text)) == canonical
    assert Fault.parse(text) == Fault.parse(canonical)


def actions() -> st.SearchStrategy[tuple[str, Action]]:
    return st.sampled_from([(k.name, a) for k in KINDS.values() for a in k.actions])


ARGUMENTS: dict[Takes, st.SearchStrategy[int | None]] = {
    Takes.NOTHING: st.none(),
    Takes.DURATION: st.integers(0, 10**15),
    Takes.MAYBE_DURATION: st.none() | st.integers(0, 10**15),
    Takes.STATUS: st.integers(200, 599),
    Takes.MAYBE_STATUS: st.none() | st.integers(200, 599),
    Takes.SEED: st.integers(0, 10**9),
}


def _name_of(part: str) -> st.SearchStrategy[str]:
    """Names that a site of this kind may have there."""
    shapes = {
        "METHOD": st.text("ABCXYZ09-_.!~", min_size=1),
        "path": st.text().map("/{}".format),
        "queue": st.text(min_size=1),
    }
    return shapes.get(part, st.text())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("fetch.pay.example/charge#1:fail", '"pay" is not an HTTP method in capitals'),
        ("request.post./#1:lose_reply", '"post" is not an HTTP method in capitals'),
        ("request.GET.orders#1:crash_after", '"orders" is not a path that begins with /'),
        ("fetch.POST/send.a#1:fail", '"POST/send" is not an HTTP method in capitals'),
        ("request../a#1:lose_reply", '"" is not an HTTP method in capitals'),
        ("batch.#1:fail", '"" is not the name of a queue'),
    ],
)
def test_name_that_no_site_can_have_is_refused_at_once(text: str, problem: str):
    with pytest.raises(PlanError, match=re.escape(problem)):
        Fault.parse(text)


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    """Any fault that the emulator may make of a site it met."""
    kind, action = draw(actions())
    row = KINDS[kind]
    argument = draw(ARGUMENTS[action.takes])
    if not row.names:
        return Fault(kind, None, action.name, argument)
    possible = action.operations or row.operations
    last = draw(st.sampled_from(possible) if possible else _name_of(row.names[-1]))
    names = (*(draw(_name_of(part)) for part in row.names[:-1]), last)
    occurrence = draw(st.none() | st.integers(1, 10**9))
    return Fault(site_name(kind, *names), occurrence, action.name, argument)


@given(faults())
def test_any_fault_is_read_back_from_its_text(fault: Fault):
    assert Fault.parse(str(fault)) == fault
    assert len(str(fault).splitlines()) == 1


@given(st.lists(faults()))
def test_any_plan_is_read_back_from_its_text(plan: list[Fault]):
    assert parse_plan(format_plan(plan)) == tuple(plan)


@given(st.text(st.sampled_from("sendbatchkv.#:;%*?[]!-0A1 ()\n")))
def test_any_text_is_read_or_refused(text: str):
    try:
        plan = parse_plan(text)
    except PlanError:
        return
    assert parse_plan(format_plan(plan)) == plan


@given(st.text(min_size=1))
def test_pattern_with_every_character_encoded_means_the_site_itself(name: str):
    encoded = "".join(f"%{byte:02x}" for byte in name.encode("utf-8", "surrogatepass"))
    assert Fault.parse(f"send.{encoded}#1:fail").site == site_name("send", name)


def test_plan_is_faults_separated_by_semicolons():
    plan = parse_plan("batch.emails#1:lose_ack ;; message.emails#2:drop;\n schedule:3;")
    assert plan == (
        Fault("batch.emails", 1, "lose_ack"),
        Fault("message.emails", 2, "drop"),
        Fault("schedule", None, "schedule", 3),
    )
    assert format_plan(plan) == "batch.emails#1:lose_ack; message.emails#2:drop; schedule:3"


@pytest.mark.parametrize("text", ["", " ", ";", " ; \n;"])
def test_empty_text_is_an_empty_plan(text: str):
    assert parse_plan(text) == ()


KIND_LIST = (
    "kinds of site: request, send, message, batch, step, sleep, wait, create, event, fetch, kv, "
    "d1, cache, r2, ratelimit, email, service, object, websocket, storage, alarm, cron, tail, "
    "wait_until, schedule"
)
BATCH_LIST = "actions there: shuffle, split, overlap, crash_before, fail, timeout, lose_ack"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "batch.emails#2:lose_akc",
            f"""\
            no action is called "lose_akc" at batch.emails; did you mean "lose_ack"?
                batch.emails#2:lose_akc
                               ^^^^^^^^
            {BATCH_LIST}""",
        ),
        (
            "batch.emails#2:zzz(1 h)",
            f"""\
            no action is called "zzz" at batch.emails
                batch.emails#2:zzz(1 h)
                               ^^^
            {BATCH_LIST}""",
        ),
        (
            "step.*.*#1:lose_ack",
            """\
            no action is called "lose_ack" at step.*.*
                step.*.*#1:lose_ack
                           ^^^^^^^^
            actions there: crash_before, fail, timeout, crash_after, crash_saved, evict""",
        ),
        (
            "message.q#1:delay(101 years)",
            """\
            101 years is longer than 100 years
                message.q#1:delay(101 years)
                                  ^^^^^^^^^""",
        ),
        (
            "message.q#1:dleay(30 s)",
            """\
            no action is called "dleay" at message.q; did you mean "delay"?
                message.q#1:dleay(30 s)
                            ^^^^^
            actions there: duplicate, delay(...), drop""",
        ),
        (
            "kv.CACHE.put#1:stale",
            """\
            no action is called "stale" at kv.CACHE.put
                kv.CACHE.put#1:stale
                               ^^^^^
            actions there: crash_before, fail, crash_after, lose_reply""",
        ),
        (
            "kv.CACHE.gte#1:stale",
            """\
            kv.<binding>.<operation> has no operation "gte"; did you mean "get"?
                kv.CACHE.gte#1:stale
                         ^^^
            operations: get, getWithMetadata, put, delete, list""",
        ),
        (
            "btach.emails#2:lose_ack",
            f"""\
            no kind of site is called "btach"; did you mean "batch"?
                btach.emails#2:lose_ack
                ^^^^^
            {KIND_LIST}""",
        ),
        (
            "?.emails#2:lose_ack",
            f"""\
            no kind of site matches this
                ?.emails#2:lose_ack
                ^
            {KIND_LIST}""",
        ),
        (
            "step.charge#1:fail",
            """\
            this site is named step.<workflow>.<step>
                step.charge#1:fail
                ^^^^^^^^^^^
            one occurrence is an attempt of that step, over all instances and counts; \
step.*.* is every one""",
        ),
        (
            "batch.emails:lose_ack",
            """\
            which occurrence is missing
                batch.emails:lose_ack
                            ^
            write batch.emails#1:lose_ack for the first, batch.emails#*:lose_ack for every one""",
        ),
        (
            "batch.emails",
            """\
            which occurrence is missing
                batch.emails
                            ^
            write batch.emails#1:action for the first, batch.emails#*:action for every one""",
        ),
        (
            "batch.emails#0:lose_ack",
            """\
            "0" is no occurrence: it is counted from 1 in the order met, and * is every one
                batch.emails#0:lose_ack
                             ^""",
        ),
        (
            "batch.emails#first:lose_ack",
            """\
            "first" is no occurrence: it is counted from 1 in the order met, and * is every one
                batch.emails#first:lose_ack
                             ^^^^^""",
        ),
        (
            "batch.emails#1",
            f"""\
            the action is missing
                batch.emails#1
                              ^
            {BATCH_LIST}""",
        ),
        (
            "batch.emails#1:",
            f"""\
            the action is missing
                batch.emails#1:
                               ^
            {BATCH_LIST}""",
        ),
        (
            "batch.emails#1:lose_ack(3)",
            """\
            lose_ack takes no argument
                batch.emails#1:lose_ack(3)
                                       ^^^""",
        ),
        (
            "message.q#1:delay",
            """\
            delay needs a duration, such as 30 s, in parentheses
                message.q#1:delay
                            ^^^^^""",
        ),
        (
            "message.q#1:delay(30 s",
            """\
            this is neither an action nor action(argument)
                message.q#1:delay(30 s
                            ^^^^^^^^^^""",
        ),
        (
            "message.q#1:delay(2 fortnights)",
            """\
            '2 fortnights': 'fortnights' is not a unit of time; use milliseconds, seconds, \
minutes, hours, days, weeks, months, years
                message.q#1:delay(2 fortnights)
                                  ^^^^^^^^^^^^""",
        ),
        (
            "message.q#1:delay(-1 s)",
            """\
            '-1 s' is negative, and time only moves forward: give a timedelta, a number of \
seconds, or text such as "30 seconds", "500 ms", "1 h 30 min"
                message.q#1:delay(-1 s)
                                  ^^^^""",
        ),
        (
            "fetch.GET.a/b#1:status",
            """\
            status needs an HTTP status from 200 to 599, in parentheses
                fetch.GET.a/b#1:status
                                ^^^^^^""",
        ),
        (
            "fetch.GET.a/b#1:status(99)",
            """\
            status takes an HTTP status from 200 to 599
                fetch.GET.a/b#1:status(99)
                                       ^^""",
        ),
        (
            "fetch.GET.a/b#1:lose_reply(5 s)",
            """\
            lose_reply takes an HTTP status from 200 to 599, or nothing
                fetch.GET.a/b#1:lose_reply(5 s)
                                           ^^^""",
        ),
        (
            "schedule#1:7",
            """\
            schedule is followed by a seed and nothing else
                schedule#1:7
                        ^^^^
            write schedule:7; any whole number from 0 will do""",
        ),
        (
            "schedule:x",
            """\
            schedule is followed by a seed and nothing else
                schedule:x
                        ^^
            write schedule:7; any whole number from 0 will do""",
        ),
        (
            "step.wf.a[0#1:fail",
            """\
            "[" opens a set of characters that is empty or never closed; a literal one is \
written %5B
                step.wf.a[0#1:fail
                         ^""",
        ),
        (
            "step.wf.[z-a]#1:fail",
            """\
            the range z-a runs backwards
                step.wf.[z-a]#1:fail
                        ^^^^^""",
        ),
        (
            "send.50%#1:fail",
            """\
            "%" is not followed by two hexadecimal digits; a literal one is written %25
                send.50%#1:fail
                       ^""",
        ),
        (
            "send.%FF#1:fail",
            """\
            %FF is not UTF-8
                send.%FF#1:fail
                     ^^^""",
        ),
        (
            "send.a;b#1:fail",
            """\
            ";" separates faults and one is read here; a literal one is written %3B
                send.a;b#1:fail
                      ^""",
        ),
        ("", "a fault is empty; write it as site#occurrence:action"),
    ],
)
def test_error_shows_the_part_at_fault_and_what_is_allowed(text: str, message: str):
    with pytest.raises(PlanError) as caught:
        Fault.parse(text)
    assert str(caught.value) == dedent(message)


def test_error_in_a_plan_says_which_fault_it_is():
    with pytest.raises(PlanError) as caught:
        parse_plan("batch.emails#1:fail;; batch.emails#2:fial;")
    assert str(caught.value) == dedent(
        f"""\
        fault 2 of 2: no action is called "fial" at batch.emails; did you mean "fail"?
            batch.emails#2:fial
                           ^^^^
        {BATCH_LIST}"""
    )


def test_plan_errors_are_value_errors_without_a_misleading_cause():
    with pytest.raises(PlanError) as caught:
        Fault.parse("message.q#1:delay(soon)")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, EmulatorError)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("pattern", "site", "expected"),
    [
        ("batch.emails", "batch.emails", True),
        ("batch.emails", "batch.emails2", False),
        ("batch.e*", "batch.emails.eu", True),
        ("batch.email?", "batch.emails", True),
        ("batch.email?", "batch.email%3F", True),
        ("batch.email%3F", "batch.emails", False),
        ("batch.[a-e]mails", "batch.emails", True),
        ("batch.[!a-e]mails", "batch.emails", False),
        ("batch.[%5B%2D]x", "batch.%5Bx", True),
        ("batch.[%5B%2D]x", "batch.-x", True),
        # Where the kind is plain, * stays inside its name.
        ("step.*.charge", "step.onboarding.charge", True),
        ("step.*", "step.onboarding.charge", True),
        ("step.on*", "step.onboarding.charge", True),
        ("step.*", "sleep.onboarding.charge", False),
        ("request.*", "request.GET./a.b", True),
        ("step.on*.charge", "step.onboarding.sub.charge", False),
        ("step.*.charge", "step.a%2Eb.charge", True),
        ("fetch.*.mail.example/*", "fetch.POST.mail.example/a/b", True),
        ("fetch.P*.mail.example/*", "fetch.GET.mail.example/a", False),
        # * is no encoded character's digits.
        ("send.*A", "send.x%3A", False),
        ("send.*A", "send.%3AA", True),
        # Where the kind is a pattern, it means the whole site.
        ("*", "step.onboarding.charge", True),
        ("*charge", "step.onboarding.charge", True),
        ("s*.orders", "send.orders", True),
        ("s*.orders", "batch.orders", False),
        ("*.a:b", "send.a%3Ab", True),
        ("send.a\nb", "send.a%0Ab", True),
        ("send.*", "send.a%0Ab", True),
    ],
)
def test_patterns_match_sites_by_their_names(pattern: str, site: str, expected: bool):
    assert parse_site(pattern).matches(site) is expected


def test_parse_site_refuses_what_is_no_site():
    with pytest.raises(PlanError) as caught:
        parse_site(" step.charge ")
    assert str(caught.value).splitlines()[:3] == [
        "this site is named step.<workflow>.<step>",
        "    step.charge",
        "    ^^^^^^^^^^^",
    ]


def test_glob_tells_patterns_from_sites():
    assert Fault.parse("step.*.x#1:fail").glob
    assert not Fault.parse("step.wf.a%2Ab#1:fail").glob


@pytest.mark.parametrize("wrong", [3, None, b"batch.q#1:fail", ["batch.q#1:fail"]])
def test_what_is_neither_text_nor_fault_is_refused(wrong: object):
    with pytest.raises(
        PlanError, match=r"a fault is a text such as .*, or a Fault, not "
    ) as caught:
        Fault.parse(wrong)  # type: ignore[arg-type]
    assert ("add(*faults)" in str(caught.value)) is isinstance(wrong, list)


def test_durations_below_a_second_survive():
    fault = Fault("message.q", 1, "delay", 1_500 * MILLISECOND + 1)
    assert Fault.parse(str(fault)) == fault


def test_faults_are_values():
    fault = Fault("batch.emails", 1, "lose_ack")
    assert fault == Fault("batch.emails", 1, "lose_ack")
    assert len({fault, Fault("batch.emails", 1, "lose_ack")}) == 1
    with pytest.raises(AttributeError):
        fault.site = "batch.other"  # type: ignore[misc]


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(emulator.faults.plan).failed == 0
