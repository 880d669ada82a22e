"""Keeps the failing plans of a sweep in pytest's cache, to be tried first the next time.

A file per test (and shard), since the processes of pytest-xdist write at the same time.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from emulator.errors import PlanError
from emulator.pytest_sweep_shards import shard_of, whole_id

if TYPE_CHECKING:
    import pytest

    from emulator.sweeping.outcome import Plan
    from emulator.sweeping.report import SweepReport

_FOLDER = "workers-emulator/sweep"
_KEPT = 50


def recall(item: pytest.Item) -> list[Plan]:
    """Return the plans that failed the last time, those that can still be read."""
    from emulator.faults import parse_plan

    cache: Any = getattr(item.config, "cache", None)
    if cache is None:
        return []
    # What one process found is of use to several, and the other way round only to the same shard.
    texts: dict[str, None] = {}
    for shard in dict.fromkeys(((0, 1), shard_of(item))):
        kept = cache.get(_key(item, shard), None)
        if isinstance(kept, dict) and isinstance(kept.get("plans"), list):
            texts.update(dict.fromkeys(text for text in kept["plans"] if isinstance(text, str)))
    plans = []
    for text in texts:
        try:
            plans.append(parse_plan(text))
        except PlanError:  # Of another version, or written by hand.
            continue
    return [plan for plan in plans if plan]


def remember(item: pytest.Item, report: SweepReport) -> None:
    """Keep the plans that failed this time."""
    from emulator.faults import format_plan

    cache: Any = getattr(item.config, "cache", None)
    if cache is None:
        return
    plans = [format_plan(failure.plan) for failure in report.failures if failure.plan][:_KEPT]
    key = _key(item, shard_of(item))
    if plans or cache.get(key, None) is not None:
        cache.set(key, {"test": whole_id(item), "plans": plans})


def _key(item: pytest.Item, shard: tuple[int, int]) -> str:
    name = sha256(whole_id(item).encode()).hexdigest()[:16]
    index, count = shard
    return f"{_FOLDER}/{name}" if count == 1 else f"{_FOLDER}/{name}.{index + 1}-of-{count}"
