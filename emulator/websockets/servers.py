"""WebSocket servers outside, which a test stands in for: `emulator.mock_websocket`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from emulator.errors import WebSocketClosed
from emulator.websockets.client import WebSocket
from emulator.websockets.line import Line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.kernel import Kernel

    Handler = Callable[[WebSocket], Awaitable[object]]


def asks_for_socket(request: httpx.Request) -> bool:
    """Whether a request asks for a WebSocket."""
    asked: str = request.headers.get("upgrade", "")
    return asked.lower() == "websocket"


class Servers:
    """The servers of one emulator, by their URL without the query."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._handlers: dict[str, Handler] = {}

    def add(self, url: str, handler: Handler) -> None:
        """Let a coroutine function serve the connections to a URL."""
        self._handlers[_address(httpx.URL(url))] = handler

    def clear(self) -> None:
        """Forget all of them."""
        self._handlers.clear()

    def answer(self, request: httpx.Request) -> httpx.Response | None:
        """Open a connection, if the request asks for one and there is a server for it."""
        if not asks_for_socket(request):
            return None
        handler = self._handlers.get(_address(request.url))
        if handler is None:
            return None
        line = Line(self._kernel)
        response = httpx.Response(101, request=request, extensions={"socket": line.first})
        subject = self._kernel.numbered(f"websocket {request.url.host}{request.url.path}")
        socket = WebSocket(self._kernel, line.second, subject, str(request.url), response)
        self._kernel.loop.spawn_kernel(self._serve(handler, socket), subject)
        return response

    async def _serve(self, handler: Handler, socket: WebSocket) -> None:
        await socket.opened()
        try:
            await handler(socket)
        except WebSocketClosed:
            return
        except Exception as error:
            self._kernel.loop.abort(error)  # the test's own
            return
        await socket.close()


def _address(url: httpx.URL) -> str:
    scheme = {"ws": "http", "wss": "https"}.get(url.scheme, url.scheme)
    return f"{scheme}://{url.netloc.decode()}{url.path}"
