"""What happens around a step: faults, mocks and gates before its body, its result after it.

The faults of `step`, `sleep` and `wait` strike here. Where several things could keep a body from
running, the order is: fault, mock (an error before a time-out before a result), gate, body.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.faults.sites import site_name
from emulator.runtime.web.streams import ReadableStream
from emulator.values import ArrayBuffer, JsException, TypedArray, to_v8
from emulator.workflows.execution import time_out_of
from emulator.workflows.mocks import NOTHING, Mocks, StepMock, marked
from emulator.workflows.model import ErrorInfo
from emulator.workflows.retries import will_retry
from emulator.workflows.shown import STREAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.faults import Fault
    from emulator.workflows.gates import Gate
    from emulator.workflows.model import Attempt
    from emulator.workflows.run import Call, WorkflowRun
    from emulator.workflows.service import Workflows

# How the texts begin that RPC can carry and storage cannot: functions, and the platform's objects.
_FATAL = ("function", "Could not serialize object of type")
_LOCKED = (
    "Step returned a ReadableStream that is already locked or otherwise unreadable. Return a "
    "fresh, unlocked ReadableStream from step.do()."
)
_CHUNK = (
    "Step returned a ReadableStream with unsupported chunk type. Only ArrayBuffer and TypedArray "
    "chunks are supported."
)
_MOST_OF_A_CHUNK = 16 * 1024 * 1024
_LARGE_CHUNK = (
    "Step returned a ReadableStream chunk larger than the maximum allowed size of "
    f"{_MOST_OF_A_CHUNK} bytes. Return smaller chunks from step.do()."
)
_FAILED = ErrorInfo("Error", "emulator: a planned fault failed this attempt")


class Attempts:
    """Starts attempts, and hands what became of them to the engine."""

    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows
        self._kernel = workflows.kernel
        self.mocks: dict[tuple[str, str | None], Mocks] = {}
        # What instances got of their Workflow's mocks when they were created.
        self._inherited: dict[tuple[str, str], Mocks] = {}

    # -- an attempt ------------------------------------------------------------------------------

    def start(self, run: WorkflowRun, call: Call, attempt: Attempt) -> None:
        """Start an attempt that the engine has counted already."""
        fault = self._meet(run, "step", attempt.name, retried=self._is_repeated(run, attempt))
        action = "" if fault is None else fault.action
        if action == "crash_before":
            run.isolate.worker.crash()
        elif action == "fail":
            self._failed(run, attempt, _FAILED)
        else:
            self._start_or_mock(run, call, attempt, fault)

    def _start_or_mock(
        self, run: WorkflowRun, call: Call, attempt: Attempt, fault: Fault | None
    ) -> None:
        mock = self._mock_of(run, attempt)
        failure = None if mock is None else mock.failure(attempt.number)
        if failure is not None:
            error = failure.error if failure.error is not None else time_out_of(0)
            self._ended_badly(run, attempt, error, fault)
            return
        gate = self._gate_of(run, attempt)
        if mock is not None and mock.result is not NOTHING:
            result = mock.result
            self._behind(run, gate, lambda: self._ended_well(run, attempt, result, fault))
            return

        def ended(value: Any, failed: BaseException | None) -> None:
            if failed is None:
                self._returned(run, attempt, value, fault)
            else:
                self._ended_badly(run, attempt, run.told(failed), fault)

        repeated = self._is_repeated(run, attempt)
        self._behind(
            run,
            gate,
            lambda: None if run.gone else run.run_body(call, attempt, ended, repeated=repeated),
        )

    def _behind(self, run: WorkflowRun, gate: Gate | None, then: Callable[[], Any]) -> None:
        if gate is None:
            then()
        else:
            gate.arrive(run, then)

    def _returned(
        self, run: WorkflowRun, attempt: Attempt, value: Any, fault: Fault | None
    ) -> None:
        if self._is_ignored(run, fault):
            return
        if isinstance(value, ReadableStream):
            self._read(run, attempt, value, fault)
            return
        try:
            data = to_v8(value)
        except JsException as error:
            self._unstorable(run, attempt, error)
            return
        except TypeError as error:  # a promise, or what else is no value at all
            kind = "Promise" if "Future" in str(error) else "Object"
            text = f"#<{kind}> could not be cloned."
            self._failed(run, attempt, ErrorInfo("DataCloneError", text))
            return
        self._succeeded(run, attempt, data, fault)

    def _unstorable(
        self, run: WorkflowRun, attempt: Attempt, error: JsException, reason: str | None = None
    ) -> None:
        """A function, or a stub, kills the instance; what else has no clone fails the attempt (O2).

        `reason` is what is wrong with a stream, which kills it too (O5).
        """
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        run.log("error", f"what the step {attempt.name!r} returned: {error}{notes}")
        if reason is None and not error.message.startswith(_FATAL):
            self._failed(run, attempt, ErrorInfo(error.name, error.message))
            return
        engine, now = self._workflows.engine, self._kernel.now
        engine.unserialisable(run.execution, attempt.key, attempt.number, now, reason=reason)
        self._workflows.attend()

    def _read(
        self, run: WorkflowRun, attempt: Attempt, stream: ReadableStream, fault: Fault | None
    ) -> None:
        """Store what a stream holds; each reader of the result gets a fresh one (O5)."""
        if stream.locked:
            self._unstorable(run, attempt, JsException("TypeError", _LOCKED), _LOCKED)
            return

        content = bytearray(STREAM)

        async def read() -> None:
            async for chunk in stream:
                if not isinstance(chunk, (bytes, TypedArray, ArrayBuffer)):
                    raise JsException("TypeError", _CHUNK)
                if len(data := bytes(chunk)) > _MOST_OF_A_CHUNK:
                    raise JsException("TypeError", _LARGE_CHUNK)
                content.extend(data)

        def ended(_: Any, failed: BaseException | None) -> None:
            if failed is None:
                self._succeeded(run, attempt, bytes(content), fault)
            elif isinstance(failed, JsException) and failed.message in (_CHUNK, _LARGE_CHUNK):
                self._unstorable(run, attempt, failed, failed.message)
            else:
                self._failed(run, attempt, run.told(failed))

        run.spawn(read, (), ended, f"the result of {attempt.name}")

    def _succeeded(
        self, run: WorkflowRun, attempt: Attempt, data: bytes, fault: Fault | None
    ) -> None:
        if run.gone:
            return
        engine = self._workflows.engine
        now = self._kernel.now
        # What a stream held has no limit of its own (workflows.md 15).
        limited = not data.startswith(STREAM)
        key, number = attempt.key, attempt.number
        engine.attempt_succeeded(run.execution, key, number, data, now, limited=limited)
        if _is(fault, "crash_saved"):
            self._crash(run, fault)
        elif _is(fault, "evict"):
            self._evict(run, fault)
        else:
            run.proceed(attempt.key)
        self._workflows.attend()

    def _is_ignored(self, run: WorkflowRun, fault: Fault | None) -> bool:
        """Whether nobody hears how the body, or its mock, ended."""
        if _is(fault, "crash_after"):
            self._crash(run, fault)
            return True
        return _is(fault, "timeout")  # the engine's clock ends the attempt

    def _ended_well(self, run: WorkflowRun, attempt: Attempt, data: Any, fault: Any) -> None:
        """A mock gave a result."""
        if not self._is_ignored(run, fault):
            self._succeeded(run, attempt, data, fault)

    def _ended_badly(
        self, run: WorkflowRun, attempt: Attempt, error: ErrorInfo, fault: Fault | None
    ) -> None:
        """The body, or its mock, raised."""
        if self._is_ignored(run, fault):
            return
        self._failed(run, attempt, error)
        if run.gone:
            return
        if _is(fault, "crash_saved"):
            self._crash(run, fault)
        elif _is(fault, "evict"):
            self._evict(run, fault)

    def _crash(self, run: WorkflowRun, fault: Fault | None) -> None:
        assert fault is not None
        self._kernel.faults.take_effect(fault)
        run.isolate.worker.crash()

    def _evict(self, run: WorkflowRun, fault: Fault | None) -> None:
        assert fault is not None
        self._kernel.faults.take_effect(fault)
        self._workflows.evict_run(run, goes_on=True)

    def _failed(self, run: WorkflowRun, attempt: Attempt, error: ErrorInfo) -> None:
        engine, now = self._workflows.engine, self._kernel.now
        engine.attempt_failed(run.execution, attempt.key, attempt.number, error, now)
        self._kernel.loop.kernel_soon(self._go_on, run, attempt.key)

    def _go_on(self, run: WorkflowRun, key: str) -> None:
        self._workflows.attend()
        if not run.gone and key not in run.execution.failing:
            run.proceed(key)
        self._workflows.attend()

    def _is_repeated(self, run: WorkflowRun, attempt: Attempt) -> bool:
        step = run.execution.instance.steps[attempt.key]
        return will_retry(attempt.config, step.charged)

    # -- sleeps and waits ------------------------------------------------------------------------

    def parked(self, run: WorkflowRun, key: str, *, fresh: bool) -> None:
        """A step waits for its time or an event: for the first time, if `fresh`."""
        step = run.execution.instance.steps.get(key)
        if step is None:
            return
        engine, now = self._workflows.engine, self._kernel.now
        if step.kind == "do":
            if step.state == "waiting" and self._skips(run, step.name, "no_delays"):
                engine.cut_short(run.execution, key, now)
            return
        actions: list[str] = []
        if fresh:
            kind = "sleep" if step.kind == "sleep" else "wait"
            actions = [fault.action for fault in self._struck_by(run, kind, step.name)]
        over = "timeout" in actions or self._is_over(run, step.kind, step.name)
        if over:
            engine.cut_short(run.execution, key, now)
        if "evict" not in actions:
            return
        evict = partial(self._workflows.evict_run, run, goes_on=over)
        if run.execution.repeats and not over:
            run.at_end_of_instant(evict)
        else:
            self._kernel.loop.kernel_soon(evict)

    def _is_over(self, run: WorkflowRun, kind: str, name: str) -> bool:
        what = "no_sleeps" if kind == "sleep" else "timed_out"
        return self._skips(run, name, what)

    def _skips(self, run: WorkflowRun, name: str, what: str) -> bool:
        return any(marked(getattr(mocks, what), name) for mocks in self._mocks_of(run))

    def leave(self, run: WorkflowRun) -> None:
        """A run is gone: its steps stand behind no gate any more."""
        for mocks in self._mocks_of(run):
            for gate in mocks.gates.values():
                gate.leave(run)

    def created(self, workflow: str, id: str) -> list[tuple[str, bytes | None]]:
        """Give a new instance the mocks of its Workflow; returns the events among them."""
        later = self.mocks.get((workflow, None))
        if later is not None:
            self._inherited[workflow, id] = later.for_an_instance()
        return self.events_of(workflow, id)

    def events_of(self, workflow: str, id: str) -> list[tuple[str, bytes | None]]:
        """The events that an instance is to get, also after a restart (I21)."""
        found = (self._inherited.get((workflow, id)), self.mocks.get((workflow, id)))
        events = [event for mocks in found if mocks is not None for event in mocks.events]
        return [(kind, payload) for kind, payload, _ in events]

    def consumed(self, workflow: str, id: str, kind: str) -> None:
        """An instance took an event of this type."""
        found = (self._inherited.get((workflow, id)), self.mocks.get((workflow, id)))
        for mocks in found:
            for known, _, mark in [] if mocks is None else mocks.events:
                if known == kind:
                    mark.reached = True

    def clear(self) -> None:
        """Forget all mocks."""
        self.mocks.clear()
        self._inherited.clear()

    # -- faults and mocks ------------------------------------------------------------------------

    def _meet(self, run: WorkflowRun, kind: str, name: str, *, retried: bool) -> Fault | None:
        """The fault that ends an attempt in its own way; there is one at most."""
        return next(iter(self._struck_by(run, kind, name, retried=retried)), None)

    def _struck_by(
        self, run: WorkflowRun, kind: str, name: str, *, retried: bool = False
    ) -> tuple[Fault, ...]:
        site = site_name(kind, run.execution.workflow, name)
        faults = self._kernel.faults.meet(site, retried=retried)
        run.struck = run.struck or bool(faults)
        return faults

    def _mocks_of(self, run: WorkflowRun) -> list[Mocks]:
        workflow, id = run.execution.workflow, run.execution.id
        found = (self.mocks.get((workflow, id)), self._inherited.get((workflow, id)))
        return [mocks for mocks in found if mocks is not None]

    def _mock_of(self, run: WorkflowRun, attempt: Attempt) -> StepMock | None:
        for mocks in self._mocks_of(run):
            mock = mocks.steps.get((attempt.name, attempt.count))
            if mock is not None:
                mock.reached = True
                return mock
        return None

    def _gate_of(self, run: WorkflowRun, attempt: Attempt) -> Gate | None:
        for mocks in self._mocks_of(run):
            gate = mocks.gates.get((attempt.name, attempt.count))
            if gate is not None:
                return gate
        return None


def _is(fault: Fault | None, action: str) -> bool:
    return fault is not None and fault.action == action
