"""Values as the dashboard shows them: texts, secrets masked, of a length that a page can take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from emulator.trace.written import write_datetime, write_time, written

if TYPE_CHECKING:
    from datetime import datetime

    from emulator.secrets import Masker
    from emulator.server.desk import Desk

BRIEF: Final = 160
LONG: Final = 100_000


def value_text(value: object, masker: Masker, *, most: int = LONG) -> str:
    """Return a value as text: JSON, in lines unless it is to be brief."""
    indent = 2 if most > BRIEF else None
    found = written(value, masker)
    try:
        text = json.dumps(found, indent=indent, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        text = "(too deep to be shown)"
    return shortened(text, most)


def text_of(text: str, masker: Masker, *, most: int = LONG) -> str:
    """Return a text, masked and shortened."""
    return shortened(masker(text), most)


def shortened(text: str, most: int = BRIEF) -> str:
    """Return a text of at most about `most` characters, which says how long it was."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def octets_text(data: bytes, masker: Masker, *, size: int, most: int = LONG) -> str:
    """Return the first bytes of `size` as the text they are, else as JSON."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(data) == size or error.start < len(data) - 3:
            return value_text(data, masker)
        text = data[: error.start].decode("utf-8")  # cut off in the middle of a character
    text = shortened(masker(text), most)
    return text if len(data) == size else f"{text}… ({size:,} bytes)"


def time_text(at: int | None) -> str | None:
    """Return an instant (microseconds since the epoch) in ISO 8601."""
    return None if at is None else write_time(at)


def moment_text(at: datetime | None) -> str | None:
    """Return a time in ISO 8601."""
    return None if at is None else write_datetime(at)


def now_text(desk: Desk) -> str:
    """Return the time of an emulator, which on the machine's clock has gone on since an event."""
    clock = desk.platform.kernel.clock
    return write_time(max(clock.now, clock.reading()) if clock.is_real else clock.now)


def error_text(error: Any, masker: Masker, *, most: int = LONG) -> str | None:
    """Return name and message of an error, of user code or of the platform."""
    if error is None:
        return None
    name = getattr(error, "name", None)
    if isinstance(name, str) and hasattr(error, "message"):
        return shortened(masker(f"{name}: {error.message}"), most)
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = f"{type(error).__name__}: (its text cannot be read)"
    return shortened(masker(text), most)
