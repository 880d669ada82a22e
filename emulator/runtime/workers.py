"""The module `workers`: Cloudflare's Python SDK as far as it is here (python-api.md 1).

The SDK from PyPI has names that the one frozen in the runtime before 2026-04-21 lacks.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

from emulator.runtime.context import wait_until_current
from emulator.runtime.javascript import import_from_javascript, patch_env
from emulator.runtime.modules import submodule
from emulator.runtime.not_yet import is_import
from emulator.runtime.profile import generation, is_modern
from emulator.runtime.rpc import _EnvWrapper, importable_env, python_from_rpc, python_to_rpc
from emulator.runtime.sdk import (
    Blob,
    BlobEnding,
    BlobValue,
    FetchResponse,
    File,
    FormData,
    FormDataValue,
    Request,
    Response,
    fetch,
)
from emulator.runtime.sdk.entrypoints import (
    DurableObject,
    WorkerEntrypoint,
    WorkflowEntrypoint,
    handler,
)
from emulator.runtime.sdk.types import (
    Body,
    Context,
    FetchKwargs,
    Headers,
    JSBody,
    RequestInitCfProperties,
)

waitUntil = wait_until_current

# Not in the frozen SDK; the modules among them are `modules.py`'s.
_EXTERNAL: Final = frozenset(
    {"asgi", "gateway", "patch_env", "rpc", "types", "utils", "wait_until", "wsgi"}
)
# The modules that are attributes of `workers` from the start.
_FROZEN_LOADED: Final = frozenset({"_workers", "workflows"})
_LOADED: Final = frozenset(
    {
        *("blob", "entrypoints", "formdata", "request", "response"),
        *("rpc", "types", "utils", "workflows"),
    }
)
_SITE_PACKAGES: Final = {26: "/lib/python3.12/site-packages", 28: "/lib/python3.13/site-packages"}

# `__all__` depends on the Worker that asks.
DYNAMIC = True
__all__ = [
    "Blob",
    "BlobEnding",
    "BlobValue",
    "Body",
    "Context",
    "DurableObject",
    "FetchKwargs",
    "FetchResponse",
    "File",
    "FormData",
    "FormDataValue",
    "Headers",
    "JSBody",
    "Request",
    "RequestInitCfProperties",
    "Response",
    "WorkerEntrypoint",
    "WorkflowEntrypoint",
    "env",  # noqa: F822  `__getattr__` has it
    "fetch",
    "handler",
    "import_from_javascript",
    "python_from_rpc",
    "python_to_rpc",
    "waitUntil",
]


def __getattr__(name: str) -> Any:
    """What depends on the Worker that asks, and the names that are missing."""
    if name == "env":
        return _EnvWrapper(importable_env()) if is_modern() else importable_env()
    if name == "__all__":
        return [*__all__, "patch_env", "wait_until"] if is_modern() else list(__all__)
    imported = is_import(sys._getframe(1))
    if name in _EXTERNAL and not is_modern():
        raise _not_frozen(name, imported=imported)
    if name == "wait_until":
        return wait_until_current
    if not imported and name in (_LOADED if is_modern() else _FROZEN_LOADED):
        return import_module(f"workers.{name}")  # the SDK has imported it itself
    if name == "patch_env":
        return patch_env
    found = submodule(f"workers.{name}")
    if found is not None:
        return found
    raise AttributeError(f"module 'workers' has no attribute {name!r}")


def _not_frozen(name: str, *, imported: bool) -> ImportError | AttributeError:
    """Production's error for a name that came with the SDK from PyPI."""
    error: ImportError | AttributeError
    if imported:
        file = f"{_SITE_PACKAGES.get(generation(), _SITE_PACKAGES[28])}/workers/__init__.py"
        error = ImportError(f"cannot import name {name!r} from 'workers' ({file})", name="workers")
    else:
        error = AttributeError(f"module 'workers' has no attribute {name!r}")
    other = ": write `waitUntil`" if name == "wait_until" else ""
    error.add_note(
        f"The SDK frozen in the runtime, which a compatibility date before 2026-04-21 gives, has "
        f"no `workers.{name}`{other}, or use a newer date or the flag enable_python_external_sdk."
    )
    return error
