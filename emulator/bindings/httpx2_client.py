"""httpx2 in Worker code, and what stands on it, such as openai.

It is httpx with other names: requests and answers are carried over, so that one mock serves both.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import httpx

from emulator.bindings.blocking import wait
from emulator.runtime.run_sync import can_run_sync

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from types import ModuleType

    from emulator.invocation import Invocation

    Send = Callable[[Invocation, httpx.Request], Awaitable[httpx.Response]]


def teach(
    sending: Callable[[], Invocation | None], send: Send, module: ModuleType
) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield what is to be replaced in httpx2's transports: owner, name, how."""
    asynchronous = functools.partial(_taught, sending, send)
    synchronous = functools.partial(_taught_now, sending, send)
    yield module.AsyncHTTPTransport, "handle_async_request", asynchronous
    yield module.HTTPTransport, "handle_request", synchronous


def _taught(sending: Callable[[], Invocation | None], send: Send, usual: Any) -> Any:
    @functools.wraps(usual)
    async def handle_async_request(self: Any, request: Any) -> Any:
        sender = sending()
        if sender is None:
            return await usual(self, request)
        await request.aread()
        return await _exchange(sender, send, request)

    return handle_async_request


def _taught_now(sending: Callable[[], Invocation | None], send: Send, usual: Any) -> Any:
    @functools.wraps(usual)
    def handle_request(self: Any, request: Any) -> Any:
        sender = sending()
        if sender is None or not can_run_sync():
            return usual(self, request)
        request.read()
        return wait(_exchange(sender, send, request))

    return handle_request


async def _exchange(sender: Invocation, send: Send, request: Any) -> Any:
    library: Any = sys.modules["httpx2"]
    try:
        response = await send(sender, _carried(request))
    except httpx.TransportError as error:
        kind = getattr(library, type(error).__name__, library.TransportError)
        raise kind(str(error), request=request) from error
    kind = type("Stream", (library.AsyncByteStream, library.SyncByteStream), vars(_Stream).copy())
    return library.Response(
        response.status_code,
        headers=response.headers.raw,
        stream=kind(response.stream),
        extensions=response.extensions,
    )


def _carried(request: Any) -> httpx.Request:
    timeout = request.extensions.get("timeout", {})
    return httpx.Request(
        request.method,
        str(request.url),
        headers=request.headers.raw,
        content=request.content,
        extensions={"timeout": timeout},
    )


class _Stream:
    """What a stream of httpx2's is made of."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    def __iter__(self) -> Iterator[bytes]:
        chunks = aiter(self._stream)
        while (chunk := wait(anext(chunks, None))) is not None:
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        wait(self._stream.aclose())
