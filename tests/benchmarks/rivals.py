"""Print what a run costs beside general simulators of asyncio, for the same story in plain asyncio.

    python -m tests.benchmarks.rivals

They simulate loop, clock and network; our runs load a Worker and have a platform besides. They need
Python 3.12: `pip install simloop simloom seedloop`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.benchmarks.figures import Figure, show
from tests.benchmarks.story import SIMULATORS

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures() -> Iterator[Figure]:
    """Yield what a run costs, ours and theirs."""
    for name in SIMULATORS:
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.story", name],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},  # seedloop asks for one
        )
        value = float(done.stdout) if done.stdout else None
        note = "" if done.stdout else f"pip install {name} (Python 3.12 or newer)"
        title = "workers-emulator" if name == "emulator" else name
        yield Figure(f"a story in plain asyncio, {title}", value, "ms/run", note)


if __name__ == "__main__":
    show(figures())
