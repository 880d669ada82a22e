"""A cache: its entries by key. Times are microseconds since the epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from emulator.cache.rules import Pairs


class Entry(NamedTuple):
    """A stored response; `has_length` says whether its length was known when it was put."""

    url: str
    status: int
    status_text: str
    headers: Pairs
    body: bytes
    has_length: bool
    stored: int
    expires: int


class Store:
    """The entries of one cache. One that has expired is gone, whenever it is asked for."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def put(self, key: str, entry: Entry) -> None:
        """Store an entry in place of what is there."""
        self._entries.pop(key, None)  # what is new comes last
        self._entries[key] = entry

    def get(self, key: str, now: int) -> Entry | None:
        """Return the entry of a key."""
        entry = self._entries.get(key)
        if entry is not None and now >= entry.expires:
            del self._entries[key]
            return None
        return entry

    def delete(self, key: str, now: int) -> bool:
        """Delete an entry; tells whether there was one."""
        found = self.get(key, now) is not None
        self._entries.pop(key, None)
        return found

    def entries(self, now: int) -> list[Entry]:
        """Return what is there, in the order in which it was put."""
        return [entry for entry in self._entries.values() if now < entry.expires]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
