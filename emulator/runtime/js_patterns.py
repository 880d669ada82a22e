"""What regular expressions do: the methods of `RegExp`, and those of texts that take one.

Places are counted in units of UTF-16, as JavaScript counts them. Without the flag `u` the text is
searched unit by unit, with it character by character. `js_regexp` is loaded for the first pattern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.runtime.js_basics import Constructor, Method, Properties, functions, integer
from emulator.runtime.js_text import display
from emulator.runtime.js_utf16 import characters, is_wide, units
from emulator.runtime.pyproxy import call_value
from emulator.values import UNDEFINED, JsException, RegExp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.runtime.js_regexp import Translated

_NAMES: Final = {
    "dotAll": "s",
    "global": "g",
    "hasIndices": "d",
    "ignoreCase": "i",
    "multiline": "m",
    "sticky": "y",
    "unicode": "u",
    "unicodeSets": "v",
}
_REPLACEMENT: Final = r"\$(?:(\$)|(&)|(`)|(')|([0-9]{1,2})|<([^>]*)>)"


def new(pattern: Any = UNDEFINED, flags: Any = UNDEFINED, *_: Any) -> RegExp:
    """Do `new RegExp(pattern, flags)`; raises `SyntaxError` (as `JsException`)."""
    from emulator.runtime.js_regexp import checked_flags, shown_source, translate

    is_copy = isinstance(pattern, RegExp)
    source = pattern.source if is_copy else "" if pattern is UNDEFINED else display(pattern)
    given = (pattern.flags if is_copy else "") if flags is UNDEFINED else display(flags)
    made = RegExp(shown_source(source), checked_flags(given))
    translate(made.source, made.flags)
    return made


def _call(pattern: Any = UNDEFINED, flags: Any = UNDEFINED, *_: Any) -> RegExp:
    return pattern if isinstance(pattern, RegExp) and flags is UNDEFINED else new(pattern, flags)


CLASS: Final = Constructor(
    "RegExp", new, call=_call, statics=functions(escape=lambda text="", *_: _escape(text))
)


def _escape(text: Any) -> str:
    if not isinstance(text, str):
        raise JsException("TypeError", f"{display(text)} is not a string")
    from emulator.runtime.js_regexp import escaped

    return escaped(text)


class _Match(NamedTuple):
    """A match: Python's, in the text as it was searched."""

    found: re.Match[str]
    names: dict[str, int]
    text: str
    is_unicode: bool

    def place(self, index: int) -> int:
        """Return a place in units."""
        return len(units(self.text[:index])) if self.is_unicode else index

    def group(self, number: int) -> Any:
        part = self.found[number]
        return UNDEFINED if part is None else characters(part)

    def groups(self) -> list[Any]:
        return [self.group(number) for number in range(1, self.found.re.groups + 1)]

    def named(self) -> Any:
        if not self.names:
            return UNDEFINED
        return {name: self.group(number) for name, number in self.names.items()}


def _usable(pattern: RegExp, *, with_captures: bool) -> tuple[re.Pattern[str], Translated]:
    """Return Python's pattern; raises `NotImplementedError` where it would mean something else."""
    from emulator.runtime.js_regexp import compiled, translate

    told = translate(pattern.source, pattern.flags)
    refusal = told.refusal or (told.capture_refusal if with_captures else "")
    if not refusal:
        try:
            return compiled(pattern.source, pattern.flags), told
        except (re.error, OverflowError, RecursionError) as error:
            refusal = str(error)
    raise NotImplementedError(
        f"workers-emulator cannot run the regular expression {pattern} as production does: "
        f"{refusal}. Python's `re` would mean something else by it; write it another way, or use "
        "`re` itself in the Worker (docs/workers.md, regular expressions)"
    )


def _searched(pattern: RegExp, text: str) -> tuple[str, bool]:
    is_unicode = "u" in pattern.flags or "v" in pattern.flags
    return (text, is_wide(text)) if is_unicode else (units(text), False)


def _matches(pattern: RegExp, text: str, start: int = 0) -> Iterator[_Match]:
    """Yield the matches from a place, in units, on."""
    rule, told = _usable(pattern, with_captures=True)
    body, is_counted = _searched(pattern, text)
    at = len(characters(units(body)[:start])) if is_counted else start
    find = rule.match if "y" in pattern.flags else rule.search
    while at <= len(body):
        found = find(body, at)
        if found is None:
            return
        yield _Match(found, told.names, body, is_counted)
        at = found.end() + (found.end() == found.start())


def _next(pattern: RegExp, text: str) -> _Match | None:
    """Do `RegExpBuiltinExec`: from `lastIndex` on, with the flags that go by it."""
    goes_on = "g" in pattern.flags or "y" in pattern.flags
    start = max(integer(pattern.last_index), 0)
    begin = int(min(start, len(units(text)) + 1)) if goes_on else 0
    found = next(_matches(pattern, text, begin), None)
    if goes_on:
        pattern.last_index = 0 if found is None else found.place(found.found.end())
    return found


def execute(this: RegExp, text: Any = UNDEFINED, *_: Any) -> Any:
    """Do `RegExp.prototype.exec`."""
    subject = display(text)
    found = _next(this, subject)
    return None if found is None else _result(this, found, subject)


def _result(pattern: RegExp, match: _Match, subject: str) -> Properties:
    named: dict[str, Any] = {
        "index": match.place(match.found.start()),
        "input": subject,
        "groups": match.named(),
    }
    if "d" in pattern.flags:
        named["indices"] = _indices(match)
    return Properties([match.group(0), *match.groups()], named)


def _indices(match: _Match) -> Properties:
    def span(number: int) -> Any:
        low, high = match.found.span(number)
        return UNDEFINED if low < 0 else [match.place(low), match.place(high)]

    spans = [span(number) for number in range(match.found.re.groups + 1)]
    groups = {name: span(number) for name, number in match.names.items()} if match.names else None
    return Properties(spans, {"groups": UNDEFINED if groups is None else groups})


def _test(this: RegExp, text: Any = UNDEFINED, *_: Any) -> bool:
    subject = display(text)
    if "g" in this.flags or "y" in this.flags:
        return _next(this, subject) is not None
    rule, _told = _usable(this, with_captures=False)
    return rule.search(_searched(this, subject)[0]) is not None


METHODS: Final[dict[str, Method]] = {
    "exec": execute,
    "test": _test,
    "toString": lambda this, *_: str(this),
}
GETTERS: Final[dict[str, Method]] = {
    "source": lambda this: this.source,
    "flags": lambda this: "".join(sorted(this.flags)),
    "lastIndex": lambda this: this.last_index,
    **{name: (lambda this, flag=flag: flag in this.flags) for name, flag in _NAMES.items()},
}


# -- texts -----------------------------------------------------------------------------------------


def all_matches(pattern: RegExp, text: str) -> list[_Match]:
    """Return what `replace`, `match` and their kin work on: the first match, or with `g` all."""
    if "g" in pattern.flags:
        pattern.last_index = 0
        return list(_matches(pattern, text))
    found = _next(pattern, text)
    return [] if found is None else [found]


def match(text: str, given: Any = UNDEFINED, *_: Any) -> Any:
    """Do `String.prototype.match`."""
    pattern = given if isinstance(given, RegExp) else new(given)
    if "g" not in pattern.flags:
        return execute(pattern, text)
    return [found.group(0) for found in all_matches(pattern, text)] or None


def match_all(text: str, given: Any = UNDEFINED, *_: Any) -> list[Any]:
    """Do `String.prototype.matchAll`."""
    pattern = given if isinstance(given, RegExp) else new(given, "g")
    if "g" not in pattern.flags:
        told = "String.prototype.matchAll called with a non-global RegExp argument"
        raise JsException("TypeError", told)
    start = int(max(integer(pattern.last_index), 0))
    return [_result(pattern, found, text) for found in _matches(pattern, text, start)]


def search(text: str, given: Any = UNDEFINED, *_: Any) -> int:
    """Do `String.prototype.search`."""
    pattern = given if isinstance(given, RegExp) else new(given)
    found = next(_matches(pattern, text), None)
    return -1 if found is None else found.place(found.found.start())


def replace(text: str, pattern: RegExp, new_text: Any) -> str:
    """Replace what a pattern matches by a text with `$1` in it, or by what a function returns."""
    body, _ = _searched(pattern, text)
    out, at = [], 0
    for found in all_matches(pattern, text):
        begin, end = found.found.span()
        whole = [found.group(0), *found.groups()]
        place, named = found.place(begin), found.named()
        if isinstance(new_text, str):
            around = characters(body[:begin]), characters(body[end:])
            put = expanded(new_text, whole, around, named)
        else:
            told = [] if named is UNDEFINED else [named]
            put = display(call_value(new_text, *whole, place, text, *told))
        out += [body[at:begin], put]
        at = end
    return characters("".join([*out, body[at:]]))


def expanded(text: str, whole: list[Any], around: tuple[str, str], named: Any) -> str:
    """Return a replacement with what `$&`, `$1`, `$<name>` and their kin stand for."""

    def expand(found: re.Match[str]) -> str:
        dollar, matched, before, after, number, name = found.groups()
        if dollar:
            return "$"
        if matched:
            return str(whole[0])
        if before or after:
            return around[0] if before else around[1]
        if number:
            return _numbered(found[0], number, whole)
        if named is UNDEFINED:
            return found[0]
        return _text(named.get(name, UNDEFINED))

    return re.sub(_REPLACEMENT, expand, text)


def _numbered(written: str, digits: str, whole: list[Any]) -> str:
    for size in (len(digits), 1):
        number = int(digits[:size])
        if 0 < number < len(whole):
            return _text(whole[number]) + digits[size:]
    return written


def _text(value: Any) -> str:
    return "" if value is UNDEFINED else str(value)


def split(text: str, pattern: RegExp, limit: int) -> list[Any]:
    """Split a text at what a pattern matches, with what its groups captured in between."""
    bare = RegExp(pattern.source, pattern.flags.replace("y", "").replace("g", ""))
    rule, told = _usable(bare, with_captures=True)
    body, is_counted = _searched(bare, text)
    if not body:
        return [] if rule.match(body) else [text]
    out: list[Any] = []
    begin = at = 0
    while at < len(body):
        found = rule.search(body, at)
        if found is None or found.start() >= len(body):
            break
        if found.end() == begin:
            at = found.start() + 1
            continue
        out += [characters(body[begin : found.start()])]
        out += _Match(found, told.names, body, is_counted).groups()
        begin = at = found.end()
    return [*out, characters(body[begin:])][:limit]
