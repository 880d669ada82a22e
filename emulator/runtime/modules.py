"""The modules of Cloudflare's Python runtime that Worker code imports, built by name.

Each is made once per process, on first import, from the classes of this package; `importer.py`
serves them. A module that production has and the emulator does not yet have raises an
`ImportError` that says so, never a silent stand-in. What depends on the Worker's generation (names
of `workers`, Pyodide's version) is looked up at each access, since Workers share the modules.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from emulator import compatibility
from emulator.runtime.not_yet import not_yet
from emulator.runtime.profile import flags, generation, is_modern, pyodide_version

if TYPE_CHECKING:
    from collections.abc import Callable

# The module of ours behind each.
_SOURCES: dict[str, str] = {
    "asgi": "emulator.runtime.asgi",
    "workers": "emulator.runtime.workers",
    "workers._workers": "emulator.runtime.frozen_sdk",
    "workers.blob": "emulator.runtime.sdk.blob",
    "workers.entrypoints": "emulator.runtime.sdk.entrypoints",
    "workers.fetch": "emulator.runtime.sdk.fetch",
    "workers.formdata": "emulator.runtime.sdk.formdata",
    "workers.gateway": "emulator.runtime.sdk.gateway",
    "workers.gateway.options": "emulator.runtime.sdk.gateway",
    "workers.request": "emulator.runtime.sdk.request",
    "workers.response": "emulator.runtime.sdk.response",
    "workers.rpc": "emulator.runtime.rpc",
    "workers.types": "emulator.runtime.sdk.types",
    "workers.utils": "emulator.runtime.sdk.utils",
    "workers.workflows": "emulator.runtime.sdk.workflow_errors",
    "workers.wsgi": "emulator.runtime.sdk.wsgi",
    "cloudflare.workers": "emulator.runtime.workers",
    "js": "emulator.runtime.js",
    "pyodide.code": "emulator.runtime.code",
    "pyodide.ffi": "emulator.runtime.ffi",
    "pyodide.http": "emulator.runtime.sdk.http",
    "pyodide.webloop": "emulator.runtime.webloop",
}
_PACKAGES = frozenset({"workers", "workers.gateway", "pyodide", "_pyodide", "cloudflare"})
# All below these names is the emulator's, or nobody's: installed ones cannot work here.
_SERVED = frozenset(
    {
        *("workers", "js", "pyodide", "_pyodide", "asgi", "pyodide_js"),
        *("_cloudflare_compat_flags", "_pyodide_entrypoint_helper"),
    }
)
# Where the SDK was at first; it shares the name with Cloudflare's REST client.
_FIRST_HOME = "cloudflare.workers"
# Packages without a name that user code is known to use.
_EMPTY = {
    "_pyodide": "Pyodide's inside, which is not the emulator's.",
    "cloudflare": "The package in which the SDK was before 2025.",
}
# Modules of the SDK from PyPI only, and of the one frozen in the runtime (python-api.md 1).
_EXTERNAL = frozenset(
    {
        *("workers.asgi", "workers.wsgi", "workers.gateway", "workers.gateway.options"),
        *("workers.entrypoints", "workers.rpc", "workers.utils"),
        *("workers.blob", "workers.fetch", "workers.formdata"),
        *("workers.request", "workers.response", "workers.types"),
    }
)
_FROZEN = frozenset({"workers._workers"})
# In production, but not in the emulator yet.
_NOT_YET = frozenset({"_pyodide_entrypoint_helper", "pyodide.console", "pyodide_js"})


def is_served(name: str) -> bool:
    """Whether the emulator answers for an import of `name`."""
    return name.partition(".")[0] in _SERVED


def is_first_home(name: str) -> bool:
    """Whether `name` is where older runtimes have the SDK too, for a Worker with such a one."""
    return name in ("cloudflare", _FIRST_HOME) and generation() == 26


def hidden_from(enabled: frozenset[str]) -> tuple[str, ...]:
    """Return the modules that Workers with other flags import, and one with these must not see."""
    modern = "enable_python_external_sdk" in enabled
    hidden = sorted(_FROZEN if modern else _EXTERNAL)
    return tuple(hidden) if compatibility.generation(enabled) == 26 else (*hidden, _FIRST_HOME)


def build(name: str) -> ModuleType:
    """Make the module `name`; raises `ImportError` for one there is not."""
    if name in (_FROZEN if is_modern() else _EXTERNAL):
        raise _of_other_sdk(name)
    if name in _NOT_YET:
        raise not_yet(name, imported=True)
    if name == "pyodide":
        return _pyodide()
    if name == "workers.asgi":
        return import_module("asgi")  # one module with two names
    if name == "_cloudflare_compat_flags":
        return _compat_flags()
    if name in _EMPTY:
        return ModuleType(name, _EMPTY[name])
    source = _SOURCES.get(name)
    if source is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    if name == "js":
        import_module("emulator.runtime.web")  # whose classes are among its names
    return _mirror(name, import_module(source))


def _of_other_sdk(name: str) -> ModuleNotFoundError:
    error = ModuleNotFoundError(f"No module named {name!r}", name=name)
    other = "the SDK frozen in the runtime (before" if is_modern() else "the SDK from PyPI (since"
    error.add_note(f"Only {other} 2026-04-21) has `{name}`; this Worker has the other SDK.")
    return error


def is_package(name: str) -> bool:
    """Whether `name` has submodules."""
    return name in _PACKAGES


def _mirror(name: str, source: ModuleType) -> ModuleType:
    module = _Shared(name, source.__doc__)
    lookup: Callable[[str], Any] | None = getattr(source, "__getattr__", None)
    names = getattr(source, "__all__", None)
    if names is None:
        names = [key for key in source.__dict__ if not key.startswith("_")]
    module.__dict__.update({key: source.__dict__[key] for key in names if key in source.__dict__})
    if not hasattr(source, "DYNAMIC"):
        module.__dict__["__all__"] = list(names)
    if lookup is not None:
        module.__dict__["__getattr__"] = lookup
    if "__dir__" in source.__dict__:
        module.__dict__["__dir__"] = source.__dict__["__dir__"]
    return module


class _Shared(ModuleType):
    """A module for Workers of either SDK, so that it must not keep the submodules one imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and hasattr(self, "__getattr__")):
            super().__setattr__(name, value)


def submodule(name: str) -> ModuleType | None:
    """Return a module that was imported, if the running Worker's SDK has it."""
    missing = name in (_FROZEN if is_modern() else _EXTERNAL)
    return None if missing else sys.modules.get(name)


def _pyodide() -> ModuleType:
    module = ModuleType("pyodide", "Pyodide, as far as Worker code can tell.")
    module.__dict__["__getattr__"] = _of_pyodide
    return module


def _compat_flags() -> ModuleType:
    module = ModuleType("_cloudflare_compat_flags", "The Worker's compatibility flags.")
    module.__dict__["__getattr__"] = _compat_flag
    return module


def _compat_flag(name: str) -> bool:
    if name.startswith("__"):
        raise AttributeError(name)
    return name in flags()


def _of_pyodide(name: str) -> Any:
    if name == "__version__":
        return pyodide_version()
    raise AttributeError(f"module 'pyodide' has no attribute {name!r}")
