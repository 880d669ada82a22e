"""What was durable when a recording began is in it, and there again for a replay."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from emulator.recording import start_state
from emulator.recording.coding import value_from_json, value_to_json

if TYPE_CHECKING:
    from recorded_project import Recorded
    from served_project import Served

_API = "/cdn-cgi/emulator/client/v4/accounts/any/"
_PATHS = ("/stock", "/users", "/count", "/id")


async def fill(served: Served) -> None:
    """Something in KV, in D1, in an object, in a queue and in a Workflow."""
    client = served.client
    await client.put(f"{_API}storage/kv/namespaces/stock/values/apples", content=b"12")
    sql = "CREATE TABLE users (name); INSERT INTO users VALUES ('ada'), ('bob')"
    answer = await client.post(f"{_API}d1/database/shop-db/query", json={"sql": sql})
    assert answer.status_code == 200, answer.text
    assert (await client.get("/count")).text == "1"
    await client.post(f"{_API}workflows/delivery/instances", json={"instance_id": "one"})
    await client.post("/orders", content="apples")


async def look(served: Served) -> None:
    """What is there, and what becomes of the mail that waits."""
    answers = [(await served.client.get(path)).text for path in _PATHS]
    assert answers[:3] == ["12", "2", "2"]
    await served.advance("10 seconds")
    event = f"{_API}workflows/delivery/instances/one/events/signature"
    assert (await served.client.post(event, content=b'"ada"')).status_code == 200


@pytest.fixture
def filled(recorded: Recorded) -> Recorded:
    """A project whose server was used before, without a recording."""
    recorded.record(fill)
    recorded.file.unlink()
    return recorded


def test_a_replay_begins_with_the_state_of_the_recording(filled: Recorded) -> None:
    asked = len(filled.outside.seen)
    filled.record(look)
    assert len(filled.outside.seen) == asked + 1, "the mail that waited was sent"
    assert [line.partition(":")[0] for line in filled.replayed()] == ["same"] * 5
    assert len(filled.outside.seen) == asked + 1


def test_two_replays_of_it_have_the_same_bytes(filled: Recorded) -> None:
    filled.record(look)
    traces = []
    for name in ("one", "two"):
        filled.run("--trace", f"{name}.jsonl")
        traces.append((filled.path / f"{name}.jsonl").read_bytes())
    assert traces[0] == traces[1]


def test_the_servers_own_state_is_left_alone_by_a_replay(filled: Recorded) -> None:
    filled.record(look)
    before = filled.state.read_bytes()
    filled.run()
    assert filled.state.read_bytes() == before


def test_secrets_in_stored_values_are_masked_and_come_back(recorded: Recorded) -> None:
    async def store(served: Served) -> None:
        value = f"{_API}storage/kv/namespaces/stock/values/apples"
        await served.client.put(value, content=b"a k-12345-secret apple")

    recorded.record(store)
    recorded.file.unlink()
    recorded.record(lambda served: served.client.get("/stock"))
    assert "k-12345" not in recorded.file.read_text("utf-8")
    assert recorded.replayed() == ["same: entry 1 GET /stock 200"]


def test_a_database_with_a_secret_is_left_out_and_that_is_told(filled: Recorded) -> None:
    database = next(filled.state.with_name("state.db.databases").rglob("d1/*.sqlite"))
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO users VALUES ('k-12345-secret')")
    connection.commit()
    connection.close()
    filled.record(lambda served: served.client.get("/users"))
    assert "k-12345" not in filled.file.read_text("utf-8")
    note = (
        "note: the recording began with state that it does not hold: d1/shop-db.sqlite (it holds "
        "a secret, and cannot be masked)"
    )
    assert note in filled.told(code=1)


def test_a_large_state_is_left_out_and_that_is_told(
    filled: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_state, "MOST_BYTES", 100)
    filled.record(lambda served: served.client.get("/stock"))
    line, note = filled.told(code=1)
    assert line.startswith("differs: entry 1 GET /stock was 200 and is, with another body")
    assert note.startswith("note: the recording began with state that it does not hold: all (its ")
    assert note.endswith(" bytes are more than 100)")


def test_a_path_that_leads_out_of_the_folder_is_refused(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    head, *rest = recorded.file.read_text("utf-8").splitlines()
    evil = '{"kind":"state","file":"../../evil.sqlite","data":"eA=="}'
    recorded.file.write_text("\n".join((head, evil, *rest, "")), "utf-8")
    result = recorded.run(code=2)
    assert "is no path below a folder" in result.stderr
    assert not list(recorded.path.rglob("evil*"))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [None, True, 2**62, 1.5, "text", b"bytes", b"\xff"]},
        {"$bytes": "not bytes", "$dict": 1},
        {"$dict": {"$bytes": b"x"}},
        [[], {}, b"", ""],
    ],
)
def test_a_stored_value_survives_as_json(value: object) -> None:
    assert value_from_json(value_to_json(value)) == value
