"""Tail Workers: who is told of what, and when (workerd, `api/trace.h`, `server/server.c++`)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from js import JSON, Object, WebSocketPair, console
from pyodide.ffi import to_js
from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint

from emulator import ConfigError, Emulator, WorkerCrashed

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
AT = int(START.timestamp() * 1000)


class Logs(WorkerEntrypoint):
    """Prints what it is told, as JSON."""

    async def tail(self, events: Any, env: Any, ctx: Any) -> None:
        print(JSON.stringify(events))


def entrypoint(**members: Any) -> type[Any]:
    return type("Default", (WorkerEntrypoint,), members)


def front(main: Any = None, **config: Any) -> dict[str, Any]:
    """A Worker that is tailed."""
    return {"name": "front", "main": main, "tail_consumers": [{"service": "logs"}], **config}


def logs(main: Any = Logs, **config: Any) -> dict[str, Any]:
    """The Worker that tails it."""
    return {"name": "logs", "main": main, **config}


def told(emulator: Emulator) -> list[dict[str, Any]]:
    """What the tail Worker was told, one item each time."""
    items = [json.loads(log.text) for log in emulator.logs if log.worker == "logs"]
    assert all(len(one) == 1 for one in items)
    return [one[0] for one in items]


async def answer(self: Any, request: Any) -> Any:
    return Response("ok")


# -- requests --------------------------------------------------------------------------------------


async def test_a_request_is_told_when_its_background_work_is_done() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        async def later() -> None:
            await asyncio.sleep(3)
            print("later")

        print("now")
        self.ctx.waitUntil(later())
        return Response("ok", status=201)

    async with Emulator([front(entrypoint(fetch=fetch)), logs()], seed=1) as emulator:
        await emulator.fetch("/a?b=c", method="POST", headers={"X-A": "1", "X-Api-Key": "s"})
        assert told(emulator) == []
        await emulator.settle()
        (item,) = told(emulator)
        version = item.pop("scriptVersion")
        assert len(version["id"]) == 36
        assert item.pop("event") == {
            "response": {"status": 201},
            "request": {
                "headers": {
                    "content-length": "0",
                    "host": "localhost",
                    "x-a": "1",
                    "x-api-key": "REDACTED",
                },
                "method": "POST",
                "url": "http://localhost/a?b=c",
            },
        }
        assert item == {
            "eventTimestamp": AT,
            "logs": [
                {"timestamp": AT, "level": "log", "message": ["now"]},
                {"timestamp": AT + 3000, "level": "log", "message": ["later"]},
            ],
            "exceptions": [],
            "diagnosticsChannelEvents": [],
            "scriptName": "front",
            "outcome": "ok",
            "executionModel": "stateless",
            "truncated": False,
            "cpuTime": 0,
            "wallTime": 3000,
        }
        (event,) = [event for event in emulator.trace if event.kind == "tail"]
        assert event.subject == "tail logs"
        assert event.data == {"of": "request POST /a", "outcome": "ok"}
        assert list(emulator.findings) == []


async def test_what_looks_secret_is_there_for_who_asks() -> None:
    """workerd, `trace.c++`: `getUnredacted`."""
    seen: list[Any] = []

    async def tail(self: Any, events: Any, env: Any, ctx: Any) -> None:
        (item,) = events
        request = item.event.request
        whole = request.getUnredacted()
        seen.append((type(item).__name__, env, ctx))
        seen.append((request.url, request.headers.to_py()["authorization"]))
        seen.append((whole.url, whole.headers.to_py()["authorization"], whole.method))

    key = "0123456789abcdef0123456789abcdef"
    workers = [front(entrypoint(fetch=answer)), logs(entrypoint(tail=tail))]
    async with Emulator(workers) as emulator:
        await emulator.fetch(f"/{key}", headers={"Authorization": "Bearer x"})
    assert seen == [
        ("JsProxy", None, None),
        ("http://localhost/REDACTED", "REDACTED"),
        (f"http://localhost/{key}", "Bearer x", "GET"),
    ]


async def test_lines_keep_their_levels_and_arguments() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        value = to_js({"a": 1}, dict_converter=Object.fromEntries)
        console.warn("w", value, 2)
        console.error(JSON.parse("[1]"))
        console.debug(None)
        return Response("ok")

    async with Emulator([front(entrypoint(fetch=fetch)), logs()]) as emulator:
        await emulator.fetch("/")
        (item,) = told(emulator)
        assert [(line["level"], line["message"]) for line in item["logs"]] == [
            ("warn", ["w", {"a": 1}, 2]),
            ("error", [[1]]),
            ("debug", ["undefined"]),
        ]


async def test_an_exception_is_told_as_one_and_not_as_a_line() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        raise ValueError("boom")

    async with Emulator([front(entrypoint(fetch=fetch)), logs()]) as emulator:
        assert (await emulator.fetch("/")).status_code == 500
        (item,) = told(emulator)
        assert (item["outcome"], item["logs"]) == ("exception", [])
        (thrown,) = item["exceptions"]
        assert (thrown["name"], thrown["timestamp"]) == ("PythonError", AT)
        assert thrown["message"].endswith("ValueError: boom\n")
        assert item["event"]["response"] == {"status": 500}


async def test_a_failure_in_the_background_of_a_request_leaves_its_outcome() -> None:
    """workerd, `io-context.c++`: a failed task is no failure of the request's."""

    async def fetch(self: Any, request: Any) -> Any:
        async def fails() -> None:
            raise ValueError("late")

        self.ctx.waitUntil(fails())
        return Response("ok")

    async with Emulator([front(entrypoint(fetch=fetch)), logs()]) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        (item,) = told(emulator)
        assert item["outcome"] == "ok"
        assert [one["message"].splitlines()[-1] for one in item["exceptions"]] == [
            "ValueError: late"
        ]


async def test_too_much_is_cut_off() -> None:
    """workerd, `tracer.c++`: 256 KiB of logs, exceptions and headers."""

    async def fetch(self: Any, request: Any) -> Any:
        for _ in range(10):
            print("x" * 100_000)
        return Response("ok")

    async with Emulator([front(entrypoint(fetch=fetch)), logs()]) as emulator:
        await emulator.fetch("/")
        (item,) = told(emulator)
        assert item["truncated"] is True
        assert [len(line["message"][0]) for line in item["logs"]][:2] == [100_000, 100_000]
        assert len(item["logs"]) == 3
        assert item["logs"][2]["message"][0].startswith("Log size limit exceeded: More than 256KB")


async def test_a_request_that_is_too_large_is_told_without_its_headers() -> None:
    async with Emulator([front(entrypoint(fetch=answer)), logs()]) as emulator:
        await emulator.fetch("/", headers={"X-A": "x" * 300_000})
        (item,) = told(emulator)
        assert item["truncated"] is True
        assert item["event"]["request"] == {"headers": {}, "method": "GET", "url": ""}


# -- other events ----------------------------------------------------------------------------------


async def test_each_kind_of_event_says_what_it_is() -> None:
    async def nothing(self: Any, *arguments: Any) -> None:
        pass

    main = entrypoint(queue=nothing, scheduled=nothing, email=nothing, method=nothing)
    config = front(
        main,
        queues={"consumers": [{"queue": "jobs"}]},
        services=[{"binding": "SELF", "service": "front"}],
        compatibility_flags=["service_binding_extra_handlers"],
    )
    async with Emulator([config, logs()]) as emulator:
        await emulator.scheduled(cron="0 3 * * *")
        await emulator.queues["jobs"].dispatch([1, 2])
        await emulator.email("Subject: x\r\n\r\nhi", sender="a@x.example", to="b@x.example")
        await emulator.env.SELF.method()
        await emulator.env.SELF.scheduled(cron="* * * * *", scheduledTime=1000)
        assert [item["event"] for item in told(emulator)] == [
            {"scheduledTime": AT, "cron": "0 3 * * *"},
            {"queue": "jobs", "batchSize": 2},
            {"mailFrom": "a@x.example", "rcptTo": "b@x.example", "rawSize": 16},
            {"rpcMethod": "method"},
            {"scheduledTime": 1000, "cron": "* * * * *"},
        ]
        assert {item["outcome"] for item in told(emulator)} == {"ok"}


async def test_failures_of_other_events_are_outcomes_too() -> None:
    async def fails(self: Any, *arguments: Any) -> None:
        raise ValueError("boom")

    async def slow(self: Any, *arguments: Any) -> None:
        await asyncio.sleep(3600)

    config = front(
        entrypoint(queue=slow, scheduled=fails, method=fails),
        queues={"consumers": [{"queue": "jobs"}]},
        services=[{"binding": "SELF", "service": "front"}],
    )
    async with Emulator([config, logs()]) as emulator:
        assert (await emulator.scheduled())[0] == "exception"
        with pytest.raises(Exception, match="boom"):
            await emulator.env.SELF.method()
        assert (await emulator.queues["jobs"].dispatch([1])).outcome == "exceededWallTime"
        items = told(emulator)
        assert [item["outcome"] for item in items] == ["exception", "exception", "exceededWallTime"]
        assert [len(item["exceptions"]) for item in items] == [1, 1, 0]
        assert items[2]["wallTime"] == 15 * 60 * 1000


class Room(DurableObject):
    async def fetch(self, request: Any) -> Any:
        if request.headers.get("upgrade") == "websocket":
            client, server = WebSocketPair.new().object_values()
            self.ctx.acceptWebSocket(server)
            return Response(None, status=101, web_socket=client)
        return Response("ok", status=202)

    async def visit(self) -> None:
        print("visited")
        await self.ctx.storage.setAlarm(AT + 5000)

    async def fail(self) -> None:
        raise ValueError("boom")

    async def alarm(self, info: Any) -> None:
        print("rang")

    async def webSocketMessage(self, ws: Any, message: Any) -> None:
        print(message)

    async def webSocketClose(self, ws: Any, code: int, reason: str, was_clean: bool) -> None:
        pass


OBJECTS = {
    "durable_objects": {"bindings": [{"name": "ROOMS", "class_name": "Room"}]},
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Room"]}],
}


async def test_events_of_an_object_are_told_one_by_one() -> None:
    async with Emulator([front(entrypoint(fetch=answer), **OBJECTS), logs()]) as emulator:
        room = emulator.durable_objects["ROOMS"].get("a")
        await room.visit()
        with pytest.raises(Exception, match="boom"):
            await room.fail()
        await room.fetch("http://room/")
        await emulator.settle()
        items = told(emulator)
        assert [item["event"] for item in items[:2]] == [
            {"rpcMethod": "visit"},
            {"rpcMethod": "fail"},
        ]
        assert items[2]["event"]["response"] == {"status": 202}
        assert items[3]["event"] == {"scheduledTime": "2026-01-01T00:00:05.000Z"}
        assert [item["outcome"] for item in items] == ["ok", "exception", "ok", "ok"]
        assert [[line["message"] for line in item["logs"]] for item in items] == [
            [["visited"]],
            [],
            [],
            [["rang"]],
        ]
        assert {item["executionModel"] for item in items} == {"durableObject"}
        assert {item["entrypoint"] for item in items} == {"Room"}
        assert len({item["durableObjectId"] for item in items}) == 1


async def test_frames_of_a_websocket_that_an_object_holds_are_events() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        return await self.env.ROOMS.getByName("a").fetch(request)

    async with Emulator([front(entrypoint(fetch=fetch), **OBJECTS), logs()]) as emulator:
        async with emulator.websocket("/") as socket:
            await socket.send("hello")
            await socket.close(4000, "bye")
        await emulator.settle()
        events = [item["event"].get("getWebSocketEvent") for item in told(emulator)]
        assert [event for event in events if event] == [
            {"webSocketEventType": "message"},
            {"webSocketEventType": "close", "code": 4000, "wasClean": True},
        ]


async def test_a_workflow_is_told_of_by_its_runs() -> None:
    class Flow(WorkflowEntrypoint):
        async def run(self, event: Any, step: Any) -> str:
            print("running")
            return "done"

    config = front(
        entrypoint(fetch=answer),
        workflows=[{"name": "flow", "binding": "FLOW", "class_name": Flow}],
    )
    async with Emulator([config, logs()]) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "done"
        (item,) = told(emulator)
        assert item["event"] == {"rpcMethod": "run"}
        assert (item["executionModel"], item["entrypoint"]) == ("workflow", "Flow")


# -- who is told -----------------------------------------------------------------------------------


async def test_each_consumer_has_an_isolate_and_objects_of_its_own() -> None:
    seen: list[Any] = []

    async def first(self: Any, events: Any, env: Any, ctx: Any) -> None:
        await asyncio.sleep(1)
        events[0].logs[0].message[0] = "changed"
        raise ValueError("nobody minds")

    async def second(self: Any, events: Any, env: Any, ctx: Any) -> None:
        await asyncio.sleep(2)
        seen.append(events[0].logs[0].message[0])

    async def fetch(self: Any, request: Any) -> Any:
        print("as it was")
        return Response("ok")

    config = front(
        entrypoint(fetch=fetch), tail_consumers=[{"service": "logs"}, {"service": "more"}]
    )
    workers = [config, logs(entrypoint(tail=first)), logs(entrypoint(tail=second), name="more")]
    async with Emulator(workers) as emulator:
        assert (await emulator.fetch("/")).text == "ok"
        assert emulator.now == START  # nobody waits for it
        await emulator.settle()
        assert emulator.now - START == timedelta(seconds=2)
        assert seen == ["as it was"]
        (finding,) = emulator.findings
        assert (finding.code, finding.worker) == ("handler_exception", "logs")
        assert finding.message == "tail logs: ValueError: nobody minds"


async def test_a_tail_worker_can_be_tailed_and_never_goes_round_in_a_circle() -> None:
    async def tail(self: Any, events: Any, env: Any, ctx: Any) -> None:
        (item,) = events
        print(item.scriptName, JSON.stringify(item.event))

    config = front(entrypoint(fetch=answer, tail=tail))
    other = logs(entrypoint(tail=tail), tail_consumers=[{"service": "front"}])
    async with Emulator([config, other]) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        lines = [(log.worker, log.text.partition(" ")[0]) for log in emulator.logs]
        assert lines == [("logs", "front"), ("front", "logs")]
        assert emulator.logs[1].text == 'logs {"consumedEvents":[{"scriptName":"front"}]}'


async def test_a_worker_may_tail_itself_once() -> None:
    """workerd, `server.c++`: a self-reference is made once."""

    async def tail(self: Any, events: Any, env: Any, ctx: Any) -> None:
        print("tail")

    main = entrypoint(fetch=answer, tail=tail)
    async with Emulator(front(main, tail_consumers=[{"service": "front"}])) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["tail"]


async def test_in_the_miniflare_profile_a_script_has_no_name() -> None:
    """workerd, `server.c++`: `scriptName` and `scriptVersion` are none, times are zero."""

    async def fetch(self: Any, request: Any) -> Any:
        await asyncio.sleep(2)
        return Response("ok")

    workers = [front(entrypoint(fetch=fetch)), logs()]
    async with Emulator(workers, profile="miniflare") as emulator:
        await emulator.fetch("/")
        (item,) = told(emulator)
        assert (item["scriptName"], item["wallTime"]) == (None, 0)
        assert "scriptVersion" not in item


async def test_the_older_name_of_the_handler_and_global_handlers(tmp_path: Any) -> None:
    async def trace(self: Any, events: Any, env: Any, ctx: Any) -> None:
        print("trace")

    source = tmp_path / "entry.py"
    source.write_text("async def on_trace(events, env, ctx):\n    print(events[0].scriptName)\n")
    config = front(
        entrypoint(fetch=answer), tail_consumers=[{"service": "logs"}, {"service": "old"}]
    )
    old = {"name": "old", "main": str(source), "compatibility_date": "2025-08-01"}
    async with Emulator([config, logs(entrypoint(trace=trace)), old]) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert sorted(log.text for log in emulator.logs) == ["front", "trace"]
        assert list(emulator.findings) == []


# -- what is wrong ---------------------------------------------------------------------------------


async def test_consumers_that_get_nothing_are_findings() -> None:
    config = front(
        entrypoint(fetch=answer), tail_consumers=[{"service": "logs"}, {"service": "gone"}]
    )
    async with Emulator([config, logs(entrypoint(fetch=answer))]) as emulator:
        found = [(finding.code, finding.message) for finding in emulator.findings]
        assert found == [
            (
                "missing_handler",
                "the Worker logs tails front but has no tail() handler; its handlers: fetch",
            ),
            (
                "missing_binding",
                "tail_consumers names the Worker gone, whose config was not given: nobody gets the "
                "events",
            ),
        ]
        await emulator.fetch("/")
        assert emulator.logs[0].text.startswith("Attempted to send events but we lack a handler")
        assert emulator.logs[1].text.endswith("Handler does not export a tail() function.")


async def test_a_handler_that_does_not_take_three_arguments_fails_as_in_production() -> None:
    """python-api.md 1.2: `tail` is called with `(events, None, None)`, strictly."""

    async def tail(self: Any, events: Any) -> None:
        pass

    workers = [front(entrypoint(fetch=answer)), logs(entrypoint(tail=tail))]
    async with Emulator(workers) as emulator:
        await emulator.fetch("/")
        codes = [finding.code for finding in emulator.findings]
        assert codes == ["wrong_arity", "handler_exception"]
        assert "tail(self, events, env, ctx)" in emulator.findings[0].message


async def test_a_consumer_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tail_consumers\[0\]\.service"):
        Emulator(front(entrypoint(fetch=answer), tail_consumers=[{"environment": "x"}]))


async def test_an_environment_is_part_of_the_consumers_name() -> None:
    consumers = [{"service": "logs", "environment": "staging"}]
    workers = [front(entrypoint(fetch=answer), tail_consumers=consumers), logs(name="logs-staging")]
    async with Emulator(workers) as emulator:
        await emulator.fetch("/")
        assert [log.worker for log in emulator.logs] == ["logs-staging"]


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["drop", "crash_before", "crash_after"])
async def test_a_delivery_is_a_fault_site(action: str) -> None:
    plan = f"tail.logs#1:{action}"
    async with Emulator([front(entrypoint(fetch=answer)), logs()], faults=plan) as emulator:
        assert (await emulator.fetch("/")).text == "ok"
        await emulator.settle()
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        assert len(told(emulator)) == (action == "crash_after")
        crashed = [event.subject for event in emulator.trace if event.kind == "crash"]
        assert crashed == ([] if action == "drop" else ["worker logs"])
        await emulator.fetch("/")
        assert len(told(emulator)) == 1 + (action == "crash_after")


async def test_an_event_that_a_power_cut_took_is_not_told() -> None:
    workers = [front(entrypoint(fetch=answer)), logs()]
    async with Emulator(workers, faults="request.GET./#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == []


async def test_without_consumers_nothing_is_kept() -> None:
    async with Emulator({"main": entrypoint(fetch=answer)}) as emulator:
        await emulator.fetch("/")
        assert [site.name for site in emulator.faults.sites] == ["request.GET./"]
        assert emulator._platform.worker(None).tailed is None


@pytest.mark.parametrize("plan", ["", "tail.logs#1:drop", "tail.logs#2:crash_before"])
async def test_two_runs_with_one_plan_are_the_same(plan: str) -> None:
    async def fetch(self: Any, request: Any) -> Any:
        print(js_random())
        await asyncio.sleep(1)
        return Response("ok")

    def js_random() -> float:
        from js import Math

        value: float = Math.random()
        return value

    async def run() -> str:
        workers = [front(entrypoint(fetch=fetch)), logs()]
        async with Emulator(workers, seed=7, faults=plan) as emulator:
            await asyncio.gather(*(emulator.fetch(f"/{number}") for number in range(3)))
            await emulator.settle()
            return emulator.trace.to_jsonl()

    first = await run()
    assert first == await run()
    assert first.count('"kind":"tail"') == (2 if "drop" in plan else 3)
