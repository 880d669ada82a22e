"""Who may use the control pages: host, origin, token, size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.server import guard
from emulator.server.guard import Guard, Refused

if TYPE_CHECKING:
    from served_project import Project


def status(
    rules: Guard, method: str = "GET", *, acts: bool = False, query: str = "", **h: str
) -> int:
    headers = {"host": "localhost:8787"} | {
        key.replace("_", "-"): value for key, value in h.items()
    }
    try:
        rules.check(method, headers, query, acts=acts)
    except Refused as error:
        return error.status
    return 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:8787", 200),
        ("LOCALHOST", 200),
        ("jobs.localhost:8787", 200),
        ("127.0.0.1:8787", 200),
        ("127.9.9.9", 200),
        ("[::1]:8787", 200),
        ("rebound.example:8787", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil.example#localhost", 403),
        ("", 403),
    ],
)
def test_only_names_of_this_machine_are_answered(host: str, expected: int) -> None:
    assert status(Guard(), host=host) == expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:8787", 200),
        ("http://LOCALHOST:8787", 200),
        ("http://localhost:3000", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ],
)
def test_a_post_of_another_origin_is_refused(origin: str, expected: int) -> None:
    assert status(Guard(), "POST", origin=origin) == expected


def test_a_request_of_another_site_is_refused_but_a_link_that_changes_nothing() -> None:
    cross = {"sec_fetch_site": "cross-site"}
    assert status(Guard(), **cross, sec_fetch_mode="no-cors") == 403
    assert status(Guard(), sec_fetch_site="same-site", sec_fetch_mode="cors") == 403
    assert status(Guard(), **cross, sec_fetch_mode="navigate") == 200
    assert status(Guard(), "POST", **cross, sec_fetch_mode="navigate") == 403
    assert status(Guard(), **cross, sec_fetch_mode="navigate", acts=True) == 403
    assert status(Guard(), sec_fetch_site="same-origin", acts=True) == 200
    assert status(Guard(), sec_fetch_site="none", sec_fetch_mode="navigate", acts=True) == 200


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 401),
        ({"authorization": "Bearer s3cret"}, 200),
        ({"authorization": "bearer s3cret"}, 200),
        ({"authorization": "Basic s3cret"}, 401),
        ({"authorization": "Bearer s3cre"}, 401),
        ({"cookie": "emulator_token=s3cret"}, 200),
        ({"cookie": "a=b; emulator_token=no"}, 401),
        ({"query": "x=1&token=s3cret"}, 200),
        ({"query": "token="}, 401),
    ],
)
def test_elsewhere_the_token_is_asked_for(given: Any, expected: int) -> None:
    assert status(Guard("s3cret"), host="192.0.2.1:8787", **given) == expected


def test_a_long_body_is_refused_before_it_is_read() -> None:
    assert status(Guard(), "POST", content_length=str(guard.MOST_BYTES)) == 200
    assert status(Guard(), "POST", content_length=str(guard.MOST_BYTES + 1)) == 413


@pytest.mark.asyncio
async def test_a_long_body_without_a_length_is_refused_too(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_BYTES", 1000)

    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * 100

    async with project.served() as served:
        answer = await served.client.post("/cdn-cgi/emulator/clock", content=chunks())
        assert answer.status_code == 413


@pytest.mark.asyncio
async def test_control_pages_refuse_what_workers_may_get(project: Project) -> None:
    async with project.served() as served:
        evil = {"host": "rebound.example"}
        assert (await served.client.get("/", headers=evil)).status_code == 200
        for path in ("/cdn-cgi/emulator/status", "/cdn-cgi/handler/scheduled"):
            assert (await served.client.get(path, headers=evil)).status_code == 403
        answer = await served.client.post(
            "/cdn-cgi/emulator/clock",
            headers={"origin": "http://evil.example"},
            json={"advance": 60},
        )
        assert answer.status_code == 403
        answer = await served.client.get(
            "/cdn-cgi/handler/scheduled", headers={"sec-fetch-site": "cross-site"}
        )
        assert answer.status_code == 403
        assert served.logs == []


@pytest.mark.asyncio
async def test_a_browser_brings_the_token_once(project: Project) -> None:
    async with project.served(token="s3cret") as served:
        assert (await served.client.get("/cdn-cgi/emulator/status")).status_code == 401
        answer = await served.client.get("/cdn-cgi/emulator/status?token=s3cret")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/cdn-cgi/emulator/status"
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert (await served.client.get("/cdn-cgi/emulator/status")).status_code == 200
        assert (await served.client.get("/")).status_code == 200
