"""The checkers over a whole run, and the outside service that remembers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import worker as worker_file

from emulator import Emulator, PlanError
from emulator.testing import Ledger

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

MAIL = "https://mail.example/send"
SITE = "fetch.POST.mail.example/send"
QUEUES = {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs", "max_retries": 2}],
}


def mailer(folder: Path, headers: str, **options: Any) -> dict[str, Any]:
    """A consumer that sends a mail for each message."""
    source = f"""
    import uuid
    from workers import WorkerEntrypoint, fetch

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            for message in batch.messages:
                await fetch("{MAIL}", method="POST", headers={headers})
    """
    return worker_file(folder, source, queues=QUEUES, **options)


KEYED = '{"Idempotency-Key": message.body}'
RANDOM = '{"Idempotency-Key": str(uuid.uuid4())}'


@pytest.mark.parametrize(
    ("headers", "effects"), [(KEYED, 1), (RANDOM, 2), ("{}", 2)], ids=["keyed", "random", "none"]
)
@pytest.mark.parametrize("by_route", [True, False])
async def test_effects_are_counted_by_key(
    tmp_path: Path, respx_mock: Any, headers: str, effects: int, by_route: bool
) -> None:
    """Two deliveries: one effect with one key, two with two or with none."""
    route = respx_mock.post(MAIL).respond(202)
    config = mailer(tmp_path, headers)
    async with Emulator(config, faults="batch.jobs#1:lose_ack") as emulator:
        await emulator.queues["jobs"].send("order-1")
        await emulator.settle()
        target = route if by_route else SITE
        if effects == 1:
            emulator.check.exactly_once(target)
            with pytest.raises(AssertionError, match="happened once, not twice"):
                emulator.check.exactly_once(target, times=2)
        else:
            emulator.check.exactly_once(target, times=2)
            with pytest.raises(AssertionError) as info:
                emulator.check.exactly_once(target)
            text = str(info.value)
            assert "happened twice, not once (2 requests)" in text
            assert ("(no key), (no key)" in text) is (headers == "{}")
        assert route.call_count == 2


@pytest.mark.respx(assert_all_called=False)
async def test_what_never_happened_did_not_happen_once(tmp_path: Path, respx_mock: Any) -> None:
    route = respx_mock.post(MAIL).respond(202)
    async with Emulator(mailer(tmp_path, KEYED)) as emulator:
        for target in (route, SITE):
            with pytest.raises(AssertionError, match="happened never, not once"):
                emulator.check.exactly_once(target)
        emulator.check.exactly_once(SITE, times=0)


@pytest.mark.parametrize(
    ("action", "times"), [("fail", 1), ("lose_reply", 2), ("status(503)", 1), ("crash_after", 2)]
)
async def test_only_what_was_sent_counts(
    tmp_path: Path, respx_mock: Any, action: str, times: int
) -> None:
    """api.md 4: mocks are called by `lose_reply` and `crash_after`, not by `fail`, `status`."""
    route = respx_mock.post(MAIL).respond(202)
    source = f"""
    from workers import WorkerEntrypoint, fetch

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            response = await fetch("{MAIL}", method="POST")
            response.raise_for_status()
    """
    config = worker_file(tmp_path, source, queues=QUEUES)
    async with Emulator(config, faults=f"{SITE}#1:{action}") as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        emulator.check.exactly_once(SITE, times=times)
        emulator.check.exactly_once(route, times=times)


async def test_key_may_be_anything(tmp_path: Path, respx_mock: Any) -> None:
    route = respx_mock.post(MAIL).respond(202)
    async with Emulator(mailer(tmp_path, '{"x-order": message.body}')) as emulator:
        await emulator.queues["jobs"].send_batch(["a", "b", "a"])
        await emulator.settle()
        for target in (route, SITE):
            emulator.check.exactly_once(target, by="X-Order", times=2)
            emulator.check.exactly_once(target, by=lambda request: request.url.host)
            emulator.check.exactly_once(target, by=lambda request: None, times=3)
        emulator.check.exactly_once("fetch.POST.mail.*", times=3)
        await emulator.reset()
        emulator.check.exactly_once(SITE, times=0)


async def test_key_may_be_in_the_body_of_an_httpx_client(tmp_path: Path, respx_mock: Any) -> None:
    respx_mock.post(MAIL).respond(202)
    source = f"""
    import httpx
    from workers import WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            async with httpx.AsyncClient(verify=False) as client:
                await client.post("{MAIL}", json={{"order": batch.messages[0].body}})
            httpx.post("{MAIL}", content=b'{{"order": "b"}}', verify=False)
    """
    async with Emulator(worker_file(tmp_path, source, queues=QUEUES)) as emulator:
        await emulator.queues["jobs"].send("a")
        await emulator.settle()
        emulator.check.exactly_once(SITE, by=lambda request: request.content, times=2)
        with pytest.raises(AssertionError, match=r"twice, not once \(2 requests\): 'a', 'b'"):
            emulator.check.exactly_once(
                SITE, by=lambda request: json.loads(request.content)["order"]
            )


async def test_arguments_that_say_nothing_are_refused(tmp_path: Path) -> None:
    async with Emulator(mailer(tmp_path, KEYED)) as emulator:
        with pytest.raises(TypeError, match="a respx route or a fetch site, not 5"):
            emulator.check.exactly_once(5)
        with pytest.raises(PlanError):
            emulator.check.exactly_once("mail.example/send")
        with pytest.raises(ValueError, match="takes fetch sites"):
            emulator.check.exactly_once("batch.jobs")
        for by in (None, 5, ["x-order"]):
            with pytest.raises(TypeError, match="by is the name of a header, or a function"):
                emulator.check.exactly_once(SITE, by=by)  # type: ignore[arg-type]


# -- no_lost_message -------------------------------------------------------------------------------


def failing(folder: Path, **consumer: Any) -> dict[str, Any]:
    source = """
    from workers import WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            if batch.messages[0].body == "bad":
                raise ValueError("bad")
    """
    queues = {"consumers": [{"queue": "jobs", "max_retries": 1, **consumer}]}
    return worker_file(folder, source, queues=queues)


async def test_acked_waiting_and_dead_letters_are_not_lost(tmp_path: Path) -> None:
    async with Emulator(failing(tmp_path, dead_letter_queue="dead")) as emulator:
        jobs = emulator.queues["jobs"]
        await jobs.send("good")
        await emulator.settle()
        await jobs.send("bad")
        await emulator.settle()
        await jobs.send("later", delaySeconds=60)
        emulator.check.no_lost_message()
        assert len(emulator.queues["dead"].backlog) == 1


async def test_a_dropped_message_is_lost(tmp_path: Path) -> None:
    async with Emulator(failing(tmp_path)) as emulator:
        await emulator.queues["jobs"].send("good")
        id = await emulator.queues["jobs"].send("bad", delaySeconds=60)
        emulator.check.no_lost_message()
        await emulator.settle()
        with pytest.raises(AssertionError) as info:
            emulator.check.no_lost_message()
        assert f"1 of 2 messages are lost: {id} of queue jobs (dropped)" in str(info.value)


async def test_an_expired_message_and_one_that_a_fault_drops_are_lost(tmp_path: Path) -> None:
    settings = {"jobs": {"delivery_paused": True, "message_retention_period": 60}}
    config = failing(tmp_path)
    async with Emulator(config, queue_settings=settings) as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.advance(61)
        with pytest.raises(AssertionError, match=r"\(expired\)"):
            emulator.check.no_lost_message()
    async with Emulator(config, faults="message.jobs#1:drop") as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        with pytest.raises(AssertionError, match=r"\(dropped\)"):
            emulator.check.no_lost_message()


async def test_a_purged_message_is_not_lost(tmp_path: Path) -> None:
    async with Emulator(failing(tmp_path)) as emulator:
        emulator.queues["jobs"].pause()
        await emulator.queues["jobs"].send("x")
        emulator.queues["jobs"].purge()
        await emulator.settle()
        emulator.check.no_lost_message()


async def test_a_purge_is_of_its_own_queue(tmp_path: Path) -> None:
    """One name begins like the other; what lies in a dead letter queue came from elsewhere."""
    config = failing(tmp_path)
    config["queues"]["consumers"][0]["queue"] = "jobs-2"
    config["queues"]["producers"] = [{"binding": "JOBS", "queue": "jobs"}]
    async with Emulator(config) as emulator:
        await emulator.queues["jobs-2"].send("bad")
        await emulator.settle()
        await emulator.queues["jobs"].send("x")
        emulator.queues["jobs"].purge()
        with pytest.raises(AssertionError, match=r"1 of 2 messages .* of queue jobs-2 \(dropped\)"):
            emulator.check.no_lost_message()
    async with Emulator(failing(tmp_path, dead_letter_queue="dead")) as emulator:
        await emulator.queues["jobs"].send("bad")
        await emulator.settle()
        emulator.queues["dead"].purge()
        emulator.check.no_lost_message()


async def test_a_message_that_was_processed_by_its_copy_is_not_lost(tmp_path: Path) -> None:
    source = """
    from workers import WorkerEntrypoint

    seen = []

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            seen.extend(batch.messages)
            if len(seen) == 1:
                raise ValueError("not the first time")
    """
    queues = {"consumers": [{"queue": "jobs", "max_retries": 0}]}
    plan = "message.jobs#1:duplicate(1 h)"
    async with Emulator(worker_file(tmp_path, source, queues=queues), faults=plan) as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        outcomes = [delivery.outcome for delivery in emulator.queues["jobs"].deliveries]
        assert outcomes == ["dropped", "ack"]
        emulator.check.no_lost_message()


# -- no_lost_update --------------------------------------------------------------------------------

COUNTER = """
from workers import WorkerEntrypoint, fetch
import asyncio

class Default(WorkerEntrypoint):
    async def queue(self, batch, env, ctx):
        while True:
            response = await fetch("https://store.example/counter")
            tag = response.headers.get("ETag") or ""
            value = int(await response.text())
            await asyncio.sleep(1)
            headers = {"If-Match": tag} if CAREFUL else {}
            answer = await fetch(
                "https://store.example/counter", method="PUT", body=str(value + 1), headers=headers
            )
            if answer.status != 412:
                return
"""


@pytest.mark.parametrize("careful", [True, False])
async def test_an_update_that_was_overwritten(
    tmp_path: Path, respx_mock: Any, careful: bool
) -> None:
    """Two batches at a time read, add one, and write."""
    value = [0]

    def store(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, text=str(value[0]), headers={"ETag": str(value[0])})
        if request.headers.get("If-Match", str(value[0])) != str(value[0]):
            return httpx.Response(412)
        value[0] = int(request.content)
        return httpx.Response(204)

    respx_mock.route(host="store.example").mock(side_effect=store)
    queues = {"consumers": [{"queue": "jobs", "max_batch_size": 1, "max_concurrency": 2}]}
    config = worker_file(tmp_path, f"CAREFUL = {careful}\n{COUNTER}", queues=queues)
    async with Emulator(config, faults="batch.jobs#1:overlap") as emulator:
        await emulator.queues["jobs"].send_batch(["a", "b"])
        await emulator.settle()
        if careful:
            emulator.check.no_lost_update("store.example/counter")
            emulator.check.no_lost_update("https://store.example/counter")
            assert value == [2]
        else:
            with pytest.raises(AssertionError, match=r"queue jobs #2 wrote store.example/counter"):
                emulator.check.no_lost_update("store.example/counter")
            assert value == [1]
        emulator.check.no_lost_update("store.example/other")


@pytest.mark.parametrize("together", [False, True])
async def test_two_requests_of_one_path_are_two_writers(
    tmp_path: Path, respx_mock: Any, together: bool
) -> None:
    value = [0]

    def store(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            value[0] = int(request.content)
        return httpx.Response(200, text=str(value[0]))

    respx_mock.route(host="store.example").mock(side_effect=store)
    source = """
    import asyncio
    from workers import Response, WorkerEntrypoint, fetch

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            value = await (await fetch("https://store.example/counter")).text()
            await asyncio.sleep(1)
            await fetch("https://store.example/counter", method="PUT", body=str(int(value) + 1))
            return Response("")
    """
    async with Emulator(worker_file(tmp_path, source)) as emulator:
        if together:
            await asyncio.gather(emulator.fetch("/"), emulator.fetch("/"))
            with pytest.raises(AssertionError, match=r"GET / #2 wrote .* what request GET / wrote"):
                emulator.check.no_lost_update("store.example/counter")
        else:
            await emulator.fetch("/")
            await emulator.fetch("/")
            emulator.check.no_lost_update("store.example/counter")
    assert value == [1 if together else 2]


async def test_the_runs_of_an_instance_are_one_writer(tmp_path: Path, respx_mock: Any) -> None:
    """What a step has read is stored: after a crash another run writes it."""
    respx_mock.route(host="store.example").respond(200)
    source = """
    from workers import WorkerEntrypoint, WorkflowEntrypoint, fetch

    class Flow(WorkflowEntrypoint):
        async def run(self, event, step):
            @step.do()
            async def read():
                await fetch("https://store.example/counter")

            @step.do()
            async def write():
                await fetch("https://store.example/counter", method="PUT")

            await read()
            await step.sleep("a while", event["payload"])
            await write()

    class Default(WorkerEntrypoint):
        pass
    """
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    config = worker_file(tmp_path, source, workflows=[flow])
    async with Emulator(config, faults="sleep.flow.a while#*:evict") as emulator:
        await emulator.workflows["flow"].create("slow", params="2 hours")
        await emulator.settle()
        emulator.check.no_lost_update("store.example/counter")
        await emulator.workflows["flow"].create("slower", params="2 hours")
        await emulator.workflows["flow"].create("quick", params="1 hour")
        await emulator.settle()
        with pytest.raises(AssertionError, match=r"workflow flow slower wrote .* flow quick wrote"):
            emulator.check.no_lost_update("store.example/counter")


# -- Ledger ----------------------------------------------------------------------------------------


def post(ledger: Ledger, key: str | None = None, **options: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return ledger(httpx.Request("POST", "https://pay.example/x", headers=headers, **options))


async def test_a_key_has_one_effect_and_one_answer() -> None:
    numbers = iter(range(100))
    ledger = Ledger(lambda request: {"id": next(numbers)})
    assert [post(ledger, key).json() for key in ("a", "b", "a")] == [
        {"id": 0},
        {"id": 1},
        {"id": 0},
    ]
    assert (ledger.count, ledger.keys, len(ledger.requests)) == (2, ["a", "b"], 3)
    assert [effect.key for effect in ledger.effects] == ["a", "b"]
    assert repr(ledger) == "<Ledger: 2 effects of 3 requests>"


async def test_without_a_key_each_request_is_an_effect() -> None:
    ledger = Ledger()
    assert ledger.count == 0
    assert [post(ledger).status_code for _ in range(2)] == [200, 200]
    assert ledger.keys == [None, None]


async def test_a_refusal_is_no_effect_and_is_asked_again() -> None:
    answers = iter([503, 201])
    ledger = Ledger(lambda request: next(answers))
    assert [post(ledger, "a").status_code for _ in range(3)] == [503, 201, 201]
    assert ledger.count == 1


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (202, 202, b""),
        ({"ok": True}, 200, b'{"ok":true}'),
        (httpx.Response(201, text="made"), 201, b"made"),
        (lambda request: httpx.Response(200, content=request.content), 200, b"echo"),
    ],
)
async def test_answers(answer: Any, status: int, body: bytes) -> None:
    ledger = Ledger(answer)
    for _ in range(2):
        response = post(ledger, "a", content=b"echo")
        assert response.status_code == status
        assert response.content.replace(b" ", b"") == body


async def test_it_stands_behind_a_route(tmp_path: Path, respx_mock: Any) -> None:
    ledger = Ledger(202, by=lambda request: request.content)
    route = respx_mock.post(MAIL).mock(side_effect=ledger)
    async with Emulator(mailer(tmp_path, "{}"), faults="batch.jobs#1:lose_ack") as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        assert (ledger.count, route.call_count) == (1, 2)
        emulator.check.exactly_once(route, by=lambda request: request.content)
    await asyncio.sleep(0)
