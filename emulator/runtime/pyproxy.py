"""What JavaScript sees of Python objects, and how values cross between the two.

`unwrap` is Pyodide's Python → JavaScript rule: immutable values convert, everything else becomes a
`PyProxy`. `to_host` goes on from there to the canonical values that the platform's classes take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from emulator.location import caller
from emulator.runtime.host import running
from emulator.runtime.profile import generation
from emulator.values import (
    SAFE,
    UNDEFINED,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsDate,
    JsException,
    Opaque,
    ProxiedDict,
    ProxiedList,
    TypedArray,
    format_number,
    settled,
)


class JsNull:
    """The type of `jsnull`, JavaScript's null from Pyodide 0.28 on."""

    __slots__ = ()
    typeof = "object"
    _instance: JsNull | None = None

    def __new__(cls) -> JsNull:
        return jsnull

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "jsnull"

    def __reduce__(self) -> str:
        return "jsnull"


# Pyodide's texts for the use of a proxy that is no more.
_HINT: Final = "\nFor more information about the cause of this error, use `pyodide.setDebug(true)`"
DESTROYED: Final = f"Object has already been destroyed{_HINT}"
BORROWED: Final = (
    "This borrowed proxy was automatically destroyed at the end of a function call. Try using "
    f"create_proxy or create_once_callable.{_HINT}"
)
EXHAUSTED: Final = (
    f"This borrowed proxy was automatically destroyed when an iterator was exhausted.{_HINT}"
)

# What is the same in JavaScript's hands.
UNCHANGED: Final = frozenset({str, bool, float})
# What is the same for every host object.
_PLAIN: Final = frozenset({str, bool, int, float, NoneType, type(UNDEFINED)})

JsNull.__module__ = "pyodide.ffi"
jsnull: Final[JsNull] = object.__new__(JsNull)


class JsBigInt(int):
    """An int that came from a BigInt and becomes one again (Pyodide 314), as do its sums."""


def _keep_bigint(name: str) -> Callable[..., Any]:
    operation = getattr(int, name)

    def operate(self: JsBigInt, *others: Any) -> Any:
        result = operation(self, *others)
        return JsBigInt(result) if isinstance(result, int) else result

    operate.__name__ = name
    return operate


_BINARY: Final = ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor")
for _name in (
    *(f"__{_prefix}{_name}__" for _name in _BINARY for _prefix in ("", "r")),
    *("__lshift__", "__rshift__", "__neg__", "__pos__", "__abs__", "__invert__"),
):
    setattr(JsBigInt, _name, _keep_bigint(_name))
del _name


JsBigInt.__module__ = "pyodide.ffi"


class PyProxy(Opaque):
    """A Python object in JavaScript's hands.

    One that is `kept` (of `create_proxy` and `to_js`) lives until Python destroys it, others as
    long as the call they are made for.
    """

    js_class = "PyProxy"

    def __init__(self, obj: Any, *, kept: bool = False) -> None:
        self.obj = obj
        self.kept = kept
        # Why it may not be used any more.
        self.destroyed = ""

    def live(self) -> Any:
        """Return the Python object; raises (JsException) when the proxy was destroyed."""
        if self.destroyed:
            raise JsException("Error", self.destroyed)
        return self.obj

    @property
    def typeof(self) -> str:  # type: ignore[override]
        return "function" if callable(self.obj) else "object"

    def clone_text(self) -> str:
        return "function(){}" if callable(self.obj) else "[object Object]"

    def to_json_value(self) -> Any:
        if callable(self.obj):
            return UNDEFINED
        shown = None if generation() == 26 else visible(self.obj)
        if isinstance(shown, list) and any(_is_borrowed(item) for item in shown):
            # The array that JSON gets is made by an iterator, whose proxies end with it.
            raise JsException("Error", EXHAUSTED)
        return {} if shown is None else shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PyProxy) and self.obj is other.obj

    def __hash__(self) -> int:
        return id(self.obj)


def _is_borrowed(item: Any) -> bool:
    return isinstance(item, PyProxy) and not item.kept and not callable(item.obj)


def visible(obj: Any) -> dict[str, Any] | list[Any] | None:
    """Return what JavaScript can list of a Python object: a dict's items, a sequence's elements."""
    if isinstance(obj, Mapping):
        return {str(key): unwrap(value) for key, value in obj.items()}
    if isinstance(obj, (Sequence, bytearray, memoryview)) and not isinstance(obj, str):
        return [unwrap(value) for value in obj]
    return None


def unwrap(value: Any) -> Any:
    """Return the JavaScript value of a Python one, as for an argument of any `js` function."""
    kind = type(value)
    if kind in UNCHANGED:
        return value
    if kind is int:
        return value if -SAFE < value < SAFE else BigInt(value)
    if value is None:
        return UNDEFINED
    if value is jsnull:
        return None
    return _unwrap_other(value)


def _unwrap_other(value: Any) -> Any:
    held = getattr(type(value), "_js_unwrap", None)
    if held is not None:
        return held(value)
    if isinstance(value, JsException):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, JsBigInt):
        return BigInt(int(value))
    if isinstance(value, int):
        return unwrap(int(value))
    if isinstance(value, float):
        return float(value)
    return PyProxy(value)


def to_host(value: Any) -> Any:
    """Return the canonical value that a host object gets for a JavaScript value.

    Containers stay the same objects unless something inside has to change.
    """
    if type(value) in _PLAIN:
        return value
    try:
        return _to_host(value)
    except RecursionError:
        # A value inside itself: only then is it worth remembering what was seen.
        return _copy_with_cycles(value, _to_host, {})


def _copy_with_cycles(value: Any, convert: Callable[[Any], Any], seen: dict[int, Any]) -> Any:
    """Copy dicts and lists that may contain themselves; `convert` gets everything else."""
    if not isinstance(value, (dict, list)):
        return convert(value)
    if id(value) in seen:
        return seen[id(value)]
    copy: Any = {} if isinstance(value, dict) else []
    seen[id(value)] = copy
    if isinstance(value, dict):
        copy.update((key, _copy_with_cycles(item, convert, seen)) for key, item in value.items())
    else:
        copy.extend(_copy_with_cycles(item, convert, seen) for item in value)
    return copy


def _to_host(value: Any) -> Any:
    if isinstance(value, PyProxy):
        return _host_from_python(value)
    if isinstance(value, TypedArray):
        return bytes(value) if value.kind == "Uint8Array" else value
    if type(value) is dict:
        changed = {key: _to_host(item) for key, item in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    if type(value) is list:
        items = [_to_host(item) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return settled(value) if isinstance(value, JsDate) else value


def _host_from_python(proxy: PyProxy) -> Any:
    obj = proxy.obj
    if inspect.isawaitable(obj):
        return obj
    if callable(obj):
        function = python_function(obj)
        function.kept = proxy.kept
        return function
    hidden = generation() == 26
    shown = visible(obj)
    if isinstance(shown, dict):
        if hidden:
            return _Unseen(obj=obj)
        return ProxiedDict({k: _to_host(v) for k, v in shown.items()}, obj=obj)
    if shown is not None:
        return ProxiedList(map(_to_host, shown), hidden=hidden, obj=obj)
    return proxy


class _Unseen(ProxiedDict):
    """A dict of whose items JavaScript sees none (Pyodide 0.26), told of where that matters."""

    __slots__ = ("_told",)

    def __init__(self, *, obj: Any) -> None:
        super().__init__(obj=obj)
        self._told = not obj

    def get(self, key: str, default: Any = None) -> Any:
        """Return the default; there is nothing."""
        if key in self.obj:
            self._tell()
        return default

    def items(self) -> Any:
        """Return nothing."""
        self._tell()
        return super().items()

    def _tell(self) -> None:
        if not self._told:
            self._told = running() is not None
            tell_unseen(self.obj, "this dict")


def tell_unseen(names: Iterable[Any], holder: str) -> None:
    """Make a finding of options that JavaScript does not find in what they are in."""
    host, listed = running(), ", ".join(map(repr, names))
    if host is None or not listed:
        return
    why = (
        "before 2025-09-29, in Pyodide 0.26, a dict, and the Map that `to_js` makes of it by "
        "default, has no properties"
        if generation() == 26
        else "an entry of a Map is no property"
    )
    host.find(
        "ignored_option",
        f"JavaScript does not see what is in {holder} ({listed}): {why}. Convert the dict by "
        "`to_js(..., dict_converter=Object.fromEntries)`, or give options by keyword",
        caller(),
    )


def python_function(function: Callable[..., Any]) -> Function:
    """Return the canonical function for a Python one: arguments arrive as `JsProxy`."""
    from emulator.runtime.proxies import wrap

    def call(*args: Any) -> Any:
        return to_host(unwrap(function(*map(wrap, args))))

    name = getattr(function, "__name__", "")
    return Function(call, name, source="function(){}", python=function)


def call_given(function: Any, *args: Any) -> Any:
    """Call a function that user code gave, with canonical values, as JavaScript does.

    The result is a JavaScript value: what a Python function made stays that very object.
    """
    from emulator.runtime.proxies import wrap

    python = getattr(function, "python", None)
    return function(*args) if python is None else unwrap(python(*map(wrap, args)))


async def await_given(function: Any, *args: Any) -> Any:
    """`call_given`, and wait for what it returns, as `await` of JavaScript does."""
    value = call_given(function, *args)
    if isinstance(value, PyProxy) and inspect.isawaitable(value.obj):
        return unwrap(await value.obj)
    return await value if inspect.isawaitable(value) else value


def call_value(function: Any, *args: Any) -> Any:
    """Call a JavaScript function, or a Python one in JavaScript's hands, with JavaScript values."""
    if isinstance(function, Function):
        return function(*(args if function.raw else map(to_host, args)))
    if isinstance(function, PyProxy) and callable(function.live()):
        from emulator.runtime.proxies import wrap

        return unwrap(function.obj(*map(wrap, args)))
    if isinstance(function, HostObject) and callable(function):
        return function(*map(to_host, args))
    raise JsException("TypeError", f"{describe(function)} is not a function")


def describe(value: Any) -> str:
    """Return how V8 names a value in a `TypeError`."""
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    return f'"{value}"' if isinstance(value, str) else "object"


def described(value: Any) -> str:
    """Return how V8 names a value together with its type."""
    if isinstance(value, bool):
        return f"boolean {str(value).lower()}"
    return f"number {format_number(value)}" if isinstance(value, (int, float)) else describe(value)


def iterate(value: Any) -> Iterable[Any]:
    """Return JavaScript's iterator over a JavaScript value; raises `TypeError` (JsException)."""
    from emulator.values import JsMap, JsSet

    if isinstance(value, PyProxy) and not callable(value.obj):
        try:
            return map(unwrap, value.obj)
        except TypeError:
            pass
    if isinstance(value, JsMap):
        return ([key, item] for key, item in value.items())
    if isinstance(value, (str, list, set, frozenset, bytes, JsSet)):
        return value
    if isinstance(value, TypedArray) and value.kind != "DataView":
        return value.view()
    if isinstance(value, Boxed) and value.kind == "String":
        return value.value  # type: ignore[no-any-return]
    if isinstance(value, HostObject) and hasattr(value, "__iter__"):
        return value
    raise JsException(
        "TypeError",
        f"{described(value)} is not iterable"
        + (
            ""
            if value is None or value is UNDEFINED
            else " (cannot read property Symbol(Symbol.iterator))"
        ),
    )
