"""`asgi.websocket`, in both generations of the SDK (rules of `asgi_websocket.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

MODERN, FROZEN = "2026-05-01", "2026-04-20"

ENTRY = """
    import asgi
    from workers import WorkerEntrypoint

    async def app(scope, receive, send):
        assert scope["type"] == "websocket"
        print(scope["env"] if isinstance(scope["env"], dict) else scope["env"].TEXT)
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                print(message)
                return
            text = message.get("text")
            if text == "end":
                return
            if text == "raise":
                raise LookupError("half way")
            if text == "close":
                await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
                return
            if text == "empty":
                await send({"type": "websocket.send", "text": ""})
                await send({"type": "websocket.send", "bytes": b""})
                await send({"type": "websocket.send", "text": "done"})
                continue
            await send({"type": "websocket.send", "text": f"{sorted(message)} {text}"})
            await send({"type": "websocket.send", "bytes": message.get("bytes") or b"none"})

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            return await asgi.websocket(app, request, self.env)
"""


def connects(folder: Path, date: str = MODERN) -> dict[str, Any]:
    entry = ENTRY if date == MODERN else ENTRY.replace("app, request, self.env", "app, request")
    return worker(folder, entry, compatibility_date=date, vars={"TEXT": "hello"})


async def test_texts_and_bytes_come_and_go(tmp_path: Path) -> None:
    async with Emulator(connects(tmp_path)) as emulator:
        async with emulator.websocket("/") as ws:
            await ws.send("hi")
            assert await ws.receive() == "['text', 'type'] hi"
            assert await ws.receive() == b"none"
            await ws.send(b"\x00\x01")
            assert await ws.receive() == "['bytes', 'type'] None"
            assert await ws.receive() == b"\x00\x01"
            await ws.send("empty")
            assert [await ws.receive() for _ in range(3)] == ["", b"", "done"]
        await emulator.settle()
        assert [log.text for log in emulator.logs] == [
            "hello",
            "{'type': 'websocket.disconnect', 'code': 1000, 'reason': ''}",
        ]
        (background,) = emulator.background
        assert background.state == "done"
        assert list(emulator.findings) == []


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [("close", 4001, "enough"), ("end", 1000, ""), ("raise", 1011, "")],
)
async def test_the_application_ends_the_connection(
    tmp_path: Path, message: str, code: int, reason: str
) -> None:
    async with Emulator(connects(tmp_path)) as emulator:
        async with emulator.websocket("/") as ws:
            await ws.send(message)
            closed = await ws.wait_closed()
            assert (closed.code, closed.reason) == (code, reason)
        if message == "raise":
            assert emulator.logs[1].text.startswith("Unhandled exception in background task\n")
            emulator.findings.expect("background_error")


async def test_the_frozen_sdk(tmp_path: Path) -> None:
    async with Emulator(connects(tmp_path, FROZEN)) as emulator:
        async with emulator.websocket("/") as ws:
            await ws.send("hi")
            assert await ws.receive() == "['text', 'type'] hi"
            assert await ws.receive() == b"none"
            await ws.send("empty")
            assert await ws.receive() == "done"
        await emulator.settle()
        logs = [log.text for log in emulator.logs]
        assert logs == ["{}", " == Not implemented websocket.accept"]


async def test_starlettes_sockets(tmp_path: Path) -> None:
    entry = """
        from starlette.applications import Starlette
        from starlette.routing import WebSocketRoute
        from workers import asgi

        async def echo(websocket):
            await websocket.accept()
            async for text in websocket.iter_text():
                await websocket.send_json({"text": text, "room": websocket.path_params["room"]})

        Default = asgi.entrypoint(Starlette(routes=[WebSocketRoute("/{room}", echo)]))
    """
    async with Emulator(worker(tmp_path, entry, compatibility_date=MODERN)) as emulator:
        async with emulator.websocket("/blue") as ws:
            await ws.send("hi")
            assert await ws.receive_json() == {"text": "hi", "room": "blue"}
        await emulator.settle()
        assert list(emulator.findings) == []
