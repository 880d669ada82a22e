"""Values to V8's serialization format; see `clone.py`."""

from __future__ import annotations

import struct
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from emulator.values.buffers import ArrayBuffer, TypedArray
from emulator.values.containers import JsMap, JsSet, LiteralMap
from emulator.values.dates import to_milliseconds
from emulator.values.kinds import is_index, property_names
from emulator.values.types import (
    UNDEFINED,
    BigInt,
    Boxed,
    HostObject,
    JsException,
    Opaque,
    ProxiedDict,
    ProxiedList,
    RegExp,
)

if TYPE_CHECKING:
    from collections.abc import Callable


HEADER: Final = b"\xff\x0f"


# Numbers beyond 31 bits are doubles: V8's small integers in a build with compressed pointers.
SMI: Final = 2**30


DOUBLE: Final = struct.Struct("<d")


REGEXP_FLAGS: Final = "gimyusldv"


VIEW_TAGS: Final = {
    "Int8Array": b"b",
    "Uint8Array": b"B",
    "Uint8ClampedArray": b"C",
    "Int16Array": b"w",
    "Uint16Array": b"W",
    "Int32Array": b"d",
    "Uint32Array": b"D",
    "Float32Array": b"f",
    "Float64Array": b"F",
    "BigInt64Array": b"q",
    "BigUint64Array": b"Q",
    "DataView": b"?",
}


ERROR_TAGS: Final = {
    "EvalError": b"E",
    "RangeError": b"R",
    "ReferenceError": b"F",
    "SyntaxError": b"S",
    "TypeError": b"T",
    "URIError": b"U",
}


def clone_error(text: str, path: str) -> JsException:
    """Return the `DataCloneError` for the value that V8 prints as `text`."""
    return JsException("DataCloneError", f"{text} could not be cloned.").at(path)


def _encoded(value: Any) -> bytes:
    writer = Writer()
    writer.write(value, "")
    return bytes(writer.out)


class Writer:
    def __init__(self) -> None:
        self.out = bytearray(HEADER)
        self._ids: dict[int, int] = {}
        self._alive: list[Any] = []  # keeps ids of temporary objects from being used again

    def write(self, value: Any, path: str) -> None:
        simple = _SIMPLE.get(type(value))
        if simple is not None:
            simple(self, value)
        elif isinstance(value, str):
            self._text(value)
        else:
            self._write_object(value, path)

    def _write_object(self, value: Any, path: str) -> None:
        if isinstance(value, BigInt):
            self._bigint(value)
            return
        known = self._ids.get(id(value))
        if known is not None:
            self.out += b"^"
            self._varint(known)
            return
        if isinstance(value, (bytes, TypedArray)):
            self._view(value)
            return
        self._remember(value)
        for kind, method in _OBJECTS:
            if isinstance(value, kind):
                method(self, value, path)
                return
        raise TypeError(f"not a canonical value at {path}: {type(value)}")

    def _remember(self, value: Any) -> None:
        self._ids[id(value)] = len(self._ids)
        self._alive.append(value)

    def _varint(self, number: int) -> None:
        while number > 0x7F:
            self.out.append(number & 0x7F | 0x80)
            number >>= 7
        self.out.append(number)

    def _undefined(self, value: Any) -> None:
        self.out += b"_"

    def _null(self, value: Any) -> None:
        self.out += b"0"

    def _boolean(self, value: bool) -> None:
        self.out += b"T" if value else b"F"

    def _number(self, value: float) -> None:
        if -SMI <= value < SMI and value == int(value):
            self.out += b"I"
            self._varint(int(value) * 2 if value >= 0 else -int(value) * 2 - 1)
        else:
            self.out += b"N"
            self.out += DOUBLE.pack(value)

    def _text(self, value: str) -> None:
        try:
            data = value.encode("latin-1")
            self.out += b'"'
        except UnicodeEncodeError:
            data = value.encode("utf-16-le", "surrogatepass")
            width = max((len(data).bit_length() + 6) // 7, 1)
            if (len(self.out) + 1 + width) & 1:  # two-byte text starts at an even offset
                self.out += b"\0"
            self.out += b"c"
        self._varint(len(data))
        self.out += data

    def _bigint(self, value: BigInt) -> None:
        magnitude = abs(value.value)
        size = (magnitude.bit_length() + 63) // 64 * 8
        self.out += b"Z"
        self._varint(size << 1 | (value.value < 0))
        self.out += magnitude.to_bytes(size, "little")

    def _dict(self, value: dict[str, Any], path: str) -> None:
        self.out += b"o"
        for key in property_names(value):
            if is_index(key):
                self._number(int(key))
            else:
                self._text(key)
            self.write(value[key], f"{path}.{key}")
        self.out += b"{"
        self._varint(len(value))

    def _list(self, value: list[Any], path: str) -> None:
        self.out += b"A"
        self._varint(len(value))
        for index, item in enumerate(value):
            self.write(item, f"{path}[{index}]")
        self.out += b"$\0"
        self._varint(len(value))

    def _map(self, value: JsMap, path: str) -> None:
        self.out += b";"
        for key, item in value.items():
            self.write(key, f"{path}.keys()")
            self.write(item, f"{path}.get({key!r})")
        self.out += b":"
        self._varint(2 * len(value))

    def _set(self, value: Any, path: str) -> None:
        self.out += b"'"
        items = value if isinstance(value, JsSet) else sorted(value, key=_encoded)
        for item in items:
            self.write(item, f"{path}.values()")
        self.out += b","
        self._varint(len(value))

    def _date(self, value: datetime, path: str) -> None:
        self.out += b"D" + DOUBLE.pack(to_milliseconds(value))

    def _boxed(self, value: Boxed, path: str) -> None:
        held = value.value
        if value.kind == "String":
            self.out += b"s"
            self._text(held)
        elif value.kind == "Boolean":
            self.out += b"y" if held else b"x"
        else:
            self.out += (b"D" if value.kind == "Date" else b"n") + DOUBLE.pack(held)

    def _regexp(self, value: RegExp, path: str) -> None:
        self.out += b"R"
        self._text(value.source)
        self._varint(sum(1 << REGEXP_FLAGS.index(flag) for flag in value.flags))

    def _error(self, value: JsException, path: str) -> None:
        self.out += b"r" + ERROR_TAGS.get(value.name, b"") + b"m"
        self._text(value.message)
        if value.cause is not UNDEFINED:
            self.out += b"c"
            self.write(value.cause, f"{path}.cause")
        self.out += b"."

    def _buffer(self, value: Any, path: str = "") -> None:
        data = bytes(value)
        self.out += b"B"
        self._varint(len(data))
        self.out += data

    def _view(self, value: bytes | TypedArray) -> None:
        kind = "Uint8Array" if isinstance(value, bytes) else value.kind
        part = value if isinstance(value, bytes) else value.buffer
        offset = 0 if isinstance(value, bytes) else value.offset
        size = len(value) if isinstance(value, bytes) else value.nbytes
        if isinstance(part, bytes) or id(part) not in self._ids:
            self._remember(part if part is not value else object())
            self._buffer(part)
        else:
            self.out += b"^"
            self._varint(self._ids[id(part)])
        self._remember(value)
        self.out += b"V" + VIEW_TAGS[kind]
        for number in (offset, size, 0):
            self._varint(number)

    def _refuse_map(self, value: LiteralMap, path: str) -> None:
        raise clone_error("[object Map]", path)

    def _refuse_proxy(self, value: Any, path: str) -> None:
        raise clone_error("[object Object]", path)

    def _refuse_opaque(self, value: Opaque, path: str) -> None:
        raise clone_error(value.clone_text(), path)

    def _refuse_host(self, value: HostObject, path: str) -> None:
        raise JsException(
            "DataCloneError",
            f'Could not serialize object of type "{value.js_class}". '
            "This type does not support serialization.",
        ).at(path)


_SIMPLE: Final[dict[type, Callable[[Writer, Any], None]]] = {
    type(UNDEFINED): Writer._undefined,
    type(None): Writer._null,
    bool: Writer._boolean,
    int: Writer._number,
    float: Writer._number,
    str: Writer._text,
}


_OBJECTS: Final[tuple[tuple[Any, Callable[[Writer, Any, str], None]], ...]] = (
    ((ProxiedDict, ProxiedList), Writer._refuse_proxy),
    (dict, Writer._dict),
    (list, Writer._list),
    (datetime, Writer._date),
    ((set, frozenset, JsSet), Writer._set),
    (LiteralMap, Writer._refuse_map),
    (JsMap, Writer._map),
    (Boxed, Writer._boxed),
    (RegExp, Writer._regexp),
    (JsException, Writer._error),
    (ArrayBuffer, Writer._buffer),
    (Opaque, Writer._refuse_opaque),
    (HostObject, Writer._refuse_host),
)
