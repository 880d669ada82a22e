"""Rows of SQL as a view gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.server.dashboard.shown import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer

MOST_ROWS: Final = 500
_MOST_COLUMNS: Final = 200
_CELL: Final = 2_000


def grid(rows: Sequence[Mapping[str, Any]], masker: Masker) -> Answer:
    """Return the columns, the first rows as texts of JSON, and how many there are."""
    columns = list(rows[0])[:_MOST_COLUMNS] if rows else []
    return {
        "columns": columns,
        "rows": [
            [value_text(row[column], masker, most=_CELL) for column in columns]
            for row in rows[:MOST_ROWS]
        ],
        "total": len(rows),
    }


def quoted(name: str) -> str:
    """Return a name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
