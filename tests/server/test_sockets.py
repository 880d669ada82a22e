"""WebSocket connections through the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from wire import ServerProcess

if TYPE_CHECKING:
    from served_project import Project, Served

pytestmark = pytest.mark.asyncio

CHAT = """
from js import WebSocketPair
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.headers["upgrade"] != "websocket":
            return Response("no socket", status=426)
        if "/refuse" in request.url:
            return Response("not you", status=403, headers={"x-why": "rules"})
        client, server = WebSocketPair.new().object_values()
        server.accept()

        def answer(event):
            if event.data == "bye":
                server.close(4001, "as you wish")
            elif event.data == "break":
                raise ValueError("broken")
            elif isinstance(event.data, str):
                server.send(f"echo: {event.data}")
            else:
                server.send(to_js(b"bytes"))

        def closed(event):
            print("closed with", event.code, event.reason)

        server.addEventListener("message", create_proxy(answer))
        server.addEventListener("close", create_proxy(closed))
        headers = {"sec-websocket-protocol": "chat"} if "/chat" in request.url else {}
        return Response(None, status=101, web_socket=client, headers=headers)
"""


class Client:
    """A client of an ASGI application that speaks its WebSocket protocol."""

    def __init__(self, served: Served, path: str) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        headers = {"host": "localhost:8787", "upgrade": "websocket", "connection": "Upgrade"}
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50000),
        }
        self.sent.put_nowait({"type": "websocket.connect"})
        application: Any = served.application
        self.task = asyncio.ensure_future(application(scope, self.sent.get, self.received.put))

    def send(self, **message: Any) -> None:
        self.sent.put_nowait({"type": "websocket.receive", **message})

    def leave(self, code: int, reason: str = "") -> None:
        self.sent.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})

    async def receive(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.received.get(), 10)


async def test_messages_go_both_ways(project: Project) -> None:
    project.write("src/entry.py", CHAT)
    async with project.served() as served:
        client = Client(served, "/chat")
        accepted = await client.receive()
        assert accepted["type"] == "websocket.accept"
        assert accepted["subprotocol"] == "chat"
        client.send(text="hello")
        assert (await client.receive())["text"] == "echo: hello"
        client.send(bytes=b"\0\1")
        assert (await client.receive())["bytes"] == b"bytes"
        client.send(text="bye")
        close = await client.receive()
        assert (close["code"], close["reason"]) == (4001, "as you wish")
        await asyncio.wait_for(client.task, 10)
        assert served.desk.sockets == {}


async def test_a_client_that_closes_or_vanishes_is_heard_of(project: Project) -> None:
    project.write("src/entry.py", CHAT)
    async with project.served() as served:
        for code, reason, heard in ((4002, "done", "4002 done"), (1006, "", "1006")):
            client = Client(served, "/")
            await client.receive()
            client.leave(code, reason)
            await asyncio.wait_for(client.task, 10)
            assert served.logs[-1].startswith(f"closed with {heard}")


async def test_a_listener_that_raises_breaks_the_connection(project: Project) -> None:
    project.write("src/entry.py", CHAT)
    async with project.served() as served:
        client = Client(served, "/")
        await client.receive()
        client.send(text="break")
        await asyncio.wait_for(client.task, 10)
        assert client.received.empty()


async def test_a_refusal_is_the_workers_answer(project: Project) -> None:
    project.write("src/entry.py", CHAT)
    async with project.served() as served:
        client = Client(served, "/refuse")
        start, body = await client.receive(), await client.receive()
        assert start["status"] == 403
        assert (b"x-why", b"rules") in start["headers"]
        assert body["body"] == b"not you"


async def test_code_that_does_not_load_refuses_connections(project: Project) -> None:
    project.write("src/entry.py", "def broken(:\n")
    async with project.served() as served:
        client = Client(served, "/")
        assert (await client.receive())["status"] == 500


async def test_connections_of_replaced_code_end_so_that_clients_come_back(
    project: Project,
) -> None:
    project.write("src/entry.py", CHAT)
    async with project.served(grace=0.01) as served:
        client = Client(served, "/")
        await client.receive()
        project.write("src/entry.py", CHAT.replace("echo", "new"))
        await served.desk.reload(settings=False)
        await asyncio.wait_for(client.task, 10)
        again = Client(served, "/")
        await again.receive()
        again.send(text="hello")
        assert (await again.receive())["text"] == "new: hello"
        again.leave(1000)
        await asyncio.wait_for(again.task, 10)


async def test_a_real_client_talks_over_the_network(project: Project) -> None:
    project.write("src/entry.py", CHAT)
    with ServerProcess(project.path) as server:
        url = server.url.replace("http", "ws")
        async with connect(url + "/chat", subprotocols=["chat"]) as socket:  # type: ignore[list-item]
            assert socket.subprotocol == "chat"
            await socket.send("hello")
            assert await socket.recv() == "echo: hello"
            await socket.send("bye")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "as you wish")
        with pytest.raises(InvalidStatus, match="403"):
            await connect(url + "/refuse")
        async with connect(url) as socket:
            await socket.send("break")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is None
        assert server.stop() == 0
