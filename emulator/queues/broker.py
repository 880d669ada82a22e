"""The platform's queues as one state machine, without tasks, clock, randomness or files.

Theory of operation
===================

A stored message is in one of four places until it is gone:

    send, copy, dead letter, retry
        │ due later        │ due now
        ▼                  ▼
     DELAYED ── due ──▶ WAITING ── take ───▶ IN_FLIGHT ── settle ──▶ retried (back to the top), or
        │                  │                                         GONE: acknowledged,
        │                  └────── lease ──▶ LEASED ── release ──▶   dead letter, dropped
        │                  │
        └─ expire, purge ──┴──▶ GONE

**Order.** The line is first in, first out by the instant a message became available; a retried one
goes to its end (3.4). Of several that become available at one instant, the one that came to the
queue, or back to it, first is first.

**Timer.** A batch is ready at once when the line holds a full one, else `max_batch_timeout` after
the latest of three instants (3.2, 3.3): the first in line became available; a batch was taken and
left it behind; the consumer became free. Nothing is stored for the timer but these instants, so a
delayed message costs no timer of its own.

**Settling.** What the consumer's run recorded is judged message by message, by the explicit calls
on it and then by a table (`verdict.py`, 2.10). Whatever is not acknowledged is delivered again,
unless this was delivery number `max_retries` + 1: then it moves to the dead letter queue, in the
same record, or is dropped (4.2 to 4.5). A lost result acknowledges nothing and asks for nothing.

**Leases.** A pull consumer takes messages one by one: each is leased for a time, and a lease that
runs out is a lost delivery, made again at once (5.6). Nothing happens by itself: a lease is over
when `end_leases` is called, which `lease` does first; `lease_ends_at` tells when that is worth
while. A lease that ran out acknowledges its message all the same (5.7). Unlike a batch, whose
consumer is part of what went down, leases survive a restart: their pullers live elsewhere.

**Records.** Every public verb first works out facts (who, when, where to), then hands them to
`apply` as one record (`state.py`).

Numbers such as 3.4 are the rules of the reference on Cloudflare Queues. Instants passed in must not
go backwards. The containers that the transitions keep in step are in `line.py`. This module is long
because it is the whole list of verbs; what they have in common is elsewhere.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from emulator.queues.leases import (
    ENDED_LEASE,
    UNKNOWN_LEASE,
    DeliveryPausedError,
    NoPullConsumerError,
    check_delays,
    check_pull,
    is_leased,
    lease_of,
)
from emulator.queues.message import DELAYED, delivery_of, pending_of
from emulator.queues.model import (
    LOST,
    Answered,
    Backlog,
    Batch,
    ConsumerRules,
    Counts,
    InFlight,
    Leased,
    Outgoing,
    Pending,
    Pulled,
    QueueRules,
    Recovered,
    Settled,
)
from emulator.queues.setup import Setup
from emulator.queues.state import State
from emulator.queues.verdict import ACKED, after, again, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from emulator.queues.line import Line
    from emulator.queues.message import Message
    from emulator.queues.model import Duration, Instant, Profile, PullRules, Record, Result
    from emulator.queues.verdict import Fate

    Arrange = Callable[[int], Sequence[int] | None]
    Admit = Callable[[str, Sequence[Outgoing]], Sequence[Outgoing]]

MOST_CONCURRENT: Final = 250
"""How many batches of one queue the platform runs at once at most (3.1)."""

# Stands in for a consumer that was removed while a batch was in flight: nothing is a last delivery.
_NO_CONSUMER: Final = ConsumerRules(max_retries=sys.maxsize)
_NO_RETRIES: Final[Mapping[str, Duration | None]] = MappingProxyType({})


class Broker(State):
    """All queues of one emulator: sends, deliveries, retries, dead letters, expiry.

    A queue that is named only as a dead letter queue exists too, with default settings (4.7).
    Every method that takes a queue's name raises `KeyError` for one that does not exist.

        >>> from emulator.queues.model import Result
        >>> broker = Broker([QueueRules("mail", consumer=ConsumerRules(max_batch_timeout=0))])
        >>> broker.send("mail", [Outgoing("m1", b"hello", "text")], now=100)
        >>> batch = broker.next_batch("mail", now=100)
        >>> [(message.body, message.attempts) for message in batch.messages]
        [(b'hello', 1)]
        >>> [message.outcome for message in broker.settle(batch, Result(), now=130)]
        ['ack']
    """

    def __init__(self, rules: Sequence[QueueRules], profile: Profile = "production") -> None:
        super().__init__()
        self._profile: Profile = profile
        self._records: list[Record] = []
        self.update(rules, 0)

    # Messages in.

    def send(self, queue: str, messages: Sequence[Outgoing], now: Instant) -> None:
        """Store messages, all or none, in the order given (1.10, 1.15).

        In the `miniflare` profile a queue without a consumer drops them (3.10); a pull consumer,
        which Miniflare does not have, is one.
        """
        target = self._queue(queue)
        if self._drops(target):
            self._commit(("vanish", queue, now, len(messages)))
            return
        default = after(now, target.rules.delivery_delay)
        items = [
            (id, body, content_type, default if delay is None else after(now, delay))
            for id, body, content_type, delay in messages
        ]
        self._commit(("send", queue, now, target.next_seq, items))

    def lose(self, queue: str, count: int, now: Instant) -> None:
        """Count messages that arrived and were never stored."""
        self._queue(queue)
        self._commit(("vanish", queue, now, count))

    def duplicate(self, queue: str, id: str, now: Instant, delay: Duration = 0) -> bool:
        """Store one more copy of a message, as a platform that delivers at least once may.

        The copy has the same id, body and timestamp and as many deliveries behind it as the
        original had before its current one. It comes `delay` after the original is, or was,
        available; it is never in one batch with another copy, is delivered once, whatever comes of
        that, and its retention starts now. False if no such message is stored.
        """
        target = self._queue(queue)
        original = target.find(id)
        if original is None:
            return False
        stored = original.place <= DELAYED
        behind = original.attempts - (not stored)
        due = after(max(now, original.available) if stored else now, delay)
        self._commit(("copy", queue, now, target.next_seq, original.seq, behind, due))
        return True

    # Messages out.

    def next_batch(
        self,
        queue: str,
        now: Instant,
        *,
        arrange: Arrange | None = None,
        concurrency: int = 1,
        at_once: bool = False,
    ) -> Batch | None:
        """Take the next batch, if one is ready.

        None while the queue is paused, has no consumer, or has as many batches in flight as
        `concurrency` and the consumer's `max_concurrency` allow. `arrange` gets the number of
        messages about to be taken and returns positions among them, in the order to deliver them
        in, or None for all as they are; the others stay at the head of the line. `at_once` takes
        what is in line without waiting for a full batch.
        """
        self.expire(queue, now)
        ready = self.wake_at(queue, now, concurrency=concurrency)
        source = self._queue(queue)
        consumer = source.rules.consumer
        if ready is None or consumer is None or (ready > now and not at_once):
            return None
        first = source.head(consumer.max_batch_size)
        if not first:
            return None
        chosen = None if arrange is None else arrange(len(first))
        if chosen is not None:
            first = _picked(first, chosen)
            if not first:
                return None
        seqs = [message.seq for message in first]
        number = source.next_number
        self._commit(("take", queue, now, number, seqs))
        taken = source.in_flight[number].messages
        deliveries = tuple([delivery_of(message, message.attempts) for message in taken])
        return Batch(number, queue, deliveries, now, source.backlog())

    def settle(
        self,
        batch: Batch,
        result: Result | None,
        now: Instant,
        *,
        admit: Admit | None = None,
    ) -> list[Settled]:
        """Draw the consequences of a consumer's run, one `Settled` per message in batch order.

        `result` is `LOST` when the run's result never arrived. `admit` gets the name of the dead
        letter queue and the messages about to enter it, and returns those that do, each with the
        delay it is to have. Raises `KeyError` if the batch is not in flight.
        """
        return self._settle(batch.queue, batch.number, result, now, admit=admit)

    def wake_at(self, queue: str, now: Instant, *, concurrency: int = 1) -> Instant | None:
        """The earliest instant at which `next_batch` can return something, if nothing else happens.

        None if only an event can change that: a message, the end of a batch, a resume.
        """
        source = self._queue(queue)
        consumer = source.rules.consumer
        if consumer is None or source.paused:
            return None
        allowed = min(concurrency, consumer.max_concurrency or MOST_CONCURRENT)
        if len(source.in_flight) >= allowed:
            return None
        source.promote(now)
        return source.ready_at(consumer, allowed, now)

    # Messages that a puller fetches.

    def lease(
        self,
        queue: str,
        now: Instant,
        *,
        size: int | None = None,
        visibility_timeout: Duration | None = None,
        admit: Admit | None = None,
    ) -> Pulled:
        """Lease the first messages in line, at most `size`; without waiting for any (5.2).

        Raises `NoPullConsumerError` and `DeliveryPausedError` (5.8), and `ValueError` for a size or
        timeout out of range. `admit` is what it is for `settle`.
        """
        source = self._queue(queue)
        pull = source.rules.pull
        if pull is None:
            raise NoPullConsumerError(f"queue {queue!r} has no pull consumer")
        size = pull.batch_size if size is None else size
        timeout = pull.visibility_timeout if visibility_timeout is None else visibility_timeout
        check_pull(size, timeout)
        if source.paused:
            raise DeliveryPausedError(f"the deliveries of queue {queue!r} are paused")
        ran_out = self.end_leases(queue, now, admit=admit)
        self.expire(queue, now)
        source.promote(now)
        messages = source.head(size)
        if messages:
            self._commit(("lease", queue, now, now + timeout, [m.seq for m in messages]))
        return Pulled(tuple(_leased(queue, messages)), source.backlog(), ran_out)

    def acknowledge(
        self,
        queue: str,
        now: Instant,
        *,
        acks: Iterable[str] = (),
        retries: Mapping[str, Duration | None] = _NO_RETRIES,
        admit: Admit | None = None,
    ) -> Answered:
        """Take a puller's answers: leases of messages that are done, and of those to try again.

        `retries` has the delay asked for, None for the consumer's `retry_delay`; as after a push,
        the last delivery is not repeated (4.2, 4.3). A lease acknowledges its message also after it
        ran out, whoever has the message now, and once more after that (5.7); it asks for a retry
        only until it ends. An ack counts before a retry of the same message. Raises `ValueError`
        for a delay out of range, and then takes nothing. `admit` is what it is for `settle`.
        """
        check_delays(retries.values())
        source = self._queue(queue)
        warnings: dict[str, str] = {}
        acked = self._messages_of(source, dict.fromkeys(acks), warnings)
        messages = {message.seq: message for message in acked.values() if message is not None}
        fates = [ACKED] * len(messages)
        retry_count = 0
        for lease, message in self._messages_of(source, retries, warnings).items():
            held = message is not None and is_leased(message) and message.seq not in messages
            if message is None or not held or lease_of(queue, message) != lease:
                warnings[lease] = ENDED_LEASE
                continue
            retry_count += 1
            messages[message.seq] = message
            fates.append(again(_consumer_of(source), message, "retry", now, retries[lease]))
        settled = self._release(queue, list(messages.values()), fates, now, admit)
        return Answered(len(acked), retry_count, warnings, settled)

    def lease_ends_at(self, queue: str) -> Instant | None:
        """When the next lease of the queue runs out."""
        return self._queue(queue).leases.next_end()

    def end_leases(self, queue: str, now: Instant, *, admit: Admit | None = None) -> list[Settled]:
        """End the leases that have run out, in order of that.

        Their messages are available again at once, or dead letters or dropped if that was their
        last delivery (5.6). `admit` is what it is for `settle`.
        """
        source = self._queue(queue)
        messages = source.leases.over(now)
        consumer = _consumer_of(source)
        fates = [again(consumer, message, "lost", now, 0) for message in messages]
        return self._release(queue, messages, fates, now, admit)

    # Messages that leave otherwise.

    def expires_at(self, queue: str) -> Instant | None:
        """When the oldest message that is neither in flight nor leased expires (3.9)."""
        source = self._queue(queue)
        oldest = source.ages.oldest()
        return None if oldest is None else oldest.entered + source.rules.retention

    def expire(self, queue: str, now: Instant) -> list[Pending]:
        """Delete what has been in the queue for its retention, delayed or paused or not (3.9).

        Messages in flight and leased ones stay; one that comes back too old expires then.
        """
        aged = self._queue(queue).aged(now)
        if aged:
            self._commit(("expire", queue, now, [message.seq for message in aged]))
        return [pending_of(message) for message in aged]

    def purge(self, queue: str, now: Instant) -> list[Pending]:
        """Delete all that waits or is delayed; what is in flight or leased goes on (6.2)."""
        purged = self.pending(queue)
        if purged:
            self._commit(("purge", queue, now))
        return purged

    def discard(self, queue: str, seqs: Iterable[int], now: Instant) -> list[Pending]:
        """Delete those of these messages that wait or are delayed."""
        wanted = dict.fromkeys(seqs)
        found = [message for message in self.pending(queue) if message.seq in wanted]
        if found:
            self._commit(("discard", queue, now, [message.seq for message in found]))
        return found

    def hasten(self, queue: str, seqs: Iterable[int], now: Instant) -> list[Pending]:
        """Make those of these messages that are delayed available now."""
        wanted = dict.fromkeys(seqs)
        found = [m for m in self.pending(queue) if m.seq in wanted and m.due > now]
        if found:
            self._commit(("hasten", queue, now, [message.seq for message in found]))
        return found

    def pause(self, queue: str, now: Instant) -> None:
        """Stop deliveries and leases (6.1).

        Sends are accepted, messages age, batches in flight finish and so do leases.
        """
        if not self._queue(queue).paused:
            self._commit(("pause", queue, now, True))

    def resume(self, queue: str, now: Instant) -> None:
        """Deliver again (6.1)."""
        if self._queue(queue).paused:
            self._commit(("pause", queue, now, False))

    # Looking.

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all queues, in the order they were configured in."""
        return tuple(self._queues)

    def rules(self, queue: str) -> QueueRules:
        """The settings of a queue; pausing by hand does not change them."""
        return self._queue(queue).rules

    def paused(self, queue: str) -> bool:
        """Whether deliveries are stopped."""
        return self._queue(queue).paused

    def counts(self, queue: str) -> Counts:
        """How many messages met which end."""
        return self._queue(queue).counts()

    def backlog(self, queue: str, now: Instant) -> Backlog:
        """What waits in the queue, neither delayed nor in flight (1.3)."""
        source = self._queue(queue)
        source.promote(now)
        return source.backlog()

    def unacknowledged(self, queue: str) -> Backlog:
        """All that is stored, delayed, in flight or leased, as the REST API counts it (7)."""
        return self._queue(queue).unacknowledged()

    def pending(self, queue: str) -> list[Pending]:
        """What waits or is delayed, in order of becoming available."""
        return [pending_of(message) for message in self._queue(queue).stored()]

    def in_flight(self, queue: str) -> list[InFlight]:
        """The batches that are not settled yet, in order of their start."""
        return [
            InFlight(number, started, tuple([delivery_of(m, m.attempts) for m in messages]))
            for number, (started, messages) in self._queue(queue).in_flight.items()
        ]

    def leases(self, queue: str) -> list[Leased]:
        """What pullers hold, in order of running out."""
        return _leased(queue, self._queue(queue).leases)

    def page(self, queue: str, first: int, most: int) -> list[Pending]:
        """A part of what `pending` gives: up to `most`, from the position `first` on."""
        stored = self._queue(queue).stored()
        return [pending_of(message) for message in islice(stored, first, first + most)]

    def pending_at(self, queue: str, seq: int) -> Pending | None:
        """The message of this number, if it waits or is delayed."""
        stored = self._queue(queue).stored()
        return next((pending_of(message) for message in stored if message.seq == seq), None)

    # Settings and durability.

    def update(self, rules: Sequence[QueueRules], now: Instant) -> None:
        """Take over new settings; messages stay, and a queue no longer named loses its consumer.

        A queue paused or resumed by hand stays so unless its setting changes.
        """
        named = {item.name: item for item in rules}
        for name, queue in self._queues.items():
            item = named.get(name, replace(queue.rules, consumer=None, pull=None))
            changed = item.paused != queue.rules.paused
            queue.rules = item
            if changed and queue.held is not None:
                self._commit(("pause", name, now, None))
        for name, item in named.items():
            if name not in self._queues:
                self._open(name).rules = item
        for item in rules:
            consumer = item.consumer or item.pull
            if consumer is not None and consumer.dead_letter_queue is not None:
                self._open(consumer.dead_letter_queue)

    def setup(self, queue: str) -> Setup:
        """What was set up of the queue at run time; there need not be such a queue."""
        return self._setups.get(queue) or Setup()

    def set_up(self, queue: str, setup: Setup, now: Instant) -> None:
        """Remember what was set up of a queue, which is made if there is none; `update` then."""
        self._commit(("setup", queue, now, setup.dump()))

    def delete(self, queue: str, now: Instant) -> list[str]:
        """Delete a queue with all its messages; return their ids.

        Batches in flight can no longer be settled, leases no longer be answered.
        """
        ids = [message.id for message in self._queue(queue).everything()]
        self._commit(("delete", queue, now))
        return ids

    def is_flying(self, batch: Batch) -> bool:
        """Whether a batch can be settled: it was not yet, and its queue was not deleted."""
        queue = self._queues.get(batch.queue)
        return queue is not None and batch.number in queue.in_flight

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def recover(self, now: Instant) -> list[Recovered]:
        """Settle as lost whatever was in flight when the platform itself went down."""
        return [
            Recovered(name, number, self._settle(name, number, LOST, now))
            for name, queue in list(self._queues.items())
            for number in list(queue.in_flight)
        ]

    # Working out the facts.

    def _queue(self, name: str) -> Line:
        queue = self._queues.get(name)
        if queue is None:
            known = ", ".join(self._queues) or "none"
            raise KeyError(f"there is no queue {name!r}; there are: {known}")
        return queue

    def _messages_of(
        self, source: Line, leases: Iterable[str], warnings: dict[str, str]
    ) -> dict[str, Message | None]:
        """The message of each lease, None for one that no lease reaches any more."""
        found = {}
        for lease in leases:
            try:
                seq, message = source.leases.message_of(source.rules.name, lease)
            except ValueError:
                warnings[lease] = UNKNOWN_LEASE
                continue
            if 0 < seq < source.next_seq:
                found[lease] = message
            else:
                warnings[lease] = UNKNOWN_LEASE
        return found

    def _commit(self, record: Record) -> None:
        self.apply(record)
        self._records.append(record)

    def _drops(self, queue: Line) -> bool:
        return self._profile == "miniflare" and _consumer_of(queue) is _NO_CONSUMER

    def _settle(
        self,
        name: str,
        number: int,
        result: Result | None,
        now: Instant,
        admit: Admit | None = None,
    ) -> list[Settled]:
        queue = self._queue(name)
        if number not in queue.in_flight:
            raise KeyError(f"batch {number} of queue {name!r} is not in flight")
        messages = queue.in_flight[number].messages
        consumer = _consumer_of(queue)
        fates = judge(self._profile, consumer, messages, result, now)
        grave = self._bury(consumer, messages, fates, now, admit)
        self._commit(("settle", name, now, number, _others(messages, fates), *grave))
        return _settled(messages, fates)

    def _release(
        self,
        name: str,
        messages: list[Message],
        fates: list[Fate],
        now: Instant,
        admit: Admit | None,
    ) -> list[Settled]:
        """End leases, and acknowledge what once was leased."""
        if not messages:
            return []
        grave = self._bury(_consumer_of(self._queue(name)), messages, fates, now, admit)
        acked = [m.seq for m, fate in zip(messages, fates, strict=True) if fate is ACKED]
        settled = _settled(messages, fates)
        self._commit(("release", name, now, acked, _others(messages, fates), *grave))
        return settled

    def _bury(
        self,
        consumer: ConsumerRules | PullRules,
        messages: list[Message],
        fates: list[Fate],
        now: Instant,
        admit: Admit | None,
    ) -> tuple[str | None, int]:
        """Fill in when each dead letter is due; returns their queue and their first number in it.

        A dead letter that does not enter its queue keeps None.
        """
        dead = [index for index, (outcome, _) in enumerate(fates) if outcome == "dead_letter"]
        name = consumer.dead_letter_queue
        if name is None or not dead:
            return None, 0
        grave = self._open(name)
        letters: Sequence[Outgoing] = [
            Outgoing(m.id, m.body, m.content_type) for m in map(messages.__getitem__, dead)
        ]
        if admit is not None:
            letters = admit(name, letters)
        if not self._drops(grave):
            default = grave.rules.delivery_delay
            dues = {id: default if delay is None else delay for id, _, _, delay in letters}
            for index in dead:
                delay = dues.get(messages[index].id)
                if delay is not None:
                    fates[index] = ("dead_letter", after(now, delay))
        return name, grave.next_seq


def _picked(first: list[Message], chosen: Sequence[int]) -> list[Message]:
    if len(set(chosen)) < len(chosen) or not set(range(len(first))).issuperset(chosen):
        raise ValueError("`arrange` must return positions of messages, each at most once")
    return [first[position] for position in chosen]


def _leased(queue: str, messages: Iterable[Message]) -> list[Leased]:
    return [
        Leased(lease_of(queue, message), message.available, delivery_of(message, message.attempts))
        for message in messages
    ]


def _consumer_of(queue: Line) -> ConsumerRules | PullRules:
    return queue.rules.pull or queue.rules.consumer or _NO_CONSUMER


def _others(messages: list[Message], fates: list[Fate]) -> list[Record]:
    return [
        (message.seq, *fate)
        for message, fate in zip(messages, fates, strict=True)
        if fate is not ACKED
    ]


def _settled(messages: list[Message], fates: list[Fate]) -> list[Settled]:
    return [
        Settled(m.seq, m.id, m.attempts, outcome, due, m.body, m.content_type, m.timestamp)
        for m, (outcome, due) in zip(messages, fates, strict=True)
    ]
