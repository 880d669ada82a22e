"""What feeds a `ReadableStream`: an iterator, user code's functions, another stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from emulator.runtime.web import idl
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from emulator.runtime.web.streams import Read, ReadableStream, Reader


def awaitable(value: object) -> Awaitable[Any] | None:
    """Return `value` if it is a promise, else None."""
    return value if isinstance(value, Awaitable) else None


class Source(Protocol):
    """What feeds a stream."""

    def pull(self, stream: ReadableStream) -> Awaitable[Any] | None:
        """Push at least one chunk, finish or fail, now or before the awaitable is done."""

    def cancel(self, reason: object) -> Awaitable[Any] | None:
        """Stop: nobody will read on."""


class NoSource:
    """A stream that is fed from outside, by `push`."""

    def pull(self, stream: ReadableStream) -> Awaitable[Any] | None:
        """Do nothing."""
        return None

    def cancel(self, reason: object) -> Awaitable[Any] | None:
        """Do nothing."""
        return None


class IteratorSource:
    """A stream over an asynchronous iterator of Python's."""

    def __init__(self, chunks: AsyncIterator[Any]) -> None:
        self.chunks = chunks

    async def pull(self, stream: ReadableStream) -> None:
        """Push the next item."""
        try:
            stream.push(await anext(self.chunks))
        except StopAsyncIteration:
            stream.finish()

    async def cancel(self, reason: object) -> None:
        """Close the iterator if it can be closed."""
        close = getattr(self.chunks, "aclose", None)
        if close is not None:
            await close()


class CallbackSource:
    """A stream over the `start`, `pull` and `cancel` functions of user code."""

    def __init__(self, callbacks: dict[str, Any], controller: Controller) -> None:
        self._pull: Callable[..., Any] | None = callbacks.get("pull")
        self._cancel: Callable[..., Any] | None = callbacks.get("cancel")
        self._controller = controller

    def pull(self, stream: ReadableStream) -> Awaitable[Any] | None:
        """Call `pull(controller)`."""
        return None if self._pull is None else awaitable(self._pull(self._controller))

    def cancel(self, reason: object) -> Awaitable[Any] | None:
        """Call `cancel(reason)`."""
        return None if self._cancel is None else awaitable(self._cancel(reason))


class Controller(HostObject):
    """What `start` and `pull` get to feed a stream."""

    js_class = "ReadableStreamDefaultController"
    js_members = frozenset(["close", "desiredSize", "enqueue", "error"])

    def __init__(self, stream: ReadableStream, *, bytes_only: bool, mark: float) -> None:
        self._stream = stream
        self._bytes_only = bytes_only
        self._mark = mark
        self._closing = False
        if bytes_only:
            self.js_class = "ReadableByteStreamController"  # type: ignore[misc]

    @property
    def desiredSize(self) -> int | None:
        """Return how many chunks are wanted; null after an error, 0 after the end."""
        if self._stream.state == "errored":
            return None
        if self._stream.state == "closed":
            return 0
        return int(self._mark) - self._stream.backlog

    def enqueue(self, chunk: object = UNDEFINED) -> object:
        """Add a chunk."""
        if self._bytes_only and idl.buffer(chunk) is None:
            raise idl.wrong_argument("enqueue", self.js_class, 1, "BufferSource")
        if not self._open:
            raise JsException("TypeError", "Unable to enqueue")
        self._stream.push(chunk)
        return UNDEFINED

    def close(self) -> object:
        """End the stream after the chunks it has."""
        if not self._open:
            raise JsException("TypeError", "This ReadableStream is closed.")
        self._closing = True
        self._stream.finish()
        return UNDEFINED

    def error(self, reason: object = UNDEFINED) -> object:
        """Break the stream."""
        self._stream.fail(idl.throw(reason))
        return UNDEFINED

    @property
    def _open(self) -> bool:
        return not self._closing and self._stream.state == "readable"


class TeeSource:
    """The two branches of a stream; a chunk that one of them reads goes to both."""

    def __init__(self, reader: Reader, make: Callable[[Source], ReadableStream]) -> None:
        self._reader = reader
        self._cancelled = 0
        self.branches = [make(self), make(self)]
        self._busy: asyncio.Future[None] | None = None

    async def pull(self, stream: ReadableStream) -> None:
        """Read once for both branches; the second to ask waits for the first."""
        if self._busy is not None:
            await self._busy
            return
        self._busy = asyncio.get_running_loop().create_future()
        try:
            self._deal(await self._reader.read())
        except Exception as error:
            for branch in self.branches:
                branch.fail(error)
        finally:
            self._busy.set_result(None)
            self._busy = None

    def _deal(self, read: Read) -> None:
        for branch in self.branches:
            if branch.state != "readable":
                continue
            if read["done"]:
                branch.finish()
            else:
                branch.push(read["value"])

    def cancel(self, reason: object) -> Awaitable[object] | None:
        """Cancel the stream behind when both branches are."""
        self._cancelled += 1
        return self._reader.cancel(reason) if self._cancelled == len(self.branches) else None
