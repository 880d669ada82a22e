"""SQLite as the platform runs it: what D1 and the storage of Durable Objects have in common.

    Database          one database, in memory or in a file: statements, transactions, size
    SqlError          what is wrong with a statement, in the platform's words
    Source            where a statement's time and random values come from
    SqlStorageCursor  what `storage.sql.exec` returns

A product calls `run` (or `open`, to read row by row) with the SQL of user code and values as SQLite
has them, and `own` with its own SQL. What it does between `begin` and `commit` happens as a whole,
or not at all after `rollback`; `flush` makes it durable. Python's own `sqlite3` does the work, with
whatever SQLite it is linked to: docs/fidelity.md says where an older one differs.
"""

from emulator.sql.cursor import SqlStorageCursor
from emulator.sql.database import Database
from emulator.sql.errors import SqlError
from emulator.sql.files import DatabaseFolder
from emulator.sql.functions import Source
from emulator.sql.reading import Outcome, Reading

__all__ = [
    "Database",
    "DatabaseFolder",
    "Outcome",
    "Reading",
    "Source",
    "SqlError",
    "SqlStorageCursor",
]
