"""What was durable when a recording began, and putting it back for a replay.

A development server nearly always has some state: users in D1, keys in KV, a Workflow that sleeps.
A recording holds it, as the store does: the snapshot and the records of each product, with secrets
masked, and the files beside it (the databases of D1 and of objects, the bodies of R2). They are
put back into a store of the replay's own, from which its emulator recovers as the server did.

What is not taken is named in the recording, and told at a replay: all of it where it is larger than
`MOST_BYTES`, and a database that holds a secret, for a database cannot be masked.
"""

from __future__ import annotations

import os
import sqlite3
from base64 import b64decode, b64encode
from contextlib import closing
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import RecordingError, StateError
from emulator.recording.coding import value_from_json, value_to_json
from emulator.sql.files import DatabaseFolder
from emulator.store.records import Record
from emulator.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from emulator.recording.masking import Filler
    from emulator.secrets import Masker

KIND: Final = "state"
MOST_BYTES: Final = 33_554_432
_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_DATABASE: Final = ".sqlite"
_SQLITE: Final = b"SQLite format 3\0"


class StartState:
    """What a state file and the folder beside it hold, read before a server takes them."""

    def __init__(self, file: Path | None) -> None:
        self._snapshot: dict[str, Any] = {}
        self._records: list[Record] = []
        self._files: list[tuple[str, bytes]] = []
        self._left: list[tuple[str, str]] = []
        if file is not None and file.exists() and file.stat().st_size:
            try:
                self._read(file)
            except (StateError, OSError, sqlite3.Error):
                # The server tells it, and begins anew, or not at all.
                self.__init__(None)  # type: ignore[misc]

    def _read(self, file: Path) -> None:
        store = SqliteStore(file)
        try:
            loaded = store.load()
        finally:
            store.close()
        self._snapshot, self._records = dict(loaded.snapshot or {}), loaded.records
        folder = DatabaseFolder(file).path
        assert folder is not None
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        size = file.stat().st_size + sum(path.stat().st_size for path in paths)
        if size > MOST_BYTES:
            self.__init__(None)  # type: ignore[misc]
            self._left = [("all", f"its {size:,} bytes are more than {MOST_BYTES:,}")]
            return
        for path in paths:
            name = path.relative_to(folder).as_posix()
            if name.endswith(_DATABASE):
                self._files.append((name, _database(path)))
            elif not name.endswith(("-wal", "-shm", "-journal")):
                self._files.append((name, path.read_bytes()))

    def lines(self, masker: Masker) -> Iterator[dict[str, Any]]:
        """Yield the entries that hold it, secrets masked."""
        for product, payload in self._snapshot.items():
            shown = value_to_json(payload, masker, masker.octets)
            yield {"kind": KIND, "snapshot": product, "value": shown}
        for record in self._records:
            shown = value_to_json(record.payload, masker, masker.octets)
            yield {"kind": KIND, "record": record.product, "value": shown}
        for name, data in self._files:
            if masker.octets(data) != data:
                self._left.append((name, "it holds a secret, and cannot be masked"))
            else:
                yield {"kind": KIND, "file": name, "data": b64encode(data).decode()}
        for name, why in self._left:
            yield {"kind": KIND, "left": name, "why": why}


def _database(path: Path) -> bytes:
    """A database with what its log has, as one file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        data: bytes = connection.serialize()
    # Not in WAL mode, for which the file beside it would be needed (file format, 1.3.3).
    return data[:18] + b"\1\1" + data[20:] if data.startswith(_SQLITE) else data


def left_out(entries: Iterable[dict[str, Any]]) -> list[str]:
    """Return what a recording began with and does not hold, with the reason."""
    return [f"{one['left']} ({one['why']})" for one in entries if "left" in one]


def restore(entries: Iterable[dict[str, Any]], folder: Path, fill: Filler) -> Path | None:
    """Write the state of a recording into a folder; return its file, None where there was none.

    Raises `RecordingError` for entries that cannot be read.
    """
    file = folder / "state.db"
    entries = list(entries)
    held = [entry for entry in entries if "left" not in entry]
    if not held:
        return None
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, _MODE))
        store = SqliteStore(file)
        try:
            _put_back(store, held, fill)
        finally:
            store.close()
        for entry in entries:
            # Of a database that was left out the store still knows: there it is empty.
            name = entry.get("file") or entry.get("left", "")
            if "file" in entry or name.endswith(_DATABASE):
                _write(folder / f"{file.name}.databases", name, entry.get("data", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"the state in the recording cannot be read: {error!r}") from None
    return file


def _put_back(store: SqliteStore, entries: list[dict[str, Any]], fill: Filler) -> None:
    def value(entry: dict[str, Any]) -> Any:
        return value_from_json(entry["value"], fill.text, fill.octets)

    snapshot = {entry["snapshot"]: value(entry) for entry in entries if "snapshot" in entry}
    if snapshot:
        store.compact(snapshot)
    store.append(Record(entry["record"], value(entry)) for entry in entries if "record" in entry)
    store.commit()


def _write(folder: Path, name: str, data: str) -> None:
    """Write a file below a folder, and nowhere else."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise ValueError(f"{name!r} is no path below a folder")
    path = folder.joinpath(*parts)
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as out:
        out.write(b64decode(data, validate=True))
