"""The recordings are what real Pyodide shows, where it is installed (see `__main__.py`)."""

from __future__ import annotations

import probe_real
import pytest
from probe_families import SETTINGS, Setting, families, recorded


@pytest.mark.parametrize("setting", SETTINGS, ids=[setting.name for setting in SETTINGS])
def test_recordings_are_what_real_pyodide_shows(setting: Setting) -> None:
    lacking = probe_real.missing(setting)
    if lacking:
        pytest.skip(lacking)
    here = [family for family in families() if setting in family.settings()]
    found = probe_real.run(setting, here)
    changed = {
        probe: (recorded(family.name)[probe][setting.name], found[family.name][probe])
        for family in here
        for probe in family.probes
        if recorded(family.name)[probe][setting.name] != found[family.name][probe]
    }
    assert changed == {}
