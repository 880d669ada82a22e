"""`workers.fetch` and `pyodide.http.pyfetch` (python-api.md 1.10)."""

import asyncio
from http import HTTPMethod

import pytest

import emulator.runtime.web  # noqa: F401 - fills `js`
from emulator.errors import OutboundDenied
from emulator.runtime import js
from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.sdk import Request, Response, fetch
from emulator.runtime.sdk.http import AbortError, pyfetch
from emulator.values import JsException

GENERATION_28 = "python_workers_20250116"


def run(*arguments, **options):
    async def main():
        return await fetch(*arguments, **options)

    return asyncio.run(main())


def test_a_request_is_sent_and_a_response_comes_back(host):
    response = run(
        "http://a/b", method=HTTPMethod.POST, headers={"X-A": "1"}, body=b"x", redirect="manual"
    )
    assert host.sent == [WebRequest("POST", "http://a/b", (("x-a", "1"),), b"x", "manual")]
    assert type(response) is Response
    assert (response.status, response.status_text) == (200, "OK")
    assert asyncio.run(response.text()) == "hello"


@pytest.mark.parametrize(
    "resource",
    [
        lambda: "http://a/b",
        lambda: Request("http://a/b"),
        lambda: js.Request.new("http://a/b"),
    ],
)
def test_resources_of_every_kind(host, resource):
    run(resource(), headers={"a": "b"})
    assert host.sent == [WebRequest("GET", "http://a/b", (("a", "b"),), b"")]


def test_options_are_keywords_only():
    text = r"fetch\(\) takes 1 positional argument but 2 were given"
    with pytest.raises(TypeError, match=text):
        run("http://a/", {"method": "POST"})


def test_a_dict_is_no_json_body(host):
    run("http://a/", method="POST", body={"a": 1})
    assert host.sent[0].body == b"[object Object]"


def test_headers_may_be_pairs(host):
    run("http://a/", headers=[("a", "1"), ("a", "2")])
    assert host.sent[0].headers == (("a", "1"), ("a", "2"))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ConnectionRefusedError("x"), "Network connection lost."),
        (OutboundDenied("mock it"), "mock it"),
    ],
)
def test_a_failure_is_an_abort_error(host, answer, text):
    host.answer = answer
    with pytest.raises(AbortError, match=f"^{text}$") as caught:
        run("http://a/")
    assert isinstance(caught.value, OSError)
    assert caught.value.__cause__ is answer


def test_on_pyodide_026_a_failure_is_a_plain_os_error(host):
    host.flags = host.flags - {GENERATION_28}
    host.answer = ConnectionRefusedError("x")
    with pytest.raises(OSError, match=r"^Network connection lost.$") as caught:
        run("http://a/")
    assert type(caught.value) is OSError


def test_an_invalid_url_is_an_abort_error_and_javascripts_own_on_314(host):
    with pytest.raises(AbortError, match=r"^Invalid URL: nope$"):
        run("nope")
    host.flags = host.flags | {"python_workers_314"}
    with pytest.raises(JsException, match=r"^TypeError: Invalid URL: nope$"):
        run("nope")


def test_a_signal_aborts(host):
    controller = js.AbortController.new()
    controller.abort()
    with pytest.raises(AbortError, match=r"^The operation was aborted$"):
        run("http://a/", signal=controller.signal)
    assert host.sent == []


def test_a_fetcher_takes_the_place_of_fetch(host):
    seen = []

    async def fetcher(resource, init):
        seen.append((str(resource), init.method))
        return js.Response.new("mine", status=201)

    response = run("http://a/", method="PUT", fetcher=fetcher)
    assert (response.status, asyncio.run(response.text())) == (201, "mine")
    assert (seen, host.sent) == ([("http://a/", "PUT")], [])
    host.flags = host.flags | {"python_workers_314"}
    run("http://a/", method="PUT", fetcher=fetcher)
    assert seen[1][0] == "[object Request]"


def test_raise_for_status_names_the_url(host):
    host.answer = WebResponse(404, "Not Found", (), b"", "http://a/final")
    with pytest.raises(OSError, match=r"^404 Client Error: Not Found for url: http://a/final$"):
        run("http://a/").raise_for_status()


def test_pyfetch_returns_pyodides_response_which_can_be_aborted(host):
    async def main():
        response = await pyfetch("http://a/", method="POST", body="x")
        assert (response.status, response.headers) == (200, {"content-type": "text/plain"})
        response.abort("enough")
        await response.text()

    with pytest.raises(AbortError, match=r"^enough$"):
        asyncio.run(main())
    assert host.sent[0].method == "POST"


def test_pyfetch_fails_with_an_abort_error(host):
    host.answer = ConnectionRefusedError("x")

    async def main():
        await pyfetch("http://a/")

    with pytest.raises(AbortError, match=r"^Network connection lost.$"):
        asyncio.run(main())
