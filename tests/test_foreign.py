"""Exceptions from outside the simulation: they reach the caller, through whatever user code."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, simulate, turn

from emulator.foreign import _Watched, is_foreign, unwatch_time_outs, watch_time_outs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGALRM"), reason="time-outs by signal need SIGALRM"
)


class OwnBaseException(BaseException):
    """What a signal handler may raise."""


def _time_out(number: int, frame: object) -> None:
    raise TimeoutError("from outside")


def _own(number: int, frame: object) -> None:
    raise OwnBaseException("from outside")


def _fail(number: int, frame: object) -> None:
    pytest.fail("from outside")


HANDLERS = [(_time_out, TimeoutError), (_own, OwnBaseException), (_fail, pytest.fail.Exception)]


@pytest.fixture
def alarm() -> Iterator[Callable[[Any], None]]:
    """Install a handler of SIGALRM; `strike` sends the signal."""
    before = signal.getsignal(signal.SIGALRM)

    def install(handler: Any) -> None:
        signal.signal(signal.SIGALRM, handler)

    yield install
    signal.signal(signal.SIGALRM, before)


def strike() -> None:
    signal.raise_signal(signal.SIGALRM)


# -- user code the signal strikes in ---------------------------------------------------------------


async def plain() -> None:
    strike()


async def swallowing() -> str:
    try:
        strike()
    except Exception:
        pass
    await asyncio.sleep(0)
    return "swallowed"


async def swallowing_everything() -> str:
    try:
        strike()
    except BaseException:
        pass
    return "swallowed"


async def retrying() -> None:
    for attempt in range(3):
        try:
            await asyncio.sleep(1)
            if attempt == 0:
                strike()
        except Exception:
            continue


async def in_gather() -> None:
    await asyncio.gather(asyncio.sleep(5), plain(), return_exceptions=True)


async def in_task_group() -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(5))
            group.create_task(plain())
    except* Exception:
        pass


async def in_floating_task() -> None:
    asyncio.create_task(plain())  # noqa: RUF006
    await asyncio.sleep(5)


async def in_callback() -> None:
    asyncio.get_running_loop().call_later(1, strike)
    await asyncio.sleep(5)


async def translating() -> None:
    try:
        strike()
    except BaseException as error:
        raise ValueError("translated") from error


async def in_a_job() -> None:
    try:
        await asyncio.to_thread(strike)
    except Exception:
        pass


USER_CODE = [
    plain,
    swallowing,
    swallowing_everything,
    retrying,
    in_gather,
    in_task_group,
    in_floating_task,
    in_callback,
    translating,
    in_a_job,
]


@pytest.mark.parametrize("user", USER_CODE)
@pytest.mark.parametrize(("handler", "kind"), HANDLERS)
def test_what_a_signal_handler_raises_reaches_the_caller(
    alarm: Callable[[Any], None], handler: Any, kind: type[BaseException], user: Any
) -> None:
    alarm(handler)

    async def test(simulation: Simulation) -> None:
        with pytest.raises(kind, match="from outside"):
            await simulation.call(user())
        # Nothing of it is left over for the next call.
        gc.collect()
        assert await simulation.call(_answer()) == "answer"

    simulate(test)


async def _answer() -> str:
    await asyncio.sleep(10)
    return "answer"


def test_it_reaches_every_call_in_progress(alarm: Callable[[Any], None]) -> None:
    alarm(_time_out)

    async def test(simulation: Simulation) -> None:
        outcomes = await asyncio.gather(
            simulation.call(_answer()), simulation.call(in_callback()), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [TimeoutError, TimeoutError]

    simulate(test)


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def _own_ctrl_c() -> Iterator[None]:
    """Python's own handler of SIGINT, which raises where the signal strikes."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def _ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio has put its own there
    _interrupt()


async def interrupted() -> None:
    _ctrl_c()


async def interrupted_in_a_loop() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        pass


async def raising_again() -> None:
    try:
        _ctrl_c()
    except KeyboardInterrupt:
        raise


async def raising_again_later() -> None:
    caught = None
    try:
        _ctrl_c()
    except KeyboardInterrupt as error:
        caught = error
    await asyncio.sleep(1)
    if caught is not None:
        raise caught


async def interrupted_in_a_child() -> None:
    await asyncio.gather(asyncio.sleep(5), interrupted(), return_exceptions=True)


@pytest.mark.usefixtures("_own_ctrl_c")
@pytest.mark.parametrize(
    "user",
    [
        interrupted,
        interrupted_in_a_loop,
        raising_again,
        raising_again_later,
        interrupted_in_a_child,
    ],
)
def test_ctrl_c_in_user_code_reaches_the_caller(user: Any) -> None:
    async def main() -> None:
        with Simulation() as simulation:
            await simulation.call(user())

    with pytest.raises(KeyboardInterrupt) as raised:
        asyncio.run(main())
    assert is_foreign(raised.value)


def _raise_it() -> None:
    raise KeyboardInterrupt


async def raising() -> None:
    _raise_it()


async def raising_from_another() -> None:
    try:
        raise ValueError
    except ValueError as error:
        raise KeyboardInterrupt("own") from error


async def raising_in_a_child() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(raising())


@pytest.mark.parametrize("user", [raising, raising_from_another, raising_in_a_child])
def test_an_interrupt_that_user_code_raises_is_its_own(user: Any) -> None:
    async def test(simulation: Simulation) -> str:
        with pytest.raises(KeyboardInterrupt) as raised:
            await simulation.call(user())
        assert not is_foreign(raised.value)
        return await simulation.call(asyncio.sleep(1, "went on"))

    assert simulate(test) == "went on"


def test_an_interrupt_that_a_library_raises_reaches_the_caller() -> None:
    """As `asyncio.Runner` does after a Ctrl-C."""
    code = compile("def f():\n    raise KeyboardInterrupt", asyncio.__file__, "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.raises(KeyboardInterrupt) as raised:
        names["f"]()
    assert is_foreign(raised.value)
    assert is_foreign(KeyboardInterrupt())


def test_ctrl_c_by_signal_cancels_the_test_as_asyncio_does_it() -> None:
    async def user() -> None:
        _interrupt()
        while True:
            await turn()

    async def main() -> None:
        with Simulation() as simulation:
            await simulation.call(user())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_second_ctrl_c_reaches_code_that_never_awaits() -> None:
    async def user() -> None:
        _interrupt()
        _interrupt()

    async def main() -> None:
        with Simulation() as simulation:
            await simulation.call(user())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


@pytest.mark.parametrize("outcome", [pytest.fail, pytest.skip])
def test_outcomes_of_pytest_in_a_mock_reach_the_test(outcome: Any) -> None:
    async def user() -> None:
        outcome("from a mock")

    async def test(simulation: Simulation) -> None:
        with pytest.raises(outcome.Exception, match="from a mock"):
            await simulation.call(user())

    simulate(test)


@pytest.mark.parametrize(
    "error",
    [
        ValueError,
        TimeoutError,
        SystemExit,
        KeyboardInterrupt,
        OwnBaseException,
        asyncio.CancelledError,
    ],
)
def test_the_same_exceptions_raised_by_user_code_are_its_own(error: type[BaseException]) -> None:
    with pytest.raises(error) as raised:
        raise error("own")

    assert not is_foreign(raised.value)


def test_a_handler_of_another_signal_is_known_by_its_frame() -> None:
    before = signal.signal(signal.SIGUSR1, _time_out)
    try:
        with pytest.raises(TimeoutError) as raised:
            signal.raise_signal(signal.SIGUSR1)
        assert is_foreign(raised.value)
    finally:
        signal.signal(signal.SIGUSR1, before)


# -- the wrapped handler ---------------------------------------------------------------------------


def test_the_handler_is_put_back_when_the_emulator_is_closed(alarm: Callable[[Any], None]) -> None:
    alarm(_time_out)

    async def test(simulation: Simulation) -> None:
        await simulation.call(_answer())
        assert signal.getsignal(signal.SIGALRM) is not _time_out

    simulate(test)

    assert signal.getsignal(signal.SIGALRM) is _time_out


def test_outside_the_simulation_the_handler_works_as_ever(alarm: Callable[[Any], None]) -> None:
    alarm(_time_out)

    async def test(simulation: Simulation) -> None:
        await simulation.call(_answer())
        with pytest.raises(TimeoutError, match="from outside"):
            strike()
        assert await simulation.call(_answer()) == "answer"

    simulate(test)


def test_a_handler_that_only_counts_is_not_disturbed(alarm: Callable[[Any], None]) -> None:
    seen: list[int] = []
    alarm(lambda number, frame: seen.append(number))

    async def test(simulation: Simulation) -> None:
        await simulation.call(plain())

    simulate(test)
    assert seen == [signal.SIGALRM]


def test_a_handler_is_wrapped_once_and_not_from_another_thread(
    alarm: Callable[[Any], None],
) -> None:
    alarm(_time_out)
    thread = threading.Thread(target=watch_time_outs)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGALRM) is _time_out

    watch_time_outs()
    wrapped = signal.getsignal(signal.SIGALRM)
    watch_time_outs()

    assert isinstance(wrapped, _Watched)
    assert signal.getsignal(signal.SIGALRM) is wrapped
    unwatch_time_outs()
    assert signal.getsignal(signal.SIGALRM) is _time_out


def test_without_a_handler_nothing_is_wrapped(alarm: Callable[[Any], None]) -> None:
    alarm(signal.SIG_DFL)

    watch_time_outs()

    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
