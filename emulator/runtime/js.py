"""The globals of JavaScript that `import js` and `from js import …` give to Workers code.

`GLOBALS` has them by name as JavaScript values; classes of the web platform are added with
`register`. A name that is not here raises, as in production: nothing is ever a silent mock.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.runtime.calls import invoke
from emulator.runtime.js_basics import Constructor
from emulator.runtime.js_binary import BINARY
from emulator.runtime.js_reflect import REFLECTION
from emulator.runtime.js_timers import TIMERS
from emulator.runtime.not_yet import JS_GLOBALS, is_import, not_yet
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import to_host
from emulator.values import (
    Function,
    HostObject,
    Opaque,
)

if TYPE_CHECKING:
    from collections.abc import Callable

from emulator.runtime.js_builtins import BUILTINS

# Every global comes through `__getattr__`.
__all__: list[str] = []


class _Later(NamedTuple):
    """A class that is loaded when it is first asked for: the module that has it."""

    module: str


class _Globals(dict[str, Any]):
    """The globals by name."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if type(value) is _Later:
            value = self[name] = as_global(getattr(import_module(value.module), name))
        return value

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]


GLOBALS: Final = _Globals()


def register(name: str, value: Any) -> None:
    """Add a global: a `HostObject` class becomes a JavaScript class, a callable a function."""
    GLOBALS[name] = as_global(value)


def register_later(name: str, module: str) -> None:
    """Add the class of this name that a module has; few Workers need it, and it takes a while."""
    GLOBALS[name] = _Later(module)


def as_global(value: Any) -> Any:
    """Return the JavaScript value for something registered."""
    if isinstance(value, type) and issubclass(value, HostObject):
        return host_class(value)
    if isinstance(value, (Opaque, HostObject)) or not callable(value):
        return value
    return _host_function(value, getattr(value, "__name__", ""))


def _host_function(function: Callable[..., Any], name: str) -> Function:
    return Function(lambda *args: invoke(function, args), name)


def host_class(cls: type[HostObject]) -> Constructor:
    """Return the JavaScript class whose instances are those of `cls`."""
    make = getattr(cls, "js_new", cls)
    statics: dict[str, Any] = {}
    for name in sorted(cls.js_statics):
        member = getattr(cls, name)
        statics[name] = _host_function(member, name) if callable(member) else member

    def construct(*args: Any) -> Any:
        return invoke(make, [to_host(arg) for arg in args])

    return Constructor(cls.js_class, construct, statics=statics)


def __getattr__(name: str) -> Any:
    """Return a global as user code sees it.

    What is missing raises `AttributeError`, or `ImportError` where production would have it.
    """
    if name == "undefined":
        return None
    bare = name[:-1] if name.endswith("_") else name
    if name in GLOBALS or bare in GLOBALS:
        return wrap(GLOBALS.get(name, GLOBALS.get(bare)))
    if name in JS_GLOBALS:
        raise not_yet(f"js.{name}", imported=is_import(sys._getframe(1)))
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted([*GLOBALS, "undefined"])


class _GlobalThis(HostObject):
    js_class = "ServiceWorkerGlobalScope"

    def js_lookup(self, name: str) -> Any:
        if name in GLOBALS:
            return GLOBALS[name]
        if name in JS_GLOBALS:
            raise not_yet(f"js.{name}", imported=False)
        raise AttributeError(name)

    def js_keys(self) -> list[str]:
        return []


GLOBALS.update({name: as_global(value) for name, value in BINARY.items()})


GLOBALS.update(TIMERS)


GLOBALS.update(BUILTINS)
GLOBALS.update(REFLECTION)
GLOBALS.update({"globalThis": _GlobalThis(), "self": _GlobalThis()})
