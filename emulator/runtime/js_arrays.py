"""The methods of arrays, most of which typed arrays have too, and the statics of `Array`.

A function takes `this` and JavaScript values. What only reads goes through `elements`, so that it
serves typed arrays as it is. There is no `keys`: Pyodide hides it, so that `dict(array)` works.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_basics import (
    Constructor,
    Method,
    clip,
    functions,
    integer,
    is_callable,
    reached,
    same,
    same_or_nan,
    truthy,
)
from emulator.runtime.js_text import display, join
from emulator.runtime.pyproxy import PyProxy, call_value, iterate
from emulator.values import UNDEFINED, BigInt, Boxed, JsException, TypedArray, to_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def elements(this: Any) -> Sequence[Any]:
    """Return the elements of an array or a typed array."""
    if isinstance(this, TypedArray):
        view = this.view().tolist()
        return [BigInt(item) for item in view] if this.kind.startswith("Big") else view
    return this if isinstance(this, list) else list(this)


def _callback(given: Any) -> Any:
    if is_callable(given):
        return given
    raise JsException("TypeError", f"{display(given)} is not a function")


def _each(this: Any, given: Any, *, backwards: bool = False) -> Iterable[tuple[int, Any, Any]]:
    """Yield the index, the element and what the callback says of it; it may change the array."""
    call = _callback(given)
    items = elements(this)
    places = range(len(items))
    for index in reversed(places) if backwards else places:
        if index < len(items):
            yield index, items[index], call_value(call, items[index], index, this)


def _at(this: Any, index: Any = UNDEFINED, *_: Any) -> Any:
    items = elements(this)
    place = reached(index, len(items))
    return UNDEFINED if place is None else items[place]


def map_each(this: Any, given: Any = UNDEFINED, *_: Any) -> list[Any]:
    """Return what the callback makes of each element."""
    return [made for _index, _item, made in _each(this, given)]


def filtered(this: Any, given: Any = UNDEFINED, *_: Any) -> list[Any]:
    """Return the elements that the callback keeps."""
    return [item for _index, item, kept in _each(this, given) if truthy(kept)]


def _for_each(this: Any, given: Any = UNDEFINED, *_: Any) -> Any:
    map_each(this, given)
    return UNDEFINED


def _found(this: Any, given: Any, *, backwards: bool) -> tuple[int, Any]:
    hits = _each(this, given, backwards=backwards)
    return next(((index, item) for index, item, hit in hits if truthy(hit)), (-1, UNDEFINED))


def _find(place: int, *, backwards: bool = False) -> Method:
    return lambda this, given=UNDEFINED, *_: _found(this, given, backwards=backwards)[place]


def _reduce(*, backwards: bool = False) -> Method:
    def reduce(this: Any, given: Any = UNDEFINED, *initial: Any) -> Any:
        items = list(enumerate(elements(this)))
        if backwards:
            items.reverse()
        call = _callback(given)
        if not initial:
            if not items:
                raise JsException("TypeError", "Reduce of empty array with no initial value")
            initial = (items.pop(0)[1],)
        total = initial[0]
        for index, item in items:
            total = call_value(call, total, item, index, this)
        return total

    return reduce


def _index_of(this: Any, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> int:
    items = elements(this)
    begin = clip(start, len(items), 0)
    places = (at for at in range(begin, len(items)) if same(items[at], wanted))
    return next(places, -1)


def _last_index_of(this: Any, wanted: Any = UNDEFINED, *start: Any) -> int:
    items = elements(this)
    begin = integer(start[0]) if start else len(items) - 1
    begin = min(begin, len(items) - 1) if begin >= 0 else begin + len(items)
    places = (at for at in range(int(max(begin, -1)), -1, -1) if same(items[at], wanted))
    return next(places, -1)


def _includes(this: Any, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> bool:
    items = elements(this)
    begin = clip(start, len(items), 0)
    return any(same_or_nan(item, wanted) for item in items[begin:])


def _sliced(this: Any, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> list[Any]:
    items = elements(this)
    return list(items[clip(start, len(items), 0) : clip(end, len(items), len(items))])


def _joined(this: Any, glue: Any = UNDEFINED, *_: Any) -> str:
    return join(list(elements(this)), "," if glue is UNDEFINED else display(glue), id(this))


def _code_units(value: Any) -> bytes:
    return display(value).encode("utf-16-be", "surrogatepass")


def in_order(items: Iterable[Any], compare: Any, *, numeric: bool = False) -> list[Any]:
    """Return the elements sorted: by a callback, by their text, or as numbers; undefined last."""
    if compare is not UNDEFINED and not is_callable(compare):
        text = "The comparison function must be either a function or undefined"
        raise JsException("TypeError", text)
    given = list(items)
    present = [item for item in given if item is not UNDEFINED]
    if compare is not UNDEFINED:

        def compared(left: Any, right: Any) -> int:
            number = to_number(call_value(compare, left, right))
            return (number > 0) - (number < 0)

        present.sort(key=functools.cmp_to_key(compared))
    elif numeric:
        present.sort(key=_as_number)
    else:
        present.sort(key=_code_units)
    return present + [UNDEFINED] * (len(given) - len(present))


def _as_number(item: Any) -> tuple[bool, float]:
    number = item.value if isinstance(item, BigInt) else item
    return (number != number, number if number == number else 0)


# -- what changes an array -------------------------------------------------------------------------


def _push(this: list[Any], *items: Any) -> int:
    this.extend(items)
    return len(this)


def _unshift(this: list[Any], *items: Any) -> int:
    this[:0] = items
    return len(this)


def _splice(this: list[Any], *args: Any) -> list[Any]:
    begin, end = _cut(this, args)
    removed = this[begin:end]
    this[begin:end] = args[2:]
    return removed


def _cut(this: list[Any], args: tuple[Any, ...]) -> tuple[int, int]:
    """Where `splice` begins and ends; without a count it ends with the array."""
    begin = clip(args[0] if args else UNDEFINED, len(this), 0)
    if len(args) < 2:
        return begin, len(this) if args else begin
    return begin, begin + int(min(max(integer(args[1]), 0), len(this) - begin))


def _spliced(this: list[Any], *args: Any) -> list[Any]:
    begin, end = _cut(this, args)
    return [*this[:begin], *args[2:], *this[end:]]


def _sort(this: list[Any], compare: Any = UNDEFINED, *_: Any) -> list[Any]:
    this[:] = in_order(this, compare)
    return this


def _reverse(this: list[Any], *_: Any) -> list[Any]:
    this.reverse()
    return this


def _fill(
    this: list[Any], item: Any = UNDEFINED, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any
) -> list[Any]:
    for index in range(clip(start, len(this), 0), clip(end, len(this), len(this))):
        this[index] = item
    return this


def copied_within(items: list[Any], target: Any, start: Any, end: Any) -> list[Any]:
    """Return the elements after `copyWithin`."""
    size = len(items)
    to, begin, stop = clip(target, size, 0), clip(start, size, 0), clip(end, size, size)
    part = items[begin:stop][: size - to]
    return [*items[:to], *part, *items[to + len(part) :]]


def _copy_within(
    this: list[Any],
    target: Any = UNDEFINED,
    start: Any = UNDEFINED,
    end: Any = UNDEFINED,
    *_: Any,
) -> list[Any]:
    this[:] = copied_within(this, target, start, end)
    return this


def replaced_at(this: Any, index: Any, item: Any) -> list[Any]:
    """Return the elements after `with`."""
    items = list(elements(this))
    place = reached(index, len(items))
    if place is None:
        raise JsException("RangeError", f"Invalid index : {display(integer(index))}")
    items[place] = item
    return items


def _flat(this: list[Any], depth: Any = 1, *_: Any) -> list[Any]:
    levels = 1 if depth is UNDEFINED else integer(depth)
    out: list[Any] = []
    for item in this:
        if isinstance(item, list) and levels >= 1:
            out.extend(_flat(item, levels - 1))
        else:
            out.append(item)
    return out


def _concat(this: list[Any], *others: Any) -> list[Any]:
    out = list(this)
    for other in others:
        out.extend(other if isinstance(other, list) else [other])
    return out


def _locale_text(this: Any, *_: Any) -> str:
    from emulator.runtime.js_properties import lookup

    def shown(item: Any) -> str:
        if item is None or item is UNDEFINED:
            return ""
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            item = Boxed("Number", item)
        try:
            return display(call_value(lookup(item, "toLocaleString")))
        except AttributeError:
            return display(item)

    return ",".join(map(shown, elements(this)))


# What arrays and typed arrays do in the same way.
SHARED: Final[dict[str, Method]] = {
    "at": _at,
    "every": lambda this, f=UNDEFINED, *_: all(truthy(kept) for *_, kept in _each(this, f)),
    "find": _find(1),
    "findIndex": _find(0),
    "findLast": _find(1, backwards=True),
    "findLastIndex": _find(0, backwards=True),
    "forEach": _for_each,
    "includes": _includes,
    "indexOf": _index_of,
    "join": _joined,
    "lastIndexOf": _last_index_of,
    "reduce": _reduce(),
    "reduceRight": _reduce(backwards=True),
    "some": lambda this, f=UNDEFINED, *_: any(truthy(hit) for *_, hit in _each(this, f)),
    "values": lambda this, *_: list(elements(this)),
    "entries": lambda this, *_: [[index, item] for index, item in enumerate(elements(this))],
    "toLocaleString": _locale_text,
    "toString": lambda this, *_: display(this),
}

ARRAY: Final[dict[str, Method]] = {
    **SHARED,
    "concat": _concat,
    "copyWithin": _copy_within,
    "fill": _fill,
    "filter": filtered,
    "flat": _flat,
    "flatMap": lambda this, f=UNDEFINED, *_: _flat(map_each(this, f)),
    "map": map_each,
    "pop": lambda this, *_: this.pop() if this else UNDEFINED,
    "push": _push,
    "reverse": _reverse,
    "shift": lambda this, *_: this.pop(0) if this else UNDEFINED,
    "slice": _sliced,
    "sort": _sort,
    "splice": _splice,
    "toReversed": lambda this, *_: this[::-1],
    "toSorted": lambda this, compare=UNDEFINED, *_: in_order(this, compare),
    "toSpliced": _spliced,
    "unshift": _unshift,
    "with": lambda this, index=UNDEFINED, item=UNDEFINED, *_: replaced_at(this, index, item),
}


# -- the class -------------------------------------------------------------------------------------


def _new_array(*items: Any) -> list[Any]:
    if len(items) == 1 and isinstance(items[0], (int, float)) and not isinstance(items[0], bool):
        if not 0 <= items[0] < 2**32 or items[0] != int(items[0]):
            raise JsException("RangeError", "Invalid array length")
        return [UNDEFINED] * int(items[0])
    return list(items)


def items_of(source: Any) -> list[Any]:
    """Return what `Array.from` takes: an iterable, or an object with a length."""
    if source is UNDEFINED or source is None:
        text = f"{'undefined' if source is UNDEFINED else 'object null'} is not iterable"
        text += " (cannot read property Symbol(Symbol.iterator))"
        raise JsException("TypeError", text)
    if not isinstance(source, dict):
        return list(iterate(source))
    count = int(max(integer(source.get("length", 0)), 0))
    return [source.get(str(index), UNDEFINED) for index in range(count)]


def _array_from(source: Any = UNDEFINED, given: Any = UNDEFINED, *_: Any) -> list[Any]:
    items = items_of(source)
    if given is UNDEFINED:
        return items
    return [call_value(given, item, index) for index, item in enumerate(items)]


def _from_async(source: Any = UNDEFINED, given: Any = UNDEFINED, *_: Any) -> Any:
    from emulator.runtime.js_timers import settle
    from emulator.runtime.promises import promise
    from emulator.runtime.proxies import wrap
    from emulator.runtime.pyproxy import unwrap

    async def collect() -> list[Any]:
        held = source.obj if isinstance(source, PyProxy) else source
        if hasattr(held, "__aiter__"):
            items = [unwrap(item) async for item in held]
        else:
            items = [await settle(item) for item in items_of(source)]
        if given is UNDEFINED:
            return items
        return [await settle(call_value(given, item, at)) for at, item in enumerate(items)]

    return promise(collect(), wrap)


CLASS: Final = Constructor(
    "Array",
    _new_array,
    call=_new_array,
    statics=functions(
        from_=_array_from,
        fromAsync=_from_async,
        of=lambda *items: list(items),
        isArray=lambda value=UNDEFINED, *_: isinstance(value, list),
    ),
)
