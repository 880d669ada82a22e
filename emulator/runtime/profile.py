"""Which Python Workers runtime the compatibility flags ask for.

Outside a Worker the newest one is assumed, so that helpers such as `to_js` work there too.
"""

from __future__ import annotations

from emulator.runtime.host import running

_NEWEST = frozenset(
    {
        *("python_workers_314", "python_workers_20250116", "enable_python_external_sdk"),
        "fetch_iterable_type_support",
    }
)


def flags() -> frozenset[str]:
    """Return the compatibility flags of the running Worker."""
    host = running()
    return _NEWEST if host is None else host.flags


def generation() -> int:
    """Return the Pyodide generation: 26, 28 or 314."""
    enabled = flags()
    if "python_workers_314" in enabled:
        return 314
    return 28 if "python_workers_20250116" in enabled else 26


def is_modern() -> bool:
    """Whether the SDK comes from PyPI and converts values (else bindings are raw `JsProxy`)."""
    return "enable_python_external_sdk" in flags()
