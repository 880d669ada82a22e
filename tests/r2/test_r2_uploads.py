"""Uploads in parts: what they give, what they refuse, when they are over.

Shapes and texts are those of miniflare 4.20260426 with workerd 1.20260426.1, where nothing else is
said.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from pyodide.ffi import to_js
from r2_bench import FROZEN, PART, PROFILES, got, problem, running

pytestmark = pytest.mark.asyncio

GONE = "The specified multipart upload does not exist. (10024)"
NO_PART = "Error: completeMultipartUpload: One or more of the specified parts could not be found."


def etag_of(*parts: bytes) -> str:
    whole = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
    return f"{whole}-{len(parts)}"


async def test_parts_become_an_object() -> None:
    async def handle(env: Any) -> Any:
        upload = await env.R2.createMultipartUpload(
            "k", httpMetadata={"contentType": "video/x"}, customMetadata={"n": "1"}
        )
        same = env.R2.resumeMultipartUpload("k", upload.uploadId)
        first = await upload.uploadPart(1, "A" * PART)
        second = await same.uploadPart(2, b"tail")
        before = await env.R2.head("k")
        put = await same.complete([first, second])
        part = await env.R2.get("k", range={"offset": PART - 2, "length": 4})
        return [
            [upload.key, len(upload.uploadId), before],
            [first["partNumber"], len(first.etag)],
            [put.key, put.size, put.etag, put.httpMetadata["contentType"], put.customMetadata],
            put.checksums.md5,
            await part.text(),
            await problem(lambda: upload.complete([first, second])),
            await upload.abort(),
            await problem(lambda: upload.uploadPart(3, "x")),
        ]

    assert await got(handle) == [
        ["k", 171, None],
        [1, 171],
        ["k", PART + 4, etag_of(b"A" * PART, b"tail"), "video/x", {"n": "1"}],
        None,
        "AAta",
        f"Error: completeMultipartUpload: {GONE}",
        None,
        f"Error: uploadPart: {GONE}",
    ]


@pytest.mark.parametrize("date", FROZEN)
async def test_parts_become_an_object_with_the_frozen_sdk(date: str) -> None:
    async def handle(env: Any) -> Any:
        upload = await env.R2.createMultipartUpload("k")
        part = await upload.uploadPart(1, "tiny")
        as_list = await problem(lambda: upload.complete([part]))
        put = await upload.complete(to_js([part]))
        return [upload.constructor.name, part.partNumber, as_list, put.size]

    assert await got(handle, date=date) == [
        "R2MultipartUpload",
        1,
        "TypeError: Failed to execute 'complete' on 'R2MultipartUpload': parameter 1 is not of "
        "type 'Array'.",
        4,
    ]


async def test_a_part_may_be_uploaded_again() -> None:
    async def handle(env: Any) -> Any:
        upload = await env.R2.createMultipartUpload("k")
        first = await upload.uploadPart(1, "a")
        second = await upload.uploadPart(1, "b")
        void = await problem(lambda: upload.complete([first]))
        await upload.complete([second])
        return [void, await (await env.R2.get("k")).text()]

    assert await got(handle) == [f"{NO_PART} (10025)", "b"]


async def test_an_object_stays_until_the_upload_is_complete() -> None:
    async def handle(env: Any) -> Any:
        async def text() -> str:
            return str(await (await env.R2.get("k")).text())

        await env.R2.put("k", "old")
        upload = await env.R2.createMultipartUpload("k")
        part = await upload.uploadPart(1, "new")
        before = await text()
        await upload.complete([part])
        after = await text()
        await env.R2.put("k", "newer")
        return [before, after, await text()]

    assert await got(handle) == ["old", "new", "newer"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_parts_have_one_size_but_for_the_last(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        upload = await env.R2.createMultipartUpload("k")
        sizes = {1: PART, 2: PART + 1, 3: 1}
        parts = {n: await upload.uploadPart(n, b"x" * size) for n, size in sizes.items()}

        def complete(*numbers: int) -> Any:
            return problem(lambda: upload.complete([parts[number] for number in numbers]))

        return [await complete(3, 1), await complete(1, 2, 3), await complete(1, 2)]

    unequal = {
        "production": "All non-trailing parts must have the same length. (10048)",
        "miniflare": "There was a problem with the multipart upload. (10048)",
    }[profile]
    error = "Error: completeMultipartUpload:"
    assert await got(handle, profile=profile) == [
        f"{error} Your proposed upload is smaller than the minimum allowed object size. (10011)",
        f"{error} {unequal}",
        f"{error} {unequal}",
    ]


NUMBER = "TypeError: Part number must be between 1 and 10000 (inclusive). Actual value was:"
COMPLETE = "TypeError: Failed to execute 'complete' on 'R2MultipartUpload'"
UPLOAD = "TypeError: Failed to execute 'uploadPart' on 'R2MultipartUpload'"
NOT_A_BODY = (
    f"{UPLOAD}: parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or "
    "string or Blob'."
)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda u: u.uploadPart(0, "a"), f"{NUMBER} 0"),
        (lambda u: u.uploadPart(10_001, "a"), f"{NUMBER} 10001"),
        (lambda u: u.uploadPart(1, None), NOT_A_BODY),
        (lambda u: u.uploadPart(1), NOT_A_BODY),
        (lambda u: u.uploadPart(), f"{UPLOAD}: parameter 1 is not of type 'integer'."),
        (lambda u: u.complete(), f"{COMPLETE}: parameter 1 is not of type 'Array'."),
        (lambda u: u.complete("x"), f"{COMPLETE}: parameter 1 is not of type 'Array'."),
        (
            lambda u: u.complete(["x"]),
            "TypeError: Incorrect type for array element 0: the provided value is not of type "
            "'UploadedPart'.",
        ),
        (lambda u: u.complete([{"etag": "x"}]), f"{NUMBER} 0"),
        (lambda u: u.complete([{"partNumber": 1, "etag": "x"}]), f"{NO_PART} (10025)"),
        (
            lambda u: u.complete([{"partNumber": 1, "etag": "x"}] * 2),
            "Error: completeMultipartUpload: We encountered an internal error. Please try again. "
            "(10001)",
        ),
    ],
)
async def test_what_is_no_part_is_refused(call: Any, error: str) -> None:
    async def handle(env: Any) -> Any:
        upload = await env.R2.createMultipartUpload("k")
        return await problem(lambda: call(upload))

    assert await got(handle) == error


async def test_an_upload_that_never_was_is_found_out_late() -> None:
    async def handle(env: Any) -> Any:
        other = await env.R2.createMultipartUpload("other")
        found = []
        for upload in (
            env.R2.resumeMultipartUpload("k", "nope"),
            env.R2.resumeMultipartUpload("k", other.uploadId),
        ):
            found += [
                await problem(lambda upload=upload: upload.uploadPart(1, "x")),
                await problem(lambda upload=upload: upload.complete([])),
                await problem(upload.abort),
            ]
        return found

    internal = "We encountered an internal error. Please try again. (10001)"
    assert (
        await got(handle)
        == [
            f"Error: uploadPart: {GONE}",
            f"Error: completeMultipartUpload: {internal}",
            f"Error: abortMultipartUpload: {internal}",
        ]
        * 2
    )


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_upload_is_aborted_after_seven_days(profile: Any) -> None:
    """The default rule of a bucket; the local simulator has none."""
    ids: list[str] = []

    async def handle(env: Any) -> str:
        if not ids:
            upload = await env.R2.createMultipartUpload("k")
            ids.append(upload.uploadId)
        upload = env.R2.resumeMultipartUpload("k", ids[0])
        return await problem(lambda: upload.uploadPart(1, "x"))

    async with running(handle, profile=profile) as emulator:
        assert (await emulator.fetch("/")).text == ""
        await emulator.advance("6 days 23 h")
        assert (await emulator.fetch("/")).text == ""
        assert [upload.parts for upload in emulator.r2["R2"].uploads] == [{1: 1}]
        await emulator.advance("1 h")
        gone = profile == "production"
        assert len(emulator.r2["R2"].uploads) == (0 if gone else 1)  # before anybody asks
        assert (await emulator.fetch("/")).text == (f"Error: uploadPart: {GONE}" if gone else "")
        assert len(emulator.r2["R2"].uploads) == (0 if gone else 1)


@pytest.mark.parametrize("profile", PROFILES)
async def test_metadata_of_an_upload_are_checked_in_production(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        given = {"a": "b" * 8_192}
        return await problem(lambda: env.R2.createMultipartUpload("k", customMetadata=given))

    text = "Your metadata headers exceed the maximum allowed metadata size. (10012)"
    expected = f"Error: createMultipartUpload: {text}" if profile == "production" else ""
    assert await got(handle, profile=profile) == expected
