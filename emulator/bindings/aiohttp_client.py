"""aiohttp in Worker code: each connection leads to the one layer of outbound requests.

aiohttp writes HTTP/1.1 into a transport and reads an answer from it. The transport here reads the
request with h11, which httpx brings, sends it as `fetch` does, without following redirects, and
writes the answer. It serves one request: the answer says that the connection closes.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import h11

from emulator.bindings.decoded import OF_TRANSFER
from emulator.runtime.host import WebRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from emulator.invocation import Invocation


def teach(
    sending: Callable[[], Invocation | None], module: ModuleType
) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield what is to be replaced in `aiohttp.connector`: owner, name, how."""
    yield module.TCPConnector, "_create_connection", functools.partial(_create, sending)


def _create(sending: Callable[[], Invocation | None], usual: Any) -> Any:
    @functools.wraps(usual)
    async def _create_connection(self: Any, req: Any, *args: Any, **options: Any) -> Any:
        sender = sending()
        if sender is None:
            return await usual(self, req, *args, **options)
        protocol = self._factory()
        protocol.connection_made(_Transport(sender, protocol, str(req.url.origin())))
        return protocol

    return _create_connection


class _Transport(asyncio.Transport):
    """A connection to a server that is the outside."""

    def __init__(self, sender: Invocation, protocol: Any, origin: str) -> None:
        super().__init__({"peername": (origin, 0)})
        self._sender = sender
        self._protocol = protocol
        self._origin = origin
        self._server = h11.Connection(h11.SERVER)
        self._head: h11.Request | None = None
        self._body = b""
        self._closed = False
        self._reading = asyncio.Event()
        self._reading.set()
        self._work: asyncio.Task[None] | None = None

    # -- what aiohttp writes ---------------------------------------------------------------------

    def write(self, data: Any) -> None:
        """Take a part of the request; it is sent when it is complete."""
        self._server.receive_data(bytes(data))
        while True:
            event = self._server.next_event()
            if isinstance(event, h11.Request):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._work = asyncio.ensure_future(self._exchange())
                return
            else:
                return

    async def _exchange(self) -> None:
        assert self._head is not None
        headers = tuple(
            (name.decode(), value.decode("latin-1"))
            for name, value in self._head.headers
            if name not in (b"transfer-encoding", b"connection")
        )
        url = self._origin + self._head.target.decode()
        method = self._head.method.decode()
        try:
            request = WebRequest(method, url, headers, self._body, "manual")
            await self._answer(await self._sender.fetch(request))
        except OSError as error:
            self._lose(error)
        except Exception as error:
            self._lose(OSError(str(error)))
        else:
            self._lose(None)

    async def _answer(self, response: Any) -> None:
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in response.headers
            if name not in OF_TRANSFER
        ]
        reason = response.status_text.encode("latin-1", "replace")
        head = h11.Response(
            status_code=response.status,
            headers=[*headers, (b"connection", b"close")],
            reason=reason,
        )
        await self._give(head)
        if isinstance(response.body, bytes):
            if response.body:
                await self._give(h11.Data(data=response.body))
        else:
            async for chunk in response.body:
                await self._give(h11.Data(data=chunk))
        await self._give(h11.EndOfMessage())

    async def _give(self, event: Any) -> None:
        data = self._server.send(event)
        await self._reading.wait()
        if data and not self._closed:
            self._protocol.data_received(data)

    def _lose(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            # Later, as any transport: it may be the protocol's own code that closes.
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)

    # -- what a transport has besides ------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False
