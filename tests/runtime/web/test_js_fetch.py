"""`js.fetch`: texts are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.errors import OutboundDenied
from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.web.abort import AbortController, AbortSignal
from emulator.runtime.web.fetch import fetch
from emulator.runtime.web.request import Request
from emulator.values import UNDEFINED, JsException


def outcome(*arguments):
    async def main():
        return await fetch(*arguments)

    return asyncio.run(main())


def error_of(*arguments):
    with pytest.raises(JsException) as caught:
        outcome(*arguments)
    return str(caught.value)


def test_the_request_reaches_the_host(host):
    init = {"method": "post", "headers": {"X-A": "1"}, "body": "hi", "redirect": "manual"}
    outcome("http://A.b/c d?q#fragment", init)
    assert host.sent == [
        WebRequest(
            "POST",
            "http://a.b/c%20d?q",
            (("x-a", "1"), ("content-type", "text/plain;charset=UTF-8")),
            b"hi",
            "manual",
        )
    ]


def test_the_answer_is_a_response_with_fixed_headers(host):
    host.answer = WebResponse(404, "Nope", (("a", "b"),), b"hello", "http://a/final", True)
    response = outcome("http://a/")
    assert (response.status, response.statusText, response.ok) == (404, "Nope", False)
    assert (response.url, response.redirected) == ("http://a/final", True)
    assert asyncio.run(_text(response)) == "hello"
    with pytest.raises(JsException, match="Can't modify immutable headers"):
        response.headers.set("a", "b")


def test_a_streamed_answer_is_read_as_it_comes(host):
    async def chunks():
        yield b"a"
        yield b"b"

    host.answer = WebResponse(200, "", (), chunks())

    async def main():
        response = await fetch("http://a/")
        reader = response.body.getReader()
        return [(await reader.read())["value"] for _ in range(2)]

    assert asyncio.run(main()) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nope",), "TypeError: Invalid URL: nope"),
        (("ftp://a/",), "TypeError: Fetch API cannot load: ftp://a/"),
        (
            ("http://a/", {"body": "x"}),
            "TypeError: Request with a GET or HEAD method cannot have a body.",
        ),
        (
            (UNDEFINED,),
            "TypeError: Failed to execute 'fetch' on 'ServiceWorkerGlobalScope': "
            "parameter 1 is not of type 'Request or string'.",
        ),
    ],
)
def test_a_wrong_request_rejects_the_promise(arguments, error):
    assert error_of(*arguments) == error


def test_a_used_request_cannot_be_sent():
    request = Request.js_new("http://a", {"method": "POST", "body": "x"})
    asyncio.run(_text(request))
    assert error_of(request) == "TypeError: Cannot reconstruct a Request with a used body."


def test_a_network_failure_is_a_lost_connection(host):
    host.answer = ConnectionRefusedError("refused")
    assert error_of("http://a/") == "Error: Network connection lost."


def test_a_denied_request_says_which_mock_is_missing(host):
    host.answer = OutboundDenied("nothing mocks GET http://a/")
    assert error_of("http://a/") == "Error: nothing mocks GET http://a/"


def test_an_aborted_signal_sends_nothing(host):
    assert error_of("http://a/", {"signal": AbortSignal.abort()}) == (
        "AbortError: The operation was aborted"
    )
    assert error_of("http://a/", {"signal": AbortSignal.abort("mine")}) == "Error: mine"
    assert host.sent == []


def test_a_signal_aborts_a_request_in_flight(host):
    stopped = []

    async def never(request):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.append(True)

    host.answer = never
    controller = AbortController()

    async def main():
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, controller.abort)
        await fetch("http://a/", {"signal": controller.signal})

    with pytest.raises(JsException, match="AbortError: The operation was aborted"):
        asyncio.run(main())
    assert stopped == [True]


async def _text(body):
    return await body.text()
