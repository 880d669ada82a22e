"""The view of KV: namespaces, their keys in order, values; and writing them.

A namespace is named by its id. What is written goes through a binding, as a Worker's writes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.server.dashboard.endpoints import acts, reads
from emulator.server.dashboard.shown import BRIEF, octets_text, text_of, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.kv.store import Entry, Namespace
    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk

_SECOND: Final = 1_000_000
_PREVIEW: Final = 2_000  # bytes of a value
_SHOWN: Final = 200_000


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of KV."""
    return [
        reads(desk, "/kv", _namespaces),
        reads(desk, "/kv/keys", _keys),
        reads(desk, "/kv/value", _value),
        acts(desk, "/kv/put", _put),
        acts(desk, "/kv/delete", _delete),
    ]


def _namespaces(desk: Desk, asked: Asked) -> Answer:
    bindings = _bindings(desk)
    return {
        "namespaces": [
            {
                "id": id,
                "bindings": [f"{worker}: {binding}" for worker, binding in bindings.get(id, [])],
                "total": len(namespace),
            }
            for id, namespace in desk.platform.kv.namespaces.items()
        ]
    }


def _bindings(desk: Desk) -> dict[str, list[tuple[str, str]]]:
    """Return Worker and binding of those who bind to a namespace, by its id."""
    found: dict[str, list[tuple[str, str]]] = {}
    for worker in desk.platform.settings.workers:
        for one in worker.namespaces:
            found.setdefault(one.id, []).append((worker.name, one.binding))
    return found


def _namespace(desk: Desk, id: str) -> Namespace:
    namespaces = desk.platform.kv.namespaces
    if id not in namespaces:
        raise KeyError(f"there is no KV namespace {id!r}; there are: {', '.join(namespaces)}")
    return namespaces[id]


def _keys(desk: Desk, asked: Asked) -> Answer:
    id, prefix, after = asked.text("id"), asked.text("prefix", ""), asked.text("after", "")
    namespace, now = _namespace(desk, id), desk.platform.kernel.now
    masker = desk.platform.kernel.trace.masker
    page = namespace.page(prefix, asked.part()[1], after, now)
    entries = [(row.name, namespace.get(row.name, now)) for row in page.rows]
    return {
        "id": id,
        "writable": id in _bindings(desk),
        "total": len(namespace),
        "more": page.more,
        "keys": [_row(name, entry, masker) for name, entry in entries if entry is not None],
    }


def _row(name: str, entry: Entry, masker: Masker) -> Answer:
    return {
        "name": name,
        "size": len(entry.value),
        "value": octets_text(entry.value[:_PREVIEW], masker, size=len(entry.value), most=BRIEF),
        "metadata": None if entry.metadata is None else text_of(entry.metadata, masker, most=2_000),
        "expires": time_text(None if entry.expiration is None else entry.expiration * _SECOND),
    }


def _value(desk: Desk, asked: Asked) -> Answer:
    namespace, masker = _namespace(desk, asked.text("id")), desk.platform.kernel.trace.masker
    entry = namespace.get(asked.text("key"), desk.platform.kernel.now)
    if entry is None:
        raise KeyError("there is no such key any more")
    size = len(entry.value)
    return {"value": octets_text(entry.value[:_SHOWN], masker, size=size, most=_SHOWN)}


async def _put(desk: Desk, asked: Asked) -> Answer:
    options: dict[str, Any] = {}
    if ttl := asked.number("ttl", 0):
        options["expirationTtl"] = ttl
    if (metadata := asked.parsed("metadata")) is not None:
        options["metadata"] = metadata
    await _binding(desk, asked).put(asked.text("key"), asked.text("value", ""), **options)
    return {}


async def _delete(desk: Desk, asked: Asked) -> Answer:
    await _binding(desk, asked).delete(asked.text("key"))
    return {}


def _binding(desk: Desk, asked: Asked) -> Any:
    """Return the first binding to a namespace; raises `KeyError`."""
    id = asked.text("id")
    for worker, binding in _bindings(desk).get(id, ()):
        return getattr(desk.emulator.envs[worker], binding)
    raise KeyError(f"no Worker binds to the KV namespace {id!r}")
