"""Clients that speak HTTP/1.0, and such as close the half of the connection they send on."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wire import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from served_project import Project

GATED = """
import asyncio
from js import ReadableStream
from pyodide.ffi import to_js
from workers import Response, WorkerEntrypoint

waiting = []


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if "/open" in request.url:
            while waiting:
                waiting.pop().set()
            return Response("opened")
        if request.method == "POST":
            return Response("got " + await request.text())
        if "/whole" in request.url:
            return Response("whole")

        async def chunks():
            yield to_js(b"one ")
            while True:
                gate = asyncio.Event()
                waiting.append(gate)
                await gate.wait()
                yield to_js(b"two")
                if "/endless" not in request.url:
                    return
        return Response(ReadableStream.from_(chunks()))
"""


@contextmanager
def connected(server: ServerProcess) -> Iterator[socket.socket]:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as made:
        yield made


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """Read up to these bytes."""
    found = b""
    while end not in found:
        part = connection.recv(65536)
        assert part, found
        found += part
    return found


def rest(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_of_unknown_length_ends_with_the_connection_for_http_1_0(project: Project) -> None:
    """RFC 9112, 6.1: no chunks for a client that may not know them."""
    project.write("src/entry.py", GATED)
    with ServerProcess(project.path) as server:
        with connected(server) as connection:
            connection.sendall(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            answer = read_until(connection, b"one ")
            server.client.get("/open")
            head, _, body = (answer + rest(connection)).partition(b"\r\n\r\n")
            assert body == b"one two"
            assert b"transfer-encoding" not in head.lower()
            assert b"connection: close" in head.lower()
        with connected(server) as connection:
            connection.sendall(b"GET /whole HTTP/1.0\r\nExpect: 100-continue\r\n\r\n")
            head, _, body = rest(connection).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert b"content-length: 5" in head
            assert body == b"whole"
        with connected(server) as connection:
            connection.sendall(b"HEAD /stream HTTP/1.0\r\n\r\n")
            head, _, body = rest(connection).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert body == b""
        with connected(server) as connection:
            connection.sendall(b"GET /cdn-cgi/emulator/events HTTP/1.0\r\nHost: localhost\r\n\r\n")
            events = read_until(connection, b"workers-emulator\n\n").lower()
            assert b"transfer-encoding" not in events
        assert server.stop() == 0
        assert not [line for line in server.lines if "Traceback" in line.get("server", "")]


def test_a_client_that_sends_no_more_is_answered(project: Project) -> None:
    project.write("src/entry.py", GATED)
    with ServerProcess(project.path) as server:
        with connected(server) as connection:
            connection.sendall(
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
                b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
            )
            connection.shutdown(socket.SHUT_WR)
            answer = read_until(connection, b"one ")
            server.client.get("/open")
            answer += rest(connection)
            assert answer.count(b"HTTP/1.1 200 OK") == 2
            assert b"got body" in answer
            assert answer.endswith(b"4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n")
        with connected(server) as connection:
            connection.sendall(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = read_until(connection, b"one ")
            connection.shutdown(socket.SHUT_WR)  # while it is answered
            server.client.get("/open")
            assert (answer + rest(connection)).endswith(b"3\r\ntwo\r\n0\r\n\r\n")
        with connected(server) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\ncut")
            connection.shutdown(socket.SHUT_WR)
            assert rest(connection) == b""
        assert server.stop() == 0


def test_a_client_that_leaves_a_stream_is_noticed_when_it_is_written_to(project: Project) -> None:
    project.write("src/entry.py", GATED)
    with ServerProcess(project.path) as server:
        with connected(server) as connection:
            connection.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            read_until(connection, b"one ")
        noticed = threading.Event()

        def go_on() -> None:
            while not noticed.is_set():
                server.client.get("/open")

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            server.wait(lambda line: line.get("kind") == "disconnect")
        finally:
            noticed.set()
            thread.join(60)
        assert server.stop() == 0
