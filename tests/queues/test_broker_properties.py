"""The broker against a model so naive that it is plainly right.

The model keeps a list of messages per queue and works everything out from scratch, by sorting and
scanning. Both get the same events; what they show must be equal after each. Now and then the broker
is replaced by one rebuilt from its records, or from a snapshot and the records since.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
from emulator.queues.leases import DeliveryPausedError, NoPullConsumerError
from emulator.queues.model import (
    LOST,
    Backlog,
    Batch,
    ConsumerRules,
    Counts,
    Delivery,
    Instant,
    Outcome,
    Outgoing,
    Profile,
    PullRules,
    QueueRules,
    Result,
    Settled,
)
from emulator.store.records import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def mixed(**options: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One of each, in a single draw: drawing takes most of the time of a run."""
    names = list(options)
    combinations = math.prod(len(choices) for choices in options.values())

    def chosen(number: int) -> dict[str, Any]:
        picked = {}
        for name in names:
            number, index = divmod(number, len(options[name]))
            picked[name] = options[name][index]
        return picked

    return st.integers(0, combinations - 1).map(chosen)


DURATIONS = range(5)
DELAYS = (None, *DURATIONS)
IDS = "abcdefgh"
FEW_IDS = [few for size in range(4) for few in itertools.combinations(IDS, size)]

durations = st.sampled_from(DURATIONS)
delays = st.sampled_from(DELAYS)
# `q` and `p` are sent to, `d` and `e` may get their dead letters.
queue_names = st.sampled_from("qqqpppde")
messages = st.lists(st.sampled_from(list(itertools.product(IDS, DELAYS))), min_size=1, max_size=6)

# A message's number in its queue, and the queue's name.
Key = tuple[str, int]


@dataclass
class Message:
    """A message in the model; `place` is `stored`, `flying`, `leased` or how it ended."""

    id: str
    body: bytes
    timestamp: Instant
    entered: Instant
    attempts: int
    available: Instant
    arrival: int
    place: str = "stored"
    is_copy: bool = False
    # Whether a lease of it can still acknowledge it.
    lent: bool = False
    until: Instant = 0
    # Leases that run out at one instant do so in the order they were given in.
    lease_number: int = 0


class Lease(NamedTuple):
    """A lease that was given out once."""

    queue: str
    name: str
    message: Message
    attempt: int


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

    def leased(self) -> list[Message]:
        held = [message for message in self.messages if message.place == "leased"]
        return sorted(held, key=lambda message: (message.until, message.lease_number))

    def line(self, now: Instant) -> list[Message]:
        return [message for message in self.stored() if message.available <= now]

    def places(self, now: Instant) -> int:
        """How many places of a batch the line fills; copies meet nobody of their name there."""
        line = self.line(now)
        has_copies = any(message.is_copy for message in self.stored())
        return len({message.id for message in line}) if has_copies else len(line)

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
            and (instant >= timer or self.places(instant) >= consumer.max_batch_size)
        )

    def head(self, now: Instant, size: int) -> list[Message]:
        chosen: dict[str, Message] = {}
        for message in self.line(now):
            if len(chosen) < size:
                chosen.setdefault(message.id, message)
        self.deliveries += len(chosen)
        for message in chosen.values():
            message.attempts += 1
        return list(chosen.values())

    def take(self, number: int, now: Instant) -> list[Message]:
        assert self.rules.consumer is not None
        self.flights[number] = self.head(now, self.rules.consumer.max_batch_size)
        for message in self.flights[number]:
            message.place = "flying"
            message.lent = False
        self.taken = now
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


def result_of(acks: Sequence[str], retried: Sequence[str], shift: int, **flags: Any) -> Result:
    asked = itertools.islice(itertools.cycle(DELAYS), shift, None)
    return Result(explicit_acks=acks, retries=dict(zip(retried, asked, strict=False)), **flags)


results = st.none() | mixed(
    outcome=["ok", "ok", "exception"],
    ack_all=[False, True],
    retry_batch=[False, True],
    retry_batch_delay=DELAYS,
    acks=FEW_IDS,
    retried=FEW_IDS,
    shift=range(len(DELAYS)),
).map(lambda drawn: result_of(**drawn))


def consumers(*graves: str | None) -> st.SearchStrategy[ConsumerRules]:
    return mixed(
        max_batch_size=range(1, 5),
        max_batch_timeout=DURATIONS,
        max_retries=range(3),
        retry_delay=DURATIONS,
        dead_letter_queue=graves,
        max_concurrency=[None, 1, 2, 3],
    ).map(lambda drawn: ConsumerRules(**drawn))


def pullers(*graves: str | None) -> st.SearchStrategy[PullRules]:
    return mixed(
        batch_size=range(1, 5),
        max_retries=range(3),
        retry_delay=DURATIONS,
        dead_letter_queue=graves,
        visibility_timeout=DURATIONS,
    ).map(lambda drawn: PullRules(**drawn))


def queue(
    name: str,
    push: st.SearchStrategy[ConsumerRules | None],
    pull: st.SearchStrategy[PullRules | None],
) -> st.SearchStrategy[QueueRules]:
    settings = mixed(delivery_delay=DURATIONS, retention=range(5, 60))
    return st.builds(
        lambda consumer, puller, drawn: QueueRules(name, consumer=consumer, pull=puller, **drawn),
        push,
        pull,
        settings,
    )


# Two queues that are sent to, and the chain of their dead letter queues, maybe a ring.
queues = st.tuples(
    queue("q", consumers("d", "d", "p", None), st.none()),
    queue("p", st.none(), pullers("d", "d", "q", None)),
    queue("d", consumers("e", "q", None), st.none())
    | queue("d", st.none(), pullers("e", "p"))
    | queue("d", st.none(), st.none()),
    queue("e", st.none(), st.none() | pullers("q", None)),
)

# What a client may make of a lease it was given, by index among all of them.
indexes = range(12)
answers = st.lists(st.sampled_from(indexes), max_size=4)


class BrokerMachine(RuleBasedStateMachine):
    """Everything that can happen to four queues, at any time."""

    @initialize(profile=st.sampled_from(["production", "miniflare"]), configured=queues)
    def start(self, profile: Profile, configured: tuple[QueueRules, ...]) -> None:
        self.configured = list(configured)
        self.profile = profile
        self.now = 1000
        self.arrivals = 0
        self.sent = 0
        self.broker = Broker(self.configured, profile)
        self.queues = {rules.name: NaiveQueue(rules) for rules in self.configured}
        self.batches: dict[tuple[str, int], Batch] = {}
        self.leases: list[Lease] = []
        self.acknowledged: set[Key] = set()
        self.deliveries: Counter[Key] = Counter()
        self.snapshot: Any = None
        self.records: list[Any] = []

    # Events.

    @rule(queue=st.sampled_from("qp"), messages=messages)
    def send(self, queue: str, messages: list[tuple[str, int | None]]) -> None:
        letters = []
        for id, delay in messages:
            # Now and then an id comes twice, as from a platform that delivers at least once.
            letters.append(Outgoing(id, b"x" * (self.sent % 4), "text", delay))
            self.sent += 1
        self.broker.send(queue, letters, self.now)
        for letter in letters:
            self.enter(queue, letter.id, letter.body, self.now, letter.delay)

    def enter(
        self, queue: str, id: str, body: bytes, timestamp: Instant, delay: int | None
    ) -> Instant | None:
        target = self.queues[queue]
        consumed = target.rules.consumer is not None or target.rules.pull is not None
        if self.profile == "miniflare" and not consumed:
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

    @rule(queue=st.sampled_from("qqd"), concurrency=st.integers(1, 3), result=results)
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
            self.send("q", [(id, None) for id in "abcdef"])

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
        self.check_handed_out(queue, batch.messages, taken)
        assert batch.backlog == self.backlog(queue)
        self.batches[queue, batch.number] = batch

    def check_handed_out(
        self, queue: str, deliveries: Iterable[Delivery], taken: list[Message]
    ) -> None:
        assert [(m.id, m.body, m.timestamp, m.attempts) for m in deliveries] == [
            (m.id, m.body, m.timestamp, m.attempts) for m in taken
        ]
        assert all(message.available <= self.now for message in taken)
        assert len({message.id for message in taken}) == len(taken)
        consumer = self.queues[queue].rules.consumer or self.queues[queue].rules.pull
        assert consumer is not None
        for message in deliveries:
            key = queue, message.seq
            assert key not in self.acknowledged
            self.deliveries[key] += 1
            assert self.deliveries[key] <= message.attempts <= consumer.max_retries + 1

    @precondition(lambda self: self.batches)
    @rule(index=st.integers(0, 5), later=st.integers(0, 2), result=results)
    def settle(self, index: int, later: int, result: Result | None) -> None:
        self.now += later
        queue, number = sorted(self.batches)[index % len(self.batches)]
        self.settle_batch(queue, number, result)

    def settle_batch(self, queue: str, number: int, result: Result | None) -> None:
        settled = self.broker.settle(self.batches.pop((queue, number)), result, self.now)
        self.note(queue, settled)
        outcomes = [(item.outcome, item.due) for item in settled]
        assert outcomes == self.expected(queue, number, result)

    def note(self, queue: str, settled: list[Settled]) -> None:
        self.acknowledged.update((queue, item.seq) for item in settled if item.outcome == "ack")

    def expected(
        self, queue: str, number: int, result: Result | None
    ) -> list[tuple[str, Instant | None]]:
        model = self.queues[queue]
        model.ended.append((len(model.flights), self.now))
        messages = model.flights.pop(number)
        return [self.judge(queue, message, result) for message in messages]

    def judge(
        self, queue: str, message: Message, result: Result | None
    ) -> tuple[str, Instant | None]:
        outcome = judged(result, message.id, self.profile)
        if outcome == "ack":
            message.place = "ack"
            return "ack", None
        delay = None
        if result is not None:
            delay = result.retries.get(message.id)
            delay = result.retry_batch_delay if delay is None else delay
        return self.again(queue, message, outcome, delay)

    def again(
        self, queue: str, message: Message, outcome: str, delay: int | None
    ) -> tuple[str, Instant | None]:
        """4.2 to 4.5."""
        rules = self.queues[queue].rules
        consumer = rules.consumer or rules.pull
        assert consumer is not None
        if message.is_copy:
            message.place = "purged"
            return "lost", None
        if message.attempts == consumer.max_retries + 1:
            grave = consumer.dead_letter_queue
            message.place = "dropped" if grave is None else "dead_letter"
            if grave is None:
                return "dropped", None
            due = self.enter(grave, message.id, message.body, message.timestamp, None)
            return "dead_letter", due
        message.place = "stored"
        message.available = self.now + (consumer.retry_delay if delay is None else delay)
        self.arrivals += 1
        message.arrival = self.arrivals
        return outcome, message.available

    # Events of pull consumers.

    @rule(queue=st.sampled_from("pppde"), size=st.sampled_from([None, 1, 2, 4]), timeout=delays)
    def lease_when_due(self, queue: str, size: int | None, timeout: int | None) -> None:
        """At the next instant at which there is something to lease, made if there is none."""
        model = self.queues[queue]
        if model.rules.pull is None:
            self.switch_consumer(queue, "pull")
        if model.paused:
            self.control(queue, "resume")
        instants = [message.available for message in model.stored()]
        instants += [message.until for message in model.leased()]
        if not instants:
            self.send("p", [(id, None) for id in "abcdef"])
        self.now = max(self.now, min(instants, default=0))
        self.lease(queue, size, timeout)

    @rule(queue=queue_names, size=st.sampled_from([None, 1, 2, 4]), timeout=delays)
    def lease(self, queue: str, size: int | None, timeout: int | None) -> None:
        model = self.queues[queue]
        pull = model.rules.pull
        refusal = NoPullConsumerError if pull is None else DeliveryPausedError
        if pull is None or model.paused:
            with pytest.raises(refusal):
                self.broker.lease(queue, self.now)
            return
        pulled = self.broker.lease(queue, self.now, size=size, visibility_timeout=timeout)
        self.note(queue, pulled.ran_out)
        assert [(item.outcome, item.due) for item in pulled.ran_out] == self.run_out(queue)
        model.expire(self.now)
        taken = model.head(self.now, pull.batch_size if size is None else size)
        self.check_handed_out(queue, [leased.message for leased in pulled.messages], taken)
        until = self.now + (pull.visibility_timeout if timeout is None else timeout)
        for message, leased in zip(taken, pulled.messages, strict=True):
            message.place, message.lent, message.until = "leased", True, until
            message.lease_number = len(self.leases)
            assert leased.until == until
            assert leased.lease not in {lease.name for lease in self.leases}
            self.leases.append(Lease(queue, leased.lease, message, message.attempts))
        assert pulled.backlog == self.backlog(queue)

    @rule(queue=st.sampled_from("ppde"), late=st.sampled_from([-1, 0, 0, 3]))
    def end_leases(self, queue: str, late: int) -> None:
        ends = self.broker.lease_ends_at(queue)
        if ends is not None:
            self.now = max(self.now, ends + late)
        settled = self.broker.end_leases(queue, self.now)
        self.note(queue, settled)
        assert [(item.outcome, item.due) for item in settled] == self.run_out(queue)

    def run_out(self, queue: str) -> list[tuple[str, Instant | None]]:
        over = [m for m in self.queues[queue].leased() if m.until <= self.now]
        return [self.again(queue, message, "lost", 0) for message in over]

    @precondition(lambda self: self.leases)
    @rule(
        live=st.booleans(),
        acks=answers,
        retries=st.lists(st.sampled_from([*itertools.product(indexes, DELAYS)]), max_size=3),
        misdirected=st.booleans(),
    )
    def answer(
        self,
        live: bool,
        acks: list[int],
        retries: list[tuple[int, int | None]],
        misdirected: bool,
    ) -> None:
        """With leases of any age, most often of the queue of the newest, and that are of use."""
        known = self.leases[::-1]
        if live:
            here = [lease for lease in known if lease.message.place in ("leased", "stored")]
            known = here or known
        queue = known[0].queue
        mine = known if misdirected else [lease for lease in known if lease.queue == queue]
        acked = {mine[index % len(mine)].name: None for index in acks}
        retried = {mine[index % len(mine)].name: delay for index, delay in retries}
        answered = self.broker.acknowledge(queue, self.now, acks=acked, retries=retried)
        self.note(queue, answered.settled)
        by_name = {lease.name: lease for lease in mine}
        done = self.acks_of(queue, [by_name[name] for name in acked])
        again = self.retries_of(queue, [(by_name[name], delay) for name, delay in retried.items()])
        assert [(item.outcome, item.due) for item in answered.settled] == [*done, *again]
        foreign = {name for name in acked if by_name[name].queue != queue}
        assert answered.ack_count == len(acked) - len(foreign)
        assert answered.retry_count == len(again)
        assert len(answered.warnings) == len(foreign | (retried.keys() - self.accepted))

    def acks_of(self, queue: str, leases: list[Lease]) -> list[tuple[str, Instant | None]]:
        """5.7: also of a lease that ran out, also if another one was given since."""
        ended: list[tuple[str, Instant | None]] = []
        for _, _, message, _ in (lease for lease in leases if lease.queue == queue):
            if message.lent and message.place in ("stored", "leased"):
                message.place = "ack"
                ended.append(("ack", None))
        return ended

    def retries_of(
        self, queue: str, leases: list[tuple[Lease, int | None]]
    ) -> list[tuple[str, Instant | None]]:
        self.accepted = set()
        ended = []
        for lease, delay in leases:
            message = lease.message
            held = message.place == "leased" and lease.attempt == message.attempts
            if lease.queue == queue and held:
                self.accepted.add(lease.name)
                ended.append(self.again(queue, message, "retry", delay))
        return ended

    @rule(queue=st.sampled_from("ppqd"), to=st.sampled_from(["pull", "push"]))
    def switch_consumer(self, queue: str, to: str) -> None:
        """A queue changes hands; what is in flight, and what is leased, stays so."""
        before = self.queues[queue].rules
        now = before.consumer or before.pull
        if now is None:
            return
        kept = {
            "max_retries": now.max_retries,
            "retry_delay": now.retry_delay,
            "dead_letter_queue": now.dead_letter_queue,
        }
        rules = replace(
            before,
            consumer=ConsumerRules(max_batch_timeout=0, **kept) if to == "push" else None,
            pull=PullRules(visibility_timeout=3, **kept) if to == "pull" else None,
        )
        self.configured = [rules if item is before else item for item in self.configured]
        self.queues[queue].rules = rules
        self.broker.update(self.configured, self.now)

    # Events from elsewhere.

    @rule(queue=queue_names)
    def expire(self, queue: str) -> None:
        expired = self.broker.expire(queue, self.now)
        old = self.queues[queue].expire(self.now)
        assert Counter(m.id for m in expired) == Counter(m.id for m in old)

    @rule(queue=queue_names, delay=durations, newest=st.booleans())
    def duplicate(self, queue: str, delay: int, newest: bool) -> None:
        model = self.queues[queue]
        here = [m for m in model.messages if m.place in ("stored", "flying", "leased")]
        if not here:
            assert not self.broker.duplicate(queue, "a", self.now, delay)
            return
        id = here[-1 if newest else 0].id
        m = min([m for m in reversed(here) if m.id == id], key=lambda m: m.is_copy)
        assert self.broker.duplicate(queue, id, self.now, delay)
        behind = m.attempts - (m.place != "stored")
        due = (max(self.now, m.available) if m.place == "stored" else self.now) + delay
        copy = Message(m.id, m.body, m.timestamp, self.now, behind, due, 0, is_copy=True)
        self.add(queue, copy)

    @rule(queue=queue_names, data=st.data())
    def pick(self, queue: str, data: st.DataObject) -> None:
        """Some of the stored messages are discarded, or made available, by hand."""
        stored = self.queues[queue].stored()
        picked = [message for message in stored if data.draw(st.booleans())]
        positions = [stored.index(message) for message in picked]
        seqs = [self.broker.pending(queue)[position].seq for position in positions]
        if data.draw(st.booleans()):
            self.broker.discard(queue, seqs, self.now)
            for message in picked:
                message.place = "purged"
            return
        delayed = [message for message in picked if message.available > self.now]
        hastened = self.broker.hasten(queue, seqs, self.now)
        assert [message.id for message in hastened] == [message.id for message in delayed]
        for message in delayed:
            self.arrivals += 1
            message.available, message.arrival = self.now, self.arrivals

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
                self.note(queue, settled)
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
            for concurrency in (1, 2, 3) if model.rules.consumer is not None else (1,):
                assert self.broker.wake_at(
                    name, self.now, concurrency=concurrency
                ) == model.wake_at(self.now, concurrency)
            leased = model.leased()
            held = self.broker.leases(name)
            assert [(item.until, item.message.id, item.message.attempts) for item in held] == [
                (message.until, message.id, message.attempts) for message in leased
            ]
            assert self.broker.lease_ends_at(name) == (leased[0].until if leased else None)

    @invariant()
    def loses_no_message(self) -> None:
        for name in self.queues:
            counts = self.broker.counts(name)
            held = sum(len(flight.messages) for flight in self.broker.in_flight(name))
            held += len(self.broker.leases(name))
            ended = counts.acked + counts.dead_lettered + counts.dropped
            ended += counts.expired + counts.purged
            assert counts.entered == ended + held + len(self.broker.pending(name))

    @invariant()
    def knows_how_much_there_is(self) -> None:
        for name in self.queues:
            sizes = [len(message.body) for message in self.broker.pending(name)]
            for flight in self.broker.in_flight(name):
                sizes += [len(message.body) for message in flight.messages]
            sizes += [len(leased.message.body) for leased in self.broker.leases(name)]
            everything = self.broker.unacknowledged(name)
            assert (everything.count, everything.bytes) == (len(sizes), sum(sizes))
            assert (everything.oldest is None) == (not sizes)


def test_broker_does_what_the_naive_model_does() -> None:
    run_state_machine_as_test(
        BrokerMachine,
        settings=settings(
            max_examples=max(200, settings.default.max_examples), stateful_step_count=30
        ),
    )


@pytest.mark.parametrize("profile", ["production", "miniflare"])
@given(
    sends=st.lists(
        st.sampled_from([*itertools.product(range(10), DELAYS)]), min_size=1, max_size=20
    ),
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
