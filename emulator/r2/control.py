"""An R2 bucket in a test's hand: `emulator.r2["FILES"]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.r2 import arguments, events, rules, writes
from emulator.r2.store import size_of
from emulator.registry import Registry
from emulator.runtime.rpc import to_canonical
from emulator.values import from_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from emulator.caller import Caller
    from emulator.r2.events import Rule
    from emulator.r2.service import R2
    from emulator.r2.store import Bucket, Stored, Upload

# What is refused is shown at the line that gave it.
__tracebackhide__ = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object of a bucket.

    `http_metadata` has Cloudflare's names (`contentType`); `etag` has no quotes.
    """

    key: str
    body: bytes
    size: int
    etag: str
    version: str
    uploaded: datetime
    http_metadata: dict[str, Any]
    custom_metadata: dict[str, str]
    storage_class: str

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A multipart upload that was neither completed nor aborted; `parts` are sizes by number."""

    id: str
    key: str
    created: datetime
    parts: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """An event notification rule of a bucket; empty `prefix` and `suffix` match every key."""

    queue: str
    actions: tuple[str, ...]
    prefix: str
    suffix: str


class R2Control:
    """One bucket as tests use it; get it from `emulator.r2`, by its binding or its name.

    Its methods are plain functions and no fault sites.
    """

    def __init__(self, service: R2, name: str, caller: Caller) -> None:
        self._service = service
        self._caller = caller.converting()
        self.name = name

    @property
    def _bucket(self) -> Bucket:
        return self._service.bucket(self._service.names[self.name])

    @property
    def keys(self) -> list[str]:
        """The keys of all objects, in order."""
        return sorted(self._bucket.objects)

    @property
    def objects(self) -> list[StoredObject]:
        """All objects, in the order of their keys."""
        return [self._shown(found) for _, found in sorted(self._bucket.objects.items())]

    def get(self, key: str) -> StoredObject | None:
        """Return an object, None if there is none."""
        found = self._bucket.get(key)
        return None if found is None else self._shown(found)

    def _shown(self, found: Stored) -> StoredObject:
        http = dict(found.metadata.http)
        if "cacheExpiry" in http:
            http["cacheExpiry"] = from_milliseconds(http["cacheExpiry"])
        return StoredObject(
            key=found.key,
            body=self._service.bodies.read(found.parts, 0, found.size),
            size=found.size,
            etag=found.etag,
            version=found.version,
            uploaded=from_milliseconds(found.uploaded),
            http_metadata=http,
            custom_metadata=dict(found.metadata.custom),
            storage_class=found.metadata.storage_class,
        )

    def put(
        self,
        key: str,
        body: bytes | str,
        *,
        http_metadata: Mapping[str, Any] | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        storage_class: str | None = None,
    ) -> StoredObject:
        """Store an object now, in place of what is there, and return it.

        Raises `JsException` with R2's text for what R2 refuses.

            emulator.r2["FILES"].put("logo.png", b"...", http_metadata={"contentType": "image/png"})
        """
        options: dict[str, Any] = {
            "httpMetadata": {} if http_metadata is None else dict(http_metadata),
            "customMetadata": {} if custom_metadata is None else dict(custom_metadata),
        }
        if storage_class is not None:
            options["storageClass"] = storage_class
        data = body.encode() if isinstance(body, str) else bytes(body)
        return self._caller.inside(lambda: self._put(key, data, options))

    def _put(self, key: str, data: bytes, options: dict[str, Any]) -> StoredObject:
        writing = arguments.writing(to_canonical(options))
        try:
            writes.check(key, data, writing, self._service.profile)
        except rules.Refusal as refusal:
            raise refusal.of("put") from None
        found = writes.new_object(key, data, writing, self._service)
        self._service.put(self._bucket, found)
        self._service.record(self.name, call="put", by="test", key=key, size=len(data))
        self._service.announce()
        return self._shown(found)

    def delete(self, *keys: str) -> None:
        """Delete objects now, those that are there."""

        def delete() -> None:
            for key in keys:
                self._service.delete(self._bucket, key)
                self._service.record(self.name, call="delete", by="test", key=key)
            self._service.announce()

        self._caller.inside(delete)

    def notify(
        self,
        queue: str,
        *,
        event_types: str | Iterable[str] = tuple(events.EVENT_TYPES),
        prefix: str = "",
        suffix: str = "",
    ) -> Notification:
        """Send a message to a queue at each change from now on.

        What `wrangler r2 bucket notification create` does: no config can say it. Event types are
        `"object-create"` and `"object-delete"`, or single actions such as `"PutObject"`. Raises
        `KeyError` for a queue there is not, `ValueError` for a rule that R2 does not take,
        `TypeError` for a prefix or suffix that is no text.

            emulator.r2["FILES"].notify("scans", event_types="object-create", suffix=".pdf")
        """
        for name, value in (("prefix", prefix), ("suffix", suffix)):
            if not isinstance(value, str):
                raise TypeError(f"{name} is a text, not {type(value).__name__}")
        Registry("queue", dict.fromkeys(self._service.queues))[queue]
        wanted = events.Wanted(queue, events.actions_of(event_types), prefix, suffix)
        rule = self._caller.inside(lambda: self._service.add_rule(self._bucket, wanted))
        return _notification(rule)

    @property
    def notifications(self) -> list[Notification]:
        """The event notification rules, in the order in which they were made."""
        return [_notification(rule) for rule in self._bucket.rules.values()]

    def stop_notifying(self, queue: str) -> None:
        """Remove the event notification rules for a queue, if there are any."""

        def remove() -> None:
            for rule in self._bucket.rules_of(queue):
                self._service.remove_rule(self._bucket, rule.id)

        self._caller.inside(remove)

    @property
    def uploads(self) -> list[PendingUpload]:
        """The multipart uploads that have not ended, in the order in which they began.

        In production one ends by itself after seven days.
        """
        uploads = self._bucket.uploads.values()
        is_over = self._service.is_too_old
        return [_pending(one) for one in uploads if not (one.ended or is_over(one))]

    def __repr__(self) -> str:
        return f"<R2 bucket {self.name}>"


def _notification(rule: Rule) -> Notification:
    return Notification(
        queue=rule.queue, actions=rule.actions, prefix=rule.prefix, suffix=rule.suffix
    )


def _pending(upload: Upload) -> PendingUpload:
    return PendingUpload(
        id=upload.id,
        key=upload.key,
        created=from_milliseconds(upload.created),
        parts={number: size_of(part.body) for number, part in sorted(upload.parts.items())},
    )
