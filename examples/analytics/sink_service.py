"""The outside world of the tests: a sink that keeps totals."""

import json
from collections import Counter, defaultdict

import httpx


class Sink:
    """Stands behind two mocked routes, one for each way to add to the totals.

    `down` makes it answer 503.
    """

    def __init__(self):
        self.down = False
        self.flushes = []  # the groups of each request it took
        self._sets = defaultdict(set)
        self._sums = Counter()
        self._keys = set()

    @property
    def totals(self):
        """Views by hour and page."""
        sizes = Counter({place: len(ids) for place, ids in self._sets.items()})
        return dict(sizes + self._sums)

    def add_ids(self, request):
        """Take ids: a database would have them as its primary key."""
        if self.down:
            return httpx.Response(503)
        groups = self._take(request)
        for group in groups:
            self._sets[group["hour"], group["page"]].update(group["ids"])
        return httpx.Response(204)

    def add_sums(self, request):
        """Take numbers, once for all requests with one `Idempotency-Key`."""
        if self.down:
            return httpx.Response(503)
        groups = self._take(request)
        key = request.headers["Idempotency-Key"]
        if key not in self._keys:
            self._keys.add(key)
            self._sums.update({(group["hour"], group["page"]): group["views"] for group in groups})
        return httpx.Response(204)

    def _take(self, request):
        groups = json.loads(request.content)
        self.flushes.append(groups)
        return groups
