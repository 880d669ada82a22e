"""Randomness, monotonic time and `atexit` as Worker code sees them."""

from __future__ import annotations

import asyncio
import atexit
import os
import random
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, python, simulate

from emulator import surroundings as module
from emulator.clock import Clock
from emulator.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _random_is_left_alone() -> Iterator[None]:
    before = random.getstate()
    yield
    assert random.getstate() == before


def surround(simulation: Simulation, seed: int = 0) -> Surroundings:
    surroundings = Surroundings(simulation.clock, seed)
    simulation.loop.before_run = surroundings.enter
    simulation.loop.after_run = surroundings.leave
    return surroundings


def values() -> list[Any]:
    return [
        os.urandom(8),
        secrets.token_hex(4),
        str(uuid.uuid4()),
        random.random(),
        random.choice("abcdef"),
        random.SystemRandom().random(),
        random.Random().random(),
        random.Random(5).random(),
    ]


async def draw() -> list[Any]:
    return values()


def drawn(seed: int) -> list[Any]:
    async def test(simulation: Simulation) -> list[Any]:
        surroundings = surround(simulation, seed)
        try:
            return await simulation.call(draw())
        finally:
            surroundings.close()

    result: list[Any] = simulate(test)
    return result


def test_random_values_are_the_same_for_the_same_seed_only() -> None:
    assert drawn(1) == drawn(1)
    assert all(one != two for one, two in zip(drawn(1)[:3], drawn(2)[:3], strict=True))


def test_random_values_are_the_same_in_another_process() -> None:
    source = "from test_surroundings import drawn\nprint(drawn(7))\n"

    assert python(source, PYTHONHASHSEED="5").strip() == repr(drawn(7))


def test_seeding_random_with_nothing_takes_the_same_stream() -> None:
    async def seeded() -> float:
        random.seed()
        return random.random()

    async def test(simulation: Simulation) -> float:
        surroundings = surround(simulation, 1)
        try:
            return await simulation.call(seeded())
        finally:
            surroundings.close()

    assert simulate(test) == simulate(test)
    assert random.Random.seed.__module__ == "random"
    assert random.random.__self__ is random.choice.__self__  # type: ignore[attr-defined]


def test_seeding_again_starts_both_streams_again() -> None:
    async def test(simulation: Simulation) -> None:
        surroundings = surround(simulation)
        first = await simulation.call(draw())
        second = await simulation.call(draw())
        surroundings.seed(0)
        assert await simulation.call(draw()) == first
        assert first != second
        surroundings.close()

    simulate(test)


def test_outside_everything_is_as_before() -> None:
    functions = (os.urandom, time.monotonic, time.perf_counter, atexit.register)

    async def test(simulation: Simulation) -> None:
        surroundings = surround(simulation)
        await simulation.call(draw())
        assert (os.urandom, time.monotonic, time.perf_counter, atexit.register) == functions
        assert os.urandom(8) != os.urandom(8)
        surroundings.close()

    simulate(test)


def test_monotonic_time_is_virtual_inside_and_real_outside() -> None:
    async def read() -> list[float]:
        await asyncio.sleep(90)
        return [
            time.monotonic(),
            time.perf_counter(),
            time.monotonic_ns() / 1e9,
            time.perf_counter_ns() / 1e9,
        ]

    async def test(simulation: Simulation) -> list[float]:
        surroundings = surround(simulation)
        before = time.monotonic()
        seen = await simulation.call(read())
        assert time.monotonic() - before < 60
        surroundings.close()
        return seen

    assert simulate(test) == [90, 90, 90, 90]


def test_a_library_imported_inside_keeps_functions_that_work_everywhere() -> None:
    kept: list[Callable[..., Any]] = []

    async def imports() -> None:
        from os import urandom
        from time import monotonic, monotonic_ns, perf_counter, perf_counter_ns

        kept.extend([monotonic, perf_counter, monotonic_ns, perf_counter_ns, urandom])

    async def test(simulation: Simulation) -> None:
        surroundings = surround(simulation)
        await simulation.call(imports())
        surroundings.close()

    simulate(test)
    *clocks, urandom = kept
    real = [time.monotonic(), time.perf_counter(), time.monotonic_ns(), time.perf_counter_ns()]
    for clock, at_least in zip(clocks, real, strict=True):
        assert clock() >= at_least
    assert urandom(16) != urandom(16)
    assert drawn(3)[0] == _drawn_by(urandom, 3)


def _drawn_by(urandom: Callable[[int], bytes], seed: int) -> bytes:
    async def test(simulation: Simulation) -> bytes:
        surroundings = surround(simulation, seed)

        async def draw_bytes() -> bytes:
            return urandom(8)

        result: bytes = await simulation.call(draw_bytes())
        surroundings.close()
        return result

    result: bytes = simulate(test)
    return result


def test_two_simulations_keep_their_own_randomness() -> None:
    alone = [drawn(1), drawn(2)]

    async def test(first: Simulation) -> list[Any]:
        with Simulation() as second:
            parts = [surround(first, 1), surround(second, 2)]
            draws = [await first.call(draw()), await second.call(draw())]
            again = [await second.call(draw()), await first.call(draw())]
            for part in parts:
                part.close()
            return [draws, again]

    assert simulate(test)[0] == alone


def test_a_simulation_used_by_a_mock_of_another_does_not_take_its_randomness() -> None:
    async def alone(simulation: Simulation) -> list[Any]:
        surroundings = surround(simulation, 1)
        result = [await simulation.call(draw()), await simulation.call(draw())]
        surroundings.close()
        return result

    async def nested(outer: Simulation) -> list[Any]:
        with Simulation() as inner:
            parts = [surround(outer, 1), surround(inner, 2)]

            async def worker() -> list[Any]:
                first = values()
                await inner.call(draw())
                return [first, values()]

            result: list[Any] = await outer.call(worker())
            for part in parts:
                part.close()
            return result

    assert simulate(nested) == simulate(alone)


def test_the_tests_own_random_state_comes_back_at_the_end() -> None:
    before = random.getstate()
    random.seed(5)
    expected = random.random()
    random.seed(5)
    drawn(1)

    assert random.random() == expected
    random.setstate(before)


def test_closing_without_having_run_changes_nothing() -> None:
    before = random.getstate()
    surroundings = Surroundings(Clock(0), 0)
    surroundings.leave()
    surroundings.close()

    assert random.getstate() == before


def test_atexit_is_deaf_to_user_code_inside() -> None:
    source = (
        "import asyncio, atexit, weakref\n"
        "from simulation import Simulation\n"
        "from test_surroundings import surround\n"
        "async def user():\n"
        "    atexit.register(print, 'a line of a Worker')\n"
        "    weakref.finalize(user, print, 'another')\n"
        "    await asyncio.sleep(1)\n"
        "async def main():\n"
        "    with Simulation() as simulation:\n"
        "        surround(simulation)\n"
        "        await simulation.call(user())\n"
        "atexit.register(print, 'the test')\n"
        "weakref.finalize(Simulation, print, 'its finalizer')\n"
        "asyncio.run(main())\n"
        "weakref.finalize(Simulation, print, 'its second finalizer')\n"
        "print('end')\n"
    )

    printed = python(source).splitlines()

    assert printed[0] == "end"
    assert sorted(printed[1:]) == ["its finalizer", "its second finalizer", "the test"]


def test_nothing_of_a_closed_emulator_is_kept_by_the_module() -> None:
    drawn(1)

    assert (module._inside, module._owner, module._outer_state) == ([], [], [])
