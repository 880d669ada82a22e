"""A server in a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from types import TracebackType

SCRIPT = Path(sys.executable).with_name("workers-emulator")
_PATIENCE = 60


class ServerProcess:
    """`workers-emulator dev --json` on a free port; `lines` are what it printed so far."""

    def __init__(self, folder: Path, *options: str) -> None:
        environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
        self.process = subprocess.Popen(
            [str(SCRIPT), "dev", "--port", "0", "--json", *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._news: Queue[dict[str, Any] | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            ready = self.wait(lambda line: "url" in line)
        except BaseException:
            self.kill()
            raise
        self.url = str(ready["url"])
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=_PATIENCE)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._news.put(json.loads(line))
        self._news.put(None)

    def wait(self, wanted: Any) -> dict[str, Any]:
        """Wait for a line for which this is true."""
        for line in self.lines:
            if wanted(line):
                return line
        while True:
            try:
                line = self._news.get(timeout=_PATIENCE)
            except Empty:
                raise AssertionError(f"not printed: {self.lines[-20:]}") from None
            if line is None:
                raise AssertionError(f"it ended: {self.lines[-20:]} {self._errors()}")
            self.lines.append(line)
            if wanted(line):
                return line

    def said(self, text: str) -> dict[str, Any]:
        """Wait for the server to say this."""
        return self.wait(lambda line: text in line.get("server", ""))

    def advance(self, duration: str) -> None:
        """Move its clock."""
        answer = self.client.post("/cdn-cgi/emulator/clock", json={"advance": duration})
        assert answer.status_code == 200, answer.text

    def kill(self) -> None:
        """End it as a power cut would, but for the machine."""
        self.process.kill()
        self._ended()

    def stop(self, number: int = signal.SIGINT) -> int:
        """End it as Ctrl-C does; returns its exit code."""
        self.process.send_signal(number)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        while not self._news.empty():
            line = self._news.get()
            if line is not None:
                self.lines.append(line)
        self.close()
        return code

    def close(self) -> None:
        """Let go of its pipes."""
        if hasattr(self, "client"):
            self.client.close()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._ended()
