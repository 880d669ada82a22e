"""Messages: `/accounts/{account}/queues/{queue}/messages` (queues.md §5 and 7.5).

The body of a pulled or peeked message is the text itself where its content type is `text`, else
base64, as the documentation has it (5.4). With the header `Emulator-Json-Bodies: plain` those of
`json` are JSON text, as users have seen it.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final

from emulator.queues import limits
from emulator.queues.leases import (
    MAX_PULL_SIZE,
    MAX_RETRY_DELAY,
    MAX_VISIBILITY_TIMEOUT,
    DeliveryPausedError,
    NoPullConsumerError,
)
from emulator.queues.model import MILLISECOND, SECOND, Outgoing
from emulator.server.rest.answers import ApiError
from emulator.server.rest.fields import MISSING, body, invalid, kind_of
from emulator.server.rest.queue_shapes import find_queue, metrics
from emulator.values import encode_body

if TYPE_CHECKING:
    from emulator.queues.limits import Verb
    from emulator.queues.model import Delivery, Pending
    from emulator.server.rest.calls import Call, Operations
    from emulator.server.rest.fields import Fields

_CONTENT_TYPES: Final = ("text", "json")
_MOST_SECONDS: Final = 2**31
_USUAL_PEEK: Final = 5
# Their texts have been seen, their codes have not.
_NO_PULL: Final = ApiError(405, 10001, "messages cannot be pulled unless http_pull mode is enabled")
_PAUSED: Final = ApiError(409, 10001, "queue_delivery_paused")


# -- in ------------------------------------------------------------------------------------------


def push_message(call: Call) -> Any:
    """Send a message."""
    name = find_queue(call)
    return _send(call, name, "send", [_message(call, body(call), None)])


def push_messages(call: Call) -> Any:
    """Send several messages, all or none."""
    name, given = find_queue(call), body(call)
    delay = given.number("delay_seconds", -_MOST_SECONDS, _MOST_SECONDS)
    items = given.items("messages", required=True)
    if not items:
        raise invalid('Array must contain at least 1 element(s) at "messages"')
    return _send(call, name, "sendBatch", [_message(call, item, delay) for item in items])


def _message(call: Call, given: Fields, delay: int | None) -> Outgoing:
    kind = given.choice("content_type", _CONTENT_TYPES, "json")
    value = given.values.get("body", MISSING)
    if value is MISSING:
        raise invalid(f'Required at "{given.path("body")}"')
    if kind == "text":
        value = given.text("body", required=True)
    elif not isinstance(value, dict | list):
        where = given.path("body")
        raise invalid(f'Expected object, received {kind_of(value)} at "{where}"')
    own = given.number("delay_seconds", -_MOST_SECONDS, _MOST_SECONDS)
    seconds = delay if own is None else own
    return Outgoing(
        call.kernel.hexadecimal(32),
        encode_body(value, kind),
        kind,
        None if seconds is None else seconds * SECOND,
    )


def _send(call: Call, name: str, verb: Verb, messages: list[Outgoing]) -> Any:
    queues = call.platform.queues
    try:
        limits.check(verb, messages, call.kernel.profile)
    except limits.Refused as refused:
        raise ApiError(400, refused.code, refused.cause) from None
    queues.sending.enter(name, messages, by="rest")
    return {"metadata": {"metrics": metrics(call, name)}}


# -- out -----------------------------------------------------------------------------------------


def pull_messages(call: Call) -> Any:
    """Lease messages; returns at once, whether there are any or not (5.2)."""
    name, given = find_queue(call), body(call, empty=True)
    size = given.number("batch_size", 1, MAX_PULL_SIZE)
    most = MAX_VISIBILITY_TIMEOUT // MILLISECOND
    timeout = given.number("visibility_timeout_ms", 0, most)
    try:
        pulled = call.platform.queues.pulling.pull(
            name, size, None if timeout is None else timeout * MILLISECOND
        )
    except NoPullConsumerError:
        raise _NO_PULL from None
    except DeliveryPausedError:
        raise _PAUSED from None
    counted = metrics(call, name)
    return {
        "message_backlog_count": counted["backlog_count"],
        "messages": [
            {**_shown(call, item.message), "lease_id": item.lease} for item in pulled.messages
        ],
        "metadata": {"metrics": counted},
    }


def acknowledge_messages(call: Call) -> Any:
    """Take a puller's answers (5.7)."""
    name, given = find_queue(call), body(call)
    acks = [_lease(item) for item in given.items("acks")]
    most = MAX_RETRY_DELAY // SECOND
    retries = {}
    for item in given.items("retries"):
        delay = item.number("delay_seconds", 0, most)
        retries[_lease(item)] = None if delay is None else delay * SECOND
    answered = call.platform.queues.pulling.acknowledge(name, acks, retries)
    return {
        "ackCount": answered.ack_count,
        "retryCount": answered.retry_count,
        "warnings": answered.warnings,
    }


def _lease(item: Fields) -> str:
    return item.text("lease_id", required=True) or ""


def peek_messages(call: Call) -> Any:
    """Show the first messages that nobody has in hand, and leave them."""
    name, given = find_queue(call), body(call, empty=True)
    size = given.number("batch_size", 1, MAX_PULL_SIZE)
    waiting = call.platform.queues.broker.pending(name)[: size or _USUAL_PEEK]
    return {"messages": [{**_shown(call, item), "ref": _ref(name, item.seq)} for item in waiting]}


def purge_messages(call: Call) -> Any:
    """Delete messages that were peeked at, by their `ref`."""
    name, given = find_queue(call), body(call)
    refs = [item.text("ref", required=True) or "" for item in given.items("refs", required=True)]
    numbers = {ref: _seq(name, ref) for ref in refs}
    wanted = [number for number in numbers.values() if number is not None]
    gone = call.platform.queues.discard(name, wanted)
    missed = [ref for ref, number in numbers.items() if number not in gone]
    # The real words are not known.
    return {"errors": [], "warnings": dict.fromkeys(missed, "there is no such message waiting")}


def _ref(queue: str, seq: int) -> str:
    return urlsafe_b64encode(f"{seq}.{queue}".encode()).decode().rstrip("=")


def _seq(queue: str, ref: str) -> int | None:
    try:
        text = urlsafe_b64decode(ref + "=" * (-len(ref) % 4)).decode()
        seq, _, name = text.partition(".")
        return int(seq) if name == queue else None
    except ValueError:
        return None


def _shown(call: Call, message: Delivery | Pending) -> dict[str, Any]:
    return {
        "id": message.id,
        "body": _body(call, message),
        "attempts": message.attempts,
        "timestamp_ms": message.timestamp // MILLISECOND,
        "metadata": {"CF-Content-Type": message.content_type},
    }


def _body(call: Call, message: Delivery | Pending) -> str:
    plain = call.headers.get("emulator-json-bodies", "").lower() == "plain"
    if message.content_type == "text" or (plain and message.content_type == "json"):
        return message.body.decode("utf-8", "replace")
    return b64encode(message.body).decode()


OPERATIONS: Operations = (
    ("POST", "/queues/{queue}/messages", push_message),
    ("POST", "/queues/{queue}/messages/batch", push_messages),
    ("POST", "/queues/{queue}/messages/pull", pull_messages),
    ("POST", "/queues/{queue}/messages/ack", acknowledge_messages),
    ("POST", "/queues/{queue}/messages/peek", peek_messages),
    ("POST", "/queues/{queue}/messages/purge", purge_messages),
)
