"""Power cuts: no line of user code runs after one, whatever becomes of its objects."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, python, simulate

from emulator import immortal
from emulator.loop import PowerCut
from emulator.scope import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Said = list[str]


# -- user code that tells of every line it runs after the cut --------------------------------------


class Tells:
    """An object whose collection is a line of user code."""

    def __init__(self, said: Said, name: str) -> None:
        self.said, self.name = said, name

    def __del__(self) -> None:
        self.said.append(f"{self.name}: __del__")

    def speak(self, *_: object) -> None:
        self.said.append(f"{self.name}: spoke")


async def endless(said: Said) -> AsyncIterator[int]:
    try:
        while True:
            yield 1
            await asyncio.sleep(1)
    finally:
        said.append("async generator: finally")


def numbers(said: Said) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        said.append("generator: finally")


@contextmanager
def resource(said: Said) -> Iterator[None]:
    try:
        yield
    finally:
        said.append("context manager: finally")


class Resource:
    def __init__(self, said: Said) -> None:
        self.said = said

    async def __aenter__(self) -> Resource:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.said.append("async context manager: exit")


async def child(said: Said, name: str) -> None:
    try:
        await asyncio.sleep(50)
    except BaseException as error:
        said.append(f"{name}: except {type(error).__name__}")
        raise
    finally:
        said.append(f"{name}: finally")


async def iterate(said: Said) -> None:
    async for _ in endless(said):
        pass


async def handler(said: Said, emulators: asyncio.Future[None]) -> None:
    """Touches everything that could run a line later."""
    loop = asyncio.get_running_loop()
    loop.call_later(20, said.append, "timer")
    loop.call_later(20, Tells(said, "timer's argument").speak)
    loop.call_later(20, loop.call_soon, said.append, "nested callback")
    future = loop.create_future()
    future.add_done_callback(Tells(said, "callback of its own future").speak)
    loop.call_later(15, future.set_result, 1)
    emulators.add_done_callback(Tells(said, "callback of an emulator's future").speak)
    job = loop.run_in_executor(None, int, "1")
    job.add_done_callback(Tells(said, "callback of an executor's future").speak)
    outside = asyncio.create_task(child(said, "task"), context=contextvars.Context())
    outside.add_done_callback(Tells(said, "callback of a task").speak)
    local = Tells(said, "local")
    weakref.finalize(local, said.append, "finalizer")
    suspended = numbers(said)
    next(suspended)
    half = endless(said)
    await anext(half)
    try:
        with resource(said):
            async with Resource(said), asyncio.timeout(30), asyncio.TaskGroup() as group:
                group.create_task(child(said, "first of group"))
                group.create_task(child(said, "second of group"))
                group.create_task(iterate(said))
                await asyncio.gather(child(said, "gathered"), child(said, "gathered too"))
    except BaseException as error:
        said.append(f"handler: except {type(error).__name__}")
        raise
    finally:
        said.append("handler: finally")


async def crash(simulation: Simulation, said: Said) -> Scope:
    """Run the handler for ten seconds and cut its power; the loop goes on."""
    emulators = simulation.loop.create_future()
    scope = Scope()
    simulation.loop.spawn(scope, handler(said, emulators), "handler")
    await simulation.advance(10)
    said.clear()  # the executor's future is done already
    simulation.loop.kill(scope)
    emulators.set_result(None)
    return scope


def scenario(*, after: float = 1000, suspends: bool = True) -> Said:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        simulation.loop.suspends = suspends
        await crash(simulation, said)
        gc.collect()
        await simulation.advance(after)

    simulate(test)
    gc.collect()
    return said


# -- at an await ----------------------------------------------------------------------------------


def test_without_a_cut_the_scenario_runs_all_these_lines() -> None:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        emulators = simulation.loop.create_future()
        simulation.start(handler(said, emulators))
        await simulation.advance(10)
        emulators.set_result(None)
        await simulation.advance(1000)

    simulate(test)
    gc.collect()
    assert len(set(said)) > 20


@pytest.mark.parametrize("suspends", [False, True])
def test_no_line_runs_after_a_power_cut(suspends: bool) -> None:
    assert scenario(suspends=suspends) == []


def test_no_line_runs_when_the_loop_is_closed_at_once() -> None:
    assert scenario(after=0) == []


def test_no_line_runs_when_the_loop_is_closed_before_it_runs_again() -> None:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        await crash(simulation, said)

    simulate(test)
    gc.collect()
    assert said == []


def test_no_line_runs_when_the_interpreter_exits() -> None:
    source = (
        "import sys\n"
        "from test_power_cut import scenario\n"
        "class Said(list):\n"
        "    def append(self, text):\n"
        "        print(text, flush=True)\n"
        "import test_power_cut\n"
        "import asyncio\n"
        "from simulation import Simulation\n"
        "said = Said()\n"
        "simulation = Simulation()\n"
        "async def main():\n"
        "    await test_power_cut.crash(simulation, said)\n"
        "asyncio.run(main())\n"
        "print('cut', flush=True)\n"
    )

    printed = python(source).splitlines()

    assert printed[-1] == "cut"
    # Before the cut, only the executor's job was done.
    name = "callback of an executor's future"
    assert printed[:-1] == [f"{name}: spoke", f"{name}: __del__"]


def test_what_only_the_scope_holds_is_never_collected() -> None:
    """An invocation holds what user code gave it, such as work for `waitUntil`."""
    said: Said = []

    class Holding(Scope):
        def __init__(self) -> None:
            super().__init__()
            self.held = Tells(said, "held")

    async def test(simulation: Simulation) -> None:
        simulation.loop.kill(Holding())
        await simulation.advance(1)

    simulate(test)
    gc.collect()

    assert said == []


def test_callbacks_that_were_ready_or_came_from_a_thread_never_run_and_keep_their_arguments() -> (
    None
):
    said: Said = []

    async def test(simulation: Simulation) -> None:
        loop, scope = simulation.loop, Scope()

        async def user() -> None:
            loop.call_soon(Tells(said, "ready").speak, Tells(said, "ready argument"))
            future = loop.create_future()
            future.add_done_callback(Tells(said, "callback").speak)
            loop._inbox.append(loop.call_soon(Tells(said, "from a thread").speak))
            loop._ready.pop()
            loop.kernel_soon(future.set_result, None)
            loop.kill(scope)
            await asyncio.sleep(1)

        simulation.start(user(), scope)
        await simulation.advance(5)
        gc.collect()

    simulate(test)
    assert said == []


def test_other_scopes_go_on() -> None:
    async def test(simulation: Simulation) -> str:
        said: Said = []
        await crash(simulation, said)
        return await simulation.call(_answer())

    assert simulate(test) == "answer"


async def _answer() -> str:
    await asyncio.sleep(5)
    return "answer"


def test_a_dead_scope_has_no_timers_left_and_settling_does_not_wait_for_it() -> None:
    async def test(simulation: Simulation) -> None:
        await crash(simulation, [])
        assert simulation.loop.timers == []
        await simulation.settle()
        assert simulation.seconds == 10

    simulate(test)


def test_killing_twice_is_killing_once() -> None:
    async def test(simulation: Simulation) -> None:
        scope = await crash(simulation, [])
        before = sys.getrefcount(scope)
        simulation.loop.kill(scope)
        assert sys.getrefcount(scope) == before

    simulate(test)


def test_an_asynchronous_generator_that_was_being_closed_is_frozen_too() -> None:
    said: Said = []

    async def slowly() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(5)
            said.append("closed")

    async def user() -> None:
        async for _ in slowly():
            break
        await asyncio.sleep(100)

    async def test(simulation: Simulation) -> None:
        scope = Scope()
        simulation.start(user(), scope)
        await simulation.advance(1)
        simulation.loop.kill(scope)
        await simulation.advance(100)

    simulate(test)
    gc.collect()
    assert said == []


# -- inside synchronous code ----------------------------------------------------------------------


def deep(simulation: Simulation, scope: Scope, said: Said, depth: int) -> None:
    """A user stack whose every frame tells if it goes on; the innermost loses its power."""
    told = Tells(said, f"local {depth}")
    try:
        with resource(said):
            if depth:
                deep(simulation, scope, said, depth - 1)
            else:
                simulation.loop.kill(scope)
                simulation.loop.cut_here()
    except BaseException as error:
        said.append(f"{depth}: except {type(error).__name__}")
        raise
    finally:
        said.append(f"{depth}: finally")
    told.speak()


async def cut_synchronously(simulation: Simulation, said: Said) -> Scope:
    scope = Scope()

    async def user() -> None:
        try:
            async with Resource(said):
                deep(simulation, scope, said, 5)
        except BaseException as error:
            said.append(f"handler: except {type(error).__name__}")
        said.append("handler: went on")
        await asyncio.sleep(1)
        said.append("handler: slept")

    simulation.loop.spawn(scope, user(), "user")
    await simulation.advance(5)
    return scope


def test_in_a_greenlet_no_line_runs_after_a_synchronous_cut() -> None:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        simulation.loop.suspends = True
        await cut_synchronously(simulation, said)
        gc.collect()
        await simulation.advance(100)
        assert await simulation.call(_answer()) == "answer"

    simulate(test)
    gc.collect()
    assert said == []


def test_in_a_greenlet_no_line_runs_at_interpreter_exit() -> None:
    source = (
        "import asyncio, test_power_cut\n"
        "from simulation import Simulation\n"
        "class Said(list):\n"
        "    def append(self, text):\n"
        "        print(text, flush=True)\n"
        "simulation = Simulation()\n"
        "simulation.loop.suspends = True\n"
        "asyncio.run(test_power_cut.cut_synchronously(simulation, Said()))\n"
        "print('cut', flush=True)\n"
    )

    assert python(source) == "cut\n"


def test_without_a_greenlet_power_cut_unwinds_the_stack_and_no_await_returns() -> None:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        simulation.loop.suspends = False
        await cut_synchronously(simulation, said)
        await simulation.advance(100)
        assert await simulation.call(_answer()) == "answer"

    simulate(test)
    gc.collect()
    assert "0: except PowerCut" in said
    assert "handler: went on" in said
    assert "handler: slept" not in said


def test_a_power_cut_that_nothing_catches_is_no_error_of_the_simulation() -> None:
    async def test(simulation: Simulation) -> None:
        lost: list[Any] = []
        simulation.loop.on_lost_error = lambda scope, details: lost.append(details)
        scope = Scope()

        def callback() -> None:
            simulation.loop.kill(scope)
            simulation.loop.cut_here()

        async def user() -> None:
            simulation.loop.call_soon(callback)
            await asyncio.sleep(100)

        simulation.loop.spawn(scope, user(), "user")
        await simulation.advance(5)
        assert lost == []

    simulate(test)


def test_code_that_swallows_a_power_cut_can_make_tasks_but_none_starts() -> None:
    said: Said = []

    async def test(simulation: Simulation) -> None:
        scope = Scope()

        async def user() -> None:
            try:
                simulation.loop.kill(scope)
                simulation.loop.cut_here()
            except BaseException:
                asyncio.create_task(child(said, "made too late"))  # noqa: RUF006
                simulation.loop.call_later(1, said.append, "timer made too late")
            await asyncio.sleep(0)
            said.append("went on")

        simulation.loop.spawn(scope, user(), "user")
        await simulation.advance(100)

    simulate(test)
    gc.collect()
    assert said == []


def test_only_running_code_of_a_killed_scope_can_be_cut() -> None:
    async def test(simulation: Simulation) -> None:
        async def user() -> None:
            with pytest.raises(RuntimeError, match="only the running code of a killed scope"):
                simulation.loop.cut_here()

        await simulation.call(user())

    simulate(test)
    assert issubclass(PowerCut, BaseException)
    assert not issubclass(PowerCut, Exception)


def test_simulations_in_greenlets_behave_as_without() -> None:
    async def test(simulation: Simulation) -> tuple[Any, float]:
        simulation.loop.suspends = True
        variable = contextvars.ContextVar("variable", default=0)

        async def user() -> list[Any]:
            variable.set(1)
            results = await asyncio.gather(*(asyncio.sleep(n, n) for n in (3, 1, 2)))
            return [*results, variable.get()]

        with pytest.raises(ZeroDivisionError):
            await simulation.call(_fail())
        return await simulation.call(user()), simulation.seconds

    assert simulate(test) == ([3, 1, 2, 1], 3)


async def _fail() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


@pytest.mark.parametrize("suspends", [False, True])
def test_a_trace_function_sees_user_code_and_stays_set(suspends: bool) -> None:
    seen: list[str] = []

    def trace(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code is user.__code__:
            seen.append(event)
        return trace

    async def user() -> None:
        await asyncio.sleep(1)
        seen.append("last line")

    async def test(simulation: Simulation) -> None:
        simulation.loop.suspends = suspends
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            await simulation.call(user())
            assert sys.gettrace() is trace
        finally:
            sys.settrace(before)

    simulate(test)
    assert "line" in seen
    assert "last line" in seen


# -- what a cut keeps -----------------------------------------------------------------------------


class Links(Scope):
    """A scope that knows its emulator, as an invocation does."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self.simulation: Simulation | None = simulation

    def cut_links(self) -> None:
        self.simulation = None


def test_closing_cuts_a_killed_scopes_links_to_the_emulator() -> None:
    async def main() -> tuple[Any, Any]:
        with Simulation() as simulation:
            scope = Links(simulation)
            simulation.loop.spawn(scope, asyncio.sleep(100), "user")
            await simulation.advance(1)
            simulation.loop.kill(scope)
            assert scope.simulation is simulation
        return weakref.ref(simulation), weakref.ref(simulation.pump)

    simulation, pump = asyncio.run(main())
    gc.collect()
    assert simulation() is None
    assert pump() is None


OWN = """
async def serve(self, users, cell):
    def uses_it():
        return cell
    await sleep(100)
"""


class Part:
    """What the emulator is made of: it knows the kernel, and the kernel the loop."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel


def test_closing_releases_what_the_emulators_own_frozen_frames_hold_of_it() -> None:
    space: dict[str, Any] = {"sleep": asyncio.sleep}
    exec(compile(OWN, immortal.__file__.replace("immortal", "ingress"), "exec"), space)
    said: Said = []

    async def main() -> list[weakref.ref[Any]]:
        with Simulation() as simulation:
            part, shared, scope = Part(simulation), Part(simulation), Scope()
            serve = space["serve"](part, Tells(said, "the user's"), shared)
            simulation.loop.spawn(scope, serve, "serve")
            await simulation.advance(1)
            simulation.loop.kill(scope)
            return [weakref.ref(part), weakref.ref(shared)]

    part, shared = asyncio.run(main())
    gc.collect()
    assert part() is None
    assert shared() is not None, "a cell may be shared with a function that still runs"
    assert said == []


def test_closing_leaves_the_users_own_frozen_frames_alone() -> None:
    async def main() -> weakref.ref[Any]:
        with Simulation() as simulation:
            part, scope = Part(simulation), Scope()

            async def user(part: Part) -> None:
                await asyncio.sleep(100)

            simulation.loop.spawn(scope, user(part), "user")
            await simulation.advance(1)
            simulation.loop.kill(scope)
            return weakref.ref(part)

    part = asyncio.run(main())
    gc.collect()
    assert part() is not None
