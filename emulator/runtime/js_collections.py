"""`Map` and `Set`: how they are made, and their methods."""

from __future__ import annotations

from typing import Any, Final

from emulator.runtime.js_basics import Constructor, Method, functions, is_callable, same_or_nan
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import call_value, described, iterate
from emulator.values import UNDEFINED, JsException, JsMap, JsSet


def _callback(given: Any) -> Any:
    if is_callable(given):
        return given
    raise JsException("TypeError", f"{described(given)} is not a function")


# -- Map -------------------------------------------------------------------------------------------


def _new_map(pairs: Any = UNDEFINED, *_: Any) -> JsMap:
    result = JsMap()
    for pair in () if pairs is UNDEFINED or pairs is None else iterate(pairs):
        entry = list(iterate(pair)) if not isinstance(pair, (str, int, float)) else []
        if len(entry) < 1:
            raise JsException("TypeError", f"Iterator value {display(pair)} is not an entry object")
        result.set(entry[0], entry[1] if len(entry) > 1 else UNDEFINED)
    return result


def _group_by(items: Any = UNDEFINED, given: Any = UNDEFINED, *_: Any) -> JsMap:
    groups = JsMap()
    for index, item in enumerate(iterate(items)):
        key = call_value(given, item, index)
        if not groups.has(key):
            groups.set(key, [])
        groups.get(key).append(item)
    return groups


def _map_set(this: JsMap, key: Any = UNDEFINED, value: Any = UNDEFINED, *_: Any) -> JsMap:
    this.set(key, value)
    return this


def _map_for_each(this: JsMap, given: Any = UNDEFINED, *_: Any) -> Any:
    call = _callback(given)
    for key, value in this.items():
        call_value(call, value, key, this)
    return UNDEFINED


def _or_insert(this: JsMap, key: Any = UNDEFINED, value: Any = UNDEFINED, *_: Any) -> Any:
    if not this.has(key):
        this.set(key, value)
    return this.get(key)


def _or_insert_computed(this: JsMap, key: Any = UNDEFINED, given: Any = UNDEFINED, *_: Any) -> Any:
    call = _callback(given)
    if not this.has(key):
        this.set(key, call_value(call, key))
    return this.get(key)


def _clear(this: Any, *_: Any) -> Any:
    this.clear()
    return UNDEFINED


MAP: Final[dict[str, Method]] = {
    "get": lambda this, key=UNDEFINED, *_: this.get(key),
    "set": _map_set,
    "has": lambda this, key=UNDEFINED, *_: this.has(key),
    "delete": lambda this, key=UNDEFINED, *_: this.delete(key),
    "clear": _clear,
    "keys": lambda this, *_: list(this.keys()),
    "values": lambda this, *_: list(this.values()),
    "entries": lambda this, *_: [[key, value] for key, value in this.items()],
    "forEach": _map_for_each,
    "getOrInsert": _or_insert,
    "getOrInsertComputed": _or_insert_computed,
}
MAP_CLASS: Final = Constructor("Map", _new_map, statics=functions(groupBy=_group_by))


# -- Set -------------------------------------------------------------------------------------------


def _new_set(values: Any = UNDEFINED, *_: Any) -> JsSet:
    return JsSet(() if values is UNDEFINED or values is None else iterate(values))


def _has(this: Any, value: Any = UNDEFINED, *_: Any) -> bool:
    if isinstance(this, JsSet):
        return this.has(value)
    return any(same_or_nan(item, value) for item in this)


def _add(this: Any, value: Any = UNDEFINED, *_: Any) -> Any:
    this.add(value)
    return this


def _delete(this: Any, value: Any = UNDEFINED, *_: Any) -> bool:
    if isinstance(this, JsSet):
        return this.delete(value)
    found = [item for item in this if same_or_nan(item, value)]
    this.difference_update(found)
    return bool(found)


def _set_for_each(this: Any, given: Any = UNDEFINED, *_: Any) -> Any:
    call = _callback(given)
    for value in list(this):
        call_value(call, value, value, this)
    return UNDEFINED


def _other(value: Any) -> JsSet:
    """Return the values of what the methods that compare Sets take: a Set, or a Map's keys."""
    if isinstance(value, JsSet):
        return value
    if isinstance(value, JsMap):
        return JsSet(value.keys())
    if isinstance(value, (set, frozenset)):
        return JsSet(value)
    from emulator.runtime.js_objects import is_object

    text = "The 'size' property must be a number" if is_object(value) else "is not an object"
    raise JsException("TypeError", text if is_object(value) else f"{display(value)} {text}")


def _combined(this: Any, other: Any, *, both: bool, mine: bool, theirs: bool) -> JsSet:
    """Return the values that are in both, in this one only, in the other one only."""
    left, right = JsSet(this), _other(other)
    made = JsSet(value for value in left if (both if right.has(value) else mine))
    if theirs:
        for value in right:
            if not left.has(value):
                made.add(value)
    return made


def _algebra(*, both: bool, mine: bool, theirs: bool) -> Method:
    return lambda this, other=UNDEFINED, *_: _combined(
        this, other, both=both, mine=mine, theirs=theirs
    )


SET: Final[dict[str, Method]] = {
    "add": _add,
    "has": _has,
    "delete": _delete,
    "clear": _clear,
    "keys": lambda this, *_: list(this),
    "values": lambda this, *_: list(this),
    "entries": lambda this, *_: [[value, value] for value in this],
    "forEach": _set_for_each,
    "union": _algebra(both=True, mine=True, theirs=True),
    "intersection": _algebra(both=True, mine=False, theirs=False),
    "difference": _algebra(both=False, mine=True, theirs=False),
    "symmetricDifference": _algebra(both=False, mine=True, theirs=True),
    "isSubsetOf": lambda this, other=UNDEFINED, *_: all(map(_other(other).has, this)),
    "isSupersetOf": lambda this, other=UNDEFINED, *_: all(_has(this, v) for v in _other(other)),
    "isDisjointFrom": lambda this, other=UNDEFINED, *_: not any(map(_other(other).has, this)),
}
SET_CLASS: Final = Constructor("Set", _new_set)
