"""The durable state of all objects: records, replay, migrations. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.object_config import Move
from emulator.objects.state import State
from emulator.objects.stored import Alarm, Stored
from emulator.store.records import decode, encode

KEY = "worker-Obj"


def write(state: State, stored: Stored, key: str = KEY, **values: bytes | None) -> None:
    """One turn of an object."""
    for name, value in values.items():
        if value is None:
            stored.delete(name)
        else:
            stored.put(name, value)
    keep(state, stored, key)


def keep(state: State, stored: Stored, key: str = KEY) -> None:
    changes = stored.changes()
    if changes is not None:
        stored.keep_changes()
        state.keep(key, stored, changes)


def seen(state: State) -> list[Any]:
    return [
        (key, one.id, one.name, one.values, one.alarm, one.has_database) for key, one in state.all()
    ]


def stored_form(record: Any) -> Any:
    """What comes back of a record that was written to a file."""
    return decode(encode(record), "a test")


def test_records_make_the_same_state() -> None:
    state = State()
    one, two = Stored("1", "one"), Stored("2", None)
    write(state, one, a=b"1", b=b"2")
    write(state, two, c=b"3")
    write(state, one, a=None, b=b"4")
    two.set_alarm(Alarm(5, 6, 1))
    keep(state, two)
    records = [stored_form(record) for record in state.take_records()]
    again = State.rebuilt(None, records)
    assert seen(again) == seen(state)
    assert seen(State.rebuilt(stored_form(state.snapshot()), [])) == seen(state)
    assert again.take_records() == []


def test_an_object_that_keeps_nothing_is_not_there() -> None:
    state = State()
    one = Stored("1", None)
    write(state, one, a=b"1")
    assert [stored.id for stored in state.objects(KEY)] == ["1"]
    write(state, one, a=None)
    assert state.objects(KEY) == []
    assert State.rebuilt(None, state.take_records()).objects(KEY) == []


def test_the_platform_s_word_on_an_alarm_is_durable() -> None:
    state = State()
    one = Stored("1", "one")
    one.set_alarm(Alarm(5, 5))
    keep(state, one)
    state.put_alarm(KEY, one, Alarm(5, 9, 1))
    again = State.rebuilt(None, [stored_form(record) for record in state.take_records()])
    assert seen(again) == [(KEY, "1", "one", {}, Alarm(5, 9, 1), False)]
    state.put_alarm(KEY, one, None)
    assert state.objects(KEY) == []


def test_a_snapshot_in_the_middle_of_a_transaction_has_none_of_it() -> None:
    state = State()
    one = Stored("1", None)
    write(state, one, a=b"1")
    one.begin()
    one.put("a", b"2")
    one.set_alarm(Alarm(1, 1))
    again = State.rebuilt(stored_form(state.snapshot()), [])
    assert seen(again) == [(KEY, "1", None, {"a": b"1"}, None, False)]


def test_what_is_in_a_database_is_not_in_records() -> None:
    state = State()
    one = Stored("1", None)
    write(state, one, a=b"before")
    state.give_database(KEY, one)
    write(state, one, a=b"after")
    kinds = [record[0] for record in state.take_records()]
    assert kinds == ["turn", "database"]
    assert [row[4:6] for row in state.snapshot()["objects"]] == [[{}, None]]


# -- migrations ------------------------------------------------------------------------------------

RENAME = Move("rename", "v2", "Obj", "Room")
DELETE = Move("delete", "v3", "Obj")


def test_a_renamed_class_keeps_its_objects_and_their_ids() -> None:
    state = State()
    write(state, Stored("1", None), a=b"1")
    assert state.key_of("worker", "Obj") == KEY
    state.move("worker", RENAME)
    assert state.key_of("worker", "Room") == KEY
    assert state.key_of("worker", "Obj") != KEY
    assert [one.id for one in state.objects(KEY)] == ["1"]


def test_a_deleted_class_loses_its_objects_once() -> None:
    state = State()
    write(state, Stored("1", None), a=b"1")
    state.move("worker", DELETE)
    assert state.objects(KEY) == []
    key = state.key_of("worker", "Obj")
    write(state, Stored("2", None), key, b=b"2")
    state.move("worker", DELETE)  # as at the next start
    assert state.key_of("worker", "Obj") == key
    assert [one.id for one in state.objects(key)] == ["2"]


def test_a_class_can_go_to_another_worker() -> None:
    state = State()
    write(state, Stored("1", None), a=b"1")
    state.move("other", Move("transfer", "v1", "Obj", "Room", "worker"))
    assert state.key_of("other", "Room") == KEY
    assert state.key_of("worker", "Obj") != KEY


def test_migrations_are_replayed_where_they_happened() -> None:
    state = State()
    write(state, Stored("1", None), a=b"1")
    records = state.take_records()
    # The next process makes its migrations before it knows what there is.
    later = State()
    later.move("worker", RENAME)
    records += later.take_records()
    again = State.rebuilt(None, [stored_form(record) for record in records])
    assert [one.id for one in again.objects(again.key_of("worker", "Room"))] == ["1"]
    assert again.take_records() == []
    # And one more, whose migration has been made.
    last = State()
    last.move("worker", RENAME)
    last = State.rebuilt(stored_form(again.snapshot()), last.take_records())
    assert [one.id for one in last.objects(last.key_of("worker", "Room"))] == ["1"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("12"),
            st.sampled_from("ab"),
            st.none() | st.binary(max_size=2),
            st.none() | st.integers(1, 9),
        ),
        max_size=20,
    ),
    st.integers(0, 20),
)
def test_a_snapshot_and_the_rest_of_the_records_are_the_state(
    turns: list[tuple[str, str, bytes | None, int | None]], cut: int
) -> None:
    state, objects = State(), {id: Stored(id, id) for id in "12"}
    snapshot, records = None, []
    for number, (id, key, value, alarm) in enumerate(turns):
        objects[id].set_alarm(None if alarm is None else Alarm(alarm, alarm))
        write(state, objects[id], **{key: value})
        records += state.take_records()
        if number == cut:
            snapshot, records = stored_form(state.snapshot()), []
    again = State.rebuilt(snapshot, [stored_form(record) for record in records])
    assert sorted(seen(again)) == sorted(seen(state))


@pytest.mark.parametrize("retries", range(8))
def test_stored_counts_objects_and_values(retries: int) -> None:
    state = State()
    for number in range(retries):
        write(state, Stored(str(number), None), a=b"1", b=b"2")
    assert state.stored == 3 * retries
