"""Requests a Worker makes to the outside.

`fetch`, by whatever API, ends in `Outbound.send`, and from there in one of httpx's transports,
where respx and its like mock it. httpx clients that a Worker makes itself pass through here too
(`own_clients.py`); other ones are stopped at the socket. What nothing mocks is refused (`deny`), or
really sent from the caller's loop, the clock held meanwhile (`allow`).

A mock's side effect is the test's code, run in the simulation: what it raises is the Worker's to
handle, as an answer would be, but a failed assertion and a misuse of the emulator reach the test.
"""

from __future__ import annotations

import asyncio
import sys
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import httpcore
import httpx

from emulator.bindings import own_clients
from emulator.bindings.incoming_body import IncomingBody
from emulator.bindings.outbound_site import OutboundSite, PowerCutHere
from emulator.bindings.redirects import follow
from emulator.errors import EmulatorError, OutboundDenied
from emulator.location import Location, caller
from emulator.runtime.host import WebRequest, WebResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from emulator.invocation import Invocation
    from emulator.kernel import Kernel


class Outbound:
    """The outside world of one emulator."""

    def __init__(self, kernel: Kernel, mode: Literal["deny", "allow"]) -> None:
        self._kernel = kernel
        self._mode = mode
        self._transport: httpx.AsyncBaseTransport | None = None
        # With `allow`, one per loop of the caller: connections belong to a loop.
        self._real: dict[asyncio.AbstractEventLoop, httpx.AsyncHTTPTransport] = {}
        kernel.loop.on_socket = self._refuse_socket
        own_clients.watch()

    # -- fetch -----------------------------------------------------------------------------------

    def send(self, invocation: Invocation, request: WebRequest) -> Awaitable[WebResponse]:
        """Send a request for an invocation; raises an `OSError` without an answer.

        It never resolves for an invocation that is over: its calls have no effect.
        """
        if not isinstance(request.body, bytes):
            return self._read_and_send(invocation, request)
        answer = self._kernel.loop.create_future()
        answer.add_done_callback(_look_at)
        if invocation.alive:
            work = self._perform(invocation, request, answer, caller())
            self._kernel.loop.spawn_kernel(work, "outbound request")
        return answer

    async def _read_and_send(self, invocation: Invocation, request: WebRequest) -> WebResponse:
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        body = await read_body(request.body)
        return await self.send(invocation, replace(request, body=body))

    async def _perform(
        self,
        invocation: Invocation,
        request: WebRequest,
        answer: asyncio.Future[WebResponse],
        where: Location | None,
    ) -> None:
        if invocation.dead and invocation.gone:
            return  # its power was cut before this request's turn came
        try:
            response = await self._fetch(invocation, request, where)
        except PowerCutHere:
            return
        except Exception as error:
            if not answer.done():
                answer.set_exception(_as_os_error(error))
        else:
            if not answer.done():
                answer.set_result(response)

    async def _fetch(
        self, invocation: Invocation, request: WebRequest, where: Location | None
    ) -> WebResponse:
        message = _message(request)
        answered = message

        async def exchange(_: httpx.Request) -> httpx.Response:
            nonlocal answered
            response, answered = await follow(hop, message, request.redirect)
            return response

        hop = partial(self._hop, invocation, where)
        response = await self._at_site(invocation, message, exchange)
        body = IncomingBody(self._kernel.loop, response, lambda: not invocation.gone)
        url = request.url if answered is message else str(answered.url)
        return _web_response(response, await body.start(), url, answered is not message)

    async def _hop(
        self, invocation: Invocation, where: Location | None, request: httpx.Request
    ) -> httpx.Response:
        """One request and its answer, by a mock if there is one."""
        if self._transport is None:
            self._transport = _DenyTransport()
        try:
            return await self._transport.handle_async_request(request)
        except _Denied:
            if self._mode == "allow":
                return await self._send_really(request)
            raise self._deny(invocation, request, where) from None
        except _unmatched():
            raise self._deny(invocation, request, where) from None

    async def _at_site(
        self,
        invocation: Invocation,
        request: httpx.Request,
        exchange: Callable[[httpx.Request], Awaitable[httpx.Response]],
    ) -> httpx.Response:
        """Exchange a request for its answer, past the faults that strike it."""
        site = OutboundSite(invocation, request)
        early = site.before()
        if early is not None:
            return early
        try:
            response = await exchange(request)
        except Exception as error:
            self._tell_test(error)
            site.failed()
            raise
        if site.answer_never_comes:
            await asyncio.sleep(site.patience)
            raise site.out_of_patience()
        return site.answered(response)

    def _tell_test(self, error: Exception) -> None:
        """Abort the run where an exception of a mock's is the test's affair."""
        if isinstance(error, (AssertionError, EmulatorError)) and not isinstance(
            error, OutboundDenied
        ):
            self._kernel.loop.abort(error)

    # -- clients of the Worker's own -------------------------------------------------------------

    async def pass_on(
        self,
        invocation: Invocation,
        usual: Callable[[httpx.Request], Awaitable[httpx.Response]],
        request: httpx.Request,
    ) -> httpx.Response:
        """Send a request of an httpx client of the Worker's, whose transport does `usual`.

        Raises httpx's errors, denied ones included.
        """
        await request.aread()
        exchange = partial(self._try_usual, invocation, usual, caller())
        try:
            return await self._at_site(invocation, request, exchange)
        except PowerCutHere:
            return await self._kernel.loop.create_future()  # type: ignore[no-any-return]

    async def _try_usual(
        self,
        invocation: Invocation,
        usual: Callable[[httpx.Request], Awaitable[httpx.Response]],
        where: Location | None,
        request: httpx.Request,
    ) -> httpx.Response:
        attempt = _Attempt()
        token = _attempt.set(attempt)
        try:
            return await usual(request)
        except Exception as error:
            if not (attempt.refused or isinstance(error, _unmatched())):
                raise
            if attempt.refused and self._mode == "allow":
                return await self._send_really(request)
            raise self._deny_client(invocation, request, where) from None
        finally:
            _attempt.reset(token)

    def pass_on_now(
        self,
        invocation: Invocation,
        usual: Callable[[httpx.Request], httpx.Response],
        request: httpx.Request,
    ) -> httpx.Response:
        """`pass_on` for a synchronous client; no virtual time passes, even for a `timeout`."""
        request.read()
        where = caller()
        try:
            site = OutboundSite(invocation, request)
            early = site.before()
            if early is not None:
                return early
            try:
                response = self._try_usual_now(invocation, usual, where, request)
            except Exception as error:
                self._tell_test(error)
                site.failed()
                raise
            if site.answer_never_comes:
                raise site.out_of_patience()
            return site.answered(response)
        except PowerCutHere:
            self._kernel.loop.cut_here()

    def _try_usual_now(
        self,
        invocation: Invocation,
        usual: Callable[[httpx.Request], httpx.Response],
        where: Location | None,
        request: httpx.Request,
    ) -> httpx.Response:
        attempt = _Attempt()
        token = _attempt.set(attempt)
        try:
            return usual(request)
        except Exception as error:
            if not (attempt.refused or isinstance(error, _unmatched())):
                raise
            raise self._deny_client(invocation, request, where) from None
        finally:
            _attempt.reset(token)

    # -- the real exchange -----------------------------------------------------------------------

    async def _send_really(self, request: httpx.Request) -> httpx.Response:
        """Send from the caller's loop, where sockets are; the clock stands still meanwhile."""
        loop, outer = self._kernel.loop, self._kernel.pump.outer
        arrived: asyncio.Future[httpx.Response] = loop.create_future()

        async def exchange() -> None:
            try:
                response = await _read_whole(self._real_transport(outer), request)
            except asyncio.CancelledError:
                _resolve(arrived, error=ConnectionError("the caller's event loop was stopped"))
                raise
            except Exception as error:
                _resolve(arrived, error=error)
            else:
                _resolve(arrived, response)
            finally:
                loop.in_flight -= 1

        loop.in_flight += 1
        # Kept while it waits: a loop holds its tasks weakly.
        task = outer.create_task(exchange())
        response = await arrived
        del task
        return response

    def _real_transport(self, outer: asyncio.AbstractEventLoop) -> httpx.AsyncHTTPTransport:
        for loop in [loop for loop in self._real if loop.is_closed()]:
            del self._real[loop]
        if outer not in self._real:
            # No connection is kept: nobody could close it when the emulator is closed.
            self._real[outer] = httpx.AsyncHTTPTransport(
                limits=httpx.Limits(max_keepalive_connections=0)
            )
        return self._real[outer]

    # -- refusals --------------------------------------------------------------------------------

    def _deny(
        self, invocation: Invocation, request: httpx.Request, where: Location | None
    ) -> OutboundDenied:
        method, url = request.method, str(request.url)
        text = (
            f"{method} {url} is not mocked, and outbound requests are denied. Mock it "
            f'(`respx_mock.{method.lower()}("{url}").respond(200)`), or allow real ones with '
            '`outbound="allow"`'
        )
        if self._mode == "allow":
            text = (
                f"{method} {url} matches no route of the active respx mock, which lets nothing "
                "else through. Add a route (`.pass_through()` sends the request), or make the "
                "mock with `assert_all_mocked=False`"
            )
        invocation.find("outbound_unmocked", text, where)
        return OutboundDenied(text)

    def _deny_client(
        self, invocation: Invocation, request: httpx.Request, where: Location | None
    ) -> httpx.ConnectError:
        denied = self._deny(invocation, request, where)
        error = httpx.ConnectError(str(denied), request=request)
        error.__cause__ = denied
        return error

    def _refuse_socket(self, target: str) -> OSError:
        attempt = _attempt.get()
        if attempt is not None:
            attempt.refused = True
            return ConnectionError(f"no connection to {target}")
        text = (
            f"a connection to {target} was attempted from Worker code. Outbound requests are "
            "mocked at httpx or sent with `fetch`; sockets are not available in the simulation"
        )
        scope: Any = self._kernel.loop.running_scope
        if hasattr(scope, "find"):
            scope.find("outbound_unmocked", text, caller())
        return OutboundDenied(text)


class _Attempt:
    """An httpx client's own transport at work; `refused` once it reached for a socket."""

    refused = False


_attempt: ContextVar[_Attempt | None] = ContextVar("emulator.attempt", default=None)


class _Denied(Exception):
    """Raised where a request would leave the process."""


class _Nowhere(httpcore.AsyncNetworkBackend):
    async def connect_tcp(self, *args: Any, **options: Any) -> Any:
        raise _Denied

    async def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        raise _Denied

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _DenyTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, so that mocks of it and of httpcore apply, with no way out.

    Its constructor is skipped: reading the certificates costs more than most tests.
    """

    def __init__(self) -> None:
        self._pool = httpcore.AsyncConnectionPool(network_backend=_Nowhere())


def _unmatched() -> tuple[type[Exception], ...]:
    """What respx raises for a request that none of its routes matches."""
    models: Any = sys.modules.get("respx.models")
    return (models.AllMockedAssertionError,) if models is not None else ()


def _look_at(answer: asyncio.Future[Any]) -> None:
    """Nobody may await an answer; that is told by a finding, not by asyncio's warning."""
    if not answer.cancelled():
        answer.exception()


def _message(request: WebRequest) -> httpx.Request:
    headers = [(_header(name), _header(value)) for name, value in request.headers]
    assert isinstance(request.body, bytes)
    return httpx.Request(request.method, request.url, headers=headers, content=request.body)


def _header(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _web_response(
    response: httpx.Response, body: bytes | IncomingBody, url: str, redirected: bool
) -> WebResponse:
    headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
    return WebResponse(response.status_code, response.reason_phrase, headers, body, url, redirected)


async def _read_whole(
    transport: httpx.AsyncHTTPTransport, request: httpx.Request
) -> httpx.Response:
    """A real answer, freed of its connection."""
    response = await transport.handle_async_request(request)
    try:
        content = b"".join([chunk async for chunk in response.aiter_raw()])
    finally:
        await response.aclose()
    phrase = {"reason_phrase": response.extensions.get("reason_phrase", b"")}
    return httpx.Response(
        response.status_code, headers=response.headers, content=content, extensions=phrase
    )


async def read_body(body: bytes | AsyncIterator[bytes]) -> bytes:
    """Return a whole body, whatever its form."""
    if isinstance(body, bytes):
        return body
    return b"".join([chunk async for chunk in body])


def _resolve(
    future: asyncio.Future[Any], value: object = None, *, error: BaseException | None = None
) -> None:
    if future.done() or future.get_loop().is_closed():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def _as_os_error(error: Exception) -> Exception:
    """A failure of the network as `fetch` raises it; what a mock raised besides keeps its type."""
    if isinstance(error, httpx.HTTPError):
        return ConnectionError(f"Network connection lost. ({type(error).__name__}: {error})")
    return error
