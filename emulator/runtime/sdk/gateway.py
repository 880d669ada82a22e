"""`workers.gateway`: the options that the ASGI and the WSGI bridge share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

EncodeBody = Literal["automatic", "manual"]


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """Options of a bridge; `encode_body` is that of JavaScript's `Response`."""

    encode_body: EncodeBody = "automatic"

    def __post_init__(self) -> None:
        """Raise `ValueError` for a mode there is not."""
        modes = get_args(EncodeBody)
        if self.encode_body not in modes:
            raise ValueError(f"encode_body must be one of {modes}, got {self.encode_body!r}")

    def response_init(self) -> dict[str, Any]:
        """Return what they add to the options of `js.Response.new`."""
        return {} if self.encode_body == "automatic" else {"encodeBody": self.encode_body}


BaseOptions.__module__ = "workers.gateway.options"

__all__ = ["BaseOptions", "EncodeBody"]
