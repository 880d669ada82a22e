"""A seeded choice of some of many, for a search whose budget does not reach for all."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")


class Sampler:
    """Chooses by a seed; the same seed and the same calls give the same choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"sweep {seed}")

    def pick(self, items: Sequence[_T], count: int) -> list[_T]:
        """Return `count` of the items (all, if there are no more), in the order they have."""
        if count >= len(items):
            return list(items)
        return [items[index] for index in sorted(self._random.sample(range(len(items)), count))]
