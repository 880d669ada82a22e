"""`workers-emulator check`: what is wrong with configs and handlers, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.arguments import given_configs, nearest_config
from emulator.cli.interrupts import interruptible
from emulator.cli.options import config_option, environment_option, profile_option, stand_in_option
from emulator.cli.problems import find_problems
from emulator.cli.streams import Gate
from emulator.cli.terminal import lines, say
from emulator.secrets import Masker
from emulator.sweeping.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.cli.problems import Verdict
    from emulator.kernel import Profile


@click.command("check")
@config_option
@environment_option
@profile_option
@stand_in_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    configs: tuple[str, ...],
    environment: str | None,
    profile: Profile | None,
    stand_ins: tuple[str, ...],
) -> None:
    """Check wrangler configs and the code they name, and list all that is wrong.

    Exit code: 0 no problem; 1 problems; 2 no config; 130 interrupted.
    """
    paths = given_configs(configs) or [nearest_config(Path.cwd())]
    with interruptible(), Gate(aside=True) as gate:
        verdict = find_problems(
            paths,
            profile=profile or "production",
            environment=environment,
            stand_ins=stand_ins,
        )
        gate.masker = masker = Masker(verdict.secrets)
        if verdict.loads:
            gate.open(masker)
    say(masker("\n".join(_report(verdict))))
    ctx.exit(1 if verdict.problems else 0)


def _report(verdict: Verdict) -> Iterator[str]:
    for text in verdict.problems:
        yield _told(text)
    for text in verdict.warnings:
        yield f"warning: {_told(text)}"
    if verdict.problems or verdict.warnings:
        yield ""
    for worker, handlers in verdict.handlers.items():
        yield f"{worker}: {', '.join(handlers) or 'no handlers'}"
    yield _verdict(verdict)


def _told(text: str) -> str:
    return lines(text).replace("\n", "\n    ")


def _verdict(verdict: Verdict) -> str:
    warnings = f", {count(len(verdict.warnings), 'warning')}" if verdict.warnings else ""
    if not verdict.problems:
        return click.style(f"no problems{warnings}", fg="green")
    return click.style(f"{count(len(verdict.problems), 'problem')}{warnings}", fg="red")
