"""Smaller plans to try in place of one that fails."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.sweeping.outcome import Plan

# Of more faults than this not every choice is tried, but each fault is left out once.
_MOST: Final = 5


def parts(plan: Plan) -> Iterator[Plan]:
    """Yield the plans with fewer of the faults, the smallest first, each in the plan's order."""
    if len(plan) > _MOST:
        yield from ((fault,) for fault in plan)
        yield from combinations(plan, len(plan) - 1)
        return
    for size in range(1, len(plan)):
        yield from combinations(plan, size)
