"""Notices deliveries that lead to each other at one instant, so that time never moves on.

A consumer that sends to its own queue without a delay keeps every call waiting for ever: there is
always a batch due. A message that a consumer's run sends at the instant it began is one link
further than the messages of that run; all others begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.errors import Stuck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.queues.model import Batch, Instant, Outgoing

# Far more links than a chain has that ends.
_MOST: Final = 10_000


class Chain:
    """How many deliveries in a row led to each message of the present instant."""

    def __init__(self) -> None:
        self._at: Instant = -1
        self._links: dict[str, int] = {}

    def sent(self, messages: Sequence[Outgoing], link: int, now: Instant) -> None:
        """Remember that a run with this number sent messages; 0 is anybody else."""
        if not link:
            return
        if self._at != now:
            self._at = now
            self._links.clear()
        for message in messages:
            self._links[message.id] = link

    def link(self, batch: Batch, now: Instant) -> int:
        """The number of the run that a batch starts now, at least 1.

        Raises `Stuck` for one with which the chain is too long to have an end.
        """
        if self._at != now:
            return 1
        number = 1 + max(self._links.get(message.id, 0) for message in batch.messages)
        if number > _MOST:
            self._links.clear()
            raise Stuck(
                f"{_MOST:,} batches in a row, the last of the queue {batch.queue}, were each made "
                "of what the consumer of the one before had sent, and no time has passed: this "
                "never ends. Let the consumer send with delaySeconds, or give the queue's consumer "
                "a max_batch_timeout"
            )
        return number
