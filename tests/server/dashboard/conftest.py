"""A browser for the tests of a module, and dashboards in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest_asyncio
from dashboard_browser import Dashboard, launched, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def dashboard(browser: Any, tmp_path: Path) -> AsyncIterator[Dashboard]:
    """The dashboard of a project with something of everything."""
    async with shown(browser, tmp_path) as dashboard:
        yield dashboard
