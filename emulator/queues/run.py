"""One batch in the hands of its consumer, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.entrypoints import awaited
from emulator.event_record import Onset, Place
from emulator.foreign import is_foreign
from emulator.invocation import CUT_BY_TIME, Invocation
from emulator.location import caller
from emulator.queues.bindings import QueueController
from emulator.queues.model import LOST, SECOND
from emulator.queues.plain import plain_body
from emulator.queues.record import BatchRecord
from emulator.runtime.proxies import wrap

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from emulator.background import BackgroundTask
    from emulator.isolate import Isolate
    from emulator.loop import Timer
    from emulator.queues.model import Batch, Result

_RESULT_AT_RETURN = "queue_consumer_no_wait_for_wait_until"
# How long a consumer may take for a batch (3.8).
_WALL_TIME = 15 * 60 * SECOND
_NO_HANDLER = (
    "Received a QueueEvent but we lack a handler for QueueEvents. "
    "Did you remember to export a queue() function?"
)


@dataclass(slots=True, unsafe_hash=True, repr=False)
class DeliveryRecord:
    """One message in one delivery, appended when its batch is settled.

    `at` and `settled` are virtual times; `body` is as sent; `outcome` is `ack`, `retry`,
    `dead_letter`, `dropped` or `lost` (a result that never arrived); `error` is the exception that
    ended the handler, if one did.
    """

    # Not frozen, and the body decoded when it is asked for: there is one per message and delivery.
    at: datetime
    settled: datetime
    id: str
    attempt: int
    batch: int
    outcome: str
    error: BaseException | None
    _sent: bytes
    _content_type: str

    @property
    def body(self) -> Any:
        """What was sent, as a plain Python value, fresh each time."""
        return plain_body(self._sent, self._content_type)

    def __repr__(self) -> str:
        names = ("at", "settled", "id", "body", "attempt", "batch", "outcome", "error")
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"DeliveryRecord({values})"


class ConsumerRun(Invocation):
    """One call of a consumer's `queue` handler.

    Its outcome is `ok` only if the handler and all its background work succeed (2.11); with a
    compatibility flag the handler alone decides, and the result is final when it returns. After
    `_WALL_TIME` it is cut off, without a line of it running, and its result is lost.

    `fault` is the action of a fault that decides how it ends: `fail`, `lose_ack` or `timeout`.
    """

    def __init__(
        self, isolate: Isolate, batch: Batch, *, fault: str = "", subject: str = "", about: str = ""
    ) -> None:
        event = f"queue {batch.queue} #{batch.number}"
        super().__init__(isolate, event, subject=subject, about=about)
        self.batch = batch
        self.entrypoint: str | None = None
        self.script = isolate.script  # what it sees of the module: whose `queue` is called
        self.limit = None  # the wall time of the whole run counts instead
        self.outcome = "ok"
        self.error: BaseException | None = None
        self.result: Result | None = LOST
        self.settled = False
        self.link = 0
        self._fault = fault
        self._record = BatchRecord(self._warn, self.forbid_from_elsewhere)
        self._report: Callable[[ConsumerRun], None] = _nothing
        self._over: Callable[[ConsumerRun], None] = _nothing
        self._wall: Timer | None = None

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed."""
        super().cut_links()
        self._report = self._over = _nothing
        self._wall = None

    def link_at(self, now: int) -> int:
        """Which of a chain of deliveries at one instant it is."""
        return self.link if self.batch.started == now else 0

    def begin(
        self,
        *,
        report: Callable[[ConsumerRun], None] | None = None,
        over: Callable[[ConsumerRun], None] | None = None,
    ) -> None:
        """Call the handler.

        `report` is called once, when `result` is final, and `over` when nothing of the run goes on.
        """
        loop = self.kernel.loop
        self._report, self._over = report or _nothing, over or _nothing
        self._wall = loop.kernel_at(
            self.kernel.now + _WALL_TIME, self._expire, owner="a consumer's wall time"
        )
        self.on_end, self.on_killed = self._ended, self._cut_off
        facts = {"queue": self.batch.queue, "batchSize": len(self.batch.messages)}
        self.watch(Onset(facts), Place(self.entrypoint))
        self.start(self._run())
        if self._fault == "timeout":
            # The handler goes as far as its first await, in which it hangs.
            loop.kernel_soon(self._hang)

    def _meet_fault(self) -> None:
        """Work given to `waitUntil` belongs to the batch: it is no site of its own."""

    def on_background_error(self, record: BackgroundTask, error: BaseException) -> None:
        if self._result_at_return:
            super().on_background_error(record, error)
        else:
            self._fail(error)

    @property
    def recorded(self) -> Result:
        """What its calls on the batch came to so far, whoever gets to know."""
        return self._record.result(self.outcome)

    def repeats(self) -> bool:
        """Whether the platform delivers again what the code that runs now fails to do.

        Not once the result is final: then work is left in the background, with a flag.
        """
        return self.retried and not self.settled

    @property
    def _result_at_return(self) -> bool:
        return _RESULT_AT_RETURN in self.flags

    async def _run(self) -> None:
        await self._call_handler()
        if self._fault == "timeout":
            await self.kernel.loop.create_future()  # it had no await of its own
        if self._result_at_return:
            self._finalise(self._record.result(self.outcome))

    async def _call_handler(self) -> None:
        try:
            if not self.script.handles("queue"):
                self.log("warn", _NO_HANDLER)
            handler = self.isolate.handler("queue", self, self.script)
            batch = QueueController(self.batch, self._record, self.kernel.profile)
            await awaited(handler(wrap(batch), None, None))
        except BaseException as error:
            self._fail(error)
            if is_foreign(error):
                raise
            self.threw(error)

    def _fail(self, error: BaseException) -> None:
        """End with outcome `exception`, unless it failed already."""
        if self.outcome == "ok":
            self.outcome, self.error = "exception", error
            self.fails()

    # -- ends ------------------------------------------------------------------------------------

    def _ended(self) -> None:
        self._finalise(self._record.result(self.outcome))
        self._leave_for_good()

    def _hang(self) -> None:
        if not self.gone:
            self.suspend()

    def _expire(self) -> None:
        self.log("error", f"{self.event} exceeded its wall time of 15 minutes")
        self.outcome = CUT_BY_TIME
        self.fails(CUT_BY_TIME)
        self.kill()

    def _cut_off(self) -> None:
        if self.outcome == "ok":
            self.outcome = "canceled"
        self._finalise(LOST)
        self._leave_for_good()

    def _finalise(self, result: Result | None) -> None:
        if self.settled:
            return
        self.settled = True
        if result is not LOST and self._fault == "fail":
            result = self._record.result("exception")
        self.result = LOST if self._fault == "lose_ack" else result
        self._report(self)

    def _leave_for_good(self) -> None:
        if self._wall is not None:
            self._wall.cancel()
        self._over(self)

    def _warn(self, text: str) -> None:
        self.log("warn", text)
        self.find("ignored_ack", text, caller())


def _nothing(run: ConsumerRun) -> None:
    """The default of both hooks."""
