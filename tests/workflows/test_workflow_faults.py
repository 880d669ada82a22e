"""The faults of `step`, `sleep`, `wait`, `create` and `event`: what strikes, and what is left.

The reference is the table of fault sites and "What a fault leaves" in docs/faults.md.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from pyodide.ffi import JsException
from worker_files import worker as worker_file
from workers import fetch as outbound
from workflow_bench import (
    NO_RETRY,
    ONE_RETRY,
    PROFILES,
    clock,
    codes,
    do,
    events,
    fired,
    now,
    one_step,
    rows,
    seconds,
    states,
    told,
    worker,
)

from emulator import Emulator, Stuck, WorkerCrashed, WorkflowError, WorkflowFailed

pytestmark = pytest.mark.asyncio

LOST = "Attempt failed due to internal workflows error"


class Body:
    """A body that takes a second and notes each attempt, and how far it got."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, float]] = []

    async def __call__(self, ctx: Any) -> str:
        number = ctx["attempt"]
        self.seen.append(("began", number, now()))
        try:
            await asyncio.sleep(1)
            self.seen.append(("ended", number, now()))
        except BaseException:
            self.seen.append(("except", number, now()))
            raise
        finally:
            self.seen.append(("finally", number, now()))
        return "value"


def whole(number: int, at: float) -> list[tuple[str, int, float]]:
    """What a body notes that runs from `at` to its end."""
    return [("began", number, at), ("ended", number, at + 1), ("finally", number, at + 1)]


# -- step.<workflow>.<step> ------------------------------------------------------------------------

STEP = {
    # The attempt was counted, the body did not run; the next one follows without a delay.
    "crash_before": ([], whole(2, 0), 2, 1),
    # The body ran, the result was not saved.
    "crash_after": (whole(1, 0), whole(2, 1), 2, 2),
    # Saved: the body is not called again.
    "crash_saved": (whole(1, 0), [], 1, 1),
    "evict": (whole(1, 0), [], 1, 1),
    # The attempt failed, its retry delay passes.
    "fail": ([], whole(2, 10), 2, 11),
    # The body ran on, its result is ignored; the attempt ends at the step's time-out.
    "timeout": (whole(1, 0), whole(2, 610), 2, 611),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("action", STEP)
async def test_how_an_attempt_ends(action: str, profile: Any) -> None:
    first, second, attempts, end = STEP[action]
    body = Body()
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        runs.append(now())
        return await do(step, "s", body, ONE_RETRY)

    fault = f"step.flow.s#1:{action}"
    async with Emulator(worker(run), profile=profile, faults=fault) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "value"
        assert body.seen == first + second
        assert states(instance) == [("s", "complete", attempts)]
        assert clock(emulator) == end
        assert fired(emulator) == [fault]
        # After `fail` and `timeout` memory stays; after the others `run` starts over.
        assert len(runs) == (1 if action in ("fail", "timeout") else 2)
        assert codes(emulator) == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("action", STEP)
async def test_an_attempt_without_a_retry(action: str, profile: Any) -> None:
    """X3: production charges a lost attempt to the retries, the local engine does not."""
    body = Body()
    fault = f"step.flow.s#1:{action}"
    run = one_step(body, NO_RETRY)
    async with Emulator(worker(run), profile=profile, faults=fault) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.settle()
        lost = action in ("crash_before", "crash_after")
        if action in ("crash_saved", "evict") or (lost and profile == "miniflare"):
            assert (instance.status, instance.output) == ("complete", "value")
            return
        assert instance.status == "errored"
        assert states(instance) == [("s", "errored", 1)]
        assert [mark for mark in body.seen if mark[1] == 2] == []
        message = instance.error.message
        if lost:
            assert (instance.error.name, message) == ("WorkflowInternalError", LOST)
        elif action == "timeout":
            assert "Execution timed out after 600000ms" in message
            assert seconds(instance.steps[0].ended) == 600


async def test_the_history_of_a_lost_attempt() -> None:
    """X2, X3: production logs it as a failure, without another start of the step."""
    for profile, expected in (
        ("production", [0, 1, 5, 10, 12, 10, 11, 6, 2]),
        ("miniflare", [0, 1, 5, 10, 10, 11, 6, 2]),
    ):
        config = worker(one_step(Body()))
        async with Emulator(config, profile=profile, faults="step.flow.s#1:crash_after") as e:  # type: ignore[arg-type]
            instance = await e.workflows["flow"].create()
            await instance.result()
            assert events(instance) == expected
            if profile == "production":
                (row,) = rows(instance, 12)
                assert row.data["error"] == {"name": "WorkflowInternalError", "message": LOST}
                assert "retryDelayMs" not in row.data or not row.data["retryDelayMs"]


async def test_a_failing_attempt_that_is_struck() -> None:
    """The body raised: its failure is as good as a result, `crash_after` loses it."""
    tries: list[tuple[int, float]] = []

    def body(ctx: Any) -> str:
        tries.append((ctx["attempt"], now()))
        if ctx["attempt"] == 1:
            raise ValueError("no")
        return "value"

    for action, again in (("crash_after", 0), ("crash_saved", 10), ("evict", 10)):
        tries.clear()
        fault = f"step.flow.s#1:{action}"
        async with Emulator(worker(one_step(body, ONE_RETRY)), faults=fault) as emulator:
            instance = await emulator.workflows["flow"].create()
            assert await instance.result() == "value"
            assert tries == [(1, 0), (2, again)]
            assert fired(emulator) == [fault]


async def test_occurrences_count_attempts_over_instances_and_counts() -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        for _ in range(2):
            await do(step, "s", 1, ONE_RETRY)

    async with Emulator(worker(run), faults="step.flow.s#3:fail") as emulator:
        first = await emulator.workflows["flow"].create("first")
        second = await emulator.workflows["flow"].create("second")
        await emulator.settle()
        assert [step.attempts for step in first.steps] == [1, 1]
        assert [step.attempts for step in second.steps] == [2, 1]
        assert [(site.name, site.occurrence) for site in emulator.faults.sites] == [
            ("step.flow.s", number) for number in range(1, 6)
        ]


async def test_a_mocked_step_is_a_site_too_and_the_fault_comes_first() -> None:
    async with Emulator(worker(one_step(1)), faults="step.flow.s#1:fail") as emulator:
        emulator.workflows["flow"].mock_step_result("s", "mocked")
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "mocked"
        assert states(instance) == [("s", "complete", 2)]


@pytest.mark.parametrize("action", STEP)
async def test_each_fault_strikes_a_mocked_step(action: str) -> None:
    """The result stands for the body: what loses or delays a body's result does it to a mock's."""
    fault = f"step.flow.s#1:{action}"
    async with Emulator(worker(one_step(1, ONE_RETRY)), faults=fault) as emulator:
        emulator.workflows["flow"].mock_step_result("s", "mocked")
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "mocked"
        assert fired(emulator) == [fault]
        assert states(instance) == [("s", "complete", STEP[action][2])]
        # The body would have taken a second.
        end = {"fail": 10, "timeout": 610}.get(action, 0)
        assert clock(emulator) == end
        assert codes(emulator) == []


@pytest.mark.parametrize("action", ["crash_before", "crash_after"])
async def test_a_crash_strikes_a_step_whose_mock_fails(action: str) -> None:
    """The lost attempt counts among those the mock is for."""
    fault = f"step.flow.s#1:{action}"
    async with Emulator(worker(one_step("real")), faults=fault) as emulator:
        emulator.workflows["flow"].mock_step_error("s", ValueError("mocked"), times=1)
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "real"
        assert fired(emulator) == [fault]
        assert states(instance) == [("s", "complete", 2)]
        assert clock(emulator) == 0


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("create account", "step.flow.create account"),
        ("a.b", "step.flow.a.b"),
        ("50% #1", "step.flow.50%25 %231"),
        ("what?", "step.flow.what%3F"),
        ("", "step.flow."),
    ],
)
async def test_names_in_sites(name: str, site: str) -> None:
    async with Emulator(worker(one_step(1, name=name))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.result()
        assert [one.name for one in emulator.faults.sites] == [site]
    async with Emulator(worker(one_step(1, name=name)), faults=f"{site}#1:evict") as emulator:
        await (await emulator.workflows["flow"].create()).result()
        assert fired(emulator) == [f"{site}#1:evict"]


async def test_a_fault_at_a_step_that_is_never_reached() -> None:
    config = worker(one_step(1, name="charge card"))
    async with Emulator(config, faults="step.flow.chrage card#1:fail") as emulator:
        await (await emulator.workflows["flow"].create()).result()
        (finding,) = emulator.findings
        assert finding.code == "fault_not_fired"
        assert "step.flow.charge card (met once)" in finding.message


async def test_globs() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        a = await do(step, "a", "A")
        await step.sleep("n", 1000)
        return a + await do(step, "b", "B")

    plan = "step.*.*#*:evict; sleep.*.*#*:evict"
    async with Emulator(worker(run), faults=plan) as emulator:
        assert await (await emulator.workflows["flow"].create()).result() == "AB"
        assert fired(emulator) == [
            "step.flow.a#1:evict",
            "sleep.flow.n#1:evict",
            "step.flow.b#1:evict",
        ]


async def test_two_faults_of_one_plan() -> None:
    body = Body()
    plan = "step.flow.s#1:crash_before; step.flow.s#2:fail; step.flow.s#3:crash_saved"
    async with Emulator(worker(one_step(body)), faults=plan) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "value"
        # The lost attempt has no delay, that of the second is 10 s by the step's own count.
        assert fired(emulator) == plan.split("; ")
        assert states(instance) == [("s", "complete", 3)]
        assert [mark[:2] for mark in body.seen] == [("began", 3), ("ended", 3), ("finally", 3)]


@pytest.mark.parametrize("action", [None, "crash_after", "lose_reply"])
@pytest.mark.parametrize("call", ["create", "event"])
async def test_a_call_that_is_refused_and_struck(call: str, action: str | None) -> None:
    """The fault has its effect all the same: it is said to have fired."""
    seen: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any: ...

    async def fetch(worker: Any, request: Any) -> None:
        instance = await worker.env.FLOW.get("a")
        try:
            if call == "create":
                await worker.env.FLOW.create(id="a")
            else:
                await instance.send_event({"type": "go"})
        except JsException as error:
            seen.append(error.message)
            raise

    site = "create.flow" if call == "create" else "event.flow.go"
    plan = [] if action is None else [f"{site}#1:{action}"]
    async with Emulator(worker(run, fetch=fetch), faults=plan) as emulator:
        await emulator.workflows["flow"].create("a")
        await emulator.settle()
        if action == "crash_after":
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
        else:
            assert (await emulator.fetch("/")).status_code == 500
        texts = {"create": "instance.already_exists", "event": "instance.in_finite_state"}
        assert [texts[call] in text for text in seen] == (
            [] if action == "crash_after" else [not action]
        )
        assert fired(emulator) == plan


@pytest.mark.parametrize(
    ("plan", "profile"),
    [
        ("create.child#*:crash_before", "production"),
        ("create.child#*:crash_after", "production"),
        ("step.flow.s#*:crash_before", "miniflare"),  # which charges no lost attempt (X3)
    ],
)
async def test_a_plan_that_never_lets_a_run_go_on(plan: str, profile: Any) -> None:
    """Time does not move, so that no limit of virtual time ends it either."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await do(step, "first", "a")
        with contextlib.suppress(JsException):
            await self.env.CHILD.create(id="child")
        return await do(step, "s", "b")

    async def child(self: Any, event: Any, step: Any) -> Any: ...

    config = worker({"flow": run, "child": child})
    async with Emulator(config, faults=plan, profile=profile) as emulator:
        emulator.findings.expect("effect_outside_step")
        with pytest.raises(Stuck, match=r"started over 1,000 times at this instant") as info:
            await emulator.workflows["flow"].create("a")
        assert "the instance a of the Workflow flow" in str(info.value)
        assert f"Under the plan {plan} this never ends: name the occurrences" in str(info.value)
        emulator.faults.clear()
        await emulator.settle()
        assert (await emulator.workflows["flow"].get("a")).output == "b"


async def test_a_long_flow_may_be_replayed_after_each_step() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        for number in range(60):
            await do(step, f"s{number}", "a")
        return "done"

    async with Emulator(worker(run), faults="step.*#*:crash_saved") as emulator:
        assert await (await emulator.workflows["flow"].create()).result() == "done"
        assert len(fired(emulator)) == 60


async def test_a_crash_takes_what_else_the_isolate_does() -> None:
    """Another instance's attempt, a request in flight: all are lost, and begin again."""
    tries: list[tuple[str, int, float]] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> str:
            tries.append((event["instanceId"], ctx["attempt"], now()))
            await asyncio.sleep(event["payload"])
            return "ok"

        return await do(step, event["instanceId"], body)

    async def fetch(worker: Any, request: Any) -> None:
        await asyncio.sleep(60)

    config = worker(run, fetch=fetch)
    async with Emulator(config, faults="step.flow.short#1:crash_after") as emulator:
        short = await emulator.workflows["flow"].create("short", 5)
        long = await emulator.workflows["flow"].create("long", 20)
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert clock(emulator) == 5
        assert await short.result() == "ok"
        assert await long.result() == "ok"
        assert clock(emulator) == 25
        assert tries == [("short", 1, 0), ("long", 1, 0), ("short", 2, 5), ("long", 2, 5)]


GLOBALS = """
from workers import WorkerEntrypoint, WorkflowEntrypoint

memory = []

class Default(WorkerEntrypoint):
    pass

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        memory.append("run")

        @step.do("first")
        async def first():
            memory.append("first")
            return len(memory)

        @step.do("second")
        async def second():
            return list(memory)

        return [await first(), await second()]
"""


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        (None, ["run", "first"]),
        ("crash_before", ["run", "first"]),
        ("crash_after", ["run", "first"]),
        ("crash_saved", ["run"]),
        ("evict", ["run"]),
        ("fail", ["run", "first"]),
    ],
)
async def test_the_worker_s_globals_go_with_a_crash_and_an_eviction(
    tmp_path: Any, action: str | None, seen: list[str]
) -> None:
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    config = worker_file(tmp_path, GLOBALS, workflows=[flow])
    plan = [] if action is None else [f"step.flow.first#1:{action}"]
    async with Emulator(config, faults=plan) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == [2, seen]


# -- sleep.<workflow>.<name>, wait.<workflow>.<name> -----------------------------------------------


async def test_an_eviction_during_a_sleep() -> None:
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> float:
        runs.append(now())
        await step.sleep("n", "1 hour")
        return now()

    async with Emulator(worker(run), faults="sleep.flow.n#1:evict") as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == 3600
        assert runs == [0, 0]
        assert len(rows(instance, 8)) == len(rows(instance, 9)) == 1
        assert [(site.name, site.occurrence) for site in emulator.faults.sites] == [
            ("sleep.flow.n", 1)
        ]


def waits_twice() -> Any:
    async def run(self: Any, event: Any, step: Any) -> Any:
        first = await told(lambda: step.wait_for_event("w", "go", timeout="1 hour"))
        second = await step.wait_for_event("again", "go", timeout="1 hour")
        shown = first if isinstance(first, list) else first["payload"]
        return [shown, second["payload"]]

    return run


async def test_an_eviction_during_a_wait() -> None:
    config = worker(waits_twice())
    async with Emulator(config, faults="wait.flow.w#1:evict") as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(60)
        await instance.send_event("go", 1)
        await instance.send_event("go", 2)
        assert instance.output == [1, 2]
        assert len(rows(instance, 14)) == 2
        assert fired(emulator) == ["wait.flow.w#1:evict"]


@pytest.mark.parametrize(("kind", "how"), [("sleep", "mock"), ("wait", "mock"), ("wait", "fault")])
async def test_an_eviction_of_what_is_over_at_once(kind: str, how: str) -> None:
    """Two things at one place: time is cut short there, and memory goes all the same."""
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        runs.append(now())
        if kind == "sleep":
            await step.sleep("n", "1 hour")
        else:
            await told(lambda: step.wait_for_event("n", "go", timeout="1 hour"))
        return now()

    plan = [f"{kind}.flow.n#1:evict"]
    if how == "fault":
        plan.append("wait.flow.n#1:timeout")
    async with Emulator(worker(run), faults=plan) as emulator:
        if how == "mock" and kind == "sleep":
            emulator.workflows["flow"].disable_sleeps("n")
        elif how == "mock":
            emulator.workflows["flow"].force_event_timeout("n")
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == 0
        assert runs == [0, 0]
        assert fired(emulator) == plan


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_wait_that_times_out_by_a_fault(profile: Any) -> None:
    """At once, with the declared time in the text; a later event stays buffered."""
    config = worker(waits_twice())
    async with Emulator(config, profile=profile, faults="wait.flow.w#1:timeout") as emulator:
        instance = await emulator.workflows["flow"].create()
        assert clock(emulator) == 0
        assert [step.state for step in instance.steps] == ["errored", "waiting"]
        await instance.send_event("go", "later")
        name, text = "WorkflowTimeoutError", "Execution timed out after 3600000ms"
        if profile == "miniflare":
            name, text = "Error", f"{name}: {text}"
        assert instance.output == [[name, text], "later"]


async def test_a_wait_whose_event_is_there_already() -> None:
    """It is met, and never waits: no time-out and no eviction can strike it."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await step.sleep("n", 1000)
        return (await step.wait_for_event("w", "go"))["payload"]

    async with Emulator(worker(run), faults="wait.flow.w#1:timeout") as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("go", "early")
        assert await instance.result() == "early"
        assert fired(emulator) == []
        assert codes(emulator) == ["fault_not_fired"]


# -- create.<workflow> -----------------------------------------------------------------------------


def creates(log: list[Any]) -> Any:
    async def fetch(worker: Any, request: Any) -> Any:
        log.append(await told(lambda: worker.env.FLOW.create({"id": "x"})))
        return [one if isinstance(one, list) else one.id for one in log]

    return fetch


@pytest.mark.parametrize(
    ("action", "made", "crashes"),
    [
        ("crash_before", 0, True),
        ("crash_after", 1, True),
        ("fail", 0, False),
        ("lose_reply", 1, False),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_creation_that_is_struck(
    action: str, made: int, crashes: bool, profile: Any
) -> None:
    log: list[Any] = []
    config = worker(one_step(1), fetch=creates(log))
    fault = f"create.flow#1:{action}"
    async with Emulator(config, profile=profile, faults=fault) as emulator:
        if crashes:
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert log == []
        else:
            (answer,) = (await emulator.fetch("/")).json()
            assert isinstance(answer, list)
            assert answer[1]
        assert len(emulator.workflows["flow"].instances) == made
        await emulator.settle()
        assert [one.status for one in emulator.workflows["flow"].instances] == ["complete"] * made
        assert fired(emulator) == [fault]
        (site,) = [site for site in emulator.faults.sites if site.name == "create.flow"]
        # The client sees every one of them.
        assert dict(site.actions) == dict.fromkeys(
            ("crash_before", "fail", "crash_after", "lose_reply"), "request"
        )


async def test_a_patient_client_and_an_id_make_one_instance() -> None:
    """The reply of the first creation was lost; the second finds the id taken."""
    log: list[Any] = []
    config = worker(one_step(1), fetch=creates(log))
    async with Emulator(config, faults="create.flow#1:crash_after") as emulator:
        answer = await emulator.fetch("/", retries=1)
        assert "already_exists" in answer.json()[0][1]
        assert len(emulator.workflows["flow"].instances) == 1


async def test_a_batch_is_one_creation_and_a_test_s_creations_are_none() -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        return await told(lambda: worker.env.FLOW.create_batch([{"id": "a"}, {"id": "b"}]))

    config = worker(one_step(1), fetch=fetch)
    async with Emulator(config, faults="create.flow#1:fail") as emulator:
        await emulator.workflows["flow"].create("t")
        await emulator.workflows["flow"].create_batch([{"id": "u"}])
        assert (await emulator.fetch("/")).status_code == 200
        assert [one.id for one in emulator.workflows["flow"].instances] == ["t", "u"]
        sites = [site.name for site in emulator.faults.sites if site.name.startswith("create")]
        assert sites == ["create.flow"]


@pytest.mark.parametrize(("retries", "kind"), [(3, "platform"), (0, "dependency")])
async def test_a_creation_in_a_queue_consumer(retries: int, kind: str) -> None:
    """The platform repeats the batch while it has a retry left."""

    async def queue(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            await worker.env.FLOW.create({"id": message.body})

    consumer = {"queue": "q", "max_batch_timeout": 0, "max_retries": retries}
    config = worker(one_step(1), queue=queue, queues={"consumers": [consumer]})
    async with Emulator(config, faults="create.flow#1:fail") as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        site = next(site for site in emulator.faults.sites if site.name == "create.flow")
        assert site.actions["fail"] == site.actions["lose_reply"] == kind
        assert site.actions["crash_before"] == "platform"
        assert [one.id for one in emulator.workflows["flow"].instances] == ["x"] * (retries > 0)


# -- event.<workflow>.<type> -----------------------------------------------------------------------


def two_events(timeout: str = "1 day") -> Any:
    """Waits for two events, and tells when each came."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        seen = []
        for name in ("w1", "w2"):
            try:
                found = await step.wait_for_event(name, "go", timeout=timeout)
                seen.append([found["payload"], now()])
            except Exception:
                seen.append([None, now()])
        return seen

    return run


async def sends(worker: Any, request: Any) -> Any:
    """A fetch handler that sends `go` to the instance `x` and tells what it saw."""
    instance = await worker.env.FLOW.get("x")
    return await told(lambda: instance.send_event({"type": "go", "payload": "p"}))


EVENT = {
    None: [["p", 0], [None, 3600]],
    "duplicate": [["p", 0], ["p", 0]],
    "duplicate(30 min)": [["p", 0], ["p", 1800]],
    "delay(30 s)": [["p", 30], [None, 3630]],
    "drop": [[None, 3600], [None, 7200]],
    "fail": [[None, 3600], [None, 7200]],
    "lose_reply": [["p", 0], [None, 3600]],
    "crash_before": [[None, 3600], [None, 7200]],
    "crash_after": [["p", 0], [None, 3600]],
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("action", EVENT)
async def test_an_event_from_a_worker_that_is_struck(action: str | None, profile: Any) -> None:
    fault = [] if action is None else [f"event.flow.go#1:{action}"]
    config = worker(two_events("1 hour"), fetch=sends)
    async with Emulator(config, profile=profile, faults=fault) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        if action is not None and action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
        else:
            answer = (await emulator.fetch("/", advance=False)).json()
            assert isinstance(answer, list) == (action in ("fail", "lose_reply"))
        assert await instance.result() == EVENT[action]
        assert [one.split(":")[0] for one in fired(emulator)] == ["event.flow.go#1"] * len(fault)
        lost = [(event.subject, event.data) for event in emulator.trace if event.kind == "lost"]
        assert lost == ([("workflow flow x", {"type": "go"})] if action == "drop" else [])


async def test_the_sites_of_events() -> None:
    """From a test there is no isolate that could crash: what cannot strike is not offered."""
    config = worker(two_events(), fetch=sends)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.send_event("go", 1)
        await emulator.fetch("/")
        from_test, from_worker = [
            site for site in emulator.faults.sites if site.name == "event.flow.go"
        ]
        assert (from_test.occurrence, from_worker.occurrence) == (1, 2)
        assert dict(from_worker.actions) == {
            "duplicate": "platform",
            "delay": "dependency",
            "drop": "loss",
            "crash_before": "request",
            "fail": "request",
            "crash_after": "request",
            "lose_reply": "request",
        }
        assert set(from_test.actions) == {"duplicate", "delay", "drop", "fail", "lose_reply"}


@pytest.mark.parametrize("action", ["crash_before", "crash_after"])
async def test_a_crash_at_an_event_of_the_test_cannot_fire(action: str) -> None:
    async with Emulator(worker(two_events()), faults=f"event.flow.go#1:{action}") as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.send_event("go", 1)
        assert instance.steps[0].state == "complete"
        assert fired(emulator) == []
        assert codes(emulator) == ["fault_not_fired"]


@pytest.mark.parametrize("action", ["fail", "lose_reply"])
async def test_an_event_of_the_test_that_is_struck(action: str) -> None:
    async with Emulator(worker(two_events()), faults=f"event.flow.go#1:{action}") as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(WorkflowError):
            await instance.send_event("go", 1)
        assert instance.steps[0].state == ("complete" if action == "lose_reply" else "waiting")
        assert fired(emulator) == [f"event.flow.go#1:{action}"]


@pytest.mark.parametrize(
    ("plan", "came"),
    [
        ("duplicate; duplicate(1 h)", [0, 0, 3600]),
        ("delay(30 s); delay(1 min)", [90]),
        ("delay(30 s); duplicate(1 h)", [30, 3600]),
        ("drop; delay(30 s)", []),
        ("drop; duplicate", []),
    ],
)
async def test_several_faults_of_one_event(plan: str, came: list[float]) -> None:
    seen: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        for number in range(4):
            await step.wait_for_event(f"w{number}", "go", timeout="1 day")
            seen.append(now())

    faults = [f"event.flow.go#1:{action}" for action in plan.split("; ")]
    async with Emulator(worker(run), faults=faults) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("go")
        await emulator.advance("2 hours")
        assert seen == came
        assert sorted(fired(emulator)) == sorted(faults)


async def test_a_delayed_event_for_an_instance_that_has_ended() -> None:
    """Nobody is left to be told; nothing breaks."""
    config = worker(two_events("10 seconds"))
    async with Emulator(config, faults="event.flow.go#1:delay(1 h)") as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.send_event("go", 1)
        await emulator.advance("2 hours")
        assert instance.output == [[None, 10], [None, 20]]


async def test_settle_waits_for_an_event_that_a_fault_delays() -> None:
    async with Emulator(worker(two_events()), faults="event.flow.go#1:delay(30 s)") as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.send_event("go", 1)
        assert instance.steps[0].state == "waiting"
        await emulator.settle()
        assert clock(emulator) == 30
        assert instance.steps[0].state == "complete"


# -- classes, and faults of calls inside a step ----------------------------------------------------


async def test_the_classes_of_an_attempt_s_faults() -> None:
    """With a retry left the platform repeats: correct code must bear it. The last is different."""

    def body(ctx: Any) -> str:
        if ctx["attempt"] == 1:
            raise ValueError("no")
        return "ok"

    async with Emulator(worker(one_step(body, ONE_RETRY))) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        first, last = emulator.faults.sites
        names = ("crash_before", "fail", "timeout", "crash_after", "crash_saved", "evict")
        assert set(first.actions) == set(names)
        assert set(first.actions.values()) == {"platform"}
        assert {name for name, kind in last.actions.items() if kind == "dependency"} == {
            "fail",
            "timeout",
        }
        assert set(last.actions.values()) == {"platform", "dependency"}


async def test_the_classes_of_sleeps_and_waits() -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        await step.sleep("n", 1000)
        await told(lambda: step.wait_for_event("w", "go", timeout=1000))

    async with Emulator(worker(run)) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        sleep, wait = emulator.faults.sites
        assert dict(sleep.actions) == {"evict": "platform"}
        assert dict(wait.actions) == {"evict": "platform", "timeout": "dependency"}


def sending(config: Any = None, *, outside: bool = False) -> Any:
    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> str:
            await self.env.Q.send("x")
            return "sent"

        if outside:
            return await told(lambda: self.env.Q.send("x"))
        return await do(step, "s", body, config)

    return run


QUEUE = {"producers": [{"binding": "Q", "queue": "q"}]}


@pytest.mark.parametrize(
    ("config", "outside", "kind"),
    [(ONE_RETRY, False, "platform"), (NO_RETRY, False, "dependency"), (None, True, "dependency")],
    ids=["retry left", "none left", "outside a step"],
)
async def test_the_class_of_a_call_inside_a_step(config: Any, outside: bool, kind: str) -> None:
    """The platform repeats the caller only inside a step with a retry left."""
    config = worker(sending(config, outside=outside), queues=QUEUE)
    async with Emulator(config) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        (site,) = [site for site in emulator.faults.sites if site.name == "send.q"]
        assert site.actions["fail"] == site.actions["lose_reply"] == kind
        assert site.actions["crash_after"] == "platform"


@pytest.mark.parametrize(
    ("action", "sent", "attempts"),
    [
        ("crash_before", 1, 2),
        ("fail", 1, 2),
        ("crash_after", 2, 2),
        ("lose_reply", 2, 2),
    ],
)
async def test_a_send_inside_a_step_that_is_struck(action: str, sent: int, attempts: int) -> None:
    config = worker(sending(), queues=QUEUE)
    async with Emulator(config, faults=f"send.q#1:{action}") as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "sent"
        assert len(emulator.queues["q"].backlog) == sent
        assert states(instance) == [("s", "complete", attempts)]


@pytest.mark.parametrize(
    ("fault", "calls", "attempts"),
    [
        ("fetch.POST.mail.example/send#1:fail", 1, 2),
        ("fetch.POST.mail.example/send#1:status(503)", 1, 2),
        ("fetch.POST.mail.example/send#1:lose_reply", 2, 2),
        ("fetch.POST.mail.example/send#1:crash_after", 2, 2),
        ("fetch.POST.mail.example/send#1:crash_before", 1, 2),
        ("fetch.POST.mail.example/send#1:timeout", 2, 2),
        # The attempt itself is struck: with and without the request.
        ("step.flow.s#1:fail", 1, 2),
        ("step.flow.s#1:crash_before", 1, 2),
        ("step.flow.s#1:crash_after", 2, 2),
        ("step.flow.s#1:timeout", 2, 2),
        ("step.flow.s#1:crash_saved", 1, 1),
        ("step.flow.s#1:evict", 1, 1),
    ],
)
async def test_how_often_the_outside_world_is_called(
    respx_mock: Any, fault: str, calls: int, attempts: int
) -> None:
    route = respx_mock.post("https://mail.example/send").respond(202)

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> int:
            response = await outbound("https://mail.example/send", method="POST")
            if response.status != 202:
                raise RuntimeError(f"status {response.status}")
            return int(response.status)

        return await do(step, "s", body)

    async with Emulator(worker(run), faults=fault) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == 202
        assert route.call_count == calls
        assert states(instance) == [("s", "complete", attempts)]
        assert fired(emulator) == [fault]


async def test_a_step_that_fails_for_good_by_a_fault_can_be_caught() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        try:
            await do(step, "s", 1, NO_RETRY)
        except Exception as error:
            return f"caught {error}"

    async with Emulator(worker(run), faults="step.flow.s#*:fail") as emulator:
        instance = await emulator.workflows["flow"].create()
        assert (await instance.result()).startswith("caught ")
    async with Emulator(worker(one_step(1)), faults="step.flow.s#*:fail") as emulator:
        instance = await emulator.workflows["flow"].create()
        with pytest.raises(WorkflowFailed):
            await instance.result()
        assert len(fired(emulator)) == 6
        assert clock(emulator) == 310


@pytest.mark.parametrize(("limit", "fault_class"), [(1, "platform"), (0, "dependency")])
async def test_a_request_in_a_step_is_repeated_by_the_platform(
    respx_mock: Any, limit: int, fault_class: str
) -> None:
    """api.md 4: such an action counts as *platform* inside a step with a retry left."""
    respx_mock.post("https://pay.example/charges").respond(201)

    async def run(self: Any, event: Any, step: Any) -> None:
        async def charge(ctx: Any) -> None:
            await outbound("https://pay.example/charges", method="POST")

        await do(step, "charge", charge, {"retries": {"limit": limit, "delay": 0}})
        await outbound("https://pay.example/charges", method="POST")

    async with Emulator(worker(run)) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        inside, outside = [s for s in emulator.faults.sites if s.name.startswith("fetch.")]
        assert {inside.actions[name] for name in ("fail", "lose_reply", "timeout")} == {fault_class}
        assert outside.actions["lose_reply"] == "dependency"
