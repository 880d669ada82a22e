"""How values are written in a trace: as JSON, the same on every Python and in every process.

| value | written as |
|---|---|
| None, bool, int, str, list, tuple | JSON's own |
| float | JSON's own, or `{"$number": "NaN"}`, `"Infinity"`, `"-Infinity"` |
| an int of more than 1,024 bits | `{"$number": "0x1f..."}` |
| BigInt | `{"$bigint": "12"}` |
| dict | an object in insertion order; a `$` at the start of a key is doubled |
| Map | `{"$map": [[key, value], ...]}` |
| Set | `{"$set": [...]}`; a Python set is sorted by its members' JSON |
| bytes, buffers and views | `{"$bytes": {"length": 300, "base64": "..."}}`, of the first 48 bytes |
| datetime | `{"$date": "2026-01-01T00:00:00.000000Z"}`, without `Z` if it is naive |
| undefined | `{"$undefined": true}` |
| an exception | `{"$error": {"type": "ValueError", "message": "..."}}` |
| a `Payload` | the value it stands for |
| a value inside itself | `{"$circular": true}` |
| a value more than 64 levels deep | `{"$deep": true}` |
| anything else | `{"$object": "JavaScript class, or Python type"}` |

Nothing is written with `repr`; where a text has the address of a Python object, as in
`<Job object at 0x7f3a>`, it is written as `0x...`. Secrets are masked, in keys too.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from emulator.clock import moment
from emulator.secrets import Masker, credential
from emulator.trace.payloads import Payload
from emulator.values import (
    ArrayBuffer,
    BigInt,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    Opaque,
    RegExp,
    TypedArray,
    Undefined,
)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_BYTES_SHOWN: Final = 48
_DEEPEST: Final = 64
_WIDEST_INT: Final = 1024
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


@dataclass(frozen=True, slots=True)
class Failure:
    """What a trace keeps of an exception."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Named:
    """What a trace keeps of an object that has no written form."""

    type: str


_VALUES: Final = (
    *(type(None), bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset),
    *(datetime, ArrayBuffer, BigInt, JsMap, JsSet, RegExp, TypedArray, Undefined, Failure, Named),
    Payload,
)
# The types a trace keeps as they are; `kept` looks at everything else.
KEPT: Final = frozenset(_VALUES)


def kept(value: object) -> object:
    """Return what a trace keeps of a value whose type is not in `KEPT`."""
    if isinstance(value, BaseException):
        return _failure(value)
    if isinstance(value, memoryview):
        return bytes(value)
    return value if isinstance(value, _VALUES) else Named(_type_name(value))


def written(value: object, masker: Masker) -> Json:
    """Return the JSON of a value, with secrets masked."""
    return _Writer(masker).write(value)


def write_time(at: int) -> str:
    """Return an instant (microseconds since the Unix epoch) as ISO 8601 with microseconds."""
    return write_datetime(moment(at))


def write_datetime(time: datetime) -> str:
    """Return a datetime as ISO 8601 with microseconds; in UTC, ending in `Z`, if it is aware."""
    if time.tzinfo is None:
        return time.isoformat(timespec="microseconds")
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class _Writer:
    """Writes one value; `_parents` are the containers it is inside of."""

    __slots__ = ("_masker", "_parents")

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._parents: list[object] = []

    def write(self, value: object) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self._integer(int.__index__(value))
        if isinstance(value, float):
            return _float(float.__float__(value))
        if isinstance(value, Payload):
            return self.write(value.value)
        if isinstance(value, Mapping | JsMap | JsSet | list | tuple | set | frozenset):
            return self._container(value)
        return self._leaf(value)

    def _text(self, text: str) -> str:
        return self._masker(_ADDRESS.sub(" at 0x...", text))

    def _integer(self, number: int) -> Json:
        if number.bit_length() > _WIDEST_INT:
            return {"$number": hex(number)}
        # A secret may be all digits, and reach the trace as a number.
        text = str(number)
        masked = self._masker(text)
        return number if masked == text else masked

    def _container(self, value: object) -> Json:
        # By identity and without hashing: containers may be equal or unhashable.
        if any(parent is value for parent in self._parents):
            return {"$circular": True}
        if len(self._parents) >= _DEEPEST:
            return {"$deep": True}
        self._parents.append(value)
        try:
            return self._inside(value)
        finally:
            self._parents.pop()

    def _inside(self, value: Any) -> Json:
        if isinstance(value, Mapping):
            return {self._key(key): self._entry(key, item) for key, item in value.items()}
        if isinstance(value, JsMap):
            return {"$map": [[self.write(key), self._entry(key, v)] for key, v in value.items()]}
        if isinstance(value, list | tuple):
            if len(value) == 2 and (mask := credential(value[0])):
                return [self.write(value[0]), mask]
            return [self.write(item) for item in value]
        members = [self.write(item) for item in value]
        return {"$set": members if isinstance(value, JsSet) else sorted(members, key=json.dumps)}

    def _key(self, key: object) -> str:
        text = self.write(key)
        if not isinstance(text, str):
            return json.dumps(text)
        return f"${text}" if text.startswith("$") else text

    def _entry(self, key: object, value: object) -> Json:
        return credential(key) or self.write(value)

    def _leaf(self, value: object) -> Json:
        if isinstance(value, bytes | bytearray | memoryview | ArrayBuffer | TypedArray):
            return self._octets(bytes(value))
        if isinstance(value, datetime):
            return {"$date": write_datetime(value)}
        if isinstance(value, Undefined):
            return {"$undefined": True}
        if isinstance(value, BigInt):
            return {"$bigint": self._masker(f"{value.value:d}")}
        if isinstance(value, RegExp):
            return {"$regexp": self._text(str(value))}
        if isinstance(value, BaseException):
            value = _failure(value)
        if isinstance(value, Failure):
            return {"$error": {"type": value.type, "message": self._text(value.message)}}
        return {"$object": value.type if isinstance(value, Named) else _type_name(value)}

    def _octets(self, data: bytes) -> Json:
        shown = self._masker.octets(data)[:_BYTES_SHOWN]
        return {"$bytes": {"length": len(data), "base64": base64.b64encode(shown).decode()}}


def _float(number: float) -> Json:
    if math.isfinite(number):
        return number
    return {"$number": "NaN" if math.isnan(number) else f"{'-' * (number < 0)}Infinity"}


def _failure(error: BaseException) -> Failure:
    """Return an exception's type and message; its own code must not break a trace."""
    if isinstance(error, JsException):
        return Failure(error.name, error.message)
    try:
        return Failure(type(error).__name__, str(error))
    except Exception:
        return Failure(type(error).__name__, "(its text cannot be read)")


def _type_name(value: object) -> str:
    if isinstance(value, HostObject | Opaque):
        return value.js_class
    return type(value).__name__
