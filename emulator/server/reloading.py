"""Files that change: which of them matter, and what has to be loaded again.

A Worker's Python files and its assets are *code*: they are loaded into the emulator that runs.
Configs, `.dev.vars` and `.env` are *settings*: they need another emulator over the same state.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from emulator import dotenv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.config import Settings
    from emulator.server.desk import Desk

What = Literal["code", "settings"]

# Milliseconds in which changes that come together are taken together, and at which it looks.
_DEBOUNCE: Final = 200
_STEP: Final = 20
_NEVER: Final = ("__pycache__", "node_modules", ".git", ".venv", ".workers-emulator")


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
    def folders(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The folders to watch with all they hold, and those to watch for their own files only."""
        deep = tuple(path for path in (*self.code, *self.assets) if path.is_dir())
        flat = dict.fromkeys(path.parent for path in self.files)
        return deep, tuple(path for path in flat if path.is_dir() and path not in deep)

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


class Reloader:
    """Watches the files of a desk, and loads again what has changed, until it is cancelled."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._changed: dict[str, What] = {}
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Watch; raises `OSError` where the system cannot."""
        while True:
            watched = self._watched()
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                deep, flat = watched.folders
                for folders, recursive in ((deep, True), (flat, False)):
                    if folders:
                        group.create_task(self._watch(watched, folders, stop, recursive=recursive))
                await self._reload_until_elsewhere(watched)
                stop.set()

    def _watched(self) -> Watched:
        options = self._desk.options
        return Watched.of(options.configs, options.environment, self._desk.settings)

    async def _watch(
        self,
        watched: Watched,
        folders: tuple[Path, ...],
        stop: asyncio.Event,
        *,
        recursive: bool,
    ) -> None:
        from watchfiles import awatch

        def matters(_: Any, path: str) -> bool:
            return watched.what(path) is not None

        changes = awatch(
            *folders,
            watch_filter=matters,
            stop_event=stop,
            debounce=_DEBOUNCE,
            step=_STEP,
            recursive=recursive,
        )
        async for found in changes:
            for _, path in sorted(found):
                what = watched.what(path)
                if what is not None:
                    self._changed[path] = what
            self._news.set()

    async def _reload_until_elsewhere(self, watched: Watched) -> None:
        """Load again whenever something has changed, until other files are to be watched."""
        while self._watched() == watched:
            await self._news.wait()
            self._news.clear()
            changed, self._changed = self._changed, {}
            await self._desk.reload(
                settings="settings" in changed.values(), paths=_shortened(changed)
            )


def _shortened(paths: Iterable[str]) -> list[str]:
    return [os.path.relpath(path) for path in paths]
