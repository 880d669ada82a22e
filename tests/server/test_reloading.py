"""Which files matter, and that a change of one is seen."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from served_project import CONFIG, WORKER, until

from emulator.config import load
from emulator.section import ConfigWarning
from emulator.server.reloading import Reloader
from emulator.server.watched import Seen, Watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from served_project import Project, Served

VERSION_2 = WORKER.replace("VERSION = 1", "VERSION = 2")
ASSET = "public/page.txt"


class Blind:
    """Watches like `watchfiles.awatch`, but tells only what it is told to tell."""

    def __init__(self) -> None:
        self.calls = 0
        # Called when the next watch begins, before it stands.
        self.before_next: Callable[[], object] | None = None
        self._news: list[asyncio.Queue[set[tuple[int, str]]]] = []

    def tell(self, path: Path) -> None:
        """Let the watches that stand tell of a file."""
        for queue in self._news:
            queue.put_nowait({(2, str(path))})

    async def __call__(
        self, *folders: Path, stop_event: asyncio.Event, watch_filter: Any, **_: Any
    ) -> AsyncIterator[set[tuple[int, str]]]:
        before, self.before_next = self.before_next, None
        if before is not None:
            before()
        self.calls += 1
        news: asyncio.Queue[set[tuple[int, str]]] = asyncio.Queue()
        self._news.append(news)
        stopped = asyncio.ensure_future(stop_event.wait())
        while not stopped.done():
            told = asyncio.ensure_future(news.get())
            await asyncio.wait([stopped, told], return_when="FIRST_COMPLETED")
            if told.done():
                yield {change for change in told.result() if watch_filter(*change)}
            else:
                told.cancel()
        self._news.remove(news)


@asynccontextmanager
async def watching(served: Served, watch: Blind) -> AsyncIterator[None]:
    """Reload what changes, as this watch tells it."""
    reloader = asyncio.ensure_future(Reloader(served.desk, watch).run())
    try:
        yield
        assert not reloader.done()
    finally:
        reloader.cancel()
        await asyncio.gather(reloader, return_exceptions=True)


def told(served: Served, text: str) -> bool:
    """Whether there was such news."""
    return any(text in news for news, _ in served.news)


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
async def test_a_save_before_anything_watches_is_loaded(project: Project) -> None:
    async with project.served() as served:
        project.write("src/entry.py", VERSION_2)
        async with watching(served, Blind()):
            await until(lambda: told(served, "entry.py"))
            assert (await served.client.get("/")).text.startswith("version 2")


@pytest.mark.asyncio
async def test_a_save_while_the_code_is_loaded_is_loaded_after_it(project: Project) -> None:
    later = project.write("src/later.py", "")
    project.write("src/entry.py", f"import pathlib\npathlib.Path({str(later)!r}).write_text('1')")
    async with project.served() as served:
        assert not served.desk.is_running  # no handler
        project.write("src/entry.py", WORKER)
        async with watching(served, Blind()):
            await until(lambda: told(served, "reloaded"))
            assert told(served, "later.py")
            assert told(served, "entry.py")


@pytest.mark.parametrize(
    ("config", "saved", "path", "answer"),
    [
        (CONFIG.replace("src/", "lib/"), WORKER.replace("= 1", "= 3"), "lib/entry.py", "version 3"),
        (
            CONFIG.replace('"main"', '"assets": {"directory": "public"}, "main"'),
            "new",
            ASSET,
            "new",
        ),
        # What was watched before, too, and the config itself.
        (CONFIG.replace("src/", "lib/"), "TOKEN=abcdefgh", ".dev.vars", "version 1"),
        (CONFIG.replace("src/", "lib/"), CONFIG, "wrangler.jsonc", "version 2"),
    ],
)
@pytest.mark.asyncio
async def test_a_save_between_two_watches_is_loaded(
    project: Project, config: str, saved: str, path: str, answer: str
) -> None:
    project.write("lib/entry.py", WORKER)
    project.write(ASSET, "old")
    project.write("src/entry.py", VERSION_2)
    async with project.served() as served:
        watch = Blind()
        async with watching(served, watch):
            await until(lambda: watch.calls)
            watch.before_next = lambda: project.write(path, saved)
            project.write("wrangler.jsonc", config)
            watch.tell(project.path / "wrangler.jsonc")
            await until(lambda: told(served, "wrangler.jsonc"))
            await until(lambda: len([text for text, _ in served.news if "reloaded" in text]) == 2)
            assert Path(path).name in served.news[-1][0]
            url = "/page.txt" if path == ASSET else "/"
            assert (await served.client.get(url)).text.startswith(answer)


@pytest.mark.asyncio
async def test_a_folder_that_is_made_again_is_watched_again(project: Project) -> None:
    async with project.served() as served:
        watch = Blind()
        async with watching(served, watch):
            await until(lambda: watch.calls)
            first = watch.calls
            project.write("src/entry.py", VERSION_2)
            watch.tell(project.path / "src")
            await until(lambda: told(served, "entry.py"))
            assert watch.calls == first * 2


@pytest.mark.asyncio
async def test_nothing_is_loaded_again_where_nothing_was_saved(project: Project) -> None:
    async with project.served() as served:
        watch = Blind()
        async with watching(served, watch):
            await until(lambda: watch.calls)
            assert served.desk.seen.changed(served.desk.watched()) == []
            # What comes after is the first news.
            watch.tell(project.path / ".env")
            await until(lambda: served.news)
        assert [".env" in text for text, _ in served.news] == [True]


@pytest.mark.asyncio
async def test_a_watch_stands_after_its_first_step(tmp_path: Path) -> None:
    """What `Reloader.run` relies on: watchfiles does nothing before it asks the system."""
    from watchfiles import awatch

    changes = awatch(tmp_path, rust_timeout=20_000)
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    (tmp_path / "saved.py").write_text("")
    try:
        assert any(Path(path).name == "saved.py" for _, path in await first)
    finally:
        await changes.aclose()


LONG_AGO = 1_000_000_000


def same_time(path: Path, text: str) -> None:
    """Write a file of which the system tells the time of before, as a coarse one does."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_write_that_leaves_time_and_size_as_they_were_is_seen(project: Project) -> None:
    files = watched(project)
    seen = Seen.of(files)
    same_time(project.path / "src/entry.py", VERSION_2)
    assert seen.changed(files) == [str(project.path / "src/entry.py")]


def test_young_files_are_compared_by_content_and_others_by_time(project: Project) -> None:
    files, source = watched(project), project.path / "src/entry.py"
    young, old = Seen.of(files), Seen.of(files, now=source.stat().st_mtime_ns + 3 * LONG_AGO)
    same_time(source, source.read_text())
    assert young.changed(files) == []
    assert old.changed(files) == [str(source)]  # it was written, if only the same


def test_files_that_come_and_go_are_seen(project: Project) -> None:
    files = watched(project)
    seen = Seen.of(files)
    project.write("src/deep/other.py", "")
    project.write("src/node_modules/x.py", "")
    project.write("src/notes.txt", "")
    (project.path / "src/entry.py").unlink()
    (project.path / "wrangler.jsonc").unlink()
    changed = [os.path.relpath(path, project.path) for path in seen.changed(files)]
    assert sorted(changed) == ["src/deep/other.py", "src/entry.py", "wrangler.jsonc"]


@pytest.mark.asyncio
async def test_a_saved_file_is_loaded_within_moments(project: Project) -> None:
    async with project.served(state=project.state) as served:
        reloader = asyncio.ensure_future(Reloader(served.desk).run())
        source = project.path / "src/entry.py"
        text = source.read_text()
        try:

            async def save(name: str, text: str, expected: Callable[[], bool]) -> None:
                async with asyncio.timeout(20):
                    while not expected() and not reloader.done():
                        # Again, should the watch not have begun.
                        project.write(name, text)
                        await asyncio.sleep(0.2)

            def heard(text: str) -> Callable[[], bool]:
                return lambda: told(served, text)

            await save(
                "src/entry.py", text.replace("VERSION = 1", "VERSION = 2"), heard("entry.py")
            )
            assert (await served.client.get("/")).text.startswith("version 2")
            await save(".dev.vars", "TOKEN=abcdefgh\n", heard(".dev.vars"))
            moved = (project.path / "wrangler.jsonc").read_text().replace("src/", "lib/")
            project.write("lib/entry.py", text.replace("VERSION = 1", "VERSION = 3"))
            await save("wrangler.jsonc", moved, heard("wrangler.jsonc"))
            assert (await served.client.get("/")).text.startswith("version 3")
            served.news.clear()
            await save(
                "lib/entry.py", text.replace("VERSION = 1", "VERSION = 4"), heard("entry.py")
            )
            assert (await served.client.get("/")).text.startswith("version 4")
        finally:
            reloader.cancel()
            await asyncio.gather(reloader, return_exceptions=True)
