"""What `run` says of a run: for people, and for programs.

the timeline, in virtual time
what differs from a recording, where one is repeated
logs, where there are any: each line whole
findings, those that fail the run marked with an x
the user's traceback, and the plan
one line that says how it ended, and one that runs it again
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.interrupts import OutOfTime, traced
from emulator.cli.terminal import lines
from emulator.clock import instant
from emulator.durations import describe
from emulator.faults import format_plan
from emulator.findings import grouped
from emulator.location import describe_error, raised_at
from emulator.shell import quoted
from emulator.sweeping.text import count
from emulator.trace.timeline import write_offset
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.cli.options import Setting
    from emulator.cli.scenario import ScenarioFile
    from emulator.emulator import Emulator
    from emulator.faults import Fault
    from emulator.findings import Finding
    from emulator.recording.replay import Replay

SCHEMA: Final = 1
# The finding of an exception that nobody handled.
_RAISED: Final = "handler_exception"


class Ending(Enum):
    """How a run ended."""

    PASSED = "passed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended, its emulator not yet closed; every text of it is masked."""

    emulator: Emulator
    file: ScenarioFile
    ending: Ending
    error: BaseException | None
    failing: Sequence[Finding]
    tolerated: Sequence[Finding]
    plan: tuple[str, ...]
    fired: tuple[str, ...]
    reproduce: str
    replay: Replay | None


def look_at(
    emulator: Emulator,
    file: ScenarioFile,
    error: BaseException | None,
    setting: Setting,
    given: tuple[Fault, ...],
    replay: Replay | None = None,
) -> Run:
    """Judge a run, before its emulator is closed; that of a recording fails where it differs."""
    mask = emulator.trace.masker
    failing = emulator.findings.unexpected()
    tolerated = emulator.findings.tolerated()
    if replay is not None:
        failing += [finding for finding in tolerated if finding.code == _RAISED]
        tolerated = [finding for finding in tolerated if finding.code != _RAISED]
    fails = error is not None or failing or (replay is not None and replay.differs)
    ending = Ending.FAILED if fails else Ending.PASSED
    if type(error) is KeyboardInterrupt:
        ending = Ending.INTERRUPTED
        # What was to come may have struck.
        failing = [finding for finding in failing if finding.code != "fault_not_fired"]
    command = setting.command()
    if given:
        command += f" --faults {quoted(mask(format_plan(given)))}"
    return Run(
        emulator=emulator,
        file=file,
        ending=ending,
        error=error,
        failing=failing,
        tolerated=tolerated,
        plan=tuple(mask(str(fault)) for fault in dict.fromkeys(emulator.faults.plan)),
        fired=tuple(mask(str(fault)) for fault in emulator.faults.fired),
        reproduce=mask(command),
        replay=replay,
    )


def render(run: Run) -> str:
    """Return the report for people; the same for the same code, seed and plan."""
    sections = [run.emulator.trace.render().rstrip("\n").split("\n")]
    parts = (_replayed(run), _logs(run), _findings(run), _failure(run))
    sections += [list(part) for part in parts]
    sections.append([*_end(run)])
    return "\n".join("\n".join((*section, "")) for section in sections if section)


def _replayed(run: Run) -> Iterator[str]:
    if run.replay is None:
        return
    yield "replay"
    for outcome in run.replay.outcomes:
        yield f"  {'x' if outcome.verdict == 'differs' else ' '} {lines(str(outcome))}"
    yield from (f"    note: {lines(note)}" for note in run.replay.notes)


def _logs(run: Run) -> Iterator[str]:
    logs = run.emulator.logs
    if not logs:
        return
    yield "logs"
    start = run.emulator.trace.start
    rows = [(write_offset(instant(log.at) - start), log.worker, log.level) for log in logs]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row, log in zip(rows, logs, strict=True):
        head = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        first, *others = lines(log.text).split("\n")
        yield f"  {head}  {first}".rstrip()
        yield from (f"  {' ' * len(head)}  {line}".rstrip() for line in others)


def _findings(run: Run) -> Iterator[str]:
    marked = [("x", run.failing), (" ", run.tolerated)]
    if not any(findings for _, findings in marked):
        return
    yield "findings"
    for mark, findings in marked:
        for group in grouped(findings):
            first, *others = lines(group.text).split("\n")
            yield f"  {mark} {first}"
            yield from (f"    {line}" for line in others)


def _failure(run: Run) -> Iterator[str]:
    if run.error is not None:
        yield from lines(_traceback(run)).split("\n")
    elif run.failing and run.replay is None:
        yield 'Mark a finding as intended with emulator.findings.expect("code").'


def _end(run: Run) -> Iterator[str]:
    trace = run.emulator.trace
    passed = describe(instant(run.emulator.now) - trace.start)
    size = f"{count(len(trace), 'event')}, {passed} of virtual time"
    if run.ending is Ending.PASSED:
        yield click.style(f"passed: {size}", fg="green")
    else:
        yield click.style(f"{run.ending.value}: {lines(_why(run))}; {size}", fg="red")
    if run.plan:
        yield f"plan: {lines('; '.join(run.plan))}"
        yield f"fired: {lines('; '.join(run.fired)) or 'nothing'}"
    if run.ending is Ending.FAILED:
        yield f"reproduce: {lines(run.reproduce)}"


def _why(run: Run) -> str:
    """What failed in one line."""
    mask, error = run.emulator.trace.masker, run.error
    if error is None and run.replay is not None and run.replay.differs:
        return f"{count(run.replay.differs, 'answer')} not as recorded"
    if error is None:
        return f"the emulator found {', '.join(dict.fromkeys(f.code for f in run.failing))}"
    where = raised_at(error)
    place = f" at {where.relative_to(Path.cwd())}" if where is not None else ""
    name = "out of time" if isinstance(error, OutOfTime) else type(error).__name__
    return mask(f"{name}{place}")


def _traceback(run: Run) -> str:
    assert run.error is not None
    return run.emulator.trace.masker(traced(run.error))


def to_json(run: Run) -> str:
    """Return the report for programs: one JSON object in ASCII, which docs/cli.md describes."""
    emulator = run.emulator
    value: dict[str, object] = {
        "schema": SCHEMA,
        "ending": run.ending.value,
        "scenario": run.file.name,
        "file": str(run.file.path),
        "plan": list(run.plan),
        "fired": list(run.fired),
        "error": _error(run),
        "findings": [_finding(finding, fails=True) for finding in run.failing]
        + [_finding(finding, fails=False) for finding in run.tolerated],
        "logs": [
            {
                "at": write_datetime(log.at),
                "worker": log.worker,
                "level": log.level,
                "text": log.text,
            }
            for log in emulator.logs
        ],
        "now": write_datetime(emulator.now),
        "reproduce": run.reproduce,
        "trace": [json.loads(line) for line in emulator.trace.to_jsonl().splitlines()],
    }
    if run.replay is not None:
        value["replay"] = [
            {"entry": one.number, "what": one.subject, "verdict": one.verdict, "text": one.text}
            for one in run.replay.outcomes
        ]
        value["notes"] = list(run.replay.notes)
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def _error(run: Run) -> dict[str, str] | None:
    if run.error is None:
        return None
    mask = run.emulator.trace.masker
    return {
        "type": type(run.error).__qualname__,
        "text": mask(describe_error(run.error)),
        "traceback": _traceback(run),
    }


def _finding(finding: Finding, *, fails: bool) -> dict[str, object]:
    return {
        "code": finding.code,
        "fails": fails,
        "message": finding.message,
        "at": write_datetime(finding.at),
        "location": finding.location,
        "worker": finding.worker,
        "subject": finding.subject,
    }
