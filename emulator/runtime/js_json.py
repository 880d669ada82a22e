"""`JSON`, with the functions that may take part in reading and writing."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from emulator.runtime.js_basics import functions, is_callable
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import call_value
from emulator.values import (
    UNDEFINED,
    Function,
    JsException,
    from_json,
    iso_format,
    plain_number,
    stringify,
)


class _Number(float):
    """A number with the text that it was in JSON."""

    source: str


def _with_source(text: str) -> _Number:
    read = _Number(text)
    read.source = text
    return read


def _parse(text: Any = UNDEFINED, reviver: Any = UNDEFINED, *_: Any) -> Any:
    source = display(text)
    value = from_json(source)
    if not is_callable(reviver):
        return value
    read = json.loads(source, parse_float=_with_source, parse_int=_with_source)
    return _revived(reviver, "", read)


def _revived(reviver: Any, key: str, value: Any) -> Any:
    """Walk a value from the inside out; what becomes undefined is left out."""
    context: dict[str, Any] = {}
    if isinstance(value, dict):
        for name in list(value):
            made = _revived(reviver, name, value[name])
            if made is UNDEFINED:
                del value[name]
            else:
                value[name] = made
    elif isinstance(value, list):
        value[:] = [_revived(reviver, str(index), item) for index, item in enumerate(value)]
    else:
        context["source"] = value.source if isinstance(value, _Number) else stringify(value)
        value = plain_number(float(value)) if isinstance(value, _Number) else value
    return call_value(reviver, key, value, context)


def _stringify(
    value: Any = UNDEFINED, replacer: Any = UNDEFINED, space: Any = UNDEFINED, *_: Any
) -> Any:
    indent = ""
    if isinstance(space, (int, float)) and not isinstance(space, bool):
        indent = " " * int(max(min(space, 10), 0))
    elif isinstance(space, str):
        indent = space[:10]
    try:
        if isinstance(replacer, list):
            value = _only(frozenset(map(display, replacer)), value)
        elif is_callable(replacer):
            value = _replaced(replacer, "", value)
    except RecursionError:
        raise JsException("TypeError", "Converting circular structure to JSON") from None
    return stringify(value, indent)


def _only(names: frozenset[str], value: Any) -> Any:
    """Return a value with only these properties of the objects inside."""
    if isinstance(value, dict):
        return {name: _only(names, item) for name, item in value.items() if name in names}
    return [_only(names, item) for item in value] if isinstance(value, list) else value


def _replaced(replacer: Any, key: str, value: Any) -> Any:
    if isinstance(value, datetime):
        value = iso_format(value)
    elif isinstance(value, dict) and isinstance(value.get("toJSON"), Function):
        value = value["toJSON"](key)
    value = call_value(replacer, key, value)
    if isinstance(value, dict):
        return {name: _replaced(replacer, name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(replacer, str(index), item) for index, item in enumerate(value)]
    return value


JSON: Final[dict[str, Any]] = functions(parse=_parse, stringify=_stringify)
