"""V8's texts for what is wrong with JSON, from the position where Python's parser stopped.

The wording follows V8's message templates (`kJsonParse…`); positions are characters from 0.
"""

from __future__ import annotations

from emulator.values.types import JsException

_CONTEXT = 10
_SPECIAL = frozenset({"NaN", "Infinity", "undefined"})
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_LITERALS = ("null", "true", "false")


def parse_error(text: str, problem: str, position: int) -> JsException:
    """Return the `SyntaxError` that JSON.parse throws for `text`."""
    problem = problem.removesuffix(": ")
    if problem.startswith("Invalid control character"):
        return _at("Bad control character in string literal in JSON", text, position)
    if problem.startswith("Invalid \\"):
        return _escape(text, position)
    if problem.startswith("Extra data"):
        return _extra(text, position)
    if problem.startswith("Unterminated string"):
        if text.endswith("\\"):
            return JsException("SyntaxError", "Unexpected end of JSON input")
        return _at("Unterminated string in JSON", text, len(text))
    if problem.startswith("Illegal trailing comma"):  # Python 3.13 points at the comma
        return _property_name(text, position + 1)
    if problem.startswith("Expecting property name"):
        return _property_name(text, position)
    if problem.startswith("Expecting ',' delimiter"):
        return _delimiter(text, position)
    return _token(text, _skip_space(text, position))


def _at(message: str, text: str, position: int) -> JsException:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    where = f"position {position} (line {line} column {column})"
    return JsException("SyntaxError", f"{message} at {where}")


def _escape(text: str, position: int) -> JsException:
    """Python points at the backslash or behind it, V8 at the first wrong character."""
    position = text.rindex("\\", 0, position + 1) + 1
    if text[position : position + 1] != "u":
        return _at("Bad escaped character in JSON", text, position)
    position += 1
    while text[position : position + 1] in _HEX_DIGITS:
        position += 1
    return _at("Bad Unicode escape in JSON", text, position)


def _extra(text: str, position: int) -> JsException:
    found = text[position]
    if text[position - 1].isdigit() and found == ".":
        return _at("Unterminated fractional number in JSON", text, position + 1)
    if text[position - 1].isdigit() and found in "eE":
        sign = text[position + 1 : position + 2] in ("+", "-")
        return _at("Exponent part is missing a number in JSON", text, position + 1 + sign)
    if text[position - 1] in "0" and found.isdigit():
        return _at("Unexpected number in JSON", text, position)
    return _at("Unexpected non-whitespace character after JSON", text, position)


def _property_name(text: str, position: int) -> JsException:
    position = _skip_space(text, position)
    before = text[:position].rstrip()[-1:]
    if before == "," and text[position : position + 1] == "]":
        return _token(text, position)
    if before == "{":
        return _at("Expected property name or '}' in JSON", text, position)
    return _at("Expected double-quoted property name in JSON", text, position)


def _delimiter(text: str, position: int) -> JsException:
    position = _skip_space(text, position)
    if _innermost(text[:position]) == "[":
        return _at("Expected ',' or ']' after array element in JSON", text, position)
    return _at("Expected ',' or '}' after property value in JSON", text, position)


def _token(text: str, position: int) -> JsException:
    if position >= len(text):
        return JsException("SyntaxError", "Unexpected end of JSON input")
    if text in _SPECIAL or text == "[object Object]":
        return JsException("SyntaxError", f'"{text}" is not valid JSON')
    if text[position] == "-" and not text[position + 1 : position + 2].isdigit():
        return _at("No number after minus sign in JSON", text, position + 1)
    if text[position] in "-0123456789":
        return _at("Unexpected number in JSON", text, position)
    if text[position] == '"':
        return _at("Unexpected string in JSON", text, position)
    position = _mismatch(text, position)
    if position >= len(text):
        return JsException("SyntaxError", "Unexpected end of JSON input")
    return JsException(
        "SyntaxError",
        f"Unexpected token '{text[position]}', {_context(text, position)} is not valid JSON",
    )


def _mismatch(text: str, position: int) -> int:
    """V8 reads `null`, `true` and `false` letter by letter and blames the first wrong one."""
    for word in _LITERALS:
        if text[position] == word[0]:
            length = 1
            while (
                length < len(word)
                and text[position + length : position + length + 1] == word[length]
            ):
                length += 1
            return position + length
    return position


def _context(text: str, position: int) -> str:
    if len(text) <= 2 * _CONTEXT:
        return f'"{text}"'
    start = max(position - _CONTEXT, 0)
    end = min(position + _CONTEXT, len(text))
    before = "..." if start else ""
    after = "..." if end < len(text) else ""
    return f'{before}"{text[start:end]}"{after}'


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    return position


def _innermost(text: str) -> str:
    """The bracket that is still open at the end of `text`, which is well-formed so far."""
    open_brackets = []
    in_string = False
    skip = False
    for char in text:
        if skip:
            skip = False
        elif in_string:
            skip = char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "[{":
            open_brackets.append(char)
        elif char in "]}":
            open_brackets.pop()
    return open_brackets[-1] if open_brackets else ""
