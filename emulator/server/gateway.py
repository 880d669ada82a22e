"""From the network to a Worker and back, as an ASGI application.

A request's body and the answer's are passed on as they come, and whoever is slow holds the other
back. The Worker sees the URL that the client used. A client that leaves is a disconnect: the
handler goes on, and nobody reads the body.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator.client import reach
from emulator.errors import EmulatorClosed, StateError
from emulator.pump import Goal
from emulator.runtime.host import WebRequest
from emulator.server.asked import Asked, sent
from emulator.server.failures import NO_ANSWER, failure
from emulator.server.pages import text_page
from emulator.server.problem import NotRunning
from emulator.server.request_body import ClientGone, RequestBody, read_small

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.ingress import Exchange
    from emulator.pump import Pump
    from emulator.server.desk import Desk
    from emulator.server.pages import Page

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

# Cloudflare's limit of a request's body on the plans that most have.
MOST_BYTES: Final = 100_000_000
_TOO_LARGE: Final = f"the body is larger than {MOST_BYTES:,} bytes, the most that Cloudflare takes"


class Gateway:
    """The way of requests to the Workers of a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        asked = Asked.of(scope)
        first = await receive()
        try:
            page = await self._serve(asked, first, receive, send)
        except ClientGone:
            return
        except NO_ANSWER as error:
            page = failure(error, self._desk.masker())
        if page is not None:
            await page.send(send, head_only=asked.method == "HEAD")

    # -- for a connection that answers directly --------------------------------------------------

    @property
    def is_recorded(self) -> bool:
        """Whether what comes in is written down, message by message."""
        return self._desk.recorder is not None

    @property
    def pump(self) -> Pump | None:
        """What runs the simulation, if there is one."""
        return self._desk.platform.kernel.pump if self._desk.is_running else None

    def begin(
        self, scope: Scope, body: bytes, started: Callable[[BaseException | None], None]
    ) -> Exchange:
        """Send a request whose body is whole to its Worker; `started` is called with the answer.

        That is when the answer's head is there, or with what keeps it from coming. Raises one of
        `NO_ANSWER` where the request cannot be sent.
        """
        asked = Asked.of(scope)
        request = WebRequest(asked.method, asked.url, asked.headers, body)
        exchange = self._dispatch(self._worker(asked), request)
        goal = Goal(self._desk.open[exchange], lambda: exchange.started, advance=False)
        exchange.pump.follow(goal, started)
        return exchange

    def answered(self, exchange: Exchange) -> None:
        """Told when an answer is on its way, or will never be: the request is open no more."""
        del self._desk.open[exchange]

    async def finish(
        self, exchange: Exchange, error: BaseException | None, receive: Receive, send: Send
    ) -> None:
        """Answer what began directly, as far as it has come; `error` keeps it from that."""
        try:
            if error is not None:
                exchange.abandon()
                raise error
            page = await self._answer(exchange, None, receive, send)
        except NO_ANSWER as told:
            page = failure(told, self._desk.masker())
        finally:
            self.answered(exchange)
        if page is not None:
            await page.send(send, head_only=exchange.request.method == "HEAD")

    # -- details ---------------------------------------------------------------------------------

    def _worker(self, asked: Asked) -> str:
        """The Worker that a request is for; raises `NotRunning` or `UnknownWorker`."""
        desk = self._desk
        if desk.problem is not None:
            raise NotRunning(desk.problem)
        return desk.routing.worker(asked.host, asked.path, asked.named)

    def _dispatch(self, worker: str, request: WebRequest) -> Exchange:
        """Send a request to a Worker; it is open from now on."""
        exchange = self._desk.dispatch(worker, request)
        self._desk.open[exchange] = f"{request.method} {request.url}"
        return exchange

    async def _serve(self, asked: Asked, first: Any, receive: Receive, send: Send) -> Page | None:
        """Let a Worker answer; returns a page where there is no answer of its.

        A body that proves too large breaks off for the Worker, whose answer, unless it has begun,
        gives way to the page that a `Content-Length` would have brought.
        """
        desk = self._desk
        kernel, worker = desk.platform.kernel, self._worker(asked)
        if asked.length is not None and asked.length > MOST_BYTES:
            return text_page(413, _TOO_LARGE)
        body = await read_small(asked.length, first, receive)
        streamed = RequestBody(kernel.loop, MOST_BYTES) if body is None else None
        request = WebRequest(asked.method, asked.url, asked.headers, body or streamed or b"")
        watch = None
        if desk.recorder is not None:
            watch = desk.recorder.request(worker, request, first, receive, send)
            receive, send = watch.receive, watch.send
        incoming: asyncio.Task[None] | None = None
        if streamed is not None:
            incoming = asyncio.create_task(streamed.take_in(first, receive))
        exchange = self._dispatch(worker, request)
        try:
            page = await self._answer(exchange, incoming, receive, send, streamed)
            if watch is not None and page is not None:
                watch.page(page)
            return page
        finally:
            self.answered(exchange)
            if watch is not None:
                watch.over()
            if streamed is not None:
                streamed.drop()
            if incoming is not None:
                incoming.cancel()

    async def _answer(
        self,
        exchange: Exchange,
        incoming: asyncio.Task[None] | None,
        receive: Receive,
        send: Send,
        streamed: RequestBody | None = None,
    ) -> Page | None:
        pump, name = exchange.pump, self._desk.open[exchange]

        def is_too_large() -> bool:
            return streamed is not None and streamed.is_too_large

        if not exchange.started:
            await reach(
                pump, exchange, name, lambda: exchange.started or is_too_large(), advance=False
            )
        if is_too_large():
            exchange.abandon()
            return text_page(413, _TOO_LARGE)
        head = exchange.head
        if head is None:
            return failure(exchange.error, self._desk.masker())
        start = {"type": "http.response.start", "status": head.status}
        await send({**start, "headers": sent(head.headers)})
        if exchange.body_done and exchange.error is None:
            body = b"".join(exchange.chunks)
            await send({"type": "http.response.body", "body": body})
            return None
        watch = asyncio.create_task(_watch(exchange, incoming, receive, streamed))
        try:
            await _stream(pump, exchange, name, send)
        except (EmulatorClosed, StateError):
            pass  # the answer breaks off
        finally:
            watch.cancel()
        return None


async def _stream(pump: Pump, exchange: Exchange, name: str, send: Send) -> None:
    """Pass on the body; the connection breaks where the body does."""
    name = f"{name}: the next chunk"
    while True:
        if not exchange.readable:
            await reach(pump, exchange, name, lambda: exchange.readable, advance=False)
        if exchange.chunks:
            await pump.may_leave()
            chunk = exchange.read()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        elif exchange.error is None and not exchange.abandoned:
            await send({"type": "http.response.body", "body": b""})
            return
        else:
            return  # without the end: the server then closes the connection


async def _watch(
    exchange: Exchange,
    incoming: asyncio.Task[None] | None,
    receive: Receive,
    streamed: RequestBody | None,
) -> None:
    """Notice when the client leaves while an answer is under way, or sends too much."""
    if incoming is not None:
        await incoming
    if streamed is None or not streamed.is_too_large:
        while (await receive())["type"] != "http.disconnect":
            pass
    exchange.abandon()
