"""The JavaScript classes `Blob` and `File`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.web import idl
from emulator.runtime.web.promises import Resolved
from emulator.runtime.web.python_text import report, text_of
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.text import decode, utf8
from emulator.values import UNDEFINED, HostObject, JsException, ProxiedList, plain_number

if TYPE_CHECKING:
    from collections.abc import Iterable

# The classes have methods called `bytes`.
Bytes = bytes

_NOT_PRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_MIME_PARAMETER: Final = re.compile(r"\s*;\s*")


class Blob(HostObject):
    """Bytes with a content type."""

    js_class = "Blob"
    js_members = frozenset(["arrayBuffer", "bytes", "size", "slice", "stream", "text", "type"])

    def __init__(self, data: Bytes = b"", content_type: str = "") -> None:
        self.data = data
        self.type = content_type

    @classmethod
    def js_new(cls, parts: object = UNDEFINED, options: object = UNDEFINED) -> Blob:
        """Do `new Blob(parts, {type})`."""
        return cls(join(parts, "Blob"), content_type(idl.options(options)))

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.data)

    def slice(
        self,
        start: object = UNDEFINED,
        end: object = UNDEFINED,
        kind: object = UNDEFINED,
    ) -> Blob:
        """Return a part; negative positions count from the end, the type is not inherited."""
        first = 0 if idl.missing(start) else idl.integer(start)
        last = len(self.data) if idl.missing(end) else idl.integer(end)
        # Python's slices read positions as JavaScript's do.
        return Blob(self.data[first:last], "" if idl.missing(kind) else _mime(kind))

    def text(self) -> Resolved[str]:
        """Return a promise for the bytes read as UTF-8."""
        return Resolved(decode(self.data))

    def bytes(self) -> Resolved[Bytes]:
        """Return a promise for a Uint8Array of the bytes."""
        return Resolved(self.data)

    def arrayBuffer(self) -> Resolved[Any]:
        """Return a promise for an ArrayBuffer of the bytes."""
        return Resolved(idl.array_buffer(self.data))

    def stream(self) -> ReadableStream:
        """Return a stream of the bytes."""
        return ReadableStream.of_bytes(self.data)


class File(Blob):
    """A `Blob` with a name and a date."""

    js_class = "File"
    js_members = Blob.js_members | {"lastModified", "name"}

    def __init__(
        self, data: Bytes, name: str, *, content_type: str = "", last_modified: float | None = None
    ) -> None:
        super().__init__(data, content_type)
        self.name = name
        # The wall clock of Worker code is the emulator's, so this is virtual time.
        now = time.time_ns() // 1_000_000
        self.lastModified: float = now if last_modified is None else last_modified

    @classmethod
    def js_new(  # type: ignore[override]
        cls,
        parts: object = UNDEFINED,
        name: object = UNDEFINED,
        options: object = UNDEFINED,
    ) -> File:
        """Do `new File(parts, name, {type, lastModified})`."""
        if idl.missing(name):
            raise idl.wrong_construction("File", 2, "string")
        chosen = idl.options(options)
        modified = chosen.get("lastModified")
        return cls(
            join(parts, "File"),
            idl.string(name),
            content_type=content_type(chosen),
            last_modified=None if modified is None else plain_number(idl.number(modified)),
        )


def join(parts: object, owner: str) -> Bytes:
    """Return the content of a blob made of `parts`."""
    if idl.missing(parts):
        return b""
    if not isinstance(parts, (list, tuple)):
        raise idl.wrong_construction(owner, 1, "Array")
    if isinstance(parts, ProxiedList) and isinstance(parts.obj, (bytes, bytearray, memoryview)):
        # Iterated, it gives numbers, and the text of each is a part.
        report(parts.obj, "".join(map(str, parts.obj)), f"the content of a {owner}")
    return b"".join(_part_bytes(parts, owner))


def _part_bytes(parts: Iterable[object], owner: str) -> Iterable[Bytes]:
    for part in parts:
        if isinstance(part, Blob):
            yield part.data
        elif (data := idl.buffer(part)) is not None:
            yield data
        else:
            yield utf8(text_of(part, f"a part of a {owner}"))


def content_type(options: dict[str, Any]) -> str:
    """Return the `type` of a blob's options, and refuse `endings` as the runtime does."""
    if "endings" in options:
        raise JsException("Error", "The 'endings' field on 'Options' is not implemented.")
    return _mime(options["type"]) if "type" in options else ""


def _mime(value: object) -> str:
    text = idl.string(value)
    return "" if _NOT_PRINTABLE.search(text) else text.lower()


def mime_of_header(value: str | None) -> str:
    """Return a Content-Type header as `blob().type` shows it: lower case, no spaces at `;`."""
    if value is None:
        return ""
    kind, *parameters = _MIME_PARAMETER.split(value.strip())
    names = (parameter.partition("=") for parameter in parameters if parameter)
    return ";".join([kind.lower(), *(f"{name.lower()}={text}" for name, _, text in names)])
