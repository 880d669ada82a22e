"""The dashboard in a real browser: a server in this process, and a page that shows it.

The browser, the server and the emulator share the test's event loop, so that a test acts on the
emulator and looks at the page in turn. What the page does unseen (dialogs, errors, messages of the
console, requests to elsewhere) is kept, and a test ends by asserting that there was nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from chromium import _FLAGS, _NAMES
from dashboard_project import CONFIG, WORKER

from emulator.server.application import Application
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

PREFIX = "/cdn-cgi/emulator/"
WAIT = 10_000  # milliseconds


@asynccontextmanager
async def launched() -> AsyncIterator[Any]:
    """Start the browser; skips the test where there is none."""
    reason = "Playwright is not installed: pip install -e '.[dev]'"
    playwright = pytest.importorskip("playwright.async_api", reason=reason)
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium found on the PATH: apt-get install chromium")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=[*_FLAGS, *as_root])
        yield browser
        await browser.close()


class _Server(uvicorn.Server):
    """A server that leaves signals to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Dashboard:
    """One page of one server; `emulator` is what it shows."""

    def __init__(self, desk: Desk, page: Any, address: str) -> None:
        self.desk = desk
        self.page = page
        self.address = address
        self.noticed: list[str] = []
        self.refusals = False  # whether the test has the server refuse something
        page.set_default_timeout(WAIT)
        page.on("dialog", self._dismiss)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.noticed.append(f"error: {error}"))
        page.on("request", self._see)

    @property
    def emulator(self) -> Any:
        return self.desk.emulator

    def _hear(self, message: Any) -> None:
        # The browser tells of each answer that refuses something.
        if not (self.refusals and message.text.startswith("Failed to load resource")):
            self.noticed.append(f"console: {message.text}")

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.noticed.append(f"request: {request.url}")

    async def _dismiss(self, dialog: Any) -> None:
        self.noticed.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    async def open(self, place: str = "") -> Any:
        """Show a view, by what stands behind the `#`; returns the page."""
        await self.page.goto(f"{self.address}{PREFIX}#/{place}")
        await self.page.wait_for_selector("main h1")
        return self.page

    async def go(self, place: str) -> None:
        """Go to another view without loading the page again."""
        await self.page.evaluate("place => { location.hash = `/${place}`; }", place)

    async def text(self) -> str:
        """What the view says."""
        return str(await self.page.inner_text("main"))

    async def sees(self, *texts: str) -> None:
        """Wait until the view has all these texts."""
        for text in texts:
            await self.page.wait_for_function(
                "text => document.querySelector('main')?.innerText.includes(text)", arg=text
            )

    async def misses(self, text: str) -> None:
        """Wait until the view has this text no more."""
        await self.page.wait_for_function(
            "text => !document.querySelector('main').innerText.includes(text)", arg=text
        )

    async def push(self, name: str, *, sure: str = "") -> None:
        """Push the button of this name, and the one of the question that follows."""
        await self.page.get_by_role("button", name=name, exact=True).first.click()
        if sure:
            dialog = self.page.get_by_role("dialog")
            await dialog.get_by_role("button", name=sure, exact=True).click()

    async def unfold(self, name: str) -> None:
        """Open what is folded."""
        await self.page.locator("summary", has_text=name).first.click()


@asynccontextmanager
async def serving(folder: Path, config: str, worker: str, **options: Any) -> AsyncIterator[Any]:
    """Serve a project at a port of its own; yields its desk and its address."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "wrangler.jsonc").write_text(config, "utf-8")
    (folder / "src/entry.py").write_text(worker, "utf-8")
    options = {"clock": "virtual", "seed": 0, "outbound": "deny", **options}
    desk = Desk(Options(configs=(folder / "wrangler.jsonc",), **options))
    desk.start()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    application: Any = Application(desk, Guard())
    server = _Server(uvicorn.Config(application, lifespan="off", ws="none", log_config=None))
    task = asyncio.ensure_future(server.serve([sock]))
    try:
        yield desk, f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        desk.close()
        server.should_exit = True
        await task
        sock.close()


@asynccontextmanager
async def shown(
    browser: Any,
    folder: Path,
    *,
    config: str = CONFIG,
    worker: str = WORKER,
    look: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Dashboard]:
    """The dashboard of a project in a tab of its own; `look` are Playwright's options for it."""
    async with serving(folder, config, worker, **options) as (desk, address):
        look = {"viewport": {"width": 1200, "height": 800}, **(look or {})}
        context = await browser.new_context(**look)
        dashboard = Dashboard(desk, await context.new_page(), address)
        try:
            yield dashboard
        finally:
            await context.close()
        assert dashboard.noticed == []
