"""respx's `assert_all_called` in a run under a plan, where a fault may be why no call came.

Routers are asked when they stop, in the test, in a scenario or at a teardown, and have an argument
for not being strict then. A test's own `router.assert_all_called()` stays an assertion.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.emulator import Emulator


@contextmanager
def lenient(emulator: Emulator) -> Iterator[None]:
    """Do not enforce `assert_all_called` while this emulator has a plan; respx may be missing."""
    router: Any = sys.modules.get("respx.router")
    if router is None:
        yield
        return
    stop = router.MockRouter.stop

    @wraps(stop)
    def stop_quietly(
        self: Any, clear: bool = True, reset: bool = True, quiet: bool = False
    ) -> None:
        faults = emulator.faults
        stop(self, clear=clear, reset=reset, quiet=quiet or bool(faults.plan or faults.fired))

    router.MockRouter.stop = stop_quietly
    try:
        yield
    finally:
        router.MockRouter.stop = stop
