"""Workers whose code stands in the test itself."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, their text dedented, below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")


def worker(
    folder: Path, entry: str, files: dict[str, str] | None = None, **config: Any
) -> dict[str, Any]:
    """Write `src/entry.py` and the other files of a Worker; returns its config."""
    write(folder / "src", {"entry.py": entry, **(files or {})})
    return {"main": str(folder / "src" / "entry.py"), **config}


def handler(folder: Path, body: str, **config: Any) -> dict[str, Any]:
    """Write a Worker whose `fetch` has this body; `path` is the request's path."""
    lines = "\n".join(f"        {line}" for line in dedent(body).strip().splitlines())
    entry = (
        "import asyncio\nimport json\nfrom urllib.parse import urlsplit\n"
        "from workers import Response, WorkerEntrypoint, fetch, waitUntil\n\n\n"
        "class Default(WorkerEntrypoint):\n"
        "    async def fetch(self, request):\n"
        "        path = urlsplit(request.url).path\n"
        f"{lines}\n"
    )
    return worker(folder, entry, **config)
