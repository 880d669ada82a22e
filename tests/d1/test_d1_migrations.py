"""Migrations: the folder, as `wrangler d1 migrations apply` goes about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from d1_bench import DATABASE, worker

from emulator import Emulator, MigrationError
from emulator.d1 import migrations

if TYPE_CHECKING:
    from pathlib import Path

USERS = """
-- the first
CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO users (name) VALUES ('ada; or not');
"""
TRIGGER = """
CREATE TABLE log (text TEXT);
CREATE TRIGGER on_user AFTER INSERT ON users BEGIN
  INSERT INTO log VALUES ('new');
  INSERT INTO log VALUES (new.name);
END;
-- the end
"""


def project(folder: Path, files: dict[str, str], **database: Any) -> dict[str, Any]:
    """The config of a Worker with these migrations."""
    for name, text in files.items():
        path = folder / "migrations" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given = {**DATABASE, "migrations_dir": str(folder / "migrations"), **database}
    return worker(d1_databases=[given])


def test_migrations_are_applied_before_a_database_is_used(tmp_path: Path) -> None:
    with Emulator(
        project(tmp_path, {"0001_users.sql": USERS, "0002_log.sql": TRIGGER})
    ) as emulator:
        database = emulator.d1["DB"]
        assert database.tables == ["d1_migrations", "log", "users"]
        assert database.migrations == ["0001_users.sql", "0002_log.sql"]
        database.execute("INSERT INTO users (name) VALUES ('eve')")
        assert database.rows("log") == [{"text": "new"}, {"text": "eve"}]
        assert database.rows("d1_migrations") == [
            {"id": 1, "name": "0001_users.sql", "applied_at": "2026-01-01 00:00:00"},
            {"id": 2, "name": "0002_log.sql", "applied_at": "2026-01-01 00:00:00"},
        ]
        assert database.rows("users")[0]["created_at"] == "2026-01-01 00:00:00"


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [
        "10_c.sql",
        "9_b.sql",
        "1_a.sql",
        "notes.sql",
        "9_a.sql",
        "02_x.sql",
        "a.txt",
        ".h.sql",
    ]
    config = project(tmp_path, dict.fromkeys(names, "SELECT 1"))
    with Emulator(config) as emulator:
        assert emulator.d1["DB"].migrations == [
            *("1_a.sql", "02_x.sql", "9_a.sql", "9_b.sql", "10_c.sql", "notes.sql")
        ]


def test_a_pattern_finds_them_in_folders(tmp_path: Path) -> None:
    files = {
        "0002_b/migration.sql": "CREATE TABLE b (a)",
        "0001_a/migration.sql": "CREATE TABLE a (a)",
        "0001_a/other.sql": "CREATE TABLE other (a)",
    }
    folder = str(tmp_path / "migrations")
    config = project(tmp_path, files, migrations_pattern=f"{folder}/*/migration.sql")
    with Emulator(config) as emulator:
        database = emulator.d1["DB"]
        assert database.migrations == ["0001_a/migration.sql", "0002_b/migration.sql"]
        assert database.tables == ["a", "b", "d1_migrations"]


def test_the_table_may_have_another_name(tmp_path: Path) -> None:
    config = project(tmp_path, {"1.sql": "SELECT 1"}, migrations_table='done "so far"')
    with Emulator(config) as emulator:
        assert [row["name"] for row in emulator.d1["DB"].rows('done "so far"')] == ["1.sql"]


def test_nothing_is_made_where_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    with Emulator(project(tmp_path, {})) as emulator:
        assert emulator.d1["DB"].tables == []


def test_a_failing_migration_tells_the_test_file_and_reason(tmp_path: Path) -> None:
    files = {"1_good.sql": "CREATE TABLE good (a)", "2_bad.sql": "CREATE TABLE x (a); NONSENSE"}
    config = project(tmp_path, files)
    with Emulator(config) as emulator:
        with pytest.raises(MigrationError) as caught:
            emulator.d1["DB"].execute("SELECT 1")
        assert str(caught.value) == (
            f"the migration {tmp_path / 'migrations' / '2_bad.sql'} failed, and nothing of it is "
            'applied: near "NONSENSE": syntax error at offset 0: SQLITE_ERROR'
        )


def test_a_failing_migration_reaches_the_test_from_inside_a_worker(tmp_path: Path) -> None:
    project(tmp_path, {"1_bad.sql": "NONSENSE"})

    async def handle(env: Any) -> str:
        await env.DB.prepare("SELECT 1").run()
        return "never"

    database = {**DATABASE, "migrations_dir": str(tmp_path / "migrations")}
    with (
        Emulator(worker(handle, d1_databases=[database])) as emulator,
        pytest.raises(MigrationError, match=r"1_bad\.sql failed"),
    ):
        emulator.run(emulator.fetch("/"))


def test_a_test_may_apply_them_itself(tmp_path: Path) -> None:
    config = project(tmp_path, {"1_users.sql": USERS})
    with Emulator(config, apply_migrations=False) as emulator:
        database = emulator.d1["DB"]
        assert (database.tables, database.migrations) == ([], [])
        assert database.apply_migrations() == ["1_users.sql"]
        (tmp_path / "migrations" / "2_more.sql").write_text("CREATE TABLE more (a)")
        assert database.apply_migrations() == ["2_more.sql"]
        assert database.apply_migrations() == []
        assert database.migrations == ["1_users.sql", "2_more.sql"]


def test_what_came_before_a_failing_migration_stays(tmp_path: Path) -> None:
    files = {"1_good.sql": "CREATE TABLE good (a)", "2_bad.sql": "CREATE TABLE x (a); NONSENSE"}
    with Emulator(project(tmp_path, files), apply_migrations=False) as emulator:
        database = emulator.d1["DB"]
        with pytest.raises(MigrationError):
            database.apply_migrations()
        assert (database.tables, database.migrations) == (["d1_migrations", "good"], ["1_good.sql"])


def test_a_dump_with_its_own_transaction_is_taken(tmp_path: Path) -> None:
    dump = "PRAGMA defer_foreign_keys=ON;\nBEGIN TRANSACTION;\nCREATE TABLE t (a);\nCOMMIT;\n"
    with Emulator(project(tmp_path, {"1.sql": dump})) as emulator:
        assert emulator.d1["DB"].tables == ["d1_migrations", "t"]


def test_a_changed_file_counts_in_the_next_emulator(tmp_path: Path) -> None:
    config = project(tmp_path, {"1.sql": "CREATE TABLE one (a)"})
    with Emulator(config) as emulator:
        assert "one" in emulator.d1["DB"].tables
    path = tmp_path / "migrations" / "1.sql"
    path.write_text("CREATE TABLE two (a)")
    os.utime(path, ns=(0, 1))
    with Emulator(config) as emulator:
        assert emulator.d1["DB"].tables == ["d1_migrations", "two"]


def test_files_are_run_once_for_all_tests_that_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = project(tmp_path, {"1.sql": USERS})
    applied: list[str] = []
    apply = migrations.apply

    def counting(*arguments: Any) -> list[str]:
        names = apply(*arguments)
        applied.extend(names)
        return names

    monkeypatch.setattr(migrations, "apply", counting)
    for number in range(3):
        with Emulator(config, seed=number) as emulator:
            emulator.d1["DB"].execute("INSERT INTO users (name) VALUES ('x')")
            assert len(emulator.d1["DB"].rows("users")) == 2
    assert applied == ["1.sql"]


def test_a_state_file_gets_the_migrations_that_came_later(tmp_path: Path) -> None:
    config = project(tmp_path, {"1_users.sql": USERS})
    with Emulator(config, state=tmp_path / "state") as emulator:
        emulator.d1["DB"].execute("INSERT INTO users (name) VALUES ('eve')")
    (tmp_path / "migrations" / "2_log.sql").write_text(TRIGGER)
    with Emulator(config, state=tmp_path / "state") as emulator:
        assert emulator.d1["DB"].migrations == ["1_users.sql", "2_log.sql"]
        assert [row["name"] for row in emulator.d1["DB"].rows("users")] == ["ada; or not", "eve"]


async def _reset(emulator: Emulator) -> None:
    await emulator.reset()


def test_a_reset_applies_them_again(tmp_path: Path) -> None:
    with Emulator(project(tmp_path, {"1_users.sql": USERS})) as emulator:
        emulator.d1["DB"].execute("DELETE FROM users; DROP TABLE users")
        emulator.run(_reset(emulator))
        assert len(emulator.d1["DB"].rows("users")) == 1
