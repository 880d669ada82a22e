"""A shop that is served and recorded in this process, repeated, and printed as a test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from served_project import Project, Served

from emulator.cli.app import app
from emulator.recording.reading import read

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    from click.testing import Result

    from emulator.recording.entries import Recording

CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "vars": {"OUTSIDE": "%s"},
  "kv_namespaces": [{"binding": "STOCK", "id": "stock"}],
  "r2_buckets": [{"binding": "FILES", "bucket_name": "files"}],
  "d1_databases": [{"binding": "DB", "database_name": "shop", "database_id": "shop-db"}],
  "queues": {
    "producers": [{"binding": "MAILS", "queue": "mails"}],
    "consumers": [{"queue": "mails", "max_batch_timeout": 2}],
  },
  "durable_objects": {"bindings": [{"name": "COUNTER", "class_name": "Counter"}]},
  "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
  "workflows": [{"name": "delivery", "binding": "DELIVERY", "class_name": "Delivery"}],
}
"""
WORKER = """
import asyncio
import json
import time
import uuid
from urllib.parse import urlsplit

from js import ReadableStream, WebSocketPair
from pyodide.ffi import create_proxy, to_js
from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint, fetch

calls = 0


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        global calls
        calls += 1
        path = urlsplit(request.url).path
        if request.headers.get("upgrade") == "websocket":
            return self.echo()
        if path == "/orders":
            order = await request.text()
            answer = await fetch(f"{self.env.OUTSIDE}/price", method="POST", body=order)
            await self.env.MAILS.send({"order": str(uuid.uuid4())})
            return Response.json({"price": await answer.text(), "at": time.time()}, status=201)
        if path == "/slow":
            await asyncio.sleep(3)
            return Response("slow")
        if path == "/time":
            return Response(str(time.time()))
        if path == "/twice":
            return Response(request.headers.get("x-twice"))
        if path == "/stream":
            return Response(ReadableStream.from_(chunks()))
        if path == "/boom":
            raise ValueError("boom")
        if path == "/calls":
            return Response(str(calls))
        if path == "/id":
            return Response(str(uuid.uuid4()))
        if path == "/key":
            if request.headers.get("authorization") != f"Bearer {self.env.API_KEY}":
                return Response("who are you?", status=401)
            return Response(f"your key is {self.env.API_KEY}")
        if path == "/body":
            return Response(await request.text())
        if path == "/stock":
            return Response(str(await self.env.STOCK.get("apples")))
        if path == "/users":
            found = await self.env.DB.prepare("SELECT count(*) AS n FROM users").first()
            return Response(str(found["n"]))
        if path == "/count":
            return Response(str(await self.env.COUNTER.getByName("one").add()))
        if path == "/down":
            try:
                await fetch(f"{self.env.OUTSIDE}/down")
            except OSError:
                return Response("it is down", status=502)
        if path == "/file":
            if request.method == "PUT":
                await self.env.FILES.put(
                    "notes.txt", await request.text(), customMetadata={"by": "ada"}
                )
            found = await self.env.FILES.get("notes.txt")
            by = found.customMetadata["by"]
            return Response(f"{await found.text()} by {by}, {found.etag}")
        return Response("hello")

    def echo(self):
        client, server = WebSocketPair.new().object_values()
        server.accept()

        async def answer(event):
            server.send(f"you said {event.data}")

        server.addEventListener("message", create_proxy(answer))
        return Response(None, status=101, web_socket=client)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            await fetch(f"{self.env.OUTSIDE}/mail", method="POST", body=message.body["order"])

    async def email(self, message, env, ctx):
        print("mail to", message.to)
        if message.to == "spam@example.com":
            message.setReject("no spam")

    async def scheduled(self, controller, env, ctx):
        print("cron", controller.cron)
        if controller.cron == "fail":
            raise ValueError("no")


async def chunks():
    for number in range(5):
        await asyncio.sleep(1)
        yield to_js(f"{number}".encode())


class Counter(DurableObject):
    async def add(self):
        count = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        return count


class Delivery(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("pack")
        async def pack():
            return "packed"

        await pack()
        return await step.wait_for_event("signed", "signature")
"""


class _Handler(BaseHTTPRequestHandler):
    def answer(self) -> None:
        outside: Any = self.server
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        with outside.heard:
            status, body = outside.answers.get(self.path, (200, b"ok"))
            outside.seen.append((self.command, self.path, content))
            outside.heard.notify_all()
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in outside.headers.get(self.path, {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard = threading.Condition()
        self.seen: list[tuple[str, str, bytes]] = []
        self.headers: dict[str, dict[str, str]] = {}
        self.answers: dict[str, tuple[int, bytes]] = {"/price": (200, b"42"), "/down": (0, b"")}


class Outside:
    """A real HTTP server; `seen` is what it was asked."""

    def __init__(self) -> None:
        self._server = _Server()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.seen = self._server.seen
        self.answers = self._server.answers
        self.headers = self._server.headers
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def wait_for(self, path: str, times: int = 1) -> None:
        """Wait until it was asked for a path so often; a busy machine may need some seconds."""

        def was_asked() -> bool:
            return [asked for _, asked, _ in self.seen].count(path) >= times

        with self._server.heard:
            assert self._server.heard.wait_for(was_asked, timeout=30), self.seen

    def __enter__(self) -> Outside:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Recorded(Project):
    """The shop's project; `file` is its recording."""

    def __init__(self, path: Path, outside: Outside) -> None:
        self.path = path
        self.outside = outside
        self.file = path / "shop.jsonl"
        self.write("wrangler.jsonc", CONFIG % outside.url)
        self.write("src/entry.py", WORKER)
        self.write(".dev.vars", 'API_KEY="k-12345-secret"\n')

    def record(self, visit: Callable[[Served], Awaitable[object]], **options: Any) -> Recording:
        """Serve the shop, let somebody visit it, and return what was recorded."""
        given = {"record": self.file, "outbound": "allow", "state": self.state, **options}

        async def serve() -> None:
            async with self.served(**given) as served:
                await visit(served)

        asyncio.run(serve())
        return read(self.file)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the recording."""
        return [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]

    def change(self, before: str, after: str) -> None:
        """Change the Worker's code."""
        code = (self.path / "src/entry.py").read_text("utf-8")
        assert before in code
        self.write("src/entry.py", code.replace(before, after))

    def run(self, *options: str, code: int = 0) -> Result:
        """Repeat the recording by the command line; `code` is the exit code it must have."""
        result = CliRunner().invoke(app, ["run", "--replay", str(self.file), *options])
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        assert result.exit_code == code, result.output
        return result

    def replayed(self, *options: str, code: int = 0) -> list[str]:
        """Repeat it, and return the lines that compare, without their margin."""
        told = self.told(*options, code=code)
        return [line for line in told if not line.startswith("note: ")]

    def told(self, *options: str, code: int = 0) -> list[str]:
        """The same, with notes."""
        lines = self.run(*options, code=code).stdout.splitlines()
        start = lines.index("replay") + 1
        end = lines.index("", start) if "" in lines[start:] else len(lines)
        return [line[2:].removeprefix("x ").strip() for line in lines[start:end]]

    def printed(self) -> str:
        """The recording as a test, also in `tests/test_printed.py`; its form is ruff's."""
        result = self.run("--as-test")
        file = self.write("tests/test_printed.py", result.stdout)
        format_ = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(file)]
        formatted = subprocess.run(format_, capture_output=True, text=True, check=False)
        assert formatted.returncode == 0, formatted.stdout
        return result.stdout

    def pytest(self, *, passes: bool = True) -> str:
        """Run the printed test in a process of its own."""
        environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert finished.returncode == (0 if passes else 1), finished.stdout + finished.stderr
        assert ("1 passed" if passes else "1 failed") in finished.stdout
        return finished.stdout
