"""Whether a failed attempt is tried again, and how long after (R1 to R3, S7, E4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from emulator.workflows.grammar import worker_duration
from emulator.workflows.model import MILLISECOND

if TYPE_CHECKING:
    from emulator.workflows.model import Duration, ErrorInfo, StepConfig

_NON_RETRYABLE: Final = "NonRetryableError"
MOST: Final[Duration] = 10**17
"""Some three thousand years: later than any test looks, and an integer that every store holds."""


def is_non_retryable(error: ErrorInfo) -> bool:
    """Whether an error ends its step at once; only its name and its text count (E4, E8)."""
    return error.name == _NON_RETRYABLE or error.message.startswith(_NON_RETRYABLE)


def preserved(error: ErrorInfo) -> ErrorInfo:
    """A non-retryable error with its own name and text, which RPC may have made one (E6)."""
    if error.name == _NON_RETRYABLE:
        return error
    text = error.message.removeprefix(_NON_RETRYABLE).removeprefix(":").lstrip()
    return error._replace(name=_NON_RETRYABLE, message=text)


def will_retry(config: StepConfig, charged: int) -> bool:
    """Whether there is one more attempt after so many that count; `limit` is of retries (S7)."""
    return charged <= config.limit


def retry_delay(config: StepConfig, attempt: int, base: float) -> Duration:
    """The wait after failed attempt number `attempt`, for a delay of `base` milliseconds (R1).

    A function's value goes through the backoff too (R3).

        >>> from emulator.workflows.model import StepConfig
        >>> retry_delay(StepConfig(5, 10_000, "exponential", "10 minutes"), 3, 10_000)
        40000000
    """
    whole = microseconds(base)
    if config.backoff == "linear":
        whole *= attempt
    elif config.backoff == "exponential":
        whole *= 2 ** min(attempt - 1, 100)
    return min(whole, MOST)


def microseconds(milliseconds: float) -> Duration:
    """A number of Worker code as a duration; what is negative counts as none."""
    if not milliseconds > 0:
        return 0
    return min(round(milliseconds * MILLISECOND), MOST) if milliseconds < MOST else MOST


def given_delay(value: object) -> float | None:
    """What a delay function returned, in milliseconds; None if that is no delay (R3)."""
    milliseconds = worker_duration(value)
    return milliseconds if milliseconds >= 0 and math.isfinite(milliseconds) else None
