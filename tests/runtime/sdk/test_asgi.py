"""`asgi.fetch` with applications written by hand: the protocol, in both generations of the SDK.

What is expected was read in the SDK 1.9.5 (`workers/asgi.py`) and in workerd's frozen `asgi.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
MODERN, FROZEN = "2026-05-01", "2026-04-20"

ENTRY = """
import asyncio
import json
import asgi
from workers import WorkerEntrypoint

SEEN = []

class App:
    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
        else:
            await self.http(scope, receive, send)

    async def lifespan(self, scope, receive, send):
        while True:
            message = await receive()
            SEEN.append(message["type"])
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def answer(self, send, body=b"", status=200, headers=()):
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def show(self, send, value):
        await self.answer(send, json.dumps(value, default=repr).encode())

"""
DEFAULT = """

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return await asgi.fetch(Mine(), request, self.env, self.ctx)
"""


def app(folder: Path, methods: str, *, date: str = MODERN, **config: Any) -> dict[str, Any]:
    """A Worker whose application has these methods; `http` answers."""
    entry = f"{ENTRY}\nclass Mine(App):\n{indent(methods, '    ')}\n{DEFAULT}"
    return worker(folder, entry, compatibility_date=date, **config)


SHOWS_SCOPE = """
async def http(self, scope, receive, send):
    await self.show(send, {
        **{k: v for k, v in scope.items() if k not in ("env", "method", "headers")},
        "env": scope["env"].MESSAGE,
        "method": f"{scope['method']}",
        "headers": dict(scope["headers"]).get(b"x-team"),
    })
"""


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_scope_of_a_request(tmp_path: Path, date: str) -> None:
    config = app(tmp_path, SHOWS_SCOPE, date=date, vars={"MESSAGE": "hello"})
    async with Emulator(config) as emulator:
        found = await emulator.fetch(
            "https://w.example/a%20b/%C3%A9?x=%31", method="PUT", headers={"X-Team": "a"}
        )
        expected = {
            "asgi": {"spec_version": "2.0", "version": "3.0"},
            "http_version": "1.1",
            "scheme": "https",
            "path": "/a%20b/%C3%A9",
            "query_string": "b'x=%31'",
            "type": "http",
            "env": "hello",
            "method": "PUT",
            "headers": "b'a'",
        }
        if date == MODERN:
            expected |= {"path": "/a b/é", "raw_path": "b'/a%20b/%C3%A9'", "state": {}}
        assert found.json() == expected


async def test_lifespan_runs_around_every_request_and_its_state_reaches_it(tmp_path: Path) -> None:
    """workers-py#217, #239: startup and shutdown for each request."""
    methods = """
async def lifespan(self, scope, receive, send):
    scope["state"]["thing"] = len(SEEN)
    await super().lifespan(scope, receive, send)

async def http(self, scope, receive, send):
    scope["state"]["mine"] = True
    await self.show(send, [SEEN, scope["state"]["thing"]])
"""
    up, down = "lifespan.startup", "lifespan.shutdown"
    async with Emulator(app(tmp_path, methods)) as emulator:
        assert (await emulator.fetch("/")).json() == [[up], 0]
        assert (await emulator.fetch("/")).json() == [[up, down, up], 2]
        assert list(emulator.findings) == []


async def test_frozen_sdk_never_asks_for_a_shutdown(tmp_path: Path) -> None:
    methods = """
async def lifespan(self, scope, receive, send):
    try:
        await super().lifespan(scope, receive, send)
    finally:
        SEEN.append("ended")

async def http(self, scope, receive, send):
    await self.show(send, [SEEN, "state" in scope])
"""
    up = "lifespan.startup"
    async with Emulator(app(tmp_path, methods, date=FROZEN)) as emulator:
        assert (await emulator.fetch("/")).json() == [[up], False]
        assert (await emulator.fetch("/")).json() == [[up, up], False]
        await emulator.settle()
        assert list(emulator.findings) == []


@pytest.mark.parametrize("how", ["raise ValueError('no lifespan')", "return"])
async def test_an_application_without_a_lifespan_is_served(tmp_path: Path, how: str) -> None:
    methods = f"""
async def lifespan(self, scope, receive, send):
    {how}

async def http(self, scope, receive, send):
    await self.answer(send, b"served")
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        assert (await emulator.fetch("/")).text == "served"
        assert list(emulator.findings) == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("'message': 'no database'", "no database"),
        ("'message': ''", "ASGI lifespan startup failed"),
    ],
)
async def test_a_failed_startup_fails_the_request(tmp_path: Path, message: str, text: str) -> None:
    methods = f"""
async def lifespan(self, scope, receive, send):
    await receive()
    await send({{"type": "lifespan.startup.failed", {message}}})

async def http(self, scope, receive, send):
    await self.answer(send, b"never")
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.text.endswith(f"RuntimeError: {text}")
        emulator.findings.expect("handler_exception")


async def test_an_application_without_a_lifespan_hangs_in_the_frozen_sdk(tmp_path: Path) -> None:
    """Rule 1 of `frozen_asgi.py`: nothing answers the startup, so nothing goes on."""
    methods = """
async def lifespan(self, scope, receive, send):
    return

async def http(self, scope, receive, send):
    await self.answer(send, b"never")
"""
    config = app(tmp_path, methods, date=FROZEN)
    async with Emulator(config, profile="miniflare") as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert "had hung and would never generate a response" in response.text


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_the_body_comes_in_chunks_and_then_an_empty_message(
    tmp_path: Path, date: str
) -> None:
    methods = """
async def http(self, scope, receive, send):
    messages = [await receive()]
    while messages[-1]["more_body"]:
        messages.append(await receive())
    await self.show(send, messages)
"""
    async with Emulator(app(tmp_path, methods, date=date)) as emulator:
        last = {"type": "http.request", "body": "b''", "more_body": False}
        found = await emulator.fetch("/", method="POST", content=b"abc")
        assert found.json() == [{"type": "http.request", "body": "b'abc'", "more_body": True}, last]
        assert (await emulator.fetch("/")).json() == [last]


async def test_headers_may_repeat(tmp_path: Path) -> None:
    """In the frozen SDK the last one stays (rule 3 of `frozen_asgi.py`)."""
    methods = """
async def http(self, scope, receive, send):
    cookies = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
    await self.answer(send, b"", 201, cookies)
"""
    for date, expected in ((MODERN, ["a=1", "b=2"]), (FROZEN, ["b=2"])):
        folder = tmp_path / date
        async with Emulator(app(folder, methods, date=date)) as emulator:
            response = await emulator.fetch("/")
            assert response.status_code == 201
            assert response.headers.get_list("set-cookie") == expected


async def test_a_status_without_a_body_has_none(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    await self.answer(send, b"", int(scope["path"][1:]))
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        for status in (204, 205, 304):
            assert (await emulator.fetch(f"/{status}")).status_code == status
    async with Emulator(app(tmp_path / "old", methods, date=FROZEN)) as emulator:
        response = await emulator.fetch("/204")
        assert "Response with null body status" in response.text
        emulator.findings.expect("handler_exception")


STREAMS = """
async def http(self, scope, receive, send):
    kind = scope["path"][1:].encode()
    headers = [(b"content-type", kind)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number in range(3):
        body = b"%d" % number
        await send({"type": "http.response.body", "body": body, "more_body": number < 2})
        SEEN.append(number)
        await asyncio.sleep(1)
    SEEN.append((await receive())["type"])
    SEEN.append((await receive())["type"])
    print(SEEN)
"""


async def test_a_response_in_parts_is_streamed(tmp_path: Path) -> None:
    async with Emulator(app(tmp_path, STREAMS)) as emulator:
        async with emulator.client.stream("GET", "http://localhost/text/plain") as response:
            parts = [
                (part, (emulator.now - START).total_seconds())
                async for part in response.aiter_bytes()
            ]
        assert parts == [(b"0", 0.0), (b"1", 1.0), (b"2", 2.0)]
        await emulator.settle()
        assert [log.text for log in emulator.logs] == [
            "['lifespan.startup', 0, 1, 2, 'http.request', 'http.disconnect']"
        ]
        (background,) = emulator.background
        assert background.state == "done"


async def test_the_shutdown_comes_after_a_streamed_body(tmp_path: Path) -> None:
    methods = (
        STREAMS
        + """
async def lifespan(self, scope, receive, send):
    await super().lifespan(scope, receive, send)
    print(SEEN[-1])
"""
    )
    async with Emulator(app(tmp_path, methods)) as emulator:
        assert (await emulator.fetch("/text/plain")).text == "012"
        await emulator.settle()
        assert [log.text for log in emulator.logs][-1] == "lifespan.shutdown"


async def test_the_reader_holds_a_streaming_application_back(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(100):
        await send({"type": "http.response.body", "body": b"x", "more_body": number < 99})
    print("all sent")
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        async with emulator.client.stream("GET", "http://localhost/") as response:
            await emulator.advance(10)
            assert list(emulator.logs) == []
            assert len(await response.aread()) == 100
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["all sent"]


@pytest.mark.parametrize(("kind", "text"), [("text/plain", "0"), ("text/event-stream", "012")])
async def test_frozen_sdk_streams_events_only(tmp_path: Path, kind: str, text: str) -> None:
    """Rule 2 of `frozen_asgi.py`: a second part of another response is an error inside."""
    async with Emulator(app(tmp_path, STREAMS, date=FROZEN)) as emulator:
        assert (await emulator.fetch(f"/{kind}")).text == text
        await emulator.settle()
        logs = [log.text.partition("\n")[0] for log in emulator.logs]
        failed = "Exception in ASGI application after response started"
        assert (logs == [failed]) is (kind == "text/plain")


async def test_frozen_sdk_needs_ctx_to_stream_events(tmp_path: Path) -> None:
    config = app(tmp_path, STREAMS, date=FROZEN)
    entry = tmp_path / "src" / "entry.py"
    entry.write_text(entry.read_text().replace(", self.ctx", ""))
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/text/event-stream")
        text = "RuntimeError: Server-Side-Events require ctx to be passed to asgi.fetch"
        assert response.text.endswith(text)
        emulator.findings.expect("handler_exception")
        emulator.findings.expect("floating_task")


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_an_exception_before_the_response_reaches_fetch(tmp_path: Path, date: str) -> None:
    methods = """
async def http(self, scope, receive, send):
    raise LookupError("nothing here")
"""
    async with Emulator(app(tmp_path, methods, date=date)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.text.endswith("LookupError: nothing here")
        (finding,) = emulator.findings
        assert finding.code == "handler_exception"
        first, *traceback = emulator.logs[0].text.splitlines()
        assert first == "ASGI request failed"
        assert traceback[-1] == "LookupError: nothing here"


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_an_application_that_does_not_answer(tmp_path: Path, date: str) -> None:
    methods = """
async def http(self, scope, receive, send):
    pass
"""
    async with Emulator(app(tmp_path, methods, date=date)) as emulator:
        response = await emulator.fetch("/")
        assert response.text.endswith("RuntimeError: The application did not generate a response")
        emulator.findings.expect("handler_exception")


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_an_exception_after_the_response_is_logged(tmp_path: Path, date: str) -> None:
    methods = """
async def http(self, scope, receive, send):
    await self.answer(send, b"answered")
    raise LookupError("too late")
"""
    async with Emulator(app(tmp_path, methods, date=date)) as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, response.text) == (200, "answered")
        (log,) = emulator.logs
        first, *traceback = log.text.splitlines()
        assert first == "Exception in ASGI application after response started"
        assert traceback[0] == "Traceback (most recent call last):"
        assert traceback[-1].startswith("LookupError: ")


async def test_an_exception_in_the_middle_of_a_stream_ends_the_body(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    raise LookupError("half way")
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        response = await emulator.fetch("/")
        await emulator.settle()
        assert (response.status_code, response.text) == (200, "first")
        (log,) = emulator.logs
        first, *traceback = log.text.splitlines()
        assert first == "Exception in ASGI application after response started"
        assert traceback[0] == "Traceback (most recent call last):"
        assert traceback[-1].startswith("LookupError: ")


async def test_work_after_the_answer_delays_it(tmp_path: Path) -> None:
    """A response in one piece waits for the application to return: so do Starlette's tasks."""
    methods = """
async def http(self, scope, receive, send):
    await self.answer(send, b"answered")
    await asyncio.sleep(5)
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        await emulator.fetch("/")
        assert (emulator.now - START).total_seconds() == 5


async def test_a_client_that_leaves_ends_a_stream(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(1)
    finally:
        print("left")
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        async with emulator.client.stream("GET", "http://localhost/") as response:
            async for _ in response.aiter_bytes():
                break
        await emulator.settle()
        assert emulator.logs[0].text == "left"


async def test_entrypoint_makes_the_class(tmp_path: Path) -> None:
    entry = f"""{ENTRY}
class Mine(App):
    async def http(self, scope, receive, send):
        await self.answer(send, scope["env"].MESSAGE.encode())

Default = asgi.entrypoint(Mine(), options=asgi.Options(encode_body="automatic"))
"""
    config = worker(tmp_path, entry, compatibility_date=MODERN, vars={"MESSAGE": "hello"})
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "hello"


async def test_a_body_that_is_encoded_already(tmp_path: Path) -> None:
    """`encode_body="manual"` is JavaScript's `encodeBody`: the runtime does not compress again."""
    entry = f"""{ENTRY}
import gzip
from workers.gateway import BaseOptions, EncodeBody
class Mine(App):
    async def http(self, scope, receive, send):
        await self.answer(send, gzip.compress(b"packed"), 200, [(b"content-encoding", b"gzip")])

Default = asgi.entrypoint(Mine(), options=asgi.Options(encode_body="manual"))
"""
    async with Emulator(worker(tmp_path, entry, compatibility_date=MODERN)) as emulator:
        assert (await emulator.fetch("/")).content == b"packed"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "asgi.Options(encode_body='none')",
            "encode_body must be one of ('automatic', 'manual'), got 'none'",
        ),
        ("asgi.nothing", "module 'workers.asgi' has no attribute 'nothing'"),
    ],
)
async def test_mistakes_have_productions_texts(tmp_path: Path, expression: str, text: str) -> None:
    methods = f"""
async def http(self, scope, receive, send):
    {expression}
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        assert (await emulator.fetch("/")).text.endswith(text)
        emulator.findings.expect("handler_exception")


async def test_frozen_sdk_has_no_entrypoint(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    asgi.entrypoint(self)
"""
    async with Emulator(app(tmp_path, methods, date=FROZEN)) as emulator:
        response = await emulator.fetch("/")
        assert "AttributeError: module 'asgi' has no attribute 'entrypoint'\n" in response.text
        assert "has no `asgi.entrypoint`: call `asgi.fetch(app" in response.text
        emulator.findings.expect("handler_exception")


async def test_both_names_are_one_module(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    import workers.asgi
    from workers import asgi as third
    from workers.asgi import fetch
    await self.show(send, [asgi is workers.asgi, asgi is third, asgi.fetch is fetch])
"""
    async with Emulator(app(tmp_path, methods)) as emulator:
        assert (await emulator.fetch("/")).json() == [True, True, True]


async def test_a_javascript_request_will_do(tmp_path: Path) -> None:
    methods = """
async def http(self, scope, receive, send):
    method = scope["method"]
    await self.show(send, [type(method).__name__, dict(scope["headers"])[b"x-team"].decode()])
"""
    config = app(tmp_path, methods)
    entry = tmp_path / "src" / "entry.py"
    entry.write_text(entry.read_text().replace("Mine(), request", "Mine(), request.js_object"))
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/", headers={"X-Team": "a"})).json() == ["str", "a"]
