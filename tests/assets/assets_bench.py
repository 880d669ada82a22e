"""Folders of assets, and Workers that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

from emulator import Emulator
from emulator.asset_config import AssetsConfig
from emulator.assets.answers import Answer, Asked, Site
from emulator.assets.files import Files
from emulator.runtime.web.url_parser import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAGES = {
    "index.html": "<h1>home</h1>",
    "about.html": "<h1>about</h1>",
    "404.html": "<h1>not there</h1>",
    "css/site.css": "body {}",
}


class Default(WorkerEntrypoint):
    """A Worker that says who answers."""

    async def fetch(self, request: Any) -> Any:
        return Response(f"worker {request.method} {request.url}")


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def site(path: Path, files: Mapping[str, str | bytes], **options: Any) -> Site:
    """The assets in a folder, with options of the config."""
    usual: dict[str, Any] = {
        "binding": None,
        "html_handling": "auto-trailing-slash",
        "not_found_handling": "none",
        "runs_first": False,
        "first": (),
        "last": (),
        "has_worker": True,
        "prefers_navigation": True,
    }
    config = AssetsConfig(directory=folder(path, files), **{**usual, **options})
    return Site(config, Files(path))


def ask(url: str, method: str = "GET", **headers: str) -> Asked:
    """A request; `Sec_Fetch_Mode` is a header's name."""
    pairs = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
    return Asked(method, parse(url if "://" in url else f"https://example.com{url}"), pairs)


def header(answer: Answer, name: str) -> str | None:
    values = [value for key, value in answer.headers if key == name]
    return ", ".join(values) if values else None


def running(
    path: Path,
    files: Mapping[str, str | bytes] = PAGES,
    *,
    main: Any = Default,
    date: str | None = None,
    flags: list[str] | None = None,
    arguments: Mapping[str, Any] | None = None,
    **options: Any,
) -> Emulator:
    """An emulator of a Worker with assets; `main` is None for one without code."""
    config: dict[str, Any] = {"assets": {"directory": str(folder(path, files)), **options}}
    config |= {} if main is None else {"main": main}
    config |= {} if date is None else {"compatibility_date": date}
    config |= {} if flags is None else {"compatibility_flags": flags}
    return Emulator(config, **(arguments or {}))
