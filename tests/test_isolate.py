"""An isolate's life: loading, eviction, crash, reload, and what is wrong with code."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from worker_files import handler, worker, write

from emulator import Emulator, WorkerCrashed, WorkerLoadError
from emulator.runtime.sdk import Response
from emulator.runtime.sdk.entrypoints import WorkerEntrypoint

pytestmark = pytest.mark.asyncio

COUNTER = Path(__file__).parent.parent / "fixtures" / "workers" / "counter" / "wrangler.jsonc"


async def text(emulator: Emulator, path: str = "/") -> str:
    return (await emulator.fetch(path)).text


# -- what a Worker is loaded from ------------------------------------------------------------------


async def test_globals_live_as_long_as_the_isolate() -> None:
    async with Emulator(COUNTER) as emulator:
        assert [await text(emulator) for _ in range(3)] == ["hello 1", "hello 2", "hello 3"]
        await emulator.evict()
        assert await text(emulator) == "hello 1"
        await emulator.crash()
        assert await text(emulator) == "hello 1"
        await emulator.reload()
        assert await text(emulator) == "hello 1"
        await emulator.restart()
        assert await text(emulator) == "hello 1"
        await text(emulator)
        await emulator.reset()
        assert await text(emulator) == "hello 1"


class Counting(WorkerEntrypoint):
    count = 0

    async def fetch(self, request: Any) -> Any:
        Counting.count += 1
        return Response(str(Counting.count))


async def test_a_class_is_the_default_entrypoint_whatever_its_name() -> None:
    """api.md 2: module and class objects are not imported again, their globals survive evict."""
    Counting.count = 0
    async with Emulator({"main": Counting}) as emulator:
        assert await text(emulator) == "1"
        await emulator.evict()
        assert await text(emulator) == "2"
        await emulator.crash()
        assert await text(emulator) == "3"


async def test_a_module_object_is_not_imported_again() -> None:
    module = ModuleType("made_here")
    Default = type("Default", (Counting,), {})
    module.__dict__["Default"] = Default
    Counting.count = 0
    async with Emulator({"main": module}) as emulator:
        assert await text(emulator) == "1"
        await emulator.evict()
        assert await text(emulator) == "2"


async def test_a_class_that_is_no_entrypoint_is_refused() -> None:
    with pytest.raises(WorkerLoadError, match="no subclass of workers"):
        Emulator({"main": type("Plain", (), {})})


# -- edits -----------------------------------------------------------------------------------------


async def test_reload_sees_an_edit_of_the_same_length_in_the_same_second(tmp_path: Path) -> None:
    config = handler(
        tmp_path, "import utils\nreturn Response(utils.X)", files={"utils.py": "X='a'"}
    )
    path = tmp_path / "src" / "utils.py"
    stat = path.stat()
    async with Emulator(config) as emulator:
        assert await text(emulator) == "a"
        path.write_text("X='b'")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        await emulator.reload()
        assert await text(emulator) == "b"


async def test_reload_sees_a_new_module(tmp_path: Path) -> None:
    config = handler(tmp_path, "import added\nreturn Response(added.X)")
    async with Emulator(config) as emulator:
        emulator.findings.expect("handler_exception")
        assert (await emulator.fetch("/")).status_code == 500
        write(tmp_path / "src", {"added.py": "X = 'new'"})
        await emulator.reload()
        assert await text(emulator) == "new"


async def test_an_edit_without_a_reload_is_not_seen_even_after_a_crash(tmp_path: Path) -> None:
    """What was deployed runs until the next deployment."""
    config = handler(tmp_path, "return Response('old')")
    async with Emulator(config) as emulator:
        write(tmp_path / "src", {"entry.py": "this is no Python"})
        await emulator.crash()
        assert await text(emulator) == "old"
        await emulator.evict()
        assert await text(emulator) == "old"


async def test_a_reload_that_fails_keeps_the_old_code_and_its_memory(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        "import utils\nutils.count += 1\nreturn Response(str(utils.count))",
        files={"utils.py": "count = 0"},
    )
    async with Emulator(config) as emulator:
        assert await text(emulator) == "1"
        write(tmp_path / "src", {"entry.py": "def ("})
        with pytest.raises(WorkerLoadError, match=r"SyntaxError.*src/entry\.py:1"):
            await emulator.reload()
        assert await text(emulator) == "2"
        await emulator.crash()
        assert await text(emulator) == "1"


async def test_many_reloads_in_a_row_leave_one_consumer(tmp_path: Path) -> None:
    """public-reports S-12."""
    config = worker(
        tmp_path,
        """
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx):
                print(len(batch.messages))
        """,
        queues={"consumers": [{"queue": "q"}]},
    )
    async with Emulator(config) as emulator:
        for _ in range(50):
            await emulator.reload()
        await emulator.queues["q"].send(1)
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["1"]


async def test_tracebacks_show_the_lines_of_the_new_code(tmp_path: Path) -> None:
    config = handler(tmp_path, "raise ValueError('one')")
    async with Emulator(config) as emulator:
        assert "raise ValueError('one')" in await text(emulator)
        handler(tmp_path, "raise ValueError('two')")
        await emulator.reload()
        assert "raise ValueError('two')" in await text(emulator)


# -- evict and crash with something in flight ------------------------------------------------------


async def test_what_is_in_flight_finishes_in_the_old_memory_after_evict(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        """
        import utils
        utils.count += 1
        if path == "/slow":
            await asyncio.sleep(5)
        return Response(str(utils.count))
        """,
        files={"utils.py": "count = 0"},
    )
    async with Emulator(config) as emulator:
        slow = asyncio.ensure_future(emulator.fetch("/slow", advance=False))
        await emulator.fetch("/", advance=False)
        await emulator.evict()
        assert (await emulator.fetch("/", advance=False)).text == "1"  # fresh memory
        assert not slow.done()
        await emulator.advance(5)
        assert (await slow).text == "2"  # the old memory, with both requests


async def test_a_crash_reaches_what_an_eviction_left_running(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        """
        try:
            await asyncio.sleep(5)
        finally:
            print("this line never runs")
        """,
    )
    async with Emulator(config) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/", advance=False))
        await emulator.advance(1)
        await emulator.evict()
        await emulator.crash()
        with pytest.raises(WorkerCrashed, match="request GET / was cut off"):
            await request
        await emulator.advance(10)
        assert list(emulator.logs) == []


async def test_a_crash_ends_every_request_in_flight_at_once(tmp_path: Path) -> None:
    config = handler(tmp_path, "await asyncio.sleep(60)")
    async with Emulator(config) as emulator:
        requests = [asyncio.ensure_future(emulator.fetch(f"/{n}", advance=False)) for n in "ab"]
        await emulator.advance(1)
        started = emulator.now
        await emulator.crash()
        results = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(result) for result in results] == [WorkerCrashed, WorkerCrashed]
        assert emulator.now == started


# -- code that cannot be loaded --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message", "cause"),
    [
        ("x = 1\ndef (", r"SyntaxError.*src/entry\.py:2", SyntaxError),
        ("x = 1\n\n1 / 0", r"ZeroDivisionError.*src/entry\.py:3", ZeroDivisionError),
        ("import nothing_like_this", r"ModuleNotFoundError.*src/entry\.py:1", ModuleNotFoundError),
        ("raise SystemExit(3)", r"SystemExit: 3.*src/entry\.py:1", SystemExit),
        ("raise KeyboardInterrupt", r"KeyboardInterrupt.*src/entry\.py:1", KeyboardInterrupt),
        ("class B(BaseException): ...\nraise B('b')", r"B: b.*src/entry\.py:2", BaseException),
        ("import utils", r"ValueError: deep.*src/utils\.py:2", ValueError),
    ],
)
async def test_an_error_at_import_names_the_line_and_is_the_cause(
    tmp_path: Path, source: str, message: str, cause: type[BaseException]
) -> None:
    config = worker(tmp_path, source, {"utils.py": "\nraise ValueError('deep')"})
    with pytest.raises(WorkerLoadError, match=message) as caught:
        Emulator(config)
    assert isinstance(caught.value.__cause__, cause)


async def test_after_an_error_at_import_nothing_stays_open(tmp_path: Path) -> None:
    import random
    import sys
    import time

    before = (time.time, sys.stdout, random.getstate(), set(sys.modules))
    with pytest.raises(WorkerLoadError):
        Emulator(worker(tmp_path, "import utils\n1/0", {"utils.py": ""}))
    after = (time.time, sys.stdout, random.getstate(), set(sys.modules))
    assert after == before
    assert time.time() > 1_600_000_000


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("", "write `class Default"),
        ("def fetch(request, env): ...", "write `class Default"),
        ("def on_fetch(request, env): ...", "disable_python_no_global_handlers"),
        (
            "from workers import WorkerEntrypoint\nclass My(WorkerEntrypoint): ...\nDefault = My",
            "there are only: My. An alias",
        ),
    ],
)
async def test_a_module_without_an_entrypoint_is_refused_with_advice(
    tmp_path: Path, source: str, advice: str
) -> None:
    """python-api.md 2.1, rule 5: deploying it fails with 10068."""
    with pytest.raises(WorkerLoadError, match="no registered event handlers") as caught:
        Emulator(worker(tmp_path, source))
    assert advice in str(caught.value)
    assert "src/entry.py:1" in str(caught.value)


async def test_code_that_breaks_after_a_crash_fails_the_request_that_loads_it(
    tmp_path: Path,
) -> None:
    """Module code may depend on the hour; the next request loads it again and is told."""
    config = handler(tmp_path, "return Response('ok')")
    source = (tmp_path / "src" / "entry.py").read_text()
    late = "import time\nif time.time() > 1767225600 + 60: raise ValueError('too late')\n"
    write(tmp_path / "src", {"entry.py": late + source})
    async with Emulator(config) as emulator:
        assert await text(emulator) == "ok"
        await emulator.advance(100)
        await emulator.crash()
        with pytest.raises(WorkerLoadError, match=r"too late.*src/entry\.py:2"):
            await emulator.fetch("/")
        outcome, error = await emulator.scheduled()
        assert (outcome, type(error)) == ("exception", WorkerLoadError)


async def test_code_that_breaks_after_a_crash_fails_the_batches_of_its_queue(
    tmp_path: Path,
) -> None:
    late = """
        import time
        from workers import WorkerEntrypoint
        if time.time() > 1767225600 + 60: raise ValueError('too late')
        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx): ...
        """
    config = worker(tmp_path, late, queues={"consumers": [{"queue": "q"}]})
    async with Emulator(config) as emulator:
        await emulator.advance(100)
        await emulator.crash()
        await emulator.queues["q"].send(1)
        await emulator.settle()
        errors = [delivery.error for delivery in emulator.queues["q"].deliveries]
        assert errors
        assert all(isinstance(error, WorkerLoadError) for error in errors)


# -- global scope ----------------------------------------------------------------------------------


async def test_env_can_be_read_at_import(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import Response, WorkerEntrypoint, env
        KEY = env.API_KEY
        MODE = getattr(env, "MODE", "default")
        HAS = hasattr(env, "MODE")
        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response(f"{KEY} {MODE} {HAS} {env.API_KEY} {self.env.API_KEY}")
        """,
        vars={"API_KEY": "k"},
    )
    async with Emulator(config) as emulator:
        assert await text(emulator) == "k default False k k"


@pytest.mark.parametrize(
    "statement",
    [
        "from js import fetch; fetch('https://x.example/')",
        "env.Q.send(1)",
        "waitUntil(later())",
        "import asyncio; asyncio.get_running_loop().create_task(later())",
    ],
)
async def test_io_in_global_scope_is_refused_with_productions_text(
    tmp_path: Path, statement: str
) -> None:
    source = f"from workers import env, waitUntil\nasync def later(): ...\n{statement}"
    config = worker(tmp_path, source, queues={"producers": [{"binding": "Q", "queue": "q"}]})
    with pytest.raises(WorkerLoadError, match="Disallowed operation called within global scope"):
        Emulator(config)
