"""One stored message: where it is, and how others see it."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from emulator.queues.model import Delivery, Pending

if TYPE_CHECKING:
    from emulator.queues.model import Instant

# The places of a message. SET_ASIDE is LEASED, and looked over by retention (`ages.py`).
WAITING, DELAYED, IN_FLIGHT, LEASED, SET_ASIDE, GONE = range(6)


@dataclass(slots=True, eq=False)
class Message:
    """A stored message; `attempts` counts deliveries.

    `available` is when it joins the line; while it is leased, when its lease runs out.
    """

    seq: int
    id: str
    body: bytes
    content_type: str
    timestamp: Instant
    attempts: int
    available: Instant
    entered: Instant
    is_copy: bool = False
    place: int = DELAYED


_visible = attrgetter(*Pending._fields[:-1], "available")
stored_of = attrgetter(*Pending._fields[:-1], "available", "entered", "is_copy")


def pending_of(message: Message) -> Pending:
    """The message as those who look see it."""
    return Pending(*_visible(message))


def delivery_of(message: Message, attempts: int) -> Delivery:
    """The message as its consumer gets it."""
    m = message
    return Delivery(m.seq, m.id, m.body, m.content_type, m.timestamp, attempts)
