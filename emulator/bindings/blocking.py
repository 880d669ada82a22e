"""Waiting for the outside in synchronous code, and reading what it sends."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import httpx

from emulator.loop import SimLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator


def wait(work: Awaitable[Any]) -> Any:
    """Wait without `await`; the code must be one that can (`run_sync.can_run_sync`)."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    future = asyncio.ensure_future(work)
    loop.stacks.wait(future)
    return future.result()


def wait_at_most(work: Awaitable[Any], seconds: float | None) -> Any:
    """Wait for so many seconds; raises `TimeoutError` then."""
    return wait(asyncio.wait_for(work, seconds if seconds else None))


class SyncStream(httpx.SyncByteStream):
    """A stream of httpx's, of an answer that synchronous code reads."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        chunks = aiter(self._stream)
        while (chunk := wait(_next(chunks))) is not None:
            yield chunk

    def close(self) -> None:
        wait(self._stream.aclose())


class SyncBody(io.RawIOBase):
    """A body as a file; each read waits for at most so many seconds."""

    def __init__(self, body: bytes | AsyncIterator[bytes], seconds: float | None) -> None:
        self._rest = body if isinstance(body, bytes) else b""
        self._chunks = None if isinstance(body, bytes) else body
        self._seconds = seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self._chunks is not None:
            chunk = wait_at_most(_next(self._chunks), self._seconds)
            if chunk is None:
                self._chunks = None
            else:
                self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def as_bytes(body: Any) -> bytes:
    """The bytes of a body as synchronous clients take one: text, bytes, a file, parts."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    if hasattr(body, "read"):
        return as_bytes(body.read())
    return b"".join(map(as_bytes, body))
