"""Print how many runs a second a sweep makes, of the scenario of examples/onboarding.

    python -m tests.benchmarks.sweep
    python -m tests.benchmarks.sweep --memory     10,000 runs, and the memory after each thousand

Without pytest it is CPU time, which other work on the machine changes least, the best of several
rounds. Through pytest it is what a sweep adds to the time of the whole command, so that two
processes can be compared with one; that needs a machine with nothing else to do.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import respx

from emulator import Emulator, sweep
from tests.benchmarks.figures import Figure, show

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from emulator import SweepReport

_EXAMPLE = Path(__file__).parents[2] / "examples" / "onboarding"
_CONFIG = _EXAMPLE / "wrangler.jsonc"
_CUSTOMER = {"id": "7", "email": "ada@example.com"}
_ROUNDS = 5
_CLEAN_RUNS = 50
# So many that what is done once, such as the start of the process that checks, weighs little.
_ITEMS = 24
_T = TypeVar("_T")

_TEST = """
import pytest
import services

@pytest.mark.fault_sweep(classes="all")
@pytest.mark.parametrize("again", range({items}))
async def test_onboarding(emulator, respx_mock, again):
    billing, mail = services.Billing(), services.Mail()
    respx_mock.post(host="billing.example").mock(side_effect=billing)
    respx_mock.post("https://mail.example/send").mock(side_effect=mail)
    response = await emulator.fetch("/customers", method="POST", json={customer}, retries=1)
    await emulator.settle()
    assert response.status_code == 202
    assert [charge for charge, _ in billing.charges] == ["setup", "subscription"]
    assert mail.subjects == ["Welcome", "How is it going?"]
"""


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


def figures() -> Iterator[Figure]:
    """Yield runs a second, alone and through pytest, and what more runs cost in memory."""
    asyncio.run(sweep(scenario, _CONFIG, limit=5, determinism="in-process"))  # imports, caches
    timed = [_timed(_sweep()) for _ in range(_ROUNDS)]
    report = timed[0][0]
    assert report.passed, report.render()
    rate = report.runs / min(seconds for _, seconds in timed)
    what = f"{report.runs} runs, {len(report.sites)} sites"
    yield Figure("sweep() of onboarding", rate, "runs/s", what)
    clean = min(_timed(_run_clean())[1] for _ in range(_ROUNDS))
    yield Figure("its scenario alone", _CLEAN_RUNS / clean, "runs/s")
    one, two = _through_pytest(report.runs)
    yield Figure("the same through pytest", one, "runs/s")
    yield Figure("the same through pytest, -n 2", two, "runs/s", f"{two / one:.2f} times that")
    yield Figure("memory of 1,000 runs more", _grown(1000), "KiB")


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


# -- through pytest --------------------------------------------------------------------------------


def _through_pytest(runs: int) -> tuple[float, float]:
    """Runs a second in one process, and in two."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        shutil.copytree(_EXAMPLE, folder, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        test = _TEST.format(items=_ITEMS, customer=_CUSTOMER)
        (folder / "test_onboarding.py").write_text(test)
        (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
        made = runs * _ITEMS
        # The clean runs of the second process come on top.
        return made / _added(folder), (made + 2 * _ITEMS) / _added(folder, "-n", "2")


def _added(folder: Path, *options: str) -> float:
    """Seconds that the sweep adds to the command, the lesser of two times."""
    without = min(_pytest(folder, *options, "--fault-sweep=off") for _ in range(2))
    return min(_pytest(folder, *options) for _ in range(2)) - without


def _pytest(folder: Path, *options: str) -> float:
    plugins = ("workers-emulator", "respx", *(("xdist",) if options[:1] == ("-n",) else ()))
    loaded = [option for plugin in plugins for option in ("-p", plugin)]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *loaded, *options],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return time.perf_counter() - start


# -- memory ----------------------------------------------------------------------------------------


def _grown(runs: int) -> float:
    """KiB that the process is larger after so many runs more, once it has made some hundreds."""
    sizes = _sizes(400 + runs, every=200)
    return sizes[-1] - sizes[1]


def _sizes(runs: int, *, every: int) -> list[int]:
    """The most memory the process has had, in KiB, after each `every` runs of one sweep."""
    sizes: list[int] = []
    made = 0

    async def counted(emulator: Emulator) -> None:
        nonlocal made
        await scenario(emulator)
        made += 1
        if made % every == 0:
            sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    asyncio.run(sweep(counted, _CONFIG, classes="all", depth=3, limit=runs))
    return sizes


def _show_memory() -> None:
    for index, size in enumerate(_sizes(10_000, every=1_000), start=1):
        print(f"{index * 1_000:>8,} runs{size:12,} KiB")


sys.path.insert(0, str(_EXAMPLE))
import services  # noqa: E402

if __name__ == "__main__":
    if "--memory" in sys.argv[1:]:
        _show_memory()
    else:
        show(figures())
