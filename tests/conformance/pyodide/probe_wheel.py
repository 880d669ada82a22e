"""Runs the probes with Cloudflare's own SDK on the emulator's `js` and `pyodide`.

    python probe_wheel.py SETTING FILE

A process of its own: `workers` is here the wheel that `__main__.py install` unpacked, which needs
nothing but what the emulator says that JavaScript is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import probe_real
import probe_twins as twins
from probe_families import SETTINGS, Family, Setting, families
from probe_showing import run_probe

from emulator import importer
from emulator.runtime import modules
from emulator.runtime.proxies import wrap
from emulator.scope import SCOPE, Scope

# What a Worker of each setting has: the flags that its date implies.
_FLAGS = {
    28: {"enable_python_external_sdk", "python_workers_20250116"},
    314: {"enable_python_external_sdk", "python_workers_20250116", "python_workers_314"},
}


class Host:
    """The least a Worker's invocation must be."""

    def __init__(self, flags: frozenset[str]) -> None:
        self.flags = flags
        self.env = twins.env()

    def missing_binding(self, name: str) -> str:
        return ""

    def track(self, call: Any) -> None: ...

    def track_promise(self, promise: Any) -> None: ...

    def log(self, level: str, text: str) -> None: ...

    def find(self, *told: Any) -> None: ...

    def forbid_in_global_scope(self) -> None:
        return None

    def urandom(self, size: int) -> bytes:
        return bytes(range(size))


def serve(env: Any) -> None:
    """Let the wheel be `workers`, and give it what the runtime gives it."""
    importer.install()
    own = {name for name in modules._SERVED if name not in ("workers", "asgi")}
    modules._SERVED = frozenset(own)  # type: ignore[misc]
    sys.path.insert(0, str(probe_real.CACHE / f"sdk-{probe_real.SDK}"))
    helper: Any = ModuleType("_pyodide_entrypoint_helper")
    helper.cloudflareWorkersModule = SimpleNamespace(env=env, waitUntil=lambda *_: None)
    helper.cloudflareSocketsModule = None
    helper.patchWaitUntil = lambda ctx: None
    helper.doAnImport = _import
    sys.modules["_pyodide_entrypoint_helper"] = helper


async def _import(name: str) -> Any:
    """The SDK's own JavaScript, of which the twin of a step has its part."""
    return SimpleNamespace(wrapWorkflowStep=lambda step: step)


async def run(setting: Setting, chosen: list[Family]) -> dict[str, dict[str, str]]:
    """Return what each probe shows."""
    flags = _FLAGS[setting.generation] | {name for name, on in setting.flags.items() if on}
    host = Host(frozenset(flags))
    SCOPE.set(cast("Scope", host))
    serve(wrap(host.env))
    shown: dict[str, dict[str, str]] = {}
    for family in chosen:
        shown[family.name] = {}
        for source in family.probes:
            names = {"fakes": twins.fakes(), "describe": twins.describer()}
            text = await run_probe(family.setup, source, names, twins.describer())
            shown[family.name][source] = text
    return shown


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    (found,) = (one for one in SETTINGS if one.name == sys.argv[1])
    results = asyncio.run(run(found, [one for one in families() if found in one.settings()]))
    Path(sys.argv[2]).write_text(json.dumps(results), encoding="utf-8")
