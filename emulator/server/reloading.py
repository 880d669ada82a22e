"""Loads again what has changed, as it changes.

No save is lost, also none that comes when nothing watches: before the first watch stands, and
between two of them, where a config names other folders. As soon as a watch stands the files are
compared with what was loaded (`watched.Seen`).
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from emulator.server.desk import Desk
    from emulator.server.watched import Watched, What

# Milliseconds in which changes that come together are taken together, and at which it looks.
_DEBOUNCE: Final = 200
_STEP: Final = 20


class Reloader:
    """Watches the files of a desk, and loads again what has changed, until it is cancelled.

    `watch` is called like `watchfiles.awatch`; what it makes watches from its first step on.
    """

    def __init__(
        self, desk: Desk, watch: Callable[..., AsyncIterator[Iterable[Any]]] | None = None
    ) -> None:
        self._desk = desk
        self._awatch = watch
        self._changed: dict[str, What] = {}
        # Whether a folder that is watched was made, or removed: the watch of it is void then.
        self._is_void = False
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Watch; raises `OSError` where the system cannot."""
        while True:
            watched = self._desk.watched()
            self._is_void = False
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                deep, flat = watched.folders
                for folders, recursive in ((deep, True), (flat, False)):
                    if folders:
                        group.create_task(self._watch(watched, folders, stop, recursive=recursive))
                await asyncio.sleep(0)  # the first step of each, from which on it watches
                self._note(watched, self._desk.seen.changed(watched))
                await self._reload_until_elsewhere(watched)
                stop.set()

    async def _watch(
        self,
        watched: Watched,
        folders: tuple[Path, ...],
        stop: asyncio.Event,
        *,
        recursive: bool,
    ) -> None:
        if self._awatch is None:
            from watchfiles import awatch

            self._awatch = awatch
        roots = {str(root) for root in watched.roots}

        def matters(_: Any, path: str) -> bool:
            return path in roots or watched.what(path) is not None

        changes = self._awatch(
            *folders,
            watch_filter=matters,
            stop_event=stop,
            debounce=_DEBOUNCE,
            step=_STEP,
            recursive=recursive,
        )
        async for found in changes:
            paths = sorted(path for _, path in found)
            # Where the content of a root changes, some systems name the root itself.
            if not recursive and not roots.isdisjoint(paths):
                self._is_void = True
                self._news.set()
            self._note(watched, paths)

    def _note(self, watched: Watched, paths: Iterable[str]) -> None:
        """Remember the files that matter, and say that there are some."""
        for path in paths:
            what = watched.what(path)
            if what is not None:
                self._changed[path] = what
                self._news.set()

    async def _reload_until_elsewhere(self, watched: Watched) -> None:
        """Load again whenever something has changed, until other files are to be watched."""
        while self._desk.watched() == watched and not self._is_void:
            await self._news.wait()
            self._news.clear()
            changed, self._changed = self._changed, {}
            if changed:
                await self._desk.reload(
                    settings="settings" in changed.values(), paths=_shortened(changed)
                )


def _shortened(paths: Iterable[str]) -> list[str]:
    return [os.path.relpath(path) for path in paths]
