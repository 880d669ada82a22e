"""Synchronous code that waits: the stack is put aside and entered again (`emulator/stacks.py`)."""

from __future__ import annotations

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, simulate

from emulator.scope import Scope
from emulator.stacks import NoStack

if TYPE_CHECKING:
    from collections.abc import Callable


def wait(awaitable: Any) -> Any:
    """What `run_sync` does."""
    loop: Any = asyncio.get_running_loop()
    future = asyncio.ensure_future(awaitable)
    loop.stacks.wait(future)
    return future.result()


def test_other_work_and_time_go_on_while_code_waits() -> None:
    said: list[str] = []

    async def waits() -> str:
        said.append("before")
        result = wait(asyncio.sleep(2, "slept"))
        said.append("after")
        return str(result)

    async def ticks() -> None:
        for second in range(3):
            said.append(f"tick {second}")
            await asyncio.sleep(1)

    async def test(simulation: Simulation) -> None:
        outcome = simulation.start(waits())
        simulation.start(ticks())
        await simulation.advance(10)
        assert outcome == ["slept"]

    simulate(test)
    assert said == ["before", "tick 0", "tick 1", "tick 2", "after"]


def test_a_wait_takes_virtual_time_and_no_more() -> None:
    async def waits() -> float:
        loop = asyncio.get_running_loop()
        wait(asyncio.sleep(86_400))
        return loop.time()

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(waits()) == 86_400

    simulate(test)


def test_waits_end_in_the_order_of_what_they_wait_for() -> None:
    said: list[int] = []

    async def waits(seconds: int) -> None:
        wait(asyncio.sleep(seconds))
        said.append(seconds)
        wait(asyncio.sleep(10 * seconds))
        said.append(10 * seconds)

    async def test(simulation: Simulation) -> None:
        for seconds in (3, 1, 2):
            simulation.start(waits(seconds))
        await simulation.advance(100)

    simulate(test)
    assert said == [1, 2, 3, 10, 20, 30]


def test_a_wait_inside_a_wait() -> None:
    async def inner() -> int:
        return int(wait(asyncio.sleep(1, 5))) + 1

    async def outer() -> int:
        return int(wait(inner())) + 1

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(outer()) == 7

    simulate(test)


def test_the_current_task_is_the_same_before_and_after() -> None:
    seen: list[Any] = []

    async def inner() -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(1)
        seen.append(asyncio.current_task())

    async def waits() -> None:
        seen.append(asyncio.current_task())
        wait(inner())
        seen.append(asyncio.current_task())

    async def test(simulation: Simulation) -> None:
        await simulation.call(waits())

    simulate(test)
    assert seen[0] is seen[3]
    assert seen[1] is seen[2]
    assert seen[0] is not seen[1]


def test_an_error_is_raised_where_the_code_waits() -> None:
    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("from the coroutine")

    async def waits() -> str:
        try:
            wait(fails())
        except ValueError as error:
            return str(error)
        return "nothing"

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(waits()) == "from the coroutine"

    simulate(test)


def test_what_is_done_already_is_not_waited_for() -> None:
    async def waits() -> int:
        future = asyncio.get_running_loop().create_future()
        future.set_result(3)
        return int(wait(future))

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(waits()) == 3
        assert simulation.loop.stacks.guests == 0

    simulate(test)


def test_callbacks_of_the_loop_may_wait_too() -> None:
    said: list[str] = []

    def callback() -> None:
        said.append(wait(asyncio.sleep(1, "callback")))

    async def test(simulation: Simulation) -> None:
        async def user() -> None:
            asyncio.get_running_loop().call_soon(callback)
            await asyncio.sleep(5)
            said.append("user")

        await simulation.call(user())
        assert simulation.loop.stacks.guests == 0

    simulate(test)
    assert said == ["callback", "user"]


def test_a_task_cancelled_while_it_waits_is_cancelled_at_its_next_await() -> None:
    """As in Pyodide, where the step of a task that is suspended cannot be interrupted."""
    said: list[str] = []

    async def waits() -> None:
        wait(asyncio.sleep(2))
        said.append("waited")
        await asyncio.sleep(0)
        said.append("never")

    async def user() -> None:
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        said.append(f"cancelled {task.cancelled()}")

    async def test(simulation: Simulation) -> None:
        await simulation.call(user())

    simulate(test)
    assert said == ["waited", "cancelled True"]


def _frozen(said: list[str], finish: Callable[[Simulation, Scope], Any]) -> None:
    def deep() -> None:
        try:
            wait(asyncio.sleep(10))
            said.append("waited")
        except BaseException as error:
            said.append(f"except {type(error).__name__}")
            raise
        finally:
            said.append("finally")

    async def waits() -> None:
        try:
            deep()
        finally:
            said.append("outer finally")

    async def test(simulation: Simulation) -> None:
        scope = Scope()
        simulation.start(waits(), scope)
        await simulation.advance(5)
        finish(simulation, scope)
        gc.collect()
        await simulation.advance(100)

    simulate(test)
    gc.collect()


def test_no_line_of_code_that_waits_runs_after_a_power_cut() -> None:
    said: list[str] = []
    _frozen(said, lambda simulation, scope: simulation.loop.kill(scope))
    assert said == []


def test_without_a_power_cut_these_lines_run() -> None:
    said: list[str] = []
    _frozen(said, lambda simulation, scope: None)
    assert said == ["waited", "finally", "outer finally"]


def test_no_line_of_code_that_waits_runs_when_the_loop_is_closed() -> None:
    said: list[str] = []

    async def waits() -> None:
        try:
            wait(asyncio.sleep(10))
        finally:
            said.append("finally")

    async def test(simulation: Simulation) -> None:
        simulation.start(waits())
        await simulation.advance(5)

    simulate(test)
    gc.collect()
    assert said == []


def test_code_the_loop_did_not_enter_cannot_wait() -> None:
    async def test(simulation: Simulation) -> None:
        def work() -> None:
            simulation.loop.stacks.wait(simulation.loop.create_future())

        with pytest.raises(NoStack):
            simulation.loop.call_inside(work)

    simulate(test)


def test_asyncio_run_waits_in_place() -> None:
    """Seen in Pyodide 0.28.2 and 314.0.6."""

    async def user() -> list[Any]:
        first = asyncio.run(asyncio.sleep(1, "run"))
        second = asyncio.get_running_loop().run_until_complete(asyncio.sleep(1, "loop"))
        return [first, second, asyncio.get_running_loop().time()]

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(user()) == ["run", "loop", 2.0]

    simulate(test)


def test_a_tracer_sees_calls_and_returns_in_pairs() -> None:
    """One stack a thread is all that coverage's tracer keeps."""
    depth = [0]
    lowest = [0]

    def tracer(frame: Any, event: str, argument: object) -> Any:
        if event == "call":
            depth[0] += 1
        elif event == "return":
            depth[0] -= 1
            lowest[0] = min(lowest[0], depth[0])
        return tracer

    async def nothing() -> None: ...

    async def test(simulation: Simulation) -> None:
        await simulation.call(nothing())

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        simulate(test)
    finally:
        sys.settrace(before)
    assert (depth[0], lowest[0]) == (0, 0)


def test_a_simulation_may_go_on_in_another_thread() -> None:
    simulation = Simulation()

    def use() -> float:
        async def main() -> float:
            await simulation.advance(1)
            return float(await simulation.call(waits()))

        return asyncio.run(main())

    async def waits() -> float:
        wait(asyncio.sleep(1))
        return asyncio.get_running_loop().time()

    with simulation, ThreadPoolExecutor(1) as other:
        assert [use(), other.submit(use).result(), use()] == [2.0, 4.0, 6.0]


def test_code_that_waits_cannot_go_on_in_another_thread() -> None:
    simulation = Simulation()

    async def waits() -> None:
        wait(asyncio.sleep(10))

    def advance(seconds: float) -> None:
        asyncio.run(simulation.advance(seconds))

    with simulation, ThreadPoolExecutor(1) as other:
        simulation.start(waits())
        advance(1)
        with pytest.raises(RuntimeError, match="only in the thread it began in"):
            other.submit(advance, 100).result()
