"""`onlyIf`: what has to hold of an object so that it is read, or replaced.

The rules are those of HTTP (RFC 9110, 13) with two of R2's own: a date counts only where the etag
does not decide already, and what was uploaded at exactly that instant is neither before nor after.
Headers are read as the runtime does (`workerd`, r2-bucket.c++).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from emulator.values import JsException

_SECOND: Final = 1_000  # milliseconds
_WILDCARD: Final = "a wildcard character '*' instead."
_QUOTE: Final = (
    "a double quote character '\"' instead. This would otherwise indicate the start of a new "
    "strong etag."
)
_WEAK: Final = (
    "a weak quotation character 'W' instead. This would otherwise indicate the start of a new weak "
    "etag."
)
_UNEXPECTED: Final = {"*": _WILDCARD, '"': _QUOTE, "W": _WEAK}


class Etag(NamedTuple):
    """An etag that is asked for; a wildcard is any."""

    kind: Literal["strong", "weak", "wildcard"]
    value: str = ""


class Condition(NamedTuple):
    """What has to hold; None is no condition. Dates are milliseconds since the epoch."""

    matches: tuple[Etag, ...] | None = None
    does_not_match: tuple[Etag, ...] | None = None
    before: int | None = None
    after: int | None = None
    whole_seconds: bool = False

    def holds(self, etag: str, uploaded: int) -> bool:
        """Whether it holds of an object."""
        matches = self.matches is None or _is_among(self.matches, etag, weakly=False)
        differs = self.does_not_match is None or not _is_among(
            self.does_not_match, etag, weakly=True
        )
        is_after = (
            self.after is None
            or self._cut(self.after) < self._cut(uploaded)
            or (self.does_not_match is not None and differs)
        )
        is_before = (
            self.before is None
            or self._cut(uploaded) < self._cut(self.before)
            or (self.matches is not None and matches)
        )
        return matches and differs and is_after and is_before

    @property
    def holds_of_nothing(self) -> bool:
        """Whether it holds where there is no object."""
        return self.matches is None and self.after is None

    def _cut(self, time: int) -> int:
        return time // _SECOND if self.whole_seconds else time


def _is_among(etags: tuple[Etag, ...], etag: str, *, weakly: bool) -> bool:
    return any(
        one.kind == "wildcard" or (one.value == etag and (weakly or one.kind == "strong"))
        for one in etags
    )


def one_etag(text: str) -> tuple[Etag, ...]:
    """Read the etag of a `Conditional`, which has no quotes."""
    if text.startswith('"') and text.endswith('"'):
        raise JsException(
            "TypeError", f"Conditional ETag should not be wrapped in quotes ({text})."
        )
    return (Etag("wildcard") if text == "*" else Etag("strong", text),)


def etags_of_header(name: str, text: str) -> tuple[Etag, ...]:
    """Read the header `if-match` or `if-none-match`."""
    etags: list[Etag] = []
    needs_comma = False
    rest = text.lstrip(" \t")
    while rest:
        first = rest[0]
        if first == ",":
            rest, needs_comma = rest[1:], False
        elif first not in _UNEXPECTED:
            break
        elif needs_comma:
            told = f"Comma was expected to separate etags. Encountered {_UNEXPECTED[first]}"
            raise JsException("Error", told)
        elif first == "*":
            return (Etag("wildcard"),)
        else:
            etag, rest = _quoted(rest)
            etags.append(etag)
            needs_comma = True
        rest = rest.lstrip(" \t")
    if not etags:
        raise JsException("Error", f"Invalid ETag in {name} header")
    return tuple(etags)


def _quoted(text: str) -> tuple[Etag, str]:
    """Take an etag from the front; returns it and the rest."""
    is_weak = text[0] == "W"
    if is_weak and not text.startswith('W/"'):
        told = "Weak etags must start with W/ and their value must be quoted"
        raise JsException("Error", told)
    value, quote, rest = text[3 if is_weak else 1 :].partition('"')
    if not quote:
        raise JsException("Error", "Unclosed double quote for Etag")
    return Etag("weak" if is_weak else "strong", value), rest
