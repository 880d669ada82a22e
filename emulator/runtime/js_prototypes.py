"""Properties and methods of JavaScript's built-in classes.

`METHODS` and `GETTERS` are tables by class; a function takes `this` and JavaScript values and
returns one. Only what Workers code in Python is known to use is here: Python's own lists, dicts and
strings do the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime import js_boxes
from emulator.runtime.js_text import display, own_names
from emulator.runtime.pyproxy import PyProxy, call_value, iterate
from emulator.values import (
    UNDEFINED,
    VIEW_KINDS,
    ArrayBuffer,
    BigInt,
    Function,
    JsException,
    JsMap,
    JsSet,
    TypedArray,
    iso_format,
    to_milliseconds,
    to_number,
)

if TYPE_CHECKING:
    from datetime import datetime


Method = Callable[..., Any]


class Constructor(Function):
    """A JavaScript class: `Map.new(...)` in Python, `Map.groupBy` and the like as statics."""

    def __init__(
        self,
        name: str,
        construct: Method,
        *,
        statics: dict[str, Any] | None = None,
        call: Method | None = None,
    ) -> None:
        super().__init__(call or self._refuse, name, raw=True)
        self.construct = construct
        self.statics = statics or {}

    def _refuse(self, *args: Any) -> Any:
        raise JsException("TypeError", f"Constructor {self.name} requires 'new'")


def set_element(value: TypedArray, index: int, item: Any) -> None:
    view = value.view()
    if not 0 <= index < len(view):
        return  # JavaScript ignores it
    view[index] = to_element(value.kind, item)


def to_element(kind: str, item: Any) -> Any:
    """Return the number as an element of a typed array stores it (wrapped around or clamped)."""
    form, size = VIEW_KINDS[kind]
    if form in "fd":
        return float(to_number(item))
    if isinstance(item, BigInt) != kind.startswith("Big"):
        wanted = "a BigInt" if kind.startswith("Big") else "a number"
        raise JsException("TypeError", f"Cannot convert {_shown(item)} to {wanted}")
    number = item.value if isinstance(item, BigInt) else to_number(item)
    whole = int(number) if number == number and abs(number) != float("inf") else 0
    if kind == "Uint8ClampedArray":
        return min(max(round(number) if whole or number == number else 0, 0), 255)
    whole %= 1 << (8 * size)
    return whole - (1 << (8 * size)) if form.islower() and whole >> (8 * size - 1) else whole


def _shown(item: Any) -> str:
    return "a BigInt value" if isinstance(item, BigInt) else display(item)


def _clip(index: Any, length: int, default: int) -> int:
    """A relative index as `slice` and friends take it."""
    if index is UNDEFINED:
        return default
    number = to_number(index)
    whole = 0 if number != number else int(max(min(number, length), -length - 1))
    return max(whole + length, 0) if whole < 0 else min(whole, length)


def truthy(value: Any) -> bool:
    """JavaScript's truth: empty text, 0, NaN, null and undefined are false; every object true."""
    if value is None or value is UNDEFINED or value is False:
        return False
    if isinstance(value, BigInt):
        return value.value != 0
    return bool(value) and value == value if isinstance(value, (str, int, float)) else True


def same(left: Any, right: Any) -> bool:
    """`===`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (str, int, float, BigInt, PyProxy)):
        return bool(left == right)
    return left is right


def _splice(this: list[Any], start: Any = UNDEFINED, count: Any = UNDEFINED, *items: Any) -> Any:
    begin = _clip(start, len(this), 0)
    number = len(this) - begin if count is UNDEFINED else max(int(to_number(count)), 0)
    removed = this[begin : begin + number]
    this[begin : begin + number] = items
    return removed


def _sort(this: list[Any], compare: Any = UNDEFINED) -> Any:
    present = [item for item in this if item is not UNDEFINED]
    if compare is UNDEFINED:
        present.sort(key=display)
    else:
        by = functools.cmp_to_key(lambda a, b: int(to_number(call_value(compare, a, b))))
        present.sort(key=by)
    this[:] = present + [UNDEFINED] * (len(this) - len(present))
    return this


def _reduce(this: list[Any], function: Any, *initial: Any) -> Any:
    items = list(enumerate(this))
    if not initial:
        if not items:
            raise JsException("TypeError", "Reduce of empty array with no initial value")
        initial = (items.pop(0)[1],)
    total = initial[0]
    for index, item in items:
        total = call_value(function, total, item, index, this)
    return total


def _flat(this: list[Any], depth: Any = 1) -> list[Any]:
    out: list[Any] = []
    for item in this:
        if isinstance(item, list) and to_number(depth) >= 1:
            out.extend(_flat(item, to_number(depth) - 1))
        else:
            out.append(item)
    return out


def _concat(this: list[Any], *others: Any) -> list[Any]:
    out = list(this)
    for other in others:
        out.extend(other if isinstance(other, list) else [other])
    return out


def _where(this: list[Any], function: Any) -> int:
    hits = (i for i, item in enumerate(this) if truthy(call_value(function, item, i, this)))
    return next(hits, -1)


def _map(this: list[Any], function: Any) -> list[Any]:
    return [call_value(function, item, index, this) for index, item in enumerate(this)]


def _for_each(this: list[Any], function: Any) -> Any:
    _map(this, function)
    return UNDEFINED


def _position(this: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(this) if same(item, wanted)), -1)


def _map_set(this: JsMap, key: Any, value: Any = UNDEFINED) -> JsMap:
    this.set(key, value)
    return this


def _set_add(this: Any, value: Any) -> Any:
    this.add(value)
    return this


def _clear(this: Any) -> Any:
    this.clear()
    return UNDEFINED


def _map_for_each(this: JsMap, function: Any) -> Any:
    for key, value in this.items():
        call_value(function, value, key, this)
    return UNDEFINED


def _set_for_each(this: Any, function: Any) -> Any:
    for value in list(this):
        call_value(function, value, value, this)
    return UNDEFINED


def _view(this: Any) -> TypedArray:
    return TypedArray("Uint8Array", ArrayBuffer(this)) if isinstance(this, bytes) else this


def _subarray(this: TypedArray, start: Any = UNDEFINED, end: Any = UNDEFINED) -> TypedArray:
    size = VIEW_KINDS[this.kind][1]
    begin = _clip(start, len(this), 0)
    count = max(_clip(end, len(this), len(this)) - begin, 0)
    return TypedArray(this.kind, this.buffer, this.offset + begin * size, count * size)


def _view_slice(this: TypedArray, start: Any = UNDEFINED, end: Any = UNDEFINED) -> TypedArray:
    return TypedArray(this.kind, ArrayBuffer(bytes(_subarray(this, start, end))))


def _view_set(this: TypedArray, source: Any, offset: Any = 0) -> Any:
    items = list(iterate(source))
    start = int(to_number(offset))
    if start + len(items) > len(this):
        raise JsException("RangeError", "offset is out of bounds")
    for index, item in enumerate(items):
        set_element(this, start + index, item)
    return UNDEFINED


def _fill(this: TypedArray, item: Any) -> TypedArray:
    for index in range(len(this)):
        set_element(this, index, item)
    return this


def _buffer_slice(this: ArrayBuffer, start: Any = UNDEFINED, end: Any = UNDEFINED) -> ArrayBuffer:
    size = len(this)
    return ArrayBuffer(bytes(this.data[_clip(start, size, 0) : _clip(end, size, size)]))


def _bind(this: Any, bound_this: Any = UNDEFINED, *bound: Any) -> Function:
    return Function(lambda *args: call_value(this, *bound, *args), this.name, raw=True)


# Date's getters by Python's; JavaScript counts months from 0 and week days from Sunday.
_DATE_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "FullYear": lambda moment: moment.year,
    "Month": lambda moment: moment.month - 1,
    "Date": lambda moment: moment.day,
    "Day": lambda moment: moment.isoweekday() % 7,
    "Hours": lambda moment: moment.hour,
    "Minutes": lambda moment: moment.minute,
    "Seconds": lambda moment: moment.second,
    "Milliseconds": lambda moment: moment.microsecond // 1000,
}


METHODS: Final[dict[str, dict[str, Method]]] = {
    "Object": {
        "toString": display,
        "valueOf": lambda this: this,
        "hasOwnProperty": lambda this, name: display(name) in own_names(this),
    },
    "Array": {
        "push": lambda this, *items: (this.extend(items), len(this))[1],
        "shift": lambda this: this.pop(0) if this else UNDEFINED,
        "unshift": lambda this, *items: (this.__setitem__(slice(0, 0), items), len(this))[1],
        "slice": lambda this, start=UNDEFINED, end=UNDEFINED: this[
            _clip(start, len(this), 0) : _clip(end, len(this), len(this))
        ],
        "splice": _splice,
        "concat": _concat,
        "join": lambda this, glue=",": glue.join(
            "" if v is None or v is UNDEFINED else display(v) for v in this
        ),
        "indexOf": _position,
        "includes": lambda this, wanted: _position(this, wanted) >= 0,
        "map": _map,
        "filter": lambda this, f: [
            v for i, v in enumerate(this) if truthy(call_value(f, v, i, this))
        ],
        "forEach": _for_each,
        "find": lambda this, f: UNDEFINED if (i := _where(this, f)) < 0 else this[i],
        "findIndex": _where,
        "some": lambda this, f: _where(this, f) >= 0,
        "every": lambda this, f: all(truthy(call_value(f, v, i, this)) for i, v in enumerate(this)),
        "reduce": _reduce,
        "sort": _sort,
        "flat": _flat,
        "at": lambda this, i: this[int(i)] if -len(this) <= int(i) < len(this) else UNDEFINED,
        "keys": lambda this: list(range(len(this))),
        "values": lambda this: list(this),
        "entries": lambda this: [[i, v] for i, v in enumerate(this)],
    },
    "Map": {
        "get": JsMap.get,
        "set": _map_set,
        "has": JsMap.has,
        "delete": JsMap.delete,
        "clear": _clear,
        "keys": lambda this: list(this.keys()),
        "values": lambda this: list(this.values()),
        "entries": lambda this: [[key, value] for key, value in this.items()],
        "forEach": _map_for_each,
    },
    "Set": {
        "add": _set_add,
        "has": lambda this, value: any(same(item, value) for item in this),
        "delete": lambda this, value: JsSet.delete(this, value),
        "clear": _clear,
        "keys": lambda this: list(this),
        "values": lambda this: list(this),
        "entries": lambda this: [[value, value] for value in this],
        "forEach": _set_for_each,
    },
    "Date": {
        "getTime": to_milliseconds,
        "valueOf": to_milliseconds,
        "toISOString": iso_format,
        "toJSON": lambda this, key=UNDEFINED: iso_format(this),
        "toUTCString": lambda this: f"{this:%a, %d %b %Y %H:%M:%S} GMT",
        "toDateString": lambda this: f"{this:%a %b %d %Y}",
        "getTimezoneOffset": lambda this: 0,
        "getYear": lambda this: this.year - 1900,
        **{f"get{name}": part for name, part in _DATE_PARTS.items()},
        **{f"getUTC{name}": part for name, part in _DATE_PARTS.items()},
    },
    "TypedArray": {
        "subarray": lambda this, *args: _subarray(_view(this), *args),
        "slice": lambda this, *args: _view_slice(_view(this), *args),
        "set": _view_set,
        "fill": _fill,
        "join": lambda this, glue=",": glue.join(map(display, _view(this).view())),
    },
    "ArrayBuffer": {"slice": _buffer_slice},
    "Function": {
        "call": lambda this, that=UNDEFINED, *args: call_value(this, *args),
        "apply": lambda this, that=UNDEFINED, args=(): call_value(
            this, *(iterate(args) if args is not UNDEFINED and args is not None else ())
        ),
        "bind": _bind,
    },
    **js_boxes.METHODS,
}
METHODS["Invalid Date"] = js_boxes.invalid_date(METHODS["Date"])


GETTERS: Final[dict[str, dict[str, Callable[[Any], Any]]]] = {
    "Array": {"length": len},
    "Map": {"size": len},
    "Set": {"size": len},
    "String": {"length": lambda this: len(this.value)},
    "TypedArray": {
        "length": lambda this: len(this),
        "byteLength": lambda this: len(bytes(this)),
        "byteOffset": lambda this: _view(this).offset,
        "buffer": lambda this: _view(this).buffer,
        "BYTES_PER_ELEMENT": lambda this: VIEW_KINDS[_view(this).kind][1],
    },
    "ArrayBuffer": {"byteLength": len},
    "Function": {"name": lambda this: this.name},
    "RegExp": {"source": lambda this: this.source, "flags": lambda this: this.flags},
    "Symbol": {"description": lambda this: this.description},
}
