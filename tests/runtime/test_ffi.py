"""`pyodide.ffi`: conversions to JavaScript in the three generations of Pyodide."""

from __future__ import annotations

import array
import json
from typing import TYPE_CHECKING, Any

import pytest
from ffi_worker import worker
from worker_files import handler

from emulator import Emulator
from emulator.runtime import ffi, js
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import JsNull, PyProxy, jsnull, unwrap
from emulator.values import JsException, LiteralMap, TypedArray, class_of

if TYPE_CHECKING:
    from pathlib import Path


def js_value(value: Any) -> Any:
    return unwrap(value)


@pytest.mark.parametrize(("generation", "name"), [(28, "LiteralMap"), (314, "Object")])
def test_a_dict_has_its_keys_as_properties(generation: int, name: str) -> None:
    with worker(generation):
        proxy = ffi.to_js({"a": {"b": 1}})
        assert class_of(js_value(proxy)) == name
        assert js.JSON.stringify(proxy) == '{"a":{"b":1}}'
        assert proxy.a.b == 1


def test_a_dict_was_a_map_without_properties_in_pyodide_0_26() -> None:
    """Recording py_ffi_probe_workerd2024: such a body arrives empty."""
    with worker(26):
        proxy = ffi.to_js({"a": {"b": 1}})
        assert class_of(js_value(proxy)) == "Map"
        assert js.JSON.stringify(proxy) == "{}"
        assert proxy.get("a").get("b") == 1
        assert not hasattr(proxy, "a")


@pytest.mark.parametrize("generation", [26, 28, 314])
def test_from_entries_makes_plain_objects_everywhere(generation: int) -> None:
    with worker(generation):
        proxy = ffi.to_js({"a": {"b": [1]}, 2: 3}, dict_converter=js.Object.fromEntries)
        assert js_value(proxy) == {"a": {"b": [1]}, "2": 3}


def test_another_dict_converter_gets_pairs() -> None:
    with worker():
        found = ffi.to_js({"a": 1}, dict_converter=lambda pairs: pairs)
        assert found.to_py() == [["a", 1]]


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        ((1, 2), "Array", "[1,2]"),
        ([1, "a"], "Array", '[1,"a"]'),
        ({1}, "Set", "{}"),
        (b"ab", "Uint8Array", '{"0":97,"1":98}'),
        (bytearray(b"a"), "Uint8Array", '{"0":97}'),
        (memoryview(b"a"), "Uint8Array", '{"0":97}'),
        (array.array("d", [1.0]), "Float64Array", '{"0":1}'),
    ],
)
def test_containers_convert(value: Any, name: str, text: str) -> None:
    with worker():
        proxy = ffi.to_js(value)
        assert class_of(js_value(proxy)) == name
        assert js.JSON.stringify(proxy) == text


@pytest.mark.parametrize("value", [None, "a", 1, 1.0, True, jsnull, 2**60])
def test_immutable_values_stay(value: Any) -> None:
    with worker():
        assert ffi.to_js(value) is value


def test_other_objects_become_proxies_of_them() -> None:
    with worker():
        thing = object()
        proxy = ffi.to_js(thing)
        assert isinstance(proxy, ffi.JsDoubleProxy)
        assert proxy.unwrap() is thing
        with pytest.raises(ffi.ConversionError, match="No conversion known for"):
            ffi.to_js([thing], create_pyproxies=False)


def test_the_default_converter_is_asked_for_other_objects() -> None:
    with worker():
        found = ffi.to_js(
            [{1, 2}.__class__], default_converter=lambda obj, convert, cache: convert("x")
        )
        assert found.to_py() == ["x"]


def test_depth_leaves_inner_containers_alone() -> None:
    with worker():
        inner = [1]
        assert ffi.to_js([inner], depth=1)[0] is inner


def test_keys_that_are_no_property_names_are_an_error() -> None:
    with worker(), pytest.raises(ffi.ConversionError, match=r"^Cannot use \(1, 2\) as a key for a"):
        ffi.to_js({(1, 2): 3})


def test_cycles_and_shared_objects_are_kept() -> None:
    with worker():
        ring: list[Any] = []
        ring.append(ring)
        proxy = ffi.to_js(ring)
        assert proxy[0] == proxy
        assert str(proxy) == ""


def test_jsnull_is_false_but_not_none() -> None:
    assert not jsnull
    assert jsnull is not None
    assert jsnull != None  # noqa: E711 - the point
    assert JsNull() is jsnull
    assert repr(jsnull) == "jsnull"
    assert jsnull.typeof == "object"


def test_jsnull_is_null_in_json_whatever_the_encoder_knows(tmp_path: Path) -> None:
    """As in Pyodide 0.28.2 and 314.0.6; outside a simulation nothing is different."""
    body = """
        from pyodide.ffi import jsnull

        class Encoder(json.JSONEncoder):
            def default(self, value):
                return str(value)

        texts = [
            json.dumps(jsnull),
            json.dumps({"a": [jsnull, 1]}),
            json.dumps([jsnull], indent=2),
            json.dumps([jsnull, {1}], default=str),
            json.dumps([jsnull, {1}], cls=Encoder),
            "".join(json.JSONEncoder().iterencode([jsnull])),
        ]
        return Response.json({"texts": texts, "null": jsnull})
    """
    with Emulator(handler(tmp_path, body)) as emulator:
        answer = emulator.run(emulator.fetch("/")).json()
    assert answer == {
        "texts": [
            "null",
            '{"a": [null, 1]}',
            "[\n  null\n]",
            '[null, "{1}"]',
            '[null, "{1}"]',
            "[null]",
        ],
        "null": None,
    }
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(jsnull)


@pytest.mark.parametrize(("name", "first"), [("jsnull", 28), ("JsNull", 28), ("JsBigInt", 314)])
@pytest.mark.parametrize("generation", [26, 28, 314])
def test_names_appear_with_their_generation(name: str, first: int, generation: int) -> None:
    with worker(generation):
        if generation >= first:
            assert ffi.lookup_name(name) is not None
        else:
            with pytest.raises(AttributeError, match=name):
                ffi.lookup_name(name)


def test_unknown_names_say_that_the_emulator_lacks_them() -> None:
    with pytest.raises(
        AttributeError, match="has no attribute 'register_js_module' in the emulator; it has:"
    ):
        ffi.register_js_module  # noqa: B018


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ([1], {"JsArray", "JsIterable"}),
        ({}, set()),
        (b"a", {"JsArray", "JsTypedArray", "JsBuffer", "JsIterable"}),
        (LiteralMap(), {"JsMap", "JsMutableMap", "JsIterable"}),
        ({1}, {"JsIterable"}),
    ],
)
def test_isinstance_looks_at_the_value(value: Any, kinds: set[str]) -> None:
    with worker():
        names = {"JsArray", "JsTypedArray", "JsBuffer", "JsMap", "JsMutableMap", "JsIterable"}
        names |= {"JsCallable", "JsDoubleProxy", "JsOnceCallable", "JsPromise"}
        assert {name for name in names if isinstance(wrap(value), getattr(ffi, name))} == kinds


def test_create_proxy_holds_the_object_until_destroyed() -> None:
    with worker():
        proxy = ffi.create_proxy({"a": 1})
        assert proxy.unwrap() == {"a": 1}
        assert proxy.a == 1
        assert proxy.get("a") == 1
        proxy.destroy()
        with pytest.raises(JsException, match=r"^Error: Object has already been destroyed|^Object"):
            proxy.a  # noqa: B018


def test_destroy_proxies_destroys_each() -> None:
    with worker():
        proxies = js.Array.new()
        found = ffi.to_js([object()], pyproxies=proxies)
        assert len(proxies) == 1
        ffi.destroy_proxies(proxies)
        assert found is not None


def test_a_once_callable_is_called_once() -> None:
    with worker():
        once = ffi.create_once_callable(lambda value: value + 1)
        assert once(1) == 2
        with pytest.raises(JsException, match="OnceProxy can only be called once"):
            once(1)


def test_python_objects_come_back_as_they_are() -> None:
    with worker():
        thing: list[Any] = []
        assert js.Array.of(ffi.create_proxy(thing))[0] is thing
        assert wrap(PyProxy(thing)) is thing


def test_a_typed_array_copies_the_bytes() -> None:
    with worker():
        source = bytearray(b"ab")
        proxy = ffi.to_js(source)
        source[0] = 0
        assert proxy.to_bytes() == b"ab"
        assert isinstance(js_value(proxy), TypedArray)


def test_big_ints_keep_their_kind_on_314() -> None:
    with worker(314):
        found = js.BigInt(5)
        assert type(found).__name__ == "JsBigInt"
        with pytest.raises(JsException, match="serialize a BigInt"):
            js.JSON.stringify(found)
    with worker(28):
        assert type(js.BigInt(5)) is int
        assert json.dumps(js.BigInt(5)) == "5"
