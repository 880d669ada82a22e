"""The R2 buckets of one emulator: which there are, who binds to them, what lasts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import moment
from emulator.r2 import events, rules
from emulator.r2.bodies import Bodies
from emulator.r2.events import Rule, Wanted
from emulator.r2.store import Bucket, Metadata, Part, Stored, Upload, part_of, rule_of, stored
from emulator.values import iso_format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.kernel import Kernel, Profile
    from emulator.queues.service import Queues
    from emulator.r2.bindings import R2Bucket
    from emulator.sql import DatabaseFolder
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]

_VERSION_DIGITS: Final = 32
_ID_BYTES: Final = 128


class R2:
    """R2 buckets, by their names; what tests see of one is `control.R2Control`.

    A record is a bucket's name, what it tells of (`object`, `upload`, `part`, `end`, `rule`), a key
    or the id of an upload or a rule, and what is there now; an object or a rule that is None is
    deleted.
    """

    def __init__(self, kernel: Kernel, folder: DatabaseFolder | None, queues: Queues) -> None:
        self._kernel = kernel
        self._queues = queues
        self._changes: list[tuple[Bucket, str, Stored]] = []
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

    def is_too_old(self, upload: Upload) -> bool:
        """Whether the default rule of a bucket has aborted an upload; the simulator has none."""
        if self.profile == "miniflare":
            return False
        return self.now - upload.created >= rules.UPLOAD_LASTS

    # -- changes ---------------------------------------------------------------------------------

    def version(self) -> str:
        """A text that no other upload has."""
        return self._kernel.hexadecimal(_VERSION_DIGITS)

    def id(self) -> str:
        """The id of an upload, or the etag of a part."""
        random = self._kernel.random.randbytes(_ID_BYTES)
        return base64.urlsafe_b64encode(random).decode().rstrip("=")

    def put(self, bucket: Bucket, found: Stored, action: str = "PutObject") -> None:
        """Store an object; `announce` tells of it."""
        before = bucket.put(found)
        if before is not None:
            self.bodies.drop(before.parts)
        self._note(bucket, "object", found.key, [*found])
        self._changed(bucket, action, found)

    def delete(self, bucket: Bucket, key: str) -> None:
        """Delete an object, if it is there; `announce` tells of it."""
        before = bucket.delete(key)
        if before is not None:
            self.bodies.drop(before.parts)
            self._note(bucket, "object", key, None)
            self._changed(bucket, "DeleteObject", before)

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

    # -- event notifications ---------------------------------------------------------------------

    @property
    def queues(self) -> list[str]:
        """The queues that a rule may name."""
        return self._queues.names

    def add_rule(self, bucket: Bucket, wanted: Wanted) -> Rule:
        """Add an event notification rule; raises `RuleError` for one that R2 does not take."""
        rule = Rule(self._kernel.hexadecimal(32), *wanted, self.now)
        events.check(rule, bucket.rules.values())
        bucket.rules[rule.id] = rule
        self._note(bucket, "rule", rule.id, [*rule])
        return rule

    def remove_rule(self, bucket: Bucket, id: str) -> None:
        """Remove an event notification rule."""
        del bucket.rules[id]
        self._note(bucket, "rule", id, None)

    def _changed(self, bucket: Bucket, action: str, found: Stored) -> None:
        if bucket.rules:
            self._changes.append((bucket, action, found))

    def announce(self, *, link: int = 0) -> None:
        """Send what the rules want told of the changes since the last time.

        It happens at the instant of the change, and becomes durable with it. `link` is
        `Invocation.link_at` of what made the changes.
        """
        changes, self._changes = self._changes, []
        for bucket, action, found in changes:
            for rule in bucket.rules.values():
                if rule.matches(action, found.key):
                    self._send(rule.queue, bucket, action, found, link)

    def _send(self, queue: str, bucket: Bucket, action: str, found: Stored, link: int) -> None:
        name = self._names[bucket].rpartition("/")[2]  # without the jurisdiction
        told = events.body(name, action, found, iso_format(moment(self._kernel.now)))
        self._queues.tell(queue, told, by=f"bucket {name}", link=link)

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
        for name, *state in snapshot or ():
            self.bucket(name).restore(*state)
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
        return sum(
            len(one.objects) + len(one.uploads) + len(one.rules) for one in self.buckets.values()
        )

    def reset(self) -> None:
        """Empty every bucket."""
        self._records.clear()
        self._changes.clear()
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
    elif what == "rule":
        if value is None:
            del bucket.rules[name]
        else:
            bucket.rules[name] = rule_of(value)
    elif value is None:
        bucket.delete(name)
    else:
        bucket.put(stored(value))
