"""The JavaScript class `URL`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from emulator.runtime.web import idl
from emulator.runtime.web.url_parameters import URLSearchParams, parse_query
from emulator.runtime.web.url_parser import (
    USERINFO,
    InvalidUrl,
    Parts,
    escape,
    escape_fragment,
    escape_query,
    parse,
    parse_host,
    parse_port,
    segments,
)
from emulator.values import UNDEFINED, HostObject, JsException


class URL(HostObject):
    """A parsed URL; its parts can be set, and ill-formed ones are ignored."""

    js_class = "URL"
    js_members = frozenset(
        [
            "hash",
            "host",
            "hostname",
            "href",
            "origin",
            "password",
            "pathname",
            "port",
            "protocol",
            "search",
            "searchParams",
            "toJSON",
            "toString",
            "username",
        ]
    )
    js_statics: ClassVar[frozenset[str]] = frozenset({"canParse", "parse"})

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._parameters: URLSearchParams | None = None

    @classmethod
    def js_new(cls, text: object = UNDEFINED, base: object = UNDEFINED) -> URL:
        """Do `new URL(text, base)`."""
        found = cls.parse(text, base)
        if found is None:
            raise JsException("TypeError", "Invalid URL string.")
        return found

    @classmethod
    def parse(cls, text: object = UNDEFINED, base: object = UNDEFINED) -> URL | None:
        """Do `URL.parse(text, base)`: None (null) for an invalid URL."""
        try:
            below = None if idl.missing(base) else parse(idl.string(base))
            return cls(parse(idl.string(text), below))
        except InvalidUrl:
            return None

    @classmethod
    def canParse(cls, text: object = UNDEFINED, base: object = UNDEFINED) -> bool:
        """Do `URL.canParse(text, base)`."""
        return cls.parse(text, base) is not None

    def toString(self) -> str:
        """Return the whole URL."""
        return self._parts.href()

    toJSON = toString

    def __str__(self) -> str:
        return self._parts.href()

    @property
    def origin(self) -> str:
        """Return scheme, host and port; "null" where there is no such thing."""
        return self._parts.origin

    @property
    def href(self) -> str:
        """Return the whole URL."""
        return self._parts.href()

    @href.setter
    def href(self, value: object) -> None:
        try:
            self._parts = parse(idl.string(value))
        except InvalidUrl:
            raise JsException(
                "TypeError",
                "Failed to set the 'href' property on 'URL': "
                "the provided value is not of type 'valid URL string'.",
            ) from None
        self._reload()

    @property
    def protocol(self) -> str:
        """Return the scheme with its colon."""
        return f"{self._parts.scheme}:"

    @protocol.setter
    def protocol(self, value: object) -> None:
        scheme = idl.string(value).partition(":")[0].lower()
        try:
            changed = parse(f"{scheme}://x")
        except InvalidUrl:
            return
        if changed.special == self._parts.special and self._parts.host:
            port = parse_port("" if self._parts.port is None else str(self._parts.port), scheme)
            self._parts = replace(self._parts, scheme=changed.scheme, port=port)

    @property
    def username(self) -> str:
        """Return the user's name, escaped."""
        return self._parts.username

    @username.setter
    def username(self, value: object) -> None:
        if self._parts.host:
            self._parts = replace(self._parts, username=escape(idl.string(value), USERINFO))

    @property
    def password(self) -> str:
        """Return the password, escaped."""
        return self._parts.password

    @password.setter
    def password(self, value: object) -> None:
        if self._parts.host:
            self._parts = replace(self._parts, password=escape(idl.string(value), USERINFO))

    @property
    def host(self) -> str:
        """Return the host, with the port unless it is the scheme's own."""
        return self._parts.host_and_port

    @host.setter
    def host(self, value: object) -> None:
        name, colon, port = _cut(idl.string(value)).rpartition(":")
        if not colon or port.endswith("]"):
            name, port = _cut(idl.string(value)), ""
        self._set_host(name)
        if port:
            self.port = port

    @property
    def hostname(self) -> str:
        """Return the host without the port."""
        return self._parts.host or ""

    @hostname.setter
    def hostname(self, value: object) -> None:
        text = _cut(idl.string(value))
        if ":" not in text or text.startswith("["):
            self._set_host(text)

    @property
    def port(self) -> str:
        """Return the port, "" for the scheme's own."""
        return "" if self._parts.port is None else str(self._parts.port)

    @port.setter
    def port(self, value: object) -> None:
        text = idl.string(value)
        digits = text[: len(text) - len(text.lstrip("0123456789"))]
        if not self._parts.host or (text and not digits):
            return
        try:
            self._parts = replace(self._parts, port=parse_port(digits, self._parts.scheme))
        except InvalidUrl:
            return

    @property
    def pathname(self) -> str:
        """Return the path, escaped."""
        return self._parts.pathname

    @pathname.setter
    def pathname(self, value: object) -> None:
        if isinstance(self._parts.path, str):
            return
        text = idl.string(value)
        slashes = ("/", "\\") if self._parts.special else ("/",)
        path = segments(text[text.startswith(slashes) :], special=self._parts.special)
        self._parts = replace(self._parts, path=tuple(piece.replace("#", "%23") for piece in path))

    @property
    def search(self) -> str:
        """Return the query with its "?", "" if it is empty."""
        return f"?{self._parts.query}" if self._parts.query else ""

    @search.setter
    def search(self, value: object) -> None:
        text = idl.string(value)
        query = escape_query(text.removeprefix("?"), self._parts.scheme) if text else None
        self._parts = replace(self._parts, query=query)
        self._reload()

    @property
    def hash(self) -> str:
        """Return the fragment with its "#", "" if it is empty."""
        return f"#{self._parts.fragment}" if self._parts.fragment else ""

    @hash.setter
    def hash(self, value: object) -> None:
        text = idl.string(value)
        fragment = escape_fragment(text.removeprefix("#")) if text else None
        self._parts = replace(self._parts, fragment=fragment)

    @property
    def searchParams(self) -> URLSearchParams:
        """Return the parameters of the query; changing them changes the URL."""
        if self._parameters is None:
            pairs = parse_query(self._parts.query or "")
            self._parameters = URLSearchParams(pairs, changed=self._take_parameters)
        return self._parameters

    def _set_host(self, text: str) -> None:
        if isinstance(self._parts.path, str):
            return
        try:
            host = parse_host(text, special=self._parts.special)
        except InvalidUrl:
            return
        self._parts = replace(self._parts, host=host)

    def _take_parameters(self) -> None:
        if self._parameters is not None:
            query = self._parameters.toString()
            self._parts = replace(self._parts, query=query or None)

    def _reload(self) -> None:
        if self._parameters is not None:
            self._parameters.pairs = parse_query(self._parts.query or "")


_HOST_ENDS: Final = "/?#\\"


def _cut(text: str) -> str:
    end = next((index for index, char in enumerate(text) if char in _HOST_ENDS), len(text))
    return text[:end]
