"""Messages on their way out: timers, deliveries to consumers, and what becomes of them.

Each queue has one timer, whatever waits in it. A delivery is a `ConsumerRun`; when that has ended,
its result is settled with the broker. The faults of `batch.<queue>` strike here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.clock import moment
from emulator.faults.sites import site_name
from emulator.findings import Finding
from emulator.queues.model import LOST, SECOND
from emulator.queues.run import ConsumerRun, DeliveryRecord
from emulator.values import decode_body

if TYPE_CHECKING:
    from emulator.faults import Fault
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.loop import Timer
    from emulator.queues.broker import Broker
    from emulator.queues.model import Batch, Outgoing, Result, Settled
    from emulator.queues.sending import Copies

# How long a consumer may take for a batch (3.8).
_WALL_TIME = 15 * 60 * SECOND


def _reversed(messages: Sequence[Any]) -> list[Any]:
    return list(reversed(messages))


def _first_half(messages: Sequence[Any]) -> list[Any]:
    return list(messages[: (len(messages) + 1) // 2])


_ARRANGE = {"shuffle": _reversed, "split": _first_half}
_BATCH_ACTIONS = frozenset({"crash_before", "lose_ack", "fail", "timeout", *_ARRANGE})


class Dispatch:
    """The way out of the queues of one emulator."""

    def __init__(
        self,
        kernel: Kernel,
        broker: Broker,
        consumers: Mapping[str, Worker],
        *,
        admit: Callable[[str, Sequence[Outgoing]], tuple[list[Outgoing], Copies]],
    ) -> None:
        self._kernel = kernel
        self._broker = broker
        self._consumers = consumers
        self._admit = admit
        self._timers: dict[str, Timer] = {}
        self._expiries: dict[str, Timer] = {}
        self.deliveries: dict[str, list[DeliveryRecord]] = {name: [] for name in broker.queues}

    # -- timers ------------------------------------------------------------------------------------

    def arm_all(self) -> None:
        """Set the timers of all queues, after a start or a restart."""
        for queue in self._broker.queues:
            self.arm(queue)

    def arm(self, queue: str) -> None:
        """Let the queue's one timer fall due when the next batch does."""
        due = self._broker.wake_at(queue, self._kernel.now)
        self._set(self._timers, queue, due, self._deliver, passive=False)
        self._set(self._expiries, queue, self._broker.expires_at(queue), self._expire, passive=True)

    def _set(
        self, timers: dict[str, Timer], queue: str, due: int | None, then: Any, *, passive: bool
    ) -> None:
        timer = timers.get(queue)
        if timer is not None:
            if timer.due == due and not timer.cancelled():
                return
            timer.cancel()
            del timers[queue]
        if due is not None:
            owner = f"queue {queue}: {'expiry' if passive else 'the next batch'}"
            at = max(due, self._kernel.now)
            timers[queue] = self._kernel.loop.kernel_at(
                at, partial(then, queue), owner=owner, passive=passive
            )

    def _expire(self, queue: str) -> None:
        self._expiries.pop(queue, None)
        for message in self._broker.expire(queue, self._kernel.now):
            self._kernel.record("expired", f"queue {queue}", id=message.id)
        self.arm(queue)

    def stop(self, broker: Broker) -> None:
        """Cancel the timers and go on with another broker."""
        for timer in (*self._timers.values(), *self._expiries.values()):
            timer.cancel()
        self._timers.clear()
        self._expiries.clear()
        self._broker = broker

    # -- deliveries --------------------------------------------------------------------------------

    def _deliver(self, queue: str) -> None:
        self._timers.pop(queue, None)
        due = self._broker.wake_at(queue, self._kernel.now)
        if due is None or due > self._kernel.now:
            self.arm(queue)
            return
        worker = self._consumers[queue]
        faults = self._meet_batch(queue)
        arrange = _ARRANGE.get(next((f.action for f in faults if f.action in _ARRANGE), ""))
        batch = self._broker.next_batch(queue, self._kernel.now, arrange=arrange)
        if batch is None:
            self.arm(queue)
            return
        ending = next((f.action for f in faults if f.action not in _ARRANGE), "")
        self._hand_over(worker, batch, ending, struck=bool(faults))
        self.arm(queue)

    def _meet_batch(self, queue: str) -> tuple[Fault, ...]:
        rules = self._broker.rules(queue).consumer
        size = min(
            rules.max_batch_size if rules else 1,
            self._broker.backlog(queue, self._kernel.now).count,
        )
        available = _BATCH_ACTIONS if size > 1 else _BATCH_ACTIONS - _ARRANGE.keys()
        return self._kernel.faults.meet(
            site_name("batch", queue), retried=True, available=available
        )

    def _hand_over(self, worker: Worker, batch: Batch, action: str, *, struck: bool) -> None:
        kernel = self._kernel
        kernel.record(
            "batch",
            f"queue {batch.queue} #{batch.number}",
            worker=worker.name,
            messages=[f"{message.id}#{message.attempts}" for message in batch.messages],
        )
        if action == "crash_before":
            worker.crash()
            self._settle(batch, LOST, None)
            return
        run = ConsumerRun(worker.isolate, batch)
        run.struck = struck
        run.retried = any(
            message.attempts <= self._retries(batch.queue) for message in batch.messages
        )
        limit = kernel.loop.kernel_at(
            kernel.now + _WALL_TIME, partial(self._out_of_time, run), owner="a consumer's wall time"
        )
        run.on_end = partial(self._ended, run, action, limit)
        run.on_killed = partial(self._killed, run, limit)
        run.start(self._consume(run))
        if action == "timeout":
            kernel.loop.kernel_soon(self._hang, run)

    async def _consume(self, run: ConsumerRun) -> None:
        await run.consume()
        if run.result_at_return:
            self._report(run, run.record.result(run.outcome))

    def _ended(self, run: ConsumerRun, action: str, limit: Timer) -> None:
        limit.cancel()
        if action in ("lose_ack", "fail"):
            outcome = LOST if action == "lose_ack" else run.record.result("exception")
            self._report(run, outcome)
        else:
            self._report(run, run.record.result(run.outcome))

    def _killed(self, run: ConsumerRun, limit: Timer) -> None:
        limit.cancel()
        self._report(run, LOST)

    def _hang(self, run: ConsumerRun) -> None:
        """The fault `timeout`: the handler goes no further than its first await."""
        if not run.ended:
            run.suspend()

    def _out_of_time(self, run: ConsumerRun) -> None:
        """Past its wall time a run is cut off, without a line of it running (3.8)."""
        run.log("error", f"{run.event} exceeded its wall time of 15 minutes")
        run.kill()

    def _report(self, run: ConsumerRun, result: Result | None) -> None:
        if not run.settled:
            run.settled = True
            self._settle(run.batch, result, run.error)

    def _settle(self, batch: Batch, result: Result | None, error: BaseException | None) -> None:
        kernel, queue = self._kernel, batch.queue
        copies: list[tuple[str, str, int]] = []
        settled = self._broker.settle(batch, result, kernel.now, admit=partial(self._bury, copies))
        for item in settled:
            self._record(batch, item, error)
        for grave, message, delay in copies:
            self._broker.duplicate(grave, message, kernel.now, delay)
        self.arm(queue)
        rules = self._broker.rules(queue).consumer
        if rules is not None and rules.dead_letter_queue is not None:
            self.arm(rules.dead_letter_queue)

    def _bury(
        self, copies: list[tuple[str, str, int]], grave: str, messages: Sequence[Outgoing]
    ) -> list[Outgoing]:
        """The faults of messages that enter a dead letter queue."""
        admitted, made = self._admit(grave, messages)
        copies += [(grave, message, delay) for message, delay in made]
        return admitted

    def _record(self, batch: Batch, item: Settled, error: BaseException | None) -> None:
        kernel, queue = self._kernel, batch.queue
        self.deliveries[queue].append(
            DeliveryRecord(
                at=moment(batch.started),
                settled=moment(kernel.now),
                id=item.id,
                body=decode_body(item.body, item.content_type),
                attempt=item.attempts,
                batch=batch.number,
                outcome=item.outcome,
                error=error,
            )
        )
        kernel.record(item.outcome, f"queue {queue}", id=item.id, attempt=item.attempts)
        if item.outcome == "dropped":
            text = (
                f'Dropped message "{item.id}" on queue "{queue}" after {item.attempts} failed '
                f"attempt{'s' if item.attempts > 1 else ''}!"
            )
            self._find("message_dropped", text, queue)

    def _retries(self, queue: str) -> int:
        rules = self._broker.rules(queue).consumer
        return rules.max_retries if rules is not None else 0

    def _find(self, code: str, message: str, queue: str) -> None:
        kernel = self._kernel
        worker = self._consumers[queue].name if queue in self._consumers else ""
        kernel.findings.add(
            Finding(code, message, moment(kernel.now), None, worker, f"queue {queue}")
        )
