"""What the runtime makes of the options of `limit` (miniflare, `ratelimit.worker.ts`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from emulator.ratelimit_config import PERIODS
from emulator.runtime.js_text import display
from emulator.runtime.web.text import well_formed
from emulator.values import UNDEFINED, HostObject, JsException, LiteralMap, Opaque

_KNOWN: Final = ("key", "limit", "period")


class Options(NamedTuple):
    """A call: the key, and the limit and period that it names or the binding has."""

    key: str
    limit: float
    period: int


def options_of(given: Any, limit: int, period: int) -> Options:
    """Read the options of a call; raises the runtime's `Error`."""
    if not isinstance(given, (Mapping, LiteralMap, list, HostObject, Opaque)):
        raise JsException("Error", "invalid rate limit options")
    # Of objects that are none of JavaScript's own no property can be seen.
    properties = dict(given.items()) if isinstance(given, (Mapping, LiteralMap)) else {}
    unknown = [str(name) for name in properties if name not in _KNOWN]
    if unknown:
        raise JsException("Error", f"bad rate limit options: [{','.join(unknown)}]")
    key = _option(properties, "key", "")
    if not isinstance(key, str):
        raise JsException("Error", f"invalid key: {display(key)}")
    of_call = _number(properties, "limit", limit)
    seconds = _number(properties, "period", period)
    if seconds not in PERIODS:
        raise JsException("Error", f"unsupported period: {display(seconds)}")
    return Options(well_formed(key), of_call, int(seconds))


def _option(properties: Mapping[Any, Any], name: str, default: Any) -> Any:
    value = properties.get(name, UNDEFINED)
    return default if value is UNDEFINED else value


def _number(properties: Mapping[Any, Any], name: str, default: int) -> float:
    value = _option(properties, name, default)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise JsException("Error", f"{name} must be a number: {display(value)}")
    return value
