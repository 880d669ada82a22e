"""Losses, restarts of the platform, and what is stored (X1 to X8, and records)."""

from __future__ import annotations

import pytest
from engine_bench import PENDING, START, Bench, failing, gives, lasts

from emulator.errors import StateError
from emulator.store.records import decode, encode
from emulator.workflows.engine import Engine
from emulator.workflows.model import SECOND, ErrorInfo, Retention, Run, WorkflowRules
from emulator.workflows.state import _TRANSITIONS


async def sleeps_a_minute(step):
    await step.sleep("n", "1 minute")


async def one_long_step(step):
    return await step.do("s", lasts(10, "done"))


NO_RETRY = {"retries": {"limit": 0, "delay": 1}}


def test_run_is_called_again_at_the_same_instant():
    """X1, api.md."""
    bench = Bench(sleeps_a_minute)
    bench.create()
    bench.to(20)
    bench.lose(settle=False)
    assert bench.engine.take_notices() == [Run("w", "i")]
    assert bench.engine.lost("w", "i", bench.instant) is None
    bench.settle()
    assert bench.runs == [(0, "i"), (20, "i")]
    bench.to(100)
    assert bench.ended == [(60, "i")]
    assert bench.trace == [0, 1, 8, 9, 2]


def test_a_lost_attempt_without_retries_fails_the_step():
    """X3: the step's code never failed. The error can be caught."""

    async def run(step):
        try:
            await step.do("s", lasts(10), NO_RETRY)
        except Exception as error:
            return str(error)

    bench = Bench(run)
    bench.create()
    bench.to(4)
    bench.lose()
    assert bench.output == "Attempt failed due to internal workflows error"
    assert bench.ended == [(4, "i")]
    assert bench.steps["s-1"].attempts == 1


def test_a_lost_attempt_counts_for_the_backoff():
    """X2, R1: the next failure is that of attempt 2."""

    def body(attempt):
        return PENDING if attempt.number == 1 else failing()(attempt)

    async def run(step):
        await step.do("s", body, {"retries": {"limit": 2, "delay": 1000}})

    bench = Bench(run)
    bench.create()
    bench.to(5)
    bench.lose()
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (5, "s-1", 2), (7, "s-1", 3)]
    assert bench.ended == [(7, "i")]


@pytest.mark.parametrize(("profile", "attempts"), [("production", 3), ("miniflare", 4)])
def test_production_charges_what_is_lost(profile, attempts):
    """X3, api.md §8."""

    def body(attempt):
        return PENDING if attempt.number == 1 else failing()(attempt)

    async def run(step):
        await step.do("s", body, {"retries": {"limit": 2, "delay": 0}})

    bench = Bench(run, profile=profile)
    bench.create()
    bench.lose()
    bench.to(1)
    assert len(bench.calls) == attempts
    assert bench.status == "errored"


def test_the_rest_of_a_retry_delay_is_waited_for():
    """X4: also where a function gave it."""
    delays = [10_000, lambda attempt, error: 10_000]
    for delay in delays:

        async def run(step, delay=delay):
            await step.do("s", failing(), {"retries": {"limit": 1, "delay": delay}})

        bench = Bench(run)
        bench.create()
        bench.to(4)
        bench.lose()
        bench.to(100)
        assert bench.times("s-1") == [0, 10]


def test_a_wait_goes_on_over_a_loss():
    """X5: only what remains; an event reaches it all the same."""

    async def run(step):
        return (await step.wait("w", "go", 60_000)).payload.decode()

    bench = Bench(run)
    bench.create()
    bench.to(20)
    bench.lose()
    bench.to(30)
    bench.lose(settle=False)
    bench.send("go", 1)
    assert bench.output == "1"
    bench = Bench(run)
    bench.create()
    bench.to(20)
    bench.lose()
    bench.to(100)
    assert bench.ended == [(60, "i")]


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_a_loss_completes_a_pause(profile):
    """X7."""
    bench = Bench(one_long_step, profile=profile)
    bench.create()
    bench.to(4)
    bench.verb("pause")
    bench.lose()
    assert (bench.status, len(bench.runs)) == ("paused", 1)
    bench.to(50)
    bench.verb("resume")
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (50, "s-1", 2)]


@pytest.mark.parametrize("verb", ["pause", "terminate"])
def test_what_does_not_run_is_not_run_again(verb):
    """X8."""
    bench = Bench(sleeps_a_minute)
    bench.create()
    bench.verb(verb)
    before = bench.engine.snapshot()
    bench.lose()
    bench.restore()
    assert bench.engine.snapshot() == before
    assert len(bench.runs) == 1


def test_an_instance_that_nobody_began_is_run_once():
    """The loss came before `begin`."""
    bench = Bench(one_long_step)
    bench.engine.create("w", "i", b"{}", START)
    bench.engine.lost("w", "i", START)
    bench.settle()
    assert bench.runs == [(0, "i")]


def test_an_eviction_without_an_attempt_in_flight_loses_none():
    """X6."""
    bench = Bench(sleeps_a_minute)
    bench.create()
    bench.running.pop("i").dead = True
    bench.engine.evicted("w", "i", bench.instant)
    bench.to(100)
    assert bench.runs == [(0, "i"), (0, "i")]
    assert bench.trace == [0, 1, 8, 9, 2]


def test_what_finished_is_over_though_an_attempt_is_in_flight():
    """X8, C9: the attempt that nobody waits for is gone with its isolate."""

    async def run(step):
        step.do("dangling", lasts(10))
        return "returned"

    bench = Bench(run)
    bench.create()
    assert bench.status == "complete"
    bench.to(5)
    bench.lose()
    bench.restore()
    bench.to(100)
    assert len(bench.calls) == 1
    assert bench.steps["dangling-1"].state == "running"


def test_what_dangles_is_not_tried_again():
    """C9; that nothing new starts after the end is a choice of ours."""

    async def run(step):
        step.do("dangling", lasts(10, RuntimeError("boom")))
        return "returned"

    bench = Bench(run)
    bench.create()
    bench.to(100)
    assert len(bench.calls) == 1
    step = bench.steps["dangling-1"]
    assert (step.state, step.error) == ("errored", ErrorInfo("RuntimeError", "boom"))
    assert bench.engine.wake_at() is None


def test_what_dangles_is_stored_when_it_ends():
    """C9, wf_step_not_awaited."""

    async def run(step):
        step.do("dangling", lasts(10, 1))
        return "returned"

    bench = Bench(run)
    bench.create()
    bench.to(20)
    assert (bench.ended, bench.steps["dangling-1"].output) == ([(0, "i")], b"1")


# The platform itself goes down.


def test_production_goes_on_by_itself():
    """X5, §14."""
    bench = Bench(one_long_step)
    bench.create()
    bench.to(4)
    bench.restore()
    bench.to(100)
    assert bench.calls == [(0, "s-1", 1), (4, "s-1", 2)]
    assert bench.ended == [(14, "i")]


@pytest.mark.parametrize("touch", ["send", "resume", "pause", "terminate", "restart"])
def test_locally_an_instance_waits_until_it_is_touched(touch):
    """X5, wf_durability_restart: status `running`, and nothing happens."""
    bench = Bench(sleeps_a_minute, profile="miniflare")
    bench.create()
    bench.to(20)
    bench.restore()
    bench.to(100)
    assert (bench.status, bench.ended, len(bench.runs)) == ("running", [], 1)
    assert bench.steps["n-1"].state == "waiting"
    if touch == "send":
        bench.send("nudge")
    else:
        bench.verb(touch)
    expected = {"send": "complete", "resume": "complete", "pause": "paused"}
    assert bench.status == {**expected, "terminate": "terminated", "restart": "running"}[touch]
    bench.to(300)
    ended = {"pause": [], "restart": [(160, "i")]}
    assert bench.ended == ended.get(touch, [(100, "i")])


def test_slots_and_queues_are_found_again():
    """What had an attempt in flight comes first, then the queue in order of creation."""
    bench = Bench(one_long_step, concurrency=1)
    for id in "abc":
        bench.create(id)
    bench.to(4)
    bench.restore()
    bench.to(100)
    assert bench.runs == [(0, "a"), (4, "a"), (14, "b"), (24, "c")]
    assert bench.ended == [(14, "a"), (24, "b"), (34, "c")]


def test_a_retry_that_queued_for_a_slot_queues_again():
    """After a restart too no more run than may."""

    async def run(step):
        if step.execution.id == "b":
            await step.do("s", flaky, {"retries": {"limit": 1, "delay": 5000}})
        else:
            await step.do("long", lasts(100))

    def flaky(attempt):
        if attempt.number == 1:
            raise RuntimeError("once")

    bench = Bench(run, concurrency=1)
    bench.create("b")
    bench.create("a")
    bench.to(8)
    bench.restore()
    bench.to(300)
    assert bench.times("long-1") == [0, 8]
    assert bench.times("s-1") == [0, 108]
    assert bench.ended == [(108, "a"), (108, "b")]


def test_a_step_after_a_sleep_queues_again():
    """The same where the execution alone was lost."""

    async def run(step):
        if step.execution.id == "b":
            await step.sleep("n", 5000)
            await step.do("s", gives(1))
        else:
            await step.do("long", lasts(100))

    bench = Bench(run, concurrency=1)
    bench.create("b")
    bench.create("a")
    bench.to(6)
    assert bench.engine.status("w", "b").status.value == "queued"
    bench.lose("b")
    assert bench.engine.status("w", "b").status.value == "queued"
    bench.to(300)
    assert bench.times("s-1") == [100]
    assert bench.ended == [(100, "a"), (100, "b")]


def test_overdue_things_happen_at_once_and_in_order():
    """X5: the deadline passed meanwhile."""
    bench = Bench(sleeps_a_minute)
    for id in "ab":
        bench.create(id)
    bench.settle()
    bench.instant = START + 500 * SECOND
    bench.restore()
    assert bench.ended == [(500, "a"), (500, "b")]


# What is stored.


def eventful():
    """A life with events, a pause that was cancelled, retries, and a rollback that fails."""

    async def run(step):
        async def one(name, body, config=None):
            await step.do(name, body, config, rollback=lambda undo: 1 / 0)

        await step.do("kept", gives(1), {"sensitive": "output"}, rollback=print)
        await step.sleep("n", 1000)
        try:
            await step.wait("never", "go", 1000)
        except Exception:
            await step.wait("w", "go")
        config = {"retries": {"limit": 1, "delay": 1000, "backoff": "linear"}}
        await step.together(one("a", lasts(3), config), one("b", failing(), config))

    bench = Bench(run)
    bench.create()
    bench.to(2)
    bench.send("go", 1)
    bench.send("more", 2)
    bench.verb("pause")
    bench.to(4)
    bench.verb("resume")
    bench.to(5.5)
    bench.lose()
    bench.to(500)
    return bench


def undone():
    """A life that is restarted, loses attempts that are not charged, and is terminated."""

    async def run(step):
        await step.do("a", lasts(5, 1), rollback=lasts(5))
        await step.do("b", failing(), {"retries": {"limit": 1, "delay": 90_000}}, rollback=print)
        if not step.execution.rebuilding:
            await step.do("c", gives(3), rollback=print)

    bench = Bench(run, profile="miniflare")
    bench.create()
    bench.lose()
    bench.to(6)
    bench.verb("pause")
    bench.verb("resume")
    bench.engine.cut_short(bench.running["i"].execution, "do:b-1", bench.instant)
    bench.settle()
    bench.verb("restart", name="b")
    bench.verb("terminate", rollback=True)
    bench.lose()
    bench.to(100)
    return bench


def deleted():
    """A life of which nothing is left, beside one whose rollback has no handler."""

    async def run(step):
        await step.do("a", gives(1), rollback=print)
        if step.execution.rebuilding:
            raise RuntimeError("no way to the handler")
        await step.do("b", gives(1), rollback=print)
        await step.sleep("n", "1 day")

    bench = Bench(run)
    bench.create()
    bench.create("other")
    bench.verb("terminate", rollback=True)
    bench.verb("delete", "other")
    return bench


@pytest.mark.parametrize("live", [eventful, undone, deleted])
def test_records_and_snapshots_rebuild_everything(live):
    """Durability: at each point the same state, by either way."""
    bench = live()
    engine = Engine(bench.profile)
    for record in bench.records:
        engine.replay([decode(encode(list(record)), "a test")])
        restored = Engine(bench.profile)
        restored.restore(decode(encode(list(engine.snapshot())), "a test"))
        assert restored.snapshot() == engine.snapshot()
        assert restored.wake_at() == engine.wake_at()
    assert engine.snapshot() == bench.engine.snapshot()
    engine.configure([bench.rules])
    assert engine.history("w", "i") == bench.history
    assert engine.steps("w", "i") == list(bench.steps.values())
    assert engine.status("w", "i") == bench.view


def test_those_lives_have_records_of_every_kind():
    """Else the test above would prove little."""
    seen = {record[0] for live in (eventful, undone, deleted) for record in live().records}
    assert seen == set(_TRANSITIONS)


@pytest.mark.parametrize(
    "record",
    [[], ["nonsense"], ["begin", "w", "nobody", 5], ["wake", "w", "i"], ["undone", "w", "i", 5]],
)
def test_a_damaged_record_is_told(record):
    """StateError names the record."""
    good = ["create", "w", "i", 5, 1, b"{}", "binding", None, [None, None]]
    with pytest.raises(StateError, match=r"record 1 .* of the Workflows does not fit"):
        Engine().replay([good, record])


@pytest.mark.parametrize("snapshot", [[], [1], [1, 1, [["w"]]], [1, 1, 7], ["x", 1, []]])
def test_a_damaged_snapshot_is_told(snapshot):
    """StateError, whatever is wrong."""
    with pytest.raises(StateError, match="the snapshot of the Workflows does not fit"):
        Engine().restore(snapshot)


def test_a_newer_snapshot_is_told():
    """The way out is in the message."""
    with pytest.raises(StateError, match="has version 2, this release reads up to 1: use the"):
        Engine().restore([2, 1, []])


def test_records_do_not_depend_on_settings():
    """The settings may have changed since."""
    bench = eventful()
    engine = Engine("miniflare")
    engine.configure([WorkflowRules("other", step_limit=1)])
    engine.replay(bench.records)
    assert engine.snapshot() == bench.engine.snapshot()
    engine.configure([WorkflowRules("w", step_limit=1)])
    assert engine.status("w", "i") == bench.view


def test_many_sleepers_cost_no_scan():
    """One heap; what was cancelled does not pile up in it."""
    engine = Engine()
    engine.configure([WorkflowRules("w")])
    for number in range(300):
        engine.create("w", f"i{number}", b"", START)
        execution = engine.begin("w", f"i{number}", START)
        for step in range(5):
            key = execution.do(f"s{step}")
            engine.decide(execution, key, START)
            engine.attempt_succeeded(execution, key, 1, b"", START)
        key = execution.sleep("n", 1000 * (number + 1))
        engine.decide(execution, key, START)
    assert sum(map(len, engine._timers._heaps.values())) < 1000
    engine.take_notices()
    for number in range(300):
        assert engine.wake_at() == START + (number + 1) * SECOND
        engine.advance(START + (number + 1) * SECOND)
        assert len(engine.take_notices()) == 1
    assert engine.wake_at() is None


def test_what_is_due_is_told_by_its_kind():
    """`settle` passes sleeps and retries, never time-outs of waits nor retention."""

    async def run(step):
        async def sleeper():
            await step.sleep("n", 7000)

        async def waiter():
            await step.wait("w", "go", 3000)

        config = {"timeout": 5000}
        await step.together(sleeper(), waiter(), step_of(step, config))

    bench = Bench(run, retention=Retention(error=SECOND))
    bench.create()
    wake_at = bench.engine.wake_at
    dues = [wake_at(lane) for lane in (None, "work", "sleep", "wait")]
    assert dues == [START + seconds * SECOND for seconds in (3, 5, 7, 3)]
    bench.to(3)
    assert [wake_at(lane) for lane in (None, "work", "sleep", "wait", "kept")] == [
        START + 4 * SECOND,
        None,
        None,
        None,
        START + 4 * SECOND,
    ]


async def step_of(step, config):
    await step.do("s", lasts(100), config)


def test_the_error_of_a_lost_attempt_is_in_the_history():
    """X3."""
    bench = Bench(one_long_step)
    bench.create()
    bench.lose()
    (row,) = [row for row in bench.history if row.event == 12]
    error = ErrorInfo("WorkflowInternalError", "Attempt failed due to internal workflows error")
    assert row.data == {"attempt": 1, "error": {"name": error.name, "message": error.message}}
