"""Instances of Workflows: `/accounts/{account}/workflows/{workflow}/instances` (W3 to W11).

Events meet the faults of `event` sites, as those of a test do; nothing else here is a fault site.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from emulator.clock import instant
from emulator.runtime.host import current
from emulator.server.rest import workflow_shapes as shapes
from emulator.server.rest.answers import ApiError, Page, time
from emulator.server.rest.fields import Fields, body, info, invalid, whole
from emulator.server.rest.workflow_shapes import find_instance, find_workflow
from emulator.values import JsException, from_json, to_v8
from emulator.workflows import grammar
from emulator.workflows.bindings import random_id, retention_of
from emulator.workflows.model import NewInstance
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.server.rest.calls import Call, Operations
    from emulator.workflows.model import InstanceView

_USUAL_PAGE: Final = 50
_MOST_A_PAGE: Final = 100
_VERBS: Final = ("pause", "resume", "terminate", "restart")
_KINDS: Final = ("do", "sleep", "waitForEvent")
_DIRECTIONS: Final = ("asc", "desc")
_MOST_STEPS: Final = 2**31


async def _perform(call: Call, perform: Callable[[], Any]) -> Any:
    """Do something in the engine, when its turn comes; raises `ApiError`."""

    def attempt() -> Any:
        try:
            return perform()
        except EngineError as error:
            return error

    result = await call.platform.workflows.call(cast("Any", current()), attempt)
    if isinstance(result, EngineError):
        raise shapes.refusal(result.message)
    return result


# -- making --------------------------------------------------------------------------------------


async def create_instance(call: Call) -> Any:
    """Create an instance."""
    name, workflows = find_workflow(call), call.platform.workflows
    item = _new(body(call, empty=True))
    await _perform(call, lambda: workflows.create(name, item, trigger="api"))
    return _created(call, name, item.id)


async def create_instances(call: Call) -> Any:
    """Create several instances; those whose id exists are left out."""
    name, workflows = find_workflow(call), call.platform.workflows
    given = call.json()
    if not isinstance(given, list):
        raise invalid("Expected array, received object")
    items = [_new(Fields(item, str(index))) for index, item in enumerate(given)]
    ids = await _perform(call, lambda: workflows.create_batch(name, items, trigger="api"))
    made = [_created(call, name, id) for id in ids]
    return Page(made, info(made, 1, max(len(made), 1), len(made)))


def _created(call: Call, name: str, id: str) -> Any:
    return shapes.created(name, call.platform.workflows.engine.status(name, id))


def _new(given: Fields) -> NewInstance:
    """An instance; its params are JSON, or a text that is JSON (W3)."""
    id = given.text("instance_id")
    params = given.values.get("params")
    if isinstance(params, str):
        try:
            params = from_json(params)
        except JsException:
            raise invalid(f'Invalid JSON at "{given.path("params")}"') from None
    kept = given.fields("instance_retention") or Fields({})
    try:
        return NewInstance(
            random_id(cast("Any", current())) if id is None else grammar.check_id(id),
            to_v8({} if params is None else params),
            retention_of(
                {
                    "successRetention": kept.values.get("success_retention"),
                    "errorRetention": kept.values.get("error_retention"),
                }
            ),
        )
    except EngineError as error:
        raise shapes.refusal(error.message) from None


# -- looking -------------------------------------------------------------------------------------


def list_instances(call: Call) -> Page:
    """Return instances, newest first unless `direction` says otherwise, by cursor or page."""
    name, query = find_workflow(call), call.query
    size = whole(query, "per_page", _USUAL_PAGE, _MOST_A_PAGE)
    views = [
        view for view in call.platform.workflows.engine.instances(name) if _is_wanted(call, view)
    ]
    direction = query.get("direction", "desc")
    if direction not in _DIRECTIONS:
        raise invalid("Invalid enum value. Expected 'asc' | 'desc' at \"direction\"")
    if direction == "desc":
        views.reverse()
    number = whole(query, "page", 1, 2**31)
    start = (number - 1) * size
    if "cursor" in query:
        start = _behind(views, _number(query["cursor"]))
    part = views[start : start + size]
    facts = info(part, number, size, len(views))
    if start + size < len(views):
        facts["cursor"] = _cursor(part[-1])
    return Page([shapes.listed(name, view, _modified(call, name, view)) for view in part], facts)


def _is_wanted(call: Call, view: InstanceView) -> bool:
    wanted = call.query.get("status")
    if wanted is not None and wanted != shapes.status(view):
        return False
    start, end = _date(call, "date_start"), _date(call, "date_end")
    return (start is None or view.timestamp >= start) and (end is None or view.timestamp <= end)


def _date(call: Call, name: str) -> int | None:
    given = call.query.get(name)
    if given is None:
        return None
    try:
        read = datetime.fromisoformat(given.replace(" ", "+"))
    except ValueError:
        raise invalid(f'Invalid datetime at "{name}"') from None
    return instant(read if read.tzinfo is not None else read.replace(tzinfo=UTC))


def _modified(call: Call, name: str, view: InstanceView) -> int:
    history = call.platform.workflows.engine.history(name, view.id)
    return history[-1].at if history else view.timestamp


def _cursor(view: InstanceView) -> str:
    return urlsafe_b64encode(str(view.number).encode()).decode().rstrip("=")


def _number(cursor: str) -> int:
    try:
        return int(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        raise invalid('Invalid cursor at "cursor"') from None


def _behind(views: list[InstanceView], number: int) -> int:
    """The first place after the instance with this number."""
    places = [place for place, view in enumerate(views) if view.number == number]
    return places[0] + 1 if places else len(views)


def get_instance(call: Call) -> Any:
    """Return an instance with its steps, or without them if that is to be `simple`."""
    name, view = find_instance(call)
    shown = shapes.details(call, name, view, newest=call.query.get("order") == "desc")
    return {**shown, "steps": []} if call.query.get("simple") == "true" else shown


def get_step(call: Call) -> Any:
    """Return what a step gave: the whole of it, or one attempt."""
    name, view = find_instance(call)
    wanted = call.query.get("name", "")
    attempt = whole(call.query, "attempt", 1, _MOST_STEPS) if "attempt" in call.query else None
    engine = call.platform.workflows.engine
    for step in engine.steps(name, view.id):
        if f"{step.name}-{step.count}" != wanted:
            continue
        if attempt is not None and attempt > step.attempts:
            break
        shown = {
            "status": step.state,
            "output": shapes.step_output(step),
            "error": shapes.error_of(step.error),
        }
        return shown if step.event is None else {**shown, "event_type": step.event.type}
    raise shapes.refusal("(step.not_found)")


# -- verbs ---------------------------------------------------------------------------------------


async def change_status(call: Call) -> Any:
    """Pause, resume, terminate or restart an instance."""
    name, view = find_instance(call)
    given = body(call)
    verb = given.choice("status", _VERBS)
    options = _options(given, verb)
    workflows = call.platform.workflows
    await _perform(call, lambda: workflows.control(verb, name, view.id, **options))
    after = workflows.engine.status(name, view.id)
    return {"status": shapes.status(after), "timestamp": time(call.now)}


def _options(given: Fields, verb: str) -> dict[str, Any]:
    rollback, start = given.boolean("rollback"), given.fields("from")
    if rollback and verb != "terminate":
        raise invalid("'rollback' is only valid when terminating.")
    if start is not None and verb != "restart":
        raise invalid("'from' is only valid when restarting.")
    if verb == "terminate":
        return {"rollback": bool(rollback)}
    if start is None:
        return {}
    if not start.text("name"):
        raise invalid("'from.name' is required when restarting from a specific step.")
    return {
        "name": start.text("name"),
        "count": start.number("count", 1, _MOST_STEPS) or 1,
        "kind": start.choice("type", _KINDS, "do"),
    }


async def send_event(call: Call) -> Any:
    """Send an event to an instance; an empty body is no payload."""
    name, view = find_instance(call)
    payload = to_v8(call.json()) if call.body.strip() else None
    sent = call.platform.workflows.send_event(
        cast("Any", current()), name, view.id, call.path["type"], payload
    )
    at = call.now
    try:
        await sent
    except JsException as error:
        raise _refused_event(error) from None
    return {"instanceId": view.id, "timestamp": time(at)}


def _refused_event(error: JsException) -> ApiError:
    if error.name == "WorkflowInternalError" or "WorkflowInternalError" in error.message:
        return ApiError(500, 10001, "workflows.api.error.internal_server")  # a fault
    return shapes.refusal(error.message)


async def delete_instances(call: Call) -> Any:
    """Forget several instances."""
    name, given = find_workflow(call), body(call)
    ids = given.values.get("instances")
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise invalid('Expected array of strings at "instances"')
    workflows = call.platform.workflows
    result = await _perform(call, lambda: workflows.delete_batch(name, ids))
    errors = [{"id": one.id, "code": one.code, "message": one.message} for one in result.errors]
    return {"deleted": [{"id": id} for id in result.done], "errors": errors}


async def delete_instance(call: Call) -> Any:
    """Forget an instance."""
    name, view = find_instance(call)
    workflows = call.platform.workflows
    await _perform(call, lambda: workflows.control("delete", name, view.id))
    return {"status": "ok"}


_ALL = "/workflows/{workflow}/instances"
_ONE = f"{_ALL}/{{instance}}"
OPERATIONS: Operations = (
    ("GET", _ALL, list_instances),
    ("GET", f"{_ALL}/", list_instances),  # as wrangler asks for the latest
    ("POST", _ALL, create_instance),
    ("POST", f"{_ALL}/batch", create_instances),
    ("POST", f"{_ALL}/batch/delete", delete_instances),
    ("GET", _ONE, get_instance),
    ("DELETE", _ONE, delete_instance),
    ("GET", f"{_ONE}/step", get_step),
    ("PATCH", f"{_ONE}/status", change_status),
    ("POST", f"{_ONE}/events/{{type}}", send_event),
)
