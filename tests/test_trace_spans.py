"""Which events of a trace begin and end a thing."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.trace.spans import Span, spans
from emulator.trace.timeline import Row

EMAILS, BATCH = "queue emails", "queue emails #1"
FLOW = "workflow flow a"


def row(kind: str, subject: str, /, **data: Any) -> Row:
    return Row(0, kind, subject, data)


def request(subject: str = "request GET /", worker: str = "main") -> Row:
    return row("request", subject, worker=worker, url="http://localhost/")


def batch(*ids: str, subject: str = BATCH, worker: str = "main") -> Row:
    return row("batch", subject, worker=worker, messages=[f"{id}#1" for id in ids])


def lease(*ids: str) -> Row:
    return row("lease", EMAILS, messages=[f"{id}#1" for id in ids], milliseconds=30_000)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (request(), row("response", "request GET /", status=200)),
        (batch("a"), row("ack", EMAILS, id="a", attempt=1)),
        (batch("a", "b"), row("retry", EMAILS, id="b", attempt=1)),
        (batch("a"), row("dead_letter", EMAILS, id="a", attempt=1)),
        (batch("a"), row("dropped", EMAILS, id="a", attempt=1)),
        (batch("a"), row("lost", EMAILS, id="a", attempt=1)),
        (lease("a", "b"), row("ack", EMAILS, id="b", attempt=1)),
        (lease("a"), row("lost", EMAILS, id="a", attempt=1)),
        (row("request_out", BATCH, url="u"), row("response_in", BATCH, url="u", status=1)),
        (row("step", FLOW, step="s-1", attempt=1), row("step_done", FLOW, step="s-1", attempt=1)),
        (row("step", FLOW, step="s-1", attempt=1), row("step_retry", FLOW, step="s-1", attempt=1)),
        (row("step", FLOW, step="s-1", attempt=1), row("step_failed", FLOW, step="s-1", attempt=1)),
        (row("step", FLOW, step="s-1", attempt=1), row("step_lost", FLOW, step="s-1", attempt=1)),
        (row("sleep", FLOW, step="s-1", milliseconds=1), row("wake", FLOW, step="s-1")),
        (row("wait", FLOW, step="s-1"), row("wait_done", FLOW, step="s-1")),
        (row("wait", FLOW, step="s-1"), row("wait_timed_out", FLOW, step="s-1")),
        (row("workflow_run", FLOW), row("workflow_ended", FLOW, status="complete")),
        (row("workflow_run", FLOW), row("workflow_hibernated", FLOW)),
        (row("workflow_run", FLOW), row("workflow_restarted", FLOW)),
        (row("rollback", FLOW), row("rollback_done", FLOW)),
        (row("workflow_paused", FLOW), row("workflow_resumed", FLOW)),
        (row("pause", EMAILS), row("resume", EMAILS)),
    ],
)
def test_begin_and_end_belong_together(begin: Row, end: Row) -> None:
    other = row("log", begin.subject, level="log", text="x")
    assert spans([begin, other, end, other]) == [Span(0, 2)]
    # In another lane the end is another thing's.
    assert spans([begin, end._replace(subject=f"{end.subject}x")]) == [Span(0, None)]


@pytest.mark.parametrize(
    "end",
    [
        row("ack", EMAILS, id="b", attempt=1),
        row("ack", "queue other", id="a", attempt=1),
        row("lost", BATCH, location="src/entry.py:3"),
        row("send", EMAILS, id="a", by="test"),
    ],
)
def test_batch_ends_with_nothing_but_its_own_messages(end: Row) -> None:
    assert spans([batch("a"), end]) == [Span(0, None)]


def test_message_delivered_again_ends_the_later_batch() -> None:
    again = batch("a", subject="queue emails #2")
    rows = [
        batch("a", "b"),
        row("ack", EMAILS, id="b", attempt=1),
        row("retry", EMAILS, id="a", attempt=1),
        again,
        row("ack", EMAILS, id="a", attempt=2),
    ]
    assert spans(rows) == [Span(0, 1), Span(3, 4)]


def test_first_of_several_equal_ones_ends_first() -> None:
    ask, answer = row("request_out", BATCH, url="u"), row("response_in", BATCH, url="u")
    assert spans([ask, ask, answer, ask, answer]) == [Span(0, 2), Span(1, 4), Span(3, None)]


def test_another_attempt_is_another_span() -> None:
    rows = [
        row("step", FLOW, step="s-1", attempt=1),
        row("step", FLOW, step="t-1", attempt=1),
        row("step_retry", FLOW, step="s-1", attempt=1, error="E"),
        row("step", FLOW, step="s-1", attempt=2),
        row("step_done", FLOW, step="t-1", attempt=1),
        row("step_done", FLOW, step="s-1", attempt=2),
    ]
    assert spans(rows) == [Span(0, 2), Span(1, 4), Span(3, 5)]


def test_crash_cuts_what_runs_of_its_worker() -> None:
    rows = [
        request(),
        request("request GET /b", worker="other"),
        batch("a"),
        row("request_out", BATCH, url="u"),
        row("sleep", FLOW, step="s-1", milliseconds=1),
        row("crash", "worker main"),
        row("lost", EMAILS, id="a", attempt=1),
        row("wake", FLOW, step="s-1"),
        row("response", "request GET /b", status=200),
    ]
    assert spans(rows) == [
        Span(0, 5, is_cut=True),
        Span(1, 8),
        Span(2, 5, is_cut=True),
        Span(3, 5, is_cut=True),
        Span(4, 7),
    ]


@pytest.mark.parametrize(
    ("end", "is_cut"),
    [("crash", True), ("evict", False)],
)
def test_run_that_starts_again_was_ended_before(end: str, is_cut: bool) -> None:
    rows = [
        row("workflow_run", FLOW),
        row("step", FLOW, step="s-1", attempt=1),
        row(end, "worker main"),
        row("step_retry", FLOW, step="s-1", attempt=1, error="E"),
        row("workflow_run", FLOW),
        row("workflow_run", "workflow flow b"),
        row("workflow_ended", FLOW, status="complete"),
    ]
    assert spans(rows) == [Span(0, 2, is_cut), Span(1, 3), Span(4, 6), Span(5, None)]


def test_run_that_starts_again_without_a_reason_ended_there() -> None:
    assert spans([row("workflow_run", FLOW)] * 2) == [Span(0, 1), Span(1, None)]


def test_restart_of_the_platform_cuts_everything_that_runs() -> None:
    rows = [
        request(),
        batch("a", worker="other"),
        row("workflow_run", FLOW),
        row("sleep", FLOW, step="s-1", milliseconds=1),
        row("restart", "platform"),
        row("wake", FLOW, step="s-1"),
    ]
    assert spans(rows) == [
        *(Span(at, 4, is_cut=True) for at in (0, 1, 2)),
        Span(3, 5),
    ]


def test_data_of_other_shapes_is_no_span() -> None:
    rows = [row("batch", "s", messages=3), row("batch", "s"), row("ack", "s"), row("x", "s")]
    assert spans(rows) == [Span(0, None), Span(1, None)]
