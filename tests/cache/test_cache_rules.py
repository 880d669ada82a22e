"""What is stored and for how long, and what a request gets of it: the pure parts."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.cache.answers import answer
from emulator.cache.rules import http_date, judge
from emulator.cache.store import Entry, Store

SECOND = 1_000_000
NOW = 1_767_225_600 * SECOND
MINUTE = 60


def lifetime(status: int = 200, *, strict: bool = True, asked: Any = (), **headers: str) -> Any:
    """How many seconds a response is stored; why not, if it is not."""
    pairs = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
    verdict = judge(status, pairs, 4, asked, NOW, strict=strict)
    return verdict.refusal or verdict.lifetime / SECOND


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Cache_Control": "max-age=9", "Age": "3"}, 6),
        ({"Cache_Control": "max-age=9, stale-while-revalidate=30"}, 39),
        ({"Cache_Control": "max-age=9, stale-if-error=20", "Age": "3"}, 26),
        ({"Cache_Control": "no-cache, stale-if-error=20"}, 20),
        ({"Cache_Control": "max-age=0, stale-if-error=20, stale-while-revalidate=5"}, 20),
        ({"Cache_Control": "max-age=-1, stale-if-error=20"}, 19),
        ({"Cache_Control": "no-cache"}, "it would have expired"),
        ({"Expires": http_date(NOW + SECOND), "Pragma": "no-cache"}, "it would have expired"),
        ({"Expires": "0", "Cache_Control": "immutable"}, "it would have expired"),
    ],
)
def test_the_simulator_keeps_what_is_stale_for_a_while(
    headers: dict[str, str], expected: object
) -> None:
    """http-cache-semantics; compared with it over 5,000 random responses."""
    assert lifetime(strict=False, **headers) == expected


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Cache_Control": "max-age=1"}, 1),
        ({"Cache_Control": "s-maxage=1, max-age=10"}, 1),
        ({"Cache_Control": "MAX-AGE=7; public"}, 7),
        ({"Cache_Control": 'max-age="7"'}, 7),
        ({"Expires": http_date(NOW + 2 * SECOND)}, 2),
        ({"Expires": http_date(NOW + 2 * SECOND), "Cache_Control": "max-age=9"}, 9),
        ({"Expires": http_date(NOW + 9 * SECOND), "Date": http_date(NOW + 2 * SECOND)}, 7),
        ({"Cache_Control": "max-age=0"}, "it would have expired"),
        ({"Cache_Control": "max-age=x"}, "it would have expired"),
        ({"Expires": "0"}, "it would have expired"),
        ({"Expires": http_date(NOW - SECOND)}, "it would have expired"),
        ({"Cache_Control": "private, max-age=9"}, "Cache-Control: private"),
        ({"Cache_Control": "max-age=9, no-store"}, "Cache-Control: no-store"),
        ({"Cache_Control": "max-age=9", "Set_Cookie": "a=b"}, "Set-Cookie"),
        ({"Cache_Control": "private=Set-Cookie, max-age=9", "Set_Cookie": "a=b"}, 9),
        ({"Cache_Control": 'max-age=9, private="set-cookie"', "Set_Cookie": "a=b"}, 9),
    ],
)
def test_headers_say_how_long(headers: dict[str, str], expected: object, strict: bool) -> None:
    """Rules 1 to 6; the cases are those of miniflare's tests, and more."""
    assert lifetime(strict=strict, **headers) == expected


def test_what_must_be_validated_is_not_stored_in_production() -> None:
    assert lifetime(Cache_Control="no-cache, max-age=9") == "Cache-Control: no-cache"


@pytest.mark.parametrize(
    ("status", "production", "miniflare"),
    [
        (200, 120 * MINUTE, 0),
        (301, 120 * MINUTE, 0),
        (302, 20 * MINUTE, 0),
        (303, 20 * MINUTE, 0),
        (404, 3 * MINUTE, 0),
        (410, 3 * MINUTE, 0),
        (403, 0, 0),
        (500, 0, 0),
    ],
)
def test_without_headers_the_status_says_how_long(
    status: int, production: int, miniflare: int
) -> None:
    """Edge TTL of Cloudflare's documentation; the simulator stores what is stale at once."""
    found = [lifetime(status, strict=strict) for strict in (True, False)]
    assert found == [seconds or "it would have expired" for seconds in (production, miniflare)]


def test_the_simulator_guesses_from_the_last_change_and_keeps_what_never_changes() -> None:
    """http-cache-semantics."""
    day_old = http_date(NOW - 86_400 * SECOND)
    assert lifetime(Last_Modified=day_old, strict=False) == 8_640
    assert lifetime(Cache_Control="immutable", strict=False) == 86_400_000
    assert lifetime(500, Cache_Control="max-age=9", strict=False) == "it would have expired"
    assert lifetime(Cache_Control="proxy-revalidate, max-age=9", strict=False) == (
        "it would have expired"
    )
    assert lifetime(500, Cache_Control="max-age=9") == 9


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        ("max-age=9", "Authorization"),
        ("max-age=9, public", 9),
        ("s-maxage=9", 9),
        ("max-age=9, must-revalidate", 9),
    ],
)
def test_answers_to_somebody_in_particular_are_not_stored(control: str, expected: object) -> None:
    asked = (("authorization", "Bearer x"),)
    assert lifetime(asked=asked, Cache_Control=control) == expected


def test_a_large_response_is_not_stored() -> None:
    headers = (("cache-control", "max-age=9"),)
    largest = 512 * 1024 * 1024
    assert judge(200, headers, largest, (), NOW, strict=True).lifetime == 9 * SECOND
    refusal = judge(200, headers, largest + 1, (), NOW, strict=True).refusal
    assert refusal == "413 Payload Too Large"


def test_the_cookie_is_taken_off_and_what_is_between_two_hops() -> None:
    headers = (
        ("cache-control", "private=Set-Cookie, max-age=9"),
        ("set-cookie", "a=b"),
        ("connection", "close"),
        ("x-kept", "1"),
    )
    production = judge(200, headers, 0, (), NOW, strict=True).headers
    assert production == (headers[0], headers[3])
    miniflare = dict(judge(200, headers, 0, (), NOW, strict=False).headers)
    assert miniflare == {
        "x-kept": "1",
        "cache-control": "max-age=9",
        "date": "Thu, 01 Jan 2026 00:00:00 GMT",
        "age": "0",
    }


# What a request gets.

HEADERS = (
    ("etag", '"thing"'),
    ("last-modified", "Tue, 13 Sep 2022 12:00:00 GMT"),
    ("content-type", "text/plain"),
    ("content-length", "10"),
)


def entry(**changes: Any) -> Entry:
    facts = Entry("u", 200, "OK", HEADERS, b"0123456789", True, NOW, NOW + SECOND)
    return facts._replace(**changes)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("if-none-match", '"thing"', 304),
        ("if-none-match", '   W/"thing"      ', 304),
        ("if-none-match", '"not the thing"', 200),
        ("if-none-match", '"not the thing",    "thing"    , W/"still not the thing"', 304),
        ("if-none-match", "*", 304),
        ("if-none-match", "    *   ", 304),
        ("if-none-match", "thing", 200),
        ("if-modified-since", "Tue, 13 Sep 2022 11:00:00 GMT", 200),
        ("if-modified-since", "Tue, 13 Sep 2022 12:00:00 GMT", 304),
        ("if-modified-since", "Tue, 13 Sep 2022 13:00:00 GMT", 304),
        ("if-modified-since", "13 Sep 2022 13:00:00 GMT", 200),
        ("if-modified-since", "Tue, 99 Sep 2022 13:00:00 GMT", 200),
    ],
)
def test_conditions(name: str, value: str, status: int) -> None:
    """The cases of miniflare's tests of the cache."""
    found = answer(entry(), ((name, value),))
    assert found.status == status
    assert found.body == (b"" if status == 304 else b"0123456789")


@pytest.mark.parametrize(
    ("value", "status", "body", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("BYTES = 8 -  ", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
        ("bytes=-10", 200, b"0123456789", None),
        ("bytes=", 200, b"0123456789", None),
        ("bytes=15-", 416, b"", "bytes */10"),
        ("bytes=4-2", 416, b"", "bytes */10"),
        ("bytes=-", 416, b"", "bytes */10"),
        ("bytes=a-b", 416, b"", "bytes */10"),
        ("lines=1-2", 416, b"", "bytes */10"),
    ],
)
def test_ranges(value: str, status: int, body: bytes, content_range: str | None) -> None:
    """parseRanges of miniflare's range.ts."""
    found = answer(entry(), (("range", value),))
    headers = dict(found.headers)
    assert (found.status, found.body) == (status, body)
    assert headers.get("content-range") == content_range
    if status == 206:
        assert headers["content-length"] == str(len(body))


def test_several_ranges_come_in_parts() -> None:
    found = answer(entry(), (("range", "bytes=1-3,5-6"),))
    brand, _, boundary = dict(found.headers)["content-type"].partition("=")
    assert (found.status, brand) == (206, "multipart/byteranges; boundary")
    assert found.body.decode().split("\r\n") == [
        *(f"--{boundary}", "Content-Type: text/plain", "Content-Range: bytes 1-3/10", "", "123"),
        *(f"--{boundary}", "Content-Type: text/plain", "Content-Range: bytes 5-6/10", "", "56"),
        f"--{boundary}--",
    ]


def test_without_a_length_there_are_no_ranges() -> None:
    found = answer(entry(has_length=False), (("range", "bytes=2-4"),))
    assert (found.status, found.body) == (200, b"0123456789")


def test_an_entry_is_gone_when_its_time_is_over() -> None:
    store = Store()
    store.put("a", entry())
    store.put("b", entry(expires=NOW + 2 * SECOND))
    assert store.get("a", NOW + SECOND - 1) is not None
    assert store.get("a", NOW + SECOND) is None
    assert [one.expires - NOW for one in store.entries(NOW + SECOND)] == [2 * SECOND]
    assert store.delete("a", NOW + SECOND) is False
    assert store.delete("b", NOW + SECOND) is True
