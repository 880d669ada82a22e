"""Scenario files: what is found in them, and what is said of those that will not do."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from emulator.cli.refusal import Refusal
from emulator.cli.scenario import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def written(folder: Path, text: str, name: str = "some_scenario.py") -> Path:
    path = folder / name
    path.write_text(dedent(text), "utf-8")
    sys.modules.pop(path.stem, None)
    return path


def refusal(path: Path, name: str | None = None) -> str:
    with pytest.raises(Refusal) as caught:
        load(path, name)
    assert caught.value.exit_code == 2
    return caught.value.message


def test_the_function_called_scenario_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "async def other(e): ...\nasync def scenario(e): ...\n")
    file = load(path, None)
    assert file.name == file.scenario.__name__ == "scenario"
    assert (file.config, dict(file.arguments)) == (None, {})
    assert file.folder == tmp_path


def test_the_only_coroutine_function_of_one_argument_is_taken(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        from asyncio import sleep
        def helper(emulator): ...
        async def _private(emulator): ...
        async def with_two(emulator, other): ...
        async def signup(emulator): ...
        """,
    )
    assert load(path, None).name == "signup"


def test_of_several_one_must_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "async def a(e): ...\nasync def b(e): ...\n")
    assert "choose with --scenario a or b" in refusal(path)
    assert load(path, "b").name == "b"


def test_a_name_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    path = written(tmp_path, "async def a(e): ...\nasync def b(e): ...\n")
    assert refusal(path, "c").endswith("has no 'c'; there is a, b")


def test_objects_partials_and_decorated_functions_are_scenarios(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        from functools import partial
        import respx

        class Called:
            async def __call__(self, emulator): ...

        async def two(first, emulator): ...

        called = Called()
        bound = partial(two, 1)

        @respx.mock
        async def mocked(emulator, respx_mock): ...
        """,
    )
    for name in ("called", "bound", "mocked"):
        assert load(path, name).name == name


def test_config_and_arguments_are_read(tmp_path: Path) -> None:
    text = 'CONFIG = {"main": "x.py"}\nEMULATOR = {"seed": 3}\nasync def scenario(e): ...\n'
    file = load(written(tmp_path, text), None)
    assert file.config == {"main": "x.py"}
    assert file.arguments == {"seed": 3}


def test_neighbours_can_be_imported_and_the_module_is_registered(tmp_path: Path) -> None:
    written(tmp_path, "VALUE = 7\n", "a_neighbour.py")
    text = """
    from dataclasses import dataclass
    from a_neighbour import VALUE

    @dataclass
    class Thing:
        x: "int"

    async def scenario(emulator): ...
    """
    load(written(tmp_path, text), None)
    assert sys.modules["some_scenario"].VALUE == 7
    assert not list(tmp_path.glob("__pycache__/some_scenario*"))


def test_an_edit_counts_at_once(tmp_path: Path) -> None:
    for number in (1, 2):
        text = f"EMULATOR = {{'seed': {number}}}\nasync def scenario(e): ...\n"
        assert load(written(tmp_path, text), None).arguments == {"seed": number}


def test_a_file_named_like_a_library_does_not_replace_it(tmp_path: Path) -> None:
    import json

    path = tmp_path / "json.py"
    path.write_text("async def scenario(e): ...\n")
    assert load(path, None).name == "scenario"
    assert sys.modules["json"] is json


def test_what_is_below_main_does_not_run(tmp_path: Path) -> None:
    text = "async def scenario(e): ...\nif __name__ == '__main__':\n    raise SystemExit(5)\n"
    assert load(written(tmp_path, text), None).name == "scenario"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no scenario; write `async def scenario(emulator): ...`"),
        ("scenario = 5", "'scenario' in {path} is a int, not a coroutine function"),
        ("def scenario(e): ...", "is a plain function, not a coroutine function"),
        ("async def scenario(e): yield", "is a plain function, not a coroutine function"),
        ("class scenario: ...", "is a class, not a coroutine function"),
        ("async def scenario(): ...", "must take one argument, the emulator, and takes ()"),
        (
            "async def scenario(emulator, respx_mock): ...",
            "takes (emulator, respx_mock). Fixtures are pytest's",
        ),
        ("EMULATOR = 5\nasync def scenario(e): ...", "EMULATOR in {path} is a int"),
        (
            "EMULATOR = {'sede': 5}\nasync def scenario(e): ...",
            "has 'sede', which is no argument of Emulator; those are: start, seed,",
        ),
        (
            "EMULATOR = {'config': 5}\nasync def scenario(e): ...",
            "has 'config': write CONFIG = ... beside it",
        ),
        ("EMULATOR = {'base': 5}\nasync def scenario(e): ...", "has 'base': it is the file's"),
    ],
)
def test_what_will_not_do_is_told(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, text)
    assert expected.replace("{path}", str(path)) in refusal(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    raise ValueError('no')\nf()\n", "ValueError: no"),
        ("import nowhere_to_be_found\n", "ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit('bye')\n", "SystemExit: bye"),
        ("async def scenario(e:\n", "SyntaxError: '(' was never closed"),
        ("x = 1\0\n", "null bytes"),
        ("raise OSError(2, 'gone', 'other.txt')\n", "other.txt"),
    ],
)
def test_an_import_that_fails_shows_the_users_lines_only(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = written(tmp_path, text)
    message = refusal(path)
    assert message.startswith(f"{path} cannot be imported\n\n")
    assert expected in message
    assert "emulator" not in message.replace(str(path), "").replace("async def", "")
    assert "some_scenario.py" in message


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.py") == f"the scenario file {tmp_path}/none.py is not there"
    assert refusal(tmp_path).endswith("is a folder; give a Python file")
