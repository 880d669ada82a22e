"""Workflows and instances as the API shows them (workflows.md §16)."""

from __future__ import annotations

import json
import re
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import instant, moment
from emulator.cron_dialect import parse
from emulator.server.rest.answers import ApiError, time
from emulator.values import UNDEFINED, to_json
from emulator.workflows.model import InstanceEvent, Status
from emulator.workflows.shown import REDACTED, STREAM, decoded, preview, stream_text
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.server.rest.calls import Call
    from emulator.workflows.model import ErrorInfo, HistoryRow, InstanceView, StepView

_CODES: Final = {
    "workflow.not_found": (404, 10200),
    "instance.not_found": (404, 10400),
    "instance.cannot_terminate": (400, 10401),
    "instance.already_exists": (400, 10405),
    "instance.duplicate_in_batch": (400, 10415),
}
# Of errors whose code is not known.
_OTHER: Final = (400, 10001)
_KEY: Final = re.compile(r"\((\w+\.\w+)\)|\b(\w+\.not_found)\b")
_INVALID_ID: Final = "Workflow instance has invalid id"


def refusal(message: str) -> ApiError:
    """The API's error for one of the platform's, whose text has its key in brackets."""
    found = _KEY.search(message)
    if found is None:
        key = "instance.invalid_id" if message == _INVALID_ID else ""
        return ApiError(*_OTHER, f"workflows.api.error.{key}" if key else message)
    key = found[1] or found[2]
    return ApiError(*_CODES.get(key, _OTHER), f"workflows.api.error.{key}")


def find_workflow(call: Call) -> str:
    """The name of the Workflow in the path; raises `ApiError`."""
    name = call.path["workflow"]
    if name not in call.platform.workflows.engine.workflows:
        raise refusal("(workflow.not_found)")
    return name


def find_instance(call: Call) -> tuple[str, InstanceView]:
    """The Workflow and the instance in the path; raises `ApiError`."""
    name = find_workflow(call)
    try:
        return name, call.platform.workflows.engine.instance(name, call.path["instance"])
    except EngineError:
        raise refusal("(instance.not_found)") from None


def workflow_id(name: str) -> str:
    """The id of a Workflow: always the same for a name."""
    return _uuid(f"workflow {name}")


def version_id(name: str) -> str:
    """The id of the one version of a Workflow."""
    return _uuid(f"version of {name}")


def _uuid(text: str) -> str:
    digits = md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def workflow(call: Call, name: str) -> dict[str, Any]:
    """A Workflow, with the number of its instances by status."""
    workflows = call.platform.workflows
    config, views = workflows.configs[name], workflows.engine.instances(name)
    counts = {status.value: 0 for status in Status}
    for view in views:
        counts[view.status.value] += 1
    started = call.kernel.clock.start
    shown: dict[str, Any] = {
        "id": workflow_id(name),
        "name": name,
        "class_name": config.class_name,
        "script_name": config.script,
        "created_on": time(started),
        "modified_on": time(started),
        "triggered_on": time(max((view.timestamp for view in views), default=None)),
        "instances": counts,
    }
    if config.schedules:
        shown["schedules"] = [_schedule(call, cron) for cron in config.schedules]
    return shown


def _schedule(call: Call, cron: str) -> dict[str, Any]:
    following = parse(cron).after(moment(call.now))
    return {"cron": cron, "next_instance": following and time(instant(following))}


def version(call: Call, name: str) -> dict[str, Any]:
    """The version of a Workflow that runs."""
    started = time(call.kernel.clock.start)
    return {
        "id": version_id(name),
        "class_name": call.platform.workflows.configs[name].class_name,
        "created_on": started,
        "modified_on": started,
        "workflow_id": workflow_id(name),
        "language": "python",
        "has_dag": False,
    }


def created(name: str, view: InstanceView) -> dict[str, Any]:
    """An instance as its creation answers with it."""
    return {
        "id": view.id,
        "status": status(view),
        "version_id": version_id(name),
        "workflow_id": workflow_id(name),
        "trigger_source": view.trigger,
    }


def listed(name: str, view: InstanceView, modified: int) -> dict[str, Any]:
    """An instance in a list."""
    return {
        **created(name, view),
        "created_on": time(view.timestamp),
        "modified_on": time(modified),
        "started_on": time(view.started),
        "ended_on": time(view.ended),
    }


def status(view: InstanceView) -> str:
    """Its status, which alone among interfaces tells of a rollback (I2)."""
    return "rollingBack" if view.rolling_back else view.status.value


def details(call: Call, name: str, view: InstanceView, *, newest: bool) -> dict[str, Any]:
    """An instance with its steps, the `newest` first or last."""
    engine = call.platform.workflows.engine
    views, history = engine.steps(name, view.id), engine.history(name, view.id)
    steps = list(_steps(views, history))
    shown: dict[str, Any] = {
        "status": status(view),
        "params": value(view.params),
        "trigger": {"source": view.trigger},
        "versionId": version_id(name),
        "queued": time(view.timestamp),
        "start": time(view.started),
        "end": time(view.ended),
        "success": view.status is Status.COMPLETE if view.status.finite else None,
        "error": error_of(view.error),
        "output": value(view.output),
        "step_count": len(views),
        "steps": steps[::-1] if newest else steps,
    }
    if view.rollback is not None:
        outcome, error = view.rollback
        shown["rollback"] = {"outcome": outcome, "error": error_of(error)}
    if view.schedule is not None:
        cron, at = view.schedule
        shown["schedule"] = {"cron": cron, "scheduledTime": at // 1000}
    return shown


def _steps(views: Sequence[StepView], history: Sequence[HistoryRow]) -> Iterator[dict[str, Any]]:
    for view in views:
        yield _SHAPES[view.kind](view, _attempts(_target(view), history, _ATTEMPTS))
    for row in history:
        if row.event is InstanceEvent.ROLLBACK_STEP_START:
            yield _rollback(row, history)
        elif row.event is InstanceEvent.WORKFLOW_TERMINATED:
            yield {"type": "termination", "trigger": {"source": "api"}}


_ATTEMPTS: Final = (
    InstanceEvent.ATTEMPT_START,
    InstanceEvent.ATTEMPT_SUCCESS,
    InstanceEvent.ATTEMPT_FAILURE,
)
_UNDO_ATTEMPTS: Final = (
    InstanceEvent.ROLLBACK_ATTEMPT_START,
    InstanceEvent.ROLLBACK_ATTEMPT_SUCCESS,
    InstanceEvent.ROLLBACK_ATTEMPT_FAILURE,
)


def _target(view: StepView) -> str:
    return f"{view.name}-{view.count}"


def _attempts(
    target: str | None, history: Sequence[HistoryRow], kinds: tuple[InstanceEvent, ...]
) -> list[dict[str, Any]]:
    """The attempts of a step; one that was lost has no end."""
    start, success, _ = kinds
    attempts: dict[Any, dict[str, Any]] = {}
    for row in history:
        if row.target != target or row.event not in kinds:
            continue
        number = row.data.get("attempt")
        if row.event is start:
            shown = {"start": time(row.at), "end": None, "success": None, "error": None}
            attempts[number] = shown
        elif number in attempts:
            ended = {"end": time(row.at), "success": row.event is success}
            attempts[number] |= {**ended, "error": row.data.get("error")}
    return list(attempts.values())


def _do(view: StepView, attempts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "step",
        "name": _target(view),
        "start": time(view.started),
        "end": time(view.ended),
        "success": {"complete": True, "errored": False}.get(view.state),
        "output": step_output(view),
        "config": _config(view),
        "attempts": attempts,
    }


def _config(view: StepView) -> dict[str, Any]:
    config = view.config
    if config is None:
        return {}
    delay = "[dynamic]" if config.delay is None else config.delay
    retries = {"limit": config.limit, "delay": delay, "backoff": config.backoff}
    shown: dict[str, Any] = {"retries": retries, "timeout": config.timeout}
    return {**shown, "sensitive": "output"} if config.sensitive else shown


def _sleep(view: StepView, attempts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "sleep",
        "name": _target(view),
        "start": time(view.started),
        "end": time(view.due if view.ended is None else view.ended),
        "finished": view.ended is not None,
        "error": error_of(view.error),
    }


def _wait(view: StepView, attempts: list[dict[str, Any]]) -> dict[str, Any]:
    shown = {**_sleep(view, attempts), "type": "waitForEvent", "output": step_output(view)}
    if view.event is not None:
        shown["event_type"] = view.event.type
    return shown


_SHAPES: Final = {"do": _do, "sleep": _sleep, "waitForEvent": _wait}


def _rollback(begun: HistoryRow, history: Sequence[HistoryRow]) -> dict[str, Any]:
    ends = {
        InstanceEvent.ROLLBACK_STEP_SUCCESS: True,
        InstanceEvent.ROLLBACK_STEP_FAILURE: False,
    }
    ended = [row for row in history if row.target == begun.target and row.event in ends]
    return {
        "type": "rollback",
        "name": begun.target,
        "start": time(begun.at),
        "end": time(ended[-1].at) if ended else None,
        "success": ends[ended[-1].event] if ended else None,
        "output": None,
        "config": begun.data.get("config", {}),
        "attempts": _attempts(begun.target, history, _UNDO_ATTEMPTS),
    }


def step_output(view: StepView) -> Any:
    """What a step gave: the result of a do, the payload of an event."""
    if view.sensitive and view.output is not None:
        return REDACTED
    return value(view.output if view.event is None else view.event.payload)


def error_of(error: ErrorInfo | None) -> dict[str, str] | None:
    """An error of user code as JSON."""
    return None if error is None else error._asdict()


def value(data: bytes | None) -> Any:
    """A stored value as JSON, with a word for what JSON has not."""
    if data is None:
        return None
    if data.startswith(STREAM):
        return stream_text(data)
    shown = preview(decoded(data))
    return None if shown is UNDEFINED else json.loads(to_json(shown))
