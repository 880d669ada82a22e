"""The JavaScript class `WritableStream`, its writer, and piping into it.

Writes wait in a queue; one at a time goes to the sink, and its promise settles with the sink's. A
stream is `writable`, `closing` (closed for writers, writes still queued), `closed` or `errored`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from emulator.runtime.web import idl
from emulator.runtime.web.promises import Rejected, Resolved, unwatched_future
from emulator.runtime.web.sources import awaitable
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.runtime.web.streams import Reader

LOCKED: Final = "This WritableStream is currently locked to a writer."
_RELEASED: Final = "This WritableStream writer has been released."
# The runtime's words, for a writable stream too.
_CLOSED: Final = "This ReadableStream is closed."
_CLOSING_TWICE: Final = "Cannot close a writer that is already being closed"


class Sink(Protocol):
    """Where the chunks go."""

    def write(self, chunk: Any) -> Awaitable[Any] | None:
        """Take a chunk; the awaitable is done when the next may come."""

    def close(self) -> Awaitable[Any] | None:
        """Take note of the end."""

    def abort(self, reason: object) -> Awaitable[Any] | None:
        """Drop everything."""


class CallbackSink:
    """A sink of the `start`, `write`, `close` and `abort` functions of user code."""

    def __init__(self, callbacks: dict[str, Any]) -> None:
        self._callbacks: dict[str, Callable[..., Any]] = callbacks

    def write(self, chunk: Any) -> Awaitable[Any] | None:
        """Call `write(chunk)`."""
        return self._call("write", chunk)

    def close(self) -> Awaitable[Any] | None:
        """Call `close()`."""
        return self._call("close")

    def abort(self, reason: object) -> Awaitable[Any] | None:
        """Call `abort(reason)`."""
        return self._call("abort", reason)

    def _call(self, name: str, *arguments: object) -> Awaitable[Any] | None:
        callback = self._callbacks.get(name)
        return None if callback is None else awaitable(callback(*arguments))


@dataclass(slots=True)
class _Entry:
    """A write, or the close (`chunk` is `_CLOSE`), and the promise for it."""

    chunk: Any
    done: asyncio.Future[object]


_CLOSE: Final = object()


class WritableStream(HostObject):
    """A stream of chunks that one writer feeds."""

    js_class = "WritableStream"
    js_members = frozenset(["abort", "close", "getWriter", "locked"])

    def __init__(self, sink: Sink, *, mark: int = 1) -> None:
        self._sink = sink
        self._mark = mark
        self._state = "writable"
        self._error: BaseException | None = None
        self._queue: deque[_Entry] = deque()
        self._busy = False
        self._writer: Writer | None = None
        self._ended: asyncio.Future[object] | None = None
        self._room: asyncio.Future[object] | None = None

    @classmethod
    def js_new(cls, sink: object = UNDEFINED, strategy: object = UNDEFINED) -> WritableStream:
        """Do `new WritableStream({start, write, close, abort}, {highWaterMark})`."""
        callbacks = idl.options(sink)
        mark = idl.integer(idl.options(strategy).get("highWaterMark", 1))
        stream = cls(CallbackSink(callbacks), mark=mark)
        if "start" in callbacks:
            callbacks["start"](UNDEFINED)
        return stream

    @property
    def locked(self) -> bool:
        """Tell whether a writer holds the stream."""
        return self._writer is not None

    @property
    def desired(self) -> int | None:
        """Return how many more chunks are welcome; null after an error."""
        if self._state == "errored":
            return None
        return 0 if self._state == "closed" else self._mark - len(self._queue)

    def getWriter(self) -> Writer:
        """Lock the stream and return its writer."""
        if self.locked:
            raise JsException("TypeError", LOCKED)
        self._writer = Writer(self)
        return self._writer

    def close(self) -> Awaitable[object]:
        """End the stream; only while no writer holds it."""
        return Rejected(JsException("TypeError", LOCKED)) if self.locked else self.end()

    def abort(self, reason: object = UNDEFINED) -> Awaitable[object]:
        """Break the stream; only while no writer holds it."""
        return Rejected(JsException("TypeError", LOCKED)) if self.locked else self.drop(reason)

    def release(self) -> None:
        """Give up the lock."""
        self._writer = None

    def put(self, chunk: Any) -> Awaitable[object]:
        """Queue a write."""
        if self._error is not None:
            return Rejected(self._error)
        if self._state != "writable":
            return Rejected(JsException("TypeError", _CLOSED))
        return self._enqueue(chunk)

    def end(self) -> Awaitable[object]:
        """Queue the close."""
        if self._error is not None:
            return Rejected(self._error)
        if self._state != "writable":
            return Rejected(JsException("TypeError", _CLOSING_TWICE))
        self._state = "closing"
        return self._enqueue(_CLOSE)

    def drop(self, reason: object) -> Awaitable[object]:
        """Break the stream and tell the sink."""
        if self._state in ("errored", "closed"):
            return Resolved(UNDEFINED)
        self.fail(idl.throw(reason))
        work = self._sink.abort(reason)
        return Resolved(UNDEFINED) if work is None else work

    def fail(self, error: BaseException) -> None:
        """Break the stream: queued writes are rejected."""
        if self._state in ("errored", "closed"):
            return
        self._state, self._error = "errored", error
        for entry in self._queue:
            _reject(entry.done, error)
        self._queue.clear()
        for promise in (self._ended, self._room):
            if promise is not None:
                _reject(promise, error)

    def ended(self) -> Awaitable[object]:
        """Return a promise for the end (`writer.closed`)."""
        if self._error is not None:
            return Rejected(self._error)
        if self._state == "closed":
            return Resolved(UNDEFINED)
        if self._ended is None:
            self._ended = unwatched_future()
        return self._ended

    def room(self) -> Awaitable[object]:
        """Return a promise for the moment when a chunk is welcome (`writer.ready`)."""
        if self._error is not None:
            return Rejected(self._error)
        if (self.desired or 0) > 0 or self._state != "writable":
            return Resolved(UNDEFINED)
        if self._room is None or self._room.done():
            self._room = unwatched_future()
        return self._room

    def _enqueue(self, chunk: Any) -> Awaitable[object]:
        entry = _Entry(chunk, unwatched_future())
        self._queue.append(entry)
        self._advance()
        return entry.done

    def _advance(self) -> None:
        while self._queue and not self._busy:
            entry = self._queue[0]
            try:
                closing = entry.chunk is _CLOSE
                work = self._sink.close() if closing else self._sink.write(entry.chunk)
            except Exception as error:
                self.fail(error)
                return
            if work is not None:
                self._busy = True
                asyncio.ensure_future(work).add_done_callback(self._settled)
                return
            self._finish()

    def _settled(self, work: asyncio.Future[Any]) -> None:
        self._busy = False
        if work.cancelled():
            self.fail(JsException("Error", "The stream's sink was cancelled."))
        elif (error := work.exception()) is not None:
            self.fail(error)
        elif self._queue:
            self._finish()
            self._advance()

    def _finish(self) -> None:
        entry = self._queue.popleft()
        if entry.chunk is _CLOSE:
            self._state = "closed"
            if self._ended is not None:
                _resolve(self._ended)
        _resolve(entry.done)
        if self._room is not None and (self.desired or 0) > 0:
            _resolve(self._room)


class Writer(HostObject):
    """A `WritableStreamDefaultWriter`: the lock on a stream and the way to feed it."""

    js_class = "WritableStreamDefaultWriter"
    js_members = frozenset(
        ["abort", "close", "closed", "desiredSize", "ready", "releaseLock", "write"]
    )

    def __init__(self, stream: WritableStream) -> None:
        self._stream: WritableStream | None = stream

    @property
    def closed(self) -> Awaitable[object]:
        """Return a promise for the end of the stream."""
        return self._released() if self._stream is None else self._stream.ended()

    @property
    def ready(self) -> Awaitable[object]:
        """Return a promise for the moment when a chunk is welcome."""
        return self._released() if self._stream is None else self._stream.room()

    @property
    def desiredSize(self) -> int | None:
        """Return how many more chunks are welcome."""
        if self._stream is None:
            raise JsException("TypeError", _RELEASED)
        return self._stream.desired

    def write(self, chunk: object = UNDEFINED) -> Awaitable[object]:
        """Write a chunk; the promise is for the sink's having taken it."""
        return self._released() if self._stream is None else self._stream.put(chunk)

    def close(self) -> Awaitable[object]:
        """End the stream after the writes before."""
        return self._released() if self._stream is None else self._stream.end()

    def abort(self, reason: object = UNDEFINED) -> Awaitable[object]:
        """Break the stream."""
        return self._released() if self._stream is None else self._stream.drop(reason)

    def releaseLock(self) -> object:
        """Give the stream back."""
        if self._stream is not None:
            self._stream.release()
            self._stream = None
        return UNDEFINED

    def _released(self) -> Rejected:
        return Rejected(JsException("TypeError", _RELEASED))


async def pipe(reader: Reader, writer: Writer, options: dict[str, Any]) -> object:
    """Move every chunk, then the end or the error, unless `options` prevents it."""
    try:
        while not (read := await reader.read())["done"]:
            await writer.write(read["value"])
        if not options.get("preventClose"):
            await writer.close()
    except Exception as error:
        if not options.get("preventAbort"):
            await writer.abort(error)
        if not options.get("preventCancel"):
            await _quietly(reader.cancel(error))
        raise
    finally:
        reader.releaseLock()
        writer.releaseLock()
    return UNDEFINED


async def _quietly(work: Awaitable[object]) -> None:
    try:
        await work
    except Exception:
        # The error that ended the pipe is the one to report.
        return


def _resolve(promise: asyncio.Future[object]) -> None:
    if not promise.done():
        promise.set_result(UNDEFINED)


def _reject(promise: asyncio.Future[object], error: BaseException) -> None:
    if not promise.done():
        promise.set_exception(error)
