"""Who may use the fixture, or an emulator of its own, and how: one run of each async mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

LOOP_SCOPE = "asyncio_default_fixture_loop_scope = function"
# Each test of these files says itself what must be true; all are to pass unless named FAILS.
SHARED = """
    import asyncio
    import unittest

    import pytest
    from hypothesis import HealthCheck, given, settings, strategies as st
    from emulator import Emulator

    loops = []

    @pytest.fixture(scope="session")
    def shared():
        with Emulator("wrangler.jsonc") as emulator:
            yield emulator

    async def use(emulator):
        await emulator.reset()
        loops.append(asyncio.get_running_loop())
        assert len(emulator.trace) == 0
        assert (await emulator.fetch("/ok")).text == "ok"

    @pytest.mark.asyncio
    async def test_shared_in_one_loop(shared):
        await use(shared)

    @pytest.mark.asyncio
    async def test_shared_in_another_loop(shared):
        await use(shared)
        assert loops[-1] is not loops[-2]

    async def test_shared_without_a_plugin(shared):
        await use(shared)

    def test_shared_in_a_sync_test(shared):
        shared.run(use(shared))

    class TestUnittest(unittest.IsolatedAsyncioTestCase):
        async def test_emulator_of_its_own(self):
            async with Emulator("wrangler.jsonc") as emulator:
                await use(emulator)

    @given(st.integers())
    @settings(max_examples=5, deadline=None)
    def test_given_with_an_emulator_inside(number):
        with Emulator("wrangler.jsonc") as emulator:
            emulator.run(use(emulator))

    @given(number=st.integers())
    @settings(
        max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    async def test_given_coroutine(emulator, number):
        await use(emulator)

    def test_given_keeps_its_coroutine():
        assert asyncio.iscoroutinefunction(test_given_coroutine.hypothesis.inner_test)
"""
FIXTURE = """
    import gc
    import weakref

    import pytest
    import respx
    import workers  # as conftest files and test modules may

    made = []

    def test_sync(emulator):
        assert emulator.run(emulator.fetch("/ok")).text == "ok"
        made.append(weakref.ref(emulator))

    async def test_coroutine(emulator):
        assert (await emulator.fetch("/ok")).text == "ok"
        made.append(weakref.ref(emulator))

    def test_nothing_is_kept_for_the_session():
        gc.collect()
        assert [emulator() for emulator in made] == [None, None]

    @pytest.mark.parametrize("path", ["/ok", "/log"])
    async def test_parametrised(path, emulator):
        assert (await emulator.fetch(path)).status_code == 200

    class TestClass:
        async def test_method(self, emulator):
            assert (await emulator.fetch("/ok")).text == "ok"

        def test_sync_method(self, emulator):
            assert emulator.run(emulator.fetch("/ok")).text == "ok"

    seen = []

    @pytest.mark.usefixtures("emulator")
    async def test_usefixtures():
        seen.append("usefixtures")

    @pytest.fixture
    def client(request):
        return request.getfixturevalue("emulator").client

    async def test_getfixturevalue(client):
        assert (await client.get("/ok")).text == "ok"
        seen.append("getfixturevalue")

    def test_both_were_run():
        assert seen == ["usefixtures", "getfixturevalue"]

    @respx.mock
    async def test_respx_decorator(emulator):
        respx.post("https://mail.example/send").respond(202)
        await emulator.fetch("/", method="POST", json={"email": "a@b.example"})
        await emulator.settle()
        assert respx.calls.call_count == 1

    @respx.mock(base_url="https://mail.example")
    def test_respx_decorator_of_its_own(emulator, respx_mock):
        respx_mock.post("/send").respond(202)
        emulator.run(emulator.fetch("/", method="POST", json={"email": "a@b.example"}))
        emulator.run(emulator.settle())

    def test_function_with_an_example():
        '''
        >>> 1 + 1
        2
        '''

    async def test_async_generator_FAILS(emulator):
        yield

    async def test_without_emulator_FAILS():
        pass
"""
AUTO = """
    import pytest

    @pytest.fixture
    async def signed_up(emulator, respx_mock):
        respx_mock.post("https://mail.example/send").respond(202)
        response = await emulator.fetch("/", method="POST", json={"email": "a@b.example"})
        yield response
        await emulator.settle()
        assert respx_mock.calls.call_count == 1

    async def test_async_fixture(signed_up, emulator):
        assert signed_up.status_code == 202
        assert len(emulator.queues["emails"].backlog) == 1

    class TestClass:
        async def test_async_fixture_in_a_method(self, signed_up):
            assert signed_up.status_code == 202

    async def test_fixture_asked_for_in_the_body(request):
        emulator = request.getfixturevalue("emulator")
        assert (await emulator.fetch("/ok")).text == "ok"
"""


def test_every_way_of_using_an_emulator_works_in_strict_mode(project: Project) -> None:
    project.ini("asyncio_mode = strict", LOOP_SCOPE, "filterwarnings = error")
    project.write("conftest.py", "from workers import Response\n")
    project.write("test_shared.py", SHARED)
    project.write("test_fixture.py", FIXTURE)
    result = project.pytest(
        "--doctest-modules",
        *("test_shared.py", "test_fixture.py"),
        plugins=("asyncio", "respx", "hypothesispytest"),
    )
    result.assert_outcomes(passed=22, failed=2)
    result.stdout.fnmatch_lines_random(
        ["FAILED *::test_async_generator_FAILS *", "FAILED *::test_without_emulator_FAILS *"]
    )


def test_async_fixtures_use_the_emulator_in_auto_mode(project: Project) -> None:
    project.ini("asyncio_mode = auto", LOOP_SCOPE, "filterwarnings = error")
    project.write("test_auto.py", AUTO)
    project.pytest(plugins=("asyncio", "respx")).assert_outcomes(passed=3)
