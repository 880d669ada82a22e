"""`workers.fetch`."""

from __future__ import annotations

from http import HTTPMethod
from typing import Any

from emulator.runtime import profile
from emulator.runtime.sdk.http import AbortError, call_fetcher
from emulator.runtime.sdk.js_values import plain, wrap
from emulator.runtime.sdk.request import Request
from emulator.runtime.sdk.response import Response
from emulator.runtime.web.request import Request as WebRequest
from emulator.values import JsException


async def fetch(resource: Any, **other_options: Any) -> Response:
    """Fetch a URL, a `Request` or a `js.Request`.

    Options are JavaScript's (`method`, `headers`, `body`, `redirect`, `cf`, `signal`), and
    `fetcher`, the fetch function of a binding. Raises `AbortError`, an `OSError`, on failure.
    """
    if isinstance(resource, Request):
        resource = resource.js_object
    if isinstance(other_options.get("method"), HTTPMethod):
        other_options["method"] = other_options["method"].value
    fetcher = other_options.pop("fetcher", None)
    init = plain(other_options)
    if isinstance(resource, str) and profile.generation() == 314:
        # Pyodide 314 makes the request first, and its errors are JavaScript's.
        resource = wrap(WebRequest.js_new(resource, init))
    try:
        return Response(wrap(await call_fetcher(fetcher, resource, init)))
    except JsException as error:
        if profile.generation() == 26:
            raise OSError(error.message) from error.__cause__
        raise AbortError(error) from error.__cause__


fetch.__module__ = "workers.fetch"
