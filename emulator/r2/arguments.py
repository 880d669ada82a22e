"""What the runtime makes of the arguments of an R2 call, before the service sees them."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Final, NamedTuple

from emulator.r2.conditions import Condition, etags_of_header, one_etag
from emulator.r2.options import Options, date_of_header, is_list, wrong_element
from emulator.r2.ranges import Range
from emulator.r2.rules import HASHES, MOST_KEYS, Hash
from emulator.r2.store import Metadata
from emulator.runtime.web import idl
from emulator.runtime.web.blob import Blob
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.text import usv_string
from emulator.values import UNDEFINED, JsException, js_int32

# An argument that is not there, which some methods tell from one that is undefined.
ABSENT: Final = object()

_NO_VALUE: Final = "ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob"
_NO_LENGTH: Final = (
    "Provided readable stream must have a known length (request/response body or readable half of "
    "FixedLengthStream)"
)
_HEX: Final = re.compile(r"[0-9a-f]+")
_KEY_SIZE: Final = 32  # bytes
_MOST_PARTS: Final = 10_000
# The header that stands for each field of `httpMetadata`, the date apart.
HTTP_FIELDS: Final = {
    "contentType": "content-type",
    "contentLanguage": "content-language",
    "contentDisposition": "content-disposition",
    "contentEncoding": "content-encoding",
    "cacheControl": "cache-control",
}
NO_METADATA: Final = Metadata({}, {})


class Reading(NamedTuple):
    """The options of a `get`."""

    only_if: Condition | None = None
    range: Range | str | None = None
    key_md5: str | None = None


class Writing(NamedTuple):
    """The options of a `put` or a `createMultipartUpload`."""

    metadata: Metadata = NO_METADATA
    only_if: Condition | None = None
    digest: tuple[Hash, bytes] | None = None
    storage_class: str | None = None


class Listing(NamedTuple):
    """The options of a `list`; `include` is None where it was not given."""

    limit: int = MOST_KEYS
    prefix: str = ""
    cursor: str | None = None
    delimiter: str = ""
    start_after: str | None = None
    include: tuple[str, ...] = ()


_READING: Final = Reading()
_WRITING: Final = Writing()


def key(value: Any, method: str, *, position: int = 1) -> str:
    """The name of an object, or the id of an upload."""
    if value is ABSENT:
        raise idl.wrong_argument(method, "R2Bucket", position, "string")
    return usv_string(value)


def keys(value: Any) -> list[str]:
    """The names of the objects to delete."""
    if value is ABSENT:
        raise idl.wrong_argument("delete", "R2Bucket", 1, "string or Array")
    return [usv_string(item) for item in value] if is_list(value) else [usv_string(value)]


def value(given: Any, method: str, *, of: str, may_be_nothing: bool) -> bytes | ReadableStream:
    """The body of an object, or of a part."""
    if isinstance(given, str):
        return usv_string(given).encode()
    if may_be_nothing and (given is None or given is UNDEFINED):
        return b""
    if isinstance(given, Blob):
        return given.data
    if isinstance(given, ReadableStream):
        if given.locked or given.disturbed:
            raise JsException("TypeError", "The ReadableStream has been locked to a reader.")
        if given.length is None:
            raise JsException("TypeError", _NO_LENGTH)
        whole = given.take_whole()
        return given if whole is None else whole
    data = idl.buffer(given)
    if data is None:
        raise idl.wrong_argument(method, of, 2, _NO_VALUE)
    return data


def reading(given: Any) -> Reading:
    """The options of a `get`."""
    if given is UNDEFINED or given is None:
        return _READING
    options = Options.argument("GetOptions", given, method="get", position=2)
    return Reading(_condition(options), _range(options), _encryption(options))


def writing(given: Any) -> Writing:
    """The options of a `put`."""
    if given is UNDEFINED or given is None:
        return _WRITING
    options = Options.argument("PutOptions", given, method="put", position=3)
    return _upload(options)._replace(only_if=_condition(options), digest=_digest(options))


def starting(given: Any) -> Writing:
    """The options of a `createMultipartUpload`."""
    method = "createMultipartUpload"
    return _upload(Options.argument("MultipartOptions", given, method=method, position=2))


def part_options(given: Any) -> str | None:
    """The options of an `uploadPart`: the MD5 of a key."""
    return _encryption(
        Options.argument(
            "UploadPartOptions", given, method="uploadPart", of="R2MultipartUpload", position=3
        )
    )


def listing(given: Any) -> Listing:
    """The options of a `list`; a limit of -1 is none, as the runtime encodes it."""
    options = Options.argument("ListOptions", given, method="list", position=1)
    limit = options.int32("limit")
    found = Listing(
        MOST_KEYS if limit is None or limit == -1 else limit,
        options.strict_text("prefix") or "",
        options.strict_text("cursor"),
        options.strict_text("delimiter") or "",
        options.strict_text("startAfter"),
        tuple(options.texts("include") or ()),
    )
    for name in found.include:
        if name not in ("httpMetadata", "customMetadata"):
            raise JsException("RangeError", f"Unsupported include value {name}")
    return found


def part_number(value: Any) -> int:
    """The number of a part."""
    if value is ABSENT:
        raise idl.wrong_argument("uploadPart", "R2MultipartUpload", 1, "integer")
    number = js_int32(value)
    if not 1 <= number <= _MOST_PARTS:
        told = f"Part number must be between 1 and {_MOST_PARTS} (inclusive). Actual value was: "
        raise JsException("TypeError", f"{told}{number}")
    return number


def parts(given: Any) -> list[tuple[int, str]]:
    """The parts of an upload that is to be completed: number and etag."""
    if not is_list(given):
        raise idl.wrong_argument("complete", "R2MultipartUpload", 1, "Array")
    found = []
    for index, item in enumerate(given):
        options = Options.of("UploadedPart", item)
        if options is None:
            raise wrong_element(index, "UploadedPart")
        found.append((options.int32("partNumber") or 0, options.loose_text("etag") or ""))
    return [(part_number(number), etag) for number, etag in found]


def _upload(options: Options) -> Writing:
    custom = options.properties("customMetadata")
    http = _http(options) if "httpMetadata" in options else {}
    storage_class = options.loose_text("storageClass")
    metadata = Metadata(http, custom, storage_class or "", _encryption(options))
    return Writing(metadata, storage_class=storage_class)


def _http(options: Options) -> dict[str, Any]:
    given = options.raw("httpMetadata")
    if isinstance(given, Headers):
        found = {field: given.get(header) for field, header in HTTP_FIELDS.items()}
        expires = given.get("expires")
        expiry = None if expires is None else date_of_header(expires)
    else:
        fields = options.inner("httpMetadata", "HttpMetadata", "HttpMetadata or Headers")
        found = {field: fields.loose_text(field) for field in HTTP_FIELDS}
        expiry = fields.date("cacheExpiry")
    http: dict[str, Any] = {field: one for field, one in found.items() if one is not None}
    return http if expiry is None else {**http, "cacheExpiry": expiry}


def _condition(options: Options) -> Condition | None:
    if "onlyIf" not in options:
        return None
    given = options.raw("onlyIf")
    if isinstance(given, Headers):
        return _condition_of(given)
    fields = options.inner("onlyIf", "Conditional", "Conditional or Headers")
    matches, other = fields.strict_text("etagMatches"), fields.strict_text("etagDoesNotMatch")
    before, after = fields.date("uploadedBefore"), fields.date("uploadedAfter")
    return Condition(
        None if matches is None else one_etag(matches),
        None if other is None else one_etag(other),
        before,
        after,
        whole_seconds=bool(fields.raw("secondsGranularity")),
    )


def _condition_of(headers: Headers) -> Condition:
    matches, other = headers.get("if-match"), headers.get("if-none-match")
    after, before = headers.get("if-modified-since"), headers.get("if-unmodified-since")
    return Condition(
        None if matches is None else etags_of_header("if-match", matches),
        None if other is None else etags_of_header("if-none-match", other),
        None if before is None else date_of_header(before),
        None if after is None else date_of_header(after),
        whole_seconds=True,
    )


def _range(options: Options) -> Range | str | None:
    if "range" not in options:
        return None
    given = options.raw("range")
    if isinstance(given, Headers):
        return given.get("range")
    fields = options.inner("range", "Range", "Range or Headers")
    return _numbers(fields)


def _numbers(fields: Options) -> Range:
    offset = fields.whole("offset", "Invalid range. Starting offset")
    length = fields.whole("length", "Invalid range. Length")
    if "suffix" not in fields:
        return Range(offset, length)
    for name, value in (("offset", offset), ("length", length)):
        if value is not None:
            raise JsException("TypeError", f"Suffix is incompatible with {name}.")
    suffix = fields.whole("suffix", "Invalid range. Suffix", below="Invalid suffix. Suffix")
    return Range(suffix=suffix)


def _digest(options: Options) -> tuple[Hash, bytes] | None:
    found: tuple[Hash, bytes] | None = None
    for one in HASHES:
        if one.field not in options:
            continue
        given = options.raw(one.field)
        if not isinstance(given, str) and idl.buffer(given) is None:
            raise options.wrong(one.field, "JsBufferSource or string")
        if found is not None:
            raise JsException("TypeError", "You cannot specify multiple hashing algorithms.")
        found = one, _checksum(one, given)
    return found


def _checksum(one: Hash, given: Any) -> bytes:
    if not isinstance(given, str):
        data = idl.buffer(given) or b""
        if len(data) != one.size:
            raise JsException("TypeError", f"{one.name} is {one.size} bytes, not {len(data)}")
        return data
    if len(given.encode(errors="replace")) != one.size * 2:
        count = len(given.encode(errors="replace"))
        told = f"{one.name} is {one.size * 2} hex characters, not {count}"
        raise JsException("TypeError", told)
    if not _HEX.fullmatch(given.lower()):
        raise JsException("TypeError", f"Provided {one.name} wasn't a valid hex string")
    return bytes.fromhex(given)


def _encryption(options: Options) -> str | None:
    """The MD5 of the key for encryption: nothing else of it is of use here."""
    if "ssecKey" not in options:
        return None
    given = options.raw("ssecKey")
    data = idl.buffer(given)
    if data is None:
        written = usv_string(given)
        if not _HEX.fullmatch(written):
            raise JsException("Error", "SSE-C Key has invalid format")
        data = bytes.fromhex(written) if len(written) == _KEY_SIZE * 2 else b""
    if len(data) != _KEY_SIZE:
        raise JsException("Error", "SSE-C Key must be 32 bytes in length")
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
