"""Page views: a request is answered at once, its event reaches the sink in a batch of others."""

import asyncio
from urllib.parse import urlsplit

import sink
from events import group_ids, read_event
from pyodide.ffi import JsException
from workers import Response, WorkerEntrypoint

SEND_PAUSES = (1, 5)  # seconds between tries; background work has 30 in all
FIRST_DELAY = 30  # seconds; doubled at each attempt


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if urlsplit(request.url).path != "/event":
            return Response("not found", status=404)
        if request.method != "POST":
            return Response("use POST", status=405, headers={"Allow": "POST"})
        event = await read_event(request)
        if event is None:
            return Response.json({"error": "an event has an id, a page and a time"}, status=400)
        # The client does not wait for the queue. The price: its 202 promises nothing.
        self.ctx.waitUntil(self.collect(event))
        return Response.json({"accepted": event["id"]}, status=202)

    async def collect(self, event):
        for pause in SEND_PAUSES:
            try:
                await self.env.EVENTS.send(event)
            except JsException as error:
                # It may be in the queue all the same; twice does no harm.
                print(f"event {event['id']} is sent again in {pause} s: {error}")
                await asyncio.sleep(pause)
            else:
                return
        await self.env.EVENTS.send(event)

    async def queue(self, batch, env, ctx):
        events = [message.body for message in batch.messages]
        try:
            await sink.add_ids(group_ids(events))
        except sink.SinkError as error:
            print(f"flush of {len(events)} events: {error}")
            for message in batch.messages:
                message.retry(delaySeconds=FIRST_DELAY * 2 ** (message.attempts - 1))
        else:
            batch.ackAll()
