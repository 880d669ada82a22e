"""The JavaScript class `ReadableStream`, its reader and its controller.

Theory of operation. A stream is a queue of chunks, a queue of reads that wait, and a state
(`readable`, `closed`, `errored`). Whoever feeds it calls `push`, `finish` or `fail`; a read takes a
chunk or waits and asks the source to pull. A pull that returns an awaitable becomes a task; the
next pull starts when it ends. Sources are pulled on demand only: production pulls a new stream once
before anybody reads, which shows only to a source that counts its pulls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Final

from emulator.runtime.pyproxy import PyProxy, to_host, unwrap
from emulator.runtime.web import idl
from emulator.runtime.web.promises import Rejected, Resolved, look_at, unwatched_future
from emulator.runtime.web.sources import (
    CallbackSource,
    Controller,
    IteratorSource,
    NoSource,
    Source,
    TeeSource,
    awaitable,
)
from emulator.values import UNDEFINED, HostObject, JsException

LOCKED: Final = "This ReadableStream is currently locked to a reader."
NOT_BYTES: Final = "This ReadableStream did not return bytes."
_RELEASED: Final = "This ReadableStream reader has been released."

Read = dict[str, object]


class ReadableStream(HostObject):
    """A stream of chunks that one reader takes."""

    js_class = "ReadableStream"
    js_members = frozenset(
        ["cancel", "getReader", "locked", "pipeThrough", "pipeTo", "tee", "values"]
    )
    js_statics: ClassVar[frozenset[str]] = frozenset({"from"})

    def __init__(self, source: Source | None = None) -> None:
        self._source: Source = source or NoSource()
        self._state = "readable"
        self._error: BaseException | None = None
        self._chunks: deque[Any] = deque()
        self._reads: deque[asyncio.Future[Read]] = deque()
        self._pulling = False
        self._pull_again = False
        self._finishing = False
        self._reader: Reader | None = None
        self._ended: asyncio.Future[Any] | None = None
        self.disturbed = False
        # In bytes, where the platform knows it before it is read.
        self.length: int | None = None

    @classmethod
    def js_new(cls, source: object = UNDEFINED, strategy: object = UNDEFINED) -> ReadableStream:
        """Do `new ReadableStream({start, pull, cancel, type}, {highWaterMark})`."""
        callbacks = idl.options(source)
        kind = callbacks.get("type", UNDEFINED)
        if kind not in (UNDEFINED, "bytes"):
            text = idl.string(kind)
            raise JsException("TypeError", f'"{text}" is not a valid type of ReadableStream.')
        mark = idl.options(strategy).get("highWaterMark", 0 if kind == "bytes" else 1)
        stream = cls()
        controller = Controller(stream, bytes_only=kind == "bytes", mark=idl.number(mark))
        stream._source = CallbackSource(callbacks, controller)
        if "start" in callbacks:
            stream._start(callbacks["start"], controller)
        return stream

    @classmethod
    def from_(cls, items: object = UNDEFINED) -> ReadableStream:
        """Do `ReadableStream.from(iterable)`."""
        if isinstance(items, PyProxy) and isinstance(items.obj, AsyncIterable):
            return cls(IteratorSource(_converted(items.obj)))
        found = items if isinstance(items, str) else idl.sequence(items)
        if found is None:
            raise idl.wrong_argument("from", "ReadableStream", 1, "AsyncGenerator")
        stream = cls()
        for item in found:
            stream.push(item)
        stream.finish()
        return stream

    @classmethod
    def of_bytes(cls, data: bytes) -> ReadableStream:
        """Return a stream whose one chunk is `data`."""
        stream = cls()
        stream.length = len(data)
        if data:
            stream.push(data)
        stream.finish()
        return stream

    # For whoever feeds the stream.

    @property
    def state(self) -> str:
        """Return `readable`, `closed` or `errored`."""
        return self._state

    @property
    def hungry(self) -> bool:
        """Tell whether a read waits."""
        return bool(self._reads)

    @property
    def backlog(self) -> int:
        """Return how many chunks wait to be read."""
        return len(self._chunks)

    def push(self, chunk: object) -> None:
        """Hand a chunk to the oldest waiting read, or keep it."""
        while self._reads:
            read = self._reads.popleft()
            if not read.done():
                read.set_result({"value": chunk, "done": False})
                self._pull_again = True
                return
        self._chunks.append(chunk)

    def finish(self) -> None:
        """Close the stream once its chunks are read."""
        if self._chunks:
            self._finishing = True
        elif self._state == "readable":
            self._end()

    def fail(self, error: BaseException) -> None:
        """Break the stream: chunks not read yet are lost."""
        if self._state != "readable":
            return
        self._state, self._error = "errored", error
        self._chunks.clear()
        for read in self._reads:
            if not read.done():
                read.set_exception(error)
        self._reads.clear()
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)

    # For the reader.

    def read(self) -> Awaitable[Read]:
        """Take the next chunk: `{value, done}`."""
        self.disturbed = True
        if self._chunks:
            chunk = self._chunks.popleft()
            if self._finishing and not self._chunks:
                self._end()
            return Resolved({"value": chunk, "done": False})
        if self._state == "closed":
            return Resolved({"value": UNDEFINED, "done": True})
        if self._error is not None:
            return Rejected(self._error)
        read: asyncio.Future[Read] = unwatched_future()
        self._reads.append(read)
        self._pull()
        return read

    def ended(self) -> Awaitable[object]:
        """Return a promise for the end of the stream (`reader.closed`)."""
        if self._state == "closed":
            return Resolved(UNDEFINED)
        if self._error is not None:
            return Rejected(self._error)
        if self._ended is None:
            self._ended = unwatched_future()
        return self._ended

    def stop(self, reason: object) -> Awaitable[object]:
        """Cancel the stream, whoever holds its lock."""
        self.disturbed = True
        if self._error is not None:
            return Rejected(self._error)
        if self._state == "closed":
            return Resolved(UNDEFINED)
        self._chunks.clear()
        self._end()
        work = self._source.cancel(reason)
        return Resolved(UNDEFINED) if work is None else _then_undefined(work)

    # For user code.

    @property
    def locked(self) -> bool:
        """Tell whether a reader holds the stream."""
        return self._reader is not None

    def getReader(self, options: object = UNDEFINED) -> Reader:
        """Lock the stream and return its reader."""
        mode = idl.options(options).get("mode", UNDEFINED)
        if mode == "byob":
            raise JsException("TypeError", "This ReadableStream does not support BYOB reads.")
        if mode is not UNDEFINED:
            raise JsException(
                "TypeError", "mode must be undefined or 'byob' in call to getReader()."
            )
        self._check_free()
        self._reader = Reader(self)
        return self._reader

    def cancel(self, reason: object = UNDEFINED) -> Awaitable[object]:
        """Tell the source that nobody will read on."""
        return Rejected(JsException("TypeError", LOCKED)) if self.locked else self.stop(reason)

    def tee(self) -> list[ReadableStream]:
        """Lock the stream and return two that each get every chunk."""
        if self.locked:
            # The comma is the runtime's.
            raise JsException("TypeError", LOCKED[:-1] + ",")
        branches = TeeSource(self.getReader(), ReadableStream).branches
        for branch in branches:
            branch.length = self.length
        return branches

    def pipeTo(
        self, destination: object = UNDEFINED, options: object = UNDEFINED
    ) -> Awaitable[object]:
        """Write every chunk to a `WritableStream`; the promise is for the end."""
        from emulator.runtime.web.writable import WritableStream, pipe

        if not isinstance(destination, WritableStream):
            return Rejected(idl.wrong_argument("pipeTo", "ReadableStream", 1, "WritableStream"))
        if self.locked:
            return Rejected(JsException("TypeError", LOCKED))
        if destination.locked:
            text = "This WritableStream is currently locked to a writer"
            return Rejected(JsException("TypeError", text))
        return pipe(self.getReader(), destination.getWriter(), idl.options(options))

    def pipeThrough(self, transform: object = UNDEFINED, options: object = UNDEFINED) -> object:
        """Pipe into `transform.writable` and return `transform.readable`."""
        self._check_free()
        writable = _member(transform, "writable")
        readable = _member(transform, "readable")
        if readable is UNDEFINED or writable is UNDEFINED:
            raise idl.wrong_argument("pipeThrough", "ReadableStream", 1, "Transform")
        piping = asyncio.ensure_future(self.pipeTo(writable, options))
        # Its failure shows on the readable side.
        piping.add_done_callback(look_at)
        return readable

    def values(self, options: object = UNDEFINED) -> AsyncIterator[Any]:
        """Return an asynchronous iterator; leaving it early cancels unless `preventCancel`."""
        keep = bool(idl.options(options).get("preventCancel", False))
        return _iterate(self.getReader(), keep)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self.values()

    # Inside.

    def native(self) -> AsyncIterator[Any] | None:
        """Return the Python iterator behind an untouched stream, to read it without copies."""
        fresh = not (self.disturbed or self.locked or self._chunks) and self._state == "readable"
        source = self._source
        return source.chunks if fresh and isinstance(source, IteratorSource) else None

    def take_whole(self) -> bytes | None:
        """Lock an untouched stream that has all its bytes, and return them.

        None for others, and where there are none: a stream that turns out empty is a body.
        """
        if not (self.length and self._finishing) or self.disturbed or self.locked:
            return None
        self.getReader()
        self.disturbed = True
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._end()
        return data

    def release(self) -> None:
        """Give up the lock; reads that wait are rejected."""
        self._reader = None
        for read in self._reads:
            if not read.done():
                read.set_exception(JsException("TypeError", _RELEASED))
        self._reads.clear()

    def _check_free(self) -> None:
        if self.locked:
            raise JsException("TypeError", LOCKED)

    def _start(self, start: Callable[..., Any], controller: Controller) -> None:
        try:
            started = awaitable(start(controller))
        except Exception as error:
            # As in JavaScript: the stream exists, and reading it fails.
            self.fail(error)
            return
        if started is not None:
            self._pulling = True
            self._follow(started)

    def _end(self) -> None:
        self._state = "closed"
        for read in self._reads:
            if not read.done():
                read.set_result({"value": UNDEFINED, "done": True})
        self._reads.clear()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(UNDEFINED)

    def _pull(self) -> None:
        if self._pulling:
            self._pull_again = True
            return
        self._pull_again = True
        while self._pull_again and self._reads and self._state == "readable":
            self._pull_again = False
            self._pulling = True
            try:
                pulled = self._source.pull(self)
            except Exception as error:
                self.fail(error)
                pulled = None
            if pulled is not None:
                self._follow(pulled)
                return
            self._pulling = False

    def _follow(self, work: Awaitable[Any]) -> None:
        asyncio.ensure_future(work).add_done_callback(self._pulled)

    def _pulled(self, work: asyncio.Future[Any]) -> None:
        self._pulling = False
        if work.cancelled():
            self.fail(JsException("Error", "The stream's source was cancelled."))
        elif (error := work.exception()) is not None:
            self.fail(error)
        elif self._pull_again and self._reads:
            self._pull()


# A keyword of Python's.
setattr(ReadableStream, "from", ReadableStream.from_)


class Reader(HostObject):
    """A `ReadableStreamDefaultReader`: the lock on a stream and the way to read it."""

    js_class = "ReadableStreamDefaultReader"
    js_members = frozenset(["cancel", "closed", "read", "releaseLock"])

    def __init__(self, stream: ReadableStream) -> None:
        self._stream: ReadableStream | None = stream

    @classmethod
    def js_new(cls, stream: object = UNDEFINED) -> Reader:
        """Do `new ReadableStreamDefaultReader(stream)`."""
        if not isinstance(stream, ReadableStream):
            raise idl.wrong_construction(cls.js_class, 1, "ReadableStream")
        return stream.getReader()

    @property
    def closed(self) -> Awaitable[object]:
        """Return a promise for the end of the stream."""
        return self._released() if self._stream is None else self._stream.ended()

    def read(self) -> Awaitable[Read]:
        """Take the next chunk: `{value, done}`."""
        return self._released() if self._stream is None else self._stream.read()

    def cancel(self, reason: object = UNDEFINED) -> Awaitable[object]:
        """Tell the source that nobody will read on."""
        return self._released() if self._stream is None else self._stream.stop(reason)

    def releaseLock(self) -> object:
        """Give the stream back."""
        if self._stream is not None:
            self._stream.release()
            self._stream = None
        return UNDEFINED

    def _released(self) -> Rejected:
        return Rejected(JsException("TypeError", _RELEASED))


async def _converted(items: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for item in items:
        yield to_host(unwrap(item))


async def _iterate(reader: Reader, keep: bool) -> AsyncIterator[Any]:
    finished = False
    try:
        while True:
            read = await reader.read()
            if read["done"]:
                finished = True
                return
            yield read["value"]
    except JsException:
        finished = True
        raise
    finally:
        if not (finished or keep):
            await reader.cancel()
        reader.releaseLock()


async def _then_undefined(work: Awaitable[Any]) -> object:
    await work
    return UNDEFINED


def _member(owner: object, name: str) -> object:
    if isinstance(owner, dict):
        return owner.get(name, UNDEFINED)
    return getattr(owner, name, UNDEFINED)
