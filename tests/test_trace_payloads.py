"""What events carry: recorded by the products, written in JSON lines, left out of timelines."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import respx
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch

from emulator import Emulator
from emulator.secrets import Masker
from emulator.trace import Payload, Trace, http_body, stored
from emulator.values import to_v8

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio

CONFIG = {
    "queues": {
        "producers": [{"binding": "JOBS", "queue": "jobs"}],
        "consumers": [{"queue": "jobs", "max_batch_timeout": 0}],
    }
}


class Main(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        await self.env.JOBS.send({"note": "<b>"})
        await self.env.JOBS.send("plain", contentType="text")
        answer = await fetch("https://api.example/", method="POST", body="what for?")
        return Response(f"answer: {await answer.text()}")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        batch.ackAll()


class Flow(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> Any:
        @step.do("open")
        async def open() -> Any:
            return {"account": 7}

        @step.do("hidden", config={"sensitive": "output"})
        async def hidden() -> Any:
            return "a token"

        account = await open()
        await hidden()
        told = await step.wait_for_event("go", "go", timeout="1 hour")
        return [account, told["payload"]]


def carried(emulator: Emulator, kind: str) -> list[dict[str, Any]]:
    """The payloads of all events of a kind."""
    return [
        {key: value.value for key, value in event.data.items() if isinstance(value, Payload)}
        for event in emulator.trace
        if event.kind == kind
    ]


async def test_messages_requests_and_responses_carry_their_bodies() -> None:
    async with Emulator({"main": Main, **CONFIG}) as emulator:
        with respx.mock as router:
            router.post("https://api.example/").respond(200, text="nothing")
            await emulator.fetch("/", method="POST", json={"ask": 1})
        await emulator.queues["jobs"].send(b"\x00\xff", contentType="bytes")
        await emulator.settle()
        assert carried(emulator, "request") == [{"body": '{"ask":1}'}]
        assert carried(emulator, "send") == [
            {"body": {"note": "<b>"}},
            {"body": "plain"},
            {"body": b"\x00\xff"},
        ]
        assert carried(emulator, "request_out") == [{"body": "what for?"}]
        assert carried(emulator, "response_in") == [{}]
        assert carried(emulator, "response") == [{"body": "answer: nothing"}]
        lines = [json.loads(line) for line in emulator.trace.to_jsonl().splitlines()]
        (first, *_) = (line["data"] for line in lines if line["kind"] == "send")
        assert list(first) == ["id", "by", "body"]
        assert first["body"] == {"note": "<b>"}
        assert "note" not in emulator.trace.render()
        assert "note" not in emulator.trace.outline()
        assert len(emulator.trace.outline().splitlines()) == len(lines)


async def test_instances_carry_params_events_and_results() -> None:
    flow = {"name": "flow", "binding": "FLOW", "class_name": Flow}
    async with Emulator({"main": Main, "workflows": [flow], **CONFIG}) as emulator:
        instance = await emulator.workflows["flow"].create("x", {"plan": "free"})
        await emulator.advance(timedelta(seconds=1))
        await instance.send_event("go", ["now"])
        assert await instance.result() == [{"account": 7}, ["now"]]
        assert carried(emulator, "workflow_created") == [{"params": {"plan": "free"}}]
        assert carried(emulator, "step_done") == [{"output": {"account": 7}}, {}]
        assert carried(emulator, "event") == [{"payload": ["now"]}]
        assert carried(emulator, "workflow_ended") == [{"output": [{"account": 7}, ["now"]]}]
        assert "a token" not in emulator.trace.to_jsonl()


class Sizes(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        from js import ReadableStream
        from pyodide.ffi import to_js

        async def chunks() -> AsyncIterator[bytes]:
            yield to_js(b"ab")

        size = request.url.rpartition("?")[2]
        return Response(ReadableStream.from_(chunks()) if size == "stream" else "x" * int(size))


async def test_bodies_that_are_streamed_empty_or_large_are_left_out() -> None:
    async with Emulator({"main": Sizes}) as emulator:
        answers = [
            len((await emulator.fetch(f"/?{size}")).content)
            for size in (0, 1_048_576, 1_048_577, "stream")
        ]
        assert answers == [0, 1_048_576, 1_048_577, 2]
        kept = [len(each.get("body", "")) for each in carried(emulator, "response")]
        assert kept == [0, 1_048_576, 0, 0]
        assert carried(emulator, "request") == [{}, {}, {}, {}]


async def test_payload_is_read_when_it_is_looked_at() -> None:
    assert Payload("json", b'{"a": 1}').value == {"a": 1}
    assert Payload("v8", to_v8([1, None])).value == [1, None]
    assert Payload("http", "ö".encode()).value == "ö"
    for broken in (Payload("json", b"{"), Payload("v8", b"?"), Payload("http", b"\xff")):
        assert broken.value == broken.data
    assert Payload("none of these", b"x").value == b"x"
    assert (http_body(None), http_body(b""), stored("output", None)) == ({}, {}, {})


async def test_secrets_in_payloads_are_masked() -> None:
    trace = Trace(0, masker=Masker({"KEY": "sk-12345678"}))
    names = ("id", "by", "body", "content_type")
    trace.record_each(0, "send", "queue q", names, [("a", "test", b'"sk-12345678"', "json")])
    assert trace[0].data == {"id": "a", "by": "test", "body": Payload("json", b'"sk-12345678"')}
    assert json.loads(trace.to_jsonl())["data"]["body"] == "[secret KEY]"
