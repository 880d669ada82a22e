"""A development server in a process of its own, for clients that need a port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from served_project import Project

_READY = re.compile(r"ready on (http://\S+)")


@contextmanager
def running(project: Project) -> Iterator[str]:
    """Run `workers-emulator dev` on a free port; yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator", "dev", "--port", "0"],
        cwd=project.path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield _address(process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        found = _READY.search(line)
        if found:
            return found[1].replace("127.0.0.1", "localhost")
    raise AssertionError(f"the server did not start:\n{seen}")
