"""Requests over a socket: what is answered without a task, and what becomes of all others."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from served_project import until
from uvicorn.server import ServerState

from emulator.server.connections import Connection
from emulator.server.serving import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from served_project import Project, Served

# A request that is never answered is a failure, too.
pytestmark = pytest.mark.timeout(60)

WORKER = """
import asyncio
from js import ReadableStream
from pyodide.ffi import to_js
from workers import Response, WorkerEntrypoint

gate = asyncio.Event()


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        path = "/" + request.url.split("/", 3)[3]
        if path == "/echo":
            return Response(await request.text(), status=201)
        if path == "/headers":
            pairs = [("x-one", "1"), ("x-one", "2"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]
            return Response("with headers", headers=pairs)
        if path == "/umlaut":
            return Response("ü", headers={"x-name": "ü"})
        if path == "/empty":
            return Response(None, status=204)
        if path == "/unmodified":
            return Response(None, status=304)
        if path == "/nothing":
            return Response("")
        if path == "/strange":
            return Response("strange", status=499, status_text="Very Strange")
        if path == "/gzip":
            return Response("x" * 500, headers={"content-encoding": "gzip"})
        if path == "/wrong":
            raise ValueError("no")
        if path == "/slow":
            print("waiting")
            await gate.wait()
            return Response("slow")
        if path == "/stream":
            async def chunks():
                yield to_js(b"one ")
                print("one is sent")
                await gate.wait()
                yield to_js(b"two")
            return Response(ReadableStream.from_(chunks()))
        if path == "/open":
            gate.set()
        return Response(f"{request.method} {path}")
"""
PATHS = (
    *("/", "/?a=b&c", "/a%20b", "/headers", "/umlaut", "/empty", "/unmodified", "/nothing"),
    *("/strange", "/gzip", "/wrong", "/cdn-cgi/else"),
)


class Wire:
    """A socket of a server in this process."""

    def __init__(self, port: int, state: ServerState) -> None:
        self.port = port
        self.state = state

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def tasks(self) -> int:
        """How many requests have a task of their own."""
        return len(self.state.tasks)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, sent: bytes, *, until_closed: bool = True) -> bytes:
        """Send bytes over a connection of their own; return all that comes back."""
        reader, writer = await self.connect()
        writer.write(sent)
        try:
            return await asyncio.wait_for(reader.read(), 10) if until_closed else b""
        finally:
            writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection, so that the other side hears of it at once."""
    made = writer.get_extra_info("socket")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def listening(served: Served) -> AsyncIterator[Wire]:
    """Serve over a socket, as `dev` does."""
    config = Server(served.application, lambda text: None, drain=1).config
    config.load()
    state = ServerState()
    made = await asyncio.get_running_loop().create_server(
        lambda: Connection(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with made:
        yield Wire(made.sockets[0].getsockname()[1], state)


@pytest.fixture
def project(project: Project) -> Project:
    project.write("src/entry.py", WORKER)
    return project


def request(path: str, *lines: str, method: str = "GET", body: bytes = b"") -> bytes:
    length = [f"content-length: {len(body)}"] if body else []
    head = "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *length, *lines])
    return f"{head}\r\n\r\n".encode() + body


def told(response: httpx.Response) -> dict[str, Any]:
    headers = [pair for pair in response.headers.raw if pair[0].lower() != b"date"]
    return {"status": response.status_code, "headers": headers, "body": response.content}


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
async def test_every_answer_is_that_of_the_application(project: Project, method: str) -> None:
    async with (
        project.served() as served,
        listening(served) as wire,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        body = {"content": b"h\xc3\xa4llo"} if method in ("POST", "PUT") else {}
        headers = {"host": "localhost:8787", "accept-encoding": "identity"}
        for path in (*PATHS, *(["/echo"] if body else [])):
            # The request itself is the same: the host too, which the URL would name otherwise.
            direct = await client.request(method, wire.url + path, headers=headers, **body)
            usual = await served.client.request(method, path, headers=headers, **body)
            assert told(direct) == told(usual), path


@pytest.mark.asyncio
async def test_a_request_that_waits_has_no_task_and_others_go_on(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        reader, writer = await wire.connect()
        writer.write(request("/slow"))
        await until(lambda: served.logs == ["waiting"])
        assert wire.tasks == 0
        assert list(served.desk.open.values()) == ["GET http://localhost/slow"]
        answer = await wire.exchange(request("/open", "connection: close"))
        assert answer.endswith(b"GET /open")
        assert (await reader.readuntil(b"slow")).startswith(b"HTTP/1.1 200 OK\r\n")
        assert not served.desk.open
        writer.close()


@pytest.mark.asyncio
async def test_an_answer_that_is_a_stream_goes_on_in_a_task(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        reader, writer = await wire.connect()
        writer.write(request("/stream"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert await reader.readuntil(b"one \r\n") == b"4\r\none \r\n"
        assert wire.tasks == 1
        writer.write(request("/open"))  # pipelined: its turn comes after the stream
        await served.client.get("/open")
        assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
        assert (await reader.readuntil(b"GET /open")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
    assert not served.desk.open
    assert wire.tasks == 0


@pytest.mark.asyncio
async def test_requests_of_one_segment_are_answered_in_their_order(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        parts = [request(f"/{number}", method="PUT", body=b"x" * number) for number in range(20)]
        answer = await wire.exchange(b"".join(parts) + request("/end", "connection: close"))
        bodies = [part.partition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK")[1:]]
        assert bodies == [*(f"PUT /{number}".encode() for number in range(20)), b"GET /end"]


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, 65_536, 65_537, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_of_any_size_arrives_in_pieces(
    project: Project, size: int, chunked: bool
) -> None:
    body = bytes(ord("a") + number % 26 for number in range(size))
    async with project.served() as served, listening(served) as wire:
        reader, writer = await wire.connect()
        if chunked:
            lines = ["transfer-encoding: chunked"]
            sent = b"%x\r\n" % size + body + b"\r\n0\r\n\r\n"
        else:
            lines, sent = [f"content-length: {size}"], body
        writer.write(request("/echo", *lines, "connection: close", method="POST"))
        for start in range(0, len(sent), 700_001):
            await asyncio.sleep(0)
            writer.write(sent[start : start + 700_001])
        answer = await asyncio.wait_for(reader.read(), 30)
        assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
        assert answer.partition(b"\r\n\r\n")[2] == body
        writer.close()


@pytest.mark.asyncio
async def test_a_client_that_asks_first_whether_to_send_is_told_to_go_on(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        reader, writer = await wire.connect()
        lines = ("content-length: 5", "expect: 100-continue", "connection: close")
        writer.write(request("/echo", *lines, method="POST"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert (await reader.read()).endswith(b"\r\n\r\nhello")
        writer.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("first", ["GET / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nconnection: close\r\n"])
async def test_a_connection_is_closed_where_the_client_wants_it(
    project: Project, first: str
) -> None:
    async with project.served() as served, listening(served) as wire:
        answer = await wire.exchange(f"{first}host: localhost\r\n\r\n".encode())
        assert b"\r\nconnection: close\r\n" in answer
        assert answer.endswith(b"GET /")


@pytest.mark.asyncio
async def test_a_client_that_leaves_before_the_answer_leaves_nothing_behind(
    project: Project,
) -> None:
    async with project.served() as served, listening(served) as wire:
        for path in ("/slow", "/stream"):
            before = len(served.logs)
            reader, writer = await wire.connect()
            writer.write(request(path))
            await until(lambda before=before: len(served.logs) > before)
            if path == "/stream":
                await reader.readuntil(b"one \r\n")
            reset(writer)
            await until(lambda: not wire.state.connections)
        await served.client.get("/open")
        await until(lambda: not served.desk.open and not wire.tasks)
        kinds = [event.kind for event in served.desk.emulator.trace if "/slow" in event.subject]
        assert kinds == ["request", "log", "response"], "the handler went on"
        assert "disconnect" in {event.kind for event in served.desk.emulator.trace}


@pytest.mark.asyncio
async def test_a_body_that_never_comes_is_no_request(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        _, writer = await wire.connect()
        writer.write(request("/echo", "content-length: 5", method="POST") + b"hel")
        await until(lambda: wire.state.connections)
        writer.transport.abort()
        await until(lambda: not wire.state.connections)
        assert not served.desk.open
        assert not list(served.desk.emulator.trace)


@pytest.mark.asyncio
async def test_faults_strike_what_is_answered_directly(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        emulator = served.desk.emulator
        for plan, status in (
            ("request.GET./lost#1:lose_reply", b"502"),
            ("request.GET./before#1:crash_before", b"502"),
            ("request.GET./after#1:crash_after", b"200"),
        ):
            emulator.faults.add(plan)
            path = plan.split("#")[0].removeprefix("request.GET.")
            answer = await wire.exchange(request(path, "connection: close"))
            assert answer.startswith(b"HTTP/1.1 " + status), plan


@pytest.mark.asyncio
async def test_where_no_worker_answers_a_page_says_why(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        unknown = await wire.exchange(request("/", "emulator-worker: no", "connection: close"))
        assert unknown.startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert b"there is no Worker 'no'" in unknown
        project.write("src/entry.py", "this is no Python")
        await served.desk.reload(settings=False)
        broken = await wire.exchange(request("/", "connection: close"))
        assert broken.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert b"SyntaxError" in broken
        project.write("src/entry.py", WORKER)
        await served.desk.reload(settings=False)
        mended = await wire.exchange(request("/", "connection: close"))
        assert mended.endswith(b"GET /")


@pytest.mark.asyncio
async def test_a_request_under_way_ends_with_its_emulator(project: Project) -> None:
    async with project.served() as served, listening(served) as wire:
        reader, writer = await wire.connect()
        writer.write(request("/slow"))
        await until(lambda: served.logs == ["waiting"])
        served.desk.close()
        answer = await reader.readuntil(b"closed")
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        writer.close()


class Clock:
    """A loop of which a connection wants no more than the time and timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        entry = (self.now + delay, callback)
        self.timers.append(entry)
        clock = self

        class Timer:
            def cancel(self) -> None:
                clock.timers.remove(entry)

        return Timer()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """What was written is sent by the connection itself."""

    def advance(self, to: float) -> None:
        while self.timers and min(self.timers)[0] <= to:
            entry = min(self.timers, key=lambda timer: timer[0])
            self.timers.remove(entry)
            self.now = entry[0]
            entry[1]()
        self.now = to


class Transport(asyncio.Transport):
    closed = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write(self, data: object) -> None:
        """Nobody looks at it."""

    def resume_reading(self) -> None:
        """It never stopped."""


@pytest.mark.asyncio
async def test_an_idle_connection_is_kept_for_five_seconds(project: Project) -> None:
    async with project.served() as served:
        config = Server(served.application, lambda text: None, drain=1).config
        config.load()
        clock, transport = Clock(), Transport()
        connection = Connection(
            config=config, server_state=ServerState(), app_state={}, _loop=clock
        )
        connection.connection_made(transport)

        async def ask(sent: bytes) -> None:
            connection.data_received(sent)
            await until(lambda: connection.cycle.response_complete)

        assert config.timeout_keep_alive == 5
        await ask(request("/"))
        clock.advance(4)
        await ask(request("/"))
        clock.advance(8.9)
        assert not transport.closed, "5 s begin with the last answer"
        # The first half of a request: the connection is in use.
        connection.data_received(request("/")[:20])
        clock.advance(60)
        assert not transport.closed
        await ask(request("/")[20:])
        clock.advance(64.9)
        assert not transport.closed
        clock.advance(65)
        assert transport.closed
        connection.connection_lost(None)
        assert not clock.timers


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "hosts", [["["], ["]["], ["a b"], ["a:99999999"], ["a:65536"], ["localhost", "evil"], ["\xfc"]]
)
async def test_a_host_that_is_none_is_a_bad_request(project: Project, hosts: list[str]) -> None:
    async with project.served() as served, listening(served) as wire:
        lines = "".join(f"host: {host}\r\n" for host in hosts)
        for path in ("/", "/cdn-cgi/emulator/status"):
            answer = await wire.exchange(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
            assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert not list(served.desk.emulator.trace)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["localhost", "a.example:8787", "[::1]:80", "x_y", "127.0.0.1:"])
async def test_a_host_that_is_one_is_served(project: Project, host: str) -> None:
    async with project.served() as served, listening(served) as wire:
        lines = f"host: {host}\r\nconnection: close\r\n"
        answer = await wire.exchange(f"GET / HTTP/1.1\r\n{lines}\r\n".encode())
        assert answer.endswith(b"GET /")
