"""The JavaScript function `fetch`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from emulator.errors import OutboundDenied
from emulator.runtime.host import WebRequest, WebResponse, current
from emulator.runtime.web import idl
from emulator.runtime.web.boundary import response_from_web
from emulator.runtime.web.promises import Rejected
from emulator.runtime.web.request import Request
from emulator.values import UNDEFINED, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from emulator.runtime.web.abort import AbortSignal
    from emulator.runtime.web.response import Response


def fetch(resource: object = UNDEFINED, init: object = UNDEFINED) -> Awaitable[Response]:
    """Do `fetch(resource, init)`: send a request to the outside.

    The request is made at the call, so that its errors do not wait for an `await`. The promise is
    rejected with the runtime's "Network connection lost." where the host raises `OSError`.
    """
    try:
        return send(make_request(resource, init))
    except JsException as error:
        return Rejected(error)


def make_request(resource: object, init: object) -> Request:
    """Return the request that `fetch` would send; raises the runtime's errors for a wrong one."""
    if idl.missing(resource):
        raise idl.wrong_argument("fetch", "ServiceWorkerGlobalScope", 1, "Request or string")
    request = Request.js_new(resource, init)
    if not request.url.startswith(("http://", "https://")):
        raise JsException("TypeError", f"Fetch API cannot load: {request.url}")
    return request


async def send(request: Request) -> Response:
    """Send a request and return its response, unless its signal aborts first."""
    signal = request.chosen_signal
    if signal is not None and signal.aborted:
        raise idl.throw(signal.reason)
    wire = WebRequest(
        method=request.method,
        url=request.url.partition("#")[0],
        headers=request.headers.pairs,
        body=request.take(),
        redirect=request.redirect,
    )
    try:
        answer = current().fetch(wire)
        response = await (answer if signal is None else _abortable(answer, signal))
    except OutboundDenied as error:
        # The text tells the user which mock is missing; it is more use than production's.
        raise JsException("Error", str(error)) from error
    except OSError as error:
        raise JsException("Error", "Network connection lost.") from error
    return response_from_web(response)


async def _abortable(answer: Awaitable[WebResponse], signal: AbortSignal) -> WebResponse:
    work = asyncio.ensure_future(answer)
    signal.watch(work.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if signal.aborted and work.cancelled():
            raise idl.throw(signal.reason) from None
        work.cancel()
        raise
    finally:
        signal.unwatch(work.cancel)
