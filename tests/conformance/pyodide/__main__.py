"""Real Pyodide as a second opinion on what user code sees.

    python -m tests.conformance.pyodide install [--frozen FOLDER]
    python -m tests.conformance.pyodide record

`install` fetches Pyodide and Cloudflare's SDK into a cache folder outside the repository
(WORKERS_EMULATOR_PYODIDE, by default under ~/.cache); nothing else here needs a network. `record`
runs the probes there and writes what they show to `recordings/`, for the settings that are
installed. The tests compare the emulator with the recordings, and the recordings with real Pyodide
where it is installed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import probe_real
from probe_families import SETTINGS, families, record, recorded


def main() -> None:
    """Run one of the commands."""
    parser = ArgumentParser(prog="python -m tests.conformance.pyodide")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install").add_argument("--frozen")
    commands.add_parser("record")
    given = parser.parse_args()
    if given.command == "install":
        probe_real.install(given.frozen)
    else:
        _record()


def _record() -> None:
    shown: dict[str, dict[str, dict[str, str]]] = {}
    for setting in SETTINGS:
        here = [family for family in families() if setting in family.settings()]
        lacking = probe_real.missing(setting)
        if lacking:
            print(f"{setting.name}: as recorded before, {lacking}")
        found = {} if lacking else probe_real.run(setting, here)
        for family in here:
            known = found.get(family.name)
            for probe in family.probes:
                text = known[probe] if known else recorded(family.name)[probe][setting.name]
                shown.setdefault(family.name, {}).setdefault(probe, {})[setting.name] = text
    for name, probes in shown.items():
        record(name, probes)


main()
