"""URLs as the WHATWG URL standard reads and writes them.

`urllib.parse` keeps what it is given; Worker code compares what a browser would make of it (lower
case host, default port gone, dot segments resolved, characters escaped), so the standard's parser
is here, without its error reporting and without Windows drive letters in `file:` URLs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from emulator.runtime.web.text import utf8

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": None}

_LONG: Final = 1000
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_EDGES: Final = "".join(map(chr, range(0x21)))
_TABS: Final = re.compile(r"[\t\n\r]")

_C0: Final = frozenset(range(0x20)) | frozenset(range(0x7F, 0x100))
_FRAGMENT: Final = _C0 | frozenset(b' "<>`')
_QUERY: Final = _C0 | frozenset(b' "#<>')
_SPECIAL_QUERY: Final = _QUERY | frozenset(b"'")
_PATH: Final = _QUERY | frozenset(b"?^`{}")
USERINFO: Final = _PATH | frozenset(b"/:;=@[\\]|")

_FORBIDDEN_HOST: Final = frozenset("\0\t\n\r #/:<>?@[\\]^|")
_FORBIDDEN_DOMAIN: Final = _FORBIDDEN_HOST | frozenset(map(chr, range(0x20))) | frozenset("%\x7f")


class InvalidUrl(ValueError):
    """The text is no URL."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A parsed URL; `path` is one opaque text (`mailto:`) or the segments after each slash."""

    scheme: str
    username: str = ""
    password: str = ""
    host: str | None = None
    port: int | None = None
    path: str | tuple[str, ...] = ()
    query: str | None = None
    fragment: str | None = None

    @property
    def special(self) -> bool:
        """Tell whether the scheme is one of the web's."""
        return self.scheme in DEFAULT_PORTS

    @property
    def pathname(self) -> str:
        """Return the path as text."""
        return self.path if isinstance(self.path, str) else "".join(f"/{s}" for s in self.path)

    @property
    def host_and_port(self) -> str:
        """Return `host:port`, or the host alone where the port is the scheme's own."""
        return (self.host or "") + ("" if self.port is None else f":{self.port}")

    @property
    def origin(self) -> str:
        """Return the origin, "null" for an opaque one."""
        if self.scheme == "blob":
            return _blob_origin(self.pathname)
        if self.special and self.scheme != "file":
            return f"{self.scheme}://{self.host_and_port}"
        return "null"

    def href(self) -> str:
        """Return the whole URL."""
        text = f"{self.scheme}:"
        if self.host is not None:
            text += f"//{self._credentials()}{self.host_and_port}"
        elif isinstance(self.path, tuple) and len(self.path) > 1 and self.path[0] == "":
            text += "/."
        text += self.pathname
        if self.query is not None:
            text += f"?{self.query}"
        return text if self.fragment is None else f"{text}#{self.fragment}"

    def _credentials(self) -> str:
        if not (self.username or self.password):
            return ""
        return self.username + (f":{self.password}" if self.password else "") + "@"


def parse(text: str, base: Parts | None = None) -> Parts:
    """Parse `text`, relative to `base` if it is; raises `InvalidUrl`."""
    return (_parse_again if len(text) < _LONG else _parse)(text, base)


def _parse(text: str, base: Parts | None) -> Parts:
    text = _TABS.sub("", text.strip(_EDGES))
    rest, mark, fragment = text.partition("#")
    if not (rest or mark) and base is not None and isinstance(base.path, str):
        raise InvalidUrl(text)
    found = _fragment_free(rest, base)
    if mark and isinstance(found.path, str) and found.path.endswith(" "):
        # Lest the space at the end be lost with the fragment.
        found = replace(found, path=f"{found.path[:-1]}%20")
    return replace(found, fragment=escape(fragment, _FRAGMENT) if mark else None)


# Workers ask for the same addresses again and again; a long one (`data:`) is not worth its memory.
_parse_again = lru_cache(maxsize=1024)(_parse)


def _fragment_free(text: str, base: Parts | None) -> Parts:
    match = _SCHEME.match(text)
    if match is None:
        if base is None:
            raise InvalidUrl(text)
        return _relative(text, base)
    scheme, rest = match[1].lower(), text[match.end() :]
    if scheme not in DEFAULT_PORTS:
        return _other(scheme, rest)
    if scheme == "file":
        return _file(rest, base if base is not None and base.scheme == "file" else None)
    if base is not None and base.scheme == scheme and not rest.replace("\\", "/").startswith("//"):
        # "https:foo" beside a base of the same scheme is relative.
        return _relative(rest, base)
    return _with_authority(scheme, rest.lstrip("/\\"))


def _relative(text: str, base: Parts) -> Parts:
    if isinstance(base.path, str):
        if text:
            raise InvalidUrl(text)
        return replace(base, fragment=None)
    if base.scheme == "file":
        return _file(text, base)
    slashed = text.replace("\\", "/") if base.special else text
    if slashed.startswith("//"):
        rest = text[2:].lstrip("/\\") if base.special else text[2:]
        return _with_authority(base.scheme, rest)
    path, query = _split_query(text, base.scheme)
    if not path:
        return replace(base, query=base.query if query is None else query, fragment=None)
    return replace(base, path=_join(path, base), query=query, fragment=None)


def _join(path: str, base: Parts) -> tuple[str, ...]:
    absolute = path.startswith("/") or (base.special and path.startswith("\\"))
    start = () if absolute else tuple(base.path[:-1])
    return segments(path[1:] if absolute else path, special=base.special, start=start)


def _other(scheme: str, rest: str) -> Parts:
    if rest.startswith("//"):
        return _with_authority(scheme, rest[2:])
    path, query = _split_query(rest, scheme)
    if path.startswith("/"):
        return Parts(scheme, path=segments(path[1:], special=False), query=query)
    return Parts(scheme, path=escape(path, _C0), query=query)


def _file(text: str, base: Parts | None) -> Parts:
    slashed = text.replace("\\", "/")
    if slashed.startswith("//"):
        authority, path, query = _split_authority(text[2:], "file")
        host = parse_host(authority, special=True) if authority else ""
        return _file_parts("" if host == "localhost" else host, path, query)
    path, query = _split_query(text, "file")
    if slashed.startswith("/") or base is None or isinstance(base.path, str):
        host = "" if base is None or base.host is None else base.host
        return _file_parts(host, path, query)
    if not path:
        return replace(base, query=base.query if query is None else query, fragment=None)
    return replace(base, path=_join(path, base), query=query, fragment=None)


def _file_parts(host: str, path: str, query: str | None) -> Parts:
    path = path[1:] if path[:1] in ("/", "\\") else path
    return Parts("file", host=host, path=segments(path, special=True), query=query)


def _with_authority(scheme: str, text: str) -> Parts:
    authority, path, query = _split_authority(text, scheme)
    special = scheme in DEFAULT_PORTS
    credentials, at, location = authority.rpartition("@")
    username, _, password = credentials.partition(":")
    host, port = _split_port(location)
    if not host and (special or at or port):
        raise InvalidUrl(text)
    return Parts(
        scheme,
        username=escape(username, USERINFO),
        password=escape(password, USERINFO),
        host=parse_host(host, special=special),
        port=parse_port(port, scheme),
        path=segments(path[1:], special=special) if path or special else (),
        query=query,
    )


def _split_authority(text: str, scheme: str) -> tuple[str, str, str | None]:
    ends = "/?\\" if scheme in DEFAULT_PORTS else "/?"
    end = next((index for index, char in enumerate(text) if char in ends), len(text))
    path, query = _split_query(text[end:], scheme)
    return text[:end], path, query


def _split_query(text: str, scheme: str) -> tuple[str, str | None]:
    path, mark, query = text.partition("?")
    return path, escape_query(query, scheme) if mark else None


def _split_port(location: str) -> tuple[str, str]:
    if location.startswith("["):
        host, bracket, rest = location.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise InvalidUrl(location)
        return host + bracket, rest[1:]
    host, _, port = location.partition(":")
    return host, port


def parse_port(text: str, scheme: str) -> int | None:
    """Return the port, None where it is the scheme's own or empty."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > 0xFFFF:
        raise InvalidUrl(text)
    return None if int(text) == DEFAULT_PORTS.get(scheme) else int(text)


def parse_host(text: str, *, special: bool) -> str:
    """Return the host in its one spelling; raises `InvalidUrl`."""
    if text.startswith("["):
        return _ipv6(text)
    if not special:
        if not _FORBIDDEN_HOST.isdisjoint(text):
            raise InvalidUrl(text)
        return escape(text, _C0)
    domain = _to_ascii(unescape(text.encode()).decode("utf-8", "replace"))
    if not domain or not _FORBIDDEN_DOMAIN.isdisjoint(domain):
        raise InvalidUrl(text)
    labels = domain.rstrip(".").split(".") if domain != "." else [""]
    return _ipv4(domain.removesuffix(".")) if _is_number(labels[-1]) else domain


def _to_ascii(domain: str) -> str:
    if domain.isascii() and "xn--" not in domain.lower():
        return domain.lower()
    # Only for names outside ASCII: importing the tables costs milliseconds.
    import idna

    try:
        mapped = idna.uts46_remap(domain, std3_rules=False, transitional=False)
        return ".".join(_label_to_ascii(label) for label in mapped.split("."))
    except (idna.IDNAError, UnicodeError):
        raise InvalidUrl(domain) from None


def _label_to_ascii(label: str) -> str:
    import idna

    if label.isascii():
        return label
    try:
        return idna.alabel(label).decode("ascii")
    except idna.InvalidCodepoint:
        # The standard's rules are wider than IDNA 2008's: emoji are allowed.
        return f"xn--{label.encode('punycode').decode('ascii')}"


def _ipv6(text: str) -> str:
    address = text[1:-1]
    if not text.endswith("]") or "%" in address:
        raise InvalidUrl(text)
    try:
        packed = IPv6Address(address).packed
    except ValueError:
        raise InvalidUrl(text) from None
    groups = [f"{high << 8 | low:x}" for high, low in zip(packed[::2], packed[1::2], strict=True)]
    return f"[{_compress(groups)}]"


def _compress(groups: list[str]) -> str:
    text = ":".join(groups)
    runs = re.findall(r"(?:(?<=:)|^)0(?::0)+(?=:|$)", text)
    if not runs:
        return text
    before, _, after = text.partition(max(runs, key=len))
    return f"{before.rstrip(':')}::{after.lstrip(':')}"


def _is_number(label: str) -> bool:
    if label.isdigit() and label.isascii():
        return True
    return re.fullmatch(r"0[xX][0-9A-Fa-f]*", label) is not None


def _ipv4(domain: str) -> str:
    labels = domain.split(".")
    if len(labels) > 4:
        raise InvalidUrl(domain)
    numbers = [_ipv4_number(label, domain) for label in labels]
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(numbers)):
        raise InvalidUrl(domain)
    address = last + sum(number << (24 - 8 * place) for place, number in enumerate(leading))
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _ipv4_number(label: str, domain: str) -> int:
    lower = label.lower()
    try:
        if lower.startswith("0x"):
            return int(lower[2:] or "0", 16)
        return int(lower, 8 if len(lower) > 1 and lower.startswith("0") else 10)
    except ValueError:
        raise InvalidUrl(domain) from None


_ONE_DOT: Final = frozenset({".", "%2e"})
_TWO_DOTS: Final = frozenset({"..", ".%2e", "%2e.", "%2e%2e"})


def segments(path: str, *, special: bool, start: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Resolve the dots of `path`, which comes without its first slash, below `start`."""
    if special:
        path = path.replace("\\", "/")
    result = list(start)
    pieces = path.split("/")
    for index, piece in enumerate(pieces):
        last = index == len(pieces) - 1
        lower = piece.lower()
        if lower in _TWO_DOTS:
            if result:
                result.pop()
            if last:
                result.append("")
        elif lower in _ONE_DOT:
            if last:
                result.append("")
        else:
            result.append(escape(piece, _PATH))
    return tuple(result)


def escape_query(text: str, scheme: str) -> str:
    """Escape a query as URLs of that scheme do."""
    return escape(text, _SPECIAL_QUERY if scheme in DEFAULT_PORTS else _QUERY)


def escape_fragment(text: str) -> str:
    """Escape a fragment."""
    return escape(text, _FRAGMENT)


def escape(text: str, unsafe: frozenset[int]) -> str:
    """Percent-encode the UTF-8 bytes of `text` that are in `unsafe`."""
    data = utf8(text)
    if unsafe.isdisjoint(data):
        return text
    return "".join(f"%{byte:02X}" if byte in unsafe else chr(byte) for byte in data)


_ESCAPED: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def unescape(data: bytes) -> bytes:
    """Decode every well-formed percent-encoded byte."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), data) if b"%" in data else data


def _blob_origin(path: str) -> str:
    try:
        inner = parse(path)
    except InvalidUrl:
        return "null"
    return inner.origin if inner.scheme in ("http", "https") else "null"
