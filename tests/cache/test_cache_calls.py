"""What calls on a cache give, and what they refuse, in the words of the platform."""

from __future__ import annotations

from typing import Any

import pytest
from cache_bench import DATES, PROFILES, URL, got, problem, request, response, running

pytestmark = pytest.mark.asyncio

HOUR = "max-age=3600"


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_was_put_is_found(date: str, profile: Any) -> None:
    """`match returns cached responses` of miniflare's tests."""

    async def handle(_: Any) -> Any:
        from js import caches

        cache = caches.default
        kept = await cache.put(URL, response("bödy", Cache_Control=HOUR, X_Key="value"))
        found = await cache.match(URL)
        return [
            kept,
            found.status,
            found.headers.get("cache-control"),
            found.headers.get("cf-cache-status"),
            found.headers.get("age"),
            found.headers.get("x-key"),
            await found.text(),
            await cache.match(URL + "?page=2"),
        ]

    expected = [None, 200, HOUR, "HIT", "0", "value", "bödy", None]
    assert await got(handle, date=date, profile=profile) == expected


async def test_requests_and_responses_of_the_sdk_go_in_by_their_js_objects() -> None:
    async def handle(self: Any) -> Any:
        from js import caches
        from workers import Response

        fresh = Response("hello", headers={"Cache-Control": HOUR})
        await caches.default.put(self.request.js_object, fresh.js_object)
        found = await caches.default.match(self.request.js_object)
        return [fresh.body_used, await found.text(), Response(found).status]

    assert await got(handle) == [True, "hello", 200]


async def test_python_objects_are_neither_a_response_nor_a_url() -> None:
    async def handle(self: Any) -> Any:
        from js import caches
        from workers import Response

        cache = caches.default
        not_a_url = await problem(lambda: cache.match(self.request))
        return [
            await problem(lambda: cache.put(URL, Response("x"))),
            not_a_url.partition("Request")[0],
        ]

    wrong = "TypeError: Failed to execute 'put' on 'Cache': parameter 2 is not of type 'Response'."
    assert await got(handle) == [wrong, "TypeError: Invalid URL: "]


async def test_named_caches_are_apart_from_each_other_and_from_the_default_one() -> None:
    """`default and named caches are disjoint` of miniflare's tests."""

    async def handle(_: Any) -> Any:
        import js

        first, second = await js.caches.open("1"), await js.caches.open("2")
        for cache, text in ((js.caches.default, "default"), (first, "one"), (second, "two")):
            await cache.put(URL, response(text, Cache_Control=HOUR))
        again = await js.caches.open("1")
        found = [await cache.match(URL) for cache in (js.caches.default, again, second)]
        deleted = [await first.delete(URL), await first.delete(URL)]
        rest = await js.caches.default.match(URL)
        return [[await one.text() for one in found], deleted, rest.status]

    assert await got(handle) == [["default", "one", "two"], [True, False], 200]


async def test_streams_and_empty_bodies_are_stored() -> None:
    async def handle(_: Any) -> Any:
        import js

        cache = js.caches.default
        stream = js.Response.new("in parts").body
        await cache.put(URL, response(stream, Cache_Control=HOUR))
        await cache.put(URL + "/empty", response(None, Cache_Control=HOUR))
        found, empty = await cache.match(URL), await cache.match(URL + "/empty")
        return [await found.text(), await empty.text()]

    assert await got(handle) == ["in parts", ""]


async def test_the_body_is_taken_at_the_call() -> None:
    async def handle(_: Any) -> Any:
        from js import caches

        fresh = response(Cache_Control=HOUR)
        put = caches.default.put(URL, fresh)
        used = fresh.bodyUsed
        await put
        return [used, await problem(lambda: caches.default.put(URL, fresh))]

    used, text = await got(handle)
    assert used is True
    assert text.startswith("TypeError: Body has already been used. It can only be used once.")


@pytest.mark.parametrize("date", DATES)
async def test_what_cannot_be_put_is_refused_in_the_runtimes_words(date: str) -> None:
    """Cache::put of workerd's cache.c++."""

    async def handle(_: Any) -> Any:
        import js

        cache = js.caches.default
        ways = [
            lambda: cache.put(request(method="POST"), response()),
            lambda: cache.put(URL, response(status=206)),
            lambda: cache.put(URL, response(Vary="Accept, *")),
            lambda: cache.put(URL, js.Response.error()),
            lambda: cache.put("/list", response()),
            lambda: cache.put("mailto:ada@example.com", response()),
            lambda: cache.put("https://ada:secret@shop.example/", response()),
        ]
        return [await problem(way) for way in ways]

    assert await got(handle, date=date) == [
        "TypeError: Cannot cache response to non-GET request.",
        "TypeError: Cannot cache response to a range request (206 Partial Content).",
        "TypeError: Cannot cache response with 'Vary: *' header.",
        "TypeError: Cache is unable to store an error response",
        "TypeError: Invalid URL: /list",
        "TypeError: Invalid URL. Cache API keys must be fully-qualified, valid URLs.",
        "TypeError: Invalid URL. Cache API keys must be fully-qualified, valid URLs.",
    ]


async def test_a_304_is_dropped_and_its_body_left_alone() -> None:
    async def handle(_: Any) -> Any:
        from js import caches

        fresh = response(None, status=304, Cache_Control=HOUR)
        await caches.default.put(URL, fresh)
        return [fresh.bodyUsed, await caches.default.match(URL)]

    assert await got(handle) == [False, None]


async def test_other_methods_find_nothing_unless_the_method_is_ignored() -> None:
    async def handle(_: Any) -> Any:
        import js
        from pyodide.ffi import to_js

        cache = js.caches.default
        ignore = to_js({"ignoreMethod": True}, dict_converter=js.Object.fromEntries)
        await cache.put(URL, response(Cache_Control=HOUR))
        head = request(method="HEAD")
        found = [await cache.match(head), (await cache.match(head, ignore)).status]
        return [*found, await cache.delete(head), await cache.delete(head, ignore)]

    assert await got(handle) == [None, 200, False, True]


async def test_what_the_runtime_lacks_it_says_in_its_own_words() -> None:
    async def handle(_: Any) -> Any:
        import js
        from pyodide.ffi import to_js

        search = to_js({"ignoreSearch": True}, dict_converter=js.Object.fromEntries)
        cache = js.caches.default
        ways = [
            lambda: cache.add(URL),
            lambda: cache.matchAll(URL),
            lambda: cache.keys(),
            lambda: js.caches.match(URL),
            lambda: js.caches.has("a"),
            lambda: cache.match(URL, search),
            lambda: cache.match(),
            lambda: js.caches.open("x" * 1024),
            lambda: js.Cache.new(),
        ]
        return [await problem(way) for way in ways]

    assert await got(handle) == [
        "Error: Failed to execute 'add' on 'Cache': the method is not implemented.",
        "Error: Failed to execute 'matchAll' on 'Cache': the method is not implemented.",
        "Error: Failed to execute 'keys' on 'Cache': the method is not implemented.",
        "Error: Failed to execute 'match' on 'CacheStorage': the method is not implemented.",
        "Error: Failed to execute 'has' on 'CacheStorage': the method is not implemented.",
        "Error: The 'ignoreSearch' field on 'CacheQueryOptions' is not implemented.",
        "TypeError: Failed to execute 'match' on 'Cache': parameter 1 is not of type "
        "'Request or string'.",
        "TypeError: Cache name is too long.",
        "TypeError: Illegal constructor",
    ]


async def test_a_cache_is_not_asked_in_the_global_scope(tmp_path: Any) -> None:
    from emulator import Emulator, WorkerLoadError

    main = tmp_path / "entry.py"
    main.write_text(
        "from js import caches\n"
        "from workers import WorkerEntrypoint\n"
        "cache = caches.default\n"
        "cache.match('https://shop.example/')\n"
        "class Default(WorkerEntrypoint):\n"
        "    async def fetch(self, request): ...\n"
    )
    with pytest.raises(WorkerLoadError, match="Disallowed operation called within global scope"):
        Emulator({"main": str(main)})


async def test_a_key_of_the_users_own_takes_the_place_of_the_url() -> None:
    """`operations respect cf.cacheKey` of miniflare's tests."""

    async def handle(_: Any) -> Any:
        import js
        from pyodide.ffi import to_js

        def keyed(key: str) -> Any:
            init = {"cf": {"cacheKey": key}}
            return js.Request.new(URL, to_js(init, dict_converter=js.Object.fromEntries))

        cache = js.caches.default
        await cache.put(keyed("1"), response("one", Cache_Control=HOUR))
        await cache.put(keyed("2"), response("two", Cache_Control=HOUR))
        found = [await (await cache.match(keyed(key))).text() for key in ("1", "2")]
        return [*found, await cache.match(URL)]

    assert await got(handle) == ["one", "two", None]


async def test_headers_of_what_was_found_cannot_be_changed() -> None:
    async def handle(_: Any) -> Any:
        from js import caches

        await caches.default.put(URL, response(Cache_Control=HOUR))
        found = await caches.default.match(URL)
        return await problem(lambda: found.headers.set("x", "y"))

    assert "immutable" in await got(handle)


async def test_a_test_looks_into_caches_and_empties_them() -> None:
    async def handle(_: Any) -> str:
        import js

        await js.caches.default.put(URL, response("hello", Cache_Control=HOUR))
        await (await js.caches.open("mine")).put(URL + "/2", response(Cache_Control=HOUR))
        return "ok"

    async with running(handle) as emulator:
        await emulator.fetch("/")
        cache = emulator.caches["default"]
        assert list(emulator.caches) == ["default", "mine"]
        assert cache.urls == [URL]
        found = cache.get(URL)
        assert found is not None
        assert (found.text, found.headers["cache-control"]) == ("hello", HOUR)
        assert cache.get(URL + "/2") is None
        cache.purge()
        assert cache.urls == []
        assert emulator.caches["mine"].urls == [URL + "/2"]
