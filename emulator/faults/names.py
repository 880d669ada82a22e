"""Names inside a site: percent-encoding, and the globs of a plan written by hand.

A name may hold any text. What the grammar of plans uses (`# : ; % * ? [`) is percent-encoded in
it, and so are dots in every name but the last, control characters, line separators and lone
surrogates: a site stays one line that can be pasted into a shell. Everything else is verbatim.

In a pattern `*` is any text, `?` one character, `[a-z]` one of these and `[!a-z]` none of these;
`%5D`, `%2D` and `%21` are a literal `]`, `-` and `!` between the brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_UNPRINTABLE: Final = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_IN_LAST: Final = re.compile(f"[#:;%*?\\[{_UNPRINTABLE}]")
_IN_INNER: Final = re.compile(f"[.#:;%*?\\[{_UNPRINTABLE}]")
_IN_BRACKETS: Final = re.compile(f"[.#:;%*?\\[\\]!\\-{_UNPRINTABLE}]")

_TOKEN: Final = re.compile(
    r"(?P<wild>[*?])"
    r"|\[(?P<negated>!?)(?P<members>[^\]]+)\]"
    r"|(?P<encoded>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<verbatim>[^*?\[%]+)"
    r"|(?P<stray>.)",
    re.DOTALL,
)
_MEMBER: Final = re.compile(r"(?P<encoded>(?:%[0-9A-Fa-f]{2})+)|(?P<verbatim>.)", re.DOTALL)


class BadText(Exception):
    """Part of a plan's text cannot be read: what is wrong, where, and what is allowed there."""

    def __init__(self, message: str, start: int, end: int, allowed: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.allowed = allowed


class Name(NamedTuple):
    """A name read from a plan: its canonical text, a regular expression, and if it has globs."""

    text: str
    regex: str
    glob: bool

    def matches(self, name: str) -> bool:
        """Whether this decoded name is meant."""
        return re.fullmatch(self.regex, name, re.DOTALL) is not None


def encode(name: str, *, inner: bool = False) -> str:
    """Return `name` as it stands in a site; `inner` for every name but the last."""
    special = _IN_INNER if inner else _IN_LAST
    if special.search(name) is None:
        return name
    return special.sub(_percent, name)


def decode(text: str) -> str:
    """Return the name that `encode` made this text from."""
    return text if "%" not in text else _read_codes(text, 0)


def read_name(text: str, start: int, *, inner: bool = False, wild: str = ".*") -> Name:
    """Read a name that may have globs; `start` is its place in the plan, for errors.

    `wild` is the regular expression of what `*` may stand for.
    """
    canonical: list[str] = []
    regex: list[str] = []
    for token in _TOKEN.finditer(text):
        where = start + token.start()
        if token["wild"]:
            canonical.append(token["wild"])
            regex.append(wild if token["wild"] == "*" else ".")
        elif token["members"]:
            brackets, one_of = _read_brackets(token, where)
            canonical.append(brackets)
            regex.append(one_of)
        else:
            literal = _read_literal(token, where)
            canonical.append(encode(literal, inner=inner))
            regex.append(re.escape(literal))
    return Name("".join(canonical), "".join(regex), has_glob("".join(canonical)))


def has_glob(text: str) -> bool:
    """Whether this part of a site is a pattern and not one site's name."""
    return "*" in text or "?" in text or "[" in text


def _read_literal(token: re.Match[str], where: int) -> str:
    if token["encoded"]:
        return _read_codes(token["encoded"], where)
    if token["verbatim"]:
        return token["verbatim"]
    if token["stray"] == "%":
        raise BadText(
            '"%" is not followed by two hexadecimal digits; a literal one is written %25',
            where,
            where + 1,
        )
    raise BadText(
        '"[" opens a set of characters that is empty or never closed; a literal one is written %5B',
        where,
        where + 1,
    )


def _read_brackets(token: re.Match[str], where: int) -> tuple[str, str]:
    """Return the canonical text of `[...]` and its regular expression."""
    members = _read_members(token["members"], where)
    ranges: list[tuple[str, str]] = []
    while members:
        low = high = members.pop(0)[0]
        if len(members) > 1 and members[0] == ("-", True):
            high = members[1][0]
            del members[:2]
        if low > high:
            raise BadText(
                f"the range {low}-{high} runs backwards", where, where + len(token.group())
            )
        ranges.append((low, high))
    negated = token["negated"]
    text = "".join(_range(low, high, "-", _member) for low, high in ranges)
    regex = "".join(_range(low, high, "-", re.escape) for low, high in ranges)
    return f"[{negated}{text}]", f"[{'^' if negated else ''}{regex}]"


def _read_members(text: str, where: int) -> list[tuple[str, bool]]:
    """Return the characters between brackets, each with whether it stood there verbatim."""
    members: list[tuple[str, bool]] = []
    for token in _MEMBER.finditer(text):
        if token["encoded"]:
            members += [(char, False) for char in _read_codes(token["encoded"], where)]
        else:
            members.append((token["verbatim"], True))
    return members


def _range(low: str, high: str, dash: str, written: Callable[[str], str]) -> str:
    return written(low) if low == high else f"{written(low)}{dash}{written(high)}"


def _member(char: str) -> str:
    return _IN_BRACKETS.sub(_percent, char)


def _percent(match: re.Match[str]) -> str:
    encoded = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in encoded)


def _read_codes(text: str, where: int) -> str:
    """Decode a text in which every `%` has its two digits."""
    try:
        return re.sub(
            r"(?:%[0-9A-Fa-f]{2})+",
            lambda codes: bytes.fromhex(codes[0].replace("%", "")).decode("utf-8", "surrogatepass"),
            text,
        )
    except UnicodeDecodeError:
        raise BadText(f"{text} is not UTF-8", where, where + len(text)) from None
