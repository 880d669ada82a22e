"""Webhooks: an order's event goes to each subscriber, until that one has it or is given up."""

import asyncio
import hmac
import json
import re
from urllib.parse import urlsplit

import backoffice
import webhook
from workers import Response, WorkerEntrypoint

FIRST_DELAY = 30  # seconds; doubled at each attempt
LONGEST_DELAY = 24 * 60 * 60  # what Cloudflare allows
SEND_BATCH = 100  # messages, what Cloudflare allows; their 256,000 bytes are why
LARGEST_EVENT = 2_000  # bytes


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        path = urlsplit(request.url).path
        if path not in ("/orders", "/replay"):
            return Response("not found", status=404)
        if request.method != "POST":
            return Response("use POST", status=405, headers={"Allow": "POST"})
        token = request.headers.get("Authorization", "")
        if not hmac.compare_digest(token.encode(), f"Bearer {self.env.API_TOKEN}".encode()):
            return Response("who are you?", status=401)
        return await (self.fan_out(request) if path == "/orders" else self.replay())

    async def fan_out(self, request):
        event = read_event(await request.bytes())
        if event is None:
            return Response.json({"error": "an event is a small object with an id"}, status=400)
        deliveries = [
            {"subscriber": subscriber, "event": event}
            for subscriber in await backoffice.subscribers()
        ]
        await self.enqueue(deliveries)
        return Response.json({"deliveries": len(deliveries)}, status=202)

    async def enqueue(self, deliveries):
        """Make a message of each delivery, so that each has its own attempts, delays and ack."""
        for start in range(0, len(deliveries), SEND_BATCH):
            chunk = deliveries[start : start + SEND_BATCH]
            await self.env.DELIVERIES.sendBatch([{"body": delivery} for delivery in chunk])

    async def replay(self):
        """Send all parked deliveries again."""
        letters = await backoffice.parked()
        await self.enqueue([letter["delivery"] for letter in letters])
        # Only now: a delivery that is sent twice does no harm, one that is forgotten does.
        for letter in letters:
            await backoffice.unpark(letter["id"])
        return Response.json({"deliveries": len(letters)}, status=202)

    async def queue(self, batch, env, ctx):
        handle = self.park if batch.queue == "deliveries-dlq" else self.deliver
        # All at once: nobody waits for a slow subscriber. No error leaves `handle`, or it would
        # have the other messages delivered again.
        await asyncio.gather(*(handle(message) for message in batch.messages))

    async def deliver(self, message):
        subscriber, event = message.body["subscriber"], message.body["event"]
        # The same at each attempt, at a replay, and if the event is accepted twice.
        webhook_id = f"{event['id']}.{subscriber['id']}"
        try:
            response = await webhook.post(webhook_id, subscriber, event, self.env.SIGNING_SECRET)
            if response.status == 410:  # Gone: this subscriber wants no more
                await backoffice.unsubscribe(subscriber["id"])
        except OSError as error:  # TimeoutError is one
            try_again(message, repr(error))
        else:
            if response.ok or response.status == 410:
                message.ack()
            else:
                try_again(message, f"answer {response.status}", webhook.retry_after(response))

    async def park(self, message):
        try:
            await backoffice.park(message.id, message.body)
        except OSError as error:
            print(f"dead letter {message.id}: {error!r}")
            message.retry()  # after the queue's `retry_delay`
        else:
            message.ack()


def read_event(content):
    """Return the event in a request's body, None if there is none."""
    try:
        event = json.loads(content)
    except ValueError:
        return None
    name = event.get("id") if isinstance(event, dict) else None
    # The id becomes part of a header.
    plain = isinstance(name, str) and re.fullmatch(r"[\w-]{1,100}", name, re.ASCII)
    return event if plain and len(content) <= LARGEST_EVENT else None


def try_again(message, reason, wait=0):
    """Have a message delivered again, after the usual delay or `wait`, whichever is longer."""
    print(f"{message.body['subscriber']['id']}, attempt {message.attempts}: {reason}")
    back_off = FIRST_DELAY * 2 ** (message.attempts - 1)
    message.retry(delaySeconds=min(max(back_off, wait), LONGEST_DELAY))
