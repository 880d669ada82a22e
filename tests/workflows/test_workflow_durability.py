"""What of Workflows survives: evictions, crashes, restarts, a state file, a killed process.

Letters and numbers are rules of workflows.md; O-18 is a report of users.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from worker_files import worker as worker_file
from worker_files import write
from workflow_bench import (
    DAY,
    NO_RETRY,
    PROFILES,
    START,
    clock,
    codes,
    do,
    events,
    failing,
    now,
    one_step,
    rows,
    seconds,
    states,
    told,
    worker,
)

from emulator import Emulator, WorkflowError, WorkflowFailed

pytestmark = pytest.mark.asyncio


# -- every state -----------------------------------------------------------------------------------


def many_states() -> Any:
    """A `run` that comes to rest in the state its payload names."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        kind = event["payload"]
        first = await do(step, "first", {"n": 1})
        if kind == "errored":
            await do(step, "fails", failing(text="broken"), NO_RETRY)
        if kind in ("sleeping", "paused", "terminated"):
            await step.sleep("n", "1 hour")
        if kind == "retrying":
            await told(lambda: do(step, "flaky", failing()))
        if kind == "waiting":
            found = await step.wait_for_event("w", "go", timeout="2 hours")
            return found["payload"]
        return first

    return run


STATES = ("complete", "errored", "sleeping", "paused", "terminated", "retrying", "waiting")


def picture(emulator: Emulator) -> dict[str, Any]:
    """All that there is to see of each instance."""
    return {
        one.id: (one.status, one.output, one.error, one.steps, one.history)
        for one in emulator.workflows["flow"].instances
    }


async def fill(emulator: Emulator) -> None:
    flow = emulator.workflows["flow"]
    for kind in STATES:
        await flow.create(kind, kind)
    await (await flow.get("paused")).pause()
    await (await flow.get("terminated")).terminate()
    await (await flow.get("waiting")).send_event("other", {"kept": True})
    assert [one.status for one in flow.instances] == [
        *("complete", "errored", "waiting", "paused", "terminated", "waiting", "waiting")
    ]


async def finish(emulator: Emulator) -> None:
    """Bring all to their ends, and look at when they came."""
    flow = emulator.workflows["flow"]
    await (await flow.get("waiting")).send_event("go", "late")
    await (await flow.get("paused")).resume()
    await emulator.settle()
    ends = {one.id: seconds(one.history[-1].at) for one in flow.instances}
    assert ends["sleeping"] == 3600
    assert ends["retrying"] == 310
    assert {one.id: one.output for one in flow.instances} == {
        "complete": {"n": 1},
        "errored": None,
        "sleeping": {"n": 1},
        "paused": {"n": 1},
        "terminated": None,
        "retrying": {"n": 1},
        "waiting": "late",
    }


@pytest.mark.parametrize("call", ["evict", "crash", "restart", "reload", "nothing"])
async def test_what_rests_is_the_same_afterwards(call: str) -> None:
    async with Emulator(worker(many_states())) as emulator:
        await fill(emulator)
        await emulator.advance(5)
        before = picture(emulator)
        if call != "nothing":
            await getattr(emulator, call)()
        assert picture(emulator) == before
        await finish(emulator)
        assert clock(emulator) == 3605
        assert codes(emulator) == []


async def test_many_restarts_change_nothing() -> None:
    async with Emulator(worker(many_states())) as emulator:
        await fill(emulator)
        before = picture(emulator)
        for _ in range(20):
            await emulator.restart()
        assert picture(emulator) == before
        await finish(emulator)


@pytest.mark.parametrize("compacted", [False, True])
async def test_a_state_file_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    if compacted:
        monkeypatch.setattr("emulator.durability._COMPACT_EVERY", 10)
    config = worker(many_states())
    async with Emulator(config, state=tmp_path / "state") as emulator:
        await fill(emulator)
        await emulator.advance(5)
        before = picture(emulator)
    async with Emulator(config, state=tmp_path / "state") as emulator:
        assert clock(emulator) == 5
        await emulator.advance(0)
        assert picture(emulator) == before
        await finish(emulator)
        after = picture(emulator)
    async with Emulator(config, state=tmp_path / "state") as emulator:
        assert picture(emulator) == after


async def test_ids_are_not_given_twice_across_processes(tmp_path: Path) -> None:
    """Though each starts from the same seed."""
    config = worker(one_step(1))
    seen: list[str] = []
    for _ in range(3):
        async with Emulator(config, state=tmp_path / "state") as emulator:
            seen += [(await emulator.workflows["flow"].create()).id for _ in range(2)]
            assert [one.id for one in emulator.workflows["flow"].instances] == seen
    assert len(set(seen)) == 6


async def test_a_workflow_that_is_no_longer_configured(tmp_path: Path) -> None:
    """Its instances stay, and go on when it is there again."""
    state = tmp_path / "state"
    both = worker({"flow": many_states(), "other": one_step(1)})
    only = worker({"other": one_step(1)})
    async with Emulator(both, state=state) as emulator:
        await emulator.workflows["flow"].create("x", "sleeping")
    async with Emulator(only, state=state) as emulator:
        await emulator.advance(60)
        assert await (await emulator.workflows["other"].create("y")).result() == 1
    async with Emulator(both, state=state) as emulator:
        instance = await emulator.workflows["flow"].get("x")
        assert await instance.result() == {"n": 1}
        assert clock(emulator) == 3600


# -- what runs when the power goes -----------------------------------------------------------------


def three_steps(log: list[Any]) -> Any:
    """Three steps of 10 s each."""

    async def run(self: Any, event: Any, step: Any) -> str:
        async def body(ctx: Any) -> None:
            log.append((ctx["step"]["name"], ctx["attempt"], now()))
            await asyncio.sleep(10)

        for name in ("one", "two", "three"):
            await do(step, name, body)
        return "done"

    return run


@pytest.mark.parametrize(
    ("call", "profile"),
    [
        ("crash", "production"),
        ("crash", "miniflare"),
        ("evict", "production"),
        ("evict", "miniflare"),
        ("restart", "production"),
    ],
)
async def test_a_loss_in_the_middle_of_a_step(call: str, profile: Any) -> None:
    """O-18, X1, X2: at the same instant, with the next attempt; saved steps are not run again."""
    log: list[Any] = []
    async with Emulator(worker(three_steps(log)), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(15)
        await getattr(emulator, call)()
        assert instance.status == "running"
        assert await instance.result() == "done"
        assert log == [("one", 1, 0), ("two", 1, 10), ("two", 2, 15), ("three", 1, 25)]
        assert [step.attempts for step in instance.steps] == [1, 2, 1]
        assert clock(emulator) == 35


async def test_the_local_engine_wakes_no_instance_after_a_restart() -> None:
    """X5, §14: it is `running` and does nothing until something touches it."""
    log: list[Any] = []
    async with Emulator(worker(three_steps(log)), profile="miniflare") as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(15)
        await emulator.restart()
        await emulator.advance(100)
        assert instance.status == "running"
        assert len(log) == 2
        await instance.send_event("touch")
        assert log[2] == ("two", 2, 115)
        assert await instance.result() == "done"


@pytest.mark.parametrize("verb", ["crash", "evict"])
async def test_one_instance_loses_its_power_and_another_goes_on(verb: str) -> None:
    log: list[Any] = []
    async with Emulator(worker(three_steps(log))) as emulator:
        struck = await emulator.workflows["flow"].create("struck")
        await emulator.advance(5)
        other = await emulator.workflows["flow"].create("other")
        await getattr(struck, verb)()
        assert await other.result() == "done"
        assert clock(emulator) == 35
        assert [step.attempts for step in other.steps] == [1, 1, 1]
        assert await struck.result() == "done"
        assert [step.attempts for step in struck.steps] == [2, 1, 1]
        assert clock(emulator) == 35


@pytest.mark.parametrize("verb", ["crash", "evict"])
@pytest.mark.parametrize("kind", ["complete", "errored", "paused", "terminated"])
async def test_an_instance_without_a_run_has_nothing_to_lose(verb: str, kind: str) -> None:
    async with Emulator(worker(many_states())) as emulator:
        await fill(emulator)
        before = picture(emulator)
        await getattr(await emulator.workflows["flow"].get(kind), verb)()
        await emulator.advance(0)
        assert picture(emulator) == before


async def test_an_eviction_lets_a_request_finish_and_interrupts_runs_at_once() -> None:
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        runs.append(now())
        await step.sleep("n", "1 hour")

    async def fetch(worker: Any, request: Any) -> float:
        await asyncio.sleep(60)
        return now()

    async with Emulator(worker(run, fetch=fetch)) as emulator:
        await emulator.workflows["flow"].create("x")
        request = asyncio.create_task(emulator.fetch("/", advance=False))
        for _ in range(20):
            await asyncio.sleep(0)
        await emulator.advance(30)
        await emulator.evict()
        assert runs == [0, 30]
        await emulator.advance(30)
        assert (await request).json() == 60


async def test_a_crash_between_steps() -> None:
    """Code there is no attempt of anything: it only runs again."""
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        runs.append(now())
        await do(step, "a", 1)
        await asyncio.sleep(100)
        return await do(step, "b", 2)

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(40)
        await emulator.crash()
        assert await instance.result() == 2
        assert runs == [0, 40]
        assert clock(emulator) == 140
        assert [step.attempts for step in instance.steps] == [1, 1]
        assert rows(instance, 12) == []


@pytest.mark.parametrize("call", ["crash", "restart", "evict"])
async def test_a_loss_during_a_retry_delay(call: str) -> None:
    """X4: the rest of the delay is waited, and no attempt is charged."""
    tries: list[tuple[float, int]] = []

    def body(ctx: Any) -> str:
        tries.append((now(), ctx["attempt"]))
        if ctx["attempt"] < 3:
            raise ValueError("no")
        return "ok"

    async with Emulator(worker(one_step(body))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(4)
        await getattr(emulator, call)()
        await emulator.advance(10)
        await getattr(emulator, call)()
        assert await instance.result() == "ok"
        assert tries == [(0, 1), (10, 2), (30, 3)]


@pytest.mark.parametrize("call", ["crash", "restart", "evict"])
async def test_a_loss_during_a_wait(call: str) -> None:
    """X5, D14: what was left of its time, and what was sent to it, is left."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        first = await step.wait_for_event("w1", "a", timeout="1 hour")
        second = await step.wait_for_event("w2", "b", timeout="1 hour")
        third = await told(lambda: step.wait_for_event("w3", "c", timeout="1 hour"))
        return [first["payload"], second["payload"], third, now()]

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.send_event("b", 2)
        await emulator.advance(600)
        await getattr(emulator, call)()
        await instance.send_event("a", 1)
        await emulator.advance(600)
        await getattr(emulator, call)()
        assert await instance.result() == [
            *(1, 2),
            ["WorkflowTimeoutError", "Execution timed out after 3600000ms"],
            600 + 3600,
        ]


@pytest.mark.parametrize("call", ["crash", "restart"])
async def test_a_loss_while_a_pause_is_pending(call: str) -> None:
    """X7: the attempt is lost, and what was to be paused is paused."""
    log: list[Any] = []
    async with Emulator(worker(three_steps(log))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(5)
        await instance.pause()
        assert instance.status == "waitingForPause"
        await getattr(emulator, call)()
        await emulator.advance(100)
        assert instance.status == "paused"
        assert log == [("one", 1, 0)]
        await instance.resume()
        assert await instance.result() == "done"
        assert log[1] == ("one", 2, 105)


async def test_a_paused_sleep_keeps_its_rest_over_a_restart(tmp_path: Path) -> None:
    """I13."""

    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", "60 seconds")
        return now()

    state = tmp_path / "state"
    async with Emulator(worker(run), state=state) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(20)
        await instance.pause()
    later = START + timedelta(days=1)
    async with Emulator(worker(run), state=state, start=later) as emulator:
        instance = await emulator.workflows["flow"].get("x")
        assert instance.status == "paused"
        await instance.resume()
        assert await instance.result() == DAY + 40


@pytest.mark.parametrize(
    ("days", "woke"), [(10, 30 * DAY), (31, 31 * DAY)], ids=["in time", "overdue"]
)
async def test_a_process_that_ends_during_a_sleep_of_thirty_days(
    tmp_path: Path, days: int, woke: float
) -> None:
    """O-18, X5: the wake time is kept; overdue is at once."""

    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", "30 days")
        return now()

    state = tmp_path / "state"
    async with Emulator(worker(run), state=state) as emulator:
        await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
    start = START + timedelta(days=days)
    async with Emulator(worker(run), state=state, start=start) as emulator:
        instance = await emulator.workflows["flow"].get("x")
        assert await instance.result() == woke
        assert len(rows(instance, 8)) == len(rows(instance, 9)) == 1


@pytest.mark.parametrize(("after", "status"), [(1800, "waiting"), (7200, "errored")])
async def test_a_process_that_ends_during_a_wait(tmp_path: Path, after: float, status: str) -> None:
    """X5: a deadline that passed meanwhile is over at once."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        return (await step.wait_for_event("w", "go", timeout="1 hour"))["payload"]

    state = tmp_path / "state"
    async with Emulator(worker(run), state=state) as emulator:
        await emulator.workflows["flow"].create("x")
    start = START + timedelta(seconds=after)
    async with Emulator(worker(run), state=state, start=start) as emulator:
        instance = await emulator.workflows["flow"].get("x")
        await emulator.advance(0)
        assert instance.status == status
        if status == "waiting":
            await instance.send_event("go", "late")
            assert instance.output == "late"
        else:
            assert instance.error.message == "Execution timed out after 3600000ms"
            assert clock(emulator) == after


KILLED = """
from workers import WorkerEntrypoint, WorkflowEntrypoint, fetch

class Default(WorkerEntrypoint):
    pass

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        for name in ("one", "two", "three"):
            @step.do(name)
            async def body(ctx):
                number = ctx["attempt"]
                response = await fetch(f"https://log.example/{ctx['step']['name']}/{number}")
                return response.status

            await body()
        return "done"
"""
DRIVER = """
import asyncio, os, signal, sys
import httpx, respx
from emulator import Emulator

def answer(request):
    print(request.url.path, flush=True)
    if request.url.path == "/two/1":
        os.kill(os.getpid(), signal.SIGKILL)
    return httpx.Response(200)

async def main(folder):
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    config = {"main": f"{folder}/src/entry.py", "workflows": [flow]}
    with respx.mock(assert_all_called=False) as router:
        router.route(host="log.example").mock(side_effect=answer)
        async with Emulator(config, state=f"{folder}/state") as emulator:
            await emulator.workflows["flow"].create("x")

asyncio.run(main(sys.argv[1]))
"""


async def test_a_process_that_is_killed_in_the_second_step_of_three(
    tmp_path: Path, respx_mock: Any
) -> None:
    """O-18: no goodbye, and nothing is lost or run twice but the step that ran.

    What the outside world has seen was stored before it.
    """
    route = respx_mock.route(host="log.example").respond(200)
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    config = worker_file(tmp_path, KILLED, workflows=[flow])
    root = Path(__file__).parents[2]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.split() == ["/one/1", "/two/1"]
    async with Emulator(config, state=tmp_path / "state") as emulator:
        instance = await emulator.workflows["flow"].get("x")
        assert await instance.result() == "done"
        assert [call.request.url.path for call in route.calls] == ["/two/2", "/three/1"]
        assert states(instance) == [
            ("one", "complete", 1),
            ("two", "complete", 2),
            ("three", "complete", 1),
        ]
        lost = "Attempt failed due to internal workflows error"
        assert [row.data["error"]["message"] for row in rows(instance, 12)] == [lost]


# -- new code --------------------------------------------------------------------------------------

VERSION = """
from workers import WorkerEntrypoint, WorkflowEntrypoint

class Default(WorkerEntrypoint):
    pass

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("price")
        async def price():
            return VERSION

        @step.do("ship")
        async def ship():
            return VERSION

        first = await price()
        await step.sleep("n", "1 hour")
        return [first, await ship()]
"""


async def test_new_code_goes_on_where_the_old_was(tmp_path: Path) -> None:
    """`reload()`: what is saved stays, what comes is the new code's; an overdue sleep ends."""
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    config = worker_file(tmp_path, VERSION.replace("VERSION", "1"), workflows=[flow])
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(600)
        write(tmp_path, {"src/entry.py": VERSION.replace("VERSION", "2")})
        await emulator.reload()
        assert await instance.result() == [1, 2]
        assert clock(emulator) == 3600


async def test_code_that_does_not_load(tmp_path: Path) -> None:
    """The instance is not lost by it: with good code it goes on."""
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    good = VERSION.replace("VERSION", "1")
    config = worker_file(tmp_path, good, workflows=[flow])
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(600)
        write(tmp_path, {"src/entry.py": "import nothing_of_that_name"})
        await told(emulator.reload)
        await emulator.advance(60)
        assert instance.status not in ("errored", "terminated", "complete")
        write(tmp_path, {"src/entry.py": good})
        await emulator.reload()
        assert await instance.result() == [1, 1]
        assert clock(emulator) == 3600


# -- retention -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plan", "days"), [("paid", 30), ("free", 3)])
@pytest.mark.parametrize("end", ["complete", "errored", "terminated"])
async def test_how_long_an_instance_is_kept(plan: Any, days: int, end: str) -> None:
    """B5, B12: the id is taken until then."""
    async with Emulator(worker(many_states()), plan=plan) as emulator:
        flow = emulator.workflows["flow"]
        instance = await flow.create("x", end)
        if end == "terminated":
            await instance.terminate()
        await emulator.settle()
        assert clock(emulator) == 0
        await emulator.advance(days * DAY - 0.001)
        assert instance.status == end
        with pytest.raises(WorkflowError, match=r"instance\.already_exists"):
            await flow.create("x")
        await emulator.advance(0.001)
        assert flow.instances == []
        with pytest.raises(WorkflowError, match=r"instance\.not_found"):
            await flow.get("x")
        assert (await flow.create("x", "complete")).status == "complete"


async def test_an_instance_with_its_own_retention() -> None:
    """B12: numbers are milliseconds."""

    async def fetch(worker: Any, request: Any) -> Any:
        kept = {"successRetention": "1 day", "errorRetention": 3_600_000}
        await worker.env.FLOW.create({"id": "good", "params": "complete", "retention": kept})
        await worker.env.FLOW.create({"id": "bad", "params": "errored", "retention": kept})
        wrong = {"retention": {"successRetention": "1 fortnight"}}
        return await told(lambda: worker.env.FLOW.create(wrong))

    async with Emulator(worker(many_states(), fetch=fetch)) as emulator:
        _, message = (await emulator.fetch("/")).json()
        assert message.startswith("Duration must be a number or a string in format")
        flow = emulator.workflows["flow"]
        await emulator.advance(3600 - 0.001)
        assert [one.id for one in flow.instances] == ["good", "bad"]
        await emulator.advance(0.001)
        assert [one.id for one in flow.instances] == ["good"]
        await emulator.advance(DAY - 3600 - 0.001)
        assert [one.id for one in flow.instances] == ["good"]
        await emulator.advance(0.001)
        assert flow.instances == []


async def test_what_was_due_while_the_process_was_away(tmp_path: Path) -> None:
    state = tmp_path / "state"
    config = worker(many_states())
    async with Emulator(config, state=state) as emulator:
        await emulator.workflows["flow"].create("x", "complete")
    async with Emulator(config, state=state, start=START + timedelta(days=31)) as emulator:
        await emulator.advance(0)
        assert emulator.workflows["flow"].instances == []


# -- reset and restarts of an instance -------------------------------------------------------------


async def test_reset_empties_everything(tmp_path: Path) -> None:
    state = tmp_path / "state"
    config = worker(many_states())
    async with Emulator(config, state=state) as emulator:
        await fill(emulator)
        await emulator.reset()
        assert emulator.workflows["flow"].instances == []
        assert clock(emulator) == 0
        await emulator.settle()
        assert clock(emulator) == 0
        await emulator.workflows["flow"].create("x", "sleeping")
    async with Emulator(config, state=state) as emulator:
        assert [one.id for one in emulator.workflows["flow"].instances] == ["x"]


async def test_a_restarted_instance_is_restarted_in_the_store_too() -> None:
    log: list[Any] = []
    async with Emulator(worker(three_steps(log))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.result()
        await instance.restart("three")
        await emulator.advance(5)
        await emulator.restart()
        assert [(step.name, step.state) for step in instance.steps] == [
            ("one", "complete"),
            ("two", "complete"),
            ("three", "running"),
        ]
        assert await instance.result() == "done"
        assert [entry[:2] for entry in log[3:]] == [("three", 1), ("three", 2)]


async def test_a_deleted_instance_does_not_come_back() -> None:
    async with Emulator(worker(many_states())) as emulator:
        instance = await emulator.workflows["flow"].create("x", "sleeping")
        await instance.delete()
        await emulator.restart()
        assert emulator.workflows["flow"].instances == []
        await emulator.settle()
        assert clock(emulator) == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_step_whose_retries_are_used_up_by_crashes(profile: Any) -> None:
    """X3: production fails the step, the local engine goes on for ever."""
    log: list[Any] = []
    retries = {"retries": {"limit": 2, "delay": "1 hour"}}

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> str:
            log.append((ctx["attempt"], now()))
            await asyncio.sleep(10)
            return "ok"

        return await do(step, "s", body, retries)

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        for _ in range(3):
            await emulator.advance(5)
            await emulator.crash()
        await emulator.advance(0)
        assert log[:3] == [(1, 0), (2, 5), (3, 10)]
        if profile == "production":
            with pytest.raises(WorkflowFailed, match="internal workflows error"):
                await instance.result()
            assert clock(emulator) == 15
            assert events(instance)[-2:] == [7, 3]
            assert len(log) == 3
        else:
            assert await instance.result() == "ok"
            assert log[3:] == [(4, 15)]
