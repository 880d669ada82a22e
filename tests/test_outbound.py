"""Requests of Worker code to the outside: mocks, refusals, real ones, faults."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import threading
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import respx
from worker_files import handler, worker

from emulator import Emulator, InsideSimulation, WorkerCrashed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://api.example/things"
ASK = f"""
answer = await fetch("{URL}")
return Response(await answer.text(), status=answer.status)
"""
# Answers with the error's text.
TRY = f"""
    try:
        answer = await fetch("{URL}")
    except Exception as error:
        return Response(f"{{type(error).__name__}}: {{error}}")
    return Response(await answer.text(), status=answer.status)
"""


def clock(emulator: Emulator) -> float:
    """Seconds of virtual time since the start."""
    return (emulator.now - START).total_seconds()


def codes(emulator: Emulator) -> list[str]:
    return [finding.code for finding in emulator.findings]


def kinds(emulator: Emulator) -> list[str]:
    return [event.kind for event in emulator.trace if event.kind.endswith(("_out", "_in"))]


# -- mocks -----------------------------------------------------------------------------------------


async def test_a_route_of_the_fixture_answers(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    route = respx_mock.get(URL).respond(201, text="mocked")
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, response.text) == (201, "mocked")
        assert route.call_count == 1
        assert codes(emulator) == []
        assert kinds(emulator) == ["request_out", "response_in"]


@respx.mock
async def test_a_route_of_the_decorator_answers(tmp_path: Path) -> None:
    respx.get(URL).respond(text="mocked")
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        assert (await emulator.fetch("/")).text == "mocked"


@pytest.mark.parametrize("using", ["httpcore", "httpx"])
@pytest.mark.parametrize("early", [True, False])
async def test_a_route_of_a_router_answers(tmp_path: Path, using: str, early: bool) -> None:
    """Made before the emulator, or only when its Worker has run already."""
    router = respx.MockRouter(using=using, assert_all_called=False)
    router.get(URL).respond(text="mocked")
    config = handler(tmp_path, f"if path == '/ready': return Response('ready')\n{ASK}")
    if early:
        with router:
            async with Emulator(config) as emulator:
                assert (await emulator.fetch("/")).text == "mocked"
    else:
        async with Emulator(config) as emulator:
            assert (await emulator.fetch("/ready")).text == "ready"
            with router:
                assert (await emulator.fetch("/")).text == "mocked"
            assert (await emulator.fetch("/")).status_code == 500


async def test_a_side_effect_may_take_virtual_time(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return httpx.Response(200, text="late")

    respx_mock.get(URL).mock(side_effect=slow)
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        response = await asyncio.wait_for(emulator.fetch("/"), 5)
        assert (response.text, clock(emulator)) == ("late", 30)


async def test_side_effects_run_at_once(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(int(request.url.params["n"]))
        return httpx.Response(200, text=request.url.params["n"])

    respx_mock.get(URL).mock(side_effect=slow)
    body = f"""
    answers = await asyncio.gather(*(fetch(f"{URL}?n={{n}}") for n in (3, 1, 2)))
    return Response(" ".join([await answer.text() for answer in answers]))
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "3 1 2"
        assert clock(emulator) == 3


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("no way"),
        httpx.ReadTimeout("too slow"),
        httpx.RemoteProtocolError("gibberish"),
        OSError("a socket's"),
        httpx.TooManyRedirects("round and round"),
    ],
)
async def test_an_error_of_the_network_is_the_platforms(
    tmp_path: Path, respx_mock: respx.MockRouter, error: Exception
) -> None:
    respx_mock.get(URL).mock(side_effect=error)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        assert (await emulator.fetch("/")).text == "AbortError: Network connection lost."
        assert codes(emulator) == []


async def test_another_error_of_a_mock_reaches_the_worker(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).mock(side_effect=ValueError("the mock's"))
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        assert (await emulator.fetch("/")).text == "ValueError: the mock's"


async def test_a_mistake_in_a_mock_fails_the_test(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    """A Worker that catches everything must not make it pass."""

    def look_up(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=request.headers["x-not-sent"])

    respx_mock.get(URL).mock(side_effect=look_up)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        with pytest.raises(KeyError, match="x-not-sent"):
            await emulator.fetch("/")


async def test_an_assertion_of_a_mock_fails_the_test(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    """Even through code that swallows everything; the Worker goes on."""

    def check(request: httpx.Request) -> httpx.Response:
        assert request.headers.get("authorization") == "secret", "no token"
        raise AssertionError("unreachable")

    respx_mock.get(URL).mock(side_effect=check)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        with pytest.raises(AssertionError, match="no token"):
            await emulator.fetch("/")
        await emulator.settle()


async def test_a_test_outcome_of_a_mock_reaches_the_test(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    def check(request: httpx.Request) -> httpx.Response:
        pytest.fail("should not be called")

    respx_mock.get(URL).mock(side_effect=check)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        with pytest.raises(pytest.fail.Exception, match="should not be called"):
            await emulator.fetch("/")


@pytest.mark.parametrize("call", ["settle", "advance", "run_until", "crash", "restart", "reset"])
async def test_a_mock_cannot_move_the_simulation(
    tmp_path: Path, respx_mock: respx.MockRouter, call: str
) -> None:
    arguments = {"advance": (5,), "run_until": (lambda: True,)}.get(call, ())

    async def misuse(request: httpx.Request) -> httpx.Response:
        await getattr(emulator, call)(*arguments)
        return httpx.Response(200)

    respx_mock.get(URL).mock(side_effect=misuse)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        with pytest.raises(InsideSimulation, match=call):
            await emulator.fetch("/")


async def test_a_mock_may_call_the_worker_back(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    async def call_back(request: httpx.Request) -> httpx.Response:
        response = await emulator.fetch("/hook", method="POST", content=b"x")
        return httpx.Response(200, text=f"they said {response.text}")

    respx_mock.get(URL).mock(side_effect=call_back)
    config = handler(tmp_path, f"if path == '/hook': return Response('thanks')\n{ASK}")
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "they said thanks"


async def test_the_mocks_of_one_test_are_not_those_of_the_next(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        for text in ("one", "two"):
            with respx.mock:
                respx.get(URL).respond(text=text)
                assert (await emulator.fetch("/")).text == text
        assert "is not mocked" in (await emulator.fetch("/")).text


# -- what is sent ----------------------------------------------------------------------------------


async def sent(tmp_path: Path, code: str) -> httpx.Request:
    """The request that a Worker's code sends."""
    with respx.mock:
        route = respx.route().respond(200)
        body = f"{dedent(code)}\nreturn Response('ok')"
        async with Emulator(handler(tmp_path, body)) as emulator:
            response = await emulator.fetch("/")
            assert response.text == "ok"
        request: httpx.Request = route.calls[0].request
        return request


async def test_only_the_headers_that_the_worker_sets_are_sent(tmp_path: Path) -> None:
    request = await sent(tmp_path, f'await fetch("{URL}?a=1#part")')
    assert str(request.url) == f"{URL}?a=1"
    assert request.headers.multi_items() == [("host", "api.example")]


async def test_headers_are_sent_as_they_are(tmp_path: Path) -> None:
    code = f"""
    from js import Headers
    headers = Headers.new()
    headers.append("X-Many", "a")
    headers.append("X-Many", "b")
    headers.set("User-Agent", "mine/1")
    headers.set("X-Latin", "caf\\u00e9")
    await fetch("{URL}", headers=headers)
    """
    request = await sent(tmp_path, code)
    found = dict(request.headers.raw)
    assert request.headers["x-many"] == "a, b"
    assert request.headers["user-agent"] == "mine/1"
    assert next(v for k, v in found.items() if k.lower() == b"x-latin") == b"caf\xe9"


@pytest.mark.parametrize(
    ("options", "content", "kind"),
    [
        ("body='text'", b"text", "text/plain;charset=UTF-8"),
        ("body=bytes(range(256))", bytes(range(256)), None),
        (
            "body=json.dumps({'a': 1}), headers={'content-type': 'application/json'}",
            b'{"a": 1}',
            "application/json",
        ),
        ("body='x' * 3_000_000", b"x" * 3_000_000, "text/plain;charset=UTF-8"),
        ("", b"", None),
    ],
)
async def test_bodies_are_sent_whole(
    tmp_path: Path, options: str, content: bytes, kind: str | None
) -> None:
    request = await sent(tmp_path, f'await fetch("{URL}", method="POST", {options})')
    assert (request.method, request.content) == ("POST", content)
    assert request.headers["content-length"] == str(len(content))
    assert request.headers.get("content-type") == kind


async def test_a_streamed_body_is_read_by_the_worker(tmp_path: Path) -> None:
    code = f"""
    from js import TransformStream
    from pyodide.ffi import to_js
    stream = TransformStream.new()
    writer = stream.writable.getWriter()
    async def write():
        for number in range(3):
            await asyncio.sleep(1)
            await writer.write(to_js(f"{{number}} ".encode()))
        await writer.close()
    writing = asyncio.create_task(write())
    await fetch("{URL}", method="POST", body=stream.readable)
    await writing
    """
    request = await sent(tmp_path, code)
    assert request.content == b"0 1 2 "


async def test_a_request_is_passed_on(tmp_path: Path) -> None:
    """A Worker as a proxy: method, headers and body of what it got."""
    with respx.mock:
        route = respx.post("http://localhost/x").respond(
            418, headers={"x-origin": "1"}, text="teapot"
        )
        async with Emulator(handler(tmp_path, "return await fetch(request)")) as emulator:
            response = await emulator.fetch(
                "/x", method="POST", content=b"body", headers={"a": "b"}
            )
        assert (response.status_code, response.text) == (418, "teapot")
        assert response.headers["x-origin"] == "1"
        request = route.calls[0].request
        assert (request.content, request.headers["a"]) == (b"body", "b")


# -- what comes back -------------------------------------------------------------------------------


async def test_an_answer_comes_back_whole(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL).respond(
        503,
        headers=[("X-A", "1"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")],
        content=b"\x00\xff",
    )
    body = f"""
    answer = await fetch("{URL}")
    return Response.json({{
        "status": answer.status, "ok": answer.ok, "url": answer.url,
        "redirected": answer.redirected, "x": answer.headers.get("x-a"),
        "cookies": list(answer.js_object.headers.getSetCookie()),
        "body": list(await answer.bytes()),
    }})
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == {
            "status": 503,
            "ok": False,
            "url": URL,
            "redirected": False,
            "x": "1",
            "cookies": ["a=1", "b=2"],
            "body": [0, 255],
        }


async def test_a_large_answer(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    content = bytes(range(256)) * 40_000
    respx_mock.get(URL).respond(content=content)
    async with Emulator(handler(tmp_path, f'return await fetch("{URL}")')) as emulator:
        assert (await emulator.fetch("/")).content == content


async def test_a_compressed_answer_is_decoded(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL).respond(
        content=gzip.compress(b"plain"), headers={"content-encoding": "gzip"}
    )
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        assert (await emulator.fetch("/")).text == "plain"


class Slowly(httpx.AsyncByteStream):
    """A body that takes its time."""

    def __init__(self, *chunks: bytes | Exception, pause: float = 10) -> None:
        self.chunks, self.pause = chunks, pause

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
            await asyncio.sleep(self.pause)


async def test_the_head_of_an_answer_comes_before_its_body(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).mock(
        side_effect=lambda _: httpx.Response(200, stream=Slowly(b"one ", b"two "))
    )
    body = f"""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    answer = await fetch("{URL}")
    head = loop.time() - begin
    return Response(f"{{await answer.text()}}{{head:g}} {{loop.time() - begin:g}}")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "one two 0 20"


async def test_a_body_that_breaks_off(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL).mock(
        side_effect=lambda _: httpx.Response(200, stream=Slowly(b"one ", httpx.ReadError("cut")))
    )
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert "Network connection lost." in response.text


async def test_an_endless_body_does_not_keep_the_emulator_busy(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(1)

    class Endless(httpx.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return endless()

    respx_mock.get(URL).mock(side_effect=lambda _: httpx.Response(200, stream=Endless()))
    config = handler(tmp_path, f'answer = await fetch("{URL}")\nreturn Response("enough")')
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "enough"
        await emulator.settle()
        assert clock(emulator) <= 1


# -- redirects -------------------------------------------------------------------------------------


def redirects(mock: respx.MockRouter, status: int, method: str = "GET") -> respx.Route:
    mock.route(method=method, url=URL).respond(status, headers={"Location": "/moved?x=1"})
    route: respx.Route = mock.route(url="https://api.example/moved?x=1").respond(text="moved")
    return route


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(
    tmp_path: Path, respx_mock: respx.MockRouter, status: int
) -> None:
    redirects(respx_mock, status)
    body = f"""
    answer = await fetch("{URL}")
    return Response(f"{{await answer.text()}} {{answer.url}} {{answer.redirected}}")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "moved https://api.example/moved?x=1 True"
        # One request of the Worker's, however many hops.
        assert kinds(emulator) == ["request_out", "response_in"]
        assert [s.name for s in emulator.faults.sites if s.name.startswith("fetch")] == [
            "fetch.GET.api.example/things"
        ]


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (302, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ],
)
async def test_method_and_body_after_a_redirect(
    tmp_path: Path, respx_mock: respx.MockRouter, status: int, method: str, then: str
) -> None:
    route = redirects(respx_mock, status, method)
    config = handler(tmp_path, f'return await fetch("{URL}", method="{method}", body="data")')
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "moved"
    request = route.calls[0].request
    assert (request.method, request.content) == (then, b"" if then == "GET" else b"data")
    assert ("content-type" in request.headers) == (then != "GET")


async def test_a_redirect_is_not_followed_manually(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).respond(302, headers={"Location": "/moved"})
    body = f"""
    answer = await fetch("{URL}", redirect="manual")
    return Response(f"{{answer.status}} {{answer.headers.get('location')}} {{answer.redirected}}")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "302 /moved False"


@pytest.mark.parametrize(
    "location", ["/things", "ftp://files.example/", "https://x:999999/", "https://other.example/"]
)
async def test_redirects_that_lead_nowhere(
    tmp_path: Path, respx_mock: respx.MockRouter, location: str
) -> None:
    respx_mock.get(URL).respond(302, headers={"Location": location})
    respx_mock.get("https://other.example/").mock(side_effect=httpx.ConnectError("down"))
    respx_mock._assert_all_called = False
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        assert (await emulator.fetch("/")).text == "AbortError: Network connection lost."
        assert respx_mock.calls.call_count <= 21


async def test_a_token_does_not_go_to_another_origin(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).respond(302, headers={"Location": "https://other.example/"})
    route = respx_mock.get("https://other.example/").respond(200)
    code = f'return await fetch("{URL}", headers={{"authorization": "Bearer t", "x-a": "1"}})'
    async with Emulator(handler(tmp_path, code)) as emulator:
        await emulator.fetch("/")
    request = route.calls[0].request
    assert ("authorization" in request.headers, request.headers["x-a"]) == (False, "1")
    assert request.headers["host"] == "other.example"


async def test_no_cookie_is_kept(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    """Neither for the next request nor for a redirect."""
    respx_mock.get(URL).respond(302, headers={"Location": "/moved", "Set-Cookie": "a=1"})
    route = respx_mock.get("https://api.example/moved").respond(200)
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        await emulator.fetch("/")
        await emulator.fetch("/")
    assert [call.request.headers.get("cookie") for call in route.calls] == [None, None]


# -- denied ----------------------------------------------------------------------------------------

DENIED = "GET https://api.example/things is not mocked, and outbound requests are denied. Mock it"


@pytest.mark.parametrize("mocked", ["nothing", "another route", "a route that passes through"])
async def test_what_nothing_mocks_is_denied(tmp_path: Path, mocked: str) -> None:
    """A finding even if the Worker catches it."""
    router = respx.MockRouter(assert_all_called=False)
    if mocked == "another route":
        router.get("https://other.example/").respond(200)
    elif mocked == "a route that passes through":
        router.get(URL).pass_through()
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        if mocked == "nothing":
            text = (await emulator.fetch("/")).text
        else:
            with router:
                text = (await emulator.fetch("/")).text
        assert text.startswith(f"AbortError: {DENIED}")
        (finding,) = emulator.findings
        assert finding.code == "outbound_unmocked"
        assert 'respx_mock.get("https://api.example/things").respond(200)' in finding.message
        assert 'outbound="allow"' in finding.message
        assert str(finding.location).startswith("entry.py:")
        assert finding.subject == "request GET /"


async def test_denied_and_not_caught(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, ASK)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert "is not mocked" in response.text
        assert sorted(codes(emulator)) == ["handler_exception", "outbound_unmocked"]


async def test_a_mock_that_answers_everything(tmp_path: Path) -> None:
    with respx.mock(assert_all_mocked=False):
        async with Emulator(handler(tmp_path, ASK)) as emulator:
            assert (await emulator.fetch("/")).status_code == 200
            assert codes(emulator) == []


async def test_denying_reads_no_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("certificates were read")

    monkeypatch.setattr(ssl, "create_default_context", refuse)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", refuse)
    async with Emulator(handler(tmp_path, TRY)) as emulator:
        assert "is not mocked" in (await emulator.fetch("/")).text


# -- abort -----------------------------------------------------------------------------------------


async def test_an_aborted_request_was_sent_all_the_same(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return httpx.Response(200, text="late")

    route = respx_mock.get(URL).mock(side_effect=slow)
    body = f"""
    from js import AbortSignal
    try:
        await fetch("{URL}", signal=AbortSignal.timeout(5000))
    except Exception as error:
        return Response(f"{{type(error).__name__}} after {{asyncio.get_running_loop().time():g}}")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "AbortError after 5"
        await emulator.settle()
        assert route.call_count == 1


@pytest.mark.parametrize("limit", ["asyncio.timeout(5)", "asyncio.timeout_at(5)"])
async def test_a_time_out_around_a_request(
    tmp_path: Path, respx_mock: respx.MockRouter, limit: str
) -> None:
    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    respx_mock.get(URL).mock(side_effect=never)
    body = f"""
    try:
        async with {limit}:
            await fetch("{URL}")
    except TimeoutError:
        return Response("gave up")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "gave up"
        assert clock(emulator) == 5


# -- faults ----------------------------------------------------------------------------------------

SITE = "fetch.GET.api.example/things"


@pytest.mark.parametrize(
    ("action", "answer", "calls", "after"),
    [
        ("fail", "AbortError: Network connection lost.", 0, 0),
        ("status(503)", "503", 0, 0),
        ("status(200)", "200", 0, 0),
        ("lose_reply", "AbortError: Network connection lost.", 1, 0),
        ("lose_reply(504)", "504", 1, 0),
        ("timeout", "AbortError: Network connection lost.", 1, 100),
    ],
)
async def test_a_fault_of_a_request(
    tmp_path: Path,
    respx_mock: respx.MockRouter,
    action: str,
    answer: str,
    calls: int,
    after: float,
) -> None:
    route = respx_mock.get(URL).respond(418)
    respx_mock._assert_all_called = False
    body = f"""
    try:
        return Response(str((await fetch("{URL}?secret=1")).status))
    except Exception as error:
        return Response(f"{{type(error).__name__}}: {{error}}")
    """
    fault = f"{SITE}#1:{action}"
    async with Emulator(handler(tmp_path, body), faults=fault) as emulator:
        assert (await emulator.fetch("/")).text == answer
        assert (route.call_count, clock(emulator)) == (calls, after)
        assert [str(each) for each in emulator.faults.fired] == [fault]
        assert codes(emulator) == []
        assert (await emulator.fetch("/")).text == "418"


@pytest.mark.parametrize(("action", "calls"), [("crash_before", 0), ("crash_after", 1)])
async def test_a_crash_at_a_request(
    tmp_path: Path, respx_mock: respx.MockRouter, action: str, calls: int
) -> None:
    route = respx_mock.get(URL).respond(200)
    respx_mock._assert_all_called = False
    body = f"""
    try:
        await fetch("{URL}")
    finally:
        print("finally")
    return Response("ok")
    """
    async with Emulator(handler(tmp_path, body), faults=f"{SITE}#1:{action}") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert (route.call_count, list(emulator.logs)) == (calls, [])
        assert (await emulator.fetch("/")).text == "ok"


async def test_a_crash_after_a_request_that_failed(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).mock(side_effect=httpx.ConnectError("down"))
    async with Emulator(handler(tmp_path, TRY), faults=f"{SITE}#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")


@pytest.mark.parametrize(
    ("plan", "made"),
    [
        ("crash_before#1", []),
        ("crash_before#2", [0]),
        ("crash_after#1", [0]),
        ("crash_after#3", [0, 1, 2]),
    ],
)
async def test_a_crash_amid_several_requests(
    tmp_path: Path, respx_mock: respx.MockRouter, plan: str, made: list[int]
) -> None:
    """Those whose turn had come were made, the others never."""
    called: list[int] = []

    def note(request: httpx.Request) -> httpx.Response:
        called.append(int(request.url.params["n"]))
        return httpx.Response(200)

    respx_mock.get(URL).mock(side_effect=note)
    respx_mock._assert_all_called = False
    action, _, occurrence = plan.partition("#")
    body = f"""
    await asyncio.gather(*(fetch(f"{URL}?n={{n}}") for n in range(3)))
    return Response("ok")
    """
    fault = f"{SITE}#{occurrence}:{action}"
    async with Emulator(handler(tmp_path, body), faults=fault) as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert called == made


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://api.example", "fetch.GET.api.example/"),
        ("https://api.example:8443/a.b/c?d=e", "fetch.GET.api.example%3A8443/a.b/c"),
        ("https://user:pass@api.example/x", "fetch.GET.api.example/x"),
        ("https://API.example/%20x", "fetch.GET.api.example/%25 20x"),
    ],
)
async def test_how_a_request_names_its_site(
    tmp_path: Path, respx_mock: respx.MockRouter, url: str, site: str
) -> None:
    respx_mock.route().respond(200)
    async with Emulator(handler(tmp_path, f'return await fetch("{url}")')) as emulator:
        await emulator.fetch("/")
        name = emulator.faults.sites[-1].name
        assert name == site.replace("%25 ", "%25")
        fault = str(emulator.faults.sites[-1].faults(("request",))[1])
    async with Emulator(
        handler(tmp_path, f'return await fetch("{url}")'), faults=fault
    ) as emulator:
        assert (await emulator.fetch("/")).status_code == 500
        assert len(emulator.faults.fired) == 1


async def test_the_classes_of_a_request(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL).respond(200)
    body = f"""
    await fetch("{URL}")
    async def later():
        await asyncio.sleep(1)
        await fetch("{URL}")
    self.ctx.waitUntil(later())
    return Response("ok")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        found = [site for site in emulator.faults.sites if site.name == SITE]
        assert [(s.actions["crash_before"], s.actions["timeout"]) for s in found] == [
            ("request", "request"),
            ("platform", "dependency"),
        ]


# -- httpx clients and sockets of the Worker's own -------------------------------------------------

CLIENT = """
import httpx
async def send(url, **options):
    async with httpx.AsyncClient(verify=False, **options) as client:
        return await client.get(url)
def send_now(url, **options):
    with httpx.Client(verify=False, **options) as client:
        return client.get(url)
"""
SENDS = {"async": "await clients.send", "sync": "clients.send_now"}


def client_worker(folder: Path, kind: str, url: str = URL, options: str = "") -> dict[str, Any]:
    entry = f"""
    import clients
    from workers import Response, WorkerEntrypoint
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            try:
                answer = {SENDS[kind]}("{url}"{options})
            except Exception as error:
                return Response(f"{{type(error).__name__}}: {{error}}")
            return Response(f"{{answer.status_code}} {{answer.text}}")
    """
    return worker(folder, entry, {"clients.py": CLIENT})


@pytest.mark.parametrize("kind", SENDS)
async def test_a_client_of_the_worker_is_mocked_and_a_site(
    tmp_path: Path, respx_mock: respx.MockRouter, kind: str
) -> None:
    route = respx_mock.get(URL).respond(200, text="mocked")
    async with Emulator(client_worker(tmp_path, kind)) as emulator:
        assert (await emulator.fetch("/")).text == "200 mocked"
        assert kinds(emulator) == ["request_out", "response_in"]
        assert emulator.faults.sites[-1].name == SITE
        assert codes(emulator) == []
        assert route.call_count == 1


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize("mocked", [False, True])
@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:9/x"])
async def test_a_client_of_the_worker_is_denied(
    tmp_path: Path, kind: str, mocked: bool, url: str
) -> None:
    async with Emulator(client_worker(tmp_path, kind, url)) as emulator:
        if mocked:
            with respx.mock:
                text = (await emulator.fetch("/")).text
        else:
            text = (await emulator.fetch("/")).text
        assert text.startswith(f"ConnectError: GET {url} is not mocked, and outbound requests are")
        assert codes(emulator) == ["outbound_unmocked"]
        assert str(emulator.findings[0].location).startswith("clients.py:")


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize(
    ("action", "answer", "calls"),
    [
        ("fail", "ConnectError: GET https://api.example/things was not sent, by the fault", 0),
        ("status(503)", "503 ", 0),
        ("lose_reply", "ReadError: GET https://api.example/things got no answer, by the fault", 1),
        ("lose_reply(504)", "504 ", 1),
        ("timeout", "ReadTimeout: GET https://api.example/things got no answer in 5 s, by the", 1),
    ],
)
async def test_a_fault_of_a_clients_request(
    tmp_path: Path, respx_mock: respx.MockRouter, kind: str, action: str, answer: str, calls: int
) -> None:
    route = respx_mock.get(URL).respond(200)
    respx_mock._assert_all_called = False
    config = client_worker(tmp_path, kind)
    async with Emulator(config, faults=f"{SITE}#1:{action}") as emulator:
        assert (await emulator.fetch("/")).text.startswith(answer)
        assert route.call_count == calls
        assert clock(emulator) == (5 if action == "timeout" else 0)


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize(("action", "calls"), [("crash_before", 0), ("crash_after", 1)])
async def test_a_crash_at_a_clients_request(
    tmp_path: Path, respx_mock: respx.MockRouter, kind: str, action: str, calls: int
) -> None:
    route = respx_mock.get(URL).respond(200)
    respx_mock._assert_all_called = False
    config = client_worker(tmp_path, kind)
    async with Emulator(config, faults=f"{SITE}#1:{action}") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert route.call_count == calls
        assert (await emulator.fetch("/")).text == "200 "


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize(
    "plan", [f"{SITE}#1:crash_before", f"{SITE}#*:crash_after", "*.api*#1:crash_after"]
)
@pytest.mark.parametrize("added", [False, True])
async def test_no_line_runs_after_a_crash_at_a_clients_request(
    tmp_path: Path, respx_mock: respx.MockRouter, kind: str, plan: str, added: bool
) -> None:
    respx_mock.get(URL).respond(200)
    respx_mock._assert_all_called = False
    entry = f"""
    import clients
    from workers import Response, WorkerEntrypoint
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            if request.url.endswith("/alive"):
                return Response("alive")
            try:
                {SENDS[kind]}("{URL}")
            except BaseException as error:
                print("except", repr(error))
                raise
            finally:
                print("finally")
    """
    config = worker(tmp_path, entry, {"clients.py": CLIENT})
    async with Emulator(config, faults=() if added else plan) as emulator:
        assert (await emulator.fetch("/alive")).text == "alive"
        emulator.faults.add(*([plan] if added else []))
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert (await emulator.fetch("/alive")).text == "alive"
        assert [str(fault.action) for fault in emulator.faults.fired] == [plan.partition(":")[2]]
        logs = emulator.logs
    gc.collect()
    assert list(logs) == []


async def test_a_client_without_patience_waits_as_long_as_fetch(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).respond(200)
    config = client_worker(tmp_path, "async", options=", timeout=None")
    async with Emulator(config, faults=f"{SITE}#1:timeout") as emulator:
        assert "got no answer in 100 s" in (await emulator.fetch("/")).text
        assert clock(emulator) == 100


async def test_an_assertion_of_a_mock_reaches_the_test_through_a_client(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).mock(side_effect=AssertionError("wrong request"))
    async with Emulator(client_worker(tmp_path, "async")) as emulator:
        with pytest.raises(AssertionError, match="wrong request"):
            await emulator.fetch("/")


async def test_a_client_with_an_application_for_transport_is_no_site(tmp_path: Path) -> None:
    entry = """
    import httpx
    from workers import Response, WorkerEntrypoint
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
                return Response((await client.get("/")).text)
    """
    async with Emulator(worker(tmp_path, entry)) as emulator:
        assert (await emulator.fetch("/")).text == "inside"
        assert [site.name for site in emulator.faults.sites] == ["request.GET./"]


@pytest.mark.parametrize(
    "code",
    [
        "urllib.request.urlopen('http://api.example/x')",
        "socket.create_connection(('api.example', 80))",
        "socket.getaddrinfo('api.example', 80)",
        "await asyncio.open_connection('api.example', 80)",
        "await asyncio.get_running_loop().getaddrinfo('api.example', 80)",
    ],
)
async def test_a_socket_is_refused_by_name(tmp_path: Path, code: str) -> None:
    body = f"""
    import socket, urllib.request
    try:
        {code}
    except OSError as error:
        return Response(str(error))
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert "api.example" in (await emulator.fetch("/")).text
        (finding,) = emulator.findings
        assert finding.code == "outbound_unmocked"
        assert "api.example" in finding.message
        assert str(finding.location).startswith("entry.py:")


async def test_clients_of_the_test_are_not_touched(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "return Response('ok')")) as emulator:
        with serving() as (address, _):
            async with httpx.AsyncClient(verify=False) as client:
                assert (await client.get(f"{address}/a")).json()["path"] == "/a"
            with httpx.Client(verify=False) as now:
                assert now.get(f"{address}/b").status_code == 200  # noqa: ASYNC212, that is the test
            with urllib.request.urlopen(f"{address}/c") as answer:  # noqa: ASYNC210, as above
                assert answer.status == 200
        assert [site.name for site in emulator.faults.sites] == []


async def test_httpx_is_itself_again_when_the_last_emulator_is_closed(tmp_path: Path) -> None:
    usual = httpx.AsyncHTTPTransport.handle_async_request, httpx.HTTPTransport.handle_request
    config = handler(tmp_path, "return Response('ok')")
    async with Emulator(config):
        with respx.mock(using="httpx"):
            async with Emulator(config):
                taught = httpx.AsyncHTTPTransport.handle_async_request
        assert httpx.AsyncHTTPTransport.handle_async_request is taught
        assert taught is not usual[0]
    assert usual == (
        httpx.AsyncHTTPTransport.handle_async_request,
        httpx.HTTPTransport.handle_request,
    )


# -- allowed ---------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """Answers with what it got."""

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", 0))
        got = {
            "method": self.command,
            "path": self.path,
            "headers": sorted(name.lower() for name in self.headers),
            "body": self.rfile.read(length).decode(),
        }
        if self.path.startswith("/slow"):
            self.server.gate.wait(5)  # type: ignore[attr-defined]
        if self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("location", "/there")
            self.end_headers()
            return
        content = json.dumps(got).encode()
        if self.path.startswith("/gzip"):
            content = gzip.compress(content)
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        if self.path.startswith("/gzip"):
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving() -> Iterator[tuple[str, threading.Event]]:
    """A real server; its address, and the gate that opens `/slow`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    gate = server.gate = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", gate
    finally:
        gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


FORWARD = """
from urllib.parse import parse_qs
url = parse_qs(urlsplit(request.url).query)["url"][0]
try:
    answer = await fetch(url)
    return Response(await answer.text(), status=answer.status)
except Exception as error:
    return Response(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("path", ["/a?b=1", "/gzip", "/redirect"])
async def test_an_allowed_request_is_really_sent(tmp_path: Path, path: str) -> None:
    with serving() as (address, _):
        async with Emulator(handler(tmp_path, FORWARD), outbound="allow") as emulator:
            for _ in range(2):
                got = (await emulator.fetch("/", params={"url": address + path})).json()
                assert got["path"] == {"/redirect": "/there"}.get(path, path)
                assert got["headers"] == ["host"]
            assert codes(emulator) == []
            assert clock(emulator) == 0
            assert kinds(emulator) == ["request_out", "response_in"] * 2


async def test_the_clock_is_held_while_a_real_request_is_out(tmp_path: Path) -> None:
    other = 'if path == "/other":\n    await asyncio.sleep(5)\n    return Response("other")'
    config = handler(tmp_path, f"{other}\n{FORWARD}")
    with serving() as (address, gate):
        async with Emulator(config, outbound="allow") as emulator:
            slow = asyncio.create_task(emulator.fetch("/", params={"url": f"{address}/slow"}))
            sleeps = asyncio.create_task(emulator.fetch("/other"))
            await asyncio.sleep(0.1)
            assert (clock(emulator), sleeps.done()) == (0, False)
            gate.set()
            assert (await slow).status_code == 200
            assert (await sleeps).text == "other"
            assert clock(emulator) == 5


async def test_a_refused_connection_is_the_platforms_error(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        async with Emulator(handler(tmp_path, FORWARD), outbound="allow") as emulator:
            response = await emulator.fetch("/", params={"url": url})
            assert response.text == "AbortError: Network connection lost."
            assert codes(emulator) == []


async def test_a_cancelled_call_leaves_the_request_alone(tmp_path: Path) -> None:
    with serving() as (address, gate):
        async with Emulator(handler(tmp_path, FORWARD), outbound="allow") as emulator:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(emulator.fetch("/", params={"url": f"{address}/slow"}), 0.05)
            gate.set()
            assert (await emulator.fetch("/", params={"url": f"{address}/x"})).status_code == 200
            await emulator.settle()
            assert kinds(emulator).count("response_in") == 2


@pytest.mark.filterwarnings("ignore:.*is not an async function")
def test_a_real_request_whose_loop_is_stopped_fails(tmp_path: Path) -> None:
    """A session's emulator, whose tests have a loop each."""
    with (
        serving() as (address, gate),
        Emulator(handler(tmp_path, FORWARD), outbound="allow") as emulator,
    ):

        async def first() -> None:
            asyncio.get_running_loop().create_task(
                emulator.fetch("/", params={"url": f"{address}/slow"})
            )
            await asyncio.sleep(0.05)

        asyncio.run(first())
        gate.set()
        response = asyncio.run(emulator.fetch("/", params={"url": f"{address}/x"}))
        assert response.json()["path"] == "/x"
        assert clock(emulator) == 0


async def test_an_allowed_request_that_is_mocked_stays_inside(tmp_path: Path) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        return httpx.Response(200, text="mocked")

    with serving() as (address, _), respx.mock(assert_all_called=False) as router:
        router.get(f"{address}/mocked").mock(side_effect=slow)
        router.get(f"{address}/real").pass_through()
        async with Emulator(handler(tmp_path, FORWARD), outbound="allow") as emulator:
            mocked = await emulator.fetch("/", params={"url": f"{address}/mocked"})
            assert (mocked.text, clock(emulator)) == ("mocked", 3600)
            real = await emulator.fetch("/", params={"url": f"{address}/real"})
            assert real.json()["path"] == "/real"
            unmatched = await emulator.fetch("/", params={"url": f"{address}/neither"})
            assert "matches no route of the active respx mock" in unmatched.text
            assert codes(emulator) == ["outbound_unmocked"]


async def test_a_client_of_the_worker_may_be_allowed(tmp_path: Path) -> None:
    with serving() as (address, _):
        config = client_worker(tmp_path, "async", f"{address}/a")
        async with Emulator(config, outbound="allow") as emulator:
            assert '"path": "/a"' in (await emulator.fetch("/")).text
            assert codes(emulator) == []


async def test_faults_strike_real_requests_too(tmp_path: Path) -> None:
    with serving() as (address, _):
        port = address.rpartition(":")[2]
        fault = f"fetch.GET.127.0.0.1%3A{port}/x#1:lose_reply"
        async with Emulator(handler(tmp_path, FORWARD), outbound="allow", faults=fault) as emulator:
            response = await emulator.fetch("/", params={"url": f"{address}/x"})
            assert response.text == "AbortError: Network connection lost."
            assert len(emulator.faults.fired) == 1
