"""A swept test whose state outlives its runs, and one that never gets as far as to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

HEAD = """
import pytest

sweep = pytest.mark.fault_sweep(only=["batch.*"])


async def sign_up(emulator, respx_mock):
    mail = respx_mock.post("https://mail.example/send").respond(202)
    await emulator.fetch("/", method="POST", json={"email": "a@example.com"})
    await emulator.settle()
    return mail.call_count
"""
OUTLIVES = "now fails without a fault too: state outlives the runs (module globals of the test, *"


@pytest.fixture(autouse=True)
def _worker(project: Project) -> None:
    project.worker(idempotent=True)


def write(project: Project, body: str) -> None:
    project.write("test_a.py", HEAD)
    with (project.path / "test_a.py").open("a") as file:
        file.write(body)


@pytest.mark.parametrize(
    "body",
    [
        """
N = []

@sweep
async def test_it(emulator, respx_mock):
    N.append(1)
    await sign_up(emulator, respx_mock)
    assert len(N) < 5
""",
        """
@pytest.fixture(scope="module")
def wide():
    return []

@sweep
async def test_it(emulator, respx_mock, wide):
    wide.append(1)
    await sign_up(emulator, respx_mock)
    assert len(wide) < 5
""",
        """
class TestIt:
    seen = []

    @sweep
    async def test_it(self, emulator, respx_mock):
        self.seen.append(1)
        await sign_up(emulator, respx_mock)
        assert len(self.seen) < 5
""",
    ],
    ids=["global", "wide fixture", "class attribute"],
)
def test_state_that_outlives_the_runs_is_not_blamed_on_a_fault(project: Project, body: str) -> None:
    write(project, body)
    result = project.pytest("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*assert * < 5",
            "*- fault sweep -*",
            "*runs: 1 failure of 1 cause",
            "state outlives the runs",
            "    test_a.py:*: assert len(*) < 5",
            "  fails without any fault, though not from the start",
            f"  {OUTLIVES}",
            "  * plans that failed on the same line put down to it, the first: batch.emails#1:*",
            "tried: 4 single faults at 1 site*",
            "FAILED *::test_it - state outlives the runs: *assert * < 5",
        ]
    )
    result.stdout.no_fnmatch_line("*--emulator-faults*")
    assert sum("virtual time since" in line for line in result.outlines) == 1


def test_bug_that_a_fault_shows_stays_one_beside_state_that_outlives_the_runs(
    project: Project,
) -> None:
    project.worker()
    write(
        project,
        """
N = []

@sweep
async def test_it(emulator, respx_mock):
    N.append(1)
    mails = await sign_up(emulator, respx_mock)
    assert mails == 1
    assert len(N) < 5
""",
    )
    result = project.pytest("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "state outlives the runs",
            "AssertionError at test_a.py:*",
            "    assert mails == 1",
            '  --emulator-faults "batch.emails#1:*"',
            "FAILED *::test_it - state outlives the runs: *",
        ]
    )


def test_test_that_skips_itself_in_the_end_is_failed_by_its_faults(project: Project) -> None:
    project.worker()
    write(
        project,
        """
N = []

@sweep
async def test_it(emulator, respx_mock):
    N.append(1)
    if len(N) > 2 and not emulator.faults.plan:
        pytest.skip("that was enough")
    assert await sign_up(emulator, respx_mock) == 1
""",
    )
    result = project.pytest("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_it - under batch.emails#1:*: * 2 == 1"])


@pytest.mark.parametrize("plugins", [("respx",), ("respx", "asyncio")], ids=["none", "strict"])
@pytest.mark.parametrize("how", ["return 5", "yield 5"])
def test_async_fixture_that_nobody_claims_is_told_as_pytest_tells_it(
    project: Project, plugins: tuple[str, ...], how: str
) -> None:
    write(
        project,
        f"""
@pytest.fixture
async def thing():
    {how}

@sweep
async def test_coroutine(emulator, respx_mock, thing):
    await sign_up(emulator, respx_mock)

@sweep
def test_function(emulator, respx_mock, thing):
    emulator.run(sign_up(emulator, respx_mock))
""",
    )
    result = project.pytest("-W", "ignore", plugins=plugins)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "'test_coroutine' requested an async fixture 'thing', with no plugin or hook that *",
            "The test fails without any fault, so no fault was tried.",
            "'test_function' requested an async fixture 'thing', with no plugin or hook that *",
        ]
    )
    result.stdout.no_fnmatch_line("*set up again*")
    result.stdout.no_fnmatch_line("*nondeterministic*")
    result.stdout.no_fnmatch_line("AssertionError*")


def test_coroutine_that_no_plugin_runs_is_refused_with_what_to_do(project: Project) -> None:
    write(
        project,
        """
from emulator import Emulator

@pytest.mark.fault_sweep
async def test_none():
    pass

@pytest.mark.fault_sweep
async def test_own():
    async with Emulator("wrangler.jsonc") as emulator:
        await emulator.fetch("/ok")

@pytest.mark.fault_sweep
@pytest.mark.skip(reason="not today")
async def test_skipped():
    pass
""",
    )
    result = project.pytest()
    result.assert_outcomes(errors=2, skipped=1)
    for name in ("test_none", "test_own"):
        result.stdout.fnmatch_lines(
            [
                f"*ERROR at setup of {name} *",
                "fault_sweep: the test does not use the fixture `emulator` of this plugin, *",
            ]
        )
    result.stdout.no_fnmatch_line("*install a suitable plugin*")
