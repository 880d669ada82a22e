"""A bucket: its objects, and the multipart uploads that are not complete.

An object's body is in parts: one, or those of the multipart upload it came from. A part lies here
as bytes, or elsewhere under a name (`Kept`); the bucket never looks into it. Times are milliseconds
since the epoch, as the API has them. The last write of a key wins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from emulator.r2.events import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Kept(NamedTuple):
    """A body that lies elsewhere."""

    name: str
    size: int


Body: TypeAlias = "bytes | Kept"


class Metadata(NamedTuple):
    """What the uploader says of an object; `http` has dates in milliseconds since the epoch."""

    http: Mapping[str, Any]
    custom: Mapping[str, str]
    storage_class: str = ""
    key_md5: str | None = None


class Stored(NamedTuple):
    """An object; `checksums` are those besides its MD5, which is the `etag` of a single part."""

    key: str
    version: str
    size: int
    etag: str
    uploaded: int
    metadata: Metadata
    checksums: Mapping[str, bytes]
    parts: tuple[Body, ...]


class Part(NamedTuple):
    """A part of an upload, under the etag that names it in `complete`."""

    etag: str
    md5: bytes
    body: Body


class Upload(NamedTuple):
    """A multipart upload; one that has ended has no parts any more, and is known as ended."""

    id: str
    key: str
    created: int
    metadata: Metadata
    parts: dict[int, Part]
    ended: bool = False


class Page(NamedTuple):
    """A part of a list; `last` is the key behind which it goes on, None where there is no more."""

    objects: list[Stored]
    prefixes: list[str]
    last: str | None


class Place(NamedTuple):
    """What is to be listed: keys that begin with `prefix`, those behind `after`."""

    prefix: str = ""
    delimiter: str = ""
    after: str | None = None


class Bucket:
    """The objects, uploads and event notification rules of one bucket."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self.rules: dict[str, Rule] = {}
        self._order: list[str] | None = None

    def get(self, key: str) -> Stored | None:
        """Return an object."""
        return self.objects.get(key)

    def put(self, found: Stored) -> Stored | None:
        """Store an object in place of what is there, and return that."""
        before = self.objects.get(found.key)
        if before is None:
            self._order = None
        self.objects[found.key] = found
        return before

    def delete(self, key: str) -> Stored | None:
        """Delete an object, and return it."""
        before = self.objects.pop(key, None)
        if before is not None:
            self._order = None
        return before

    def page(self, place: Place, limit: int) -> Page:
        """Return up to `limit` objects and prefixes, in the order of the keys.

        The order is that of the keys in UTF-8, byte by byte. With a delimiter all keys that have it
        behind the prefix count as one, by what they have in common.
        """
        page = Page([], [], None)
        last, count = None, 0
        for key in self._from(place):
            common = _common(key, place)
            if common is not None and page.prefixes and page.prefixes[-1] == common:
                last = key
                continue
            if count == limit:
                return page._replace(last=last)
            if common is None:
                page.objects.append(self.objects[key])
            else:
                page.prefixes.append(common)
            last, count = key, count + 1
        return page

    def _from(self, place: Place) -> Iterator[str]:
        if self._order is None:
            # By code points, which is the order of UTF-8.
            self._order = sorted(self.objects)
        order = self._order
        start = bisect_left(order, place.prefix)
        if place.after is not None:
            start = max(start, bisect_right(order, place.after))
        for index in range(start, len(order)):
            if not order[index].startswith(place.prefix):
                return
            yield order[index]

    # -- uploads ---------------------------------------------------------------------------------

    def upload(self, id: str, key: str) -> Upload | None:
        """Return an upload of a key, ended or not."""
        upload = self.uploads.get(id)
        return None if upload is None or upload.key != key else upload

    def start(self, upload: Upload) -> None:
        """Begin an upload."""
        self.uploads[upload.id] = upload

    def end(self, id: str) -> Upload:
        """Forget the parts of an upload, and return it with them."""
        upload = self.uploads[id]
        self.uploads[id] = upload._replace(parts={}, ended=True)
        return upload

    def put_part(self, id: str, number: int, part: Part) -> Part | None:
        """Add a part in place of what has its number, and return that."""
        parts = self.uploads[id].parts
        before = parts.get(number)
        parts[number] = part
        return before

    # -- what lasts ------------------------------------------------------------------------------

    def bodies(self) -> Iterator[Body]:
        """Yield every body there is."""
        for found in self.objects.values():
            yield from found.parts
        for upload in self.uploads.values():
            for part in upload.parts.values():
                yield part.body

    def clear(self) -> None:
        """Forget everything."""
        self.objects.clear()
        self.uploads.clear()
        self.rules.clear()
        self._order = None

    def rules_of(self, queue: str) -> list[Rule]:
        """The event notification rules for a queue."""
        return [rule for rule in self.rules.values() if rule.queue == queue]

    def snapshot(self) -> list[Any]:
        """Return the whole state."""
        uploads = [
            [
                *upload[:4],
                [[number, list(part)] for number, part in upload.parts.items()],
                upload[5],
            ]
            for upload in self.uploads.values()
        ]
        rules = [list(rule) for rule in self.rules.values()]
        return [[list(found) for found in self.objects.values()], uploads, rules]

    def restore(
        self, objects: Iterable[Any], uploads: Iterable[Any], rules: Iterable[Any] = ()
    ) -> None:
        """Take over a snapshot; those of earlier releases have no rules."""
        for row in objects:
            self.put(stored(row))
        for id, key, created, metadata, parts, ended in uploads:
            found = {number: part_of(row) for number, row in parts}
            self.start(Upload(id, key, created, Metadata(*metadata), found, ended))
        for row in rules:
            rule = rule_of(row)
            self.rules[rule.id] = rule


def stored(row: Any) -> Stored:
    """Return an object as it was before it became a record."""
    key, version, size, etag, uploaded, metadata, checksums, parts = row
    bodies = tuple(map(_body, parts))
    return Stored(key, version, size, etag, uploaded, Metadata(*metadata), checksums, bodies)


def part_of(row: Any) -> Part:
    """Return a part as it was before it became a record."""
    etag, md5, body = row
    return Part(etag, md5, _body(body))


def rule_of(row: Any) -> Rule:
    """Return a rule as it was before it became a record."""
    id, queue, actions, *rest = row
    return Rule(id, queue, tuple(actions), *rest)


def _body(row: Any) -> Body:
    return row if isinstance(row, bytes) else Kept(*row)


def _common(key: str, place: Place) -> str | None:
    """Return what a key has in common with others up to the delimiter; None without one."""
    if not place.delimiter:
        return None
    at = key.find(place.delimiter, len(place.prefix))
    return None if at < 0 else key[: at + len(place.delimiter)]


def size_of(body: Body) -> int:
    """Return how long a body is."""
    return body.size if isinstance(body, Kept) else len(body)
