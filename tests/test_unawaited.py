"""Coroutines that user code drops without awaiting them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, simulate

from emulator.location import Location
from emulator.scope import Scope

if TYPE_CHECKING:
    from emulator.loop import SimLoop

Reports = list[tuple[Scope | None, str, Location | None]]


async def forgotten() -> None:
    raise AssertionError("nobody awaits it")


async def forgets() -> int:
    line = sys._getframe().f_lineno + 1
    forgotten()  # type: ignore[unused-coroutine]
    await asyncio.sleep(1)
    return line


async def forgets_a_librarys() -> int:
    line = sys._getframe().f_lineno + 1
    asyncio.sleep(1)  # type: ignore[unused-coroutine]
    await asyncio.sleep(1)
    return line


def claim(loop: SimLoop, answer: bool = True) -> Reports:
    reports: Reports = []

    def report(scope: Scope | None, name: str, where: Location | None) -> bool:
        reports.append((scope, name, where))
        return answer

    loop.on_never_awaited = report
    return reports


@pytest.mark.parametrize(("user", "name"), [(forgets, "forgotten"), (forgets_a_librarys, "sleep")])
def test_the_scope_the_name_and_the_line_are_reported(user: Any, name: str) -> None:
    async def test(simulation: Simulation) -> None:
        reports = claim(simulation.loop)
        scope = Scope()
        line = await simulation.call(user(), scope=scope)
        assert reports == [(scope, name, Location(__file__, line))]

    simulate(test)


def test_python_warns_as_usual_if_nobody_claims_it() -> None:
    async def test(simulation: Simulation) -> None:
        reports = claim(simulation.loop, answer=False)
        with pytest.warns(RuntimeWarning, match="coroutine 'forgotten' was never awaited"):
            await simulation.call(forgets())
        assert len(reports) == 1
        with pytest.warns(RuntimeWarning, match="coroutine 'forgotten' was never awaited"):
            await simulation.call(forgets())

    simulate(test)


def test_without_a_hook_python_warns_as_usual() -> None:
    async def test(simulation: Simulation) -> None:
        with pytest.warns(RuntimeWarning, match="never awaited"):
            await simulation.call(forgets())

    simulate(test)


def test_a_coroutine_made_by_a_library_is_not_reported() -> None:
    space: dict[str, Any] = {"forgotten": forgotten}
    library = compile("def call():\n    forgotten()\n", contextlib.__file__, "exec")
    exec(library, space)

    async def user() -> None:
        space["call"]()
        await asyncio.sleep(1)

    async def test(simulation: Simulation) -> None:
        reports = claim(simulation.loop)
        with pytest.warns(RuntimeWarning, match="never awaited"):
            await simulation.call(user())
        assert reports == []

    simulate(test)


@pytest.mark.parametrize("depth", [0, 1, 10])
def test_a_coroutine_the_test_made_is_not_reported_even_if_it_is_dropped_inside(
    depth: int,
) -> None:
    async def test(simulation: Simulation) -> None:
        reports = claim(simulation.loop)
        sys.set_coroutine_origin_tracking_depth(depth)
        made = [forgotten()]

        async def user() -> None:
            made.clear()
            await asyncio.sleep(1)

        with pytest.warns(RuntimeWarning, match="never awaited"):
            await simulation.call(user())
        assert reports == []
        await simulation.call(forgets())
        assert len(reports) == 1
        assert sys.get_coroutine_origin_tracking_depth() == depth

    before = sys.get_coroutine_origin_tracking_depth()
    try:
        simulate(test)
    finally:
        sys.set_coroutine_origin_tracking_depth(before)


def test_awaited_and_cancelled_coroutines_are_not_reported() -> None:
    async def fine() -> None: ...

    async def user() -> None:
        await fine()
        task = asyncio.create_task(fine())
        task.cancel()
        await asyncio.gather(fine(), task, return_exceptions=True)

    async def test(simulation: Simulation) -> None:
        reports = claim(simulation.loop)
        await simulation.call(user())
        assert reports == []

    simulate(test)


def test_outside_the_simulation_everything_is_as_before() -> None:
    async def test(simulation: Simulation) -> None:
        usual = warnings._warn_unawaited_coroutine  # type: ignore[attr-defined]
        await simulation.call(asyncio.sleep(1))
        assert warnings._warn_unawaited_coroutine is usual  # type: ignore[attr-defined]

    simulate(test)
