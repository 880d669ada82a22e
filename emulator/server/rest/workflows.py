"""Workflows and their versions: `/accounts/{account}/workflows` (workflows.md, W1, W2, W10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.server.rest import workflow_shapes as shapes
from emulator.server.rest.answers import ApiError, Page
from emulator.server.rest.fields import body, paged
from emulator.server.rest.workflow_shapes import find_workflow

if TYPE_CHECKING:
    from emulator.server.rest.calls import Call, Operations

# A Workflow is code, which comes with a config; these words are ours.
_NOT_HERE = "a Workflow is made and deleted with the config of its Worker"


def list_workflows(call: Call) -> Page:
    """Return the Workflows whose names have what `search` says in them."""
    wanted = call.query.get("search", "")
    known = [name for name in call.platform.workflows.configs if wanted in name]
    page = paged(known, call.query, per_page=100)
    return page._replace(items=[shapes.workflow(call, name) for name in page.items])


def get_workflow(call: Call) -> Any:
    """Return a Workflow."""
    return shapes.workflow(call, find_workflow(call))


def update_workflow(call: Call) -> Any:
    """Agree to a Workflow that is as the config has it; refuse any other."""
    name, given = call.path["workflow"], body(call)
    config = call.platform.workflows.configs.get(name)
    wanted = given.text("class_name", required=True), given.text("script_name", required=True)
    if config is None or wanted != (config.class_name, config.script):
        raise ApiError(400, 10001, _NOT_HERE)
    shown = shapes.workflow(call, name)
    return {
        **{key: item for key, item in shown.items() if key not in ("instances", "schedules")},
        "version_id": shapes.version_id(name),
        "is_deleted": 0,
        "terminator_running": 0,
    }


def delete_workflow(call: Call) -> Any:
    """Refuse to."""
    find_workflow(call)
    raise ApiError(400, 10001, _NOT_HERE)


def list_versions(call: Call) -> Page:
    """Return the one version that there is."""
    return paged([shapes.version(call, find_workflow(call))], call.query, per_page=10)


def get_version(call: Call) -> Any:
    """Return a version."""
    name = find_workflow(call)
    if call.path["version"] != shapes.version_id(name):
        raise shapes.refusal("(version.not_found)")
    return shapes.version(call, name)


def terminate_all(call: Call) -> Any:
    """Terminate all instances, or those of a `status`, that have not ended."""
    name, wanted = find_workflow(call), call.query.get("status")
    workflows = call.platform.workflows
    for view in workflows.engine.instances(name):
        if not view.status.finite and wanted in (None, shapes.status(view)):
            workflows.control("terminate", name, view.id)
    workflows.touch()
    return {"status": "ok"}


OPERATIONS: Operations = (
    ("GET", "/workflows", list_workflows),
    ("GET", "/workflows/{workflow}", get_workflow),
    ("PUT", "/workflows/{workflow}", update_workflow),
    ("DELETE", "/workflows/{workflow}", delete_workflow),
    ("GET", "/workflows/{workflow}/versions", list_versions),
    ("GET", "/workflows/{workflow}/versions/{version}", get_version),
    ("PUT", "/workflows/{workflow}/instances/terminate", terminate_all),
)
