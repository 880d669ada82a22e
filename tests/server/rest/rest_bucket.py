"""A project with R2 buckets and a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from served_project import Project

_CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "r2_buckets": [
    {"binding": "FILES", "bucket_name": "files"},
    {"binding": "EU", "bucket_name": "files", "jurisdiction": "eu"}
  ],
  "queues": {"consumers": [{"queue": "uploads", "max_batch_timeout": 0}]},
}
"""
_WORKER = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.FILES.put(request.url.rsplit("/", 1)[1], await request.text())
        return Response("stored")

    async def queue(self, batch, env, ctx):
        pass
"""


def write_bucket(project: Project) -> None:
    """Make a project one of buckets."""
    project.write("wrangler.jsonc", _CONFIG)
    project.write("src/entry.py", _WORKER)
