"""A real server is recorded, killed, repeated and turned into a test, as a user does it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_replay import TAKE
from websockets.sync.client import connect
from wire import SCRIPT, ServerProcess

from emulator.recording.entries import Request
from emulator.recording.reading import read

if TYPE_CHECKING:
    from recorded_project import Outside, Recorded

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def signup(recorded: Recorded) -> Recorded:
    """The example, its mail service and its audit being servers of this machine."""
    for name in ("wrangler.jsonc", "src"):
        source, target = EXAMPLES / "signup" / name, recorded.path / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)  # type: ignore[operator]
    for name in ("src/entry.py", "src/mail.py"):
        text = (recorded.path / name).read_text("utf-8")
        text = re.sub(r"https://(?:mail|audit|reports)\.example", recorded.outside.url, text)
        recorded.write(name, text)
    return recorded


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: Outside) -> Recorded:
    from recorded_project import Recorded

    monkeypatch.chdir(tmp_path)
    project = Recorded(tmp_path, outside)
    shutil.rmtree(tmp_path / "src")
    return project


def test_a_failure_at_the_desk_becomes_a_test(signup: Recorded) -> None:
    """The mail service is down at first; the second attempt comes ten seconds later."""
    signup.outside.answers["/send"] = (503, b"down")
    with ServerProcess(signup.path, "--record", signup.file.name) as server:
        server.said("recording into shop.jsonl")
        answer = server.client.post("/signup", json={"email": "ada@example.com"})
        assert answer.status_code == 202
        server.advance("5 seconds")
        signup.outside.wait_for("/send")
        signup.outside.answers["/send"] = (202, b"")
        server.advance("1 minute")
        signup.outside.wait_for("/send", times=2)
        assert server.client.post("/signup", content="nonsense").status_code == 400
        assert server.stop() == 0
    paths = [path for _, path, _ in signup.outside.seen]
    assert paths == ["/lines", "/send", "/send"]
    assert stat.S_IMODE(signup.file.stat().st_mode) == 0o600

    assert signup.replayed() == [
        "same: entry 1 POST /signup 202",
        f"same: entry {read(signup.file).entries[-1].number} POST /signup 400",  # type: ignore[union-attr]
    ]
    signup.printed()
    signup.pytest()
    signup.change("status=202", "status=200")
    assert "was 202, now 200" in signup.replayed(code=1)[0]
    assert "assert 200 == 202" in signup.pytest(passes=False)
    assert [path for _, path, _ in signup.outside.seen] == paths, "nobody was asked again"


def test_what_was_recorded_before_a_kill_is_there(signup: Recorded) -> None:
    with ServerProcess(signup.path, "--record", signup.file.name) as server:
        assert server.client.post("/signup", json={"email": "ada@example.com"}).status_code == 202
        server.kill()
    recording = read(signup.file)
    assert [str(entry) for entry in recording.entries] == ["POST /signup"]
    assert recording.ended is None
    with ServerProcess(signup.path, "--record", signup.file.name) as server:
        server.advance("10 seconds")
        assert server.client.post("/signup", json={"email": "bob@example.com"}).status_code == 202
        server.stop()
    lines = signup.replayed("--trace", "trace.jsonl")
    assert [line.partition(" POST")[0].partition(":")[0] for line in lines] == ["same", "same"]
    trace = (signup.path / "trace.jsonl").read_text("utf-8")
    assert '"kind":"restart"' in trace
    sent = [json.loads(body)["to"] for _, path, body in signup.outside.seen if path == "/send"]
    assert sent == ["ada@example.com"], "the killed server's mail was sent by the next one"


def test_a_websocket_of_a_real_client_is_repeated(recorded: Recorded) -> None:
    from recorded_project import WORKER

    recorded.write("src/entry.py", WORKER)
    with ServerProcess(recorded.path, "--record", recorded.file.name) as server:
        with connect(f"{server.url.replace('http', 'ws')}/ws") as client:
            client.send("hi")
            assert client.recv() == "you said hi"
            client.send("again")
            assert client.recv() == "you said again"
        server.wait(lambda line: line.get("kind") == "socket_closed")
        server.stop()
    assert recorded.replayed() == ["same: entry 1 WebSocket /ws 101"]
    recorded.printed()
    recorded.pytest()
    recorded.change("you said", "you told")
    recorded.pytest(passes=False)


def test_a_race_at_the_desk_is_the_same_race_again(recorded: Recorded) -> None:
    """Sockets that are all written to while the server stands still: it sees all at once."""
    from recorded_project import WORKER

    recorded.write("src/entry.py", WORKER.replace('if path == "/slow":', TAKE))
    with ServerProcess(recorded.path, "--record", recorded.file.name) as server:
        port = int(server.url.rpartition(":")[2])
        sockets = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(8)]
        server.process.send_signal(signal.SIGSTOP)
        for one in sockets:
            one.sendall(b"POST /take HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nhi")
        server.process.send_signal(signal.SIGCONT)
        for one in sockets:
            assert one.recv(16).startswith(b"HTTP/1.1 200")
            one.close()
        server.stop()
    answers = [one.answer for one in read(recorded.file).entries if isinstance(one, Request)]
    bodies = [answer.body for answer in answers if answer is not None]
    assert len(bodies) == 8
    assert len(set(bodies)) < 8, "some of them took the same apple"
    lines = recorded.replayed()
    assert lines == [f"same: entry {number} POST /take 200" for number in range(1, 9)]
    recorded.printed()
    recorded.pytest()


def test_several_workers_are_recorded_into_one_file(recorded: Recorded) -> None:
    for name in ("api", "jobs"):
        recorded.write(
            f"{name}/wrangler.jsonc",
            json.dumps(
                {
                    "name": name,
                    "main": "entry.py",
                    "compatibility_date": "2026-10-01",
                    "compatibility_flags": ["python_workers"],
                }
            ),
        )
        recorded.write(
            f"{name}/entry.py",
            f"""
            from workers import Response, WorkerEntrypoint

            class Default(WorkerEntrypoint):
                async def fetch(self, request):
                    return Response("this is {name}")
            """,
        )
    options = ("-c", "api/wrangler.jsonc", "-c", "jobs/wrangler.jsonc", "--clock", "virtual")
    with ServerProcess(recorded.path, *options, "--record", recorded.file.name) as server:
        assert server.client.get("/").text == "this is api"
        headers = {"emulator-worker": "jobs"}
        assert server.client.get("/", headers=headers).text == "this is jobs"
        server.stop()
    assert read(recorded.file).head.configs == ("api/wrangler.jsonc", "jobs/wrangler.jsonc")
    assert recorded.replayed() == ["same: entry 1 GET / 200", "same: entry 2 GET / 200"]
    code = recorded.printed()
    assert 'worker="jobs"' in code
    assert '"api/wrangler.jsonc"' in code
    # The paths are those from the working directory, where the file is to lie.
    (recorded.path / "tests/test_printed.py").rename(recorded.path / "test_printed.py")
    shutil.rmtree(recorded.path / "tests")
    recorded.write("tests/test_printed.py", code.replace('"api/', '"../api/').replace(
        '"jobs/wrangler', '"../jobs/wrangler'))  # fmt: skip
    recorded.pytest()


def test_a_file_that_is_no_recording_keeps_the_server_from_starting(signup: Recorded) -> None:
    signup.file.write_text("my notes\n")
    finished = subprocess.run(
        [str(SCRIPT), "dev", "--port", "0", "--record", signup.file.name],
        cwd=signup.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 2
    assert "--record: shop.jsonl is there and is no recording" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert signup.file.read_text() == "my notes\n"
