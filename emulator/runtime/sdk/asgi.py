"""`workers.asgi`, also `asgi`: Python web applications as Workers (python-api.md 1.11).

Theory of operation. `fetch` runs the application's startup, then the request in a task of its own,
then the shutdown. A response in one piece is returned when the application is done, Starlette's
background tasks included. One in several pieces is returned at the first; the rest goes through a
`TransformStream`, whose reader holds the application back, and the shutdown comes after it, as work
given to `waitUntil`. Rules and texts are those of the SDK 1.9.5.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from emulator.runtime.context import wait_until_current
from emulator.runtime.sdk.asgi_lifespan import Lifespan, run_in_background
from emulator.runtime.sdk.asgi_request import body_messages, http_scope, pairs
from emulator.runtime.sdk.asgi_websocket import connect
from emulator.runtime.sdk.entrypoints import WorkerEntrypoint
from emulator.runtime.sdk.gateway import BaseOptions
from emulator.runtime.sdk.headers import to_js_headers
from emulator.runtime.sdk.js_values import wrap
from emulator.runtime.web.response import Response
from emulator.runtime.web.transform import TransformStream

if TYPE_CHECKING:
    from emulator.runtime.sdk.asgi_request import App, Message
    from emulator.runtime.web.writable import Writer

logger = logging.getLogger("asgi")

_NULL_BODY = frozenset({101, 103, 204, 205, 304})


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """Options of the ASGI bridge."""


class _Exchange:
    """One request of an application, until it is over."""

    def __init__(self, messages: asyncio.Queue[Message], init: dict[str, Any]) -> None:
        self.response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.writer: Writer | None = None
        self._messages = messages
        self._init = init
        self._over = asyncio.Event()
        self._status: Any = None
        self._headers: list[tuple[str, str]] | None = None
        self._closed = False

    async def receive(self) -> Message:
        """Give the application the next part of the body, or the news that nobody listens."""
        if not self._messages.empty():
            return await self._messages.get()
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the response; other messages are ignored, as in production."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = pairs(message.get("headers", []))
        elif message["type"] == "http.response.body":
            await self._take(message.get("body", b""), more=message.get("more_body", False))

    async def _take(self, body: bytes, *, more: bool) -> None:
        if self.writer is not None:
            await self._write(body)
            if not more:
                await self.writer.close()
                self._closed = True
                self._over.set()
        elif more:
            stream = TransformStream()
            self.writer = stream.writable.getWriter()
            self._answer(stream.readable)
            await self._write(body)
        else:
            self._answer(None if self._status in _NULL_BODY else bytes(body))
            self._over.set()

    async def _write(self, body: bytes) -> None:
        assert self.writer is not None
        await self.writer.write(bytes(body))

    def _answer(self, body: Any) -> None:
        init = {"headers": to_js_headers(self._headers), **self._init}
        if self._status is not None:
            init["status"] = self._status
        self.response.set_result(wrap(Response.js_new(body, init)))

    async def run(self, app: App, scope: dict[str, Any]) -> None:
        """Run the application; what it raises before its answer is the answer's error."""
        try:
            await app(scope, self.receive, self.send)
            if not self.response.done():
                raise RuntimeError("The application did not generate a response")
        except Exception as error:
            await self._failed(error)

    async def _failed(self, error: Exception) -> None:
        if not self.response.done():
            self.response.set_exception(error)
            if self.writer is not None:
                await self.writer.close()
            self._over.set()
            return
        logger.error("Exception in ASGI application after response started", exc_info=error)
        self._over.set()
        if self.writer is not None and not self._closed:
            # Not awaited: it is over only when somebody has read what was written before.
            run_in_background(_close_quietly(self.writer))


async def _close_quietly(writer: Writer) -> None:
    try:
        await writer.close()
    except Exception:
        logger.debug("Closing the response stream failed", exc_info=True)


def request_to_scope(req: Any, env: Any, ws: bool = False, state: Any = None) -> dict[str, Any]:
    """Return the scope of a connection: `path` is decoded, `state` a copy."""
    scope, raw_path = http_scope(req, env, "websocket" if ws else "http")
    scope["path"] = unquote(raw_path)
    scope["raw_path"] = raw_path.encode()
    if state is not None:
        scope["state"] = dict(state)
    return scope


async def fetch(
    app: App, req: Any, env: Any, ctx: Any = None, *, options: Options | None = None
) -> Any:
    """Answer a request by an application; returns a `js.Response`.

    Raises what the application raises before its response.
    """
    logger.debug("ASGI request: %s %s", req.method, req.url)
    lifespan = Lifespan(app)
    await lifespan.start()
    try:
        response, task = await _process(app, req, env, lifespan.state, options or Options())
    except Exception:
        logger.exception("ASGI request failed")
        await lifespan.stop()
        raise
    if task.done():
        await lifespan.stop()
    else:
        wait_until_current(run_in_background(_finish(task, lifespan)))
    return response


async def _process(
    app: App, req: Any, env: Any, state: dict[str, Any], options: Options
) -> tuple[Any, asyncio.Task[None]]:
    exchange = _Exchange(await body_messages(req), options.response_init())
    scope = request_to_scope(req, env, state=state)
    task = asyncio.create_task(exchange.run(app, scope))
    try:
        response = await exchange.response
    except Exception:
        await task  # it has told its error, and may have something left to do
        raise
    if exchange.writer is None:
        await task
    return response, task


async def _finish(task: asyncio.Task[None], lifespan: Lifespan) -> None:
    try:
        await task
    finally:
        await lifespan.stop()


async def websocket(app: App, req: Any, env: Any = None) -> Any:
    """Answer a request for a WebSocket by an application; returns the `js.Response` of it."""
    return connect(app, request_to_scope(req, {} if env is None else env, ws=True))


def entrypoint(app: App, *, options: Options | None = None) -> type[WorkerEntrypoint]:
    """Return an entrypoint `Default` whose requests an application answers."""

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            if (request.headers.get("upgrade") or "").lower() == "websocket":
                return await websocket(app, request, self.env)
            return await fetch(app, request, self.env, self.ctx, options=options)

    return Default


def env_dependency() -> Any:
    """Return `asgi.env`, a dependency of FastAPI's: the Worker's `env`."""
    from fastapi import Depends, Request

    async def env(request: Any) -> Any:
        return request.scope["env"]

    env.__annotations__ = {"request": Request}
    return Depends(env)


for _one in (Options, fetch, websocket, entrypoint, request_to_scope):
    _one.__module__ = "workers.asgi"


del _one
