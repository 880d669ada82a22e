"""Print how many runs a second a sweep makes, of the scenario of examples/onboarding.

    python -m tests.benchmarks.sweep

The second row is what one run costs without the sweep: a new emulator, the scenario, closing it.
CPU time, which other work on the machine changes least; medians of several rounds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import respx

from emulator import Emulator, sweep

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from emulator import SweepReport

_EXAMPLE = Path(__file__).parents[2] / "examples" / "onboarding"
_CONFIG = _EXAMPLE / "wrangler.jsonc"
_CUSTOMER = {"id": "7", "email": "ada@example.com"}
_ROUNDS = 5
_CLEAN_RUNS = 50
_T = TypeVar("_T")


def main() -> None:
    asyncio.run(sweep(scenario, _CONFIG, limit=5, determinism="in-process"))  # imports, caches
    reports = [_timed(_sweep()) for _ in range(_ROUNDS)]
    report = reports[0][0]
    assert report.passed, report.render()
    rates = [each.runs / seconds for each, seconds in reports]
    clean = [_CLEAN_RUNS / _timed(_run_clean())[1] for _ in range(_ROUNDS)]
    print(f"Python {sys.version.split()[0]}")
    print(f"{'sweep of all classes':35} {statistics.median(rates):12,.0f} runs/s")
    print(f"{'the scenario alone':35} {statistics.median(clean):12,.0f} runs/s")
    print(f"{'sites':35} {len(report.sites):12}")
    print(f"{'runs':35} {report.runs:12}")
    print(report.summary())


async def scenario(emulator: Emulator) -> None:
    """A customer comes, and all is done once."""
    billing, mail = services.Billing(), services.Mail()
    with respx.mock(assert_all_called=False) as router:
        router.post(host="billing.example").mock(side_effect=billing)
        router.post("https://mail.example/send").mock(side_effect=mail)
        response = await emulator.fetch("/customers", method="POST", json=_CUSTOMER, retries=1)
        await emulator.settle()
    assert response.status_code == 202
    assert [charge for charge, _ in billing.charges] == ["setup", "subscription"]
    assert mail.subjects == ["Welcome", "How is it going?"]


async def _sweep() -> SweepReport:
    # The other process does its part beside the runs, on a core that others may need.
    return await sweep(scenario, _CONFIG, classes="all", determinism="in-process")


async def _run_clean() -> None:
    for _ in range(_CLEAN_RUNS):
        async with Emulator(_CONFIG) as emulator:
            await scenario(emulator)


def _timed(work: Coroutine[Any, Any, _T]) -> tuple[_T, float]:
    start = time.process_time()
    return asyncio.run(work), time.process_time() - start


sys.path.insert(0, str(_EXAMPLE))
import services  # noqa: E402

if __name__ == "__main__":
    main()
