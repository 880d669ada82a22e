"""The same as it is often written: the work is a background task of FastAPI's.

On a server of your own that is enough. A Worker's isolate may go at any moment, and the task with
it: the client waits for the task as well, and its second request, when no answer came, is a second
job.
"""

import uuid

import asgi
import entry
from api import Order, Table, app
from fastapi import BackgroundTasks, FastAPI
from rendering import render

naive = FastAPI()


@naive.post("/jobs", status_code=202)
async def order(body: Order, tasks: BackgroundTasks, jobs: Table):
    job = str(uuid.uuid4())
    await jobs.add(job, body.title)

    async def work():
        await jobs.finish(job, await render(job, body.title))

    tasks.add_task(work)
    return {"job": job}


naive.mount("/", app)


class Default(entry.Default):
    async def fetch(self, request):
        return await asgi.fetch(naive, request, self.env, self.ctx)
