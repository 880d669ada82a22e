"""Which file a path means, and where it leads instead: `html_handling`, `not_found_handling`.

Theory of operation. A mode is a list of steps for a path, in order: to serve a file, or to
redirect to another path because of a file. The first step that can be taken is. A redirect can be
taken where its file exists, nothing is at the path it leads to, and the steps of that path serve
this very file before any other: so redirects end, and never at something else.

The lists are facts of Cloudflare's asset Worker (workers-sdk, packages/workers-shared).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.asset_config import HtmlHandling, NotFoundHandling

    Exists = Callable[[str], bool]

_INDEX = "/index"
_INDEX_HTML = "/index.html"
_HTML = ".html"


class Step(NamedTuple):
    """To serve `file`; where there is a destination, to redirect there because of it."""

    file: str
    destination: str | None = None


class Intent(NamedTuple):
    """What is to be done: a file with its status, or a redirect because of it."""

    file: str
    status: int = 200
    destination: str | None = None


def intent(
    path: str, exists: Exists, html_handling: HtmlHandling, not_found_handling: NotFoundHandling
) -> Intent | None:
    """Return what a decoded path means; None where it means nothing."""
    steps = _STEPS[html_handling]
    for file, destination in steps(path):
        if not exists(file):
            continue
        if destination is None:
            return Intent(file)
        if not exists(destination) and _served(steps(destination), exists) == file:
            return Intent(file, destination=destination)
    return _not_found(path, exists, not_found_handling)


def _served(steps: Iterator[Step], exists: Exists) -> str | None:
    """The file that is served without a redirect."""
    files = (file for file, destination in steps if destination is None)
    return next(filter(exists, files), None)


def _not_found(path: str, exists: Exists, handling: NotFoundHandling) -> Intent | None:
    if handling == "single-page-application" and exists(_INDEX_HTML):
        return Intent(_INDEX_HTML)
    folder = path if handling == "404-page" else ""
    while folder:
        folder = folder[: folder.rfind("/")]
        if exists(f"{folder}/404.html"):
            return Intent(f"{folder}/404.html", 404)
    return None


def _auto(path: str) -> Iterator[Step]:
    """A file at its name, an index at its folder's name with a slash."""
    if path.endswith(_INDEX):
        folder = path.removesuffix(_INDEX)
        yield Step(path)
        yield Step(path + _HTML, folder + "/")
        yield Step(folder + _HTML, folder)
    elif path.endswith(_INDEX_HTML):
        folder = path.removesuffix(_INDEX_HTML)
        yield Step(path, folder + "/")
        yield Step(folder + _HTML, folder)
    elif path.endswith("/"):
        yield Step(path + "index.html")
        yield Step(path[:-1] + _HTML, path[:-1])
    elif path.endswith(_HTML):
        name = path.removesuffix(_HTML)
        yield Step(path, name)
        yield Step(name + _INDEX_HTML, name + "/")
    yield Step(path)
    yield Step(path + _HTML)
    yield Step(path + _INDEX_HTML, path + "/")


def _force(path: str) -> Iterator[Step]:
    """Everything that is HTML at its name with a slash."""
    if path.endswith(_INDEX):
        folder = path.removesuffix(_INDEX)
        yield Step(path)
        yield Step(path + _HTML, folder + "/")
        yield Step(folder + _HTML, folder + "/")
    elif path.endswith(_INDEX_HTML):
        folder = path.removesuffix(_INDEX_HTML)
        yield Step(path, folder + "/")
        yield Step(folder + _HTML, folder + "/")
    elif path.endswith("/"):
        yield Step(path + "index.html")
        yield Step(path[:-1] + _HTML)
    elif path.endswith(_HTML):
        name = path.removesuffix(_HTML)
        yield Step(path, name + "/")
        yield Step(path)
        yield Step(name + _INDEX_HTML, name + "/")
    yield Step(path)
    yield Step(path + _HTML, path + "/")
    yield Step(path + _INDEX_HTML, path + "/")


def _drop(path: str) -> Iterator[Step]:
    """Everything that is HTML at its name without a slash."""
    if path in (_INDEX, _INDEX_HTML):
        if path == _INDEX:
            yield Step(path)
        yield Step(_INDEX_HTML, "/")
    elif path.endswith(_INDEX):
        folder = path.removesuffix(_INDEX)
        yield Step(path)
        yield Step(folder + _HTML, folder)
        yield Step(path + _HTML, folder)
    elif path.endswith(_INDEX_HTML):
        folder = path.removesuffix(_INDEX_HTML)
        yield Step(path, folder)
        yield Step(path)
        yield Step(folder + _HTML, folder)
    elif path == "/":
        yield Step(_INDEX_HTML)
    elif path.endswith("/"):
        yield Step(path[:-1] + _HTML, path[:-1])
        yield Step(path[:-1] + _INDEX_HTML, path[:-1])
    elif path.endswith(_HTML):
        name = path.removesuffix(_HTML)
        yield Step(path, name)
        yield Step(name + _INDEX_HTML, name)
    yield Step(path)
    yield Step(path + _HTML)
    yield Step(path + _INDEX_HTML)


def _none(path: str) -> Iterator[Step]:
    """Each file at its own name."""
    yield Step(path)


_STEPS: dict[HtmlHandling, Callable[[str], Iterator[Step]]] = {
    "auto-trailing-slash": _auto,
    "force-trailing-slash": _force,
    "drop-trailing-slash": _drop,
    "none": _none,
}
