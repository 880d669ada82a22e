"""Loading a Worker's own modules, and the runtime's."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler, worker, write

from emulator import Emulator, WorkerLoadError
from emulator.importer import finder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _process_is_left_alone() -> Iterator[None]:
    """Nothing of a Worker's stays in the process, whatever the test did."""
    modules = {name for name in sys.modules if not name.startswith(("emulator", "pyodide"))}
    before = (list(sys.meta_path), list(sys.path), os.getcwd(), sys.dont_write_bytecode)
    yield
    new = {name for name in sys.modules if not name.startswith(("emulator", "pyodide"))} - modules
    ours = {name.partition(".")[0] for name in new} & {"entry", "utils", "app", "helpers", "lib"}
    assert not ours
    assert (list(sys.meta_path), list(sys.path), os.getcwd(), sys.dont_write_bytecode) == before
    assert finder.space is None


async def answer(emulator: Emulator, path: str = "/") -> str:
    response = await emulator.fetch(path)
    assert response.status_code == 200, response.text
    return response.text


# -- the Worker's own modules ----------------------------------------------------------------------


async def test_own_modules_and_packages_are_imported_from_the_folder_of_main(
    tmp_path: Path,
) -> None:
    config = handler(
        tmp_path,
        """
        import utils
        from app.views import page
        from lib.deep import value
        return Response(f"{utils.NAME} {page()} {value} {__name__} {utils.__name__}")
        """,
        files={
            "utils.py": "NAME = 'utils'",
            "app/__init__.py": "TITLE = 'app'",
            "app/views.py": "from . import TITLE\nfrom .parts.head import HEAD\n"
            "def page():\n    return f'{TITLE}/{HEAD}'",
            "app/parts/__init__.py": "",
            "app/parts/head.py": "from .. import TITLE\nHEAD = TITLE.upper()",
            # A folder without `__init__.py` is a package too.
            "lib/deep.py": "value = 7",
        },
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "utils app/APP 7 entry utils"


async def test_the_prefix_of_the_source_folder_fails_as_in_production(tmp_path: Path) -> None:
    """python-api.md 2.1: `import src.utils` raises ModuleNotFoundError with a note."""
    config = handler(tmp_path, "import src.utils", files={"utils.py": ""})
    with Emulator(config) as emulator:
        response = await emulator.fetch("/")
    assert response.status_code == 500
    assert "ModuleNotFoundError: No module named 'src'" in response.text
    assert "write `import utils` for `import src.utils`" in response.text


async def test_the_prefix_fails_also_where_the_test_has_imported_that_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = handler(tmp_path, "import src.utils", files={"utils.py": "", "__init__.py": ""})
    monkeypatch.syspath_prepend(tmp_path)
    theirs = importlib.import_module("src.utils")
    try:
        with Emulator(config) as emulator:
            assert "No module named 'src'" in (await emulator.fetch("/")).text
        assert sys.modules["src.utils"] is theirs
    finally:
        del sys.modules["src.utils"], sys.modules["src"]


async def test_a_source_folder_may_have_the_name_of_an_installed_package(tmp_path: Path) -> None:
    write(
        tmp_path / "httpx",
        {
            "entry.py": "import httpx\nfrom workers import WorkerEntrypoint, Response\n"
            "class Default(WorkerEntrypoint):\n"
            "    async def fetch(self, request):\n"
            "        return Response(str(httpx.codes.OK.value))"
        },
    )
    with Emulator({"main": str(tmp_path / "httpx" / "entry.py")}) as emulator:
        assert await answer(emulator) == "200"


async def test_a_relative_import_in_the_main_module_fails_as_in_production(tmp_path: Path) -> None:
    config = worker(tmp_path, "from . import utils", {"utils.py": ""})
    with pytest.raises(WorkerLoadError, match="attempted relative import with no known parent"):
        Emulator(config)


async def test_two_workers_with_a_module_of_one_name_do_not_meet(tmp_path: Path) -> None:
    configs = [
        handler(
            tmp_path / name,
            "import utils\nreturn Response(utils.NAME)",
            files={"utils.py": f"NAME = {name!r}"},
            name=name,
        )
        for name in ("first", "second")
    ]
    with Emulator(configs) as emulator:
        for name in ("first", "second", "first"):
            assert (await emulator.fetch("/", worker=name)).text == name


async def test_the_modules_of_a_test_stay_its_own_before_during_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine", {"utils.py": "NAME = 'the test'", "app/__init__.py": ""})
    write(tmp_path / "mine", {"app/part.py": "NAME = 'the test'"})
    monkeypatch.syspath_prepend(tmp_path / "mine")
    mine, part = importlib.import_module("utils"), importlib.import_module("app.part")
    config = handler(
        tmp_path,
        "import utils\nfrom app import part\nreturn Response(utils.NAME + part.NAME)",
        files={
            "utils.py": "NAME = 'worker'",
            "app/__init__.py": "",
            "app/part.py": "NAME = 'worker'",
        },
    )
    try:
        with Emulator(config) as emulator:
            assert sys.modules["utils"] is mine
            assert await answer(emulator) == "workerworker"
            assert sys.modules["utils"] is mine
            assert sys.modules["app.part"] is part
            assert importlib.import_module("utils").NAME == "the test"
        assert sys.modules["utils"] is mine
    finally:
        for name in ("utils", "app.part", "app"):
            del sys.modules[name]


async def test_a_test_may_import_a_module_of_that_name_while_the_emulator_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = handler(
        tmp_path / "w", "import utils\nreturn Response(utils.NAME)", files={"utils.py": "NAME='w'"}
    )
    write(tmp_path / "mine", {"utils.py": "NAME = 'the test'"})
    monkeypatch.syspath_prepend(tmp_path / "mine")
    try:
        with Emulator(config) as emulator:
            assert await answer(emulator) == "w"
            assert importlib.import_module("utils").NAME == "the test"
            assert await answer(emulator) == "w"
            assert sys.modules["utils"].NAME == "the test"
    finally:
        del sys.modules["utils"]


async def test_imports_inside_handlers_and_sys_modules_see_the_workers_modules(
    tmp_path: Path,
) -> None:
    config = handler(
        tmp_path,
        """
        import importlib, sys
        module = importlib.import_module("utils")
        again = importlib.import_module("utils")
        await asyncio.sleep(1)
        assert module is again is sys.modules["utils"]
        assert sys.modules[__name__].Default is type(self)
        reloaded = importlib.reload(module)
        return Response(f"{reloaded is module} {module.COUNT}")
        """,
        files={"utils.py": "COUNT = globals().get('COUNT', 0) + 1"},
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "True 2"


async def test_classes_find_the_module_they_were_made_in(tmp_path: Path) -> None:
    """dataclasses, `get_type_hints`, pydantic and pickle look at `sys.modules[cls.__module__]`."""
    config = worker(
        tmp_path,
        """
        from __future__ import annotations
        import dataclasses, pickle, sys, typing
        from typing import ClassVar
        from workers import Response, WorkerEntrypoint

        @dataclasses.dataclass
        class Point:
            x: int
            zero: ClassVar[Point | None] = None

        class Model:
            # Looks the types of its fields up late, as pydantic does.
            @classmethod
            def types(cls):
                names = vars(sys.modules[cls.__module__])
                return {key: eval(text, names) for key, text in cls.__annotations__.items()}

        class Order(Model):
            line: Line

        class Line(Model):
            sku: str

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                hints = typing.get_type_hints(Point)
                line = Order.types()["line"]
                copy = pickle.loads(pickle.dumps(Point(3)))
                fields = [field.name for field in dataclasses.fields(Point)]
                return Response(f"{hints['x'] is int} {line is Line} {copy.x} {fields}")
        """,
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "True True 3 ['x']"


async def test_a_module_of_the_standard_library_is_not_shadowed(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        "import queue\nreturn Response(str(hasattr(queue, 'Queue')))",
        files={"queue.py": ""},
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "True"


@pytest.mark.parametrize("name", ["queue", "imp", "emulator"])
async def test_a_main_file_called_like_a_module_that_is_there_is_the_main_file(
    tmp_path: Path, name: str
) -> None:
    """The standard library goes on to use its own."""
    here = sys.modules.get(name)
    config = handler(
        tmp_path,
        """
        import queue
        import helper
        seen = vars(Default).get("seen", 0) + 1
        Default.seen = seen
        return Response(f"{hasattr(queue, 'Queue')} {helper.NAME} {seen} {Default.__module__}")
        """,
        files={"helper.py": "NAME = 'file'"},
    )
    (tmp_path / "src" / "entry.py").rename(tmp_path / "src" / f"{name}.py")
    config["main"] = str(tmp_path / "src" / f"{name}.py")
    with Emulator(config) as emulator:
        assert await answer(emulator) == f"True file 1 {name}"
        assert await answer(emulator) == f"True file 2 {name}"
        await emulator.crash()
        assert await answer(emulator) == f"True file 1 {name}"
    assert sys.modules.get(name) is here


async def test_an_edit_of_such_a_main_file_is_seen_by_a_reload(tmp_path: Path) -> None:
    handler(tmp_path, "return Response('before')")
    main = (tmp_path / "src" / "entry.py").rename(tmp_path / "src" / "queue.py")
    with Emulator({"main": str(main)}) as emulator:
        main.write_text(main.read_text().replace("before", "after"))
        await emulator.evict()
        assert await answer(emulator) == "before"
        await emulator.reload()
        assert await answer(emulator) == "after"


async def test_a_replaced_entry_of_sys_modules_is_kept_for_this_isolate(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        """
        import sys, types
        if path == "/set":
            sys.modules["utils"] = types.SimpleNamespace(NAME="replaced")
        import utils
        return Response(utils.NAME)
        """,
        files={"utils.py": "NAME = 'file'"},
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "file"
        assert await answer(emulator, "/set") == "replaced"
        assert await answer(emulator) == "replaced"
        await emulator.evict()
        assert await answer(emulator) == "file"


async def test_no_bytecode_is_written_beside_the_sources(tmp_path: Path) -> None:
    config = handler(tmp_path, "import utils\nreturn Response('')", files={"utils.py": ""})
    with Emulator(config) as emulator:
        await emulator.fetch("/")
    assert "__pycache__" not in os.listdir(tmp_path / "src")


async def test_files_beside_the_code_can_be_read(tmp_path: Path) -> None:
    config = handler(
        tmp_path,
        "from pathlib import Path\n"
        "return Response((Path(__file__).parent / 'page.html').read_text())",
        files={"page.html": "<p>"},
    )
    with Emulator(config) as emulator:
        assert await answer(emulator) == "<p>"


# -- the runtime's modules -------------------------------------------------------------------------


async def test_files_in_folders_without_an_init_are_resources(tmp_path: Path) -> None:
    """As on the file system of production, where such a folder is a namespace package."""
    config = handler(
        tmp_path,
        """
        from importlib.resources import as_file, files
        import lib, lib.deep
        with as_file(files("lib.deep") / "b.txt") as path:
            nested = path.read_text()
        names = sorted(one.name for one in files(lib).iterdir() if one.is_file())
        first = files("lib").joinpath("a.txt").read_text()
        return Response(f"{first} {nested} {names} {lib.__path__}")
        """,
        files={"lib/a.txt": "first", "lib/deep/b.txt": "second", "lib/c.py": ""},
    )
    async with Emulator(config) as emulator:
        told = await answer(emulator)
    assert told.startswith("first second ['a.txt', 'c.py'] _NamespacePath([")


async def test_a_local_package_named_workers_wins(tmp_path: Path) -> None:
    """python-api.md 2.1: the folder of user code comes before the SDK."""
    config = worker(
        tmp_path, "import workers", {"workers/__init__.py": "raise LookupError('mine')"}
    )
    with pytest.raises(WorkerLoadError, match="LookupError: mine"):
        Emulator(config)


async def test_a_source_folder_may_be_called_workers(tmp_path: Path) -> None:
    write(
        tmp_path / "workers",
        {
            "entry.py": "from workers import Response, WorkerEntrypoint\n"
            "class Default(WorkerEntrypoint):\n"
            "    async def fetch(self, request):\n        return Response('ok')"
        },
    )
    with Emulator({"main": str(tmp_path / "workers" / "entry.py")}) as emulator:
        assert await answer(emulator) == "ok"


@pytest.mark.parametrize("name", ["workers", "pyodide", "pyodide.ffi", "js"])
async def test_installed_packages_of_these_names_are_shadowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """python-api.md 0.8: the installed SDK dies with `No module named 'js'` outside a Worker."""
    for package in ("workers", "pyodide", "js"):
        write(tmp_path / "site", {f"{package}/__init__.py": "raise RuntimeError('the real one')"})
    monkeypatch.syspath_prepend(tmp_path / "site")
    config = handler(tmp_path, f"import {name}\nreturn Response('ours')")
    with Emulator(config) as emulator:
        assert await answer(emulator) == "ours"


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("from js import Missing", ImportError, "cannot import name 'Missing' from 'js'"),
        ("import js; js.Missing", AttributeError, "Missing"),
        ("from workers import Missing", ImportError, "cannot import name 'Missing' from 'workers'"),
        ("import workers.missing", ModuleNotFoundError, "No module named 'workers.missing'"),
        ("from pyodide.ffi import Missing", ImportError, "cannot import name 'Missing'"),
    ],
)
async def test_unknown_names_fail_as_in_production(
    tmp_path: Path, statement: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(WorkerLoadError, match=text) as caught:
        Emulator(worker(tmp_path, statement))
    assert type(caught.value.__cause__) is error


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import pyodide_js", "pyodide_js"),
        ("from pyodide.console import Console", "pyodide.console"),
        ("from js import Atomics", "js.Atomics"),
        ("from js import fetch, Intl", "js.Intl"),
        ("from js import Intl as I", "js.Intl"),
    ],
)
async def test_names_that_only_production_has_say_so(
    tmp_path: Path, statement: str, name: str
) -> None:
    with pytest.raises(WorkerLoadError, match=f"does not provide `{name}` yet") as caught:
        Emulator(worker(tmp_path, statement))
    assert isinstance(caught.value.__cause__, ImportError)
    assert "docs/workers.md lists what it has" in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("js.Intl", "workers-emulator does not provide `js.Intl` yet"),
        ("js.globalThis.Intl", "workers-emulator does not provide `js.Intl` yet"),
        ("js.Math.floor.bind_sig", "workers-emulator does not provide `JsProxy.bind_sig` yet"),
        ("js.Math.bind_class", "workers-emulator does not provide `JsProxy.bind_class` yet"),
        ("js.Missing", "Missing"),
        ("js.null", "null"),
        ("workers.Missing", "module 'workers' has no attribute 'Missing'"),
    ],
)
async def test_a_look_for_what_is_missing_raises_attribute_error(
    tmp_path: Path, expression: str, shown: str
) -> None:
    owner, _, name = expression.rpartition(".")
    body = f"""
        import js, workers
        assert not hasattr({owner}, {name!r})
        assert getattr({owner}, {name!r}, None) is None
        try:
            {expression}
        except AttributeError as error:
            return Response(str(error))
    """
    with Emulator(handler(tmp_path, body)) as emulator:
        assert (await answer(emulator)).startswith(shown)


async def test_code_may_fall_back_where_an_import_fails(tmp_path: Path) -> None:
    body = """
        try:
            from js import Intl
        except ImportError:
            Intl = None
        return Response(str(Intl))
    """
    with Emulator(handler(tmp_path, body)) as emulator:
        assert await answer(emulator) == "None"


# -- the SDK frozen in the runtime (python-api.md 1, 1.13) -----------------------------------------

FROZEN = "2026-04-20"
# The modules of the SDK from PyPI, 1.9.5 (python-api.md 1).
OF_THE_SDK = (
    *("asgi", "blob", "entrypoints", "fetch", "formdata", "gateway", "gateway.options", "request"),
    *("response", "rpc", "types", "utils", "wsgi", "workflows"),
)


@pytest.mark.parametrize("name", ["wait_until", "patch_env", "asgi", "rpc", "utils"])
@pytest.mark.parametrize(("date", "python"), [(FROZEN, "3.13"), ("2025-09-01", "3.12")])
async def test_names_of_the_newer_sdk_fail_as_in_production(
    tmp_path: Path, name: str, date: str, python: str
) -> None:
    with pytest.raises(WorkerLoadError) as caught:
        Emulator(worker(tmp_path, f"from workers import {name}", compatibility_date=date))
    file = f"/lib/python{python}/site-packages/workers/__init__.py"
    assert f"cannot import name '{name}' from 'workers' ({file})" in str(caught.value)
    assert f"has no `workers.{name}`" in str(caught.value)
    assert "enable_python_external_sdk" in str(caught.value)


@pytest.mark.parametrize(
    ("module", "date"),
    [
        *((f"workers.{name}", FROZEN) for name in OF_THE_SDK[:-1] if "." not in name),
        ("workers.entrypoints", "2024-06-01"),
        ("workers._workers", "2026-04-21"),
    ],
)
async def test_modules_of_the_other_sdk_fail_as_in_production(
    tmp_path: Path, module: str, date: str
) -> None:
    with pytest.raises(WorkerLoadError, match=f"No module named '{module}'") as caught:
        Emulator(worker(tmp_path, f"import {module}", compatibility_date=date))
    assert "this Worker has the other SDK" in str(caught.value)


@pytest.mark.parametrize("name", OF_THE_SDK)
async def test_every_module_of_the_sdk_can_be_imported(tmp_path: Path, name: str) -> None:
    body = f"""
        import workers.{name} as module
        exec("from workers.{name} import *", dict())
        return Response(module.__name__)
    """
    with Emulator(handler(tmp_path, body)) as emulator:
        # `workers.fetch` is the function, which hides the module, there as well.
        hidden = {"asgi": "asgi", "fetch": "fetch"}
        assert await answer(emulator) == hidden.get(name, f"workers.{name}")


@pytest.mark.parametrize(
    ("names", "date"),
    [
        (("blob", "formdata", "request", "response", "rpc", "types", "utils"), "2026-04-21"),
        (("entrypoints", "workflows"), "2026-04-21"),
        (("_workers", "workflows"), FROZEN),
        (("_workers", "workflows"), "2024-06-01"),
    ],
)
async def test_modules_that_the_sdk_imports_itself_are_attributes(
    tmp_path: Path, names: tuple[str, ...], date: str
) -> None:
    body = f"""
        import workers
        return Response(" ".join(getattr(workers, name).__name__ for name in {names}))
    """
    old = "async def on_fetch(request):\n    import workers\n    from js import Response\n"
    old += f"    found = [getattr(workers, name).__name__ for name in {names}]\n"
    old += "    return Response.new(' '.join(found))\n"
    is_old = date == "2024-06-01"
    make = worker(tmp_path, old) if is_old else handler(tmp_path, body)
    with Emulator({**make, "compatibility_date": date}) as emulator:
        assert await answer(emulator) == " ".join(f"workers.{name}" for name in names)


async def test_the_names_for_annotations_are_those_of_the_module_types(tmp_path: Path) -> None:
    body = """
        import workers
        from workers import types
        names = ["Body", "Context", "FetchKwargs", "Headers", "JSBody", "RequestInitCfProperties"]
        same = [getattr(workers, name) is getattr(types, name) for name in names]
        return Response.json([*same, types.FetchKwargs(method="GET"), types.Headers])
    """
    with Emulator(handler(tmp_path, body)) as emulator:
        headers = "dict[str, str] | list[tuple[str, str]] | js.Headers"
        assert json.loads(await answer(emulator)) == [*[True] * 6, {"method": "GET"}, headers]


@pytest.mark.parametrize("date", [FROZEN, "2026-04-21"])
async def test_what_the_frozen_sdk_has(tmp_path: Path, date: str) -> None:
    body = """
        import workers
        from workers import waitUntil
        names = {}
        exec("from workers import *", names)
        found = [hasattr(workers, "wait_until"), "wait_until" in names, "waitUntil" in names]
        return Response.json([*found, sorted(workers.__all__) == sorted(
            name for name in names if name != "__builtins__")])
    """
    with Emulator(handler(tmp_path, body, compatibility_date=date)) as emulator:
        is_new = date != FROZEN
        assert json.loads(await answer(emulator)) == [is_new, is_new, True, True]


async def test_the_one_module_of_the_frozen_sdk_can_be_imported(tmp_path: Path) -> None:
    body = """
        import workers
        from workers._workers import WorkerEntrypoint, _EnvWrapper
        import workers._workers as module
        same = [module.Response is workers.Response, WorkerEntrypoint is workers.WorkerEntrypoint]
        return Response.json([*same, isinstance(self.env, _EnvWrapper)])
    """
    with Emulator(handler(tmp_path, body, compatibility_date=FROZEN)) as emulator:
        assert json.loads(await answer(emulator)) == [True, True, True]


async def test_star_imports_give_the_public_names(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import *
        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response.json([env.NAME, wait_until is waitUntil])
        """,
        vars={"NAME": "x"},
    )
    with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == ["x", True]


@pytest.mark.parametrize(
    ("date", "version"),
    [("2025-01-01", "0.26.0a2"), ("2025-10-01", "0.28.2"), ("2026-10-01", "314.0.6")],
)
async def test_the_version_of_pyodide_is_that_of_the_date(
    tmp_path: Path, date: str, version: str
) -> None:
    body = """
        import pyodide
        from pyodide import __version__
        assert __version__ == pyodide.__version__
        return Response(pyodide.__version__)
    """
    flags = ["python_no_global_handlers"]
    config = handler(tmp_path, body, compatibility_date=date, compatibility_flags=flags)
    with Emulator(config) as emulator:
        assert await answer(emulator) == version


async def test_the_finder_is_at_the_head_and_there_once(tmp_path: Path) -> None:
    configs: list[dict[str, Any]] = [handler(tmp_path / name, "", name=name) for name in "ab"]
    with Emulator(configs[0]), Emulator(configs[1]):
        assert sys.meta_path[0] is finder
        assert sys.meta_path.count(finder) == 1
