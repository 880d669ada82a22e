"""A Worker to run in: what `emulator.runtime.host.current()` returns to the tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.runtime import host as runtime_host
from emulator.runtime.host import WebRequest, WebResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

MODERN = frozenset(
    {
        "enable_python_external_sdk",
        "fetch_iterable_type_support",
        "python_request_headers_preserve_commas",
        "python_workers_20250116",
        "upper_case_all_http_methods",
    }
)


class FakeHost:
    """Answers every fetch with `answer`, or raises it, and remembers the requests."""

    def __init__(self) -> None:
        self.flags = MODERN
        self.profile = "production"
        self.env: dict[str, Any] = {}
        self.sent: list[WebRequest] = []
        self.found: list[tuple[str, str]] = []
        self.answer: Any = WebResponse(200, "OK", (("content-type", "text/plain"),), b"hello")

    async def fetch(self, request: WebRequest) -> WebResponse:
        self.sent.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        if callable(self.answer):
            return await self.answer(request)
        return self.answer

    def wait_until(self, work: Any) -> None:
        raise NotImplementedError

    def log(self, level: str, text: str, arguments: Any = None) -> None:
        raise NotImplementedError

    def track(self, call: Any) -> None:
        return None

    def find(self, code: str, message: str, location: Any) -> None:
        self.found.append((code, message))

    def missing_binding(self, name: str) -> str:
        return ""

    def forbid_in_global_scope(self) -> None:
        return None

    def urandom(self, size: int) -> bytes:
        return bytes(range(size))


@pytest.fixture(autouse=True)
def host() -> Iterator[FakeHost]:
    fake = FakeHost()
    token = runtime_host._current.set(fake)
    yield fake
    runtime_host._current.reset(token)
