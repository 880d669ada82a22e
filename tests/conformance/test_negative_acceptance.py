"""What must fail exactly as in production: the negative list of python-api.md 6.3."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

MODERN, FROZEN = "2026-09-08", "2026-01-01"


def project(folder: Path, source: str, date: str = MODERN) -> dict[str, Any]:
    """A Worker with a queue that it produces for and consumes."""
    entry = folder / "src" / "entry.py"
    entry.parent.mkdir(exist_ok=True)
    entry.write_text("from workers import Response, WorkerEntrypoint\n" + dedent(source))
    return {
        "main": str(entry),
        "compatibility_date": date,
        "compatibility_flags": ["python_workers"],
        "queues": {
            "producers": [{"binding": "Q", "queue": "q"}],
            "consumers": [{"queue": "q", "max_retries": 0}],
        },
    }


async def delivered(config: dict[str, Any], body: Any) -> str:
    """Hand a message to the consumer; returns the error of its handler."""
    async with Emulator(config) as emulator:
        result = await emulator.queues["q"].dispatch([body])
        assert result.outcome == "exception"
        return str(result.error)


def consumer(statement: str) -> str:
    return f"""
class Default(WorkerEntrypoint):
    async def queue(self, batch, env, ctx):
        {statement}
"""


async def answered(config: dict[str, Any]) -> str:
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        return response.text


def fetching(statement: str) -> str:
    return f"""
class Default(WorkerEntrypoint):
    async def fetch(self, request):
        {statement}
        return Response("never")
"""


async def test_a_queue_handler_without_env_and_ctx_fails(tmp_path: Path) -> None:
    source = "class Default(WorkerEntrypoint):\n    async def queue(self, batch): ..."
    error = await delivered(project(tmp_path, source), "x")
    assert "Default.queue() takes 2 positional arguments but 4 were given" in error


async def test_a_scheduled_handler_without_env_and_ctx_fails(tmp_path: Path) -> None:
    source = "class Default(WorkerEntrypoint):\n    async def scheduled(self, event): ..."
    async with Emulator(project(tmp_path, source)) as emulator:
        outcome, error = await emulator.scheduled()
    assert outcome == "exception"
    assert "Default.scheduled() takes 2 positional arguments but 4 were given" in str(error)


async def test_a_dict_is_no_body_of_a_response(tmp_path: Path) -> None:
    text = await answered(project(tmp_path, fetching('return Response({"a": 1})')))
    assert "TypeError: Unsupported type in Response: dict" in text


async def test_a_tuple_cannot_be_sent(tmp_path: Path) -> None:
    text = await answered(project(tmp_path, fetching("await self.env.Q.send((1, 2))")))
    assert "TypeError: <class 'tuple'> cannot be sent over RPC." in text


async def test_bindings_have_no_snake_case(tmp_path: Path) -> None:
    error = await delivered(project(tmp_path, consumer("batch.ack_all()")), "x")
    assert error.endswith("ack_all")


async def test_a_body_is_no_proxy_with_the_sdk_from_pypi(tmp_path: Path) -> None:
    source = consumer("batch.messages[0].body.to_py()")
    assert (await delivered(project(tmp_path, source), {"k": 1})).endswith("to_py")


async def test_a_body_cannot_be_subscripted_with_the_frozen_sdk(tmp_path: Path) -> None:
    source = consumer('batch.messages[0].body["k"]')
    error = await delivered(project(tmp_path, source, FROZEN), {"k": 1})
    assert "'pyodide.ffi.JsProxy' object is not subscriptable" in error


async def test_the_folder_of_the_main_module_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "utils.py").write_text("")
    config = project(tmp_path, "import src.utils\n" + fetching("pass"))
    with pytest.raises(WorkerLoadError) as caught:
        Emulator(config)
    cause = caught.value.__cause__
    assert isinstance(cause, ModuleNotFoundError)
    assert str(cause).startswith("No module named 'src")


async def test_an_alias_is_no_default_entrypoint(tmp_path: Path) -> None:
    source = """
    class Other(WorkerEntrypoint):
        async def fetch(self, request):
            return Response("never")

    Default = Other
    """
    with pytest.raises(WorkerLoadError, match="Default"):
        Emulator(project(tmp_path, source))


async def test_a_callback_without_create_proxy_is_never_called(tmp_path: Path) -> None:
    """Seen in real Pyodide (tests/conformance/pyodide)."""
    source = """
    import asyncio

    import js
    from pyodide.ffi import create_proxy

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            called = []
            js.setTimeout(lambda: called.append("plain"), 5)
            js.setTimeout(create_proxy(lambda: called.append("kept")), 5)
            await asyncio.sleep(1)
            return Response(",".join(called))
    """
    async with Emulator(project(tmp_path, source)) as emulator:
        assert (await emulator.fetch("/")).text == "kept"
        (log,) = emulator.logs
    assert log.text.startswith("Uncaught Error: This borrowed proxy was automatically destroyed")
