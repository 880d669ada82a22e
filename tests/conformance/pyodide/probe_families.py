"""The probes, the settings they run in, and the recordings of what real Pyodide showed.

A probe is a line of Python whose value is shown as text; `\\n` in it is a line break. A family of
them has names in common, the lines above `---` in its file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
_PROBES: Final = HERE / "probes"
_RECORDINGS: Final = HERE / "recordings"


@dataclass(frozen=True, slots=True)
class Setting:
    """A generation of Pyodide with one of the SDKs."""

    name: str
    generation: int
    # The npm package's version, and what the SDK is to take it for.
    package: str
    version: str
    frozen: bool
    # The compatibility date that gives it.
    date: str

    @property
    def flags(self) -> dict[str, bool]:
        """The compatibility flags that the SDK looks at."""
        return {
            "python_workflows_implicit_dependencies": not self.frozen,
            "python_request_headers_preserve_commas": not self.frozen,
        }


SETTINGS: Final = (
    # The runtime has 0.26.0a2, which npm has not.
    Setting("26-frozen", 26, "0.26.0", "0.26.0a2", frozen=True, date="2025-09-01"),
    Setting("28-frozen", 28, "0.28.2", "", frozen=True, date="2026-01-01"),
    Setting("28", 28, "0.28.2", "", frozen=False, date="2026-05-01"),
    Setting("314", 314, "314.0.6", "", frozen=False, date="2026-09-08"),
)
SDK: Final = "1.9.5"

# Families about one of the SDKs.
_FROZEN_ONLY: Final = frozenset({"legacy"})
_EXTERNAL_ONLY: Final = frozenset({"bindings"})


@dataclass(frozen=True, slots=True)
class Family:
    """Probes with the lines that come before each of them."""

    name: str
    setup: str
    probes: tuple[str, ...]

    def settings(self) -> tuple[Setting, ...]:
        """Where the family makes sense."""
        left_out = {True: _EXTERNAL_ONLY, False: _FROZEN_ONLY}
        return tuple(one for one in SETTINGS if self.name not in left_out[one.frozen])


@cache
def families() -> tuple[Family, ...]:
    """All families, in order of their names."""
    return tuple(_read(path) for path in sorted(_PROBES.glob("*.txt")))


def _read(path: Path) -> Family:
    setup, probes = path.read_text(encoding="utf-8").split("\n---\n")
    lines = tuple(line for line in probes.splitlines() if line)
    assert len(set(lines)) == len(lines), f"a probe of {path.name} is there twice"
    return Family(path.stem, setup, lines)


@cache
def recorded(family: str) -> dict[str, dict[str, str]]:
    """What each probe showed in real Pyodide, by setting."""
    path = _RECORDINGS / f"{family}.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    return {
        probe: shown if isinstance(shown, dict) else dict.fromkeys(_names(family), shown)
        for probe, shown in told.items()
    }


def record(family: str, shown: dict[str, dict[str, str]]) -> None:
    """Write what each probe showed, by setting; one text where it is the same in all."""
    names = _names(family)
    compact = {
        probe: by_setting[names[0]] if len(set(by_setting.values())) == 1 else by_setting
        for probe, by_setting in shown.items()
    }
    text = json.dumps(compact, indent=1, ensure_ascii=False, sort_keys=False)
    (_RECORDINGS / f"{family}.json").write_text(text + "\n", encoding="utf-8")


def _names(family: str) -> list[str]:
    (found,) = (one for one in families() if one.name == family)
    return [setting.name for setting in found.settings()]
