"""Consumers: `/accounts/{account}/queues/{queue}/consumers` (queues.md 4.8, 5.1 and §7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.queues.model import MILLISECOND, SECOND, ConsumerRules, PullRules
from emulator.queues.setup import Attached
from emulator.server.rest import queue_shapes as shapes
from emulator.server.rest.answers import ApiError, Page
from emulator.server.rest.fields import Fields, body, info
from emulator.server.rest.queue_shapes import find_consumer, find_queue

if TYPE_CHECKING:
    from emulator.server.rest.calls import Call, Operations

_KINDS: Final = ("worker", "http_pull")
_BAD_SETTINGS: Final = ApiError(400, 100127, "The specified consumer settings are invalid.")
_NO_SCRIPT: Final = ApiError(404, 10007, "This Worker does not exist on your account.")
_NO_HANDLER: Final = ApiError(
    400,
    11001,
    "Queue handler is missing. Please see our docs for more information about creating handlers: "
    "https://developers.cloudflare.com/queues/configuration/javascript-apis/#consumer.",
)
_MOST_RETRIES: Final = 100
_MOST_DELAY: Final = 86_400
_MOST_WAIT: Final = 60_000
_MOST_CONCURRENT: Final = 250
_MOST_MESSAGES: Final = 100
_MOST_LEASE: Final = 43_200_000


def list_consumers(call: Call) -> Page:
    """Return the consumers of a queue."""
    found = shapes.consumers_of(call, find_queue(call))
    return Page(found, info(found, 1, 100, len(found)))


def create_consumer(call: Call) -> Any:
    """Give a queue the one consumer that it can have (4.8)."""
    name, queues = find_queue(call), call.platform.queues
    if queues.attached(name) is not None:
        raise ApiError(400, 11004, f"Queue '{name}' already has a consumer.")
    return _attach(call, name, _read(call, name, body(call)))


def get_consumer(call: Call) -> Any:
    """Return a consumer."""
    return shapes.consumer(call, *find_consumer(call))


def update_consumer(call: Call) -> Any:
    """Replace a consumer; settings left out are the default's."""
    name, _ = find_consumer(call)
    return _attach(call, name, _read(call, name, body(call)))


def delete_consumer(call: Call) -> None:
    """Take a consumer away; what it has in hand goes on."""
    name, _ = find_consumer(call)
    call.platform.queues.attach(name, None)


def _attach(call: Call, name: str, attached: Attached) -> Any:
    call.platform.queues.attach(name, attached)
    return shapes.consumer(call, name, attached)


def _read(call: Call, name: str, given: Fields) -> Attached:
    kind = given.choice("type", _KINDS)
    grave = given.text("dead_letter_queue") or None
    if grave == name:
        raise _BAD_SETTINGS
    try:
        settings = given.fields("settings") or Fields({})
        if kind == "http_pull":
            return Attached(None, _pull_rules(settings, grave))
        rules = _push_rules(settings, grave)
    except ApiError:
        raise _BAD_SETTINGS from None
    return Attached(_script(call, given), rules)


def _script(call: Call, given: Fields) -> str:
    """The name of a Worker that runs here and has a handler."""
    script = given.text("script_name") or given.text("script", required=True) or ""
    worker = call.platform.workers.get(script)
    if worker is None:
        raise _NO_SCRIPT
    if not worker.script.handles("queue"):
        raise _NO_HANDLER
    return script


def _or(value: int | None, unit: int, default: int) -> int:
    return default if value is None else value * unit


def _push_rules(settings: Fields, grave: str | None) -> ConsumerRules:
    usual = ConsumerRules()
    size = settings.number("batch_size", 1, _MOST_MESSAGES)
    wait = settings.number("max_wait_time_ms", 0, _MOST_WAIT)
    retries = settings.number("max_retries", 0, _MOST_RETRIES)
    delay = settings.number("retry_delay", 0, _MOST_DELAY)
    return ConsumerRules(
        max_batch_size=_or(size, 1, usual.max_batch_size),
        max_batch_timeout=_or(wait, MILLISECOND, usual.max_batch_timeout),
        max_retries=_or(retries, 1, usual.max_retries),
        retry_delay=_or(delay, SECOND, usual.retry_delay),
        dead_letter_queue=grave,
        max_concurrency=settings.number("max_concurrency", 1, _MOST_CONCURRENT),
    )


def _pull_rules(settings: Fields, grave: str | None) -> PullRules:
    usual = PullRules()
    size = settings.number("batch_size", 1, _MOST_MESSAGES)
    retries = settings.number("max_retries", 0, _MOST_RETRIES)
    delay = settings.number("retry_delay", 0, _MOST_DELAY)
    lease = settings.number("visibility_timeout_ms", 0, _MOST_LEASE)
    return PullRules(
        batch_size=_or(size, 1, usual.batch_size),
        max_retries=_or(retries, 1, usual.max_retries),
        retry_delay=_or(delay, SECOND, usual.retry_delay),
        dead_letter_queue=grave,
        visibility_timeout=_or(lease, MILLISECOND, usual.visibility_timeout),
    )


OPERATIONS: Operations = (
    ("GET", "/queues/{queue}/consumers", list_consumers),
    ("POST", "/queues/{queue}/consumers", create_consumer),
    ("GET", "/queues/{queue}/consumers/{consumer}", get_consumer),
    ("PUT", "/queues/{queue}/consumers/{consumer}", update_consumer),
    ("DELETE", "/queues/{queue}/consumers/{consumer}", delete_consumer),
)
