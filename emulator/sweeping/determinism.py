"""Two runs of one plan must be the same; where they differ, and how that is told.

What differs says little of why. The circumstances say more, and they decide what is called the
likely cause:

    two runs in one process differ                   something outlives a run, or real time
    two processes, each with its own PYTHONHASHSEED  the order of a set
    two processes with the same PYTHONHASHSEED       real time, addresses, what is the process's own
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.clock import instant, moment
from emulator.findings import Finding
from emulator.sweeping.account import Account
from emulator.sweeping.outcome import NONDETERMINISTIC, Failure, FindingsError
from emulator.trace.timeline import Row, timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.sweeping.outcome import Outcome
    from emulator.trace import Trace

_NUMBER: Final = re.compile(r"\d+")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b1\d{9}(\.\d+|\d{3}|\d{6}|\d{9})?\b")


# What a path or a query is made of; a word of one.
_NAME: Final = re.compile(r"[^\s\"'<>?&=,;]+")
_WORD: Final = re.compile(r"[\w.-]+")
_TEMPORARY: Final = re.compile(
    r"/te?mp/|/var/folders/|\\Temp\\|pytest-of-|\btmp[a-z0-9_]{8}\b", re.IGNORECASE
)
_LONG: Final = 16
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[a-zA-Z]")
_FRACTION: Final = re.compile(r"\d\.\d{6,}")


class Circumstances(NamedTuple):
    """Where two runs were made: what it says of them, their names, and the likely cause."""

    where: str
    names: tuple[str, str]
    cause: str


_GENERAL: Final = (
    "A sweep needs a scenario that does the same each time. What differs comes from outside the "
    "emulator: real time, id() or the order of a set, the process's own randomness, a file, or "
    "what an earlier run left behind: in a module of the test, in a fixture of a wider scope, in "
    "bindings."
)
IN_PROCESS: Final = Circumstances("", ("first run", "second run"), _GENERAL)
_TWO_PROCESSES: Final = Circumstances(
    " in two processes",
    ("one process", "another"),
    "Likely cause: something that each process has of its own, and not the order of a set of "
    "texts, as both had the same PYTHONHASHSEED. That is real time which code in C reads past the "
    "virtual clock (a database, the time stamp of a file), id() and the order of a set of objects, "
    "the number of the process, the name of a temporary file. Ask the emulator for the time, sort "
    "by something that is the same each time, give names that are fixed.",
)


def two_hash_seeds(one: int, other: int) -> Circumstances:
    """Two processes, each with a PYTHONHASHSEED of its own, where others of one seed agree."""
    return Circumstances(
        " in processes with another PYTHONHASHSEED",
        (f"PYTHONHASHSEED={one}", f"PYTHONHASHSEED={other}"),
        "Likely cause: the order of a set, or of something that is made of one. Texts and bytes "
        "hash differently in each process, and the order of a set of them follows the hashes. Use "
        "`sorted(...)` where the set is iterated, or keep what has an order in a list or as the "
        "keys of a dict (`dict.fromkeys(...)`). With these values of the environment variable "
        "PYTHONHASHSEED the scenario itself goes the one way and the other.",
    )


def two_processes() -> Circumstances:
    """Two processes that had the same PYTHONHASHSEED."""
    return _TWO_PROCESSES


def is_same(first: Outcome, second: Outcome) -> bool:
    """Whether two runs of one plan went the same way."""
    return (first.error is None, first.cause, first.digest) == (
        second.error is None,
        second.cause,
        second.digest,
    )


def differing(first: Outcome, second: Outcome) -> Failure:
    """Return the failure of two clean runs of this process that are not the same."""
    found = failure(Account.of(first), Account.of(second), IN_PROCESS, trace=first.trace)
    return replace(found, other_trace=second.trace)


def failure(
    first: Account,
    second: Account,
    circumstances: Circumstances,
    *,
    trace: Trace | None,
) -> Failure:
    """Return the failure of two clean runs that are not the same; `trace` is of one made here."""
    found = _first_difference(first, second)
    what = "only in how it ended" if found is None else f"first at event {found + 1}"
    message = f"two runs without a fault{circumstances.where} differed, {what}"
    place = _place(first, found) or _place(second, found)
    at, subject = _when(first, second, found)
    location = place.partition(": ")[0] or None
    finding = Finding(
        NONDETERMINISTIC, message, moment(at), location=location, subject=subject or None
    )
    shown = _sides(first, second, found, circumstances.names)
    cause = _likely(first, second, found) if circumstances is IN_PROCESS else ""
    text = "\n".join((f"{NONDETERMINISTIC}: {message}", *shown, cause or circumstances.cause))
    return Failure(
        plan=(),
        error=FindingsError([finding]),
        trace=trace,
        cause=NONDETERMINISTIC,
        replayed=True,
        text=text,
        place=place,
    )


def described(first: Account, second: Account, names: tuple[str, str]) -> str:
    """Return where two runs differ, in a few lines."""
    found = _first_difference(first, second)
    what = "only in how it ended" if found is None else f"first at event {found + 1}"
    return "\n".join((what, *_sides(first, second, found, names)))


# -- where ---------------------------------------------------------------------------------------


def _first_difference(first: Account, second: Account) -> int | None:
    """Return the index of the first event that is not written in the same way."""
    for index, (one, other) in enumerate(zip_longest(first.lines, second.lines)):
        if one != other:
            return index
    return None


def _when(first: Account, second: Account, index: int | None) -> tuple[int, str]:
    for account in (first, second):
        if index is not None and index < len(account.lines):
            event = json.loads(account.lines[index])
            return _instant(event["at"]), event["subject"]
    return first.start, ""


def _place(account: Account, index: int | None) -> str:
    """The line behind an event of a run, if it has this event and a line is known."""
    if index is None or index >= min(len(account.lines), len(account.places)):
        return ""
    return account.places[index]


def _place_before(account: Account, index: int | None) -> str:
    """The latest line known before an event, if there is one on its lane, there."""
    if index is None:
        index = len(account.lines)
    earlier = list(zip(account.lines[:index], account.places[:index], strict=False))
    if index < len(account.lines):
        lane = json.loads(account.lines[index])["subject"]
        same = [pair for pair in earlier if json.loads(pair[0])["subject"] == lane and pair[1]]
        earlier = same or earlier
    return next((place for _, place in reversed(earlier) if place), "")


# -- how it is told ------------------------------------------------------------------------------


def _sides(first: Account, second: Account, index: int | None, names: tuple[str, str]) -> list[str]:
    """Return what each of the runs did there, and the lines of the user's code."""
    width = max(map(len, names)) + 1
    one, other = (_place(account, index) for account in (first, second))
    lines = []
    for name, account, place in ((names[0], first, one), (names[1], second, other)):
        lines.append(f"  {f'{name}:':<{width}} {_event(account, index)}")
        if place and one != other:
            lines.append(f"  {'':<{width}} at {place}")
    if one and one == other:
        lines.append(f"  at {one}")
    elif not (one or other):
        before = _place_before(first, index) or _place_before(second, index)
        lines += [f"  after {before}"] if before else []
    return lines


def _event(account: Account, index: int | None) -> str:
    """One event as the timeline has it; without one, how the run ended."""
    if index is None:
        return "passed" if account.passed else "\n    ".join(account.text.splitlines())
    if index >= len(account.lines):
        how = "" if account.passed else f": {account.text.splitlines()[0]}"
        return f"(it had ended{how})"
    event = json.loads(account.lines[index])
    offset = _instant(event["at"]) - account.start
    row = Row(offset, event["kind"], event["subject"], event["data"])
    return "\n    ".join(timeline(account.start, [row]).splitlines()[1:]).strip()


def _instant(text: str) -> int:
    return instant(datetime.fromisoformat(text))


# -- why -----------------------------------------------------------------------------------------


def _likely(first: Account, second: Account, index: int | None) -> str:
    """Return the likely cause of a difference between two runs of one process, if it shows."""
    if index is None or index >= min(len(first.lines), len(second.lines)):
        return ""
    if sorted(first.lines) == sorted(second.lines):
        return (
            "Likely cause: the same happened in another order, that of id() or of a set of "
            "objects, which hash by their addresses. Sort by something that is the same in each "
            "run, or keep them in a list."
        )
    one, other = _data(first, second, index)
    if all(map(_TEMPORARY.search, _parts(_NAME, one, other))):
        return (
            "Likely cause: the name of a temporary folder or file (tmp_path, tempfile), which is "
            "another one in each run. Pass on a name that is fixed: what stands below the folder, "
            "or the content."
        )
    if _are_random(*_parts(_WORD, one, other)):
        return (
            "Likely cause: a random value, or a hash of one (uuid4(), secrets, os.urandom(), "
            "random), from the test, a fixture or a library. Give a fixed value, or a seed, in the "
            "scenario; in Worker code `random`, `uuid` and `secrets` are seeded already."
        )
    differing = _numbers(first.lines[index], second.lines[index])
    if differing and all(_TIME.search(line) for line in _data(first, second, index)):
        return (
            "Likely cause: real time. Take it from `emulator.now` in the scenario; in Worker code "
            "`time.time()` and `datetime.now()` are virtual already, but code in C (a database, "
            "the time stamp of a file) asks the machine."
        )
    if differing and all(one < other for one, other in differing):
        return (
            "Likely cause: a number that goes up from run to run, such as a counter in a module "
            "of the test, in a Worker that is given as a class, or in bindings. Start it in the "
            "scenario; give the path of the Worker's file, which is loaded anew in each run."
        )
    return ""


def _numbers(one: str, other: str) -> Sequence[tuple[int, int]]:
    """Return the numbers in which two lines differ; none if they differ in something else."""
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return ()
    pairs = zip(map(int, _NUMBER.findall(one)), map(int, _NUMBER.findall(other)), strict=True)
    return [pair for pair in pairs if pair[0] != pair[1]]


def _parts(pattern: re.Pattern[str], one: str, other: str) -> tuple[str, str]:
    """Return what such a pattern finds in two texts where they first differ."""
    pairs = enumerate(zip(one, other, strict=False))
    at = next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
    return _part(pattern, one, at), _part(pattern, other, at)


def _part(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = (match[0] for match in pattern.finditer(text) if match.start() <= at <= match.end())
    return next(found, "")


def _are_random(*words: str) -> bool:
    """Whether words look as if they were drawn by lot: UUIDs, long tokens, fractions."""
    if all(map(_FRACTION.fullmatch, words)):
        return True
    shapes = {_NUMBER.sub("0", word) for word in words}  # a counter changes numbers only
    return len(shapes) > 1 and all(map(_is_long, words))


def _is_long(word: str) -> bool:
    return len(word) >= _LONG and bool(_DIGIT.search(word)) and bool(_LETTER.search(word))


def _data(first: Account, second: Account, index: int) -> list[str]:
    """What the two runs say of the event, without its virtual time."""
    return [json.dumps(json.loads(account.lines[index])["data"]) for account in (first, second)]
