"""The consumer as it is often written: it adds up a batch, and gives the batch a key.

The key tells the sink that it had *this batch* before. But a batch is nothing that lasts: what is
delivered again comes in another order, in two parts, or with new events between. Then the key is
another one, and what was added is added again.
"""

import hashlib
from collections import Counter

import entry
import sink
from events import hour_and_page


class Default(entry.Default):
    async def queue(self, batch, env, ctx):
        counts = Counter(hour_and_page(message.body) for message in batch.messages)
        sums = [
            {"hour": hour, "page": page, "views": views} for (hour, page), views in counts.items()
        ]
        ids = ",".join(message.id for message in batch.messages)
        await sink.add_sums(sums, key=hashlib.sha256(ids.encode()).hexdigest())
