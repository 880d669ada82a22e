"""`sweep()` of real Workers: bugs that each team has had once, and their correct twins."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import tracemalloc
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import pytest
import respx
from workers import Response, WorkerEntrypoint, fetch

from emulator import (
    ConfigError,
    Emulator,
    Fault,
    PlanError,
    ReplyLost,
    SweepReport,
    WorkerCrashed,
    sweep,
)
from emulator.sweeping.observe import observe
from emulator.sweeping.outcome import FindingsError, Outcome

CONSUMER = {"queue": "emails", "max_batch_timeout": 5}
QUEUES = {
    "producers": [{"binding": "EMAILS", "queue": "emails"}],
    "consumers": [CONSUMER],
}
# What was done to the outside world; a scenario begins with nothing.
done: list[Any] = []


class Naive(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.EMAILS.send("ada@example.com")
        return Response("queued", status=202)

    async def queue(self, batch, env, ctx):
        done.extend(message.body for message in batch.messages)


class Idempotent(Naive):
    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            if message.body not in done:
                done.append(message.body)


async def signup(emulator: Emulator) -> None:
    done.clear()
    response = await emulator.fetch("/", method="POST")
    await emulator.settle()
    assert response.status_code == 202
    assert done == ["ada@example.com"]


def run(scenario: Any, worker: type = Naive, **options: Any) -> SweepReport:
    config = {"main": worker, "queues": QUEUES}
    return asyncio.run(sweep(scenario, config, **options))


def emulators() -> list[Emulator]:
    """Those that something keeps alive; `in` tells them apart by identity."""
    return [one for one in gc.get_objects() if type(one) is Emulator]


def plans(report: SweepReport) -> list[str]:
    return ["; ".join(map(str, failure.plan)) for failure in report.failures]


# What it finds.


def test_naive_consumer_is_found_by_single_faults():
    report = run(signup)
    assert plans(report) == [
        *("message.emails#1:duplicate", "message.emails#1:duplicate(1 h)"),
        *("batch.emails#1:fail", "batch.emails#1:timeout", "batch.emails#1:lose_ack"),
    ]
    assert len(report.groups) == 1
    assert not report.passed
    for failure in report.failures:
        assert isinstance(failure.error, AssertionError)
        assert failure.trace is not None
        assert [event.kind for event in failure.trace].count("fault") == 1
        assert failure.replayed
        assert not failure.flaky
    assert report.runs == 2 + 7 + 2 * 5 + 1
    assert report.not_tried == {"request": 7}


def test_its_idempotent_twin_passes():
    report = run(signup, Idempotent)
    assert report.passed
    assert report.failures == []
    assert report.runs == 2 + 7
    assert {site.name for site in report.sites} == {
        *("request.POST./", "send.emails", "message.emails", "batch.emails")
    }


FORGETFUL = """
from workers import Response, WorkerEntrypoint, fetch

seen = {}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.EMAILS.send("ada@example.com")
        return Response("queued", status=202)

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            if message.id not in seen:
                seen[message.id] = True
                await fetch("https://mail.example/send", method="POST")
"""


async def forgetful(emulator: Emulator) -> None:
    with respx.mock(assert_all_called=False) as router:
        mail = router.post("https://mail.example/send").respond(202)
        await emulator.fetch("/", method="POST")
        await emulator.settle()
        assert mail.call_count == 1


def test_key_in_memory_needs_a_repetition_and_a_loss_of_memory(tmp_path):
    """A redelivery is caught by the key, and a crash before it forgets the key."""
    path = tmp_path / "entry.py"
    path.write_text(FORGETFUL)
    config = {"main": str(path), "queues": QUEUES}
    found = ["duplicate", "lose_ack", "crash_before"]
    options = {"only": [f"*#*:{action}" for action in found]}

    report = asyncio.run(sweep(forgetful, config, **options))
    assert report.passed, report.render()

    report = asyncio.run(sweep(forgetful, config, depth=2, **options))
    assert plans(report) == ["batch.emails#1:lose_ack; batch.emails#2:crash_before"]
    assert report.tried[2] > 10


class Caller(Naive):
    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            await fetch("https://mail.example/send", method="POST", headers={"key": message.id})


async def told_to_call(emulator: Emulator) -> None:
    """Uses a router that asks at its end whether all routes were called."""
    with respx.mock() as router:
        router.post("https://mail.example/send").respond(202)
        try:
            await emulator.fetch("/", method="POST")
        except (WorkerCrashed, ReplyLost):
            return
        await emulator.settle()


async def forgets_to_call(emulator: Emulator) -> None:
    with respx.mock() as router:
        router.post("https://mail.example/send").respond(202)


def test_respx_asks_for_all_calls_only_in_the_clean_run():
    stop = respx.router.MockRouter.stop
    report = run(told_to_call, Caller, classes="all")
    assert report.passed, report.render()
    assert report.tried[1] > 10

    report = run(forgets_to_call, Caller)
    assert plans(report) == [""]
    assert "some routes were not called" in report.failures[0].text
    assert respx.router.MockRouter.stop is stop


WORKFLOW = {
    "workflows": [{"binding": "FLOW", "name": "flow", "class_name": "Charging"}],
}
MODULE = """
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch


class Charging(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("charge")
        async def charge():
            headers = {"Idempotency-Key": event["instanceId"]}
            response = await fetch("https://bank.example/charge", method="POST", headers=headers)
            if response.status != 200:
                raise RuntimeError(f"the bank answered {response.status}")

        await charge()


class Default(WorkerEntrypoint):
    pass
"""


@pytest.mark.parametrize("honours_key", [True, False])
def test_workflow_that_charges_twice(tmp_path, honours_key):
    path = tmp_path / "entry.py"
    path.write_text(MODULE)

    async def scenario(emulator: Emulator) -> None:
        charges: list[str] = []

        def bank(request: httpx.Request) -> httpx.Response:
            key = request.headers["idempotency-key"]
            if not (honours_key and key in charges):
                charges.append(key)
            return httpx.Response(200)

        with respx.mock(assert_all_called=False) as router:
            router.post("https://bank.example/charge").mock(side_effect=bank)
            await emulator.workflows["flow"].create()
            await emulator.settle()
            assert len(charges) == 1

    report = asyncio.run(sweep(scenario, WORKFLOW | {"main": str(path)}))
    assert report.passed == honours_key
    if not honours_key:
        assert plans(report)[0] == "step.flow.charge#1:timeout"
        assert "step.flow.charge#1:crash_after" in plans(report)
        assert "fetch.POST.bank.example/charge#1:crash_after" in plans(report)
        assert "fetch.POST.bank.example/charge#1:lose_reply" in plans(report)
        assert "step.flow.charge#1:crash_before" not in plans(report)
        assert len(report.groups) == 1


# How a scenario fails.


def test_failing_clean_run_is_one_failure_without_a_plan():
    async def scenario(emulator: Emulator) -> None:
        await emulator.fetch("/", method="POST")
        raise ValueError("nothing works")

    report = run(scenario)
    (failure,) = report.failures
    assert failure.plan == ()
    assert str(failure.error) == "nothing works"
    assert report.runs == 2
    assert failure.cause.startswith("ValueError at ")
    assert 'raise ValueError("nothing works")' in failure.place
    assert "fails without any fault" in report.render()


def test_findings_that_fail_a_test_fail_a_run():
    class Worker(Naive):
        async def queue(self, batch, env, ctx):
            asyncio.create_task(asyncio.sleep(1))  # noqa: RUF006 - the bug

    async def scenario(emulator: Emulator) -> None:
        await emulator.fetch("/", method="POST")
        await emulator.settle()

    (failure,) = run(scenario, Worker).failures
    assert failure.plan == ()
    assert isinstance(failure.error, FindingsError)
    assert [finding.code for finding in failure.error.findings] == ["floating_task"]
    assert failure.cause.startswith("floating_task at ")

    async def expecting(emulator: Emulator) -> None:
        emulator.findings.expect("floating_task")
        await scenario(emulator)

    assert run(expecting, Worker).passed


def test_finding_that_only_a_fault_brings_about_fails_that_plan():
    """The other invocation is not the one that the fault struck."""

    class Worker(Idempotent):
        async def queue(self, batch, env, ctx):
            await super().queue(batch, env, ctx)
            if any(message.attempts > 1 for message in batch.messages):
                asyncio.create_task(asyncio.sleep(1))  # noqa: RUF006 - the bug

    report = run(signup, Worker)
    assert "batch.emails#1:lose_ack" in plans(report)
    assert all(failure.cause.startswith("floating_task") for failure in report.failures)


def test_fault_that_a_scenario_plans_in_vain_fails_the_clean_run():
    async def scenario(emulator: Emulator) -> None:
        emulator.faults.add("batch.emails#7:lose_ack")
        await signup(emulator)

    (failure,) = run(scenario, Idempotent).failures
    assert failure.plan == ()
    assert failure.cause.startswith("fault_not_fired")


def test_fault_that_a_scenario_plans_may_miss_because_of_the_sweeps():
    """With the batch's first delivery gone wrong, the second is not the one that was meant."""

    async def scenario(emulator: Emulator) -> None:
        emulator.faults.add("batch.emails#2:lose_ack")
        done.clear()
        await emulator.fetch("/", method="POST")
        await emulator.settle()
        await emulator.fetch("/", method="POST")
        await emulator.settle()
        assert done

    report = run(scenario, Idempotent)
    assert report.passed, report.render()


# What a client sees.


class Patient(Idempotent):
    """Its request goes on while the message is consumed."""

    async def fetch(self, request):
        response = await super().fetch(request)
        await asyncio.sleep(10)
        return response


async def grouped(emulator: Emulator) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(signup(emulator))


@pytest.mark.parametrize("scenario", [signup, grouped])
def test_crash_elsewhere_that_cuts_a_request_off_is_a_request_fault(scenario):
    """No Worker could keep its client from seeing it."""
    report = run(scenario, Patient)
    assert report.passed, report.render()
    assert report.tried[1] == 6
    assert report.not_tried == {"request": 7 + 1}

    report = run(scenario, Patient, classes=("platform", "request"))
    assert "batch.emails#1:crash_before" in plans(report)
    assert report.not_tried == {}


def test_client_that_asks_again_is_judged():
    async def twice(emulator: Emulator) -> None:
        done.clear()
        await emulator.fetch("/", method="POST", retries=1)
        await emulator.settle()
        assert done == ["ada@example.com"]

    assert run(twice, Patient).tried[1] == 7

    class Careless(Patient):
        async def queue(self, batch, env, ctx):
            done.extend(message.body for message in batch.messages)

    assert "batch.emails#1:crash_before" in plans(run(twice, Careless, only=["*#*:crash_before"]))


# Determinism.


def test_counter_in_the_module_of_the_test_is_not_deterministic():
    count = itertools.count()

    async def scenario(emulator: Emulator) -> None:
        await emulator.fetch(f"/?n={next(count)}", method="POST")
        await emulator.settle()

    report = run(scenario)
    (failure,) = report.failures
    assert failure.cause == "nondeterministic"
    assert "first at event 1\n" in failure.text
    assert "first run:  +0:00:00.000     request POST /  request" in failure.text
    assert 'url="http://localhost/?n=0"' in failure.text
    assert 'url="http://localhost/?n=1"' in failure.text
    assert failure.place.endswith('await emulator.fetch(f"/?n={next(count)}", method="POST")')
    assert f"  at {failure.place}" in failure.text.splitlines()
    assert "Likely cause: a number that goes up from run to run" in failure.text
    assert failure.trace is not None
    assert failure.other_trace is not None
    assert report.runs == 2


def test_id_of_an_object_is_not_deterministic():
    kept: list[object] = []

    async def scenario(emulator: Emulator) -> None:
        kept.append(object())
        await emulator.fetch(f"/{id(kept[-1])}", method="POST")

    (failure,) = run(scenario).failures
    assert failure.cause == "nondeterministic"
    assert isinstance(failure.error, FindingsError)


def test_real_time_that_code_in_c_reads_is_not_deterministic(tmp_path):
    file = tmp_path / "file"
    file.touch()

    class Worker(Idempotent):
        async def fetch(self, request):
            os.utime(file)
            print(os.stat(file).st_mtime_ns)
            return await super().fetch(request)

    (failure,) = run(signup, Worker).failures
    assert "first at event 2\n" in failure.text
    assert "Likely cause: real time" in failure.text
    assert failure.place.endswith("print(os.stat(file).st_mtime_ns)")
    assert isinstance(failure.error, FindingsError)
    (finding,) = failure.error.findings
    assert finding.location == failure.place.partition(": ")[0]


def test_other_number_of_events_is_not_deterministic():
    count = itertools.count(1)

    async def scenario(emulator: Emulator) -> None:
        for _ in range(next(count)):
            await emulator.fetch("/", method="POST")

    (failure,) = run(scenario).failures
    first, second = failure.text.splitlines()[1:3]
    assert first == "  first run:  (it had ended)"
    assert second.startswith("  second run: +0:00:00.000")
    assert failure.place.endswith('await emulator.fetch("/", method="POST")')


def test_what_a_run_leaves_behind_is_not_deterministic():
    async def scenario(emulator: Emulator) -> None:
        await emulator.fetch("/", method="POST")
        await emulator.settle()
        assert done == ["ada@example.com"]

    done.clear()
    (failure,) = run(scenario).failures
    assert failure.cause == "nondeterministic"
    assert "first run:  passed" in failure.text
    assert "second run: AssertionError" in failure.text


def test_sweep_is_the_same_each_time():
    first, second = run(signup, depth=2), run(signup, depth=2)
    assert first.render() == second.render()
    assert first.to_json() == second.to_json()
    assert plans(first) == plans(second)


def test_seed_is_the_emulators_too():
    def ids(seed: int) -> list[str]:
        report = run(signup, seed=seed)
        trace = report.failures[0].trace
        assert trace is not None
        return [event.data["id"] for event in trace if event.kind == "send"]

    assert ids(1) == ids(1) != ids(2)


# Nothing to sweep.


def test_sweep_without_a_site_is_empty():
    async def scenario(emulator: Emulator) -> None:
        await emulator.advance("1 day")

    report = run(scenario)
    assert report.empty
    assert not report.passed
    assert report.render().startswith("2 runs: nothing to sweep\n")


# Arguments.


def test_scenario_must_be_a_coroutine_function():
    async def scenario(emulator: Emulator) -> None: ...

    with pytest.raises(TypeError, match=r"takes the emulator, not <function .*<lambda>"):
        run(lambda emulator: None)
    coroutine = scenario(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="coroutine function"):
        run(coroutine)
    coroutine.close()
    with pytest.raises(TypeError, match="coroutine function"):
        run(None)


def test_scenario_may_be_an_object_or_a_partial_function():
    class Scenario:
        async def __call__(self, emulator: Emulator) -> None:
            await signup(emulator)

    async def scenario(emulator: Emulator, times: int) -> None:
        assert times == 1
        await signup(emulator)

    assert run(Scenario(), Idempotent).passed
    assert run(partial(scenario, times=1), Idempotent).passed


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"faults": ["batch.emails#1:lose_ack"]}, TypeError, "no faults: the sweep plans"),
        ({"state": "file"}, TypeError, "no state: each run starts with nothing"),
        ({"unknown": 1}, TypeError, "no argument 'unknown'. It takes config, depth, .*, start"),
        ({"dept": 2}, TypeError, "no argument 'dept'; did you mean 'depth'[?]"),
        ({"outbound": "sometimes"}, ConfigError, "outbound"),
        ({"classes": ["bad"]}, ValueError, "'bad'"),
        ({"only": ["nothing"]}, PlanError, "kind of site"),
        ({"depth": 0}, ValueError, "depth is 0"),
    ],
)
def test_wrong_arguments_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        run(signup, **options)


def test_arguments_of_the_emulator_reach_it():
    async def scenario(emulator: Emulator) -> None:
        await signup(emulator)
        assert emulator.env.GREETING == "hello"
        assert emulator.now.year == 2027

    options = {"bindings": {"GREETING": "hello"}, "start": datetime(2027, 1, 1, tzinfo=UTC)}
    assert run(scenario, Idempotent, **options).passed


# What comes from outside.


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_end_the_sweep(error):
    runs = []

    async def scenario(emulator: Emulator) -> None:
        runs.append(emulator)
        if len(runs) == 3:
            raise error
        await signup(emulator)

    was_enabled = gc.isenabled()
    with pytest.raises(error):
        run(scenario, Idempotent)
    assert len(runs) == 3
    assert gc.isenabled() == was_enabled


def test_cancelling_the_sweep_ends_it():
    runs = []

    async def scenario(emulator: Emulator) -> None:
        runs.append(emulator)
        await signup(emulator)
        if len(runs) == 3:
            await asyncio.Event().wait()

    config = {"main": Idempotent, "queues": QUEUES}

    async def cancel() -> None:
        task = asyncio.ensure_future(sweep(scenario, config))
        while len(runs) < 3:  # noqa: ASYNC110 - an event's waiter is not asked before the sweep
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert len(runs) == 3


def test_cancelled_error_of_the_scenario_fails_its_run():
    async def scenario(emulator: Emulator) -> None:
        await signup(emulator)
        raise asyncio.CancelledError

    (failure,) = run(scenario, Idempotent).failures
    assert isinstance(failure.error, asyncio.CancelledError)


def test_pytest_fail_fails_a_run_and_pytest_skip_ends_the_sweep():
    async def failing(emulator: Emulator) -> None:
        await signup(emulator)
        pytest.fail("no good")

    async def skipping(emulator: Emulator) -> None:
        pytest.skip("not today")

    (failure,) = run(failing, Idempotent).failures
    assert str(failure.error) == "no good"
    with pytest.raises(pytest.skip.Exception):
        run(skipping)


# Memory and the collector.


def test_collector_is_as_it_was_and_nothing_stays_frozen():
    gc.unfreeze()
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            run(signup)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
        assert gc.get_freeze_count() == 0


def test_memory_does_not_grow_with_the_runs():
    """Of a run that passes nothing may stay but a few names of faults."""

    async def scenario(emulator: Emulator) -> None:
        done.clear()
        await emulator.queues["emails"].send_batch(["x" * 100] * 2)
        await emulator.settle()
        measured.append(tracemalloc.get_traced_memory()[0])

    measured: list[int] = []
    tracemalloc.start()
    try:
        report = run(scenario, depth=3, limit=200)
    finally:
        tracemalloc.stop()
    assert report.runs == 202
    assert report.passed
    early, late = min(measured[48:80]), min(measured[-32:])
    # 122 runs lie between, of which the plans are remembered; an emulator alone has 70,000 bytes.
    print(late - early, (late - early) / 122)
    assert late - early < 122 * 2_000


def test_run_that_passes_under_a_plan_keeps_no_trace():
    async def outcome(error: Exception | None, *plan: str) -> Outcome:
        faults = tuple(map(Fault.parse, plan))
        async with Emulator({"main": Idempotent, "queues": QUEUES}, faults=faults) as emulator:
            await signup(emulator)
            return observe(emulator, faults, error)

    passed, clean, failed = (
        asyncio.run(outcome(*arguments))
        for arguments in (
            (None, "batch.emails#1:lose_ack"),
            (None,),
            (ValueError("no"), "batch.emails#1:lose_ack"),
        )
    )
    assert (passed.trace, passed.digest) == (None, b"")
    assert list(map(str, passed.fired)) == ["batch.emails#1:lose_ack"]
    for other in (clean, failed):
        assert other.trace is not None
        assert len(other.digest) == 32
    assert clean.digest != failed.digest


def test_failures_do_not_keep_the_emulators_of_their_runs():
    earlier = emulators()

    async def scenario(emulator: Emulator) -> None:
        local = [emulator]
        await signup(emulator)
        assert local

    report = run(scenario)
    assert len(report.failures) == 5
    gc.collect()
    assert [one for one in emulators() if one not in earlier] == []
    assert all(failure.error.__traceback__ is not None for failure in report.failures)
