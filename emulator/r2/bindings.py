"""What user code sees of R2: `R2Bucket`.

Arguments are read when a call is made; the service is asked at the next turn of the loop, like
every call that leaves a Worker. Shapes and errors are those of the runtime (`workerd`,
r2-bucket.c++).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.bindings.outbound import read_body
from emulator.r2 import arguments, rules, writes
from emulator.r2.arguments import ABSENT
from emulator.r2.calls import Connection
from emulator.r2.multipart import R2MultipartUpload
from emulator.r2.ranges import Slice
from emulator.r2.results import GetResult, HeadResult
from emulator.r2.store import Place, Stored
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from emulator.r2.arguments import Listing, Reading, Writing
    from emulator.r2.service import R2
    from emulator.r2.store import Bucket, Page

_METHOD = "createMultipartUpload"


class R2Bucket(HostObject):
    """An R2 binding."""

    js_class = "R2Bucket"
    js_members = frozenset(
        {
            *("head", "get", "put", "delete", "list"),
            *("createMultipartUpload", "resumeMultipartUpload"),
        }
    )

    def __init__(self, binding: str, bucket: Bucket, service: R2) -> None:
        self._connection = Connection(binding, bucket, service)

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        self._connection.close()

    # -- reads -----------------------------------------------------------------------------------

    def head(self, key: Any = ABSENT, *_: Any) -> asyncio.Future[Any]:
        """An object without its body, null if there is none."""
        try:
            name = arguments.key(key, "head")
        except JsException as error:
            return calls.refuse(error)

        def perform(_: dict[str, Any]) -> Any:
            rules.check_key(name)
            found = self._connection.bucket.get(name)
            return None if found is None else HeadResult(found, part=Slice(0, found.size))

        return self._connection.call("head", perform, key=name)

    def get(self, key: Any = ABSENT, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """An object with its body, but not where `onlyIf` does not hold; null if there is none."""
        try:
            name, reading = arguments.key(key, "get"), arguments.reading(options)
        except JsException as error:
            return calls.refuse(error)

        def perform(told: dict[str, Any]) -> Any:
            rules.check_key(name)
            found = self._connection.bucket.get(name)
            return None if found is None else self._read(found, reading, told)

        return self._connection.call("get", perform, key=name)

    def _read(self, found: Stored, reading: Reading, told: dict[str, Any]) -> HeadResult:
        service = self._connection.service
        rules.check_encryption(found.metadata.key_md5, reading.key_md5, service.profile)
        condition = reading.only_if
        if condition is not None and not condition.holds(found.etag, found.uploaded):
            told["refused"] = True
            return HeadResult(found, part=Slice(0, found.size))
        part = rules.slice_of(reading.range, found.size, service.profile)
        return GetResult(found, service.bodies.read(found.parts, *part), part)

    def list(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Objects in the order of their keys, up to 1,000, and a cursor where there are more."""
        try:
            listing = arguments.listing(options)
        except JsException as error:
            return calls.refuse(error)

        def perform(_: dict[str, Any]) -> Any:
            rules.check_limit(listing.limit)
            limit = min(listing.limit, rules.MOST_WITH_METADATA if listing.include else 1_000)
            place = Place(listing.prefix, listing.delimiter, _behind(listing))
            page = self._connection.bucket.page(place, limit)
            return _listed(page, listing, self._connection.service.profile)

        return self._connection.call("list", perform, prefix=listing.prefix)

    # -- writes ----------------------------------------------------------------------------------

    def put(
        self, key: Any = ABSENT, value: Any = ABSENT, options: Any = UNDEFINED, *_: Any
    ) -> Awaitable[Any]:
        """Store an object in place of what is there; null where `onlyIf` does not hold."""
        try:
            name = arguments.key(key, "put")
            given = arguments.value(value, "put", of=self.js_class, may_be_nothing=True)
            writing = arguments.writing(options)
        except JsException as error:
            return calls.refuse(error)
        if isinstance(given, ReadableStream):
            return self._put_stream(name, given, writing)
        return self._put(name, given, writing)

    async def _put_stream(self, key: str, stream: ReadableStream, writing: Writing) -> Any:
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        return await self._put(key, await read_body(Response(stream).take()), writing)

    def _put(self, key: str, value: bytes, writing: Writing) -> asyncio.Future[Any]:
        def perform(told: dict[str, Any]) -> Any:
            service, bucket = self._connection.service, self._connection.bucket
            writes.check(key, value, writing, service.profile)
            if not writes.holds(bucket.get(key), writing):
                told["refused"] = True
                return None
            found = writes.new_object(key, value, writing, service)
            service.put(bucket, found)
            return HeadResult(found)

        return self._connection.call("put", perform, key=key, size=len(value))

    def delete(self, keys: Any = ABSENT, *_: Any) -> asyncio.Future[Any]:
        """Delete objects, those that are there."""
        try:
            names = arguments.keys(keys)
        except JsException as error:
            return calls.refuse(error)

        def perform(_: dict[str, Any]) -> Any:
            service = self._connection.service
            rules.check_keys(names, service.profile)
            for name in names:
                service.delete(self._connection.bucket, name)
            return UNDEFINED

        told = {"key": names[0]} if len(names) == 1 else {"keys": names}
        return self._connection.call("delete", perform, **told)

    # -- uploads in parts ------------------------------------------------------------------------

    def createMultipartUpload(
        self, key: Any = ABSENT, options: Any = UNDEFINED, *_: Any
    ) -> asyncio.Future[Any]:
        """Begin an upload in parts."""
        try:
            name, writing = arguments.key(key, _METHOD), arguments.starting(options)
        except JsException as error:
            return calls.refuse(error)

        def perform(_: dict[str, Any]) -> Any:
            service = self._connection.service
            rules.check_key(name)
            if service.profile == "production":
                rules.check_metadata(writing.metadata.custom, "production")
                rules.check_class(writing.storage_class)
            metadata = rules.as_stored(writing.metadata, service.profile)
            id = service.start(self._connection.bucket, name, metadata)
            return R2MultipartUpload(self._connection, name, id)

        return self._connection.call(_METHOD, perform, key=name)

    def resumeMultipartUpload(
        self, key: Any = ABSENT, id: Any = ABSENT, *_: Any
    ) -> R2MultipartUpload:
        """An upload that was begun; nobody looks whether it was."""
        method = "resumeMultipartUpload"
        name, upload = arguments.key(key, method), arguments.key(id, method, position=2)
        return R2MultipartUpload(self._connection, name, upload)


def _behind(listing: Listing) -> str | None:
    """The key behind which a list begins: that of the cursor, or `startAfter` if it is later."""
    after = listing.start_after
    if listing.cursor is None:
        return after
    key = rules.key_of(listing.cursor)
    return key if after is None else max(key, after)


def _listed(page: Page, listing: Listing, profile: rules.Profile) -> dict[str, Any]:
    # What is not asked for is not there; locally it is there, and empty.
    is_local = profile == "miniflare"
    http, custom = ("httpMetadata" in listing.include), ("customMetadata" in listing.include)
    return {
        "objects": [
            HeadResult(
                _without(found, http=not http, custom=not custom) if is_local else found,
                http=http or is_local,
                custom=custom or is_local,
            )
            for found in page.objects
        ],
        "truncated": page.last is not None,
        "cursor": UNDEFINED if page.last is None else rules.cursor(page.last),
        "delimitedPrefixes": page.prefixes,
    }


def _without(found: Stored, *, http: bool, custom: bool) -> Stored:
    metadata = found.metadata
    if http:
        metadata = metadata._replace(http={})
    if custom:
        metadata = metadata._replace(custom={})
    return found._replace(metadata=metadata)
