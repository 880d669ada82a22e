"""Lets code say `import js` before anything of the emulator was loaded, at no cost until then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class RuntimeDoor:
    """Loads what serves the runtime's modules when the first of them is imported."""

    names = frozenset(
        {
            *("workers", "js", "pyodide", "_pyodide", "asgi", "pyodide_js"),
            *("_cloudflare_compat_flags", "_pyodide_entrypoint_helper"),
        }
    )

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of these; what was loaded for it is asked first from then on."""
        if fullname.partition(".")[0] not in self.names:
            return None
        from emulator import importer

        if importer.finder in sys.meta_path:
            return None  # It has been asked already, and knows better.
        importer.install()
        return importer.finder.find_spec(fullname, path, target)


# One per process, as `sys.meta_path` is.
_door = RuntimeDoor()


def open() -> None:
    """Serve the runtime's modules from now on, also where the real SDK is installed."""
    if _door not in sys.meta_path:
        sys.meta_path.insert(0, _door)
