"""What goes into the broker and what comes out of it.

    rules       QueueRules, ConsumerRules, PullRules    how a queue and its consumer are set up
    input       Outgoing, Result                        a message to store, how a run went
    output      Delivery, Batch, Pulled, Settled, …     what to hand out, what became of it

All of it is immutable. Instants and durations are integers, in microseconds; an instant counts
from the Unix epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Instant: TypeAlias = int
Duration: TypeAlias = int

Profile: TypeAlias = Literal["production", "miniflare"]

Outcome: TypeAlias = Literal["ack", "retry", "dead_letter", "dropped", "lost"]
"""What became of one delivery.

`lost` is a delivery whose result never arrived, such as a lease that ran out, and which is made
again; a lost *last* delivery is `dead_letter` or `dropped`, as any other last one.
"""

Record: TypeAlias = Sequence[Any]
"""One durable change: its kind, the queue, and facts (`str`, `int`, `bytes`, None, lists of these).

`Any`, because the kind decides what follows; the broker's transition of that kind declares it.
"""

MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
DEFAULT_RETENTION: Final = 345_600 * SECOND
"""How long a queue keeps a message unless told otherwise: four days (3.9)."""

LOST: Final = None
"""Stands for a `Result` that never arrived: the consumer crashed, or its answer was lost."""


@dataclass(frozen=True, slots=True)
class ConsumerRules:
    """The settings of a push consumer (3.1); the defaults are production's."""

    max_batch_size: int = 10
    max_batch_timeout: Duration = 5 * SECOND
    max_retries: int = 3
    retry_delay: Duration = 0
    dead_letter_queue: str | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class PullRules:
    """The settings of a pull consumer (3.1, 5.2); the first and the last are what a pull asks for
    unless it says otherwise."""

    batch_size: int = 5
    max_retries: int = 3
    retry_delay: Duration = 0
    dead_letter_queue: str | None = None
    visibility_timeout: Duration = 30 * SECOND


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The settings of a queue; without a consumer its messages wait until they expire.

    `consumer` is pushed to, `pull` pulls; a queue that is given both is refused with a
    `ValueError` (4.8).
    """

    name: str
    delivery_delay: Duration = 0
    retention: Duration = DEFAULT_RETENTION
    paused: bool = False
    consumer: ConsumerRules | None = None
    pull: PullRules | None = None

    def __post_init__(self) -> None:
        if self.consumer is not None and self.pull is not None:
            raise ValueError(
                f"queue {self.name!r} has a push consumer and a pull consumer, and a queue can have"
                " only one consumer: remove one of them"
            )


class Outgoing(NamedTuple):
    """A message on its way into a queue; `delay=None` is the queue's own delay (1.10)."""

    id: str
    body: bytes
    content_type: str
    delay: Duration | None = None


class Delivery(NamedTuple):
    """A message as its consumer gets it; `attempts` is 1 at the first delivery (2.3).

    `seq` is unlike `id` never shared, not even by two copies of a message in one queue.
    """

    seq: int
    id: str
    body: bytes
    content_type: str
    timestamp: Instant
    attempts: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in a queue, delayed messages left out (1.3).

    `oldest` is the timestamp of the first in line, None when nobody waits.
    """

    count: int
    bytes: int
    oldest: Instant | None


class Batch(NamedTuple):
    """Messages taken together; `number` counts from 1 in each queue.

    `backlog` is what remained after they were taken (2.2).
    """

    number: int
    queue: str
    messages: tuple[Delivery, ...]
    started: Instant
    backlog: Backlog


class InFlight(NamedTuple):
    """A batch that was taken and not settled yet."""

    number: int
    started: Instant
    messages: tuple[Delivery, ...]


class Leased(NamedTuple):
    """A message that a puller holds until `until`; `lease` is what it answers with."""

    lease: str
    until: Instant
    message: Delivery


class Pending(NamedTuple):
    """A stored message that is neither in flight nor leased.

    `attempts` is the number of deliveries so far, `due` when it becomes, or became, available.
    """

    seq: int
    id: str
    body: bytes
    content_type: str
    timestamp: Instant
    attempts: int
    due: Instant


@dataclass(frozen=True, slots=True)
class Result:
    """What the runtime recorded of a consumer's run (2.9).

    `retries` maps the id of each message that asked for it to the delay it asked for, or None.
    `retry_batch_delay` is `retryAll`'s. Ids that are not in the batch have no effect.
    """

    outcome: str = "ok"
    ack_all: bool = False
    retry_batch: bool = False
    retry_batch_delay: Duration | None = None
    explicit_acks: Collection[str] = ()
    retries: Mapping[str, Duration | None] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the run succeeded; every outcome but `ok` is a failure (2.13)."""
        return self.outcome == "ok"


class Settled(NamedTuple):
    """What became of one message of a batch.

    `due` is when it becomes available again, in this queue or in its dead letter queue; None if it
    does not.
    """

    seq: int
    id: str
    attempts: int
    outcome: Outcome
    due: Instant | None
    body: bytes
    content_type: str
    timestamp: Instant


class Pulled(NamedTuple):
    """What a pull got; `backlog` is what remained after that.

    `ran_out` tells of leases that nobody had noticed to be over, and which the pull ended first.
    """

    messages: tuple[Leased, ...]
    backlog: Backlog
    ran_out: list[Settled]


class Answered(NamedTuple):
    """What became of a puller's acknowledgements and retries (5.7).

    `ack_count` and `retry_count` are the leases that were accepted as such; `warnings` has the
    others, each with the reason. `settled` tells of the messages, one for each that was still
    there.
    """

    ack_count: int
    retry_count: int
    warnings: dict[str, str]
    settled: list[Settled]


class Recovered(NamedTuple):
    """A batch that was in flight when the platform itself went down, settled as lost."""

    queue: str
    number: int
    settled: list[Settled]


class Counts(NamedTuple):
    """How many messages of a queue met each end, and on how many deliveries.

    `entered` = `acked` + `dead_lettered` + `dropped` + `expired` + `purged` + those still stored,
    in flight and leased ones included. A lease is a delivery.
    `dropped` are those that ran out of retries without a dead letter queue, and those a queue never
    stored although they had arrived.
    """

    entered: int
    delivered: int
    acked: int
    dead_lettered: int
    dropped: int
    expired: int
    purged: int
