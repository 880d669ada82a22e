"""Reloads, and what a server does when its state cannot be read or written.

Public reports O-37, S-12 (reloads), O-38 (overdue work after a restart).
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from served_project import CONFIG, WORKER, Connection, until

from emulator.clock import MICROSECONDS, RealClock
from emulator.errors import DamagedState, StateError
from emulator.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from served_project import Project, Served

pytestmark = pytest.mark.asyncio

VERSION_2 = WORKER.replace("VERSION = 1", "VERSION = 2")

LONG_LIVED = """
import asyncio
from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint

VERSION = 1


class Ticker(DurableObject):
    async def start(self):
        await self.ctx.storage.setAlarm(1)

    async def alarm(self, *_):
        now = await self.ctx.storage.get("ticks") or 0
        await self.ctx.storage.put("ticks", now + 1)
        print("tick", now + 1, "of version", VERSION)
        from datetime import UTC, datetime
        due = int(datetime.now(UTC).timestamp() * 1000) + 10_000
        await self.ctx.storage.setAlarm(due)


class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("first")
        async def first():
            print("first of version", VERSION)
            return VERSION

        await first()
        await step.sleep("nap", "1 hour")
        await step.wait_for_event("go", "go", timeout="1 day")

        @step.do("last")
        async def last():
            print("last of version", VERSION)

        await last()
        return "done"


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if "/tick" in request.url:
            await self.env.TICKER.getByName("one").start()
        if "/slow" in request.url:
            await asyncio.sleep(60)
            return Response(f"slow of version {VERSION}")
        if "/flow" in request.url:
            await self.env.FLOW.create(id="one")
        if "/later" in request.url:
            await self.env.JOBS.send("later", delaySeconds=3600)
        return Response("ok")

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            print("begin", message.body, message.attempts, "version", VERSION)
        if VERSION == 1:
            await asyncio.sleep(600)
        print("end of version", VERSION)
"""
LONG_CONFIG = CONFIG.replace(
    '"triggers": {"crons": ["0 0 29 2 *"]},',
    """
    "durable_objects": {"bindings": [{"name": "TICKER", "class_name": "Ticker"}]},
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Ticker"]}],
    "workflows": [{"name": "flow", "binding": "FLOW", "class_name": "Flow"}],
    "vars": {"COLOUR": "red"},
    """,
)


def long_lived(project: Project, version: int = 1) -> None:
    project.write("wrangler.jsonc", LONG_CONFIG)
    project.write("src/entry.py", LONG_LIVED.replace("VERSION = 1\n\n", f"VERSION = {version}\n\n"))


async def reload_code(served: Served) -> None:
    await served.desk.reload(settings=False, paths=["src/entry.py"])


async def test_new_code_answers_after_a_reload(project: Project) -> None:
    async with project.served() as served:
        assert (await served.client.get("/")).text.startswith("version 1")
        project.write("src/entry.py", VERSION_2)
        await reload_code(served)
        assert (await served.client.get("/")).text.startswith("version 2")
        assert served.news[-1][0].startswith("reloaded in ")
        assert served.news[-1][0].endswith(": src/entry.py")


async def test_an_error_in_the_code_is_shown_until_it_is_corrected(project: Project) -> None:
    async with project.served() as served:
        project.write("src/entry.py", "def broken(:\n")
        await reload_code(served)
        answer = await served.client.get("/")
        assert answer.status_code == 500
        assert "SyntaxError" in answer.text
        assert "entry.py&quot;, line 1" in answer.text
        assert served.news[-1][1]
        project.write("src/entry.py", VERSION_2)
        await reload_code(served)
        assert (await served.client.get("/")).text.startswith("version 2")


async def test_queues_accept_and_deliver_while_the_code_is_broken(project: Project) -> None:
    async with project.served() as served:
        project.write("src/entry.py", "import nothing_like_this\n")
        await reload_code(served)
        await served.desk.emulator.queues["jobs"].send({"text": "meanwhile"})
        await served.advance("1 second")
        assert served.logs == ["version 1 ['meanwhile']"]


async def test_a_server_that_starts_with_broken_code_recovers(project: Project) -> None:
    project.write("src/entry.py", "def broken(:\n")
    async with project.served() as served:
        answer = await served.client.get("/")
        assert answer.status_code == 500
        assert "What loaded before, if anything did, goes on with queues" in answer.text
        status = (await served.client.get("/cdn-cgi/emulator/status")).json()
        assert status["problem"]["title"] == "The code does not load"
        answer = await served.client.post("/cdn-cgi/emulator/clock", json={"advance": 1})
        assert answer.status_code == 503
        project.write("src/entry.py", WORKER)
        await reload_code(served)
        assert (await served.client.get("/")).status_code == 200


async def test_a_wrong_config_keeps_what_runs_and_shows_what_is_wrong(project: Project) -> None:
    async with project.served() as served:
        project.write("wrangler.jsonc", "{ nothing")
        await served.desk.reload(settings=True)
        answer = await served.client.get("/")
        assert answer.status_code == 500
        assert "The config is wrong" in answer.text
        project.write("wrangler.jsonc", CONFIG)
        await served.desk.reload(settings=True)
        assert (await served.client.get("/")).status_code == 200


async def test_no_edit_of_code_hides_that_the_config_is_wrong(project: Project) -> None:
    async with project.served() as served:
        project.write("wrangler.jsonc", "{ nothing")
        await served.desk.reload(settings=True)
        project.write("src/entry.py", VERSION_2)
        await served.desk.reload(settings=False)
        assert "The config is wrong" in (await served.client.get("/")).text
        # Queues go on with the code that belongs to the settings of before.
        await served.desk.emulator.queues["jobs"].send({"text": "a"})
        await served.advance("2 seconds")
        assert served.logs == ["version 1 ['a']"]
        project.write("wrangler.jsonc", CONFIG)
        await served.desk.reload(settings=True)
        assert (await served.client.get("/")).text.startswith("version 2")
        project.write("src/entry.py", WORKER)
        await served.desk.reload(settings=False)
        assert (await served.client.get("/")).text.startswith("version 1")


async def test_an_interrupted_batch_is_delivered_again_to_the_new_code(project: Project) -> None:
    long_lived(project)
    async with project.served() as served:
        queue = served.desk.emulator.queues["jobs"]
        await queue.send("a")
        await served.advance("2 seconds")
        assert served.logs == ["begin a 1 version 1"]
        long_lived(project, 2)
        await reload_code(served)
        await served.advance("2 seconds")
        assert served.logs[1:] == ["begin a 2 version 2", "end of version 2"]
        assert [d.outcome for d in queue.deliveries] == ["lost", "ack"]


@pytest.mark.parametrize("settings", [False, True], ids=["code", "settings"])
async def test_alarms_delays_sleeps_and_waits_go_on_with_the_new_code(
    project: Project, settings: bool
) -> None:
    long_lived(project)
    async with project.served(state=project.state) as served:
        for path in ("/tick", "/flow", "/later"):
            assert (await served.client.get(path)).text == "ok"
        await served.advance("15 seconds")
        assert served.logs == ["tick 1 of version 1", "first of version 1", "tick 2 of version 1"]
        long_lived(project, 2)
        await served.desk.reload(settings=settings)
        before = len(served.logs)
        await served.advance("10 seconds")
        assert served.logs[before:] == ["tick 3 of version 2"]
        await served.advance("1 hour")
        assert "begin later 1 version 2" in served.logs
        flow = await served.desk.emulator.workflows["flow"].get("one")
        assert flow.status == "waiting"
        await flow.send_event("go")
        assert flow.output == "done"
        assert served.logs[-1] == "last of version 2"
        assert "first of version 2" not in served.logs
        ticks = [log for log in served.logs if log.startswith("tick")]
        assert len(ticks) == len(dict.fromkeys(ticks))


async def test_new_variables_and_secrets_count_after_a_reload(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response(f"{self.env.TOKEN} {self.env.COLOUR}")
        """,
    )
    project.write(
        "wrangler.jsonc", CONFIG.replace('"triggers"', '"vars": {"COLOUR": "red"}, "triggers"')
    )
    project.write(".dev.vars", "TOKEN=first-secret\n")
    async with project.served(state=project.state) as served:
        assert (await served.client.get("/")).text == "first-secret red"
        project.write(".dev.vars", "TOKEN=second-secret\n")
        await served.desk.reload(settings=True)
        assert (await served.client.get("/")).text == "second-secret red"
        project.write(".dev.vars", "TOKEN=third-secret\n")
        project.write("src/entry.py", "raise ValueError('third-secret')\n")
        await served.desk.reload(settings=True)
        answer = await served.client.get("/")
        assert "third-secret" not in answer.text
        assert "[secret TOKEN]" in answer.text


async def test_a_request_finishes_in_the_code_it_began_in(project: Project) -> None:
    long_lived(project)
    async with project.served() as served:
        request = asyncio.ensure_future(served.client.get("/slow"))
        await until(lambda: served.desk.open)
        long_lived(project, 2)
        await reload_code(served)
        await served.advance("60 seconds")
        assert (await request).text == "slow of version 1"


async def test_a_request_that_takes_too_long_in_replaced_code_is_cut_off(
    project: Project,
) -> None:
    long_lived(project)
    async with project.served(grace=0.01) as served:
        request = asyncio.ensure_future(served.client.get("/slow"))
        await until(lambda: served.desk.open)
        await reload_code(served)
        assert (await request).status_code == 502
        assert served.desk.in_flight == []


async def test_events_are_numbered_on_through_reloads(project: Project) -> None:
    async with project.served(state=project.state) as served:
        await served.client.get("/one")
        last = served.desk.feed.last
        await served.desk.reload(settings=True)
        await served.client.get("/two")
        new = served.desk.feed.since(last)
        assert [told.number for told in new] == list(range(last + 1, last + 1 + len(new)))
        assert any("/two" in told.event.subject for told in new)


async def test_fifty_reloads_leave_nothing_behind(project: Project) -> None:
    """S-12: still one consumer; no threads, tasks, files or memory more than after the first."""
    async with project.served(state=project.state) as served:

        async def round_trip(number: int) -> None:
            project.write("src/entry.py", WORKER.replace("VERSION = 1", f"VERSION = {number}"))
            await served.desk.reload(settings=number % 5 == 0)
            answer = await served.client.get("/")
            assert answer.text.startswith(f"version {number} ")

        for number in range(2, 12):
            await round_trip(number)
        before = _resources()
        for number in range(12, 62):
            await round_trip(number)
        after = _resources()
        assert after["threads"] <= before["threads"]
        assert after["tasks"] <= before["tasks"]
        assert after["files"] <= before["files"]
        assert after["objects"] - before["objects"] < 5000
        await served.client.post("/", content=b"once")
        await served.advance("1 minute")
        assert [log for log in served.logs if "once" in log] == ["version 61 ['once']"]


def _resources() -> dict[str, int]:
    for _ in range(3):
        gc.collect()
    return {
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "files": len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0,
        "objects": len(gc.get_objects()),
    }


# State that cannot be read or written.


async def test_overdue_work_runs_after_a_restart_before_any_request(project: Project) -> None:
    """O-38: an alarm whose time passed while nothing ran fires soon, and once."""
    long_lived(project)
    async with project.served(state=project.state) as served:
        for path in ("/tick", "/flow", "/later"):
            await served.client.get(path)
        assert served.logs == ["tick 1 of version 1", "first of version 1"]
        begun = served.desk.emulator.now
    long_lived(project, 2)
    async with project.served(state=project.state, clock="real") as served:
        clock: Any = served.desk.platform.kernel.clock
        await until(lambda: served.desk.emulator.now >= begun)
        machine = clock._machine
        clock._machine = lambda: machine() + 7200 * 1_000_000  # two hours later
        served.desk.platform.kernel.pump._wake()
        await until(lambda: any("later" in log for log in served.logs))
        ticks = [log for log in served.logs if log.startswith("tick")]
        assert ticks == ["tick 2 of version 2"]
        flow = await served.desk.emulator.workflows["flow"].get("one")
        assert flow.status == "waiting"


async def test_a_damaged_state_is_never_emptied(project: Project) -> None:
    async with project.served(state=project.state) as served:
        await served.client.post("/", content=b"kept")
    damaged = b"this is not a database, " * 100
    project.state.write_bytes(damaged)
    with pytest.raises(DamagedState):
        async with project.served(state=project.state):
            pass
    assert project.state.read_bytes() == damaged


async def test_a_damaged_state_is_moved_aside_where_the_server_may(project: Project) -> None:
    project.state.write_bytes(b"this is not a database, " * 100)

    def set_aside() -> str:
        return str(project.state.rename(project.path / "aside"))

    async with project.served(state=project.state, set_aside=set_aside) as served:
        text, bad = served.news[0]
        assert bad
        assert "is not a state file, or damaged" in text
        assert f"It was moved to {project.path / 'aside'}" in text
        assert (await served.client.post("/", content=b"new")).status_code == 202


async def test_warnings_of_a_config_are_told(project: Project) -> None:
    project.write("wrangler.jsonc", CONFIG.replace('"main"', '"nothing_like_this": 1, "main"'))
    async with project.served() as served:
        assert (served.news[0][0][:9], served.news[0][1]) == ("warning: ", False)
        assert "nothing_like_this" in served.news[0][0]
        await reload_code(served)
        assert sum("nothing_like_this" in text for text, _ in served.news) == 1


async def test_what_is_passed_over_in_files_of_secrets_is_told_at_start_and_reload(
    project: Project,
) -> None:
    project.write(".dev.vars", "A=1\nTOKEN\n")
    async with project.served() as served:
        ((text, bad),) = served.news
        assert text.startswith(f"warning: {project.path}/.dev.vars:2: the line is no assignment")
        assert not bad
        (project.path / ".dev.vars").unlink()
        (project.path / ".dev.vars").mkdir()
        await served.desk.reload(settings=True)
        told = f"warning: {project.path}/.dev.vars: is a folder, and is passed over"
        assert sum(text.startswith(told) for text, _ in served.news) == 1


async def test_a_main_file_that_was_moved_away_is_told_with_the_line_that_names_it(
    project: Project,
) -> None:
    entry, moved = project.path / "src/entry.py", project.path / "src/moved.py"
    async with project.served() as served:
        entry.rename(moved)
        await served.desk.reload(settings=False)
        await served.desk.reload(settings=True)
        (text, bad), (again, _) = served.news
        assert bad
        assert text == (
            "The code does not load: the Worker 'demo' could not be loaded: there is no file "
            f"{entry}, the `main` of {project.path}/wrangler.jsonc:3"
        )
        assert f'{project.path}/wrangler.jsonc:3: main is "src/entry.py", but there is no ' in again
        moved.rename(entry)
        await served.desk.reload(settings=False)
        assert served.desk.problem is None


async def test_a_full_disk_is_told_and_what_was_not_written_is_not_answered(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with project.served(state=project.state) as served:
        commit, full = SqliteStore.commit, [True]

        def fail(store: SqliteStore) -> None:
            if full:
                raise StateError(f"{store.path} cannot be written: the disk is full")
            commit(store)

        monkeypatch.setattr(SqliteStore, "commit", fail)
        answer = await served.client.post("/", content=b"a")
        assert answer.status_code == 503
        assert "the disk is full" in answer.text
        assert [text for text, bad in served.news if bad] == [answer.text.strip()]
        full.clear()
        assert (await served.client.post("/", content=b"b")).status_code == 202
        assert served.news[-1] == ("the state is written again", False)
        assert len(served.desk.emulator.queues["jobs"].backlog) == 2


async def test_an_error_of_the_platforms_own_is_no_failure_to_write(project: Project) -> None:
    async with project.served(state=project.state) as served:

        def wrong() -> None:
            raise LookupError("a mistake of the emulator's")

        served.desk.platform.kernel.loop.kernel_soon(wrong)
        await until(lambda: served.news)
        assert (await served.client.post("/", content=b"a")).status_code == 202
        assert [text for text, _ in served.news] == ["a mistake of the emulator's"]


@asynccontextmanager
async def outside(project: Project) -> AsyncIterator[list[str]]:
    """A server outside; the project's Worker asks it a second after each request to itself."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().strip())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    project.write(
        "src/entry.py",
        f"""
        import asyncio
        from workers import Response, WorkerEntrypoint, fetch

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                self.ctx.waitUntil(self.later())
                return Response("ok")

            async def later(self):
                await asyncio.sleep(1)
                await self.env.JOBS.send("first")
                await fetch("http://127.0.0.1:{port}/after")
        """,
    )
    async with server:
        yield asked


async def test_a_request_waits_until_what_it_rests_on_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Worker hears nothing of a full disk, which no Worker has in production."""
    full: list[bool] = []
    commit = SqliteStore.commit

    def fail(store: SqliteStore) -> None:
        if full:
            raise StateError("the disk is full")
        commit(store)

    monkeypatch.setattr(SqliteStore, "commit", fail)
    async with (
        outside(project) as asked,
        project.served(state=project.state, outbound="allow") as served,
    ):
        await served.client.get("/")
        full.append(True)
        answer = await served.client.post("/cdn-cgi/emulator/clock", json={"advance": 1})
        assert answer.status_code == 503
        assert "the disk is full" in answer.text
        assert asked == []
        full.clear()
        await until(lambda: asked)
        assert asked == ["GET /after HTTP/1.1"]
        assert served.news[-1] == ("the state is written again", False)
        assert served.logs == [], "the Worker was told of the disk"


async def test_a_request_goes_on_where_there_is_room_again_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else has noticed that something could not be written: it must not wait for them."""
    failures: list[bool] = []
    commit = SqliteStore.commit

    def fail(store: SqliteStore) -> None:
        if failures:
            failures.pop()
            raise StateError("the disk is full")
        commit(store)

    monkeypatch.setattr(SqliteStore, "commit", fail)
    async with (
        outside(project) as asked,
        project.served(state=project.state, outbound="allow") as served,
    ):
        await served.client.get("/")
        failures.append(True)
        await served.advance("1 second")
        await until(lambda: asked)
        assert (asked, failures) == (["GET /after HTTP/1.1"], [])
        assert served.logs == []


async def test_no_part_of_an_answer_leaves_before_what_it_rests_on_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(
        "src/entry.py",
        """
        import asyncio
        from js import ReadableStream
        from pyodide.ffi import to_js
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                async def chunks():
                    yield to_js(b"one")
                    await asyncio.sleep(1)
                    await self.env.JOBS.send("first")
                    yield to_js(b"two")
                return Response(ReadableStream.from_(chunks()))
        """,
    )
    full: list[bool] = []
    commit = SqliteStore.commit

    def fail(store: SqliteStore) -> None:
        if full:
            raise StateError("the disk is full")
        commit(store)

    monkeypatch.setattr(SqliteStore, "commit", fail)
    async with project.served(state=project.state) as served:
        connection = Connection(served.application, "/")
        connection.send()
        await connection.receive()
        assert (await connection.receive())["body"] == b"one"
        full.append(True)
        answer = await served.client.post("/cdn-cgi/emulator/clock", json={"advance": 1})
        assert answer.status_code == 503
        await asyncio.wait_for(connection.task, 10)
        assert connection.received.empty()
        full.clear()


async def test_a_machine_whose_clock_is_put_back_is_told_of_and_time_goes_on(
    project: Project,
) -> None:
    async with project.served(clock="real", state=project.state) as served:
        clock = served.desk.platform.kernel.clock
        assert isinstance(clock, RealClock)
        machine, before = clock._machine, clock.now
        clock._machine = lambda: machine() - 3600 * MICROSECONDS
        assert (await served.client.post("/", content=b"a")).status_code == 202
        (told, bad), after = served.news[-1], clock.now
        assert not bad
        assert told.startswith("the machine's clock was put back by ")
        assert before <= after < before + 60 * MICROSECONDS
        await served.advance("1 second")
        assert served.logs == ["version 1 ['a']"]


async def test_what_is_past_is_forgotten_in_a_server_that_runs_for_long(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.server.desk._KEPT", 10)
    monkeypatch.setattr("emulator.server.desk._FORGET_EVERY", 20)
    async with project.served(history=50) as served:
        for number in range(40):
            await served.client.post(f"/{number}", content=b"x")
            await served.advance("1 second")
        kernel = served.desk.platform.kernel
        assert len(kernel.trace) == 50
        assert len(kernel.logs) < 30
        assert len(kernel._numbers) < 40
        assert len(served.desk.emulator.queues["jobs"].deliveries) < 30
        assert served.desk.emulator.faults.sites == []
        assert len(served.desk.emulator.faults.counts) < 40


async def test_a_client_that_reads_a_stream_sees_it_break_off_when_settings_change(
    project: Project,
) -> None:
    project.write(
        "src/entry.py",
        """
        import asyncio
        from js import ReadableStream
        from pyodide.ffi import to_js
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                async def chunks():
                    yield to_js(b"one")
                    await asyncio.sleep(3600)
                return Response(ReadableStream.from_(chunks()))
        """,
    )
    async with project.served(state=project.state) as served:
        connection = Connection(served.application, "/")
        connection.send()
        await connection.receive()
        await connection.receive()
        await served.desk.reload(settings=True)
        await asyncio.wait_for(connection.task, 10)
        assert connection.received.empty()
