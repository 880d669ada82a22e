"""What JSON changes in a value without a word.

`JSON.stringify` raises for a BigInt and for a cycle. Of all else that JSON has no form for it
writes what it can, which may be nothing: a Date becomes text, bytes an object of numbered members,
a Set or an instance of a Python class `{}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from emulator.values.buffers import TypedArray
from emulator.values.containers import JsSet, LiteralMap
from emulator.values.kinds import class_of
from emulator.values.types import UNDEFINED, Function, HostObject, JsException, Opaque, ProxiedList

_HELD: Final = frozenset({str, int, bool, type(None)})
_EMPTY: Final = "{}"
_NUMBERED: Final = 'an object {"0": ...}'
# As Python calls what the canonical classes call otherwise, and what arrives.
_CHANGED: Final[tuple[tuple[Any, str, str], ...]] = (
    (datetime, "datetime", "a string"),
    (bytes, "bytes", _NUMBERED),
    ((set, frozenset, JsSet), "set", _EMPTY),
    (JsException, "exception", _EMPTY),
)
# What to send in place of a value of this type; of any other, `_INSTEAD_OF_OBJECTS`.
_INSTEAD: Final[Mapping[str, str]] = {
    "datetime": "isoformat()",
    "bytes": "base64 text",
    "set": "a list",
    "tuple": "a list",
    "Map": "a dict",
    "float nan": "None",
    "exception": "str()",
    "undefined": "JavaScript's null",
}
_INSTEAD_OF_OBJECTS: Final = "a str, dict or list made of it"
_SHOWN: Final = 3


class Loss(NamedTuple):
    """A part of a value that JSON does not hold as it is: where, what it is, what arrives."""

    path: str
    kind: str
    arrives: str


def losses(value: Any) -> list[Loss]:
    """Return what JSON.stringify changes in a value that it does not refuse.

    Paths start with `$`, the value itself. Numbers are compared as numbers: `1.0` and `-0.0` are
    not listed. What `toJSON` makes of an object is the object's own affair.

        >>> losses({"tags": [{"a", "b"}]})
        [Loss(path='$.tags[0]', kind='set', arrives='{}')]
    """
    found: list[Loss] = []
    _walk(value, "$", found, absent="nothing")
    return found


def describe_losses(found: Sequence[Loss]) -> str:
    """Return the first few of these as text, with what to send instead.

    >>> describe_losses(losses({"tags": {"a"}}))
    '$.tags (set) arrives as {}; send a list instead'
    """
    first = found[:_SHOWN]
    parts = [f"{path} ({kind}) arrives as {arrives}" for path, kind, arrives in first]
    more = " and more" if len(found) > _SHOWN else ""
    instead = dict.fromkeys(_INSTEAD.get(loss.kind, _INSTEAD_OF_OBJECTS) for loss in first)
    return f"{', '.join(parts)}{more}; send {', '.join(instead)} instead"


def _is_held(value: Any) -> bool:
    """Whether JSON holds a value, as can be told at a glance: most are, and need no path."""
    kind = type(value)
    return kind in _HELD or (kind is float and math.isfinite(value))


def _walk(value: Any, path: str, found: list[Loss], *, absent: str) -> None:
    """Look into a value; `absent` is what arrives in this place if nothing is written."""
    if value is None or isinstance(value, (str, int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            found.append(Loss(path, f"float {value}", "null"))
    elif isinstance(value, list) and not (isinstance(value, ProxiedList) and value.hidden):
        _walk_elements(value, path, found)
    elif isinstance(value, dict):
        if not isinstance(value.get("toJSON"), Function):
            _walk_members(value, path, found)
    elif isinstance(value, LiteralMap):
        _walk_members({str(key): item for key, item in value.items()}, path, found)
    elif isinstance(value, Opaque):
        _walk_opaque(value, path, found, absent)
    elif value is UNDEFINED:
        found.append(Loss(path, "undefined", absent))
    else:
        found.append(Loss(path, *_changed(value)))


def _walk_elements(values: list[Any], path: str, found: list[Loss]) -> None:
    for index, item in enumerate(values):
        if not _is_held(item):
            _walk(item, f"{path}[{index}]", found, absent="null")


def _walk_members(record: dict[str, Any], path: str, found: list[Loss]) -> None:
    for name, item in record.items():
        if not _is_held(item):
            _walk(item, f"{path}.{name}", found, absent="nothing")


def _walk_opaque(value: Opaque, path: str, found: list[Loss], absent: str) -> None:
    obj, shown = value.obj, value.to_json_value()
    kind = value.typeof if obj is UNDEFINED else type(obj).__name__
    if shown is UNDEFINED:
        found.append(Loss(path, kind, absent))
    elif isinstance(shown, list):
        if kind != "list":
            found.append(Loss(path, kind, "a list"))
        _walk_elements(shown, path, found)
    elif shown or (isinstance(obj, Mapping) and not obj):
        _walk_members(shown, path, found)
    else:
        found.append(Loss(path, kind, _EMPTY))


def _changed(value: Any) -> tuple[str, str]:
    """The type of what JSON has no form for, and what arrives."""
    for kinds, name, arrives in _CHANGED:
        if isinstance(value, kinds):
            return name, arrives
    name = class_of(value)
    if isinstance(value, HostObject):
        if "toJSON" in value.js_members:
            return name, "what its toJSON() returns"
        return name, "an object of its own properties" if list(value.js_keys()) else _EMPTY
    return name, _NUMBERED if isinstance(value, TypedArray) and name != "DataView" else _EMPTY
