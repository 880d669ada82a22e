"""The comparer sees what differs, and only that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from comparer import (
    ABSENT,
    START,
    Deviation,
    Difference,
    Joined,
    NotApplicable,
    broker_lines,
    expected,
    flat,
    mismatches,
    normalised,
)

from emulator.logs import Log

ID = "0123456789abcdef" * 2
OTHER = "fedcba9876543210" * 2


def observed(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"events": list(events), "runtime_logs": [], **more}


def batch(at: float, *ids: str) -> dict[str, Any]:
    messages = [{"id": id} for id in ids]
    return {"t": at, "kind": "batch", "queue": "q", "n": len(ids), "messages": messages}


def differing(ours: dict[str, Any], theirs: dict[str, Any], *deviations: Deviation) -> list[str]:
    wanted = expected({"observed": theirs}, "miniflare", deviations)
    return mismatches(flat(normalised(ours)), wanted)


def test_ids_are_named_by_first_sight_on_both_sides() -> None:
    ours = observed(batch(0, ID, OTHER), runtime_logs=[f"Retrying {OTHER}"])
    assert differing(ours, observed(batch(0, "ID2", "ID1"), runtime_logs=["Retrying ID1"])) == []
    assert differing(ours, observed(batch(0, "ID1", "ID2"), runtime_logs=["Retrying ID1"])) != []
    assert differing(observed(batch(0, ID, ID)), observed(batch(0, "ID1", "ID2"))) != []


@pytest.mark.parametrize("theirs", [0.3, -0.3])
def test_times_may_differ_by_the_noise_and_no_more(theirs: float) -> None:
    assert differing(observed({"t": 1.0}), observed({"t": 1 + theirs})) == []
    assert len(differing(observed({"t": 1.0}), observed({"t": 1 + theirs * 1.1}))) == 1


def test_instants_count_from_the_start() -> None:
    ours = observed({"ts": (START + 1.5) * 1000})
    assert differing(ours, observed({"ts": {"rel_s": 1.5}})) == []
    assert len(differing(ours, observed({"ts": {"rel_s": 2}}))) == 1


def test_dates_of_the_run_are_named_and_others_are_not() -> None:
    def date(text: str) -> dict[str, str]:
        return {"$": "Date", "v": text}

    ours = observed(result=[date("2026-01-01T00:00:00.000Z")] * 2)
    late, later = date("2026-11-29T17:37:15.183Z"), date("2026-11-29T17:37:15.184Z")
    assert differing(ours, observed(result=[late, late])) == []
    assert len(differing(ours, observed(result=[late, later]))) == 1
    epoch = observed(result=date("1970-01-01T00:00:00.000Z"))
    assert len(differing(epoch, observed(result=date("1970-01-01T00:00:00.001Z")))) == 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"n": 1}, {"n": 2}),
        ({"n": 1}, {"n": True}),
        ({"n": None}, {"n": {"$": "undefined"}}),
        ({"n": 1}, {}),
        ({}, {"n": 1}),
        ({"n": [1, 2]}, {"n": [2, 1]}),
        ({"n": []}, {"n": {}}),
        # A field of a Worker's own that is called as times are.
        ({"t": "a"}, {"t": "b"}),
        ({"t": "1"}, {"t": 1}),
        ({"name": "E"}, {"name": "E", "ctor": "DOMException"}),
    ],
)
def test_a_field_that_differs_is_told(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert differing(observed(ours), observed(theirs)) != []
    assert differing(observed(theirs), observed(theirs)) == []


def test_an_event_too_many_is_told() -> None:
    assert differing(observed(batch(0, ID), batch(1, ID)), observed(batch(0, ID))) != []
    assert differing(observed(batch(0, ID)), observed(batch(0, ID), batch(1, ID))) != []


def test_a_constructor_of_the_same_name_says_nothing() -> None:
    error = {"name": "TypeError", "message": "no"}
    assert differing(observed(error), observed({**error, "ctor": "TypeError"})) == []


def raised(kind: str, text: str, name: str = "Error", before: str = "PythonError: ") -> Any:
    lines = ["Traceback (most recent call last):", '  File "entry.py", line 1, in body']
    return {"name": name, "message": f"{before}{chr(10).join([*lines, f'{kind}: {text}'])}"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (raised("Exception", "a: b"), {"name": "Error", "message": "a: b"}),
        (raised("TypeError", "bad", "PythonError", ""), {"name": "TypeError", "message": "bad"}),
        (raised("entry.MyErr", "bad"), {"name": "Error", "message": "MyErr: bad"}),
        # What the SDK makes of a traceback's last line.
        (
            {"name": "TypeError", "message": "TypeError: bad"},
            {"name": "TypeError", "message": "bad"},
        ),
        ({"name": "Exception", "message": "bad"}, {"name": "Error", "message": "bad"}),
    ],
)
def test_an_exception_of_python_is_its_last_line(ours: Any, theirs: Any) -> None:
    assert differing(observed({"e": ours}), observed({"e": theirs})) == []
    wrong = {**theirs, "message": f"{theirs['message']}!"}
    assert len(differing(observed({"e": ours}), observed({"e": wrong}))) == 1
    assert differing(observed({"e": ours}), observed({"e": {**theirs, "name": "RangeError"}})) != []


def status(**fields: Any) -> dict[str, Any]:
    return observed(result={"ok": fields})


@pytest.mark.parametrize(
    ("local", "production"),
    [
        ({"output": None, "error": {"$": "undefined"}}, {}),
        ({"output": 1, "error": {"$": "undefined"}}, {"output": 1}),
        (
            {"output": None, "error": {"name": "Error", "message": "WorkflowTimeoutError: late"}},
            {"error": {"name": "WorkflowTimeoutError", "message": "late"}},
        ),
        (
            {"output": None, "error": {"name": "Error", "message": "MyErr: bad"}},
            {"error": {"name": "Error", "message": "MyErr: bad"}},
        ),
    ],
)
def test_a_status_has_the_shape_of_production(local: Any, production: Any) -> None:
    theirs = status(status="complete", __LOCAL_DEV_STEP_OUTPUTS=[1], **local)
    ours = status(status="complete", rollback=None, **production)
    wanted = expected({"observed": theirs}, "production", ())
    assert mismatches(flat(normalised(ours)), wanted) == []
    assert mismatches(flat(normalised(theirs)), wanted) != []
    # Locally it is as it was recorded.
    assert (
        mismatches(flat(normalised(theirs)), expected({"observed": theirs}, "miniflare", ())) == []
    )
    assert mismatches(flat(normalised(ours)), expected({"observed": theirs}, "miniflare", ())) != []


def test_a_difference_replaces_what_was_recorded() -> None:
    theirs = observed({"body": {"a": 1, "b": 2}, "n": 1})
    declared = Difference("events.0.body", {"c": 3}, "a reason that is long enough")
    assert differing(observed({"body": {"c": 3}, "n": 1}), theirs, declared) == []
    assert differing(theirs, theirs, declared) != []
    gone = NotApplicable("events.0.n", "a reason that is long enough")
    assert differing(observed({"body": {"a": 1, "b": 2}}), theirs, gone) == []
    assert differing(theirs, theirs, gone) != []


@pytest.mark.parametrize(
    "stale",
    [
        Difference("events.0.n", 1, "the value that was recorded"),
        Difference("events.1", ABSENT, "an event that was not recorded"),
        NotApplicable("events.0.m", "a field that was not recorded"),
    ],
)
def test_a_difference_that_is_none_is_refused(stale: Deviation) -> None:
    with pytest.raises(AssertionError, match=r"as recorded|not in the recording"):
        differing(observed({"n": 1}), observed({"n": 1}), stale)


def test_batches_that_a_race_took_apart_are_joined() -> None:
    line = "[INFO] QUEUE q {0}/{0} (Nms)".format
    theirs = observed(batch(0, "A"), batch(1, "B", "C"), batch(1.1, "D"))
    theirs["runtime_logs"] = [line(1), line(2), line(1)]
    ours = observed(batch(0, "A"), batch(1, "B", "C", "D"))
    ours["runtime_logs"] = [line(1), line(3)]
    assert differing(ours, theirs, Joined((1, 2), "a race")) == []
    assert differing(ours, theirs) != []


def test_batches_far_apart_were_no_race() -> None:
    theirs = observed(batch(0, "A"), batch(1, "B"))
    with pytest.raises(AssertionError, match="no race"):
        differing(theirs, theirs, Joined((0, 1), "a race"))


def test_lines_of_the_broker_are_kept_as_recorded() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    texts = ["QUEUE q 2/3 (14ms)", "a line of the Worker", 'Retrying message "1" on queue "q"...']
    logs = [Log(now, "w", "info", text) for text in texts]
    assert broker_lines(logs) == ["[INFO] QUEUE q 2/3 (Nms)", f"[INFO] {texts[2]}"]
    assert len(broker_lines(logs * 100)) == 60
