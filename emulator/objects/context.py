"""`ctx` of a Durable Object, as JavaScript has it (python-api.md 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.bindings import calls
from emulator.objects import texts
from emulator.objects.storage import DurableObjectStorage
from emulator.runtime.context import wait_until
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import await_given
from emulator.runtime.web.websocket import WebSocket, WebSocketRequestResponsePair
from emulator.values import UNDEFINED, Function, HostObject, JsException, to_number

if TYPE_CHECKING:
    import asyncio
    from datetime import datetime

    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.live import LiveObject
    from emulator.objects.sockets import Sockets

_LONGEST_AUTO: Final = 2048  # bytes of a message that is answered without the object
_MOST_TIMEOUT: Final = 604_800_000
_NOT_ACCEPTED: Final = (
    "you must call 'acceptWebSocket()' before attempting to access the tags of a WebSocket."
)
_NO_TAGS: Final = "only hibernatable websockets can have tags."


class DurableObjectState(HostObject):
    """What an object knows of itself, and what it can ask of the platform."""

    js_class = "DurableObjectState"
    js_members = frozenset(
        {
            *("id", "storage", "props", "waitUntil", "blockConcurrencyWhile", "abort"),
            *("acceptWebSocket", "getWebSockets", "getTags", "setWebSocketAutoResponse"),
            *("getWebSocketAutoResponse", "getWebSocketAutoResponseTimestamp"),
            *("setHibernatableWebSocketEventTimeout", "getHibernatableWebSocketEventTimeout"),
        }
    )

    def __init__(self, live: LiveObject) -> None:
        self._live = live
        self.id: DurableObjectId = live.space.id_of(live.stored)
        self.storage = DurableObjectStorage(live)
        self.props: dict[str, Any] = {}

    @property
    def waitUntil(self) -> Function:
        """Accepted; an object stays for what it has begun in any case."""
        return Function(lambda *given: wait_until(self._live.scope, *given), "waitUntil", raw=True)

    def blockConcurrencyWhile(self, callback: Any = UNDEFINED) -> asyncio.Future[Any]:
        """Run a function before any other event; its failure resets the object."""
        if not callable(callback):
            text = texts.wrong_type("blockConcurrencyWhile", "function", self.js_class)
            return calls.refuse(text)
        self._live.check_caller()
        return self._live.block(lambda: await_given(callback))

    def abort(self, reason: Any = UNDEFINED) -> NoReturn:
        """Reset the object at once; `reason` is what all its callers get."""
        live = self._live
        live.check_caller()
        live.reset(_reason(reason))
        live.kernel.loop.cut_here()

    # -- WebSockets ------------------------------------------------------------------------------

    @property
    def _sockets(self) -> Sockets:
        self._live.check_caller()
        return self._live.home.sockets_of(self._live)

    def acceptWebSocket(self, socket: Any = UNDEFINED, tags: Any = UNDEFINED) -> Any:
        """Hold a WebSocket, whether the object is in memory or not."""
        taken = _socket("acceptWebSocket", socket)
        # A Python list that nobody converted is a proxy, and no array.
        given = [] if tags is UNDEFINED else tags
        if type(given) is not list:
            raise texts.wrong_type("acceptWebSocket", "Array", self.js_class, 2)
        self._sockets.accept(taken, [display(tag) for tag in given])
        return UNDEFINED

    def getWebSockets(self, tag: Any = UNDEFINED) -> list[WebSocket]:
        """Return the WebSockets it holds, or those with a tag."""
        return self._sockets.list(None if tag is UNDEFINED else display(tag))

    def getTags(self, socket: Any = UNDEFINED) -> list[str]:
        """Return the tags of a WebSocket."""
        given = _socket("getTags", socket)
        if given.state not in ("accepted", "hibernatable"):
            raise JsException("Error", _NOT_ACCEPTED)
        if given.state != "hibernatable":
            raise JsException("Error", _NO_TAGS)
        return list(given.tags)

    def setWebSocketAutoResponse(self, pair: Any = UNDEFINED) -> Any:
        """Let a message be answered without the object, or no longer."""
        if pair is UNDEFINED:
            self._sockets.auto = None
            return UNDEFINED
        if not isinstance(pair, WebSocketRequestResponsePair):
            name = "setWebSocketAutoResponse"
            raise texts.wrong_type(name, "WebSocketRequestResponsePair", self.js_class)
        for what, text in (("Request", pair.request), ("Response", pair.response)):
            size = len(text.encode())
            if size > _LONGEST_AUTO:
                raise JsException(
                    "RangeError",
                    f"{what} cannot be larger than {_LONGEST_AUTO} bytes. A {what.lower()} of size "
                    f"{size} was provided.",
                )
        self._sockets.auto = pair.request, pair.response
        return UNDEFINED

    def getWebSocketAutoResponse(self) -> WebSocketRequestResponsePair | None:
        """Return what is answered without the object, or null."""
        auto = self._sockets.auto
        return None if auto is None else WebSocketRequestResponsePair(*auto)

    def getWebSocketAutoResponseTimestamp(self, socket: Any = UNDEFINED) -> datetime | None:
        """Return when a message was last answered without the object, or null."""
        return self._sockets.answered(_socket("getWebSocketAutoResponseTimestamp", socket))

    def setHibernatableWebSocketEventTimeout(self, timeout: Any = UNDEFINED) -> Any:
        """Keep the limit of an event of its WebSockets; no event of the emulator's is cut off."""
        number = 0 if timeout is UNDEFINED else int(to_number(timeout))
        if number > _MOST_TIMEOUT:
            text = f"Event timeout should not exceed {_MOST_TIMEOUT} ms."
            raise JsException("Error", text)
        self._sockets.timeout = number or None
        return UNDEFINED

    def getHibernatableWebSocketEventTimeout(self) -> int | None:
        """Return that limit in milliseconds, or null."""
        return self._sockets.timeout


def _reason(reason: Any) -> JsException:
    if isinstance(reason, JsException):
        return reason
    return JsException("Error", texts.ABORTED if reason is UNDEFINED else str(reason))


def _socket(method: str, value: Any) -> WebSocket:
    if not isinstance(value, WebSocket):
        raise texts.wrong_type(method, "WebSocket", DurableObjectState.js_class)
    return value


class AlarmInvocationInfo(HostObject):
    """What `alarm` gets: how often this alarm failed before, and when it was set for."""

    js_class = "AlarmInvocationInfo"
    js_members = frozenset({"retryCount", "isRetry", "scheduledTime"})

    def __init__(self, retries: int, scheduled: int) -> None:
        self.retryCount = retries
        self.isRetry = retries > 0
        self.scheduledTime = scheduled
