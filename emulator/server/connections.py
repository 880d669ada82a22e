"""HTTP connections of a server: uvicorn's, whose answers leave in one piece.

uvicorn writes the head of an answer and its body one by one, each with a call of the system that
takes longer than all else the connection does. What is written here in one go is sent in one go,
when the event loop has run what it has to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulator.server.asked import CONTROL, is_host
from emulator.server.direct import has_body, whole_answer
from emulator.server.failures import NO_ANSWER
from emulator.server.unframed import Unframed, is_old

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from emulator.ingress import Exchange
    from emulator.server.gateway import Gateway, Receive, Scope, Send

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

    def write_now(self, data: bytes) -> None:
        """Send this now, after what was written before."""
        self.flush()
        self.wrapped.write(data)

    def is_closing(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self.wrapped.is_closing()

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self.flush()
        self.wrapped.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


class Connection(HttpToolsProtocol):
    """One connection with a client.

    A request whose body and answer are whole is answered without a task (`direct.py`).
    """

    # What is to be answered directly as soon as its body is there.
    _arriving: tuple[Gateway, RequestResponseCycle] | None = None
    _gathering: GatheringTransport
    # When the last answer was complete, if nothing came in since.
    _idle_since: float | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn's own
        self, transport: asyncio.Transport
    ) -> None:
        """Called by the event loop when there is one."""
        self._gathering = GatheringTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._gathering))

    def on_headers_complete(self) -> None:
        """Called when a request's head is complete; what it raises is answered with 400."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (hosts and not is_host(hosts[0])):
            raise ValueError("a request has one host, and this is none")
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        gateway: Gateway | None = getattr(app, "gateway", None)
        scope: Any = cycle.scope
        waits = None if gateway is None or gateway.is_recorded else has_body(scope)
        if gateway is None or waits is None:
            self._start_task(cycle, app)
        elif waits and cycle.more_body:
            self._arriving = gateway, cycle
        else:
            self._begin(gateway, cycle)

    def _start_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Let an ASGI application answer."""
        scope: Any = cycle.scope
        told: Any = Unframed(app, cycle) if is_old(scope) else app
        super()._start_asgi_task(cycle, told)

    def on_message_complete(self) -> None:
        """Called when a request is complete."""
        super().on_message_complete()
        if self._arriving is not None:
            (gateway, cycle), self._arriving = self._arriving, None
            self._begin(gateway, cycle)

    def _begin(self, gateway: Gateway, cycle: RequestResponseCycle) -> None:
        """Send a request to its Worker."""

        def started(error: BaseException | None) -> None:
            self._answer(gateway, cycle, exchange, error)

        scope: Any = cycle.scope
        try:
            exchange = gateway.begin(scope, bytes(cycle.body), started)
        except NO_ANSWER:
            self._start_task(cycle, self.app)  # for a page that says why

    def _answer(
        self,
        gateway: Gateway,
        cycle: RequestResponseCycle,
        exchange: Exchange,
        error: BaseException | None,
    ) -> None:
        """Answer a request whose answer has begun; if that takes time, in a task."""
        if error is None and cycle.keep_alive and not self.flow.write_paused:
            answer = whole_answer(exchange, cycle.default_headers)
            if answer is not None:
                gateway.answered(exchange)
                if not cycle.disconnected:
                    cycle.response_started = cycle.response_complete = True
                    self._gathering.write_now(answer)
                    self.on_response_complete()
                return
        cycle.body.clear()  # the Worker has it

        async def go_on(_: Scope, receive: Receive, send: Send) -> None:
            await gateway.finish(exchange, error, receive, send)

        self._start_task(cycle, go_on)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's always closes
        """Called when the client sends no more; whether it may still be answered.

        A client that has closed the connection looks the same, until something is written.
        """
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return False  # nothing was asked, or not all of it
        if cycle.response_started and cycle.scope["path"].startswith(CONTROL):
            return False  # what is followed there has no end
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Called with what the client has sent."""
        gateway: Gateway | None = getattr(self.app, "gateway", None)
        pump = None if gateway is None else gateway.pump
        if pump is None:
            super().data_received(data)
            return
        # The turn that a request waits for runs here, if nothing else has come in.
        pump.gather()
        try:
            super().data_received(data)
        finally:
            pump.go()

    def on_response_complete(self) -> None:
        """Called when an answer is complete: it need not wait for the event loop."""
        self._gathering.flush()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._close_when_idle(self.timeout_keep_alive)

    # One timer goes on from request to request, where uvicorn makes one for each.

    def _unset_keepalive_if_required(self) -> None:
        """Called when something came in, or the connection is lost: the timer finds out."""
        self._idle_since = None

    def _close_when_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was kept in vain for its time."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return  # the answer starts the timer again
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._close_when_idle(left)
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection is over."""
        super().connection_lost(exc)
        self._arriving = None
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the protocol of WebSockets."""
        self._gathering.flush()
        self.transport = self._gathering.wrapped
        super().handle_websocket_upgrade()
