"""HTTP connections of a server: uvicorn's, whose answers leave in one piece.

uvicorn writes the head of an answer and its body one by one, each with a call of the system that
takes longer than all else the connection does. What is written here in one go is sent in one go,
when the event loop has run what it has to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

# More than this is not gathered: the transport is to notice that a client is slow.
_MOST_GATHERED: Final = 65_536


class GatheringTransport:
    """A transport that sends together what is written together; for all else the one it wraps."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.wrapped: Final = transport
        self._loop = loop
        self._gathered: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send this soon."""
        if not self._gathered:
            self._loop.call_soon(self.flush)
        self._gathered.append(data)
        self._size += len(data)
        if self._size > _MOST_GATHERED:
            self.flush()

    def flush(self) -> None:
        """Send now what was written."""
        if self._gathered:
            gathered, self._gathered, self._size = self._gathered, [], 0
            self.wrapped.write(b"".join(gathered))

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self.flush()
        self.wrapped.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


class Connection(HttpToolsProtocol):
    """One connection with a client."""

    def connection_made(  # type: ignore[override]  # as uvicorn's own
        self, transport: asyncio.Transport
    ) -> None:
        """Called by the event loop when there is one."""
        gathering = GatheringTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", gathering))

    def on_response_complete(self) -> None:
        """Called when an answer is complete: it need not wait for the event loop."""
        if isinstance(self.transport, GatheringTransport):
            self.transport.flush()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the protocol of WebSockets."""
        if isinstance(self.transport, GatheringTransport):
            self.transport.flush()
            self.transport = self.transport.wrapped
        super().handle_websocket_upgrade()
