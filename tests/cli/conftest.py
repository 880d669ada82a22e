"""The command line in a Worker project, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from signup_project import CONFIG, SCENARIO, WORKER

from emulator.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

# What the installed script is; in a virtual environment it lies beside Python.
SCRIPT = Path(sys.executable).with_name("workers-emulator")


class Cli:
    """Runs commands in a Worker project with a scenario."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("wrangler.jsonc", CONFIG)
        self.write("src/entry.py", WORKER)
        self.write("scenario.py", SCENARIO)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project; returns its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    def __call__(self, *arguments: str, code: int | None = None, stdin: str = "") -> Result:
        """Run a command in this process; `code` is the exit code it must have."""
        result = CliRunner().invoke(app, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        if code is not None:
            assert result.exit_code == code, result.output
        return result

    def script(
        self, *arguments: str, environment: dict[str, str] | None = None, module: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the installed script, or `python -m emulator`, in a process of its own."""
        program = [sys.executable, "-m", "emulator"] if module else [str(SCRIPT)]
        return subprocess.run(
            [*program, *arguments],
            cwd=self.path,
            env={**os.environ, "PYTHONHASHSEED": "random", **(environment or {})},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line in a project whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.modules)
    yield Cli(tmp_path)
    for name in [name for name in sys.modules if name not in before]:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
