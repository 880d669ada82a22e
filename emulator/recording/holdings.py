"""What the state that a recording began with amounts to: in words, and as a test can have it.

The state is put back into a platform in which nothing runs, and that is looked at: records alone
tell what came and went, not what was left.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.clock import moment
from emulator.deployment import Deployment
from emulator.errors import EmulatorError
from emulator.platform import Platform
from emulator.recording.masking import Filler
from emulator.recording.start_state import restore
from emulator.recording.stock import stock
from emulator.sweeping.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from emulator.config import Settings
    from emulator.recording.entries import Recording
    from emulator.recording.stock import Item


class Holdings(NamedTuple):
    """For each product that can be looked at, what it held in a few words each.

    `stock` is what a test can put there, secrets masked, for each product of which it can put all.
    Both are empty if the state cannot be put back: then only its products are known.
    """

    words: Mapping[str, list[str]]
    stock: Mapping[str, list[Item]]


def holdings(recording: Recording, settings: Settings, options: Mapping[str, Any]) -> Holdings:
    """Look at what there was."""
    with TemporaryDirectory(prefix="workers-emulator-") as folder:
        try:
            entries = [dict(entry) for entry in recording.state]
            state = restore(entries, Path(folder), Filler({}))
            platform = Platform(
                Deployment(settings),
                start=moment(recording.head.origin),
                seed=0,
                faults=(),
                profile=options.get("profile") or "production",
                state=state,
                outbound="deny",
                bindings={},
                time_in_tests=False,
                load_code=False,
                apply_migrations=False,
            )
        except (EmulatorError, OSError, ValueError):
            return Holdings({}, {})
        try:
            words = {product: list(look(platform)) for product, look in _LOOKS.items()}
            return Holdings(words, stock(platform))
        finally:
            platform.close()


def _queues(platform: Platform) -> Iterator[str]:
    broker = platform.queues.broker
    for name in broker.queues:
        if waiting := len(broker.pending(name)):
            yield f"{count(waiting, 'message')} in the queue {name}"
        if broker.paused(name):
            yield f"the queue {name} paused"
        if broker.setup(name).change is not None:
            yield f"the consumer of the queue {name} as it was set by the REST API"


def _workflows(platform: Platform) -> Iterator[str]:
    engine = platform.workflows.engine
    for name in engine.workflows:
        found = engine.instances(name)
        going_on = sum(one.ended is None for one in found)
        if found:
            over = f", {going_on} not over" if going_on else ", all over"
            yield f"{count(len(found), 'instance')} of the Workflow {name}{over}"


def _objects(platform: Platform) -> Iterator[str]:
    for binding, (_, space) in platform.objects.named.items():
        if kept := len(list(platform.objects.state.objects(space.key))):
            yield f"{count(kept, 'object')} of {binding}"


def _r2(platform: Platform) -> Iterator[str]:
    for id in dict.fromkeys(platform.r2.names.values()):
        if kept := len(platform.r2.bucket(id).objects):
            yield f"{count(kept, 'object')} in the bucket {id}"


_LOOKS: dict[str, Callable[[Platform], Iterator[str]]] = {
    "queues": _queues,
    "workflows": _workflows,
    "objects": _objects,
    "r2": _r2,
}
