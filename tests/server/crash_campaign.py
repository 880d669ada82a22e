"""A server that is killed again and again, at moments that a seed decides.

Each round starts it over the state of the round before, sends it requests from several clients at
once, in some rounds has it load its code or its settings again, and kills it with SIGKILL. What a
client was told is noted, and what the Worker does it tells a ledger, another server on the network.
After the last round the server runs until nothing is left to do, and then

1. every message that was accepted was delivered;
2. every Workflow that was accepted is complete, and no step ran again once the next one had begun;
3. a row that was accepted is in the database, and a count that an object told was never told again.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import httpx
from wire import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
{
  "name": "campaign", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs", "max_batch_timeout": 0, "max_retries": 100}],
  },
  "workflows": [{"name": "flow", "binding": "FLOW", "class_name": "Flow"}],
  "durable_objects": {"bindings": [{"name": "COUNTER", "class_name": "Counter"}]},
  "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
  "d1_databases": [{"binding": "DB", "database_name": "db", "database_id": "db"}],
}
"""
WORKER = """
from urllib.parse import urlsplit
from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint, fetch


async def note(*words):
    await fetch({ledger!r} + "/".join(map(str, words)), method="POST")


class Counter(DurableObject):
    async def add(self):
        count = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        return count


class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        for number in range(4):
            # A kill counts as an attempt, as in production: of these there are many.
            @step.do(f"step {{number}}", config={{"retries": {{"limit": 1000, "delay": 1000}}}})
            async def work():
                await note("steps", event["instanceId"], number)
                return number
            await work()
            if number == 1:
                await step.sleep("nap", "100 milliseconds")


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        _, what, name = urlsplit(request.url).path.split("/")
        if what == "send":
            await self.env.JOBS.send(name)
        elif what == "flow":
            await self.env.FLOW.create(id=name)
        elif what == "status":
            instance = await self.env.FLOW.get(name)
            return Response(repr(await instance.status()))
        elif what == "count":
            return Response(str(await self.env.COUNTER.getByName("one").add()))
        elif what == "row":
            if name == "all":
                rows = await self.env.DB.prepare("SELECT name FROM rows").all()
                return Response.json([row["name"] for row in rows.results])
            create = "CREATE TABLE IF NOT EXISTS rows (name TEXT)"
            await self.env.DB.prepare(create).run()
            await self.env.DB.prepare("INSERT INTO rows VALUES (?)").bind(name).run()
        return Response("accepted", status=202)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            await note("delivered", message.body)
"""
_CLIENTS = 4
_WHAT = ("send", "send", "flow", "count", "row")


class Ledger:
    """A server that notes the path of each request, in the order in which they come."""

    def __init__(self) -> None:
        self.noted: list[list[str]] = []
        noted = self.noted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                noted.append(self.path.strip("/").split("/"))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 500  # or requests that come at once wait for seconds
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass
class Campaign:
    """The rounds over one state, and what clients were told in them."""

    folder: Path
    seed: int
    ledger: Ledger
    accepted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    counts: list[int] = field(default_factory=list)
    kills: int = 0

    def prepare(self) -> None:
        """Write the project."""
        (self.folder / "src").mkdir(parents=True)
        (self.folder / "wrangler.jsonc").write_text(CONFIG)
        self._write_worker("")

    def _write_worker(self, comment: str) -> None:
        # In one step, as editors do it: what is half written would be an error.
        new = self.folder / "entry.new"
        new.write_text(WORKER.format(ledger=self.ledger.url) + comment)
        new.replace(self.folder / "src" / "entry.py")

    def round(self, number: int) -> None:
        """Start the server, use it, kill it."""
        chance = random.Random(f"{self.seed} {number}")
        with ServerProcess(self.folder) as server:
            asyncio.run(self._use(server, number, chance))
            self.kills += 1

    def finish(self) -> None:
        """Let everything come to its end, and check what was promised."""
        with ServerProcess(self.folder) as server:
            for _ in range(3):
                server.advance("1 hour")
            rows = server.client.get("/row/all").json() if self.accepted["row"] else []
            problem = server.client.get("/cdn-cgi/emulator/status").json()["problem"]
            assert problem is None
            statuses = {
                name: server.client.get(f"/status/{name}").text for name in self.accepted["flow"]
            }
            assert server.stop() == 0
        self._check(rows, statuses)

    def _check(self, rows: list[str], statuses: dict[str, str]) -> None:
        noted = list(self.ledger.noted)
        delivered = {words[1] for words in noted if words[0] == "delivered"}
        lost = [name for name in self.accepted["send"] if name not in delivered]
        assert not lost, f"messages lost: {lost}"
        steps: dict[str, list[int]] = defaultdict(list)
        for words in noted:
            if words[0] == "steps":
                steps[words[1]].append(int(words[2]))
        for name in self.accepted["flow"]:
            ran, status = steps[name], statuses[name]
            assert "complete" in status, f"the Workflow {name} is {status} after {ran}"
            assert ran[-1] == 3, f"the Workflow {name} stopped at {ran}: {status}"
        for name, ran in steps.items():
            assert ran == sorted(ran), f"a saved step of {name} ran again: {ran}"
        missing = [name for name in self.accepted["row"] if name not in rows]
        assert not missing, f"rows lost: {missing}"
        assert len(self.counts) == len(set(self.counts)), f"a count was told twice: {self.counts}"

    async def _use(self, server: ServerProcess, number: int, chance: random.Random) -> None:
        # By what was answered and not by time, which a busy machine has another measure of.
        answers = asyncio.Semaphore(0)
        clients = [
            asyncio.create_task(self._client(server.url, f"{number}-{client}", chance, answers))
            for client in range(_CLIENTS)
        ]
        end = chance.randrange(10, 100)
        change = chance.choice((None, "code", "settings")), chance.randrange(end)
        for count in range(end):
            await answers.acquire()
            if change == ("code", count):
                self._write_worker(f"# round {number}\n")
            if change == ("settings", count):
                (self.folder / ".dev.vars").write_text(f"ROUND=round-{number}\n")
        await asyncio.sleep(chance.uniform(0, 0.02))
        server.process.kill()
        await asyncio.gather(*clients)

    async def _client(
        self, url: str, name: str, chance: random.Random, answers: asyncio.Semaphore
    ) -> None:
        count = 0
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
            while True:
                what, count = chance.choice(_WHAT), count + 1
                try:
                    answer = await client.post(f"/{what}/{name}-{count}")
                except httpx.HTTPError:
                    return
                answers.release()
                if what == "count" and answer.status_code == 200:
                    self.counts.append(int(answer.text))
                elif answer.status_code == 202:
                    self.accepted[what].append(f"{name}-{count}")
