"""`console` of the `js` module: lines in the Worker's log."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from emulator.runtime.host import current
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import PyProxy
from emulator.values import (
    UNDEFINED,
    Boxed,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    class_of,
    iso_format,
    property_names,
    settled,
)

# Methods → the level in the log. The others that exist write nothing: no timers, no groups.
_LEVELS: Final = {
    "log": "log",
    "info": "info",
    "warn": "warn",
    "error": "error",
    "debug": "debug",
    "trace": "log",
    "dir": "log",
    "table": "log",
}
_SILENT: Final = ("group", "groupEnd", "groupCollapsed", "time", "timeEnd", "timeLog", "count")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")
_MAX_DEPTH: Final = 2


def inspect_value(value: Any, depth: int = 0) -> str:
    """Return how `console.log` shows a value: text bare at the top, quoted inside objects."""
    if isinstance(value, str):
        return value if depth == 0 else f"'{value}'"
    if isinstance(value, PyProxy):
        return repr(value.obj)
    if isinstance(value, JsException):
        return str(value)
    if isinstance(value, Function):
        return f"[Function: {value.name or '(anonymous)'}]"
    if isinstance(value, datetime):
        return display(value) if isinstance(settled(value), Boxed) else iso_format(value)
    if isinstance(value, (dict, list, JsMap, JsSet, set, frozenset, HostObject)):
        return _inspect_container(value, depth)
    return "undefined" if value is UNDEFINED else display(value)


def _inspect_container(value: Any, depth: int) -> str:
    name = class_of(value)
    if depth > _MAX_DEPTH:
        return f"[{name}]"
    if isinstance(value, list):
        parts = [inspect_value(item, depth + 1) for item in value]
        return f"[ {', '.join(parts)} ]" if parts else "[]"
    if isinstance(value, dict):
        prefix = ""
        parts = [f"{_key(k)}: {inspect_value(value[k], depth + 1)}" for k in property_names(value)]
    elif isinstance(value, HostObject):
        prefix = f"{name} "
        parts = [f"{k}: {inspect_value(value.js_lookup(k), depth + 1)}" for k in value.js_keys()]
    elif isinstance(value, JsMap):
        prefix = f"Map({len(value)}) "
        parts = [
            f"{inspect_value(k, 1)} => {inspect_value(v, depth + 1)}" for k, v in value.items()
        ]
    else:
        prefix = f"Set({len(value)}) "
        shown = [inspect_value(item, depth + 1) for item in value]
        parts = shown if isinstance(value, JsSet) else sorted(shown)
    return prefix + (f"{{ {', '.join(parts)} }}" if parts else "{}")


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else f"'{name}'"


def _writer(level: str) -> Function:
    def write(*args: Any) -> Any:
        current().log(level, " ".join(map(inspect_value, args)), args)
        return UNDEFINED

    return Function(write, level, raw=True)


def _assert(condition: Any = UNDEFINED, *args: Any) -> Any:
    if not condition:
        text = " ".join(["Assertion failed", *map(inspect_value, args)])
        current().log("error", text)
    return UNDEFINED


CONSOLE: Final[dict[str, Any]] = {
    **{name: _writer(level) for name, level in _LEVELS.items()},
    **{name: Function(lambda *args: UNDEFINED, name, raw=True) for name in _SILENT},
    "assert": Function(_assert, "assert", raw=True),
}
