"""The state that a recording began with, as the first lines of a test.

Of KV and D1 a test can set up what there was, if that is little enough to be read, of queues and R2
what `stock.py` says; other state (Workflows, objects) has no call that would put it there, and is
named.
"""

from __future__ import annotations

import json
import re
import sqlite3
from base64 import b64decode
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from emulator.kv.store import Entry, Namespace
from emulator.recording import literals
from emulator.recording.coding import value_from_json
from emulator.recording.literals import Code, call, filled, json_value, text, written
from emulator.recording.stock import File, Paused, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from emulator.config import Settings
    from emulator.d1_config import D1Config
    from emulator.recording.entries import Recording
    from emulator.recording.stock import Item

MOST_CODE: Final = 16_384
"""The most characters of a test that set up one product's state."""

_SOON: Final = 60_000_000  # KV takes no entry that expires sooner
_SECOND: Final = 1_000_000
_MAKES: Final = re.compile(r"CREATE (TABLE|UNIQUE INDEX|INDEX|TRIGGER|VIEW) ")
_TIME: Final = "clock"


class _Unable(Exception):
    """There is no way to set it up."""


def seeds(
    recording: Recording,
    settings: Settings,
    variables: Mapping[str, str],
    stock: Mapping[str, Sequence[Item]],
) -> tuple[list[str], list[str]]:
    """Return the lines that set state up, and the names of the products whose state they lack."""
    lacking = _products(recording.state)
    lines: list[str] = []
    ways: dict[str, Callable[[], Iterator[str]]] = {
        "kv": lambda: _kv(recording, settings, variables),
        "d1": lambda: _d1(recording, settings, variables),
        **{name: partial(_stock, items, variables) for name, items in stock.items()},
    }
    for product, write in ways.items():
        if product not in lacking:
            continue
        try:
            written_ = list(write())
        except (_Unable, sqlite3.Error, KeyError, TypeError, ValueError, AttributeError):
            continue
        if sum(map(len, written_)) <= MOST_CODE:
            lines += written_
            lacking.remove(product)
    return lines, lacking


def _products(state: Sequence[Mapping[str, Any]]) -> list[str]:
    """The products that had something."""
    names: dict[str, None] = {}
    for one in state:
        name = one.get("file") or one.get("left") or one.get("record") or one.get("snapshot")
        if name is not None and ("snapshot" not in one or one.get("value")):
            names[str(name).partition("/")[0]] = None
    names.pop(_TIME, None)
    return list(names)


def _kv(recording: Recording, settings: Settings, variables: Mapping[str, str]) -> Iterator[str]:
    bound = [one.id for worker in settings.workers for one in worker.namespaces]
    found: dict[str, Namespace] = {}
    for one in recording.state:
        if one.get("snapshot") == "kv":
            for id, rows in value_from_json(one["value"]):
                found.setdefault(id, Namespace()).restore(rows)
        elif one.get("record") == "kv":
            id, at, key, entry = value_from_json(one["value"])
            namespace = found.setdefault(id, Namespace())
            if entry is None:
                namespace.delete(key, at)
            else:
                namespace.put(key, Entry(*entry), at)
    origin = recording.head.origin
    for id, namespace in found.items():
        if id not in bound:
            continue
        for row in namespace.page("", MOST_CODE, "", origin).rows:
            entry = namespace.get(row.name, origin)
            if entry is not None:
                yield from _entry(id, row.name, entry, origin, variables)


def _entry(
    id: str, key: str, entry: Entry, origin: int, variables: Mapping[str, str]
) -> Iterator[str]:
    late = entry.expiration is not None and entry.expiration * _SECOND > origin + _SOON
    metadata = None if entry.metadata is None else json_value(json.loads(entry.metadata), variables)
    put = call(
        f"emulator.kv[{text(id)}].put",
        filled(key, variables),
        _content(entry.value, variables),
        expiration=str(entry.expiration) if late else None,
        metadata=metadata,
    )
    yield from written("", put, indent=1)


def _d1(recording: Recording, settings: Settings, variables: Mapping[str, str]) -> Iterator[str]:
    files = {one["file"]: one["data"] for one in recording.state if "file" in one}
    if any(str(one.get("left", "")).startswith("d1/") for one in recording.state):
        raise _Unable
    databases = {one.id: one for worker in settings.workers for one in worker.databases}
    for id, database in databases.items():
        data = files.get(f"d1/{quote(id, safe='')}.sqlite")
        if data is not None:
            for sql in _statements(b64decode(data), database):
                name = f"emulator.d1[{text(database.binding)}].execute"
                yield from written("", call(name, filled(sql, variables)), indent=1)


def _statements(data: bytes, database: D1Config) -> Iterator[str]:
    """The SQL that makes what the database has; its migrations are applied by the emulator."""
    own = ["sqlite_sequence", "_cf_KV", "_cf_METADATA", _table(database)]
    names = re.compile(rf'\S+ (?:INTO |FROM |TABLE )?"?(?:{"|".join(map(re.escape, own))})"?[ (;]')
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        for statement in connection.iterdump():
            if statement in ("BEGIN TRANSACTION;", "COMMIT;") or names.match(statement):
                continue
            if statement.startswith(("PRAGMA", "INSERT INTO sqlite_master")):
                raise _Unable  # a virtual table
            sql = _MAKES.sub(lambda made: f"{made[0]}IF NOT EXISTS ", statement, count=1)
            yield sql.replace("INSERT INTO", "INSERT OR REPLACE INTO", 1).removesuffix(";")


def _stock(items: Sequence[Item], variables: Mapping[str, str]) -> Iterator[str]:
    for item in items:
        match item:
            case Paused():
                yield f"    emulator.queues[{text(item.queue)}].pause()"
            case Waiting():
                send = call(
                    f"emulator.queues[{text(item.queue)}].send",
                    json_value(item.body, variables),
                    contentType=None if item.content_type == "json" else text(item.content_type),
                )
                yield from written("await ", send, indent=1)
            case File():
                put = call(
                    f"emulator.r2[{text(item.bucket)}].put",
                    filled(item.key, variables),
                    _content(item.body, variables),
                    http_metadata=json_value(dict(item.http), variables) if item.http else None,
                    custom_metadata=(
                        json_value(dict(item.custom), variables) if item.custom else None
                    ),
                    storage_class=text(item.storage_class) if item.storage_class else None,
                )
                yield from written("", put, indent=1)


def _content(data: bytes, variables: Mapping[str, str]) -> Code:
    try:
        return filled(data.decode(), variables)
    except UnicodeDecodeError:
        return literals.octets(data)


def _table(database: D1Config) -> str:
    migrations = database.migrations
    return "d1_migrations" if migrations is None else migrations.table
