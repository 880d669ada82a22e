"""What survives: evictions, crashes, restarts, killed processes, full disks."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from worker_files import worker

from emulator import Emulator, StateError, WorkerCrashed

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = """
import asyncio
from urllib.parse import parse_qsl, urlsplit
from workers import Response, WorkerEntrypoint

memory = []

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        options = dict(parse_qsl(urlsplit(request.url).query))
        memory.append(options)
        answer = await self.env.Q.send(options["body"], delaySeconds=options.get("delay", 0))
        return Response(str(len(memory)))

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            if message.body == "slow":
                await asyncio.sleep(100)
            if message.body == "bad":
                message.retry()
"""


def config(folder: Path, **consumer: Any) -> dict[str, Any]:
    return worker(
        folder,
        ENTRY,
        queues={
            "producers": [{"binding": "Q", "queue": "q"}],
            "consumers": [{"queue": "q", "dead_letter_queue": "d", **consumer}],
        },
    )


def clock(emulator: Emulator) -> float:
    """Seconds of virtual time since the start."""
    return (emulator.now - START).total_seconds()


def bodies(emulator: Emulator, queue: str = "q") -> list[Any]:
    return [item.body for item in emulator.queues[queue].backlog]


def deliveries(emulator: Emulator, queue: str = "q") -> list[tuple[float, Any, int, str]]:
    return [
        ((record.at - START).total_seconds(), record.body, record.attempt, record.outcome)
        for record in emulator.queues[queue].deliveries
    ]


def waiting(emulator: Emulator) -> list[tuple[str, str, Any, int, datetime, datetime | None]]:
    """All that is stored, with everything that identifies it."""
    return [
        (name, item.id, item.body, item.attempts, item.timestamp, item.due)
        for name, queue in emulator.queues.items()
        for item in (*queue.backlog, *queue.in_flight)
    ]


# -- evict, crash, restart, reload -----------------------------------------------------------------


async def fill(emulator: Emulator) -> None:
    """Bring a queue into every state: one in flight, one waiting, one delayed, a dead letter."""
    await emulator.queues["q"].send("bad")
    await emulator.advance(5)
    await emulator.queues["q"].send("slow")
    await emulator.advance(5)
    await emulator.queues["q"].send("waits")
    await emulator.queues["q"].send("delayed", delaySeconds=3600)
    assert [item.body for item in emulator.queues["q"].in_flight] == ["slow"]
    assert bodies(emulator) == ["waits", "delayed"]
    assert bodies(emulator, "d") == ["bad"]


@pytest.mark.parametrize("call", ["evict", "reload"])
async def test_what_is_in_flight_finishes_when_memory_goes(tmp_path: Path, call: str) -> None:
    async with Emulator(config(tmp_path, max_retries=0)) as emulator:
        await fill(emulator)
        await getattr(emulator, call)()
        assert [item.body for item in emulator.queues["q"].in_flight] == ["slow"]
        await emulator.settle()
        assert deliveries(emulator) == [
            (5, "bad", 1, "dead_letter"),
            (10, "slow", 1, "ack"),
            (115, "waits", 1, "ack"),
            (3615, "delayed", 1, "ack"),
        ]
        assert bodies(emulator, "d") == ["bad"]


@pytest.mark.parametrize("call", ["crash", "restart"])
async def test_what_is_in_flight_is_delivered_again_after_a_crash(
    tmp_path: Path, call: str
) -> None:
    async with Emulator(config(tmp_path, max_retries=1, retry_delay=30)) as emulator:
        emulator.queues["d"].pause()
        await fill_with_retry(emulator)
        before = [row for row in waiting(emulator) if row[2] != "slow"]
        await getattr(emulator, call)()
        after = [row for row in waiting(emulator) if row[2] != "slow"]
        assert after == before
        assert emulator.queues["d"].settings["delivery_paused"] is True
        await emulator.settle()
        slow = [row for row in deliveries(emulator) if row[1] == "slow"]
        # Lost at 50 s, due 30 s later, and then a batch like any other.
        assert [(attempt, outcome) for _, _, attempt, outcome in slow] == [(1, "lost"), (2, "ack")]
        assert slow[1][0] >= slow[0][0] + 30
        assert emulator.queues["q"].acked == 3
        assert bodies(emulator, "d") == ["bad"]


async def fill_with_retry(emulator: Emulator) -> None:
    await emulator.queues["q"].send("bad")
    await emulator.advance(45)
    assert bodies(emulator, "d") == ["bad"]
    await emulator.queues["q"].send("slow")
    await emulator.advance(5)
    await emulator.queues["q"].send("waits")
    await emulator.queues["q"].send("delayed", delaySeconds=3600)


async def test_memory_is_lost_and_messages_are_not(tmp_path: Path) -> None:
    async with Emulator(config(tmp_path)) as emulator:
        for call in ("evict", "crash", "restart", "reload"):
            assert (await emulator.fetch("/?body=x")).text == "1"
            assert (await emulator.fetch("/?body=x")).text == "2"
            await getattr(emulator, call)()
        assert bodies(emulator) == ["x"] * 8


async def test_counts_settings_and_deliveries_survive_a_restart(tmp_path: Path) -> None:
    async with Emulator(config(tmp_path, max_retries=0)) as emulator:
        await fill(emulator)
        await emulator.settle()
        queue = emulator.queues["q"]
        before = (queue.acked, queue.dead_lettered, queue.settings, deliveries(emulator))
        await emulator.restart()
        assert (queue.acked, queue.dead_lettered, queue.settings, deliveries(emulator)) == before


async def test_a_restart_while_the_last_delivery_is_in_flight(tmp_path: Path) -> None:
    async with Emulator(config(tmp_path, max_retries=0)) as emulator:
        await emulator.queues["q"].send("slow")
        await emulator.advance(10)
        await emulator.restart()
        assert deliveries(emulator) == [(5, "slow", 1, "dead_letter")]
        assert bodies(emulator, "d") == ["slow"]


async def test_what_expired_during_the_restart_is_gone(tmp_path: Path) -> None:
    settings = {"q": {"message_retention_period": 60}}
    async with Emulator(config(tmp_path), queue_settings=settings) as emulator:
        emulator.queues["q"].pause()
        await emulator.queues["q"].send("x")
        await emulator.advance(59)
        await emulator.restart()
        assert bodies(emulator) == ["x"]
        await emulator.advance(1)
        assert (bodies(emulator), emulator.queues["q"].expired) == ([], 1)


async def test_many_restarts_change_nothing(tmp_path: Path) -> None:
    async with Emulator(config(tmp_path)) as emulator:
        for number in range(30):
            await emulator.queues["q"].send(number, delaySeconds=number * 100)
        before = waiting(emulator)
        for _ in range(20):
            await emulator.restart()
        assert waiting(emulator) == before


# -- a state file ----------------------------------------------------------------------------------


def reopened(folder: Path, **options: Any) -> Emulator:
    return Emulator(
        config(folder, **options.pop("consumer", {})), state=folder / "state", **options
    )


async def test_a_state_file_keeps_everything(tmp_path: Path) -> None:
    async with reopened(tmp_path, consumer={"max_retries": 0}) as emulator:
        await fill(emulator)
        emulator.queues["q"].pause()
        before = [row for row in waiting(emulator) if row[2] != "slow"]
    async with reopened(tmp_path, consumer={"max_retries": 0}) as emulator:
        assert clock(emulator) == 10
        assert [row for row in waiting(emulator) if row[2] != "slow"] == before
        # It was in flight when the process ended, on its last delivery.
        assert bodies(emulator, "d") == ["bad", "slow"]
        assert emulator.queues["q"].settings["delivery_paused"] is True
        emulator.queues["q"].resume()
        await emulator.settle()
        assert [body for _, body, *_ in deliveries(emulator)] == ["waits", "delayed"]


async def test_long_delays_across_processes(tmp_path: Path) -> None:
    """O-03"""
    consumer = {"max_retries": 3, "retry_delay": 43_200, "max_batch_timeout": 0}
    found: list[float] = []
    for process in range(4):
        async with reopened(tmp_path, consumer=consumer) as emulator:
            assert clock(emulator) == process * 43_200
            if process == 0:
                await emulator.queues["q"].send("bad")
            await emulator.advance(timedelta(hours=12))
            found += [at / 3600 for at, *_ in deliveries(emulator)]
            dead = bodies(emulator, "d")
    assert found == [0, 12, 24, 36]
    assert dead == ["bad"]


async def test_time_that_only_passed_is_kept_too(tmp_path: Path) -> None:
    async with reopened(tmp_path) as emulator:
        await emulator.advance("3 days")
    async with reopened(tmp_path) as emulator:
        assert clock(emulator) == 3 * 86_400
        await emulator.advance(1)
    async with reopened(tmp_path, start=START + timedelta(days=30)) as emulator:
        # Time does not run backwards, but a later start is a later start.
        assert clock(emulator) == 30 * 86_400


async def test_ids_are_not_given_twice(tmp_path: Path) -> None:
    """Though each process starts from the same seed."""
    seen: list[str] = []
    for _ in range(3):
        async with reopened(tmp_path) as emulator:
            emulator.queues["q"].pause()
            seen += await emulator.queues["q"].send_batch(["a", "b"])
    assert len(set(seen)) == 6
    async with reopened(tmp_path) as emulator:
        assert [item.id for item in emulator.queues["q"].backlog] == seen
        emulator.queues["q"].resume()
        await emulator.settle()
        assert [record.id for record in emulator.queues["q"].deliveries] == seen


async def test_the_same_files_and_seed_give_the_same_run(tmp_path: Path) -> None:
    traces = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        texts = []
        for _ in range(2):
            async with reopened(folder) as emulator:
                await emulator.fetch("/?body=x")
                await emulator.settle()
                texts.append(emulator.trace.to_jsonl())
        traces.append(texts)
    assert traces[0] == traces[1]
    assert traces[0][0] != traces[0][1]


async def test_messages_of_a_queue_that_is_no_longer_configured(tmp_path: Path) -> None:
    async with reopened(tmp_path) as emulator:
        await emulator.queues["q"].send("slow")
        await emulator.advance(10)
    other = {"producers": [{"binding": "Q", "queue": "other"}]}
    bare = {**config(tmp_path), "queues": other}
    async with Emulator(bare, state=tmp_path / "state") as emulator:
        assert list(emulator.queues) == ["other", "q"]
        await emulator.settle()
        assert bodies(emulator) == ["slow"]
        assert "no_consumer" in [finding.code for finding in emulator.findings]
    async with reopened(tmp_path) as emulator:
        await emulator.settle()
        assert [(attempt, outcome) for _, _, attempt, outcome in deliveries(emulator)] == [
            (2, "ack")
        ]


async def test_reset_empties_the_file(tmp_path: Path) -> None:
    async with reopened(tmp_path) as emulator:
        await emulator.fetch("/?body=x&delay=60")
        await emulator.advance(30)
        await emulator.reset()
        assert clock(emulator) == 0
    async with reopened(tmp_path) as emulator:
        assert (bodies(emulator), clock(emulator)) == ([], 0)


async def test_a_long_history_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.durability._COMPACT_EVERY", 50)
    async with reopened(tmp_path) as emulator:
        await emulator.queues["q"].send("kept", delaySeconds=80_000)
        for number in range(200):
            await emulator.queues["q"].send(number)
            await emulator.advance(5)
    with sqlite3.connect(tmp_path / "state") as connection:
        (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
    connection.close()
    assert count < 60
    async with reopened(tmp_path) as emulator:
        assert bodies(emulator) == ["kept"]
        assert emulator.queues["q"].acked == 200


# -- files that cannot be used ---------------------------------------------------------------------


async def test_one_file_serves_one_emulator(tmp_path: Path) -> None:
    async with reopened(tmp_path) as first:
        with pytest.raises(StateError, match="in use by another emulator"):
            reopened(tmp_path)
        # The other one is not disturbed.
        await first.fetch("/?body=x")
    async with reopened(tmp_path) as second:
        assert bodies(second) == ["x"]


def _newer(path: Path) -> None:
    Emulator({"main": _main(path.parent)}, state=path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _main(folder: Path) -> str:
    return str(config(folder)["main"])


def _foreign(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (_newer, "has version 99, this release reads up to 1"),
        (_foreign, "is not a state file, or damaged"),
        (Path.mkdir, "cannot be opened: it must be a file in an existing directory"),
    ],
)
async def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, make: Any, text: str) -> None:
    make(tmp_path / "state")
    with pytest.raises(StateError, match=text) as info:
        reopened(tmp_path)
    assert str(tmp_path / "state") in str(info.value)
    # Nothing is left behind in the process: the next one works.
    async with Emulator(config(tmp_path)) as emulator:
        assert (await emulator.fetch("/?body=x")).text == "1"


async def test_a_file_in_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="in an existing directory"):
        Emulator(config(tmp_path), state=tmp_path / "no" / "state")


class FullDisk:
    """Stands in for a store's connection while the disk is full."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.full = False

    def executemany(self, *arguments: Any) -> Any:
        if self.full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.executemany(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def disk_of(emulator: Emulator) -> FullDisk:
    store: Any = emulator._platform._durability._store
    disk = store._connection = FullDisk(store._connection)
    return disk


async def test_a_full_disk_is_told_to_the_caller_and_loses_nothing(tmp_path: Path) -> None:
    async with reopened(tmp_path) as emulator:
        disk = disk_of(emulator)
        await emulator.fetch("/?body=before")
        disk.full = True
        for _ in range(2):
            with pytest.raises(StateError, match="the disk is full"):
                await emulator.fetch("/?body=during")
        with pytest.raises(StateError, match="the disk is full"):
            await emulator.advance(0)
        disk.full = False
        await emulator.advance(0)
        expected = ["before", "during", "during"]
        assert bodies(emulator) == expected
        await emulator.restart()
        assert bodies(emulator) == expected
    async with reopened(tmp_path) as emulator:
        assert bodies(emulator) == expected


async def test_a_restart_on_a_full_disk_keeps_what_is_in_memory(tmp_path: Path) -> None:
    async with reopened(tmp_path) as emulator:
        disk = disk_of(emulator)
        disk.full = True
        with pytest.raises(StateError):
            await emulator.fetch("/?body=during")
        with pytest.raises(StateError):
            await emulator.restart()
        disk.full = False
        await emulator.restart()
        assert bodies(emulator) == ["during"]


async def test_an_error_the_caller_got_otherwise_is_not_raised_again(tmp_path: Path) -> None:
    """It is left over when the platform's own action and the commit after it fail both."""
    async with reopened(tmp_path) as emulator:
        disk = disk_of(emulator)
        gc.disable()
        try:
            disk.full = True
            with pytest.raises(StateError):
                await emulator.fetch("/?body=during")
            with pytest.raises(StateError):
                await emulator.restart()
            disk.full = False
            # Collected in the middle of a run, where it was taken for a new error.
            emulator._kernel.loop.kernel_soon(gc.collect)
            await emulator.restart()
        finally:
            gc.enable()
        assert bodies(emulator) == ["during"]


async def test_closing_on_a_full_disk_raises_and_closes(tmp_path: Path) -> None:
    emulator = reopened(tmp_path)
    disk = disk_of(emulator)
    await emulator.fetch("/?body=before")
    disk.full = True
    with pytest.raises(StateError, match="the disk is full"):
        await emulator.aclose()
    await emulator.aclose()
    async with reopened(tmp_path) as emulator:
        assert bodies(emulator) == ["before"]


# -- durable before visible ------------------------------------------------------------------------


async def test_what_the_outside_is_told_is_durable(tmp_path: Path, respx_mock: Any) -> None:
    """A request leaves only when the sends before it are in the file."""
    import httpx

    entry = """
    from workers import Response, WorkerEntrypoint, fetch
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            await self.env.Q.send("told")
            await fetch("https://api.example/")
            return Response("ok")
    """
    main = worker(tmp_path, entry, queues={"producers": [{"binding": "Q", "queue": "q"}]})
    seen = []

    def look(request: httpx.Request) -> httpx.Response:
        store: Any = emulator._platform._durability._store
        seen.extend(
            record.payload[0] for record in store.load().records if record.product == "queues"
        )
        return httpx.Response(200)

    respx_mock.get("https://api.example/").mock(side_effect=look)
    async with Emulator(main, state=tmp_path / "state") as emulator:
        await emulator.fetch("/")
        assert seen == ["send"]


async def test_a_batch_is_one_transaction(tmp_path: Path) -> None:
    """However many messages one call of the test moves."""
    async with reopened(tmp_path) as emulator:
        store: Any = emulator._platform._durability._store
        commits = []
        usual = store.commit
        store.commit = lambda: (commits.append(1), usual())
        await emulator.queues["q"].send_batch(list(range(100)))
        assert len(commits) == 1


async def test_a_crash_does_not_touch_the_file(tmp_path: Path) -> None:
    async with reopened(tmp_path, faults="send.q#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/?body=x")
    async with reopened(tmp_path) as emulator:
        assert bodies(emulator) == ["x"]


# -- a process that is killed ----------------------------------------------------------------------


async def drive(folder: Path, number: int) -> None:
    """Send and consume for ever, and say so, until killed."""
    async with reopened(folder) as emulator:
        queue = emulator.queues["q"]
        while True:
            await emulator.fetch(f"/?body={number}&delay={number % 3}")
            os.write(1, f"sent {number}\n".encode())
            number += 1
            if number % 4 == 0:
                await emulator.advance(3)
                for record in queue.deliveries:
                    os.write(1, f"got {record.body} {record.id} {record.attempt}\n".encode())
                queue.deliveries.clear()


def drive_and_kill(folder: Path, number: int, *, lines: int) -> list[list[str]]:
    """Let a process drive until it has said some lines, and kill it; all it said, in words."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.close(reader)
        asyncio.run(drive(folder, number))
    os.close(writer)
    with os.fdopen(reader) as output:
        said = [output.readline() for _ in range(lines + 1)]
        os.kill(child, signal.SIGKILL)
        said += output.readlines()
    os.waitpid(child, 0)
    # A line that is not whole was not said: its reader knows nothing.
    return [line.split() for line in said if line.endswith("\n")]


def kill_again_and_again(folder: Path, rounds: int) -> None:
    """Kill a process at one line after the other, and look at what it left."""
    number = 0
    for round in range(rounds):
        lines = drive_and_kill(folder, number, lines=round * 7 % 23)
        sent = [int(words[1]) for words in lines if words[0] == "sent"]
        got = {int(words[1]): (words[2], int(words[3])) for words in lines if words[0] == "got"}
        assert sent == list(range(number, number + len(sent)))
        number = look(folder, number + len(sent), got)
    assert number > rounds
    with reopened(folder) as emulator:
        emulator.run(emulator.settle())
        assert emulator.queues["q"].acked == number


def look(folder: Path, known: int, got: dict[int, tuple[str, int]]) -> int:
    """Compare what is stored with what is known to be accepted and delivered.

    Returns how many messages were accepted: one more than known, perhaps, of which the process had
    no time to tell.
    """
    with reopened(folder) as emulator:
        queue = emulator.queues["q"]
        stored = [int(item.body) for item in queue.backlog]
        accepted = queue.acked + len(stored)
        assert accepted in (known, known + 1)
        assert len(set(stored)) == len(stored)
        assert set(stored) <= set(range(accepted))
        assert not set(stored) & set(got)
        ids = {item.id for item in queue.backlog} | {id for id, _ in got.values()}
        assert len(ids) == len(stored) + len(got)
        # Whatever was in hand when a process was killed, was delivered again.
        assert {attempt for _, attempt in got.values()} <= {1, 2}
        assert {item.attempts for item in queue.backlog} <= {0, 1}
        return accepted


@pytest.mark.filterwarnings("ignore:.*is not an async function")
def test_a_killed_process_loses_nothing_that_it_accepted(tmp_path: Path) -> None:
    """At whatever line it is killed: no accepted message is lost, and none is invented.

    In a process of its own, which forks: importing everything 50 times takes long.
    """
    tests = Path(__file__).parent
    script = "import sys, test_durability as t; t.kill_again_and_again(t.Path(sys.argv[1]), 50)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
