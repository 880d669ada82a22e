"""The platform's queues as one state machine, without tasks, clock, randomness or files.

Theory of operation
===================

A stored message is in one of three places until it is gone:

    send, copy, dead letter, retry
        │ due later        │ due now
        ▼                  ▼
     DELAYED ── due ──▶ WAITING ── take ──▶ IN_FLIGHT ── settle ──▶ retried (back to the top), or
        │                  │                                        GONE: acknowledged,
        └─ expire, purge ──┴──▶ GONE                                dead letter, dropped

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

**Records.** Every public verb first works out facts (who, when, where to), then hands them to
`apply` as one record; `apply` consults no settings, so that records replay under changed ones.
`_TRANSITIONS` is the whole vocabulary. Moving a due message into the line is no record: it follows
from the instant of the next one, and `snapshot` does not tell the two places apart.

Numbers such as 3.4 are the rules of the reference on Cloudflare Queues. Instants passed in must not
go backwards. The containers that the transitions keep in step are in `line.py`.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from emulator.errors import StateError
from emulator.queues.line import DELAYED, IN_FLIGHT, Line, Message, delivery_of, pending_of
from emulator.queues.model import (
    LOST,
    Backlog,
    Batch,
    ConsumerRules,
    Counts,
    Delivery,
    InFlight,
    Outgoing,
    Pending,
    QueueRules,
    Recovered,
    Settled,
)
from emulator.queues.verdict import ACKED, after, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from emulator.queues.model import Duration, Instant, Outcome, Profile, Record, Result
    from emulator.queues.verdict import Fate

    Arrange = Callable[[Sequence[Delivery]], Sequence[Delivery]]
    Admit = Callable[[str, Sequence[Outgoing]], Sequence[Outgoing]]

SNAPSHOT_VERSION: Final = 1
MOST_CONCURRENT: Final = 250
"""How many batches of one queue the platform runs at once at most (3.1)."""

# Stands in for a consumer that was removed while a batch was in flight: nothing is a last delivery.
_NO_CONSUMER: Final = ConsumerRules(max_retries=sys.maxsize)


class Broker:
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
        self._profile: Profile = profile
        self._queues: dict[str, Line] = {}
        self._records: list[Record] = []
        self.update(rules, 0)

    # Messages in.

    def send(self, queue: str, messages: Sequence[Outgoing], now: Instant) -> None:
        """Store messages, all or none, in the order given (1.10, 1.15).

        In the `miniflare` profile a queue without a consumer drops them (3.10).
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

    def duplicate(self, queue: str, id: str, now: Instant, delay: Duration = 0) -> bool:
        """Store one more copy of a message, as a platform that delivers at least once may.

        The copy has the same id, body and timestamp and as many deliveries behind it as the
        original had before its current one. It comes `delay` after the original is, or was,
        available; it is never in one batch with another copy, is acknowledged on its own, and its
        retention starts now. False if no such message is stored.
        """
        target = self._queue(queue)
        original = target.find(id)
        if original is None:
            return False
        behind = original.attempts - (original.place == IN_FLIGHT)
        due = after(max(now, original.available), delay)
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
        `concurrency` and the consumer's `max_concurrency` allow. `arrange` gets the messages about
        to be taken and returns some or all of them in the order to deliver them in; the others stay
        at the head of the line. `at_once` takes what is in line without waiting for a full batch.
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
        seqs = [m.seq for m in first] if arrange is None else _arranged(first, arrange)
        if not seqs:
            return None
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

    # Messages that leave otherwise.

    def expires_at(self, queue: str) -> Instant | None:
        """When the oldest message that is not in flight expires (3.9)."""
        source = self._queue(queue)
        for message in source.ages:
            if message.place <= DELAYED:
                return message.entered + source.rules.retention
        return None

    def expire(self, queue: str, now: Instant) -> list[Pending]:
        """Delete what has been in the queue for its retention, delayed or paused or not (3.9).

        Messages in flight stay; one that comes back too old expires then.
        """
        aged = self._queue(queue).aged(now)
        if aged:
            self._commit(("expire", queue, now, [message.seq for message in aged]))
        return [pending_of(message) for message in aged]

    def purge(self, queue: str, now: Instant) -> list[Pending]:
        """Delete all that waits or is delayed; what is in flight goes on (6.2)."""
        purged = self.pending(queue)
        if purged:
            self._commit(("purge", queue, now))
        return purged

    def pause(self, queue: str, now: Instant) -> None:
        """Stop deliveries; sends are accepted, messages age, batches in flight finish (6.1)."""
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

    def pending(self, queue: str) -> list[Pending]:
        """What waits or is delayed, in order of becoming available."""
        return [pending_of(message) for message in self._queue(queue).stored()]

    def in_flight(self, queue: str) -> list[InFlight]:
        """The batches that are not settled yet, in order of their start."""
        return [
            InFlight(number, started, tuple([delivery_of(m, m.attempts) for m in messages]))
            for number, (started, messages) in self._queue(queue).in_flight.items()
        ]

    # Settings and durability.

    def update(self, rules: Sequence[QueueRules], now: Instant) -> None:
        """Take over new settings; messages stay, and a queue no longer named loses its consumer.

        A queue paused or resumed by hand stays so unless its setting changes.
        """
        named = {item.name: item for item in rules}
        for name, queue in self._queues.items():
            item = named.get(name, replace(queue.rules, consumer=None))
            changed = item.paused != queue.rules.paused
            queue.rules = item
            if changed and queue.held is not None:
                self._commit(("pause", name, now, None))
        for name, item in named.items():
            self._queues.setdefault(name, Line(item))
        for item in rules:
            if item.consumer is not None and item.consumer.dead_letter_queue is not None:
                self._open(item.consumer.dead_letter_queue)

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def apply(self, record: Record) -> None:
        """Make the change that a record describes; every change of state goes through here."""
        _TRANSITIONS[record[0]](self, *record[1:])

    def replay(self, records: Iterable[Record]) -> None:
        """Apply stored records; raises `StateError` for one that does not fit."""
        for index, record in enumerate(records):
            with _fitting(f"record {index} ({record[0] if record else 'empty'})"):
                self.apply(record)

    def snapshot(self) -> Record:
        """The whole state, without the settings; equal states give equal snapshots."""
        return [SNAPSHOT_VERSION, [queue.dump() for queue in self._queues.values()]]

    def restore(self, snapshot: Record) -> None:
        """Take over a snapshot's state, in a broker that has none yet; raises `StateError`."""
        with _fitting("the snapshot"):
            version, *rest = snapshot
            if version > SNAPSHOT_VERSION:
                raise StateError(
                    f"the snapshot of the queues has version {version}, this release reads up to"
                    f" {SNAPSHOT_VERSION}: use the release that wrote it, or start with a new state"
                )
            for dumped in rest[0]:
                self._open(dumped[0]).load(dumped)

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

    def _open(self, name: str) -> Line:
        return self._queues.get(name) or self._queues.setdefault(name, Line(QueueRules(name)))

    def _commit(self, record: Record) -> None:
        self.apply(record)
        self._records.append(record)

    def _drops(self, queue: Line) -> bool:
        return self._profile == "miniflare" and queue.rules.consumer is None

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
        consumer = queue.rules.consumer or _NO_CONSUMER
        fates = judge(self._profile, consumer, messages, result, now)
        grave = self._bury(consumer, messages, fates, now, admit)
        others = [
            (message.seq, *fate)
            for message, fate in zip(messages, fates, strict=True)
            if fate is not ACKED
        ]
        self._commit(("settle", name, now, number, others, *grave))
        return [
            Settled(m.seq, m.id, m.attempts, outcome, due, m.body, m.content_type, m.timestamp)
            for m, (outcome, due) in zip(messages, fates, strict=True)
        ]

    def _bury(
        self,
        consumer: ConsumerRules,
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

    # Transitions.

    def _sent(
        self, name: str, at: Instant, first: int, items: list[tuple[str, bytes, str, Instant]]
    ) -> None:
        messages = [
            Message(seq, id, body, content_type, at, 0, due, at)
            for seq, (id, body, content_type, due) in enumerate(items, first)
        ]
        self._open(name).enter(messages, at)

    def _vanished(self, name: str, at: Instant, count: int) -> None:
        queue = self._open(name)
        queue.entered += count
        queue.dropped += count

    def _copied(
        self, name: str, at: Instant, seq: int, original: int, attempts: int, due: Instant
    ) -> None:
        queue = self._open(name)
        (m,) = (message for message in queue.ages if message.seq == original)
        copy = Message(seq, m.id, m.body, m.content_type, m.timestamp, attempts, due, at, True)
        queue.enter([copy], at)

    def _taken(self, name: str, at: Instant, number: int, seqs: list[int]) -> None:
        self._open(name).take(number, seqs, at)

    def _settled(
        self,
        name: str,
        at: Instant,
        number: int,
        others: list[tuple[int, Outcome, Instant]],
        grave: str | None,
        first: int,
    ) -> None:
        queue = self._open(name)
        messages = queue.land(number, at)
        queue.acked += len(messages) - len(others)
        back, dead = [], []
        by_seq = {message.seq: message for message in messages} if others else {}
        for seq, outcome, due in others:
            message = by_seq[seq]
            if outcome == "dropped":
                queue.dropped += 1
            elif outcome == "dead_letter":
                dead.append((message, due))
            else:
                message.available = due
                back.append(message)
        queue.dead_lettered += len(dead)
        if back:
            queue.put(back, at)
        queue.trim()
        if grave is not None:
            self._buried(grave, at, first, dead)

    def _buried(
        self, name: str, at: Instant, first: int, dead: list[tuple[Message, Instant]]
    ) -> None:
        entering = [(message, due) for message, due in dead if due is not None]
        self._vanished(name, at, len(dead) - len(entering))
        messages = [
            Message(seq, m.id, m.body, m.content_type, m.timestamp, 0, due, at)
            for seq, (m, due) in enumerate(entering, first)
        ]
        self._open(name).enter(messages, at)

    def _expired(self, name: str, at: Instant, seqs: list[int]) -> None:
        queue = self._open(name)
        queue.promote(at)
        queue.expired += len(seqs)
        queue.remove(set(seqs))

    def _purged(self, name: str, at: Instant) -> None:
        self._open(name).clear()

    def _paused(self, name: str, at: Instant, held: bool | None) -> None:
        self._open(name).held = held


_TRANSITIONS: Final[Mapping[str, Callable[..., None]]] = {
    "send": Broker._sent,
    "vanish": Broker._vanished,
    "copy": Broker._copied,
    "take": Broker._taken,
    "settle": Broker._settled,
    "expire": Broker._expired,
    "purge": Broker._purged,
    "pause": Broker._paused,
}


def _arranged(first: list[Message], arrange: Arrange) -> list[int]:
    offered = [delivery_of(message, message.attempts + 1) for message in first]
    chosen = [delivery.seq for delivery in arrange(offered)]
    if len(set(chosen)) < len(chosen) or not {m.seq for m in first}.issuperset(chosen):
        raise ValueError("`arrange` must return messages it was given, each at most once")
    return chosen


@contextmanager
def _fitting(what: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(
            f"{what} of the queues does not fit: the state is damaged, or a newer release wrote it"
            f" ({error!r})"
        ) from error
