"""Errors of SQL in the runtime's words, as seen in workerd 1.20260730.1 behind D1's prefix."""

from __future__ import annotations

import sqlite3

import pytest
from databases import database, problem

from emulator.sql.regulator import NO_TRANSACTIONS

SCHEMA = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b, c INTEGER UNIQUE, n INTEGER CHECK (n > 0))",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    "CREATE TABLE child (t INTEGER REFERENCES t(id))",
    "CREATE TABLE st (a INTEGER) STRICT",
    "CREATE TRIGGER tr BEFORE DELETE ON u BEGIN SELECT RAISE(ABORT, 'no thanks'); END",
    "INSERT INTO t (id, c) VALUES (1, 1)",
    "INSERT INTO u VALUES (1, 'a')",
)
CONSTRAINT = "SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT"
AUTH = "not authorized: SQLITE_AUTH"
EMPTY = "SQL code did not contain a statement."
COUNT = "Wrong number of parameter bindings for SQL query."
LAST = (
    "When executing multiple SQL statements in a single call, only the last statement can have "
    "parameters."
)
SEEN = [
    ("FORM x", 'near "FORM": syntax error at offset 0: SQLITE_ERROR'),
    ("SELECT * FORM x", 'near "FORM": syntax error at offset 9: SQLITE_ERROR'),
    ("SELECT nope FROM t", "no such column: nope at offset 7: SQLITE_ERROR"),
    ("SELECT a FROM t WHERE nope = 1", "no such column: nope at offset 22: SQLITE_ERROR"),
    ("SELECT * FROM nope", "no such table: nope: SQLITE_ERROR"),
    ("INSERT INTO t (nope) VALUES (1)", "table t has no column named nope: SQLITE_ERROR"),
    ("SELECT nope(1)", "no such function: nope at offset 7: SQLITE_ERROR"),
    ("SELECT id, id FROM t, t AS u", "ambiguous column name: id at offset 7: SQLITE_ERROR"),
    ("INSERT INTO t (a,b) VALUES (1)", "1 values for 2 columns: SQLITE_ERROR"),
    ("INSERT INTO u VALUES (1)", "table u has 2 columns but 1 values were supplied: SQLITE_ERROR"),
    ("", EMPTY),
    ("   ", EMPTY),
    ("-- hi", EMPTY),
    (";", EMPTY),
    ("/* x */", EMPTY),
    ("SELECT 1;; ", EMPTY),
    ("SELECT 1; -- done", EMPTY),
    ("SELECT ?", COUNT),
    ("SELECT ?2", COUNT),
    ("SELECT ?; SELECT 2", LAST),
    ("BEGIN", NO_TRANSACTIONS),
    ("COMMIT", NO_TRANSACTIONS),
    ("ROLLBACK", NO_TRANSACTIONS),
    ("SAVEPOINT a", NO_TRANSACTIONS),
    ("RELEASE a", NO_TRANSACTIONS),
    ("ATTACH 'x' AS y", AUTH),
    ("DETACH y", AUTH),
    ("VACUUM", "cannot VACUUM from within a transaction: SQLITE_ERROR"),
    ("PRAGMA user_version", AUTH),
    ("PRAGMA journal_mode", AUTH),
    ("PRAGMA page_count", AUTH),
    ("PRAGMA integrity_check", AUTH),
    ("PRAGMA table_info('_cf_KV')", AUTH),
    ("PRAGMA compile_options", AUTH),
    ("PRAGMA writable_schema = ON", AUTH),
    ("PRAGMA foreign_keys = 'perhaps'", AUTH),
    (
        "SELECT sqlite_version()",
        "not authorized to use function: sqlite_version at offset 7: SQLITE_ERROR",
    ),
    ("CREATE TABLE _cf_x (a)", AUTH),
    ("CREATE TABLE _CF_x (a)", AUTH),
    ("ALTER TABLE t RENAME TO _cf_t", AUTH),
    ("CREATE INDEX _cf_i ON t(a)", AUTH),
    ("CREATE TEMP TABLE x (a)", AUTH),
    ("CREATE VIRTUAL TABLE z USING nope(a)", AUTH),
    ("CREATE VIRTUAL TABLE z USING dbstat", AUTH),
    (
        "UPDATE sqlite_master SET name = 'x'",
        "table sqlite_master may not be modified: SQLITE_ERROR",
    ),
    ("INSERT INTO t (c) VALUES (1)", f"UNIQUE constraint failed: t.c: {CONSTRAINT}_UNIQUE)"),
    ("INSERT INTO t (id) VALUES (1)", f"UNIQUE constraint failed: t.id: {CONSTRAINT}_PRIMARYKEY)"),
    ("INSERT INTO u (id) VALUES (2)", f"NOT NULL constraint failed: u.name: {CONSTRAINT}_NOTNULL)"),
    ("INSERT INTO t (n) VALUES (0)", f"CHECK constraint failed: n > 0: {CONSTRAINT}_CHECK)"),
    ("INSERT INTO child VALUES (99)", f"FOREIGN KEY constraint failed: {CONSTRAINT}_FOREIGNKEY)"),
    ("DELETE FROM u", f"no thanks: {CONSTRAINT}_TRIGGER)"),
    (
        "INSERT INTO st VALUES ('x')",
        f"cannot store TEXT value in INTEGER column st.a: {CONSTRAINT}_DATATYPE)",
    ),
    ("INSERT INTO u VALUES ('abc', 'a')", "datatype mismatch: SQLITE_MISMATCH"),
    ("SELECT 1 LIMIT 1.5", "datatype mismatch: SQLITE_MISMATCH"),
    ("SELECT abs(-9223372036854775808)", "integer overflow: SQLITE_ERROR"),
    ("SELECT json_extract('{', '$.a')", "malformed JSON: SQLITE_ERROR"),
]
TOO_MUCH = [
    (f"SELECT 'abc' LIKE '{'a' * 51}'", "LIKE or GLOB pattern too complex: SQLITE_ERROR"),
    (f"SELECT 'abc' GLOB '{'a' * 51}'", "LIKE or GLOB pattern too complex: SQLITE_ERROR"),
    (f"SELECT 'abc' LIKE '{'é' * 26}'", "LIKE or GLOB pattern too complex: SQLITE_ERROR"),
    (f"SELECT {','.join('?' * 101)}", "too many SQL variables at offset 207: SQLITE_ERROR"),
    ("SELECT ?101", "variable number must be between ?1 and ?100 at offset 7: SQLITE_ERROR"),
    ("SELECT ?0", "variable number must be between ?1 and ?100 at offset 7: SQLITE_ERROR"),
    (
        f"SELECT {'1+' * 120}1",
        "Expression tree is too large (maximum depth 100): SQLITE_ERROR",
    ),
    (f"SELECT 1{' UNION SELECT 1' * 6}", "too many terms in compound SELECT: SQLITE_ERROR"),
    (
        f"CREATE TABLE big ({','.join(f'c{i}' for i in range(101))})",
        "too many columns on big: SQLITE_ERROR",
    ),
    (f"SELECT {','.join('1' * 101)}", "too many columns in result set: SQLITE_ERROR"),
    (
        f"SELECT max({','.join('1' * 128)})",
        "too many arguments on function max at offset 7: SQLITE_ERROR",
    ),
    ("SELECT zeroblob(5000000)", "string or blob too big: SQLITE_TOOBIG"),
    ("SELECT hex(zeroblob(1200000))", "string or blob too big: SQLITE_TOOBIG"),
    (f"SELECT '{'x' * 100000}'", "statement too long: SQLITE_TOOBIG"),
]


@pytest.mark.parametrize(("sql", "text"), SEEN)
def test_a_wrong_statement_is_refused_as_the_runtime_does(sql: str, text: str) -> None:
    with database(None, *SCHEMA) as made:
        assert problem(made, sql) == text


@pytest.mark.parametrize(("sql", "text"), TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_too_much_is_refused_as_the_runtime_does(sql: str, text: str) -> None:
    with database() as made:
        assert problem(made, sql) == text


def test_what_is_just_not_too_much_is_taken() -> None:
    with database() as made:
        made.run(f"SELECT 'abc' LIKE '{'a' * 50}'")
        made.run(f"SELECT {','.join('?' * 100)}", [1.0] * 100)
        made.run(f"CREATE TABLE wide ({','.join(f'c{i}' for i in range(100))})")
        made.run(f"SELECT max({','.join('1' * 127)})")
        made.run("SELECT length(zeroblob(2000000))")
        assert made.run("SELECT length(?)", ["x" * 1_999_990]).rows == [(1_999_990,)]


def test_a_value_too_big_to_bind_is_refused() -> None:
    with database() as made:
        assert problem(made, "SELECT ?", ["x" * 2_000_001]) == (
            "string or blob too big: SQLITE_TOOBIG"
        )
        assert problem(made, "SELECT ?", [b"x" * 2_000_001]) == (
            "string or blob too big: SQLITE_TOOBIG"
        )


@pytest.mark.parametrize(
    ("sql", "offset"),
    [
        ("SELECT x.nope FROM t x", 7),
        ('SELECT 1 FROM t WHERE "t"."nope"', 22),
        ("SELECT 'é', nope", 13),  # bytes, not characters
        ("SELECT 'nope', nope FROM t", 15),
        ("SELECT 'FORM' FROM t FORM t WHERE", 26),
        ("SELECT count(nope) FROM t", 13),
        ("SELECT a, nope, nope FROM t", 10),
        ("SELECT a FROM t ORDER BY nope", 25),
        ("UPDATE t SET a = nope", 17),
        ("SELECT substr('a')", 7),
        ("SELECT '", 7),
        ("EXPLAIN SELECT nope FROM t", 15),
        ("SELECT 1; SELECT nope FROM t", 7),  # of the statement, not of the text
    ],
)
def test_an_error_says_where_it_is(sql: str, offset: int) -> None:
    """Python does not tell; an SQLite that does (its shell) gave these."""
    with database(None, *SCHEMA) as made:
        assert f" at offset {offset}: SQLITE_ERROR" in problem(made, sql)


def test_looking_for_the_place_runs_nothing() -> None:
    with database(None, *SCHEMA) as made:
        assert "at offset" in problem(made, "DELETE FROM child; DELETE FROM t WHERE nope")
        assert made.run("SELECT count(*) FROM t").rows == [(1,)]


@pytest.mark.parametrize("sql", ["SELECT ?1, ?1", "SELECT :a, :a", "SELECT @a, $a"])
def test_parameters_with_names_and_numbers_are_bound_in_order(sql: str) -> None:
    with database() as made:
        values = ["x", "x"] if "$" in sql else ["x"]
        assert made.run(sql, values).rows == [("x", "x")]
        assert problem(made, sql, [*values, "y"]) == COUNT
        assert problem(made, sql) == COUNT


def test_a_syntax_error_comes_before_a_wrong_number_of_parameters() -> None:
    with database() as made:
        assert (
            problem(made, "SELECT ?1 FORM").startswith('near "FORM"')
            or problem(made, "SELECT ?1 FORM") == COUNT
        )
        assert problem(made, "SELECT ?1 ?2 x y").startswith('near "?2"')


def test_the_emulators_own_statements_open_nothing_to_user_code() -> None:
    """SQLite asks about a statement once, and it is kept by its text."""
    with database() as made:
        made.own("PRAGMA user_version")
        assert problem(made, "/*emulator*/PRAGMA user_version") == AUTH


def test_half_a_surrogate_pair_becomes_the_sign_for_what_cannot_be_read() -> None:
    with database() as made:
        assert made.run("SELECT ?", ["a\ud800b"]).rows == [("a\ufffdb",)]
        assert made.run("SELECT 'a\ud800'").rows == [("a\ufffd",)]
        assert made.run("SELECT CAST(x'61ff' AS TEXT)").rows == [("a\ufffd",)]


def test_sqlite_itself_is_not_older_than_what_is_known() -> None:
    """Statements of today need 3.39; docs/fidelity.md lists what newer ones have."""
    assert sqlite3.sqlite_version_info >= (3, 35)
