"""One batch in the hands of its consumer, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.location import format_error
from emulator.queues.bindings import BatchRecord, MessageBatch
from emulator.runtime.proxies import wrap

if TYPE_CHECKING:
    from datetime import datetime

    from emulator.background import BackgroundTask
    from emulator.isolate import Isolate
    from emulator.queues.model import Batch

_RESULT_AT_RETURN = "queue_consumer_no_wait_for_wait_until"


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One message in one delivery, appended when its batch is settled.

    `at` and `settled` are virtual times; `body` is as sent; `outcome` is `ack`, `retry`,
    `dead_letter`, `dropped` or `lost` (a result that never arrived); `error` is the exception that
    ended the handler, if one did.
    """

    at: datetime
    settled: datetime
    id: str
    body: Any
    attempt: int
    batch: int
    outcome: str
    error: BaseException | None


class ConsumerRun(Invocation):
    """One call of a consumer's `queue` handler.

    Its outcome is `ok` only if the handler and all its background work succeed (queues.md 2.11);
    with a compatibility flag the handler alone decides.
    """

    def __init__(self, isolate: Isolate, batch: Batch) -> None:
        name = f"queue {batch.queue} #{batch.number}"
        super().__init__(isolate, name)
        self.batch = batch
        self.limit = None  # the wall time of the whole run counts instead
        self.record = BatchRecord(self._warn)
        self.outcome = "ok"
        self.error: BaseException | None = None
        self.settled = False

    def on_background_error(self, record: BackgroundTask, error: BaseException) -> None:
        if not self.result_at_return:
            self.fail(error)

    @property
    def result_at_return(self) -> bool:
        """Whether the result is final when the handler returns (2.11)."""
        return _RESULT_AT_RETURN in self.flags

    async def consume(self) -> None:
        """Call the handler; what it raises is the run's failure."""
        try:
            handler = self.isolate.handler("queue", self)
            result = handler(wrap(MessageBatch(self.batch, self.record)), None, None)
            if hasattr(result, "__await__"):
                await result
        except BaseException as error:
            if is_foreign(error):
                raise
            self.fail(error)
            self.log("error", format_error(error, self.isolate.worker.folder))

    def fail(self, error: BaseException) -> None:
        """End with outcome `exception`, unless it failed already."""
        if self.outcome == "ok":
            self.outcome, self.error = "exception", error

    def _warn(self, text: str) -> None:
        self.log("warn", text)
        self.find("ignored_ack", text, None)
