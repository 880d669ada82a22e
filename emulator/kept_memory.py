"""What the memory of a Worker that is given as an object keeps when its isolate is lost.

A Worker that is given by its path is imported anew after a crash, and its globals begin as they are
written. A class or a module object is not imported again: a set in which its consumer notes what it
has done survives the power cut, as nothing does in production. Here its module is looked at when
its code is first loaded, and again whenever an isolate of it was lost. Only the identity of what
is there counts, so that no code of the user's runs.
"""

from __future__ import annotations

import sys
from collections import deque
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, TypeAlias

_Content: TypeAlias = "tuple[Any, ...] | None"

_CODE: Final = (ModuleType, FunctionType, BuiltinFunctionType, type)


class Memory:
    """The globals of a Worker's module, and the attributes of its class, as they are now."""

    def __init__(self, main: ModuleType | type[Any]) -> None:
        self._main = main
        # What is looked at is kept, so that nothing else can have its identity.
        self._known = _look(main)

    def changed(self) -> list[str]:
        """Return the names that have another value or content now, with their module or class.

        What is empty now holds nothing that could have been kept.
        """
        return [
            name
            for name, now in _look(self._main).items()
            if now[1] != () and (name not in self._known or not _is_same(self._known[name], now))
        ]


def _look(main: ModuleType | type[Any]) -> dict[str, tuple[Any, _Content]]:
    found: dict[str, tuple[Any, _Content]] = {}
    module = main if isinstance(main, ModuleType) else sys.modules.get(main.__module__)
    for owner in (module, *([main] if isinstance(main, type) else [])):
        if owner is None:
            continue
        for name, value in list(vars(owner).items()):
            # By its type: a value may have a `__class__` that runs code.
            is_code = issubclass(type(value), _CODE)
            if name.isidentifier() and not name.startswith("__") and not is_code:
                found[f"{owner.__name__}.{name}"] = (value, _content(value))
    return found


def _content(value: Any) -> _Content:
    """What a container of Python's own holds; None for everything else."""
    kind = type(value)
    if issubclass(kind, dict):
        return (*dict.keys(value), *dict.values(value))
    if issubclass(kind, (list, set, bytearray, deque)):
        return tuple(value)
    return None


def _is_same(before: tuple[Any, _Content], now: tuple[Any, _Content]) -> bool:
    if before[0] is not now[0]:
        return False
    one, other = before[1], now[1]
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
