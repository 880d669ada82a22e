"""How a process lives that does nothing but serve: sooner there, and seldom interrupted."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Final

# New objects, beside those that were given back, after which the garbage collector looks at them.
_COLLECT_AFTER: Final = 10_000


def settle_in() -> None:
    """Prepare the process; called once, when all is imported and before a Worker's code is."""
    _import_without_pytest("time_machine")
    gc.collect()
    gc.freeze()  # the collector need not look at what lives as long as the process
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])


def _import_without_pytest(name: str) -> None:
    """Import a module that has a plugin for pytest, where there is one.

    Nobody runs tests here, and pytest takes a tenth of the time in which the server starts.
    """
    if "pytest" in sys.modules:
        return
    sys.modules["pytest"] = None  # type: ignore[assignment]  # so that it cannot be imported
    try:
        importlib.import_module(name)
    finally:
        del sys.modules["pytest"]
