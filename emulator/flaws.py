"""What is wrong with a deployed Worker: its code against its config.

What can be told of a Worker before anything is sent to it. A `Platform` makes findings of the flaws
of handlers and options; `workers-emulator check` lists them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from emulator.entrypoints import misfit_of_run
from emulator.errors import WorkerLoadError
from emulator.objects.space import object_class
from emulator.workflows.run import workflow_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.config import WorkflowConfig
    from emulator.isolate import Worker
    from emulator.location import Location


class Flaw(NamedTuple):
    """Something wrong: a finding's code, what it is, and the line of the Worker's code."""

    code: str
    message: str
    location: Location | None = None


def own_workflows(worker: Worker) -> list[WorkflowConfig]:
    """Return the Workflows whose class this Worker has."""
    return [workflow for workflow in worker.config.workflows if workflow.script == worker.name]


def handler_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield what is wrong with the handlers; raises `WorkerLoadError` if the code does not load."""
    script = worker.script
    consumers = worker.config.consumers
    if consumers and not script.handles("queue"):
        names = ", ".join(consumer.queue for consumer in consumers)
        yield Flaw(
            "missing_handler",
            f"the Worker consumes {names} but has no queue() handler; its handlers: "
            f"{', '.join(script.handlers) or 'none'}",
        )
    for misfit in script.misfits():
        yield Flaw("wrong_arity", misfit.message, misfit.location)


def none_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield where handlers use an `env` or `ctx` that is None; raises `WorkerLoadError`."""
    for event, name, own, location in worker.script.nones():
        yield Flaw(
            "handler_exception",
            f"`{event}` uses its parameter `{name}`, which production passes as None: use "
            f"`self.{own}`",
            location,
        )


def cron_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield what is wrong with the cron triggers; raises `WorkerLoadError`."""
    script, crons = worker.script, worker.config.crons
    if crons and not script.handles("scheduled"):
        yield Flaw(
            "missing_handler",
            f"the Worker has the cron triggers {', '.join(crons)} but no scheduled() handler; its "
            f"handlers: {', '.join(script.handlers) or 'none'}",
        )


def workflow_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield what is wrong with the classes of the Workflows; raises `WorkerLoadError`."""
    isolate = worker.isolate
    for workflow in own_workflows(worker):
        try:
            cls = workflow_class(isolate, workflow)
        except WorkerLoadError as error:
            yield Flaw("missing_handler", str(error))
            continue
        misfit = misfit_of_run(cls)
        if misfit is not None:
            code = "wrong_arity" if misfit.location else "missing_handler"
            yield Flaw(code, misfit.message, misfit.location)


def object_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield what is wrong with the classes of the Durable Objects; raises `WorkerLoadError`."""
    isolate = worker.isolate
    for binding in worker.config.objects.bindings:
        if binding.script == worker.name and binding.cls is None:
            try:
                object_class(isolate, binding.class_name, binding.binding)
            except WorkerLoadError as error:
                yield Flaw("missing_handler", str(error))


def option_flaws(worker: Worker) -> Iterator[Flaw]:
    """Yield the options of the config that production ignores."""
    for code, message in worker.config.ignored:
        yield Flaw(code, message)
    for message in worker.asset_problems:
        yield Flaw("ignored_option", f"assets: {message}")


def binding_flaws(worker: Worker) -> Iterator[tuple[str, Flaw]]:
    """Yield, with its name, each binding that is declared and not emulated.

    For a command, which is told of by its options.
    """
    for name, absent in worker.absent.items():
        if absent.section not in ("workflows", "durable_objects"):  # the config warns of these
            yield name, Flaw("missing_binding", absent.for_command_line)
