"""What became of deliveries, in the trace."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.kernel import Kernel
    from emulator.queues.model import Settled


def trace(kernel: Kernel, queue: str, settled: Sequence[Settled]) -> None:
    """Write an event for each delivery that ended."""
    for outcome, items in groupby(settled, attrgetter("outcome")):
        rows = [(item.id, item.attempts) for item in items]
        kernel.record_each(outcome, f"queue {queue}", ("id", "attempt"), rows)
