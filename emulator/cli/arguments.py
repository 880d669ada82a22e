"""What a command makes its emulators of: the command line over the scenario file.

1. `--config` wins over the file's `CONFIG`, which wins over the nearest wrangler file above it.
2. Other options win over the file's `EMULATOR`; `--faults` adds to its faults, and a fault that
   both name is planned once.
3. Paths on the command line start at the working directory, those in the file at its folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator import dotenv
from emulator.cli.interrupts import preparing
from emulator.cli.refusal import Refusal, explained
from emulator.deployment import ARGUMENTS as DEPLOYED_BY
from emulator.deployment import Deployments
from emulator.emulator import Emulator
from emulator.errors import ConfigError, PlanError, StateError, WorkerLoadError
from emulator.faults import Fault, Faults, parse_plan
from emulator.location import raised_at
from emulator.secrets import Masker
from emulator.wrangler import FILE_NAMES, find

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from emulator.cli.options import Setting
    from emulator.cli.scenario import ScenarioFile


def emulator_arguments(file: ScenarioFile, setting: Setting) -> dict[str, Any]:
    """Return the arguments of the emulators, `config` among them; raises `Refusal`."""
    arguments = {"wall_clock": "test", "base": file.folder, **file.arguments}
    arguments["config"] = _config(file, setting.configs)
    for name in ("environment", "profile", "seed"):
        given = getattr(setting, name)
        if given is not None:
            arguments[name] = given
    state = arguments.get("state")
    if isinstance(state, str | os.PathLike):
        arguments["state"] = file.folder / os.fspath(state)
    return arguments


def with_plan(arguments: Mapping[str, Any], plan: Iterable[Fault]) -> dict[str, Any]:
    """Return the arguments with these faults added to their own."""
    try:
        own = tuple(_faults(arguments.get("faults", ())))
    except (PlanError, TypeError) as error:
        raise Refusal(f"the faults of EMULATOR: {error}") from None
    return {**arguments, "faults": tuple(dict.fromkeys((*own, *plan)))}


def read_plan(texts: Iterable[str]) -> tuple[Fault, ...]:
    """Read the plan of the command line; raises `Refusal` with what is allowed."""
    try:
        return Faults(lambda: 0, texts).plan
    except PlanError as error:
        raise Refusal(f"--faults: {error}") from None


def make(
    arguments: Mapping[str, Any], timeout: float | None, deployments: Deployments | None = None
) -> Emulator:
    """Make an emulator; raises `Refusal` for what the user did wrong, with the user's lines.

    `timeout` is the real time, in seconds, that importing the Workers may take; what is read of
    config and code is kept in `deployments`.
    """
    deployments = deployments or Deployments()
    read = {name: arguments[name] for name in DEPLOYED_BY if name in arguments}
    try:
        with preparing(timeout):
            return Emulator(**{**arguments, "config": deployments.get(arguments["config"], **read)})
    except (ConfigError, PlanError, StateError, WorkerLoadError) as error:
        raise Refusal(explained(error)) from None
    except (TypeError, ValueError) as error:
        if raised_at(error) is not None:
            raise
        problem = f"{type(error).__name__}: {error}"
        raise Refusal(f"an argument of Emulator is wrong: {problem}") from None


def early_masker(setting: Setting) -> Masker:
    """Return what masks the secrets of the config that is probably meant, before it is read."""
    configs = [Path(name).absolute() for name in setting.configs]
    nearest = find(setting.path.absolute().parent)
    return masker_of([*configs, *([nearest] if nearest else [])], setting.environment)


def masker_for(arguments: Mapping[str, Any]) -> Masker:
    """Return what masks the secrets of a config, whether or not the config is right."""
    config, base = arguments["config"], arguments["base"]
    items = config if isinstance(config, list | tuple) else [config]
    paths = [base / os.fspath(item) for item in items if isinstance(item, str | os.PathLike)]
    return masker_of(paths, arguments.get("environment"))


def masker_of(configs: Iterable[Path], environment: Any) -> Masker:
    """Return what masks the secrets beside these configs."""
    found: list[tuple[str, str]] = []
    for folder in dict.fromkeys(path.parent for path in configs):
        try:
            found += dotenv.secrets(folder, environment=environment).items()
        except (dotenv.Unreadable, OSError):
            continue  # Reading the config says so.
    return Masker(found)


def nearest_config(folder: Path) -> Path:
    """Return the nearest wrangler config at or above a folder; raises `Refusal`."""
    found = find(folder)
    if found is None:
        raise Refusal(
            f"there is no {', '.join(FILE_NAMES[:-1])} or {FILE_NAMES[-1]} at or above {folder}; "
            "give one with --config"
        )
    return found


def given_configs(names: Iterable[str]) -> list[Path]:
    """Return the configs of the command line, files or folders, as absolute paths of files.

    Raises `Refusal` for what is not there.
    """
    return [_given_config(Path(name).absolute()) for name in names]


def _given_config(path: Path) -> Path:
    """A file, or that of a folder."""
    if path.is_file():
        return path
    found = find(path) or find(Path.cwd())
    if path.is_dir() and found is not None and found.parent == path:
        return found
    hint = f"; the nearest is {found}" if found else ""
    what = "no wrangler config in" if path.is_dir() else "no file"
    raise Refusal(f"--config: there is {what} {path}{hint}")


def _config(file: ScenarioFile, names: tuple[str, ...]) -> Any:
    if names:
        paths = given_configs(names)
        return paths if len(paths) > 1 else paths[0]
    return nearest_config(file.folder) if file.config is None else file.config


def _faults(faults: Any) -> Iterator[Fault]:
    for fault in (faults,) if isinstance(faults, str | Fault) else faults:
        yield from parse_plan(str(fault))
