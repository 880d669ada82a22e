"""The text of one fault, read piece by piece: `site#occurrence:action(argument)`.

    fault      = site "#" occurrence ":" action | "schedule:" seed
    occurrence = a number from 1 | "*"
    action     = name | name "(" argument ")"
    site       = kind *("." name)                as many names as the kind's row in sites.py has

The last `#` ends the site, so the last name may hold anything; what the emulator itself writes has
its special characters percent-encoded (names.py). Only dots inside a name that is not the last
must be encoded, and `;` everywhere: it separates faults.

A site's kind may be a pattern too. Such a site has no fixed number of names: it is matched as a
whole, and `*` stands for dots as well (`*#*:crash_before` strikes everywhere). Where the kind is
plain, `*` stays inside its name; at the end it stands for the names that are left out, too
(`step.*` is `step.*.*`). An action that no site of the pattern can have is refused, since
the fault could never fire.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.durations import DAY, describe, microseconds, tidied
from emulator.errors import DurationError
from emulator.faults.names import BadText, Name, has_glob, read_name
from emulator.faults.sites import ARGUMENTS, KINDS, Action, Kind, Takes, split_site

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEDULE: Final = "schedule"

# Keeps int() away from numbers that it refuses or that take long to read.
_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,17}|0+")
_ALL_KINDS: Final = f"kinds of site: {', '.join(KINDS)}"
_ACTION: Final = re.compile(r"(?P<name>[^()]*)(?:\((?P<argument>[^()]*)\))?")


# A delay that no clock could reach would be an error of the send that it strikes.
_LONGEST: Final = 100 * 366 * DAY
_DURATIONS: Final = (Takes.DURATION, Takes.MAYBE_DURATION)


class FaultText(NamedTuple):
    """The pieces of a fault that was read; the site is canonical.

    `duration` is the argument in the unit in which it was given, if it is one.
    """

    site: str
    occurrence: int | None
    action: str
    argument: int | None
    duration: str = ""


class SitePattern(NamedTuple):
    """A site as a plan names it: `text` is canonical, and `matches` tells which sites it means."""

    text: str
    regex: re.Pattern[str] | None
    whole: bool
    actions: tuple[Action, ...]

    def matches(self, site: str) -> bool:
        """Whether the site of this name (as `site_name` makes it) is meant."""
        if self.regex is None:
            return self.text == site
        kind, names = split_site(site)
        separator = "." if self.whole else "\0"
        return self.regex.fullmatch(separator.join((kind.name, *names))) is not None


def read_fault(text: str) -> FaultText:
    """Read one fault; raises `BadText`."""
    if ";" in text:
        where = text.index(";")
        raise BadText(
            '";" separates faults and one is read here; a literal one is written %3B',
            where,
            where + 1,
        )
    if text.partition(":")[0].partition("#")[0] == SCHEDULE:
        return _read_schedule(text)
    end = _find_occurrence(text)
    site = read_site(text[:end])
    colon = text.find(":", end)
    occurrence = _read_occurrence(text, end + 1, len(text) if colon < 0 else colon)
    if colon < 0 or colon + 1 == len(text):
        raise BadText("the action is missing", len(text), len(text), _list_actions(site))
    action, argument, duration = _read_action(text, colon + 1, site)
    return FaultText(site.text, occurrence, action, argument, duration)


def write_fault(fault: FaultText) -> str:
    """Return the text that `read_fault` reads."""
    if fault.site == SCHEDULE:
        return f"{SCHEDULE}:{fault.argument}"
    occurrence = "*" if fault.occurrence is None else fault.occurrence
    text = f"{fault.site}#{occurrence}:{fault.action}"
    if fault.argument is None:
        return text
    if ARGUMENTS.get(fault.action) in _DURATIONS:
        return f"{text}({fault.duration or describe(fault.argument)})"
    return f"{text}({fault.argument})"


@lru_cache(maxsize=1024)
def read_site(text: str, start: int = 0) -> SitePattern:
    """Read a site; `start` is its place in the plan, for errors. Raises `BadText`."""
    kind, dot, rest = text.partition(".")
    if has_glob(kind):
        return _read_any_site(text, start)
    row = KINDS.get(kind)
    if row is None:
        raise BadText(
            f"no kind of site is called {_quote(kind)}{_did_you_mean(kind, KINDS)}",
            start,
            start + len(kind),
            _ALL_KINDS,
        )
    texts = rest.split(".", max(len(row.names) - 1, 0)) if dot else []
    if texts and texts[-1].endswith("*"):
        texts += ["*"] * (len(row.names) - len(texts))
    if len(texts) != len(row.names):
        raise BadText(f"this site is named {row.form}", start, start + len(text), _example(row))
    names = _read_names(texts, start + len(kind) + 1)
    _check_names(row, names, texts, start + len(kind) + 1)
    return _site_pattern(row, names, start, start + len(text))


# What a name must look like for any site to have it.
_SHAPES: Final = {
    # A token (RFC 9110, 5.6.2) as it stands in a site; such as M-SEARCH, too.
    "METHOD": (re.compile(r"[A-Z0-9!$&'+^_`|~%-]+"), "an HTTP method in capitals"),
    "path": (re.compile(r"/.*", re.DOTALL), "a path that begins with /"),
    "queue": (re.compile(r".+", re.DOTALL), "the name of a queue"),
}

_ANYTHING: Final = re.compile(r".*", re.DOTALL)


def _check_names(row: Kind, names: list[Name], texts: list[str], start: int) -> None:
    """Refuse a name that no site of this kind can have, so that a slip is told at once."""
    for part, name, text in zip(row.names, names, texts, strict=True):
        shape, wanted = _SHAPES.get(part, (_ANYTHING, ""))
        if not name.glob and not shape.fullmatch(name.text):
            problem = f"{_quote(text)} is not {wanted}"
            raise BadText(problem, start, start + len(text), f"{row.form}: {_example(row)}")
        start += len(text) + 1


def _read_names(texts: list[str], start: int) -> list[Name]:
    names: list[Name] = []
    for index, text in enumerate(texts):
        inner = index < len(texts) - 1
        wild = r"[^\0]*" if inner else ".*"
        names.append(read_name(text, start, inner=inner, wild=wild))
        start += len(text) + 1
    return names


def _site_pattern(row: Kind, names: list[Name], start: int, end: int) -> SitePattern:
    text = ".".join((row.name, *(name.text for name in names)))
    glob = any(name.glob for name in names)
    regex = "\0".join((row.name, *(name.regex for name in names))) if glob else None
    actions = row.actions
    if row.operations:
        possible = [o for o in row.operations if re.fullmatch(names[-1].regex, o, re.DOTALL)]
        if not possible:
            wanted = names[-1].text
            raise BadText(
                f"{row.form} has no operation {_quote(wanted)}"
                f"{_did_you_mean(wanted, row.operations)}",
                end - len(wanted),
                end,
                f"operations: {', '.join(row.operations)}",
            )
        at_each = [row.actions_at(operation) for operation in possible]
        actions = tuple(a for a in row.actions if any(a in some for some in at_each))
    return SitePattern(text, _compile(regex), False, actions)


def _read_any_site(text: str, start: int) -> SitePattern:
    """Read a site whose kind is a pattern."""
    name = read_name(text, start)
    kind = text.partition(".")[0]
    # A star may stand for dots, so what follows one says nothing about the kind.
    fixed = kind[: kind.index("*") + 1] if "*" in kind else kind
    regex = re.compile(read_name(fixed, start).regex, re.DOTALL)
    kinds = [row for row in KINDS.values() if row.names and regex.fullmatch(row.name)]
    if not kinds:
        raise BadText("no kind of site matches this", start, start + len(kind), _ALL_KINDS)
    actions = {action: None for row in kinds for action in row.actions}
    return SitePattern(name.text, _compile(name.regex), True, tuple(actions))


def _compile(regex: str | None) -> re.Pattern[str] | None:
    return None if regex is None else re.compile(regex, re.DOTALL)


def _find_occurrence(text: str) -> int:
    """Return the place of the `#` that ends the site."""
    end = text.rfind("#")
    if end < 0:
        site, colon, action = text.rpartition(":")
        if not colon:
            site, action = text, "action"
        read_site(site)
        raise BadText(
            "which occurrence is missing",
            len(site),
            len(site),
            f"write {site}#1:{action} for the first, {site}#*:{action} for every one",
        )
    return end


def _read_occurrence(text: str, start: int, end: int) -> int | None:
    number = text[start:end]
    if number == "*":
        return None
    if _NUMBER.fullmatch(number) is None or int(number) == 0:
        raise BadText(
            f"{_quote(number)} is no occurrence: it is counted from 1 in the order met, "
            "and * is every one",
            start,
            end,
        )
    return int(number)


def _read_action(text: str, start: int, site: SitePattern) -> tuple[str, int | None, str]:
    parsed = _ACTION.fullmatch(text, start)
    name = parsed["name"] if parsed else text[start:].partition("(")[0]
    candidates = [action for action in site.actions if action.name == name]
    if not candidates:
        raise BadText(
            f"no action is called {_quote(name)} at {site.text}"
            f"{_did_you_mean(name, [action.name for action in site.actions])}",
            start,
            start + len(name),
            _list_actions(site),
        )
    if parsed is None:
        raise BadText("this is neither an action nor action(argument)", start, len(text))
    # Kinds that a pattern names may differ in what an action takes: the most liberal one decides.
    takes = next((a.takes for a in candidates if a.takes is not Takes.NOTHING), candidates[0].takes)
    if takes in _DURATIONS and parsed["argument"] is not None:
        return name, *_read_duration(parsed)
    return name, _read_argument(parsed, takes), ""


def _read_argument(parsed: re.Match[str], takes: Takes) -> int | None:
    name, text = parsed["name"], parsed["argument"]
    if text is None:
        if takes.optional:
            return None
        raise BadText(f"{name} needs {takes.value}, in parentheses", *parsed.span())
    if takes is Takes.NOTHING:
        start, end = parsed.span("argument")
        raise BadText(f"{name} takes no argument", start - 1, end + 1)
    number = text.strip()
    if _NUMBER.fullmatch(number) is None or not 200 <= int(number) <= 599:
        raise BadText(f"{name} takes {takes.value}", *parsed.span("argument"))
    return int(number)


def _read_duration(parsed: re.Match[str]) -> tuple[int, str]:
    text = parsed["argument"].strip()
    if _NUMBER.fullmatch(text):
        text += " s"
    try:
        duration = microseconds(text)
    except DurationError as error:
        raise BadText(str(error), *parsed.span("argument")) from None
    if duration > _LONGEST:
        raise BadText(f"{text} is longer than 100 years", *parsed.span("argument"))
    return duration, tidied(text)


def _read_schedule(text: str) -> FaultText:
    seed = text[len(SCHEDULE) + 1 :].strip()
    if not text.startswith(f"{SCHEDULE}:") or _NUMBER.fullmatch(seed) is None:
        raise BadText(
            f"{SCHEDULE} is followed by a seed and nothing else",
            len(SCHEDULE),
            len(text),
            f"write {SCHEDULE}:7; any whole number from 0 will do",
        )
    return FaultText(SCHEDULE, None, SCHEDULE, int(seed))


def _list_actions(site: SitePattern) -> str:
    def write(action: Action) -> str:
        return action.name if action.takes.optional else f"{action.name}(...)"

    names = {write(action): None for action in site.actions}
    return f"actions there: {', '.join(names)}"


def _example(row: Kind) -> str:
    everything = ".".join((row.name, *("*" for _ in row.names)))
    return f"one occurrence is {row.occurrence}; {everything} is every one"


def _did_you_mean(text: str, known: Iterable[str]) -> str:
    close = get_close_matches(text, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def _quote(text: str) -> str:
    return f'"{text}"'
