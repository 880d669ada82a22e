"""What storage operations do, whichever interface calls them: arguments, limits, faults, effects.

All of it happens in the turn of the code that calls; what it changes is durable when that is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.objects import limits, texts
from emulator.objects.options import alarm_of, entries_of, keys_of, range_of
from emulator.objects.stored import Alarm
from emulator.rpc.stub import Fetcher
from emulator.values import UNDEFINED, JsException, JsMap, from_v8, to_v8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.objects.live import LiveObject

_MILLISECOND = 1_000
# With it `deleteAll` deletes the alarm too; on from 2026-02-24.
_WITH_ALARM = "delete_all_deletes_alarm"


class Operations:
    """The storage operations of one object in memory; each raises `JsException`."""

    def __init__(self, live: LiveObject) -> None:
        self._live = live
        self._stored = live.stored
        self._strict = not live.space.sqlite and live.kernel.profile == "production"

    def get(self, keys: Any, *, site: str = "get") -> Any:
        """A value, or a Map of those that are there."""
        wanted = keys_of("get", keys)
        self._check(wanted)
        self._live.meet(site, writes=False)
        values = self._stored.values
        if isinstance(wanted, str):
            data = values.get(wanted)
            return UNDEFINED if data is None else from_v8(data)
        return _map({key: values[key] for key in sorted(set(wanted)) if key in values})

    def put(self, first: Any, second: Any, third: Any) -> Any:
        """Store a value, or several; all, or none where one cannot be stored."""
        entries, several = entries_of(first, second, third)
        puts = [
            (key, serialised(value))
            for key, value in entries.items()
            if not (several and value is UNDEFINED)
        ]
        self._check([key for key, _ in puts] if several else puts[0][0])
        for key, data in puts:
            self.check_size(key, data)
        self._live.meet("put", writes=True)
        for key, data in puts:
            self._stored.put(key, data)
        return UNDEFINED

    def delete(self, keys: Any, *, site: str = "delete") -> Any:
        """Whether there was a value, or how many there were."""
        wanted = keys_of("delete", keys)
        self._check(wanted)
        self._live.meet(site, writes=True)
        if isinstance(wanted, str):
            return self._stored.delete(wanted)
        return sum(map(self._stored.delete, wanted))

    def list(self, options: Any) -> JsMap:
        """A Map of the values in a range, in the order of their keys."""
        wanted = range_of(options)
        self._live.meet("list", writes=False)
        values = self._stored.values
        return _map({key: values[key] for key in self._stored.keys(wanted)})

    def delete_all(self) -> Any:
        """Delete all there is, by the date the alarm too."""
        if self._stored.depth > 1:
            raise JsException("Error", texts.DELETE_ALL_INSIDE)
        self._live.meet("deleteAll", writes=True)
        self._stored.clear()
        self._live.home.empty_database(self._live)
        if _WITH_ALARM in self._live.scope.flags:
            self._stored.set_alarm(None)
        return UNDEFINED

    # -- the alarm -------------------------------------------------------------------------------

    def sync(self) -> Any:
        """Nothing to do: answers and calls wait until what was written is durable in any case."""
        self._live.meet("sync", writes=True)
        return UNDEFINED

    def get_alarm(self) -> Any:
        """When the alarm is set for, in milliseconds, or null."""
        self._live.meet("getAlarm", writes=False)
        time = self._stored.alarm_time
        return None if time is None else time // _MILLISECOND

    def set_alarm(self, given: Any) -> Any:
        """Set the alarm; a time in the past is now."""
        time, now = int(alarm_of(given)) * _MILLISECOND, self._live.kernel.now
        self._live.meet("setAlarm", writes=True)
        if time < now:
            time = now - now % _MILLISECOND
        self._stored.set_alarm(Alarm(time, max(time, now)))
        return UNDEFINED

    def delete_alarm(self) -> Any:
        """Delete the alarm, also one whose handler runs: it is not tried again."""
        self._live.meet("deleteAlarm", writes=True)
        self._stored.set_alarm(None)
        return UNDEFINED

    # -- limits ----------------------------------------------------------------------------------

    def _check(self, keys: str | Sequence[str]) -> None:
        if not self._strict:
            return
        if isinstance(keys, str):
            limits.check_key(keys)
            return
        limits.check_pairs(len(keys))
        for key in keys:
            limits.check_key(key)

    def check_size(self, key: str, data: bytes) -> None:
        """Raise the error of a value that is too large."""
        if self._strict:
            limits.check_value(data)
        else:
            limits.check_row(key, data)


def serialised(value: Any) -> bytes:
    """A value as it is stored; raises `DataCloneError` for what cannot be."""
    if isinstance(value, Fetcher):
        raise JsException("DataCloneError", texts.STUB_STORED)
    return to_v8(value)


def _map(found: dict[str, bytes]) -> JsMap:
    result = JsMap()
    for key, data in found.items():
        result.set(key, from_v8(data))
    return result
