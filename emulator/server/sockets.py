"""WebSocket connections between the network and Workers.

A Worker that answers with something else than 101 refuses the connection, with this answer. A
connection that breaks on one side breaks on the other: without a Close, which clients see as 1006.
A new Worker answers new connections; those of replaced code end with it, so that clients come back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator import client as http
from emulator.errors import EmulatorClosed, StateError, WebSocketClosed
from emulator.runtime.host import WebRequest
from emulator.server.asked import Asked, sent
from emulator.server.failures import NO_ANSWER, failure
from emulator.server.problem import NotRunning
from emulator.websockets.client import WebSocket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.pump import Pump
    from emulator.recording.watching import SocketWatch
    from emulator.server.desk import Desk
    from emulator.server.pages import Page

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

_GONE: Final = 1006
_NO_CODE: Final = 1005
_NORMAL: Final = 1000


class Sockets:
    """The way of WebSocket connections to the Workers of a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection to its end."""
        await receive()  # websocket.connect
        watch = None
        if self._desk.recorder is not None:
            watch = self._desk.recorder.socket(receive, send)
            receive, send = watch.receive, watch.send
        try:
            socket = await self._connect(Asked.of(scope), send, watch)
        except NO_ANSWER as error:
            await _refuse(failure(error, self._desk.masker()), send)
            return
        if socket is not None:
            await self._serve(socket, receive, send)

    async def _connect(
        self, asked: Asked, send: Send, watch: SocketWatch | None
    ) -> WebSocket | None:
        """Open the connection to the Worker; None where it refuses."""
        desk = self._desk
        if desk.problem is not None:
            raise NotRunning(desk.problem)
        kernel = desk.platform.kernel
        worker = desk.routing.worker(asked.host, asked.path, asked.named)
        request = WebRequest("GET", asked.url, asked.headers, b"")
        if watch is not None:
            watch.begin(worker, request)
        exchange = desk.dispatch(worker, request, socket=True)
        name = f"WebSocket {asked.url}"
        await http.reach(kernel.pump, exchange, name, lambda: exchange.answered, advance=False)
        if exchange.error is not None:
            await _refuse(failure(exchange.error, desk.masker()), send)
            return None
        response = http.response(request, exchange.response)
        if exchange.socket is None:
            await _answer(response.status_code, sent(exchange.response.headers), response, send)
            return None
        socket = WebSocket(kernel, exchange.socket, exchange.subject, asked.url, response)
        await socket.opened()
        headers = [
            pair
            for pair in sent(exchange.response.headers)
            if not pair[0].startswith((b"sec-websocket-", b"upgrade", b"content-length"))
        ]
        accept = {"type": "websocket.accept", "subprotocol": socket.subprotocol}
        await send({**accept, "headers": headers})
        return socket

    async def _serve(self, socket: WebSocket, receive: Receive, send: Send) -> None:
        pump = self._desk.platform.kernel.pump
        self._desk.sockets[socket] = None
        coming = asyncio.create_task(_to_worker(socket, receive))
        try:
            await _to_client(socket, pump, send)
        except (EmulatorClosed, StateError):
            pass  # the connection breaks
        finally:
            del self._desk.sockets[socket]
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def _to_client(socket: WebSocket, pump: Pump, send: Send) -> None:
    """Pass on what the Worker sends, until one side closes the connection."""
    while True:
        try:
            message = await socket.receive(advance=False)
        except WebSocketClosed:
            break
        await pump.may_leave()
        kind = "text" if isinstance(message, str) else "bytes"
        await send({"type": "websocket.send", kind: message})
    end = socket.closed
    if end is not None and end.clean:
        code = _NORMAL if end.code == _NO_CODE else end.code
        await send({"type": "websocket.close", "code": code, "reason": end.reason})
    # Else this returns without a Close, and the server breaks the connection.


async def _to_worker(socket: WebSocket, receive: Receive) -> None:
    """Pass on what the client sends, until it leaves."""
    while True:
        message = await receive()
        try:
            if message["type"] == "websocket.receive":
                text = message.get("text")
                await socket.send(message["bytes"] if text is None else text)
            elif message.get("code", _NO_CODE) == _GONE:
                await socket.disconnect()
                return
            else:
                await socket.close(message.get("code", _NO_CODE), message.get("reason") or "")
                return
        except (WebSocketClosed, EmulatorClosed):
            return


async def _refuse(page: Page, send: Send) -> None:
    await _answer(page.status, [(b"content-type", page.content_type.encode())], page.body, send)


async def _answer(status: int, headers: list[tuple[bytes, bytes]], body: Any, send: Send) -> None:
    content = body if isinstance(body, bytes) else body.content
    start = {"type": "websocket.http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": content})
