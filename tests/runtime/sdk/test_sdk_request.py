"""`workers.Request` (python-api.md 1.10)."""

import asyncio
from http import HTTPMethod

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.host import WebRequest
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import jsnull
from emulator.runtime.sdk import FormData, Request
from emulator.runtime.web.boundary import request_from_web
from emulator.values import JsException


def incoming(method="POST", headers=(), body=b"body"):
    return Request(wrap(request_from_web(WebRequest(method, "http://a/b?c", headers, body))))


def read(method, *arguments):
    async def main():
        return await method(*arguments)

    return asyncio.run(main())


def test_properties_of_an_incoming_request():
    request = incoming()
    assert (request.url, request.method, request.redirect) == (
        "http://a/b?c",
        HTTPMethod.POST,
        "manual",
    )
    assert request.method == "POST"
    assert f"{request.method}" == "POST"
    assert (request.cf, request.body_used, request.cache) == (None, False, None)
    assert (request.integrity, request.keepalive) == ("", False)
    assert str(request.body) == "[object ReadableStream]"
    assert incoming("GET", body=b"").body is jsnull
    assert request.js_object is request._js_request
    assert request.js_object.method == "POST"
    assert repr(request) == "Request(method='POST', url='http://a/b?c')"


def test_cf_is_a_proxy():
    request = Request("http://a", cf=to_js({"colo": "X"}, dict_converter=js.Object.fromEntries))
    assert request.cf.colo == "X"


def test_every_way_to_read_the_body():
    async def main():
        return (
            await incoming().text(),
            await incoming().bytes(),
            (await incoming().buffer()).to_bytes(),
            await incoming(body=b'{"a": 1.5}').json(parse_float=str),
            await (await incoming().blob()).text(),
        )

    assert asyncio.run(main()) == ("body", b"body", b"body", {"a": "1.5"}, "body")


@pytest.mark.parametrize("name", ["text", "json", "bytes", "buffer", "blob", "form_data"])
def test_a_second_read_is_an_os_error(name):
    async def main():
        request = incoming()
        await request.text()
        await getattr(request, name)()

    with pytest.raises(OSError, match=r"^Body already used$"):
        asyncio.run(main())


def test_a_used_request_cannot_be_cloned():
    request = incoming()
    copy = request.clone()
    assert (read(request.text), read(copy.text)) == ("body", "body")
    with pytest.raises(OSError, match=r"^Body already used$"):
        request.clone()


def test_forms_are_read():
    kind = (("content-type", "application/x-www-form-urlencoded"),)
    form = read(incoming(headers=kind, body=b"a=1&a=2").form_data)
    assert (form["a"], form.get_all("a")) == ("1", ["1", "2"])
    with pytest.raises(TypeError, match=r"^Parsing a Body as FormData requires a Content-Type"):
        read(incoming().form_data)


@pytest.mark.parametrize("method", ["PROPFIND", "PURGE"])
def test_a_method_unknown_to_python_is_a_key_error(method):
    with pytest.raises(KeyError, match=method):
        incoming(method).method  # noqa: B018


@pytest.mark.parametrize("name", ["formData", "arrayBuffer", "bodyUsed", "args", "path"])
def test_javascripts_names_do_not_exist(name):
    with pytest.raises(AttributeError):
        getattr(incoming(), name)


@pytest.mark.parametrize(
    "name", ["credentials", "destination", "mode", "referrer", "referrer_policy"]
)
def test_what_the_runtime_lacks_is_an_attribute_error(name):
    with pytest.raises(AttributeError):
        getattr(incoming(), name)


def test_a_request_is_made_from_a_url_and_options():
    request = Request(
        "http://a/b", method=HTTPMethod.PUT, headers={"X-A": "1"}, body="x", redirect="manual"
    )
    assert (request.method, request.headers["x-a"], request.redirect) == ("PUT", "1", "manual")
    assert read(request.text) == "x"
    assert read(Request("http://a", method="POST", body=b"b").bytes) == b"b"
    form = Request("http://a", method="POST", body=FormData({"a": "1"}))
    assert read(form.form_data)["a"] == "1"


def test_a_request_is_made_from_another():
    request = Request(Request("http://a", method="POST", body="x"), headers=[("z", "2")])
    assert (request.method, request.headers["z"], read(request.text)) == ("POST", "2", "x")


def test_a_js_request_takes_no_options():
    with pytest.raises(ValueError, match=r"^Expected no options when constructing Request"):
        Request(js.Request.new("http://a"), method="POST")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"headers": ("a", "b")}, TypeError("Received unexpected type for headers argument")),
        (
            {"body": "x"},
            JsException("TypeError", "Request with a GET or HEAD method cannot have a body."),
        ),
        ({"method": "nope"}, JsException("TypeError", "Invalid HTTP method string: nope")),
    ],
)
def test_wrong_options_are_refused(options, error):
    with pytest.raises(type(error)) as caught:
        Request("http://a", **options)
    assert str(caught.value) == str(error)
