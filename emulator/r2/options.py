"""How the runtime reads an options object: which values it takes for which type, and what it says.

An option that is undefined is left out; null is an option of its own, mostly of a wrong type. An
object of any class counts as one that has none of the options.
"""

from __future__ import annotations

import math
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from emulator.runtime.web import idl
from emulator.runtime.web.text import usv_string
from emulator.values import (
    UNDEFINED,
    BigInt,
    JsException,
    LiteralMap,
    ProxiedList,
    Symbol,
    js_int32,
    to_milliseconds,
)

_PRIMITIVES: Final = (str, bool, int, float, BigInt, Symbol)
# What 64 bits of nanoseconds hold, in milliseconds.
_LAST_DATE: Final = 2**63 // 1_000_000


def is_list(value: Any) -> bool:
    """Whether JavaScript takes it for an array; a Python list that nobody converted is none."""
    return isinstance(value, list) and not isinstance(value, ProxiedList)


class Options:
    """An options object of the type `owner`, as `PutOptions`."""

    __slots__ = ("_owner", "_values")

    def __init__(self, owner: str, values: dict[str, Any]) -> None:
        self._owner = owner
        self._values = values

    @classmethod
    def of(cls, owner: str, value: Any) -> Options | None:
        """Take a value for such an object, null for an empty one; None where it cannot be."""
        if value is None:
            return cls(owner, {})
        return None if isinstance(value, _PRIMITIVES) else cls(owner, idl.options(value))

    @classmethod
    def argument(
        cls, owner: str, value: Any, *, method: str, of: str = "R2Bucket", position: int
    ) -> Options:
        """Take an argument for such an object."""
        found = cls(owner, {}) if value is UNDEFINED else cls.of(owner, value)
        if found is None:
            raise idl.wrong_argument(method, of, position, owner)
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> Any:
        """An option as it is; `UNDEFINED` where it is not given."""
        return self._values.get(name, UNDEFINED)

    def wrong(self, name: str, kind: str) -> JsException:
        """The error of an option of the wrong type."""
        return idl.wrong_field(name, self._owner, kind)

    def inner(self, name: str, owner: str, kinds: str) -> Options:
        """An option that is an object itself."""
        found = Options.of(owner, self._values[name])
        if found is None:
            raise self.wrong(name, kinds)
        return found

    def loose_text(self, name: str) -> str | None:
        """An option that may be anything, as a text."""
        return usv_string(self._values[name]) if name in self._values else None

    def strict_text(self, name: str) -> str | None:
        """An option that has to be a text."""
        if name not in self._values:
            return None
        if not isinstance(self._values[name], str):
            raise self.wrong(name, "string")
        return usv_string(self._values[name])

    def date(self, name: str) -> int | None:
        """A date, or milliseconds since the epoch, in milliseconds."""
        if name not in self._values:
            return None
        value = self._values[name]
        if isinstance(value, datetime):
            return _within_range(to_milliseconds(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return 0 if math.isnan(value) else _within_range(value)
        raise self.wrong(name, "date")

    def whole(self, name: str, called: str, *, below: str = "") -> int | None:
        """A whole number from 0; what an error calls it, and what where it is below 0."""
        if name not in self._values:
            return None
        value = idl.number(self._values[name])
        shown = "nan" if math.isnan(value) else idl.string(value)
        if not value >= 0:
            text = f"{below or called} ({shown}) must be greater than or equal to 0."
            raise JsException("RangeError", text)
        if math.isfinite(value) and value != int(value):
            text = f"{called} ({shown}) must be an integer, not floating point."
            raise JsException("RangeError", text)
        return int(value) if math.isfinite(value) else 2**63

    def int32(self, name: str) -> int | None:
        """A number of 32 bits."""
        return js_int32(self._values[name]) if name in self._values else None

    def texts(self, name: str) -> list[str] | None:
        """A list of texts."""
        if name not in self._values:
            return None
        values = self._values[name]
        if not is_list(values):
            raise self.wrong(name, "Array")
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise wrong_element(index, "string")
        return list(values)

    def properties(self, name: str) -> dict[str, str]:
        """An object whose properties are texts, or are made to be."""
        value = self._values.get(name, UNDEFINED)
        if value is UNDEFINED:
            return {}
        if value is None or isinstance(value, (list, *_PRIMITIVES)):
            raise self.wrong(name, "object")
        if not isinstance(value, (dict, LiteralMap)):
            return {}
        return {usv_string(key): usv_string(item) for key, item in value.items()}


def wrong_element(index: int, kind: str) -> JsException:
    """The error of an element of a list that has the wrong type."""
    told = f"Incorrect type for array element {index}: the provided value is not of type '{kind}'."
    return JsException("TypeError", told)


def _within_range(milliseconds: float) -> int:
    if milliseconds > _LAST_DATE:
        raise JsException("TypeError", "This API doesn't support dates after 2189.")
    if milliseconds < -_LAST_DATE:
        raise JsException("TypeError", "This API doesn't support dates before 1687.")
    return int(milliseconds)


def date_of_header(value: str) -> int:
    """Read a date as headers have them, in milliseconds; what is none is the epoch."""
    try:
        return int(to_milliseconds(parsedate_to_datetime(value)))
    except ValueError:
        pass
    try:
        return int(to_milliseconds(datetime.fromisoformat(value)))
    except ValueError:
        return 0
