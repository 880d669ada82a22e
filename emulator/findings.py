"""Findings: what a run did that is wrong, or probably not meant, though nothing may have failed.

The codes, what they mean and which of them fail a test by default are one table. A finding that
was raised in an invocation that a fault struck is not made at all: the fault is its cause, and the
scenario's own assertions judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from emulator.secrets import Masker
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from datetime import datetime


class Code(NamedTuple):
    """A row of the table: whether a finding fails a test by default, and what it means."""

    fails: bool
    meaning: str


# In the order of the documentation (docs/findings.md).
CODES: Final[Mapping[str, Code]] = MappingProxyType(
    {
        "background_error": Code(True, "a `waitUntil` task failed"),
        "floating_task": Code(True, "a task was neither awaited nor given to `waitUntil`"),
        "never_awaited": Code(True, "a call's result was never awaited"),
        "outbound_unmocked": Code(True, "a request to the outside that nothing mocks was denied"),
        "fault_not_fired": Code(True, "a planned fault never fired"),
        "nondeterministic": Code(True, "two runs of one plan differed"),
        "handler_exception": Code(False, "a fetch handler raised an exception"),
        "wait_until_cancelled": Code(False, "a `waitUntil` task ran past its 30 s"),
        "ignored_ack": Code(False, "an ack or retry call had no effect"),
        "message_dropped": Code(False, "a message ran out of retries and has no dead letter queue"),
        "no_consumer": Code(False, "messages lie in a queue that nobody consumes"),
        "missing_handler": Code(False, "a consumer Worker has no `queue` handler"),
        "wrong_arity": Code(False, "a handler cannot take the arguments production gives it"),
        "alarm_dropped": Code(False, "an object's alarm failed until it was given up"),
        "missing_binding": Code(False, "a binding that is declared and not emulated was used"),
        "ignored_option": Code(False, "an option that production ignores"),
        "lossy_body": Code(False, "a message's body holds what JSON cannot"),
        "effect_outside_step": Code(False, "a Workflow has an effect outside its steps"),
        "replay_diverged": Code(False, "a Workflow's replay met other steps than before"),
        "sleep_changed": Code(False, "a Workflow's replay gave a sleep another time"),
        "mock_not_reached": Code(False, "a mocked step was never reached"),
    }
)
# Of one place, where several findings are told as one.
_SHOWN_MESSAGES: Final = 5
DEFAULT_STRICT: Final = frozenset(code for code, row in CODES.items() if row.fails)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: what (`code`, `message`), when in virtual time, and where.

    `location` is a line of the user's code (`src/entry.py:12`), `subject` what it happened to (a
    queue, an invocation); both are None where there is none. Raises `ValueError` for a code that
    is not in `CODES`.
    """

    code: str
    message: str
    at: datetime
    location: str | None = None
    worker: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        check_codes((self.code,))

    def __str__(self) -> str:
        where = [self.subject, f"Worker {self.worker}" if self.worker else None]
        places = [*(place for place in where if place), f"at {write_datetime(self.at)}"]
        line = f"{self.location}: " if self.location else ""
        return f"{line}{self.code}: {self.message} ({', '.join(places)})"


class Findings(Sequence[Finding]):
    """The findings of one emulator, computed whenever they are read, in order of time.

    Findings that say the same of the same line and subject are listed once. `masker` knows the
    secrets that no message may show.
    """

    def __init__(self, masker: Masker | None = None) -> None:
        self._masker = masker if masker is not None else Masker()
        self._added: list[Finding] = []
        self._providers: list[Callable[[], Iterable[Finding]]] = []
        # A dict and not a set: only its order may ever be seen.
        self._expected: dict[str, None] = {}

    def expect(self, code: str) -> None:
        """Mark all findings of this code, those to come too, as intended: they fail no test.

        Raises `ValueError`, listing the codes, when there is no such code.
        """
        check_codes((code,))
        self._expected[code] = None

    def unexpected(self, strict: Collection[str] | None = None) -> list[Finding]:
        """Return the findings that fail a test: those of a strict code that nobody expected.

        `strict` replaces the codes that fail by default. Raises `ValueError`, listing the codes,
        for one that does not exist.
        """
        codes = _strict(strict)
        return [f for f in self if f.code in codes and f.code not in self._expected]

    def tolerated(self, strict: Collection[str] | None = None) -> list[Finding]:
        """Return the other findings that nobody expected, which are warnings."""
        codes = _strict(strict)
        return [f for f in self if f.code not in codes and f.code not in self._expected]

    # What the emulator's parts call.

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        self._added.append(finding)

    def provide(self, provider: Callable[[], Iterable[Finding]]) -> None:
        """Call `provider` at each reading for findings that are true then, not for ever."""
        self._providers.append(provider)

    def close(self) -> None:
        """Ask the providers once more and let go of them; the findings stay readable."""
        self._added = self._read()
        self._providers.clear()

    def forget(self, keep: int) -> None:
        """Keep so many of the findings added."""
        del self._added[: max(len(self._added) - keep, 0)]

    def clear(self) -> None:
        """Forget the findings added and what was expected; providers stay."""
        self._added.clear()
        self._expected.clear()

    def _read(self) -> list[Finding]:
        found = [*self._added, *(f for provider in self._providers for f in provider())]
        found.sort(key=lambda finding: finding.at)
        first: dict[tuple[str | None, ...], Finding] = {}
        for f in found:
            shown = replace(f, message=self._masker(f.message))
            first.setdefault((f.code, f.location, f.subject, f.worker, shown.message), shown)
        return list(first.values())

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> list[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | list[Finding]:
        return self._read()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple | Findings):
            return self._read() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"[{', '.join(map(str, self))}]"


class Group(NamedTuple):
    """Findings of one code at one place of the user's code, told as one."""

    code: str
    text: str


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Return findings told as few as can be, in the order in which the first of each came."""
    places: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        place = finding.location or finding.message
        places.setdefault((finding.code, place), []).append(finding)
    return [Group(code, _tell(found)) for (code, _), found in places.items()]


def _tell(findings: list[Finding]) -> str:
    first, *others = findings
    text = str(first)
    if others:
        text += f": {len(findings)} times, the last at {write_datetime(others[-1].at)}"
    messages = [m for m in dict.fromkeys(other.message for other in others) if m != first.message]
    text += "".join(f"\n    also: {message}" for message in messages[:_SHOWN_MESSAGES])
    left_out = len(messages) - _SHOWN_MESSAGES
    return f"{text}\n    and {left_out} more messages" if left_out > 0 else text


def check_codes(codes: Iterable[str]) -> None:
    """Raise `ValueError`, listing the codes, if one of these does not exist."""
    for code in codes:
        if code not in CODES:
            close = get_close_matches(code, CODES, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"no finding has the code {code!r}{hint} Codes: {', '.join(CODES)}")


def _strict(strict: Collection[str] | None) -> Collection[str]:
    if strict is None:
        return DEFAULT_STRICT
    check_codes(strict)
    return strict
