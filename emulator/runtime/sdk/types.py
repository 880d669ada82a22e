"""`workers.types`: names for annotations, as the SDK from PyPI has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from http import HTTPMethod

__all__ = ["Body", "Context", "FetchKwargs", "Headers", "JSBody", "RequestInitCfProperties"]

JSBody = "js.Blob | JsBuffer | js.FormData | js.ReadableStream | js.URLSearchParams"
Body = "str | FormData | JSBody"
Headers = "dict[str, str] | list[tuple[str, str]] | js.Headers"


class Context(Protocol):
    """The `ctx` of a global handler."""

    def waitUntil(self, other: Awaitable[Any]) -> None:
        """Keep the invocation alive until this is done."""


class RequestInitCfProperties(TypedDict, total=False):
    """The option `cf` of a request."""

    apps: bool | None
    cacheEverything: bool | None
    cacheKey: str | None
    cacheTags: list[str] | None
    cacheTtl: int
    cacheTtlByStatus: dict[str, int]
    image: Any | None
    mirage: bool | None
    polish: str | None
    resolveOverride: str | None
    scrapeShield: bool | None
    webp: bool | None


class FetchKwargs(TypedDict, total=False):
    """What `fetch` takes besides the URL."""

    headers: Any
    body: Any
    method: HTTPMethod | None
    redirect: str | None
    cf: RequestInitCfProperties | None
    fetcher: Any


for _class in (Context, RequestInitCfProperties, FetchKwargs):
    _class.__module__ = "workers.types"


del _class
