"""Requests to Workers through the server, and what happens where no Worker answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from served_project import Connection, until

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio

STREAMS = """
import asyncio
from js import ReadableStream
from pyodide.ffi import to_js
from workers import Response, WorkerEntrypoint

gate = asyncio.Event()


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.method == "POST":
            reader = request.js_object.body.getReader()
            first = await reader.read()
            total = first.value.byteLength
            print("first chunk of", total)
            while True:
                part = await reader.read()
                if part.done:
                    return Response(str(total))
                total += part.value.byteLength

        async def chunks():
            yield to_js(b"one ")
            await gate.wait()
            yield to_js(b"two")

        if "/open" in request.url:
            gate.set()
            return Response("opened")
        return Response(ReadableStream.from_(chunks()))
"""


async def test_a_worker_sees_the_url_and_headers_of_the_client(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                seen = dict(request.headers)
                return Response.json({"url": request.url, "method": request.method, **seen})
        """,
    )
    async with project.served() as served:
        answer = await served.client.get("/a%20b?x=1&x=%C3%A9", headers={"X-One": "1"})
        seen = answer.json()
        assert seen["url"] == "http://localhost:8787/a%20b?x=1&x=%C3%A9"
        assert seen["x-one"] == "1"
        assert seen["cf-connecting-ip"] == "127.0.0.1"
        assert "connection" not in seen


async def test_an_answer_has_the_status_headers_and_body_of_the_workers(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response("made", status=201, headers={"X-Thing": "é"})
        """,
    )
    async with project.served() as served:
        answer = await served.client.get("/")
        assert (answer.status_code, answer.text) == (201, "made")
        assert answer.headers["x-thing"] == "é"
        assert answer.headers["content-length"] == "4"
        assert "transfer-encoding" not in answer.headers
        head = await served.client.head("/")
        assert (head.status_code, head.content) == (201, b"")


async def test_an_exception_of_the_handler_is_a_500_as_in_production(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        from workers import WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                raise ValueError("broken")
        """,
    )
    async with project.served() as served:
        answer = await served.client.get("/")
        assert answer.status_code == 500
        assert answer.text.startswith("Error: PythonError")


async def test_an_answer_is_streamed_while_the_worker_makes_it(project: Project) -> None:
    project.write("src/entry.py", STREAMS)
    async with project.served() as served:
        connection = Connection(served.application, "/stream")
        connection.send()
        head = await connection.receive()
        assert head["status"] == 200
        assert (await connection.receive())["body"] == b"one "
        assert connection.received.empty()
        assert (await served.client.get("/open")).text == "opened"
        assert (await connection.receive())["body"] == b"two"
        assert await connection.receive() == {"type": "http.response.body", "body": b""}
        await connection.task


async def test_a_request_is_streamed_while_the_client_sends_it(project: Project) -> None:
    project.write("src/entry.py", STREAMS)
    async with project.served() as served:
        connection = Connection(served.application, "/", method="POST")
        connection.send(b"a" * 10, more=True)
        await until(lambda: "first chunk of 10" in served.logs)
        connection.send(b"b" * 20, more=True)
        connection.send(b"c")
        assert (await connection.receive())["status"] == 200
        assert (await connection.receive())["body"] == b"31"


async def test_a_client_that_leaves_while_it_sends_breaks_the_body(project: Project) -> None:
    project.write("src/entry.py", STREAMS)
    async with project.served() as served:
        connection = Connection(served.application, "/", method="POST")
        connection.send(b"a" * 10, more=True)
        await until(lambda: served.logs)
        connection.leave()
        head = await connection.receive()
        assert head["status"] == 500
        assert b"Network connection lost." in (await connection.receive())["body"]


async def test_a_client_that_sends_more_than_the_worker_reads_is_held_back(
    project: Project,
) -> None:
    project.write(
        "src/entry.py",
        """
        import asyncio
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                await asyncio.sleep(3600)
                return Response("never read it")
        """,
    )
    async with project.served() as served:
        connection = Connection(served.application, "/", method="POST")
        for _ in range(100):
            connection.send(b"x" * 65536, more=True)
        for _ in range(500):
            await asyncio.sleep(0)
        assert connection.sent.qsize() > 90
        await served.advance("1 hour")
        assert (await connection.receive())["status"] == 200
        await asyncio.wait_for(connection.task, 10)


async def test_a_client_that_leaves_a_stream_is_a_disconnect(project: Project) -> None:
    project.write("src/entry.py", STREAMS)
    async with project.served() as served:
        connection = Connection(served.application, "/stream")
        connection.send()
        await connection.receive()
        await connection.receive()
        connection.leave()
        await until(lambda: any(event.kind == "disconnect" for event in served.desk.emulator.trace))
        assert not connection.task.done() or connection.task.exception() is None


async def test_requests_run_side_by_side(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        import asyncio
        from workers import Response, WorkerEntrypoint

        started = 0

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                global started
                started += 1
                while started < 20:
                    await asyncio.sleep(0)
                return Response(str(started))
        """,
    )
    async with project.served() as served:
        answers = await asyncio.gather(*(served.client.get(f"/{n}") for n in range(20)))
        assert {answer.text for answer in answers} == {"20"}


async def test_a_lost_reply_and_a_crash_are_bad_gateways(project: Project) -> None:
    async with project.served() as served:
        served.desk.emulator.faults.add("request.GET./one#1:lose_reply")
        served.desk.emulator.faults.add("request.GET./two#1:crash_before")
        assert (await served.client.get("/one")).status_code == 502
        answer = await served.client.get("/two")
        assert answer.status_code == 502
        assert "lost power" in answer.text
        assert (await served.client.get("/two")).status_code == 200


async def test_a_body_that_breaks_off_closes_the_connection(project: Project) -> None:
    project.write(
        "src/entry.py",
        """
        from js import ReadableStream
        from pyodide.ffi import to_js
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                async def chunks():
                    yield to_js(b"one")
                    raise ValueError("broken")
                return Response(ReadableStream.from_(chunks()))
        """,
    )
    async with project.served() as served:
        connection = Connection(served.application, "/")
        connection.send()
        await connection.receive()
        messages = [await connection.receive()]
        await connection.task
        while not connection.received.empty():
            messages.append(await connection.receive())
        assert all(message["more_body"] for message in messages)


async def test_a_body_that_is_too_large_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.server.gateway.MOST_BYTES", 300_000)
    project.write("src/entry.py", STREAMS)
    async with project.served() as served:
        answer = await served.client.post("/", content=b"x" * 300_001)
        assert answer.status_code == 413
        connection = Connection(served.application, "/", method="POST")
        for _ in range(4):
            connection.send(b"x" * 100_000, more=True)
        assert (await connection.receive())["status"] == 413
        assert (await connection.receive())["body"] == answer.content
        await asyncio.wait_for(connection.task, 10)
        told = [finding.message for finding in served.desk.emulator.findings]
        assert any("Network connection lost." in message for message in told)
        assert served.desk.open == {}
        assert (await served.client.post("/", content=b"x" * 300_000)).text == "300000"


async def test_a_body_that_proves_too_large_breaks_an_answer_that_has_begun(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.server.gateway.MOST_BYTES", 300_000)
    project.write(
        "src/entry.py",
        """
        import asyncio
        from js import ReadableStream
        from pyodide.ffi import to_js
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                reader = request.js_object.body.getReader()

                async def chunks():
                    yield to_js(b"begun")
                    try:
                        while not (await reader.read()).done:
                            pass
                    except Exception as error:
                        print("reading:", error)
                    await asyncio.sleep(3600)
                    yield to_js(b"never")
                return Response(ReadableStream.from_(chunks()))
        """,
    )
    async with project.served() as served:
        connection = Connection(served.application, "/", method="POST")
        connection.send(b"x", more=True)
        assert (await connection.receive())["status"] == 200
        assert (await connection.receive())["body"] == b"begun"
        for _ in range(4):
            connection.send(b"x" * 100_000, more=True)
        await asyncio.wait_for(connection.task, 10)
        assert connection.received.empty()  # without an end: the connection is closed
        assert served.logs == ["reading: Error: Network connection lost."]


async def test_a_client_that_leaves_before_the_body_is_there_costs_nothing(
    project: Project,
) -> None:
    async with project.served() as served:
        connection = Connection(
            served.application, "/", method="POST", headers=[("content-length", "10")]
        )
        connection.send(b"12345", more=True)
        connection.leave()
        await asyncio.wait_for(connection.task, 10)
        assert connection.received.empty()
        assert served.desk.open == {}
