"""What `Request` and `Response` share: a body that is read once.

A body is bytes or a stream; bytes stay bytes until somebody asks for the stream. Reading takes the
body at the call and settles later, as in JavaScript: `bodyUsed` is true before the first await.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from emulator.runtime import profile
from emulator.runtime.pyproxy import PyProxy
from emulator.runtime.web import idl
from emulator.runtime.web.blob import Blob, mime_of_header
from emulator.runtime.web.formdata import FormData
from emulator.runtime.web.promises import Rejected, Resolved
from emulator.runtime.web.python_text import text_of
from emulator.runtime.web.streams import LOCKED, NOT_BYTES, ReadableStream
from emulator.runtime.web.text import decode, utf8
from emulator.runtime.web.url_parameters import URLSearchParams
from emulator.values import UNDEFINED, HostObject, JsException, ProxiedList, from_json

if TYPE_CHECKING:
    from emulator.runtime.host import Body as WireBody
    from emulator.runtime.web.headers import Headers

T = TypeVar("T")

# The classes have methods called `bytes` and `json`.
Bytes = bytes
Content = bytes | ReadableStream | None

_USED: Final = (
    "Body has already been used. It can only be used once. "
    "Use tee() first if you need to read it twice."
)
_DISTURBED: Final = (
    "This ReadableStream is disturbed (has already been read from), and cannot be used as a body."
)
_LOCKED_BODY: Final = "This ReadableStream is locked to a reader, and cannot be used as a body."
# The comma is the runtime's.
_NOT_CLONED: Final = "This ReadableStream is currently locked to a reader,"

_TEXT: Final = "text/plain;charset=UTF-8"
_ITERABLES: Final = "fetch_iterable_type_support"
_QUERY: Final = "application/x-www-form-urlencoded;charset=UTF-8"


def extract(value: object) -> tuple[Content, str | None]:
    """Read the body argument of a constructor: the content and the Content-Type it implies."""
    if value is None or value is UNDEFINED:
        return None, None
    if isinstance(value, str):
        return utf8(value), _TEXT
    if isinstance(value, bytes):
        return value, None
    if isinstance(value, HostObject):
        return _extract_object(value)
    data = idl.buffer(value)
    if data is not None:
        return data, None
    if _ITERABLES in profile.flags() and _is_iterable(value):
        return ReadableStream.from_(value), None
    return utf8(text_of(value, "the body")), _TEXT


def _is_iterable(value: object) -> bool:
    """Whether a body is what iterating gives: of arrays and what is asynchronously iterable.

    Other iterables have a text of their own, as the proxies of Python's sequences.
    """
    if isinstance(value, PyProxy):
        return isinstance(value.obj, AsyncIterable)
    return isinstance(value, list) and not isinstance(value, ProxiedList)


def _extract_object(value: HostObject) -> tuple[Content, str | None]:
    if isinstance(value, ReadableStream):
        if value.disturbed:
            raise JsException("TypeError", _DISTURBED)
        if value.locked:
            raise JsException("TypeError", _LOCKED_BODY)
        return value, None
    if isinstance(value, Blob):
        return value.data, value.type or None
    if isinstance(value, FormData):
        from emulator.runtime.web.multipart import write_form

        return write_form(value)
    if isinstance(value, URLSearchParams):
        return str(value).encode(), _QUERY
    return utf8(idl.string(value)), _TEXT


class Body(HostObject):
    """Base of `Request` and `Response`; `_content` is the body, `_used` says it was taken."""

    headers: Headers
    _content: Content
    _used: bool

    @property
    def body(self) -> ReadableStream | None:
        """Return the body as a stream, None (null) if there is none."""
        content = self._content
        if isinstance(content, bytes):
            content = self._content = ReadableStream.of_bytes(content)
            content.disturbed = self._used
        return content

    @property
    def bodyUsed(self) -> bool:
        """Tell whether the body was read, or begun."""
        content = self._content
        return self._used or (isinstance(content, ReadableStream) and content.disturbed)

    def text(self) -> Awaitable[str]:
        """Return a promise for the body read as UTF-8."""
        return self._read(decode)

    def json(self) -> Awaitable[Any]:
        """Return a promise for the body parsed as JSON."""
        return self._read(_parse_json)

    def bytes(self) -> Awaitable[Bytes]:
        """Return a promise for a Uint8Array."""
        return self._read(_same)

    def arrayBuffer(self) -> Awaitable[Any]:
        """Return a promise for an ArrayBuffer."""
        return self._read(idl.array_buffer)

    def blob(self) -> Awaitable[Blob]:
        """Return a promise for a Blob of the body's type."""
        kind = mime_of_header(self.headers.get("content-type"))
        return self._read(lambda data: Blob(data, kind))

    def formData(self) -> Awaitable[FormData]:
        """Return a promise for the form in the body."""
        from emulator.runtime.web.multipart import read_form

        kind = self.headers.get("content-type")
        return self._read(lambda data: read_form(data, kind))

    def take(self) -> WireBody:
        """Take the body for the wire; raises the runtime's TypeError if it was read."""
        if self._content is None:
            return b""
        if self.bodyUsed:
            raise JsException("TypeError", _USED)
        content = self._content
        if isinstance(content, ReadableStream) and content.locked:
            raise JsException("TypeError", LOCKED)
        self._used = True
        if isinstance(content, bytes):
            return content
        whole = content.take_whole()
        return _wire(content) if whole is None else whole

    def copy_content(self) -> Content:
        """Return the body once more, for a clone; a stream is split in two."""
        content = self._content
        if self.bodyUsed and content is not None:
            raise JsException("TypeError", _NOT_CLONED)
        if isinstance(content, ReadableStream):
            self._content, content = content.tee()
        return content

    def _read(self, convert: Callable[[Bytes], T]) -> Awaitable[T]:
        try:
            content = self.take()
            if isinstance(content, bytes):
                return Resolved(convert(content))
        except JsException as error:
            return Rejected(error)
        return _collect(content, convert)


def _wire(stream: ReadableStream) -> AsyncIterator[bytes]:
    native = stream.native()
    chunks = stream.values()  # locks the stream in either case
    stream.disturbed = True
    return _bytes_only(chunks if native is None else native)


async def _bytes_only(chunks: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            data = chunk if isinstance(chunk, bytes) else idl.buffer(chunk)
            if data is None:
                raise JsException("TypeError", NOT_BYTES)
            yield data
    finally:
        # A reader that went away cancels the stream.
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


async def _collect(chunks: AsyncIterator[bytes], convert: Callable[[bytes], T]) -> T:
    return convert(b"".join([chunk async for chunk in chunks]))


def _same(data: bytes) -> bytes:
    return data


def _parse_json(data: bytes) -> Any:
    return from_json(decode(data))
