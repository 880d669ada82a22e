"""The service that renders reports."""

import httpx

URL = "https://render.example/reports"


async def render(job, title):
    """Return the address of the rendered report; for one `job` there is one report."""
    async with httpx.AsyncClient(timeout=30) as client:
        headers = {"Idempotency-Key": job}
        answer = await client.post(URL, json={"title": title}, headers=headers)
        answer.raise_for_status()
        return answer.json()["url"]
