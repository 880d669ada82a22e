"""Servers in processes of their own, for benchmarks: ours, and the local JavaScript runtime."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_READY: Final = re.compile(r"[Rr]eady on http://[^/\s]*:(\d+)")
_SCRIPT: Final = Path(sys.executable).with_name("workers-emulator")


class Server(NamedTuple):
    """A server that is ready: its process, and the port it listens on."""

    process: int
    port: int


def write_project(folder: Path, worker: str, config: str = "") -> None:
    """Write a Worker project; `config` is what its config has besides."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src" / "entry.py").write_text(worker)
    (folder / "wrangler.jsonc").write_text(
        '{"name": "bench", "main": "src/entry.py", "compatibility_date": "2026-10-01",'
        f' "compatibility_flags": ["python_workers"], {config}}}'
    )


@contextmanager
def ours(project: Path, *options: str) -> Iterator[Server]:
    """`workers-emulator dev` over a project."""
    with served([str(_SCRIPT), "dev", "--port", "0", *options], project) as server:
        yield server


@contextmanager
def served(command: Sequence[str], folder: Path) -> Iterator[Server]:
    """Run a command that says what it is ready on; it is ended with the block."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout
    said: list[str] = []
    try:
        for line in output:
            said.append(line)
            found = _READY.search(line)
            if found is not None:
                break
        else:
            raise RuntimeError(f"{command[0]} did not get ready: {''.join(said)}")
        # What it prints must go somewhere, or it would wait.
        Thread(target=lambda: [None for _ in output], daemon=True).start()
        yield Server(process.pid, int(found[1]))
    finally:
        process.terminate()
        process.wait(30)
