"""The JavaScript class `Response`."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any, ClassVar, Final

from emulator.runtime.web import idl
from emulator.runtime.web.body import Body, Content, extract
from emulator.runtime.web.headers import Headers, Pairs
from emulator.runtime.web.status_text import default_status_text
from emulator.runtime.web.text import utf8
from emulator.runtime.web.url_parser import InvalidUrl, parse
from emulator.runtime.web.websocket import WebSocket
from emulator.values import UNDEFINED, JsException, to_json

NULL_BODY: Final = frozenset({101, 204, 205, 304})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOT_A_REASON: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_STATUS: Final = (
    "Responses may only be constructed with status codes in the range 200 to 599, inclusive."
)
_NULL_STATUS: Final = "Response with null body status (101, 204, 205, or 304) cannot have a body."
_SOCKET_STATUS: Final = "Responses with a WebSocket must have status code 101."
_TEXT: Final = (("content-type", "text/plain;charset=UTF-8"),)


class _StaticOrMethod:
    """The attribute `json`: `of_json` of the class, `Body.json` of an instance."""

    def __get__(self, response: Response | None, owner: type[Response]) -> Any:
        return owner.of_json if response is None else partial(Body.json, response)


class Response(Body):
    """An HTTP response, to be returned or got from `fetch`."""

    js_class = "Response"
    js_members = frozenset(
        [
            "arrayBuffer",
            "blob",
            "body",
            "bodyUsed",
            "bytes",
            "cf",
            "clone",
            "formData",
            "headers",
            "json",
            "ok",
            "redirected",
            "status",
            "statusText",
            "text",
            "type",
            "url",
            "webSocket",
        ]
    )
    js_statics: ClassVar[frozenset[str]] = frozenset({"error", "json", "redirect"})

    def __init__(
        self,
        content: Content = None,
        *,
        status: int = 200,
        status_text: str | None = None,
        headers: Headers | Pairs = (),
        url: str = "",
        redirected: bool = False,
    ) -> None:
        """Hold parts that are valid already."""
        self.status = status
        self._status_text = status_text
        self.url = url
        self.redirected = redirected
        self.type = "default"
        self.webSocket: WebSocket | None = None
        self.cf: object = UNDEFINED
        self._headers = headers
        self._content = content
        self._used = False

    @property
    def statusText(self) -> str:
        """Return the reason phrase: the one that was given, or the runtime's for the status."""
        if self._status_text is None:
            return default_status_text(self.status)
        return self._status_text

    @classmethod
    def js_new(cls, body: object = UNDEFINED, init: object = UNDEFINED) -> Response:
        """Do `new Response(body, init)`."""
        content, implied = extract(body)
        response = cls(content)
        if init is not UNDEFINED and init is not None:
            response._apply(init)
        if response.status in NULL_BODY and content is not None:
            response._drop_empty(body)
        if implied is not None:
            response._imply(implied)
        return response

    @classmethod
    def of_text(cls, text: str) -> Response:
        """Do `new Response(text)`, which most handlers end with."""
        return cls(utf8(text), headers=_TEXT)

    @classmethod
    def of_json(cls, data: object = UNDEFINED, init: object = UNDEFINED) -> Response:
        """Do `Response.json(data, init)`."""
        content = b"undefined" if idl.missing(data) else to_json(data).encode()
        response = cls.js_new(content, init)
        response.headers.default("content-type", "application/json")
        return response

    @classmethod
    def redirect(cls, url: object = UNDEFINED, status: object = UNDEFINED) -> Response:
        """Do `Response.redirect(url, status)`."""
        if idl.missing(url):
            raise idl.wrong_argument("redirect", "Response", 1, "string")
        code = 302 if idl.missing(status) else idl.integer(status)
        if code not in _REDIRECTS:
            raise JsException(
                "RangeError",
                f"{code} is not a redirect status code. "
                "It must be one of: 301, 302, 303, 307, or 308.",
            )
        text = idl.string(url)
        try:
            location = parse(text).href()
        except InvalidUrl:
            raise JsException("TypeError", f"Unable to parse URL: {text}") from None
        return cls(status=code, headers=Headers((("location", location),), immutable=True))

    @classmethod
    def error(cls) -> Response:
        """Do `Response.error()`."""
        response = cls(status=0)
        response.type = "error"
        return response

    # `Response.json(data)` makes a response, `response.json()` reads one.
    json = _StaticOrMethod()

    @property
    def headers(self) -> Headers:  # type: ignore[override]
        """Return the headers, made into an object the first time."""
        if not isinstance(self._headers, Headers):
            self._headers = Headers(self._headers)
        return self._headers

    @property
    def wire_headers(self) -> Pairs:
        """Return the headers as they are sent."""
        headers = self._headers
        return headers.pairs if isinstance(headers, Headers) else headers

    @property
    def announced_length(self) -> int | None:
        """Return how many bytes a `FixedLengthStream` has announced."""
        return getattr(self._content, "length", None)

    @property
    def ok(self) -> bool:
        """Tell whether the status is 200 to 299."""
        return 200 <= self.status < 300

    def clone(self) -> Response:
        """Return the same response with a body of its own."""
        if self.webSocket is not None:
            text = "Cannot clone a response to a WebSocket handshake."
            raise JsException("TypeError", text)
        copy = Response(
            self.copy_content(),
            status=self.status,
            status_text=self._status_text,
            headers=self.headers.copy(),
            url=self.url,
            redirected=self.redirected,
        )
        copy.type, copy.cf = self.type, self.cf
        return copy

    def _apply(self, init: object) -> None:
        if isinstance(init, Response):
            self.status, self._status_text = init.status, init._status_text
            self._headers = init.headers.copy()
            return
        if isinstance(init, (str, bool, int, float)):
            raise idl.wrong_construction("Response", 2, "InitializerDict or Response")
        chosen = idl.options(init)
        if "status" in chosen:
            self.status = _status(chosen["status"], socket="webSocket" in chosen)
        if "statusText" in chosen:
            self._status_text = _reason(chosen["statusText"])
        if "headers" in chosen:
            self._headers = Headers.of_field(chosen["headers"], "InitializerDict")
        if chosen.get("encodeBody", "automatic") not in ("automatic", "manual"):
            text = idl.string(chosen["encodeBody"])
            raise JsException("TypeError", f"encodeBody: unexpected value: {text}")
        self.cf = chosen.get("cf", self.cf)
        self._take_socket(chosen)

    def _take_socket(self, chosen: dict[str, Any]) -> None:
        socket = chosen.get("webSocket")
        if socket is None:
            return
        if not isinstance(socket, WebSocket):
            raise idl.wrong_field("webSocket", "InitializerDict", "WebSocket")
        if self.status != 101:
            raise JsException("RangeError", _SOCKET_STATUS)
        self.webSocket = socket

    def _drop_empty(self, body: object) -> None:
        # An empty text is no body here, as in production.
        if body != "":
            raise JsException("TypeError", _NULL_STATUS)
        self._content = None

    def _imply(self, content_type: str) -> None:
        if isinstance(self._headers, Headers):
            self._headers.default("content-type", content_type)
        else:
            self._headers = (("content-type", content_type),)


def _status(value: object, *, socket: bool) -> int:
    number = idl.number(value)
    status = int(number) if math.isfinite(number) else 0
    if not (200 <= status <= 599 or (socket and status == 101)):
        raise JsException("RangeError", _STATUS)
    return status


def _reason(value: object) -> str:
    text = idl.string(value)
    if _NOT_A_REASON.search(text):
        raise JsException("TypeError", "Invalid statusText")
    return text
