"""httpx clients that Worker code makes itself: their requests are the Worker's, too.

httpx's transports ask here at each request whether Worker code sends it, and do what they always
did if not. They are taught once, and again where a mock was put in place of them meanwhile; a mock
that replaces the transport's method later (respx with `using="httpx"`, pytest-httpx) answers before
they ask, and such requests of such clients are then no fault sites.
"""

from __future__ import annotations

import functools
from asyncio import events
from typing import TYPE_CHECKING, Any

import httpx

from emulator.scope import KERNEL, SCOPE

if TYPE_CHECKING:
    from emulator.bindings.outbound import Outbound
    from emulator.invocation import Invocation

_OURS = "_workers_emulator"


def watch() -> None:
    """Teach httpx's transports; does nothing where they know."""
    for kind, name, teach in (
        (httpx.AsyncHTTPTransport, "handle_async_request", _taught),
        (httpx.HTTPTransport, "handle_request", _taught_now),
    ):
        usual = getattr(kind, name)
        if not hasattr(usual, _OURS):
            function = teach(usual)
            setattr(function, _OURS, True)
            setattr(kind, name, function)


def _taught(usual: Any) -> Any:
    @functools.wraps(usual)
    async def handle_async_request(
        self: httpx.AsyncHTTPTransport, request: httpx.Request
    ) -> httpx.Response:
        sender = _sender()
        if sender is None:
            response: httpx.Response = await usual(self, request)
            return response
        return await _outbound(sender).pass_on(sender, functools.partial(usual, self), request)

    return handle_async_request


def _taught_now(usual: Any) -> Any:
    @functools.wraps(usual)
    def handle_request(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        sender = _sender()
        if sender is None:
            response: httpx.Response = usual(self, request)
            return response
        return _outbound(sender).pass_on_now(sender, functools.partial(usual, self), request)

    return handle_request


def _sender() -> Invocation | None:
    """The invocation whose code runs, if one does."""
    if not hasattr(events._get_running_loop(), "running_scope"):
        return None
    scope: Any = SCOPE.get()
    return None if scope is None or scope is KERNEL or scope.is_test else scope


def _outbound(sender: Invocation) -> Outbound:
    return sender.kernel.outbound
