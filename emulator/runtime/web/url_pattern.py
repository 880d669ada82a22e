"""The JavaScript class `URLPattern` (urlpattern.spec.whatwg.org)."""

from __future__ import annotations

import urllib.parse
from typing import Any, Final

from emulator.runtime.web import idl
from emulator.runtime.web.pattern_parser import BadPattern, Compiled, Rules, compiled, tokens
from emulator.runtime.web.url import URL
from emulator.values import UNDEFINED, HostObject, JsException

_PARTS: Final[tuple[str, ...]] = (
    *("protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"),
)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
_FAILED: Final = "Failed to construct URLPattern"
# Where a constructor's text goes on with another component.
_AFTER_AUTHORITY: Final = {"/": "pathname", "?": "search", "#": "hash"}
_RULES: Final = {"hostname": Rules("."), "pathname": Rules("/", "/")}


class URLPattern(HostObject):
    """A pattern that URLs match or do not."""

    js_class = "URLPattern"
    js_members = frozenset({*_PARTS, "hasRegExpGroups", "test", "exec"})

    def __init__(self, patterns: dict[str, Compiled]) -> None:
        self._patterns = patterns

    @classmethod
    def js_new(
        cls, given: object = UNDEFINED, base: object = UNDEFINED, more: object = UNDEFINED
    ) -> URLPattern:
        """Do `new URLPattern(input, baseURL, options)`."""
        if not isinstance(base, str) and base is not UNDEFINED:
            base, more = UNDEFINED, base
        ignore_case = bool(idl.options(more).get("ignoreCase", False))
        try:
            init = _init_of(given, base)
            patterns = {
                name: compiled(
                    init.get(name, "*"),
                    _RULES.get(name, Rules()),
                    _encoder(name),
                    ignore_case=ignore_case,
                )
                for name in _PARTS
            }
        except BadPattern:
            raise JsException("TypeError", _FAILED) from None
        return cls(patterns)

    def js_lookup(self, name: str) -> Any:
        """Return a component's pattern, or a method."""
        if name in _PARTS:
            return self._patterns[name].text
        return super().js_lookup(name)

    @property
    def hasRegExpGroups(self) -> bool:
        """Tell whether a component has a regular expression of its own."""
        return any(pattern.has_regexp for pattern in self._patterns.values())

    def test(self, given: object = UNDEFINED, base: object = UNDEFINED) -> bool:
        """Tell whether a URL, or its components, match."""
        return self._match(given, base) is not None

    def exec(self, given: object = UNDEFINED, base: object = UNDEFINED) -> dict[str, Any] | None:
        """Return what a URL's components match, or null."""
        found = self._match(given, base)
        if found is None:
            return None
        inputs = [{} if given is UNDEFINED else given]
        if base is not UNDEFINED:
            inputs.append(base)
        return {"inputs": inputs, **found}

    def _match(self, given: object, base: object) -> dict[str, Any] | None:
        values = _values_of(given, base)
        if values is None:
            return None
        result: dict[str, Any] = {}
        for name in _PARTS:
            value = values.get(name, "")
            groups = self._patterns[name].groups(value)
            if groups is None:
                return None
            shown = {k: UNDEFINED if v is None else v for k, v in groups.items()}
            result[name] = {"input": value, "groups": shown}
        return result


# -- what is matched -----------------------------------------------------------------------------


def _values_of(given: object, base: object) -> dict[str, str] | None:
    if isinstance(given, str) or (isinstance(given, HostObject) and given.js_class == "URL"):
        text = idl.string(given)
        url = URL.parse(text, base)
        if url is None and base is UNDEFINED and text.startswith("/"):
            url = URL.parse(text, "fake://dummy.test")  # as workerd's library does
        return None if url is None else _components(url)
    chosen = idl.options(given)
    values = {name: idl.string(chosen[name]) for name in _PARTS if name in chosen}
    if "baseURL" in chosen:
        around = URL.parse(idl.string(chosen["baseURL"]))
        if around is None:
            return None
        values = _inherited(_components(around), values)
    return values


def _components(url: URL) -> dict[str, str]:
    return {
        "protocol": url.protocol[:-1],
        "username": url.username,
        "password": url.password,
        "hostname": url.hostname,
        "port": url.port,
        "pathname": url.pathname,
        "search": url.search[1:],
        "hash": url.hash[1:],
    }


def _inherited(base: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """Return components with those before them of a base URL."""
    order = ("protocol", "hostname", "port", "pathname", "search", "hash")
    result = dict(own)
    for name in order:
        if name in own:
            break
        result[name] = base[name]
    path = own.get("pathname", "")
    if path and not path.startswith("/"):
        result["pathname"] = base["pathname"].rpartition("/")[0] + "/" + path
    return result


# -- patterns ------------------------------------------------------------------------------------


def _init_of(given: object, base: object) -> dict[str, str]:
    if isinstance(given, str):
        init = _split(given)
        if base is UNDEFINED:
            if "protocol" not in init:
                raise BadPattern(given)
        else:
            init = _with_base(init, idl.string(base))
        return _completed(init)
    if base is not UNDEFINED:
        raise BadPattern("a base with components")
    chosen = idl.options(given)
    init = {name: _bare(name, idl.string(chosen[name])) for name in _PARTS if name in chosen}
    if "baseURL" in chosen:
        init = _with_base(init, idl.string(chosen["baseURL"]))
    return _completed(init)


def _bare(name: str, text: str) -> str:
    if name == "protocol":
        return text.removesuffix(":")
    if name in ("search", "hash"):
        return text.removeprefix("?" if name == "search" else "#")
    return text


def _with_base(init: dict[str, str], base: str) -> dict[str, str]:
    around = URL.parse(base)
    if around is None:
        raise BadPattern(base)
    literal = {name: _literal(value) for name, value in _components(around).items()}
    return _inherited(literal, init)


def _literal(text: str) -> str:
    return "".join(f"\\{char}" if char in "+*?:{}()\\" else char for char in text)


def _completed(init: dict[str, str]) -> dict[str, str]:
    port = _DEFAULT_PORTS.get(init.get("protocol", ""))
    if port is not None and init.get("port") == port:
        init = {**init, "port": ""}
    return init


def _split(text: str) -> dict[str, str]:
    """Return the components of a constructor's text."""
    parts: dict[str, str] = {}
    found = [token for token in tokens(text, lenient=True) if token.kind != "end"]
    state, start, depth = "init", 0, 0
    rest = text
    for place, token in enumerate(found):
        if token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth -= 1
        if depth or state != "init":
            continue
        if _is_char(found, place, ":") and text[token.at + 1 : token.at + 3] == "//":
            parts["protocol"] = text[: token.at]
            start, state = token.at + 3, "authority"
            break
    if state == "init":
        return _split_path(rest, "pathname" if text[:1] not in "?#" else "", parts)
    return _split_authority(text[start:], parts)


def _split_authority(text: str, parts: dict[str, str]) -> dict[str, str]:
    found = tokens(text, lenient=True)
    depth, colon = 0, -1
    for place, token in enumerate(found):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth:
            continue
        if _is_char(found, place, "@"):
            name, _, password = text[: token.at].partition(":")
            parts["username"], parts["password"] = name, password or "*"
            return _split_authority(text[token.at + 1 :], parts)
        if _is_char(found, place, ":"):
            colon = token.at
        ends = token.kind == "end" or _is_char(found, place, "/", "#") or _is_query(found, place)
        if ends:
            authority, rest = text[: token.at], text[token.at :]
            host = authority if colon < 0 else authority[:colon]
            parts["hostname"] = host
            parts["port"] = "" if colon < 0 else authority[colon + 1 :]
            return _split_path(rest, "pathname", parts) if rest else parts
    return parts


def _split_path(text: str, state: str, parts: dict[str, str]) -> dict[str, str]:
    found = tokens(text, lenient=True)
    depth, start = 0, 0
    for place, token in enumerate(found):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth:
            continue
        following = "hash" if _is_char(found, place, "#") else ""
        if not following and state in ("", "pathname") and _is_query(found, place):
            following = "search"
        if following or token.kind == "end":
            if state:
                parts[state] = text[start : token.at]
            if following == "hash" and state == "pathname":
                parts.setdefault("search", "")
            if state == "hash":
                break
            state, start = following, token.at + 1
    if parts.get("pathname") == "" and "hostname" in parts:
        parts["pathname"] = "/"
    return parts


def _is_char(found: list[Any], place: int, *chars: str) -> bool:
    token = found[place]
    return token.kind in ("char", "escaped", "invalid") and token.value in chars


def _is_query(found: list[Any], place: int) -> bool:
    """Whether a `?` begins the search, and is no modifier of what comes before."""
    token = found[place]
    if _is_char(found, place, "?"):
        return True
    if token.value != "?" or token.kind != "modifier":
        return False
    if place == 0:
        return True
    return found[place - 1].kind not in ("name", "regexp", "close", "asterisk")


# -- encoding ------------------------------------------------------------------------------------


def _encoder(name: str) -> Any:
    if name == "hostname":
        return _host
    if name in ("protocol", "port"):
        return str.lower
    safe = {"pathname": "/:@!$&'()*+,;=-._~%[]|", "search": "/:@!$&()*+,;=-._~%?[]|{}`^\\"}
    return lambda text: urllib.parse.quote(text, safe=safe.get(name, "/:@!$&'()*+,;=-._~%?[]|{}"))


def _host(text: str) -> str:
    if text.isascii():
        return text.lower()
    url = URL.parse(f"https://{text.strip('.')}/")
    return text.replace(text.strip("."), url.hostname) if url is not None else text
