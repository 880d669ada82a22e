"""A connection to SQLite as the platform sets it up."""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
from typing import TYPE_CHECKING, Final

from emulator.store.trouble import trouble

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.sql.budget import Budget
    from emulator.sql.functions import Functions
    from emulator.sql.limits import Limits
    from emulator.sql.regulator import Regulator

_STATEMENTS_KEPT: Final = 256
_ONLY_ITS_OWNER: Final = 0o600


def connect(
    path: Path | None, limits: Limits, regulator: Regulator, functions: Functions, budget: Budget
) -> sqlite3.Connection:
    """Open a database, in memory without a path; raises `StateError` for a file that is none.

    A file is in WAL mode with `synchronous=NORMAL`, for the reasons that `emulator.store.sqlite`
    gives: what is committed outlives the process, and with it the machine's power, but for the
    last commits. Others than its owner cannot read it.
    """
    if path is not None and not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, _ONLY_ITS_OWNER))
    connection = sqlite3.connect(
        ":memory:" if path is None else path,
        isolation_level=None,
        check_same_thread=False,  # one thread at a time uses it, which need not be the one here
        cached_statements=_STATEMENTS_KEPT,
    )
    try:
        if path is not None:
            with trouble(path):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
        _set_up(connection, limits, regulator, functions)
        budget.install(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def remove(path: Path) -> None:
    """Remove the file of a database that is not open, with what SQLite puts beside."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _set_up(
    connection: sqlite3.Connection, limits: Limits, regulator: Regulator, functions: Functions
) -> None:
    # As JavaScript reads UTF-8: what is none becomes U+FFFD.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    connection.execute("PRAGMA foreign_keys = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    functions.install(connection)
    limits.apply(connection)
    connection.set_authorizer(regulator)
