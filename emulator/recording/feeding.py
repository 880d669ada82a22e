"""Clients that are not there: what they sent is handed to the server's application again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from emulator.server.routing import HEADER

if TYPE_CHECKING:
    from emulator.recording.entries import Action, Message, Request, Socket
    from emulator.recording.masking import Filler
    from emulator.server.application import Application

_SCHEMES: Final = {"http": "ws", "https": "wss"}
_CLIENT: Final = ("127.0.0.1", 0)
_SERVER: Final = ("127.0.0.1", 8787)


class Client:
    """One connection: what it sends comes from `tell`, what it gets is kept."""

    def __init__(self, application: Application, scope: dict[str, Any]) -> None:
        self.status: int | None = None
        self.ended = False
        self.chunks: list[bytes] = []
        # What the Worker sent over a WebSocket: messages, and the end with its code and reason.
        self.received: list[str | bytes | tuple[int, str]] = []
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.task = asyncio.ensure_future(application(scope, self._messages.get, self._take))

    def tell(self, message: dict[str, Any]) -> None:
        """Send something."""
        self._messages.put_nowait(message)

    async def _take(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self.status = message["status"]
            case "http.response.body" | "websocket.http.response.body":
                self.chunks.append(message.get("body", b""))
                self.ended = not message.get("more_body", False)
            case "websocket.accept":
                self.status = 101
            case "websocket.send":
                text = message.get("text")
                self.received.append(message["bytes"] if text is None else text)
            case "websocket.close":
                self.received.append((message["code"], message.get("reason", "")))

    @property
    def body(self) -> bytes:
        """The body of the answer, as far as it came."""
        return b"".join(self.chunks)


def ask(application: Application, request: Request, fill: Filler) -> Client:
    """Send a request again."""
    kind = dict(request.headers).get("content-type", "")
    body = fill.body(request.body, kind)
    scope = {
        "type": "http",
        "method": request.method,
        **_address(fill.url(request.url)),
        "headers": _headers(
            fill.headers(request.headers), request.worker, None if request.open else len(body)
        ),
    }
    client = Client(application, scope)
    client.tell({"type": "http.request", "body": body, "more_body": request.open})
    return client


def act(application: Application, action: Action, fill: Filler) -> Client:
    """Send a request for a control page again; the server's guard is not asked."""
    kind = dict(action.headers).get("content-type", "")
    body = fill.body(action.body, kind)
    path, query = fill.url(action.path), fill.url(action.query)
    scope = {
        "type": "http",
        "method": action.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "headers": _headers(fill.headers(action.headers), None, len(body)),
        "root_path": "",
        "client": _CLIENT,
        "server": _SERVER,
        "http_version": "1.1",
    }
    client = Client(application, scope)
    client.tell({"type": "http.request", "body": body, "more_body": False})
    return client


def connect(application: Application, socket: Socket, fill: Filler) -> Client:
    """Open a WebSocket again."""
    address = _address(fill.url(socket.url))
    headers = _headers(fill.headers(socket.headers), socket.worker, None)
    scheme = _SCHEMES.get(address["scheme"], "ws")
    scope = {"type": "websocket", **address, "scheme": scheme, "headers": headers}
    client = Client(application, scope)
    client.tell({"type": "websocket.connect"})
    return client


def pass_on(client: Client, message: Message, fill: Filler) -> None:
    """Send a message of a WebSocket again, or end it."""
    match message.data:
        case str():
            client.tell({"type": "websocket.receive", "text": fill.text(message.data)})
        case bytes():
            client.tell({"type": "websocket.receive", "bytes": fill.octets(message.data)})
        case (code, reason):
            told = {"type": "websocket.disconnect", "code": code, "reason": reason}
            client.tell(told)


def _address(url: str) -> dict[str, Any]:
    # Not as a URL is read, which leaves out what a client may have sent.
    scheme, _, rest = url.partition("://")
    host, _, target = rest.partition("/")
    path, _, query = f"/{target}".partition("?")
    return {
        "scheme": scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "client": _CLIENT,
        "server": (host, None),
        "http_version": "1.1",
    }


def _headers(
    pairs: list[tuple[str, str]], worker: str | None, length: int | None
) -> list[tuple[bytes, bytes]]:
    """Headers for the server; the length is that of the body as it is now."""
    found = []
    for name, value in pairs:
        told = str(length) if name == "content-length" and length is not None else value
        found.append((name.encode(), told.encode()))
    if worker is not None:
        found.append((HEADER.encode(), worker.encode()))
    return found
