"""SQL as text: statements, parameters, what only reads."""

from __future__ import annotations

import pytest

from emulator.sql.statements import script

TRIGGER = "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;"


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1;"]),
        ("SELECT 1;  ", ["SELECT 1;"]),
        (" SELECT 1; SELECT 2", [" SELECT 1;", "SELECT 2"]),
        ("SELECT ';'; SELECT \";\"; SELECT [;] ; SELECT `;`", 4),
        ("SELECT 1 -- ;\n; SELECT 2", 2),
        ("SELECT 1 /* ; */; SELECT 2", 2),
        ("SELECT 'it''s; ok'; SELECT 2", 2),
        ("SELECT 1;;", ["SELECT 1;", ";"]),
        ("SELECT 1; -- x", ["SELECT 1;", "-- x"]),
        ("SELECT 'open; SELECT 2", 1),
        (TRIGGER, 1),
        (f"{TRIGGER} SELECT 1", 2),
        (f"SELECT 1; {TRIGGER.replace('CREATE', 'CREATE TEMP')}", 2),
        ("DROP TRIGGER a; SELECT 1", 2),
        ("SELECT CASE WHEN 1 THEN 2 END; SELECT 3", 2),
    ],
)
def test_a_text_is_taken_apart_where_sqlite_would(sql: str, parts: list[str] | int) -> None:
    given = script(sql)
    found = [part.text for part in (*given.head, given.last)]
    assert (found if isinstance(parts, list) else len(found)) == parts


@pytest.mark.parametrize(
    ("sql", "count", "names"),
    [
        ("SELECT 1", 0, ()),
        ("SELECT ?, ?", 2, ()),
        ("SELECT ?2", 2, ("", "2")),
        ("SELECT ?1, ?2, ?1", 2, ("1", "2")),
        ("SELECT :a, @b, $c, :a", 3, ("a", "b", "c")),
        ("SELECT ?5, ?", 6, ()),
        ("SELECT '?', \"?\", -- ?\n 1 /* ? */", 0, ()),
        ("SELECT a->>'$.x' FROM t WHERE b = ?", 1, ()),
    ],
)
def test_parameters_are_numbered_as_sqlite_does(
    sql: str, count: int, names: tuple[str, ...]
) -> None:
    last = script(sql).last
    assert (last.parameters, last.names) == (count, names)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT 1", True),
        ("-- first\nselect 1", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", False),
        ("EXPLAIN DELETE FROM t", True),
        ("VALUES (1)", True),
        ("INSERT INTO t VALUES (1) RETURNING *", False),
        ("SELECT 1; DELETE FROM t", False),
        ("CREATE TABLE t (a)", False),
    ],
)
def test_what_only_reads_is_told_by_its_words(sql: str, reads: bool) -> None:
    assert script(sql).reads is reads
