"""The HTTP side of a WebSocket connection: a request that asks for one, and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.runtime.host import WebRequest, WebResponse

# The example of RFC 6455: nothing here depends on it.
_KEY: Final = "dGhlIHNhbXBsZSBub25jZQ=="
_NOT_ASKED: Final = (
    "Worker tried to return WebSocket in a response to a request which did not contain the header "
    '"Upgrade: websocket".'
)


def headers_of(subprotocols: Sequence[str]) -> list[tuple[str, str]]:
    """The headers with which a client asks for a connection."""
    headers = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", _KEY),
    ]
    if subprotocols:
        headers.append(("sec-websocket-protocol", ", ".join(subprotocols)))
    return headers


def asks(request: WebRequest) -> bool:
    """Whether a request asks for a connection."""
    return any(
        name == "upgrade" and value.lower() == "websocket" for name, value in request.headers
    )


def check(request: WebRequest, response: WebResponse) -> WebResponse:
    """Return the answer; raises the runtime's error for a socket that nobody asked for."""
    if response.socket is not None and not asks(request):
        response.socket.drop()
        raise JsException("TypeError", _NOT_ASKED)
    return response
