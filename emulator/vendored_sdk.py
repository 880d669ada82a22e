"""The SDK that a project brings along, in `python_modules/`.

Its folder comes before the runtime's own packages (workerd, `setup_python_search_path.py`), so that
the SDK in it is what `import workers` finds, whatever the date. pywrangler puts it there for every
Worker; it converts what bindings return since version 1.3 (python-api.md 1.13).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FLAG: Final = "enable_python_external_sdk"
_INSTALLED: Final = re.compile(r"workers_runtime_sdk-(\d+)\.(\d+).*\.dist-info")
_CONVERTS: Final = (1, 3)


def brings_sdk(project: Path) -> bool:
    """Whether a project's folder has an SDK that converts values as the newest one does."""
    folder = project / "python_modules"
    if not (folder / "workers" / "__init__.py").is_file():
        return False
    found = (_INSTALLED.fullmatch(path.name) for path in sorted(folder.iterdir()))
    versions = [(int(one[1]), int(one[2])) for one in found if one is not None]
    return not versions or max(versions) >= _CONVERTS
