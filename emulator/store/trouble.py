"""What can be wrong with a SQLite file, in words that help."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from emulator.errors import DamagedState, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TROUBLE: Final = {
    sqlite3.SQLITE_BUSY: "is in use by another emulator: stop that one, or use another file",
    sqlite3.SQLITE_NOTADB: "is not a state file, or damaged: use another file, or restore a copy",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore a copy, or use another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it must be a file in an existing directory",
    sqlite3.SQLITE_READONLY: "cannot be written: check the permissions of file and directory",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
}
_DAMAGED: Final = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


@contextmanager
def trouble(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise `StateError`, naming the file, where SQLite cannot work with it."""
    try:
        yield
    except sqlite3.Error as error:
        raise state_error(path, error) from error


def state_error(path: str | os.PathLike[str], error: sqlite3.Error) -> StateError:
    """What to tell a user of SQLite's error about a file."""
    # The low byte is the plain code; the rest of the number is detail.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind = DamagedState if code in _DAMAGED else StateError
    return kind(f"{os.fspath(path)} {_TROUBLE.get(code, f'cannot be used ({error})')}")
