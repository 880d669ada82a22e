"""The file of a recording: one JSON object a line, appended, and there as soon as it is written.

1. Only its owner can read it (0600), whatever the umask says.
2. A file that is there and is no recording is left alone, and so is one that another server writes.
   A recording is gone on with; a last line that was torn by a power cut is cut off.
3. Each line is handed to the operating system at once: a process that is killed loses the line it
   was writing. It is not flushed to the disk.
4. What cannot be written (a full disk) is told once and ends the recording: what is there stays a
   sound recording, and the server goes on without.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nobody there keeps two servers from one file
    fcntl = None  # type: ignore[assignment]

MARK: Final = "recording"
"""The key of a recording's first line, which has the version of its format."""

_MODE: Final = 0o600
_CHUNK: Final = 65_536
# Where there are such: a pipe must not keep us waiting, Windows must not change line ends.
_FLAGS: Final = ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")


class RecordingFile:
    """An open recording; `is_new` where it has no line yet.

    Raises `RecordingError` for a file that cannot be one.
    """

    def __init__(self, path: Path, on_trouble: Callable[[str], None]) -> None:
        self.path = path
        self._on_trouble = on_trouble
        self._file: int | None = _open(path)
        try:
            self._length = _sound_length(self._file, path)
        except BaseException:
            self.close()
            raise
        self.is_new = self._length == 0

    def write(self, entry: dict[str, Any]) -> None:
        """Append an entry; never raises for what the system refuses."""
        if self._file is None:
            return
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            self._length += len(line)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Let go of the file; closing twice does nothing."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _give_up(self, error: OSError) -> None:
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._length)
        except OSError:
            pass  # a torn last line is read past
        self.close()
        self._on_trouble(
            f"{self.path} cannot be written: {error.strerror or error}; nothing is recorded any "
            "more, what it has so far stays"
        )


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does; no, where it cannot be read."""
    try:
        with path.open("rb") as file:
            return _has_mark(file.read(_CHUNK))
    except OSError:
        return False


def _has_mark(beginning: bytes) -> bool:
    try:
        head = json.loads(beginning.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(head, dict) and MARK in head


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    for name in _FLAGS:
        flags |= getattr(os, name, 0)
    try:
        file = os.open(path, flags, _MODE)
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error.strerror or error}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise RecordingError(f"{path} is no file; give the path of one to record into")
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        text = f"another server records into {path}: stop that one, or give another file"
        raise RecordingError(text) from None
    except BaseException:
        os.close(file)
        raise
    return file


def _sound_length(file: int, path: Path) -> int:
    """The length of a recording without a torn last line; raises for what is no recording."""
    size = os.fstat(file).st_size
    if size == 0:
        os.chmod(path, _MODE)
        return 0
    if not _has_mark(_part(file, 0, _CHUNK)):
        raise RecordingError(
            f"{path} is there and is no recording: give another file, or move this one away"
        )
    os.chmod(path, _MODE)
    end = size
    while end and _part(file, end - 1, end) != b"\n":
        start = max(end - _CHUNK, 0)
        found = _part(file, start, end).rfind(b"\n")
        end = start + found + 1 if found >= 0 else start
    if end < size:
        os.ftruncate(file, end)
    return end


def _part(file: int, start: int, end: int) -> bytes:
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, end - start)
