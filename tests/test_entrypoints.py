"""Which classes and functions are entrypoints and handlers, and how they are called."""

from __future__ import annotations

import re
from textwrap import dedent
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator
from emulator.entrypoints import NoEntrypoint, Script, discover
from emulator.values import JsException

if TYPE_CHECKING:
    from pathlib import Path

MODERN = frozenset({"python_no_global_handlers", "enable_python_external_sdk"})
LEGACY = frozenset[str]()
IMPORTS = "from workers import DurableObject, Response, WorkerEntrypoint, WorkflowEntrypoint\n"


def script(source: str, flags: frozenset[str] = MODERN) -> Script:
    """Discover the entrypoints of a main module with this source."""
    module = ModuleType("entry")
    exec(compile(IMPORTS + dedent(source), "entry.py", "exec"), module.__dict__)
    return discover(module, flags)


# -- discovery (python-api.md 2.1) -----------------------------------------------------------------


def test_default_is_the_class_of_that_name_and_others_are_named() -> None:
    found = script(
        """
        class Default(WorkerEntrypoint):
            def fetch(self): ...
        class Admin(WorkerEntrypoint): ...
        class Room(DurableObject): ...
        class Order(WorkflowEntrypoint): ...
        class Plain: ...
        """
    )
    assert found.default is found.named["Default"]
    assert list(found.named) == ["Admin", "Default", "Order", "Room"]
    assert found.handlers == ["fetch"]


def test_the_base_classes_themselves_are_no_entrypoints() -> None:
    assert list(script("class Default(WorkerEntrypoint): ...").named) == ["Default"]


def test_an_alias_does_not_change_a_class_name() -> None:
    with pytest.raises(NoEntrypoint, match="there are only: Mine"):
        script("class Mine(WorkerEntrypoint): ...\nDefault = Mine")


def test_a_made_class_of_the_right_name_does() -> None:
    found = script("Default = type('Default', (WorkerEntrypoint,), {'fetch': lambda self: None})")
    assert found.handlers == ["fetch"]


def test_an_imported_class_of_the_same_name_does_not_replace_the_modules_own() -> None:
    found = script(
        """
        def base():
            class Default(WorkerEntrypoint):
                def scheduled(self): ...
            return Default
        Zbase = base()
        class Default(Zbase):
            def fetch(self): ...
        """
    )
    assert found.handlers == ["fetch", "scheduled"]


def test_names_with_an_underscore_are_hidden_and_all_decides_where_it_is() -> None:
    source = """
        class _Hidden(WorkerEntrypoint): ...
        class Default(WorkerEntrypoint): ...
        class Other(WorkerEntrypoint): ...
    """
    assert list(script(source).named) == ["Default", "Other"]
    assert list(script(source + "\n        __all__ = ['Default', '_Hidden']").named) == [
        "Default",
        "_Hidden",
    ]


def test_a_module_with_only_objects_and_workflows_can_be_deployed() -> None:
    assert script("class Room(DurableObject): ...").default is None


def test_handlers_may_come_from_intermediate_bases_and_mixins() -> None:
    found = script(
        """
        class Base(WorkerEntrypoint):
            async def fetch(self, request): ...
        class Consumer:
            async def queue(self, batch, env, ctx): ...
        class Default(Consumer, Base): ...
        """
    )
    assert found.handlers == ["fetch", "queue"]


def test_static_and_class_methods_and_attributes_are_no_handlers() -> None:
    found = script(
        """
        class Default(WorkerEntrypoint):
            @staticmethod
            def fetch(request): ...
            @classmethod
            def queue(cls, batch, env, ctx): ...
            @property
            def scheduled(self): ...
            tail = print
        """
    )
    assert found.handlers == []


def test_global_handlers_count_only_before_their_end() -> None:
    """python-api.md 2.2."""
    source = "def on_fetch(request): ...\ndef on_queue(batch): ...\ndef fetch(request): ..."
    assert script(source, LEGACY).handlers == ["fetch", "queue"]
    with pytest.raises(NoEntrypoint, match="disable_python_no_global_handlers"):
        script(source, MODERN)


def test_a_global_function_called_fetch_is_never_a_handler() -> None:
    with pytest.raises(NoEntrypoint, match="no registered event handlers"):
        script("def fetch(request, env): ...", LEGACY)


def test_the_class_comes_before_global_handlers() -> None:
    """workerd looks for it first; its error for both is never reached."""
    source = """
        class Default(WorkerEntrypoint):
            def on_fetch(self, request): return "class"
        def on_fetch(request): return "global"
        def on_queue(batch): ...
    """
    found = script(source, LEGACY)
    assert found.handlers == ["fetch"]
    assert found.bind("fetch", None, None)("R") == "class"


def test_a_class_of_an_older_date_handles_requests_in_on_fetch() -> None:
    """workerd's python-entrypoint-helper.ts: `fetch` alone takes the prefix."""
    source = """
        class Default(WorkerEntrypoint):
            def fetch(self, request): return "fetch"
            def on_fetch(self, request): return "on_fetch"
            def queue(self, batch, env, ctx): ...
            def on_scheduled(self, controller, env, ctx): ...
    """
    assert script(source, LEGACY).handlers == ["fetch", "queue"]
    assert script(source, LEGACY).bind("fetch", None, None)("R") == "on_fetch"
    assert script(source, MODERN).bind("fetch", None, None)("R") == "fetch"


def test_a_class_of_an_older_date_without_on_fetch_has_the_runtimes_text() -> None:
    found = script("class Default(WorkerEntrypoint):\n    def fetch(self): ...", LEGACY)
    assert not found.handles("fetch")
    with pytest.raises(JsException, match="Method on_fetch does not exist") as caught:
        found.bind("fetch", None, None)
    assert str(caught.value) == "TypeError: Method on_fetch does not exist"
    assert "name it so" in caught.value.__notes__[0]


def test_a_method_on_fetch_of_a_newer_date_is_told_its_name() -> None:
    found = script("class Default(WorkerEntrypoint):\n    def on_fetch(self, r): ...")
    with pytest.raises(JsException, match="does not export a fetch") as caught:
        found.bind("fetch", None, None)
    assert "is named `fetch`" in caught.value.__notes__[0]


@pytest.mark.parametrize("kind", ["module", "class"])
@pytest.mark.parametrize(
    ("date", "method", "status", "text"),
    [
        ("2025-08-13", "on_fetch", 200, "Request"),
        ("2025-08-13", "fetch", 500, "TypeError: Method on_fetch does not exist"),
        ("2025-08-14", "fetch", 200, "Request"),
        ("2025-08-14", "on_fetch", 500, "Error: Handler does not export a fetch() function."),
    ],
)
def test_which_method_answers_depends_on_the_date(
    tmp_path: Path, kind: str, date: str, method: str, status: int, text: str
) -> None:
    source = f"""
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def {method}(self, request):
                return Response(type(request).__name__)
    """
    config = worker(tmp_path, source)
    if kind == "class":
        module = ModuleType("entry")
        exec(dedent(source), module.__dict__)
        config = {"main": module.Default}
    with Emulator({**config, "compatibility_date": date}) as emulator:
        response = emulator.run(emulator.fetch("/"))
    assert (response.status_code, response.text) == (status, text)


def test_a_missing_handler_has_the_runtimes_text() -> None:
    modern = script("class Default(WorkerEntrypoint): ...")
    with pytest.raises(JsException, match=r"Handler does not export a fetch\(\) function\."):
        modern.bind("fetch", None, None)
    legacy = script("def on_fetch(request): ...", LEGACY)
    text = 'Python entrypoint "entry.py" does not export a handler named "on_queue"'
    with pytest.raises(JsException, match=re.escape(text)):
        legacy.bind("queue", None, None)


# -- arity (python-api.md 1.2) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "given"),
    [
        ("self", ""),
        ("self, request", "R"),
        ("self, request, env", "R None"),
        ("self, request, env, ctx", "R None None"),
        ("self, request, env=1, ctx=2", "R None None"),
        ("self, request=None", "R"),
        ("self, *args", "R None None"),
        ("self, request, *args", "R None None"),
        ("self, request, /, env", "R None"),
        ("self, request, *, key=1", "R"),
        ("self, request, env=1, ctx=2, more=3", "R None None"),
        ("self, **options", ""),
    ],
)
def test_fetch_gets_as_many_arguments_as_it_takes(signature: str, given: str) -> None:
    found = script(
        f"""
        class Default(WorkerEntrypoint):
            def fetch({signature}):
                values = dict(locals())
                values.pop("self")
                rest = values.pop("args", ())
                values.pop("key", None), values.pop("more", None), values.pop("options", None)
                return [*values.values(), *rest]
        """
    )
    for _ in range(2):  # the second time from what is remembered
        seen = found.bind("fetch", None, None)("R")
        assert " ".join(map(str, seen)) == given


@pytest.mark.parametrize("signature", ["self, request, *, key", "self, a, b, c, d"])
def test_fetch_with_a_signature_that_cannot_be_called_fails(signature: str) -> None:
    found = script(f"class Default(WorkerEntrypoint):\n    def fetch({signature}): ...")
    with pytest.raises(TypeError, match="missing 1 required"):
        found.bind("fetch", None, None)("R")


def test_global_handlers_get_env_and_ctx_as_far_as_they_take_them() -> None:
    found = script(
        "def on_fetch(request, env, ctx): return (request, env, ctx)\n"
        "def on_queue(batch): return batch",
        LEGACY,
    )
    assert found.bind("fetch", "CTX", "ENV")("R") == ("R", "ENV", "CTX")
    assert found.bind("queue", "CTX", "ENV")("B") == "B"


@pytest.mark.parametrize(
    ("method", "signature", "ok"),
    [
        ("queue", "self, batch", False),
        ("queue", "self, batch, env", False),
        ("queue", "self, batch, env, ctx", True),
        ("queue", "self, batch, env=None, ctx=None", True),
        ("queue", "self, *args", True),
        ("queue", "self, batch, *, env=None", False),
        ("scheduled", "self, controller", False),
        ("scheduled", "self", False),
        ("scheduled", "self, event, env, ctx", True),
    ],
)
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_queue_and_scheduled_are_called_with_three_arguments_whatever_they_take(
    tmp_path: Path, method: str, signature: str, ok: bool, kind: str
) -> None:
    """python-api.md 0, fact 4: the most common bug in public Python Workers."""
    config = worker(
        tmp_path,
        f"""
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            {kind} {method}({signature}):
                print("ran")
        """,
        queues={"consumers": [{"queue": "q", "max_retries": 0, "dead_letter_queue": "d"}]}
        if method == "queue"
        else {},
    )
    with Emulator(config) as emulator:
        if method == "queue":
            emulator.run(emulator.queues["q"].send(1))
            emulator.run(emulator.settle())
            error = emulator.queues["q"].deliveries[0].error
        else:
            error = emulator.run(emulator.scheduled())[1]
        assert [log.text for log in emulator.logs if log.level == "log"] == (["ran"] if ok else [])
        if ok:
            assert error is None
        else:
            _check_arity_error(error, method, signature, emulator)


def _check_arity_error(
    error: BaseException | None, method: str, signature: str, emulator: Emulator
) -> None:
    takes = signature.partition(", *")[0].count("self") + signature.partition(", *")[0].count(",")
    plural = "s" if takes > 1 else ""
    assert isinstance(error, TypeError)
    assert f"Default.{method}() takes {takes} positional argument{plural} but 4 were given" in str(
        error
    )
    assert f"`{method}(self, " in "".join(getattr(error, "__notes__", ()))
    assert "Production calls" in emulator.logs[-1].text


def test_a_type_error_inside_a_right_handler_has_no_note(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def scheduled(self, controller, env, ctx):
                len(3)
        """,
    )
    with Emulator(config) as emulator:
        error = emulator.run(emulator.scheduled())[1]
    assert isinstance(error, TypeError)
    assert not hasattr(error, "__notes__")


# -- signatures that do not fit (python-api.md 0, fact 4) ------------------------------------------


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("async def queue(self, batch): ...", ["takes 2 positional arguments but 4 were given"]),
        ("def scheduled(self, event): ...", ["takes 2 positional arguments but 4 were given"]),
        ("async def queue(self, batch, env): ...", ["takes 3 positional arguments but 4 were"]),
        ("async def queue(self, batch, a, b, c): ...", ["missing 1 required positional argument"]),
        ("async def queue(self, batch, a, b, *, key): ...", ["missing 1 required keyword-only"]),
        ("async def queue(self, batch, env, ctx): ...", []),
        ("async def queue(self, batch, env=None, ctx=None): ...", []),
        ("async def queue(self, *args): ...", []),
        ("async def fetch(self): ...", []),
        ("async def tail(self): ...", ["takes 1 positional argument but 4 were given"]),
        ("async def test(self): ...", []),
    ],
)
def test_handlers_that_do_not_fit_are_known_with_their_line(source: str, texts: list[str]) -> None:
    found = script(f"class Default(WorkerEntrypoint):\n    {source}").misfits()
    assert [text in misfit.message for misfit, text in zip(found, texts, strict=True)] == [
        True for _ in texts
    ]
    assert [misfit.location.line for misfit in found] == [3 for _ in texts]


def test_a_misfit_says_what_production_raises_and_what_to_write(tmp_path: Path) -> None:
    source = """
        from workers import WorkerEntrypoint
        def logged(function):
            return function
        class Base(WorkerEntrypoint):
            @logged
            @logged

            async def scheduled(self, event):
                raise AssertionError("not a line of it runs")
        class Default(Base): ...
    """
    file = tmp_path / "entry.py"
    file.write_text(dedent(source), "utf-8")
    module = ModuleType("entry")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    (misfit,) = discover(module, MODERN).misfits()
    assert misfit.event == "scheduled"
    assert misfit.message == (
        "production calls `scheduled` with three arguments, the last two None, which raises "
        "TypeError: Base.scheduled() takes 2 positional arguments but 4 were given. Write "
        "`scheduled(self, controller, env, ctx)`, and use `self.env` and `self.ctx`"
    )
    assert misfit.location == (str(file), 9)


def test_a_decorators_own_signature_decides() -> None:
    found = script(
        """
        import functools
        def lenient(function):
            @functools.wraps(function)
            async def call(self, batch, *rest):
                return await function(self, batch)
            return call
        class Default(WorkerEntrypoint):
            @lenient
            async def queue(self, batch): ...
        """
    )
    assert found.misfits() == []


def test_global_handlers_fit_whatever_they_take() -> None:
    assert script("def on_queue(batch): ...", LEGACY).misfits() == []


# -- instances -------------------------------------------------------------------------------------


def answers(config: dict[str, Any], *paths: str, **options: Any) -> list[str]:
    with Emulator(config, **options) as emulator:
        emulator.findings.expect("handler_exception")
        return [emulator.run(emulator.fetch(path)).text for path in paths or ("/",)]


def test_each_event_has_an_instance_of_its_own(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import Response, WorkerEntrypoint
        made = []
        class Default(WorkerEntrypoint):
            def __init__(self, ctx, env):
                super().__init__(ctx, env)
                made.append(self)
                self.seen = 0
            async def fetch(self, request):
                self.seen += 1
                return Response(f"{len(made)} {self.seen} {made[-1] is self}")
        """,
    )
    assert answers(config, "/", "/") == ["1 1 True", "2 1 True"]


def test_a_constructor_gets_the_wrapped_env_even_if_it_forgets_the_bases(tmp_path: Path) -> None:
    """python-api.md 1.1: then `self.ctx` and `self.env` do not exist."""
    config = worker(
        tmp_path,
        """
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            def __init__(self, ctx, env):
                self.kind = type(env).__name__
            async def fetch(self, request):
                return Response(f"{self.kind} {hasattr(self, 'env')} {hasattr(self, 'ctx')}")
        """,
    )
    assert answers(config) == ["_EnvWrapper False False"]


def test_an_exception_in_the_constructor_is_the_requests(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            def __init__(self, ctx, env):
                raise LookupError("no instance")
            async def fetch(self, request): ...
        """,
    )
    assert answers(config)[0].endswith("LookupError: no instance")


def test_env_and_batches_are_raw_before_the_external_sdk(tmp_path: Path) -> None:
    """python-api.md 1.13: a binding is a `JsProxy` for dates before 2026-04-21."""
    source = """
        from workers import Response, WorkerEntrypoint, env
        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                kinds = [type(self.env), type(env), type(self.env.Q)]
                return Response(" ".join(kind.__name__ for kind in kinds))
            async def queue(self, batch, env, ctx):
                print(type(batch).__name__, type(batch.messages).__name__)
    """
    queues = {"producers": [{"binding": "Q", "queue": "q"}], "consumers": [{"queue": "q"}]}
    for date, fetched, batch in (
        ("2026-04-20", "_EnvWrapper JsProxy JsProxy", "JsProxy JsProxy"),
        ("2026-04-21", "_EnvWrapper _EnvWrapper _BindingWrapper", "_BindingWrapper list"),
    ):
        config = worker(tmp_path, source, queues=queues, compatibility_date=date)
        with Emulator(config) as emulator:
            assert emulator.run(emulator.fetch("/")).text == fetched
            emulator.run(emulator.queues["q"].send(1))
            emulator.run(emulator.settle())
            assert [log.text for log in emulator.logs] == [batch]


def test_global_handlers_get_raw_javascript_objects(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from js import Response
        async def on_fetch(request, env, ctx):
            kinds = [type(value).__name__ for value in (request, env, ctx)]
            return Response.new(" ".join([*kinds, env.NAME]))
        """,
        compatibility_date="2024-10-01",
        vars={"NAME": "x"},
    )
    assert answers(config) == ["JsProxy JsProxy JsProxy x"]


def test_the_handler_decorator_wraps_the_request_of_a_global_handler(tmp_path: Path) -> None:
    config = worker(
        tmp_path,
        """
        from workers import Response, handler
        @handler
        async def on_fetch(request, env, ctx):
            return Response(f"{type(request).__name__} {request.method}")
        """,
        compatibility_date="2025-03-01",
    )
    assert answers(config) == ["Request GET"]


# -- what a handler returns ------------------------------------------------------------------------

NOT_A_RESPONSE = "TypeError: Incorrect type for Promise: the Promise did not resolve to 'Response'."


@pytest.mark.parametrize(
    "value", ["None", "'text'", "{'a': 1}", "7", "b'x'", "object()", "Response", "[Response('x')]"]
)
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_what_is_no_response_fails_with_the_runtimes_text(
    tmp_path: Path, value: str, kind: str
) -> None:
    """Recording wu_handler_returns_nonresponse."""
    source = f"""
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            {kind} fetch(self, request):
                return {value}
    """
    assert answers(worker(tmp_path, source)) == [NOT_A_RESPONSE]


@pytest.mark.parametrize(
    "value",
    [
        "Response('ok')",
        "js.Response.new('ok')",
        "Response(js.Response.new('ok'))",
        "asyncio.sleep(1, Response('ok'))",
        "asyncio.ensure_future(asyncio.sleep(1, Response('ok')))",
    ],
)
def test_sync_handlers_may_return_responses_and_awaitables(tmp_path: Path, value: str) -> None:
    source = f"""
        import asyncio, js
        from workers import Response, WorkerEntrypoint
        class Default(WorkerEntrypoint):
            def fetch(self, request):
                return {value}
    """
    assert answers(worker(tmp_path, source)) == ["ok"]


def test_a_worker_without_fetch_answers_with_the_runtimes_text(tmp_path: Path) -> None:
    """Recording wu_no_fetch_handler."""
    source = """
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx): ...
    """
    assert answers(worker(tmp_path, source)) == [
        "Error: Handler does not export a fetch() function."
    ]


def test_a_consumer_without_a_queue_handler_is_a_finding(tmp_path: Path) -> None:
    source = """
        from workers import WorkerEntrypoint
        class Default(WorkerEntrypoint):
            async def fetch(self, request): ...
    """
    config = worker(tmp_path, source, queues={"consumers": [{"queue": "q"}]})
    with Emulator(config) as emulator:
        (finding,) = emulator.findings
    assert finding.code == "missing_handler"
    assert "consumes q but has no queue() handler; its handlers: fetch" in finding.message
