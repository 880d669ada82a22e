"""The line of the user's code behind each event of a trace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import respx

from emulator import Emulator
from emulator.sweeping.places import LocatedTrace, locate

if TYPE_CHECKING:
    from pathlib import Path

WORKER = """
import asyncio
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch


class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("charge")
        async def charge():
            print("charging")  # line: log in step
            await fetch("https://out.example/charge")  # line: fetch in step

        await charge()  # line: step


def decorated(handler):
    import functools
    return functools.wraps(handler)(lambda *args: handler(*args))


class Default(WorkerEntrypoint):
    async def fetch(self, request):  # line: fetch handler
        self.ctx.waitUntil(self.audit())  # line: waitUntil
        await self.env.JOBS.send("x")  # line: send
        await asyncio.gather(self.call("a"), self.call("b"))
        await self.env.FLOW.create({"id": "one"})  # line: create
        return Response("ok")

    async def call(self, name):
        await asyncio.sleep(0)
        await fetch(f"https://out.example/{name}")  # line: fetch in gather

    async def audit(self):
        await asyncio.sleep(3)
        print("audited")  # line: log

    @decorated
    async def queue(self, batch, env, ctx):  # line: queue handler
        for message in batch.messages:
            await fetch("https://out.example/job")  # line: fetch in queue
            message.ack()
"""
CONFIG: dict[str, Any] = {
    "queues": {
        "producers": [{"binding": "JOBS", "queue": "jobs"}],
        "consumers": [{"queue": "jobs"}],
    },
    "workflows": [{"binding": "FLOW", "name": "flow", "class_name": "Flow"}],
}


async def scenario(emulator: Emulator) -> None:
    with respx.mock() as router:
        router.get(host="out.example").respond(200)
        await emulator.fetch("/")  # line: request
        await emulator.queues["jobs"].send("y")  # line: send by the test
        await emulator.settle()


def line_of(path: Path, name: str) -> str:
    (number,) = [
        number
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if text.endswith(f"# line: {name}")
    ]
    return f"{path.name}:{number}"


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    path = tmp_path / "entry.py"
    path.write_text(WORKER)
    return path


def run(worker: Path, *, located: bool = True, reset: bool = False) -> Emulator:
    async def main() -> Emulator:
        emulator = Emulator(CONFIG | {"main": worker})
        if located:
            locate(emulator)
        async with emulator:
            if reset:
                await scenario(emulator)
                await emulator.reset()
            await scenario(emulator)
        return emulator

    return asyncio.run(main())


def test_each_event_is_put_down_to_the_line_that_caused_it(worker):
    trace = run(worker).trace
    assert isinstance(trace, LocatedTrace)
    # A place is `file:line: source`; the sources here end with their names.
    found = [
        (event.kind, event.subject, place.rpartition("# line: ")[2])
        for event, place in zip(trace, trace.shown_places(), strict=True)
    ]
    request, flow = "request GET /", "workflow flow one"
    expected = [
        ("request", request, "request"),
        ("wait_until", request, "waitUntil"),
        ("send", "queue jobs", "send"),
        ("request_out", request, "fetch in gather"),
        ("response_in", request, "fetch in gather"),
        ("workflow_created", flow, "create"),
        ("response", request, "fetch handler"),
        ("step", flow, "step"),
        ("log", flow, "log in step"),
        ("request_out", flow, "fetch in step"),
        ("send", "queue jobs", "send by the test"),
        ("log", request, "log"),
        ("request_out", "queue jobs #1", "fetch in queue"),
        ("response_in", "queue jobs #1", "fetch in queue"),
        ("ack", "queue jobs", "queue handler"),
    ]
    for each in expected:
        assert each in found
    # A batch is the platform's doing.
    assert ("batch", "queue jobs #1", "") in found
    places = dict(zip(trace.shown_places(), trace.places, strict=True))
    (send,) = [place for place in places if place.endswith("# line: send")]
    assert places[send] is not None
    assert places[send].file == str(worker)
    assert send.startswith(f"{worker}:{line_of(worker, 'send').rpartition(':')[2]}: await self.env")


def test_noting_the_lines_changes_nothing(worker):
    assert run(worker).trace.to_jsonl() == run(worker, located=False).trace.to_jsonl()


def test_lines_go_with_the_events_after_a_reset(worker):
    again, once = run(worker, reset=True).trace, run(worker).trace
    assert isinstance(again, LocatedTrace)
    assert isinstance(once, LocatedTrace)
    assert again.to_jsonl() == once.to_jsonl()
    assert again.shown_places() == once.shown_places()
    assert len(again.places) == len(again) > 10


def test_other_emulators_note_nothing(worker):
    config = CONFIG | {"main": worker}
    with Emulator(config) as located, Emulator(config) as other:
        locate(located)
        assert isinstance(located.trace, LocatedTrace)
        assert not isinstance(other.trace, LocatedTrace)
        assert "call_soon" in vars(located._kernel.loop)
        assert "call_soon" not in vars(other._kernel.loop)
