"""docs/rest-api.md: its first example prints what it says, against a server of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rest_client import cloudflare
from rest_server import running

if TYPE_CHECKING:
    from served_project import Project

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = (ROOT / "docs" / "rest-api.md").read_text("utf-8")


def test_the_first_example_prints_what_the_page_says(project: Project) -> None:
    assert cloudflare.__version__
    head = "\n".join(PAGE.splitlines()[:40])
    (script,) = re.findall(r"^```python\n# file: pull.py\n(.*?)^```$", head, re.M | re.S)
    printed = re.findall(r"^\$ python pull.py\n(.*?)^```$", head, re.M | re.S)[0]
    with running(project) as address:
        script = script.replace("http://localhost:8787", address)
        project.write("pull.py", script)
        environment = {
            key: value for key, value in os.environ.items() if "proxy" not in key.lower()
        }
        done = subprocess.run(
            [sys.executable, "pull.py"],
            cwd=project.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stderr, done.stdout) == ("", printed)
