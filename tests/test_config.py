"""Configs: every form that is read, and for each wrong one the file, the key path and the value.

Ranges and defaults are those of queues.md 3.1; texts of the platform those of queues.md 4.6, 4.8,
5.1, 8.2, 8.5 and of the recording `queue_config_errors`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import types
import warnings
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.compatibility import NEWEST_DATE
from emulator.config import (
    ConfigWarning,
    Consumer,
    KvConfig,
    Limits,
    ObjectBinding,
    ObjectsConfig,
    Producer,
    QueueConfig,
    Service,
    Settings,
    WorkerConfig,
    find,
    load,
)
from emulator.errors import ConfigError, EmulatorError

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000
DAY = 86_400 * S

JSONC = """\
// Made by create-cloudflare.
{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "signup", /* the first Worker */
  "main": "src/entry.py",
  "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "observability": { "enabled": true },
  "vars": { "SENDER": "https://mail.example//send", "LIMITS": { "daily": 10, "burst": [1, 2.5] } },
  "triggers": { "crons": ["*/5 * * * *", "0 0 * * mon"] },
  "limits": { "cpu_ms": 30000 },
  "queues": {
    "producers": [
      { "binding": "EMAILS", "queue": "emails" },
    ],
    "consumers": [
      {
        "queue": "emails",
        "max_batch_size": 20,
        "max_batch_timeout": 1.5,
        "max_retries": 0,
        "retry_delay": 60,
        "dead_letter_queue": "emails-dlq", // kept for four days
        "max_concurrency": null,
      },
    ],
  },
  "services": [{ "binding": "BILLING", "service": "billing", "entrypoint": "Invoices" }],
  "kv_namespaces": [{ "binding": "SEEN", "id": "0f2ac74b498b48028cb68387c421e279" }],
  "durable_objects": { "bindings": [{ "name": "ROOM", "class_name": "Room" }] },
  "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Room"] }],
}
"""

TOML = """\
name = "signup"
main = "src/entry.py"
compatibility_date = "2026-10-01"
compatibility_flags = ["python_workers"]
observability.enabled = true

[vars]
SENDER = "https://mail.example//send"
LIMITS = { daily = 10, burst = [1, 2.5] }

[triggers]
crons = ["*/5 * * * *", "0 0 * * mon"]

[limits]
cpu_ms = 30_000

[[queues.producers]]
binding = "EMAILS"
queue = "emails"

[[queues.consumers]]
queue = "emails"
max_batch_size = 20
max_batch_timeout = 1.5
max_retries = 0
retry_delay = 60
dead_letter_queue = "emails-dlq" # kept for four days

[[services]]
binding = "BILLING"
service = "billing"
entrypoint = "Invoices"

[[kv_namespaces]]
binding = "SEEN"
id = "0f2ac74b498b48028cb68387c421e279"

[[durable_objects.bindings]]
name = "ROOM"
class_name = "Room"

[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
"""

MINIMAL = {
    "name": "app",
    "main": "src/entry.py",
    "compatibility_date": "2026-10-01",
    "compatibility_flags": ["python_workers"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with `src/entry.py` in it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "entry.py").write_text("")
    return tmp_path


def write(project: Path, config: dict[str, Any], name: str = "wrangler.jsonc") -> Path:
    path = project / name
    path.write_text(json.dumps(config))
    return path


def load_file(project: Path, **keys: Any) -> Settings:
    return load(write(project, {**MINIMAL, **keys}))


def load_mapping(project: Path, **keys: Any) -> Settings:
    return load({"main": "src/entry.py", **keys}, base=project)


def error_of(config: Any, **arguments: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(config, **arguments)
    return str(caught.value)


def file_error(project: Path, **keys: Any) -> str:
    """The error of a file with these keys, without the file's name, which is checked."""
    text = error_of(write(project, {**MINIMAL, **keys}))
    assert f"{project / 'wrangler.jsonc'}: " in text
    return text.replace(f"{project / 'wrangler.jsonc'}: ", "")


def expected_worker(project: Path, source: Path) -> WorkerConfig:
    worker = load(source).workers[0]
    return WorkerConfig(
        name="signup",
        main=project / "src" / "entry.py",
        root=project / "src",
        source=source,
        compatibility_date="2026-10-01",
        flags=worker.flags,
        listed_flags=worker.listed_flags,
        vars={
            "SENDER": "https://mail.example//send",
            "LIMITS": {"daily": 10, "burst": [1, 2.5]},
        },
        secrets={},
        producers=(Producer(binding="EMAILS", queue="emails"),),
        consumers=(
            Consumer(
                queue="emails",
                worker="signup",
                max_batch_size=20,
                max_batch_timeout_us=1_500_000,
                max_retries=0,
                retry_delay_us=60 * S,
                dead_letter_queue="emails-dlq",
            ),
        ),
        crons=("*/5 * * * *", "0 0 * * mon"),
        workflows=(),
        databases=(),
        objects=ObjectsConfig(
            bindings=(ObjectBinding(binding="ROOM", class_name="Room", script="signup"),),
            sqlite={"Room": True},
        ),
        namespaces=(KvConfig(binding="SEEN", id="0f2ac74b498b48028cb68387c421e279"),),
        buckets=(),
        services=(Service(binding="BILLING", service="billing", entrypoint="Invoices"),),
        limits=Limits(cpu_ms=30_000),
        other={},
        ignored=(),
    )


# Forms of a config.


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrangler.jsonc", JSONC),
        ("wrangler.json", JSONC),
        ("wrangler.toml", TOML),
        ("wrangler.test.jsonc", "\ufeff" + JSONC),
    ],
)
def test_a_file_is_read_in_every_format(project: Path, name: str, text: str):
    source = project / name
    source.write_text(text, "utf-8")
    found = load(source)
    assert found.workers == (expected_worker(project, source),)
    assert found.queues == (
        QueueConfig(
            name="emails",
            delivery_delay_us=0,
            message_retention_us=4 * DAY,
            delivery_paused=False,
        ),
        QueueConfig(
            name="emails-dlq",
            delivery_delay_us=0,
            message_retention_us=4 * DAY,
            delivery_paused=False,
        ),
    )


def test_a_file_may_be_given_as_text_relative_to_the_base(project: Path):
    write(project, MINIMAL)
    assert load("wrangler.jsonc", base=project).workers[0].source == project / "wrangler.jsonc"


def test_without_a_base_paths_are_relative_to_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    write(project, MINIMAL)
    monkeypatch.chdir(project / "src")
    worker = load("../wrangler.jsonc").workers[0]
    assert (worker.source, worker.main) == (project / "wrangler.jsonc", project / "src/entry.py")
    assert load({"main": "entry.py"}).workers[0].main == project / "src" / "entry.py"


def test_a_mapping_needs_no_more_than_main(project: Path):
    worker = load_mapping(project).workers[0]
    assert worker.name == "worker"
    assert worker.main == project / "src" / "entry.py"
    assert worker.root == project / "src"
    assert worker.source is None
    assert worker.compatibility_date == NEWEST_DATE
    assert {"python_workers", "python_workers_314", "queue_expose_error_codes"} <= worker.flags
    assert (worker.producers, worker.consumers, worker.crons, worker.services) == ((), (), (), ())
    assert (worker.vars, worker.secrets, worker.other, worker.ignored) == ({}, {}, {}, ())
    assert worker.limits == Limits(cpu_ms=None, subrequests=None)


def test_main_of_a_mapping_may_be_a_path_object(project: Path):
    worker = load({"main": project / "src" / "entry.py"}).workers[0]
    assert (worker.main, worker.root) == (project / "src" / "entry.py", project / "src")


def test_main_of_a_mapping_may_be_a_module_or_a_class():
    module = types.ModuleType("entry")
    for main in (module, dict):
        worker = load({"main": main}).workers[0]
        assert worker.main is main
        assert worker.root is None


def test_none_in_a_mapping_means_not_given(project: Path):
    queues = {"consumers": [{"queue": "q", "dead_letter_queue": None, "max_retries": None}]}
    worker = load_mapping(project, queues=queues, name=None, compatibility_date=None).workers[0]
    assert worker.name == "worker"
    assert worker.consumers[0].dead_letter_queue is None
    assert worker.consumers[0].max_retries == 3


def test_what_is_read_from_a_mapping_does_not_change_with_it(project: Path):
    config = {
        "main": "src/entry.py",
        "vars": {"LIST": [1]},
        "hyperdrive": [{"binding": "PG", "id": "x"}],
    }
    worker = load(config, base=project).workers[0]
    config["vars"]["LIST"].append(2)  # type: ignore[index]
    config["hyperdrive"].clear()  # type: ignore[attr-defined]
    assert worker.vars == {"LIST": [1]}
    assert worker.other == {"hyperdrive": [{"binding": "PG", "id": "x"}]}


def test_settings_are_frozen(project: Path):
    found = load_mapping(project)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.workers[0].name = "other"  # type: ignore[misc]


def test_all_well_known_keys_pass_without_a_warning(project: Path):
    load_file(
        project,
        account_id="",
        workers_dev=False,
        preview_urls=True,
        routes=[{"pattern": "example.com/*", "zone_name": "example.com"}],
        route="example.com/*",
        rules=[{"type": "Text", "globs": ["**/*.html"]}],
        build={"command": "make"},
        placement={"mode": "smart"},
        assets={"directory": "src", "binding": "ASSETS"},
        dev={"port": 8787},
        python_modules={"exclude": ["**/*.pyc"]},
        send_metrics=False,
        keep_vars=True,
        minify=True,
        logpush=False,
        usage_model="bundled",
        secrets={"required": []},
        d1_databases=[{"binding": "DB", "database_name": "db", "database_id": "x"}],
        r2_buckets=[{"binding": "FILES", "bucket_name": "files"}],
        workflows=[{"name": "wf", "binding": "WF", "class_name": "Flow"}],
        ai={"binding": "AI"},
        browser={"binding": "BROWSER"},
        vectorize=[{"binding": "INDEX", "index_name": "i"}],
        hyperdrive=[{"binding": "PG", "id": "x"}],
        send_email=[{"name": "MAIL"}],
        ratelimits=[{"name": "LIMIT", "namespace_id": "1", "simple": {"limit": 1, "period": 10}}],
        analytics_engine_datasets=[{"binding": "EVENTS"}],
        version_metadata={"binding": "VERSION"},
        tail_consumers=[{"service": "tail"}],
        unsafe={"bindings": [{"name": "U", "type": "x"}]},
        define={"A": "1"},
        containers=[],
    )


def _vendor(project: Path, version: str | None) -> None:
    """Let a project have the SDK in `python_modules/`, as pywrangler leaves it."""
    package = project / "python_modules" / "workers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    if version is not None:
        (project / "python_modules" / f"workers_runtime_sdk-{version}.dist-info").mkdir()


@pytest.mark.parametrize("version", ["1.3.0", "1.9.5", "2.0.0rc1", None])
def test_an_sdk_that_the_project_brings_counts_whatever_the_date(
    project: Path, version: str | None
) -> None:
    """workerd, `setup_python_search_path.py`: `python_modules` comes before the runtime's own."""
    _vendor(project, version)
    with pytest.warns(ConfigWarning, match="python_modules has Cloudflare's SDK"):
        worker = load_file(project, compatibility_date="2026-01-01").workers[0]
    assert "enable_python_external_sdk" in worker.flags
    assert "enable_python_external_sdk" not in worker.listed_flags
    listed = ["python_workers", "enable_python_external_sdk"]
    load_file(project, compatibility_date="2026-01-01", compatibility_flags=listed)  # no warning


def test_an_sdk_that_converts_nothing_leaves_the_date_to_decide(project: Path) -> None:
    _vendor(project, "1.2.4")
    worker = load_file(project, compatibility_date="2026-01-01").workers[0]
    assert "enable_python_external_sdk" not in worker.flags


def test_other_packages_in_python_modules_are_no_sdk(project: Path) -> None:
    (project / "python_modules" / "workers").mkdir(parents=True)
    worker = load_file(project, compatibility_date="2026-01-01").workers[0]
    assert "enable_python_external_sdk" not in worker.flags


def test_the_remaining_sections_are_kept_as_written(project: Path):
    databases = [{"binding": "PG", "id": "x"}]
    worker = load_file(project, hyperdrive=databases, ai={"binding": "AI"}).workers[0]
    assert worker.other == {"hyperdrive": databases, "ai": {"binding": "AI"}}


# Finding the file.


def test_the_nearest_config_above_a_folder_is_found(project: Path):
    inner = project / "src" / "deep"
    inner.mkdir()
    outer_config = write(project, MINIMAL, "wrangler.toml")
    assert find(inner) == outer_config
    inner_config = write(project / "src", MINIMAL, "wrangler.json")
    assert find(inner) == inner_config
    assert find(project / "src") == inner_config
    assert find(project) == outer_config


def test_in_one_folder_jsonc_goes_first_then_json(project: Path):
    toml = write(project, MINIMAL, "wrangler.toml")
    assert find(project) == toml
    json_file = write(project, MINIMAL, "wrangler.json")
    assert find(project) == json_file
    jsonc = write(project, MINIMAL, "wrangler.jsonc")
    assert find(project) == jsonc


def test_where_there_is_no_config_none_is_found(tmp_path: Path):
    (tmp_path / "wrangler.jsonc").mkdir()
    assert find(tmp_path) is None


# Files that cannot be read.


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonc", b"", "the file is empty"),
        ("a.toml", b" \n\n", "the file is empty"),
        ("a.jsonc", b'{"a": 1\n  "b": 2}', "line 2, column 3: Expected comma or '}', found '\"'"),
        (
            "a.jsonc",
            b'// c\n{"a": 1,\n /* x\n */ "b" 2}',
            "line 4, column 9: Expected colon, found '2'",
        ),
        ("a.jsonc", b'{"name": "open\n}', "line 1, column 10: Unclosed string"),
        ("a.jsonc", b'{\n  "a": 1, /* open', "line 2, column 12: Unclosed comment"),
        ("a.jsonc", b'{"a": 1}\n}\n', "line 2, column 1: Extra data '}'"),
        ("a.jsonc", b"// nothing\n", "line 1, column 1: No JSON data found"),
        ("a.jsonc", b"[" * 10_000, "line 1, column 33: Maximum nesting level exceeded"),
        ("a.toml", b'name = "x"\nmain = \n', "line 2, column 8: Invalid value"),
        ("a.toml", b'name = "x"\nname = "y"', "line 2, column 11: Cannot overwrite a value"),
        ("a.toml", b"a = [1,\n", "line 2, column 1: Invalid value"),
        ("a.json", b"[]", "the file must hold a table of keys and values ({\u2026}), not []"),
        (
            "a.jsonc",
            b'// c\n"x"',
            'the file must hold a table of keys and values ({\u2026}), not "x"',
        ),
        ("a.jsonc", b'{"a": "\xff"}', "the file is not UTF-8: invalid start byte at byte 7"),
        ("a.yaml", b"a: 1", "a wrangler config ends in .jsonc, .json or .toml, not '.yaml'"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_place(
    tmp_path: Path, name: str, content: bytes, problem: str
):
    (tmp_path / name).write_bytes(content)
    assert error_of(tmp_path / name) == f"{tmp_path / name}: {problem}"


def test_a_missing_file_is_named_with_the_nearest_that_is_there(project: Path):
    text = error_of("src/wrangler.jsonc", base=project)
    none = "none of wrangler.jsonc, wrangler.json, wrangler.toml is near"
    assert text == f"{project}/src/wrangler.jsonc: there is no such file; {none}"
    there = write(project, MINIMAL, "wrangler.toml")
    text = error_of("src/wrangler.jsonc", base=project)
    assert text.endswith(f"there is no such file; the nearest is {there}")


def test_a_folder_is_no_config(project: Path):
    there = write(project, MINIMAL)
    assert error_of(project) == f"{project}: is a folder, not a config file; the nearest is {there}"


@pytest.mark.parametrize("config", [5, None, b"wrangler.toml", {1: 2}])
def test_a_config_of_another_kind_is_refused(config: object):
    text = error_of(config)
    allowed = "a path of a wrangler config, a mapping of the same shape, or a list of these"
    assert text.startswith("config is ")
    assert text.endswith(f"but must be {allowed}")


def test_the_place_in_a_list_is_named(project: Path):
    assert error_of([{"main": dict}, 5]).startswith("config[1] is 5, but must be")
    assert error_of([]) == "config is an empty list; give at least one Worker"


def test_all_unreadable_files_are_told_at_once(tmp_path: Path):
    (tmp_path / "a.json").write_text("")
    text = error_of(["a.json", "b.json"], base=tmp_path)
    assert f"2 problems in the config:\n  {tmp_path}/a.json: the file is empty\n" in text
    assert f"{tmp_path}/b.json: there is no such file" in text


# Name, code, date and flags.


@pytest.mark.parametrize(
    ("main", "problem"),
    [
        ("src", 'is "src", but must be a Python file (.py): Workers in Python are what runs here'),
        ("src/index.ts", 'is "src/index.ts", but must be a Python file (.py): Workers in Python'),
        (5, "is 5, but must be a path"),
        (["src/entry.py"], 'is ["src/entry.py"], but must be a path'),
    ],
)
def test_main_must_be_a_python_file_that_is_there(project: Path, main: object, problem: str):
    assert file_error(project, main=main).startswith("main " + problem.format(project=project))


MOVED = """// "main": "src/gone.py",
{
  "name": "w", "$schema": "https://x.example/#", "domain": "src/gone.py",  // main: 'src/gone.py'
  /* "main": "src/gone.py" */
  "compatibility_date": "2026-10-01", "compatibility_flags": ["python_workers"],
  "main":
    "./src/gone.py",
  "env": {"old": {"main": "src/older.py"}, "same": {}}
}
"""


@pytest.mark.parametrize(
    ("environment", "line", "given", "file"),
    [
        (None, 6, 'main is "./src/gone.py"', "src/gone.py"),
        ("same", 6, 'main is "./src/gone.py"', "src/gone.py"),
        ("old", 8, 'env.old.main is "src/older.py"', "src/older.py"),
    ],
)
def test_a_main_file_that_is_not_there_is_told_with_the_line_that_names_it(
    tmp_path: Path, environment: str | None, line: int, given: str, file: str
):
    (tmp_path / "wrangler.jsonc").write_text(MOVED, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "wrangler.jsonc", environment=environment)
    told = f"{tmp_path}/wrangler.jsonc:{line}: {given}, but there is no file {tmp_path}/{file}"
    assert told in str(caught.value)


def test_a_main_file_of_toml_that_is_not_there_is_told_with_its_line(tmp_path: Path):
    text = "# main = 'gone.py'\nname = 'w'\ncompatibility_date = '2026-10-01'\nmain = 'gone.py'\n"
    (tmp_path / "wrangler.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "wrangler.toml")
    told = f'{tmp_path}/wrangler.toml:4: main is "gone.py", but there is no file {tmp_path}/gone.py'
    assert told in str(caught.value)


def test_a_main_file_named_in_an_unusual_way_is_told_without_a_line(tmp_path: Path):
    text = '{"m\\u0061in": "gone.py", "name": "w", "compatibility_date": "2026-10-01"}'
    (tmp_path / "wrangler.json").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "wrangler.json")
    assert f'{tmp_path}/wrangler.json: main is "gone.py", but there is no' in str(caught.value)


def test_a_file_without_main_is_refused(project: Path):
    config = {key: value for key, value in MINIMAL.items() if key != "main"}
    assert error_of(write(project, config)) == (
        f"{project}/wrangler.jsonc: main is missing: the Python file of the Worker, such as "
        '"src/entry.py" (wrangler: Missing entry-point to Worker script or to assets directory)'
    )


def test_a_pages_project_is_refused_as_one(project: Path):
    config = {key: value for key, value in MINIMAL.items() if key != "main"}
    assert error_of(write(project, {**config, "pages_build_output_dir": "./public"})) == (
        f"{project}/wrangler.jsonc: pages_build_output_dir makes this a Pages project, whose "
        "Functions are JavaScript: Workers in Python are what runs here (wrangler: It looks like "
        "you've run a Workers-specific command in a Pages project.)"
    )


def test_main_of_a_mapping_is_checked_too(project: Path):
    assert error_of({}).startswith("config: main is missing: the Python file of the Worker")
    assert error_of({"main": 5}) == ("config: main is 5, but must be a path, a module or a class")
    text = error_of({"main": "entry.py"}, base=project)
    assert text == f'config: main is "entry.py", but there is no file {project}/entry.py'


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ([], '"compatibility_flags": ["python_workers"]'),
        (["nodejs_compat"], '"compatibility_flags": ["nodejs_compat", "python_workers"]'),
    ],
)
def test_a_file_without_python_workers_warns_with_the_line_to_write(
    project: Path, flags: list[str], line: str
):
    path = write(project, {**MINIMAL, "compatibility_flags": flags})
    with pytest.warns(ConfigWarning) as caught:
        settings = load(path)
    [warning] = caught
    assert str(warning.message) == (
        f'{path}: compatibility_flags lacks "python_workers": write {line} '
        "(wrangler: The `python_workers` compatibility flag is required to use Python.)"
    )
    assert "python_workers" in settings.workers[0].flags


def test_in_toml_the_line_to_write_is_toml(project: Path):
    path = project / "wrangler.toml"
    path.write_text('name = "x"\nmain = "src/entry.py"\ncompatibility_date = "2026-01-01"\n')
    with pytest.warns(ConfigWarning, match=r'write compatibility_flags = \["python_workers"\] \('):
        load(path)


def test_a_file_without_a_date_gets_the_newest_with_a_warning(project: Path):
    config = {key: value for key, value in MINIMAL.items() if key != "compatibility_date"}
    path = write(project, config)
    with pytest.warns(ConfigWarning) as caught:
        worker = load(path).workers[0]
    assert worker.compatibility_date == NEWEST_DATE
    assert str(caught[0].message) == (
        f"{path}: compatibility_date is missing, so that the newest known counts: "
        f'write "compatibility_date": "{NEWEST_DATE}"'
    )
    assert caught[0].filename == __file__


@pytest.mark.parametrize("text", ["2026-1-1", "2026-02-30", "yesterday", "2026\u201301\u201301"])
def test_a_date_that_is_none_is_refused_in_wranglers_words(project: Path, text: str):
    shown = json.dumps(text, ensure_ascii=False)
    assert file_error(project, compatibility_date=text) == (
        f"compatibility_date is {shown}, but must be a date as YYYY-MM-DD "
        '(wrangler: "compatibility_date" field should be a valid ISO-8601 date (YYYY-MM-DD), '
        f"but got {shown}.)"
    )


def test_a_date_of_another_type_is_refused(project: Path):
    text = file_error(project, compatibility_date=20260101)
    assert text == "compatibility_date is 20260101, but must be a text, a date as YYYY-MM-DD"


def test_a_toml_date_must_be_quoted(project: Path):
    path = project / "wrangler.toml"
    path.write_text(
        'name = "x"\nmain = "src/entry.py"\ncompatibility_date = 2026-01-01\n'
        'compatibility_flags = ["python_workers"]\n[vars]\nSINCE = 2026-01-02\n'
    )
    assert error_of(path) == (
        "2 problems in the config:\n"
        f"  {path}: compatibility_date is a date, but must be a text: "
        'write compatibility_date = "2026-01-01"\n'
        f'  {path}: vars.SINCE is a date, but must be a text: write SINCE = "2026-01-02"'
    )


def test_a_date_far_in_the_future_is_probably_a_slip(project: Path):
    load_file(project, compatibility_date="2027-12-31")
    path = write(project, {**MINIMAL, "compatibility_date": "2062-01-01"})
    with pytest.warns(ConfigWarning) as caught:
        load(path)
    assert str(caught[0].message) == (
        f'{path}: compatibility_date is "2062-01-01", long after the newest known, {NEWEST_DATE}'
    )


def test_the_date_and_the_flags_say_what_is_on(project: Path):
    old = load_file(project, compatibility_date="2024-03-17").workers[0]
    new = load_file(project, compatibility_date="2024-03-18").workers[0]
    assert "queues_json_messages" not in old.flags
    assert "queues_json_messages" in new.flags
    flags = ["python_workers", "no_queues_json_messages", "queue_consumer_no_wait_for_wait_until"]
    worker = load_file(project, compatibility_flags=flags).workers[0]
    assert "queues_json_messages" not in worker.flags
    assert "queue_consumer_no_wait_for_wait_until" in worker.flags


def test_a_flag_with_its_opposite_is_refused(project: Path):
    flags = ["python_workers", "queues_json_messages", "no_queues_json_messages"]
    text = file_error(project, compatibility_flags=flags)
    assert text == (
        f"compatibility_flags is {json.dumps(flags, separators=(',', ':'))}, which the runtime "
        "refuses (workerd: Compatibility flags are mutually contradictory: "
        "queues_json_messages vs no_queues_json_messages)"
    )


def test_an_unknown_flag_warns_with_the_nearest_known_one(project: Path):
    path = write(project, {**MINIMAL, "compatibility_flags": ["python_workers", "nodejs_compatt"]})
    with pytest.warns(ConfigWarning) as caught:
        load(path)
    assert str(caught[0].message) == (
        f'{path}: compatibility_flags has "nodejs_compatt", which is not a known flag; '
        'did you mean "nodejs_compat"?'
    )


@pytest.mark.parametrize("flags", ["python_workers", [5], {"python_workers": True}])
def test_flags_are_a_list_of_texts(project: Path, flags: object):
    shown = json.dumps(flags, separators=(",", ":"))
    text = error_of({"main": "src/entry.py", "compatibility_flags": flags}, base=project)
    assert text == f"config: compatibility_flags is {shown}, but must be a list of texts"


@pytest.mark.parametrize("name", ["My Worker", "caf\u00e9", "-x", "a.b"])
def test_names_are_those_wrangler_allows(project: Path, name: str):
    assert file_error(project, name=name) == (
        f"name is {json.dumps(name, ensure_ascii=False)}, but must be "
        "lower-case letters, digits, - and _"
    )


# Variables and secrets.


@pytest.mark.parametrize("value", ["text", "", 1, 1.5, True, None, [1, {"a": None}], {"a": {}}])
def test_variables_are_texts_and_other_json_values(project: Path, value: object):
    assert load_file(project, vars={"A": value}).workers[0].vars == {"A": value}
    assert load_mapping(project, vars={"A": value}).workers[0].vars == {"A": value}


@pytest.mark.parametrize("value", [b"x", {1: 2}, {1, 2}, [object], float("nan")])
def test_variables_of_other_types_are_refused(project: Path, value: object):
    text = error_of({"main": "src/entry.py", "vars": {"A": value}}, base=project)
    assert text.startswith("config: vars.A is ")
    assert text.endswith("but must be a text or another JSON value")


def test_a_python_date_is_no_variable(project: Path):
    text = error_of({"main": "src/entry.py", "vars": {"A": date(2026, 1, 1)}}, base=project)
    assert text == 'config: vars.A is a date, but must be a text: write "A": "2026-01-01"'


def test_secrets_are_read_beside_the_file(project: Path):
    (project / ".dev.vars").write_text("TOKEN=abc\n")
    worker = load_file(project, vars={"TOKEN": "x"}).workers[0]
    assert worker.secrets == {"TOKEN": "abc"}
    assert worker.vars == {"TOKEN": "x"}


def test_a_mapping_reads_no_secrets(project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / ".dev.vars").write_text("TOKEN=abc\n")
    monkeypatch.chdir(project)
    assert load_mapping(project).workers[0].secrets == {}


def test_declared_secrets_are_the_only_ones_read(project: Path):
    (project / ".dev.vars").write_text("TOKEN=abc\nOTHER=x\nSENDER=y\n")
    keys = {"secrets": {"required": ["TOKEN"]}, "vars": {"SENDER": "z"}}
    assert load_file(project, **keys).workers[0].secrets == {"TOKEN": "abc", "SENDER": "y"}


def test_a_declared_secret_that_is_missing_warns(project: Path):
    path = write(project, {**MINIMAL, "secrets": {"required": ["TOKEN", "KEY"]}})
    with pytest.warns(ConfigWarning) as caught:
        load(path)
    text = f"{path}: secrets.required has TOKEN, KEY, missing in .dev.vars and .env"
    assert str(caught[0].message) == text


def test_secrets_that_cannot_be_read_are_an_error(project: Path):
    (project / ".dev.vars").write_bytes(b"A=\xff")
    text = error_of(write(project, MINIMAL))
    assert text == f"{project}/.dev.vars: the file is not UTF-8: byte 2"


# Queues.


@pytest.mark.parametrize(
    ("profile", "size", "timeout", "retries"), [("production", 10, 5, 3), ("miniflare", 5, 1, 2)]
)
def test_each_profile_has_its_defaults_for_consumers(
    project: Path, profile: Any, size: int, timeout: int, retries: int
):
    """queues.md 3.1."""
    config = {"main": "src/entry.py", "queues": {"consumers": [{"queue": "q"}]}}
    assert load(config, base=project, profile=profile).workers[0].consumers == (
        Consumer(
            queue="q",
            worker="worker",
            max_batch_size=size,
            max_batch_timeout_us=timeout * S,
            max_retries=retries,
            retry_delay_us=0,
            dead_letter_queue=None,
            max_concurrency=None,
        ),
    )


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        ("max_batch_size", 1, "max_batch_size", 1),
        ("max_batch_size", 100, "max_batch_size", 100),
        ("max_batch_size", 50.0, "max_batch_size", 50),
        ("max_batch_timeout", 0, "max_batch_timeout_us", 0),
        ("max_batch_timeout", 60, "max_batch_timeout_us", 60 * S),
        ("max_batch_timeout", 0.25, "max_batch_timeout_us", 250_000),
        ("max_retries", 0, "max_retries", 0),
        ("max_retries", 100, "max_retries", 100),
        ("retry_delay", 86_400, "retry_delay_us", DAY),
        ("max_concurrency", 1, "max_concurrency", 1),
        ("max_concurrency", 250, "max_concurrency", 250),
        ("max_concurrency", None, "max_concurrency", None),
        ("type", "worker", "queue", "q"),
        ("visibility_timeout_ms", 5_000, "queue", "q"),
    ],
)
def test_what_is_just_allowed_of_a_consumer_is_read(
    project: Path, key: str, value: object, attribute: str, expected: object
):
    consumer = load_file(project, queues={"consumers": [{"queue": "q", key: value}]})
    found = consumer.workers[0].consumers[0]
    assert getattr(found, attribute) == expected
    assert type(getattr(found, attribute)) is type(expected)


WHOLE = "a whole number from"
CONSUMER_NUMBERS = {
    "max_batch_size": f"{WHOLE} 1 to 100",
    "max_batch_timeout": "a number of seconds from 0 to 60",
    "max_retries": f"{WHOLE} 0 to 100",
    "retry_delay": "a whole number of seconds from 0 to 86400",
    "max_concurrency": f"{WHOLE} 1 to 250",
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_batch_size", 0),
        ("max_batch_size", 101),
        ("max_batch_size", 1.5),
        ("max_batch_timeout", -1),
        ("max_batch_timeout", 60.5),
        ("max_retries", -1),
        ("max_retries", 101),
        ("retry_delay", -1),
        ("retry_delay", 86_401),
        ("retry_delay", 0.5),
        ("max_concurrency", 0),
        ("max_concurrency", 251),
    ],
)
def test_a_consumer_out_of_range_is_refused_as_production_does(
    project: Path, key: str, value: float
):
    text = file_error(project, queues={"consumers": [{"queue": "q", key: value}]})
    assert text == (
        f"queues.consumers[0].{key} is {value}, but must be {CONSUMER_NUMBERS[key]} "
        "(Cloudflare, code 100127: The specified consumer settings are invalid.)"
    )


@pytest.mark.parametrize("key", CONSUMER_NUMBERS)
@pytest.mark.parametrize("value", ["5", True, False, [5], {}])
def test_a_consumer_of_the_wrong_type_is_refused_in_wranglers_words(
    project: Path, key: str, value: object
):
    text = file_error(project, queues={"consumers": [{"queue": "q", key: value}]})
    shown = json.dumps(value)
    assert text == (
        f"queues.consumers[0].{key} is {shown}, but must be {CONSUMER_NUMBERS[key]} "
        f'(wrangler: "queues.consumers[0]" should, optionally, have a number "{key}" field '
        f'but got {{"queue":"q","{key}":{shown}}}.)'
    )


@pytest.mark.parametrize(
    "key", ["max_batch_size", "max_batch_timeout", "max_retries", "retry_delay"]
)
def test_null_is_no_number_in_a_file(project: Path, key: str):
    text = file_error(project, queues={"consumers": [{"queue": "q", key: None}]})
    assert text.startswith(
        f"queues.consumers[0].{key} is null, but must be {CONSUMER_NUMBERS[key]}"
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("max_batch_size", 101, "Too big: expected number to be <=100"),
        ("max_batch_timeout", 61, "Too big: expected number to be <=60"),
        ("max_retries", 101, "Too big: expected number to be <=100"),
        ("retry_delay", 86_401, "Too big: expected number to be <=86400"),
        ("max_batch_size", -1, "Too small: expected number to be >=0"),
    ],
)
def test_miniflare_refuses_in_its_own_words(project: Path, key: str, value: int, says: str):
    """Recording `queue_config_errors`."""
    config = {"main": "src/entry.py", "queues": {"consumers": [{"queue": "q", key: value}]}}
    text = error_of(config, base=project, profile="miniflare")
    assert text.startswith(f"config: queues.consumers[0].{key} is {value}, but must be ")
    assert text.endswith(f"(miniflare: {says})")


def test_miniflare_allows_a_batch_size_of_zero_and_any_concurrency(project: Path):
    """Recording `queue_config_errors`, `batch_size_0`; queues.md 3.1."""
    consumer = {"queue": "q", "max_batch_size": 0, "max_concurrency": 1_000}
    config = {"main": "src/entry.py", "queues": {"consumers": [consumer]}}
    found = load(config, base=project, profile="miniflare").workers[0].consumers[0]
    assert (found.max_batch_size, found.max_concurrency) == (0, 1_000)


def test_a_delivery_delay_out_of_range_is_refused(project: Path):
    """Recording `queue_config_errors`, `delivery_delay_86401`."""
    producer = {"binding": "Q", "queue": "q", "delivery_delay": 86_401}
    config = {"main": "src/entry.py", "queues": {"producers": [producer]}}
    problem = "is 86401, but must be a whole number of seconds from 0 to 86400"
    line = f"config: queues.producers[0].delivery_delay {problem}"
    assert error_of(config, base=project) == line
    assert error_of(config, base=project, profile="miniflare") == (
        f"{line} (miniflare: Too big: expected number to be <=86400)"
    )


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        ([], "queues is [], but must be a table of keys and values"),
        ({"producers": {}}, "queues.producers is {}, but must be a list of tables"),
        ({"consumers": "q"}, 'queues.consumers is "q", but must be a list of tables'),
        (
            {"consumers": ["q"]},
            'queues.consumers[0] is "q", but must be a table of keys and values',
        ),
        (
            {"producers": [{"queue": "q"}]},
            "queues.producers[0].binding is missing: the name of the queue on `env` "
            '(wrangler: "queues.producers[0]" bindings should have a string "binding" field '
            'but got {"queue":"q"}.)',
        ),
        (
            {"producers": [{"binding": 5}]},
            "queues.producers[0].binding is 5, but must be a text that is not empty "
            '(wrangler: "queues.producers[0]" bindings should have a string "binding" field '
            'but got {"binding":5}.)',
        ),
        (
            {"producers": [{"binding": "Q", "queue": ""}]},
            'queues.producers[0].queue is "", but must be a text that is not empty',
        ),
        (
            {"producers": [{"binding": "Q", "remote": "yes"}]},
            'queues.producers[0].remote is "yes", but must be true or false',
        ),
        (
            {"producers": [{"binding": "Q", "delivery_delay": True}]},
            "queues.producers[0].delivery_delay is true, but must be a whole number of seconds "
            'from 0 to 86400 (wrangler: "queues.producers[0]" should, optionally, have a number '
            '"delivery_delay" field but got {"binding":"Q","delivery_delay":true}.)',
        ),
        (
            {"consumers": [{"max_retries": 1}]},
            "queues.consumers[0].queue is missing: the queue that this Worker consumes "
            '(wrangler: "queues.consumers[0]" should have a string "queue" field '
            'but got {"max_retries":1}.)',
        ),
        (
            {"consumers": [{"queue": "q", "dead_letter_queue": ["d"]}]},
            'queues.consumers[0].dead_letter_queue is ["d"], but must be a text that is not empty',
        ),
        (
            {"consumers": [{"queue": "q", "type": "http_pull"}]},
            'queues.consumers[0].type is "http_pull", but must be "worker", or left out; pull over '
            'the REST API instead (wrangler: "queues.consumers[0].type" has an invalid value '
            '"http_pull". Only "worker" consumers can be configured in your Wrangler '
            "configuration.)",
        ),
        (
            {"consumers": [{"queue": "q", "visibility_timeout_ms": "5 s"}]},
            'queues.consumers[0].visibility_timeout_ms is "5 s", but must be a whole number from 0',
        ),
        (
            {"consumers": [{"queue": "q", "dead_letter_queue": "q"}]},
            'queues.consumers[0].dead_letter_queue is "q", the consumed queue; name another, or '
            'none (miniflare: Dead letter queue for queue "q" cannot be itself)',
        ),
    ],
)
def test_wrong_queues_are_refused(project: Path, queues: object, problem: str):
    text = file_error(project, queues=queues)
    assert text.startswith(problem)
    assert "\n" not in text


def test_dead_letter_queues_may_refer_to_each_other(project: Path):
    """queues.md 4.6."""
    consumers = [
        {"queue": "a", "dead_letter_queue": "b"},
        {"queue": "b", "dead_letter_queue": "a"},
    ]
    found = load_file(project, queues={"consumers": consumers})
    assert [queue.name for queue in found.queues] == ["a", "b"]


def test_a_queue_has_one_consumer_also_across_workers(project: Path):
    """queues.md 4.8."""
    queues = {"consumers": [{"queue": "q"}]}
    configs = [{"name": name, "main": "src/entry.py", "queues": queues} for name in ("a", "b")]
    assert error_of(configs, base=project) == (
        'config[1]: queues.consumers[0].queue is "q", which has a consumer already '
        '(miniflare: Multiple consumers defined for queue "q": "a" and "b")'
    )
    queues = {"consumers": [{"queue": "q"}, {"queue": "q"}]}
    assert 'queues.consumers[1].queue is "q", which has a consumer' in file_error(
        project, queues=queues
    )


def test_a_producer_without_a_queue_gets_the_one_the_platform_makes(project: Path):
    """queues.md 8.1."""
    config = {
        "name": "shop",
        "main": "src/entry.py",
        "queues": {"producers": [{"binding": "SLOW_MAILS"}]},
    }
    assert load(config, base=project).workers[0].producers[0].queue == "shop-slow-mails"
    miniflare = load(config, base=project, profile="miniflare")
    assert miniflare.workers[0].producers[0].queue == "SLOW_MAILS"
    assert [queue.name for queue in miniflare.queues] == ["SLOW_MAILS"]


def test_production_ignores_delivery_delay_and_says_so(project: Path):
    """queues.md 8.5."""
    producer = {"binding": "Q", "queue": "q", "delivery_delay": 30}
    config = {"main": "src/entry.py", "queues": {"producers": [producer]}}
    worker = load(config, base=project).workers[0]
    assert worker.producers == (Producer(binding="Q", queue="q", delivery_delay_us=30 * S),)
    assert worker.ignored == (
        (
            "ignored_option",
            'The "delivery_delay" field in "queues.producers[0]" is deprecated and has no effect. '
            'Queue-level settings should be configured using "wrangler queues update" instead. '
            "This setting will be removed in a future version. Here they are queue_settings.",
        ),
    )
    assert load(config, base=project, profile="miniflare").workers[0].ignored == ()


def test_a_delay_of_zero_is_not_the_same_as_none(project: Path):
    producers = [
        {"binding": "A", "queue": "q", "delivery_delay": 0},
        {"binding": "B", "queue": "q"},
    ]
    found = load_mapping(project, queues={"producers": producers}).workers[0].producers
    assert [producer.delivery_delay_us for producer in found] == [0, None]


def test_a_remote_queue_is_emulated_all_the_same_and_says_so(project: Path):
    producer = {"binding": "Q", "queue": "q", "remote": True}
    found = load_file(project, queues={"producers": [producer]}).workers[0].ignored
    text = 'The "remote" field in "queues.producers[0]" has no effect: every queue is emulated.'
    assert found == (("ignored_option", text),)


# Settings of queues.

QUEUES = {
    "main": "src/entry.py",
    "queues": {
        "producers": [{"binding": "Q", "queue": "emails"}],
        "consumers": [{"queue": "emails", "dead_letter_queue": "dlq"}],
    },
}


def test_settings_are_given_by_queue_dead_letter_queues_included(project: Path):
    given = {
        "emails": {"delivery_delay": 30, "message_retention_period": 60, "delivery_paused": True},
        "dlq": {"message_retention_period": 1_209_600},
    }
    assert load(QUEUES, base=project, queue_settings=given).queues == (
        QueueConfig(
            name="emails",
            delivery_delay_us=30 * S,
            message_retention_us=60 * S,
            delivery_paused=True,
        ),
        QueueConfig(
            name="dlq",
            delivery_delay_us=0,
            message_retention_us=14 * DAY,
            delivery_paused=False,
        ),
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"mails": {}}, "mails is not a queue of this config; its queues are: emails, dlq"),
        ({"emails": 5}, "emails is 5, but must be a table of keys and values"),
        (
            {"emails": {"delay": 5}},
            "emails.delay is not a setting of a queue; the settings are: delivery_delay, "
            "message_retention_period, delivery_paused",
        ),
        (
            {"emails": {"delivery_delay": 86_401}},
            "emails.delivery_delay is 86401, but must be a whole number of seconds from 0 to 86400 "
            "(Cloudflare, code 100128: The specified queue settings are invalid.)",
        ),
        (
            {"emails": {"delivery_delay": "30 seconds"}},
            'emails.delivery_delay is "30 seconds", but must be a whole number of seconds from 0',
        ),
        (
            {"emails": {"message_retention_period": 59}},
            "emails.message_retention_period is 59, but must be a whole number of seconds from 60 "
            "to 1209600 (Cloudflare, code 100128: The specified queue settings are invalid.)",
        ),
        (
            {"emails": {"message_retention_period": 1_209_601}},
            "emails.message_retention_period is 1209601, but must be a whole number of seconds",
        ),
        (
            {"emails": {"delivery_paused": 1}},
            "emails.delivery_paused is 1, but must be true or false",
        ),
    ],
)
def test_wrong_settings_are_refused(project: Path, given: dict[str, object], problem: str):
    text = error_of(QUEUES, base=project, queue_settings=given)
    assert text.startswith(f"queue_settings: {problem}")
    assert "\n" not in text


def test_on_the_free_plan_retention_is_one_day_and_fixed(project: Path):
    """queues.md 3.9."""
    found = load(QUEUES, base=project, plan="free")
    assert {queue.message_retention_us for queue in found.queues} == {DAY}
    given = {"emails": {"message_retention_period": 60}}
    text = error_of(QUEUES, base=project, plan="free", queue_settings=given)
    assert "emails.message_retention_period is 60, but must be" in text


def test_arguments_that_are_wrong_are_all_named():
    text = error_of({"main": dict}, profile="prod", plan=3, queue_settings=[])
    assert text == (
        "3 problems in the config:\n"
        '  profile is "prod", but must be "production" or "miniflare"\n'
        '  plan is 3, but must be "paid" or "free"\n'
        '  queue_settings is [], but must be a mapping such as {"emails": {"delivery_delay": 30}}'
    )


# Several Workers.


def test_several_workers_keep_their_order_and_share_queues(project: Path):
    write(project, {**MINIMAL, "queues": {"producers": [{"binding": "JOBS", "queue": "jobs"}]}})
    consumer = {
        "name": "jobs",
        "main": "src/entry.py",
        "queues": {"consumers": [{"queue": "jobs"}, {"queue": "later"}]},
    }
    found = load(["wrangler.jsonc", consumer], base=project)
    assert [worker.name for worker in found.workers] == ["app", "jobs"]
    assert [queue.name for queue in found.queues] == ["jobs", "later"]
    assert found.workers[1].consumers[0].worker == "jobs"


def test_names_must_differ(project: Path):
    first = write(project, MINIMAL)
    second = write(project, MINIMAL, "second.json")
    assert error_of([first, second]) == (
        f'{second}: name is "app", and so is the name of the Worker in {first}; give each its own'
    )


def test_a_second_mapping_without_a_name_is_told_what_to_do(project: Path):
    unnamed = {"main": "src/entry.py"}
    assert error_of([unnamed, unnamed], base=project) == (
        'config[1]: name is "worker", the default for a config without one, and so is the name '
        "of the Worker in config[0]; give each its own"
    )


def test_services_name_another_worker_and_its_entrypoint(project: Path):
    services = [
        {"binding": "A", "service": "other", "props": {"role": "admin"}},
        {"binding": "B", "service": "other", "environment": "staging"},
    ]
    assert load_file(project, services=services).workers[0].services == (
        Service(binding="A", service="other", entrypoint=None, props={"role": "admin"}),
        Service(binding="B", service="other-staging"),
    )


@pytest.mark.parametrize(
    ("services", "problem"),
    [
        ({}, "services is {}, but must be a list of tables"),
        (
            [{"binding": "A"}],
            "services[0].service is missing: the name of the Worker "
            '(wrangler: "services[0]" bindings should have a string "service" field '
            'but got {"binding":"A"}.)',
        ),
        (
            [{"service": "a"}],
            "services[0].binding is missing: the name of the Worker on `env` "
            '(wrangler: "services[0]" bindings should have a string "binding" field '
            'but got {"service":"a"}.)',
        ),
        (
            [{"binding": "A", "service": "a", "entrypoint": 5}],
            "services[0].entrypoint is 5, but must be a text that is not empty",
        ),
    ],
)
def test_wrong_services_are_refused(project: Path, services: object, problem: str):
    assert file_error(project, services=services) == problem


# Keys: wrong types, names taken twice, unknown ones.


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("name", 5, "name is 5, but must be a text that is not empty"),
        ("name", None, "name is null, but must be a text that is not empty"),
        ("account_id", 5, "account_id is 5, but must be a text"),
        ("workers_dev", "yes", 'workers_dev is "yes", but must be true or false'),
        ("minify", 1, "minify is 1, but must be true or false"),
        ("routes", "a", 'routes is "a", but must be a list'),
        ("rules", {}, "rules is {}, but must be a list of tables"),
        ("vars", [], "vars is [], but must be a table of keys and values"),
        ("triggers", [], "triggers is [], but must be a table of keys and values"),
        ("triggers", {"crons": "* * * * *"}, 'triggers.crons is "* * * * *", but must be a list'),
        ("triggers", {"crons": [5]}, "triggers.crons is [5], but must be a list of texts"),
        ("limits", {"cpu_ms": 0}, "limits.cpu_ms is 0, but must be a whole number of milliseconds"),
        ("limits", {"cpu_ms": 300_001}, "limits.cpu_ms is 300001, but must be a whole number of"),
        ("limits", {"subrequests": True}, "limits.subrequests is true, but must be a whole number"),
        ("secrets", {"required": "A"}, 'secrets.required is "A", but must be a list of texts'),
        ("kv_namespaces", {}, "kv_namespaces is {}, but must be a list of tables"),
        ("d1_databases", [5], "d1_databases[0] is 5, but must be a table of keys and values"),
        ("durable_objects", [], "durable_objects is [], but must be a table of keys and values"),
        ("workflows", "w", 'workflows is "w", but must be a list of tables'),
        ("ai", "AI", 'ai is "AI", but must be a table of keys and values'),
        ("addresses", [5], "addresses is [5], but must be a list of texts"),
        ("env", [], "env is [], but must be a table of keys and values"),
    ],
)
def test_a_known_key_of_the_wrong_type_is_refused(
    project: Path, key: str, value: object, problem: str
):
    text = file_error(project, **{key: value})
    assert text.startswith(problem)
    assert "\n" not in text


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"queues": {"producers": [{"binding": "A"}, {"binding": "A", "queue": "q"}]}},
            "A assigned to multiple Queue bindings.",
        ),
        (
            {"vars": {"A": "x"}, "kv_namespaces": [{"binding": "A"}]},
            "A assigned to KV Namespace and Environment Variable bindings.",
        ),
        (
            {
                "queues": {"producers": [{"binding": "A"}]},
                "durable_objects": {"bindings": [{"name": "A", "class_name": "X"}]},
                "ai": {"binding": "A"},
            },
            "A assigned to Durable Object, Queue, and AI bindings.",
        ),
        (
            {"send_email": [{"name": "A"}], "assets": {"directory": ".", "binding": "A"}},
            "A assigned to Send Email and Assets bindings.",
        ),
        (
            {"vars": {"A": "x"}, "secrets": {"required": ["A"]}},
            "A assigned to Environment Variable and Secret bindings.",
        ),
    ],
)
def test_a_name_on_env_can_be_taken_once(project: Path, keys: dict[str, object], says: str):
    config = {"main": "src/entry.py", **keys}
    assert error_of(config, base=project) == (
        f"config: A is the name of more than one binding; `env` has one of each (wrangler: {says})"
    )


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"speed": 1}, "speed is not a known key and has no effect"),
        (
            {"compatability_flags": []},
            "compatability_flags is not a known key and has no effect; "
            'did you mean "compatibility_flags"?',
        ),
        (
            {"queues": {"consumer": []}},
            'queues.consumer is not a known key and has no effect; did you mean "consumers"?',
        ),
        (
            {"queues": {"consumers": [{"queue": "q", "max_retrys": 1}]}},
            "queues.consumers[0].max_retrys is not a known key and has no effect; "
            'did you mean "max_retries"?',
        ),
        (
            {"queues": {"producers": [{"binding": "Q", "max_batch_size": 1}]}},
            "queues.producers[0].max_batch_size is not a known key and has no effect",
        ),
        (
            {"triggers": {"cron": []}},
            'triggers.cron is not a known key and has no effect; did you mean "crons"?',
        ),
        ({"limits": {"memory": 1}}, "limits.memory is not a known key and has no effect"),
        (
            {"services": [{"binding": "A", "service": "a", "entry_point": "B"}]},
            "services[0].entry_point is not a known key and has no effect; "
            'did you mean "entrypoint"?',
        ),
    ],
)
def test_an_unknown_key_warns_with_the_nearest_known_one(
    project: Path, keys: dict[str, object], text: str
):
    path = write(project, {**MINIMAL, **keys})
    with pytest.warns(ConfigWarning) as caught:
        load(path)
    assert [str(warning.message) for warning in caught] == [f"{path}: {text}"]


def test_several_problems_are_told_together_with_what_may_have_caused_them(project: Path):
    config = {
        "main": "src/entry.py",
        "nam": "x",
        "queues": {
            "producers": [{"bindin": "Q"}],
            "consumers": [{"queue": "q", "max_batch_size": 101}],
        },
    }
    assert error_of(config, base=project) == (
        "2 problems in the config:\n"
        "  config: queues.producers[0].binding is missing: the name of the queue on `env` "
        '(wrangler: "queues.producers[0]" bindings should have a string "binding" field '
        'but got {"bindin":"Q"}.)\n'
        "  config: queues.consumers[0].max_batch_size is 101, but must be a whole number from 1 "
        "to 100 (Cloudflare, code 100127: The specified consumer settings are invalid.)\n"
        '  (also: config: nam is not a known key and has no effect; did you mean "name"?)\n'
        "  (also: config: queues.producers[0].bindin is not a known key and has no effect; "
        'did you mean "binding"?)'
    )


def test_long_values_are_shortened_in_messages(project: Path):
    text = file_error(project, routes="x" * 500)
    assert text == f'routes is "{"x" * 118}\u2026, but must be a list'


def test_config_errors_are_value_errors_and_emulator_errors():
    with pytest.raises(ValueError, match="config is 5"):
        load(5)  # type: ignore[arg-type]
    with pytest.raises(EmulatorError, match="config is 5"):
        load(5)  # type: ignore[arg-type]


# Environments.

WITH_ENVIRONMENTS = {
    **MINIMAL,
    "triggers": {"crons": ["0 * * * *"]},
    "limits": {"cpu_ms": 50},
    "env": {
        "staging": {"vars": {"STAGE": "staging"}},
        "production": {
            "name": "live",
            "main": "src/live.py",
            "compatibility_date": "2025-01-01",
            "compatibility_flags": ["python_workers", "queues_json_messages"],
            "triggers": {"crons": []},
            "queues": {"consumers": [{"queue": "live"}]},
        },
    },
}


def test_without_an_environment_the_top_level_counts(project: Path):
    worker = load(write(project, WITH_ENVIRONMENTS)).workers[0]
    assert (worker.name, worker.vars, worker.consumers) == ("app", {}, ())


def test_an_environment_inherits_and_its_worker_has_its_own_name(project: Path):
    worker = load(write(project, WITH_ENVIRONMENTS), environment="staging").workers[0]
    assert worker.name == "app-staging"
    assert worker.main == project / "src" / "entry.py"
    assert worker.compatibility_date == "2026-10-01"
    assert worker.crons == ("0 * * * *",)
    assert worker.limits == Limits(cpu_ms=50)
    assert worker.vars == {"STAGE": "staging"}


def test_an_environment_overrides_what_it_would_inherit(project: Path):
    (project / "src" / "live.py").write_text("")
    worker = load(write(project, WITH_ENVIRONMENTS), environment="production").workers[0]
    assert worker.name == "live"
    assert worker.main == project / "src" / "live.py"
    assert worker.compatibility_date == "2025-01-01"
    assert worker.crons == ()
    assert worker.consumers[0].worker == "live"


def test_bindings_are_not_inherited_which_is_worth_a_warning(project: Path):
    config = {
        **MINIMAL,
        "vars": {"A": "top"},
        "queues": {"consumers": [{"queue": "q"}]},
        "kv_namespaces": [{"binding": "KV"}],
        "env": {"staging": {"vars": {"B": "staging"}}},
    }
    path = write(project, config)
    with pytest.warns(ConfigWarning) as caught:
        worker = load(path, environment="staging").workers[0]
    assert [str(warning.message) for warning in caught] == [
        f"{path}: env.staging does not inherit queues, kv_namespaces; repeat there what is meant "
        "for it"
    ]
    assert (worker.vars, worker.consumers, worker.other) == ({"B": "staging"}, (), {})


def test_an_environment_that_is_not_there_is_refused_with_those_that_are(project: Path):
    path = write(project, WITH_ENVIRONMENTS)
    assert error_of(path, environment="prod") == (
        f"{path}: env.prod is not there; those of this config are staging, production "
        '(wrangler: No environment found in configuration with name "prod".)'
    )
    path = write(project, MINIMAL)
    assert "env.prod is not there; this config has none" in error_of(path, environment="prod")


def test_problems_in_an_environment_have_its_path(project: Path):
    environment = {"queues": {"consumers": [{"queue": "q", "max_retries": -1}]}, "minify": 5}
    path = write(project, {**MINIMAL, "env": {"staging": environment}})
    load(path)
    assert error_of(path, environment="staging") == (
        "2 problems in the config:\n"
        f"  {path}: env.staging.minify is 5, but must be true or false\n"
        f"  {path}: env.staging.queues.consumers[0].max_retries is -1, but must be a whole number "
        "from 0 to 100 (Cloudflare, code 100127: The specified consumer settings are invalid.)"
    )


def test_unknown_keys_of_the_chosen_environment_warn(project: Path):
    config = {**MINIMAL, "env": {"staging": {"var": {}, "keep_vars": True}, "other": {"x": 1}}}
    path = write(project, config)
    with pytest.warns(ConfigWarning) as caught:
        load(path, environment="staging")
    assert [str(warning.message) for warning in caught] == [
        f'{path}: env.staging.var is not a known key and has no effect; did you mean "vars"?',
        f"{path}: env.staging.keep_vars counts at the top level only, and has no effect here",
    ]


def test_an_environment_has_its_own_secrets(project: Path):
    (project / ".dev.vars").write_text("TOKEN=top\n")
    (project / ".dev.vars.staging").write_text("TOKEN=staging\n")
    path = write(project, WITH_ENVIRONMENTS)
    assert load(path).workers[0].secrets == {"TOKEN": "top"}
    assert load(path, environment="staging").workers[0].secrets == {"TOKEN": "staging"}


def test_a_mapping_has_environments_too(project: Path):
    config = {"main": "src/entry.py", "env": {"staging": {"vars": {"A": "1"}}}}
    worker = load(config, base=project, environment="staging").workers[0]
    assert (worker.name, worker.vars) == ("worker-staging", {"A": "1"})


# Whatever is given.

KEYS = st.sampled_from(
    [
        *("name", "main", "compatibility_date", "compatibility_flags", "vars", "queues"),
        *("services", "triggers", "limits", "secrets", "env", "kv_namespaces", "durable_objects"),
        *("consumers", "producers", "binding", "queue", "max_retries", "dead_letter_queue"),
        *("crons", "required", "bindings", "staging", "unsafe", "assets"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "q", "entry.py"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from([None, "staging"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mapping_gives_settings_or_a_config_error(
    config: dict[str, object], environment: str | None
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        with contextlib.suppress(ConfigError):
            assert isinstance(load(config, environment=environment), Settings)


@given(st.text() | st.text(alphabet='{}[]",:1a/* \n'))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_in_a_file_gives_a_config_error(tmp_path: Path, text: str):
    for name in ("a.jsonc", "a.toml"):
        (tmp_path / name).write_text(text, "utf-8", newline="")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConfigWarning)
            assert str(tmp_path / name) in error_of(tmp_path / name)


def test_importing_config_brings_no_parser_and_no_http_client():
    program = (
        "import sys, emulator.config\n"
        "heavy = {'json5', 'pyjson5', 'msgspec', 'httpx', 'tomllib', 'difflib', 'asyncio'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
