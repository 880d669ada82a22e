"""Requests to a Worker with assets: who answers, and what; and what the Worker gets of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from assets_bench import PAGES, Default, folder, running
from workers import Response, WorkerEntrypoint

from emulator import Emulator, WorkerCrashed, sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

NAVIGATE = {"Sec-Fetch-Mode": "navigate"}


async def texts(emulator: Emulator, *paths: str, **options: Any) -> list[str]:
    return [(await emulator.fetch(path, **options)).text for path in paths]


async def test_assets_answer_before_the_worker(tmp_path: Path) -> None:
    async with running(tmp_path) as emulator:
        response = await emulator.fetch("/css/site.css")
        assert response.status_code == 200
        assert response.text == "body {}"
        etag = response.headers["etag"]
        assert dict(response.headers) == {
            "etag": etag,
            "content-type": "text/css; charset=utf-8",
            "cache-control": "public, max-age=0, must-revalidate",
            "cf-cache-status": "HIT",
            "content-length": "7",
        }
        assert await texts(emulator, "/", "/about", "/api") == [
            PAGES["index.html"],
            PAGES["about.html"],
            "worker GET http://localhost/api",
        ]
        assert emulator.findings.unexpected() == []


async def test_what_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    """handler.test.ts: strong and weak tags, and others."""
    async with running(tmp_path) as emulator:
        etag = (await emulator.fetch("/about")).headers["etag"]
        assert len(etag) == 34
        known = [etag, f"W/{etag}", '"other"', f'"x", {etag}']
        found = [
            await emulator.fetch("/about", headers={"If-None-Match": value}) for value in known
        ]
        assert [one.status_code for one in found] == [304, 304, 200, 200]
        assert [one.text for one in found][:2] == ["", ""]
        assert found[0].headers["etag"] == etag


async def test_a_changed_file_has_another_tag_and_the_same_one_the_same(tmp_path: Path) -> None:
    tags = []
    for text in ("a", "b", "a"):
        async with running(tmp_path, {"x.txt": text}) as emulator:
            tags.append((await emulator.fetch("/x.txt")).headers["etag"])
    assert tags[0] == tags[2] != tags[1]


async def test_methods(tmp_path: Path) -> None:
    """GET and HEAD are answered; others are refused where there is something."""
    async with running(tmp_path) as emulator:
        head = await emulator.fetch("/css/site.css", method="HEAD")
        assert (head.status_code, head.text) == (200, "")
        assert "content-length" not in head.headers
        assert head.headers["content-type"] == "text/css; charset=utf-8"
        post = await emulator.fetch("/about", method="POST")
        assert (post.status_code, post.text) == (405, "")
        assert await texts(emulator, "/api", method="POST") == ["worker POST http://localhost/api"]


async def test_requests_with_credentials_or_ranges_are_not_to_be_cached(tmp_path: Path) -> None:
    async with running(tmp_path) as emulator:
        for name in ("Authorization", "Range"):
            response = await emulator.fetch("/css/site.css", headers={name: "bytes=0-1"})
            assert (response.status_code, response.text) == (200, "body {}")
            assert "cache-control" not in response.headers


@pytest.mark.parametrize(
    ("handling", "date", "flags", "headers", "by_assets"),
    [
        ("none", None, None, {}, False),
        ("none", None, None, NAVIGATE, False),
        ("404-page", None, None, {}, False),
        ("404-page", None, None, NAVIGATE, True),
        ("404-page", None, None, {"Sec-Fetch-Mode": "cors"}, False),
        ("404-page", "2025-03-31", None, NAVIGATE, False),
        ("404-page", "2025-04-01", None, NAVIGATE, True),
        ("404-page", "2025-03-31", ["assets_navigation_prefers_asset_serving"], NAVIGATE, True),
        ("404-page", None, ["assets_navigation_has_no_effect"], NAVIGATE, False),
        ("single-page-application", None, None, NAVIGATE, True),
        ("single-page-application", None, None, {}, False),
    ],
)
async def test_navigation_may_prefer_the_assets(
    tmp_path: Path,
    handling: str,
    date: str | None,
    flags: list[str] | None,
    headers: dict[str, str],
    by_assets: bool,
) -> None:
    """canFetch of the asset Worker."""

    class Both(Default):
        # Before 2025-08-14 the method has this name.
        async def on_fetch(self, request: Any) -> Any:
            return await self.fetch(request)

    async with running(
        tmp_path, main=Both, date=date, flags=flags, not_found_handling=handling
    ) as emulator:
        response = await emulator.fetch("/app/page", headers=headers)
        expected = {"404-page": (404, PAGES["404.html"])}.get(handling, (200, PAGES["index.html"]))
        if not by_assets:
            expected = (200, "worker GET http://localhost/app/page")
        assert (response.status_code, response.text) == expected


@pytest.mark.parametrize(
    ("first", "path", "by_assets"),
    [
        (True, "/about", False),
        (False, "/about", True),
        (["/api/*"], "/about", True),
        (["/api/*"], "/api/about", False),
        (["/about"], "/about", False),
        (["/*", "!/css/*"], "/about", False),
        (["/*", "!/css/*"], "/css/site.css", True),
        (["/api/*"], "/app/page", True),
    ],
)
async def test_the_worker_may_come_first(
    tmp_path: Path, first: bool | list[str], path: str, by_assets: bool
) -> None:
    """The router; with a list of rules, what is not there is the assets' affair, too."""
    async with running(
        tmp_path, run_worker_first=first, not_found_handling="single-page-application"
    ) as emulator:
        (text,) = await texts(emulator, path)
        assert text.startswith("worker") is not by_assets


async def test_a_worker_without_code_answers_with_assets_only(tmp_path: Path) -> None:
    async with running(tmp_path, main=None) as emulator:
        assert await texts(emulator, "/about") == [PAGES["about.html"]]
        missing = await emulator.fetch("/nothing")
        assert (missing.status_code, missing.content) == (404, b"")
        assert emulator.findings.unexpected() == []
        outcome, error = await emulator.scheduled()
        assert (outcome, str(error)) == (
            "exception",
            "Error: Handler does not export a scheduled() function",
        )
    async with running(tmp_path, main=None, not_found_handling="404-page") as emulator:
        missing = await emulator.fetch("/nothing")
        assert (missing.status_code, missing.text) == (404, PAGES["404.html"])


class Asking(WorkerEntrypoint):
    """Hands requests on to the assets."""

    async def fetch(self, request: Any) -> Any:
        return await self.env.ASSETS.fetch(request)


async def test_a_worker_hands_a_request_on(tmp_path: Path) -> None:
    """The request that came in does not follow redirects, and the answer leads the client on."""
    async with running(tmp_path, main=Asking, binding="ASSETS", run_worker_first=True) as emulator:
        assert await texts(emulator, "/about") == [PAGES["about.html"]]
        response = await emulator.fetch("/about.html")
        assert (response.status_code, response.headers["location"]) == (307, "/about")
        assert (await emulator.fetch("/nothing")).status_code == 404


@pytest.mark.parametrize("date", ["2026-04-20", "2026-09-08"])
async def test_a_worker_asks_for_an_asset(tmp_path: Path, date: str) -> None:
    found: list[Any] = []

    class Worker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            answer = await self.env.ASSETS.fetch("https://any.example/about.html")
            found.extend([answer.status, answer.url, answer.redirected, await answer.text()])
            try:
                await self.env.ASSETS.fetch("/about")
            except Exception as error:
                found.append(str(error).removeprefix("TypeError: "))
            return Response("done")

    async with running(tmp_path, main=Worker, date=date, binding="ASSETS") as emulator:
        assert await texts(emulator, "/x") == ["done"]
        assert found == [
            *(200, "https://any.example/about", True, PAGES["about.html"]),
            "Invalid URL: /about",
        ]
        calls = [event.data for event in emulator.trace if event.kind == "assets"]
        assert [(call["status"], call.get("asset")) for call in calls] == [
            (307, None),
            (200, "/about.html"),
        ]
        answer = await emulator.env.ASSETS.fetch("http://x/css/site.css")
        assert await answer.text() == "body {}"


async def test_assets_have_no_methods_but_fetch(tmp_path: Path) -> None:
    class Worker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            try:
                return await self.env.ASSETS.get("/about")
            except Exception as error:
                return Response(str(error))

    async with running(tmp_path, main=Worker, binding="ASSETS") as emulator:
        assert await texts(emulator, "/x") == [
            'TypeError: The RPC receiver does not implement the method "get".'
        ]


async def test_redirects_without_an_end_are_given_up(tmp_path: Path) -> None:
    class Worker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            try:
                return await self.env.ASSETS.fetch("https://any.example/a")
            except Exception as error:
                return Response(str(error))

    files = {"_redirects": "/a /b\n/b /a"}
    async with running(tmp_path, files, main=Worker, binding="ASSETS") as emulator:
        assert await texts(emulator, "/x") == ["Too many redirects."]


async def test_assets_come_first_for_other_workers_too(tmp_path: Path) -> None:
    """The router is in front of the default entrypoint, whoever asks."""

    class Worker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            answer = await self.env.SITE.fetch("https://any.example/about")
            missing = await self.env.SITE.fetch("https://any.example/nothing")
            return Response.json([answer.status, await answer.text(), missing.status])

    site = {"name": "site", "assets": {"directory": str(folder(tmp_path, PAGES))}}
    worker = {"main": Worker, "services": [{"binding": "SITE", "service": "site"}]}
    async with Emulator([worker, site]) as emulator:
        response = await emulator.fetch("/")
        assert response.json() == [200, PAGES["about.html"], 404]
        asked = [event for event in emulator.trace if event.kind == "assets"]
        assert [event.subject for event in asked] == ["assets SITE", "assets SITE"]
        assert emulator.findings.unexpected() == []


# Faults.


@pytest.mark.parametrize("action", ["fail", "lose_reply", "crash_before", "crash_after"])
async def test_each_action_at_a_call(tmp_path: Path, action: str) -> None:
    class Worker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            try:
                return await self.env.ASSETS.fetch("https://any.example/about")
            except Exception as error:
                return Response(str(error))

    plan = f"service.ASSETS.fetch#1:{action}"
    async with running(
        tmp_path, main=Worker, binding="ASSETS", arguments={"faults": plan}
    ) as emulator:
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/x")
        else:
            assert await texts(emulator, "/x") == ["Network connection lost."]
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        asked = [event for event in emulator.trace if event.kind == "assets"]
        assert len(asked) == (action in ("lose_reply", "crash_after"))


async def test_no_fault_of_the_worker_strikes_what_assets_answer(tmp_path: Path) -> None:
    plan = "request.GET./about#1:crash_after"
    async with running(tmp_path, arguments={"faults": plan}) as emulator:
        assert await texts(emulator, "/about") == [PAGES["about.html"]]
        assert emulator.faults.sites == []
        assert [one.code for one in emulator.findings] == ["fault_not_fired"]
        kinds = [(event.kind, event.subject, event.data) for event in emulator.trace]
        url = "http://localhost/about"
        assert kinds == [
            ("request", "request GET /about", {"worker": "worker", "url": url}),
            ("response", "request GET /about", {"status": 200, "asset": "/about.html"}),
        ]


async def test_assets_are_there_after_everything(tmp_path: Path) -> None:
    async with running(tmp_path, arguments={"state": tmp_path.parent / "state"}) as emulator:
        await emulator.crash()
        await emulator.restart()
        await emulator.reset()
        assert await texts(emulator, "/about") == [PAGES["about.html"]]


async def test_a_reload_reads_the_folder_again(tmp_path: Path) -> None:
    async with running(tmp_path) as emulator:
        folder(tmp_path, {"new.txt": "new", "about.html": "changed", "_redirects": "/a /about"})
        assert await texts(emulator, "/new.txt") == ["worker GET http://localhost/new.txt"]
        await emulator.reload()
        assert await texts(emulator, "/new.txt", "/about") == ["new", "changed"]
        assert (await emulator.fetch("/a")).headers["location"] == "/about"


async def test_a_sweep_shares_the_folder_and_sees_when_it_changes(tmp_path: Path) -> None:
    seen = []

    async def scenario(emulator: Emulator) -> None:
        text = (await emulator.fetch("/x")).text
        seen.append(text if text in ("one", "two") else "")

    def config(text: str) -> dict[str, Any]:
        (tmp_path / "about.html").write_text(text)
        return {"main": Asker, "assets": {"directory": str(tmp_path), "binding": "ASSETS"}}

    class Asker(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            return await self.env.ASSETS.fetch("https://any.example/about")

    for text in ("one", "two"):
        report = await sweep(scenario, config(text), classes="all", determinism="in-process")
        assert report.runs > 1
    assert [text for text in seen if text] == sorted(text for text in seen if text)
    assert {"one", "two"} <= set(seen)
