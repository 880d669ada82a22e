"""The JavaScript classes `CacheStorage` and `Cache`, and the global `caches`.

What may be put and what is asked is checked here, in the words of the runtime (workerd, cache.c++);
whether it is kept, and for how long, is the service's affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.runtime.host import CacheLookup, WebResponse, current
from emulator.runtime.web import idl
from emulator.runtime.web.boundary import response_from_web
from emulator.runtime.web.promises import Rejected, Resolved
from emulator.runtime.web.request import Request
from emulator.runtime.web.response import Response
from emulator.runtime.web.url_parser import parse
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable

_CAPTURES: Final = "capture_async_api_throws"
_LONGEST_NAME: Final = 1024  # bytes; this one is too long
_NOT_IMPLEMENTED: Final = ("ignoreSearch", "ignoreVary", "cacheName")
_INVALID_URL: Final = "Invalid URL. Cache API keys must be fully-qualified, valid URLs."
_RANGE: Final = "Cannot cache response to a range request (206 Partial Content)."


class Cache(HostObject):
    """One cache; `name` is None for the default one."""

    js_class = "Cache"
    js_members = frozenset({"add", "addAll", "delete", "keys", "match", "matchAll", "put"})

    def __init__(self, name: str | None) -> None:
        self._name = name

    @classmethod
    def js_new(cls) -> NoReturn:
        """Refuse `new Cache()`."""
        raise JsException("TypeError", "Illegal constructor")

    def match(self, request: Any = UNDEFINED, options: Any = UNDEFINED) -> Awaitable[Any]:
        """Return a promise for what was put under this URL, undefined if it is not there."""
        try:
            takes_any_method = _ignores_method(options)
            asked = _request("match", request)
            if asked.method != "GET" and not takes_any_method:
                return Resolved(UNDEFINED)
            return self._found(current().caches.match(self._name, _lookup(asked)))
        except JsException as error:
            return _refused(error)

    @staticmethod
    async def _found(answer: Awaitable[WebResponse | None]) -> Any:
        response = await answer
        return UNDEFINED if response is None else response_from_web(response)

    def put(self, request: Any = UNDEFINED, response: Any = UNDEFINED) -> Awaitable[Any]:
        """Return a promise that is kept when the response is stored, or is found not storable."""
        try:
            if not isinstance(response, Response):
                raise idl.wrong_argument("put", "Cache", 2, "Response")
            if response.type == "error":
                raise JsException("TypeError", "Cache is unable to store an error response")
            asked = _request("put", request)
            _check_storable(asked, response)
            if response.status == 304:
                return Resolved(UNDEFINED)
            lookup = _lookup(asked)
            wire = WebResponse(
                response.status, response.statusText, response.wire_headers, response.take()
            )
            return current().caches.put(self._name, lookup, wire)
        except JsException as error:
            return _refused(error)

    def delete(self, request: Any = UNDEFINED, options: Any = UNDEFINED) -> Awaitable[Any]:
        """Return a promise for whether there was something to delete."""
        try:
            takes_any_method = _ignores_method(options)
            asked = _request("delete", request)
            if asked.method != "GET" and not takes_any_method:
                return Resolved(False)
            return current().caches.delete(self._name, _lookup(asked))
        except JsException as error:
            return _refused(error)

    def add(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("add", "Cache")

    def addAll(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("addAll", "Cache")

    def matchAll(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("matchAll", "Cache")

    def keys(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("keys", "Cache")


class CacheStorage(HostObject):
    """`caches`: the default cache, and others by name."""

    js_class = "CacheStorage"
    js_members = frozenset({"default", "delete", "has", "keys", "match", "open"})

    def __init__(self) -> None:
        self.default = Cache(None)

    @classmethod
    def js_new(cls) -> NoReturn:
        """Refuse `new CacheStorage()`."""
        raise JsException("TypeError", "Illegal constructor")

    def open(self, name: Any = UNDEFINED) -> Awaitable[Cache]:
        """Return a promise for the cache of that name."""
        try:
            if idl.missing(name):
                raise idl.wrong_argument("open", "CacheStorage", 1, "string")
            text = idl.string(name)
            if len(text.encode(errors="replace")) >= _LONGEST_NAME:
                raise JsException("TypeError", "Cache name is too long.")
        except JsException as error:
            return _refused(error)
        return Resolved(Cache(text))

    def match(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("match", "CacheStorage")

    def has(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("has", "CacheStorage")

    def delete(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("delete", "CacheStorage")

    def keys(self, *_: Any) -> NoReturn:
        """Refuse, as the runtime does."""
        raise _not_implemented("keys", "CacheStorage")


def _not_implemented(method: str, owner: str) -> JsException:
    text = f"Failed to execute '{method}' on '{owner}': the method is not implemented."
    return JsException("Error", text)


def _refused(error: JsException) -> Awaitable[Any]:
    """An error at once, or as the promise's, where the flag says so."""
    if _CAPTURES not in current().flags and error.message.startswith("Failed to execute"):
        raise error
    return Rejected(error)


def _request(method: str, value: Any) -> Request:
    if isinstance(value, Request):
        return value
    if idl.missing(value):
        raise idl.wrong_argument(method, "Cache", 1, "Request or string")
    return Request.js_new(value)


def _ignores_method(options: Any) -> bool:
    chosen = idl.options(options)
    for name in _NOT_IMPLEMENTED:
        if name in chosen:
            text = f"The '{name}' field on 'CacheQueryOptions' is not implemented."
            raise JsException("Error", text)
    return bool(chosen.get("ignoreMethod"))


def _check_storable(request: Request, response: Response) -> None:
    if request.method != "GET":
        raise JsException("TypeError", "Cannot cache response to non-GET request.")
    if response.status == 206:
        raise JsException("TypeError", _RANGE)
    if "*" in (response.headers.get("vary") or ""):
        raise JsException("TypeError", "Cannot cache response with 'Vary: *' header.")
    if response.webSocket is not None:
        raise JsException("TypeError", "Cannot cache WebSocket upgrade response.")


def _lookup(request: Request) -> CacheLookup:
    parts = parse(request.url)
    if not parts.host or parts.username or parts.password:
        raise JsException("TypeError", _INVALID_URL)
    cf = idl.options(request.cf)
    key = idl.string(cf["cacheKey"]) if cf.get("cacheKey") else request.url
    return CacheLookup(key, request.url, request.headers.pairs)
