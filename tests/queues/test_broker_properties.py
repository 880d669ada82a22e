"""The broker against a model so naive that it is plainly right.

The model keeps a list of messages per queue and works everything out from scratch, by sorting and
scanning. Both get the same events; what they show must be equal after each. Now and then the broker
is replaced by one rebuilt from its records, or from a snapshot and the records since.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from emulator.queues.broker import Broker
from emulator.queues.model import (
    LOST,
    Backlog,
    Batch,
    ConsumerRules,
    Counts,
    Instant,
    Outcome,
    Outgoing,
    Profile,
    QueueRules,
    Result,
)
from emulator.store.records import decode, encode

durations = st.integers(0, 4)
ids = st.sampled_from("abcdefgh")
queue_names = st.sampled_from("qqd")


@dataclass
class Message:
    """A message in the model; `place` is `stored`, `flying` or how it ended."""

    id: str
    body: bytes
    timestamp: Instant
    entered: Instant
    attempts: int
    available: Instant
    arrival: int
    place: str = "stored"
    is_copy: bool = False


@dataclass
class NaiveQueue:
    """Every message the queue ever had, and what the timer needs."""

    rules: QueueRules
    paused: bool = False
    messages: list[Message] = field(default_factory=list)
    flights: dict[int, list[Message]] = field(default_factory=dict)
    deliveries: int = 0
    taken: Instant = 0
    # (batches in flight before, when) of every batch that ended
    ended: list[tuple[int, Instant]] = field(default_factory=list)
    lost_on_arrival: int = 0

    def stored(self) -> list[Message]:
        kept = [message for message in self.messages if message.place == "stored"]
        return sorted(kept, key=lambda message: (message.available, message.arrival))

    def line(self, now: Instant) -> list[Message]:
        return [message for message in self.stored() if message.available <= now]

    def wake_at(self, now: Instant, concurrency: int) -> Instant | None:
        consumer = self.rules.consumer
        if consumer is None or self.paused or not self.stored():
            return None
        allowed = min(concurrency, consumer.max_concurrency or 250)
        if len(self.flights) >= allowed:
            return None
        freed = [when for before, when in self.ended if before == allowed]
        since = max(self.stored()[0].available, self.taken, *freed)
        timer = max(now, since + consumer.max_batch_timeout)
        instants = sorted({now, timer, *(message.available for message in self.stored())})
        return next(
            instant
            for instant in instants
            if instant >= now
            and (instant >= timer or len(self.line(instant)) >= consumer.max_batch_size)
        )

    def take(self, number: int, now: Instant) -> list[Message]:
        assert self.rules.consumer is not None
        chosen: dict[str, Message] = {}
        for message in self.line(now):
            if len(chosen) < self.rules.consumer.max_batch_size:
                chosen.setdefault(message.id, message)
        for message in chosen.values():
            message.place = "flying"
            message.attempts += 1
        self.deliveries += len(chosen)
        self.taken = now
        self.flights[number] = list(chosen.values())
        return self.flights[number]

    def expires_at(self) -> Instant | None:
        return min((m.entered + self.rules.retention for m in self.stored()), default=None)

    def expire(self, now: Instant) -> list[Message]:
        old = [m for m in self.stored() if m.entered + self.rules.retention <= now]
        for message in old:
            message.place = "expired"
        return old

    def counts(self) -> Counts:
        ends = Counter(message.place for message in self.messages)
        return Counts(
            len(self.messages) + self.lost_on_arrival,
            self.deliveries,
            ends["ack"],
            ends["dead_letter"],
            ends["dropped"] + self.lost_on_arrival,
            ends["expired"],
            ends["purged"],
        )


def judged(result: Result | None, id: str, profile: Profile) -> Outcome:
    """2.10, as the reference writes it; the outcome of a delivery that is not the last."""
    if result is None:
        return "lost"
    if profile == "miniflare":
        failed = result.retry_batch or result.outcome != "ok" or id in result.retries
        return "retry" if failed else "ack"
    if id in result.explicit_acks:
        return "ack"
    if id in result.retries:
        return "retry"
    if result.ack_all:
        return "ack"
    if result.retry_batch:
        return "retry"
    return "ack" if result.outcome == "ok" else "retry"


results = st.none() | st.builds(
    Result,
    outcome=st.sampled_from(["ok", "ok", "exception"]),
    ack_all=st.booleans(),
    retry_batch=st.booleans(),
    retry_batch_delay=st.none() | durations,
    explicit_acks=st.frozensets(ids, max_size=3),
    retries=st.dictionaries(ids, st.none() | durations, max_size=3),
)


class BrokerMachine(RuleBasedStateMachine):
    """Queue `q` with dead letter queue `d`, which may have a consumer or none."""

    @initialize(
        profile=st.sampled_from(["production", "miniflare"]),
        size=st.integers(1, 4),
        timeout=durations,
        retries=st.integers(0, 2),
        retry_delay=durations,
        delay=durations,
        retention=st.integers(5, 60),
        concurrency=st.none() | st.integers(1, 3),
        dead_letters=st.booleans(),
        grave_consumed=st.booleans(),
    )
    def start(self, profile: Profile, **drawn: Any) -> None:
        consumer = ConsumerRules(
            max_batch_size=drawn["size"],
            max_batch_timeout=drawn["timeout"],
            max_retries=drawn["retries"],
            retry_delay=drawn["retry_delay"],
            dead_letter_queue="d" if drawn["dead_letters"] else None,
            max_concurrency=drawn["concurrency"],
        )
        grave = ConsumerRules(max_batch_size=2, max_batch_timeout=drawn["timeout"], max_retries=1)
        self.configured = [
            QueueRules("q", drawn["delay"], drawn["retention"], consumer=consumer),
            QueueRules("d", 1, consumer=grave if drawn["grave_consumed"] else None),
        ]
        self.profile = profile
        self.now = 1000
        self.arrivals = 0
        self.sent = 0
        self.broker = Broker(self.configured, profile)
        self.queues = {rules.name: NaiveQueue(rules) for rules in self.configured}
        self.batches: dict[tuple[str, int], Batch] = {}
        self.snapshot: Any = None
        self.records: list[Any] = []

    # Events.

    @rule(messages=st.lists(st.tuples(ids, st.none() | durations), min_size=1, max_size=6))
    def send(self, messages: list[tuple[str, int | None]]) -> None:
        letters = []
        for id, delay in messages:
            # Now and then an id comes twice, as from a platform that delivers at least once.
            letters.append(Outgoing(id, b"x" * (self.sent % 4), "text", delay))
            self.sent += 1
        self.broker.send("q", letters, self.now)
        for letter in letters:
            self.enter("q", letter.id, letter.body, self.now, letter.delay)

    def enter(
        self, queue: str, id: str, body: bytes, timestamp: Instant, delay: int | None
    ) -> Instant | None:
        target = self.queues[queue]
        if self.profile == "miniflare" and target.rules.consumer is None:
            target.lost_on_arrival += 1
            return None
        due = self.now + (target.rules.delivery_delay if delay is None else delay)
        self.add(queue, Message(id, body, timestamp, self.now, 0, due, 0))
        return due

    def add(self, queue: str, message: Message) -> None:
        self.arrivals += 1
        message.arrival = self.arrivals
        self.queues[queue].messages.append(message)

    @rule(seconds=st.integers(1, 6))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(queue=queue_names, concurrency=st.integers(1, 3), result=results)
    def deliver_when_due(self, queue: str, concurrency: int, result: Result | None) -> None:
        due = self.broker.wake_at(queue, self.now, concurrency=concurrency)
        if due is None:
            # So that a run does not spend its steps on a queue that nothing can come from.
            self.settle_or_send(queue, result)
            return
        if due > self.now:
            self.now = due - 1
            self.deliver(queue, concurrency)
        self.now = due
        self.deliver(queue, concurrency)

    def settle_or_send(self, queue: str, result: Result | None) -> None:
        mine = [number for name, number in self.batches if name == queue]
        if mine:
            self.settle_batch(queue, mine[0], result)
        else:
            self.send([(id, None) for id in "abcdef"])

    @rule(queue=queue_names, concurrency=st.integers(1, 3))
    def deliver(self, queue: str, concurrency: int) -> None:
        model = self.queues[queue]
        model.expire(self.now)
        ready = model.wake_at(self.now, concurrency) == self.now
        batch = self.broker.next_batch(queue, self.now, concurrency=concurrency)
        assert (batch is not None) == ready
        if batch is None:
            return
        taken = model.take(batch.number, self.now)
        assert [(m.id, m.body, m.timestamp, m.attempts) for m in batch.messages] == [
            (m.id, m.body, m.timestamp, m.attempts) for m in taken
        ]
        assert model.rules.consumer is not None
        assert all(message.available <= self.now for message in taken)
        assert all(message.attempts <= model.rules.consumer.max_retries + 1 for message in taken)
        assert len({message.id for message in taken}) == len(taken)
        assert batch.backlog == self.backlog(queue)
        self.batches[queue, batch.number] = batch

    @precondition(lambda self: self.batches)
    @rule(index=st.integers(0, 5), later=st.integers(0, 2), result=results)
    def settle(self, index: int, later: int, result: Result | None) -> None:
        self.now += later
        queue, number = sorted(self.batches)[index % len(self.batches)]
        self.settle_batch(queue, number, result)

    def settle_batch(self, queue: str, number: int, result: Result | None) -> None:
        settled = self.broker.settle(self.batches.pop((queue, number)), result, self.now)
        outcomes = [(item.outcome, item.due) for item in settled]
        assert outcomes == self.expected(queue, number, result)

    def expected(
        self, queue: str, number: int, result: Result | None
    ) -> list[tuple[str, Instant | None]]:
        model = self.queues[queue]
        model.ended.append((len(model.flights), self.now))
        messages = model.flights.pop(number)
        return [self.end_of(model, message, result) for message in messages]

    def end_of(
        self, model: NaiveQueue, message: Message, result: Result | None
    ) -> tuple[str, Instant | None]:
        consumer = model.rules.consumer
        assert consumer is not None
        outcome = judged(result, message.id, self.profile)
        if outcome == "ack":
            message.place = "ack"
            return "ack", None
        if message.attempts == consumer.max_retries + 1:
            grave = consumer.dead_letter_queue
            message.place = "dropped" if grave is None else "dead_letter"
            if grave is None:
                return "dropped", None
            due = self.enter(grave, message.id, message.body, message.timestamp, None)
            return "dead_letter", due
        delay = None
        if result is not None:
            delay = result.retries.get(message.id)
            delay = result.retry_batch_delay if delay is None else delay
        message.place = "stored"
        message.available = self.now + (consumer.retry_delay if delay is None else delay)
        self.arrivals += 1
        message.arrival = self.arrivals
        return outcome, message.available

    @rule(queue=queue_names)
    def expire(self, queue: str) -> None:
        expired = self.broker.expire(queue, self.now)
        old = self.queues[queue].expire(self.now)
        assert Counter(m.id for m in expired) == Counter(m.id for m in old)

    @rule(queue=queue_names, delay=durations, newest=st.booleans())
    def duplicate(self, queue: str, delay: int, newest: bool) -> None:
        model = self.queues[queue]
        here = [m for m in model.messages if m.place in ("stored", "flying")]
        if not here:
            assert not self.broker.duplicate(queue, "a", self.now, delay)
            return
        id = here[-1 if newest else 0].id
        m = min([m for m in reversed(here) if m.id == id], key=lambda m: m.is_copy)
        assert self.broker.duplicate(queue, id, self.now, delay)
        behind = m.attempts - (m.place == "flying")
        due = max(self.now, m.available) + delay
        copy = Message(m.id, m.body, m.timestamp, self.now, behind, due, 0, is_copy=True)
        self.add(queue, copy)

    @rule(queue=queue_names, what=st.sampled_from(["pause", "resume", "resume", "purge"]))
    def control(self, queue: str, what: str) -> None:
        model = self.queues[queue]
        if what != "purge":
            getattr(self.broker, what)(queue, self.now)
            model.paused = what == "pause"
            return
        purged = self.broker.purge(queue, self.now)
        stored = model.stored()
        assert [message.id for message in purged] == [message.id for message in stored]
        for message in stored:
            message.place = "purged"

    # Durability.

    @rule(what=st.sampled_from(["rebuild", "compact", "recover"]))
    def store(self, what: str) -> None:
        self.records += self.broker.take_records()
        if what == "compact":
            self.records = []
            self.snapshot = encode(self.broker.snapshot())
            return
        self.rebuild()
        if what == "recover":
            for queue, number, settled in self.broker.recover(self.now):
                outcomes = [(item.outcome, item.due) for item in settled]
                assert outcomes == self.expected(queue, number, LOST)
                del self.batches[queue, number]
            assert self.batches == {}

    def rebuild(self) -> None:
        twin = Broker(self.configured, self.profile)
        if self.snapshot is not None:
            twin.restore(decode(self.snapshot, "a test"))
        twin.replay([decode(encode(record), "a test") for record in self.records])
        assert twin.snapshot() == self.broker.snapshot()
        self.broker = twin

    # What must hold after every event.

    def backlog(self, queue: str) -> Backlog:
        line = self.queues[queue].line(self.now)
        oldest = line[0].timestamp if line else None
        return Backlog(len(line), sum(len(message.body) for message in line), oldest)

    @invariant()
    def shows_what_the_model_shows(self) -> None:
        for name, model in self.queues.items():
            assert [
                (m.id, m.body, m.timestamp, m.attempts, m.due) for m in self.broker.pending(name)
            ] == [(m.id, m.body, m.timestamp, m.attempts, m.available) for m in model.stored()]
            assert self.broker.backlog(name, self.now) == self.backlog(name)
            assert self.broker.counts(name) == model.counts()
            assert self.broker.paused(name) == model.paused
            assert self.broker.expires_at(name) == model.expires_at()
            for concurrency in (1, 2, 3):
                assert self.broker.wake_at(
                    name, self.now, concurrency=concurrency
                ) == model.wake_at(self.now, concurrency)

    @invariant()
    def loses_no_message(self) -> None:
        for name in self.queues:
            counts = self.broker.counts(name)
            flying = sum(len(flight.messages) for flight in self.broker.in_flight(name))
            ended = counts.acked + counts.dead_lettered + counts.dropped
            ended += counts.expired + counts.purged
            assert counts.entered == ended + flying + len(self.broker.pending(name))


def test_broker_does_what_the_naive_model_does() -> None:
    run_state_machine_as_test(
        BrokerMachine,
        settings=settings(
            max_examples=max(250, settings.default.max_examples), stateful_step_count=50
        ),
    )


@pytest.mark.parametrize("profile", ["production", "miniflare"])
@given(
    sends=st.lists(st.tuples(st.integers(0, 9), st.none() | durations), min_size=1, max_size=30),
    drawn=st.lists(results, min_size=1, max_size=10),
    retries=st.integers(0, 3),
    size=st.integers(1, 5),
    timeout=durations,
)
@settings(deadline=None)
def test_every_message_meets_exactly_one_end(
    sends: list[tuple[int, int | None]],
    drawn: list[Result | None],
    retries: int,
    size: int,
    timeout: int,
    profile: Profile,
) -> None:
    """Run until nothing is left: acknowledged once and never seen again, or tried to the end."""
    consumer = ConsumerRules(size, timeout, retries)
    broker = Broker([QueueRules("q", consumer=consumer)], profile)
    now, attempts, ended = 0, Counter[str](), {}
    for number, (later, delay) in enumerate(sends):
        now += later
        broker.send("q", [Outgoing(f"m{number}", b"", "text", delay)], now)
    while (due := broker.wake_at("q", now)) is not None:
        now = due
        batch = broker.next_batch("q", now)
        assert batch is not None
        for message in batch.messages:
            attempts[message.id] += 1
            assert message.id not in ended
            assert message.attempts == attempts[message.id] <= retries + 1
        for item in broker.settle(batch, drawn[batch.number % len(drawn)], now):
            if item.due is None:
                ended[item.id] = item.outcome
    assert len(ended) == len(sends)
    assert all(attempts[id] == retries + 1 for id, end in ended.items() if end == "dropped")
    assert broker.counts("q").acked == list(ended.values()).count("ack")
