"""A project with a KV namespace and a D1 database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from served_project import Project

CACHE = "c0ffee00c0ffee00c0ffee00c0ffee00"
USERS = "11111111-2222-3333-4444-555555555555"

_CONFIG = f"""
{{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "kv_namespaces": [{{"binding": "CACHE", "id": "{CACHE}"}}],
  "d1_databases": [{{"binding": "DB", "database_name": "users", "database_id": "{USERS}"}}],
}}
"""
_WORKER = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.method == "PUT":
            await self.env.CACHE.put("worker", await request.text(), metadata={"by": "worker"})
            return Response("stored")
        rows = await self.env.DB.prepare("SELECT name FROM users ORDER BY name").all()
        return Response(",".join(row["name"] for row in rows.results))
"""
_MIGRATION = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE, score REAL);"


def write_stores(project: Project) -> None:
    """Make a project one of stores."""
    project.write("wrangler.jsonc", _CONFIG)
    project.write("src/entry.py", _WORKER)
    project.write("migrations/0001_users.sql", _MIGRATION)
