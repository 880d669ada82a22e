"""Reads `@pytest.mark.fault_sweep`, and says why a test that has it cannot be swept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

from emulator.errors import PlanError

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Plan
    from emulator.sweeping.search import Search

NAME = "fault_sweep"
# By pytest from 8.4 on, and before that.
_UNCLAIMED = (
    "async def functions are not natively supported",
    "async def function and no async plugin installed",
)
_ARGUMENTS = ("depth", "classes", "only", "skip", "limit")


class CannotSweep(Exception):
    """A marked test that cannot be swept; the text says why and what to do."""


def is_swept(item: pytest.Item) -> bool:
    """Whether this item is to be swept in this session."""
    option = item.config.getoption
    return (
        item.get_closest_marker(NAME) is not None
        and option("--fault-sweep") != "off"
        # A report's line to paste: this plan, once.
        and not option("--emulator-faults")
        and not option("setuponly", False)
        and not option("setupplan", False)
    )


def check(item: pytest.Item) -> pytest.Function:
    """Return the item, as what it is; raises `CannotSweep`."""
    if not isinstance(item, pytest.Function):
        raise CannotSweep("fault_sweep: only a test function can be swept")
    cls = item.cls
    if cls is not None and issubclass(cls, TestCase):
        raise CannotSweep(
            "fault_sweep: a test of unittest.TestCase cannot use the fixture `emulator`, which a "
            "sweep needs; write it as a function or in a plain class. Outside pytest there is "
            "emulator.sweep()"
        )
    for definition in item._fixtureinfo.name2fixturedefs.get("emulator", ()):
        if definition.scope != "function":
            raise CannotSweep(
                f"fault_sweep: the fixture `emulator` has the scope {definition.scope!r} here, and "
                "each run of a sweep needs an emulator of its own; make the fixture "
                "function-scoped, or give the wider one another name and let this test use ours"
            )
    if "subtests" in item.fixturenames:
        raise CannotSweep(
            "fault_sweep: subtests report by themselves, once in each run of a sweep; use plain "
            "assertions in this test"
        )
    return item


def is_unclaimed(error: BaseException | None) -> bool:
    """Whether this is what pytest says of a coroutine test that no plugin runs."""
    return any(text in str(error) for text in _UNCLAIMED)


def check_emulator(
    item: pytest.Function, *, met: bool, skipped: BaseException | None = None
) -> None:
    """Raise `CannotSweep` if a run of the test has not made an emulator by our fixture.

    A test that was `skipped` need not, unless pytest skips it because it is a coroutine.
    """
    if met or (skipped is not None and not is_unclaimed(skipped)):
        return
    raise CannotSweep(
        "fault_sweep: the test does not use the fixture `emulator` of this plugin, through which "
        "a sweep plans its faults. Let the test, or one of its fixtures, take `emulator`; "
        "@pytest.mark.emulator(...) gives its arguments. An emulator that the test makes itself "
        "is swept by emulator.sweep()"
    )


def make_search(
    item: pytest.Function, *, first: list[Plan], shard: tuple[int, int], seed: int
) -> Search:
    """Return the search that the marker describes; raises `CannotSweep` for wrong arguments."""
    from emulator.sweeping.search import Search

    marker = item.get_closest_marker(NAME)
    assert marker is not None
    if marker.args:
        raise CannotSweep(
            f"fault_sweep takes keyword arguments only, and was given {marker.args[0]!r} without a "
            "keyword; write @pytest.mark.fault_sweep(depth=2)"
        )
    arguments: dict[str, Any] = dict(marker.kwargs)
    for name in arguments:
        if name not in _ARGUMENTS:
            raise CannotSweep(
                f"fault_sweep has no argument {name!r}; it takes {', '.join(_ARGUMENTS)}"
            )
    try:
        return Search(**arguments, seed=seed, first=first, shard=shard)
    except (PlanError, TypeError, ValueError) as error:
        raise CannotSweep(f"fault_sweep: {error}") from None
