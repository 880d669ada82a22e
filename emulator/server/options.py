"""What a server is to run, as its command line says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.kernel import Profile
    from emulator.platform import ClockKind

HISTORY: Final = 10_000
"""Events that are kept to be shown."""

GRACE: Final = 5.0
"""Seconds that requests have to finish in code that was replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The emulator of a server; `state` is its file, None keeps everything in memory."""

    configs: tuple[Path, ...]
    environment: str | None = None
    profile: Profile = "production"
    plan: Literal["paid", "free"] = "paid"
    outbound: Literal["deny", "allow"] = "allow"
    clock: ClockKind = "real"
    state: Path | None = None
    seed: int | None = None
    history: int = HISTORY
    grace: float = GRACE
