"""The JavaScript classes `AbortController` and `AbortSignal`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from emulator.runtime.host import forbid_in_global_scope
from emulator.runtime.web import idl
from emulator.runtime.web.events import Event, EventTarget
from emulator.values import UNDEFINED, HostObject, JsException

Listener = Callable[..., Any]


class AbortSignal(EventTarget):
    """Tells whoever holds it to stop."""

    js_class = "AbortSignal"
    js_members = EventTarget.js_members | {"aborted", "onabort", "reason", "throwIfAborted"}
    js_statics: ClassVar[frozenset[str]] = frozenset({"abort", "any", "timeout"})

    def __init__(self) -> None:
        self.aborted = False
        self.reason: object = UNDEFINED
        self.onabort: Listener | None = None
        self._watchers: list[Callable[[], object]] = []

    @classmethod
    def js_new(cls) -> AbortSignal:
        """Refuse `new AbortSignal()`."""
        raise JsException("TypeError", "Illegal constructor")

    @classmethod
    def abort(cls, reason: object = UNDEFINED) -> AbortSignal:
        """Do `AbortSignal.abort(reason)`: a signal aborted from the start."""
        signal = cls()
        signal.trigger(reason)
        return signal

    @classmethod
    def any(cls, signals: object = UNDEFINED) -> AbortSignal:
        """Do `AbortSignal.any(signals)`: aborted as soon as one of them is."""
        joined = cls()
        for signal in signals if isinstance(signals, Iterable) else ():
            if isinstance(signal, AbortSignal):
                signal.watch(_follow(joined, signal))
        return joined

    @classmethod
    def timeout(cls, milliseconds: object = UNDEFINED) -> AbortSignal:
        """Do `AbortSignal.timeout(milliseconds)`."""
        forbid_in_global_scope()
        signal = cls()
        error = JsException("TimeoutError", "The operation was aborted due to timeout")
        delay = max(idl.number(milliseconds), 0) / 1000
        asyncio.get_running_loop().call_later(delay, signal.trigger, error)
        return signal

    def throwIfAborted(self) -> object:
        """Throw the reason once there is one."""
        if self.aborted:
            raise idl.throw(self.reason)
        return UNDEFINED

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call `watcher` on abort, at once if that is past; for the platform's own use."""
        if self.aborted:
            watcher()
        else:
            self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], object]) -> None:
        """Forget a watcher."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def trigger(self, reason: object = UNDEFINED) -> None:
        """Abort; a second time does nothing."""
        if self.aborted:
            return
        self.aborted = True
        missing = idl.missing(reason)
        self.reason = JsException("AbortError", "The operation was aborted") if missing else reason
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()
        self.dispatch(Event("abort"))


class AbortController(HostObject):
    """Makes a signal and aborts it."""

    js_class = "AbortController"
    js_members = frozenset({"abort", "signal"})

    def __init__(self) -> None:
        self.signal = AbortSignal()

    @classmethod
    def js_new(cls) -> AbortController:
        """Do `new AbortController()`."""
        return cls()

    def abort(self, reason: object = UNDEFINED) -> object:
        """Abort the signal; `reason` is what its users throw."""
        self.signal.trigger(reason)
        return UNDEFINED


def _follow(joined: AbortSignal, signal: AbortSignal) -> Callable[[], None]:
    return lambda: joined.trigger(signal.reason)
