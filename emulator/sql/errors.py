"""What is wrong with a statement, as the runtime says it.

Its text is SQLite's message, where in the statement that is, and the name of the result code; the
more exact code where there is one (`workerd/util/sqlite.c++`, `dbErrorMessage`).
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from emulator.sql.places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

NO_STATEMENT: Final = "SQL code did not contain a statement."
WRONG_NUMBER: Final = "Wrong number of parameter bindings for SQL query."
ONLY_LAST: Final = (
    "When executing multiple SQL statements in a single call, only the last statement can have "
    "parameters."
)
NOT_AUTHORIZED: Final = "not authorized: SQLITE_AUTH"
DELETED: Final = "SQLite query was canceled because the database was deleted."
FOREIGN_KEY: Final = (
    "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
)

# What is wrong with the file, not with the statement.
OF_THE_FILE: Final = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL),
    }
)

_PRIMARY: Final = {
    code: name
    for name, code in sorted(vars(sqlite3).items())
    if name.startswith("SQLITE_")
    and name.count("_") == 1
    and isinstance(code, int)
    # Codes of errors and of other things are one row of numbers; only these are errors.
    and name
    in {
        *("SQLITE_ERROR", "SQLITE_INTERNAL", "SQLITE_PERM", "SQLITE_ABORT", "SQLITE_BUSY"),
        *("SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_READONLY", "SQLITE_INTERRUPT"),
        *("SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTFOUND", "SQLITE_FULL"),
        *("SQLITE_CANTOPEN", "SQLITE_PROTOCOL", "SQLITE_EMPTY", "SQLITE_SCHEMA"),
        *("SQLITE_TOOBIG", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_MISUSE"),
        *("SQLITE_NOLFS", "SQLITE_AUTH", "SQLITE_FORMAT", "SQLITE_RANGE", "SQLITE_NOTADB"),
    }
}
# Exact codes that Python has no names for.
_NAMELESS: Final = {2835: "SQLITE_CONSTRAINT_PINNED", 3091: "SQLITE_CONSTRAINT_DATATYPE"}
# Errors that Python finds before SQLite is asked, and what SQLite would say.
_OF_PYTHON: Final = (
    ("Incorrect number of bindings", WRONG_NUMBER),
    ("query string is too large", "statement too long: SQLITE_TOOBIG"),
    ("the query contains a null character", NO_STATEMENT),
)


class SqlError(Exception):
    """A statement that failed; `str()` is the runtime's text, `code` the name of the exact code."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


def sql_error(
    error: sqlite3.Error, sql: str, says: Callable[[str], str | None], refusal: str | None
) -> SqlError:
    """Put an error of Python's `sqlite3` in the runtime's words.

    `says` tries a changed statement, without running it, and returns what SQLite says of it.
    """
    message = str(error)
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        known = (text for start, text in _OF_PYTHON if message.startswith(start))
        return SqlError(next(known, message))
    if refusal is not None and code & 0xFF == sqlite3.SQLITE_AUTH:
        return SqlError(refusal, "SQLITE_AUTH")
    primary = _PRIMARY.get(code & 0xFF, f"SQLITE_UNKNOWN_ERROR_CODE({code & 0xFF})")
    exact = _NAMELESS.get(code) or str(getattr(error, "sqlite_errorname", primary))
    place = place_of(message, sql, says)
    text = message if place is None else f"{message} at offset {place}"
    more = f" (extended: {exact})" if code > 0xFF else ""
    return SqlError(f"{text}: {primary}{more}", exact)
