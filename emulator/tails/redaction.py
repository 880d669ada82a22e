"""What of a request a tail Worker does not get to see unless it asks (workerd, `api/util.c++`).

1. Headers whose name sounds like a secret.
2. Parts of a URL that look like a key: 32 hexadecimal digits or more; 21 letters and digits or
   more, two of each kind among them; 13 to 19 digits that are the number of a payment card.
   `+`, `-` and `_` belong to such a part; a part ends at any other character.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "REDACTED"
_WORDS: Final = ("auth", "jwt", "key", "secret", "token")
_COOKIES: Final = frozenset({"cookie", "set-cookie"})
_PART: Final = re.compile(r"[A-Za-z0-9+_-]+")
_SEPARATORS: Final = str.maketrans("", "", "+-_")
_HEX: Final = re.compile(r"[0-9A-Fa-f]{32,}")
_DIGITS: Final = re.compile(r"[0-9]{13,19}")
_ID_LENGTH: Final = 21
_OF_EACH: Final = 2


def is_secret(header: str) -> bool:
    """Whether a header's value is kept back; names are in lower case."""
    return header in _COOKIES or any(word in header for word in _WORDS)


def redact_url(url: str) -> str:
    """Return a URL without what looks like a key.

    >>> redact_url("https://a.example/0123456789abcdef0123456789abcdef/x?card=4111-1111-1111-1111")
    'https://a.example/REDACTED/x?card=REDACTED'
    """
    return _PART.sub(lambda part: REDACTED if _is_key(part[0]) else part[0], url)


def _is_key(part: str) -> bool:
    bare = part.translate(_SEPARATORS)
    return bool(_HEX.fullmatch(bare)) or _is_id(part) or _is_card(bare)


def _is_id(part: str) -> bool:
    if len(part) < _ID_LENGTH:
        return False
    digits = sum(letter.isdigit() for letter in part)
    upper = sum(letter.isupper() for letter in part)
    return min(digits, upper, sum(letter.islower() for letter in part)) >= _OF_EACH


def _is_card(bare: str) -> bool:
    """Whether the digits have the check sum of payment cards (Luhn)."""
    if not _DIGITS.fullmatch(bare):
        return False
    doubled = (int(digit) * 2 for digit in bare[-2::-2])
    rest = sum(int(digit) for digit in bare[-1::-2])
    return (rest + sum(one - 9 if one > 9 else one for one in doubled)) % 10 == 0
