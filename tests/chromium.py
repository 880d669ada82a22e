"""A real browser without a window, for tests of pages: Debian's Chromium, driven by Playwright.

Playwright's own browsers are not needed. Nothing that a page does goes unseen: dialogs, errors,
messages of the console and requests are kept, and a test ends by asserting that there were none.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser with a profile of its own; skips the test where there is none."""
    reason = "Playwright is not installed: pip install -e '.[dev]'"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium found on the PATH: apt-get install chromium")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*_FLAGS, *as_root])
        yield browser
        browser.close()


def obstacles(page: Any, *rules: str) -> str:
    """What keeps people from using a page, by axe's rules of these tags; empty if nothing."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": list(rules)})
    return str(found.generate_report()) if found.violations_count else ""


class Tab:
    """One page of a browser, and what it did that nobody sees."""

    def __init__(self, browser: Any, **options: Any) -> None:
        size = {"width": 1200, "height": 800}
        self._context = browser.new_context(viewport=size, **options)
        self.page = self._context.new_page()
        self.noticed: list[str] = []
        self.requests: list[str] = []
        self.page.on("dialog", self._dismiss)
        self.page.on("console", lambda message: self.noticed.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.noticed.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path) -> Any:
        """Show a file; returns Playwright's page."""
        self.requests.clear()
        self.page.goto(path.as_uri())
        return self.page

    def close(self) -> None:
        """Close it; raises `AssertionError` for what it did unseen."""
        self._context.close()
        assert self.noticed == []
        assert len(self.requests) <= 1, self.requests

    def _dismiss(self, dialog: Any) -> None:
        self.noticed.append(f"dialog: {dialog.message}")
        dialog.dismiss()
