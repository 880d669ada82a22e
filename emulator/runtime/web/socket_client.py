"""`new WebSocket(url)`: a connection to the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.host import WebRequest, current
from emulator.runtime.promises import promise
from emulator.runtime.web import idl
from emulator.runtime.web.events import CloseEvent, ErrorEvent
from emulator.runtime.web.url_parser import InvalidUrl, parse
from emulator.values import UNDEFINED, JsException

if TYPE_CHECKING:
    from emulator.runtime.web.websocket import WebSocket

_PLACE: Final = "WebSocket Constructor: "
_SEPARATORS: Final = frozenset("()<>@,;:\\/[]?={}")


def connect(cls: type[WebSocket], url: object, protocols: object) -> WebSocket:
    """Return a socket that connects by and by; raises the runtime's `SyntaxError`."""
    if url is UNDEFINED:
        raise idl.wrong_construction("WebSocket", 1, "string")
    text = idl.string(url)
    try:
        parsed = parse(text)
    except InvalidUrl:
        raise _refusal("The url is invalid.") from None
    if parsed.scheme not in ("ws", "wss"):
        raise _refusal("The url scheme must be ws or wss.")
    if parsed.fragment is not None:
        raise _refusal("The url fragment must be empty.")
    asked = _protocols(protocols)
    socket = cls(None, text)
    request = WebRequest("GET", f"http{parsed.href()[2:]}", _headers(asked), b"")
    work = promise(_connect(socket, request), method="WebSocket")
    work.awaited = True
    return socket


def _refusal(text: str) -> JsException:
    return JsException("SyntaxError", _PLACE + text)


def _protocols(given: object) -> list[str]:
    if given is UNDEFINED:
        return []
    if isinstance(given, str):
        if not _is_token(given):
            raise _refusal("The protocol header token is invalid.")
        return [given]
    names = [idl.string(name) for name in idl.sequence(given) or ()]
    if not all(map(_is_token, names)):
        raise _refusal("One of the protocol header tokens is invalid.")
    if len(set(names)) < len(names):
        raise _refusal("The protocols header cannot have repeating values.")
    return names


def _is_token(name: str) -> bool:
    return bool(name) and all("!" <= char <= "~" and char not in _SEPARATORS for char in name)


def _headers(protocols: list[str]) -> tuple[tuple[str, str], ...]:
    headers = [("upgrade", "websocket"), ("connection", "Upgrade")]
    if protocols:
        headers.append(("sec-websocket-protocol", ", ".join(protocols)))
    return tuple(headers)


async def _connect(socket: WebSocket, request: WebRequest) -> None:
    try:
        response = await current().fetch(request)
    except OSError as error:
        _failed(socket, JsException("Error", str(error)))
        return
    if response.socket is None:
        text = (
            "Failed to establish the WebSocket connection: expected server to reply with HTTP "
            "status code 101 (switching protocols), but received "
            f"{response.status} instead."
        )
        _failed(socket, JsException("TypeError", text))
    elif socket.state == "connecting":
        chosen: Any = dict(response.headers).get("sec-websocket-protocol")
        response.socket.held_by(current())
        socket.connected(response.socket, chosen)


def _failed(socket: WebSocket, error: BaseException) -> None:
    if socket.state != "connecting":
        return
    socket.error, socket.closed_in = error, True
    socket.dispatch(ErrorEvent("error", error=error))
    text = "Failed to establish websocket connection"
    socket.dispatch(CloseEvent("close", code=1006, reason=text))
