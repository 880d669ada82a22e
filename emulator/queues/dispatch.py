"""Messages on their way out: timers, deliveries to consumers, and what becomes of them.

Each queue has one timer, whatever waits in it. A delivery is a `ConsumerRun`; when its result is
final, it is settled with the broker. The faults of `batch.<queue>` strike here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.clock import moment
from emulator.errors import Stuck, WorkerLoadError
from emulator.faults.sites import site_name
from emulator.findings import Finding
from emulator.location import describe_error, raised_at
from emulator.logs import Log
from emulator.queues import outcomes
from emulator.queues.model import LOST, Result
from emulator.queues.run import ConsumerRun, DeliveryRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.faults import Fault
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.loop import Timer
    from emulator.queues.broker import Broker
    from emulator.queues.chain import Chain
    from emulator.queues.model import Batch, Duration, Instant, Outgoing, Settled
    from emulator.queues.sending import Copies


def _reversed(positions: Sequence[int]) -> Sequence[int]:
    return positions[::-1]


def _first_half(positions: Sequence[int]) -> Sequence[int]:
    return positions[: (len(positions) + 1) // 2]


# What faults do to the messages about to be delivered.
_ARRANGE = {"shuffle": _reversed, "split": _first_half}
_ENDINGS = frozenset({"crash_before", "fail", "timeout", "lose_ack"})

# What the local runtime logs of a failed delivery (3.11).
_LOCAL_LOG = {
    "retry": ("debug", 'Retrying message "{id}" on queue "{queue}"...'),
    "lost": ("debug", 'Retrying message "{id}" on queue "{queue}"...'),
    "dead_letter": (
        "warn",
        'Moving message "{id}" on queue "{queue}" to dead letter queue "{grave}" after {times}...',
    ),
    "dropped": ("warn", 'Dropped message "{id}" on queue "{queue}" after {times}!'),
}


class Dispatch:
    """The way out of the queues of one emulator."""

    def __init__(
        self,
        kernel: Kernel,
        broker: Broker,
        consumers: Mapping[str, Worker],
        *,
        admit: Callable[[str, Sequence[Outgoing]], tuple[list[Outgoing], Copies]],
        chain: Chain,
    ) -> None:
        self._kernel = kernel
        self._broker = broker
        self._consumers = consumers
        self._admit = admit
        self._chain = chain
        self._timers: dict[str, Timer] = {}
        self._expiries: dict[str, Timer] = {}
        # The batches in flight that a fault lets another one overlap, as (queue, number), each with
        # the fault until another one did.
        self._overlapped: dict[tuple[str, int], Fault | None] = {}
        # What may happen to the batches in flight, and when another one could start beside them.
        self._possible: dict[tuple[str, int], set[str]] = {}
        self._beside: dict[str, Timer] = {}
        self.deliveries: dict[str, list[DeliveryRecord]] = {name: [] for name in broker.queues}

    # -- timers ----------------------------------------------------------------------------------

    def arm(self, queue: str) -> None:
        """Let the queue's one timer fall due when the next batch does."""
        now, concurrency = self._kernel.clock.now, self._concurrency(queue)
        due = self._broker.wake_at(queue, now, concurrency=concurrency)
        self._set(self._timers, queue, due, self._deliver, passive=False)
        if self._possible or self._beside:
            due = None
            if any(name == queue for name, _ in self._possible):
                due = self._broker.wake_at(queue, now, concurrency=concurrency + 1)
            self._set(self._beside, queue, due, self._offer_overlap, passive=True)
        self._set(self._expiries, queue, self._broker.expires_at(queue), self._expire, passive=True)

    def _set(
        self,
        timers: dict[str, Timer],
        queue: str,
        due: Instant | None,
        then: Callable[[str], None],
        *,
        passive: bool,
    ) -> None:
        if due is not None:
            due = max(due, self._kernel.clock.now)
        timer = timers.get(queue)
        if timer is not None:
            if timer.due == due:
                return
            timer.cancel()
            del timers[queue]
        if due is not None:
            timers[queue] = self._kernel.loop.kernel_at(
                due, partial(then, queue), owner=self._owner(queue, timers), passive=passive
            )

    def _owner(self, queue: str, timers: dict[str, Timer]) -> str:
        if timers is self._expiries:
            return f"queue {queue}: expiry"
        beside = " beside those in flight, if a fault lets it" if timers is self._beside else ""
        return f"queue {queue}: the next batch{beside}"

    def _expire(self, queue: str) -> None:
        self._expiries.pop(queue, None)
        self._drop_expired(queue)
        self.arm(queue)

    def _drop_expired(self, queue: str) -> None:
        for message in self._broker.expire(queue, self._kernel.now):
            self._kernel.record("expired", f"queue {queue}", id=message.id)

    def forget(self, queue: str) -> None:
        """Cancel the timers of a queue that is no more."""
        for timers in (self._timers, self._expiries, self._beside):
            timer = timers.pop(queue, None)
            if timer is not None:
                timer.cancel()

    def go_on_with(self, broker: Broker) -> None:
        """Cancel the timers and take another broker; `arm` its queues then."""
        for timer in (*self._timers.values(), *self._expiries.values(), *self._beside.values()):
            timer.cancel()
        self._timers.clear()
        self._beside.clear()
        self._expiries.clear()
        self._overlapped.clear()
        self._possible.clear()
        self._broker = broker

    def recover(self) -> None:
        """Settle as lost what was in flight when the platform itself went down."""
        started = {
            (queue, flight.number): flight.started
            for queue in self._broker.queues
            for flight in self._broker.in_flight(queue)
        }
        for queue, number, settled in self._broker.recover(self._kernel.now):
            self._record(queue, number, started[queue, number], settled, None)
            self.report_dropped(queue, settled, None)

    # -- deliveries ------------------------------------------------------------------------------

    def _deliver(self, queue: str) -> None:
        self._timers.pop(queue, None)
        self._drop_expired(queue)
        overlapped = self._deliver_one(queue)
        while overlapped:
            overlapped = self._deliver_one(queue, at_once=True)
        self.arm(queue)

    def _deliver_one(self, queue: str, *, at_once: bool = False) -> bool:
        """Hand over a batch, if one is ready; whether the next one is to start beside it."""
        faults: list[Fault] = []
        possible: set[str] = set()
        batch = self._broker.next_batch(
            queue,
            self._kernel.now,
            arrange=partial(self._arrange, queue, faults, possible),
            concurrency=self._concurrency(queue),
            at_once=at_once,
        )
        if batch is None:
            return False
        possible.discard("overlap")
        self._possible[queue, batch.number] = possible
        if batch.backlog.count:
            self._offer_overlap(queue)
        ending = next((fault.action for fault in faults if fault.action in _ENDINGS), "")
        self._note_overlap(queue)
        overlap = next((fault for fault in faults if fault.action == "overlap"), None)
        if overlap is not None:
            self._overlapped[queue, batch.number] = overlap
        self._hand_over(batch, ending, struck=bool(faults))
        return overlap is not None

    def _note_overlap(self, queue: str) -> None:
        """Let the faults fire that made it possible for this batch to start beside others."""
        for (name, number), fault in self._overlapped.items():
            if name == queue and fault is not None:
                self._overlapped[name, number] = None
                self._kernel.faults.take_effect(fault)

    def _concurrency(self, queue: str) -> int:
        """How many batches may be in flight: one, unless a fault lets others overlap it."""
        return 1 + sum(name == queue for name, _ in self._overlapped)

    def _arrange(
        self, queue: str, faults: list[Fault], possible: set[str], count: int
    ) -> Sequence[int] | None:
        """Meet the faults of the batch that so many messages are about to become."""
        possible |= _ENDINGS
        possible.update(_ARRANGE if count > 1 else ())
        if self._may_overlap(queue):
            possible.add("overlap")
        faults += self._kernel.faults.meet(
            site_name("batch", queue), retried=True, available=possible
        )
        positions: Sequence[int] | None = None
        for fault in faults:
            if fault.action in _ARRANGE:
                positions = _ARRANGE[fault.action](range(count) if positions is None else positions)
        return positions

    def _may_overlap(self, queue: str) -> bool:
        consumer = self._broker.rules(queue).consumer
        return consumer is None or consumer.max_concurrency != 1

    def _offer_overlap(self, queue: str) -> None:
        """From now on another batch would start beside those in flight, if a fault let it."""
        self._beside.pop(queue, None)
        if self._may_overlap(queue):
            for (name, _), possible in self._possible.items():
                if name == queue:
                    possible.add("overlap")

    def _hand_over(self, batch: Batch, ending: str, *, struck: bool) -> None:
        worker = self._consumers[batch.queue]
        self._kernel.record(
            "batch",
            f"queue {batch.queue} #{batch.number}",
            worker=worker.name,
            messages=[f"{message.id}#{message.attempts}" for message in batch.messages],
        )
        if ending == "crash_before":
            worker.crash()
            self._settle(batch, LOST, None, struck=True)
            return
        try:
            run = ConsumerRun(worker.isolate, batch, fault=ending)
        except WorkerLoadError as error:
            self._log(batch.queue, "error", str(error))
            self._settle(batch, Result("exception"), error, struck=struck)
            return
        run.struck = struck
        run.retried = self._will_repeat(batch)
        try:
            run.link = self._chain.link(batch, self._kernel.now)
        except Stuck as error:
            self._kernel.loop.abort(error)
        run.begin(report=self._reported)

    def _will_repeat(self, batch: Batch) -> bool:
        """Whether the platform delivers a message of the batch again, should it fail."""
        rules = self._broker.rules(batch.queue).consumer
        retries = rules.max_retries if rules is not None else 0
        return any(message.attempts <= retries for message in batch.messages)

    def _reported(self, run: ConsumerRun) -> None:
        self._settle(run.batch, run.result, run.error, struck=run.struck)

    def _settle(
        self, batch: Batch, result: Result | None, error: BaseException | None, *, struck: bool
    ) -> None:
        now, queue = self._kernel.now, batch.queue
        self._overlapped.pop((queue, batch.number), None)
        self._possible.pop((queue, batch.number), None)
        if not self._broker.is_flying(batch):
            return  # its queue was deleted
        copies: list[tuple[str, str, Duration]] = []
        settled = self._broker.settle(batch, result, now, admit=partial(self._bury, copies))
        self._record(queue, batch.number, batch.started, settled, error)
        if not struck:
            self.report_dropped(queue, settled, error)
        for grave, message, delay in copies:
            self._broker.duplicate(grave, message, now, delay)
        self.arm(queue)
        grave_or_none = self._grave(queue)
        if grave_or_none is not None:
            self.arm(grave_or_none)

    def _bury(
        self, copies: list[tuple[str, str, Duration]], grave: str, messages: Sequence[Outgoing]
    ) -> list[Outgoing]:
        """The faults of messages that enter a dead letter queue."""
        admitted, made = self._admit(grave, messages)
        copies += [(grave, message, delay) for message, delay in made]
        return admitted

    def _grave(self, queue: str) -> str | None:
        rules = self._broker.rules(queue)
        consumer = rules.consumer or rules.pull
        return consumer.dead_letter_queue if consumer is not None else None

    # -- what is kept of them --------------------------------------------------------------------

    def _record(
        self,
        queue: str,
        batch: int,
        started: Instant,
        settled: Sequence[Settled],
        error: BaseException | None,
    ) -> None:
        kernel, records = self._kernel, self.deliveries.setdefault(queue, [])
        at, now = moment(started), moment(kernel.now)
        records += [
            DeliveryRecord(
                at, now, m.id, m.attempts, batch, m.outcome, error, m.body, m.content_type
            )
            for m in settled
        ]
        outcomes.trace(kernel, queue, settled)
        if kernel.profile == "miniflare":
            self._log_as_locally(queue, settled, kernel.now - started)

    def _log_as_locally(self, queue: str, settled: Sequence[Settled], took: Duration) -> None:
        """Write the lines of the local runtime about a batch (3.11)."""
        for item in settled:
            if item.outcome in _LOCAL_LOG and (item.due is not None or item.outcome != "lost"):
                level, text = _LOCAL_LOG[item.outcome]
                self._log(queue, level, self._describe(text, queue, item))
        acked = sum(item.outcome == "ack" for item in settled)
        self._log(queue, "info", f"QUEUE {queue} {acked}/{len(settled)} ({took // 1000}ms)")

    def report_dropped(
        self, queue: str, settled: Sequence[Settled], error: BaseException | None
    ) -> None:
        """Make findings of messages that had their last delivery and no dead letter queue."""
        worker = self._consumers.get(queue)
        where = raised_at(error) if error is not None else None
        place = where.relative_to(worker.folder) if where and worker else None
        last = f" The last one: {describe_error(error)}" if error is not None else ""
        for item in settled:
            if item.outcome == "dropped":
                text = self._describe(_LOCAL_LOG["dropped"][1], queue, item) + last
                name, at = self._consumer_name(queue), moment(self._kernel.now)
                self._kernel.findings.add(
                    Finding("message_dropped", text, at, place, name, f"queue {queue}")
                )

    def _consumer_name(self, queue: str) -> str | None:
        worker = self._consumers.get(queue)
        return worker.name if worker is not None else None

    def _describe(self, text: str, queue: str, item: Settled) -> str:
        times = f"{item.attempts} failed attempt{'s' if item.attempts > 1 else ''}"
        return text.format(id=item.id, queue=queue, grave=self._grave(queue), times=times)

    def _log(self, queue: str, level: str, text: str) -> None:
        kernel, name = self._kernel, self._consumer_name(queue)
        kernel.logs.append(Log(moment(kernel.now), name or "", level, text))
        kernel.record("log", f"queue {queue}", level=level, text=text)
