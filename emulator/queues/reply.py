"""What the runtime answers of a consumer's run: workerd's `QueueResponse`, whoever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.queues.model import SECOND

if TYPE_CHECKING:
    from emulator.queues.model import Duration, Result


def reply(result: Result) -> dict[str, Any]:
    """The answer, by JavaScript's names (2.9, 2.13); a delay that was not given is not there.

    >>> from emulator.queues.model import Result
    >>> reply(Result(retries={"m1": 30_000_000}))["retryMessages"]
    [{'msgId': 'm1', 'delaySeconds': 30}]
    """
    return {
        "outcome": result.outcome,
        "ackAll": result.ack_all,
        "retryBatch": {"retry": result.retry_batch, **_seconds(result.retry_batch_delay)},
        "explicitAcks": list(result.explicit_acks),
        "retryMessages": [{"msgId": id, **_seconds(delay)} for id, delay in result.retries.items()],
    }


def _seconds(delay: Duration | None) -> dict[str, int]:
    return {} if delay is None else {"delaySeconds": delay // SECOND}
