"""What was set up of a queue while the emulator ran, on top of what the config says of it.

In production a queue's settings stay on the queue, and its consumer is what the last deployment, or
the last call of the REST API, made it. Here the config is the deployment: a change of the consumer
holds until the config says something else of that consumer than it did at the change.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from emulator.queues.model import ConsumerRules, PullRules

if TYPE_CHECKING:
    from emulator.queues.model import Duration, Instant, QueueRules, Record


class Attached(NamedTuple):
    """A queue's consumer: the Worker that gets its batches, None for pullers, and the settings."""

    worker: str | None
    rules: ConsumerRules | PullRules


class Change(NamedTuple):
    """A consumer set up at run time, None where it was taken away, in place of the config's."""

    configured: Attached | None
    consumer: Attached | None
    at: Instant


@dataclass(frozen=True, slots=True)
class Setup:
    """What was set up of one queue; None leaves it to the config.

    `created` is when, of a queue that no config named then, `purged` when it was purged last.
    """

    created: Instant | None = None
    modified: Instant | None = None
    purged: Instant | None = None
    delivery_delay: Duration | None = None
    retention: Duration | None = None
    change: Change | None = None

    def over(
        self, configured: QueueRules, worker: str | None = None
    ) -> tuple[QueueRules, str | None]:
        """The settings that hold where the config says these, and the Worker that consumes."""
        consumer = self.consumer(attached_of(configured, worker))
        rules = None if consumer is None else consumer.rules
        delay, retention = self.delivery_delay, self.retention
        effective = replace(
            configured,
            delivery_delay=configured.delivery_delay if delay is None else delay,
            retention=configured.retention if retention is None else retention,
            consumer=rules if isinstance(rules, ConsumerRules) else None,
            pull=rules if isinstance(rules, PullRules) else None,
        )
        return effective, None if consumer is None else consumer.worker

    def consumer(self, configured: Attached | None) -> Attached | None:
        """The consumer that holds where the config has this one."""
        if self.change is None or self.change.configured != configured:
            return configured
        return self.change.consumer

    def dump(self) -> Record:
        """The facts as a record has them."""
        change = self.change
        return [
            self.created,
            self.modified,
            self.purged,
            self.delivery_delay,
            self.retention,
            None
            if change is None
            else [_dumped(change.configured), _dumped(change.consumer), change.at],
        ]

    @classmethod
    def load(cls, facts: Record) -> Setup:
        """The opposite of `dump`."""
        created, modified, purged, delay, retention, change = facts
        if change is not None:
            configured, consumer, at = change
            change = Change(_loaded(configured), _loaded(consumer), at)
        return cls(created, modified, purged, delay, retention, change)


def attached_of(rules: QueueRules, worker: str | None) -> Attached | None:
    """The consumer of a queue with these settings, which this Worker would be."""
    consumer = rules.consumer or rules.pull
    if consumer is None:
        return None
    return Attached(worker if rules.pull is None else None, consumer)


def _dumped(attached: Attached | None) -> Record | None:
    return None if attached is None else [attached.worker, list(astuple(attached.rules))]


def _loaded(dumped: Record | None) -> Attached | None:
    if dumped is None:
        return None
    worker, values = dumped
    return Attached(worker, (PullRules if worker is None else ConsumerRules)(*values))
