"""`text/event-stream` as workerd reads it (api/eventsource.c++)."""

from __future__ import annotations

import pytest

from emulator.runtime.web.event_stream import EventStream, Message


def one(data: str, kind: str = "message", last_id: str = "") -> Message:
    return Message(data, kind, last_id)


@pytest.mark.parametrize(
    ("chunks", "messages"),
    [
        ([b"data: a\n\n"], [one("a")]),
        ([b"data:a\r\ndata:  b\r\n\r\n"], [one("a\n b")]),
        ([b"data: a\r\r"], [one("a")]),
        ([b"da", b"ta: a", b"\n", b"\ndata: b\n\n"], [one("a"), one("b")]),
        ([b"event: x\ndata: a\n\n"], [one("a", "x")]),
        ([b"event: x\n\ndata: a\n\n"], [one("a")]),  # without data it is none, and over
        (
            [b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"],
            [one("a", last_id="7"), one("b", last_id="7"), one("c")],
        ),
        ([b": comment\n\ndata: a\n\n"], [one("a")]),
        ([b"data\ndata\n\n"], [one("\n")]),
        ([b"data\n\n"], []),
        ([b"\xef\xbb\xbfdata: a\n\n"], [one("a")]),
        ([b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n"], [one("a")]),  # at the start only
        ([b"data: \xc3", b"\xa9\n\n"], [one("é")]),
        ([b"data: a"], []),
        ([b"data: a\n"], []),
        ([b"unknown: a\n\n"], []),
        ([b"data: a\r", b"\ndata: b\n\n"], [one("a"), one("b")]),  # the LF is a line of its own
        ([b"", b"data: a\n\n"], [one("a")]),
    ],
)
def test_messages(chunks: list[bytes], messages: list[Message]) -> None:
    stream = EventStream()
    assert [message for chunk in chunks for message in stream.feed(chunk)] == messages


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"1500", 1500),
        (b"x", None),
        (b"-1", None),
        (b"1.5", None),
        (b"99999999999", None),
        (b"", None),
    ],
)
def test_the_time_until_the_next_try(value: bytes, retry: int | None) -> None:
    stream = EventStream()
    assert stream.feed(b"retry: " + value + b"\n\n") == []
    assert stream.retry == retry


def test_the_last_id_goes_on() -> None:
    stream = EventStream("7")
    assert stream.feed(b"data: a\n\n") == [one("a", last_id="7")]
    assert stream.feed(b"id: 8\n\n") == []
    assert stream.last_id == "8"
