"""Cloudflare's official Python client, connected to a server in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from served_project import Project, Served

cloudflare: Any = pytest.importorskip(
    "cloudflare", minversion="5", reason="the official client, which is what these tests speak"
)

ACCOUNT = "0123456789abcdef0123456789abcdef"
BASE = "http://localhost:8787/cdn-cgi/emulator/client/v4"


@asynccontextmanager
async def connected(
    project: Project, *configs: str, **options: Any
) -> AsyncIterator[tuple[Any, Served]]:
    """Serve a project; yields the official client and the server."""
    async with (
        project.served(*configs, **options) as served,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(served.application), trust_env=False
        ) as http,
    ):
        client = cloudflare.AsyncCloudflare(
            api_token="any", base_url=BASE, http_client=http, max_retries=0
        )
        yield client, served


async def refused(call: Any) -> tuple[int, int, str]:
    """The status, code and text that a call is refused with."""
    with pytest.raises(cloudflare.APIStatusError) as caught:
        await call
    error = caught.value
    assert error.body["success"] is False
    assert error.body["result"] is None
    (shown,) = error.body["errors"]
    return error.status_code, shown["code"], shown["message"]


async def listed(pages: Any) -> list[Any]:
    """All items of a list, with all its pages."""
    return [item async for item in pages]


async def queue_id(client: Any, name: str) -> str:
    """The id of a queue."""
    (found,) = [
        queue
        for queue in await listed(client.queues.list(account_id=ACCOUNT))
        if queue.queue_name == name
    ]
    return str(found.queue_id)
