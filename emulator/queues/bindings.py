"""What user code sees of Queues: the producer binding, the batch and its messages.

Numbers such as 2.9 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from emulator.location import caller
from emulator.queues.limits import Verb
from emulator.queues.model import SECOND, Backlog, Batch, Delivery, Outgoing, Result
from emulator.runtime.host import current
from emulator.values import (
    UNDEFINED,
    HostObject,
    JsException,
    decode_body,
    encode_body,
    from_milliseconds,
    js_int32,
)

if TYPE_CHECKING:
    from emulator.invocation import Invocation

_JSON_BY_DEFAULT = "queues_json_messages"
# Snake-case spellings that production passes on and nobody reads (python-api.md 0.5).
_MISSPELT = {"delay_seconds": "delaySeconds", "content_type": "contentType"}

# (verb, messages, invocation) -> the promise of the send's answer.
Send = Callable[[Verb, list[Outgoing], "Invocation"], "asyncio.Future[Any]"]


class WorkerQueue(HostObject):
    """A producer binding (1.1)."""

    js_class = "WorkerQueue"
    js_members = frozenset({"send", "sendBatch", "metrics"})

    def __init__(self, send: Send, backlog: Callable[[], Backlog]) -> None:
        self._send = send
        self._backlog = backlog

    def send(self, *arguments: Any) -> asyncio.Future[Any]:
        """Send one message; the body is serialised now, later changes do not reach it."""
        return _promise(self._send_one, arguments)

    def sendBatch(self, *arguments: Any) -> asyncio.Future[Any]:  # noqa: N802
        """Send several messages, all or none."""
        return _promise(self._send_many, arguments)

    def metrics(self, *_: Any) -> asyncio.Future[Any]:
        """What waits in the queue."""
        return _promise(lambda _: _resolved(metrics(self._backlog())["metadata"]["metrics"]), ())

    def _send_one(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        if not arguments:
            raise _wrong_parameter("send", "JsValue")
        body, options = arguments[0], _options(arguments[1:])
        invocation = _invocation(options)
        content_type = options.get("contentType", UNDEFINED)
        if isinstance(content_type, str):
            content_type = content_type.lower()
        return self._send("send", [outgoing(invocation, body, content_type, options)], invocation)

    def _send_many(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        items = arguments[0] if arguments else UNDEFINED
        if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
            raise _wrong_parameter("sendBatch", "Sequence")
        options = _options(arguments[1:])
        invocation = _invocation(options)
        delay = _delay(invocation, options)
        messages = []
        for item in items:
            if not isinstance(item, Mapping):
                raise JsException(
                    "TypeError",
                    "Incorrect type: the provided value is not of type 'MessageSendRequest'.",
                )
            report_misspelt(invocation, item)
            message = outgoing(
                invocation, item.get("body", UNDEFINED), item.get("contentType", UNDEFINED), item
            )
            messages.append(message if message.delay is not None else message._replace(delay=delay))
        if not messages:
            raise JsException("TypeError", "sendBatch() requires at least one message")
        return self._send("sendBatch", messages, invocation)


class QueueMessage(HostObject):
    """A message in a batch (2.3)."""

    js_class = "QueueMessage"
    js_members = frozenset({"id", "timestamp", "body", "attempts", "ack", "retry"})

    def __init__(self, delivery: Delivery, record: BatchRecord) -> None:
        self._delivery = delivery
        self._record = record
        self.id = delivery.id
        self.attempts = delivery.attempts

    @property
    def timestamp(self) -> Any:
        """When the message was sent (2.5)."""
        return from_milliseconds(self._delivery.timestamp // 1000)

    @property
    def body(self) -> Any:
        """The body, fresh in each delivery."""
        return decode_body(self._delivery.body, self._delivery.content_type)

    def ack(self, *_: Any) -> object:
        """Take this message as done, whatever becomes of the batch."""
        self._record.ack(self.id)
        return UNDEFINED

    def retry(self, options: Any = UNDEFINED, *_: Any) -> object:
        """Have this message delivered again."""
        self._record.retry(self.id, _retry_options(options, "QueueMessage", "retry"))
        return UNDEFINED


class MessageBatch(HostObject):
    """What a consumer gets (2.2)."""

    js_class = "MessageBatch"
    js_members = frozenset({"queue", "messages", "metadata", "ackAll", "retryAll"})

    def __init__(self, batch: Batch, record: BatchRecord) -> None:
        self._record = record
        self._backlog = batch.backlog
        self.queue = batch.queue
        self.messages = [QueueMessage(delivery, record) for delivery in batch.messages]

    @property
    def metadata(self) -> dict[str, Any]:
        """What remained in the queue when the batch was taken."""
        return metrics(self._backlog)["metadata"]  # type: ignore[no-any-return]

    def ackAll(self, *_: Any) -> object:  # noqa: N802
        """Take every message as done."""
        self._record.acknowledge_all()
        return UNDEFINED

    def retryAll(self, options: Any = UNDEFINED, *_: Any) -> object:  # noqa: N802
        """Have every message delivered again."""
        self._record.retry_all(_retry_options(options, "MessageBatch", "retryAll"))
        return UNDEFINED


class BatchRecord:
    """What the runtime records of the calls on a batch, by the table of 2.9.

    The first call on a message wins; a later one that contradicts it is ignored with the
    platform's warning, handed to `warn`.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.ack_all = False
        self.retry_batch = False
        self.retry_batch_delay: int | None = None
        self.acks: dict[str, None] = {}
        self.retries: dict[str, int | None] = {}

    def ack(self, message: str) -> None:
        """`message.ack()`."""
        if self.ack_all:
            return
        if self.retry_batch:
            self._ignored("ack", "retryAll", message)
        elif message in self.retries:
            self._ignored("ack", "retry", message)
        else:
            self.acks[message] = None

    def retry(self, message: str, delay: int | None) -> None:
        """`message.retry()`; a later one without a delay takes the earlier delay back."""
        if self.ack_all:
            self._ignored("retry", "ackAll", message)
        elif message in self.acks:
            self._ignored("retry", "ack", message)
        else:
            self.retries[message] = delay

    def acknowledge_all(self) -> None:
        """`batch.ackAll()`."""
        if self.retry_batch:
            self._ignored("ackAll", "retryAll")
        else:
            self.ack_all = True

    def retry_all(self, delay: int | None) -> None:
        """`batch.retryAll()`; a later one without a delay keeps the earlier delay."""
        if self.ack_all:
            self._ignored("retryAll", "ackAll")
            return
        self.retry_batch = True
        if delay is not None:
            self.retry_batch_delay = delay

    def result(self, outcome: str) -> Result:
        """The record as the service gets it when the run ends with `outcome`."""
        return Result(
            outcome=outcome,
            ack_all=self.ack_all,
            retry_batch=self.retry_batch,
            retry_batch_delay=self.retry_batch_delay,
            explicit_acks=tuple(self.acks),
            retries=dict(self.retries),
        )

    def _ignored(self, call: str, earlier: str, message: str | None = None) -> None:
        where = f" on message {message}" if message is not None else ""
        target = " on a message" if message is not None else ""
        self._warn(
            f"Received a call to {call}(){where} after {earlier}() was already called. "
            f"Calling {call}(){target} after calling {earlier}() has no effect."
        )


def metrics(backlog: Backlog) -> dict[str, Any]:
    """A backlog as `send` and `batch.metadata` give it; no timestamp when nothing waits (1.2)."""
    values: dict[str, Any] = {"backlogCount": backlog.count, "backlogBytes": backlog.bytes}
    if backlog.oldest is not None:
        values["oldestMessageTimestamp"] = from_milliseconds(backlog.oldest // 1000)
    return {"metadata": {"metrics": values}}


def _promise(
    call: Callable[[tuple[Any, ...]], asyncio.Future[Any]], arguments: tuple[Any, ...]
) -> asyncio.Future[Any]:
    """Call it now; its errors are the promise's, as in an `async` function of JavaScript."""
    try:
        return call(arguments)
    except JsException as error:
        refused = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        # Not awaiting it is a finding of its own.
        refused.exception()
        return refused


def _resolved(value: Any) -> asyncio.Future[Any]:
    future = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


def _invocation(options: Mapping[str, Any]) -> Invocation:
    invocation: Any = current()
    invocation.forbid_in_global_scope()
    report_misspelt(invocation, options)
    return invocation  # type: ignore[no-any-return]


def outgoing(
    invocation: Invocation, body: Any, content_type: Any, options: Mapping[str, Any]
) -> Outgoing:
    if content_type is UNDEFINED:
        content_type = "json" if _JSON_BY_DEFAULT in invocation.flags else "v8"
    encoded = encode_body(body, content_type)
    return Outgoing(
        invocation.kernel.hexadecimal(32), encoded, content_type, _delay(invocation, options)
    )


def _delay(invocation: Invocation, options: Mapping[str, Any]) -> int | None:
    """`delaySeconds` in microseconds, None if it is left out (1.8, 1.10)."""
    value = options.get("delaySeconds", UNDEFINED)
    if value is UNDEFINED:
        return None
    if value is None:
        invocation.find(
            "ignored_option",
            "delaySeconds=None is JavaScript's null, which counts as 0 and overrides the queue's "
            "delivery delay; leave the option out to use that",
            caller(),
        )
    return js_int32(value) * SECOND


def _retry_options(options: Any, owner: str, method: str) -> int | None:
    if options is UNDEFINED or options is None:
        return None
    if not isinstance(options, Mapping):
        raise JsException(
            "TypeError",
            f"Failed to execute '{method}' on '{owner}': parameter 1 is not of type "
            "'QueueRetryOptions'.",
        )
    report_misspelt(current(), options)
    value = options.get("delaySeconds", UNDEFINED)
    # Only the range of int32 is checked; a negative delay is none (2.15).
    return None if value is UNDEFINED else max(js_int32(value), 0) * SECOND


def report_misspelt(invocation: Any, options: Mapping[str, Any]) -> None:
    for given, meant in _MISSPELT.items():
        if given in options:
            invocation.find(
                "ignored_option",
                f"the option {given} has no effect; production reads {meant}",
                caller(),
            )


def _options(arguments: tuple[Any, ...]) -> Mapping[str, Any]:
    options = arguments[0] if arguments else UNDEFINED
    return options if isinstance(options, Mapping) else {}


def _wrong_parameter(method: str, wanted: str) -> JsException:
    return JsException(
        "TypeError",
        f"Failed to execute '{method}' on 'WorkerQueue': parameter 1 is not of type '{wanted}'.",
    )
