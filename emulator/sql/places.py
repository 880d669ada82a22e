"""Where in a statement an error is, in bytes.

SQLite knows and Python does not tell. But SQLite can be asked again: a statement cut off behind the
right word has the same syntax error, and one in which the right name is another has another error.
Only prepared, never run, and only when there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from emulator.sql.limits import LIMITS
from emulator.sql.statements import first_excess

Says = Callable[[str], str | None]
"""What SQLite says of a statement; None where nothing is wrong with it."""

# Errors of the grammar: the statement up to the word has them too.
_CUT: Final = (
    re.compile(r'near "(?P<word>.+)": syntax error', re.DOTALL),
    re.compile(r'unrecognized token: "(?P<word>.+)"', re.DOTALL),
)
_PARAMETERS: Final = re.compile(r"too many SQL variables|variable number must be between .+")
# Errors about a name: they are gone, or name another, where it is another.
_NAMED: Final = (
    re.compile(r'no such column: "?(?P<before>(?:[^."]+\.)*)(?P<word>[^."]+)"?(?: - .+)?'),
    re.compile(r"ambiguous column name: (?P<before>(?:[^.]+\.)*)(?P<word>[^.]+)"),
    re.compile(r"no such function: (?P<before>)(?P<word>.+)"),
    re.compile(r"not authorized to use function: (?P<before>)(?P<word>.+)"),
    re.compile(r"wrong number of arguments to function (?P<before>)(?P<word>.+)\(\)"),
    re.compile(r"too many arguments on function (?P<before>)(?P<word>.+)"),
    re.compile(r"misuse of (?:aggregate|window function):? (?P<before>)(?P<word>.+)\(\)"),
)


def place_of(message: str, sql: str, says: Says) -> int | None:
    """Return the offset in bytes that SQLite has for an error; None where it has none."""
    index = _index_of(message, sql, says)
    return None if index is None else len(sql[:index].encode("utf-8", "replace"))


def _index_of(message: str, sql: str, says: Says) -> int | None:
    for pattern in _CUT:
        if match := pattern.fullmatch(message):
            return _end_of_sense(message, sql, re.escape(match["word"]), says)
    if _PARAMETERS.fullmatch(message):
        return first_excess(sql, LIMITS.variables)
    for pattern in _NAMED:
        if match := pattern.fullmatch(message):
            return _where_named(message, sql, match["before"], match["word"], says)
    return None


def _end_of_sense(message: str, sql: str, word: str, says: Says) -> int | None:
    """Return where the first of these words is behind which the statement has the error."""
    for match in re.finditer(word, sql, re.DOTALL):
        if says(sql[: match.end()]) == message:
            return match.start()
    return None


def _where_named(message: str, sql: str, before: str, word: str, says: Says) -> int | None:
    """Return where the name is whose replacement by another makes the error another."""
    parts = [*(re.escape(part) for part in before.split(".") if part), re.escape(word)]
    quote = r"[\"`\[\]]?"
    chain = r"\s*\.\s*".join(f"{quote}{part}{quote}" for part in parts)
    for match in re.finditer(rf"(?<![\w$]){chain}(?![\w$])", sql, re.IGNORECASE):
        end = match.end() - (match.group()[-1] in '"`]')
        changed = sql[: end - len(word)] + _other(word) + sql[end:]
        if says(changed) != message:
            return match.start()
    return None


def _other(word: str) -> str:
    """A name of the same length that is no function, and most likely no column."""
    letters = "zqxjkv"
    other = "".join(letters[index % len(letters)] for index in range(len(word)))
    return other if other != word.lower() else other[::-1]
