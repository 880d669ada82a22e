"""Pages that the server itself answers with, where no Worker does."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.server.problem import Problem

_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}pre{overflow:auto;padding:1rem;border:1px solid;"
    "border-radius:4px;font:14px/1.5 ui-monospace,monospace}"
)
_PROBLEM: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{style}</style></head>
<body><main><h1>{title}</h1>
<pre tabindex="0">{text}</pre>
<p>Save a correction and load this page again: requests get this page until then.
What loaded before, if anything did, goes on with queues, alarms and Workflows. Nothing that was
stored is lost.</p></main></body></html>
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole answer."""

    status: int
    content_type: str
    body: bytes

    async def send(self, send: Callable[[Any], Awaitable[None]], *, head_only: bool) -> None:
        """Send it as ASGI messages."""
        headers = [
            (b"content-type", self.content_type.encode()),
            (b"content-length", str(len(self.body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else self.body})


def text_page(status: int, text: str) -> Page:
    """An answer of plain text."""
    return Page(status, "text/plain;charset=UTF-8", f"{text}\n".encode())


def problem_page(problem: Problem) -> Page:
    """What a browser shows while the code cannot be loaded."""
    page = _PROBLEM.format(
        style=_STYLE, title=html.escape(problem.title), text=html.escape(problem.text)
    )
    return Page(500, "text/html;charset=UTF-8", page.encode())
