"""What an emulator runs: the settings of its Workers, and the files of each.

An emulator reads its config and its Workers' code when it is made. Those of a sweep are made of the
same files again and again: they share a deployment for as long as all that was read is on disk as
it was. Nothing of a run gets into it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from emulator import config as settings
from emulator import dotenv
from emulator.importer import Bundle
from emulator.section import is_list, is_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from emulator.config import Settings, WorkerConfig
    from emulator.kept_memory import Memory

ARGUMENTS: Final = ("base", "profile", "plan", "queue_settings", "environment")
"""The keyword arguments of `deploy`, which are those of `config.load`."""


class _Read(Protocol):
    """Something that was read from disk."""

    def is_current(self) -> bool:
        """Whether it is on disk as it was."""


_F = TypeVar("_F", bound=_Read)


class Deployment:
    """Workers as they were deployed; emulators may share it, one after another."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._bundles: dict[str, Bundle] = {}
        self._folders: dict[Path, _Read] = {}
        # Of Workers that are given as objects; by name.
        self.memories: dict[str, Memory] = {}

    def bundle(self, worker: WorkerConfig) -> Bundle:
        """Return the files of one of the Workers."""
        bundle = self._bundles.get(worker.name)
        if bundle is None:
            bundle = self._bundles[worker.name] = Bundle(worker.root)
        return bundle

    def folder(self, directory: Path, read: Callable[[Path], _F]) -> _F:
        """Return what `read` makes of a folder of files, the first time."""
        found = self._folders.get(directory)
        if found is None:
            found = self._folders[directory] = read(directory)
        return cast("_F", found)

    def has_current_code(self) -> bool:
        """Whether the code, and the files beside it, that were read are on disk as they were."""
        read: list[_Read] = [*self._bundles.values(), *self._folders.values()]
        return all(one.is_current() for one in read)


def deploy(config: Any, **options: Any) -> Deployment:
    """Read a config; takes and raises what `config.load` does."""
    return Deployment(settings.load(config, **options))


class Deployments:
    """Keeps the latest deployment, and deploys anew where something has changed."""

    def __init__(self) -> None:
        self._deployment: Deployment | None = None
        self._made_of: object = None
        self._files: dict[str, bytes | None] = {}

    def get(self, config: Any, **options: Any) -> Deployment:
        """Return a deployment of what `deploy` would read now."""
        made_of = [_copied(config), _copied(options), os.getcwd(), list(sys.path)]
        kept = self._deployment
        if kept is not None and made_of == self._made_of and self._is_current(kept):
            return kept
        self._deployment = None
        kept = deploy(config, **options)
        self._files = {path: _content(path) for path in _files(kept, options.get("environment"))}
        self._made_of, self._deployment = made_of, kept
        return kept

    def _is_current(self, deployment: Deployment) -> bool:
        if any(_content(path) != content for path, content in self._files.items()):
            return False
        return deployment.has_current_code()


def _files(deployment: Deployment, environment: str | None) -> Iterator[str]:
    """Yield the config files and where secrets are looked for."""
    for worker in deployment.settings.workers:
        if worker.source is not None:
            yield str(worker.source)
            yield from map(str, dotenv.candidates(worker.source.parent, environment=environment))


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _copied(value: object) -> object:
    """Return a copy of a config's tables and lists, which the test may change."""
    if is_table(value):
        return {key: _copied(item) for key, item in value.items()}
    if is_list(value):
        return [_copied(item) for item in value]
    return value
