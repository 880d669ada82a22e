"""The page of a trace as it is written: its policy, its data and what it shows without a script.

What a browser makes of it is in test_trace_browser.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import emulator.trace
from emulator.secrets import Masker
from emulator.trace import Payload, Trace

SECOND = 1_000_000
ASSETS = Path(emulator.trace.__file__).parent
SCRIPT = "".join((ASSETS / name).read_text("utf-8") for name in ("text.js", "timeline.js"))
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<script>alert(1)</script>",
    "<!--<script>",
    "-->",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "\"><b onmouseover='alert(1)'>",
    "</pre></section></main><iframe src=//x.example>",
    "</noscript></style><style>*{display:none}",
    "&lt;b&gt; &#60;",
    "javascript:alert(1)\n<svg/onload=alert(1)>",
    "__proto__",
    "\x00\x1b[31m\u2028\u2029\u202e\ud800\ufffe\U0001f600",
]


class Reader(HTMLParser):
    """Collects a page's tags with their attributes, and the text below each kind of tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def written(trace: Trace, folder: Path) -> str:
    trace.to_html(folder / "trace.html")
    return (folder / "trace.html").read_bytes().decode("utf-8")


def chart(trace: Trace, folder: Path) -> dict[str, Any]:
    """The data that the page has for its script."""
    found: dict[str, Any] = json.loads(Reader(written(trace, folder)).texts["script"][0])
    return found


def small() -> Trace:
    trace = Trace(0)
    trace.record(0, "send", "queue emails", id="a", by="test")
    trace.record(0, "fault", "batch.emails", fault="batch.emails#1:lose_ack")
    trace.record(SECOND, "lost", "queue emails", id="a", attempt=1)
    return trace


# The policy.


def test_policy_allows_one_script_and_one_style_by_their_hashes(tmp_path: Path) -> None:
    reader = Reader(written(small(), tmp_path))
    (policy,) = (attrs["content"] for _, attrs in reader.tags if "http-equiv" in attrs)
    data, script = reader.texts["script"]
    (style,) = reader.texts["style"]

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy == (
        f"default-src 'none'; script-src {hashed(script)}; style-src {hashed(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )
    assert [attrs for tag, attrs in reader.tags if tag == "script"] == [
        {"type": "application/json"},
        {},
    ]
    assert json.loads(data)["start"] == "1970-01-01T00:00:00.000000Z"
    assert script.strip() == f"'use strict';\n{{\n{SCRIPT}}}"
    assert style.strip() == (ASSETS / "timeline.css").read_text("utf-8").strip()


def test_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    text = written(small(), tmp_path)
    assert "://" not in text
    assert not re.search(r"@import|url\(|\b(?:src|href)\s*=", text)


def test_script_sets_nothing_but_text() -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|setTimeout"
    assert not re.search(forbidden, SCRIPT)
    assert not re.search(r"fetch\(|XMLHttp|WebSocket|sendBeacon|import\(|localStorage", SCRIPT)


def test_script_and_style_stay_small() -> None:
    assert len(SCRIPT.encode()) < 30_000
    assert len((ASSETS / "timeline.css").read_bytes()) < 10_000


# The data.


@pytest.mark.parametrize("payload", HOSTILE)
def test_hostile_payload_stays_data(payload: str, tmp_path: Path) -> None:
    trace = Trace(0)
    trace.record(0, "log", payload, text=payload, more={payload: [payload]}, b=f"a\n{payload}")
    trace.record(0, payload, "other", body=Payload("text", payload.encode("utf-8", "replace")))
    text = written(trace, tmp_path)
    reader = Reader(text)
    harmless = Reader(written(small(), tmp_path))
    assert [each for each in reader.tags if each[0] not in "bi"] == [
        each for each in harmless.tags if each[0] not in "bi"
    ]
    assert not re.search("[\x00\x1b\u2028\u2029\u202e\ud800]", text)
    data = json.loads(reader.texts["script"][0])
    assert reader.texts["script"][0].isascii()
    assert not set("<>&") & set(reader.texts["script"][0])
    (_, _, _, _, _, first), (_, _, kind, _, _, second) = data["events"]
    assert first == {"text": payload, "more": {payload: [payload]}, "b": f"a\n{payload}"}
    assert data["lanes"][0][0] == kind == payload
    assert second["body"] == payload.encode("utf-8", "replace").decode()


def test_secrets_are_masked(tmp_path: Path) -> None:
    trace = Trace(0, masker=Masker({"API_KEY": "sk-12345678"}))
    body = json.dumps({"key": "sk-12345678", "Authorization": "Bearer abc"}).encode()
    trace.record(0, "send", "queue sk-12345678", body=Payload("json", body), key="sk-12345678")
    text = written(trace, tmp_path)
    assert "sk-12345678" not in text
    assert "Bearer" not in text
    assert chart(trace, tmp_path)["events"][0][5] == {
        "key": "[secret API_KEY]",
        "body": {"key": "[secret API_KEY]", "Authorization": "[secret Authorization]"},
    }


def test_numbers_are_not_rounded_by_javascript(tmp_path: Path) -> None:
    trace = Trace(0)
    trace.record(0, "a", "s", small=2**53 - 1, large=[2**53], deep={"x": -(2**60)}, flag=True)
    assert chart(trace, tmp_path)["events"][0][5] == {
        "small": 2**53 - 1,
        "large": [{"$number": "9007199254740992"}],
        "deep": {"x": {"$number": "-1152921504606846976"}},
        "flag": True,
    }


def test_lanes_are_grouped_and_batches_stand_below_their_queue(tmp_path: Path) -> None:
    trace = Trace(0)
    for kind, subject in (
        ("request", "request GET /"),
        ("send", "queue b"),
        ("batch", "queue b #2"),
        ("send", "queue a"),
        ("batch", "queue a #1"),
        ("workflow_created", "workflow w 1"),
        ("fault", "batch.b"),
        ("query", "d1 DB"),
        ("batch", "queue b #10"),
        ("request", "request GET / #2"),
        ("crash", "worker main"),
        ("scheduled", "scheduled 0 * * * *"),
        ("batch", "queue alone #1"),
        ("restart", "platform"),
        ("x", "something else"),
    ):
        trace.record(0, kind, subject)
    assert chart(trace, tmp_path)["lanes"] == [
        ["batch.b", "Faults", 0],
        ["request GET /", "Requests", 0],
        ["request GET / #2", "Requests", 0],
        ["scheduled 0 * * * *", "Requests", 0],
        ["queue b", "Queues", 0],
        ["queue b #2", "Queues", 1],
        ["queue b #10", "Queues", 1],
        ["queue a", "Queues", 0],
        ["queue a #1", "Queues", 1],
        ["queue alone", "Queues", 0],
        ["queue alone #1", "Queues", 1],
        ["workflow w 1", "Workflows", 0],
        ["d1 DB", "Storage", 0],
        ["worker main", "Workers", 0],
        ["platform", "Workers", 0],
        ["something else", "Other", 0],
    ]


def test_events_have_time_lane_meaning_and_a_label(tmp_path: Path) -> None:
    trace = Trace(5)
    trace.record(5, "send", "queue q", id="f56f0c8a413c9c1ba4eba2f2bd9af3ba", by="test")
    trace.record(5, "batch", "queue q #1", worker="w", messages=["a#1", "b#1"])
    trace.record(6, "request_out", "queue q #1", method="POST", url="https://a.example/b?c=d")
    trace.record(7, "response_in", "queue q #1", url="https://a.example/b?c=d", status=503)
    trace.record(8, "purge", "queue q", messages=1)
    trace.record(9, "log", "queue q", level="log", text="x" * 1000)
    events = chart(trace, tmp_path)["events"]
    assert [event[:5] for event in events] == [
        [0, 0, "send", "", "f56f0c"],
        [0, 1, "batch", "", "2 messages"],
        [1, 1, "request_out", "", "POST a.example/b?c=d"],
        [2, 1, "response_in", "bad", "503"],
        [3, 0, "purge", "", "1 message"],
        [4, 0, "log", "", "x" * 60],
    ]


def test_empty_trace_has_a_page(tmp_path: Path) -> None:
    assert chart(Trace(0), tmp_path) == {
        "start": "1970-01-01T00:00:00.000000Z",
        "lanes": [],
        "events": [],
        "spans": [],
    }


# The text.


def test_text_is_the_timeline_with_its_marks(tmp_path: Path) -> None:
    trace = small()
    trace.record(SECOND, "log", "queue emails", level="log", text="a\n<b>")
    reader = Reader(written(trace, tmp_path))
    assert "".join(reader.texts["p"]) == (
        "Virtual time since 1970-01-01T00:00:00.000000Z: 4 events, 1 fault, 1 loss"
    )
    lines = trace.render().splitlines()
    assert reader.texts["b"] == [lines[2]]
    assert reader.texts["i"] == [lines[3]]
    text = re.search(
        r'<pre class="text" tabindex="0">(.*)</pre>', written(trace, tmp_path), re.DOTALL
    )
    assert text is not None
    plain = re.sub(r"</?[bi]>", "", text[1]).replace("&lt;", "<").replace("&gt;", ">")
    assert plain.replace("&quot;", '"') == trace.render()


def test_text_has_no_payloads(tmp_path: Path) -> None:
    trace = Trace(0)
    trace.record(0, "send", "queue q", id="a", by="test", body=Payload("text", b"a long letter"))
    reader = Reader(written(trace, tmp_path))
    assert "a long letter" in reader.texts["script"][0]
    assert "a long letter" not in "".join(reader.texts["pre"])
    assert "a long letter" not in trace.render()


# Colours.


def colours(scheme: int) -> dict[str, str]:
    """The variables of the light or the dark scheme."""
    style = (ASSETS / "timeline.css").read_text("utf-8")
    return dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]+)", re.findall(r":root \{(.*?)\}", style, re.S)[scheme])
    )


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((text, "ground") for text in ("text", "faint", "done", "bad", "lost", "fault")),
        *((text, "panel") for text in ("text", "faint", "bad", "lost", "fault")),
        *(("text", ground) for ground in ("bar", "cut", "fault-ground", "lost-ground")),
        *(("fault", "fault-ground"), ("lost", "lost-ground"), ("ground", "focus")),
        *(("faint", "fault-ground"), ("faint", "lost-ground"), ("faint", "band")),
    ],
)
def test_text_can_be_read_on_its_ground(text: str, ground: str, scheme: int) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5."""
    table = colours(scheme)
    dark, light = sorted(luminance(table[name]) for name in (text, ground))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_both_schemes_have_all_colours() -> None:
    light, dark = colours(0), colours(1)
    assert list(light) == list(dark)
    assert all(light[name] != dark[name] for name in light)


def test_order_of_events_is_kept(tmp_path: Path) -> None:
    trace = Trace(0)
    for number in range(50):
        trace.record(number // 7, "n", f"s{number % 3}", number=number)
    numbers = [event[5]["number"] for event in chart(trace, tmp_path)["events"]]
    assert all(later - earlier == 1 for earlier, later in pairwise(numbers))
