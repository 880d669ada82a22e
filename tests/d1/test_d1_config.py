"""D1 databases in a config. Texts after `wrangler:` are those of its validation."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from d1_bench import DATABASE, worker

from emulator import ConfigError, ConfigWarning, Emulator
from emulator.config import D1Config, Migrations, load

if TYPE_CHECKING:
    from pathlib import Path

OPTIONAL = (
    'wrangler: "d1_databases[0]" bindings should, optionally, have a string "{}" field but got'
)
PATTERN = "When `migrations_pattern` is set, `migrations_dir` must also be set"
WRONG: dict[str, tuple[Any, str]] = {
    "no binding": (
        {"database_name": "x"},
        'wrangler: "d1_databases[0]" bindings should have a string "binding" field but got',
    ),
    "binding is a number": (
        {**DATABASE, "binding": 5},
        'wrangler: "d1_databases[0]" bindings should have a string "binding" field but got',
    ),
    "id is a number": (
        {**DATABASE, "database_id": 5},
        'wrangler: "d1_databases[0]" bindings must have a "database_id" field but got',
    ),
    "name is a number": ({**DATABASE, "database_name": 5}, OPTIONAL.format("database_name")),
    "preview": ({**DATABASE, "preview_database_id": 5}, OPTIONAL.format("preview_database_id")),
    "folder": ({**DATABASE, "migrations_dir": 5}, OPTIONAL.format("migrations_dir")),
    "table": ({**DATABASE, "migrations_table": 5}, OPTIONAL.format("migrations_table")),
    "remote is a text": ({**DATABASE, "remote": "yes"}, "must be true or false"),
    "pattern alone": ({**DATABASE, "migrations_pattern": "migrations/*/a.sql"}, PATTERN),
    "pattern elsewhere": (
        {**DATABASE, "migrations_dir": "sql", "migrations_pattern": "other/*.sql"},
        PATTERN,
    ),
    "no table": ("DB", "d1_databases[0] is"),
}


def write(folder: Path, *databases: dict[str, Any], **keys: Any) -> Path:
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "entry.py").write_text("")
    path = folder / "wrangler.jsonc"
    config = {
        "name": "shop",
        "main": "src/entry.py",
        "compatibility_date": "2026-09-01",
        "compatibility_flags": ["python_workers"],
        "d1_databases": list(databases),
        **keys,
    }
    path.write_text(json.dumps(config))
    return path


def test_a_database_is_read_with_its_folder_of_migrations(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    file = write(
        tmp_path,
        {**DATABASE, "migrations_dir": "./sql/", "migrations_table": "done"},
        {"binding": "OTHER", "database_id": ""},
        {
            "binding": "NESTED",
            "database_name": "nested",
            "migrations_dir": "sql",
            "migrations_pattern": "sql/*/migration.sql",
        },
    )
    first, other, nested = load(file).workers[0].databases
    assert first == D1Config(
        binding="DB",
        name="shop",
        id="shop-id",
        migrations=Migrations(folder=tmp_path / "sql", table="done", named=True),
    )
    assert (other.name, other.id) == ("OTHER", "OTHER")
    assert other.migrations == Migrations(folder=tmp_path / "migrations")
    assert nested.id == "nested"
    assert nested.migrations is not None
    assert nested.migrations.pattern == "*/migration.sql"


def test_a_mapping_has_only_the_folder_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    given = worker(d1_databases=[DATABASE, {**DATABASE, "binding": "B", "migrations_dir": "sql"}])
    first, second = load(given, base=tmp_path).workers[0].databases
    assert first.migrations is None
    assert second.migrations == Migrations(folder=tmp_path / "sql", named=True)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_database_is_refused_in_wranglers_words(name: str) -> None:
    database, text = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        load(worker(d1_databases=[database]))
    assert text in str(caught.value)
    assert "d1_databases[0]" in str(caught.value)


def test_suspicious_keys_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(ConfigWarning, match='did you mean "migrations_dir"'):
        load(worker(d1_databases=[{**DATABASE, "migration_dir": "x"}]))
    with pytest.warns(ConfigWarning, match='migrations_dir is "nope", but there is no folder'):
        load(worker(d1_databases=[{**DATABASE, "migrations_dir": "nope"}]), base=tmp_path)


def test_a_name_that_is_taken_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="DB assigned to multiple D1 Database bindings"):
        load(worker(d1_databases=[DATABASE, DATABASE]))


def test_a_remote_database_is_emulated_and_that_is_a_finding() -> None:
    with Emulator(worker(d1_databases=[{**DATABASE, "remote": True}])) as emulator:
        assert [(f.code, f.message) for f in emulator.findings] == [
            (
                "ignored_option",
                'The "remote" field in "d1_databases[0]" has no effect: every database is '
                "emulated.",
            )
        ]
        assert emulator.d1["DB"].execute("SELECT 1 AS a") == [{"a": 1}]


def test_an_environment_has_its_own_databases(tmp_path: Path) -> None:
    env = {"test": {"d1_databases": [{"binding": "TEST_DB", "database_name": "t"}]}}
    file = write(tmp_path, DATABASE, env=env)
    assert [d.binding for d in load(file).workers[0].databases] == ["DB"]
    assert [d.binding for d in load(file, environment="test").workers[0].databases] == ["TEST_DB"]


def test_workers_with_one_id_share_a_database() -> None:
    def named(name: str, **database: Any) -> dict[str, Any]:
        return {**worker(), "name": name, "queues": {}, "d1_databases": [database]}

    configs = [
        named("one", binding="DB", database_id="x"),
        named("two", binding="SAME", database_id="x"),
        named("three", binding="OTHER", database_id="y"),
    ]
    with Emulator(configs) as emulator:
        emulator.d1["DB"].execute("CREATE TABLE t (a)")
        assert emulator.d1["SAME"].tables == ["t"]
        assert emulator.d1["OTHER"].tables == []
        with pytest.raises(KeyError, match="there is no D1 database 'NOPE'; there are: DB, SAME"):
            _ = emulator.d1["NOPE"]


def test_sqlite_is_not_imported_where_no_worker_has_a_database(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from emulator import Emulator\n"
        "from workers import WorkerEntrypoint\n"
        "class Default(WorkerEntrypoint):\n"
        "    pass\n"
        "with Emulator({'main': Default}) as emulator:\n"
        "    assert list(emulator.d1) == []\n"
        "print('sqlite3' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "False\n"
