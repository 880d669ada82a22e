"""What `bind` takes, and how it arrives in SQLite."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pytest
from d1_bench import EXTERNAL, FROZEN, got, problem

from emulator.d1.parameters import bound, sent
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Function,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    Symbol,
    TypedArray,
)

SELECT = "SELECT ? AS v, typeof(?1) AS t"
U16 = TypedArray("Uint16Array", ArrayBuffer(b"\x01\x00\x2c\x01"))
F32 = TypedArray("Float32Array", ArrayBuffer(b"\x00\x00\xc0\x3f\x00\x00\x00\x40"))
VIEW = TypedArray("DataView", ArrayBuffer(b"\x00\x00"))
NOT_TAKEN = "Error: D1_TYPE_ERROR: Type '{}' not supported for value '{}'"

# A JavaScript value and what `sent(bound(value))` is: seen in miniflare with workerd 1.20260730.1.
TAKEN: list[tuple[Any, Any]] = [
    (None, None),
    (True, 1.0),
    (False, 0.0),
    (1, 1.0),
    (1.5, 1.5),
    (float("nan"), None),
    (float("inf"), None),
    (float("-inf"), None),
    ("s", "s"),
    ([], b""),
    ([1, 2, 255], b"\x01\x02\xff"),
    ([1.5], b"\x01"),
    (b"\x01\x02", b"\x01\x02"),
    (ArrayBuffer(b"\x01\x02"), b"\x01\x02"),
    (U16, b"\x01\x2c"),
    (F32, b"\x01\x02"),
    (VIEW, b""),
]
REFUSED: list[tuple[Any, str, str]] = [
    (UNDEFINED, "undefined", "undefined"),
    (BigInt(10), "bigint", "10"),
    ({"a": 1}, "object", "[object Object]"),
    ([1, 2, 300], "object", "1,2,300"),
    (["a"], "object", "a"),
    ([-1], "object", "-1"),
    ([True], "object", "true"),
    (Function(lambda: 1, source="()=>1"), "function", "()=>1"),
    (
        datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        "object",
        "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)",
    ),
    (JsMap([(1, 2)]), "object", "[object Map]"),
    (JsSet([1]), "object", "[object Set]"),
    (JsException("Error", "x"), "object", "Error: x"),
    (RegExp("a"), "object", "/a/"),
]


@pytest.mark.parametrize(("value", "arrives"), TAKEN)
def test_a_value_arrives_as_json_carries_it(value: Any, arrives: Any) -> None:
    assert sent(bound(value)) == arrives
    assert type(sent(bound(value))) is type(arrives)


@pytest.mark.parametrize(("value", "kind", "shown"), REFUSED)
def test_a_value_that_is_not_taken_is_refused_at_once(value: Any, kind: str, shown: str) -> None:
    with pytest.raises(JsException) as caught:
        bound(value)
    assert str(caught.value) == NOT_TAKEN.format(kind, shown)
    assert str(caught.value.cause) == NOT_TAKEN.format(kind, shown).replace("D1_TYPE_ERROR: ", "")


def test_what_javascript_itself_cannot_print_or_send_is_its_error() -> None:
    with pytest.raises(JsException, match="TypeError: Cannot convert a Symbol value to a string"):
        bound(Symbol("x"))
    big = bound(TypedArray("BigInt64Array", ArrayBuffer(b"\x05" + bytes(7))))
    with pytest.raises(JsException, match="TypeError: Do not know how to serialize a BigInt"):
        sent(big)


# -- from Python -----------------------------------------------------------------------------------

FROM_PYTHON: list[tuple[str, Any, Any]] = [
    ("None", {"v": None, "t": "null"}, None),
    ("True", {"v": 1, "t": "real"}, {"v": 1, "t": "real"}),
    ("1", {"v": 1, "t": "real"}, {"v": 1, "t": "real"}),
    ("1.5", {"v": 1.5, "t": "real"}, {"v": 1.5, "t": "real"}),
    ("'s'", {"v": "s", "t": "text"}, {"v": "s", "t": "text"}),
    ("b'ab'", {"v": [97, 98], "t": "blob"}, None),
    ("memoryview(b'ab')", {"v": [97, 98], "t": "blob"}, None),
    ("[97, 98]", {"v": [97, 98], "t": "blob"}, None),
    ("to_js([97, 98])", {"v": [97, 98], "t": "blob"}, {"v": [97, 98], "t": "blob"}),
    ("to_js(b'ab')", {"v": [97, 98], "t": "blob"}, {"v": [97, 98], "t": "blob"}),
]
NAMES = {"decimal": decimal, "uuid": uuid, "datetime": datetime}


def evaluate(text: str) -> Any:
    from pyodide.ffi import to_js

    return eval(text, {"to_js": to_js, **NAMES})


@pytest.mark.asyncio
@pytest.mark.parametrize("date", EXTERNAL)
@pytest.mark.parametrize(("text", "external", "frozen"), FROM_PYTHON)
async def test_python_values_through_the_external_sdk(
    text: str, external: Any, frozen: Any, date: str
) -> None:
    async def handle(env: Any) -> Any:
        return await env.DB.prepare(SELECT).bind(evaluate(text)).first()

    assert await got(handle, date=date) == external


@pytest.mark.asyncio
@pytest.mark.parametrize("date", FROZEN)
@pytest.mark.parametrize(("text", "external", "frozen"), FROM_PYTHON)
async def test_python_values_through_the_frozen_sdk(
    text: str, external: Any, frozen: Any, date: str
) -> None:
    """Seen in Pyodide 0.26.0 and 0.28.2: None is undefined, containers are proxies of Python's."""

    async def handle(env: Any) -> Any:
        if frozen is None:
            return await problem(lambda: env.DB.prepare(SELECT).bind(evaluate(text)))
        return (await env.DB.prepare(SELECT).bind(evaluate(text)).first()).to_py()

    shown = "undefined" if text == "None" else str(evaluate(text))
    kind = "undefined" if text == "None" else "object"
    found = await got(handle, date=date)
    if "memoryview" in text:
        assert found.startswith(NOT_TAKEN.format(kind, "<memory at")[:-1])
    else:
        assert found == (NOT_TAKEN.format(kind, shown) if frozen is None else frozen)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("2**60", "bigint", str(2**60)),
        ("{'a': 1}", "object", "[object Object]"),
        ("decimal.Decimal('1.5')", "object", "1.5"),
        ("uuid.UUID(int=5)", "object", "00000000-0000-0000-0000-000000000005"),
        (
            "datetime.datetime(2026, 1, 1)",
            "object",
            "Thu Jan 01 2026 00:00:00 GMT+0000 (Coordinated Universal Time)",
        ),
        ("datetime.date(2026, 1, 1)", "object", "2026-01-01"),
        ("{1, 2}", "object", "[object Set]"),
        ("[1, 300]", "object", "1,300"),
    ],
)
async def test_python_values_that_are_not_taken(text: str, kind: str, shown: str) -> None:
    async def handle(env: Any) -> Any:
        return await problem(lambda: env.DB.prepare(SELECT).bind(evaluate(text)))

    assert await got(handle) == NOT_TAKEN.format(kind, shown)


@pytest.mark.asyncio
async def test_a_tuple_never_leaves_python() -> None:
    async def handle(env: Any) -> Any:
        return await problem(lambda: env.DB.prepare(SELECT).bind((1, 2)))

    assert await got(handle) == "TypeError: <class 'tuple'> cannot be sent over RPC."


@pytest.mark.asyncio
async def test_a_number_in_a_text_column_has_a_point_as_in_production() -> None:
    """Every number is a double on its way: the trap that `str(id)` avoids."""

    async def handle(env: Any) -> Any:
        await env.DB.prepare("INSERT INTO t VALUES (?, ?, ?)").bind(1, 1, 1).run()
        return await env.DB.prepare("SELECT a, typeof(b) AS b, typeof(c) AS c FROM t").first()

    row = await got(handle, "CREATE TABLE t (a TEXT, b INTEGER, c)")
    assert row == {"a": "1.0", "b": "integer", "c": "real"}


@pytest.mark.asyncio
@pytest.mark.parametrize("count", [100, 101])
async def test_a_hundred_parameters_are_the_most(count: int) -> None:
    async def handle(env: Any) -> Any:
        places = ",".join("?" * count)
        statement = env.DB.prepare(f"SELECT 1 AS a WHERE 1 IN ({places})").bind(*range(count))
        return await problem(statement.first)

    refused = "" if count == 100 else "Error: D1_ERROR: too many SQL variables at offset 226: "
    assert await got(handle) == refused + ("" if count == 100 else "SQLITE_ERROR")
