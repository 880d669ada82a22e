"""A wrangler config as written: finding its file, reading it, choosing an environment."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.config_keys import ENVIRONMENT_KEYS, NOT_INHERITED, TOP_LEVEL_KEYS, check
from emulator.section import TABLE, Section, is_table, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.section import Report

FILE_NAMES: Final = ("wrangler.jsonc", "wrangler.json", "wrangler.toml")


@dataclass(frozen=True, slots=True)
class Layers:
    """A config as one Worker sees it: an environment's keys over those of the top level."""

    top: Section
    environment: Section | None = None

    def of(self, key: str) -> Section:
        """Return the section that says what this key is, whether or not it has it."""
        if self.environment is None:
            return self.top
        inherits = key not in NOT_INHERITED and key not in self.environment
        return self.top if inherits else self.environment


def find(start: Path) -> Path | None:
    """Return the nearest wrangler config at or above a folder, or None.

    In one folder `wrangler.jsonc` goes before `wrangler.json` and `wrangler.toml`.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        for name in FILE_NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def read(path: Path, report: Report) -> Section | None:
    """Read a config file; what keeps it from being read goes into the report."""
    path = Path(os.path.abspath(path))
    try:
        values = _parsed(path)
    except _Unreadable as error:
        report.wrong(f"{path}: {error}")
        return None
    return Section(values, str(path), "", report, is_file=True)


def layers(top: Section, environment: str | None) -> Layers:
    """Choose an environment of a config and check the types of all keys that then count."""
    check(top, TOP_LEVEL_KEYS)
    if environment is None:
        return Layers(top)
    environments = top.section("env")
    if environment not in environments:
        known = ", ".join(environments.values)
        there = f"those of this config are {known}" if known else "this config has none"
        says = f'wrangler: No environment found in configuration with name "{environment}".'
        environments.wrong(environment, f"is not there; {there}", says=says)
        return Layers(top)
    chosen = environments.section(environment)
    check(chosen, ENVIRONMENT_KEYS)
    if lost := [key for key in NOT_INHERITED if key in top and key not in chosen]:
        text = f"does not inherit {', '.join(lost)}; repeat there what is meant for it"
        environments.warn(environment, text)
    return Layers(top, chosen)


class _Unreadable(Exception):
    """Why a config file cannot be read."""


def _parsed(path: Path) -> Mapping[str, object]:
    text = _text(path)
    if path.suffix == ".toml":
        return _toml(text)
    if path.suffix not in (".json", ".jsonc"):
        raise _Unreadable(f"a wrangler config ends in .jsonc, .json or .toml, not {path.suffix!r}")
    values = _jsonc(text)
    if not is_table(values):
        raise _Unreadable(f"the file must hold {TABLE} ({{…}}), not {shown(values)}")
    return values


def _text(path: Path) -> str:
    if not path.is_file():
        what = "is a folder, not a config file" if path.is_dir() else "there is no such file"
        nearest = find(path)
        hint = (
            f"the nearest is {nearest}" if nearest else f"none of {', '.join(FILE_NAMES)} is near"
        )
        raise _Unreadable(f"{what}; {hint}")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unreadable(f"the file is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise _Unreadable(f"the file cannot be read: {error.strerror}") from None
    if not text.strip():
        raise _Unreadable("the file is empty")
    return text


def _toml(text: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).removesuffix(")").rpartition(" (at ")
        if place == "end of document":
            place = _place(text, len(text))
        raise _Unreadable(f"{place}: {problem}") from None


def _jsonc(text: str) -> object:
    """Parse JSON with comments and trailing commas; plain JSON needs nothing but the stdlib."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    import pyjson5

    try:
        return pyjson5.decode(text)
    except pyjson5.Json5DecoderException as error:
        message, _, found = error.args
        raise _Unreadable(_json_problem(text, str(message), found)) from None


def _json_problem(text: str, message: str, found: object) -> str:
    """Make a message as `Expected b'comma' or U+007d near 8, found U+0022` readable."""
    problem, _, rest = message.partition(" near ")
    near = re.match(r"\d+", rest)
    index = int(near[0]) if near else 0
    if index and not problem.startswith("Extra data"):
        index -= 1  # All other messages count from 1.
    if isinstance(found, str) and text[index : index + 1] != found:
        index = max(text.find(found, index), index)
    problem = re.sub(r"b'(\w+)'", r"\1", problem.removesuffix(" starting"))
    problem = re.sub(r"U\+([0-9A-Fa-f]+)", lambda code: repr(chr(int(code[1], 16))), problem)
    tail = f", found {found!r}" if isinstance(found, str) and "Expected" in problem else ""
    return f"{_place(text, index)}: {problem}{tail}"


def _place(text: str, index: int) -> str:
    line = text.count("\n", 0, index) + 1
    return f"line {line}, column {index - text.rfind(chr(10), 0, index)}"
