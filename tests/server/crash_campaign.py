"""A server that is killed again and again, at moments that a seed decides.

Each round starts it over the state of the round before, in some rounds after a start that was
killed on its way, sends it requests from several clients at once, in some rounds has it load its
code or its settings again, and kills it with SIGKILL. What a client was told is noted, and what the
Worker does it tells a ledger, another server on the network. After the last round the server runs
until nothing is left to do, and then

1. every message that was accepted was delivered, and so was what its consumer sent on;
2. every Workflow that was accepted is complete, and no step ran again once the ledger had heard,
   from outside the step, that it was over: by then it was saved;
3. rows, keys and objects that were accepted are there, and a count that an object told was never
   told again;
4. where nothing was killed or reloaded nothing was done twice: no message delivered, no step run.

What production may do again (a batch or a step that was under way) is counted.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import httpx
from wire import SCRIPT, ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
{
  "name": "campaign", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [
      {"binding": "JOBS", "queue": "jobs"}, {"binding": "RELAYED", "queue": "relayed"},
    ],
    "consumers": [
      {"queue": "jobs", "max_batch_timeout": 0, "max_retries": 100},
      {"queue": "relayed", "max_batch_timeout": 0, "max_retries": 100},
    ],
  },
  "workflows": [{"name": "flow", "binding": "FLOW", "class_name": "Flow"}],
  "durable_objects": {"bindings": [{"name": "COUNTER", "class_name": "Counter"}]},
  "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
  "kv_namespaces": [{"binding": "KEYS", "id": "keys"}],
  "r2_buckets": [{"binding": "BUCKET", "bucket_name": "bucket"}],
  "d1_databases": [{"binding": "DB", "database_name": "db", "database_id": "db"}],
}
"""
WORKER = """
import os
from urllib.parse import urlsplit
from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint, fetch


async def note(*words):
    # With the process: another one may do again what was under way.
    await fetch({ledger!r} + "/".join(map(str, (*words, os.getpid()))), method="POST")


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
            await note("saved", event["instanceId"], number)
            if number == 1:
                await step.sleep("nap", "100 milliseconds")


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        _, what, name = urlsplit(request.url).path.split("/")
        if what == "send":
            await self.env.JOBS.send(name)
        elif what == "batch":
            parts = [f"{{name}}-{{part}}" for part in range({parts})]
            await self.env.JOBS.sendBatch([{{"body": part}} for part in parts])
        elif what == "flow":
            await self.env.FLOW.create(id=name)
        elif what == "status":
            instance = await self.env.FLOW.get(name)
            return Response(repr(await instance.status()))
        elif what == "count":
            return Response(str(await self.env.COUNTER.getByName("one").add()))
        elif what == "key":
            if request.method == "GET":
                return Response(str(await self.env.KEYS.get(name)))
            await self.env.KEYS.put(name, name)
        elif what == "object":
            if request.method == "GET":
                found = await self.env.BUCKET.get(name)
                return Response("None" if found is None else await found.text())
            await self.env.BUCKET.put(name, name)
        elif what == "row":
            if name == "all":
                rows = await self.env.DB.prepare("SELECT name FROM rows").all()
                return Response.json([row["name"] for row in rows.results])
            create = "CREATE TABLE IF NOT EXISTS rows (name TEXT)"
            await self.env.DB.prepare(create).run()
            await self.env.DB.prepare("INSERT INTO rows VALUES (?)").bind(name).run()
        return Response("accepted", status=202)

    async def queue(self, batch, env, ctx):
        names = [message.body for message in batch.messages]
        if batch.queue == "relayed":
            await note("relayed", ",".join(names))
        else:
            await note("delivered", ",".join(names))
            await self.env.RELAYED.sendBatch([{{"body": name}} for name in names])
"""
_CLIENTS = 6
_PARTS = 10
_LONG = 600.0
# Of all rounds, those before which a start is killed on its way.
_KILLED_STARTS = 0.2
_WHAT = ("send", "send", "batch", "flow", "count", "row", "key", "object")


class Ledger:
    """A server that notes the path of each request, in the order in which they come.

    Of a path `/kind/name,name/...` each name is noted by itself.
    """

    def __init__(self) -> None:
        self.noted: list[list[str]] = []
        noted = self.noted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                kind, names, *rest = self.path.strip("/").split("/")
                noted.extend([kind, name, *rest] for name in names.split(","))
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
    # Processes in which nothing was reloaded, so that nothing may be done twice.
    calm: list[str] = field(default_factory=list)

    def prepare(self) -> None:
        """Write the project."""
        (self.folder / "src").mkdir(parents=True)
        (self.folder / "wrangler.jsonc").write_text(CONFIG)
        self._write_worker("")

    def _write_worker(self, comment: str) -> None:
        # In one step, as editors do it: what is half written would be an error.
        new = self.folder / "entry.new"
        new.write_text(WORKER.format(ledger=self.ledger.url, parts=_PARTS) + comment)
        new.replace(self.folder / "src" / "entry.py")

    def round(self, number: int) -> None:
        """Start the server, use it, kill it."""
        chance = random.Random(f"{self.seed} {number}")
        if chance.random() < _KILLED_STARTS:
            self._start_in_vain(chance.uniform(0, 1))
        with ServerProcess(self.folder) as server:
            asyncio.run(self._use(server, number, chance))
            self.kills += 1

    def _start_in_vain(self, seconds: float) -> None:
        command = [str(SCRIPT), "dev", "--port", "0"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.kill()
        self.kills += 1

    def finish(self) -> None:
        """Let everything come to its end, and check what was promised."""
        with ServerProcess(self.folder) as server:
            server.client.timeout = _LONG  # what is left over of all rounds may be much
            for _ in range(3):
                server.advance("1 hour")
            get = server.client.get
            assert get("/cdn-cgi/emulator/status").json()["problem"] is None
            there = {"row": get("/row/all").json() if self.accepted["row"] else []}
            for what in ("key", "object"):
                names = self.accepted[what]
                there[what] = [name for name in names if get(f"/{what}/{name}").text == name]
            statuses = {name: get(f"/status/{name}").text for name in self.accepted["flow"]}
            self.calm.append(str(server.process.pid))
            assert server.stop() == 0
        self._check_kept(there)
        self._check_messages()
        self._check_steps(statuses)
        assert len(self.counts) == len(set(self.counts)), f"a count was told twice: {self.counts}"

    @property
    def messages(self) -> list[str]:
        """The bodies of all messages that were accepted."""
        parts = range(_PARTS)
        batches = self.accepted["batch"]
        return [
            *self.accepted["send"],
            *(f"{name}-{part}" for name in batches for part in parts),
        ]

    def noted(self, *kinds: str) -> list[list[str]]:
        """What the ledger heard of these kinds, in order."""
        return [words for words in list(self.ledger.noted) if words[0] in kinds]

    @property
    def saved(self) -> int:
        """How many steps the ledger heard to be over."""
        return len({tuple(words[1:-1]) for words in self.noted("saved")})

    def again(self, kind: str) -> int:
        """How often something was done once more, as production may where power was cut."""
        done = [tuple(words[1:-1]) for words in self.noted(kind)]
        return len(done) - len(set(done))

    def _check_kept(self, there: dict[str, list[str]]) -> None:
        for what, found in there.items():
            kept = set(found)
            missing = [name for name in self.accepted[what] if name not in kept]
            assert not missing, f"lost of kind {what}: {missing}"

    def _check_messages(self) -> None:
        for kind in ("delivered", "relayed"):
            heard = {words[1] for words in self.noted(kind)}
            lost = [name for name in self.messages if name not in heard]
            assert not lost, f"messages never {kind}: {lost}"
        self._check_calm("delivered")

    def _check_steps(self, statuses: dict[str, str]) -> None:
        steps: dict[str, list[str]] = defaultdict(list)
        for kind, name, number, _ in self.noted("steps", "saved"):
            assert kind == "saved" or f"saved {number}" not in steps[name], (
                f"step {number} of {name} ran again after {steps[name]}"
            )
            steps[name].append(f"{kind} {number}")
        for name in self.accepted["flow"]:
            ran, status = steps[name], statuses[name]
            assert "complete" in status, f"the Workflow {name} is {status} after {ran}"
            assert "saved 3" in ran, f"the Workflow {name} stopped at {ran}: {status}"
        self._check_calm("steps")

    def _check_calm(self, kind: str) -> None:
        """Nothing was done twice by one process that was not told to reload."""
        calm = {process for process in self.calm if self.calm.count(process) == 1}
        done = Counter(tuple(words) for words in self.noted(kind) if words[-1] in calm)
        twice = [words for words, count in done.items() if count > 1]
        assert not twice, f"done twice by one process: {twice}"

    async def _use(self, server: ServerProcess, number: int, chance: random.Random) -> None:
        # By what was answered and not by time, which a busy machine has another measure of.
        answers = asyncio.Semaphore(0)
        clients = [
            asyncio.create_task(self._client(server.url, f"{number}-{client}", chance, answers))
            for client in range(_CLIENTS)
        ]
        end = chance.randrange(10, 150)
        change = chance.choice((None, "code", "settings")), chance.randrange(end)
        if change[0] is None:
            self.calm.append(str(server.process.pid))
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
