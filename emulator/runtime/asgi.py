"""The module `asgi`: `workers.asgi` of the SDK from PyPI, or that of the frozen SDK."""

from __future__ import annotations

import sys
from typing import Any, Final

from emulator.runtime.not_yet import is_import
from emulator.runtime.profile import is_modern
from emulator.runtime.sdk import asgi, frozen_asgi, utils
from emulator.runtime.sdk.asgi_lifespan import run_in_background

# Every name depends on the Worker that asks.
DYNAMIC = True
__all__: list[str] = []

_NAMES: Final = ("fetch", "request_to_scope", "websocket")
_EXTERNAL: Final = ("Options", "entrypoint")
# Not documented, and used all the same.
_INSIDE: Final = {"_to_js_headers": utils._to_js_headers, "run_in_background": run_in_background}


def __getattr__(name: str) -> Any:
    """Return the name as the Worker's SDK has it; others are missing there too."""
    if name == "env":
        return asgi.env_dependency()
    if name in _NAMES:
        return getattr(asgi if is_modern() else frozen_asgi, name)
    if name in _EXTERNAL and is_modern():
        return getattr(asgi, name)
    if name in _INSIDE:
        return _INSIDE[name]
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _EXTERNAL:
        raise _not_frozen(name, imported=is_import(sys._getframe(1)))
    raise AttributeError(f"module {_module()!r} has no attribute {name!r}")


def _module() -> str:
    return "workers.asgi" if is_modern() else "asgi"


def _not_frozen(name: str, *, imported: bool) -> ImportError | AttributeError:
    error: ImportError | AttributeError
    if imported:
        error = ImportError(f"cannot import name {name!r} from 'asgi'", name="asgi")
    else:
        error = AttributeError(f"module 'asgi' has no attribute {name!r}")
    error.add_note(
        "The SDK frozen in the runtime, which a compatibility date before 2026-04-21 gives, has no "
        f"`asgi.{name}`: call `asgi.fetch(app, request, self.env, self.ctx)` in a class `Default`."
    )
    return error
