"""What a failed assertion of a scenario file says, and that nothing else of the file changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from emulator.cli.rewriting import helpers, rewrite


def run(source: str) -> dict[str, Any]:
    names = helpers()
    exec(rewrite(source.encode(), "scenario.py"), names)
    return names


def failure(source: str) -> str:
    with pytest.raises(AssertionError) as caught:
        run(source)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("assert 1 + 1 == 3", "assert 2 == 3"),
        ("assert [] != []", "assert [] != []"),
        ("assert 2 < 1", "assert 2 < 1"),
        ("assert 2 <= 1", "assert 2 <= 1"),
        ("assert 1 > 2", "assert 1 > 2"),
        ("assert 1 >= 2", "assert 1 >= 2"),
        ("assert [] is None", "assert [] is None"),
        ("assert None is not None", "assert None is not None"),
        ("assert 'a' in 'xyz'", "assert 'a' in 'xyz'"),
        ("assert 'x' not in 'xyz'", "assert 'x' not in 'xyz'"),
        ("assert not [1]", "assert not [1]"),
        ("assert {}", "assert {}"),
        ("assert False", ""),
        ("assert any([])", ""),
        ("assert 1 < 2 < 2", ""),
        ("assert 1 == 2, 'the own message'", "the own message"),
        ("assert '' or None", "assert None"),
        ("def f():\n  x = 5\n  assert x == 6\nf()", "assert 5 == 6"),
        ("class A:\n  assert 1 == 2", "assert 1 == 2"),
    ],
)
def test_a_failed_assertion_tells_its_values(source: str, text: str) -> None:
    assert failure(source) == text


def test_parts_are_evaluated_once_and_in_order() -> None:
    names = run(
        "calls = []\n"
        "def f(x):\n    calls.append(x)\n    return x\n"
        "assert f(1) == f(1)\n"
        "assert f(2)\n"
        "assert not f(0)\n"
        "assert f(3), f('a message is asked for only when needed')\n"
    )
    assert names["calls"] == [1, 1, 2, 0, 3]


def test_awaits_and_comprehensions_are_possible() -> None:
    names = run(
        "async def one():\n    return 1\n"
        "async def f():\n"
        "    assert await one() == 1\n"
        "    assert [x for x in range(3)] == [0, 1, 2]\n"
        "    assert await one() == 2\n"
    )
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        asyncio.run(names["f"]())


def line_of_failure(code: Any) -> int:
    with pytest.raises(AssertionError) as caught:
        exec(code, helpers())
    return caught.traceback[-1].lineno


@pytest.mark.parametrize(
    "source",
    ["\n\nassert 1 == 2\n", "\n\nassert (\n    1\n    ==\n    2\n)\n", "\nassert not (\n1)"],
)
def test_a_traceback_has_the_line_that_python_shows(source: str) -> None:
    plain = compile(source, "scenario.py", "exec", dont_inherit=True)
    assert line_of_failure(rewrite(source.encode(), "scenario.py")) == line_of_failure(plain)


def test_where_an_object_lies_in_memory_is_left_out() -> None:
    text = failure("class A: pass\nassert A() == 1")
    assert "A object>" in text
    assert "0x" not in text


def test_long_values_and_broken_reprs_are_shortened() -> None:
    assert failure("assert 'x' * 1000 == ''").endswith("... (1,002 characters) == ''")
    broken = "class A:\n  def __repr__(self): raise ValueError\nassert A() == 1"
    assert failure(broken) == "assert <A, whose repr() raises ValueError> == 1"


def test_docstrings_and_future_imports_stay_first() -> None:
    names = run('"""About."""\nfrom __future__ import annotations\nx: Missing = 1\nassert x == 1')
    assert names["__doc__"] == "About."


def test_rewritten_code_does_not_inherit_our_future_imports() -> None:
    names = run("def f(x: int): ...\nassert f.__annotations__ == {'x': int}")
    assert "f" in names


def test_errors_of_syntax_are_python_s() -> None:
    with pytest.raises(SyntaxError) as caught:
        rewrite(b"x = (", "scenario.py")
    assert caught.value.filename == "scenario.py"
