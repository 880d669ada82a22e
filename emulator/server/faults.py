"""Control pages of faults, for scripts: what is planned, what fired, what was met; and arming.

GET    /cdn-cgi/emulator/faults        planned faults, the latest that fired, sites that were met
POST   /cdn-cgi/emulator/faults        {"add": "batch.emails#1:lose_ack"}: plans faults
DELETE /cdn-cgi/emulator/faults        takes all faults out of the plan
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from emulator.errors import PlanError
from emulator.faults import actions_at
from emulator.server.arming import arm, fired, planned
from emulator.server.bodies import Json, json_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the pages, by the path behind the prefix of control pages."""

    async def faults(request: Request) -> Response:
        if request.method == "POST":
            return Json({"armed": await arm(desk, _asked(await json_of(request)))})
        if request.method == "DELETE":
            await desk.act("clear", desk.emulator.faults.clear)
        return Json(_shown(desk))

    return [Route("/faults", faults, methods=["GET", "POST", "DELETE"])]


def _asked(given: Any) -> Any:
    asked = given.get("add") if isinstance(given, dict) else None
    if isinstance(asked, str) or (isinstance(asked, list) and asked):
        return asked
    raise PlanError('give {"add": "batch.emails#1:lose_ack"}, or a list of such texts')


def _shown(desk: Desk) -> dict[str, Any]:
    faults, mask = desk.emulator.faults, desk.platform.kernel.trace.masker
    return {
        "plan": [
            {"fault": text, "fired": why is None, **({} if why is None else {"why": why})}
            for text, why in planned(desk)
        ],
        "fired": fired(desk),
        "sites": [
            {
                "site": mask(site),
                "met": met,
                "actions": [action.name for action in actions_at(site)],
            }
            for site, met in faults.counts.items()
        ],
    }
