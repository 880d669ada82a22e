"""Message bodies as tests see them."""

from __future__ import annotations

from typing import Any

from emulator.values import decode_body
from emulator.values.plain import plain


def plain_body(body: bytes, content_type: str) -> Any:
    """A stored body as it was sent, in plain Python values.

    >>> plain_body(b'{"a": [1, 2.0, null]}', "json")
    {'a': [1, 2, None]}
    """
    return plain(decode_body(body, content_type))
