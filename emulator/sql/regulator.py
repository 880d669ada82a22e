"""What SQL of user code may do.

The runtime asks SQLite to be asked before each action of a statement, and so does this. Which
actions, pragmas and functions it allows is in its source (`workerd/util/sqlite.c++`,
`SqliteDatabase::isAuthorized`), as are the texts.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

NO_TRANSACTIONS: Final = (
    "To execute a transaction, please use the state.storage.transaction() or "
    "state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT "
    "statements. The JavaScript API is safer because it will automatically roll back on "
    "exceptions, and because it interacts correctly with Durable Objects' automatic atomic "
    "write coalescing."
)

# Scalar, date, aggregate, window, mathematical, JSON, full-text, R*Tree, and those of ALTER TABLE.
_FUNCTION_NAMES: Final = """
    abs changes char coalesce concat concat_ws format glob hex ifnull iif instr last_insert_rowid
    length like likelihood likely load_extension lower ltrim max_scalar min_scalar nullif
    octet_length printf quote random randomblob replace round rtrim sign soundex substr substring
    total_changes trim typeof unhex unicode unlikely upper zeroblob
    date time datetime julianday unixepoch strftime timediff
    current_date current_time current_timestamp
    avg count group_concat max min string_agg sum total
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value
    acos acosh asin asinh atan atan2 atanh ceil cos cosh degrees exp floor ln log log2 mod pi pow
    radians sin sinh sqrt tan tanh trunc
    json jsonb json_array jsonb_array json_array_length json_extract jsonb_extract -> ->>
    json_insert jsonb_insert json_object jsonb_object json_patch jsonb_patch json_remove
    jsonb_remove json_replace jsonb_replace json_set jsonb_set json_type json_valid json_quote
    json_group_array jsonb_group_array json_group_object jsonb_group_object json_each json_tree
    match highlight bm25 snippet
    rtreecheck
    sqlite_rename_column sqlite_rename_table sqlite_rename_test sqlite_drop_column
    sqlite_rename_quotefix
"""
_FUNCTIONS: Final = frozenset(_FUNCTION_NAMES.split())

_BOOLEAN: Final = re.compile(r"(['\"]?)(true|false|yes|no|on|off|1|0).*\1", re.IGNORECASE)
_SWITCHES: Final = frozenset(
    {
        *("case_sensitive_like", "foreign_keys", "defer_foreign_keys", "legacy_alter_table"),
        *("ignore_check_constraints", "recursive_triggers", "reverse_unordered_selects"),
    }
)
_OF_OBJECTS: Final = frozenset(
    {
        *("foreign_key_list", "index_info", "index_list", "index_xinfo"),
        *("table_info", "table_xinfo"),
    }
)
_MODULES: Final = frozenset({"fts5", "fts5vocab", "rtree", "rtree_i32"})
_RENAMED: Final = re.compile(r"\bRENAME\s+TO\s+[\"'`\[]?(_cf_)", re.IGNORECASE)

# The first name of these must not be one of the platform's own; of the second kind, neither.
_ON_ONE: Final = frozenset(
    {
        *(sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE),
        *(sqlite3.SQLITE_INSERT, sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_DROP_VIEW),
        *(sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE),
    }
)
_ON_TWO: Final = frozenset(
    {
        *(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX),
        *(sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_DROP_TRIGGER),
    }
)
_FREE: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_ANALYZE, sqlite3.SQLITE_RECURSIVE})
_TRANSACTIONS: Final = frozenset({sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT})
_VIRTUAL: Final = frozenset({sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE})

Action = tuple[int, str | None, str | None, str | None, str | None]
"""A code, two names whose meaning depends on it, the database, and the trigger that does it."""


class Regulator:
    """SQLite's authorizer of one connection.

    While `trusted` everything is allowed. `refusal` is the text for a statement that SQLite's own
    would not explain; `seen` collects what a statement does, where it is a list.
    """

    def __init__(self) -> None:
        self.trusted = False
        self.refusal: str | None = None
        self.seen: list[Action] | None = None

    def __call__(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        trigger: str | None,
    ) -> int:
        """Say whether a statement may do this; SQLite asks when it prepares the statement."""
        if self.seen is not None:
            self.seen.append((action, first, second, database, trigger))
        if self.trusted or self._allows(action, first, second, database):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _allows(
        self, action: int, first: str | None, second: str | None, database: str | None
    ) -> bool:
        if action == sqlite3.SQLITE_ALTER_TABLE:  # which has the database first
            first, second, database = second, None, first
        if database == "temp":
            reads = action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE)
            return reads and is_allowed_name(first)
        if database not in (None, "main"):
            return False
        if action in _FREE:
            return True
        if action in _ON_ONE or action == sqlite3.SQLITE_ALTER_TABLE:
            return is_allowed_name(first)
        if action in _ON_TWO:
            return is_allowed_name(first) and is_allowed_name(second)
        if action == sqlite3.SQLITE_FUNCTION:
            return second in _FUNCTIONS
        if action == sqlite3.SQLITE_PRAGMA:
            return _allows_pragma(first or "", second)
        if action in _VIRTUAL:
            return (second or "").lower() in _MODULES and is_allowed_name(first)
        if action in _TRANSACTIONS:
            self.refusal = NO_TRANSACTIONS
        return False


def is_allowed_name(name: str | None) -> bool:
    """Whether user code may have a thing of this name: those with `_cf_` are the platform's."""
    return name is None or not name[:4].lower().startswith("_cf_")


def renames_to_reserved(sql: str) -> bool:
    """Whether a table would get one of the platform's names.

    The runtime's SQLite is patched to ask about the new name; an ordinary one does not.
    """
    return _RENAMED.search(sql) is not None


def _allows_pragma(pragma: str, argument: str | None) -> bool:
    if pragma == "table_list":
        return True
    if pragma in ("data_version", "page_size"):
        return argument is None
    if pragma in _SWITCHES:
        return argument is None or _BOOLEAN.fullmatch(argument) is not None
    if pragma in _OF_OBJECTS:
        return argument is not None and is_allowed_name(argument)
    if pragma == "foreign_key_check":
        return is_allowed_name(argument)
    if pragma == "optimize":
        return argument is None or _is_whole(argument)
    if pragma == "quick_check":
        return argument is None or argument.isdigit() or is_allowed_name(argument)
    return False


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit()
