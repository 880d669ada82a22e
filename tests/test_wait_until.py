"""`waitUntil`: what it takes, how long it may go on, what becomes of failures."""

from __future__ import annotations

import asyncio
import gc
from datetime import UTC, datetime, timedelta
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler, worker

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

    import respx

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
WORK = """
    async def work(name, delay=5):
        await asyncio.sleep(delay)
        print(name)
"""


def told(emulator: Emulator) -> list[tuple[str, float]]:
    """What the Worker logged, and after how many seconds."""
    return [
        (log.text, (log.at - START).total_seconds())
        for log in emulator.logs
        if not log.text.startswith("waitUntil() tasks did not complete")
    ]


def states(emulator: Emulator) -> list[str]:
    return [task.state for task in emulator.background]


# -- in a global handler (recording py_waituntil_workerd2024) --------------------------------------


def global_handler(folder: Path, body: str, **config: Any) -> dict[str, Any]:
    """A Worker of a date with global handlers, whose `on_fetch` has this body."""
    lines = "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())
    entry = (
        "import asyncio, json\nfrom js import Promise, Response, fetch\n"
        "from pyodide.ffi import create_proxy, to_js\n\n\n"
        f"async def on_fetch(request, env, ctx):\n{lines}\n    return Response.new('sent')\n"
    )
    return worker(folder, entry, **{"compatibility_date": "2025-08-13", **config})


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("work('x')", "never_awaited"),
        ("asyncio.ensure_future(work('x'))", "floating_task"),
        ("asyncio.create_task(work('x'))", "floating_task"),
        ("asyncio.gather(work('x'))", "floating_task"),
        ("asyncio.shield(work('x'))", "floating_task"),
        ("asyncio.wait_for(work('x'), 9)", "never_awaited"),
    ],
)
@pytest.mark.parametrize("date", ["2024-10-01", "2025-08-13"])
async def test_a_raw_ctx_holds_no_coroutines_and_tasks(
    tmp_path: Path, given: str, code: str, date: str
) -> None:
    body = f"{WORK}\nctx.waitUntil({given})"
    async with Emulator(global_handler(tmp_path, body, compatibility_date=date)) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        await emulator.settle()
        gc.collect()
        assert (told(emulator), states(emulator)) == ([], [])
        finding = emulator.findings[0]
        assert (finding.code, finding.location) == (code, "entry.py:11")
        assert "create_proxy(...)" in finding.message
        assert "class Default(WorkerEntrypoint)" in finding.message
        assert {f.location for f in emulator.findings} == {"entry.py:11"}


@pytest.mark.parametrize(
    "given",
    [
        "create_proxy(work('x'))",
        "create_proxy(asyncio.create_task(work('x')))",
        "create_proxy(asyncio.gather(work('x')))",
        "to_js(work('x'))",
        "Promise.resolve(work('x'))",
        "Promise.resolve(1).then(lambda _: work('x'))",
    ],
)
async def test_a_raw_ctx_holds_promises_and_proxies_that_stay(tmp_path: Path, given: str) -> None:
    async with Emulator(global_handler(tmp_path, f"{WORK}\nctx.waitUntil({given})")) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert (told(emulator), states(emulator)) == ([("x", 5)], ["done"])
        assert list(emulator.findings) == []


@pytest.mark.parametrize(
    "body",
    [
        "c = work('x')\nctx.waitUntil(c)\nawait c",
        "t = asyncio.create_task(work('x'))\nctx.waitUntil(t)\nawait t",
        "ctx.waitUntil(asyncio.create_task(work('x')))\nawait asyncio.sleep(6)",
        "ctx.waitUntil(asyncio.create_task(work('x')))\n"
        "ctx.waitUntil(create_proxy(asyncio.sleep(6)))",
    ],
)
async def test_work_that_a_raw_ctx_drops_may_be_done_all_the_same(
    tmp_path: Path, body: str
) -> None:
    async with Emulator(global_handler(tmp_path, f"{WORK}\n{body}")) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == [("x", 5)]
        assert list(emulator.findings) == []


async def test_a_task_beside_a_raw_ctx_is_told_of_create_proxy(tmp_path: Path) -> None:
    body = f"{WORK}\nctx.waitUntil(work('x'))\nasyncio.create_task(work('y'))"
    async with Emulator(global_handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert [(f.code, f.location) for f in emulator.findings] == [
            ("never_awaited", "entry.py:11"),
            ("floating_task", "entry.py:12"),
        ]
        assert all("create_proxy" in f.message for f in emulator.findings)


async def test_a_raw_ctx_and_a_binding_of_the_newer_sdk(tmp_path: Path) -> None:
    """Its calls are coroutines of Python, made at once and waited for by nobody."""
    body = "from workers import env as bindings\nctx.waitUntil(bindings.Q.send(1))"
    config = global_handler(
        tmp_path,
        body,
        compatibility_date="2026-09-01",
        compatibility_flags=["disable_python_no_global_handlers"],
        queues={"producers": [{"binding": "Q", "queue": "q"}]},
    )
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        (finding,) = [f for f in emulator.findings if f.code != "no_consumer"]
        assert (finding.code, finding.location) == ("never_awaited", "entry.py:8")
        assert "create_proxy" in finding.message


async def test_the_ctx_of_a_class_of_that_date_takes_them(tmp_path: Path) -> None:
    source = """
        import asyncio
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def work(self):
                await asyncio.sleep(5)
                print("x")
            async def on_fetch(self, request):
                self.ctx.waitUntil(self.work())
                return Response("sent")
    """
    async with Emulator(worker(tmp_path, source, compatibility_date="2025-08-13")) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert (told(emulator), list(emulator.findings)) == ([("x", 5)], [])


# -- what it takes (public-reports O-42) -----------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "work('x')",
        "asyncio.create_task(work('x'))",
        "asyncio.ensure_future(work('x'))",
        "asyncio.gather(work('x'), asyncio.sleep(6))",
        "asyncio.shield(work('x'))",
        "asyncio.wait_for(work('x'), 9)",
        "Awaitable()",
        "create_proxy(work('x'))",
        "Promise.resolve(1).then(lambda _: work('x'))",
        "future()",
    ],
)
@pytest.mark.parametrize("call", ["self.ctx.waitUntil", "waitUntil", "wait_until"])
async def test_it_takes_every_kind_of_work(tmp_path: Path, given: str, call: str) -> None:
    body = f"""
    from js import Promise
    from pyodide.ffi import create_proxy
    from workers import wait_until
    {WORK}
    class Awaitable:
        def __await__(self):
            return work('x').__await__()
    def future():
        made = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(5, lambda: (print('x'), made.set_result(1)))
        return made
    {call}({given})
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        assert told(emulator) == []
        assert states(emulator) == ["pending"]
        gc.collect()
        await emulator.settle()
        gc.collect()
        assert told(emulator) == [("x", 5)]
        assert states(emulator) == ["done"]
        assert list(emulator.findings) == []


@pytest.mark.parametrize("value", ["5", "None", "'text'", "[]", "lambda: 1", "work"])
async def test_other_values_are_accepted_and_do_nothing(tmp_path: Path, value: str) -> None:
    """Recording wu_non_promise."""
    body = f"""
    {WORK}
    assert self.ctx.waitUntil({value}) is None
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        assert states(emulator) == []


async def test_without_an_argument_it_fails_with_the_runtimes_text(tmp_path: Path) -> None:
    body = """
    try:
        self.ctx.waitUntil()
    except Exception as error:
        return Response(f"{error.name}: {error.message}")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == (
            "TypeError: Failed to execute 'waitUntil' on 'ExecutionContext': "
            "parameter 1 is not of type 'Promise'."
        )


async def test_ctx_has_no_snake_case(tmp_path: Path) -> None:
    """python-api.md 0, fact 5."""
    body = "return Response(str(hasattr(self.ctx, 'wait_until')))"
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "False"


async def test_a_helper_without_ctx_uses_the_module_function(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        "import helpers\nhelpers.note('x')\nreturn Response('sent')",
        files={
            "helpers.py": """
                import asyncio
                from workers import waitUntil
                def note(text):
                    async def work():
                        await asyncio.sleep(3)
                        print(text)
                    waitUntil(work())
                """
        },
    )
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == [("x", 3)]
        assert emulator.background[0].location == "helpers.py:8"


async def test_a_future_of_the_test_is_waited_for_across_loops(tmp_path: Path) -> None:
    class Gate:
        def __init__(self) -> None:
            self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    gate = Gate()
    body = "self.ctx.waitUntil(self.env.GATE.opened)\nreturn Response('sent')"
    async with Emulator(handler(tmp_path, body), bindings={"GATE": gate}) as emulator:
        await emulator.fetch("/")
        await emulator.advance(10)
        assert states(emulator) == ["pending"]
        gate.opened.set_result("open")
        await asyncio.sleep(0)  # the future's own loop tells those who wait
        await emulator.advance(0)
        assert states(emulator) == ["done"]


async def test_the_ctx_of_another_event_is_refused_with_productions_text(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        """
        import state
        async def work(): print("never")
        if path == "/keep":
            state.ctx = self.ctx
            return Response("kept")
        try:
            state.ctx.waitUntil(work())
        except Exception as error:
            return Response(error.message)
        """,
        files={"state.py": ""},
    )
    async with Emulator(config) as emulator:
        await emulator.fetch("/keep")
        text = (await emulator.fetch("/use")).text
        assert text.startswith("Cannot perform I/O on behalf of a different request.")
        await emulator.settle()
        assert told(emulator) == []


# -- order and nesting -----------------------------------------------------------------------------


async def test_the_answer_does_not_wait_and_tasks_run_side_by_side(tmp_path: Path) -> None:
    body = f"""
    {WORK}
    for delay in (5, 1, 3):
        waitUntil(work(f"done {{delay}}", delay))
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert emulator.now == START
        await emulator.settle()
        assert told(emulator) == [("done 1", 1), ("done 3", 3), ("done 5", 5)]


async def test_work_may_give_more_work_after_the_answer(tmp_path: Path) -> None:
    """public-reports S-14: long chains all finish within the limit."""
    body = """
    async def link(n):
        await asyncio.sleep(1)
        print(f"link {n}")
        if n < 10:
            (self.ctx.waitUntil if n % 2 else waitUntil)(link(n + 1))
    waitUntil(link(1))
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == [(f"link {n}", n) for n in range(1, 11)]
        assert states(emulator) == ["done"] * 10


async def test_a_long_chain_of_awaits_does_not_stop(tmp_path: Path) -> None:
    body = """
    async def chain():
        for n in range(200):
            await asyncio.sleep(0.1)
        print("end")
    waitUntil(chain())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert [text for text, _ in told(emulator)] == ["end"]


async def test_work_given_before_the_handler_fails_still_runs(tmp_path: Path) -> None:
    """Recording wu_handler_throws_after_waituntil."""
    body = f"{WORK}\n    waitUntil(work('x'))\n    raise ValueError('boom')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).status_code == 500
        await emulator.settle()
        assert told(emulator)[1:] == [("x", 5)]


async def test_requests_made_in_the_background_are_sent(
    tmp_path: Path, respx_mock: respx.MockRouter
) -> None:
    route = respx_mock.post("https://log.example/").respond(200)
    body = """
    async def report():
        await asyncio.sleep(2)
        await fetch("https://log.example/", method="POST", body="done")
    waitUntil(report())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert not route.called
        await emulator.settle()
        assert route.call_count == 1


# -- thirty seconds (public-reports O-33) ----------------------------------------------------------


@pytest.mark.parametrize(
    ("delay", "state", "ended"),
    [
        (29.999, "done", 29.999),
        (30, "done", 30),
        (30.000001, "cancelled", 30),
        (30.001, "cancelled", 30),
        (31, "cancelled", 30),
    ],
)
@pytest.mark.parametrize("before", [0, 7])
async def test_work_has_thirty_seconds_from_the_answer(
    tmp_path: Path, delay: float, state: str, ended: float, before: float
) -> None:
    body = f"""
    async def work():
        try:
            await asyncio.sleep({before} + {delay})
            print("done")
        except asyncio.CancelledError:
            print("cancelled")
            raise
    waitUntil(work())
    await asyncio.sleep({before})
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert states(emulator) == [state]
        assert told(emulator) == [(state, round(before + ended, 6))]
        assert emulator.now - START == timedelta(seconds=before + ended)
        codes = [finding.code for finding in emulator.findings]
        assert codes == ([] if state == "done" else ["wait_until_cancelled"])


async def test_work_begun_in_the_last_instant_is_within_the_limit(tmp_path: Path) -> None:
    """The order of timers made at different times does not matter."""
    body = """
    async def work():
        await asyncio.sleep(10)
        await asyncio.sleep(20)
        await asyncio.sleep(0)
        print("done")
    waitUntil(work())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == [("done", 30)]


async def test_work_that_never_ends_is_cancelled_and_the_finding_has_its_line(
    tmp_path: Path,
) -> None:
    body = """
    async def work():
        await asyncio.Event().wait()
    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    self.ctx.waitUntil(task)
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert emulator.now - START == timedelta(seconds=31)
        (finding,) = emulator.findings
        assert finding.code == "wait_until_cancelled"
        assert finding.location == "entry.py:12"  # where the task was made
        assert "given to waitUntil at entry.py:14" in finding.message
        assert emulator.background[0].location == "entry.py:14"
        assert (finding.at - START).total_seconds() == 31
        (line,) = emulator.logs
        assert (line.level, line.at) == ("warn", finding.at)
        assert line.text.startswith("waitUntil() tasks did not complete within the allowed time")


async def test_work_that_refuses_to_be_cancelled_ends_with_the_instant(tmp_path: Path) -> None:
    body = """
    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                print("no")
    waitUntil(stubborn())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert emulator.now - START == timedelta(seconds=30)
        assert {text for text, _ in told(emulator)} == {"no"}
        lines = len(emulator.logs)
        await emulator.advance("1 day")
        assert len(emulator.logs) == lines
        assert states(emulator) == ["cancelled"]
        assert [finding.code for finding in emulator.findings] == ["wait_until_cancelled"]


async def test_after_the_limit_a_send_has_no_effect(tmp_path: Path) -> None:
    body = """
    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            await self.env.Q.send("too late")
    waitUntil(work())
    return Response("sent")
    """
    queues = {"producers": [{"binding": "Q", "queue": "q"}]}
    async with Emulator(handler(tmp_path, body, queues=queues)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert emulator.queues["q"].backlog == []


async def test_the_limit_counts_from_the_end_of_a_streamed_body(tmp_path: Path) -> None:
    body = f"""
    from js import ReadableStream
    from pyodide.ffi import to_js
    {WORK}
    async def chunks():
        yield to_js(b"a")
        await asyncio.sleep(20)
    waitUntil(work("x", 45))
    return Response(ReadableStream.from_(chunks()))
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == [("x", 45)]


async def test_two_requests_have_their_own_limits(tmp_path: Path) -> None:
    body = f"{WORK}\n    waitUntil(work(path, 40))\n    return Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/a")
        await emulator.advance(10)
        await emulator.fetch("/b")
        await emulator.settle()
        cancelled = [(f.subject, (f.at - START).total_seconds()) for f in emulator.findings]
        assert cancelled == [("request GET /a", 30), ("request GET /b", 40)]


async def test_a_scheduled_run_may_take_fifteen_minutes(tmp_path: Path) -> None:
    """Limits of cron triggers: 15 minutes of wall time, background work included."""
    source = """
        import asyncio
        from workers import WorkerEntrypoint, waitUntil
        class Default(WorkerEntrypoint):
            async def scheduled(self, controller, env, ctx):
                async def work(delay):
                    await asyncio.sleep(delay)
                    print("done", delay)
                waitUntil(work(int(controller.cron)))
    """
    async with Emulator(worker(tmp_path, source)) as emulator:
        assert await emulator.scheduled(cron="899") == ("ok", None)
        assert told(emulator) == [("done 899", 899)]
        assert await emulator.scheduled(cron="901") == ("exceededWallTime", None)
        assert told(emulator)[1] == ("scheduled 901 exceeded its wall time of 15 minutes", 1799)
        assert states(emulator) == ["done", "lost"]


# -- failures (public-reports O-34) ----------------------------------------------------------------

FAILING = """
    async def fails():
        await asyncio.sleep(2)
        raise ValueError("in the background")
    async def other():
        await asyncio.sleep(5)
        print("other finished")
    waitUntil(fails())
    waitUntil(other())
    return Response("sent")
"""


async def test_a_failure_is_a_finding_and_a_log_and_siblings_finish(tmp_path: Path) -> None:
    """Recording wu_error: the answer is not affected."""
    async with Emulator(handler(tmp_path, FAILING)) as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, response.text) == (200, "sent")
        await emulator.settle()
        (finding,) = emulator.findings
        assert finding.code == "background_error"
        assert finding.location == "entry.py:12"  # the line that raised
        assert (
            "given to waitUntil at entry.py:16 failed: ValueError: in the back" in finding.message
        )
        error, other = emulator.logs
        assert (error.level, (error.at - START).total_seconds()) == ("error", 2)
        assert error.text.startswith("Traceback (most recent call last):\n")
        assert error.text.endswith("ValueError: in the background")
        assert (other.level, other.text) == ("log", "other finished")
        failed, done = emulator.background
        assert (failed.state, done.state) == ("failed", "done")
        assert isinstance(failed.error, ValueError)
        assert emulator.findings.unexpected() == [finding]
        emulator.findings.expect("background_error")
        assert emulator.findings.unexpected() == []


async def test_an_immediate_failure_leaves_the_answer_alone(tmp_path: Path) -> None:
    """Recording wu_error_immediate."""
    body = """
    async def fails():
        raise LookupError("now")
    waitUntil(fails())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        assert [finding.code for finding in emulator.findings] == ["background_error"]


@pytest.mark.parametrize(
    "error",
    [
        "SystemExit(3)",
        "KeyboardInterrupt",
        "BaseException('b')",
        "ExceptionGroup('g', [ValueError('v')])",
    ],
)
async def test_any_exception_only_fails_its_task(tmp_path: Path, error: str) -> None:
    body = f"""
    async def fails():
        await asyncio.sleep(1)
        raise {error}
    waitUntil(fails())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert states(emulator) == ["failed"]
        assert (await emulator.fetch("/")).text == "sent"


async def test_a_failure_in_a_queue_handler_fails_its_batch_and_is_no_finding(
    tmp_path: Path,
) -> None:
    source = """
        from workers import WorkerEntrypoint, waitUntil
        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx):
                async def fails():
                    raise ValueError("background")
                waitUntil(fails())
    """
    queues = {"consumers": [{"queue": "q", "max_retries": 0, "dead_letter_queue": "d"}]}
    config = worker(tmp_path, source, queues=queues, compatibility_date="2026-01-01")
    async with Emulator(config) as emulator:
        await emulator.queues["q"].send(1)
        await emulator.settle()
        (delivery,) = emulator.queues["q"].deliveries
        assert (delivery.outcome, str(delivery.error)) == ("dead_letter", "background")
        assert "background_error" not in [finding.code for finding in emulator.findings]


async def test_a_task_that_cancels_itself_is_no_finding(tmp_path: Path) -> None:
    body = """
    async def work():
        raise asyncio.CancelledError
    waitUntil(work())
    return Response("sent")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        assert states(emulator) == ["cancelled"]
        assert list(emulator.findings) == []


# -- the list, and what is lost --------------------------------------------------------------------


async def test_the_list_of_tasks_tells_what_they_are(tmp_path: Path) -> None:
    body = f"{WORK}\n    waitUntil(work('x'))\n    return Response('')"
    async with Emulator(handler(tmp_path, body, name="shop")) as emulator:
        await emulator.advance(3)
        await emulator.fetch("/a", method="POST")
        (task,) = emulator.background
        assert (task.worker, task.event, task.location) == ("shop", "fetch POST /a", "entry.py:14")
        assert (task.created - START).total_seconds() == 3
        assert (task.state, task.error) == ("pending", None)


async def test_a_crash_loses_what_was_pending(tmp_path: Path) -> None:
    body = f"{WORK}\n    waitUntil(work('x', int(path[1:])))\n    return Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/5")
        await emulator.fetch("/20")
        await emulator.advance(10)
        await emulator.crash()
        await emulator.settle()
        assert states(emulator) == ["done", "lost"]
        assert told(emulator) == [("x", 5)]
        assert "lost" in emulator.trace.render()
        assert list(emulator.findings) == []


async def test_what_was_done_when_the_power_went_is_done(tmp_path: Path) -> None:
    body = f"{WORK}\n    waitUntil(work('x', 0))\n    return Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.crash()
        assert states(emulator) == ["done"]


async def test_closing_without_settling_reports_what_was_pending(tmp_path: Path) -> None:
    """public-reports O-32; recording wu_dispose_while_pending: the work does not go on."""
    body = f"{WORK}\n    waitUntil(work('x'))\n    return Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
    assert states(emulator) == ["lost"]
    assert told(emulator) == []
    (line,) = [line for line in emulator.trace.render().splitlines() if " lost " in line]
    assert "entry.py:14" in line


async def test_the_fault_evict_loses_the_work_once_the_answer_is_sent(tmp_path: Path) -> None:
    body = f"{WORK}\n    waitUntil(work('x', 1))\n    await asyncio.sleep(2)\n" + (
        "    waitUntil(work('y', 1))\n    return Response('sent')"
    )
    plan = "wait_until.worker#2:evict"
    async with Emulator(handler(tmp_path, body), faults=plan) as emulator:
        assert (await emulator.fetch("/")).text == "sent"
        await emulator.settle()
        assert told(emulator) == [("x", 1)]
        assert states(emulator) == ["done", "lost"]
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        assert list(emulator.findings) == []
        assert (await emulator.fetch("/")).text == "sent"
        await emulator.settle()
        assert [text for text, _ in told(emulator)] == ["x", "x", "y"]


async def test_the_fault_evict_loses_work_that_other_work_gives_when_the_answer_is_out(
    tmp_path: Path,
) -> None:
    body = f"""{WORK}
    async def first():
        await asyncio.sleep(1)
        waitUntil(work("y", 1))
        await asyncio.sleep(1)
        print("first is done")
    waitUntil(first())
    return Response("")"""
    plan = "wait_until.worker#2:evict"
    async with Emulator(handler(tmp_path, body), faults=plan) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert told(emulator) == []
        assert states(emulator) == ["lost", "lost"]
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        assert list(emulator.findings) == []


async def test_settle_can_be_told_from_advance(tmp_path: Path) -> None:
    """public-reports O-32: wait for all background work before asserting."""
    body = f"{WORK}\n    waitUntil(work('x', 2))\n    return Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        await emulator.fetch("/")
        await emulator.advance(1.999)
        assert told(emulator) == []
        await emulator.settle()
        assert told(emulator) == [("x", 2)]
        assert emulator.now - START == timedelta(seconds=2)


async def test_globals_may_share_work_between_requests(tmp_path: Path) -> None:
    """Recording wu_io_cross_request: one request awaits what another began."""
    config: dict[str, Any] = handler(
        tmp_path,
        """
        import state
        if path == "/a":
            state.work = asyncio.ensure_future(asyncio.sleep(5, "v"))
            self.ctx.waitUntil(state.work)
            return Response("a")
        return Response(await state.work)
        """,
        files={"state.py": ""},
    )
    async with Emulator(config) as emulator:
        await emulator.fetch("/a")
        assert (await emulator.fetch("/b")).text == "v"
