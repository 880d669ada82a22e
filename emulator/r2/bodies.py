"""Where bodies lie: small ones in the record of their object, large ones apart.

A body apart is written once, before the record that names it, and removed after what followed it is
durable. So a state file grows with the number of objects and not with what is in them, and a body
that is overwritten does not stay in memory. What a killed process left over is removed when the
state is taken over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.errors import StateError
from emulator.r2.store import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from emulator.r2.store import Body

# What is no longer than this is kept in the record.
_SMALL: Final = 4_096


class Bodies:
    """The bodies of all buckets; `folder` is where they lie, None is in memory.

    `name` makes names that were never given.
    """

    def __init__(self, folder: Callable[[], Path | None] | None, name: Callable[[], str]) -> None:
        self._find = folder
        self._folder: Path | None = None
        self._name = name
        self._memory: dict[str, bytes] = {}
        self._dropped: list[str] = []

    def _path(self, name: str) -> Path | None:
        """The file of a body; None in memory."""
        if self._folder is None and self._find is not None:
            self._folder = self._find()
        return None if self._folder is None else self._folder / name

    def keep(self, data: bytes) -> Body:
        """Put a body where it belongs."""
        if len(data) <= _SMALL:
            return data
        name = self._name()
        path = self._path(name)
        if path is None:
            self._memory[name] = data
        else:
            unfinished = path.with_suffix(".part")
            unfinished.write_bytes(data)
            unfinished.replace(path)
        return Kept(name, len(data))

    def read(self, parts: Iterable[Body], offset: int, length: int) -> bytes:
        """Return bytes of a body that is in parts."""
        found = []
        for part in parts:
            size = part.size if isinstance(part, Kept) else len(part)
            if offset < size and length > 0:
                piece = self._bytes(part)[offset : offset + length]
                found.append(piece)
                length -= len(piece)
            offset = max(offset - size, 0)
        return found[0] if len(found) == 1 else b"".join(found)

    def _bytes(self, part: Body) -> bytes:
        if not isinstance(part, Kept):
            return part
        path = self._path(part.name)
        if path is None:
            return self._memory[part.name]
        try:
            return path.read_bytes()
        except FileNotFoundError:
            text = f"{path} is missing: put it back, or start with a new state file"
            raise StateError(text) from None

    def drop(self, parts: Iterable[Body]) -> None:
        """Let go of bodies once what replaced them is durable."""
        self._dropped += [part.name for part in parts if isinstance(part, Kept)]

    def clean(self) -> None:
        """Remove what was dropped: all that led to it is durable."""
        for name in self._dropped:
            path = self._path(name)
            if path is None:
                self._memory.pop(name, None)
            else:
                path.unlink(missing_ok=True)
        self._dropped.clear()

    def keep_only(self, parts: Iterable[Body]) -> None:
        """Remove all but these."""
        known = {part.name for part in parts if isinstance(part, Kept)}
        self._dropped.clear()
        self._memory = {name: data for name, data in self._memory.items() if name in known}
        folder = None if self._find is None else self._path("")
        for path in () if folder is None else sorted(folder.iterdir()):
            if path.name not in known:
                path.unlink()
