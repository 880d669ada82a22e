"""The scenarios of workflows.md (a) that the pure engine can show, by their numbers."""

from __future__ import annotations

import pytest
from engine_bench import (
    HANGS,
    START,
    UNSERIALISABLE,
    Bench,
    StepError,
    Takes,
    failing,
    gives,
    lasts,
)

from emulator.workflows.grammar import shown_config
from emulator.workflows.model import ErrorInfo, NewInstance
from emulator.workflows.texts import EngineError

NO_RETRY = {"retries": {"limit": 0, "delay": 1}}


def one_step(body, config=None):
    async def run(step):
        return await step.do("s", body, config)

    return run


def refusal(call):
    with pytest.raises(EngineError) as caught:
        call()
    return caught.value.message


def test_an_instance_completes_with_what_run_returned():
    """Scenario 1."""

    async def run(step):
        return {"ok": True}

    bench = Bench(run)
    bench.create()
    assert (bench.status, bench.output, bench.view.error) == ("complete", {"ok": True}, None)
    assert bench.trace == [0, 1, 2]


def test_an_id_has_at_most_a_hundred_characters():
    """Scenario 3."""
    bench = Bench(one_step(gives(1)))
    bench.create("a" * 100)
    assert refusal(lambda: bench.create("a" * 101)) == "Workflow instance has invalid id"
    assert [view.id for view in bench.engine.instances("w")] == ["a" * 100]


def test_a_second_instance_of_one_id_is_refused_and_the_first_stays():
    """Scenario 5."""
    bench = Bench(one_step(gives(1)))
    bench.create("x")
    before = bench.engine.status("w", "x")
    message = refusal(lambda: bench.create("x"))
    assert message == '(instance.already_exists) Workflow instance with id "x" already exists'
    bench.settle()
    assert bench.engine.status("w", "x") == before
    assert len(bench.runs) == 1


def test_a_batch_has_from_one_to_a_hundred_items():
    """Scenario 6."""
    bench = Bench(one_step(gives(1)))
    items = [NewInstance(f"i{number}", b"{}") for number in range(101)]
    create = bench.engine.create_batch
    assert refusal(lambda: create("w", [], START)) == "batchCreate should have at least 1 instance"
    assert (
        refusal(lambda: create("w", items, START))
        == "batchCreate only supports 100 instances at a time"
    )
    assert bench.engine.instances("w") == []
    assert create("w", items[:100], START) == [item.id for item in items[:100]]


def test_a_batch_leaves_out_ids_that_exist_and_repeats():
    """Scenario 7."""
    bench = Bench(one_step(gives(1)))
    bench.create("x")
    create = bench.engine.create_batch
    x, y, z = (NewInstance(id, b"{}") for id in "xyz")
    assert create("w", [x, y], START) == ["y"]
    assert create("w", [z, z], START) == ["z"]
    bench.settle()
    assert [id for _, id in bench.runs] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("production", "(instance.not_found) Instance not found"),
        ("miniflare", "instance.not_found"),
    ],
)
def test_an_instance_that_does_not_exist_is_not_found(profile, message):
    """Scenario 8."""
    bench = Bench(one_step(gives(1)), profile=profile)
    assert refusal(lambda: bench.engine.instance("w", "missing")) == message


@pytest.mark.parametrize(
    ("profile", "times"),
    [("production", [0, 10, 30, 70, 150, 310]), ("miniflare", [0, 1, 3, 7, 15, 31])],
)
def test_a_step_fails_after_six_attempts_by_default(profile, times):
    """Scenario 9."""
    bench = Bench(one_step(failing()), profile=profile)
    bench.create()
    bench.advance(1000)
    assert bench.times("s-1") == times
    assert bench.ended == [(times[-1], "i")]
    assert (bench.status, bench.view.error) == ("errored", ErrorInfo("RuntimeError", "boom"))


def delays_shown(bench):
    return [row.data.get("retryDelayMs") for row in bench.history if row.event == 12]


@pytest.mark.parametrize(
    ("retries", "times", "delays"),
    [
        pytest.param(
            {"limit": 3, "delay": "2 seconds", "backoff": "linear"},
            [0, 2, 6, 12],
            [2000, 4000, 6000, None],
            id="10",
        ),
        pytest.param(
            {"limit": 2, "delay": 500, "backoff": "constant"},
            [0, 0.5, 1],
            [500, 500, None],
            id="11",
        ),
        pytest.param(
            {"limit": 2, "delay": "1 minute"}, [0, 60, 180], [60_000, 120_000, None], id="12"
        ),
        pytest.param({"limit": 0, "delay": 1000}, [0], [None], id="14a"),
        pytest.param({"limit": 3, "delay": 0}, [0, 0, 0, 0], [0, 0, 0, None], id="14b"),
    ],
)
def test_retries_come_by_limit_delay_and_backoff(retries, times, delays):
    """Scenarios 10, 11, 12 and 14."""
    bench = Bench(one_step(failing(), {"retries": retries}))
    bench.create()
    bench.advance(1000)
    assert bench.times("s-1") == times
    assert delays_shown(bench) == delays
    assert bench.ended == [(times[-1], "i")]


FLAKY = {"retries": {"limit": 4, "delay": "1 second", "backoff": "exponential"}}


def succeeds_at(number):
    def body(attempt):
        if attempt.number < number:
            raise RuntimeError("not yet")
        return "ok"

    return body


def test_a_step_that_succeeds_at_last_completes_the_instance():
    """Scenario 13, and the trace of 55."""
    bench = Bench(one_step(succeeds_at(4), FLAKY))
    bench.create()
    bench.advance(100)
    assert bench.calls == [(0, "s-1", 1), (1, "s-1", 2), (3, "s-1", 3), (7, "s-1", 4)]
    assert (bench.status, bench.output, bench.ended) == ("complete", "ok", [(7, "i")])
    assert bench.trace == [0, 1, 5, 10, 12, 10, 12, 10, 12, 10, 11, 6, 2]


def test_a_step_that_fails_for_good_leaves_its_trace():
    """Scenario 55, second half."""
    bench = Bench(one_step(failing(), {"retries": {"limit": 1, "delay": 1}}))
    bench.create()
    bench.advance(1)
    assert bench.trace == [0, 1, 5, 10, 12, 10, 12, 7, 3]


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [({}, [1000, 4000, 12_000]), ({"backoff": "constant"}, [1000, 2000, 3000])],
)
def test_what_a_delay_function_gives_goes_through_the_backoff(backoff, waits):
    """Scenario 15."""
    asked = []

    def delay(attempt, error):
        asked.append((attempt, error.message))
        return attempt * 1000

    config = {"retries": {"limit": 3, "delay": delay, **backoff}}
    bench = Bench(one_step(failing(), config))
    bench.create()
    bench.advance(100)
    assert delays_shown(bench) == [*waits, None]
    seconds = [0, *(sum(waits[:n]) / 1000 for n in (1, 2, 3))]
    assert bench.times("s-1") == seconds
    assert asked == [(1, "boom"), (2, "boom"), (3, "boom")]


def test_a_delay_function_that_throws_ends_the_step():
    """Scenario 16."""

    def delay(attempt, error):
        raise RuntimeError("nope")

    bench = Bench(one_step(failing(), {"retries": {"limit": 3, "delay": delay}}))
    bench.create()
    bench.advance(100)
    message = 'The delay function for step "s-1" threw an error: nope'
    assert bench.view.error == ErrorInfo("NonRetryableDelayError", message)
    assert bench.steps["s-1"].attempts == 1


def test_each_attempt_has_a_time_of_its_own():
    """Scenario 17."""
    config = {
        "timeout": "1 second",
        "retries": {"limit": 1, "delay": 1000, "backoff": "constant"},
    }
    bench = Bench(one_step(lasts(HANGS), config))
    bench.create()
    bench.to(0.999)
    assert bench.steps["s-1"].state == "running"
    bench.to(1.5)
    assert (bench.steps["s-1"].state, bench.steps["s-1"].due) == ("waiting", START + 2_000_000)
    bench.to(100)
    assert bench.times("s-1") == [0, 2]
    assert bench.ended == [(3, "i")]
    assert bench.view.error == ErrorInfo("WorkflowTimeoutError", "Execution timed out after 1000ms")


def test_an_attempt_times_out_after_ten_minutes_by_default():
    """Scenario 18."""
    bench = Bench(one_step(lasts(HANGS), NO_RETRY))
    bench.create()
    bench.advance(1000)
    assert bench.ended == [(600, "i")]
    assert bench.view.error.message == "Execution timed out after 600000ms"


def test_a_late_result_is_ignored():
    """R4: the body that timed out goes on, the next attempt's result counts."""

    def body(attempt):
        return Takes(3.5, "late") if attempt.number == 1 else Takes(1.5, "second")

    config = {"timeout": 2000, "retries": {"limit": 1, "delay": 1000}}
    bench = Bench(one_step(body, config))
    bench.create()
    bench.advance(10)
    assert (bench.status, bench.output, bench.ended) == ("complete", "second", [(4.5, "i")])


BAD_CONFIG = (
    'Step config for "s" is in a invalid format.'
    " See https://developers.cloudflare.com/workflows/build/sleeping-and-retrying/"
)


@pytest.mark.parametrize(
    "config",
    [
        {"retries": {"limit": 1}},
        {"retries": {"delay": 1}},
        {"retries": {"limit": -1, "delay": 1}},
        {"timeout": 0},
        {"timeout": "1s"},
        {"retries": {"limit": 1, "delay": 1, "backoff": "x"}},
        {"foo": 1},
    ],
)
def test_a_bad_config_fails_the_step_without_calling_it(config):
    """Scenario 19; E9: catchable, never retried."""
    caught = []

    async def run(step):
        try:
            await step.do("s", gives(1), config)
        except StepError as error:
            caught.append(error.info)
        return "went on"

    bench = Bench(run)
    bench.create()
    assert caught == [ErrorInfo("WorkflowFatalError", BAD_CONFIG)]
    assert bench.calls == []
    assert (bench.status, bench.output, bench.steps) == ("complete", "went on", {})


def test_the_same_name_twice_is_two_steps():
    """Scenario 21."""

    async def run(step):
        return [await step.do("s", gives(1)), await step.do("s", gives(2))]

    bench = Bench(run)
    bench.create()
    assert bench.output == [1, 2]
    assert bench.calls == [(0, "s-1", 1), (0, "s-2", 1)]
    assert [s.count for s in bench.steps.values()] == [1, 2]
    assert {row.target for row in bench.history if row.target} == {"s-1", "s-2"}


@pytest.mark.parametrize(("profile", "delay"), [("production", 10_000), ("miniflare", 1000)])
def test_an_attempt_has_the_merged_settings(profile, delay):
    """Scenario 22."""
    seen = []
    bench = Bench(one_step(seen.append), profile=profile)
    bench.create()
    (attempt,) = seen
    assert (attempt.name, attempt.count, attempt.number) == ("s", 1, 1)
    retries = {"limit": 5, "delay": delay, "backoff": "exponential"}
    assert shown_config(attempt.config) == {"retries": retries, "timeout": "10 minutes"}


def test_a_replay_calls_no_step_again_but_the_code_between():
    """Scenario 23."""
    between = []

    async def run(step):
        a = await step.do("a", gives("A"))
        between.append(a)
        await step.sleep("z", "1 minute")
        return a

    bench = Bench(run)
    bench.create()
    bench.advance(10)
    bench.verb("pause")
    bench.verb("resume")
    bench.lose()
    bench.restore()
    bench.advance(100)
    assert bench.calls == [(0, "a-1", 1)]
    assert between == ["A"] * 4
    assert (bench.status, bench.output, bench.ended) == ("complete", "A", [(60, "i")])


def test_a_caught_failure_is_thrown_again_in_a_replay():
    """Scenario 24."""
    caught = []

    async def run(step):
        try:
            await step.do("s", failing(), NO_RETRY)
        except StepError as error:
            caught.append(error.info)
        await step.sleep("z", 1000)
        return "went on"

    bench = Bench(run)
    bench.create()
    bench.lose()
    bench.advance(2)
    assert caught == [ErrorInfo("RuntimeError", "boom")] * 2
    assert len(bench.calls) == 1
    assert (bench.status, bench.output) == ("complete", "went on")


class NonRetryableError(Exception):
    """As user code has it."""


def non_retryable(message="bad"):
    def body(attempt):
        raise NonRetryableError(message)

    return body


UNHANDLED = ErrorInfo(
    "WorkflowFatalError",
    "The execution of the Workflow instance was terminated,"
    " as a step threw an NonRetryableError and it was not handled",
)


@pytest.mark.parametrize(
    ("preserve", "error", "logged"),
    [
        (True, ErrorInfo("NonRetryableError", "bad"), ("NonRetryableError", "bad")),
        (
            False,
            UNHANDLED,
            ("WorkflowFatalError", 'Step threw a NonRetryableError with message "bad"'),
        ),
    ],
)
def test_a_non_retryable_error_ends_the_step_at_once(preserve, error, logged):
    """Scenario 25; E6 decides which text the instance ends with."""
    bench = Bench(one_step(non_retryable()), preserve_non_retryable=preserve)
    bench.create()
    bench.advance(1000)
    assert len(bench.calls) == 1
    assert (bench.status, bench.view.error) == ("errored", error)
    (row,) = [row for row in bench.history if row.event == 12]
    assert row.data == {"attempt": 1, "error": {"name": logged[0], "message": logged[1]}}
    assert bench.trace == [0, 1, 5, 10, 12, 7, 3]


@pytest.mark.parametrize("message", ["bad", ""])
def test_a_caught_non_retryable_error_lets_run_go_on(message):
    """Scenario 26; E8: an empty message counts too."""

    async def run(step):
        try:
            await step.do("s", non_retryable(message))
        except StepError as error:
            return list(error.info)

    bench = Bench(run, preserve_non_retryable=False)
    bench.create()
    assert (bench.status, bench.output) == ("complete", ["NonRetryableError", message])
    assert len(bench.calls) == 1


def test_an_error_of_another_name_is_retried_whatever_its_class():
    """Scenario 27."""

    class Fatal(NonRetryableError):
        pass

    def body(attempt):
        raise Fatal("no")

    bench = Bench(one_step(body))
    bench.create()
    bench.advance(1000)
    assert len(bench.calls) == 6


def test_a_message_that_begins_so_is_not_retried():
    """E4."""
    bench = Bench(one_step(failing("NonRetryableError: fake")))
    bench.create()
    assert len(bench.calls) == 1
    assert bench.status == "errored"


@pytest.mark.parametrize(
    ("error", "preserve", "final"),
    [
        (NonRetryableError("top"), False, UNHANDLED),
        (NonRetryableError("top"), True, ErrorInfo("NonRetryableError", "top")),
        # RPC may have made the name a part of the text.
        (ValueError("NonRetryableError: top"), False, UNHANDLED),
        (ValueError("NonRetryableError: top"), True, ErrorInfo("NonRetryableError", "top")),
        (ValueError("NonRetryableError"), True, ErrorInfo("NonRetryableError", "")),
        (ValueError("plain"), False, ErrorInfo("ValueError", "plain")),
    ],
)
def test_an_error_in_run_ends_the_instance_without_a_retry(error, preserve, final):
    """Scenario 28; E6, E7."""

    async def run(step):
        raise error

    bench = Bench(run, preserve_non_retryable=preserve)
    bench.create()
    bench.advance(1000)
    assert (bench.status, bench.view.error, bench.runs) == ("errored", final, [(0, "i")])


def test_an_unserialisable_result_ends_the_instance_past_any_except():
    """Scenario 29, O2."""
    caught = []

    async def run(step):
        try:
            await step.do("s", gives(UNSERIALISABLE), rollback=lambda undo: None)
        except StepError as error:
            caught.append(error)

    bench = Bench(run)
    bench.create()
    bench.advance(100)
    assert caught == []
    assert bench.view.error == ErrorInfo(
        "WorkflowFatalError",
        "The execution of the Workflow instance was terminated,"
        ' as the step "s" returned a value which is not serialisable',
    )
    assert bench.calls == [(0, "s-1", 1)]
    assert bench.trace == [0, 1, 5, 10, 12, 7, 3]
    assert bench.history[4].data["error"] == {
        "name": "WorkflowFatalError",
        "message": 'Value returned from step "s" is not serialisable',
    }


def test_a_result_that_is_too_large_is_an_attempt_that_failed():
    """Scenario 30, O3."""
    config = {"retries": {"limit": 1, "delay": 1000}}
    caught = []

    async def run(step):
        try:
            await step.do("s", gives("x" * 99), config)
        except StepError as error:
            caught.append(error.info)

    bench = Bench(run, max_output=100)
    bench.create()
    bench.advance(10)
    assert bench.times("s-1") == [0, 1]
    message = "Step s-1 output is too large. Maximum allowed size is 1MiB."
    assert caught == [ErrorInfo("WorkflowInternalError", message)]


def test_a_result_of_just_the_limit_is_stored():
    """Scenario 30's other side."""
    bench = Bench(one_step(gives("x" * 98)), max_output=100)
    bench.create()
    assert bench.status == "complete"


def test_a_sensitive_output_is_marked_and_reaches_run():
    """Scenario 31."""
    bench = Bench(one_step(gives("pw"), {"sensitive": "output"}))
    bench.create()
    assert bench.output == "pw"
    assert bench.steps["s-1"].sensitive


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_a_sleep_lasts_its_time(profile):
    """Scenario 32."""

    async def run(step):
        await step.sleep("n", "1 day")

    bench = Bench(run, profile=profile)
    bench.create()
    bench.to(86_399.999)
    assert bench.ended == []
    bench.to(90_000)
    assert bench.ended == [(86_400, "i")]
    rows = [(row.event, row.target, row.data) for row in bench.history if row.target]
    assert rows == [(8, "n-1", {"durationMs": 86_400_000}), (9, "n-1", {})]


PAST = ErrorInfo("Error", "You can't sleep until a time in the past, time-traveler")


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_a_sleep_until_the_past_is_refused(profile):
    """Scenario 34."""
    caught = []

    async def run(step):
        try:
            await step.sleep_until("p", -0.001)
        except StepError as error:
            caught.append(error.info)
        await step.sleep_until("q", 0)

    bench = Bench(run, profile=profile)
    bench.create()
    assert caught == [PAST]
    assert bench.ended == [(0, "i")]


def sleeper(step):
    async def run():
        await step.sleep_until("p", 60)
        await step.do("s", lasts(20))

    return run()


def test_a_sleep_until_that_is_over_stays_so():
    """Scenario 35."""
    bench = Bench(sleeper)
    bench.create()
    bench.to(70)
    bench.verb("pause")
    bench.to(100)
    bench.verb("resume")
    bench.to(200)
    assert (bench.status, bench.ended) == ("complete", [(100, "i")])
    assert [row.target for row in bench.history if row.event == 8] == ["p-1"]


def test_locally_a_replayed_sleep_until_is_in_the_past():
    """D8, a local bug: the duration that is left is part of a sleep's key."""
    bench = Bench(sleeper, profile="miniflare")
    bench.create()
    bench.to(70)
    bench.verb("pause")
    bench.to(100)
    bench.verb("resume")
    assert (bench.status, bench.view.error) == ("errored", PAST)


def sleeps(duration):
    async def run(step):
        await step.sleep("n", duration)

    return run


def test_a_paused_sleep_keeps_what_was_left():
    """Scenario 36."""
    bench = Bench(sleeps("60 seconds"))
    bench.create()
    bench.to(20)
    bench.verb("pause")
    assert bench.status == "paused"
    bench.to(100)
    assert bench.status == "paused"
    bench.verb("resume")
    bench.to(139.999)
    assert bench.ended == []
    bench.to(200)
    assert bench.ended == [(140, "i")]


def test_a_paused_retry_delay_keeps_what_was_left():
    """Scenario 37."""
    bench = Bench(one_step(succeeds_at(2), {"retries": {"limit": 1, "delay": 10_000}}))
    bench.create()
    bench.to(4)
    bench.verb("pause")
    assert bench.status == "paused"
    bench.to(50)
    bench.verb("resume")
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (56, "s-1", 2)]


def waits(type="go", timeout=None):
    async def run(step):
        event = await step.wait("w", type, timeout)
        return [event.type, event.payload.decode(), (event.timestamp - START) // 1_000_000]

    return run


def test_a_paused_wait_keeps_what_was_left():
    """Scenario 38."""
    bench = Bench(waits(timeout="60 seconds"))
    bench.create()
    bench.to(20)
    bench.verb("pause")
    bench.to(100)
    bench.verb("resume")
    bench.to(200)
    assert bench.ended == [(140, "i")]
    assert bench.view.error.message == "Execution timed out after 60000ms"


def long_step(step):
    async def run():
        a = await step.do("a", lasts(30, "A"))
        return a + await step.do("b", gives("B"))

    return run()


def test_a_pause_waits_for_the_attempt_in_flight():
    """Scenario 39."""
    bench = Bench(long_step)
    bench.create()
    bench.to(10)
    bench.verb("pause")
    assert bench.status == "waitingForPause"
    bench.to(29.999)
    assert bench.status == "waitingForPause"
    bench.to(40)
    assert (bench.status, bench.steps["a-1"].output) == ("paused", b'"A"')
    assert bench.calls == [(0, "a-1", 1)]
    bench.verb("resume")
    assert bench.calls == [(0, "a-1", 1), (40, "b-1", 1)]
    assert (bench.status, bench.output) == ("complete", "AB")


def test_a_pause_can_be_cancelled():
    """Scenario 40."""
    bench = Bench(long_step)
    bench.create()
    bench.to(10)
    bench.verb("pause")
    bench.to(20)
    bench.verb("resume")
    assert bench.status == "running"
    bench.to(40)
    assert bench.calls == [(0, "a-1", 1), (30, "b-1", 1)]
    assert len(bench.runs) == 1


def test_a_cancelled_pause_lets_blocked_steps_go_on():
    """I14."""

    async def run(step):
        async def first():
            await step.do("a", lasts(5))
            await step.do("b", gives("B"))

        await step.together(first(), step_of(step, "c", lasts(30)))

    bench = Bench(run)
    bench.create()
    bench.verb("pause")
    bench.to(10)
    assert bench.times("b-1") == []
    assert bench.status == "waitingForPause"
    bench.verb("resume")
    assert bench.times("b-1") == [10]
    assert (bench.status, len(bench.runs)) == ("running", 1)


async def step_of(step, name, body, config=None):
    return await step.do(name, body, config)


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_pause_and_resume_do_nothing_elsewhere(profile):
    """Scenario 41."""
    bench = Bench(one_step(lasts(10)), profile=profile)
    bench.create()
    bench.verb("resume")
    assert (bench.status, len(bench.runs)) == ("running", 1)
    bench.to(20)
    before = bench.engine.snapshot()
    bench.verb("pause")
    bench.verb("resume")
    assert bench.engine.snapshot() == before
    assert bench.status == "complete"


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_terminate_ends_a_sleeping_instance(profile):
    """Scenario 42."""

    async def run(step):
        await step.sleep("n", 1000)
        await step.do("s", gives(1))

    bench = Bench(run, profile=profile)
    bench.create()
    bench.verb("terminate")
    assert (bench.status, bench.view.error, bench.output) == ("terminated", None, None)
    bench.to(100)
    assert bench.calls == []
    assert bench.trace == [0, 1, 8, 4]
    assert bench.engine.wake_at() is None
    assert (
        refusal(lambda: bench.verb("terminate"))
        == "(instance.cannot_terminate) Cannot terminate instance since its on a finite state"
    )


def three_steps(step):
    async def run():
        return [await step.do(name, gives(name)) for name in "ABC"]

    return run()


def called(bench):
    return [name for _, name, _ in bench.calls]


def test_restart_runs_everything_again_with_the_same_event():
    """Scenario 43, first half."""
    bench = Bench(three_steps)
    bench.create()
    before = bench.view
    bench.to(5)
    bench.verb("restart")
    assert called(bench) == ["A-1", "B-1", "C-1"] * 2
    after = bench.view
    assert (after.params, after.timestamp) == (before.params, before.timestamp)
    assert (after.started, after.executions) == (START + 5_000_000, 2)
    assert bench.trace == [0, 1, *[5, 10, 11, 6] * 3, 2]


def test_restart_from_a_step_keeps_what_came_before():
    """Scenario 43, second half."""
    bench = Bench(three_steps)
    bench.create()
    rows = bench.history
    bench.to(5)
    bench.verb("restart", name="B")
    assert called(bench) == ["A-1", "B-1", "C-1", "B-1", "C-1"]
    assert (bench.status, bench.output) == ("complete", ["A", "B", "C"])
    assert bench.history[:6] == rows[:6]
    assert bench.trace == [0, 1, *[5, 10, 11, 6] * 3, 2]


def test_restart_from_a_step_that_never_was_changes_nothing():
    """Scenario 43, third part; the type counts."""
    bench = Bench(three_steps)
    bench.create()
    before = bench.engine.snapshot()
    text = '(instance.cannot_restart) Step "{}" not found in execution history'
    restart = bench.engine.restart
    now = bench.instant
    assert refusal(lambda: restart("w", "i", now, name="nope")) == text.format("nope")
    assert refusal(lambda: restart("w", "i", now, name="B", count=2)) == text.format("B")
    assert refusal(lambda: restart("w", "i", now, name="B", kind="sleep")) == text.format("B")
    assert bench.engine.snapshot() == before


def test_restart_counts_steps_of_one_name():
    """Scenario 44."""

    async def run(step):
        for _ in range(3):
            await step.do("s", gives(1))

    bench = Bench(run)
    bench.create()
    bench.verb("restart", name="s", count=2)
    assert called(bench) == ["s-1", "s-2", "s-3", "s-2", "s-3"]


def test_an_errored_instance_can_be_restarted():
    """Scenario 45."""
    fail = [True]

    def body(attempt):
        if fail.pop() if fail else False:
            raise RuntimeError("first")
        return "fine"

    bench = Bench(one_step(body, NO_RETRY))
    bench.create()
    assert bench.status == "errored"
    bench.verb("restart")
    assert (bench.status, bench.output, bench.view.error) == ("complete", "fine", None)
    assert bench.calls == [(0, "s-1", 1)] * 2


def test_an_event_is_kept_for_a_wait_to_come():
    """Scenario 46."""

    async def run(step):
        await step.sleep("n", 10_000)
        return await waits()(step)

    bench = Bench(run)
    bench.create()
    bench.to(4)
    bench.send("go", {"n": 1})
    bench.to(30)
    assert bench.ended == [(10, "i")]
    assert bench.output == ["go", '{"n": 1}', 4]


def test_events_come_in_order_and_by_type():
    """Scenario 47."""

    async def run(step):
        first = await step.wait("one", "a")
        second = await step.wait("two", "a")
        return [first.payload.decode(), second.payload.decode()]

    bench = Bench(run)
    bench.create()
    bench.send("b", 0)
    assert bench.status == "waiting"
    bench.send("a", 1)
    bench.send("a", 2)
    assert bench.output == ["1", "2"]


def test_two_events_before_the_first_wait_come_in_order():
    """Scenario 47, buffered."""

    async def run(step):
        await step.sleep("n", 1000)
        first, second = await step.wait("one", "a"), await step.wait("two", "a")
        return [first.payload.decode(), second.payload.decode()]

    bench = Bench(run)
    bench.create()
    bench.send("a", 1)
    bench.send("a", 2)
    bench.to(1)
    assert bench.output == ["1", "2"]


def test_a_wait_times_out_after_a_day():
    """Scenario 48."""
    caught = []

    async def run(step):
        try:
            await step.wait("w", "go")
        except StepError as error:
            caught.append(error.info)
        return "went on"

    bench = Bench(run)
    bench.create()
    bench.to(86_399.999)
    assert caught == []
    bench.to(90_000)
    text = "Execution timed out after 86400000ms"
    assert caught == [ErrorInfo("WorkflowTimeoutError", text)]
    assert bench.ended == [(86_400, "i")]
    assert (bench.output, bench.trace) == ("went on", [0, 1, 14, 16, 2])


def test_production_refuses_events_for_a_finished_instance_and_bad_types():
    """Scenario 49."""
    bench = Bench(waits())
    bench.create()
    invalid = "(workflow.invalid_event_type) Event type is invalid"
    assert refusal(lambda: bench.send("a.b")) == invalid
    assert refusal(lambda: bench.send("a" * 101)) == invalid
    bench.send("go")
    assert bench.status == "complete"
    assert (
        refusal(lambda: bench.send("go"))
        == "(instance.in_finite_state) Instance reached a finite state, cannot send events to it"
    )


def test_locally_events_are_taken_whatever_they_are():
    """I23 and I24."""
    bench = Bench(waits("a b.c"), profile="miniflare")
    bench.create()
    bench.send("")
    bench.send("a b.c", 1)
    assert bench.status == "complete"
    before = bench.engine.snapshot()
    bench.send("go")
    assert bench.engine.snapshot() == before


def test_an_event_sent_in_a_pause_comes_after_it():
    """Scenario 50."""
    bench = Bench(waits(timeout="1 minute"))
    bench.create()
    bench.to(10)
    bench.verb("pause")
    bench.send("go", 7)
    assert (bench.status, bench.steps["w-1"].state) == ("paused", "waiting")
    bench.to(100)
    bench.verb("resume")
    assert (bench.status, bench.output) == ("complete", ["go", "7", 10])


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_the_step_limit_counts_steps_and_no_sleeps(profile):
    """Scenario 51, T1."""

    async def run(step):
        for number in range(5):
            await step.sleep(f"n{number}", 1)
        for number in range(4):
            await step.do(f"s{number}", gives(1))

    bench = Bench(run, step_limit=3, profile=profile)
    bench.create()
    bench.to(1)
    assert called(bench) == ["s0-1", "s1-1", "s2-1"]
    assert bench.view.error == ErrorInfo(
        "WorkflowFatalError",
        "The limit of 3 steps has been reached."
        " This limit can be changed in your worker configuration.",
    )


def test_parallel_steps_take_the_time_of_the_longest():
    """Scenario 52, first half."""

    async def run(step):
        return await step.together(*(step_of(step, name, lasts(10, name)) for name in "abc"))

    bench = Bench(run)
    bench.create()
    bench.to(100)
    assert (bench.ended, bench.output) == ([(10, "i")], ["a", "b", "c"])


def test_parallel_steps_are_stored_though_one_failed():
    """Scenario 52, second half: what was in flight goes on, nothing new starts."""

    async def run(step):
        async def chain():
            await step.do("a", lasts(10, "A"))
            await step.do("later", gives(1))

        bad = step_of(step, "b", lasts(2, RuntimeError("b failed")), NO_RETRY)
        await step.together(chain(), bad)

    bench = Bench(run)
    bench.create()
    bench.to(100)
    assert bench.ended == [(2, "i")]
    assert bench.view.error == ErrorInfo("RuntimeError", "b failed")
    step = bench.steps["a-1"]
    assert (step.state, step.output, step.ended) == ("complete", b'"A"', START + 10_000_000)
    assert called(bench) == ["a-1", "b-1"]


LOST = ErrorInfo("WorkflowInternalError", "Attempt failed due to internal workflows error")


def test_production_charges_a_lost_attempt():
    """Scenario 53."""
    bench = Bench(one_step(lasts(60), {"retries": {"limit": 1, "delay": 10_000}}))
    bench.create()
    bench.to(5)
    bench.lose()
    assert bench.calls == [(0, "s-1", 1), (5, "s-1", 2)]
    bench.to(8)
    bench.lose()
    assert bench.ended == [(8, "i")]
    assert (bench.status, bench.view.error) == ("errored", LOST)
    assert bench.trace == [0, 1, 5, 10, 12, 10, 12, 7, 3]
    assert delays_shown(bench) == [None, None]
    assert bench.steps["s-1"].attempts == 2


def test_locally_a_lost_attempt_is_neither_logged_nor_charged():
    """X3: even without retries there is one more attempt."""
    bench = Bench(one_step(lasts(60, "end"), NO_RETRY), profile="miniflare")
    bench.create()
    bench.to(5)
    bench.lose()
    bench.to(7)
    bench.lose()
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (5, "s-1", 2), (7, "s-1", 3)]
    assert (bench.status, bench.ended) == ("complete", [(67, "i")])
    assert bench.trace == [0, 1, 5, 10, 10, 10, 11, 6, 2]


@pytest.mark.parametrize(("back", "woke"), [(30, 60), (90, 90)])
def test_a_sleep_goes_on_over_a_loss(back, woke):
    """Scenario 54."""
    bench = Bench(sleeps("60 seconds"))
    bench.create()
    bench.to(20)
    bench.instant = START + back * 1_000_000
    bench.restore()
    bench.to(200)
    assert bench.ended == [(woke, "i")]


def undoable(step, fail_b=False):
    seen = []

    def undo(found):
        seen.append((found.step_name, found.output, found.error))
        if fail_b and found.name == "b":
            raise RuntimeError("cannot undo")

    async def run():
        await step.do("a", gives(1), rollback=undo)
        await step.do("b", gives(2), rollback=undo, rollback_config=NO_RETRY)
        await step.do("c", failing(), NO_RETRY, rollback=undo)

    return run(), seen


def test_a_failure_rolls_back_in_reverse():
    """Scenario 56, first half."""
    seen = []

    def code(step):
        run, told = undoable(step)
        seen.append(told)
        return run

    bench = Bench(code)
    bench.create()
    trigger = ErrorInfo("RuntimeError", "boom")
    assert seen == [[("c-1", None, trigger), ("b-1", b"2", trigger), ("a-1", b"1", trigger)]]
    assert (bench.status, bench.view.error) == ("errored", trigger)
    assert bench.view.rollback == ("complete", None)
    assert bench.trace[-2:] == [24, 3]
    assert bench.history[-2].data == {"totalSteps": 3, "completedSteps": 3}


def test_a_rollback_that_fails_ends_the_chain():
    """Scenario 56, second half."""
    bench = Bench(lambda step: undoable(step, fail_b=True)[0])
    bench.create()
    assert called(bench)[-2:] == ["rollback c-1", "rollback b-1"]
    failure = ErrorInfo("RuntimeError", "cannot undo")
    assert bench.view.rollback == ("failed", failure)
    assert bench.view.error == ErrorInfo("RuntimeError", "boom")
    assert bench.trace[-5:] == [19, 21, 23, 25, 3]
    assert bench.history[-2].data == {"totalSteps": 3, "completedSteps": 1}


def test_terminate_can_roll_back():
    """Scenario 57."""
    seen = []

    async def run(step):
        await step.do("a", gives("A"), rollback=seen.append)
        await step.do("b", gives("B"), rollback=seen.append)
        await step.sleep("n", "1 day")
        await step.do("c", gives("C"), rollback=seen.append)

    bench = Bench(run)
    bench.create()
    bench.to(5)
    bench.verb("terminate", rollback=True)
    assert [undo.step_name for undo in seen] == ["b-1", "a-1"]
    assert {undo.error for undo in seen} == {
        ErrorInfo("Terminated", "Instance terminated during rollback")
    }
    assert (bench.status, bench.view.error, bench.ended) == ("terminated", None, [(5, "i")])
    assert bench.trace[-2:] == [24, 4]
    assert len(bench.runs) == 2


def test_a_deleted_instance_is_gone_and_its_id_free():
    """Scenario 60."""
    bench = Bench(sleeps("1 day"))
    bench.create()
    bench.verb("delete")
    assert "instance.not_found" in refusal(lambda: bench.engine.instance("w", "i"))
    assert refusal(lambda: bench.verb("pause")) == "(instance.not_found) Instance does not exist"
    assert bench.engine.wake_at() is None
    bench.create()
    assert (bench.status, bench.ended) == ("waiting", [])


def test_an_instance_may_return_nothing():
    """Scenario 62."""

    async def run(step):
        return None

    bench = Bench(run)
    bench.create()
    assert (bench.status, bench.view.output) == ("complete", None)
