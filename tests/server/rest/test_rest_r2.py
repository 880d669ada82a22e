"""Event notifications of R2 buckets over the REST API, with the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_bucket import write_bucket
from rest_client import ACCOUNT, connected, queue_id, refused

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio


@pytest.fixture
def shop(project: Project) -> Project:
    write_bucket(project)
    return project


class Rules:
    """The rules of the bucket `files` for the queue `uploads`."""

    def __init__(self, client: Any, queue: str) -> None:
        self._api = client.r2.buckets.event_notifications
        self._where = {"account_id": ACCOUNT, "bucket_name": "files"}
        self._queue = queue

    def add(self, *rules: dict[str, Any], **options: Any) -> Any:
        return self._api.update(self._queue, rules=list(rules), **{**self._where, **options})

    async def listed(self, **options: Any) -> list[tuple[Any, ...]]:
        found = await self._api.list(**{**self._where, **options})
        assert found.bucket_name == "files"
        return [
            (queue.queue_name, rule.actions, rule.prefix, rule.suffix)
            for queue in found.queues
            for rule in queue.rules
        ]

    async def get(self) -> Any:
        return await self._api.get(self._queue, **self._where)

    async def delete(self, **options: Any) -> None:
        await self._api.delete(self._queue, **self._where, **options)


async def test_a_rule_sends_messages_and_outlasts_the_server(shop: Project) -> None:
    state = {"state": shop.state}
    async with connected(shop, **state) as (client, served):
        rules = Rules(client, await queue_id(client, "uploads"))
        assert await rules.listed() == []
        await rules.add({"actions": ["PutObject"], "prefix": "a", "description": "as"})
        await rules.add({"actions": ["PutObject"], "prefix": "b", "suffix": ".txt"})
        await served.client.put("/a1", content=b"hello")
        await served.client.put("/c1", content=b"hello")
    async with connected(shop, **state) as (client, served):
        rules = Rules(client, await queue_id(client, "uploads"))
        assert await rules.listed() == [
            ("uploads", ["PutObject"], "a", ""),
            ("uploads", ["PutObject"], "b", ".txt"),
        ]
        (first, second) = (await rules.get()).rules
        assert (first.description, first.created_at[:2], len(first.rule_id)) == ("as", "20", 32)
        await served.client.put("/b1.txt", content=b"hello")
        sent = [event.data for event in served.desk.emulator.trace if event.kind == "send"]
        assert [one["by"] for one in sent] == ["bucket files"]
        assert sent[0]["body"].value["object"]["key"] == "b1.txt"
        assert await rules.listed(extra_headers={"cf-r2-jurisdiction": "eu"}) == []
        await rules.delete(extra_body={"ruleIds": [second.rule_id]})
        assert await rules.listed() == [("uploads", ["PutObject"], "a", "")]
        await rules.delete()
        assert await rules.listed() == []


async def test_rules_are_added_all_or_none(shop: Project) -> None:
    async with connected(shop) as (client, _):
        rules = Rules(client, await queue_id(client, "uploads"))
        both = ({"actions": ["PutObject"]}, {"actions": ["PutObject"], "prefix": "a"})
        status, code, text = await refused(rules.add(*both))
        assert (status, code) == (400, 10001)
        assert "overlaps with one that is there" in text
        assert await rules.listed() == []


async def test_what_is_not_there_or_wrong_is_refused(shop: Project) -> None:
    async with connected(shop) as (client, _):
        rules = Rules(client, await queue_id(client, "uploads"))
        assert await refused(rules.add({"actions": ["PutObject"]}, bucket_name="nope")) == (
            *(404, 10006, "The specified bucket does not exist."),
        )
        no_queue = Rules(client, "0" * 32).add({"actions": ["PutObject"]})
        assert await refused(no_queue) == (404, 11000, "Queue not found.")
        for actions in ([], ["object-create"], "PutObject"):
            status, code, text = await refused(rules.add({"actions": actions}))
            assert (status, code) == (400, 10207)
            assert 'at "rules.0.actions"' in text
        assert (await refused(rules.delete(extra_body={"ruleIds": ["nope"]})))[:2] == (404, 10001)
