"""What Worker code may write: ids, names, durations, step settings (B2, B8, S2, I23, D1, S4)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from emulator.values.numbers import to_number
from emulator.workflows import texts
from emulator.workflows.model import StepConfig
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from emulator.workflows.model import Profile

_ID: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9-_]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_RESERVED: Final = re.compile(r"batch|terminate|terminateAll|cf_[0-9a-f]{64}")
_ADDRESS: Final = re.compile(r"[a-zA-Z0-9, */#_-]+")
_DURATION: Final = re.compile(r"([^ ]+) +(\w\w*?)s?", re.ASCII)
_UNITS: Final[Mapping[str, float]] = {
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
    "month": 2_592_000_000,
    "year": 31_557_600_000,
}
_BACKOFFS: Final = ("constant", "linear", "exponential")
_MOST_IN_BATCH: Final = 100
_MOST_RETRIES: Final = 10_000
LONGEST: Final = 365 * 86_400_000
"""How many milliseconds a sleep or a wait may last (D5, D9)."""

DEFAULTS: Final[Mapping[Profile, StepConfig]] = {
    "production": StepConfig(5, 10_000, "exponential", "10 minutes"),
    "miniflare": StepConfig(5, 1_000, "exponential", "10 minutes"),
}
"""A step's settings unless it says otherwise (S5)."""


# Ids and names.


def check_id(id: object) -> str:
    """The id, if an instance may have it (B2)."""
    if not isinstance(id, str) or len(id) > 100 or not _ID.fullmatch(id):
        raise EngineError(*texts.INVALID_ID)
    return id


def check_listed_id(id: object) -> str:
    """The id, if an item of `createBatch({instances})` may have it (B8)."""
    if not isinstance(id, str) or len(id) > 100 or not _ID.fullmatch(id) or _RESERVED.fullmatch(id):
        raise EngineError(*texts.RESERVED_ID)
    return id


def check_address(id: object) -> str:
    """The id, if it may be one that cron made (B11)."""
    if not isinstance(id, str) or len(id) > 271 or not _ADDRESS.fullmatch(id):
        raise EngineError(*texts.RESERVED_ID)
    return id


def check_batch_count(count: object) -> int:
    """The number of instances that `createBatch({count})` asks for (B9)."""
    number = count if isinstance(count, (int, float)) and not isinstance(count, bool) else 0
    if number <= 0 or number != number // 1 or math.isinf(number):
        raise EngineError(*texts.BAD_COUNT)
    if number > _MOST_IN_BATCH:
        raise EngineError(*texts.COUNT_TOO_HIGH)
    return int(number)


def check_batch(length: int) -> None:
    """Refuse a list for `createBatch` that is empty or too long (B6)."""
    if not length:
        raise EngineError(*texts.BATCH_EMPTY)
    if length > _MOST_IN_BATCH:
        raise EngineError(*texts.BATCH_TOO_LONG)


def check_listed_batch(length: int) -> None:
    """Refuse `instances` for `createBatch` that are none or too many (B9)."""
    if not 0 < length <= _MOST_IN_BATCH:
        raise EngineError(*texts.BATCH_SIZE)


def check_deleted_batch(length: int) -> None:
    """Refuse a list for `deleteBatch` that is empty or too long (B11)."""
    if not length:
        raise EngineError(*texts.DELETE_EMPTY)
    if length > _MOST_IN_BATCH:
        raise EngineError(*texts.DELETE_TOO_LONG)


def check_event_type(type: object) -> str:
    """The type, if production takes events of it (I23)."""
    if not isinstance(type, str) or len(type) > 100 or not _ID.fullmatch(type):
        raise EngineError(*texts.INVALID_EVENT_TYPE)
    return type


def check_step_name(name: str) -> None:
    """Refuse a name that is too long or has control characters (S2); JavaScript counts UTF-16."""
    long = len(name) > 128 and len(name.encode("utf-16-le", "surrogatepass")) > 2 * 256
    if long or _CONTROL.search(name):
        raise texts.invalid_name(name)


def check_callback(name: str, callback: object) -> None:
    """Refuse a step without a function (S1)."""
    if not callable(callback):
        raise texts.no_callback(name)


def check_rollback(name: str, options: object) -> tuple[Callable[..., object] | None, object]:
    """A step's rollback handler and its settings, from what follows the callback (K1)."""
    if options is None:
        return None, None
    if not isinstance(options, Mapping):
        raise texts.rollback_options(name)
    handler = options.get("rollback")
    if handler is None:
        return None, None
    if not callable(handler):
        raise texts.rollback_function(name)
    return handler, options.get("rollbackConfig")


# Durations.


def worker_duration(value: object, *, strict: bool = False) -> float:
    """A duration of Worker code in milliseconds; NaN for what is none (D1, D2).

    A unit nobody knows counts as milliseconds, and so does one in capitals, unless `strict`.

        >>> worker_duration("1.5 hours"), worker_duration(1500), worker_duration("5 Minutes")
        (5400000.0, 1500, 5)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return _in_words(value, strict) if isinstance(value, str) else math.nan


@lru_cache(maxsize=1024)
def _in_words(text: str, strict: bool) -> float:
    number = to_number(text)
    if number == number:
        return number
    found = _DURATION.fullmatch(text)
    if found is None:
        return math.nan
    amount, unit = found.groups()
    if strict and unit not in _UNITS and unit not in ("m", "millisecond"):
        return math.nan
    return to_number(amount) * _UNITS.get(unit, 1)


def is_strict(profile: Profile) -> bool:
    """Whether unknown units are refused."""
    return profile == "production"


def check_duration(profile: Profile, value: object) -> float:
    """The milliseconds of a sleep or of a wait's time-out (D2, D5, D9)."""
    milliseconds = worker_duration(value, strict=is_strict(profile))
    if milliseconds != milliseconds:
        local = profile == "miniflare"
        raise EngineError(*(texts.BAD_DURATION_LOCALLY if local else texts.BAD_DURATION))
    if milliseconds > LONGEST and profile == "production":
        raise EngineError(*texts.TOO_LONG)
    return milliseconds


# Step settings.


def step_config(profile: Profile, name: str, config: object) -> StepConfig:
    """A step's settings over the defaults (S4 to S6)."""
    try:
        return _merged(profile, config)
    except ValueError:
        raise texts.invalid_config(name) from None


def rollback_config(profile: Profile, name: str, config: object) -> StepConfig:
    """A rollback's settings over the defaults (K1, K4)."""
    try:
        return _merged(profile, config, allowed=("retries", "timeout"))
    except ValueError:
        raise texts.rollback_config(name) from None


_STEP_KEYS: Final = ("retries", "timeout", "sensitive")
_RETRY_KEYS: Final = ("limit", "delay", "backoff")
_MISSING: Final = object()


def _merged(
    profile: Profile, config: object, *, allowed: tuple[str, ...] = _STEP_KEYS
) -> StepConfig:
    merged = DEFAULTS[profile]
    if config is None:
        return merged
    given = _only(config, allowed)
    if "retries" in given:
        retries = _only(given["retries"], _RETRY_KEYS)
        merged = merged._replace(
            limit=_limit(profile, retries.get("limit", _MISSING)),
            delay=_delay(profile, retries.get("delay", _MISSING)),
            backoff=_one_of(_BACKOFFS, retries.get("backoff", merged.backoff)),
        )
    if "timeout" in given:
        merged = merged._replace(timeout=_timeout(profile, given["timeout"]))
    if "sensitive" in given:
        merged = merged._replace(sensitive=bool(_one_of(("output",), given["sensitive"])))
    return merged


def _only(value: object, allowed: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or any(key not in allowed for key in value):
        raise ValueError
    return value


def _one_of(allowed: tuple[str, ...], value: object) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError
    return value


def _limit(profile: Profile, value: object) -> float:
    number = _number(value)
    if number < 0 or (profile == "production" and number > _MOST_RETRIES):
        raise ValueError
    return number


def _delay(profile: Profile, value: object) -> float | str | None:
    if callable(value):
        return None
    return _duration(profile, value, lambda milliseconds: milliseconds >= 0)


def _timeout(profile: Profile, value: object) -> float | str:
    return _duration(profile, value, lambda milliseconds: milliseconds > 0)


def _duration(profile: Profile, value: object, fits: Callable[[float], bool]) -> float | str:
    milliseconds = worker_duration(value, strict=is_strict(profile))
    if not isinstance(value, (int, float, str)) or not math.isfinite(milliseconds):
        raise ValueError
    if not fits(milliseconds):
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return value


def shown_config(config: StepConfig) -> dict[str, object]:
    """Settings as `ctx.config` has them: without the delay if that is a function (R3, R5)."""
    retries: dict[str, object] = {"limit": config.limit, "backoff": config.backoff}
    if config.delay is not None:
        retries["delay"] = config.delay
    shown: dict[str, object] = {"retries": retries, "timeout": config.timeout}
    if config.sensitive:
        shown["sensitive"] = "output"
    return shown
