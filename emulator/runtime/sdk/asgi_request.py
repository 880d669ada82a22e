"""What both generations of the ASGI bridge read of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from emulator.runtime.sdk.js_values import behind
from emulator.runtime.sdk.request import Request
from emulator.runtime.web.url import URL

if TYPE_CHECKING:
    from emulator.runtime.web import request as web

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[Any]]

ASGI = {"spec_version": "2.0", "version": "3.0"}


def js_request(request: Any) -> web.Request:
    """Return the JavaScript request behind `workers.Request` or `js.Request`."""
    return request._web if isinstance(request, Request) else behind(request)


def headers_of(request: Any) -> list[tuple[str, str]]:
    """Return the headers as Python code sees them, in order."""
    found = request.headers
    return list(found.items()) if isinstance(request, Request) else [tuple(pair) for pair in found]


def http_scope(request: Any, env: Any, kind: str) -> tuple[dict[str, Any], str]:
    """Return what both generations have in a connection's scope, and the path as it was sent."""
    url = URL.js_new(request.url)
    scope = {
        "asgi": ASGI,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers_of(request)],
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.protocol.removesuffix(":"),
        "path": url.pathname,
        "query_string": url.search[1:].encode(),
        "type": kind,
        "env": env,
    }
    return scope, url.pathname


async def body_messages(request: Any) -> asyncio.Queue[Message]:
    """Read the whole body: a message for each chunk, then an empty one that is the last."""
    messages: asyncio.Queue[Message] = asyncio.Queue()
    body = js_request(request).body
    if body is not None:
        async for chunk in body:
            data = bytes(chunk) if not isinstance(chunk, str) else chunk.to_bytes()  # type: ignore[attr-defined]
            messages.put_nowait({"body": data, "more_body": True, "type": "http.request"})
    messages.put_nowait({"body": b"", "more_body": False, "type": "http.request"})
    return messages


def pairs(headers: Any) -> list[tuple[str, str]]:
    """Return the headers of `http.response.start` as text."""
    return [(name.decode(), value.decode()) for name, value in headers]
