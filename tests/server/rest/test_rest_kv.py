"""KV over the REST API, with the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, listed, refused
from rest_stores import CACHE, write_stores

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio
BASE = f"/cdn-cgi/emulator/client/v4/accounts/{ACCOUNT}/storage/kv/namespaces/{CACHE}"
WHERE = {"account_id": ACCOUNT, "namespace_id": CACHE}


@pytest.fixture
def shop(project: Project) -> Project:
    write_stores(project)
    return project


async def put(client: Any, key: str, value: str | bytes, **options: Any) -> None:
    data = value.encode() if isinstance(value, str) else value  # it takes a text for a mistake
    await client.kv.namespaces.values.update(key, value=data, **WHERE, **options)


async def get(client: Any, key: str) -> bytes:
    return bytes(await (await client.kv.namespaces.values.get(key, **WHERE)).read())


async def test_the_namespaces_are_those_of_the_config(shop: Project) -> None:
    async with connected(shop) as (client, _):
        (one,) = await listed(client.kv.namespaces.list(account_id=ACCOUNT))
        assert (one.id, one.title) == (CACHE, "CACHE")
        assert (await client.kv.namespaces.get(CACHE, account_id=ACCOUNT)).title == "CACHE"
        call = client.kv.namespaces.get("nope", account_id=ACCOUNT)
        assert await refused(call) == (404, 10013, "namespace not found")
        told = f"the namespace named 'CACHE' has the id {CACHE}"
        status, code, text = await refused(client.kv.namespaces.get("CACHE", account_id=ACCOUNT))
        assert (status, code) == (404, 10013)
        assert text == f"namespace not found: this path takes a namespace's id, and {told}"


async def test_values_pass_both_ways_between_api_and_worker(shop: Project) -> None:
    state = {"state": shop.state}
    async with connected(shop, **state) as (client, served):
        await served.client.put("/", content=b"hello")
        assert await get(client, "worker") == b"hello"
        metadata = await client.kv.namespaces.metadata.get("worker", **WHERE)
        assert metadata == {"by": "worker"}
        await put(client, "a/b c", "text", metadata={"n": [1]})
        await put(client, "bytes", b"\x00\xff")
        kinds = [event.data["by"] for event in served.desk.emulator.trace if event.kind == "kv"]
        assert kinds[-1] == "rest"
    async with connected(shop, **state) as (client, _):
        assert await get(client, "a/b c") == b"text"
        assert await client.kv.namespaces.metadata.get("a/b c", **WHERE) == {"n": [1]}
        assert await get(client, "bytes") == b"\x00\xff"
        assert await client.kv.namespaces.metadata.get("bytes", **WHERE) is None


async def test_a_plain_body_is_the_value(shop: Project) -> None:
    async with connected(shop) as (client, served):
        answer = await served.client.put(f"{BASE}/values/raw", content=b"\x80")
        assert (answer.status_code, answer.json()["success"]) == (200, True)
        assert await get(client, "raw") == b"\x80"


async def test_a_key_that_is_not_there_is_not_found(shop: Project) -> None:
    async with connected(shop) as (client, _):
        for call in (
            client.kv.namespaces.values.get("nope", **WHERE),
            client.kv.namespaces.metadata.get("nope", **WHERE),
        ):
            assert await refused(call) == (404, 10009, "get: 'key not found'")
        await put(client, "a", "1")
        for _ in range(2):  # whether it is there or not
            await client.kv.namespaces.values.delete("a", **WHERE)
        assert (await refused(client.kv.namespaces.values.get("a", **WHERE)))[0] == 404


async def test_a_value_expires(shop: Project) -> None:
    async with connected(shop) as (client, served):
        await put(client, "a", "1", expiration_ttl=60)
        answer = await served.client.get(f"{BASE}/values/a")
        now = int(served.desk.emulator.now.timestamp())
        assert answer.headers["expiration"] == str(now + 60)
        await served.advance("58 seconds")
        assert await get(client, "a") == b"1"
        await served.advance("2 seconds")
        assert (await refused(client.kv.namespaces.values.get("a", **WHERE)))[0] == 404


@pytest.mark.parametrize(
    ("key", "options", "status"),
    [
        ("a", {"expiration_ttl": 59}, 400),
        ("a", {"expiration": 5}, 400),
        ("a", {"metadata": {"long": "x" * 1024}}, 413),
        ("k" * 513, {}, 414),
    ],
)
async def test_what_a_worker_could_not_store_is_refused(
    shop: Project, key: str, options: dict[str, Any], status: int
) -> None:
    async with connected(shop) as (client, served):
        assert (await refused(put(client, key, "1", **options)))[0] == status
        assert (await served.client.get(f"{BASE}/keys")).json()["result"] == []


async def test_keys_are_listed_in_pages(shop: Project) -> None:
    async with connected(shop) as (client, served):
        keys = client.kv.namespaces.keys
        for number in range(5):
            await put(client, f"k{number}", "x", metadata={"n": number})
        await put(client, "other", "x")
        found = await listed(keys.list(**WHERE, prefix="k", limit=2))
        assert [(key.name, key.metadata) for key in found] == [
            (f"k{number}", {"n": number}) for number in range(5)
        ]
        answer = (await served.client.get(f"{BASE}/keys", params={"limit": 2})).json()
        assert answer["result_info"]["count"] == 2
        assert answer["result_info"]["cursor"]
        for wrong in ({"limit": 1001}, {"limit": "x"}, {"cursor": "!"}):
            assert (await served.client.get(f"{BASE}/keys", params=wrong)).status_code == 400


async def test_several_keys_at_once(shop: Project) -> None:
    async with connected(shop) as (client, _):
        all_of = client.kv.namespaces
        stored = await all_of.bulk_update(
            **WHERE,
            body=[
                {"key": "a", "value": '{"n": 1}', "metadata": {"m": 1}},
                {"key": "b", "value": "AAE=", "base64": True, "expiration_ttl": 100},
            ],
        )
        assert (stored.successful_key_count, stored.unsuccessful_keys) == (2, [])
        assert await get(client, "b") == b"\x00\x01"
        read = await all_of.bulk_get(**WHERE, keys=["a", "c"], type="json")
        assert read.values == {"a": {"n": 1}, "c": None}
        full = await all_of.bulk_get(**WHERE, keys=["a", "b"], with_metadata=True)
        assert full.values["a"].metadata == {"m": 1}
        assert full.values["b"].expiration > 0
        assert (await refused(all_of.bulk_get(**WHERE, keys=["b"], type="json")))[0] == 400
        assert (await refused(all_of.bulk_get(**WHERE, keys=[])))[0] == 400
        deleted = await all_of.bulk_delete(**WHERE, body=["a", "b", "c"])
        assert deleted.successful_key_count == 3
        assert await listed(all_of.keys.list(**WHERE)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"key": "b"},
        {"key": "b", "value": "!", "base64": True},
        {"key": "b", "value": "x", "expiration_ttl": 1},
        {"key": "b", "value": "x", "expiration_ttl": "soon"},
        {"key": "", "value": "x"},
        "b",
    ],
)
async def test_of_several_pairs_all_are_stored_or_none(shop: Project, wrong: Any) -> None:
    async with connected(shop) as (_, served):
        pairs = [{"key": "a", "value": "1"}, wrong]
        answer = await served.client.put(f"{BASE}/bulk", json=pairs)
        assert answer.status_code == 400
        assert (await served.client.get(f"{BASE}/keys")).json()["result"] == []
