"""`navigator`, `performance`, `scheduler`, `reportError` and `Cloudflare` of the global scope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.host import current
from emulator.runtime.js_dates import now_in_milliseconds
from emulator.runtime.not_yet import not_yet
from emulator.runtime.web import idl
from emulator.runtime.web.abort import AbortSignal
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable

# What production has besides, by class.
_MISSING: Final = {
    "Navigator": frozenset({"sendBeacon", "gpu", "storage"}),
    "Performance": frozenset(
        {
            *("mark", "measure", "clearMarks", "clearMeasures", "getEntries"),
            *("getEntriesByName", "getEntriesByType", "eventLoopUtilization", "timerify"),
        }
    ),
}


class _Fixed(HostObject):
    """An object of the global scope that nobody constructs."""

    @classmethod
    def js_new(cls) -> _Fixed:
        """Refuse `new`."""
        raise JsException("TypeError", "Illegal constructor")

    def js_lookup(self, name: str) -> Any:
        """Return a member; those that production has besides say that they are missing."""
        if name in _MISSING.get(self.js_class, ()):
            raise not_yet(f"js.{self.js_class.lower()}.{name}", imported=False)
        return super().js_lookup(name)


class Navigator(_Fixed):
    """`navigator`."""

    js_class = "Navigator"
    js_members = frozenset(
        {"userAgent", "language", "languages", "hardwareConcurrency", "platform"}
    )
    userAgent = "Cloudflare-Workers"
    language = "en"
    hardwareConcurrency = 1
    platform = ""

    @property
    def languages(self) -> list[str]:
        """Return the languages."""
        return ["en"]


class Performance(_Fixed):
    """`performance`: its origin is the epoch, and its time stands still as `Date.now()` does."""

    js_class = "Performance"
    js_members = frozenset({"now", "timeOrigin", "toJSON"})
    timeOrigin = 0

    def now(self) -> float:
        """Return the milliseconds since the epoch."""
        return now_in_milliseconds()

    def toJSON(self) -> dict[str, int]:
        """Return what JSON shows of it."""
        return {"timeOrigin": 0}


class Scheduler(_Fixed):
    """`scheduler`."""

    js_class = "Scheduler"
    js_members = frozenset({"wait"})

    def wait(self, delay: object = UNDEFINED, options: object = UNDEFINED) -> Awaitable[object]:
        """Return a promise that is kept after so many milliseconds, or broken by a signal."""
        if delay is UNDEFINED:
            raise idl.wrong_argument("wait", "Scheduler", 1, "number")
        signal = idl.options(options).get("signal")
        return _wait(max(idl.number(delay), 0) / 1000, signal)


async def _wait(seconds: float, signal: object) -> object:
    if not isinstance(signal, AbortSignal):
        await asyncio.sleep(seconds)
        return UNDEFINED
    signal.throwIfAborted()
    aborted = asyncio.get_running_loop().create_future()

    def stop() -> None:
        if not aborted.done():
            aborted.set_result(None)

    signal.watch(stop)
    await asyncio.wait([aborted], timeout=seconds)
    signal.unwatch(stop)
    signal.throwIfAborted()
    return UNDEFINED


def reportError(error: object = UNDEFINED) -> object:
    """Report an exception as one that nobody took."""
    if error is UNDEFINED:
        raise idl.wrong_argument("reportError", "ServiceWorkerGlobalScope", 1, "Value")
    current().report(idl.throw(error))
    return UNDEFINED


class Cloudflare(_Fixed):
    """`Cloudflare`: the compatibility flags of the Worker."""

    js_class = "Cloudflare"
    js_members = frozenset({"compatibilityFlags"})

    @property
    def compatibilityFlags(self) -> dict[str, bool]:
        """Return the flags that are on."""
        return dict.fromkeys(sorted(current().flags), True)
