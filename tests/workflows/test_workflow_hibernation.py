"""Production drops the memory of an instance that is idle for five minutes (X6, O-16).

The emulator does so where the replay repeats an effect.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from workflow_bench import START, clock, codes, do, rows, worker

from emulator import Emulator

pytestmark = pytest.mark.asyncio

QUEUES = {"producers": [{"binding": "Q", "queue": "q"}]}
MINUTE = 60


def _when(emulator: Emulator, kind: str) -> list[float]:
    start = START.timestamp() * 1_000_000
    return [(event.at - start) / 1_000_000 for event in emulator.trace if event.kind == kind]


def waking(emulator: Emulator) -> list[float]:
    """When `run` was called, in seconds."""
    return _when(emulator, "workflow_run")


def dropped(emulator: Emulator) -> list[float]:
    """When memory was dropped, in seconds."""
    return _when(emulator, "workflow_hibernated")


def sends(emulator: Emulator) -> int:
    """How many messages were sent."""
    return len(_when(emulator, "send"))


def sending(*naps: str, **options: Any) -> dict[str, Any]:
    """A Workflow that sends outside its steps, and sleeps so often."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await self.env.Q.send("outside")
        for number, nap in enumerate(naps):
            await step.sleep(f"n{number}", nap)
        return await do(step, "s", "done")

    return worker(run, queues=QUEUES, **options)


async def test_a_send_before_an_hour_of_sleep_happens_twice() -> None:
    """O-16, word for word: send, sleep 1 h, advance, two messages, and the line."""
    async with Emulator(sending("1 hour")) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance("59 minutes")
        assert sends(emulator) == 1
        assert instance.status == "waiting"
        await emulator.advance("1 minute")
        assert (instance.status, instance.output) == ("complete", "done")
        assert sends(emulator) == 2
        assert waking(emulator) == [0, 3600]
        assert dropped(emulator) == [5 * MINUTE]
        assert set(codes(emulator)) == {"effect_outside_step", "no_consumer"}
        assert len(rows(instance, 8)) == len(rows(instance, 9)) == 1


@pytest.mark.parametrize(
    ("naps", "runs"),
    [
        (("5 minutes",), [0]),
        (("5 minutes", "5 minutes"), [0]),
        (("301 seconds",), [0, 301]),
        (("1 hour", "10 minutes"), [0, 3600, 4200]),
        (("1 hour", "4 minutes"), [0, 3600]),
    ],
)
async def test_five_minutes_are_the_limit(naps: tuple[str, ...], runs: list[float]) -> None:
    async with Emulator(sending(*naps)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "done"
        assert waking(emulator) == runs
        assert sends(emulator) == len(runs)


async def test_the_local_engine_never_drops_one() -> None:
    async with Emulator(sending("1 hour"), profile="miniflare") as emulator:
        assert await (await emulator.workflows["flow"].create()).result() == "done"
        assert sends(emulator) == 1


async def test_one_without_effects_is_kept() -> None:
    """Its replay would show nothing: a year of daily sleeps stays cheap."""
    runs: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        runs.append(1)
        for day in range(365):
            await step.sleep(f"day {day}", "1 day")

    async with Emulator(worker(run)) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        assert len(runs) == 1
        assert clock(emulator) == 365 * 86_400


async def test_no_attempt_is_cut_off() -> None:
    """The time counts from the end of the last attempt, nested and parallel ones too."""

    async def run(self: Any, event: Any, step: Any) -> None:
        await self.env.Q.send("outside")

        async def long(ctx: Any) -> None:
            await asyncio.sleep(9 * MINUTE)

        await asyncio.gather(do(step, "long", long), step.sleep("n", "20 minutes"))

    async with Emulator(worker(run, queues=QUEUES)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.result()
        assert dropped(emulator) == [14 * MINUTE]
        assert waking(emulator) == [0, 20 * MINUTE]
        assert {step.name: step.attempts for step in instance.steps} == {"long": 1, "n": 0}


@pytest.mark.parametrize("early", [False, True])
async def test_an_event_wakes_it(early: bool) -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await self.env.Q.send("outside")
        return (await step.wait_for_event("w", "go", timeout="1 day"))["payload"]

    async with Emulator(worker(run, queues=QUEUES)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(299 if early else 301)
        assert instance.status == "waiting"
        await instance.send_event("go", 7)
        assert (instance.status, instance.output) == ("complete", 7)
        assert waking(emulator) == ([0] if early else [0, 301])
        owners = [timer.owner for timer in emulator._kernel.loop.timers]
        assert [owner for owner in owners if "its memory" in owner] == []  # nothing idle is left


async def test_a_time_out_wakes_it() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await self.env.Q.send("outside")
        try:
            await step.wait_for_event("w", "go", timeout="1 hour")
        except Exception as error:
            return str(error)

    async with Emulator(worker(run, queues=QUEUES)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert "Execution timed out after 3600000ms" in await instance.result()
        assert waking(emulator) == [0, 3600]


async def test_a_retry_wakes_it() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await self.env.Q.send("outside")

        def body(ctx: Any) -> int:
            if ctx["attempt"] == 1:
                raise ValueError("once")
            return int(ctx["attempt"])

        return await do(step, "s", body, {"retries": {"limit": 1, "delay": "10 minutes"}})

    async with Emulator(worker(run, queues=QUEUES)) as emulator:
        assert await (await emulator.workflows["flow"].create()).result() == 2
        assert waking(emulator) == [0, 600]
        assert sends(emulator) == 2


@pytest.mark.parametrize("verb", ["pause", "terminate", "restart", "delete", "evict", "crash"])
async def test_verbs_find_one_that_is_dropped(verb: str) -> None:
    async with Emulator(sending("1 hour")) as emulator:
        flow = emulator.workflows["flow"]
        instance = await flow.create("x")
        await emulator.advance("30 minutes")
        await getattr(instance, verb)()
        if verb == "pause":
            assert instance.status == "paused"
            await emulator.advance("1 hour")
            await instance.resume()
            assert waking(emulator) == [0, 5400]
        elif verb == "restart":
            assert waking(emulator) == [0, 1800]
        await emulator.settle()
        if verb == "delete":
            assert flow.instances == []
        else:
            ends = {"terminate": "terminated"}
            assert instance.status == ends.get(verb, "complete")
        expected = {
            "pause": [0, 5400, 7200],
            "terminate": [0],
            "restart": [0, 1800, 5400],
            "delete": [0],
            "evict": [0, 3600],
            "crash": [0, 3600],
        }
        assert waking(emulator) == expected[verb]


async def test_it_comes_back_after_a_restart_of_everything() -> None:
    async with Emulator(sending("1 hour")) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance("30 minutes")
        await emulator.restart()
        assert await instance.result() == "done"
        assert waking(emulator) == [0, 1800, 3600]


async def test_mocks_reach_one_that_is_dropped() -> None:
    async with Emulator(sending("1 hour")) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance("30 minutes")
        instance.disable_sleeps()
        assert await instance.result() == "done"
        assert clock(emulator) == 1800


async def test_an_eviction_while_it_waits_is_an_early_drop() -> None:
    """So `run` starts over once, not twice."""
    async with Emulator(sending("1 hour")) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(10)
        await instance.evict()
        assert instance.status == "waiting"
        assert await instance.result() == "done"
        assert waking(emulator) == [0, 3600]


async def test_many_that_wake_at_once() -> None:
    async with Emulator(sending("1 hour"), plan="free") as emulator:
        flow = emulator.workflows["flow"]
        for number in range(120):
            await flow.create(f"i{number}")
        await emulator.settle()
        assert {one.status for one in flow.instances} == {"complete"}
        assert sends(emulator) == 240
