"""`workers-emulator sweep`: a scenario once under each fault that can strike it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.app import INTERRUPTED
from emulator.cli.arguments import early_masker, emulator_arguments, make, masker_for, with_plan
from emulator.cli.files import STDOUT, check_files, write
from emulator.cli.interrupts import interruptible, preparing
from emulator.cli.notices import config_warnings
from emulator.cli.options import Setting, of_scenario
from emulator.cli.performance import perform
from emulator.cli.progress import progress
from emulator.cli.refusal import Refusal
from emulator.cli.scenario import ARGUMENTS, load
from emulator.cli.streams import Gate
from emulator.cli.terminal import say
from emulator.deployment import Deployments
from emulator.errors import PlanError
from emulator.sweeping.collection import Collections
from emulator.sweeping.observe import observe, release
from emulator.sweeping.run import REFUSED
from emulator.sweeping.search import Search
from emulator.sweeping.text import unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator import Emulator
    from emulator.cli.scenario import Scenario, ScenarioFile
    from emulator.sweeping.outcome import Outcome, Plan
    from emulator.sweeping.report import SweepReport


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the report goes, besides the terminal; `json` may be stdout."""

    json: str | None
    html: str | None
    junit: str | None

    @property
    def is_for_a_program(self) -> bool:
        """Whether stdout is for the JSON alone."""
        return self.json == STDOUT

    def check(self, path: Path) -> None:
        """Raise `Refusal` if one of the files cannot be written."""
        json = None if self.is_for_a_program else self.json
        check_files({"--json": json, "--html": self.html, "--junit": self.junit}, kept=path)

    def write(self, report: SweepReport) -> Refusal | None:
        """Write the files; return what went wrong after all."""
        json = None if self.is_for_a_program else self.json
        text = report.to_json().encode("ascii")
        return write(
            {
                "--json": (json, lambda name: Path(name).write_bytes(text)),
                "--html": (self.html, report.to_html),
                "--junit": (self.junit, report.to_junit),
            }
        )


@click.command("sweep")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="The number of faults in a plan (default: 1).",
)
@click.option(
    "--classes",
    default="platform",
    metavar="CLASSES",
    help='The classes of faults to try, separated by commas, or "all" (default: platform).',
)
@click.option("--only", metavar="GLOB", multiple=True, help="Sites or faults to try.")
@click.option("--skip", metavar="GLOB", multiple=True, help="Sites or faults not to try.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The most plans to try.")
@click.option("--json", metavar="FILE", help='Write the report there as JSON; "-" prints it.')
@click.option("--html", metavar="FILE", help="Write the report there as a web page.")
@click.option("--junit", metavar="FILE", help="Write the report there as JUnit XML.")
@of_scenario
@click.pass_context
def command(
    ctx: click.Context,
    /,
    depth: int,
    classes: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    limit: int | None,
    json: str | None,
    html: str | None,
    junit: str | None,
    **options: Any,
) -> None:
    """Run a scenario once clean and once under each fault that can strike it.

    The file is that of `workers-emulator run`. What comes back is the smallest plans that break it.

    Exit code: 0 passed; 1 failures, or nothing to sweep; 2 it could not be run; 130 interrupted,
    with what was found so far.
    """
    setting = Setting(**options)
    outputs = Outputs(json, html, junit)
    outputs.check(setting.path)
    wanted = {
        "depth": depth,
        "classes": classes if classes == "all" else [c.strip() for c in classes.split(",")],
        "only": only,
        "skip": skip,
        "limit": limit,
    }
    _search(wanted)  # What is wrong with it is told before anything is imported.
    aside = outputs.is_for_a_program
    with interruptible(), Gate(aside=aside, silent=True) as gate, config_warnings(gate):
        gate.masker = early_masker(setting)
        with preparing(setting.timeout):
            file = load(setting.path, setting.scenario)
        arguments = _arguments(file, setting)
        search = _search(wanted, seed=arguments.get("seed", 0))
        gate.open(masker_for(arguments))
        with progress(gate.terminal) as show:
            ended = _sweep(search, file.scenario, arguments, setting.timeout, show)
        if isinstance(ended, Refusal):
            ended = Refusal(gate.masker(ended.message))
    report = replace(search.report(), paste=f"{setting.command()} --faults")
    # First the files: whoever reads what is printed may stop reading.
    refusal = outputs.write(report)
    say(report.render(), end="", aside=aside)
    if report.unmatched:
        say(unmatched(report, "on the command line", "this scenario"), aside=True)
    if aside:
        say(report.to_json(), end="")
    ctx.exit(_exit_code(report, refusal or ended))


def _exit_code(report: SweepReport, ended: BaseException | None) -> int:
    """Return the exit code, after what ended the sweep before its time is told."""
    if isinstance(ended, Refusal):
        raise ended
    if ended is not None:
        say("interrupted", aside=True)
        return INTERRUPTED
    return 0 if report.passed and not report.unmatched else 1


def _arguments(file: ScenarioFile, setting: Setting) -> dict[str, Any]:
    for name, why in REFUSED.items():
        if name in file.arguments:
            raise Refusal(f"{ARGUMENTS} in {file.path} has {name!r}, but {why}")
    return emulator_arguments(file, setting)


def _search(wanted: Mapping[str, Any], *, seed: int = 0) -> Search:
    try:
        return Search(**wanted, seed=seed)
    except (PlanError, ValueError) as error:
        raise Refusal(str(error)) from None


def _sweep(
    search: Search,
    scenario: Scenario,
    arguments: Mapping[str, Any],
    timeout: float | None,
    show: Callable[[Search], None],
) -> BaseException | None:
    """Sweep to the end; return what ended it before, `KeyboardInterrupt` or a `Refusal`."""
    deployments = Deployments()
    with Collections() as collections:
        try:
            while (plan := search.next()) is not None:
                given = with_plan(arguments, plan)
                with make(given, timeout, deployments) as emulator:
                    outcome = _run(scenario, emulator, plan, timeout)
                pinned = emulator._kernel.loop.pinned
                del emulator
                release(outcome.error)
                search.tell(plan, outcome)
                del outcome
                collections.between(pinned)
                show(search)
        except KeyboardInterrupt as interrupt:
            return interrupt
        except Refusal as refusal:
            if not search.done:
                raise
            return refusal
    return None


def _run(scenario: Scenario, emulator: Emulator, plan: Plan, timeout: float | None) -> Outcome:
    start = perf_counter()
    error = perform(scenario, emulator, timeout=timeout)
    return observe(emulator, plan, error, seconds=perf_counter() - start)
