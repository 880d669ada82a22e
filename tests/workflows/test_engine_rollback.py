"""Rollback (K1 to K8), beyond scenarios 56 and 57."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from engine_bench import HANGS, START, UNSERIALISABLE, Bench, StepError, failing, gives, lasts

from emulator.workflows import texts
from emulator.workflows.model import BLOCKED, PARKED, SECOND, ErrorInfo, Rollback, Run, Stop
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from emulator.workflows.execution import Execution

NO_RETRY = {"retries": {"limit": 0, "delay": 1}}
BOOM = ErrorInfo("RuntimeError", "boom")


def undone(bench):
    return [name for _, name, _ in bench.calls if name.startswith("rollback")]


def two_steps(undo_b, end, config=None):
    """`a` and `b` succeed, then comes `end`."""

    async def run(step):
        await step.do("a", gives("A"), rollback=lambda undo: None)
        await step.do("b", gives("B"), rollback=undo_b, rollback_config=config)
        return await end(step)

    return run


async def raises(step):
    raise RuntimeError("boom")


async def returns(step):
    return None


async def sleeps(step):
    await step.sleep("n", "1 day")


@pytest.mark.parametrize("verb", [None, "terminate", "delete"])
def test_no_rollback_without_a_reason(verb):
    """K2: not on success, a plain terminate, a deletion."""
    bench = Bench(two_steps(print, returns if verb is None else sleeps))
    bench.create()
    if verb:
        bench.verb(verb)
    assert undone(bench) == []


def test_no_rollback_for_a_caught_failure():
    """K2, wf_rollback_caught."""

    async def caught(step):
        try:
            await step.do("c", failing(), NO_RETRY)
        except StepError:
            return "fine"

    bench = Bench(two_steps(print, caught))
    bench.create()
    assert (bench.status, undone(bench), bench.view.rollback) == ("complete", [], None)


def test_no_rollback_for_a_fatal_result():
    """K2, O2."""

    async def fatal(step):
        await step.do("c", gives(UNSERIALISABLE))

    bench = Bench(two_steps(print, fatal))
    bench.create()
    assert (bench.status, undone(bench)) == ("errored", [])


@pytest.mark.parametrize(
    ("preserve", "final"),
    [(True, ErrorInfo("NonRetryableError", "nr")), (False, texts.UNHANDLED)],
)
def test_the_handlers_see_the_original_error(preserve, final):
    """K6, wf_rollback_nonretryable: whatever the instance ends with."""
    seen = []

    async def end(step):
        await step.do("c", failing("NonRetryableError: nr"))

    bench = Bench(two_steps(seen.append, end), preserve_non_retryable=preserve)
    bench.create()
    original = ErrorInfo("RuntimeError", "NonRetryableError: nr")
    assert [undo.error for undo in seen] == [original]
    assert bench.view.error == final
    assert bench.view.rollback == ("complete", None)


def test_a_handler_has_attempts_of_its_own():
    """K4, wf_rollback_fails: the step's own context stays as it was."""
    seen = []

    def undo(found):
        seen.append((bench.now, found.number, found.attempt, found.output))
        raise RuntimeError("rb")

    config = {"retries": {"limit": 1, "delay": 100}}
    bench = Bench(two_steps(undo, raises, config))
    bench.create()
    assert (bench.status, bench.view.rolling_back) == ("running", True)
    bench.to(10)
    assert seen == [(0, 1, 1, b'"B"'), (0.1, 2, 1, b'"B"')]
    assert undone(bench) == ["rollback b-1", "rollback b-1"]
    assert bench.ended == [(0.1, "i")]
    assert bench.view.error == BOOM
    assert bench.view.rollback == ("failed", ErrorInfo("RuntimeError", "rb"))
    rows = [(int(row.event), row.data) for row in bench.history if row.event >= 17]
    error = {"name": "RuntimeError", "message": "rb"}
    shown = {"retries": {"limit": 1, "delay": 100, "backoff": "exponential"}}
    assert rows == [
        (17, {"triggerError": {"name": "RuntimeError", "message": "boom"}, "totalSteps": 2}),
        (18, {"config": {**shown, "timeout": "10 minutes"}}),
        (19, {"attempt": 1}),
        (21, {"attempt": 1, "error": error, "retryDelayMs": 100}),
        (19, {"attempt": 2}),
        (21, {"attempt": 2, "error": error}),
        (23, {}),
        (25, {"totalSteps": 2, "completedSteps": 0}),
    ]


def test_a_handler_that_fails_once_and_then_succeeds():
    """K4, the default settings."""

    def undo(found):
        if found.number < 3:
            raise RuntimeError("not yet")

    bench = Bench(two_steps(undo, raises))
    bench.create()
    bench.to(100)
    assert bench.times("rollback b-1") == [0, 10, 30]
    assert bench.calls[-1] == (30, "rollback a-1", 1)
    assert (bench.ended, bench.view.rollback) == ([(30, "i")], ("complete", None))


def test_a_non_retryable_error_ends_the_chain_at_once():
    """E4 for handlers; a choice of ours."""
    bench = Bench(two_steps(lambda undo: failing("NonRetryableError: no")(undo), raises))
    bench.create()
    assert undone(bench) == ["rollback b-1"]
    assert bench.view.rollback[0] == "failed"


def test_a_handler_has_a_time():
    """K4: `timeout` in `rollbackConfig`; a late result is ignored."""
    config = {"timeout": "2 seconds", "retries": {"limit": 1, "delay": 1000}}
    bench = Bench(two_steps(lasts(HANGS), raises, config))
    bench.create()
    bench.to(100)
    assert bench.times("rollback b-1") == [0, 3]
    assert bench.ended == [(5, "i")]
    failure = ErrorInfo("WorkflowTimeoutError", "Execution timed out after 2000ms")
    assert bench.view.rollback == ("failed", failure)


def test_a_late_result_of_a_handler_counts_for_nothing():
    """R4 for handlers."""

    def undo(found):
        return lasts(2.5 if found.number == 1 else 1)(found)

    config = {"timeout": "2 seconds", "retries": {"limit": 1, "delay": 0}}
    bench = Bench(two_steps(undo, raises, config))
    bench.create()
    bench.to(2.6)
    assert bench.view.rolling_back
    bench.to(100)
    assert bench.ended == [(3, "i")]
    assert bench.view.rollback == ("complete", None)


def test_a_missing_handler_ends_the_chain():
    """K5."""

    async def run(step):
        await step.do("a", gives("A"), rollback=print)
        await step.do("b", gives("B"), rollback=print)
        step.handlers.pop("do:b-1")
        raise RuntimeError("boom")

    bench = Bench(run)
    bench.create()
    assert undone(bench) == []
    failure = ErrorInfo("RollbackMissing", "Rollback function not available in registry")
    assert bench.view.rollback == ("failed", failure)
    assert bench.trace[-3:] == [23, 25, 3]
    assert bench.history[-3].data == {"error": failure._asdict()}


def test_parallel_steps_are_undone_in_reverse_of_their_start():
    """K3: the unfinished one too, without an output."""
    seen = []

    async def one(step, name, body):
        await step.do(name, body, NO_RETRY, rollback=seen.append)

    async def run(step):
        await step.together(
            one(step, "a", lasts(5, "A")),
            one(step, "b", lasts(60, "B")),
            one(step, "c", lasts(7, RuntimeError("boom"))),
        )

    bench = Bench(run)
    bench.create()
    bench.to(100)
    assert [(undo.step_name, undo.output) for undo in seen] == [
        ("c-1", None),
        ("b-1", None),
        ("a-1", b'"A"'),
    ]
    assert bench.ended == [(7, "i")]


def test_no_step_runs_in_the_rollback_phase():
    """K7."""
    refused = []

    async def other(step):
        await step.sleep("n", 5000)
        await step.do("late", gives(1))

    async def run(step):
        await step.do("a", gives("A"), rollback=lasts(10))
        step.start(other(step))
        raise RuntimeError("boom")

    bench = Bench(run)
    bench.create()
    execution: Execution = bench.running["i"].execution
    for ask in (
        lambda: execution.do("x"),
        lambda: execution.sleep("x", 1),
        lambda: execution.wait("x", "go"),
        lambda: execution.sleep_until("x", 1e15, START),
    ):
        with pytest.raises(EngineError) as caught:
            ask()
        refused.append(caught.value.info)
    text = "Cannot execute steps during rollback phase"
    assert refused == [ErrorInfo("WorkflowFatalError", text)] * 4
    bench.to(100)
    assert bench.times("late-1") == []
    assert bench.ended == [(10, "i")]


def test_terminate_rolls_back_a_paused_instance():
    """I17."""
    bench = Bench(two_steps(lambda undo: None, sleeps))
    bench.create()
    bench.verb("pause")
    bench.verb("terminate", rollback=True)
    assert undone(bench) == ["rollback b-1", "rollback a-1"]
    assert bench.status == "terminated"
    assert "i" not in bench.running  # `run` hangs in its last step, and was stopped


def test_terminate_with_nothing_to_undo_is_plain():
    """I17, K3."""
    bench = Bench(sleeps)
    bench.create()
    bench.verb("terminate", rollback=True)
    assert bench.trace == [0, 1, 8, 4]
    assert (bench.view.rollback, len(bench.runs)) == (None, 1)


def test_terminate_stops_run_before_it_rolls_back():
    """K8: `run` is called again only to get the handlers."""
    bench = Bench(two_steps(lambda undo: None, sleeps))
    bench.create()
    bench.engine.terminate("w", "i", bench.instant, rollback=True)
    assert bench.engine.take_notices() == [Stop("w", "i"), Run("w", "i")]
    execution = bench.engine.begin("w", "i", bench.instant)
    assert execution.rebuilding
    keys = [execution.do(name, has_rollback=True) for name in "ab"]
    bench.engine.decide(execution, keys[1], bench.instant)
    assert bench.engine.take_notices() == [Rollback("w", "i")]
    found = bench.engine.next_rollback(execution, bench.instant)
    assert found.key == keys[1]
    assert bench.engine.next_rollback(execution, bench.instant) is PARKED
    # A parallel part of `run` hears nothing of all this.
    assert bench.engine.decide(execution, execution.do("x"), bench.instant) is BLOCKED
    bench.engine.raised(execution, BOOM, bench.instant)
    bench.engine.finished(execution, None, bench.instant)
    assert bench.engine.take_notices() == []


def test_a_failing_rollback_does_not_stop_a_termination():
    """I17."""
    bench = Bench(two_steps(failing(), sleeps, NO_RETRY))
    bench.create()
    bench.verb("terminate", rollback=True)
    assert bench.status == "terminated"
    assert bench.view.rollback[0] == "failed"
    assert bench.trace[-2:] == [25, 4]


def test_a_replay_for_handlers_gives_nothing_for_what_is_unfinished():
    """K8: a sleep returns at once, a wait without an event, a step without a result."""
    values = []

    async def run(step):
        rebuilding = step.execution.rebuilding

        async def hangs():
            values.append((rebuilding, await step.do("hangs", lasts(HANGS))))

        if rebuilding:
            await hangs()
        else:
            step.start(hangs())
        await step.do("a", gives("A"), rollback=lambda undo: None)
        await step.sleep("n", "1 day")
        await step.do("z", gives("Z"), rollback=lambda undo: None)

    bench = Bench(run)
    bench.create()
    bench.to(5)
    bench.verb("terminate", rollback=True)
    assert values == [(True, None)]
    assert (undone(bench), bench.times("z-1")) == (["rollback a-1"], [])
    assert bench.status == "terminated"


def test_code_that_cannot_bear_that_leaves_handlers_out():
    """K8, K5: `run` raised before the last step to undo was asked for."""

    async def run(step):
        async def waits():
            return (await step.wait("w", "go")).payload

        await step.do("a", gives("A"), rollback=lambda undo: None)
        if step.execution.rebuilding:
            await waits()
        await step.do("b", gives("B"), rollback=lambda undo: None)
        await waits()

    bench = Bench(run)
    bench.create()
    bench.verb("terminate", rollback=True)
    assert undone(bench) == []
    assert bench.view.rollback == (
        "failed",
        ErrorInfo("RollbackMissing", "Rollback function not available in registry"),
    )


@pytest.mark.parametrize(("profile", "numbers"), [("production", [1, 2]), ("miniflare", [1, 2])])
def test_a_crash_in_the_rollback_goes_on_with_it(profile, numbers):
    """X1, X2 for handlers: `run` is called for them, the attempt is lost."""
    bench = Bench(two_steps(lasts(10), raises), profile=profile)
    bench.create()
    bench.to(4)
    bench.lose()
    bench.to(100)
    assert [call for call in bench.calls if call[1] == "rollback b-1"] == [
        (0, "rollback b-1", 1),
        (4, "rollback b-1", 2),
    ]
    assert bench.ended == [(14, "i")]
    assert (bench.status, bench.view.error) == ("errored", BOOM)
    assert bench.view.rollback == ("complete", None)
    lost = [row for row in bench.history if row.event == 21]
    assert len(lost) == (1 if profile == "production" else 0)


def test_production_charges_a_lost_handler():
    """X3 for handlers."""
    bench = Bench(two_steps(lasts(10), raises, NO_RETRY))
    bench.create()
    bench.to(4)
    bench.lose()
    assert bench.ended == [(4, "i")]
    text = "Attempt failed due to internal workflows error"
    assert bench.view.rollback == ("failed", ErrorInfo("WorkflowInternalError", text))


def test_locally_a_lost_handler_is_not_charged():
    """X3 for handlers: one retry is left after the loss, and is used."""

    def undo(found):
        return lasts(10)(found) if found.number == 1 else failing()(found)

    config = {"retries": {"limit": 1, "delay": 1000, "backoff": "constant"}}
    bench = Bench(two_steps(undo, raises, config), profile="miniflare")
    bench.create()
    bench.to(4)
    bench.lose()
    bench.to(100)
    assert bench.times("rollback b-1") == [0, 4, 5]


def test_a_second_error_of_run_changes_nothing():
    """K6: the first one set the rollback off."""
    bench = Bench(two_steps(lasts(10), raises))
    bench.create()
    before = bench.engine.snapshot()
    bench.engine.raised(bench.running["i"].execution, ErrorInfo("E", "m"), bench.instant)
    assert bench.engine.snapshot() == before


def test_restart_from_a_step_forgets_the_rollback():
    """I20: rows of a rollback are gone, also those of steps that stay."""
    bench = Bench(two_steps(lambda undo: None, raises))
    bench.create()
    assert max(bench.trace) == 24
    bench.code = two_steps(lambda undo: None, sleeps)
    bench.verb("restart", name="b")
    assert bench.trace == [0, 1, *[5, 10, 11, 6] * 2, 8]
    assert bench.view.rollback is None


@pytest.mark.parametrize("way", ["lose", "restore"])
def test_a_crash_in_a_handlers_retry_delay_waits_for_the_rest(way):
    """X4 for handlers."""

    def undo(found):
        if found.number == 1:
            raise RuntimeError("once")

    bench = Bench(two_steps(undo, raises))
    bench.create()
    bench.to(4)
    getattr(bench, way)()
    bench.to(100)
    assert bench.times("rollback b-1") == [0, 10]
    assert bench.ended == [(10, "i")]


def test_verbs_in_a_rollback():
    """Choices of ours: no pause, a terminate with rollback waits, a plain one cuts off."""
    bench = Bench(two_steps(lasts(10), raises))
    bench.create()
    before = bench.engine.snapshot()
    bench.verb("pause")
    bench.verb("resume")
    bench.verb("terminate", rollback=True)
    assert bench.engine.snapshot() == before
    bench.to(5)
    bench.verb("terminate")
    bench.to(100)
    assert (bench.status, bench.ended) == ("terminated", [(5, "i")])
    assert undone(bench) == ["rollback b-1"]
    assert bench.engine.wake_at() is None


def test_restart_ends_a_rollback():
    """I19: from any state."""
    bench = Bench(two_steps(lasts(10), raises))
    bench.create()
    bench.to(5)
    bench.verb("restart")
    assert bench.view.rolling_back
    bench.to(100)
    assert bench.times("rollback b-1") == [0, 5]
    assert bench.ended == [(15, "i")]


def test_timers_of_other_steps_stop_when_the_rollback_begins():
    """Nothing of `run` goes on in the rollback phase."""

    async def run(step):
        await step.do("a", gives("A"), rollback=lasts(100))
        step.start(sleeper(step))
        raise RuntimeError("boom")

    async def sleeper(step):
        await step.sleep("n", 5000)

    bench = Bench(run)
    bench.create()
    bench.to(50)
    assert bench.steps["n-1"].state == "waiting"
    bench.to(200)
    assert bench.ended == [(100, "i")]
    assert bench.instant == START + 200 * SECOND
