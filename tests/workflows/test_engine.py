"""Rules of the engine beyond the numbered scenarios: control, statuses, slots, events, history."""

from __future__ import annotations

from hashlib import sha1

import pytest
from engine_bench import HANGS, PENDING, START, Bench, StepError, failing, gives, lasts

from emulator.workflows.model import (
    BLOCKED,
    PARKED,
    SECOND,
    Attempt,
    DelayFailed,
    ErrorInfo,
    Event,
    Failed,
    Gone,
    InstanceEvent,
    NewInstance,
    Ready,
    Retention,
    Run,
    Schedule,
    Status,
    Stop,
    WantDelay,
    WorkflowRules,
)
from emulator.workflows.texts import EngineError


async def sleeps_a_minute(step):
    await step.sleep("n", "1 minute")


async def one_long_step(step):
    return await step.do("s", lasts(10, "done"))


def refusal(call):
    with pytest.raises(EngineError) as caught:
        call()
    return caught.value.message


def statuses(bench):
    return [view.status.value for view in bench.engine.instances("w")]


# Statuses.


def test_the_numbers_of_the_statuses():
    """I2, I3."""
    assert [status.number for status in Status] == list(range(8))
    assert [status.value for status in Status if status.finite] == [
        "errored",
        "terminated",
        "complete",
    ]


@pytest.mark.parametrize(("profile", "shown"), [("production", "queued"), ("miniflare", "running")])
def test_an_instance_is_queued_until_run_is_called(profile, shown):
    """I6, §14: locally nobody sees that."""
    bench = Bench(one_long_step, profile=profile)
    bench.engine.create("w", "i", b"{}", START)
    assert bench.status == shown
    bench.settle()
    assert bench.status == "running"


async def retries_once(step):
    await step.do("s", failing(), {"retries": {"limit": 1, "delay": 1000}})


async def waits_for_go(step):
    return (await step.wait("w", "go", 5000)).payload.decode()


@pytest.mark.parametrize("code", [sleeps_a_minute, retries_once, waits_for_go])
@pytest.mark.parametrize(
    ("profile", "shown"), [("production", "waiting"), ("miniflare", "running")]
)
def test_an_instance_that_only_waits_is_waiting(code, profile, shown):
    """I6, §14."""
    bench = Bench(code, profile=profile)
    bench.create()
    assert bench.status == shown


def test_an_instance_with_an_attempt_in_flight_is_running():
    """I6: whatever else it waits for."""

    async def run(step):
        await step.together(sleeps_a_minute(step), one_long_step(step))

    bench = Bench(run)
    bench.create()
    assert bench.status == "running"
    bench.to(10)
    assert bench.status == "waiting"


# Concurrency.


def test_instances_beyond_the_limit_queue_in_order_of_creation():
    """I6: `queued`."""
    bench = Bench(one_long_step, concurrency=2)
    for id in "abcd":
        bench.create(id)
    assert statuses(bench) == ["running", "running", "queued", "queued"]
    bench.to(15)
    assert statuses(bench) == ["complete", "complete", "running", "running"]
    bench.to(100)
    assert bench.runs == [(0, "a"), (0, "b"), (10, "c"), (10, "d")]
    assert bench.ended == [(10, "a"), (10, "b"), (20, "c"), (20, "d")]


def test_an_instance_that_waits_lets_another_one_go():
    """I6: only running instances count; one that wakes up queues."""

    async def run(step):
        await step.sleep("n", 5000)
        await step.do("s", lasts(10))

    bench = Bench(run, concurrency=1)
    bench.create("a")
    bench.create("b")
    assert statuses(bench) == ["waiting", "waiting"]
    bench.to(6)
    assert statuses(bench) == ["running", "queued"]
    bench.to(100)
    assert bench.calls == [(5, "s-1", 1), (15, "s-1", 1)]
    assert bench.ended == [(15, "a"), (25, "b")]


def test_steps_and_events_of_a_queued_instance_are_not_lost():
    """A wait that is served while its instance queues is not served twice."""

    async def run(step):
        event = await step.wait("w", "go")
        await step.do("s", lasts(10))
        return event.payload.decode()

    bench = Bench(run, concurrency=1)
    bench.create("a")
    bench.create("b")
    bench.send("go", 1, "a")
    bench.send("go", 2, "b")
    assert statuses(bench) == ["running", "queued"]
    bench.to(50)
    assert [view.output for view in bench.engine.instances("w")] == [b'"1"', b'"2"']


@pytest.mark.parametrize("verb", ["terminate", "pause", "delete"])
def test_who_leaves_makes_room(verb):
    """I6."""
    bench = Bench(sleeps_a_minute, concurrency=1)
    bench.code = one_long_step
    bench.create("a")
    bench.create("b")
    bench.verb(verb, "a")
    if verb == "pause":
        bench.to(10)
    assert bench.engine.status("w", "b").status.value == "running"


def test_a_queued_instance_can_be_terminated_and_leaves_the_queue():
    """I16."""
    bench = Bench(one_long_step, concurrency=1)
    for id in "abc":
        bench.create(id)
    bench.verb("pause", "b")  # nothing happens (I9)
    bench.verb("terminate", "b")
    bench.to(100)
    assert bench.runs == [(0, "a"), (10, "c")]
    assert bench.engine.status("w", "b").status.value == "terminated"
    assert bench.engine.status("w", "b").started is None


def test_a_resumed_instance_queues_again():
    """I13: `queued`, then `running`."""
    bench = Bench(one_long_step, concurrency=1)
    bench.create("a")
    bench.verb("pause", "a")
    bench.to(10)
    bench.create("b")
    bench.verb("resume", "a")
    assert statuses(bench) == ["queued", "running"]
    bench.to(20)
    assert statuses(bench) == ["complete", "complete"]
    assert bench.calls == [(0, "s-1", 1), (10, "s-1", 1)]


def test_a_higher_limit_lets_the_queue_go():
    """Settings may change at any time."""
    bench = Bench(one_long_step, concurrency=1)
    for id in "abc":
        bench.create(id)
    bench.engine.configure([WorkflowRules("w", concurrency=2)])
    bench.settle()
    assert statuses(bench) == ["running", "running", "queued"]
    bench.engine.configure([WorkflowRules("w")])
    bench.settle()
    assert statuses(bench) == ["running"] * 3


def test_locally_there_is_no_limit():
    """§14."""
    bench = Bench(one_long_step, profile="miniflare", concurrency=1)
    bench.create("a")
    bench.create("b")
    assert statuses(bench) == ["running", "running"]


def test_an_instance_of_a_workflow_that_is_gone_waits_for_its_return():
    """A reload may drop a Workflow and bring it back."""
    bench = Bench(one_long_step)
    bench.engine.configure([])
    with pytest.raises(KeyError, match="there is no Workflow 'w'; there are: none"):
        bench.create()
    bench.engine.configure([bench.rules])
    bench.create()
    bench.engine.configure([])
    bench.lose()
    assert len(bench.runs) == 1
    bench.engine.configure([bench.rules])
    bench.settle()
    assert len(bench.runs) == 2


# Instances in and out.


def test_a_batch_with_a_bad_id_creates_nothing():
    """B7."""
    bench = Bench(one_long_step)
    items = [NewInstance("ok", b"{}"), NewInstance("not ok", b"{}")]
    create = bench.engine.create_batch
    assert refusal(lambda: create("w", items, START)) == "Workflow instance has invalid id"
    assert bench.engine.instances("w") == []


def test_the_object_form_tells_of_each_item():
    """B9, wf_mf5_create_batch_forms."""
    bench = Bench(one_long_step)
    bench.create("old")
    items = [NewInstance(id, b"{}") for id in ("old", "n1", "n1", "n2", "old")]
    result = bench.engine.create_each("w", items, START)
    assert result.done == ["n1", "n2"]
    assert [(e.index, e.id, e.code, e.message) for e in result.errors] == [
        (0, "old", 10405, "workflows.api.error.instance.already_exists"),
        (2, "n1", 10415, "workflows.api.error.instance.duplicate_in_batch"),
        (4, "old", 10415, "workflows.api.error.instance.duplicate_in_batch"),
    ]
    reserved = [NewInstance("fine", b"{}"), NewInstance("batch", b"{}")]
    call = bench.engine.create_each
    assert refusal(lambda: call("w", reserved, START)).startswith("(instance.invalid_id)")
    assert refusal(lambda: call("w", [], START)) == "(body) Batch size exceeds maximum allowed"


def test_a_batch_of_deletions_has_one_entry_for_each_position():
    """B11, wf_mf5_delete_batch."""
    bench = Bench(one_long_step)
    bench.create("a")
    result = bench.engine.delete_batch("w", ["a", "nope", "a", "b c"], START)
    bench.settle()
    assert result.done == ["a", "a"]
    assert [(e.index, e.id, e.code) for e in result.errors] == [
        (1, "nope", 10400),
        (3, "b c", 10400),
    ]
    assert {e.message for e in result.errors} == {"workflows.api.error.instance.not_found"}
    assert bench.engine.instances("w") == []


def test_a_cron_run_creates_an_instance_that_is_named_after_it():
    """B11, B14."""
    bench = Bench(one_long_step)
    schedule = Schedule("*/30 * * * *", START)
    id = "*/30 * * * *-1786001400000"
    bench.create(id, trigger="cron", schedule=schedule)
    assert bench.running[id].execution.schedule == schedule
    row = bench.engine.history("w", id)[0]
    assert row.data == {"params": b"{}", "trigger": {"source": 3}}


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_production_limits_what_goes_in(profile):
    """B15, I25."""
    bench = Bench(waits_for_go, profile=profile, max_payload=10)
    calls = [
        lambda: bench.engine.create("w", "p", b"x" * 11, START),
        lambda: bench.engine.send_event("w", "i", "go", b"x" * 11, START),
        lambda: bench.engine.create_batch("w", [NewInstance("q", b"x" * 11)], START),
    ]
    bench.engine.create("w", "i", b"x" * 10, START)
    bench.engine.send_event("w", "i", "go", b"x" * 10, START)
    for call in calls:
        if profile == "production":
            assert refusal(call).endswith("are too large. Maximum allowed size is 1MiB.") or (
                refusal(call) == "Event payload is too large. Maximum allowed size is 1MiB."
            )
        else:
            call()


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("pause", {}),
        ("resume", {}),
        ("terminate", {}),
        ("restart", {}),
        ("delete", {}),
        ("steps", None),
        ("history", None),
        ("status", None),
    ],
)
@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ("production", "(instance.not_found) Instance does not exist"),
        ("miniflare", "instance.not_found"),
    ],
)
def test_a_verb_on_an_instance_that_is_gone(verb, arguments, profile, text):
    """I8, get_unknown."""
    bench = Bench(one_long_step, profile=profile)
    now = () if arguments is None else (START,)
    assert refusal(lambda: getattr(bench.engine, verb)("w", "nope", *now)) == text


def test_retention_counts_from_the_end_and_by_outcome():
    """B5, B12."""
    rules = Retention(success=100 * SECOND, error=50 * SECOND)
    bench = Bench(one_long_step, retention=rules)
    bench.create("ok")
    bench.create("longer", retention=Retention(success=200 * SECOND))
    bench.create("cut")
    bench.verb("terminate", "cut")
    bench.to(10)
    assert "already_exists" in refusal(lambda: bench.create("ok"))
    bench.to(49.9)
    assert len(bench.engine.instances("w")) == 3
    bench.to(50)
    assert [view.id for view in bench.engine.instances("w")] == ["ok", "longer"]
    bench.to(109.9)
    assert len(bench.engine.instances("w")) == 2
    bench.to(110)
    assert [view.id for view in bench.engine.instances("w")] == ["longer"]
    bench.create("ok")
    bench.to(210)
    assert [view.id for view in bench.engine.instances("w")] == ["ok"]


def test_retention_tells_who_is_gone_and_a_restart_ends_it():
    """B12."""
    bench = Bench(one_long_step, retention=Retention(success=5 * SECOND))
    bench.create()
    bench.to(12)
    bench.verb("restart")
    bench.to(26.9)
    assert bench.status == "complete"
    bench.engine.advance(START + 27 * SECOND)
    assert bench.engine.take_notices() == [Stop("w", "i"), Gone("w", "i")]
    assert bench.engine.wake_at() is None


def test_locally_nothing_is_forgotten():
    """B12."""
    bench = Bench(one_long_step, profile="miniflare", retention=Retention(success=1, error=1))
    bench.create()
    bench.to(1000)
    assert bench.status == "complete"


# Notices and executions that are out of date.


def test_a_run_notice_may_be_out_of_date():
    """I16: terminated before anybody looked."""
    bench = Bench(one_long_step)
    bench.engine.create("w", "i", b"{}", START)
    bench.engine.terminate("w", "i", START)
    assert bench.engine.begin("w", "i", START) is None
    bench.engine.delete("w", "i", START)
    assert bench.engine.begin("w", "i", START) is None


def test_a_stopped_execution_has_no_say():
    """I12, I19: results of a cut off body are nobody's."""
    bench = Bench(one_long_step)
    bench.create()
    bench.engine.take_records()
    old = bench.running["i"].execution
    bench.engine.restart("w", "i", START)
    assert bench.engine.take_notices() == [Stop("w", "i"), Run("w", "i")]
    new = bench.engine.begin("w", "i", START)
    key = new.do("s")
    attempt = bench.engine.decide(new, key, START)
    assert isinstance(attempt, Attempt)
    before = bench.engine.snapshot()
    bench.engine.attempt_succeeded(old, key, 1, b"1", START)
    bench.engine.attempt_failed(old, key, 1, ErrorInfo("E", "m"), START)
    bench.engine.unserialisable(old, key, 1, START)
    bench.engine.finished(old, b"1", START)
    bench.engine.raised(old, ErrorInfo("E", "m"), START)
    bench.engine.cut_short(old, key, START)
    assert bench.engine.decide(old, key, START) is BLOCKED
    assert bench.engine.next_rollback(old, START) is None
    assert bench.engine.snapshot() == before
    assert (old.number, new.number) == (1, 2)


def test_asking_twice_for_a_step_in_flight_starts_nothing():
    """A shell may ask whenever it likes."""
    bench = Bench(one_long_step)
    bench.create()
    bench.settle()
    execution = bench.running["i"].execution
    assert bench.engine.decide(execution, "do:s-1", START) is PARKED
    assert bench.steps["s-1"].attempts == 1
    bench.to(20)
    assert bench.status == "complete"


def test_the_shell_can_cut_short_what_waits():
    """V2, and the fault `timeout` of a wait: the declared time is in the text."""

    async def run(step):
        await step.sleep("n", "1 day")
        try:
            await step.wait("w", "go", "2 hours")
        except StepError as error:
            await step.do("s", failing(), {"retries": {"limit": 1, "delay": "1 day"}})
            return error.info.message

    bench = Bench(run)
    bench.create()

    def cut(key):
        bench.engine.cut_short(bench.running["i"].execution, key, bench.instant)
        bench.settle()

    bench.to(1)
    cut("sleep:n-1")
    bench.to(2)
    cut("waitForEvent:w-1")
    assert bench.times("s-1") == [2]
    bench.to(3)
    cut("do:s-1")
    assert bench.times("s-1") == [2, 3]
    cut("do:s-1")
    assert bench.status == "errored"
    times = [(row.event, (row.at - START) // SECOND) for row in bench.history if row.event < 17]
    assert (9, 1) in times
    assert (16, 2) in times
    wait = next(row for row in bench.history if row.event == 16)
    assert wait.data == {
        "name": "WorkflowTimeoutError",
        "message": "Execution timed out after 7200000ms",
    }
    assert bench.engine.wake_at() is None


def test_a_given_delay_overrides_the_settings():
    """V2: retry delays can be switched off."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    key = execution.do("s")
    assert engine.decide(execution, key, START).number == 1
    engine.attempt_failed(execution, key, 1, ErrorInfo("E", "m"), START, delay=0)
    assert engine.decide(execution, key, START).number == 2
    engine.attempt_failed(execution, key, 2, ErrorInfo("E", "m"), START, retryable=False)
    assert engine.decide(execution, key, START) == Failed(ErrorInfo("E", "m"))
    assert [row.data.get("retryDelayMs") for row in bench.history if row.event == 12] == [0, None]


def test_a_delay_function_is_asked_after_a_time_out_too():
    """R3, R4: meanwhile a late result does not count."""
    asked = []

    def delay(attempt, error):
        asked.append(error.message)
        return 3000

    config = {"timeout": 1000, "retries": {"limit": 1, "delay": delay, "backoff": "constant"}}

    async def run(step):
        await step.do("s", lasts(HANGS), config)

    bench = Bench(run)
    bench.create()
    bench.to(100)
    assert asked == ["Execution timed out after 1000ms"]
    assert bench.times("s-1") == [0, 4]
    assert bench.ended == [(5, "i")]


def test_while_a_delay_function_is_asked_the_attempt_is_in_flight():
    """R3, I10: a pause waits for it, a late success is ignored."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    key = execution.do("s", {"retries": {"limit": 1, "delay": print}})
    engine.decide(execution, key, START)
    error = ErrorInfo("E", "m")
    engine.attempt_failed(execution, key, 1, error, START)
    assert engine.take_notices()[-1] == WantDelay("w", "i", key, 1, error)
    engine.attempt_succeeded(execution, key, 1, b"late", START)
    engine.pause("w", "i", START)
    assert bench.status == "waitingForPause"
    engine.attempt_failed(execution, key, 1, error, START, delay="5 seconds")
    assert bench.status == "paused"
    assert bench.steps["s-1"].state == "waiting"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (DelayFailed("timeout"), "did not return within 5 seconds"),
        (-1, "returned an invalid delay value"),
        ("soon", "returned an invalid delay value"),
    ],
)
def test_a_bad_delay_ends_the_step(given, text):
    """R3."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    key = execution.do("s", {"retries": {"limit": 9, "delay": print}})
    engine.decide(execution, key, START)
    engine.attempt_failed(execution, key, 1, ErrorInfo("E", "m"), START, delay=given)
    found = engine.decide(execution, key, START)
    assert isinstance(found, Failed)
    assert found.error.name == "NonRetryableDelayError"
    assert text in found.error.message
    assert [row.data for row in bench.history if row.event == 12] == [
        {"attempt": 1, "error": {"name": "E", "message": "m"}}
    ]


# Events.


def test_waits_for_one_type_are_served_in_order_of_their_start():
    """D12: a wait that timed out is out of the line."""
    got = []

    async def one(step, name, timeout):
        try:
            event = await step.wait(name, "go", timeout)
            got.append((name, event.payload.decode()))
        except StepError:
            got.append((name, "timed out"))

    async def run(step):
        await step.together(one(step, "a", 1000), one(step, "b", 9000), one(step, "c", 9000))

    bench = Bench(run)
    bench.create()
    bench.to(2)
    bench.send("go", 1)
    bench.send("go", 2)
    assert got == [("a", "timed out"), ("b", "1"), ("c", "2")]
    assert bench.status == "complete"


def test_an_event_that_comes_too_late_is_kept():
    """event_after_timeout."""

    async def run(step):
        try:
            await step.wait("first", "go", 1000)
        except StepError:
            await step.sleep("n", 5000)
        return (await step.wait("second", "go")).payload.decode()

    bench = Bench(run)
    bench.create()
    bench.to(3)
    bench.send("go", "late")
    bench.to(10)
    assert bench.output == '"late"'


def test_an_event_without_payload_has_none():
    """I25."""
    seen = []

    async def run(step):
        seen.append(await step.wait("w", "go"))

    bench = Bench(run)
    bench.create()
    bench.engine.send_event("w", "i", "go", None, START)
    bench.settle()
    assert seen == [Event("go", None, START)]


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_a_consumed_event_is_not_delivered_again(profile):
    """D11, D14: the local bug is in no recording, so it is not copied."""

    async def run(step):
        await step.wait("one", "go")
        await step.sleep("n", 1000)
        await step.wait("two", "go", 5000)

    bench = Bench(run, profile=profile)
    bench.create()
    bench.send("go", 1)
    bench.verb("pause")
    bench.verb("resume")
    bench.to(100)
    assert bench.ended == [(6, "i")]
    assert bench.status == "errored"


# Pause.


def test_a_retry_that_comes_due_in_a_pause_waits_for_its_end():
    """I10, I11: no new attempt starts while another one is waited for."""

    async def one(step, name, body, config=None):
        await step.do(name, body, config)

    async def run(step):
        config = {"retries": {"limit": 1, "delay": 5000}}
        await step.together(one(step, "a", lasts(30)), one(step, "b", failing(), config))

    bench = Bench(run)
    bench.create()
    bench.to(2)
    bench.verb("pause")
    bench.to(20)
    assert bench.times("b-1") == [0]
    assert bench.status == "waitingForPause"
    bench.verb("resume")
    assert bench.times("b-1") == [0, 20]


def test_a_sleep_that_ends_in_a_pause_is_over_after_it():
    """I10: nothing goes on before the pause is complete or cancelled."""
    woke = []

    async def sleeper(step):
        await step.sleep("n", 5000)
        woke.append(step.bench.now)

    async def run(step):
        await step.together(sleeper(step), one_long_step(step))

    bench = Bench(run)
    bench.create()
    bench.verb("pause")
    bench.to(7)
    assert woke == []
    bench.verb("resume")
    assert woke == [7]
    bench.to(20)
    assert bench.ended == [(10, "i")]


def test_a_second_pause_changes_nothing():
    """I9, pause on paused."""
    bench = Bench(sleeps_a_minute)
    bench.create()
    bench.verb("pause")
    before = bench.engine.snapshot()
    bench.to(30)
    bench.verb("pause")
    assert bench.engine.snapshot() == before


def test_run_may_come_to_its_end_while_a_pause_is_waited_for():
    """I10: an error is not held back, the attempt in flight is stored (scenario 52)."""

    async def one(step, name, body):
        await step.do(name, body, {"retries": {"limit": 0, "delay": 0}})

    async def run(step):
        await step.together(
            one(step, "a", lasts(30, "A")), one(step, "b", lasts(5, RuntimeError("b")))
        )

    bench = Bench(run)
    bench.create()
    bench.verb("pause")
    bench.to(40)
    assert bench.ended == [(5, "i")]
    assert (bench.status, bench.steps["a-1"].output) == ("errored", b'"A"')


def test_locally_a_caught_non_retryable_error_spoils_pauses():
    """C5, a bug that wf_pause_after_nonretryable_late shows."""

    async def run(step):
        try:
            await step.do("f", failing("NonRetryableError: nr"))
        except StepError:
            await step.sleep("z", 1500)

    outcomes = {}
    for profile in ("production", "miniflare"):
        bench = Bench(run, profile=profile)
        bench.create()
        bench.to(0.4)
        bench.verb("pause")
        bench.to(2.4)
        waited = bench.status
        bench.verb("resume")
        bench.to(100)
        outcomes[profile] = (waited, bench.status)
    assert outcomes == {
        "production": ("paused", "complete"),
        "miniflare": ("waitingForPause", "running"),
    }


# Restart.


def test_restart_cuts_off_what_runs():
    """I19, wf_restart_running."""
    bench = Bench(one_long_step)
    bench.create()
    bench.to(3)
    bench.verb("restart")
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (3, "s-1", 1)]
    assert bench.ended == [(13, "i")]


def test_restart_wipes_buffered_events_and_timers():
    """I19, I21."""

    async def run(step):
        await step.sleep("n", 5000)
        await step.wait("w", "go", 5000)

    bench = Bench(run)
    bench.create()
    bench.send("go")
    bench.to(2)
    bench.verb("restart")
    bench.to(100)
    assert bench.ended == [(12, "i")]
    assert bench.status == "errored"


def test_restart_from_a_step_lets_parallel_ones_go_on_where_they_were():
    """I21: what is kept and unfinished goes on; that is a choice of ours."""

    async def sleeper(step):
        await step.sleep("n", 20_000)

    async def then(step):
        await step.do("a", gives(1))
        body = failing() if step.execution.number == 1 else gives(1)
        await step.do("b", body, {"retries": {"limit": 0, "delay": 0}})

    async def run(step):
        await step.together(sleeper(step), then(step))

    bench = Bench(run)
    bench.create()
    assert bench.status == "errored"
    bench.to(8)
    bench.verb("restart", name="b")
    assert bench.steps["n-1"].due == START + 28 * SECOND
    bench.to(100)
    assert (bench.status, bench.ended) == ("complete", [(0, "i"), (28, "i")])


def test_restart_from_a_step_does_not_charge_what_it_cuts_off():
    """I21: the kept step's attempt is repeated; a choice of ours."""

    def body(attempt):
        return PENDING if attempt.number == 1 else failing()(attempt)

    async def other(step):
        await step.do("b", gives(1))

    async def kept(step):
        config = {"retries": {"limit": 1, "delay": 1000, "backoff": "constant"}}
        await step.do("a", body, config)

    async def run(step):
        await step.together(kept(step), other(step))

    bench = Bench(run)
    bench.create()
    bench.to(3)
    bench.verb("restart", name="b")
    bench.to(100)
    assert bench.times("a-1") == [0, 3, 4]
    assert bench.steps["a-1"].attempts == 3


def test_restart_works_on_terminated_and_paused_instances():
    """I19, wf_restart_terminated."""
    for verb in ("terminate", "pause"):
        bench = Bench(sleeps_a_minute)
        bench.create()
        bench.to(10)
        bench.verb(verb)
        bench.verb("restart")
        assert bench.status == "waiting"
        bench.to(100)
        assert bench.ended[-1] == (70, "i")


# History and views.


def digest(text):
    return sha1(text.encode()).hexdigest()


def test_a_whole_history():
    """§11, C1 to C3, L4."""

    async def run(step):
        config = {"retries": {"limit": 1, "delay": 0.5}, "timeout": "1 minute"}
        await step.do("s", gives(1), config, rollback=print)
        await step.sleep("n", "1 second")
        await step.wait("w", "go")
        return 7

    bench = Bench(run, version="v1")
    bench.create()
    bench.to(1)
    bench.send("go", "x")
    rows = bench.history
    assert [row.id for row in rows] == list(range(1, 12))
    assert [row.event.name for row in rows][:3] == [
        "WORKFLOW_QUEUED",
        "WORKFLOW_START",
        "STEP_START",
    ]
    assert [row.at for row in rows] == [START] * 7 + [START + SECOND] * 4
    config = {
        "retries": {"limit": 1, "delay": 0.5, "backoff": "exponential"},
        "timeout": "1 minute",
    }
    s, n, w = f"{digest('s')}-1", f"{digest('n1000')}-1", f"{digest('w-1')}-1"
    expected = [
        (None, None, {"params": b"{}", "trigger": {"source": 1}, "versionId": "v1"}),
        (None, None, {}),
        (s, "s-1", {"config": config, "hasRollback": True}),
        (s, "s-1", {"attempt": 1}),
        (s, "s-1", {"attempt": 1}),
        (s, "s-1", {"result": b"1", "hasRollback": True}),
        (n, "n-1", {"durationMs": 1000}),
        (n, "n-1", {}),
        (w, "w-1", {"event": "go"}),
        (w, "w-1", {"timestamp": START + SECOND, "payload": b'"x"', "type": "go"}),
        (None, None, {"result": b"7"}),
    ]
    assert [(row.group, row.target, row.data) for row in rows] == expected


def test_a_fraction_of_a_millisecond_is_shown():
    """R6."""

    async def run(step):
        await step.do("s", failing(), {"retries": {"limit": 1, "delay": 0.5}})

    bench = Bench(run)
    bench.create()
    bench.to(1)
    assert [row.data.get("retryDelayMs") for row in bench.history if row.event == 12] == [0.5, None]


def test_the_ends_have_their_rows():
    """§11, L4."""

    async def run(step):
        raise ValueError("no")

    bench = Bench(run)
    bench.create()
    assert bench.history[-1].data == {"error": {"name": "ValueError", "message": "no"}}
    bench = Bench(sleeps_a_minute)
    bench.create()
    bench.verb("terminate")
    assert bench.history[-1].event is InstanceEvent.WORKFLOW_TERMINATED
    assert bench.history[-1].data == {"trigger": {"source": 0}}


def test_a_step_as_it_is_seen():
    """api.md, `steps`."""

    async def run(step):
        await step.do("s", failing(), {"retries": {"limit": 1, "delay": 5000}})

    bench = Bench(run)
    bench.create()
    step = bench.steps["s-1"]
    assert (step.kind, step.state, step.attempts) == ("do", "waiting", 1)
    assert (step.started, step.ended, step.due) == (START, None, START + 5 * SECOND)
    bench.to(5)
    step = bench.steps["s-1"]
    assert (step.state, step.attempts, step.ended) == ("errored", 2, START + 5 * SECOND)
    assert (step.error, step.output, step.due) == (ErrorInfo("RuntimeError", "boom"), None, None)


def test_replayed_results_say_so():
    """C4; locally an error that was stored has lost its class."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    key = execution.do("s")
    engine.decide(execution, key, START)
    engine.attempt_succeeded(execution, key, 1, b"1", START)
    assert not engine.decide(execution, key, START).replayed
    engine.lost("w", "i", START)
    again = engine.begin("w", "i", START)
    assert again.do("s") == key
    assert engine.decide(again, key, START).replayed


def test_the_settings_of_the_first_execution_stay():
    """S8."""
    limits = [1, 9]

    async def run(step):
        await step.do("s", failing(), {"retries": {"limit": limits.pop(0), "delay": 1000}})

    bench = Bench(run)
    bench.create()
    bench.lose()
    bench.to(100)
    assert bench.times("s-1") == [0, 1]


def test_nested_steps_are_ordinary_steps():
    """C8, wf_nested_inner_fails: the outer one's retry asks for a new inner one."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    outer = execution.do("outer")
    engine.decide(execution, outer, START)
    inner = [execution.do("inner") for _ in range(2)]
    assert engine.decide(execution, inner[0], START).count == 1
    assert engine.decide(execution, inner[1], START).count == 2
    assert bench.status == "running"


def test_ready_comes_for_each_thing_that_is_waited_for():
    """The order is that of the steps."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    keys = [execution.sleep(name, 1000) for name in "ba"]
    assert [engine.decide(execution, key, START) for key in keys] == [PARKED, PARKED]
    engine.take_notices()
    assert engine.wake_at() == START + SECOND
    engine.advance(START + SECOND)
    assert engine.take_notices() == [Ready("w", "i", key) for key in keys]
    assert engine.wake_at() is None


def test_what_is_due_at_one_instant_comes_in_order_of_start():
    """Whatever kind it is."""
    bench = Bench(one_long_step)
    engine = bench.engine
    engine.create("w", "i", b"{}", START)
    execution = engine.begin("w", "i", START)
    keys = [execution.wait("w", "go", 1000), execution.sleep("n", 1000)]
    keys.append(execution.do("s", {"timeout": 1000, "retries": {"limit": 0, "delay": 0}}))
    for key in keys:
        engine.decide(execution, key, START)
    engine.take_notices()
    engine.advance(START + SECOND)
    assert engine.take_notices() == [Ready("w", "i", key) for key in keys]
