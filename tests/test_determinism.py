"""Same code, seed and plan: the same bytes, in one process or two, on every Python.

When a change of the trace is meant, write the new digest into `fixtures/workers/determinism`; the
failing test shows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import respx

from emulator import Emulator, WorkerCrashed

FIXTURE = Path(__file__).parents[1] / "fixtures" / "workers" / "determinism"
PLAN = (
    "batch.jobs#2:lose_ack; batch.jobs#3:shuffle; message.jobs#5:duplicate(1 h); "
    "send.notes#2:crash_after; fetch.POST.api.example/job#2:timeout; request.GET./#3:crash_before"
)


async def scenario(*, seed: int = 0, faults: str = PLAN) -> str:
    """The trace of everything that `entry.py` does, under faults."""
    config = FIXTURE / "wrangler.jsonc"
    with respx.mock(assert_all_called=False) as router:
        router.post("https://api.example/job").respond(202)
        async with Emulator(config, seed=seed, faults=faults) as emulator:
            for _ in range(4):
                try:
                    response = await emulator.fetch("/")
                    emulator.sometimes("answered", response.status_code == 200)
                except WorkerCrashed:
                    await emulator.advance("1 minute")
                await emulator.advance("7 seconds")
            await emulator.settle()
            await emulator.restart()
            await asyncio.gather(*(emulator.fetch(f"/?{number}") for number in range(5)))
            await emulator.settle()
            assert len(emulator.faults.fired) == len(faults.split(";")) if faults else True
            return emulator.trace.to_jsonl()


def digest(trace: str) -> str:
    return hashlib.sha256(trace.encode()).hexdigest()


def run(*, hash_seed: str) -> str:
    """The digest of the scenario in a fresh process."""
    tests = Path(__file__).parent
    script = "import asyncio, test_determinism as t; print(t.digest(asyncio.run(t.scenario())))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}",
            "PYTHONHASHSEED": hash_seed,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # After what the Worker printed.
    return done.stdout.split()[-1]


@pytest.mark.asyncio
async def test_twenty_runs_in_one_process_are_the_same() -> None:
    first = await scenario()
    for _ in range(19):
        assert await scenario() == first


@pytest.mark.asyncio
async def test_runs_side_by_side_are_the_same() -> None:
    """Two emulators of one process never meet, though their calls alternate."""
    alone = await scenario()
    others = ("", "batch.jobs#1:crash_before")
    traces = await asyncio.gather(
        scenario(), *(scenario(faults=plan) for plan in others), scenario()
    )
    assert traces[0] == traces[-1] == alone


@pytest.mark.asyncio
async def test_another_seed_or_plan_is_another_run() -> None:
    traces = [await scenario(), await scenario(seed=1), await scenario(faults="")]
    assert len(set(traces)) == 3


@pytest.mark.asyncio
async def test_reset_begins_the_same_run_again() -> None:
    async with Emulator(FIXTURE / "wrangler.jsonc") as emulator:
        traces = []
        for _ in range(3):
            await emulator.fetch("/")
            await emulator.advance("4 seconds")
            traces.append(emulator.trace.to_jsonl())
            await emulator.reset()
    assert traces[0] == traces[1] == traces[2]


@pytest.mark.parametrize("hash_seed", ["0", "1", "4294967295"])
def test_the_run_does_not_depend_on_the_process(hash_seed: str) -> None:
    """Nor on the Python that runs it: the digest is that of every supported one."""
    expected = (FIXTURE / "trace.sha256").read_text().strip()
    assert run(hash_seed=hash_seed) == expected
