"""Faults armed in a running server: planned, or refused with why they can never fire.

A site names a queue, a Workflow, a binding, a Worker. Where nothing here has that name, or the
occurrence has passed, the fault would wait for ever: in a test that is a finding at the end, and a
server has no end. What a site says of the outside (a path, a host, a step) is not known before it
is met. Queues, bindings and Workers are those of now: after a change a fault can be armed anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.errors import PlanError
from emulator.faults.names import read_name
from emulator.faults.plan import read_plan
from emulator.faults.sites import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.faults import Fault
    from emulator.server.desk import Desk

_MOST_FIRED: Final = 200
_OF_BINDINGS: Final = {
    "kv": "namespaces",
    "d1": "databases",
    "r2": "buckets",
    "ratelimit": "rate_limits",
    "email": "senders",
}


async def arm(desk: Desk, plan: object) -> list[str]:
    """Plan faults, a text or several; return the text of each.

    Raises `PlanError`, and plans none, if one cannot be read or can never fire.
    """
    faults = desk.emulator.faults
    read = read_plan(plan)
    if not read:
        raise PlanError("the plan is empty; a fault is a text such as batch.emails#1:lose_ack")
    for fault in read:
        if why := unreachable(desk, fault):
            raise PlanError(f"{fault} can never fire: {why}")
    await desk.act("arm", lambda: faults.add(*read))
    return [str(fault) for fault in read]


def planned(desk: Desk) -> list[tuple[str, str | None]]:
    """Return the planned faults as they may be shown, each with why it has not fired."""
    faults, mask = desk.emulator.faults, desk.platform.kernel.trace.masker
    unfired = {str(one.fault): mask(one.message) for one in faults.unfired()}
    return [(mask(text), unfired.get(text)) for text in map(str, faults.plan)]


def fired(desk: Desk) -> list[str]:
    """Return the latest faults that fired as they may be shown, the last one at the end."""
    mask = desk.platform.kernel.trace.masker
    return [mask(str(fault)) for fault in desk.emulator.faults.fired[-_MOST_FIRED:]]


def unreachable(desk: Desk, fault: Fault) -> str:
    """Return why a fault can never fire as things are; empty if it can."""
    kind, _, rest = fault.site.partition(".")
    row = KINDS.get(kind)
    if row is None or not row.names:
        return ""
    known = _known(desk, kind)
    if known is not None:
        what, names = known
        first = rest.split(".", len(row.names) - 1)[0]
        wanted = read_name(first, 0, inner=len(row.names) > 1)
        if not any(wanted.matches(name) for name in names):
            listed = ", ".join(dict.fromkeys(names)) or "none"
            return f"there is no {what} {first}; there are: {listed}"
    met = desk.emulator.faults.counts.get(fault.site, 0)
    if fault.occurrence is not None and fault.occurrence <= met:
        return f"that occurrence has passed; the next one is {fault.site}#{met + 1}"
    return ""


def _known(desk: Desk, kind: str) -> tuple[str, list[str]] | None:
    """Return what the first name of a kind of sites is of, and all there are; None for any name."""
    emulator, platform = desk.emulator, desk.platform
    workers = platform.workers.values()
    configs = [worker.config for worker in workers]
    match kind:
        case "send":
            return "binding to a queue", [p.queue for c in configs for p in c.producers]
        case "message":
            return "queue", list(emulator.queues)
        case "batch":
            return "queue with a consumer that is a Worker", list(platform.queues.consumers)
        case "step" | "sleep" | "wait" | "create" | "event":
            return "Workflow", list(emulator.workflows)
        case "object" | "storage" | "alarm":
            return "Durable Object binding", _objects(desk)
        case "websocket":
            what = "Worker, and no Durable Object binding,"
            return what, [*platform.workers, *_objects(desk)]
        case "service":
            bindings = [service.binding for c in configs for service in c.services]
            assets = [c.assets.binding for c in configs if c.assets is not None]
            return "service binding", [*bindings, *(name for name in assets if name)]
        case "tail":
            return "Worker that is a tail consumer", [name for c in configs for name in c.tails]
        case "cron" | "wait_until":
            return "Worker", list(platform.workers)
    if kind in _OF_BINDINGS:
        bindings_of: Iterable[list[str]] = (
            [one.binding for one in getattr(c, _OF_BINDINGS[kind])] for c in configs
        )
        return f"{kind} binding", [name for names in bindings_of for name in names]
    return None


def _objects(desk: Desk) -> list[str]:
    configs = (worker.config for worker in desk.platform.workers.values())
    bindings = [binding.binding for config in configs for binding in config.objects.bindings]
    return [*bindings, *desk.emulator.durable_objects]
