"""The JavaScript class `TransformStream`: what is written comes out changed.

A write waits until the readable side is read, as in production: with no reader, `await
writer.write(...)` never returns.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.web import idl
from emulator.runtime.web.sources import awaitable
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.writable import WritableStream
from emulator.values import SAFE, UNDEFINED, BigInt, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_CLOSED: Final = "The readable side of this TransformStream is no longer readable."
_TERMINATED: Final = "The transform stream has been terminated"
_NOT_WHOLE: Final = "The value cannot be converted because it is not an integer."
_NEGATIVE: Final = (
    "The value cannot be converted because it is negative and this API expects a positive bigint."
)
_TOO_LONG: Final = "FixedLengthStream requires an integer expected length less than 2^53."
_TOO_MANY: Final = "Attempt to write too many bytes through a FixedLengthStream."
_TOO_FEW: Final = "FixedLengthStream did not see all expected bytes before close()."
_AS_BYTES: Final = "This TransformStream is being used as a byte stream, but received"
_TEXT: Final = (
    f"{_AS_BYTES} a string on its writable side. If you wish to write a string, you'll probably "
    "want to explicitly UTF-8-encode it with TextEncoder."
)
_NO_BYTES: Final = (
    f"{_AS_BYTES} an object of non-ArrayBuffer/ArrayBufferView type on its writable side."
)


class TransformStream(HostObject):
    """A pair of `writable` and `readable` with a function between them."""

    js_class = "TransformStream"
    js_members = frozenset({"readable", "writable"})

    def __init__(self, callbacks: dict[str, Any] | None = None) -> None:
        middle = _Middle(callbacks or {})
        self.readable = middle.readable
        self.writable = middle.writable
        middle.start()

    @classmethod
    def js_new(cls, transformer: object = UNDEFINED) -> TransformStream:
        """Do `new TransformStream({start, transform, flush})`."""
        return cls(idl.options(transformer))


class IdentityTransformStream(TransformStream):
    """A `TransformStream` that changes nothing."""

    js_class = "IdentityTransformStream"

    @classmethod
    def js_new(cls, transformer: object = UNDEFINED) -> IdentityTransformStream:
        """Do `new IdentityTransformStream()`; an argument is ignored."""
        return cls()


class FixedLengthStream(IdentityTransformStream):
    """A `TransformStream` of bytes whose number is known before they come, as R2 wants it."""

    js_class = "FixedLengthStream"

    def __init__(self, length: int) -> None:
        self._left = length
        super().__init__({"transform": self._count, "flush": self._check})
        self.readable.length = length

    @classmethod
    def js_new(cls, length: object = UNDEFINED) -> FixedLengthStream:
        """Do `new FixedLengthStream(length)`."""
        if idl.missing(length):
            raise idl.wrong_construction(cls.js_class, 1, "bigint")
        number = length.value if isinstance(length, BigInt) else idl.number(length)
        if not math.isfinite(number):
            raise JsException("TypeError", _NOT_WHOLE)
        if number < 0:
            raise JsException("TypeError", _NEGATIVE)
        if number > SAFE:
            raise JsException("TypeError", _TOO_LONG)
        return cls(int(number))

    def _count(self, chunk: object, controller: TransformController) -> None:
        data = idl.buffer(chunk)
        if data is None:
            raise JsException("TypeError", _TEXT if isinstance(chunk, str) else _NO_BYTES)
        self._left -= len(data)
        if self._left < 0:
            raise JsException("TypeError", _TOO_MANY)
        controller.enqueue(data)

    def _check(self, controller: TransformController) -> None:
        if self._left:
            self.readable.fail(JsException("TypeError", _TOO_FEW))


class TransformController(HostObject):
    """What `transform` and `flush` get to feed the readable side."""

    js_class = "TransformStreamDefaultController"
    js_members = frozenset(["desiredSize", "enqueue", "error", "terminate"])

    def __init__(self, middle: _Middle) -> None:
        self._middle = middle

    @property
    def desiredSize(self) -> int | None:
        """Return how many chunks the readable side wants."""
        readable = self._middle.readable
        return None if readable.state == "errored" else -readable.backlog

    def enqueue(self, chunk: object = UNDEFINED) -> object:
        """Add a chunk to the readable side."""
        if self._middle.readable.state != "readable":
            raise JsException("TypeError", _CLOSED)
        self._middle.readable.push(chunk)
        return UNDEFINED

    def error(self, reason: object = UNDEFINED) -> object:
        """Break both sides."""
        self._middle.fail(idl.throw(reason))
        return UNDEFINED

    def terminate(self) -> object:
        """End the readable side and break the writable one."""
        self._middle.readable.finish()
        self._middle.writable.fail(JsException("TypeError", _TERMINATED))
        return UNDEFINED


class _Middle:
    """Sink of the writable side and source of the readable one."""

    def __init__(self, callbacks: dict[str, Any]) -> None:
        self._callbacks: dict[str, Callable[..., Any]] = callbacks
        self._waiting: asyncio.Future[None] | None = None
        self.readable = ReadableStream(self)
        self.writable = WritableStream(self)
        self._controller = TransformController(self)

    def start(self) -> None:
        if "start" in self._callbacks:
            self._callbacks["start"](self._controller)

    def fail(self, error: BaseException) -> None:
        self.readable.fail(error)
        self.writable.fail(error)

    # As the source.

    def pull(self, stream: ReadableStream) -> Awaitable[Any] | None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
        return None

    # As the sink.

    def write(self, chunk: Any) -> Awaitable[Any] | None:
        if self.readable.hungry:
            return self._transform(chunk)
        # Made here, not in the coroutine: a read may come before that begins.
        self._waiting = asyncio.get_running_loop().create_future()
        return self._write_when_read(chunk, self._waiting)

    async def _write_when_read(self, chunk: Any, waiting: asyncio.Future[None]) -> None:
        await waiting
        work = self._transform(chunk)
        if work is not None:
            await work

    def _transform(self, chunk: Any) -> Awaitable[Any] | None:
        transform = self._callbacks.get("transform")
        if transform is None:
            self._controller.enqueue(chunk)
            return None
        try:
            work = awaitable(transform(chunk, self._controller))
        except Exception as error:
            self.fail(error)
            raise
        return None if work is None else self._guard(work)

    def close(self) -> Awaitable[Any] | None:
        flush = self._callbacks.get("flush")
        try:
            work = None if flush is None else awaitable(flush(self._controller))
        except Exception as error:
            self.fail(error)
            raise
        if work is not None:
            return self._close_after(work)
        self.readable.finish()
        return None

    async def _close_after(self, work: Awaitable[Any]) -> None:
        await self._guard(work)
        self.readable.finish()

    async def _guard(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception as error:
            self.fail(error)
            raise

    # The end from either side: `abort` of the writable, `cancel` of the readable.

    def abort(self, reason: object) -> Awaitable[Any] | None:
        self.readable.fail(idl.throw(reason))
        self._wake()
        return None

    def cancel(self, reason: object) -> Awaitable[Any] | None:
        self.writable.fail(idl.throw(reason))
        self._wake()
        return None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.cancel()
