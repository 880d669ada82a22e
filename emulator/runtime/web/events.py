"""The JavaScript classes `EventTarget`, `Event` and the events that carry something.

Theory of operation (workerd, `api/basics.c++`). A target has listeners by type, and a handler in
each `on…` property, which is called first; all run in the code that dispatches. With
`spec_compliant_dispatch_exceptions` (on from 2026-09-15) what a listener raises is reported and the
others are called; before, it goes to whoever dispatches, and the others are not.

A Python function given to `addEventListener` without `create_proxy` is gone when that call returns,
as in production: the event finds a proxy that was destroyed.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from emulator.runtime.host import current
from emulator.runtime.promises import promise
from emulator.runtime.pyproxy import PyProxy, call_given, to_host
from emulator.runtime.web import idl
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Callable

COMPLIANT: Final = "spec_compliant_dispatch_exceptions"
_BORROWED: Final = (
    "This borrowed proxy was automatically destroyed at the end of a function call. Try using "
    "create_proxy or create_once_callable."
)
_DISPATCHED: Final = "The event is already being dispatched."
_AT_TARGET: Final = 2


class Event(HostObject):
    """The event a listener is called with."""

    js_class = "Event"
    js_members = frozenset(
        {
            *("type", "target", "currentTarget", "srcElement", "eventPhase", "timeStamp"),
            *("bubbles", "cancelable", "composed", "defaultPrevented", "isTrusted"),
            *("returnValue", "cancelBubble", "composedPath"),
            *("preventDefault", "stopPropagation", "stopImmediatePropagation"),
            *("NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE"),
        }
    )
    js_statics: ClassVar[frozenset[str]] = frozenset(
        {"NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE"}
    )
    NONE, CAPTURING_PHASE, AT_TARGET, BUBBLING_PHASE = range(4)
    timeStamp = 0

    def __init__(
        self, kind: str, target: object = None, *, cancelable: bool = False, trusted: bool = True
    ) -> None:
        self.type = kind
        self.target = self.currentTarget = self.srcElement = target
        self.cancelable = cancelable
        self.isTrusted = trusted
        self.bubbles = self.composed = self.defaultPrevented = self.cancelBubble = False
        self.dispatching = self.stopped = False

    @classmethod
    def js_new(cls, kind: object = UNDEFINED, init: object = UNDEFINED) -> Event:
        """Do `new Event(type, {bubbles, cancelable, composed})`."""
        event = cls(type_of(cls, kind), trusted=False)
        event.take(idl.options(init))
        return event

    def take(self, init: dict[str, Any]) -> None:
        """Take what an initializer says."""
        self.cancelable = bool(init.get("cancelable", False))
        self.bubbles = bool(init.get("bubbles", False))
        self.composed = bool(init.get("composed", False))

    @property
    def eventPhase(self) -> int:
        """Return 2 while it is dispatched, else 0."""
        return _AT_TARGET if self.dispatching else 0

    @property
    def returnValue(self) -> bool:
        """Tell whether nobody has called `preventDefault`."""
        return not self.defaultPrevented

    def preventDefault(self) -> object:
        """Let `dispatchEvent` return false."""
        self.defaultPrevented = self.defaultPrevented or self.cancelable
        return UNDEFINED

    def stopPropagation(self) -> object:
        """Do nothing more: there is only one target."""
        self.cancelBubble = True
        return UNDEFINED

    def stopImmediatePropagation(self) -> object:
        """Call no further listener."""
        self.stopped = self.cancelBubble = True
        return UNDEFINED

    def composedPath(self) -> list[object]:
        """Return the target while the event is dispatched."""
        return [self.currentTarget] if self.dispatching else []


class CustomEvent(Event):
    """An event with a `detail` of user code's."""

    js_class = "CustomEvent"
    js_members = Event.js_members | {"detail"}
    detail: object = None

    def take(self, init: dict[str, Any]) -> None:
        super().take(init)
        self.detail = init.get("detail")


class MessageEvent(Event):
    """An event with `data`."""

    js_class = "MessageEvent"
    js_members = Event.js_members | {"data", "origin", "lastEventId", "source", "ports"}
    origin = ""
    lastEventId = ""
    source: object = None

    def __init__(self, kind: str, target: object = None, *, data: object = None, **more: Any):
        super().__init__(kind, target, **more)
        self.data = data
        self.ports: list[object] = []

    def take(self, init: dict[str, Any]) -> None:
        super().take(init)
        self.data = init.get("data")


class CloseEvent(Event):
    """An event that says how a connection ended."""

    js_class = "CloseEvent"
    js_members = Event.js_members | {"code", "reason", "wasClean"}

    def __init__(
        self,
        kind: str,
        target: object = None,
        *,
        code: int = 0,
        reason: str = "",
        clean: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(kind, target, **more)
        self.code = code
        self.reason = reason
        self.wasClean = clean

    def take(self, init: dict[str, Any]) -> None:
        super().take(init)
        self.code = idl.integer(init.get("code", 0))
        self.reason = idl.string(init.get("reason", ""))
        self.wasClean = bool(init.get("wasClean", False))


class ErrorEvent(Event):
    """An event with an `error`."""

    js_class = "ErrorEvent"
    js_members = Event.js_members | {"error", "message", "filename", "lineno", "colno"}

    def __init__(
        self, kind: str, target: object = None, *, error: object = UNDEFINED, **more: Any
    ) -> None:
        super().__init__(kind, target, **more)
        self.error = error
        self.message = "" if error is UNDEFINED else f"Uncaught {error}"
        self.filename = ""
        self.lineno = self.colno = 0

    def take(self, init: dict[str, Any]) -> None:
        super().take(init)
        self.error = init.get("error", UNDEFINED)
        self.message = idl.string(init.get("message", ""))
        self.filename = idl.string(init.get("filename", ""))
        self.lineno = idl.integer(init.get("lineno", 0))
        self.colno = idl.integer(init.get("colno", 0))


def type_of(cls: type[HostObject], kind: object) -> str:
    """Return the type given to an event's constructor."""
    if kind is UNDEFINED:
        raise idl.wrong_construction(cls.js_class, 1, "string")
    return idl.string(kind)


@dataclass(slots=True)
class _Listener:
    """A listener: what was given, what makes it the same as another, and its options."""

    given: Any
    key: object
    once: bool = False
    lost: bool = False  # a borrowed proxy


class EventTarget(HostObject):
    """What events are dispatched to."""

    js_class = "EventTarget"
    js_members: ClassVar[frozenset[str]] = frozenset(
        {"addEventListener", "removeEventListener", "dispatchEvent"}
    )
    _listeners: dict[str, list[_Listener]] | None = None

    @classmethod
    def js_new(cls) -> EventTarget:
        """Do `new EventTarget()`."""
        return cls()

    def addEventListener(
        self,
        kind: object = UNDEFINED,
        listener: object = UNDEFINED,
        options: object = UNDEFINED,
    ) -> object:
        """Call a function, or an object's `handleEvent`, on each event of a type."""
        if listener is None:
            return UNDEFINED
        found = self._checked("addEventListener", listener)
        chosen = idl.options(options)
        signal = chosen.get("signal")
        if signal is not None and signal.aborted:
            return UNDEFINED
        found.once = bool(chosen.get("once", False))
        if self._listeners is None:
            self._listeners = {}
        known = self._listeners.setdefault(idl.string(kind), [])
        if all(one.key is not found.key for one in known):
            known.append(found)
            if signal is not None:
                signal.watch(lambda: self._forget(idl.string(kind), found))
        return UNDEFINED

    def removeEventListener(
        self,
        kind: object = UNDEFINED,
        listener: object = UNDEFINED,
        options: object = UNDEFINED,
    ) -> object:
        """Forget a listener."""
        if listener is not None:
            self._forget(idl.string(kind), self._checked("removeEventListener", listener))
        return UNDEFINED

    def dispatchEvent(self, event: object = UNDEFINED) -> bool:
        """Call the listeners; whether none of them called `preventDefault`."""
        if not isinstance(event, Event):
            raise idl.wrong_argument("dispatchEvent", "EventTarget", 1, "Event")
        if event.dispatching:
            raise JsException("InvalidStateError", _DISPATCHED)
        return self.dispatch(event)

    def dispatch(self, event: Event, *, raising: bool = False) -> bool:
        """Dispatch an event; with `raising` what a listener raises ends it in any case."""
        event.target = event.currentTarget = event.srcElement = self
        event.dispatching = True
        try:
            for listener in self._called(event):
                self._call(listener, event, raising=raising)
                if event.stopped:
                    break
        finally:
            event.dispatching = False
        return not event.defaultPrevented

    def _called(self, event: Event) -> list[_Listener]:
        known = list((self._listeners or {}).get(event.type, ()))
        name = f"on{event.type}"
        own = self._js_own or {}  # of user code's: any type has a handler
        handler = to_host(own[name]) if name in own else getattr(self, name, None)
        if callable(handler):
            known.insert(0, _Listener(handler, handler))
        return known

    def _call(self, listener: _Listener, event: Event, *, raising: bool) -> None:
        if listener.once:
            self._forget(event.type, listener)
        try:
            if listener.lost:
                raise JsException("Error", _BORROWED)
            call_listener(listener.given, event)
        except Exception as error:
            if raising or COMPLIANT not in current().flags:
                raise
            current().report(error)

    def _checked(self, method: str, listener: object) -> _Listener:
        if isinstance(listener, Function) and listener.python is not None:
            return _Listener(listener, listener.python, lost=not listener.kept)
        if isinstance(listener, PyProxy):
            return _Listener(listener, listener.obj)
        if callable(listener) or isinstance(listener, dict):
            return _Listener(listener, listener)
        raise idl.wrong_argument(method, "EventTarget", 2, "function or HandlerObject")

    def _forget(self, kind: str, listener: _Listener) -> None:
        known = (self._listeners or {}).get(kind, [])
        known[:] = [one for one in known if one.key is not listener.key]


def call_listener(listener: Any, event: Event) -> None:
    """Call a listener; the coroutine of an asynchronous Python function begins at once."""
    function: Any = listener
    if isinstance(listener, dict):
        function = listener.get("handleEvent")
    elif isinstance(listener, PyProxy):
        handle: Callable[..., Any] = listener.obj.handleEvent
        function = Function(handle, python=handle)
    result = call_given(function, event)
    work = result.obj if isinstance(result, PyProxy) else result
    if inspect.iscoroutine(work):
        begun = promise(work, method="listener")
        asyncio.Future.add_done_callback(begun, _tell_failure)


def _tell_failure(work: asyncio.Future[Any]) -> None:
    error = None if work.cancelled() else work.exception()
    if error is not None:
        current().report(error)
