"""The view of Workflows: instances, their steps with each attempt, and what can be done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.server.dashboard.endpoints import acts, reads
from emulator.server.dashboard.shown import (
    BRIEF,
    error_text,
    moment_text,
    text_of,
    time_text,
    value_text,
)
from emulator.workflows.model import InstanceEvent
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.routing import BaseRoute

    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk
    from emulator.workflows.control import HistoryRecord, Instance, StepRecord
    from emulator.workflows.model import InstanceView, StepView

_MOST_STEPS: Final = 1_000
_MOST_HISTORY: Final = 1_000
_STARTS: Final = (InstanceEvent.ATTEMPT_START, InstanceEvent.ROLLBACK_ATTEMPT_START)
_ENDS: Final[Mapping[InstanceEvent, str]] = {
    InstanceEvent.ATTEMPT_SUCCESS: "complete",
    InstanceEvent.ATTEMPT_FAILURE: "errored",
    InstanceEvent.ROLLBACK_ATTEMPT_SUCCESS: "complete",
    InstanceEvent.ROLLBACK_ATTEMPT_FAILURE: "errored",
}


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of Workflows."""
    return [
        reads(desk, "/workflows", _workflows),
        reads(desk, "/workflow", _workflow),
        reads(desk, "/instance", _instance),
        acts(desk, "/workflow/create", _create),
        acts(desk, "/instance/pause", _pause),
        acts(desk, "/instance/resume", _resume),
        acts(desk, "/instance/terminate", _terminate),
        acts(desk, "/instance/restart", _restart),
        acts(desk, "/instance/event", _event),
        acts(desk, "/instance/delete", _delete),
    ]


def _workflows(desk: Desk, asked: Asked) -> Answer:
    return {"workflows": [_about(desk, name) for name in desk.emulator.workflows]}


def _about(desk: Desk, name: str) -> Answer:
    counts: dict[str, int] = {}
    for view in desk.platform.workflows.engine.instances(name):
        counts[view.status.value] = counts.get(view.status.value, 0) + 1
    return {"name": name, "total": sum(counts.values()), "counts": counts}


def _workflow(desk: Desk, asked: Asked) -> Answer:
    name, status = asked.text("workflow"), asked.text("status", "")
    words = asked.text("id", "")
    desk.emulator.workflows[name]  # raises `KeyError`
    first, rows = asked.part()
    found = [
        view
        for view in reversed(desk.platform.workflows.engine.instances(name))
        if (not status or view.status.value == status) and words in view.id
    ]
    masker = desk.platform.kernel.trace.masker
    return {
        **_about(desk, name),
        "found": len(found),
        "instances": [_row(view, masker) for view in found[first : first + rows]],
    }


def _row(view: InstanceView, masker: Masker) -> Answer:
    return {
        "id": view.id,
        "status": view.status.value,
        "created": time_text(view.timestamp),
        "ended": time_text(view.ended),
        "trigger": view.trigger,
        "error": error_text(view.error, masker, most=BRIEF),
    }


# -- one instance --------------------------------------------------------------------------------


def _instance(desk: Desk, asked: Asked) -> Answer:
    name, id = asked.text("workflow"), asked.text("id")
    instance = _found(desk, name, id)
    engine, masker = desk.platform.workflows.engine, desk.platform.kernel.trace.masker
    view, history = engine.status(name, id), instance.history
    steps = instance.steps[-_MOST_STEPS:]
    views = engine.steps(name, id)[-_MOST_STEPS:]
    attempts = _attempts(history, masker)
    return {
        **_row(view, masker),
        "workflow": name,
        "now": time_text(desk.platform.kernel.now),
        "started": time_text(view.started),
        "executions": view.executions,
        "rolling_back": view.rolling_back,
        "rollback": None if view.rollback is None else view.rollback.outcome,
        "error": error_text(view.error, masker),
        "output": None if view.output is None else value_text(instance.output, masker),
        "params": _params(history, masker),
        "steps": [
            _step(step, seen, attempts, masker) for step, seen in zip(steps, views, strict=True)
        ],
        "history": [_event_row(row, masker) for row in history[-_MOST_HISTORY:]],
        "earlier": max(len(history) - _MOST_HISTORY, 0),
    }


def _params(history: Iterable[HistoryRecord], masker: Masker) -> str | None:
    for row in history:
        if row.event is InstanceEvent.WORKFLOW_QUEUED:
            return value_text(row.data.get("params"), masker)
    return None


def _step(
    step: StepRecord, view: StepView, attempts: Mapping[str, list[Answer]], masker: Masker
) -> Answer:
    target = f"{step.name}-{step.count}"
    return {
        "key": view.key,
        "name": step.name,
        "count": step.count,
        "kind": step.kind,
        "state": step.state,
        "started": moment_text(step.started),
        "ended": moment_text(step.ended),
        "due": time_text(view.due),
        "error": error_text(step.error, masker),
        "output": None if step.output is None else value_text(step.output, masker),
        "attempts": attempts.get(target, []),
        "count_of_attempts": step.attempts,
    }


def _attempts(history: Iterable[HistoryRecord], masker: Masker) -> dict[str, list[Answer]]:
    """Return the attempts of each step by its target: what began and never ended was lost, or
    runs still."""
    found: dict[str, list[Answer]] = {}
    for row in history:
        if row.target is None:
            continue
        of = found.setdefault(row.target, [])
        if row.event in _STARTS:
            of.append(
                {
                    "attempt": row.data.get("attempt"),
                    "started": moment_text(row.at),
                    "ended": None,
                    "state": "open",
                    "error": None,
                    "rollback": row.event is InstanceEvent.ROLLBACK_ATTEMPT_START,
                }
            )
        elif row.event in _ENDS and of:
            of[-1] |= {
                "ended": moment_text(row.at),
                "state": _ENDS[row.event],
                "error": _told_error(row.data.get("error"), masker),
            }
    return found


def _told_error(error: Any, masker: Masker) -> str | None:
    if not isinstance(error, dict):
        return None
    return text_of(f"{error.get('name')}: {error.get('message')}", masker)


def _event_row(row: HistoryRecord, masker: Masker) -> Answer:
    return {
        "id": row.id,
        "at": moment_text(row.at),
        "event": row.event.name,
        "target": row.target,
        "data": value_text(dict(row.data), masker, most=BRIEF) if row.data else "",
    }


# -- verbs ---------------------------------------------------------------------------------------


async def _create(desk: Desk, asked: Asked) -> Answer:
    workflow = desk.emulator.workflows[asked.text("workflow")]
    instance = await workflow.create(asked.text("id", "") or None, asked.parsed("params"))
    return {"id": instance.id}


async def _pause(desk: Desk, asked: Asked) -> Answer:
    await _named(desk, asked).pause()
    return {}


async def _resume(desk: Desk, asked: Asked) -> Answer:
    await _named(desk, asked).resume()
    return {}


async def _terminate(desk: Desk, asked: Asked) -> Answer:
    await _named(desk, asked).terminate(rollback=asked.flag("rollback"))
    return {}


async def _restart(desk: Desk, asked: Asked) -> Answer:
    """Run it again, all of it or from a step, which is named by its key."""
    instance, key = _named(desk, asked), asked.text("step", "")
    step: dict[str, Any] | None = None
    if key:
        views = desk.platform.workflows.engine.steps(instance.name, instance.id)
        view = next((one for one in views if one.key == key), None)
        if view is None:
            raise KeyError("there is no such step any more")
        step = {"name": view.name, "count": view.count, "type": view.kind}
    await instance.restart(step)
    return {}


async def _event(desk: Desk, asked: Asked) -> Answer:
    await _named(desk, asked).send_event(asked.text("type"), asked.parsed("payload"))
    return {}


async def _delete(desk: Desk, asked: Asked) -> Answer:
    await _named(desk, asked).delete()
    return {}


def _named(desk: Desk, asked: Asked) -> Instance:
    return _found(desk, asked.text("workflow"), asked.text("id"))


def _found(desk: Desk, workflow: str, id: str) -> Instance:
    """Return an instance; raises `KeyError`."""
    found = desk.emulator.workflows[workflow]
    try:
        desk.platform.workflows.engine.instance(workflow, id)
    except EngineError:
        raise KeyError(f"there is no instance {id!r} of {workflow}") from None
    return found._instance(id)
