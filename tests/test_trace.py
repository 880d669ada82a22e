"""The trace: recording, and how each value is written, for people, programs and browsers."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.logs import Log, Logs
from emulator.secrets import Masker
from emulator.trace import Event, Trace, write_offset, written
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    Symbol,
)

if TYPE_CHECKING:
    from pathlib import Path

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
SECOND = 1_000_000
SECRETS = {"API_KEY": "sk-12345678", "PIN": "87654321"}


def make() -> Trace:
    return Trace(START, masker=Masker(SECRETS))


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Queue(HostObject):
    js_class = "WorkerQueue"


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError


# Recording.


def test_events_are_kept_in_order():
    trace = make()
    trace.record(START, "send", "emails", id="a", kind="body", at=1)
    trace.record(START + SECOND, "batch", "emails")
    assert len(trace) == 2
    assert trace[0] == Event(START, "send", "emails", {"id": "a", "kind": "body", "at": 1})
    assert trace[-1].time == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert [event.kind for event in trace] == ["send", "batch"]
    assert trace[1:] == [trace[1]]
    assert repr(trace) == "<Trace: 2 events since 2026-01-01T00:00:00.000000Z>"
    trace.clear()
    assert list(trace) == []


def test_limited_trace_keeps_the_latest_events():
    trace = Trace(START, limit=2)
    for number in range(5):
        trace.record(START, "n", "s", number=number)
    assert [event.data["number"] for event in trace] == [3, 4]


def test_exceptions_and_foreign_objects_are_not_kept_alive():
    class Job:
        pass

    trace = make()
    trace.record(START, "x", "s", error=ValueError("no"), job=Job(), view=memoryview(b"ab"))
    data = trace[0].data
    assert not isinstance(data["error"], BaseException)
    assert not isinstance(data["job"], Job)
    assert written(data, Masker()) == {
        "error": {"$error": {"type": "ValueError", "message": "no"}},
        "job": {"$object": "Job"},
        "view": {"$bytes": {"length": 2, "base64": "YWI="}},
    }


# How values are written.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (-0.0, -0.0),
        (1e300, 1e300),
        (float("nan"), {"$number": "NaN"}),
        (float("inf"), {"$number": "Infinity"}),
        (float("-inf"), {"$number": "-Infinity"}),
        (2**5000, {"$number": hex(2**5000)}),
        ("text", "text"),
        (Colour.RED, "red"),
        (Number.ONE, 1),
        ((1, "a", [None]), [1, "a", [None]]),
        ({"b": 1, "a": {"c": ()}}, {"b": 1, "a": {"c": []}}),
        ({1: 2, None: 3, "$x": 4}, {"1": 2, "null": 3, "$$x": 4}),
        ({"b", "a", "c"}, {"$set": ["a", "b", "c"]}),
        (frozenset({10, 9}), {"$set": [10, 9]}),
        (JsSet(["b", "a"]), {"$set": ["b", "a"]}),
        (JsMap([("b", 1), (2, "a")]), {"$map": [["b", 1], [2, "a"]]}),
        (b"ab", {"$bytes": {"length": 2, "base64": "YWI="}}),
        (bytearray(b"ab"), {"$bytes": {"length": 2, "base64": "YWI="}}),
        (ArrayBuffer(b"ab"), {"$bytes": {"length": 2, "base64": "YWI="}}),
        (
            b"x" * 300,
            {"$bytes": {"length": 300, "base64": base64.b64encode(b"x" * 48).decode()}},
        ),
        (datetime(2026, 1, 2, tzinfo=UTC), {"$date": "2026-01-02T00:00:00.000000Z"}),
        (
            datetime(2026, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))),
            {"$date": "2026-01-02T00:00:00.000000Z"},
        ),
        (datetime(2026, 1, 2, 3, 4, 5, 6), {"$date": "2026-01-02T03:04:05.000006"}),
        (UNDEFINED, {"$undefined": True}),
        (BigInt(-12), {"$bigint": "-12"}),
        (RegExp("a+", "g"), {"$regexp": "/a+/g"}),
        (ValueError("a", 1), {"$error": {"type": "ValueError", "message": "('a', 1)"}}),
        (
            JsException("TypeError", "no"),
            {"$error": {"type": "TypeError", "message": "no"}},
        ),
        (Rude(), {"$error": {"type": "Rude", "message": "(its text cannot be read)"}}),
        (Queue(), {"$object": "WorkerQueue"}),
        (Symbol("s"), {"$object": "Symbol"}),
        (object(), {"$object": "object"}),
        (len, {"$object": "builtin_function_or_method"}),
        (timedelta(1), {"$object": "timedelta"}),
        ("job <object object at 0x7f1cd9fb7d20>", "job <object object at 0x...>"),
        ("mail me at 0xdeadbeef", "mail me at 0xdeadbeef"),
    ],
)
def test_values_are_written(value: object, expected: object):
    result = written(value, Masker())
    assert result == expected
    assert type(result) is type(expected)
    json.dumps(result, allow_nan=False)


def test_values_inside_themselves_are_written():
    loop: list[object] = [1]
    loop.append({"again": loop})
    assert written(loop, Masker()) == [1, {"again": {"$circular": True}}]
    twice = [1]
    assert written([twice, twice], Masker()) == [[1], [1]]


def test_very_deep_values_are_cut():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    text = json.dumps(written(deep, Masker()))
    assert text == "[" * 64 + '{"$deep": true}' + "]" * 64


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("key sk-12345678", "key [secret API_KEY]"),
        (
            {"sk-12345678": [{"a": ("sk-12345678",)}]},
            {"[secret API_KEY]": [{"a": ["[secret API_KEY]"]}]},
        ),
        (87654321, "[secret PIN]"),
        (BigInt(87654321), {"$bigint": "[secret PIN]"}),
        (
            ValueError("bad sk-12345678"),
            {"$error": {"type": "ValueError", "message": "bad [secret API_KEY]"}},
        ),
        (
            b"sk-12345678",
            {"$bytes": {"length": 11, "base64": base64.b64encode(b"[secret API_KEY]").decode()}},
        ),
        (JsMap([("k", "sk-12345678")]), {"$map": [["k", "[secret API_KEY]"]]}),
        ({"Cookie": {"deep": "a=b"}}, {"Cookie": "[secret Cookie]"}),
        (JsMap([("Cookie", 7)]), {"$map": [["Cookie", "[secret Cookie]"]]}),
        (
            [("authorization", "x"), ("a", "b")],
            [["authorization", "[secret Authorization]"], ["a", "b"]],
        ),
        (
            (b"set-cookie", b"x"),
            [
                {"$bytes": {"length": 10, "base64": "c2V0LWNvb2tpZQ=="}},
                "[secret Set-Cookie]",
            ],
        ),
    ],
)
def test_secrets_are_masked_in_nested_values(value: object, expected: object):
    assert written(value, Masker(SECRETS)) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(json_values)
def test_any_value_is_written_in_all_three_ways(value: object):
    trace = make()
    trace.record(START, "kind", "subject", value=value)
    line = json.loads(trace.to_jsonl())
    assert list(line) == ["at", "kind", "subject", "data"]
    # One event is one line unless a text has several: those are indented below it.
    _, event, *rest = trace.render().splitlines()
    assert event.split()[:3] == ["+0:00:00.000", "subject", "kind"]
    assert all(row.startswith("        ") for row in rest)
    assert trace.render().encode("utf-8")


# JSON lines.


def test_jsonl_has_one_object_a_line_in_a_stable_order():
    trace = make()
    trace.record(START + 1, "send", "emails\u2028", z=1, a="größe\n")
    trace.record(START + SECOND, "batch", "sk-12345678")
    assert trace.to_jsonl() == (
        '{"at":"2026-01-01T00:00:00.000001Z","kind":"send","subject":"emails\\u2028",'
        '"data":{"z":1,"a":"gr\\u00f6\\u00dfe\\n"}}\n'
        '{"at":"2026-01-01T00:00:01.000000Z","kind":"batch",'
        '"subject":"[secret API_KEY]","data":{}}\n'
    )


def test_empty_trace_is_written():
    assert make().to_jsonl() == ""
    assert make().render() == "virtual time since 2026-01-01T00:00:00.000000Z\n"


# The timeline.


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, "+0:00:00.000"),
        (5 * SECOND, "+0:00:05.000"),
        (5_001_500, "+0:00:05.001500"),
        (3_723_004_000, "+1:02:03.004"),
        (23 * 3600 * SECOND, "+23:00:00.000"),
        (24 * 3600 * SECOND, "+1d 00:00:00.000"),
        (400 * 86400 * SECOND + 1, "+400d 00:00:00.000001"),
        (-SECOND, "-0:00:01.000"),
    ],
)
def test_offsets_are_written(offset: int, expected: str):
    assert write_offset(offset) == expected


def test_timeline_is_readable_at_a_glance():
    trace = make()
    trace.record(START, "request", "fetch POST /signup", body={"email": "a@example.com"}, n="7")
    trace.record(START + 5 * SECOND, "batch", "emails", id="b-1", size=2)
    trace.record(START + 5 * SECOND, "fault", "batch.emails", fault="batch.emails#1:lose_ack")
    trace.record(
        START + 5_500_000,
        "settled",
        "emails",
        outcome="lost",
        error=ValueError("a\nb"),
        y=UNDEFINED,
    )
    trace.record(START + 90_000 * SECOND, "lost", "emails", z=b"ab", s={2, 1}, at=Colour.RED)
    assert trace.render() == dedent(
        """\
        virtual time since 2026-01-01T00:00:00.000000Z
            +0:00:00.000     fetch POST /signup  request  body={"email": "a@example.com"} n="7"
            +0:00:05.000     emails              batch    id=b-1 size=2
            +0:00:05.000  !  batch.emails        fault    fault=batch.emails#1:lose_ack
            +0:00:05.500  x  emails              settled  outcome=lost y=undefined
                error:
                | ValueError: a
                | b
        +1d 01:00:00.000  x  emails              lost     z=<2 bytes YWI=> s=set [1, 2] at=red
        """
    )


def test_decimal_points_stay_below_one_another():
    trace = make()
    trace.record(START, "a", "s")
    trace.record(START + 1, "b", "s")
    assert trace.render().splitlines()[1:] == [
        "+0:00:00.000        s  a",
        "+0:00:00.000001     s  b",
    ]


def test_timeline_of_the_last_events_says_how_many_came_before():
    trace = make()
    for number in range(3):
        trace.record(START, "n", "s", number=number)
    assert trace.render(last=1).splitlines()[1:] == [
        "... 2 earlier events",
        "+0:00:00.000     s  n  number=2",
    ]
    assert trace.render(last=7) == trace.render()


def test_long_texts_are_shortened():
    trace = make()
    trace.record(START, "a", "s", body="x" * 1000, text="\n".join(f"line {n}" for n in range(100)))
    lines = trace.render().splitlines()
    assert lines[1].endswith("xxx... (1,000 characters)")
    assert len(lines[1]) < 220
    assert lines[2:5] == ["        text:", "        | line 0", "        | line 1"]
    assert "        | ... 78 lines ..." in lines
    assert lines[-1] == "        | line 99"


def test_nothing_in_a_timeline_moves_the_cursor():
    trace = make()
    trace.record(
        START, "log", "s\x1b[2J", text="a\x1b[31mb\u202e", more="c\r\nd\x07\te", bad="\ud800"
    )
    text = trace.render()
    assert "s\\x1b[2J" in text
    assert '"a\\u001b[31mb\\u202e"' in text
    assert "        | c\n        | d\\x07  e" in text
    assert "\\ud800" in text


def test_words_that_could_be_something_else_are_quoted():
    trace = make()
    trace.record(START, "a", "s", a="true", b="1", c="", d="x y", e="ok", f=True)
    assert trace.render().splitlines()[1].endswith(' a="true" b="1" c="" d="x y" e=ok f=true')


def test_timeline_masks_secrets():
    trace = make()
    trace.record(START, "log", "sk-12345678", text="sk-12345678\nAuthorization: Bearer x")
    text = trace.render()
    assert "sk-12345678" not in text
    assert "Bearer x" not in text
    assert trace[0].subject == "sk-12345678"


# The same bytes everywhere.

SCRIPT = """
import sys
from emulator.secrets import Masker
from emulator.trace import Trace
trace = Trace(0, masker=Masker({"B": "secret-b", "A": "secret-a"}))
words = {"alpha", "beta", "gamma", "delta", "secret-a", "secret-b"}
trace.record(5, "log", "w", words=words, nested=[frozenset(words), {"k": {1.5, 0.1, "x"}}])
trace.record(6, "x", "w", error=ValueError(words and "no"), job=object(), f=f"{object()}", g=len)
trace.record(7, "x", "v", number=1e22, small=5e-324, third=1 / 3, text="a\\nsecret-a secret-b")
trace.to_html(sys.argv[1])
sys.stdout.write(trace.render() + trace.to_jsonl())
"""


def test_same_events_give_the_same_bytes_in_any_process(tmp_path: Path):
    outputs = []
    for seed in ("0", "1", "12345"):
        page = tmp_path / f"{seed}.html"
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(page)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        outputs.append(run.stdout + page.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]
    assert b"alpha" in outputs[0]


# Logs.


def test_log_lines_read_as_lines_and_hold_no_secret():
    logs = Logs(Masker(SECRETS))
    line = Log(datetime(2026, 1, 1, tzinfo=UTC), "mail", "info", "hello")
    logs.append(line)
    logs.append(Log(line.at, "mail", "error", "bad sk-12345678"))
    assert logs[0] is line
    assert logs[1].text == "bad [secret API_KEY]"
    assert str(logs) == (
        "2026-01-01T00:00:00.000000Z mail info: hello\n"
        "2026-01-01T00:00:00.000000Z mail error: bad [secret API_KEY]"
    )
    logs.clear()
    assert logs == []
