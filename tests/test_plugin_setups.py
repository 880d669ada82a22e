"""The first example of the documentation, as it stands, in every set-up of async plugins.

Each run has a project whose consumer sends mail twice and one whose consumer does not: the same
test fails on the first and passes on the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.pytester import RunResult

    from tests.conftest import Project

pytest_plugins = ("pytester",)

EXAMPLE = """
# the Worker under test is src/entry.py, unmodified code that also deploys to Cloudflare
async def test_welcome_mail_survives_redelivery(emulator, respx_mock):
    mail = respx_mock.post("https://mail.example/send").respond(202)
    emulator.faults.add("batch.emails#1:lose_ack")

    response = await emulator.fetch("/signup", method="POST", json={"email": "a@example.com"})
    await emulator.settle()

    assert response.status_code == 202
    assert mail.call_count == 1          # fails on a consumer that is not idempotent
"""
TWICE = "E*AssertionError: assert 2 == 1"
LOOP_SCOPE = "asyncio_default_fixture_loop_scope = function"


def write_projects(project: Project, *, mark: str = "") -> None:
    suffix = "_marked" if mark else ""
    before = f"import pytest\npytestmark = {mark}\n" if mark else ""
    for name in ("naive", "idempotent"):
        project.worker(name, idempotent=name == "idempotent")
        project.write(f"{name}/tests/test_{name}{suffix}.py", before + EXAMPLE)


def assert_example_ran(result: RunResult, *, times: int = 1) -> None:
    result.assert_outcomes(passed=times, failed=times)
    result.stdout.fnmatch_lines([TWICE] * times)


def test_example_with_pytest_asyncio_in_strict_mode_marked_and_not(project: Project) -> None:
    project.ini("asyncio_mode = strict", LOOP_SCOPE)
    write_projects(project)
    write_projects(project, mark="pytest.mark.asyncio")
    # With all that is installed, as most users have it.
    assert_example_ran(project.pytest(plugins=None), times=2)


def test_example_with_pytest_asyncio_in_auto_mode(project: Project) -> None:
    project.ini("asyncio_mode = auto", LOOP_SCOPE)
    write_projects(project)
    assert_example_ran(project.pytest(plugins=("asyncio", "respx")))


def test_example_with_one_loop_for_the_session(project: Project) -> None:
    project.ini("asyncio_mode = auto", "asyncio_default_test_loop_scope = session", LOOP_SCOPE)
    write_projects(project)
    write_projects(project, mark='pytest.mark.asyncio(loop_scope="session")')
    assert_example_ran(project.pytest(plugins=("asyncio", "respx")), times=2)


def test_example_with_anyio_runs_on_asyncio_and_is_refused_on_trio(project: Project) -> None:
    write_projects(project, mark="pytest.mark.anyio")
    result = project.pytest("-rA", plugins=("anyio", "respx"))
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            TWICE,
            "E*UnsupportedLoop: *trio*anyio_backend*asyncio*",
            "PASSED *test_idempotent_marked.py::*asyncio*",
            "FAILED *test_idempotent_marked.py::*trio* - *UnsupportedLoop*",
            "FAILED *test_naive_marked.py::*asyncio* assert 2 == 1",
        ]
    )


def test_example_without_any_async_plugin(project: Project) -> None:
    write_projects(project)
    assert_example_ran(project.pytest("-W", "error"))


def test_example_on_two_processes(project: Project) -> None:
    pytest.importorskip("xdist")
    write_projects(project)
    result = project.pytest("-n", "2", plugins=("xdist", "respx"))
    assert_example_ran(result)
    result.stdout.fnmatch_lines(["*- workers-emulator -*", "reproduce: pytest naive/tests/*"])
