"""Typed arrays, `DataView` and `ArrayBuffer`: their methods and properties.

A Uint8Array may be plain `bytes`, which the platform's data is; only a `TypedArray` can be changed.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import Any, Final

from emulator.runtime.js_arrays import (
    SHARED,
    copied_within,
    elements,
    filtered,
    in_order,
    map_each,
    replaced_at,
)
from emulator.runtime.js_basics import Method, clip, integer, truthy
from emulator.runtime.js_math import half, single
from emulator.runtime.js_text import display
from emulator.values import (
    SAFE,
    UNDEFINED,
    VIEW_KINDS,
    ArrayBuffer,
    BigInt,
    JsException,
    TypedArray,
    to_number,
)


def set_element(value: TypedArray, index: int, item: Any) -> None:
    """Set an element as an assignment does; there is none beyond the end."""
    view = value.view()
    made = to_element(value.kind, item)
    if 0 <= index < len(view):
        view[index] = made


def to_element(kind: str, item: Any) -> Any:
    """Return the number as an element of a typed array stores it (wrapped around or clamped)."""
    form, size = VIEW_KINDS[kind]
    if form in "fd":
        return float(to_number(item))
    if isinstance(item, BigInt) != kind.startswith("Big"):
        raise JsException("TypeError", _wrong_kind(kind, item))
    number = item.value if isinstance(item, BigInt) else to_number(item)
    whole = int(number) if number == number and abs(number) != math.inf else 0
    if kind == "Uint8ClampedArray":
        return min(max(round(number) if math.isfinite(number) else 255 * (number > 0), 0), 255)
    return _wrapped(whole, 8 * size, signed=form.islower())


def _wrong_kind(kind: str, item: Any) -> str:
    if kind.startswith("Big"):
        return f"Cannot convert {display(item)} to a BigInt"
    return "Cannot convert a BigInt value to a number"


def _wrapped(whole: int, bits: int, *, signed: bool) -> int:
    whole %= 1 << bits
    return whole - (1 << bits) if signed and whole >> (bits - 1) else whole


def view(this: Any) -> TypedArray:
    """Return a typed array that may be plain bytes as a `TypedArray`."""
    return TypedArray("Uint8Array", ArrayBuffer(this)) if isinstance(this, bytes) else this


def of_elements(kind: str, items: list[Any]) -> TypedArray:
    """Return a new typed array with these elements."""
    made = TypedArray(kind, ArrayBuffer(len(items) * VIEW_KINDS[kind][1]))
    held = made.view()
    for index, item in enumerate(items):
        held[index] = to_element(kind, item)
    return made


def _kind(this: Any) -> str:
    return this.kind if isinstance(this, TypedArray) else "Uint8Array"


def _subarray(this: Any, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> TypedArray:
    held = view(this)
    size = VIEW_KINDS[held.kind][1]
    begin = clip(start, len(held), 0)
    count = max(clip(end, len(held), len(held)) - begin, 0)
    return TypedArray(held.kind, held.buffer, held.offset + begin * size, count * size)


def _slice(this: Any, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> TypedArray:
    return TypedArray(_kind(this), ArrayBuffer(bytes(_subarray(this, start, end))))


def _set(this: TypedArray, source: Any = UNDEFINED, offset: Any = UNDEFINED, *_: Any) -> Any:
    items = [] if isinstance(source, (int, float)) else _source(source)
    start = integer(offset)
    if start < 0 or start + len(items) > len(this):
        raise JsException("RangeError", "offset is out of bounds")
    for index, item in enumerate(items):
        set_element(this, int(start) + index, item)
    return UNDEFINED


def _source(source: Any) -> list[Any]:
    if isinstance(source, (bytes, TypedArray)):
        return list(elements(source))
    from emulator.runtime.js_arrays import items_of

    return items_of(source)


def _fill(
    this: TypedArray, item: Any = UNDEFINED, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any
) -> TypedArray:
    made, held = to_element(this.kind, item), this.view()
    for index in range(clip(start, len(held), 0), clip(end, len(held), len(held))):
        held[index] = made
    return this


def _put(this: TypedArray, items: list[Any]) -> TypedArray:
    held = this.view()
    for index, item in enumerate(items):
        held[index] = item.value if isinstance(item, BigInt) else item
    return this


def _copy_within(
    this: TypedArray,
    target: Any = UNDEFINED,
    start: Any = UNDEFINED,
    end: Any = UNDEFINED,
    *_: Any,
) -> TypedArray:
    return _put(this, copied_within(list(elements(this)), target, start, end))


def _with(this: Any, index: Any = UNDEFINED, item: Any = UNDEFINED, *_: Any) -> TypedArray:
    to_element(_kind(this), item)
    try:
        return of_elements(_kind(this), replaced_at(this, index, item))
    except JsException as error:
        raise JsException(error.name, "Invalid typed array index") from None


_TYPED_ARRAY: Final[dict[str, Method]] = {
    **SHARED,
    "copyWithin": _copy_within,
    "fill": _fill,
    "filter": lambda this, f=UNDEFINED, *_: of_elements(_kind(this), filtered(this, f)),
    "map": lambda this, f=UNDEFINED, *_: of_elements(_kind(this), map_each(this, f)),
    "reverse": lambda this, *_: _put(this, list(elements(this))[::-1]),
    "set": _set,
    "slice": _slice,
    "sort": lambda this, compare=UNDEFINED, *_: _put(
        this, in_order(elements(this), compare, numeric=True)
    ),
    "subarray": _subarray,
    "toReversed": lambda this, *_: of_elements(_kind(this), list(elements(this))[::-1]),
    "toSorted": lambda this, compare=UNDEFINED, *_: of_elements(
        _kind(this), in_order(elements(this), compare, numeric=True)
    ),
    "with": _with,
}


# -- bytes as text ---------------------------------------------------------------------------------


def _options(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _to_base64(this: Any, options: Any = UNDEFINED, *_: Any) -> str:
    told = _options(options)
    is_url = told.get("alphabet") == "base64url"
    text = (base64.urlsafe_b64encode if is_url else base64.b64encode)(bytes(this)).decode()
    return text.rstrip("=") if truthy(told.get("omitPadding", UNDEFINED)) else text


def from_base64(text: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> TypedArray:
    """Do `Uint8Array.fromBase64`."""
    if not isinstance(text, str):
        raise JsException("TypeError", "input argument must be a string")
    told = _options(options)
    if told.get("lastChunkHandling", "loose") != "loose":
        from emulator.runtime.not_yet import not_yet

        raise not_yet("Uint8Array.fromBase64 with `lastChunkHandling`", imported=False)
    altchars = b"-_" if told.get("alphabet") == "base64url" else None
    body = "".join(char for char in text if char not in "\t\n\f\r ")
    padded = body if body.endswith("=") else body + "=" * (-len(body) % 4)
    try:
        data = base64.b64decode(padded, altchars, validate=True)
    except (binascii.Error, ValueError):
        text = "The input string contains a character that is not a valid base64 character"
        raise JsException("SyntaxError", text) from None
    if altchars and any(char in "+/" for char in body):
        raise JsException(
            "SyntaxError", "Found a character that cannot be part of a valid base64 string."
        )
    return TypedArray("Uint8Array", ArrayBuffer(data))


def from_hex(text: Any = UNDEFINED, *_: Any) -> TypedArray:
    """Do `Uint8Array.fromHex`."""
    if not isinstance(text, str):
        raise JsException("TypeError", "input argument must be a string")
    if len(text) % 2:
        raise JsException("SyntaxError", "Input string must contain hex characters in even length")
    try:
        return TypedArray("Uint8Array", ArrayBuffer(binascii.unhexlify(text.encode())))
    except (binascii.Error, ValueError):
        raise JsException(
            "SyntaxError", "Input string must contain hex characters in even length"
        ) from None


def _set_from(decode: Method) -> Method:
    def set_from(this: TypedArray, *args: Any) -> dict[str, Any]:
        data = bytes(decode(*args))
        if len(data) > len(this):
            from emulator.runtime.not_yet import not_yet

            raise not_yet("decoding a text that is longer than the Uint8Array", imported=False)
        _put(this, list(data))
        return {"read": len(args[0]), "written": len(data)}

    return set_from


_BYTES: Final[dict[str, Method]] = {
    "toBase64": _to_base64,
    "toHex": lambda this, *_: bytes(this).hex(),
    "setFromBase64": _set_from(from_base64),
    "setFromHex": _set_from(from_hex),
}


# -- DataView --------------------------------------------------------------------------------------

# Name → format of `struct`; those of BigInts are in capitals there too.
_FORMS: Final = {
    "Int8": "b",
    "Uint8": "B",
    "Int16": "h",
    "Uint16": "H",
    "Int32": "i",
    "Uint32": "I",
    "Float16": "e",
    "Float32": "f",
    "Float64": "d",
    "BigInt64": "q",
    "BigUint64": "Q",
}


def place_of(value: Any, what: str) -> int:
    """Return an offset or a length (`ToIndex`); raises `RangeError` (as `JsException`)."""
    whole = integer(value)
    if not 0 <= whole <= SAFE:
        raise JsException("RangeError", what)
    return int(whole)


_OUTSIDE: Final = "Offset is outside the bounds of the DataView"


def _checked(this: TypedArray, offset: int, form: str) -> int:
    if offset + struct.calcsize(f"={form}") > this.nbytes:
        raise JsException("RangeError", _OUTSIDE)
    return this.offset + offset


def _getter(name: str) -> Method:
    form = _FORMS[name]

    def get(this: TypedArray, offset: Any = UNDEFINED, little: Any = UNDEFINED, *_: Any) -> Any:
        place = _checked(this, place_of(offset, _OUTSIDE), form)
        order = "<" if truthy(little) else ">"
        found: Any = struct.unpack_from(f"{order}{form}", this.buffer.data, place)[0]
        return BigInt(found) if name.startswith("Big") else found

    return get


def _setter(name: str) -> Method:
    form = _FORMS[name]

    def put(
        this: TypedArray,
        offset: Any = UNDEFINED,
        value: Any = UNDEFINED,
        little: Any = UNDEFINED,
        *_: Any,
    ) -> Any:
        begin = place_of(offset, _OUTSIDE)
        item = _item(name, value)
        place = _checked(this, begin, form)
        struct.pack_into(f"{'<' if truthy(little) else '>'}{form}", this.buffer.data, place, item)
        return UNDEFINED

    return put


def _item(name: str, value: Any) -> Any:
    if name == "Float16":
        return half(float(to_number(value)))
    item = to_element(f"{name}Array", value)
    # `struct` refuses what is too large for 32 bits, which is infinite there.
    return single(item) if name == "Float32" else item


DATA_VIEW: Final[dict[str, Method]] = {
    **{f"get{name}": _getter(name) for name in _FORMS},
    **{f"set{name}": _setter(name) for name in _FORMS},
}


# -- ArrayBuffer -----------------------------------------------------------------------------------


def _buffer_slice(
    this: ArrayBuffer, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any
) -> ArrayBuffer:
    size = len(this)
    return ArrayBuffer(bytes(this.data[clip(start, size, 0) : clip(end, size, size)]))


METHODS: Final[dict[str, dict[str, Method]]] = {
    "TypedArray": _TYPED_ARRAY,
    "Uint8Array": {**_TYPED_ARRAY, **_BYTES},
    "DataView": DATA_VIEW,
    "ArrayBuffer": {"slice": _buffer_slice},
}

_EVERY_VIEW: Final[dict[str, Method]] = {
    "byteLength": lambda this: len(bytes(this)),
    "byteOffset": lambda this: view(this).offset,
    "buffer": lambda this: view(this).buffer,
}
_EVERY_ARRAY: Final[dict[str, Method]] = {
    **_EVERY_VIEW,
    "length": len,
    "BYTES_PER_ELEMENT": lambda this: VIEW_KINDS[_kind(this)][1],
}
GETTERS: Final[dict[str, dict[str, Method]]] = {
    "TypedArray": _EVERY_ARRAY,
    "Uint8Array": _EVERY_ARRAY,
    "DataView": _EVERY_VIEW,
    "ArrayBuffer": {
        "byteLength": len,
        "maxByteLength": len,
        "resizable": lambda this: False,
        "detached": lambda this: False,
    },
}
