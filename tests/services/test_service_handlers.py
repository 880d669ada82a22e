"""`queue` and `scheduled` of a service binding (workerd, `api/http.h`: `Fetcher`)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import js
import pytest
from pyodide.ffi import to_js
from service_bench import FROZEN, callee, caller, codes, entrypoint, fired, kinds, told
from workers import WorkerEntrypoint

from emulator import Emulator, WorkerCrashed

pytestmark = pytest.mark.asyncio

FLAGS = {"compatibility_flags": ["service_binding_extra_handlers"]}
START = datetime(2026, 1, 1, tzinfo=UTC)
LOST = ["Error", "Network connection lost."]


def front(body: Any, **config: Any) -> dict[str, Any]:
    """The Worker that calls, and answers with what it saw."""
    return caller(body, **{**FLAGS, **config})


def message(**members: Any) -> dict[str, Any]:
    """A message for the `queue` handler of another Worker."""
    return {"id": "m1", "timestamp": START, "attempts": 1, "body": "x", **members}


# -- scheduled -------------------------------------------------------------------------------------


class Clockwork(WorkerEntrypoint):
    async def scheduled(self, controller: Any, env: Any, ctx: Any) -> None:
        print(repr(controller.cron), controller.scheduledTime, env, ctx)
        if controller.cron == "once":
            controller.noRetry()
        if controller.cron == "bad":
            raise ValueError("boom")


async def test_scheduled_runs_the_handler_and_tells_its_outcome() -> None:
    async def body(self: Any) -> Any:
        results = [
            await self.env.BACK.scheduled(scheduledTime=1000, cron="* * * * 30"),
            await self.env.BACK.scheduled({"cron": "once", "scheduledTime": START}),
            await self.env.BACK.scheduled(cron="bad"),
            await self.env.BACK.scheduled(),
        ]
        return [[one.outcome, one.noRetry] for one in results]

    Default = type("Default", (Clockwork,), {})
    async with Emulator([front(body), callee(Default)]) as emulator:
        answer = await emulator.fetch("/")
        assert answer.json() == [["ok", False], ["ok", True], ["exception", False], ["ok", False]]
        now = int(START.timestamp() * 1000)
        printed = [log.text for log in emulator.logs if log.level == "log"]
        assert printed == [
            "'* * * * 30' 1000 None None",
            f"'once' {now} None None",
            f"'bad' {now} None None",
            f"'' {now} None None",
        ]
        assert kinds(emulator) == [
            *("service_call", "log", "service_done"),
            *("service_call", "log", "service_done"),
            *("service_call", "log", "log", "service_error"),
            *("service_call", "log", "service_done"),
        ]
        assert codes(emulator) == []  # as of any scheduled run, a failure is an outcome
        (first, *_) = [event for event in emulator.trace if event.kind == "service_call"]
        assert first.subject == "service back scheduled"
        assert first.data == {"method": "scheduled", "by": "request GET /", "cron": "* * * * 30"}


async def test_scheduled_waits_for_background_work_whose_failure_is_the_outcome() -> None:
    async def later() -> None:
        await asyncio.sleep(60)
        raise ValueError("late")

    async def scheduled(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        self.ctx.waitUntil(later())

    async def body(self: Any) -> Any:
        return (await self.env.BACK.scheduled()).outcome

    async with Emulator([front(body), callee(entrypoint(scheduled=scheduled))]) as emulator:
        assert (await emulator.fetch("/")).json() == "exception"
        assert emulator.now - START == timedelta(seconds=60)
        assert codes(emulator) == ["background_error"]


async def test_a_worker_without_the_handler_is_an_outcome_too() -> None:
    async def body(self: Any) -> Any:
        scheduled = await self.env.BACK.scheduled()
        batch = await self.env.BACK.queue("jobs", [message()])
        return [scheduled.outcome, batch.outcome]

    async with Emulator([front(body), callee(entrypoint(fetch=lambda self: None))]) as emulator:
        assert (await emulator.fetch("/")).json() == ["exception", "exception"]
        texts = [log.text for log in emulator.logs]
        assert any("Handler does not export a scheduled() function" in text for text in texts)
        assert any("Handler does not export a queue() function." in text for text in texts)


async def test_without_the_flag_both_are_methods() -> None:
    """workerd, `http.h`: JSG_METHOD(queue) and JSG_METHOD(scheduled) are behind the flag."""

    class Default(WorkerEntrypoint):
        async def scheduled(self, *arguments: Any) -> str:
            return f"a method, called with {len(arguments)}"

    async def body(self: Any) -> Any:
        return [await self.env.BACK.scheduled("a"), await told(lambda: self.env.BACK.queue("a"))]

    async with Emulator([caller(body), callee(Default)]) as emulator:
        assert (await emulator.fetch("/")).json() == [
            "a method, called with 1",
            ["TypeError", "Method queue does not exist"],
        ]


async def test_a_named_entrypoint_has_handlers_and_props_of_its_own() -> None:
    class Night(WorkerEntrypoint):
        async def scheduled(self, controller: Any, env: Any, ctx: Any) -> None:
            print("night", self.ctx.props.shift)

        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            print("night", batch.queue, [one.body for one in batch.messages])

    class Default(WorkerEntrypoint):
        async def scheduled(self, controller: Any, env: Any, ctx: Any) -> None:
            print("day")

    async def body(self: Any) -> Any:
        await self.env.BACK.scheduled()
        await self.env.BACK.queue("jobs", [message()])
        return await told(lambda: self.env.BACK.fetch("https://back/"))

    services = [
        {"binding": "BACK", "service": "back", "entrypoint": "Night", "props": {"shift": 3}}
    ]
    async with Emulator([front(body, services=services), callee(Default, Night)]) as emulator:
        assert (await emulator.fetch("/")).json()[1] == "Method fetch does not exist"
        assert [log.text for log in emulator.logs] == ["night 3", "night jobs ['x']"]
        subjects = [event.subject for event in emulator.trace if event.kind == "service_call"]
        assert subjects[:2] == ["service back.Night scheduled", "service back.Night queue"]


async def test_an_older_date_converts_arguments_and_results_as_for_methods() -> None:
    """The frozen SDK wraps a service's stub; what is behind it are raw proxies (python-api 1.4)."""
    seen: list[Any] = []

    async def body(self: Any) -> Any:
        seen.append(await self.env.BACK.scheduled(cron="* * * * *"))
        seen.append(await told(lambda: self.env.BACK.queue("jobs", [message(timestamp=1000)])))
        raw = self.env._env.BACK
        sent = to_js([message(timestamp=1000)], dict_converter=js.Object.fromEntries)
        result = await raw.queue("jobs", sent)
        seen.append((type(result).__name__, result.outcome, result.explicitAcks.to_py()))
        result = await raw.scheduled(cron="* * * * *")
        seen.append((type(result).__name__, result.outcome, result.noRetry))
        return "ok"

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        batch.messages[0].ack()

    async def scheduled(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        pass

    older = {"compatibility_date": FROZEN}
    back = callee(entrypoint(scheduled=scheduled, queue=queue), **older)
    async with Emulator([front(body, **older), back]) as emulator:
        assert (await emulator.fetch("/")).json() == "ok"
    assert seen == [
        {"outcome": "ok", "noRetry": False},
        ["TypeError", NOT_A_DATE],  # a dict in a list arrives as a Map
        ("JsProxy", "ok", ["m1"]),
        ("JsProxy", "ok", False),
    ]


async def test_a_worker_calls_its_own_handlers_and_so_does_a_test() -> None:
    async def scheduled(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        print(controller.cron)

    config = {
        "main": entrypoint(scheduled=scheduled),
        "name": "back",
        "services": [{"binding": "SELF", "service": "back"}],
        **FLAGS,
    }
    async with Emulator(config) as emulator:
        assert (await emulator.env.SELF.scheduled(cron="0 0 * * *")).outcome == "ok"
        assert [log.text for log in emulator.logs] == ["0 0 * * *"]
        assert [site.name for site in emulator.faults.sites] == []


async def test_a_run_that_takes_too_long_says_so() -> None:
    async def scheduled(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        await asyncio.sleep(3600)

    async def body(self: Any) -> Any:
        return (await self.env.BACK.scheduled()).outcome

    async with Emulator([front(body), callee(entrypoint(scheduled=scheduled))]) as emulator:
        assert (await emulator.fetch("/")).json() == "exceededWallTime"
        assert emulator.now - START == timedelta(minutes=15)


# -- queue -----------------------------------------------------------------------------------------


async def test_queue_hands_over_messages_and_tells_what_became_of_them() -> None:
    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        for one in batch.messages:
            body = bytes(one.body) if isinstance(one.body, memoryview) else one.body
            print(one.id, one.timestamp.isoformat(), body, one.attempts)
        print(batch.queue, batch.metadata.metrics.backlogCount)
        first, second, _ = batch.messages
        first.ack()
        second.retry(delaySeconds=30)

    async def body(self: Any) -> Any:
        result = await self.env.BACK.queue(
            "anything",
            [
                message(body={"a": [1]}),
                message(id="m2", body=b"\x01", attempts=3),
                message(id="m3", timestamp=1000, body=None),
            ],
        )
        assert set(result) == {
            *("outcome", "ackAll", "retryBatch", "explicitAcks", "retryMessages"),
        }
        return result

    async with Emulator([front(body), callee(entrypoint(queue=queue))]) as emulator:
        assert (await emulator.fetch("/")).json() == {
            "outcome": "ok",
            "ackAll": False,
            "retryBatch": {"retry": False},
            "explicitAcks": ["m1"],
            "retryMessages": [{"msgId": "m2", "delaySeconds": 30}],
        }
        assert [log.text for log in emulator.logs] == [
            "m1 2026-01-01T00:00:00 {'a': [1]} 1",
            "m2 2026-01-01T00:00:00 b'\\x01' 3",
            "m3 1970-01-01T00:00:01 None 1",
            "anything 0",
        ]
        (call,) = [event for event in emulator.trace if event.kind == "service_call"]
        assert (call.data["queue"], call.data["messages"]) == ("anything", 3)
        assert list(emulator.queues) == []  # there need be no such queue


async def test_a_batch_that_fails_keeps_its_acks_and_is_delivered_once() -> None:
    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        batch.messages[0].ack()
        batch.retryAll(delaySeconds=5)
        raise ValueError("boom")

    async def body(self: Any) -> Any:
        return await self.env.BACK.queue("jobs", [message()])

    async with Emulator([front(body), callee(entrypoint(queue=queue))]) as emulator:
        assert (await emulator.fetch("/")).json() == {
            "outcome": "exception",
            "ackAll": False,
            "retryBatch": {"retry": True, "delaySeconds": 5},
            "explicitAcks": ["m1"],
            "retryMessages": [],
        }
        await emulator.settle()
        assert kinds(emulator).count("service_call") == 1


@pytest.mark.parametrize("flag", [False, True])
async def test_the_result_of_queue_waits_for_background_work_unless_a_flag_says_no(
    flag: bool,
) -> None:
    """queues.md 2.11: `queue_consumer_no_wait_for_wait_until`."""

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        self.ctx.waitUntil(asyncio.sleep(20))

    async def body(self: Any) -> Any:
        return (await self.env.BACK.queue("jobs", [message()])).outcome

    flags = {"compatibility_flags": ["queue_consumer_no_wait_for_wait_until"]} if flag else {}
    async with Emulator([front(body), callee(entrypoint(queue=queue), **flags)]) as emulator:
        assert (await emulator.fetch("/")).json() == "ok"
        assert emulator.now - START == timedelta(seconds=0 if flag else 20)


async def test_serialized_bodies_are_what_another_message_was_made_of() -> None:
    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        print([one.body for one in batch.messages])

    async def body(self: Any) -> Any:
        good = {"serializedBody": bytes.fromhex("ff0f220178")}
        sent = {key: value for key, value in message().items() if key != "body"}
        first = await self.env.BACK.queue("jobs", [{**sent, **good}])
        second = await self.env.BACK.queue("jobs", [{**sent, "serializedBody": b"nonsense"}])
        return [first.outcome, second.outcome]

    async with Emulator([front(body), callee(entrypoint(queue=queue))]) as emulator:
        assert (await emulator.fetch("/")).json() == ["ok", "exception"]
        texts = [log.text.splitlines()[-1] for log in emulator.logs]
        assert texts == ["['x']", "DataCloneError: Unable to deserialize cloned data."]


NOT_A_DATE = (
    "Incorrect type for the 'timestamp' field on 'ServiceBindingQueueMessage': the provided value "
    "is not of type 'date'."
)
ONE_BODY = "Expected one of body or serializedBody for each message"
WRONG_BATCHES = {
    "no messages": (
        (),
        "Failed to execute 'queue' on 'Fetcher': parameter 2 is not of type 'Array'.",
    ),
    "a text": ("ab", "Failed to execute 'queue' on 'Fetcher': parameter 2 is not of type 'Array'."),
    "no object": (
        [1],
        "Incorrect type for array element 0: the provided value is not of type "
        "'ServiceBindingQueueMessage'.",
    ),
    "a time as text": ([message(timestamp="now")], NOT_A_DATE),
    "no time": ([{"id": "m1", "attempts": 1, "body": 1}], NOT_A_DATE),
    "a time that is far away": (
        [message(timestamp=1e15)],
        "This API doesn't support dates after 2189.",
    ),
    "no body": ([{"id": "m1", "attempts": 1, "timestamp": 0}], ONE_BODY),
    "two bodies": ([message(serializedBody=b"")], ONE_BODY),
    "a text for bytes": (
        [{"id": "m1", "attempts": 1, "timestamp": 0, "serializedBody": "x"}],
        "Incorrect type for the 'serializedBody' field on 'ServiceBindingQueueMessage': the "
        "provided value is not of type 'ArrayBuffer or ArrayBufferView'.",
    ),
    "no attempts": (
        [{"id": "m1", "timestamp": 0, "body": 1}],
        "The value cannot be converted because it is not an integer.",
    ),
    "attempts below zero": (
        [message(attempts=-1)],
        "The value cannot be converted because it is negative and this API expects a positive "
        "number.",
    ),
    "too many attempts": (
        [message(attempts=65_536)],
        "Value out of range. Must be less than or equal to 65535.",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_BATCHES)
async def test_a_wrong_batch_is_the_runtimes_error(wrong: str) -> None:
    messages, text = WRONG_BATCHES[wrong]

    async def body(self: Any) -> Any:
        given = () if messages == () else (messages,)
        return await told(lambda: self.env.BACK.queue("jobs", *given))

    async with Emulator([front(body), callee(entrypoint(queue=lambda *_: None))]) as emulator:
        assert (await emulator.fetch("/")).json() == ["TypeError", text]
        assert kinds(emulator) == []


async def test_wrong_options_of_scheduled_are_the_runtimes_error() -> None:
    async def body(self: Any) -> Any:
        call = self.env.BACK.scheduled
        return [
            await told(lambda: call("now")),
            await told(lambda: call(scheduledTime="now")),
            await told(lambda: call(scheduledTime=float("nan"))),
        ]

    async with Emulator([front(body), callee(entrypoint(scheduled=lambda *_: None))]) as emulator:
        assert (await emulator.fetch("/")).json() == [
            [
                "TypeError",
                "Failed to execute 'scheduled' on 'Fetcher': parameter 1 is not of type "
                "'ScheduledOptions'.",
            ],
            [
                "TypeError",
                "Incorrect type for the 'scheduledTime' field on 'ScheduledOptions': the provided "
                "value is not of type 'date'.",
            ],
            ["TypeError", "The value cannot be converted because it is not a valid Date."],
        ]


async def test_a_body_that_cannot_be_cloned_is_refused() -> None:
    async def body(self: Any) -> Any:
        return await told(lambda: self.env.BACK.queue("jobs", [message(body=print)]))

    async with Emulator([front(body), callee(entrypoint(queue=lambda *_: None))]) as emulator:
        assert (await emulator.fetch("/")).json()[0] == "DataCloneError"


# -- faults ----------------------------------------------------------------------------------------

CALLS = {
    "scheduled": lambda env: env.BACK.scheduled(),
    "queue": lambda env: env.BACK.queue("jobs", [message()]),
}


class Kept(WorkerEntrypoint):
    async def scheduled(self, controller: Any, env: Any, ctx: Any) -> None:
        await self.env.KV.put("a", "done")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        await self.env.KV.put("a", "done")


KV = {"kv_namespaces": [{"binding": "KV", "id": "shared"}]}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_a_call_of_a_handler_is_a_fault_site(method: str, action: str) -> None:
    async def body(self: Any) -> Any:
        return await told(lambda: CALLS[method](self.env))

    plan = f"service.BACK.{method}#1:{action}"
    workers = [front(body, **KV), callee(type("Default", (Kept,), {}), **KV)]
    async with Emulator(workers, faults=plan) as emulator:
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
        else:
            assert (await emulator.fetch("/")).json() == LOST
        assert fired(emulator) == [plan]
        is_done = action in ("crash_after", "lose_reply")
        assert await emulator.env.KV.get("a") == ("done" if is_done else None)
        assert kinds(emulator) == (["service_call", "service_done"] if is_done else [])


@pytest.mark.parametrize("method", CALLS)
async def test_a_called_worker_that_loses_its_power_is_a_lost_connection(method: str) -> None:
    async def body(self: Any) -> Any:
        return await told(lambda: CALLS[method](self.env))

    workers = [front(body), callee(type("Default", (Kept,), {}), **KV)]
    async with Emulator(workers, faults="kv.KV.put#1:crash_before") as emulator:
        assert (await emulator.fetch("/")).json() == LOST
        assert fired(emulator) == ["kv.KV.put#1:crash_before"]


async def test_a_call_that_nobody_awaits_is_dropped() -> None:
    async def body(self: Any) -> Any:
        self.env.BACK.scheduled()
        return "ok"

    async with Emulator([front(body), callee(type("Default", (Kept,), {}), **KV)]) as emulator:
        assert (await emulator.fetch("/")).json() == "ok"
        assert kinds(emulator) == []
        assert codes(emulator) == ["never_awaited"]


async def test_calls_pass_through_32_workers_at_most() -> None:
    async def scheduled(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        seen.append(await told(self.env.SELF.scheduled))

    seen: list[Any] = []
    config = {
        "main": entrypoint(scheduled=scheduled),
        "name": "back",
        "services": [{"binding": "SELF", "service": "back"}],
        **FLAGS,
    }
    async with Emulator(config) as emulator:
        await emulator.scheduled()
        assert len(seen) == 32
        assert seen[0][1].startswith("Subrequest depth limit exceeded.")
