"""`workers.Response` (python-api.md 1.10)."""

import asyncio
from http import HTTPStatus

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.sdk import Blob, FetchResponse, FormData, Response
from emulator.runtime.sdk.headers import HTTPMessageMapping
from emulator.runtime.sdk.http import AbortError, BodyUsedError, HttpStatusError
from emulator.runtime.sdk.http import FetchResponse as PyodideResponse
from emulator.values import JsException


def read(method, *arguments):
    async def main():
        return await method(*arguments)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("make", "text", "content_type"),
    [
        (lambda: "é", "é", "text/plain;charset=UTF-8"),
        (lambda: b"x", "x", None),
        (lambda: None, "", None),
        (lambda: js.Blob.new(to_js(["x"]), type="t/x"), "x", "t/x"),
        (lambda: js.ArrayBuffer.new(2), "\0\0", None),
        (lambda: to_js(b"ab"), "ab", None),
        (
            lambda: js.URLSearchParams.new("a=1"),
            "a=1",
            "application/x-www-form-urlencoded;charset=UTF-8",
        ),
        (lambda: js.Response.new("s").body, "s", None),
        (lambda: js.Response.new("r", headers=to_js([["content-type", "q/z"]])), "r", "q/z"),
    ],
)
def test_every_accepted_body_is_read(make, text, content_type):
    async def main():
        response = Response(make())
        return await response.text(), response.headers["Content-Type"]

    assert asyncio.run(main()) == (text, content_type)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: {"a": 1}, "dict"),
        (lambda: [1], "list"),
        (lambda: 5, "int"),
        (lambda: bytearray(b"x"), "bytearray"),
        (lambda: memoryview(b"x"), "memoryview"),
        (lambda: Blob("x"), "Blob"),
        (lambda: js.Object.new(), "Object"),
        (lambda: js.Headers.new(), "Headers"),
    ],
)
def test_other_bodies_are_refused(make, name):
    with pytest.raises(TypeError, match=f"^Unsupported type in Response: {name}$"):
        Response(make())


def test_a_js_response_takes_no_options():
    for options in ({"status": 200}, {"status_text": "x"}, {"headers": {}}):
        with pytest.raises(ValueError, match=r"^Expected no options when constructing Response"):
            Response(js.Response.new("x"), **options)


@pytest.mark.parametrize(
    "headers",
    [{"X-A": 1, "x-b": True}, [("X-A", "1"), ("x-b", "true")], [["X-A", 1], ["x-b", True]]],
)
def test_headers_are_a_dict_or_a_list_of_pairs(headers):
    found = Response("x", headers=headers).headers
    assert (found["x-a"], found["X-B"]) == ("1", "true")


def test_headers_may_be_js_headers():
    given = js.Headers.new({"a": "b"}.items())
    assert Response("x", headers=given).headers["a"] == "b"


@pytest.mark.parametrize("headers", [(("a", "b"),), "a: b", 5, HTTPMessageMapping])
def test_other_headers_are_refused(headers):
    with pytest.raises(TypeError, match=r"^Received unexpected type for headers argument$"):
        Response("x", headers=headers)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (lambda: Response("x", headers={"a b": "c"}), "TypeError: Invalid header name."),
        (lambda: Response("x", headers={"a": "b\nc"}), "TypeError: Invalid header value."),
        (
            lambda: Response("x", status=600),
            "RangeError: Responses may only be constructed with status codes in the range 200 to "
            "599, inclusive.",
        ),
        (
            lambda: Response("x", status=HTTPStatus.NO_CONTENT),
            "TypeError: Response with null body status (101, 204, 205, or 304) cannot have a body.",
        ),
    ],
)
def test_the_constructor_raises_javascripts_errors(action, error):
    with pytest.raises(JsException) as caught:
        action()
    assert str(caught.value) == error


def test_the_status_is_an_int_or_an_http_status():
    assert Response("x", status=404).status == 404
    assert Response("x", HTTPStatus.IM_A_TEAPOT).status == 418
    # As upstream: 0 is no status at all.
    assert Response("x", status=0).status == 200


def test_properties():
    response = Response("x", 404, "Nope", {"a": "b"})
    assert (response.status, response.status_text, response.ok) == (404, "Nope", False)
    assert (response.redirected, response.type, response.url) == (False, "default", "")
    assert response.js_object is response.js_response
    assert response.js_object.status == 404
    assert repr(response) == (
        "Response(status=404, status_text='Nope', content_type='text/plain;charset=UTF-8')"
    )
    assert Response(None).body is None
    assert str(response.body) == "[object ReadableStream]"


def test_every_way_to_read_the_body():
    async def main():
        return (
            await Response("a").text(),
            await Response("a").string(),
            await Response('{"a": 1}').json(),
            await Response("a").bytes(),
            (await Response("a").buffer()).to_bytes(),
            bytes(await Response("a").memoryview()),
            await (await Response("a").blob()).text(),
        )

    assert asyncio.run(main()) == ("a", "a", {"a": 1}, b"a", b"a", b"a", "a")


@pytest.mark.parametrize(
    "name", ["text", "string", "json", "bytes", "buffer", "memoryview", "blob", "form_data"]
)
def test_a_second_read_is_a_body_used_error(name):
    async def main():
        response = Response("x")
        await response.text()
        assert response.body_used
        await getattr(response, name)()

    with pytest.raises(BodyUsedError, match=r"^Response body is already used$") as caught:
        asyncio.run(main())
    assert isinstance(caught.value, OSError)


def test_a_locked_body_raises_an_abort_error():
    async def main():
        response = Response("x")
        response.body.getReader()
        await response.text()

    with pytest.raises(AbortError, match=r"currently locked to a reader"):
        asyncio.run(main())


def test_a_form_is_sent_and_read():
    async def main():
        response = Response(FormData({"a": "1"}))
        assert response.headers["content-type"].startswith("multipart/form-data; boundary=")
        return dict((await response.form_data()).items())

    assert asyncio.run(main()) == {"a": "1"}


@pytest.mark.parametrize("name", ["form_data", "formData"])
def test_a_body_that_is_no_form_is_pythons_type_error(name):
    with pytest.raises(TypeError, match=r"^Unrecognized Content-Type header value"):
        read(getattr(Response("x"), name))


@pytest.mark.parametrize("make", [Response.json, Response.from_json])
def test_json_is_written_as_python_does(make):
    response = make({"field": 42, "name": "é"}, status=201, headers={"a": "b"})
    assert (response.status, response.headers["content-type"]) == (201, "application/json")
    assert read(response.text) == '{"field": 42, "name": "\\u00e9"}'


def test_json_keeps_a_given_content_type_and_takes_js_values():
    response = Response.json([1], headers={"Content-Type": "x/y"})
    assert response.headers["content-type"] == "x/y"
    assert read(Response.json(to_js([1, 2])).text) == "[1,2]"


def test_json_refuses_what_it_cannot_write():
    with pytest.raises(TypeError, match=r"Object of type set is not JSON serializable"):
        Response.json({1})
    with pytest.raises(ValueError, match=r"^Responses may only be constructed with status codes"):
        Response.json({}, status=600)
    with pytest.raises(TypeError, match=r"^Response with null body status"):
        Response.json({}, status=204)


def test_redirect_is_a_js_response():
    response = Response.redirect("http://a.b/c")
    assert str(response) == "[object Response]"
    assert (response.status, response.headers.get("location")) == (302, "http://a.b/c")
    assert Response.redirect("http://a.b/c", HTTPStatus.SEE_OTHER).status == 303
    with pytest.raises(ValueError, match=r"^200 is not a redirect status code"):
        Response.redirect("http://a.b", 200)
    with pytest.raises(TypeError, match=r"^Unable to parse URL: /x$"):
        Response.redirect("/x")


def test_replace_body_keeps_status_and_headers():
    response = Response("x", 404, headers={"a": "b"}).replace_body("y")
    assert (response.status, response.headers["a"], read(response.text)) == (404, "b", "y")


def test_a_clone_is_pyodides_response():
    response = Response("x")
    copy = response.clone()
    assert type(copy) is PyodideResponse
    assert not isinstance(copy, FetchResponse)
    assert copy.headers == {"content-type": "text/plain;charset=UTF-8"}
    assert (read(response.text), read(copy.text)) == ("x", "x")
    with pytest.raises(BodyUsedError):
        response.clone()


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "404 Client Error: Not Found for url: "),
        (503, "503 Server Error: Not Found for url: "),
    ],
)
def test_raise_for_status(status, text):
    with pytest.raises(HttpStatusError) as caught:
        Response("x", status, "Not Found").raise_for_status()
    assert (str(caught.value), caught.value.status) == (text, status)
    assert isinstance(caught.value, OSError)
    Response("x", 302).raise_for_status()


def test_abort_needs_a_controller():
    with pytest.raises(ValueError, match=r"^abort_controller is not set$"):
        Response("x").abort()


@pytest.mark.parametrize("name", ["new", "arrayBuffer", "statusText", "bodyUsed", "error"])
def test_javascripts_names_do_not_exist(name):
    with pytest.raises(AttributeError):
        getattr(Response, name)
    with pytest.raises(AttributeError):
        getattr(Response("x"), name)


def test_the_frozen_sdk_shows_headers_as_a_dict(host):
    """python-api.md 1.13."""
    host.flags = host.flags - {"enable_python_external_sdk"}
    headers = Response("x", headers={"A": "b"}).headers
    assert type(headers) is dict
    assert headers == {"a": "b", "content-type": "text/plain;charset=UTF-8"}


def test_a_subclass_may_call_the_constructor():
    class Text(Response):
        def __init__(self, text):
            super().__init__(text, headers={"x": "y"})

    assert Text("a").headers["x"] == "y"
