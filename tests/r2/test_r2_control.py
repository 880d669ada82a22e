"""A bucket in a test's hand: `emulator.r2`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyodide.ffi import JsException
from r2_bench import FROZEN, HELLO_MD5, running

from emulator.r2.control import R2Control

pytestmark = pytest.mark.asyncio


async def test_a_bucket_is_found_by_its_binding_and_its_name() -> None:
    async with running() as emulator:
        assert list(emulator.r2) == ["R2", "files"]
        assert isinstance(emulator.r2["files"], R2Control)
        assert repr(emulator.r2["R2"]) == "<R2 bucket R2>"
        with pytest.raises(KeyError, match="there is no R2 bucket 'nope'; there are: R2, files"):
            emulator.r2["nope"]
    async with running(config={"r2_buckets": []}) as emulator:
        with pytest.raises(KeyError, match="there are: none"):
            emulator.r2["R2"]


async def test_an_object_is_shown_with_all_there_is() -> None:
    async with running() as emulator:
        expiry = datetime(2026, 2, 1, tzinfo=UTC)
        http = {"contentType": "text/plain", "cacheExpiry": expiry}
        await emulator.advance("1 h")
        await emulator.env.R2.put("k", "hello", httpMetadata=http, customMetadata={"n": "1"})
        found = emulator.r2["R2"].get("k")
        assert found is not None
        assert emulator.r2["R2"].objects == [found]
        assert (found.key, found.body, found.text, found.size) == ("k", b"hello", "hello", 5)
        assert (found.etag, found.storage_class) == (HELLO_MD5, "Standard")
        assert found.uploaded == datetime(2026, 1, 1, 1, tzinfo=UTC)
        assert (found.http_metadata, found.custom_metadata) == (http, {"n": "1"})
        assert emulator.r2["R2"].get("no") is None


@pytest.mark.parametrize("date", [*FROZEN, "2026-09-08"])
async def test_what_a_test_stores_the_worker_reads(date: str) -> None:
    async def handle(env: Any) -> str:
        found = await env.R2.get("k")
        return f"{await found.text()} {found.httpMetadata.contentType} {found.customMetadata.n}"

    async with running(handle, config={"compatibility_date": date}) as emulator:
        bucket = emulator.r2["files"]
        put = bucket.put(
            "k", "hello", http_metadata={"contentType": "a/b"}, custom_metadata={"n": "1"}
        )
        assert put == bucket.get("k")
        bucket.put("data", b"\x00\xff", storage_class="InfrequentAccess")
        bucket.put("view", memoryview(b"abc"))  # type: ignore[arg-type]
        assert (await emulator.fetch("/")).text == "hello a/b 1"
        assert bucket.keys == ["data", "k", "view"]
        assert [found.body for found in bucket.objects] == [b"\x00\xff", b"hello", b"abc"]
        bucket.delete("k", "no", "view")
        assert bucket.keys == ["data"]
        await emulator.restart()
        assert bucket.get("data").storage_class == "InfrequentAccess"  # type: ignore[union-attr]
        told = [(e.data["call"], e.data["by"]) for e in emulator.trace if e.kind == "r2"]
        assert told.count(("put", "test")) == 3
        assert told.count(("delete", "test")) == 3


async def test_what_r2_refuses_a_test_cannot_store() -> None:
    async with running() as emulator:
        bucket = emulator.r2["R2"]
        with pytest.raises(JsException, match=r"^Error: put: The specified object name .*10020"):
            bucket.put("x" * 1_025, "x")
        with pytest.raises(JsException, match="maximum allowed metadata size"):
            bucket.put("k", "x", custom_metadata={"a": "b" * 9_000})
        with pytest.raises(JsException, match="'cacheExpiry' field on 'HttpMetadata'"):
            bucket.put("k", "x", http_metadata={"cacheExpiry": "soon"})
        assert bucket.keys == []


async def test_uploads_that_are_not_over_are_shown() -> None:
    async with running() as emulator:
        first = await emulator.env.R2.createMultipartUpload("a")
        second = await emulator.env.R2.createMultipartUpload("b")
        await second.uploadPart(2, "xy")
        await second.uploadPart(1, "x")
        (one, two) = emulator.r2["R2"].uploads
        assert (one.id, one.key, one.parts) == (first.uploadId, "a", {})
        assert (two.id, list(two.parts.items())) == (second.uploadId, [(1, 1), (2, 2)])
        assert one.created == datetime(2026, 1, 1, tzinfo=UTC)
        await first.abort()
        assert [upload.key for upload in emulator.r2["R2"].uploads] == ["b"]
