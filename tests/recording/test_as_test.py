"""A recording is printed as a test, which passes while the code does what it did."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from typing import TYPE_CHECKING

from test_replay import SOCKET

from emulator.server.rest.queue_shapes import queue_id

if TYPE_CHECKING:
    from collections.abc import Awaitable

    import httpx
    import pytest
    from recorded_project import Recorded
    from served_project import Served

_DASHBOARD = "/cdn-cgi/emulator/dashboard/"
_API = "/cdn-cgi/emulator/client/v4/accounts/any/"


async def orders(served: Served) -> None:
    """Two orders, five minutes apart, and their mails."""
    await served.client.post("/orders", content="apples")
    await served.advance("5 minutes")
    await served.client.post("/orders", json={"fruit": "pears", "count": 2})
    await served.advance("10 seconds")


def test_printed_test_passes_and_fails_when_a_status_changes(recorded: Recorded) -> None:
    recorded.record(orders)
    code = recorded.printed()
    assert "outside_2.call_count == 2" in code
    assert "assert response.status_code == 201" in code
    recorded.pytest()
    recorded.change("status=201", "status=200")
    assert "assert 200 == 201" in recorded.pytest(passes=False)


def test_printed_test_fails_when_the_outside_is_asked_once_less(recorded: Recorded) -> None:
    recorded.record(orders)
    recorded.printed()
    recorded.change('await fetch(f"{self.env.OUTSIDE}/mail"', "str(")
    recorded.change('str(, method="POST", body=message.body["order"])', "pass")
    output = recorded.pytest(passes=False)
    assert "outside_2.call_count == 2" in output


def test_printed_test_runs_when_requests_overlap(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        slow = asyncio.create_task(served.client.get("/slow"))
        await served.advance("1 second")
        await served.client.get("/calls")
        await served.advance("5 seconds")
        await slow

    recorded.record(visit)
    code = recorded.printed()
    (name,) = re.findall(r"    (\w+) = asyncio.create_task\(", code)
    assert f"response = await {name}\n" in code
    recorded.pytest()


HOSTILE = (
    (
        "/body?q=%22%27%0A",
        "a \"double\" and a 'single' quote\n\\ and {braces} \x00 \u00e9 \U0001f600",
    ),
    ("/body", "'''\"\"\"\\"),
    ("/body", '{"a": "{x}", "b": [1.5, null, true], "c": {"d": "\'"}}'),
    ("/body", "[secret NOBODY] and [secret ]"),
    ("/body", "long " * 300),
    ("/body", "x" * 70),
    ("/body", "y" * 80),
)


def test_hostile_content_becomes_code_that_runs(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        for path, body in HOSTILE:
            headers = {"x-odd": body[:20].encode("ascii", "ignore").decode().replace("\n", "")}
            headers["x-odd"] = headers["x-odd"].replace("\x00", "")
            await served.client.post(path, content=body.encode(), headers=headers)
        json = {"content-type": "application/json"}
        await served.client.post("/body", content=HOSTILE[2][1].encode(), headers=json)
        await served.client.post("/body", content=b"\xff\xfe'\" raw")
        twice = [("x-twice", "one"), ("x-twice", "two")]
        assert (await served.client.get("/twice", headers=twice)).text == "one, two"

    recorded.record(visit)
    code = recorded.printed()
    assert code.isascii()
    assert '("x-twice", "two")' in code
    recorded.pytest()


def test_large_body_is_left_out_with_a_comment_and_a_note(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.post("/body", content=b"x" * 9_000)
        await served.client.get("/")

    recorded.record(visit)
    result = recorded.run("--as-test")
    text = "entry 1, POST /body, is left out: its body has 9,000 bytes, and a test holds 8,192"
    assert f"note: {text}" in result.stderr
    assert f"    # {text}\n" in result.stdout
    recorded.printed()


def test_secrets_are_taken_from_the_workers_variables(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        headers = {"authorization": "Bearer k-12345-secret"}
        assert (await served.client.get("/key", headers=headers)).status_code == 200

    recorded.record(visit)
    code = recorded.printed()
    assert 'f"Bearer {emulator.env.API_KEY}"' in code
    assert "k-12345" not in code
    recorded.pytest()


def test_a_secret_that_is_the_name_of_a_header_is_taken_from_them(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        headers = {"k-12345-secret": "1"}
        assert (await served.client.get("/key", headers=headers)).status_code == 401

    recorded.record(visit)
    code = recorded.printed()
    assert 'emulator.env.API_KEY: "1"' in code
    assert "k-12345" not in code
    recorded.pytest()


MAIL = b"From: a@example.com\r\nTo: b@example.com\r\nMessage-ID: <1@a>\r\n\r\nhello\r\n"


def _acts(c: httpx.AsyncClient) -> list[tuple[Awaitable[httpx.Response], str]]:
    """Actions, and what each is in a test."""
    post = c.post
    sql = {"sql": "CREATE TABLE users (name)"}
    params = {"instance_id": "one", "params": {"to": "ada"}}
    body = {"queue": "mails", "body": '{"order": "1"}'}
    push = {"body": {"order": "2"}, "delay_seconds": 3}
    mails, values = queue_id("mails"), f"{_API}storage/kv/namespaces/stock/values"
    rule = {"actions": ["PutObject"], "prefix": "in/"}
    rules = f"{_API}event_notifications/r2/files/configuration/queues/{mails}"
    return [
        (c.put(rules, json={"rules": [rule]}),
         'emulator.r2["files"].notify("mails", event_types=["PutObject"], prefix="in/")'),
        (c.delete(rules), 'emulator.r2["files"].stop_notifying("mails")'),
        (post(f"{_DASHBOARD}queue/send", json=body),
         'await emulator.queues["mails"].send({"order": "1"})'),
        (post(f"{_API}queues/{mails}/messages", json=push),
         'await emulator.queues["mails"].send({"order": "2"}, delaySeconds=3)'),
        (post(f"{_DASHBOARD}queue/pause", json={"queue": "mails"}),
         'emulator.queues["mails"].pause()'),
        (c.patch(f"{_API}queues/{mails}", json={"settings": {"delivery_paused": False}}),
         'emulator.queues["mails"].resume()'),
        (post(f"{_DASHBOARD}clock/advance", json={"duration": "1 h"}),
         'await emulator.advance("1 h")'),
        (post(f"{_DASHBOARD}workers/strike", json={"what": "evict"}), "await emulator.evict()"),
        (post(f"{_DASHBOARD}kv/put", json={"id": "stock", "key": "apples", "value": "3"}),
         'emulator.kv["stock"].put("apples", "3")'),
        (c.put(f"{values}/pe%2Fars?expiration_ttl=90", content=b"4"),
         'emulator.kv["stock"].put("pe/ars", "4", expiration_ttl=90)'),
        (post(f"{_API}d1/database/shop-db/query", json=sql),
         'emulator.d1["DB"].execute("CREATE TABLE users (name)")'),
        (post(f"{_API}workflows/delivery/instances", json=params),
         'await emulator.workflows["delivery"].create(id="one", params={"to": "ada"})'),
        (c.get("/cdn-cgi/handler/scheduled?cron=*+*+*+*+*&time=1767225600500"),
         "time=datetime.fromtimestamp(1767225600, UTC) + timedelta(milliseconds=500)"),
        (post(f"{_DASHBOARD}faults/arm", json={"plan": "request.GET./calls#1:crash_before"}),
         'emulator.faults.add("request.GET./calls#1:crash_before")'),
        (post(f"{_DASHBOARD}faults/clear", json={}), "emulator.faults.clear()"),
        (post("/cdn-cgi/emulator/faults", json={"add": ["send.mails#*:fail", "schedule:7"]}),
         'emulator.faults.add("send.mails#*:fail", "schedule:7")'),
        (c.delete("/cdn-cgi/emulator/faults"), "emulator.faults.clear()"),
        (post("/cdn-cgi/handler/email?from=a@example.com&to=b@example.com", content=MAIL),
         'sender="a@example.com", to="b@example.com") assert receipt.outcome == "ok" assert '
         "receipt.rejected is None"),
    ]  # fmt: skip


def test_actions_are_calls_of_the_fixture(recorded: Recorded) -> None:
    wanted = []

    async def visit(served: Served) -> None:
        for act, line in _acts(served.client):
            answer = await act
            assert answer.status_code < 300, (line, answer.text)
            wanted.append(line)

    recorded.record(visit)
    code = " ".join(recorded.printed().split()).replace("( ", "(").replace(", )", ")")
    assert [line for line in wanted if line not in code] == []
    assert all(line.startswith("same: ") for line in recorded.replayed())
    recorded.pytest()


def test_a_mail_that_is_rejected_and_handlers_that_fail_or_are_not_there(
    recorded: Recorded,
) -> None:
    async def visit(served: Served) -> None:
        mail = "/cdn-cgi/handler/email?from=a@example.com&to=spam@example.com"
        assert (await served.client.post(mail, content=MAIL)).status_code == 400
        assert (await served.client.post(mail, content=b"no mail")).status_code == 400
        cron = "/cdn-cgi/handler/scheduled?cron=fail"
        assert (await served.client.get(cron)).status_code == 500
        assert (await served.client.get(f"{cron}&worker=nobody")).status_code == 404

    recorded.record(visit)
    code = recorded.printed()
    assert "assert receipt.rejected is not None" in code
    assert 'assert outcome != "ok"' in code
    assert code.count("is left out: it was refused, with 40") == 2
    recorded.pytest()


def test_a_workflows_event_is_sent_to_its_instance(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        made = await served.client.post(
            _DASHBOARD + "workflow/create", json={"workflow": "delivery"}
        )
        event = {"workflow": "delivery", "id": made.json()["id"], "type": "signature"}
        answer = await served.client.post(
            _DASHBOARD + "instance/event", json={**event, "payload": '"ada"'}
        )
        assert answer.status_code == 200, answer.text

    recorded.record(visit)
    code = recorded.printed()
    assert '.send_event("signature", "ada")' in " ".join(code.split()).replace("( ", "(")
    assert all(line.startswith("same") for line in recorded.replayed())
    recorded.pytest()


def test_an_action_without_a_call_is_left_out_with_a_comment(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        answer = await served.client.post(f"{_API}queues", json={"queue_name": "new"})
        assert answer.status_code == 200

    recorded.record(visit)
    text = "is left out: the fixture has no call for it"
    assert text in recorded.run("--as-test").stderr
    assert text in recorded.printed()
    assert recorded.replayed()[0].startswith("same: entry 1 POST ")


def test_websocket_of_a_recording_is_one_of_the_test(recorded: Recorded) -> None:
    recorded.file.write_text(SOCKET, "utf-8")
    code = recorded.printed()
    assert 'await socket_1.send("hi")' in code
    assert 'assert await socket_1.receive() == "you said hi"' in code


def test_a_websocket_that_was_refused_is_to_be_refused(recorded: Recorded) -> None:
    recorded.file.write_text(SOCKET.replace('"status":101', '"status":200'), "utf-8")
    code = recorded.printed()
    assert "with pytest.raises(WebSocketRefused):" in code
    recorded.change('request.headers.get("upgrade") == "websocket"', "False")
    recorded.pytest()


def test_state_of_kv_and_d1_is_set_up_and_other_state_is_named(recorded: Recorded) -> None:
    values = f"{_API}storage/kv/namespaces/stock/values"
    sql = (
        "CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, photo BLOB);"
        "CREATE INDEX by_name ON users (name);"
        """INSERT INTO users (name, photo) VALUES ('it''s "ada"', X'00ff'), ('bob', NULL)"""
    )

    async def fill(served: Served) -> None:
        await served.client.put(f"{values}/apples?expiration_ttl=600", content=b"twelve")
        await served.client.put(f"{values}/gone", content=b"x")
        await served.client.delete(f"{values}/gone")
        await served.client.put(f"{values}/raw", content=b"\xff")
        await served.client.get("/count")
        query = f"{_API}d1/database/shop-db/query"
        assert (await served.client.post(query, json={"sql": sql})).status_code == 200

    async def look(served: Served) -> None:
        assert (await served.client.get("/stock")).text == "twelve"
        assert (await served.client.get("/users")).text == "2"
        await served.advance("11 minutes")
        assert (await served.client.get("/stock")).text == "None"

    recorded.record(fill)
    recorded.file.unlink()
    recorded.record(look)
    note = "the recording began with state that this test does not set up: 1 object of COUNTER"
    assert f"note: {note}" in recorded.run("--as-test").stderr
    code = recorded.printed()
    assert f"# {note}" in code
    assert '"gone"' not in code
    recorded.pytest()


EMPTY = "    # The recording began with empty state, as this test does.\n"


def test_a_recording_that_began_with_nothing_says_so(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/count"))
    assert EMPTY in recorded.printed()
    recorded.file.unlink()
    recorded.record(lambda served: served.client.get("/count"))
    assert EMPTY not in recorded.printed()


def test_state_that_came_and_went_is_none(recorded: Recorded) -> None:
    """A message that was acknowledged is in the records, and in no queue."""

    async def deliver(served: Served) -> None:
        await served.client.post("/orders", content="apples")
        await served.advance("1 minute")
        assert served.desk.emulator.queues["mails"].acked == 1

    recorded.record(deliver)
    recorded.file.unlink()
    recorded.record(lambda served: served.client.get("/calls"))
    assert any(line.get("record") == "queues" for line in recorded.lines)
    assert EMPTY in recorded.printed()
    recorded.pytest()


def test_waiting_messages_and_files_are_set_up(recorded: Recorded) -> None:
    async def fill(served: Served) -> None:
        client = served.client
        await client.post(f"{_DASHBOARD}queue/pause", json={"queue": "mails"})
        for order in ("1", "k-12345-secret"):
            given = {"queue": "mails", "body": json.dumps({"order": order})}
            await client.post(f"{_DASHBOARD}queue/send", json=given)
        assert (await client.put("/file", content="a note")).status_code == 200

    async def look(served: Served) -> None:
        assert (await served.client.get("/file")).text.startswith("a note by ada, ")
        await served.client.post(f"{_DASHBOARD}queue/resume", json={"queue": "mails"})
        await served.advance("10 seconds")

    recorded.record(fill)
    recorded.file.unlink()
    asked = len(recorded.outside.seen)
    recorded.record(look)
    assert len(recorded.outside.seen) == asked + 2
    code = recorded.printed()
    assert (
        """
    emulator.queues["mails"].pause()
    await emulator.queues["mails"].send({"order": "1"})
    await emulator.queues["mails"].send({"order": emulator.env.API_KEY})
    emulator.r2["FILES"].put("notes.txt", "a note", custom_metadata={"by": "ada"})
"""
        in code
    )
    assert "does not set up" not in code
    recorded.pytest()


def test_what_a_test_cannot_set_up_is_told_piece_by_piece(recorded: Recorded) -> None:
    async def fill(served: Served) -> None:
        client = served.client
        await client.get("/count")
        await client.post(f"{_API}workflows/delivery/instances", json={"instance_id": "one"})
        await client.post(f"{_DASHBOARD}queue/pause", json={"queue": "mails"})
        for body in ("1", "2"):
            given = {"queue": "mails", "body": body, "delay": 3600}
            await client.post(f"{_DASHBOARD}queue/send", json=given)

    recorded.record(fill)
    recorded.file.unlink()
    recorded.record(lambda served: served.client.get("/calls"))
    told = (
        "this test does not set up: 1 object of COUNTER; 1 instance of the Workflow delivery, 1 "
        "not over; 2 messages in the queue mails; the queue mails paused"
    )
    assert told in recorded.run("--as-test").stderr
    code = recorded.printed()
    assert told in code
    assert EMPTY not in code


def test_a_long_url_of_the_outside_has_a_line_of_its_own(recorded: Recorded) -> None:
    recorded.change("/down", "/down" + "/long" * 20)
    recorded.outside.answers["/down" + "/long" * 20] = (0, b"")
    recorded.record(lambda served: served.client.get("/down" + "/long" * 20))
    code = recorded.printed()
    assert "outside_1.mock(" in code


def test_names_are_made_of_the_files_name(recorded: Recorded) -> None:
    recorded.file = recorded.path / "15:02 Ünïcode; import os.jsonl"
    recorded.record(lambda served: served.client.get("/"))
    (function, *_) = [
        node
        for node in ast.parse(recorded.printed()).body
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    assert function.name == "test_recording_15_02_n_code_import_os"


def test_a_forged_recording_is_no_way_to_run_code(recorded: Recorded) -> None:
    """Whatever stands in a recording is a text, or a number, in the test."""
    evil = '"); __import__("os").abort()  # '
    at = {"at": "2026-01-01T00:00:01Z"}
    asked = {"url": f"http://localhost/{evil}", "headers": [[evil, evil]], "worker": "shop"}
    push = {"body": {evil: evil}, "delay_seconds": evil, "content_type": evil}
    mails = f"{_API}queues/{queue_id('mails')}/messages"
    lines = [
        {"recording": 1, **at, "configs": ["wrangler.jsonc"], "workers": {evil: evil}, "seed": 0,
         "process": 1, "profile": "production", "plan": "paid"},
        {"kind": "request", "n": 1, **at, **asked, "method": evil, "body": evil},
        {"kind": "response", "of": 1, **at, "status": 200, "type": f"json{evil}", "body": evil},
        {"kind": "action", "n": 2, **at, "method": "POST", "path": mails, "query": evil,
         "headers": [], "body": json.dumps(push)},
        {"kind": "action", "n": 3, **at, "method": "POST", "path": f"/cdn-cgi/{evil}\n{evil}",
         "query": "", "headers": []},
        {"kind": "outbound", "n": 4, **at, "method": evil, "url": evil},
        {"kind": "answer", "of": 4, **at, "took": 0, "error": {"name": evil, "text": evil}},
    ]  # fmt: skip
    recorded.file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    code = recorded.printed()
    called = [
        ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)
    ]
    assert not any("import" in name or "abort" in name for name in called), code


def test_a_credential_that_no_variable_has_is_told_on_stderr(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.get("/", headers={"cookie": "session=abcdefgh1234"})

    recorded.record(visit)
    note = "note: [secret Cookie] in headers stays as it is: no variable has that name"
    assert recorded.run("--as-test").stderr.splitlines() == [note]


def test_where_paths_in_a_test_are_seen_from_is_told_on_stderr(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.record(lambda served: served.client.get("/"))
    assert recorded.run("--as-test").stderr == ""
    monkeypatch.chdir(recorded.path.parent)
    result = recorded.run("--as-test")
    path = f"{recorded.path.name}/wrangler.jsonc"
    assert f'config="{path}"' in result.stdout
    assert f"note: {path}: seen from the working directory" in result.stderr


def test_headers_beyond_ascii_are_printed_as_they_were_sent(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.get("/", headers={"x-name": "Zoë".encode()})

    recorded.record(visit)
    assert r'"x-name": b"Zo\xc3\xab"' in recorded.printed()
    recorded.pytest()
