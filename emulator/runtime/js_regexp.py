"""JavaScript's regular expressions, translated to those of Python where they mean the same.

A pattern is read by ECMAScript's grammar, with what browsers add to it (annex B) unless the flag
`u` or `v` is set, and written in Python's syntax without any of its flags: classes are lists of
characters, and with `i` they have all cases. What Python would understand differently is refused:

1. A group that is repeated and can match nothing. JavaScript stops such a loop in another place.
2. What a group inside a repeated group captured, where an iteration may leave it out: JavaScript
   forgets what an earlier one captured. The same for groups in a negative look-around.
3. A look-behind of varying length, which Python has not, and references back inside one.
4. Scripts and other properties of Unicode but the general categories; sets of the flag `v`;
   modifiers such as `(?i:…)`; names that several groups have.

Texts of errors are V8's. Over 400 lines because a grammar is one idea; `js_characters` has sets of
characters.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass, field
from typing import Final, NoReturn

from emulator.runtime.js_characters import (
    LAST_UNIT,
    SPECIAL_CASES,
    Ranges,
    all_cases,
    category,
    char_text,
)
from emulator.runtime.js_utf16 import SPACES, units
from emulator.values import JsException

_FLAGS: Final = "dgimsuvy"
_DIGIT: Final[Ranges] = [(0x30, 0x39)]
_WORD: Final[Ranges] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE: Final[Ranges] = [(ord(char), ord(char)) for char in SPACES]
_LINE_ENDS: Final[Ranges] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_COUNT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")


class _UnreadError(Exception):
    """What the reader cannot read on after."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A pattern of Python's; why it cannot be used at all, or only where captures do not matter."""

    pattern: str
    names: dict[str, int]
    refusal: str
    capture_refusal: str


@dataclass(slots=True)
class _Part:
    """A part of a pattern, as Python writes it, and what a loop around it has to know."""

    text: str
    is_empty: bool = False  # it can match nothing
    has_groups: bool = False
    may_skip: bool = False  # it can match without one of its groups
    has_choice: bool = False  # its first way to match may be one of nothing
    is_assertion: bool = False
    around: str = ""  # how a look-around begins
    alternatives: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    flags: str
    count: int
    names: dict[str, int]
    opened: int = 0
    closed: set[int] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)
    capture_refusals: list[str] = field(default_factory=list)
    has_references: bool = False
    behind: int = 0


def checked_flags(flags: str) -> str:
    """Return flags in their order; raises `SyntaxError` (as `JsException`) for wrong ones."""
    wrong = set(flags) - set(_FLAGS) or len(set(flags)) != len(flags) or {"u", "v"} <= set(flags)
    if wrong:
        text = f"Invalid flags supplied to RegExp constructor '{flags}'"
        raise JsException("SyntaxError", text)
    return "".join(sorted(flags))


def shown_source(source: str) -> str:
    """Return `RegExp.prototype.source` of a pattern: what stands between slashes."""
    out, is_escaped, in_class = "", False, False
    for char in source:
        if char == "/" and not is_escaped and not in_class:
            out += "\\"
        in_class = (in_class or char == "[") and char != "]" if not is_escaped else in_class
        named = {"\n": "n", "\r": "r", "\u2028": "u2028", "\u2029": "u2029"}.get(char)
        out += char if named is None else named if is_escaped else f"\\{named}"
        is_escaped = char == "\\" and not is_escaped
    return out or "(?:)"


@functools.lru_cache(maxsize=256)
def translate(source: str, flags: str) -> Translated:
    """Return Python's pattern; raises `SyntaxError` (as `JsException`) for what is none."""
    reader = _Reader(source, flags)
    try:
        part = reader.pattern()
    except _UnreadError as error:
        return Translated("", reader.state.names, str(error), "")
    state = reader.state
    refusals = state.refusals
    if state.has_references:
        refusals = [*refusals, *state.capture_refusals]
    return Translated(
        part.text, state.names, next(iter(refusals), ""), next(iter(state.capture_refusals), "")
    )


@functools.lru_cache(maxsize=256)
def compiled(source: str, flags: str) -> re.Pattern[str]:
    """Return Python's compiled pattern; raises `re.error` for a look-behind it cannot do."""
    return re.compile(translate(source, flags).pattern)


class _Reader:
    """A recursive descent through the pattern."""

    def __init__(self, source: str, flags: str) -> None:
        self.unicode = "u" in flags or "v" in flags
        self.text = source if self.unicode else units(source)
        self.source = source
        self.at = 0
        self.last = sys.maxunicode if self.unicode else LAST_UNIT
        self.ignore_case = "i" in flags
        count, names = self._groups()
        self.state = _State(flags, count, names)

    def fail(self, why: str) -> NoReturn:
        shown = f"/{shown_source(self.source)}/{self.state.flags}"
        raise JsException("SyntaxError", f"Invalid regular expression: {shown}: {why}")

    def refuse(self, what: str) -> None:
        self.state.refusals.append(what)

    def _groups(self) -> tuple[int, dict[str, int]]:
        """Count the groups that capture, and find their names, before all else."""
        names: dict[str, int] = {}
        count, in_class, at = 0, False, 0
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == "[":
                in_class = True
            elif char == "]":
                in_class = False
            elif char == "(" and not in_class:
                named = re.compile(r"\(\?<(?![=!])([^>]*)>").match(self.text, at)
                if named or self.text[at + 1 : at + 2] != "?":
                    count += 1
                    if named:
                        names.setdefault(named[1], count)
            at += 1
        return count, names

    # -- the grammar -------------------------------------------------------------------------------

    def peek(self, size: int = 1) -> str:
        return self.text[self.at : self.at + size]

    def take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def pattern(self) -> _Part:
        part = self.disjunction()
        if self.peek() == ")":
            self.fail("Unmatched ')'")
        return part

    def disjunction(self) -> _Part:
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        if len(parts) == 1:
            return parts[0]
        has_groups = any(part.has_groups for part in parts)
        return _Part(
            "|".join(part.text for part in parts),
            is_empty=any(part.is_empty for part in parts),
            has_groups=has_groups,
            may_skip=has_groups,
            has_choice=True,
            alternatives=tuple(part.text for part in parts),
        )

    def sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.text) and self.peek() not in "|)":
            parts.append(self.term())
        return _Part(
            "".join(part.text for part in parts),
            is_empty=all(part.is_empty for part in parts),
            has_groups=any(part.has_groups for part in parts),
            may_skip=any(part.may_skip for part in parts),
            has_choice=any(part.has_choice for part in parts),
        )

    def term(self) -> _Part:
        atom = self.atom()
        found = self.quantifier()
        if found is None:
            return atom
        if atom.is_assertion and (self.unicode or atom.around not in ("?=", "?!")):
            self.fail("Invalid quantifier" if atom.around else "Nothing to repeat")
        low, high, written = found
        return self.repeated(atom, low, high, written)

    def repeated(self, atom: _Part, low: int, high: int | None, written: str) -> _Part:
        is_lazy = written.endswith("?") and written != "?"
        if atom.is_empty and high != 0:
            if high != 1 or atom.has_choice or is_lazy or atom.is_assertion:
                self.refuse("a repeated group that can match nothing")
            elif atom.has_groups:
                self.state.capture_refusals.append("a capture of an optional group that is empty")
        if atom.may_skip and high != 1:
            why = "a capture that an iteration of the group around it may leave out"
            self.state.capture_refusals.append(why)
        return _Part(
            f"(?:{atom.text}){written}" if atom.is_assertion else f"{atom.text}{written}",
            is_empty=atom.is_empty or low == 0,
            has_groups=atom.has_groups,
            may_skip=atom.may_skip or (atom.has_groups and low == 0),
            has_choice=atom.has_choice or is_lazy,
        )

    def quantifier(self) -> tuple[int, int | None, str] | None:
        """Read a quantifier: its bounds, and how Python writes it."""
        low, high, written = 0, None, self.peek()
        if written in ("*", "+", "?") and written:
            self.at += 1
            low = 1 if written == "+" else 0
            high = 1 if written == "?" else None
        else:
            match = _COUNT.match(self.text, self.at)
            if match is None:
                if self.unicode and self.peek() == "{":
                    self.fail("Incomplete quantifier")
                return None
            self.at = match.end()
            low = int(match[1])
            high = int(match[3]) if match[3] else (None if match[2] else low)
            if high is not None and high < low:
                self.fail("numbers out of order in {} quantifier")
            written = f"{{{low},{'' if high is None else high}}}"
        return low, high, written + ("?" if self.take("?") else "")

    def atom(self) -> _Part:
        char = self.peek()
        self.at += 1
        if char in "^$":
            return _Part(self._edge(char), is_empty=True, is_assertion=True)
        if char == "(":
            return self.group()
        if char == ".":
            return _Part(self.any_char())
        if char == "[":
            return _Part(self.char_class())
        if char == "\\":
            return self.escape()
        if char in "*+?":
            self.fail("Nothing to repeat")
        if char == "{" and _COUNT.match(self.text, self.at - 1):
            self.fail("Nothing to repeat")
        if char in "{}]" and self.unicode:
            self.fail("Lone quantifier brackets")
        return _Part(self.literal(ord(char)))

    def _edge(self, char: str) -> str:
        if "m" not in self.state.flags:
            return r"\A" if char == "^" else r"\Z"
        ends = self.written([*_LINE_ENDS], negated=True)
        return f"(?<!{ends})" if char == "^" else f"(?!{ends})"

    def any_char(self) -> str:
        ranges: Ranges = [] if "s" in self.state.flags else [*_LINE_ENDS]
        return self.written(ranges, negated=True)

    def group(self) -> _Part:
        state = self.state
        for opening, is_behind in (("?=", False), ("?!", False), ("?<=", True), ("?<!", True)):
            if self.take(opening):
                state.behind += is_behind
                body = self.inside()
                state.behind -= is_behind
                if opening.endswith("!") and body.has_groups:
                    state.capture_refusals.append("a capture of a negative look-around")
                skips = body.may_skip or (opening.endswith("!") and body.has_groups)
                text = self._around(opening, body)
                return _Part(
                    text,
                    is_empty=True,
                    has_groups=body.has_groups,
                    may_skip=skips,
                    is_assertion=True,
                    around=opening,
                )
        if self.take("?:"):
            body = self.inside()
            body.text = f"(?:{body.text})"
            return body
        if self.peek() == "?" and self.peek(2) != "?<":
            self.modifiers()
        state.opened += 1
        number = state.opened
        if self.take("?<"):
            self.named(number)
        body = self.inside()
        state.closed.add(number)
        body.text, body.has_groups = f"({body.text})", True
        return body

    def _around(self, opening: str, body: _Part) -> str:
        """Write a look-around; Python's look-behind has one length, but there may be several."""
        if "<" not in opening or body.has_groups or not body.alternatives:
            return f"({opening}{body.text})"
        parts = [f"({opening}{text})" for text in body.alternatives]
        return "".join(parts) if opening == "?<!" else f"(?:{'|'.join(parts)})"

    def modifiers(self) -> None:
        found = re.compile(r"\?[ims]*(-[ims]*)?:").match(self.text, self.at)
        if found is None or found[0] in ("?-:",):
            self.fail("Invalid group")
        self.at = found.end()
        self.refuse("modifiers of a group")
        self.state.opened -= 1  # it does not capture; the pattern is not used anyway

    def named(self, number: int) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at : end] if end >= 0 else ""
        if not _NAME.fullmatch(name):
            self.fail("Invalid capture group name")
        if self.state.names[name] != number:
            self.fail("Duplicate capture group name")
        self.at = end + 1

    def inside(self) -> _Part:
        body = self.disjunction()
        if not self.take(")"):
            self.fail("Unterminated group")
        return body

    # -- escapes -----------------------------------------------------------------------------------

    def escape(self) -> _Part:
        if self.at >= len(self.text):
            self.fail("\\ at end of pattern")
        char = self.peek()
        if char in "bB":
            self.at += 1
            return _Part(self._boundary(char), is_empty=True, is_assertion=True)
        if char == "k" and (self.unicode or self.state.names):
            self.at += 1
            return self.named_reference()
        if char in "123456789":
            digits = re.compile(r"\d+").match(self.text, self.at)
            number = int(digits[0]) if digits else 0
            if number <= self.state.count:
                self.at += len(str(number))
                return self.reference(number)
            if self.unicode:
                self.fail("Invalid escape")
        ranges = self.class_escape()
        if ranges is not None:
            return _Part(self.written(ranges))
        return _Part(self.literal(self.char_escape(in_class=False)))

    def named_reference(self) -> _Part:
        end = self.text.find(">", self.at)
        if not self.take("<") or end < 0:
            self.fail("Invalid named reference")
        name = self.text[self.at : end]
        self.at = end + 1
        if name not in self.state.names:
            self.fail("Invalid named capture referenced")
        return self.reference(self.state.names[name])

    def reference(self, number: int) -> _Part:
        """Match what a group did, or nothing if it did not, as Python's does not by itself."""
        state = self.state
        if state.behind:
            self.refuse("a reference back inside a look-behind")
        if number not in state.closed:
            return _Part("(?:)", is_empty=True)
        state.has_references = True
        text = f"(?({number})\\{number}|)"
        return _Part(f"(?i:{text})" if self.ignore_case else f"(?:{text})", is_empty=True)

    def _boundary(self, char: str) -> str:
        word = self.written(self._word())
        sides = [(f"(?<={word})", f"(?!{word})"), (f"(?<!{word})", f"(?={word})")]
        if char == "B":
            sides = [(f"(?<={word})", f"(?={word})"), (f"(?<!{word})", f"(?!{word})")]
        return "(?:" + "|".join(left + right for left, right in sides) + ")"

    def _word(self) -> Ranges:
        special = [(code, code) for code in sorted(SPECIAL_CASES.values())]
        return [*_WORD, *(special if self.unicode and self.ignore_case else [])]

    def class_escape(self) -> Ranges | None:
        """Read `\\d` and its kin; None, with nothing read, for other escapes."""
        char = self.peek()
        if char in "pP" and self.unicode:
            self.at += 1
            return self.property(is_negated=char == "P")
        found = {"d": _DIGIT, "w": self._word(), "s": _SPACE}.get(char.lower())
        if found is None:
            return None
        self.at += 1
        return self.complement(found) if char.isupper() else [*found]

    def property(self, *, is_negated: bool) -> Ranges:
        match = re.compile(r"\{([^}]*)\}").match(self.text, self.at)
        if match is None:
            self.fail("Invalid property name")
        self.at = match.end()
        name, _, value = match[1].partition("=")
        wanted = value if name in ("gc", "General_Category") else name
        ranges = category(wanted) if wanted == value or not value else None
        if ranges is None:
            self.refuse(f"the property of Unicode \\p{{{match[1]}}}")
            return []
        return self.complement(ranges) if is_negated else ranges

    def char_escape(self, *, in_class: bool) -> int:
        """Read the escape of one character."""
        char = self.peek()
        self.at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c":
            letter = self.peek()
            more = "0123456789_" if in_class and not self.unicode else ""
            if letter and ((letter.isascii() and letter.isalpha()) or letter in more):
                self.at += 1
                return ord(letter) % 32
            if self.unicode:
                self.fail("Invalid Unicode escape")
            self.at -= 1
            return ord("\\")
        if char in "xu":
            found = self._hexadecimal(char)
            if found is not None:
                return found
            if self.unicode:
                self.fail("Invalid escape" if char == "x" else "Invalid Unicode escape")
            return ord(char)
        if char.isascii() and char.isdigit():
            return self._octal(char, in_class=in_class)
        if self.unicode and char not in _SYNTAX and not (in_class and char == "-"):
            self.fail("Invalid escape")
        return ord(char)

    def _hexadecimal(self, kind: str) -> int | None:
        if kind == "u" and self.unicode:
            match = re.compile(r"\{([0-9a-fA-F]+)\}").match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                code = int(match[1], 16)
                if code > sys.maxunicode:
                    self.fail("Invalid Unicode escape")
                return code
        size = 2 if kind == "x" else 4
        match = re.compile(rf"[0-9a-fA-F]{{{size}}}").match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        code = int(match[0], 16)
        if self.unicode and 0xD800 <= code <= 0xDBFF:
            low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.at)
            if low is not None:
                self.at = low.end()
                return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return code

    def _octal(self, first: str, *, in_class: bool) -> int:
        if self.unicode:
            if first != "0" or self.peek().isdigit():
                kind = "class" if in_class else "decimal"
                self.fail(f"Invalid {kind} escape")
            return 0
        match = re.compile("[0-3]?[0-7]?[0-7]").match(self.text, self.at - 1)
        if match is None:
            return ord(first)  # \8 and \9
        self.at = match.end()
        return int(match[0], 8)

    # -- classes -----------------------------------------------------------------------------------

    def char_class(self) -> str:
        negated = self.take("^")
        ranges: Ranges = []
        while not self.take("]"):
            if self.at >= len(self.text):
                self.fail("Unterminated character class")
            if "v" in self.state.flags and (
                self.peek() == "[" or self.peek(2) in ("--", "&&", "\\q")
            ):
                raise _UnreadError("a set of the flag `v` inside another")
            self._class_item(ranges)
        return self.written(ranges, negated=negated)

    def _class_item(self, ranges: Ranges) -> None:
        low = self._class_atom()
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            ranges.extend(low if isinstance(low, list) else [(low, low)])
            return
        self.at += 1
        high = self._class_atom()
        if isinstance(low, int) and isinstance(high, int):
            if high < low:
                self.fail("Range out of order in character class")
            ranges.append((low, high))
            return
        if self.unicode:
            self.fail("Invalid character class")
        for part in (low, ord("-"), high):
            ranges.extend(part if isinstance(part, list) else [(part, part)])

    def _class_atom(self) -> int | Ranges:
        if self.at >= len(self.text):
            self.fail("Unterminated character class")
        char = self.peek()
        self.at += 1
        if char != "\\":
            return ord(char)
        if self.at >= len(self.text):
            self.fail("\\ at end of pattern")
        if self.take("b"):
            return 8
        found = self.class_escape()
        return self.char_escape(in_class=True) if found is None else found

    def complement(self, ranges: Ranges) -> Ranges:
        out, begin = [], 0
        for low, high in sorted(ranges):
            if low > begin:
                out.append((begin, low - 1))
            begin = max(begin, high + 1)
        return [*out, (begin, self.last)] if begin <= self.last else out

    def literal(self, code: int) -> str:
        if not self.ignore_case:
            return char_text(code)
        return self.written([(code, code)])

    def written(self, ranges: Ranges, *, negated: bool = False) -> str:
        """Return Python's class of these characters."""
        if self.ignore_case:
            ranges = all_cases(ranges, in_unicode=self.unicode)
        if negated:
            ranges = self.complement(ranges)
        if not ranges:
            return "(?!)"
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return char_text(ranges[0][0])
        spans = (
            char_text(low) if low == high else f"{char_text(low)}-{char_text(high)}"
            for low, high in ranges
        )
        return f"[{''.join(spans)}]"


def escaped(text: str) -> str:
    """Do `RegExp.escape(text)`."""
    out = ""
    for index, char in enumerate(text):
        code = ord(char)
        named = next((key for key, value in _CONTROLS.items() if value == code), None)
        if char in _SYNTAX:
            out += f"\\{char}"
        elif named is not None:
            out += f"\\{named}"
        elif (index == 0 and char.isascii() and char.isalnum()) or char in ",-=<>#&!%:;@~'`\"":
            out += f"\\x{code:02x}"
        elif char in SPACES or 0xD800 <= code <= 0xDFFF:
            out += f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
        else:
            out += char
    return out
