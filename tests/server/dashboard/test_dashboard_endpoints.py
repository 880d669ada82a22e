"""The endpoints of the dashboard, without a browser: who may ask, and what comes back."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dashboard_project import CONFIG, WORKER

from emulator.server.application import Application
from emulator.server.dashboard.live import stream
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio

PREFIX = "/cdn-cgi/emulator"
FOLDER = f"{PREFIX}/dashboard"
READS = (
    *("overview", "clock", "queues", "workflows", "objects", "kv", "d1", "r2", "requests"),
    *("background", "logs", "findings", "faults", "trace", "trace/page"),
)


@asynccontextmanager
async def asked(
    folder: Path, *, token: str | None = None, **options: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Desk]]:
    """A client of a project's server in this process."""
    (folder / "src").mkdir()
    (folder / "wrangler.jsonc").write_text(CONFIG, "utf-8")
    (folder / "src/entry.py").write_text(WORKER, "utf-8")
    options = {"clock": "virtual", "seed": 0, "outbound": "deny", **options}
    desk = Desk(Options(configs=(folder / "wrangler.jsonc",), **options))
    desk.start()
    application: Any = Application(desk, Guard(token))
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost:8787", trust_env=False
    ) as client:
        try:
            yield client, desk
        finally:
            desk.close()


async def test_page_is_where_the_documentation_says(tmp_path: Path) -> None:
    """docs/dashboard.md."""
    async with asked(tmp_path) as (client, _):
        answer = await client.get(f"{PREFIX}/")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "<title>Workers emulator</title>" in answer.text
        for path in (PREFIX, FOLDER):
            answer = await client.get(path)
            assert answer.status_code == 307
            assert httpx.URL(answer.headers["location"]).path == f"{PREFIX}/"


@pytest.mark.parametrize("path", READS)
async def test_looking_changes_nothing_and_leaves_no_trace(tmp_path: Path, path: str) -> None:
    """Else each look would be news, which makes the page look again."""
    async with asked(tmp_path) as (client, desk):
        before, now = len(desk.emulator.trace), desk.emulator.now
        answer = await client.get(f"{FOLDER}/{path}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert len(desk.emulator.trace) == before
        assert desk.emulator.now == now


async def test_acting_takes_json_by_post_from_the_page_itself(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, desk):
        queue = desk.emulator.queues["failed"]
        await queue.send("x")
        body = {"queue": "failed"}
        assert (await client.get(f"{FOLDER}/queue/purge", params=body)).status_code == 405
        text = json.dumps(body)
        for headers, status in (
            ({"content-type": "text/plain"}, 415),
            ({"content-type": "application/x-www-form-urlencoded"}, 415),
            ({"content-type": "application/json", "origin": "https://evil.example"}, 403),
            ({"content-type": "application/json", "sec-fetch-site": "cross-site"}, 403),
            ({"content-type": "application/json", "host": "evil.example"}, 403),
        ):
            answer = await client.post(f"{FOLDER}/queue/purge", content=text, headers=headers)
            assert answer.status_code == status, headers
        assert len(queue.backlog) == 1
        answer = await client.post(
            f"{FOLDER}/queue/purge", json=body, headers={"origin": "http://localhost:8787"}
        )
        assert answer.status_code == 200
        assert queue.backlog == []


async def test_token_is_asked_for_where_there_is_one(tmp_path: Path) -> None:
    async with asked(tmp_path, token="s3cret") as (client, _):
        for path in (f"{PREFIX}/", f"{FOLDER}/queues", f"{FOLDER}/changes", f"{FOLDER}/trace/page"):
            assert (await client.get(path)).status_code == 401
        answer = await client.get(f"{PREFIX}/?token=s3cret")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}/")
        client.cookies.update(answer.cookies)
        assert (await client.get(f"{FOLDER}/queues")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("queue/purge", {}, 400, "queue is missing"),
        ("queue/purge", {"queue": 7}, 400, "queue is 7; give a text"),
        ("queue/purge", {"queue": "none"}, 404, "there is no queue 'none'"),
        ("queue/send", {"queue": "jobs", "body": "1", "count": -1}, 400, "count is -1"),
        ("queue/send", {"queue": "jobs", "body": "1", "count": 10**6}, 400, "count is 1000000"),
        ("queue/send", {"queue": "jobs", "body": "1", "type": "xml"}, 400, "xml"),
        ("queue/send", {"queue": "jobs", "body": "1", "delay": 10**6}, 400, "delay"),
        ("queue/send-back", {"queue": "jobs", "to": "failed"}, 400, "does not take the dead"),
        ("queue/delete", {"queue": "jobs", "seq": 9}, 404, "does not wait there any more"),
        ("queue/hasten", {"queue": "jobs", "seq": True}, 400, "seq is True"),
        ("clock/advance", {"duration": "soon"}, 400, "not a duration"),
        ("clock/advance", {"duration": "-1 s"}, 400, "time only moves forward"),
        ("workflow/create", {"workflow": "none"}, 404, "none"),
        ("workflow/create", {"workflow": "onboarding", "id": "a b"}, 400, "id"),
        ("workflow/create", {"workflow": "onboarding", "params": "{"}, 400, "params is no JSON"),
        ("instance/pause", {"workflow": "onboarding", "id": "x"}, 404, "no instance 'x'"),
        ("object/evict", {"binding": "ROOMS", "id": "x"}, 404, "no object 'x'"),
        ("object/evict", {"binding": "NONE", "id": "x"}, 404, "NONE"),
        ("kv/put", {"id": "none", "key": "a"}, 404, "none"),
        ("kv/put", {"id": "pages", "key": "a", "ttl": 1}, 400, "60"),
        ("d1/execute", {"id": "none", "sql": "SELECT 1"}, 404, "none"),
        ("d1/execute", {"id": "main", "sql": ""}, 400, "D1_ERROR"),
        ("faults/arm", {"site": "send.jobs", "action": "explode"}, 400, "explode"),
        ("faults/arm", {"site": "send.jbos", "action": "fail"}, 400, "there are: jobs, failed"),
        ("faults/arm", {"plan": "kv.PAGE.get#1:fail"}, 400, "can never fire: there is no kv bindi"),
        ("faults/arm", {"site": "no.such\ud800", "action": "fail"}, 400, "no.such"),
        ("workers/strike", {"what": "reload"}, 400, "it may be crash, evict, restart"),
    ],
)
async def test_what_is_wrong_is_said(
    tmp_path: Path, path: str, body: dict[str, Any], status: int, text: str
) -> None:
    async with asked(tmp_path) as (client, _):
        answer = await client.post(
            f"{FOLDER}/{path}",
            content=json.dumps(body),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == status, answer.text
        assert text in answer.json()["error"]


@pytest.mark.parametrize("body", ["[]", "7", '"x"', "null"])
async def test_body_that_is_no_object_is_refused(tmp_path: Path, body: str) -> None:
    async with asked(tmp_path) as (client, _):
        answer = await client.post(
            f"{FOLDER}/queue/purge", content=body, headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.json()) == (400, {"error": "send a JSON object"})


@pytest.mark.parametrize("query", ["from=-1", "from=x", "from=1e3", "from=" + "9" * 40])
async def test_part_of_a_list_is_a_whole_number(tmp_path: Path, query: str) -> None:
    async with asked(tmp_path) as (client, _):
        answer = await client.get(f"{FOLDER}/queue?queue=jobs&{query}")
        assert answer.status_code == 400
        assert "from is" in answer.json()["error"]


async def test_a_page_of_a_list_is_never_longer_than_it_may_be(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, desk):
        for _ in range(6):
            await desk.emulator.queues["failed"].send_batch(["x"] * 100)
        found = (await client.get(f"{FOLDER}/queue?queue=failed&rows=100000")).json()
        assert (found["total"], len(found["messages"])) == (600, 500)
        found = (await client.get(f"{FOLDER}/queue?queue=failed&from=550")).json()
        assert len(found["messages"]) == 50
        found = (await client.get(f"{FOLDER}/queue?queue=failed&from=1000")).json()
        assert found["messages"] == []


async def test_odd_bodies_are_answered_as_text(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, desk):
        queue = desk.emulator.queues["failed"]
        await queue.send("\udfff\ud800")
        await queue.send(b"\x00\xff", contentType="bytes")
        await queue.send({"deep": float("inf")}, contentType="v8")
        await queue.send("y" * 100_000)
        await queue.send("z" * 100_000, contentType="v8")
        found = (await client.get(f"{FOLDER}/queue?queue=failed")).json()
        bodies = [message["body"] for message in found["messages"]]
        assert '"$bytes"' in bodies[1]
        assert '"Infinity"' in bodies[2]
        assert bodies[3].startswith('"yyy')
        assert len(bodies[3]) < 300
        assert bodies[4].endswith("bytes)")
        asked_for = {"queue": "failed", "seq": found["messages"][3]["seq"]}
        whole = (await client.get(f"{FOLDER}/queue/message", params=asked_for)).json()
        assert whole["body"].startswith('"' + "y" * 50_000)


async def test_secrets_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".dev.vars").write_text("API_KEY=sk-very-secret-123\n", "utf-8")
    async with asked(tmp_path) as (client, desk):
        await desk.emulator.queues["failed"].send({"key": "sk-very-secret-123"})
        await desk.emulator.env.PAGES.put("key", "sk-very-secret-123")
        for path in ("queue?queue=failed", "kv/keys?id=pages", "kv/value?id=pages&key=key"):
            answer = await client.get(f"{FOLDER}/{path}")
            assert answer.status_code == 200
            assert "very-secret" not in answer.text, path


async def test_changes_are_told_together_and_end_with_the_server(tmp_path: Path) -> None:
    async with asked(tmp_path) as (_, desk):
        told = stream(desk, together=0, silence=60)
        assert json.loads((await anext(told)).split("data: ")[1])["last"] == desk.feed.last
        following = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0)
        for number in range(50):
            await desk.emulator.queues["failed"].send(number)
        first = json.loads((await following).split("data: ")[1])
        assert first["running"] is True
        last = first["last"]
        while last < desk.feed.last:
            last = json.loads((await anext(told)).split("data: ")[1])["last"]
        ending = asyncio.ensure_future(anext(told, None))
        await asyncio.sleep(0)
        desk.feed.close()
        assert await asyncio.wait_for(ending, 10) is None


async def test_silence_is_broken_now_and_then(tmp_path: Path) -> None:
    """What keeps the code from running is no event, and is to be seen all the same."""
    async with asked(tmp_path) as (_, desk):
        told = stream(desk, together=0, silence=0)
        for _ in range(3):
            assert (await anext(told)).startswith("event: change\n")
        await told.aclose()  # type: ignore[attr-defined]


async def test_without_an_emulator_everything_says_why(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, desk):
        emulator, desk._emulator = desk._emulator, None
        for path in READS:
            answer = await client.get(f"{FOLDER}/{path}")
            if path == "overview":
                assert answer.json()["running"] is False
            else:
                assert answer.status_code == 503, path
        desk._emulator = emulator
