"""A Worker in a config: its name, its code, its flags, its bindings.

A file says all that `wrangler deploy` needs. A mapping in a test may leave out what has one
sensible answer: name, compatibility date and the flag that says it is Python.
"""

from __future__ import annotations

import copy
import math
import os
import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from emulator import dotenv
from emulator.analytics_config import datasets
from emulator.asset_config import AssetsConfig, AssetsOnly, assets
from emulator.compatibility import NAMES as FLAG_NAMES
from emulator.compatibility import NEWEST_DATE, PYTHON, is_date, resolve
from emulator.config_keys import KEPT_AS_WRITTEN, binding_names
from emulator.config_place import place_of_main, place_of_name
from emulator.cron_config import check_cron
from emulator.d1_config import databases
from emulator.email_config import senders
from emulator.kv_config import namespaces
from emulator.queue_config import ignored_options, required
from emulator.r2_config import buckets
from emulator.ratelimit_config import rate_limits
from emulator.section import Range, did_you_mean, is_list, is_table, shown
from emulator.vendored_sdk import FLAG as OWN_SDK
from emulator.vendored_sdk import brings_sdk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.analytics_config import DatasetConfig
    from emulator.d1_config import D1Config
    from emulator.email_config import SenderConfig
    from emulator.kv_config import KvConfig
    from emulator.object_config import ObjectReader, ObjectsConfig
    from emulator.queue_config import Consumer, Producer, QueueReader
    from emulator.r2_config import R2Config
    from emulator.ratelimit_config import RateLimitConfig
    from emulator.section import Report, Section
    from emulator.workflow_config import WorkflowConfig, WorkflowReader
    from emulator.wrangler import Layers

_DEFAULT_NAME: Final = "worker"
_PAGES: Final = "pages_build_output_dir"
_IS_PAGES: Final = (
    "makes this a Pages project, whose Functions are JavaScript: "
    "Workers in Python are what runs here"
)
_SAYS_PAGES: Final = (
    "wrangler: It looks like you've run a Workers-specific command in a Pages project."
)
# As wrangler has it (`isValidName`).
_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_-]*")
_CPU_MS: Final = Range(1, 300_000, "milliseconds")
_SUBREQUESTS: Final = Range(1, 10_000_000)
_SERVICE_KEYS: Final = ("binding", "service", "entrypoint", "props", "environment", "remote")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A binding to another Worker, or to a named entrypoint of it."""

    binding: str
    service: str
    entrypoint: str | None = None
    props: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The `limits` of a Worker; None where that of the plan holds."""

    cpu_ms: int | None = None
    subrequests: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """One Worker as its config has it.

    `main` is an absolute path, or the module or class a mapping has there; `root` is the folder
    of such a path, where the Worker's own imports start. `source` is the config file. `flags` are
    those that are on, `listed_flags` those that the config names. Where `vars` and `secrets` share
    a name, `env` has the secret. `other` holds the remaining sections as they are written,
    `ignored` a code and a text for each option that is set in vain.
    """

    name: str
    main: Path | ModuleType | type
    root: Path | None
    source: Path | None
    compatibility_date: str
    flags: frozenset[str]
    listed_flags: frozenset[str]
    vars: Mapping[str, object]
    secrets: Mapping[str, str]
    producers: tuple[Producer, ...]
    consumers: tuple[Consumer, ...]
    workflows: tuple[WorkflowConfig, ...]
    databases: tuple[D1Config, ...]
    objects: ObjectsConfig
    namespaces: tuple[KvConfig, ...]
    buckets: tuple[R2Config, ...]
    crons: tuple[str, ...]
    services: tuple[Service, ...]
    tails: tuple[str, ...] = ()
    rate_limits: tuple[RateLimitConfig, ...] = ()
    datasets: tuple[DatasetConfig, ...] = ()
    senders: tuple[SenderConfig, ...] = ()
    version_metadata: str | None = None
    limits: Limits
    other: Mapping[str, object]
    ignored: tuple[tuple[str, str], ...]
    assets: AssetsConfig | None = None


@dataclass(slots=True)
class WorkerReader:
    """Reads the Workers of one `load`, and sees to it that their names differ."""

    report: Report
    queues: QueueReader
    workflows: WorkflowReader
    objects: ObjectReader
    folder: Path
    environment: str | None
    _named_by: dict[str, str] = field(default_factory=dict)

    def worker(self, config: Layers) -> WorkerConfig:
        """Read one Worker; wrong values are reported, and stand-ins used for them."""
        source = Path(config.top.where) if config.top.is_file else None
        name = self._name(config)
        main = self._main(config, source)
        folder = source.parent if source else self.folder
        compatibility_date = _compatibility_date(config.of("compatibility_date"))
        queues = config.of("queues").section("queues")
        queues.warn_unknown(("producers", "consumers"))
        _check_binding_names(config)
        variables = _vars(config.of("vars").section("vars"))
        return WorkerConfig(
            name=name,
            main=main,
            root=main.parent if isinstance(main, Path) else None,
            source=source,
            compatibility_date=compatibility_date,
            flags=_with_own_sdk(config, _flags(config, compatibility_date), source),
            listed_flags=frozenset(config.of("compatibility_flags").texts("compatibility_flags")),
            vars=variables,
            secrets=self._secrets(config, source, variables),
            producers=self.queues.producers(queues, name),
            consumers=self.queues.consumers(queues, name),
            workflows=self.workflows.workflows(config.of("workflows"), name),
            databases=databases(config.of("d1_databases"), folder),
            objects=self.objects.objects(config.of, name),
            namespaces=namespaces(config.of("kv_namespaces")),
            assets=assets(
                config.of("assets"),
                folder,
                config.of("compatibility_flags").texts("compatibility_flags"),
                compatibility_date,
                has_worker=main is not AssetsOnly,
            ),
            buckets=buckets(config.of("r2_buckets")),
            crons=_crons(config),
            services=_services(config),
            tails=_tails(config),
            rate_limits=rate_limits(config.of),
            datasets=datasets(config.of("analytics_engine_datasets")),
            senders=senders(config.of("send_email")),
            version_metadata=_version_metadata(config),
            limits=_limits(config),
            other=_other(config),
            ignored=(
                *ignored_options(queues, self.queues.profile),
                *_ignored_remote(config, "d1_databases", "database"),
                *_ignored_remote(config, "kv_namespaces", "namespace"),
                *_ignored_remote(config, "services", "service"),
                *_ignored_remote(config, "r2_buckets", "bucket"),
            ),
        )

    def _name(self, config: Layers) -> str:
        section = config.of("name")
        name = section.text("name") or _DEFAULT_NAME
        if not _NAME.fullmatch(name):
            section.not_allowed("name", "lower-case letters, digits, - and _")
        if self.environment is not None and section is config.top:
            name = f"{name}-{self.environment}"
        if name in self._named_by:
            is_default = "" if "name" in section else ", the default for a config without one"
            problem = f"is {shown(name)}{is_default}, and so is the name of the Worker in "
            section.wrong("name", f"{problem}{self._named_by[name]}; give each its own")
        self._named_by.setdefault(name, section.where)
        return name

    def _main(self, config: Layers, source: Path | None) -> Path | ModuleType | type:
        section = config.of("main")
        main = section.values.get("main")
        if not section.is_file and isinstance(main, ModuleType | type):
            return main
        if not section.is_file and isinstance(main, os.PathLike):
            main = os.fspath(main)
        if "main" not in section and "assets" in config.of("assets"):
            return AssetsOnly
        if "main" not in section and _PAGES in config.of(_PAGES):
            config.of(_PAGES).wrong(_PAGES, _IS_PAGES, says=_SAYS_PAGES)
        elif "main" not in section:
            says = "wrangler: Missing entry-point to Worker script or to assets directory"
            problem = 'is missing: the Python file of the Worker, such as "src/entry.py"'
            section.wrong("main", problem, says=says)
        elif not isinstance(main, str):
            kinds = "a path" if section.is_file else "a path, a module or a class"
            section.not_allowed("main", kinds)
        else:
            return _python_file(section, (source.parent if source else self.folder) / main, source)
        return self.folder

    def _secrets(
        self, config: Layers, source: Path | None, variables: Mapping[str, object]
    ) -> dict[str, str]:
        """Read the files beside the config; with `secrets.required` only what that names."""
        declared = config.of("secrets").section("secrets")
        declared.warn_unknown(("required",))
        required_names = declared.texts("required")
        if source is None:
            return {}
        try:
            found, passed_over = dotenv.read(source.parent, environment=self.environment)
        except dotenv.Unreadable as error:
            self.report.wrong(str(error))
            return {}
        for text in passed_over:
            if text not in self.report.warnings:  # as another Worker of the folder told
                self.report.warnings.append(text)
        if "secrets" not in config.of("secrets"):
            return found
        if missing := [name for name in required_names if name not in found]:
            declared.warn("required", f"has {', '.join(missing)}, missing in .dev.vars and .env")
        return {key: value for key, value in found.items() if key in (*variables, *required_names)}


def _python_file(section: Section, path: Path, source: Path | None) -> Path:
    path = Path(os.path.abspath(path))
    if path.suffix != ".py":
        section.not_allowed("main", "a Python file (.py): Workers in Python are what runs here")
    elif not path.is_file():
        place = section.where if source is None else place_of_main(source, path)
        given = f"{section.at('main')} is {shown(section.values['main'])}"
        section.report.wrong(f"{place}: {given}, but there is no file {path}")
    return path


def _compatibility_date(section: Section) -> str:
    key = "compatibility_date"
    if key not in section:
        if section.is_file:
            line = _line(section, key, shown(NEWEST_DATE))
            section.warn(key, f"is missing, so that the newest known counts: write {line}")
        return NEWEST_DATE
    value = section.values[key]
    if isinstance(value, date):
        _ask_for_quotes(section, key, value)
    elif not isinstance(value, str):
        section.not_allowed(key, "a text, a date as YYYY-MM-DD")
    elif not is_date(value):
        says = (
            f'wrangler: "{key}" field should be a valid ISO-8601 date (YYYY-MM-DD), but got '
            f"{shown(value)}."
        )
        section.not_allowed(key, "a date as YYYY-MM-DD", says=says)
    else:
        # No clock is asked for the day; a year that is far off is a slip of the pen.
        if int(value[:4]) > int(NEWEST_DATE[:4]) + 1:
            section.warn(key, f"is {shown(value)}, long after the newest known, {NEWEST_DATE}")
        return value
    return NEWEST_DATE


def _flags(config: Layers, compatibility_date: str) -> frozenset[str]:
    key = "compatibility_flags"
    section = config.of(key)
    listed = section.texts(key)
    main = config.of("main").values.get("main")
    is_python = isinstance(main, str) and main.endswith(".py")
    if section.is_file and is_python and PYTHON not in listed:
        _ask_for_python(section, listed)
    result = resolve(compatibility_date, listed if PYTHON in listed else (*listed, PYTHON))
    for text in result.refused:
        problem = f"is {shown(listed)}, which the runtime refuses"
        section.wrong(key, problem, says=f"workerd: {text}")
    for name in result.unknown:
        hint = did_you_mean(name, FLAG_NAMES)
        section.warn(key, f"has {shown(name)}, which is not a known flag{hint}")
    for name, instead in result.ignored:
        section.warn(
            key, f"has {shown(name)}, which workers-emulator does not heed: it behaves {instead}"
        )
    return result.flags


def _with_own_sdk(config: Layers, flags: frozenset[str], source: Path | None) -> frozenset[str]:
    """Add what an SDK in `python_modules/` makes of an older date."""
    if OWN_SDK in flags or source is None or not brings_sdk(source.parent):
        return flags
    config.of("compatibility_flags").warn(
        "compatibility_flags",
        f"lacks {OWN_SDK}, and the folder python_modules has Cloudflare's SDK, which "
        "production then imports in place of the older one of this compatibility date. It is used "
        "here, too; list the flag, so that it is where python_modules is missing",
    )
    return flags | {OWN_SDK}


def _ask_for_python(section: Section, listed: tuple[str, ...]) -> None:
    key = "compatibility_flags"
    line = _line(section, key, f"[{', '.join(map(shown, (*listed, PYTHON)))}]")
    # Nothing is hidden by going on: wrangler refuses to deploy such a Worker.
    section.warn(
        key,
        f'lacks "{PYTHON}": write {line} (wrangler: The `python_workers` compatibility flag is '
        "required to use Python.)",
    )


def _ask_for_quotes(section: Section, key: str, value: date) -> None:
    """Report a date as TOML has it, which no config knows what to do with."""
    line = _line(section, key, shown(value.isoformat()))
    section.wrong(key, f"is a date, but must be a text: write {line}")


def _line(section: Section, key: str, value: str) -> str:
    """Return the line to write, in the language of the file."""
    return f"{key} = {value}" if section.where.endswith(".toml") else f'"{key}": {value}'


def _check_binding_names(config: Layers) -> None:
    """Report names that `env` would have twice, in wrangler's words."""
    types: dict[str, list[str]] = {}
    for name, binding_type in binding_names(config.of):
        types.setdefault(name, []).append(binding_type)
    _look_at_identifiers(config, types)
    for name, given in types.items():
        if len(given) > 1:
            different = list(dict.fromkeys(given))
            what = f"multiple {given[0]}" if len(different) == 1 else _in_english(different)
            says = f"wrangler: {name} assigned to {what} bindings."
            problem = "is the name of more than one binding; `env` has one of each"
            config.top.wrong(name, problem, says=says)


def _look_at_identifiers(config: Layers, types: Mapping[str, list[str]]) -> None:
    """Warn of names that cannot be written as members of `env`, which wrangler takes."""
    top = config.top
    for name, given in types.items():
        if name and not name.replace("$", "_").isidentifier():
            top.report.warnings.append(
                f"{place_of_name(top.where, name)}: the {given[0]} binding {shown(name)} has a "
                "name that is no identifier: no code can write `env.` and this name"
            )


def _vars(section: Section) -> dict[str, object]:
    variables: dict[str, object] = {}
    for name, value in section.values.items():
        try:
            variables[name] = _json(value)
        except TypeError:
            if isinstance(value, date):
                _ask_for_quotes(section, name, value)
            else:
                section.not_allowed(name, "a text or another JSON value")
    return variables


def _json(value: object) -> object:
    """Return a copy of a JSON value; raises `TypeError` for anything else."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if is_table(value):
        return {key: _json(item) for key, item in value.items()}
    if is_list(value):
        return [_json(item) for item in value]
    raise TypeError


def _crons(config: Layers) -> tuple[str, ...]:
    triggers = config.of("triggers").section("triggers")
    triggers.warn_unknown(("crons", "events"))
    crons = triggers.texts("crons")
    for cron in crons:
        check_cron(triggers, "crons", cron)
    return crons


def _services(config: Layers) -> tuple[Service, ...]:
    return tuple(_service(item) for item in config.of("services").sections("services"))


def _service(item: Section) -> Service:
    item.warn_unknown(_SERVICE_KEYS)
    item.boolean("remote", default=False)
    says = f'wrangler: "{item.path}" bindings should have a string'
    service = required(item, "service", "the name of the Worker", f'{says} "service" field but got')
    if environment := item.text("environment"):
        service = f"{service}-{environment}"
    return Service(
        binding=required(
            item, "binding", "the name of the Worker on `env`", f'{says} "binding" field but got'
        ),
        service=service,
        entrypoint=item.text("entrypoint"),
        props=_vars(item.section("props")),
    )


def _tails(config: Layers) -> tuple[str, ...]:
    """Read which Workers are told of this one's events, each once."""
    names = (_tail(item) for item in config.of("tail_consumers").sections("tail_consumers"))
    return tuple(dict.fromkeys(name for name in names if name))


def _tail(item: Section) -> str:
    item.warn_unknown(("service", "environment", "namespace"))
    service = item.text("service") or ""
    if "service" not in item:
        item.wrong("service", "is missing: the name of the tail Worker")
    environment = item.text("environment")
    return f"{service}-{environment}" if environment and service else service


def _version_metadata(config: Layers) -> str | None:
    """Read the binding of the version's metadata; None without any."""
    holder = config.of("version_metadata")
    if "version_metadata" not in holder:
        return None
    item = holder.section("version_metadata")
    item.warn_unknown(("binding",))
    says = 'wrangler: binding should have a string "binding" field, but got'
    return required(item, "binding", "the name of the metadata on `env`", says) or None


def _ignored_remote(config: Layers, key: str, what: str) -> Iterator[tuple[str, str]]:
    """Yield a finding's code and text for each binding that is to be a remote one."""
    for item in config.of(key).sections(key):
        if item.values.get("remote") is True:
            text = f'The "remote" field in "{item.path}" has no effect: every {what} is emulated.'
            yield "ignored_option", text


def _limits(config: Layers) -> Limits:
    section = config.of("limits").section("limits")
    section.warn_unknown(("cpu_ms", "subrequests"))
    cpu_ms = section.number("cpu_ms", 0, _CPU_MS)
    subrequests = section.number("subrequests", 0, _SUBREQUESTS)
    return Limits(cpu_ms=int(cpu_ms) or None, subrequests=int(subrequests) or None)


def _other(config: Layers) -> dict[str, object]:
    holders = ((key, config.of(key)) for key in KEPT_AS_WRITTEN)
    return {key: copy.deepcopy(held.values[key]) for key, held in holders if key in held}


def _in_english(words: list[str]) -> str:
    """Join words as wrangler does: `A and B`, `A, B, and C`."""
    if len(words) == 2:
        return " and ".join(words)
    return ", ".join([*words[:-1], f"and {words[-1]}"])
