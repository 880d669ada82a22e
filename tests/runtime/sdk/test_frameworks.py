"""FastAPI, Starlette, Django and Flask as Workers (docs/frameworks.md)."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator
from emulator.errors import WorkerCrashed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
MODERN, FROZEN = "2026-05-01", "2026-04-20"
LATE = "Exception in ASGI application after response started"

FASTAPI = """
import asyncio
from contextlib import asynccontextmanager
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from workers import WorkerEntrypoint
import asgi

starts = []

@asynccontextmanager
async def lifespan(app):
    starts.append("up")
    yield {"number": len(starts)}
    starts.append("down")

app = FastAPI(lifespan=lifespan)

def team(request: Request):
    return request.headers["x-team"]

@app.get("/state")
async def state(request: Request):
    return [request.state.number, starts]

@app.get("/env")
async def from_env(env=asgi.env, team: str = Depends(team)):
    return [env.MESSAGE, team]

@app.get("/inline")
def inline(request: Request):
    return request.scope["env"].MESSAGE

@app.post("/echo/{item}")
async def echo(item: int, body: dict, q: str = "none"):
    return [item, body, q]

@app.get("/background")
async def background(tasks: BackgroundTasks):
    async def work():
        await asyncio.sleep(5)
        print("worked")
    tasks.add_task(work)
    tasks.add_task(print, "inline")
    return "answered"

@app.get("/stream")
async def stream():
    async def parts():
        for number in range(3):
            yield f"{number}"
            await asyncio.sleep(1)
    return StreamingResponse(parts())

@app.get("/teapot")
async def teapot():
    raise HTTPException(418, "short and stout")

@app.get("/fails")
async def fails():
    raise LookupError("nothing here")

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return await asgi.fetch(app, request, self.env, self.ctx)
"""


def fastapi(folder: Path, more: str = "", *, date: str = MODERN) -> Emulator:
    pytest.importorskip("fastapi", reason="it is a development dependency")
    entry = FASTAPI.replace("class Default", f"{more}\nclass Default")
    return Emulator(worker(folder, entry, compatibility_date=date, vars={"MESSAGE": "hello"}))


def seconds(emulator: Emulator) -> float:
    return (emulator.now - START).total_seconds()


@pytest.mark.parametrize("date", [MODERN, FROZEN])
async def test_fastapi_answers(tmp_path: Path, date: str) -> None:
    async with fastapi(tmp_path, date=date) as emulator:
        env = await emulator.fetch("/env", headers={"X-Team": "a"})
        assert env.json() == ["hello", "a"]
        assert (await emulator.fetch("/inline")).json() == "hello"
        echo = await emulator.fetch("/echo/3", method="POST", json={"a": 1}, params={"q": "x"})
        assert echo.json() == [3, {"a": 1}, "x"]
        refused = await emulator.fetch("/echo/three", method="POST", json={"a": 1})
        assert refused.status_code == 422
        assert (await emulator.fetch("/teapot")).json() == {"detail": "short and stout"}
        assert (await emulator.fetch("/nowhere")).status_code == 404
        assert list(emulator.findings) == []


async def test_fastapi_starts_and_stops_for_every_request(tmp_path: Path) -> None:
    """workers-py#217, #239."""
    async with fastapi(tmp_path) as emulator:
        assert (await emulator.fetch("/state")).json() == [1, ["up"]]
        assert (await emulator.fetch("/state")).json() == [3, ["up", "down", "up"]]


async def test_background_tasks_delay_the_answer(tmp_path: Path) -> None:
    """A response in one piece is returned when the application has returned (SDK 1.9.5)."""
    for date in (MODERN, FROZEN):
        async with fastapi(tmp_path / date, date=date) as emulator:
            assert (await emulator.fetch("/background")).json() == "answered"
            assert seconds(emulator) == 5
            assert [log.text for log in emulator.logs] == ["worked", "inline"]


async def test_fastapi_streams(tmp_path: Path) -> None:
    async with fastapi(tmp_path) as emulator:
        async with emulator.client.stream("GET", "http://localhost/stream") as response:
            parts = [(part, seconds(emulator)) async for part in response.aiter_text()]
        assert parts == [("0", 0.0), ("1", 1.0), ("2", 2.0)]


async def test_frozen_sdk_gets_no_further_than_the_first_part(tmp_path: Path) -> None:
    async with fastapi(tmp_path, date=FROZEN) as emulator:
        assert (await emulator.fetch("/stream")).text == "0"


async def test_an_exception_in_an_endpoint_is_answered_and_logged(tmp_path: Path) -> None:
    """Starlette answers 500 and raises again, which the bridge logs."""
    async with fastapi(tmp_path) as emulator:
        response = await emulator.fetch("/fails")
        assert (response.status_code, response.text) == (500, "Internal Server Error")
        (log,) = emulator.logs
        assert log.text.startswith(f"{LATE}\nTraceback (most recent call last):\n")
        assert 'File "entry.py", line ' in log.text
        assert list(emulator.findings) == []


async def test_middleware_and_exception_handlers_take_part(tmp_path: Path) -> None:
    more = """
@app.middleware("http")
async def stamp(request, call_next):
    response = await call_next(request)
    response.headers["x-stamp"] = request.method
    return response

@app.exception_handler(LookupError)
async def missing(request, error):
    from fastapi.responses import JSONResponse
    return JSONResponse({"missing": str(error)}, 404)
"""
    async with fastapi(tmp_path, more) as emulator:
        response = await emulator.fetch("/fails")
        assert (response.status_code, response.json()) == (404, {"missing": "nothing here"})
        assert response.headers["x-stamp"] == "GET"
        assert list(emulator.findings) == []


async def test_a_power_cut_in_an_endpoint(tmp_path: Path) -> None:
    more = """
@app.get("/kept")
async def kept(request: Request):
    try:
        await request.scope["env"].KV.put("a", "b")
        print("never")
    finally:
        print("never")
"""
    entry = FASTAPI.replace("class Default", f"{more}\nclass Default")
    config = worker(tmp_path, entry, kv_namespaces=[{"binding": "KV", "id": "kv"}])
    pytest.importorskip("fastapi", reason="it is a development dependency")
    async with Emulator(config, faults=["kv.KV.put#1:crash_after"]) as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/kept")
        await emulator.settle()
        assert list(emulator.logs) == []
        assert await emulator.env.KV.get("a") == "b"


# -- Starlette ---


async def test_starlette_reads_streams_and_forms(tmp_path: Path) -> None:
    entry = """
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse
        from starlette.routing import Route
        from workers import asgi

        async def chunks(request):
            return JSONResponse([chunk.decode() async for chunk in request.stream()])

        async def left(request):
            await request.body()
            return JSONResponse(await request.is_disconnected())

        app = Starlette(routes=[
            Route("/chunks", chunks, methods=["POST"]), Route("/left", left, methods=["POST"]),
        ])
        Default = asgi.entrypoint(app)
    """
    async with Emulator(worker(tmp_path, entry, compatibility_date=MODERN)) as emulator:
        found = await emulator.fetch("/chunks", method="POST", content=b"abc")
        assert found.json() == ["abc", ""]
        assert (await emulator.fetch("/left", method="POST", content=b"abc")).json() is False


# -- Django ---

DJANGO = {
    "settings_of_test.py": """
        from workers import env

        SECRET_KEY = env.SECRET
        ALLOWED_HOSTS = ["*"]
        ROOT_URLCONF = "urls_of_test"
        MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
        LOGGING_CONFIG = None
    """,
    "urls_of_test.py": """
        from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
        from django.urls import path
        from pyodide.ffi import run_sync

        def hello(request, name):
            env = request.META["workers.env"]
            return JsonResponse({"hello": name, "kv": run_sync(env.KV.get("key"))})

        def echo(request):
            return HttpResponse(request.body[::-1], status=201)

        def stream(request):
            return StreamingHttpResponse(f"{number}" for number in range(3))

        def fails(request):
            raise LookupError("nothing here")

        async def later(request):
            import asyncio
            await asyncio.sleep(2)
            return HttpResponse("later")

        urlpatterns = [
            path("hello/<name>/", hello), path("echo/", echo), path("stream/", stream),
            path("fails/", fails), path("later/", later),
        ]
    """,
}
WSGI = """
    import os
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings_of_test"
    from django.core.wsgi import get_wsgi_application
    from workers import WorkerEntrypoint, wsgi
    app = get_wsgi_application()

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            return await wsgi.fetch(app, request, self.env)
"""


@pytest.fixture
def fresh_django(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Django's state is the process's own: its modules are imported anew for each test."""
    pytest.importorskip("django", reason="it is a development dependency")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "")

    def loaded() -> dict[str, Any]:
        names = [name for name in sys.modules if name.partition(".")[0] in ("django", "asgiref")]
        return {name: sys.modules.pop(name) for name in names}

    before = loaded()
    yield
    loaded()
    sys.modules.update(before)


def django(folder: Path, entry: str) -> Emulator:
    return Emulator(
        worker(
            folder,
            entry,
            DJANGO,
            compatibility_date=MODERN,
            vars={"SECRET": "s"},
            kv_namespaces=[{"binding": "KV", "id": "kv"}],
        )
    )


@pytest.mark.usefixtures("fresh_django")
async def test_django_by_wsgi(tmp_path: Path) -> None:
    async with django(tmp_path, WSGI) as emulator:
        await emulator.env.KV.put("key", "value")
        assert (await emulator.fetch("/hello/Ada/")).json() == {"hello": "Ada", "kv": "value"}
        echo = await emulator.fetch("/echo/", method="POST", content=b"abc")
        assert (echo.status_code, echo.text) == (201, "cba")
        assert (await emulator.fetch("/stream/")).text == "012"
        assert (await emulator.fetch("/fails/")).status_code == 500
        assert (await emulator.fetch("/nowhere/")).status_code == 404
        assert list(emulator.findings) == []


@pytest.mark.usefixtures("fresh_django")
async def test_django_by_asgi_has_no_lifespan_and_is_served(tmp_path: Path) -> None:
    entry = WSGI.replace("wsgi", "asgi")
    async with django(tmp_path, entry) as emulator:
        assert (await emulator.fetch("/later/")).text == "later"
        assert seconds(emulator) == 2
        assert (await emulator.fetch("/echo/", method="POST", content=b"abc")).text == "cba"


# -- Flask ---


async def test_flask_by_wsgi(tmp_path: Path) -> None:
    pytest.importorskip("flask", reason="it is not installed")
    entry = """
        from flask import Flask, request
        from workers import wsgi
        app = Flask(__name__)

        @app.post("/echo/<item>")
        def echo(item):
            return {"item": item, "json": request.get_json(), "q": request.args.get("q")}

        @app.get("/env")
        def env():
            return request.environ["workers.env"].MESSAGE

        Default = wsgi.entrypoint(app)
    """
    config = worker(tmp_path, entry, compatibility_date=MODERN, vars={"MESSAGE": "hello"})
    async with Emulator(config) as emulator:
        found = await emulator.fetch("/echo/é", method="POST", json=[1], params={"q": "x"})
        assert found.json() == {"item": "é", "json": [1], "q": "x"}
        assert (await emulator.fetch("/env")).text == "hello"
