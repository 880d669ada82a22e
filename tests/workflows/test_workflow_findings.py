"""Findings about Workflows: what is wrong with a `run` though nothing failed, and on which line."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker as worker_file
from workflow_bench import NO_RETRY, codes, do, failing, one_step, worker

from emulator import Emulator, WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

HEAD = """
import asyncio
import time
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch

seen = []

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return Response.json(seen)

class Other(WorkflowEntrypoint):
    async def run(self, event, step):
        return "other"

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
"""
WORKFLOWS = [
    {"binding": "FLOW", "name": "flow", "class_name": "Flow"},
    {"binding": "OTHER", "name": "other", "class_name": "Other"},
]
QUEUES = {"producers": [{"binding": "Q", "queue": "q"}]}


def flow(folder: Path, body: str) -> dict[str, Any]:
    """A Worker file whose `run` has this body; a line `# HERE` is the one findings name."""
    lines = "\n".join(line for line in body.strip("\n").splitlines())
    return worker_file(folder, HEAD + indent(lines, " " * 8), workflows=WORKFLOWS, queues=QUEUES)


def here(config: dict[str, Any], mark: str = "# HERE") -> str:
    """Where the marked line of the file is."""
    with open(config["main"], encoding="utf-8") as file:
        (number,) = [n for n, line in enumerate(file, 1) if mark in line]
    return f"entry.py:{number}"


async def found(config: Any, code: str, **options: Any) -> list[Any]:
    """The findings of this code after an instance was evicted in its sleep and ended."""
    emulator = await evicted(config, **options)
    return [finding for finding in emulator.findings if finding.code == code]


async def evicted(config: Any, **options: Any) -> Emulator:
    """The emulator, closed, in which an instance was evicted in its sleep and then ended."""
    async with Emulator(config, **options) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
        await instance.evict()
        await emulator.settle()
        assert instance.status == "complete", instance.error
    return emulator


# -- effect_outside_step ---------------------------------------------------------------------------

EFFECTS = {
    "send": 'await self.env.Q.send("x")',
    "send_batch": 'await self.env.Q.sendBatch([{"body": "x"}])',
    "fetch": 'await fetch("https://mail.example/send", method="POST")',
    "create": "await self.env.OTHER.create()",
    "create_batch": 'await self.env.OTHER.create_batch([{"params": 1}])',
    "event": 'await (await self.env.FLOW.get("x")).send_event({"type": "go", "payload": 1})',
}


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
async def test_an_effect_between_steps(tmp_path: Path, respx_mock: Any, effect: str) -> None:
    """O-16: said once, though it happened twice, with the line."""
    respx_mock.route(host="mail.example").respond(202)
    config = flow(tmp_path, f'{effect}  # HERE\nawait step.sleep("n", "1 hour")')
    (finding,) = await found(config, "effect_outside_step")
    assert finding.location == here(config)
    assert "step" in finding.message
    assert finding.worker == "worker"
    assert "flow x" in finding.subject


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
async def test_an_effect_in_a_step_is_none(tmp_path: Path, respx_mock: Any, effect: str) -> None:
    """Nor is one in a task or a function that the body of a step calls."""
    respx_mock.route(host="mail.example").respond(202)
    body = f"""
async def helper():
    {effect}

@step.do("direct")
async def direct():
    {effect}

@step.do("task")
async def task():
    await asyncio.create_task(helper())
    await asyncio.gather(helper(), helper())

await direct()
await task()
await step.sleep("n", "1 hour")
"""
    assert await found(flow(tmp_path, body), "effect_outside_step") == []


async def test_asking_the_platform_is_no_effect(tmp_path: Path) -> None:
    body = """
instance = await self.env.FLOW.get("x")
await instance.status()
print("a line")
await step.sleep("n", "1 hour")
"""
    emulator = await evicted(flow(tmp_path, body))
    assert codes(emulator) == []


READS = {
    "the clock": (
        "time.time()",
        "time.monotonic()",
        "datetime.datetime.now()",
        "datetime.date.today()",
        "js.Date.now()",
        "await helper(time.time)",
    ),
    "randomness": (
        "random.random()",
        "random.choice([1, 2])",
        "random.Random()",
        "uuid.uuid4()",
        "secrets.token_hex()",
        "os.urandom(8)",
        "js.Math.random()",
        "js.crypto.randomUUID()",
    ),
}
IMPORTS = "import datetime, js, logging, os, random, secrets, uuid\n"
HELPER = "async def helper(function):\n    return function()\n"


@pytest.mark.parametrize(("what", "call"), [(what, c) for what in READS for c in READS[what]])
async def test_what_each_replay_reads_anew(tmp_path: Path, what: str, call: str) -> None:
    """O-16: the clock and randomness are told of once for a line, as effects are."""
    body = f"{IMPORTS}{HELPER}{call}  # HERE\nawait step.sleep('n', '1 hour')"
    config = flow(tmp_path, body)
    (finding,) = await found(config, "effect_outside_step")
    assert finding.message.startswith(f"{what} is read outside a step: ")
    line = here(config, "return function()") if "helper" in call else here(config)
    assert finding.location == line


@pytest.mark.parametrize("call", [call for calls in READS.values() for call in calls])
async def test_a_step_may_read_what_it_likes(tmp_path: Path, call: str) -> None:
    body = f"""{IMPORTS}{HELPER}
@step.do("read")
async def read():
    {call}

await read()
await step.sleep("n", "1 hour")
"""
    assert await found(flow(tmp_path, body), "effect_outside_step") == []


async def test_what_a_library_reads_for_itself_is_not_told(tmp_path: Path) -> None:
    """A log record has a time stamp, and a generator with a seed is the same each time."""
    body = f"""{IMPORTS}
logging.getLogger().warning("a line")
random.Random(7).random()
await step.sleep("n", "1 hour")
"""
    assert await found(flow(tmp_path, body), "effect_outside_step") == []


async def test_effects_elsewhere_in_a_worker_are_none(tmp_path: Path) -> None:
    """A fetch handler has no steps."""

    async def fetch(worker: Any, request: Any) -> None:
        await worker.env.Q.send("x")
        await worker.env.FLOW.create()

    config = worker(one_step(1), fetch=fetch, queues=QUEUES)
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
    assert [code for code in codes(emulator) if code != "no_consumer"] == []


# -- replay_diverged -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["production", "miniflare"])
async def test_a_step_whose_name_holds_the_time(tmp_path: Path, profile: Any) -> None:
    """O-17: the body runs again, as on the platform, and the finding names both steps."""
    body = """
@step.do(f"charge-{int(time.time()) % 1000}")
async def charge():
    seen.append("charged")

await charge()  # HERE
await step.sleep("n", "1 hour")
"""
    config = flow(tmp_path, body)
    async with Emulator(config, profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
        await instance.evict()
        await emulator.settle()
        names = [step.name for step in instance.steps if step.kind == "do"]
        assert len(names) == 2
        (finding,) = [one for one in emulator.findings if one.code == "replay_diverged"]
        assert all(name in finding.message for name in names)
        assert finding.location == here(config)
        assert "flow x" in finding.subject


async def test_steps_in_another_order(tmp_path: Path) -> None:
    """The second execution skips a step that was there: the next one says so."""
    body = """
seen.append("run")

@step.do("first")
async def first():
    return 1

@step.do("second")
async def second():
    return 2

@step.do("third")
async def third():
    return 3

if len(seen) == 1:
    await first()
await second()
await step.sleep("n", "1 hour")
await third()  # HERE
"""
    config = flow(tmp_path, body)
    # The Worker's globals are its own: keep them over the eviction.
    config["main"] = _module(config["main"])
    (finding,) = await found(config, "replay_diverged")
    assert "first" in finding.message
    assert "third" in finding.message
    assert finding.location is not None
    line = here({"main": config["main"].__file__}).rpartition(":")[2]
    assert finding.location.rpartition(":")[2] == line


def _module(path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("entry_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PARALLEL = """
@step.do("slow")
async def slow():
    await asyncio.sleep(30)

@step.do("after slow")
async def after_slow():
    pass

@step.do("quick")
async def quick():
    pass

@step.do("after quick")
async def after_quick():
    pass

async def one():
    await slow()
    await after_slow()
    await step.sleep("a", "1 minute")

async def other():
    await quick()
    await after_quick()
    await step.sleep("b", "2 minutes")

await asyncio.gather(one(), other())
await step.sleep("n", "1 hour")
"""


@pytest.mark.parametrize(
    "plan",
    [
        "step.flow.slow#1:evict",
        "step.flow.slow#1:crash_saved",
        "step.flow.slow#1:crash_after",
        "step.flow.quick#1:evict",
        "step.flow.after quick#1:crash_saved",
        "sleep.flow.a#1:evict",
        "sleep.flow.b#1:evict",
        "step.*.*#*:evict; sleep.*.*#*:evict",
    ],
)
async def test_parallel_branches_do_not_diverge(tmp_path: Path, plan: str) -> None:
    """A branch that was behind gets ahead at a replay: the same steps, in another order."""
    config = flow(tmp_path, PARALLEL)
    async with Emulator(config, faults=plan) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.settle()
        assert instance.status == "complete"
        assert codes(emulator) == []


@pytest.mark.parametrize("at", [0, 10, 30, 31, 95, 150, 200])
async def test_parallel_branches_do_not_diverge_at_any_moment(tmp_path: Path, at: float) -> None:
    """As above, with an eviction that no fault made: a struck run makes no findings anyway."""
    async with Emulator(flow(tmp_path, PARALLEL)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(at)
        await instance.evict()
        await emulator.settle()
        assert instance.status == "complete"
        assert codes(emulator) == []


async def test_branches_that_depend_on_results_do_not_diverge(tmp_path: Path) -> None:
    """C10: what depends on results, caught errors and the event is the same at each replay."""
    body = """
@step.do("look")
async def look():
    return 7

@step.do("fails", config={"retries": {"limit": 0, "delay": 0}})
async def fails():
    raise ValueError("no")

@step.do("seven")
async def seven():
    pass

@step.do("caught")
async def caught():
    pass

if await look() == 7:
    await seven()
try:
    await fails()
except ValueError:
    await caught()
await step.sleep("n", "1 hour")
for _ in range(2):
    await seven()
"""
    emulator = await evicted(flow(tmp_path, body))
    assert codes(emulator) == []


async def test_a_restart_does_not_diverge(tmp_path: Path) -> None:
    """What was wiped is not expected."""
    body = """
@step.do("a")
async def a():
    pass

await a()
await step.sleep("n", "1 hour")
"""
    async with Emulator(flow(tmp_path, body)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.restart()
        await instance.result()
        await instance.restart("a")
        await instance.result()
        assert codes(emulator) == []


# -- sleep_changed ---------------------------------------------------------------------------------


async def test_a_sleep_whose_duration_changes(tmp_path: Path) -> None:
    """C2, D8: production keys it by name and count, and keeps the wake time of the first call."""
    body = """
left = 3600 - int(time.time()) % 3600
await step.sleep("n", f"{left} seconds")  # HERE
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(600)
        await instance.evict()
        await instance.result()
        assert (emulator.now.hour, emulator.now.minute) == (1, 0)
        assert len([step for step in instance.steps if step.kind == "sleep"]) == 1
        (finding,) = [one for one in emulator.findings if one.code == "sleep_changed"]
        assert finding.location == here(config)
        assert "'n'" in finding.message
        assert "started with 1 h, and a replay asked for 50 min" in finding.message
        assert set(codes(emulator)) == {"effect_outside_step", "sleep_changed"}


async def test_a_moment_that_changes(tmp_path: Path) -> None:
    body = """
await step.sleep_until("n", (time.time() + 3600) * 1000)  # HERE
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(600)
        await instance.evict()
        await instance.result()
        assert (emulator.now.hour, emulator.now.minute) == (1, 0)
        (finding,) = [one for one in emulator.findings if one.code == "sleep_changed"]
        assert finding.location == here(config)


async def test_a_moment_that_stays_is_no_finding(tmp_path: Path) -> None:
    """`sleep_until` of one instant is another duration at each replay, and the same sleep."""
    body = """
await step.sleep_until("n", 1767229200000)
await step.sleep("m", "1 hour")
"""
    async with Emulator(flow(tmp_path, body)) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        for _ in range(3):
            await emulator.advance("30 minutes")
            await instance.evict()
        await instance.result()
        assert (emulator.now.hour, emulator.now.minute) == (2, 0)
        assert codes(emulator) == []


# -- what is lost, and what is no finding ----------------------------------------------------------


async def test_a_step_that_is_not_awaited(tmp_path: Path) -> None:
    """C9."""
    body = """
@step.do("s")
async def s():
    seen.append("ran")

s()  # HERE
await step.sleep("n", "1 hour")
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.result()
        assert [step.name for step in instance.steps] == ["n"]
        (finding,) = emulator.findings
        assert (finding.code, finding.location) == ("never_awaited", here(config))


async def test_a_task_with_a_step_that_run_leaves_behind(tmp_path: Path) -> None:
    """C9: the instance is complete."""
    body = """
@step.do("s")
async def s():
    await asyncio.sleep(60)

asyncio.create_task(s())  # HERE
await step.sleep("n", "1 second")
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.result()
        await emulator.settle()
        (finding,) = emulator.findings
        assert (finding.code, finding.location) == ("floating_task", here(config))


async def test_a_denied_request_in_a_step(tmp_path: Path) -> None:
    body = """
@step.do("s", config={"retries": {"limit": 0, "delay": 0}})
async def s():
    await fetch("https://nobody.example/")  # HERE

try:
    await s()
except Exception:
    pass
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await instance.result()
        (finding,) = emulator.findings
        assert (finding.code, finding.location) == ("outbound_unmocked", here(config))


async def test_failing_attempts_and_instances_are_no_findings() -> None:
    """The platform retries steps, and an instance may end errored."""
    async with Emulator(worker(one_step(failing(), NO_RETRY))) as emulator:
        for _ in range(2):
            await emulator.workflows["flow"].create()
        await emulator.settle()
        assert [one.status for one in emulator.workflows["flow"].instances] == ["errored"] * 2
    assert codes(emulator) == []


async def test_a_struck_run_makes_no_findings(tmp_path: Path) -> None:
    """What a fault caused is judged by the scenario's assertions."""
    body = """
@step.do("s")
async def s():
    pass

await s()
await self.env.Q.send("x")
await step.sleep("n", "1 hour")
"""
    config = flow(tmp_path, body)
    async with Emulator(config, faults="step.flow.s#1:evict") as emulator:
        await (await emulator.workflows["flow"].create("x")).result()
        effects = [one for one in emulator.findings if one.code == "effect_outside_step"]
        # The replay was not struck, and has the effect as well: that is the Worker's own.
        assert len(effects) == 1


async def test_an_error_of_a_step_names_the_line_in_the_log(tmp_path: Path) -> None:
    body = """
@step.do("s", config={"retries": {"limit": 0, "delay": 0}})
async def s():
    raise LookupError("nothing there")  # HERE

await s()
"""
    config = flow(tmp_path, body)
    async with Emulator(config) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        assert "nothing there" in instance.error.message
        file, _, line = here(config).rpartition(":")
        text = "\n".join(log.text for log in emulator.logs)
        assert f'"{file}", line {line}' in text
        assert "LookupError: nothing there" in text


async def test_a_class_that_is_not_there() -> None:
    """The text lists what there is."""
    config = worker(one_step(1))
    config["workflows"][0]["class_name"] = "Flo"
    with pytest.raises(WorkerLoadError, match=r"needs Flo.* Flow$"):
        Emulator(config)


async def test_the_step_of_another_emulator_does_not_leak_into_the_next() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, "s", 1)

    for _ in range(2):
        async with Emulator(worker(run)) as emulator:
            assert await (await emulator.workflows["flow"].create("x")).result() == 1
        assert codes(emulator) == []
