"""V8's serialization format to values; see `clone.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.values.buffers import ArrayBuffer, TypedArray
from emulator.values.containers import JsMap, JsSet
from emulator.values.dates import from_milliseconds
from emulator.values.numbers import plain_number
from emulator.values.types import (
    UNDEFINED,
    BigInt,
    Boxed,
    JsException,
    RegExp,
)

if TYPE_CHECKING:
    from collections.abc import Callable

from emulator.values.clone_writer import DOUBLE, ERROR_TAGS, REGEXP_FLAGS, VIEW_TAGS

_VIEWS_BY_TAG: Final = {tag[0]: name for name, tag in VIEW_TAGS.items()}


_ERRORS_BY_TAG: Final = {tag[0]: name for name, tag in ERROR_TAGS.items()}


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 2
        self._objects: list[Any] = []

    def read(self) -> Any:
        tag = self._tag()
        method = _READERS.get(tag)
        if method is None:
            raise ValueError(
                f"unknown tag {bytes([tag])!r} at {self._at - 1} in a structured clone"
            )
        value = method(self)
        if isinstance(value, ArrayBuffer) and self._data[self._at : self._at + 1] == b"V":
            self._at += 1
            return self._view(value)
        return value

    def _tag(self) -> int:
        tag = self._data[self._at]
        self._at += 1
        return self._tag() if tag == 0 else tag

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += size
        return part

    def _until(self, end: bytes) -> bool:
        """Step over the tag `end` if it is next."""
        if self._data[self._at] != end[0]:
            return True
        self._at += 1
        return False

    def _undefined(self) -> Any:
        return UNDEFINED

    def _null(self) -> Any:
        return None

    def _true(self) -> Any:
        return True

    def _false(self) -> Any:
        return False

    def _smi(self) -> Any:
        number = self._varint()
        return -(number >> 1) - 1 if number & 1 else number >> 1

    def _double(self) -> Any:
        return plain_number(DOUBLE.unpack(self._take(8))[0])

    def _latin(self) -> Any:
        return self._take(self._varint()).decode("latin-1")

    def _utf16(self) -> Any:
        return self._take(self._varint()).decode("utf-16-le", "surrogatepass")

    def _bigint(self) -> Any:
        bits = self._varint()
        magnitude = int.from_bytes(self._take(bits >> 1), "little")
        return BigInt(-magnitude if bits & 1 else magnitude)

    def _reference(self) -> Any:
        return self._objects[self._varint()]

    def _dict(self) -> Any:
        record: dict[str, Any] = {}
        self._objects.append(record)
        while self._until(b"{"):
            key = self.read()
            record[str(key)] = self.read()
        self._varint()
        return record

    def _list(self) -> Any:
        values: list[Any] = []
        self._objects.append(values)
        values.extend(self.read() for _ in range(self._varint()))
        self._at += 1
        self._varint()
        self._varint()
        return values

    def _map(self) -> Any:
        result = JsMap()
        self._objects.append(result)
        while self._until(b":"):
            key = self.read()
            result.set(key, self.read())
        self._varint()
        return result

    def _set(self) -> Any:
        place = len(self._objects)
        ordered = JsSet()
        self._objects.append(ordered)
        while self._until(b","):
            ordered.add(self.read())
        self._varint()
        try:
            plain = set(ordered)
        except TypeError:
            return ordered
        self._objects[place] = plain
        return plain

    def _date(self) -> Any:
        time = DOUBLE.unpack(self._take(8))[0]
        moment = from_milliseconds(time) if time == time else Boxed("Date", time)
        self._objects.append(moment)
        return moment

    def _boxed(self, kind: str, value: Any) -> Any:
        box = Boxed(kind, value)
        self._objects.append(box)
        return box

    def _regexp(self) -> Any:
        source = self.read()
        bits = self._varint()
        flags = "".join(sorted(f for i, f in enumerate(REGEXP_FLAGS) if bits >> i & 1))
        self._objects.append(RegExp(source, flags))
        return self._objects[-1]

    def _error(self) -> Any:
        error = JsException("Error", "")
        self._objects.append(error)
        name, message = "Error", ""
        while self._until(b"."):
            tag = self._tag()
            if tag == ord("m"):
                message = self.read()
            elif tag == ord("c"):
                error.cause = self.read()
            elif tag == ord("s"):
                error.stack = self.read()
            else:
                name = _ERRORS_BY_TAG[tag]
        JsException.__init__(error, name, message)
        return error

    def _buffer(self) -> Any:
        buffer = ArrayBuffer(self._take(self._varint()))
        self._objects.append(buffer)
        return buffer

    def _view(self, buffer: ArrayBuffer) -> Any:
        kind = _VIEWS_BY_TAG[self._data[self._at]]
        self._at += 1
        offset, size = self._varint(), self._varint()
        self._varint()
        value: Any = TypedArray(kind, buffer, offset, size)
        if kind == "Uint8Array":
            value = bytes(value)
        self._objects.append(value)
        return value


_READERS: Final[dict[int, Callable[[Reader], Any]]] = {
    ord("_"): Reader._undefined,
    ord("0"): Reader._null,
    ord("T"): Reader._true,
    ord("F"): Reader._false,
    ord("I"): Reader._smi,
    ord("N"): Reader._double,
    ord('"'): Reader._latin,
    ord("c"): Reader._utf16,
    ord("Z"): Reader._bigint,
    ord("^"): Reader._reference,
    ord("o"): Reader._dict,
    ord("A"): Reader._list,
    ord(";"): Reader._map,
    ord("'"): Reader._set,
    ord("D"): Reader._date,
    ord("R"): Reader._regexp,
    ord("r"): Reader._error,
    ord("B"): Reader._buffer,
    ord("y"): lambda self: self._boxed("Boolean", value=True),
    ord("x"): lambda self: self._boxed("Boolean", value=False),
    ord("n"): lambda self: self._boxed("Number", self._double()),
    ord("s"): lambda self: self._boxed("String", self.read()),
}
