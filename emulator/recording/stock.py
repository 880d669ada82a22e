"""Messages that waited and files that lay in buckets, as a test can put them there.

A test sends the one and stores the other with calls of its own, at its start. So what only time or
a client could have made is not among them: a message that was delivered before, or is not due yet;
a file of several parts, or with a key of the client's. Of a product that holds one of these nothing
is set up, for half of it would mislead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import StateError
from emulator.queues.plain import plain_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from emulator.platform import Platform
    from emulator.r2.store import Stored

_TYPES: Final = ("json", "text")
_USUAL: Final = "Standard"


@dataclass(frozen=True, slots=True)
class Paused:
    """A queue whose delivery is paused."""

    queue: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that may be delivered."""

    queue: str
    body: Any
    content_type: str


@dataclass(frozen=True, slots=True)
class File:
    """An object of a bucket; its storage class is empty for the usual one."""

    bucket: str
    key: str
    body: bytes
    http: Mapping[str, Any]
    custom: Mapping[str, str]
    storage_class: str


Item = Paused | Waiting | File


def stock(platform: Platform) -> dict[str, list[Item]]:
    """Return what a test can put there, for each product of which it can put all."""
    found: dict[str, list[Item]] = {}
    for product, look in _LOOKS.items():
        items = list(look(platform))
        whole = [item for item in items if item is not None]
        if whole and len(whole) == len(items):
            found[product] = whole
    return found


def _queues(platform: Platform) -> Iterator[Item | None]:
    """Yield what is in the queues; None for what cannot be put there."""
    broker, now = platform.queues.broker, platform.kernel.now
    known = [queue.name for queue in platform.settings.queues]
    for name in broker.queues:
        if broker.setup(name).change is not None or broker.leases(name):
            yield None
        if broker.paused(name):
            yield Paused(name) if name in known else None
        for message in broker.pending(name):
            plain = message.content_type in _TYPES and not message.attempts and message.due <= now
            if not plain or name not in known:
                yield None
                continue
            body = plain_body(message.body, message.content_type)
            yield Waiting(name, body, message.content_type)


def _r2(platform: Platform) -> Iterator[Item | None]:
    """Yield the files of buckets; None for what cannot be put there."""
    service = platform.r2
    for id in dict.fromkeys(service.names.values()):
        bucket = service.bucket(id)
        name = next(name for name, named in service.names.items() if named == id)
        if bucket.rules:
            yield None
        for _, found in sorted(bucket.objects.items()):
            try:
                body = service.bodies.read(found.parts, 0, found.size)
            except StateError:  # one that is not in the recording
                yield None
                continue
            yield _file(name, found, body)


def _file(bucket: str, found: Stored, body: bytes) -> File | None:
    metadata = found.metadata
    if len(found.parts) > 1 or found.checksums or metadata.key_md5 is not None:
        return None
    if not all(isinstance(value, str) for value in metadata.http.values()):
        return None
    kind = "" if metadata.storage_class == _USUAL else metadata.storage_class
    return File(bucket, found.key, body, metadata.http, metadata.custom, kind)


_LOOKS: Final[dict[str, Callable[[Platform], Iterator[Item | None]]]] = {
    "queues": _queues,
    "r2": _r2,
}
