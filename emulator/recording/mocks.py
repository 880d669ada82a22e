"""The outside of a printed test: a route of respx for each method and URL that was asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator.bindings.decoded import OF_TRANSFER
from emulator.recording import literals
from emulator.recording.literals import Code, call, filled, text
from emulator.recording.masking import secrets_in
from emulator.recording.tape import ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.recording.entries import Outgoing

MOST_BODY: Final = 8_192
"""The largest body, in bytes, that a test holds."""

NEVER: Final = "never"

# Methods that respx has a function for.
_VERBS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
# What httpx makes of a body itself, and what is no more true of it.
_OWN: Final = (*OF_TRANSFER, "date")


@dataclass(frozen=True, slots=True)
class Route:
    """A route: the name of its variable, its lines, and how often it was asked.

    `waits`: it never answers, by the function that is called `NEVER`.
    """

    name: str
    lines: tuple[str, ...]
    count: int
    uses_httpx: bool
    waits: bool = False


def routes(
    outgoing: Iterable[Outgoing], variables: Mapping[str, str], problems: list[str]
) -> list[Route]:
    """Return the routes; what cannot be had of an answer is added to the problems."""
    found: dict[tuple[str, str], list[Outgoing]] = {}
    for one in outgoing:
        found.setdefault((one.method, one.url), []).append(one)
    return [
        _route(f"outside_{number}", many, variables, problems)
        for number, many in enumerate(found.values(), 1)
    ]


def _route(
    name: str, many: list[Outgoing], variables: Mapping[str, str], problems: list[str]
) -> Route:
    first = many[0]
    url = filled(first.url, variables)
    if first.method in _VERBS:
        # A URL alone is a pattern, which takes the parameters of its query in any order.
        given = {"url__eq": url} if "?" in first.url else {}
        target = call(f"respx_mock.{first.method.lower()}", *(() if given else (url,)), **given)
    else:
        target = call("respx_mock.route", method=text(first.method), url=url)
    if all(one.status is None and one.error is None for one in many):
        lines = _made(name, target, "mock", side_effect=NEVER)
        return Route(name, (*lines,), len(many), False, waits=True)
    answers = [_answer(one, variables, problems) for one in many]
    if len(many) == 1 and first.status is not None and first.error is None:
        (status, named), *_ = answers
        return Route(name, (*_made(name, target, "respond", status, **named),), 1, False)
    effects: list[Code] = [
        code if one.status is None else call("httpx.Response", code, **named)
        for one, (code, named) in zip(many, answers, strict=True)
    ]
    lines = _made(name, target, "mock", side_effect=literals.array(effects))
    return Route(name, (*lines,), len(many), True)


def _made(name: str, target: Code, verb: str, *args: Code, **named: Code) -> list[str]:
    """The lines that make a route: one statement, unless the URL is too long for it."""
    chained = call(f"{literals.one_line(target)}.{verb}", *args, **named)
    lines = literals.written(f"{name} = ", chained, indent=1)
    if len(lines[0]) <= literals.WIDTH:
        return lines
    route = literals.written(f"{name} = ", target, indent=1)
    return route + literals.written("", call(f"{name}.{verb}", *args, **named), indent=1)


def _answer(
    one: Outgoing, variables: Mapping[str, str], problems: list[str]
) -> tuple[Code, dict[str, Any]]:
    """The first argument and those by name of what makes an answer."""
    if one.error is not None:
        return one_error(*one.error), {}
    if one.status is None:
        return one_error("ReadError", "the recording ends before this answer came"), {}
    body = one.body
    if one.missing or len(body) > MOST_BODY:
        why = one.missing or f"larger than {MOST_BODY:,} bytes"
        problems.append(f"the mock of {one.method} {one.url} has no body: that is {why}")
        body = b""
    kind = dict(one.headers).get("content-type", "")
    content, implied = content_of(body, kind, variables)
    headers = [
        pair for pair in one.headers if pair[0].lower() not in _OWN and pair[1] not in implied
    ]
    named: dict[str, Any] = {**content}
    if headers:
        named["headers"] = headers_of(headers, variables)
    return str(one.status), named


def one_error(name: str, message: str) -> Code:
    """Return the code of one of httpx's errors."""
    known = any(kind.__name__ == name for kind in ERRORS)
    return call(f"httpx.{name if known else 'ConnectError'}", text(message))


def headers_of(
    headers: Iterable[tuple[str, str]], variables: Mapping[str, str], *, spread: str = ""
) -> Code:
    """Return headers: a dict, or pairs where a name is there twice."""
    pairs: list[tuple[Code, Code]] = [
        # httpx takes a text of ASCII only.
        (
            filled(key, variables),
            filled(value, variables) if value.isascii() else literals.octets(value.encode()),
        )
        for key, value in headers
        if all(name in variables for name in secrets_in(key))
    ]
    names = [name for name, _ in pairs]
    if len(dict.fromkeys(names)) == len(names):
        return literals.table(pairs, spread=spread) if pairs or not spread else spread
    items: list[Code] = [literals.Group("(", (("", a), ("", b)), ")") for a, b in pairs]
    if spread:
        items.insert(0, f"*{spread}.items()")
    return literals.array(items)


def content_of(
    body: bytes, kind: str, variables: Mapping[str, str]
) -> tuple[dict[str, Code], tuple[str, ...]]:
    """Return the argument that gives a body, and the content types that come with it."""
    if not body:
        return {}, ()
    try:
        shown = body.decode()
    except UnicodeDecodeError:
        return {"content": literals.octets(body)}, ()
    if kind == "application/json" and is_compact(shown):
        return {"json": literals.json_value(json.loads(shown), variables)}, (kind,)
    return {"content": filled(shown, variables)}, ()


def json_of(shown: str) -> Code | None:
    """Return the literal of a text that is JSON which Python's literals can hold."""
    try:
        value = json.loads(shown)
        json.dumps(value, allow_nan=False)
        return literals.json_value(value, {})
    except (ValueError, RecursionError):
        return None


def is_compact(shown: str) -> bool:
    """Whether httpx writes a value as this very JSON, so that the value can stand for it."""
    try:
        value = json.loads(shown)
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return written == shown
