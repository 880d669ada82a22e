"""What Workers code does with `js` (python-api.md §3, "Exact js semantics")."""

import asyncio

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.pyproxy import jsnull
from emulator.runtime.web.boundary import response_to_web
from emulator.values import JsException


def test_a_response_with_js_headers():
    headers = js.Headers.new({"a": "b"}.items())
    found = response_to_web(js.Response.new("x", status=404, headers=headers))
    assert (found.status, found.body) == (404, b"x")
    assert found.headers == (("a", "b"), ("content-type", "text/plain;charset=UTF-8"))


def test_a_python_dict_as_headers_is_a_type_error():
    with pytest.raises(JsException) as caught:
        js.Response.new("x", headers={"a": "b"})
    assert caught.value.name == "TypeError"
    with pytest.raises(JsException) as caught:
        js.Headers.new({"a": "b"})
    assert caught.value.name == "TypeError"


def test_a_python_dict_as_options_works_without_headers(host):
    assert js.Response.new("x", {"status": 405}).status == 405
    host.flags = host.flags - {"python_workers_20250116"}
    # Pyodide 0.26 shows nothing of it: ignored in silence, but for a finding.
    assert js.Response.new("x", {"status": 405}).status == 200
    ((code, message),) = host.found
    assert code == "ignored_option"
    assert "('status')" in message


@pytest.mark.parametrize(
    "convert",
    [
        to_js,
        lambda d: to_js(d, dict_converter=js.Object.fromEntries),
        lambda d: js.Object.fromEntries(d.items()),
        lambda d: js.Object.fromEntries(to_js(list(d.items()))),
    ],
)
def test_converted_options_always_work(convert):
    assert js.Response.new("x", convert({"status": 405})).status == 405


def test_options_with_converted_headers():
    options = {"status": 405, "headers": {"a": "b"}}
    response = js.Response.new("x", to_js(options, dict_converter=js.Object.fromEntries))
    assert response.headers.get("a") == "b"


def test_headers_behave_like_a_map(host):
    headers = js.Headers.new({"A": "1", "b": "2"}.items())
    assert headers["a"] == "1"
    assert "B" in headers
    assert [(key, value) for key, value in headers] == [("a", "1"), ("b", "2")]
    assert dict(headers) == {"a": "1", "b": "2"}
    assert headers.get("zz") is jsnull
    assert str(headers) == "[object Headers]"
    headers.set("c", 3)
    assert headers.get("c") == "3"
    with pytest.raises(AttributeError):
        headers.items  # noqa: B018
    host.flags = host.flags - {"python_workers_20250116"}
    assert headers.get("zz") is None


def test_a_url_and_its_parameters():
    url = js.URL.new("https://a.b:8443/c/../d?x=1&y=é#z")
    assert (url.pathname, url.host, url.origin, url.hash) == (
        "/d",
        "a.b:8443",
        "https://a.b:8443",
        "#z",
    )
    assert (url.searchParams.get("x"), url.searchParams["y"]) == ("1", "é")
    assert url.searchParams.get("zz") is jsnull
    assert str(url) == url.href == "https://a.b:8443/d?x=1&y=%C3%A9#z"
    url.pathname = "/e f"
    assert url.href.startswith("https://a.b:8443/e%20f?")
    assert js.URL.canParse("nope") is False


def test_fetch_with_keywords_and_with_an_object(host):
    async def main():
        first = await js.fetch("http://a/", method="POST", body="x", headers=to_js([["a", "b"]]))
        options = to_js({"method": "PUT"}, dict_converter=js.Object.fromEntries)
        second = await js.fetch(js.Request.new("http://a/b"), options)
        return first.status, await second.text(), first.headers.get("content-type")

    assert asyncio.run(main()) == (200, "hello", "text/plain")
    assert [request.method for request in host.sent] == ["POST", "PUT"]


def test_fetch_refuses_a_python_dict_as_headers():
    async def main():
        await js.fetch("http://a/", headers={"a": "b"})

    with pytest.raises(JsException, match=r"^TypeError"):
        asyncio.run(main())


def test_a_promise_has_begun_before_it_is_awaited():
    async def main():
        response = js.Response.new("x")
        promise = response.text()
        assert response.bodyUsed is True
        return await promise

    assert asyncio.run(main()) == "x"


def test_json_gives_proxies():
    async def main():
        found = await js.Response.new('{"a": {"b": [1, null]}}').json()
        return found.a.b[0], found.to_py()["a"]["b"][0]

    assert asyncio.run(main()) == (1, 1)


def test_static_methods_of_response(host):
    async def main():
        response = js.Response.json(to_js([1, 2]))
        return response.headers.get("content-type"), await response.text()

    assert asyncio.run(main()) == ("application/json", "[1,2]")
    assert js.Response.redirect("http://a/b", 301).status == 301
    assert js.Response.error().type == "error"


def test_a_stream_of_python_functions():
    async def main():
        def start(controller):
            controller.enqueue(to_js(b"a"))

        async def pull(controller):
            await asyncio.sleep(0)
            controller.enqueue(to_js(b"b"))
            controller.close()

        stream = js.ReadableStream.new(start=start, pull=pull)
        return await js.Response.new(stream).text()

    assert asyncio.run(main()) == "ab"


def test_a_stream_is_read_chunk_by_chunk():
    async def main():
        reader = js.Response.new("hello").body.getReader()
        chunks = []
        while not (read := await reader.read()).done:
            chunks.append(read.value.to_bytes())
        return chunks

    assert asyncio.run(main()) == [b"hello"]


def test_a_stream_can_be_iterated():
    async def main():
        return [chunk.to_bytes() async for chunk in js.Response.new("hello").body]

    assert asyncio.run(main()) == [b"hello"]


def test_a_transform_stream_feeds_a_response():
    async def main():
        stream = js.TransformStream.new()
        writer = stream.writable.getWriter()
        response = js.Response.new(stream.readable)

        async def write():
            encoder = js.TextEncoder.new()
            for text in ("a", "b"):
                await writer.write(encoder.encode(text))
            await writer.close()

        writing = asyncio.ensure_future(write())
        text = await response.text()
        await writing
        return text

    assert asyncio.run(main()) == "ab"


def test_an_abort_controller_stops_a_fetch(host):
    async def main():
        controller = js.AbortController.new()
        controller.abort()
        await js.fetch("http://a/", signal=controller.signal)

    with pytest.raises(JsException, match=r"^AbortError: The operation was aborted$"):
        asyncio.run(main())
    assert host.sent == []


def test_forms_and_files():
    async def main():
        form = js.FormData.new()
        form.append("a", "1")
        form.append("f", js.File.new(to_js(["x"]), "n.txt", type="t/x"))
        found = await js.Response.new(form).formData()
        file = found.get("f")
        return found.get("a"), file.name, file.type, await file.text()

    assert asyncio.run(main()) == ("1", "n.txt", "t/x", "x")


def test_undefined_properties_are_none():
    assert js.Request.new("http://a").cf is None
    assert js.Response.new("x").cf is None
    assert js.Response.new(None).body is jsnull
