"""What a query answers: rows as objects, and what D1 tells about the query (`meta`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from emulator.runtime.rpc_values import JsDict, from_canonical
from emulator.sql.values import javascript_row

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def meta(self) -> dict[str, Any]:
        """What D1 tells of the query; no time passes while SQL runs."""
        outcome = self.outcome
        meta = _META[self.profile].copy()
        if "timings" in meta:
            meta["timings"] = {"sql_duration_ms": 0}
        meta["changes"] = outcome.changes
        meta["last_row_id"] = outcome.last_row_id
        meta["changed_db"] = self.changed
        meta["size_after"] = self.size
        meta["rows_read"] = outcome.read
        meta["rows_written"] = outcome.written
        return meta

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

    def result(self) -> dict[str, Any]:
        """A `D1Result`."""
        results = self.objects if self.outcome.rows else []
        return {"success": True, "meta": self.meta(), "results": results}


def converted_result(result: dict[str, Any]) -> JsDict:
    """What `from_canonical` makes of a `D1Result`: but for the rows it is known what is in one."""
    meta = JsDict(result["meta"])
    if "timings" in meta:
        meta["timings"] = JsDict(meta["timings"])
    rows = result["results"]
    return JsDict({"success": True, "meta": meta, "results": from_canonical(rows) if rows else []})


def converted_results(results: list[dict[str, Any]]) -> list[JsDict]:
    """`converted_result`, of those of a batch."""
    return [converted_result(result) for result in results]


_INFINITE = (float("inf"), float("-inf"))
# What is told of a query, in the order in which it is; `Answer.meta` puts in what varies.
_COUNTS: Final = dict.fromkeys(
    ("changes", "last_row_id", "changed_db", "size_after", "rows_read", "rows_written")
)
_META: Final[Mapping[Profile, dict[str, Any]]] = {
    "production": {
        "served_by": "v3-prod",
        "served_by_region": "WEUR",
        "served_by_colo": "AMS",
        "served_by_primary": True,
        "timings": None,
        "duration": 0,
        **_COUNTS,
        "total_attempts": 1,
    },
    "miniflare": {"served_by": "miniflare.db", "duration": 0, **_COUNTS},
}
