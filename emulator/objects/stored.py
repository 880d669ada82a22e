"""What one object keeps: values by key, and an alarm.

Theory of operation. Writes happen at once, and what was there before is remembered in *levels*: one
for the turn that runs, one more for each transaction inside. A level that is rolled back puts back
what was there; one that is committed leaves that to the level around it. The outermost is over with
the turn (`keep_changes`), or with the turn in which the last transaction ends: what it changed is
then durable as a whole. A power cut drops it (`drop_changes`).

    put, delete ──> level ── commit ──> level around it ── keep_changes ──> durable
                      └───── rollback, drop_changes ──> as it was
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Alarm(NamedTuple):
    """An alarm: when it was set for, when it runs next, and how many runs failed; microseconds."""

    time: int
    due: int
    retries: int = 0


class Unchanged:
    """The type of `UNCHANGED`: an alarm that nobody set or deleted."""


UNCHANGED: Final = Unchanged()


class Changes(NamedTuple):
    """What a turn changed."""

    puts: list[tuple[str, bytes]]
    deletes: list[str]
    alarm: Alarm | Unchanged | None


class Range(NamedTuple):
    """Which keys: from `start` on, or after `after`, before `end`, with a prefix; at most so many.

    The last ones, from the end, if `backwards`.
    """

    start: str | None = None
    after: str | None = None
    end: str | None = None
    prefix: str | None = None
    backwards: bool = False
    limit: int | None = None


class _Level:
    __slots__ = ("alarm", "values")

    def __init__(self) -> None:
        # What was there before, None for nothing.
        self.values: dict[str, bytes | None] = {}
        self.alarm: Alarm | Unchanged | None = UNCHANGED


class Stored:
    """The storage of one object, as its code sees it now.

    `running` is the alarm whose handler runs, `has_database` tells that SQL was used.
    """

    __slots__ = ("_levels", "_order", "alarm", "has_database", "id", "name", "running", "values")

    def __init__(self, id: str, name: str | None) -> None:
        self.id = id
        self.name = name
        self.values: dict[str, bytes] = {}
        self.alarm: Alarm | None = None
        self.running: Alarm | None = None
        self.has_database = False
        self._levels: list[_Level] = [_Level()]
        self._order: list[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that lasts."""
        return not (self.values or self.alarm is not None or self.has_database)

    @property
    def depth(self) -> int:
        """How many levels are open; the turn's own is always."""
        return len(self._levels)

    # -- values ----------------------------------------------------------------------------------

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._remember(key)
        if key not in self.values:
            self._order = None
        self.values[key] = value

    def delete(self, key: str) -> bool:
        """Delete a value; whether there was one."""
        if key not in self.values:
            return False
        self._remember(key)
        self._order = None
        del self.values[key]
        return True

    def clear(self) -> None:
        """Delete all values."""
        for key in list(self.values):
            self.delete(key)

    def keys(self, wanted: Range) -> Sequence[str]:
        """The keys in a range, in the order of their code points."""
        order = self._order
        if order is None:
            order = self._order = sorted(self.values)
        low, high = 0, len(order)
        if wanted.start is not None:
            low = bisect_left(order, wanted.start)
        if wanted.after is not None:
            low = bisect_right(order, wanted.after)
        if wanted.end is not None:
            high = bisect_left(order, wanted.end)
        if wanted.prefix:
            size = len(wanted.prefix)
            low = max(low, bisect_left(order, wanted.prefix))
            high = min(high, bisect_right(order, wanted.prefix, key=lambda key: key[:size]))
        found = order[low:high]
        if wanted.backwards:
            found.reverse()
        return found[: wanted.limit]

    # -- the alarm -------------------------------------------------------------------------------

    @property
    def alarm_time(self) -> int | None:
        """When the alarm is set for; None where there is none, or where it is what runs."""
        if self.alarm is None or self.alarm is self.running:
            return None
        return self.alarm.time

    def set_alarm(self, alarm: Alarm | None) -> None:
        """Set the alarm, or delete it."""
        level = self._levels[-1]
        if level.alarm is UNCHANGED:
            level.alarm = self.alarm
        self.alarm = alarm

    # -- levels ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction."""
        self._levels.append(_Level())

    def commit(self) -> None:
        """End the innermost transaction and keep what it did."""
        done, outer = self._levels.pop(), self._levels[-1]
        for key, before in done.values.items():
            outer.values.setdefault(key, before)
        if outer.alarm is UNCHANGED:
            outer.alarm = done.alarm

    def rollback(self) -> None:
        """End the innermost transaction, as if it had not been."""
        self._restore(self._levels.pop())

    def drop_changes(self) -> None:
        """Undo all that is not durable yet."""
        while self._levels:
            self._restore(self._levels.pop())
        self._levels.append(_Level())

    def changes(self) -> Changes | None:
        """What has changed since the last `keep_changes`; None for nothing."""
        (level,) = self._levels
        if not level.values and level.alarm is UNCHANGED:
            return None
        values = self.values
        puts = [(key, values[key]) for key in level.values if key in values]
        deletes = [
            key for key, before in level.values.items() if key not in values and before is not None
        ]
        if not puts and not deletes and level.alarm is UNCHANGED:
            return None
        return Changes(puts, deletes, UNCHANGED if level.alarm is UNCHANGED else self.alarm)

    @property
    def committed(self) -> tuple[dict[str, bytes], Alarm | None]:
        """The values and the alarm without what is not durable yet; not to be changed."""
        if len(self._levels) == 1 and not self._levels[0].values:
            unset = self._levels[0].alarm
            return self.values, self.alarm if isinstance(unset, Unchanged) else unset
        values, alarm = dict(self.values), self.alarm
        for level in reversed(self._levels):
            for key, before in level.values.items():
                if before is None:
                    values.pop(key, None)
                else:
                    values[key] = before
            if not isinstance(level.alarm, Unchanged):
                alarm = level.alarm
        return values, alarm

    def keep_changes(self) -> None:
        """All changes are durable from now on."""
        self._levels[0] = _Level()

    def load(self, puts: Iterable[tuple[str, bytes]], deletes: Iterable[str]) -> None:
        """Take over what is durable."""
        self.values.update(puts)
        for key in deletes:
            self.values.pop(key, None)
        self._order = None

    def _remember(self, key: str) -> None:
        before = self._levels[-1].values
        if key not in before:
            before[key] = self.values.get(key)

    def _restore(self, level: _Level) -> None:
        for key, before in level.values.items():
            if before is None:
                self.values.pop(key, None)
            else:
                self.values[key] = before
        self._order = None
        if not isinstance(level.alarm, Unchanged):
            self.alarm = level.alarm
