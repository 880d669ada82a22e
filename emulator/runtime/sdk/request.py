"""`workers.Request`."""

from __future__ import annotations

import json
from http import HTTPMethod
from typing import Any

from emulator.runtime.profile import is_modern
from emulator.runtime.sdk.blob import Blob
from emulator.runtime.sdk.formdata import FormData
from emulator.runtime.sdk.headers import HTTPMessageMapping, http_message, to_js_headers
from emulator.runtime.sdk.js_values import behind, null_to_none, python_exception, wrap
from emulator.runtime.web import request as web
from emulator.values import JsException

# The class has methods called `bytes` and `json`.
Bytes = bytes


class Request:
    """An HTTP request, come in or to be sent."""

    _web: web.Request
    _proxy: Any = None

    def __init__(self, input: Any, **other_options: Any) -> None:
        """Make a request from a URL or another request, or stand for a `js.Request`."""
        if isinstance(input, web.Request):
            self._web = input
            return
        found = input._web if isinstance(input, Request) else behind(input)
        if isinstance(found, web.Request) and not isinstance(input, Request):
            if other_options:
                raise ValueError("Expected no options when constructing Request from a js.Request")
            self._web = found
            return
        self._web = web.Request.js_new(found, _init(other_options))

    def __repr__(self) -> str:
        return f"Request(method={self._web.method!r}, url={self._web.url!r})"

    @property
    def js_object(self) -> Any:
        """Return the `js.Request`."""
        if self._proxy is None:
            self._proxy = wrap(self._web)
        return self._proxy

    # Upstream's attribute, which its own examples use.
    _js_request = js_object

    @property
    def url(self) -> str:
        """Return the URL."""
        return self._web.url

    @property
    def method(self) -> HTTPMethod:
        """Return the method; raises `KeyError` for one that `http.HTTPMethod` does not have."""
        return HTTPMethod[self._web.method]

    @property
    def headers(self) -> HTTPMessageMapping:
        """Return a copy of the headers; a missing one is None."""
        return http_message(self._web.headers)

    @property
    def cf(self) -> Any:
        """Return Cloudflare's properties of the request as a `JsProxy`, None if there are none."""
        return null_to_none(wrap(self._web.cf))

    @property
    def body(self) -> Any:
        """Return the body as a `js.ReadableStream`, null if there is none."""
        return wrap(self._web.body)

    @property
    def body_used(self) -> bool:
        """Tell whether the body was read."""
        return self._web.bodyUsed

    @property
    def cache(self) -> Any:
        """Return the cache mode, None unless one was given."""
        return wrap(self._web.cache)

    @property
    def integrity(self) -> str:
        """Return "": the runtime has no integrity checks."""
        return self._web.integrity

    @property
    def keepalive(self) -> bool:
        """Return False."""
        return self._web.keepalive

    @property
    def redirect(self) -> str:
        """Return "follow" or "manual"."""
        return self._web.redirect

    def __getattr__(self, name: str) -> Any:
        # The SDK has these properties, the runtime's Request does not.
        if name in _NOT_IN_THE_RUNTIME:
            raise AttributeError(_NOT_IN_THE_RUNTIME[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def clone(self) -> Request:
        """Return the same request with a body of its own; raises `OSError` after reading."""
        self._raise_if_failed()
        return Request(self._web.clone())

    async def buffer(self) -> Any:
        """Return the body as a `js.ArrayBuffer`."""
        self._raise_if_failed()
        return wrap(await self._web.arrayBuffer())

    async def form_data(self) -> FormData:
        """Return the form in the body; raises `TypeError` if there is none."""
        self._raise_if_failed()
        try:
            return FormData(await self._web.formData())
        except JsException as error:
            raise python_exception(error) from error

    async def blob(self) -> Blob:
        """Return the body as a `Blob`."""
        self._raise_if_failed()
        return Blob(wrap(await self._web.blob()))

    async def bytes(self) -> Bytes:
        """Return the body."""
        self._raise_if_failed()
        return await self._web.bytes()

    async def json(self, **kwargs: Any) -> Any:
        """Return the body parsed by `json.loads(text, **kwargs)`."""
        self._raise_if_failed()
        return json.loads(await self._web.text(), **kwargs)

    async def text(self) -> str:
        """Return the body read as UTF-8."""
        self._raise_if_failed()
        return await self._web.text()

    def _raise_if_failed(self) -> None:
        if self._web.bodyUsed:
            raise OSError("Body already used")


# Python's name -> JavaScript's, which is the error's text.
_NOT_IN_THE_RUNTIME = {
    "credentials": "credentials",
    "destination": "destination",
    "is_history_navigation": "isHistoryNavigation",
    "mode": "mode",
    "referrer": "referrer",
    "referrer_policy": "referrerPolicy",
}


def _init(options: dict[str, Any]) -> dict[str, Any]:
    """Return the SDK's keyword arguments as JavaScript's options object."""
    init = {
        name: behind(value) for name, value in options.items() if name not in ("headers", "body")
    }
    if isinstance(options.get("method"), HTTPMethod):
        init["method"] = options["method"].value
    if "headers" in options:
        init["headers"] = to_js_headers(options["headers"])
    body = options.get("body")
    if body is not None:
        # The frozen SDK hands a proxy on, of which JavaScript takes the text.
        frozen = not is_modern() and isinstance(body, (bytes, FormData))
        init["body"] = str(body) if frozen else js_body(body)
    return init


def js_body(body: Any) -> Any:
    """Return the `body` argument of the SDK as JavaScript sees it."""
    if isinstance(body, (bytes, str)):
        return body
    return body._web if isinstance(body, FormData) else behind(body)


Request.__module__ = "workers.request"

__all__ = ["Request", "js_body"]
