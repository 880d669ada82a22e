"""The view of Durable Objects: which there are, their storage and alarms; and what can be done.

An object is named by its binding and its id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.objects.ids import normalised
from emulator.server.dashboard.endpoints import Wrong, acts, reads
from emulator.server.dashboard.grid import grid, quoted
from emulator.server.dashboard.shown import BRIEF, moment_text, now_text, value_text
from emulator.values import from_v8
from emulator.values.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.objects.control import DurableObjects, ObjectRecord
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of Durable Objects."""
    return [
        reads(desk, "/objects", _spaces),
        reads(desk, "/objects/of", _objects),
        reads(desk, "/object", _object),
        reads(desk, "/object/value", _value),
        acts(desk, "/object/sql", _sql),
        acts(desk, "/object/run-alarm", _run_alarm),
        acts(desk, "/object/evict", _evict),
        acts(desk, "/object/crash", _crash),
    ]


def _spaces(desk: Desk, asked: Asked) -> Answer:
    return {"spaces": [_about(one) for one in desk.emulator.durable_objects.values()]}


def _about(control: DurableObjects) -> Answer:
    space, objects = control._space, control.objects
    return {
        "binding": control.binding,
        "worker": space.script,
        "class": space.class_name,
        "sqlite": space.sqlite,
        "total": len(objects),
        "in_memory": sum(one.in_memory for one in objects),
    }


def _objects(desk: Desk, asked: Asked) -> Answer:
    control = desk.emulator.durable_objects[asked.text("binding")]
    words = asked.text("name", "")
    first, rows = asked.part()
    found = [one for one in control.objects if words in (one.name or "") or words in one.id]
    return {
        **_about(control),
        "found": len(found),
        "now": now_text(desk),
        "objects": [_row(control, one) for one in found[first : first + rows]],
    }


def _row(control: DurableObjects, one: ObjectRecord) -> Answer:
    return {
        "id": one.id,
        "name": one.name,
        "in_memory": one.in_memory,
        "keys": len(control.storage(one.id)),
        "alarm": moment_text(control.alarm(one.id)),
    }


def _object(desk: Desk, asked: Asked) -> Answer:
    control, one = _named(desk, asked)
    storage, masker = control.storage(one.id), desk.platform.kernel.trace.masker
    first, rows = asked.part()
    values = storage._values
    keys = sorted(values)[first : first + rows]
    return {
        **_row(control, one),
        "binding": control.binding,
        "now": now_text(desk),
        "tables": _tables(control, one),
        "values": [[key, len(values[key]), _preview(values[key], masker)] for key in keys],
    }


def _preview(data: bytes, masker: Any) -> str:
    if len(data) > 16_384:
        return f"({len(data):,} bytes)"
    return value_text(plain(from_v8(data)), masker, most=BRIEF)


def _tables(control: DurableObjects, one: ObjectRecord) -> list[Answer]:
    storage = control.storage(one.id)
    stored = storage._stored
    if stored is None or not stored.has_database:
        return []
    found = storage.sql("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    names = [str(row["name"]) for row in found]
    return [
        {"name": name, "rows": storage.sql(f"SELECT count(*) AS n FROM {quoted(name)}")[0]["n"]}
        for name in names
        if not name.startswith(("sqlite_", "_cf_"))
    ]


def _value(desk: Desk, asked: Asked) -> Answer:
    control, one = _named(desk, asked)
    values, key = control.storage(one.id)._values, asked.text("key")
    if key not in values:
        raise KeyError("there is no such key any more")
    return {"value": value_text(plain(from_v8(values[key])), desk.platform.kernel.trace.masker)}


async def _sql(desk: Desk, asked: Asked) -> Answer:
    """Read from the object's database; SQL that writes is refused."""
    control, one = _named(desk, asked)
    storage, query = control.storage(one.id), asked.text("sql")
    rows = await desk.act("sql", lambda: storage.sql(query))
    return grid(rows, desk.platform.kernel.trace.masker)


async def _run_alarm(desk: Desk, asked: Asked) -> Answer:
    control, one = _named(desk, asked)
    if not await control.run_alarm(one.id):
        raise Wrong("this object has no alarm")
    return {}


async def _evict(desk: Desk, asked: Asked) -> Answer:
    control, one = _named(desk, asked)
    await control.evict(one.id)
    return {}


async def _crash(desk: Desk, asked: Asked) -> Answer:
    control, one = _named(desk, asked)
    await control.crash(one.id)
    return {}


def _named(desk: Desk, asked: Asked) -> tuple[DurableObjects, ObjectRecord]:
    """Return an object that is in memory or keeps something; raises `KeyError`."""
    control, id = desk.emulator.durable_objects[asked.text("binding")], asked.text("id")
    if normalised(id) is not None:
        for one in control.objects:
            if one.id == id:
                return control, one
    raise KeyError(f"{control.binding} has no object {id!r} that is in memory or keeps something")
