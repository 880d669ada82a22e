"""Map and Set, in order of insertion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

from emulator.values.types import UNDEFINED, BigInt


def same_value_key(value: Any) -> Any:
    """Return a hashable that is equal for values that a Map or Set takes for the same."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return (bool, value)
    if kind is int or kind is float:
        return (float, "nan") if value != value else (float, value)
    if kind is BigInt or value is None or value is UNDEFINED:
        return (kind, value)
    return (object, id(value))


class JsMap:
    """A Map: any keys, in order of insertion; objects are keys by identity."""

    __slots__ = ("_entries",)
    js_class: ClassVar[str] = "Map"

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries: dict[Any, tuple[Any, Any]] = {}
        for key, value in entries:
            self.set(key, value)

    def get(self, key: Any, default: Any = UNDEFINED) -> Any:
        entry = self._entries.get(same_value_key(key))
        return default if entry is None else entry[1]

    def set(self, key: Any, value: Any) -> None:
        token = same_value_key(key)
        held = self._entries.get(token)
        self._entries[token] = (key if held is None else held[0], value)

    def has(self, key: Any) -> bool:
        return same_value_key(key) in self._entries

    def delete(self, key: Any) -> bool:
        return self._entries.pop(same_value_key(key), None) is not None

    def clear(self) -> None:
        self._entries.clear()

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self._entries.values()))

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def __iter__(self) -> Iterator[Any]:
        return self.items()

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsMap):
            return NotImplemented
        return list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.items())!r})"


class LiteralMap(JsMap):
    """What `to_js` makes of a dict up to Pyodide 0.28: a Map whose keys are properties too.

    JSON takes it for an object; structured clone refuses it.
    """

    __slots__ = ()
    js_class: ClassVar[str] = "LiteralMap"


class JsSet:
    """A Set in order of insertion, of any values; a Python `set` serves where order is free."""

    __slots__ = ("_map",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._map = JsMap((value, value) for value in values)

    def add(self, value: Any) -> None:
        self._map.set(value, value)

    def has(self, value: Any) -> bool:
        return self._map.has(value)

    def delete(self, value: Any) -> bool:
        return self._map.delete(value)

    def clear(self) -> None:
        self._map.clear()

    def __iter__(self) -> Iterator[Any]:
        return self._map.keys()

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JsSet):
            return list(self) == list(other)
        if isinstance(other, (set, frozenset)):
            return len(self) == len(other) and all(self.has(value) for value in other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"JsSet({list(self)!r})"
