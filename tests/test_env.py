"""`env` in the Worker, and `emulator.env` in the test."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler

from emulator import Emulator
from emulator.config_keys import BINDING_TYPES
from emulator.runtime.proxies import JsProxy
from emulator.runtime.pyproxy import jsnull

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.asyncio,
    # Of a Workflow and of objects that are another Worker's.
    pytest.mark.filterwarnings("ignore:.*which is no Worker here"),
]

VARS = {"TEXT": "text", "NUMBER": 3, "YES": True, "NOTHING": None, "JSON": {"a": [1, {"b": 2}]}}
QUEUES = {"producers": [{"binding": "Q", "queue": "q"}]}


async def test_variables_have_the_types_of_production(tmp_path: Path) -> None:
    """python-api.md 1.3."""
    body = """
        env = self.env
        kinds = [type(getattr(env, name)).__name__ for name in
                 ("TEXT", "NUMBER", "YES", "NOTHING", "JSON", "Q")]
        return Response.json([kinds, env.JSON.a[1].b, hasattr(env, "MISSING")])
    """
    config = handler(tmp_path, body, vars=VARS, queues=QUEUES, compatibility_date="2026-05-01")
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["str", "int", "bool", "JsNull", "JsProxy", "_BindingWrapper"],
            2,
            False,
        ]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("self.env['TEXT']", "TypeError: '_EnvWrapper' object is not subscriptable"),
        ("self.env.MISSING", "AttributeError: MISSING"),
        ("self.env.JSON['a']", "TypeError: 'pyodide.ffi.JsProxy' object is not subscriptable"),
    ],
)
async def test_what_env_cannot_do_fails_as_in_production(
    tmp_path: Path, expression: str, error: str
) -> None:
    async with Emulator(handler(tmp_path, expression, vars=VARS)) as emulator:
        assert error in (await emulator.fetch("/")).text.splitlines()


@pytest.mark.parametrize("date", ["2025-08-14", "2026-04-20", "2026-04-21", "2026-09-08"])
async def test_the_env_of_a_class_is_wrapped_with_either_sdk(tmp_path: Path, date: str) -> None:
    """python-api.md 1.1, 1.3; the frozen SDK wraps the env and leaves most bindings raw."""
    body = """
        def error(function):
            try:
                function()
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        env = self.env
        return Response.json([
            type(env).__name__, type(env.Q).__name__, env.Q is env.Q, env.JSON is env.JSON,
            env.TEXT, error(lambda: env["Q"]), error(lambda: env.MISSING), hasattr(env, "MISSING"),
        ])
    """
    config = handler(tmp_path, body, vars=VARS, queues=QUEUES, compatibility_date=date)
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == [
            "_EnvWrapper",
            "_BindingWrapper" if date >= "2026-04-21" else "JsProxy",
            True,
            True,
            "text",
            "TypeError: '_EnvWrapper' object is not subscriptable",
            "AttributeError: MISSING",
            False,
        ]


# -- declared, and not emulated yet ----------------------------------------------------------------

DECLARED = {
    "ai": {"binding": "AI"},
    "vectorize": [{"binding": "INDEX", "index_name": "i"}],
    "services": [{"binding": "OTHER", "service": "other"}],
    "hyperdrive": [{"binding": "PG", "id": "x"}],
    "images": {"binding": "IMAGES"},
    "browser": {"binding": "BROWSER"},
    "mtls_certificates": [{"binding": "CERT", "certificate_id": "c"}],
    "dispatch_namespaces": [{"binding": "DISPATCHER", "namespace": "n"}],
    "pipelines": [{"binding": "PIPE", "stream": "s"}],
    "secrets_store_secrets": [{"binding": "KEY", "store_id": "s", "secret_name": "k"}],
    "worker_loaders": [{"binding": "LOADER"}],
    "vpc_services": [{"binding": "VPC", "service_id": "s"}],
    "workflows": [{"binding": "FLOW", "name": "f", "class_name": "F", "script_name": "other"}],
    "durable_objects": {
        "bindings": [{"name": "ROOMS", "class_name": "Room", "script_name": "other"}]
    },
}
NAMES = {
    "ai": "AI",
    "vectorize": "INDEX",
    "services": "OTHER",
    "hyperdrive": "PG",
    "images": "IMAGES",
    "browser": "BROWSER",
    "mtls_certificates": "CERT",
    "dispatch_namespaces": "DISPATCHER",
    "pipelines": "PIPE",
    "secrets_store_secrets": "KEY",
    "worker_loaders": "LOADER",
    "vpc_services": "VPC",
    "workflows": "FLOW",
    "durable_objects": "ROOMS",
}
REMOTE = " bindings are served by Cloudflare's network, under `wrangler dev` too:"
LATER = "workers-emulator does not have "
FOREIGN = (
    "it is of the Worker 'other', and there are only: worker: give its config too, in a list, or"
)
# What is said of why it is not there.
REASONS = {
    "ai": f"AI{REMOTE}",
    "vectorize": f"Vectorize Index{REMOTE}",
    "mtls_certificates": f"mTLS Certificate{REMOTE}",
    "dispatch_namespaces": f"Dispatch Namespace{REMOTE}",
    "vpc_services": f"VPC Service{REMOTE}",
    "services": (
        "it is the Worker 'other', and there are only: worker (Cloudflare, code 10143: Could not "
        "resolve service binding 'OTHER'. Target script 'other' not found.): give its config too, "
        "in a list, or"
    ),
    "workflows": FOREIGN,
    "durable_objects": FOREIGN,
}


@pytest.mark.parametrize("section", DECLARED)
@pytest.mark.parametrize("env", ["self.env", "env"])
@pytest.mark.parametrize("date", ["2026-04-20", "2026-09-08"])
async def test_a_binding_that_is_declared_and_missing_says_so(
    tmp_path: Path, section: str, env: str, date: str
) -> None:
    name = NAMES[section]
    body = f"""
        from workers import env
        assert getattr({env}, {name!r}, None) is None
        {env}.{name}
    """
    async with Emulator(handler(tmp_path, body, **DECLARED, compatibility_date=date)) as emulator:
        lines = (await emulator.fetch("/")).text.splitlines()
        assert lines[-2] == f"AttributeError: {name}"
        reason = REASONS.get(section, f"{LATER}{BINDING_TYPES[section]} bindings yet:")
        assert lines[-1] == (
            f"{name} is declared in {section} in the config; {reason} give a stand-in with "
            f"bindings={{{name!r}: ...}}"
        )
        found = [f for f in emulator.findings if f.code == "missing_binding"]
        assert [(f.location, f.subject) for f in found] == [
            ("entry.py:11", f"binding {name}"),
            ("entry.py:12", f"binding {name}"),
        ]
        assert emulator.findings.unexpected() == []
        await emulator.fetch("/")  # which says nothing new
        assert [f for f in emulator.findings if f.code == "missing_binding"] == found


async def test_a_stand_in_takes_the_place_of_a_declared_binding(tmp_path: Path) -> None:
    class Database:
        def prepare(self, text: str) -> str:
            return text.upper()

    body = "return Response(self.env.DB.prepare('select'))"
    databases = [{"binding": "DB", "database_name": "d", "database_id": "x"}]
    config = handler(tmp_path, body, d1_databases=databases, **DECLARED)
    async with Emulator(config, bindings={"DB": Database()}) as emulator:
        assert (await emulator.fetch("/")).text == "SELECT"
        assert list(emulator.findings) == []


async def test_a_global_handler_and_a_test_are_told_of_a_missing_binding(tmp_path: Path) -> None:
    source = "async def on_fetch(request, env):\n    env.AI\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "entry.py").write_text(source)
    file = tmp_path / "wrangler.jsonc"
    config = {"name": "w", "main": "src/entry.py", "compatibility_date": "2025-08-01"}
    flags = {"compatibility_flags": ["python_workers"], **DECLARED}
    file.write_text(json.dumps({**config, **flags}))
    async with Emulator(file) as emulator:
        assert (
            (await emulator.fetch("/"))
            .text.splitlines()[-1]
            .startswith(
                "AI is declared in ai in wrangler.jsonc; AI bindings are served by Cloudflare's "
                "network"
            )
        )
        with pytest.raises(AttributeError, match="AI") as caught:
            _ = emulator.env.AI
        assert "bindings={'AI': ...}" in caught.value.__notes__[0]
        assert [f.location for f in emulator.findings if f.code == "missing_binding"] == [
            "src/entry.py:2"
        ]


async def test_a_test_sees_variables_as_the_worker_does(tmp_path: Path) -> None:
    config = handler(tmp_path, "", vars=VARS, queues=QUEUES)
    async with Emulator(config) as emulator:
        env = emulator.env
        assert ("text", 3, True, jsnull) == (env.TEXT, env.NUMBER, env.YES, env.NOTHING)
        assert isinstance(env.JSON, JsProxy)
        assert env.JSON.a[1].b == 2
        assert env.JSON.to_py() == {"a": [1, {"b": 2}]}
        with pytest.raises(AttributeError, match=r"^MISSING\n") as caught:
            _ = env.MISSING
        assert caught.value.__notes__ == [
            f"env has no such binding, variable or secret; there are: {', '.join([*VARS, 'Q'])}"
        ]
        assert getattr(env, "MISSING", "default") == "default"
        assert dir(env) == sorted([*VARS, "Q"])


async def test_a_test_sends_through_a_binding_and_it_is_no_fault_site(tmp_path: Path) -> None:
    config = handler(tmp_path, "", queues=QUEUES)
    async with Emulator(config, faults="send.q#1:fail") as emulator:
        result = await emulator.env.Q.send({"n": 1}, delaySeconds=5)
        assert result.metadata.metrics.backlogCount == 0
        await emulator.env.Q.sendBatch([{"body": 2}, {"body": 3}])
        assert [message.body for message in emulator.queues["q"].backlog] == [2, 3, {"n": 1}]
        assert not emulator.faults.fired
        assert [str(site.name) for site in emulator.faults.sites] == ["message.q"] * 3


async def test_an_error_of_a_binding_reaches_the_test(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "", queues=QUEUES)) as emulator:
        with pytest.raises(TypeError, match="tuple"):
            await emulator.env.Q.send((1, 2))
        with pytest.raises(AttributeError):
            emulator.env.Q.send_batch  # noqa: B018


@pytest.mark.parametrize(
    "expression",
    ["len({})", "list({})", "'a' in {}", "{}[0]", "{}['missing']", "bool({})", "not {}"],
)
@pytest.mark.parametrize("binding", ["KV", "Q", "OBJ"])
async def test_what_python_asks_of_a_binding_is_answered_as_in_the_worker(
    tmp_path: Path, binding: str, expression: str
) -> None:
    """python-api.md 1.4"""
    body = f"""
        try:
            return Response(str({expression.format(f"self.env.{binding}")}))
        except Exception as error:
            return Response(f"{{type(error).__name__}}: {{error}}")
    """
    objects = {"bindings": [{"name": "OBJ", "class_name": "Obj"}]}
    config = handler(
        tmp_path,
        body,
        queues=QUEUES,
        kv_namespaces=[{"binding": "KV"}],
        durable_objects=objects,
        migrations=[{"tag": "1", "new_sqlite_classes": ["Obj"]}],
    )
    with (tmp_path / "src" / "entry.py").open("a") as file:
        file.write("\n\nfrom workers import DurableObject\nclass Obj(DurableObject):\n    pass\n")
    async with Emulator(config) as emulator:
        in_worker = (await emulator.fetch("/")).text
        env = emulator.env  # noqa: F841  `eval` reads it
        try:
            in_test = str(eval(expression.format(f"env.{binding}")))
        except Exception as error:
            in_test = f"{type(error).__name__}: {error}"
        assert in_test == in_worker
        if expression == "len({})" and binding == "KV":
            assert in_test == "TypeError: 'KvNamespace' object has no len()"


async def test_calls_of_a_test_need_no_loaded_code_and_survive_a_crash(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "", queues=QUEUES)) as emulator:
        with emulator.hold():
            sending = asyncio.ensure_future(emulator.env.Q.send(1))
            await emulator.crash()
            await sending
        assert len(emulator.queues["q"].backlog) == 1


class Mailer:
    """A test's own binding."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, text: str) -> str:
        await asyncio.sleep(1)
        self.sent.append(text)
        return f"sent {text}"


async def test_extra_bindings_are_the_very_objects(tmp_path: Path) -> None:
    mailer, table, items = Mailer(), {"a": 1}, [1, 2]
    body = """
        env = self.env
        same = [env.MAIL is env.MAIL, env.TABLE == {"a": 1}, env.ITEMS == [1, 2], env.ADD(1, 2)]
        env.TABLE["b"] = 2
        return Response(f"{same} {await env.MAIL.send('x')} {env.NAME} {env.NONE}")
    """
    extra: dict[str, Any] = {
        "MAIL": mailer,
        "TABLE": table,
        "ITEMS": items,
        "ADD": lambda a, b: a + b,
        "NAME": "name",
        "NONE": None,
    }
    async with Emulator(handler(tmp_path, body), bindings=extra) as emulator:
        text = (await emulator.fetch("/")).text
        assert text == "[True, True, True, 3] sent x name None"
        assert mailer.sent == ["x"]
        assert table == {"a": 1, "b": 2}
        assert all(getattr(emulator.env, name) is value for name, value in extra.items())
        assert emulator.faults.sites[1:] == []
        await emulator.crash()
        await emulator.fetch("/")
        assert mailer.sent == ["x", "x"]


async def test_each_worker_has_its_env(tmp_path: Path) -> None:
    configs = [
        handler(tmp_path / name, "return Response(self.env.NAME)", name=name, vars={"NAME": name})
        for name in ("a", "b")
    ]
    async with Emulator(configs) as emulator:
        assert (await emulator.fetch("/", worker="b")).text == "b"
        assert emulator.env.NAME == "a"
        assert emulator.envs["b"].NAME == "b"
        assert list(emulator.envs) == ["a", "b"]
        with pytest.raises(KeyError, match="there is no Worker 'c'; there are: a, b"):
            _ = emulator.envs["c"]


async def test_a_module_keeps_env_for_good(tmp_path: Path) -> None:
    """python-api.md 1.3: `from workers import env` is bound once and delegates."""
    config = handler(
        tmp_path,
        "import settings\nreturn Response(settings.env.TEXT)",
        files={"settings.py": "from workers import env\n"},
        vars=VARS,
    )
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "text"


# -- the flag disallow_importable_env (workerd, workers.ts) ----------------------------------------


@pytest.mark.parametrize("date", ["2026-04-20", "2026-09-08"])
async def test_a_flag_leaves_the_importable_env_empty(tmp_path: Path, date: str) -> None:
    body = """
        from workers import env, import_from_javascript
        of_javascript = import_from_javascript("cloudflare:workers").env
        found = [getattr(one, "NAME", None) for one in (self.env, env, of_javascript)]
        assert found == ["x", None, None]
        env.NAME
    """
    flags = ["disallow_importable_env"]
    config = handler(
        tmp_path, body, compatibility_date=date, compatibility_flags=flags, vars={"NAME": "x"}
    )
    async with Emulator(config) as emulator:
        lines = (await emulator.fetch("/")).text.splitlines()
        assert lines[-2] == "AttributeError: NAME"
        assert lines[-1].startswith("The compatibility flag disallow_importable_env leaves the env")
        assert "self.env" in lines[-1]


async def test_patch_env_works_where_the_importable_env_is_empty(tmp_path: Path) -> None:
    """As `withExports` does in the runtime's own test of the flag."""
    body = """
        from workers import env, patch_env
        with patch_env(NAME="y"):
            return Response(f"{env.NAME} {self.env.NAME}")
    """
    flags = ["disallow_importable_env"]
    config = handler(tmp_path, body, compatibility_flags=flags, vars={"NAME": "x"})
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text == "y y"
