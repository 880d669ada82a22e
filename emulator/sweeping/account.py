"""What is compared of a run: how it ended, what happened, and on which lines.

An account is plain text, so that it can come from another process.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from emulator.sweeping.outcome import describe
from emulator.sweeping.places import LocatedTrace

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Account:
    """A run as it is compared with another.

    `lines` are those of the trace's `outline`, `places` the line of the user's code behind each
    (`src/entry.py:12: the source`), empty where none is known. Only `passed`, `cause` and `lines`
    make two runs differ.
    """

    passed: bool
    cause: str = ""
    text: str = ""
    start: int = 0
    lines: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> Account:
        """Return the account of a run without faults."""
        trace = outcome.trace
        passed = outcome.error is None
        return cls(
            passed=passed,
            cause=outcome.cause,
            text="" if passed else outcome.text or describe(outcome.error),
            start=trace.start if trace is not None else 0,
            lines=tuple(trace.outline().splitlines()) if trace is not None else (),
            places=tuple(trace.shown_places()) if isinstance(trace, LocatedTrace) else (),
        )

    @classmethod
    def read(cls, value: dict[str, Any]) -> Account:
        """Return what `written` has made a JSON object of."""
        lines, places = tuple(value["lines"]), tuple(value["places"])
        return cls(**{**value, "lines": lines, "places": places})

    def written(self) -> dict[str, Any]:
        """Return the account as a JSON object."""
        return asdict(self)

    def is_same(self, other: Account) -> bool:
        """Whether two runs went the same way."""
        return self._compared == other._compared

    @property
    def _compared(self) -> tuple[bool, str, tuple[str, ...]]:
        return self.passed, self.cause, self.lines
