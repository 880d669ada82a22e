"""Values on their way from SQLite to JavaScript.

JavaScript's numbers are doubles: integers beyond 2**53 lose their last digits, as in production.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EXACT: Final = 2**53
_PLAIN: Final = frozenset({str, float, type(None)})


def javascript_row(row: Sequence[Any], blob: Callable[[bytes], Any]) -> list[Any]:
    """The values of a row, in which `blob` makes something of bytes."""
    return [
        value
        if type(value) in _PLAIN
        else (value if -_EXACT <= value <= _EXACT else float(value))
        if type(value) is int
        else blob(value)
        for value in row
    ]
