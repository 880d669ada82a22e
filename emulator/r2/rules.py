"""What R2 refuses, and in which words.

Texts and codes are the service's own, as the local simulator (miniflare) repeats them and as its
page of error codes and public reports show. docs/fidelity.md says which of them nobody saw.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emulator.r2.ranges import Slice, part_of
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.r2.ranges import Range
    from emulator.r2.store import Metadata

Profile = Literal["production", "miniflare"]

MOST_KEYS: Final = 1_000
# Where a list has metadata its pages may be shorter; by how much is the local simulator's choice.
MOST_WITH_METADATA: Final = 100
SMALLEST_PART: Final = 5 * 1_048_576  # bytes
# How long an upload that nobody completes is kept, in milliseconds: the default rule of a bucket.
UPLOAD_LASTS: Final = 7 * 24 * 3_600_000
_LONGEST_KEY: Final = 1_024  # bytes
_LARGEST_BODY: Final = 5 * 1_073_741_824 - 5 * 1_048_576  # bytes
_LARGEST_METADATA: Final[Mapping[Profile, int]] = {"production": 8_192, "miniflare": 2_048}
_CLASSES: Final = ("Standard", "InfrequentAccess")


class Hash(NamedTuple):
    """A checksum that a `put` may come with."""

    field: str
    name: str
    size: int  # bytes


HASHES: Final = (
    Hash("md5", "MD5", 16),
    Hash("sha1", "SHA-1", 20),
    Hash("sha256", "SHA-256", 32),
    Hash("sha384", "SHA-384", 48),
    Hash("sha512", "SHA-512", 64),
)


class Refusal(Exception):
    """What the service answers instead of doing what it was asked."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code

    def of(self, operation: str) -> JsException:
        """The error that user code sees, `put: … (10020)`."""
        return JsException("Error", f"{operation}: {self.text} ({self.code})")


def internal_error() -> Refusal:
    """What the service says where it does not know; a call that is not answered ends so."""
    return Refusal("We encountered an internal error. Please try again.", 10001)


def no_such_upload() -> Refusal:
    """An upload that has ended."""
    return Refusal("The specified multipart upload does not exist.", 10024)


def no_such_part() -> Refusal:
    """A part that the upload does not have, or not with this etag."""
    return Refusal("One or more of the specified parts could not be found.", 10025)


def check_key(key: str) -> None:
    """Refuse a name that is too long."""
    if len(key) * 4 > _LONGEST_KEY and len(key.encode()) > _LONGEST_KEY:
        raise Refusal("The specified object name is not valid.", 10020)


def check_keys(keys: list[str], profile: Profile) -> None:
    """Refuse to delete so many; locally there is no limit."""
    if len(keys) > MOST_KEYS and profile == "production":
        raise Refusal(f"A maximum of {MOST_KEYS} keys can be deleted at a time.", 10029)
    for key in keys:
        check_key(key)


def check_size(size: int) -> None:
    """Refuse a body, or a part, that is too large."""
    if size > _LARGEST_BODY:
        text = "Your proposed upload exceeds the maximum allowed object size."
        raise Refusal(text, 100100)


def check_metadata(custom: Mapping[str, str], profile: Profile) -> None:
    """Refuse metadata that is too large."""
    length = sum(_length(key) + _length(value) for key, value in custom.items())
    if length > _LARGEST_METADATA[profile]:
        text = "Your metadata headers exceed the maximum allowed metadata size."
        raise Refusal(text, 10012)


def _length(text: str) -> int:
    """How long a text counts: two bytes a character where one is beyond Latin-1."""
    return len(text) if text.isascii() or max(text) < "\u0100" else len(text) * 2


def check_class(given: str | None) -> None:
    """Refuse a storage class that there is not."""
    if given is not None and given not in _CLASSES:
        raise Refusal("The storage class you specified is not valid.", 10029)


def check_limit(limit: int) -> None:
    """Refuse to list so many, or none."""
    if not 1 <= limit <= MOST_KEYS:
        raise Refusal(f"MaxKeys params must be positive integer <= {MOST_KEYS}.", 10022)


def slice_of(asked: Range | str | None, size: int, profile: Profile) -> Slice:
    """Return the bytes that are asked for of an object of this size; refuse where there are none.

    Of an empty object the local simulator cannot give some bytes; it says nothing then, and the
    runtime "Unspecified error".
    """
    found = part_of(asked, size)
    if found is None or (found.length == 0 and isinstance(asked, tuple)):
        if found is not None and profile == "miniflare":
            raise Refusal("Unspecified error", 0)
        raise Refusal("The requested range is not satisfiable", 10039)
    return found


def check_digest(given: tuple[Hash, bytes], body: bytes) -> None:
    """Refuse a body that is not the one whose checksum was given."""
    (field, name, _), expected = given
    actual = hashlib.new(field, body, usedforsecurity=False).digest()
    if actual != expected:
        lines = (
            f"The {name} checksum you specified did not match what we received.",
            f"You provided a {name} checksum with value: {expected.hex()}",
            f"Actual {name} was: {actual.hex()}",
        )
        raise Refusal("\n".join(lines), 10037)


def check_parts(sizes: list[tuple[int, int]], profile: Profile) -> None:
    """Refuse parts, by number and size in the order given, that make no object.

    All but the last have one size, of 5 MiB at least, and the last is no larger.
    """
    if any(size < SMALLEST_PART for _, size in sizes[:-1]):
        text = "Your proposed upload is smaller than the minimum allowed object size."
        raise Refusal(text, 10011)
    *first, last = [size for _, size in sorted(sizes)] or [0]
    if first and (min(first) < SMALLEST_PART or len({*first}) > 1 or last > first[0]):
        text = (
            "All non-trailing parts must have the same length."
            if profile == "production"
            else "There was a problem with the multipart upload."
        )
        raise Refusal(text, 10048)


def as_stored(metadata: Metadata, profile: Profile) -> Metadata:
    """Return what is kept of metadata: locally neither a storage class nor a key."""
    if profile == "miniflare":
        return metadata._replace(storage_class="", key_md5=None)
    return metadata._replace(storage_class=metadata.storage_class or _CLASSES[0])


def check_encryption(stored: str | None, given: str | None, profile: Profile) -> None:
    """Refuse to decrypt without the key, or with another; both are the MD5 of a key."""
    if stored != given and profile == "production":
        raise Refusal("The customer-provided encryption key is not that of the object.", 10029)


def cursor(key: str) -> str:
    """Return where a list goes on after a key."""
    return base64.b64encode(key.encode()).decode()


def key_of(cursor: str) -> str:
    """Return the key after which a list goes on; what is no cursor is read as far as it goes."""
    padded = cursor.rstrip("=") + "=" * (-len(cursor.rstrip("=")) % 4)
    try:
        return base64.b64decode(padded).decode(errors="replace")
    except binascii.Error:
        return ""
