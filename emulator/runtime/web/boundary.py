"""Requests and responses on their way in and out of user code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.proxies import JsProxy
from emulator.runtime.pyproxy import unwrap
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.request import Request
from emulator.runtime.web.response import Response
from emulator.runtime.web.sources import IteratorSource
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.websocket import WebSocket
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from emulator.runtime.web.body import Content
    from emulator.runtime.web.headers import Pairs

_NOT_A_RESPONSE = "Incorrect type for Promise: the Promise did not resolve to 'Response'."


def request_from_web(request: WebRequest, *, cf: object = None) -> Request:
    """Return the JavaScript request that a fetch handler is called with.

    Its headers cannot be changed, and its `redirect` is "manual", as in production.
    """
    return Request(
        request.url,
        method=request.method,
        headers=_received(request),
        content=_content(request.body, request.headers, empty=request.method in ("GET", "HEAD")),
        redirect="manual",
        cf=cf,
    )


def _received(request: WebRequest) -> tuple[tuple[str, str], ...]:
    """The headers with which a handler gets a request: one says how long its body is.

    As in workerd (`global-scope.c++`), where the sender was another Worker and has not said it.
    """
    headers, body = request.headers, request.body
    if body == b"" or any(name in ("content-length", "transfer-encoding") for name, _ in headers):
        return headers
    if isinstance(body, bytes):
        return (*headers, ("content-length", str(len(body))))
    return (*headers, ("transfer-encoding", "chunked"))


def response_to_web(value: object) -> WebResponse:
    """Return what a fetch handler answered; raises `JsException` for what is no response.

    Accepted are `workers.Response` and `js.Response`. `pyodide.http.FetchResponse`, which
    `clone()` of the former returns, is none. A body that was read already is a TypeError.
    """
    response = _js_response(value)
    if response is None:
        raise JsException("TypeError", _NOT_A_RESPONSE)
    socket = None if response.webSocket is None else response.webSocket.couple()
    return WebResponse(
        response.status,
        response.statusText,
        _with_length(response),
        response.take(),
        response.url,
        response.redirected,
        socket,
    )


def _with_length(response: Response) -> tuple[tuple[str, str], ...]:
    """Return the headers, with the length of a body that a `FixedLengthStream` announced."""
    headers = tuple(response.wire_headers)
    length = response.announced_length
    if length is None or any(name == "content-length" for name, _ in headers):
        return headers
    return (*headers, ("content-length", str(length)))


def response_from_web(response: WebResponse) -> Response:
    """Return the JavaScript response that `fetch` resolves to; its headers cannot be changed."""
    made = Response(
        _content(response.body, response.headers, empty=response.status in (101, 204, 205, 304)),
        status=response.status,
        status_text=response.status_text or None,
        headers=Headers(response.headers, immutable=True),
        url=response.url,
        redirected=response.redirected,
    )
    if response.socket is not None:
        made.webSocket = WebSocket.of_end(response.socket)
    return made


def _js_response(value: object) -> Response | None:
    if getattr(type(value), "crosses_as_response", False):
        value = value._web  # type: ignore[attr-defined]
    elif isinstance(value, JsProxy):
        value = unwrap(value)
    return value if isinstance(value, Response) else None


def _content(body: bytes | AsyncIterator[bytes], headers: Pairs, *, empty: bool) -> Content:
    if not isinstance(body, bytes):
        stream = ReadableStream(IteratorSource(body))
        stream.length = _length(headers)
        return stream
    return None if empty and not body else body


def _length(headers: Pairs) -> int | None:
    """How long a body is that comes in pieces, if its headers tell."""
    told = next((value for name, value in headers if name == "content-length"), "")
    is_encoded = any(name == "content-encoding" for name, _ in headers)
    return int(told) if told.isascii() and told.isdigit() and not is_encoded else None
