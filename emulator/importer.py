"""Importing Worker code: its own modules per isolate, the runtime's modules for all.

A Worker's files are imported as production does it: the folder of `main` is the root, so
`src/entry.py` is the module `entry` and `src/utils.py` is `utils`. Each isolate has its own copies.
They stand in `sys.modules` only while that isolate runs, so that two Workers with a module of one
name, and a test with a third, never meet. Everything else a Worker imports (the standard library,
installed packages) is shared with the test process.

What an isolate may import is its `Bundle`: the sources as they were when each was first imported
after a deployment. A crash or an eviction runs them again; only a reload sees an edit.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, Literal, cast

from emulator.runtime import modules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import CodeType, ModuleType


Kind = Literal["module", "folder", "root"]

# Code objects by file, valid for exactly the bytes they were compiled from: a cache, nothing else.
_compiled: dict[str, tuple[bytes, CodeType]] = {}


class _NamespacePath(list[str]):
    """The folders of a package without an `__init__.py`.

    `importlib.resources` reads files of one whose path's text has this class's name, as it knows
    nothing better about what the import system made.
    """

    def __repr__(self) -> str:
        return f"_NamespacePath({super().__repr__()})"


class Bundle:
    """The files of one deployment of a Worker, as its isolates import them."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._entries = _entries(root) if root is not None else {}
        self.names = _top_level_names(root, self._entries) if root is not None else {}
        self._code: dict[str, tuple[bytes, CodeType]] = {}
        self._finders: dict[str, FileFinder] = {}

    def find(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Find a module of the Worker's own; raises what production raises for `src.entry`."""
        kind = self.names.get(name.partition(".")[0])
        if kind is None or self._root is None:
            return None
        if kind == "root":
            raise _no_root_prefix(name)
        if kind == "folder" and path is None and _is_installed(name, self._root):
            return None  # a folder without an `__init__.py` comes last, as everywhere in Python
        for folder in [str(self._root)] if path is None else path:
            spec = self._finder(folder).find_spec(name)
            if spec is not None:
                if spec.loader is None and spec.submodule_search_locations is not None:
                    spec.submodule_search_locations = _NamespacePath(
                        spec.submodule_search_locations
                    )
                return spec
        return None

    def code(self, loader: SourceFileLoader) -> CodeType:
        """The code of a file, the same for all isolates of this deployment."""
        path = loader.path
        if path not in self._code:
            self._code[path] = _compile(loader)
        return self._code[path][1]

    def is_current(self) -> bool:
        """Whether a new bundle would be the same as far as this one was read."""
        if self._root is not None and _entries(self._root) != self._entries:
            return False
        return all(_is_unchanged(path, source) for path, (source, _) in self._code.items())

    def _finder(self, folder: str) -> FileFinder:
        if folder not in self._finders:
            self._finders[folder] = FileFinder(
                folder, (cast("type[Loader]", self._loader), [".py"])
            )
        return self._finders[folder]

    def _loader(self, name: str, path: str) -> Loader:
        return _SourceLoader(name, path, self)


class ModuleSpace:
    """The modules of one isolate, under the names its code imports them by."""

    def __init__(self, bundle: Bundle, *, hidden: tuple[str, ...] = ()) -> None:
        self._bundle = bundle
        # Modules of the runtime's that only other Workers have.
        self._hidden = hidden
        # The names that are this isolate's: those its code may import, and did import.
        self._names = dict.fromkeys(name for name, kind in bundle.names.items() if kind != "folder")
        # Its modules while it does not run, and the test's of the same names while it does.
        self._own: dict[str, ModuleType] = {}
        self._outer: dict[str, ModuleType] = {}

    def enter(self) -> None:
        """Put this isolate's modules into `sys.modules`, the test's of the same names aside."""
        loaded = sys.modules
        for names in (self._names, self._hidden):
            if not loaded.keys().isdisjoint(names):
                for name in names:
                    if name in loaded:
                        self._set_aside(name)
        loaded.update(self._own)

    def leave(self) -> None:
        """Undo `enter`, keeping what was imported meanwhile."""
        loaded = sys.modules
        self._own = {name: loaded.pop(name) for name in self._names if name in loaded}
        loaded.update(self._outer)
        self._outer.clear()

    def find(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Find a module of the Worker's own, and remember that it is this isolate's."""
        spec = self._bundle.find(name, path)
        if spec is not None:
            self._names[name] = None
        return spec

    def import_main(self, path: Path) -> ModuleType:
        """Import the Worker's main file.

        One that is called like a module of the standard library is loaded beside that, which the
        rest of the process goes on to use.
        """
        if not _is_taken(path.stem):
            return importlib.import_module(path.stem)
        loader = _SourceLoader(path.stem, str(path), self._bundle)
        spec = spec_from_file_location(path.stem, path, loader=loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
        return module

    def _set_aside(self, name: str) -> None:
        loaded = sys.modules
        names = [name]
        if hasattr(loaded[name], "__path__"):
            names += [inner for inner in loaded if inner.startswith(f"{name}.")]
        self._outer.update({name: loaded.pop(name) for name in names})


def _top_level_names(root: Path, entries: dict[str, Kind]) -> dict[str, Kind]:
    """The names the root folder defines, and its own name, which production does not know."""
    names = dict(entries)
    if not modules.is_served(root.name) and not _is_installed(root.name, root):
        names.setdefault(root.name, "root")
    # The standard library is loaded before any user code in production too, and the emulator
    # itself runs in this process.
    return {name: kind for name, kind in names.items() if not _is_taken(name)}


def _is_taken(name: str) -> bool:
    """Whether a module of the Worker's cannot have this name in `sys.modules`."""
    return name in sys.stdlib_module_names or name == "emulator"


def _entries(root: Path) -> dict[str, Kind]:
    """The modules and folders in the root folder; none if it is gone."""
    entries: dict[str, Kind] = {}
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return entries
    for name in names:
        if name.endswith(".py") and name != ".py":
            entries[name[:-3]] = "module"
        elif name.isidentifier() and (root / name).is_dir():
            is_package = (root / name / "__init__.py").exists()
            entries[name] = "module" if is_package else "folder"
    return entries


def _is_installed(name: str, root: Path) -> bool:
    """Whether an installed package has this name; a folder of the project itself is none."""
    own = (str(root), str(root.parent))
    path = [entry for entry in sys.path if os.path.abspath(entry) not in own]
    spec = PathFinder.find_spec(name, path)
    return spec is not None and spec.loader is not None and spec.origin is not None


def _no_root_prefix(name: str) -> ModuleNotFoundError:
    error = ModuleNotFoundError(f"No module named {name!r}", name=name)
    error.add_note(
        f"The folder {name!r} holds the Worker's main file, so it is the root of its imports: "
        f"write `import utils` for `import {name}.utils`. Production raises the same error."
    )
    return error


def _is_unchanged(path: str, source: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == source
    except OSError:
        return False


def _compile(loader: SourceFileLoader) -> tuple[bytes, CodeType]:
    source = loader.get_data(loader.path)
    known = _compiled.get(loader.path)
    if known is not None and known[0] == source:
        return known
    linecache.cache.pop(loader.path, None)  # tracebacks must not show the lines of the old file
    code: CodeType = loader.source_to_code(source, loader.path)
    made = _compiled[loader.path] = (source, code)
    return made


class _SourceLoader(SourceFileLoader):
    """Compiles from source, and again only when the bytes changed.

    Python's own cache goes by modification time in whole seconds, and would serve the old code
    after a quick edit of the same length; it would also leave files beside the user's.
    """

    def __init__(self, name: str, path: str, bundle: Bundle) -> None:
        super().__init__(name, path)
        self._bundle = bundle

    def get_code(self, fullname: str) -> CodeType:
        return self._bundle.code(self)


class _RuntimeLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return modules.build(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


class _WatchedLoader(Loader):
    """Loads a module as its own loader does, and tells of it then."""

    def __init__(self, loader: Any, tell: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._tell = tell

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._tell(module)


class WorkerFinder(MetaPathFinder):
    """The finder at the head of `sys.meta_path`; `space` is the isolate that runs now."""

    def __init__(self) -> None:
        self.space: ModuleSpace | None = None
        # What is told of modules of these names, once they are imported.
        self.after_import: dict[str, Callable[[ModuleType], None]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.after_import:
            return self._watched(fullname, path, target)
        if self.space is not None:
            spec = self.space.find(fullname, path)
            if spec is not None:
                return spec
        if modules.is_served(fullname) or self._is_first_home(fullname):
            loader: Any = _RuntimeLoader()
            return ModuleSpec(fullname, loader, is_package=modules.is_package(fullname))
        return None

    def _watched(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Find a module of somebody else's, and be told when it was imported."""
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _WatchedLoader(spec.loader, self.after_import[name])
                return spec
        return None

    def _is_first_home(self, name: str) -> bool:
        if self.space is None or not modules.is_first_home(name):
            return False
        return "." in name or PathFinder.find_spec(name) is None

    def activate(self, space: ModuleSpace | None) -> None:
        """Let `space`, or none, be the isolate whose modules are visible."""
        if self.space is space:
            return
        if self.space is not None:
            self.space.leave()
        self.space = space
        if space is not None:
            space.enter()


# One per process, as `sys.meta_path` is.
finder = WorkerFinder()


def install() -> None:
    """Serve the runtime's modules from now on, also where the real SDK is installed."""
    if finder in sys.meta_path:
        return
    sys.meta_path.insert(0, finder)
    for name in [name for name in sys.modules if modules.is_served(name)]:
        # The SDK for Pyodide and pyodide-py cannot work here; see python-api.md 0.8.
        del sys.modules[name]
