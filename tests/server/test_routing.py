"""Which Worker a request is for (Workers documentation, "Routes": matching behavior)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.config import load
from emulator.server.routing import Routing, UnknownWorker


class _Main:
    pass


def routing(**routes: Any) -> Routing:
    configs = [
        {"name": name, "main": _Main, **({"routes": given} if given else {})}
        for name, given in routes.items()
    ]
    return Routing(load(configs).workers)


@pytest.mark.parametrize(
    ("host", "path", "worker"),
    [
        ("example.com", "/", "web"),
        ("example.com", "/api/users", "api"),
        ("EXAMPLE.com:8787", "/api/users", "api"),
        ("example.com", "/api", "web"),
        ("a.example.com", "/", "sub"),
        ("example.org", "/anything", "web"),
        ("shop.example.com", "/x", "shop"),
        ("localhost:8787", "/api/users", "api"),
        ("localhost:8787", "/users", "web"),
        ("127.0.0.1:8787", "/exact", "api"),
        ("127.0.0.1:8787", "/exact/more", "web"),
        ("jobs.localhost:8787", "/api/users", "jobs"),
    ],
)
def test_the_most_specific_route_takes_a_request(host: str, path: str, worker: str) -> None:
    routes = routing(
        web=["example.com/*"],
        api=["https://example.com/api/*", {"pattern": "example.com/exact", "zone_name": "x"}],
        sub=["*.example.com/*"],
        shop=[{"pattern": "shop.example.com", "custom_domain": True}],
        jobs=None,
    )
    assert routes.worker(host, path, {}) == worker


def test_a_longer_path_wins_on_this_machine_too() -> None:
    routes = routing(one=["long.example.com/a/*"], two=["b.com/a/b/*"])
    assert routes.worker("localhost", "/a/b/c", {}) == "two"
    assert routes.worker("localhost", "/a/c", {}) == "one"


def test_a_single_route_is_read_too() -> None:
    config: Any = [{"name": "a", "main": _Main}, {"name": "b", "main": _Main, "route": "b.com/*"}]
    routes = Routing(load(config).workers)
    assert routes.worker("b.com", "/", {}) == "b"


def test_a_header_names_the_worker() -> None:
    routes = routing(web=["example.com/*"], jobs=None)
    assert routes.worker("example.com", "/", {"emulator-worker": "jobs"}) == "jobs"


@pytest.mark.parametrize("given", [("localhost", "nope"), ("nope.localhost", None)])
def test_an_unknown_worker_is_refused_with_the_names_there_are(given: Any) -> None:
    host, header = given
    headers = {} if header is None else {"emulator-worker": header}
    with pytest.raises(UnknownWorker, match=r"'nope'; there are: web, jobs"):
        routing(web=None, jobs=None).worker(host, "/", headers)
