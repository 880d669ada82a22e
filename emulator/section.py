"""A section of a config: a mapping that knows its place, and reads its values with their types.

Every reader gives a usable value even where the given one is wrong, so that reading goes on and a
`Report` ends up with all that is wrong in a config, one line each: which file or argument, which
key, what was given, what is allowed and, where it has one, the platform's own text.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeGuard

from emulator.errors import ConfigError

TABLE: Final = "a table of keys and values"

_LONGEST_VALUE: Final = 120
_PACKAGE: Final = os.path.dirname(__file__) + os.sep


class ConfigWarning(UserWarning):
    """Something in a config that has no effect, or probably not the intended one."""


class Range(NamedTuple):
    """The numbers a setting allows, both ends included, and what they count (`seconds`)."""

    low: int
    high: int
    unit: str = ""
    whole: bool = True

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        of = f" of {self.unit}" if self.unit else ""
        return f"{kind}{of} from {self.low} to {self.high}"

    def allow(self, value: object) -> bool:
        """Whether this is such a number; `10.0` is a whole one, as in JavaScript."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        whole = isinstance(value, int) or value.is_integer()
        return math.isfinite(value) and self.low <= value <= self.high and (whole or not self.whole)


@dataclass(slots=True)
class Report:
    """What is wrong, and what is suspicious, in the config that is being read."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def wrong(self, line: str) -> None:
        """Note a problem, once: a value may be read for its type and then for its meaning."""
        if line not in self.problems:
            self.problems.append(line)

    def close(self) -> None:
        """Raise `ConfigError` if anything is wrong; issue the warnings otherwise."""
        self.raise_problems()
        for text in self.warnings:
            warnings.warn(ConfigWarning(text), stacklevel=_callers_level())

    def raise_problems(self) -> None:
        """Raise `ConfigError` with all that is wrong, if anything is."""
        if not self.problems:
            return
        # A misspelt key is often what the problem comes from.
        lines = [*self.problems, *(f"(also: {text})" for text in self.warnings)]
        count = len(self.problems)
        if count > 1:
            lines.insert(0, f"{count} problems in the config:")
        raise ConfigError("\n  ".join(lines))


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping inside a config.

    `where` is the config's file, or the argument it came in (`config[1]`); `path` leads from its
    top level here (`queues.consumers[0]`). In a Python mapping None means "not given"; in a file
    null is a value of its own, mostly a wrong one.
    """

    values: Mapping[str, object]
    where: str
    path: str
    report: Report
    is_file: bool

    def __contains__(self, key: str) -> bool:
        return key in self.values and (self.is_file or self.values[key] is not None)

    def at(self, key: str) -> str:
        """Return the whole path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, problem: str, *, says: str | None = None) -> None:
        """Report a problem with a key; `says` is the platform's text, with its speaker."""
        line = f"{self.where}: {self.at(key)} {problem}"
        self.report.wrong(f"{line} ({says})" if says else line)

    def warn(self, key: str, text: str) -> None:
        """Report something suspicious about a key."""
        self.report.warnings.append(f"{self.where}: {self.at(key)} {text}")

    def not_allowed(self, key: str, allowed: object, *, says: str | None = None) -> None:
        """Report a value that is of the wrong type or out of range."""
        self.wrong(key, f"is {shown(self.values[key])}, but must be {allowed}", says=says)

    def text(self, key: str, *, says: str | None = None) -> str | None:
        """Return a text that is not empty; None if it is not given, or wrong."""
        if key not in self:
            return None
        value = self.values[key]
        if isinstance(value, str) and value:
            return value
        self.not_allowed(key, "a text that is not empty", says=says)
        return None

    def number(
        self, key: str, default: float, allowed: Range, *, says: str | None = None
    ) -> int | float:
        """Return a number in a range; the default if it is not given, or wrong."""
        if key not in self:
            return default
        value = self.values[key]
        if allowed.allow(value):
            assert isinstance(value, int | float)
            return int(value) if allowed.whole else value
        self.not_allowed(key, allowed, says=says)
        return default

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false; the default if it is not given, or wrong."""
        if key not in self:
            return default
        value = self.values[key]
        if isinstance(value, bool):
            return value
        self.not_allowed(key, "true or false")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is not given, or wrong."""
        value = self.values[key] if key in self else ()
        if is_list(value) and all(isinstance(item, str) for item in value):
            return tuple(str(item) for item in value)
        self.not_allowed(key, "a list of texts")
        return ()

    def section(self, key: str) -> Section:
        """Return the mapping under a key; an empty one if it is not given, or wrong."""
        value = self.values[key] if key in self else {}
        if not is_table(value):
            self.not_allowed(key, TABLE)
            value = {}
        return Section(value, self.where, self.at(key), self.report, self.is_file)

    def sections(self, key: str) -> list[Section]:
        """Return the mappings in the list under a key; what is no mapping is reported."""
        value = self.values[key] if key in self else ()
        if not is_list(value):
            self.not_allowed(key, "a list of tables")
            return []
        found = []
        for index, item in enumerate(value):
            if is_table(item):
                path = f"{self.at(key)}[{index}]"
                found.append(Section(item, self.where, path, self.report, self.is_file))
            else:
                self.wrong(f"{key}[{index}]", f"is {shown(item)}, but must be {TABLE}")
        return found

    def warn_unknown(self, known: Sequence[str]) -> None:
        """Warn about keys that the platform does not know either, naming the nearest known one."""
        for key in self.values:
            if key not in known:
                self.warn(key, f"is not a known key and has no effect{did_you_mean(key, known)}")


def _callers_level() -> int:
    """The `stacklevel` of the line outside the emulator that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def is_table(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether this is a mapping with texts as its keys."""
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether this is a list; a tuple is one too, a text is none."""
    return isinstance(value, list | tuple)


def shown(value: object) -> str:
    """Write a value as a config file has it, shortened; Python's own objects by their repr.

    >>> shown(True), shown({"queue": 5})
    ('true', '{"queue":5}')
    """
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return text[: _LONGEST_VALUE - 1] + "…"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a question with the nearest known name, or nothing if none is near.

    >>> did_you_mean("max_retrys", ["queue", "max_retries"])
    '; did you mean "max_retries"?'
    """
    import difflib

    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f'; did you mean "{nearest[0]}"?' if nearest else ""
