"""From the network to a Worker and back, as an ASGI application.

A request's body and the answer's are passed on as they come, and whoever is slow holds the other
back. The Worker sees the URL that the client used. A client that leaves is a disconnect: the
handler goes on, and nobody reads the body.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator.client import reach
from emulator.errors import EmulatorClosed, StateError, WorkerCrashed, WorkerLoadError
from emulator.ingress import ReplyLost
from emulator.runtime.host import WebRequest
from emulator.server.pages import problem_page, text_page
from emulator.server.problem import NotRunning, Problem
from emulator.server.request_body import ClientGone, RequestBody, read_small
from emulator.server.routing import HEADER, UnknownWorker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.ingress import Exchange
    from emulator.pump import Pump
    from emulator.server.desk import Desk
    from emulator.server.pages import Page

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

# Headers about the connection to the server, of which a Worker sees nothing, or which the server
# writes itself.
_OF_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding", HEADER})
_NO_WEBSOCKETS: Final = (
    "workers-emulator dev does not accept WebSocket connections yet; requests and streamed answers "
    "(server-sent events among them) work"
)


class Gateway:
    """The way of requests to the Workers of a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = [(_text(name).lower(), _text(value)) for name, value in scope["headers"]]
        first = await receive()
        try:
            if dict(headers).get("upgrade", "").lower() == "websocket":
                page: Page | None = text_page(501, _NO_WEBSOCKETS)
            else:
                page = await self._serve(scope, headers, first, receive, send)
        except ClientGone:
            return
        except (NotRunning, UnknownWorker, EmulatorClosed, StateError) as error:
            page = _failure(error)
        if page is not None:
            await page.send(send, head_only=scope["method"] == "HEAD")

    async def _serve(
        self,
        scope: Scope,
        headers: list[tuple[str, str]],
        first: Any,
        receive: Receive,
        send: Send,
    ) -> Page | None:
        """Let a Worker answer; returns a page where there is no answer of its."""
        named = dict(headers)
        host = named.get("host") or _host(scope)
        if self._desk.problem is not None:
            raise NotRunning(self._desk.problem)
        kernel = self._desk.platform.kernel
        worker = self._desk.routing.worker(host, _path(scope), named)
        body: bytes | RequestBody | None = await read_small(_length(named), first, receive)
        incoming: asyncio.Task[None] | None = None
        if body is None:
            body = RequestBody(kernel.loop)
            incoming = asyncio.create_task(body.take_in(first, receive))
        url = f"{scope.get('scheme', 'http')}://{host}{_target(scope)}"
        request = WebRequest(scope["method"], url, _seen(headers, scope), body)
        exchange = self._desk.dispatch(worker, request)
        self._desk.open[exchange] = f"{request.method} {url}"
        try:
            return await self._answer(kernel.pump, exchange, incoming, receive, send)
        finally:
            del self._desk.open[exchange]
            if isinstance(body, RequestBody):
                body.drop()
            if incoming is not None:
                incoming.cancel()

    async def _answer(
        self,
        pump: Pump,
        exchange: Exchange,
        incoming: asyncio.Task[None] | None,
        receive: Receive,
        send: Send,
    ) -> Page | None:
        name = self._desk.open[exchange]
        await reach(pump, exchange, name, lambda: exchange.started, advance=False)
        if exchange.head is None:
            return _failure(exchange.error)
        await send(
            {
                "type": "http.response.start",
                "status": exchange.head.status,
                "headers": _sent(exchange.head.headers),
            }
        )
        if exchange.body_done and exchange.error is None:
            body = b"".join(exchange.chunks)
            await send({"type": "http.response.body", "body": body})
            return None
        watch = asyncio.create_task(_watch(exchange, incoming, receive))
        try:
            await self._stream(pump, exchange, name, send)
        except (EmulatorClosed, StateError):
            pass  # the answer breaks off
        finally:
            watch.cancel()
        return None

    async def _stream(self, pump: Pump, exchange: Exchange, name: str, send: Send) -> None:
        """Pass on the body; the connection breaks where the body does."""
        name = f"{name}: the next chunk"
        while True:
            if not exchange.readable:
                await reach(pump, exchange, name, lambda: exchange.readable, advance=False)
            if exchange.chunks:
                chunk = exchange.read()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            elif exchange.error is None:
                await send({"type": "http.response.body", "body": b""})
                return
            else:
                return  # without the end: the server then closes the connection


async def _watch(exchange: Exchange, incoming: asyncio.Task[None] | None, receive: Receive) -> None:
    """Notice when the client leaves while an answer is under way."""
    if incoming is not None:
        await incoming
    while (await receive())["type"] != "http.disconnect":
        pass
    exchange.abandon()


def _failure(error: BaseException | None) -> Page:
    """The answer where the Worker gave none."""
    if isinstance(error, NotRunning):
        problem = error.problem or Problem("The server is not ready", str(error))
        return problem_page(problem)
    if isinstance(error, WorkerLoadError):
        return problem_page(Problem.of(error))
    status = 404 if isinstance(error, UnknownWorker) else 503
    if isinstance(error, WorkerCrashed | ReplyLost):
        status = 502
    return text_page(status, str(error))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _host(scope: Scope) -> str:
    server = scope.get("server") or ("localhost", None)
    return f"{server[0]}:{server[1]}" if server[1] else str(server[0])


def _path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    return _text(raw).partition("?")[0] if raw else str(scope["path"])


def _target(scope: Scope) -> str:
    query = _text(scope.get("query_string", b""))
    return f"{_path(scope)}?{query}" if query else _path(scope)


def _length(headers: dict[str, str]) -> int | None:
    length = headers.get("content-length", "")
    return int(length) if length.isdigit() else None


def _seen(headers: list[tuple[str, str]], scope: Scope) -> tuple[tuple[str, str], ...]:
    """The headers a Worker sees: the client's, and its address as Cloudflare tells it."""
    seen = [pair for pair in headers if pair[0] not in _OF_CONNECTION]
    client = scope.get("client")
    if client and not any(name == "cf-connecting-ip" for name, _ in seen):
        seen.append(("cf-connecting-ip", str(client[0])))
    return tuple(seen)


def _sent(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode(), value.encode()) for name, value in headers if name not in _OF_CONNECTION
    ]
