"""The durable state of all Durable Objects of one emulator.

Objects lie in *spaces*, one for each class of each Worker. A space has a key of its own, which the
ids of its objects are made with, and keeps it when a migration renames its class or gives it to
another Worker. Every change is a record too; replaying them makes the same state.

What an object with a database (`storage.sql`) keeps is in the database; here is only that it has
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.objects.stored import Alarm, Changes, Stored, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from emulator.object_config import Move

Record = Any
_NO_CHANGE = 0  # an alarm in a record


class State:
    """All objects that have something to keep."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Stored]] = {}
        # Keys of spaces that are not what a new one has.
        self._keys: dict[tuple[str, str], str] = {}
        self._moves: dict[tuple[str, str, str, str], None] = {}
        self._records: list[Record] = []

    # -- spaces ----------------------------------------------------------------------------------

    def key_of(self, script: str, class_name: str) -> str:
        """The key of the space of a Worker's class."""
        return self._keys.get((script, class_name), f"{script}-{class_name}")

    def move(self, script: str, move: Move) -> None:
        """Let a Worker's migration happen, once."""
        if (script, move.tag, move.kind, move.source) not in self._moves:
            self._records.append(["move", script, *move])
            self._move(script, *move)

    def _move(
        self, script: str, kind: str, tag: str, source: str, target: str, origin: str
    ) -> None:
        step = (script, tag, kind, source)
        if step in self._moves:
            return
        self._moves[step] = None
        owner = origin if kind == "transfer" else script
        key = self.key_of(owner, source)
        if kind == "delete":
            self._objects.pop(key, None)
        else:
            self._keys[script, target] = key
        # Should there be a class of this name again, its objects are others.
        self._keys[owner, source] = f"{owner}-{source}-{len(self._moves)}"

    # -- objects ---------------------------------------------------------------------------------

    def objects(self, key: str) -> Sequence[Stored]:
        """The objects of a space that keep something, in the order in which they began to."""
        return list(self._objects.get(key, {}).values())

    def all(self) -> Sequence[tuple[str, Stored]]:
        """All objects that keep something, with the keys of their spaces."""
        return [(key, stored) for key, space in self._objects.items() for stored in space.values()]

    def get(self, key: str, id: str) -> Stored | None:
        """An object that keeps something."""
        return self._objects.get(key, {}).get(id)

    @property
    def stored(self) -> int:
        """How many values there are."""
        return sum(1 + len(stored.values) for _, stored in self.all())

    def keep(self, key: str, stored: Stored, changes: Changes) -> None:
        """Make durable what a turn changed; not the values of an object with a database."""
        self._place(key, stored)
        if stored.has_database:
            return
        alarm: Any = changes.alarm
        if isinstance(alarm, Unchanged):
            alarm = _NO_CHANGE
        self._records.append(
            ["turn", key, stored.id, stored.name, changes.puts, changes.deletes, alarm]
        )

    def put_alarm(self, key: str, stored: Stored, alarm: Alarm | None) -> None:
        """The platform sets, puts off or deletes an alarm."""
        stored.alarm = alarm
        self._place(key, stored)
        if not stored.has_database:
            self._records.append(["alarm", key, stored.id, alarm])

    def give_database(self, key: str, stored: Stored) -> None:
        """An object uses SQL: from now on all it keeps is in its database."""
        stored.has_database = True
        self._place(key, stored)
        self._records.append(["database", key, stored.id, stored.name])

    def _place(self, key: str, stored: Stored) -> None:
        space = self._objects.setdefault(key, {})
        if stored.is_empty:
            space.pop(stored.id, None)
        else:
            space[stored.id] = stored

    # -- records ---------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> Record:
        """The whole state."""
        objects = []
        for key, one in self.all():
            values, alarm = ({}, None) if one.has_database else one.committed
            objects.append([key, one.id, one.name, one.has_database, dict(values), alarm])
        return {
            "objects": objects,
            "keys": [[*names, key] for names, key in self._keys.items()],
            "moves": [list(step) for step in self._moves],
        }

    @classmethod
    def rebuilt(cls, snapshot: Record | None, records: Iterable[Record]) -> State:
        """The state that a snapshot and the records after it tell."""
        state = cls()
        if snapshot is not None:
            state._restore(snapshot)
        for kind, *values in records:
            if kind == "move":
                script, move_kind, tag, source, target, origin = values
                state._move(script, move_kind, tag, source, target, origin)
            else:
                state._replay(kind, *values)
        return state

    def _restore(self, snapshot: Record) -> None:
        for key, id, name, has_database, values, alarm in snapshot["objects"]:
            stored = Stored(id, name)
            stored.has_database = has_database
            stored.load(values.items(), ())
            stored.alarm = None if alarm is None else Alarm(*alarm)
            self._place(key, stored)
        self._keys = {(script, name): key for script, name, key in snapshot["keys"]}
        self._moves = {tuple(step): None for step in snapshot["moves"]}

    def _replay(self, kind: str, key: str, id: str, *values: Any) -> None:
        name = None if kind == "alarm" else values[0]
        stored = self.get(key, id) or Stored(id, name)
        if kind == "database":
            stored.has_database = True
        else:
            alarm = values[-1]
            if kind == "turn":
                _, puts, deletes, _ = values
                stored.load(puts, deletes)
            if alarm != _NO_CHANGE:
                stored.alarm = None if alarm is None else Alarm(*alarm)
        self._place(key, stored)
