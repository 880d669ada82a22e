"""The `statusText` of a response that was given none: the runtime's, by workerd's http.c++."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

# Where Python's phrase is another one, or changed in 3.13.
_OWN: Final = {
    306: "Redirection",
    413: "Payload Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    418: "I'm a teapot",
    422: "Unprocessable Entity",
    425: "Client Error",
}
_KNOWN: Final = {int(status): status.phrase for status in HTTPStatus} | _OWN
# By the hundreds.
_CLASSES: Final = {2: "Successful", 3: "Redirection", 4: "Client Error", 5: "Server Error"}


def default_status_text(status: int) -> str:
    """Return the reason phrase for a status, "" for one that no response has."""
    return _KNOWN.get(status) or _CLASSES.get(status // 100, "")
