"""Pull consumers over the REST API, with the official client (queues.md §5)."""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, queue_id, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from served_project import Project, Served

pytestmark = pytest.mark.asyncio


class Puller:
    """A queue with a pull consumer, and its messages by short names."""

    def __init__(self, client: Any, served: Served, queue: str) -> None:
        self.client = client
        self.served = served
        self.queue = queue

    async def push(self, *bodies: Any) -> None:
        for body in bodies:
            kind = "text" if isinstance(body, str) else "json"
            await self.client.queues.messages.push(
                self.queue, account_id=ACCOUNT, body=body, content_type=kind
            )

    async def pull(self, **options: Any) -> list[Any]:
        pulled = await self.client.queues.messages.pull(self.queue, account_id=ACCOUNT, **options)
        return list(pulled.messages)

    async def ack(self, *messages: Any, retries: Any = ()) -> Any:
        return await self.client.queues.messages.ack(
            self.queue,
            account_id=ACCOUNT,
            acks=[{"lease_id": message.lease_id} for message in messages],
            retries=list(retries),
        )

    async def count(self) -> int:
        metrics = await self.client.queues.get_metrics(self.queue, account_id=ACCOUNT)
        return int(metrics.backlog_count)


@asynccontextmanager
async def pulling(
    project: Project, served_by: Any = None, **consumer: Any
) -> AsyncIterator[Puller]:
    async with connected(project, **(served_by or {})) as (client, served):
        made = await client.queues.create(account_id=ACCOUNT, queue_name="tasks")
        await client.queues.consumers.create(
            made.queue_id, account_id=ACCOUNT, type="http_pull", **consumer
        )
        yield Puller(client, served, made.queue_id)


def labels(messages: list[Any]) -> list[tuple[str, int]]:
    """Body and attempt of each."""
    return [(message.body, int(message.attempts)) for message in messages]


async def test_messages_are_leased_acknowledged_and_retried_later(project: Project) -> None:
    """O-09: push 3, pull 2; ack one, retry one with 600 s; the third; then the retried one."""
    async with pulling(project) as puller:
        await puller.push("a", "b", "c")
        first, second = await puller.pull(batch_size=2)
        assert labels([first, second]) == [("a", 1), ("b", 1)]
        assert first.lease_id != second.lease_id
        answered = await puller.ack(
            first, retries=[{"lease_id": second.lease_id, "delay_seconds": 600}]
        )
        assert (answered.ack_count, answered.retry_count) == (1, 1)
        (third,) = await puller.pull(visibility_timeout_ms=1_200_000)
        assert labels([third]) == [("c", 1)]
        await puller.served.advance("599.999 seconds")
        assert await puller.pull() == []
        await puller.served.advance("0.001 seconds")
        assert labels(await puller.pull()) == [("b", 2)]


async def test_work_longer_than_the_lease_is_delivered_to_another_puller(project: Project) -> None:
    """S-10: lease 30 s, work 45 s: a second consumer gets it, attempts 2; the late ack counts."""
    async with pulling(project) as puller:
        await puller.push("slow")
        (first,) = await puller.pull()
        await puller.served.advance("29.999 seconds")
        assert await puller.pull() == []
        await puller.served.advance("0.001 seconds")
        (second,) = await puller.pull()
        assert (second.id, second.attempts) == (first.id, 2)
        assert second.lease_id != first.lease_id
        await puller.served.advance("15 seconds")
        answered = await puller.ack(first)  # 5.7: accepted although another one has it now
        assert (answered.ack_count, answered.retry_count) == (1, 0)
        assert await puller.count() == 0
        await puller.served.advance("1 day")
        assert await puller.pull() == []


async def test_pulls_take_five_at_once_and_then_the_rest(project: Project) -> None:
    """Scenario 49."""
    async with pulling(project) as puller:
        await puller.push(*"abcdefg")
        first, second = await puller.pull(), await puller.pull()
        assert labels(first + second) == [(letter, 1) for letter in "abcdefg"]
        assert len(first) == 5
        assert len({message.lease_id for message in first + second}) == 7
        assert await puller.pull() == []
        assert await puller.count() == 7  # leased ones are not acknowledged


async def test_a_lease_that_runs_out_for_the_last_time_is_a_dead_letter(project: Project) -> None:
    """5.6: after max_retries + 1 deliveries it moves to the DLQ, whether anybody pulls or not."""
    async with pulling(
        project,
        dead_letter_queue="graves",
        settings={"max_retries": 1, "visibility_timeout_ms": 1000},
    ) as puller:
        await puller.push("bad")
        await puller.pull()
        await puller.served.advance("1 second")
        (second,) = await puller.pull()
        assert second.attempts == 2
        graves = puller.served.desk.emulator.queues["graves"]
        await puller.served.advance("0.999 seconds")
        assert graves.backlog == []
        await puller.served.advance("0.001 seconds")
        assert [(message.body, message.attempts) for message in graves.backlog] == [("bad", 0)]
        assert puller.served.desk.emulator.queues["tasks"].dead_lettered == 1


async def test_without_a_dead_letter_queue_the_last_retry_drops_the_message(
    project: Project,
) -> None:
    async with pulling(project, settings={"max_retries": 0}) as puller:
        await puller.push("bad")
        (message,) = await puller.pull()
        answered = await puller.ack(retries=[{"lease_id": message.lease_id}])
        assert answered.retry_count == 1
        queue = puller.served.desk.emulator.queues["tasks"]
        assert (queue.dropped, queue.backlog) == (1, [])
        found = [finding.code for finding in puller.served.desk.emulator.findings]
        assert found == ["message_dropped"]


async def test_a_retry_without_a_delay_waits_for_the_consumers(project: Project) -> None:
    """5.7: the default is the consumer's `retry_delay`."""
    async with pulling(project, settings={"retry_delay": 60}) as puller:
        await puller.push("a")
        (message,) = await puller.pull()
        await puller.ack(retries=[{"lease_id": message.lease_id}])
        await puller.served.advance("59.999 seconds")
        assert await puller.pull() == []
        await puller.served.advance("0.001 seconds")
        assert labels(await puller.pull()) == [("a", 2)]


async def test_leases_that_are_not_known_are_warned_of(project: Project) -> None:
    """5.7: an unknown lease is in `warnings`, by its id."""
    async with pulling(project) as puller:
        answered = (
            await puller.client.queues.messages.with_raw_response.ack(
                puller.queue, account_id=ACCOUNT, acks=[{"lease_id": "nope"}], retries=[]
            )
        ).http_response.json()["result"]
        assert answered["ackCount"] == 0
        assert list(answered["warnings"]) == ["nope"]


async def test_bodies_are_encoded_as_documented(project: Project) -> None:
    """5.4: `text` is plain, `json` base64."""
    async with pulling(project) as puller:
        await puller.push("plain", {"a": [1, "é"]})
        text, data = await puller.pull()
        assert text.body == "plain"
        assert json.loads(b64decode(data.body)) == {"a": [1, "é"]}
        assert [message.metadata for message in (text, data)] == [
            {"CF-Content-Type": "text"},
            {"CF-Content-Type": "json"},
        ]
        now = int(puller.served.desk.emulator.now.timestamp() * 1000)
        assert text.timestamp_ms == now


async def test_json_bodies_are_plain_on_request(project: Project) -> None:
    """5.4: as two public repositories have seen it."""
    async with pulling(project) as puller:
        await puller.push({"a": 1})
        (message,) = await puller.pull(extra_headers={"Emulator-Json-Bodies": "plain"})
        assert message.body == '{"a":1}'


async def test_a_queue_without_a_pull_consumer_cannot_be_pulled(project: Project) -> None:
    """5.8, scenario 53."""
    async with connected(project) as (client, _):
        jobs = await queue_id(client, "jobs")
        status, _, text = await refused(client.queues.messages.pull(jobs, account_id=ACCOUNT))
        assert (status, text) == (
            405,
            "messages cannot be pulled unless http_pull mode is enabled",
        )


async def test_a_paused_queue_cannot_be_pulled_and_takes_messages(project: Project) -> None:
    """5.8, scenario 47."""
    async with pulling(project) as puller:
        await puller.client.queues.edit(
            puller.queue, account_id=ACCOUNT, settings={"delivery_paused": True}
        )
        await puller.push("a")
        status, _, text = await refused(
            puller.client.queues.messages.pull(puller.queue, account_id=ACCOUNT)
        )
        assert (status, text) == (409, "queue_delivery_paused")
        await puller.client.queues.edit(
            puller.queue, account_id=ACCOUNT, settings={"delivery_paused": False}
        )
        assert labels(await puller.pull()) == [("a", 1)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 101}, 'Number must be less than or equal to 100 at "batch_size"'),
        ({"batch_size": 0}, 'Number must be greater than or equal to 1 at "batch_size"'),
        (
            {"visibility_timeout_ms": 43_200_001},
            'Number must be less than or equal to 43200000 at "visibility_timeout_ms"',
        ),
        ({"batch_size": "5"}, 'Expected number, received string at "batch_size"'),
        ({"batch_size": 1.5}, 'Expected integer, received float at "batch_size"'),
    ],
)
async def test_a_pull_out_of_range_is_refused(
    project: Project, options: dict[str, Any], text: str
) -> None:
    """5.2: the shape of this error is not known; it is status 400."""
    async with pulling(project) as puller:
        call = puller.client.queues.messages.pull(puller.queue, account_id=ACCOUNT, **options)
        assert await refused(call) == (400, 10207, text)


async def test_leases_and_consumer_survive_a_restart(project: Project) -> None:
    """A pulled message stays leased, its lease answers, and the queue is still there."""
    state = {"state": project.state}
    async with pulling(project, state) as puller:
        await puller.push("a", "b")
        leased = (await puller.pull(batch_size=1))[0]
    async with connected(project, **state) as (client, served):
        again = Puller(client, served, await queue_id(client, "tasks"))
        assert labels(await again.pull()) == [("b", 1)]
        assert (await again.ack(leased)).ack_count == 1
        await served.advance("30 seconds")
        assert labels(await again.pull()) == [("b", 2)]


async def test_peeked_messages_stay_and_can_be_purged_one_by_one(project: Project) -> None:
    """§7: `peek`, and `purge` by `ref`."""
    async with pulling(project) as puller:
        await puller.push("a", "b", "c")
        messages = puller.client.queues.messages
        peeked = (await messages.peek(puller.queue, account_id=ACCOUNT, batch_size=2)).messages
        assert labels(peeked) == [("a", 0), ("b", 0)]
        refs = [{"ref": peeked[0].ref}, {"ref": "nope"}]
        purged = await messages.purge(puller.queue, account_id=ACCOUNT, refs=refs)
        assert purged.errors == []
        assert list(purged.warnings) == ["nope"]
        assert labels(await puller.pull()) == [("b", 1), ("c", 1)]
