"""Making, changing and deleting queues: the operations of the REST API, asked for by the page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, QueryParams

from emulator.server.dashboard.endpoints import Wrong, acts
from emulator.server.rest.answers import ApiError
from emulator.server.rest.calls import Call
from emulator.server.rest.queue_shapes import queue_id
from emulator.server.rest.queues import create_queue, delete_queue, edit_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.routing import BaseRoute

    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints."""
    return [
        acts(desk, "/queues/create", _create),
        acts(desk, "/queues/configure", _configure),
        acts(desk, "/queues/delete", _delete),
    ]


async def _create(desk: Desk, asked: Asked) -> Answer:
    body = {"queue_name": asked.text("queue"), "settings": _settings(asked)}
    await _perform(desk, create_queue, "", body)
    return {"queue": asked.text("queue")}


async def _configure(desk: Desk, asked: Asked) -> Answer:
    await _perform(desk, edit_queue, _named(desk, asked), {"settings": _settings(asked)})
    return {}


async def _delete(desk: Desk, asked: Asked) -> Answer:
    await _perform(desk, delete_queue, _named(desk, asked), {})
    return {}


def _named(desk: Desk, asked: Asked) -> str:
    queue = asked.text("queue")
    desk.platform.queues.broker.rules(queue)  # raises `KeyError`
    return queue


def _settings(asked: Asked) -> dict[str, int]:
    """Return the settings that are given, by the names of the REST API."""
    found = {}
    for name in ("delivery_delay", "message_retention_period"):
        if asked.given(name):
            found[name] = asked.number(name)
    return found


async def _perform(
    desk: Desk, operation: Callable[[Call], Any], queue: str, body: dict[str, Any]
) -> None:
    path = {"queue": queue_id(queue)} if queue else {}
    call = Call(
        desk.platform, desk.options, path, QueryParams(), Headers(), json.dumps(body).encode()
    )
    try:
        await desk.act(operation.__name__, lambda: operation(call))
    except ApiError as error:
        raise Wrong(str(error)) from None
