"""Rules of the house that a reader of one file cannot check: determinism and layers."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = Path(__file__).parent.parent / "emulator"
_MODULES = sorted(_PACKAGE.rglob("*.py"))

# What would make two runs differ: the real clock and the process's own randomness.
_FORBIDDEN_CALLS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.perf_counter",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "random.random",
    "random.randint",
    "random.choice",
    "random.shuffle",
    "uuid.uuid4",
    "os.urandom",
}
# Where one is right, and why.
_ALLOWED_CALLS = {
    ("runtime/web/blob.py", "time.time_ns"): "runs in a Worker, where it is virtual",
    ("server/watched.py", "time.time_ns"): "the machine's clock, beside times of files",
    ("wallclock.py", "time.time_ns"): "the machine's clock, for an emulator on real time",
    ("runtime/js_dates.py", "datetime.now"): "JavaScript's Date, in a Worker too",
}
# Folder order is the file system's own; results must be sorted.
_UNORDERED = {"os.listdir", "os.scandir", "glob.glob", "iterdir", "rglob", "glob"}

# Low to high; a module imports at run time only from its own layer and lower ones.
_LAYERS = (
    ("errors", "immortal", "scope", "clock", "durations", "registry", "outer"),
    (
        "shell",
        "encodings",
        "location",
        "foreign",
        "remains",
        "secrets",
        "values",
        "trace",
        "logs",
        "findings",
        "background",
    ),
    (
        "compatibility",
        "config_keys",
        "dotenv",
        "section",
        "config_place",
        "queue_names",
        "queue_config",
        "workflow_config",
        "cron_dialect",
        "cron_config",
        "d1_config",
        "object_config",
        "kv_config",
        "asset_config",
        "ratelimit_config",
        "analytics_config",
        "email_config",
        "r2_config",
        "vendored_sdk",
        "worker_config",
    ),
    ("wrangler", "handles", "absent_bindings"),
    (
        "faults",
        "store",
        "gate",
        "loop",
        "stacks",
        "tasks",
        "unawaited",
        "refusals",
        "adaptations",
        "pump",
    ),
    (
        "runtime",
        "config",
        "surroundings",
        "wallclock",
        "importer",
        "door",
        "kept_memory",
        "passed_none",
        "capture",
        "collector",
        "entrypoints",
    ),
    (
        "kernel",
        "deployment",
        "invocation",
        "isolate",
        "caller",
        "timers",
        "loose_ends",
        "event_record",
        "websockets",
    ),
    ("sql",),
    (
        *("bindings", "queues", "workflows", "objects", "d1", "kv", "rpc", "ingress"),
        *("services", "tails", "cache", "assets", "r2"),
        *("ratelimit", "analytics", "emails", "version_metadata"),
        *("response_body", "cron", "scheduled", "client"),
    ),
    ("durability", "flaws", "platform", "checks", "testing", "emulator", "lenient_respx"),
    ("sweeping",),
    ("server", "recording"),
    (
        *("pytest_plugin", "pytest_arguments", "pytest_report", "pytest_guard"),
        *("pytest_sweep", "pytest_sweep_run", "pytest_sweep_marker", "pytest_sweep_verdict"),
        *("pytest_sweep_memory", "pytest_sweep_progress", "pytest_sweep_shards"),
        *("cli", "__main__"),
        *("pytest_sweep_elsewhere", "pytest_sweep_pose", "pytest_sweep_server"),
    ),
)


# State machines without a clock, tasks or files of their own.
_PURE = (
    *(f"queues/{name}" for name in ("broker", "state", "line", "ages", "leases", "message")),
    *(f"queues/{name}" for name in ("verdict", "model", "chain", "setup")),
    *(f"workflows/{name}" for name in ("engine", "batches", "rollback", "steps", "core", "state")),
    *(f"workflows/{name}" for name in ("instance", "journal", "execution", "slots", "timers")),
    *(f"workflows/{name}" for name in ("views", "retries", "grammar", "texts", "model")),
    *(f"objects/{name}" for name in ("ids", "stored", "state", "alarms", "limits")),
    *(f"kv/{name}" for name in ("store", "rules")),
    *(f"cache/{name}" for name in ("store", "rules", "answers")),
    *(f"assets/{name}" for name in ("content_types", "paths", "html", "rule_files", "matching")),
    "ratelimit/counts",
    "tails/redaction",
    *(f"r2/{name}" for name in ("store", "rules", "conditions", "ranges")),
    *(f"sweeping/{name}" for name in ("search", "selection", "ledger", "shrinking", "outcome")),
    *(f"sweeping/{name}" for name in ("determinism", "text", "page", "schema", "junit")),
)


def _name(path: Path) -> str:
    return path.relative_to(_PACKAGE).as_posix()


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield _dotted(node.func), node.lineno


def _sorted_calls(tree: ast.AST) -> set[int]:
    """Lines inside a call of `sorted`, or that only ask whether there is one."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func) in ("sorted", "any"):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


@pytest.mark.parametrize("path", _MODULES, ids=_name)
def test_no_module_asks_the_real_clock_or_for_real_randomness(path: Path) -> None:
    used = [
        f"{call} at line {line}"
        for call, line in _calls(ast.parse(path.read_text()))
        if call in _FORBIDDEN_CALLS and (_name(path), call) not in _ALLOWED_CALLS
    ]
    assert not used


@pytest.mark.parametrize("path", _MODULES, ids=_name)
def test_no_module_reads_a_folder_unsorted(path: Path) -> None:
    tree = ast.parse(path.read_text())
    sorted_lines = _sorted_calls(tree)
    used = [
        f"{call} at line {line}"
        for call, line in _calls(tree)
        if call.rpartition(".")[2] in _UNORDERED and line not in sorted_lines
    ]
    assert not used


@pytest.mark.parametrize("path", _MODULES, ids=_name)
def test_no_module_iterates_over_a_set_display(path: Path) -> None:
    loops = (ast.For, ast.comprehension)
    used = [
        node.iter.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, loops) and isinstance(node.iter, (ast.Set, ast.SetComp))
    ]
    assert not used


def _run_time_imports(body: list[ast.stmt]) -> Iterator[str]:
    """The emulator's modules that these statements import when the module is loaded."""
    for statement in body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            continue
        if isinstance(statement, ast.ImportFrom) and statement.module:
            parts = statement.module.split(".")
            if parts[0] != "emulator":
                continue
            yield from parts[1:2] or [alias.name for alias in statement.names]


def _layer(module: str) -> int | None:
    return next((index for index, layer in enumerate(_LAYERS) if module in layer), None)


@pytest.mark.parametrize("path", _MODULES, ids=_name)
def test_arrows_point_down(path: Path) -> None:
    own = _layer(path.relative_to(_PACKAGE).parts[0].removesuffix(".py"))
    if _name(path) == "__init__.py":
        return  # its names are loaded when they are asked for
    assert own is not None, "a module without a place in the table of layers"
    upwards = [
        name
        for name in _run_time_imports(ast.parse(path.read_text()).body)
        if (layer := _layer(name)) is not None and layer > own
    ]
    assert not upwards


def test_products_do_not_import_each_other() -> None:
    products = {"queues", "workflows", "objects", "d1", "kv", "cache", "assets", "r2"}
    for product in sorted(products):
        for path in sorted((_PACKAGE / product).rglob("*.py")):
            names = set(_run_time_imports(ast.parse(path.read_text()).body))
            assert not names & (products - {product}), _name(path)


def test_pure_parts_import_no_asyncio_time_random_or_files() -> None:
    for name in _PURE:
        tree = ast.parse((_PACKAGE / f"{name}.py").read_text())
        imported = {
            alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        } | {
            (node.module or "").split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
        }
        assert not imported & {"asyncio", "time", "random", "os", "pathlib", "threading"}, name
