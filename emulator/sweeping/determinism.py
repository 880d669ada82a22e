"""Two runs of one plan must be the same; where they differ, and how that is told."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from emulator.clock import moment
from emulator.findings import Finding
from emulator.sweeping.outcome import NONDETERMINISTIC, Failure, FindingsError, describe
from emulator.trace import Trace

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Outcome
    from emulator.trace.events import Event

_ADVICE: Final = (
    "A sweep needs a scenario that does the same each time. What differs comes from outside the "
    "emulator: real time, id() or the order of a set, the process's own randomness, a file, or "
    "what an earlier run left behind: in a module of the test, in a fixture of a wider scope, in "
    "bindings."
)


def is_same(first: Outcome, second: Outcome) -> bool:
    """Whether two runs of one plan went the same way."""
    return (first.error is None, first.cause, first.digest) == (
        second.error is None,
        second.cause,
        second.digest,
    )


def differing(first: Outcome, second: Outcome) -> Failure:
    """Return the failure of two clean runs that are not the same."""
    place = _first_difference(first.trace, second.trace)
    if place is None:
        what = "only in how it ended"
        lines = [f"  first run:  {_end(first)}", f"  second run: {_end(second)}"]
        at, subject = (first.trace.start if first.trace else 0), ""
    else:
        number, one, other = place
        what = f"first at event {number}"
        lines = [
            f"  first run:  {_line(first.trace, one)}",
            f"  second run: {_line(second.trace, other)}",
        ]
        event = one or other
        at, subject = (event.at, event.subject) if event is not None else (0, "")
    message = f"two runs without a fault differed, {what}"
    finding = Finding(NONDETERMINISTIC, message, moment(at), subject=subject or None)
    text = "\n".join((f"{NONDETERMINISTIC}: {message}", *lines, _ADVICE))
    return Failure(
        plan=(),
        error=FindingsError([finding]),
        trace=first.trace,
        cause=NONDETERMINISTIC,
        text=text,
        other_trace=second.trace,
    )


def _first_difference(
    first: Trace | None, second: Trace | None
) -> tuple[int, Event | None, Event | None] | None:
    """Return the number, from 1, of the first event that is not written in the same way."""
    if first is None or second is None:
        return None
    lines = zip_longest(first.outline().splitlines(), second.outline().splitlines())
    for index, (one, other) in enumerate(lines):
        if one != other:
            return (
                index + 1,
                first[index] if one is not None else None,
                second[index] if other is not None else None,
            )
    return None


def _line(trace: Trace | None, event: Event | None) -> str:
    """One event as the timeline has it."""
    if trace is None or event is None:
        return "(it had ended)"
    alone = Trace(trace.start, masker=trace.masker)
    alone.record(event.at, event.kind, event.subject, **event.data)
    return "\n    ".join(alone.render().splitlines()[1:]).strip()


def _end(outcome: Outcome) -> str:
    if outcome.error is None:
        return "passed"
    return "\n    ".join((outcome.text or describe(outcome.error)).splitlines())
