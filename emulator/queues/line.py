"""One queue's messages, in the containers that keep every step cheap.

The rules are in `emulator.queues.broker`, whose transitions are the only callers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from emulator.queues.ages import Ages, in_order
from emulator.queues.leases import Leases
from emulator.queues.message import (
    DELAYED,
    GONE,
    IN_FLIGHT,
    LEASED,
    SET_ASIDE,
    WAITING,
    Message,
    stored_of,
)
from emulator.queues.model import Backlog, Counts, QueueRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.queues.model import ConsumerRules, Instant, Record


class Flight(NamedTuple):
    """A batch in the hands of a consumer."""

    started: Instant
    messages: list[Message]


@dataclass(slots=True, eq=False)
class Line:
    """One queue's messages, each in the containers that its place asks for.

    `waiting` is the line; an expired message stays in it, GONE, until it is met. `delayed` holds
    messages by due time and `dues` is a heap of these times, some of which may have no messages
    left. `ages` is everything in order of entry, which retention counts from. `flying` counts what
    is in anybody's hands, in flight or leased.
    """

    rules: QueueRules
    held: bool | None = None  # paused or resumed by hand

    waiting: deque[Message] = field(default_factory=deque)
    visible: int = 0
    visible_bytes: int = 0
    copies: int = 0  # of those waiting or delayed
    delayed: dict[Instant, list[Message]] = field(default_factory=dict)
    dues: list[Instant] = field(default_factory=list)
    hidden: int = 0
    in_flight: dict[int, Flight] = field(default_factory=dict)
    flying: int = 0
    bytes: int = 0  # of everything
    leases: Leases = field(default_factory=Leases)
    ages: Ages = field(default_factory=Ages)

    next_seq: int = 1
    next_number: int = 1
    taken: Instant = 0
    # freed[n]: when there were last n batches in flight and one of them ended.
    freed: dict[int, Instant] = field(default_factory=dict)

    entered: int = 0
    delivered: int = 0
    acked: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    expired: int = 0
    purged: int = 0

    @property
    def paused(self) -> bool:
        """Whether deliveries are stopped."""
        return self.rules.paused if self.held is None else self.held

    # Entering and becoming available.

    def enter(self, messages: list[Message], now: Instant) -> None:
        """Store new messages, whose numbers go on from `next_seq`."""
        self.ages.extend(messages)
        self.copies += sum(message.is_copy for message in messages)
        self.next_seq += len(messages)
        self.entered += len(messages)
        self.put(messages, now)

    def put(self, messages: list[Message], now: Instant) -> None:
        """Line up the messages that are available, hold the others until they are."""
        self.promote(now)
        self.bytes += sum([len(message.body) for message in messages])
        ready = [message for message in messages if message.available <= now]
        self._line_up(ready)
        if len(ready) < len(messages):
            for message in messages:
                if message.available > now:
                    self.hold(message)

    def promote(self, now: Instant) -> None:
        """Line up what has become due."""
        while self.dues and self.dues[0] <= now:
            due = self.delayed.pop(heappop(self.dues), None)
            if due is not None:
                self.hidden -= len(due)
                self._line_up(due)

    def _line_up(self, messages: list[Message]) -> None:
        size = 0
        for message in messages:
            message.place = WAITING
            size += len(message.body)
        self.waiting.extend(messages)
        self.visible += len(messages)
        self.visible_bytes += size

    def hasten(self, messages: list[Message], now: Instant) -> None:
        """Line up messages that are delayed."""
        for message in messages:
            together = self.delayed[message.available]
            together.remove(message)
            if not together:
                del self.delayed[message.available]
            message.available = now
        self.hidden -= len(messages)
        self._line_up(messages)

    def hold(self, message: Message) -> None:
        """Keep a message out of the line until it is available."""
        message.place = DELAYED
        self.hidden += 1
        together = self.delayed.get(message.available)
        if together is None:
            self.delayed[message.available] = [message]
            heappush(self.dues, message.available)
        else:
            together.append(message)

    # Taking and landing.

    def head(self, size: int) -> list[Message]:
        """The first `size` in line, each id once: copies never meet in one batch."""
        if self.visible == len(self.waiting):
            first = list(islice(self.waiting, size))
            if len({message.id for message in first}) == len(first):
                return first
        by_id: dict[str, Message] = {}
        for message in self.waiting:
            if message.place == WAITING:
                by_id.setdefault(message.id, message)
                if len(by_id) == size:
                    break
        return list(by_id.values())

    def take(self, number: int, seqs: Sequence[int], now: Instant) -> None:
        """Move these messages from the line into a flight."""
        messages = self._depart(seqs, IN_FLIGHT, now)
        if self.leases.lent:  # A queue may have had another consumer.
            self.leases.forget(messages)
        self.in_flight[number] = Flight(now, messages)
        self.next_number = number + 1
        self.taken = now

    def lend(self, seqs: Sequence[int], until: Instant, now: Instant) -> None:
        """Move these messages from the line into the hands of a puller."""
        self.leases.add(self._depart(seqs, LEASED, now), until)

    def _depart(self, seqs: Sequence[int], place: int, now: Instant) -> list[Message]:
        self.promote(now)
        messages = self._pull(seqs)
        size = 0
        for message in messages:
            message.place = place
            message.attempts += 1
            size += len(message.body)
        self.visible -= len(messages)
        self.visible_bytes -= size
        self._count_out(messages)
        self.flying += len(messages)
        self.delivered += len(messages)
        return messages

    def _count_out(self, messages: list[Message]) -> None:
        if self.copies:
            self.copies -= sum(message.is_copy for message in messages)

    def _pull(self, seqs: Sequence[int]) -> list[Message]:
        popleft = self.waiting.popleft
        messages = [popleft() for _ in seqs]
        if [message.seq for message in messages] == seqs:
            return messages
        # Shuffled, cut, or with a copy or an expired message in between.
        self.waiting.extendleft(reversed(messages))
        wanted = dict.fromkeys(seqs, None)
        found: dict[int, Message] = {}
        passed = []
        while len(found) < len(wanted):
            message = popleft()
            if message.seq in wanted:
                found[message.seq] = message
            elif message.place == WAITING:
                passed.append(message)
        self.waiting.extendleft(reversed(passed))
        return [found[seq] for seq in seqs]

    def land(self, number: int, now: Instant) -> list[Message]:
        """End a flight; its messages are gone unless they are put back."""
        self.freed[len(self.in_flight)] = now
        messages = self.in_flight.pop(number).messages
        for message in messages:
            message.place = GONE
        self.flying -= len(messages)
        self.bytes -= sum([len(message.body) for message in messages])
        return messages

    def reclaim(self, seq: int, *, stays: bool) -> Message:
        """End the lease of a message, which is gone unless it stays and is put back."""
        message = self.leases.end(seq)
        self.flying -= 1
        self.bytes -= len(message.body)
        if not stays:
            message.place = GONE
            self.leases.forget([message])
        elif message.place == SET_ASIDE:
            self.ages.put_back(message)
        return message

    def acknowledge(self, seqs: Sequence[int]) -> None:
        """Forget messages that were leased once, wherever they are now (5.7)."""
        stored = []
        for seq in seqs:
            message = self.leases.lent[seq]
            if message.place <= DELAYED:
                stored.append(message)
            else:
                self.reclaim(seq, stays=False)
        self.acked += len(seqs)
        self.forget(stored)

    # Leaving without a delivery.

    def aged(self, now: Instant) -> list[Message]:
        """The messages whose retention is over, those in anybody's hands left out."""
        return self.ages.entered_by(now - self.rules.retention)

    def forget(self, messages: list[Message]) -> None:
        """Let these messages go, which are waiting or delayed."""
        dues: dict[Instant, None] = {}
        for message in messages:
            if message.place == WAITING:
                self.visible -= 1
                self.visible_bytes -= len(message.body)
            else:
                self.hidden -= 1
                dues[message.available] = None
            message.place = GONE
            self.bytes -= len(message.body)
        self._count_out(messages)
        for due in dues:
            together = [message for message in self.delayed.pop(due) if message.place != GONE]
            if together:
                self.delayed[due] = together
        self.leases.forget(messages)
        self.trim()

    def clear(self) -> None:
        """Forget everything but what is in anybody's hands."""
        self.purged += self.visible + self.hidden
        self.leases.forget(list(self.stored()))
        self.ages.clear()
        self.waiting.clear()
        self.delayed.clear()
        self.dues.clear()
        self.visible = self.visible_bytes = self.hidden = self.copies = 0
        self.bytes = sum(len(message.body) for message in self.everything())

    def trim(self) -> None:
        """Let go of messages that are gone."""
        self.ages.trim(self.visible + self.hidden + self.flying)
        while self.waiting and self.waiting[0].place == GONE:
            self.waiting.popleft()

    # Looking.

    def ready_at(self, consumer: ConsumerRules, allowed: int, now: Instant) -> Instant | None:
        """When a batch is ready, given that fewer than `allowed` are in flight."""
        if self.copies:
            return self._ready_with_copies(consumer, allowed, now)
        missing = consumer.max_batch_size - self.visible
        if missing <= 0:
            return now
        timer = self._timer(consumer, allowed)
        if timer is None:
            return None
        for due in self._coming():
            missing -= len(self.delayed[due])
            if due >= timer or missing <= 0:
                timer = min(timer, due)
                break
        return max(now, timer)

    def _ready_with_copies(
        self, consumer: ConsumerRules, allowed: int, now: Instant
    ) -> Instant | None:
        """`ready_at` where a message and its copy fill one place in a batch, not two."""
        ids = {message.id for message in self.waiting if message.place == WAITING}
        if len(ids) >= consumer.max_batch_size:
            return now
        timer = self._timer(consumer, allowed)
        if timer is None:
            return None
        for due in self._coming():
            ids.update(message.id for message in self.delayed[due])
            if due >= timer or len(ids) >= consumer.max_batch_size:
                timer = min(timer, due)
                break
        return max(now, timer)

    def _timer(self, consumer: ConsumerRules, allowed: int) -> Instant | None:
        """When a batch that is not full is ready (3.2, 3.3)."""
        first = self._first().available if self.visible else next(self._coming(), None)
        if first is None:
            return None
        return max(first, self.taken, self.freed.get(allowed, 0)) + consumer.max_batch_timeout

    def _first(self) -> Message:
        return next(message for message in self.waiting if message.place == WAITING)

    def _coming(self) -> Iterator[Instant]:
        """The due times of delayed messages in order, reading no more of the heap than asked."""
        last = None
        for due in in_order(self.dues):
            if due != last and due in self.delayed:
                last = due
                yield due

    def backlog(self) -> Backlog:
        """What is in line (1.3)."""
        oldest = self._first().timestamp if self.visible else None
        return Backlog(self.visible, self.visible_bytes, oldest)

    def unacknowledged(self) -> Backlog:
        """All there is. `oldest` is the first to come of those that nobody holds, or an older one
        in anybody's hands; dead letters, which bring their timestamps, may come in another order.
        """
        first = self.ages.oldest()
        held = chain(*(flight.messages for flight in self.in_flight.values()), self.leases)
        times = [message.timestamp for message in chain(held, () if first is None else (first,))]
        count = self.visible + self.hidden + self.flying
        return Backlog(count, self.bytes, min(times, default=None))

    def stored(self) -> Iterator[Message]:
        """What is waiting or delayed, in order of becoming available."""
        yield from (message for message in self.waiting if message.place == WAITING)
        for due in sorted(self.delayed):
            yield from self.delayed[due]

    def everything(self) -> Iterator[Message]:
        """What is stored or in anybody's hands, in no order that means anything."""
        flights = (flight.messages for flight in self.in_flight.values())
        return chain(self.stored(), *flights, self.leases)

    def find(self, id: str) -> Message | None:
        """The message of this id that entered last, copies being second choice.

        A scan, which is for faults good enough.
        """
        here = [message for message in self.everything() if message.id == id]
        return min(here, key=lambda message: (message.is_copy, -message.seq), default=None)

    def counts(self) -> Counts:
        """How many messages met which end."""
        return Counts(*attrgetter(*Counts._fields)(self))

    # Snapshots.

    def dump(self) -> Record:
        """The whole state, without the settings."""
        return [
            self.rules.name,
            self.held,
            self.next_seq,
            self.next_number,
            self.taken,
            [list(item) for item in sorted(self.freed.items())],
            list(self.counts()),
            [list(stored_of(message)) for message in self.stored()],
            [
                [number, started, [list(stored_of(message)) for message in messages]]
                for number, (started, messages) in self.in_flight.items()
            ],
            [list(stored_of(message)) for message in self.leases],
            self.leases.returned(),
        ]

    def load(self, dumped: Record) -> None:
        """Take over a state that `dump` gave."""
        _, self.held, self.next_seq, self.next_number, self.taken, *rest = dumped
        freed, counts, stored, flights, leased, returned = rest
        self.freed = dict(freed)
        for name, count in zip(Counts._fields, counts, strict=True):
            setattr(self, name, count)
        messages = [Message(*item) for item in stored]
        # All as delayed: the next instant the queue hears of lines up what is due.
        for message in messages:
            self.hold(message)
            self.copies += message.is_copy
        self.leases.remember(messages, returned)
        for number, started, items in flights:
            self.in_flight[number] = Flight(started, [Message(*item) for item in items])
        for item in leased:
            message = Message(*item)
            self.leases.add([message], message.available)
        self._hand_out()
        self.ages = Ages(sorted(self.everything(), key=attrgetter("seq")))
        self.bytes = sum(len(message.body) for message in self.everything())

    def _hand_out(self) -> None:
        for flight in self.in_flight.values():
            for message in flight.messages:
                message.place = IN_FLIGHT
            self.flying += len(flight.messages)
        for message in self.leases:
            message.place = LEASED
            self.flying += 1
