"""The consumer as it is often written: a loop that raises when a subscriber fails.

Then the whole batch is delivered again. The subscribers before the failing one get their webhook
again, each time under a new id; those behind it wait, and end as dead letters with it.
"""

import uuid

import entry
import webhook


class Default(entry.Default):
    async def deliver_all(self, batch):
        for message in batch.messages:
            webhook_id = str(uuid.uuid4())  # an id for each request, not for what it says
            subscriber, event = message.body["subscriber"], message.body["event"]
            response = await webhook.post(webhook_id, subscriber, event, self.env.SIGNING_SECRET)
            response.raise_for_status()

    async def queue(self, batch, env, ctx):
        if batch.queue == "deliveries-dlq":
            await super().queue(batch, env, ctx)
        else:
            await self.deliver_all(batch)
