"""`kill -9` at any moment loses nothing that was accepted; `make soak` runs many more rounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from crash_campaign import Campaign, Ledger

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "4"))
SEED = int(os.environ.get("EMULATOR_CRASH_SEED", "0"))


@pytest.mark.timeout(60 + 30 * ROUNDS)
def test_nothing_that_was_accepted_is_lost(tmp_path: Path) -> None:
    ledger = Ledger()
    campaign = Campaign(tmp_path / "project", SEED, ledger)
    campaign.prepare()
    try:
        for number in range(ROUNDS):
            campaign.round(number)
        campaign.finish()
    finally:
        ledger.close()
    told = {what: len(names) for what, names in campaign.accepted.items()}
    again = {kind: campaign.again(kind) for kind in ("delivered", "relayed", "steps")}
    print(
        f"seed {SEED}: {ROUNDS} rounds, {campaign.kills} kills; accepted {told}, "
        f"{len(campaign.messages)} messages, {len(campaign.counts)} counts; "
        f"{campaign.saved} steps saved; done again, as production may: {again}"
    )
    assert campaign.accepted["send"], "the campaign sent nothing, so it proved nothing"
    assert campaign.accepted["flow"]
