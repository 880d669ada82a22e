"""A sweep's report for programs: one JSON object, `"schema": 1`; docs/sweep.md describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.report import SweepReport

VERSION: Final = 1


def to_json(report: SweepReport, *, timings: bool) -> str:
    """Return the report as JSON in ASCII, indented."""
    value: dict[str, Any] = {
        "schema": VERSION,
        "passed": report.passed,
        "empty": report.empty,
        "complete": report.complete,
        "runs": report.runs,
        "depth": report.depth,
        "seed": report.seed,
        "shard": {"index": report.shard[0], "count": report.shard[1]},
        "sites": [
            {
                "name": report.masker(site.name),
                "occurrence": site.occurrence,
                "actions": dict(site.actions),
            }
            for site in report.sites
        ],
        "tried": _by_length(report.tried),
        "cut": _by_length(report.cut),
        "not_tried": dict(report.not_tried),
        "left_out": report.left_out,
        "unreached": {"plans": list(report.unfired), "sites": list(report.hidden)},
        "unmatched": list(report.unmatched),
        "gone": list(report.gone),
        "never": list(report.never),
        "in_process_only": report.in_process_only,
        "kept_memory": list(report.kept_memory),
        "replayed": report.replayed,
        "groups": [
            {"cause": cause, "failures": [_failure(f, whole=f is group[0]) for f in group]}
            for cause, group in report.groups.items()
        ],
    }
    if timings:
        value["seconds"] = report.seconds
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def _by_length(numbers: Any) -> list[dict[str, int]]:
    return [{"faults": length, "plans": number} for length, number in numbers.items()]


def _failure(failure: Failure, *, whole: bool) -> dict[str, Any]:
    """Only the first failure of a cause has its trace: the others are alike."""
    value: dict[str, Any] = {
        "plan": failure.shown,
        "faults": len(failure.plan),
        "error": {"type": _type(failure), "text": failure.text},
        "line": failure.place,
        "replayed": failure.replayed,
        "flaky": failure.flaky,
    }
    if whole and failure.trace is not None:
        value["trace"] = [json.loads(line) for line in failure.trace.to_jsonl().splitlines()]
    return value


def _type(failure: Failure) -> str:
    if failure.error is not None:
        return type(failure.error).__qualname__
    return failure.cause.partition(" ")[0]
