"""What is wrong with a recording is said, with the line, and never by a traceback."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from emulator.errors import RecordingError
from emulator.recording.file import RecordingFile
from emulator.recording.reading import read

if TYPE_CHECKING:
    from pathlib import Path

    from recorded_project import Recorded
    from served_project import Served

HEAD: dict[str, Any] = {
    "recording": 1,
    "at": "2026-01-01T00:00:00Z",
    "configs": ["wrangler.jsonc"],
    "workers": {"shop": "2026-10-01"},
    "seed": 0,
    "process": 1,
}
REQUEST: dict[str, Any] = {
    "kind": "request",
    "at": "2026-01-01T00:00:01Z",
    "n": 1,
    "worker": "shop",
    "method": "GET",
    "url": "http://localhost/",
    "headers": [],
}
RESPONSE: dict[str, Any] = {
    "kind": "response",
    "at": "2026-01-01T00:00:02Z",
    "of": 1,
    "status": 200,
    "body": "hello",
}


def without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], "is empty: the Workers that it was to record never ran"),
        (["not json"], "is no recording: `workers-emulator dev --record FILE` makes one"),
        ([{"kind": "request"}], "is no recording"),
        ([[1]], "is no recording"),
        ([{**HEAD, "recording": 2, "by": "workers-emulator 9"}],
         "has format 2, written by workers-emulator 9, and this release reads up to 1"),
        ([without(HEAD, "seed")], "line 1 lacks 'seed'"),
        ([{**HEAD, "at": "yesterday"}], "line 1 cannot be read"),
        ([{**HEAD, "at": "2026-01-01T00:00:00"}], "line 1 has the time"),
        ([{**HEAD, "configs": "x"}], "line 1 cannot be read: configs is a list"),
        ([HEAD, "{broken", REQUEST], "line 2 is no JSON: the file was damaged, or edited"),
        ([HEAD, "[1]", REQUEST], "line 2 is no JSON object"),
        ([HEAD, without(REQUEST, "url")], "line 2 lacks 'url'"),
        ([HEAD, {**REQUEST, "url": 5}], "line 2 has url 5, which is no text"),
        ([HEAD, {**REQUEST, "headers": 5}], "line 2 cannot be read"),
        ([HEAD, {**REQUEST, "body": {"base64": "%"}}], "cannot be read: a body is no base64"),
        ([HEAD, {**REQUEST, "n": "x"}], "line 2 has the number 'x'"),
        ([HEAD, REQUEST, REQUEST], "line 3 has the number 1, which is none, or that of another"),
        ([HEAD, {**REQUEST, "kind": "wish"}], "line 2 has a kind that this release does not know"),
        ([HEAD, {**REQUEST, "kind": ["x"]}], "line 2 has a kind that this release does not know"),
        ([HEAD, RESPONSE], "line 2 is about number 1, of which no line above tells"),
        ([HEAD, REQUEST, {**RESPONSE, "at": "2026-01-01T00:00:00Z"}],
         "line 3 is out of order: it came in before the line above it"),
        ([HEAD, {**REQUEST, "at": "2025-12-31T00:00:00Z"}], "line 2 is out of order"),
        ([HEAD, REQUEST, {**RESPONSE, "status": "fine"}], "line 3 cannot be read"),
        ([HEAD, {"kind": "restart", "at": REQUEST["at"]}], "line 2 lacks 'process'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, lines: list[Any], text: str) -> None:
    path = tmp_path / "file.jsonl"
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{line}\n" for line in written), "utf-8")
    with pytest.raises(RecordingError) as caught:
        read(path)
    assert text in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_torn_last_line_is_left_out_with_a_note(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    with recorded.file.open("ab") as file:
        file.write(b'{"kind":"request","at":"2099-01-01T')
    told = recorded.told()
    assert told[0] == "same: entry 1 GET / 200"
    assert told[1].startswith("note: line 6 is torn, as the server was killed while it wrote it")


def test_a_torn_line_is_cut_off_when_the_recording_goes_on(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    with recorded.file.open("ab") as file:
        file.write(b'{"kind":"request","at":"2099-01-01T')
    recorded.record(lambda served: served.client.get("/calls"))
    assert recorded.replayed() == ["same: entry 1 GET / 200", "same: entry 2 GET /calls 200"]


def _notes(recorded: Recorded) -> list[str]:
    """The notes of a replay, and those beside a printed test, which are the same."""
    notes = [line for line in recorded.told() if line.startswith("note: ")]
    printed = recorded.run("--as-test").stderr
    assert [note for note in notes if note not in printed] == []
    return notes


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ((2,), "line 5: entry 2 is not in the recording, which has lost lines there"),
        ((2, 3), "line 5: entries 2 to 3 are not in the recording, which has lost lines there"),
        ((1,), "line 2: entry 1 is not in the recording, which has lost lines there"),
    ],
)
def test_entries_that_are_lost_are_told(
    recorded: Recorded, lost: tuple[int, ...], told: str
) -> None:
    async def visit(served: Served) -> None:
        for _ in range(4):
            await served.client.get("/")

    recorded.record(visit)
    assert _notes(recorded) == []
    kept = [
        line
        for line in recorded.file.read_bytes().splitlines(keepends=True)
        if not {json.loads(line).get("n"), json.loads(line).get("of")} & set(lost)
    ]
    recorded.file.write_bytes(b"".join(kept))
    (note,) = _notes(recorded)
    assert note.startswith(f"note: {told}")


def test_a_start_after_a_server_that_could_write_no_more_is_told(recorded: Recorded) -> None:
    async def visit(served: Served) -> None:
        await served.client.get("/")
        await served.desk.emulator.advance(0)
        assert served.desk.recorder is not None
        served.desk.recorder._file._give_up(OSError(28, "No space left on device"))
        await served.client.get("/calls")

    recorded.record(visit)
    (ends,) = _notes(recorded)
    assert ends.startswith("note: the recording ends before its server was stopped")
    recorded.record(lambda served: served.client.get("/calls"))
    (note,) = _notes(recorded)
    assert note == (
        "note: line 5: the server before this start did not write its end: it was killed, or could "
        "write no more (a full disk); what came in after line 4 is not in the recording"
    )


def test_a_server_that_was_stopped_and_started_leaves_no_gap(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    recorded.record(lambda served: served.client.get("/calls"))
    assert _notes(recorded) == []


def test_starts_that_are_lost_are_told(recorded: Recorded) -> None:
    for _ in range(3):
        recorded.record(lambda served: served.client.get("/"))
    lines = recorded.file.read_bytes().splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if b'"kind":"restart"' in line]
    recorded.file.write_bytes(b"".join([*lines[: starts[0]], *lines[starts[1] :]]))
    first, second = _notes(recorded)
    assert first.endswith(
        "not in the recording, before it: 1 start of the server, and what came in then"
    )
    assert "entry 2 is not in the recording" in second


def test_an_answer_that_never_came_is_not_compared(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    lines = recorded.file.read_bytes().splitlines(keepends=True)
    recorded.file.write_bytes(b"".join(line for line in lines if b'"response"' not in line))
    assert recorded.replayed() == ["new: entry 1 GET / had no answer, now 200"]


def test_a_body_that_never_came_is_said(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    lines = recorded.file.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"kind":"body"' not in line]
    kept = [line.replace(b'"headers"', b'"streamed":true,"headers"', 1) for line in kept]
    recorded.file.write_bytes(b"".join(kept))
    (line,) = recorded.replayed(code=1)
    assert line.endswith("its body is not in the recording, which ends before it came")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("print('a file of mine')\n", "is there and is no recording"),
        ("{}\n", "is there and is no recording"),
        (None, "Is a directory"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, content: str | None, text: str) -> None:
    path = tmp_path / "notes.txt"
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
        path.chmod(0o644)
    with pytest.raises(RecordingError) as caught:
        RecordingFile(path, print)
    assert text in str(caught.value)
    if content is not None:
        assert path.read_text() == content
        assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingError, match="is no file"):
        RecordingFile(tmp_path / "pipe", print)
    with pytest.raises(RecordingError, match="No such file"):
        RecordingFile(tmp_path / "no" / "folder", print)


def test_two_servers_cannot_write_one_recording(tmp_path: Path) -> None:
    first = RecordingFile(tmp_path / "r.jsonl", print)
    with pytest.raises(RecordingError, match="another server records into"):
        RecordingFile(tmp_path / "r.jsonl", print)
    first.close()
    RecordingFile(tmp_path / "r.jsonl", print).close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--as-test",), "--as-test prints a test of a recording: give it with --replay FILE"),
        (("--replay", "r.jsonl", "scenario.py"), "leave out scenario.py"),
        (("--replay", "r.jsonl", "--scenario", "x"), "--scenario chooses a function of a"),
        (("--replay", "none.jsonl"), "none.jsonl cannot be read: No such file or directory"),
        (("--replay", "."), "cannot be read: Is a directory"),
        (("--replay", "r.jsonl", "--as-test", "--faults", "x"), "--as-test runs nothing"),
        ((), "Missing argument 'SCENARIO.py'"),
    ],
)
def test_wrong_usage_is_said(recorded: Recorded, options: tuple[str, ...], text: str) -> None:
    from click.testing import CliRunner

    from emulator.cli.app import app

    (recorded.path / "r.jsonl").write_text(json.dumps(HEAD) + "\n", "utf-8")
    result = CliRunner().invoke(app, ["run", *options])
    assert result.exit_code == 2, result.output
    assert text in " ".join(result.stderr.split())


def test_a_worker_that_is_gone_is_named_with_the_line(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    config = (recorded.path / "wrangler.jsonc").read_text("utf-8")
    recorded.write("wrangler.jsonc", config.replace('"name": "shop"', '"name": "store"', 1))
    for options in ((), ("--as-test",)):
        text = recorded.run(*options, code=2).stderr
        assert "line 2 is a request to the Worker 'shop', and this config has store" in text


def test_a_config_that_is_gone_is_named(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    moved = recorded.write("moved/wrangler.jsonc", "")
    (recorded.path / "wrangler.jsonc").rename(moved)
    (recorded.path / "src").rename(recorded.path / "moved/src")
    (recorded.path / ".dev.vars").rename(recorded.path / "moved/.dev.vars")
    assert "which is not there; give the config of its Worker" in recorded.run(code=2).stderr
    assert recorded.replayed("-c", "moved") == ["same: entry 1 GET / 200"]


def test_another_compatibility_date_is_noted(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    config = (recorded.path / "wrangler.jsonc").read_text("utf-8")
    recorded.write("wrangler.jsonc", config.replace("2026-10-01", "2026-09-01"))
    note = "note: the compatibility date of shop was 2026-10-01, and is 2026-09-01"
    assert recorded.told()[1] == note


def test_code_that_does_not_load_is_said_with_its_line(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    recorded.write("src/entry.py", "nonsense nonsense")
    assert "SyntaxError" in recorded.run(code=2).stderr


def test_a_file_of_the_recording_is_not_overwritten(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/"))
    assert "would be overwritten" in recorded.run("--trace", str(recorded.file), code=2).stderr


def test_an_outside_that_had_not_answered_never_does(recorded: Recorded) -> None:
    recorded.record(lambda served: served.client.get("/down"))
    lines = recorded.file.read_bytes().splitlines(keepends=True)
    gone = (b'"kind":"answer"', b'"kind":"response"', b'"kind":"end"')
    recorded.file.write_bytes(b"".join(line for line in lines if not any(k in line for k in gone)))
    assert recorded.replayed() == ["new: entry 1 GET /down had no answer, has no answer"]
    assert "side_effect=never" in recorded.printed()
    recorded.pytest()


def test_a_recording_that_ends_before_its_server_is_noted(recorded: Recorded) -> None:
    """As after a full disk: the last line tells of no end."""
    recorded.record(lambda served: served.client.get("/"))
    assert recorded.told() == ["same: entry 1 GET / 200"]
    lines = recorded.file.read_text("utf-8").splitlines(keepends=True)
    assert '"kind":"end"' in lines.pop()
    recorded.file.write_text("".join(lines), "utf-8")
    same, note = recorded.told()
    assert same == "same: entry 1 GET / 200"
    assert note.startswith("note: the recording ends before its server was stopped")
    assert note in recorded.run("--as-test").stderr
