"""Workflows in a config: `workflows` of a Worker (workflows.md B16, B17).

The Worker that has the class owns the Workflow; others bind to it by `script_name`. The platform's
texts are wrangler's, which checks these keys itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from emulator.cron_config import check_cron
from emulator.queue_config import required
from emulator.section import is_list, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.section import Report, Section

_NAME: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}")
_MOST_STEPS: Final = 25_000
_KEYS: Final = (
    *("binding", "name", "class_name", "script_name"),
    *("limits", "schedules", "remote"),
)
_NAME_RULE: Final = (
    'binding "name" field is invalid. Workflow names must be 1-64 characters long, start with a '
    "letter, number, or underscore, and may only contain letters, numbers, underscores, or hyphens."
)
_WHAT: Final = {
    "binding": "the name of the Workflow on `env`",
    "name": "the Workflow's own name",
    "class_name": "the class that has its `run`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowConfig:
    """A binding to a Workflow; `script` is the Worker that has the class.

    A mapping in a test may give the class itself, `cls`. `step_limit` is None where the plan's
    holds; `schedules` are cron expressions.
    """

    binding: str
    name: str
    class_name: str
    script: str
    step_limit: int | None = None
    schedules: tuple[str, ...] = ()
    cls: type | None = None


@dataclass(slots=True)
class WorkflowReader:
    """Reads the Workflows of all Workers of one config, and checks what holds between them."""

    report: Report
    _owners: dict[str, WorkflowConfig] = field(default_factory=dict)
    _foreign: list[tuple[Section, str]] = field(default_factory=list)

    def check_scripts(self, workers: Sequence[str]) -> None:
        """Warn about Workflows of Workers that are not there, when all of them were read."""
        for item, script in self._foreign:
            if script not in workers:
                item.warn(
                    "script_name",
                    f"is {shown(script)}, which is no Worker here ({', '.join(workers)}): `env` "
                    f"lacks {item.values.get('binding')}; give its config too, "
                    "in a list or with another -c",
                )

    def workflows(self, config: Section, worker: str) -> tuple[WorkflowConfig, ...]:
        """Read the `workflows` of a Worker."""
        return tuple(self._workflow(item, worker) for item in config.sections("workflows"))

    def _workflow(self, item: Section, worker: str) -> WorkflowConfig:
        item.warn_unknown(_KEYS)
        cls = item.values.get("class_name")
        given = cls if isinstance(cls, type) and not item.is_file else None
        workflow = WorkflowConfig(
            binding=_required(item, "binding"),
            name=_name(item),
            class_name=_required(item, "class_name") if given is None else given.__name__,
            cls=given,
            script=item.text("script_name") or worker,
            step_limit=_step_limit(item),
            schedules=_schedules(item),
        )
        if workflow.script != worker:
            self._foreign.append((item, workflow.script))
        elif workflow.name:
            self._remember(item, workflow)
        return workflow

    def _remember(self, item: Section, workflow: WorkflowConfig) -> None:
        owner = self._owners.setdefault(workflow.name, workflow)
        if (owner.script, owner.class_name) != (workflow.script, workflow.class_name):
            problem = (
                f"is {shown(workflow.name)}, which is the Workflow of the class {owner.class_name} "
                f"in the Worker {owner.script} already; give each its own name"
            )
            item.wrong("name", problem)


def _required(item: Section, key: str) -> str:
    says = f'wrangler: "{item.path}" bindings should have a string "{key}" field but got'
    return required(item, key, _WHAT[key], says)


def _name(item: Section) -> str:
    name = _required(item, "name")
    if name and not _NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, - and _, the first not -"
        item.not_allowed("name", allowed, says=f'wrangler: "{item.path}" {_NAME_RULE}')
        return ""
    return name


def _step_limit(item: Section) -> int | None:
    limits = item.section("limits")
    limits.warn_unknown(("steps",))
    if "steps" not in limits:
        return None
    steps = limits.values["steps"]
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        says = (
            f'wrangler: "{item.path}" bindings "limits.steps" field must be a positive integer but '
            f"got {shown(steps)}."
        )
        limits.not_allowed("steps", "a positive whole number", says=says)
        return None
    if steps > _MOST_STEPS:
        says = f'wrangler: "{item.path}" has a step limit of {steps}, which exceeds the production '
        says += f"maximum of {_MOST_STEPS:,}. This configuration may not work when deployed."
        limits.warn("steps", f"is {steps} ({says})")
    return steps


def _schedules(item: Section) -> tuple[str, ...]:
    if "schedules" not in item:
        return ()
    value = item.values["schedules"]
    crons: Sequence[object] = (value,) if isinstance(value, str) else ()
    if is_list(value):
        crons = value
    if not crons or not all(isinstance(cron, str) and cron.strip() for cron in crons):
        allowed = "a cron expression, or a list of some"
        says = f'wrangler: "{item.path}" bindings "schedules" field {_empty(value)}'
        item.not_allowed("schedules", allowed, says=says)
        return ()
    for cron in crons:
        check_cron(item, "schedules", str(cron))
    return tuple(str(cron) for cron in crons)


def _empty(value: object) -> str:
    if value == "":
        return "must not be an empty string."
    if is_list(value) and not value:
        return "must not be an empty array."
    return "must not contain empty strings."
