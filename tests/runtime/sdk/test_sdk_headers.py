"""Headers as Python sees them (python-api.md 1.10)."""

from collections.abc import Mapping
from http.client import HTTPMessage

from emulator.runtime.host import WebRequest
from emulator.runtime.sdk import Request, Response
from emulator.runtime.web.boundary import request_from_web

PAIRS = (
    ("x", "1"),
    ("set-cookie", "a=1; Path=/"),
    ("x", "2"),
    ("set-cookie", "b=2, c"),
    ("host", " h "),
)


def headers():
    return Request(request_from_web(WebRequest("GET", "http://a/", PAIRS, b""))).headers


def test_case_does_not_matter_and_a_missing_header_is_none():
    found = headers()
    assert isinstance(found, HTTPMessage)
    assert isinstance(found, Mapping)
    assert (found["Host"], found["HOST"], found["Missing"]) == ("h", "h", None)
    assert (found.get("missing"), found.get("missing", "d")) == (None, "d")
    assert "X" in found
    assert "missing" not in found


def test_duplicates_are_joined_but_cookies_are_not():
    """With `python_request_headers_preserve_commas`."""
    found = headers()
    assert found["x"] == "1, 2"
    assert found.get_all("set-cookie") == ["a=1; Path=/", "b=2, c"]
    assert found.items() == [
        ("Set-Cookie", "a=1; Path=/"),
        ("Set-Cookie", "b=2, c"),
        ("host", "h"),
        ("x", "1, 2"),
    ]


def test_without_the_flag_names_stay_in_lower_case_and_order(host):
    host.flags = host.flags - {"python_request_headers_preserve_commas"}
    assert headers().items() == [
        ("host", "h"),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2, c"),
        ("x", "1, 2"),
    ]


def test_changing_them_changes_nothing_else():
    response = Response("x", headers={"a": "b"})
    response.headers["a"] = "c"
    del response.headers["content-type"]
    assert response.headers.get_all("a") == ["b"]
    assert response.headers["content-type"] == "text/plain;charset=UTF-8"


def test_a_copy_behaves_like_one_filled_by_hand():
    """A contract with `email.message.Message`, whose list of headers is set at once."""
    by_hand = type(headers())()
    for name, value in headers().items():
        by_hand[name] = value
    assert by_hand.items() == headers().items()
    assert by_hand.as_string() == headers().as_string()
    assert len(by_hand) == len(headers())
