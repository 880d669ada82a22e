"""`env.Q.send`, `sendBatch` and `metrics` of Worker code.

Numbers such as 1.6 are rules of the reference on Cloudflare Queues, `(a) 12` its scenarios.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException, to_js
from workbench import PROFILES, START, batches, bodies, clock, codes, deliveries, worker

from emulator import Emulator, WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

OLD = {"compatibility_date": "2024-03-17", "compatibility_flags": ["python_workers"]}
OLDER_TEXTS = {"compatibility_date": "2026-03-11"}


async def answer(produce: Any, **arguments: Any) -> Any:
    """What a Worker that only sends answers; its queue is consumed, so that it is checked."""
    options = {name: arguments.pop(name) for name in ("profile", "plan") if name in arguments}
    async with Emulator(worker(produce, lambda batch, _: None, **arguments), **options) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        return response.json()


async def error_of(call: Any, **arguments: Any) -> str:
    """The error that a call on the binding's promise is rejected with."""

    async def produce(worker: Any) -> str:
        promise = call(worker.env.Q)  # it is not raised here
        try:
            await promise
        except JsException as error:
            return str(error)
        return "sent"

    text: str = await answer(produce, **arguments)
    return text


# -- content types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "stored", "size"),
    [
        ({"a": 1, "b": [None, True, 1.5]}, "json", {"a": 1, "b": [None, True, 1.5]}, 27),
        ("hi", None, "hi", 4),
        ("hi", "text", "hi", 2),
        ("é", "json", "é", 4),
        ({"a": "é"}, "json", {"a": "é"}, 10),
        (b"\x00\x01\xff", "bytes", b"\x00\x01\xff", 3),
        (None, None, None, 4),
        ("", "json", "", 2),
        (0, "json", 0, 1),
        (False, "json", False, 5),
        (float("nan"), "json", None, 4),
        (datetime(2026, 1, 2, tzinfo=UTC), "json", "2026-01-02T00:00:00.000Z", 26),
        (b"\x07", "json", {"0": 7}, 7),
    ],
)
async def test_each_content_type_stores_what_the_runtime_would(
    body: Any, content_type: str | None, stored: Any, size: int
) -> None:
    """1.4, 1.7, 1.12; (a) 8, 9, 10, 13"""

    async def produce(worker: Any) -> Any:
        options = {} if content_type is None else {"contentType": content_type}
        await worker.env.Q.send(body, **options)
        return (await worker.env.Q.metrics())["backlogBytes"]

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).json() == size
        assert bodies(emulator) == [stored]


async def test_v8_keeps_what_json_loses() -> None:
    """1.4, 2.6"""
    sent = {"at": datetime(2026, 1, 2, tzinfo=UTC), "set": {1, 2}, "raw": b"ab"}
    seen = []

    async def produce(worker: Any) -> None:
        await worker.env.Q.send(sent, contentType="v8")

    def consume(batch: Any, worker: Any) -> None:
        seen.append(batch.messages[0].body)

    async with Emulator(worker(produce, consume)) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == [sent]
        await emulator.settle()
        assert emulator.queues["q"].deliveries[0].body == sent
    (body,) = seen
    assert body["at"] == datetime(2026, 1, 2)  # naive, as the SDK makes it
    assert body["set"] == {1, 2}
    assert bytes(body.raw) == b"ab"


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        ({}, "2026-01-02T00:00:00.000Z"),
        ({"compatibility_date": "2024-03-18"}, "2026-01-02T00:00:00.000Z"),
        ({"compatibility_date": "2024-03-17"}, datetime(2026, 1, 2, tzinfo=UTC)),
        (
            {"compatibility_flags": ["python_workers", "no_queues_json_messages"]},
            datetime(2026, 1, 2, tzinfo=UTC),
        ),
    ],
)
async def test_the_default_content_type_depends_on_the_compatibility_date(
    config: dict[str, Any], stored: Any
) -> None:
    """1.4; (a) 8"""

    async def produce(worker: Any) -> None:
        from js import Date

        await worker.env.Q.send(Date.new(1767312000000))

    if "compatibility_date" in config:
        config = {**config, "compatibility_flags": ["python_workers"]}
        if config["compatibility_date"] < "2025":
            config["compatibility_flags"].append("python_no_global_handlers")
    async with Emulator(worker(produce, **config)) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == [stored]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda q: q.send("x", contentType="TEXT"), "sent"),
        (
            lambda q: q.sendBatch([{"body": "x", "contentType": "TEXT"}]),
            "TypeError: Unsupported queue message content type: TEXT",
        ),
    ],
)
async def test_only_send_takes_a_content_type_in_any_case(call: Any, result: str) -> None:
    """1.5"""
    assert await error_of(call) == result


# -- errors ----------------------------------------------------------------------------------------

UNDEFINED_BODY = "TypeError: Message body cannot be undefined"
TEXT_WANTED = 'TypeError: Content Type "text" requires a value of type string, but received: '
BYTES_WANTED = (
    'TypeError: Content Type "bytes" requires a value of type ArrayBufferView, but received: '
)
NO_SEQUENCE = (
    "TypeError: Failed to execute 'sendBatch' on 'WorkerQueue': parameter 1 is not of type "
    "'Sequence'."
)
NO_REQUEST = "TypeError: Incorrect type: the provided value is not of type 'MessageSendRequest'."
INT32 = "TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."


def _undefined() -> Any:
    from js import undefined

    return undefined


def _array_buffer() -> Any:
    from js import ArrayBuffer

    return ArrayBuffer.new(3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda q: q.sendBatch([{}]), UNDEFINED_BODY),
        (lambda q: q.sendBatch([{"body": 1}, {"delaySeconds": 1}]), UNDEFINED_BODY),
        (
            lambda q: q.send("x", contentType="bogus"),
            "TypeError: Unsupported queue message content type: bogus",
        ),
        (
            lambda q: q.send("x", contentType=""),
            "TypeError: Unsupported queue message content type: ",
        ),
        (
            lambda q: q.send("x", contentType=None),
            "TypeError: Unsupported queue message content type: null",
        ),
        (lambda q: q.send(123, contentType="text"), f"{TEXT_WANTED}number"),
        (lambda q: q.send({"a": 1}, contentType="text"), f"{TEXT_WANTED}object"),
        (lambda q: q.send(None, contentType="text"), f"{TEXT_WANTED}object"),
        (lambda q: q.send(True, contentType="text"), f"{TEXT_WANTED}boolean"),
        (lambda q: q.send("x", contentType="bytes"), f"{BYTES_WANTED}string"),
        (lambda q: q.send([1], contentType="bytes"), f"{BYTES_WANTED}object"),
        (lambda q: q.send(_array_buffer(), contentType="bytes"), f"{BYTES_WANTED}object"),
        (
            lambda q: q.send({"n": 2**60}),
            "TypeError: Do not know how to serialize a BigInt",
        ),
        (lambda q: q.sendBatch([]), "TypeError: sendBatch() requires at least one message"),
        (
            lambda q: q.sendBatch(item for item in ()),
            "TypeError: sendBatch() requires at least one message",
        ),
        (lambda q: q.sendBatch(), NO_SEQUENCE),
        (lambda q: q.sendBatch({}), NO_SEQUENCE),
        (lambda q: q.sendBatch(5), NO_SEQUENCE),
        (lambda q: q.sendBatch("a"), NO_SEQUENCE),
        (lambda q: q.sendBatch(["a"]), NO_REQUEST),
        (lambda q: q.sendBatch([5]), NO_REQUEST),
        (lambda q: q.send("x", delaySeconds=2**31), INT32),
        (lambda q: q.send("x", delaySeconds=-(2**31) - 1), INT32),
        (lambda q: q.sendBatch([{"body": 1}], delaySeconds=1e12), INT32),
        (
            lambda q: q.send("x", 5),
            "TypeError: Failed to execute 'send' on 'WorkerQueue': parameter 2 is not of type "
            "'SendOptions'.",
        ),
        (
            lambda q: q.sendBatch([{"body": 1}], "x"),
            "TypeError: Failed to execute 'sendBatch' on 'WorkerQueue': parameter 2 is not of type "
            "'SendBatchOptions'.",
        ),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_wrong_call_rejects_its_promise(call: Any, text: str, profile: str) -> None:
    """1.6, 1.8; (a) 11 to 15"""
    assert await error_of(call, profile=profile) == text


@pytest.mark.parametrize(("profile", "wanted"), [("production", "JsValue"), ("miniflare", "Value")])
async def test_send_wants_a_body(profile: str, wanted: str) -> None:
    """1.6"""
    assert await error_of(lambda q: q.send(), profile=profile) == (
        "TypeError: Failed to execute 'send' on 'WorkerQueue': parameter 1 is not of type "
        f"'{wanted}'."
    )


async def test_undefined_is_no_body() -> None:
    """1.6"""
    flags = {"compatibility_date": "2026-04-01", "compatibility_flags": ["python_workers"]}
    assert await error_of(lambda q: q.send(_undefined()), **flags) == UNDEFINED_BODY


async def test_a_cycle_is_explained() -> None:
    """1.6"""

    def call(q: Any) -> Any:
        from js import Object

        cycle = Object.new()
        cycle.a = cycle
        return q.send(cycle)

    assert await error_of(call) == (
        "TypeError: Converting circular structure to JSON\n"
        "    --> starting at object with constructor 'Object'\n"
        "    --- property 'a' closes the circle"
    )


async def test_what_cannot_be_cloned_is_named() -> None:
    """1.6"""
    text = await error_of(lambda q: q.send(lambda: 1, contentType="v8"))
    assert text.startswith("DataCloneError: ")
    assert text.endswith(" could not be cloned.")


@pytest.mark.parametrize("value", [(1, 2), {"a": (1,)}, [bytearray(b"x")]])
async def test_what_the_sdk_refuses_is_raised_at_the_call(value: Any) -> None:
    """10.2"""

    def produce(worker: Any) -> str:
        with pytest.raises(TypeError, match="cannot be sent over RPC") as info:
            worker.env.Q.send(value)
        return type(info.value).__name__

    assert await answer(produce) == "TypeError"


async def test_one_bad_item_sends_nothing() -> None:
    """1.15; (a) 19"""

    async def produce(worker: Any) -> str:
        items = [{"body": 1}, {"body": 2, "contentType": "text"}, {"body": 3}]
        with pytest.raises(JsException):
            await worker.env.Q.sendBatch(items)
        return "refused"

    async with Emulator(worker(produce)) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == []


async def test_a_rejection_that_nobody_awaits_is_a_finding_and_no_warning() -> None:
    def produce(worker: Any) -> str:
        worker.env.Q.send("x", contentType="bogus")
        return "went on"

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).json() == "went on"
        assert codes(emulator) == ["never_awaited"]


async def test_sending_at_import_is_refused(tmp_path: Path) -> None:
    (tmp_path / "entry.py").write_text(
        "from workers import WorkerEntrypoint, env\n"
        "env.Q.send('x')\n"
        "class Default(WorkerEntrypoint): pass\n"
    )
    config = {
        "main": str(tmp_path / "entry.py"),
        "queues": {"producers": [{"binding": "Q", "queue": "q"}]},
    }
    with pytest.raises(WorkerLoadError, match="Disallowed operation called within global scope"):
        Emulator(config)


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "delay"),
    [(1.9, 1), ("5", 5), ("x", 0), (True, 1), (float("nan"), 0), (float("inf"), 0), (0, 0)],
)
async def test_delay_seconds_is_coerced_as_javascript_does(value: Any, delay: int) -> None:
    """1.8"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("x", delaySeconds=value)

    config = worker(produce)
    async with Emulator(config, queue_settings={"q": {"delivery_delay": 60}}) as emulator:
        await emulator.fetch("/")
        (waiting,) = emulator.queues["q"].backlog
        assert (waiting.due - START).total_seconds() == delay


@pytest.mark.parametrize(
    "send",
    [
        lambda q: q.send("x", {"delaySeconds": 7, "contentType": "text"}),
        lambda q: q.send("x", delaySeconds=7, contentType="text"),
        lambda q: q.send("x", to_js({"delaySeconds": 7, "contentType": "text"})),
        lambda q: q.sendBatch([{"body": "x", "contentType": "text"}], delaySeconds=7),
        lambda q: q.sendBatch([{"body": "x", "contentType": "text"}], {"delaySeconds": 7}),
        lambda q: q.sendBatch([{"body": "x", "contentType": "text", "delaySeconds": 7}]),
        lambda q: q.sendBatch(to_js([{"body": "x", "contentType": "text", "delaySeconds": 7}])),
    ],
)
@pytest.mark.parametrize("date", ["2026-09-01", "2026-09-10", "2026-05-01"])
async def test_options_are_keywords_or_an_object(send: Any, date: str) -> None:
    """10.1; python-api.md 0.6"""

    async def produce(worker: Any) -> None:
        await send(worker.env.Q)

    config = worker(produce, compatibility_date=date, compatibility_flags=["python_workers"])
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        (waiting,) = emulator.queues["q"].backlog
        assert (waiting.due - START).total_seconds() == 7
        assert codes(emulator) == []


async def test_delays_by_precedence() -> None:
    """1.10; (a) 21, 22; O-07"""

    async def produce(worker: Any) -> None:
        q = worker.env.Q
        await q.send("default")
        await q.send("zero", delaySeconds=0)
        await q.sendBatch(
            [{"body": "a"}, {"body": "b", "delaySeconds": 0}, {"body": "c", "delaySeconds": 10}],
            delaySeconds=5,
        )
        await q.sendBatch([{"body": "d"}])

    config = worker(produce, lambda batch, _: None, consumer={"max_batch_timeout": 0})
    async with Emulator(config, queue_settings={"q": {"delivery_delay": 60}}) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert batches(emulator) == [
            (0, ["zero", "b"]),
            (5, ["a"]),
            (10, ["c"]),
            (60, ["default", "d"]),
        ]


async def test_the_timestamp_is_when_it_was_sent() -> None:
    """2.5; (a) 20"""
    seen = []

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("x", delaySeconds=30)

    def consume(batch: Any, worker: Any) -> None:
        seen.append(batch.messages[0].timestamp)

    config = worker(produce, consume, consumer={"max_batch_timeout": 0})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.advance(29.999)
        assert seen == []
        await emulator.advance(0.001)
        assert seen == [START.replace(tzinfo=None)]


async def test_none_as_a_delay_is_zero_and_a_finding() -> None:
    """api.md 8"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("a", delaySeconds=None)
        await worker.env.Q.sendBatch([{"body": "b", "delaySeconds": None}])
        await worker.env.Q.sendBatch([{"body": "c"}], delaySeconds=None)

    config = worker(produce)
    async with Emulator(config, queue_settings={"q": {"delivery_delay": 60}}) as emulator:
        await emulator.fetch("/")
        assert [waiting.due for waiting in emulator.queues["q"].backlog] == [START] * 3
        assert codes(emulator) == ["ignored_option"] * 3
        lines = [f.location for f in emulator.findings if f.code == "ignored_option"]
        assert all(line and "test_producer.py:" in line for line in lines)
        assert len(set(lines)) == 3


@pytest.mark.parametrize(
    ("send", "text"),
    [
        (
            lambda q: q.send("x", delay_seconds=5),
            "the option delay_seconds has no effect; production reads delaySeconds",
        ),
        (
            lambda q: q.send("x", content_type="text"),
            "the option content_type has no effect; production reads contentType",
        ),
        (
            lambda q: q.send("x", delay=5),
            "the option delay has no effect; production reads contentType and delaySeconds",
        ),
        (
            lambda q: q.sendBatch([{"body": "x", "delay_seconds": 5}]),
            "the option delay_seconds has no effect; production reads delaySeconds",
        ),
        (
            lambda q: q.sendBatch([{"body": "x"}], contentType="text"),
            "the option contentType has no effect; production reads delaySeconds",
        ),
    ],
)
async def test_an_option_that_nobody_reads_is_a_finding(send: Any, text: str) -> None:
    """python-api.md 0.5"""

    async def produce(worker: Any) -> None:
        await send(worker.env.Q)

    async with Emulator(worker(produce)) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == ["x"]
        assert emulator.queues["q"].backlog[0].due == START
        assert [f.message for f in emulator.findings if f.code == "ignored_option"] == [text]


async def test_the_delivery_delay_of_a_producer_counts_only_locally() -> None:
    """1.11; O-07"""
    queues = {"producers": [{"binding": "Q", "queue": "q", "delivery_delay": 30}]}
    queues["consumers"] = [{"queue": "q", "max_batch_timeout": 0}]  # type: ignore[list-item]

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("a")
        await worker.env.Q.send("b", delaySeconds=5)
        await worker.env.Q.send("c", delaySeconds=60)

    expected = {
        "production": ([(0, ["a"]), (5, ["b"]), (60, ["c"])], ["ignored_option"]),
        "miniflare": ([(5, ["b"]), (30, ["a"]), (60, ["c"])], []),
    }
    for profile in PROFILES:
        config = worker(produce, lambda batch, _: None, queues=queues)
        async with Emulator(config, profile=profile) as emulator:
            await emulator.fetch("/")
            await emulator.settle()
            assert (batches(emulator), codes(emulator)) == expected[profile]


# -- when a send happens ---------------------------------------------------------------------------


async def test_the_body_is_that_of_the_call() -> None:
    """O-10"""

    async def produce(worker: Any) -> None:
        body = {"n": [1]}
        promise = worker.env.Q.send(body)
        body["n"].append(2)
        await promise

    async with Emulator(worker(produce)) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == [{"n": [1]}]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_send_is_made_at_the_call(profile: str) -> None:
    """python-api.md 0.7"""

    async def produce(worker: Any) -> int:
        promise = worker.env.Q.send("x")
        await asyncio.sleep(1)
        waiting: int = (await worker.env.Q.metrics())["backlogCount"]
        await promise
        return waiting

    config = worker(produce, lambda batch, _: None, consumer={"max_batch_timeout": 5})
    async with Emulator(config, profile=profile) as emulator:
        assert (await emulator.fetch("/")).json() == 1
        assert codes(emulator) == []


@pytest.mark.parametrize(("profile", "kept"), [("production", []), ("miniflare", ["x"])])
async def test_a_send_that_nobody_awaits(profile: str, kept: list[str]) -> None:
    """1.17; recording queue_send_not_awaited"""

    def produce(worker: Any) -> None:
        worker.env.Q.send("x")

    config = worker(produce, lambda batch, _: None)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == kept
        assert codes(emulator) == ["never_awaited"]
        assert "test_producer.py" in str(emulator.findings[0].location)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_send_given_to_wait_until_is_made(profile: str) -> None:
    def produce(worker: Any) -> None:
        worker.ctx.waitUntil(worker.env.Q.send("x"))

    config = worker(produce, lambda batch, _: None)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == ["x"]
        assert codes(emulator) == []


async def test_a_refused_send_in_wait_until_is_a_finding() -> None:
    """1.17"""

    def produce(worker: Any) -> None:
        worker.ctx.waitUntil(worker.env.Q.send("x", contentType="bogus"))

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert codes(emulator) == ["background_error"]


async def test_sending_never_runs_the_consumer_on_the_spot() -> None:
    """S-16"""
    order = []

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("x")
        order.append("sent")
        await asyncio.sleep(0)
        order.append("answered")

    def consume(batch: Any, worker: Any) -> None:
        order.append("consumed")

    config = worker(produce, consume, consumer={"max_batch_timeout": 0})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert order == ["sent", "answered", "consumed"]


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_send_answers_with_the_backlog_before_it(profile: str) -> None:
    """1.2, 1.3; recording queue_send_return_value"""

    async def produce(worker: Any) -> list[Any]:
        q = worker.env.Q
        answers = [await q.send("x"), await q.send("x"), await q.sendBatch([{"body": 1}])]
        last = await q.metrics()
        return [
            [found.metadata.metrics.backlogCount, found["metadata"]["metrics"]["backlogBytes"]]
            for found in answers
        ] + [[last.backlogCount, last["backlogBytes"], str(last.oldestMessageTimestamp)]]

    assert await answer(produce, profile=profile) == [
        [0, 0],
        [1, 3],
        [2, 6],
        [3, 7, "2026-01-01 00:00:00"],
    ]


async def test_metrics_of_an_empty_queue_have_no_timestamp() -> None:
    """1.2"""

    async def produce(worker: Any) -> dict[str, Any]:
        return dict(await worker.env.Q.metrics())

    empty = {"backlogCount": 0, "backlogBytes": 0, "oldestMessageTimestamp": None}
    assert await answer(produce) == empty


async def test_metrics_count_no_delayed_message_but_the_sends_before() -> None:
    """1.3"""

    async def produce(worker: Any) -> int:
        q = worker.env.Q
        late, soon, found = q.send("late", delaySeconds=9), q.send("soon"), q.metrics()
        await asyncio.gather(late, soon)
        count: int = (await found).backlogCount
        return count

    assert await answer(produce) == 1


# -- limits ----------------------------------------------------------------------------------------


async def test_the_service_refuses_a_delay_beyond_a_day() -> None:
    """1.9; (a) 23"""
    for ok in (0, 43_201, 86_400):
        assert await error_of(lambda q, ok=ok: q.send("x", delaySeconds=ok)) == "sent"
    for bad in (-1, 86_401):
        text = await error_of(lambda q, bad=bad: q.send("x", delaySeconds=bad))
        assert text == f"Error: message delay of {bad} s is not between 0 and 86400 s (10203)"
        text = await error_of(lambda q, bad=bad: q.sendBatch([{"body": 1}], delaySeconds=bad))
        assert text.endswith("(10202)")
        texts = [
            await error_of(
                lambda q, bad=bad: q.send("x", delaySeconds=bad), profile="miniflare", **config
            )
            for config in ({}, OLDER_TEXTS)
        ]
        assert texts == [
            "Error: Unknown Internal Error (15000)",
            "Error: Queue send failed: Internal Server Error",
        ]


async def test_a_refused_message_is_not_stored() -> None:
    async def produce(worker: Any) -> str:
        try:
            await worker.env.Q.send("x" * 128_001, contentType="text")
        except JsException as error:
            return error.name
        return "sent"

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).json() == "Error"
        assert bodies(emulator) == []
        assert emulator.queues["q"].deliveries == []


# -- several Workers and queues --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["q", "my-queue", "my.queue", "My_Queue", "a/b", "my/ Queue", "ü", "q#1:x;*"]
)
async def test_any_queue_name_works(name: str) -> None:
    """8.6, S-04"""
    seen = []

    async def produce(worker: Any) -> None:
        await worker.env.THE_BINDING.send(1)

    def consume(batch: Any, worker: Any) -> None:
        seen.append(batch.queue)

    queues = {
        "producers": [{"binding": "THE_BINDING", "queue": name}],
        "consumers": [{"queue": name}],
    }
    async with Emulator(worker(produce, consume, queues=queues), profile="miniflare") as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert seen == [name]
        site = next(site for site in emulator.faults.sites if site.name.startswith("send"))
        again = str(site.faults(("request",))[0])
    async with Emulator(
        worker(produce, consume, queues=queues), profile="miniflare", faults=again
    ) as emulator:
        with pytest.raises(Exception, match="lost power"):
            await emulator.fetch("/")
        assert len(emulator.faults.fired) == 1


async def test_several_workers_send_into_one_queue() -> None:
    """O-08"""
    producers = {"producers": [{"binding": "Q", "queue": "q"}]}

    def named(name: str) -> dict[str, Any]:
        async def produce(worker: Any) -> None:
            await worker.env.Q.send(name)

        return worker(produce, queues=producers, name=name)

    consumer = worker(
        consume=lambda batch, _: None, queues={"consumers": [{"queue": "q"}]}, name="jobs"
    )
    async with Emulator([named("api"), named("site"), consumer]) as emulator:
        for name in ("api", "site", "api"):
            await emulator.fetch("/", worker=name)
        await emulator.settle()
        assert batches(emulator) == [(5, ["api", "site", "api"])]


async def test_a_worker_has_many_queues() -> None:
    names = [f"q{number}" for number in range(30)]
    queues = {
        "producers": [{"binding": name.upper(), "queue": name} for name in names],
        "consumers": [{"queue": name} for name in names],
    }
    seen: dict[str, list[Any]] = {}

    async def produce(worker: Any) -> None:
        for name in names:
            await getattr(worker.env, name.upper()).sendBatch([{"body": name}, {"body": 2}])

    def consume(batch: Any, worker: Any) -> None:
        seen[batch.queue] = [message.body for message in batch.messages]

    async with Emulator(worker(produce, consume, queues=queues)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert seen == {name: [name, 2] for name in names}


async def test_a_queue_that_nobody_consumes() -> None:
    """3.10; O-08; api.md 8"""

    async def produce(worker: Any) -> None:
        # The local runtime does not even look at it (1.12).
        for body in ("a", "b"):
            await worker.env.Q.send(body, delaySeconds=-1 if body == "b" else 0)

    async with Emulator(worker(produce), profile="miniflare") as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        await emulator.settle()
        assert (bodies(emulator), codes(emulator)) == ([], [])
        assert emulator.queues["q"].dropped == 2

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).status_code == 500
        await emulator.settle()
        assert clock(emulator) == 0
        assert bodies(emulator) == ["a"]
        finding = next(f for f in emulator.findings if f.code == "no_consumer")
        assert finding.message == "1 message in q, which no Worker consumes"
        emulator.queues["q"].purge()
        assert "no_consumer" not in [finding.code for finding in emulator.findings]


async def test_sends_of_a_consumer_are_kept_when_it_then_raises() -> None:
    """Recording queue_send_inside_then_throw"""

    async def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if message.body == "first":
                await worker.env.Q.send(f"from {message.attempts}", delaySeconds=60)
                raise ValueError("too late")

    config = worker(consume=consume, consumer={"max_batch_timeout": 0, "max_retries": 1})
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("first")
        await emulator.settle()
        assert deliveries(emulator) == [
            (0, "first", 1, "retry"),
            (0, "first", 2, "dropped"),
            (60, "from 1", 1, "ack"),
            (60, "from 2", 1, "ack"),
        ]


async def test_old_dates_send_through_raw_proxies() -> None:
    """python-api.md 0.2"""

    async def produce(worker: Any) -> None:
        from pyodide.ffi import to_js as convert

        await worker.env.Q.send(convert({"a": 1}), convert({"contentType": "v8"}))

    config = worker(
        produce,
        compatibility_date="2026-01-01",
        compatibility_flags=["python_workers"],
    )
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        # A LiteralMap, which structured clone refuses.
        assert response.status_code == 500
        assert "could not be cloned" in response.text
