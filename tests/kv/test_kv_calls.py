"""What calls on a KV binding give, and what they refuse, in the words of the platform."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from kv_bench import EXTERNAL, FROZEN, PROFILES, got, problem, running
from pyodide.ffi import to_js

from emulator import ConfigError
from emulator.config import KvConfig, load

pytestmark = pytest.mark.asyncio

LARGEST = 25 * 1024 * 1024
START = 1_767_225_600  # where virtual time begins, 2026-01-01


@pytest.mark.parametrize("date", EXTERNAL)
async def test_values_of_every_kind_come_back_with_the_external_sdk(date: str) -> None:
    async def handle(env: Any) -> Any:
        put = [
            await env.KV.put("text", "é"),
            await env.KV.put("json", '{"a": [1]}', {"metadata": {"by": "ada"}}),
            await env.KV.put("bytes", b"\x00\xff", expirationTtl=60),
            await env.KV.put("number", 5),
            await env.KV.put("null", None),
        ]
        stream = await env.KV.get("text", "stream")
        await env.KV.put("copy", stream)
        return {
            "put": put,
            "text": await env.KV.get("text"),
            "json": await env.KV.get("json", "json"),
            "typed": await env.KV.get("json", type="json", cacheTtl=60),
            "bytes": bytes(await env.KV.get("bytes", "arrayBuffer")),
            "number": await env.KV.get("number"),
            "null": await env.KV.get("null"),
            "none": await env.KV.get("none"),
            "copy": await env.KV.get("copy"),
            "with": await env.KV.getWithMetadata("json", "json"),
            "without": await env.KV.getWithMetadata("none"),
            "many": await env.KV.get(["text", "none", "json"]),
            "many_json": await env.KV.getWithMetadata(["json", "none"], "json"),
        }

    assert await got(handle, date=date) == {
        "put": [None] * 5,
        "text": "é",
        "json": {"a": [1]},
        "typed": {"a": [1]},
        "bytes": b"\x00\xff",
        "number": "5",
        "null": "null",
        "none": None,
        "copy": "é",
        "with": {"value": {"a": [1]}, "metadata": {"by": "ada"}, "cacheStatus": None},
        "without": {"value": None, "metadata": None, "cacheStatus": None},
        "many": {"text": "é", "none": None, "json": '{"a": [1]}'},
        "many_json": {"json": {"value": {"a": [1]}, "metadata": {"by": "ada"}}, "none": None},
    }


@pytest.mark.parametrize("date", FROZEN)
async def test_the_frozen_sdk_hands_out_raw_proxies(date: str) -> None:
    async def handle(env: Any) -> Any:
        from js import Object

        options = to_js({"metadata": {"n": 1}}, dict_converter=Object.fromEntries)
        await env.KV.put("a", '{"x": 1}', options)
        await env.KV.put("b", to_js(b"\x01\x02"))
        found = await env.KV.getWithMetadata("a", "json")
        listed = await env.KV.list(prefix="a")
        many = await env.KV.get(to_js(["a", "c"]))
        return [
            found.value.x,
            found.metadata.n,
            [key.name for key in listed.keys],
            listed.list_complete,
            (await env.KV.get("b", "arrayBuffer")).to_bytes(),
            many.get("a"),
            await problem(lambda: env.KV.put("d", b"raw")),
        ]

    assert await got(handle, date=date) == [
        *(1, 1, ["a"], True, b"\x01\x02", '{"x": 1}'),
        "TypeError: KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and "
        "ReadableStreams as values.",
    ]


async def test_what_is_missing_is_none_to_a_test() -> None:
    async with running() as emulator:
        assert await emulator.env.KV.get("a") is None
        assert await emulator.env.KV.put("a", "1") is None
        assert await emulator.env.KV.get("a") == "1"
        assert await emulator.env.KV.delete("a") is None
        assert await emulator.env.KV.delete("a") is None
        assert await emulator.env.KV.get("a") is None


KEY = "x" * 513
TOO_LONG = "failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."
NOT_A_VALUE = (
    "TypeError: KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams "
    "as values."
)
REFUSED: dict[str, tuple[Any, str]] = {
    "no key": (lambda kv: kv.get(""), "TypeError: Key name cannot be empty."),
    "dot": (lambda kv: kv.put(".", "x"), 'TypeError: "." is not allowed as a key name.'),
    "dots": (lambda kv: kv.delete(".."), 'TypeError: ".." is not allowed as a key name.'),
    "long get": (lambda kv: kv.getWithMetadata(KEY), f"Error: KV GET {TOO_LONG}"),
    "long put": (lambda kv: kv.put(KEY, "x"), f"Error: KV PUT {TOO_LONG}"),
    "long delete": (lambda kv: kv.delete(KEY), f"Error: KV DELETE {TOO_LONG}"),
    "long in bytes": (lambda kv: kv.get("é" * 256 + "x"), f"Error: KV GET {TOO_LONG}"),
    "long prefix": (lambda kv: kv.list(prefix=KEY), f"Error: KV GET {TOO_LONG}"),
    "dict": (lambda kv: kv.put("a", {"x": 1}), NOT_A_VALUE),
    "list": (lambda kv: kv.put("a", [1]), NOT_A_VALUE),
    "short ttl": (
        lambda kv: kv.put("a", "x", expirationTtl=59),
        "Error: KV PUT failed: 400 Invalid expiration_ttl of 59. Expiration TTL must be at least "
        "60.",
    ),
    "no ttl": (
        lambda kv: kv.put("a", "x", expirationTtl=0),
        "Error: KV PUT failed: 400 Invalid expiration_ttl of 0. Please specify integer greater "
        "than 0.",
    ),
    "past": (
        lambda kv: kv.put("a", "x", expiration=START),
        f"Error: KV PUT failed: 400 Invalid expiration of {START}. Please specify integer greater "
        "than the current number of seconds since the UNIX epoch.",
    ),
    "soon": (
        lambda kv: kv.put("a", "x", expiration=START + 59),
        f"Error: KV PUT failed: 400 Invalid expiration of {START + 59}. Expiration times must be "
        "at least 60 seconds in the future.",
    ),
    "metadata": (
        lambda kv: kv.put("a", "x", metadata="x" * 1023),
        "Error: KV PUT failed: 413 Metadata length of 1025 exceeds limit of 1024.",
    ),
    "value": (
        lambda kv: kv.put("a", "x" * (LARGEST + 1)),
        f"Error: KV PUT failed: 413 Value length of {LARGEST + 1} exceeds limit of {LARGEST}.",
    ),
    "cache": (
        lambda kv: kv.get("a", cacheTtl=29),
        "Error: KV GET failed: 400 Invalid cache_ttl of 29. Cache TTL must be at least 30.",
    ),
    "limit": (
        lambda kv: kv.list(limit=1001),
        "Error: KV GET failed: 400 Invalid key_count_limit of 1001. Please specify an integer less "
        "than 1000.",
    ),
    "cursor": (lambda kv: kv.list(cursor="%"), "Error: KV GET failed: 400 invalid cursor"),
    "empty cursor": (lambda kv: kv.list(cursor=""), "Error: KV GET failed: 400 invalid cursor"),
    "type": (
        lambda kv: kv.get("there", "blob"),
        'TypeError: Unknown response type. Possible types are "text", "arrayBuffer", "json", and '
        '"stream".',
    ),
    "many types": (
        lambda kv: kv.get(["a"], "arrayBuffer"),
        'Error: KV GET_BULK failed: 400 "arrayBuffer" is not a valid type. Use "json" or "text"',
    ),
    "too many": (
        lambda kv: kv.get([str(number) for number in range(101)]),
        "Error: KV GET_BULK failed: 400 You can request a maximum of 100 keys",
    ),
    "none": (
        lambda kv: kv.get([]),
        "Error: KV GET_BULK failed: 400 You must request a minimum of 1 key",
    ),
    "no json": (
        lambda kv: kv.get(["a", "there"], "json"),
        "Error: KV GET_BULK failed: 400 At least one of the requested keys corresponds to a "
        "non-json value",
    ),
    "one empty": (
        lambda kv: kv.get(["a", ""]),
        "Error: KV GET_BULK failed: 400 Key names must not be empty",
    ),
    "one dot": (
        lambda kv: kv.get(["."]),
        'Error: KV GET_BULK failed: 400 Illegal key name ".". Please use a different name.',
    ),
    "range": (
        lambda kv: kv.put("a", "x", expirationTtl=2**31),
        "TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive).",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_refused_and_how(name: str) -> None:
    call, text = REFUSED[name]

    async def handle(env: Any) -> Any:
        await env.KV.put("there", "text")
        return await problem(lambda: call(env.KV)), await env.KV.get("a")

    assert await got(handle) == (text, None)


async def test_what_is_just_allowed() -> None:
    async def handle(env: Any) -> Any:
        key = "é" * 256
        await env.KV.put(key, "x", expiration=START + 60, metadata="x" * 1022)
        await env.KV.put("large", "x" * LARGEST)
        # none of these has a type that is looked at, or there is nothing
        return [
            await env.KV.get(key, cacheTtl=30),
            len(await env.KV.get("large")),
            await env.KV.get("nothing", "blob"),
            len((await env.KV.list(limit=1000))["keys"]),
            len((await env.KV.list(limit=0))["keys"]),
            len((await env.KV.list({"prefix": None, "cursor": None}))["keys"]),
        ]

    assert await got(handle) == ["x", LARGEST, None, 2, 2, 2]


async def test_an_empty_cursor_is_none_to_the_local_service() -> None:
    async def handle(env: Any) -> Any:
        await env.KV.put("a", "x")
        return len((await env.KV.list(cursor=""))["keys"])

    assert await got(handle, profile="miniflare") == 1


async def test_too_much_at_once_is_refused() -> None:
    async def handle(env: Any) -> Any:
        await env.KV.put("a", "x" * LARGEST)
        await env.KV.put("b", "x")
        return await problem(lambda: env.KV.get(["a", "b"])), len(await env.KV.get(["a"]))

    text = "Error: KV GET_BULK failed: 413 Total size of request exceeds the limit of 25MB"
    assert await got(handle) == (text, 1)


async def test_keys_that_are_numbers_are_left_out_of_a_map() -> None:
    async def handle(env: Any) -> Any:
        for key in ("1", "01", "a"):
            await env.KV.put(key, key)
        return await env.KV.get(["1", "01", "a", "4294967295"]), await env.KV.get("1")

    assert await got(handle) == ({"01": "01", "a": "a", "4294967295": None}, "1")


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_list_has_pages(profile: str) -> None:
    async def handle(env: Any) -> Any:
        for key in ("b:2", "a:1", "b:1", "b:\U0001f600", "b:\uff5e", "c"):
            await env.KV.put(key, "x")
        await env.KV.put("b:3", "x", {"expiration": START + 100, "metadata": {"n": 1}})
        first = await env.KV.list({"prefix": "b:", "limit": 2})
        second = await env.KV.list({"prefix": "b:", "limit": 3, "cursor": first["cursor"]})
        cursor = first.pop("cursor")
        return isinstance(cursor, str), first, second

    is_text, first, second = await got(handle, profile=profile)
    assert is_text
    keys = [{"name": "b:1"}, {"name": "b:2"}]
    assert first == {"keys": keys, "list_complete": False, "cacheStatus": None}
    assert second == {
        "keys": [
            {"name": "b:3", "expiration": START + 100, "metadata": {"n": 1}},
            {"name": "b:\uff5e"},
            {"name": "b:\U0001f600"},
        ],
        "list_complete": True,
        "cacheStatus": None,
    }


async def test_entries_expire_in_virtual_time() -> None:
    async with running() as emulator:
        await emulator.env.KV.put("ttl", "x", expirationTtl=60)
        await emulator.env.KV.put("both", "x", expirationTtl=90, expiration=START + 600)
        await emulator.env.KV.put("ever", "x", expirationTtl=60)
        await emulator.env.KV.put("ever", "y")
        await emulator.advance("59.9 s")
        assert await emulator.env.KV.get("ttl") == "x"
        await emulator.advance("100 ms")
        assert await emulator.env.KV.get("ttl") is None
        assert [key["name"] for key in (await emulator.env.KV.list())["keys"]] == ["both", "ever"]
        await emulator.advance("30 s")
        assert await emulator.env.KV.get("both") is None
        assert await emulator.env.KV.get("ever") == "y"


async def test_the_trace_has_calls_without_values() -> None:
    async def handle(env: Any) -> Any:
        await env.KV.put("a", "secret")
        await env.KV.get(["a", "b"])
        await env.KV.list(prefix="a")
        await problem(lambda: env.KV.list(limit=5000))
        return "ok"

    async with running(handle) as emulator:
        await emulator.fetch("/")
        by = next(event.data["by"] for event in emulator.trace if event.kind == "kv")
        assert [event.data for event in emulator.trace if event.kind == "kv"] == [
            {"call": "put", "key": "a", "by": by},
            {"call": "get", "keys": ["a", "b"], "by": by},
            {"call": "list", "prefix": "a", "by": by},
            {
                "call": "list",
                "prefix": "",
                "by": by,
                "error": "KV GET failed: 400 Invalid key_count_limit of 5000. Please specify an "
                "integer less than 1000.",
            },
        ]
        assert "secret" not in emulator.trace.render()


# -- config ----------------------------------------------------------------------------------------


async def test_bindings_with_one_id_share_a_namespace() -> None:
    namespaces = [
        {"binding": "A", "id": "one", "preview_id": "two"},
        {"binding": "B", "id": "one"},
        {"binding": "C"},
    ]

    async def handle(env: Any) -> Any:
        await env.A.put("key", "x")
        return [await env.A.get("key"), await env.B.get("key"), await env.C.get("key")]

    async with running(handle, config={"kv_namespaces": namespaces}) as emulator:
        assert (await emulator.fetch("/")).text == "['x', 'x', None]"
    found = load({"main": pytest, "kv_namespaces": namespaces}).workers[0].namespaces
    assert found[0] == KvConfig(binding="A", id="one")
    assert found[2] == KvConfig(binding="C", id="C")


WRONG: dict[str, tuple[Any, str]] = {
    "no binding": ({"id": "x"}, 'bindings should have a string "binding" field but got {"id":"x"}'),
    "empty id": ({"binding": "KV", "id": ""}, 'bindings should have a string "id" field but got'),
    "number": ({"binding": "KV", "id": 5}, 'bindings should have a string "id" field but got'),
    "preview": (
        {"binding": "KV", "preview_id": 5},
        'bindings should, optionally, have a string "preview_id" field but got',
    ),
    "remote": ({"binding": "KV", "remote": "yes"}, "must be true or false"),
    "text": ("KV", 'kv_namespaces[0] is "KV"'),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_namespace_is_refused_in_wranglers_words(name: str) -> None:
    item, text = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        load({"main": pytest, "kv_namespaces": [item]})
    assert text in str(caught.value)
    assert "kv_namespaces[0]" in str(caught.value)


async def test_a_remote_namespace_is_emulated_and_that_is_a_finding() -> None:
    namespaces = [{"binding": "KV", "remote": True}]
    async with running(config={"kv_namespaces": namespaces}) as emulator:
        assert [(f.code, f.message) for f in emulator.findings] == [
            (
                "ignored_option",
                'The "remote" field in "kv_namespaces[0]" has no effect: every namespace is '
                "emulated.",
            )
        ]


def printed(code: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


async def test_no_module_of_the_binding_is_loaded_for_a_worker_without_one() -> None:
    code = (
        "import sys; from emulator import Emulator\n"
        "from workers import WorkerEntrypoint\n"
        "class W(WorkerEntrypoint): pass\n"
        "with Emulator({'main': W%s}): print('emulator.kv.bindings' in sys.modules)"
    )
    assert printed(code % "") == "False\n"
    assert printed(code % ", 'kv_namespaces': [{'binding': 'KV'}]") == "True\n"
