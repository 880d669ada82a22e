"""Starting, watching and steering instances, from tests and from Worker code.

The contract is "Workflows" in the public surface (docs/emulator.md); letters and numbers are rules
of workflows.md.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta
from enum import IntEnum
from typing import Any

import httpx
import pytest
from js import Object
from pyodide.ffi import JsException, to_js
from workers import fetch as outbound
from workers.workflows import NonRetryableError
from workflow_bench import (
    DAY,
    NO_RETRY,
    PROFILES,
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

from emulator import Emulator, NotSettled, WorkerCrashed, WorkflowError, WorkflowFailed

pytestmark = pytest.mark.asyncio

FIVE = ("one", "two", "three", "four", "five")


def five_steps(log: list[str]) -> Any:
    """A `run` of five steps that notes which bodies ran."""

    async def run(self: Any, event: Any, step: Any) -> str:
        for name in FIVE:
            await do(step, name, lambda _, name=name: log.append(name))
        return "done"

    return run


def sleeper(duration: Any = "1 hour") -> Any:
    async def run(self: Any, event: Any, step: Any) -> str:
        await step.sleep("n", duration)
        return "done"

    return run


def waiter(timeout: Any = "1 day") -> Any:
    async def run(self: Any, event: Any, step: Any) -> Any:
        found = await step.wait_for_event("approve", "approval", timeout=timeout)
        return found["payload"]

    return run


# -- who starts an instance ------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_queue_consumer_starts_instances_that_send_to_another_queue(profile: Any) -> None:
    """With one message delivered twice, the second creation is refused and nothing runs twice."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def notify(ctx: Any) -> str:
            await self.env.OUT.send({"to": event["payload"]["to"]})
            return "sent"

        return await do(step, "notify", notify)

    async def queue(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if batch.queue == "out":
                seen.append(message.body["to"])
                continue
            params = {"to": message.body}
            seen.append(
                await told(lambda p=params: worker.env.FLOW.create({"id": p["to"], "params": p}))
            )

    queues = {
        "producers": [{"binding": "OUT", "queue": "out"}],
        "consumers": [
            {"queue": "in", "max_batch_timeout": 0},
            {"queue": "out", "max_batch_timeout": 0},
        ],
    }
    config = worker(run, queue=queue, queues=queues)
    async with Emulator(config, profile=profile, faults="message.in#1:duplicate") as emulator:
        await emulator.queues["in"].send("ann")
        await emulator.settle()
        (instance,) = emulator.workflows["flow"].instances
        assert (instance.id, instance.status, instance.output) == ("ann", "complete", "sent")
        assert seen.count("ann") == 1
        (refused,) = [item for item in seen if isinstance(item, list)]
        assert "instance.already_exists" in refused[1]
        assert emulator.queues["out"].acked == 1


async def test_a_workflow_starts_another_and_hears_from_it() -> None:
    async def parent(self: Any, event: Any, step: Any) -> Any:
        async def start(ctx: Any) -> str:
            child = await self.env.CHILD.create(
                {"id": "child-1", "params": {"parent": event["instanceId"]}}
            )
            return child.id

        id = await do(step, "start", start)
        found = await step.wait_for_event("child", "child-done", timeout="1 week")
        return [id, found["payload"]]

    async def child(self: Any, event: Any, step: Any) -> None:
        await step.sleep("work", "2 days")

        async def report(ctx: Any) -> None:
            instance = await self.env.PARENT.get(event["payload"]["parent"])
            await instance.send_event({"type": "child-done", "payload": {"ok": True}})

        await do(step, "report", report)

    async with Emulator(worker({"parent": parent, "child": child})) as emulator:
        instance = await emulator.workflows["parent"].create("p")
        await emulator.settle()
        assert (instance.status, instance.output) == ("complete", ["child-1", {"ok": True}])
        assert clock(emulator) == 2 * DAY
        assert [one.id for one in emulator.workflows["child"].instances] == ["child-1"]
        assert codes(emulator) == []


async def test_two_workers_share_a_workflow() -> None:
    """`script_name`: the class is another Worker's."""

    async def fetch(worker: Any, request: Any) -> Any:
        return (await worker.env.BOUND.create({"id": "x", "params": 5})).id

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, "s", event["payload"] * 2)

    owner = worker(run, name="owner")
    front = worker({}, fetch=fetch, name="front")
    front["workflows"] = [
        {"binding": "BOUND", "name": "flow", "class_name": "Flow", "script_name": "owner"}
    ]
    async with Emulator([front, owner]) as emulator:
        assert (await emulator.fetch("/")).json() == "x"
        (instance,) = emulator.workflows["flow"].instances
        assert await instance.result() == 10


async def test_steps_that_call_an_outside_service(respx_mock: Any) -> None:
    """A 503 is what the body makes of it: here a failed attempt."""
    route = respx_mock.post("https://bill.example/accounts")
    route.side_effect = [httpx.Response(503), httpx.Response(201, json={"id": 7})]

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def bill(ctx: Any) -> Any:
            response = await outbound("https://bill.example/accounts", method="POST")
            if response.status != 201:
                raise RuntimeError(f"status {response.status}")
            return (await response.json())["id"]

        return await do(step, "bill", bill)

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == 7
        assert clock(emulator) == 10
        (row,) = rows(instance, 12)
        assert "status 503" in row.data["error"]["message"]
        assert route.call_count == 2


async def test_an_unknown_workflow_lists_the_names() -> None:
    config = worker({"onboarding": one_step(), "renewal": one_step()})
    async with Emulator(config) as emulator:
        assert list(emulator.workflows) == ["onboarding", "renewal"]
        with pytest.raises(KeyError, match=r"onboarding.*renewal"):
            emulator.workflows["onbording"]


async def test_instances_are_listed_in_order_of_creation() -> None:
    async with Emulator(worker(sleeper())) as emulator:
        flow = emulator.workflows["flow"]
        for id in ("z", "a", "m"):
            await flow.create(id)
        await flow.create_batch([{"id": "k"}, {"id": "b", "params": 1}])
        assert [one.id for one in flow.instances] == ["z", "a", "m", "k", "b"]
        assert (await flow.get("m")).id == "m"


class Thing:
    """What structured clone cannot carry."""


async def test_params_that_cannot_be_sent_are_refused() -> None:
    """B15; O-23: nothing is created, and the value at fault is named."""
    seen: list[Any] = []

    async def fetch(worker: Any, request: Any) -> None:
        try:
            await worker.env.FLOW.create({"params": {"rows": [1, Thing()]}})
        except Exception as error:
            seen.append((str(error), error.__notes__))

    async with Emulator(worker(one_step(), fetch=fetch)) as emulator:
        await emulator.fetch("/")
        ((text, notes),) = seen
        assert text.endswith("could not be cloned.")
        assert "rows[1]" in " ".join(notes)
        with pytest.raises(WorkflowError, match="could not be cloned") as info:
            await emulator.workflows["flow"].create(params={"rows": [1, Thing()]})
        assert "rows[1]" in " ".join(getattr(info.value, "__notes__", ()))
        assert emulator.workflows["flow"].instances == []


async def test_a_result_that_cannot_be_stored_says_where() -> None:
    """O2, O-23: at once and for good, nothing catches it, and the log names step and value."""
    calls: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        def body(ctx: Any) -> Any:
            calls.append(ctx["attempt"])
            return {"rows": [1, lambda: 1]}

        try:
            await do(step, "report", body)
        except BaseException as error:
            calls.append(repr(error))  # type: ignore[arg-type]
            raise
        return "went on"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "errored"
        text = 'as the step "report" returned a value which is not serialisable'
        assert text in instance.error.message
        assert calls == [1]
        assert states(instance) == [("report", "errored", 1)]
        (line,) = [log.text for log in emulator.logs if log.level == "error"]
        assert "report" in line
        assert "rows[1]" in line


async def test_a_result_that_cannot_be_sent_says_where() -> None:
    """O2, O-23: what cannot even leave the isolate is an attempt that failed, and is retried."""
    calls: list[int] = []

    def body(ctx: Any) -> Any:
        calls.append(ctx["attempt"])
        return {"rows": [1, Thing()]}

    run = one_step(body, {"retries": {"limit": 1, "delay": 0}}, "report")
    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "errored"
        assert "could not be cloned" in instance.error.message
        assert calls == [1, 2]
        said = [log.text for log in emulator.logs if log.level == "error"]
        assert any("report" in text and "rows[1]" in text for text in said)


async def test_options_by_keyword_and_the_bindings_of_the_test() -> None:
    """P15; a call of the test is no fault site."""

    async def fetch(worker: Any, request: Any) -> Any:
        one = await worker.env.FLOW.create(id="one", params={"by": "keyword"})
        return one.id

    async def run(self: Any, event: Any, step: Any) -> Any:
        return (await step.wait_for_event("w", "go"))["payload"]

    async with Emulator(worker(run, fetch=fetch)) as emulator:
        assert (await emulator.fetch("/")).json() == "one"
        two = await emulator.env.FLOW.create({"id": "two"})
        assert two.id == "two"
        await two.send_event({"type": "go", "payload": 2})
        assert (await two.status())["output"] == 2
        assert [site.name for site in emulator.faults.sites if "create" in site.name] == [
            "create.flow"
        ]
        one, _ = emulator.workflows["flow"].instances
        assert one.history[0].data["params"] == {"by": "keyword"}


async def test_batches_in_the_object_form() -> None:
    """B8, B9: partial success, with an error for each item that was not created."""

    async def fetch(worker: Any, request: Any) -> Any:
        def batch(**options: Any) -> Any:
            given = to_js(options, dict_converter=Object.fromEntries)
            return told(lambda: worker.env.FLOW.createBatch(given))

        items = [{"id": "there"}, {"id": "new"}, {"id": "new"}, {}]
        made = await batch(instances=items)
        counted = await batch(count=3)
        return [
            [made.created[0].id, len(made.created), [dict(error) for error in made.errors]],
            len(counted.created),
            await batch(count=0),
            await batch(count=101),
            await batch(instances=[]),
            await batch(instances=[{"id": "batch"}]),
            await batch(),
        ]

    async with Emulator(worker(one_step(1), fetch=fetch)) as emulator:
        await emulator.workflows["flow"].create("there")
        made, counted, *refused = (await emulator.fetch("/")).json()
        exists = "workflows.api.error.instance.already_exists"
        again = "workflows.api.error.instance.duplicate_in_batch"
        assert made == [
            "new",
            2,
            [
                {"index": 0, "id": "there", "code": 10405, "message": exists},
                {"index": 2, "id": "new", "code": 10415, "message": again},
            ],
        ]
        assert counted == 3
        assert [message for _, message in refused] == [
            "(body) count must be a positive integer",
            "(body) batchCreate only supports 100 instances at a time",
            "(body) Batch size exceeds maximum allowed",
            "(instance.invalid_id) Instance ID is invalid",
            "(body) Provided argument is invalid",
        ]
        assert len(emulator.workflows["flow"].instances) == 6


async def test_a_batch_of_deletions() -> None:
    """B11."""

    async def fetch(worker: Any, request: Any) -> Any:
        def delete(*ids: str) -> Any:
            return told(lambda: worker.env.FLOW.deleteBatch(to_js(list(ids))))

        return [
            await delete("a", "missing", "a"),
            await delete(),
            await delete(*map(str, range(101))),
            await delete("b", "no:good"),
        ]

    async with Emulator(worker(sleeper(), fetch=fetch)) as emulator:
        flow = emulator.workflows["flow"]
        for id in ("a", "b"):
            await flow.create(id)
        done, *refused = (await emulator.fetch("/", advance=False)).json()
        missing = "workflows.api.error.instance.not_found"
        assert [one["id"] for one in done["deleted"]] == ["a", "a"]
        assert done["errors"] == [{"id": "missing", "code": 10400, "message": missing}]
        assert [message for _, message in refused] == [
            "(body) batchDeleteInstances should have at least 1 instance",
            "(body) batchDeleteInstances only supports 100 instances at a time",
            "(instance.invalid_id) Instance ID is invalid",
        ]
        assert [one.id for one in flow.instances] == ["b"]
        await emulator.settle()
        assert clock(emulator) == 3600


async def test_one_clock_for_sleeps_delays_and_retries() -> None:
    """O-28: all in order of their due time, and each reads its due time as now."""
    log: list[tuple[str, float]] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        await step.sleep("n", "7 days")
        log.append(("woke", now() / 3600))

    def queue(batch: Any, worker: Any) -> None:
        log.append((batch.messages[0].body, now() / 3600))

    queues = {"consumers": [{"queue": "q", "max_batch_timeout": 0}]}
    config = worker(run, queue=queue, queues=queues)
    async with Emulator(config) as emulator:
        await emulator.workflows["flow"].create()
        await emulator.queues["q"].send("half a day", delaySeconds=43_200)
        await emulator.advance("7 days")
        assert log == [("half a day", 12), ("woke", 168)]
        assert clock(emulator) == 7 * DAY


async def test_held_time_does_not_wake_an_instance() -> None:
    async def fetch(worker: Any, request: Any) -> None:
        await asyncio.sleep(60)

    async with Emulator(worker(sleeper("30 seconds"), fetch=fetch)) as emulator:
        instance = await emulator.workflows["flow"].create()
        with emulator.hold():
            request = asyncio.create_task(emulator.fetch("/"))
            for _ in range(50):
                await asyncio.sleep(0)
            assert (clock(emulator), instance.status) == (0, "waiting")
        await request
        assert (clock(emulator), instance.status) == (60, "complete")


async def test_background_work_of_a_run_that_fails() -> None:
    """O-34: it is told, and the instance is complete."""

    async def run(self: Any, event: Any, step: Any) -> str:
        async def later() -> None:
            raise ValueError("behind the scenes")

        self.ctx.waitUntil(later())
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.settle()
        assert instance.output == "done"
        (finding,) = emulator.findings
        assert finding.code == "background_error"
        assert "behind the scenes" in finding.message
        assert finding.subject == "workflow flow x"


async def test_a_creation_that_is_not_awaited() -> None:
    """O-35."""

    async def fetch(worker: Any, request: Any) -> None:
        worker.env.FLOW.create({"id": "x"})

    async with Emulator(worker(one_step(1), fetch=fetch)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert codes(emulator) == ["never_awaited"]


async def test_an_instance_outlives_the_request_that_created_it() -> None:
    """And the crash of another Worker than its own."""

    async def fetch(worker: Any, request: Any) -> None:
        await worker.env.FLOW.create({"id": "x"})

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> Any:
            await asyncio.sleep(60)
            return ctx["attempt"]

        return await do(step, "s", body)

    owner = worker(run, name="owner")
    front = worker({}, fetch=fetch, name="front")
    front["workflows"] = [{**owner["workflows"][0], "script_name": "owner"}]
    async with Emulator([front, owner], faults="request.GET./#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        (instance,) = emulator.workflows["flow"].instances
        assert await instance.result() == 1


async def test_a_race_leaves_the_loser_running() -> None:
    """C7: what was cut short in `run` goes on in its step, and is saved."""
    log: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        async def slow(ctx: Any) -> str:
            await asyncio.sleep(60)
            log.append("slow")
            return "slow"

        try:
            await asyncio.wait_for(do(step, "s", slow), 5)
        except TimeoutError:
            log.append(now())
        await step.sleep("n", "2 minutes")
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "done"
        assert log == [5, "slow"]
        assert instance.steps[0].output == "slow"
        assert clock(emulator) == 125
        assert codes(emulator) == []


async def test_steps_inside_a_step() -> None:
    """C8: they work, with keys of their own; when the outer one is saved they are not called."""
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def outer(ctx: Any) -> int:
            inner = await do(step, "inner", lambda _: log.append("inner") or 5)
            await step.sleep("nap", "10 seconds")
            return int(inner) + 1

        value = await do(step, "outer", outer)
        await step.sleep("n", "1 minute")
        return value

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(30)
        await instance.evict()
        assert await instance.result() == 6
        assert log == ["inner"]
        assert [step.name for step in instance.steps] == ["outer", "inner", "nap", "n"]
        assert clock(emulator) == 70
        assert codes(emulator) == []


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("where", ["step", "run"])
async def test_any_exception_of_user_code_only_fails_its_instance(
    error: BaseException, where: str
) -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        def body(ctx: Any) -> None:
            raise error

        if where == "run":
            raise error
        await do(step, "s", body, NO_RETRY)

    async with Emulator(worker({"bad": run, "good": one_step(1)})) as emulator:
        bad = await emulator.workflows["bad"].create()
        good = await emulator.workflows["good"].create()
        await emulator.settle()
        assert (bad.status, good.status) == ("errored", "complete")
        assert type(error).__name__ in (bad.error.name, bad.error.message)


async def test_a_body_may_await_what_the_test_sets() -> None:
    event = asyncio.Event()

    async def body(ctx: Any) -> str:
        await event.wait()
        return "set"

    async with Emulator(worker(one_step(body))) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "running"
        event.set()
        await emulator.advance(0)
        assert instance.output == "set"


async def test_results_awaited_together_and_one_of_a_deleted_instance() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        await step.sleep("n", event["payload"] * 1000)
        return event["payload"]

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        several = [await flow.create(f"i{number}", number) for number in range(5)]
        found = await asyncio.gather(*(one.result() for one in several))
        assert (found, clock(emulator)) == ([0, 1, 2, 3, 4], 4)
        gone = await flow.create("gone", 60)
        with emulator.hold():
            waiting = asyncio.create_task(gone.result())
            await asyncio.sleep(0)
        await gone.delete()
        with pytest.raises(WorkflowError, match=r"instance\.not_found"):
            await waiting


@pytest.mark.parametrize(
    ("verb", "log", "status"),
    [
        ("terminate", ["body"], "terminated"),
        ("pause", ["body", "after"], "paused"),
        ("restart", ["body", "body", "after", "end"], "complete"),
    ],
)
async def test_an_instance_that_steers_itself(verb: str, log: list[str], status: str) -> None:
    """Terminated or restarted, no line after that await runs; a pause lets the step end."""
    seen: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        async def body(ctx: Any) -> None:
            seen.append("body")
            if len(seen) == 1:
                await getattr(await self.env.FLOW.get("x"), verb)()
            seen.append("after")

        await do(step, "s", body)
        seen.append("end")

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.settle()
        assert (seen, instance.status) == (log, status)


async def test_background_work_of_a_run() -> None:
    """The instance ends, the work given to `waitUntil` goes on."""
    log: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        async def later() -> None:
            await asyncio.sleep(5)
            log.append(now())

        self.ctx.waitUntil(later())
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.output == "done"
        assert log == []
        await emulator.settle()
        assert log == [5]
        assert codes(emulator) == []


# -- verbs while a step runs -----------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("verb", "before", "after", "ran"),
    [
        ("pause", "waitingForPause", "paused", FIVE[:3]),
        ("terminate", "terminated", "terminated", FIVE[:2]),
        ("restart", "running", "complete", (*FIVE[:2], *FIVE)),
        ("resume", "running", "complete", FIVE),
    ],
)
async def test_a_verb_while_the_third_step_is_held(
    verb: str, before: str, after: str, ran: tuple[str, ...], profile: Any
) -> None:
    """O-27: which bodies run, and the status before and after the gate opens."""
    log: list[str] = []
    async with Emulator(worker(five_steps(log)), profile=profile) as emulator:
        gate = emulator.workflows["flow"].hold_step("three")
        instance = await emulator.workflows["flow"].create("x")
        await gate.reached()
        assert log == ["one", "two"]
        assert instance.status == "running"
        await getattr(instance, verb)()
        assert instance.status == before
        gate.open()
        await emulator.settle()
        assert instance.status == after
        assert log == list(ran)


async def test_pause_goes_on_and_resume_takes_it_up() -> None:
    log: list[str] = []
    async with Emulator(worker(five_steps(log))) as emulator:
        gate = emulator.workflows["flow"].hold_step("three")
        instance = await emulator.workflows["flow"].create("x")
        await gate.reached()
        await instance.pause()
        gate.open()
        await emulator.advance("1 day")
        assert (instance.status, log) == ("paused", list(FIVE[:3]))
        await instance.resume()
        assert await instance.result() == "done"
        assert log == list(FIVE)


async def test_a_broad_except_does_not_swallow_a_pause() -> None:
    """I12: what the local engine throws into `run` is not copied."""
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        for name in ("a", "b"):
            try:
                await step.sleep(name, "1 minute")
            except BaseException as error:
                log.append(f"caught {error!r}")
                raise
            finally:
                log.append(f"finally {name}")
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.pause()
        await emulator.advance("1 hour")
        assert instance.status == "paused"
        assert log == []
        await instance.resume()
        assert await instance.result() == "done"
        assert log == ["finally a", "finally b"]
        assert clock(emulator) == 3600 + 120


async def test_terminating_cuts_the_running_body_off() -> None:
    """I16."""
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        async def body(ctx: Any) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                log.append("finally")

        await do(step, "s", body)

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(10)
        await instance.terminate()
        await emulator.advance("1 hour")
        assert log == []
        assert instance.status == "terminated"
        assert instance.steps[0].state != "complete"


# -- the same from Worker code ---------------------------------------------------------------------


def admin(verb: str, *arguments: Any) -> Any:
    """A fetch handler that calls a verb of the instance `x` and tells its status before, after."""

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.get("x")
        before = (await instance.status())["status"]
        answer = await told(lambda: getattr(instance, verb)(*arguments))
        after = await told(lambda: instance.status())
        return [before, answer, after["status"] if isinstance(after, dict) else after]

    return fetch


@pytest.mark.parametrize(
    ("verb", "arguments", "before", "after"),
    [
        ("pause", (), "waiting", "paused"),
        ("terminate", (), "waiting", "terminated"),
        ("resume", (), "waiting", "waiting"),
        ("restart", (), "waiting", None),
        ("restart", ({"from": {"name": "n", "type": "sleep"}},), "waiting", None),
    ],
)
async def test_verbs_from_a_fetch_handler(
    verb: str, arguments: Any, before: str, after: str | None
) -> None:
    config = worker(sleeper(), fetch=admin(verb, *arguments))
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
        first, answer, last = (await emulator.fetch("/")).json()
        assert (first, answer) == (before, None)
        if after is not None:
            assert last == instance.status == after
            return
        # Restarted: the whole sleep lies ahead again.
        assert await instance.result() == "done"
        assert clock(emulator) == 3660


async def test_delete_from_a_fetch_handler() -> None:
    """I18."""
    config = worker(sleeper(), fetch=admin("delete"))
    async with Emulator(config) as emulator:
        await emulator.workflows["flow"].create("x")
        before, answer, after = (await emulator.fetch("/")).json()
        assert (before, answer) == ("waiting", None)
        assert "instance.not_found" in after[1]
        assert emulator.workflows["flow"].instances == []
        await emulator.settle()
        assert clock(emulator) == 0


async def test_pause_and_resume_from_worker_code_keep_what_was_left() -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.get("x")
        await instance.pause()
        await asyncio.sleep(100)
        paused = (await instance.status())["status"]
        await instance.resume()
        return paused

    async with Emulator(worker(sleeper("60 seconds"), fetch=fetch)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(20)
        assert (await emulator.fetch("/")).json() == "paused"
        await instance.result()
        assert clock(emulator) == 160


async def test_a_restart_from_a_step_by_worker_code() -> None:
    """I20."""
    log: list[str] = []
    handler = admin("restart", {"from": {"name": "four"}})
    async with Emulator(worker(five_steps(log), fetch=handler)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        before, answer, _ = (await emulator.fetch("/")).json()
        assert (before, answer) == ("complete", None)
        assert await instance.result() == "done"
        assert log == [*FIVE, "four", "five"]


async def test_an_instance_that_deletes_itself_stops_at_that_await() -> None:
    """I18."""
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        async def forget(ctx: Any) -> None:
            instance = await self.env.FLOW.get(event["instanceId"])
            log.append("deletes")
            await instance.delete()
            log.append("went on")

        await do(step, "forget", forget)
        log.append("ended")
        return "done"

    async with Emulator(worker(run)) as emulator:
        await emulator.workflows["flow"].create("x")
        await emulator.settle()
        assert log == ["deletes"]
        assert emulator.workflows["flow"].instances == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_status_a_worker_sees(profile: Any) -> None:
    """I4, I6: the local engine has no `waiting` and no `rollback`."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await do(step, "s", {"id": 7})
        await step.sleep("n", "1 minute")
        return {"ok": True}

    async def fetch(worker: Any, request: Any) -> Any:
        return await (await worker.env.FLOW.get("x")).status()

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        await emulator.workflows["flow"].create("x")
        early = (await emulator.fetch("/", advance=False)).json()
        await emulator.settle()
        late = (await emulator.fetch("/")).json()
    if profile == "production":
        assert early == {"status": "waiting", "rollback": None}
        assert late == {"status": "complete", "output": {"ok": True}, "rollback": None}
    else:
        assert early == {
            "status": "running",
            "output": None,
            "error": None,  # there, and undefined (recording wf_status_immediately_in_worker)
            "__LOCAL_DEV_STEP_OUTPUTS": [{"id": 7}],
        }
        assert (late["status"], late["output"]) == ("complete", {"ok": True})
        assert "rollback" not in late


@pytest.mark.parametrize("form", ["send_event", "sendEvent"])
async def test_events_from_worker_code(form: str) -> None:
    """P15, I25: without a payload there is no such key."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        first = await step.wait_for_event("a", "go")
        second = await step.wait_for_event("b", "go")
        return [sorted(first), first["payload"], sorted(second)]

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.get("x")
        send = getattr(instance, form)
        await send({"type": "go", "payload": {"n": [1, None]}})
        await send({"type": "go"})

    async with Emulator(worker(run, fetch=fetch)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.fetch("/")
        keys = ["payload", "timestamp", "type"]
        assert instance.output == [keys, {"n": [1, None]}, ["timestamp", "type"]]


# -- events ----------------------------------------------------------------------------------------


async def test_after_a_wait_timed_out_later_events_reach_later_waits() -> None:
    """O-24; D12."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        seen: list[Any] = []
        for number in range(3):
            try:
                found = await step.wait_for_event(f"w{number}", "tick", timeout="10 seconds")
                seen.append([now(), found["payload"]])
            except Exception as error:
                seen.append([now(), str(error)])
        return seen

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(15)
        await instance.send_event("tick", "first")
        await emulator.advance(5)
        await instance.send_event("tick", "second")
        (timed_out, *rest) = instance.output
        assert timed_out[0] == 10
        assert "Execution timed out after 10000ms" in timed_out[1]
        assert rest == [[15, "first"], [20, "second"]]
        assert [step.state for step in instance.steps] == ["errored", "complete", "complete"]


async def test_parallel_waits_are_served_in_their_order() -> None:
    """D12."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def wait(name: str, kind: str, timeout: str) -> Any:
            return [name, (await step.wait_for_event(name, kind, timeout=timeout))["payload"]]

        return await asyncio.gather(
            wait("first", "a", "2 hours"),
            wait("second", "a", "1 hour"),
            wait("other", "b", "1 day"),
        )

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("a", 1)
        await instance.send_event("b", 2)
        await instance.send_event("c", "nobody's")
        assert [step.state for step in instance.steps] == ["complete", "waiting", "complete"]
        await instance.send_event("a", 3)
        assert instance.output == [["first", 1], ["second", 3], ["other", 2]]


async def test_a_wait_is_served_in_the_very_instant_of_its_deadline_or_not_at_all() -> None:
    """The event comes a moment before the end, and a moment after it."""
    for at, expected in ((59.999, "complete"), (60.001, "errored")):
        async with Emulator(worker(waiter("60 seconds"))) as emulator:
            instance = await emulator.workflows["flow"].create()
            await emulator.advance(at)
            if expected == "complete":
                await instance.send_event("approval", "yes")
                assert instance.output == "yes"
            else:
                with pytest.raises(WorkflowError, match="in_finite_state"):
                    await instance.send_event("approval", "yes")
            assert instance.status == expected


async def test_a_consumed_event_is_not_delivered_again_after_a_pause() -> None:
    """D14: what the local engine does is not copied in production's profile."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await step.wait_for_event("a", "go")
        await step.wait_for_event("b", "go", timeout="1 hour")

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("go", 1)
        await instance.pause()
        await instance.resume()
        assert [step.state for step in instance.steps] == ["complete", "waiting"]
        with pytest.raises(WorkflowFailed, match="Execution timed out after 3600000ms"):
            await instance.result()
        assert clock(emulator) == 3600


# -- result(), wait_for(), settle() ----------------------------------------------------------------


async def test_result_stops_at_its_limit() -> None:
    async with Emulator(worker(sleeper("2 hours"))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(NotSettled, match="workflow flow x: waiting"):
            await instance.result(limit="1 hour")
        assert clock(emulator) <= 3600
        assert instance.status == "waiting"
        assert await instance.result(limit=timedelta(hours=2)) == "done"
        assert clock(emulator) == 7200


async def test_result_of_an_instance_that_can_never_end() -> None:
    """Paused: nothing happens any more."""
    async with Emulator(worker(sleeper())) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.pause()
        with pytest.raises(NotSettled, match="x: paused"):
            await instance.result()


async def test_result_of_a_failed_instance() -> None:
    async with Emulator(worker(one_step(failing(text="broken"), NO_RETRY))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(WorkflowFailed, match="broken") as info:
            await instance.result()
        assert info.value.instance is instance
        assert info.value.status == "errored"
        assert info.value.error == instance.error
        assert instance.output is None
        # Again, at once.
        with pytest.raises(WorkflowFailed):
            await instance.result()


async def test_wait_for_sees_passing_states() -> None:
    async def run(self: Any, event: Any, step: Any) -> str:
        await do(step, "slow", lambda _: asyncio.sleep(30))
        await step.sleep("n", "1 hour")
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.wait_for("running")
        assert clock(emulator) == 0
        await instance.wait_for("waiting")
        assert clock(emulator) == 30
        await instance.wait_for("waiting")
        assert clock(emulator) == 30
        await instance.wait_for("running")
        assert clock(emulator) == 3630
        await instance.wait_for("complete")
        assert clock(emulator) == 3630


async def test_wait_for_a_pause_and_past_event_time_outs() -> None:
    async def run(self: Any, event: Any, step: Any) -> str:
        await do(step, "slow", lambda _: asyncio.sleep(30))
        await told(lambda: step.wait_for_event("w", "go", timeout="2 days"))
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.pause()
        await instance.wait_for("waitingForPause")
        await instance.wait_for("paused")
        assert clock(emulator) == 30
        await instance.resume()
        await instance.wait_for("complete")
        assert clock(emulator) == 30 + 2 * DAY


async def test_wait_for_a_status_that_will_not_come() -> None:
    async with Emulator(worker(one_step(failing(text="broken"), NO_RETRY))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(WorkflowFailed, match="broken") as info:
            await instance.wait_for("complete")
        assert info.value.status == "errored"
        await instance.wait_for("errored")
        with pytest.raises(ValueError, match="waitingForPause"):
            await instance.wait_for("done")
    async with Emulator(worker(sleeper("2 hours"))) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        with pytest.raises(NotSettled):
            await instance.wait_for("complete", limit="1 hour")
        with pytest.raises(WorkflowFailed) as info:
            await instance.wait_for("terminated")
        assert info.value.status == "complete"


async def test_settle_does_not_wait_for_events() -> None:
    async with Emulator(worker(waiter())) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.settle()
        assert (clock(emulator), instance.status) == (0, "waiting")
        await instance.send_event("approval", "yes")
        await emulator.settle()
        assert (clock(emulator), instance.output) == (0, "yes")


async def test_settle_passes_sleeps_beside_an_event_wait() -> None:
    """The sleep is work, the event's time-out is not."""
    config = worker({"sleeps": sleeper("2 days"), "waits": waiter("1 day")})
    async with Emulator(config) as emulator:
        waits = await emulator.workflows["waits"].create()
        sleeps = await emulator.workflows["sleeps"].create()
        await emulator.settle()
        assert clock(emulator) == 2 * DAY
        assert sleeps.status == "complete"
        # Its time came on the way.
        assert waits.status == "errored"
    async with Emulator(config) as emulator:
        waits = await emulator.workflows["waits"].create()
        sleeps = await emulator.workflows["sleeps"].create()
        await emulator.advance("12 hours")
        await sleeps.pause()
        await emulator.settle()
        assert clock(emulator) == DAY / 2
        assert (waits.status, sleeps.status) == ("waiting", "paused")


async def test_settle_without_sleeps() -> None:
    """Retry delays and delayed messages are passed, sleeps are not."""
    tries: list[float] = []

    def body(ctx: Any) -> str:
        tries.append(now())
        if len(tries) == 1:
            raise ValueError("no")
        return "ok"

    async def run(self: Any, event: Any, step: Any) -> str:
        await do(step, "s", body)
        await step.sleep("n", "1 hour")
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.settle(sleeps=False)
        assert tries == [0, 10]
        assert clock(emulator) == 10
        assert instance.status == "waiting"
        assert states(instance)[-1] == ("n", "waiting", 0)
        await emulator.settle(sleeps=False)
        assert clock(emulator) == 10
        await emulator.settle()
        assert clock(emulator) == 3610
        assert instance.status == "complete"


async def test_settle_without_sleeps_while_messages_are_delayed() -> None:
    """The message is due after the sleep's end: it is work, so time passes, and the sleep ends."""
    got: list[float] = []
    queues = {
        "producers": [{"binding": "Q", "queue": "q"}],
        "consumers": [{"queue": "q", "max_batch_timeout": 0}],
    }
    config = worker(
        {"short": sleeper("1 minute"), "long": sleeper("1 day")},
        queue=lambda batch, worker: got.append(now()),
        queues=queues,
    )
    async with Emulator(config) as emulator:
        short = await emulator.workflows["short"].create()
        long = await emulator.workflows["long"].create()
        await emulator.queues["q"].send("x", delaySeconds=600)
        await emulator.settle(sleeps=False)
        assert got == [600]
        assert clock(emulator) == 600
        assert (short.status, long.status) == ("complete", "waiting")


async def test_settle_names_what_is_pending_at_its_limit() -> None:
    async with Emulator(worker(sleeper("3 days"))) as emulator:
        await emulator.workflows["flow"].create("x")
        with pytest.raises(NotSettled, match="workflow flow x"):
            await emulator.settle(limit="1 day")
        await emulator.settle(limit="2 days" if clock(emulator) == DAY else "3 days")
        assert clock(emulator) == 3 * DAY


@pytest.mark.parametrize(
    ("kind", "name", "due"), [("sleep", "nap", 3600), ("retry", "flaky", 10), ("wait", "yes", 7200)]
)
async def test_timers_name_instance_and_step(kind: str, name: str, due: float) -> None:
    """What is pending is told with its owner, by `clock.timers` and by `NotSettled`."""

    async def run(self: Any, event: Any, step: Any) -> None:
        if kind == "sleep":
            await step.sleep("nap", "1 hour")
        elif kind == "retry":
            await do(step, "flaky", failing())
        else:
            await step.wait_for_event("yes", "go", timeout="2 hours")

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        (timer,) = [one for one in emulator.clock.timers if seconds(one.due) == due]
        assert "flow x" in timer.owner
        assert name in timer.owner
        with pytest.raises(NotSettled) as info:
            await instance.result(limit=due - 1)
        assert name in str(info.value)


async def test_a_request_that_waits_for_an_instance_passes_its_sleeps() -> None:
    """The clock moves by itself while a call is in progress."""

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.create({"id": "x"})
        for _ in range(10):
            status = await instance.status()
            if status["status"] == "complete":
                return [status["output"], now()]
            await asyncio.sleep(60)

    async with Emulator(worker(sleeper("90 seconds"), fetch=fetch)) as emulator:
        assert (await emulator.fetch("/")).json() == ["done", 120]


async def test_verbs_return_when_what_is_due_has_run() -> None:
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        log.append((await step.wait_for_event("w", "go"))["payload"])
        await do(step, "s", lambda _: log.append("step"))
        await step.sleep("n", "1 hour")
        log.append("woke")

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("go", "event")
        assert log == ["event", "step"]
        assert clock(emulator) == 0


# -- steps and history -----------------------------------------------------------------------------


async def test_steps_while_they_run() -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        await asyncio.gather(
            do(step, "works", lambda _: asyncio.sleep(60)),
            do(step, "fails", failing()),
            told(lambda: step.sleep("sleeps", "1 hour")),
            told(lambda: step.wait_for_event("waits", "go", timeout="1 hour")),
            return_exceptions=True,
        )

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(5)
        before = instance.steps
        # In the order in which they reached the platform, which the SDK's tasks decide.
        assert [(step.name, step.kind, step.state, step.attempts) for step in before] == [
            ("sleeps", "sleep", "waiting", 0),
            ("waits", "waitForEvent", "waiting", 0),
            ("works", "do", "running", 1),
            ("fails", "do", "waiting", 1),
        ]
        assert {step.ended for step in before} == {None}
        assert {step.started.tzinfo for step in before} == {UTC}
        assert {step.output for step in before} == {None}
        await emulator.advance("2 hours")
        # What was taken is a snapshot.
        assert [step.state for step in before] == ["waiting", "waiting", "running", "waiting"]
        after = {step.name: step for step in instance.steps}
        assert {name: step.state for name, step in after.items()} == {
            "works": "complete",
            "fails": "errored",
            "sleeps": "complete",
            "waits": "errored",
        }
        assert seconds(after["works"].ended) == 60
        assert seconds(after["fails"].ended) == 310
        assert after["fails"].attempts == 6
        assert after["fails"].error is not None
        assert "no" in after["fails"].error.message
        assert after["waits"].error.message == "Execution timed out after 3600000ms"


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_rows_of_a_history(profile: Any) -> None:
    """§11."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        value = await do(step, "s", {"id": 7})
        await step.wait_for_event("w", "go", timeout="1 hour")
        return value

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create(params={"a": 1})
        await emulator.advance(5)
        await instance.send_event("go", "x")
        history = instance.history
        assert events(instance) == [0, 1, 5, 10, 11, 6, 14, 15, 2]
        assert [row.id for row in history] == list(range(1, 10))
        assert [seconds(row.at) for row in history] == [0] * 7 + [5, 5]
        assert all(isinstance(row.event, IntEnum) for row in history)
        assert history[0].event.name == "WORKFLOW_QUEUED"
        assert history[2].event.name == "STEP_START"
        assert [row.target for row in history] == [
            *(None, None),
            *("s-1", "s-1", "s-1", "s-1"),
            *("w-1", "w-1"),
            None,
        ]
        assert history[0].data["params"] == {"a": 1}
        assert history[5].data["result"] == {"id": 7}
        assert history[7].data["payload"] == "x"
        assert history[7].data["type"] == "go"
        assert history[8].data["result"] == {"id": 7}


async def test_the_history_of_a_restart() -> None:
    """I19: logged as a new start; I21: from a step the first two rows stay and are not repeated."""
    log: list[str] = []
    async with Emulator(worker(five_steps(log))) as emulator:
        instance = await emulator.workflows["flow"].create()
        one = [5, 10, 11, 6]
        whole = [0, 1, *one * 5, 2]
        assert events(instance) == whole
        await instance.restart()
        assert events(instance) == whole
        await instance.restart("four")
        assert events(instance) == whole
        assert log == [*FIVE, *FIVE, "four", "five"]


async def test_subscribe() -> None:
    """I26, L5: the past first, then what happens, until the end."""
    async with Emulator(worker(one_step(failing(), {"retries": {"limit": 1, "delay": 10}}))) as e:
        instance = await e.workflows["flow"].create()
        subscription = await instance.subscribe()
        await e.settle()
        kinds: list[str] = []
        while not (item := await subscription.next())["done"]:
            kinds.append(item["value"]["type"])
        assert kinds == [
            "workflow_queued",
            "workflow_started",
            "workflow_running",
            "step_started",
            "attempt_started",
            "attempt_errored",
            "attempt_started",
            "attempt_errored",
            "step_errored",
            "workflow_errored",
        ]


# -- errors, wherever they are seen ----------------------------------------------------------------


class Custom(Exception):
    """A class of the Worker's own."""


ERRORS: dict[str, tuple[Any, tuple[str, str], tuple[str, str]]] = {
    # What a body raises → type and text in `run` → name and text of the instance's error.
    "ValueError": (
        lambda: ValueError("bad"),
        ("ValueError", "ValueError: bad"),
        ("ValueError", "ValueError: bad"),
    ),
    "TypeError": (
        lambda: TypeError("bad"),
        ("TypeError", "TypeError: bad"),
        ("TypeError", "TypeError: bad"),
    ),
    "NonRetryableError": (
        lambda: NonRetryableError("bad"),
        ("NonRetryableError", "bad"),
        ("NonRetryableError", "bad"),
    ),
    "a class of its own": (
        lambda: Custom("bad"),
        ("JsException", "Custom: bad"),
        ("Custom", "bad"),
    ),
    "RangeError": (
        lambda: JsException("RangeError", "bad"),
        ("ValueError", "bad"),
        ("ValueError", "bad"),
    ),
}


@pytest.mark.parametrize(("make", "seen", "shown"), ERRORS.values(), ids=ERRORS)
async def test_errors_wherever_they_are_seen(make: Any, seen: Any, shown: Any) -> None:
    """P12, P14: in `run`, on the step, in the status, in `WorkflowFailed`, after a replay."""
    caught: list[tuple[str, str]] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        def body(ctx: Any) -> None:
            raise make()

        try:
            await do(step, "s", body, NO_RETRY)
        except Exception as error:
            caught.append((type(error).__name__, str(error)))
            await step.sleep("n", "1 hour")
            raise

    async def fetch(worker: Any, request: Any) -> Any:
        return (await (await worker.env.FLOW.get("x")).status())["error"]

    async with Emulator(worker(run, fetch=fetch)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
        await instance.evict()
        with pytest.raises(WorkflowFailed) as info:
            await instance.result()
        assert caught[0] == caught[1]
        name, text = caught[0]
        assert name == seen[0]
        assert seen[1] in text
        error = info.value.error
        assert error == instance.error
        assert error.name == shown[0]
        assert shown[1] in error.message
        assert (await emulator.fetch("/")).json() == error._asdict()
        assert "bad" in instance.steps[0].error.message
        assert error.message in str(info.value)
        assert instance.output is None


# -- rollbacks -------------------------------------------------------------------------------------


def with_rollbacks(log: list[Any], *, fails: str = "") -> Any:
    """Steps A, B and C with handlers, through the platform's own object: the SDK has none (K9)."""

    async def run(self: Any, event: Any, step: Any) -> str:
        async def one(name: str) -> Any:
            def body(ctx: Any) -> str:
                if name == event["payload"]:
                    raise ValueError(f"{name} failed")
                return name.lower()

            def undo(given: Any) -> None:
                error = (given.error.name, given.error.message)
                log.append((given.stepName, getattr(given, "output", None), *error))
                if name == fails:
                    raise ValueError("cannot undo")

            options = {"rollback": undo, "rollbackConfig": NO_RETRY}
            return await step._js_step.do(
                name,
                to_js(NO_RETRY, dict_converter=Object.fromEntries),
                body,
                to_js(options, dict_converter=Object.fromEntries),
            )

        for name in "ABC":
            await one(name)
        await step.sleep("n", "1 hour")
        return "done"

    return run


async def test_56_rollbacks_after_a_failure() -> None:
    """K2, K3, K6."""
    log: list[Any] = []
    async with Emulator(worker(with_rollbacks(log))) as emulator:
        instance = await emulator.workflows["flow"].create(params="C")
        with pytest.raises(WorkflowFailed, match="C failed"):
            await instance.result()
        assert [(name, output) for name, output, *_ in log] == [
            ("C-1", None),
            ("B-1", "b"),
            ("A-1", "a"),
        ]
        assert all("C failed" in message for *_, message in log)
        (row,) = rows(instance, 24)
        assert (row.data["totalSteps"], row.data["completedSteps"]) == (3, 3)
        assert events(instance)[-1] == 3


async def test_56_a_rollback_that_fails_ends_the_chain() -> None:
    """K5."""
    log: list[Any] = []
    async with Emulator(worker(with_rollbacks(log, fails="B"))) as emulator:
        instance = await emulator.workflows["flow"].create(params="C")
        with pytest.raises(WorkflowFailed, match="C failed"):
            await instance.result()
        assert [name for name, *_ in log] == ["C-1", "B-1"]
        (row,) = rows(instance, 25)
        assert (row.data["totalSteps"], row.data["completedSteps"]) == (3, 1)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("whence", ["test", "worker"])
async def test_57_terminate_with_rollback(whence: str, profile: Any) -> None:
    """I17, K8: locally the error's name is lost, and its text stays."""
    log: list[Any] = []
    fetch = admin("terminate", {"rollback": True})
    config = worker(with_rollbacks(log), fetch=fetch)
    async with Emulator(config, profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x", "none")
        await emulator.advance(60)
        if whence == "test":
            await instance.terminate(rollback=True)
        else:
            assert (await emulator.fetch("/")).json()[1] is None
        await emulator.settle()
        assert [(name, output) for name, output, *_ in log] == [
            ("C-1", "c"),
            ("B-1", "b"),
            ("A-1", "a"),
        ]
        name = "Terminated" if profile == "production" else "Error"
        assert {tuple(error) for _, _, *error in log} == {
            (name, "Instance terminated during rollback")
        }
        assert instance.status == "terminated"
        assert clock(emulator) == 60


async def test_terminate_without_rollback_calls_no_handler() -> None:
    log: list[Any] = []
    async with Emulator(worker(with_rollbacks(log))) as emulator:
        instance = await emulator.workflows["flow"].create("x", "none")
        await instance.terminate()
        await emulator.settle()
        assert (log, instance.status) == ([], "terminated")


async def test_retention_is_no_timer_and_hides_none() -> None:
    """What is pending is a wait beyond the end of another instance's retention (O-21)."""

    async def run(self: Any, event: Any, step: Any) -> None:
        if event["payload"]:
            await step.wait_for_event("yes", "go", timeout="60 days")

    async with Emulator(worker(run)) as emulator:
        flow = emulator.workflows["flow"]
        done = await flow.create("done", False)
        await emulator.settle()
        assert done.status == "complete"
        assert emulator.clock.timers == []
        waits = await flow.create("waits", True)
        await emulator.advance("10 minutes")  # so that its memory was dropped, too
        (timer,) = emulator.clock.timers
        assert seconds(timer.due) == 60 * DAY
        assert "flow waits: the time-out of the wait 'yes'" in timer.owner
        with pytest.raises(NotSettled) as info:
            await waits.result(limit="1 day")
        assert "the wait 'yes'" in str(info.value)
        assert "retention" not in str(info.value)
