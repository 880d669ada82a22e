"""`workers.Blob` and `workers.File`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from emulator.runtime.sdk.js_values import behind, wrap
from emulator.runtime.web import blob as web
from emulator.values import UNDEFINED

# The classes have methods called `bytes`.
Bytes = bytes

BlobValue = "str | bytes | js.ArrayBuffer | js.TypedArray | js.DataView | js.Blob | Blob | File"


class BlobEnding(StrEnum):
    """What to do with line endings; the runtime implements neither."""

    TRANSPARENT = "transparent"
    NATIVE = "native"


class Blob:
    """Bytes with a content type."""

    _web: web.Blob

    def __init__(
        self,
        blob_parts: Any,
        content_type: str | None = None,
        endings: BlobEnding | str | None = None,
    ) -> None:
        """Join `blob_parts`: one or several of text, buffers, blobs; one blob gives its type."""
        single = not _is_iterable(blob_parts)
        if single:
            content_type = content_type or _type_of(blob_parts)
        parts = [_part(part) for part in ([blob_parts] if single else blob_parts)]
        self._web = web.Blob.js_new(parts, _options(content_type, endings))

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return self._web.size

    @property
    def content_type(self) -> str:
        """Return the content type, "" if there is none."""
        return self._web.type

    @property
    def js_object(self) -> Any:
        """Return the `js.Blob` or `js.File`."""
        return wrap(self._web)

    async def text(self) -> str:
        """Return the content read as UTF-8."""
        return await self._web.text()

    async def bytes(self) -> Bytes:
        """Return the content."""
        return self._web.data

    def slice(
        self, start: int | None = None, end: int | None = None, content_type: str | None = None
    ) -> Blob:
        """Return a part of the blob; like upstream's it has no content type."""
        arguments = (UNDEFINED if item is None else item for item in (start, end, content_type))
        return Blob([wrap(self._web.slice(*arguments))])


class File(Blob):
    """A blob with a name and a date in milliseconds since 1970."""

    _web: web.File

    def __init__(
        self,
        blob_parts: Any,
        filename: str,
        content_type: str | None = None,
        endings: BlobEnding | str | None = None,
        last_modified: int | None = None,
    ) -> None:
        """Join `blob_parts` as `Blob` does; one file gives its date too."""
        single = not _is_iterable(blob_parts)
        if single:
            content_type = content_type or _type_of(blob_parts)
            last_modified = last_modified or _date_of(blob_parts)
        parts = [_part(part) for part in ([blob_parts] if single else blob_parts)]
        options = _options(content_type, endings)
        if last_modified is not None:
            options["lastModified"] = last_modified
        self._web = web.File.js_new(parts, behind(filename), options)

    @property
    def name(self) -> str:
        """Return the file's name."""
        return self._web.name

    @property
    def last_modified(self) -> int:
        """Return the date in milliseconds since 1970."""
        return wrap(self._web.lastModified)  # type: ignore[no-any-return]


def _web_blob(value: Any) -> web.Blob | None:
    if isinstance(value, Blob):
        return value._web
    found = behind(value)
    return found if isinstance(found, web.Blob) else None


def _type_of(part: Any) -> str | None:
    found = _web_blob(part)
    return None if found is None else found.type


def _date_of(part: Any) -> int | None:
    found = _web_blob(part)
    return int(found.lastModified) if isinstance(found, web.File) else None


def _options(content_type: str | None, endings: BlobEnding | str | None) -> dict[str, Any]:
    options: dict[str, Any] = {} if content_type is None else {"type": content_type}
    if endings:
        options["endings"] = str(endings)
    return options


def _part(part: Any) -> str | Bytes | web.Blob:
    if isinstance(part, str):
        return part
    found = _web_blob(part)
    if found is not None:
        return found
    try:
        with memoryview(part) as view:
            return view.tobytes()
    except TypeError:
        raise TypeError(f"Don't know how to handle {type(part)} for Blob()") from None


def _is_iterable(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, Iterable)


Blob.__module__ = BlobEnding.__module__ = File.__module__ = "workers.blob"
