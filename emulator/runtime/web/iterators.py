"""The iterators that `entries()`, `keys()` and `values()` of the web classes return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.values import UNDEFINED, HostObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
