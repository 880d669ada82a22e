"""`js.Response`: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.blob import Blob
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.url_parameters import URLSearchParams
from emulator.runtime.web.websocket import WebSocket
from emulator.values import UNDEFINED, ArrayBuffer, JsException, ProxiedDict, TypedArray

STATUS = "Responses may only be constructed with status codes in the range 200 to 599, inclusive."
NULL_BODY = "Response with null body status (101, 204, 205, or 304) cannot have a body."


def run(awaitable):
    async def main():
        return await awaitable

    return asyncio.run(main())


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    return caught.value.name, caught.value.message


@pytest.mark.parametrize(
    ("body", "text", "content_type"),
    [
        ("é", "é", "text/plain;charset=UTF-8"),
        (b"x", "x", None),
        (ArrayBuffer(b"xyz"), "xyz", None),
        (TypedArray("Uint16Array", ArrayBuffer(b"A\0B\0")), "A\0B\0", None),
        (Blob(b"x", "text/x"), "x", "text/x"),
        (Blob(b"x"), "x", None),
        (URLSearchParams([("a", "1")]), "a=1", "application/x-www-form-urlencoded;charset=UTF-8"),
        ({"a": 1}, "[object Object]", "text/plain;charset=UTF-8"),
        (5, "5", "text/plain;charset=UTF-8"),
        (True, "true", "text/plain;charset=UTF-8"),
        (ProxiedDict(a=1), "{'a': 1}", "text/plain;charset=UTF-8"),
        (ReadableStream.of_bytes(b"s"), "s", None),
        ([b"a", b"b"], "ab", None),
    ],
)
def test_every_kind_of_body_is_read(body, text, content_type):
    async def main():
        response = Response.js_new(body)
        assert response.headers.get("content-type") == content_type
        assert response.bodyUsed is False
        found = await response.text()
        assert response.bodyUsed is True
        return found

    assert asyncio.run(main()) == text


@pytest.mark.parametrize("body", [None, UNDEFINED])
def test_without_a_body_there_is_no_stream_and_no_type(body):
    response = Response.js_new(body)
    assert response.body is None
    assert list(response.headers) == []
    assert (run(response.text()), run(response.text()), response.bodyUsed) == ("", "", False)


def test_an_empty_text_is_a_body():
    response = Response.js_new("")
    assert isinstance(response.body, ReadableStream)


def test_a_list_of_other_things_fails_when_it_is_read():
    async def main():
        await Response.js_new([1, 2]).text()

    with pytest.raises(JsException, match="This ReadableStream did not return bytes"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "expected"), [("404", 404), (404.7, 404), (200, 200), (599, 599)]
)
def test_the_status_becomes_a_number(status, expected):
    assert Response.js_new("x", {"status": status}).status == expected


@pytest.mark.parametrize("status", [199, 600, 0, 101, "abc", None, 65736, float("inf")])
def test_a_status_out_of_range_is_refused(status):
    assert error_of(lambda: Response.js_new("x", {"status": status})) == ("RangeError", STATUS)


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_null_body_status_allows_no_body(status):
    init = {"status": status}
    assert error_of(lambda: Response.js_new("x", init)) == ("TypeError", NULL_BODY)
    assert error_of(lambda: Response.js_new(ReadableStream(), init)) == ("TypeError", NULL_BODY)
    assert Response.js_new(None, init).status == status
    assert Response.js_new("", init).body is None


def test_undefined_options_are_no_options():
    init = {"status": UNDEFINED, "statusText": UNDEFINED, "headers": UNDEFINED}
    assert Response.js_new(None, init).status == 200
    assert Response.js_new("x", None).status == 200


@pytest.mark.parametrize("init", ["y", 5])
def test_options_are_an_object(init):
    assert error_of(lambda: Response.js_new("x", init))[1] == (
        "Failed to construct 'Response': constructor parameter 2 is not of type "
        "'InitializerDict or Response'."
    )


def test_a_python_dict_works_as_options_unless_it_has_headers():
    """python-api.md §3: `Response.new(body, {"status": 405})`."""
    assert Response.js_new("x", ProxiedDict(status=405)).status == 405
    nested = ProxiedDict(headers=ProxiedDict(a="b"))
    assert error_of(lambda: Response.js_new("x", nested))[0] == "TypeError"


@pytest.mark.parametrize("headers", [5, "zz", None])
def test_headers_of_the_wrong_type_are_refused(headers):
    assert error_of(lambda: Response.js_new("x", {"headers": headers}))[1] == (
        "Incorrect type for the 'headers' field on 'InitializerDict': the provided value is not of "
        "type 'Headers or Sequence or object'."
    )


def test_a_given_content_type_is_kept():
    response = Response.js_new("x", {"headers": {"Content-Type": "q/z"}})
    assert list(response.headers) == [["content-type", "q/z"]]


def test_the_headers_given_are_copied():
    given = Headers.js_new({"a": "b"})
    response = Response.js_new("x", {"headers": given})
    given.set("a", "c")
    assert response.headers.get("a") == "b"


def test_a_status_text_is_one_line():
    assert Response.js_new("x", {"statusText": "é"}).statusText == "é"
    assert error_of(lambda: Response.js_new("x", {"statusText": "a\nb"})) == (
        "TypeError",
        "Invalid statusText",
    )


def test_a_response_serves_as_options():
    first = Response.js_new("x", {"status": 404, "headers": {"a": "b"}})
    second = Response.js_new("y", first)
    assert (second.status, run(second.text())) == (404, "y")
    assert list(second.headers) == [["a", "b"], ["content-type", "text/plain;charset=UTF-8"]]


def test_json_makes_and_reads():
    response = Response.json({"a": [1, 2]})
    assert list(response.headers) == [["content-type", "application/json"]]
    assert run(response.json()) == {"a": [1, 2]}
    typed = Response.json({}, {"headers": {"content-type": "x/y"}})
    assert typed.headers.get("content-type") == "x/y"
    assert error_of(lambda: Response.json({}, {"status": 204})) == ("TypeError", NULL_BODY)


def test_redirect_has_a_normalised_location_and_no_body():
    response = Response.redirect("http://a.b/c d?x=é")
    assert (response.status, response.body) == (302, None)
    assert list(response.headers) == [["location", "http://a.b/c%20d?x=%C3%A9"]]
    assert Response.redirect("http://a/", "301").status == 301
    with pytest.raises(JsException, match="Can't modify immutable headers"):
        response.headers.set("a", "b")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("http://a/", 200),
            (
                "RangeError",
                "200 is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.",
            ),
        ),
        (("/x",), ("TypeError", "Unable to parse URL: /x")),
        (
            (),
            (
                "TypeError",
                "Failed to execute 'redirect' on 'Response': parameter 1 is not of type 'string'.",
            ),
        ),
    ],
)
def test_redirect_refuses_other_statuses_and_relative_urls(arguments, error):
    assert error_of(lambda: Response.redirect(*arguments)) == error


def test_error_is_a_response_of_its_own_type():
    assert (Response.error().status, Response.error().type) == (0, "error")


def test_a_websocket_goes_with_status_101_only():
    response = Response.js_new(None, {"status": 101, "webSocket": WebSocket(None)})
    assert (response.status, response.webSocket.js_class) == (101, "WebSocket")
    assert error_of(lambda: Response.js_new(None, {"webSocket": WebSocket(None)})) == (
        "RangeError",
        "Responses with a WebSocket must have status code 101.",
    )
    assert error_of(lambda: Response.js_new(None, {"status": 101, "webSocket": 5}))[1] == (
        "Incorrect type for the 'webSocket' field on 'InitializerDict': "
        "the provided value is not of type 'WebSocket'."
    )
    assert error_of(response.clone)[1] == "Cannot clone a response to a WebSocket handshake."


def test_encode_body_is_checked():
    assert Response.js_new("x", {"encodeBody": "manual"}).status == 200
    assert error_of(lambda: Response.js_new("x", {"encodeBody": "zz"}))[1] == (
        "encodeBody: unexpected value: zz"
    )


def test_properties_of_a_new_response():
    response = Response.js_new("x")
    assert (response.type, response.url, response.redirected) == ("default", "", False)
    assert (response.ok, response.statusText, response.webSocket) == (True, "OK", None)
    assert response.cf is UNDEFINED
    assert response.body is response.body
