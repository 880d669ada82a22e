"""Looks at an emulator after a run: what of it a search needs to know."""

from __future__ import annotations

import hashlib
import linecache
import traceback
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import WorkerCrashed
from emulator.location import describe_error, raised_at
from emulator.sweeping.outcome import FindingsError, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from emulator.emulator import Emulator
    from emulator.findings import Finding
    from emulator.sweeping.outcome import Plan

_LOCALS = attrgetter("f_locals")


def observe(
    emulator: Emulator,
    plan: Plan,
    error: BaseException | None,
    *,
    seconds: float = 0.0,
    strict: Collection[str] | None = None,
    text: str = "",
) -> Outcome:
    """Return the outcome of a run under `plan`; to be called before the emulator is closed.

    `error` is what the scenario raised. If it raised nothing, unexpected findings of the codes in
    `strict` (None: those that fail a test by default) are the error. `text` is how the caller tells
    the error, if it can do better than its type and text.
    """
    faults, trace = emulator.faults, emulator.trace
    cause = place = ""
    if error is not None:
        cause, place = _of_error(error)
    else:
        findings = _failing(emulator, plan, strict)
        if findings:
            error = FindingsError(findings)
            cause = place = _of_findings(findings)
    compared = error is not None or not plan
    return Outcome(
        error=error,
        cause=cause,
        sites=faults.sites,
        fired=faults.fired,
        sometimes=dict(emulator._sometimes),
        digest=hashlib.sha256(trace.outline().encode()).digest() if compared else b"",
        trace=trace if compared else None,
        seconds=seconds,
        text=trace.masker(text or describe_error(error)) if error is not None else "",
        place=trace.masker(place),
        cut_off=_is_cut_off(error),
        kept=[name for worker in emulator._platform.workers.values() for name in worker.kept],
    )


def release(error: BaseException | None) -> None:
    """Empty the frames of a traceback, so that an error does not keep its run in memory.

    To be called when the functions that caught the error have returned.
    """
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        traceback.clear_frames(one.__traceback__)
        frames = [frame for frame, _ in traceback.walk_tb(one.__traceback__)]
        # Where somebody has looked at them, a copy is kept; to look again brings it up to date.
        list(map(_LOCALS, frames))
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether it is a client's view of a crash; in a group, of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cut_off, error.exceptions))
    return isinstance(error, WorkerCrashed)


def _failing(emulator: Emulator, plan: Plan, strict: Collection[str] | None) -> list[Finding]:
    findings = emulator.findings.unexpected(strict)
    if plan:
        # Of the sweep's own faults some need not fire, and they may be why the scenario's do not.
        findings = [finding for finding in findings if finding.code != "fault_not_fired"]
    return findings


def _of_error(error: BaseException) -> tuple[str, str]:
    """Return the cause of an error, and the line of the user's code with its source."""
    where = raised_at(error)
    kind = type(error).__qualname__
    if where is None:
        return kind, ""
    shown = where.relative_to(Path.cwd())
    source = linecache.getline(where.file, where.line).strip()
    return f"{kind} at {shown}", f"{shown}: {source}" if source else shown


def _of_findings(findings: list[Finding]) -> str:
    first = findings[0]
    place = first.location or first.subject
    return f"{first.code} at {place}" if place else first.code
