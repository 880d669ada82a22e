"""A Worker project to run pytest in, for the tests of the plugin."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from emulator.kernel import Kernel
from emulator.trace.kinds import misfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from _pytest.pytester import Pytester, RunResult

# A busy machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.register_profile("soak", deadline=None, max_examples=10_000)
settings.load_profile("unhurried")

CONFIG = """
{ // of the Worker under test
  "name": "signup", "main": "src/entry.py", "compatibility_date": "2026-09-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [{"binding": "EMAILS", "queue": "emails"}],
    "consumers": [{"queue": "emails"}],
  },
}
"""

WORKER = """
import json
import time
from urllib.parse import urlsplit

from workers import Response, WorkerEntrypoint, fetch

IDEMPOTENT = False
sent = set()


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        path = urlsplit(request.url).path
        if path == "/ok":
            return Response("ok")
        if path == "/time":
            return Response(str(time.time()))
        if path == "/boom":
            raise ValueError("boom")
        if path == "/log":
            print("a line of the Worker")
            return Response("logged")
        if path == "/ask":
            await fetch("https://ask.example/")
            return Response("asked")
        if path == "/spin":
            while True:
                pass
        data = await request.json()
        await self.env.EMAILS.send({"to": data["email"]})
        return Response.json({"queued": True}, status=202)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            if not (IDEMPOTENT and message.id in sent):
                body = json.dumps({"to": message.body.to})
                await fetch("https://mail.example/send", method="POST", body=body)
                sent.add(message.id)
            message.ack()
"""


class Project:
    """A folder with a Worker, whose tests run in a pytest of their own."""

    def __init__(self, pytester: Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path
        # Whether swept tests run in another pytest too, which takes as long as the first.
        self.elsewhere = False
        self.ini()
        self.worker()

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project; returns its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    def worker(self, folder: str = ".", *, idempotent: bool = False) -> None:
        """Write a wrangler config and the signup Worker."""
        code = WORKER.replace("IDEMPOTENT = False", f"IDEMPOTENT = {idempotent}")
        self.write(f"{folder}/wrangler.jsonc", CONFIG)
        self.write(f"{folder}/src/entry.py", code)

    def ini(self, *lines: str) -> None:
        """Write the ini file: these lines."""
        self.write("pytest.ini", "\n".join(("[pytest]", *lines, "")))

    def pytest(
        self, *arguments: str, plugins: Sequence[str] | None = ("respx",), stdin: bytes = b""
    ) -> RunResult:
        """Run pytest here, in a process of its own, with ours and these plugins.

        None stands for all that are installed, whose imports take longer than most tests.
        """
        loaded = [] if plugins is None else ["workers-emulator", *plugins]
        options = [option for plugin in loaded for option in ("-p", plugin)]
        if not self.elsewhere:
            options += ["-o", "emulator_determinism=in-process"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "300")  # No line of a summary is cut.
            if plugins is not None:
                patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            return self.pytester.run(
                sys.executable,
                *("-m", "pytest", "-p", "no:cacheprovider", *options, *arguments),
                timeout=300,
                stdin=stdin,
            )


# What was recorded in these tests that the table of kinds does not have.
_MISFITS: list[str] = []


@pytest.fixture(scope="session", autouse=True)
def recorded_events() -> Iterator[None]:
    """Hold what every emulator of this process records to the table of kinds."""
    close, reset = Kernel.close, Kernel.reset

    def check(kernel: Kernel) -> None:
        found = (misfit(event.kind, event.data) for event in kernel.trace)
        _MISFITS.extend(problem for problem in found if problem)

    def checked_close(self: Kernel) -> None:
        check(self)
        close(self)

    def checked_reset(self: Kernel) -> None:
        check(self)
        reset(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "close", checked_close)
        patch.setattr(Kernel, "reset", checked_reset)
        yield


@pytest.fixture(autouse=True)
def events_are_documented(recorded_events: None) -> Iterator[None]:
    """Fail the test in which an event was recorded that docs/trace.md does not describe."""
    yield
    found, _MISFITS[:] = list(_MISFITS), []
    assert found == []


@pytest.fixture
def project(pytester: Pytester) -> Project:
    """A Worker project; its tests are to be written."""
    return Project(pytester)
