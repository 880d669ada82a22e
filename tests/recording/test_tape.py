"""What the outside answered is recorded and played back, whatever client the Worker has."""

from __future__ import annotations

import gzip
import importlib.util
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from recorded_project import Recorded
    from served_project import Served

_FETCHES = {
    "fetch": "answer = await fetch(url); text = await answer.text(); status = answer.status",
    "httpx": (
        "import httpx\n            async with httpx.AsyncClient() as client:\n"
        "                answer = await client.get(url)\n"
        "            text, status = answer.text, answer.status_code"
    ),
    "httpx_sync": (
        "import httpx\n            answer = httpx.get(url)\n"
        "            text, status = answer.text, answer.status_code"
    ),
    "requests": (
        "import requests\n            answer = requests.get(url)\n"
        "            text, status = answer.text, answer.status_code"
    ),
    "aiohttp": (
        "import aiohttp\n            async with aiohttp.ClientSession() as client:\n"
        "                async with client.get(url) as answer:\n"
        "                    text, status = await answer.text(), answer.status"
    ),
    "urllib": (
        "import urllib.request\n            with urllib.request.urlopen(url) as answer:\n"
        "                text, status = answer.read().decode(), answer.status"
    ),
}
WORKER = """
from urllib.parse import urlsplit

from workers import Response, WorkerEntrypoint, fetch


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        url = self.env.OUTSIDE + urlsplit(request.url).path
        try:
            FETCH
        except Exception as error:
            return Response(f"{type(error).__name__}", status=502)
        return Response(f"{status} {text}")
"""


def _asking(recorded: Recorded, client: str) -> None:
    """Let the Worker ask the outside for each path, and nothing else."""
    recorded.write("src/entry.py", WORKER.replace("FETCH", _FETCHES[client]))
    config = {
        "name": "shop",
        "main": "src/entry.py",
        "compatibility_date": "2026-10-01",
        "compatibility_flags": ["python_workers"],
        "vars": {"OUTSIDE": recorded.outside.url},
    }
    recorded.write("wrangler.jsonc", json.dumps(config))


@pytest.mark.parametrize("client", _FETCHES)
def test_each_client_gets_the_recorded_answers(recorded: Recorded, client: str) -> None:
    if client in ("requests", "aiohttp") and importlib.util.find_spec(client) is None:
        pytest.skip(f"{client} is not installed")
    _asking(recorded, client)
    answers = recorded.outside.answers
    answers["/one"] = (200, b"first")

    async def visit(served: Served) -> None:
        assert (await served.client.get("/one")).text == "200 first"
        answers["/one"] = (200, b"second")
        assert (await served.client.get("/one")).text == "200 second"
        assert (await served.client.get("/down")).status_code == 502

    recorded.record(visit)
    asked = len(recorded.outside.seen)
    assert asked >= 3
    told = recorded.replayed()
    assert [line.partition(":")[0] for line in told] == ["same"] * 3
    assert len(recorded.outside.seen) == asked


def test_a_compressed_answer_is_kept_decoded(recorded: Recorded) -> None:
    _asking(recorded, "fetch")
    recorded.outside.answers["/zip"] = (200, gzip.compress(b"unpacked", mtime=0))
    recorded.outside.headers["/zip"] = {"content-encoding": "gzip"}
    recording = recorded.record(lambda served: served.client.get("/zip"))
    (answer,) = recording.outgoing
    assert answer.body == b"unpacked"
    assert recorded.replayed() == ["same: entry 1 GET /zip 200"]
    recorded.printed()


def test_a_redirect_is_two_exchanges(recorded: Recorded) -> None:
    _asking(recorded, "fetch")
    recorded.outside.answers["/old"] = (302, b"")
    recorded.outside.headers["/old"] = {"location": "/new"}
    recording = recorded.record(lambda served: served.client.get("/old"))
    assert [one.url.rpartition("/")[2] for one in recording.outgoing] == ["old", "new"]
    assert recorded.replayed() == ["same: entry 1 GET /old 200"]


def test_a_large_answer_is_not_kept_and_that_is_said(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.recording.recorder.MOST_BODY", 1_000)
    _asking(recorded, "fetch")
    recorded.outside.answers["/big"] = (200, b"x" * 2_000)
    (answer,) = recorded.record(lambda served: served.client.get("/big")).outgoing
    assert answer.missing == "not in the recording, as its 2,000 bytes are too many"
    (line,) = recorded.replayed(code=1)
    assert line == "differs: entry 1 GET /big was 200, now 502"
    assert "the mock of GET" in recorded.run("--as-test").stderr


def test_secrets_of_the_outside_are_masked_and_filled_in(recorded: Recorded) -> None:
    secret = "k-12345-secret"
    _asking(recorded, "fetch")
    recorded.change(".path\n", ".path + '?key=' + self.env.API_KEY\n")
    recorded.outside.answers[f"/echo?key={secret}"] = (200, f"you sent {secret}".encode())
    recorded.record(lambda served: served.client.get("/echo"))
    assert secret not in recorded.file.read_text("utf-8")
    assert recorded.replayed() == ["same: entry 1 GET /echo 200"]
    printed = recorded.printed()
    assert "{emulator.env.API_KEY}" in printed
    recorded.pytest()


def test_time_that_the_outside_took_passes_again(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.post("/orders", content="x"))
    lines = recorded.file.read_text("utf-8").splitlines(keepends=True)
    slow = [line.replace('"took":0', '"took":1500000') for line in lines]
    assert slow != lines
    recorded.file.write_text("".join(slow), "utf-8")
    recorded.run("--trace", "trace.jsonl", code=1)  # the answer has the time
    trace = (recorded.path / "trace.jsonl").read_text("utf-8").splitlines()
    (out,) = [line for line in trace if '"request_out"' in line and "/price" in line]
    (back,) = [line for line in trace if '"response_in"' in line and "/price" in line]
    assert _seconds(back) - _seconds(out) == pytest.approx(1.5)


def _seconds(line: str) -> float:
    time = line.partition('"at":"')[2].partition("Z")[0].rpartition("T")[2]
    hours, minutes, seconds = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
