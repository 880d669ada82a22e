"""Notices a run that starts over again and again at one instant and comes no further.

Only faults make one: a plan with `#*` cuts its power at a place that each run passes, and neither
time nor a limit of retries ends that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.errors import Stuck
from emulator.faults import format_plan

if TYPE_CHECKING:
    from emulator.kernel import Kernel
    from emulator.workflows.execution import Execution

# Far more than the retries of any step that ends.
_MOST: Final = 1_000
_OVER: Final = ("complete", "errored")


class Livelock:
    """Counts how often each instance lost its run at one instant, with no step done in between."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._losses: dict[tuple[str, str], tuple[int, int, int]] = {}

    def lost(self, execution: Execution) -> None:
        """Count a run that a crash took; abort the simulation if it was one too many."""
        now = self._kernel.now
        key = (execution.workflow, execution.id)
        done = sum(step.state in _OVER for step in execution.instance.steps.values())
        at, before, count = self._losses.get(key, (now, done, 0))
        count = count + 1 if (at, before) == (now, done) else 1
        self._losses[key] = (now, done, count % _MOST)
        if count == _MOST:
            self._kernel.loop.abort(Stuck(self._describe(*key)))

    def clear(self) -> None:
        """Forget all instances."""
        self._losses.clear()

    def _describe(self, workflow: str, id: str) -> str:
        fired = self._kernel.faults.fired
        plan = format_plan(self._kernel.faults.plan)
        last = f"; the last fault was {fired[-1]}" if fired else ""
        return (
            f"the run of the instance {id} of the Workflow {workflow} started over {_MOST:,} times "
            f"at this instant and was cut off each time before it had done another step{last}. "
            f"Under the plan {plan} this never ends: name the occurrences (#1, #2) instead of #*"
        )
