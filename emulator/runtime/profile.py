"""Which Python Workers runtime the compatibility flags ask for.

Outside a Worker the newest one is assumed, so that helpers such as `to_js` work there too.
"""

from __future__ import annotations

from emulator import compatibility
from emulator.runtime.host import running

_NEWEST = frozenset(
    {
        *("python_workers_314", "python_workers_20250116", "enable_python_external_sdk"),
        "fetch_iterable_type_support",
    }
)
_PYODIDE = {26: "0.26.0a2", 28: "0.28.2", 314: "314.0.6"}


def flags() -> frozenset[str]:
    """Return the compatibility flags of the running Worker."""
    host = running()
    return _NEWEST if host is None else host.flags


def generation() -> int:
    """Return the Pyodide generation: 26, 28 or 314."""
    return compatibility.generation(flags())


def pyodide_version() -> str:
    """Return Pyodide's version (python-api.md 2.4)."""
    enabled = flags()
    if "python_workers_20260610" in enabled and "python_workers_314" not in enabled:
        return "314.0.4"
    return _PYODIDE[generation()]


def is_modern() -> bool:
    """Whether the SDK comes from PyPI and converts values (else bindings are raw `JsProxy`)."""
    return "enable_python_external_sdk" in flags()


def has_importable_env() -> bool:
    """Whether `from workers import env` gives the bindings; a flag takes them away."""
    return "disallow_importable_env" not in flags()
