"""Bodies, options, handlers and calls that are wrong: what happens, and what does not.

Whatever a Worker does, no message is lost without a word and nothing hangs: the books of a queue
balance at the end of each test. Numbers such as 1.6 are rules of the reference on Cloudflare
Queues.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException, to_js
from workbench import PROFILES, START, bodies, clock, codes, deliveries, worker
from workers import Response, WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.asyncio

AT_ONCE = {"max_batch_timeout": 0}
# Of real seconds; nothing here takes one.
HANGS = 60


def assert_balanced(emulator: Emulator, sent: int, queue: str = "q") -> None:
    """Every message that was sent is accounted for, once."""
    found = emulator.queues[queue]
    kept = len(found.backlog) + len(found.in_flight)
    assert found.acked + found.dead_lettered + found.dropped + found.expired + kept == sent


def with_handler(queue: Any, **consumer: Any) -> dict[str, Any]:
    """The config of a Worker whose member `queue` is this, as it stands."""
    main = type("Default", (WorkerEntrypoint,), {"queue": queue})
    return {"main": main, "queues": {"consumers": [{"queue": "q", **AT_ONCE, **consumer}]}}


async def consumed(queue: Any, *sent: Any, **consumer: Any) -> Emulator:
    """An emulator, closed, whose consumer got these bodies as one batch."""
    async with Emulator(with_handler(queue, **consumer)) as emulator:
        await emulator.queues["q"].send_batch(sent or ("a", "b"))
        await asyncio.wait_for(emulator.settle(), HANGS)
        assert_balanced(emulator, len(sent or ("a", "b")))
        assert bodies(emulator) == []
    return emulator


def outcomes(emulator: Emulator) -> list[str]:
    return [record.outcome for record in emulator.queues["q"].deliveries]


# -- too large (1.12, 1.13) ------------------------------------------------------------------------

BEFORE, SINCE = "2026-03-11", "2026-03-12"
# What structured clone writes beside the characters: header, tag, length.
CLONE_HEADER = {1: 4, 2: 5, 3: 6}


def body_of(content_type: str, size: int) -> Any:
    """A body that is serialised to this many bytes."""
    if content_type == "bytes":
        return b"x" * size
    if content_type == "text":
        return "x" * size
    if content_type == "json":
        return "x" * (size - 2)
    digits = 1 if size < 132 else 2 if size < 16_389 else 3
    return "x" * (size - CLONE_HEADER[digits])


def refusal(verb: str, cause: str, code: int, profile: str, date: str) -> str:
    """How the caller sees it."""
    if date == BEFORE:
        return f"Error: Queue {verb} failed: {cause}"
    return f"Error: {cause} ({code})" if profile == "production" else LOCAL_ERROR


LOCAL_ERROR = "Error: Unknown Internal Error (15000)"
SINGLE = "message length of {} bytes exceeds limit of 128000"
IN_BATCH = "message in batch has length {} bytes which exceeds single message size limit of 128000"


async def sizes_sent(
    sizes: list[int], *, verb: str, content_type: str, profile: str, date: str
) -> str:
    """The error of a send of bodies of these sizes, or "sent"; what is stored is checked."""

    async def produce(worker: Any) -> str:
        items = [{"body": body_of(content_type, n), "contentType": content_type} for n in sizes]
        try:
            if verb == "send":
                await worker.env.Q.send(items[0]["body"], contentType=content_type)
            else:
                await worker.env.Q.sendBatch(items)
        except JsException as error:
            return str(error)
        assert (await worker.env.Q.metrics()).backlogBytes == sum(sizes)
        return "sent"

    # Of the newest SDK, whatever the date.
    flags = ["python_workers", "enable_python_external_sdk"]
    config = worker(
        produce, lambda batch, _: None, compatibility_date=date, compatibility_flags=flags
    )
    async with Emulator(config, profile=profile) as emulator:
        emulator.queues["q"].pause()
        text: str = (await emulator.fetch("/")).json()
        assert len(bodies(emulator)) == (len(sizes) if text == "sent" else 0)
        assert emulator.queues["q"].deliveries == []
        assert codes(emulator) == []
        return text


@pytest.mark.parametrize("date", [BEFORE, SINCE])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("content_type", ["text", "bytes", "json", "v8"])
async def test_a_message_may_have_128_000_bytes_as_it_is_serialised(
    content_type: str, profile: str, date: str
) -> None:
    """1.12, 1.13; S-05"""
    given: dict[str, Any] = {"content_type": content_type, "profile": profile, "date": date}
    for verb, text in (("send", SINGLE), ("sendBatch", IN_BATCH)):
        assert await sizes_sent([128_000], verb=verb, **given) == "sent"
        refused = refusal(verb, text.format(128_001), 10204, profile, date)
        assert await sizes_sent([128_001], verb=verb, **given) == refused
    assert await sizes_sent([9, 128_001, 9], verb="sendBatch", **given) == refused


@pytest.mark.parametrize("date", [BEFORE, SINCE])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("content_type", ["text", "bytes", "json", "v8"])
async def test_a_batch_may_have_a_hundred_messages_and_so_many_bytes(
    content_type: str, profile: str, date: str
) -> None:
    """1.12, 1.13; S-05"""
    given: dict[str, Any] = {
        "verb": "sendBatch",
        "content_type": content_type,
        "profile": profile,
        "date": date,
    }
    most = 256_000 if profile == "production" else 288_000
    assert await sizes_sent([9] * 100, **given) == "sent"
    cause = "batch message count of 101 exceeds limit of 100"
    refused = refusal("sendBatch", cause, 10206, profile, date)
    assert await sizes_sent([9] * 101, **given) == refused
    assert await sizes_sent([100_000, 100_000, most - 200_000], **given) == "sent"
    unit = " bytes" if profile == "production" else ""
    cause = f"batch size of {most + 1} bytes exceeds limit of {most}{unit}"
    refused = refusal("sendBatch", cause, 10205, profile, date)
    assert await sizes_sent([100_000, 100_001, most - 200_000], **given) == refused


async def test_what_is_refused_leaves_what_was_sent_before() -> None:
    """1.15"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send("before")
        with pytest.raises(JsException):
            await worker.env.Q.sendBatch([{"body": "with it"}, {"body": "x" * 128_000}])
        await worker.env.Q.send("after")

    async with Emulator(worker(produce, lambda batch, _: None)) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert bodies(emulator) == ["before", "after"]
        await emulator.settle()
        assert_balanced(emulator, 2)


# -- options ---------------------------------------------------------------------------------------


async def sent_with(call: Any, profile: str = "production") -> Any:
    """The delay in seconds that a call leads to, or the text of its error, and the findings."""

    async def produce(worker: Any) -> str:
        try:
            await call(worker.env.Q)
        except (JsException, TypeError) as error:
            return str(error)
        return "sent"

    config = worker(produce, lambda batch, _: None)
    settings = {"q": {"delivery_delay": 60}}
    async with Emulator(config, profile=profile, queue_settings=settings) as emulator:
        text = (await emulator.fetch("/")).json()
        waiting = emulator.queues["q"].backlog
        assert len(waiting) == (1 if text == "sent" else 0)
        found = [finding.code for finding in emulator.findings]
        return ((waiting[0].due - START).total_seconds() if waiting else text), found


BIGINT = "TypeError: Cannot convert a BigInt value to a number"
INT32 = "TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."
WRONG = "TypeError: Failed to execute 'send' on 'WorkerQueue': parameter 2 is not of type "
NO_TUPLE = "<class 'tuple'> cannot be sent over RPC."
UNKNOWN = "TypeError: Unsupported queue message content type: "


@pytest.mark.parametrize(
    ("call", "expected", "found"),
    [
        # Keywords become an argument of their own; JavaScript reads the first options only.
        (lambda q: q.send("x", {"delaySeconds": 7}, delaySeconds=9), 7, []),
        (lambda q: q.send("x", {}, delaySeconds=9), 60, []),
        (lambda q: q.send("x", None), 60, []),
        (lambda q: q.send("x", {}), 60, []),
        # Any object will do, whatever is in it.
        (lambda q: q.send("x", []), 60, []),
        (lambda q: q.send("x", b"ab"), 60, []),
        (lambda q: q.send("x", len), 60, []),
        (lambda q: q.send("x", {"delay": 5, "Delayseconds": 5}), 60, ["ignored_option"] * 2),
        (lambda q: q.send("x", {5: 5}), 60, ["ignored_option"]),
        (lambda q: q.send("x", 5), f"{WRONG}'SendOptions'.", []),
        (lambda q: q.send("x", True), f"{WRONG}'SendOptions'.", []),
        (lambda q: q.send("x", "text"), f"{WRONG}'SendOptions'.", []),
        (lambda q: q.send("x", ("text",)), NO_TUPLE, []),
        # Numbers are what JavaScript makes of them.
        (lambda q: q.send("x", delaySeconds="5"), 5, []),
        (lambda q: q.send("x", delaySeconds=" 0x10 "), 16, []),
        (lambda q: q.send("x", delaySeconds="5 seconds"), 0, []),
        (lambda q: q.send("x", delaySeconds=""), 0, []),
        (lambda q: q.send("x", delaySeconds=5.99), 5, []),
        (lambda q: q.send("x", delaySeconds=-0.99), 0, []),
        (lambda q: q.send("x", delaySeconds=float("-inf")), 0, []),
        (lambda q: q.send("x", delaySeconds=True), 1, []),
        (lambda q: q.send("x", delaySeconds=None), 0, ["ignored_option"]),
        (lambda q: q.send("x", delaySeconds=[5]), 5, []),
        (lambda q: q.send("x", delaySeconds=[]), 0, []),
        (lambda q: q.send("x", delaySeconds=[5, 6]), 0, []),
        (lambda q: q.send("x", delaySeconds={}), 0, []),
        (lambda q: q.send("x", delaySeconds=object()), 0, []),
        (lambda q: q.send("x", delaySeconds=timedelta(seconds=5)), 0, []),
        (lambda q: q.send("x", delaySeconds=(5,)), NO_TUPLE, []),
        (lambda q: q.send("x", delaySeconds=2**53), BIGINT, []),
        (lambda q: q.send("x", delaySeconds=10**400), BIGINT, []),
        (lambda q: q.send("x", delaySeconds=1e300), INT32, []),
        (lambda q: q.send("x", contentType=5), f"{UNKNOWN}5", []),
        (lambda q: q.send("x", contentType=True), f"{UNKNOWN}true", []),
        (lambda q: q.send("x", contentType={}), f"{UNKNOWN}[object Object]", []),
        (lambda q: q.send("x", contentType=" json"), f"{UNKNOWN} json", []),
        # Without a positional body the keywords are the body.
        (lambda q: q.send(body="x", delaySeconds=5), 60, []),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_options_are_what_javascript_makes_of_them(
    call: Any, expected: Any, found: list[str], profile: str
) -> None:
    """1.6, 1.8; 10.1; python-api.md 0.6, 1.5"""
    assert await sent_with(call, profile) == (expected, found)


@pytest.mark.parametrize("seconds", [-1, -(2**31), 86_401, 2**31 - 1])
async def test_a_delay_that_the_service_refuses_stores_nothing(seconds: int) -> None:
    """1.9"""
    text = f"Error: message delay of {seconds} s is not between 0 and 86400 s"
    assert await sent_with(lambda q: q.send("x", delaySeconds=seconds)) == (f"{text} (10203)", [])
    batch = await sent_with(lambda q: q.sendBatch([{"body": 1, "delaySeconds": seconds}]))
    assert batch == (f"{text} (10202)", [])


async def test_keywords_that_were_meant_as_a_body_are_the_body() -> None:
    """python-api.md 0.6: keywords become a trailing object."""
    async with Emulator(worker(lambda w: w.env.Q.send(delaySeconds=5))) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert bodies(emulator) == [{"delaySeconds": 5}]
        assert emulator.queues["q"].backlog[0].due == START


# -- what is no batch ------------------------------------------------------------------------------


class HalfWay:
    """An iterable that raises after its first item, from a given iteration on."""

    def __init__(self, good: int = 0) -> None:
        self.good = good

    def __iter__(self) -> Iterator[Any]:
        self.good -= 1
        yield {"body": 1}
        if self.good < 0:
            raise LookupError("half way")


def half_way() -> Iterator[Any]:
    yield {"body": 1}
    raise LookupError("half way")


NO_SEQUENCE = (
    "TypeError: Failed to execute 'sendBatch' on 'WorkerQueue': parameter 1 is not of type "
    "'Sequence'."
)
NO_REQUEST = "TypeError: Incorrect type: the provided value is not of type 'MessageSendRequest'."
NO_BODY = "TypeError: Message body cannot be undefined"
EMPTY = "TypeError: sendBatch() requires at least one message"


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (lambda: None, NO_SEQUENCE),
        (lambda: {"body": 1}, NO_SEQUENCE),
        (lambda: "ab", NO_SEQUENCE),
        (lambda: 5, NO_SEQUENCE),
        (lambda: len, NO_SEQUENCE),
        (lambda: ({"body": 1},), NO_TUPLE),
        (lambda: b"ab", NO_REQUEST),
        (lambda: {1, 2}, NO_REQUEST),
        (lambda: range(3), NO_REQUEST),
        (lambda: ["a"], NO_REQUEST),
        (lambda: [{"body": 1}, 5], NO_REQUEST),
        (lambda: [None], NO_BODY),
        (lambda: [["a"]], NO_BODY),
        (lambda: [b"a"], NO_BODY),
        (lambda: [len], NO_BODY),
        (lambda: [{"body": 1}, {"Body": 2}], NO_BODY),
        (lambda: [{"body": 1}, ({"body": 2},)], NO_TUPLE),
        (list, EMPTY),
        (deque, EMPTY),
        (lambda: iter(()), EMPTY),
        # The SDK looks through an iterable first, which uses up a generator (python-api.md 1.5).
        (lambda: ({"body": number} for number in range(3)), EMPTY),
        (lambda: map(dict, [[("body", 1)]]), EMPTY),
        (half_way, "half way"),
        (HalfWay, "half way"),
        (lambda: HalfWay(1), "half way"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_is_no_list_of_messages_sends_nothing(
    items: Callable[[], Any], text: str, profile: str
) -> None:
    """1.1, 1.6, 1.15"""

    async def produce(worker: Any) -> str:
        try:
            await worker.env.Q.sendBatch(items())
        except (JsException, TypeError, LookupError) as error:
            return str(error)
        return "sent"

    async with Emulator(worker(produce, lambda batch, _: None), profile=profile) as emulator:
        assert (await emulator.fetch("/")).json() == text
        await emulator.settle()
        assert deliveries(emulator) == []
        assert_balanced(emulator, 0)


@pytest.mark.parametrize(
    "items",
    [
        lambda: [{"body": 1}, {"body": 2}],
        lambda: deque([{"body": 1}, {"body": 2}]),
        lambda: {"a": {"body": 1}, "b": {"body": 2}}.values(),
        lambda: to_js([{"body": 1}, {"body": 2}]),
        lambda: [{"body": 1, "contentType": "json"}, {"body": 2, "delaySeconds": 0}],
    ],
)
async def test_anything_that_can_be_iterated_twice_is_a_batch(items: Callable[[], Any]) -> None:
    """1.1"""
    async with Emulator(worker(lambda w: w.env.Q.sendBatch(items()))) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert bodies(emulator) == [1, 2]


@pytest.mark.parametrize("name", ["send_batch", "sendbatch", "Send", "put", "metrics_"])
async def test_a_method_that_is_not_there_is_an_attribute_error(name: str) -> None:
    """python-api.md 0.5"""

    def produce(worker: Any) -> str:
        with pytest.raises(AttributeError, match=name):
            getattr(worker.env.Q, name)
        return "no such method"

    async with Emulator(worker(produce)) as emulator:
        assert (await emulator.fetch("/")).json() == "no such method"


# -- what a handler returns ------------------------------------------------------------------------


class Awaited:
    """An awaitable that is no coroutine."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def __await__(self) -> Iterator[None]:
        yield
        if self.error is not None:
            raise self.error


async def fails() -> None:
    raise LookupError("awaited")


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        False,
        {"outcome": "exception"},
        Response("failed", status=500),
        ValueError("returned, not raised"),
        (number for number in range(3)),
        Awaited,
        Awaited(),
        print,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("synchronous", [True, False])
async def test_whatever_a_handler_returns_is_a_success(value: Any, synchronous: bool) -> None:
    """Recording queue_handler_returns_value"""

    def plain(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        return value

    async def coroutine(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        return value

    emulator = await consumed(plain if synchronous else coroutine)
    assert outcomes(emulator) == ["ack", "ack"]
    assert codes(emulator) == []


@pytest.mark.parametrize("make", [fails, lambda: Awaited(LookupError("awaited"))])
async def test_what_a_plain_handler_returns_is_awaited(make: Callable[[], Any]) -> None:
    """A promise of JavaScript would be."""
    emulator = await consumed(lambda self, batch, env, ctx: make(), max_retries=0)
    assert outcomes(emulator) == ["dropped", "dropped"]
    assert all(isinstance(record.error, LookupError) for record in emulator.queues["q"].deliveries)
    assert codes(emulator) == ["message_dropped", "message_dropped"]


async def test_a_coroutine_that_a_coroutine_returns_is_never_awaited() -> None:
    """The missing `await` acknowledges the batch, and is a finding."""

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        return fails()

    emulator = await consumed(queue)
    assert outcomes(emulator) == ["ack", "ack"]
    assert codes(emulator) == ["never_awaited"]
    assert "fails()" in emulator.findings[0].message


async def test_a_task_that_a_coroutine_returns_floats() -> None:
    ran = []

    async def work() -> None:
        await asyncio.sleep(1)
        ran.append("the end of it")

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        return asyncio.ensure_future(work())

    emulator = await consumed(queue)
    assert outcomes(emulator) == ["ack", "ack"]
    assert codes(emulator) == ["floating_task"]
    assert ran == []


async def test_no_line_of_a_handler_with_a_yield_runs() -> None:
    """Calling a generator function runs nothing, so the batch is acknowledged unread."""
    ran: list[str] = []

    async def asynchronous(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        ran.append("asynchronous")
        batch.retryAll()
        yield

    def plain(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
        ran.append("plain")
        batch.retryAll()
        yield

    for queue in (asynchronous, plain):
        emulator = await consumed(queue)
        assert outcomes(emulator) == ["ack", "ack"]
        assert codes(emulator) == []
    assert ran == []


# -- what a handler raises -------------------------------------------------------------------------


class Odd(BaseException):
    """No Exception."""


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class NoComparison(Exception):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    def __hash__(self) -> int:
        raise RuntimeError("not to be hashed")


class Empty(Exception):
    """Falsy."""

    def __len__(self) -> int:
        return 0


class Exits(Exception):
    """Its text is a way out."""

    def __str__(self) -> str:
        raise SystemExit("from __str__")


class NoAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise RuntimeError(f"no {name}")


class NoTruth(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class NoCause(Exception):
    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise RuntimeError("no cause")


def in_a_circle() -> Exception:
    """An error that is the cause of its own cause."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def nested(depth: int) -> ExceptionGroup[Any]:
    error: ExceptionGroup[Any] = ExceptionGroup("innermost", [ValueError("x")])
    for _ in range(depth):
        error = ExceptionGroup("around it", [error])
    return error


def with_notes(notes: Any) -> Exception:
    error = ValueError("noted")
    error.__notes__ = notes
    return error


# How to make each: one that is raised twice has the traceback of both times.
RAISED: dict[str, Callable[[], Any]] = {
    "class": lambda: ValueError,
    "plain": lambda: ValueError("x"),
    "long": lambda: ValueError("x" * 1_000_000),
    "surrogate": lambda: ValueError("\ud800\x00"),
    "base": lambda: Odd("x"),
    "exit": lambda: SystemExit(0),
    "interrupt": lambda: KeyboardInterrupt("by user code"),
    "generator exit": GeneratorExit,
    "cancelled": asyncio.CancelledError,
    "stop async": StopAsyncIteration,
    "time-out": TimeoutError,
    "group": lambda: ExceptionGroup("a", [ValueError("b"), ExceptionGroup("c", [OSError("d")])]),
    "base group": lambda: BaseExceptionGroup("several", [Odd("a"), KeyboardInterrupt()]),
    "javascript": lambda: JsException("RangeError", "of JavaScript"),
    "no text": NoText,
    "no comparison": NoComparison,
    "falsy": Empty,
    "exits": Exits,
    "no attributes": NoAttributes,
    "no truth": NoTruth,
    "no cause": NoCause,
    "circle": in_a_circle,
    "deep group": lambda: nested(3000),
    "note": lambda: with_notes(5),
    "notes": lambda: with_notes([object()]),
}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("synchronous", [True, False])
async def test_whatever_a_handler_raises_fails_its_batch_only(name: str, synchronous: bool) -> None:
    """2.10: what was acknowledged stays so; the rest comes again and is dropped in the end."""

    def plain(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            if message.body == "good":
                message.ack()
        raise RAISED[name]()

    async def coroutine(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        plain(self, batch, env, ctx)

    handler = plain if synchronous else coroutine
    emulator = await consumed(handler, "good", "bad", max_retries=1)
    assert deliveries(emulator) == [
        (0, "good", 1, "ack"),
        (0, "bad", 1, "retry"),
        (0, "bad", 2, "dropped"),
    ]
    assert codes(emulator) == ["message_dropped"]
    made = RAISED[name]()
    kind = made if isinstance(made, type) else type(made)
    for record in emulator.queues["q"].deliveries:
        assert type(record.error) is kind
    errors = [log.text for log in emulator.logs if log.level == "error"]
    assert len(errors) == 2
    assert all(kind.__name__ in text for text in errors)
    # The reports can be written, whatever the exception is like.
    assert kind.__name__ in emulator.findings[0].message
    assert emulator.trace.render()
    assert emulator.trace.to_jsonl()


async def stop(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    raise StopIteration("of the user's")


def stop_at_once(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    raise StopIteration("of the user's")


async def recurse(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    await recurse(self, batch, env, ctx)


async def cancel_itself(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    asyncio.current_task().cancel()  # type: ignore[union-attr]
    await asyncio.sleep(1)


async def leave(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    sys.exit(3)


async def raise_no_exception(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    raise 5  # type: ignore[misc]  # noqa: B016


async def close_the_loop(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    asyncio.get_running_loop().close()


async def stop_the_loop(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    asyncio.get_running_loop().stop()


async def interrupt_in_a_task(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt("by user code")

    await asyncio.create_task(interrupt())


async def yield_nonsense(self: Any, batch: Any, env: Any, ctx: Any) -> None:
    class Nonsense:
        def __await__(self) -> Iterator[Any]:
            yield 5

    await Nonsense()


@pytest.mark.parametrize(
    ("queue", "kind"),
    [
        (stop, "RuntimeError"),
        (stop_at_once, "RuntimeError"),
        (recurse, "RecursionError"),
        (cancel_itself, "CancelledError"),
        (leave, "SystemExit"),
        (raise_no_exception, "TypeError"),
        (close_the_loop, "RuntimeError"),
        (stop_the_loop, "RuntimeError"),
        (interrupt_in_a_task, "KeyboardInterrupt"),
        (yield_nonsense, "RuntimeError"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_whatever_way_a_handler_fails_it_is_only_its_batch(queue: Any, kind: str) -> None:
    emulator = await consumed(queue, max_retries=0)
    assert outcomes(emulator) == ["dropped", "dropped"]
    assert {type(record.error).__name__ for record in emulator.queues["q"].deliveries} == {kind}
    assert clock(emulator) == 0


async def test_a_handler_that_fails_does_not_harm_the_next_batch() -> None:
    """The isolate and its loop go on as if nothing had been."""
    seen: list[Any] = []

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        (message,) = batch.messages
        if isinstance(message.body, int):
            raise list(RAISED.values())[message.body]()
        seen.append(message.body)

    sent = [*range(len(RAISED)), "good"]
    emulator = await consumed(queue, *sent, max_retries=0, max_batch_size=1)
    assert outcomes(emulator) == ["dropped"] * len(RAISED) + ["ack"]
    assert seen == ["good"]


# -- handlers that cannot be called ----------------------------------------------------------------


@pytest.mark.parametrize(
    "queue",
    [
        lambda self: None,
        lambda self, batch: None,
        lambda self, batch, env: None,
        lambda self, batch, env, ctx, more: None,
        lambda self, *, batch, env, ctx: None,
        lambda self, batch, env, ctx, *, more: None,
    ],
    ids=["none", "one", "two", "four", "keywords", "a keyword more"],
)
async def test_a_handler_of_another_arity_fails_as_in_production(queue: Any) -> None:
    """python-api.md 0.4"""
    emulator = await consumed(queue, max_retries=0)
    assert outcomes(emulator) == ["dropped", "dropped"]
    (first, second) = emulator.queues["q"].deliveries
    assert isinstance(first.error, TypeError)
    assert first.error is second.error
    assert codes(emulator)[0] == "wrong_arity"


@pytest.mark.parametrize(
    "queue",
    [
        lambda self, batch, env, ctx: batch.ackAll(),
        lambda self, batch, env=None, ctx=None, more=None: batch.ackAll(),
        lambda self, batch, *rest: batch.ackAll(),
        lambda self, *arguments, **options: arguments[0].ackAll(),
    ],
)
async def test_a_handler_that_takes_three_arguments_is_fine(queue: Any) -> None:
    """python-api.md 0.4"""
    emulator = await consumed(queue)
    assert outcomes(emulator) == ["ack", "ack"]
    assert codes(emulator) == []


@pytest.mark.parametrize("queue", [None, 5, "queue", {}])
async def test_a_handler_that_is_no_function_is_missing(queue: Any) -> None:
    """2.12"""
    emulator = await consumed(queue, max_retries=1)
    assert outcomes(emulator) == ["retry", "retry", "dropped", "dropped"]
    assert codes(emulator) == ["missing_handler", "message_dropped", "message_dropped"]
    error = emulator.queues["q"].deliveries[0].error
    assert str(error) == "Error: Handler does not export a queue() function."


# -- what a handler does to its batch --------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.messages.clear(),
        lambda batch: batch.messages.pop(),
        lambda batch: batch.messages.reverse(),
        lambda batch: batch.messages.append("another"),
        lambda batch: batch.messages.extend(batch.messages[:]),
        lambda batch: setattr(batch, "messages", []),
        lambda batch: setattr(batch, "queue", "another"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
async def test_changing_the_list_of_messages_changes_no_message(change: Any, fails: bool) -> None:
    """2.10: a message that is taken from the list is acknowledged, or comes again, as the rest."""

    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        if batch.messages[0].attempts == 1:
            change(batch)
            if fails:
                raise ValueError("after that")

    emulator = await consumed(queue)
    expected = [(0, "a", 1, "ack"), (0, "b", 1, "ack")]
    if fails:
        expected = [(0, "a", 1, "retry"), (0, "b", 1, "retry"), (0, "a", 2, "ack")]
        expected.append((0, "b", 2, "ack"))
    assert deliveries(emulator) == expected
    assert codes(emulator) == []


async def test_changing_a_message_changes_nothing_for_anybody_else() -> None:
    """2.3; recording queue_body_mutation_between_attempts"""
    seen: list[Any] = []

    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        (message,) = batch.messages
        seen.append((message.id, message.attempts, list(message.body["items"])))
        message.body["items"].append("spoilt")
        message.body.more = True
        message.id, message.attempts = "another", 99
        if len(seen) < 3:
            message.retry()

    emulator = await consumed(queue, {"items": []}, max_retries=5)
    id = emulator.queues["q"].deliveries[0].id
    assert seen == [(id, attempt, []) for attempt in (1, 2, 3)]
    assert deliveries(emulator) == [
        (0, {"items": []}, 1, "retry"),
        (0, {"items": []}, 2, "retry"),
        (0, {"items": []}, 3, "ack"),
    ]


NOT_RETRY_OPTIONS = (
    "TypeError: Failed to execute 'retry' on 'QueueMessage': parameter 1 is not of type "
    "'QueueRetryOptions'."
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda batch, m: m.retry(5), NOT_RETRY_OPTIONS),
        (lambda batch, m: m.retry("soon"), NOT_RETRY_OPTIONS),
        (lambda batch, m: m.retry(True), NOT_RETRY_OPTIONS),
        (lambda batch, m: m.retry((5,)), NO_TUPLE),
        (lambda batch, m: m.retry(delaySeconds=2**31), INT32),
        (lambda batch, m: m.retry(delaySeconds=2**60), BIGINT),
        (lambda batch, m: batch.retryAll(delaySeconds=-(2**31) - 1), INT32),
        (lambda batch, m: m.acknowledge(), "acknowledge"),
        (lambda batch, m: m.nack(), "nack"),
        (lambda batch, m: batch.ack_all(), "ack_all"),
        (lambda batch, m: batch.retry_all(), "retry_all"),
        (lambda batch, m: len(batch), "'QueueController' object has no len()"),
        (lambda batch, m: list(batch), "'QueueController' object is not iterable"),
        (lambda batch, m: m(), "'_BindingWrapper' object is not callable"),
    ],
)
async def test_a_call_that_raises_settles_nothing(call: Any, text: str) -> None:
    """2.9, 2.15; python-api.md 0.5, 1.4: here the consumer does not catch it."""

    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        if batch.messages[0].attempts == 1:
            call(batch, batch.messages[0])

    emulator = await consumed(queue)
    assert deliveries(emulator) == [
        (0, "a", 1, "retry"),
        (0, "b", 1, "retry"),
        (0, "a", 2, "ack"),
        (0, "b", 2, "ack"),
    ]
    assert str(emulator.queues["q"].deliveries[0].error) == text


@pytest.mark.parametrize(
    ("call", "at", "found"),
    [
        (lambda m: m.retry({"delaySeconds": 3}, {"delaySeconds": 9}), 3, []),
        (lambda m: m.retry({"delaySeconds": 3}, delaySeconds=9), 3, []),
        (lambda m: m.retry([]), 10, []),
        (lambda m: m.retry(len), 10, []),
        (lambda m: m.retry({"delay": 3}), 10, ["ignored_option"]),
        (lambda m: m.retry(delaySeconds=object()), 0, []),
        (lambda m: m.retry(delaySeconds=timedelta(seconds=3)), 0, []),
        (lambda m: m.retry(delaySeconds="3"), 3, []),
        (lambda m: m.retry(delaySeconds=[[3]]), 3, []),
        (lambda m: m.retry(delaySeconds=-(2**31)), 0, []),
        (lambda m: m.retry(delaySeconds=None), 0, ["ignored_option"]),
    ],
)
async def test_options_of_a_retry_are_what_javascript_makes_of_them(
    call: Any, at: float, found: list[str]
) -> None:
    """2.15"""

    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        if batch.messages[0].attempts == 1:
            call(batch.messages[0])

    emulator = await consumed(queue, "a", retry_delay=10)
    assert deliveries(emulator) == [(0, "a", 1, "retry"), (at, "a", 2, "ack")]
    assert codes(emulator) == found


async def test_arguments_of_an_ack_are_dropped() -> None:
    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            assert message.ack(1, [2], three=3) is None
        raise ValueError("all the same")

    emulator = await consumed(queue)
    assert outcomes(emulator) == ["ack", "ack"]


async def test_calls_on_a_batch_that_is_over_have_no_effect_on_it_or_the_next() -> None:
    held: list[Any] = []

    def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        held.append(batch)

    async def fetch(self: Any, request: Any) -> Any:
        batch = held[0]
        tried = 0
        for call in (batch.messages[0].retry, batch.retryAll, batch.messages[1].ack, batch.ackAll):
            with pytest.raises(JsException, match="on behalf of a different request"):
                call()
            tried += 1
        return Response(str(tried))

    config = with_handler(queue)
    config["main"].fetch = fetch
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        before = deliveries(emulator)
        assert before == [(0, "a", 1, "ack"), (0, "b", 1, "ack")]

        await emulator.queues["q"].send("c", delaySeconds=60)
        assert (await emulator.fetch("/")).text == "4"
        await emulator.settle()
        assert deliveries(emulator) == [*before, (60, "c", 1, "ack")]
        assert emulator.queues["q"].acked == 3
        assert_balanced(emulator, 3)


# -- consumers that never end (3.8) ----------------------------------------------------------------


async def wait_for_ever(lines: list[str]) -> None:
    await asyncio.Event().wait()


async def sleep_for_ever(lines: list[str]) -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(60)


async def refuse_to_end(lines: list[str]) -> None:
    while True:
        try:
            await asyncio.sleep(250)
        except BaseException:
            lines.append("except")
        finally:
            lines.append("finally")


@pytest.mark.parametrize(
    ("work", "lines_of_one"),
    [(wait_for_ever, 0), (sleep_for_ever, 0), (refuse_to_end, 3)],
    ids=["waits", "sleeps", "refuses"],
)
@pytest.mark.parametrize("background", [False, True], ids=["handler", "waitUntil"])
async def test_a_consumer_that_never_ends_is_cut_off_after_fifteen_minutes(
    work: Any, lines_of_one: int, background: bool
) -> None:
    """3.8: its acks are lost; the messages come again, and are dead letters in the end."""
    lines: list[str] = []

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        batch.messages[0].ack()
        if background:
            self.ctx.waitUntil(work(lines))
        else:
            await work(lines)

    config = with_handler(queue, max_retries=1, dead_letter_queue="d")
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.advance(899.999)
        assert deliveries(emulator) == []
        assert [message.body for message in emulator.queues["q"].in_flight] == ["a", "b"]
        assert_balanced(emulator, 2)
        await emulator.advance(0.001)
        assert outcomes(emulator) == ["lost", "lost"]
        assert_balanced(emulator, 2)
        await asyncio.wait_for(emulator.settle(), HANGS)
        assert deliveries(emulator) == [
            (0, "a", 1, "lost"),
            (0, "b", 1, "lost"),
            (900, "a", 2, "dead_letter"),
            (900, "b", 2, "dead_letter"),
        ]
        assert clock(emulator) == 1800
        assert (emulator.queues["q"].acked, bodies(emulator, "d")) == (0, ["a", "b"])
        # No line of it ran when its power was cut, only those of sleeps that ended before.
        assert lines == ["finally"] * 2 * lines_of_one
        assert [log.text for log in emulator.logs] == [
            f"queue q #{number} exceeded its wall time of 15 minutes" for number in (1, 2)
        ]
        assert_balanced(emulator, 2)


async def test_a_consumer_that_waits_for_its_own_next_batch_gets_it_too_late() -> None:
    """3.5, 3.8: batches come one after the other, so this one waits in vain."""
    arrived: list[Any] = []

    async def consume(batch: Any, worker: Any) -> None:
        (message,) = batch.messages
        arrived.append(message.body)
        if message.body == "first":
            await worker.env.Q.send("second")
            while "second" not in arrived:  # noqa: ASYNC110
                await asyncio.sleep(10)

    config = worker(consume=consume, consumer={**AT_ONCE, "max_batch_size": 1})
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("first")
        await asyncio.wait_for(emulator.settle(), HANGS)
        assert deliveries(emulator)[:2] == [(0, "first", 1, "lost"), (900, "second", 1, "ack")]
        assert emulator.queues["q"].acked == len(deliveries(emulator)) - 1
        assert_balanced(emulator, emulator.queues["q"].acked)


async def test_a_consumer_that_spins_leaves_the_test_in_control() -> None:
    """api.md 2: a time-out strikes in real time, and virtual time has not moved."""
    turns = 0

    async def consume(batch: Any, worker: Any) -> None:
        nonlocal turns
        while batch.queue == "q":
            turns += 1
            await asyncio.sleep(0)

    queues = {"consumers": [{"queue": "q"}, {"queue": "other"}]}
    async with Emulator(worker(consume=consume, queues=queues)) as emulator:
        await emulator.queues["q"].send("spins")
        await emulator.queues["other"].send("waits its turn")
        for call in (
            emulator.settle,
            lambda: emulator.advance(3600),
            lambda: emulator.run_until(lambda: False),
            lambda: emulator.queues["other"].send("next"),
        ):
            before = turns
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(), 0.2)
            assert turns > before
            assert clock(emulator) == 5
        # Other work of the same instant was done.
        assert emulator.queues["other"].acked == 1
        assert [message.body for message in emulator.queues["q"].in_flight] == ["spins"]
        assert_balanced(emulator, 1)
        assert_balanced(emulator, 2, "other")

        # A crash is a way out: the message comes again, and nothing of it was lost.
        await asyncio.wait_for(emulator.crash(), HANGS)
        assert outcomes(emulator) == ["lost"]
        assert bodies(emulator) == ["spins"]
        assert_balanced(emulator, 1)


async def test_a_spinning_consumer_does_not_keep_the_emulator_open() -> None:
    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def whole_life() -> Emulator:
        async with Emulator(with_handler(queue)) as emulator:
            # Its batch is full at once, so that this runs it.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(emulator.queues["q"].send("a"), 0.1)
            assert [message.body for message in emulator.queues["q"].in_flight] == ["a"]
        return emulator

    emulator = await asyncio.wait_for(whole_life(), HANGS)
    assert outcomes(emulator) == ["lost"]
    assert bodies(emulator) == ["a"]
    assert_balanced(emulator, 1)


# -- all of it at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_books_balance_over_a_thousand_bad_messages(profile: str) -> None:
    """Acked, dead letters and what is left are what was sent, whatever each batch did."""
    graves: list[Any] = []

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        if batch.queue == "d":
            graves.extend(message.body for message in batch.messages)
            return
        for message in batch.messages:
            match message.body % 11:
                case 0:
                    raise list(RAISED.values())[message.body % len(RAISED)]()
                case 1:
                    message.retry(delaySeconds=message.body % 7)
                case 2:
                    batch.messages.clear()
                case 3:
                    self.ctx.waitUntil(fails())
                case 4:
                    message.retry("wrong")
                case 5 if message.attempts == 1:
                    await asyncio.Event().wait()
                case _:
                    message.ack()

    consumers = [
        {"queue": "q", **AT_ONCE, "max_retries": 2, "dead_letter_queue": "d", "max_batch_size": 3},
        {"queue": "d"},
    ]
    main = type("Default", (WorkerEntrypoint,), {"queue": queue})
    config = {"main": main, "queues": {"consumers": consumers}}
    async with Emulator(config, profile=profile) as emulator:
        for start in range(0, 1000, 100):
            await emulator.queues["q"].send_batch(list(range(start, start + 100)))
        await asyncio.wait_for(emulator.settle(), 10 * HANGS)
        q, d = emulator.queues["q"], emulator.queues["d"]
        assert (q.backlog, q.in_flight, q.dropped) == ([], [], 0)
        assert q.acked + q.dead_lettered == 1000
        assert q.dead_lettered == d.acked == len(graves) == len(set(graves))
        assert 0 < q.dead_lettered < 1000
        last = {record.body: record.outcome for record in q.deliveries}
        assert sorted(last) == list(range(1000))
        assert sorted(graves) == sorted(b for b, how in last.items() if how == "dead_letter")
        attempts: dict[Any, list[int]] = {}
        for record in q.deliveries:
            attempts.setdefault(record.body, []).append(record.attempt)
        assert all(counted == list(range(1, len(counted) + 1)) for counted in attempts.values())
        assert max(map(len, attempts.values())) == 3
