"""Which file a path means: the cases of Cloudflare's own tests, and what is beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asset_cases import CASES
from assets_bench import ask, header, site
from hypothesis import given
from hypothesis import strategies as st

from emulator.assets.html import Intent, intent
from emulator.assets.paths import decoded, encoded
from emulator.runtime.web.url_parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulator.asset_config import HtmlHandling

MODES = ("auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none")


def cases() -> Iterator[Any]:
    for mode, groups in CASES.items():
        for files, asked in groups:
            for path, file, final in asked:
                name = f"{mode} {path} of {' '.join(files)}"
                yield pytest.param(mode, files, path, file, final, id=name)


def found(mode: HtmlHandling, files: list[str], path: str) -> tuple[str | None, str | None, int]:
    """The file that is served in the end, where, and after how many redirects."""
    for hops in range(5):
        pathname = parse(f"https://example.com{path}").pathname
        plain = decoded(pathname)
        meant = intent(plain, files.__contains__, mode, "none")
        if meant is None:
            return None, None, hops
        place = encoded(meant.destination or plain)
        if meant.destination is None and place == pathname:
            return meant.file, pathname, hops
        path = place
    raise AssertionError("redirects without an end")


@pytest.mark.parametrize(("mode", "files", "path", "file", "final"), list(cases()))
def test_path_means_a_file(
    mode: Any, files: list[str], path: str, file: str | None, final: str | None
) -> None:
    served, place, _ = found(mode, files, path)
    assert (served, place) == (file, final)


names = st.lists(
    st.sampled_from(
        ["/a", "/a.html", "/a/index.html", "/a/index", "/index.html", "/index", "/b/c"]
    ),
    unique=True,
)
paths = st.lists(st.sampled_from(["a", "index", ".html", "/", "b", "c"]), max_size=5)


@given(mode=st.sampled_from(MODES), files=names, parts=paths)
def test_redirects_end_at_a_file(mode: Any, files: list[str], parts: list[str]) -> None:
    """None leads to nothing; two there are for `/index/` with `/index.html`."""
    path = decoded("/" + "".join(parts))
    served, _, hops = found(mode, files, path)
    assert hops <= 2
    assert served is not None or hops == 0


@pytest.mark.parametrize(
    ("path", "files", "expected"),
    [
        ("/a/b/c", ["/404.html", "/a/404.html"], "/a/404.html"),
        ("/a/b/c", ["/404.html"], "/404.html"),
        ("/a", ["/a/404.html"], None),
        ("/a/", ["/a/404.html", "/404.html"], "/a/404.html"),
        ("/a/b", [], None),
    ],
)
def test_the_nearest_404_page_is_shown(path: str, files: list[str], expected: str | None) -> None:
    meant = intent(path, files.__contains__, "auto-trailing-slash", "404-page")
    assert meant == (None if expected is None else Intent(expected, 404))


def test_a_single_page_application_answers_everywhere() -> None:
    files = ["/index.html"]
    meant = intent("/a/b", files.__contains__, "none", "single-page-application")
    assert meant == Intent("/index.html")
    assert intent("/a/b", [].__contains__, "none", "single-page-application") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a%20b", "/a b"),
        ("//a//b/", "/a/b/"),
        ("/%2fa", "/a"),
        ("/%A0%A0", "/%A0%A0"),
        ("/50%", "/50%"),
        ("/%E4%BD%A0", "/你"),
    ],
)
def test_paths_are_decoded_part_by_part(path: str, expected: str) -> None:
    """decodePath of the asset Worker; url-normalization.test.ts."""
    assert decoded(path) == expected


@pytest.mark.parametrize(
    ("url", "status", "location"),
    [
        ("/awesome/file%2ebin", 307, "/awesome/file.bin"),
        ("/awesome/file.bin", 200, None),
        ("/%2f%2fbad.example.com%2f", 404, None),
        ("//awesome/file.bin", 307, "/awesome/file.bin"),
        ("/x/../awesome/file.bin", 200, None),
        ("/x/%2e%2e/awesome/file.bin", 200, None),
        ("/%2e%2e/%2e%2e/etc/passwd", 404, None),
        ("/..%2f..%2fetc%2fpasswd", 404, None),
        ("/caf%C3%A9.txt", 200, None),
        ("/café.txt", 200, None),
        ("/a%20(b).txt", 200, None),
        ("/a b(b).txt", 404, None),
        ("/%5Bx%5D.txt", 200, None),
        ("/[x].txt?a=b", 307, "/%5Bx%5D.txt?a=b"),
        ("/%255Bx%255D.txt", 404, None),
    ],
)
def test_paths_that_are_not_as_they_should_be(
    tmp_path: Path, url: str, status: int, location: str | None
) -> None:
    """redirects.test.ts and url-normalization.test.ts of workers-sdk, and more."""
    files = {"awesome/file.bin": "x", "café.txt": "é", "a (b).txt": "x", "[x].txt": "x"}
    answer = site(tmp_path, files, html_handling="none").answer(ask(url))
    assert (answer.status, header(answer, "location")) == (status, location)
