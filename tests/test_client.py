"""`emulator.client`: an httpx client in front of the Worker, streaming included."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest
from worker_files import handler

from emulator import Emulator, ReplyLost, WorkerCrashed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
# Five chunks, ten seconds apart; the query says what goes wrong.
STREAM = """
    from js import ReadableStream
    from pyodide.ffi import to_js
    async def chunks():
        try:
            for n in range(5):
                if n == 3 and "fail" in request.url:
                    raise ValueError("in the middle")
                yield to_js(f"{n}".encode())
                await asyncio.sleep(10)
        finally:
            print("closed")
    return Response(ReadableStream.from_(chunks()), headers={"x-kind": "stream"})
"""


def seconds(emulator: Emulator) -> float:
    return (emulator.now - START).total_seconds()


async def test_it_is_an_httpx_client_with_its_cookies_and_defaults(tmp_path: Path) -> None:
    body = """
        if path == "/login":
            return Response("", headers={"set-cookie": "session=s1; Path=/"})
        if path == "/old":
            return Response("", status=302, headers={"location": "/new"})
        return Response.json([path, request.method, request.headers["cookie"]])
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        client = emulator.client
        assert client is emulator.client
        assert client.base_url == "http://localhost"
        assert (await client.get("/a")).json() == ["/a", "GET", None]
        await client.get("/login")
        assert (await client.post("/b", json={})).json() == ["/b", "POST", "session=s1"]
        assert (await client.get("/old")).status_code == 302
        followed = await client.get("/old", follow_redirects=True)
        assert followed.json()[0] == "/new"
        assert followed.history[0].status_code == 302


async def test_a_client_that_was_closed_is_followed_by_a_new_one(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, 'return Response("ok")')) as emulator:
        assert emulator.client is emulator.client
        for _ in range(2):
            async with emulator.client as client:
                assert (await client.get("/")).text == "ok"


async def test_proxies_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    async with Emulator(handler(tmp_path, "return Response('direct')")) as emulator:
        assert (await emulator.client.get("/")).text == "direct"


async def test_respx_leaves_the_client_alone_where_it_mocks_the_outside(
    tmp_path: Path, respx_mock: object
) -> None:
    async with Emulator(handler(tmp_path, "return Response('the Worker')")) as emulator:
        assert (await emulator.client.get("/")).text == "the Worker"


async def test_a_stream_brings_each_chunk_at_its_time(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        seen = []
        async with emulator.client.stream("GET", "/") as response:
            assert response.headers["x-kind"] == "stream"
            assert seconds(emulator) == 0
            seen = [(chunk, seconds(emulator)) async for chunk in response.aiter_raw()]
        assert seen == [(b"0", 0), (b"1", 10), (b"2", 20), (b"3", 30), (b"4", 40)]
        assert seconds(emulator) == 50  # the end of the body
        assert [log.text for log in emulator.logs] == ["closed"]


async def test_the_clock_stands_still_between_the_chunks(tmp_path: Path) -> None:
    emulator = Emulator(handler(tmp_path, STREAM))
    async with emulator, emulator.client.stream("GET", "/") as response:
        chunks = response.aiter_raw()
        assert await anext(chunks) == b"0"
        await asyncio.sleep(0.01)
        assert seconds(emulator) == 0


async def test_leaving_a_stream_ends_the_body_and_keeps_the_background(tmp_path: Path) -> None:
    body = """
    async def later():
        await asyncio.sleep(20)
        print("background")
    waitUntil(later())
""" + STREAM.replace("range(5)", "range(1_000_000)")
    async with Emulator(handler(tmp_path, body)) as emulator:
        async with emulator.client.stream("GET", "/") as response:
            async for chunk in response.aiter_raw():
                if chunk == b"1":
                    break
        await emulator.settle()
        assert [(log.text, log.at.second) for log in emulator.logs] == [
            ("closed", 10),
            ("background", 20),
        ]
        assert "disconnect" in emulator.trace.render()
        assert list(emulator.findings) == []


async def test_a_client_that_reads_slowly_slows_an_endless_body_down(tmp_path: Path) -> None:
    body = """
        from js import ReadableStream
        from pyodide.ffi import to_js
        import state
        async def chunks():
            while True:
                state.made += 1
                yield to_js(b"x")
        if path == "/made":
            return Response(str(state.made))
        return Response(ReadableStream.from_(chunks()))
    """
    config = handler(tmp_path, body, files={"state.py": "made = 0"})
    async with Emulator(config) as emulator:
        async with emulator.client.stream("GET", "/") as response:
            chunks = response.aiter_raw()
            for _ in range(100):
                assert await anext(chunks) == b"x"
            made = int((await emulator.fetch("/made")).text)
        assert 100 <= made <= 125
        await emulator.settle()


async def test_a_body_that_fails_in_the_middle_breaks_off_there(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        async with emulator.client.stream("GET", "/?fail") as response:
            chunks = response.aiter_raw()
            assert [await anext(chunks) for _ in range(3)] == [b"0", b"1", b"2"]
            with pytest.raises(httpx.RemoteProtocolError, match="the body broke off"):
                await anext(chunks)
        assert response.status_code == 200
        assert seconds(emulator) == 30
        assert [finding.code for finding in emulator.findings] == ["handler_exception"]


async def test_a_crash_in_the_middle_of_a_stream_reaches_its_reader(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        async with emulator.client.stream("GET", "/") as response:
            chunks = response.aiter_raw()
            assert await anext(chunks) == b"0"
            await emulator.crash()
            with pytest.raises(WorkerCrashed):
                await anext(chunks)
        assert list(emulator.logs) == []  # no `finally` after a power cut


async def test_the_faults_of_a_request_strike_the_client_too(tmp_path: Path) -> None:
    plan = "request.GET./a#1:lose_reply; request.GET./b#1:crash_after"
    async with Emulator(handler(tmp_path, STREAM), faults=plan) as emulator:
        with pytest.raises(ReplyLost):
            await emulator.client.get("/a")
        assert seconds(emulator) == 50
        with pytest.raises(WorkerCrashed):
            await emulator.client.get("/b")
        assert seconds(emulator) == 100


async def test_closing_the_emulator_ends_a_stream(tmp_path: Path) -> None:
    emulator = Emulator(handler(tmp_path, STREAM))
    async with emulator.client.stream("GET", "/") as response:
        chunks = response.aiter_raw()
        assert await anext(chunks) == b"0"
        emulator.close()
        with pytest.raises(WorkerCrashed):
            await anext(chunks)


async def test_a_lost_body_does_not_keep_the_test_waiting(tmp_path: Path) -> None:
    """Cancelling the read is a disconnect as well."""
    async with Emulator(handler(tmp_path, STREAM)) as emulator:
        with emulator.hold(), pytest.raises(TimeoutError):
            await asyncio.wait_for(emulator.client.get("/"), 0.05)
        await emulator.settle()
        assert seconds(emulator) == 0
        assert [log.text for log in emulator.logs] == ["closed"]


async def test_the_client_works_from_one_loop_after_another(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "return Response('ok')")) as emulator:
        assert await _get(emulator) == "ok"
        assert await asyncio.to_thread(asyncio.run, _get(emulator)) == "ok"
        assert await _get(emulator) == "ok"


async def _get(emulator: Emulator) -> str:
    return (await emulator.client.get("/")).text


@pytest.mark.parametrize(
    "empty",
    [
        'Response("").body',
        'Response(b"").body',
        'Response(Response("").body).body',
        "ReadableStream.from_(nothing())",
    ],
)
@pytest.mark.parametrize("status", [200, 302, 404])
async def test_a_streamed_body_may_turn_out_empty(tmp_path: Path, empty: str, status: int) -> None:
    body = f"""
    from js import ReadableStream
    async def nothing():
        return
        yield
    return Response({empty}, status={status}, headers={{"location": "/x"}})
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, response.content) == (status, b"")
        assert response.headers["location"] == "/x"
        # The runtime knows the length of a stream whose bytes are all there.
        if "from_" in empty:
            assert response.headers["transfer-encoding"] == "chunked"
            assert "content-length" not in response.headers
        else:
            assert response.headers["content-length"] == "0"
            assert "transfer-encoding" not in response.headers
        assert (await emulator.client.get("/")).content == b""
