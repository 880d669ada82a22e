"""Queues: `/accounts/{account}/queues` (queues.md, §7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from emulator.queue_names import CODE, is_queue_name, refusal
from emulator.queues.model import SECOND
from emulator.queues.setup import Setup
from emulator.server.rest import queue_shapes as shapes
from emulator.server.rest.answers import ApiError, Page, time
from emulator.server.rest.fields import body, invalid, paged
from emulator.server.rest.queue_shapes import find_queue, producers_of

if TYPE_CHECKING:
    from emulator.server.rest.calls import Call, Operations
    from emulator.server.rest.fields import Fields

_MOST_DELAY: Final = 86_400
# By plan: the shortest retention, the longest, and that of a queue which is made without one.
_RETENTION: Final = {"paid": (60, 1_209_600, 345_600), "free": (60, 86_400, 86_400)}
_BAD_SETTINGS: Final = ApiError(400, 100128, "The specified queue settings are invalid.")
_IN_USE: Final = 11005


def list_queues(call: Call) -> Page:
    """Return the queues, those of the `name`s given or all."""
    names = call.query.getlist("name")
    known = [name for name in call.platform.queues.broker.queues if not names or name in names]
    page = paged(known, call.query, per_page=100)
    return page._replace(items=[shapes.queue(call, name) for name in page.items])


def create_queue(call: Call) -> Any:
    """Make a queue."""
    given, queues = body(call), call.platform.queues
    name = _name(given)
    if name in queues.broker.queues:
        text = f"Queue name '{name}' is already taken. Please use a different name and try again."
        raise ApiError(400, 11009, text)
    retention = _RETENTION[call.options.plan][2] * SECOND
    made = Setup(created=call.now, modified=call.now, delivery_delay=0, retention=retention)
    setup, paused = _settings(call, given, made)
    queues.set_up(name, setup)
    _pause(call, name, paused=bool(paused))
    return shapes.queue(call, name)


def _name(given: Fields) -> str:
    name = given.text("queue_name", required=True) or ""
    if not is_queue_name(name):
        raise ApiError(400, CODE, refusal(name))
    return name


def get_queue(call: Call) -> Any:
    """Return a queue."""
    return shapes.queue(call, find_queue(call))


def replace_queue(call: Call) -> Any:
    """Set all settings of a queue; those left out are the default's."""
    name = find_queue(call)
    given, before = body(call), call.platform.queues.broker.setup(name)
    _check_same_name(given, name)
    retention = _RETENTION[call.options.plan][2] * SECOND
    setup, paused = _settings(call, given, replace(before, delivery_delay=0, retention=retention))
    return _changed(call, name, setup, paused=bool(paused))


def edit_queue(call: Call) -> Any:
    """Set some settings of a queue."""
    name = find_queue(call)
    given, before = body(call), call.platform.queues.broker.setup(name)
    _check_same_name(given, name)
    setup, paused = _settings(call, given, before)
    return _changed(call, name, setup, paused=paused)


def _check_same_name(given: Fields, name: str) -> None:
    if given.text("queue_name") not in (None, name):
        raise invalid(
            f'Invalid at "queue_name": the emulator cannot rename a queue, and this one is {name!r}'
        )


def _settings(call: Call, given: Fields, before: Setup) -> tuple[Setup, bool | None]:
    """What a body changes in a setup, and whether it pauses deliveries, None if it leaves that."""
    low, high, _ = _RETENTION[call.options.plan]
    try:
        settings = given.fields("settings")
        if settings is None:
            return before, None
        delay = settings.number("delivery_delay", 0, _MOST_DELAY)
        retention = settings.number("message_retention_period", low, high)
        paused = settings.boolean("delivery_paused")
    except ApiError:
        raise _BAD_SETTINGS from None
    if delay is not None:
        before = replace(before, delivery_delay=delay * SECOND)
    if retention is not None:
        before = replace(before, retention=retention * SECOND)
    return before, paused


def _changed(call: Call, name: str, setup: Setup, *, paused: bool | None) -> Any:
    call.platform.queues.set_up(name, replace(setup, modified=call.now))
    if paused is not None:
        _pause(call, name, paused=paused)
    return shapes.queue(call, name)


def _pause(call: Call, name: str, *, paused: bool) -> None:
    queues = call.platform.queues
    if paused != queues.broker.paused(name):
        (queues.pause if paused else queues.resume)(name)


def delete_queue(call: Call) -> None:
    """Delete a queue and its messages, unless something refers to it."""
    name, queues = find_queue(call), call.platform.queues
    workers = producers_of(call, name)
    if workers:
        among = ", ".join(f"'{worker}'" for worker in workers)
        raise ApiError(
            400,
            _IN_USE,
            f"Cannot delete queue '{name}' that is still referenced by a binding in a Worker. "
            f"Unbind queue '{name}' from the Workers {among}; then try again.",
        )
    if name in queues.graves():
        text = f"Cannot delete queue '{name}' that serves as dead letter queue for consumers"
        raise ApiError(400, _IN_USE, text)
    if queues.is_configured(name):  # our words: there, nothing else would make it again
        text = f"Cannot delete queue '{name}' that a Worker's config names as one it consumes"
        raise ApiError(400, _IN_USE, text)
    queues.delete(name)


def get_metrics(call: Call) -> Any:
    """Return how much is not acknowledged."""
    return shapes.metrics(call, find_queue(call))


def start_purge(call: Call) -> Any:
    """Delete all that waits or is delayed."""
    name, queues = find_queue(call), call.platform.queues
    if not body(call).boolean("delete_messages_permanently", required=True):
        raise invalid('Invalid literal value, expected true at "delete_messages_permanently"')
    queues.purge(name)
    purged = replace(queues.broker.setup(name), purged=call.now)
    queues.broker.set_up(name, purged, call.now)
    return shapes.queue(call, name)


def purge_status(call: Call) -> Any:
    """Return when a queue was purged last; that is over at once."""
    purged = call.platform.queues.broker.setup(find_queue(call)).purged
    return {"completed": "true", "started_at": time(purged) or ""}


OPERATIONS: Operations = (
    ("GET", "/queues", list_queues),
    ("POST", "/queues", create_queue),
    ("GET", "/queues/{queue}", get_queue),
    ("PUT", "/queues/{queue}", replace_queue),
    ("PATCH", "/queues/{queue}", edit_queue),
    ("DELETE", "/queues/{queue}", delete_queue),
    ("GET", "/queues/{queue}/metrics", get_metrics),
    ("POST", "/queues/{queue}/purge", start_purge),
    ("GET", "/queues/{queue}/purge", purge_status),
)
