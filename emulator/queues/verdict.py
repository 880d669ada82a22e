"""What becomes of the messages of a batch, given what its consumer's run recorded (2.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.queues.model import LOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.queues.message import Message
    from emulator.queues.model import (
        ConsumerRules,
        Duration,
        Instant,
        Outcome,
        Profile,
        PullRules,
        Result,
    )

    Fate = tuple[Outcome, Instant | None]

# 2.10: is a message acknowledged that no call of its own names? The first row that holds decides;
# where none does, it is not.
_REST: Final[Mapping[Profile, tuple[tuple[str, bool], ...]]] = {
    "production": (("ack_all", True), ("retry_batch", False), ("ok", True)),
    "miniflare": (("retry_batch", False), ("ok", True)),
}
# 2.10: does an explicit ack of a single message count at all?
_EXPLICIT_ACKS: Final[Mapping[Profile, bool]] = {"production": True, "miniflare": False}

ACKED: Final[Fate] = ("ack", None)
LOST_COPY: Final[Fate] = ("lost", None)


def judge(
    profile: Profile,
    consumer: ConsumerRules | PullRules,
    messages: list[Message],
    result: Result | None,
    now: Instant,
) -> list[Fate]:
    """What becomes of each message, and when it is due again; dead letters get None (2.10)."""
    if result is LOST:
        return [again(consumer, message, "lost", now) for message in messages]
    rows = _REST[profile]
    rest = next((acked for condition, acked in rows if getattr(result, condition)), False)
    retries, whole = result.retries, result.retry_batch_delay
    if rest and not retries:
        return [ACKED] * len(messages)
    acks = frozenset(result.explicit_acks if _EXPLICIT_ACKS[profile] else ())
    return [
        ACKED
        if message.id in acks or (rest and message.id not in retries)
        else again(consumer, message, "retry", now, retries.get(message.id), whole)
        for message in messages
    ]


def after(now: Instant, delay: Duration) -> Instant:
    """Now plus a delay; a negative one counts as none (2.15)."""
    return now + delay if delay > 0 else now


def again(
    consumer: ConsumerRules | PullRules,
    message: Message,
    outcome: Outcome,
    now: Instant,
    *delays: Duration | None,
) -> Fate:
    """A delivery that failed: once more after the first delay given, or the end (4.2, 4.3).

    A copy is delivered once, whatever comes of it: its original is what the retries are for.
    """
    if message.is_copy:
        return LOST_COPY
    if message.attempts > consumer.max_retries:
        return ("dropped" if consumer.dead_letter_queue is None else "dead_letter", None)
    given = (delay for delay in delays if delay is not None)
    return (outcome, after(now, next(given, consumer.retry_delay)))
