"""Time and random values in SQL are the emulator's."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from databases import START, World, database, rows

from emulator.sql import Database

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("datetime('now')", "2026-01-01 00:00:00"),
        ("datetime('NOW', '+1 month', 'start of year')", "2026-01-01 00:00:00"),
        ("datetime()", "2026-01-01 00:00:00"),
        ("date('now', '-1 day')", "2025-12-31"),
        ("time('now')", "00:00:00"),
        ("julianday('now')", 2461041.5),
        ("unixepoch()", 1767225600),
        ("unixepoch('now')", 1767225600),
        ("strftime('%s', 'now')", "1767225600"),
        ("strftime('%Y')", "2026"),
        ("CURRENT_TIMESTAMP", "2026-01-01 00:00:00"),
        ("CURRENT_DATE", "2026-01-01"),
        ("CURRENT_TIME", "00:00:00"),
        ("strftime('%f', 'now')", "00.000"),
        ("datetime('2020-02-29', '+1 year')", "2021-03-01 00:00:00"),
        ("date('no date')", None),
        ("date(NULL)", None),
        ("datetime(1092941466, 'unixepoch')", "2004-08-19 18:51:06"),
    ],
)
def test_dates_follow_the_clock(expression: str, value: object) -> None:
    with database() as made:
        assert rows(made, f"SELECT {expression}") == [(value,)]


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 42), reason="SQLite 3.42 has `subsec`")
def test_now_may_be_left_out_before_subsec() -> None:
    with database() as made:
        assert rows(made, "SELECT datetime('subsec')") == [("2026-01-01 00:00:00.000",)]


def test_the_time_of_a_prepared_statement_is_that_of_its_run() -> None:
    world = World()
    made = Database(None, world.source)
    first = rows(made, "SELECT datetime('now')")
    world.now += DAY
    assert [first, rows(made, "SELECT datetime('now')")] == [
        [("2026-01-01 00:00:00",)],
        [("2026-01-02 00:00:00",)],
    ]
    made.close()


def test_defaults_triggers_views_and_generated_columns_have_it_too() -> None:
    with database(
        None,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP,"
        " before TEXT DEFAULT (date('now', '-1 day')), day TEXT AS (date(at)) STORED)",
        "CREATE TABLE log (at TEXT)",
        "CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log VALUES (datetime('now')); END",
        "CREATE VIEW v AS SELECT id, strftime('%Y', 'now') AS year FROM t",
        "CREATE INDEX i ON t(date(at))",
        "INSERT INTO t DEFAULT VALUES",
    ) as made:
        assert rows(made, "SELECT * FROM t") == [
            (1, "2026-01-01 00:00:00", "2025-12-31", "2026-01-01")
        ]
        assert rows(made, "SELECT * FROM log") == [("2026-01-01 00:00:00",)]
        assert rows(made, "SELECT * FROM v") == [(1, "2026")]
        assert rows(made, "SELECT id FROM t WHERE date(at) = '2026-01-01'") == [(1,)]


def test_random_values_repeat_with_the_seed() -> None:
    query = "SELECT random(), hex(randomblob(4)), abs(random()) % 10"

    def drawn() -> list[Any]:
        with database() as made:
            return [rows(made, query), rows(made, query)]

    assert drawn() == drawn()
    first, second = drawn()
    assert first != second


def test_each_row_has_its_own_random_value() -> None:
    with database(None, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2), (3)") as made:
        assert len(set(rows(made, "SELECT random() FROM t"))) == 3
        assert sorted(rows(made, "SELECT a FROM t ORDER BY random()")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("concat('a', NULL, 1, 2.5)", "a12.5"),
        ("concat_ws('-', 'a', NULL, 1)", "a-1"),
        ("concat_ws(NULL, 'a')", None),
        ("octet_length('é')", 2),
        ("octet_length(NULL)", None),
        ("octet_length(123)", 3),
        ("unhex('4142')", b"AB"),
        ("unhex('41-42', '-')", b"AB"),
        ("unhex('4')", None),
        ("unhex('zz')", None),
    ],
)
def test_functions_that_an_older_sqlite_lacks_are_there(expression: str, value: object) -> None:
    """The values are those of SQLite 3.50."""
    with database() as made:
        assert rows(made, f"SELECT {expression}") == [(value,)]


def test_the_start_of_the_clock_is_what_this_file_takes_it_for() -> None:
    assert START == 1_767_225_600 * 1_000_000
