"""Which of the faults that could strike a sweep tries: classes, and the patterns only and skip.

A pattern is a site (`step.*.charge`), or a whole fault (`batch.*#*:lose_ack`), with the globs of a
plan given by hand. A fault without an argument means the action with any argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emulator.faults import CLASSES, Fault, SitePattern, parse_site
from emulator.faults.grammar import SCHEDULE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from emulator.faults import Site

# Production never does what the class "loss" has: not trying it leaves no gap.
ALL: Final = tuple(name for name in CLASSES if name != "loss")


class Pattern(NamedTuple):
    """One text of `only` or `skip`; `fault` is None where it names sites."""

    text: str
    site: SitePattern
    fault: Fault | None

    def matches(self, fault: Fault) -> bool:
        """Whether this fault is meant."""
        if not self.site.matches(fault.site):
            return False
        wanted = self.fault
        return wanted is None or (
            wanted.action == fault.action
            and wanted.occurrence in (None, fault.occurrence)
            and wanted.argument in (None, fault.argument)
        )


class Selection:
    """The classes and patterns of one sweep. Raises `ValueError` and `PlanError` for wrong ones."""

    def __init__(
        self,
        classes: Collection[str] | Literal["all"],
        only: Sequence[str],
        skip: Sequence[str],
    ) -> None:
        self.classes = _read_classes(classes)
        self.only = _read_patterns("only", only)
        self.skip = _read_patterns("skip", skip)
        # Each run meets nearly the same sites.
        self._known: dict[tuple[object, ...], tuple[Fault, ...]] = {}

    def at(self, site: Site) -> tuple[Fault, ...]:
        """Return the faults to try at a site."""
        key = (site.name, site.occurrence, *site.actions.items())
        faults = self._known.get(key)
        if faults is None:
            faults = tuple(f for f in site.faults(self.classes) if self.allows(f))
            self._known[key] = faults
        return faults

    def allows(self, fault: Fault) -> bool:
        """Whether the patterns let a fault through, whatever its class."""
        if self.only and not any(pattern.matches(fault) for pattern in self.only):
            return False
        return not any(pattern.matches(fault) for pattern in self.skip)

    def other_classes(self, sites: Iterable[Site]) -> dict[str, int]:
        """Return how many faults at these sites are of a class that is not tried, by class."""
        sites = list(sites)
        others = [name for name in ALL if name not in self.classes]
        counts = {name: sum(len(site.faults((name,))) for site in sites) for name in others}
        return {name: count for name, count in counts.items() if count}

    def left_out(self, sites: Iterable[Site]) -> int:
        """Return how many faults of the chosen classes the patterns leave out."""
        faults = [fault for site in sites for fault in site.faults(self.classes)]
        return sum(not self.allows(fault) for fault in faults)

    def unmatched(self, sites: Iterable[Site]) -> list[str]:
        """Return the patterns that mean nothing at these sites, whatever the class."""
        faults = [fault for site in sites for fault in site.faults()]
        return [
            f"{name}={pattern.text!r}"
            for name, patterns in (("only", self.only), ("skip", self.skip))
            for pattern in patterns
            if not any(pattern.matches(fault) for fault in faults)
        ]

    def __str__(self) -> str:
        parts = [f"classes={self.classes}"]
        for name, patterns in (("only", self.only), ("skip", self.skip)):
            if patterns:
                parts.append(f"{name}={[pattern.text for pattern in patterns]}")
        return ", ".join(parts)


def _read_classes(classes: Collection[str] | Literal["all"]) -> tuple[str, ...]:
    if isinstance(classes, str):
        classes = ALL if classes == "all" else (classes,)
    allowed = f'give "all" or some of {", ".join(map(repr, CLASSES))}'
    if not isinstance(classes, Iterable):
        raise ValueError(f"classes is {classes!r}; {allowed}")
    wanted = list(classes)
    unknown = [name for name in wanted if name not in CLASSES]
    if unknown or not wanted:
        problem = f"no class of faults is called {unknown[0]!r}" if unknown else "classes is empty"
        raise ValueError(f"{problem}; {allowed}")
    return tuple(name for name in CLASSES if name in wanted)


def _read_patterns(name: str, texts: Sequence[str]) -> tuple[Pattern, ...]:
    if isinstance(texts, str):
        texts = (texts,)
    advice = 'give texts such as "step.*.charge" or "batch.*#*:lose_ack"'
    if not isinstance(texts, Iterable):
        raise ValueError(f"{name} is {texts!r}; {advice}")
    texts = list(texts)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{name} has {text!r}; {advice}")
    return tuple(_read_pattern(text.strip()) for text in texts)


def _read_pattern(text: str) -> Pattern:
    if "#" in text or text.startswith(f"{SCHEDULE}:"):
        fault = Fault.parse(text)
        return Pattern(text, parse_site(fault.site), fault)
    return Pattern(text, parse_site(text), None)
