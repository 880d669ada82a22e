"""Queues and consumers over the REST API, with the official client (queues.md §7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, listed, queue_id, refused

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio

HELPER = """
{
  "name": "helper", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
}
"""


async def names(client: Any) -> list[str]:
    return [queue.queue_name for queue in await listed(client.queues.list(account_id=ACCOUNT))]


# -- queues --------------------------------------------------------------------------------------


async def test_the_queues_of_the_config_are_there(project: Project) -> None:
    """7.1 and 7.2."""
    async with connected(project) as (client, served):
        (queue,) = await listed(client.queues.list(account_id=ACCOUNT))
        assert queue.queue_name == "jobs"
        assert len(queue.queue_id) == 32
        assert [producer.script for producer in queue.producers] == ["demo"]
        (consumer,) = queue.consumers
        assert (consumer.type, consumer.script_name, consumer.script) == ("worker", "demo", "demo")
        assert consumer.settings.to_dict() == {
            "batch_size": 10,
            "max_concurrency": None,
            "max_retries": 3,
            "max_wait_time_ms": 1000,
            "retry_delay": 0,
        }
        assert queue.settings.to_dict() == {
            "delivery_delay": 0,
            "delivery_paused": False,
            "message_retention_period": 345_600,
        }
        assert (queue.producers_total_count, queue.consumers_total_count) == (1, 1)
        got = await client.queues.get(queue.queue_id, account_id=ACCOUNT)
        assert got == queue
        assert served.desk.emulator.now.isoformat()[:10] in queue.created_on


async def test_a_queue_is_made_found_by_name_and_deleted(project: Project) -> None:
    async with connected(project) as (client, served):
        made = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        assert await names(client) == ["jobs", "extra"]
        found = await client.get(
            f"/accounts/{ACCOUNT}/queues", cast_to=object, options={"params": {"name": "extra"}}
        )
        assert [queue["queue_name"] for queue in found["result"]] == ["extra"]
        assert found["result_info"]["total_count"] == 1
        assert "extra" in served.desk.emulator.queues
        await client.queues.delete(made.queue_id, account_id=ACCOUNT)
        assert await names(client) == ["jobs"]
        assert "extra" not in served.desk.emulator.queues
        assert (await refused(client.queues.get(made.queue_id, account_id=ACCOUNT)))[:2] == (
            404,
            11000,
        )


async def test_a_name_that_is_taken_is_refused(project: Project) -> None:
    async with connected(project) as (client, _):
        call = client.queues.create(account_id=ACCOUNT, queue_name="jobs")
        text = "Queue name 'jobs' is already taken. Please use a different name and try again."
        assert await refused(call) == (400, 11009, text)


@pytest.mark.parametrize(
    "name", ["", "x" * 64, "a/b", "a\nb", "a\n", "q q", "a_b", "A", "-a", "a-"]
)
async def test_a_name_that_is_none_is_refused(project: Project, name: str) -> None:
    """workers-sdk#2522."""
    async with connected(project) as (client, _):
        refusal = await refused(client.queues.create(account_id=ACCOUNT, queue_name=name))
        text = f"Invalid queue name: invalid queue name: {name}. Must match "
        assert refusal == (400, 11003, text + "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
        for good in ("a", "x" * 63, "1-a-1"):
            await client.queues.create(account_id=ACCOUNT, queue_name=good)


async def test_a_name_that_is_no_text_is_refused(project: Project) -> None:
    async with connected(project) as (client, _):
        name: Any = 5
        status, code, _ = await refused(client.queues.create(account_id=ACCOUNT, queue_name=name))
        assert (status, code) == (400, 10207)


async def test_settings_hold_at_once_and_after_a_restart(project: Project) -> None:
    """PATCH sets some; a message sent later waits for the queue's delay."""
    state = {"state": project.state}
    async with connected(project, **state) as (client, served):
        jobs = await queue_id(client, "jobs")
        edited = await client.queues.edit(
            jobs,
            account_id=ACCOUNT,
            settings={"delivery_delay": 60, "message_retention_period": 3600},
        )
        assert edited.settings.delivery_delay == 60
        await served.client.post("/", content=b"one")
        await served.advance("59 seconds")
        assert served.logs == []
        await served.advance("2 seconds")
        assert served.logs == ["version 1 ['one']"]
    async with connected(project, **state) as (client, _):
        queue = await client.queues.get(jobs, account_id=ACCOUNT)
        assert (queue.settings.delivery_delay, queue.settings.message_retention_period) == (
            60,
            3600,
        )
        replaced = await client.queues.update(
            jobs, account_id=ACCOUNT, settings={"delivery_delay": 5}
        )  # PUT sets all
        assert replaced.settings.to_dict() == {
            "delivery_delay": 5,
            "delivery_paused": False,
            "message_retention_period": 345_600,
        }


@pytest.mark.parametrize(
    "settings",
    [
        {"delivery_delay": 86_401},
        {"delivery_delay": -1},
        {"message_retention_period": 59},
        {"message_retention_period": 1_209_601},
        {"delivery_paused": "yes"},
        {"delivery_delay": 0.5},
    ],
)
async def test_settings_out_of_range_are_refused_and_change_nothing(
    project: Project, settings: dict[str, Any]
) -> None:
    """7.6: code 100128."""
    async with connected(project) as (client, _):
        jobs = await queue_id(client, "jobs")
        before = await client.queues.get(jobs, account_id=ACCOUNT)
        call = client.queues.edit(jobs, account_id=ACCOUNT, settings=settings)
        assert await refused(call) == (400, 100128, "The specified queue settings are invalid.")
        assert await client.queues.get(jobs, account_id=ACCOUNT) == before


async def test_deliveries_stop_and_go_on(project: Project) -> None:
    """6.1, scenario 47."""
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        await client.queues.edit(jobs, account_id=ACCOUNT, settings={"delivery_paused": True})
        await served.client.post("/", content=b"one")
        await served.advance("1 hour")
        assert served.desk.emulator.queues["jobs"].deliveries == []
        await client.queues.edit(jobs, account_id=ACCOUNT, settings={"delivery_paused": False})
        await served.advance("1 second")
        assert [one.outcome for one in served.desk.emulator.queues["jobs"].deliveries] == ["ack"]


async def test_a_purge_deletes_delayed_messages_too(project: Project) -> None:
    """6.2, scenario 48."""
    async with connected(project) as (client, served):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        id, messages = queue.queue_id, client.queues.messages
        assert (await client.queues.purge.status(id, account_id=ACCOUNT)).started_at == ""
        for delay in (0, 0, 0, 600, 600):
            await messages.push(
                id, account_id=ACCOUNT, body="x", content_type="text", delay_seconds=delay
            )
        assert (await client.queues.get_metrics(id, account_id=ACCOUNT)).to_dict() == {
            "backlog_bytes": 5,
            "backlog_count": 5,
            "oldest_message_timestamp_ms": int(served.desk.emulator.now.timestamp() * 1000),
        }
        purged = await client.queues.purge.start(
            id, account_id=ACCOUNT, delete_messages_permanently=True
        )
        assert purged.queue_name == "extra"
        assert (await client.queues.get_metrics(id, account_id=ACCOUNT)).to_dict() == {
            "backlog_bytes": 0,
            "backlog_count": 0,
            "oldest_message_timestamp_ms": 0,
        }
        status = await client.queues.purge.status(id, account_id=ACCOUNT)
        assert (status.completed, status.started_at[-1]) == ("true", "Z")


async def test_a_purge_must_be_confirmed(project: Project) -> None:
    async with connected(project) as (client, _):
        jobs = await queue_id(client, "jobs")
        for given in ({}, {"delete_messages_permanently": False}):
            call = client.queues.purge.start(jobs, account_id=ACCOUNT, **given)
            assert (await refused(call))[:2] == (400, 10207)


async def test_a_queue_that_is_in_use_is_not_deleted(project: Project) -> None:
    """Code 11005, with the texts that users have seen."""
    async with connected(project) as (client, _):
        call = client.queues.delete(await queue_id(client, "jobs"), account_id=ACCOUNT)
        text = (
            "Cannot delete queue 'jobs' that is still referenced by a binding in a Worker. "
            "Unbind queue 'jobs' from the Workers 'demo'; then try again."
        )
        assert await refused(call) == (400, 11005, text)
        main = await client.queues.create(account_id=ACCOUNT, queue_name="main")
        made = await client.queues.consumers.create(
            main.queue_id, account_id=ACCOUNT, type="http_pull", dead_letter_queue="graves"
        )
        graves = await queue_id(client, "graves")  # 4.7: made with the consumer
        text = "Cannot delete queue 'graves' that serves as dead letter queue for consumers"
        assert await refused(client.queues.delete(graves, account_id=ACCOUNT)) == (
            400,
            11005,
            text,
        )
        await client.queues.consumers.delete(
            made.consumer_id, account_id=ACCOUNT, queue_id=main.queue_id
        )
        await client.queues.delete(graves, account_id=ACCOUNT)
        assert await names(client) == ["jobs", "main"]


async def test_a_deleted_queue_leaves_nothing_to_the_next_of_its_name(project: Project) -> None:
    """Messages are gone, and a lease of the old queue is not one of the new queue."""
    state = {"state": project.state}
    async with connected(project, **state) as (client, served):
        for _ in range(2):
            queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
            id, messages = queue.queue_id, client.queues.messages
            await client.queues.consumers.create(id, account_id=ACCOUNT, type="http_pull")
            await messages.push(id, account_id=ACCOUNT, body="a", content_type="text")
            (old,) = (await messages.pull(id, account_id=ACCOUNT)).messages
            await client.queues.delete(id, account_id=ACCOUNT)
        await served.advance("1 hour")
    async with connected(project, **state) as (client, served):
        assert await names(client) == ["jobs"]
        await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        await client.queues.consumers.create(id, account_id=ACCOUNT, type="http_pull")
        await messages_of(client, id, "new")
        (new,) = (await client.queues.messages.pull(id, account_id=ACCOUNT)).messages
        assert (new.body, new.attempts) == ("new", 1)
        await client.queues.messages.ack(id, account_id=ACCOUNT, acks=[{"lease_id": old.lease_id}])
        assert (await client.queues.get_metrics(id, account_id=ACCOUNT)).backlog_count == 1


async def messages_of(client: Any, id: str, *bodies: str) -> None:
    for body in bodies:
        await client.queues.messages.push(id, account_id=ACCOUNT, body=body, content_type="text")


async def test_a_queue_can_be_deleted_while_its_consumer_works(project: Project) -> None:
    """The batch in flight ends, and nobody misses the queue."""
    project.write(
        "src/entry.py",
        """
        import asyncio
        from workers import WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx):
                print("start", batch.queue)
                await asyncio.sleep(60)
                print("end", batch.queue)
        """,
    )
    async with connected(project) as (client, served):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        await client.queues.consumers.create(
            queue.queue_id,
            account_id=ACCOUNT,
            type="worker",
            script_name="demo",
            settings={"max_wait_time_ms": 0},
        )
        await messages_of(client, queue.queue_id, "a")
        assert served.logs == ["start extra"]
        await client.queues.delete(queue.queue_id, account_id=ACCOUNT)
        again = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        await served.advance("60 seconds")
        assert served.logs == ["start extra", "end extra"]
        got = await client.queues.get(again.queue_id, account_id=ACCOUNT)
        assert got.consumers == []
        assert served.desk.emulator.queues["extra"].acked == 0


async def test_what_was_set_up_outlives_new_settings_of_the_project(project: Project) -> None:
    async with connected(project, state=project.state) as (client, served):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        await client.queues.consumers.create(
            queue.queue_id, account_id=ACCOUNT, type="http_pull", settings={"batch_size": 9}
        )
        await messages_of(client, queue.queue_id, "a")
        config = (project.path / "wrangler.jsonc").read_text()
        project.write("wrangler.jsonc", config.replace('"jobs"', '"other"'))
        await served.desk.reload(settings=True)
        assert served.desk.problem is None
        assert sorted(await names(client)) == ["extra", "other"]
        (again,) = (await client.queues.messages.pull(queue.queue_id, account_id=ACCOUNT)).messages
        assert again.body == "a"
        got = await client.queues.get(queue.queue_id, account_id=ACCOUNT)
        assert got.consumers[0].settings.batch_size == 9


# -- consumers -----------------------------------------------------------------------------------


async def test_a_worker_is_made_the_consumer_of_a_queue(project: Project) -> None:
    """With its settings, until a restart and after it."""
    state = {"state": project.state}
    async with connected(project, **state) as (client, served):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        made = await client.queues.consumers.create(
            queue.queue_id,
            account_id=ACCOUNT,
            type="worker",
            script_name="demo",
            settings={"batch_size": 2, "max_wait_time_ms": 3000, "max_concurrency": 4},
        )
        assert made.settings.to_dict() == {
            "batch_size": 2,
            "max_concurrency": 4,
            "max_retries": 3,
            "max_wait_time_ms": 3000,
            "retry_delay": 0,
        }
        await push_texts(client, queue.queue_id, "a")
        await served.advance("2.9 seconds")
        assert served.logs == []
        await served.advance("0.1 seconds")
        assert served.logs == ["version 1 ['a']"]
        await push_texts(client, queue.queue_id, "b", "c")
        assert served.logs == ["version 1 ['a']", "version 1 ['b', 'c']"]
    async with connected(project, **state) as (client, served):
        await push_texts(client, queue.queue_id, "d", "e")
        assert served.logs == ["version 1 ['d', 'e']"]


async def push_texts(client: Any, id: str, *texts: str) -> None:
    """Send what the demo Worker can read."""
    messages = [{"body": {"text": text}, "content_type": "json"} for text in texts]
    await client.queues.messages.bulk_push(id, account_id=ACCOUNT, messages=messages)


async def test_the_configs_consumer_can_be_changed_and_removed(project: Project) -> None:
    """A change holds across restarts, until the config says something else of the consumer."""
    state = {"state": project.state}
    async with connected(project, **state) as (client, served):
        jobs = await queue_id(client, "jobs")
        (consumer,) = await listed(client.queues.consumers.list(jobs, account_id=ACCOUNT))
        updated = await client.queues.consumers.update(
            consumer.consumer_id,
            account_id=ACCOUNT,
            queue_id=jobs,
            type="worker",
            script_name="demo",
            settings={"batch_size": 7},
        )
        assert (updated.settings.batch_size, updated.settings.max_wait_time_ms) == (7, 5000)
        got = await client.queues.consumers.get(
            consumer.consumer_id, account_id=ACCOUNT, queue_id=jobs
        )
        assert got == updated
        await client.queues.consumers.delete(
            consumer.consumer_id, account_id=ACCOUNT, queue_id=jobs
        )
        await push_texts(client, jobs, "a")
        await served.advance("1 hour")
        assert served.desk.emulator.queues["jobs"].deliveries == []
    async with connected(project, **state) as (client, served):
        await served.advance("1 hour")
        assert served.desk.emulator.queues["jobs"].deliveries == []
        assert await listed(client.queues.consumers.list(jobs, account_id=ACCOUNT)) == []
    config = (project.path / "wrangler.jsonc").read_text()
    project.write(
        "wrangler.jsonc", config.replace('"max_batch_timeout": 1', '"max_batch_timeout": 2')
    )
    async with connected(project, **state) as (client, served):
        (consumer,) = await listed(client.queues.consumers.list(jobs, account_id=ACCOUNT))
        assert consumer.settings.max_wait_time_ms == 2000
        await served.advance("2 seconds")
        assert "version 1 ['a']" in served.logs


async def test_a_queue_has_one_consumer(project: Project) -> None:
    """4.8: code 11004."""
    async with connected(project) as (client, _):
        jobs = await queue_id(client, "jobs")
        call = client.queues.consumers.create(jobs, account_id=ACCOUNT, type="http_pull")
        assert await refused(call) == (400, 11004, "Queue 'jobs' already has a consumer.")


async def test_a_consumer_must_be_a_worker_with_a_handler(project: Project) -> None:
    project.write("helper.jsonc", HELPER.replace("src/entry.py", "src/helper.py"))
    project.write(
        "src/helper.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response("hi")
        """,
    )
    async with connected(project, "wrangler.jsonc", "helper.jsonc") as (client, _):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        for script, status, code in (("nobody", 404, 10007), ("helper", 400, 11001)):
            call = client.queues.consumers.create(
                queue.queue_id, account_id=ACCOUNT, type="worker", script_name=script
            )
            assert (await refused(call))[:2] == (status, code)


async def test_a_consumer_whose_worker_is_not_served_any_more_is_none(project: Project) -> None:
    state = {"state": project.state}
    project.write("helper.jsonc", HELPER)
    async with connected(project, "wrangler.jsonc", "helper.jsonc", **state) as (client, _):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        await client.queues.consumers.create(
            queue.queue_id, account_id=ACCOUNT, type="worker", script_name="helper"
        )
    async with connected(project, **state) as (client, served):
        await push_texts(client, queue.queue_id, "a")
        await served.advance("1 minute")
        assert served.desk.emulator.queues["extra"].deliveries == []
        assert len(served.desk.emulator.queues["extra"].backlog) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"type": "http_pull", "settings": {"batch_size": 101}},
        {"type": "http_pull", "settings": {"visibility_timeout_ms": 43_200_001}},
        {"type": "http_pull", "settings": {"retry_delay": 86_401}},
        {"type": "http_pull", "dead_letter_queue": "extra"},
        {"type": "worker", "script_name": "demo", "settings": {"max_wait_time_ms": 60_001}},
        {"type": "worker", "script_name": "demo", "settings": {"max_concurrency": 251}},
        {"type": "worker", "script_name": "demo", "settings": {"max_retries": 101}},
    ],
)
async def test_consumer_settings_out_of_range_are_refused(
    project: Project, given: dict[str, Any]
) -> None:
    """7.6: code 100127."""
    async with connected(project) as (client, _):
        queue = await client.queues.create(account_id=ACCOUNT, queue_name="extra")
        call = client.queues.consumers.create(queue.queue_id, account_id=ACCOUNT, **given)
        text = "The specified consumer settings are invalid."
        assert await refused(call) == (400, 100127, text)


async def test_a_consumer_that_is_not_there_is_not_found(project: Project) -> None:
    async with connected(project) as (client, _):
        jobs = await queue_id(client, "jobs")
        call = client.queues.consumers.get("0" * 32, account_id=ACCOUNT, queue_id=jobs)
        assert (await refused(call))[0] == 404
