"""The statics of `Object`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_basics import Constructor, functions, is_number, same
from emulator.runtime.js_properties import lookup, set_property
from emulator.runtime.js_prototypes import Prototype, prototype
from emulator.runtime.js_text import display, own_names
from emulator.runtime.not_yet import not_yet
from emulator.runtime.pyproxy import PyProxy, call_value, iterate, unwrap
from emulator.values import (
    UNDEFINED,
    BigInt,
    Boxed,
    Function,
    JsException,
    Symbol,
    TypedArray,
    class_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def is_object(value: Any) -> bool:
    """Whether a value is an object, functions included."""
    if value is None or value is UNDEFINED:
        return False
    return not isinstance(value, (str, bool, int, float, BigInt, Symbol))


def element(value: Any, name: str) -> Any:
    """Return a property, elements of arrays and text included; undefined if there is none."""
    if isinstance(value, (list, str, bytes, TypedArray)) and name.isdigit():
        if int(name) >= len(value):
            return UNDEFINED
        found: Any = value.view()[int(name)] if isinstance(value, TypedArray) else value[int(name)]
        return BigInt(found) if class_of(value).startswith("Big") else found
    try:
        return lookup(value, name)
    except AttributeError:
        return UNDEFINED


def _given(value: Any) -> Any:
    if value is None or value is UNDEFINED:
        raise JsException("TypeError", "Cannot convert undefined or null to object")
    return value


def _keys(value: Any = UNDEFINED, *_: Any) -> list[str]:
    return list(own_names(_given(value)))


def _values(value: Any = UNDEFINED, *_: Any) -> list[Any]:
    return [element(value, name) for name in _keys(value)]


def _entries(value: Any = UNDEFINED, *_: Any) -> list[Any]:
    return [[name, element(value, name)] for name in _keys(value)]


def _from_entries(pairs: Any = UNDEFINED, *_: Any) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for pair in iterate(pairs):
        if isinstance(pair, PyProxy) and isinstance(pair.obj, (list, tuple)):
            key, value = (*map(unwrap, pair.obj), UNDEFINED, UNDEFINED)[:2]
        elif isinstance(pair, list):
            key, value = (*pair, UNDEFINED, UNDEFINED)[:2]
        else:
            raise JsException("TypeError", f"Iterator value {display(pair)} is not an entry object")
        record[display(key)] = value
    return record


def _new_object(value: Any = UNDEFINED, *_: Any) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return Boxed(class_of(value), value)
    return {} if value is None or value is UNDEFINED else value


def _assign(target: Any = UNDEFINED, *sources: Any) -> Any:
    _given(target)
    for source in sources:
        for name in own_names(source):
            set_property(target, name, element(source, name))
    return target


def _group_by(items: Any = UNDEFINED, given: Any = UNDEFINED, *_: Any) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for index, item in enumerate(iterate(items)):
        groups.setdefault(display(call_value(given, item, index)), []).append(item)
    return groups


def _is(left: Any = UNDEFINED, right: Any = UNDEFINED, *_: Any) -> bool:
    if not (is_number(left) and is_number(right)):
        return same(left, right)
    if left != left or right != right:
        return bool(left != left and right != right)
    return bool(left == right and math.copysign(1, left) == math.copysign(1, right))


# -- properties ------------------------------------------------------------------------------------


def own_property_names(value: Any = UNDEFINED, *_: Any) -> list[str]:
    """Return all of an object's own properties, those that `keys` leaves out too."""
    names = _keys(value)
    if isinstance(value, (list, str)):
        return [*names, "length"]
    return [*names, *value.statics] if isinstance(value, Constructor) else names


def _has_own(value: Any = UNDEFINED, name: Any = UNDEFINED, *_: Any) -> bool:
    return display(name) in own_property_names(_given(value))


def descriptor(value: Any = UNDEFINED, name: Any = UNDEFINED, *_: Any) -> Any:
    """Do `Object.getOwnPropertyDescriptor`."""
    key = display(name)
    if not _has_own(value, key):
        return UNDEFINED
    is_length = key == "length" and isinstance(value, (list, str))
    is_fixed = isinstance(value, str) or is_length
    return {
        "value": element(value, key),
        "writable": not isinstance(value, str),
        "enumerable": not is_length,
        "configurable": not is_fixed,
    }


def _descriptors(value: Any = UNDEFINED, *_: Any) -> dict[str, Any]:
    return {name: descriptor(value, name) for name in own_property_names(value)}


def define(value: Any = UNDEFINED, name: Any = UNDEFINED, told: Any = UNDEFINED, *_: Any) -> Any:
    """Do `Object.defineProperty`, of properties like those that an assignment makes.

    Raises an error that says so (AttributeError) for accessors, and for properties that are
    hidden or fixed, which objects here cannot have.
    """
    if not is_object(value):
        raise JsException("TypeError", "Object.defineProperty called on non-object")
    if not is_object(told):
        raise JsException("TypeError", f"Property description must be an object: {display(told)}")
    key, is_there = display(name), _has_own(value, display(name))
    settings = [element(told, one) for one in ("writable", "enumerable", "configurable")]
    is_plain = all(one is True or (one is UNDEFINED and is_there) for one in settings)
    is_accessor = any(element(told, one) is not UNDEFINED for one in ("get", "set"))
    if is_accessor or not is_plain:
        what = "Object.defineProperty of what is not writable, enumerable and configurable"
        raise not_yet(what, imported=False)
    set_property(value, key, element(told, "value"))
    return value


def _define_all(value: Any = UNDEFINED, told: Any = UNDEFINED, *_: Any) -> Any:
    for name in own_names(_given(told)):
        define(value, name, element(told, name))
    return value


def _create(prototype: Any = UNDEFINED, told: Any = UNDEFINED, *_: Any) -> Any:
    if prototype is not None and not is_object(prototype):
        shown = display(prototype)
        raise JsException("TypeError", f"Object prototype may only be an Object or null: {shown}")
    if isinstance(prototype, Prototype):
        is_plain = prototype.name == "Object"
    else:
        is_plain = prototype is None or prototype == {}
    if not is_plain:
        raise not_yet("Object.create of an object that inherits", imported=False)
    return {} if told is UNDEFINED else _define_all({}, told)


def prototype_of(value: Any = UNDEFINED, *_: Any) -> Any:
    """Do `Object.getPrototypeOf`."""
    _given(value)
    if isinstance(value, Prototype):
        return None if value.name == "Object" else prototype("Object")
    return prototype("Function" if isinstance(value, Function) else class_of(value))


def _no_symbols(value: Any = UNDEFINED, *_: Any) -> list[Any]:
    _given(value)
    return []


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise not_yet(f"Object.{name} (objects here are never frozen)", imported=False)

    return refuse


def _no_new_prototype(*_: Any) -> Any:
    raise not_yet("Object.setPrototypeOf", imported=False)


def _same(value: Any = UNDEFINED, *_: Any) -> Any:
    return value


CLASS: Final = Constructor(
    "Object",
    _new_object,
    call=_new_object,
    statics=functions(
        assign=_assign,
        create=_create,
        defineProperties=_define_all,
        defineProperty=define,
        entries=_entries,
        freeze=_same,
        fromEntries=_from_entries,
        getOwnPropertyDescriptor=descriptor,
        getOwnPropertyDescriptors=_descriptors,
        getOwnPropertyNames=own_property_names,
        getOwnPropertySymbols=_no_symbols,
        getPrototypeOf=prototype_of,
        groupBy=_group_by,
        hasOwn=_has_own,
        is_=_is,
        isExtensible=_refusal("isExtensible"),
        isFrozen=_refusal("isFrozen"),
        isSealed=_refusal("isSealed"),
        keys=_keys,
        preventExtensions=_same,
        seal=_same,
        setPrototypeOf=_no_new_prototype,
        values=_values,
    ),
)
