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
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import httpx

from emulator.bindings import own_clients
from emulator.bindings.incoming_body import IncomingBody
from emulator.bindings.network import NoWayOut, Nowhere, OuterNetwork
from emulator.bindings.outbound_site import OutboundSite, PowerCutHere
from emulator.bindings.redirects import follow
from emulator.bindings.transport import Client, is_unmatched
from emulator.errors import EmulatorError, OutboundDenied
from emulator.location import Location, caller, raised_at
from emulator.runtime.host import WebRequest, WebResponse
from emulator.websockets.servers import Servers, asks_for_socket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from emulator.bindings.sent import SentRequest
    from emulator.invocation import Invocation
    from emulator.kernel import Kernel
    from emulator.loop import SimLoop


# What a network, or a service behind it, may do to a request; `OutboundDenied` is an OSError.
_NETWORK = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError)


class Tape(Protocol):
    """Stands between an emulator and the outside: records what passes, or plays it back."""

    @property
    def ended(self) -> bool:
        """Whether what it would have to know is over."""

    async def exchange(
        self, request: httpx.Request, real: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Exchange a request for its answer; raises `NoWayOut` where there is none."""

    def missing(self, method: str, url: str) -> str | None:
        """Return what to tell of a request without an answer; None for what is always told."""


class Outbound:
    """The outside world of one emulator; a `tape` knows what passes."""

    def __init__(self, kernel: Kernel, mode: Literal["deny", "allow"]) -> None:
        self._kernel = kernel
        self.network = OuterNetwork(kernel.pump) if mode == "allow" else Nowhere()
        self._client: httpx.AsyncClient | None = None
        self.sent: list[SentRequest] = []
        self.tape: Tape | None = None
        self.servers = Servers(kernel)
        kernel.loop.on_socket = self._refuse_socket
        own_clients.watch(self)

    @property
    def loop(self) -> SimLoop:
        """The loop of the simulation."""
        return self._kernel.loop

    @property
    def allows(self) -> bool:
        """Whether what nothing mocks is really sent."""
        return isinstance(self.network, OuterNetwork)

    def close(self) -> None:
        """Break off the connections that are open, and leave httpx alone."""
        own_clients.unwatch(self)
        if isinstance(self.network, OuterNetwork):
            self.network.close()

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
            work = self._perform(invocation, request, answer, caller(), invocation.repeats())
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
        repeats: bool,
    ) -> None:
        if invocation.dead and invocation.gone:
            return  # its power was cut before this request's turn came
        try:
            response = await self._fetch(invocation, request, where, repeats)
        except PowerCutHere:
            return
        except Exception as error:
            if not answer.done():
                answer.set_exception(_as_os_error(error))
        else:
            if not answer.done():
                answer.set_result(response)

    async def _fetch(
        self,
        invocation: Invocation,
        request: WebRequest,
        where: Location | None,
        repeats: bool,
    ) -> WebResponse:
        message = _message(request)
        answered = message

        async def exchange(_: httpx.Request) -> httpx.Response:
            nonlocal answered
            response, answered = await follow(hop, message, request.redirect)
            return response

        hop = partial(self._hop, invocation, where)
        response = await self.at_site(invocation, message, exchange, repeats=repeats)
        body = IncomingBody(self._kernel.loop, response, lambda: not invocation.gone)
        url = request.url if answered is message else str(answered.url)
        return _web_response(response, await body.start(), url, answered is not message)

    async def _hop(
        self, invocation: Invocation, where: Location | None, request: httpx.Request
    ) -> httpx.Response:
        """One request and its answer, by a mock if there is one."""
        opened = self.servers.answer(request)
        if opened is not None:
            return opened
        try:
            return await self.past_tape(request, partial(self._leave, request))
        except Exception as error:
            if isinstance(error, NoWayOut) or is_unmatched(error):
                raise self.deny(invocation, request, where) from None
            raise

    async def _leave(self, request: httpx.Request) -> httpx.Response:
        if self._client is None:
            self._client = Client(self.network)
        return await self._client.send(request, stream=True)

    async def past_tape(
        self, request: httpx.Request, real: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Exchange a request for its answer: the real one, or that of a recording."""
        return await (real() if self.tape is None else self.tape.exchange(request, real))

    async def at_site(
        self,
        invocation: Invocation,
        request: httpx.Request,
        exchange: Callable[[httpx.Request], Awaitable[httpx.Response]],
        *,
        repeats: bool,
    ) -> httpx.Response:
        """Exchange a request for its answer, past the faults that strike it.

        `repeats` says whether the platform repeats the code that asks for it.
        """
        site = OutboundSite(invocation, request, repeats=repeats)
        early = site.before()
        if early is not None:
            return early
        # What the outside is told must be durable here.
        await self._kernel.pump.until_written(self._kernel.commit)
        if invocation.gone and not invocation.is_test:
            raise PowerCutHere
        try:
            response = await exchange(request)
        except Exception as error:
            self.tell_test(error)
            site.failed()
            raise
        if site.answer_never_comes:
            site.heard(response)
            await asyncio.sleep(site.patience)
            raise site.out_of_patience()
        return site.answered(response)

    def tell_test(self, error: Exception) -> None:
        """Abort the run where an exception of a mock's is the test's affair.

        A mock stands for a service, whose errors are httpx's and the system's. Any other that is
        raised in its code is a mistake there, which no Worker may be blamed for, or catch; one that
        a route has as its side effect is meant for the Worker.
        """
        if isinstance(error, (*_NETWORK, PowerCutHere)):
            return
        if isinstance(error, (AssertionError, EmulatorError)) or raised_at(error) is not None:
            self._kernel.loop.abort(error)

    # -- refusals --------------------------------------------------------------------------------

    def deny(
        self, invocation: Invocation, request: httpx.Request, where: Location | None
    ) -> OutboundDenied:
        """Report a request that nothing mocks; the error to raise for it."""
        method, url = request.method, str(request.url)
        text = (
            f"{method} {url} is not mocked, and outbound requests are denied. Mock it "
            f'(`respx_mock.{method.lower()}("{url}").respond(200)`), or allow real ones with '
            '`outbound="allow"` (in a test: `@pytest.mark.emulator(outbound="allow")`)'
        )
        if asks_for_socket(request):
            text = (
                f"{method} {url} asks for a WebSocket to the outside, and no such connection is "
                f'ever made. Stand in for the server: `emulator.mock_websocket("{url}", handler)`'
            )
        elif self.tape is not None and (missing := self.tape.missing(method, url)) is not None:
            text = missing
        elif self.allows:
            text = (
                f"{method} {url} matches no route of the active respx mock, which lets nothing "
                "else through. Add a route (`.pass_through()` sends the request), or make the "
                "mock with `assert_all_mocked=False`"
            )
        if self.tape is None or not self.tape.ended:
            invocation.find("outbound_unmocked", text, where)
        return OutboundDenied(text)

    def _refuse_socket(self, target: str) -> OSError:
        if own_clients.note_refusal():
            return ConnectionError(f"no connection to {target}")
        text = (
            f"a connection to {target} was attempted from Worker code, and sockets are not "
            "available in the simulation. Send requests with `fetch`, httpx, requests or aiohttp, "
            "which can be mocked"
        )
        scope: Any = self._kernel.loop.running_scope
        if hasattr(scope, "find"):
            scope.find("outbound_unmocked", text, caller())
        return OutboundDenied(text)


def _look_at(answer: asyncio.Future[Any]) -> None:
    """Nobody may await an answer; that is told by a finding, not by asyncio's warning."""
    if not answer.cancelled():
        answer.exception()


def _message(request: WebRequest) -> httpx.Request:
    headers = [(_header(name), _header(value)) for name, value in request.headers]
    assert isinstance(request.body, bytes)
    url = _address(request.url)
    return httpx.Request(request.method, url, headers=headers, content=request.body)


@lru_cache(maxsize=256)
def _address(url: str) -> httpx.URL:
    """An address as httpx has it, which reads it slowly; mostly it is one of a few."""
    return httpx.URL(url)


def _header(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _web_response(
    response: httpx.Response, body: bytes | IncomingBody, url: str, redirected: bool
) -> WebResponse:
    headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
    return WebResponse(
        *(response.status_code, response.reason_phrase, headers, body, url, redirected),
        socket=response.extensions.get("socket"),
    )


async def read_body(body: bytes | AsyncIterator[bytes]) -> bytes:
    """Return a whole body, whatever its form."""
    if isinstance(body, bytes):
        return body
    return b"".join([chunk async for chunk in body])


def _as_os_error(error: Exception) -> Exception:
    """A failure of the network as `fetch` raises it; what a mock raised besides keeps its type."""
    if isinstance(error, httpx.HTTPError):
        return ConnectionError(f"Network connection lost. ({type(error).__name__}: {error})")
    return error
