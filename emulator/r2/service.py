"""The R2 buckets of one emulator: which there are, who binds to them, what lasts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from emulator.r2.bodies import Bodies
from emulator.r2.store import Bucket, Metadata, Part, Stored, Upload, part_of, stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.kernel import Kernel, Profile
    from emulator.r2.bindings import R2Bucket
    from emulator.sql import DatabaseFolder
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]

_VERSION_DIGITS: Final = 32
_ID_BYTES: Final = 128


class R2:
    """R2 buckets, by their names; what tests see of one is `control.R2Control`.

    A record is a bucket's name, what it tells of (`object`, `upload`, `part`, `end`), a key or the
    id of an upload, and what is there now; an object that is None is deleted.
    """

    def __init__(self, kernel: Kernel, folder: DatabaseFolder | None) -> None:
        self._kernel = kernel
        self._bindings: list[R2Bucket] = []
        self._records: list[Record] = []
        self._names: dict[Bucket, str] = {}
        self.bodies = Bodies(
            None if folder is None else lambda: folder.folder("r2"),
            lambda: kernel.hexadecimal(_VERSION_DIGITS),
        )
        self.buckets: dict[str, Bucket] = {}
        self.names: dict[str, str] = {}  # binding or name -> name

    @property
    def now(self) -> int:
        """Virtual now, in milliseconds since the epoch."""
        return self._kernel.now // 1_000

    @property
    def profile(self) -> Profile:
        """Which service is emulated."""
        return self._kernel.profile

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The buckets of a Worker, by binding."""
        if not config.buckets:
            return {}
        from emulator.r2.bindings import R2Bucket

        if not self._bindings:
            # Behind the commit that makes durable what let go of them, and only if that worked.
            self._kernel.on_commit(self.bodies.clean)
        found = {}
        for one in config.buckets:
            self.names.setdefault(one.binding, one.id)
            self.names.setdefault(one.name, one.id)
            found[one.binding] = R2Bucket(one.binding, self.bucket(one.id), self)
        self._bindings += found.values()
        return {**found}

    def bucket(self, name: str) -> Bucket:
        """The bucket of a name, which need not have been there before."""
        bucket = self.buckets.get(name)
        if bucket is None:
            bucket = self.buckets[name] = Bucket()
            self._names[bucket] = name
        return bucket

    def record(self, binding: str, **facts: Any) -> None:
        """Write a call to the trace."""
        self._kernel.record("r2", f"r2 {binding}", **facts)

    # -- changes ---------------------------------------------------------------------------------

    def version(self) -> str:
        """A text that no other upload has."""
        return self._kernel.hexadecimal(_VERSION_DIGITS)

    def id(self) -> str:
        """The id of an upload, or the etag of a part."""
        random = self._kernel.random.randbytes(_ID_BYTES)
        return base64.urlsafe_b64encode(random).decode().rstrip("=")

    def put(self, bucket: Bucket, found: Stored) -> None:
        """Store an object."""
        before = bucket.put(found)
        if before is not None:
            self.bodies.drop(before.parts)
        self._note(bucket, "object", found.key, [*found])

    def delete(self, bucket: Bucket, key: str) -> None:
        """Delete an object, if it is there."""
        before = bucket.delete(key)
        if before is not None:
            self.bodies.drop(before.parts)
            self._note(bucket, "object", key, None)

    def start(self, bucket: Bucket, key: str, metadata: Metadata) -> str:
        """Begin an upload, and return its id."""
        upload = Upload(self.id(), key, self.now, metadata, {})
        bucket.start(upload)
        self._note(bucket, "upload", upload.id, [key, upload.created, list(metadata)])
        return upload.id

    def put_part(self, bucket: Bucket, id: str, number: int, part: Part) -> None:
        """Store a part of an upload."""
        before = bucket.put_part(id, number, part)
        if before is not None:
            self.bodies.drop([before.body])
        self._note(bucket, "part", id, [number, list(part)])

    def end(self, bucket: Bucket, id: str, *, used: Iterable[int] = ()) -> None:
        """End an upload; the parts that are `used` belong to an object now."""
        kept = {*used}
        parts = bucket.end(id).parts
        self.bodies.drop(part.body for number, part in parts.items() if number not in kept)
        self._note(bucket, "end", id, None)

    def _note(self, bucket: Bucket, what: str, name: str, value: Any) -> None:
        self._records.append([self._names[bucket], what, name, value])

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> Record:
        """The whole state: each bucket's name and what is in it."""
        return [[name, *bucket.snapshot()] for name, bucket in self.buckets.items()]

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored state; buckets that no Worker binds to any more are kept."""
        self._clear()
        for name, objects, uploads in snapshot or ():
            self.bucket(name).restore(objects, uploads)
        for name, what, key, value in records:
            _apply(self.bucket(name), what, key, value)
        self.bodies.keep_only(body for one in self.buckets.values() for body in one.bodies())

    def _clear(self) -> None:
        """Empty every bucket; bindings hold them."""
        for bucket in self.buckets.values():
            bucket.clear()

    @property
    def stored(self) -> int:
        """How many objects and uploads there are."""
        return sum(len(one.objects) + len(one.uploads) for one in self.buckets.values())

    def reset(self) -> None:
        """Empty every bucket."""
        self._records.clear()
        for bucket in self.buckets.values():
            self.bodies.drop(list(bucket.bodies()))
        self._clear()

    def close(self) -> None:
        """Let go of what user code may still hold."""
        self.bodies.clean()
        while self._bindings:
            self._bindings.pop().disconnect()


def _apply(bucket: Bucket, what: str, name: str, value: Any) -> None:
    """Do again what a record tells of."""
    if what == "upload":
        key, created, metadata = value
        bucket.start(Upload(name, key, created, Metadata(*metadata), {}))
    elif what == "part":
        number, row = value
        bucket.put_part(name, number, part_of(row))
    elif what == "end":
        bucket.end(name)
    elif value is None:
        bucket.delete(name)
    else:
        bucket.put(stored(value))
