"""A KV namespace: its entries, and for a while what each was before its last write.

Times are microseconds since the epoch, expirations seconds since the epoch, as the API has them.
The last write of a key wins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SECOND: Final = 1_000_000
# How long after a write a read may still show what was there before: the documented bound.
STALE_FOR: Final = 60 * _SECOND


class Entry(NamedTuple):
    """What is stored under a key; `metadata` is JSON."""

    value: bytes
    expiration: int | None = None
    metadata: str | None = None


class _Written(NamedTuple):
    """A key that was written: what is there now, what was there before, and when that ended."""

    entry: Entry | None
    before: Entry | None
    at: int


class Row(NamedTuple):
    """A key in a list."""

    name: str
    expiration: int | None
    metadata: str | None


class Page(NamedTuple):
    """A part of a list; `more` says whether there are keys after it."""

    rows: list[Row]
    more: bool


class Namespace:
    """The entries of one namespace. Entries that have expired are gone, whenever they are asked
    for."""

    def __init__(self) -> None:
        self._keys: dict[str, _Written] = {}
        self._order: list[str] | None = None
        self._last_write: int | None = None

    def put(self, key: str, entry: Entry, now: int) -> None:
        """Store an entry in place of what is there."""
        self._write(key, entry, now)

    def delete(self, key: str, now: int) -> bool:
        """Delete a key; tells whether there was anything, expired or not."""
        written = self._keys.get(key)
        if written is None or written.entry is None:
            return False
        self._write(key, None, now)
        return True

    def _write(self, key: str, entry: Entry | None, now: int) -> None:
        written = self._keys.get(key)
        if written is None:
            self._order = None
        self._keys[key] = _Written(entry, None if written is None else written.entry, now)
        self._last_write = now

    def get(self, key: str, now: int, *, stale: bool = False) -> Entry | None:
        """Return what is under a key; `stale` what was there before a write of the last minute."""
        written = self._keys.get(key)
        return None if written is None else _shown(written, now, stale=stale)

    def page(self, prefix: str, limit: int, after: str, now: int, *, stale: bool = False) -> Page:
        """Return up to `limit` keys that begin with `prefix`, those behind `after`, in order.

        The order is that of the keys in UTF-8, byte by byte.
        """
        rows: list[Row] = []
        for key in self._from(prefix, after):
            if not key.startswith(prefix):
                break
            entry = _shown(self._keys[key], now, stale=stale)
            if entry is None:
                continue
            if len(rows) == limit:
                return Page(rows, more=True)
            rows.append(Row(key, entry.expiration, entry.metadata))
        return Page(rows, more=False)

    def page_differs(self, prefix: str, limit: int, after: str, now: int) -> bool:
        """Whether a stale page would be another; told at the first key that makes it so."""
        if not self.is_fresh(now):
            return False
        count = 0
        for key in self._from(prefix, after):
            if not key.startswith(prefix):
                return False
            written = self._keys[key]
            row, stale = _row(_shown(written, now)), _row(_shown(written, now, stale=True))
            if count == limit and (row is None) != (stale is None):
                # Whether there are more keys is then told by those that follow.
                pages = (self.page(prefix, limit, after, now, stale=old) for old in (False, True))
                return next(pages).more != next(pages).more
            if count == limit and row is not None:
                return False
            if row != stale:
                return True
            count += row is not None
        return False

    def _from(self, prefix: str, after: str) -> Iterator[str]:
        if self._order is None:
            # By code points, which is the order of UTF-8.
            self._order = sorted(self._keys)
        order = self._order
        start = max(bisect_left(order, prefix), bisect_right(order, after) if after else 0)
        return (order[index] for index in range(start, len(order)))

    def is_fresh(self, now: int) -> bool:
        """Whether something was written so lately that a read may be stale."""
        return self._last_write is not None and now - self._last_write <= STALE_FOR

    def __len__(self) -> int:
        return len(self._keys)

    def clear(self) -> None:
        """Forget everything."""
        self._keys.clear()
        self._order = self._last_write = None

    # -- what lasts ------------------------------------------------------------------------------

    def snapshot(self, now: int) -> list[list[Any]]:
        """Forget what nobody can read any more, and return the rest."""
        kept = {
            key: written
            for key, written in self._keys.items()
            if _shown(written, now) is not None or now - written.at <= STALE_FOR
        }
        if len(kept) < len(self._keys):
            self._keys, self._order = kept, None
        return [[key, *written] for key, written in kept.items()]

    def restore(self, rows: Iterable[list[Any]]) -> None:
        """Take over a snapshot."""
        for key, entry, before, at in rows:
            self._keys[key] = _Written(_entry(entry), _entry(before), at)
            self._last_write = at if self._last_write is None else max(at, self._last_write)
        self._order = None


def _row(entry: Entry | None) -> tuple[int | None, str | None] | None:
    """What a list shows of an entry."""
    return None if entry is None else entry[1:]


def _entry(stored: Any) -> Entry | None:
    return None if stored is None else Entry(*stored)


def _shown(written: _Written, now: int, *, stale: bool = False) -> Entry | None:
    """What a read finds: nothing where the entry has expired."""
    is_old = stale and now - written.at <= STALE_FOR
    entry = written.before if is_old else written.entry
    if entry is None or (entry.expiration is not None and now >= entry.expiration * _SECOND):
        return None
    return entry
