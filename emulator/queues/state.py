"""The durable state of all queues, and the only ways in which it changes.

A record says what happened in facts (who, when, where to). `apply` makes the change and consults no
settings, so that records replay under changed ones; `_TRANSITIONS` is the whole vocabulary. Moving
a due message into the line is no record: it follows from the instant of the next one, and
`snapshot` does not tell the two places apart.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from emulator.errors import StateError
from emulator.queues.line import Line
from emulator.queues.message import Message
from emulator.queues.model import QueueRules
from emulator.queues.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from emulator.queues.model import Instant, Outcome, Record

    # A delivery that ended without an ack: the message's number, and when it is due again.
    Ending: TypeAlias = tuple[int, Outcome, Instant]

SNAPSHOT_VERSION: Final = 3
"""2 has two more items in each queue: the messages that are leased, and the numbers of those that
were. 3 has two more lists: what was set up at run time, and the queues that were deleted."""

_NO_LEASES: Final[Sequence[Record]] = ((), ())


class State:
    """The queues by name; one that a record names first has default settings."""

    def __init__(self) -> None:
        self._queues: dict[str, Line] = {}
        self._setups: dict[str, Setup] = {}
        # The next numbers of queues that were deleted: what had one of theirs must not be taken
        # for another's, should there be such a queue again.
        self._deleted: dict[str, tuple[int, int]] = {}

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
        return [
            SNAPSHOT_VERSION,
            [queue.dump() for queue in self._queues.values()],
            [[name, setup.dump()] for name, setup in self._setups.items()],
            [[name, *numbers] for name, numbers in self._deleted.items()],
        ]

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
                self._open(dumped[0]).load(dumped if version > 1 else [*dumped, *_NO_LEASES])
            if version > 2:
                self._setups = {name: Setup.load(facts) for name, facts in rest[1]}
                self._deleted = {name: (seq, number) for name, seq, number in rest[2]}

    def _open(self, name: str) -> Line:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Line(QueueRules(name))
            queue.next_seq, queue.next_number = self._deleted.pop(name, (1, 1))
        return queue

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
        (m,) = (message for message in queue.everything() if message.seq == original)
        copy = Message(seq, m.id, m.body, m.content_type, m.timestamp, attempts, due, at, True)
        queue.enter([copy], at)

    def _taken(self, name: str, at: Instant, number: int, seqs: list[int]) -> None:
        self._open(name).take(number, seqs, at)

    def _settled(
        self,
        name: str,
        at: Instant,
        number: int,
        others: list[Ending],
        grave: str | None,
        first: int,
    ) -> None:
        queue = self._open(name)
        messages = queue.land(number, at)
        queue.acked += len(messages) - len(others)
        if not others:
            queue.trim()
            return
        by_seq = {message.seq: message for message in messages}
        ended = [(by_seq[seq], outcome, due) for seq, outcome, due in others]
        self._part(queue, at, ended, grave, first)

    def _leased(self, name: str, at: Instant, until: Instant, seqs: list[int]) -> None:
        self._open(name).lend(seqs, until, at)

    def _released(
        self,
        name: str,
        at: Instant,
        acked: list[int],
        others: list[Ending],
        grave: str | None,
        first: int,
    ) -> None:
        queue = self._open(name)
        queue.acknowledge(acked)
        ended = [
            (
                queue.reclaim(seq, stays=outcome in ("retry", "lost") and due is not None),
                outcome,
                due,
            )
            for seq, outcome, due in others
        ]
        self._part(queue, at, ended, grave, first)

    def _part(
        self,
        queue: Line,
        at: Instant,
        ended: list[tuple[Message, Outcome, Instant]],
        grave: str | None,
        first: int,
    ) -> None:
        """Send each message whose delivery ended without an ack where it belongs."""
        back, dead = [], []
        for message, outcome, due in ended:
            if outcome == "dropped":
                queue.dropped += 1
            elif outcome == "dead_letter":
                dead.append((message, due))
            elif due is None:
                queue.purged += 1  # a copy
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
        queue.forget(queue.ages.find(set(seqs)))

    def _discarded(self, name: str, at: Instant, seqs: list[int]) -> None:
        queue = self._open(name)
        queue.promote(at)
        wanted = dict.fromkeys(seqs)
        messages = [message for message in queue.stored() if message.seq in wanted]
        queue.purged += len(messages)
        queue.forget(messages)

    def _hastened(self, name: str, at: Instant, seqs: list[int]) -> None:
        queue = self._open(name)
        queue.promote(at)
        wanted = dict.fromkeys(seqs)
        queue.hasten([message for message in queue.stored() if message.seq in wanted], at)

    def _purged(self, name: str, at: Instant) -> None:
        self._open(name).clear()

    def _paused(self, name: str, at: Instant, held: bool | None) -> None:
        self._open(name).held = held

    def _set_up(self, name: str, at: Instant, facts: Record) -> None:
        self._open(name)
        self._setups[name] = Setup.load(facts)

    def _queue_deleted(self, name: str, at: Instant) -> None:
        queue = self._queues.pop(name)
        self._setups.pop(name, None)
        self._deleted[name] = queue.next_seq, queue.next_number


_TRANSITIONS: Final[Mapping[str, Callable[..., None]]] = {
    "send": State._sent,
    "vanish": State._vanished,
    "copy": State._copied,
    "take": State._taken,
    "settle": State._settled,
    "lease": State._leased,
    "release": State._released,
    "expire": State._expired,
    "purge": State._purged,
    "pause": State._paused,
    "setup": State._set_up,
    "delete": State._queue_deleted,
    "discard": State._discarded,
    "hasten": State._hastened,
}


@contextmanager
def _fitting(what: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(
            f"{what} of the queues does not fit: the state is damaged, or a newer release wrote it"
            f" ({error!r})"
        ) from error
