"""What user code sees of an upload in parts: `R2MultipartUpload` (`workerd`, r2-multipart.c++)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.bindings.outbound import read_body
from emulator.r2 import arguments, rules
from emulator.r2.arguments import ABSENT
from emulator.r2.results import HeadResult
from emulator.r2.store import Part, Stored, size_of
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Iterable, Sequence

    from emulator.r2.calls import Connection
    from emulator.r2.store import Upload


class R2MultipartUpload(HostObject):
    """An upload in parts; that there is one under this id nobody says."""

    js_class = "R2MultipartUpload"
    js_members = frozenset({"key", "uploadId", "uploadPart", "abort", "complete"})

    def __init__(self, connection: Connection, key: str, id: str) -> None:
        self._connection = connection
        self.key = key
        self.uploadId = id

    def js_keys(self) -> Iterable[str]:
        return ("uploadId", "key")

    def uploadPart(
        self, number: Any = ABSENT, value: Any = ABSENT, options: Any = UNDEFINED, *_: Any
    ) -> Awaitable[Any]:
        """Store a part, in place of one with its number."""
        try:
            if number is ABSENT:
                arguments.part_number(number)
            given = arguments.value(value, "uploadPart", of=self.js_class, may_be_nothing=False)
            place = arguments.part_number(number)
            arguments.part_options(options)
        except JsException as error:
            return calls.refuse(error)
        if isinstance(given, ReadableStream):
            return self._upload_stream(place, given)
        return self._upload(place, given)

    async def _upload_stream(self, number: int, stream: ReadableStream) -> Any:
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        return await self._upload(number, await read_body(Response(stream).take()))

    def _upload(self, number: int, value: bytes) -> asyncio.Future[Any]:
        def perform(_: dict[str, Any]) -> Any:
            service = self._connection.service
            rules.check_key(self.key)
            rules.check_size(len(value))
            upload = self._found()
            if upload is None or upload.ended:
                raise rules.no_such_upload()
            md5 = hashlib.md5(value, usedforsecurity=False).digest()
            part = Part(service.id(), md5, service.bodies.keep(value))
            service.put_part(self._connection.bucket, self.uploadId, number, part)
            return {"partNumber": number, "etag": part.etag}

        return self._call("uploadPart", perform, part=number, size=len(value))

    def complete(self, parts: Any = ABSENT, *_: Any) -> asyncio.Future[Any]:
        """Make an object of parts."""
        try:
            chosen = arguments.parts(parts)
        except JsException as error:
            return calls.refuse(error)

        def perform(_: dict[str, Any]) -> Any:
            service, bucket = self._connection.service, self._connection.bucket
            rules.check_key(self.key)
            upload = self._found()
            if upload is None:
                raise rules.internal_error()
            if upload.ended:
                raise rules.no_such_upload()
            _check(upload, chosen, service.profile)
            numbers = sorted(number for number, _ in chosen)
            found = _object(upload, numbers, service.version(), service.now)
            service.put(bucket, found, "CompleteMultipartUpload")
            service.end(bucket, self.uploadId, used=numbers)
            return HeadResult(found)

        return self._call("complete", perform)

    def abort(self, *_: Any) -> asyncio.Future[Any]:
        """Forget the upload and its parts; it may have ended already."""

        def perform(_: dict[str, Any]) -> Any:
            rules.check_key(self.key)
            upload = self._found()
            if upload is None:
                raise rules.internal_error()
            if not upload.ended:
                self._connection.service.end(self._connection.bucket, self.uploadId)
            return UNDEFINED

        return self._call("abort", perform)

    def _found(self) -> Upload | None:
        """The upload; in production one that is too old is aborted."""
        service, bucket = self._connection.service, self._connection.bucket
        upload = bucket.upload(self.uploadId, self.key)
        if upload is None or upload.ended or not service.is_too_old(upload):
            return upload
        service.end(bucket, self.uploadId)
        return bucket.upload(self.uploadId, self.key)

    def _call(self, operation: str, perform: Any, **facts: Any) -> asyncio.Future[Any]:
        return self._connection.call(operation, perform, key=self.key, **facts)


def _check(upload: Upload, chosen: Sequence[tuple[int, str]], profile: rules.Profile) -> None:
    if len({number for number, _ in chosen}) < len(chosen):
        raise rules.internal_error()
    for number, etag in chosen:
        part = upload.parts.get(number)
        if part is None or part.etag != etag:
            raise rules.no_such_part()
    rules.check_parts(
        [(number, size_of(upload.parts[number].body)) for number, _ in chosen], profile
    )


def _object(upload: Upload, numbers: Sequence[int], version: str, now: int) -> Stored:
    parts = [upload.parts[number] for number in numbers]
    whole = hashlib.md5(b"".join(part.md5 for part in parts), usedforsecurity=False)
    return Stored(
        upload.key,
        version,
        sum(size_of(part.body) for part in parts),
        f"{whole.hexdigest()}-{len(parts)}",
        now,
        upload.metadata,
        {},
        tuple(part.body for part in parts),
    )
