"""`queue` and `scheduled` of a service binding: the handlers of another Worker, called by hand.

A call is an event of the Worker that is called, as one of its methods is: a consumer's run or a
scheduled one, that nobody repeats. What the handler does is its outcome, not an error; the caller
sees one only where the called Worker lost its power.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from emulator.location import describe_error
from emulator.queues.model import LOST, Result
from emulator.queues.reply import reply
from emulator.queues.run import ConsumerRun
from emulator.rpc.errors import disconnected
from emulator.scheduled import ScheduledRun
from emulator.services.entrypoint import entrypoint_class
from emulator.values import JsException, from_v8

if TYPE_CHECKING:
    from emulator.bindings.calls import Later
    from emulator.entrypoints import Script
    from emulator.invocation import Invocation
    from emulator.isolate import Isolate
    from emulator.queues.model import Batch
    from emulator.services.arguments import Trigger


class Call(Protocol):
    """A call that has arrived: its event, and how that begins."""

    @property
    def run(self) -> Invocation:
        """The event."""

    def begin(self, answer: Later) -> None:
        """Let the event run; `answer` is the caller's."""


class ScheduledCall:
    """A call of `scheduled`."""

    def __init__(self, isolate: Isolate, entrypoint: str | None, trigger: Trigger) -> None:
        about = about_call(isolate, entrypoint, "scheduled")
        self.run = ScheduledRun(isolate, trigger.cron, about=about)
        self.run.script, self.run.entrypoint = script_of(isolate, entrypoint), entrypoint
        self._at = self.run.kernel.now if trigger.at is None else trigger.at

    def begin(self, answer: Later) -> None:
        """Run the handler and its background work."""

        def over(run: ScheduledRun) -> None:
            if run.outcome == "canceled":
                answer.settle(None, disconnected())
                return
            _record(run, run.error)
            answer.settle({"outcome": run.outcome, "noRetry": run.no_retry})

        self.run.begin(self._at, over=over)


class QueueCall:
    """A call of `queue`."""

    def __init__(self, isolate: Isolate, entrypoint: str | None, batch: Batch) -> None:
        about = about_call(isolate, entrypoint, "queue")
        subject = isolate.kernel.numbered(about)
        self.run = ConsumerRun(isolate, batch, subject=subject, about=about)
        self.run.script, self.run.entrypoint = script_of(isolate, entrypoint), entrypoint

    def begin(self, answer: Later) -> None:
        """Run the handler; its compatibility flags say whether to wait for background work."""
        error = _unreadable(self.run.batch)
        if error is not None:
            self.run.log("error", str(error))
            _record(self.run, error)
            told = reply(Result("exception"))
            self.run.kernel.loop.kernel_soon(answer.settle, told)  # nobody asks yet
            return

        def report(run: ConsumerRun) -> None:
            if run.result is LOST and run.outcome == "canceled":
                answer.settle(None, disconnected())
                return
            _record(run, run.error)
            answer.settle(reply(run.recorded))

        self.run.begin(report=report)


def about_call(isolate: Isolate, entrypoint: str | None, method: str) -> str:
    """What findings and the trace call it."""
    return f"service {isolate.worker.name}{'' if entrypoint is None else f'.{entrypoint}'} {method}"


def script_of(isolate: Isolate, entrypoint: str | None) -> Script:
    """What the event sees of the module; raises `WorkerLoadError` for code that lacks the class."""
    script = isolate.script
    return script if entrypoint is None else script.of(entrypoint_class(isolate, entrypoint, ""))


def _unreadable(batch: Batch) -> JsException | None:
    """What is wrong with a serialized body that no structured clone has made."""
    try:
        for message in batch.messages:
            from_v8(message.body)
    except (ValueError, IndexError):
        return JsException("DataCloneError", "Unable to deserialize cloned data.")
    return None


def _record(run: Invocation, error: BaseException | None) -> None:
    if error is None:
        run.kernel.record("service_done", run.subject)
    else:
        last = describe_error(error).strip().rpartition("\n")[2]
        run.kernel.record("service_error", run.subject, error=last)
