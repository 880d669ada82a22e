"""Sets of characters for regular expressions: cases, categories, how Python writes them."""

from __future__ import annotations

import functools
import re
import sys
from typing import Any, Final

Ranges = list[tuple[int, int]]

LAST_UNIT: Final = 0xFFFF
# Letters of ASCII that others have as their case, with `i` and `u` only: K and the long s.
SPECIAL_CASES: Final = {"k": 0x212A, "s": 0x17F}


def char_text(code: int) -> str:
    """Return a character as Python's patterns have it, in a class and outside."""
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\u{code:04x}" if code <= LAST_UNIT else f"\\U{code:08x}"


def _folded(char: str, *, in_unicode: bool) -> str:
    """Return what stands for all cases of a character (`Canonicalize`)."""
    if in_unicode:
        for folded in (char.casefold(), char.lower()):
            if len(folded) == 1:
                return folded
        return char
    upper = char.upper()
    is_other = len(upper) != 1 or (not char.isascii() and upper.isascii())
    return char if is_other else upper


@functools.cache
def _cases(*, in_unicode: bool) -> dict[str, list[str]]:
    """Return the characters that are cases of another, by what stands for them."""
    groups: dict[str, list[str]] = {}
    for code in range(0x1F000 if in_unicode else 0x10000):
        groups.setdefault(_folded(chr(code), in_unicode=in_unicode), []).append(chr(code))
    return {folded: chars for folded, chars in groups.items() if len(chars) > 1}


def all_cases(ranges: Ranges, *, in_unicode: bool) -> Ranges:
    """Return the characters with all their cases."""
    more: Ranges = []
    if all(high < 128 for _, high in ranges):
        for low, high in ranges:
            for code in range(low, high + 1):
                other = chr(code).swapcase()
                more.append((ord(other), ord(other)))
                special = SPECIAL_CASES.get(chr(code).lower())
                if special is not None and in_unicode:
                    more.append((special, special))
    else:
        for chars in _cases(in_unicode=in_unicode).values():
            if any(low <= ord(char) <= high for char in chars for low, high in ranges):
                more.extend((ord(char), ord(char)) for char in chars)
    return _merged([*ranges, *more])


def _merged(ranges: Ranges) -> Ranges:
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


_LONG_NAMES: Final = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Mark": "M",
    "Other": "C",
    "Control": "Cc",
}
_CATEGORY: Final = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfsno]?")


@functools.cache
def category(name: str) -> Any:
    """Return the characters of a general category, by Python's version of Unicode; or None."""
    if name == "Any":
        return [(0, sys.maxunicode)]
    if name == "ASCII":
        return [(0, 127)]
    wanted = _LONG_NAMES.get(name, name)
    if not _CATEGORY.fullmatch(wanted):
        return None
    from unicodedata import category as category_of

    codes = range(sys.maxunicode + 1)
    return _merged([(c, c) for c in codes if category_of(chr(c)).startswith(wanted)])
