"""A disk that is really full: a small one of memory, where this machine lets tests mount one."""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from wire import SCRIPT, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from served_project import Project

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system is not allowed here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte; returns what fills it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 65_536
        while size:
            try:
                file.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    return filler


def printed(server: ServerProcess) -> set[str]:
    """The texts of messages that the Worker printed."""
    texts = (line["data"]["text"] for line in server.lines if line.get("kind") == "log")
    return {name for text in texts for name in re.findall(r"'(message \d+)'", text)}


def test_what_was_accepted_survives_a_full_disk_and_a_kill(project: Project, small: Path) -> None:
    state = str(small / "state")
    accepted: list[str] = []
    with ServerProcess(project.path, "--state", state) as server:

        def send(number: int) -> int:
            name = f"message {number}"
            answer = server.client.post("/", content=name)
            if answer.status_code == 202:
                accepted.append(name)
            else:
                assert answer.status_code == 503
                assert "cannot be written: the disk is full" in answer.text
            return answer.status_code

        assert send(0) == 202
        filler = fill(small)
        assert any(send(number) == 503 for number in range(1, 100)), "it never was full"
        assert send(100) == 503
        server.said("the disk is full")
        filler.unlink()
        server.said("the state is written again")
        assert send(101) == 202
        server.kill()
    with ServerProcess(project.path, "--state", state) as again:
        again.advance("1 minute")
        assert again.stop() == 0
    delivered = printed(server) | printed(again)
    assert set(accepted) <= delivered
    assert "message 100" in delivered, "what was stored is stored when there is room again"


def test_a_server_does_not_start_on_a_full_disk(project: Project, small: Path) -> None:
    fill(small)
    done = subprocess.run(
        [str(SCRIPT), "dev", "--port", "0", "--state", str(small / "state")],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert re.search("No space left on device|the disk is full", done.stderr), done.stderr
