"""SQL as text: where a statement ends, which parameters it has, whether it only reads.

No parser of SQL is needed for that, only its tokens: strings, quoted names and comments hide what
is in them.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Marks the emulator's own statements: they are kept prepared, and SQLite asks but once whether a
# statement is allowed.
OWN: Final = "/*emulator*/"
# What ends at the end of the text, where it is not closed, is an error that SQLite finds itself.
_TOKEN: Final = re.compile(
    r"""
      (?P<space> [ \t\n\r\f\v]+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<quoted> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z)
        | \[[^\]]*(?:\]|\Z) )
    | (?P<parameter> \?\d* | [:@$\#][\w$]+ )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<end> ; )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK: Final = " \t\n\r\v\f"
_READS: Final = frozenset({"SELECT", "EXPLAIN", "VALUES", "PRAGMA"})
_SCHEMA: Final = frozenset({"CREATE", "DROP", "ALTER"})
_OR_ROLLBACK: Final = re.compile(r"(\bOR\s+)ROLLBACK\b", re.IGNORECASE)
_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, with what its words tell.

    `given` is what SQLite gets for `text`, and cannot pass for the emulator's. `parameters` is the
    number of its last parameter; `names` are the names of all of them, where none is a bare `?`.
    `reads` says that nothing is written; `words` are its words, upper-case; `empty` is what has
    none, such as `;` or a comment. `changes_schema` says that tables, indexes or triggers may be
    others after it.
    """

    text: str
    given: str
    reads: bool
    parameters: int
    names: tuple[str, ...]
    words: frozenset[str]
    empty: bool
    changes_schema: bool

    @property
    def makes_table(self) -> bool:
        """Whether it is a `CREATE TABLE`, whose entry is written twice."""
        return self.words.isdisjoint({"INDEX", "TRIGGER", "VIEW"})


class Script:
    """All statements of one text: `head`, and the `last`, whose rows and parameters count.

    `may_stop_halfway`: one may fail and leave what it did before (`INSERT OR FAIL`).
    `rolls_back`: one undoes everything when it fails (`INSERT OR ROLLBACK`).
    `may_be_endless`: one has what a recursion needs.
    `may_defer`: one may put off the check of foreign keys.
    """

    __slots__ = (
        *("changes_schema", "head", "last", "may_be_endless", "may_defer", "may_stop_halfway"),
        *("reads", "rolls_back"),
    )

    def __init__(self, parts: list[Statement]) -> None:
        *self.head, self.last = parts
        words = frozenset().union(*(part.words for part in parts))
        self.reads = all(part.reads for part in parts)
        self.changes_schema = any(part.changes_schema for part in parts)
        self.may_stop_halfway = bool(self.head) or "FAIL" in words
        self.rolls_back = "ROLLBACK" in words
        self.may_be_endless = "WITH" in words
        self.may_defer = "DEFER_FOREIGN_KEYS" in words


@lru_cache(maxsize=1_000)
def script(sql: str) -> Script:
    """Take SQL apart.

    >>> script("SELECT ';'; SELECT 2").last.text
    'SELECT 2'
    """
    sql = well_formed(sql)
    return Script([_statement(text) for text in _split(sql)] or [_statement(sql)])


def split(sql: str) -> list[str]:
    """The statements of a text, of any length, without what is none.

    >>> split("SELECT 1; -- one\\n; SELECT 2;")
    ['SELECT 1;', 'SELECT 2;']
    """
    return [part for part in _split(well_formed(sql)) if not _statement(part).empty]


def well_formed(text: str) -> str:
    """A text as JavaScript writes UTF-8: half a surrogate pair becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _split(sql: str) -> Iterator[str]:
    """Yield the parts that end in a semicolon, and what is left if there is more than blanks."""
    start, words = 0, 0
    in_trigger = False
    for token in _TOKEN.finditer(sql):
        kind = token.lastgroup
        if kind == "word":
            words += 1
            in_trigger = in_trigger or (words <= 5 and token.group().upper() == "TRIGGER")
        elif kind == "end":
            part = sql[start : token.end()]
            if in_trigger and not sqlite3.complete_statement(part):
                continue
            yield part if start == 0 else part.lstrip(_BLANK)
            start, words, in_trigger = token.end(), 0, False
    rest = sql[start:]
    if rest.strip(_BLANK):
        yield rest if start == 0 else rest.lstrip(_BLANK)


def _statement(text: str) -> Statement:
    words: list[str] = []
    found: list[str] = []
    empty = True
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        empty = empty and kind in ("space", "end")
        if kind == "word":
            words.append(token.group().upper())
        elif kind == "parameter":
            found.append(token.group())
    if "ROLLBACK" in words and words[0] != "CREATE":
        # SQLite would undo what is not this database user's; who runs it sees to the rest.
        text = _OR_ROLLBACK.sub(r"\1ABORT   ", text)
    parameters, names = _parameters(found)
    first = words[0] if words else ""
    reads = first in _READS or (first == "WITH" and _WRITES.isdisjoint(words))
    changes_schema = not reads and not _SCHEMA.isdisjoint(words)
    own = frozenset(words)
    return Statement(text, users(text), reads, parameters, names, own, empty, changes_schema)


def users(sql: str) -> str:
    """SQL of user code, which cannot pass for the emulator's."""
    return f" {sql}" if sql.startswith(OWN) else sql


def _parameters(found: list[str]) -> tuple[int, tuple[str, ...]]:
    """The number of the last parameter, and the names of all if none is a bare `?`."""
    numbers = dict(_numbered(found))
    highest = max(numbers.values(), default=0)
    if "?" in numbers or not numbers:
        return highest, ()
    by_number = {number: name[1:] for name, number in numbers.items()}
    return highest, tuple(by_number.get(number, "") for number in range(1, highest + 1))


def first_excess(sql: str, most: int) -> int | None:
    """Where the first parameter is whose number is 0, or more than there may be."""
    tokens = [token for token in _TOKEN.finditer(sql) if token.lastgroup == "parameter"]
    numbered = _numbered([token.group() for token in tokens])
    for token, (_, number) in zip(tokens, numbered, strict=True):
        if not 1 <= number <= most:
            return token.start()
    return None


def _numbered(found: list[str]) -> Iterator[tuple[str, int]]:
    """Number the parameters as SQLite does; `?` and a new name take the next number."""
    numbers: dict[str, int] = {}
    highest = 0
    for parameter in found:
        if parameter[1:].isdigit():
            numbers[parameter] = int(parameter[1:])
        elif parameter == "?" or parameter not in numbers:
            numbers[parameter] = highest + 1
        highest = max(highest, numbers[parameter])
        yield parameter, numbers[parameter]
