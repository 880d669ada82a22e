"""Which files a server watches, and how they were when they were loaded.

A Worker's Python files and its assets are *code*: they are loaded into the emulator that runs.
Configs, `.dev.vars` and `.env` are *settings*: they need another emulator over the same state.

The system tells of changes from the moment on at which it is asked to. What was saved between the
loading of a file and that moment is found by comparing: a `Seen` is taken before files are read,
another one when the watch stands, and whatever differs has changed.

A write within one tick of a file system's clock, up to two seconds, may leave a file's time as it
was. So files that are as young as that are compared by content too, as git does.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emulator import dotenv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from emulator.config import Settings

What = Literal["code", "settings"]

_NEVER: Final = ("__pycache__", "node_modules", ".git", ".venv", ".workers-emulator")
# Nanoseconds within which a file system may give two writes one time (FAT: two seconds).
_TICK: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched for one server: folders with all they hold, and single files."""

    code: tuple[Path, ...]
    assets: tuple[Path, ...]
    files: tuple[Path, ...]

    @classmethod
    def of(
        cls, configs: Iterable[Path], environment: str | None, settings: Settings | None
    ) -> Watched:
        """What matters to these configs; without settings, all code beside them."""
        files, code, assets = list(configs), [], []
        folders = dict.fromkeys(path.parent for path in files)
        for folder in folders:
            files += dotenv.candidates(folder, environment=environment)
        if settings is None:
            return cls(tuple(folders), (), tuple(files))
        for worker in settings.workers:
            if worker.root is not None:
                code.append(worker.root)
            if worker.assets is not None:
                assets.append(Path(worker.assets.directory))
        return cls(tuple(dict.fromkeys(code)), tuple(dict.fromkeys(assets)), tuple(files))

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders of which everything below may matter."""
        return tuple(dict.fromkeys((*self.code, *self.assets)))

    @property
    def folders(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The folders to watch with all they hold, and those to watch for what lies in them only.

        The folder around a root is among the latter: it tells when the root is made again.
        """
        deep = tuple(path for path in self.roots if path.is_dir())
        around = dict.fromkeys(path.parent for path in (*self.files, *self.roots))
        flat = (path for path in around if not any(path.is_relative_to(root) for root in deep))
        return deep, tuple(path for path in flat if path.is_dir())

    def what(self, path: str) -> What | None:
        """What has to be loaded again when this file changes; None for nothing."""
        changed = Path(path)
        if changed in self.files:
            return "settings"
        if any(part in _NEVER for part in changed.parts):
            return None
        if any(changed.is_relative_to(folder) for folder in self.assets):
            return "code"
        if changed.suffix == ".py" and any(changed.is_relative_to(root) for root in self.code):
            return "code"
        return None

    def present(self) -> Iterator[str]:
        """The files that matter and are there, in order."""
        yield from map(str, self.files)
        for root in self.roots:
            for folder, folders, names in os.walk(root):
                folders[:] = sorted(name for name in folders if name not in _NEVER)
                paths = (os.path.join(folder, name) for name in sorted(names))
                yield from (path for path in paths if self.what(path) == "code")


class _Look(NamedTuple):
    """A file as it was: whatever a write changes, and its content where that may not tell."""

    modified: int
    changed: int
    inode: int
    size: int
    digest: bytes | None


class Seen:
    """The files that matter, as they were at one moment."""

    def __init__(self, looks: dict[str, _Look]) -> None:
        self._looks = looks

    @classmethod
    def of(cls, watched: Watched, *, now: int | None = None) -> Seen:
        """Look at all of them; `now` is the machine's time in nanoseconds."""
        young = (time.time_ns() if now is None else now) - _TICK
        looks = ((path, _look(path, young)) for path in watched.present())
        return cls({path: look for path, look in looks if look is not None})

    def before(self, later: Seen) -> Seen:
        """All of both: of a file that both have, how this one saw it."""
        return Seen({**later._looks, **self._looks})

    def changed(self, watched: Watched) -> list[str]:
        """The files that matter and are not now as they were: other, new or gone."""
        now = {path: _look(path, None) for path in watched.present()}
        gone = [path for path in self._looks if path not in now and watched.what(path)]
        return [path for path in (*now, *gone) if self._differs(path, now.get(path))]

    def _differs(self, path: str, now: _Look | None) -> bool:
        was = self._looks.get(path)
        if was is None or now is None:
            return was is not now
        if was.digest is not None:
            return was.digest != _digest(path)
        return was != now


def _look(path: str, young: int | None) -> _Look | None:
    """How a file is, with its content if it is younger than `young`; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    times = found.st_mtime_ns, found.st_ctime_ns
    is_young = young is not None and max(times) >= young
    return _Look(*times, found.st_ino, found.st_size, _digest(path) if is_young else None)


def _digest(path: str) -> bytes:
    """What stands for a file's content; of one that cannot be read, nothing."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError:
        return b""
