"""Messages in the hands of pullers, and the names of their leases (5.3, 5.5 to 5.7).

A lease is named after what makes it unlike any other of its queue: the message's number there and
which of its deliveries it is. So a name needs no randomness, a replay gives the same ones, and none
has to be stored. Encoded, it is as opaque to its puller as the real one. It goes on to acknowledge
its message when it ran out and even when another puller has leased the message anew (5.7), until
the message leaves the queue or is handed to a push consumer.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from emulator.queues.ages import SLACK, in_order
from emulator.queues.message import LEASED, SET_ASIDE
from emulator.queues.model import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from emulator.queues.message import Message
    from emulator.queues.model import Duration, Instant

MAX_PULL_SIZE: Final = 100
MAX_VISIBILITY_TIMEOUT: Final = 43_200_000 * MILLISECOND
MAX_RETRY_DELAY: Final = 86_400 * SECOND

# What stands in `warnings`; the real texts are not known (5.7).
UNKNOWN_LEASE: Final = "there is no such lease in this queue"
ENDED_LEASE: Final = "the lease has ended, so there is nothing to retry"


class PullRefusedError(Exception):
    """Base of the reasons why a queue gives out no leases."""


class NoPullConsumerError(PullRefusedError):
    """The queue has no pull consumer; over HTTP this is status 405 (5.8)."""


class DeliveryPausedError(PullRefusedError):
    """The queue's deliveries are paused; over HTTP this is status 409 (5.8)."""


class Leases:
    """The messages of one queue that pullers hold, in order of running out.

    `lent` has by number every message that was leased once and not handed to a push consumer since.
    """

    __slots__ = ("_ends", "_held", "lent")

    def __init__(self) -> None:
        self.lent: dict[int, Message] = {}
        self._held: dict[Instant, dict[int, Message]] = {}
        # A heap of when leases run out; some of these instants may have no leases left.
        self._ends: list[Instant] = []

    def __iter__(self) -> Iterator[Message]:
        for until in sorted(self._held):
            yield from self._held[until].values()

    def add(self, messages: Iterable[Message], until: Instant) -> None:
        """Lease messages; what they do in the meantime is up to the line."""
        together = self._held.get(until)
        if together is None:
            together = self._held[until] = {}
            heappush(self._ends, until)
        for message in messages:
            message.available = until
            together[message.seq] = self.lent[message.seq] = message

    def end(self, seq: int) -> Message:
        """Take a message from its puller; raises `KeyError` if none has it."""
        message = self.lent[seq]
        together = self._held[message.available]
        del together[seq]
        if not together:
            del self._held[message.available]
            if len(self._ends) > 2 * len(self._held) + SLACK:
                self._ends = sorted(self._held)
        return message

    def forget(self, messages: Iterable[Message]) -> None:
        """End for good what leases of these messages could do, none of which is held now."""
        for message in messages:
            self.lent.pop(message.seq, None)

    def remember(self, messages: Iterable[Message], seqs: Iterable[int]) -> None:
        """Let the former leases of those messages that have these numbers go on to count."""
        by_seq = {message.seq: message for message in messages}
        self.lent.update((seq, by_seq[seq]) for seq in seqs)

    def next_end(self) -> Instant | None:
        """When the next lease runs out."""
        while self._ends and self._ends[0] not in self._held:
            heappop(self._ends)
        return self._ends[0] if self._ends else None

    def over(self, now: Instant) -> list[Message]:
        """The messages whose leases have run out, in order of that and then of the leases."""
        found: dict[int, Message] = {}
        for until in in_order(self._ends):
            if until > now:
                break
            found.update(self._held.get(until, {}))
        return list(found.values())

    def returned(self) -> list[int]:
        """The numbers of those in `lent` that nobody holds now."""
        return sorted(seq for seq, message in self.lent.items() if not is_leased(message))

    def message_of(self, queue: str, lease: str) -> tuple[int, Message | None]:
        """The number of a lease's message, and the message unless no lease of it counts any more.

        Raises `ValueError` if no lease of this queue can have that name.
        """
        seq, attempt = _read(queue, lease)
        message = self.lent.get(seq)
        if message is not None and not 0 < attempt <= message.attempts:
            raise ValueError
        if message is not None and lease != _name(queue, seq, attempt, message.id):
            raise ValueError
        return seq, message


def is_leased(message: Message) -> bool:
    """Whether a puller has the message now."""
    return message.place in (LEASED, SET_ASIDE)


def lease_of(queue: str, message: Message) -> str:
    """The name of the lease that a message is under, or was last."""
    return _name(queue, message.seq, message.attempts, message.id)


def _name(queue: str, seq: int, attempt: int, id: str) -> str:
    name = f"{seq}.{attempt}.{queue}.{id}".encode()
    return urlsafe_b64encode(name).decode().rstrip("=")


def _read(queue: str, lease: str) -> tuple[int, int]:
    padded = lease + "=" * (-len(lease) % 4)
    seq, attempt, rest = urlsafe_b64decode(padded).decode().split(".", 2)
    if not rest.startswith(f"{queue}."):
        raise ValueError
    return int(seq), int(attempt)


def check_pull(size: int, timeout: Duration) -> None:
    """Raise `ValueError` for what a pull may not ask for (5.2)."""
    if not 1 <= size <= MAX_PULL_SIZE:
        raise ValueError(f"a pull takes between 1 and {MAX_PULL_SIZE} messages, not {size}")
    if not 0 <= timeout <= MAX_VISIBILITY_TIMEOUT:
        most = MAX_VISIBILITY_TIMEOUT // MILLISECOND
        raise ValueError(
            f"a visibility timeout is between 0 and {most} ms, not {timeout / MILLISECOND:.15g} ms"
        )


def check_delays(delays: Iterable[Duration | None]) -> None:
    """Raise `ValueError` for a delay that no retry may ask for (5.7)."""
    for delay in delays:
        if delay is not None and not 0 <= delay <= MAX_RETRY_DELAY:
            most = MAX_RETRY_DELAY // SECOND
            raise ValueError(
                f"the delay of a retry is between 0 and {most} s, not {delay / SECOND:.15g} s"
            )
