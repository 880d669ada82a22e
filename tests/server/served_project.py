"""A Worker project served in this process: a desk, its application, and a client for it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import httpx

from emulator.recording.recorder import Recorder
from emulator.server.application import Application
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

CONFIG = """
{
  "name": "demo", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs", "max_batch_timeout": 1}],
  },
  "triggers": {"crons": ["0 0 29 2 *"]},
}
"""
WORKER = """
from workers import Response, WorkerEntrypoint

VERSION = 1


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.method == "POST":
            await self.env.JOBS.send({"text": await request.text()})
            return Response("accepted", status=202)
        return Response(f"version {VERSION} of {request.url}")

    async def queue(self, batch, env, ctx):
        print("version", VERSION, [message.body["text"] for message in batch.messages])

    async def scheduled(self, controller, env, ctx):
        print("cron", controller.cron, controller.scheduledTime)
        if controller.cron == "fail":
            raise ValueError("no")
"""


class Project:
    """A Worker project on disk, and servers of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("wrangler.jsonc", CONFIG)
        self.write("src/entry.py", WORKER)

    def write(self, name: str, text: str) -> Path:
        """Write a file; returns its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    @property
    def state(self) -> Path:
        """The state file of its servers."""
        return self.path / "state.db"

    @asynccontextmanager
    async def served(
        self, *configs: str, token: str | None = None, **options: Any
    ) -> AsyncIterator[Served]:
        """Serve it; on a virtual clock, and in memory, unless told otherwise."""
        options = {"clock": "virtual", "seed": 0, "outbound": "deny", **options}
        paths = tuple(self.path / name for name in configs or ("wrangler.jsonc",))
        set_aside, record = options.pop("set_aside", None), options.pop("record", None)
        desk = Desk(Options(configs=paths, **options))
        desk.set_aside = set_aside
        news: list[tuple[str, bool]] = []
        desk.on_news = lambda text, bad: news.append((text, bad))
        if record is not None:
            desk.recorder = Recorder(record, desk.options, lambda text: news.append((text, True)))
        desk.start()
        application = Application(desk, Guard(token))
        transport = httpx.ASGITransport(application, raise_app_exceptions=True)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8787", trust_env=False
        ) as client:
            try:
                yield Served(desk, application, client, news)
            finally:
                desk.close()


class Served:
    """A server in this process."""

    def __init__(
        self,
        desk: Desk,
        application: Application,
        client: httpx.AsyncClient,
        news: list[tuple[str, bool]],
    ) -> None:
        self.desk = desk
        self.application = application
        self.client = client
        self.news = news

    @property
    def logs(self) -> list[str]:
        """What the Workers printed."""
        return [log.text for log in self.desk.emulator.logs]

    async def advance(self, duration: str) -> None:
        """Move the clock, by the control page."""
        answer = await self.client.post("/cdn-cgi/emulator/clock", json={"advance": duration})
        assert answer.status_code == 200, answer.text


class Connection:
    """A client of an ASGI application that sends and receives piece by piece."""

    def __init__(
        self,
        application: Callable[..., Awaitable[None]],
        path: str,
        *,
        method: str = "GET",
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [
                (name.encode(), value.encode())
                for name, value in (("host", "localhost:8787"), *headers)
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8787),
        }
        self.task = asyncio.ensure_future(application(scope, self.sent.get, self.received.put))

    def send(self, body: bytes = b"", *, more: bool = False) -> None:
        """Send a part of the body; without `more` the last one."""
        self.sent.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        """Close the connection."""
        self.sent.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> dict[str, Any]:
        """The next message of the answer."""
        return await asyncio.wait_for(self.received.get(), 10)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until something is true."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (what is waited for tells nobody)
            await asyncio.sleep(0)
