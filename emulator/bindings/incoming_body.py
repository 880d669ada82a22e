"""The body of an answer from the outside, on its way in."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import httpx

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.loop import SimLoop

# The outside is held back when this many chunks are there to be read.
_MOST_UNREAD = 16


class IncomingBody:
    """Chunks that the outside sends, at its own pace, to an invocation that may read them later.

    The outside's code (a mock's stream) runs here as part of the simulation and not of the isolate,
    so that a power cut there does not stop it.
    """

    def __init__(
        self, loop: SimLoop, response: httpx.Response, is_wanted: Callable[[], bool]
    ) -> None:
        self._loop = loop
        self._response = response
        self._is_wanted = is_wanted
        self._chunks: deque[bytes] = deque()
        self._done = False
        self._error: JsException | None = None
        self._changed: asyncio.Future[None] | None = None

    async def start(self) -> bytes | IncomingBody:
        """Begin to take it in; the bytes, if it comes without delay."""
        self._loop.spawn_kernel(self._take_in(), "the body of an answer")
        await asyncio.sleep(0)
        if self._done and self._error is None:
            return b"".join(self._chunks)
        return self

    def __aiter__(self) -> IncomingBody:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._done:
                raise StopAsyncIteration
            await self._change()
        chunk = self._chunks.popleft()
        self._announce()
        return chunk

    async def aclose(self) -> None:
        """Want no more of it."""
        self._is_wanted = _nobody
        self._announce()

    async def _take_in(self) -> None:
        try:
            async for chunk in self._response.aiter_bytes():
                self._chunks.append(chunk)
                self._announce()
                while len(self._chunks) >= _MOST_UNREAD and self._is_wanted():
                    await self._change()
                if not self._is_wanted():
                    break
        except (httpx.HTTPError, httpx.StreamError, OSError):
            self._error = JsException("Error", "Network connection lost.")
        except Exception as error:
            self._loop.abort(error)  # a mock's, which is the test's
            self._error = JsException("Error", f"Network connection lost. ({error!r})")
        finally:
            self._done = True
            self._announce()
            await self._response.aclose()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = self._loop.create_future()
        await self._changed

    def _announce(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)


def _nobody() -> bool:
    return False
