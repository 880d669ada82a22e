"""The other process of a sweep poses as one of pytest-xdist, and other plugins can bear it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.sweeping.process import ROLE

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

ONLY = "*determinism was checked in this process only: "
TEST = """
import random

import pytest

@pytest.mark.fault_sweep(only=["batch.*"])
@pytest.mark.parametrize("number", range(2))
async def test_it(emulator, respx_mock, number, request):
    respx_mock.post("https://mail.example/send").respond(202)
    where = f"/x?{random.random()}&{request.node.name}"
    await emulator.fetch(where, method="POST", json={"email": "a@example.com"})
    await emulator.settle()
"""
# What pytest-randomly and pytest-rerunfailures do with `workerinput`.
PLUGIN = """
import os, random
from zlib import crc32
import pytest

class Hooks:
    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["its_seed"] = node.config.its_seed
        assert node.gateway.id == node.workerinput["workerid"]

class Broken:
    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        if not hasattr(node, "sendcommand"):
            node.workerinput["not plain"] = object()
            raise RuntimeError("not a process")

def pytest_configure(config):
    config.pluginmanager.register(Broken())
    config.pluginmanager.register(Hooks())
    config.pluginmanager.register(Broken())
    if hasattr(config, "workerinput"):
        config.its_seed = config.workerinput["its_seed"]
    else:
        config.its_seed = int.from_bytes(os.urandom(4), "big")

def pytest_runtest_call(item):
    random.seed(item.config.its_seed + crc32(item.nodeid.encode()))
"""


@pytest.fixture(autouse=True)
def _elsewhere(project: Project) -> None:
    project.elsewhere = True
    project.worker(idempotent=True)
    project.write("tests/test_a.py", TEST)


def test_plugins_put_into_the_input_of_the_process_what_they_expect(project: Project) -> None:
    project.write("seeds.py", PLUGIN)
    result = project.pytest("-rP", plugins=("respx", "seeds"))
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line(f"{ONLY}*")


def test_shard_asks_the_process_for_a_test_of_its_own_name(project: Project) -> None:
    """What is seeded by a test's id is the same there."""
    pytest.importorskip("xdist")
    project.write("seeds.py", PLUGIN)
    result = project.pytest("-n", "2", "-rP", plugins=("respx", "xdist", "seeds"))
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_it[[]0-sweep-1/2]*"])
    result.stdout.no_fnmatch_line(f"{ONLY}*")


def test_seed_that_is_given_without_the_hook_is_known_all_the_same(project: Project) -> None:
    """pytest-randomly has its hook only where pytest-xdist is installed, and asks always."""
    project.write(
        "randomly.py",
        """
        import random

        def pytest_addoption(parser):
            parser.addoption("--randomly-seed", type=int, default=7)

        def pytest_configure(config):
            if hasattr(config, "workerinput"):
                config.option.randomly_seed = config.workerinput["randomly_seed"]

        def pytest_runtest_call(item):
            random.seed(item.config.option.randomly_seed)
        """,
    )
    result = project.pytest("-rP", plugins=("respx", "randomly"))
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line(f"{ONLY}*")


@pytest.mark.parametrize("hook", ["pytest_configure(config)", "pytest_sessionstart(session)"])
def test_plugin_that_breaks_the_process_is_named_also_when_quiet(
    project: Project, hook: str
) -> None:
    project.write(
        "greedy.py",
        f"""
        import os

        def pytest_addoption(parser): ...

        def {hook}:
            if {ROLE!r} in os.environ:
                {{}}["its_port"]
        """,
    )
    said = (
        "the plugin greedy breaks the other process, which poses as one of pytest-xdist: "
        "KeyError: 'its_port' (*/greedy.py:8); set the ini option emulator_determinism *"
    )
    for option in ("-q", "-qq"):
        result = project.pytest(option, plugins=("respx", "greedy"))
        assert result.ret == 0
        result.stdout.fnmatch_lines(
            [f"fault sweep of tests/test_a.py::test_it[[]0] and 1 more: {ONLY[1:]}{said}"]
        )
    result = project.pytest(plugins=("respx", "greedy"))
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"tests/test_a.py::test_it[[]0]: tried: {ONLY}{said}"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
