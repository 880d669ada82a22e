"""A sweep's report for people.

97 runs: 3 failures of 1 cause

AssertionError at tests/test_signup.py:31
    assert mail.call_count == 1
  --emulator-faults "batch.emails#1:lose_ack"
  ...
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from emulator.shell import quoted
from emulator.sweeping.outcome import LEAKS
from emulator.trace.timeline import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.report import SweepReport

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")
_OTHER_PLANS: Final = 5
_TIMELINE_LINES: Final = 60
_LISTED: Final = 5
_SITES_SHOWN: Final = 10


def render(report: SweepReport) -> str:
    """Return the whole report."""
    groups = ("\n".join(_group(report, failures)) for failures in report.groups.values())
    parts = (head(report), *groups, summary(report))
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def head(report: SweepReport) -> str:
    """Return the first line: how many runs, and what came of them."""
    runs = count(report.runs, "run")
    if report.failures:
        causes = count(len(report.groups), "cause")
        return f"{runs}: {count(len(report.failures), 'failure')} of {causes}"
    if report.empty:
        return f"{runs}: nothing to sweep"
    return f"{runs}: {'passed' if report.complete else 'no failure so far'}"


def summary(report: SweepReport) -> str:
    """Return what was tried, and in a last line the classes that were not."""
    if report.empty:
        return _why_empty(report)
    if report.failures and report.failures[0].is_from_the_start:
        return "no fault was tried: without any the scenario must pass, and do the same each time"
    return "\n".join(("; ".join(_bound(report)), *_not_tried(report), *_kept(report)))


def _why_empty(report: SweepReport) -> str:
    if not report.sites:
        return (
            "nothing to sweep: the scenario met no site where a fault can strike; a scenario sends "
            "requests or messages and waits, as with emulator.settle()"
        )
    sites = count(len(report.sites), "site")
    text = f"nothing to sweep: of the faults at {sites} none is left by {report.selection}"
    return "; ".join((text, *_left_out(report), *_not_tried(report)))


def _bound(report: SweepReport) -> Iterator[str]:
    if report.tried:
        yield f"tried: {', '.join(_tried(report))}"
    elif report.shard[1] > 1:
        yield f"tried: nothing; there is no share for shard {report.shard[0] + 1}"
    yield from _left_out(report)
    if report.cut:
        cut = ", ".join(plans(length, number) for length, number in report.cut.items())
        yield f"cut off by the limit: {cut} (the others were chosen by seed {report.seed})"
    if report.unfired:
        yield f"not reached: {listed(report.unfired)}"
    if report.gone:
        yield f"failed before and not met any more: {listed(report.gone)}"
    if report.hidden:
        number = len(report.hidden)
        verb = "appears" if number == 1 else "appear"
        deeper = f" (depth={report.depth + 1} tries {'it' if number == 1 else 'them'})"
        yield f"{count(number, 'site')} {verb} only under a fault{'' if report.cut else deeper}"
    if report.never:
        yield f"never true: {', '.join(report.never)}"
    unplayed = len(report.failures) - report.replayed
    if report.complete and unplayed:
        yield f"replayed: {report.replayed} of {count(len(report.failures), 'failure')}"
    if report.in_process_only:
        yield f"determinism was checked in this process only: {report.in_process_only}"
    if not report.complete:
        yield "the sweep was not finished"


def _tried(report: SweepReport) -> Iterator[str]:
    index, shards = report.shard
    for length, number in report.tried.items():
        text = plans(length, number)
        yield f"{text} at {count(report.tried_sites, 'site')}" if length == 1 else text
    if shards > 1:
        yield f"shard {index + 1} of {shards}"


def _not_tried(report: SweepReport) -> Iterator[str]:
    classes = list(report.not_tried.items())
    if classes:
        total = sum(number for _, number in classes)
        names = ", ".join(f"{number:,} {name}" for name, number in classes)
        yield f"not tried: {names} {'fault' if total == 1 else 'faults'}"


def _kept(report: SweepReport) -> Iterator[str]:
    # What failed has something else to say, and what is kept may be the record of the scenario.
    if report.kept_memory and not report.failures:
        yield (
            "no crash cleared the Worker's memory, as it is given as an object: "
            f"{listed(report.kept_memory)} survived; give the path of its file"
        )


def _left_out(report: SweepReport) -> Iterator[str]:
    if report.left_out:
        yield f"left out by only and skip: {count(report.left_out, 'fault')}"
    if report.unmatched:
        yield f"met nothing: {', '.join(report.unmatched)}"


def unmatched(report: SweepReport, where: str, whose: str) -> str:
    """Return what is wrong with patterns that mean nothing, at `where`, of what met the sites."""
    met = list(dict.fromkeys(site.name for site in report.sites))
    more = len(met) - _SITES_SHOWN
    shown = ", ".join(met[:_SITES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return (
        f"{', '.join(report.unmatched)} {where} means no site and no fault of {whose}, "
        f"which meets {shown or 'none'}. Correct it or leave it out."
    )


def _group(report: SweepReport, failures: list[Failure]) -> Iterator[str]:
    first, *others = failures
    yield printable(first.cause)
    if source := source_of(first):
        yield _indented(source, 4)
    yield _indented(command(report, first), 2)
    if first.flaky:
        yield "  not reproducible: it did not fail in the same way when it was run again"
    if first.text:
        yield _indented(first.text, 2)
    if others:
        yield "  also fails under:"
        yield from (f"    {line}" for line in also(others, first))
    if first.trace is not None and len(first.trace):
        yield ""
        yield _indented("\n".join(cut_middle(first.trace.render().splitlines())), 2)


def also(failures: list[Failure], first: Failure) -> Iterator[str]:
    """Yield the plans of these failures, at most five, and how many more there are."""
    shown = failures[:_OTHER_PLANS]
    for failure, said in zip(shown, other_texts(shown, first), strict=True):
        flaky = "  (not reproducible)" if failure.flaky else ""
        yield f"{printable(failure.shown)}{f'  {printable(said)}' if said else ''}{flaky}"
    if len(failures) > _OTHER_PLANS:
        yield f"and {len(failures) - _OTHER_PLANS:,} more"


def other_texts(failures: list[Failure], first: Failure) -> Iterator[str]:
    """Yield the first line of what each error says, where none before it says the same."""
    told = {_said(first): None}
    for failure in failures:
        said = _said(failure)
        yield "" if said in told else failure.text.partition("\n")[0]
        told[said] = None


def _said(failure: Failure) -> str:
    """What an error says in its first line, wherever its objects may lie in memory."""
    return _ADDRESS.sub("0x", failure.text.partition("\n")[0])


def command(report: SweepReport, failure: Failure) -> str:
    """Return what runs the scenario under the failing plan, as it is pasted."""
    if failure.cause == LEAKS:
        return "fails without any fault, though not from the start"
    if not failure.plan:
        return "fails without any fault"
    return f"{report.paste} {quoted(failure.shown)}"


def source_of(failure: Failure) -> str:
    """Return the line of the user's code, without its place where that is in the cause."""
    place, _, source = failure.place.partition(": ")
    return source if failure.cause.endswith(f" at {place}") else failure.place


def cut_middle(lines: list[str]) -> list[str]:
    """Return the lines of a timeline; of very many the first ones and the last."""
    left_out = len(lines) - _TIMELINE_LINES
    if left_out <= 0:
        return lines
    half = _TIMELINE_LINES // 2
    return [*lines[:half], f"... {left_out:,} lines ...", *lines[-half:]]


def plans(length: int, number: int) -> str:
    """Return so many plans of this length, such as `97 single faults`."""
    names = {1: "single fault", 2: "pair", 3: "triple"}
    if length in names:
        return count(number, names[length])
    return f"{count(number, 'plan')} of {length} faults"


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(texts: Iterable[str]) -> str:
    """Return how many texts there are, and the first of them."""
    texts = list(texts)
    more = len(texts) - _LISTED
    names = [*texts[:_LISTED], *([f"and {more:,} more"] if more > 0 else [])]
    return f"{len(texts):,} ({', '.join(names)})"


def _indented(text: str, width: int) -> str:
    return "\n".join(f"{' ' * width}{printable(line)}".rstrip() for line in text.splitlines())
