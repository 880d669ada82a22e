"""How a queue may be named: the service's rule and its text, which users were told.

workers-sdk#2522; wrangler checks no name, and miniflare takes any (queues.md 8.6).
"""

from __future__ import annotations

import re
from typing import Final

CODE: Final = 11003
_RULE: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_NAME: Final = re.compile(_RULE.rstrip("$"), re.ASCII)


def is_queue_name(name: str) -> bool:
    """Whether a queue can be made with this name."""
    return _NAME.fullmatch(name) is not None


def refusal(name: str) -> str:
    """What the service says of another one."""
    return f"Invalid queue name: invalid queue name: {name}. Must match {_RULE}"
