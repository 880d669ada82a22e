"""The web classes of Cloudflare's Python SDK: `workers.Request`, `Response`, `fetch` and others."""

from emulator.runtime.rpc import register_class
from emulator.runtime.sdk.blob import Blob, BlobEnding, BlobValue, File
from emulator.runtime.sdk.fetch import fetch
from emulator.runtime.sdk.formdata import FormData, FormDataValue
from emulator.runtime.sdk.request import Request
from emulator.runtime.sdk.response import FetchResponse, Response

__all__ = [
    "Blob",
    "BlobEnding",
    "BlobValue",
    "FetchResponse",
    "File",
    "FormData",
    "FormDataValue",
    "Request",
    "Response",
    "fetch",
]

register_class("Blob", Blob)
register_class("File", lambda proxy: File(proxy, proxy.name))
register_class("FormData", FormData)
register_class("Request", Request)
register_class("Response", Response)
