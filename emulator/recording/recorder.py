"""Writes down what comes in to a development server, as it comes.

    recorder = Recorder(path, options, tell)       # raises `RecordingError`
    recorder.attach(emulator)                      # each emulator of the server, from its start
    watch = recorder.request(worker, request, …)   # and its like, where something comes in
    recorder.end(emulator)

An entry is written inside the simulation, at the instant at which what it tells takes effect: there
its virtual time is exact, and its place among the others. `entries.py` says what entries there are.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from emulator import __version__
from emulator.clock import moment
from emulator.errors import RecordingError
from emulator.recording.coding import body_to_json
from emulator.recording.file import MARK, RecordingFile
from emulator.recording.start_state import StartState
from emulator.recording.tape import Tape
from emulator.recording.watching import ActionWatch, RequestWatch, SocketWatch
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator.emulator import Emulator
    from emulator.kernel import Kernel
    from emulator.recording.watching import Receive, Scope, Send
    from emulator.runtime.host import WebRequest
    from emulator.secrets import Masker
    from emulator.server.options import Options

VERSION: Final = 1
MOST_BODY: Final = 8_388_608
"""The largest body, in bytes, that a recording holds; of larger ones it has size and digest."""
MOST_SHOWN: Final = 65_536
"""The largest body of an answer that is kept whole, and not as its digest."""


class Recorder:
    """Records one server into one file; `tell` says what goes wrong with it, once."""

    def __init__(self, path: Path, options: Options, tell: Callable[[str], None]) -> None:
        self._options = options
        self._state = StartState(options.state)
        self._file = RecordingFile(path, tell)
        self._before = None if self._file.is_new else _last_of(path)
        self._count = 0 if self._before is None else self._before.count
        self._kernel: Kernel | None = None
        # What is to be written when the simulation has its turn.
        self._soon: deque[Callable[[], None]] = deque()

    # -- what the server tells -------------------------------------------------------------------

    def attach(self, emulator: Emulator) -> None:
        """Record this emulator from now on, the first one or that of new settings.

        Raises `RecordingError` where the file holds what another state began with.
        """
        platform = emulator._platform
        again = self._kernel is not None
        self._write_all()
        self._kernel = kernel = platform.kernel
        facts = self._facts(emulator)
        if again:
            self._write("restart", process=platform.process, seed=kernel.seed, cause="settings")
        elif self._before is not None:
            self._before.check_goes_on(facts, self._file.path)
            self._write("restart", process=platform.process, seed=kernel.seed, cause="start")
        else:
            self._file.write(facts)
            for line in self._state.lines(kernel.trace.masker):
                self._file.write(line)
        del self._state
        self._state = StartState(None)
        if self._options.outbound == "allow":
            kernel.outbound.tape = Tape(self)

    def request(
        self, worker: str, request: WebRequest, first: Any, receive: Receive, send: Send
    ) -> RequestWatch:
        """Record a request that is about to be dispatched; `first` is its first message."""
        return RequestWatch(self, worker, request, first, receive, send)

    def socket(self, receive: Receive, send: Send) -> SocketWatch:
        """Record a WebSocket connection, once it begins."""
        return SocketWatch(self, receive, send)

    async def action(self, scope: Scope, receive: Receive, send: Send) -> ActionWatch:
        """Record a request for a control page that changes something."""
        watch = ActionWatch(self, scope, receive, send)
        await watch.read()
        return watch

    def reloaded(self) -> None:
        """Record that new code was loaded."""
        self.soon(lambda: self._write("reload"))

    def end(self, emulator: Emulator) -> None:
        """Record the end of the server, and close the file."""
        if self._kernel is not None and not emulator._closed:
            loop = emulator._platform.kernel.loop
            self._write_all()
            self._write("end", idle=not (loop.has_work or loop.in_flight))
        self._file.close()

    # -- for those who watch -----------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """The simulation that is recorded."""
        assert self._kernel is not None, "attached before anything comes in"
        return self._kernel

    @property
    def masker(self) -> Masker:
        """What masks the secrets of that simulation."""
        return self.kernel.trace.masker

    def soon(self, write: Callable[[], None]) -> None:
        """Call a function in the simulation, in order."""
        if not self.kernel.loop.is_closed():
            self._soon.append(write)
            self.kernel.loop.kernel_soon(self._write_next)

    def begin(self, kind: str, **facts: Any) -> int:
        """Write an entry that others refer to; return its number."""
        self._count += 1
        self._write(kind, n=self._count, **facts)
        return self._count

    def follow(self, kind: str, number: int, **facts: Any) -> None:
        """Write an entry about an earlier one."""
        self._write(kind, of=number, **facts)

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
        """Return headers as they are written."""
        masker = self.masker
        return [[masker(name), masker.named_header(name, value)] for name, value in pairs]

    def query(self, text: str) -> str:
        """Return the query of a control page, without the server's token."""
        if "token=" not in text:
            return self.masker(text)
        pairs = parse_qsl(text, keep_blank_values=True)
        return self.masker(urlencode([pair for pair in pairs if pair[0] != "token"]))

    def body(self, data: bytes) -> dict[str, Any]:
        """Return what an entry has of a body that came in: all of it, unless it is too large."""
        if not data:
            return {}
        if len(data) > MOST_BODY:
            return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return {"body": body_to_json(masked(data, self.masker))}

    def answer(self, data: bytes, *, whole: bool) -> dict[str, Any]:
        """Return what an entry has of the body of an answer: its digest, where it is not short."""
        data = masked(data, self.masker)
        if not whole:
            return {"cut": True}
        if len(data) <= MOST_SHOWN:
            return {"body": body_to_json(data)} if data else {}
        return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    # -- details -----------------------------------------------------------------------------------

    def _write_all(self) -> None:
        """Write what a simulation that is closed now would have written in its next turn."""
        while self._soon:
            self._write_next()

    def _write_next(self) -> None:
        if self._soon:
            self._soon.popleft()()

    def _write(self, kind: str, **facts: Any) -> None:
        at = write_datetime(moment(self.kernel.now))
        self._file.write({"kind": kind, "at": at, **facts})

    def _facts(self, emulator: Emulator) -> dict[str, Any]:
        options, platform = self._options, emulator._platform
        folder = self._file.path.absolute().parent
        return {
            MARK: VERSION,
            "by": f"workers-emulator {__version__}",
            "at": write_datetime(moment(platform.kernel.now)),
            "configs": [_relative(path, folder) for path in options.configs],
            "workers": {
                worker.name: worker.compatibility_date for worker in platform.settings.workers
            },
            "environment": options.environment,
            "profile": options.profile,
            "plan": options.plan,
            "outbound": options.outbound,
            "clock": options.clock,
            "seed": platform.kernel.seed,
            "process": platform.process,
        }


def masked(data: bytes, masker: Masker) -> bytes:
    """Return a body with its secrets masked."""
    try:
        return masker(data.decode()).encode()
    except UnicodeDecodeError:
        return masker.octets(data)


def _relative(path: Path, folder: Path) -> str:
    """A path as it is found from the recording, also on another machine."""
    return Path(os.path.relpath(path, folder)).as_posix()


class _Before:
    """What a recording that is gone on with has so far."""

    def __init__(self, head: Mapping[str, Any], process: int, count: int) -> None:
        self._head = head
        self._process = process
        self.count = count

    def check_goes_on(self, facts: Mapping[str, Any], path: Path) -> None:
        """Raise `RecordingError` unless the server goes on where the recording stopped."""
        hint = "give another file, or move this one away"
        for name in ("configs", "environment", "profile"):
            if facts[name] != self._head.get(name):
                raise RecordingError(
                    f"{path} is a recording of {name} {self._head.get(name)!r}, and this server "
                    f"has {facts[name]!r}: {hint}"
                )
        if facts["process"] != self._process + 1:
            raise RecordingError(
                f"{path} does not end where this server's state goes on: it is another state, or "
                f"a server ran on it without --record since then; {hint}"
            )


def _last_of(path: Path) -> _Before:
    from emulator.recording.reading import read

    recording = read(path)
    return _Before(recording.head.facts, recording.last_process, recording.last_number)
