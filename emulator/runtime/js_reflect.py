"""`Reflect`, the weak collections, and the functions of old: `escape`, `isFinite`, `Function`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.runtime.js_basics import Constructor
from emulator.runtime.js_objects import (
    define,
    descriptor,
    is_object,
    own_property_names,
    prototype_of,
)
from emulator.runtime.js_properties import lookup, set_property
from emulator.runtime.js_text import display
from emulator.runtime.not_yet import not_yet
from emulator.runtime.pyproxy import PyProxy, call_value, iterate
from emulator.values import (
    UNDEFINED,
    Function,
    HostObject,
    JsException,
    LiteralMap,
    class_of,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_EVAL: Final = "Code generation from strings disallowed for this context"
_ESCAPED: Final = re.compile(r"%u([0-9a-fA-F]{4})|%([0-9a-fA-F]{2})")
_UNESCAPED: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@*_+-./"
)


def _raw(name: str, function: Callable[..., Any]) -> Function:
    return Function(function, name, raw=True)


def _object(name: str, value: Any) -> Any:
    if not is_object(value):
        raise JsException("TypeError", f"Reflect.{name} called on non-object")
    return value


def _get(value: Any, name: Any = UNDEFINED, *_: Any) -> Any:
    try:
        return lookup(_object("get", value), display(name))
    except AttributeError:
        return UNDEFINED


def _has(value: Any, name: Any = UNDEFINED, *_: Any) -> bool:
    try:
        lookup(_object("has", value), display(name))
    except AttributeError:
        return False
    return True


def _set(value: Any, name: Any = UNDEFINED, item: Any = UNDEFINED, *_: Any) -> bool:
    try:
        set_property(_object("set", value), display(name), item)
    except JsException:
        return False
    return True


def _delete(value: Any, name: Any = UNDEFINED, *_: Any) -> bool:
    target = _object("deleteProperty", value)
    if isinstance(target, dict):
        target.pop(display(name), None)
    elif isinstance(target, LiteralMap):
        target.delete(display(name))
    return True


def _keys(value: Any, *_: Any) -> list[str]:
    return own_property_names(_object("ownKeys", value))


def _define(value: Any, name: Any = UNDEFINED, told: Any = UNDEFINED, *_: Any) -> bool:
    define(_object("defineProperty", value), name, told)
    return True


def _descriptor(value: Any, name: Any = UNDEFINED, *_: Any) -> Any:
    return descriptor(_object("getOwnPropertyDescriptor", value), name)


def _prototype_of(value: Any, *_: Any) -> Any:
    return prototype_of(_object("getPrototypeOf", value))


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise not_yet(f"Reflect.{name}", imported=False)

    return refuse


def _construct(target: Any, arguments: Any = UNDEFINED, *_: Any) -> Any:
    if not isinstance(target, Constructor):
        raise JsException("TypeError", f"{display(target)} is not a constructor")
    return target.construct(*(() if arguments is UNDEFINED else iterate(arguments)))


def _apply(target: Any, this: Any = UNDEFINED, arguments: Any = UNDEFINED, *_: Any) -> Any:
    if not isinstance(target, Function) and not isinstance(target, PyProxy):
        kind = "a number" if isinstance(target, (int, float)) else f"a {class_of(target)}"
        raise JsException(
            "TypeError",
            f"Function.prototype.apply was called on {display(target)}, which is {kind} and not a "
            "function",
        )
    return call_value(target, *(() if arguments is UNDEFINED else iterate(arguments)))


REFLECT: Final[dict[str, Any]] = {
    "apply": _raw("apply", _apply),
    "construct": _raw("construct", _construct),
    "defineProperty": _raw("defineProperty", _define),
    "deleteProperty": _raw("deleteProperty", _delete),
    "get": _raw("get", _get),
    "getOwnPropertyDescriptor": _raw("getOwnPropertyDescriptor", _descriptor),
    "getPrototypeOf": _raw("getPrototypeOf", _prototype_of),
    "has": _raw("has", _has),
    "isExtensible": _raw("isExtensible", _refusal("isExtensible")),
    "ownKeys": _raw("ownKeys", _keys),
    "preventExtensions": _raw("preventExtensions", _refusal("preventExtensions")),
    "set": _raw("set", _set),
    "setPrototypeOf": _raw("setPrototypeOf", _refusal("setPrototypeOf")),
}


# -- weak collections: nothing is collected here, so they only remember --------------------------


def _identity(value: Any) -> int:
    return id(value.obj) if isinstance(value, PyProxy) else id(value)


class WeakMap(HostObject):
    """A `WeakMap`: objects by their identity."""

    js_class = "WeakMap"
    js_members = frozenset({"get", "set", "has", "delete"})
    refusal = "Invalid value used as weak map key"

    def __init__(self) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}

    def js_lookup(self, name: str) -> Any:
        """Return a method, which takes values as JavaScript has them."""
        if name in self.js_members:
            return _raw(name, getattr(self, f"_{name}"))
        raise AttributeError(name)

    def _get(self, key: Any = UNDEFINED) -> Any:
        return self._items.get(_identity(key), (UNDEFINED, UNDEFINED))[1]

    def _set(self, key: Any = UNDEFINED, value: Any = UNDEFINED) -> WeakMap:
        if not is_object(key):
            raise JsException("TypeError", self.refusal)
        self._items[_identity(key)] = key, value
        return self

    def _has(self, key: Any = UNDEFINED) -> bool:
        return _identity(key) in self._items

    def _delete(self, key: Any = UNDEFINED) -> bool:
        return self._items.pop(_identity(key), None) is not None


class WeakSet(WeakMap):
    """A `WeakSet`."""

    js_class = "WeakSet"
    js_members = frozenset({"add", "has", "delete"})
    refusal = "Invalid value used in weak set"

    def _add(self, key: Any = UNDEFINED) -> WeakMap:
        return self._set(key)


class WeakRef(HostObject):
    """A `WeakRef`, whose target stays."""

    js_class = "WeakRef"
    js_members = frozenset({"deref"})

    def __init__(self, target: Any) -> None:
        self._target = target

    @property
    def deref(self) -> Function:
        """Return the target."""
        return _raw("deref", lambda *_: self._target)


class FinalizationRegistry(HostObject):
    """A `FinalizationRegistry`, which never calls back, as it may."""

    js_class = "FinalizationRegistry"
    js_members = frozenset({"register", "unregister"})

    def register(self) -> object:
        """Accept a target."""
        return UNDEFINED

    def unregister(self) -> bool:
        """Forget one."""
        return False


def _new_weak_map(pairs: Any = UNDEFINED, *_: Any) -> WeakMap:
    made = WeakMap()
    for pair in () if pairs is UNDEFINED or pairs is None else iterate(pairs):
        key, value = (*iterate(pair), UNDEFINED, UNDEFINED)[:2]
        made._set(key, value)
    return made


def _new_weak_set(values: Any = UNDEFINED, *_: Any) -> WeakSet:
    made = WeakSet()
    for value in () if values is UNDEFINED or values is None else iterate(values):
        made._set(value)
    return made


def _new_weak_ref(target: Any = UNDEFINED, *_: Any) -> WeakRef:
    if not is_object(target):
        raise JsException("TypeError", "WeakRef: invalid target")
    return WeakRef(target)


# -- functions -----------------------------------------------------------------------------------


def _is_finite(value: Any = UNDEFINED, *_: Any) -> bool:
    return math.isfinite(to_number(value))


def _escape(value: Any = UNDEFINED, *_: Any) -> str:
    units = display(value).encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(
        chr(code) if chr(code) in _UNESCAPED else f"%{code:02X}" if code < 256 else f"%u{code:04X}"
        for code in codes
    )


def _unescape(value: Any = UNDEFINED, *_: Any) -> str:
    text = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), display(value))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _no_eval(*_: Any) -> NoReturn:
    raise JsException("EvalError", _EVAL)


def _aggregate_error(errors: Any = UNDEFINED, message: Any = UNDEFINED, *_: Any) -> JsException:
    made = JsException("AggregateError", "" if message is UNDEFINED else display(message))
    made.__dict__["errors"] = list(iterate(errors))
    return made


# The codes of DOMExceptions, by name.
DOM_CODES: Final = {
    name: number
    for number, name in enumerate(
        (
            *("IndexSizeError", "DOMStringSizeError", "HierarchyRequestError"),
            *("WrongDocumentError", "InvalidCharacterError", "NoDataAllowedError"),
            *("NoModificationAllowedError", "NotFoundError", "NotSupportedError"),
            *("InUseAttributeError", "InvalidStateError", "SyntaxError"),
            *("InvalidModificationError", "NamespaceError", "InvalidAccessError"),
            *("ValidationError", "TypeMismatchError", "SecurityError", "NetworkError"),
            *("AbortError", "URLMismatchError", "QuotaExceededError", "TimeoutError"),
            *("InvalidNodeTypeError", "DataCloneError"),
        ),
        1,
    )
}
_NO_NEW: Final = (
    "Failed to construct 'DOMException': Please use the 'new' operator, this object constructor "
    "cannot be called as a function."
)


def _dom_exception(message: Any = UNDEFINED, name: Any = UNDEFINED, *_: Any) -> JsException:
    text = "" if message is UNDEFINED else display(message)
    given = name.get("name", UNDEFINED) if isinstance(name, dict) else name
    made = JsException("Error" if given is UNDEFINED else display(given), text)
    made.__dict__["code"] = DOM_CODES.get(made.name, 0)
    return made


def _no_new(*_: Any) -> NoReturn:
    raise JsException("TypeError", _NO_NEW)


def _constant(name: str) -> str:
    words = re.findall(r"DOM|URL|[A-Z][a-z]+", name.removesuffix("Error"))
    return "_".join(word.upper() for word in words) + "_ERR"


def _strategy(name: str, size: Callable[[Any], Any]) -> Constructor:
    def construct(init: Any = UNDEFINED, *_: Any) -> dict[str, Any]:
        if not is_object(init):
            text = (
                f"Failed to construct '{name}': constructor parameter 1 is not of type "
                "'QueuingStrategyInit'."
            )
            raise JsException("TypeError", text)
        return {"highWaterMark": _get(init, "highWaterMark"), "size": _raw("size", size)}

    return Constructor(name, construct)


def _byte_length(chunk: Any = UNDEFINED, *_: Any) -> Any:
    return _get(chunk, "byteLength") if is_object(chunk) else UNDEFINED


REFLECTION: Final[dict[str, Any]] = {
    "Reflect": REFLECT,
    "WeakMap": Constructor("WeakMap", _new_weak_map),
    "WeakSet": Constructor("WeakSet", _new_weak_set),
    "WeakRef": Constructor("WeakRef", _new_weak_ref),
    "FinalizationRegistry": Constructor("FinalizationRegistry", lambda *_: FinalizationRegistry()),
    "AggregateError": Constructor("AggregateError", _aggregate_error, call=_aggregate_error),
    "DOMException": Constructor(
        "DOMException",
        _dom_exception,
        call=_no_new,
        statics={_constant(name): number for name, number in DOM_CODES.items()},
    ),
    "Function": Constructor("Function", _no_eval, call=_no_eval),
    "eval": _raw("eval", _no_eval),
    "isFinite": _raw("isFinite", _is_finite),
    "escape": _raw("escape", _escape),
    "unescape": _raw("unescape", _unescape),
    "ByteLengthQueuingStrategy": _strategy("ByteLengthQueuingStrategy", _byte_length),
    "CountQueuingStrategy": _strategy("CountQueuingStrategy", lambda *_: 1),
    "origin": "null",
}
