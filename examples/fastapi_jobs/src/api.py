"""The requests: FastAPI, as anywhere else."""

from typing import Annotated

import asgi
from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel
from store import Jobs

app = FastAPI()


class Order(BaseModel):
    title: str


def find_jobs(env=asgi.env):
    return Jobs(env.DB)


Table = Annotated[Jobs, Depends(find_jobs)]


@app.post("/jobs", status_code=202)
async def order(
    body: Order,
    jobs: Table,
    idempotency_key: Annotated[str, Header(min_length=8)],
    env=asgi.env,
):
    # The client's key is the job's id, so that the same request again is the same job.
    await jobs.add(idempotency_key, body.title)
    job = await jobs.get(idempotency_key)
    if job["state"] == "queued":
        await env.REPORTS.send({"job": job["id"]})
    return {"job": job["id"]}


@app.get("/jobs/{id}")
async def show(id: str, jobs: Table):
    job = await jobs.get(id)
    if job is None:
        raise HTTPException(404, "no such job")
    return job
