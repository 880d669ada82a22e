"""The faults of `send.<queue>`, `message.<queue>` and `batch.<queue>`: what strikes, what is left.

The reference is the table of fault sites and "What a fault leaves" in docs/faults.md.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pyodide.ffi import JsException
from workbench import (
    PROFILES,
    batches,
    bodies,
    clock,
    codes,
    deliveries,
    seconds,
    worker,
)

from emulator import Emulator, ReplyLost, WorkerCrashed

pytestmark = pytest.mark.asyncio

AT_ONCE = {"max_batch_timeout": 0}
# Longer than a handler takes, so that redeliveries are told from first ones.
SLOW_RETRY = {**AT_ONCE, "retry_delay": 60}


def accept(batch: Any, worker: Any) -> None:
    """A consumer that returns."""


def fired(emulator: Emulator) -> list[str]:
    return [str(fault) for fault in emulator.faults.fired]


def unfired(emulator: Emulator) -> list[str]:
    return [f.message for f in emulator.findings if f.code == "fault_not_fired"]


class Steps:
    """A consumer that acknowledges its first message, takes a second, and notes how far it got."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    async def __call__(self, batch: Any, worker: Any) -> None:
        attempt = batch.messages[0].attempts
        self.seen.append(("began", attempt))
        try:
            batch.messages[0].ack()
            await asyncio.sleep(1)
            self.seen.append(("ended", attempt))
        except BaseException:
            self.seen.append(("except", attempt))
            raise
        finally:
            self.seen.append(("finally", attempt))


WHOLE = ("began", "ended", "finally")


def run(attempt: int, *steps: str) -> list[tuple[str, int]]:
    return [(step, attempt) for step in steps]


# -- batch.<queue> ---------------------------------------------------------------------------------


async def test_no_fault() -> None:
    steps = Steps()
    async with Emulator(worker(consume=steps, consumer=SLOW_RETRY)) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        assert steps.seen == run(1, *WHOLE)
        assert deliveries(emulator) == [(0, "a", 1, "ack"), (0, "b", 1, "ack")]
        assert clock(emulator) == 1


@pytest.mark.parametrize(
    ("action", "first_run", "first", "settled", "again"),
    [
        # No line of the handler ran.
        ("crash_before", (), ["lost", "lost"], 0, {"a": 60, "b": 60}),
        # The handler finished, its result was lost, the ack with it.
        ("lose_ack", WHOLE, ["lost", "lost"], 1, {"a": 61, "b": 61}),
        # The handler ran to its end, outcome exception: the ack is kept.
        ("fail", WHOLE, ["ack", "retry"], 1, {"b": 61}),
        # Cut off at its next await, after 15 minutes.
        ("timeout", ("began",), ["lost", "lost"], 900, {"a": 960, "b": 960}),
    ],
)
@pytest.mark.parametrize("planned", ["constructor", "body"])
async def test_how_a_batch_ends(
    action: str,
    first_run: tuple[str, ...],
    first: list[str],
    settled: float,
    again: dict[str, float],
    planned: str,
) -> None:
    steps, fault = Steps(), f"batch.q#1:{action}"
    config = worker(consume=steps, consumer=SLOW_RETRY)
    async with Emulator(config, faults=fault if planned == "constructor" else ()) as emulator:
        if planned == "body":
            emulator.faults.add(fault)
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        records = emulator.queues["q"].deliveries
        assert [record.outcome for record in records[:2]] == first
        assert {seconds(record.settled) for record in records[:2]} == {settled}
        assert {record.body: seconds(record.at) for record in records[2:]} == again
        assert {(record.attempt, record.outcome) for record in records[2:]} == {(2, "ack")}
        assert steps.seen == run(1, *first_run) + run(2, *WHOLE)
        assert fired(emulator) == [fault]
        assert codes(emulator) == []


@pytest.mark.parametrize("action", ["crash_before", "lose_ack", "fail", "timeout"])
async def test_a_faulted_delivery_counts_and_the_last_one_is_the_end(action: str) -> None:
    def consume(batch: Any, worker: Any) -> None:
        if batch.queue == "d":
            graves.append((batch.messages[0].body, batch.messages[0].attempts))

    graves: list[Any] = []
    consumers = [
        {"queue": "q", "max_retries": 2, "dead_letter_queue": "d", **SLOW_RETRY},
        {"queue": "d"},
    ]
    config = worker(consume=consume, queues={"consumers": consumers})
    async with Emulator(config, faults=f"batch.q#*:{action}") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        outcomes = [(attempt, outcome) for _, _, attempt, outcome in deliveries(emulator)]
        word = "retry" if action == "fail" else "lost"
        assert outcomes == [(1, word), (2, word), (3, "dead_letter")]
        assert graves == [("x", 1)]
        assert fired(emulator) == [f"batch.q#{number}:{action}" for number in (1, 2, 3)]
        span = 960 if action == "timeout" else 60
        assert [at for at, *_ in deliveries(emulator)] == [0, span, 2 * span]


@pytest.mark.parametrize("action", ["crash_before", "lose_ack", "fail", "timeout"])
async def test_a_message_that_a_fault_drops_is_no_finding(action: str) -> None:
    config = worker(consume=accept, consumer={**AT_ONCE, "max_retries": 0})
    async with Emulator(config, faults=f"batch.q#1:{action}") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert [outcome for *_, outcome in deliveries(emulator)] == ["dropped"]
        assert codes(emulator) == []


async def test_a_timeout_of_a_handler_that_never_awaits() -> None:
    """It ran through, and the platform never heard of it."""
    ran = []

    def consume(batch: Any, worker: Any) -> None:
        batch.ackAll()
        ran.append(batch.messages[0].attempts)

    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:timeout") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert ran == [1, 2]
        assert deliveries(emulator) == [(0, "x", 1, "lost"), (900, "x", 2, "ack")]


async def test_calls_made_before_a_timeout_take_effect() -> None:
    """The call that a handler hangs in has left the isolate."""

    async def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "x":
            await worker.env.Q.send(f"by {batch.messages[0].attempts}", delaySeconds=3000)
            raise AssertionError("never reached in the first run")

    config = worker(consume=consume, consumer={**AT_ONCE, "max_retries": 0})
    async with Emulator(config, faults="batch.q#1:timeout") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == ["x", "by 1"]


async def test_a_timeout_during_a_crash_is_settled_once() -> None:
    config = worker(consume=Steps(), consumer=SLOW_RETRY)
    async with Emulator(config, faults="batch.q#1:timeout") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.advance(100)
        await emulator.crash()
        assert deliveries(emulator) == [(0, "x", 1, "lost")]
        await emulator.settle()
        assert deliveries(emulator) == [(0, "x", 1, "lost"), (160, "x", 2, "ack")]
        assert clock(emulator) == 161


@pytest.mark.parametrize("action", ["lose_ack", "fail"])
async def test_a_fault_strikes_with_the_flag_too(action: str) -> None:
    """2.11: the result is final at the return, and is lost just so."""
    flags = ["python_workers", "queue_consumer_no_wait_for_wait_until"]

    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()

    config = worker(consume=consume, consumer=AT_ONCE, compatibility_flags=flags)
    async with Emulator(config, faults=f"batch.q#1:{action}") as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        expected = ["lost", "lost"] if action == "lose_ack" else ["ack", "retry"]
        assert [outcome for *_, outcome in deliveries(emulator)][:2] == expected


async def test_an_exception_of_the_handler_under_a_fault() -> None:
    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        if batch.messages[0].attempts == 1:
            raise ValueError("its own")

    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:lose_ack") as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert [outcome for *_, outcome in deliveries(emulator)] == ["lost", "ack"]
        assert isinstance(emulator.queues["q"].deliveries[0].error, ValueError)


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_local_runtime_forgets_acks_of_a_failed_batch(profile: str) -> None:
    """2.10"""

    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()

    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:fail", profile=profile) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        first = [record.outcome for record in emulator.queues["q"].deliveries if record.batch == 1]
        assert first == (["ack", "retry"] if profile == "production" else ["retry", "retry"])


# -- shuffle and split -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("batch.q#1:shuffle", [[5, 4, 3, 2, 1]]),
        ("batch.q#1:split", [[1, 2, 3], [4, 5]]),
        ("batch.q#1:split; batch.q#2:split", [[1, 2, 3], [4], [5]]),
        ("batch.q#1:split; batch.q#1:shuffle", [[5, 4, 3], [1, 2]]),
        ("batch.q#*:shuffle", [[5, 4, 3, 2, 1]]),
        ("batch.q#1:shuffle; batch.q#1:lose_ack", [[5, 4, 3, 2, 1], [5, 4, 3, 2, 1]]),
        ("batch.q#1:split; batch.q#1:crash_before", [[1, 2, 3], [4, 5], [1, 2, 3]]),
    ],
)
async def test_the_order_and_the_size_of_a_batch(plan: str, expected: list[list[int]]) -> None:
    """O-13"""
    config = worker(consume=accept, consumer={**AT_ONCE, "retry_delay": 5})
    async with Emulator(config, faults=plan) as emulator:
        await emulator.queues["q"].send_batch([1, 2, 3, 4, 5])
        await emulator.settle()
        assert [batch for _, batch in batches(emulator)] == expected
        assert fired(emulator)
        assert unfired(emulator) == []


async def test_a_batch_of_one_can_be_neither_shuffled_nor_split() -> None:
    config = worker(consume=accept, consumer=AT_ONCE)
    async with Emulator(config, faults=["batch.q#1:shuffle", "batch.q#1:split"]) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.settle()
        assert fired(emulator) == []
        assert len(unfired(emulator)) == 2
        assert "shuffle needs a batch of two messages or more" in unfired(emulator)[0]
        assert "split needs a batch of two messages or more" in unfired(emulator)[1]


async def test_copies_do_not_make_a_batch_of_two() -> None:
    """A message and its copy never share a batch, so there is nothing to shuffle."""
    config = worker(consume=accept, consumer={**AT_ONCE, "max_batch_size": 10})
    plan = ["message.q#1:duplicate", "batch.q#1:shuffle"]
    async with Emulator(config, faults=plan) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.settle()
        assert fired(emulator) == ["message.q#1:duplicate"]


# -- message.<queue> -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("duplicate", [(0, "a", 1), (0, "b", 1), (0, "a", 1)]),
        ("duplicate(1 h)", [(0, "a", 1), (0, "b", 1), (3600, "a", 1)]),
        ("delay(30 s)", [(0, "b", 1), (30, "a", 1)]),
        ("drop", [(0, "b", 1)]),
    ],
)
async def test_what_becomes_of_a_message(action: str, expected: Any) -> None:
    """O-12"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.sendBatch([{"body": "a"}, {"body": "b"}])

    config = worker(produce, accept, consumer=AT_ONCE)
    async with Emulator(config, faults=f"message.q#1:{action}") as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert [(at, body, attempt) for at, body, attempt, _ in deliveries(emulator)] == expected
        ids = {record.id for record in emulator.queues["q"].deliveries if record.body == "a"}
        assert len(ids) == (0 if action == "drop" else 1)
        (first, _) = [event.data["id"] for event in emulator.trace if event.kind == "send"]
        dropped = [event for event in emulator.trace if event.kind == "dropped"]
        assert [(event.subject, event.data) for event in dropped] == (
            [("queue q", {"id": first, "attempt": 0})] if action == "drop" else []
        )
        assert fired(emulator) == [f"message.q#1:{action}"]
        assert codes(emulator) == []


async def test_a_copy_comes_although_the_original_was_acknowledged() -> None:
    """O-12"""
    charges: list[str] = []
    known: dict[str, str] = {}

    def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            charges.append(message.body)
            known[message.id] = message.body
            message.ack()

    config = worker(consume=consume)
    async with Emulator(config, faults="message.q#1:duplicate(1 h)") as emulator:
        await emulator.queues["q"].send("charge")
        await emulator.settle()
        assert (charges, list(known.values())) == (["charge", "charge"], ["charge"])
        assert emulator.queues["q"].acked == 2


async def test_a_copy_uses_up_no_retry() -> None:
    def refuse(batch: Any, worker: Any) -> None:
        raise ValueError("refused")

    config = worker(consume=refuse, consumer={**SLOW_RETRY, "max_retries": 1})
    async with Emulator(config, faults="message.q#1:duplicate(10 s)") as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert [(at, attempt) for at, _, attempt, _ in deliveries(emulator)] == [
            (0, 1),
            (10, 1),
            (60, 2),
        ]


async def test_a_delay_adds_to_that_of_the_message() -> None:
    config = worker(consume=accept, consumer=AT_ONCE)
    settings = {"q": {"delivery_delay": 100}}
    plan = ["message.q#1:delay(30 s)", "message.q#2:delay(30 s)"]
    async with Emulator(config, faults=plan, queue_settings=settings) as emulator:
        await emulator.queues["q"].send("default")
        await emulator.queues["q"].send("own", delaySeconds=5)
        await emulator.settle()
        assert batches(emulator) == [(35, ["own"]), (130, ["default"])]


async def test_redeliveries_are_no_occurrences_of_a_message() -> None:
    config = worker(consume=accept, consumer=AT_ONCE)
    plan = ["batch.q#1:lose_ack", "message.q#2:drop"]
    async with Emulator(config, faults=plan) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.settle()
        assert [outcome for *_, outcome in deliveries(emulator)] == ["lost", "ack"]
        assert "met once only" in unfired(emulator)[0]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("duplicate", [0, 0]),
        ("duplicate(1 h)", [0, 3600]),
        ("delay(30 s)", [30]),
        ("drop", []),
    ],
)
async def test_what_becomes_of_a_dead_letter(action: str, expected: list[float]) -> None:
    def consume(batch: Any, worker: Any) -> None:
        if batch.queue == "q":
            raise ValueError("refused")

    consumers = [
        {"queue": "q", "max_retries": 0, "dead_letter_queue": "d", **AT_ONCE},
        {"queue": "d", **AT_ONCE},
    ]
    config = worker(consume=consume, queues={"consumers": consumers})
    async with Emulator(config, faults=f"message.d#1:{action}") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert [at for at, *_ in deliveries(emulator, "d")] == expected
        assert emulator.queues["q"].dead_lettered == 1
        assert fired(emulator) == [f"message.d#1:{action}"]


async def test_a_purged_message_takes_its_copy_along() -> None:
    config = worker(consume=accept)
    async with Emulator(config, faults="message.q#1:duplicate(1 h)") as emulator:
        await emulator.queues["q"].send("x")
        assert bodies(emulator) == ["x", "x"]
        emulator.queues["q"].purge()
        await emulator.settle()
        assert deliveries(emulator) == []


async def test_a_lost_message_cannot_have_a_copy() -> None:
    config = worker(consume=accept)
    async with Emulator(config, faults="message.q#1:duplicate; message.q#1:drop") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert deliveries(emulator) == []


@pytest.mark.parametrize(
    ("actions", "delivered"),
    [
        (["duplicate(10 s)", "delay(30 s)"], [30, 40]),
        (["duplicate", "duplicate(10 s)"], [0, 0, 10]),
        (["delay(30 s)", "delay(1 min)"], [90]),
    ],
)
async def test_several_faults_of_one_message(actions: list[str], delivered: list[float]) -> None:
    plan = [f"message.q#1:{action}" for action in actions]
    async with Emulator(worker(consume=accept, consumer=AT_ONCE), faults=plan) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert [at for at, *_ in deliveries(emulator)] == delivered
        assert sorted(fired(emulator)) == sorted(plan)


# -- send.<queue> ----------------------------------------------------------------------------------


async def produce(worker: Any) -> str:
    """A handler that answers with what became of its send."""
    try:
        await worker.env.Q.sendBatch([{"body": "a"}, {"body": "b"}])
    except JsException as error:
        return str(error)
    return "sent"


@pytest.mark.parametrize(
    ("action", "stored"),
    [("crash_before", []), ("crash_after", ["a", "b"])],
)
async def test_a_crash_at_a_send(action: str, stored: list[str]) -> None:
    lines = []

    async def crashes(worker: Any) -> None:
        try:
            await produce(worker)
            lines.append("went on")
        finally:
            lines.append("finally")

    async with Emulator(worker(crashes, accept), faults=f"send.q#1:{action}") as emulator:
        with pytest.raises(WorkerCrashed, match="lost power: request GET / was cut off while"):
            await emulator.fetch("/")
        assert (lines, bodies(emulator)) == ([], stored)
        assert fired(emulator) == [f"send.q#1:{action}"]
        assert codes(emulator) == []
        await emulator.fetch("/")
        assert lines == ["went on", "finally"]


@pytest.mark.parametrize(("action", "stored"), [("fail", []), ("lose_reply", ["a", "b"])])
@pytest.mark.parametrize(
    ("date", "text"),
    [
        ("2026-03-11", "Error: Queue sendBatch failed: Internal Server Error"),
        ("2026-03-12", "Error: Unknown Internal Error (15000)"),
    ],
)
async def test_a_send_that_fails(action: str, stored: list[str], date: str, text: str) -> None:
    """O-14; 1.13"""
    dated = {"compatibility_date": date, "compatibility_flags": ["python_workers"]}
    async with Emulator(worker(produce, accept, **dated), faults=f"send.q#1:{action}") as emulator:
        assert (await emulator.fetch("/")).json() == text
        assert bodies(emulator) == stored
        assert (await emulator.fetch("/")).json() == "sent"
        assert fired(emulator) == [f"send.q#1:{action}"]


async def test_a_send_that_is_refused_is_no_occurrence() -> None:
    async def refused(worker: Any) -> str:
        try:
            await worker.env.Q.send("x" * 200_000)
        except JsException:
            return "refused"
        return "sent"

    async with Emulator(worker(refused, accept), faults="send.q#1:fail") as emulator:
        assert (await emulator.fetch("/")).json() == "refused"
        assert [site.name for site in emulator.faults.sites] == ["request.GET./"]
        assert "no such site was met; nearest: request.GET./ (met once)" in unfired(emulator)[0]


@pytest.mark.parametrize(
    ("plan", "stored"),
    [
        ("send.q#1:crash_before", []),
        ("send.q#2:crash_before", [0]),
        ("send.q#2:crash_after", [0, 1]),
        ("send.q#3:crash_after", [0, 1, 2]),
    ],
)
async def test_a_crash_amid_several_sends_at_once(plan: str, stored: list[int]) -> None:
    """Those whose turn had come are kept, the others were never made."""

    async def produce(worker: Any) -> None:
        await asyncio.gather(*(worker.env.Q.send(number) for number in range(3)))

    async with Emulator(worker(produce, accept), faults=plan) as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert bodies(emulator) == stored
        assert fired(emulator) == [plan]


async def test_only_the_worker_that_crashes_dies() -> None:
    """Two Workers, each in the middle of a request and with a batch in hand."""
    ended = []

    def named(name: str) -> dict[str, Any]:
        async def produce(worker: Any) -> str:
            await asyncio.sleep(10)
            await worker.env.Q.send(name)
            ended.append(name)
            return name

        async def consume(batch: Any, worker: Any) -> None:
            await asyncio.sleep(20)
            ended.append(batch.queue)

        queues = {
            "producers": [{"binding": "Q", "queue": f"out-{name}"}],
            "consumers": [{"queue": f"in-{name}", **SLOW_RETRY}],
        }
        return worker(produce, consume, queues=queues, name=name)

    async with Emulator(
        [named("one"), named("two")], faults="send.out-one#1:crash_after"
    ) as emulator:
        await emulator.queues["in-one"].send("x")
        await emulator.queues["in-two"].send("x")
        results = await asyncio.gather(
            emulator.fetch("/", worker="one"),
            emulator.fetch("/", worker="two"),
            return_exceptions=True,
        )
        assert isinstance(results[0], WorkerCrashed)
        assert not isinstance(results[1], BaseException)
        await emulator.settle()
        assert ended == ["two", "in-two", "in-one"]
        assert [(at, outcome) for at, _, _, outcome in deliveries(emulator, "in-one")] == [
            (0, "lost"),
            (70, "ack"),
        ]
        assert [outcome for *_, outcome in deliveries(emulator, "in-two")] == ["ack"]


# -- overlap ---------------------------------------------------------------------------------------


class Spans:
    """A consumer that takes some time over a batch, and notes when it had which."""

    def __init__(self, duration: float) -> None:
        self.seen: list[tuple[str, str]] = []
        self._duration = duration

    async def __call__(self, batch: Any, worker: Any) -> None:
        name = "".join(message.body for message in batch.messages)
        self.seen.append(("began", name))
        await asyncio.sleep(self._duration)
        self.seen.append(("ended", name))


ONE_BY_ONE = {"max_batch_size": 1, "max_batch_timeout": 0}


@pytest.mark.parametrize("duration", [0, 10])
@pytest.mark.parametrize(
    ("plan", "consumer", "expected"),
    [
        ("batch.q#1:overlap", ONE_BY_ONE, "+a +b -a -b +c -c"),
        ("batch.q#2:overlap", ONE_BY_ONE, "+a -a +b +c -b -c"),
        ("batch.q#*:overlap", ONE_BY_ONE, "+a +b +c -a -b -c"),
        ("batch.q#*:overlap", {**ONE_BY_ONE, "max_concurrency": 2}, "+a +b -a -b +c -c"),
        ("batch.q#1:split; batch.q#1:overlap", {}, "+ab +c -ab -c"),
        # What is left does not wait for company either.
        ("batch.q#1:overlap", {"max_batch_size": 2}, "+ab +c -ab -c"),
    ],
)
async def test_a_batch_starts_before_the_one_before_it_has_ended(
    plan: str, consumer: dict[str, int], expected: str, duration: float
) -> None:
    consume = Spans(duration)
    async with Emulator(worker(consume=consume, consumer=consumer), faults=plan) as emulator:
        await emulator.queues["q"].send_batch(["a", "b", "c"])
        await emulator.settle()
        marks = {"began": "+", "ended": "-"}
        assert " ".join(marks[what] + name for what, name in consume.seen) == expected
        assert fired(emulator)
        assert unfired(emulator) == []
        assert emulator.queues["q"].acked == 3


async def test_a_message_that_comes_later_overlaps_too() -> None:
    consume = Spans(10)
    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:overlap") as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(3)
        await emulator.queues["q"].send("b")
        await emulator.settle()
        assert consume.seen == [("began", "a"), ("began", "b"), ("ended", "a"), ("ended", "b")]
        assert fired(emulator) == ["batch.q#1:overlap"]


async def test_no_batch_overlaps_where_the_consumer_takes_one_at_a_time() -> None:
    consume = Spans(10)
    config = worker(consume=consume, consumer={**ONE_BY_ONE, "max_concurrency": 1})
    async with Emulator(config, faults="batch.q#1:overlap") as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        assert consume.seen == [("began", "a"), ("ended", "a"), ("began", "b"), ("ended", "b")]
        assert fired(emulator) == []
        assert "overlap needs another batch, which starts before" in unfired(emulator)[0]


@pytest.mark.parametrize("gap", [10, 11])
async def test_an_overlap_fires_only_when_another_batch_came(gap: int) -> None:
    """A plan that did nothing must not make a test pass."""
    consume = Spans(10)
    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:overlap") as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(gap)
        await emulator.queues["q"].send("b")
        await emulator.settle()
        assert consume.seen == [("began", "a"), ("ended", "a"), ("began", "b"), ("ended", "b")]
        assert fired(emulator) == []
        (message,) = unfired(emulator)
        assert message.startswith("batch.q#1:overlap never fired: batch.q was met, but overlap ")


@pytest.mark.parametrize(
    ("gap", "expected"), [(0, [True, False]), (9, [True, False]), (10, [False] * 2)]
)
async def test_a_batch_offers_an_overlap_where_another_could_start_beside_it(
    gap: int, expected: list[bool]
) -> None:
    config = worker(consume=Spans(10), consumer=ONE_BY_ONE)
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("a")
        await emulator.advance(gap)
        await emulator.queues["q"].send("b")
        await emulator.settle()
        sites = [site for site in emulator.faults.sites if site.name == "batch.q"]
        assert ["overlap" in site.actions for site in sites] == expected


async def test_a_crash_takes_both_of_two_batches_that_overlap() -> None:
    consume = Spans(10)
    plan = "batch.q#1:overlap; batch.q#2:crash_before"
    async with Emulator(
        worker(consume=consume, consumer={**ONE_BY_ONE, "retry_delay": 60}), faults=plan
    ) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        assert [(d.body, d.outcome) for d in emulator.queues["q"].deliveries] == [
            ("a", "lost"),
            ("b", "lost"),
            ("a", "ack"),
            ("b", "ack"),
        ]


# -- plans, sites, findings ------------------------------------------------------------------------


async def test_the_sites_of_a_message_in_the_order_met() -> None:
    async def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "a":
            await worker.env.Q.send("from the consumer")

    config = worker(produce, consume, consumer={"max_retries": 1, "max_batch_timeout": 0})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        sites = [
            (f"{site.name}#{site.occurrence}", dict(site.actions)) for site in emulator.faults.sites
        ]
    in_request = dict.fromkeys(["crash_before", "fail", "crash_after", "lose_reply"], "request")
    repeated = dict.fromkeys(in_request, "platform")
    message = {"duplicate": "platform", "delay": "platform", "drop": "loss"}
    single = dict.fromkeys(["crash_before", "fail", "timeout", "lose_ack"], "platform")
    assert sites == [
        (
            "request.GET./#1",
            dict.fromkeys(["crash_before", "crash_after", "lose_reply"], "request"),
        ),
        ("send.q#1", in_request),
        ("message.q#1", message),
        ("message.q#2", message),
        ("batch.q#1", {"shuffle": "platform", "split": "platform", **single}),
        ("send.q#2", repeated),
        ("message.q#3", message),
        ("batch.q#2", single),
    ]


async def test_the_class_of_a_send_depends_on_who_waits() -> None:
    """In a request the client sees the fault; in its background work nobody does; in a last
    delivery nothing repeats the caller."""

    async def later(worker: Any) -> None:
        await asyncio.sleep(1)
        await worker.env.Q.send("background")

    def produce(worker: Any) -> None:
        worker.ctx.waitUntil(later(worker))

    async def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "background":
            await worker.env.Q.send("out", delaySeconds=60)
            raise ValueError("again")

    config = worker(produce, consume, consumer={**AT_ONCE, "max_retries": 1})
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        found = [site for site in emulator.faults.sites if site.name == "send.q"]
        assert [(site.actions["crash_after"], site.actions["fail"]) for site in found] == [
            ("platform", "dependency"),
            ("platform", "platform"),
            ("platform", "dependency"),
        ]


@pytest.mark.parametrize("final_at_return", [True, False])
async def test_background_work_of_a_final_batch_is_not_repeated(final_at_return: bool) -> None:
    """2.11: with the flag nothing delivers again what background work failed to do."""

    async def later(worker: Any) -> None:
        await worker.env.Q.send("out", delaySeconds=60)

    async def consume(batch: Any, worker: Any) -> None:
        if batch.messages[0].body == "in":
            await worker.env.Q.send("out", delaySeconds=60)
            worker.ctx.waitUntil(later(worker))

    flags = ["python_workers", *["queue_consumer_no_wait_for_wait_until"] * final_at_return]
    async with Emulator(worker(consume=consume, compatibility_flags=flags)) as emulator:
        await emulator.queues["q"].send("in")
        await emulator.settle()
        found = [site for site in emulator.faults.sites if site.name == "send.q"]
        assert [(site.actions["crash_after"], site.actions["fail"]) for site in found] == [
            ("platform", "platform"),
            ("platform", "dependency" if final_at_return else "platform"),
        ]


@pytest.mark.parametrize(
    ("plan", "names"),
    [
        ("batch.*#1:lose_ack", ["batch.q#1:lose_ack"]),
        ("*.q#1:crash_before", ["send.q#1:crash_before", "batch.q#1:crash_before"]),
        ("s?nd.q#*:lose_reply", ["send.q#1:lose_reply"]),
        ("message.[pq]#2:drop", ["message.q#2:drop"]),
    ],
)
async def test_patterns_strike_where_the_action_is_possible(plan: str, names: list[str]) -> None:
    async with Emulator(worker(produce, accept, consumer=AT_ONCE), faults=plan) as emulator:
        try:
            await emulator.fetch("/")
        except WorkerCrashed:
            await emulator.fetch("/")
        await emulator.settle()
        assert fired(emulator) == names
        assert unfired(emulator) == []


async def test_two_faults_in_one_plan() -> None:
    plan = "batch.q#1:lose_ack; batch.q#2:crash_before; message.q#2:delay(1 h)"
    async with Emulator(worker(produce, accept, consumer=AT_ONCE), faults=plan) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert deliveries(emulator) == [
            (0, "a", 1, "lost"),
            (0, "a", 2, "lost"),
            (0, "a", 3, "ack"),
            (3600, "b", 1, "ack"),
        ]
        assert fired(emulator) == [
            "message.q#2:delay(1 h)",
            "batch.q#1:lose_ack",
            "batch.q#2:crash_before",
        ]


async def test_of_two_ends_of_one_batch_the_earlier_strikes() -> None:
    plan = "batch.q#1:lose_ack; batch.q#1:crash_before"
    async with Emulator(worker(consume=accept, consumer=AT_ONCE), faults=plan) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        assert fired(emulator) == ["batch.q#1:crash_before"]
        assert "another fault ended that occurrence first" in unfired(emulator)[0]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("batch.p#1:lose_ack", "no such site was met; nearest: batch.q (met once)"),
        ("batch.q#2:lose_ack", "batch.q was met once only"),
        ("message.q#3:drop", "message.q was met twice only"),
        ("step.flow.charge#1:fail", "no such site was met; nearest: "),
    ],
)
async def test_a_fault_that_never_fired_is_a_finding(fault: str, text: str) -> None:
    async with Emulator(worker(produce, accept), faults=fault) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        (message,) = unfired(emulator)
        assert message.startswith(f"{fault} never fired: ")
        assert text in message


async def test_a_fault_planned_too_late() -> None:
    async with Emulator(worker(produce, accept)) as emulator:
        await emulator.fetch("/")
        emulator.faults.add("send.q#1:fail")
        assert "that occurrence had passed" in unfired(emulator)[0]
        emulator.faults.clear()
        assert unfired(emulator) == []


async def test_what_a_struck_run_does_is_no_finding() -> None:
    """The scenario's own assertions judge it."""

    def consume(batch: Any, worker: Any) -> None:
        batch.messages[0].ack()
        batch.messages[0].retry()
        worker.kept = asyncio.create_task(asyncio.sleep(5))

    config = worker(consume=consume, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:lose_ack") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.advance(0)
        subjects = {finding.subject for finding in emulator.findings}
        assert subjects == {"queue q #2"}
        assert sorted(codes(emulator)) == ["floating_task", "ignored_ack"]


async def test_a_struck_request_makes_no_finding_of_its_exception() -> None:
    async def produce(worker: Any) -> None:
        await worker.env.Q.send("x")

    async with Emulator(worker(produce, accept), faults="send.q#1:fail") as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert "Unknown Internal Error (15000)" in response.text
        assert codes(emulator) == []


async def test_reset_goes_back_to_the_plan_of_the_constructor() -> None:
    config = worker(consume=accept, consumer=AT_ONCE)
    async with Emulator(config, faults="batch.q#1:lose_ack") as emulator:
        for _ in range(2):
            await emulator.queues["q"].send("x")
            await emulator.settle()
            assert [outcome for *_, outcome in deliveries(emulator)] == ["lost", "ack"]
            await emulator.reset()


# -- the acceptance test of the documentation ------------------------------------------------------


@pytest.mark.parametrize(("idempotent", "calls"), [(False, 2), (True, 1)])
async def test_a_consumer_that_is_not_idempotent_is_caught(idempotent: bool, calls: int) -> None:
    """O-11"""
    charged: list[str] = []
    done: set[str] = set()

    async def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if not (idempotent and message.id in done):
                charged.append(message.body)
                done.add(message.id)
            message.ack()

    async with Emulator(worker(consume=consume), faults="batch.q#1:lose_ack") as emulator:
        await emulator.queues["q"].send("invoice")
        await emulator.settle()
        assert len(charged) == calls


@pytest.mark.parametrize("argument", ["", "(10 s)"])
async def test_a_poisonous_message_is_one_dead_letter_though_it_was_duplicated(
    argument: str,
) -> None:
    consumer = {"max_retries": 1, "dead_letter_queue": "d", **AT_ONCE}

    def consume(batch: Any, worker: Any) -> None:
        raise ValueError("poison")

    config = worker(consume=consume, consumer=consumer)
    async with Emulator(config, faults=f"message.q#1:duplicate{argument}") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        outcomes = sorted(outcome for *_, outcome in deliveries(emulator))
        assert outcomes == ["dead_letter", "lost", "retry"]
        assert emulator.queues["q"].dead_lettered == len(emulator.queues["d"].backlog) == 1


async def test_a_duplicate_does_not_hurry_the_batch_of_its_original() -> None:
    config = worker(consume=accept, consumer={"max_batch_size": 2, "max_batch_timeout": 5})
    async with Emulator(config, faults="message.q#1:duplicate") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.advance(4.999)
        assert deliveries(emulator) == []
        await emulator.settle()
        assert deliveries(emulator) == [(5, "x", 1, "ack"), (10, "x", 1, "ack")]


async def test_a_dropped_message_is_counted_where_it_arrived() -> None:
    def consume(batch: Any, worker: Any) -> None:
        raise ValueError("poison")

    config = worker(consume=consume, consumer={"max_retries": 0, "dead_letter_queue": "d"})
    plan = "message.q#1:drop; message.d#1:drop"
    async with Emulator(config, faults=plan) as emulator:
        await emulator.queues["q"].send_batch(["a", "b"])
        await emulator.settle()
        assert (emulator.queues["q"].dropped, emulator.queues["d"].dropped) == (1, 1)
        assert emulator.queues["d"].backlog == []


async def test_a_send_in_a_dispatched_batch_is_seen_by_the_test() -> None:
    """Nobody delivers it again: a platform that breaks off would fail correct code."""

    async def consume(batch: Any, worker: Any) -> None:
        await worker.env.Q.send("more")

    async with Emulator(worker(consume=consume)) as emulator:
        await emulator.queues["q"].dispatch(["a"])
        (site,) = [site for site in emulator.faults.sites if site.name == "send.q"]
        assert set(site.actions.values()) == {"request"}


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_every_fault_that_a_site_offers_fires_and_no_message_goes_astray(
    profile: str,
) -> None:
    """What enters a queue meets an end there, whatever happens; only `drop` keeps it out."""

    async def produce(worker: Any) -> None:
        await worker.env.Q.sendBatch([{"body": number} for number in range(5)])
        worker.ctx.waitUntil(worker.env.Q.send(5, delaySeconds=100))

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(1)
        for message in batch.messages:
            if message.body == 3 and batch.queue == "q":
                await worker.env.Q.send(7)
                raise ValueError("three")
            message.ack()

    queues = {
        "producers": [{"binding": "Q", "queue": "q"}],
        "consumers": [
            {"queue": "q", "max_batch_size": 4, "max_retries": 2, "dead_letter_queue": "d"},
            {"queue": "d"},
        ],
    }

    async def run(*plan: Any) -> tuple[list[Any], int]:
        config = worker(produce, consume, queues=queues)
        async with Emulator(config, faults=plan, profile=profile) as emulator:
            try:
                await emulator.fetch("/")
            except (WorkerCrashed, ReplyLost):
                await emulator.fetch("/")
            await emulator.settle()
            for name, queue in emulator.queues.items():
                counts = emulator._platform.queues.broker.counts(name)
                # A copy is delivered once, whatever comes of it.
                copies = sum(one.outcome == "lost" for one in queue.deliveries)
                assert counts.purged <= (copies if "duplicate" in str(plan) else 0)
                assert (queue.backlog, queue.in_flight) == ([], [])
                ended = queue.acked + queue.dead_lettered + queue.dropped
                assert ended + counts.purged == counts.entered
            return emulator.faults.sites, len(emulator.faults.fired)

    sites, _ = await run()
    faults = [fault for site in sites for fault in site.faults()]
    assert len(faults) > 50
    for fault in faults:
        _, count = await run(fault)
        assert count == 1, fault
