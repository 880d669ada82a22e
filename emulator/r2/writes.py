"""What a `put` makes of a body: an object, or a refusal."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from emulator.r2 import rules
from emulator.r2.store import Stored

if TYPE_CHECKING:
    from emulator.r2.arguments import Writing
    from emulator.r2.service import R2


def check(key: str, body: bytes, writing: Writing, profile: rules.Profile) -> None:
    """Refuse what cannot be stored, whatever is there."""
    rules.check_key(key)
    rules.check_size(len(body))
    rules.check_metadata(writing.metadata.custom, profile)
    if profile == "production":
        rules.check_class(writing.storage_class)
    if writing.digest is not None:
        rules.check_digest(writing.digest, body)


def holds(before: Stored | None, writing: Writing) -> bool:
    """Whether `onlyIf` holds of what is there."""
    condition = writing.only_if
    if condition is None:
        return True
    if before is None:
        return condition.holds_of_nothing
    return condition.holds(before.etag, before.uploaded)


def new_object(key: str, body: bytes, writing: Writing, service: R2) -> Stored:
    """Return the object, of this instant and under a version of its own."""
    checksums = {}
    if writing.digest is not None and writing.digest[0].field != "md5":
        checksums = {writing.digest[0].field: writing.digest[1]}
    return Stored(
        key,
        service.version(),
        len(body),
        hashlib.md5(body, usedforsecurity=False).hexdigest(),
        service.now,
        rules.as_stored(writing.metadata, service.profile),
        checksums,
        (service.bodies.keep(body),),
    )
