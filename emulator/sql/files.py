"""Where databases are kept: a folder beside the state file.

`state=FILE` keeps them in `FILE.databases`, one file each: `d1/<database>.sqlite` and
`objects/<binding or class>/<object>.sqlite`, with what SQLite puts beside. Other large things have
a folder there too (`r2`). They belong to the state file: without it they are refused, not taken
over. Only their owner can read them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final
from urllib.parse import quote

from emulator.errors import StateError

_SUFFIX: Final = ".databases"
_ONLY_ITS_OWNER: Final = 0o700


class DatabaseFolder:
    """The folder of one state file; with `state=None` there is none, and all is in memory.

    Raises `StateError` where there is a folder and no state file.
    """

    def __init__(self, state: str | os.PathLike[str] | None) -> None:
        self.path: Path | None = None
        if state is None:
            return
        file = Path(os.path.abspath(state))
        self.path = file.with_name(file.name + _SUFFIX)
        is_new = not file.exists() or file.stat().st_size == 0
        if is_new and self.path.exists() and any(self.path.iterdir()):
            raise StateError(
                f"{self.path} has the databases of a state file that is gone: delete it too, or "
                f"put {file} back"
            )

    def file(self, *names: str) -> Path | None:
        """The file of a database by the names that lead to it; None for one in memory.

        Makes its folder; names may hold anything.
        """
        path = self.folder(*names[:-1])
        return None if path is None else path / f"{_file_name(names[-1])}.sqlite"

    def folder(self, *names: str) -> Path | None:
        """A folder by the names that lead to it, made if there is none; None in memory."""
        if self.path is None:
            return None
        path = self.path.joinpath(*map(_file_name, names))
        path.mkdir(mode=_ONLY_ITS_OWNER, parents=True, exist_ok=True)
        os.chmod(self.path, _ONLY_ITS_OWNER)
        return path

    def clear(self, *names: str) -> None:
        """Remove what is below these names; none of these databases may be open."""
        if self.path is not None:
            path = self.path.joinpath(*map(_file_name, names))
            if path.exists():
                shutil.rmtree(path)


def _file_name(name: str) -> str:
    """A name as that of a file, which leads nowhere else."""
    encoded = quote(name, safe="") or "%"
    return encoded.replace(".", "%2E") if encoded.startswith(".") else encoded
