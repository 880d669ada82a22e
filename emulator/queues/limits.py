"""What a send must keep to, and the texts in which the service refuses it (1.9 to 1.14).

Numbers such as 1.9 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from emulator.queues.model import SECOND, Outgoing, Profile
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXPOSED = "queue_expose_error_codes"
_MESSAGE_BYTES = 128_000
_BATCH_COUNT = 100
_BATCH_BYTES = {"production": 256_000, "miniflare": 288_000}
_MOST_DELAY = 86_400 * SECOND
# The status text of an answer that does not say more.
_NO_CAUSE = "Internal Server Error"
_UNKNOWN = "Unknown Internal Error (15000)"

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
            raise _bad_delay(message.delay, verb, profile)


def _bad_delay(delay: int, verb: Verb, profile: Profile) -> Refused:
    code = 10203 if verb == "send" else 10202
    if profile == "miniflare":
        # It means to explain, but its answer cannot be sent (1.9).
        return Refused(_NO_CAUSE, code)
    # Production's own text is unknown.
    most = _MOST_DELAY // SECOND
    return Refused(f"message delay of {delay // SECOND} s is not between 0 and {most} s", code)


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
        return JsException("Error", _UNKNOWN)
    return JsException("Error", f"{refused.cause} ({refused.code})")


def internal_error(verb: Verb, flags: frozenset[str]) -> JsException:
    """What the caller sees when the service fails (1.13)."""
    if _EXPOSED in flags:
        return JsException("Error", _UNKNOWN)
    return JsException("Error", f"Queue {verb} failed: {_NO_CAUSE}")
