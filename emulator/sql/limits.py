"""How much a statement, a value and a table may be.

From the runtime's source (`workerd/util/sqlite.c++`), but for the length of a value: there the
runtime is more generous than the documentation of D1 and Durable Objects, which this follows.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of a value or row and of a statement; columns, bound parameters, arguments.

    `steps` are SQLite's instructions for one statement: five to ten seconds on an ordinary machine,
    where the platform's limit is 30 s. `too_long` is its text for a statement that takes more.
    """

    length: int = 2_000_000
    sql_length: int = 100_000
    columns: int = 100
    expression_depth: int = 100
    compound_select: int = 5
    operations: int = 25_000
    function_arguments: int = 127
    pattern_length: int = 50
    variables: int = 100
    trigger_depth: int = 10
    steps: int = 500_000_000
    too_long: str = "Durable Object exceeded its CPU time limit and was reset."

    def apply(self, connection: sqlite3.Connection) -> None:
        """Make SQLite keep them; none where it was built with a lower one."""
        for category, value in (
            (sqlite3.SQLITE_LIMIT_LENGTH, self.length),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, self.sql_length),
            (sqlite3.SQLITE_LIMIT_COLUMN, self.columns),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, self.expression_depth),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, self.compound_select),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, self.operations),
            (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, self.function_arguments),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, self.pattern_length),
            (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, self.variables),
            (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, self.trigger_depth),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(category, value)


LIMITS: Final = Limits()
