"""The emulator shows what real Pyodide was seen to show (docs/fidelity.md, "Real Pyodide")."""

from __future__ import annotations

from functools import cache
from typing import Any

import probe_emulated
import pytest
from probe_deviations import DEVIATIONS, Deviation, explained
from probe_families import SETTINGS, Family, Setting, families, recorded

CASES = [(setting, family) for family in families() for setting in family.settings()]
NAMES = [f"{family.name}-{setting.name}" for setting, family in CASES]


@cache
def shown(setting: Setting) -> dict[str, dict[str, str]]:
    """What the probes show here, all in one go."""
    return probe_emulated.run(setting, [one for one in families() if setting in one.settings()])


def differences(setting: Setting, family: Family) -> dict[str, tuple[str, str]]:
    """Probes of which the emulator shows something else: what real Pyodide shows, and it."""
    here, there = shown(setting)[family.name], recorded(family.name)
    return {
        probe: (there[probe][setting.name], here[probe])
        for probe in family.probes
        if _told(there[probe][setting.name]) != _told(here[probe])
    }


def _told(text: str) -> str:
    """Without what Python 3.13 began to add."""
    return text.replace(" and no __dict__ for setting new attributes", "")


@pytest.mark.parametrize(("setting", "family"), CASES, ids=NAMES)
def test_user_code_sees_what_it_sees_in_pyodide(setting: Setting, family: Family) -> None:
    """python-api.md 6.1, the oracle (b)."""
    unexplained = [
        f"{probe}\n  in Pyodide: {there}\n  here:       {here}"
        for probe, (there, here) in differences(setting, family).items()
        if explained(setting.name, probe, there) is None
    ]
    assert not unexplained, "\n".join(unexplained)


def test_every_known_deviation_is_still_one() -> None:
    """A rule that explains nothing any more has to go, and its row in docs/fidelity.md."""
    used: set[Deviation | None] = set()
    for setting, family in CASES:
        for probe, (there, _) in differences(setting, family).items():
            used.add(explained(setting.name, probe, there))
    assert [one for one in DEVIATIONS if one not in used and not one.by_python] == []


def test_every_deviation_has_a_row_in_the_docs() -> None:
    page = (probe_emulated.ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    section = page.partition("## Real Pyodide\n")[2].partition("\n## ")[0]
    assert [one.reason for one in DEVIATIONS if f"| {one.reason} |" not in section] == []


def test_every_probe_is_recorded_in_each_setting() -> None:
    for family in families():
        known: dict[str, Any] = recorded(family.name)
        names = [setting.name for setting in family.settings()]
        assert list(known) == list(family.probes), family.name
        assert all(list(known[probe]) == names for probe in family.probes), family.name


def test_no_probe_fails_before_it_begins() -> None:
    """`!!` is what shows where the lines before a probe fail."""
    for family in families():
        for probe, by_setting in recorded(family.name).items():
            assert not any(text.startswith("!!") for text in by_setting.values()), probe


def test_settings_differ_where_generations_do() -> None:
    null = recorded("to_py")["V.null"]
    assert null == {"26-frozen": "None", **dict.fromkeys(("28-frozen", "28", "314"), null["28"])}
    assert null["28"] == "JsNull jsnull"
    assert len(SETTINGS) == 4
