"""Durable Objects in a config: what is read, what is refused with which text.

Texts after `wrangler:` are those of wrangler 4.164.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from object_bench import object_class, stub, worker
from worker_files import write

from emulator import ConfigError, Emulator
from emulator.config import ConfigWarning, load
from emulator.object_config import Move, ObjectBinding

if TYPE_CHECKING:
    from pathlib import Path

ROOM = {"name": "ROOMS", "class_name": "Room"}


def read(config: dict[str, Any], folder: Path) -> Any:
    write(folder, {"entry.py": ""})
    given = {"main": "entry.py", **config}
    return load(given, base=folder).workers[0].objects


def error(config: dict[str, Any], folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        read(config, folder)
    return str(raised.value)


def file_warnings(folder: Path, **config: Any) -> list[str]:
    write(folder, {"entry.py": ""})
    path = folder / "wrangler.jsonc"
    settings = {
        "name": "app",
        "main": "entry.py",
        "compatibility_date": "2026-10-01",
        "compatibility_flags": ["python_workers"],
    }
    path.write_text(json.dumps({**settings, **config}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(path)
    return [str(w.message) for w in caught if issubclass(w.category, ConfigWarning)]


# -- bindings --------------------------------------------------------------------------------------


def test_bindings_are_read(tmp_path: Path) -> None:
    theirs = {**ROOM, "name": "THEIRS", "script_name": "other", "environment": "staging"}
    with pytest.warns(ConfigWarning, match="which is no Worker here"):
        objects = read({"durable_objects": {"bindings": [ROOM, theirs]}}, tmp_path)
    assert objects.bindings == (
        ObjectBinding(binding="ROOMS", class_name="Room", script="worker"),
        ObjectBinding(binding="THEIRS", class_name="Room", script="other-staging"),
    )
    assert (objects.sqlite, objects.moves, objects.updates_at_once) == ({}, (), False)


@pytest.mark.parametrize(
    ("binding", "problem"),
    [
        (
            {"class_name": "Room"},
            "durable_objects.bindings[0].name is missing: the name of the objects' namespace on "
            '`env` (wrangler: binding should have a string "name" field.)',
        ),
        (
            {"name": "ROOMS"},
            "durable_objects.bindings[0].class_name is missing: the class that extends "
            'DurableObject (wrangler: binding should have a string "class_name" field.)',
        ),
        (
            {"name": 5, "class_name": "Room"},
            "durable_objects.bindings[0].name is 5, but must be a text that is not empty",
        ),
        (
            {**ROOM, "script_name": 5},
            "durable_objects.bindings[0].script_name is 5, but must be a text that is not empty",
        ),
        (
            {**ROOM, "environment": "staging"},
            'durable_objects.bindings[0].environment is "staging", and there is no `script_name` '
            '(wrangler: binding should have a "script_name" field if "environment" is present.)',
        ),
        ("room", "durable_objects.bindings[0] is"),
    ],
)
def test_wrong_bindings_are_refused(tmp_path: Path, binding: Any, problem: str) -> None:
    assert problem in error({"durable_objects": {"bindings": [binding]}}, tmp_path)


def test_unknown_keys_are_told_of(tmp_path: Path) -> None:
    binding = {**ROOM, "classname": "Room"}
    found = file_warnings(
        tmp_path,
        durable_objects={"bindings": [binding], "binding": []},
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"], "new_class": ["Room"]}],
    )
    assert [text.partition(": ")[2] for text in found] == [
        'durable_objects.binding is not a known key and has no effect; did you mean "bindings"?',
        "durable_objects.bindings[0].classname is not a known key and has no effect; did you mean "
        '"class_name"?',
        'migrations[0].new_class is not a known key and has no effect; did you mean "new_classes"?',
    ]


def test_how_new_code_is_taken_up(tmp_path: Path) -> None:
    objects = {"bindings": [ROOM], "code_update_strategy": {"mode": "immediate"}}
    assert read({"durable_objects": objects}, tmp_path).updates_at_once
    objects["code_update_strategy"] = {"mode": "later"}  # type: ignore[assignment]
    assert error({"durable_objects": objects}, tmp_path) == (
        'config: durable_objects.code_update_strategy.mode is "later", but must be "deferred" or '
        '"immediate"'
    )


@pytest.mark.asyncio
async def test_a_mapping_may_give_the_class_itself() -> None:
    cls = object_class(go=lambda self: "here")
    config = worker(object_class())
    bindings = {"bindings": [{"name": "MINE", "class_name": cls}]}
    async with Emulator({**config, "durable_objects": bindings}) as emulator:
        assert await emulator.durable_objects["MINE"].get("x").go() == "here"


# -- migrations ------------------------------------------------------------------------------------


def test_migrations_say_where_objects_are_kept_and_what_became_of_classes(tmp_path: Path) -> None:
    objects = read(
        {
            "migrations": [
                {"tag": "v1", "new_classes": ["Old", "Gone"], "new_sqlite_classes": ["Room"]},
                {"tag": "v2", "renamed_classes": [{"from": "Old", "to": "New"}]},
                {"tag": "v3", "deleted_classes": ["Gone"], "new_sqlite_classes": ["More"]},
                {
                    "tag": "v4",
                    "transferred_classes": [{"from": "A", "from_script": "other", "to": "B"}],
                },
            ]
        },
        tmp_path,
    )
    assert objects.sqlite == {"Room": True, "New": False, "More": True, "B": True}
    assert objects.moves == (
        Move("rename", "v2", "Old", "New"),
        Move("delete", "v3", "Gone"),
        Move("transfer", "v4", "A", "B", "other"),
    )


@pytest.mark.parametrize(
    ("migrations", "problem"),
    [
        (
            [{"new_classes": ["A"]}],
            "migrations[0].tag is missing: a name of this migration's own (wrangler: "
            '"migrations[0].tag" is a required field.)',
        ),
        (
            [{"tag": "v1", "deleted_classes": ["A"]}],
            'migrations[0].deleted_classes has "A", which no migration before has made (wrangler: '
            "Cannot apply deleted_classes migration to non-existent class A)",
        ),
        (
            [{"tag": "v1", "renamed_classes": [{"from": "A", "to": "B"}]}],
            'migrations[0].renamed_classes has "A", which no migration before has made (wrangler: '
            "Cannot apply renamed_classes migration to non-existent class A)",
        ),
        (
            [{"tag": "v1", "new_classes": ["A"]}, {"tag": "v2", "new_sqlite_classes": ["A"]}],
            'migrations[1].new_sqlite_classes has "A", which a migration before has made already '
            "(wrangler: Cannot apply new_sqlite_classes migration to existing class A)",
        ),
        (
            [{"tag": "v1", "new_classes": "A"}],
            'migrations[0].new_classes is "A", but must be a list of texts',
        ),
        (
            [{"tag": "v1", "new_classes": ["A"], "renamed_classes": [{"from": "A"}]}],
            "migrations[0].renamed_classes[0].to is missing: the name of a class, or of a Worker",
        ),
    ],
)
def test_wrong_migrations_are_refused(tmp_path: Path, migrations: Any, problem: str) -> None:
    assert problem in error({"migrations": migrations}, tmp_path)


def test_a_class_that_no_migration_names_is_told_of_in_a_file(tmp_path: Path) -> None:
    (text,) = file_warnings(tmp_path, durable_objects={"bindings": [ROOM]})
    assert text.partition(": ")[2] == (
        "durable_objects.bindings has Room, of which production makes no objects until a migration "
        'names it, such as {"tag": "v1", "new_sqlite_classes": ["Room"]} (Cloudflare, code 10061); '
        "here they are kept in SQLite"
    )
    named = [{"tag": "v1", "new_sqlite_classes": ["Room"]}]
    assert not file_warnings(tmp_path, durable_objects={"bindings": [ROOM]}, migrations=named)


# -- exports ---------------------------------------------------------------------------------------


def test_exports_are_read_as_migrations_are(tmp_path: Path) -> None:
    objects = read(
        {
            "exports": {
                "Room": {"type": "durable-object", "storage": "sqlite"},
                "Old": {"type": "durable-object", "storage": "legacy-kv"},
                "Gone": {"type": "durable-object", "state": "deleted"},
                "Was": {"type": "durable-object", "state": "renamed", "renamed_to": "Room"},
                "Flow": {"type": "workflow"},
            }
        },
        tmp_path,
    )
    assert objects.sqlite == {"Room": True, "Old": False}
    assert objects.moves == (
        Move("delete", "exports.Gone", "Gone"),
        Move("rename", "exports.Was", "Was", "Room"),
    )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"exports": {"Room": {"type": "durable-object"}}},
            'exports.Room.storage is null, but must be "sqlite" or "legacy-kv" (wrangler: '
            '"exports.Room.storage" is required for state "created"',
        ),
        (
            {"exports": {"Room": {"type": "durable-object", "state": "lost"}}},
            'exports.Room.state is "lost", but must be "created" or "deleted"',
        ),
        (
            {
                "exports": {"Room": {"type": "durable-object", "storage": "sqlite"}},
                "migrations": [{"tag": "v1"}],
            },
            "exports.Room is a Durable Object, and there are `migrations` too (wrangler: "
            "`migrations` and `exports` are mutually exclusive.",
        ),
    ],
)
def test_wrong_exports_are_refused(tmp_path: Path, config: Any, problem: str) -> None:
    assert problem in error(config, tmp_path)


# -- environments ----------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_an_environment_has_bindings_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "entry.py": """
                from workers import DurableObject, Response, WorkerEntrypoint

                class Room(DurableObject):
                    async def go(self):
                        return "here"

                class Default(WorkerEntrypoint):
                    async def fetch(self, request):
                        return Response("ok")
            """
        },
    )
    config = {
        "main": str(tmp_path / "entry.py"),
        "migrations": [{"tag": "v1", "new_classes": ["Room"]}],
        "env": {"staging": {"durable_objects": {"bindings": [{**ROOM, "name": "OBJ"}]}}},
    }
    async with Emulator(config, environment="staging") as emulator:
        assert await stub(emulator).go() == "here"
        assert [e.data for e in emulator.trace if e.kind == "object_started"]
