"""Reading and setting properties of JavaScript values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.runtime.js_basics import Constructor, Properties, integer
from emulator.runtime.js_prototypes import GETTERS, METHODS, Prototype, prototype, prototype_name
from emulator.runtime.js_views import set_element
from emulator.runtime.profile import generation
from emulator.runtime.pyproxy import PyProxy, unwrap
from emulator.values import (
    UNDEFINED,
    Function,
    HostObject,
    JsException,
    LiteralMap,
    RegExp,
    TypedArray,
    class_of,
)

_ABSENT: Any = object()
# What V8 names in saying that it is none; others it shows by their source.
_NO_CONSTRUCTORS = ("BigInt", "Symbol")


def lookup(value: Any, name: str) -> Any:
    """Return the property of a JavaScript value; raises `AttributeError` if it has none."""
    if type(value) is dict or isinstance(value, dict):
        if name in value:
            return value[name]
    elif isinstance(value, HostObject):
        found = _lookup_host(value, name)
        if found is not _ABSENT:
            return found
    elif isinstance(value, LiteralMap) and value.has(name):
        return value.get(name)
    elif isinstance(value, PyProxy):
        return _lookup_python(value, name)
    elif isinstance(value, Function):
        if name == "new":
            return Function(_construction(value), value.name, raw=True)
        if isinstance(value, Constructor):
            if name in value.statics:
                return value.statics[name]
            if name == "prototype":
                return prototype(value.name)
    elif isinstance(value, Properties) and name in value.named:
        return value.named[name]
    return _lookup_prototype(value, name)


def _construction(value: Function) -> Callable[..., Any]:
    if isinstance(value, Constructor):
        return value.construct

    def refuse(*_: Any) -> Any:
        shown = value.name if value.name in _NO_CONSTRUCTORS else value.source
        raise JsException("TypeError", f"{shown} is not a constructor")

    return refuse


def _lookup_host(value: HostObject, name: str) -> Any:
    own = value._js_own
    if own and name in own:
        return own[name]
    try:
        return value.js_lookup(name)
    except AttributeError:
        # Of every object's properties there are others; one of its own may be there, and fail.
        inherited = name in ("constructor", "toString", "hasOwnProperty", "valueOf")
        if name in value.js_members or not inherited:
            raise
        return _ABSENT


def _lookup_python(value: PyProxy, name: str) -> Any:
    obj = value.live()
    if generation() > 26 and isinstance(obj, Mapping) and name in obj:
        return unwrap(obj[name])
    if isinstance(obj, Sequence):
        if name == "length":
            return len(obj)
        if name.isdigit():
            return unwrap(obj[int(name)]) if int(name) < len(obj) else UNDEFINED
    if hasattr(obj, name):
        return unwrap(getattr(obj, name))
    raise AttributeError(name)


def _lookup_prototype(value: Any, name: str) -> Any:
    if name == "constructor":
        return constructor_of(class_of(value))
    if isinstance(value, Prototype):
        return value.member(name)
    for class_name in (prototype_name(value), "Object"):
        getter = GETTERS.get(class_name, {}).get(name)
        if getter is not None:
            return getter(value)
        method = METHODS.get(class_name, {}).get(name)
        if method is not None:
            return Function(functools.partial(method, value), name, raw=True)
    from emulator.runtime.js_missing import absent

    raise absent(value, prototype_name(value), name)


def inherited_names(value: Any) -> set[str]:
    """Return the names of what a value has from its class, as `dir` lists them."""
    if isinstance(value, HostObject):
        return set(value.js_members)
    if isinstance(value, PyProxy):
        return set()
    names = set(METHODS["Object"]) | {"constructor"}
    for table in (GETTERS, METHODS):
        names.update(table.get(prototype_name(value), {}))
    return names


def constructor_of(name: str) -> Function:
    """Return the constructor of that name: the global one, or a bare function with its name."""
    from emulator.runtime.js import GLOBALS

    found = GLOBALS.get(name)
    return found if isinstance(found, Function) else Function(lambda *args: UNDEFINED, name)


def set_property(value: Any, name: str, item: Any) -> None:
    """Set the property of a JavaScript value to a JavaScript value."""
    if isinstance(value, dict):
        value[name] = item
    elif isinstance(value, HostObject):
        _set_host(value, name, item)
    elif isinstance(value, TypedArray):
        set_element(value, int(name), item)
    elif isinstance(value, Constructor):
        value.statics[name] = item
    elif isinstance(value, list) and (name == "length" or name.isdigit()):
        _set_in_array(value, name, item)
    elif isinstance(value, RegExp) and name == "lastIndex":
        value.last_index = item
    else:
        raise JsException("TypeError", f"Cannot add property {name}, object is not extensible")


def _set_in_array(value: list[Any], name: str, item: Any) -> None:
    """Set an element or the length; an array grows with what is undefined."""
    size = integer(item) if name == "length" else max(len(value), int(name) + 1)
    if not 0 <= size < 2**32:
        raise JsException("RangeError", "Invalid array length")
    del value[int(size) :]
    value.extend([UNDEFINED] * (int(size) - len(value)))
    if name != "length":
        value[int(name)] = item


def _set_host(value: HostObject, name: str, item: Any) -> None:
    from emulator.runtime.pyproxy import to_host

    if name not in value.js_members:
        own = value.__dict__.setdefault("_js_own", {})
        own[name] = item
        return
    member = getattr(type(value), name, None)
    settable = isinstance(member, property) and member.fset is not None
    if not settable and not name.startswith("on"):  # `onabort` and other event handlers
        raise JsException(
            "TypeError",
            f"Cannot assign to read only property '{name}' of object '#<{value.js_class}>'",
        )
    setattr(value, name, to_host(item))
