"""`workers.wsgi` with applications written by hand (python-api.md 1.11; the SDK 1.9.5)."""

from __future__ import annotations

import asyncio
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator
from emulator.errors import WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

MODERN = "2026-05-01"

ENTRY = """
import asyncio
import json
from pyodide.ffi import run_sync
from workers import WorkerEntrypoint, wsgi

def show(start_response, value):
    start_response("200 OK", [("content-type", "application/json")])
    return [json.dumps(value, default=repr).encode()]

def app(environ, start_response):
"""
DEFAULT = """

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return await wsgi.fetch(app, request, self.env, self.ctx)
"""


def app(folder: Path, body: str, **config: Any) -> dict[str, Any]:
    """A Worker whose application has this body."""
    entry = f"{ENTRY}{indent(body, '    ')}\n{DEFAULT}"
    return worker(folder, entry, compatibility_date=MODERN, **config)


async def test_environ_of_a_request(tmp_path: Path) -> None:
    body = """
kept = {k: v for k, v in environ.items() if k not in ("wsgi.input", "wsgi.errors", "workers.env")}
return show(start_response, {**kept, "env": environ["workers.env"].MESSAGE})
"""
    async with Emulator(app(tmp_path, body, vars={"MESSAGE": "hello"})) as emulator:
        found = (
            await emulator.fetch(
                "https://w.example/a%20b/%C3%A9?x=%31",
                method="PUT",
                headers={"X-Team": "a", "Content-Type": "text/csv"},
            )
        ).json()
        assert {name: value for name, value in found.items() if not name.startswith("HTTP_")} == {
            "REQUEST_METHOD": "PUT",
            "SCRIPT_NAME": "",
            "PATH_INFO": "/a b/Ã©",
            "QUERY_STRING": "x=%31",
            "SERVER_NAME": "w.example",
            "SERVER_PORT": "443",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": "text/csv",
            "CONTENT_LENGTH": "0",
            "wsgi.version": [1, 0],
            "wsgi.url_scheme": "https",
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "env": "hello",
        }
        assert found["HTTP_X_TEAM"] == "a"


async def test_the_body_is_read_as_the_application_asks_for_it(tmp_path: Path) -> None:
    body = """
source = environ["wsgi.input"]
return show(start_response, [source.read(2), source.readline(), source.read(), source.read()])
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        found = await emulator.fetch("/", method="POST", content=b"ab-c\nde\nf")
        assert found.json() == ["b'ab'", "b'-c\\n'", "b'de\\nf'", "b''"]
        assert (await emulator.fetch("/")).json() == ["b''"] * 4


async def test_a_body_nobody_reads_is_dropped(tmp_path: Path) -> None:
    body = """
return show(start_response, "done")
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        response = await emulator.fetch("/", method="POST", content=b"unread")
        assert response.json() == "done"
        assert list(emulator.findings) == []


async def test_an_application_may_wait_without_await(tmp_path: Path) -> None:
    """Others go on meanwhile, and time with them."""
    body = """
seconds = int(environ["PATH_INFO"][1:])
found = run_sync(asyncio.sleep(seconds, seconds))
print(found)
return show(start_response, found)
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        slow, quick = await asyncio.gather(emulator.fetch("/5"), emulator.fetch("/2"))
        assert (slow.json(), quick.json()) == (5, 2)
        assert [(log.text, log.at.second) for log in emulator.logs] == [("2", 2), ("5", 5)]


async def test_the_response_is_made_as_it_is_read(tmp_path: Path) -> None:
    body = """
start_response("200 Fine", [("x-a", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2")])
def parts():
    try:
        for number in range(3):
            yield b"%d" % number
            run_sync(asyncio.sleep(1))
            yield b""
    finally:
        print("closed")
return parts()
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        async with emulator.client.stream("GET", "http://localhost/") as response:
            assert (response.status_code, response.reason_phrase) == (200, "Fine")
            assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
            parts = [(part, emulator.now.second) async for part in response.aiter_bytes()]
        assert parts == [(b"0", 0), (b"1", 1), (b"2", 2)]
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["closed"]


async def test_what_was_written_comes_first(tmp_path: Path) -> None:
    body = """
write = start_response("200 OK", [])
write(b"a")
return [b"", b"b", b"c"]
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "abc"


async def test_a_status_without_a_body(tmp_path: Path) -> None:
    body = """
class Parts(list):
    def close(self):
        print("closed")
start_response("204 No Content", [])
return Parts()
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).status_code == 204
        assert [log.text for log in emulator.logs] == ["closed"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise LookupError('nothing')", "LookupError: nothing"),
        ("return []", "RuntimeError: The WSGI application did not call start_response()"),
        (
            "start_response('200 OK', []); start_response('201 OK', [])",
            "AssertionError: start_response() called more than once",
        ),
    ],
)
async def test_errors_before_the_response_reach_fetch(tmp_path: Path, body: str, text: str) -> None:
    async with Emulator(app(tmp_path, body)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.text.endswith(text)
        first, *traceback = emulator.logs[0].text.splitlines()
        assert (first, traceback[-1]) == ("WSGI request failed", text)
        emulator.findings.expect("handler_exception")


async def test_an_error_in_the_middle_breaks_the_body_off(tmp_path: Path) -> None:
    body = """
start_response("200 OK", [])
def parts():
    yield b"first"
    raise LookupError("half way")
return parts()
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        with pytest.raises(ConnectionError, match="half way"):
            await emulator.fetch("/")
        emulator.findings.expect("handler_exception")
        first, *traceback = emulator.logs[0].text.splitlines()
        assert first == "Exception while streaming WSGI response body"
        assert traceback[-1] == "LookupError: half way"


async def test_entrypoint_makes_the_class(tmp_path: Path) -> None:
    entry = """
from workers import wsgi

def app(environ, start_response):
    start_response("200 OK", [])
    return [environ["workers.env"].MESSAGE.encode()]

Default = wsgi.entrypoint(app, options=wsgi.Options(encode_body="manual"))
"""
    config = worker(tmp_path, entry, compatibility_date=MODERN, vars={"MESSAGE": "hello"})
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "hello"


async def test_build_environ_of_a_body_in_memory(tmp_path: Path) -> None:
    body = """
from js import Request
request = Request.new("http://w.example:8080", method="POST", body="unused")
made = wsgi.build_environ(request, None, b"four")
names = ("CONTENT_LENGTH", "PATH_INFO", "SERVER_PORT")
return show(start_response, [*map(made.get, names), made["wsgi.input"].read()])
"""
    async with Emulator(app(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == ["4", "/", "8080", "b'four'"]


async def test_frozen_sdk_has_no_wsgi(tmp_path: Path) -> None:
    config = app(tmp_path, "return []") | {"compatibility_date": "2026-04-20"}
    with pytest.raises(WorkerLoadError, match="cannot import name 'wsgi' from 'workers'"):
        Emulator(config)
