"""Messages on their way to pullers: leases, answers, and the end of leases that ran out (5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.queues import outcomes
from emulator.queues.model import MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.kernel import Kernel
    from emulator.loop import Timer
    from emulator.queues.broker import Broker
    from emulator.queues.dispatch import Dispatch
    from emulator.queues.model import Answered, Duration, Outgoing, Pulled, Settled
    from emulator.queues.sending import Copies


class Pulling:
    """The way out of the queues of one emulator that pullers take.

    A lease that runs out is noticed when it does, whether anybody pulls or not: its message may be
    a dead letter then.
    """

    def __init__(
        self,
        kernel: Kernel,
        dispatch: Dispatch,
        broker: Callable[[], Broker],
        *,
        admit: Callable[[str, Sequence[Outgoing]], tuple[list[Outgoing], Copies]],
    ) -> None:
        self._kernel = kernel
        self._dispatch = dispatch
        self._broker = broker
        self._admit = admit
        self._timers: dict[str, Timer] = {}

    def pull(self, queue: str, size: int | None, timeout: Duration | None) -> Pulled:
        """Lease the first messages in line; raises what `Broker.lease` does."""
        copies: Copies = []
        pulled = self._broker().lease(
            queue,
            self._kernel.now,
            size=size,
            visibility_timeout=timeout,
            admit=partial(self._bury, copies),
        )
        self._settled(queue, pulled.ran_out, copies)
        if pulled.messages:
            first = pulled.messages[0]
            self._kernel.record(
                "lease",
                f"queue {queue}",
                messages=[f"{one.message.id}#{one.message.attempts}" for one in pulled.messages],
                milliseconds=(first.until - self._kernel.now) // MILLISECOND,
            )
        return pulled

    def acknowledge(
        self, queue: str, acks: Sequence[str], retries: Mapping[str, Duration | None]
    ) -> Answered:
        """Take a puller's answers; raises what `Broker.acknowledge` does."""
        copies: Copies = []
        answered = self._broker().acknowledge(
            queue, self._kernel.now, acks=acks, retries=retries, admit=partial(self._bury, copies)
        )
        self._settled(queue, answered.settled, copies)
        return answered

    def arm(self, queue: str) -> None:
        """Let the timer fall due when the next lease runs out."""
        due = self._broker().lease_ends_at(queue)
        timer = self._timers.get(queue)
        if timer is not None:
            if timer.due == due:
                return
            self.forget(queue)
        if due is not None:
            self._timers[queue] = self._kernel.loop.kernel_at(
                max(due, self._kernel.now),
                partial(self._ran_out, queue),
                owner=f"queue {queue}: the end of a lease",
                passive=True,
            )

    def forget(self, queue: str) -> None:
        """Cancel the timer of a queue."""
        timer = self._timers.pop(queue, None)
        if timer is not None:
            timer.cancel()

    def forget_all(self) -> None:
        """Cancel all timers."""
        for queue in list(self._timers):
            self.forget(queue)

    def _ran_out(self, queue: str) -> None:
        self._timers.pop(queue, None)
        copies: Copies = []
        settled = self._broker().end_leases(
            queue, self._kernel.now, admit=partial(self._bury, copies)
        )
        self._settled(queue, settled, copies)

    def _bury(self, copies: Copies, grave: str, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """The faults of messages that enter a dead letter queue."""
        admitted, made = self._admit(grave, messages)
        copies += made
        return admitted

    def _settled(self, queue: str, settled: Sequence[Settled], copies: Copies) -> None:
        broker = self._broker()
        outcomes.trace(self._kernel, queue, settled)
        self._dispatch.report_dropped(queue, settled, None)
        self.arm(queue)
        self._dispatch.arm(queue)
        rules = broker.rules(queue)
        grave = rules.pull.dead_letter_queue if rules.pull is not None else None
        if grave is None:
            return
        for message, delay in copies:
            broker.duplicate(grave, message, self._kernel.now, delay)
        self._dispatch.arm(grave)
