"""What user code sees of Queues: the producer binding, the batch and its messages.

Numbers such as 2.9 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.queues import options
from emulator.queues.limits import internal_error
from emulator.queues.model import Backlog, Batch, Delivery, Outgoing
from emulator.runtime.host import current
from emulator.runtime.pyproxy import iterate
from emulator.runtime.rpc_values import JsDict, from_canonical
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    HostObject,
    JsException,
    decode_body,
    encode_body,
    from_milliseconds,
    type_of,
)
from emulator.values.json import plain_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from emulator.invocation import Invocation
    from emulator.queues.model import Duration, Profile
    from emulator.queues.record import BatchRecord
    from emulator.queues.sending import Sending

_JSON_BY_DEFAULT = "queues_json_messages"
# How the runtime of each profile names the type of `send`'s first parameter (1.6; the other name
# is in the recording queue_content_type_errors_cd2025).
_ANY_VALUE: Mapping[Profile, str] = {"production": "JsValue", "miniflare": "Value"}


def _converted_answer(answer: dict[str, Any]) -> JsDict:
    """What `from_canonical` makes of the answer to a send, of which it is known what is in it."""
    told = JsDict(answer["metadata"]["metrics"])
    told["oldestMessageTimestamp"] = from_canonical(told["oldestMessageTimestamp"])
    return JsDict({"metadata": JsDict({"metrics": told})})


class WorkerQueue(HostObject):
    """A producer binding (1.1).

    Its methods do their work at the call; what is wrong with a call is the promise's error.
    """

    js_class = "WorkerQueue"
    js_members = frozenset({"send", "sendBatch", "metrics"})
    sdk_results = MappingProxyType({"send": _converted_answer, "sendBatch": _converted_answer})

    def __init__(self, queue: str, sending: Sending) -> None:
        self._queue = queue
        self._sending = sending

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._sending

    def send(self, *arguments: Any) -> asyncio.Future[Any]:
        """Send one message; the body is serialised now, later changes do not reach it."""
        return _promise(self._send_one, arguments)

    def sendBatch(self, *arguments: Any) -> asyncio.Future[Any]:
        """Send several messages, all or none."""
        return _promise(self._send_many, arguments)

    def metrics(self, *_: Any) -> asyncio.Future[Any]:
        """What waits in the queue."""
        return _promise(lambda _: self._sending.metrics(self._queue, calls.caller_of()), ())

    def _send_one(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        invocation = calls.caller_of()
        if not arguments:
            raise _wrong_parameter("send", 1, _ANY_VALUE[invocation.kernel.profile])
        given = _options("send", arguments, options.SEND, invocation)
        message = one_message(invocation, {**given, "body": arguments[0]})
        if invocation.minds_effects:
            invocation.effect(f"a message to the queue {self._queue}")
        return self._sending.send(self._queue, "send", [message], invocation)

    def _send_many(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        invocation = calls.caller_of()
        items = _sequence(arguments[0] if arguments else UNDEFINED)
        given = _options("sendBatch", arguments, options.SEND_BATCH, invocation)
        options.report_null_delay(given, invocation)
        delay = options.delay_of(given)
        messages = [batch_message(invocation, item, delay) for item in items]
        if not messages:
            raise JsException("TypeError", "sendBatch() requires at least one message")
        invocation.effect(f"messages to the queue {self._queue}")
        return self._sending.send(self._queue, "sendBatch", messages, invocation)


class QueueMessage(HostObject):
    """A message in a batch (2.3)."""

    js_class = "QueueMessage"
    js_members = frozenset({"id", "timestamp", "body", "attempts", "ack", "retry"})

    def __init__(self, delivery: Delivery, record: BatchRecord, profile: Profile) -> None:
        self._delivery = delivery
        self._record = record
        self._profile = profile
        self.id = delivery.id
        self.attempts = delivery.attempts

    def js_keys(self) -> Iterable[str]:
        return ("id", "timestamp", "body", "attempts")

    @property
    def timestamp(self) -> Any:
        """When the message was sent (2.5)."""
        return from_milliseconds(self._delivery.timestamp // 1000)

    @property
    def body(self) -> Any:
        """The body, fresh in each delivery; the local runtime has its own idea of bytes (2.6)."""
        body = decode_body(self._delivery.body, self._delivery.content_type)
        if self._profile == "miniflare" and self._delivery.content_type == "bytes":
            return ArrayBuffer(body)
        return body

    def ack(self, *_: Any) -> object:
        """Take this message as done, whatever becomes of the batch."""
        self._record.ack(self.id)
        return UNDEFINED

    def retry(self, *arguments: Any) -> object:
        """Have this message delivered again."""
        self._record.retry(self.id, _retry_delay("QueueMessage", "retry", arguments))
        return UNDEFINED


class QueueController(HostObject):
    """The batch that a consumer gets (2.2)."""

    js_class = "QueueController"
    js_members = frozenset({"queue", "messages", "metadata", "ackAll", "retryAll"})

    def __init__(self, batch: Batch, record: BatchRecord, profile: Profile) -> None:
        self._record = record
        self._backlog = batch.backlog
        self.queue = batch.queue
        self.messages = [QueueMessage(delivery, record, profile) for delivery in batch.messages]

    def js_keys(self) -> Iterable[str]:
        return ("metadata", "queue", "messages")

    @property
    def metadata(self) -> dict[str, Any]:
        """What remained in the queue when the batch was taken."""
        return {"metrics": metrics(self._backlog)}

    def ackAll(self, *_: Any) -> object:
        """Take every message as done."""
        self._record.acknowledge_all()
        return UNDEFINED

    def retryAll(self, *arguments: Any) -> object:
        """Have every message delivered again."""
        self._record.retry_all(_retry_delay("QueueController", "retryAll", arguments))
        return UNDEFINED


def metrics(backlog: Backlog) -> dict[str, Any]:
    """A backlog as user code sees it; its timestamp is undefined when nothing waits (1.2)."""
    oldest = backlog.oldest
    return {
        "backlogCount": backlog.count,
        "backlogBytes": backlog.bytes,
        "oldestMessageTimestamp": UNDEFINED
        if oldest is None
        else from_milliseconds(oldest // 1000),
    }


def one_message(invocation: Invocation, given: Mapping[str, Any]) -> Outgoing:
    """A message of `send`, which takes the content type in any case of letters (1.5)."""
    content_type = given.get("contentType", UNDEFINED)
    if isinstance(content_type, str):
        given = {**given, "contentType": content_type.lower()}
    if invocation.kernel.profile == "miniflare" and _has_no_json(invocation, given):
        # The runtime sends the text `undefined`, which the local broker cannot parse (recording
        # queue_content_type_errors_cd2025).
        raise internal_error("send", invocation.flags)
    return _serialised(invocation, given)


def _has_no_json(invocation: Invocation, given: Mapping[str, Any]) -> bool:
    """Whether a message is to be JSON and its body is what JSON leaves out (1.6)."""
    default = "json" if _JSON_BY_DEFAULT in invocation.flags else "v8"
    content_type = given.get("contentType", UNDEFINED)
    kind = default if content_type is UNDEFINED else content_type
    return kind == "json" and type_of(given.get("body")) in ("function", "symbol")


def batch_message(invocation: Invocation, item: Any, delay: Duration | None) -> Outgoing:
    """A message of `sendBatch`; `delay` is the batch's own option."""
    try:
        given = options.read(item, options.MESSAGE, invocation)
    except options.NotAnObject:
        raise JsException(
            "TypeError", "Incorrect type: the provided value is not of type 'MessageSendRequest'."
        ) from None
    return _serialised(invocation, given, delay)


def _serialised(
    invocation: Invocation, given: Mapping[str, Any], delay: Duration | None = None
) -> Outgoing:
    """A message with its own delay, or else with this one."""
    content_type = given.get("contentType", UNDEFINED)
    if content_type is UNDEFINED:
        content_type = "json" if _JSON_BY_DEFAULT in invocation.flags else "v8"
    value = given.get("body", UNDEFINED)
    # Nearly all bodies are plain data, for which there is a quick way.
    body = plain_json(value) if content_type == "json" else None
    if body is None:
        body = encode_body(
            value,
            content_type,
            on_losses=lambda found: options.report_losses(found, value, invocation),
        )
    if "delaySeconds" in given:
        options.report_null_delay(given, invocation)
        own = options.delay_of(given)
        delay = delay if own is None else own
    return Outgoing(invocation.kernel.hexadecimal(32), body, content_type, delay)


def _promise(
    call: Callable[[tuple[Any, ...]], asyncio.Future[Any]], arguments: tuple[Any, ...]
) -> asyncio.Future[Any]:
    """Call it now; its errors are the promise's, as in an `async` function of JavaScript."""
    try:
        return call(arguments)
    except JsException as error:
        return calls.refuse(error)


def _sequence(value: Any) -> Iterable[Any]:
    try:
        if not isinstance(value, str):  # which JavaScript iterates, but not here
            return iterate(value)
    except JsException:
        pass
    raise _wrong_parameter("sendBatch", 1, "Sequence")


def _options(
    method: str, arguments: tuple[Any, ...], known: tuple[str, ...], invocation: Invocation
) -> Mapping[str, Any]:
    try:
        return options.read(arguments[1] if arguments[1:] else UNDEFINED, known, invocation)
    except options.NotAnObject:
        kind = "SendOptions" if method == "send" else "SendBatchOptions"
        raise _wrong_parameter(method, 2, kind) from None


def _retry_delay(owner: str, method: str, arguments: tuple[Any, ...]) -> Duration | None:
    invocation: Any = current()
    try:
        given = options.read(arguments[0] if arguments else UNDEFINED, options.RETRY, invocation)
    except options.NotAnObject:
        raise _wrong_parameter(method, 1, "QueueRetryOptions", owner) from None
    options.report_null_delay(given, invocation)
    delay = options.delay_of(given)
    # Only the range of int32 is checked; a negative delay is none (2.15).
    return None if delay is None else max(delay, 0)


def _wrong_parameter(
    method: str, position: int, wanted: str, owner: str = "WorkerQueue"
) -> JsException:
    return JsException(
        "TypeError",
        f"Failed to execute '{method}' on '{owner}': parameter {position} is not of type "
        f"'{wanted}'.",
    )
