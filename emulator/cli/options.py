"""Options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from emulator.cli.interrupts import HAS_TIME_LIMIT
from emulator.cli.refusal import Refusal
from emulator.kernel import Profile
from emulator.shell import quoted

_F = TypeVar("_F", bound=Callable[..., Any])


class GivenPath(click.Path):
    """A path; an empty text is none, although `Path("")` is the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fails for an empty text."""
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


class Seconds(click.FloatRange):
    """A span of time; what is no number, or without an end, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds; fails for `nan` and `inf`."""
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


@dataclass(frozen=True, slots=True)
class Setting:
    """What the command line says of the scenario and its emulator."""

    path: Path
    scenario: str | None = None
    configs: tuple[str, ...] = ()
    environment: str | None = None
    profile: str | None = None
    seed: int | None = None
    timeout: float | None = None
    replays: bool = False

    def command(self) -> str:
        """Return the command that runs the scenario in this setting, without faults."""
        path = quoted(str(self.path))
        given = (
            ("--scenario", self.scenario),
            *(("--config", config) for config in self.configs),
            ("--env", self.environment),
            ("--profile", self.profile),
            ("--seed", self.seed),
        )
        options = [f"{name} {quoted(str(value))}" for name, value in given if value is not None]
        subject = f"--replay {path}" if self.replays else path
        return " ".join(("workers-emulator run", subject, *options))


config_option = click.option(
    *("-c", "--config", "configs"),
    metavar="FILE",
    multiple=True,
    help="A wrangler config; several for several Workers. By default the nearest wrangler.jsonc, "
    "wrangler.json or wrangler.toml.",
)
environment_option = click.option(
    *("-e", "--env", "environment"),
    metavar="NAME",
    help="A section of `env` in the config.",
)
stand_in_option = click.option(
    "--stand-in",
    "stand_ins",
    metavar="NAME",
    multiple=True,
    help="A binding that is not emulated and that the tests give; it is no problem then.",
)
profile_option = click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    help="The documented service, or the local simulator with its known bugs.",
)


def of_scenario(command: _F) -> _F:
    """Give a command the argument and the options of a scenario and its emulator."""
    return _of_scenario(command, required=True)


def of_scenario_or_replay(command: _F) -> _F:
    """The same, for a command that may do something else than run a scenario."""
    return _of_scenario(command, required=False)


def _of_scenario(command: _F, *, required: bool) -> _F:
    kind: Any = click.Path(path_type=Path)
    for decorate in reversed(
        (
            click.argument("path", metavar="SCENARIO.py", type=kind, required=required),
            click.option(
                "--scenario", metavar="NAME", help="The function to run (default: scenario)."
            ),
            config_option,
            environment_option,
            profile_option,
            click.option(
                *("--seed", "seed"),
                type=int,
                metavar="N",
                help="The seed of every choice the emulator makes (default: 0).",
            ),
            click.option(
                "--timeout",
                type=click.FloatRange(min=0, min_open=True),
                metavar="SECONDS",
                callback=_check_timeout,
                help="The real time a run may take; without it a Worker that never ends runs on "
                "until Ctrl-C.",
            ),
        )
    ):
        command = decorate(command)
    return command


def _check_timeout(
    ctx: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not HAS_TIME_LIMIT:
        raise Refusal("--timeout needs SIGALRM, which this system does not have")
    return value
