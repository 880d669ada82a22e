"""The lifespan protocol around one request, as the SDK from PyPI does it.

Startup and shutdown run around every request, since an isolate may be gone at any moment
(workers-py#239). An application that returns, or raises, before it answered the startup has no
lifespan: it is served without. Only `lifespan.startup.failed` fails the request.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from emulator.runtime.sdk.asgi_request import ASGI

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from emulator.runtime.sdk.asgi_request import App, Message

logger = logging.getLogger("asgi")

_NO_LIFESPAN = (
    "ASGI lifespan task raised before reporting startup; "
    "treating the app as not supporting lifespan"
)


def run_in_background(work: Awaitable[Any]) -> asyncio.Future[Any]:
    """Begin work; an error of it is logged."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Future[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logger.error("Unhandled exception in background task", exc_info=error)


class Lifespan:
    """One startup and shutdown of an application; `state` is what it leaves for requests."""

    def __init__(self, app: App) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # Whether the application has a lifespan; fails if its startup does.
        self._started: asyncio.Future[bool] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()

    async def start(self) -> None:
        """Run the startup; raises `RuntimeError` if it failed."""
        self._events.put_nowait({"type": "lifespan.startup"})
        run_in_background(self._run())
        await self._started

    async def stop(self) -> None:
        """Run the shutdown, if there was a startup; raises `RuntimeError` if it failed."""
        if not self._started.result():
            return
        self._events.put_nowait({"type": "lifespan.shutdown"})
        await self._stopped

    async def _run(self) -> None:
        try:
            scope = {"asgi": ASGI, "state": self.state, "type": "lifespan"}
            await self._app(scope, self._events.get, self._send)
        except Exception as error:
            self._failed(error)
            return
        if not self._started.done():
            self._started.set_result(False)
        elif not self._stopped.done():
            self._stopped.set_result(None)

    def _failed(self, error: Exception) -> None:
        if not self._started.done():
            logger.debug(_NO_LIFESPAN, exc_info=error)
            self._started.set_result(False)
            return
        logger.error("Exception in ASGI lifespan application", exc_info=error)
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "lifespan.startup.complete":
            if not self._started.done():
                self._started.set_result(True)
        elif kind == "lifespan.startup.failed":
            if not self._started.done():
                text = message.get("message") or "ASGI lifespan startup failed"
                self._started.set_exception(RuntimeError(text))
        elif kind == "lifespan.shutdown.complete":
            if not self._stopped.done():
                self._stopped.set_result(None)
        elif kind == "lifespan.shutdown.failed":
            if not self._stopped.done():
                text = message.get("message") or "ASGI lifespan shutdown failed"
                self._stopped.set_exception(RuntimeError(text))
        else:
            raise RuntimeError(f"Unexpected lifespan event {kind}")
