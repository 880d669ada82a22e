"""A finished run is replayed from its journal, to look for divergence (O-16, O-17)."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest
from workflow_bench import NO_RETRY, codes, do, failing, worker

from emulator import Emulator

pytestmark = pytest.mark.asyncio


async def replayed(run: Any, **options: Any) -> tuple[list[str], Emulator]:
    """What was different, a virtual hour after the end."""
    async with Emulator(worker(run), **options) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.settle()
        history, steps = instance.history, instance.steps
        await emulator.advance(3600)
        found = await instance.replay()
        assert (instance.history, instance.steps) == (history, steps)
        told = [one.message for one in emulator.findings if one.code == "replay_diverged"]
        assert told == found
    return found, emulator


@pytest.mark.parametrize("profile", ["production", "miniflare"])
async def test_a_run_that_depends_on_results_only(profile: Any) -> None:
    calls: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        calls.append("run")

        def body(ctx: Any) -> str:
            calls.append(ctx["step"]["name"])
            return "done"

        both = await asyncio.gather(do(step, "a", body), do(step, "b", body))
        await step.sleep("n", "1 day")
        try:
            await do(step, "c", failing(), NO_RETRY)
        except Exception:
            both.append("failed")
        return both

    found, emulator = await replayed(run, profile=profile)
    assert found == []
    assert calls == ["run", "a", "b", "run"]
    assert codes(emulator) == []


async def test_a_name_that_holds_the_time() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, f"charge {int(time.time())}", "done")

    found, emulator = await replayed(run)
    assert found == [
        "the replay asked for the step 'charge 1767229200' (1), which the journal does not have"
    ]
    (finding,) = [one for one in emulator.findings if one.code == "replay_diverged"]
    assert finding.location is not None
    assert "workflow_bench.py" in finding.location


async def test_a_step_that_is_left_out() -> None:
    started: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        started.append(1)
        if len(started) == 1:
            await do(step, "first time")
        return await do(step, "always", "done")

    found, _ = await replayed(run)
    assert found == ["the replay never asked for the step 'first time' (1)"]


async def test_another_output() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return random.randint(1, 10**9)

    (found,), _ = await replayed(run)
    assert found.startswith("the replay returned ")


async def test_another_end() -> None:
    started: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        started.append(1)
        if len(started) == 1:
            raise ValueError("first time")

    found, _ = await replayed(run)
    assert found == ["the replay returned, where `run` ended errored before"]
    started.append(1)

    async def other(self: Any, event: Any, step: Any) -> Any:
        started.append(1)
        if len(started) == 4:
            raise ValueError("second time")
        return started[-1]

    started[:] = [1, 1]
    found, _ = await replayed(other)
    assert found == ["the replay raised ValueError: second time, and `run` before nothing"]


async def test_the_same_error_is_no_difference() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await do(step, "s", failing(), NO_RETRY)

    assert (await replayed(run))[0] == []


async def test_one_that_is_not_over_is_refused() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await step.sleep("n", "1 day")

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(ValueError, match="instance 'x' of 'flow' is running, not over"):
            await instance.replay()
        await instance.terminate()
        assert await instance.replay() == [
            "the replay asked for the sleep 'n' (1), which did not end then"
        ]
