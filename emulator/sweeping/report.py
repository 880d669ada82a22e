"""What a sweep found, and what it did not try."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.sweeping import junit, page, schema, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from emulator.faults import Site
    from emulator.sweeping.outcome import Cause, Failure


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep found: the smallest plans that fail, and the bound within which it looked.

    `runs` counts all runs, the clean ones and replays included. `failures` are the failing plans,
    those of fewest faults first: no smaller plan within the bound fails. `sites` are those of the
    clean run, one per occurrence. `unreached` has the texts of what the sweep could not judge:
    single faults that the limit cut off, plans of which not every fault fired, and sites that
    appear only under a fault and where nothing was tried. `not_tried` is the number of faults left
    out for their class, by class; `never` the names given to `emulator.sometimes` that were true in
    no run. `in_process_only` says why determinism was checked in this process only; it is empty
    where another process made the clean run too, or was not asked to. `kept_memory` names globals
    and class attributes that changed and that no crash cleared, since the Worker is given as an
    object.

    The other members are for reports: `tried` and `cut` count plans by their number of faults,
    those that were run and those that the limit cut off; `candidates` are the single faults to try,
    `left_out` those that `only` and `skip` leave out; `gone` are plans that failed before and whose
    sites the clean run does not meet any more; `masker` masks secrets in a site's name; `paste` is
    what a failing plan is an argument of.
    """

    runs: int = 0
    failures: Sequence[Failure] = ()
    sites: Sequence[Site] = ()
    unreached: Sequence[str] = ()
    not_tried: Mapping[str, int] = field(default_factory=dict)
    never: Sequence[str] = ()
    in_process_only: str = ""
    kept_memory: Sequence[str] = ()
    complete: bool = True
    tried: Mapping[int, int] = field(default_factory=dict)
    tried_sites: int = 0
    candidates: int = 0
    left_out: int = 0
    cut: Mapping[int, int] = field(default_factory=dict)
    unfired: Sequence[str] = ()
    hidden: Sequence[str] = ()
    unmatched: Sequence[str] = ()
    gone: Sequence[str] = ()
    replayed: int = 0
    depth: int = 1
    selection: str = ""
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    seconds: float = 0.0
    masker: Callable[[str], str] = field(default=str, repr=False, compare=False)
    paste: str = "--emulator-faults"

    @property
    def groups(self) -> dict[Cause, list[Failure]]:
        """The failures by cause; the first of each represents it."""
        groups: dict[Cause, list[Failure]] = {}
        for failure in self.failures:
            groups.setdefault(failure.cause, []).append(failure)
        return groups

    @property
    def empty(self) -> bool:
        """Whether there was nothing to sweep: no site, or none after `only`, `skip`, `classes`."""
        return self.complete and not self.candidates and not self.failures

    @property
    def passed(self) -> bool:
        """Whether the sweep is complete, tried something, and nothing failed."""
        return self.complete and not self.empty and not self.failures

    def render(self) -> str:
        """Return the report for people; the same for the same code and seed."""
        return text.render(self)

    def summary(self) -> str:
        """Return the last lines of `render`: the bound within which the sweep looked."""
        return text.summary(self)

    def to_json(self, *, timings: bool = False) -> str:
        """Return the report as a JSON object, whose members docs/sweep.md describes.

        With `timings` it has the real time the runs took, and is not the same each time.
        """
        return schema.to_json(self, timings=timings)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the report as a page of its own, without script or outside resources."""
        Path(path).write_bytes(page.page(self).encode("utf-8"))

    def to_junit(self, path: str | PathLike[str]) -> None:
        """Write the report as JUnit XML: a test case for each cause, and one for the sweep."""
        Path(path).write_bytes(junit.suite(self).encode("utf-8"))
