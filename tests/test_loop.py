"""The simulation's loop: time, order, tasks, crossing between loops, what is refused."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import socket
import threading
import weakref
from contextvars import Context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import START, Simulation, inside, python, simulate, turn

from emulator.clock import Clock
from emulator.loop import SimLoop, Task
from emulator.scope import KERNEL, SCOPE, Scope

YEAR = 365 * 86400


# -- rule 1 and 2: time ---------------------------------------------------------------------------


def test_equal_due_times_run_first_in_first_out() -> None:
    async def body() -> list[int]:
        ran: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(50):
            loop.call_at(5.0, ran.append, number)
        await asyncio.sleep(6)
        return ran

    assert inside(body) == list(range(50))


def test_a_timer_at_the_same_instant_runs_after_what_was_ready() -> None:
    async def body() -> list[str]:
        ran: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0, ran.append, "timer")
        loop.call_soon(ran.append, "soon")
        await asyncio.sleep(1)
        return ran

    assert inside(body) == ["soon", "timer"]


def test_a_year_of_sleeping_takes_no_time_and_stays_exact() -> None:
    async def body() -> float:
        for _ in range(365):
            await asyncio.sleep(86400)
        return asyncio.get_running_loop().time()

    assert inside(body) == YEAR


@pytest.mark.parametrize("years", [0, 1, 100])
@pytest.mark.parametrize("delay", [1e-9, 1e-7, 4e-7])
def test_a_delay_below_a_microsecond_is_a_microsecond(years: int, delay: float) -> None:
    async def test(simulation: Simulation) -> int:
        await simulation.advance(years * YEAR)
        before = simulation.clock.now
        await simulation.call(asyncio.sleep(delay))
        return simulation.clock.now - before

    assert simulate(test) == 1


@pytest.mark.parametrize("delay", [0, -1, -1e-9])
def test_a_delay_of_nothing_or_less_passes_no_time(delay: float) -> None:
    async def body() -> float:
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(delay, done.set)
        await done.wait()
        return asyncio.get_running_loop().time()

    assert inside(body) == 0


@given(st.lists(st.integers(0, 5), max_size=30))
def test_timers_run_by_due_time_and_then_by_age(delays: list[int]) -> None:
    ran: list[tuple[int, int]] = []

    async def test(simulation: Simulation) -> None:
        for number, delay in enumerate(delays):
            simulation.loop.call_later(delay, ran.append, (delay, number))
        await simulation.settle()

    simulate(test)
    assert ran == sorted(ran)
    assert len(ran) == len(delays)


def test_call_at_a_time_that_passed_runs_now() -> None:
    async def body() -> float:
        await asyncio.sleep(10)
        done = asyncio.Event()
        asyncio.get_running_loop().call_at(3, done.set)
        await done.wait()
        return asyncio.get_running_loop().time()

    assert inside(body) == 10


@pytest.mark.parametrize("delay", [math.inf, 1e12, 1e300])
def test_sleeping_for_ever_is_no_work_and_never_ends(delay: float) -> None:
    async def test(simulation: Simulation) -> None:
        outcome = simulation.start(asyncio.sleep(delay))
        await simulation.settle()
        await simulation.advance(YEAR)
        assert not outcome
        assert simulation.loop.timers == []

    simulate(test)


def test_a_sleep_for_ever_can_be_cancelled() -> None:
    async def body() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(math.inf)
        except TimeoutError:
            return f"timed out at {asyncio.get_running_loop().time():g}"
        return "slept"

    assert inside(body) == "timed out at 5"


def test_a_loop_in_debug_mode_says_so() -> None:
    """It answers by an attribute of its own, since each future that is made asks."""
    loop = SimLoop(Clock(START))
    loop.set_debug(True)
    assert loop.get_debug() is True
    loop.set_debug(False)
    assert loop.get_debug() is False
    loop.close()


def test_timers_of_equal_callbacks_are_not_equal() -> None:
    loop = SimLoop(Clock(START))
    first, second = (loop.call_later(1, print) for _ in range(2))

    assert first != second
    loop.close()


# -- rule 6: cancelled timers ---------------------------------------------------------------------


def test_cancelled_timers_do_not_stay_behind_one_that_lives() -> None:
    loop = SimLoop(Clock(START))
    live = loop.call_later(1, print)
    for _ in range(50_000):
        loop.call_later(2, print).cancel()

    assert len(loop._timers) < 200
    assert loop.timers == [live]
    assert loop.has_work
    loop.close()


def test_counting_cancelled_timers_does_not_drift() -> None:
    async def test(simulation: Simulation) -> None:
        loop = simulation.loop
        for _ in range(200):
            timers = [loop.call_later(1, print) for _ in range(100)]
            for timer in timers:
                timer.cancel()
                timer.cancel()
        await simulation.advance(2)
        assert (loop._cancelled_timers, loop._working_timers, loop._timers) == (0, 0, [])

    simulate(test)


def test_a_timer_that_ran_may_be_cancelled() -> None:
    async def test(simulation: Simulation) -> None:
        timer = simulation.loop.call_later(1, list)
        await simulation.advance(2)
        timer.cancel()
        assert (simulation.loop._cancelled_timers, simulation.loop.has_work) == (0, False)

    simulate(test)


def test_a_passive_timer_runs_but_is_no_work() -> None:
    async def test(simulation: Simulation) -> None:
        ran: list[int] = []
        due = START + 5_000_000
        loop = simulation.loop
        loop.kernel_at(due, lambda: ran.append(1), owner="retention", passive=True)
        await simulation.settle()
        assert (ran, simulation.seconds) == ([], 0)
        await simulation.advance(5)
        assert ran == [1]

    simulate(test)


# -- rule 3: order --------------------------------------------------------------------------------

ORDER = """
import asyncio
from simulation import inside

async def job(number):
    await asyncio.sleep(1)
    return number

async def body():
    tasks = [asyncio.create_task(job(number)) for number in range(20)]
    done, _ = await asyncio.wait(tasks)
    order = [task.result() for task in done]
    order += [await done for done in asyncio.as_completed([job(n) for n in range(20)])]
    ended = []
    async def child(number):
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(number)
    async def fail():
        await asyncio.sleep(1)
        raise ValueError
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(child(number))
            group.create_task(fail())
    except* ValueError:
        pass
    return order + ended

print([inside(body) for _ in range(20)])
"""


def test_sets_of_tasks_have_the_same_order_in_every_run() -> None:
    runs = eval(python(ORDER, PYTHONHASHSEED="1"))

    assert len(runs) == 20
    assert all(run == runs[0] for run in runs)


def test_sets_of_tasks_have_the_same_order_under_another_hash_seed() -> None:
    assert python(ORDER, PYTHONHASHSEED="1") == python(ORDER, PYTHONHASHSEED="2")


# -- rule 4: between loops ------------------------------------------------------------------------


def test_a_worker_awaits_a_future_a_task_and_an_event_of_the_test() -> None:
    async def test(simulation: Simulation) -> list[str]:
        outer = asyncio.get_running_loop()
        future: asyncio.Future[str] = outer.create_future()
        event = asyncio.Event()

        async def in_test() -> str:
            await asyncio.sleep(0)
            return "task"

        task = outer.create_task(in_test())

        async def worker() -> list[str]:
            results = [await future, await task, await task]
            await event.wait()
            return [*results, "event"]

        call = outer.create_task(simulation.call(worker()))
        await asyncio.sleep(0)
        future.set_result("future")
        await asyncio.sleep(0)
        event.set()
        return await call

    assert simulate(test) == ["future", "task", "task", "event"]


def test_a_test_awaits_a_future_a_task_and_an_event_of_a_worker() -> None:
    async def test(simulation: Simulation) -> list[str]:
        made: dict[str, Any] = {}

        async def in_worker() -> str:
            await asyncio.sleep(1)
            return "task"

        async def worker() -> None:
            loop = asyncio.get_running_loop()
            made.update(
                future=loop.create_future(),
                event=asyncio.Event(),
                task=loop.create_task(in_worker()),
            )
            waiter = loop.create_task(made["event"].wait())
            await asyncio.sleep(2)
            made["future"].set_result("future")
            made["event"].set()
            await waiter

        call = asyncio.create_task(simulation.call(worker()))
        while not made:
            await turn()
        results = [await made["task"], await made["future"], await made["future"]]
        await made["event"].wait()
        await call
        return results

    assert simulate(test) == ["task", "future", "future"]


def test_both_may_wait_on_the_same_event_and_queue() -> None:
    async def test(simulation: Simulation) -> list[int]:
        event = asyncio.Event()
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)

        async def worker() -> None:
            await event.wait()
            for number in range(5):
                await queue.put(number)

        waiting = asyncio.create_task(event.wait())
        call = asyncio.create_task(simulation.call(worker()))
        await asyncio.sleep(0)
        event.set()
        received = [await queue.get() for _ in range(5)]
        await waiting
        await call
        return received

    assert simulate(test) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("helper", ["gather", "wait_for", "shield", "wait", "as_completed"])
def test_helpers_of_asyncio_take_futures_of_the_other_side(helper: str) -> None:
    async def use(own: Any, other: asyncio.Future[str]) -> Any:
        match helper:
            case "gather":
                return (await asyncio.gather(own, other))[1]
            case "wait_for":
                return await asyncio.wait_for(other, 5)
            case "shield":
                return await asyncio.shield(other)
            case "wait":
                done, _ = await asyncio.wait([other])
                return done.pop().result()
            case _:
                return await next(iter(asyncio.as_completed([other])))

    async def nothing() -> None: ...

    async def test(simulation: Simulation) -> None:
        theirs: list[asyncio.Future[str]] = []
        mine: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def worker() -> str:
            theirs.append(asyncio.get_running_loop().create_future())
            own = nothing() if helper == "gather" else None
            answer: str = await use(own, mine)
            await asyncio.sleep(1)
            theirs[0].set_result("worker")
            return answer

        call = asyncio.create_task(simulation.call(worker()))
        while not theirs:
            await turn()
        mine.set_result("test")
        own = nothing() if helper == "gather" else None
        assert await use(own, theirs[0]) == "worker"
        assert await call == "test"

    simulate(test)


def test_a_failed_future_of_the_test_fails_the_worker() -> None:
    async def test(simulation: Simulation) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = asyncio.create_task(simulation.call(_awaiting(future)))
        await asyncio.sleep(0)
        future.set_exception(ZeroDivisionError("mine"))
        with pytest.raises(ZeroDivisionError, match="mine"):
            await call

    simulate(test)


def test_a_cancelled_future_of_the_test_is_a_cancellation_for_the_worker_only() -> None:
    async def test(simulation: Simulation) -> str:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def worker() -> str:
            try:
                await future
            except asyncio.CancelledError:
                return "seen"
            return "not seen"

        call = asyncio.create_task(simulation.call(worker()))
        await asyncio.sleep(0)
        future.cancel()
        return await call

    assert simulate(test) == "seen"


def test_failed_and_cancelled_tasks_of_a_worker_reach_the_test() -> None:
    async def test(simulation: Simulation) -> None:
        tasks: list[asyncio.Task[None]] = []

        async def fail() -> None:
            await asyncio.sleep(1)
            raise ZeroDivisionError("theirs")

        async def worker() -> None:
            tasks.append(asyncio.create_task(fail()))
            tasks.append(asyncio.create_task(asyncio.sleep(100)))
            await asyncio.sleep(2)
            tasks[1].cancel()

        call = asyncio.create_task(simulation.call(worker()))
        while len(tasks) < 2:
            await turn()
        with pytest.raises(ZeroDivisionError, match="theirs"):
            await tasks[0]
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        await call

    simulate(test)


def test_giving_up_waiting_does_not_cancel_what_the_other_side_made() -> None:
    async def test(simulation: Simulation) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        theirs: list[asyncio.Future[None]] = []

        async def worker() -> None:
            theirs.append(asyncio.get_running_loop().create_future())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await mine

        async def impatient() -> None:
            await theirs[0]

        await simulation.call(worker())
        waiting = asyncio.create_task(impatient())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not mine.done()
        assert not theirs[0].done()
        assert not theirs[0]._callbacks
        assert not mine._callbacks

    simulate(test)


def test_an_event_may_be_set_after_the_simulation_was_closed() -> None:
    async def main() -> None:
        event = asyncio.Event()
        future = asyncio.get_running_loop().create_future()
        with Simulation() as simulation:
            simulation.start(event.wait())
            simulation.start(_awaiting(future))
            await simulation.settle()
        event.set()
        future.set_result(None)
        await asyncio.sleep(0)

    asyncio.run(main())


async def _awaiting(future: Any) -> Any:
    return await future


# -- rule 5: what a Worker does not have ----------------------------------------------------------


def test_executor_jobs_run_at_once_and_inline() -> None:
    async def body() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        first = await loop.run_in_executor(None, threading.get_ident)
        return first, await asyncio.to_thread(threading.get_ident)

    assert inside(body) == (threading.get_ident(), threading.get_ident())


@pytest.mark.parametrize(
    ("error", "seen"), [(ValueError, ValueError), (StopIteration, RuntimeError)]
)
def test_a_failing_executor_job_fails_its_future(
    error: type[Exception], seen: type[Exception]
) -> None:
    def fail() -> None:
        raise error

    async def body() -> type[BaseException] | None:
        job = asyncio.get_running_loop().run_in_executor(None, fail)
        try:
            await job
        except Exception as raised:
            return type(raised)
        return None

    assert inside(body) is seen


async def _connect() -> None:
    await asyncio.open_connection("api.example", 443)


async def _resolve() -> None:
    await asyncio.get_running_loop().getaddrinfo("api.example", 443)


async def _serve() -> None:
    await asyncio.start_server(lambda *_: None, "api.example", 443)


async def _datagram() -> None:
    await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=("api.example", 443)
    )


async def _sock_connect() -> None:
    with socket.socket() as sock:
        await asyncio.get_running_loop().sock_connect(sock, ("api.example", 443))


async def _block() -> None:
    socket.create_connection(("api.example", 443))


async def _block_by_address() -> None:
    with socket.socket() as sock:
        sock.connect(("api.example", 443))


async def _block_quietly() -> None:
    with socket.socket() as sock:
        sock.connect_ex(("api.example", 443))


@pytest.mark.parametrize(
    "attempt",
    [
        _connect,
        _resolve,
        _serve,
        _datagram,
        _sock_connect,
        _block,
        _block_by_address,
        _block_quietly,
    ],
)
def test_sockets_are_refused_with_their_target(attempt: Any) -> None:
    async def test(simulation: Simulation) -> list[str]:
        refused: list[str] = []

        def refuse(target: str) -> OSError:
            refused.append(target)
            return OSError("refused")

        simulation.loop.on_socket = refuse
        with pytest.raises(OSError, match="refused"):
            await simulation.call(attempt())
        return refused

    assert simulate(test) == ["api.example:443"]


def test_blocking_sockets_are_refused_while_a_worker_is_imported() -> None:
    with Simulation() as simulation:
        context = Context()
        context.run(SCOPE.set, Scope())
        with pytest.raises(OSError, match=r"api\.example:443"):
            simulation.loop.call_inside(context.run, socket.create_connection, ("api.example", 443))


def test_unix_sockets_are_refused_with_their_path() -> None:
    async def body() -> None:
        await asyncio.open_unix_connection("/run/some.sock")

    with pytest.raises(OSError, match=r"/run/some\.sock"):
        inside(body)


def test_a_test_may_use_blocking_sockets_while_a_simulation_exists() -> None:
    with Simulation(), socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


@pytest.mark.parametrize("shell", [False, True])
def test_processes_are_refused(shell: bool) -> None:
    async def body() -> None:
        if shell:
            await asyncio.create_subprocess_shell("true")
        else:
            await asyncio.create_subprocess_exec("true")

    with pytest.raises(OSError, match="cannot start processes"):
        inside(body)


def test_the_loop_refuses_to_be_run_stopped_or_closed_by_user_code() -> None:
    async def body() -> list[str]:
        loop: Any = asyncio.get_running_loop()
        said = []
        for attempt in (loop.run_forever, loop.stop, loop.close):
            with pytest.raises(RuntimeError) as raised:
                attempt()
            said.append(str(raised.value))
        return said

    said = inside(body)
    assert all("simulation" in text for text in said), said


def test_the_task_factory_cannot_be_replaced() -> None:
    async def body() -> None:
        asyncio.get_running_loop().set_task_factory(None)
        with pytest.raises(NotImplementedError):
            asyncio.get_running_loop().set_task_factory(lambda loop, coro: None)  # type: ignore[arg-type]

    inside(body)


# -- tasks ----------------------------------------------------------------------------------------


def test_a_task_knows_the_line_that_made_it_and_its_own_coroutine() -> None:
    async def body() -> Task:
        task = asyncio.create_task(asyncio.sleep(0), name="nap")
        await task
        return task  # type: ignore[return-value]

    task = inside(body)
    assert task.created.file == __file__
    assert task.get_coro().__qualname__ == "sleep"
    assert "sleep" in repr(task)
    assert "nap" in repr(task)


def test_a_task_made_by_gather_has_the_line_that_called_gather() -> None:
    async def test(simulation: Simulation) -> None:
        scope = Scope()
        simulation.start(_gathering(), scope)
        await simulation.advance(0)
        _, *children = scope.tasks
        lines = {getattr(child, "created", None) for child in children}
        assert [line.file for line in lines if line is not None] == [__file__]

    simulate(test)


async def _gathering() -> None:
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(1))


def test_a_task_of_an_empty_context_still_belongs_to_its_scope() -> None:
    async def test(simulation: Simulation) -> None:
        scope = Scope()

        async def body() -> None:
            task = asyncio.create_task(asyncio.sleep(1), context=Context())
            assert list(scope.tasks)[1:] == [task]
            await task

        await simulation.call(body(), scope=scope)
        assert not scope.tasks

    simulate(test)


def test_a_task_cancelled_before_its_first_step_leaves_no_warning() -> None:
    async def never() -> None:
        raise AssertionError("it never starts")

    async def test(simulation: Simulation) -> None:
        scope = Scope()

        async def body() -> None:
            task = asyncio.create_task(never())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        await simulation.call(body(), scope=scope)
        assert not scope.tasks

    simulate(test)
    gc.collect()


def test_a_task_that_never_started_when_the_loop_closes_leaves_no_warning() -> None:
    async def never() -> None:
        raise AssertionError("it never starts")

    with Simulation() as simulation:
        simulation.loop.spawn(Scope(), never(), "user code")
    del simulation
    gc.collect()


def test_create_task_wants_a_coroutine() -> None:
    async def body() -> None:
        with pytest.raises(TypeError, match="a coroutine was expected, got 3"):
            asyncio.get_running_loop().create_task(3)  # type: ignore[arg-type]

    inside(body)


def test_a_suspended_generator_that_user_code_drops_is_closed_in_its_scope() -> None:
    async def test(simulation: Simulation) -> list[str]:
        said: list[str] = []
        scope = Scope()

        async def numbers() -> Any:
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(1)
                said.append(f"closed at {asyncio.get_running_loop().time():g}")

        async def body() -> None:
            async for _ in numbers():
                break
            assert [task for task in scope.tasks if task is not asyncio.current_task()] == []

        await simulation.call(body(), scope=scope)
        assert len(scope.closing) == 1
        await simulation.settle()
        assert not scope.closing
        return said

    assert simulate(test) == ["closed at 1"]


def test_generators_of_the_emulator_leave_nothing_behind() -> None:
    async def numbers() -> Any:
        yield 1

    async def body() -> None:
        for _ in range(100):
            async for _ in numbers():
                pass

    async def test(simulation: Simulation) -> None:
        done = simulation.loop.spawn_kernel(body(), "kernel")
        await simulation.settle()
        await done
        assert not simulation.loop._generators
        assert not KERNEL.tasks

    simulate(test)


# -- errors nobody awaits -------------------------------------------------------------------------


def test_an_error_in_a_callback_is_reported_with_its_scope_and_stops_nothing() -> None:
    async def test(simulation: Simulation) -> None:
        lost: list[Any] = []
        simulation.loop.on_lost_error = lambda scope, details: lost.append((scope, details))
        scope = Scope()

        async def body() -> str:
            asyncio.get_running_loop().call_soon(int, "x")
            asyncio.get_running_loop().call_soon(_exit)
            asyncio.get_running_loop().call_soon(_interrupt)
            await asyncio.sleep(1)
            return "went on"

        assert await simulation.call(body(), scope=scope) == "went on"
        assert [(where, type(details["exception"])) for where, details in lost] == [
            (scope, ValueError),
            (scope, SystemExit),
            (scope, KeyboardInterrupt),
        ]

    simulate(test)


def _exit() -> None:
    raise SystemExit(3)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_an_error_of_a_task_nobody_awaits_is_reported_with_its_scope() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async def test(simulation: Simulation) -> list[Any]:
        lost: list[Any] = []
        simulation.loop.on_lost_error = lambda scope, details: lost.append(
            (scope, type(details["exception"]))
        )
        scope = Scope()

        async def body() -> None:
            asyncio.create_task(fail())  # noqa: RUF006
            await asyncio.sleep(1)

        await simulation.call(body(), scope=scope)
        gc.collect()
        return [(where is scope, kind) for where, kind in lost]

    assert simulate(test) == [(True, ZeroDivisionError)]


def test_user_code_may_set_an_exception_handler() -> None:
    async def body() -> list[Any]:
        seen: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, details: seen.append(details["exception"]))
        loop.call_soon(int, "x")
        await asyncio.sleep(1)
        return [type(error) for error in seen]

    assert inside(body) == [ValueError]


class OwnBaseException(BaseException):
    """What user code may define."""


@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, OwnBaseException, GeneratorExit, RuntimeError]
)
def test_an_exception_of_user_code_ends_only_its_own_task(error: type[BaseException]) -> None:
    async def fail() -> None:
        raise error

    async def body() -> str:
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        with pytest.raises(error):
            await task
        return "went on"

    assert inside(body) == "went on"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_an_exit_in_a_child_reaches_whoever_awaits_it(error: type[BaseException]) -> None:
    async def fail() -> None:
        raise error

    async def body() -> Any:
        return await asyncio.gather(fail(), asyncio.sleep(1), return_exceptions=True)

    assert isinstance(inside(body)[0], error)


# -- closing --------------------------------------------------------------------------------------


def test_a_closed_loop_refuses_new_work_and_can_be_closed_again() -> None:
    simulation = Simulation()
    simulation.loop.close()
    simulation.loop.close()

    coroutine = asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="closed"):
        simulation.loop.create_task(coroutine)
    coroutine.close()
    with pytest.raises(RuntimeError, match="closed"):
        simulation.loop.call_later(1, print)
    with pytest.raises(RuntimeError, match="closed"):
        simulation.loop.call_soon_threadsafe(print)
    with pytest.raises(RuntimeError, match="closed"):
        simulation.loop.call_inside(print)


async def _gather() -> None:
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))


async def _catch() -> None:
    try:
        await _failing()
    except ValueError:
        pass


def _failing() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1, future.set_exception, ValueError())
    return future


async def _cancelled() -> None:
    task = asyncio.create_task(asyncio.sleep(5))
    await asyncio.sleep(1)
    task.cancel()


@pytest.mark.parametrize("body", [_gather, _catch, _cancelled])
def test_a_closed_simulation_is_freed_without_the_collector(body: Any) -> None:
    async def test(simulation: Simulation) -> list[weakref.ref[Any]]:
        await simulation.call(body())
        await simulation.settle()
        return [weakref.ref(each) for each in (simulation.loop, simulation.pump, simulation)]

    simulate(test)
    gc.collect()
    gc.disable()
    try:
        assert [reference() for reference in simulate(test)] == [None, None, None]
    finally:
        gc.enable()


def test_what_was_swapped_is_put_back_when_a_hook_fails() -> None:
    async def test(simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()

        def fail() -> None:
            raise OSError("the disk is full")

        simulation.loop.after_run = fail
        with pytest.raises(OSError, match="the disk is full"):
            await simulation.call(asyncio.sleep(0))
        assert asyncio.get_running_loop() is loop
        assert not simulation.loop.draining
        simulation.loop.after_run = lambda: None
        await simulation.call(asyncio.sleep(1))

    simulate(test)


def test_what_a_hook_schedules_at_the_end_of_a_run_still_runs() -> None:
    async def test(simulation: Simulation) -> None:
        ran: list[float] = []
        hooks = [lambda: ran.append(simulation.seconds)]

        def schedule_one() -> None:
            if hooks:
                simulation.loop.kernel_soon(hooks.pop())

        simulation.loop.after_run = schedule_one
        await simulation.call(asyncio.sleep(0))
        await simulation.advance(1)
        assert ran == [0]

    simulate(test)


def test_nothing_is_logged_by_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    async def test(simulation: Simulation) -> None:
        scope = Scope()
        simulation.start(asyncio.sleep(5), scope)
        await simulation.advance(1)
        simulation.loop.kill(scope)

    with caplog.at_level(logging.DEBUG, "asyncio"):
        simulate(test)
        gc.collect()
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []
