"""Queues and consumers as the API shows them (queues.md 7.1 and 7.2)."""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING, Any, Final

from emulator.queues.model import MILLISECOND, SECOND, PullRules
from emulator.server.rest.answers import ApiError, not_found, time

if TYPE_CHECKING:
    from emulator.queues.setup import Attached
    from emulator.server.rest.calls import Call

# The code has been seen, the words have not.
_NO_QUEUE: Final = (404, 11000, "Queue not found.")
_NO_CONSUMER: Final = (404, 11000, "Queue consumer not found.")


def queue_id(name: str) -> str:
    """The id of a queue: always the same for a name, so that scripts can keep it."""
    return _id(f"queue {name}")


def consumer_id(name: str) -> str:
    """The id of a queue's consumer, whichever it is."""
    return _id(f"consumer of {name}")


def _id(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def find_queue(call: Call) -> str:
    """The name of the queue in the path; raises `ApiError`."""
    wanted, names = call.path["queue"], call.platform.queues.broker.queues
    for name in names:
        if queue_id(name) == wanted:
            return name
    # Ids only: `queues.get(queue_id)` of the official client, and wrangler looks names up (7).
    raise not_found(ApiError(*_NO_QUEUE), "queue", wanted, {n: queue_id(n) for n in names})


def find_consumer(call: Call) -> tuple[str, Attached]:
    """The queue in the path and its consumer, which the path names too; raises `ApiError`."""
    name = find_queue(call)
    attached = call.platform.queues.attached(name)
    if attached is None or call.path["consumer"] != consumer_id(name):
        raise ApiError(*_NO_CONSUMER)
    return name, attached


def queue(call: Call, name: str) -> dict[str, Any]:
    """A queue with its producers, its consumers and its settings."""
    queues = call.platform.queues
    setup, rules = queues.broker.setup(name), queues.broker.rules(name)
    created = call.kernel.clock.start if setup.created is None else setup.created
    modified = created if setup.modified is None else setup.modified
    producers = [{"type": "worker", "script": script} for script in producers_of(call, name)]
    consumers = consumers_of(call, name)
    return {
        "queue_id": queue_id(name),
        "queue_name": name,
        "created_on": time(created),
        "modified_on": time(modified),
        "producers": producers,
        "producers_total_count": len(producers),
        "consumers": consumers,
        "consumers_total_count": len(consumers),
        "settings": {
            "delivery_delay": rules.delivery_delay // SECOND,
            "delivery_paused": queues.broker.paused(name),
            "message_retention_period": rules.retention // SECOND,
        },
    }


def producers_of(call: Call, name: str) -> list[str]:
    """The names of the Workers with a binding to a queue."""
    return [
        worker.name
        for worker in call.platform.settings.workers
        if any(producer.queue == name for producer in worker.producers)
    ]


def consumers_of(call: Call, name: str) -> list[dict[str, Any]]:
    """The consumers of a queue, of which there is at most one."""
    attached = call.platform.queues.attached(name)
    return [] if attached is None else [consumer(call, name, attached)]


def consumer(call: Call, name: str, attached: Attached) -> dict[str, Any]:
    """A consumer; wrangler reads `script` of one, the official client `script_name`."""
    change = call.platform.queues.broker.setup(name).change
    worker, rules = attached
    shown: dict[str, Any] = {
        "consumer_id": consumer_id(name),
        "created_on": time(call.kernel.clock.start if change is None else change.at),
        "queue_name": name,
        "queue_id": queue_id(name),
        "dead_letter_queue": rules.dead_letter_queue or "",
    }
    if isinstance(rules, PullRules):
        settings = {
            "batch_size": rules.batch_size,
            "max_retries": rules.max_retries,
            "retry_delay": rules.retry_delay // SECOND,
            "visibility_timeout_ms": rules.visibility_timeout // MILLISECOND,
        }
        return {**shown, "type": "http_pull", "settings": settings}
    pushed: dict[str, int | None] = {
        "batch_size": rules.max_batch_size,
        "max_concurrency": rules.max_concurrency,
        "max_retries": rules.max_retries,
        "max_wait_time_ms": rules.max_batch_timeout // MILLISECOND,
        "retry_delay": rules.retry_delay // SECOND,
    }
    return {
        **shown,
        "type": "worker",
        "script": worker,
        "script_name": worker,
        "settings": pushed,
    }


def metrics(call: Call, name: str) -> dict[str, Any]:
    """What is not acknowledged yet; 0 stands for no oldest message."""
    backlog = call.platform.queues.broker.unacknowledged(name)
    return {
        "backlog_bytes": backlog.bytes,
        "backlog_count": backlog.count,
        "oldest_message_timestamp_ms": (backlog.oldest or 0) // MILLISECOND,
    }
