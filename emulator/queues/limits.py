"""What a send must keep to, and the texts in which the service refuses it (queues.md 1.9 to 1.14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from emulator.queues.model import Outgoing, Profile
from emulator.values import JsException

_EXPOSED = "queue_expose_error_codes"
_MESSAGE_BYTES = 128_000
_BATCH_COUNT = 100
_BATCH_BYTES = {"production": 256_000, "miniflare": 288_000}
_MOST_DELAY = 86_400_000_000

Verb = Literal["send", "sendBatch"]


class Refused(Exception):
    """The service refuses a send: the cause and its code."""

    def __init__(self, cause: str, code: int) -> None:
        super().__init__(cause)
        self.cause = cause
        self.code = code


def check(verb: Verb, messages: Sequence[Outgoing], profile: Profile) -> None:
    """Raise `Refused` for what is too large, too many or too late."""
    if verb == "send":
        _check_size(len(messages[0].body), "message length of {} bytes exceeds limit of {}")
    else:
        _check_batch(messages, profile)
    for message in messages:
        if message.delay is not None and not 0 <= message.delay <= _MOST_DELAY:
            # Miniflare means to explain, but its answer cannot be sent (1.9).
            raise Refused("Internal Server Error", 10203 if verb == "send" else 10202)


def _check_size(size: int, text: str) -> None:
    if size > _MESSAGE_BYTES:
        raise Refused(text.format(size, _MESSAGE_BYTES), 10204)


def _check_batch(messages: Sequence[Outgoing], profile: Profile) -> None:
    if len(messages) > _BATCH_COUNT:
        raise Refused(
            f"batch message count of {len(messages)} exceeds limit of {_BATCH_COUNT}", 10206
        )
    _check_size(
        max(len(message.body) for message in messages),
        "message in batch has length {} bytes which exceeds single message size limit of {}",
    )
    total, limit = sum(len(message.body) for message in messages), _BATCH_BYTES[profile]
    if total > limit:
        unit = " bytes" if profile == "production" else ""
        raise Refused(f"batch size of {total} bytes exceeds limit of {limit}{unit}", 10205)


def as_error(refused: Refused, verb: Verb, profile: Profile, flags: frozenset[str]) -> JsException:
    """What the caller sees: always a plain `Error`, its text by compatibility date (1.13)."""
    if _EXPOSED not in flags:
        return JsException("Error", f"Queue {verb} failed: {refused.cause}")
    if profile == "miniflare":
        # The local service sends neither cause nor code.
        return JsException("Error", "Unknown Internal Error (15000)")
    return JsException("Error", f"{refused.cause} ({refused.code})")
