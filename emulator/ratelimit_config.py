"""Rate limits in a config: `ratelimits` of a Worker, and the older form among `unsafe.bindings`.

The platform's texts are wrangler's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.queue_config import required
from emulator.section import Range, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.section import Section

PERIODS: Final = (10, 60)
_LIMIT: Final = Range(0, 2**53 - 1)
_KEYS: Final = ("name", "namespace_id", "simple")
_UNSAFE_KEYS: Final = (*_KEYS, "type")
_UNSAFE: Final = "ratelimit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitConfig:
    """A rate limit: so many calls in so many seconds; those of one `namespace` share counts."""

    binding: str
    namespace: str
    limit: int
    period: int


def rate_limits(of: Callable[[str], Section]) -> tuple[RateLimitConfig, ...]:
    """Read the rate limits of a Worker; `of` finds the section that holds a key."""
    listed = of("ratelimits").sections("ratelimits")
    unsafe = of("unsafe").section("unsafe").sections("bindings")
    older = [item for item in unsafe if item.values.get("type") == _UNSAFE]
    return (
        *(_rate_limit(item, _KEYS) for item in listed),
        *(_rate_limit(item, _UNSAFE_KEYS) for item in older),
    )


def _rate_limit(item: Section, keys: tuple[str, ...]) -> RateLimitConfig:
    item.warn_unknown(keys)
    says = f'wrangler: "{item.path}" bindings must have a string'
    name = required(
        item, "name", "the name of the rate limit on `env`", f'{says} "name" field but got'
    )
    namespace = required(
        item,
        "namespace_id",
        "a text of digits, unique in the account",
        f'{says} "namespace_id" field but got',
    )
    simple = item.section("simple")
    simple.warn_unknown(("limit", "period"))
    return RateLimitConfig(
        binding=name,
        namespace=namespace,
        limit=int(_number(item, simple, "limit")),
        period=_period(item, simple),
    )


def _number(item: Section, simple: Section, key: str) -> float:
    says = f'wrangler: "{item.path}" bindings "simple.{key}" must be a number but got '
    says += f"{shown(simple.values)}."
    if key not in simple:
        simple.wrong(key, "is missing", says=says)
        return 0
    return simple.number(key, 0, _LIMIT, says=says)


def _period(item: Section, simple: Section) -> int:
    period = _number(item, simple, "period")
    if "period" in simple and period not in PERIODS:
        says = f'wrangler: "{item.path}" bindings "simple.period" must be either 10 or 60 but got '
        simple.not_allowed("period", "10 or 60", says=f"{says}{shown(period)}.")
        return PERIODS[0]
    return int(period) or PERIODS[0]
