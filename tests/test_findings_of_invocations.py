"""Work that nobody waits for: floating tasks, calls and coroutines that were never awaited."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from textwrap import indent
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import handler, worker

from emulator import Emulator
from emulator.values import HostObject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import respx

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
QUEUES = {"producers": [{"binding": "Q", "queue": "q"}]}


def producer(folder: Path, body: str, **config: Any) -> dict[str, Any]:
    """A Worker with the queue `q` as `self.env.Q`."""
    return handler(folder, body, queues=QUEUES, **config)


async def found(config: dict[str, Any], **options: Any) -> tuple[Emulator, list[tuple[str, str]]]:
    """Fetch once and settle; returns the closed emulator, and each finding's code and line."""
    async with Emulator(config, **options) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "sent", response.text
        await emulator.settle()
    findings = [f for f in emulator.findings if f.code != "no_consumer"]
    return emulator, [(finding.code, finding.location or "") for finding in findings]


# -- tasks (public-reports O-35; recordings wu_dangling_*) -----------------------------------------


async def test_a_task_that_nobody_waits_for_is_cancelled_with_the_answer(tmp_path: Path) -> None:
    body = """
    async def work():
        print("never")
        await asyncio.sleep(3)
    asyncio.create_task(work())
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert findings == [("floating_task", "entry.py:13")]
    assert list(emulator.logs) == []
    assert emulator.now == START
    assert "the task Default.fetch.<locals>.work made at" in emulator.findings[0].message


@pytest.mark.parametrize("date", ["2026-03-01", "2026-10-01"])
async def test_two_mistakes_on_one_line_are_two_findings(tmp_path: Path, date: str) -> None:
    body = """
    async def work():
        await asyncio.sleep(3)
    asyncio.create_task(work()); self.env.Q.send("a"); self.env.Q.send("b")
    return Response("sent")
    """
    _, findings = await found(producer(tmp_path, body, compatibility_date=date))
    # What is the same of a line is told once.
    assert findings == [("never_awaited", "entry.py:12"), ("floating_task", "entry.py:12")]


async def test_a_floating_task_that_began_sees_its_cancellation(tmp_path: Path) -> None:
    body = """
    async def work():
        try:
            await asyncio.sleep(3)
            print("never")
        except asyncio.CancelledError:
            print("cancelled")
            raise
    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert findings == [("floating_task", "entry.py:17")]
    assert [(log.text, log.at.second) for log in emulator.logs] == [("cancelled", 1)]


async def test_a_floating_task_lives_while_other_work_keeps_the_event_alive(tmp_path: Path) -> None:
    """Recording wu_dangling_with_other_waituntil."""
    body = """
    async def work(name, delay):
        await asyncio.sleep(delay)
        print(name)
    asyncio.create_task(work("dangling", 3))
    asyncio.create_task(work("too long", 9))
    waitUntil(work("given", 8))
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert [(log.text, log.at.second) for log in emulator.logs] == [("dangling", 3), ("given", 8)]
    assert findings == [("floating_task", "entry.py:14")]


async def test_a_floating_task_that_goes_on_is_frozen_with_the_instant(tmp_path: Path) -> None:
    body = """
    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                print("no")
            else:
                print("never")
    asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert findings == [("floating_task", "entry.py:18")]
    assert {log.text for log in emulator.logs} == {"no"}
    assert emulator.now == START


async def test_a_timer_that_nobody_waits_for_does_not_fire(tmp_path: Path) -> None:
    """Recording wu_dangling_timer."""
    body = """
    from js import setTimeout
    from pyodide.ffi import create_proxy, to_js
    setTimeout(create_proxy(lambda: print("never")), 300)
    asyncio.get_running_loop().call_later(0.3, print, "never")
    return Response("sent")
    """
    emulator, _ = await found(handler(tmp_path, body))
    assert list(emulator.logs) == []
    assert emulator.now == START


async def test_tasks_that_are_done_or_awaited_are_no_findings(tmp_path: Path) -> None:
    body = """
    async def work():
        await asyncio.sleep(1)
    quick = asyncio.create_task(asyncio.sleep(0))
    await asyncio.gather(work(), work())
    async with asyncio.TaskGroup() as group:
        group.create_task(work())
    await asyncio.wait([asyncio.create_task(work())])
    async with asyncio.timeout(5):
        await work()
    waitUntil(work())
    return Response("sent")
    """
    assert (await found(handler(tmp_path, body)))[1] == []


async def test_a_task_that_failed_unseen_is_logged(tmp_path: Path) -> None:
    body = """
    async def work():
        raise ValueError("unseen")
    asyncio.create_task(work())
    await asyncio.sleep(1)
    return Response("sent")
    """
    emulator, _ = await found(handler(tmp_path, body))
    (log,) = emulator.logs
    assert log.level == "error"
    assert log.text.startswith("Task exception was never retrieved\nTraceback")
    assert log.text.endswith("ValueError: unseen")


@pytest.mark.parametrize("awaited_first", ["", "await asyncio.sleep(1)\n    "])
async def test_a_gather_that_nobody_waits_for_is_found_and_drops_its_work(
    tmp_path: Path, awaited_first: str
) -> None:
    body = f"""
    async def work():
        await asyncio.sleep(3)
    asyncio.gather(work(), work())
    {awaited_first}return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert findings == [("floating_task", "entry.py:12")]
    assert list(emulator.logs) == []


async def test_a_gather_that_failed_unseen_is_logged(tmp_path: Path) -> None:
    body = """
    async def work():
        raise ValueError("unseen")
    asyncio.gather(work())
    await asyncio.sleep(1)
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    (log,) = emulator.logs
    assert log.text.startswith("_GatheringFuture exception was never retrieved\nTraceback")
    assert log.text.endswith("ValueError: unseen")
    assert findings == []


# -- promises and calls whose waiter gave up -------------------------------------------------------

GIVING_UP = {
    "wait_for": "await asyncio.wait_for(CALL, 5)",
    "timeout": "async with asyncio.timeout(5): await CALL",
    "gather": "await asyncio.wait_for(asyncio.gather(CALL, asyncio.sleep(1)), 5)",
    "task": "await asyncio.wait_for(asyncio.create_task(wait(CALL)), 5)",
    "group": (
        "async with asyncio.timeout(5), asyncio.TaskGroup() as group:\n"
        "    group.create_task(wait(CALL))"
    ),
    "wait": (
        "task = asyncio.ensure_future(CALL)\n"
        "await asyncio.wait([task], timeout=5)\n"
        "task.cancel()\n"
        "await task"
    ),
    "as_completed": (
        "for done in asyncio.as_completed([task := ensure(CALL)], timeout=5):\n    await done"
    ),
    "promise": "await asyncio.wait_for(js.Promise.resolve(CALL), 5)",
}
CALLS = {
    "fetch": "fetch('https://slow.example/')",
    "js.fetch": "js.fetch('https://slow.example/')",
    "js.fetch of a stream": (
        "js.fetch('https://slow.example/', method='POST', body=js.Response.new('x').body)"
    ),
    "then": "js.fetch('https://slow.example/').then(lambda answer: answer.text())",
    "pyfetch": "pyfetch('https://slow.example/')",
    "body": "(await js.fetch('https://drip.example/')).text()",
    "binding": "self.env.SLOW.get('x')",
    "raw binding": "env.SLOW.get('x')",
    "all": "js.Promise.all(to_js([js.fetch('https://slow.example/')]))",
}


class Slow(HostObject):
    """A binding whose call takes its time."""

    js_class = "KvNamespace"
    js_members = frozenset({"get"})

    def __init__(self) -> None:
        self.got: list[str] = []

    async def get(self, key: str) -> str:
        await asyncio.sleep(60)
        self.got.append(key)
        return key


async def _never() -> AsyncIterator[bytes]:
    yield b"x"
    await asyncio.sleep(60)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", GIVING_UP)
@pytest.mark.parametrize("date", ["2025-08-14", "2026-09-08"])
@pytest.mark.respx(assert_all_called=False)
async def test_whoever_gave_up_waiting_leaves_no_finding(
    tmp_path: Path, respx_mock: respx.MockRouter, way: str, call: str, date: str
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    respx_mock.route(host="slow.example").mock(side_effect=answer)
    respx_mock.route(host="drip.example").mock(
        side_effect=lambda request: httpx.Response(200, content=_never())
    )
    lines = [
        "import js",
        "from pyodide.ffi import to_js; from pyodide.http import pyfetch",
        "from workers import env",
        "ensure = asyncio.ensure_future",
        "task = None",
        "async def wait(work): return await work",
        "try:",
        indent(GIVING_UP[way].replace("CALL", CALLS[call]), "    "),
        "except (TimeoutError, asyncio.CancelledError, OSError):",
        "    if task: task.cancel()",
        "    return Response('sent')",
        "return Response('never')",
    ]
    body = "\n".join(lines)
    config = handler(tmp_path, body, compatibility_date=date)
    emulator, findings = await found(config, bindings={"SLOW": Slow()})
    assert findings == []
    assert emulator.now >= START + timedelta(seconds=5)
    assert [log.text for log in emulator.logs] == []


@pytest.mark.parametrize(
    "options",
    ["signal=js.AbortSignal.timeout(5000)", "signal=controller.signal"],
)
@pytest.mark.parametrize("name", ["fetch", "js.fetch", "pyfetch"])
async def test_a_request_that_is_aborted_leaves_no_finding(
    tmp_path: Path, respx_mock: respx.MockRouter, name: str, options: str
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    respx_mock.route(host="slow.example").mock(side_effect=answer)
    body = f"""
    import js
    from pyodide.http import pyfetch
    controller = js.AbortController.new()
    asyncio.get_running_loop().call_later(5, controller.abort)
    try:
        await {name}("https://slow.example/", {options})
    except Exception:
        return Response("sent")
    """
    assert (await found(handler(tmp_path, body)))[1] == []


async def test_a_call_goes_on_where_its_waiter_gave_up(tmp_path: Path) -> None:
    """A promise of JavaScript's cannot be cancelled."""
    slow = Slow()
    body = """
    try:
        await asyncio.wait_for(self.env.SLOW.get("x"), 5)
    except TimeoutError:
        await asyncio.sleep(60)
    return Response("sent")
    """
    assert (await found(handler(tmp_path, body), bindings={"SLOW": slow}))[1] == []
    assert slow.got == ["x"]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("js.fetch('https://slow.example/')", "the promise of fetch()"),
        ("js.fetch('https://slow.example/').then(print)", "the promise of then()"),
        ("js.Promise.all(to_js([js.fetch('https://slow.example/')]))", "the promise of all()"),
        ("js.setTimeout(create_proxy(work), 0)\n    await asyncio.sleep(1)", "the promise"),
    ],
)
async def test_a_promise_that_nobody_waits_for_is_found_by_its_name(
    tmp_path: Path, respx_mock: respx.MockRouter, statement: str, name: str
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    respx_mock.route(host="slow.example").mock(side_effect=answer)
    body = f"""
    import js
    from pyodide.ffi import create_proxy, to_js
    async def work():
        await js.fetch("https://slow.example/")
    {statement}
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert [code for code, _ in findings] == ["floating_task"]
    assert emulator.findings[0].message.startswith(f"{name} made at ")
    if "setTimeout" not in statement:
        assert findings[0][1] == "entry.py:14"


# -- calls of bindings -----------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "sent"), [("production", []), ("miniflare", [{"n": 1}])])
async def test_a_send_that_nobody_awaits_is_found_and_dropped_by_production(
    tmp_path: Path, profile: Any, sent: list[Any]
) -> None:
    """Production may drop it when the handler returns; the local runtime was seen to keep it
    (recording queue_send_not_awaited)."""
    config = producer(tmp_path, 'self.env.Q.send({"n": 1})\nreturn Response("sent")')
    # Miniflare drops what goes to a queue without a consumer.
    config["queues"] = {**QUEUES, "consumers": [{"queue": "q"}]}
    async with Emulator(config, profile=profile) as emulator:
        emulator.queues["q"].pause()
        await emulator.fetch("/")
        assert [message.body for message in emulator.queues["q"].backlog] == sent
        (finding,) = [f for f in emulator.findings if f.code != "missing_handler"]
        assert (finding.code, finding.location) == ("never_awaited", "entry.py:10")
        assert finding.message.startswith("WorkerQueue.send() at entry.py:10 was neither awaited")


async def test_a_send_that_is_not_awaited_goes_out_while_the_handler_goes_on(
    tmp_path: Path,
) -> None:
    """python-api.md 0, fact 7: the call is made at once."""
    config = producer(
        tmp_path, 'self.env.Q.send(1)\nawait asyncio.sleep(1)\nreturn Response("sent")'
    )
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        assert [message.body for message in emulator.queues["q"].backlog] == [1]
        assert "never_awaited" in [finding.code for finding in emulator.findings]


async def test_a_task_of_a_send_is_found_once_and_not_sent(tmp_path: Path) -> None:
    """public-reports O-35."""
    body = 'asyncio.create_task(self.env.Q.send(1))\nreturn Response("sent")'
    emulator, findings = await found(producer(tmp_path, body))
    assert findings == [("floating_task", "entry.py:10")]
    assert emulator.queues["q"].backlog == []


@pytest.mark.parametrize(
    "statement",
    [
        "await self.env.Q.send(1)",
        "waitUntil(self.env.Q.send(1))",
        "self.ctx.waitUntil(self.env.Q.send(1))",
        "await asyncio.gather(self.env.Q.send(1))",
        "await asyncio.create_task(self.env.Q.send(1))",
        "waitUntil(asyncio.gather(self.env.Q.send(1)))",
        "async with asyncio.TaskGroup() as group: group.create_task(self.env.Q.send(1))",
    ],
)
async def test_a_send_that_is_waited_for_in_any_way_is_sent(tmp_path: Path, statement: str) -> None:
    emulator, findings = await found(producer(tmp_path, f'{statement}\nreturn Response("sent")'))
    assert findings == []
    assert [message.body for message in emulator.queues["q"].backlog] == [1]


async def test_each_line_is_reported_once(tmp_path: Path) -> None:
    body = """
    for n in range(5):
        self.env.Q.send(n)
    self.env.Q.sendBatch([{"body": 1}])
    return Response("sent")
    """
    _, findings = await found(producer(tmp_path, body))
    assert findings == [("never_awaited", "entry.py:11"), ("never_awaited", "entry.py:12")]


async def test_one_call_among_hundreds_that_nobody_awaits_is_found(tmp_path: Path) -> None:
    body = """
    for n in range(700):
        if n in (3, 600):
            self.env.Q.send(n)
        else:
            await self.env.Q.send(n)
    self.env.Q.send(700)
    return Response("sent")
    """
    _, findings = await found(producer(tmp_path, body))
    assert findings == [("never_awaited", "entry.py:12"), ("never_awaited", "entry.py:15")]


async def test_an_event_keeps_no_call_that_it_awaited(tmp_path: Path) -> None:
    """A handler that goes on for long would keep what each of its calls returned."""
    body = """
    import gc
    def kept():
        return sum(type(one).__name__ == "BindingCall" for one in gc.get_objects())
    for n in range(2_000):
        await self.env.Q.send(n)
        if n == 999:
            before = kept()
    return Response(str(kept() - before))
    """
    async with Emulator(producer(tmp_path, body)) as emulator:
        grown = int((await emulator.fetch("/")).text)
    assert grown < 500  # those of the latest may still be there


# -- coroutines of the user's own ------------------------------------------------------------------


async def test_a_coroutine_that_is_dropped_is_found_with_its_line(tmp_path: Path) -> None:
    body = """
    async def work():
        print("never")
    work()
    asyncio.sleep(1)
    return Response("sent")
    """
    emulator, findings = await found(handler(tmp_path, body))
    assert findings == [("never_awaited", "entry.py:12"), ("never_awaited", "entry.py:13")]
    assert "the coroutine Default.fetch.<locals>.work() made at" in emulator.findings[0].message
    assert list(emulator.logs) == []


# -- in other events -------------------------------------------------------------------------------


async def test_scheduled_and_queue_handlers_are_watched_too(tmp_path: Path) -> None:
    source = """
        import asyncio
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def scheduled(self, controller, env, ctx):
                asyncio.create_task(asyncio.sleep(5))
            async def queue(self, batch, env, ctx):
                asyncio.create_task(asyncio.sleep(5))
    """
    config = worker(tmp_path, source, queues={"consumers": [{"queue": "q"}]})
    async with Emulator(config) as emulator:
        await emulator.scheduled(cron="* * * * *")
        await emulator.queues["q"].send(1)
        await emulator.settle()
        assert [(f.code, f.location, f.subject) for f in emulator.findings] == [
            ("floating_task", "entry.py:6", "scheduled * * * * *"),
            ("floating_task", "entry.py:8", "queue q #1"),
        ]


async def test_an_event_that_a_fault_struck_makes_no_findings(tmp_path: Path) -> None:
    body = 'asyncio.create_task(asyncio.sleep(5))\nreturn Response("sent")'
    async with Emulator(handler(tmp_path, body), faults="request.GET./#1:lose_reply") as emulator:
        await emulator.fetch("/", retries=1)
        assert [(f.code, f.at.second) for f in emulator.findings] == [("floating_task", 10)]


async def test_wrong_answer_says_what_was_returned_and_where(tmp_path: Path) -> None:
    """The runtime's text does not; it is what the client gets."""
    async with Emulator(handler(tmp_path, 'return {"a": 1}')) as emulator:
        response = await emulator.fetch("/")
        [finding] = [f for f in emulator.findings if f.code == "handler_exception"]

    assert response.text == (
        "TypeError: Incorrect type for Promise: the Promise did not resolve to 'Response'."
    )
    assert finding.message.endswith("The handler returned dict.")
    assert finding.location == "entry.py:8"


@pytest.mark.parametrize("signature", ["self, request, env, ctx", "self, request, env=None"])
async def test_env_that_is_none_is_explained(tmp_path: Path, signature: str) -> None:
    """python-api.md 0.4"""
    entry = f"""
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def fetch({signature}):
                return Response(env.NAME)
    """
    async with Emulator(worker(tmp_path, entry)) as emulator:
        response = await emulator.fetch("/")

    assert "AttributeError: 'NoneType' object has no attribute 'NAME'" in response.text
    assert "Production passes None as `env` here: use `self.env`." in response.text
