"""Messages pushed over the REST API, and what it refuses (queues.md 7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, queue_id, refused

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio
BASE = f"/cdn-cgi/emulator/client/v4/accounts/{ACCOUNT}"


async def test_a_pushed_message_reaches_the_worker(project: Project) -> None:
    """Scenario 54: a JSON object as it is, a text with `content_type`."""
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        pushed = await client.queues.messages.push(jobs, account_id=ACCOUNT, body={"text": "hi"})
        assert pushed.metadata.metrics.backlog_count == 1
        await served.advance("0.9 seconds")
        assert served.logs == []
        await served.advance("0.1 seconds")
        assert served.logs == ["version 1 ['hi']"]
        sends = [event for event in served.desk.emulator.trace if event.kind == "send"]
        assert [event.data["by"] for event in sends] == ["rest"]


async def test_a_pushed_message_waits_for_its_own_delay_or_the_batchs(project: Project) -> None:
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        await client.queues.messages.bulk_push(
            jobs,
            account_id=ACCOUNT,
            delay_seconds=60,
            messages=[
                {"body": {"text": "late"}, "content_type": "json"},
                {"body": {"text": "soon"}, "content_type": "json", "delay_seconds": 10},
            ],
        )
        waiting = served.desk.emulator.queues["jobs"].backlog
        now = served.desk.emulator.now
        assert [(item.body["text"], (item.due - now).total_seconds()) for item in waiting] == [
            ("soon", 10),
            ("late", 60),
        ]


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"body": "hi"}, 10207, 'Expected object, received string at "body"'),
        ({"body": 5}, 10207, 'Expected object, received number at "body"'),
        ({"body": None}, 10207, 'Expected object, received null at "body"'),
        ({"messages": [{"body": {}}]}, 10207, 'Required at "body"'),
        (
            {"body": {}, "content_type": "text"},
            10207,
            'Expected string, received object at "body"',
        ),
        (
            {"body": {}, "content_type": "v8"},
            10207,
            "Invalid enum value. Expected 'text' | 'json', received 'v8' at \"content_type\"",
        ),
        (
            {"body": {}, "delay_seconds": "5"},
            10207,
            'Expected number, received string at "delay_seconds"',
        ),
        (
            {"body": {}, "delay_seconds": 86_401},
            10203,
            "message delay of 86401 s is not between 0 and 86400 s",
        ),
        (
            {"body": "x" * 128_001, "content_type": "text"},
            10204,
            "message length of 128001 bytes exceeds limit of 128000",
        ),
        ([], 10207, "Expected object, received array"),
    ],
)
async def test_a_message_the_service_refuses_is_not_stored(
    project: Project, body: Any, code: int, text: str
) -> None:
    """7.5; limits and their codes as for a Worker's send (1.12, 1.13)."""
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        answer = await served.client.post(f"{BASE}/queues/{jobs}/messages", json=body)
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"code": code, "message": text}]
        assert served.desk.emulator.queues["jobs"].backlog == []


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([], 10207),
        ([{"body": {}}] * 101, 10206),
        ([{"body": "x" * 128_000, "content_type": "text"}] * 2 + [{"body": {}}], 10205),
        ([{"body": {}}, {"body": "text as JSON"}], 10207),
        ([{"body": {}}, {}], 10207),
    ],
)
async def test_a_batch_is_stored_whole_or_not_at_all(
    project: Project, messages: list[Any], code: int
) -> None:
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        call = client.queues.messages.bulk_push(jobs, account_id=ACCOUNT, messages=messages)
        assert (await refused(call))[:2] == (400, code)
        assert served.desk.emulator.queues["jobs"].backlog == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"body": NaN}'])
async def test_a_body_that_is_no_json_is_refused(project: Project, content: bytes) -> None:
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")
        answer = await served.client.post(f"{BASE}/queues/{jobs}/messages", content=content)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["code"] == 10026


async def test_a_queue_that_is_not_there_is_not_found(project: Project) -> None:
    """7.6: code 11000, and any account will do."""
    async with connected(project) as (client, _):
        for account in (ACCOUNT, "other"):
            call = client.queues.messages.push("0" * 32, account_id=account, body={})
            assert (await refused(call))[:2] == (404, 11000)


async def test_a_queue_is_not_found_by_its_name_and_the_error_has_its_id(project: Project) -> None:
    """7: the paths take ids; wrangler looks a name up before."""
    async with connected(project) as (client, served):
        id = await queue_id(client, "jobs")
        named = f"the queue named 'jobs' has the id {id}"
        told = f"Queue not found: this path takes a queue's id, and {named}"
        for call in (
            client.queues.get("jobs", account_id=ACCOUNT),
            client.queues.messages.push("jobs", account_id=ACCOUNT, body={}),
            client.queues.consumers.create("jobs", account_id=ACCOUNT, type="http_pull"),
        ):
            assert await refused(call) == (404, 11000, told)
        assert served.desk.emulator.queues["jobs"].backlog == []


async def test_paths_and_methods_that_are_not_there_say_so_in_the_envelope(
    project: Project,
) -> None:
    async with connected(project) as (client, served):
        answer = await served.client.get(f"{BASE}/nothing/here")
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (404, 7003)
        jobs = await queue_id(client, "jobs")
        answer = await served.client.get(f"{BASE}/queues/{jobs}/messages")
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (405, 10405)


async def test_a_project_that_cannot_be_loaded_is_unavailable(project: Project) -> None:
    project.write("src/entry.py", "this is no Python")
    async with connected(project) as (client, _):
        status, _, text = await refused(client.queues.create(account_id=ACCOUNT, queue_name="q"))
        assert status == 503
        assert "invalid syntax" in text


async def test_the_servers_token_is_asked_for(project: Project) -> None:
    async with project.served(token="secret") as served:
        answer = await served.client.get(f"{BASE}/queues")
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (401, 10000)
        headers = {"authorization": "Bearer secret"}
        assert (await served.client.get(f"{BASE}/queues", headers=headers)).status_code == 200


async def test_a_body_that_is_too_long_is_refused_in_the_envelope(project: Project) -> None:
    async with connected(project) as (client, served):
        jobs = await queue_id(client, "jobs")

        async def endless() -> Any:
            for _ in range(40):
                yield b" " * 1_048_576

        path = f"{BASE}/queues/{jobs}/messages"
        for content in (endless(), b" " * 40_000_000):
            answer = await served.client.post(path, content=content)
            assert (answer.status_code, answer.json()["success"]) == (413, False)


async def test_a_page_of_another_site_may_not(project: Project) -> None:
    async with project.served() as served:
        headers = {"origin": "https://evil.example"}
        answer = await served.client.post(f"{BASE}/queues", headers=headers, json={})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, 10000)
