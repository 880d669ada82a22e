"""`JSON.stringify` and `JSON.parse` over canonical values.

Bodies are nearly always plain data, which msgspec writes faster than anything else. It knows more
types than JSON.stringify does and prints some floats differently, so a walk first makes sure that
only exact, harmless types are there; everything else goes to `_Writer`, which follows ECMA-262.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

import msgspec

from emulator.values.buffers import TypedArray
from emulator.values.containers import LiteralMap
from emulator.values.dates import iso_format, settled
from emulator.values.json_errors import parse_error
from emulator.values.kinds import class_of, property_names
from emulator.values.numbers import format_number
from emulator.values.types import (
    SAFE,
    UNDEFINED,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsException,
    Opaque,
    ProxiedList,
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
# Sixteen digits in a row may be an integer beyond what a number holds exactly.
_LONG_DIGITS = re.compile(rb"[0-9]{16}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_quote = json.encoder.encode_basestring
_TOO_DEEP: Final = "Maximum call stack size exceeded"


def to_json(value: Any) -> str:
    """Return `JSON.stringify(value)`.

    Raises `JsException`: `TypeError` for a BigInt, for a cycle, and for a function or symbol at the
    top, which JSON.stringify turns into undefined.
    """
    return to_json_bytes(value).decode()


def to_json_bytes(value: Any) -> bytes:
    """Return `to_json(value)` in UTF-8."""
    data = plain_json(value)
    return written_json(value) if data is None else data


def plain_json(value: Any) -> bytes | None:
    """Return `to_json_bytes(value)` for plain data, the quick way; None for other values."""
    try:
        return _encode(value) if _is_plain(value) else None
    except (RecursionError, UnicodeEncodeError):
        return None  # a cycle or a lone surrogate: the writer knows what to do


def written_json(value: Any) -> bytes:
    """Return `to_json_bytes(value)` for any value, by the letter of ECMA-262."""
    text = stringify(value)
    if text is UNDEFINED:
        kind = "undefined" if value is UNDEFINED else value.typeof
        raise JsException("TypeError", f"A value of type {kind} cannot be serialized to JSON").at(
            "$"
        )
    return str(text).encode()


def stringify(value: Any, indent: str = "") -> Any:
    """Return what JSON.stringify returns: text, or `UNDEFINED` where it has none."""
    try:
        return _Writer(indent).write(value, "", "\n")
    except RecursionError:
        raise JsException("RangeError", _TOO_DEEP) from None


def _is_plain(value: Any) -> bool:
    """Whether msgspec writes the value as JSON.stringify does."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if key < ":":  # may be an array index, and those come first in JavaScript
                return False
            kind = type(item)
            if kind is str or kind is bool or item is None:
                continue
            if kind is int:
                if -SAFE < item < SAFE:
                    continue
                return False
            if not _is_plain(item):
                return False
        return True
    if kind is list:
        for item in value:
            kind = type(item)
            if kind is str or kind is bool or item is None:
                continue
            if kind is int:
                if -SAFE < item < SAFE:
                    continue
                return False
            if not _is_plain(item):
                return False
        return True
    if kind is float:
        return 1e-3 < abs(value) < 1e15 and not value.is_integer()
    return kind is str or kind is bool or value is None or (kind is int and -SAFE < value < SAFE)


class _Writer:
    """One run of JSON.stringify: remembers the way from the root, for cycles and error paths."""

    def __init__(self, indent: str) -> None:
        self._indent = indent
        self._colon = ": " if indent else ":"
        # The containers from the root down, each with the key that led there.
        self._way: list[tuple[Any, str]] = []

    def write(self, value: Any, key: str, newline: str) -> Any:
        value = self._replace(value, key)
        if value is None:
            return "null"
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, str):
            return _quote_text(value)
        if isinstance(value, (int, float)):
            text = format_number(value)
            return "null" if text[-1] in "Ny" else text
        if value is UNDEFINED:
            return UNDEFINED
        if isinstance(value, BigInt):
            raise JsException("TypeError", "Do not know how to serialize a BigInt").at(
                self._path(key)
            )
        return self._write_container(value, key, newline)

    def _replace(self, value: Any, key: str) -> Any:
        if isinstance(value, datetime):
            return None if isinstance(settled(value), Boxed) else iso_format(value)
        if isinstance(value, Boxed):
            return value.value
        if isinstance(value, HostObject) and "toJSON" in value.js_members:
            return value.js_lookup("toJSON")()
        if isinstance(value, dict) and isinstance(value.get("toJSON"), Function):
            return value["toJSON"](key)
        return value.to_json_value() if isinstance(value, Opaque) else value

    def _write_container(self, value: Any, key: str, newline: str) -> str:
        for depth, (held, _) in enumerate(self._way):
            if held is value:
                raise JsException("TypeError", self._cycle(depth, key)).at(self._path(key))
        self._way.append((value, key))
        inner = newline + self._indent if self._indent else ""
        if isinstance(value, list) and not (isinstance(value, ProxiedList) and value.hidden):
            parts = self._elements(value, inner)
            opening, closing = "[", "]"
        else:
            parts = self._members(value, inner)
            opening, closing = "{", "}"
        self._way.pop()
        if not parts:
            return opening + closing
        if not inner:
            return opening + ",".join(parts) + closing
        return opening + inner + ("," + inner).join(parts) + newline + closing

    def _elements(self, values: list[Any], inner: str) -> list[str]:
        parts = []
        for index, item in enumerate(values):
            text = self.write(item, f"[{index}]", inner)
            parts.append("null" if text is UNDEFINED else text)
        return parts

    def _members(self, value: Any, inner: str) -> list[str]:
        parts = []
        record = _own_properties(value)
        for name in property_names(record):
            text = self.write(record[name], name, inner)
            if text is not UNDEFINED:
                parts.append(_quote_text(name) + self._colon + text)
        return parts

    def _path(self, key: str) -> str:
        keys = [*(held for _, held in self._way), key][1:]
        return "$" + "".join(part if part[:1] == "[" else f".{part}" for part in keys)

    def _cycle(self, depth: int, key: str) -> str:
        ring = self._way[depth:]
        lines = [f"    --> starting at object with constructor '{class_of(ring[0][0])}'"]
        steps = [
            f"    |     {_step(k)} -> object with constructor '{class_of(v)}'" for v, k in ring[1:]
        ]
        if len(steps) > 3:
            steps = [*steps[:2], "    |     ...", steps[-1]]
        closing = f"    --- {_step(key)} closes the circle"
        return "\n".join(["Converting circular structure to JSON", *lines, *steps, closing])


def _step(key: str) -> str:
    return f"index {key[1:-1]}" if key[:1] == "[" else f"property '{key}'"


def _own_properties(value: Any) -> dict[str, Any]:
    """The enumerable own properties that JSON.stringify would see."""
    if isinstance(value, dict):
        return value
    if isinstance(value, LiteralMap):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, bytes):
        return {str(index): item for index, item in enumerate(value)}
    if isinstance(value, TypedArray) and value.kind != "DataView":
        items: list[Any] = value.view().tolist()
        if value.kind.startswith("Big"):
            items = [BigInt(item) for item in items]
        return {str(index): item for index, item in enumerate(items)}
    if isinstance(value, HostObject):
        return {name: value.js_lookup(name) for name in value.js_keys()}
    return {}  # Map, Set, RegExp, Error, ArrayBuffer: no enumerable properties


def _quote_text(text: str) -> str:
    quoted: str = _quote(text)
    if text.isascii():
        return quoted
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def from_json(text: str | bytes) -> Any:
    """Return `JSON.parse(text)`; raises `JsException` with V8's `SyntaxError` text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if not _LONG_DIGITS.search(data):
        try:
            return _decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass  # not JSON, or beyond msgspec: the slow way tells
    return _parse(data.decode("utf-8", "surrogatepass"))


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_parse_int, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise parse_error(text, error.msg, error.pos) from None
    except _Constant as found:
        raise parse_error(text, "Expecting value", _constant_at(text, str(found))) from None
    except RecursionError:
        raise JsException("RangeError", _TOO_DEEP) from None


def _parse_int(digits: str) -> int | float:
    if len(digits) < 16:
        return int(digits)
    number = float(digits)
    return int(number) if -SAFE < number < SAFE else number


class _Constant(Exception):
    """NaN or Infinity, which Python's parser takes and JSON.parse does not."""


def _no_constant(name: str) -> Any:
    raise _Constant(name)


def _constant_at(text: str, name: str) -> int:
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: " " * len(match[0]), text)
    return max(outside.find(name), 0)
