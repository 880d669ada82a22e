"""The module `workers`: Cloudflare's Python SDK as far as it is here (python-api.md 1)."""

from __future__ import annotations

from typing import Any

from emulator.runtime.context import wait_until_current
from emulator.runtime.profile import is_modern
from emulator.runtime.rpc import _EnvWrapper, python_from_rpc, python_to_rpc, raw_env
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

# Names that are only there for annotations, as in the SDK.
Body = JSBody = Context = FetchKwargs = Headers = RequestInitCfProperties = Any

waitUntil = wait_until = wait_until_current

# In the SDK, but not in the emulator yet.
_NOT_YET = frozenset({"import_from_javascript", "patch_env"})

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
    "python_from_rpc",
    "python_to_rpc",
    "waitUntil",
    "wait_until",
]


def __getattr__(name: str) -> Any:
    """`env`, which depends on the Worker that asks, and the names that are missing."""
    if name == "env":
        return _EnvWrapper(raw_env()) if is_modern() else raw_env()
    if name in _NOT_YET:
        raise ImportError(
            f"workers-emulator does not provide `workers.{name}` yet, although production does; "
            "docs/fidelity.md lists what it has",
            name="workers",
        )
    raise AttributeError(f"module 'workers' has no attribute {name!r}")
