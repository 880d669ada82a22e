"""D1 databases in a config: `d1_databases` of a Worker.

The platform's texts are wrangler's, which checks these keys itself; what becomes of the migrations
is wrangler's `d1 migrations apply`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_KEYS: Final = (
    *("binding", "database_id", "database_internal_env", "database_name", "migrations_dir"),
    *("migrations_pattern", "migrations_table", "preview_database_id", "remote"),
)
_FOLDER: Final = "migrations"
_TABLE: Final = "d1_migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrations:
    """Where the migrations of a database are: a folder, a glob below it, the table of those done.

    `named` says whether the config names the folder.
    """

    folder: Path
    pattern: str = "*.sql"
    table: str = _TABLE
    named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class D1Config:
    """A binding to a D1 database; bindings with one `id` share it, whatever the Worker."""

    binding: str
    name: str
    id: str
    migrations: Migrations | None


def databases(config: Section, folder: Path) -> tuple[D1Config, ...]:
    """Read the `d1_databases` of a Worker; paths are relative to `folder`."""
    return tuple(_database(item, folder) for item in config.sections("d1_databases"))


def _database(item: Section, folder: Path) -> D1Config:
    item.warn_unknown(_KEYS)
    item.boolean("remote", default=False)
    _optional(item, "database_internal_env")
    says = f'wrangler: "{item.path}" bindings should have a string "binding" field but got'
    binding = required(item, "binding", "the name of the database on `env`", says)
    name = _optional(item, "database_name")
    preview = _optional(item, "preview_database_id")
    id = _optional(item, "database_id", says='bindings must have a "database_id" field') or preview
    return D1Config(
        binding=binding,
        name=name or binding,
        id=id or name or binding,
        migrations=_migrations(item, folder),
    )


def _migrations(item: Section, folder: Path) -> Migrations | None:
    """Read where the migrations are; only a file has a folder of them without naming it."""
    given = _optional(item, "migrations_dir")
    pattern = _optional(item, "migrations_pattern")
    table = _optional(item, "migrations_table") or _TABLE
    inner = "*.sql" if pattern is None else _inner_pattern(item, pattern, given)
    if given is None and not item.is_file:
        return None
    path = folder / (given or _FOLDER)
    if given is not None and not path.is_dir():
        item.warn("migrations_dir", f"is {shown(given)}, but there is no folder {path}")
    return Migrations(folder=path, pattern=inner, table=table, named=given is not None)


def _inner_pattern(item: Section, pattern: str, given: str | None) -> str:
    """Return a pattern relative to the folder, which it has to begin with."""
    folder = None if given is None else _normal(given)
    normal = _normal(pattern)
    if folder == "." and not normal.startswith("../"):
        return normal
    if folder is not None and normal.startswith(f"{folder}/"):
        return normal.removeprefix(f"{folder}/")
    says = (
        "wrangler: When `migrations_pattern` is set, `migrations_dir` must also be set, and "
        "`migrations_pattern` must start with `${migrations_dir}/`."
    )
    start = folder or _FOLDER
    item.wrong("migrations_pattern", f'is {shown(pattern)}; begin it with "{start}/"', says=says)
    return "*.sql"


def _normal(path: str) -> str:
    """A path as the texts of a config are compared: `./a//b/` is `a/b`."""
    return Path(path.replace("\\", "/")).as_posix()


def _optional(item: Section, key: str, *, says: str = "") -> str | None:
    """Return a text; None where it is not given, wrong or empty, as in wrangler's templates."""
    if key not in item or item.values[key] == "":
        return None
    told = says or f'bindings should, optionally, have a string "{key}" field'
    return item.text(key, says=f'wrangler: "{item.path}" {told} but got {shown(item.values)}.')
