"""The pump: when time moves, who waits for whom, what callers it runs under."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import sys
import threading
import time
import unittest
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from simulation import START, Simulation, python, simulate, turn
from starlette.concurrency import run_in_threadpool

from emulator.errors import (
    EmulatorClosed,
    EmulatorError,
    InsideSimulation,
    NotSettled,
    Stuck,
    UnsupportedLoop,
)
from emulator.pump import Goal
from emulator.scope import Scope

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator


async def nothing() -> str:
    return "done"


async def sleeping(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept until {asyncio.get_running_loop().time():g}"


async def with_time_out(gate: Any, seconds: float = 5) -> str:
    try:
        async with asyncio.timeout(seconds):
            await gate
    except TimeoutError:
        return "timed out"
    return "passed"


# -- rule 1: the clock waits for the test ---------------------------------------------------------


@pytest.mark.parametrize("turns", [1, 2, 3, 20, 500])
def test_time_does_not_move_while_the_test_is_about_to_act(turns: int) -> None:
    async def test(simulation: Simulation) -> str:
        gate = asyncio.Event()
        call = asyncio.create_task(simulation.call(with_time_out(gate.wait())))
        for _ in range(turns):
            await asyncio.sleep(0)
        gate.set()
        return await call

    assert simulate(test) == "passed"


def test_time_moves_once_the_test_only_waits() -> None:
    async def test(simulation: Simulation) -> str:
        return await simulation.call(with_time_out(asyncio.Event().wait()))

    assert simulate(test) == "timed out"


def test_an_explicit_advance_does_not_wait_for_ever_for_a_busy_test() -> None:
    async def test(simulation: Simulation) -> None:
        async def busy() -> None:
            while True:
                await turn()

        spinning = asyncio.create_task(busy())
        await simulation.advance(5)
        assert simulation.seconds == 5
        spinning.cancel()

    simulate(test)


def test_time_stands_still_while_test_code_runs() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.start(sleeping(5))
        await asyncio.sleep(0.01)
        assert simulation.seconds == 0
        await simulation.advance(5)
        assert simulation.seconds == 5

    simulate(test)


# -- rule 2: what moves it ------------------------------------------------------------------------


def test_a_call_moves_time_by_itself_from_one_due_time_to_the_next() -> None:
    async def test(simulation: Simulation) -> None:
        assert await simulation.call(sleeping(30)) == "slept until 30"
        assert await simulation.call(sleeping(0.5)) == "slept until 30.5"

    simulate(test)


def test_a_call_that_may_not_advance_waits_for_one_that_moves_time() -> None:
    async def test(simulation: Simulation) -> str:
        call = asyncio.create_task(simulation.call(sleeping(30), advance=False))
        await asyncio.sleep(0.01)
        assert simulation.seconds == 0
        await simulation.advance(30)
        return await call

    assert simulate(test) == "slept until 30"


def test_one_call_that_may_not_advance_stops_the_clock_for_all() -> None:
    async def test(simulation: Simulation) -> None:
        gate = asyncio.Event()
        still = asyncio.create_task(simulation.call(gate.wait(), advance=False))
        call = asyncio.create_task(simulation.call(sleeping(5)))
        await asyncio.sleep(0.01)
        assert simulation.seconds == 0
        gate.set()
        await still
        assert await call == "slept until 5"

    simulate(test)


def test_the_clock_stands_still_in_a_hold_and_goes_on_after_it() -> None:
    async def test(simulation: Simulation) -> None:
        with simulation.pump.hold():
            call = asyncio.create_task(simulation.call(sleeping(5)))
            await asyncio.sleep(0.01)
            assert simulation.seconds == 0
        assert await call == "slept until 5"

    simulate(test)


def test_an_explicit_advance_moves_the_clock_in_a_hold() -> None:
    async def test(simulation: Simulation) -> None:
        with simulation.pump.hold(), simulation.pump.hold():
            await simulation.advance(5)
        assert simulation.seconds == 5

    simulate(test)


def test_real_work_in_flight_holds_the_clock_even_for_advance() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.loop.in_flight += 1
        advance = asyncio.create_task(simulation.advance(5))
        await asyncio.sleep(0.01)
        assert simulation.seconds == 0
        simulation.loop.in_flight -= 1
        simulation.loop.kernel_soon(list)
        await advance
        assert simulation.seconds == 5

    simulate(test)


def test_advance_runs_what_is_due_on_the_way_and_at_its_end() -> None:
    async def test(simulation: Simulation) -> None:
        ran: list[float] = []
        for seconds in (1, 3, 3, 5, 5.000001):
            simulation.loop.call_later(seconds, lambda: ran.append(simulation.seconds))
        await simulation.advance(5)
        assert ran == [1, 3, 3, 5]
        assert simulation.seconds == 5

    simulate(test)


def test_advance_by_nothing_runs_what_is_due_now() -> None:
    async def test(simulation: Simulation) -> None:
        outcome = simulation.start(nothing())
        await simulation.advance(0)
        assert outcome == ["done"]

    simulate(test)


def test_settle_stops_at_the_last_thing_that_happened() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.start(sleeping(30))
        await simulation.settle()
        assert simulation.seconds == 30
        await simulation.settle()
        assert simulation.seconds == 30

    simulate(test)


def test_run_until_stops_at_the_event_that_makes_it_true() -> None:
    async def test(simulation: Simulation) -> None:
        ran: list[int] = []

        async def worker() -> None:
            for number in range(100):
                await asyncio.sleep(1)
                ran.append(number)
                await asyncio.sleep(0)
                ran.append(number)

        simulation.start(worker())
        await simulation.run_until(lambda: len(ran) == 7)
        assert len(ran) == 7
        assert simulation.seconds == 4

    simulate(test)


def test_goals_in_progress_at_the_same_time_are_each_reached_where_they_should() -> None:
    async def test(simulation: Simulation) -> list[tuple[str, float]]:
        reached: list[tuple[str, float]] = []

        async def note(name: str, waiting: Any) -> None:
            await waiting
            reached.append((name, simulation.seconds))

        simulation.start(sleeping(20))
        await asyncio.gather(
            note("advance 30", simulation.advance(30)),
            note("settle", simulation.settle()),
            note("call", simulation.call(sleeping(7))),
            note("advance 5", simulation.advance(5)),
            note("until", simulation.run_until(lambda: simulation.seconds >= 6)),
        )
        return reached

    # Nothing happens at 6; the first event after it is the one that ends the call.
    assert simulate(test) == [
        ("advance 5", 5),
        ("until", 7),
        ("call", 7),
        ("settle", 20),
        ("advance 30", 30),
    ]


def test_calls_may_run_at_the_same_time() -> None:
    async def test(simulation: Simulation) -> list[str]:
        calls = [simulation.call(sleeping(seconds)) for seconds in (3, 1, 2)]
        return await asyncio.gather(*calls)

    assert simulate(test) == [f"slept until {seconds}" for seconds in (3, 1, 2)]


def test_code_woken_by_the_test_runs_without_a_call_and_time_does_not_move() -> None:
    async def test(simulation: Simulation) -> None:
        gate, ran = asyncio.Event(), []

        async def worker() -> None:
            await gate.wait()
            ran.append("woken")
            await asyncio.sleep(1)
            ran.append("slept")

        simulation.start(worker())
        await simulation.advance(0)
        gate.set()
        await asyncio.sleep(0.01)
        assert (ran, simulation.seconds) == (["woken"], 0)
        await simulation.settle()
        assert (ran, simulation.seconds) == (["woken", "slept"], 1)

    simulate(test)


# -- rule 3: fairness -----------------------------------------------------------------------------


def test_a_spinning_handler_cannot_starve_the_test() -> None:
    async def test(simulation: Simulation) -> None:
        turns = 0

        async def spin() -> None:
            nonlocal turns
            while True:
                turns += 1
                await turn()

        call = asyncio.create_task(simulation.call(spin()))
        counts = []
        for _ in range(10):
            await asyncio.sleep(0)
            counts.append(turns)
        call.cancel()
        steps = {later - sooner for sooner, later in itertools.pairwise(counts)}
        assert steps == {1000}

    simulate(test)


def test_wait_for_guards_a_test_against_a_spinning_handler() -> None:
    async def spin() -> None:
        while True:
            await turn()

    async def test(simulation: Simulation) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(simulation.call(spin()), 0.02)

    simulate(test)


def test_a_handler_that_sleeps_for_ever_lets_the_test_run_now_and_then() -> None:
    async def test(simulation: Simulation) -> None:
        async def endless() -> None:
            while True:
                await sleeping(1)

        call = asyncio.create_task(simulation.call(endless()))
        for _ in range(10):
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call, 0.02)

    simulate(test)


# -- rule 4: cancellation -------------------------------------------------------------------------


def test_a_cancelled_call_leaves_and_the_handler_goes_on() -> None:
    async def test(simulation: Simulation) -> None:
        ended: list[str] = []

        async def handler() -> None:
            ended.append(await sleeping(5))

        gate = asyncio.Event()

        async def waiting() -> None:
            await gate.wait()
            await handler()

        call = asyncio.create_task(simulation.call(waiting()))
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
        await simulation.settle()
        assert ended == ["slept until 5"]

    simulate(test)


def test_cancelling_while_the_result_is_under_way_raises_nothing_else() -> None:
    async def test(simulation: Simulation) -> None:
        for turns in range(1, 6):
            call = asyncio.create_task(simulation.call(nothing()))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            try:
                assert await call == "done"
            except asyncio.CancelledError:
                pass
        assert await simulation.call(nothing()) == "done"

    simulate(test)


def test_a_handlers_cancellation_is_not_swallowed_by_a_task_group_outside() -> None:
    async def handler() -> None:
        raise asyncio.CancelledError("the handler's own")

    async def test(simulation: Simulation) -> None:
        with pytest.raises(asyncio.CancelledError, match="the handler's own"):
            await simulation.call(handler())

    simulate(test)


def test_wait_for_outside_times_out_in_real_time_and_the_next_call_works() -> None:
    async def test(simulation: Simulation) -> None:
        with simulation.pump.hold(), pytest.raises(TimeoutError):
            await asyncio.wait_for(simulation.call(sleeping(5)), 0.01)
        assert simulation.seconds == 0
        assert await simulation.call(sleeping(1)) == "slept until 1"

    simulate(test)


def test_a_failing_sibling_in_a_task_group_cancels_the_call_only() -> None:
    async def test(simulation: Simulation) -> None:
        ended: list[str] = []

        async def handler() -> None:
            ended.append(await sleeping(5))

        async def fail() -> None:
            raise ZeroDivisionError

        async def together() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(simulation.call(handler()))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as raised, simulation.pump.hold():
            await together()
        assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError]
        await simulation.settle()
        assert ended == ["slept until 5"]

    simulate(test)


# -- rule 6: stuck --------------------------------------------------------------------------------


def test_stuck_says_which_call_waits_and_where_and_what_to_do() -> None:
    async def test(simulation: Simulation) -> str:
        due = START + 3_600_000_000
        simulation.loop.kernel_at(due, list, owner="retention", passive=True)
        with pytest.raises(Stuck) as raised:
            await simulation.call(asyncio.Event().wait(), name="fetch(GET /)")
        return str(raised.value)

    text = simulate(test)
    assert "fetch(GET /), called at " in text
    assert f"{__file__}:" in text or "simulation.py:" in text
    assert "a timer due at 3600 s" in text
    for remedy in ("in another task", "`advance`", "`emulator.hold()`"):
        assert remedy in text


def test_every_call_that_waits_is_told_that_it_is_stuck() -> None:
    async def test(simulation: Simulation) -> None:
        outcomes = await asyncio.gather(
            simulation.call(asyncio.Event().wait(), name="first()"),
            simulation.call(asyncio.Event().wait(), name="second()"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [Stuck, Stuck]
        assert all(name in str(outcomes[0]) for name in ("first()", "second()"))

    simulate(test)


def test_a_call_that_may_not_advance_is_stuck_when_only_time_is_missing() -> None:
    async def test(simulation: Simulation) -> None:
        with pytest.raises(Stuck, match="if only time is missing, use `advance`"):
            await simulation.call(sleeping(5), advance=False)

    simulate(test)


def test_it_is_not_stuck_while_a_real_timer_of_the_test_could_act() -> None:
    async def test(simulation: Simulation) -> str:
        gate = asyncio.Event()
        asyncio.get_running_loop().call_later(0.03, gate.set)
        return await simulation.call(with_time_out(gate.wait(), 1e12))

    assert simulate(test) == "passed"


def test_it_is_not_stuck_while_a_job_in_asyncios_thread_pool_could_act() -> None:
    async def test(simulation: Simulation) -> str:
        gate = asyncio.Event()

        async def act() -> None:
            await asyncio.to_thread(time.sleep, 0.03)
            gate.set()

        acting = asyncio.create_task(act())
        answer = await simulation.call(with_time_out(gate.wait(), 1e12))
        await acting
        return answer

    assert simulate(test) == "passed"


def test_it_is_not_stuck_while_a_job_in_anyios_thread_pool_could_act() -> None:
    async def test(simulation: Simulation) -> str:
        gate = asyncio.Event()

        async def act() -> None:
            await anyio.to_thread.run_sync(time.sleep, 0.03)
            gate.set()

        acting = asyncio.create_task(act())
        answer = await simulation.call(with_time_out(gate.wait(), 1e12))
        await acting
        return answer

    assert simulate(test) == "passed"


def test_it_is_not_stuck_while_the_test_waits_on_a_socket() -> None:
    async def test(simulation: Simulation) -> str:
        gate = asyncio.Event()

        def answer_door(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()
            gate.set()

        server = await asyncio.start_server(answer_door, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        thread = threading.Timer(0.03, _knock, [address])
        thread.start()
        answer = await simulation.call(with_time_out(gate.wait(), 1e12))
        thread.join()
        server.close()
        return answer

    assert simulate(test) == "passed"


def _knock(address: tuple[str, int]) -> None:
    import socket

    socket.create_connection(address).close()


def test_it_becomes_stuck_when_what_could_act_did_not() -> None:
    async def test(simulation: Simulation) -> None:
        asyncio.get_running_loop().call_later(0.03, list)
        with pytest.raises(Stuck):
            await simulation.call(asyncio.Event().wait())

    simulate(test)


def test_it_is_not_stuck_in_a_hold() -> None:
    async def test(simulation: Simulation) -> None:
        with simulation.pump.hold(), pytest.raises(TimeoutError):
            await asyncio.wait_for(simulation.call(asyncio.Event().wait()), 0.02)

    simulate(test)


def test_cancel_hung_is_asked_before_calling_it_stuck() -> None:
    async def test(simulation: Simulation) -> str:
        future = simulation.loop.create_future()

        def cancel_hung() -> bool:
            future.set_result("answered")
            return True

        simulation.pump.cancel_hung = cancel_hung
        return await simulation.call(_awaiting(future))

    assert simulate(test) == "answered"


async def _awaiting(future: Any) -> Any:
    return await future


# -- limits ---------------------------------------------------------------------------------------


def test_settle_gives_up_at_its_limit_and_names_what_is_pending() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.start(sleeping(100))
        with pytest.raises(NotSettled) as raised:
            await simulation.settle(limit=50)
        text = str(raised.value)
        assert "settle()" in text
        assert f"called at {simulation.settle.__func__.__code__.co_filename}" in text  # type: ignore[attr-defined]
        assert "reached its limit of virtual time" in text
        assert "a timer due at 100 s" in text
        assert simulation.seconds == 0

    simulate(test)


def test_settle_may_end_exactly_at_its_limit() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.start(sleeping(50))
        await simulation.settle(limit=50)
        assert simulation.seconds == 50

    simulate(test)


def test_settle_gives_up_on_what_never_ends_at_one_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No limit of virtual time helps where time does not move."""
    monkeypatch.setattr("emulator.pump._ENDLESS", 20)

    async def spins(times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)

    async def test(simulation: Simulation) -> None:
        simulation.start(spins(15_000))
        await simulation.settle()
        simulation.start(spins(10**9))
        with pytest.raises(NotSettled, match="20,000 things happen at one instant"):
            await simulation.settle()

    simulate(test)


def test_call_gives_up_on_what_never_ends_at_one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither it nor a call beside it can be answered, whichever started it."""
    monkeypatch.setattr("emulator.pump._ENDLESS", 20)

    async def spins(times: int) -> str:
        for _ in range(times):
            await asyncio.sleep(0)
        return "done"

    async def test(simulation: Simulation) -> None:
        assert await simulation.call(spins(15_000)) == "done"
        calls = [simulation.call(spins(10**9)), simulation.call(asyncio.Event().wait())]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Stuck, Stuck]
        assert "saw 20,000 things happen at one instant, without an end" in str(outcomes[0])

    simulate(test)


def test_run_until_something_that_never_happens_says_so() -> None:
    async def test(simulation: Simulation) -> None:
        with pytest.raises(NotSettled, match="nothing more can happen"):
            await simulation.run_until(lambda: False)

    simulate(test)


def test_a_goal_past_its_limit_does_not_disturb_the_others() -> None:
    async def test(simulation: Simulation) -> None:
        outcomes = await asyncio.gather(
            simulation.settle(limit=5), simulation.call(sleeping(10)), return_exceptions=True
        )
        assert isinstance(outcomes[0], NotSettled)
        assert outcomes[1] == "slept until 10"

    simulate(test)


def test_a_predicate_that_raises_fails_its_own_call_only() -> None:
    async def test(simulation: Simulation) -> None:
        def predicate() -> bool:
            return 1 / (simulation.seconds - 3) > 0

        outcomes = await asyncio.gather(
            simulation.run_until(predicate),
            simulation.call(_ticks(5)),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], ZeroDivisionError)
        assert outcomes[1] == "ticked"

    simulate(test)


async def _ticks(count: int) -> str:
    for _ in range(count):
        await asyncio.sleep(1)
    return "ticked"


# -- nesting --------------------------------------------------------------------------------------


def test_moving_time_from_inside_raises_and_says_what_to_do() -> None:
    async def test(simulation: Simulation) -> None:
        with pytest.raises(InsideSimulation, match=r"settle\(\).*call it from the test"):
            await simulation.call(simulation.settle())
        with pytest.raises(InsideSimulation, match=r"advance\(\)"):
            await simulation.call(simulation.advance(1))

    simulate(test)


def test_one_simulation_inside_a_mock_of_another() -> None:
    async def test(outer: Simulation) -> None:
        with Simulation() as inner:

            async def mock() -> str:
                await asyncio.sleep(1)
                return await inner.call(sleeping(60))

            async def worker() -> tuple[str, str]:
                answer = await mock()
                return answer, await sleeping(5)

            assert await outer.call(worker()) == ("slept until 60", "slept until 6")
            assert (outer.seconds, inner.seconds) == (6, 60)

    simulate(test)


def test_the_inner_of_two_simulations_cannot_move_the_outer() -> None:
    async def test(outer: Simulation) -> None:
        with Simulation() as inner, pytest.raises(InsideSimulation):
            await outer.call(inner.call(outer.advance(5)))

    simulate(test)


def test_the_inner_of_two_simulations_goes_on_when_its_caller_lost_its_power() -> None:
    async def test(outer: Simulation) -> None:
        with Simulation() as inner:
            scope = Scope()
            with outer.pump.hold(), inner.pump.hold():
                call = asyncio.create_task(outer.call(inner.call(sleeping(60)), scope=scope))
                await asyncio.sleep(0.01)
                outer.loop.kill(scope)
                await asyncio.sleep(0)
                call.cancel()
            await inner.settle()
            assert inner.seconds == 60

    simulate(test)


def test_two_simulations_at_the_same_time_each_have_their_own_clock() -> None:
    async def test(first: Simulation) -> None:
        with Simulation() as second:
            answers = await asyncio.gather(
                first.call(_ticks(100)), second.call(sleeping(7)), second.call(_ticks(50))
            )
            assert list(answers) == ["ticked", "slept until 7", "ticked"]
            assert (first.seconds, second.seconds) == (100, 50)

    simulate(test)


def test_two_simulations_may_wait_for_each_other() -> None:
    async def test(first: Simulation) -> None:
        with Simulation() as second:
            there, back = asyncio.Event(), asyncio.Event()

            async def ping() -> str:
                await asyncio.sleep(3)
                there.set()
                await back.wait()
                return "ping"

            async def pong() -> str:
                await there.wait()
                await asyncio.sleep(2)
                back.set()
                return "pong"

            answers = await asyncio.gather(first.call(ping()), second.call(pong()))
            assert list(answers) == ["ping", "pong"]

    simulate(test)


def test_two_simulations_that_are_both_stuck_say_so() -> None:
    async def test(first: Simulation) -> None:
        with Simulation() as second:
            outcomes = await asyncio.gather(
                first.call(asyncio.Event().wait()),
                second.call(asyncio.Event().wait()),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [Stuck, Stuck]

    simulate(test)


# -- threads --------------------------------------------------------------------------------------


@pytest.fixture
def in_thread() -> Iterator[Callable[..., None]]:
    """Start a function in a thread after a moment; joined at the end."""
    threads: list[threading.Thread] = []

    def start(function: Callable[..., Any], *args: Any) -> None:
        thread = threading.Timer(0.02, function, args)
        threads.append(thread)
        thread.start()

    yield start
    for thread in threads:
        thread.join()


def test_a_thread_wakes_a_simulation_that_is_held(in_thread: Callable[..., None]) -> None:
    async def test(simulation: Simulation) -> Any:
        future = simulation.loop.create_future()
        with simulation.pump.hold():
            in_thread(simulation.loop.call_soon_threadsafe, future.set_result, "from a thread")
            return await simulation.call(_awaiting(future))

    assert simulate(test) == "from a thread"


def test_a_thread_sets_a_result_while_the_simulation_is_pumped(
    in_thread: Callable[..., None],
) -> None:
    async def test(simulation: Simulation) -> None:
        stop = simulation.loop.create_future()

        async def spin() -> None:
            while not stop.done():
                await turn()

        in_thread(simulation.loop.call_soon_threadsafe, stop.set_result, None)
        await simulation.call(spin())

    simulate(test)


def test_a_callback_from_a_thread_can_be_cancelled() -> None:
    async def test(simulation: Simulation) -> None:
        ran: list[int] = []
        simulation.loop.call_soon_threadsafe(ran.append, 1).cancel()
        simulation.loop.call_soon_threadsafe(ran.append, 2)
        await simulation.advance(0)
        assert ran == [2]

    simulate(test)


def test_a_thread_may_hold_the_clock_and_let_it_go(in_thread: Callable[..., None]) -> None:
    async def test(simulation: Simulation) -> str:
        hold = simulation.pump.hold()
        thread = threading.Thread(target=hold.__enter__)
        thread.start()
        thread.join()
        in_thread(hold.__exit__, None, None, None)
        answer = await simulation.call(sleeping(5))
        assert simulation.pump.holds == 0
        return answer

    assert simulate(test) == "slept until 5"


def test_a_call_from_another_thread_while_it_runs_is_refused() -> None:
    errors: list[BaseException] = []

    def elsewhere(simulation: Simulation) -> None:
        try:
            asyncio.run(simulation.advance(1))
        except BaseException as error:
            errors.append(error)

    async def test(simulation: Simulation) -> None:
        async def worker() -> None:
            thread = threading.Thread(target=elsewhere, args=[simulation])
            thread.start()
            thread.join()

        await simulation.call(worker())

    simulate(test)
    assert [type(error) for error in errors] == [EmulatorError]
    assert "another thread" in str(errors[0])


# -- callers --------------------------------------------------------------------------------------


async def exercise(simulation: Simulation) -> None:
    """What must work under every caller."""
    gate = asyncio.Event()
    call = asyncio.create_task(simulation.call(with_time_out(gate.wait())))
    await asyncio.sleep(0)
    gate.set()
    assert await call == "passed"
    assert await simulation.call(with_time_out(asyncio.Event().wait())) == "timed out"
    assert await asyncio.wait_for(simulation.call(sleeping(3600)), 5) == "slept until 3605"
    await simulation.advance(5)
    with simulation.pump.hold(), pytest.raises(TimeoutError):
        await asyncio.wait_for(simulation.call(sleeping(1)), 0.01)
    await simulation.settle()
    assert simulation.seconds == 3611 or simulation.seconds == 3610


def test_under_asyncio_run() -> None:
    simulate(exercise)


def is_complaint(record: logging.LogRecord) -> bool:
    """Whether asyncio says more than that a callback took long: the machine may be busy."""
    return not record.getMessage().startswith("Executing ")


def test_under_asyncios_debug_mode(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with Simulation() as simulation:
            await exercise(simulation)

    asyncio.run(main(), debug=True)
    assert not list(filter(is_complaint, caplog.records))


def test_under_the_debug_mode_of_the_environment() -> None:
    source = (
        "import logging\n"
        "from simulation import simulate\n"
        "from test_pump import exercise, is_complaint\n"
        "logging.getLogger('asyncio').addFilter(is_complaint)\n"
        "simulate(exercise)\n"
        "print('done')\n"
    )
    assert python(source, PYTHONASYNCIODEBUG="1") == "done\n"


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no Windows build")
def test_under_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        with Simulation() as simulation:
            await exercise(simulation)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_under_anyios_own_runner() -> None:
    async def main() -> None:
        with Simulation() as simulation:
            await exercise(simulation)

    anyio.run(main)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_under_anyios_pytest_plugin() -> None:
    with Simulation() as simulation:
        await exercise(simulation)


@pytest.mark.asyncio
async def test_under_pytest_asyncio() -> None:
    with Simulation() as simulation:
        await exercise(simulation)


class UnderUnittest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.simulation = Simulation()

    async def asyncTearDown(self) -> None:
        self.simulation.loop.close()

    async def test_under_isolated_asyncio_test_case(self) -> None:
        await exercise(self.simulation)


def test_trio_is_refused_with_the_name_of_the_fixture() -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        with Simulation() as simulation:
            await simulation.advance(1)

    with pytest.raises(UnsupportedLoop, match=r"trio.*`anyio_backend`.*'asyncio'"):
        trio.run(main)


def test_without_a_loop_run_is_named() -> None:
    with Simulation() as simulation:
        coroutine = simulation.advance(1)
        with pytest.raises(RuntimeError, match=r"emulator\.run\(coroutine\)"):
            coroutine.send(None)


def test_one_simulation_may_be_used_from_one_loop_after_another() -> None:
    with Simulation() as simulation:
        for number in range(1, 4):
            asyncio.run(simulation.advance(1))
            assert simulation.seconds == number


def test_a_loop_that_was_closed_with_a_turn_scheduled_does_not_stop_the_next() -> None:
    async def leave_a_turn(simulation: Simulation) -> None:
        simulation.start(sleeping(5))

    async def leave_a_call(simulation: Simulation) -> None:
        calls.append(asyncio.ensure_future(simulation.call(sleeping(50), advance=False)))
        await asyncio.sleep(0)

    calls: list[Any] = []
    with Simulation() as simulation:
        asyncio.run(leave_a_turn(simulation))
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave_a_call(simulation))
        loop.close()
        # The call of the closed loop may not advance; it must not hold the others.
        assert asyncio.run(simulation.call(sleeping(60))) == "slept until 60"
        calls[0].get_coro().close()
        calls[0]._log_destroy_pending = False


def test_a_call_that_waits_on_a_loop_that_stopped_meanwhile_is_finished_there() -> None:
    with Simulation() as simulation, asyncio.Runner() as first:
        calls: list[asyncio.Task[str]] = []

        async def begin() -> None:
            gate = asyncio.Event()
            gates.append(gate)
            calls.append(asyncio.create_task(simulation.call(_gated(gate))))
            await asyncio.sleep(0.01)

        async def end() -> str:
            return await calls[0]

        gates: list[asyncio.Event] = []
        first.run(begin())

        async def between() -> None:
            gates[0].set()
            await simulation.advance(0)

        asyncio.run(between())
        assert first.run(end()) == "slept until 5"


async def _gated(gate: asyncio.Event) -> str:
    await gate.wait()
    return await sleeping(5)


# -- anyio and threads inside ---------------------------------------------------------------------


async def _by_anyio() -> int:
    return await anyio.to_thread.run_sync(threading.get_ident)


async def _by_starlette() -> int:
    return await run_in_threadpool(threading.get_ident)


async def _by_asyncio() -> int:
    return await asyncio.to_thread(threading.get_ident)


@pytest.mark.parametrize("job", [_by_anyio, _by_starlette, _by_asyncio])
def test_jobs_for_threads_run_inline_in_a_worker(job: Callable[[], Any]) -> None:
    async def test(simulation: Simulation) -> int:
        return await simulation.call(job())

    threads = threading.active_count()
    assert simulate(test) == threading.get_ident()
    assert threading.active_count() == threads


def test_jobs_for_threads_see_the_context_and_leave_it_alone() -> None:
    variable = contextvars.ContextVar("variable", default="outside")

    def job() -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    async def worker() -> tuple[str, str]:
        variable.set("inside")
        return await anyio.to_thread.run_sync(job), variable.get()

    async def test(simulation: Simulation) -> tuple[str, str]:
        return await simulation.call(worker())

    assert simulate(test) == ("inside", "inside")


def test_a_failing_job_fails_its_await() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def test(simulation: Simulation) -> None:
        with pytest.raises(ZeroDivisionError):
            await simulation.call(anyio.to_thread.run_sync(fail))

    simulate(test)


def test_the_test_itself_still_has_threads() -> None:
    async def test(simulation: Simulation) -> int:
        await simulation.call(nothing())
        return await anyio.to_thread.run_sync(threading.get_ident)

    assert simulate(test) != threading.get_ident()


def test_anyio_sleeps_and_times_out_in_virtual_time() -> None:
    async def worker() -> list[str]:
        said: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 3600)
            with anyio.move_on_after(60) as scope:
                await anyio.sleep_forever()
            said.append(f"moved on: {scope.cancelled_caught}")
            group.cancel_scope.cancel()
        said.append(f"{anyio.current_time():g}")
        return said

    async def test(simulation: Simulation) -> list[str]:
        return await simulation.call(worker())

    assert simulate(test) == ["moved on: True", "60"]


# -- closing --------------------------------------------------------------------------------------


def test_closing_during_a_call_fails_the_call() -> None:
    async def test(simulation: Simulation) -> None:
        with simulation.pump.hold():
            call = asyncio.create_task(simulation.call(sleeping(5), name="fetch(GET /)"))
            await asyncio.sleep(0.01)
            simulation.loop.close()
            with pytest.raises(EmulatorClosed, match=r"fetch\(GET /\).*closed during this call"):
                await call

    simulate(test)


def test_a_call_on_a_closed_simulation_is_refused() -> None:
    async def test(simulation: Simulation) -> None:
        simulation.loop.close()
        with pytest.raises(EmulatorClosed, match=r"advance\(\): this emulator is closed"):
            await simulation.advance(1)

    simulate(test)


def test_durable_work_is_done_before_a_call_returns_and_its_failure_reaches_the_call() -> None:
    async def test(simulation: Simulation) -> None:
        order: list[str] = []
        simulation.loop.after_run = lambda: order.append("committed")
        await simulation.call(nothing())
        order.append("returned")
        assert order == ["committed", "returned"]

    simulate(test)


def test_goals_without_their_own_name_for_time_are_plain() -> None:
    goal = Goal("fetch()", lambda: True)

    assert (goal.advance, goal.each_event, goal.horizon, goal.stop_at) == (True, False, None, None)
