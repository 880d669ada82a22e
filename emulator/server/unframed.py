"""Answers to clients of HTTP/1.0: a body whose length is unknown ends with the connection.

Such a client knows no chunks (RFC 9112, 6.1 and 6.3), which uvicorn would send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from emulator.server.gateway import Receive, Scope, Send

_OLD: Final = "1.0"


def is_old(scope: Scope) -> bool:
    """Whether a request is of HTTP/1.0; uvicorn keeps no connection after one."""
    return bool(scope["http_version"] == _OLD)


class Unframed:
    """An ASGI application as such a client is to hear it, in one cycle of uvicorn's."""

    def __init__(self, application: Any, cycle: RequestResponseCycle) -> None:
        self._application = application
        self._cycle = cycle
        self._is_framed = True
        # Which a server must not answer there (RFC 9110, 10.1.1).
        cycle.waiting_for_100_continue = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._is_framed = _has_length(message) or scope["method"] == "HEAD"
            if not self._is_framed:
                # As if each part were a body of a known length.
                self._cycle.chunked_encoding = False
                self._cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._application(scope, receive, told)


def _has_length(start: Any) -> bool:
    return any(name.lower() == b"content-length" for name, _ in start.get("headers", ()))
