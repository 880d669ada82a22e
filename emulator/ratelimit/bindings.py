"""What user code has of a rate limit: `limit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.faults.sites import site_name
from emulator.ratelimit.counts import Place
from emulator.ratelimit.options import options_of
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio

    from emulator.ratelimit.service import RateLimits
    from emulator.ratelimit_config import RateLimitConfig


class Ratelimit(HostObject):
    """A rate limit binding."""

    js_class = "Ratelimit"
    js_members = frozenset({"limit"})

    def __init__(self, config: RateLimitConfig, service: RateLimits) -> None:
        self._config = config
        self._service = service
        self._site = site_name("ratelimit", config.binding, "limit")

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._service

    def limit(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Count a call for a key: `success` says whether it is within the limit."""
        invocation, config = calls.caller_of(), self._config
        try:
            key, limit, period = options_of(options, config.limit, config.period)
        except JsException as error:
            return calls.refuse(error)
        place = Place(config.namespace, key, period)

        def perform(_: object) -> dict[str, Any]:
            success = self._service.take(place, limit)
            self._service.kernel.record(
                "ratelimit",
                f"ratelimit {config.binding}",
                key=key,
                success=success,
                by=invocation.subject,
            )
            return {"success": success}

        invocation.effect(f"a call counted by the rate limit {config.binding}")
        return calls.call(invocation, perform, site=self._site, lost=_lost)


def _lost() -> Exception:
    """The error of a call that is not answered."""
    return JsException("Error", "internal error")
