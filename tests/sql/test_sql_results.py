"""Rows, counts and sizes, and the cursor of a Durable Object's storage."""

from __future__ import annotations

import math
from typing import Any

import pytest
from databases import database, rows

from emulator.sql import SqlStorageCursor
from emulator.sql.values import javascript_row, storage_value
from emulator.values import UNDEFINED, ArrayBuffer, BigInt, JsException, Symbol, TypedArray

USERS = (
    "CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE,"
    " n INTEGER DEFAULT 5)",
    "CREATE INDEX ui ON u(name)",
    "INSERT INTO u (id, name, email) VALUES "
    + ", ".join(f"({i}, 'n{i % 3}', 'e{i}')" for i in range(2, 11)),
    "CREATE TABLE c (id INTEGER PRIMARY KEY, u INTEGER REFERENCES u(id))",
    "INSERT INTO c (u) VALUES (2), (3)",
)
# Seen in workerd 1.20260730.1 over the same rows.
READ = [
    ("SELECT * FROM u", 9),
    ("SELECT * FROM u LIMIT 2", 2),
    ("SELECT * FROM u WHERE id=3", 1),
    ("SELECT * FROM u WHERE id=300", 1),
    ("SELECT * FROM u WHERE name='n1'", 4),
    ("SELECT * FROM u WHERE name='zz'", 0),
    ("SELECT name FROM u WHERE name='n1'", 4),
    ("SELECT * FROM u WHERE email='e3'", 1),
    ("SELECT count(*) FROM u", 9),
    ("SELECT * FROM u ORDER BY name LIMIT 1", 1),
    ("SELECT * FROM u ORDER BY id DESC LIMIT 1", 1),
    ("SELECT * FROM u WHERE n=5 LIMIT 1", 1),
    ("SELECT * FROM u, c", 27),
    ("SELECT * FROM u JOIN c ON c.u=u.id", 4),
    ("SELECT name, count(*) FROM u GROUP BY name", 9),
    ("SELECT 1", 0),
]
# The same, one after the other: rows read is not compared.
WRITTEN = [
    ("UPDATE u SET n=6", 9, 9),
    ("UPDATE u SET name='q' WHERE id=3", 1, 2),
    ("UPDATE u SET n=7 WHERE name='n2'", 3, 3),
    ("INSERT INTO u (name) VALUES ('x'),('y')", 2, 6),
    ("INSERT OR IGNORE INTO u (id,name) VALUES (2,'z')", 0, 0),
    ("INSERT OR REPLACE INTO u (id,name) VALUES (4,'z')", 1, 3),
    ("INSERT INTO u (id,name) VALUES (2,'z') ON CONFLICT DO NOTHING", 0, 0),
    (
        "INSERT INTO u (id,name) VALUES (2,'z') ON CONFLICT(id) DO UPDATE SET name=excluded.name",
        1,
        2,
    ),
    ("INSERT INTO u (name) VALUES ('rr') RETURNING id, name", 1, 3),
    ("DELETE FROM c", 2, 2),
    ("DELETE FROM u WHERE name='q'", 1, 1),
    ("CREATE TABLE z (a)", 0, 2),
    ("CREATE TABLE k (a TEXT PRIMARY KEY, b)", 0, 3),
    ("CREATE INDEX zi ON z(a)", 0, 1),
    ("CREATE TABLE IF NOT EXISTS z (a)", 0, 0),
    ("CREATE TABLE wr (k TEXT PRIMARY KEY, v) WITHOUT ROWID", 0, 2),
    ("INSERT INTO wr VALUES ('a',1)", 1, 1),
    ("INSERT INTO k VALUES ('a',1)", 1, 2),
    ("UPDATE wr SET v=2", 1, 1),
    ("DELETE FROM wr", 1, 1),
    ("DROP TABLE z", 0, 0),
]


@pytest.mark.parametrize(("sql", "read"), READ)
def test_rows_read_are_those_of_the_runtime(sql: str, read: int) -> None:
    with database(None, *USERS) as made:
        assert made.run(sql).read == read


def test_rows_written_are_those_of_the_runtime() -> None:
    with database(None, *USERS) as made:
        outcomes = [(sql, made.run(sql)) for sql, _, _ in WRITTEN]
        assert [(sql, outcome.changes, outcome.written) for sql, outcome in outcomes] == WRITTEN


def test_changes_of_triggers_count_and_the_last_row_is_the_statements_own() -> None:
    with database(
        None,
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "CREATE TABLE log (a)",
        "CREATE TRIGGER tr AFTER INSERT ON t BEGIN"
        " INSERT INTO log VALUES (1); INSERT INTO log VALUES (2); END",
    ) as made:
        outcome = made.run("INSERT INTO t VALUES (7)")
        assert (outcome.changes, outcome.last_row_id, outcome.written) == (3, 7, 3)
        assert made.run("SELECT 1").last_row_id == 7
        assert made.run("UPDATE t SET id = 8").last_row_id == 7


def test_sql_may_ask_for_the_counts_of_its_own_statements() -> None:
    """The emulator's own statements in between do not show."""
    with database(None, *USERS) as made:
        made.run("UPDATE u SET n = 1")
        made.begin()
        _ = made.size()
        made.commit()
        assert rows(made, "SELECT changes(), last_insert_rowid()") == [(9, 2)]


def test_the_size_grows_and_shrinks_with_the_pages() -> None:
    with database(None, "CREATE TABLE t (a)") as made:
        empty = made.size()
        assert empty % 4096 == 0
        made.run("INSERT INTO t VALUES (zeroblob(100000))")
        full = made.size()
        made.run("DELETE FROM t")
        assert empty < made.size() + 4096 <= full
        made.run("DROP TABLE t")
        assert made.size() == empty - 4096


def test_a_statement_with_rows_gives_its_columns_in_order_duplicates_included() -> None:
    with database() as made:
        outcome = made.run("SELECT 1 AS a, 2 AS a, NULL AS b")
        assert (outcome.columns, outcome.rows) == (("a", "a", "b"), [(1, 2, None)])
        assert made.run("CREATE TABLE t (a)").columns == ()
        assert made.run("INSERT INTO t VALUES (1) RETURNING a").rows == [(1,)]
        assert made.run("SELECT 1; SELECT 2 AS b").columns == ("b",)


def test_numbers_are_doubles_in_javascript() -> None:
    row = (2**53, 2**53 + 1, -(2**63), 1.5, "a", None, b"\x01\xff")
    assert javascript_row(row, list) == [
        *(2**53, 9007199254740992.0, -9223372036854775808.0, 1.5, "a", None, [1, 255])
    ]
    assert math.isinf(javascript_row((math.inf,), list)[0])


# -- the cursor ------------------------------------------------------------------------------------


def cursor(made: Any, sql: str, *values: Any) -> SqlStorageCursor:
    return SqlStorageCursor(made.open(sql, values))


def test_a_cursor_is_read_on_from_where_it_stands() -> None:
    with database(None, "CREATE TABLE t (a, b)") as made:
        made.run("INSERT INTO t VALUES (1, x'01'), (2, 'x'), (3, NULL), (4, 1e100)")
        read = cursor(made, "SELECT * FROM t")
        assert read.columnNames == ["a", "b"]
        assert read.next() == {"done": False, "value": {"a": 1, "b": ArrayBuffer(b"\x01")}}
        assert next(iter(read.raw())) == [2, "x"]
        assert read.raw().next() == {"done": False, "value": [3, None]}
        assert read.toArray() == [{"a": 4, "b": 1e100}]
        assert read.next() == {"done": True}
        assert read.toArray() == []


def test_one_row_is_asked_for() -> None:
    with database(None, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)") as made:
        assert cursor(made, "SELECT a AS x, a AS x FROM t WHERE a = ?", 2.0).one() == {"x": 2}
        with pytest.raises(JsException, match="Error: Expected exactly one result from SQL query"):
            cursor(made, "SELECT a FROM t WHERE 0").one()
        with pytest.raises(JsException, match="but got multiple results"):
            cursor(made, "SELECT a FROM t").one()


def test_a_statement_that_writes_has_done_so_before_its_rows_are_read() -> None:
    with database(None, "CREATE TABLE t (a)") as made:
        inserted = cursor(made, "INSERT INTO t VALUES (1), (2) RETURNING a")
        assert rows(made, "SELECT count(*) FROM t") == [(2,)]
        made.flush()
        assert inserted.rowsWritten == 2
        assert list(inserted) == [{"a": 1}, {"a": 2}]


def test_an_error_in_the_middle_of_the_rows_comes_with_the_row_before() -> None:
    """The runtime goes on to the next row before it hands one out."""
    with database(None, "CREATE TABLE t (a)") as made:
        made.run("INSERT INTO t VALUES ('{}'), ('{}'), ('{')")
        read = cursor(made, "SELECT json_extract(a, '$.x') FROM t ORDER BY rowid")
        assert read.next()["done"] is False
        with pytest.raises(JsException, match="Error: malformed JSON: SQLITE_ERROR"):
            read.toArray()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (UNDEFINED, None),
        (True, "true"),
        (1, 1.0),
        (1.5, 1.5),
        ("s", "s"),
        (b"\x01", b"\x01"),
        (ArrayBuffer(b"\x01"), b"\x01"),
        (TypedArray("Uint16Array", ArrayBuffer(b"\x01\x00\x2c\x01")), b"\x01\x00\x2c\x01"),
        ({"a": 1}, "[object Object]"),
        ([1, 2, 300], "1,2,300"),
    ],
)
def test_a_parameter_of_storage_is_converted_as_in_the_runtime(value: Any, stored: Any) -> None:
    """Seen in workerd 1.20260730.1."""
    assert storage_value(value) == stored
    assert type(storage_value(value)) is type(stored)


def test_a_parameter_that_cannot_be_converted_is_refused() -> None:
    with pytest.raises(JsException, match="TypeError: Cannot convert a BigInt value to a number"):
        storage_value(BigInt(10))
    with pytest.raises(JsException, match="TypeError: Cannot convert a Symbol value to a string"):
        storage_value(Symbol("x"))
