"""The modules of Cloudflare's Python runtime that Worker code imports, built by name.

Each is made once per process, on first import, from the classes of this package; `importer.py`
serves them. A module that production has and the emulator does not yet have raises an
`ImportError` that says so, never a silent stand-in. What depends on the Worker's generation (names
of `workers`, Pyodide's version) is looked up at each access, since Workers share the modules.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from emulator.runtime.not_yet import not_yet
from emulator.runtime.profile import generation, is_modern

if TYPE_CHECKING:
    from collections.abc import Callable

# The module of ours behind each.
_SOURCES: dict[str, str] = {
    "workers": "emulator.runtime.workers",
    "workers._workers": "emulator.runtime.frozen_sdk",
    "workers.entrypoints": "emulator.runtime.sdk.entrypoints",
    "workers.rpc": "emulator.runtime.rpc",
    "workers.workflows": "emulator.runtime.sdk.workflow_errors",
    "js": "emulator.runtime.js",
    "pyodide.ffi": "emulator.runtime.ffi",
    "pyodide.http": "emulator.runtime.sdk.http",
}
_PACKAGES = frozenset({"workers", "pyodide"})
# All below these names is the emulator's, or nobody's: installed ones cannot work here.
_SERVED = frozenset({"workers", "js", "pyodide", "_pyodide", "asgi"})
# Modules of the SDK from PyPI only, and of the one frozen in the runtime (python-api.md 1).
_EXTERNAL = frozenset(
    {
        *("workers.asgi", "workers.wsgi", "workers.gateway"),
        *("workers.entrypoints", "workers.rpc", "workers.utils"),
    }
)
_FROZEN = frozenset({"workers._workers"})
# Pyodide's version by generation (python-api.md 2.4).
_PYODIDE = {26: "0.26.0a2", 28: "0.28.2", 314: "314.0.6"}
# In production, but not in the emulator yet.
_NOT_YET = frozenset(
    {
        "_pyodide",
        "asgi",
        "workers.asgi",
        "workers.wsgi",
        "workers.gateway",
        "workers.utils",
        "pyodide.code",
        "pyodide.webloop",
    }
)


def is_served(name: str) -> bool:
    """Whether the emulator answers for an import of `name`."""
    return name.partition(".")[0] in _SERVED


def build(name: str) -> ModuleType:
    """Make the module `name`; raises `ImportError` for one there is not."""
    if name in (_FROZEN if is_modern() else _EXTERNAL):
        raise _of_other_sdk(name)
    if name in _NOT_YET:
        raise not_yet(name, imported=True)
    if name == "pyodide":
        return _pyodide()
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
    module = ModuleType(name, source.__doc__)
    lookup: Callable[[str], Any] | None = getattr(source, "__getattr__", None)
    names = getattr(source, "__all__", None)
    if names is None:
        names = [key for key in source.__dict__ if not key.startswith("_")]
    module.__dict__.update({key: source.__dict__[key] for key in names if key in source.__dict__})
    if not hasattr(source, "DYNAMIC"):
        module.__dict__["__all__"] = list(names)
    if lookup is not None:
        module.__dict__["__getattr__"] = lookup
    return module


def _pyodide() -> ModuleType:
    module = ModuleType("pyodide", "Pyodide, as far as Worker code can tell.")
    module.__dict__["IN_PYODIDE"] = True
    module.__dict__["__getattr__"] = _of_pyodide
    return module


def _of_pyodide(name: str) -> Any:
    if name == "__version__":
        return _PYODIDE[generation()]
    raise AttributeError(f"module 'pyodide' has no attribute {name!r}")
