"""The counts of rate limits, without anything around them."""

from __future__ import annotations

from typing import Any

from emulator.ratelimit.counts import Counts, Place

SECOND = 1_000_000
PLACE = Place("1001", "ada", 10)


def test_a_period_has_its_limit_and_starts_again_with_the_clock() -> None:
    counts = Counts()
    assert [counts.take(PLACE, 2, 3 * SECOND) for _ in range(3)] == [1, 2, None]
    assert counts.take(PLACE, 2, 10 * SECOND - 1) is None
    assert counts.take(PLACE, 2, 10 * SECOND) == 1


def test_keys_namespaces_and_lengths_count_apart() -> None:
    counts = Counts()
    changes: list[dict[str, Any]] = [{"key": "bob"}, {"namespace": "1002"}, {"period": 60}]
    others = [PLACE._replace(**change) for change in changes]
    assert counts.take(PLACE, 1, 0) == 1
    assert [counts.take(place, 1, 0) for place in others] == [1, 1, 1]
    assert [counts.take(place, 1, 0) for place in (PLACE, *others)] == [None] * 4


def test_the_limit_is_no_part_of_a_count() -> None:
    counts = Counts()
    assert [counts.take(PLACE, 5, 0) for _ in range(3)] == [1, 2, 3]
    assert counts.take(PLACE, 3, 0) is None
    assert counts.take(PLACE, 4, 0) == 4
    assert counts.take(PLACE, 0, 0) is None


def test_what_is_over_is_forgotten_with_its_length() -> None:
    counts = Counts()
    for key in "abc":
        counts.take(Place("1", key, 10), 1, 0)
        counts.take(Place("1", key, 60), 1, 0)
    assert len(counts) == 6
    counts.take(Place("1", "a", 10), 1, 10 * SECOND)
    assert len(counts) == 4
    assert sorted(place.period for place, _, _ in counts.rows()) == [10, 60, 60, 60]
