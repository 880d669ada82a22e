"""Headers as the SDK hands them to Python, and back."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any

from emulator.runtime import profile
from emulator.runtime.pyproxy import unwrap
from emulator.runtime.sdk.js_values import behind
from emulator.runtime.web.headers import Headers

_COOKIE = "set-cookie"


class HTTPMessageMapping(http.client.HTTPMessage, Mapping[str, str]):  # type: ignore[misc]
    """Headers by name: case does not matter, a missing one is None and no `KeyError`."""

    _headers: list[tuple[str, str]]

    @classmethod
    def of(cls, headers: Headers, *, preserve_commas: bool) -> HTTPMessageMapping:
        """Return a copy of JavaScript's headers; changing it changes nothing else.

        With the flag `python_request_headers_preserve_commas` cookies come first, under the name
        "Set-Cookie".
        """
        message = cls()
        pairs = [(name, value.strip()) for name, value in headers.sorted()]
        if preserve_commas:
            cookies = [("Set-Cookie", value) for name, value in pairs if name == _COOKIE]
            if cookies:
                pairs = cookies + [pair for pair in pairs if pair[0] != _COOKIE]
        # What `message[name] = value` does, a header at a time and ten times slower.
        message._headers = pairs
        return message


def http_message(headers: Headers) -> HTTPMessageMapping:
    """Return the headers of a `Request` or `Response` for Python."""
    preserve = "python_request_headers_preserve_commas" in profile.flags()
    return HTTPMessageMapping.of(headers, preserve_commas=preserve)


def to_js_headers(headers: Any) -> Headers:
    """Read the `headers` argument of the SDK: a dict, a list of pairs or a `js.Headers`."""
    if isinstance(headers, list):
        return Headers.js_new([_values(pair) for pair in headers])
    if isinstance(headers, dict):
        return Headers.js_new({unwrap(name): unwrap(value) for name, value in headers.items()})
    found = behind(headers)
    if isinstance(found, Headers):
        return found
    raise TypeError("Received unexpected type for headers argument")


def _values(pair: Any) -> Any:
    return [unwrap(item) for item in pair] if isinstance(pair, (list, tuple)) else behind(pair)
