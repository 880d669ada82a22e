"""A project with a Workflow that has a step of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from served_project import Project

_CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "workflows": [
    {"binding": "ORDERS", "name": "orders", "class_name": "Orders"},
    {"binding": "NIGHTLY", "name": "nightly", "class_name": "Nightly", "schedules": "0 3 * * *"},
  ],
}
"""
_WORKER = """
from workers import WorkflowEntrypoint, WorkerEntrypoint


class Orders(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("charge", config={"retries": {"limit": 2, "delay": "10 seconds"}})
        async def charge(ctx=None):
            print("charge", event["payload"])
            if event["payload"].get("fails"):
                raise ValueError("card refused")
            return {"paid": event["payload"].get("amount", 0)}

        paid = await charge()
        await step.sleep("cool down", "1 hour")
        approval = await step.wait_for_event("approval", "approved", timeout="1 day")
        return {"paid": paid["paid"], "by": approval["payload"]["by"]}


class Nightly(WorkflowEntrypoint):
    async def run(self, event, step):
        await step.sleep("long", "1 day")


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        instance = await self.env.ORDERS.create({"params": {"amount": 1}})
        return None
"""


def write_workflow(project: Project) -> None:
    """Make a project one of Workflows."""
    project.write("wrangler.jsonc", _CONFIG)
    project.write("src/entry.py", _WORKER)
