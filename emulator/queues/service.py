"""The queues of one emulator: the broker, and the ways in and out of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emulator.queues.bindings import WorkerQueue
from emulator.queues.broker import Broker
from emulator.queues.chain import Chain
from emulator.queues.dispatch import Dispatch
from emulator.queues.model import (
    MILLISECOND,
    SECOND,
    Backlog,
    Outgoing,
    Pending,
    QueueRules,
    Record,
)
from emulator.queues.pulling import Pulling
from emulator.queues.sending import Copies, Sending
from emulator.queues.setup import Attached, Change, Setup, attached_of
from emulator.values.json import to_json_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.queues.model import Pending
    from emulator.queues.run import DeliveryRecord
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig


class Queues:
    """Queues with their consumers; what tests see of one is `control.Queue`."""

    def __init__(self, kernel: Kernel, rules: Sequence[QueueRules]) -> None:
        self._kernel = kernel
        self._rules = rules
        self.broker = Broker(rules, kernel.profile)
        # What is consumed by whom: as the config says it, and as it is.
        self._configured: dict[str, Worker] = {}
        self.consumers: dict[str, Worker] = {}
        self._workers: dict[str, Worker] = {}
        # The ids of what a test deleted; a dict and not a set, as everywhere.
        self.purged: dict[str, None] = {}
        self._bindings: list[WorkerQueue] = []
        chain = Chain()
        self.sending = Sending(
            kernel,
            is_checked=self._is_checked,
            store=self._store,
            backlog=self._backlog,
            default_delay=lambda queue: self.broker.rules(queue).delivery_delay,
            chain=chain,
        )
        self._dispatch = Dispatch(
            kernel, self.broker, self.consumers, admit=self.sending.admit, chain=chain
        )
        self.pulling = Pulling(
            kernel, self._dispatch, lambda: self.broker, admit=self.sending.admit
        )
        kernel.pending.append(self._describe_pending)

    def add(self, worker: Worker) -> None:
        """A Worker, with the queues it consumes."""
        self._workers[worker.name] = worker
        for consumer in worker.config.consumers:
            self._configured[consumer.queue] = self.consumers[consumer.queue] = worker

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The producer bindings of a Worker."""
        found = {
            producer.binding: WorkerQueue(producer.queue, self.sending)
            for producer in config.producers
        }
        self._bindings += found.values()
        return {**found}

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()

    @property
    def deliveries(self) -> dict[str, list[DeliveryRecord]]:
        """What was delivered and settled, by queue."""
        return self._dispatch.deliveries

    def _is_checked(self, queue: str) -> bool:
        """Whether the service checks what is sent: the local one not without a consumer (1.12)."""
        return self._kernel.profile == "production" or queue in self.consumers

    def _store(
        self, queue: str, messages: Sequence[Outgoing], copies: Copies, dropped: int
    ) -> None:
        now = self._kernel.clock.now
        if dropped:
            self.broker.lose(queue, dropped, now)
        if messages:
            self.broker.send(queue, messages, now)
        for message, delay in copies:
            self.broker.duplicate(queue, message, now, delay)
        self._dispatch.arm(queue)

    def _backlog(self, queue: str) -> Backlog:
        return self.broker.backlog(queue, self._kernel.clock.now)

    @property
    def names(self) -> list[str]:
        """The queues there are."""
        return list(self.broker.queues)

    def tell(self, queue: str, body: Any, *, by: str, link: int = 0) -> None:
        """Let another part of the platform send a message in JSON; a queue that is gone has none.

        `link` is `Invocation.link_at` of what led to it.
        """
        if queue in self.broker.queues:
            message = Outgoing(self._kernel.hexadecimal(32), to_json_bytes(body), "json")
            self.sending.enter(queue, [message], by=by, link=link)

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        return self.broker.take_records()

    def snapshot(self) -> Record:
        """The whole state of the queues."""
        return self.broker.snapshot()

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored state; what was in flight is lost, and delivered again."""
        self.broker = Broker(self._rules, self._kernel.profile)
        self._dispatch.go_on_with(self.broker)
        self.pulling.forget_all()
        if snapshot is not None:
            self.broker.restore(snapshot)
        self.broker.replay(records)
        self._set_up()
        self._dispatch.recover()
        for queue in self.broker.queues:
            self._arm(queue)

    def _arm(self, queue: str) -> None:
        self._dispatch.arm(queue)
        self.pulling.arm(queue)

    def reset(self) -> None:
        """Forget all messages and deliveries."""
        for deliveries in self.deliveries.values():
            deliveries.clear()
        self.purged.clear()
        self.rebuild(None, [])

    # -- set up at run time ----------------------------------------------------------------------

    def _set_up(self) -> None:
        """Let what was set up at run time hold, on top of what the config says."""
        configured = {rules.name: rules for rules in self._rules}
        effective = []
        self.consumers.clear()
        for name in self.broker.queues:
            rules, worker = self.broker.setup(name).over(
                configured.get(name) or QueueRules(name), self._configured_worker(name)
            )
            if rules.consumer is not None:
                if worker in self._workers:
                    self.consumers[name] = self._workers[worker]
                else:  # its config is not served any more
                    rules = replace(rules, consumer=None)
            effective.append(rules)
        self.broker.update(effective, self._kernel.now)

    def _configured_worker(self, queue: str) -> str | None:
        worker = self._configured.get(queue)
        return None if worker is None else worker.name

    def set_up(self, queue: str, setup: Setup) -> None:
        """Make a queue, or change what was set up of it."""
        known = queue in self.broker.queues
        self.broker.set_up(queue, setup, self._kernel.now)
        self._set_up()
        if known:
            self._kernel.record("queue_changed", f"queue {queue}")
        else:
            self._kernel.record("queue_created", f"queue {queue}")
        self._arm(queue)

    def attach(self, queue: str, consumer: Attached | None) -> None:
        """Give a queue another consumer than the config's, or none."""
        now, setup = self._kernel.now, self.broker.setup(queue)
        change = Change(self._attached_by_config(queue), consumer, now)
        self.set_up(queue, replace(setup, change=change, modified=now))

    def attached(self, queue: str) -> Attached | None:
        """The consumer of a queue."""
        return self.broker.setup(queue).consumer(self._attached_by_config(queue))

    def _attached_by_config(self, queue: str) -> Attached | None:
        configured = [rules for rules in self._rules if rules.name == queue]
        if not configured:
            return None
        return attached_of(configured[0], self._configured_worker(queue))

    def is_configured(self, queue: str) -> bool:
        """Whether a config names the queue."""
        return any(rules.name == queue for rules in self._rules)

    def graves(self) -> list[str]:
        """The queues that dead letters go to."""
        rules = map(self.broker.rules, self.broker.queues)
        consumers = [one for item in rules for one in (item.consumer, item.pull) if one is not None]
        return [one.dead_letter_queue for one in consumers if one.dead_letter_queue is not None]

    def delete(self, queue: str) -> None:
        """Delete a queue that no config names, and its messages."""
        ids = self.broker.delete(queue, self._kernel.now)
        self.purged.update(dict.fromkeys(ids))
        self.consumers.pop(queue, None)
        self._dispatch.forget(queue)
        self.pulling.forget(queue)
        self._kernel.record("queue_deleted", f"queue {queue}", messages=len(ids))

    # -- in a test's hand ------------------------------------------------------------------------

    def pause(self, queue: str) -> None:
        """Stop deliveries."""
        self.broker.pause(queue, self._kernel.now)
        self._kernel.record("pause", f"queue {queue}")
        self._dispatch.arm(queue)

    def resume(self, queue: str) -> None:
        """Deliver again."""
        self.broker.resume(queue, self._kernel.now)
        self._kernel.record("resume", f"queue {queue}")
        self._dispatch.arm(queue)

    def purge(self, queue: str) -> None:
        """Delete all that waits or is delayed."""
        self._purged(queue, self.broker.purge(queue, self._kernel.now))

    def discard(self, queue: str, seqs: Iterable[int]) -> list[int]:
        """Delete those of these messages that wait or are delayed; return their numbers."""
        discarded = self.broker.discard(queue, seqs, self._kernel.now)
        self._purged(queue, discarded)
        return [message.seq for message in discarded]

    def _purged(self, queue: str, purged: Sequence[Pending]) -> None:
        self.purged.update(dict.fromkeys(message.id for message in purged))
        self._kernel.record("purge", f"queue {queue}", messages=len(purged))
        self._dispatch.arm(queue)

    def hasten(self, queue: str, seqs: Iterable[int]) -> list[int]:
        """Make those of these messages that are delayed available now; return their numbers."""
        hastened = self.broker.hasten(queue, seqs, self._kernel.now)
        for message in hastened:
            self._kernel.record("hasten", f"queue {queue}", id=message.id)
        if hastened:
            self._dispatch.arm(queue)
        return [message.seq for message in hastened]

    def send_back(self, queue: str, seqs: Iterable[int], to: str, *, by: str) -> list[int]:
        """Move messages that wait or are delayed to another queue, where they begin anew."""
        self.broker.rules(to)  # raises `KeyError`
        moved = self.broker.discard(queue, seqs, self._kernel.now)
        if moved:
            self._purged(queue, moved)
            messages = [Outgoing(one.id, one.body, one.content_type) for one in moved]
            self.sending.enter(to, messages, by=by)
        return [message.seq for message in moved]

    def settings(self, queue: str) -> dict[str, Any]:
        """The settings of a queue and its consumer, in seconds."""
        rules = self.broker.rules(queue)
        found: dict[str, Any] = {
            "delivery_delay": rules.delivery_delay // SECOND,
            "message_retention_period": rules.retention // SECOND,
            "delivery_paused": self.broker.paused(queue),
        }
        consumer = rules.consumer
        if consumer is not None:
            found |= {
                "max_batch_size": consumer.max_batch_size,
                "max_batch_timeout": consumer.max_batch_timeout / SECOND,
                "max_retries": consumer.max_retries,
                "retry_delay": consumer.retry_delay // SECOND,
                "dead_letter_queue": consumer.dead_letter_queue,
                "max_concurrency": consumer.max_concurrency,
            }
        pull = rules.pull
        if pull is not None:
            found |= {
                "batch_size": pull.batch_size,
                "visibility_timeout_ms": pull.visibility_timeout // MILLISECOND,
                "max_retries": pull.max_retries,
                "retry_delay": pull.retry_delay // SECOND,
                "dead_letter_queue": pull.dead_letter_queue,
            }
        return found

    @property
    def stored(self) -> int:
        """How many messages there are, those in flight included."""
        return sum(
            counts.entered
            - (
                counts.acked
                + counts.dead_lettered
                + counts.dropped
                + counts.expired
                + counts.purged
            )
            for counts in map(self.broker.counts, self.broker.queues)
        )

    def unconsumed(self) -> list[str]:
        """Queues that messages were sent to and that nobody consumes; dead letter queues, which
        tests look into, are not counted."""
        graves = self.graves()
        return [
            queue
            for queue in self.broker.queues
            if queue not in self.consumers
            and self.broker.rules(queue).pull is None
            and queue not in graves
            and self.broker.pending(queue)
        ]

    def _describe_pending(self) -> list[str]:
        lines = []
        for queue in self.broker.queues:
            waiting = len(self.broker.pending(queue))
            flying = sum(len(batch.messages) for batch in self.broker.in_flight(queue))
            if waiting or flying:
                lines.append(f"queue {queue}: {waiting} waiting or delayed, {flying} in flight")
        return lines
