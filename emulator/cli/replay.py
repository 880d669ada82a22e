"""`workers-emulator run --replay FILE`: a recording in the place of a scenario.

1. `--config` wins over the configs of the recording, whose paths start at its folder; so do
   `--env`, `--profile` and `--seed`.
2. The recording is read, and its Workers are looked for, before anything runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from warnings import catch_warnings

import click

from emulator.cli import run_report
from emulator.cli.arguments import given_configs, make, masker_of
from emulator.cli.interrupts import interruptible
from emulator.cli.notices import config_warnings
from emulator.cli.options import Setting
from emulator.cli.performance import perform
from emulator.cli.refusal import Refusal, explained
from emulator.cli.scenario import ScenarioFile
from emulator.cli.streams import Gate
from emulator.cli.terminal import say
from emulator.clock import moment
from emulator.deployment import deploy
from emulator.errors import ConfigError, RecordingError, StateError
from emulator.recording.as_test import print_test
from emulator.recording.entries import Action, Request, Socket
from emulator.recording.holdings import holdings
from emulator.recording.masking import Filler
from emulator.recording.reading import read
from emulator.recording.replay import Replay, check_workers
from emulator.recording.start_state import left_out, restore
from emulator.wrangler import FILE_NAMES, find

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.cli.run import Outputs
    from emulator.cli.run_report import Ending
    from emulator.config import Settings
    from emulator.emulator import Emulator
    from emulator.faults import Fault
    from emulator.recording.entries import Recording

_USUAL: Final = {"profile": "production", "plan": "paid"}


def setting(path: Path | None, replay: Path | None, options: Mapping[str, Any]) -> Setting:
    """Return the setting of a replay; raises `click.UsageError` for options that do not go."""
    if replay is None:
        raise click.UsageError("--as-test prints a test of a recording: give it with --replay FILE")
    if path is not None:
        raise click.UsageError(f"--replay runs a recording, not a scenario: leave out {path}")
    if options.get("scenario") is not None:
        raise click.UsageError(
            "--scenario chooses a function of a scenario file; --replay has none"
        )
    return Setting(replay, **options, replays=True)


def run(
    setting: Setting, outputs: Outputs, plan: tuple[Fault, ...], *, as_json: bool
) -> tuple[str, Refusal | None, Ending]:
    """Repeat a recording; return the report, what went wrong with files, and how it ended."""
    outputs.check(setting.path)
    recording = _read(setting.path)
    configs = _configs(setting, recording)
    environment = _environment(setting, recording)
    with interruptible(), Gate(aside=as_json) as gate, config_warnings(gate), _folder() as folder:
        gate.masker = masker_of(configs, environment)
        settings = _settings(setting, recording, configs)
        replay = Replay(recording, planned=bool(plan))
        replay.notes += _notes(recording, settings)
        arguments = {
            **_options(setting, recording),
            "config": configs,
            "base": Path.cwd(),
            "start": moment(recording.head.origin),
            "faults": plan,
            "state": _state(recording, Path(folder), settings),
        }
        file = ScenarioFile(setting.path, "replay", replay, configs, {})
        with make(arguments, setting.timeout) as emulator:
            gate.open(emulator.trace.masker)
            error = _perform(replay, emulator, setting)
            run = run_report.look_at(emulator, file, error, setting, plan, replay)
            text = run_report.to_json(run) if as_json else run_report.render(run)
            return text, outputs.write(emulator.trace), run.ending


def print_as_test(setting: Setting) -> None:
    """Print a recording as a test, and on stderr what the test lacks of it."""
    recording = _read(setting.path)
    configs = _configs(setting, recording)
    settings = _settings(setting, recording, configs)
    options = {
        name: value
        for name, value in _options(setting, recording).items()
        if name != "seed" and value not in (None, _USUAL.get(name))
    }
    if setting.seed is not None:
        options["seed"] = setting.seed
    named = _named(configs)
    title = setting.path.stem
    with catch_warnings(action="ignore"):  # of the config, which were shown
        held = holdings(recording, settings, options)
    printed = print_test(
        recording, settings, title=title, configs=named, options=options, held=held
    )
    say(printed.code, end="")
    notes = [*recording.notes, *_unfilled(recording, settings), *printed.problems]
    if named:
        notes.append(
            f"{', '.join(named)}: seen from the working directory, and right in a file that lies "
            "there; in one elsewhere correct `config`, whose paths start at the file's folder"
        )
    for note in notes:
        say(f"note: {note}", aside=True)


def _perform(replay: Replay, emulator: Emulator, setting: Setting) -> BaseException | None:
    try:
        return perform(replay, emulator, timeout=setting.timeout)
    except KeyboardInterrupt as interrupt:
        return interrupt


def _folder() -> TemporaryDirectory[str]:
    """A folder for the state, which only its owner can read."""
    return TemporaryDirectory(prefix="workers-emulator-")


def _read(path: Path) -> Recording:
    try:
        return read(path)
    except RecordingError as error:
        raise Refusal(f"--replay: {error}") from None


def _configs(setting: Setting, recording: Recording) -> list[Path]:
    if setting.configs:
        return given_configs(setting.configs)
    folder = setting.path.absolute().parent
    paths = [Path(os.path.normpath(folder / config)) for config in recording.head.configs]
    for path in paths:
        if not path.is_file():
            raise Refusal(
                f"--replay: the recording is of {path}, which is not there; give the config of "
                "its Worker with --config"
            )
    return paths


def _environment(setting: Setting, recording: Recording) -> str | None:
    recorded: str | None = recording.head.facts.get("environment")
    return setting.environment or recorded


def _options(setting: Setting, recording: Recording) -> dict[str, Any]:
    facts = recording.head.facts
    return {
        "environment": _environment(setting, recording),
        "profile": setting.profile or facts.get("profile", _USUAL["profile"]),
        "plan": facts.get("plan", _USUAL["plan"]),
        "seed": recording.head.seed if setting.seed is None else setting.seed,
    }


def _settings(setting: Setting, recording: Recording, configs: list[Path]) -> Settings:
    options = _options(setting, recording)
    del options["seed"]
    try:
        settings = deploy(configs, **options).settings
        check_workers(recording, [worker.name for worker in settings.workers])
    except ConfigError as error:
        raise Refusal(explained(error)) from None
    except (RecordingError, TypeError, ValueError) as error:
        raise Refusal(f"--replay: {setting.path}: {error}") from None
    return settings


def _state(recording: Recording, folder: Path, settings: Settings) -> Path | None:
    try:
        entries = [dict(entry) for entry in recording.state]
        return restore(entries, folder, Filler.of(settings))
    except (RecordingError, StateError, OSError) as error:
        raise Refusal(f"--replay: {error}") from None


def _notes(recording: Recording, settings: Settings) -> Iterable[str]:
    """Yield what whoever looks at the replay should know."""
    yield from recording.notes
    for what in left_out(dict(entry) for entry in recording.state):
        yield f"the recording began with state that it does not hold: {what}"
    for worker in settings.workers:
        date = recording.head.workers.get(worker.name)
        if date is not None and date != worker.compatibility_date:
            yield (
                f"the compatibility date of {worker.name} was {date}, and is "
                f"{worker.compatibility_date}"
            )
    yield from _unfilled(recording, settings)


def _unfilled(recording: Recording, settings: Settings) -> Iterable[str]:
    """Yield which credentials no variable has."""
    came = [one for one in recording.entries if isinstance(one, Request | Socket | Action)]
    values = [text for one in came for pair in one.headers for text in pair]
    for name in Filler.of(settings).left(values):
        yield f"[secret {name}] in headers stays as it is: no variable has that name"


def _named(configs: list[Path]) -> list[str]:
    """The configs as a test names them: not at all where it finds the one by itself."""
    if len(configs) == 1 and configs[0].name in FILE_NAMES:
        nearest = find(Path.cwd())
        if nearest is not None and nearest.resolve() == configs[0].resolve():
            return []
    return [Path(os.path.relpath(path)).as_posix() for path in configs]
