"""The store in a file: what a kill leaves, and what a wrong file says."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING

import pytest

from emulator.errors import StateError
from emulator.store.records import Record
from emulator.store.sqlite import APPLICATION_ID, SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is for POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def filled(path: Path, numbers: range = range(20)) -> Path:
    store = SqliteStore(path)
    store.append(Record("queues", ["number", number, "padding " * 20]) for number in numbers)
    store.commit()
    store.close()
    return path


def test_records_outlive_the_store(path: Path) -> None:
    filled(path, range(3))
    filled(path, range(3, 5))
    store = SqliteStore(str(path))
    assert [record.payload[1] for record in store.load().records] == [0, 1, 2, 3, 4]
    assert store.record_count == 5
    store.close()


def test_closed_store_is_one_file(path: Path) -> None:
    filled(path)
    assert os.listdir(path.parent) == ["state.db"]


def test_commit_writes_one_transaction(path: Path) -> None:
    store = SqliteStore(path)
    begun: list[str] = []
    store._connection.set_trace_callback(begun.append)
    for number in range(100):
        store.append([Record("queues", [number])])
    assert begun == []
    store.commit()
    store.commit()
    assert [statement for statement in begun if statement.startswith(("BEGIN", "COMMIT"))] == [
        "BEGIN EXCLUSIVE",
        "COMMIT",
    ]
    store.close()


def test_failed_commit_keeps_the_records_for_the_next(path: Path) -> None:
    store = SqliteStore(path)
    store.append([Record("queues", [1])])
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StateError, match=r"state\.db cannot be written"):
        store.commit()
    store._connection.execute("PRAGMA query_only = OFF")
    store.commit()
    assert store.load().records == [Record("queues", [1])]
    store.close()


# The file is somebody's already


def test_open_file_is_locked_for_others(path: Path) -> None:
    store = SqliteStore(path)
    with pytest.raises(StateError, match=r"state\.db is in use by another emulator: stop that one"):
        SqliteStore(path)
    store.close()
    SqliteStore(path).close()


def test_open_file_is_locked_for_other_processes_even_if_nothing_was_written(path: Path) -> None:
    filled(path)
    script = (
        "import sys\n"
        "from emulator.store.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1])\n"
        "sys.stdout.write('open\\n'); sys.stdout.flush(); sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StateError, match="is in use by another emulator"):
            SqliteStore(path)
        other.kill()
    SqliteStore(path).close()


def test_database_of_another_program_is_left_alone(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE users (name)")
    before = path.read_bytes()
    with pytest.raises(StateError, match=r"state\.db belongs to another program: use another file"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["state.db"]


def test_empty_file_is_a_new_state(path: Path) -> None:
    path.touch()
    store = SqliteStore(path)
    assert store.load() == (None, [])
    store.close()


def test_file_of_a_newer_release_is_refused(path: Path) -> None:
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match=r"state\.db has version 99, this release reads up to 1"):
        SqliteStore(path)


def test_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("# notes\n" * 100)
    with pytest.raises(StateError, match=r"state\.db is not a state file, or damaged"):
        SqliteStore(path)


def test_path_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "state.db"):
        with pytest.raises(StateError, match="cannot be opened: it must be a file in an existing"):
            SqliteStore(path)


def test_damaged_record_is_named(path: Path) -> None:
    filled(path)
    damaged = path.read_bytes()
    assert damaged.count(b"padding padding") > 20
    path.write_bytes(damaged.replace(b"padding", b"PADDING", 1))
    store = SqliteStore(path)
    with pytest.raises(StateError, match=r"record \d+ of queues in .*state\.db is damaged"):
        store.load()
    store.close()


def test_damaged_page_is_a_state_error(path: Path) -> None:
    filled(path, range(500))
    content = bytearray(path.read_bytes())
    page = 4096
    content[page:] = random.Random(1).randbytes(len(content) - page)
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"state\.db is damaged: restore a copy"):
        SqliteStore(path)


def test_truncated_file_is_a_state_error(path: Path) -> None:
    filled(path, range(500))
    os.truncate(path, 8192)
    with pytest.raises(StateError, match=r"state\.db is damaged: restore a copy"):
        SqliteStore(path)


# kill -9

# Forks a writer for each line it is told, so that a round costs no start of Python. The writer
# commits numbers and prints each *after* its commit, a whole line at a time.
NURSERY = """
import os, sys
from emulator.store.records import Record
from emulator.store.sqlite import SqliteStore

def write(path, number):
    store = SqliteStore(path)
    while True:
        store.append([Record("queues", ["number", number, b"x" * 50]), Record("queues", ["more"])])
        store.commit()
        os.write(1, b"%d\\n" % number)
        number += 1

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        write(sys.argv[1], int(line))
    os.write(1, b"pid %d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


@contextlib.contextmanager
def nursery(path: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    command = [sys.executable, "-c", NURSERY, str(path)]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()


@needs_fork
def test_killed_process_loses_nothing_it_committed(path: Path) -> None:
    """50 rounds on one file, killed after anything from no commit at all to a few hundred."""
    chance = random.Random(0)
    number = 0
    with nursery(path) as (orders, printed):
        for _ in range(50):
            orders.write(f"{number}\n")
            orders.flush()
            promised = one_round(printed, chance.uniform(0, 0.02))
            durable = compacted(path)
            assert promised == durable[: len(promised)]
            # At most one more: committed, and killed before it could be printed.
            assert len(durable) - len(promised) in (0, 1)
            assert durable == list(range(number, number + len(durable)))
            number += len(durable)
    assert number > 500


def one_round(printed: IO[str], seconds: float) -> list[int]:
    """Kill the writer after some time; returns the numbers it had printed by then."""
    numbers: list[int] = []
    for line in iter(printed.readline, "dead\n"):
        if line.startswith("pid"):
            time.sleep(seconds)
            os.kill(int(line.split()[1]), signal.SIGKILL)
        else:
            numbers.append(int(line))
    return numbers


def compacted(path: Path) -> list[int]:
    """The numbers in the store, which a snapshot then replaces, to keep the rounds short."""
    store = SqliteStore(path)
    records = [record.payload for record in store.load().records]
    store.compact({"queues": ["so many", len(records)]})
    store.close()
    assert all(second == ["more"] for second in records[1::2])
    assert len(records) % 2 == 0
    return [number for _, number, _ in records[::2]]
