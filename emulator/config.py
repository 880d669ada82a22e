"""Settings of a simulation: wrangler configs, as files or mappings, read into checked dataclasses.

    load ─┬─ wrangler.py       files and environments
          ├─ config_keys.py    which keys there are
          ├─ worker_config.py  a Worker ─── compatibility.py, dotenv.py
          ├─ queue_config.py   its queues
          ├─ workflow_config.py  its Workflows
          ├─ object_config.py  its Durable Objects
          ├─ d1_config.py      its D1 databases
          ├─ kv_config.py      its KV namespaces
          ├─ r2_config.py      its R2 buckets
          └─ section.py        values with their types and places; the report of what is wrong

All that is wrong is told in one `ConfigError`, a line each; what is suspicious is a
`ConfigWarning`. Nothing of the user's is imported, and neither the shell's environment nor the
date of the day changes the result.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from emulator.d1_config import D1Config, Migrations
from emulator.kv_config import KvConfig
from emulator.object_config import ObjectBinding, ObjectReader, ObjectsConfig
from emulator.queue_config import Consumer, Plan, Producer, Profile, QueueConfig, QueueReader
from emulator.r2_config import R2Config
from emulator.section import ConfigWarning, Report, Section, is_list, is_table, shown
from emulator.worker_config import Limits, Service, WorkerConfig, WorkerReader
from emulator.workflow_config import WorkflowConfig, WorkflowReader
from emulator.wrangler import find, layers, read

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ConfigSource",
    "ConfigWarning",
    "Consumer",
    "D1Config",
    "Examination",
    "KvConfig",
    "Limits",
    "Migrations",
    "ObjectBinding",
    "ObjectsConfig",
    "Plan",
    "Producer",
    "Profile",
    "QueueConfig",
    "R2Config",
    "Service",
    "Settings",
    "WorkerConfig",
    "WorkflowConfig",
    "examine",
    "find",
    "load",
]

ConfigSource: TypeAlias = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All Workers of a simulation, and all queues that any of them names."""

    workers: tuple[WorkerConfig, ...]
    queues: tuple[QueueConfig, ...]
    plan: Plan = "paid"


def load(
    config: ConfigSource | Sequence[ConfigSource],
    *,
    base: Path | None = None,
    profile: Profile = "production",
    plan: Plan = "paid",
    queue_settings: Mapping[str, object] | None = None,
    environment: str | None = None,
) -> Settings:
    """Read a config, or a list of them: a path of a wrangler config or a mapping of its shape.

    Paths, a mapping's `main` among them, are relative to `base`, by default the working
    directory; those in a file are relative to the file. `profile` sets defaults and ranges,
    `plan` the retention, `queue_settings` what production keeps on the queue (seconds, by the
    names of the REST API); `environment` chooses an `env` section, the same in each config.

    Raises `ConfigError` with all that is wrong; issues a `ConfigWarning` for each thing that is
    suspicious.
    """
    report = Report()
    settings = _read(report, config, base, profile, plan, queue_settings, environment)
    report.close()
    assert settings is not None, "what cannot be read was reported"
    return settings


@dataclass(frozen=True, slots=True)
class Examination:
    """What a config says, what is wrong with it and what is suspicious, a line each.

    `settings` have stand-ins for wrong values; they are None where a config cannot be read at all.
    """

    settings: Settings | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def lacks_environment(configs: Sequence[Path], environment: str) -> bool:
    """Whether no config has this section of `env`; False where one cannot be read."""
    for path in configs:
        top = read(path, Report())
        if top is None or environment in top.section("env"):
            return False
    return True


def examine(
    config: ConfigSource | Sequence[ConfigSource],
    *,
    base: Path | None = None,
    profile: Profile = "production",
    environment: str | None = None,
) -> Examination:
    """Read a config as `load` does, and return what is wrong instead of raising it."""
    report = Report()
    settings = _read(report, config, base, profile, "paid", None, environment)
    return Examination(settings, tuple(report.problems), tuple(report.warnings))


def _read(
    report: Report,
    config: ConfigSource | Sequence[ConfigSource],
    base: Path | None,
    profile: Profile,
    plan: Plan,
    queue_settings: Mapping[str, object] | None,
    environment: str | None,
) -> Settings | None:
    _check_arguments(report, profile, plan, queue_settings)
    folder = Path.cwd() if base is None else base.absolute()
    tops = list(_sections(config, folder, report))
    if report.problems:
        return None
    queues = QueueReader(profile, plan, report)
    workflows = WorkflowReader(report)
    objects = ObjectReader(report)
    reader = WorkerReader(report, queues, workflows, objects, folder, environment)
    workers = tuple(reader.worker(layers(top, environment)) for top in tops)
    names = [worker.name for worker in workers]
    workflows.check_scripts(names)
    objects.check_scripts(names)
    return Settings(workers=workers, queues=queues.queues(queue_settings), plan=plan)


def _check_arguments(report: Report, profile: object, plan: object, queue_settings: object) -> None:
    for name, value, choices in (
        ("profile", profile, get_args(Profile)),
        ("plan", plan, get_args(Plan)),
    ):
        if value not in choices:
            allowed = " or ".join(map(shown, choices))
            report.wrong(f"{name} is {shown(value)}, but must be {allowed}")
    if queue_settings is not None and not is_table(queue_settings):
        allowed = 'a mapping such as {"emails": {"delivery_delay": 30}}'
        report.wrong(f"queue_settings is {shown(queue_settings)}, but must be {allowed}")


def _sections(config: object, folder: Path, report: Report) -> Iterator[Section]:
    """Yield the top level of each config; what is none, or cannot be read, is reported."""
    items = {f"config[{i}]": one for i, one in enumerate(config)} if is_list(config) else None
    if items is not None and not items:
        report.wrong("config is an empty list; give at least one Worker")
    for where, item in ({"config": config} if items is None else items).items():
        if is_table(item):
            yield Section(item, where, "", report, is_file=False)
        elif isinstance(item, str | os.PathLike):
            section = read(folder / os.fspath(item), report)
            if section is not None:
                yield section
        else:
            allowed = "a path of a wrangler config, a mapping of the same shape, or a list of these"
            report.wrong(f"{where} is {shown(item)}, but must be {allowed}")
