"""The page of the dashboard: one document with its script and its style inside.

Nothing else runs or loads: the content security policy names both by their hashes. The script
makes the page of texts (`make` of the trace's text.js); were there markup after all, Trusted Types
stop it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

import emulator.trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk

_FOLDER: Final = Path(__file__).parent / "static"
_TRACE: Final = Path(emulator.trace.__file__).parent
_SCRIPTS: Final = (
    *("parts.js", "patch.js", "app.js"),
    *(
        "queues.js",
        "workflows.js",
        "objects.js",
        "kv.js",
        "d1.js",
        "r2.js",
        "activity.js",
        "findings.js",
    ),
    *("clock.js", "faults.js", "trace.js"),
    "start.js",
)
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%230969da'/%3E"
    "%3Cpath d='M3 5h10M3 8h6M3 11h8' stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the page."""

    async def page(request: Request) -> Response:
        return Response(document(), media_type="text/html; charset=utf-8", headers=_headers())

    async def elsewhere(request: Request) -> Response:
        return RedirectResponse("/cdn-cgi/emulator/", 307)

    return [Route("/", page), Route("/dashboard", elsewhere)]


@cache
def document() -> str:
    """Return the whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="{_ICON}">\n'
        f"<title>Workers emulator</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        "<noscript><p>The dashboard needs JavaScript.</p></noscript>\n"
        f"<script>{_script()}</script>\n</body>\n</html>\n"
    )


def _headers() -> dict[str, str]:
    return {
        "content-security-policy": _policy(),
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
    }


@cache
def _policy() -> str:
    return (
        f"default-src 'none'; script-src {_hash(_script())}; style-src {_hash(_style())}; "
        "img-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


@cache
def _script() -> str:
    """Return the script; its names are its own."""
    files = [_TRACE / "text.js", *(_FOLDER / name for name in _SCRIPTS)]
    text = "".join(file.read_text("utf-8") for file in files)
    return f"\n'use strict';\n{{\n{text}}}\n"


@cache
def _style() -> str:
    return "\n" + (_FOLDER / "dashboard.css").read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
