"""Runs probes in the emulator, as code of a Worker whose bindings are those of `probe_twins.py`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import probe_twins as twins
from probe_showing import run_probe

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_families import Family, Setting

ROOT: Final = Path(__file__).parents[3]


def run(setting: Setting, families: Sequence[Family]) -> dict[str, dict[str, str]]:
    """Return what each probe of each family shows."""
    from workers import Response, WorkerEntrypoint

    shown: dict[str, dict[str, str]] = {}

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            for family in families:
                shown[family.name] = await _family(family)
            return Response("shown")

    config = {
        "main": Default,
        "compatibility_date": setting.date,
        "compatibility_flags": ["python_workers"],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Emulator(config, bindings=twins.env()) as emulator:
            answer = emulator.run(emulator.fetch("/"))
    assert answer.text == "shown", answer.text
    return shown


async def _family(family: Family) -> dict[str, str]:
    shown = {}
    for source in family.probes:
        names = {"fakes": twins.fakes(), "describe": twins.describer()}
        shown[source] = await run_probe(family.setup, source, names, twins.describer())
    return shown
