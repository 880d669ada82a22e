"""Findings: the table, reading, expecting, and what fails a test."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta

import pytest

from emulator.findings import CODES, DEFAULT_STRICT, Finding, Findings
from emulator.secrets import Masker

START = datetime(2026, 1, 1, tzinfo=UTC)
CODE_LIST = (
    "background_error, floating_task, never_awaited, outbound_unmocked, fault_not_fired, "
    "nondeterministic, handler_exception, wait_until_cancelled, ignored_ack, message_dropped, "
    "no_consumer, missing_handler, wrong_arity, alarm_dropped, missing_binding, ignored_option, "
    "lossy_body, effect_outside_step, replay_diverged, sleep_changed, mock_not_reached"
)


def finding(code: str = "ignored_ack", second: float = 0, **more: str | None) -> Finding:
    message = more.pop("message", None) or "it was"
    return Finding(code, message, START + timedelta(seconds=second), **more)


def test_table_is_that_of_the_documentation():
    assert ", ".join(CODES) == CODE_LIST


def test_codes_that_fail_by_default_are_those_of_the_documentation():
    assert [code for code in CODES if code in DEFAULT_STRICT] == [
        "background_error",
        "floating_task",
        "never_awaited",
        "outbound_unmocked",
        "fault_not_fired",
        "nondeterministic",
    ]


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_meaning_on_one_line(code: str):
    meaning = CODES[code].meaning
    assert meaning == meaning.strip()
    assert meaning[:1].islower()
    assert "\n" not in meaning
    assert not meaning.endswith(".")


def test_finding_has_the_documented_fields_and_is_frozen():
    found = Finding("ignored_ack", "too late", START, "src/entry.py:12", "mail", "emails")
    assert (found.code, found.message, found.at) == ("ignored_ack", "too late", START)
    assert (found.location, found.worker, found.subject) == ("src/entry.py:12", "mail", "emails")
    with pytest.raises(FrozenInstanceError):
        found.code = "x"  # type: ignore[misc]


def test_finding_reads_as_a_sentence_with_time_and_place():
    found = Finding(
        "background_error", "a waitUntil task failed: ValueError: no", START, "src/entry.py:12",
        "mail", "fetch POST /signup",
    )  # fmt: skip
    assert str(found) == (
        "src/entry.py:12: background_error: a waitUntil task failed: ValueError: no "
        "(fetch POST /signup, Worker mail, at 2026-01-01T00:00:00.000000Z)"
    )
    assert str(finding()) == "ignored_ack: it was (at 2026-01-01T00:00:00.000000Z)"


def test_unknown_code_is_refused_with_the_codes_listed():
    with pytest.raises(ValueError, match="no finding") as caught:
        finding("ignored_akc")
    assert str(caught.value) == (
        "no finding has the code 'ignored_akc'; did you mean 'ignored_ack'? Codes: " + CODE_LIST
    )
    with pytest.raises(ValueError, match="no finding") as caught:
        Findings().expect("zzz")
    assert str(caught.value) == f"no finding has the code 'zzz'. Codes: {CODE_LIST}"


def test_findings_are_computed_when_read_in_order_of_time():
    findings = Findings()
    backlog: list[Finding] = []
    findings.provide(lambda: backlog)
    assert findings == []
    findings.add(finding(second=2))
    backlog.append(finding("no_consumer", second=1))
    assert findings == [backlog[0], finding(second=2)]
    backlog.clear()
    assert findings == [finding(second=2)]
    assert len(findings) == 1
    assert findings[0] == finding(second=2)
    assert findings[-1:] == [finding(second=2)]


def test_findings_of_one_instant_keep_their_order():
    findings = Findings()
    for code in ("ignored_ack", "handler_exception", "floating_task"):
        findings.add(finding(code))
    assert [f.code for f in findings] == ["ignored_ack", "handler_exception", "floating_task"]


def test_identical_findings_of_one_place_are_listed_once_with_their_first_time():
    findings = Findings()
    for second in (3, 1, 2):
        findings.add(finding(second=second, location="a.py:1", subject="q"))
    findings.add(finding(second=4, location="a.py:2", subject="q"))
    findings.add(finding(second=5, location="a.py:1", subject="r"))
    findings.add(finding(second=6, location="a.py:1", subject="q", message="it differs"))
    assert [(f.at - START).seconds for f in findings] == [1, 4, 5, 6]


def test_expected_findings_are_listed_and_fail_nothing():
    findings = Findings()
    findings.add(finding("floating_task", 1))
    assert [f.code for f in findings.unexpected()] == ["floating_task"]
    findings.expect("floating_task")
    findings.add(finding("floating_task", 2, message="another"))
    assert len(findings) == 2
    assert findings.unexpected() == []
    assert findings.tolerated() == []


def test_strict_codes_replace_those_that_fail_by_default():
    findings = Findings()
    findings.add(finding("floating_task"))
    findings.add(finding("no_consumer"))
    strict = frozenset({"no_consumer"})
    assert [f.code for f in findings.unexpected()] == ["floating_task"]
    assert [f.code for f in findings.tolerated()] == ["no_consumer"]
    assert [f.code for f in findings.unexpected(strict)] == ["no_consumer"]
    assert [f.code for f in findings.tolerated(strict)] == ["floating_task"]
    assert findings.unexpected(frozenset()) == []


def test_strict_codes_must_exist():
    with pytest.raises(ValueError, match="no finding has the code 'no_consumers'; did you mean"):
        Findings().unexpected(frozenset({"no_consumers"}))


def test_findings_stay_readable_after_close():
    findings = Findings()
    backlog = [finding("no_consumer", 1)]
    findings.provide(lambda: backlog)
    findings.add(finding(second=2))
    findings.close()
    backlog.clear()
    assert [f.code for f in findings] == ["no_consumer", "ignored_ack"]
    findings.expect("no_consumer")
    findings.close()
    assert len(findings) == 2


def test_clear_forgets_findings_and_expectations_but_no_provider():
    findings = Findings()
    findings.provide(lambda: [finding("no_consumer")])
    findings.add(finding("floating_task"))
    findings.expect("floating_task")
    findings.clear()
    assert [f.code for f in findings] == ["no_consumer"]
    findings.add(finding("floating_task"))
    assert len(findings.unexpected()) == 1


def test_messages_show_no_secret():
    findings = Findings(Masker({"API_KEY": "sk-12345678"}))
    findings.add(finding(message="GET /?key=sk-12345678"))
    assert findings[0].message == "GET /?key=[secret API_KEY]"
    assert "sk-12345678" not in repr(findings)


def test_repr_is_the_sentences():
    findings = Findings()
    assert repr(findings) == "[]"
    findings.add(finding())
    assert repr(findings) == f"[{finding()}]"


def test_comparison_with_something_else_is_false():
    assert Findings() != "x"
    assert Findings() == ()
    assert Findings() == Findings()
