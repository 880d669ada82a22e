"""What tests of Workers need again and again: an outside service that remembers.

>>> import httpx
>>> ledger = Ledger()
>>> request = httpx.Request("POST", "https://pay.example", headers={"Idempotency-Key": "7"})
>>> [ledger(request).status_code, ledger(request).status_code]
[200, 200]
>>> (ledger.count, ledger.keys, len(ledger.requests))
(1, ['7'], 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import httpx

from emulator.bindings.outbound_site import KEY

By: TypeAlias = str | Callable[[httpx.Request], Any]


class Effect(NamedTuple):
    """Something that the service did once: its key (None if the request had none), and for what."""

    key: Any
    request: httpx.Request


class Ledger:
    """An outside service behind a respx route, which does a thing once for each key.

    `respx_mock.post("https://pay.example/charges").mock(side_effect=ledger)`. A request whose key
    is known gets the first answer again and has no effect; one without a key always has one. `by`
    names the header with the key, or is a function of the request. `answer` is what a new effect is
    answered with: a status, a response, data for a JSON body, or a function of the request that
    gives one of these. An answer of 400 or more, or an exception, is no effect and is not kept.
    """

    def __init__(self, answer: Any = 200, *, by: By = KEY) -> None:
        self._answer = answer
        self._by = by
        self._answers: dict[Any, httpx.Response] = {}
        self.requests: list[httpx.Request] = []
        """All requests, in the order they came."""
        self.effects: list[Effect] = []
        """What was done, in order."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request; respx calls this."""
        self.requests.append(request)
        key = self._by(request) if callable(self._by) else request.headers.get(self._by)
        known = None if key is None else self._answers.get(key)
        if known is not None:
            return _copy(known)
        response = self._respond(request)
        if response.status_code < 400:
            self.effects.append(Effect(key, request))
            if key is not None:
                self._answers[key] = _copy(response)
        return response

    @property
    def keys(self) -> list[Any]:
        """The key of each effect, in order."""
        return [effect.key for effect in self.effects]

    @property
    def count(self) -> int:
        """How many effects there were."""
        return len(self.effects)

    def __repr__(self) -> str:
        return f"<Ledger: {len(self.effects)} effects of {len(self.requests)} requests>"

    def _respond(self, request: httpx.Request) -> httpx.Response:
        answer = self._answer(request) if callable(self._answer) else self._answer
        if isinstance(answer, httpx.Response):
            return _copy(answer)
        if isinstance(answer, int) and not isinstance(answer, bool):
            return httpx.Response(answer)
        return httpx.Response(200, json=answer)


def _copy(response: httpx.Response) -> httpx.Response:
    """An answer that can be given once more."""
    told = ("content-encoding", "content-length", "transfer-encoding")  # of what was read already
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in told]
    return httpx.Response(response.status_code, headers=headers, content=response.content)
