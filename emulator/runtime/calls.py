"""Calls of the methods of host objects."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from emulator.values import HostObject

if TYPE_CHECKING:
    from collections.abc import Callable

Method: TypeAlias = "tuple[Callable[..., Any], int | None, Callable[[Any], Any] | None]"
"""A method of a host class, not bound, its `positional_limit`, and its entry of `sdk_results`."""


def invoke(function: Callable[..., Any], args: Any) -> Any:
    """Call a method of a host object; surplus arguments are dropped."""
    if not args:  # without a sequence, which Python hands over by way of C
        return function()
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


@functools.lru_cache(maxsize=1024)
def method_of(kind: type[Any], name: str) -> Method | None:
    """The method that the SDK which converts values calls by a name in all objects of a type.

    None where each object is asked itself, and for what is a property.
    """
    if not issubclass(kind, HostObject) or kind.js_lookup is not HostObject.js_lookup:
        return None
    function = inspect.getattr_static(kind, name, None) if name in kind.js_members else None
    if type(function) is not FunctionType:
        return None
    return function, positional_limit(function), kind.sdk_results.get(name)
