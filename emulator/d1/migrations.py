"""The folder of migrations, as `wrangler d1 migrations apply` goes about it.

Files are applied in the order of the numbers that their names begin with, each as a whole, and
noted in a table; one that is noted already is left out.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.errors import MigrationError
from emulator.sql import Database, Source, SqlError
from emulator.sql.statements import split

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.d1_config import Migrations

_NUMBER: Final = re.compile(r"\s*(\d+)")
# The service's own table, which shows in lists of tables, and which nobody may read.
_INTERNAL: Final = "CREATE TABLE _cf_METADATA (key INTEGER PRIMARY KEY, value BLOB)"


class Migration(NamedTuple):
    """A file of SQL; `name` is its path below the folder."""

    name: str
    path: Path


def found(migrations: Migrations) -> list[Migration]:
    """The files in order of their numbers, then of their names."""
    paths = sorted(migrations.folder.glob(migrations.pattern))
    files = [
        Migration(path.relative_to(migrations.folder).as_posix(), path)
        for path in paths
        if path.is_file() and not _is_hidden(path, migrations.folder)
    ]
    return sorted(files, key=lambda file: [_order(part) for part in file.name.split("/")])


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _order(part: str) -> tuple[bool, int, str]:
    """Numbered files come first; `2_b.sql` comes before `10_a.sql`."""
    match = _NUMBER.match(part.split("_")[0])
    return (match is None, int(match[1]) if match else 0, part)


def image(migrations: Migrations | None, now: int) -> bytes:
    """A new database as the bytes of a file, with all migrations applied, if any, at this time.

    Made once for tests that use the same files; raises `MigrationError`.
    """
    files = [] if migrations is None else found(migrations)
    stamps = tuple((file.name, file.path.stat().st_mtime_ns) for file in files)
    return _image(migrations, stamps, now)


@lru_cache(maxsize=16)
def _image(migrations: Migrations | None, _: tuple[tuple[str, int], ...], now: int) -> bytes:
    database = Database(None, Source(lambda: now, random.Random("migrations").randbytes))
    try:
        database.own(_INTERNAL)
        if migrations is not None:
            apply(database, migrations)
        return database.image()
    finally:
        database.close()


def applied(database: Database, table: str) -> list[str]:
    """The names that the table has, in order; none where there is no table."""
    exists = database.own("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,))
    if not exists:
        return []
    return [str(name) for (name,) in database.own(f"SELECT name FROM {_quoted(table)} ORDER BY id")]


def apply(database: Database, migrations: Migrations) -> list[str]:
    """Apply what is not applied yet; returns the names.

    Raises `MigrationError` for a file that fails, of which nothing stays; those before it do.
    """
    files = found(migrations)
    if not files:
        return []
    database.run(
        f"CREATE TABLE IF NOT EXISTS {_quoted(migrations.table)} ("
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "
        "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)"
    )
    done = set(applied(database, migrations.table))
    pending = [file for file in files if file.name not in done]
    for file in pending:
        _apply_one(database, file, migrations.table)
    database.flush()
    return [file.name for file in pending]


def _apply_one(database: Database, file: Migration, table: str) -> None:
    sql = _without_transaction(file.path.read_text("utf-8-sig"))
    database.begin(lasting=True)
    try:
        for statement in split(sql):
            database.run(statement)
        database.run(f"INSERT INTO {_quoted(table)} (name) VALUES (?)", (file.name,))
        database.commit()
    except SqlError as error:
        database.rollback()
        raise MigrationError(
            f"the migration {file.path} failed, and nothing of it is applied: {error}"
        ) from None


def _without_transaction(sql: str) -> str:
    """As wrangler takes a dump: it runs in a transaction anyway."""
    if "BEGIN TRANSACTION" not in sql:
        return sql
    return sql.replace("BEGIN TRANSACTION;", "", 1).replace("COMMIT;", "", 1)


def _quoted(name: Any) -> str:
    doubled = str(name).replace('"', '""')
    return f'"{doubled}"'
