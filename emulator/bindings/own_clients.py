"""HTTP clients that Worker code makes itself: their requests are the Worker's, too.

httpx's transports ask here at each request whether Worker code sends it, and do what they always
did if not; urllib3 (and with it requests, boto3 and others), `urllib.request`, aiohttp and httpx2
are taught the same by modules of their own. Clients are taught while there is an emulator, those
that are imported later as soon as they are. A mock that answers before a transport is asked (respx
with `using="httpx"`, pytest-httpx) leaves such a client's requests without a fault site.

A synchronous client waits as `run_sync` does: other events, and time, go on. Where Python's stack
cannot be suspended, in a function that JavaScript called, no time passes.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import weakref
from asyncio import events
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpx

from emulator.bindings import aiohttp_client, httpx2_client, urllib3_client, urllib_client
from emulator.bindings.blocking import SyncStream, wait
from emulator.bindings.network import NoWayOut
from emulator.bindings.outbound_site import OutboundSite, PowerCutHere
from emulator.bindings.transport import Transport, is_unmatched
from emulator.importer import finder
from emulator.location import Location, caller
from emulator.runtime.run_sync import can_run_sync
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import ModuleType

    from emulator.bindings.outbound import Outbound
    from emulator.invocation import Invocation

# The emulators there are, and what was replaced for them: (class, name, ours, what it was).
_open: weakref.WeakSet[Outbound] = weakref.WeakSet()
_replaced: list[tuple[Any, str, Any, Any]] = []


def watch(outbound: Outbound) -> None:
    """Teach the clients that are imported, and those that will be; nothing where they know."""
    _open.add(outbound)
    _teach(httpx.AsyncHTTPTransport, "handle_async_request", _taught)
    _teach(httpx.HTTPTransport, "handle_request", _taught_now)
    for name in _OTHERS:
        finder.after_import[name] = _imported
        if name in sys.modules:
            _imported(sys.modules[name])


def _imported(module: ModuleType) -> None:
    if _open:
        for owner, name, teach in _OTHERS[module.__name__](module):
            _teach(owner, name, teach)


def _teach(owner: Any, name: str, teach: Callable[[Any], Any]) -> None:
    usual = getattr(owner, name)
    if not any(usual is ours for *_, ours, _ in _replaced):
        ours = teach(usual)
        _replaced.append((owner, name, ours, usual))
        setattr(owner, name, ours)


def unwatch(outbound: Outbound) -> None:
    """Put back what was replaced, if no other emulator needs it."""
    _open.discard(outbound)
    while not _open and _replaced:
        kind, name, ours, usual = _replaced.pop()
        if getattr(kind, name) is ours:  # else a mock took its place, or took it back
            setattr(kind, name, usual)


def note_refusal() -> bool:
    """Told of a refused socket: whether a client reached for it, who then tells of the request."""
    attempt = _attempt.get()
    if attempt is None:
        return False
    attempt.refused = True
    return True


def _taught(usual: Any) -> Any:
    @functools.wraps(usual)
    async def handle_async_request(
        self: httpx.AsyncHTTPTransport, request: httpx.Request
    ) -> httpx.Response:
        sender = sending()
        if sender is None:
            response: httpx.Response = await usual(self, request)
            return response
        return await _send(sender, functools.partial(usual, self), request)

    return handle_async_request


def _taught_now(usual: Any) -> Any:
    @functools.wraps(usual)
    def handle_request(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        sender = sending()
        if sender is None:
            response: httpx.Response = usual(self, request)
            return response
        return _send_now(sender, functools.partial(usual, self), request)

    return handle_request


def sending() -> Invocation | None:
    """The invocation whose code runs, if one does."""
    if not hasattr(events._get_running_loop(), "running_scope"):
        return None
    scope: Any = SCOPE.get()
    return None if getattr(scope, "is_test", True) else scope


class _Attempt:
    """A client's own transport at work; `refused` once it reached for a socket."""

    refused = False


_attempt: ContextVar[_Attempt | None] = ContextVar("emulator.attempt", default=None)


@contextmanager
def _attempting() -> Iterator[_Attempt]:
    attempt = _Attempt()
    token = _attempt.set(attempt)
    try:
        yield attempt
    finally:
        _attempt.reset(token)


async def _send(
    sender: Invocation,
    usual: Callable[[httpx.Request], Awaitable[httpx.Response]],
    request: httpx.Request,
) -> httpx.Response:
    outbound, where = sender.kernel.outbound, caller()
    await request.aread()

    async def exchange(request: httpx.Request) -> httpx.Response:
        if outbound.tape is not None:
            return await recorded(request)
        with _attempting() as attempt:
            try:
                return await in_time(request, usual(request))
            except Exception as error:
                if attempt.refused and outbound.allows:
                    return await _outside(outbound, request)
                raise _denied(attempt, error, sender, request, where) from error.__cause__

    async def recorded(request: httpx.Request) -> httpx.Response:
        """By way of the tape: outside a test nothing else may mock what the client sends."""
        try:
            real = functools.partial(_outside, outbound, request)
            return await in_time(request, outbound.past_tape(request, real))
        except NoWayOut as error:
            raise _denied(_Attempt(), error, sender, request, where) from None

    try:
        return await outbound.at_site(sender, request, exchange, repeats=sender.repeats())
    except PowerCutHere:
        return await sender.kernel.loop.create_future()  # type: ignore[no-any-return]


async def in_time(request: httpx.Request, work: Awaitable[httpx.Response]) -> httpx.Response:
    """Wait for an answer as long as the client would; raises `httpx.ReadTimeout`."""
    limit = request.extensions.get("timeout", {}).get("read")
    try:
        async with asyncio.timeout(limit):
            return await work
    except TimeoutError as error:
        raise httpx.ReadTimeout(f"no answer in {limit:g} s", request=request) from error


async def send(sender: Invocation, request: httpx.Request) -> httpx.Response:
    """Send a request of a client that is not httpx's own; raises httpx's errors."""

    outbound = sender.kernel.outbound
    return await _send(sender, functools.partial(_outside, outbound), request)


async def _outside(outbound: Outbound, request: httpx.Request) -> httpx.Response:
    """Send by the emulator's own transport, as the emulator's work: it is the Worker's no more."""
    work = Transport(outbound.network).handle_async_request(request)
    return await outbound.loop.spawn_kernel(work, "outbound request")  # type: ignore[no-any-return]


def _send_now(
    sender: Invocation,
    usual: Callable[[httpx.Request], httpx.Response],
    request: httpx.Request,
) -> httpx.Response:
    request.read()
    if can_run_sync():
        response: httpx.Response = wait(send(sender, request))
        response.stream = SyncStream(response.stream)
        return response
    try:
        site = OutboundSite(sender, request, repeats=sender.repeats())
        early = site.before()
        if early is not None:
            return early
        sender.kernel.commit()
        response = _exchange_now(sender, usual, request, site)
        if site.answer_never_comes:
            site.heard(response)
            raise site.out_of_patience()
        return site.answered(response)
    except PowerCutHere:
        sender.kernel.loop.cut_here()


def _exchange_now(
    sender: Invocation,
    usual: Callable[[httpx.Request], httpx.Response],
    request: httpx.Request,
    site: OutboundSite,
) -> httpx.Response:
    where = caller()
    with _attempting() as attempt:
        try:
            return usual(request)
        except Exception as error:
            told = _denied(attempt, error, sender, request, where)
            sender.kernel.outbound.tell_test(told)
            site.failed()
            raise told from error.__cause__


def _denied(
    attempt: _Attempt,
    error: Exception,
    sender: Invocation,
    request: httpx.Request,
    where: Location | None,
) -> Exception:
    """The error that code with a client of its own sees: httpx's for what nothing mocks."""
    if not (attempt.refused or isinstance(error, NoWayOut) or is_unmatched(error)):
        return error
    denied = sender.kernel.outbound.deny(sender, request, where)
    return httpx.ConnectError(str(denied), request=request)


# What teaches each other client, by the module that has the classes.
_OTHERS: dict[str, Callable[[Any], Iterator[tuple[Any, str, Callable[[Any], Any]]]]] = {
    "aiohttp.connector": functools.partial(aiohttp_client.teach, sending),
    "httpx2._transports.default": functools.partial(httpx2_client.teach, sending, send),
    "urllib3.connection": functools.partial(urllib3_client.teach, sending),
    "urllib.request": functools.partial(urllib_client.teach, sending),
}
