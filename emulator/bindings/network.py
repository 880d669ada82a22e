"""Where outbound connections end: nowhere, or on the caller's event loop.

httpx's own client and connection pool run inside the simulation, so that mocks of any layer apply
to them; only what they ask of the network is decided here. A real connection belongs to the
caller's loop, where sockets are. Each operation on it is done there, the clock held meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import httpcore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from emulator.loop import SimLoop
    from emulator.pump import Pump

_T = TypeVar("_T")


class NoWayOut(Exception):
    """Raised where a request would leave the process."""


class Nowhere(httpcore.AsyncNetworkBackend):
    """A network that nothing can be reached on."""

    async def connect_tcp(self, *args: Any, **options: Any) -> Any:
        raise NoWayOut

    async def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        raise NoWayOut

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class OuterNetwork(httpcore.AsyncNetworkBackend):
    """The real network, by way of the loop of whoever calls the emulator."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        # Those not closed yet.
        self.connections: dict[_Connection, None] = {}

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        outer = self._pump.outer
        try:
            reader, writer = await _on(
                outer, self._pump.loop, lambda: asyncio.open_connection(host, port)
            )
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return _Connection(self, outer, self._pump.loop, reader, writer)

    async def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        raise NoWayOut

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Break off what is open, as far as its loop still lives."""
        for connection in list(self.connections):
            connection.abort()


class _Connection(httpcore.AsyncNetworkStream):
    """A connection of the caller's loop, used from the simulation."""

    def __init__(
        self,
        network: OuterNetwork,
        outer: asyncio.AbstractEventLoop,
        loop: SimLoop,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._network = network
        self._outer = outer
        self._loop = loop
        self._reader = reader
        self._writer = writer
        network.connections[self] = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await _on(self._outer, self._loop, lambda: self._reader.read(max_bytes))
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await _on(self._outer, self._loop, lambda: self._write(buffer))
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def _write(self, buffer: bytes) -> None:
        self._writer.write(buffer)
        await self._writer.drain()

    async def aclose(self) -> None:
        self._network.connections.pop(self, None)
        try:
            await _on(self._outer, self._loop, self._close)
        except OSError:
            pass  # it is closed all the same

    async def _close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            await _on(
                self._outer,
                self._loop,
                lambda: self._writer.start_tls(ssl_context, server_hostname=server_hostname),
            )
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._reader.at_eof()
        return self._writer.get_extra_info({"ssl_object": "ssl_object"}.get(info, info))

    def abort(self) -> None:
        """Close it at once."""
        self._network.connections.pop(self, None)
        if not self._outer.is_closed():
            self._writer.transport.abort()


async def _on(
    outer: asyncio.AbstractEventLoop, loop: SimLoop, make: Callable[[], Coroutine[Any, Any, _T]]
) -> _T:
    """Await a coroutine on the caller's loop from the simulation, whose clock stands still."""
    if outer.is_closed():
        raise ConnectionError("the event loop of this connection was closed")
    done: asyncio.Future[_T] = loop.create_future()

    async def work() -> None:
        try:
            result = await make()
        except asyncio.CancelledError:
            _settle(done, error=ConnectionError("the caller's event loop was stopped"))
            raise
        except Exception as error:
            _settle(done, error=error)
        else:
            _settle(done, result)
        finally:
            loop.in_flight -= 1

    loop.in_flight += 1
    # Kept while it waits: a loop holds its tasks weakly.
    task = outer.create_task(work())
    result = await done
    del task
    return result


def _settle(
    done: asyncio.Future[Any], value: object = None, *, error: Exception | None = None
) -> None:
    if done.done() or done.get_loop().is_closed():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(value)
