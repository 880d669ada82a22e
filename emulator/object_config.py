"""Durable Objects in a config: `durable_objects`, `migrations`, `exports` of a Worker.

The Worker that has the class owns the objects; others bind to them by `script_name`. Migrations say
which classes keep their objects in SQLite, and what became of classes that were renamed, deleted or
came from another Worker. The platform's texts are wrangler's (4.164), which checks these keys
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emulator.section import is_list, is_table, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.section import Report, Section

_BINDING_KEYS: Final = ("name", "class_name", "script_name", "environment", "remote")
_MIGRATION_KEYS: Final = (
    *("tag", "new_classes", "new_sqlite_classes"),
    *("renamed_classes", "deleted_classes", "transferred_classes"),
)
_STORAGES: Final = {"sqlite": True, "legacy-kv": False}
_MODES: Final = ("deferred", "immediate")
_STATES: Final = ("created", "deleted", "renamed", "transferred", "expecting-transfer")
_WHAT: Final = {
    "name": "the name of the objects' namespace on `env`",
    "class_name": "the class that extends DurableObject",
}


class Move(NamedTuple):
    """What became of a class: it got another name, was deleted, or came from another Worker.

    `tag` tells the migration by which it did; a move is made once.
    """

    kind: Literal["rename", "delete", "transfer"]
    tag: str
    source: str
    target: str = ""
    script: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectBinding:
    """A binding to the objects of a class; `script` is the Worker that has it.

    A mapping in a test may give the class itself, `cls`.
    """

    binding: str
    class_name: str
    script: str
    cls: type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsConfig:
    """All that a Worker's config says of Durable Objects.

    `sqlite` tells of each class of its own that a migration names whether its objects are kept in
    SQLite; one that none names is. `updates_at_once` lets new code reset objects that are busy.
    """

    bindings: tuple[ObjectBinding, ...] = ()
    updates_at_once: bool = False
    sqlite: Mapping[str, bool] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()


@dataclass(slots=True)
class ObjectReader:
    """Reads the Durable Objects of all Workers of one config."""

    report: Report
    _foreign: list[tuple[Section, str]] = field(default_factory=list)

    def check_scripts(self, workers: Sequence[str]) -> None:
        """Warn about objects of Workers that are not there, when all of them were read."""
        for item, script in self._foreign:
            if script not in workers:
                item.warn(
                    "script_name",
                    f"is {shown(script)}, which is no Worker here ({', '.join(workers)}): `env` "
                    f"lacks {item.values.get('name')}; give its config too, "
                    "in a list or with another -c",
                )

    def objects(self, of: Callable[[str], Section], worker: str) -> ObjectsConfig:
        """Read the three sections of a Worker; `of` finds the one that holds a key."""
        section = of("durable_objects").section("durable_objects")
        section.warn_unknown(("bindings", "code_update_strategy"))
        strategy = section.section("code_update_strategy")
        strategy.warn_unknown(("mode", "max_delay"))
        mode = strategy.text("mode") or "deferred"
        if mode not in _MODES:
            strategy.not_allowed("mode", " or ".join(map(shown, _MODES)))
        bindings = tuple(self._binding(item, worker) for item in section.sections("bindings"))
        lifecycle = _Lifecycle()
        for item in of("migrations").sections("migrations"):
            lifecycle.migrate(item)
        _read_exports(of("exports").section("exports"), lifecycle, of("migrations"))
        own = [one.class_name for one in bindings if one.script == worker]
        lifecycle.warn_unnamed(section, own)
        return ObjectsConfig(
            bindings=bindings,
            updates_at_once=mode == "immediate",
            sqlite=lifecycle.sqlite,
            moves=tuple(lifecycle.moves),
        )

    def _binding(self, item: Section, worker: str) -> ObjectBinding:
        item.warn_unknown(_BINDING_KEYS)
        cls = item.values.get("class_name")
        given = cls if isinstance(cls, type) and not item.is_file else None
        script, environment = item.text("script_name"), item.text("environment")
        if environment and not script:
            item.wrong(
                "environment",
                f"is {shown(environment)}, and there is no `script_name`",
                says='wrangler: binding should have a "script_name" field if "environment" is '
                "present.",
            )
        elif environment:
            script = f"{script}-{environment}"
        binding = ObjectBinding(
            binding=_required(item, "name"),
            class_name=_required(item, "class_name") if given is None else given.__name__,
            cls=given,
            script=script or worker,
        )
        if binding.script != worker:
            self._foreign.append((item, binding.script))
        return binding


def _required(item: Section, key: str) -> str:
    says = f'wrangler: binding should have a string "{key}" field.'
    if key in item:
        return item.text(key, says=says) or ""
    item.wrong(key, f"is missing: {_WHAT[key]}", says=says)
    return ""


class _Lifecycle:
    """Which classes there are after all migrations, and what became of others."""

    def __init__(self) -> None:
        self.sqlite: dict[str, bool] = {}
        self.moves: list[Move] = []

    def migrate(self, item: Section) -> None:
        """Apply one migration, in wrangler's order."""
        item.warn_unknown(_MIGRATION_KEYS)
        tag = item.text("tag") or item.path
        if "tag" not in item:
            says = f'wrangler: "{item.path}.tag" is a required field.'
            item.wrong("tag", "is missing: a name of this migration's own", says=says)
        for name in item.texts("deleted_classes"):
            self._leave(item, "deleted_classes", name)
            self.moves.append(Move("delete", tag, name))
        for one in item.sections("renamed_classes"):
            source, target = _pair(one, "from"), _pair(one, "to")
            kept = self._leave(item, "renamed_classes", source)
            self.sqlite[target] = kept
            self.moves.append(Move("rename", tag, source, target))
        for one in item.sections("transferred_classes"):
            source, target = _pair(one, "from"), _pair(one, "to")
            self.moves.append(Move("transfer", tag, source, target, _pair(one, "from_script")))
            self.sqlite.setdefault(target, True)
        for key, is_sqlite in (("new_classes", False), ("new_sqlite_classes", True)):
            for name in item.texts(key):
                self._add(item, key, name, is_sqlite=is_sqlite)

    def _leave(self, item: Section, key: str, name: str) -> bool:
        if name not in self.sqlite:
            problem = f"has {shown(name)}, which no migration before has made"
            says = f"wrangler: Cannot apply {key} migration to non-existent class {name}"
            item.wrong(key, problem, says=says)
        return self.sqlite.pop(name, True)

    def _add(self, item: Section, key: str, name: str, *, is_sqlite: bool) -> None:
        if name in self.sqlite:
            problem = f"has {shown(name)}, which a migration before has made already"
            says = f"wrangler: Cannot apply {key} migration to existing class {name}"
            item.wrong(key, problem, says=says)
        self.sqlite[name] = is_sqlite

    def warn_unnamed(self, section: Section, classes: Sequence[str]) -> None:
        """Warn about classes of a file that production would not make objects of."""
        unnamed = [name for name in dict.fromkeys(classes) if name and name not in self.sqlite]
        if section.is_file and unnamed:
            section.warn(
                "bindings",
                f"has {', '.join(unnamed)}, of which production makes no objects until a migration "
                'names it, such as {"tag": "v1", "new_sqlite_classes": '
                f"{shown(unnamed)}}} (Cloudflare, code 10061); here they are kept in SQLite",
            )


def _pair(item: Section, key: str) -> str:
    value = item.text(key)
    if value is None and key not in item:
        item.wrong(key, "is missing: the name of a class, or of a Worker")
    return value or ""


def _read_exports(section: Section, lifecycle: _Lifecycle, top: Section) -> None:
    """Read `exports`, the newer form of migrations: what is the case, not what was done."""
    for name, value in section.values.items():
        if not is_table(value) or value.get("type") != "durable-object":
            continue
        if is_list(top.values.get("migrations")) and top.values["migrations"]:
            says = (
                "wrangler: `migrations` and `exports` are mutually exclusive. Choose one or the "
                "other to declare your Durable Object lifecycle, but not both."
            )
            section.wrong(name, "is a Durable Object, and there are `migrations` too", says=says)
        item = section.section(name)
        state = item.text("state") or "created"
        if state not in _STATES:
            item.not_allowed("state", " or ".join(map(shown, _STATES)))
        elif state in ("created", "expecting-transfer"):
            lifecycle.sqlite[name] = _storage(item, state)
            if state == "expecting-transfer":
                origin = _pair(item, "transfer_from")
                lifecycle.moves.append(Move("transfer", f"exports.{name}", name, name, origin))
        elif state == "deleted":
            lifecycle.moves.append(Move("delete", f"exports.{name}", name))
        elif state == "renamed":
            target = _pair(item, "renamed_to")
            lifecycle.moves.append(Move("rename", f"exports.{name}", name, target))


def _storage(item: Section, state: str) -> bool:
    value = item.values.get("storage")
    if isinstance(value, str) and value in _STORAGES:
        return _STORAGES[value]
    says = (
        f'wrangler: "{item.path}.storage" is required for state "{state}" and must be one of '
        f'"sqlite" and "legacy-kv", but got {shown(value)}'
    )
    item.wrong("storage", f'is {shown(value)}, but must be "sqlite" or "legacy-kv"', says=says)
    return True
