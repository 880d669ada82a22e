"""What lasts of a bucket: over crashes, restarts, processes; where large bodies lie."""

from __future__ import annotations

import signal
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from r2_bench import BUCKETS, HELLO_MD5, running

from emulator import StateError
from emulator.r2.bodies import Bodies
from emulator.r2.store import Kept
from emulator.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from emulator import Emulator

LARGE = b"0123456789" * 1_000


async def fill(emulator: Emulator) -> str:
    """Objects and an upload, some of them large; returns the upload's id."""
    r2 = emulator.env.R2
    await r2.put("small", "hello", customMetadata={"n": "1"}, storageClass="InfrequentAccess")
    await r2.put("large", LARGE, httpMetadata={"contentType": "a/b"})
    await r2.put("gone", LARGE)
    await r2.delete("gone")
    await r2.put("again", LARGE)
    await r2.put("again", LARGE + b"!")
    whole = await r2.createMultipartUpload("whole")
    await whole.complete([await whole.uploadPart(1, LARGE)])
    upload = await r2.createMultipartUpload("pending", customMetadata={"m": "2"})
    await upload.uploadPart(1, LARGE)
    return str(upload.uploadId)


async def check(emulator: Emulator, id: str) -> None:
    """That all of it is there."""
    bucket = emulator.r2["R2"]
    assert {found.key: found.body for found in bucket.objects} == {
        "again": LARGE + b"!",
        "large": LARGE,
        "small": b"hello",
        "whole": LARGE,
    }
    small, large = bucket.get("small"), bucket.get("large")
    assert small is not None
    assert large is not None
    assert (small.etag, small.custom_metadata) == (HELLO_MD5, {"n": "1"})
    assert (small.storage_class, large.http_metadata) == (
        "InfrequentAccess",
        {"contentType": "a/b"},
    )
    assert [(one.id, one.parts) for one in bucket.uploads] == [(id, {1: len(LARGE)})]


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["evict", "crash", "restart", "reload"])
@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "file"])
async def test_objects_outlive_the_workers_memory(how: str, in_file: bool, tmp_path: Path) -> None:
    async with running(state=tmp_path / "state" if in_file else None) as emulator:
        id = await fill(emulator)
        await getattr(emulator, how)()
        await check(emulator, id)
        upload = emulator.env.R2.resumeMultipartUpload("pending", id)
        await upload.complete([await upload.uploadPart(2, "x")])
        assert emulator.r2["R2"].get("pending").custom_metadata == {"m": "2"}  # type: ignore[union-attr]
        await emulator.restart()
        assert emulator.r2["R2"].get("pending").text == "x"  # type: ignore[union-attr]


@pytest.mark.asyncio
async def test_a_state_file_keeps_objects_and_large_bodies_beside_it(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "state.databases" / "r2"
    async with running(state=state) as emulator:
        id = await fill(emulator)
        await emulator.advance("1 h")
    # The bodies of `again`, `large`, `whole` and of the part; those dropped are gone.
    assert sorted(path.stat().st_size for path in folder.iterdir()) == [10_000] * 3 + [10_001]
    async with running(state=state) as emulator:
        await check(emulator, id)
        await emulator.env.R2.put("later", LARGE)
        assert emulator.r2["R2"].get("later").uploaded.hour == 1  # type: ignore[union-attr]
        versions = {found.version for found in emulator.r2["R2"].objects}
        assert len(versions) == 5
        await emulator.reset()
        assert emulator.r2["R2"].keys == []
    assert list(folder.iterdir()) == []
    async with running(state=state) as emulator:
        assert emulator.r2["R2"].objects == emulator.r2["R2"].uploads == []


@pytest.mark.asyncio
async def test_a_reset_empties_buckets() -> None:
    async with running() as emulator:
        await fill(emulator)
        await emulator.reset()
        assert emulator.r2["R2"].keys == []
        await emulator.restart()
        assert emulator.r2["R2"].keys == []


@pytest.mark.asyncio
async def test_a_missing_body_is_told_of(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(state=state) as emulator:
        await emulator.env.R2.put("large", LARGE)
    for path in (tmp_path / "state.databases" / "r2").iterdir():
        path.unlink()
    async with running(state=state) as emulator:
        with pytest.raises(StateError, match="is missing: put it back, or start with a new state"):
            _ = emulator.r2["R2"].objects


@pytest.mark.asyncio
async def test_bodies_without_their_state_file_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(state=state) as emulator:
        await emulator.env.R2.put("large", LARGE)
    state.unlink()
    with pytest.raises(StateError, match="state file that is gone"):
        async with running(state=state):
            pass


def killed(state: Path) -> None:
    """Put objects in a process of its own, and kill that."""
    program = f"""
        import asyncio, os, signal
        from emulator import Emulator
        from workers import Response, WorkerEntrypoint

        class W(WorkerEntrypoint):
            async def fetch(self, request):
                await self.env.R2.put("small", "hello")
                await self.env.R2.put("large", b"0123456789" * 1000)
                await self.env.R2.put("large", b"0123456789" * 1000 + b"!")
                return Response("ok")

        async def main():
            config = {{"main": W, "r2_buckets": {BUCKETS!r}}}
            async with Emulator(config, state={str(state)!r}) as emulator:
                assert (await emulator.fetch("/")).text == "ok"
                os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.asyncio
async def test_a_killed_process_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "state.databases" / "r2"
    killed(state)
    (folder / "leftover.part").write_bytes(b"half")
    async with running(state=state) as emulator:
        bodies = {found.key: found.body for found in emulator.r2["R2"].objects}
        assert bodies == {"small": b"hello", "large": LARGE + b"!"}
        # What the dead process left over is gone.
        assert [path.stat().st_size for path in folder.iterdir()] == [10_001]


@pytest.mark.asyncio
async def test_a_snapshot_in_the_middle_keeps_all(tmp_path: Path) -> None:
    """More records than the store keeps before it writes the state as a whole."""

    async def handle(env: Any) -> str:
        for number in range(11_000):
            await env.R2.put(f"key:{number % 100:02}", str(number))
        upload = await env.R2.createMultipartUpload("pending")
        await upload.uploadPart(1, LARGE)
        return "ok"

    async with running(handle, state=tmp_path / "state") as emulator:
        assert (await emulator.fetch("/")).text == "ok"
        await emulator.restart()
        assert emulator.r2["R2"].get("key:99").text == "10999"  # type: ignore[union-attr]
        assert len(emulator.r2["R2"].keys) == 100
        assert [one.parts for one in emulator.r2["R2"].uploads] == [{1: 10_000}]


@pytest.mark.asyncio
async def test_a_body_stays_until_what_replaced_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that fails leaves the file's own state as it was: its bodies have to be there."""
    state, folder = tmp_path / "state", tmp_path / "state.databases" / "r2"

    def fail(_: SqliteStore) -> None:
        raise StateError("the disk is full")

    async with running(state=state) as emulator:
        emulator.r2["R2"].put("a", LARGE)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "commit", fail)
            with pytest.raises(StateError, match="the disk is full"):
                emulator.r2["R2"].put("a", LARGE + b"!")
            assert sorted(path.stat().st_size for path in folder.iterdir()) == [10_000, 10_001]
        await emulator.advance(0)
        assert [path.stat().st_size for path in folder.iterdir()] == [10_001]


# -- bodies ----------------------------------------------------------------------------------------


def test_a_small_body_stays_where_it_is_and_a_large_one_goes_elsewhere() -> None:
    bodies = Bodies(None, iter("abc").__next__)
    small, large = bodies.keep(b"x" * 4_096), bodies.keep(b"x" * 4_097)
    assert isinstance(small, bytes)
    assert large == Kept("a", 4_097)


@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "file"])
def test_bytes_are_read_over_the_borders_of_parts(in_file: bool, tmp_path: Path) -> None:
    names = iter("abc")
    bodies = Bodies((lambda: tmp_path) if in_file else None, names.__next__)
    parts = [bodies.keep(b"a" * 5_000), bodies.keep(b"b"), bodies.keep(b"c" * 5_000)]
    whole = b"a" * 5_000 + b"b" + b"c" * 5_000
    for offset, length in ((0, 10_001), (4_999, 3), (5_000, 1), (5_001, 2), (10_001, 0), (1, 2)):
        assert bodies.read(parts, offset, length) == whole[offset : offset + length]


def test_a_dropped_body_goes_when_that_is_durable(tmp_path: Path) -> None:
    bodies = Bodies(lambda: tmp_path, iter("ab").__next__)
    first = bodies.keep(b"x" * 5_000)
    bodies.drop([first, b"small"])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    bodies.clean()
    assert list(tmp_path.iterdir()) == []
