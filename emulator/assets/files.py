"""The files of a folder, as they would be deployed.

A URL is looked up among the names that were found, and never joined to a path: what is outside the
folder cannot be asked for. A link to a file is deployed as the file, as wrangler does; a link to a
folder is not followed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.assets.content_types import content_type

if TYPE_CHECKING:
    from collections.abc import Iterator

_IGNORE: Final = ".assetsignore"
HEADERS: Final = "_headers"
REDIRECTS: Final = "_redirects"
_SPECIAL: Final = (_IGNORE, HEADERS, REDIRECTS)
_LARGEST: Final = 25 * 1_048_576  # bytes
_MOST: Final = 100_000


class Asset(NamedTuple):
    """A file that is served."""

    body: bytes
    content_type: str | None
    etag: str


class _Seen(NamedTuple):
    """How a file was when the folder was read."""

    size: int
    changed: int


class Files:
    """The assets in a folder; they are read when they are asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._all = dict(_walk(directory))
        ignored = _ignored(directory, list(self._all))
        self._names = {f"/{name}": name for name in self._all if name not in ignored}
        self._assets: dict[str, Asset] = {}
        self.problems = tuple(self._problems())

    def exists(self, path: str) -> bool:
        """Whether there is a file at a decoded path."""
        return path in self._names

    def get(self, path: str) -> Asset:
        """Return the file at a decoded path; `exists` was asked."""
        asset = self._assets.get(path)
        if asset is None:
            body = (self._directory / self._names[path]).read_bytes()
            kind = content_type(path)
            digest = hashlib.sha256(body + path.rpartition(".")[2].encode()).hexdigest()
            asset = self._assets[path] = Asset(body, kind, digest[:32])
        return asset

    def special(self, name: str) -> str:
        """Return the text of `_headers` or `_redirects`; empty where there is none."""
        if name not in self._all:
            return ""
        return (self._directory / name).read_text("utf-8", "replace")

    def is_current(self) -> bool:
        """Whether the folder is as it was when it was read."""
        return dict(_walk(self._directory)) == self._all

    def _problems(self) -> Iterator[str]:
        if len(self._names) > _MOST:
            yield (
                f"{self._directory} has {len(self._names)} files; Cloudflare Workers supports up "
                f"to {_MOST} assets in a version"
            )
        for path, name in self._names.items():
            size = self._all[name].size
            if size > _LARGEST:
                yield (
                    f"{path} has {size} bytes; Cloudflare Workers supports assets with sizes of up "
                    "to 25 MiB"
                )
            if _leads_out(self._directory, name):
                yield f"{path} is a link to a file outside {self._directory}, which is deployed"
        if "/_worker.js" in self._names:
            yield "_worker.js is among the assets, which wrangler refuses: add it to .assetsignore"


def _walk(directory: Path) -> Iterator[tuple[str, _Seen]]:
    """Yield each file below a folder, by its name with slashes, in order."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                found = path.stat()
            except OSError:
                continue  # a link that leads nowhere
            if path.is_file():
                relative = path.relative_to(directory).as_posix()
                yield relative, _Seen(found.st_size, found.st_mtime_ns)


def _ignored(directory: Path, names: list[str]) -> frozenset[str]:
    if _IGNORE not in names:
        return frozenset(_SPECIAL)
    from pathspec import GitIgnoreSpec

    text = (directory / _IGNORE).read_text("utf-8", "replace")
    spec = GitIgnoreSpec.from_lines([*(f"/{name}" for name in _SPECIAL), *text.splitlines()])
    return frozenset(spec.match_files(names))


def _leads_out(directory: Path, name: str) -> bool:
    path = directory / name
    return path.is_symlink() and not path.resolve().is_relative_to(directory.resolve())
