"""The JavaScript classes `WebSocket` and `WebSocketPair` (workerd, `api/web-socket.c++`).

Theory of operation. A socket holds one end of a connection and goes through these states:

    connecting ──> fresh ──┬── accept() ─────────────> accepted ─────┐
    (new WebSocket)        ├── acceptWebSocket() ────> hibernatable ─┼──> released
                           └── given out in a Response ──────────────┘

Frames that arrive before `accept` wait. An accepted socket gets each frame as an event of its own,
in the code that accepted it. A listener that raises breaks the connection. The close handshake is
over when both ends have sent a Close; with `web_socket_auto_reply_to_close` (on from 2026-04-07) an
accepted socket answers one by itself, a hibernatable one does not.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ClassVar, Final

from emulator.runtime.host import NO_CODE, Close, Refused, current
from emulator.runtime.js_text import display
from emulator.runtime.web import idl
from emulator.runtime.web.blob import Blob
from emulator.runtime.web.events import CloseEvent, ErrorEvent, Event, EventTarget, MessageEvent
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    HostObject,
    JsException,
    from_v8,
    to_v8,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.runtime.host import Frame, SocketEnd

CONNECTING, OPEN, CLOSING, CLOSED = range(4)
LARGEST_ATTACHMENT: Final = 16_384
_LONGEST_REASON: Final = 123
_AUTO_REPLY: Final = "web_socket_auto_reply_to_close"
_REASON_LIMIT: Final = "websocket_close_reason_byte_limit"
_BLOBS: Final = "websocket_standard_binary_type"
_RESERVED: Final = (1004, 1005, 1006, 1015)

_NOT_ACCEPTED: Final = (
    "You must call one of accept() or state.acceptWebSocket() on this WebSocket before sending "
    "messages."
)
_MESSAGE: Final = "ArrayBuffer or ArrayBufferView or string"
_SENT_AFTER_CLOSE: Final = "Can't call WebSocket send() after close()."
_LONG_REASON: Final = "WebSocket close reason must not be longer than 123 bytes when UTF-8 encoded."
_REASON_ALONE: Final = "If you specify a WebSocket close reason, you must also specify a code."
_ACCEPT_NEW: Final = "Websockets obtained from the 'new WebSocket()' constructor cannot call accept"
_ACCEPT_USED: Final = "Can't accept() WebSocket that was already used in a response."
_ACCEPT_HIBERNATABLE: Final = "Can't accept() WebSocket after enabling hibernation."
_RETURN: Final = {
    "connecting": "Can't return WebSocket in a Response if it was created with `new WebSocket()`",
    "released": "Can't return WebSocket that was already used in a response.",
    "hibernatable": "Can't return WebSocket in a Response after calling acceptWebSocket().",
    "accepted": "Can't return WebSocket in a Response after calling accept().",
}
_CONSTANTS: Final = frozenset(
    {
        *("READY_STATE_CONNECTING", "READY_STATE_OPEN", "READY_STATE_CLOSING"),
        *("READY_STATE_CLOSED", "CONNECTING", "OPEN", "CLOSING", "CLOSED"),
    }
)


class WebSocket(EventTarget):
    """One end of a connection."""

    js_class = "WebSocket"
    js_members = EventTarget.js_members | {
        *("accept", "send", "close", "serializeAttachment", "deserializeAttachment"),
        *("readyState", "url", "protocol", "extensions", "binaryType", "bufferedAmount"),
        *("onopen", "onmessage", "onclose", "onerror"),
        *_CONSTANTS,
    }
    js_statics: ClassVar[frozenset[str]] = _CONSTANTS
    READY_STATE_CONNECTING = CONNECTING = 0
    READY_STATE_OPEN = OPEN = 1
    READY_STATE_CLOSING = CLOSING = 2
    READY_STATE_CLOSED = CLOSED = 3
    bufferedAmount = 0

    def __init__(self, end: SocketEnd | None, url: str | None = None) -> None:
        self.state = "connecting" if end is None else "fresh"
        self.peer: WebSocket | None = None
        self.url = url
        self.protocol: str | None = ""
        self.extensions: str | None = ""
        self.attachment: bytes | None = None
        self.tags: tuple[str, ...] = ()  # of one that a Durable Object holds
        self.onopen = self.onmessage = self.onclose = self.onerror = None
        self.closed_in = self.closed_out = False
        self.error: BaseException | None = None
        self._end = end
        self._half_open = False
        self._binary = "blob" if _BLOBS in current().flags else "arraybuffer"

    @classmethod
    def js_new(cls, url: object = UNDEFINED, protocols: object = UNDEFINED) -> WebSocket:
        """Do `new WebSocket(url, protocols)`: connect to the outside."""
        from emulator.runtime.web.socket_client import connect

        return connect(cls, url, protocols)

    @classmethod
    def of_end(cls, end: SocketEnd) -> WebSocket:
        """Return a socket for an end that came with a response."""
        end.held_by(current())
        return cls(end)

    # -- what user code sees ---------------------------------------------------------------------

    @property
    def readyState(self) -> int:
        """Return 0 to 3: connecting, open, closing, closed."""
        if (self.closed_in and self.closed_out) or self.error is not None:
            return CLOSED
        if self.closed_in or self.closed_out:
            return CLOSING
        return CONNECTING if self.state == "connecting" else OPEN

    @property
    def binaryType(self) -> str:
        """Return as what binary messages arrive: `blob` or `arraybuffer`."""
        return self._binary

    @binaryType.setter
    def binaryType(self, value: object) -> None:
        if value in ("blob", "arraybuffer"):
            self._binary = idl.string(value)

    def accept(self, options: object = UNDEFINED) -> object:
        """Begin to get messages here."""
        if self.state == "connecting" or self.url is not None:
            raise JsException("TypeError", _ACCEPT_NEW)
        if self.state == "released":
            raise JsException("TypeError", _ACCEPT_USED)
        if self.state == "hibernatable":
            raise JsException("TypeError", _ACCEPT_HIBERNATABLE)
        if self.state == "fresh":
            self._half_open = bool(idl.options(options).get("allowHalfOpen", False))
            self.begin()
        return UNDEFINED

    def send(self, message: object = UNDEFINED) -> object:
        """Send a text, or bytes; anything else as its text."""
        if message is UNDEFINED:
            raise idl.wrong_argument("send", "WebSocket", 1, _MESSAGE)
        if self.closed_out:
            raise JsException("TypeError", _SENT_AFTER_CLOSE)
        if self.error is not None or self.state == "released":
            return UNDEFINED
        self._check_accepted()
        data = idl.buffer(message)
        self._put(display(message) if data is None else data)
        return UNDEFINED

    def close(self, code: object = UNDEFINED, reason: object = UNDEFINED) -> object:
        """Send the Close."""
        if self.state == "connecting":
            self.state = "released"
            return UNDEFINED
        if self.closed_out or self.error is not None or self.state == "released":
            return UNDEFINED
        self._check_accepted()
        self.send_close(_checked_close(code, reason))
        return UNDEFINED

    def serializeAttachment(self, *value: object) -> object:
        """Keep a copy of a value, which outlives the memory of a Durable Object."""
        if not value:
            raise idl.wrong_argument("serializeAttachment", "WebSocket", 1, "Value")
        data = to_v8(value[0])
        if len(data) > LARGEST_ATTACHMENT:
            text = (
                f"A WebSocket 'attachment' cannot be larger than {LARGEST_ATTACHMENT} bytes."
                f"'attachment' was {len(data)} bytes."
            )
            raise JsException("Error", text)
        self.attachment = data
        return UNDEFINED

    def deserializeAttachment(self) -> Any:
        """Return the value that was kept, or null."""
        return None if self.attachment is None else from_v8(self.attachment)

    # -- for whoever gives it out or takes it ----------------------------------------------------

    def couple(self) -> SocketEnd:
        """Give the end away, in a response."""
        if self.state != "fresh" or self._end is None:
            raise JsException("TypeError", _RETURN[self.state])
        self.state = "released"
        end, self._end = self._end, None
        end.held_by(None)
        return end

    def hibernatable(self) -> SocketEnd:
        """Let the end be held by a Durable Object, in memory or not."""
        assert self._end is not None
        self.state = "hibernatable"
        return self._end

    @classmethod
    def awakened(cls, end: SocketEnd) -> WebSocket:
        """Return a new socket for an end that a Durable Object held while it was not in memory."""
        socket = cls(end)
        socket.state = "hibernatable"
        return socket

    def connected(self, end: SocketEnd, protocol: str | None) -> None:
        """The connection to the outside is there."""
        self._end = end
        self.protocol, self.extensions = protocol, None
        self.state = "fresh"
        self.begin()
        self.dispatch(Event("open"))

    def begin(self) -> None:
        """Get the messages here, each as an event of its own."""
        assert self._end is not None
        self.state = "accepted"
        context, loop = copy_context(), asyncio.get_running_loop()

        def receive(frame: Frame) -> None:
            loop.call_soon(self._take, frame, context=context.copy())

        self._end.listen(receive)

    def send_close(self, close: Close) -> None:
        """Send a Close."""
        self.closed_out = True
        self._put(close)

    # -- inside ----------------------------------------------------------------------------------

    def _put(self, frame: Frame) -> None:
        if self._end is not None:
            self._end.send(frame)

    def _check_accepted(self) -> None:
        if self.state not in ("accepted", "hibernatable"):
            raise JsException("TypeError", _NOT_ACCEPTED)

    def _take(self, frame: Frame) -> None:
        if self.error is not None or self.closed_in:
            return
        if isinstance(frame, Refused):
            self.closed_in, self.error = True, JsException("Error", str(frame))
            self.dispatch(ErrorEvent("error", error=self.error))
            return
        try:
            self.dispatch(self._event_of(frame), raising=True)
        except Exception as error:
            self.fail(error)

    def _event_of(self, frame: str | bytes | Close) -> Event:
        if isinstance(frame, Close):
            self.closed_in = True
            if frame.clean and not (self.closed_out or self._half_open):
                self._answer(frame)
            return CloseEvent("close", code=frame.code, reason=frame.reason, clean=frame.clean)
        data: object = frame
        if isinstance(frame, bytes):
            data = Blob(frame) if self._binary == "blob" else ArrayBuffer(frame)
        return MessageEvent("message", data=data)

    def _answer(self, close: Close) -> None:
        if _AUTO_REPLY in current().flags:
            self.send_close(Close(close.code, close.reason))

    def fail(self, error: BaseException) -> None:
        """Break, and tell."""
        if not isinstance(error, JsException):
            text = f"{type(error).__name__}: {error}"
            self.error = JsException("PythonError", text)
        else:
            self.error = error
        self.closed_in = True
        if self._end is not None:
            self._end.drop()
        current().report(error)
        self.dispatch(ErrorEvent("error", error=self.error))


def _checked_close(code: object, reason: object) -> Close:
    number = NO_CODE
    if code is not UNDEFINED:
        number = idl.integer(code)
        if not 1000 <= number < 5000 or number in _RESERVED:
            raise JsException("InvalidAccessError", f"Invalid WebSocket close code: {number}.")
    if reason is UNDEFINED:
        return Close(number)
    text = idl.string(reason)
    if len(text.encode()) > _LONGEST_REASON and _REASON_LIMIT in current().flags:
        raise JsException("SyntaxError", _LONG_REASON)
    if code is UNDEFINED:
        raise JsException("InvalidAccessError", _REASON_ALONE)
    return Close(number, text)


class WebSocketPair(HostObject):
    """Two sockets that are connected with each other."""

    js_class = "WebSocketPair"
    js_members = frozenset({"0", "1"})

    def __init__(self) -> None:
        self._sockets = [WebSocket(end) for end in current().socket_pair()]
        first, second = self._sockets
        first.peer, second.peer = second, first

    @classmethod
    def js_new(cls) -> WebSocketPair:
        """Do `new WebSocketPair()`."""
        return cls()

    def js_lookup(self, name: str) -> Any:
        """Return a socket by its number."""
        if name in self.js_members:
            return self._sockets[int(name)]
        raise AttributeError(name)

    def js_keys(self) -> list[str]:
        """Return the numbers of the sockets."""
        return ["0", "1"]

    def __iter__(self) -> Iterator[WebSocket]:
        return iter(self._sockets)


class WebSocketRequestResponsePair(HostObject):
    """A message and what answers it while a Durable Object sleeps on."""

    js_class = "WebSocketRequestResponsePair"
    js_members = frozenset({"request", "response"})

    def __init__(self, request: str, response: str) -> None:
        self.request = request
        self.response = response

    @classmethod
    def js_new(
        cls, request: object = UNDEFINED, response: object = UNDEFINED
    ) -> WebSocketRequestResponsePair:
        """Do `new WebSocketRequestResponsePair(request, response)`."""
        for place, given in enumerate((request, response), 1):
            if given is UNDEFINED:
                raise idl.wrong_construction(cls.js_class, place, "string")
        return cls(idl.string(request), idl.string(response))
