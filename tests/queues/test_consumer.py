"""The `queue` handler of Worker code: batches, timers, acks, retries, failures.

Numbers such as 2.9 are rules of the reference on Cloudflare Queues, `(a) 12` its scenarios.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException, to_js
from workbench import (
    PROFILES,
    START,
    batches,
    bodies,
    clock,
    codes,
    deliveries,
    hours,
    worker,
)
from workers import WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio

AT_ONCE = {"max_batch_timeout": 0}


def accept(batch: Any, worker: Any) -> None:
    """A consumer that returns, which acknowledges everything."""


def refuse(batch: Any, worker: Any) -> None:
    raise ValueError("refused")


async def consumed(consume: Callable[..., Any], *sent: Any, **arguments: Any) -> Emulator:
    """An emulator, closed, in which a consumer got these bodies as one batch."""
    consumer = {"max_batch_size": max(len(sent), 1), **arguments.pop("consumer", {})}
    options = {name: arguments.pop(name) for name in ("profile", "faults") if name in arguments}
    config = worker(consume=consume, consumer=consumer, **arguments)
    async with Emulator(config, **options) as emulator:
        await emulator.queues["q"].send_batch(list(sent))
        await emulator.settle()
    return emulator


async def test_a_batch_size_of_zero_counts_as_one() -> None:
    """3.1: only the local runtime accepts it (recording queue_config_errors)."""
    sizes: list[int] = []
    config = worker(
        consume=lambda batch, worker: sizes.append(len(batch.messages)),
        consumer={"max_batch_size": 0, "max_batch_timeout": 5},
    )
    async with Emulator(config, profile="miniflare") as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.advance(0)

    assert sizes == [1, 1]


# -- what a consumer sees --------------------------------------------------------------------------


async def test_a_batch_and_its_messages() -> None:
    """2.1 to 2.4; python-api.md 1.6"""
    seen: dict[str, Any] = {}

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        (message,) = batch.messages
        seen.update(
            arguments=(env, ctx),
            queue=batch.queue,
            metrics=dict(batch.metadata.metrics),
            id=message.id,
            timestamp=message.timestamp,
            attempts=(message.attempts, message["attempts"]),
            body=(message.body, message.body.a),
            returned=(message.ack(), message.retry(), batch.ackAll(), batch.retryAll()),
            same=batch.messages is batch.messages,
        )

    main = type("Default", (WorkerEntrypoint,), {"queue": queue})
    config = {"main": main, "queues": {"consumers": [{"queue": "q"}]}}
    async with Emulator(config) as emulator:
        id = await emulator.queues["q"].send({"a": 1})
        await emulator.settle()
    assert len(id) == 32
    assert set(id) <= set("0123456789abcdef")
    assert seen == {
        "arguments": (None, None),
        "queue": "q",
        "metrics": {"backlogBytes": 0, "backlogCount": 0, "oldestMessageTimestamp": None},
        "id": id,
        "timestamp": datetime(2026, 1, 1),
        "attempts": (1, 1),
        "body": ({"a": 1}, 1),
        "returned": (None, None, None, None),
        "same": True,
    }


async def test_the_metrics_are_of_what_was_left_behind() -> None:
    """2.2; (a) 43"""
    seen = []

    def consume(batch: Any, worker: Any) -> None:
        found = batch.metadata.metrics
        seen.append((found["backlogCount"], found.get("oldestMessageTimestamp")))

    config = worker(consume=consume, consumer={"max_batch_size": 5})
    async with Emulator(config) as emulator:
        emulator.queues["q"].pause()
        for second in range(8):
            await emulator.queues["q"].send(second)
            await emulator.advance(1)
        emulator.queues["q"].resume()
        await emulator.settle()
    assert seen == [(3, datetime(2026, 1, 1, 0, 0, 5)), (0, None)]


@pytest.mark.parametrize("profile", PROFILES)
async def test_bytes_arrive_as_the_sdk_gives_them(profile: str) -> None:
    """2.6; api.md 8"""
    seen: list[Any] = []

    def consume(batch: Any, worker: Any) -> None:
        seen.append(batch.messages[0].body)

    async with Emulator(worker(consume=consume), profile=profile) as emulator:
        await emulator.queues["q"].send(b"\x00\xff", contentType="bytes")
        await emulator.settle()
    assert isinstance(seen[0], memoryview)
    assert bytes(seen[0]) == b"\x00\xff"


@pytest.mark.parametrize(
    ("profile", "kind"), [("production", "Uint8Array"), ("miniflare", "ArrayBuffer")]
)
async def test_bytes_as_old_dates_see_them(profile: str, kind: str) -> None:
    """2.6; api.md 8"""
    seen = []

    def consume(batch: Any, worker: Any) -> None:
        seen.append(batch.messages[0].body.constructor.name)

    config = worker(
        consume=consume,
        compatibility_date="2026-01-01",
        compatibility_flags=["python_workers"],
    )
    async with Emulator(config, profile=profile) as emulator:
        await emulator.queues["q"].send(b"\x00\xff", contentType="bytes")
        await emulator.settle()
    assert seen == [kind]


async def test_old_dates_see_the_runtimes_own_objects() -> None:
    """2.3; recording queue_batch_object_shape"""
    seen: dict[str, Any] = {}

    def consume(batch: Any, worker: Any) -> None:
        from js import Object

        message = batch.messages[0]
        seen["keys"] = [list(Object.keys(batch)), list(Object.keys(message))]
        seen["classes"] = [batch.constructor.name, message.constructor.name]
        seen["body"] = message.body.to_py()
        seen["timestamp"] = message.timestamp.getTime()
        with pytest.raises(JsException) as info:
            message.body = 5
        seen["error"] = str(info.value)
        message.retry(to_js({"delaySeconds": 9}, dict_converter=Object.fromEntries))

    config = worker(
        consume=consume,
        compatibility_date="2026-01-01",
        compatibility_flags=["python_workers"],
        consumer={**AT_ONCE, "max_retries": 1},
    )
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send({"a": [1]})
        await emulator.settle()
        assert deliveries(emulator) == [(0, {"a": [1]}, 1, "retry"), (9, {"a": [1]}, 2, "dropped")]
    assert seen == {
        "keys": [["metadata", "queue", "messages"], ["id", "timestamp", "body", "attempts"]],
        "classes": ["QueueController", "QueueMessage"],
        "body": {"a": [1]},
        "timestamp": 1767225600000,
        "error": "TypeError: Cannot assign to read only property 'body' of object "
        "'#<QueueMessage>'",
    }


async def test_the_body_is_fresh_in_each_delivery() -> None:
    """Recording queue_body_mutation_between_attempts"""
    seen = []

    def consume(batch: Any, worker: Any) -> None:
        message = batch.messages[0]
        seen.append((dict(message.body), message.attempts, message.id, message.timestamp))
        message.body["n"] += 1
        message.retry()

    await consumed(consume, {"n": 1}, consumer={"max_retries": 2})
    assert [(body, attempts) for body, attempts, *_ in seen] == [({"n": 1}, n) for n in (1, 2, 3)]
    assert len({(id, at) for *_, id, at in seen}) == 1


# -- timers (3.2, 3.3) -----------------------------------------------------------------------------


async def test_nothing_sent_nothing_called() -> None:
    """2.7; (a) 7"""
    called: list[Any] = []
    async with Emulator(worker(consume=lambda batch, _: called.append(batch))) as emulator:
        await emulator.advance(3600)
    assert called == []


@pytest.mark.parametrize(
    ("profile", "timeout", "size"), [("production", 5, 10), ("miniflare", 1, 5)]
)
async def test_the_defaults_of_a_consumer(profile: str, timeout: int, size: int) -> None:
    """3.1; (a) 1, 2; O-04"""
    async with Emulator(worker(consume=accept), profile=profile) as emulator:
        queue = emulator.queues["q"]
        await queue.send(1)
        await emulator.advance(timeout - 0.000001)
        assert deliveries(emulator) == []
        await emulator.advance(0.000001)
        assert deliveries(emulator) == [(timeout, 1, 1, "ack")]
        for number in range(size):
            await queue.send(number)
        assert batches(emulator)[1:] == [(timeout, list(range(size)))]
        assert queue.settings["max_retries"] == (3 if profile == "production" else 2)


async def test_a_full_batch_goes_at_once_and_the_rest_waits() -> None:
    """3.3; (a) 3, 4"""
    config = worker(consume=accept, consumer={"max_batch_size": 5, "max_batch_timeout": 1})
    async with Emulator(config) as emulator:
        queue = emulator.queues["q"]
        for number in range(7):
            await queue.send(number)
        await emulator.advance(0.999)
        assert batches(emulator) == [(0, [0, 1, 2, 3, 4])]
        await emulator.advance(0.001)
        assert batches(emulator)[1:] == [(1, [5, 6])]
        for number in range(6):
            await queue.send(number)
        await emulator.advance(0.5)
        for number in range(6, 11):
            await queue.send(number)
        await emulator.settle()
        assert batches(emulator)[2:] == [
            (1, [0, 1, 2, 3, 4]),
            (1.5, [5, 6, 7, 8, 9]),
            (2.5, [10]),
        ]


async def test_sends_of_all_kinds_share_a_batch() -> None:
    """(a) 5"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send(1)
        await worker.env.Q.sendBatch([{"body": 2}, {"body": 3}])
        await worker.env.Q.send(4)

    config = worker(produce, accept, consumer={"max_batch_size": 5, "max_batch_timeout": 1})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert batches(emulator) == [(1, [1, 2, 3, 4])]


async def test_without_a_timeout_the_sends_of_one_instant_still_share_a_batch() -> None:
    """(a) 6; recording queue_batch_timeout_zero"""

    async def produce(worker: Any) -> None:
        for number in range(3):
            await worker.env.Q.send(number)

    async with Emulator(worker(produce, accept, consumer=AT_ONCE)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert batches(emulator) == [(0, [0, 1, 2])]


async def test_the_batch_timeout_comes_after_the_delay() -> None:
    """3.6; recording queue_send_delay_plus_batch_timeout"""
    config = worker(consume=accept, consumer={"max_batch_timeout": 1})
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("x", delaySeconds=1)
        await emulator.settle()
        assert batches(emulator) == [(2, ["x"])]


async def test_batches_of_one_queue_come_one_after_the_other() -> None:
    """3.5; recording queue_slow_consumer_serial"""
    spans = []

    async def consume(batch: Any, worker: Any) -> None:
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(0.7)
        spans.append((begin, asyncio.get_running_loop().time()))

    await consumed(consume, *range(6), consumer={**AT_ONCE, "max_batch_size": 2})
    assert spans == [(0, 0.7), (0.7, 1.4), (1.4, 2.1)]


async def test_queues_do_not_wait_for_each_other() -> None:
    """2.8; recording queue_multiple_queues"""
    ends = []

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(10 if batch.queue == "slow" else 1)
        ends.append((batch.queue, len(batch.messages)))

    queues = {"consumers": [{"queue": name, **AT_ONCE} for name in ("slow", "quick")]}
    async with Emulator(worker(consume=consume, queues=queues)) as emulator:
        for name in ("slow", "quick", "slow"):
            await emulator.queues[name].send(name)
        await emulator.settle()
        assert ends == [("quick", 1), ("slow", 1), ("slow", 1)]


async def test_one_failure_concerns_its_batch_only() -> None:
    """O-01"""

    def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if message.body == 13 and message.attempts == 1:
                raise ValueError("13")

    config = worker(consume=consume, consumer={"max_batch_size": 10})
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send_batch(list(range(1, 26)))
        await emulator.settle()
        sizes = [len(batch) for _, batch in batches(emulator)]
        assert sizes == [10, 10, 10, 5]
        counts = dict.fromkeys(range(1, 26), 0)
        for _, body, attempt, _ in deliveries(emulator):
            counts[body] += 1
            assert attempt == counts[body]
        assert [body for body, count in counts.items() if count == 2] == list(range(11, 21))
        assert set(counts.values()) == {1, 2}


# -- acks and retries (2.9, 2.10) ------------------------------------------------------------------

# Calls on the first of three messages and on their batch; what becomes of the three in production
# and in the local runtime; the warning.
ACK, RETRY = "ack", "retry"
W1 = ("retry", "a message", "ackAll")
W2 = ("retry", "a message", "ack")
W3 = ("ack", "a message", "retryAll")
W4 = ("ack", "a message", "retry")
W5 = ("retryAll", "", "ackAll")
W6 = ("ackAll", "", "retryAll")
CALLS: list[tuple[str, str, str, tuple[str, str, str] | None]] = [
    ("", "aaa", "aaa", None),
    ("m.ack()", "aaa", "aaa", None),
    ("m.ack(); m.ack()", "aaa", "aaa", None),
    ("m.ack(); m.retry()", "aaa", "aaa", W2),
    ("m.retry(); m.ack()", "raa", "raa", W4),
    ("m.retry()", "raa", "raa", None),
    ("batch.ackAll()", "aaa", "aaa", None),
    ("batch.ackAll(); m.ack()", "aaa", "aaa", None),
    ("batch.ackAll(); m.retry()", "aaa", "aaa", W1),
    ("batch.ackAll(); batch.retryAll()", "aaa", "aaa", W5),
    ("batch.retryAll()", "rrr", "rrr", None),
    ("batch.retryAll(); batch.ackAll()", "rrr", "rrr", W6),
    ("batch.retryAll(); m.ack()", "rrr", "rrr", W3),
    ("batch.retryAll(); m.retry()", "rrr", "rrr", None),
    ("m.ack(); batch.retryAll()", "arr", "rrr", None),
    ("m.retry(); batch.ackAll()", "raa", "raa", None),
    ("1 / 0", "rrr", "rrr", None),
    ("m.ack(); 1 / 0", "arr", "rrr", None),
    ("batch.ackAll(); 1 / 0", "aaa", "rrr", None),
    ("m.retry(); 1 / 0", "rrr", "rrr", None),
    ("m.ack(); m.retry(); 1 / 0", "arr", "rrr", W2),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("calls", CALLS, ids=[row[0] or "nothing" for row in CALLS])
async def test_what_the_calls_on_a_batch_mean(
    calls: tuple[str, str, str, tuple[str, str, str] | None], profile: str
) -> None:
    """2.9, 2.10; (a) 24, 29 to 32, 37 to 39; O-02"""
    code, production, local, warning = calls
    program = compile(code or "pass", "calls", "exec")

    def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].attempts == 1:
            exec(program, {"batch": batch, "m": batch.messages[0]})

    emulator = await consumed(consume, "a", "b", "c", profile=profile)
    first = [record for record in emulator.queues["q"].deliveries if record.attempt == 1]
    expected = production if profile == "production" else local
    assert "".join(record.outcome[0] for record in first) == expected
    again = [record.body for record in emulator.queues["q"].deliveries if record.attempt == 2]
    assert again == [body for body, letter in zip("abc", expected, strict=True) if letter == "r"]

    warned = [log.text for log in emulator.logs if log.level == "warn"]
    texts = []
    if warning is not None:
        call, target, earlier = warning
        on = f" on message {first[0].id}" if target else ""
        texts = [
            f"Received a call to {call}(){on} after {earlier}() was already called. Calling "
            f"{call}(){' on ' + target if target else ''} after calling {earlier}() has no effect."
        ]
    assert warned == texts
    found = [finding.message for finding in emulator.findings if finding.code == "ignored_ack"]
    assert found == texts


async def test_an_ignored_ack_names_the_line() -> None:
    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        batch.messages[0].retry()

    line = consume.__code__.co_firstlineno + 2
    emulator = await consumed(consume, "a")
    (finding,) = emulator.findings
    assert str(finding.location).endswith(f"test_consumer.py:{line}")
    assert finding.subject == "queue q #1"


@pytest.mark.parametrize(
    ("code", "delays"),
    [
        ("m.retry(delaySeconds=3)", {"a": 3}),
        ("m.retry({'delaySeconds': 3})", {"a": 3}),
        ("m.retry(to_js({'delaySeconds': 3}))", {"a": 3}),
        ("m.retry(delaySeconds=2); m.retry(delaySeconds=5)", {"a": 5}),
        ("m.retry(delaySeconds=2); m.retry()", {"a": 10}),
        ("m.retry(delaySeconds=2); m.retry({})", {"a": 10}),
        ("m.retry(delaySeconds=0)", {"a": 0}),
        ("m.retry()", {"a": 10}),
        ("m.retry(None)", {"a": 10}),
        ("m.retry(delaySeconds=-1)", {"a": 0}),
        ("m.retry(delaySeconds=1.9)", {"a": 1}),
        ("m.retry(delaySeconds='abc')", {"a": 0}),
        ("m.retry(delaySeconds=None)", {"a": 0}),
        ("m.retry(delaySeconds=86401)", {"a": 86401}),
        ("batch.retryAll(delaySeconds=7)", dict.fromkeys("abc", 7)),
        ("batch.retryAll(delaySeconds=7); batch.retryAll()", dict.fromkeys("abc", 7)),
        ("batch.retryAll(delaySeconds=1); batch.retryAll(delaySeconds=3)", dict.fromkeys("abc", 3)),
        ("batch.retryAll(delaySeconds=2); m.retry(delaySeconds=0)", {"a": 0, "b": 2, "c": 2}),
        ("batch.retryAll(); m.retry(delaySeconds=3)", {"a": 3, "b": 10, "c": 10}),
        ("m.retry(); batch.retryAll(delaySeconds=2)", dict.fromkeys("abc", 2)),
        ("1 / 0", dict.fromkeys("abc", 10)),
        ("m.retry(delaySeconds=3); 1 / 0", {"a": 3, "b": 10, "c": 10}),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_when_a_retried_message_comes_back(
    code: str, delays: dict[str, int], profile: str
) -> None:
    """2.9, 2.15, 3.7; (a) 33 to 36, 40"""
    program = compile(code, "calls", "exec")

    def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].attempts == 1:
            exec(program, {"batch": batch, "m": batch.messages[0], "to_js": to_js})

    consumer = {**AT_ONCE, "retry_delay": 10}
    emulator = await consumed(consume, "a", "b", "c", consumer=consumer, profile=profile)
    again = {
        record.body: (record.at - START).total_seconds()
        for record in emulator.queues["q"].deliveries
        if record.attempt == 2
    }
    assert again == delays


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "m.retry(5)",
            "TypeError: Failed to execute 'retry' on 'QueueMessage': parameter 1 is not of type "
            "'QueueRetryOptions'.",
        ),
        (
            "batch.retryAll('x')",
            "TypeError: Failed to execute 'retryAll' on 'QueueController': parameter 1 is not of "
            "type 'QueueRetryOptions'.",
        ),
        (
            "m.retry(delaySeconds=2**31)",
            "TypeError: Value out of range. Must be between -2147483648 and 2147483647 "
            "(inclusive).",
        ),
    ],
)
async def test_a_wrong_retry_raises(code: str, text: str) -> None:
    """2.15; recording queue_retry_delay_errors"""
    errors = []

    def consume(batch: Any, worker: Any) -> None:
        try:
            exec(code, {"batch": batch, "m": batch.messages[0]})
        except JsException as error:
            errors.append(str(error))

    emulator = await consumed(consume, "a")
    assert errors == [text]
    assert deliveries(emulator) == [(0, "a", 1, "ack")]


async def test_a_misspelt_delay_is_a_finding_and_has_no_effect() -> None:
    """python-api.md 0.5"""

    def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].attempts == 1:
            batch.messages[0].retry(delay_seconds=30)
            batch.retryAll(delaySeconds=40, delay=5)

    emulator = await consumed(consume, "a", consumer=AT_ONCE)
    assert deliveries(emulator)[1] == (40, "a", 2, "ack")
    assert [f.message for f in emulator.findings] == [
        "the option delay_seconds has no effect; production reads delaySeconds",
        "the option delay has no effect; production reads delaySeconds",
    ]


async def test_retried_messages_go_behind_newer_ones() -> None:
    """3.4; (a) 46"""

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(1)
        for message in batch.messages:
            if message.body.startswith("r") and message.attempts == 1:
                message.retry()

    config = worker(consume=consume, consumer={"max_batch_size": 4, "max_batch_timeout": 2})
    async with Emulator(config) as emulator:
        queue = emulator.queues["q"]
        await queue.send_batch(["r1", "r2", "x", "y"])
        await emulator.advance(1)
        await queue.send("b")
        await queue.send("c")
        await emulator.settle()
        assert [batch for _, batch in batches(emulator)] == [
            ["r1", "r2", "x", "y"],
            ["r1", "r2", "b", "c"],
        ]


# -- waitUntil (2.11) ------------------------------------------------------------------------------

FLAG = {"compatibility_flags": ["python_workers", "queue_consumer_no_wait_for_wait_until"]}


async def fail_later(seconds: float = 1) -> None:
    await asyncio.sleep(seconds)
    raise ValueError("later")


async def test_a_failed_wait_until_fails_the_batch() -> None:
    """2.11; (a) 41"""

    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        if batch.messages[-1].attempts == 1:
            worker.ctx.waitUntil(fail_later())

    emulator = await consumed(consume, "a", "b", consumer=AT_ONCE)
    assert deliveries(emulator) == [(0, "a", 1, "ack"), (0, "b", 1, "retry"), (1, "b", 2, "ack")]
    assert isinstance(emulator.queues["q"].deliveries[1].error, ValueError)
    assert codes(emulator) == []
    assert [task.state for task in emulator.background] == ["failed"]


async def test_a_slow_wait_until_holds_the_next_batch_up() -> None:
    """2.11; (a) 42"""

    def consume(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(asyncio.sleep(1.5))

    emulator = await consumed(consume, "a", "b", consumer={**AT_ONCE, "max_batch_size": 1})
    assert batches(emulator) == [(0, ["a"]), (1.5, ["b"])]


async def test_wait_until_may_take_longer_than_after_a_request() -> None:
    """3.8"""

    def consume(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(asyncio.sleep(600))

    emulator = await consumed(consume, "a", consumer=AT_ONCE)
    record = emulator.queues["q"].deliveries[0]
    assert (record.outcome, (record.settled - record.at).total_seconds()) == ("ack", 600)


async def test_acks_and_retries_of_wait_until_count() -> None:
    """2.11; recording queue_ack_after_return_waituntil"""

    async def late(message: Any) -> None:
        await asyncio.sleep(0.3)
        message.retry()

    def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].attempts == 1:
            worker.ctx.waitUntil(late(batch.messages[0]))

    emulator = await consumed(consume, "a", "b", consumer=AT_ONCE)
    assert deliveries(emulator)[:2] == [(0, "a", 1, "retry"), (0, "b", 1, "ack")]


async def test_with_the_flag_the_result_is_final_at_the_return() -> None:
    """2.11; (a) 41"""

    async def late(batch: Any) -> None:
        await asyncio.sleep(2)
        batch.retryAll()
        raise ValueError("later")

    def consume(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(late(batch))

    emulator = await consumed(consume, "a", "b", consumer={**AT_ONCE, "max_batch_size": 1}, **FLAG)
    assert deliveries(emulator) == [(0, "a", 1, "ack"), (0, "b", 1, "ack")]
    assert codes(emulator) == ["background_error"] * 2


async def test_with_the_flag_a_handler_that_raises_still_fails() -> None:
    emulator = await consumed(refuse, "a", consumer={**AT_ONCE, "max_retries": 1}, **FLAG)
    assert [outcome for *_, outcome in deliveries(emulator)] == ["retry", "dropped"]


# -- failures --------------------------------------------------------------------------------------


class Odd(BaseException):
    """No Exception."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        Odd("x"),
        SystemExit(3),
        asyncio.CancelledError(),
        GeneratorExit(),
        StopAsyncIteration(),
        ExceptionGroup("several", [ValueError("a"), OSError("b")]),
        BaseExceptionGroup("several", [Odd("a")]),
        JsException("RangeError", "js"),
        RecursionError(),
        MemoryError(),
        TimeoutError(),
        AssertionError("of the Worker's own"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_handler_raises_fails_its_batch(error: BaseException) -> None:
    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(1)
        raise error

    emulator = await consumed(consume, "a", consumer={**AT_ONCE, "max_retries": 1})
    assert deliveries(emulator) == [(0, "a", 1, "retry"), (1, "a", 2, "dropped")]
    assert all(record.error is error for record in emulator.queues["q"].deliveries)
    assert codes(emulator) == ["message_dropped"]
    assert any(type(error).__name__ in log.text for log in emulator.logs if log.level == "error")


async def test_a_synchronous_handler() -> None:
    class Default(WorkerEntrypoint):
        def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            for message in batch.messages:
                message.ack() if message.body == "good" else message.retry()

    config = {"main": Default, "queues": {"consumers": [{"queue": "q", "max_retries": 1}]}}
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send_batch(["good", "bad"])
        await emulator.settle()
        assert deliveries(emulator) == [
            (5, "good", 1, "ack"),
            (5, "bad", 1, "retry"),
            (10, "bad", 2, "dropped"),
        ]


@pytest.mark.parametrize("value", [None, 5, "x", {"outcome": "exception"}, object(), [1]])
async def test_what_a_handler_returns_does_not_matter(value: Any) -> None:
    """Recording queue_handler_returns_value"""
    emulator = await consumed(lambda batch, worker: value, "a")
    assert deliveries(emulator) == [(0, "a", 1, "ack")]


async def test_a_handler_with_the_signature_of_the_docs_fails_as_in_production() -> None:
    """api.md 8; python-api.md 0.4"""

    class Default(WorkerEntrypoint):
        async def queue(self, batch: Any) -> None:
            batch.ackAll()

    config = {
        "main": Default,
        "queues": {"consumers": [{"queue": "q", "max_retries": 1, "dead_letter_queue": "d"}]},
    }
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert [outcome for *_, outcome in deliveries(emulator)] == ["retry", "dead_letter"]
        error = emulator.queues["q"].deliveries[0].error
        assert isinstance(error, TypeError)
        assert "takes 2 positional arguments but 4 were given" in str(error)
        assert "queue(self, batch, env, ctx)" in error.__notes__[0]
        assert "queue(self, batch, env, ctx)" in emulator.logs[0].text


async def test_a_worker_without_the_handler() -> None:
    """2.12; (a) 44"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("a")

    config = worker(produce, consumer={"max_retries": 1, "dead_letter_queue": "d"})
    async with Emulator(config) as emulator:
        assert codes(emulator) == ["missing_handler"]
        assert "has no queue() handler; its handlers: fetch" in emulator.findings[0].message
        await emulator.fetch("/")
        await emulator.settle()
        assert deliveries(emulator) == [(5, "a", 1, "retry"), (10, "a", 2, "dead_letter")]
        assert bodies(emulator, "d") == ["a"]
        error = emulator.queues["q"].deliveries[0].error
        assert str(error) == "Error: Handler does not export a queue() function."
        assert [log.text for log in emulator.logs if log.level == "warn"] == [
            "Received a QueueEvent but we lack a handler for QueueEvents. Did you remember to "
            "export a queue() function?"
        ] * 2


async def test_global_handlers_of_old_dates(tmp_path: Path) -> None:
    """10.3"""
    (tmp_path / "entry.py").write_text(
        "async def on_queue(batch, env, ctx):\n"
        "    for message in batch.messages:\n"
        "        await env.OUT.send(message.body + '!')\n"
        "        message.ack()\n"
    )
    config = {
        "main": str(tmp_path / "entry.py"),
        "compatibility_date": "2025-01-01",
        "compatibility_flags": ["python_workers"],
        "queues": {
            "producers": [{"binding": "OUT", "queue": "out"}],
            "consumers": [{"queue": "q"}],
        },
    }
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert bodies(emulator, "out") == ["a!"]
        assert deliveries(emulator) == [(5, "a", 1, "ack")]


async def test_a_constructor_that_raises_fails_the_batch() -> None:
    class Default(WorkerEntrypoint):
        def __init__(self, ctx: Any, env: Any) -> None:
            raise ValueError("no instance")

        async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...

    config = {"main": Default, "queues": {"consumers": [{"queue": "q", "max_retries": 0}]}}
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert deliveries(emulator) == [(5, "a", 1, "dropped")]


async def test_code_that_no_longer_loads_fails_the_batch(tmp_path: Path) -> None:
    entry = tmp_path / "entry.py"
    entry.write_text(
        "import os\nfrom workers import WorkerEntrypoint\n"
        "if os.environ.get('BROKEN_WORKER'): raise ImportError('broken')\n"
        "class Default(WorkerEntrypoint):\n"
        "    async def queue(self, batch, env, ctx): pass\n"
    )
    config = {"main": str(entry), "queues": {"consumers": [{"queue": "q", "max_retries": 1}]}}
    async with Emulator(config) as emulator:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BROKEN_WORKER", "1")
            await emulator.evict()
            await emulator.queues["q"].send("a")
            await emulator.advance(5)
        await emulator.settle()
        assert deliveries(emulator) == [(5, "a", 1, "retry"), (10, "a", 2, "ack")]
        assert "broken" in emulator.logs[0].text


async def test_a_consumer_has_fifteen_minutes() -> None:
    """3.8"""
    lines = []

    async def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        if batch.messages[-1].attempts == 1:
            try:
                await asyncio.sleep(3600)
            finally:
                lines.append("finally")

    emulator = await consumed(consume, "a", "b", consumer=AT_ONCE)
    assert deliveries(emulator) == [
        (0, "a", 1, "lost"),
        (0, "b", 1, "lost"),
        (900, "a", 2, "ack"),
        (900, "b", 2, "ack"),
    ]
    assert (lines, codes(emulator)) == ([], [])
    assert emulator.logs[0].text == "queue q #1 exceeded its wall time of 15 minutes"


async def test_a_handler_that_takes_just_fifteen_minutes_is_done() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(899.999999)

    emulator = await consumed(consume, "a", consumer=AT_ONCE)
    assert [outcome for *_, outcome in deliveries(emulator)] == ["ack"]


async def test_tasks_left_behind_by_a_consumer_are_a_finding() -> None:
    def consume(batch: Any, worker: Any) -> None:
        worker.task = asyncio.create_task(asyncio.sleep(9))

    emulator = await consumed(consume, "a")
    assert codes(emulator) == ["floating_task"]
    assert deliveries(emulator) == [(0, "a", 1, "ack")]


async def test_a_test_outcome_raised_in_a_consumer_reaches_the_test() -> None:
    def consume(batch: Any, worker: Any) -> None:
        pytest.fail("the test's own")

    async with Emulator(worker(consume=consume, consumer={"max_retries": 0})) as emulator:
        await emulator.queues["q"].send("a")
        with pytest.raises(pytest.fail.Exception, match="the test's own"):
            await emulator.settle()
        await emulator.settle()
        assert [outcome for *_, outcome in deliveries(emulator)] == ["dropped"]


# -- retries and the dead letter queue (4) ---------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("retries", [None, 0, 1, 3, 10])
async def test_a_message_is_delivered_max_retries_plus_one_times(
    retries: int | None, profile: str
) -> None:
    """4.1, 4.2; (a) 25, 26; O-04"""
    default = 3 if profile == "production" else 2
    total = (default if retries is None else retries) + 1
    consumer = AT_ONCE if retries is None else {**AT_ONCE, "max_retries": retries}
    emulator = await consumed(refuse, "a", consumer=consumer, profile=profile)
    found = deliveries(emulator)
    assert [attempt for _, _, attempt, _ in found] == list(range(1, total + 1))
    assert [outcome for *_, outcome in found] == ["retry"] * (total - 1) + ["dropped"]
    assert emulator.queues["q"].dropped == 1
    id = emulator.queues["q"].deliveries[0].id
    dropped = (
        f'Dropped message "{id}" on queue "q" after {total} failed '
        f"attempt{'s' if total > 1 else ''}!"
    )
    [finding] = [f for f in emulator.findings if f.code == "message_dropped"]
    assert finding.message == f"{dropped} The last one: ValueError: refused"
    warned = [log.text for log in emulator.logs if log.level == "warn"]
    assert warned == ([dropped] if profile == "miniflare" else [])


async def test_the_retry_delay_applies_after_a_throw() -> None:
    """(a) 27"""
    consumer = {**AT_ONCE, "max_retries": 2, "retry_delay": 5}
    emulator = await consumed(refuse, "a", consumer=consumer)
    assert [at for at, *_ in deliveries(emulator)] == [0, 5, 10]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_dead_letter_keeps_id_and_timestamp(profile: str) -> None:
    """4.5; (a) 28; S-01; O-06"""
    seen = []

    def consume(batch: Any, worker: Any) -> None:
        seen.extend((batch.queue, m.id, m.timestamp, m.attempts) for m in batch.messages)
        if batch.queue == "q":
            raise ValueError("refused")

    consumers = [
        {"queue": "q", "max_retries": 2, "dead_letter_queue": "d", "retry_delay": 60},
        {"queue": "d"},
    ]
    config = worker(consume=consume, queues={"consumers": consumers})
    async with Emulator(config, profile=profile) as emulator:
        id = await emulator.queues["q"].send("a")
        await emulator.settle()
        assert [(queue, attempts) for queue, _, _, attempts in seen] == [
            ("q", 1),
            ("q", 2),
            ("q", 3),
            ("d", 1),
        ]
        assert {(id, at) for _, id, at, _ in seen} == {(id, datetime(2026, 1, 1))}
        assert emulator.queues["q"].dead_lettered == 1
        assert emulator.queues["d"].acked == 1
        moved = (
            f'Moving message "{id}" on queue "q" to dead letter queue "d" after 3 failed '
            "attempts..."
        )
        warned = [log.text for log in emulator.logs if log.level == "warn"]
        assert warned == ([moved] if profile == "miniflare" else [])
        assert codes(emulator) == []


async def test_the_dead_letter_queue_is_filled_at_once() -> None:
    """O-05"""
    config = worker(consume=refuse, consumer={"max_retries": 1, "dead_letter_queue": "d"})
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(10)
        assert (bodies(emulator), bodies(emulator, "d")) == ([], ["a"])
        # It lies there to be looked at: no finding, and no reason for `settle` to wait.
        assert [finding.code for finding in emulator.findings] == []
        await emulator.settle()
        assert clock(emulator) == 10


async def test_one_worker_for_a_queue_and_its_dead_letters() -> None:
    """O-06"""
    recorded = []

    def consume(batch: Any, worker: Any) -> None:
        if batch.queue == "main":
            raise ValueError("refused")
        recorded.extend((message.body, message.attempts) for message in batch.messages)

    consumers = [
        {"queue": "main", "dead_letter_queue": "main-dlq", "max_batch_size": 7},
        {"queue": "main-dlq"},
    ]
    config = worker(consume=consume, queues={"consumers": consumers})
    async with Emulator(config) as emulator:
        await emulator.queues["main"].send_batch(list(range(20)))
        await emulator.settle()
        assert sorted(recorded) == [(number, 1) for number in range(20)]


async def test_dead_letter_queues_in_a_chain_and_in_a_circle() -> None:
    """4.6"""
    consumers = [
        {"queue": "a", "dead_letter_queue": "b", "max_retries": 0, **AT_ONCE},
        {"queue": "b", "dead_letter_queue": "a", "max_retries": 1, "retry_delay": 60, **AT_ONCE},
    ]
    config = worker(consume=refuse, queues={"consumers": consumers})
    async with Emulator(config) as emulator:
        await emulator.queues["a"].send("x")
        await emulator.advance(150)
        assert [at for at, *_ in deliveries(emulator, "a")] == [0, 60, 120]
        assert [(at, attempt) for at, _, attempt, _ in deliveries(emulator, "b")] == [
            (0, 1),
            (60, 2),
            (60, 1),
            (120, 2),
            (120, 1),
        ]


async def test_on_the_last_delivery_a_delay_means_nothing() -> None:
    """4.3"""

    def consume(batch: Any, worker: Any) -> None:
        batch.retryAll(delaySeconds=3600)

    consumer = {"max_retries": 0, "dead_letter_queue": "d", **AT_ONCE}
    emulator = await consumed(consume, "a", consumer=consumer)
    assert bodies(emulator, "d") == ["a"]
    assert emulator.queues["d"].backlog[0].due == START


async def test_long_retry_delays() -> None:
    """O-03"""
    consumer = {"max_retries": 3, "retry_delay": 43_200, "dead_letter_queue": "d", **AT_ONCE}
    async with Emulator(worker(consume=refuse, consumer=consumer)) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(hours(12))
        await emulator.restart()
        await emulator.advance(hours(12))
        await emulator.evict()
        await emulator.advance(hours(12))
        assert [at / 3600 for at, *_ in deliveries(emulator)] == [0, 12, 24, 36]
        assert bodies(emulator, "d") == ["a"]


# -- retention (3.9) -------------------------------------------------------------------------------


async def test_messages_expire() -> None:
    """3.9; (a) 55"""
    settings = {"q": {"message_retention_period": 60}}
    config = worker(consume=accept, consumer={"dead_letter_queue": "d"})
    async with Emulator(config, queue_settings=settings) as emulator:
        queue = emulator.queues["q"]
        queue.pause()
        await queue.send("waits")
        await queue.send("delayed", delaySeconds=86_400)
        await emulator.advance(59.999999)
        assert bodies(emulator) == ["waits", "delayed"]
        await emulator.advance(0.000001)
        assert (bodies(emulator), bodies(emulator, "d")) == ([], [])
        assert queue.expired == 2
        assert [event.kind for event in emulator.trace if event.kind == "expired"] == [
            "expired"
        ] * 2


async def test_a_message_that_expires_when_its_batch_is_due_is_not_delivered() -> None:
    settings = {"q": {"message_retention_period": 60}}
    config = worker(consume=accept, consumer={"max_batch_timeout": 60})
    async with Emulator(config, queue_settings=settings) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        await emulator.advance(60)
        assert deliveries(emulator) == []
        assert emulator.queues["q"].expired == 1
        assert not [site for site in emulator.faults.sites if site.name == "batch.q"]


@pytest.mark.parametrize(("plan", "days"), [("paid", 4), ("free", 1)])
async def test_the_default_retention(plan: str, days: int) -> None:
    """3.9"""
    async with Emulator(worker(lambda _: None), plan=plan) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.advance(hours(24 * days) - hours(1))
        assert bodies(emulator) == ["x"]
        await emulator.advance(hours(1))
        assert bodies(emulator) == []


async def test_settle_does_not_wait_for_retention() -> None:
    async with Emulator(worker(lambda _: None)) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert clock(emulator) == 0


# -- scale -----------------------------------------------------------------------------------------


async def test_twenty_thousand_messages_and_one_timer() -> None:
    """S-13; recording: 10,000 active timers locally"""

    async def produce(worker: Any) -> None:
        for start in range(0, 20_000, 100):
            items = [{"body": number} for number in range(start, start + 100)]
            await worker.env.Q.sendBatch(items, delaySeconds=60)

    got = []

    def consume(batch: Any, worker: Any) -> None:
        got.extend(message.body for message in batch.messages)

    config = worker(produce, consume, consumer={"max_batch_size": 100})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        owners = [timer.owner for timer in emulator.clock.timers]
        assert owners == ["queue q: the next batch", "queue q: expiry"]
        await emulator.settle()
        assert got == list(range(20_000))


async def test_an_idle_queue_wakes_up() -> None:
    """S-03"""
    async with Emulator(worker(consume=accept)) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.settle()
        await emulator.advance(hours(48))
        await emulator.queues["q"].send(2)
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == [1, 2]


async def test_a_consumer_that_feeds_its_own_queue() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if message.body:
                await worker.env.Q.send(message.body - 1)

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].send(50)
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == list(range(50, -1, -1))
        assert clock(emulator) == 51 * 5
