"""The iterators that `entries()`, `keys()` and `values()` of the web classes return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.values import UNDEFINED, HostObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class JsIterator(HostObject):
    """A JavaScript iterator; its class name is that of the object that made it."""

    js_members = frozenset({"next"})

    def __init__(self, js_class: str, items: Iterable[Any]) -> None:
        self.js_class = js_class  # type: ignore[misc]
        self._items = iter(items)

    def next(self) -> dict[str, object]:
        """Return `{value, done}`."""
        for item in self._items:
            return {"value": item, "done": False}
        return {"value": UNDEFINED, "done": True}

    def __iter__(self) -> Iterator[Any]:
        return self._items


class IterablePairs(HostObject):
    """A web class that is a list of pairs of name and value, in order (Web IDL's `iterable`)."""

    pairs: list[tuple[str, Any]]

    def entries(self) -> JsIterator:
        """Return an iterator of `[name, value]`."""
        return JsIterator("EntryIterator", map(list, self.pairs))

    def keys(self) -> JsIterator:
        """Return an iterator of the names."""
        return JsIterator("KeyIterator", (key for key, _ in self.pairs))

    def values(self) -> JsIterator:
        """Return an iterator of the values."""
        return JsIterator("ValueIterator", (value for _, value in self.pairs))

    def forEach(self, callback: Callable[..., object]) -> object:
        """Call `callback(value, name, self)` for each pair."""
        for key, value in self.pairs:
            callback(value, key, self)
        return UNDEFINED

    def __iter__(self) -> Iterator[list[Any]]:
        return iter([list(pair) for pair in self.pairs])
