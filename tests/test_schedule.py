"""The fault `schedule:N`: which of several ready invocations goes on first (api.md 4)."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker as worker_file
from workers import Response, WorkerEntrypoint

from emulator import Emulator, PlanError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

order: list[str] = []


class Worker(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        name = request.url[-1]
        for _ in range(3):
            order.append(name)
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        order.append(name)
        return Response(name)


async def served(*plan: str, requests: int = 3, **options: Any) -> tuple[str, Emulator]:
    """In which order the requests went on."""
    order.clear()
    async with Emulator({"main": Worker}, faults=plan, **options) as emulator:
        answers = await asyncio.gather(*(emulator.fetch(f"/{n}") for n in range(requests)))
        assert [answer.text for answer in answers] == [str(n) for n in range(requests)]
        assert emulator.findings == []
    return "".join(order), emulator


async def test_first_come_first_served_without_it() -> None:
    seen, emulator = await served()
    assert seen == "012" * 4
    (site,) = [site for site in emulator.faults.sites if site.name == "schedule"]
    assert site.actions == {"schedule": "platform"}
    assert [str(fault) for fault in site.faults()] == [f"schedule:{n}" for n in range(1, 9)]


async def test_seeds_give_other_orders_and_the_same_one_each_time() -> None:
    orders = {}
    for seed in range(1, 9):
        orders[seed], emulator = await served(f"schedule:{seed}")
        assert [str(fault) for fault in emulator.faults.fired] == [f"schedule:{seed}"]
        assert (await served(f"schedule:{seed}"))[0] == orders[seed]
        assert sorted(orders[seed]) == sorted("012" * 4)
    assert len(set(orders.values())) > 5
    # Each of the three is the first to go on at some seed, and the last one at some.
    assert {seen[0] for seen in orders.values()} == {seen[-1] for seen in orders.values()}
    assert {seen[0] for seen in orders.values()} == set("012")


async def test_it_has_nothing_to_do_with_the_seed_of_the_emulator() -> None:
    assert (await served("schedule:3", seed=1))[0] == (await served("schedule:3", seed=2))[0]


async def test_one_invocation_alone_has_no_order() -> None:
    """Its own tasks keep theirs; the planned fault never fires, and that is told."""
    async with Emulator({"main": Worker}, faults="schedule:1") as emulator:
        await emulator.fetch("/0")
        assert "schedule" not in [site.name for site in emulator.faults.sites]
        (finding,) = emulator.findings
    assert finding.code == "fault_not_fired"
    assert "no two invocations were ready at the same time" in finding.message


async def test_each_invocation_keeps_its_own_order(tmp_path: Path) -> None:
    source = """
    import asyncio
    from workers import Response, WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            seen = []

            async def part(name):
                for _ in range(2):
                    seen.append(name)
                    await asyncio.sleep(0)

            await asyncio.gather(*(part(name) for name in "abc"))
            return Response("".join(seen))
    """
    for seed in range(1, 9):
        async with Emulator(worker_file(tmp_path, source), faults=f"schedule:{seed}") as emulator:
            answers = await asyncio.gather(*(emulator.fetch("/") for _ in range(3)))
            assert {answer.text for answer in answers} == {"abcabc"}


def shop(sold: list[str]) -> type[WorkerEntrypoint]:
    """A shop with one piece left."""
    stock = [1]

    class Shop(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            name = request.url[-4:]
            if name == "slow":
                await asyncio.sleep(0)
            if stock:
                stock.pop()
                sold.append(name)
            return Response("ok")

    return Shop


async def test_it_finds_a_race() -> None:
    """Whoever is first must not be taken for granted."""
    outcomes = set()
    for seed in range(1, 9):
        sold: list[str] = []
        async with Emulator({"main": shop(sold)}, faults=f"schedule:{seed}") as emulator:
            await asyncio.gather(emulator.fetch("/slow"), emulator.fetch("/fast"))
        outcomes.update(sold)
    assert outcomes == {"slow", "fast"}


async def test_a_crash_and_a_schedule_go_together() -> None:
    for seed in range(1, 9):
        order.clear()
        plan = f"schedule:{seed}; request.GET./1#1:crash_after"
        async with Emulator({"main": Worker}, faults=plan) as emulator:
            results = await asyncio.gather(
                *(emulator.fetch(f"/{n}") for n in range(3)), return_exceptions=True
            )
            assert any(isinstance(result, Exception) for result in results)
            assert {fault.action for fault in emulator.faults.fired} == {"schedule", "crash_after"}


async def test_it_may_be_planned_and_cleared_on_the_way() -> None:
    async with Emulator({"main": Worker}) as emulator:

        async def go() -> str:
            order.clear()
            await asyncio.gather(*(emulator.fetch(f"/{n}") for n in range(3)))
            return "".join(order)

        assert await go() == "012" * 4
        emulator.faults.add("schedule:4")
        assert await go() != "012" * 4
        emulator.faults.clear()
        assert await go() == "012" * 4


async def test_two_schedules_are_one_too_many() -> None:
    for plan in itertools.permutations(("schedule:1", "schedule:2")):
        with pytest.raises(PlanError, match="a plan has one schedule"):
            Emulator({"main": Worker}, faults=plan)
