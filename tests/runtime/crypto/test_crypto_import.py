"""`cryptography` takes its time to load: only where a key needs it."""

import subprocess
import sys


def test_the_library_is_loaded_only_where_it_is_needed() -> None:
    code = "import emulator.runtime.web, emulator.runtime.crypto.subtle, sys;"
    code += "sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rare_globals_are_loaded_when_they_are_asked_for() -> None:
    code = """
import sys
import emulator.runtime.web
from emulator.runtime import js

rare = {"SubtleCrypto": "crypto.subtle", "HTMLRewriter": "html", "URLPattern": "web.url_pattern"}
for name, module in rare.items():
    assert f"emulator.runtime.{module}" not in sys.modules, module
    assert name in js.GLOBALS and name in dir(js)
    assert getattr(js, name).name == name
    assert f"emulator.runtime.{module}" in sys.modules, module
"""
    subprocess.run([sys.executable, "-c", code], check=True)
