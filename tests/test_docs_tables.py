"""The tables of the documentation are tables to a Markdown reader, too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SEPARATOR = re.compile(r"\|( ?:?-{3,}:? ?\|)+")
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of a page that start with a bar; `before` is the line above them."""

    page: str
    line: int
    before: str
    rows: list[str]

    @property
    def problems(self) -> list[str]:
        """Why a reader would not show this as one table with all its cells."""
        where = f"{self.page}:{self.line}"
        if self.before:
            return [f"{where}: no empty line above the table, but {self.before!r}"]
        if len(self.rows) < 3 or not _SEPARATOR.fullmatch(self.rows[1]):
            return [f"{where}: no header with a separator below, and rows"]
        wanted = len(cells(self.rows[0]))
        return [
            f"{self.page}:{number}: {len(cells(row))} cells instead of {wanted}"
            for number, row in enumerate(self.rows, self.line)
            if len(cells(row)) != wanted or not row.endswith("|")
        ] + [
            f"{self.page}:{number}: a second separator"
            for number, row in enumerate(self.rows[2:], self.line + 2)
            if _SEPARATOR.fullmatch(row)
        ]


def cells(row: str) -> list[str]:
    """The texts between the bars of a row; a bar in code counts, unless it is escaped."""
    return [cell.strip() for cell in _BAR.split(row)[1:-1]]


def tables(page: str, text: str) -> Iterator[Table]:
    """Yield the tables of a page, well formed or not."""
    unfenced = _FENCED.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    before, line = "", 1
    for is_table, group in groupby(unfenced.splitlines(), key=lambda row: row.startswith("|")):
        rows = list(group)
        if is_table:
            yield Table(page, line, before, rows)
        before, line = rows[-1], line + len(rows)


def tables_of(page: Path) -> list[Table]:
    return list(tables(page.name, page.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_well_formed(page: Path) -> None:
    assert [problem for table in tables_of(page) for problem in table.problems] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_row_is_indented_out_of_its_table(page: Path) -> None:
    unfenced = _FENCED.sub("", page.read_text("utf-8"))
    assert re.findall(r"^[ \t>]+\|.*", unfenced, re.MULTILINE) == []


def test_fidelity_has_one_place_per_topic() -> None:
    topics = [
        cells(row)[0]
        for table in tables_of(ROOT / "docs" / "fidelity.md")
        for row in table.rows[2:]
    ]
    assert len(topics) > 60
    assert sorted({topic for topic in topics if topics.count(topic) > 1}) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## H\n| a | b |\n\n| x | y |\n|---|---|\n| 1 | 2 |\n", "no empty line above"),
        ("| a | b |\n| 1 | 2 |\n| 3 | 4 |\n", "no header"),
        ("| a | b |\n|---|---|\n", "no header"),
        ("| a | b |\n|---|---|---|\n| 1 | 2 |\n", "3 cells instead of 2"),
        ("| a | b |\n|---|---|\n| 1 |\n", "1 cells instead of 2"),
        ("| a | b |\n|---|---|\n| `x|y` | 2 |\n", "3 cells instead of 2"),
        ("| a | b |\n|---|---|\n| 1 | 2\n", "1 cells instead of 2"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n|---|---|\n| 1 | 2 |\n", "a second separator"),
        ("| a | b |\n|---|---|\n| `x\\|y` | |\n", ""),
        ("```\n| not a table\n```\n", ""),
    ],
)
def test_a_broken_table_is_seen(text: str, problem: str) -> None:
    found = [found for table in tables("page", text) for found in table.problems]
    assert [problem in text for text in found[:1]] == ([True] if problem else [])
