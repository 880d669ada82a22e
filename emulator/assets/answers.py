"""What a request for an asset gets, as Cloudflare's asset Worker answers it.

1. A rule of `_redirects` comes first: it redirects, or (status 200) another path is served here.
2. `html_handling` and `not_found_handling` say which file is meant, or where the path leads.
3. Other methods than GET and HEAD are refused, where there is something.
4. A path that is not encoded as assets are leads to the one that is.
5. The rules of `_headers` change what is answered, whatever it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.assets import rule_files
from emulator.assets.files import HEADERS, REDIRECTS
from emulator.assets.html import intent
from emulator.assets.matching import Matcher, replaced
from emulator.assets.paths import decoded, encoded
from emulator.runtime.web.url_parser import Parts, parse

if TYPE_CHECKING:
    from emulator.asset_config import AssetsConfig
    from emulator.assets.files import Files
    from emulator.assets.rule_files import Invalid, Redirect

    Pairs = tuple[tuple[str, str], ...]

_REASONS: Final = {
    200: "OK",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    404: "Not Found",
    405: "Method Not Allowed",
}
_CACHED: Final = ("cache-control", "public, max-age=0, must-revalidate")
_SCHEME: Final = re.compile(r"\w+://", re.ASCII)
_SLASHES: Final = re.compile(r"/+")


class Asked(NamedTuple):
    """A request."""

    method: str
    url: Parts
    headers: Pairs

    def header(self, name: str) -> str | None:
        """Return a header, None where there is none."""
        return next((value for key, value in self.headers if key == name), None)


class Answer(NamedTuple):
    """The parts of a response; `file` is what is served, None for no file."""

    status: int
    headers: Pairs = ()
    body: bytes = b""
    file: str | None = None

    @property
    def status_text(self) -> str:
        """The text beside the status."""
        return _REASONS[self.status]


class _Plan(NamedTuple):
    """A file with its status, or an answer without one."""

    file: str
    status: int


class Site:
    """The assets of a Worker, with their rules."""

    def __init__(self, config: AssetsConfig, files: Files) -> None:
        self.config = config
        self.files = files
        headers, wrong = rule_files.parse_headers(files.special(HEADERS))
        redirects, wrong_too = rule_files.parse_redirects(
            files.special(REDIRECTS), config.html_handling
        )
        self.problems = (
            *files.problems,
            *(_told(HEADERS, one) for one in wrong),
            *(_told(REDIRECTS, one) for one in wrong_too),
        )
        # The last rule of a path counts, in the place of the first.
        self._headers = Matcher({rule.path: rule for rule in headers}.items())
        self._static, dynamic = _split(redirects)
        self._dynamic = Matcher({rule.source: rule for rule in dynamic}.items())

    def has(self, asked: Asked) -> bool:
        """Whether the assets have an answer, so that a Worker is not asked."""
        config = self.config
        keeps = config.has_rules or (
            config.prefers_navigation and asked.header("sec-fetch-mode") == "navigate"
        )
        return self._plan(asked, finds_others=keeps) is not None

    def answer(self, asked: Asked) -> Answer:
        """Return what a request gets."""
        plan = self._plan(asked, finds_others=True)
        if plan is None:
            found = Answer(404)
        elif isinstance(plan, Answer):
            found = plan
        else:
            found = self._served(plan, asked)
        return self._with_rules(found, asked)

    def _plan(self, asked: Asked, *, finds_others: bool) -> _Plan | Answer | None:
        config, path, is_proxied = self.config, asked.url.pathname, False
        redirect = self._redirect(asked.url)
        if redirect is not None:
            target, status = redirect
            if status != 200:
                return Answer(status, (("location", _location(target, asked.url)),))
            path, is_proxied = target.pathname, True
        plain = decoded(path)
        handling = config.not_found_handling if finds_others else "none"
        found = intent(plain, self.files.exists, config.html_handling, handling)
        if found is None:
            return Answer(404) if is_proxied else None
        if asked.method not in ("GET", "HEAD"):
            return Answer(405)
        place = encoded(found.destination or plain)
        if found.destination is not None or place != path:
            query = f"?{asked.url.query}" if asked.url.query else ""
            return Answer(307, (("location", place + query),))
        return _Plan(found.file, found.status)

    def _redirect(self, url: Parts) -> tuple[Parts, int] | None:
        with_host = self._static.get(f"https://{url.host_and_port}{url.pathname}")
        without = self._static.get(url.pathname)
        static = min(filter(None, (with_host, without)), key=_number, default=None)
        if static is not None:
            return parse(static.target, url), static.status
        match = next(self._dynamic.matches(url.host or "", url.pathname), None)
        if match is None:
            return None
        target = replaced(match.rule.target, match.values).strip()
        if not _SCHEME.match(target):
            target = _SLASHES.sub("/", target)
        return parse(target, url), match.rule.status

    def _served(self, plan: _Plan, asked: Asked) -> Answer:
        asset = self.files.get(plan.file)
        headers = [("etag", f'"{asset.etag}"')]
        if asset.content_type is not None:
            headers.append(("content-type", asset.content_type))
        if asked.header("authorization") is None and asked.header("range") is None:
            headers.append(_CACHED)
        headers.append(("cf-cache-status", "HIT"))
        known = asked.header("if-none-match") or ""
        if known.removeprefix("W/") == f'"{asset.etag}"':
            return Answer(304, tuple(headers), file=plan.file)
        body = b"" if asked.method == "HEAD" else asset.body
        return Answer(plan.status, tuple(headers), body, plan.file)

    def _with_rules(self, answer: Answer, asked: Asked) -> Answer:
        headers, ours = list(answer.headers), list[str]()
        for match in self._headers.matches(asked.url.host or "", asked.url.pathname):
            for name in match.rule.removed:
                headers = [pair for pair in headers if pair[0] != name.lower()]
            for name, value in match.rule.headers.items():
                if name not in ours:
                    headers = [pair for pair in headers if pair[0] != name]
                    ours.append(name)
                headers.append((name, replaced(value, match.values).strip()))
        return answer._replace(headers=tuple(headers))


def _number(rule: Redirect) -> int:
    return rule.number


def _split(rules: list[Redirect]) -> tuple[dict[str, Redirect], list[Redirect]]:
    """Static rules by their paths; those behind the first dynamic one stay in its line."""
    first = next((index for index, rule in enumerate(rules) if rule.is_dynamic), len(rules))
    return {rule.source: rule for rule in rules[:first]}, rules[first:]


def _location(target: Parts, asked: Parts) -> str:
    query = target.query or asked.query
    rest = f"?{query}" if query else ""
    if target.fragment:
        rest += f"#{target.fragment}"
    own = target.origin == asked.origin
    place = target.pathname if own else f"{target.origin}{target.pathname}"
    return place + rest


def _told(name: str, invalid: Invalid) -> str:
    where = f"{name}:{invalid.number}" if invalid.number is not None else name
    return f"{where}: {invalid.message}"
