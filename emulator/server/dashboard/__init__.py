"""The dashboard: a page under `/cdn-cgi/emulator/` that shows what the emulator has and does.

The page is one document (`page.py`) whose script asks the endpoints of the views for JSON. A view
is a module of this package with `routes(desk)`, made of `reads` (GET) and `acts` (POST) of
`endpoints.py`; what it returns is shown as text and never as markup. `live.py` tells the page when
there is something new.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk

VIEWS: Final = (
    *(
        "page",
        "live",
        "overview",
        "clock",
        "queues",
        "queue_setup",
        "workflows",
        "objects",
        "kv",
        "d1",
        "r2",
    ),
    *("activity", "findings", "faults", "trace"),
)


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the page and the endpoints of all its views."""
    modules = (import_module(f"{__name__}.{name}") for name in VIEWS)
    return [route for module in modules for route in module.routes(desk)]
