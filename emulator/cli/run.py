"""`workers-emulator run`: a scenario once, and all there is to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from emulator.cli import run_report
from emulator.cli.app import INTERRUPTED
from emulator.cli.arguments import (
    early_masker,
    emulator_arguments,
    make,
    masker_for,
    read_plan,
    with_plan,
)
from emulator.cli.files import check_files, write
from emulator.cli.interrupts import interruptible, preparing
from emulator.cli.notices import config_warnings
from emulator.cli.options import Setting, of_scenario_or_replay
from emulator.cli.performance import perform
from emulator.cli.run_report import Ending
from emulator.cli.scenario import load
from emulator.cli.streams import Gate
from emulator.cli.terminal import say

if TYPE_CHECKING:
    from emulator.cli.refusal import Refusal
    from emulator.cli.scenario import ScenarioFile
    from emulator.emulator import Emulator
    from emulator.trace import Trace


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a run's results go, besides the terminal."""

    trace: str | None
    html: str | None

    def check(self, path: Path) -> None:
        """Raise `Refusal` if one of the files cannot be written."""
        check_files({"--trace": self.trace, "--html": self.html}, kept=path)

    def write(self, trace: Trace) -> Refusal | None:
        """Write the files; return what went wrong after all."""
        lines = trace.to_jsonl().encode("ascii")
        return write(
            {
                "--trace": (self.trace, lambda name: Path(name).write_bytes(lines)),
                "--html": (self.html, trace.to_html),
            }
        )


@click.command("run")
@click.option(
    "--faults",
    metavar="PLAN",
    multiple=True,
    help='A fault plan, such as "batch.emails#1:lose_ack"; several faults are separated by ";".',
)
@click.option("--trace", metavar="FILE", help="Write the events there, a JSON object a line.")
@click.option("--html", metavar="FILE", help="Write the timeline there, as a web page.")
@click.option("as_json", "--json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Repeat a recording of `workers-emulator dev --record FILE` in the place of a scenario.",
)
@click.option(
    "--as-test", is_flag=True, help="With --replay: run nothing, print a pytest test of it."
)
@of_scenario_or_replay
@click.pass_context
def command(
    ctx: click.Context,
    /,
    path: Path | None,
    faults: tuple[str, ...],
    trace: str | None,
    html: str | None,
    as_json: bool,
    replay: Path | None,
    as_test: bool,
    **options: Any,
) -> None:
    """Run `async def scenario(emulator)` of a Python file, and print what happened.

    With --replay FILE, repeat what came in to a development server, and compare the answers.

    The file may set CONFIG (a wrangler config: a path or a mapping) and EMULATOR (a mapping of
    further arguments of Emulator).

    Exit code: 0 passed; 1 the scenario failed, or there are findings that fail a test; 2 it could
    not be run; 130 interrupted. For a replay 1 also if an answer differs, or a Worker raised.
    """
    outputs = Outputs(trace, html)
    if replay is not None or as_test:
        from emulator.cli import replay as replays

        setting = replays.setting(path, replay, options)
        if as_test:
            if faults or trace or html or as_json:
                text = "--as-test runs nothing: leave out --faults, --trace, --html and --json"
                raise click.UsageError(text)
            replays.print_as_test(setting)
            return
        text, refusal, ending = replays.run(setting, outputs, read_plan(faults), as_json=as_json)
        _end(ctx, text, refusal, ending)
    if path is None:
        raise click.MissingParameter(ctx=ctx, param=_argument(ctx))
    setting = Setting(path, **options)
    outputs.check(setting.path)
    plan = read_plan(faults)
    with interruptible(), Gate(aside=as_json) as gate, config_warnings(gate):
        gate.masker = early_masker(setting)
        with preparing(setting.timeout):
            file = load(setting.path, setting.scenario)
        arguments = with_plan(emulator_arguments(file, setting), plan)
        gate.masker = masker_for(arguments)
        with make(arguments, setting.timeout) as emulator:
            gate.open(emulator.trace.masker)
            error = _perform(file, emulator, setting)
            run = run_report.look_at(emulator, file, error, setting, plan)
            # Before it is closed, which loses what still goes on.
            text = run_report.to_json(run) if as_json else run_report.render(run)
            refusal = outputs.write(emulator.trace)
    _end(ctx, text, refusal, run.ending)


def _argument(ctx: click.Context) -> click.Parameter:
    return next(one for one in ctx.command.params if one.name == "path")


def _end(ctx: click.Context, text: str, refusal: Refusal | None, ending: Ending) -> NoReturn:
    # After the files, since whoever reads this may stop reading.
    say(text, end="")
    if refusal is not None:
        raise refusal
    ctx.exit({Ending.PASSED: 0, Ending.FAILED: 1, Ending.INTERRUPTED: INTERRUPTED}[ending])


def _perform(file: ScenarioFile, emulator: Emulator, setting: Setting) -> BaseException | None:
    try:
        return perform(file.scenario, emulator, timeout=setting.timeout)
    except KeyboardInterrupt as interrupt:
        return interrupt
