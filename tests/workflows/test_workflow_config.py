"""Workflows in a config: what is read, what is refused with which text, what limits follow.

Texts after `wrangler:` are B16 and B17 of workflows.md; limits are those of its chapter 15.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import write
from workflow_bench import codes, do, one_step, told, worker

from emulator import ConfigError, Emulator
from emulator.config import ConfigWarning

if TYPE_CHECKING:
    from pathlib import Path

FLOW: dict[str, Any] = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
NAME_RULE = (
    'wrangler: "workflows[0]" binding "name" field is invalid. Workflow names must be 1-64 '
    "characters long, start with a letter, number, or underscore, and may only contain letters, "
    "numbers, underscores, or hyphens."
)
STEPS = 'wrangler: "workflows[0]" bindings "limits.steps" field must be a positive integer but got '
MISSING = 'wrangler: "workflows[0]" bindings should have a string "{}" field but got '
SCHEDULES = 'wrangler: "workflows[0]" bindings "schedules" field must not '


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in FLOW.items() if name != key}


def with_workflows(*workflows: Any) -> dict[str, Any]:
    return {**worker(one_step(1)), "workflows": list(workflows)}


WRONG: dict[str, tuple[Any, str]] = {
    "name begins with -": ({**FLOW, "name": "-x"}, NAME_RULE),
    "name with a dot": ({**FLOW, "name": "a.b"}, NAME_RULE),
    "name too long": ({**FLOW, "name": "x" * 65}, NAME_RULE),
    "no binding": (without("binding"), MISSING.format("binding")),
    "no name": (without("name"), MISSING.format("name")),
    "no class": (without("class_name"), MISSING.format("class_name")),
    "binding is a number": ({**FLOW, "binding": 5}, MISSING.format("binding")),
    "no steps": ({**FLOW, "limits": {"steps": 0}}, f"{STEPS}0."),
    "steps are text": ({**FLOW, "limits": {"steps": "3"}}, f'{STEPS}"3".'),
    "steps are a flag": ({**FLOW, "limits": {"steps": True}}, f"{STEPS}true."),
    "half a step": ({**FLOW, "limits": {"steps": 1.5}}, f"{STEPS}1.5."),
    "schedule is empty": ({**FLOW, "schedules": ""}, f"{SCHEDULES}be an empty string."),
    "no schedule": ({**FLOW, "schedules": []}, f"{SCHEDULES}be an empty array."),
    "one is empty": ({**FLOW, "schedules": ["* * * * *", ""]}, f"{SCHEDULES}contain empty"),
    "no table": ("flow", "workflows[0] is"),
}


@pytest.mark.parametrize(("workflow", "text"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(workflow: Any, text: str) -> None:
    with pytest.raises(ConfigError) as info:
        Emulator(with_workflows(workflow))
    assert text in str(info.value)
    assert "workflows[0]" in str(info.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as info:
        Emulator(with_workflows({**FLOW, "name": "a.b"}, {"binding": "B", "name": "b"}))
    assert "workflows[0].name" in str(info.value)
    assert "workflows[1].class_name" in str(info.value)


def test_two_workflows_of_one_name_or_binding() -> None:
    with pytest.raises(ConfigError, match="FLOW is the name of more than one binding"):
        Emulator(with_workflows(FLOW, {**FLOW, "name": "other"}))
    with pytest.raises(ConfigError, match=r"workflows\[1\]\.name is \"flow\""):
        Emulator(with_workflows(FLOW, {**FLOW, "binding": "B", "class_name": "Other"}))


@pytest.mark.parametrize("name", ["x" * 64, "_a", "9-x", "A_b-1"])
def test_good_names(name: str) -> None:
    with Emulator(with_workflows({**FLOW, "name": name})) as emulator:
        assert list(emulator.workflows) == [name]


def test_two_bindings_of_one_workflow() -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        await worker.env.FLOW.create({"id": "a"})
        return (await worker.env.TWO.get("a")).id

    config = worker(one_step(1), fetch=fetch)
    config["workflows"].append({**FLOW, "binding": "TWO"})
    with Emulator(config) as emulator:
        assert list(emulator.workflows) == ["flow"]
        assert emulator.run(emulator.fetch("/")).json() == "a"


def test_a_step_limit_beyond_production_s() -> None:
    """B17: a warning only."""
    config = with_workflows({**FLOW, "limits": {"steps": 25_001}})
    with pytest.warns(ConfigWarning) as caught:
        Emulator(config).close()
    (warning,) = caught
    text = (
        "has a step limit of 25001, which exceeds the production maximum of 25,000. This "
        "configuration may not work when deployed."
    )
    assert text in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Emulator(with_workflows({**FLOW, "limits": {"steps": 25_000}})).close()


@pytest.mark.parametrize("schedules", ["0 0 * * *", ["0 9 * * mon", "0 0 * * *"]])
def test_a_schedule_makes_instances(schedules: Any) -> None:
    """B11, B14: an id and an event that tell of the cron; here by `scheduled()`."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        seen.append(event["schedule"])
        return str(event["payload"])

    config = worker(run)
    config["workflows"][0]["schedules"] = schedules
    at = datetime(2026, 1, 2, tzinfo=UTC)
    with Emulator(config, profile="miniflare") as emulator:
        emulator.run(emulator.advance("3 days"))
        assert emulator.workflows["flow"].instances == []  # the local runtime fires none
        assert emulator.run(emulator.scheduled("0 0 * * *", at)) == ("ok", None)
        (instance,) = emulator.workflows["flow"].instances
        assert instance.id == "0 0 * * *-1767312000000"
        assert (instance.status, instance.output) == ("complete", "{}")
        assert seen == [{"cron": "0 0 * * *", "scheduledTime": 1767312000000}]
        assert instance.history[0].data["trigger"] == {"source": 3}  # cron
        emulator.run(emulator.scheduled("0 0 * * *", at))  # at least once
        assert len(emulator.workflows["flow"].instances) == len(seen) == 1
        emulator.run(emulator.scheduled("0 0 * * *"))
        assert len(emulator.workflows["flow"].instances) == 2
        if isinstance(schedules, str):
            emulator.run(emulator.advance(60))
            emulator.run(emulator.scheduled())  # the only cron there is
            assert len(emulator.workflows["flow"].instances) == 3
        assert codes(emulator) == []


def test_a_schedule_fires_as_time_passes() -> None:
    """B11, B14."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        seen.append(event["schedule"]["scheduledTime"])

    config = worker(run)
    config["workflows"][0]["schedules"] = ["0 0 * * *", "0 9 * * mon"]
    with Emulator(config) as emulator:  # starts on a Thursday
        emulator.run(emulator.advance("5 days"))
        ids = [instance.id for instance in emulator.workflows["flow"].instances]
        days = [1767312000000 + day * 86_400_000 for day in range(5)]
        assert ids[:3] == [f"0 0 * * *-{day}" for day in days[:3]]
        assert ids[4] == f"0 9 * * mon-{days[3] + 9 * 3_600_000}"
        assert seen == sorted([*days, days[3] + 9 * 3_600_000])


def test_a_cron_may_be_the_handlers_and_a_workflow_s() -> None:
    ran: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        ran.append("run")

    async def handle(self: Any, controller: Any, env: Any, ctx: Any) -> None:
        ran.append(f"handler {controller.cron}")

    config = worker(run, triggers={"crons": ["0 0 * * *", "5 5 * * *"]})
    config["main"].Default.scheduled = handle
    config["workflows"][0]["schedules"] = ["0 0 * * *", "6 6 * * *"]
    with Emulator(config) as emulator:
        for cron in (None, "5 5 * * *", "6 6 * * *", "7 7 * * *"):
            emulator.run(emulator.scheduled(cron))
    assert ran == ["run", "handler 0 0 * * *", "handler 5 5 * * *", "run", "handler 7 7 * * *"]


def test_an_unknown_key_warns() -> None:
    with pytest.warns(ConfigWarning, match=r"workflows\[0\]\.script is not a known key"):
        Emulator(with_workflows({**FLOW, "script": "x"})).close()


def test_a_workflow_of_a_worker_that_is_not_there() -> None:
    """It is told before, or when it is used."""

    async def fetch(worker: Any, request: Any) -> Any:
        return await told(lambda: worker.env.FLOW.create())

    config = worker(one_step(1), fetch=fetch)
    config["workflows"][0]["script_name"] = "other"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with Emulator(config) as emulator:
                emulator.run(emulator.fetch("/"))
                said = [*map(str, caught), *map(str, emulator.findings)]
        except ConfigError as error:
            said = [str(error)]
    assert any("other" in text and "FLOW" in text for text in said) or any(
        "script_name" in text for text in said
    )


def test_files_in_both_forms(tmp_path: Path) -> None:
    """The same Workflow from JSONC and from TOML, and an environment has its own."""
    entry = """
    from workers import WorkerEntrypoint, WorkflowEntrypoint

    class Default(WorkerEntrypoint):
        pass

    class Flow(WorkflowEntrypoint):
        async def run(self, event, step):
            return event["workflowName"]
    """
    top = {
        "name": "app",
        "main": "src/entry.py",
        "compatibility_date": "2026-09-01",
        "compatibility_flags": ["python_workers"],
        "workflows": [FLOW],
        "env": {"staging": {"workflows": [{**FLOW, "name": "flow-staging"}]}},
    }
    toml = """
    name = "app"
    main = "src/entry.py"
    compatibility_date = "2026-09-01"
    compatibility_flags = ["python_workers"]

    [[workflows]]
    binding = "FLOW"
    name = "flow"
    class_name = "Flow"

    [[env.staging.workflows]]
    binding = "FLOW"
    name = "flow-staging"
    class_name = "Flow"
    """
    write(tmp_path, {"src/entry.py": entry, "wrangler.toml": toml})
    write(tmp_path, {"wrangler.jsonc": json.dumps(top)})
    for name in ("wrangler.jsonc", "wrangler.toml"):
        for environment, workflow in ((None, "flow"), ("staging", "flow-staging")):
            with Emulator(tmp_path / name, environment=environment) as emulator:
                assert list(emulator.workflows) == [workflow]
                instance = emulator.run(emulator.workflows[workflow].create())
                assert instance.output == workflow


@pytest.mark.parametrize(
    ("plan", "limits", "limit"),
    [("free", None, 1024), ("paid", None, 10_000), ("free", {"steps": 10}, 10)],
)
def test_the_step_limit_of_a_plan(plan: Any, limits: Any, limit: int) -> None:
    """T1, chapter 15: so many are allowed, the next is refused."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        for number in range(limit):
            # Past the SDK, which costs more than the engine.
            await step._js_step.do(f"s{number}", lambda ctx: 1)
        return await told(lambda: do(step, "one too many", 1))

    with Emulator(worker(run, limits=limits), plan=plan) as emulator:
        instance = emulator.run(emulator.workflows["flow"].create())
        name, message = emulator.run(instance.result())
        assert name == "WorkflowFatalError"
        assert message.startswith(f"The limit of {limit} steps has been reached.")
        assert len(instance.steps) == limit


def test_the_concurrency_of_the_free_plan() -> None:
    """Chapter 15: 100 run at once, those that wait do not count; the rest is queued (I6)."""
    running: list[int] = []
    peak: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        async def body(ctx: Any) -> None:
            running.append(1)
            peak.append(len(running))
            await asyncio.sleep(10)
            running.pop()

        await do(step, "s", body)
        await step.sleep("n", "1 hour")

    with Emulator(worker(run), plan="free") as emulator:
        flow = emulator.workflows["flow"]
        emulator.run(flow.create_batch([{"id": f"i{n}"} for n in range(100)]))
        emulator.run(flow.create_batch([{"id": f"j{n}"} for n in range(30)]))
        assert [one.status for one in flow.instances] == ["running"] * 100 + ["queued"] * 30
        emulator.run(emulator.advance(10))
        assert [one.status for one in flow.instances] == ["waiting"] * 100 + ["running"] * 30
        emulator.run(emulator.settle())
        assert max(peak) == 100
        assert (emulator.now.hour, emulator.now.second) == (1, 20)
        assert codes(emulator) == []


def test_what_becomes_of_queued_instances() -> None:
    """I9, I16: a pause has no effect on one, terminating it ends it; a restart keeps the queue."""
    ran: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        async def body(ctx: Any) -> None:
            ran.append(event["instanceId"])
            await asyncio.sleep(10)

        await do(step, "s", body)

    with Emulator(worker(run), plan="free") as emulator:
        flow = emulator.workflows["flow"]
        emulator.run(flow.create_batch([{"id": f"i{n}"} for n in range(100)]))
        paused, ended, last = [emulator.run(flow.create(id)) for id in ("p", "t", "l")]
        emulator.run(paused.pause())
        emulator.run(ended.terminate())
        assert [one.status for one in (paused, ended, last)] == ["queued", "terminated", "queued"]
        emulator.run(emulator.advance(5))
        emulator.run(emulator.restart())
        assert [one.status for one in (paused, ended, last)] == ["queued", "terminated", "queued"]
        emulator.run(emulator.advance(10))
        assert ran[-2:] == ["p", "l"]
        emulator.run(emulator.settle())
        assert "t" not in ran
        assert {one.status for one in flow.instances} == {"complete", "terminated"}
        assert len(flow.instances) == 103


@pytest.mark.parametrize(
    ("size", "refused"), [(1_048_576 - 100, False), (1_048_576 + 1, True)], ids=["fits", "too big"]
)
@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_the_size_of_params_and_payloads(size: int, refused: bool, profile: Any) -> None:
    """B15, I25: at most 1 MiB; the local engine does not look."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        return len((await step.wait_for_event("w", "go"))["payload"])

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.create({"id": "small"})
        send = lambda: instance.send_event({"type": "go", "payload": "x" * size})  # noqa: E731
        create = lambda: worker.env.FLOW.create({"params": "x" * size})  # noqa: E731
        made = await told(create)
        return [made if isinstance(made, list) else None, await told(send)]

    refused = refused and profile == "production"
    with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        made, sent = emulator.run(emulator.fetch("/")).json()
        for answer in (made, sent):
            assert (answer is not None) is refused
            if refused:
                assert answer[0] == "WorkflowError"
                assert "1MiB" in answer[1]
        first, *others = emulator.workflows["flow"].instances
        assert first.status == ("waiting" if refused else "complete")
        assert len(others) == (0 if refused else 1)
