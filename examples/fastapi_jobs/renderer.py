"""The outside world of the tests: the service that renders reports."""

import asyncio
import json

import httpx


class Renderer:
    """Stands behind a mocked route; takes ten seconds for a report, and makes one for each key.

    `down` makes it answer 503.
    """

    def __init__(self):
        self.down = False
        self.calls = 0
        self.reports = {}  # titles, by key

    async def __call__(self, request):
        self.calls += 1
        if self.down:
            return httpx.Response(503)
        await asyncio.sleep(10)
        key = request.headers["Idempotency-Key"]
        self.reports.setdefault(key, json.loads(request.content)["title"])
        return httpx.Response(201, json={"url": f"https://reports.example/{key}"})
