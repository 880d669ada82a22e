"""What `pyodide.ffi` offers to Workers code: conversions, proxies and the classes to test for."""

from __future__ import annotations

import array
import sys
from typing import TYPE_CHECKING, Any

from emulator.runtime import proxies
from emulator.runtime.not_yet import is_import
from emulator.runtime.profile import generation
from emulator.runtime.proxies import JsProxy, double_proxy, make, unexpected_keyword, wrap
from emulator.runtime.pyproxy import (
    DESTROYED,
    JsBigInt,
    JsNull,
    PyProxy,
    call_value,
    jsnull,
    unwrap,
)
from emulator.runtime.run_sync import can_run_sync, run_sync
from emulator.values import (
    VIEW_KINDS,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    JsSet,
    LiteralMap,
    TypedArray,
)
from emulator.values import JsMap as _Map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Names that every generation has; `__getattr__` knows the others.
__all__ = [
    "ConversionError",
    "InternalError",
    "JsArray",
    "JsAsyncGenerator",
    "JsAsyncIterable",
    "JsAsyncIterator",
    "JsBuffer",
    "JsCallable",
    "JsCallableDoubleProxy",
    "JsDomElement",
    "JsDoubleProxy",
    "JsException",
    "JsFetchResponse",
    "JsGenerator",
    "JsIterable",
    "JsIterator",
    "JsMap",
    "JsMutableMap",
    "JsOnceCallable",
    "JsPromise",
    "JsProxy",
    "JsTypedArray",
    "create_once_callable",
    "create_proxy",
    "destroy_proxies",
    "to_js",
]


class ConversionError(Exception):
    """A value cannot be converted between Python and JavaScript."""


class InternalError(Exception):
    """Pyodide has a bug; never raised here."""


ConversionError.__module__ = InternalError.__module__ = "pyodide.ffi"


class _Kind(type):
    """A class that `isinstance` answers by looking at the value behind a proxy."""

    def __instancecheck__(cls, instance: object) -> bool:
        test: Callable[[JsProxy], bool] = cls.__dict__["_test"]
        return isinstance(instance, JsProxy) and test(instance)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{cls.__name__} cannot be instantiated.")


def _kind(name: str, test: Callable[[JsProxy], bool]) -> Any:
    doc = f"Proxies for which `isinstance(proxy, {name})` holds in Pyodide."
    return _Kind(
        name, (), {"_test": staticmethod(test), "__module__": "pyodide.ffi", "__doc__": doc}
    )


JsArray = _kind("JsArray", lambda proxy: isinstance(proxy._js, (list, TypedArray)))
JsTypedArray = _kind("JsTypedArray", lambda proxy: isinstance(proxy._js, TypedArray))
JsBuffer = _kind("JsBuffer", lambda proxy: isinstance(proxy._js, (ArrayBuffer, TypedArray)))
JsCallable = _kind("JsCallable", lambda proxy: isinstance(proxy._js, Function))
JsOnceCallable = _kind("JsOnceCallable", lambda proxy: isinstance(proxy._js, _Once))
JsDoubleProxy = _kind("JsDoubleProxy", lambda proxy: isinstance(proxy, proxies._DoubleProxy))
JsCallableDoubleProxy = _kind(
    "JsCallableDoubleProxy", lambda proxy: isinstance(proxy, proxies._CallableDoubleProxy)
)
JsIterable = _kind("JsIterable", lambda proxy: hasattr(type(proxy), "__iter__"))
JsMap = _kind("JsMap", lambda proxy: isinstance(proxy._js, _Map) or _has(proxy, "get", "has"))
JsMutableMap = _kind(
    "JsMutableMap", lambda proxy: isinstance(proxy._js, _Map) or _has(proxy, "get", "set", "delete")
)
JsPromise = _kind("JsPromise", lambda proxy: False)  # promises are futures, not proxies
JsAsyncIterable = _kind("JsAsyncIterable", lambda proxy: hasattr(type(proxy), "__aiter__"))
JsIterator = _kind("JsIterator", lambda proxy: _has(proxy, "next"))
JsAsyncIterator = _kind("JsAsyncIterator", lambda proxy: _has(proxy, "next"))
JsGenerator = _kind("JsGenerator", lambda proxy: _has(proxy, "next", "return", "throw"))
JsAsyncGenerator = _kind("JsAsyncGenerator", lambda proxy: _has(proxy, "next", "return", "throw"))
JsDomElement = _kind("JsDomElement", lambda proxy: False)  # a Worker has no document
JsWeakRef = _kind("JsWeakRef", lambda proxy: False)
JsFetchResponse = _kind("JsFetchResponse", lambda proxy: True)  # as in Pyodide, any proxy is one


def _has(proxy: JsProxy, *names: str) -> bool:
    return isinstance(proxy._js, HostObject) and proxy._js.js_members.issuperset(names)


class _Once(Function):
    """A function that JavaScript may call once."""


def _one_argument(function: str, args: tuple[Any, ...]) -> Any:
    """Return the positional argument of a function of Pyodide's own; `TypeError` for others."""
    if len(args) != 1:
        raise TypeError(f"{function}() takes exactly 1 positional argument ({len(args)} given)")
    return args[0]


def to_js(
    *args: Any,
    depth: int = -1,
    pyproxies: Any = None,
    create_pyproxies: bool = True,
    dict_converter: Callable[[Iterable[Any]], Any] | None = None,
    default_converter: Callable[..., Any] | None = None,
    eager_converter: Callable[..., Any] | None = None,
    **wrong: Any,
) -> Any:
    """Convert Python's lists, tuples, dicts, sets and buffers to JavaScript, to `depth` levels.

    Other objects become proxies, or what `default_converter(obj, convert, cache)` returns. A dict
    becomes a Map up to Pyodide 0.28 and a plain object on 314, unless `dict_converter` is given.
    Raises `ConversionError` for what cannot be converted.
    """
    obj = _one_argument("to_js", args)
    for name in wrong:
        raise unexpected_keyword("to_js", name)
    if pyproxies is not None and not isinstance(pyproxies, JsProxy):
        raise TypeError("Expected a JsArray for the pyproxies argument")
    if eager_converter is None and isinstance(obj, (str, int, float, bool, JsProxy, JsException)):
        return obj
    if obj is None or obj is jsnull:
        return obj
    run = _ToJs(dict_converter, default_converter, eager_converter, create_pyproxies, pyproxies)
    result = run.convert(obj, depth)
    return make_proxy(result) if isinstance(result, PyProxy) else wrap(result)


def make_proxy(proxy: PyProxy) -> Any:
    """Return a proxy that Python code holds for a Python object in JavaScript's hands."""
    return double_proxy(proxy.obj)


class _ToJs:
    def __init__(
        self,
        dict_converter: Callable[[Iterable[Any]], Any] | None,
        default_converter: Callable[..., Any] | None,
        eager_converter: Callable[..., Any] | None,
        create_pyproxies: bool,
        pyproxies: Any,
    ) -> None:
        self._dict_converter = dict_converter
        self._default_converter = default_converter
        self._eager_converter = eager_converter
        self._create_pyproxies = create_pyproxies
        self._pyproxies = pyproxies
        self._cache: dict[int, Any] = {}
        self._alive: list[Any] = []  # cached by id, so they must not go away

    def convert(self, obj: Any, depth: int) -> Any:
        """Return the JavaScript value of `obj`."""
        if self._eager_converter is not None:
            return unwrap(self._eager_converter(obj, self._again(depth), self._store))
        if depth == 0 and isinstance(obj, (dict, list, tuple, set)):
            return self._proxy(obj)
        if id(obj) in self._cache:
            return self._cache[id(obj)]
        if isinstance(obj, dict):
            return self._dict(obj, depth)
        if isinstance(obj, (list, tuple)):
            return self._list(obj, depth)
        if isinstance(obj, set):
            return JsSet(_key(item, self.convert(item, depth - 1), "Set") for item in obj)
        if isinstance(obj, (bytes, bytearray, memoryview, array.array)):
            return typed_array(obj)
        value = unwrap(obj)
        return self._default(obj, depth) if isinstance(value, PyProxy) else value

    def _again(self, depth: int) -> Callable[[Any], Any]:
        return lambda item: wrap(self.convert(item, depth - 1))

    def _store(self, obj: Any, converted: Any) -> None:
        self._cache[id(obj)] = unwrap(converted)
        self._alive.append(obj)

    def _dict(self, obj: dict[Any, Any], depth: int) -> Any:
        if self._dict_converter is None and generation() < 314:
            # Seen in the 0.26 runtime (recording py_ffi_probe_workerd2024): a Map, no properties.
            literal: _Map | LiteralMap = _Map() if generation() == 26 else LiteralMap()
            self._cache[id(obj)] = literal
            for key, value in obj.items():
                literal.set(map_key(key), self.convert(value, depth - 1))
            return literal
        if self._dict_converter is None or _is_from_entries(self._dict_converter):
            record: dict[str, Any] = {}
            self._cache[id(obj)] = record
            for key, value in obj.items():
                record[property_key(key)] = self.convert(value, depth - 1)
            return record
        pairs = [[map_key(key), self.convert(value, depth - 1)] for key, value in obj.items()]
        return unwrap(self._dict_converter(wrap(pairs)))

    def _list(self, obj: Any, depth: int) -> list[Any]:
        values: list[Any] = []
        self._cache[id(obj)] = values
        values.extend(self.convert(item, depth - 1) for item in obj)
        return values

    def _default(self, obj: Any, depth: int) -> Any:
        if self._default_converter is None:
            return self._proxy(obj)
        try:
            return unwrap(self._default_converter(obj, self._again(depth), self._store))
        except Exception as error:
            raise ConversionError("Conversion from python to javascript failed") from error

    def _proxy(self, obj: Any) -> PyProxy:
        if not self._create_pyproxies:
            raise ConversionError("No conversion known for x.")  # Pyodide says no more
        proxy = PyProxy(obj)
        if self._pyproxies is not None:
            self._pyproxies.append(make_proxy(proxy))
        return proxy


def _is_from_entries(converter: Any) -> bool:
    return isinstance(converter, JsProxy) and getattr(converter._js, "name", "") == "fromEntries"


def property_key(key: Any) -> str:
    """Return a dict's key as the name of a property; raises `ConversionError` if it cannot be."""
    if type(key) is str:
        return key
    from emulator.runtime.js_text import display

    return display(map_key(key))


def map_key(key: Any) -> Any:
    return _key(key, unwrap(key), "Map")


def _key(key: Any, value: Any, container: str) -> Any:
    if isinstance(value, (PyProxy, list)):
        raise ConversionError(f"Cannot use {key!r} as a key for a Javascript {container}")
    return value


_BY_FORMAT = {form: name for name, (form, _) in reversed(VIEW_KINDS.items())} | {
    "B": "Uint8Array",
    "c": "Uint8Array",
    "?": "Uint8Array",
    "l": "BigInt64Array",
    "L": "BigUint64Array",
}


def typed_array(obj: Any) -> TypedArray:
    """Return a typed array with a copy of a Python buffer, its kind by the buffer's format."""
    view = memoryview(obj)
    kind = _BY_FORMAT.get(view.format, "Uint8Array")
    return TypedArray(kind, ArrayBuffer(view.tobytes()))


def create_proxy(
    *args: Any, capture_this: bool = False, roundtrip: bool = True, **wrong: Any
) -> Any:
    """Return a proxy of a Python object that lives until `destroy()`; nothing is collected here."""
    obj = _one_argument("create_proxy", args)
    for name in wrong:
        raise unexpected_keyword("create_proxy", name)
    return double_proxy(obj)


def create_once_callable(*args: Any, _may_syncify: bool = False) -> Any:
    """Return a proxy of a function that may be called once."""
    obj = _one_argument("create_once_callable", args)
    called = False

    def once(*args: Any) -> Any:
        nonlocal called
        if called:
            raise JsException("Error", "OnceProxy can only be called once")
        called = True
        return call_value(PyProxy(obj), *args)

    return make(proxies._Callable, _Once(once, "wrapper", raw=True))


def destroy_proxies(pyproxies: Any, /) -> None:
    """Destroy the proxies in an array."""
    if not isinstance(pyproxies, JsProxy):
        raise TypeError("Expected a JsProxy for the argument")
    if not isinstance(pyproxies._js, list):
        raise TypeError("Expected a Js Array for the pyproxies argument")
    for proxy in pyproxies._js:
        if isinstance(proxy, PyProxy):
            proxy.destroyed = DESTROYED


# Names → the first generation that has them.
_SINCE: dict[str, tuple[int, Any]] = {
    "jsnull": (28, jsnull),
    "JsNull": (28, JsNull),
    "JsWeakRef": (28, JsWeakRef),
    "IN_PYODIDE": (314, True),
    "JsBigInt": (314, JsBigInt),
    "run_sync": (28, run_sync),
    "can_run_sync": (28, can_run_sync),
}
_WITHOUT_SWITCHING = (
    "The runtime that a compatibility date before 2025-09-29 gives cannot wait without `await`: "
    "make the function async, or use a newer date or the flag python_workers_20250116."
)


def lookup_name(name: str) -> Any:
    """Return a name that not every generation of `pyodide.ffi` has."""
    since, value = _SINCE.get(name, (0, None))
    if since and generation() >= since:
        return value
    if since:
        raise _too_new(name, imported=is_import(sys._getframe(1)))
    raise AttributeError(
        f"module 'pyodide.ffi' has no attribute {name!r} in the emulator; it has: "
        + ", ".join(__all__)
    )


def _too_new(name: str, *, imported: bool) -> ImportError | AttributeError:
    """Return an older runtime's error for a name that it lacks."""
    error: ImportError | AttributeError
    if imported:
        file = f"/lib/python{'312' if generation() == 26 else '313'}.zip/pyodide/ffi/__init__.py"
        text = f"cannot import name {name!r} from 'pyodide.ffi' ({file})"
        error = ImportError(text, name="pyodide.ffi")
    else:
        error = AttributeError(f"module 'pyodide.ffi' has no attribute {name!r}")
    if "run_sync" in name:
        error.add_note(_WITHOUT_SWITCHING)
    return error


__getattr__ = lookup_name
