"""An outbound request at its fault site, `fetch.<METHOD>.<host/path>`: what strikes it, and how.

The same for every API that sends requests; what the sender sees of a fault are httpx's errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from emulator.bindings.sent import SentRequest
from emulator.faults.sites import site_name
from emulator.trace import http_body

if TYPE_CHECKING:
    from emulator.faults import Fault
    from emulator.invocation import Invocation

# Seconds for which an answer that never comes is waited for (api.md 4, `timeout`).
_NO_ANSWER = 100.0
# The header that says which requests are one effect; the trace tells it.
KEY = "idempotency-key"


class PowerCutHere(Exception):
    """The sender's isolate has just lost power: it must not hear of its request any more."""


class OutboundSite:
    """One request of an invocation, from its sending to its answer."""

    def __init__(self, invocation: Invocation, request: httpx.Request, *, repeats: bool) -> None:
        self._invocation = invocation
        self._repeats = repeats
        self._request = request
        self._url = str(request.url)
        self._site = site_name("fetch", request.method, target_of(self._url))
        self._sent: SentRequest | None = None
        invocation.kernel.trace.masker.meet(request.headers.multi_items())
        self._fault = self._meet()
        self._action = self._fault.action if self._fault is not None else ""

    def before(self) -> httpx.Response | None:
        """What strikes before the request leaves; its answer, if it is not to leave at all.

        Raises httpx's errors, and `PowerCutHere`. A request that is to leave must wait until what
        it rests on is durable: `Pump.until_written`, or `Kernel.commit`.
        """
        if self._action == "crash_before":
            self._cut_power()
        if self._action == "fail":
            raise httpx.ConnectError(self._say("was not sent"), request=self._request)
        if self._action == "status":
            return self._answer_with(self._argument or 503)
        kernel = self._invocation.kernel
        facts = {"method": self._request.method, "url": self._url}
        key = self._request.headers.get(KEY)
        if key is not None:
            facts["key"] = key
        invocation = self._invocation
        content = http_body(_content(self._request))
        kernel.record("request_out", invocation.subject, **facts, **content)
        self._sent = SentRequest(self._site, invocation.sender, invocation.subject, self._request)
        kernel.outbound.sent.append(self._sent)
        return None

    def answered(self, response: httpx.Response) -> httpx.Response:
        """What strikes when the outside has answered: the answer the sender gets instead."""
        kernel, subject = self._invocation.kernel, self._invocation.subject
        kernel.trace.masker.meet(response.headers.multi_items())
        kernel.record("response_in", subject, url=self._url, status=response.status_code)
        self.heard(response)
        self.failed()
        if self._action == "lose_reply" and self._argument is not None:
            return self._answer_with(self._argument)
        if self._action == "lose_reply":
            raise httpx.ReadError(self._say("got no answer"), request=self._request)
        return response

    def heard(self, response: httpx.Response) -> None:
        """The outside has answered, whether the sender is told or not."""
        if self._sent is not None:
            self._sent.status = response.status_code

    def failed(self) -> None:
        """What strikes when the request has left, whatever became of it."""
        if self._action == "crash_after":
            self._cut_power()

    @property
    def answer_never_comes(self) -> bool:
        """Whether the sender is to wait in vain, `patience` seconds."""
        return self._action == "timeout"

    @property
    def patience(self) -> float:
        """After how many seconds the sender gives up: its own time-out, if it has a shorter one."""
        own = self._request.extensions.get("timeout", {}).get("read")
        return _NO_ANSWER if own is None else min(own, _NO_ANSWER)

    def out_of_patience(self) -> httpx.ReadTimeout:
        """The error of a sender that waited in vain."""
        text = f"got no answer in {self.patience:g} s"
        return httpx.ReadTimeout(self._say(text), request=self._request)

    @property
    def _argument(self) -> int | None:
        return self._fault.argument if self._fault is not None else None

    def _meet(self) -> Fault | None:
        invocation = self._invocation
        if invocation.is_test:
            return None
        faults = invocation.kernel.faults.meet(
            self._site,
            in_request=invocation.in_request and not invocation.main_done,
            retried=self._repeats,
        )
        if not faults:
            return None
        invocation.struck = True
        return faults[0]

    def _cut_power(self) -> None:
        if not self._invocation.dead:
            # Else another crash was faster, and the Worker may live again.
            self._invocation.cut_power()
        raise PowerCutHere

    def _answer_with(self, status: int) -> httpx.Response:
        return httpx.Response(status, request=self._request)

    def _say(self, what: str) -> str:
        return f"{self._request.method} {self._url} {what}, by the fault {self._fault}"


def _content(request: httpx.Request) -> bytes | None:
    """The body, if it is not streamed."""
    try:
        return request.content
    except httpx.StreamError:
        return None


def target_of(url: str) -> str:
    """Host and path of a URL, as fetch sites name it.

    >>> target_of("https://user@mail.example:8443/send?to=a")
    'mail.example:8443/send'
    """
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path
