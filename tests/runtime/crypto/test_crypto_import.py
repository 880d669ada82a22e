"""`cryptography` takes its time to load: only where a key needs it."""

import subprocess
import sys


def test_the_library_is_loaded_only_where_it_is_needed() -> None:
    code = "import emulator.runtime.web, emulator.runtime.crypto.subtle, sys;"
    code += "sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
