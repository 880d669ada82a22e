"""The outside world of the tests: subscribers, and the team's back office."""

import hashlib
import hmac
import json
from datetime import UTC, datetime

import httpx


def sign(key, text):
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


class Subscriber:
    """Gets webhooks at a mocked route, and handles one event for each `Webhook-Id`.

    It refuses what is not signed for it. `answer` is a response that it gives without handling
    anything.
    """

    def __init__(self, name, secret):
        self.id = name
        self.url = f"https://{name}.example/hook"
        self.answer = None
        self.calls = []  # when they came
        self.handled = []  # events
        self._key = sign(secret, name)
        self._seen = set()

    def __call__(self, request):
        self.calls.append(datetime.now(UTC))
        if self.answer is not None:
            return self.answer
        if not self._is_signed(request):
            return httpx.Response(401)
        webhook_id = request.headers["Webhook-Id"]
        if webhook_id not in self._seen:
            self._seen.add(webhook_id)
            self.handled.append(json.loads(request.content))
        return httpx.Response(204)

    def _is_signed(self, request):
        webhook_id, timestamp, signature = (
            request.headers[f"Webhook-{name}"] for name in ("Id", "Timestamp", "Signature")
        )
        age = datetime.now(UTC).timestamp() - int(timestamp)
        content = f"{webhook_id}.{timestamp}.{request.content.decode()}"
        return 0 <= age < 60 and signature == sign(self._key, content)


class BackOffice:
    """Keeps subscribers and dead letters; `down` makes it answer 503."""

    def __init__(self):
        self.down = False
        self.shelves = {"subscribers": {}, "parked": {}}

    @property
    def subscribers(self):
        return self.shelves["subscribers"]

    @property
    def parked(self):
        return self.shelves["parked"]

    def __call__(self, request):
        if self.down:
            return httpx.Response(503)
        _, shelf, *name = request.url.path.split("/")
        return getattr(self, request.method.lower())(self.shelves[shelf], request, *name)

    def get(self, shelf, request):
        return httpx.Response(200, json=[{"id": name, **item} for name, item in shelf.items()])

    def put(self, shelf, request, name):
        shelf[name] = json.loads(request.content)
        return httpx.Response(204)

    def delete(self, shelf, request, name):
        shelf.pop(name, None)
        return httpx.Response(204)
