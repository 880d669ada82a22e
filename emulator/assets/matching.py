"""Which rules a request matches: splats, placeholders, hosts (workers-sdk, rules-engine.ts)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

T = TypeVar("T")

_SPECIAL: Final = re.compile(r"[-/\\^$*+?.()|\[\]{}]")
_PLACEHOLDER: Final = re.compile(r":([A-Za-z]\w*)", re.ASCII)
_IN_HOST: Final = re.compile(r":([A-Za-z]\w*)(?=\\)", re.ASCII)
_HTTPS: Final = r"https:\/\/"


class Match(NamedTuple, Generic[T]):
    """A rule that a request matches, and what its placeholders stand for."""

    rule: T
    values: Mapping[str, str]


class Matcher(Generic[T]):
    """Rules by their paths, in order; one that is no pattern never matches."""

    def __init__(self, rules: Iterable[tuple[str, T]]) -> None:
        self._rules = [
            (path.startswith("https://"), pattern, rule)
            for path, rule in rules
            if (pattern := _pattern(path)) is not None
        ]

    def matches(self, host: str, path: str) -> Iterator[Match[T]]:
        """Yield the rules that a request for this path of this host matches."""
        for has_host, pattern, rule in self._rules:
            found = pattern.fullmatch(f"https://{host}{path}" if has_host else path)
            if found is not None:
                yield Match(rule, found.groupdict())


def replaced(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the placeholders that a match gave values.

    >>> replaced("/:year/:splat", {"year": "2026", "splat": "a/b"})
    '/2026/a/b'
    """
    for name, value in values.items():
        text = text.replace(f":{name}", value)
    return text


def routes(rules: Iterable[str], path: str) -> bool:
    """Whether a path matches a rule of `run_worker_first`; `*` is the only wildcard."""
    return any(
        re.fullmatch(".*".join(map(_escaped, rule.split("*"))), path) is not None for rule in rules
    )


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _pattern(path: str) -> re.Pattern[str] | None:
    rule = "(?P<splat>.*)".join(map(_escaped, path.split("*")))
    if rule.startswith(_HTTPS):
        host = rule[: rule.find("\\/", len(_HTTPS)) + 1] if "\\/" in rule[len(_HTTPS) :] else rule
        for found in _IN_HOST.finditer(host):
            rule = rule.replace(found[0], f"(?P<{found[1]}>[^/.]+)")
    for found in _PLACEHOLDER.finditer(rule):
        rule = rule.replace(found[0], f"(?P<{found[1]}>[^/]+)")
    try:
        return re.compile(rule)
    except re.error:
        return None
