"""The body of a request on its way in: from the network's loop into the simulation.

The server's side is `receive`, the Worker's an asynchronous iterator. The client is held back while
the Worker has this much left to read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.loop import SimLoop

    Receive = Callable[[], Awaitable[Any]]

_MOST_UNREAD: Final = 262_144
# A body that is known to be no longer is read before the handler is called.
_SMALL: Final = 262_144
_BROKEN: Final = "Network connection lost."


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class RequestBody:
    """Chunks that the client sends, for a Worker that may read them later, or never.

    A body of more than `most` bytes breaks off, and `is_too_large`.
    """

    is_too_large = False

    def __init__(self, loop: SimLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._taken = 0
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._ended = False
        self._broken = False
        self._unwanted = False
        self._changed: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    # -- the network's side ----------------------------------------------------------------------

    async def take_in(self, first: Any, receive: Receive) -> None:
        """Take the request's messages as they come, until its end."""
        message = first
        while True:
            if message["type"] == "http.disconnect":
                self._broken = self._ended = True
                self._announce()
                return
            self._add(message.get("body", b""), more=message.get("more_body", False))
            if self._ended:
                return
            await self._room.wait()
            message = await receive()

    def _add(self, chunk: bytes, *, more: bool) -> None:
        if chunk and not self._unwanted:
            self._chunks.append(chunk)
            self._unread += len(chunk)
            if self._unread >= _MOST_UNREAD:
                self._room.clear()
        self._taken += len(chunk)
        self._broken = self.is_too_large = self._taken > self._most
        self._ended = self._broken or not more
        self._announce()

    def _announce(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done() and not self._loop.is_closed():
            changed.set_result(None)

    def drop(self) -> None:
        """Want no more of it, so that the client is not held back."""
        self._unwanted = True
        self._chunks.clear()
        self._room.set()

    # -- the Worker's side -----------------------------------------------------------------------

    def __aiter__(self) -> RequestBody:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._broken:
                raise JsException("Error", _BROKEN)
            if self._ended or self._unwanted:
                raise StopAsyncIteration
            self._changed = self._loop.create_future()
            await self._changed
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        if self._unread < _MOST_UNREAD:
            self._room.set()
        return chunk

    async def aclose(self) -> None:
        """Called when the Worker cancels the stream."""
        self.drop()


async def read_small(length: int | None, first: Any, receive: Receive) -> bytes | None:
    """Return a body that is whole already, or known to be small; None for any other.

    Raises `ClientGone` where the connection ends before it does.
    """
    if first["type"] == "http.disconnect":
        raise ClientGone
    if not first.get("more_body", False):
        return bytes(first.get("body", b""))
    if length is None or length > _SMALL:
        return None
    chunks = [first.get("body", b"")]
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)
