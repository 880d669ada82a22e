"""The other end of `process.py`: takes commands, and answers them one after another."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from select import select
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any, Final

from emulator.sweeping.process import ROLE, Unable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.sweeping.account import Account


# Seconds after which a process that nobody needs ends; the next sweep starts another.
_IDLE: Final = 300.0


class Channel:
    """Commands from the process that started this one; `folder` is for files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._commands = _take_stdin()
        self._answers = (folder / "answers").open("a", encoding="utf-8")
        # Standard error may be captured, and then is no file of the system's.
        self._log = (folder / "log").open("a", encoding="utf-8")

    def serve(self, load: Callable[[dict[str, Any]], None], run: Callable[[], Account]) -> None:
        """Do what is told until there is nobody who could tell any more."""
        for command in self._read():
            os.environ[ROLE] = "loading" if command["verb"] == "load" else "running"
            # Longer than anybody waits for it: a run that never ends must not outlive its parent.
            faulthandler.dump_traceback_later(2 * command["patience"], exit=True, file=self._log)
            try:
                answer = self._do(command, load, run)
            finally:
                faulthandler.cancel_dump_traceback_later()
            self._answers.write(json.dumps({"number": command["number"], **answer}) + "\n")
            self._answers.flush()

    def _read(self) -> Iterator[dict[str, Any]]:
        pending = b""
        while _is_wanted(self._commands):
            chunk = os.read(self._commands, 65_536)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            yield from map(json.loads, lines)

    @staticmethod
    def _do(
        command: dict[str, Any],
        load: Callable[[dict[str, Any]], None],
        run: Callable[[], Account],
    ) -> dict[str, Any]:
        try:
            if command["verb"] == "load":
                load(command)
                return {}
            return {"account": run().written()}
        except Unable as why:
            return {"unable": str(why)}
        except BaseException as error:  # `sys.exit()` and `pytest.skip()` while importing
            return {"unable": "".join(format_exception_only(error)).strip()}


def _take_stdin() -> int:
    """Return the pipe that is standard input, and let user code read nothing there."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return pipe


def _is_wanted(pipe: int) -> bool:
    """Wait for a command; False if none has come for long."""
    if os.name == "nt":
        return True  # there a pipe cannot be waited for with a limit
    return bool(select([pipe], [], [], _IDLE)[0])


def main(job: dict[str, Any]) -> None:
    """Serve as the job says."""
    channel = Channel(Path(job["folder"]))
    module, _, name = job["serve"].partition(":")
    getattr(import_module(module), name)(job, channel)
    # Nothing of the user's code is to run any more; what it set up has been taken down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
