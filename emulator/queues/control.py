"""A queue in a test's hand: `emulator.queues["name"]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from emulator.clock import instant, moment
from emulator.queues import options
from emulator.queues.bindings import batch_message, one_message
from emulator.queues.model import Backlog, Batch, Delivery, Outgoing, Result
from emulator.queues.plain import plain_body
from emulator.queues.reply import reply
from emulator.queues.run import ConsumerRun, DeliveryRecord
from emulator.runtime.host import current
from emulator.runtime.rpc import to_canonical
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio

    from emulator.caller import Caller
    from emulator.kernel import Kernel
    from emulator.queues.limits import Verb
    from emulator.queues.model import Counts
    from emulator.queues.service import Queues


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits in a queue or is in flight; `due` is when it became, or becomes,
    available, and `attempts` the number of deliveries so far."""

    id: str
    body: Any
    attempts: int
    timestamp: datetime
    due: datetime | None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a directly dispatched batch came to, under the names of queues.md 2.9 and 2.13.

    `retry_batch` is `{"retry": bool, "delaySeconds": …}`, `retry_messages` a list of
    `{"msgId": …, "delaySeconds": …}`; `delaySeconds` is there only where one was given.
    """

    outcome: str
    ack_all: bool
    retry_batch: Mapping[str, Any]
    explicit_acks: list[str] = field(default_factory=list)
    retry_messages: list[Mapping[str, Any]] = field(default_factory=list)
    error: BaseException | None = None


class Queue:
    """One queue as tests use it; get it from `emulator.queues`."""

    def __init__(self, queues: Queues, name: str, caller: Caller) -> None:
        self._queues = queues
        self._caller = caller
        self.name = name

    async def send(
        self,
        body: Any,
        *,
        contentType: str | None = None,
        delaySeconds: float | None = None,
    ) -> str:
        """Send a message as a Worker would, and return its id. No fault site.

        Raises `JsException` as a Worker's call does.
        """
        given = {"contentType": contentType, "delaySeconds": delaySeconds}
        item = {"body": body, **{key: value for key, value in given.items() if value is not None}}
        return (await self._send("send", [item]))[0]

    async def send_batch(self, items: Iterable[Any]) -> list[str]:
        """Send bodies, or mappings with `body` as in `sendBatch`; returns the ids.

        Raises `ValueError` for a mapping with `body` and keys that `sendBatch` does not know,
        `TypeError` for what is no series of items.
        """
        return await self._send("sendBatch", _as_items("send_batch", items, options.MESSAGE))

    async def _send(self, verb: Verb, items: list[Mapping[str, Any]]) -> list[str]:
        return await self._caller.at_once(
            f"queues[{self.name!r}].{verb}",
            lambda: self._enter(verb, items),
        )

    def _enter(self, verb: Verb, items: list[Mapping[str, Any]]) -> list[str]:
        """Store messages at this instant; runs inside the simulation, in the test's scope."""
        invocation: Any = current()
        messages = [_outgoing(verb, invocation, item) for item in items]
        if not messages:
            raise JsException("TypeError", "sendBatch() requires at least one message")
        sending = self._queues.sending
        sending.check(self.name, verb, messages, invocation.flags)
        sending.enter(self.name, messages, by="test")
        return [message.id for message in messages]

    @property
    def backlog(self) -> list[Waiting]:
        """What waits or is delayed, in order of becoming available."""
        return [
            Waiting(
                item.id,
                plain_body(item.body, item.content_type),
                item.attempts,
                moment(item.timestamp),
                moment(item.due),
            )
            for item in self._queues.broker.pending(self.name)
        ]

    @property
    def in_flight(self) -> list[Waiting]:
        """What a consumer has in hand now."""
        return [
            Waiting(
                message.id,
                plain_body(message.body, message.content_type),
                message.attempts,
                moment(message.timestamp),
                None,
            )
            for batch in self._queues.broker.in_flight(self.name)
            for message in batch.messages
        ]

    @property
    def deliveries(self) -> list[DeliveryRecord]:
        """One record per message per delivery, appended when it is settled."""
        return self._queues.deliveries.setdefault(self.name, [])

    @property
    def _counts(self) -> Counts:
        return self._queues.broker.counts(self.name)

    @property
    def acked(self) -> int:
        """Messages acknowledged so far."""
        return self._counts.acked

    @property
    def dead_lettered(self) -> int:
        """Messages moved to the dead letter queue so far."""
        return self._counts.dead_lettered

    @property
    def dropped(self) -> int:
        """Messages given up without a dead letter queue so far."""
        return self._counts.dropped

    @property
    def expired(self) -> int:
        """Messages that outlived their retention here so far."""
        return self._counts.expired

    @property
    def settings(self) -> dict[str, Any]:
        """The queue's and its consumer's settings, under wrangler's and the REST API's names."""
        return self._queues.settings(self.name)

    def pause(self) -> None:
        """Stop deliveries; sends are accepted and messages age."""
        self._queues.pause(self.name)

    def resume(self) -> None:
        """Deliver again."""
        self._queues.resume(self.name)

    def purge(self) -> None:
        """Delete all that waits or is delayed."""
        self._queues.purge(self.name)

    async def dispatch(self, items: Iterable[Any]) -> BatchResult:
        """Call the consumer's handler directly: nothing is queued, background work is awaited.

        Items are bodies, or mappings with `body` and if wanted `id`, `attempts`, `timestamp` (an
        aware datetime) and `contentType` (default `v8`, which keeps the most). Raises `LookupError`
        for a queue without a consumer, `ValueError` for a wrong item, `TypeError` for what is no
        series of items.
        """
        messages = _as_items("dispatch", items, _DELIVERED)
        run: ConsumerRun = await self._caller.at_once(
            f"queues[{self.name!r}].dispatch",
            lambda: self._start(messages),
        )
        return _batch_result(run)

    def _start(self, items: list[Mapping[str, Any]]) -> asyncio.Future[ConsumerRun]:
        """Call the handler with these messages; resolves when all its work is done."""
        worker = self._queues.consumers.get(self.name)
        if worker is None:
            raise LookupError(f"queue {self.name!r} has no consumer to dispatch to")
        kernel = worker.kernel
        deliveries = [_delivery(kernel, index, item) for index, item in enumerate(items)]
        batch = Batch(0, self.name, tuple(deliveries), kernel.now, Backlog(0, 0, None))
        done = kernel.loop.create_future()
        run = ConsumerRun(worker.isolate, batch)
        run.in_request = True  # the test waits for it, and nobody delivers it again
        run.begin(over=done.set_result)
        return done

    def __repr__(self) -> str:
        return f"<Queue {self.name}: {len(self.backlog)} waiting or delayed>"


# What `dispatch` takes of a message.
_DELIVERED = ("body", "id", "attempts", "timestamp", "contentType")


class QueueViews(Mapping[str, Queue]):
    """All queues there are, those made at run time included."""

    def __init__(self, queues: Queues, caller: Caller) -> None:
        self._queues = queues
        self._caller = caller
        self._made: dict[str, Queue] = {}

    def __getitem__(self, name: str) -> Queue:
        if name not in self._queues.broker.queues:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = Queue(self._queues, name, self._caller)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queues.broker.queues)

    def __len__(self) -> int:
        return len(self._queues.broker.queues)


def _as_items(call: str, items: Any, known: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """A list of messages; a lone text or mapping is one that lost its brackets."""
    if not isinstance(items, Iterable) or isinstance(items, (str, bytes, Mapping)):
        raise TypeError(f"{call}() takes a list of bodies or messages, not {items!r}")
    return [_as_item(item, known) for item in items]


def _as_item(item: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A message as `sendBatch` takes it: a mapping with `body`, or a bare body."""
    if not isinstance(item, Mapping) or "body" not in item:
        return {"body": item}
    unknown = [str(key) for key in item if key not in known]
    if unknown:
        raise ValueError(
            f"a mapping with the key 'body' is a message, not a body, and {', '.join(unknown)} is "
            f"none of a message's keys ({', '.join(known)}); write {{'body': ...}} around a body"
        )
    return item


def _outgoing(verb: Verb, invocation: Any, item: Mapping[str, Any]) -> Outgoing:
    given = {key: to_canonical(value) for key, value in item.items()}
    if verb == "send":
        return one_message(invocation, given)
    return batch_message(invocation, given, None)


def _delivery(kernel: Kernel, index: int, item: Mapping[str, Any]) -> Delivery:
    given = {"body": item["body"], "contentType": item.get("contentType", "v8")}
    message = _outgoing("sendBatch", cast("Any", current()), given)
    return Delivery(
        index,
        item.get("id", message.id),
        message.body,
        message.content_type,
        _sent(item.get("timestamp"), kernel),
        _attempts(item.get("attempts", 1)),
    )


def _sent(timestamp: Any, kernel: Kernel) -> int:
    if timestamp is None:
        return kernel.now
    if not isinstance(timestamp, datetime) or timestamp.tzinfo is None:
        raise ValueError(f"timestamp is {timestamp!r}; give an aware datetime")
    return instant(timestamp)


def _attempts(count: Any) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"attempts is {count!r}; give 1 (the first delivery) or more")
    return count


def _batch_result(run: ConsumerRun) -> BatchResult:
    # A run that was cut off recorded nothing that counts.
    told = reply(run.result or Result())
    return BatchResult(
        outcome=run.outcome,
        ack_all=told["ackAll"],
        retry_batch=told["retryBatch"],
        explicit_acks=told["explicitAcks"],
        retry_messages=told["retryMessages"],
        error=run.error,
    )
