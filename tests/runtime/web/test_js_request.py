"""`js.Request`: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.abort import AbortController, AbortSignal
from emulator.runtime.web.request import Request
from emulator.runtime.web.url import URL
from emulator.values import UNDEFINED, JsException

REDIRECT = (
    'Invalid redirect value, must be one of "follow" or "manual" ("error" won\'t be implemented '
    'since it does not make sense at the edge; use "manual" and check the response status code).'
)


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    return str(caught.value)


def test_properties_of_a_new_request():
    request = Request.js_new("http://a.b/c?d#e")
    names = ("method", "url", "redirect", "integrity", "keepalive", "body", "bodyUsed", "fetcher")
    assert {name: getattr(request, name) for name in names} == {
        "method": "GET",
        "url": "http://a.b/c?d#e",
        "redirect": "follow",
        "integrity": "",
        "keepalive": False,
        "body": None,
        "bodyUsed": False,
        "fetcher": None,
    }
    assert request.cf is UNDEFINED
    assert request.cache is UNDEFINED
    assert isinstance(request.signal, AbortSignal)


def test_the_url_is_normalised():
    assert Request.js_new("HTTP://EXAMPLE.com:80/a/../b?x=ä y#fr").url == (
        "http://example.com/b?x=%C3%A4%20y#fr"
    )
    assert Request.js_new(URL.js_new("http://a/b")).url == "http://a/b"


@pytest.mark.parametrize(
    ("resource", "shown"), [("/x", "/x"), (UNDEFINED, "undefined"), ({}, "[object Object]")]
)
def test_an_invalid_url_is_refused(resource, shown):
    assert error_of(lambda: Request.js_new(resource)) == f"TypeError: Invalid URL: {shown}"


@pytest.mark.parametrize("method", ["get", "POST", "patch", "PROPFIND", "propfind", "purge"])
def test_methods_are_upper_case(method):
    assert Request.js_new("http://a", {"method": method}).method == method.upper()


@pytest.mark.parametrize("method", ["a b", "CONNECT", "FOO", "", None, "LINK"])
def test_unknown_methods_are_refused(method):
    shown = "null" if method is None else method
    assert error_of(lambda: Request.js_new("http://a", {"method": method})) == (
        f"TypeError: Invalid HTTP method string: {shown}"
    )


def test_without_the_flag_only_the_old_methods_may_be_lower_case(host):
    """`upper_case_all_http_methods`."""
    host.flags = host.flags - {"upper_case_all_http_methods"}
    assert Request.js_new("http://a", {"method": "put"}).method == "PUT"
    assert error_of(lambda: Request.js_new("http://a", {"method": "patch"})) == (
        "TypeError: Invalid HTTP method string: patch"
    )


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("body", ["x", ""])
def test_get_and_head_have_no_body(method, body):
    assert error_of(lambda: Request.js_new("http://a", {"method": method, "body": body})) == (
        "TypeError: Request with a GET or HEAD method cannot have a body."
    )
    assert Request.js_new("http://a", {"method": method, "body": None}).body is None


@pytest.mark.parametrize(
    ("init", "error"),
    [
        ({"redirect": "error"}, REDIRECT),
        ({"redirect": "zzz"}, REDIRECT),
        ({"cache": "reload"}, "Unsupported cache mode: reload"),
        (
            {"integrity": "sha256-x"},
            "Subrequest integrity checking is not implemented. "
            "The integrity option must be either undefined or an empty string.",
        ),
        (
            {"signal": 5},
            "Incorrect type for the 'signal' field on 'RequestInitializerDict': "
            "the provided value is not of type 'AbortSignal'.",
        ),
        (
            {"headers": None},
            "Incorrect type for the 'headers' field on 'RequestInitializerDict': "
            "the provided value is not of type 'Headers or Sequence or object'.",
        ),
        (
            5,
            "Failed to construct 'Request': constructor parameter 2 is not of type "
            "'RequestInitializerDict or Request'.",
        ),
    ],
)
def test_wrong_options_are_refused(init, error):
    assert error_of(lambda: Request.js_new("http://a", init)) == f"TypeError: {error}"


def test_right_options_are_taken():
    controller = AbortController()
    init = {"redirect": "manual", "cache": "no-store", "cf": {"cacheTtl": 5}, "method": "POST"}
    request = Request.js_new("http://a", {**init, "body": "x", "signal": controller.signal})
    assert (request.redirect, request.cache, request.cf) == ("manual", "no-store", {"cacheTtl": 5})
    assert request.signal is controller.signal
    assert list(request.headers) == [["content-type", "text/plain;charset=UTF-8"]]


def post(**more):
    return Request.js_new(
        "http://a", {"method": "POST", "body": "x", "headers": {"q": "1"}, **more}
    )


def test_a_request_made_of_another_takes_its_body():
    first = post()
    second = Request.js_new(first, {"headers": {"z": "2"}})
    assert (first.bodyUsed, second.method, list(second.headers)) == (True, "POST", [["z", "2"]])
    assert asyncio.run(_text(second)) == "x"


def test_a_request_serves_as_options():
    second = Request.js_new("http://b/c", post())
    assert (second.url, second.method) == ("http://b/c", "POST")
    assert list(second.headers) == [["content-type", "text/plain;charset=UTF-8"], ["q", "1"]]
    assert asyncio.run(_text(second)) == "x"


def test_a_request_with_a_used_body_needs_a_new_one():
    first = post()
    asyncio.run(_text(first))
    assert error_of(lambda: Request.js_new(first)) == (
        "TypeError: Cannot reconstruct a Request with a used body."
    )
    assert asyncio.run(_text(Request.js_new(first, {"body": "y"}))) == "y"


def test_a_clone_is_a_request_of_its_own():
    first = post()
    second = first.clone()
    second.headers.set("q", "2")
    assert (first.headers.get("q"), asyncio.run(_text(first)), asyncio.run(_text(second))) == (
        "1",
        "x",
        "x",
    )


async def _text(request):
    return await request.text()
