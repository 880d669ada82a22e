"""The outside world of the tests: a mail service that remembers what it was asked to send."""

import json

import httpx


class MailService:
    """Stands behind a mocked route, as `respx_mock.post(URL).mock(side_effect=service)`.

    Like a real one it sends one mail for all requests with one `Idempotency-Key`, and one for each
    request without a key. `down` makes it answer 503.
    """

    def __init__(self):
        self.down = False
        self.mails = []  # what people found in their inboxes
        self._keys = set()

    def __call__(self, request):
        if self.down:
            return httpx.Response(503)
        key = request.headers.get("Idempotency-Key")
        if key is None or key not in self._keys:
            self.mails.append(json.loads(request.content))
        if key is not None:
            self._keys.add(key)
        return httpx.Response(202)
