"""A mapping whose errors say what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

# A wrong name is shown at the line that gave it.
__tracebackhide__ = True

_T = TypeVar("_T")


class Registry(Mapping[str, _T]):
    """Named things of one kind, read-only."""

    def __init__(self, kind: str, items: Mapping[str, _T]) -> None:
        self._kind = kind
        self._items = items

    def __getitem__(self, name: str) -> _T:
        try:
            return self._items[name]
        except KeyError:
            known = ", ".join(self._items) or "none"
            raise KeyError(f"there is no {self._kind} {name!r}; there are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(dict(self._items))
