"""The binding `version_metadata`: which version of a Worker runs, and since when.

An emulator has one version of each Worker. Its id is made of the Worker's name and the seed, so
that it is the same in every run; its tag is empty, as under `wrangler dev`; it was made when
virtual time began.
"""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any

from emulator.clock import moment

if TYPE_CHECKING:
    from emulator.kernel import Kernel
    from emulator.worker_config import WorkerConfig


def version_metadata(config: WorkerConfig, kernel: Kernel) -> dict[str, Any]:
    """What `env` has of it, by name; empty where the config has no such binding."""
    if config.version_metadata is None:
        return {}
    made = moment(kernel.clock.start)
    timestamp = f"{made:%Y-%m-%dT%H:%M:%S}.{made.microsecond // 1000:03d}Z"
    id = version_id(config.name, kernel)
    return {config.version_metadata: {"id": id, "tag": "", "timestamp": timestamp}}


def version_id(worker: str, kernel: Kernel) -> str:
    """The id of a Worker's one version."""
    bits = random.Random(f"version of {worker} {kernel.seed}").getrandbits(128)
    return str(uuid.UUID(int=bits, version=4))
