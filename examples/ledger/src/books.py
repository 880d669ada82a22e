"""Three ways to add a payment to a balance once; two of them work.

The key says which payment it is. It comes again when the bank repeats itself, and when the queue
delivers a message again.
"""

from workers import DurableObject


class Book(DurableObject):
    """In a Durable Object: one call at a time, and both values are written, or neither."""

    async def add(self, key, amount):
        storage = self.ctx.storage
        if await storage.get(f"booked:{key}") is None:
            balance = (await storage.get("balance") or 0) + amount
            await storage.put({"balance": balance, f"booked:{key}": True})

    async def balance(self):
        return await self.ctx.storage.get("balance") or 0


class D1Book:
    """In D1: a batch is one transaction."""

    def __init__(self, env):
        self.db = env.DB

    async def add(self, key, amount):
        add = (
            "UPDATE account SET balance = balance + ?"
            " WHERE NOT EXISTS (SELECT 1 FROM booked WHERE key = ?)"
        )
        mark = "INSERT INTO booked (key) VALUES (?) ON CONFLICT DO NOTHING"
        await self.db.batch(
            [self.db.prepare(add).bind(amount, key), self.db.prepare(mark).bind(key)]
        )

    async def balance(self):
        return await self.db.prepare("SELECT balance FROM account").first("balance")


class KvBook:
    """In KV, which is wrong: a read may miss the last write, and two writes are two."""

    def __init__(self, env):
        self.kv = env.KV

    async def add(self, key, amount):
        if await self.kv.get(f"booked:{key}") is None:
            await self.kv.put("balance", str(await self.balance() + amount))
            await self.kv.put(f"booked:{key}", "yes")

    async def balance(self):
        return int(await self.kv.get("balance") or 0)
