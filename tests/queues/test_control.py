"""`emulator.queues["name"]`: queues in a test's hand."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyodide.ffi import JsException
from workbench import START, batches, bodies, clock, codes, deliveries, worker

from emulator import Emulator, NotSettled

pytestmark = pytest.mark.asyncio


def accept(batch: Any, worker: Any) -> None:
    """A consumer that returns."""


# -- names -----------------------------------------------------------------------------------------


async def test_an_unknown_queue_is_told_with_the_known_ones() -> None:
    consumer = {"dead_letter_queue": "graves"}
    async with Emulator(worker(consume=accept, consumer=consumer)) as emulator:
        assert list(emulator.queues) == ["q", "graves"]
        assert "nope" not in emulator.queues
        with pytest.raises(
            KeyError, match=r"no queue 'nope'; there are: q, graves|nope.*q, graves"
        ):
            emulator.queues["nope"]
        assert repr(emulator.queues["q"]) == "<Queue q: 0 waiting or delayed>"


# -- sending ---------------------------------------------------------------------------------------


async def test_a_test_sends_as_a_worker_would() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        queue = emulator.queues["q"]
        ids = [
            await queue.send({"a": None}),
            await queue.send("x", contentType="TEXT", delaySeconds=3),
            *await queue.send_batch([1, {"body": 2, "delaySeconds": 9}, {"no": "item"}]),
        ]
        assert [(item.id, item.body) for item in queue.backlog] == [
            (ids[0], {"a": None}),
            (ids[2], 1),
            (ids[4], {"no": "item"}),
            (ids[1], "x"),
            (ids[3], 2),
        ]
        assert [(item.due - START).total_seconds() for item in queue.backlog] == [0, 0, 0, 3, 9]
        assert {(item.attempts, item.timestamp) for item in queue.backlog} == {(0, START)}
        assert len(set(ids)) == 5


async def test_sends_of_a_test_are_no_fault_sites_but_their_messages_are() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        await emulator.queues["q"].send(1)
        assert [site.name for site in emulator.faults.sites] == ["message.q"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda q: q.send(5, contentType="text"), JsException, "requires a value of type string"),
        (lambda q: q.send("x", contentType="xml"), JsException, "Unsupported queue message"),
        (lambda q: q.send("x", delaySeconds=86_401), JsException, "86401 s"),
        (lambda q: q.send((1, 2)), TypeError, "cannot be sent over RPC"),
        (lambda q: q.send_batch([]), JsException, "requires at least one message"),
        (lambda q: q.send_batch(range(101)), JsException, "count of 101"),
        (
            lambda q: q.send_batch([{"body": "Hi", "subject": "Hello"}]),
            ValueError,
            "subject is none of a message's keys",
        ),
        (
            lambda q: q.send_batch([{"body": "x", "delay_seconds": 5}]),
            ValueError,
            "delay_seconds is none of a message's keys",
        ),
    ],
)
async def test_a_wrong_send_raises_and_stores_nothing(call: Any, error: Any, text: str) -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        with pytest.raises(error, match=text):
            await call(emulator.queues["q"])
        assert emulator.queues["q"].backlog == []


async def test_a_send_from_inside_the_simulation() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "first":
            await emulator.queues["q"].send("second")

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].send("first")
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == ["first", "second"]


async def test_the_binding_in_a_tests_hand() -> None:
    """`emulator.env`: no fault site, answers as a Worker sees them."""
    async with Emulator(worker(consume=accept)) as emulator:
        answer = await emulator.env.Q.send({"a": 1}, delaySeconds=5)
        assert answer["metadata"]["metrics"]["backlogCount"] == 0
        await emulator.env.Q.sendBatch([{"body": 2}])
        assert (await emulator.env.Q.metrics())["backlogCount"] == 1
        with pytest.raises(JsException, match="Message body cannot be undefined"):
            await emulator.env.Q.sendBatch([{}])
        assert [site.name for site in emulator.faults.sites] == ["message.q"] * 2


# -- bodies ----------------------------------------------------------------------------------------


async def test_bodies_are_plain_python_values() -> None:
    from js import Map

    at = datetime(2026, 5, 6, tzinfo=UTC)
    sent = {"n": 1.0, "at": at, "raw": b"ab", "set": {1}, "big": 2**60, "none": None}

    async def produce(worker: Any) -> None:
        await worker.env.Q.send(sent, contentType="v8")
        await worker.env.Q.send(Map.new([["k", 1]]), contentType="v8")
        await worker.env.Q.send(b"\x01", contentType="bytes")

    async with Emulator(worker(produce, accept)) as emulator:
        await emulator.fetch("/")
        found = bodies(emulator)
        assert found == [sent, {"k": 1}, b"\x01"]
        assert type(found[0]) is dict
        assert (type(found[0]["n"]), type(found[1]), type(found[2])) == (int, dict, bytes)
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == found


async def test_a_body_in_hand_is_nobody_elses() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        await emulator.queues["q"].send({"n": []})
        bodies(emulator)[0]["n"].append("changed")
        assert bodies(emulator) == [{"n": []}]


# -- what is in flight, delivered, counted ---------------------------------------------------------


async def test_what_a_consumer_has_in_hand() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(10)

    async with Emulator(worker(consume=consume)) as emulator:
        queue = emulator.queues["q"]
        await queue.send_batch(["a", "b"])
        await emulator.advance(6)
        await queue.send("c")
        assert [(item.body, item.attempts, item.due) for item in queue.in_flight] == [
            ("a", 1, None),
            ("b", 1, None),
        ]
        assert bodies(emulator) == ["c"]
        await emulator.settle()
        assert queue.in_flight == []
        assert queue.acked == 3


async def test_a_record_per_message_and_delivery() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(2)
        for message in batch.messages:
            if message.body == "bad":
                message.retry(delaySeconds=60)

    consumer = {"max_retries": 1, "dead_letter_queue": "d"}
    async with Emulator(worker(consume=consume, consumer=consumer)) as emulator:
        good, bad = await emulator.queues["q"].send_batch(["good", "bad"])
        await emulator.settle()
        queue = emulator.queues["q"]
        at = [START + timedelta(seconds=number) for number in range(80)]
        assert [
            (r.at, r.settled, r.id, r.body, r.attempt, r.batch, r.outcome, r.error)
            for r in queue.deliveries
        ] == [
            (at[5], at[7], good, "good", 1, 1, "ack", None),
            (at[5], at[7], bad, "bad", 1, 1, "retry", None),
            (at[72], at[74], bad, "bad", 2, 2, "dead_letter", None),
        ]
        assert (queue.acked, queue.dead_lettered, queue.dropped, queue.expired) == (1, 1, 0, 0)


async def test_the_settings_of_a_queue() -> None:
    consumer = {
        "max_batch_size": 7,
        "max_batch_timeout": 2,
        "max_retries": 5,
        "retry_delay": 30,
        "dead_letter_queue": "d",
        "max_concurrency": 3,
    }
    settings = {"q": {"delivery_delay": 9, "message_retention_period": 60, "delivery_paused": True}}
    config = worker(consume=accept, consumer=consumer)
    async with Emulator(config, queue_settings=settings) as emulator:
        assert emulator.queues["q"].settings == {**settings["q"], **consumer}
        assert emulator.queues["d"].settings == {
            "delivery_delay": 0,
            "message_retention_period": 345_600,
            "delivery_paused": False,
        }
        emulator.queues["q"].resume()
        assert emulator.queues["q"].settings["delivery_paused"] is False


# -- pause, resume, purge (6) ----------------------------------------------------------------------


async def test_a_paused_queue_takes_and_keeps() -> None:
    """6.1; (a) 47"""
    async with Emulator(worker(consume=accept)) as emulator:
        queue = emulator.queues["q"]
        queue.pause()
        queue.pause()
        await queue.send(1)
        await emulator.advance(3600)
        await emulator.settle()
        assert (clock(emulator), bodies(emulator)) == (3600, [1])
        queue.resume()
        queue.resume()
        await emulator.settle()
        # Its batch time-out is long over.
        assert deliveries(emulator) == [(3600, 1, 1, "ack")]


async def test_a_queue_that_is_paused_from_the_start() -> None:
    settings = {"q": {"delivery_paused": True}}
    async with Emulator(worker(consume=accept), queue_settings=settings) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.settle()
        assert bodies(emulator) == [1]
        emulator.queues["q"].resume()
        await emulator.settle()
        assert bodies(emulator) == []


async def test_pausing_lets_a_batch_in_flight_finish() -> None:
    """6.1"""

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(10)
        batch.retryAll()

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.advance(6)
        emulator.queues["q"].pause()
        await emulator.settle()
        assert deliveries(emulator) == [(5, 1, 1, "retry")]
        assert bodies(emulator) == [1]


async def test_purging_deletes_what_waits_and_what_is_delayed() -> None:
    """6.2; (a) 48"""

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(10)

    async with Emulator(worker(consume=consume)) as emulator:
        queue = emulator.queues["q"]
        await queue.send("in flight")
        await emulator.advance(5)
        await queue.send_batch([1, 2, 3, {"body": 4, "delaySeconds": 60}, 5])
        queue.purge()
        assert bodies(emulator) == []
        await emulator.settle()
        assert deliveries(emulator) == [(5, "in flight", 1, "ack")]
        assert clock(emulator) == 15
        assert (queue.acked, queue.expired, queue.dropped) == (1, 0, 0)


async def test_pausing_and_purging_are_in_the_trace() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        queue = emulator.queues["q"]
        await queue.send(1)
        queue.pause()
        queue.purge()
        queue.resume()
        kinds = [event.kind for event in emulator.trace]
        assert kinds == ["send", "pause", "purge", "resume"]


async def test_a_pause_while_a_call_lets_time_pass() -> None:
    """A plain function, that may be called while the simulation runs elsewhere."""

    async with Emulator(worker(consume=accept)) as emulator:
        await emulator.queues["q"].send(1)
        settling = asyncio.create_task(emulator.settle())
        emulator.queues["q"].pause()
        await settling
        assert (bodies(emulator), clock(emulator)) == ([1], 0)


async def test_what_is_pending_names_the_queue() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        await emulator.queues["q"].send(1, delaySeconds=3600)
        with pytest.raises(NotSettled, match="queue q: 1 waiting or delayed, 0 in flight"):
            await emulator.settle(limit=60)


# -- dispatch --------------------------------------------------------------------------------------

NOTHING: dict[str, Any] = {
    "outcome": "ok",
    "ack_all": False,
    "retry_batch": {"retry": False},
    "explicit_acks": [],
    "retry_messages": [],
}


def row(**changes: Any) -> dict[str, Any]:
    return {**NOTHING, **changes}


RETRIED = {"retry": True}
AFTER_7 = {"retry": True, "delaySeconds": 7}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", NOTHING),
        ("1 / 0", row(outcome="exception")),
        ("m.ack()", row(explicit_acks=["A"])),
        ("m.ack(); 1 / 0", row(explicit_acks=["A"], outcome="exception")),
        ("m.retry()", row(retry_messages=[{"msgId": "A"}])),
        ("m.retry(delaySeconds=5)", row(retry_messages=[{"msgId": "A", "delaySeconds": 5}])),
        ("m.retry(delaySeconds=0)", row(retry_messages=[{"msgId": "A", "delaySeconds": 0}])),
        ("m.ack(); m.retry()", row(explicit_acks=["A"])),
        ("m.retry(); m.ack()", row(retry_messages=[{"msgId": "A"}])),
        ("batch.ackAll()", row(ack_all=True)),
        ("batch.ackAll(); 1 / 0", row(ack_all=True, outcome="exception")),
        ("batch.ackAll(); m.retry()", row(ack_all=True)),
        ("m.retry(); batch.ackAll()", row(ack_all=True, retry_messages=[{"msgId": "A"}])),
        ("batch.retryAll()", row(retry_batch=RETRIED)),
        ("batch.retryAll(delaySeconds=7)", row(retry_batch=AFTER_7)),
        ("batch.retryAll(delaySeconds=7); 1 / 0", row(retry_batch=AFTER_7, outcome="exception")),
        ("batch.retryAll(); m.ack()", row(retry_batch=RETRIED)),
        ("m.ack(); batch.retryAll()", row(retry_batch=RETRIED, explicit_acks=["A"])),
        (
            "batch.retryAll(delaySeconds=7); m.retry(delaySeconds=2)",
            row(retry_batch=AFTER_7, retry_messages=[{"msgId": "A", "delaySeconds": 2}]),
        ),
        ("batch.ackAll(); batch.retryAll()", row(ack_all=True)),
        ("batch.retryAll(); batch.ackAll()", row(retry_batch=RETRIED)),
        ("wait_until(reject())", row(outcome="exception")),
        ("wait_until(late())", row(retry_messages=[{"msgId": "A"}])),
    ],
)
async def test_dispatch_gives_what_the_runtime_reports(code: str, expected: Any) -> None:
    """Recording queue_direct_dispatch_results"""

    async def reject() -> None:
        raise ValueError("rejected")

    def consume(batch: Any, worker: Any) -> None:
        async def late() -> None:
            await asyncio.sleep(0.05)
            batch.messages[0].retry()

        names = {"wait_until": worker.ctx.waitUntil, "reject": reject, "late": late}
        exec(code, {"batch": batch, "m": batch.messages[0], **names})

    async with Emulator(worker(consume=consume)) as emulator:
        result = await emulator.queues["q"].dispatch(
            [{"id": "A", "body": 1}, {"id": "B", "body": 2}]
        )
        found = {name: getattr(result, name) for name in NOTHING}
        assert found == expected
        assert (result.error is None) == (expected["outcome"] == "ok")
        # Nothing was queued.
        assert (emulator.queues["q"].deliveries, bodies(emulator)) == ([], [])


async def test_what_dispatch_hands_over() -> None:
    seen = []
    at = datetime(2025, 3, 4, tzinfo=UTC)

    def consume(batch: Any, worker: Any) -> None:
        seen.extend(
            (message.id, message.body, message.attempts, message.timestamp)
            for message in batch.messages
        )
        assert dict(batch.metadata.metrics) == {
            "backlogCount": 0,
            "backlogBytes": 0,
            "oldestMessageTimestamp": None,
        }

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].dispatch(
            [
                {"a": 1},
                {"body": at, "contentType": "json"},
                {"body": at},
                {"body": 3, "id": "x", "attempts": 4, "timestamp": at},
            ]
        )
    now, naive = datetime(2026, 1, 1), at.replace(tzinfo=None)
    assert [found[1:] for found in seen] == [
        ({"a": 1}, 1, now),
        ("2025-03-04T00:00:00.000Z", 1, now),
        (naive, 1, now),
        (3, 4, naive),
    ]
    assert seen[3][0] == "x"
    assert len({found[0] for found in seen}) == 4


async def test_dispatch_works_on_a_paused_queue_and_waits_for_background_work() -> None:
    done = []

    async def later() -> None:
        await asyncio.sleep(20)
        done.append("later")

    def consume(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(later())

    async with Emulator(worker(consume=consume)) as emulator:
        emulator.queues["q"].pause()
        result = await emulator.queues["q"].dispatch(["x"])
        assert (result.outcome, done, clock(emulator)) == ("ok", ["later"], 20)


async def test_dispatch_without_a_handler() -> None:
    """2.12"""
    async with Emulator(worker(consumer={})) as emulator:
        result = await emulator.queues["q"].dispatch(["x"])
        assert result.outcome == "exception"
        assert str(result.error) == "Error: Handler does not export a queue() function."


async def test_dispatch_to_a_queue_without_a_consumer() -> None:
    async with Emulator(worker(lambda _: None)) as emulator:
        with pytest.raises(LookupError, match="queue 'q' has no consumer to dispatch to"):
            await emulator.queues["q"].dispatch(["x"])


async def test_dispatch_that_takes_too_long() -> None:
    """2.13"""

    async def consume(batch: Any, worker: Any) -> None:
        batch.ackAll()
        await asyncio.sleep(10_000)

    async with Emulator(worker(consume=consume)) as emulator:
        result = await emulator.queues["q"].dispatch(["x"])
        assert (result.outcome, result.ack_all) == ("exceededWallTime", False)
        assert clock(emulator) == 900


async def test_dispatch_that_is_cut_off() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        await worker.env.Q.send("x")

    config = worker(consume=consume)
    async with Emulator(config, faults="send.q#1:crash_after") as emulator:
        result = await emulator.queues["q"].dispatch(["x"])
        assert (result.outcome, result.explicit_acks) == ("canceled", [])
        assert bodies(emulator) == ["x"]


async def test_a_warning_in_dispatch() -> None:
    def consume(batch: Any, worker: Any) -> None:
        batch.ackAll()
        batch.retryAll()

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].dispatch(["x"])
        assert codes(emulator) == ["ignored_ack"]


async def test_dispatch_with_the_flag_reports_what_was_recorded_at_the_return() -> None:
    """2.11"""

    async def late(batch: Any) -> None:
        await asyncio.sleep(1)
        batch.retryAll()

    def consume(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(late(batch))

    flags = ["python_workers", "queue_consumer_no_wait_for_wait_until"]
    async with Emulator(worker(consume=consume, compatibility_flags=flags)) as emulator:
        result = await emulator.queues["q"].dispatch(["x"])
        assert (result.outcome, result.retry_batch) == ("ok", {"retry": False})
        assert clock(emulator) == 1


async def test_dispatch_of_a_wrong_item() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        with pytest.raises(ValueError, match="delaySeconds is none of a message's keys"):
            await emulator.queues["q"].dispatch([{"body": 1, "delaySeconds": 5}])
        for timestamp in (datetime(2026, 1, 1), 1_767_225_600_000):
            with pytest.raises(ValueError, match="aware"):
                await emulator.queues["q"].dispatch([{"body": 1, "timestamp": timestamp}])
        for attempts in (0, True, "2"):
            with pytest.raises(ValueError, match=r"attempts is .* give 1"):
                await emulator.queues["q"].dispatch([{"body": 1, "attempts": attempts}])


@pytest.mark.parametrize("items", ["abc", b"abc", {"body": 1}, 5, None])
async def test_items_that_are_no_list_are_told_at_once(items: Any) -> None:
    """Else a text would be sent letter by letter, and a mapping key by key."""
    async with Emulator(worker(consume=accept)) as emulator:
        queue = emulator.queues["q"]
        for call in (queue.send_batch, queue.dispatch):
            with pytest.raises(TypeError, match="takes a list of bodies or messages, not"):
                await call(items)
        assert queue.backlog == []


# -- the rest of an emulator -----------------------------------------------------------------------


async def test_reset_forgets_messages_and_deliveries() -> None:
    async with Emulator(worker(consume=accept)) as emulator:
        queue = emulator.queues["q"]
        first = await queue.send(1)
        await emulator.settle()
        await queue.send(2, delaySeconds=60)
        queue.pause()
        await emulator.reset()
        assert (queue.backlog, queue.deliveries, queue.acked) == ([], [], 0)
        assert queue.settings["delivery_paused"] is False
        assert clock(emulator) == 0
        assert await queue.send(1) == first
        await emulator.settle()
        assert batches(emulator) == [(5, [1])]
