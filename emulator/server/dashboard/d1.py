"""The view of D1: databases, their tables, rows; and SQL.

A database is named by its id. It is opened, and its migrations applied, when it is looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.server.dashboard.endpoints import acts, reads
from emulator.server.dashboard.grid import grid, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.d1.control import D1Control
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of D1."""
    return [
        reads(desk, "/d1", _databases),
        reads(desk, "/d1/database", _database),
        reads(desk, "/d1/table", _table),
        acts(desk, "/d1/execute", _execute),
    ]


def _databases(desk: Desk, asked: Asked) -> Answer:
    names: dict[str, list[str]] = {}
    for name, id in desk.platform.d1.names.items():
        names.setdefault(id, []).append(name)
    return {"databases": [{"id": id, "names": of} for id, of in names.items()]}


def _control(desk: Desk, asked: Asked) -> D1Control:
    id = asked.text("id")
    for name, of in desk.platform.d1.names.items():
        if of == id:
            return desk.emulator.d1[name]
    raise KeyError(f"there is no D1 database {id!r}")


async def _database(desk: Desk, asked: Asked) -> Answer:
    control = _control(desk, asked)

    def look() -> Answer:
        return {
            "tables": [{"name": name, "rows": _count(control, name)} for name in control.tables],
            "migrations": control.migrations,
        }

    return {"id": asked.text("id"), "name": control.name, **await desk.act("tables", look)}


def _count(control: D1Control, table: str) -> int:
    return int(control.execute(f"SELECT count(*) AS n FROM {quoted(table)}")[0]["n"])


async def _table(desk: Desk, asked: Asked) -> Answer:
    control, table = _control(desk, asked), asked.text("table")
    first, rows = asked.part()
    masker = desk.platform.kernel.trace.masker

    def look() -> Answer:
        if table not in control.tables:
            raise KeyError(f"{control.name} has no table {table!r}")
        found = control.execute(f"SELECT * FROM {quoted(table)} LIMIT {rows} OFFSET {first}")
        return {**grid(found, masker), "total": _count(control, table)}

    found = await desk.act("rows", look)
    return {"id": asked.text("id"), "name": control.name, "table": table, **found}


async def _execute(desk: Desk, asked: Asked) -> Answer:
    control, sql = _control(desk, asked), asked.text("sql")
    rows = await desk.act("execute", lambda: control.execute(sql))
    return grid(rows, desk.platform.kernel.trace.masker)
