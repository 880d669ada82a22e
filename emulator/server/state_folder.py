"""The folder that keeps what is durable of a server: `.workers-emulator` beside the config.

    state.db            queues, Workflows, KV and what else has records, in SQLite; `state.db-wal`
    state.db.databases  D1 and the SQLite of objects
    lock                held by the server that uses the folder, with its process id
    damaged-…           a state that could not be read, as it was

Only its owner can read it. The lock is the system's, which a process loses however it ends, so
that nobody ever has to delete a file. A state that is damaged is moved aside, never emptied.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock on the state file has to do
    fcntl = None  # type: ignore[assignment]

NAME: Final = ".workers-emulator"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600


class StateFolder:
    """The folder at `path`, used by this process from `acquire` to `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "state.db"
        self._lock: int | None = None

    def acquire(self) -> None:
        """Make the folder and lock it.

        Raises `StateError` where it cannot be written, or another server uses it.
        """
        try:
            self.path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            self._take_lock()
            ignore = self.path / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            # SQLite gives the files it makes beside it the same permissions.
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, _FILE_MODE))
            os.chmod(self.file, _FILE_MODE)
        except OSError as error:
            self.release()
            raise StateError(
                f"the state folder {self.path} cannot be used: {error.strerror or error}; give "
                "one that can be written with --state"
            ) from None

    def tell(self, url: str) -> None:
        """Write down for others who uses the folder."""
        if self._lock is not None:
            text = json.dumps({"pid": os.getpid(), "url": url}).encode()
            os.ftruncate(self._lock, 0)
            os.lseek(self._lock, 0, os.SEEK_SET)
            os.write(self._lock, text)

    def set_aside(self, day: str) -> Path:
        """Move a damaged state out of the way, into a folder whose name has the day."""
        number, target = 1, self.path / f"damaged-{day}"
        while target.exists():
            number += 1
            target = self.path / f"damaged-{day}-{number}"
        target.mkdir(mode=_FOLDER_MODE)
        for found in sorted(self.path.glob(f"{self.file.name}*")):
            found.rename(target / found.name)
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, _FILE_MODE))
        return target

    def release(self) -> None:
        """Let others use it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, _FILE_MODE)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            self.release()
            raise StateError(
                f"the state folder {self.path} is in use by another server{holder}: stop that "
                "one, or give this one another folder with --state"
            ) from None
        os.ftruncate(self._lock, 0)

    def _holder(self) -> str:
        """Who has the lock, as far as it told."""
        assert self._lock is not None
        found: Any = {}
        with suppress(OSError, ValueError):
            found = json.loads(os.read(self._lock, 4096) or b"{}")
        if not isinstance(found, dict) or "pid" not in found:
            return ""
        return f", process {found['pid']} on {found.get('url', 'another address')}"
