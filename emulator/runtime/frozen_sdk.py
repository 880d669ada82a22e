"""`workers._workers`, the one module that holds the SDK frozen in the runtime (python-api.md 1)."""

from emulator.runtime.frozen_rpc import _DurableObjectNamespaceWrapper, _FetcherWrapper
from emulator.runtime.frozen_workflows import (
    _WorkflowBindingWrapper,
    _WorkflowInstanceWrapper,
)
from emulator.runtime.rpc import _EnvWrapper
from emulator.runtime.sdk.workflow_errors import NonRetryableError
from emulator.runtime.workers import (
    Blob,
    BlobEnding,
    BlobValue,
    Body,
    Context,
    DurableObject,
    FetchKwargs,
    FetchResponse,
    File,
    FormData,
    FormDataValue,
    Headers,
    JSBody,
    Request,
    RequestInitCfProperties,
    Response,
    WorkerEntrypoint,
    WorkflowEntrypoint,
    fetch,
    handler,
    python_from_rpc,
    python_to_rpc,
)

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
    "NonRetryableError",
    "Request",
    "RequestInitCfProperties",
    "Response",
    "WorkerEntrypoint",
    "WorkflowEntrypoint",
    "_DurableObjectNamespaceWrapper",
    "_EnvWrapper",
    "_FetcherWrapper",
    "_WorkflowBindingWrapper",
    "_WorkflowInstanceWrapper",
    "fetch",
    "handler",
    "python_from_rpc",
    "python_to_rpc",
]
