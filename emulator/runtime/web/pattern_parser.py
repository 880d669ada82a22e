"""Patterns of `URLPattern`: from their text to regular expressions (urlpattern.spec.whatwg.org)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = re.compile(r"[^\W\d]\w*|[$_][\w$]*")
_SPECIALS: Final = re.compile(r"([.+*?^${}()\[\]|/\\])")


class BadPattern(ValueError):
    """A text is no pattern."""


class Token(NamedTuple):
    """A piece of a pattern: `kind` is char, escaped, name, regexp, open, close, modifier, asterisk,
    invalid or end; `at` is where it begins."""

    kind: str
    value: str
    at: int


def tokens(text: str, *, lenient: bool = False) -> list[Token]:
    """Return the tokens of a pattern, an end token last; raises `BadPattern`."""
    found: list[Token] = []
    place = 0
    while place < len(text):
        token, place = _next(text, place, lenient=lenient)
        found.append(token)
    return [*found, Token("end", "", len(text))]


def _next(text: str, place: int, *, lenient: bool) -> tuple[Token, int]:
    char = text[place]
    simple = {"*": "asterisk", "+": "modifier", "?": "modifier", "{": "open", "}": "close"}
    if char in simple:
        return Token(simple[char], char, place), place + 1
    if char == "\\" and place + 1 < len(text):
        return Token("escaped", text[place + 1], place), place + 2
    if char == ":":
        name = _NAME.match(text, place + 1)
        if name is not None:
            return Token("name", name[0], place), name.end()
    elif char == "(":
        end = _end_of_regexp(text, place)
        if end:
            return Token("regexp", text[place + 1 : end - 1], place), end
    elif char != "\\":
        return Token("char", char, place), place + 1
    if not lenient:
        raise BadPattern(f"{char!r} at {place}")
    return Token("invalid", char, place), place + 1


def _end_of_regexp(text: str, place: int) -> int:
    """Return where a group ends, 0 if it is none."""
    depth, at = 1, place + 1
    while at < len(text):
        char = text[at]
        if not char.isascii() or (at == place + 1 and char == "?"):
            return 0
        if char == "\\":
            at += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return at + 1 if at > place + 1 else 0
        elif char == "(":
            depth += 1
            if text[at + 1 : at + 2] != "?":
                return 0
        at += 1
    return 0


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of what is matched: `fixed` text, or a group (`segment`, `full`, `regexp`)."""

    kind: str
    value: str = ""
    modifier: str = ""
    name: str = ""
    prefix: str = ""
    suffix: str = ""


class Rules(NamedTuple):
    """How a component's patterns are read."""

    delimiter: str = ""
    prefix: str = ""


class _Parser:
    def __init__(self, text: str, rules: Rules, encode: Callable[[str], str]) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._rules = rules
        self._encode = encode
        self._fixed = ""
        self._names: dict[str, None] = {}
        self._number = 0
        self.parts: list[Part] = []

    def parse(self) -> list[Part]:
        while self._tokens[self._at].kind != "end":
            self._step()
        self._flush()
        return self.parts

    def _take(self, *kinds: str) -> Token | None:
        token = self._tokens[self._at]
        if token.kind not in kinds:
            return None
        self._at += 1
        return token

    def _step(self) -> None:
        char = self._take("char")
        group = self._group()
        if group is not None:
            prefix = "" if char is None else char.value
            if prefix and prefix != self._rules.prefix:
                self._fixed += prefix
                prefix = ""
            self._flush()
            self._add(prefix, *group, "", self._modifier())
            return
        fixed = char or self._take("escaped")
        if fixed is not None:
            self._fixed += fixed.value
        elif self._take("open") is not None:
            self._braces()
        else:
            raise BadPattern(self._tokens[self._at].value)

    def _group(self) -> tuple[Token | None, Token | None] | None:
        name = self._take("name")
        value = self._take("regexp")
        if name is None and value is None:
            value = self._take("asterisk")
        return None if name is None and value is None else (name, value)

    def _braces(self) -> None:
        prefix = self._text()
        group = self._group() or (None, None)
        suffix = self._text()
        if self._take("close") is None:
            raise BadPattern("}")
        modifier = self._modifier()
        if group == (None, None) and not modifier:
            self._fixed += prefix + suffix
            return
        self._flush()
        self._add(prefix, *group, suffix, modifier)

    def _text(self) -> str:
        text = ""
        while (token := self._take("char", "escaped")) is not None:
            text += token.value
        return text

    def _modifier(self) -> str:
        token = self._take("modifier", "asterisk")
        return "" if token is None else token.value

    def _flush(self) -> None:
        if self._fixed:
            self.parts.append(Part("fixed", self._encode(self._fixed)))
            self._fixed = ""

    def _add(
        self, prefix: str, name: Token | None, value: Token | None, suffix: str, modifier: str
    ) -> None:
        if name is None and value is None:
            self.parts.append(Part("fixed", self._encode(prefix + suffix), modifier))
            return
        kind = "segment" if value is None else "full" if value.kind == "asterisk" else "regexp"
        if name is None:
            title, self._number = str(self._number), self._number + 1
        else:
            title = name.value
        if title in self._names:
            raise BadPattern(title)
        self._names[title] = None
        text = value.value if value is not None and kind == "regexp" else ""
        ends = self._encode(prefix) if prefix else "", self._encode(suffix) if suffix else ""
        self.parts.append(Part(kind, text, modifier, title, *ends))


class Compiled(NamedTuple):
    """A component's pattern: its text, what matches it, and the names of its groups."""

    text: str
    regexp: re.Pattern[str]
    names: tuple[str, ...]
    has_regexp: bool

    def groups(self, value: str) -> dict[str, str | None] | None:
        """Return the groups of a value by name; None if it does not match."""
        found = self.regexp.fullmatch(value)
        if found is None:
            return None
        return dict(zip(self.names, found.groups(), strict=True))


def compiled(
    text: str, rules: Rules, encode: Callable[[str], str], *, ignore_case: bool = False
) -> Compiled:
    """Return a pattern ready to match; raises `BadPattern`."""
    parts = _Parser(text, rules, encode).parse()
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    try:
        regexp = re.compile("".join(_regexp(part, rules) for part in parts), flags)
    except re.error as error:
        raise BadPattern(str(error)) from error
    names = tuple(part.name for part in parts if part.kind != "fixed")
    if regexp.groups != len(names):
        raise BadPattern(text)
    has_regexp = any(part.kind == "regexp" for part in parts)
    return Compiled(_written(parts, rules), regexp, names, has_regexp)


def _regexp(part: Part, rules: Rules) -> str:
    if part.kind == "fixed":
        text = re.escape(part.value)
        return f"(?:{text}){part.modifier}" if part.modifier else text
    inner = part.value
    if part.kind == "segment":
        inner = f"[^{re.escape(rules.delimiter)}]+?" if rules.delimiter else ".+?"
    elif part.kind == "full":
        inner = ".*"
    repeats = part.modifier in ("+", "*")
    if not (part.prefix or part.suffix):
        return f"((?:{inner}){part.modifier})" if repeats else f"({inner}){part.modifier}"
    prefix, suffix = re.escape(part.prefix), re.escape(part.suffix)
    if not repeats:
        return f"(?:{prefix}({inner}){suffix}){part.modifier}"
    optional = "?" if part.modifier == "*" else ""
    return f"(?:{prefix}((?:{inner})(?:{suffix}{prefix}(?:{inner}))*){suffix}){optional}"


def _written(parts: list[Part], rules: Rules) -> str:
    """Return a pattern's text again, as `URLPattern` shows it."""
    text = ""
    for place, part in enumerate(parts):
        if part.kind == "fixed":
            value = re.sub(r"([+*?:{}()\\])", r"\\\1", part.value)
            text += f"{{{value}}}{part.modifier}" if part.modifier else value
            continue
        following = parts[place + 1] if place + 1 < len(parts) else None
        text += _written_group(part, following, rules, text)
    return text


def _written_group(part: Part, following: Part | None, rules: Rules, before: str) -> str:
    custom = not part.name.isdigit()
    grouped = bool(part.suffix) or (bool(part.prefix) and part.prefix != rules.prefix)
    if custom and part.kind == "segment" and not part.modifier and not grouped and following:
        start = following.value if following.kind == "fixed" else ""
        grouped = bool(start and _NAME.match(f"a{start[0]}", 0) and len(f"a{start[0]}") == 2)
        grouped = grouped and re.match(r"\w", start[0]) is not None
    body = f":{part.name}" if custom else ""
    if part.kind == "regexp":
        body += f"({part.value})"
    elif part.kind == "full":
        body += "(.*)" if custom else "*"
    elif not custom:
        body += f"([^{rules.delimiter}]+?)"
    if grouped:
        return f"{{{part.prefix}{body}{part.suffix}}}{part.modifier}"
    return f"{part.prefix}{body}{part.modifier}"
