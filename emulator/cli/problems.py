"""What `check` lists: all that is wrong with configs and with the code of their Workers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.cli.refusal import explained
from emulator.config import examine
from emulator.deployment import Deployment
from emulator.emulator import START
from emulator.errors import WorkerLoadError
from emulator.flaws import (
    binding_flaws,
    cron_flaws,
    handler_flaws,
    none_flaws,
    object_flaws,
    option_flaws,
    workflow_flaws,
)
from emulator.platform import Platform, secrets_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from emulator.config import Settings
    from emulator.flaws import Flaw
    from emulator.isolate import Worker
    from emulator.kernel import Profile

_OF_CODE = (handler_flaws, cron_flaws, workflow_flaws, object_flaws)


@dataclass(slots=True)
class Verdict:
    """What was found: problems, warnings and, for each Worker that loads, its handlers.

    `loads` says whether the code of all Workers could be imported. A text may have several lines.
    """

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    handlers: dict[str, list[str]] = field(default_factory=dict)
    secrets: list[tuple[str, str]] = field(default_factory=list)
    loads: bool = True

    def joined(self, other: Verdict) -> Verdict:
        """Return a verdict on what both are about."""
        return Verdict(
            self.problems + other.problems,
            self.warnings + other.warnings,
            self.handlers | other.handlers,
            self.secrets + other.secrets,
            self.loads and other.loads,
        )


def find_problems(
    configs: Sequence[Path],
    *,
    profile: Profile,
    environment: str | None,
    stand_ins: Collection[str],
) -> Verdict:
    """Read the configs, load the code of each Worker, and return all that is wrong.

    `stand_ins` are the names of bindings that tests give.
    """
    examined = examine(list(configs), profile=profile, environment=environment)
    if examined.settings is None and len(configs) > 1:
        # One of them cannot be read; what is wrong with each of the others can still be told.
        verdicts = (
            find_problems([c], profile=profile, environment=environment, stand_ins=stand_ins)
            for c in configs
        )
        return reduce(Verdict.joined, verdicts)
    verdict = Verdict()
    verdict.problems += map(_shortened, examined.problems)
    verdict.warnings += map(_shortened, examined.warnings)
    if examined.settings is not None:
        verdict.secrets = secrets_of(examined.settings)
        _look_at_code(verdict, examined.settings, profile, stand_ins)
    return verdict


def _look_at_code(
    verdict: Verdict, settings: Settings, profile: Profile, stand_ins: Collection[str]
) -> None:
    platform = Platform(
        Deployment(settings),
        start=START,
        seed=0,
        faults=(),
        profile=profile,
        state=None,
        outbound="deny",
        bindings={},
        time_in_tests=False,
        load_code=False,
    )
    declared: dict[str, None] = {}
    try:
        for worker in platform.workers.values():
            _look_at(verdict, worker, stand_ins)
            declared |= dict.fromkeys(worker.absent)
        if verdict.loads:
            verdict.problems += _of_services(platform)
            _look_at_tails(verdict, platform)
    finally:
        platform.close()
    for name in stand_ins:
        if name not in declared:
            verdict.warnings.append(f"--stand-in: no Worker lacks a binding {name}")


def _look_at(verdict: Verdict, worker: Worker, stand_ins: Collection[str]) -> None:
    main = worker.config.main
    if isinstance(main, Path) and main.suffix == ".py" and main.is_file():
        try:
            found = list(chain.from_iterable(flaws(worker) for flaws in _OF_CODE))
        except WorkerLoadError as error:
            verdict.loads = False
            verdict.problems.append(f"{_source(worker)}: {explained(error)}")
        else:
            verdict.handlers[worker.name] = worker.script.handlers
            verdict.problems += _told(worker, found)
            verdict.warnings += _told(worker, none_flaws(worker))
    absent = (flaw for name, flaw in binding_flaws(worker) if name not in stand_ins)
    verdict.problems += _told(worker, absent)
    verdict.warnings += _told(worker, option_flaws(worker))


def _of_services(platform: Platform) -> Iterator[str]:
    """Yield what is wrong with the entrypoints that service bindings name."""
    for worker in platform.workers.values():
        try:
            platform.services.check(worker)
        except WorkerLoadError as error:
            yield f"{_source(worker)}: {worker.name}: {error}"


def _look_at_tails(verdict: Verdict, platform: Platform) -> None:
    """Look at who tails whom: a Worker whose config was not given may be elsewhere, on purpose."""
    for worker in platform.workers.values():
        for code, message in platform.tails.problems(worker):
            line = f"{_source(worker)}: {worker.name}: {message}"
            if code == "missing_binding":
                verdict.warnings.append(f"{line} here; give its config with --config")
            else:
                verdict.problems.append(line)


def _told(worker: Worker, flaws: Iterable[Flaw]) -> Iterator[str]:
    for flaw in flaws:
        place = flaw.location.relative_to(Path.cwd()) if flaw.location else _source(worker)
        yield f"{place}: {worker.name}: {flaw.message}"


def _source(worker: Worker) -> str:
    return _shortened(str(worker.config.source))


def _shortened(text: str) -> str:
    """A line with the file it starts with as it is seen from the working directory."""
    return text.removeprefix(f"{Path.cwd()}{os.sep}")
