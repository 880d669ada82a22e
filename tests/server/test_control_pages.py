"""The pages under /cdn-cgi/ that the server itself has."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from served_project import CONFIG, WORKER, Connection

from emulator.clock import LATEST, RealClock

if TYPE_CHECKING:
    from served_project import Project, Served

pytestmark = pytest.mark.asyncio

EMULATOR = "/cdn-cgi/emulator"
SCHEDULED = "/cdn-cgi/handler/scheduled"


async def test_scheduled_runs_the_handler_as_in_wrangler_dev(project: Project) -> None:
    """miniflare, core/scheduled.ts: the outcome as text, 500 unless it is `ok`."""
    async with project.served() as served:
        answer = await served.client.get(f"{SCHEDULED}?cron=0+9+*+*+1&time=1745856238000")
        assert (answer.status_code, answer.text) == (200, "ok")
        answer = await served.client.get(f"{SCHEDULED}?cron=fail&format=json")
        assert answer.status_code == 500
        assert answer.json() == {
            "outcome": "exception",
            "noRetry": False,
            "error": "ValueError: no",
        }
        answer = await served.client.get(f"{SCHEDULED}?cron=fail")
        assert (answer.status_code, answer.text) == (500, "exception\nValueError: no\n")
        assert served.logs[0] == "cron 0 9 * * 1 1745856238000"


async def test_scheduled_tells_which_worker_lacks_the_handler(project: Project) -> None:
    """workerd, global-scope.c++: a run without a handler fails with this error."""
    project.write("src/entry.py", WORKER.partition("    async def scheduled")[0])
    told = (
        "Error: Handler does not export a scheduled() function\n"
        "The Worker demo (src/entry.py) has no `scheduled` handler; its handlers: fetch, queue"
    )
    async with project.served() as served:
        for query in ("", "?worker=demo"):
            answer = await served.client.get(f"{SCHEDULED}{query}")
            assert (answer.status_code, answer.text) == (500, f"exception\n{told}\n")
        answer = await served.client.get(f"{SCHEDULED}?format=json")
        assert answer.json() == {"outcome": "exception", "noRetry": True, "error": told}
        assert served.logs[0].startswith("Received a ScheduledEvent but we lack a handler for ")


async def test_scheduled_tells_whether_the_handler_asks_for_no_retry(project: Project) -> None:
    source = WORKER.replace(
        "raise ValueError", "controller.noRetry()\n            raise ValueError"
    )
    project.write("src/entry.py", source)
    async with project.served() as served:
        answer = await served.client.get(f"{SCHEDULED}?cron=fail&format=json")
        assert answer.json() == {
            "outcome": "exception",
            "noRetry": True,
            "error": "ValueError: no",
        }
        answer = await served.client.get(f"{SCHEDULED}?cron=other&format=json")
        assert answer.json() == {"outcome": "ok", "noRetry": False}


EMAIL = "/cdn-cgi/handler/email"
MAIL = "From: ada@a.example\r\nTo: b@b.example\r\nSubject: {}\r\nMessage-ID: <1@a>\r\n\r\nhello"
MAILBOX = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def email(self, message, env, ctx):
        subject = message.headers.get("subject")
        print(getattr(message, "from"), message.to, subject, message.rawSize)
        if subject == "spam":
            message.setReject("no, thanks")
        if subject == "bad":
            raise ValueError("broken")
"""


async def mailed(served: Served, subject: str, query: str = "from=x@x.example&to=y@y.example"):
    answer = await served.client.post(f"{EMAIL}?{query}", content=MAIL.format(subject))
    return answer.status_code, answer.text


async def test_a_mail_arrives_as_in_wrangler_dev(project: Project) -> None:
    """miniflare, core/email.ts."""
    project.write("src/entry.py", MAILBOX)
    async with project.served() as served:
        assert await mailed(served, "hi") == (200, "Worker successfully processed email")
        rejected = "Worker rejected email with the following reason: no, thanks"
        assert await mailed(served, "spam") == (400, rejected)
        status, text = await mailed(served, "bad")
        assert (status, text.splitlines()[-1]) == (500, "ValueError: broken")
        assert served.logs[0] == f"x@x.example y@y.example hi {len(MAIL.format('hi'))}"


async def test_a_mail_that_cannot_arrive_is_refused(project: Project) -> None:
    project.write("src/entry.py", MAILBOX)
    async with project.served() as served:
        for query in ("", "from=a@a.example", "to=a@a.example"):
            status, text = await mailed(served, "hi", query)
            assert (status, text.partition(".")[0]) == (400, "Invalid email")
        both = f"{EMAIL}?from=a@a.example&to=b@b.example"
        assert (await served.client.get(both)).text.startswith("Invalid email.")
        answer = await served.client.post(both, content="Subject: x\r\n\r\nno id")
        assert answer.text == "Email could not be parsed: invalid or no message id provided"
        large = MAIL.format("x") + "x" * (25 * 1024 * 1024)
        answer = await served.client.post(both, content=large)
        assert answer.text.startswith("Email message size is bigger than the production size")
        assert (await mailed(served, "hi", "worker=nope"))[0] == 404
        assert served.logs == []


async def test_the_local_limit_of_a_mail_is_that_of_the_miniflare_profile(project: Project) -> None:
    project.write("src/entry.py", MAILBOX)
    large = MAIL.format("large") + "x" * (1024 * 1024)
    for profile, status in (("production", 200), ("miniflare", 400)):
        async with project.served(profile=profile) as served:
            url = f"{EMAIL}?from=a@a.example&to=b@b.example"
            assert (await served.client.post(url, content=large)).status_code == status


async def test_scheduled_without_a_cron_is_the_first_one(project: Project) -> None:
    async with project.served() as served:
        await served.client.get(SCHEDULED)
        now = int(served.desk.emulator.now.timestamp() * 1000)
        assert served.logs == [f"cron 0 0 29 2 * {now}"]


async def test_scheduled_tells_what_is_wrong_with_the_question(project: Project) -> None:
    async with project.served() as served:
        assert (await served.client.get(f"{SCHEDULED}?time=soon")).status_code == 400
        answer = await served.client.get(f"{SCHEDULED}?worker=nope")
        assert answer.status_code == 404
        assert "there are: demo" in answer.text
        assert served.logs == []


async def test_other_paths_below_cdn_cgi_are_the_workers(project: Project) -> None:
    async with project.served() as served:
        for path in ("/cdn-cgi/trace", "/cdn-cgi/emulatorish", "/cdn-cgi/handler/x"):
            assert (await served.client.get(path)).text.startswith("version 1")


async def test_the_clock_is_moved_and_what_falls_due_runs(project: Project) -> None:
    project.write("wrangler.jsonc", CONFIG.replace("0 0 29 2 *", "*/5 * * * *"))
    async with project.served() as served:
        before = served.desk.emulator.now
        await served.client.post("/", content=b"hello")
        assert "version 1 ['hello']" not in served.logs
        await served.advance("3 days")
        assert served.desk.emulator.now - before == timedelta(days=3)
        runs = [line for line in served.logs if line.startswith("cron")]
        assert len(runs) == 3 * 24 * 12
        assert [line for line in served.logs if line not in runs] == ["version 1 ['hello']"]


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"advance": "soon"}', '{"advance": true}'])
async def test_a_wrong_clock_request_is_refused(project: Project, body: str) -> None:
    async with project.served() as served:
        answer = await served.client.post("/cdn-cgi/emulator/clock", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]


@pytest.mark.parametrize("clock", ["virtual", "real"])
@pytest.mark.parametrize("duration", ["99999 years", 1e12, 1e17])
async def test_a_move_past_the_latest_time_is_refused_and_touches_nothing(
    project: Project, clock: str, duration: object
) -> None:
    async with project.served(clock=clock, state=project.state) as served:
        page = f"{EMULATOR}/clock"
        answer = await served.client.post(page, json={"advance": duration})
        assert answer.status_code == 400
        assert "past 9999-01-01, the latest time" in answer.json()["error"]
        if isinstance(duration, str):
            page = f"{EMULATOR}/dashboard/clock/advance"
            answer = await served.client.post(page, json={"duration": duration})
            assert answer.status_code == 400
            assert "past 9999-01-01, the latest time" in answer.json()["error"]
        status = (await served.client.get(f"{EMULATOR}/status")).json()
        assert status["now"] < "2100"
        assert not [text for text, bad in served.news if bad]
    async with project.served(clock=clock, state=project.state) as served:
        assert (await served.client.get("/")).status_code == 200


@pytest.mark.parametrize("clock", ["virtual", "real"])
async def test_a_state_whose_clock_ran_too_far_opens(project: Project, clock: str) -> None:
    """One that an earlier version left: the clock stands at the latest time."""
    project.write("wrangler.jsonc", CONFIG.replace('"0 0 29 2 *"', ""))
    async with project.served(clock=clock, state=project.state) as served:
        kernel = served.desk.platform.kernel
        kernel.clock.now = kernel.clock.horizon = LATEST + 1_000_000 * 86_400_000_000
        if isinstance(kernel.clock, RealClock):
            kernel.clock._offset = LATEST
        await served.client.post("/", content=b"hello")
    project.write("wrangler.jsonc", CONFIG)
    async with project.served(clock=clock, state=project.state) as served:
        status = await served.client.get(f"{EMULATOR}/status")
        assert status.status_code == 200
        assert status.json()["now"].startswith("9999-01-01T00:00:00")
        assert (await served.client.get("/")).status_code == 200
        answer = await served.client.get(f"{EMULATOR}/dashboard/clock")
        assert answer.status_code == 200


@pytest.mark.parametrize("depth", [400, 900, 980, 100_000])
@pytest.mark.parametrize("page", ["/clock", "/dashboard/faults/arm", "/dashboard/clock/advance"])
@pytest.mark.parametrize("body", ["[]", '{"advance":[]}', '{"site":[]}', '{"duration":[]}'])
async def test_deeply_nested_json_is_refused(
    project: Project, page: str, depth: int, body: str
) -> None:
    text = body.replace("[]", "[" * depth + "]" * depth)
    async with project.served() as served:
        for content in (text, text[:depth]):
            answer = await served.client.post(
                EMULATOR + page, content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 400
            assert answer.json()["error"]


async def test_requests_are_answered_while_the_clock_makes_a_long_move(project: Project) -> None:
    project.write("wrangler.jsonc", CONFIG.replace("0 0 29 2 *", "* * * * *"))
    async with project.served() as served:
        moving = asyncio.create_task(served.advance("14 days"))
        while len(served.logs) < 10:  # noqa: ASYNC110 (nothing tells of a cron)
            await asyncio.sleep(0)
        assert (await served.client.get("/")).status_code == 200
        assert not moving.done()
        await moving


async def test_status_tells_workers_and_time(project: Project) -> None:
    async with project.served() as served:
        status = (await served.client.get("/cdn-cgi/emulator/status")).json()
        assert status["workers"] == ["demo"]
        assert status["problem"] is None
        assert status["clock"] == "virtual"


async def test_events_are_streamed_as_they_happen(project: Project) -> None:
    async with project.served() as served:
        connection = Connection(served.application, "/cdn-cgi/emulator/events")
        connection.send()
        assert (await connection.receive())["status"] == 200
        assert (await connection.receive())["body"].startswith(b":")
        await served.client.get("/")
        text = (await connection.receive())["body"].decode()
        number, kind, data = text.strip().split("\n")
        assert kind == "event: request"
        event = json.loads(data.removeprefix("data: "))
        assert event["number"] == int(number.removeprefix("id: "))
        assert event["data"]["url"] == "http://localhost:8787/"
        connection.leave()
        await connection.task


async def test_events_go_on_after_the_last_one_seen(project: Project) -> None:
    async with project.served() as served:
        await served.client.get("/one")
        last = served.desk.feed.last
        await served.client.get("/two")
        connection = Connection(
            served.application, "/cdn-cgi/emulator/events", headers=[("last-event-id", str(last))]
        )
        connection.send()
        await connection.receive()
        await connection.receive()
        first = (await connection.receive())["body"].decode()
        assert f"id: {last + 1}\n" in first
        assert "/two" in first
        connection.leave()
        await connection.task
