"""What one object keeps: values, ranges, levels, the alarm. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.objects.stored import UNCHANGED, Alarm, Range, Stored

KEYS = ["a", "a/1", "a/2", "aa", "b", "c", "é", "z", "\U0001f600"]


def filled(*keys: str) -> Stored:
    stored = Stored("id", None)
    for key in keys:
        stored.put(key, key.encode())
    stored.keep_changes()
    return stored


# -- ranges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Range(), KEYS),
        (Range(start="b"), ["b", "c", "é", "z", "\U0001f600"]),
        (Range(after="b"), ["c", "é", "z", "\U0001f600"]),
        (Range(end="b"), ["a", "a/1", "a/2", "aa"]),
        (Range(start="a/2", end="c"), ["a/2", "aa", "b"]),
        (Range(prefix="a/"), ["a/1", "a/2"]),
        (Range(prefix="a"), ["a", "a/1", "a/2", "aa"]),
        (Range(prefix="a", start="a/2"), ["a/2", "aa"]),
        (Range(prefix="a", after="a", limit=1), ["a/1"]),
        (Range(prefix="x"), []),
        (Range(prefix=""), KEYS),
        (Range(start="z", end="a"), []),
        (Range(limit=2), ["a", "a/1"]),
        (Range(backwards=True, limit=3), ["\U0001f600", "z", "é"]),
        (Range(backwards=True, prefix="a", start="a/1", limit=2), ["aa", "a/2"]),
        (Range(start="nowhere"), ["z", "é", "\U0001f600"]),
    ],
)
def test_a_range_of_keys(wanted: Range, found: list[str]) -> None:
    assert sorted(filled(*KEYS).keys(wanted)) == sorted(found)
    assert list(filled(*reversed(KEYS)).keys(wanted)) == [
        key for key in sorted(KEYS, reverse=wanted.backwards) if key in found
    ]


@given(
    st.sets(st.text("ab\U0010ffff", max_size=4)),
    st.text("ab\U0010ffff", max_size=2),
    st.none() | st.text("ab", max_size=3),
    st.none() | st.text("ab", max_size=3),
    st.booleans(),
    st.none() | st.integers(1, 4),
)
def test_a_range_is_what_a_filter_finds(
    keys: set[str],
    prefix: str,
    start: str | None,
    end: str | None,
    backwards: bool,
    limit: int | None,
) -> None:
    found = filled(*sorted(keys)).keys(
        Range(start, None, end, prefix, backwards=backwards, limit=limit)
    )
    expected = [
        key
        for key in sorted(keys, reverse=backwards)
        if key.startswith(prefix) and (start is None or key >= start) and (end is None or key < end)
    ]
    assert list(found) == expected[:limit]


# -- levels ----------------------------------------------------------------------------------------


def test_a_turn_s_changes_are_one() -> None:
    stored = filled("kept", "gone", "same")
    stored.put("new", b"1")
    stored.put("new", b"2")
    stored.delete("gone")
    stored.put("passing", b"x")
    stored.delete("passing")
    changes = stored.changes()
    assert changes is not None
    assert (changes.puts, changes.deletes, changes.alarm) == ([("new", b"2")], ["gone"], UNCHANGED)
    stored.keep_changes()
    assert stored.changes() is None


def test_what_comes_and_goes_in_a_turn_is_no_change() -> None:
    stored = filled()
    stored.put("a", b"1")
    stored.delete("a")
    assert stored.changes() is None


def test_a_power_cut_takes_all_of_a_turn() -> None:
    stored = filled("a", "b")
    stored.put("a", b"changed")
    stored.delete("b")
    stored.begin()
    stored.put("c", b"new")
    stored.set_alarm(Alarm(5, 5))
    assert stored.committed == ({"a": b"a", "b": b"b"}, None)
    stored.drop_changes()
    assert (stored.values, stored.alarm, stored.depth) == ({"a": b"a", "b": b"b"}, None, 1)
    assert list(stored.keys(Range())) == ["a", "b"]


def test_transactions_nest() -> None:
    stored = filled("a")
    stored.begin()
    stored.put("a", b"1")
    stored.begin()
    stored.put("a", b"2")
    stored.put("b", b"2")
    stored.rollback()
    assert stored.values == {"a": b"1"}
    stored.begin()
    stored.put("c", b"3")
    stored.commit()
    stored.commit()
    changes = stored.changes()
    assert changes is not None
    assert changes.puts == [("a", b"1"), ("c", b"3")]


@pytest.mark.parametrize("keeps", [False, True])
def test_an_alarm_belongs_to_its_level(keeps: bool) -> None:
    stored = filled()
    first, second = Alarm(1, 1), Alarm(2, 2)
    stored.set_alarm(first)
    stored.keep_changes()
    stored.begin()
    stored.set_alarm(second)
    stored.set_alarm(None)
    assert stored.alarm_time is None
    if keeps:
        stored.commit()
        changes = stored.changes()
        assert changes is not None
        assert changes.alarm is None
    else:
        stored.rollback()
        assert stored.changes() is None
        assert stored.alarm is first


def test_an_alarm_whose_handler_runs_is_not_set() -> None:
    stored = filled()
    alarm = Alarm(7, 7)
    stored.set_alarm(alarm)
    assert stored.alarm_time == 7
    stored.running = alarm
    assert stored.alarm_time is None
    stored.set_alarm(Alarm(7, 7))  # the same time, and another alarm
    assert stored.alarm_time == 7


STEPS = st.lists(
    st.tuples(st.sampled_from(["put"]), st.sampled_from("abc"), st.binary(max_size=2))
    | st.tuples(st.sampled_from(["delete"]), st.sampled_from("abc"))
    | st.tuples(st.sampled_from(["clear", "begin", "commit", "rollback", "keep", "drop"])),
    max_size=30,
)


@given(STEPS)
def test_levels_do_what_copies_would(steps: list[tuple[Any, ...]]) -> None:
    """The model keeps a whole copy of the values at the beginning of each level."""
    stored = Stored("id", None)
    values: dict[str, bytes] = {}
    copies: list[dict[str, bytes]] = [{}]
    for name, *arguments in steps:
        if name == "put":
            values[arguments[0]] = arguments[1]
            stored.put(*arguments)
        elif name == "delete":
            assert stored.delete(*arguments) == (values.pop(arguments[0], None) is not None)
        elif name == "clear":
            values.clear()
            stored.clear()
        elif name == "begin":
            copies.append(dict(values))
            stored.begin()
        elif name == "drop":
            values = dict(copies[0])
            copies = [dict(values)]
            stored.drop_changes()
        elif name == "keep":
            if len(copies) == 1:
                changes = stored.changes()
                after = {**copies[0], **dict(changes.puts if changes else ())}
                for key in changes.deletes if changes else ():
                    del after[key]
                assert after == values
                copies = [dict(values)]
                stored.keep_changes()
        elif len(copies) > 1:
            before = copies.pop()
            if name == "rollback":
                values = before
            getattr(stored, name)()
        assert stored.values == values
        assert stored.committed[0] == copies[0]
        assert list(stored.keys(Range())) == sorted(values)
