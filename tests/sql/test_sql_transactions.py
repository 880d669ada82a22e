"""Transactions, durability and files."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from databases import World, database, problem, rows

from emulator.errors import StateError
from emulator.sql import Database, DatabaseFolder, SqlError
from emulator.sql.statements import script

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "CREATE TABLE t (a UNIQUE)"
FOREIGN_KEY = (
    "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
)


def count(made: Database) -> int:
    return int(rows(made, "SELECT count(*) FROM t")[0][0])


def test_levels_nest() -> None:
    with database(None, TABLE) as made:
        made.begin()
        made.run("INSERT INTO t VALUES (1)")
        made.begin()
        made.run("INSERT INTO t VALUES (2)")
        made.rollback()
        assert count(made) == 1
        made.begin()
        made.run("INSERT INTO t VALUES (3)")
        made.commit()
        made.rollback()
        assert (count(made), made.levels) == (0, 0)


def test_a_schema_that_is_rolled_back_is_gone() -> None:
    with database() as made:
        made.begin()
        made.run(TABLE)
        made.run("INSERT INTO t VALUES (1)")
        made.rollback()
        assert problem(made, "SELECT * FROM t") == "no such table: t: SQLITE_ERROR"


def test_a_statement_that_fails_leaves_what_came_before() -> None:
    with database(None, TABLE) as made:
        assert "UNIQUE" in problem(made, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
        assert "UNIQUE" in problem(made, "INSERT INTO t VALUES (2), (2)")
        assert rows(made, "SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "atomic"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("SELECT 1", True),
        ("INSERT OR FAIL INTO t VALUES (1)", False),
        ("SELECT 1; SELECT 2", False),
        ("PRAGMA defer_foreign_keys = ON", False),
    ],
)
def test_what_needs_a_transaction_to_be_undone_is_known(sql: str, atomic: bool) -> None:
    with database(None, TABLE) as made:
        assert made.is_atomic(script(sql)) is atomic


def test_rolling_back_everything_takes_all_levels_along_and_no_more() -> None:
    with database(None, TABLE) as made:
        made.run("INSERT INTO t VALUES (1)")
        made.begin()
        made.run("INSERT INTO t VALUES (2)")
        assert "UNIQUE" in problem(made, "INSERT OR ROLLBACK INTO t VALUES (2)")
        assert made.levels == 0
        made.rollback()  # nothing is left to undo
        made.commit()
        assert rows(made, "SELECT a FROM t") == [(1,)]


def test_rolling_back_everything_leaves_what_was_done_before_the_call() -> None:
    with database(None, TABLE) as made:
        made.run("INSERT INTO t VALUES (1)")
        assert "UNIQUE" in problem(made, "INSERT OR ROLLBACK INTO t VALUES (1)")
        assert count(made) == 1


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE u (a UNIQUE ON CONFLICT ROLLBACK)",
        "CREATE TABLE u (a); CREATE TRIGGER r BEFORE INSERT ON u WHEN new.a = 1"
        " BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    ],
)
def test_a_schema_may_roll_everything_back_too(schema: str) -> None:
    with database(None, TABLE, schema, "INSERT OR IGNORE INTO u SELECT 1 WHERE 0") as made:
        made.run("INSERT INTO t VALUES (1)")
        for _ in range(2):
            problem(made, "INSERT INTO u VALUES (1)")
        assert count(made) == 1


def test_foreign_keys_are_checked_at_once() -> None:
    with database(None, "CREATE TABLE p (id INTEGER PRIMARY KEY)") as made:
        made.run("CREATE TABLE c (p REFERENCES p(id))")
        assert problem(made, "INSERT INTO c VALUES (1)") == FOREIGN_KEY


@pytest.mark.parametrize("how", ["pragma", "schema"])
def test_a_check_that_was_put_off_comes_when_the_level_ends(how: str) -> None:
    deferred = " DEFERRABLE INITIALLY DEFERRED" if how == "schema" else ""
    with database(None, "CREATE TABLE p (id INTEGER PRIMARY KEY)") as made:
        made.run(f"CREATE TABLE t (p REFERENCES p(id){deferred})")
        for parent, whole in ((1, True), (2, False)):
            made.begin()
            if how == "pragma":
                made.run("PRAGMA defer_foreign_keys = ON")
            made.run("INSERT INTO t VALUES (?)", [float(parent)])
            if whole:
                made.run("INSERT INTO p VALUES (?)", [float(parent)])
                made.commit()
            else:
                with pytest.raises(SqlError) as caught:
                    made.commit()
                assert str(caught.value) == FOREIGN_KEY
        made.flush()
        assert (count(made), made.levels) == (1, 0)
        if how == "pragma":
            assert problem(made, "INSERT INTO t VALUES (9)") == FOREIGN_KEY


def test_pragmas_have_no_effect_inside_a_transaction_as_in_production() -> None:
    with database() as made:
        made.run("PRAGMA foreign_keys = OFF")
        assert rows(made, "PRAGMA foreign_keys") == [(1,)]


# -- files -----------------------------------------------------------------------------------------


def test_what_was_flushed_is_there_after_a_restart(tmp_path: Path) -> None:
    for path in (None, tmp_path / "a.sqlite"):
        with database(path, TABLE) as made:
            made.run("INSERT INTO t VALUES (1)")
            made.flush()
            made.run("INSERT INTO t VALUES (2)")
            made.restart()
            assert rows(made, "SELECT a FROM t") == [(1,)]
            assert made.run("SELECT 1").last_row_id == 0


def test_a_lasting_level_does_not_hold_up_what_came_before(tmp_path: Path) -> None:
    with database(tmp_path / "a.sqlite", TABLE) as made:
        made.run("INSERT INTO t VALUES (1)")
        made.begin(lasting=True)
        made.run("INSERT INTO t VALUES (2)")
        made.flush()
        made.restart()
        assert rows(made, "SELECT a FROM t") == [(1,)]


def test_a_file_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    folder = DatabaseFolder(tmp_path / "state")
    path = folder.file("d1", "my/data base")
    assert path == tmp_path / "state.databases" / "d1" / "my%2Fdata%20base.sqlite"
    with database(path, TABLE):
        for file in sorted(path.parent.iterdir()):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_names_that_lead_elsewhere_do_not(tmp_path: Path) -> None:
    folder = DatabaseFolder(tmp_path / "state")
    for name in ("..", ".", "", "/etc/x"):
        path = folder.file("d1", name)
        assert path is not None
        assert path.resolve().parent == (tmp_path / "state.databases" / "d1").resolve()
        path = folder.file(name, "x")
        assert path is not None
        assert path.resolve().is_relative_to((tmp_path / "state.databases").resolve())


def test_databases_without_their_state_file_are_refused(tmp_path: Path) -> None:
    folder = DatabaseFolder(tmp_path / "state")
    path = folder.file("d1", "x")
    with database(path, TABLE) as made:
        made.flush()
    with pytest.raises(StateError, match="a state file that is gone"):
        DatabaseFolder(tmp_path / "state")
    (tmp_path / "state").write_text("something")
    assert DatabaseFolder(tmp_path / "state").path == folder.path


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(StateError, match=r"a\.sqlite is not a state file, or damaged"):
        Database(path, World().source)
    assert path.read_text().startswith("not a database")


def test_a_database_can_be_thrown_away(tmp_path: Path) -> None:
    for path in (None, tmp_path / "a.sqlite"):
        with database(path, TABLE, "INSERT INTO t VALUES (1), (2), (3)") as made:
            reading = made.open("SELECT a FROM t")
            assert reading.fetch() == (1,)
            size = made.size()
            made.reset()
            assert made.size() < size
            assert problem(made, "SELECT * FROM t") == "no such table: t: SQLITE_ERROR"
            with pytest.raises(SqlError, match="canceled because the database was deleted"):
                reading.fetch()


@pytest.mark.parametrize("in_file", [False, True])
def test_an_image_has_everything_and_is_a_copy(tmp_path: Path, in_file: bool) -> None:
    path = tmp_path / "a.sqlite" if in_file else None
    with database(None, TABLE, "INSERT INTO t VALUES (1)") as first, database(path) as second:
        second.load(first.image())
        second.run("INSERT INTO t VALUES (2)")
        assert (count(first), count(second)) == (1, 2)
        second.flush()
        second.restart()
        assert count(second) == 2


def test_another_process_that_writes_is_waited_for_and_then_told_of(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with database(path, TABLE) as made:
        made.flush()
        other = sqlite3.connect(path, isolation_level=None)
        assert other.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        other.close()


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_a_killed_process_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    code = f"""
        import os, random, signal, sys
        from pathlib import Path
        from emulator.sql import Database, Source

        made = Database(Path({str(path)!r}), Source(lambda: 0, random.Random(1).randbytes))
        made.run("CREATE TABLE t (a)")
        for number in range(200):
            made.run("INSERT INTO t VALUES (?)", [float(number)])
            made.flush()
        made.run("INSERT INTO t VALUES (-1)")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", dedent(code)], timeout=60, check=False)
    assert killed.returncode == -9
    with database(path) as made:
        assert rows(made, "SELECT count(*), min(a) FROM t") == [(200, 0)]
