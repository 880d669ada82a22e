"""Calls of the methods of host objects."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def invoke(function: Callable[..., Any], args: Any) -> Any:
    """Call a method of a host object; surplus arguments are dropped."""
    limit = positional_limit(getattr(function, "__func__", function))
    return function(*args) if limit is None or len(args) <= limit else function(*args[:limit])


@functools.lru_cache(maxsize=1024)
def positional_limit(function: Any) -> int | None:
    """How many arguments a function takes besides `self`; None if any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return count - bool(parameters and parameters[0].name in ("self", "cls"))
