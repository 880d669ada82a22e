"""What tests put in place of steps, sleeps and events: the names of Cloudflare's vitest plugin.

V3 to V5 are rules of workflows.md 13.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from workers.workflows import NonRetryableError
from workflow_bench import (
    DAY,
    NO_RETRY,
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

from emulator import Emulator, NotSettled, WorkflowError, WorkflowFailed

pytestmark = pytest.mark.asyncio


def after_a_sleep(run: Any, duration: str = "1 minute") -> Any:
    """Gives a test the time to mock something on an instance."""

    async def slept(self: Any, event: Any, step: Any) -> Any:
        await step.sleep("first", duration)
        return await run(self, event, step)

    return slept


def mocks(emulator: Emulator) -> list[str]:
    return [f.message for f in emulator.findings if f.code == "mock_not_reached"]


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [{"id": 7}, [1, None], 0, "", False, None, [], {}, b"bytes"], ids=repr
)
@pytest.mark.parametrize("whence", ["instance", "workflow"])
async def test_a_mocked_result(value: Any, whence: str) -> None:
    """V3: the step is logged, the body not called. Falsy values count, unlike V4."""
    calls: list[str] = []
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        seen.append(await do(step, "s", lambda _: calls.append("called")))

    async with Emulator(worker(after_a_sleep(run))) as emulator:
        flow = emulator.workflows["flow"]
        if whence == "workflow":
            flow.mock_step_result("s", value)
        instance = await flow.create()
        if whence == "instance":
            instance.mock_step_result("s", value)
        await instance.result()
        assert seen == [value]
        assert calls == []
        assert instance.steps[-1].output == value
        assert states(instance)[-1] == ("s", "complete", 1)
        assert events(instance)[4:] == [5, 10, 11, 6, 2]
        assert mocks(emulator) == []


@pytest.mark.parametrize("value", [object(), asyncio.Event(), lambda: 1, {"a": [object()]}])
async def test_what_cannot_be_stored_cannot_be_mocked(value: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, "s", lambda _: "the body's")

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        with pytest.raises(TypeError, match="the result of the step 's' cannot be stored: Data"):
            flow.mock_step_result("s", value)
        with pytest.raises(TypeError, match="the payload of the event 'e' cannot be stored: Data"):
            flow.mock_event("e", value)
        # Nothing is mocked.
        assert await (await flow.create()).result() == "the body's"


async def test_a_mocked_result_of_the_second_step_of_a_name() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return [await do(step, "s", lambda ctx: ctx["step"]["count"]) for _ in range(3)]

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        flow.mock_step_result("s", "mocked", index=2)
        assert await (await flow.create()).result() == [1, "mocked", 3]


async def test_a_mocked_result_cannot_be_mocked_again() -> None:
    """V5."""
    intro = r"\[WorkflowIntrospector\] Trying to "
    async with Emulator(worker(one_step(1))) as emulator:
        flow = emulator.workflows["flow"]
        for mocked in (flow, await flow.create()):
            mocked.mock_step_result("s", None)
            with pytest.raises(ValueError, match=f"^{intro}mock step 's' multiple times!$"):
                mocked.mock_step_result("s", 2)
            text = f"^{intro}mock error on step 's' after mocking its result!$"
            with pytest.raises(ValueError, match=text):
                mocked.mock_step_error("s", ValueError("x"))
            text = f"^{intro}force timeout on step 's' after mocking its result!$"
            with pytest.raises(ValueError, match=text):
                mocked.force_step_timeout("s")
            # Another of that name is another step.
            mocked.mock_step_result("s", 2, index=2)
            mocked.mock_step_error("s", ValueError("x"), index=3)


async def test_a_value_that_cannot_be_sent_cannot_be_mocked() -> None:
    async with Emulator(worker(one_step(1))) as emulator:
        with pytest.raises(Exception, match="cannot be sent over RPC"):
            emulator.workflows["flow"].mock_step_result("s", (1, 2))
        assert await (await emulator.workflows["flow"].create()).result() == 1


# -- errors and time-outs --------------------------------------------------------------------------


async def test_a_mocked_error_fails_every_attempt() -> None:
    calls: list[int] = []
    async with Emulator(worker(one_step(lambda ctx: calls.append(ctx["attempt"])))) as emulator:
        emulator.workflows["flow"].mock_step_error("s", ValueError("mocked"))
        instance = await emulator.workflows["flow"].create()
        with pytest.raises(WorkflowFailed, match="mocked"):
            await instance.result()
        assert calls == []
        assert clock(emulator) == 310
        assert states(instance) == [("s", "errored", 6)]
        assert events(instance)[:5] == [0, 1, 5, 10, 12]


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError("x"), ["ValueError", "ValueError: x"]),
        (NonRetryableError("x"), ["NonRetryableError", "x"]),
        ({"name": "RangeError", "message": "x"}, ["ValueError", "x"]),
    ],
)
async def test_what_run_sees_of_a_mocked_error(error: Any, seen: list[str]) -> None:
    """P12: the same as of one that the body raised."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await told(lambda: do(step, "s", 1, NO_RETRY))

    async with Emulator(worker(run)) as emulator:
        emulator.workflows["flow"].mock_step_error("s", error)
        assert await (await emulator.workflows["flow"].create()).result() == seen


async def test_a_mocked_error_that_is_not_retried() -> None:
    async with Emulator(worker(one_step(1))) as emulator:
        emulator.workflows["flow"].mock_step_error("s", NonRetryableError("final"))
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "errored"
        assert states(instance) == [("s", "errored", 1)]
        assert tuple(instance.error) == ("NonRetryableError", "final")


async def test_errors_and_time_outs_accumulate_over_attempts() -> None:
    """V3: two errors, a time-out, and then the real body."""
    calls: list[tuple[float, int]] = []

    def body(ctx: Any) -> str:
        calls.append((now(), ctx["attempt"]))
        return "real"

    config = {"retries": {"limit": 5, "delay": "10 seconds", "backoff": "constant"}}
    async with Emulator(worker(after_a_sleep(one_step(body, config)))) as emulator:
        instance = await emulator.workflows["flow"].create()
        instance.mock_step_error("s", ValueError("first"), times=1)
        instance.mock_step_error("s", ValueError("second"), times=1)
        instance.force_step_timeout("s", times=1)
        assert await instance.result() == "real"
        texts = [row.data["error"]["message"] for row in rows(instance, 12)]
        assert ["first" in texts[0], "second" in texts[1]] == [True, True]
        assert texts[2] == "Execution timed out after 0ms"
        assert rows(instance, 12)[2].data["error"]["name"] == "WorkflowTimeoutError"
        assert len(texts) == 3
        assert calls == [(90, 4)]


async def test_a_result_after_mocked_errors() -> None:
    """V4: the error first, then the result."""
    calls: list[int] = []
    async with Emulator(worker(one_step(lambda ctx: calls.append(ctx["attempt"])))) as emulator:
        flow = emulator.workflows["flow"]
        flow.mock_step_error("s", ValueError("once"), times=1)
        flow.mock_step_result("s", "mocked")
        instance = await flow.create()
        assert await instance.result() == "mocked"
        assert (calls, states(instance)) == ([], [("s", "complete", 2)])
        assert clock(emulator) == 10


async def test_an_error_comes_before_a_time_out() -> None:
    """V4: of two that concern every attempt."""
    async with Emulator(worker(one_step(1, NO_RETRY))) as emulator:
        flow = emulator.workflows["flow"]
        flow.force_step_timeout("s")
        flow.mock_step_error("s", ValueError("the error"))
        with pytest.raises(WorkflowFailed, match="the error"):
            await (await flow.create()).result()


async def test_a_forced_time_out_of_every_attempt_takes_no_time() -> None:
    async with Emulator(worker(one_step(1, NO_RETRY))) as emulator:
        emulator.workflows["flow"].force_step_timeout("s")
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "errored"
        assert instance.error.message == "Execution timed out after 0ms"
        assert clock(emulator) == 0


# -- events ----------------------------------------------------------------------------------------


def two_waits() -> Any:
    async def run(self: Any, event: Any, step: Any) -> Any:
        seen = []
        for name, kind in (("w1", "a"), ("w2", "b")):
            found = await step.wait_for_event(name, kind, timeout="1 day")
            seen.append([sorted(found), found["payload"], found["timestamp"].isoformat()])
        return seen

    return run


async def test_a_mocked_event() -> None:
    """For every later instance, and for one that waits already."""
    keys = ["payload", "timestamp", "type"]
    async with Emulator(worker(two_waits())) as emulator:
        flow = emulator.workflows["flow"]
        before = await flow.create("before")
        flow.mock_event("a", {"n": 1})
        first, second = await flow.create("first"), await flow.create("second")
        assert [one.steps[0].state for one in (before, first, second)] == [
            *("waiting", "complete", "complete")
        ]
        await emulator.advance(60)
        first.mock_event("b")
        await emulator.advance(0)
        at = "2026-01-01T00:0"
        assert first.output == [[keys, {"n": 1}, f"{at}0:00"], [keys, None, f"{at}1:00"]]
        assert second.status == "waiting"


async def test_a_mocked_event_survives_a_restart() -> None:
    """I21, I22: stored events go, mocked ones stay."""
    async with Emulator(worker(after_a_sleep(two_waits()))) as emulator:
        flow = emulator.workflows["flow"]
        flow.mock_event("a", "mocked")
        instance = await flow.create()
        await instance.send_event("b", "real")
        await instance.restart()
        await emulator.settle()
        assert [step.state for step in instance.steps] == ["complete", "complete", "waiting"]
        await instance.send_event("b", "again")
        assert [payload for _, payload, _ in instance.output] == ["mocked", "again"]


async def test_an_event_cannot_be_mocked_for_a_finished_instance() -> None:
    """I24: the call says so, and not one that comes later."""
    async with Emulator(worker(one_step(1))) as emulator:
        instance = await emulator.workflows["flow"].create()
        with pytest.raises(WorkflowError, match=r"instance\.in_finite_state"):
            instance.mock_event("go", 1)
        await emulator.settle()


@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_forced_event_time_out(when: str) -> None:
    """V4: at once, with the declared time in the text."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        first = await told(lambda: step.wait_for_event("w", "go", timeout="3 hours"))
        found = await step.wait_for_event("again", "go", timeout="3 hours")
        return [first, found["payload"]]

    async with Emulator(worker(after_a_sleep(run))) as emulator:
        instance = await emulator.workflows["flow"].create()
        if when == "before":
            instance.force_event_timeout("w")
        await emulator.advance(60)
        if when == "during":
            assert instance.steps[-1].name == "w"
            instance.force_event_timeout("w")
            await emulator.advance(0)
        assert instance.steps[-1].name == "again"
        assert clock(emulator) == 60
        await instance.send_event("go", "later")
        text = "Execution timed out after 10800000ms"
        assert instance.output == [["WorkflowTimeoutError", text], "later"]
        assert mocks(emulator) == []


# -- sleeps and retry delays -----------------------------------------------------------------------


def three_sleeps() -> Any:
    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("a", "1 day")
        await step.sleep("b", "2 days")
        await step.sleep_until("c", datetime(2026, 2, 1, tzinfo=UTC))
        return now()

    return run


async def test_all_sleeps_disabled() -> None:
    """The history still shows the modelled duration."""
    async with Emulator(worker(three_sleeps())) as emulator:
        emulator.workflows["flow"].disable_sleeps()
        instance = await emulator.workflows["flow"].create()
        assert instance.output == 0
        assert [row.data["durationMs"] for row in rows(instance, 8)] == [
            DAY * 1000,
            2 * DAY * 1000,
            31 * DAY * 1000,
        ]
        assert {step.state for step in instance.steps} == {"complete"}
        assert clock(emulator) == 0


async def test_some_sleeps_disabled() -> None:
    async with Emulator(worker(three_sleeps())) as emulator:
        instance = await emulator.workflows["flow"].create()
        instance.disable_sleeps("b", "c")
        await emulator.advance(DAY - 1)
        assert [step.name for step in instance.steps] == ["a"]
        await emulator.advance(1)
        assert instance.output == DAY


async def test_a_sleep_that_is_under_way_is_disabled() -> None:
    async with Emulator(worker(three_sleeps())) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(60)
        instance.disable_sleeps("a")
        await emulator.advance(0)
        assert [step.name for step in instance.steps] == ["a", "b"]
        assert clock(emulator) == 60
        assert seconds(instance.steps[0].ended) == 60


async def test_retry_delays_disabled() -> None:
    """O-29: the attempts follow at once, and the history has the modelled delay."""
    times: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        await told(lambda: do(step, "s", failing(times)))
        await told(lambda: do(step, "t", failing(times)))

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(5)
        assert times == [0]
        instance.disable_retry_delays("s")
        await emulator.advance(0)
        assert times == [0, *[5] * 5, 5]
        waits = [row.data.get("retryDelayMs") for row in rows(instance, 12)]
        assert waits[:6] == [10_000, 20_000, 40_000, 80_000, 160_000, None]
        await emulator.advance(9.999)
        assert len(times) == 7
        instance.disable_retry_delays()
        await emulator.advance(0)
        assert instance.status == "complete"
        assert clock(emulator) == 14.999


# -- holding a step --------------------------------------------------------------------------------


async def test_a_held_step() -> None:
    """The body does not start before, and no time passes by itself meanwhile."""
    log: list[tuple[str, float]] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        await do(step, "a", lambda _: log.append(("a", now())))
        await do(step, "b", lambda _: log.append(("b", now())))
        return "done"

    async def fetch(worker: Any, request: Any) -> float:
        await asyncio.sleep(30)
        return now()

    async with Emulator(worker(after_a_sleep(run), fetch=fetch)) as emulator:
        gate = emulator.workflows["flow"].hold_step("b")
        instance = await emulator.workflows["flow"].create()
        await gate.reached()
        assert clock(emulator) == 60
        assert log == [("a", 60)]
        assert states(instance)[-1] == ("b", "running", 1)
        request = asyncio.create_task(emulator.fetch("/"))
        for _ in range(50):
            await asyncio.sleep(0)
        # A request would let the clock run on to its end.
        assert (clock(emulator), request.done()) == (60, False)
        assert log == [("a", 60)]
        await emulator.advance(5)
        assert clock(emulator) == 65
        gate.open()
        assert (await request).json() == 90
        assert log == [("a", 60), ("b", 65)]
        assert instance.output == "done"
        assert mocks(emulator) == []


async def test_a_gate_that_is_open_holds_nothing() -> None:
    async with Emulator(worker(one_step(1))) as emulator:
        gate = emulator.workflows["flow"].hold_step("s")
        gate.open()
        instance = await emulator.workflows["flow"].create()
        assert instance.output == 1
        await gate.reached()


async def test_a_gate_before_the_second_step_of_a_name() -> None:
    counts: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        for _ in range(2):
            await do(step, "s", lambda ctx: counts.append(ctx["step"]["count"]))

    async with Emulator(worker(run)) as emulator:
        gate = emulator.workflows["flow"].hold_step("s", index=2)
        await emulator.workflows["flow"].create()
        await gate.reached()
        assert counts == [1]
        gate.open()
        await emulator.settle()
        assert counts == [1, 2]


async def test_a_gate_that_is_never_reached() -> None:
    async with Emulator(worker(one_step(1))) as emulator:
        gate = emulator.workflows["flow"].hold_step("other")
        await emulator.workflows["flow"].create()
        with pytest.raises(NotSettled, match="other"):
            await gate.reached()
        # The clock is not held by it.
        assert "other" in " ".join(mocks(emulator))


@pytest.mark.parametrize("loss", ["crash", "evict", "terminate", "delete", "restart"])
async def test_the_clock_goes_on_when_a_held_step_is_gone(loss: str) -> None:
    """A crash starts the step again, which is held again; no body ever ran twice."""
    log: list[int] = []

    async def fetch(worker: Any, request: Any) -> float:
        await asyncio.sleep(30)
        return now()

    run = one_step(lambda ctx: log.append(ctx["attempt"]))
    async with Emulator(worker(run, fetch=fetch)) as emulator:
        gate = emulator.workflows["flow"].hold_step("s")
        instance = await emulator.workflows["flow"].create()
        await gate.reached()
        await getattr(instance, loss)()
        assert log == []
        if loss in ("terminate", "delete"):
            # Nothing is held any more: time passes by itself.
            assert (await asyncio.wait_for(emulator.fetch("/"), 5)).json() == 30
            return
        gate.open()
        await emulator.settle()
        assert log == [1 if loss == "restart" else 2]
        assert instance.status == "complete"


# -- whom a mock concerns --------------------------------------------------------------------------


async def test_mocks_of_a_workflow_are_for_later_instances() -> None:
    calls: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, "s", lambda _: calls.append(event["instanceId"]) or "real")

    async with Emulator(worker(after_a_sleep(run))) as emulator:
        flow = emulator.workflows["flow"]
        before = await flow.create("before")
        flow.mock_step_result("s", "mocked")
        flow.disable_sleeps()
        after = await flow.create("after")
        assert (before.status, after.status) == ("waiting", "complete")
        assert await before.result() == "real"
        assert after.output == "mocked"
        assert clock(emulator) == 60
        assert calls == ["before"]


async def test_mocks_of_an_instance_concern_no_other_and_come_first() -> None:
    config = worker(after_a_sleep(one_step("real")))
    async with Emulator(config) as emulator:
        flow = emulator.workflows["flow"]
        flow.mock_step_result("s", "of all")
        one, other = await flow.create("one"), await flow.create("other")
        one.mock_step_result("s", "of one")
        assert [await one.result(), await other.result()] == ["of one", "of all"]


async def test_mocks_of_one_workflow_are_not_another_s() -> None:
    config = worker({"one": one_step("real"), "other": one_step("real")})
    async with Emulator(config) as emulator:
        emulator.workflows["one"].mock_step_result("s", "mocked")
        assert await (await emulator.workflows["one"].create("x")).result() == "mocked"
        assert await (await emulator.workflows["other"].create("x")).result() == "real"


@pytest.mark.parametrize("loss", ["crash", "evict", "restart"])
async def test_mocks_survive(loss: str) -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        first = await do(step, "s", "real")
        await step.sleep("n", "1 hour")
        second = await do(step, "t", "real")
        return [first, second]

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        flow.mock_step_result("s", "mocked")
        flow.mock_step_result("t", "mocked")
        instance = await flow.create()
        await getattr(emulator, loss)()
        assert await instance.result() == ["mocked", "mocked"]
        # A restart of the instance does not change its mocks (I22).
        await instance.restart()
        assert await instance.result() == ["mocked", "mocked"]


async def test_reset_forgets_mocks() -> None:
    async with Emulator(worker(one_step("real"))) as emulator:
        emulator.workflows["flow"].mock_step_result("s", "mocked")
        await emulator.reset()
        assert emulator.workflows["flow"].instances == []
        assert await (await emulator.workflows["flow"].create()).result() == "real"


# -- mocks that nothing reached --------------------------------------------------------------------


def _mock_everything(target: Any) -> None:
    target.mock_step_result("result", 1)
    target.mock_step_error("error", ValueError("x"))
    target.force_step_timeout("timeout")
    target.mock_event("event", 1)
    target.force_event_timeout("wait")
    target.disable_sleeps("sleep")
    target.disable_retry_delays("delay")
    target.hold_step("held")


NAMES = ("result", "error", "timeout", "event", "wait", "sleep", "delay", "held")


@pytest.mark.parametrize("whence", ["instance", "workflow"])
async def test_a_mock_that_is_never_reached_is_a_finding(whence: str) -> None:
    async with Emulator(worker(after_a_sleep(one_step(1)))) as emulator:
        flow = emulator.workflows["flow"]
        if whence == "workflow":
            _mock_everything(flow)
        instance = await flow.create("x")
        if whence == "instance":
            _mock_everything(instance)
        await emulator.settle()
    found = [f for f in emulator.findings if f.code == "mock_not_reached"]
    missed = [name for name in NAMES if not any(f"'{name}'" in f.message for f in found)]
    assert missed == []
    assert len(found) == len(NAMES)
    assert {f.worker for f in found} <= {"worker", None}
    assert all("flow" in (f.subject or f.message) for f in found)


async def test_mocks_that_were_reached_are_no_finding() -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        for name in ("result", "held"):
            await do(step, name, 1)
        for name in ("error", "timeout", "delay"):
            await told(lambda name=name: do(step, name, failing()))
        await step.wait_for_event("w", "event")
        await told(lambda: step.wait_for_event("wait", "other"))
        await step.sleep("sleep", "1 day")

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        _mock_everything(flow)
        flow.hold_step("held").open()
        instance = await flow.create("x")
        await instance.result()
        assert codes(emulator) == []


async def test_a_mock_of_the_second_step_of_a_name_that_has_one_only() -> None:
    async with Emulator(worker(one_step(1))) as emulator:
        emulator.workflows["flow"].mock_step_result("s", 2, index=2)
        await (await emulator.workflows["flow"].create()).result()
        (message,) = mocks(emulator)
        assert "'s'" in message
        assert "2" in message


async def test_a_month_in_no_time_at_all() -> None:
    """O-29: sleeps, retry delays and event time-outs add up exactly, or take no time."""
    tries: list[float] = []

    def body(ctx: Any) -> str:
        tries.append(now())
        if ctx["attempt"] <= 4:
            raise ValueError("no")
        return "ok"

    async def run(self: Any, event: Any, step: Any) -> str:
        await step.sleep("month", "30 days")
        await do(step, "s", body, {"retries": {"limit": 4, "delay": "1 minute"}})
        await told(lambda: step.wait_for_event("w", "go", timeout="3 days"))
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("slow")
        assert await instance.result() == "done"
        waits = [0, 60, 180, 420, 900]
        assert tries == [30 * DAY + wait for wait in waits]
        assert clock(emulator) == 33 * DAY + 900
        tries.clear()
        flow = emulator.workflows["flow"]
        flow.disable_sleeps()
        flow.disable_retry_delays()
        flow.force_event_timeout("w")
        quick = await flow.create("quick")
        assert quick.output == "done"
        assert tries == [33 * DAY + 900] * 5
        assert emulator.now - quick.history[0].at == timedelta(0)
