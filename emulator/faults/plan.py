"""Faults and plans of them, in the one text form that reports print and options take.

    batch.emails#2:lose_ack
    message.emails#1:duplicate(30 s); step.onboarding.charge#*:fail

The grammar is described in grammar.py, the sites and actions in sites.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.errors import PlanError
from emulator.faults.grammar import FaultText, SitePattern, read_fault, read_site, write_fault
from emulator.faults.names import BadText, has_glob

if TYPE_CHECKING:
    from collections.abc import Iterable

# A plan that cannot be read is shown at the line that gave it.
__tracebackhide__ = True


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: `action` at the given occurrence of `site`.

    `occurrence` counts from 1 in the order met; None is every occurrence. `argument` is a duration
    in microseconds, an HTTP status or a seed, as the action takes. `str()` is the text to paste;
    `duration` keeps the unit in which one was given there, and does not count in comparisons.

    >>> str(Fault("batch.emails", 2, "lose_ack"))
    'batch.emails#2:lose_ack'
    """

    site: str
    occurrence: int | None
    action: str
    argument: int | None = None
    duration: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read the text of one fault.

        Raises `PlanError`, which shows the part that cannot be read and what is allowed there.
        """
        return _parse(text.strip(), "")

    @property
    def glob(self) -> bool:
        """Whether the site is a pattern, which applies wherever its action is allowed."""
        return has_glob(self.site)

    def __str__(self) -> str:
        return write_fault(
            FaultText(self.site, self.occurrence, self.action, self.argument, self.duration)
        )


def parse_plan(text: str) -> tuple[Fault, ...]:
    """Read faults separated by `;`; an empty text is an empty plan.

    Raises `PlanError`, which shows the part that cannot be read and what is allowed there.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    return tuple(
        _parse(part, f"fault {number} of {len(parts)}: " if len(parts) > 1 else "")
        for number, part in enumerate(parts, start=1)
    )


def parse_site(text: str) -> SitePattern:
    """Read a site or a pattern of sites, such as `step.*.charge`; raises `PlanError`."""
    text = text.strip()
    try:
        return read_site(text)
    except BadText as bad:
        raise PlanError(_explain(text, "", bad)) from None


def format_plan(plan: Iterable[Fault]) -> str:
    """Return the text of a plan, which `parse_plan` reads."""
    return "; ".join(str(fault) for fault in plan)


def _parse(text: str, which: str) -> Fault:
    if not text:
        raise PlanError("a fault is empty; write it as site#occurrence:action")
    try:
        return Fault(*read_fault(text))
    except BadText as bad:
        raise PlanError(_explain(text, which, bad)) from None


def _explain(text: str, which: str, bad: BadText) -> str:
    """Return an error's text: what is wrong, the fault with the part marked, what is allowed."""
    # One character for one, so that the marks below stay in place.
    shown = "".join(char if char >= " " else " " for char in text)
    marks = " " * bad.start + "^" * max(bad.end - bad.start, 1)
    lines = [f"{which}{bad.message}", f"    {shown}", f"    {marks}"]
    if bad.allowed:
        lines.append(bad.allowed)
    return "\n".join(lines)
