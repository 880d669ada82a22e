"""What a query answers: rows as objects, and what D1 tells about the query (`meta`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from emulator.sql.values import javascript_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.sql import Outcome

Profile = Literal["production", "miniflare"]


class Answer(NamedTuple):
    """The answer to one query, before a method gives it its shape.

    `size` is that of the database after it; `changed` says that it changed something.
    """

    outcome: Outcome
    size: int
    changed: bool
    profile: Profile

    @property
    def meta(self) -> dict[str, Any]:
        """What D1 tells of the query."""
        return META[self.profile](self)

    @property
    def rows(self) -> list[list[Any]]:
        """The rows; a blob is a list of numbers, an infinite number null, as in JSON."""
        rows = []
        for row in self.outcome.rows:
            values = javascript_row(row, list)
            if float in map(type, values):
                values = [None if value in _INFINITE else value for value in values]
            rows.append(values)
        return rows

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The rows as objects, in which the last of columns with one name counts."""
        columns = self.outcome.columns
        return [dict(zip(columns, row, strict=True)) for row in self.rows]

    @property
    def result(self) -> dict[str, Any]:
        """A `D1Result`."""
        return {
            "success": True,
            "meta": META[self.profile](self),
            "results": self.objects if self.outcome.rows else [],
        }


_INFINITE = (float("inf"), float("-inf"))


def _of_production(answer: Answer) -> dict[str, Any]:
    return {
        "served_by": "v3-prod",
        "served_by_region": "WEUR",
        "served_by_colo": "AMS",
        "served_by_primary": True,
        "timings": {"sql_duration_ms": 0},
        "duration": 0,
        **_counts(answer),
        "total_attempts": 1,
    }


def _of_miniflare(answer: Answer) -> dict[str, Any]:
    return {"served_by": "miniflare.db", "duration": 0, **_counts(answer)}


def _counts(answer: Answer) -> dict[str, Any]:
    outcome = answer.outcome
    return {
        "changes": outcome.changes,
        "last_row_id": outcome.last_row_id,
        "changed_db": answer.changed,
        "size_after": answer.size,
        "rows_read": outcome.read,
        "rows_written": outcome.written,
    }


# By profile; no time passes while SQL runs.
META: Mapping[Profile, Callable[[Answer], dict[str, Any]]] = {
    "production": _of_production,
    "miniflare": _of_miniflare,
}
