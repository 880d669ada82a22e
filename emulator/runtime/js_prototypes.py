"""Properties and methods of JavaScript's built-in classes, put together by class.

`METHODS` and `GETTERS` are tables by class; a function takes `this` and JavaScript values and
returns one. What production has besides is in `js_missing`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime import (
    js_arrays,
    js_boxes,
    js_collections,
    js_date_methods,
    js_patterns,
    js_views,
)
from emulator.runtime.js_text import display, own_names
from emulator.runtime.js_utf16 import units
from emulator.runtime.pyproxy import PyProxy, call_value, iterate
from emulator.values import (
    UNDEFINED,
    Function,
    JsException,
    JsMap,
    Opaque,
    TypedArray,
    class_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.runtime.js_basics import Method


class Detached(Function):
    """A method of a prototype, which acts on what `call` and `apply` give it."""

    def __init__(self, method: Method, name: str) -> None:
        super().__init__(self._refuse, name, raw=True)
        self.method = method

    def _refuse(self, *_: Any) -> Any:
        raise JsException("TypeError", "Cannot convert undefined or null to object")


class Prototype(Opaque):
    """`Array.prototype` and its kin: the methods of a class, for `call` and `apply`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.js_class = name

    def __str__(self) -> str:
        return f"[object {self.name}]"

    def member(self, name: str) -> Detached:
        """Return a method; raises `AttributeError` if the class has none of that name."""
        if name == "toString" and self.name == "Object":
            return Detached(tag, name)
        for class_name in (self.name, *_PARENTS.get(self.name, ()), "Object"):
            method = METHODS.get(class_name, {}).get(name)
            if method is not None:
                return Detached(method, name)
        raise AttributeError(name)


@functools.cache
def prototype(name: str) -> Prototype:
    """Return the prototype of the class of that name."""
    return Prototype(name)


def tag(this: Any, *_: Any) -> str:
    """Return `Object.prototype.toString.call(this)`."""
    if this is None or this is UNDEFINED:
        return f"[object {'Null' if this is None else 'Undefined'}]"
    if isinstance(this, JsException):
        return "[object Error]"
    if isinstance(this, PyProxy):
        return "[object Function]" if callable(this.obj) else "[object PyProxy]"
    return f"[object {'Map' if isinstance(this, JsMap) else class_of(this)}]"


def prototype_name(value: Any) -> str:
    """Return the name of the class whose methods a value has."""
    if isinstance(value, Function):
        return "Function"
    if isinstance(value, bytes):
        return "Uint8Array"
    if isinstance(value, TypedArray):
        return value.kind if value.kind in METHODS else "TypedArray"
    return "Map" if isinstance(value, JsMap) else class_of(value)


def _has_own(this: Any, name: Any = UNDEFINED, *_: Any) -> bool:
    key = display(name)
    return key in own_names(this) or (key == "length" and isinstance(this, (list, str)))


def _call(this: Function, that: Any = UNDEFINED, *args: Any) -> Any:
    return this.method(that, *args) if isinstance(this, Detached) else call_value(this, *args)


def _apply(this: Function, that: Any = UNDEFINED, args: Any = UNDEFINED, *_: Any) -> Any:
    return _call(this, that, *(() if args is None or args is UNDEFINED else iterate(args)))


def _bind(this: Function, that: Any = UNDEFINED, *bound: Any) -> Function:
    return Function(lambda *args: _call(this, that, *bound, *args), f"bound {this.name}", raw=True)


METHODS: Final[dict[str, dict[str, Method]]] = {
    "Object": {
        "hasOwnProperty": _has_own,
        "propertyIsEnumerable": lambda this, name=UNDEFINED, *_: display(name) in own_names(this),
        "toLocaleString": lambda this, *_: display(this),
        "toString": lambda this, *_: display(this),
        "valueOf": lambda this, *_: this,
    },
    "Array": js_arrays.ARRAY,
    "Map": js_collections.MAP,
    "Set": js_collections.SET,
    "Date": js_date_methods.DATE,
    "RegExp": js_patterns.METHODS,
    "Function": {"call": _call, "apply": _apply, "bind": _bind},
    **js_views.METHODS,
    **js_boxes.METHODS,
}

# The prototypes of whose methods others have all.
_PARENTS: Final = dict.fromkeys(
    (
        *("Int8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array"),
        *("Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"),
    ),
    ("TypedArray",),
)

GETTERS: Final[dict[str, dict[str, Callable[[Any], Any]]]] = {
    "Array": {"length": len},
    "Map": {"size": len},
    "Set": {"size": len},
    "String": {"length": lambda this: len(units(this.value))},
    "Function": {"name": lambda this: this.name},
    "RegExp": js_patterns.GETTERS,
    "Symbol": {"description": lambda this: this.description},
    **js_views.GETTERS,
}
