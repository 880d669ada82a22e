"""The CSS selectors that elements can be chosen by: those that are known when an element opens."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_IDENTIFIER: Final = r"-?(?:[A-Za-z_]|[^\x00-\x7f])(?:[\w-]|[^\x00-\x7f])*"
_SIMPLE: Final = re.compile(
    rf"""(?P<type>\*|{_IDENTIFIER})
    | \.(?P<class>{_IDENTIFIER})
    | \#(?P<id>(?:[\w-]|[^\x00-\x7f])+)
    | \[\s*(?P<name>[^\s=~^$*|\]]+)\s*
      (?:(?P<operator>[~^$*|]?=)\s*(?P<value>"[^"]*"|'[^']*'|{_IDENTIFIER})
         \s*(?P<flag>[iIsS])?\s*)?\]
    | :(?P<pseudo>[\w-]+)(?:\((?P<argument>[^()]*(?:\([^()]*\)[^()]*)*)\))?""",
    re.VERBOSE,
)
_NTH: Final = re.compile(r"\s*(?:(odd|even)|([+-]?\d*)n\s*([+-]\s*\d+)?|([+-]?\d+))\s*\Z")


@dataclass(slots=True)
class Node:
    """An element as selectors see it: its place among those before it."""

    name: str
    attributes: dict[str, str]
    index: int = 1  # among its parent's children
    type_index: int = 1  # among those of its name
    children: int = 0
    types: dict[str, int] = field(default_factory=dict)

    def child(self, name: str, attributes: dict[str, str]) -> Node:
        """Return the next child."""
        self.children += 1
        self.types[name] = self.types.get(name, 0) + 1
        return Node(name, attributes, self.children, self.types[name])


Test = "Callable[[Node], bool]"


class _Step(NamedTuple):
    """A compound selector, and how it hangs on the one before it."""

    combinator: str
    tests: tuple[Callable[[Node], bool], ...]

    def matches(self, node: Node) -> bool:
        """Whether an element has all that it asks for."""
        return all(test(node) for test in self.tests)


def _error(text: str) -> JsException:
    return JsException("TypeError", f"Parser error: {text}")


class Selector:
    """A list of selectors; raises the runtime's `TypeError` for one that is not supported."""

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise _error("The selector is empty.")
        self._options = [_chain(part) for part in _parts(text)]

    def matches(self, path: Sequence[Node]) -> bool:
        """Whether the last element of a path from the root matches."""
        return any(_matches(chain, path) for chain in self._options)


def _matches(chain: Sequence[_Step], path: Sequence[Node]) -> bool:
    if not path or not chain[-1].matches(path[-1]):
        return False
    if len(chain) == 1:
        return True
    if chain[-1].combinator == ">":
        return _matches(chain[:-1], path[:-1])
    return any(_matches(chain[:-1], path[:end]) for end in range(len(path) - 1, 0, -1))


def _parts(text: str) -> list[str]:
    parts, depth, quote, start = [], 0, "", 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _chain(text: str) -> list[_Step]:
    steps: list[_Step] = []
    rest, combinator = text.strip(), ""
    if not rest:
        raise _error("The selector is empty.")
    while rest:
        tests, rest = _compound(rest)
        steps.append(_Step(combinator, tests))
        stripped = rest.lstrip()
        if not stripped:
            break
        if stripped[0] in "+~|":
            raise _error(f"Unsupported combinator `{stripped[0]}` in selector.")
        combinator = ">" if stripped[0] == ">" else " "
        rest = stripped[1:].lstrip() if combinator == ">" else stripped
        if not rest:
            raise _error("Dangling combinator in selector.")
    return steps


def _compound(text: str) -> tuple[tuple[Callable[[Node], bool], ...], str]:
    tests: list[Callable[[Node], bool]] = []
    place = 0
    while place < len(text) and text[place] not in " \t\n\r\f>+~|":
        found = _SIMPLE.match(text, place)
        if found is None and text.startswith("::", place):
            raise _error("Unsupported pseudo-class or pseudo-element in selector.")
        if found is None or (found["type"] and tests):
            where = "the attribute selector" if text[place] == "[" else "selector"
            raise _error(f"Unexpected token in {where}.")
        tests.append(_test(found))
        place = found.end()
    if not tests:
        raise _error("Unexpected token in selector.")
    return tuple(tests), text[place:]


def _test(found: re.Match[str]) -> Callable[[Node], bool]:
    if (name := found["type"]) is not None:
        return (lambda node: True) if name == "*" else _named(name.lower())
    if (name := found["class"]) is not None:
        return lambda node: name in node.attributes.get("class", "").split()
    if (name := found["id"]) is not None:
        return lambda node: node.attributes.get("id") == name
    if found["name"] is not None:
        return _attribute(found)
    return _pseudo(found["pseudo"], found["argument"])


def _named(name: str) -> Callable[[Node], bool]:
    return lambda node: node.name == name


def _attribute(found: re.Match[str]) -> Callable[[Node], bool]:
    name, operator, value = found["name"].lower(), found["operator"], found["value"]
    if operator is None:
        return lambda node: name in node.attributes
    wanted = value[1:-1] if value[0] in "'\"" else value
    folds = (found["flag"] or "").lower() == "i"
    if folds:
        wanted = wanted.lower()
    compare = _OPERATORS[operator]

    def test(node: Node) -> bool:
        actual = node.attributes.get(name)
        if actual is None:
            return False
        return compare(actual.lower() if folds else actual, wanted)

    return test


_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda actual, wanted: actual == wanted,
    "~=": lambda actual, wanted: bool(wanted) and wanted in actual.split(),
    "^=": lambda actual, wanted: bool(wanted) and actual.startswith(wanted),
    "$=": lambda actual, wanted: bool(wanted) and actual.endswith(wanted),
    "*=": lambda actual, wanted: bool(wanted) and wanted in actual,
    "|=": lambda actual, wanted: actual == wanted or actual.startswith(f"{wanted}-"),
}


def _pseudo(name: str, argument: str | None) -> Callable[[Node], bool]:
    if name == "first-child" and argument is None:
        return lambda node: node.index == 1
    if name == "first-of-type" and argument is None:
        return lambda node: node.type_index == 1
    if name == "nth-child" and argument is not None:
        holds = _nth(argument)
        return lambda node: holds(node.index)
    if name == "nth-of-type" and argument is not None:
        holds_of_type = _nth(argument)
        return lambda node: holds_of_type(node.type_index)
    if name == "not" and argument is not None:
        inner = [_compound(part.strip())[0] for part in _parts(argument)]
        return lambda node: not any(all(test(node) for test in tests) for tests in inner)
    raise _error("Unsupported pseudo-class or pseudo-element in selector.")


def _nth(argument: str) -> Callable[[int], bool]:
    found = _NTH.match(argument)
    if found is None:
        raise _error("Unexpected token in selector.")
    word, step, offset, only = found.groups()
    if word is not None:
        return lambda index: index % 2 == (word == "odd")
    if only is not None:
        return lambda index: index == int(only)
    every = int(f"{step}1") if step in ("", "+", "-") else int(step)
    first = int((offset or "0").replace(" ", ""))

    def holds(index: int) -> bool:
        distance = index - first
        return distance == 0 if every == 0 else distance % every == 0 and distance // every >= 0

    return holds
