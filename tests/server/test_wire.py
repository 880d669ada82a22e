"""The command in a process of its own: start, signals, kills, and what keeps it from starting."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import httpx
import pytest
from wire import SCRIPT, ServerProcess

if TYPE_CHECKING:
    from served_project import Project


SLOW = """
import asyncio
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        print("begun")
        if "/spin" in request.url:
            while True:
                pass
        if "/slow" in request.url:
            await asyncio.sleep(float(request.url.split("?")[1]))
        return Response("finished")
"""


def refused(project: Project, *options: str) -> str:
    """Start a server that cannot; returns what it says."""
    done = subprocess.run(
        [str(SCRIPT), "dev", *options],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def slow_request(server: ServerProcess, path: str) -> tuple[threading.Thread, list[str]]:
    """Send a request in the background; the list gets its answer."""
    answers: list[str] = []

    def send() -> None:
        try:
            answers.append(httpx.get(server.url + path, trust_env=False, timeout=60).text)
        except httpx.HTTPError as error:
            answers.append(type(error).__name__)

    thread = threading.Thread(target=send)
    thread.start()
    server.wait(lambda line: line.get("data", {}).get("text") == "begun")
    return thread, answers


def test_messages_survive_a_kill_and_are_delivered_by_the_next_server(project: Project) -> None:
    config = (project.path / "wrangler.jsonc").read_text().replace('_timeout": 1', '_timeout": 30')
    project.write("wrangler.jsonc", config)
    with ServerProcess(project.path) as server:
        for text in ("a", "b"):
            assert server.client.post("/", content=text).status_code == 202
        server.kill()
    with ServerProcess(project.path) as server:
        server.advance("1 minute")
        server.wait(lambda line: "['a', 'b']" in line.get("data", {}).get("text", ""))
        assert server.client.post("/", content="c").status_code == 202
        assert server.stop() == 0
        assert server.said("stopped")["remains"] == ["1 message in jobs"]


def test_what_is_in_flight_finishes_after_a_signal(project: Project) -> None:
    project.write("src/entry.py", SLOW)
    for number in (signal.SIGINT, signal.SIGTERM):
        with ServerProcess(project.path) as server:
            thread, answers = slow_request(server, "/slow?0.3")
            assert server.stop(number) == 0
            thread.join(30)
            assert answers == ["finished"]
            assert not any("cut off" in line.get("server", "") for line in server.lines)


def test_what_is_not_finished_in_time_is_told(project: Project) -> None:
    project.write("src/entry.py", SLOW)
    with ServerProcess(project.path, "--drain", "0.2") as server:
        thread, answers = slow_request(server, "/slow?3600")
        assert server.stop() == 0
        thread.join(30)
        assert answers != ["finished"]
        said = [line["server"] for line in server.lines if "cut off" in line.get("server", "")]
        assert said == [
            f"cut off: GET {server.url}/slow?3600",
            "cut off: request GET /slow waits at src/entry.py:13",
        ]


def test_the_second_signal_ends_the_wait_for_what_is_in_flight(project: Project) -> None:
    project.write("src/entry.py", SLOW)
    with ServerProcess(project.path, "--drain", "3600") as server:
        thread, answers = slow_request(server, "/slow?3600")
        server.process.send_signal(signal.SIGINT)
        server.said("waiting up to 3600 s for what is in flight; Ctrl-C again to end now")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        thread.join(30)
        assert answers != ["finished"]
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_a_worker_that_spins_is_ended_by_the_second_signal(project: Project) -> None:
    project.write("src/entry.py", SLOW)
    with ServerProcess(project.path) as server:
        thread = threading.Thread(
            target=lambda: httpx.get(server.url + "/spin", trust_env=False, timeout=60)
        )
        thread.start()
        # Nothing is printed while it spins: the process is busy when it has used some time.
        stat = f"/proc/{server.process.pid}/stat"
        if not os.path.exists(stat):
            pytest.skip("how busy a process is can be asked on Linux only")
        used = _used(stat)
        while _used(stat) < used + 50:
            pass
        server.process.send_signal(signal.SIGINT)
        said = server.said("Ctrl-C again to end now")["server"]
        assert re.match(r"the Worker runs at src/entry\.py:(10|11), and is waited for", said)
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
        thread.join(30)
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()
    assert not [line for line in server.lines if "Traceback" in line.get("server", "")]


def _used(stat: str) -> int:
    with open(stat) as file:
        return int(file.read().rpartition(")")[2].split()[11])


def test_a_port_that_is_taken_is_told_with_a_way_out(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = refused(project, "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}" in text
    assert "--port" in text
    assert not (project.path / ".workers-emulator").exists()


def test_a_second_server_on_one_state_is_refused(project: Project) -> None:
    with ServerProcess(project.path) as server:
        text = refused(project, "--port", "0")
        assert f"in use by another server, process {server.process.pid} on {server.url}" in text
        assert server.client.get("/").status_code == 200
        other = project.path / "other-state"
        with ServerProcess(project.path, "--state", str(other)) as second:
            assert second.client.get("/").status_code == 200


def test_a_damaged_state_is_moved_aside_and_told(project: Project) -> None:
    folder = project.path / ".workers-emulator"
    folder.mkdir()
    (folder / "state.db").write_bytes(b"no database at all " * 100)
    with ServerProcess(project.path) as server:
        server.said("It was moved to")
        assert server.client.get("/").status_code == 200
    (aside,) = sorted(folder.glob("damaged-*"))
    assert (aside / "state.db").read_bytes().startswith(b"no database")


def test_a_state_of_a_newer_release_is_refused_and_left_alone(project: Project) -> None:
    import sqlite3

    from emulator.store.sqlite import APPLICATION_ID

    folder = project.path / ".workers-emulator"
    folder.mkdir()
    connection = sqlite3.connect(folder / "state.db")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 999")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = (folder / "state.db").read_bytes()
    text = refused(project, "--port", "0")
    assert "version 999" in text
    assert "use the release that wrote it" in text
    assert (folder / "state.db").read_bytes() == before


def test_a_server_for_others_asks_for_its_token(project: Project) -> None:
    with ServerProcess(project.path, "--host", "0.0.0.0") as server:
        said = server.said("dashboard, and other control pages: ")["server"]
        token = said.rpartition("token=")[2]
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        status = f"{url}/cdn-cgi/emulator/status"
        assert httpx.get(status, trust_env=False).status_code == 401
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(status, headers=headers, trust_env=False).status_code == 200
        assert httpx.get(url, trust_env=False).status_code == 200


def test_two_workers_share_a_queue(project: Project) -> None:
    """O-08, S-02: a message of the one reaches the other; alone, it waits and that is told."""
    config = json.dumps(
        {
            "name": "api",
            "main": "entry.py",
            "compatibility_date": "2026-10-01",
            "compatibility_flags": ["python_workers"],
            "queues": {"producers": [{"binding": "JOBS", "queue": "shared-jobs"}]},
            "env": {"dev": {"queues": {"producers": [{"binding": "JOBS", "queue": "dev-jobs"}]}}},
        }
    )
    at_once = {"max_batch_timeout": 0}
    consumer = json.dumps(
        {
            "name": "jobs",
            "main": "entry.py",
            "compatibility_date": "2026-10-01",
            "compatibility_flags": ["python_workers"],
            "queues": {"consumers": [at_once | {"queue": "shared-jobs"}]},
            "env": {"dev": {"queues": {"consumers": [at_once | {"queue": "dev-jobs"}]}}},
        }
    )
    project.write("api/wrangler.json", config)
    project.write("jobs/wrangler.json", consumer)
    source = (project.path / "src/entry.py").read_text()
    project.write("api/entry.py", source)
    project.write("jobs/entry.py", source)
    with ServerProcess(project.path, "-c", "api", "-c", "jobs", "-e", "dev") as server:
        assert server.client.post("/", content="hello").status_code == 202
        server.wait(lambda line: "['hello']" in line.get("data", {}).get("text", ""))
    with ServerProcess(project.path, "-c", "api", "--state", "alone") as server:
        warned = [line["server"] for line in server.lines if "server" in line]
        assert "warning: the queue shared-jobs has no consumer; 0 waiting" in warned
        assert server.client.post("/", content="kept").status_code == 202
    with ServerProcess(project.path, "-c", "api", "-c", "jobs", "--state", "alone") as server:
        server.wait(lambda line: "['kept']" in line.get("data", {}).get("text", ""))


def test_a_broken_answer_is_no_error_of_the_servers(project: Project) -> None:
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
    with ServerProcess(project.path) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            server.client.get("/")
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as raw:
            raw.sendall(b"nonsense\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_secrets_are_masked_in_all_that_it_prints(project: Project) -> None:
    project.write(".dev.vars", "TOKEN=hunter2-hunter2\n")
    project.write(
        "src/entry.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                print("the token is", self.env.TOKEN)
                raise ValueError(self.env.TOKEN)
        """,
    )
    with ServerProcess(project.path) as server:
        assert server.client.get("/").status_code == 500
        server.wait(lambda line: "token is" in line.get("data", {}).get("text", ""))
        server.stop()
        assert "hunter2" not in json.dumps(server.lines)
        assert "[secret TOKEN]" in json.dumps(server.lines)
