"""What calls on an R2 binding give, and what they refuse, in the words of the platform.

Shapes and texts are those of miniflare 4.20260426 with workerd 1.20260426.1, where nothing else is
said.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyodide.ffi import to_js
from r2_bench import (
    BUCKETS,
    EXTERNAL,
    FROZEN,
    HELLO_MD5,
    PROFILES,
    got,
    problem,
    running,
    worker,
)
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator
from emulator.config import ConfigWarning, R2Config, load

START = datetime(2026, 1, 1)
NO_FIELDS = dict.fromkeys(
    (
        *("contentType", "contentLanguage", "contentDisposition", "contentEncoding"),
        *("cacheControl", "cacheExpiry"),
    )
)


@pytest.mark.asyncio
@pytest.mark.parametrize("date", EXTERNAL)
async def test_an_object_has_its_fields_with_the_external_sdk(date: str) -> None:
    async def handle(env: Any) -> Any:
        put = await env.R2.put("k", "hello")
        return {
            "same": [put.key, put["size"], put.etag, put.httpEtag, put.storageClass],
            "version": len(put.version),
            "uploaded": put.uploaded,
            "http": put.httpMetadata,
            "custom": put.customMetadata,
            "range": put.range,
            "md5": bytes(put.checksums.md5).hex(),
            "sha1": put.checksums.sha1,
            "json": put.checksums.toJSON(),
            "head": (await env.R2.head("k")).range,
            "missing": [await env.R2.head("no"), await env.R2.get("no")],
            "deleted": await env.R2.delete("no"),
        }

    assert await got(handle, date=date) == {
        "same": ["k", 5, HELLO_MD5, f'"{HELLO_MD5}"', "Standard"],
        "version": 32,
        "uploaded": START,
        "http": NO_FIELDS,
        "custom": {},
        "range": None,
        "md5": HELLO_MD5,
        "sha1": None,
        "json": {"md5": HELLO_MD5, "sha1": None, "sha256": None, "sha384": None, "sha512": None},
        "head": {"offset": 0, "length": 5, "suffix": None},
        "missing": [None, None],
        "deleted": None,
    }


@pytest.mark.asyncio
@pytest.mark.parametrize("date", FROZEN)
async def test_the_frozen_sdk_hands_out_raw_proxies(date: str) -> None:
    async def handle(env: Any) -> Any:
        from js import Object, Uint8Array

        options = to_js({"httpMetadata": {"contentType": "a/b"}}, dict_converter=Object.fromEntries)
        put = await env.R2.put("k", to_js(b"hello"), options)
        found = await env.R2.get("k")
        listed = await env.R2.list(prefix="k")
        names = [put.constructor.name, found.constructor.name, env.R2.constructor.name]
        await env.R2.put("d", Uint8Array.new(3))
        missing = await env.R2.get("no")
        await env.R2.delete(to_js(["d"]))
        return [
            names,
            found.httpMetadata.contentType,
            put.uploaded.getTime(),
            await found.text(),
            [one.key for one in listed.objects],
            listed.truncated,
            missing is None or str(missing),
            await problem(lambda: env.R2.put("e", b"raw")),
            (await env.R2.list()).objects.length,
        ]

    names, kind, uploaded, text, keys, truncated, missing, refused, count = await got(
        handle, date=date
    )
    assert names == ["HeadResult", "GetResult", "R2Bucket"]
    assert (kind, text, keys, truncated, count) == ("a/b", "hello", ["k"], False, 1)
    assert uploaded == 1_767_225_600_000
    assert missing == (True if date == FROZEN[0] else "jsnull")
    assert refused == f"TypeError: Failed to execute 'put' on 'R2Bucket': {NOT_A_BODY}"


NOT_A_BODY = (
    "parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or "
    "Blob'."
)


@pytest.mark.asyncio
async def test_objects_of_a_list_are_raw_proxies() -> None:
    """python-api.md 1.4: what is inside a plain object is not wrapped."""

    async def handle(env: Any) -> Any:
        await env.R2.put("k", "x")
        found = await env.R2.list()
        one = found.objects[0]
        return [one.key, await problem(lambda: one["key"]), found["truncated"], found.cursor]

    key, error, truncated, cursor = await got(handle)
    assert (key, truncated, cursor) == ("k", False, None)
    assert error.startswith("TypeError")


@pytest.mark.asyncio
async def test_a_body_is_read_once_in_any_form() -> None:
    async def handle(env: Any) -> Any:
        async def again() -> Any:
            return await env.R2.get("k")

        await env.R2.put("k", '{"a": [1]}', httpMetadata={"contentType": "Text/JSON; a=B"})
        found = await again()
        before, text, after = found.body is not None, await found.text(), found["bodyUsed"]
        blob = await (await again()).blob()
        stream = (await again()).body
        copied = await env.R2.put("copy", stream)
        return [
            *(before, text, after, await problem(found.json)),
            await (await again()).json(),
            bytes(await (await again()).arrayBuffer()),
            bytes(await (await again()).bytes()),
            [blob.content_type.lower(), await blob.text()],
            [copied.size, await (await env.R2.get("copy")).text()],
        ]

    text = '{"a": [1]}'
    assert await got(handle) == [
        *(True, text, True),
        "TypeError: Body has already been used. It can only be used once. Use tee() first if you "
        "need to read it twice.",
        {"a": [1]},
        *(text.encode(), text.encode()),
        ["text/json; a=b", text],
        [10, text],
    ]


@pytest.mark.asyncio
async def test_bodies_of_every_kind_are_stored() -> None:
    async def handle(env: Any) -> Any:
        from js import ArrayBuffer, FixedLengthStream
        from js import Response as JsResponse
        from workers import Blob

        fixed = FixedLengthStream.new(3)
        writer = fixed.writable.getWriter()
        writing = writer.write(to_js(b"abc"))
        put = env.R2.put("fixed", fixed.readable)
        bodies = {
            "text": "é€",
            "bytes": b"\x00\xff",
            "view": memoryview(b"abc"),
            "buffer": ArrayBuffer.new(4),
            "blob": Blob(["ab", b"cd", "e"]),
            "stream": JsResponse.new("abcdef").body,
            "nothing": None,
        }
        sizes = {key: (await env.R2.put(key, body)).size for key, body in bodies.items()}

        async def close() -> None:
            await writing
            await writer.close()

        import asyncio

        found, _ = await asyncio.gather(put, close())
        return {**sizes, "fixed": found.size}

    assert await got(handle) == {
        "text": 5,
        "bytes": 2,
        "view": 3,
        "buffer": 4,
        "blob": 5,
        "stream": 6,
        "nothing": 0,
        "fixed": 3,
    }


@pytest.mark.asyncio
async def test_a_requests_body_is_stored_as_a_stream() -> None:
    async def handle(env: Any, request: Any) -> str:
        found = await env.R2.put("k", request.js_object.body)
        return str(found.size)

    async with running(handle) as emulator:
        assert (await emulator.fetch("/", method="POST", content=b"12345")).text == "5"
        assert emulator.r2["R2"].get("k").body == b"12345"  # type: ignore[union-attr]


REFUSED: dict[str, tuple[Any, str]] = {
    "number": (lambda r2: r2.put("k", 5), f"Failed to execute 'put' on 'R2Bucket': {NOT_A_BODY}"),
    "dict": (lambda r2: r2.put("k", {}), f"Failed to execute 'put' on 'R2Bucket': {NOT_A_BODY}"),
    "no body": (lambda r2: r2.put("k"), f"Failed to execute 'put' on 'R2Bucket': {NOT_A_BODY}"),
    "no key": (
        lambda r2: r2.get(),
        "Failed to execute 'get' on 'R2Bucket': parameter 1 is not of type 'string'.",
    ),
    "no keys": (
        lambda r2: r2.delete(),
        "Failed to execute 'delete' on 'R2Bucket': parameter 1 is not of type 'string or Array'.",
    ),
    "options": (
        lambda r2: r2.put("k", "x", "no"),
        "Failed to execute 'put' on 'R2Bucket': parameter 3 is not of type 'PutOptions'.",
    ),
    "custom": (
        lambda r2: r2.put("k", "x", customMetadata="a"),
        "Incorrect type for the 'customMetadata' field on 'PutOptions': the provided value is not "
        "of type 'object'.",
    ),
    "expiry": (
        lambda r2: r2.put("k", "x", httpMetadata={"cacheExpiry": "2026-01-01"}),
        "Incorrect type for the 'cacheExpiry' field on 'HttpMetadata': the provided value is not "
        "of type 'date'.",
    ),
    "condition": (
        lambda r2: r2.get("k", onlyIf="x"),
        "Incorrect type for the 'onlyIf' field on 'GetOptions': the provided value is not of type "
        "'Conditional or Headers'.",
    ),
    "etag": (
        lambda r2: r2.get("k", onlyIf={"etagMatches": None}),
        "Incorrect type for the 'etagMatches' field on 'Conditional': the provided value is not of "
        "type 'string'.",
    ),
    "quotes": (
        lambda r2: r2.get("k", onlyIf={"etagMatches": '"x"'}),
        'Conditional ETag should not be wrapped in quotes ("x").',
    ),
    "far": (
        lambda r2: r2.get("k", onlyIf={"uploadedAfter": datetime(2300, 1, 1, tzinfo=UTC)}),
        "This API doesn't support dates after 2189.",
    ),
    "suffix": (
        lambda r2: r2.get("k", range={"suffix": 1, "offset": 1}),
        "Suffix is incompatible with offset.",
    ),
    "two hashes": (
        lambda r2: r2.put("k", "x", md5=HELLO_MD5, sha1="a" * 40),
        "You cannot specify multiple hashing algorithms.",
    ),
    "short hash": (
        lambda r2: r2.put("k", "x", sha256="ab"),
        "SHA-256 is 64 hex characters, not 2",
    ),
    "no hash": (
        lambda r2: r2.put("k", "x", md5="z" * 32),
        "Provided MD5 wasn't a valid hex string",
    ),
    "hash bytes": (lambda r2: r2.put("k", "x", sha1=b"ab"), "SHA-1 is 20 bytes, not 2"),
    "hash kind": (
        lambda r2: r2.put("k", "x", md5=5),
        "Incorrect type for the 'md5' field on 'PutOptions': the provided value is not of type "
        "'JsBufferSource or string'.",
    ),
    "prefix": (
        lambda r2: r2.list(prefix=5),
        "Incorrect type for the 'prefix' field on 'ListOptions': the provided value is not of type "
        "'string'.",
    ),
    "include": (
        lambda r2: r2.list(include="httpMetadata"),
        "Incorrect type for the 'include' field on 'ListOptions': the provided value is not of "
        "type 'Array'.",
    ),
}
REFUSED_BY_SERVICE: dict[str, tuple[Any, str]] = {
    "long key": (
        lambda r2: r2.put("é" * 513, "x"),
        "put: The specified object name is not valid. (10020)",
    ),
    "long keys": (
        lambda r2: r2.delete(["a", "x" * 1_025]),
        "delete: The specified object name is not valid. (10020)",
    ),
    "metadata": (
        lambda r2: r2.put("k", "x", customMetadata={"a": "b" * 8_192}),
        "put: Your metadata headers exceed the maximum allowed metadata size. (10012)",
    ),
    "range": (
        lambda r2: r2.get("hello", range={"offset": 5}),
        "get: The requested range is not satisfiable (10039)",
    ),
    "limit": (
        lambda r2: r2.list(limit=1_001),
        "list: MaxKeys params must be positive integer <= 1000. (10022)",
    ),
    "digest": (
        lambda r2: r2.put("k", "hellO", md5=HELLO_MD5),
        "put: The MD5 checksum you specified did not match what we received.\nYou provided a MD5 "
        f"checksum with value: {HELLO_MD5}\nActual MD5 was: "
        "06612c0d9c73d47a7042afd7024d7c82 (10037)",
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_BY_SERVICE])
async def test_what_is_refused_is_refused_in_the_platforms_words(name: str, profile: Any) -> None:
    call, expected = {**REFUSED, **REFUSED_BY_SERVICE}[name]
    kind = "TypeError" if name in REFUSED else "Error"

    async def handle(env: Any) -> Any:
        await env.R2.put("hello", "hello")
        error = await problem(lambda: call(env.R2))
        listed = await env.R2.list()
        return [error, [one.key for one in listed.objects]]

    assert await got(handle, profile=profile) == [f"{kind}: {expected}", ["hello"]]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"offset": -1}, "Invalid range. Starting offset (-1) must be greater than or equal to 0."),
        ({"length": 1.5}, "Invalid range. Length (1.5) must be an integer, not floating point."),
        ({"suffix": -1}, "Invalid suffix. Suffix (-1) must be greater than or equal to 0."),
        ({"suffix": 1.5}, "Invalid range. Suffix (1.5) must be an integer, not floating point."),
    ],
)
async def test_a_range_that_is_none_is_a_range_error(options: Any, error: str) -> None:
    async def handle(env: Any) -> Any:
        return await problem(lambda: env.R2.get("k", range=options))

    assert await got(handle) == f"RangeError: {error}"


@pytest.mark.asyncio
async def test_a_stream_of_unknown_length_is_refused() -> None:
    async def handle(env: Any) -> Any:
        from js import Response as JsResponse
        from js import TransformStream

        used = JsResponse.new("x")
        body = used.body
        await used.text()
        return [
            await problem(lambda: env.R2.put("k", TransformStream.new().readable)),
            await problem(lambda: env.R2.put("k", body)),
        ]

    assert await got(handle) == [
        "TypeError: Provided readable stream must have a known length (request/response body or "
        "readable half of FixedLengthStream)",
        "TypeError: The ReadableStream has been locked to a reader.",
    ]


# -- metadata, checksums, conditions ---------------------------------------------------------------


@pytest.mark.asyncio
async def test_metadata_come_back_and_go_into_headers() -> None:
    async def handle(env: Any) -> Any:
        from js import Headers

        expiry = datetime(2026, 2, 1, tzinfo=UTC)
        http = {"contentType": "text/plain", "cacheExpiry": expiry}
        await env.R2.put("k", "x", httpMetadata=http, customMetadata={"n": 5, "t": True, "z": None})
        head = await env.R2.head("k")
        headers = Headers.new()
        head.writeHttpMetadata(headers)
        given = Headers.new(to_js([["content-language", "de"], ["expires", "soon"], ["x", "y"]]))
        other = await env.R2.put("h", "x", httpMetadata=given)
        return [
            head.httpMetadata,
            head.customMetadata,
            list(headers),
            other.httpMetadata,
            await problem(lambda: head.writeHttpMetadata({})),
        ]

    http, custom, headers, other, error = await got(handle)
    assert http == {
        **NO_FIELDS,
        "contentType": "text/plain",
        "cacheExpiry": datetime(2026, 2, 1),
    }
    assert custom == {"n": "5", "t": "true", "z": "null"}
    assert sorted(map(tuple, headers)) == [
        ("content-type", "text/plain"),
        ("expires", "Sun, 01 Feb 2026 00:00:00 GMT"),
    ]
    assert other == {**NO_FIELDS, "contentLanguage": "de", "cacheExpiry": datetime(1970, 1, 1)}
    assert error.endswith("'HeadResult': parameter 1 is not of type 'Headers'.")


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha384", "sha512"])
async def test_a_checksum_is_checked_and_kept(name: str) -> None:
    digest = hashlib.new(name, b"hello")

    async def handle(env: Any) -> Any:
        text = await env.R2.put("k", "hello", {name: digest.hexdigest().upper()})
        data = await env.R2.put("k", "hello", {name: digest.digest()})
        wrong = await problem(lambda: env.R2.put("k", "other", {name: digest.hexdigest()}))
        head = await env.R2.head("k")
        return [text.size, data.size, wrong, head.checksums.toJSON()[name], head.size]

    sizes = await got(handle)
    assert sizes[:2] == [5, 5]
    assert "did not match what we received" in sizes[2]
    assert sizes[3:] == [digest.hexdigest(), 5]


@pytest.mark.asyncio
async def test_a_condition_that_does_not_hold_gives_no_body() -> None:
    async def handle(env: Any) -> Any:
        from js import Headers

        first = await env.R2.put("k", "hello")
        same, other = {"etagMatches": first.etag}, {"etagMatches": "other"}
        headers = Headers.new(to_js([["if-none-match", first.httpEtag]]))
        yes = await env.R2.get("k", onlyIf=same)
        no = await env.R2.get("k", onlyIf=other)
        cached = await env.R2.get("k", onlyIf=headers)
        return [
            await yes.text(),
            [hasattr(no, "text"), no.size, no.range],
            hasattr(cached, "body"),
            await env.R2.get("missing", onlyIf=other),
        ]

    assert await got(handle) == [
        "hello",
        [False, 5, {"offset": 0, "length": 5, "suffix": None}],
        False,
        None,
    ]


@pytest.mark.asyncio
async def test_a_put_under_a_condition_stores_or_gives_none() -> None:
    async def handle(env: Any) -> Any:
        only_new = {"etagDoesNotMatch": "*"}
        first = await env.R2.put("k", "one", onlyIf=only_new)
        second = await env.R2.put("k", "two", onlyIf=only_new)
        third = await env.R2.put("k", "three", onlyIf={"etagMatches": first.etag})
        fourth = await env.R2.put("no", "x", onlyIf={"etagMatches": "*"})
        stored = await (await env.R2.get("k")).text()
        return [first is None, second is None, third is None, fourth is None, stored]

    assert await got(handle) == [False, True, False, True, "three"]


@pytest.mark.asyncio
async def test_dates_of_conditions_are_virtual() -> None:
    async def handle(env: Any) -> Any:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        await env.R2.put("k", "x")

        async def is_there(**condition: Any) -> bool:
            return hasattr(await env.R2.get("k", onlyIf=condition), "text")

        later = now + timedelta(milliseconds=1)
        return [
            await is_there(uploadedBefore=later),
            await is_there(uploadedBefore=now),
            await is_there(uploadedBefore=later, secondsGranularity=True),
            await is_there(uploadedAfter=now),
            await is_there(uploadedAfter=now - timedelta(milliseconds=1)),
        ]

    assert await got(handle) == [True, False, False, False, True]


@pytest.mark.asyncio
async def test_python_headers_are_no_condition() -> None:
    """An object of Python's is an options object without options: the runtime sees no field."""

    async def handle(env: Any, request: Any) -> Any:
        await env.R2.put("k", "hello")
        python = await env.R2.get("k", onlyIf=request.headers)
        real = await env.R2.get("k", onlyIf=request.js_object.headers, range={"length": 2})
        return f"{hasattr(python, 'text')} {hasattr(real, 'text')}"

    async with running(handle) as emulator:
        response = await emulator.fetch("/", headers={"if-match": '"x"'})
        assert response.text == "True False"


@pytest.mark.asyncio
async def test_a_range_gives_a_part() -> None:
    async def handle(env: Any) -> Any:
        from js import Headers

        await env.R2.put("k", "0123456789")

        async def part(asked: Any) -> Any:
            found = await env.R2.get("k", range=asked)
            return [await found.text(), found.range["offset"], found.range["length"], found.size]

        return [
            await part({"offset": 4, "length": 3}),
            await part({"suffix": 2}),
            await part(Headers.new(to_js([["range", "bytes=1-2"]]))),
        ]

    assert await got(handle) == [["456", 4, 3, 10], ["89", 8, 2, 10], ["12", 1, 2, 10]]


# -- lists -----------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_list_has_pages_and_common_prefixes() -> None:
    async def handle(env: Any) -> Any:
        for key in ("b", "a/2", "a/1", "c/x"):
            await env.R2.put(key, "x")
        keys = []
        options: dict[str, Any] = {"limit": 3}
        while True:
            page = await env.R2.list(options)
            keys.append([one.key for one in page.objects])
            if not page.truncated:
                break
            options["cursor"] = page.cursor
        grouped = await env.R2.list(delimiter="/")
        return [keys, [one.key for one in grouped.objects], grouped.delimitedPrefixes]

    assert await got(handle) == [[["a/1", "a/2", "b"], ["c/x"]], ["b"], ["a/", "c/"]]


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_list_has_the_metadata_it_was_asked_for(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        from js import Headers

        given = {"httpMetadata": {"contentType": "a/b"}, "customMetadata": {"n": "1"}}
        await env.R2.put("k", "x", given)

        async def first(*include: str) -> Any:
            return (await env.R2.list(include=list(include))).objects[0]

        def shown(value: Any) -> Any:
            return None if value is None else value.to_py()

        plain, http = await first(), await first("httpMetadata")
        both = await first("httpMetadata", "customMetadata")
        return [
            [shown(getattr(plain, name, None)) for name in ("httpMetadata", "customMetadata")],
            [http.httpMetadata.contentType, shown(getattr(http, "customMetadata", None))],
            [both.httpMetadata.contentType, both.customMetadata.n],
            await problem(lambda: plain.writeHttpMetadata(Headers.new())),
        ]

    plain, http, both, error = await got(handle, profile=profile)
    assert both == ["a/b", "1"]
    if profile == "production":
        assert (plain, http) == ([None, None], ["a/b", None])
        assert error == (
            "TypeError: HTTP metadata unknown for key `k`. Did you forget to add 'httpMetadata' to "
            "`include` when listing?"
        )
    else:
        assert plain[1] == http[1] == {}
        assert error == ""


@pytest.mark.asyncio
async def test_a_list_with_metadata_has_shorter_pages() -> None:
    async def handle(env: Any) -> Any:
        for number in range(101):
            await env.R2.put(f"k{number:03}", "x")
        with_metadata = await env.R2.list(include=["customMetadata"])
        plain = await env.R2.list()
        return [len(with_metadata.objects), with_metadata.truncated, len(plain.objects)]

    assert await got(handle) == [100, True, 101]


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_thousand_keys_are_deleted_at_once(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        await env.R2.put("k0", "x")
        keys = [f"k{number}" for number in range(1_001)]
        too_many = await problem(lambda: env.R2.delete(keys))
        await env.R2.delete(keys[:1_000])
        return [too_many, await env.R2.head("k0")]

    error = "Error: delete: A maximum of 1000 keys can be deleted at a time. (10029)"
    expected = error if profile == "production" else ""
    assert await got(handle, profile=profile) == [expected, None]


# -- what the profiles do differently --------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_storage_classes_are_those_of_production(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        rare = await env.R2.put("k", "x", storageClass="InfrequentAccess")
        usual = await env.R2.put("k", "x")
        wrong = await problem(lambda: env.R2.put("k", "x", storageClass="nope"))
        return [rare.storageClass, usual.storageClass, wrong]

    error = "Error: put: The storage class you specified is not valid. (10029)"
    assert await got(handle, profile=profile) == (
        ["InfrequentAccess", "Standard", error] if profile == "production" else ["", "", ""]
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_an_encrypted_object_is_read_with_its_key(profile: Any) -> None:
    async def handle(env: Any) -> Any:
        key, other = b"k" * 32, "07" * 32
        put = await env.R2.put("s", "secret", ssecKey=key)
        found = await env.R2.get("s", ssecKey=key)
        return [
            put.ssecKeyMd5,
            await found.text(),
            await problem(lambda: env.R2.get("s")) != "",
            await problem(lambda: env.R2.get("s", ssecKey=other)) != "",
            await problem(lambda: env.R2.put("s", "x", ssecKey=b"short")),
            await problem(lambda: env.R2.put("s", "x", ssecKey="XX")),
        ]

    md5, text, *rest = await got(handle, profile=profile)
    is_production = profile == "production"
    assert (md5 is not None, text) == (is_production, "secret")
    assert rest == [
        *(is_production, is_production),
        "Error: SSE-C Key must be 32 bytes in length",
        "Error: SSE-C Key has invalid format",
    ]


@pytest.mark.asyncio
async def test_some_bytes_of_an_empty_object_are_refused() -> None:
    async def handle(env: Any) -> Any:
        await env.R2.put("k", "")
        return await problem(lambda: env.R2.get("k", range={"length": 1}))

    assert await got(handle, profile="miniflare") == "Error: get: Unspecified error (0)"
    assert await got(handle) == "Error: get: The requested range is not satisfiable (10039)"


# -- sharing, the config, the trace ----------------------------------------------------------------


@pytest.mark.asyncio
async def test_bindings_with_one_name_share_a_bucket() -> None:
    buckets = [
        {"binding": "A", "bucket_name": "files"},
        {"binding": "B", "bucket_name": "files"},
        {"binding": "C", "bucket_name": "files", "jurisdiction": "eu"},
    ]
    async with running(config={"r2_buckets": buckets}) as emulator:
        await emulator.env.A.put("k", "x")
        assert (await emulator.env.B.head("k")).size == 1
        assert await emulator.env.C.head("k") is None
        assert list(emulator.r2) == ["A", "files", "B", "C"]


def config(**keys: Any) -> Any:
    return load({"main": type("Default", (), {}), **keys})


def test_a_bucket_is_named_by_its_name_or_binding() -> None:
    given = [
        {"binding": "A", "bucket_name": "files", "preview_bucket_name": "p", "jurisdiction": "eu"},
        {"binding": "B"},
    ]
    assert config(r2_buckets=given).workers[0].buckets == (
        R2Config(binding="A", name="files", jurisdiction="eu"),
        R2Config(binding="B", name="B"),
    )


@pytest.mark.parametrize(
    ("bucket", "error"),
    [
        ({"bucket_name": "files"}, 'bindings should have a string "binding" field but got'),
        ({"binding": "A", "bucket_name": 5}, 'should have a string "bucket_name" field but got'),
        ({"binding": "A", "jurisdiction": 5}, 'optionally, have a string "jurisdiction" field'),
        (
            {"binding": "A", "preview_bucket_name": 5},
            'should, optionally, have a string "preview_bucket_name" field but got',
        ),
    ],
)
def test_a_wrong_bucket_is_refused_in_wranglers_words(bucket: Any, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(r2_buckets=[bucket])
    assert error in str(caught.value)


def test_a_name_that_r2_does_not_take_is_told_of() -> None:
    with pytest.warns(ConfigWarning, match=r'bucket_name is "My_Files", which R2 takes for no'):
        config(r2_buckets=[{"binding": "A", "bucket_name": "My_Files"}])
    with pytest.warns(ConfigWarning, match="did you mean"):
        config(r2_buckets=[{"binding": "A", "bucket": "files"}])


@pytest.mark.asyncio
async def test_a_remote_bucket_is_a_finding() -> None:
    buckets = [{"binding": "R2", "bucket_name": "files", "remote": True}]
    async with running(config={"r2_buckets": buckets}) as emulator:
        (found,) = emulator.findings
        assert found.code == "ignored_option"
        assert "every bucket is emulated" in found.message


@pytest.mark.asyncio
async def test_the_trace_tells_of_calls_and_not_of_bodies() -> None:
    async def handle(env: Any) -> str:
        await env.R2.put("k", "secret body")
        await env.R2.put("k", "again", onlyIf={"etagDoesNotMatch": "*"})
        await problem(lambda: env.R2.get("x" * 1_025))
        await env.R2.list(prefix="k")
        await env.R2.delete(["k", "l"])
        return "ok"

    async with running(handle) as emulator:
        await emulator.fetch("/")
        told = [event for event in emulator.trace if event.kind == "r2"]
        assert {event.subject for event in told} == {"r2 R2"}
        shown = [{**event.data, "by": "", "key": event.data.get("key", "")[:3]} for event in told]
        put = {"call": "put", "key": "k", "by": ""}
        assert shown[0] == {**put, "size": 11}
        assert shown[1] == {**put, "size": 5, "refused": True}
        assert shown[2]["error"] == "get: The specified object name is not valid. (10020)"
        assert shown[3] == {"call": "list", "prefix": "k", "by": "", "key": ""}
        assert shown[4]["call"] == "delete"
        assert "secret body" not in emulator.trace.to_jsonl()


def test_r2_is_not_imported_without_a_bucket() -> None:
    program = (
        "import sys; from emulator import Emulator; from workers import WorkerEntrypoint\n"
        "with Emulator({'main': type('W', (WorkerEntrypoint,), {})}): pass\n"
        "assert 'emulator.r2.bindings' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.asyncio
async def test_an_objects_body_keeps_its_length_on_the_way_to_another_worker() -> None:
    """As in production, where the length travels with the stream."""

    class Copier(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            stored = await self.env.R2.put("copy", request.js_object.body)
            return Response(str(stored.size))

        async def keep(self, stream: Any) -> int:
            assert stream.constructor.name == "ReadableStream"
            return int((await self.env.R2.put("kept", stream)).size)

    async def handle(env: Any) -> str:
        await env.R2.put("k", "hello")
        first = await env.R2.get("k")
        answer = await env.COPIER.fetch("http://copier/", method="PUT", body=first.body)
        second = await env.R2.get("k")
        return f"{await answer.text()} {await env.COPIER.keep(second.body)}"

    service = [{"binding": "COPIER", "service": "copier"}]
    configs = [
        worker(handle, services=service, name="first"),
        {"main": Copier, "name": "copier", "r2_buckets": BUCKETS},
    ]
    async with Emulator(configs) as emulator:
        assert (await emulator.fetch("/")).text == "5 5"


@pytest.mark.asyncio
async def test_versions_and_ids_come_from_the_seed() -> None:
    async def drawn(seed: int) -> list[str]:
        async with running(seed=seed) as emulator:
            first = await emulator.env.R2.put("a", "x")
            second = await emulator.env.R2.put("a", "x")
            upload = await emulator.env.R2.createMultipartUpload("a")
            part = await upload.uploadPart(1, "x")
            return [first.version, second.version, upload.uploadId, part.etag]

    assert await drawn(1) == await drawn(1)
    assert len({*await drawn(1), *await drawn(2)}) == 8


@pytest.mark.asyncio
async def test_a_stand_in_takes_the_place_of_a_bucket() -> None:
    class Bucket:
        async def get(self, key: str) -> str:
            return f"no {key}"

    async def handle(env: Any) -> str:
        return str(await env.R2.get("k"))

    async with running(handle, bindings={"R2": Bucket()}) as emulator:
        assert (await emulator.fetch("/")).text == "no k"
