"""Requests and responses on their way in and out of user code (python-api.md 1.2)."""

import asyncio

import pytest

from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.proxies import wrap
from emulator.runtime.sdk import Response as SdkResponse
from emulator.runtime.web.boundary import request_from_web, response_from_web, response_to_web
from emulator.runtime.web.response import Response
from emulator.runtime.web.sources import IteratorSource
from emulator.runtime.web.streams import ReadableStream
from emulator.values import JsException

NOT_A_RESPONSE = "TypeError: Incorrect type for Promise: the Promise did not resolve to 'Response'."


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    return str(caught.value)


async def collect(body):
    return [chunk async for chunk in body]


def test_a_request_comes_in_with_fixed_headers_and_manual_redirects():
    request = request_from_web(WebRequest("PUT", "http://a/b?c", (("x", "1"), ("x", "2")), b"body"))
    assert (request.method, request.url, request.redirect) == ("PUT", "http://a/b?c", "manual")
    assert request.headers.get("X") == "1, 2"
    assert error_of(lambda: request.headers.set("a", "b")) == (
        "TypeError: Can't modify immutable headers."
    )
    assert asyncio.run(_text(request)) == "body"


def test_a_request_says_how_long_its_body_is():
    """workerd, `global-scope.c++`: another Worker's `fetch` has not said it."""

    def length(body, *headers):
        request = request_from_web(WebRequest("POST", "http://a/", headers, body))
        return request.headers.get("content-length"), request.headers.get("transfer-encoding")

    async def chunks():
        yield b"a"

    assert length(b"body") == ("4", None)
    assert length(b"") == (None, None)
    assert length(chunks()) == (None, "chunked")
    assert length(b"body", ("transfer-encoding", "chunked")) == (None, "chunked")


@pytest.mark.parametrize(("method", "has_body"), [("GET", False), ("HEAD", False), ("POST", True)])
def test_a_request_without_a_body_has_no_stream(method, has_body):
    request = request_from_web(WebRequest(method, "http://a/", (), b""))
    assert (request.body is not None) is has_body


def test_a_streamed_request_is_read_as_it_comes():
    async def chunks():
        yield b"a"
        yield b"b"

    async def main():
        return await request_from_web(WebRequest("POST", "http://a/", (), chunks())).text()

    assert asyncio.run(main()) == "ab"


@pytest.mark.parametrize(
    "answer",
    [
        lambda: SdkResponse("ok", headers={"X-A": "1"}),
        lambda: wrap(Response.js_new("ok", {"headers": {"X-A": "1"}})),
        lambda: Response.js_new("ok", {"headers": {"X-A": "1"}}),
    ],
)
def test_responses_of_every_kind_go_out(answer):
    found = response_to_web(answer())
    assert found == WebResponse(
        200, "OK", (("x-a", "1"), ("content-type", "text/plain;charset=UTF-8")), b"ok"
    )


def test_a_redirect_goes_out():
    found = response_to_web(SdkResponse.redirect("http://a/b"))
    assert (found.status, found.headers, found.body) == (302, (("location", "http://a/b"),), b"")


@pytest.mark.parametrize(
    "value",
    [None, "text", {"a": 1}, 5, [], wrap({"status": 200}), SdkResponse("x").clone(), SdkResponse],
)
def test_anything_else_is_no_response(value):
    """`Response(...).clone()` is `pyodide.http.FetchResponse`, which is none."""
    assert error_of(lambda: response_to_web(value)) == NOT_A_RESPONSE


def test_a_response_can_be_returned_once():
    response = SdkResponse("x")
    response_to_web(response)
    assert error_of(lambda: response_to_web(response)) == (
        "TypeError: Body has already been used. It can only be used once. "
        "Use tee() first if you need to read it twice."
    )
    empty = SdkResponse(None, status=204)
    assert response_to_web(empty) == response_to_web(empty)


def test_a_stream_goes_out_chunk_by_chunk():
    async def main():
        stream = ReadableStream.from_([b"a", b"b"])
        found = response_to_web(Response.js_new(stream))
        assert stream.locked
        return await collect(found.body)

    assert asyncio.run(main()) == [b"a", b"b"]


def test_a_stream_of_texts_fails_on_its_way():
    async def main():
        return await collect(response_to_web(Response.js_new(ReadableStream.from_(["a"]))).body)

    with pytest.raises(JsException, match="This ReadableStream did not return bytes"):
        asyncio.run(main())


def test_a_client_that_goes_away_cancels_the_stream():
    async def main():
        reasons = []
        stream = ReadableStream.js_new(
            {"pull": lambda controller: controller.enqueue(b"a"), "cancel": reasons.append}
        )
        body = response_to_web(Response.js_new(stream)).body
        assert await anext(body) == b"a"
        await body.aclose()
        return len(reasons)

    assert asyncio.run(main()) == 1


def test_a_fetched_response_passes_its_iterator_through():
    async def main():
        closed = []

        async def chunks():
            try:
                yield b"a"
                yield b"b"
            finally:
                closed.append(True)

        fetched = response_from_web(WebResponse(200, "", (), chunks()))
        assert isinstance(fetched.body._source, IteratorSource)
        body = response_to_web(fetched).body
        assert await anext(body) == b"a"
        await body.aclose()
        return closed

    assert asyncio.run(main()) == [True]


@pytest.mark.parametrize("status", [101, 204, 304])
def test_a_response_with_a_null_body_status_has_no_stream(status):
    assert response_from_web(WebResponse(status, "", (), b"")).body is None


async def _text(body):
    return await body.text()


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ((), None),
        ((("content-length", "3"),), 3),
        ((("content-length", "no"),), None),
        ((("content-length", "3"), ("content-encoding", "gzip")), None),
    ],
)
def test_a_streamed_body_has_the_length_that_its_headers_tell(headers, length):
    """What R2 takes as the length of a stream."""

    async def chunks():
        yield b"abc"

    async def main():
        request = request_from_web(WebRequest("POST", "http://a/", headers, chunks()))
        response = response_from_web(WebResponse(200, "OK", headers, chunks()))
        assert (request.body.length, response.body.length) == (length, length)
        whole = request_from_web(WebRequest("POST", "http://a/", (), b"abcd"))
        assert whole.body.length == 4

    asyncio.run(main())
