"""`asgi.websocket`: an application's end of a connection, in both generations of the SDK.

Rules (the SDK 1.9.5; workerd's frozen `asgi.py`):

1. The socket is accepted before the application is asked; `websocket.accept` does nothing.
2. The frozen SDK gives binary messages as `text`, never tells of a Close, has an empty `env`, and
   logs what it does not know: `websocket.accept` and `websocket.close`.
3. The newer one closes the connection when the application has returned, with 1011 if it raised.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from emulator.runtime.context import wait_until_current
from emulator.runtime.pyproxy import python_function
from emulator.runtime.sdk.asgi_lifespan import run_in_background
from emulator.runtime.sdk.js_values import wrap
from emulator.runtime.web.response import Response
from emulator.runtime.web.websocket import WebSocket, WebSocketPair
from emulator.values import UNDEFINED

if TYPE_CHECKING:
    from emulator.runtime.sdk.asgi_request import App, Message

logger = logging.getLogger("asgi")

_UNKNOWN = " == Not implemented %s"


class _Connection:
    """What an application reads and writes, of the connection that `server` is an end of."""

    def __init__(self, server: Any) -> None:  # whose handlers are of any type, in JavaScript
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._messages.put_nowait({"type": "websocket.connect"})
        self._server = server
        self._closed = False
        self._server.onmessage = python_function(self._on_message)

    async def receive(self) -> Message:
        """Give the application the next thing that happened."""
        return await self._messages.get()

    def watch_close(self) -> None:
        """Tell the application of a Close, and give it binary messages as bytes."""
        self._server.binaryType = "arraybuffer"
        self._server.onmessage = python_function(self._on_any_message)
        self._server.onclose = python_function(self._on_close)

    def _on_message(self, event: Any) -> None:
        self._messages.put_nowait({"type": "websocket.receive", "text": event.data})

    def _on_any_message(self, event: Any) -> None:
        data = event.data
        part = {"text": data} if isinstance(data, str) else {"bytes": data.to_bytes()}
        self._messages.put_nowait({"type": "websocket.receive", **part})

    def _on_close(self, event: Any) -> None:
        facts = {"code": event.code, "reason": event.reason}
        self._messages.put_nowait({"type": "websocket.disconnect", **facts})

    async def send(self, message: Message) -> None:
        """Take what the application does."""
        kind = message["type"]
        if kind == "websocket.send":
            self._send(message, empty=True)
        elif kind == "websocket.close":
            self._closed = True
            self._server.close(message.get("code", 1000), message.get("reason", ""))
        elif kind != "websocket.accept":
            logger.warning(_UNKNOWN, kind)

    async def send_frozen(self, message: Message) -> None:
        """Take what the application does, as the frozen SDK does."""
        if message["type"] == "websocket.send":
            self._send(message, empty=False)
        else:
            logger.warning(_UNKNOWN, message["type"])

    def _send(self, message: Message, *, empty: bool) -> None:
        data, text = message.get("bytes"), message.get("text")
        if data or (empty and data is not None):
            self._server.send(bytes(data))
        if text or (empty and text is not None):
            self._server.send(text)

    def end(self, task: asyncio.Future[Any]) -> None:
        """Close the connection when the application has left it open."""
        if self._closed:
            return
        failed = not task.cancelled() and task.exception() is not None
        try:
            self._server.close(1011 if failed else 1000, "")
        except Exception:
            pass  # the other end may have gone


def _open() -> tuple[_Connection, Any]:
    client, server = WebSocketPair()
    server.accept(UNDEFINED)
    return _Connection(server), client


def _answer(client: WebSocket) -> Any:
    return wrap(Response.js_new(None, {"status": 101, "webSocket": client}))


def connect(app: App, scope: dict[str, Any]) -> Any:
    """Connect an application; returns the response that opens the connection."""
    connection, client = _open()
    connection.watch_close()
    task = run_in_background(app(scope, connection.receive, connection.send))
    task.add_done_callback(connection.end)
    wait_until_current(task)
    return _answer(client)


def connect_frozen(app: App, scope: dict[str, Any]) -> Any:
    """Connect an application as the frozen SDK does."""
    connection, client = _open()
    run_in_background(app(scope, connection.receive, connection.send_frozen))
    return _answer(client)
