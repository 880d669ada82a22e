"""Databases for tests: a clock that a test sets, random bytes that repeat."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emulator.sql import Database, Source, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


class World:
    """What a database gets from the emulator."""

    def __init__(self) -> None:
        self.now = START
        self.random = random.Random(7)

    @property
    def source(self) -> Source:
        return Source(lambda: self.now, self.random.randbytes)


@contextmanager
def database(path: Path | None = None, *schema: str) -> Iterator[Database]:
    made = Database(path, World().source)
    try:
        for sql in schema:
            made.run(sql)
        made.flush()
        yield made
    finally:
        made.close()


def rows(database: Database, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return database.run(sql, values).rows


def problem(database: Database, sql: str, values: Sequence[Any] = ()) -> str:
    """The runtime's text for a statement that fails; empty for one that does not."""
    try:
        database.run(sql, values)
    except SqlError as error:
        return str(error)
    return ""
