"""The numbered scenarios of the reference on Cloudflare Queues, by Worker code, in both profiles.

Each test names its scenarios, `(a) 12`, in its docstring or its id, and takes nothing from the
emulator's inside: Workers send and consume, `Calls` keeps what their `queue` handler was given.
Scenarios 49 to 54 and the pull half of 47 are of the REST API, and tested with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException
from workbench import PROFILES, bodies, clock, codes, seconds, worker

from emulator import ConfigError, Emulator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, pytest.mark.parametrize("profile", PROFILES)]

AT_ONCE = {"max_batch_timeout": 0}
A_MOMENT = 0.1  # seconds: how long before its time a call is looked for in vain
LONG = 86_400  # seconds: how long nothing more may happen

Call = tuple[float, list[str]]
"""The second in which a handler was called, and its messages: `a#2` is body `a`, attempt 2."""


class Calls(list[Call]):
    """What the `queue` handler of a Worker was called with; `act(batch, worker)` is its work."""

    def __init__(self, act: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.act = act
        self.messages: list[Any] = []

    def __call__(self, batch: Any, worker: Any) -> Any:
        now = round(asyncio.get_running_loop().time(), 6)
        self.append((now, [f"{message.body}#{message.attempts}" for message in batch.messages]))
        self.messages += batch.messages
        return self.act(batch, worker) if self.act is not None else None

    async def are(self, emulator: Emulator, *expected: Call) -> None:
        """Let time pass: each call comes in its very second and not before, and no other one."""
        await emulator.advance(0)
        now = clock(emulator)
        assert self == [call for call in expected if call[0] <= now]
        for due in dict.fromkeys(at for at, _ in expected if at > now):
            await emulator.advance(due - clock(emulator) - A_MOMENT)
            assert self == [call for call in expected if call[0] < due]
            await emulator.advance(due - clock(emulator))
            assert self == [call for call in expected if call[0] <= due]
        await emulator.advance(LONG)
        await emulator.settle()
        assert self == list(expected)


def sends(*items: Any, **options: Any) -> Callable[[Any], Any]:
    """The fetch handler of a Worker that sends these bodies, each with these options."""

    async def produce(worker: Any) -> None:
        for item in items:
            await worker.env.Q.send(item, **options)

    return produce


def refuse(batch: Any, worker: Any) -> None:
    raise ValueError("refused")


def spread(*names: str) -> list[str]:
    """The first deliveries of messages."""
    return [f"{name}#1" for name in names]


# -- batches and timers ----------------------------------------------------------------------------

TEN_AND_FIVE = {"max_batch_size": 10, "max_batch_timeout": 5}
FIVE_AND_ONE = {"max_batch_size": 5, "max_batch_timeout": 1}
DEFAULTS = {"production": TEN_AND_FIVE, "miniflare": FIVE_AND_ONE}


@pytest.mark.parametrize("consumer", [{}, TEN_AND_FIVE, FIVE_AND_ONE], ids=str)
async def test_one_message_waits_for_the_time_out(profile: str, consumer: dict[str, int]) -> None:
    """(a) 1"""
    timeout = (consumer or DEFAULTS[profile])["max_batch_timeout"]
    calls = Calls()
    async with Emulator(worker(sends("a"), calls, consumer=consumer), profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (timeout, ["a#1"]))


@pytest.mark.parametrize("consumer", [{}, TEN_AND_FIVE, FIVE_AND_ONE], ids=str)
async def test_a_full_batch_goes_at_once(profile: str, consumer: dict[str, int]) -> None:
    """(a) 2"""
    size = (consumer or DEFAULTS[profile])["max_batch_size"]
    letters = "abcdefghij"[:size]
    calls = Calls()
    config = worker(sends(*letters[1:]), calls, consumer=consumer)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(0)
        assert calls == []
        await emulator.fetch("/")
        await calls.are(emulator, (0, spread(*letters)))


@pytest.mark.parametrize("took", [0, 3])
async def test_what_a_full_batch_leaves_waits(profile: str, took: float) -> None:
    """(a) 3; the time-out starts when the full batch has ended"""

    async def act(batch: Any, worker: Any) -> None:
        await asyncio.sleep(took)

    calls = Calls(act)
    config = worker(sends(*"abcdefg"), calls, consumer=FIVE_AND_ONE)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (0, spread(*"abcde")), (took + 1, spread(*"fg")))


@pytest.mark.parametrize("pause", [0, 0.5, 0.9])
async def test_what_a_full_batch_leaves_may_fill_another(profile: str, pause: float) -> None:
    """(a) 4"""
    calls = Calls()
    async with Emulator(worker(None, calls, consumer=FIVE_AND_ONE), profile=profile) as emulator:
        await emulator.queues["q"].send_batch(list("abcdef"))
        await emulator.advance(pause)
        await emulator.queues["q"].send_batch(list("ghijk"))
        await calls.are(
            emulator,
            (0, spread(*"abcde")),
            (pause, spread(*"fghij")),
            (pause + 1, ["k#1"]),
        )


async def test_send_and_send_batch_share_a_batch(profile: str) -> None:
    """(a) 5"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("a")
        await worker.env.Q.sendBatch([{"body": "b"}, {"body": "c"}])
        await worker.env.Q.send("d")

    calls = Calls()
    config = worker(produce, calls, consumer=FIVE_AND_ONE)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (1, spread(*"abcd")))


async def test_without_a_time_out_one_message_goes_at_once(profile: str) -> None:
    """(a) 6"""
    calls = Calls()
    async with Emulator(worker(sends("a"), calls, consumer=AT_ONCE), profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (0, ["a#1"]))


async def test_nothing_sent_is_nothing_delivered(profile: str) -> None:
    """(a) 7"""
    calls = Calls()
    async with Emulator(worker(None, calls), profile=profile) as emulator:
        await emulator.advance("1 hour")
        await calls.are(emulator)


# -- content types ---------------------------------------------------------------------------------

# A Worker of 2024, whose runtime knows no classes yet. JSON makes a text of a Date.
SENDS_A_DATE = """
from js import Date, Object, Response
from pyodide.ffi import to_js

async def on_fetch(request, env, ctx):
    body = {"a": 1, "at": Date.new(1767312000000)}
    await env.Q.send(to_js(body, dict_converter=Object.fromEntries))
    return Response.new(str((await env.Q.metrics()).backlogBytes))
"""


@pytest.mark.parametrize(
    ("date", "stored", "size"),
    [
        ("2024-03-18", "2026-01-02T00:00:00.000Z", 39),
        ("2024-03-17", datetime(2026, 1, 2, tzinfo=UTC), 23),
    ],
)
async def test_the_default_type_is_json_since_2024(
    profile: str, date: str, stored: Any, size: int, tmp_path: Path
) -> None:
    """(a) 8"""
    (tmp_path / "entry.py").write_text(SENDS_A_DATE)
    config = {
        "main": str(tmp_path / "entry.py"),
        "compatibility_date": date,
        "compatibility_flags": ["python_workers"],
        "queues": {"producers": [{"binding": "Q", "queue": "q"}], "consumers": [{"queue": "q"}]},
    }
    async with Emulator(config, profile=profile, queue_settings=PAUSED) as emulator:
        assert (await emulator.fetch("/")).text == str(size)
        assert bodies(emulator) == [{"a": 1, "at": stored}]


PAUSED = {"q": {"delivery_paused": True}}


@pytest.mark.parametrize(
    ("body", "options", "size"),
    [
        pytest.param({"a": 1}, {}, 7, id="8"),
        pytest.param("hi", {"contentType": "text"}, 2, id="9-text"),
        pytest.param("hi", {}, 4, id="9-json"),
        pytest.param({"a": "é"}, {}, 10, id="10"),
        pytest.param(None, {}, 4, id="13"),
        pytest.param("x", {"contentType": "TEXT"}, 1, id="14"),
    ],
)
async def test_a_body_arrives_and_counts_as_serialised(
    profile: str, body: Any, options: dict[str, Any], size: int
) -> None:
    """(a) 8, 9, 10, 13, 14"""
    seen: list[Any] = []

    async def produce(worker: Any) -> Any:
        await worker.env.Q.send(body, **options)
        return (await worker.env.Q.metrics())["backlogBytes"]

    def consume(batch: Any, worker: Any) -> None:
        seen.append([(message.body, message.attempts) for message in batch.messages])

    async with Emulator(worker(produce, consume), profile=profile) as emulator:
        assert (await emulator.fetch("/")).json() == size
        await emulator.settle()
    assert seen == [[(body, 1)]]


# -- what a send refuses ---------------------------------------------------------------------------

BEFORE, SINCE = "2026-03-11", "2026-03-12"  # when errors began to have a code (1.13)
MODERN = {"compatibility_flags": ["python_workers"]}


async def refusal(
    call: Callable[[Any], Any], profile: str, date: str = SINCE, **options: Any
) -> str:
    """How a Worker's call on its binding is refused, "" if it is not; delivered is what was not."""

    async def produce(worker: Any) -> str:
        try:
            await call(worker.env.Q)
        except JsException as error:
            return str(error)
        return ""

    calls = Calls()
    config = worker(produce, calls, compatibility_date=date, **MODERN)
    async with Emulator(config, profile=profile, **options) as emulator:
        text: str = (await emulator.fetch("/")).json()
        await emulator.settle()
        assert bodies(emulator) == []
        assert bool(calls) == (text == "")
    return text


def undefined() -> Any:
    from js import undefined

    return undefined


@pytest.mark.parametrize(
    ("call", "text"),
    [
        pytest.param(
            lambda q: q.send(123, contentType="text"),
            'Content Type "text" requires a value of type string, but received: number',
            id="11",
        ),
        pytest.param(
            lambda q: q.send("x", contentType="bytes"),
            'Content Type "bytes" requires a value of type ArrayBufferView, but received: string',
            id="12",
        ),
        pytest.param(
            lambda q: q.send(undefined()), "Message body cannot be undefined", id="13-send"
        ),
        pytest.param(lambda q: q.sendBatch([{}]), "Message body cannot be undefined", id="13"),
        pytest.param(
            lambda q: q.send("x", contentType="bogus"),
            "Unsupported queue message content type: bogus",
            id="14",
        ),
        pytest.param(
            lambda q: q.sendBatch([{"body": "x", "contentType": "TEXT"}]),
            "Unsupported queue message content type: TEXT",
            id="14-case",
        ),
        pytest.param(
            lambda q: q.sendBatch([]), "sendBatch() requires at least one message", id="15"
        ),
        pytest.param(
            lambda q: q.sendBatch([{"body": 1}, {"body": 2, "contentType": "text"}, {"body": 3}]),
            'Content Type "text" requires a value of type string, but received: number',
            id="19",
        ),
    ],
)
async def test_what_the_runtime_refuses_is_a_type_error_and_nothing_is_sent(
    profile: str, call: Callable[[Any], Any], text: str
) -> None:
    """(a) 11 to 15, 19"""
    assert await refusal(call, profile) == f"TypeError: {text}"


ACCEPTED = ("", 0)
TOO_LONG = ("message length of 128001 bytes exceeds limit of 128000", 10204)
TOO_MANY = ("batch message count of 101 exceeds limit of 100", 10206)


def too_much(size: int) -> tuple[str, int]:
    return (f"batch size of {size} bytes exceeds limit of 256000 bytes", 10205)


@pytest.mark.parametrize("date", [BEFORE, SINCE])
@pytest.mark.parametrize(
    ("sizes", "production", "miniflare"),
    [
        pytest.param(128_000, ACCEPTED, ACCEPTED, id="16"),
        pytest.param(128_001, TOO_LONG, TOO_LONG, id="16-over"),
        pytest.param([1] * 100, ACCEPTED, ACCEPTED, id="17"),
        pytest.param([1] * 101, TOO_MANY, TOO_MANY, id="17-over"),
        pytest.param([128_000, 128_000], ACCEPTED, ACCEPTED, id="18"),
        pytest.param([128_000, 128_000, 1], too_much(256_001), ACCEPTED, id="18-over"),
        pytest.param([96_000, 96_000, 96_000], too_much(288_000), ACCEPTED, id="18-local"),
        pytest.param(
            [96_001, 96_000, 96_000],
            too_much(288_001),
            ("batch size of 288001 bytes exceeds limit of 288000", 10205),
            id="18-local-over",
        ),
    ],
)
async def test_limits_of_size_and_how_their_text_depends_on_the_date(
    profile: str,
    date: str,
    sizes: int | list[int],
    production: tuple[str, int],
    miniflare: tuple[str, int],
) -> None:
    """(a) 16, 17, 18, 56"""

    def call(q: Any) -> Any:
        if isinstance(sizes, int):
            return q.send("x" * sizes, contentType="text")
        return q.sendBatch([{"body": "x" * size, "contentType": "text"} for size in sizes])

    cause, code = production if profile == "production" else miniflare
    verb = "send" if isinstance(sizes, int) else "sendBatch"
    assert await refusal(call, profile, date) == told(profile, date, verb, cause, code)


def told(profile: str, date: str, verb: str, cause: str, code: int) -> str:
    """The text of an error of the service (1.13)."""
    if not cause:
        return ""
    if date == BEFORE:
        return f"Error: Queue {verb} failed: {cause}"
    local = profile == "miniflare"
    return "Error: Unknown Internal Error (15000)" if local else f"Error: {cause} ({code})"


@pytest.mark.parametrize("date", [BEFORE, SINCE])
@pytest.mark.parametrize("delay", [-1, 0, 43_201, 86_400, 86_401])
@pytest.mark.parametrize("verb", ["send", "sendBatch", "item"])
async def test_the_range_of_a_delay(profile: str, verb: str, delay: int, date: str) -> None:
    """(a) 23, 56"""
    ways = {
        "send": lambda q: q.send("x", delaySeconds=delay),
        "sendBatch": lambda q: q.sendBatch([{"body": "x"}], delaySeconds=delay),
        "item": lambda q: q.sendBatch([{"body": "x", "delaySeconds": delay}]),
    }
    cause = f"message delay of {delay} s is not between 0 and 86400 s"
    if profile == "miniflare":
        cause = "Internal Server Error"
    if 0 <= delay <= 86_400:
        cause = ""
    name, code = ("send", 10203) if verb == "send" else ("sendBatch", 10202)
    assert await refusal(ways[verb], profile, date) == told(profile, date, name, cause, code)


# -- delays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [30, 43_201, 86_400])
async def test_a_delayed_message_keeps_the_time_it_was_sent(profile: str, delay: int) -> None:
    """(a) 20, 23"""
    calls = Calls()
    config = worker(sends("a", delaySeconds=delay), calls, consumer=AT_ONCE)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (delay, ["a#1"]))
        assert [message.timestamp for message in calls.messages] == [datetime(2026, 1, 1)]


async def test_each_item_of_a_batch_comes_after_its_own_delay(profile: str) -> None:
    """(a) 21"""
    items = [{"body": "a"}, {"body": "b", "delaySeconds": 0}, {"body": "c", "delaySeconds": 10}]
    calls = Calls()
    config = worker(lambda worker: worker.env.Q.sendBatch(items, delaySeconds=5), calls)
    config["queues"]["consumers"][0].update(AT_ONCE)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (0, ["b#1"]), (5, ["a#1"]), (10, ["c#1"]))


async def test_zero_overrides_the_delay_of_the_queue(profile: str) -> None:
    """(a) 22"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("a")
        await worker.env.Q.send("b", delaySeconds=0)

    calls = Calls()
    config = worker(produce, calls, consumer=AT_ONCE)
    settings = {"q": {"delivery_delay": 60}}
    async with Emulator(config, profile=profile, queue_settings=settings) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (0, ["b#1"]), (60, ["a#1"]))


# -- attempts and the dead letter queue ------------------------------------------------------------


async def test_what_a_handler_returns_from_is_done(profile: str) -> None:
    """(a) 24"""
    calls = Calls()
    async with Emulator(worker(sends(*"abc"), calls), profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, (DEFAULTS[profile]["max_batch_timeout"], spread(*"abc")))
        assert (bodies(emulator), emulator.queues["q"].acked) == ([], 3)


@pytest.mark.parametrize(
    ("consumer", "times"),
    [
        pytest.param({"max_retries": 3}, [0, 0, 0, 0], id="25"),
        pytest.param({"max_retries": 0}, [0], id="26"),
        pytest.param({"max_retries": 0, "retry_delay": 5}, [0], id="26-delay"),
        pytest.param({"max_retries": 2, "retry_delay": 5}, [0, 5, 10], id="27"),
    ],
)
async def test_a_message_that_always_fails_is_dropped(
    profile: str, consumer: dict[str, int], times: list[float]
) -> None:
    """(a) 25, 26, 27"""
    calls = Calls(refuse)
    config = worker(sends("a"), calls, consumer={**AT_ONCE, **consumer})
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, *[(at, [f"a#{n}"]) for n, at in enumerate(times, 1)])
        queue = emulator.queues["q"]
        assert (queue.backlog, queue.dropped, queue.acked) == ([], 1, 0)
        assert codes(emulator) == ["message_dropped"]


async def test_the_number_of_deliveries_by_default(profile: str) -> None:
    """(a) 25"""
    calls = Calls(refuse)
    async with Emulator(worker(sends("a"), calls, consumer=AT_ONCE), profile=profile) as emulator:
        await emulator.fetch("/")
        last = {"production": 4, "miniflare": 3}[profile]
        await calls.are(emulator, *[(0, [f"a#{attempt}"]) for attempt in range(1, last + 1)])


async def test_a_dead_letter_is_the_same_message_with_new_attempts(profile: str) -> None:
    """(a) 28"""
    seen: list[tuple[Any, ...]] = []

    def consume(batch: Any, worker: Any) -> None:
        now = asyncio.get_running_loop().time()
        seen.extend(
            (now, batch.queue, m.body, m.attempts, m.id, m.timestamp) for m in batch.messages
        )
        if batch.queue == "q":
            raise ValueError("refused")

    queues = {
        "producers": [{"binding": "Q", "queue": "q"}],
        "consumers": [
            {"queue": "q", "max_retries": 2, "dead_letter_queue": "d", "max_batch_timeout": 4},
            {"queue": "d", "max_batch_timeout": 7},
        ],
    }
    config = worker(sends({"n": 1}), consume, queues=queues)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        (id,) = {record.id for record in emulator.queues["q"].deliveries}
        sent = (id, datetime(2026, 1, 1))
        assert seen == [
            (4, "q", {"n": 1}, 1, *sent),
            (8, "q", {"n": 1}, 2, *sent),
            (12, "q", {"n": 1}, 3, *sent),
            (19, "d", {"n": 1}, 1, *sent),
        ]
        assert emulator.queues["q"].dead_lettered == emulator.queues["d"].acked == 1
        assert codes(emulator) == []


# -- acks and retries ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """Calls on a batch of m0, m1, m2, and in which second which of them come again."""

    scenario: str
    code: str
    again: dict[float, str]
    locally: dict[float, str] | None = None  # where it differs
    warning: str = ""
    retry_delay: int = 0

    def expected(self, profile: str) -> list[Call]:
        found = self.again if profile == "production" or self.locally is None else self.locally
        first = (0.0, spread("m0", "m1", "m2"))
        return [first, *[(at, [f"{m}#2" for m in names.split()]) for at, names in found.items()]]


ALL, NONE = {0: "m0 m1 m2"}, dict[float, str]()
ON = "Received a call to {0}() on message {{}} after {1}() was already called. "
ON += "Calling {0}() on a message after calling {1}() has no effect."
OF_BATCH = "Received a call to {0}() after {1}() was already called. "
OF_BATCH += "Calling {0}() after calling {1}() has no effect."

ROWS = [
    Row("29", "m0.ack(); 1 / 0", {0: "m1 m2"}, ALL),
    Row("30", "batch.ackAll(); 1 / 0", NONE, ALL),
    Row("31", "m0.ack(); m0.retry()", NONE, warning=ON.format("retry", "ack")),
    Row("32", "m0.retry(); m0.ack()", {0: "m0"}, warning=ON.format("ack", "retry")),
    Row("33", "m1.retry(delaySeconds=3)", {3: "m1"}),
    Row("34", "m0.retry(delaySeconds=2); m0.retry()", {0: "m0"}),
    Row("34-set", "m0.retry(delaySeconds=2); m0.retry()", {10: "m0"}, retry_delay=10),
    Row("35", "batch.retryAll(delaySeconds=7); batch.retryAll()", {7: "m0 m1 m2"}),
    Row(
        "36",
        "batch.retryAll(delaySeconds=2); m0.retry(delaySeconds=0)",
        {0: "m0", 2: "m1 m2"},
    ),
    Row("37", "m0.ack(); batch.retryAll()", {0: "m1 m2"}, ALL),
    Row("38", "m0.retry(); batch.ackAll()", {0: "m0"}),
    Row(
        "39-ack",
        "batch.ackAll(); batch.retryAll()",
        NONE,
        warning=OF_BATCH.format("retryAll", "ackAll"),
    ),
    Row(
        "39-retry",
        "batch.retryAll(); batch.ackAll()",
        ALL,
        warning=OF_BATCH.format("ackAll", "retryAll"),
    ),
    Row(
        "40",
        "m0.retry(delaySeconds=0); m1.retry()",
        {0: "m0", 10: "m1"},
        retry_delay=10,
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.scenario)
async def test_which_messages_come_again_and_when(profile: str, row: Row) -> None:
    """(a) 29 to 40"""
    program = compile(row.code, "calls", "exec")

    def act(batch: Any, worker: Any) -> None:
        if batch.messages[0].attempts == 1:
            m0, m1, m2 = batch.messages
            exec(program, {"batch": batch, "m0": m0, "m1": m1, "m2": m2})

    calls = Calls(act)
    consumer = {**AT_ONCE, "max_batch_size": 3, "retry_delay": row.retry_delay}
    config = worker(sends("m0", "m1", "m2"), calls, consumer=consumer)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await calls.are(emulator, *row.expected(profile))
        assert (bodies(emulator), emulator.queues["q"].acked) == ([], 3)
        warning = row.warning.format(calls.messages[0].id)
        found = [f.message for f in emulator.findings if f.code == "ignored_ack"]
        assert found == [warning] * bool(warning)
        # What of it is logged has the same words.
        assert [log.text for log in emulator.logs if log.level == "warn"] == found


# -- background work -------------------------------------------------------------------------------


async def fail_in_a_second() -> None:
    await asyncio.sleep(1)
    raise ValueError("too late")


@pytest.mark.parametrize("flagged", [False, True])
async def test_a_failed_background_task_fails_the_batch(profile: str, flagged: bool) -> None:
    """(a) 41"""

    def act(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "a" and batch.messages[0].attempts == 1:
            batch.messages[0].ack()
            worker.ctx.waitUntil(fail_in_a_second())

    calls = Calls(act)
    flags = ["python_workers", *["queue_consumer_no_wait_for_wait_until"] * flagged]
    config = worker(sends(*"abc"), calls, consumer=AT_ONCE, compatibility_flags=flags)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        unacked = {"production": ["b#2", "c#2"], "miniflare": ["a#2", "b#2", "c#2"]}[profile]
        again = [] if flagged else [(1.0, unacked)]
        await calls.are(emulator, (0, spread(*"abc")), *again)
        assert codes(emulator) == ["background_error"] * flagged


@pytest.mark.parametrize("flagged", [False, True])
async def test_background_work_holds_the_next_batch_up(profile: str, flagged: bool) -> None:
    """(a) 42"""

    def act(batch: Any, worker: Any) -> None:
        worker.ctx.waitUntil(asyncio.sleep(1.5))

    calls = Calls(act)
    flags = ["python_workers", *["queue_consumer_no_wait_for_wait_until"] * flagged]
    consumer = {**AT_ONCE, "max_batch_size": 1}
    config = worker(sends(*"abc"), calls, consumer=consumer, compatibility_flags=flags)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        times = [0, 0, 0] if flagged else [0, 1.5, 3]
        await calls.are(
            emulator, *[(at, [f"{body}#1"]) for at, body in zip(times, "abc", strict=True)]
        )


# -- what else a consumer sees ---------------------------------------------------------------------


async def test_a_batch_tells_what_it_left_behind(profile: str) -> None:
    """(a) 43"""
    seen = []

    def consume(batch: Any, worker: Any) -> None:
        left = batch.metadata.metrics
        oldest = left.get("oldestMessageTimestamp")
        seen.append((len(batch.messages), left["backlogCount"], left["backlogBytes"], oldest))

    config = worker(sends("x"), consume, consumer={"max_batch_size": 5})
    async with Emulator(config, profile=profile, queue_settings=PAUSED) as emulator:
        for _ in range(8):
            await emulator.fetch("/")
            await emulator.advance(1)
        # What is delayed is not counted.
        await emulator.queues["q"].send("late", delaySeconds=60)
        emulator.queues["q"].resume()
        await emulator.settle()
    sixth = datetime(2026, 1, 1, 0, 0, 5)
    assert seen == [(5, 3, 9, sixth), (3, 0, 0, None), (1, 0, 0, None)]


async def test_a_worker_without_a_queue_handler_fails_each_delivery(profile: str) -> None:
    """(a) 44"""
    config = worker(sends("a"), consumer={**AT_ONCE, "max_retries": 2})
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        queue = emulator.queues["q"]
        assert [(seconds(d.at), d.attempt, d.outcome) for d in queue.deliveries] == [
            (0, 1, "retry"),
            (0, 2, "retry"),
            (0, 3, "dropped"),
        ]
        text = "Error: Handler does not export a queue() function."
        assert [str(record.error) for record in queue.deliveries] == [text] * 3
        warning = (
            "Received a QueueEvent but we lack a handler for QueueEvents. "
            "Did you remember to export a queue() function?"
        )
        assert [log.text for log in emulator.logs].count(warning) == 3
        assert (queue.backlog, queue.dropped) == ([], 1)
        assert codes(emulator) == ["missing_handler", "message_dropped"]


async def test_what_a_config_of_queues_must_not_say(profile: str) -> None:
    """(a) 45"""
    two = [{**worker(None, refuse), "name": name} for name in ("a", "b")]
    with pytest.raises(ConfigError, match='Multiple consumers defined for queue "q": "a" and "b"'):
        Emulator(two, profile=profile)
    with pytest.raises(ConfigError, match='Dead letter queue for queue "q" cannot be itself'):
        Emulator(worker(None, refuse, consumer={"dead_letter_queue": "q"}), profile=profile)


async def test_retried_messages_and_newer_ones_by_when_they_became_available(profile: str) -> None:
    """(a) 46"""

    async def act(batch: Any, worker: Any) -> None:
        await asyncio.sleep(1)
        for message in batch.messages:
            if message.body in ("r1", "r2") and message.attempts == 1:
                message.retry()

    calls = Calls(act)
    config = worker(None, calls, consumer={"max_batch_size": 4, "max_batch_timeout": 3})
    async with Emulator(config, profile=profile) as emulator:
        await emulator.queues["q"].send_batch(["r1", "r2", "x", "y"])
        await emulator.advance(1)  # the batch has just ended, r1 and r2 are back
        await emulator.queues["q"].send("b")
        await emulator.queues["q"].send("c")
        await calls.are(
            emulator, (0, spread("r1", "r2", "x", "y")), (1, ["r1#2", "r2#2", "b#1", "c#1"])
        )


# -- pause, purge, retention -----------------------------------------------------------------------


async def test_a_paused_queue_takes_and_does_not_deliver(profile: str) -> None:
    """(a) 47, the half that pushes"""
    calls = Calls()
    config = worker(sends("a"), calls, consumer=FIVE_AND_ONE)
    async with Emulator(config, profile=profile) as emulator:
        queue = emulator.queues["q"]
        queue.pause()
        assert (await emulator.fetch("/")).status_code == 200
        await emulator.advance(60)
        await emulator.settle()
        assert (calls, bodies(emulator)) == ([], ["a"])
        queue.resume()
        await calls.are(emulator, (60, ["a#1"]))
        assert (queue.backlog, queue.acked) == ([], 1)


async def test_purging_takes_what_is_ready_and_what_is_delayed(profile: str) -> None:
    """(a) 48"""

    async def produce(worker: Any) -> None:
        for index, body in enumerate("abcde"):
            await worker.env.Q.send(body, delaySeconds=30 * (index > 2))

    calls = Calls()
    config = worker(produce, calls)
    async with Emulator(config, profile=profile) as emulator:
        await emulator.fetch("/")
        assert bodies(emulator) == list("abcde")
        emulator.queues["q"].purge()
        assert bodies(emulator) == []
        await calls.are(emulator)
        assert emulator.queues["q"].deliveries == []
        # The queue itself goes on.
        await emulator.queues["q"].send("f")
        await emulator.settle()
        assert calls == [(clock(emulator), ["f#1"])]


@pytest.mark.parametrize(("waited", "delivered"), [(59, ["a#1"]), (61, [])])
async def test_retention_ends_in_a_paused_queue_too(
    profile: str, waited: int, delivered: list[str]
) -> None:
    """(a) 55"""
    calls = Calls()
    settings = {"q": {"message_retention_period": 60, "delivery_paused": True}}
    config = worker(sends("a"), calls, consumer=AT_ONCE)
    async with Emulator(config, profile=profile, queue_settings=settings) as emulator:
        await emulator.fetch("/")
        await emulator.advance(waited)
        assert (len(emulator.queues["q"].backlog), emulator.queues["q"].expired) == (
            len(delivered),
            1 - len(delivered),
        )
        emulator.queues["q"].resume()
        await calls.are(emulator, *[(waited, delivered)] * bool(delivered))
        assert codes(emulator) == []
