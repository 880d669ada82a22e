"""A signup service: a request puts a job into a queue, the queue's consumer sends the mail."""

import json
from urllib.parse import urlsplit

import mail
from workers import Response, WorkerEntrypoint, fetch

AUDIT = "https://audit.example/lines"
REPORTS = "https://reports.example/undelivered"
FIRST_DELAY = 10  # seconds; doubled at each attempt


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if urlsplit(request.url).path != "/signup":
            return Response("not found", status=404)
        if request.method != "POST":
            return Response("use POST", status=405, headers={"Allow": "POST"})
        address = await read_address(request)
        if address is None:
            return Response.json({"error": 'give an address as {"email": ...}'}, status=400)
        await self.env.EMAILS.send({"to": address, "subject": "Welcome"})
        # The client does not wait for this one.
        self.ctx.waitUntil(write_audit_line(f"signup {address}"))
        return Response.json({"queued": True}, status=202)

    async def queue(self, batch, env, ctx):
        if batch.queue == "emails-dlq":
            await self.report(batch)
        else:
            await self.send(batch)

    async def send(self, batch):
        keyed = self.env.IDEMPOTENCY_KEYS == "on"
        for message in batch.messages:
            # The id stays the same however often the message is delivered.
            key = message.id if keyed else None
            try:
                await mail.send(message.body["to"], message.body["subject"], key)
            except mail.MailError as error:
                print(f"mail to {message.body['to']}, attempt {message.attempts}: {error}")
                message.retry(delaySeconds=FIRST_DELAY * 2 ** (message.attempts - 1))
            else:
                message.ack()

    async def report(self, batch):
        for message in batch.messages:
            # PUT under the message's id: a second time changes nothing.
            response = await fetch(
                f"{REPORTS}/{message.id}", method="PUT", body=json.dumps(message.body)
            )
            response.raise_for_status()
            message.ack()


async def read_address(request):
    """Return the address in a request's body, None if there is no plausible one."""
    try:
        body = json.loads(await request.text())
    except ValueError:
        return None
    address = body.get("email") if isinstance(body, dict) else None
    if not isinstance(address, str):
        return None
    local, _, domain = address.partition("@")
    return address if local and "." in domain and " " not in address else None


async def write_audit_line(line):
    response = await fetch(AUDIT, method="POST", body=line)
    response.raise_for_status()
