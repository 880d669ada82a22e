"""The built-in classes of JavaScript that `from js import …` gives.

What real Pyodide shows of them is in tests/conformance/pyodide; here are the newer members, which
its V8 does not have, the names of a whole runtime, and what is refused in words.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import js
import pytest
from ffi_worker import worker
from pyodide.ffi import JsException, create_proxy, to_js

from emulator.runtime import js_missing
from emulator.runtime.js_prototypes import GETTERS, METHODS
from emulator.values import from_v8, to_v8

# What workerd 1.20260426 has: Object.getOwnPropertyNames of constructors and prototypes.
_NAMES = Path(__file__).with_name("built_in_names.txt").read_text(encoding="utf-8").splitlines()
OWNERS = {line.partition(": ")[0]: line.partition(": ")[2].split() for line in _NAMES}
# Classes whose objects are no plain built-ins here: their proxies have classes of their own.
_OTHERWISE = frozenset(
    {
        *("AggregateError", "Error", "TypeError", "BigInt", "Promise"),
        *("FinalizationRegistry", "WeakMap", "WeakRef", "WeakSet"),
    }
)


def error_of(action: Any) -> str:
    with pytest.raises(JsException) as caught:
        action()
    return f"{caught.value.name}: {caught.value.message}"


@pytest.mark.parametrize("owner", [name for name in OWNERS if not name.endswith(".prototype")])
def test_every_static_of_production_is_there_or_refused_in_words(owner: str) -> None:
    with worker(314):
        held = js.Uint8Array if owner == "TypedArray" else getattr(js, owner)
        for name in OWNERS[owner]:
            if not hasattr(held, name):
                with pytest.raises(AttributeError, match="workers-emulator does not provide"):
                    getattr(held, name)


@pytest.mark.parametrize(
    "owner",
    [name for name in OWNERS if name.endswith(".prototype") and name[:-10] not in _OTHERWISE],
)
def test_every_method_of_production_is_there_or_refused_in_words(owner: str) -> None:
    name = owner.removesuffix(".prototype")
    if name in ("Float32Array", "BigInt64Array"):
        name = "TypedArray"
    known = {*METHODS.get(name, {}), *GETTERS.get(name, {}), *METHODS["Object"], "constructor"}
    # Pyodide hides an array's `keys`; what functions have of old, no Worker may use.
    hidden = {"keys"} if name in ("Array", "TypedArray", "Uint8Array") else set[str]()
    hidden |= {"arguments", "caller"} if name == "Function" else set()
    for member in {*OWNERS[owner]} - known - hidden:
        told = str(js_missing.absent(None, name, member))
        assert "workers-emulator does not provide" in told, member


def test_what_is_missing_says_so_and_is_not_there() -> None:
    with worker(314):
        buffer = js.ArrayBuffer.new(4)
        assert not hasattr(buffer, "resize")
        with pytest.raises(
            AttributeError, match=r"ArrayBuffer\.prototype\.transfer` yet, although"
        ):
            buffer.transfer()
        with pytest.raises(AttributeError, match=r"js\.JSON\.rawJSON"):
            js.JSON.rawJSON("1")
        with pytest.raises(AttributeError, match=r"^nope$"):
            _ = js.Math.nope
        with pytest.raises(AttributeError, match=r"js\.Intl"):
            js.Date.new(0).toLocaleString("de-DE")
        with pytest.raises(AttributeError, match="never frozen"):
            js.Object.isFrozen(js.Object.new())
        with pytest.raises(AttributeError, match="not writable, enumerable"):
            js.Object.defineProperty(js.Object.new(), "x", value=1)


def test_math_of_newer_runtimes() -> None:
    with worker(314):
        assert js.Math.sumPrecise(to_js([1e308, 1e308, -1e308])) == 1e308
        assert js.Math.sumPrecise(to_js([0.1] * 10)) == 1.0
        assert js.Math.sumPrecise(to_js([math.inf, 1])) == math.inf
        assert math.isnan(js.Math.sumPrecise(to_js([math.inf, -math.inf])))
        assert js.Math.f16round(1.337) == 1.3369140625
        assert js.Math.f16round(65520) == math.inf
        assert js.Math.f16round(65519) == 65504
        assert error_of(lambda: js.Math.sumPrecise(to_js(["1"]))).startswith("TypeError")


def test_collections_of_newer_runtimes() -> None:
    with worker(314):
        left, right = js.Set.new(to_js([1, 2, 3])), js.Set.new(to_js([3, 4]))
        assert list(left.union(right)) == [1, 2, 3, 4]
        assert list(left.intersection(right)) == [3]
        assert list(left.difference(right)) == [1, 2]
        assert list(left.symmetricDifference(right)) == [1, 2, 4]
        assert js.Set.new(to_js([1])).isSubsetOf(left)
        assert left.isSupersetOf(js.Set.new(to_js([1])))
        assert not left.isSupersetOf(right)
        assert not left.isDisjointFrom(right)
        by_parity = create_proxy(lambda value, index: "odd" if value % 2 else "even")
        assert js.JSON.stringify(js.Object.groupBy(to_js([1, 2, 3]), by_parity)) == (
            '{"odd":[1,3],"even":[2]}'
        )
        assert list(js.Map.groupBy(to_js([1, 2, 3]), by_parity).get("odd")) == [1, 3]
        held = js.Map.new()
        assert held.getOrInsert("a", 1) == 1
        assert held.getOrInsert("a", 2) == 1
        assert held.getOrInsertComputed("b", create_proxy(lambda key: key * 2)) == "bb"


def test_bytes_as_text() -> None:
    with worker(314):
        data = js.Uint8Array.new(to_js([251, 255, 0]))
        assert data.toBase64() == "+/8A"
        assert data.toBase64(alphabet="base64url") == "-_8A"
        assert js.Uint8Array.new(to_js([1])).toBase64(omitPadding=True) == "AQ"
        assert data.toHex() == "fbff00"
        assert bytes(js.Uint8Array.fromBase64("+/8A").to_py()) == b"\xfb\xff\0"
        assert bytes(js.Uint8Array.fromHex("fbFF").to_py()) == b"\xfb\xff"
        assert error_of(lambda: js.Uint8Array.fromHex("abc")).startswith("SyntaxError")
        assert error_of(lambda: js.Uint8Array.fromBase64("*")).startswith("SyntaxError")
        assert js.Uint8Array.new(4).setFromHex("0102").written == 2


@pytest.mark.asyncio
async def test_promises_of_newer_runtimes() -> None:
    with worker(314):
        made = js.Promise.withResolvers()
        made.resolve(5)
        assert await made.promise == 5
        assert await getattr(js.Promise, "try")(create_proxy(lambda value: value + 1), 2) == 3
        assert list(await js.Array.fromAsync(to_js([1, 2]))) == [1, 2]


def test_floats_of_sixteen_bits_in_a_view() -> None:
    with worker(314):
        view = js.DataView.new(js.ArrayBuffer.new(4))
        view.setFloat16(0, 1.5)
        view.setFloat16(2, 1e6, True)
        assert view.getFloat16(0) == 1.5
        assert view.getFloat16(2, True) == math.inf


def test_a_reviver_is_told_of_the_source() -> None:
    """V8 has passed a third argument since 11.4, and Python functions take what they name."""
    with worker(314):
        sources: list[Any] = []

        def revive(key: str, value: Any, context: Any) -> Any:
            sources.append(getattr(context, "source", None))
            return value

        assert js.JSON.stringify(js.JSON.parse("[1.0,2]", create_proxy(revive))) == "[1,2]"
        assert sources == ["1.0", "2", None]


def test_a_date_that_was_moved_is_what_it_is_now_everywhere() -> None:
    with worker(314):
        date = js.Date.new(0)
        date.setUTCDate(3)
        held = date._js_unwrap()
        assert from_v8(to_v8(held)).day == 3
        assert js.JSON.stringify(date) == '"1970-01-03T00:00:00.000Z"'
        assert js.Number(date) == 2 * 86_400_000
        date.setTime(math.nan)
        assert js.JSON.stringify(date) == "null"
        assert str(js.structuredClone(date)) == "Invalid Date"


def test_a_date_of_the_platform_can_be_moved() -> None:
    with worker(314):
        date = js.structuredClone(js.Date.new(0))
        assert date.setUTCHours(5) == 5 * 3_600_000
        assert date.toISOString() == "1970-01-01T05:00:00.000Z"


def test_american_english_is_a_workers_locale() -> None:
    with worker(314):
        date = js.Date.new(js.Date.UTC(2026, 0, 2, 13, 4, 5))
        assert date.toLocaleString() == "1/2/2026, 1:04:05 PM"
        assert date.toLocaleDateString("en-US") == "1/2/2026"
        assert js.Date.new(0).toLocaleTimeString() == "12:00:00 AM"
