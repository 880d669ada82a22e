"""The files `_headers` and `_redirects`: their rules, and the lines that are none.

The grammar, the limits and the texts are wrangler's (workers-sdk, packages/workers-shared).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.runtime.web.url_parser import InvalidUrl, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.asset_config import HtmlHandling

_LONGEST_LINE: Final = 2000  # characters
_MOST_HEADER_RULES: Final = 100
_MOST_STATIC: Final = 2000
_MOST_DYNAMIC: Final = 100
_STATUSES: Final = frozenset({200, 301, 302, 303, 307, 308})

_ABSOLUTE: Final = re.compile(r"https:///*([^/]+)/?(.*)", re.DOTALL)
_PORT: Final = re.compile(r".*:\d+")
_LIKE_A_PATH: Final = re.compile(r"[^\s]+://|/")
_PLACEHOLDER: Final = re.compile(r":[A-Za-z]\w*", re.ASCII)
_SPLAT: Final = re.compile(r":splat(?!\w)", re.ASCII)
_COMMENT: Final = re.compile(r"\s+#.*$")
_INDEX: Final = re.compile(r"/index(.html)?$")
_LOOP: Final = (
    "Infinite loop detected in this rule and has been ignored. This will cause a redirect to strip "
    "`.html` or `/index` and end up triggering this rule again. Please fix or remove this rule to "
    "silence this warning."
)
_NOT_RELATIVE: Final = "URLs should begin with a forward-slash."
_NOT_A_URL: Final = (
    "URLs should either be relative (e.g. begin with a forward-slash), or use HTTPS (e.g. begin "
    'with "https://").'
)


class Invalid(NamedTuple):
    """A line that is no rule; it has no number where it is not told."""

    message: str
    line: str = ""
    number: int | None = None


@dataclass(slots=True)
class HeaderRule:
    """What is done to the headers of the responses at a path."""

    path: str
    line: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)


class Redirect(NamedTuple):
    """Where a path leads to; with the status 200 it is served from there."""

    source: str
    target: str
    status: int
    number: int

    @property
    def is_dynamic(self) -> bool:
        """Whether it has a splat or a placeholder."""
        return "*" in self.source or bool(_PLACEHOLDER.search(self.source))


class _Wrong(Exception):
    """What is wrong with a URL, or a line."""


def parse_headers(text: str) -> tuple[list[HeaderRule], list[Invalid]]:
    """Read the file `_headers`."""
    reader = _HeaderReader(text.split("\n"))
    reader.read()
    return reader.rules, reader.invalid


class _HeaderReader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._rule: HeaderRule | None = None
        self._skips = False  # up to the next path: this one was refused
        self.rules: list[HeaderRule] = []
        self.invalid: list[Invalid] = []

    def read(self) -> None:
        for number, line in _numbered(self._lines, self.invalid):
            if _LIKE_A_PATH.match(line):
                if len(self.rules) >= _MOST_HEADER_RULES:
                    self.invalid.append(
                        Invalid(
                            f"Maximum number of rules supported is {_MOST_HEADER_RULES}. Skipping "
                            f"remaining {len(self._lines) - number + 1} lines of file."
                        )
                    )
                    break
                self._finish(number)
                self._begin(line, number)
            elif not self._skips:
                self._take(line, number)
        self._finish(None)

    def _finish(self, number: int | None) -> None:
        rule, self._rule = self._rule, None
        if rule is None:
            return
        if rule.headers or rule.removed:
            self.rules.append(rule)
        else:
            self.invalid.append(Invalid("No headers specified", rule.line, number))

    def _begin(self, line: str, number: int) -> None:
        self._skips = False
        try:
            path = _checked_url(line, allows_port=False)
            _check_wildcards(path)
        except _Wrong as wrong:
            self.invalid.append(Invalid(str(wrong), line, number))
            self._skips = True
        else:
            self._rule = HeaderRule(path, line)

    def _take(self, line: str, number: int) -> None:
        try:
            self._take_header(line)
        except _Wrong as wrong:
            self.invalid.append(Invalid(str(wrong), line, number))

    def _take_header(self, line: str) -> None:
        rule = self._rule
        if ":" not in line:
            if rule is None:
                raise _Wrong("Expected a path beginning with at least one forward-slash")
            if not line.startswith("! "):
                raise _Wrong("Expected a colon-separated header pair (e.g. name: value)")
            rule.removed.append(line.removeprefix("! "))
            return
        raw, _, value = line.partition(":")
        name, value = raw.strip().lower(), value.strip()
        if " " in name:
            raise _Wrong("Header name cannot include spaces")
        if not name:
            raise _Wrong("No header name specified")
        if not value:
            raise _Wrong("No header value specified")
        if rule is None:
            raise _Wrong(f"Path should come before header ({name}: {value})")
        before = rule.headers.get(name)
        rule.headers[name] = f"{before}, {value}" if before else value


def parse_redirects(text: str, html_handling: HtmlHandling) -> tuple[list[Redirect], list[Invalid]]:
    """Read the file `_redirects`."""
    rules: list[Redirect] = []
    invalid: list[Invalid] = []
    seen: dict[str, None] = {}
    lines = text.split("\n")
    static = dynamic = 0
    for number, line in _numbered(lines, invalid):
        try:
            tokens = _tokens(line)
            source = _checked_url(tokens[0], only_relative=True, allows_port=False)
        except _Wrong as wrong:
            invalid.append(Invalid(str(wrong), line, number))
            continue
        if not dynamic and not Redirect(source, "", 0, 0).is_dynamic:
            static += 1
            if static > _MOST_STATIC:
                most = f"Maximum number of static rules supported is {_MOST_STATIC}."
                invalid.append(Invalid(f"{most} Skipping line."))
                continue
        else:
            dynamic += 1
            if dynamic > _MOST_DYNAMIC:
                most = f"Maximum number of dynamic rules supported is {_MOST_DYNAMIC}."
                left = len(lines) - number + 1
                invalid.append(Invalid(f"{most} Skipping remaining {left} lines of file."))
                break
        try:
            rules.append(_redirect(source, tokens, number, seen, html_handling))
        except _Wrong as wrong:
            invalid.append(Invalid(str(wrong), line, number))
    return rules, invalid


def _tokens(line: str) -> list[str]:
    tokens = _COMMENT.sub("", line).split()
    if not 2 <= len(tokens) <= 3:
        count = len(tokens)
        raise _Wrong(f"Expected exactly 2 or 3 whitespace-separated tokens. Got {count}.")
    return tokens


def _redirect(
    source: str,
    tokens: list[str],
    number: int,
    seen: dict[str, None],
    html_handling: HtmlHandling,
) -> Redirect:
    target = _checked_url(tokens[1], keeps_all=True)
    status = tokens[2] if len(tokens) > 2 else "302"
    if not status.isdecimal() or int(status) not in _STATUSES:
        raise _Wrong(
            f"Valid status codes are 200, 301, 302 (default), 303, 307, or 308. Got {status}."
        )
    is_absolute = _ABSOLUTE.match(target)
    if not is_absolute and _INDEX.search(target):
        to_itself = source.endswith("/") and html_handling != "none"
        if source.endswith("/*") or to_itself:
            raise _Wrong(_LOOP)
    if source in seen:
        raise _Wrong(f"Ignoring duplicate rule for path {source}.")
    seen[source] = None
    if status == "200" and is_absolute:
        raise _Wrong(f"Proxy (200) redirects can only point to relative paths. Got {target}")
    return Redirect(source, target, int(status), number)


def _numbered(lines: list[str], invalid: list[Invalid]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers; too long ones are invalid."""
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if len(line) > _LONGEST_LINE:
            invalid.append(
                Invalid(
                    f"Ignoring line {number} as it exceeds the maximum allowed length of "
                    f"{_LONGEST_LINE}."
                )
            )
            continue
        yield number, line


def _check_wildcards(path: str) -> None:
    count = path.count("*")
    if count > 1:
        raise _Wrong(
            "Only one wildcard is allowed per rule. Use a named placeholder (e.g. :project) "
            f"instead. Skipping {path}."
        )
    if count and _SPLAT.search(path):
        raise _Wrong(
            "Cannot combine a wildcard * with a :splat placeholder because wildcards are converted "
            f"to :splat at runtime. Skipping {path}."
        )


def _checked_url(
    token: str,
    *,
    only_relative: bool = False,
    allows_port: bool = True,
    keeps_all: bool = False,
) -> str:
    """Return a URL as rules have it: a path, or `https://host/path`; `keeps_all` is query too."""
    absolute = _ABSOLUTE.match(token)
    if absolute is not None:
        if only_relative:
            raise _Wrong(f"Only relative URLs are allowed. Skipping absolute URL {token}.")
        if not allows_port and _PORT.fullmatch(absolute[1]):
            raise _Wrong(f"Specifying ports is not supported. Skipping absolute URL {token}.")
        return f"https://{absolute[1]}{_path(absolute[2], keeps_all=keeps_all)}"
    if only_relative and not token.startswith("/"):
        token = f"/{token}"
    if not token.startswith("/"):
        raise _Wrong(_NOT_RELATIVE if only_relative else _NOT_A_URL)
    try:
        return _path(token, keeps_all=keeps_all)
    except InvalidUrl:
        raise _Wrong(f"Error parsing URL segment {token}. Skipping.") from None


def _path(path: str, *, keeps_all: bool) -> str:
    parts = parse(f"relative://{path if path.startswith('/') else f'/{path}'}")
    text = parts.pathname
    if keeps_all and parts.query:
        text += f"?{parts.query}"
    if keeps_all and parts.fragment:
        text += f"#{parts.fragment}"
    return text
