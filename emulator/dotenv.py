"""Secrets of local development: `.dev.vars` and `.env` files, as `wrangler dev` reads them.

Which file counts: `.dev.vars.<environment>`, else `.dev.vars`, alone; only if there is neither,
`.env`, `.env.local`, `.env.<environment>` and `.env.<environment>.local`, later ones winning, with
`$NAME` and `${NAME:-default}` expanded (in `.dev.vars` a `$` is just a dollar sign). The process's
own environment never counts: a test must not depend on the shell it is started from.

The grammar is that of dotenv 16 for Node.js, which wrangler uses. It is read here and not by
python-dotenv because the two differ in real secrets: an unquoted value ends at the first `#`, with
or without a space before it; backquotes quote; `NAME: value` is an assignment; quotes that are
never closed belong to the value; and of the escapes only `\\n` and `\\r` exist, in double quotes.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ASSIGNMENT: Final = re.compile(
    r"""
    ^\s* (?:export\s+)? (?P<name>[A-Za-z0-9_.-]+) (?:\s*=[^\S\n]*|:[^\S\n]+)
    (?: ' (?P<single> (?:\\'|[^'])* ) '
      | " (?P<double> (?:\\"|[^"])* ) "
      | ` (?P<back>   (?:\\`|[^`])* ) `
      |   (?P<bare>   [^\#\n]* )
    )
    [^\S\n]* (?:\#.*)? $
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)

# The innermost `${…}`, or `$NAME`, unless a backslash stands before the dollar sign.
_REFERENCE: Final = re.compile(r"(?<!\\)\$(?:\{([^{}]+)\}|([A-Za-z_][A-Za-z0-9_]*))")
_OPERATOR: Final = re.compile(r":-|:\+|-|\+")

# References may nest (`${A:-${B:-c}}`); a value that refers to itself must not run for ever.
_DEEPEST_NESTING: Final = 10


class Unreadable(Exception):
    """A file that is there and cannot be read; the text has its path and why."""


def secrets(folder: Path, *, environment: str | None = None) -> dict[str, str]:
    """Return the secrets in the files of this folder, in order of appearance; {} without any.

    Raises `Unreadable` for a file that is there and cannot be read.
    """
    return read(folder, environment=environment).values


class Read(NamedTuple):
    """What the files of a folder have, and what in them is passed over, a line each."""

    values: dict[str, str]
    warnings: list[str]


def read(folder: Path, *, environment: str | None = None) -> Read:
    """Return the secrets in the files of this folder, and what is passed over.

    wrangler passes it over without a word, so that a secret seems not to be set. A line is told by
    its number only: what it has may be a secret. Raises `Unreadable` as `secrets` does.
    """
    found = Read({}, [])
    for path in candidates(folder, environment=environment):
        if not _is_file(path, found.warnings):
            continue
        text = _text(path)
        found.warnings.extend(
            f"{path}:{line}: the line is no assignment, and is passed over: NAME=value, with a "
            "name of A-Z, a-z, 0-9, _, . and -"
            for line in other_lines(text)
        )
        if path.name.startswith(".dev.vars"):
            return Read(parse(text), found.warnings)
        found.values.update(parse(text))
    return Read(expand(found.values), found.warnings)


def candidates(folder: Path, *, environment: str | None = None) -> list[Path]:
    """Return the files that may hold secrets, in the order in which they are looked for."""
    suffix = f".{environment}"
    names = [f".dev.vars{suffix}", ".dev.vars"] if environment else [".dev.vars"]
    names += [".env", ".env.local"]
    names += [f".env{suffix}", f".env{suffix}.local"] if environment else []
    return [folder / name for name in names]


def parse(text: str) -> dict[str, str]:
    """Read the assignments of one file; lines that are none are left out, as dotenv does.

    >>> parse("TOKEN=abc # live\\nexport KEY='a b'")
    {'TOKEN': 'abc', 'KEY': 'a b'}
    """
    return {found["name"]: _value(found) for found in _ASSIGNMENT.finditer(_lines(text))}


def other_lines(text: str) -> list[int]:
    """Return the numbers of lines that are no part of an assignment, no comment and not empty.

    >>> other_lines("A=1 # live\\n# keys\\nTOKEN\\nB C=3")
    [3, 4]
    """
    lines = _lines(text)
    left = _ASSIGNMENT.sub(lambda found: "\n" * found[0].count("\n"), lines)
    return [
        number
        for number, line in enumerate(left.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def expand(values: Mapping[str, str]) -> dict[str, str]:
    """Replace references to names that come earlier; a missing one is empty or its default.

    >>> expand({"HOST": "db", "URL": "pg://${HOST}/${NAME:-main}", "PRICE": r"\\$5"})
    {'HOST': 'db', 'URL': 'pg://db/main', 'PRICE': '$5'}
    """
    known: dict[str, str] = {}
    for name, value in values.items():
        for _ in range(_DEEPEST_NESTING):
            before, value = value, _REFERENCE.sub(lambda found: _referred(found, known), value)
            if value == before or value in known.values():
                break
        known[name] = value.replace(r"\$", "$")
    return known


def _value(found: re.Match[str]) -> str:
    if (bare := found["bare"]) is not None:
        return bare.strip()
    if (double := found["double"]) is not None:
        return double.replace(r"\n", "\n").replace(r"\r", "\r")
    return found["single"] if found["single"] is not None else found["back"]


def _referred(found: re.Match[str], known: Mapping[str, str]) -> str:
    expression = found[1] or found[2]
    operator = _OPERATOR.search(expression)
    if operator is None:
        return known.get(expression, "")
    value = known.get(expression[: operator.start()], "")
    other = expression[operator.end() :]
    if operator[0].endswith("+"):
        return other if value else ""
    return value or other


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_file(path: Path, warnings: list[str]) -> bool:
    """Whether a file is there; what is there and is none makes a warning."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            warnings.append(f"{path}: is a link to a file that is not there, and is passed over")
        return False
    except OSError as error:
        raise Unreadable(f"{path}: the file cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        warnings.append(f"{path}: is {what}, and is passed over: secrets are in a file")
    return stat.S_ISREG(mode)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: the file is not UTF-8: byte {error.start}") from None
    except OSError as error:
        raise Unreadable(f"{path}: the file cannot be read: {error.strerror}") from None
