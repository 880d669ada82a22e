"""`JsProxy`: JavaScript values in user code's hands.

`wrap` is Pyodide's JavaScript → Python rule: strings, numbers and booleans convert, everything else
becomes a `JsProxy`. What a proxy can do depends on the value (only an array has `len`, only a Map
can be subscripted), so there is a class per kind of value; all of them present themselves as
`pyodide.ffi.JsProxy`, in their type's name and so in CPython's own error texts.

Over 400 lines because `wrap` and the classes need each other.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import keyword
from asyncio import Future
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from datetime import datetime
from types import MethodType
from typing import Any, cast

from emulator.runtime.calls import invoke
from emulator.runtime.js_properties import inherited_names, lookup, set_property
from emulator.runtime.js_text import display, own_names
from emulator.runtime.js_utf16 import units
from emulator.runtime.not_yet import not_yet
from emulator.runtime.profile import generation
from emulator.runtime.promises import PyodideFuture, promise
from emulator.runtime.pyproxy import (
    BORROWED,
    DESTROYED,
    UNCHANGED,
    JsBigInt,
    PyProxy,
    call_value,
    iterate,
    jsnull,
    to_host,
    unwrap,
)
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsDate,
    JsException,
    JsMap,
    JsSet,
    Opaque,
    RegExp,
    TypedArray,
    plain_number,
    property_names,
    to_milliseconds,
    type_of,
)

_ids = itertools.count(1)

# They bind a proxy to a Python signature by `_pyodide.jsbind`, which has no documentation.
_NOT_HERE = ("bind_sig", "bind_class")


class _Meta(type):
    """Makes every proxy class read `pyodide.ffi.JsProxy`.

    CPython prints a type's C name in its errors, and `__name__` in Python code; the first is the
    dotted name that Pyodide's type has, the second is answered here.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Meta:
        namespace["__module__"] = "pyodide.ffi"
        namespace["__qualname__"] = "JsProxy"
        return super().__new__(mcs, "pyodide.ffi.JsProxy", bases, namespace)

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        return "JsProxy"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("JsProxy cannot be instantiated.")


class JsProxy(metaclass=_Meta):
    """A JavaScript value in Python."""

    __slots__ = ("__weakref__", "_js")
    _js: Any

    def _js_unwrap(self) -> Any:
        return self._js

    def __getattr__(self, name: str) -> Any:
        if name == "typeof":
            return type_of(self._js)
        if name[:2] == "__":
            raise AttributeError(name)
        try:
            return _member(self._js, unmangle(name))
        except AttributeError:
            if name in _NOT_HERE and (name != "bind_class" or generation() > 26):
                raise not_yet(f"JsProxy.{name}", imported=False) from None
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        set_property(self._js, unmangle(name), unwrap(value))

    def __delattr__(self, name: str) -> None:
        if isinstance(self._js, dict):
            self._js.pop(unmangle(name), None)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, JsProxy):
            return NotImplemented
        return self._js is other._js or (isinstance(self._js, PyProxy) and self._js == other._js)

    def __repr__(self) -> str:
        return display(self._js)

    __str__ = __repr__

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *own_names(self._js), *inherited_names(self._js)})

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'pyodide.ffi.JsProxy' object")

    @property
    def js_id(self) -> int:
        """A number that is the same for proxies of the same object."""
        return id(self._js)

    def to_py(
        self,
        *args: Any,
        depth: int = -1,
        default_converter: Callable[..., Any] | None = None,
        **wrong: Any,
    ) -> Any:
        """Return Python's dict, list, set or memoryview; other things stay proxies."""
        from emulator.runtime.to_py import to_py

        if args:
            raise TypeError("to_py() takes no positional arguments")
        for name in wrong:
            raise unexpected_keyword("to_py", name)
        return to_py(self._js, depth=depth, default_converter=default_converter)

    def object_keys(self) -> Any:
        """Return `Object.keys`."""
        return wrap(own_names(self._js))

    def object_values(self) -> Any:
        """Return `Object.values`."""
        return wrap([lookup(self._js, name) for name in own_names(self._js)])

    def object_entries(self) -> Any:
        """Return `Object.entries`."""
        return wrap([[name, lookup(self._js, name)] for name in own_names(self._js)])

    def as_object_map(self, *, hereditary: bool = False) -> Any:
        """Return a view of the properties that can be subscripted."""
        return make(_HereditaryMap if hereditary else _ObjectMap, self._js)

    def as_py_json(self) -> Any:
        """Return a view that reads like parsed JSON (Pyodide 0.28)."""
        if generation() == 26:
            raise AttributeError("as_py_json")
        return _as_json(self._js)


class _Iterable(JsProxy):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, iterate(self._js))


class _AsyncIterable(JsProxy):
    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._js:
            yield wrap(item)


class _Collection(_Iterable):
    """Anything with a size or a length."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._js)


class _Array(_Collection):
    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        values = self._js
        if isinstance(key, slice):
            return wrap(values[key])
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        try:
            return wrap(values[key])
        except IndexError:
            raise IndexError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        values = self._js
        if isinstance(key, slice):
            values[key] = [unwrap(item) for item in value]
            return
        if key >= len(values):  # JavaScript's arrays grow
            values.extend([UNDEFINED] * (key - len(values) + 1))
        try:
            values[key] = unwrap(value)
        except IndexError:
            raise IndexError("list assignment index out of range") from None

    def __delitem__(self, key: Any) -> None:
        try:
            del self._js[key]
        except IndexError:
            raise IndexError(key) from None

    def __contains__(self, value: object) -> bool:
        return unwrap(value) in self._js

    def __reversed__(self) -> Iterator[Any]:
        return map(wrap, reversed(self._js))

    def __add__(self, other: Any) -> Any:
        return wrap(self._js + [unwrap(item) for item in other])

    def __mul__(self, times: int) -> Any:
        return wrap(self._js * times)

    def append(self, value: Any) -> None:
        self._js.append(unwrap(value))

    def extend(self, values: Any) -> None:
        self._js.extend(unwrap(value) for value in values)

    def insert(self, index: int, value: Any) -> None:
        self._js.insert(index, unwrap(value))

    def pop(self, index: int = -1) -> Any:
        return wrap(self._js.pop(index))

    def remove(self, value: Any) -> None:
        try:
            self._js.remove(unwrap(value))
        except ValueError:
            raise ValueError(f"{value!r} is not in list") from None

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        found: int = self._js.index(unwrap(value), start, *([] if stop is None else [stop]))
        return found

    def count(self, value: Any) -> int:
        counted: int = self._js.count(unwrap(value))
        return counted

    def reverse(self) -> None:
        self._js.reverse()


class _Map(_Collection):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, self._js.keys())

    def __getitem__(self, key: Any) -> Any:
        found = self._js.get(unwrap(key), _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return wrap(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._js.set(unwrap(key), unwrap(value))

    def __delitem__(self, key: Any) -> None:
        if not self._js.delete(unwrap(key)):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return bool(self._js.has(unwrap(key)))

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._js.get(unwrap(key), _ABSENT)
        return default if found is _ABSENT else wrap(found)

    keys = MutableMapping.keys
    values = MutableMapping.values
    items = MutableMapping.items
    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    popitem = MutableMapping.popitem
    # A default of `pop`, which that method looks for on the object.
    _MutableMapping__marker = vars(MutableMapping)["_MutableMapping__marker"]
    pop = MutableMapping.pop


class _Set(_Collection):
    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return any(unwrap(value) == item for item in self._js)


class _Buffer(JsProxy):
    __slots__ = ()

    def to_bytes(self) -> bytes:
        """Return a copy as bytes."""
        return bytes(self._js)

    def to_memoryview(self) -> memoryview:
        """Return a copy as memoryview."""
        return to_memoryview(self._js)

    def to_string(self, encoding: str | None = None) -> str:
        """Decode the bytes; UTF-8 unless said otherwise."""
        label = encoding or "utf8"
        try:
            return bytes(self._js).decode(label)
        except UnicodeDecodeError:
            raise ValueError(f"Failed to decode Javascript TypedArray as {label}") from None

    def to_file(self, file: Any) -> None:
        """Write the bytes to an open file."""
        file.write(bytes(self._js))

    def assign(self, source: Any) -> None:
        """Copy a buffer of the same size into this one."""
        held = self._js
        given, size = memoryview(source), len(bytes(held))
        if given.nbytes != size:
            raise ValueError(
                f"cannot assign to TypedArray of length {given.nbytes} from buffer of length {size}"
            )
        target = memoryview(held.view() if isinstance(held, TypedArray) else held.data)
        target.cast("B")[:] = given.cast("B")

    def assign_to(self, target: Any) -> None:
        """Copy this buffer into a writable one of the same size."""
        data, room = bytes(self._js), memoryview(target).cast("B")
        if room.nbytes != len(data):
            raise ValueError(
                f"cannot assign from TypedArray of length {len(data)} "
                f"to buffer of length {room.nbytes}"
            )
        room[:] = data


class _Text(_Iterable):
    """A string as an object, which has a length and is true all the same."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(units(self._js.value))

    def __bool__(self) -> bool:
        return True


class _Date(JsProxy):
    """A Date. Its first setter puts one that can be moved in the place of the platform's."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name[:3] == "set" and not isinstance(self._js, JsDate):
            held = self._js
            time = held.value if isinstance(held, Boxed) else to_milliseconds(held)
            hold(self, JsDate.at(time))
        return super().__getattr__(name)


class _TypedArray(_Buffer, _Collection):
    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            raise NotImplementedError("Slice subscripting isn't implemented for typed arrays")
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        try:
            return wrap(self._element(self._js.view()[key]))
        except IndexError:
            raise IndexError(key) from None

    def __iter__(self) -> Iterator[Any]:
        return (wrap(self._element(item)) for item in self._js.view())

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        found = list(self)[start:stop].index(value)
        return found + (start if start >= 0 else max(len(self) + start, 0))

    def count(self, value: Any) -> int:
        return list(self).count(value)

    def reverse(self) -> None:
        call_value(lookup(self._js, "reverse"))

    def _element(self, item: Any) -> Any:
        return BigInt(item) if self._js.kind.startswith("Big") else item

    def __setitem__(self, key: int, value: Any) -> None:
        set_property(self._js, str(key + len(self._js) if key < 0 else key), unwrap(value))

    def __delitem__(self, key: Any) -> None:
        raise TypeError("object doesn't support item deletion")


class _Callable(JsProxy):
    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._js, args, kwargs)


class _DoubleProxy(JsProxy):
    """A proxy of a proxy: a Python object whose life Python controls (`create_proxy`)."""

    __slots__ = ()

    def unwrap(self) -> Any:
        """Return the Python object."""
        return self._live()

    def _live(self) -> Any:
        return self._js.live()

    def __getattr__(self, name: str) -> Any:
        if name == "typeof":
            return type_of(self._js)
        obj = self._live()
        if generation() > 26 and isinstance(obj, dict) and name in obj:
            return obj[name]
        if name == "length" and isinstance(obj, Sequence):
            return len(obj)
        if hasattr(obj, name):
            return getattr(obj, name)
        raise AttributeError(name)

    def getBuffer(self, kind: str | None = None) -> Any:
        """Return JavaScript's view of a Python buffer: `data`, and `release` to give it back."""
        from emulator.runtime.ffi import typed_array

        data = typed_array(self._live())
        released = Function(lambda *_: UNDEFINED, "release", raw=True)
        return wrap({"data": data, "nbytes": data.nbytes, "release": released})

    def __repr__(self) -> str:
        return str(self._live())

    __str__ = __repr__

    def destroy(self) -> None:
        """Give the object up; every further use is an error."""
        self._js.destroyed = DESTROYED


class _SizedDoubleProxy(_DoubleProxy):
    __slots__ = ()

    def __len__(self) -> int:
        return len(self._live())


class _CallableDoubleProxy(_DoubleProxy):
    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._live()(*args, **kwargs)


_ABSENT: Any = object()


def _host_class(cls: type[HostObject]) -> type[JsProxy]:
    """The proxy class for instances of a host class: Pyodide goes by the methods it finds."""
    members = cls.js_members
    bases: list[type[JsProxy]] = []
    namespace: dict[str, Any] = {"__slots__": ()}
    if "get" in members:
        namespace["__getitem__"] = _host_getitem
    if "set" in members:
        namespace["__setitem__"] = lambda self, k, v: _member(self._js, "set")(k, v)
    if "has" in members:
        namespace["__contains__"] = lambda self, k: _member(self._js, "has")(k)
    if "delete" in members:
        namespace["__delitem__"] = _host_delitem
    size = next((name for name in ("size", "length") if name in members), None)
    if size is not None:
        namespace["__len__"] = lambda self: int(lookup(self._js, size))
    if hasattr(cls, "__iter__"):
        bases.append(_Iterable)
        if size is not None and {"get", "has", "keys"} <= members:
            namespace["__iter__"] = lambda self: iter(_member(self._js, "keys")())
    if hasattr(cls, "__aiter__"):
        bases.append(_AsyncIterable)
    if "__call__" in vars(cls) or "__call__" in members:
        bases.append(_Callable)
    for name in sorted(members):
        # Found on the class, a member costs a third of what it does by way of `__getattr__`.
        if name[:2] != "__" and not any(hasattr(base, name) for base in (JsProxy, *bases)):
            namespace.setdefault(name, property(functools.partial(_host_member, name)))
    made: Any = _Meta("JsProxy", tuple(bases) or (JsProxy,), namespace)
    return cast("type[JsProxy]", made)


host_proxy: Callable[..., type[JsProxy]] = functools.cache(_host_class)


def _host_member(name: str, self: JsProxy) -> Any:
    """What `_member` gives for a member of a host object."""
    host = self._js  # once: Python has no short way where there is a `__getattr__`
    return _own_member(host, name, host.js_lookup(name))


def _host_getitem(self: JsProxy, key: Any) -> Any:
    """Pyodide asks `has` only where `get` gave undefined; null is a value."""
    if isinstance(key, int) and not hasattr(self, "__iter__"):
        # Python takes what has `__getitem__` for a sequence; Pyodide's types do not.
        raise TypeError("'pyodide.ffi.JsProxy' object is not iterable")
    found = _member(self._js, "get")(key)
    if found is None and generation() > 26:
        members = type(self._js).js_members
        if "has" not in members or not _member(self._js, "has")(key):
            raise KeyError(key)
    return found


def _host_delitem(self: JsProxy, key: Any) -> None:
    """Delete, and go by what that returns: nothing from `Headers`, which is a `KeyError`."""
    if not _member(self._js, "delete")(key):
        raise KeyError(key)


class _ObjectMap(JsProxy):
    """Properties of an object by subscript: `as_object_map`."""

    __slots__ = ()

    def _value(self, found: Any) -> Any:
        return wrap(found)

    def __getitem__(self, key: str) -> Any:
        if key not in self._js:
            raise KeyError(key)
        return self._value(self._js[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._js[key] = unwrap(value)

    def __delitem__(self, key: str) -> None:
        del self._js[key]

    def __iter__(self) -> Iterator[str]:
        return iter(property_names(self._js))

    def __len__(self) -> int:
        return len(self._js)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: object) -> bool:
        return key in self._js

    get = MutableMapping.get
    keys = MutableMapping.keys
    values = MutableMapping.values
    items = MutableMapping.items
    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    popitem = MutableMapping.popitem
    _MutableMapping__marker = vars(MutableMapping)["_MutableMapping__marker"]
    pop = MutableMapping.pop


class _HereditaryMap(_ObjectMap):
    """The same of the objects inside."""

    __slots__ = ()

    def _value(self, found: Any) -> Any:
        return make(_HereditaryMap, found) if isinstance(found, dict) else wrap(found)


class _JsonMap(_ObjectMap):
    """Parsed JSON: objects by subscript, arrays too, however deep (`as_py_json`)."""

    __slots__ = ()

    def _value(self, found: Any) -> Any:
        return _as_json(found)


class _JsonArray(_Array):
    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return _as_json(unwrap(super().__getitem__(key)))

    def __iter__(self) -> Iterator[Any]:
        return map(_as_json, self._js)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return make(_JsonMap, value)
    return make(_JsonArray, value) if isinstance(value, list) else wrap(value)


for _mapping in (_Map, _ObjectMap):
    MutableMapping.register(_mapping)
MutableSequence.register(_Array)
del _mapping


hold = vars(JsProxy)["_js"].__set__  # `JsProxy.__setattr__` is JavaScript's


def make(cls: type[JsProxy], value: Any) -> Any:
    """Return a proxy of the class for the value."""
    proxy = object.__new__(cls)
    hold(proxy, value)
    return proxy


def wrap_host(value: HostObject) -> Any:
    """`wrap`, of what is known to be an object of the platform's."""
    return make(host_proxy(type(value)), value)


def wrap(value: Any) -> Any:
    """Return the Python value of a JavaScript one, as for the result of any `js` function."""
    kind = type(value)
    if kind is str or kind is bool or kind is int:
        return value
    if kind is float:
        return plain_number(value)
    if value is UNDEFINED:
        return None
    if value is None:
        return None if generation() == 26 else jsnull
    if kind is dict:
        return make(JsProxy, value)
    if kind is list:
        return make(_Array, value)
    return _wrap_other(value)


to_proxy = wrap


def _wrap_other(value: Any) -> Any:
    if isinstance(value, HostObject):
        return make(host_proxy(type(value)), value)
    if isinstance(value, (JsProxy, JsException, PyodideFuture)):
        return value
    if isinstance(value, Future):
        return promise(value, wrap)
    if isinstance(value, bytes):
        value = TypedArray("Uint8Array", ArrayBuffer(value))
    if isinstance(value, PyProxy):
        return value.live()
    if isinstance(value, BigInt):
        return JsBigInt(value.value) if generation() == 314 else value.value
    if isinstance(value, Boxed):
        return make(_BOXES.get(value.kind, JsProxy), value)
    for kind, cls in _CLASSES:
        if isinstance(value, kind):
            return make(cls, value)
    if inspect.isawaitable(value):
        return promise(value, wrap)
    if callable(value):
        return make(_Callable, Function(value, getattr(value, "__name__", "")))
    raise TypeError(f"not a JavaScript value: {type(value)}")


_CLASSES: tuple[tuple[Any, type[JsProxy]], ...] = (
    (Function, _Callable),
    (Opaque, JsProxy),
    (TypedArray, _TypedArray),
    (ArrayBuffer, _Buffer),
    (list, _Array),
    (dict, JsProxy),
    (JsMap, _Map),
    ((set, frozenset, JsSet), _Set),
    (datetime, _Date),
    (RegExp, JsProxy),
)
_BOXES: dict[str, type[JsProxy]] = {"String": _Text, "Date": _Date}


def double_proxy(obj: Any) -> Any:
    """Return `create_proxy(obj)`."""
    if isinstance(obj, JsProxy):
        return obj
    kind = _SizedDoubleProxy if hasattr(obj, "__len__") else _DoubleProxy
    return make(_CallableDoubleProxy if callable(obj) else kind, PyProxy(obj, kept=True))


def unexpected_keyword(function: str, name: str) -> TypeError:
    """Return Python's error for an argument that a function of Pyodide's does not have."""
    if generation() == 26:
        return TypeError(f"{name!r} is an invalid keyword argument for {function}()")
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def unmangle(name: str) -> str:
    """Return JavaScript's name for an attribute: that of `from_` is `from`."""
    return name[:-1] if name[-1:] == "_" and keyword.iskeyword(name.rstrip("_")) else name


def _member(value: Any, name: str) -> Any:
    found = lookup(value, name)
    return _own_member(value, name, found) if isinstance(value, HostObject) else wrap(found)


def _own_member(host: HostObject, name: str, found: Any) -> Any:
    if type(found) is MethodType or (callable(found) and not _is_value(found)):
        return make(_Callable, _HostMethod(host, name, found))
    return wrap(found)


def _is_value(found: Any) -> bool:
    """Whether something callable is a JavaScript value already, not a method in Python."""
    return isinstance(found, (Opaque, HostObject))


class _HostMethod(Function):
    """A method of a host object; its promise is a call that must not be forgotten."""

    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self, host: HostObject, name: str, function: Callable[..., Any]
    ) -> None:
        self.call = function
        self.name = name
        self.host = host

    def __call__(self, *args: Any) -> Any:
        return self.invoke(args)

    def invoke(self, args: Sequence[Any]) -> Any:
        """Call it with canonical values."""
        result = invoke(self.call, args)
        if isinstance(result, HostObject):  # which none awaits
            return result
        if isinstance(result, Future) or inspect.isawaitable(result):
            return promise(result, wrap, self.name, self.host.js_class)
        return result


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a JavaScript function from Python: keyword arguments are one trailing plain object."""
    values = [arg if type(arg) in UNCHANGED else unwrap(arg) for arg in args]
    if kwargs:
        values.append({name: unwrap(value) for name, value in kwargs.items()})
    if type(function) is _HostMethod:  # as most: what `call_value` does, without a way through C
        result = function.invoke([to_host(value) for value in values])
    else:
        result = call_value(function, *values)
    if type(result) is not PyodideFuture:
        result = wrap(result)
    if type(result) is not PyodideFuture:
        _release(values)
    elif not result.method:
        result.method = getattr(function, "name", "")
    return result


def _release(values: list[Any]) -> None:
    """Destroy the proxies made for a call: JavaScript may keep only those of `create_proxy`."""
    for value in values:
        if isinstance(value, PyProxy) and not value.kept:
            value.destroyed = BORROWED


def to_memoryview(value: Any) -> memoryview:
    """Return a copy of a buffer's elements."""
    if isinstance(value, TypedArray):
        copy = TypedArray(value.kind, ArrayBuffer(bytes(value)))
        return copy.view()
    return memoryview(bytearray(bytes(value)))


def _error_attribute(error: JsException, name: str) -> Any:
    """What an error has besides name, message and stack (python-api.md 1.4)."""
    if name == "to_py":
        from emulator.runtime.to_py import to_py

        return functools.partial(to_py, error)
    if name == "toString":
        return lambda: str(error)
    if name == "constructor":
        return wrap(lookup(error, name))
    if name == "typeof":
        return "object"
    raise AttributeError(name)


JsException.js_attribute = staticmethod(_error_attribute)
