"""A Worker project with something of everything, for the dashboard to show."""

from __future__ import annotations

CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [
      {"binding": "JOBS", "queue": "jobs"}, {"binding": "FAILED", "queue": "failed"},
    ],
    "consumers": [
      {"queue": "jobs", "max_retries": 1, "retry_delay": 3600, "dead_letter_queue": "failed"},
    ],
  },
  "workflows": [{"name": "onboarding", "binding": "ONBOARDING", "class_name": "Onboarding"}],
  "durable_objects": {"bindings": [{"name": "ROOMS", "class_name": "Room"}]},
  "migrations": [{"tag": "v1", "new_sqlite_classes": ["Room"]}],
  "kv_namespaces": [{"binding": "PAGES", "id": "pages"}],
  "r2_buckets": [{"binding": "FILES", "bucket_name": "files"}],
  "d1_databases": [{"binding": "DB", "database_name": "main", "database_id": "main"}],
  "triggers": {"crons": ["0 3 * * *"]},
}
"""
WORKER = """
from datetime import datetime, timedelta

from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.url.endswith("/fail"):
            raise ValueError("no such shop")
        if request.url.endswith("/later"):
            self.ctx.waitUntil(later())
        return Response("hello")

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            if message.body == "bad":
                message.retry()

    async def scheduled(self, controller, env, ctx):
        pass


async def later():
    raise RuntimeError("the mail server is away")


class Onboarding(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("charge", config={"retries": {"limit": 2, "delay": "1 minute"}})
        async def charge(ctx):
            if ctx.attempt == 1:
                raise ValueError("card declined")
            return {"paid": True}

        await charge()
        await step.sleep("trial", "3 days")
        await step.wait_for_event("approval", "approved", timeout="1 day")
        return "welcome"


class Room(DurableObject):
    async def enter(self, name):
        await self.ctx.storage.put(name, {"entered": True})
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS said (text TEXT)")
        self.ctx.storage.sql.exec("INSERT INTO said VALUES (?)", name)
        await self.ctx.storage.setAlarm(datetime.now() + timedelta(days=1))

    async def alarm(self, info=None):
        await self.ctx.storage.put("alarmed", True)
"""
