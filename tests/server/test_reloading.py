"""Which files matter, and that a change of one is seen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from emulator.config import load
from emulator.section import ConfigWarning
from emulator.server.reloading import Reloader, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from served_project import Project


def watched(project: Project, *, environment: str | None = None) -> Watched:
    config = project.path / "wrangler.jsonc"
    return Watched.of([config], environment, load(config, environment=environment))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("src/entry.py", "code"),
        ("src/deep/other.py", "code"),
        ("src/notes.txt", None),
        ("src/__pycache__/entry.py", None),
        ("src/node_modules/x.py", None),
        ("wrangler.jsonc", "settings"),
        (".dev.vars", "settings"),
        (".env", "settings"),
        (".env.local", "settings"),
        ("other.py", None),
        ("README.md", None),
    ],
)
def test_what_a_change_means(project: Project, name: str, what: str | None) -> None:
    assert watched(project).what(str(project.path / name)) == what


def test_assets_are_loaded_with_the_code(project: Project) -> None:
    text = (project.path / "wrangler.jsonc").read_text()
    project.write("public/index.html", "hello")
    project.write(
        "wrangler.jsonc", text.replace('"main"', '"assets": {"directory": "public"}, "main"')
    )
    assert watched(project).what(str(project.path / "public/index.html")) == "code"


def test_an_environment_has_files_of_its_own(project: Project) -> None:
    text = (project.path / "wrangler.jsonc").read_text()
    project.write("wrangler.jsonc", text.replace('"main"', '"env": {"dev": {}}, "main"'))
    with pytest.warns(ConfigWarning):
        of_dev = watched(project, environment="dev")
    assert of_dev.what(str(project.path / ".dev.vars.dev")) == "settings"


def test_without_settings_all_code_beside_the_config_matters(project: Project) -> None:
    config = project.path / "wrangler.jsonc"
    of_nothing = Watched.of([config], None, None)
    assert of_nothing.what(str(project.path / "src/entry.py")) == "code"
    assert of_nothing.what(str(config)) == "settings"


@pytest.mark.asyncio
async def test_a_saved_file_is_loaded_within_moments(project: Project) -> None:
    async with project.served(state=project.state) as served:
        reloader = asyncio.ensure_future(Reloader(served.desk).run())
        source = project.path / "src/entry.py"
        text = source.read_text()
        try:

            async def save(name: str, text: str, expected: Callable[[], Any]) -> None:
                async with asyncio.timeout(20):
                    while not expected() and not reloader.done():
                        # Again, should the watch not have begun.
                        project.write(name, text)
                        await asyncio.sleep(0.2)

            def told(text: str) -> Callable[[], bool]:
                return lambda: any(text in news for news, _ in served.news)

            await save("src/entry.py", text.replace("VERSION = 1", "VERSION = 2"), told("entry.py"))
            assert (await served.client.get("/")).text.startswith("version 2")
            await save(".dev.vars", "TOKEN=abcdefgh\n", told(".dev.vars"))
            moved = (project.path / "wrangler.jsonc").read_text().replace("src/", "lib/")
            project.write("lib/entry.py", text.replace("VERSION = 1", "VERSION = 3"))
            await save("wrangler.jsonc", moved, told("wrangler.jsonc"))
            assert (await served.client.get("/")).text.startswith("version 3")
            served.news.clear()
            await save("lib/entry.py", text.replace("VERSION = 1", "VERSION = 4"), told("entry.py"))
            assert (await served.client.get("/")).text.startswith("version 4")
        finally:
            reloader.cancel()
            await asyncio.gather(reloader, return_exceptions=True)
