"""Every HTTP client in Worker code ends in the one outbound layer (python-api.md 4)."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import handler

from emulator import Emulator, WorkerCrashed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import respx

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://api.example/things"
SITE = "fetch.POST.api.example/things"

# How each sends a POST with the body `sent` and a header, for at most `LIMIT` seconds; the answer
# is its status, its text and a header.
CLIENTS = {
    "workers.fetch": """
from workers import fetch
found = await fetch(URL, method="POST", body="sent", headers={"X-Team": "a"})
answer = found.status, await found.text(), found.headers.get("x-from")
""",
    "js.fetch": """
import js
options = {"method": "POST", "body": "sent", "headers": js.Headers.new([["X-Team", "a"]])}
found = await js.fetch(URL, **options)
answer = found.status, await found.text(), found.headers.get("x-from")
""",
    "pyfetch": """
from pyodide.http import pyfetch
found = await pyfetch(URL, method="POST", body="sent", headers={"X-Team": "a"})
answer = found.status, await found.text(), found.headers.get("x-from")
""",
    "httpx": """
import httpx
async with httpx.AsyncClient() as client:
    found = await client.post(URL, content="sent", headers={"X-Team": "a"}, timeout=LIMIT)
answer = found.status_code, found.text, found.headers.get("x-from")
""",
    "httpx.Client": """
import httpx
with httpx.Client() as client:
    found = client.post(URL, content="sent", headers={"X-Team": "a"}, timeout=LIMIT)
answer = found.status_code, found.text, found.headers.get("x-from")
""",
    "httpx2": """
import httpx2
async with httpx2.AsyncClient() as client:
    found = await client.post(URL, content="sent", headers={"X-Team": "a"}, timeout=LIMIT)
answer = found.status_code, found.text, found.headers.get("x-from")
""",
    "httpx2.Client": """
import httpx2
found = httpx2.post(URL, content="sent", headers={"X-Team": "a"}, timeout=LIMIT)
answer = found.status_code, found.text, found.headers.get("x-from")
""",
    "requests": """
import requests
found = requests.post(URL, data="sent", headers={"X-Team": "a"}, timeout=LIMIT)
answer = found.status_code, found.text, found.headers.get("x-from")
""",
    "urllib3": """
import urllib3
found = urllib3.request("POST", URL, body="sent", headers={"X-Team": "a"}, timeout=LIMIT,
                        retries=False)
answer = found.status, found.data.decode(), found.headers.get("x-from")
""",
    "urllib.request": """
import urllib.request
request = urllib.request.Request(URL, b"sent", {"X-Team": "a"})
with urllib.request.urlopen(request, timeout=LIMIT) as found:
    answer = found.status, found.read().decode(), found.headers.get("x-from")
""",
    "aiohttp": """
import aiohttp
limit = aiohttp.ClientTimeout(LIMIT)
async with aiohttp.ClientSession(timeout=limit) as session:
    async with session.post(URL, data="sent", headers={"X-Team": "a"}) as found:
        answer = found.status, await found.text(), found.headers.get("x-from")
""",
}
# Those that wait without `await`.
SYNCHRONOUS = ("httpx.Client", "httpx2.Client", "requests", "urllib3", "urllib.request")
WITHOUT_LIMIT = ("workers.fetch", "js.fetch", "pyfetch")
PACKAGES = {"httpx2": "httpx2", "requests": "requests", "urllib3": "urllib3", "aiohttp": "aiohttp"}


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    package = PACKAGES.get(name.partition(".")[0])
    if package is not None:
        pytest.importorskip(package, reason=f"{package} is not installed")
    return name


def worker(folder: Path, client: str, *, limit: float = 60, url: str = URL, more: str = "") -> Any:
    """A Worker that asks once and answers `[status, text, header]`, or the error as text."""
    indented = "\n".join(f"    {line}" for line in CLIENTS[client].strip().splitlines())
    body = (
        f"URL, LIMIT = {url!r}, {limit}\ntry:\n{indented}\nexcept BaseException as error:\n"
        "    answer = f'{type(error).__name__}: {error}'\n"
        f"{more}\nreturn Response.json(answer)"
    )
    return handler(folder, body)


def seconds(emulator: Emulator) -> float:
    return (emulator.now - START).total_seconds()


def answers(router: respx.MockRouter, **options: Any) -> respx.Route:
    return router.post(URL).respond(201, text="made", headers={"X-From": "b"}, **options)


async def test_a_request_and_its_answer(
    tmp_path: Path, client: str, respx_mock: respx.MockRouter
) -> None:
    route = answers(respx_mock)
    async with Emulator(worker(tmp_path, client)) as emulator:
        assert (await emulator.fetch("/")).json() == [201, "made", "b"]
        sent = route.calls.last.request
        assert (sent.content, sent.headers["x-team"]) == (b"sent", "a")
        assert [site.name for site in emulator.faults.sites if "fetch" in site.name] == [SITE]
        kinds = [event.kind for event in emulator.trace if event.kind.endswith(("_out", "_in"))]
        assert kinds == ["request_out", "response_in"]
        assert list(emulator.findings) == []


async def test_the_next_emulator_is_taught_too(
    tmp_path: Path, client: str, respx_mock: respx.MockRouter
) -> None:
    answers(respx_mock)
    for folder in ("first", "second"):
        async with Emulator(worker(tmp_path / folder, client)) as emulator:
            assert (await emulator.fetch("/")).json() == [201, "made", "b"]


async def test_what_nothing_mocks_is_denied(tmp_path: Path, client: str) -> None:
    async with Emulator(worker(tmp_path, client)) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert isinstance(answer, str)
        (finding,) = emulator.findings
        assert finding.code == "outbound_unmocked"
        assert f'respx_mock.post("{URL}").respond(200)' in finding.message
        assert finding.location is not None
        assert "entry.py" in finding.location


async def test_a_slow_service_takes_virtual_time(
    tmp_path: Path, client: str, respx_mock: respx.MockRouter
) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return httpx.Response(201, text="made", headers={"X-From": "b"})

    respx_mock.post(URL).mock(side_effect=slow)
    async with Emulator(worker(tmp_path, client)) as emulator:
        both = await asyncio.gather(emulator.fetch("/"), emulator.fetch("/"))
        assert [one.json() for one in both] == [[201, "made", "b"]] * 2
        assert seconds(emulator) == 30


async def test_the_clients_own_limit_counts_in_virtual_time(
    tmp_path: Path, client: str, respx_mock: respx.MockRouter
) -> None:
    if client in WITHOUT_LIMIT:
        pytest.skip("it has no limit of its own")

    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return httpx.Response(201)

    respx_mock.post(URL).mock(side_effect=slow)
    async with Emulator(worker(tmp_path, client, limit=5)) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert "time" in answer.lower()
        assert seconds(emulator) == 5


async def test_the_fault_timeout(tmp_path: Path, client: str, respx_mock: respx.MockRouter) -> None:
    """The mock is called, and its answer never comes."""
    route = answers(respx_mock)
    limit = 100 if client in WITHOUT_LIMIT else 7
    config = worker(tmp_path, client, limit=limit)
    async with Emulator(config, faults=[f"{SITE}#1:timeout"]) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert isinstance(answer, str)
        assert route.call_count == 1
        assert seconds(emulator) == limit


@pytest.mark.parametrize(
    ("action", "calls", "status"),
    [
        ("fail", 0, None),
        ("status(503)", 0, 503),
        ("lose_reply", 1, None),
        ("lose_reply(504)", 1, 504),
    ],
)
async def test_faults(
    tmp_path: Path,
    client: str,
    action: str,
    calls: int,
    status: int | None,
    respx_mock: respx.MockRouter,
) -> None:
    route = answers(respx_mock)
    config = worker(tmp_path, client)
    async with Emulator(config, faults=[f"{SITE}#1:{action}"]) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert route.call_count == calls
        if status is None or client == "urllib.request":
            assert isinstance(answer, str)
            assert status is None or str(status) in answer
        else:
            assert answer[0] == status


@pytest.mark.parametrize(("action", "calls"), [("crash_before", 0), ("crash_after", 1)])
async def test_no_line_runs_after_a_power_cut(
    tmp_path: Path, client: str, action: str, calls: int, respx_mock: respx.MockRouter
) -> None:
    route = answers(respx_mock)
    config = worker(tmp_path, client, more="print('never')")
    async with Emulator(config, faults=[f"{SITE}#1:{action}"]) as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        await emulator.settle()
        assert route.call_count == calls
        assert list(emulator.logs) == []
        assert (await emulator.fetch("/")).json() == [201, "made", "b"]


async def test_a_failing_network(tmp_path: Path, client: str, respx_mock: respx.MockRouter) -> None:
    respx_mock.post(URL).mock(side_effect=httpx.ConnectError("no route to host"))
    async with Emulator(worker(tmp_path, client)) as emulator:
        answer = (await emulator.fetch("/")).json()
        hidden = client in WITHOUT_LIMIT  # `fetch` does not tell
        assert ("Network connection lost." if hidden else "no route to host") in answer
        assert list(emulator.findings) == []


async def test_a_body_that_comes_in_parts(
    tmp_path: Path, client: str, respx_mock: respx.MockRouter
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for part in (b"ma", b"d", b"e"):
            await asyncio.sleep(1)
            yield part

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(201, headers={"X-From": "b"}, content=parts())

    respx_mock.post(URL).mock(side_effect=respond)
    async with Emulator(worker(tmp_path, client)) as emulator:
        assert (await emulator.fetch("/")).json() == [201, "made", "b"]
        assert seconds(emulator) == 3


async def test_a_compressed_body(tmp_path: Path, client: str, respx_mock: respx.MockRouter) -> None:
    headers = {"X-From": "b", "Content-Encoding": "gzip"}
    respx_mock.post(URL).respond(201, content=gzip.compress(b"made"), headers=headers)
    async with Emulator(worker(tmp_path, client)) as emulator:
        assert (await emulator.fetch("/")).json() == [201, "made", "b"]


# -- what differs ---

REDIRECTED = {
    "requests": "import requests; f = requests.get(URL); r = [f.text, len(f.history)]",
    "urllib3": "import urllib3; r = [urllib3.request('GET', URL).data.decode(), 0]",
    "urllib.request": """
import urllib.request
f = urllib.request.urlopen(URL)
r = [f.read().decode(), f.url]
""",
    "aiohttp": """
import aiohttp
async with aiohttp.ClientSession() as session, session.get(URL) as f:
    r = [await f.text(), len(f.history)]
""",
    "httpx": """
import httpx
f = httpx.get(URL, follow_redirects=True)
r = [f.text, len(f.history)]
""",
}


@pytest.mark.parametrize(
    ("name", "expected", "sites"),
    [
        ("requests", ["there", 0], 1),
        ("urllib3", ["there", 0], 1),
        ("urllib.request", ["there", "https://api.example/there"], 2),
        ("aiohttp", ["there", 1], 2),
        ("httpx", ["there", 1], 2),
    ],
)
async def test_redirects(
    tmp_path: Path, name: str, expected: list[Any], sites: int, respx_mock: respx.MockRouter
) -> None:
    """By `fetch` for urllib3, as in Pyodide, and by the client for the others."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"{name} is not installed")
    respx_mock.get(URL).respond(302, headers={"Location": "/there"})
    respx_mock.get("https://api.example/there").respond(200, text="there")
    body = f"URL = {URL!r}\n{REDIRECTED[name]}\nreturn Response.json(r)"
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == expected
        met = [site.name for site in emulator.faults.sites if site.name.startswith("fetch.")]
        assert len(met) == sites


async def test_a_session_with_retries(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    """`time.sleep` of the back-off is real, so that there is none here."""
    pytest.importorskip("requests", reason="requests is not installed")
    respx_mock.get(URL).mock(
        side_effect=[httpx.Response(503), httpx.ConnectError("down"), httpx.Response(200, json=[1])]
    )
    body = f"""
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry
session = requests.Session()
session.mount("https://", HTTPAdapter(max_retries=Retry(3, status_forcelist=[503])))
session.headers["authorization"] = "Bearer token"
return Response.json(session.get({URL!r}, params={{"q": "x y"}}).json())
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == [1]
        assert respx_mock.calls.call_count == 3
        sent = respx_mock.calls.last.request
        assert sent.url.query == b"q=x+y"
        assert sent.headers["authorization"] == "Bearer token"


async def test_a_custom_transport_of_httpx(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL).mock(side_effect=[httpx.Response(503), httpx.Response(200, text="there")])
    body = f"""
import httpx
class Patient(httpx.BaseTransport):
    def __init__(self):
        self.inner = httpx.HTTPTransport()
    def handle_request(self, request):
        answer = self.inner.handle_request(request)
        return answer if answer.status_code < 500 else self.inner.handle_request(request)
with httpx.Client(transport=Patient()) as client:
    return Response(client.get({URL!r}).text)
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "there"
        assert len([site for site in emulator.faults.sites if "fetch.GET" in site.name]) == 2


async def test_a_stream_is_read_as_it_comes(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(1)
            yield b"%d" % number

    respx_mock.get(URL).mock(side_effect=lambda request: httpx.Response(200, content=parts()))
    body = f"""
import httpx
loop = asyncio.get_running_loop()
with httpx.stream("GET", {URL!r}) as found:
    return Response.json([[part, loop.time()] for part in found.iter_text()])
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == [["0", 1.0], ["1", 2.0], ["2", 3.0]]


@pytest.mark.parametrize("date", ["2026-09-07", "2025-09-01"])
async def test_urllib_has_no_sockets_in_older_runtimes(
    tmp_path: Path, date: str, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(URL).respond(200)
    body = f"""
import urllib.request
try:
    urllib.request.urlopen({URL!r})
except OSError as error:
    return Response(str(error))
"""
    flags = ["python_no_global_handlers"] if date < "2025-09-29" else []
    config = handler(tmp_path, body, compatibility_date=date, compatibility_flags=flags)
    async with Emulator(config) as emulator:
        text = (await emulator.fetch("/")).text
        assert "sockets are not available" in text
        assert "`fetch`, httpx, requests or aiohttp" in text
        emulator.findings.expect("outbound_unmocked")
        respx_mock.reset()
        respx_mock.clear()


@pytest.mark.parametrize(
    "attempt",
    [
        "import http.client; http.client.HTTPSConnection('api.example').request('GET', '/')",
        "import socket; socket.create_connection(('api.example', 443))",
    ],
)
async def test_sockets_are_refused(tmp_path: Path, attempt: str) -> None:
    body = f"""
try:
    {attempt}
except OSError as error:
    return Response(str(error))
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        text = (await emulator.fetch("/")).text
        assert "a connection to api.example:443 was attempted from Worker code" in text
        assert "`fetch`, httpx, requests or aiohttp" in text
        emulator.findings.expect("outbound_unmocked")


async def test_requests_cannot_wait_in_the_oldest_runtime(tmp_path: Path) -> None:
    """Without stack switching urllib3 looks for a browser's XMLHttpRequest."""
    pytest.importorskip("requests", reason="requests is not installed")
    body = f"""
import requests
try:
    requests.get({URL!r})
except AttributeError as error:
    return Response(str(error) + error.__notes__[0])
"""
    flags = ["python_no_global_handlers"]
    config = handler(tmp_path, body, compatibility_date="2025-09-01", compatibility_flags=flags)
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).text.startswith("XMLHttpRequesturllib3 waits by stack")


# -- libraries on top ---


async def test_openai_synchronous_and_not(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    url = "https://api.openai.com/v1/chat/completions"
    made = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "hello"},
            }
        ],
    }
    route = respx_mock.post(url).respond(200, json=made)
    body = """
import openai
ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
one = openai.OpenAI(api_key="k").chat.completions.create(**ask)
two = await openai.AsyncOpenAI(api_key="k").chat.completions.create(**ask)
return Response.json([each.choices[0].message.content for each in (one, two)])
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).json() == ["hello", "hello"]
        assert route.call_count == 2
        assert json.loads(route.calls.last.request.content)["model"] == "m"


async def test_boto3_reads_and_writes(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed")
    url = "https://bucket.s3.eu-west-1.amazonaws.com/key"
    put = respx_mock.put(url).respond(200, headers={"ETag": '"e"'})
    respx_mock.get(url).respond(200, content=b"stored")
    body = """
import boto3
s3 = boto3.client("s3", region_name="eu-west-1", aws_access_key_id="a",
                  aws_secret_access_key="s")
s3.put_object(Bucket="bucket", Key="key", Body=b"sent")
return Response(s3.get_object(Bucket="bucket", Key="key")["Body"].read().decode())
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "stored"
        assert b"sent" in put.calls.last.request.content


async def test_stripe_makes_a_customer(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    pytest.importorskip("stripe", reason="stripe is not installed")
    made = {"id": "cus_1", "object": "customer"}
    route = respx_mock.post("https://api.stripe.com/v1/customers").respond(200, json=made)
    body = """
import stripe
stripe.api_key = "sk"
return Response(stripe.Customer.create(email="a@example.com").id)
"""
    async with Emulator(handler(tmp_path, body)) as emulator:
        assert (await emulator.fetch("/")).text == "cus_1"
        assert route.calls.last.request.content == b"email=a%40example.com"


# -- allowed ---


async def test_an_allowed_request_is_really_sent(tmp_path: Path, client: str) -> None:
    with server() as url:
        async with Emulator(worker(tmp_path, client, url=url), outbound="allow") as emulator:
            assert (await emulator.fetch("/")).json() == [201, "made of sent", "b"]
            assert seconds(emulator) == 0
            assert len([site for site in emulator.faults.sites if "fetch" in site.name]) == 1
            assert list(emulator.findings) == []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = b"made of " + self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("X-From", "b")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def server() -> Iterator[str]:
    """A real server, and its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_address[1]}/things"
        finally:
            serving.shutdown()
            thread.join()
