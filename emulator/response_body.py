"""What the runtime does to a response on its way out: lengths, empty bodies, compression."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.runtime.host import WebRequest, WebResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_WITHOUT_BODY = frozenset({101, 204, 205, 304})
_GZIP = 31  # zlib's number for the format
_GZIP_MAGIC = b"\x1f\x8b"


def as_sent(request: WebRequest, response: WebResponse) -> WebResponse:
    """Return the response as it goes over the wire.

    A body whose header says gzip is compressed here, as workerd does it. To HEAD, and with a status
    that allows none, no body is sent.
    """
    if response.status in _WITHOUT_BODY:
        return replace(response, body=b"")
    body, headers = response.body, response.headers
    if ("content-encoding", "gzip") in headers:
        body = _compressed(body) if isinstance(body, bytes) else _compressing(body)
    has_length = "content-length" in dict(headers)
    if isinstance(body, bytes):
        if has_length:
            headers = tuple(pair for pair in headers if pair[0] != "content-length")
        headers = (*headers, ("content-length", str(len(body))))
    elif not has_length:
        headers = (*headers, ("transfer-encoding", "chunked"))
    if request.method == "HEAD":
        body = b""
    return WebResponse(response.status, response.status_text, headers, body, response.url)


def _compressed(body: bytes) -> bytes:
    if body.startswith(_GZIP_MAGIC):
        return body  # the Worker did it itself, with `encodeBody: "manual"`
    compressor = zlib.compressobj(wbits=_GZIP)
    return compressor.compress(body) + compressor.flush()


async def _compressing(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = None
    try:
        async for chunk in body:
            if compressor is None and chunk.startswith(_GZIP_MAGIC):
                yield chunk
                async for rest in body:
                    yield rest
                return
            compressor = compressor or zlib.compressobj(wbits=_GZIP)
            yield compressor.compress(chunk) + compressor.flush(zlib.Z_SYNC_FLUSH)
        yield (compressor or zlib.compressobj(wbits=_GZIP)).flush()
    finally:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
