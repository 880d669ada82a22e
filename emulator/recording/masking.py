"""Secrets in a recording: masked as everywhere, and filled in again when it is repeated.

What is written as `[secret NAME]` is told by `emulator.secrets`. A recording is repeated with the
values that the Worker's variables have *then*; a name that no variable has stays as it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator.config import Settings

_MASKED: Final = re.compile(r"\[secret ([^\[\]]+)\]")
_MASKED_BYTES: Final = re.compile(rb"\[secret ([^\[\]]+)\]")


def has_secret(text: str) -> bool:
    """Whether something in a text is masked."""
    return _MASKED.search(text) is not None


def secrets_in(text: str) -> list[str]:
    """Return the names that stand for something masked in a text, in order."""
    return _MASKED.findall(text)


class Filler:
    """Puts the present values of variables where a recording has their names."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    @classmethod
    def of(cls, settings: Settings) -> Filler:
        """Take the variables of all Workers; of two with one name the first Worker's."""
        values: dict[str, str] = {}
        for worker in settings.workers:
            texts = {key: text for key, text in worker.vars.items() if isinstance(text, str)}
            values = {**texts, **worker.secrets, **values}
        return cls(values)

    def text(self, text: str) -> str:
        """Fill in the values as they are."""
        return self._fill(text, str)

    def url(self, text: str) -> str:
        """Fill in a URL, the values encoded."""
        return self._fill(text, lambda value: quote(value, safe=""))

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Fill in headers; without those whose very name stays a secret, which can be none."""
        filled = [(self.text(name).lower(), self.text(value)) for name, value in pairs]
        return [pair for pair in filled if not has_secret(pair[0])]

    def body(self, data: bytes, content_type: str) -> bytes:
        """Fill in a body, the values escaped as its content type needs it."""
        if b"[secret " not in data:
            return data
        escape: Callable[[str], str] = str
        if "json" in content_type:
            escape = _in_json
        elif "x-www-form-urlencoded" in content_type:
            escape = quote_plus
        values = self._values

        def fill(match: re.Match[bytes]) -> bytes:
            value = values.get(match[1].decode("utf-8", "replace"))
            return match[0] if value is None else escape(value).encode()

        return _MASKED_BYTES.sub(fill, data)

    def octets(self, data: bytes) -> bytes:
        """Fill in bytes of no known kind."""
        return self.body(data, "")

    def _fill(self, text: str, escape: Callable[[str], str]) -> str:
        def fill(match: re.Match[str]) -> str:
            value = self._values.get(match[1])
            return match[0] if value is None else escape(value)

        return _MASKED.sub(fill, text)

    def left(self, texts: Iterable[str]) -> list[str]:
        """Return the names in these texts that no variable has, each once."""
        names: dict[str, Any] = {}
        for text in texts:
            names |= dict.fromkeys(secrets_in(text))
        return [name for name in names if name not in self._values]


def _in_json(value: str) -> str:
    return json.dumps(value)[1:-1]
