"""Who came to a queue first, which is what retention counts from.

Retention may be a minute and a lease twelve hours, so thousands of messages that nobody may expire
can be older than all others. They must not be passed over again at every look: those met at the
front are set aside, and come back, should they come back, by way of a heap.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final, TypeVar

from emulator.queues.message import DELAYED, GONE, IN_FLIGHT, LEASED, SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from emulator.queues.message import Message
    from emulator.queues.model import Instant

# How many entries that mean nothing any more are not worth letting go of.
SLACK: Final = 64

T = TypeVar("T")


def in_order(heap: list[T]) -> Iterator[T]:
    """What is in a heap in order, reading no more of it than asked."""
    ahead: list[tuple[T, int]] = [(heap[0], 0)] if heap else []
    while ahead:
        item, index = heappop(ahead)
        for child in (2 * index + 1, 2 * index + 2):
            if child < len(heap):
                heappush(ahead, (heap[child], child))
        yield item


class Ages:
    """The messages of a queue in order of entry, gone ones among them until they are met.

    `_entered` is in order of entry, `_returned` a heap by it of those that were set aside once.
    """

    __slots__ = ("_entered", "_returned")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._entered = deque(messages)
        self._returned: list[tuple[int, Message]] = []

    def __len__(self) -> int:
        return len(self._entered) + len(self._returned)

    def extend(self, messages: Iterable[Message]) -> None:
        """Add messages that came after all others."""
        self._entered.extend(messages)

    def put_back(self, message: Message) -> None:
        """Add a message that had been set aside."""
        heappush(self._returned, (message.seq, message))

    def oldest(self) -> Message | None:
        """The oldest message that nobody holds."""
        entered = self._entered
        if self._returned or (entered and entered[0].place >= LEASED):
            self._set_aside()
        for message in entered:
            if message.place <= DELAYED:
                break
        else:
            message = None
        if self._returned:
            for returned in self._stored_returned():
                return returned if message is None or returned.seq < message.seq else message
        return message

    def entered_by(self, instant: Instant) -> list[Message]:
        """The messages that nobody holds and that came no later than this, in order of entry."""
        entered, found = self._entered, []
        if self._returned or (entered and entered[0].place >= LEASED):
            self._set_aside()
        for message in entered:
            if message.entered > instant:
                break
            if message.place <= DELAYED:
                found.append(message)
        if self._returned:
            old = takewhile(lambda message: message.entered <= instant, self._stored_returned())
            found = sorted([*found, *old], key=lambda message: message.seq)
        return found

    def find(self, seqs: set[int]) -> list[Message]:
        """The messages with these numbers, which are among the oldest that nobody holds."""
        last = max(seqs, default=0)
        entered = takewhile(lambda message: message.seq <= last, self._entered)
        returned = takewhile(lambda message: message.seq <= last, self._stored_returned())
        found = [m for m in chain(entered, returned) if m.seq in seqs and m.place <= DELAYED]
        if len(found) < len(seqs):
            left = len(seqs) - len(found)
            raise ValueError(f"{left} of the messages {sorted(seqs)} are not stored")
        return found

    def trim(self, kept: int) -> None:
        """Let go of messages that are gone: the first ones, or all when they are the most.

        `kept` is the number of messages that the queue has.
        """
        entered = self._entered
        while entered and entered[0].place == GONE:
            entered.popleft()
        if len(entered) + len(self._returned) > 2 * kept + SLACK:
            self._entered = deque(message for message in entered if message.place != GONE)
            # Dropping some of a sorted list leaves a sorted list, which is a heap.
            self._returned = sorted(item for item in self._returned if item[1].place != GONE)

    def clear(self) -> None:
        """Let go of all that nobody holds."""
        held = (IN_FLIGHT, LEASED)
        self._entered = deque(message for message in self._entered if message.place in held)
        self._returned = sorted(item for item in self._returned if item[1].place in held)

    def _set_aside(self) -> None:
        entered, returned = self._entered, self._returned
        while entered and entered[0].place >= LEASED:
            _aside(entered.popleft())
        while returned and returned[0][1].place >= LEASED:
            _aside(heappop(returned)[1])

    def _stored_returned(self) -> Iterator[Message]:
        return (message for _, message in in_order(self._returned) if message.place <= DELAYED)


def _aside(message: Message) -> None:
    if message.place == LEASED:
        message.place = SET_ASIDE
