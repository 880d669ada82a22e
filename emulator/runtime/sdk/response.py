"""`workers.Response` and `workers.FetchResponse`."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from emulator.runtime import profile
from emulator.runtime.proxies import JsProxy
from emulator.runtime.sdk import http
from emulator.runtime.sdk.blob import Blob
from emulator.runtime.sdk.formdata import FormData
from emulator.runtime.sdk.headers import http_message, to_js_headers
from emulator.runtime.sdk.js_values import (
    behind,
    class_name,
    null_to_none,
    python_exception,
    wrap,
)
from emulator.runtime.sdk.request import js_body
from emulator.runtime.web import response as web
from emulator.values import VIEW_KINDS, JsException

_ACCEPTED = frozenset(VIEW_KINDS) | {
    "ArrayBuffer",
    "Blob",
    "Float16Array",
    "FormData",
    "ReadableStream",
    "Response",
    "URLSearchParams",
}


class FetchResponse(http.FetchResponse):
    """What `Response` adds to Pyodide's response."""

    # A fetch handler may return it; `pyodide.http.FetchResponse` it may not.
    crosses_as_response = True

    @property
    def body(self) -> Any:
        """Return the body as a `js.ReadableStream`, None if there is none."""
        return null_to_none(wrap(self._web.body))

    @property
    def js_object(self) -> Any:
        """Return the `js.Response`."""
        return self.js_response

    @property
    def headers(self) -> Any:
        """Return a copy of the headers; a missing one is None (a dict in the frozen SDK)."""
        if not profile.is_modern():
            return http.headers_as_dict(self._web.headers)
        return http_message(self._web.headers)

    async def form_data(self) -> FormData:
        """Return the form in the body; raises `TypeError` if there is none."""
        self._raise_if_failed()
        try:
            return FormData(await self._web.formData())
        except JsException as error:
            raise python_exception(error) from error

    async def formData(self) -> FormData:
        """Return the form in the body; an old name of `form_data`."""
        return await self.form_data()

    async def blob(self) -> Blob:
        """Return the body as a `Blob`."""
        self._raise_if_failed()
        return Blob(wrap(await self._web.blob()))

    def replace_body(self, body: Any) -> Response:
        """Return a response with the same status and headers and another body."""
        return Response(wrap(web.Response.js_new(js_body(body), self._web)))

    @staticmethod
    def redirect(url: str, status: HTTPStatus | int = HTTPStatus.FOUND) -> Any:
        """Return a redirect, as `js.Response`; `ValueError` for a status that is none."""
        try:
            return wrap(web.Response.redirect(behind(url), _code(status)))
        except JsException as error:
            raise python_exception(error) from error

    @staticmethod
    def from_json(
        data: Any,
        status: HTTPStatus | int = HTTPStatus.OK,
        status_text: str = "",
        headers: Any = None,
    ) -> Response:
        """Return a response with `json.dumps(data)`, and application/json unless told otherwise."""
        options = _options(status, status_text, headers)
        try:
            if isinstance(data, JsProxy):
                made = web.Response.of_json(behind(data), options)
            else:
                made = web.Response.js_new(json.dumps(data), options)
                if "headers" not in options or not options["headers"].has("content-type"):
                    made.headers.set("content-type", "application/json")
        except JsException as error:
            raise python_exception(error) from error
        return Response(made)

    def json(self, *args: Any, **kwargs: Any) -> Any:
        """Return the body parsed by `json.loads`; `Response.json(data, …)` is `from_json`."""
        if isinstance(self, Response):
            return super().json()
        return Response.from_json(self, *args, **kwargs)


class Response(FetchResponse):
    """The response to a request, with an API like that of JavaScript's."""

    def __init__(
        self,
        body: Any = None,
        status: HTTPStatus | int | None = None,
        status_text: str = "",
        headers: Any = None,
        web_socket: Any = None,
    ) -> None:
        """Make a response, or stand for a `js.Response`."""
        if type(body) is str and not (status or status_text or headers or web_socket):
            self._web = web.Response.of_text(body)
            return
        if isinstance(body, web.Response):
            self._web = body
            return
        _check_type(body)
        content = js_body(body)
        if isinstance(content, web.Response):
            if status is not None or status_text or headers is not None:
                raise ValueError(
                    "Expected no options when constructing Response from a js.Response"
                )
            self._web, self._url = content, content.url
            return
        self._web = web.Response.js_new(content, _options(status, status_text, headers, web_socket))

    def __repr__(self) -> str:
        shown = [f"status={self.status}"]
        if self.status_text:
            shown.append(f"status_text={self.status_text!r}")
        kind = self._web.headers.get("content-type")
        if kind is not None:
            shown.append(f"content_type={kind!r}")
        if self.url:
            shown.append(f"url={self.url!r}")
        if self.type != "default":
            shown.append(f"type={self.type!r}")
        return f"Response({', '.join(shown)})"


def _check_type(body: Any) -> None:
    kind = class_name(body)
    if kind is not None:
        if kind not in _ACCEPTED:
            raise TypeError(f"Unsupported type in Response: {kind}")
    elif body is not None and not isinstance(body, (str, FormData, bytes)):
        raise TypeError(f"Unsupported type in Response: {type(body).__name__}")


def _code(status: HTTPStatus | int) -> int:
    return status.value if isinstance(status, HTTPStatus) else status


def _options(
    status: HTTPStatus | int | None, status_text: str, headers: Any, web_socket: Any = None
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if status:
        options["status"] = behind(_code(status))
    if status_text:
        options["statusText"] = behind(status_text)
    if headers:
        options["headers"] = to_js_headers(headers)
    if web_socket:
        options["webSocket"] = behind(web_socket)
    return options


FetchResponse.__module__ = Response.__module__ = "workers.response"
