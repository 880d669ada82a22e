"""Redirects as `fetch` follows them (fetch standard, HTTP-redirect fetch)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from emulator.runtime.web.url_parser import InvalidUrl, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Hop = Callable[[httpx.Request], Awaitable[httpx.Response]]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST = 20
_OF_BODY = ("content-encoding", "content-language", "content-length", "content-location")


async def follow(
    hop: Hop, request: httpx.Request, redirect: str
) -> tuple[httpx.Response, httpx.Request]:
    """Send a request and those its answers redirect to, one by one by `hop`.

    Returns the last answer, unread, and the request it answers. `redirect` is fetch's option:
    `follow`, `manual` (the redirect itself is the answer), `error`. Raises `httpx.HTTPError`.
    """
    for _ in range(_MOST + 1):
        response = await hop(request)
        location = response.headers.get("location")
        if redirect == "manual" or response.status_code not in _REDIRECTS or location is None:
            return response, request
        if redirect == "error":
            raise httpx.RequestError(f"an unexpected redirect to {location}", request=request)
        await response.aclose()
        request = _redirected(request, response.status_code, location)
    raise httpx.TooManyRedirects(f"more than {_MOST} redirects", request=request)


def _redirected(request: httpx.Request, status: int, location: str) -> httpx.Request:
    try:
        here = parse(str(request.url))
        there = parse(location, here)
    except InvalidUrl as error:
        text = f"a redirect to an invalid URL: {location}"
        raise httpx.RequestError(text, request=request) from error
    if there.scheme not in ("http", "https"):
        raise httpx.UnsupportedProtocol(f"a redirect to {there.href()}", request=request)
    method, content, dropped = request.method, request.content, {"host"}
    if (status in (301, 302) and method == "POST") or (
        status == 303 and method not in ("GET", "HEAD")
    ):
        method, content = "GET", b""
        dropped.update(_OF_BODY, ("content-type",))
    if there.origin != here.origin:
        dropped.add("authorization")
    headers = [pair for pair in request.headers.raw if pair[0].decode().lower() not in dropped]
    url = there.href().partition("#")[0]
    return httpx.Request(method, url, headers=headers, content=content)
