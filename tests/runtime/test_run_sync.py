"""`run_sync` in Workers, and what else Pyodide's modules have for user code.

Results and texts were seen in Pyodide 0.28.2 and 314.0.6, and, for the oldest generation, in the
runtime of 2024 (Pyodide 0.26.0a2).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from worker_files import handler, worker

from emulator import Emulator
from emulator.errors import WorkerCrashed, WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

DATES = ["2026-09-08", "2026-05-01", "2025-10-01"]
NO_SWITCH = (
    "RuntimeError: Cannot stack switch because the Python entrypoint was a synchronous function. "
    "Use pyFunc.callPromising() to fix."
)
ATTEMPT = """
from pyodide.ffi import can_run_sync, create_proxy, run_sync
import js
def attempt(work):
    try:
        return work()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
async def value(x):
    await asyncio.sleep(1)
    return x
async def fails():
    raise ValueError("from inside")
"""


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ("run_sync(value(5))", 5),
        ("run_sync(asyncio.ensure_future(value(5)))", 5),
        ("run_sync(js.Promise.resolve(9))", 9),
        ("run_sync(run_sync(value(asyncio.sleep(1, 3))))", 3),
        ("asyncio.run(value(4))", 4),
        ("can_run_sync()", True),
        ("run_sync(fails())", "ValueError: from inside"),
        ("run_sync(5)", "TypeError: object int is not awaitable"),
        ("run_sync(None)", "TypeError: object NoneType is not awaitable"),
        ("run_sync(js.Promise.reject(js.Error.new('zz')))", "JsException: Error: zz"),
        ("js.Array.of(1).map(create_proxy(lambda *_: can_run_sync()))[0]", False),
        ("js.Array.of(1).map(create_proxy(lambda *_: run_sync(value(1))))[0]", NO_SWITCH),
    ],
)
async def test_what_run_sync_returns_and_raises(
    tmp_path: Path, date: str, work: str, expected: object
) -> None:
    body = f"{ATTEMPT}\nreturn Response.json(attempt(lambda: {work}))"
    async with Emulator(handler(tmp_path, body, compatibility_date=date)) as emulator:
        assert (await emulator.fetch("/")).json() == expected
        assert list(emulator.findings) == []


async def test_a_synchronous_handler_may_wait(tmp_path: Path) -> None:
    entry = """
        import asyncio
        from pyodide.ffi import run_sync
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            def fetch(self, request):
                return Response(run_sync(asyncio.sleep(3, "waited")))
    """
    async with Emulator(worker(tmp_path, entry)) as emulator:
        assert (await emulator.fetch("/")).text == "waited"
        assert emulator.now.second == 3


async def test_invocations_do_not_wait_for_each_other(tmp_path: Path) -> None:
    body = """
        from pyodide.ffi import run_sync
        run_sync(asyncio.sleep(int(path[1:])))
        return Response(path)
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*map(emulator.fetch, ("/9", "/1", "/4")))
        assert [one.text for one in answers] == ["/9", "/1", "/4"]
        assert emulator.now.second == 9


async def test_a_binding_is_called_without_await(tmp_path: Path) -> None:
    body = """
        from pyodide.ffi import run_sync
        run_sync(self.env.KV.put("key", "value"))
        return Response(run_sync(self.env.KV.get("key")))
    """
    config = handler(tmp_path, body, kv_namespaces=[{"binding": "KV", "id": "kv"}])
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "value"
        assert list(emulator.findings) == []


async def test_a_power_cut_freezes_code_that_waits(tmp_path: Path) -> None:
    body = """
        from pyodide.ffi import run_sync
        try:
            run_sync(asyncio.sleep(10))
        finally:
            print("never")
        return Response("never")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/", advance=False))
        await asyncio.sleep(0)
        await emulator.advance(5)
        await emulator.crash()
        with pytest.raises(WorkerCrashed):
            await request
        await emulator.advance(100)
        assert list(emulator.logs) == []
        assert list(emulator.findings) == []


async def test_no_waiting_while_a_module_is_imported(tmp_path: Path) -> None:
    entry = """
        import asyncio
        from pyodide.ffi import run_sync
        loop = asyncio.get_event_loop_policy()
        class Awaits:
            def __await__(self):
                yield
        run_sync(Awaits())
    """
    with pytest.raises(WorkerLoadError, match="Cannot stack switch"):
        Emulator(worker(tmp_path, entry))


async def test_the_oldest_runtime_has_no_run_sync(tmp_path: Path) -> None:
    body = """
        import pyodide.ffi
        try:
            from pyodide.ffi import run_sync
        except ImportError as error:
            return Response(f"{error} {hasattr(pyodide.ffi, 'run_sync')} {error.__notes__[0]}")
    """
    async with Emulator(
        handler(
            tmp_path,
            body,
            compatibility_date="2025-09-01",
            compatibility_flags=["python_no_global_handlers"],
        )
    ) as emulator:
        text = (await emulator.fetch("/")).text
        assert text.startswith(
            "cannot import name 'run_sync' from 'pyodide.ffi' "
            "(/lib/python312.zip/pyodide/ffi/__init__.py) False "
        )
        assert "python_workers_20250116" in text


# -- pyodide.code, pyodide.webloop, _pyodide -------------------------------------------------------


async def test_a_relaxed_call_drops_what_a_function_does_not_take(tmp_path: Path) -> None:
    body = """
        from pyodide.code import relaxed_call, relaxed_wrap
        def two(a, b=2): return [a, b]
        def many(*args, key=0): return [*args, key]
        def named(**named): return sorted(named)
        try:
            relaxed_call(two)
        except TypeError as error:
            missing = str(error)
        return Response.json([
            relaxed_call(two, 1, 3, 4, c=5), relaxed_call(two, 1, b=7, c=8),
            relaxed_call(many, 1, 2, key=3, x=4), relaxed_call(named, 1, a=2),
            relaxed_wrap(two)(1, 2, 3), missing,
        ])
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            [1, 3],
            [1, 7],
            [1, 2, 3],
            ["a"],
            [1, 2],
            "missing a required argument: 'a'",
        ]


async def test_javascript_that_comes_as_text_is_refused(tmp_path: Path) -> None:
    """Seen in the runtime of 2024."""
    body = """
        from pyodide.code import run_js
        return Response(run_js("1 + 1"))
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        text = "EvalError: Code generation from strings disallowed for this context"
        assert (await emulator.fetch("/")).text == text
        emulator.findings.expect("handler_exception")


async def test_python_that_comes_as_text_runs(tmp_path: Path) -> None:
    body = """
        from pyodide.code import eval_code, eval_code_async, find_imports, should_quiet
        space = {"asyncio": asyncio}
        return Response.json([
            eval_code("x = 2\\nx + 1", space), space["x"], eval_code("x + 1;", space),
            eval_code("y = 5", space, return_mode="last_expr_or_assign"),
            eval_code("1", return_mode="none"),
            await eval_code_async("await asyncio.sleep(1, 7)", space),
            find_imports("import a.b, c\\nfrom d import e\\nfrom . import f"),
            should_quiet("1; # quiet"),
        ])
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        found = (await emulator.fetch("/")).json()
        assert found == [3, 2, None, 5, None, 7, ["a", "c", "d"], True]


async def test_the_loop_is_pyodides(tmp_path: Path) -> None:
    body = """
        import _pyodide
        from pyodide.webloop import PyodideFuture, PyodideTask, WebLoop
        import js
        return Response.json([
            isinstance(asyncio.get_running_loop(), WebLoop),
            isinstance(asyncio.current_task(), PyodideTask),
            isinstance(js.Promise.resolve(1), PyodideFuture),
            isinstance(1, WebLoop),
        ])
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == [True, True, True, False]


# -- the rest of `workers` -------------------------------------------------------------------------


@pytest.mark.parametrize("date", ["2026-05-01", "2026-04-20"])
async def test_modules_of_javascript(tmp_path: Path, date: str) -> None:
    body = """
        from workers import import_from_javascript
        found = import_from_javascript("cloudflare:workers")
        async def later():
            print("later")
        found.waitUntil(asyncio.ensure_future(later()))
        errors = []
        for look in (
            lambda: import_from_javascript("cloudflare:sockets").connect,
            lambda: import_from_javascript("node:fs"),
            lambda: found.nothing,
        ):
            try:
                look()
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
        return Response.json([found.env.TEXT, errors])
    """
    config = handler(tmp_path, body, vars={"TEXT": "text"}, compatibility_date=date)
    async with Emulator(config) as emulator:
        text, errors = (await emulator.fetch("/")).json()
        assert text == "text"
        assert errors[0].startswith("AttributeError: workers-emulator does not provide `cloudflare")
        failed = "ImportError: Failed to import 'node:fs': Error: No such module \"node:fs\"."
        assert errors[1:] == [failed, "AttributeError: nothing"]
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["later"]


async def test_other_modules_of_javascript_are_not_there_in_the_global_scope(
    tmp_path: Path,
) -> None:
    entry = """
        from workers import import_from_javascript
        print(import_from_javascript("cloudflare:workers").env.TEXT)
        import_from_javascript("node:fs")
    """
    text = (
        "Failed to import 'node:fs': Only 'cloudflare:workers' and 'cloudflare:sockets' are "
        "available in the global scope."
    )
    with pytest.raises(WorkerLoadError, match=text):
        Emulator(worker(tmp_path, entry, vars={"TEXT": "text"}))


async def test_env_is_there_while_a_module_is_imported(tmp_path: Path) -> None:
    """`API_KEY = env.API_KEY` on the top level, as real code has it (python-api.md 1.3)."""
    entry = """
        from workers import Response, WorkerEntrypoint, env
        KEY = env.KEY
        OTHER = getattr(env, "OTHER", "none")

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response.json([KEY, OTHER, env.KEY])
    """
    for date in ("2026-05-01", "2026-04-20"):
        config = worker(tmp_path, entry, vars={"KEY": "k"}, compatibility_date=date)
        async with Emulator(config) as emulator:
            assert (await emulator.fetch("/")).json() == ["k", "none", "k"]


async def test_patch_env_is_for_the_code_inside(tmp_path: Path) -> None:
    body = """
        from workers import env, patch_env
        async def other():
            await asyncio.sleep(1)
            return env.A
        found = [env.A]
        outside = asyncio.create_task(other())
        with patch_env({"A": "patched"}, B="new"):
            found += [env.A, self.env.A, env.B, await other()]
        return Response.json([*found, env.A, hasattr(env, "B"), await outside])
    """
    async with Emulator(handler(tmp_path, body, vars={"A": "own"})) as emulator:
        assert (await emulator.fetch("/")).json() == [
            *("own", "patched", "patched", "new", "patched"),
            *("own", False, "own"),
        ]


async def test_what_user_code_takes_from_utils(tmp_path: Path) -> None:
    body = """
        import _cloudflare_compat_flags
        from workers.utils import _is_js_instance, _jsnull_to_none, _to_js_headers, get_compat_flag
        from pyodide.ffi import jsnull
        import js
        return Response.json([
            get_compat_flag("python_workers_314"), get_compat_flag("nothing"),
            _cloudflare_compat_flags.python_workers_314,
            _jsnull_to_none(jsnull), _to_js_headers([("a", "b")]).get("a"),
            _is_js_instance(js.Headers.new(), "Headers"), _is_js_instance("x", {"Headers"}),
        ])
    """
    async with Emulator(handler(tmp_path, body, compatibility_date="2026-09-08")) as emulator:
        assert (await emulator.fetch("/")).json() == [True, False, True, None, "b", True, False]


async def test_the_sdks_first_name_in_the_oldest_runtime(tmp_path: Path) -> None:
    entry = """
        from cloudflare.workers import Response, fetch

        async def on_fetch(request, env, ctx):
            return Response("hello")
    """
    config = worker(tmp_path, entry, compatibility_date="2025-01-01")
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "hello"
    with pytest.raises(WorkerLoadError, match="No module named 'cloudflare"):
        Emulator(worker(tmp_path, entry, compatibility_date="2026-05-01"))
