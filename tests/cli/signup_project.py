"""A Worker that sends a mail for each signup, and a scenario of it."""

CONFIG = """
{
  "name": "signup", "main": "src/entry.py", "compatibility_date": "2026-09-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [{"binding": "EMAILS", "queue": "emails"}],
    "consumers": [{"queue": "emails"}],
  },
}
"""
WORKER = """
from urllib.parse import urlsplit

from workers import Response, WorkerEntrypoint, fetch


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        path = urlsplit(request.url).path
        if path == "/boom":
            raise ValueError("boom")
        if path == "/log":
            print("a line of the Worker")
        if path == "/ask":
            await fetch("https://ask.example/")
        if path == "/spin":
            while True:
                pass
        if path == "/signup":
            await self.env.EMAILS.send("ada@example.com")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            answer = await fetch("https://mail.example/send", method="POST", body=message.body)
            answer.raise_for_status()
"""
SCENARIO = """
import respx


async def scenario(emulator):
    with respx.mock() as outside:
        mail = outside.post("https://mail.example/send").respond(202)
        await emulator.fetch("/signup", method="POST")
        await emulator.settle()
        assert mail.call_count == 1
"""
# Mails are told apart by their keys: whatever the platform does, there is one.
IDEMPOTENT = SCENARIO.replace(
    "assert mail.call_count == 1",
    'assert {c.request.headers["idempotency-key"] for c in mail.calls} == {"one"}',
)
IDEMPOTENT_WORKER = WORKER.replace(
    'method="POST", body', 'method="POST", headers={"Idempotency-Key": "one"}, body'
)
