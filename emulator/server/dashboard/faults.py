"""The view of faults: sites that were met, what is planned, what fired; and arming more.

Here is also what strikes all Workers at once: a power cut, an eviction, a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.faults import KINDS, actions_at
from emulator.server.arming import arm, fired, planned
from emulator.server.dashboard.endpoints import Wrong, acts, reads
from emulator.server.dashboard.shown import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of faults."""
    return [
        reads(desk, "/faults", _faults),
        acts(desk, "/faults/arm", _arm),
        acts(desk, "/faults/clear", _clear),
        acts(desk, "/workers/strike", _strike),
    ]


def _faults(desk: Desk, asked: Asked) -> Answer:
    faults = desk.emulator.faults
    first, rows = asked.part()
    words = asked.text("site", "")
    sites = [(site, met) for site, met in faults.counts.items() if words in site]
    mask = desk.platform.kernel.trace.masker
    return {
        "total": len(sites),
        "sites": [_site(site, met, mask) for site, met in sites[first : first + rows]],
        "plan": [{"fault": text, "why": why} for text, why in planned(desk)],
        "fired": fired(desk)[::-1],
        "forms": [{"form": kind.form, "occurrence": kind.occurrence} for kind in KINDS.values()],
    }


def _site(site: str, met: int, mask: Masker) -> Answer:
    return {
        "site": site,  # what is armed there
        "label": shortened(mask(site)),
        "met": met,
        "actions": [
            {
                "name": action.name,
                "class": action.fault_class,
                "takes": action.takes.value,
                "needs": "" if action.takes.optional else action.takes.value,
            }
            for action in actions_at(site)
        ],
    }


async def _arm(desk: Desk, asked: Asked) -> Answer:
    """Plan faults: a whole plan as text, or a site's next occurrence and an action."""
    faults, plan = desk.emulator.faults, asked.text("plan", "")
    if not plan.strip():
        site, action = asked.text("site"), asked.text("action")
        occurrence = asked.number("occurrence", 0) or faults.counts.get(site, 0) + 1
        argument = asked.text("argument", "").strip()
        plan = f"{site}#{occurrence}:{action}{f'({argument})' if argument else ''}"
    return {"armed": await arm(desk, plan)}


async def _clear(desk: Desk, asked: Asked) -> Answer:
    await desk.act("clear", desk.emulator.faults.clear)
    return {}


async def _strike(desk: Desk, asked: Asked) -> Answer:
    what = asked.text("what")
    emulator = desk.emulator
    strikes = {"crash": emulator.crash, "evict": emulator.evict, "restart": emulator.restart}
    if what not in strikes:
        raise Wrong(f"what is {what!r}; it may be {', '.join(strikes)}")
    await strikes[what]()
    return {}
