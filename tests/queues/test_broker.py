"""The broker, rule by rule. Times are checked from both sides, to the microsecond."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from emulator.errors import StateError
from emulator.queues.broker import Broker
from emulator.queues.model import (
    DEFAULT_RETENTION,
    LOST,
    SECOND,
    Backlog,
    Batch,
    ConsumerRules,
    Counts,
    Outgoing,
    Pending,
    Profile,
    QueueRules,
    Recovered,
    Result,
    Settled,
)
from emulator.store.records import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FrameType

    from emulator.queues.model import Duration, Instant

T0 = 1_767_225_600 * SECOND
"""When everything starts: 2026-01-01T00:00:00Z."""

PROFILES: tuple[Profile, Profile] = ("production", "miniflare")
EXCEPTION = Result("exception")


def at(seconds: float) -> Instant:
    return T0 + round(seconds * SECOND)


def make(
    *others: QueueRules, profile: Profile = "production", consumer: bool = True, **settings: Any
) -> Broker:
    """A broker with queue `q`; settings are the consumer's, and `delivery_delay` and the like."""
    own = {"delivery_delay", "retention", "paused"}
    queue = {name: settings.pop(name) for name in own & set(settings)}
    rules = ConsumerRules(**settings) if consumer else None
    return Broker([QueueRules("q", consumer=rules, **queue), *others], profile)


def eager(name: str, **settings: Any) -> QueueRules:
    """A queue whose consumer waits for nothing."""
    return QueueRules(name, consumer=ConsumerRules(max_batch_timeout=0, **settings))


def send(
    broker: Broker,
    ids: Iterable[str],
    now: Instant,
    *,
    delay: Duration | None = None,
    queue: str = "q",
) -> None:
    broker.send(queue, [Outgoing(id, b"body of " + id.encode(), "text", delay) for id in ids], now)


def labels(batch: Batch) -> list[str]:
    """`a#2` for the second delivery of `a`."""
    return [f"{message.id}#{message.attempts}" for message in batch.messages]


def take(broker: Broker, now: Instant, queue: str = "q", **options: Any) -> Batch:
    batch = broker.next_batch(queue, now, **options)
    assert batch is not None
    return batch


def arrives(
    broker: Broker, since: Instant, due: Instant, *expected: str, queue: str = "q"
) -> Batch:
    """The next batch after `since` comes at `due`, not a microsecond earlier, and is `expected`."""
    assert broker.wake_at(queue, since) == due
    if due > since:
        assert broker.next_batch(queue, due - 1) is None
    batch = take(broker, due, queue)
    assert labels(batch) == list(expected)
    return batch


def outcomes(settled: Iterable[Settled]) -> dict[str, str]:
    return {message.id: message.outcome for message in settled}


def again(settled: Iterable[Settled], now: Instant) -> dict[str, float]:
    """In how many seconds each message that comes back is due."""
    return {m.id: (m.due - now) / SECOND for m in settled if m.due is not None}


def simulate(
    broker: Broker,
    handler: Callable[[Batch], Result | None],
    sends: Iterable[tuple[float, str]] = (),
    start: Instant = T0,
    until: float = 100,
) -> list[tuple[float, str, list[str]]]:
    """Run consumers that take no time; returns each batch as (seconds, queue, messages)."""
    seen: list[tuple[float, str, list[str]]] = []
    waiting, now = sorted(sends), start
    while True:
        wakes = [(broker.wake_at(queue, now), queue) for queue in broker.queues]
        due = min([(wake, queue) for wake, queue in wakes if wake is not None], default=(None, ""))
        if waiting and (due[0] is None or at(waiting[0][0]) <= due[0]):
            seconds, ids = waiting.pop(0)
            now = at(seconds)
            send(broker, ids, now)
        elif due[0] is None or due[0] > at(until):
            return seen
        else:
            now, queue = due
            batch = take(broker, now, queue)
            seen.append(((now - T0) / SECOND, queue, labels(batch)))
            broker.settle(batch, handler(batch), now)


def accept(batch: Batch) -> Result:
    return Result()


def fail(batch: Batch) -> Result:
    return EXCEPTION


# 1. Producing: what of it reaches the broker


def test_delay_of_a_message_wins_over_that_of_the_queue() -> None:
    """1.10: explicit 0 overrides, None falls back. Scenario 22."""
    broker = make(delivery_delay=60 * SECOND, max_batch_timeout=0)
    send(broker, "a", at(0))
    send(broker, "b", at(0), delay=0)
    send(broker, "c", at(0), delay=10 * SECOND)
    seen = simulate(broker, accept)
    assert seen == [(0, "q", ["b#1"]), (10, "q", ["c#1"]), (60, "q", ["a#1"])]


def test_items_of_a_batch_are_delivered_each_after_its_delay() -> None:
    """1.10, 3.6. Scenario 21."""
    broker = make(max_batch_timeout=0)
    delays = {"a": 5 * SECOND, "b": 0, "c": 10 * SECOND}
    broker.send("q", [Outgoing(id, b"", "text", delay) for id, delay in delays.items()], at(0))
    seen = simulate(broker, accept)
    assert seen == [(0, "q", ["b#1"]), (5, "q", ["a#1"]), (10, "q", ["c#1"])]


def test_delay_of_a_day_is_kept_to_the_microsecond() -> None:
    """1.9."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0), delay=86_400 * SECOND)
    arrives(broker, at(0), at(86_400), "a#1")


def test_negative_delay_means_none() -> None:
    """1.9 leaves the range to the caller."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0), delay=-SECOND)
    arrives(broker, at(0), at(0), "a#1")


def test_backlog_counts_serialized_bodies_and_leaves_delayed_ones_out() -> None:
    """1.3, 1.12."""
    broker = make()
    assert broker.backlog("q", at(0)) == Backlog(0, 0, None)
    send(broker, "a", at(0), delay=9 * SECOND)
    send(broker, "bc", at(1))
    assert broker.backlog("q", at(1)) == Backlog(2, 2 * len(b"body of b"), at(1))
    assert broker.backlog("q", at(9) - 1).count == 2
    assert broker.backlog("q", at(9)).count == 3


def test_pending_lists_waiting_then_delayed_in_order_of_becoming_available() -> None:
    broker = make()
    send(broker, "a", at(0), delay=9 * SECOND)
    send(broker, "b", at(0), delay=3 * SECOND)
    send(broker, "c", at(1))
    assert broker.pending("q") == [
        Pending(3, "c", b"body of c", "text", at(1), 0, at(1)),
        Pending(2, "b", b"body of b", "text", at(0), 0, at(3)),
        Pending(1, "a", b"body of a", "text", at(0), 0, at(9)),
    ]


# 2. What the runtime records, and what the broker does with it

A, B, C = "a", "b", "c"
ALL_ACKED = {A: "ack", B: "ack", C: "ack"}
ALL_RETRIED = {A: "retry", B: "retry", C: "retry"}
A_ACKED = {A: "ack", B: "retry", C: "retry"}
A_RETRIED = {A: "retry", B: "ack", C: "ack"}

# What was called, what the runtime records of it, production, miniflare.
RECORDED: dict[str, tuple[Result, dict[str, str], dict[str, str]]] = {
    "nothing": (Result(), ALL_ACKED, ALL_ACKED),
    "m.ack()": (Result(explicit_acks=[A]), ALL_ACKED, ALL_ACKED),
    "m.retry()": (Result(retries={A: None}), A_RETRIED, A_RETRIED),
    "ackAll()": (Result(ack_all=True), ALL_ACKED, ALL_ACKED),
    "retryAll()": (Result(retry_batch=True), ALL_RETRIED, ALL_RETRIED),
    "retryAll(); m.retry()": (
        Result(retry_batch=True, retries={A: None}),
        ALL_RETRIED,
        ALL_RETRIED,
    ),
    "m.ack(); retryAll()": (
        Result(retry_batch=True, explicit_acks=[A]),
        A_ACKED,
        ALL_RETRIED,
    ),
    "both flags, which the runtime never records": (
        Result(ack_all=True, retry_batch=True),
        ALL_ACKED,
        ALL_RETRIED,
    ),
    "m.retry(); ackAll()": (Result(ack_all=True, retries={A: None}), A_RETRIED, A_RETRIED),
    "throw": (Result("exception"), ALL_RETRIED, ALL_RETRIED),
    "m.ack(); throw": (Result("exception", explicit_acks=[A]), A_ACKED, ALL_RETRIED),
    "ackAll(); throw": (Result("exception", ack_all=True), ALL_ACKED, ALL_RETRIED),
    "m.retry(); throw": (Result("exception", retries={A: None}), ALL_RETRIED, ALL_RETRIED),
    "retryAll(); throw": (Result("exception", retry_batch=True), ALL_RETRIED, ALL_RETRIED),
    "m.retry(); ackAll(); throw": (
        Result("exception", ack_all=True, retries={A: None}),
        A_RETRIED,
        ALL_RETRIED,
    ),
    "m.ack(); retryAll(); throw": (
        Result("exception", retry_batch=True, explicit_acks=[A]),
        A_ACKED,
        ALL_RETRIED,
    ),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("calls", RECORDED)
def test_result_is_judged_by_the_table(calls: str, profile: Profile) -> None:
    """2.9, 2.10, both columns. Scenarios 24, 29, 30, 37, 38, 39."""
    result, production, miniflare = RECORDED[calls]
    broker = make(profile=profile, max_batch_timeout=0, max_batch_size=3)
    send(broker, "abc", at(0))
    settled = broker.settle(take(broker, at(0)), result, at(1))
    expected = production if profile == "production" else miniflare
    assert outcomes(settled) == expected
    left = [id for id, outcome in expected.items() if outcome == "retry"]
    assert [message.id for message in broker.pending("q")] == left


def test_settled_tells_all_about_each_message_in_batch_order() -> None:
    broker = make(max_batch_timeout=0, retry_delay=5 * SECOND)
    send(broker, "ab", at(0))
    settled = broker.settle(take(broker, at(0)), Result(retries={B: None}), at(1))
    assert settled == [
        Settled(1, "a", 1, "ack", None, b"body of a", "text", at(0)),
        Settled(2, "b", 1, "retry", at(6), b"body of b", "text", at(0)),
    ]


def test_returning_normally_acknowledges_everything_for_good() -> None:
    """2.10. Scenario 24."""
    broker = make(max_batch_timeout=0)
    send(broker, "abc", at(0))
    broker.settle(take(broker, at(0)), Result(), at(0))
    assert broker.backlog("q", at(1000)).count == 0
    assert broker.wake_at("q", at(1000)) is None
    assert broker.counts("q") == Counts(3, 3, 3, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("result", "due"),
    [
        pytest.param(Result(retries={A: 3 * SECOND}), {A: 3}, id="m.retry(3)"),
        pytest.param(Result(retries={A: None}), {A: 10}, id="m.retry(): retry_delay"),
        pytest.param(Result(retries={A: 0}), {A: 0}, id="m.retry(0) overrides retry_delay"),
        pytest.param(Result(retries={A: -SECOND}), {A: 0}, id="m.retry(-1): at once"),
        pytest.param(Result(retries={A: 86_401 * SECOND}), {A: 86_401}, id="past the range"),
        pytest.param(
            Result(retry_batch=True, retry_batch_delay=7 * SECOND),
            {A: 7, B: 7, C: 7},
            id="retryAll(7)",
        ),
        pytest.param(Result(retry_batch=True), {A: 10, B: 10, C: 10}, id="retryAll()"),
        pytest.param(
            Result(retry_batch=True, retry_batch_delay=2 * SECOND, retries={A: 0}),
            {A: 0, B: 2, C: 2},
            id="retryAll(2) and m.retry(0)",
        ),
        pytest.param(
            Result(retry_batch=True, retry_batch_delay=2 * SECOND, retries={A: None}),
            {A: 2, B: 2, C: 2},
            id="m.retry() and retryAll(2)",
        ),
        pytest.param(
            Result("exception", retry_batch=True, retry_batch_delay=2 * SECOND),
            {A: 2, B: 2, C: 2},
            id="retryAll(2), throw",
        ),
        pytest.param(EXCEPTION, {A: 10, B: 10, C: 10}, id="throw: retry_delay"),
        pytest.param(
            Result("exception", retries={A: SECOND}), {A: 1, B: 10, C: 10}, id="m.retry(1), throw"
        ),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_retry_comes_after_the_nearest_delay_given(
    result: Result, due: dict[str, float], profile: Profile
) -> None:
    """2.10, 2.15. Scenarios 34 to 36 and 40; 34's lost first delay is the runtime's business."""
    broker = make(profile=profile, max_batch_size=3, max_batch_timeout=0, retry_delay=10 * SECOND)
    send(broker, "abc", at(0))
    settled = broker.settle(take(broker, at(0)), result, at(1))
    assert again(settled, at(1)) == due
    for id, seconds in due.items():
        assert id not in _ids_by(broker, at(1 + seconds) - 1) or seconds == 0
        assert id in _ids_by(broker, at(1 + seconds))


def _ids_by(broker: Broker, now: Instant) -> set[str]:
    """The ids that are available at an instant, looking only."""
    return {message.id for message in broker.pending("q") if message.due <= now}


def test_one_retried_message_comes_back_alone() -> None:
    """2.10, 2.15. Scenario 33."""
    broker = make(max_batch_size=3, max_batch_timeout=0)
    send(broker, "abc", at(0))
    broker.settle(take(broker, at(0)), Result(retries={B: 3 * SECOND}), at(0))
    batch = arrives(broker, at(0), at(3), "b#2")
    broker.settle(batch, Result(), at(3))
    assert broker.wake_at("q", at(3)) is None


def test_acknowledged_before_the_handler_raised() -> None:
    """2.10. Scenario 29: production keeps the ack, miniflare does not."""
    for profile in PROFILES:
        broker = make(profile=profile, max_batch_timeout=0)
        send(broker, "abc", at(0))
        broker.settle(take(broker, at(0)), Result("exception", explicit_acks=(A,)), at(0))
        back = ["b#2", "c#2"] if profile == "production" else ["a#2", "b#2", "c#2"]
        assert labels(take(broker, at(0))) == back


@pytest.mark.parametrize(
    "outcome",
    [
        "unknown",
        "exception",
        "exceededCpu",
        "killSwitch",
        "daemonDown",
        "scriptNotFound",
        "canceled",
        "exceededMemory",
        "loadShed",
        "responseStreamDisconnected",
        "internalError",
        "exceededWallTime",
        "aborted",
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_outcome_but_ok_fails_the_batch(outcome: str, profile: Profile) -> None:
    """2.11, 2.12, 2.13, 3.8."""
    broker = make(profile=profile, max_batch_timeout=0)
    send(broker, "ab", at(0))
    settled = broker.settle(take(broker, at(0)), Result(outcome), at(0))
    assert outcomes(settled) == {A: "retry", B: "retry"}


def test_ids_that_are_not_in_the_batch_have_no_effect() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    result = Result(explicit_acks={"x"}, retries={"y": 0})
    assert outcomes(broker.settle(take(broker, at(0)), result, at(0))) == {A: "ack"}
    assert broker.pending("q") == []


# 3. Batches, order, timers


def test_defaults_are_those_of_production() -> None:
    """3.1, 3.9."""
    assert ConsumerRules() == ConsumerRules(10, 5 * SECOND, 3, 0, None, None)
    assert QueueRules("q") == QueueRules("q", 0, 345_600 * SECOND, False, None)


def test_batch_is_delivered_when_its_time_is_up() -> None:
    """3.2. Scenario 1."""
    broker = make()
    send(broker, "a", at(0))
    arrives(broker, at(0), at(5), "a#1")


def test_time_runs_from_the_first_message() -> None:
    """3.2: recorded as queue_batch_by_timeout, sends at 0, 0, 0.5 and 1.5 s."""
    broker = make(profile="miniflare", max_batch_size=10, max_batch_timeout=SECOND)
    seen = simulate(broker, accept, [(0, "a"), (0, "b"), (0.5, "c"), (1.5, "d")])
    assert seen == [(1, "q", ["a#1", "b#1", "c#1"]), (2.5, "q", ["d#1"])]


def test_full_batch_is_delivered_at_once_in_send_order() -> None:
    """3.2. Scenario 2."""
    broker = make()
    for id in "jihgfedcb":
        send(broker, id, at(0))
        assert broker.wake_at("q", at(0)) == at(5)
    send(broker, "a", at(0))
    arrives(broker, at(0), at(0), *[f"{id}#1" for id in "jihgfedcba"])


@pytest.mark.parametrize(
    ("sends", "expected"),
    [
        pytest.param([(0, "a")], [(1, ["a"])], id="one"),
        pytest.param([(0, "abcde")], [(0, ["abcde"])], id="a full batch"),
        pytest.param([(0, "abcdefg")], [(0, ["abcde"]), (1, ["fg"])], id="scenario 3"),
        pytest.param(
            [(0, "abcdef"), (0.5, "ghijk")],
            [(0, ["abcde"]), (0.5, ["fghij"]), (1.5, ["k"])],
            id="scenario 4",
        ),
        pytest.param([(0, "a"), (0, "bc"), (0, "d")], [(1, ["abcd"])], id="scenario 5"),
        pytest.param([(0, "abcd"), (0.9, "e")], [(0.9, ["abcde"])], id="filled late"),
        pytest.param(
            [(0, "abcdefghijkl")], [(0, ["abcde"]), (0, ["fghij"]), (1, ["kl"])], id="twelve"
        ),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_batches_of_five_within_a_second(
    sends: list[tuple[float, str]], expected: list[tuple[float, list[str]]], profile: Profile
) -> None:
    """3.3, with the verified timings; recorded as queue_batch_defaults. Scenarios 3 to 5."""
    broker = make(profile=profile, max_batch_size=5, max_batch_timeout=SECOND)
    seen = simulate(broker, accept, sends)
    assert [(time, ["".join(label[0] for label in batch)]) for time, _, batch in seen] == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_timeout_zero_delivers_at_once(profile: Profile) -> None:
    """3.2: recorded as queue_batch_timeout_zero; what came at once is one batch. Scenario 6."""
    broker = make(profile=profile, max_batch_timeout=0)
    for id in "abc":
        send(broker, id, at(0))
    batch = arrives(broker, at(0), at(0), "a#1", "b#1", "c#1")
    broker.settle(batch, Result(), at(0))
    send(broker, "def", at(0.5))
    arrives(broker, at(0.5), at(0.5), "d#1", "e#1", "f#1")


def test_empty_queue_never_wakes_anyone() -> None:
    """2.7. Scenario 7."""
    broker = make()
    assert broker.wake_at("q", at(0)) is None
    assert broker.next_batch("q", at(3600)) is None
    assert broker.expires_at("q") is None


def test_leftovers_wait_a_full_timeout_from_the_end_of_the_batch() -> None:
    """3.3."""
    broker = make(max_batch_size=2)
    send(broker, "abc", at(0))
    batch = arrives(broker, at(0), at(0), "a#1", "b#1")
    broker.settle(batch, Result(), at(100))
    arrives(broker, at(100), at(105), "c#1")


def test_leftovers_that_fill_a_batch_go_at_the_end_of_the_one_before() -> None:
    """3.3, 3.5: serial."""
    broker = make(max_batch_size=2)
    send(broker, "abcd", at(0))
    batch = take(broker, at(0))
    assert broker.wake_at("q", at(0)) is None
    assert broker.next_batch("q", at(60)) is None
    broker.settle(batch, Result(), at(60))
    arrives(broker, at(60), at(60), "c#1", "d#1")


def test_message_that_came_during_a_batch_waits_from_its_end() -> None:
    """3.3: no timer runs while the consumer is busy."""
    broker = make()
    send(broker, "a", at(0))
    batch = take(broker, at(5))
    send(broker, "b", at(6))
    broker.settle(batch, Result(), at(8))
    arrives(broker, at(8), at(13), "b#1")


def test_message_that_came_after_a_batch_waits_from_its_own_arrival() -> None:
    """3.3."""
    broker = make()
    send(broker, "a", at(0))
    broker.settle(take(broker, at(5)), Result(), at(6))
    send(broker, "b", at(9))
    arrives(broker, at(9), at(14), "b#1")


def test_line_is_first_in_first_out_with_retried_messages_at_its_end() -> None:
    """3.4. Scenario 46."""
    broker = make(max_batch_size=4, max_batch_timeout=2 * SECOND)
    broker.send("q", [Outgoing("r1", b"", "text"), Outgoing("r2", b"", "text")], at(0))
    broker.settle(take(broker, at(2)), Result(retry_batch=True), at(2))
    send(broker, "b", at(3))
    send(broker, "c", at(3.5))
    arrives(broker, at(3.5), at(3.5), "r1#2", "r2#2", "b#1", "c#1")


def test_retried_message_goes_behind_those_that_came_during_the_batch() -> None:
    """3.4: available since the end of the batch."""
    broker = make(max_batch_size=2, max_batch_timeout=0)
    send(broker, "ab", at(0))
    batch = take(broker, at(0))
    send(broker, "cd", at(1))
    broker.settle(batch, Result(retries={A: None}), at(2))
    seen = simulate(broker, accept, start=at(2))
    assert seen == [(2, "q", ["c#1", "d#1"]), (2, "q", ["a#2"])]


@pytest.mark.parametrize("timeout", [0, 1])
def test_part_of_a_batch_retried_comes_after_the_rest_of_the_queue(timeout: int) -> None:
    """3.4: recorded as queue_order_partial_retry and queue_order_partial_retry_timeout0."""
    broker = make(profile="miniflare", max_batch_size=4, max_batch_timeout=timeout * SECOND)

    def retry_b_and_c(batch: Batch) -> Result:
        return Result(retries={m.id: 0 for m in batch.messages if m.attempts == 1 and m.id in "bc"})

    assert simulate(broker, retry_b_and_c, [(0, "abcdefgh")]) == [
        (0, "q", ["a#1", "b#1", "c#1", "d#1"]),
        (0, "q", ["e#1", "f#1", "g#1", "h#1"]),
        (timeout, "q", ["b#2", "c#2"]),
    ]


def test_what_becomes_due_first_is_first_and_ties_keep_the_order_of_entry() -> None:
    """3.4."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0), delay=3 * SECOND)
    send(broker, "b", at(1), delay=2 * SECOND)
    send(broker, "c", at(1), delay=SECOND)
    send(broker, "d", at(3))
    send(broker, "e", at(3))
    assert labels(take(broker, at(3))) == ["c#1", "a#1", "b#1", "d#1", "e#1"]


def test_concurrency_is_what_the_caller_asks_and_the_consumer_allows() -> None:
    """3.5."""
    broker = make(max_batch_size=1, max_batch_timeout=0, max_concurrency=2)
    send(broker, "abc", at(0))
    first = take(broker, at(0))
    assert broker.next_batch("q", at(0)) is None
    second = take(broker, at(0), concurrency=9)
    assert [flight.number for flight in broker.in_flight("q")] == [1, 2]
    assert broker.next_batch("q", at(0), concurrency=9) is None
    assert broker.wake_at("q", at(0), concurrency=9) is None
    broker.settle(second, Result(), at(1))
    assert broker.wake_at("q", at(1)) is None
    assert labels(take(broker, at(1), concurrency=9)) == ["c#1"]
    broker.settle(first, EXCEPTION, at(2))
    assert [flight.number for flight in broker.in_flight("q")] == [3]


def test_batch_may_be_taken_without_waiting_for_a_full_one() -> None:
    broker = make(max_batch_size=2, max_batch_timeout=5)
    send(broker, "abc", at(0))
    take(broker, at(0))
    assert broker.next_batch("q", at(0), concurrency=2) is None
    assert labels(take(broker, at(0), concurrency=2, at_once=True)) == ["c#1"]
    send(broker, "d", at(0), delay=9 * SECOND)
    assert broker.next_batch("q", at(0), concurrency=3, at_once=True) is None


def test_concurrency_ends_at_the_platforms_limit() -> None:
    """3.1, 3.5: 250 where the consumer sets none."""
    broker = make(max_batch_size=1, max_batch_timeout=0)
    broker.send("q", [Outgoing(str(number), b"", "text") for number in range(251)], at(0))
    for _ in range(250):
        take(broker, at(0), concurrency=1000)
    assert broker.next_batch("q", at(0), concurrency=1000) is None


def test_timer_of_a_second_batch_does_not_restart_when_the_first_one_ends() -> None:
    """3.2, 3.5: with a slot free all the time nothing but the message decides."""
    broker = make(max_batch_size=9)
    send(broker, "a", at(0))
    first = take(broker, at(5))
    send(broker, "b", at(6))
    broker.settle(first, Result(), at(8))
    assert broker.wake_at("q", at(8), concurrency=2) == at(11)
    assert broker.wake_at("q", at(8), concurrency=1) == at(13)


def test_leftovers_wait_from_the_taking_when_another_batch_may_start() -> None:
    """3.3, 3.5: the consumer is free again at once, so the timer runs at once."""
    broker = make(max_batch_size=2)
    send(broker, "ab", at(0))
    first = take(broker, at(0))
    send(broker, "cde", at(2))
    broker.settle(first, Result(), at(8))
    assert labels(take(broker, at(8))) == ["c#1", "d#1"]
    assert broker.wake_at("q", at(8), concurrency=2) == at(13)


def test_timer_runs_from_when_one_of_two_batches_ended() -> None:
    """3.3, 3.5: with two at once allowed, the consumer is free as soon as one of two has ended."""
    broker = make(max_batch_size=2)
    send(broker, "abcd", at(0))
    take(broker, at(0))
    second = take(broker, at(0), concurrency=2)
    send(broker, "e", at(1))
    broker.settle(second, Result(), at(8))
    assert broker.wake_at("q", at(8), concurrency=2) == at(13)
    assert broker.wake_at("q", at(8), concurrency=3) == at(8)


def test_delayed_message_is_invisible_until_due_and_then_waits_like_a_new_one() -> None:
    """3.6: recorded as queue_send_delay_plus_batch_timeout."""
    broker = make(profile="miniflare", max_batch_size=3, max_batch_timeout=SECOND)
    send(broker, "a", at(0), delay=SECOND)
    assert broker.backlog("q", at(1) - 1).count == 0
    arrives(broker, at(0), at(2), "a#1")


def test_delayed_message_is_delivered_with_its_send_time() -> None:
    """2.5, 3.6. Scenario 20."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0), delay=30 * SECOND)
    batch = arrives(broker, at(0), at(30), "a#1")
    assert batch.messages[0].timestamp == at(0)
    assert batch.started == at(30)


def test_batch_is_full_at_the_instant_enough_delayed_messages_are_due() -> None:
    """3.2, 3.6: fullness may come from messages due at different times."""
    broker = make(max_batch_size=4, max_batch_timeout=9 * SECOND)
    send(broker, "a", at(0), delay=SECOND)
    send(broker, "bc", at(0), delay=4 * SECOND)
    send(broker, "d", at(0), delay=6 * SECOND)
    send(broker, "e", at(0), delay=7 * SECOND)
    arrives(broker, at(0), at(6), "a#1", "b#1", "c#1", "d#1")


def test_timer_wins_over_messages_due_later() -> None:
    """3.2, 3.6."""
    broker = make(max_batch_size=2, max_batch_timeout=2 * SECOND)
    send(broker, "a", at(0), delay=SECOND)
    send(broker, "b", at(0), delay=3 * SECOND + 1)
    arrives(broker, at(0), at(3), "a#1")


def test_retried_message_waits_its_delay_and_then_like_a_new_one() -> None:
    """3.6, 3.7: exact here; recorded as queue_retry_one_of_three."""
    broker = make(profile="miniflare", max_batch_size=3, max_batch_timeout=SECOND)
    send(broker, "abc", at(0))
    broker.settle(take(broker, at(0)), Result(retries={B: None}), at(0))
    arrives(broker, at(0), at(1), "b#2")


def test_message_expires_at_the_end_of_its_retention() -> None:
    """3.9. Scenario 55: paused all the time."""
    broker = make(retention=60 * SECOND, paused=True)
    send(broker, "a", at(0))
    send(broker, "b", at(2))
    assert broker.expires_at("q") == at(60)
    assert broker.expire("q", at(60) - 1) == []
    assert [message.id for message in broker.expire("q", at(60))] == ["a"]
    assert broker.expires_at("q") == at(62)
    assert [message.id for message in broker.expire("q", at(99))] == ["b"]
    assert broker.expires_at("q") is None
    assert broker.counts("q").expired == 2
    assert broker.backlog("q", at(99)) == Backlog(0, 0, None)
    broker.resume("q", at(99))
    assert broker.wake_at("q", at(99)) is None


def test_retention_is_four_days_unless_set() -> None:
    """3.9."""
    broker = make(consumer=False)
    send(broker, "a", at(0))
    assert broker.expires_at("q") == T0 + DEFAULT_RETENTION == at(4 * 86_400)


def test_expired_message_is_not_delivered_even_if_nobody_asked_to_expire_it() -> None:
    """3.9."""
    broker = make(retention=60 * SECOND, max_batch_timeout=59 * SECOND)
    send(broker, "a", at(0))
    send(broker, "b", at(1))
    assert labels(take(broker, at(60))) == ["b#1"]
    assert broker.counts("q").expired == 1


def test_delayed_message_expires_too() -> None:
    """3.9: retention counts from entry, delayed or not."""
    broker = make(retention=60 * SECOND, max_batch_timeout=0)
    send(broker, "ab", at(0), delay=90 * SECOND)
    send(broker, "c", at(0), delay=90 * SECOND)
    send(broker, "d", at(40), delay=50 * SECOND)
    assert [message.id for message in broker.expire("q", at(60))] == ["a", "b", "c"]
    arrives(broker, at(60), at(90), "d#1")


def test_message_due_when_an_expired_one_was_to_be_is_counted_once() -> None:
    """3.2, 3.9: it alone does not fill a batch of two."""
    broker = make(retention=60 * SECOND, max_batch_size=2)
    send(broker, "a", at(0), delay=90 * SECOND)
    assert [message.id for message in broker.expire("q", at(60))] == ["a"]
    send(broker, "b", at(60), delay=30 * SECOND)
    arrives(broker, at(60), at(95), "b#1")


def test_message_in_flight_does_not_expire_before_it_comes_back() -> None:
    """3.9."""
    broker = make(retention=60 * SECOND, max_batch_timeout=0)
    send(broker, "ab", at(0))
    batch = take(broker, at(59))
    assert broker.expires_at("q") is None
    assert broker.expire("q", at(70)) == []
    broker.settle(batch, Result(retries={B: None}), at(70))
    assert broker.expires_at("q") == at(60)
    assert [message.attempts for message in broker.expire("q", at(70))] == [1]
    assert broker.counts("q") == Counts(2, 2, 1, 0, 0, 1, 0)


def test_expired_message_in_the_middle_of_the_line_is_passed_over() -> None:
    """3.4, 3.9: a retried message is older than those before it in the line."""
    broker = make(retention=60 * SECOND, max_batch_size=4, max_batch_timeout=0)
    send(broker, "ab", at(0))
    batch = take(broker, at(0))
    send(broker, "cd", at(50))
    broker.settle(batch, Result(retries={A: None, B: None}), at(55))
    send(broker, "e", at(56))
    assert [message.id for message in broker.expire("q", at(60))] == ["a", "b"]
    assert broker.backlog("q", at(60)).count == 3
    assert labels(take(broker, at(60))) == ["c#1", "d#1", "e#1"]


def test_queue_without_consumer_keeps_messages_only_in_production() -> None:
    """3.10."""
    kept = make(consumer=False)
    send(kept, "ab", at(0))
    assert kept.wake_at("q", at(0)) is None
    assert kept.next_batch("q", at(60)) is None
    assert kept.backlog("q", at(60)).count == 2
    lost = make(consumer=False, profile="miniflare")
    send(lost, "ab", at(0))
    assert lost.pending("q") == []
    assert lost.counts("q") == Counts(2, 0, 0, 0, 2, 0, 0)


# 4. Retries and dead letters


def test_attempts_count_deliveries_whatever_the_reason() -> None:
    """4.1."""
    broker = make(max_batch_timeout=0, max_retries=9)
    send(broker, "a", at(0))
    reasons = [EXCEPTION, Result(retries={A: None}), Result(retry_batch=True), LOST, Result()]
    attempts = []
    for reason in reasons:
        batch = take(broker, at(0))
        attempts.append(batch.messages[0].attempts)
        broker.settle(batch, reason, at(0))
    assert attempts == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("retries", [0, 1, 3, 100])
def test_message_is_delivered_once_more_than_max_retries(retries: int, profile: Profile) -> None:
    """4.2, 4.4. Scenarios 25 and 26."""
    broker = make(profile=profile, max_batch_timeout=0, max_retries=retries)
    seen = simulate(broker, fail, [(0, "a")])
    assert seen == [(0, "q", [f"a#{attempt}"]) for attempt in range(1, retries + 2)]
    assert broker.counts("q") == Counts(1, retries + 1, 0, 0, 1, 0, 0)


def test_retries_change_nothing_but_the_attempts() -> None:
    """2.4, 2.5, 4.1: id, timestamp and body are those sent, at every delivery."""
    broker = make(max_batch_timeout=0, max_retries=2, retry_delay=7 * SECOND)
    send(broker, "a", at(0), delay=3 * SECOND)
    for attempt, now in ((1, 3), (2, 10), (3, 17)):
        batch = arrives(broker, at(now), at(now), f"a#{attempt}")
        assert batch.messages[0][1:] == ("a", b"body of a", "text", at(0), attempt)
        broker.settle(batch, EXCEPTION, at(now))


def test_dead_letter_moves_right_after_the_last_failure() -> None:
    """4.2, 4.3: the messages around it go on; recorded as queue_dlq_mixed."""
    broker = make(
        eager("d"),
        max_batch_timeout=0,
        max_retries=1,
        retry_delay=60 * SECOND,
        dead_letter_queue="d",
    )
    send(broker, "ab", at(0))
    broker.settle(take(broker, at(0)), EXCEPTION, at(0))
    assert broker.pending("d") == []
    batch = arrives(broker, at(0), at(60), "a#2", "b#2")
    settled = broker.settle(batch, Result(retries={B: None}), at(61))
    assert outcomes(settled) == {A: "ack", B: "dead_letter"}
    arrives(broker, at(61), at(61), "b#1", queue="d")
    assert broker.wake_at("q", at(61)) is None


def test_retries_come_retry_delay_apart() -> None:
    """4.2. Scenario 27."""
    broker = make(max_batch_timeout=0, max_retries=2, retry_delay=5 * SECOND)
    seen = simulate(broker, fail, [(0, "a")], until=1000)
    assert seen == [(0, "q", ["a#1"]), (5, "q", ["a#2"]), (10, "q", ["a#3"])]


@pytest.mark.parametrize("grave", [None, "d"])
def test_last_failure_ignores_the_delay_asked_for(grave: str | None) -> None:
    """4.3."""
    broker = make(
        eager("d"), max_batch_timeout=0, max_retries=0, retry_delay=SECOND, dead_letter_queue=grave
    )
    send(broker, "a", at(0))
    (settled,) = broker.settle(take(broker, at(0)), Result(retries={A: 60 * SECOND}), at(1))
    assert (settled.outcome, settled.due) == (
        ("dropped", None) if grave is None else ("dead_letter", at(1))
    )
    assert broker.pending("q") == []


@pytest.mark.parametrize("profile", PROFILES)
def test_dead_letter_keeps_all_but_its_attempts(profile: Profile) -> None:
    """4.5: recorded as queue_dlq_basic and queue_dlq_content_types. Scenario 28."""
    broker = make(
        eager("d"),
        profile=profile,
        max_batch_size=4,
        max_batch_timeout=0,
        max_retries=2,
        dead_letter_queue="d",
    )
    bodies = {"text": b"txt", "json": b'{"j":1}', "bytes": b"\x01\x02\x03", "v8": b"\xff\x0f;"}
    sent = [Outgoing(f"id-{kind}", body, kind) for kind, body in bodies.items()]
    broker.send("q", sent, at(0))
    for attempt in (1, 2, 3):
        batch = arrives(broker, at(attempt), at(attempt), *_all(sent, attempt))
        settled = broker.settle(batch, EXCEPTION, at(attempt))
    assert {message.outcome for message in settled} == {"dead_letter"}
    batch = arrives(broker, at(3), at(3), *_all(sent, 1), queue="d")
    assert batch.queue == "d"
    assert [(m.id, m.body, m.content_type) for m in batch.messages] == [m[:3] for m in sent]
    assert {message.timestamp for message in batch.messages} == {at(0)}
    assert broker.counts("q").dead_lettered == 4
    assert broker.counts("d").entered == 4


def _all(messages: Sequence[Outgoing], attempt: int) -> list[str]:
    return [f"{message.id}#{attempt}" for message in messages]


def test_dead_letters_obey_their_queues_delay_batching_and_retention() -> None:
    """4.5: the DLQ's own delivery delay; 3.9: its retention starts at entry."""
    grave = QueueRules(
        "d",
        delivery_delay=30 * SECOND,
        retention=100 * SECOND,
        consumer=ConsumerRules(max_batch_size=9, max_batch_timeout=4 * SECOND),
    )
    broker = make(grave, max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    send(broker, "ab", at(0))
    settled = broker.settle(take(broker, at(1)), EXCEPTION, at(7))
    assert again(settled, at(7)) == {A: 30, B: 30}
    assert broker.expires_at("d") == at(107)
    arrives(broker, at(7), at(41), "a#1", "b#1", queue="d")


def test_only_exhausted_messages_move() -> None:
    """4.2, 4.5: recorded as queue_dlq_mixed."""
    broker = make(
        eager("d"),
        profile="miniflare",
        max_batch_size=3,
        max_batch_timeout=0,
        max_retries=1,
        dead_letter_queue="d",
    )

    def retry_b(batch: Batch) -> Result:
        return Result(retries={B: None} if batch.queue == "q" else {})

    assert simulate(broker, retry_b, [(0, "abc")]) == [
        (0, "q", ["a#1", "b#1", "c#1"]),
        (0, "q", ["b#2"]),
        (0, "d", ["b#1"]),
    ]


def test_dead_letter_queue_may_have_its_own() -> None:
    """4.6: recorded as queue_dlq_chain."""
    broker = make(
        eager("d", max_retries=1, dead_letter_queue="d2"),
        eager("d2"),
        profile="miniflare",
        max_batch_size=3,
        max_batch_timeout=0,
        max_retries=1,
        dead_letter_queue="d",
    )

    def fail_before_the_end(batch: Batch) -> Result:
        return Result() if batch.queue == "d2" else EXCEPTION

    seen = simulate(broker, fail_before_the_end, [(0, "abc")])
    first, second = ["a#1", "b#1", "c#1"], ["a#2", "b#2", "c#2"]
    assert [(queue, batch) for _, queue, batch in seen] == [
        ("q", first),
        ("q", second),
        ("d", first),
        ("d", second),
        ("d2", first),
    ]


def test_two_queues_may_be_each_others_dead_letter_queue() -> None:
    """4.6."""
    broker = make(
        eager("d", max_retries=0, dead_letter_queue="q"),
        max_batch_timeout=0,
        max_retries=0,
        dead_letter_queue="d",
    )
    send(broker, "a", at(0))
    for queue in ("q", "d", "q", "d"):
        broker.settle(take(broker, at(0), queue), EXCEPTION, at(0))
    assert [message.id for message in broker.pending("q")] == ["a"]


@pytest.mark.parametrize(("profile", "kept"), [("production", ["a"]), ("miniflare", [])])
def test_dead_letter_queue_without_consumer(profile: Profile, kept: list[str]) -> None:
    """4.5, 3.10: recorded as queue_dlq_no_consumer; 4.7: it need not be configured."""
    broker = make(profile=profile, max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    assert broker.queues == ("q", "d")
    send(broker, "a", at(0))
    (settled,) = broker.settle(take(broker, at(0)), EXCEPTION, at(0))
    assert settled.outcome == "dead_letter"
    assert [message.id for message in broker.pending("d")] == kept
    assert broker.counts("d").dropped == 1 - len(kept)


# 6. Pause, purge, metrics


def test_batch_tells_what_remains() -> None:
    """2.2. Scenario 43."""
    broker = make(max_batch_size=5)
    for second, id in enumerate("abcdefgh"):
        send(broker, id, at(second / 10))
    batch = take(broker, at(0.7))
    assert batch.backlog == Backlog(3, 3 * len(b"body of a"), at(0.5))
    broker.settle(batch, Result(), at(1))
    assert take(broker, at(6)).backlog == Backlog(0, 0, None)


def test_paused_queue_accepts_but_does_not_deliver() -> None:
    """6.1. Scenario 47."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    batch = take(broker, at(0))
    broker.pause("q", at(1))
    broker.pause("q", at(1))
    assert broker.paused("q")
    send(broker, "b", at(2))
    assert outcomes(broker.settle(batch, EXCEPTION, at(3))) == {A: "retry"}
    assert broker.wake_at("q", at(4)) is None
    assert broker.next_batch("q", at(4)) is None
    assert broker.backlog("q", at(4)).count == 2
    broker.resume("q", at(5))
    arrives(broker, at(5), at(5), "b#1", "a#2")


def test_what_became_due_during_a_pause_is_delivered_when_it_ends() -> None:
    """6.1: its time in the line counts from when it was due, paused or not."""
    broker = make(max_batch_size=9, max_batch_timeout=5 * SECOND)
    broker.pause("q", at(0))
    send(broker, "a", at(0), delay=10 * SECOND)
    send(broker, "b", at(0), delay=16 * SECOND)
    assert broker.wake_at("q", at(14)) is None
    broker.resume("q", at(14))
    arrives(broker, at(14), at(15), "a#1")
    broker.pause("q", at(16))
    assert broker.in_flight("q") != []
    broker.settle(Batch(1, "q", (), at(15), Backlog(0, 0, None)), Result(), at(17))
    broker.resume("q", at(60))
    arrives(broker, at(60), at(60), "b#1")


def test_delayed_and_retried_messages_are_purged_and_later_ones_are_not() -> None:
    """6.2."""
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    broker.settle(take(broker, at(0)), Result(retries={A: 9 * SECOND}), at(0))
    send(broker, "b", at(1), delay=8 * SECOND)
    assert [message.id for message in broker.purge("q", at(2))] == ["a", "b"]
    send(broker, "c", at(2), delay=7 * SECOND)
    arrives(broker, at(2), at(9), "c#1")
    assert broker.expires_at("q") is None


def test_purge_deletes_waiting_and_delayed_but_not_what_is_in_flight() -> None:
    """6.2. Scenario 48."""
    broker = make(max_batch_size=3, max_batch_timeout=0)
    send(broker, "abc", at(0))
    batch = take(broker, at(0))
    send(broker, "def", at(1))
    send(broker, "gh", at(1), delay=60 * SECOND)
    assert [message.id for message in broker.purge("q", at(2))] == list("defgh")
    assert broker.purge("q", at(2)) == []
    assert broker.wake_at("q", at(2)) is None
    broker.settle(batch, Result(retries={A: 0}), at(3))
    arrives(broker, at(3), at(3), "a#2")
    assert broker.counts("q") == Counts(8, 4, 2, 0, 0, 0, 5)


def test_stored_messages_are_told_in_parts() -> None:
    broker = make(max_batch_timeout=0, max_batch_size=1)
    send(broker, "abc", at(0))
    send(broker, "de", at(0), delay=60 * SECOND)
    take(broker, at(0))
    everything = broker.pending("q")
    assert [message.id for message in broker.page("q", 1, 2)] == ["c", "d"]
    assert broker.page("q", 3, 2) == everything[3:]
    assert broker.page("q", 9, 2) == []
    assert broker.pending_at("q", everything[3].seq) == everything[3]
    assert broker.pending_at("q", 1) is None


def test_some_messages_are_discarded_by_number() -> None:
    """What a person deletes by hand counts as purged; what is in flight stays."""
    broker = make(max_batch_size=1, max_batch_timeout=0)
    send(broker, "abc", at(0))
    send(broker, "d", at(0), delay=60 * SECOND)
    take(broker, at(0))
    seqs = {message.id: message.seq for message in broker.pending("q")}
    discarded = broker.discard("q", [1, seqs["b"], seqs["d"], 99], at(1))
    assert [message.id for message in discarded] == ["b", "d"]
    assert [message.id for message in broker.pending("q")] == ["c"]
    assert broker.counts("q").purged == 2
    assert broker.discard("q", [seqs["b"]], at(1)) == []


def test_delayed_message_is_hastened() -> None:
    broker = make(max_batch_timeout=0, max_batch_size=1)
    send(broker, "ab", at(0), delay=60 * SECOND)
    send(broker, "c", at(0), delay=9 * SECOND)
    seqs = {message.id: message.seq for message in broker.pending("q")}
    assert [message.id for message in broker.hasten("q", [seqs["b"]], at(1))] == ["b"]
    assert broker.hasten("q", [seqs["b"]], at(1)) == []
    assert broker.wake_at("q", at(1)) == at(1)
    assert [message.id for message in take(broker, at(1)).messages] == ["b"]
    assert [message.due for message in broker.pending("q")] == [at(9), at(60)]


# What a fault leaves


def test_lost_result_acknowledges_nothing_and_asks_for_nothing() -> None:
    """A lost delivery counts as an attempt and `retry_delay` applies."""
    broker = make(max_batch_timeout=0, max_retries=1, retry_delay=4 * SECOND)
    send(broker, "ab", at(0))
    settled = broker.settle(take(broker, at(0)), LOST, at(1))
    assert outcomes(settled) == {A: "lost", B: "lost"}
    batch = arrives(broker, at(1), at(5), "a#2", "b#2")
    assert outcomes(broker.settle(batch, LOST, at(6))) == {A: "dropped", B: "dropped"}
    assert broker.wake_at("q", at(6)) is None


def test_lost_last_delivery_is_a_dead_letter() -> None:
    broker = make(eager("d"), max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    (settled,) = broker.settle(take(broker, at(0)), LOST, at(1))
    assert (settled.outcome, settled.due) == ("dead_letter", at(1))
    assert labels(take(broker, at(1), "d")) == ["a#1"]


def test_copy_is_delivered_in_another_batch_although_the_original_was_acknowledged() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "ab", at(0))
    assert broker.duplicate("q", "a", at(0))
    first = arrives(broker, at(0), at(0), "a#1", "b#1")
    broker.settle(first, Result(), at(1))
    second = arrives(broker, at(1), at(1), "a#1")
    assert second.messages[0].timestamp == at(0)
    assert second.messages[0].body == first.messages[0].body
    assert second.messages[0].seq != first.messages[0].seq
    broker.settle(second, Result(), at(2))
    assert broker.wake_at("q", at(2)) is None
    assert broker.counts("q") == Counts(3, 3, 3, 0, 0, 0, 0)


def test_copy_uses_up_no_retry_of_the_original() -> None:
    broker = make(max_batch_timeout=0, max_retries=1)
    send(broker, "a", at(0))
    broker.duplicate("q", "a", at(0))
    seen = simulate(broker, fail)
    assert [batch for _, _, batch in seen] == [["a#1"], ["a#1"], ["a#2"]]
    assert broker.counts("q") == Counts(2, 3, 0, 0, 1, 0, 1)


def test_copy_that_fails_is_no_dead_letter() -> None:
    broker = make(eager("d"), max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    broker.duplicate("q", "a", at(0))
    original, copy = take(broker, at(0)), take(broker, at(0), concurrency=2)
    assert outcomes(broker.settle(copy, EXCEPTION, at(1))) == {A: "lost"}
    assert outcomes(broker.settle(original, EXCEPTION, at(1))) == {A: "dead_letter"}
    assert [message.id for message in broker.pending("d")] == [A]
    assert broker.pending("q") == []


@pytest.mark.parametrize("size", [2, 3])
def test_copy_does_not_fill_a_place_beside_its_original(size: int) -> None:
    """3.2: a fault must not make a batch full that is not."""
    broker = make(max_batch_size=size, max_batch_timeout=5 * SECOND)
    send(broker, "a", at(0))
    broker.duplicate("q", "a", at(0))
    assert broker.wake_at("q", at(0)) == at(5)
    send(broker, "b", at(1), delay=SECOND)
    assert broker.wake_at("q", at(1)) == (at(2) if size == 2 else at(5))
    broker.settle(take(broker, at(5)), Result(), at(5))
    assert broker.wake_at("q", at(5)) == at(10)


def test_copy_can_come_later_and_starts_where_its_original_stood() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    batch = take(broker, at(0))
    assert broker.duplicate("q", "a", at(1), 3600 * SECOND)
    broker.settle(batch, EXCEPTION, at(2))
    assert broker.duplicate("q", "a", at(2), 7200 * SECOND)
    broker.settle(arrives(broker, at(2), at(2), "a#2"), Result(), at(2))
    broker.settle(arrives(broker, at(2), at(3601), "a#1"), Result(), at(3601))
    arrives(broker, at(3601), at(7202), "a#2")


def test_copy_of_a_delayed_message_is_not_available_before_it() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0), delay=60 * SECOND)
    for delay in (5, 0):
        broker.duplicate("q", "a", at(1), delay * SECOND)
    seen = simulate(broker, accept, start=at(1))
    assert seen == [(60, "q", ["a#1"]), (60, "q", ["a#1"]), (65, "q", ["a#1"])]


def test_what_is_not_stored_cannot_be_duplicated() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    broker.settle(take(broker, at(0)), Result(), at(0))
    assert not broker.duplicate("q", "a", at(0))
    assert broker.pending("q") == []


def test_batch_may_be_shuffled() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "abc", at(0))
    batch = take(broker, at(0), arrange=lambda count: range(count)[::-1])
    assert labels(batch) == ["c#1", "b#1", "a#1"]
    assert [m.id for m in broker.settle(batch, Result(), at(0))] == ["c", "b", "a"]


def test_batch_may_be_split_and_the_rest_stays_at_the_head_of_the_line() -> None:
    broker = make(max_batch_size=4)
    send(broker, "abcdef", at(0))

    batch = take(broker, at(0), arrange=lambda count: range(count // 2))
    assert labels(batch) == ["a#1", "b#1"]
    assert batch.backlog.count == 4
    broker.settle(batch, Result(retries={A: None}), at(1))
    assert labels(take(broker, at(1))) == ["c#1", "d#1", "e#1", "f#1"]


def test_arranging_to_nothing_takes_nothing() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    assert broker.next_batch("q", at(0), arrange=lambda count: []) is None
    assert labels(take(broker, at(0))) == ["a#1"]


def test_arranging_to_something_else_is_refused() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "ab", at(0))
    with pytest.raises(ValueError, match="each at most once"):
        broker.next_batch("q", at(0), arrange=lambda count: [0, 0])
    with pytest.raises(ValueError, match="positions of messages"):
        broker.next_batch("q", at(0), arrange=lambda count: [count])
    assert labels(take(broker, at(0))) == ["a#1", "b#1"]


def test_dead_letter_may_be_held_back_or_lost_on_its_way() -> None:
    """Faults of `message.<queue>` where the message is a dead letter."""
    broker = make(eager("d"), max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    send(broker, "abc", at(0))

    def admit(queue: str, letters: Sequence[Outgoing]) -> Sequence[Outgoing]:
        assert queue == "d"
        assert [letter.delay for letter in letters] == [None, None, None]
        return [letters[0]._replace(delay=30 * SECOND), letters[2]]

    settled = broker.settle(take(broker, at(0)), EXCEPTION, at(1), admit=admit)
    assert outcomes(settled) == dict.fromkeys("abc", "dead_letter")
    assert again(settled, at(1)) == {A: 30, C: 0}
    assert [message.id for message in broker.pending("d")] == ["c", "a"]
    assert broker.counts("d") == Counts(3, 0, 0, 0, 1, 0, 0)


# Settings, errors


def test_reload_keeps_messages_and_follows_the_new_settings() -> None:
    broker = make(max_batch_timeout=0, max_retries=9)
    send(broker, "ab", at(0))
    batch = take(broker, at(0))
    send(broker, "c", at(0))
    broker.update([eager("q", max_retries=0), eager("other")], at(1))
    assert broker.queues == ("q", "other")
    assert outcomes(broker.settle(batch, EXCEPTION, at(1))) == {A: "dropped", B: "dropped"}
    assert labels(take(broker, at(1))) == ["c#1"]


def test_reload_without_the_consumer_leaves_messages_where_they_are() -> None:
    """A batch in flight has no last delivery then, as nobody says what would be one."""
    broker = make(max_batch_timeout=0, max_retries=0, retention=60 * SECOND)
    send(broker, "ab", at(0))
    batch = take(broker, at(0))
    broker.update([], at(1))
    assert broker.rules("q") == QueueRules("q", retention=60 * SECOND)
    assert outcomes(broker.settle(batch, EXCEPTION, at(2))) == {A: "retry", B: "retry"}
    assert broker.wake_at("q", at(2)) is None
    assert broker.backlog("q", at(2)).count == 2


def test_pausing_by_hand_outlasts_a_reload_unless_the_setting_changes() -> None:
    running, stopped = QueueRules("q"), QueueRules("q", paused=True)
    broker = Broker([running])
    broker.pause("q", at(0))
    broker.update([replace(running, retention=60 * SECOND)], at(1))
    assert broker.paused("q")
    broker.update([stopped], at(2))
    assert broker.paused("q")
    broker.update([running], at(3))
    assert not broker.paused("q")


def test_unknown_queue_is_an_error_that_lists_the_known_ones() -> None:
    broker = make(QueueRules("d"))
    with pytest.raises(KeyError, match=r"there is no queue 'x'; there are: q, d"):
        broker.send("x", [], at(0))
    with pytest.raises(KeyError, match="there are: none"):
        Broker([]).counts("x")


def test_batch_can_be_settled_only_once() -> None:
    broker = make(max_batch_timeout=0)
    send(broker, "a", at(0))
    batch = take(broker, at(0))
    broker.settle(batch, LOST, at(1))
    with pytest.raises(KeyError, match="batch 1 of queue 'q' is not in flight"):
        broker.settle(batch, Result(), at(2))
    assert [message.id for message in broker.pending("q")] == ["a"]


# Records, snapshots, recovery


def busy() -> Broker:
    """A broker that has been through everything at least once."""
    broker = make(
        eager("d"),
        QueueRules("idle"),
        profile="production",
        max_batch_size=3,
        max_batch_timeout=0,
        max_retries=1,
        retry_delay=SECOND,
        dead_letter_queue="d",
        retention=60 * SECOND,
    )
    send(broker, "abcdef", at(0))
    send(broker, "gh", at(0), delay=40 * SECOND)
    send(broker, "i", at(0), delay=90 * SECOND)
    broker.settle(take(broker, at(0)), Result(retries={A: None, B: 0}), at(1))
    broker.duplicate("q", "b", at(1), SECOND)
    batch = take(broker, at(1), arrange=lambda count: range(count)[::-1][:2])
    broker.settle(batch, EXCEPTION, at(2))
    broker.settle(take(broker, at(3)), LOST, at(4))
    broker.pause("q", at(5))
    broker.expire("q", at(61))
    broker.resume("q", at(61))
    send(broker, "jkl", at(62), queue="idle")
    broker.purge("idle", at(62))
    send(broker, "xyz", at(62))
    take(broker, at(62))
    take(broker, at(63), "d")
    return broker


def same_rules(broker: Broker) -> Broker:
    return Broker([broker.rules(name) for name in broker.queues])


def test_replaying_the_records_gives_an_equal_state() -> None:
    broker = busy()
    records = broker.take_records()
    assert {record[0] for record in records} >= {
        "send", "copy", "take", "settle", "expire", "purge", "pause",
    }  # fmt: skip
    twin = same_rules(broker)
    twin.replay([decode(encode(record), "a test") for record in records])
    assert twin.snapshot() == broker.snapshot()
    assert twin.take_records() == []
    assert broker.take_records() == []


def test_records_replay_under_changed_settings() -> None:
    """They hold facts, so a restart with a new config does not rewrite the past."""
    broker = busy()
    twin = Broker([QueueRules("q", delivery_delay=SECOND, paused=True)], "miniflare")
    twin.replay(broker.take_records())
    assert twin.pending("q") == broker.pending("q")
    assert twin.pending("d") == broker.pending("d")
    assert twin.counts("q") == broker.counts("q")


def test_snapshot_and_later_records_give_an_equal_state() -> None:
    broker = busy()
    broker.take_records()
    snapshot = decode(encode(broker.snapshot()), "a test")
    for recovered in broker.recover(at(70)):
        assert recovered.settled
    send(broker, "m", at(71))
    twin = same_rules(broker)
    twin.restore(snapshot)
    twin.replay(broker.take_records())
    assert twin.snapshot() == broker.snapshot()
    assert take(twin, at(90)) == take(broker, at(90))


def test_looking_at_a_queue_changes_neither_state_nor_records() -> None:
    broker = make(delivery_delay=SECOND)
    send(broker, "ab", at(0))
    broker.take_records()
    before = broker.snapshot()
    broker.backlog("q", at(5))
    broker.wake_at("q", at(5))
    broker.pending("q")
    assert broker.next_batch("q", at(5)) is None
    assert broker.snapshot() == before
    assert broker.take_records() == []


def test_bodies_are_recorded_once() -> None:
    broker = make(eager("d"), max_batch_timeout=0, max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    broker.duplicate("q", "a", at(0))
    broker.settle(take(broker, at(0)), EXCEPTION, at(0))
    stored = b"".join(encode(record) for record in broker.take_records())
    assert stored.count(b"body of a") == 1


def test_recovery_settles_what_was_in_flight_as_lost() -> None:
    broker = make(max_batch_timeout=0, max_batch_size=2, max_retries=0, retry_delay=3 * SECOND)
    send(broker, "abc", at(0))
    take(broker, at(0))
    take(broker, at(0), concurrency=2)
    twin = make(max_batch_timeout=0, max_batch_size=2, max_retries=1, retry_delay=3 * SECOND)
    twin.replay(broker.take_records())
    recovered = twin.recover(at(10))
    assert [(item.queue, item.number) for item in recovered] == [("q", 1), ("q", 2)]
    assert isinstance(recovered[0], Recovered)
    assert [outcomes(item.settled) for item in recovered] == [{A: "lost", B: "lost"}, {C: "lost"}]
    assert twin.recover(at(10)) == []
    arrives(twin, at(10), at(13), "a#2", "b#2")


@pytest.mark.parametrize(
    "record",
    [
        [],
        ["teleport", "q", T0],
        ["send", "q", T0, 1, [["a"]]],
        ["send", "q"],
        ["take", "q", T0, 1, [7]],
        ["settle", "q", T0, 3, [], None, 0],
        ["expire", "q", T0, [1]],
        ["copy", "q", T0, 1, 9, 0, T0],
    ],
    ids=repr,
)
def test_record_that_does_not_fit_is_a_state_error(record: list[Any]) -> None:
    with pytest.raises(StateError, match=r"record 0 .*does not fit: the state is damaged"):
        make().replay([record])


def test_newer_snapshot_is_a_state_error() -> None:
    with pytest.raises(StateError, match=r"version 4, this release reads up to 3"):
        make().restore([4, "whatever"])


VERSION_1 = [
    1,
    [
        [
            "q",
            True,
            6,
            3,
            at(2),
            [[1, at(2)]],
            [6, 4, 1, 1, 0, 0, 0],
            [
                [4, "d", b"body of d", "text", at(0), 0, at(0), at(0), False],
                [2, "b", b"body of b", "text", at(0), 1, at(9), at(0), False],
                [5, "b", b"body of b", "text", at(0), 0, at(9), at(1), True],
            ],
            [[2, at(2), [[3, "c", b"body of c", "text", at(0), 1, at(0), at(0), False]]]],
        ],
        ["d", None, 2, 1, 0, [], [1, 0, 0, 0, 0, 0, 0], [], []],
    ],
]
"""A snapshot as the first release wrote it, before there were leases."""


def test_snapshot_of_version_1_is_read() -> None:
    broker = make(eager("d"), max_batch_timeout=0)
    broker.restore(decode(encode(VERSION_1), "a test"))
    assert broker.pending("q") == [
        Pending(4, "d", b"body of d", "text", at(0), 0, at(0)),
        Pending(2, "b", b"body of b", "text", at(0), 1, at(9)),
        Pending(5, "b", b"body of b", "text", at(0), 0, at(9)),
    ]
    assert broker.counts("q") == Counts(6, 4, 1, 1, 0, 0, 0)
    assert broker.paused("q")
    assert broker.leases("q") == []
    (flight,) = broker.in_flight("q")
    assert [(m.id, m.attempts) for m in flight.messages] == [("c", 1)]
    broker.resume("q", at(3))
    (recovered,) = broker.recover(at(10))
    assert outcomes(recovered.settled) == {"c": "lost"}
    assert labels(take(broker, at(10))) == ["d#1", "b#2", "c#2"]
    version, queues, setups, deleted = broker.snapshot()
    assert (version, setups, deleted) == (3, [], [])
    twin = make(eager("d"))
    twin.restore([2, queues])
    assert twin.snapshot() == broker.snapshot()


@pytest.mark.parametrize(
    "snapshot",
    [
        [],
        [1],
        [1, [["q", None]]],
        ["1", []],
        [2, VERSION_1[1]],
        [2, [["q", None, 1, 1, 0, [], [0] * 7, [], [], [], [1]]]],
    ],
    ids=repr,
)
def test_damaged_snapshot_is_a_state_error(snapshot: list[Any]) -> None:
    with pytest.raises(StateError, match="the snapshot of the queues does not fit"):
        make().restore(snapshot)


# Speed: the work per message does not depend on how many others there are


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python `work` runs, those inside comprehensions included."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("delay", [None, 3600 * SECOND], ids=["waiting", "delayed"])
def test_work_per_message_is_the_same_with_many_pending(delay: Duration | None) -> None:
    def cycles(pending: int) -> int:
        broker = make(max_batch_size=100)
        for number in range(0, pending, 100):
            letters = [
                Outgoing(f"{number}-{i}", b"", "text", delay and delay + number * 100 + i)
                for i in range(100)
            ]
            broker.send("q", letters, at(0))

        def cycle() -> None:
            for now in range(at(1), at(1) + 20):
                send(broker, [f"new {now}-{i}" for i in range(100)], now)
                batch = take(broker, now)
                broker.settle(batch, Result(), now)
                broker.expires_at("q")

        return lines_run(cycle)

    assert cycles(50_000) <= cycles(500) * 1.02


def test_memory_of_acknowledged_messages_is_let_go_behind_one_that_stays() -> None:
    """A message delayed for a day must not keep a day's traffic alive."""
    broker = make(max_batch_size=100, max_batch_timeout=0)
    send(broker, ["late"], at(0), delay=86_400 * SECOND)
    for now in range(at(1), at(1) + 50):
        send(broker, [f"{now}-{i}" for i in range(100)], now)
        broker.settle(take(broker, now), Result(), now)
    assert len(broker._queues["q"].ages) < 200
