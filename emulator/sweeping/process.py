"""Another Python process, with a PYTHONHASHSEED of its own, that makes a run when it is told to.

Theory of operation. A fresh interpreter is given the path of this one and a job: the name of the
function that serves (`channel.py` has its side). Commands go to it as lines of JSON, over the pipe
that is its standard input until it takes that away from user code; it ends when the pipe does, so
that it does not outlive this process. Its answers are lines of a file, because a file can be looked
at without waiting on every system. Whatever goes wrong is `Unable`, with the reason.

`load` prepares a run and may take its time beside whatever happens here; `run` makes it, and is
sent only while nothing of the user's runs here: two runs at once might meet in a file or a port.

Here everything that takes time is a generator, which yields whenever it would wait.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import sleep
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from emulator.sweeping.account import Account

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_T = TypeVar("_T")

Waiting: TypeAlias = "Generator[None, None, _T]"
"""Work that yields each time it would wait; `wait` does it."""

# Set in the other process, which must not start further ones: "loading", then "running".
ROLE: Final = "WORKERS_EMULATOR_OTHER_PROCESS"
# Seconds. A process that has not answered by then never will; a busy machine may take some.
PATIENCE: Final = 60.0
_PAUSE: Final = 0.002
# What would have the other process measured, and cost more than the run itself.
_NOT_INHERITED: Final = ("COV_CORE_", "COVERAGE_PROCESS_")
_START: Final = (
    "import json, sys; from importlib import import_module as load; "
    "job = json.load(open(sys.argv[1], encoding='utf-8')); sys.path[:] = job['path']; "
    "load('emulator.sweeping.channel').main(job)"
)
_LAST_LINES: Final = 5


class Unable(Exception):
    """Why the other process could not make its run."""


def is_other() -> bool:
    """Whether this process is one that another one has started for its determinism check."""
    return ROLE in os.environ


def is_loading() -> bool:
    """Whether this is such a process, and imports what it is to run."""
    return os.environ.get(ROLE) == "loading"


def cannot_start() -> str:
    """Return why no other process can be started from here; empty if one can."""
    if is_other():
        return "this is such a process itself"
    if not sys.executable:
        return "the path of the Python interpreter is not known here"
    if "pydevd" in sys.modules:
        return "a debugger is attached, which would stop in the other process too"
    return ""


class OtherProcess:
    """One other process. Raises `Unable` if it cannot be started.

    `serve` is the function in it that answers (`module:name`), `job` what it is given, beside the
    `path` for files of its own; it starts in `folder`.
    """

    def __init__(
        self,
        serve: str,
        hash_seed: int,
        *,
        job: Mapping[str, Any] = MappingProxyType({}),
        folder: Path | None = None,
    ) -> None:
        self.hash_seed = hash_seed
        self.hangs = False  # it was ended because it gave no answer
        self._process: Popen[bytes] | None = None
        self._pending = ""
        self._number = 0
        try:
            self._folder = tempfile.TemporaryDirectory(
                prefix="workers-emulator-", ignore_cleanup_errors=True
            )
            self.path = Path(self._folder.name)
            answers = self.path / "answers"
            answers.touch()
            self._answers = answers.open(encoding="utf-8")
            self._process = self._start(serve, hash_seed, job, folder)
        except OSError as error:
            self.close()
            raise Unable(f"another process could not be started: {error}") from error

    def _start(
        self, serve: str, hash_seed: int, job: Mapping[str, Any], folder: Path | None
    ) -> Popen[bytes]:
        written = {
            "serve": serve,
            "folder": str(self.path),
            "path": list(map(str, sys.path)),
            **job,
        }
        path = self.path / "job.json"
        path.write_text(json.dumps(written), "utf-8")
        with (self.path / "log").open("wb") as log:
            return Popen(
                # -P: a module of the working directory is not to be taken for json.
                [sys.executable, *_flags(), "-P", "-c", _START, str(path)],
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=log,
                env=_environment(hash_seed),
                cwd=folder,
                # A Ctrl-C is for this process, which ends the other one.
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        """Whether it can be told something."""
        return self._process is not None and self._process.poll() is None

    def tell(self, verb: str, **command: Any) -> int:
        """Send a command; return its number, with which the answer comes."""
        self._number += 1
        line = json.dumps({"number": self._number, "verb": verb, "patience": PATIENCE, **command})
        try:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise Unable(self._end()) from None
        return self._number

    def answer(self, number: int, doing: str) -> Waiting[dict[str, Any]]:
        """Wait for the answer to a command; `doing` says what takes its time."""
        # Pauses are counted: a clock may be frozen by a test.
        for _ in range(int(PATIENCE / _PAUSE)):
            ended = self._process is None or self._process.poll() is not None
            for answer in self._read():
                if answer["number"] == number:
                    if "unable" in answer:
                        raise Unable(answer["unable"])
                    return answer
            if ended:
                raise Unable(self._end())
            yield
        self.hangs = True
        self.close()
        raise Unable(f"the other process was {doing} for {PATIENCE:g} s, and not done with it")

    def _read(self) -> list[dict[str, Any]]:
        *lines, self._pending = (self._pending + self._answers.read()).split("\n")
        return [json.loads(line) for line in lines]

    def _end(self) -> str:
        """How the process ended, with the last words of its errors."""
        code = self._process.wait() if self._process is not None else None
        try:
            said = (self.path / "log").read_text("utf-8", "replace").split("\n")
        except OSError:
            said = []
        last = "\n".join([line for line in said if line.strip()][-_LAST_LINES:])
        return f"the other process ended with the status {code}{': ' if last else ''}{last}"

    def close(self, patience: float = 0.0) -> None:
        """End the process, which has so many seconds to take down what it has set up."""
        process, self._process = self._process, None
        if process is not None:
            _end(process, patience)
        if hasattr(self, "_answers"):
            self._answers.close()
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _end(process: Popen[bytes], patience: float) -> None:
    assert process.stdin is not None
    try:
        process.stdin.close()  # which it takes as its end
    except OSError:
        pass
    try:
        if patience:
            process.wait(patience)
    except TimeoutExpired:
        pass
    if process.poll() is None:
        try:
            # With what it has started itself.
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, OSError):  # Windows has no groups; or it has ended just now
            process.kill()
    process.wait()


def _flags() -> list[str]:
    """The options of this interpreter, but those that make it deaf to the environment."""
    from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

    flags: list[str] = _args_from_interpreter_flags()
    return [flag for flag in flags if flag not in ("-E", "-I")]


def _environment(hash_seed: int) -> dict[str, str]:
    return {**inherited(), "PYTHONHASHSEED": str(hash_seed), ROLE: "loading"}


def inherited() -> dict[str, str]:
    """Return what another process gets of the environment of this one."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
    }


def run_in(process: OtherProcess, loading: int) -> Waiting[Account]:
    """Let a process that was told to load make its run; raises `Unable`."""
    yield from process.answer(loading, "loading the scenario")
    answer = yield from process.answer(process.tell("run"), "running the scenario")
    return Account.read(answer["account"])


def wait(waiting: Waiting[_T]) -> _T:
    """Do what waits, and return its result."""
    with closing(waiting):
        while True:
            try:
                next(waiting)
            except StopIteration as end:
                result: _T = end.value
                return result
            sleep(_PAUSE)


async def wait_in_loop(waiting: Waiting[_T]) -> _T:
    """Like `wait`, from a coroutine, which may be cancelled meanwhile."""
    import asyncio

    with closing(waiting):
        while True:
            try:
                next(waiting)
            except StopIteration as end:
                result: _T = end.value
                return result
            # `asyncio.sleep` would not wait on a loop whose time is virtual.
            sleep(_PAUSE)  # noqa: ASYNC251
            await asyncio.sleep(0)
