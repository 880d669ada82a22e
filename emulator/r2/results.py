"""What user code gets of an object: `HeadResult`, `GetResult` and `Checksums`.

The classes are called so in the runtime (`workerd`, r2-bucket.h); the documentation calls the first
two `R2Object` and `R2ObjectBody`.
"""

from __future__ import annotations

from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final

from emulator.r2.arguments import ABSENT, HTTP_FIELDS
from emulator.r2.rules import HASHES
from emulator.runtime.web import idl
from emulator.runtime.web.blob import Blob
from emulator.runtime.web.body import Body
from emulator.runtime.web.headers import Headers
from emulator.values import UNDEFINED, ArrayBuffer, HostObject, JsException, from_milliseconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from emulator.r2.ranges import Slice
    from emulator.r2.store import Stored

# As JavaScript lists them.
_FIELDS: Final = (
    *("ssecKeyMd5", "storageClass", "range", "customMetadata", "httpMetadata", "uploaded"),
    *("checksums", "httpEtag", "etag", "size", "version", "key"),
)
_MD5_HEX: Final = 32


class Checksums(HostObject):
    """The checksums of an object, as ArrayBuffers; undefined where there is none."""

    js_class = "Checksums"
    js_members = frozenset({"md5", "sha1", "sha256", "sha384", "sha512", "toJSON"})

    def __init__(self, found: Stored) -> None:
        self._known = dict(found.checksums)
        if len(found.etag) == _MD5_HEX:
            self._known["md5"] = bytes.fromhex(found.etag)

    def js_lookup(self, name: str) -> Any:
        if name == "toJSON":
            return self.toJSON
        if name not in self.js_members:
            raise AttributeError(name)
        return ArrayBuffer(self._known[name]) if name in self._known else UNDEFINED

    def js_keys(self) -> Iterable[str]:
        return (one.field for one in reversed(HASHES))

    def toJSON(self, *_: Any) -> dict[str, Any]:
        """The checksums in hexadecimal."""
        known = self._known
        return {
            one.field: known[one.field].hex() if one.field in known else UNDEFINED for one in HASHES
        }


class HeadResult(HostObject):
    """An object without its body; `R2Object` in the documentation."""

    js_class = "HeadResult"
    js_members = frozenset({*_FIELDS, "writeHttpMetadata"})

    def __init__(
        self,
        found: Stored,
        *,
        part: Slice | None = None,
        http: bool = True,
        custom: bool = True,
    ) -> None:
        self._found = found
        self._part = part
        self._has_http = http
        self._has_custom = custom

    def js_keys(self) -> Iterable[str]:
        return _FIELDS

    @property
    def key(self) -> str:
        """The object's name."""
        return self._found.key

    @property
    def version(self) -> str:
        """A text of this upload's own."""
        return self._found.version

    @property
    def size(self) -> int:
        """The length of the whole object in bytes."""
        return self._found.size

    @property
    def etag(self) -> str:
        """The etag without quotes."""
        return self._found.etag

    @property
    def httpEtag(self) -> str:
        """The etag with quotes, as headers have it."""
        return f'"{self._found.etag}"'

    @property
    def uploaded(self) -> Any:
        """When it was uploaded."""
        return from_milliseconds(self._found.uploaded)

    @property
    def checksums(self) -> Checksums:
        """The checksums that are known of it."""
        return Checksums(self._found)

    @property
    def storageClass(self) -> str:
        """The storage class; locally the empty text."""
        return self._found.metadata.storage_class

    @property
    def ssecKeyMd5(self) -> Any:
        """The MD5 of the key it is encrypted with."""
        md5 = self._found.metadata.key_md5
        return UNDEFINED if md5 is None else md5

    @property
    def range(self) -> Any:
        """The bytes that were asked for, the whole object where none were."""
        if self._part is None:
            return UNDEFINED
        return {"offset": self._part.offset, "length": self._part.length, "suffix": UNDEFINED}

    @property
    def httpMetadata(self) -> Any:
        """The HTTP metadata; each field is there, undefined where it was not given."""
        if not self._has_http:
            return UNDEFINED
        http = self._found.metadata.http
        fields = {field: http.get(field, UNDEFINED) for field in HTTP_FIELDS}
        expiry = http.get("cacheExpiry")
        return {
            **fields,
            "cacheExpiry": UNDEFINED if expiry is None else from_milliseconds(expiry),
        }

    @property
    def customMetadata(self) -> Any:
        """The metadata of the uploader's own."""
        return dict(self._found.metadata.custom) if self._has_custom else UNDEFINED

    def writeHttpMetadata(self, headers: Any = ABSENT, *_: Any) -> Any:
        """Set the headers that the HTTP metadata stand for."""
        if not isinstance(headers, Headers):
            raise idl.wrong_argument("writeHttpMetadata", "HeadResult", 1, "Headers")
        if not self._has_http:
            told = f"HTTP metadata unknown for key `{self.key}`. Did you forget to add "
            raise JsException("TypeError", f"{told}'httpMetadata' to `include` when listing?")
        http = self._found.metadata.http
        for field, header in HTTP_FIELDS.items():
            if field in http:
                headers.set(header, http[field])
        if "cacheExpiry" in http:
            moment = from_milliseconds(http["cacheExpiry"])
            headers.set("expires", format_datetime(moment, usegmt=True))
        return UNDEFINED


class GetResult(HeadResult, Body):
    """An object with its body; `R2ObjectBody` in the documentation."""

    js_class = "GetResult"
    js_members = HeadResult.js_members | {
        *("body", "bodyUsed", "arrayBuffer", "bytes", "text", "json", "blob")
    }

    def __init__(self, found: Stored, data: bytes, part: Slice) -> None:
        super().__init__(found, part=part)
        self._content = data
        self._used = False

    def blob(self) -> Awaitable[Blob]:
        """Return a promise for a Blob, of the type that the HTTP metadata have."""
        kind = self._found.metadata.http.get("contentType", "")
        return self._read(lambda data: Blob(data, kind))
