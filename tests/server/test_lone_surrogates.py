r"""Half a surrogate pair, as `"\ud800"` in JSON, in whatever takes a body: no answer is a 500.

JavaScript's texts may have one, so values keep it; what is written as UTF-8 has U+FFFD there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from served_project import Project

pytestmark = pytest.mark.asyncio

BAD: Final = "a\ud800"
CONTROL: Final = "/cdn-cgi/emulator"
REST: Final = f"{CONTROL}/client/v4/accounts/any"
PULLED: Final = f"{REST}/queues/2b3b5e14fed9034e89a76f02992970d6"
KV: Final = f"{REST}/storage/kv/namespaces/pages"
INSTANCES: Final = f"{REST}/workflows/orders/instances"
D1: Final = f"{REST}/d1/database/main"
RULES: Final = f"{REST}/event_notifications/r2/files/configuration/queues/{PULLED[-32:]}"
CONFIG: Final = """
{
  "name": "demo", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "workflows": [{"binding": "ORDERS", "name": "orders", "class_name": "Orders"}],
  "kv_namespaces": [{"binding": "PAGES", "id": "pages"}],
  "r2_buckets": [{"binding": "FILES", "bucket_name": "files"}],
  "d1_databases": [{"binding": "DB", "database_name": "main", "database_id": "main"}],
}
"""
WORKER: Final = """
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        raise ValueError("no \\ud800")

    async def scheduled(self, controller, env, ctx):
        raise ValueError("no \\ud800")


class Orders(WorkflowEntrypoint):
    async def run(self, event, step):
        return (await step.wait_for_event("approval", "approved"))["payload"]
"""


def calls() -> Iterator[tuple[str, str, Any]]:
    """What is asked: the method, the path and the body."""
    for plan in (BAD, f"batch.jobs#1:{BAD}", f"message.jobs#1:delay({BAD})", f"x.{BAD}#*:fail"):
        yield "POST", f"{CONTROL}/faults", {"add": plan}
        yield "POST", f"{CONTROL}/faults", {"add": [plan]}
    yield "POST", f"{CONTROL}/faults", {"add": f"fetch.GET.{BAD}#1:fail"}
    yield "POST", f"{CONTROL}/clock", {"advance": BAD}
    yield "PATCH", PULLED, {"queue_name": BAD, "settings": {"delivery_paused": BAD}}
    yield "POST", f"{PULLED}/consumers", {"type": BAD}
    yield "POST", f"{PULLED}/consumers", {"type": "worker", "script_name": BAD}
    yield "POST", f"{PULLED}/consumers", {"type": "http_pull", "dead_letter_queue": BAD}
    yield "POST", f"{PULLED}/consumers", {"type": "http_pull"}
    for kind in ("text", "json", BAD):
        message = {"body": BAD, "content_type": kind}
        yield "POST", f"{PULLED}/messages", message
        yield "POST", f"{PULLED}/messages/batch", {"messages": [message]}
    yield "POST", f"{PULLED}/messages", {"body": {BAD: BAD}}
    yield "POST", f"{PULLED}/messages/peek", {}
    yield "POST", f"{PULLED}/messages/pull", {"batch_size": BAD}
    yield "POST", f"{PULLED}/messages/pull", {}
    yield "POST", f"{PULLED}/messages/ack", {"acks": [{"lease_id": BAD}]}
    yield "POST", f"{PULLED}/messages/purge", {"refs": [{"ref": BAD}]}
    for key, value, metadata in ((BAD, "v", None), ("k", BAD, {BAD: BAD}), ("l", BAD, BAD)):
        yield "PUT", f"{KV}/bulk", [{"key": key, "value": value, "metadata": metadata}]
    yield "POST", f"{KV}/bulk/get", {"keys": [BAD, "k"], "withMetadata": True}
    yield "POST", f"{KV}/bulk/get", {"keys": ["k"], "type": BAD}
    yield "GET", f"{KV}/keys", None
    yield "GET", f"{KV}/metadata/k", None
    yield "POST", f"{KV}/bulk/delete", [BAD]
    yield "POST", INSTANCES, {"instance_id": BAD}
    yield "POST", f"{INSTANCES}/batch", [{"instance_id": BAD}]
    yield "POST", INSTANCES, {"instance_id": "one", "params": {BAD: BAD}}
    yield "GET", f"{INSTANCES}/one", None
    yield "PATCH", f"{INSTANCES}/one/status", {"status": BAD}
    yield "PATCH", f"{INSTANCES}/one/status", {"status": "restart", "from": {"name": BAD}}
    yield "POST", f"{INSTANCES}/one/events/%ED%A0%80", {}
    yield "POST", f"{INSTANCES}/one/events/approved", {BAD: BAD}
    yield "GET", f"{INSTANCES}/one", None
    for sql in (f"SELECT '{BAD}'", f"SELECT 1 AS {BAD}", f"no {BAD}"):
        yield "POST", f"{D1}/query", {"sql": sql}
    yield "POST", f"{D1}/raw", {"sql": "SELECT ?", "params": [BAD]}
    rule = {"prefix": BAD, "suffix": BAD, "description": BAD}
    yield "PUT", RULES, {"rules": [{"actions": ["PutObject"], **rule}]}
    yield "PUT", RULES, {"rules": [{"actions": [BAD], **rule}]}
    yield "GET", RULES, None
    yield "DELETE", RULES, {"ruleIds": [BAD]}
    for path, good in (
        ("queue/send", {"queue": "pulled"}),
        ("kv/put", {"id": "pages", "value": "v"}),
        ("workflow/create", {"workflow": "orders"}),
        ("instance/event", {"workflow": "orders", "id": "one"}),
        ("faults/arm", {}),
    ):
        for name in ("body", "metadata", "params", "payload", "key", "id", "type", "plan"):
            value = {name: BAD if name in ("key", "id", "type", "plan") else json.dumps(BAD)}
            yield "POST", f"{CONTROL}/dashboard/{path}", {**good, **value}
    yield "GET", f"{CONTROL}/faults", None


async def test_nothing_of_it_is_an_error_of_the_servers(project: Project) -> None:
    project.write("wrangler.jsonc", CONFIG)
    project.write("src/entry.py", WORKER)
    async with project.served(state=project.state) as served:
        await served.client.post(f"{REST}/queues", json={"queue_name": "pulled"})
        assert (await served.client.get(PULLED)).status_code == 200
        for method, path, body in calls():
            content = None if body is None else json.dumps(body)
            headers = {"content-type": "application/json"}
            answer = await served.client.request(method, path, content=content, headers=headers)
            assert answer.status_code < 500, (method, path, content, answer.text)
        assert served.news == [], "what was stored was written"
        answer = await served.client.get("/")
        assert answer.status_code == 500
        assert "ValueError: no \ufffd" in answer.text
        answer = await served.client.get("/cdn-cgi/handler/scheduled")
        assert (answer.status_code, "no \ufffd" in answer.text) == (500, True)
    async with project.served(state=project.state) as served:
        assert served.desk.is_running


async def test_it_is_found_again_as_it_was_stored(project: Project) -> None:
    project.write("wrangler.jsonc", CONFIG)
    project.write("src/entry.py", WORKER)
    async with project.served() as served:
        client = served.client
        answer = await client.post(f"{CONTROL}/faults", content=rb'{"add": "\ud800"}')
        assert answer.status_code == 400
        assert 'no kind of site is called "\ud800"' in answer.json()["error"]
        entry = {"key": BAD, "value": BAD, "metadata": {"m": BAD}}
        assert (await client.put(f"{KV}/bulk", content=json.dumps([entry]))).status_code == 200
        asked = json.dumps({"keys": [BAD], "withMetadata": True})
        found = (await client.post(f"{KV}/bulk/get", content=asked)).json()["result"]["values"]
        assert found == {"a\ufffd": {"value": "a\ufffd", "metadata": {"m": BAD}}}
        made = json.dumps({"instance_id": "one", "params": {"p": BAD}})
        await client.post(INSTANCES, content=made)
        shown = (await client.get(f"{INSTANCES}/one")).json()["result"]
        assert shown["params"] == {"p": BAD}
