"""Faults and plans of them, in the one text form that reports print and options take.

    batch.emails#2:lose_ack
    message.emails#1:duplicate(30 s); step.onboarding.charge#*:fail

The grammar is described in grammar.py, the sites and actions in sites.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from emulator.errors import PlanError
from emulator.faults.grammar import FaultText, SitePattern, read_fault, read_site, write_fault
from emulator.faults.names import BadText, has_glob

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
        if not isinstance(text, str):
            raise _no_fault(text)
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


def read_plan(faults: object) -> tuple[Fault, ...]:
    """Read a plan as users give it: a text, a `Fault`, or several of these.

    Raises `PlanError` for a text that cannot be read, and for what is neither text nor `Fault`.
    """
    if isinstance(faults, str | Fault):
        return parse_plan(str(faults))
    if isinstance(faults, bytes) or not isinstance(faults, Iterable):
        raise _no_fault(faults)
    return tuple(fault for each in faults for fault in _read_one(each))


def _read_one(given: object) -> tuple[Fault, ...]:
    # A `Fault` may have been made by hand, so its text is read, too.
    if not isinstance(given, str | Fault):
        raise _no_fault(given)
    return parse_plan(str(given))


def _no_fault(given: object) -> PlanError:
    several = isinstance(given, list | tuple)
    hint = "; give its items, as in add(*faults)" if several else ""
    return PlanError(
        f"a fault is a text such as batch.emails#1:lose_ack, or a Fault, not {given!r}{hint}"
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
