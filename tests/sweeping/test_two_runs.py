"""Two runs that differ: the first event, the line of the user's code, the likely cause."""

from __future__ import annotations

import json

import pytest

from emulator.clock import instant
from emulator.emulator import START
from emulator.sweeping import determinism
from emulator.sweeping.account import Account
from emulator.sweeping.determinism import IN_PROCESS, Circumstances
from emulator.sweeping.outcome import Failure, FindingsError, Outcome

SECOND = "2026-01-01T00:00:01.000000Z"
LINE = "src/entry.py:12: await fetch(url)"


def event(kind: str, *, subject: str = "request GET /", at: str = SECOND, **data: object) -> str:
    return json.dumps({"at": at, "kind": kind, "subject": subject, "data": data})


def account(*lines: str, places: tuple[str, ...] = (), error: str = "") -> Account:
    places = places or (LINE,) * len(lines)
    return Account(
        passed=not error,
        cause=error and "AssertionError at test_it.py:7",
        text=error,
        start=instant(START),
        lines=lines,
        places=places,
    )


def failing(one: Account, other: Account, circumstances: Circumstances = IN_PROCESS) -> Failure:
    return determinism.failure(one, other, circumstances, trace=None)


def logged(*texts: str) -> tuple[str, ...]:
    return tuple(event("log", text=text) for text in texts)


def test_first_event_that_differs_is_shown_with_its_line():
    failure = failing(account(*logged("a", "b", "c")), account(*logged("a", "x", "y")))

    assert failure.text.splitlines()[:4] == [
        "nondeterministic: two runs without a fault differed, first at event 2",
        "  first run:  +0:00:01.000     request GET /  log  text=b",
        "  second run: +0:00:01.000     request GET /  log  text=x",
        f"  at {LINE}",
    ]
    assert failure.place == LINE
    assert isinstance(failure.error, FindingsError)
    (finding,) = failure.error.findings
    assert finding.code == "nondeterministic"
    assert finding.location == "src/entry.py:12"
    assert finding.subject == "request GET /"
    assert finding.at.second == 1


def test_lines_of_both_runs_are_shown_where_they_differ():
    one = account(event("log", text="a"), places=("src/entry.py:1: log('a')",))
    other = account(event("request_out", url="u"), places=("src/entry.py:2: fetch('u')",))

    assert failing(one, other).text.splitlines()[1:5] == [
        "  first run:  +0:00:01.000     request GET /  log  text=a",
        "              at src/entry.py:1: log('a')",
        "  second run: +0:00:01.000     request GET /  request_out  url=u",
        "              at src/entry.py:2: fetch('u')",
    ]


def test_run_that_has_fewer_events_had_ended():
    one, other = account(*logged("a")), account(*logged("a", "b"))

    assert failing(one, other).text.splitlines()[1:4] == [
        "  first run:  (it had ended)",
        "  second run: +0:00:01.000     request GET /  log  text=b",
        f"              at {LINE}",
    ]
    assert failing(other, one).place == LINE
    assert failing(one, other).place == LINE
    failed = account(*logged("a"), error="ValueError: no\n at all")
    assert "  first run:  (it had ended: ValueError: no)" in failing(failed, other).text


def test_event_without_a_line_is_put_after_the_latest_line_on_its_lane():
    lines = (event("log", text="a"), event("send", subject="queue q"))
    places = ("src/entry.py:1: log()", "src/entry.py:2: send()", "")
    one = account(*lines, event("batch", n=1), places=places)
    other = account(*lines, event("batch", n=2), places=places)

    text = failing(one, other).text
    assert "  after src/entry.py:1: log()" in text.splitlines()
    assert failing(one, other).place == ""

    other_lane = event("batch", subject="queue q #1", n=1), event("batch", subject="queue q #1")
    one = account(*lines, other_lane[0], places=places)
    other = account(*lines, other_lane[1], places=places)
    assert "  after src/entry.py:2: send()" in failing(one, other).text.splitlines()


def test_runs_that_only_end_in_another_way():
    one, other = account(*logged("a")), account(*logged("a"), error="AssertionError: no\n at all")

    failure = failing(one, other)
    assert failure.text.splitlines()[:4] == [
        "nondeterministic: two runs without a fault differed, only in how it ended",
        "  first run:  passed",
        "  second run: AssertionError: no",
        "     at all",
    ]
    assert f"  after {LINE}" in failure.text.splitlines()
    assert "what an earlier run left behind" in failure.text


def test_virtual_time_alone_may_differ():
    later = "2026-01-01T00:00:02.000000Z"
    failure = failing(account(event("log")), account(event("log", at=later)))
    assert "+0:00:01.000     request GET /  log" in failure.text
    assert "+0:00:02.000     request GET /  log" in failure.text
    assert "real time. Take it from" not in failure.text


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        (("a", "b"), ("b", "a"), "in another order"),
        (("n=1",), ("n=2",), "a number that goes up from run to run"),
        (("at 1767225600.25",), ("at 1767225600.75",), "real time. Take it from"),
        (("1767225600250000000",), ("1767225600260000000",), "real time. Take it from"),
        (("2026-07-01T10:00:00.1",), ("2026-07-01T10:00:00.3",), "real time. Take it from"),
        (
            ("/tmp/pytest-of-ada/pytest-1/test_x0/file",),
            ("/tmp/pytest-of-ada/pytest-1/test_x1/file",),
            "the name of a temporary folder or file",
        ),
        (("tmpab12cd_9 x",), ("tmpzz01yy_8 x",), "the name of a temporary folder or file"),
        (
            ("/x?id=0f8b3a52-6a7e-4f0e-9f39-0c5c11f2a9d1",),
            ("/x?id=5e0c8a11-0b7d-4c55-8f1e-77e1d0f2b3c4",),
            "a random value, or a hash of one",
        ),
        (("a 0.25138450",), ("a 0.75138451",), "a random value, or a hash of one"),
        (("order-2026-january-1",), ("order-2026-january-2",), "a number that goes up from run"),
        (("/tmp/fixed?n=1",), ("/tmp/fixed?n=2",), "a number that goes up from run to run"),
        (("n=2",), ("n=1",), "comes from outside the emulator"),
        (("a",), ("b",), "comes from outside the emulator"),
        (("a", "b"), ("a",), "comes from outside the emulator"),
    ],
)
def test_likely_cause_within_one_process(one, other, cause):
    assert cause in failing(account(*logged(*one)), account(*logged(*other))).text.splitlines()[-1]


def test_likely_cause_between_processes_is_that_of_the_circumstances():
    one, other = account(*logged("n=1")), account(*logged("n=2"))

    failure = failing(one, other, determinism.two_hash_seeds(1, 2))
    assert failure.text.splitlines()[0] == (
        "nondeterministic: two runs without a fault in processes with another PYTHONHASHSEED "
        "differed, first at event 1"
    )
    assert failure.text.splitlines()[1].startswith("  PYTHONHASHSEED=1: +0:00:01.000")
    assert failure.text.splitlines()[-1].startswith("Likely cause: the order of a set")
    assert "sorted(" in failure.text

    failure = failing(one, other, determinism.two_processes())
    assert "in two processes differed, first at event 1" in failure.text
    assert failure.text.splitlines()[-1].startswith("Likely cause: something that each process has")
    assert "id()" in failure.text


def test_account_is_the_same_after_a_journey_as_json():
    there = account(*logged("a"), error="ValueError: no")
    assert Account.read(json.loads(json.dumps(there.written()))) == there


def test_lines_do_not_make_two_runs_differ():
    one, other = account(*logged("a")), account(*logged("a"), places=("elsewhere.py:1",))
    assert one.is_same(other)
    assert not one.is_same(account(*logged("b")))
    assert not one.is_same(account(*logged("a"), error="no"))


def test_account_of_an_outcome_without_a_trace():
    assert Account.of(Outcome()) == Account(passed=True)
    failed = Account.of(Outcome(error=ValueError("no"), cause="ValueError"))
    assert failed == Account(passed=False, cause="ValueError", text="ValueError: no")
