"""Every operation that the pages on faults list is met when Worker code calls it.

Each list is read from its page, so that a name is neither documented in vain nor left out here; the
calls are made with both SDKs, of which the frozen one hands out raw proxies.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOCS = Path(__file__).parents[2] / "docs"
_TODAY, _FROZEN = "2026-10-01", "2026-03-01"

_STORAGE = {
    "get": 'await storage.get("k")',
    "put": 'await storage.put("k", "v")',
    "delete": 'await storage.delete("k")',
    "list": "await storage.list()",
    "deleteAll": "await storage.deleteAll()",
    "getAlarm": "await storage.getAlarm()",
    "setAlarm": "await storage.setAlarm(9e12)",
    "deleteAlarm": "await storage.deleteAlarm()",
    "transaction": "await storage.transaction(create_proxy(noop))",
    "transactionSync": "storage.transactionSync(lambda: None)",
    "sync": "await storage.sync()",
    "sql.exec": 'storage.sql.exec("select 1")',
    "kv.get": 'storage.kv.get("k")',
    "kv.put": 'storage.kv.put("k", "v")',
    "kv.delete": 'storage.kv.delete("k")',
    "kv.list": "storage.kv.list()",
}
_KV = {
    "get": 'await env.KV.get("k")',
    "getWithMetadata": 'await env.KV.getWithMetadata("k")',
    "put": 'await env.KV.put("k", "v")',
    "delete": 'await env.KV.delete("k")',
    "list": "await env.KV.list()",
}
_D1 = {
    "run": 'await env.DB.prepare("select 1").run()',
    "all": 'await env.DB.prepare("select 1").all()',
    "first": 'await env.DB.prepare("select 1").first()',
    "raw": 'await env.DB.prepare("select 1").raw()',
    "batch": 'await env.DB.batch(to_js([env.DB.prepare("select 1")]))',
    "exec": 'await env.DB.exec("select 1")',
}
_UPLOAD = 'upload = await env.FILES.createMultipartUpload("k")'
_R2 = {
    "head": 'await env.FILES.head("k")',
    "get": 'await env.FILES.get("k")',
    "put": 'await env.FILES.put("k", "v")',
    "delete": 'await env.FILES.delete("k")',
    "list": "await env.FILES.list()",
    "createMultipartUpload": _UPLOAD,
    "uploadPart": f'{_UPLOAD}; await upload.uploadPart(1, "part")',
    "complete": f'{_UPLOAD}; await upload.complete(to_js([await upload.uploadPart(1, "part")]))',
    "abort": f"{_UPLOAD}; await upload.abort()",
}
_CALLS = {"storage.OBJ": _STORAGE, "kv.KV": _KV, "d1.DB": _D1, "r2.FILES": _R2}

_WORKER = """
from pyodide.ffi import create_proxy, to_js
from workers import DurableObject, Response, WorkerEntrypoint


async def noop(*_):
    pass


class Obj(DurableObject):
    async def fetch(self, request):
        storage = self.ctx.storage
        {inside}
        return Response("done")


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        env = self.env
        {outside}
        return await env.OBJ.get(env.OBJ.idFromName("one")).fetch("https://object/")
"""
_BINDINGS: dict[str, Any] = {
    "kv_namespaces": [{"binding": "KV"}],
    "d1_databases": [{"binding": "DB", "database_name": "d"}],
    "r2_buckets": [{"binding": "FILES", "bucket_name": "files"}],
    "durable_objects": {"bindings": [{"name": "OBJ", "class_name": "Obj"}]},
    "migrations": [{"tag": "1", "new_sqlite_classes": ["Obj"]}],
}


def _documented(page: str, site: str) -> list[str]:
    """The operations that a page lists of a kind of site, before the next cell or sentence."""
    lines = (_DOCS / page).read_text("utf-8").splitlines()
    (line,) = [line for line in lines if f"`{site}.<binding>.<operation>`" in line]
    text = line.split("Operations are")[-1].split("`:", 1)[-1].split(" on a", 1)[0]
    text = text.split(f"`{site}.<binding>.<operation>`")[-1]
    return re.findall(r"`([\w.]+)`", text)


def _cases() -> Iterator[Any]:
    for site, calls in _CALLS.items():
        for operation in calls:
            for date in (_TODAY, _FROZEN):
                yield pytest.param(f"{site}.{operation}", calls[operation], date)


@pytest.mark.parametrize(
    ("page", "site", "calls"),
    [
        ("durable-objects.md", "storage", _STORAGE),
        ("faults.md", "kv", _KV),
        ("faults.md", "d1", _D1),
        ("faults.md", "r2", _R2),
    ],
)
def test_these_are_the_operations_of_the_page(page: str, site: str, calls: dict[str, str]) -> None:
    assert _documented(page, site) == list(calls)


@pytest.mark.parametrize(("site", "call", "date"), list(_cases()))
@pytest.mark.asyncio
async def test_a_documented_operation_is_a_site(
    tmp_path: Path, site: str, call: str, date: str
) -> None:
    inside = site.startswith("storage")
    places = {"inside": call if inside else "", "outside": "" if inside else call}
    entry = _WORKER.format(**places)
    config = worker(tmp_path, entry, compatibility_date=date, **_BINDINGS)
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done"
        assert site in [met.name for met in emulator.faults.sites]


@pytest.mark.parametrize("date", [_TODAY, _FROZEN])
@pytest.mark.parametrize(("action", "kept"), [("crash_before", {}), ("crash_after", {"k": "v"})])
@pytest.mark.asyncio
async def test_sync_parts_what_is_durable_from_what_is_not(
    tmp_path: Path, action: str, kept: dict[str, str], date: str
) -> None:
    """A crash before it takes the turn's writes; one after it comes when they are durable."""
    call = 'storage.put("k", "v"); await storage.sync(); print("after")'
    entry = _WORKER.format(inside=call, outside="")
    config = worker(tmp_path, entry, compatibility_date=date, **_BINDINGS)
    async with Emulator(config, faults=f"storage.OBJ.sync#1:{action}") as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert dict(emulator.durable_objects["OBJ"].storage("one")) == kept
        assert [str(fault) for fault in emulator.faults.fired] == [f"storage.OBJ.sync#1:{action}"]
        assert (await emulator.fetch("/")).text == "done"
