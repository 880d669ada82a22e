"""How an instance undoes its steps before it ends (K1 to K8).

    raised, terminate(rollback) ──▶ one step after the other, the last started first ──▶ end
                                        │        ▲
                                        ▼        │ attempts, delays and time-outs of their own
                                     handler ────┘ the first that fails for good ends the chain

Only the engine's part is durable: which step is being undone, and in which attempt. The handlers
are closures of an execution. Where there is none (after a crash, or because `terminate` cut it off)
a *rebuilding* execution runs `run` once more, in which stored steps are done at once and unfinished
ones without a value, until each step to be undone was asked for (K8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.workflows import texts
from emulator.workflows.execution import time_out_of
from emulator.workflows.grammar import DEFAULTS, is_strict, worker_duration
from emulator.workflows.model import (
    BLOCKED,
    PARKED,
    Done,
    Failed,
    Rollback,
    RollbackAttempt,
    Status,
)
from emulator.workflows.retries import is_non_retryable, retry_delay, will_retry
from emulator.workflows.steps import Steps, in_milliseconds

if TYPE_CHECKING:
    from emulator.workflows.execution import Execution
    from emulator.workflows.instance import Instance
    from emulator.workflows.journal import Step, Undoing
    from emulator.workflows.model import Decision, ErrorInfo, Instant, StepConfig, Waiting


class Rollbacks(Steps):
    """The verbs of an instance that undoes its steps."""

    def next_rollback(self, execution: Execution, now: Instant) -> RollbackAttempt | Waiting | None:
        """The handler to run now; `PARKED` until a notice, None when it is over."""
        instance, undoing = execution.instance, execution.instance.undoing
        if instance.execution is not execution or undoing is None:
            return None
        if undoing.flying or (undoing.due is not None and undoing.due > now):
            return PARKED
        step = instance.steps[undoing.left[0]]
        config = _undo_config(step)
        due = now + self._timeout(config)
        self._commit("undo", instance, now, due)
        return RollbackAttempt(
            step.key, step.name, step.count, undoing.attempts, step.attempts,
            step.config or DEFAULTS[self._profile], undoing.trigger, step.output, due,
        )  # fmt: skip

    def rollback_succeeded(self, execution: Execution, key: str, number: int, now: Instant) -> None:
        """The handler returned."""
        undoing = self._undo_in_flight(execution, key, number)
        if undoing is not None:
            self._commit("undone", execution.instance, now)
            self._go_on(execution.instance, now)

    def rollback_failed(
        self, execution: Execution, key: str, number: int, error: ErrorInfo, now: Instant
    ) -> None:
        """The handler raised."""
        undoing = self._undo_in_flight(execution, key, number)
        if undoing is not None:
            self._fail_undo(execution.instance, undoing, error, now)

    def rollback_missing(self, execution: Execution, key: str, now: Instant) -> None:
        """There is no handler for the step, which ends the chain (K5)."""
        instance, undoing = execution.instance, execution.instance.undoing
        current = instance.execution is execution and undoing is not None
        if current and undoing is not None and undoing.left[0] == key:
            self._commit("undo_missing", instance, now, list(texts.ROLLBACK_MISSING))
            self._go_on(instance, now)

    # Beginning.

    def _undoable(self, instance: Instance) -> list[str]:
        """The keys of the steps to undo, the last started first (K3)."""
        return [step.key for step in reversed(instance.steps.values()) if step.has_rollback]

    def _begin_undoing(
        self,
        instance: Instance,
        trigger: ErrorInfo,
        status: Status,
        error: ErrorInfo | None,
        now: Instant,
    ) -> None:
        told = None if error is None else list(error)
        keys = self._undoable(instance)
        self._commit("rollback", instance, now, list(trigger), status.value, told, keys)

    def _open(self, execution: Execution) -> None:
        """The handlers that there are to be are there."""
        execution.closed = True
        execution.parked.clear()
        self._notices.append(Rollback(execution.workflow, execution.id))

    def _rebuild(self, execution: Execution, key: str, now: Instant) -> Decision:
        undoing = execution.instance.undoing
        step = execution.instance.steps.get(key)
        if execution.closed or undoing is None or step is None:
            return BLOCKED
        if all(left in execution.asks for left in undoing.left):
            self._open(execution)
            return BLOCKED
        if step.error is not None:
            return Failed(step.error, replayed=True)
        return Done(step.output, step.event, replayed=True)

    # Going on.

    def _undo_in_flight(self, execution: Execution, key: str, number: int) -> Undoing | None:
        undoing = execution.instance.undoing
        if execution.instance.execution is not execution or undoing is None:
            return None
        current = undoing.flying and undoing.left[0] == key and undoing.attempts == number
        return undoing if current else None

    def _fail_undo(
        self, instance: Instance, undoing: Undoing, error: ErrorInfo, now: Instant
    ) -> None:
        config = _undo_config(instance.steps[undoing.left[0]])
        charged = undoing.attempts - undoing.uncharged
        if is_non_retryable(error) or not will_retry(config, charged):
            self._commit("undo_failure", instance, now, list(error), None, None)
        else:
            base = self._undo_delay(config)
            delay = retry_delay(config, undoing.attempts, base)
            facts = (list(error), in_milliseconds(delay), now + delay)
            self._commit("undo_failure", instance, now, *facts)
        self._go_on(instance, now)

    def _undo_delay(self, config: StepConfig) -> float:
        """A function counts as the default, since nobody asks it."""
        delay = DEFAULTS[self._profile].delay if config.delay is None else config.delay
        return worker_duration(delay, strict=is_strict(self._profile))

    def _lose_undo(self, instance: Instance, undoing: Undoing, now: Instant) -> None:
        """A handler whose end nobody saw counts as an attempt of a step does (X3)."""
        config = _undo_config(instance.steps[undoing.left[0]])
        if self._profile == "miniflare":
            self._commit("undo_lost", instance, now)
        elif will_retry(config, undoing.attempts):
            self._commit("undo_failure", instance, now, list(texts.LOST), None, now)
        else:
            self._commit("undo_failure", instance, now, list(texts.LOST), None, None)

    def _undo_due(self, instance: Instance, undoing: Undoing, now: Instant) -> None:
        """A handler's time is over, or the delay before its next attempt."""
        if undoing.flying:
            config = _undo_config(instance.steps[undoing.left[0]])
            error = time_out_of(self._timeout_in_ms(config))
            self._fail_undo(instance, undoing, error, now)
        if instance.undoing is not None and instance.execution is not None:
            self._notices.append(Rollback(instance.workflow, instance.id))

    def _go_on(self, instance: Instance, now: Instant) -> None:
        """End the instance if there is nothing left to undo."""
        undoing = instance.undoing
        if undoing is None or not undoing.over:
            return
        status, error = Status(undoing.status), undoing.error
        rebuilt = instance.execution is not None and instance.execution.rebuilding
        self._commit("rolled_back", instance, now)
        if rebuilt:
            self._stop(instance)
        self._end(instance, now, status, error=error)


def _undo_config(step: Step) -> StepConfig:
    assert step.rollback_config is not None
    return step.rollback_config
