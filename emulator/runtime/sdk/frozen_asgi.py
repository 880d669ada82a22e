"""`asgi` of the SDK frozen in the runtime (before 2026-04-21), its gaps included.

Rules (workerd's `workers-api/src/asgi.py`):

1. The application must answer the lifespan's startup with `lifespan.startup.complete`; without that
   (Django, a failed startup) the request hangs. Its `state` stays with the lifespan. A shutdown is
   never asked for: the lifespan waits for ever.
2. A response is returned at the first part of its body, and must have no second: that raises
   `InvalidStateError` inside the application. Only one of type text/event-stream is streamed, and
   needs `ctx`.
3. Of headers with one name the last one stays.
4. The scope's `path` is as it was sent, and there are no `raw_path` and no `state`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from emulator.runtime.ffi import create_proxy
from emulator.runtime.sdk.asgi_lifespan import run_in_background
from emulator.runtime.sdk.asgi_request import ASGI, body_messages, http_scope, pairs
from emulator.runtime.sdk.asgi_websocket import connect_frozen
from emulator.runtime.sdk.js_values import wrap
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.response import Response
from emulator.runtime.web.transform import TransformStream

if TYPE_CHECKING:
    from emulator.runtime.sdk.asgi_request import App, Message

logger = logging.getLogger("asgi")

_NO_CTX = "Server-Side-Events require ctx to be passed to asgi.fetch"


def request_to_scope(req: Any, env: Any, ws: bool = False) -> dict[str, Any]:
    """Return the scope of a connection."""
    return http_scope(req, env, "websocket" if ws else "http")[0]


async def _start(app: App) -> None:
    """Run the application's startup."""
    ready = asyncio.get_running_loop().create_future()
    events = iter([{"type": "lifespan.startup"}])

    async def receive() -> Message:
        return next(events, None) or await _never()

    async def send(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            ready.set_result(None)
        elif message["type"] != "lifespan.shutdown.complete":
            raise RuntimeError(f"Unexpected lifespan event {message['type']}")

    run_in_background(app({"asgi": ASGI, "state": {}, "type": "lifespan"}, receive, send))
    await ready


async def _never() -> Message:
    """Wait for what never comes: not even the end of the invocation wakes the application."""
    while True:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            pass


class _Exchange:
    """One request of an application, until it is over."""

    def __init__(self, messages: asyncio.Queue[Message]) -> None:
        self.response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.is_events = False
        self._messages = messages
        self._over = asyncio.Event()
        self._stream = TransformStream()
        self._writer = self._stream.writable.getWriter()
        self._init: dict[str, Any] = {}

    async def receive(self) -> Message:
        """Give the application the next part of the body, or the news that nobody listens."""
        if not self._messages.empty():
            return await self._messages.get()
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the response."""
        if message["type"] == "http.response.start":
            self._begin(message["status"], pairs(message["headers"]))
        elif message["type"] == "http.response.body":
            await self._take(bytes(message["body"]), more=message.get("more_body", False))

    def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        self._init = {"status": status, "headers": Headers.js_new(dict(headers))}
        self.is_events = any(
            name.lower() == "content-type" and value.lower().startswith("text/event-stream")
            for name, value in headers
        )
        if self.is_events:
            self._answer(self._stream.readable)

    async def _take(self, body: bytes, *, more: bool) -> None:
        if not self.is_events:
            self._answer(body)
            await self._writer.close()
            self._over.set()
            return
        await self._writer.write(body)
        if not more:
            await self._writer.close()
            self._over.set()

    def _answer(self, body: Any) -> None:
        self.response.set_result(wrap(Response.js_new(body, self._init)))

    async def run(self, app: App, scope: dict[str, Any]) -> None:
        """Run the application; what it raises before its answer is the answer's error."""
        try:
            await app(scope, self.receive, self.send)
            if not self.response.done():
                raise RuntimeError("The application did not generate a response")
        except Exception as error:
            if not self.response.done():
                self.response.set_exception(error)
                await self._writer.close()
                self._over.set()
                return
            logger.error("Exception in ASGI application after response started", exc_info=error)


async def fetch(app: App, req: Any, env: Any, ctx: Any = None) -> Any:
    """Answer a request by an application; returns a `js.Response`."""
    logger.debug("ASGI request: %s %s", req.method, req.url)
    await _start(app)
    try:
        response = await _process(app, req, env, ctx)
    except Exception:
        logger.exception("ASGI request failed")
        raise
    await asyncio.sleep(0)
    return response


async def _process(app: App, req: Any, env: Any, ctx: Any) -> Any:
    exchange = _Exchange(await body_messages(req))
    task = asyncio.create_task(exchange.run(app, request_to_scope(req, env)))
    response = await exchange.response
    if not exchange.is_events:
        await task
    elif ctx is None:
        raise RuntimeError(_NO_CTX)
    else:
        ctx.waitUntil(create_proxy(task))
    return response


async def websocket(app: App, req: Any) -> Any:
    """Answer a request for a WebSocket by an application; returns the `js.Response` of it."""
    return connect_frozen(app, request_to_scope(req, {}, ws=True))


for _one in (fetch, websocket, request_to_scope):
    _one.__module__ = "asgi"


del _one
