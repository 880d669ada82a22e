"""The same story for three books: two of them bear every fault there is, one does not."""

import asyncio
from pathlib import Path

import pytest

from emulator import sweep

CONFIG = Path(__file__).parent.parent / "wrangler.jsonc"
PAYMENT = {"key": "p-1", "amount": 30}


async def announce_twice(emulator, book):
    for _ in range(2):  # the bank repeats itself
        response = await emulator.fetch(f"/{book}", method="POST", json=PAYMENT)
        assert response.status_code == 202
        await emulator.settle()
    await emulator.advance("2 minutes")  # by now everybody sees what was written
    assert (await emulator.fetch(f"/{book}")).json() == {"balance": 30}


@pytest.mark.parametrize("book", ["object", "d1", "kv"])
async def test_each_book_is_right_when_nothing_goes_wrong(emulator, book):
    await announce_twice(emulator, book)


@pytest.mark.fault_sweep
@pytest.mark.parametrize("book", ["object", "d1"])
async def test_payment_is_added_once_whatever_happens(emulator, book):
    await announce_twice(emulator, book)


def test_sweep_finds_what_is_wrong_with_the_book_in_kv():
    async def scenario(emulator):
        await announce_twice(emulator, "kv")

    report = asyncio.run(sweep(scenario, CONFIG))
    plans = [str(fault) for failure in report.failures for fault in failure.plan]

    assert "kv.KV.get#3:stale" in plans  # the second message does not see the key yet
    assert "kv.KV.put#2:crash_before" in plans  # the power goes between the two writes
    assert all(plan.startswith("kv.KV.") for plan in plans)


@pytest.mark.emulator(faults="kv.KV.get#3:stale")
async def test_book_in_kv_adds_the_payment_twice(emulator):
    with pytest.raises(AssertionError, match="60"):
        await announce_twice(emulator, "kv")
