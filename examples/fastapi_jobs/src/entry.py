"""Reports that take a while: FastAPI takes the order, a queue does the work, a cron cleans up."""

import asgi
import httpx
from api import app
from rendering import render
from store import Jobs
from workers import WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return await asgi.fetch(app, request, self.env, self.ctx)

    async def queue(self, batch, env, ctx):
        jobs = Jobs(self.env.DB)
        for message in batch.messages:
            job = await jobs.get(message.body["job"])
            if batch.queue == "reports-dlq":
                await jobs.fail(message.body["job"])
            # A message may come twice, and one job may have two.
            elif job is not None and job["state"] == "queued":
                try:
                    await jobs.finish(job["id"], await render(job["id"], job["title"]))
                except httpx.HTTPError as error:
                    print(f"report {job['id']}: {type(error).__name__}")
                    message.retry()
                    continue
            message.ack()

    async def scheduled(self, controller, env, ctx):
        jobs = Jobs(self.env.DB)
        for job in await jobs.lost():
            await self.env.REPORTS.send({"job": job})
        await jobs.forget_old()
