"""Print how many requests a second `workers-emulator dev` answers, beside the JavaScript runtime.

    python -m tests.benchmarks.http_speed [FOLDER]

FOLDER is one in which `npm install wrangler` was run (which brings Miniflare and workerd). A Worker
that answers `hello` runs on `workers-emulator dev` (in Python), on `wrangler dev` and on Miniflare
alone (in JavaScript). Turn by turn the same client asks each, on one connection and on ten.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.benchmarks.clients import closed_loop, cpu, request
from tests.benchmarks.served import ours, served, write_project

if TYPE_CHECKING:
    from tests.benchmarks.clients import Load
    from tests.benchmarks.served import Server

_ROUNDS: Final = 5
_SECONDS: Final = 1.0
_CONNECTIONS: Final = (1, 10)
_PYTHON: Final = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return Response("hello")
"""
_JAVASCRIPT: Final = 'export default { async fetch(request) { return new Response("hello"); } };'
_WRANGLER: Final = "wrangler/bin/wrangler.js"
_MINIFLARE: Final = """
import { createRequire } from "node:module";
const [folder, script] = process.argv.slice(2);
const { Miniflare } = createRequire(folder + "/")("miniflare");
const miniflare = new Miniflare({
  modules: true, cf: false, port: 0, script, compatibilityDate: "2026-01-01",
});
console.log("ready on " + (await miniflare.ready).href);
process.on("SIGTERM", async () => { await miniflare.dispose(); process.exit(0); });
"""


class Measured(NamedTuple):
    """One turn of a server: answers a second, and microseconds of processor time for each."""

    load: Load
    cost: float


def main() -> int:
    reason = _missing(sys.argv[1:])
    if reason:
        print(f"skipped: {reason}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {"emulator": stack.enter_context(ours(_python_project(Path(folder))))}
        if not reason:
            for name, command in _theirs(Path(folder), Path(sys.argv[1]).resolve()).items():
                servers[name] = stack.enter_context(served(command, Path(folder, "javascript")))
        for connections in _CONNECTIONS:
            _report(connections, _measure(servers, connections))
    return 0


def _missing(arguments: list[str]) -> str:
    """Why the JavaScript runtime cannot be measured; empty if it can."""
    if shutil.which("node") is None:
        return "the JavaScript runtime needs node, which is not on the PATH"
    if not arguments:
        return "name a folder in which `npm install wrangler` was run (make bench-http NODE=FOLDER)"
    if not (Path(arguments[0]) / "node_modules" / _WRANGLER).exists():
        return f"there is no wrangler in {arguments[0]}/node_modules: run `npm install wrangler`"
    return ""


def _python_project(folder: Path) -> Path:
    project = folder / "python"
    write_project(project, _PYTHON)
    return project


def _theirs(folder: Path, node: Path) -> dict[str, list[str]]:
    """The commands of the JavaScript runtime, by what it is called."""
    project = folder / "javascript"
    project.mkdir()
    (project / "index.js").write_text(_JAVASCRIPT)
    (project / "wrangler.jsonc").write_text(
        '{"name": "bench", "main": "index.js", "compatibility_date": "2026-01-01"}'
    )
    start = project / "miniflare.mjs"
    start.write_text(_MINIFLARE)
    os.environ["WRANGLER_SEND_METRICS"] = "false"
    wrangler = str(node / "node_modules" / _WRANGLER)
    return {
        "wrangler dev": ["node", wrangler, "dev", "--port", "0"],
        "miniflare": ["node", str(start), str(node), _JAVASCRIPT],
    }


def _measure(servers: dict[str, Server], connections: int) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = defaultdict(list)
    for number in range(_ROUNDS + 1):
        for name, server in servers.items():
            used = cpu(server.process)
            load = closed_loop(server.port, request(), connections=connections, seconds=_SECONDS)
            assert not load.errors, f"{name} answered with {load.errors} errors"
            cost = (cpu(server.process) - used) / len(load.latencies) * 1e6
            if number:  # the first turn warms up
                found[name].append(Measured(load, cost))
    return found


def _report(connections: int, found: dict[str, list[Measured]]) -> None:
    own = statistics.median(turn.load.rate for turn in found["emulator"])
    print(f"connections: {connections}")
    for name, turns in found.items():
        rates = sorted(turn.load.rate for turn in turns)
        rate, cost = statistics.median(rates), statistics.median(turn.cost for turn in turns)
        latency = statistics.median(turn.load.percentile(0.5) for turn in turns)
        print(
            f"  {name:14}{rate:9,.0f} requests/s ({rates[0]:,.0f} to {rates[-1]:,.0f})"
            f"{latency:8.2f} ms{cost:7.0f} µs of processor time"
            f"{'' if name == 'emulator' else f'   emulator: {own / rate:.2f} times as many'}"
        )


if __name__ == "__main__":
    sys.exit(main())
