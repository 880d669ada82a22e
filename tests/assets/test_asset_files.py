"""The files of a folder, and the section `assets` of a config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from assets_bench import PAGES, Default, folder, running, site

from emulator import ConfigError, Emulator
from emulator.assets.content_types import content_type
from emulator.assets.files import Files
from emulator.config import ConfigWarning, load

if TYPE_CHECKING:
    from pathlib import Path


def names(path: Path) -> list[str]:
    files = Files(path)
    return [name for name in sorted(files._names) if files.exists(name)]


def test_files_at_any_depth_are_found_and_the_special_ones_left_out(tmp_path: Path) -> None:
    content = {"a.txt": "", "b/c/d.txt": "", ".well-known/x": "", "_headers": "", "_redirects": ""}
    assert names(folder(tmp_path, content)) == ["/.well-known/x", "/a.txt", "/b/c/d.txt"]


def test_assetsignore_is_in_the_language_of_gitignore(tmp_path: Path) -> None:
    """createAssetsIgnoreFunction of workers-sdk."""
    content = {
        ".assetsignore": "# comment\n*.map\nnode_modules\n/only-here.txt\n!keep.map\n",
        "a.js": "",
        "a.js.map": "",
        "keep.map": "",
        "node_modules/x/y.js": "",
        "only-here.txt": "",
        "b/only-here.txt": "",
        "b/_headers": "",
    }
    found = names(folder(tmp_path, content))
    assert found == ["/a.js", "/b/_headers", "/b/only-here.txt", "/keep.map"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_followed_to_files_only_and_told_if_they_lead_out(tmp_path: Path) -> None:
    outside = folder(tmp_path / "outside", {"secret.txt": "s", "deep/secret.txt": "s"})
    inside = folder(tmp_path / "inside", {"real.txt": "r"})
    (inside / "alias.txt").symlink_to(inside / "real.txt")
    (inside / "leak.txt").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside / "deep")
    (inside / "loop").symlink_to(inside)
    (inside / "broken.txt").symlink_to(tmp_path / "nothing")
    assert names(inside) == ["/alias.txt", "/leak.txt", "/real.txt"]
    (problem,) = Files(inside).problems
    assert problem.startswith("/leak.txt is a link to a file outside ")


def test_problems_of_files_are_told(tmp_path: Path) -> None:
    path = folder(tmp_path, {"_worker.js": ""})
    with (path / "large.bin").open("wb") as file:
        file.truncate(25 * 1024 * 1024 + 1)
    assert Files(path).problems == (
        "/large.bin has 26214401 bytes; Cloudflare Workers supports assets with sizes of up to "
        "25 MiB",
        "_worker.js is among the assets, which wrangler refuses: add it to .assetsignore",
    )


def test_a_folder_is_current_until_something_in_it_changes(tmp_path: Path) -> None:
    path = folder(tmp_path, {"a.txt": "a"})
    files = Files(path)
    assert files.is_current()
    (path / "b.txt").write_text("b")
    assert not files.is_current()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/a.html", "text/html; charset=utf-8"),
        ("/a.JS", "text/javascript; charset=utf-8"),
        ("/a.json", "application/json"),
        ("/a.svg", "image/svg+xml"),
        ("/favicon.ico", "image/vnd.microsoft.icon"),
        ("/a.xml", "application/xml"),
        ("/a.woff2", "font/woff2"),
        ("/a.tar.gz", "application/gzip"),
        ("/a.unknown", None),
        ("/.well-known/security", None),
        ("/a.b/c", None),
    ],
)
def test_content_types_are_those_of_the_package_mime(name: str, kind: str | None) -> None:
    assert content_type(name) == kind


@pytest.mark.asyncio
async def test_a_file_of_unknown_type_has_no_type(tmp_path: Path) -> None:
    async with running(tmp_path, {"a.unknown": b"\x00\xff"}) as emulator:
        response = await emulator.fetch("/a.unknown")
        assert response.content == b"\x00\xff"
        assert "content-type" not in response.headers


# The config.


def problems_of(path: Path, assets: Any, **config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load({"main": Default, "assets": assets, **config}, base=folder(path, {"public/a": ""}))
    return str(caught.value)


@pytest.mark.parametrize(
    ("assets", "text"),
    [
        (
            {},
            "assets.directory is missing: the folder of the assets (wrangler: The `assets` "
            "property in your configuration is missing the required `directory` property.)",
        ),
        ({"directory": ""}, 'assets.directory is "", but must be the path of a folder'),
        ({"directory": 5}, "assets.directory is 5, but must be the path of a folder"),
        ({"directory": "public/a"}, 'assets.directory is "public/a", but '),
        (
            {"directory": "public", "html_handling": "x"},
            'assets.html_handling is "x", but must be "auto-trailing-slash" or ',
        ),
        (
            {"directory": "public", "not_found_handling": "spa"},
            'assets.not_found_handling is "spa", but must be "single-page-application" or '
            '"404-page" or "none"',
        ),
        (
            {"directory": "public", "run_worker_first": "/api/*"},
            'assets.run_worker_first is "/api/*", but must be true, false or a list of paths',
        ),
        (
            {"directory": "public", "run_worker_first": []},
            "assets.run_worker_first is empty (wrangler: No `run_worker_first` rules were "
            "provided; must provide at least 1 rule.)",
        ),
        (
            {"directory": "public", "run_worker_first": ["!/a"]},
            "assets.run_worker_first has only negative rules (wrangler: Only negative "
            "`run_worker_first` rules were provided; must provide at least 1 non-negative rule)",
        ),
        (
            {"directory": "public", "run_worker_first": ["a", "/b"]},
            "assets.run_worker_first has 'a': rules must start with '/' or '!/'",
        ),
        (
            {"directory": "public", "run_worker_first": ["!a", "/b"]},
            "assets.run_worker_first has '!a': negative rules must start with '!/'",
        ),
        (
            {"directory": "public", "run_worker_first": ["/b", "/b"]},
            "assets.run_worker_first has '/b': rule is a duplicate; rules must be unique",
        ),
        (
            {"directory": "public", "run_worker_first": ["/b/*", "/b/c"]},
            "assets.run_worker_first has '/b/c': rule '/b/*' makes it redundant",
        ),
        (
            {"directory": "public", "run_worker_first": ["/" + "b" * 100]},
            "all rules must be less than 100 characters in length",
        ),
        (
            {"directory": "public", "run_worker_first": [f"/{n}" for n in range(101)]},
            "101 rules provided exceeds max of 100.",
        ),
    ],
)
def test_wrong_settings_are_refused_in_wranglers_words(
    tmp_path: Path, assets: Any, text: str
) -> None:
    """validateAssetsConfig, parseStaticRouting and wrangler's assets.ts."""
    assert text in problems_of(tmp_path, assets)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"binding": "ASSETS"}, "Cannot use assets with a binding in an assets-only Worker."),
        ({"run_worker_first": True}, "Cannot set run_worker_first without a Worker script."),
    ],
)
def test_without_code_there_is_nobody_to_use_assets(
    tmp_path: Path, options: Any, text: str
) -> None:
    assert text in problems_of(tmp_path, {"directory": "public", **options}, main=None)


def test_a_folder_that_is_not_there_yet_is_warned_of_and_empty(tmp_path: Path) -> None:
    config = {"main": Default, "assets": {"directory": str(tmp_path / "dist")}}
    with pytest.warns(ConfigWarning, match=r"there is no folder .*dist: no asset is there"):
        emulator = Emulator(config)
    with emulator:
        response = emulator.run(emulator.fetch("/"))
        assert response.text == "worker GET http://localhost/"


def test_unknown_settings_are_warned_of(tmp_path: Path) -> None:
    config = {"main": Default, "assets": {"directory": str(tmp_path), "html_handlin": "none"}}
    with pytest.warns(ConfigWarning, match='did you mean "html_handling"'):
        load(config)


def test_the_folder_of_a_file_is_relative_to_it_and_environments_may_differ(
    tmp_path: Path,
) -> None:
    folder(
        tmp_path,
        {
            "wrangler.toml": 'name = "site"\ncompatibility_date = "2026-09-01"\n'
            '[assets]\ndirectory = "./public"\n'
            '[env.staging.assets]\ndirectory = "./staging"\n',
            "public/a": "",
            "staging/a": "",
        },
    )
    path = tmp_path / "wrangler.toml"
    found = [load(path).workers[0].assets, load(path, environment="staging").workers[0].assets]
    assert [one.directory for one in found if one is not None] == [
        tmp_path / "public",
        tmp_path / "staging",
    ]


def test_rules_that_are_ignored_are_findings(tmp_path: Path) -> None:
    config = {"assets": {"directory": str(folder(tmp_path, {"_redirects": "/a /b 418"}))}}
    with Emulator(config) as emulator:
        (finding,) = emulator.findings
        assert finding.code == "ignored_option"
        assert finding.message.startswith("assets: _redirects:1: Valid status codes are 200, 301")


def test_sites_of_the_bench_are_those_of_the_pages(tmp_path: Path) -> None:
    assert site(tmp_path, PAGES).problems == ()
