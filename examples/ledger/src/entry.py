"""A ledger: the bank announces payments, each of which is to be added to the balance once."""

from urllib.parse import urlsplit

from books import Book, D1Book, KvBook
from workers import Response, WorkerEntrypoint

__all__ = ["Book", "Default"]


def book_of(env, name):
    if name == "object":
        return env.BOOKS.getByName("book")
    return D1Book(env) if name == "d1" else KvBook(env)


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        name = urlsplit(request.url).path.strip("/")  # which of the three: object, d1 or kv
        if request.method == "POST":
            payment = await request.json()
            await self.env.PAYMENTS.send({"book": name, **payment})
            return Response("thank you", status=202)
        return Response.json({"balance": await book_of(self.env, name).balance()})

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            payment = message.body
            book = book_of(self.env, payment["book"])
            await book.add(payment["key"], payment["amount"])
            message.ack()
