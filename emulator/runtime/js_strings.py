"""The methods of strings. User code has them by `js.String.new("text")`, for texts are Python's.

A method works on units of UTF-16, as JavaScript's do, and gives back characters.
"""

from __future__ import annotations

import math
from typing import Any, Final

from emulator.runtime import js_patterns
from emulator.runtime.js_basics import Method, clip, integer, is_callable, reached
from emulator.runtime.js_date_methods import refuse_locale
from emulator.runtime.js_text import display
from emulator.runtime.js_utf16 import SPACES, characters, joined, units
from emulator.runtime.pyproxy import call_value
from emulator.values import UNDEFINED, JsException, RegExp, to_number

_LONGEST: Final = 2**29 - 24


def _on_units(method: Method) -> Method:
    def call(this: Any, *args: Any) -> Any:
        given = (units(arg) if isinstance(arg, str) else arg for arg in args)
        return joined(method(units(this.value), *given))

    return call


def _on_text(method: Method) -> Method:
    return lambda this, *args: method(this.value, *args)


def _at(text: str, index: Any = UNDEFINED, *, wraps: bool = False) -> str | None:
    place = reached(index, len(text), wraps=wraps)
    return None if place is None else text[place]


def _code_at(text: str, index: Any = UNDEFINED, *_: Any) -> Any:
    found = _at(text, index)
    return math.nan if found is None else ord(found)


def _point_at(text: str, index: Any = UNDEFINED, *_: Any) -> Any:
    found = _at(text, index)
    if found is None:
        return UNDEFINED
    place = int(integer(index))
    return ord(characters(text[place : place + 2])[0])


def _slice(text: str, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> str:
    return text[clip(start, len(text), 0) : clip(end, len(text), len(text))]


def _within(value: Any, length: int, default: int = 0) -> int:
    return int(min(max(integer(value, default), 0), length))


def _substring(text: str, start: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> str:
    low, high = sorted((_within(start, len(text)), _within(end, len(text), len(text))))
    return text[low:high]


def _substr(text: str, start: Any = UNDEFINED, length: Any = UNDEFINED, *_: Any) -> str:
    begin = clip(start, len(text), 0)
    return text[begin : begin + _within(length, len(text) - begin, len(text))]


def _no_pattern(method: str, value: Any) -> str:
    if isinstance(value, RegExp):
        text = f"First argument to String.prototype.{method} must not be a regular expression"
        raise JsException("TypeError", text)
    return display(value)


def _ends_with(text: str, wanted: Any = UNDEFINED, end: Any = UNDEFINED, *_: Any) -> bool:
    return text[: _within(end, len(text), len(text))].endswith(_no_pattern("endsWith", wanted))


def _starts_with(text: str, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> bool:
    return text.startswith(_no_pattern("startsWith", wanted), _within(start, len(text)))


def _includes(text: str, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> bool:
    return _no_pattern("includes", wanted) in text[_within(start, len(text)) :]


def _index_of(text: str, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> int:
    return text.find(display(wanted), _within(start, len(text)))


def _last_index_of(text: str, wanted: Any = UNDEFINED, start: Any = UNDEFINED, *_: Any) -> int:
    looked_for = display(wanted)
    number = to_number(start) if start is not UNDEFINED else math.nan
    begin = len(text) if number != number else _within(number, len(text))
    return text.rfind(looked_for, 0, begin + len(looked_for))


def _pad(text: str, length: Any, filler: Any) -> str:
    fill = " " if filler is UNDEFINED else display(filler)
    missing = int(min(integer(length), _LONGEST)) - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 and fill else ""


def _repeat(text: str, count: Any = UNDEFINED, *_: Any) -> str:
    times = integer(count)
    if not 0 <= times < math.inf:
        raise JsException("RangeError", f"Invalid count value: {display(count)}")
    if times * len(text) > _LONGEST:
        raise JsException("RangeError", "Invalid string length")
    return text * int(times)


# -- with regular expressions ----------------------------------------------------------------------


def _replace(text: str, old: Any = UNDEFINED, new: Any = UNDEFINED, *_: Any) -> str:
    put = new if is_callable(new) else display(new)
    if isinstance(old, RegExp):
        return js_patterns.replace(text, old, put)
    return _replace_text(text, display(old), put, count=1)


def _replace_all(text: str, old: Any = UNDEFINED, new: Any = UNDEFINED, *_: Any) -> str:
    if isinstance(old, RegExp):
        if "g" not in old.flags:
            raise JsException(
                "TypeError", "String.prototype.replaceAll called with a non-global RegExp argument"
            )
        return _replace(text, old, new)
    put = new if is_callable(new) else display(new)
    return _replace_text(text, display(old), put, count=-1)


def _replace_text(text: str, old: str, new: Any, *, count: int) -> str:
    body, wanted, out, at = units(text), units(old), "", 0
    while count:
        place = body.find(wanted, at)
        if place < 0:
            break
        end = place + len(wanted)
        if isinstance(new, str):
            around = characters(body[:place]), characters(body[end:])
            put = js_patterns.expanded(new, [old], around, UNDEFINED)
        else:
            put = display(call_value(new, old, place, text))
        out += body[at:place] + put
        at, count = end, count - 1
        if not wanted:
            if place >= len(body):
                break
            out += body[place]
            at = place + 1
            if count == 0:
                break
    return characters(out + body[at:])


def _split(text: str, separator: Any = UNDEFINED, limit: Any = UNDEFINED, *_: Any) -> list[str]:
    from emulator.runtime.js_math import unsigned

    most = 2**32 - 1 if limit is UNDEFINED else unsigned(limit)
    if isinstance(separator, RegExp):
        return js_patterns.split(text, separator, most)
    if separator is UNDEFINED:
        return [text][:most]
    glue = display(separator)
    # Without a separator there are units, halves of pairs too.
    return (text.split(glue) if glue else list(units(text)))[:most]


# -- others ----------------------------------------------------------------------------------------


def _normalize(text: str, form: Any = UNDEFINED, *_: Any) -> str:
    wanted = "NFC" if form is UNDEFINED else display(form)
    if wanted not in ("NFC", "NFD", "NFKC", "NFKD"):
        told = "The normalization form should be one of NFC, NFD, NFKC, NFKD."
        raise JsException("RangeError", told)
    import unicodedata

    return unicodedata.normalize(wanted, text)  # type: ignore[arg-type]


def _local(method: str, change: Method) -> Method:
    def call(text: str, locales: Any = UNDEFINED, *_: Any) -> str:
        refuse_locale(f"String.prototype.{method}", locales)
        changed: str = change(text)
        return changed

    return call


def _compare(text: str, other: Any = UNDEFINED, *_: Any) -> int:
    from unicodedata import normalize

    if normalize("NFC", text) == normalize("NFC", display(other)):
        return 0
    from emulator.runtime.not_yet import not_yet

    what = "String.prototype.localeCompare of different texts (js.Intl: the order of a language)"
    raise not_yet(what, imported=False)


def _lower(text: str, *_: Any) -> str:
    return text.lower()


def _upper(text: str, *_: Any) -> str:
    return text.upper()


def _is_well_formed(text: str, *_: Any) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in characters(text))


def _well_formed(text: str, *_: Any) -> str:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in characters(text))


def _markup(tag: str, attribute: str = "") -> Method:
    def wrap(text: str, value: Any = UNDEFINED, *_: Any) -> str:
        told = display(value).replace('"', "&quot;")
        setting = f' {attribute}="{told}"' if attribute else ""
        return f"<{tag}{setting}>{text}</{tag}>"

    return wrap


_UNITS: Final[dict[str, Method]] = {
    "at": lambda text, index=UNDEFINED, *_: (
        UNDEFINED if (found := _at(text, index, wraps=True)) is None else found
    ),
    "charAt": lambda text, index=UNDEFINED, *_: _at(text, index) or "",
    "charCodeAt": _code_at,
    "codePointAt": _point_at,
    "concat": lambda text, *others: text + "".join(map(display, others)),
    "endsWith": _ends_with,
    "includes": _includes,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "padEnd": lambda text, length=UNDEFINED, filler=UNDEFINED, *_: (
        text + _pad(text, length, filler)
    ),
    "padStart": lambda text, length=UNDEFINED, filler=UNDEFINED, *_: (
        _pad(text, length, filler) + text
    ),
    "slice": _slice,
    "startsWith": _starts_with,
    "substr": _substr,
    "substring": _substring,
}
_CHARACTERS: Final[dict[str, Method]] = {
    "isWellFormed": _is_well_formed,
    "localeCompare": _compare,
    "match": js_patterns.match,
    "matchAll": js_patterns.match_all,
    "normalize": _normalize,
    "repeat": _repeat,
    "replace": _replace,
    "replaceAll": _replace_all,
    "search": js_patterns.search,
    "split": _split,
    "toLocaleLowerCase": _local("toLocaleLowerCase", _lower),
    "toLocaleUpperCase": _local("toLocaleUpperCase", _upper),
    "toLowerCase": _lower,
    "toUpperCase": _upper,
    "toWellFormed": _well_formed,
    "trim": lambda text, *_: text.strip(SPACES),
    **dict.fromkeys(("trimEnd", "trimRight"), lambda text, *_: text.rstrip(SPACES)),
    **dict.fromkeys(("trimStart", "trimLeft"), lambda text, *_: text.lstrip(SPACES)),
    "anchor": _markup("a", "name"),
    "big": _markup("big"),
    "blink": _markup("blink"),
    "bold": _markup("b"),
    "fixed": _markup("tt"),
    "fontcolor": _markup("font", "color"),
    "fontsize": _markup("font", "size"),
    "italics": _markup("i"),
    "link": _markup("a", "href"),
    "small": _markup("small"),
    "strike": _markup("strike"),
    "sub": _markup("sub"),
    "sup": _markup("sup"),
}
TEXT: Final[dict[str, Method]] = {
    **{name: _on_units(method) for name, method in _UNITS.items()},
    **{name: _on_text(method) for name, method in _CHARACTERS.items()},
}
