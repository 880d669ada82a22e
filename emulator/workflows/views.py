"""Instances, steps and histories as others see them."""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Final

from emulator.values.numbers import format_number
from emulator.workflows.execution import time_out_of
from emulator.workflows.grammar import shown_config
from emulator.workflows.model import (
    ErrorInfo,
    HistoryRow,
    InstanceEvent,
    InstanceView,
    Status,
    StepView,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.workflows.instance import Instance, Row
    from emulator.workflows.journal import Step
    from emulator.workflows.model import WorkflowRules

    Data = dict[str, object]

# What a Workflow's trigger is in the history (§11).
_TRIGGERS: Final[Mapping[str, int]] = {"api": 0, "binding": 1, "event": 2, "cron": 3}


def view_instance(instance: Instance, status: Status) -> InstanceView:
    """The instance as it is now, in a status as its profile shows it."""
    return InstanceView(
        instance.workflow,
        instance.id,
        instance.number,
        status,
        instance.output,
        instance.error,
        instance.rolled_back,
        instance.undoing is not None,
        instance.params,
        instance.created,
        instance.started,
        instance.ended,
        instance.trigger,
        instance.schedule,
        instance.executions,
    )


def view_step(step: Step) -> StepView:
    """The step as it is now."""
    return StepView(
        step.key,
        step.name,
        step.count,
        step.kind,
        step.state,
        step.attempts,
        step.output,
        step.event,
        step.error,
        step.started,
        step.ended,
        step.due if step.state == "waiting" else None,
        step.config,
        step.config is not None and step.config.sensitive,
    )


def view_history(instance: Instance, rules: WorkflowRules) -> list[HistoryRow]:
    """All rows, oldest first."""
    return [_row(instance, rules, row) for row in instance.rows]


def _row(instance: Instance, rules: WorkflowRules, row: Row) -> HistoryRow:
    id, at, event, key, facts = row
    named = InstanceEvent(event)
    if key is None:
        data = _DATA_OF_INSTANCES[named](instance, rules, *facts)
        return HistoryRow(id, at, named, None, None, data)
    step = instance.steps[key]
    build = _DATA_OF_STEPS.get(named)
    data = {} if build is None else build(step, *facts)
    if step.has_rollback and named in _TELLS_OF_ROLLBACK:
        data["hasRollback"] = True
    group = _group(step)
    if named >= InstanceEvent.ROLLBACK_START:
        group = f"rollback:{group}"
    return HistoryRow(id, at, named, group, step.target, data)


_TELLS_OF_ROLLBACK: Final = (
    InstanceEvent.STEP_START,
    InstanceEvent.STEP_SUCCESS,
    InstanceEvent.STEP_FAILURE,
)


def _group(step: Step) -> str:
    """The platform's own key of a step (C1 to C3)."""
    told_apart = step.name
    if step.kind == "sleep":
        told_apart += format_number(step.timeout)
    elif step.kind == "waitForEvent":
        told_apart = step.target
    return f"{sha1(told_apart.encode('utf-8', 'surrogatepass')).hexdigest()}-{step.count}"


def _error(name: object, message: object) -> Data:
    return {"name": name, "message": message}


def _queued(instance: Instance, rules: WorkflowRules) -> Data:
    source = _TRIGGERS[instance.trigger]
    data: Data = {"params": instance.params, "trigger": {"source": source}}
    if rules.version is not None:
        data["versionId"] = rules.version
    return data


def _workflow_failed(instance: Instance, rules: WorkflowRules) -> Data:
    error = instance.error or ErrorInfo("Error", "")
    return {"error": _error(*error)}


def _rollback_started(
    instance: Instance, rules: WorkflowRules, name: str, message: str, total: int
) -> Data:
    return {"triggerError": _error(name, message), "totalSteps": total}


def _rollback_over(instance: Instance, rules: WorkflowRules, total: int, completed: int) -> Data:
    return {"totalSteps": total, "completedSteps": completed}


_DATA_OF_INSTANCES: Final[Mapping[InstanceEvent, Callable[..., Data]]] = {
    InstanceEvent.WORKFLOW_QUEUED: _queued,
    InstanceEvent.WORKFLOW_START: lambda instance, rules: {},
    InstanceEvent.WORKFLOW_SUCCESS: lambda instance, rules: {"result": instance.output},
    InstanceEvent.WORKFLOW_FAILURE: _workflow_failed,
    InstanceEvent.WORKFLOW_TERMINATED: lambda instance, rules: {"trigger": {"source": 0}},
    InstanceEvent.ROLLBACK_START: _rollback_started,
    InstanceEvent.ROLLBACK_COMPLETE: _rollback_over,
    InstanceEvent.ROLLBACK_FAILED: _rollback_over,
}


def _attempt_failed(
    step: Step, attempt: int, name: str, message: str, delay: float | None = None
) -> Data:
    data: Data = {"attempt": attempt, "error": _error(name, message)}
    if delay is not None:
        data["retryDelayMs"] = delay
    return data


def _attempt(step: Step, attempt: int) -> Data:
    return {"attempt": attempt}


def _step_started(step: Step) -> Data:
    return {} if step.config is None else {"config": shown_config(step.config)}


def _undo_started(step: Step) -> Data:
    config = step.rollback_config
    return {} if config is None else {"config": shown_config(config)}


def _undo_failed(step: Step, *error: object) -> Data:
    return {"error": _error(*error)} if error else {}


def _event(step: Step) -> Data:
    if step.event is None:
        return {}
    type, payload, timestamp = step.event
    return {"timestamp": timestamp, "payload": payload, "type": type}


_DATA_OF_STEPS: Final[Mapping[InstanceEvent, Callable[..., Data]]] = {
    InstanceEvent.STEP_START: _step_started,
    InstanceEvent.STEP_SUCCESS: lambda step: {"result": step.output},
    InstanceEvent.SLEEP_START: lambda step, milliseconds: {"durationMs": milliseconds},
    InstanceEvent.ATTEMPT_START: _attempt,
    InstanceEvent.ATTEMPT_SUCCESS: _attempt,
    InstanceEvent.ATTEMPT_FAILURE: _attempt_failed,
    InstanceEvent.WAIT_START: lambda step: {"event": step.type},
    InstanceEvent.WAIT_COMPLETE: _event,
    InstanceEvent.WAIT_TIMED_OUT: lambda step: _error(*time_out_of(step.timeout)),
    InstanceEvent.ROLLBACK_STEP_START: _undo_started,
    InstanceEvent.ROLLBACK_ATTEMPT_START: _attempt,
    InstanceEvent.ROLLBACK_ATTEMPT_SUCCESS: _attempt,
    InstanceEvent.ROLLBACK_ATTEMPT_FAILURE: _attempt_failed,
    InstanceEvent.ROLLBACK_STEP_SUCCESS: lambda step: {"result": None},
    InstanceEvent.ROLLBACK_STEP_FAILURE: _undo_failed,
}
