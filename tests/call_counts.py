"""What an operation costs, in calls of functions: the same on any machine, however busy it is.

`tests.benchmarks` shows times. They are spent in no one place: what makes operations slower is a
call more here and there, and that is what budgets of calls notice. A call of a Python function, or
one of its steps, counts as one of C's does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 50


async def calls_of(operation: Callable[[Any, int], Any], binding: Any) -> float:
    """How many calls of functions `operation(binding, number)` makes, when it was done before."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    await operation(binding, COUNT)  # what is looked up but once
    sys.setprofile(count)
    try:
        for number in range(COUNT):
            await operation(binding, number)
    finally:
        sys.setprofile(None)
    return counted / COUNT
