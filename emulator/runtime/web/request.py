"""The JavaScript class `Request`."""

from __future__ import annotations

from typing import Any, Final

from emulator.runtime import profile
from emulator.runtime.web import idl
from emulator.runtime.web.abort import AbortSignal
from emulator.runtime.web.body import Body, Content, extract
from emulator.runtime.web.headers import Headers, Pairs
from emulator.runtime.web.url_parser import InvalidUrl, parse
from emulator.values import UNDEFINED, JsException

# The methods the runtime's HTTP library knows; it refuses CONNECT, and others by not knowing them.
_METHODS: Final = frozenset(
    [
        "ACL",
        "BAN",
        "CHECKOUT",
        "COPY",
        "DELETE",
        "GET",
        "HEAD",
        "LOCK",
        "MERGE",
        "MKACTIVITY",
        "MKCOL",
        "MOVE",
        "MSEARCH",
        "NOTIFY",
        "OPTIONS",
        "PATCH",
        "POST",
        "PROPFIND",
        "PROPPATCH",
        "PURGE",
        "PUT",
        "QUERY",
        "REPORT",
        "SEARCH",
        "SUBSCRIBE",
        "TRACE",
        "UNLOCK",
        "UNSUBSCRIBE",
    ]
)
# Without `upper_case_all_http_methods` only these may be written in lower case.
_ALWAYS_UPPER: Final = frozenset(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"])
_CACHE_MODES: Final = frozenset({"no-store", "no-cache"})

_REDIRECT: Final = (
    'Invalid redirect value, must be one of "follow" or "manual" ("error" won\'t be implemented '
    'since it does not make sense at the edge; use "manual" and check the response status code).'
)
_INTEGRITY: Final = (
    "Subrequest integrity checking is not implemented. "
    "The integrity option must be either undefined or an empty string."
)


class Request(Body):
    """An HTTP request, come in or to be sent."""

    js_class = "Request"
    # The platform has no `credentials`, `mode`, `referrer` and the like: they are undefined.
    js_members = frozenset(
        [
            "arrayBuffer",
            "blob",
            "body",
            "bodyUsed",
            "bytes",
            "cache",
            "cf",
            "clone",
            "fetcher",
            "formData",
            "headers",
            "integrity",
            "json",
            "keepalive",
            "method",
            "redirect",
            "signal",
            "text",
            "url",
        ]
    )
    integrity = ""
    keepalive = False
    fetcher = None

    def __init__(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Headers | Pairs = (),
        content: Content = None,
        redirect: str = "follow",
        cf: object = UNDEFINED,
    ) -> None:
        """Hold parts that are valid already."""
        self.url = url
        self.method = method
        self.redirect = redirect
        self.cf = cf
        self.cache: object = UNDEFINED
        self._headers = headers
        self._content = content
        self._used = False
        self._signal: AbortSignal | None = None

    @classmethod
    def js_new(cls, input: object = UNDEFINED, init: object = UNDEFINED) -> Request:
        """Do `new Request(input, init)`."""
        base = input._reused(init) if isinstance(input, Request) else cls(_url(input))
        base._apply(init)
        return base

    @property
    def headers(self) -> Headers:  # type: ignore[override]
        """Return the headers, made into an object the first time."""
        if not isinstance(self._headers, Headers):
            self._headers = Headers(self._headers, immutable=True)
        return self._headers

    @property
    def signal(self) -> AbortSignal:
        """Return the signal given to the constructor, or one that never aborts."""
        if self._signal is None:
            self._signal = AbortSignal()
        return self._signal

    @property
    def chosen_signal(self) -> AbortSignal | None:
        """Return the signal if anybody holds one."""
        return self._signal

    def clone(self) -> Request:
        """Return the same request with a body of its own."""
        copy = Request(
            self.url,
            method=self.method,
            headers=self.headers.copy(),
            content=self.copy_content(),
            redirect=self.redirect,
            cf=self.cf,
        )
        copy.cache, copy._signal = self.cache, self._signal
        return copy

    def _reused(self, init: object) -> Request:
        """Return a request like this one, which gives its body away unless `init` has one."""
        replaced = idl.options(init).get("body") is not None
        if self._content is not None and self.bodyUsed and not replaced:
            raise JsException("TypeError", "Cannot reconstruct a Request with a used body.")
        copy = Request(
            self.url,
            method=self.method,
            headers=self.headers.copy(),
            content=None if replaced else self._content,
            redirect=self.redirect,
            cf=self.cf,
        )
        copy._signal = self._signal
        if not replaced:
            self._used = self._content is not None
        return copy

    def _apply(self, init: object) -> None:
        if isinstance(init, Request):
            init = init._as_options()
        elif not (init in (None, UNDEFINED) or _is_object(init)):
            raise idl.wrong_construction("Request", 2, "RequestInitializerDict or Request")
        chosen = idl.options(init)
        if "method" in chosen:
            self.method = _method(chosen["method"])
        if "headers" in chosen:
            self._headers = Headers.of_field(chosen["headers"], "RequestInitializerDict")
        self._apply_rest(chosen)
        if chosen.get("body") is not None:
            self._take_body(chosen["body"])
        if not isinstance(self._headers, Headers):
            self._headers = Headers(self._headers)

    def _apply_rest(self, chosen: dict[str, Any]) -> None:
        if "redirect" in chosen:
            self.redirect = idl.string(chosen["redirect"])
            if self.redirect not in ("follow", "manual"):
                raise JsException("TypeError", _REDIRECT)
        if chosen.get("signal") is not None:
            if not isinstance(chosen["signal"], AbortSignal):
                raise idl.wrong_field("signal", "RequestInitializerDict", "AbortSignal")
            self._signal = chosen["signal"]
        if "cache" in chosen:
            self.cache = idl.string(chosen["cache"])
            if self.cache not in _CACHE_MODES:
                raise JsException("TypeError", f"Unsupported cache mode: {self.cache}")
        if idl.string(chosen.get("integrity", "")):
            raise JsException("TypeError", _INTEGRITY)
        self.cf = chosen.get("cf", self.cf)

    def _take_body(self, value: object) -> None:
        if self.method in ("GET", "HEAD"):
            raise JsException("TypeError", "Request with a GET or HEAD method cannot have a body.")
        self._content, implied = extract(value)
        if implied is not None:
            if not isinstance(self._headers, Headers):
                self._headers = Headers(self._headers)
            self._headers.default("content-type", implied)

    def _as_options(self) -> dict[str, Any]:
        """Return this request as the second argument of the constructor sees it."""
        return {
            "method": self.method,
            "headers": self.headers,
            "body": self.body if self._content is not None else UNDEFINED,
            "redirect": self.redirect,
            "signal": UNDEFINED if self._signal is None else self._signal,
            "cf": self.cf,
        }


def _is_object(value: object) -> bool:
    return not isinstance(value, (str, bool, int, float))


def _url(value: object) -> str:
    if idl.missing(value):
        # `new Request()` and `new Request(undefined)` differ in JavaScript; Python's None is the
        # latter.
        raise JsException("TypeError", "Invalid URL: undefined")
    text = idl.string(value)
    try:
        return parse(text).href()
    except InvalidUrl:
        raise JsException("TypeError", f"Invalid URL: {text}") from None


def _method(value: object) -> str:
    text = idl.string(value)
    upper = text.upper()
    known = upper in _METHODS
    if known and text != upper and upper not in _ALWAYS_UPPER:
        known = "upper_case_all_http_methods" in profile.flags()
    if not known:
        raise JsException("TypeError", f"Invalid HTTP method string: {text}")
    return upper
