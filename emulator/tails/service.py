"""Who tails whom, and what is delivered (docs/tail.md).

1. An event of a Worker with `tail_consumers` is recorded from its start. When it is over, its
   background work included, each consumer gets it, in a run of its own.
2. An event that a power cut took is lost with its record.
3. The run of a tail Worker is an event that others may tail, and it itself once: a delivery that
   would go round in a circle is not made (workerd, `server.c++`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.tails.items import trace_item
from emulator.tails.run import TailRun
from emulator.version_metadata import version_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.event_record import EventRecord
    from emulator.invocation import Invocation
    from emulator.isolate import Worker
    from emulator.kernel import Kernel


class Tails:
    """The tail Workers of one emulator; what they are told does not last."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._workers: dict[str, Worker] = {}

    def add(self, worker: Worker) -> None:
        """A Worker, which may tail others and be tailed."""
        self._workers[worker.name] = worker
        if worker.config.tails:
            worker.tailed = self._over

    def problems(self, worker: Worker) -> Iterator[tuple[str, str]]:
        """Yield a finding's code and text for each consumer that gets nothing; loads their code."""
        for name in worker.config.tails:
            consumer = self._workers.get(name)
            if consumer is None:
                text = f"tail_consumers names the Worker {name}, whose config was not given"
                yield "missing_binding", f"{text}: nobody gets the events"
            elif not (consumer.script.handles("tail") or consumer.script.handles("trace")):
                text = f"the Worker {name} tails {worker.name} but has no tail() handler"
                known = ", ".join(consumer.script.handlers) or "none"
                yield "missing_handler", f"{text}; its handlers: {known}"

    def _over(self, invocation: Invocation, event_record: EventRecord) -> None:
        """An event is over: tell its Worker's consumers."""
        chain = invocation.chain if isinstance(invocation, TailRun) else ()
        for name in invocation.isolate.worker.config.tails:
            consumer = self._workers.get(name)
            if consumer is not None and name not in chain:
                ended = self._kernel.now
                deliver = partial(self._deliver, consumer, (*chain, name), event_record, ended)
                self._kernel.loop.kernel_soon(deliver, invocation.worker, invocation.subject)

    def _deliver(
        self,
        consumer: Worker,
        chain: tuple[str, ...],
        event_record: EventRecord,
        ended: int,
        script: str,
        of: str,
    ) -> None:
        kernel = self._kernel
        faults = kernel.faults.meet(site_name("tail", consumer.name))
        action = faults[0].action if faults else ""
        try:
            run = TailRun(consumer.isolate, chain)
        except WorkerLoadError:
            return  # told by whoever loads it
        run.struck = bool(faults)
        if action == "drop":
            kernel.record("lost", run.subject)
            return
        is_real = kernel.profile == "production"
        item = trace_item(
            event_record,
            ended if is_real else event_record.at,
            script=script if is_real else None,
            version=version_id(script, kernel) if is_real else None,
        )
        kernel.record("tail", run.subject, of=of, outcome=event_record.outcome)
        if action == "crash_before":
            consumer.crash()
            return
        run.begin(item, crash_after=action == "crash_after")
