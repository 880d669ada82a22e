"""What the trace has of an instance: each durable change, under a word of its own.

The lane of a timeline is the instance; a step is named as the platform names it, `<name>-<count>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.trace import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.workflows.engine import Engine
    from emulator.workflows.journal import Step
    from emulator.workflows.model import Record

    Facts = dict[str, Any]


def _attempt(step: Step, _: Record) -> Facts:
    return {"attempt": step.attempts}


def _done(step: Step, record: Record) -> Facts:
    hidden = step.config is not None and step.config.sensitive
    return {"attempt": step.attempts, **({} if hidden else stored("output", record[5]))}


def _failed(step: Step, record: Record) -> Facts:
    name, message = record[5]
    return {"attempt": step.attempts, "error": f"{name}: {message}"}


def _nothing(step: Step, record: Record) -> Facts:
    return {}


def _sleep(step: Step, record: Record) -> Facts:
    return {"milliseconds": record[8]}


def _wait(step: Step, record: Record) -> Facts:
    return {"event": record[8], "milliseconds": record[9]}


# Kind of record → kind of event, and what the event tells.
_STEPS: Final[Mapping[str, tuple[str, Callable[[Step, Record], Facts]]]] = {
    "step": ("step", _attempt),
    "attempt": ("step", _attempt),
    "success": ("step_done", _done),
    "failure": ("step_retry", _failed),
    "failed": ("step_failed", _failed),
    "lost": ("step_lost", _attempt),
    "sleep": ("sleep", _sleep),
    "wake": ("wake", _nothing),
    "wait": ("wait", _wait),
    "take": ("wait_done", _nothing),
    "expire": ("wait_timed_out", _nothing),
}
_INSTANCE: Final[Mapping[str, str]] = {
    "begin": "workflow_run",
    "pausing": "workflow_pausing",
    "pause": "workflow_paused",
    "resume": "workflow_resumed",
    "restart": "workflow_restarted",
    "delete": "workflow_deleted",
    "rollback": "rollback",
    "rolled_back": "rollback_done",
}


def traced(engine: Engine, record: Record) -> tuple[str, str, Facts] | None:
    """The kind, the subject and the data of the event that a record is; None if it is none."""
    kind, workflow, id = record[0], record[1], record[2]
    subject = f"workflow {workflow} {id}"
    if kind in _STEPS:
        name, facts = _STEPS[kind]
        step = engine.step_of(workflow, id, record[4])
        return name, subject, {"step": step.target, **facts(step, record)}
    if kind == "end":
        error = record[6]
        why = {} if error is None else {"error": f"{error[0]}: {error[1]}"}
        return (
            "workflow_ended",
            subject,
            {"status": record[4], **why, **stored("output", record[5])},
        )
    if kind == "event":
        return "event", subject, {"type": record[4], **stored("payload", record[5])}
    if kind == "create":
        return "workflow_created", subject, stored("params", record[5])
    if kind in _INSTANCE:
        return _INSTANCE[kind], subject, {}
    return None
