"""A recording is repeated: the same answers at the same instants, and nobody is asked again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from served_project import Connection

from emulator.recording.entries import Request

if TYPE_CHECKING:
    from recorded_project import Recorded
    from served_project import Served


async def orders(served: Served) -> None:
    """Two orders, five minutes apart, and their mails."""
    answer = await served.client.post("/orders", content="apples")
    assert answer.status_code == 201
    await served.advance("5 minutes")
    await served.client.post("/orders", content="pears")
    await served.client.get("/id")
    await served.advance("10 seconds")


def test_replay_of_unchanged_code_is_the_same_and_asks_nobody(recorded: Recorded) -> None:
    recorded.record(orders)
    asked = len(recorded.outside.seen)
    assert asked == 4
    lines = recorded.replayed()
    assert [line.partition(":")[0] for line in lines] == ["same"] * 3
    assert lines[0] == "same: entry 1 POST /orders 201"
    assert len(recorded.outside.seen) == asked


def test_two_replays_have_the_same_bytes(recorded: Recorded) -> None:
    recorded.record(orders)
    traces = []
    for name in ("one", "two"):
        recorded.run("--trace", f"{name}.jsonl", "--html", f"{name}.html")
        files = [recorded.path / f"{name}.{kind}" for kind in ("jsonl", "html")]
        traces.append([file.read_bytes() for file in files])
    assert traces[0] == traces[1]
    assert b"request_out" in traces[0][0]


def test_a_changed_status_is_told_with_its_entry(recorded: Recorded) -> None:
    recorded.record(orders)
    recorded.change("status=201", "status=200")
    lines = recorded.replayed(code=1)
    assert lines[0] == "differs: entry 1 POST /orders was 201, now 200"


def test_a_changed_body_is_told_where_it_parts(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    recorded.change('"hello"', '"help"')
    (line,) = recorded.replayed(code=1)
    assert (
        line == "differs: entry 1 GET / was 200 and is, with another body: was 'hello', now 'help'"
    )


def test_a_request_that_is_no_longer_sent_differs(recorded: Recorded) -> None:
    recorded.record(orders)
    recorded.change('await fetch(f"{self.env.OUTSIDE}/mail"', 'str(f"{self.env.OUTSIDE}/mail"')
    recorded.change(', method="POST", body=message.body["order"])', ")")
    lines = recorded.replayed(code=1)
    assert sum("was sent to the outside, and is not now" in line for line in lines) == 2


def test_a_request_that_was_not_recorded_is_refused_and_told(recorded: Recorded) -> None:
    recorded.record(orders)
    recorded.change("/price", "/prices")
    output = recorded.run(code=1).stdout
    assert "is not in the recording" in output
    assert "outbound_unmocked" in output
    assert not any(path == "/prices" for _, path, _ in recorded.outside.seen)


def test_a_worker_that_raises_fails_the_replay_though_it_did_then(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/boom"))
    output = recorded.run(code=1).stdout
    assert "same: entry 1 GET /boom 500" in output
    assert "handler_exception" in output


def test_requests_that_overlapped_are_on_their_way_together(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        slow = asyncio.create_task(served.client.get("/slow"))
        await served.advance("1 second")
        assert (await served.client.get("/calls")).text == "2"
        await served.advance("5 seconds")
        assert (await slow).text == "slow"

    recorded.record(visit)
    lines = recorded.replayed("--trace", "trace.jsonl")
    assert [line.partition(":")[0] for line in lines] == ["same"] * 2
    trace = (recorded.path / "trace.jsonl").read_text("utf-8").splitlines()
    told = [line for line in trace if '"kind":"re' in line]
    order = [("/slow" in line, '"response"' in line) for line in told]
    assert order == [(True, False), (False, False), (False, True), (True, True)]


RACE = """\
{"recording":1,"at":"2026-01-01T00:00:00Z","configs":["wrangler.jsonc"],"workers":{},"seed":0,\
"process":1}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":1,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":2,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":1,"status":200,"body":"9"}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":2,"status":200,"body":"9"}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":3,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":3,"status":200,"body":"8"}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":4,"worker":"shop","method":"GET",\
"url":"http://localhost:8787/slow","headers":[]}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":5,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":6,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":5,"status":200,"body":"7"}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":6,"status":200,"body":"7"}
{"kind":"request","at":"2026-01-01T00:00:01Z","n":7,"worker":"shop","method":"POST",\
"url":"http://localhost:8787/take","headers":[]}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":7,"status":200,"body":"6"}
{"kind":"response","at":"2026-01-01T00:00:04Z","of":4,"status":200,"body":"slow"}
"""
TAKE = """if path == "/take":
            apples = int(await self.env.STOCK.get("apples") or 10)
            await self.env.STOCK.put("apples", str(apples - 1))
            return Response(str(apples - 1))
        if path == "/slow":"""


def test_of_requests_at_one_instant_those_that_came_together_race(recorded: Recorded) -> None:
    """What came after an answer comes after it: the third, and the last, raced with nobody."""
    recorded.file.write_text(RACE, "utf-8")
    recorded.change('if path == "/slow":', TAKE)
    lines = recorded.replayed()
    assert [line.partition(":")[0] for line in lines] == ["same"] * 7
    code = recorded.printed()
    assert code.count("asyncio.create_task(") == 5
    assert code.count("response = await emulator.fetch(") == 2
    recorded.pytest()


def test_what_came_while_the_clock_moved_comes_at_its_instant_again(recorded: Recorded) -> None:
    """A clock that is moved runs all that is due on the way; here the second request is."""

    async def visit(served: Served) -> None:
        slow = asyncio.create_task(served.client.get("/slow"))
        moving = asyncio.create_task(served.advance("1 hour"))
        assert (await slow).text == "slow"
        await served.client.get("/time")
        await moving

    recorded.record(visit)
    assert [line.partition(":")[0] for line in recorded.replayed()] == ["same"] * 2
    recorded.printed()
    recorded.pytest()


def test_the_clock_stands_where_it_stood(recorded: Recorded) -> None:
    """`/orders` answers with the time, which the comparison covers."""
    recording = recorded.record(orders)
    start = recording.head.facts["at"]
    output = recorded.run().stdout
    assert output.startswith(f"virtual time since {start}")


def test_a_client_that_left_leaves_again(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        stream = Connection(served.application, "/stream")
        stream.send()
        await stream.receive()
        await served.advance("1500 ms")
        stream.leave()
        await served.advance("5 seconds")
        await stream.task

    recording = recorded.record(visit)
    (stream, *_) = recording.entries
    assert isinstance(stream, Request)
    assert stream.left is not None
    assert (stream.left.at - stream.at, stream.answer) == (1_500_000, None)
    trace = ("--trace", "trace.jsonl")
    assert recorded.replayed(*trace)[0] == "same: entry 1 GET /stream its client left"
    assert '"kind":"disconnect"' in (recorded.path / "trace.jsonl").read_text("utf-8")
    recorded.printed()
    recorded.pytest()


def test_websocket_messages_are_compared(recorded: Recorded) -> None:
    recorded.file.write_text(SOCKET, "utf-8")
    assert recorded.replayed() == ["same: entry 1 WebSocket /ws 101"]
    recorded.change("you said", "you told")
    lines = recorded.replayed(code=1)
    text = "differs: entry 1 WebSocket /ws message 1 was 'you said hi', now 'you told hi'"
    assert lines == ["same: entry 1 WebSocket /ws 101", text]


SOCKET = """\
{"recording":1,"at":"2026-01-01T00:00:00Z","configs":["wrangler.jsonc"],"workers":{},"seed":0,\
"process":1}
{"kind":"socket","at":"2026-01-01T00:00:01Z","n":1,"worker":"shop",\
"url":"http://localhost:8787/ws","headers":[["upgrade","websocket"],["connection","upgrade"],["host","localhost:8787"]]}
{"kind":"response","at":"2026-01-01T00:00:01Z","of":1,"status":101}
{"kind":"message","at":"2026-01-01T00:00:02Z","of":1,"text":"hi"}
{"kind":"sent","at":"2026-01-01T00:00:02Z","of":1,"text":"you said hi"}
{"kind":"close","at":"2026-01-01T00:00:03Z","of":1,"code":1000,"reason":""}
{"kind":"closed","at":"2026-01-01T00:00:03Z","of":1,"code":1000,"reason":""}
"""


def test_an_outside_that_broke_off_breaks_off_again(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/down"))
    assert recorded.replayed() == ["same: entry 1 GET /down 502"]


def test_a_plan_of_faults_strikes_the_replay(recorded: Recorded) -> None:
    recorded.record(orders)
    plan = "fetch.POST.127.0.0.1*/price#1:fail"
    lines = recorded.replayed("--faults", plan, code=1)
    assert lines[0] == "differs: entry 1 POST /orders was 201, now 500"


def test_what_a_fault_makes_a_worker_ask_again_is_answered_again(recorded: Recorded) -> None:
    """The batch is delivered twice, and its mail is sent twice."""
    recorded.record(orders)
    url = recorded.outside.url
    asked = len(recorded.outside.seen)
    lines = recorded.told("--faults", "message.mails#1:duplicate")
    assert [line.partition(":")[0] for line in lines] == ["same"] * 3 + ["note"]
    text = f"POST {url}/mail was asked once more than in the recording, and answered as it was"
    assert lines[-1] == f"note: {text}"
    assert len(recorded.outside.seen) == asked


def test_another_seed_gives_other_ids(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/id"))
    assert recorded.replayed() == ["same: entry 1 GET /id 200"]
    (line,) = recorded.replayed("--seed", "77", code=1)
    assert line.startswith("differs: entry 1 GET /id")


def test_the_report_for_programs_has_each_entry(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    report = json.loads(recorded.run("--json").stdout)
    assert report["replay"] == [{"entry": 1, "what": "GET /", "verdict": "same", "text": "200"}]
    assert report["reproduce"] == f"workers-emulator run --replay {recorded.file}"


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_faults_armed_on_the_dashboard_strike_again(recorded: Recorded, clock: str) -> None:
    async def visit(served: Served) -> None:
        body = {"site": "request.GET./calls", "action": "crash_before"}
        answer = await served.client.post("/cdn-cgi/emulator/dashboard/faults/arm", json=body)
        assert answer.json()["armed"] == ["request.GET./calls#1:crash_before"]
        assert (await served.client.get("/calls")).status_code == 502
        assert (await served.client.get("/calls")).status_code == 200

    recorded.record(visit, clock=clock)
    lines = recorded.replayed()
    assert lines[1:] == ["same: entry 2 GET /calls 502", "same: entry 3 GET /calls 200"]


def test_an_error_page_is_the_same_though_its_lines_have_moved(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/boom"))
    recorded.change("calls = 0\n", "calls = 0\n\n\n")
    assert recorded.replayed(code=1) == ["same: entry 1 GET /boom 500"]
    recorded.printed()
    recorded.pytest()
    recorded.change('ValueError("boom")', 'ValueError("bang")')
    assert "with another body" in recorded.replayed(code=1)[0]
