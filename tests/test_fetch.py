"""`emulator.fetch`: requests in, responses out, failures, time, faults."""

from __future__ import annotations

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import handler, worker

from emulator import (
    Emulator,
    EmulatorClosed,
    InsideSimulation,
    ReplyLost,
    Stuck,
    WorkerCrashed,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import respx

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
# Answers with what it got.
ECHO = """
    return Response.json({
        "method": request.method, "url": request.url, "body": await request.text(),
        "headers": dict(request.headers.items()),
    })
"""


def seconds(emulator: Emulator) -> float:
    """Virtual seconds since the start."""
    return (emulator.now - START).total_seconds()


# -- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("/", "http://localhost/"),
        ("", "http://localhost/"),
        ("/a/b.html?x=1&y=%20", "http://localhost/a/b.html?x=1&y=%20"),
        ("a", "http://localhost/a"),
        ("?q=1", "http://localhost/?q=1"),
        ("/ü/日?q=ä ö", "http://localhost/%C3%BC/%E6%97%A5?q=%C3%A4%20%C3%B6"),
        ("/a/../b/./c", "http://localhost/b/c"),
        ("/page#part", "http://localhost/page"),
        ("https://shop.example:8443/x?y", "https://shop.example:8443/x?y"),
        ("//shop.example/x", "http://shop.example/x"),
        ("/a%2Fb", "http://localhost/a%2Fb"),
        ("https://shop.example", "https://shop.example/"),
        ("https://shop.example:8443?x=/", "https://shop.example:8443/?x=/"),
        (httpx.URL("https://shop.example/x#part"), "https://shop.example/x"),
    ],
)
async def test_urls_reach_the_worker_as_a_browser_sends_them(
    tmp_path: Path, url: str | httpx.URL, seen: str
) -> None:
    async with Emulator(handler(tmp_path, ECHO)) as emulator:
        response = await emulator.fetch(url)
        assert response.json()["url"] == seen
        assert str(response.request.url) == seen


async def test_an_answer_says_how_much_virtual_time_it_took(tmp_path: Path) -> None:
    body = 'await asyncio.sleep(90)\nreturn Response("")'
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.advance(1)
        assert (await emulator.fetch("/")).elapsed == timedelta(seconds=90)


async def test_the_parts_of_a_request_are_those_of_httpx(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, ECHO)) as emulator:

        async def sent(**options: Any) -> dict[str, Any]:
            result: dict[str, Any] = (await emulator.fetch("/", **options)).json()
            return result

        assert (await sent())["method"] == "GET"
        assert (await sent(method="put"))["method"] == "PUT"
        assert (await sent(params={"a": [1, 2], "b": "ü"}))["url"].endswith("?a=1&a=2&b=%C3%BC")
        as_json = await sent(method="POST", json={"a": None})
        assert as_json["body"] == '{"a":null}'
        assert as_json["headers"]["content-type"] == "application/json"
        assert as_json["headers"]["content-length"] == "10"
        form = await sent(method="POST", data={"a": "1 2", "b": ["x", "y"]})
        assert form["body"] == "a=1+2&b=x&b=y"
        assert form["headers"]["content-type"] == "application/x-www-form-urlencoded"
        assert (await sent(method="POST", content="text"))["body"] == "text"
        assert (await sent(method="POST", content=iter([b"a", b"b"])))["body"] == "ab"
        assert (await sent(method="POST", content=_chunks()))["body"] == "ab"
        headers = (await sent(headers=[("X-A", "1"), ("x-a", "2"), ("Cookie", "a=1; b=2")]))[
            "headers"
        ]
        assert headers["x-a"] == "1, 2"
        assert headers["cookie"] == "a=1; b=2"
        assert headers["host"] == "localhost"


async def _chunks() -> AsyncIterator[bytes]:
    yield b"a"
    yield b"b"


async def test_bytes_arrive_as_they_are_and_large_ones_too(tmp_path: Path) -> None:
    body = """
        data = await request.bytes()
        return Response(data[::-1], headers={"content-type": "application/octet-stream"})
    """
    sent = bytes(range(256)) * 40_000
    async with Emulator(handler(tmp_path, body)) as emulator:
        response = await emulator.fetch("/", method="POST", content=sent)
    assert response.content == sent[::-1]
    assert response.headers["content-length"] == str(len(sent))


async def test_a_request_names_its_worker(tmp_path: Path) -> None:
    configs = [
        handler(tmp_path / name, f"return Response({name!r})", name=name) for name in ("a", "b")
    ]
    async with Emulator(configs) as emulator:
        assert (await emulator.fetch("/")).text == "a"
        assert (await emulator.fetch("/", worker="b")).text == "b"
        with pytest.raises(KeyError, match="no Worker 'c'; there are: a, b"):
            await emulator.fetch("/", worker="c")


async def test_a_closed_emulator_refuses(tmp_path: Path) -> None:
    emulator = Emulator(handler(tmp_path, "return Response('')"))
    emulator.close()
    for call in (emulator.fetch("/"), emulator.client.get("/"), emulator.scheduled()):
        with pytest.raises(EmulatorClosed, match="this emulator is closed"):
            await call


# -- responses -------------------------------------------------------------------------------------


async def test_status_headers_and_cookies_come_back(tmp_path: Path) -> None:
    body = """
        return Response("x", status=201, status_text="Made", headers=[
            ("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2"), ("X-Text", "grün 日本"),
        ])
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        response = await emulator.fetch("/")
    assert (response.status_code, response.reason_phrase) == (201, "Made")
    assert response.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2"]
    assert dict(response.cookies) == {"a": "1", "b": "2"}
    assert response.headers["x-text"] == "grün 日本"
    assert response.headers["content-type"] == "text/plain;charset=UTF-8"


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    body = "return Response.redirect('https://other.example/x', 307)"
    async with Emulator(handler(tmp_path, body)) as emulator:
        response = await emulator.fetch("/")
    assert response.status_code == 307
    assert response.headers["location"] == "https://other.example/x"


async def test_head_gets_the_headers_of_the_body_and_no_body(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "return Response('12345')")) as emulator:
        response = await emulator.fetch("/", method="HEAD")
    assert response.content == b""
    assert response.headers["content-length"] == "5"
    assert response.headers["content-type"] == "text/plain;charset=UTF-8"


@pytest.mark.parametrize("status", [204, 205, 304])
async def test_statuses_without_a_body_have_no_length(tmp_path: Path, status: int) -> None:
    async with Emulator(handler(tmp_path, f"return Response(None, status={status})")) as emulator:
        response = await emulator.fetch("/")
    assert (response.status_code, response.content) == (status, b"")
    assert "content-length" not in response.headers


async def test_an_empty_body_has_length_zero(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "return Response('')")) as emulator:
        assert (await emulator.fetch("/")).headers["content-length"] == "0"


@pytest.mark.parametrize("made", ["'plain text'", "gzip.compress(b'plain text')", "stream()"])
async def test_a_body_whose_header_says_gzip_arrives_readable(tmp_path: Path, made: str) -> None:
    """workerd compresses such a body itself; a Worker may also have done it."""
    body = f"""
        import gzip
        from js import ReadableStream
        from pyodide.ffi import to_js
        async def chunks():
            yield to_js(b"plain ")
            yield to_js(b"text")
        def stream():
            return ReadableStream.from_(chunks())
        return Response({made}, headers={{"content-encoding": "gzip"}})
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        response = await emulator.fetch("/")
        raw = b""
        async with emulator.client.stream("GET", "/") as streamed:
            async for chunk in streamed.aiter_raw():
                raw += chunk
    assert response.text == "plain text"
    assert gzip.decompress(raw) == b"plain text"


STREAM = """
    from js import ReadableStream
    from pyodide.ffi import to_js
    async def chunks():
        try:
            for n in range(int(path[1:])):
                yield to_js(f"{n};".encode())
                await asyncio.sleep(10)
            if "fail" in request.url:
                raise ValueError("in the middle")
        finally:
            print("closed")
    return Response(ReadableStream.from_(chunks()))
"""


async def test_a_streamed_body_is_read_to_its_end(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        response = await emulator.fetch("/3")
        assert response.text == "0;1;2;"
        assert seconds(emulator) == 30
        assert response.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in response.headers


async def test_a_body_that_fails_in_the_middle_breaks_the_connection(tmp_path: Path) -> None:
    """The head has left already: there is no 500 any more."""
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        with pytest.raises(ReplyLost, match="the body broke off: ValueError") as caught:
            await emulator.fetch("/2?fail")
        assert isinstance(caught.value, httpx.TransportError)
        assert isinstance(caught.value, ConnectionError)
        assert seconds(emulator) == 20
        (finding,) = emulator.findings
        assert finding.code == "handler_exception"
        assert "ValueError: in the middle" in finding.message
        assert finding.location is not None


# -- failures of the handler -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        ("raise ValueError('boom')", "ValueError: boom"),
        ("raise ValueError('two\\nlines')", "ValueError: two\nlines"),
        ("raise ValueError", "ValueError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('b')", "BaseException: b"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise asyncio.CancelledError('c')", "CancelledError: c"),
        (
            "raise type('Odd', (Exception,), {'__str__': lambda self: 1/0})",
            "<exception str() failed>",
        ),
        ("raise StopIteration(1)", "coroutine raised StopIteration"),
        ("async with asyncio.timeout(5): await asyncio.Event().wait()", "TimeoutError"),
    ],
)
async def test_any_exception_is_a_500_as_in_production(
    tmp_path: Path, statement: str, last: str
) -> None:
    async with Emulator(handler(tmp_path, statement)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.headers["content-type"] == "text/plain;charset=UTF-8"
        assert response.text.startswith("Error: PythonError: Traceback (most recent call last):\n")
        assert response.text.endswith(last)
        assert '  File "entry.py", line 10, in fetch\n' in response.text
        assert "emulator" not in response.text
        (finding,) = emulator.findings
        assert (finding.code, finding.location) == ("handler_exception", "entry.py:10")
        assert finding.subject == "request GET /"
        (log,) = emulator.logs
        assert (log.level, log.text) == ("error", response.text)
        # The isolate goes on.
        assert (await emulator.fetch("/")).status_code == 500


async def test_the_exceptions_of_a_group_are_all_told(tmp_path: Path) -> None:
    body = """
        async def fail(text):
            raise ValueError(text)
        async with asyncio.TaskGroup() as group:
            group.create_task(fail("one"))
            group.create_task(fail("two"))
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        text = (await emulator.fetch("/")).text
    assert "  | ValueError: one" in text
    assert "  | ValueError: two" in text
    assert text.endswith("ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)")


async def test_a_recursion_is_told_in_a_few_lines(tmp_path: Path) -> None:
    body = "def again(): again()\nagain()"
    async with Emulator(handler(tmp_path, body)) as emulator:
        text = (await emulator.fetch("/")).text
    assert "more times]" in text
    assert len(text.splitlines()) < 15


async def test_causes_are_told_first(tmp_path: Path) -> None:
    body = """
        try:
            int("x")
        except ValueError as error:
            raise LookupError("outer") from error
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        text = (await emulator.fetch("/")).text
    assert text.index("ValueError: invalid literal") < text.index("LookupError: outer")


async def test_an_error_of_javascript_keeps_its_name(tmp_path: Path) -> None:
    body = "return Response('x', status=99)"
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text.startswith("RangeError: Responses may only")
        assert emulator.findings[0].message.startswith("request GET /: RangeError: Responses")


PASS_THROUGH = "self.ctx.passThroughOnException()\nraise ValueError('boom')"


async def test_after_pass_through_the_origin_answers(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    origin = respx_mock.post("https://shop.example/buy?x=1").respond(203, text="from the origin")
    async with Emulator(handler(tmp_path, PASS_THROUGH)) as emulator:
        response = await emulator.fetch("https://shop.example/buy?x=1", method="POST", content="b")
        assert (response.status_code, response.text) == (203, "from the origin")
        assert origin.calls.last.request.content == b"b"
        assert [finding.code for finding in emulator.findings] == ["handler_exception"]


async def test_without_an_origin_the_error_is_answered_and_the_request_denied(
    tmp_path: Path,
) -> None:
    """A choice: production's answer depends on the zone; the unmocked request is a finding."""
    async with Emulator(handler(tmp_path, PASS_THROUGH)) as emulator:
        response = await emulator.fetch("/x")
        assert response.status_code == 500
        assert response.text.endswith("ValueError: boom")
        codes = [finding.code for finding in emulator.findings]
        assert codes == ["handler_exception", "outbound_unmocked"]


# -- several at a time, and who leaves -------------------------------------------------------------


async def test_concurrent_requests_share_the_isolate(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        """
        import state
        state.inside += 1
        state.most = max(state.most, state.inside)
        await asyncio.sleep(5)
        state.inside -= 1
        return Response(str(state.most))
        """,
        files={"state.py": "inside = most = 0"},
    )
    async with Emulator(config) as emulator:
        responses = await asyncio.gather(*(emulator.fetch(f"/{n}") for n in range(3)))
        assert [response.text for response in responses] == ["3", "3", "3"]
        assert seconds(emulator) == 5


async def test_cancelling_is_the_clients_disconnect_and_the_handler_goes_on(tmp_path: Path) -> None:
    """Recording wu_client_disconnect."""
    body = """
        async def later():
            await asyncio.sleep(6)
            print("background")
        self.ctx.waitUntil(later())
        try:
            await asyncio.sleep(8)
            print("handler")
        except BaseException as error:
            print(repr(error))
            raise
        return Response("x")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/", advance=False))
        await emulator.advance(3)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await emulator.settle()
        assert [(log.text, log.at.second) for log in emulator.logs] == [
            ("background", 6),
            ("handler", 8),
        ]
        assert list(emulator.findings) == []


async def test_the_body_for_a_client_that_left_is_not_made(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/1000000", advance=False))
        await emulator.advance(25)
        request.cancel()
        await emulator.settle()
        assert seconds(emulator) == 25
        assert [log.text for log in emulator.logs] == ["closed"]
        assert list(emulator.findings) == []


async def test_a_time_out_around_fetch_is_real_time_and_works(tmp_path: Path) -> None:
    body = "await asyncio.Event().wait()"
    async with Emulator(handler(tmp_path, body)) as emulator:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(emulator.fetch("/", advance=False), 0.05)
        assert seconds(emulator) == 0


async def test_a_handler_that_can_never_answer_is_stuck(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "await asyncio.Event().wait()")) as emulator:
        with pytest.raises(Stuck, match=r"request GET / waits at entry\.py:10"):
            await emulator.fetch("/")


# -- time ------------------------------------------------------------------------------------------


async def test_time_passes_by_itself_exactly_as_far_as_the_handler_needs(tmp_path: Path) -> None:
    body = "await asyncio.sleep(12.345678)\nreturn Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert emulator.now - START == timedelta(seconds=12, microseconds=345_678)


async def test_without_advance_the_test_moves_the_clock(tmp_path: Path) -> None:
    body = "await asyncio.sleep(10)\nreturn Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/", advance=False))
        await asyncio.sleep(0.01)
        assert not request.done()
        await emulator.advance(9.999)
        await asyncio.sleep(0)
        assert not request.done()
        await emulator.advance(0.001)
        await asyncio.sleep(0)
        assert request.done()


async def test_what_is_due_at_this_instant_has_run_when_fetch_returns(tmp_path: Path) -> None:
    body = """
        async def later():
            for _ in range(50):
                await asyncio.sleep(0)
            print("at once")
            await asyncio.sleep(1)
            print("later")
        waitUntil(later())
        return Response('')
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert [log.text for log in emulator.logs] == ["at once"]


# -- retries and the faults of requests ------------------------------------------------------------

FLAKY = """
    import state
    state.calls += 1
    await asyncio.sleep(1)
    return Response(str(state.calls), status=200 if state.calls > int(path[1:]) else 503)
"""


def flaky(tmp_path: Path) -> dict[str, Any]:
    return handler(tmp_path, FLAKY, files={"state.py": "calls = 0"})


@pytest.mark.parametrize(
    ("failures", "retries", "wait", "status", "calls", "passed"),
    [
        (0, 5, 10, 200, 1, 1),
        (1, 5, 10, 200, 2, 12),
        (2, 2, 10, 200, 3, 23),
        (2, 1, 10, 503, 2, 12),
        (9, 0, 10, 503, 1, 1),
        (3, 3, "1 minute", 200, 4, 184),
        (1, 1, 0, 200, 2, 2),
    ],
)
async def test_a_patient_client_repeats_a_5xx_after_its_pause(
    tmp_path: Path,
    failures: int,
    retries: int,
    wait: Any,
    status: int,
    calls: int,
    passed: int,
) -> None:
    async with Emulator(flaky(tmp_path)) as emulator:
        response = await emulator.fetch(f"/{failures}", retries=retries, wait=wait)
        assert (response.status_code, response.text) == (status, str(calls))
        assert seconds(emulator) == passed


async def test_the_pause_is_ten_seconds_and_a_4xx_is_not_repeated(tmp_path: Path) -> None:
    async with Emulator(flaky(tmp_path)) as emulator:
        await emulator.fetch("/1", retries=1)
        assert seconds(emulator) == 12
    async with Emulator(handler(tmp_path, "return Response('', status=429)")) as emulator:
        assert (await emulator.fetch("/", retries=3)).status_code == 429
        assert seconds(emulator) == 0


async def test_the_pause_passes_only_if_the_call_may_advance_time(tmp_path: Path) -> None:
    async with Emulator(flaky(tmp_path)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/1", retries=1, advance=False))
        await emulator.advance(10.999)
        await asyncio.sleep(0.01)
        assert not request.done()
        await emulator.advance(1.001)
        assert (await request).text == "2"


async def test_retries_below_zero_are_refused(tmp_path: Path) -> None:
    async with Emulator(flaky(tmp_path)) as emulator:
        with pytest.raises(ValueError, match="retries is -1"):
            await emulator.fetch("/", retries=-1)


@pytest.mark.parametrize(
    ("action", "error", "ran"),
    [
        ("crash_before", WorkerCrashed, 0),
        ("crash_after", WorkerCrashed, 1),
        ("lose_reply", ReplyLost, 1),
    ],
)
async def test_the_faults_of_a_request(
    tmp_path: Path, action: str, error: type[Exception], ran: int
) -> None:
    body = "await asyncio.sleep(2)\nprint('ran')\nreturn Response('ok')"
    plan = f"request.GET./x#1:{action}"
    async with Emulator(handler(tmp_path, body), faults=plan) as emulator:
        with pytest.raises(error, match="request GET /x"):
            await emulator.fetch("/x")
        assert len(emulator.logs) == ran
        assert seconds(emulator) == 2 * ran
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        # The next one is whole.
        assert (await emulator.fetch("/x")).text == "ok"


@pytest.mark.parametrize("action", ["crash_before", "crash_after", "lose_reply"])
async def test_a_patient_client_gets_over_each_of_them(tmp_path: Path, action: str) -> None:
    body = "await asyncio.sleep(2)\nreturn Response('ok')"
    plan = f"request.POST./*#1:{action}"
    async with Emulator(handler(tmp_path, body), faults=plan) as emulator:
        response = await emulator.fetch("/x", method="POST", retries=1)
        assert response.text == "ok"
        assert seconds(emulator) == (12 if action == "crash_before" else 14)
        assert list(emulator.findings) == []


async def test_a_crash_after_the_answer_runs_no_background_work(tmp_path: Path) -> None:
    body = """
        async def later():
            await asyncio.sleep(0)
            print("never")
        waitUntil(later())
        return Response("")
    """
    async with Emulator(handler(tmp_path, body), faults="request.GET./#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        await emulator.settle()
        assert list(emulator.logs) == []
        assert [task.state for task in emulator.background] == ["lost"]
        assert seconds(emulator) == 0  # nothing is left to wait for


async def test_a_planned_crash_takes_the_other_requests_too(tmp_path: Path) -> None:
    body = "await asyncio.sleep(5 if path == '/slow' else 1)\nreturn Response('')"
    plan = "request.GET./quick#1:crash_after"
    async with Emulator(handler(tmp_path, body), faults=plan) as emulator:
        slow = asyncio.ensure_future(emulator.fetch("/slow"))
        results = await asyncio.gather(slow, emulator.fetch("/quick"), return_exceptions=True)
        assert [type(result) for result in results] == [WorkerCrashed, WorkerCrashed]
        assert seconds(emulator) == 1


# -- inside the simulation -------------------------------------------------------------------------


async def test_a_mocks_callback_may_call_the_worker_in_place(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    """A webhook: the outside calls back while it is called."""
    body = """
        if path == "/hook":
            await asyncio.sleep(3)
            return Response("hooked", status=200 if "again" in request.url else 500)
        response = await fetch("https://partner.example/")
        return Response(await response.text())
    """
    async with Emulator(handler(tmp_path, body)) as emulator:

        async def partner(request: httpx.Request) -> httpx.Response:
            first = await emulator.fetch("/hook")
            again = await emulator.fetch("/hook", retries=2, wait=10, params={"again": "1"})
            through = await emulator.client.get("/hook")
            with pytest.raises(InsideSimulation):
                await emulator.advance(1)
            codes = (first.status_code, again.status_code, through.status_code)
            return httpx.Response(200, text=f"{codes} at {seconds(emulator)}")

        respx_mock.get("https://partner.example/").mock(side_effect=partner)
        emulator.findings.expect("handler_exception")
        assert (await emulator.fetch("/")).text == "(500, 200, 500) at 9.0"


async def test_retries_inside_the_simulation_pass_the_same_time(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    source = """
        import asyncio, state
        from urllib.parse import urlsplit
        from workers import Response, WorkerEntrypoint, fetch
        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                if request.url.endswith("/"):
                    return Response(await (await fetch("https://p.example/")).text())
                state.calls += 1
                return Response("", status=200 if state.calls > 2 else 500)
    """
    config = worker(tmp_path, source, {"state.py": "calls = 0"})
    async with Emulator(config) as emulator:

        async def partner(request: httpx.Request) -> httpx.Response:
            response = await emulator.fetch("/hook", retries=2, wait=7)
            return httpx.Response(200, text=f"{response.status_code}")

        respx_mock.get("https://p.example/").mock(side_effect=partner)
        assert (await emulator.fetch("/")).text == "200"
        assert seconds(emulator) == 14


# -- waiting for something -------------------------------------------------------------------------


async def test_run_until_refuses_an_asynchronous_predicate(tmp_path: Path) -> None:
    """A coroutine object is true, so it would seem to hold at once."""

    async def held() -> bool:
        return False

    async with Emulator(handler(tmp_path, ECHO)) as emulator:
        with pytest.raises(TypeError, match="synchronous predicate"):
            await emulator.run_until(held)
