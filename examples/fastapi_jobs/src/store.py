"""The jobs, in D1."""

from datetime import UTC, datetime, timedelta

KEPT = timedelta(days=7)
# A job that waits so long has lost its message: it was written down, and never sent.
LOST = timedelta(hours=6)


class Jobs:
    """The table `jobs`."""

    def __init__(self, database):
        self._database = database

    async def add(self, job, title):
        """Write a job down, once for each id."""
        await self._run(
            "INSERT INTO jobs (id, title, state, made) VALUES (?, ?, 'queued', ?)"
            " ON CONFLICT (id) DO NOTHING",
            *(job, title, datetime.now(UTC).isoformat()),
        )

    async def get(self, job):
        """Return a job as a dict, None if there is none."""
        row = await self._database.prepare("SELECT * FROM jobs WHERE id = ?").bind(job).first()
        return None if row is None else dict(row)

    async def finish(self, job, url):
        await self._run("UPDATE jobs SET state = 'done', url = ? WHERE id = ?", url, job)

    async def fail(self, job):
        await self._run("UPDATE jobs SET state = 'failed' WHERE id = ? AND state = 'queued'", job)

    async def lost(self):
        """Return the ids of jobs whose message must have been lost."""
        before = (datetime.now(UTC) - LOST).isoformat()
        query = "SELECT id FROM jobs WHERE state = 'queued' AND made < ? ORDER BY id"
        found = await self._database.prepare(query).bind(before).all()
        return [row["id"] for row in found.results]

    async def forget_old(self):
        """Delete what is done and old."""
        before = (datetime.now(UTC) - KEPT).isoformat()
        await self._run("DELETE FROM jobs WHERE state != 'queued' AND made < ?", before)

    async def _run(self, query, *values):
        await self._database.prepare(query).bind(*values).run()
