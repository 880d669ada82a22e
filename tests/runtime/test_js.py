"""The globals of the `js` module: the idioms of python-api.md §3."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest
from ffi_worker import worker

from emulator.runtime import js
from emulator.runtime.ffi import create_proxy, to_js
from emulator.runtime.modules import build
from emulator.runtime.not_yet import JS_GLOBALS
from emulator.runtime.pyproxy import jsnull, unwrap
from emulator.values import UNDEFINED, HostObject, JsException


def test_missing_globals_are_import_and_attribute_errors(monkeypatch: Any) -> None:
    module = build("js")
    monkeypatch.setitem(__import__("sys").modules, "js", module)
    with pytest.raises(ImportError) as caught:
        from js import Missing  # type: ignore[import-not-found] # noqa: F401
    assert str(caught.value) == "cannot import name 'Missing' from 'js' (unknown location)"
    for name in ("Missing", "null"):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)
    assert module.undefined is None


@pytest.mark.parametrize("generation", [26, 28, 314])
def test_from_entries_takes_items_arrays_and_maps(generation: int) -> None:
    with worker(generation):
        expected = {"a": 1}
        assert js.Object.fromEntries({"a": 1}.items()).to_py() == expected
        assert js.Object.fromEntries(to_js([["a", 1]])).to_py() == expected
        assert js.Object.fromEntries([["a", 1]]).to_py() == expected
        assert js.Object.fromEntries(js.Map.new([["a", 1]])).to_py() == expected


def test_from_entries_of_to_js_depends_on_the_generation() -> None:
    with worker(28):
        assert js.Object.fromEntries(to_js({"status": 405})).to_py() == {"status": 405}
    with worker(314), pytest.raises(JsException, match="object is not iterable"):
        js.Object.fromEntries(to_js({"status": 405}))


def test_from_entries_of_a_dict_is_an_error() -> None:
    with worker(), pytest.raises(JsException, match="TypeError: Iterator value a is not an entry"):
        js.Object.fromEntries({"a": 1})


def test_object_statics() -> None:
    with worker():
        obj = js.Object.new(a=1, b="x")
        assert js.Object.keys(obj).to_py() == ["a", "b"]
        assert js.Object.values(obj).to_py() == [1, "x"]
        assert js.Object.entries(obj).to_py() == [["a", 1], ["b", "x"]]
        assert js.Object.assign(js.Object.new(), obj).to_py() == {"a": 1, "b": "x"}


@pytest.mark.parametrize(("generation", "text"), [(26, "{}"), (28, '{"a":1}'), (314, '{"a":1}')])
def test_stringify_of_a_python_dict(generation: int, text: str) -> None:
    with worker(generation):
        assert js.JSON.stringify({"a": 1}) == text


def test_json_parses_to_proxies_and_prints_them() -> None:
    with worker():
        parsed = js.JSON.parse('{"a":[1,{"b":null}],"f":1.0}')
        assert (parsed.a[0], parsed.f, parsed.a[1].b) == (1, 1, jsnull)
        assert js.JSON.stringify(parsed) == '{"a":[1,{"b":null}],"f":1}'
        assert js.JSON.stringify(js.Object.new(a=js.Array.of(1)), None, 2) == (
            '{\n  "a": [\n    1\n  ]\n}'
        )
        assert js.JSON.stringify(None) is None
        with pytest.raises(JsException, match="SyntaxError: Unexpected end of JSON input"):
            js.JSON.parse("")


def test_arrays() -> None:
    with worker():
        assert js.Array.from_([1, 2]).to_py() == [1, 2]
        assert getattr(js.Array, "from")("ab").to_py() == ["a", "b"]
        assert js.Array.of(1, 2).to_py() == [1, 2]
        assert len(js.Array.new(3)) == 3
        assert js.Array.isArray(js.Array.new())
        assert not js.Array.isArray([1])
        assert js.Array.of(3, 1).sort().join("-") == "1-3"


def test_classes_need_new() -> None:
    with worker(), pytest.raises(JsException, match="TypeError: Constructor Map requires 'new'"):
        js.Map()


def test_map_and_set() -> None:
    with worker():
        assert js.Map.new([["a", 1]]).to_py() == {"a": 1}
        assert js.Map.new().set("a", 1).size == 1
        assert js.Set.new([1, 1, 2]).to_py() == {1, 2}


def test_dates() -> None:
    with worker():
        date = js.Date.new("2026-01-01")
        assert date.toISOString() == "2026-01-01T00:00:00.000Z"
        assert (date.getFullYear(), date.getMonth(), date.getUTCDay()) == (2026, 0, 4)
        assert js.Date.new(0).getTime() == 0
        assert js.Date.new(2026, 12, 1).toISOString() == "2027-01-01T00:00:00.000Z"
        assert js.Date.new(datetime(2026, 1, 1)).getTime() == date.getTime()
        assert js.JSON.stringify(js.Date.new(0)) == '"1970-01-01T00:00:00.000Z"'
        assert isinstance(js.Date.now(), int)
        assert str(js.Date.new(0)) == (
            "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)"
        )


def test_typed_arrays() -> None:
    with worker():
        assert js.Uint8Array.new(b"ab").to_bytes() == b"ab"
        assert js.Uint8Array.new(to_js(b"ab")).buffer.to_bytes() == b"ab"
        assert js.Uint8Array.new([1, 300, -1]).to_py().tolist() == [1, 44, 255]
        assert len(js.Uint8Array.new(3)) == 3
        assert js.Float64Array.new([1.5]).to_py().tolist() == [1.5]
        assert js.ArrayBuffer.new(3).byteLength == 3
        part = js.Uint8Array.new(b"abcd").subarray(1, 3)
        part[0] = 120
        assert part.to_bytes() == b"xc"
        with pytest.raises(JsException, match="RangeError: start offset of Uint16Array should be"):
            js.Uint16Array.new(js.ArrayBuffer.new(4), 1)


def test_text_coding() -> None:
    with worker():
        assert js.TextEncoder.new().encode("é").to_bytes() == b"\xc3\xa9"
        assert js.TextDecoder.new().decode(to_js(b"\xc3\xa9")) == "é"
        assert js.TextDecoder.new("utf-8", fatal=False).decode(to_js(b"\xff")) == "\ufffd"
        assert (js.btoa("ab"), js.atob("YWI=")) == ("YWI=", "ab")
        assert js.encodeURIComponent("a b/é") == "a%20b%2F%C3%A9"
        assert js.decodeURIComponent("a%20b%2F%C3%A9") == "a b/é"
        with pytest.raises(JsException, match="InvalidCharacterError"):
            js.atob("*")


def test_numbers_and_math() -> None:
    with worker():
        assert (js.parseInt("12px"), js.parseFloat("1.5x"), js.Number("1.5")) == (12, 1.5, 1.5)
        assert (js.Math.floor(1.5), js.Math.round(-0.5), js.Math.max(1, 3)) == (1, 0, 3)
        assert (js.String(5), js.Boolean("")) == ("5", False)
        assert js.parseInt("x") != js.parseInt("x")


def test_errors_are_js_exceptions() -> None:
    with worker():
        error = js.TypeError.new("x")
        assert isinstance(error, JsException)
        assert (error.name, error.message, str(error)) == ("TypeError", "x", "TypeError: x")


def test_structured_clone_copies_and_refuses_functions() -> None:
    with worker():
        original = js.Object.new(a=1, d=js.Date.new(0))
        clone = js.structuredClone(original)
        assert clone != original
        assert clone.d.getTime() == 0
        with pytest.raises(JsException, match="DataCloneError: function atob"):
            js.structuredClone(js.atob)


def test_console_writes_to_the_workers_log() -> None:
    with worker() as host:
        js.console.log("hi", js.Object.new(a=1, l=js.Array.of("x")), None, 1.0, jsnull)
        js.console.error({"a": 1})
        js.console.warn(js.Map.new([["k", 1]]), js.TypeError.new("x"))
        assert host.lines == [
            ("log", "hi { a: 1, l: [ 'x' ] } undefined 1 null"),
            ("error", "{'a': 1}"),
            ("warn", "Map(1) { 'k' => 1 } TypeError: x"),
        ]


def test_random_values_come_from_the_host() -> None:
    with worker():
        assert js.crypto.getRandomValues(js.Uint8Array.new(3)).to_bytes() == b"\0\1\2"
        assert js.crypto.randomUUID() == "00010203-0405-4607-8809-0a0b0c0d0e0f"
        assert 0 <= js.Math.random() < 1
        with pytest.raises(JsException, match="QuotaExceededError"):
            js.crypto.getRandomValues(js.Uint8Array.new(70000))


def test_digest_and_hmac() -> None:
    async def handler() -> None:
        with worker():
            subtle = js.crypto.subtle
            digest = await subtle.digest("SHA-256", to_js(b"x"))
            assert digest.to_bytes() == hashlib.sha256(b"x").digest()
            options = to_js(
                {"name": "HMAC", "hash": "SHA-256"}, dict_converter=js.Object.fromEntries
            )
            usages = to_js(["sign", "verify"])
            key = await subtle.importKey("raw", to_js(b"key"), options, False, usages)
            signature = await subtle.sign("HMAC", key, to_js(b"data"))
            assert signature.to_bytes() == hmac.digest(b"key", b"data", "sha256")
            assert await subtle.verify("HMAC", key, signature, to_js(b"data")) is True
            assert await subtle.verify("HMAC", key, signature, to_js(b"other")) is False

    asyncio.run(handler())


def test_timers_run_on_the_loop() -> None:
    async def handler() -> None:
        with worker():
            seen: list[Any] = []
            js.setTimeout(create_proxy(lambda value: seen.append(value)), 1, "x")
            cancelled = js.setTimeout(create_proxy(lambda: seen.append("no")), 1)
            js.clearTimeout(cancelled)
            js.queueMicrotask(create_proxy(lambda: seen.append("soon")))
            ticks = js.setInterval(create_proxy(lambda: seen.append("tick")), 2)
            await asyncio.sleep(0.02)
            js.clearInterval(ticks)
            assert seen[:2] == ["soon", "x"]
            assert "no" not in seen
            assert seen.count("tick") >= 2

    asyncio.run(handler())


def test_promises() -> None:
    async def five() -> int:
        return 5

    async def bad() -> int:
        raise KeyError("kk")

    async def handler() -> None:
        with worker():
            assert await js.Promise.resolve(5) == 5
            assert await js.Promise.resolve(five()) == 5
            assert (await js.Promise.all(to_js([five(), 2]))).to_py() == [5, 2]
            settled = (await js.Promise.allSettled(to_js([bad(), 2]))).to_py()
            assert [one["status"] for one in settled] == ["rejected", "fulfilled"]
            assert await js.Promise.new(lambda resolve, reject: resolve(7)) == 7
            assert await js.Promise.race(to_js([five()])) == 5
            assert await js.Promise.any(to_js([bad(), five()])) == 5
            with pytest.raises(KeyError):
                await js.Promise.resolve(bad())
            with pytest.raises(JsException, match="TypeError: q"):
                await js.Promise.reject(js.TypeError.new("q"))

    asyncio.run(handler())


def test_registered_classes_can_be_constructed() -> None:
    class Thing(HostObject):
        js_class = "Thing"
        js_members = frozenset({"args"})
        js_statics = frozenset({"make"})

        def __init__(self, first: Any = UNDEFINED, options: Any = UNDEFINED) -> None:
            self.args = [first, options]

        @staticmethod
        def make(value: Any) -> Thing:
            return Thing(value)

    js.register("Thing", Thing)
    try:
        with worker():
            assert js.Thing.new(to_js(b"x"), a=1).args[0].to_bytes() == b"x"
            assert unwrap(js.Thing.new("x", a=1)).args == ["x", {"a": 1}]
            assert js.Thing.make("m", "surplus").args.to_py() == ["m", None]
            assert js.Thing.new().constructor.name == "Thing"
            assert js.globalThis.Thing.name == "Thing"
            with pytest.raises(JsException, match="Constructor Thing requires 'new'"):
                js.Thing()
    finally:
        del js.GLOBALS["Thing"]


def test_a_name_is_here_or_not_yet_but_not_both() -> None:
    assert sorted(JS_GLOBALS & js.GLOBALS.keys()) == []
    assert {"Intl", "Atomics", "WebAssembly"} <= JS_GLOBALS


def test_the_module_js_has_its_classes_though_it_is_imported_first() -> None:
    code = "import emulator.emulator; from js import Response, caches; print(caches.default)"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode == 0, finished.stderr
