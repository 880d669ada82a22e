"""What becomes of the steps that an execution asks for: attempts, retries, sleeps, waits.

    asked for ──▶ sleep, wait ──▶ WAITING ── due, or an event ──▶ COMPLETE, or ERRORED (timed out)
        │
        └──────▶ do ──▶ RUNNING ── success ──▶ COMPLETE
                         ▲   │
                   retry │   ├── failure, retries left ──▶ WAITING ── due ──┐
                         │   └── failure, none left ──▶ ERRORED             │
                         └──────────────────────────────────────────────────┘

An attempt is committed before its body runs, so that one that is lost has been counted (X2).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from emulator.workflows import texts
from emulator.workflows.core import ACTIVE, Core
from emulator.workflows.execution import time_out_of
from emulator.workflows.grammar import is_strict, worker_duration
from emulator.workflows.model import (
    BLOCKED,
    MILLISECOND,
    PARKED,
    Attempt,
    DelayFailed,
    Done,
    Failed,
    Status,
    WantDelay,
)
from emulator.workflows.retries import (
    MOST,
    given_delay,
    is_non_retryable,
    microseconds,
    retry_delay,
    will_retry,
)

if TYPE_CHECKING:
    from emulator.workflows.execution import Ask, Execution
    from emulator.workflows.instance import Instance
    from emulator.workflows.journal import Step
    from emulator.workflows.model import Decision, ErrorInfo, Instant, StepConfig

    Given = float | str | DelayFailed | None


class Steps(Core):
    """The verbs of a running execution that are about its steps."""

    def decide(self, execution: Execution, key: str, now: Instant) -> Decision:
        """What becomes of a step now; `Attempt` has started one.

        `BLOCKED` for good if the execution was stopped.
        """
        instance = execution.instance
        if execution.rehearsing:
            known = instance.steps.get(key)
            over = known is not None and known.state in ("complete", "errored")
            return self._settled(execution, known) if known is not None and over else BLOCKED
        if instance.execution is not execution:
            return BLOCKED
        if execution.rebuilding or execution.closed:
            return self._rebuild(execution, key, now)
        execution.parked.pop(key, None)
        step = instance.steps.get(key)
        if step is None:
            return self._start(execution, key, execution.asks[key], now)
        if step.state == "complete" or step.state == "errored":
            return self._settled(execution, step)
        execution.met[key] = None
        if step.state == "waiting" and step.kind == "do" and (step.due or 0) <= now:
            return self._attempt(execution, step, now)
        return self._park(execution, key, now)

    def attempt_succeeded(
        self,
        execution: Execution,
        key: str,
        attempt: int,
        output: bytes | None,
        now: Instant,
        *,
        limited: bool = True,
    ) -> None:
        """The body returned; too large an output fails the attempt if it is `limited` (O3)."""
        step = self._in_flight(execution, key, attempt)
        if step is None:
            return
        limit = execution.rules.max_output
        if limited and limit is not None and output is not None and len(output) > limit:
            self._fail(execution, step, texts.too_large(step.target), now)
            return
        self._commit("success", execution.instance, now, key, output)
        self._landed(execution, now)

    def attempt_failed(
        self,
        execution: Execution,
        key: str,
        attempt: int,
        error: ErrorInfo,
        now: Instant,
        *,
        retryable: bool = True,
        delay: Given = None,
    ) -> None:
        """The body raised, or a delay function was asked after that; see `WantDelay`.

        `delay` also overrides a delay that is no function: 0 is none.
        """
        execution.failing.pop(key, None)
        step = self._in_flight(execution, key, attempt)
        if step is not None:
            self._fail(execution, step, error, now, retryable=retryable, given=delay)

    def unserialisable(
        self,
        execution: Execution,
        key: str,
        attempt: int,
        now: Instant,
        *,
        reason: str | None = None,
    ) -> None:
        """The body returned what cannot be stored: the instance is over, nothing catches it (O2).

        `reason` is what is wrong with a stream (O5). No rollback (K2).
        """
        step = self._in_flight(execution, key, attempt)
        if step is None:
            return
        instance = execution.instance
        logged, final = texts.not_serialisable(step.name)
        if reason is not None:
            final = texts.bad_stream(step.name, reason)
        self._commit("failed", instance, now, key, list(logged), list(final))
        if not instance.status.finite:
            self._stop(instance)
            self._end(instance, now, Status.ERRORED, error=final)

    def cut_short(self, execution: Execution, key: str, now: Instant) -> None:
        """End a sleep or a retry delay now, or let a wait time out now."""
        instance = execution.instance
        step = instance.steps.get(key)
        if instance.execution is not execution or step is None or step.state != "waiting":
            return
        if step.kind == "do":
            self._commit("hasten", instance, now, key)
        self._fall_due(instance, step, now)

    # Starting.

    def _start(self, execution: Execution, key: str, ask: Ask, now: Instant) -> Decision:
        instance = execution.instance
        if instance.status is not Status.RUNNING:
            return self._block(execution, key)
        if ask.kind == "do":
            return self._start_do(execution, key, ask, now)
        due = now + microseconds(ask.milliseconds) if ask.until is None else ask.until
        due = min(due, now + MOST)
        named = (key, ask.name, ask.count, due)
        if ask.kind == "sleep":
            self._commit("sleep", instance, now, *named, ask.milliseconds)
            if due <= now:
                self._commit("wake", instance, now, key)
                return Done()
        else:
            self._commit("wait", instance, now, *named, ask.type, ask.milliseconds)
            if ask.type in instance.events:
                self._commit("take", instance, now, key)
                return Done(event=instance.steps[key].event)
        execution.met[key] = None
        return self._park(execution, key, now)

    def _start_do(self, execution: Execution, key: str, ask: Ask, now: Instant) -> Decision:
        if not self._take_turn(execution, key):
            return PARKED
        config, undo = ask.config, ask.rollback_config
        assert config is not None
        due = now + self._timeout(config)
        facts = (key, ask.name, ask.count, due, config, ask.has_rollback, undo)
        self._commit("step", execution.instance, now, *facts)
        execution.met[key] = None
        return Attempt(key, ask.name, ask.count, 1, config, due)

    def _attempt(self, execution: Execution, step: Step, now: Instant) -> Decision:
        if execution.instance.status is not Status.RUNNING:
            return self._block(execution, step.key)
        if not self._take_turn(execution, step.key):
            return PARKED
        config = step.config
        assert config is not None
        due = now + self._timeout(config)
        self._commit("attempt", execution.instance, now, step.key, due)
        return Attempt(step.key, step.name, step.count, step.attempts, config, due)

    def _settled(self, execution: Execution, step: Step) -> Decision:
        replayed = step.key not in execution.met
        pausing = execution.instance.status is Status.WAITING_FOR_PAUSE
        if pausing and step.kind != "do" and not replayed:
            return self._block(execution, step.key)
        if step.error is not None:
            return Failed(step.error, replayed)
        return Done(step.output, step.event, replayed)

    def _rebuild(self, execution: Execution, key: str, now: Instant) -> Decision:
        """Only `Rollback` has something to say about it."""
        raise NotImplementedError

    def _park(self, execution: Execution, key: str, now: Instant) -> Decision:
        execution.parked[key] = None
        self._rest(execution, now)
        return PARKED

    def _block(self, execution: Execution, key: str) -> Decision:
        execution.blocked[key] = None
        return BLOCKED

    def _timeout(self, config: StepConfig) -> int:
        return _time_of(config.timeout, is_strict(self._profile))

    def _timeout_in_ms(self, config: StepConfig) -> float:
        return worker_duration(config.timeout, strict=is_strict(self._profile))

    # Ending.

    def _in_flight(self, execution: Execution, key: str, attempt: int) -> Step | None:
        """The step whose current attempt this is; a late result is nobody's (R4)."""
        instance = execution.instance
        step = instance.steps.get(key)
        if instance.execution is not execution or step is None or step.attempts != attempt:
            return None
        return step if step.state == "running" and key not in execution.failing else None

    def _fail(
        self,
        execution: Execution,
        step: Step,
        error: ErrorInfo,
        now: Instant,
        *,
        retryable: bool = True,
        given: Given = None,
    ) -> None:
        config = step.config
        assert config is not None
        fatal = is_non_retryable(error)
        active = execution.instance.status in ACTIVE and not execution.closed
        again = retryable and not fatal and active and will_retry(config, step.charged)
        if not again:
            self._fail_for_good(execution, step, error, now, leaks=fatal)
        elif given is None and config.delay is None:
            execution.failing[step.key] = step.attempts
            told = (step.key, step.attempts, error)
            self._notices.append(WantDelay(execution.workflow, execution.id, *told))
        elif isinstance(base := self._base(config, given), DelayFailed):
            final = texts.delay_failed(step.target, base)
            self._commit("failed", execution.instance, now, step.key, list(error), list(final))
            self._landed(execution, now)
        else:
            delay = retry_delay(config, step.attempts, base)
            shown = in_milliseconds(delay)
            facts = (step.key, list(error), shown, now + delay)
            self._commit("failure", execution.instance, now, *facts)
            self._landed(execution, now)

    def _fail_for_good(
        self,
        execution: Execution,
        step: Step,
        error: ErrorInfo,
        now: Instant,
        *,
        leaks: bool = False,
    ) -> None:
        logged = error
        if leaks and not execution.rules.preserve_non_retryable:
            logged = texts.threw_non_retryable(error.message)
        facts = (step.key, list(logged), list(error))
        self._commit("failed", execution.instance, now, *facts)
        if leaks and self._profile == "miniflare":
            execution.leaked += 1
        self._landed(execution, now)

    def _base(self, config: StepConfig, given: Given) -> float | DelayFailed:
        if given is None:
            return worker_duration(config.delay, strict=is_strict(self._profile))
        if isinstance(given, DelayFailed):
            return given
        base = given_delay(given)
        return DelayFailed("invalid") if base is None else base

    def _landed(self, execution: Execution, now: Instant) -> None:
        """An attempt is over: an instance that waited for it may pause now (I10)."""
        instance = execution.instance
        if instance.status is Status.WAITING_FOR_PAUSE and not self._busy(instance):
            self._pause_now(instance, now)
        else:
            self._rest(execution, now)

    def _busy(self, instance: Instance) -> bool:
        leaked = 0 if instance.execution is None else instance.execution.leaked
        return instance.flying + leaked > 0

    def _pause_now(self, instance: Instance, now: Instant) -> None:
        self._commit("pause", instance, now)
        self._stop(instance)

    # Falling due.

    def _fall_due(self, instance: Instance, step: Step, now: Instant) -> None:
        """A sleep, a wait, a retry delay, or the time of an attempt is over."""
        if step.state == "running":
            self._time_out(instance, step, now)
        elif step.kind == "sleep":
            self._commit("wake", instance, now, step.key)
        elif step.kind == "waitForEvent":
            self._commit("expire", instance, now, step.key, list(time_out_of(step.timeout)))
        self._ready(instance, step.key)

    def _time_out(self, instance: Instance, step: Step, now: Instant) -> None:
        execution = instance.execution
        assert execution is not None
        assert step.config is not None
        execution.parked[step.key] = None
        error = time_out_of(self._timeout_in_ms(step.config))
        self._fail(execution, step, error, now)

    def _undecided(self, instance: Instance, step: Step, now: Instant) -> None:
        """An attempt whose end nobody saw: it failed, or it never was (X2, X3)."""
        config = step.config
        assert config is not None
        if self._profile == "miniflare":
            self._commit("lost", instance, now, step.key)
        elif will_retry(config, step.charged):
            self._commit("failure", instance, now, step.key, list(texts.LOST), None, now)
        else:
            lost = list(texts.LOST)
            self._commit("failed", instance, now, step.key, lost, lost)


@lru_cache(maxsize=1024)
def _time_of(timeout: float | str, strict: bool) -> int:
    """Each attempt asks again."""
    return microseconds(worker_duration(timeout, strict=strict))


def in_milliseconds(delay: int) -> float:
    """A delay as the history shows it."""
    return delay // MILLISECOND if delay % MILLISECOND == 0 else delay / MILLISECOND
