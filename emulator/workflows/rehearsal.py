"""A finished instance's `run`, once more, with its journal as the only source of results.

Where it asks for another step than before, leaves one out, or ends otherwise, `run` depends on
more than the event and the results of its steps (O-16, O-17), and would go wrong in any replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.location import caller
from emulator.workflows.model import BLOCKED, Status
from emulator.workflows.run import WorkflowRun
from emulator.workflows.shown import decoded

if TYPE_CHECKING:
    from emulator.location import Location
    from emulator.workflows.model import ErrorInfo

_WORDS = {"do": "step", "sleep": "sleep", "waitForEvent": "wait"}


class Rehearsal(WorkflowRun):
    """One such execution; `differences` is complete when it is `over`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.differences: list[str] = []
        self.over = False

    def proceed(self, key: str) -> None:
        """Give what is stored; a step that is not can only be waited for."""
        decision = self._workflows.engine.decide(self.execution, key, self.kernel.now)
        if decision is not BLOCKED:
            super().proceed(key)
            return
        ask = self.execution.asks[key]
        known = key in self.execution.instance.steps
        what = "which did not end then" if known else "which the journal does not have"
        self._differ(f"the replay asked for {_named(ask)}, {what}", caller())
        self.at_end_of_instant(self.finish)

    def _suspect(self, kind: str, name: str, key: str) -> None:
        """The journal is complete: there is nothing to wait for."""

    def _finished(self, data: bytes | None) -> None:
        instance = self.execution.instance
        if instance.status is not Status.COMPLETE:
            self._differ(f"the replay returned, where `run` ended {instance.status.value} before")
        elif data != instance.output:
            given, stored = decoded(data), decoded(instance.output)
            self._differ(f"the replay returned {given!r}, and `run` before {stored!r}")
        self._compare_steps()

    def _failed(self, error: ErrorInfo, *, ordinary: bool) -> None:
        engine, stored = self._workflows.engine, self.execution.instance.error
        error = engine.final_error(self.execution, error, ordinary=ordinary)
        if error != stored:
            before = f"{stored.name}: {stored.message}" if stored else "nothing"
            self._differ(
                f"the replay raised {error.name}: {error.message}, and `run` before {before}"
            )
        self._compare_steps()

    def _compare_steps(self) -> None:
        for step in self.execution.instance.steps.values():
            if step.key not in self.execution.asks:
                self._differ(f"the replay never asked for {_named(step)}")
        self.finish()

    def finish(self) -> None:
        """Nothing more is to come."""
        self.over = True

    def _differ(self, text: str, where: Location | None = None) -> None:
        self.differences.append(text)
        self.find("replay_diverged", text, where)


def _named(step: Any) -> str:
    return f"the {_WORDS[step.kind]} {step.name!r} ({step.count})"
