"""What a server has, as its terminal says when it starts: Workers, bindings, consumers, crons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.values import HostObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.isolate import Worker
    from emulator.platform import Platform
    from emulator.server.desk import Desk


def table(desk: Desk) -> Iterator[str]:
    """Yield the lines about what runs; of secrets and variables only the names."""
    rows = [row for worker in desk.platform.workers.values() for row in _rows(worker, desk)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, what, text in rows:
        yield f"  {name.ljust(widths[0])}  {what.ljust(widths[1])}  {text}".rstrip()


def facts(platform: Platform) -> list[dict[str, object]]:
    """Return the same for programs."""
    return [
        {
            "worker": worker.name,
            "bindings": dict(_bindings(worker)),
            "variables": _variables(worker),
            "secrets": list(worker.config.secrets),
            "consumers": [consumer.queue for consumer in worker.config.consumers],
            "crons": list(worker.config.crons),
        }
        for worker in platform.workers.values()
    ]


def warnings(platform: Platform) -> Iterator[str]:
    """Yield what is probably not meant: queues nobody consumes, bindings that are not there."""
    workers = [worker.config for worker in platform.workers.values()]
    consumers = [consumer for worker in workers for consumer in worker.consumers]
    graves = [consumer.dead_letter_queue for consumer in consumers]
    for queue in platform.settings.queues:
        if not any(consumer.queue == queue.name for consumer in consumers):
            waiting = len(platform.queues.broker.pending(queue.name))
            role = "dead letter queue" if queue.name in graves else "queue"
            yield f"the {role} {queue.name} has no consumer; {waiting} waiting"
    for worker in platform.workers.values():
        for absent in worker.absent.values():
            yield f"{worker.name}: {absent}"
    for finding in platform.kernel.findings:
        if finding.code not in ("no_consumer", "fault_not_fired"):
            yield str(finding)


def remains(platform: Platform) -> Iterator[str]:
    """Yield what goes on at the next start: messages that wait, Workflows that are not over."""
    for queue in platform.settings.queues:
        count = len(platform.queues.broker.pending(queue.name))
        if count:
            yield f"{count} message{'s' if count > 1 else ''} in {queue.name}"
    workflows = platform.workflows.engine
    for name in workflows.workflows:
        count = sum(instance.ended is None for instance in workflows.instances(name))
        if count:
            yield f"{count} instance{'s' if count > 1 else ''} of {name}"


def _rows(worker: Worker, desk: Desk) -> Iterator[tuple[str, str, str]]:
    config = worker.config
    routes = [route.pattern for route in desk.routing.routes if route.worker == worker.name]
    is_first = desk.routing.workers[0] == worker.name
    takes = [
        *routes,
        *(["all other requests"] if is_first and len(desk.routing.workers) > 1 else []),
    ]
    yield worker.name, "requests", ", ".join(takes) or ("all" if is_first else "when named")
    for name, kind in _bindings(worker):
        yield "", "binding", f"{name} ({kind})"
    for what, names in (
        ("variables", _variables(worker)),
        ("secrets", list(config.secrets)),
        ("consumes", [_consumed(c.queue, c.dead_letter_queue) for c in config.consumers]),
        ("crons", list(config.crons)),
    ):
        if names:
            yield "", what, ", ".join(names)


def _bindings(worker: Worker) -> Iterator[tuple[str, str]]:
    """The bindings on `env`, and what they are."""
    queues = {producer.binding: producer.queue for producer in worker.config.producers}
    workflows = {workflow.binding: workflow.name for workflow in worker.config.workflows}
    for name, value in worker.env.items():
        if name in queues:
            yield name, f"queue {queues[name]}"
        elif name in workflows:
            yield name, f"workflow {workflows[name]}"
        elif isinstance(value, HostObject):
            yield name, value.js_class


def _variables(worker: Worker) -> list[str]:
    secrets = worker.config.secrets
    return [
        name
        for name, value in worker.env.items()
        if not isinstance(value, HostObject) and name not in secrets
    ]


def _consumed(queue: str, grave: str | None) -> str:
    return f"{queue} (dead letters to {grave})" if grave else queue
