"""A namespace in a test's hand: `emulator.kv`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kv_bench import FROZEN, running
from pyodide.ffi import JsException

from emulator.kv.control import KvControl

pytestmark = pytest.mark.asyncio


async def test_a_namespace_is_found_by_its_binding_and_its_id() -> None:
    namespaces = [{"binding": "CACHE", "id": "c0ffee"}, {"binding": "SAME", "id": "c0ffee"}]
    async with running(config={"kv_namespaces": namespaces}) as emulator:
        assert list(emulator.kv) == ["CACHE", "c0ffee", "SAME"]
        assert isinstance(emulator.kv["c0ffee"], KvControl)
        assert repr(emulator.kv["CACHE"]) == "<KV namespace CACHE>"
        emulator.kv["CACHE"].put("a", "1")
        assert emulator.kv["SAME"].keys == ["a"]
        with pytest.raises(KeyError, match="there is no KV namespace 'no'; there are: CACHE, c0"):
            emulator.kv["no"]
    async with running(config={"kv_namespaces": []}) as emulator:
        with pytest.raises(KeyError, match="there are: none"):
            emulator.kv["KV"]


async def test_an_entry_is_shown_with_all_there_is() -> None:
    async with running() as emulator:
        await emulator.env.KV.put("b", "é", metadata={"n": [1]}, expirationTtl=60)
        await emulator.env.KV.put("a", b"\xff")
        kv = emulator.kv["KV"]
        assert kv.keys == ["a", "b"]
        first, second = kv.entries
        assert (first.key, first.value, first.metadata) == ("a", b"\xff", None)
        assert first.expiration is None
        assert (second.text, second.metadata) == ("é", {"n": [1]})
        assert second.expiration == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
        assert kv.get("b") == second
        await emulator.advance("60 s")
        assert (kv.keys, kv.get("b"), kv.get("no")) == (["a"], None, None)


@pytest.mark.parametrize("date", [*FROZEN, "2026-09-08"])
async def test_what_a_test_stores_the_worker_reads(date: str) -> None:
    async def handle(env: Any) -> str:
        found = await env.KV.getWithMetadata("a")
        return f"{found.value} {found.metadata.n}"

    async with running(handle, config={"compatibility_date": date}) as emulator:
        kv = emulator.kv["KV"]
        kv.put("a", "1", metadata={"n": 1})
        kv.put("data", b"\x00", expiration_ttl=60)
        kv.put("later", "x", expiration=1_767_225_700)
        assert (await emulator.fetch("/")).text == "1 1"
        expirations = [entry.expiration for entry in kv.entries]
        assert [moment and moment.minute for moment in expirations] == [None, 1, 1]
        kv.delete("a", "no")
        await emulator.restart()
        assert kv.keys == ["data", "later"]
        told = [(e.data["call"], e.data["by"]) for e in emulator.trace if e.kind == "kv"]
        assert told.count(("put", "test")) == 3


async def test_what_a_test_stores_is_stale_as_any_write() -> None:
    async def handle(env: Any) -> Any:
        return await env.KV.get("a")

    async with running(handle, faults="kv.KV.get#1:stale") as emulator:
        emulator.kv["KV"].put("a", "1")
        emulator.kv["KV"].put("a", "2")
        assert (await emulator.fetch("/")).text == "1"
        assert emulator.kv["KV"].get("a").text == "2"  # type: ignore[union-attr]


async def test_what_kv_refuses_a_test_cannot_store() -> None:
    async with running() as emulator:
        kv = emulator.kv["KV"]
        with pytest.raises(JsException, match=r"^TypeError: Key name cannot be empty\.$"):
            kv.put("", "x")
        with pytest.raises(JsException, match=r"KV PUT failed: 400 Invalid expiration_ttl of 5\."):
            kv.put("a", "x", expiration_ttl=5)
        with pytest.raises(JsException, match="413 Metadata length"):
            kv.put("a", "x", metadata="m" * 2_000)
        assert kv.keys == []
