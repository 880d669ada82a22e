"""Exceptions from outside the simulation: they reach the caller, through whatever user code."""

from __future__ import annotations

import asyncio
import gc
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


def test_ctrl_c_in_user_code_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    async def user() -> None:
        try:
            raise KeyboardInterrupt
        except Exception:
            pass

    async def main() -> None:
        with Simulation() as simulation:
            await simulation.call(user())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


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
    "error", [ValueError, TimeoutError, SystemExit, OwnBaseException, asyncio.CancelledError]
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
