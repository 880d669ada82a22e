"""What a report says of a message's body that JSON refuses or changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)


def test_a_failing_test_shows_the_note(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        async def test_it(emulator):
            await emulator.queues["emails"].send({"rows": [2**60]})
        """,
    )
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*JsException: TypeError: Do not know how to serialize a BigInt",
            "E*emulator: the value at $.rows[[]0] is the cause",
        ]
    )


def test_a_passing_test_warns_of_the_finding(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        from datetime import datetime

        async def test_it(emulator, respx_mock):
            respx_mock.post("https://mail.example/send")
            await emulator.queues["emails"].send({"to": "a", "at": datetime(2026, 1, 1)})
            await emulator.settle()
        """,
    )
    result = project.pytest()
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*lossy_body: JSON changes this body: $.at (datetime) arrives*"])
