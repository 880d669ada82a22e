"""`ctx` of a Durable Object, as JavaScript has it (python-api.md 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.bindings import calls
from emulator.objects import texts
from emulator.objects.storage import DurableObjectStorage
from emulator.runtime.context import wait_until
from emulator.runtime.pyproxy import await_given
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    import asyncio

    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.live import LiveObject

_SOCKETS: Final = frozenset(
    {
        *("acceptWebSocket", "getWebSockets", "getTags", "setWebSocketAutoResponse"),
        *("getWebSocketAutoResponse", "getWebSocketAutoResponseTimestamp"),
        *("setHibernatableWebSocketEventTimeout", "getHibernatableWebSocketEventTimeout"),
    }
)


class DurableObjectState(HostObject):
    """What an object knows of itself, and what it can ask of the platform."""

    js_class = "DurableObjectState"
    js_members = frozenset(
        {"id", "storage", "props", "waitUntil", "blockConcurrencyWhile", "abort", *_SOCKETS}
    )

    def __init__(self, live: LiveObject) -> None:
        self._live = live
        self.id: DurableObjectId = live.space.id_of(live.stored)
        self.storage = DurableObjectStorage(live)
        self.props: dict[str, Any] = {}

    def js_lookup(self, name: str) -> Any:
        """Return a member; those for WebSockets say that they are not there yet."""
        if name in _SOCKETS:
            return Function(lambda *_: _no_sockets(name), name)
        return super().js_lookup(name)

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


def _reason(reason: Any) -> JsException:
    if isinstance(reason, JsException):
        return reason
    return JsException("Error", texts.ABORTED if reason is UNDEFINED else str(reason))


def _no_sockets(name: str) -> NoReturn:
    raise NotImplementedError(
        f"workers-emulator does not provide `ctx.{name}` yet: hibernatable WebSockets of Durable "
        "Objects are missing; docs/limits.md lists what is"
    )


class AlarmInvocationInfo(HostObject):
    """What `alarm` gets: how often this alarm failed before, and when it was set for."""

    js_class = "AlarmInvocationInfo"
    js_members = frozenset({"retryCount", "isRetry", "scheduledTime"})

    def __init__(self, retries: int, scheduled: int) -> None:
        self.retryCount = retries
        self.isRetry = retries > 0
        self.scheduledTime = scheduled
