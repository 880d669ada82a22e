"""What a recording holds, what is masked in it, and how it goes on."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from served_project import Connection

from emulator.errors import RecordingError
from emulator.recording.entries import Action, Reload, Request, Restart

if TYPE_CHECKING:
    from recorded_project import Recorded
    from served_project import Served

SECRET = "k-12345-secret"
_API = "/cdn-cgi/emulator/client/v4/accounts/any/"


def test_a_request_is_recorded_with_its_answer(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.advance("1 minute")
        await served.client.post("/body?a=1", content=b"\xff\x00", headers={"x-one": "two"})

    recording = recorded.record(visit)
    (_, request) = recording.entries
    assert isinstance(request, Request)
    assert (request.worker, request.method) == ("shop", "POST")
    assert request.url == "http://localhost:8787/body?a=1"
    assert ("x-one", "two") in request.headers
    assert request.body == b"\xff\x00"
    assert request.at - recording.head.origin == 60_000_000
    assert request.answer is not None
    assert (request.answer.status, request.answer.body) == (200, b"\xef\xbf\xbd\x00")


def test_the_head_says_what_was_recorded(recorded: Recorded) -> None:
    recording = recorded.record(lambda served: served.client.get("/"), seed=5)
    head = recording.head
    assert head.configs == ("wrangler.jsonc",)
    assert head.workers == {"shop": "2026-10-01"}
    assert (head.seed, head.process) == (5, 1)
    assert recording.ended == recording.last
    assert recording.idle


def test_only_the_owner_can_read_it_whatever_the_umask(recorded: Recorded) -> None:
    before = os.umask(0)
    try:
        recorded.record(lambda served: served.client.get("/"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(recorded.file.stat().st_mode) == 0o600


def test_looking_is_not_recorded(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        assert (await served.client.get("/cdn-cgi/emulator/status")).status_code == 200
        assert (await served.client.get(f"{_API}queues")).status_code == 200

    assert recorded.record(visit).entries == ()


def test_what_the_guard_refuses_is_not_recorded(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        answer = await served.client.post(
            "/cdn-cgi/emulator/clock", json={"advance": 1}, headers={"host": "evil.example"}
        )
        assert answer.status_code == 403

    assert recorded.record(visit).entries == ()


def test_secrets_are_masked_everywhere(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        client = served.client
        headers = {"authorization": f"Bearer {SECRET}", "cookie": "session=a-long-session-id"}
        answer = await client.get(f"/key?key={SECRET}", headers=headers)
        assert SECRET in answer.text
        await client.post("/orders", content=f"{SECRET} and a-long-session-id")
        value = f"{_API}storage/kv/namespaces/stock/values/apples"
        await client.put(value, content=SECRET)
        await served.client.get("/key", headers={"authorization": "Basic dTphLWxvbmctcHc="})

    recorded.record(visit)
    text = recorded.file.read_text("utf-8")
    assert SECRET not in text
    assert "a-long-session-id" not in text
    assert "dTphLWxvbmctcHc=" not in text
    assert '["authorization","Bearer [secret API_KEY]"]' in text
    assert '["authorization","[secret Authorization]"]' in text
    assert '["cookie","[secret Cookie]"]' in text
    assert "key=[secret API_KEY]" in text
    assert "your key is [secret API_KEY]" in text


def test_a_secret_that_is_the_name_of_a_header_is_masked(recorded: Recorded) -> None:
    recorded.write(".dev.vars", f"API_KEY={SECRET.upper()}\n")

    async def visit(served: Served) -> None:
        headers = {SECRET.upper(): "1", "x-other": "2"}
        assert (await served.client.get("/", headers=headers)).status_code == 200
        await served.client.post(f"{_API}queues", headers=headers, json={"queue_name": "a"})

    recorded.record(visit)
    text = recorded.file.read_text("utf-8")
    assert SECRET not in text.lower()
    assert text.count('["[secret API_KEY]","1"]') == 2
    recorded.write(".dev.vars", "API_KEY=another-secret\n")
    assert recorded.replayed()[0] == "same: entry 1 GET / 200"
    (recorded.path / ".dev.vars").unlink()
    same, *_, note = recorded.told()
    assert same == "same: entry 1 GET / 200"
    assert note.startswith("note: [secret API_KEY] in headers stays as it is")


@pytest.mark.parametrize("hyphen", ["%2d", "%2D", "%252d"])
def test_secrets_are_masked_however_a_client_encodes_them(recorded: Recorded, hyphen: str) -> None:
    encoded = f"%6b{hyphen}12345{hyphen}secre%74"
    escaped = SECRET.replace("-", "\\u002d").replace("k", "\\u006B")

    async def visit(served: Served) -> None:
        await served.client.get(f"/key/{encoded}?key={encoded}&a=%2d")
        await served.client.post("/orders", content=f'{{"key": "{escaped}"}}')
        await served.client.post("/orders", content=f"key={encoded}&a=%2d")

    recorded.record(visit)
    text = recorded.file.read_text("utf-8")
    assert "/key/[secret API_KEY]?key=[secret API_KEY]&a=%2d" in text
    assert '{\\"key\\": \\"[secret API_KEY]\\"}' in text
    assert "key=[secret API_KEY]&a=%2d" in text
    assert "12345" not in text


def test_the_servers_own_token_is_not_recorded(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        headers = {"authorization": "Bearer the-servers-token"}
        url = "/cdn-cgi/handler/scheduled?cron=x&token=the-servers-token"
        assert (await served.client.get(url, headers=headers)).status_code in (200, 303)
        url = "/cdn-cgi/emulator/clock?token=the-servers-token"
        await served.client.post(url, json={"advance": 1})

    recording = recorded.record(visit, token="the-servers-token")
    assert "the-servers-token" not in recorded.file.read_text("utf-8")
    assert len(recording.entries) == 1
    assert isinstance(recording.entries[0], Action)


def test_a_masked_secret_is_filled_in_with_its_present_value(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        headers = {"authorization": f"Bearer {SECRET}"}
        assert (await served.client.get("/key", headers=headers)).status_code == 200

    recorded.record(visit)
    recorded.write(".dev.vars", "API_KEY=another-secret\n")
    assert recorded.replayed() == ["same: entry 1 GET /key 200"]


def test_a_masked_credential_that_no_variable_has_stays_and_is_noted(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        headers = {"authorization": "Bearer something-else"}
        assert (await served.client.get("/key", headers=headers)).status_code == 401

    recorded.record(visit)
    same, note = recorded.told()
    assert same == "same: entry 1 GET /key 401"
    assert note == (
        "note: [secret Authorization] in headers stays as it is: no variable has that name"
    )


def test_a_variable_may_stand_for_a_credential(recorded: Recorded) -> None:
    """As docs/recording.md says: a variable of the header's name is filled in."""

    async def visit(served: Served) -> None:
        headers = {"authorization": "Bearer something-else"}
        await served.client.get("/key", headers=headers)

    recorded.record(visit)
    recorded.write(".dev.vars", f"API_KEY={SECRET}\nAuthorization=Bearer {SECRET}\n")
    (line,) = recorded.replayed(code=1)
    assert line == "differs: entry 1 GET /key was 401, now 200"


def test_a_large_body_is_kept_by_its_digest(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.recording.recorder.MOST_BODY", 1_000)
    recording = recorded.record(lambda served: served.client.post("/body", content=b"x" * 1_001))
    (request,) = recording.entries
    assert isinstance(request, Request)
    assert request.missing == "not in the recording, as its 1,001 bytes are too many"
    (line,) = recorded.replayed(code=1)
    assert line == f"differs: entry 1 POST /body cannot be repeated: its body is {request.missing}"


def test_a_large_answer_is_compared_by_its_digest(recorded: Recorded) -> None:
    body = b"x" * 70_000
    recorded.record(lambda served: served.client.post("/body", content=body))
    assert "x" * 70_000 not in recorded.lines[-2].get("body", "")
    assert recorded.replayed() == ["same: entry 1 POST /body 200"]
    recorded.change("Response(await request.text())", "Response(await request.text() + '!')")
    (line,) = recorded.replayed(code=1)
    assert line.endswith("was 200 and is, with another body of 70,001 bytes")


def test_a_streamed_body_is_whole_again(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        connection = Connection(served.application, "/body", method="POST")
        connection.send(b"first, ", more=True)
        connection.send(b"second")
        await connection.task

    (request,) = recorded.record(visit).entries
    assert isinstance(request, Request)
    assert (request.body, request.open) == (b"first, second", False)
    assert recorded.replayed() == ["same: entry 1 POST /body 200"]


def test_a_reload_is_recorded_and_drops_the_memory_again(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.get("/calls")
        await served.desk.reload(settings=False)
        assert (await served.client.get("/calls")).text == "1"

    recording = recorded.record(visit)
    kinds = [type(entry) for entry in recording.entries]
    assert kinds == [Request, Reload, Request]
    assert recorded.replayed() == ["same: entry 1 GET /calls 200", "same: entry 2 GET /calls 200"]


def test_new_settings_are_a_restart_with_ids_that_go_on_alike(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.get("/count")
        await served.desk.reload(settings=True)
        assert (await served.client.get("/count")).text == "2"
        await served.client.get("/id")

    recording = recorded.record(visit)
    (restart,) = [entry for entry in recording.entries if isinstance(entry, Restart)]
    assert (restart.process, restart.cause) == (2, "settings")
    assert [line.partition(":")[0] for line in recorded.replayed()] == ["same"] * 3


def test_a_recording_goes_on_after_the_server_was_started_again(recorded: Recorded) -> None:
    async def first(served: Served) -> None:
        await served.client.get("/count")
        await served.client.post("/orders", content="apples")

    async def second(served: Served) -> None:
        assert (await served.client.get("/count")).text == "2"
        await served.client.get("/id")
        await served.advance("10 seconds")

    recorded.record(first)
    recording = recorded.record(second, seed=99)
    (restart,) = [entry for entry in recording.entries if isinstance(entry, Restart)]
    assert (restart.process, restart.seed, restart.cause) == (2, 99, "start")
    assert [line.partition(":")[0] for line in recorded.replayed()] == ["same"] * 4
    recorded.printed()


def test_a_clock_that_a_kill_put_back_is_noted(recorded: Recorded) -> None:
    """Time that passed with nothing to store is not in the state yet."""
    recorded.record(lambda served: served.client.get("/"))
    state = recorded.state.read_bytes()
    log = recorded.state.with_name("state.db-wal")
    recorded.record(lambda served: served.advance("3 days"))
    recorded.state.write_bytes(state)
    log.unlink(missing_ok=True)
    head, *rest = recorded.lines
    kept = [line for line in rest if line["kind"] != "restart"]
    recorded.file.write_text("".join(f"{json.dumps(line)}\n" for line in (head, *kept)), "utf-8")
    recorded.record(lambda served: served.client.get("/calls"))
    told = recorded.told()
    assert told[:2] == ["same: entry 1 GET / 200", "same: entry 3 GET /calls 200"]
    assert "the server was started again at an earlier time than it had" in told[2]
    recorded.printed()


def test_a_recording_does_not_go_on_over_another_state(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    recorded.record(lambda served: served.client.get("/"), record=None)
    with pytest.raises(RecordingError, match="does not end where this server's state goes on"):
        recorded.record(lambda served: served.client.get("/"))


def test_a_recording_does_not_go_on_with_another_config(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    with pytest.raises(RecordingError, match="is a recording of profile 'production'"):
        recorded.record(lambda served: served.client.get("/"), profile="miniflare")


def test_a_server_whose_code_does_not_load_records_once_it_does(recorded: Recorded) -> None:
    code = (recorded.path / "src/entry.py").read_text("utf-8")

    async def visit(served: Served) -> None:
        assert (await served.client.get("/")).status_code == 500
        recorded.write("src/entry.py", code)
        await served.desk.reload(settings=False)
        assert (await served.client.get("/")).status_code == 200

    recorded.write("src/entry.py", "nonsense nonsense")
    recording = recorded.record(visit)
    assert [str(entry) for entry in recording.entries] == ["GET /"]


def test_what_the_outside_answered_is_recorded_with_the_time_it_took(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.post("/orders", content=SECRET)
        await served.client.get("/down")

    (price, down) = recorded.record(visit).outgoing
    assert (price.method, price.status, price.body) == ("POST", 200, b"42")
    assert price.url == f"{recorded.outside.url}/price"
    assert down.status is None
    assert down.error is not None
    assert down.error[0] == "RemoteProtocolError"


def test_requests_to_one_url_get_the_answers_to_their_bodies(recorded: Recorded) -> None:
    """Of two that are under way together each gets its own."""

    async def visit(served: Served) -> None:
        for number in range(3):
            recorded.outside.answers["/price"] = (200, b"%d" % number)
            await served.client.post("/orders", content=f"order {number}")

    recorded.record(visit)
    lines = recorded.file.read_text("utf-8").splitlines()
    outbound = [line for line in lines if '"kind":"outbound"' in line]
    assert len({line[line.index('"digest"') :] for line in outbound}) == 3
    recorded.change("order = await request.text()", "order = (await request.text())[::1]")
    assert [line.partition(":")[0] for line in recorded.replayed()] == ["same"] * 3


def test_a_full_disk_is_told_once_and_harms_nobody(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of which a part was written is cut off: what is there stays a sound recording."""
    usual = os.write

    def write(file: int, data: bytes) -> int:
        usual(file, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    async def visit(served: Served) -> None:
        await served.client.get("/")
        monkeypatch.setattr(os, "write", write)
        for _ in range(3):
            assert (await served.client.post("/body", content=b"more")).status_code == 200
        monkeypatch.setattr(os, "write", usual)
        (bad,) = [text for text, bad in served.news if bad]
        assert bad.endswith(
            "cannot be written: No space left on device; nothing is recorded any more, what it "
            "has so far stays"
        )

    recording = recorded.record(visit)
    assert [str(entry) for entry in recording.entries] == ["GET /"]
    (note,) = recording.notes
    assert note.startswith("the recording ends before its server was stopped")


def test_a_token_that_the_worker_echoes_has_the_name_of_its_variable(recorded: Recorded) -> None:
    """It can be put in again, another one too."""
    header = "Bearer k-12345-secret"

    async def visit(served: Served) -> None:
        body = json.dumps({"authorization": header, "text": f"sent {header}"})
        await served.client.post("/body", content=body, headers={"authorization": header})

    recorded.record(visit)
    text = recorded.file.read_text("utf-8")
    assert text.count("Bearer [secret API_KEY]") == 5
    assert "[secret Authorization]" not in text
    recorded.write(".dev.vars", 'API_KEY="another-secret"\n')
    assert recorded.replayed() == ["same: entry 1 POST /body 200"]
