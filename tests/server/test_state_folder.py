"""The folder that keeps what is durable: its lock, its permissions, what is damaged."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from simulation import python

from emulator import Emulator
from emulator.errors import StateError
from emulator.server.state_folder import StateFolder
from emulator.store.records import Record
from emulator.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from served_project import Project


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "deep" / ".workers-emulator")


def test_only_its_owner_can_read_it(folder: StateFolder, project: Project) -> None:
    before = os.umask(0o022)
    try:
        folder.acquire()
        with Emulator(project.path / "wrangler.jsonc", state=folder.file) as emulator:
            emulator.run(emulator.fetch("/", method="POST", content=b"x"))
            made = sorted(folder.path.glob("state.db*"))
            assert len(made) >= 2
            assert {mode(path) for path in made if path.is_file()} == {0o600}
    finally:
        os.umask(before)
    assert mode(folder.path) == 0o700
    assert mode(folder.path / "lock") == 0o600
    assert (folder.path / ".gitignore").read_text() == "*\n"
    folder.release()


def test_a_second_server_is_refused_with_the_process_that_has_it(folder: StateFolder) -> None:
    folder.acquire()
    folder.tell("http://127.0.0.1:8787")
    second = StateFolder(folder.path)
    text = rf"in use by another server, process {os.getpid()} on http://127\.0\.0\.1:8787"
    with pytest.raises(StateError, match=text):
        second.acquire()
    folder.release()
    second.acquire()
    second.release()


def test_a_killed_process_leaves_no_lock(folder: StateFolder) -> None:
    python(
        f"""
from pathlib import Path
import os
from emulator.server.state_folder import StateFolder
folder = StateFolder(Path({str(folder.path)!r}))
folder.acquire()
folder.tell("http://127.0.0.1:1")
if os.fork() == 0:
    os.kill(os.getpid(), 9)
os.wait()
"""
    )
    folder.acquire()
    folder.release()


def test_a_holder_that_told_nothing_is_no_problem(folder: StateFolder) -> None:
    folder.acquire()
    with pytest.raises(StateError, match="in use by another server: stop"):
        StateFolder(folder.path).acquire()
    folder.release()


def test_a_folder_that_cannot_be_made_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot be used: Not a directory; .*--state"):
        StateFolder(tmp_path / "file" / "state").acquire()


def test_a_folder_that_is_read_only_is_refused_with_a_way_out(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions mean nothing to root, so that the system's answer is given here."""

    def refuse(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("emulator.server.state_folder.os.open", refuse)
    with pytest.raises(StateError, match=r"cannot be used: Read-only file system"):
        folder.acquire()


def test_a_damaged_state_is_moved_as_it_is(folder: StateFolder) -> None:
    folder.acquire()
    folder.file.write_bytes(b"damaged")
    databases = folder.path / "state.db.databases" / "d1"
    databases.mkdir(parents=True)
    (databases / "one.sqlite").write_bytes(b"rows")
    first = folder.set_aside("2026-11-30")
    assert (first / "state.db").read_bytes() == b"damaged"
    assert (first / "state.db.databases" / "d1" / "one.sqlite").read_bytes() == b"rows"
    assert folder.file.read_bytes() == b""
    assert mode(first) == 0o700
    assert folder.set_aside("2026-11-30").name == "damaged-2026-11-30-2"
    folder.release()


def test_a_state_of_an_earlier_release_is_taken_over(project: Project) -> None:
    """The clock's record had two numbers before there was an offset."""
    store = SqliteStore(project.state)
    later = 1_900_000_000_000_000
    store.append([Record("clock", [later, 3])])
    store.commit()
    store.close()
    config = project.path / "wrangler.jsonc"
    with Emulator(config, state=project.state) as emulator:
        assert emulator.now.timestamp() == later / 1_000_000


def test_a_state_keeps_by_how_much_the_clock_was_put_forward(project: Project) -> None:
    config = project.path / "wrangler.jsonc"
    with Emulator(config, state=project.state, clock="real", start=None) as emulator:
        emulator.run(emulator.advance("3 days"))
        told = emulator.now
    with Emulator(config, state=project.state, clock="real", start=None) as emulator:
        assert 0 <= (emulator.now - told).total_seconds() < 600
