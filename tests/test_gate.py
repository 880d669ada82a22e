"""Input gates: turns, sections, and what waits for them (workerd, `io/io-gate.c++`)."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, simulate

from emulator.gate import MOST_SECTIONS, SECTION, InputGate, Section
from emulator.scope import SCOPE, Scope
from emulator.tasks import start

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Gated:
    """An object in a simulation: every event of it is a scope with the one gate."""

    def __init__(self, simulation: Simulation, log: list[str] | None = None) -> None:
        self._simulation = simulation
        self.log: list[str] = [] if log is None else log
        self.gate = InputGate(simulation.loop, lambda: self.log.append("|"))

    def scope(self) -> Scope:
        scope = Scope()
        scope.gate = self.gate
        return scope

    def event(self, coroutine: Coroutine[Any, Any, Any]) -> list[Any]:
        return self._simulation.start(coroutine, self.scope())

    def section(self, coroutine: Coroutine[Any, Any, None], scope: Scope) -> asyncio.Future[None]:
        """What `blockConcurrencyWhile` does with a gate."""
        loop = self._simulation.loop
        over: asyncio.Future[None] = loop.create_future()

        async def run(section: Section) -> None:
            await coroutine
            self.gate.leave(section)
            over.set_result(None)

        def begin(section: Section) -> None:
            context = Context()
            context.run(SCOPE.set, scope)
            context.run(SECTION.set, section)
            start(loop, run(section), scope, context, "a section")

        self.gate.enter(begin)
        return over


async def steps(log: list[str], name: str, count: int = 3) -> None:
    for number in range(count):
        log.append(f"{name}{number}")
        await asyncio.sleep(0)


async def later(log: list[str], name: str) -> None:
    log.append(f"{name} before")
    await asyncio.sleep(1)
    log.append(f"{name} after")


def run(test: Any) -> list[str]:
    async def main(simulation: Simulation) -> list[str]:
        gated = Gated(simulation)
        await test(gated, simulation)
        return gated.log

    return simulate(main)  # type: ignore[no-any-return]


def test_what_an_event_makes_ready_runs_before_any_other_event() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        gated.event(steps(gated.log, "a"))
        gated.event(steps(gated.log, "b"))
        await simulation.settle()

    assert run(test) == ["a0", "a1", "a2", "|", "b0", "b1", "b2", "|"]


def test_other_objects_and_other_code_have_turns_of_their_own() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        other = Gated(simulation, gated.log)
        gated.event(steps(gated.log, "a", 2))
        other.event(steps(gated.log, "b", 2))
        simulation.start(steps(gated.log, "free", 2))
        await simulation.settle()

    assert run(test) == ["a0", "a1", "|", "b0", "b1", "|", "free0", "free1"]


def test_a_timer_is_an_event_of_its_own() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        gated.event(later(gated.log, "a"))
        gated.event(later(gated.log, "b"))
        await simulation.settle()

    found = ["a before", "|", "b before", "|", "a after", "|", "b after", "|"]
    assert run(test) == found


def test_a_section_starts_when_the_turn_is_over_and_keeps_others_out() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def asks() -> None:
            over = gated.section(later(gated.log, "inside"), scope)
            gated.log.append("asked")
            await over
            gated.log.append("told")

        simulation.start(asks(), scope)
        gated.event(steps(gated.log, "b", 1))
        await simulation.settle()

    found = ["asked", "|", "inside before", "|", "inside after", "told", "|", "b0", "|"]
    assert run(test) == found


def test_sections_run_one_after_the_other() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def asks() -> None:
            first = gated.section(later(gated.log, "first"), scope)
            second = gated.section(later(gated.log, "second"), scope)
            await asyncio.gather(first, second)

        simulation.start(asks(), scope)
        await simulation.settle()

    found = run(test)
    assert [line for line in found if line != "|"] == [
        *("first before", "first after", "second before", "second after"),
    ]


def test_a_section_inside_a_section_keeps_the_outer_ones_events_out() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def outer() -> None:
            timer = asyncio.ensure_future(later(gated.log, "outer's timer"))
            await gated.section(inner(), scope)
            gated.log.append("outer goes on")
            await timer

        async def inner() -> None:
            gated.log.append("inner")
            await asyncio.sleep(5)
            gated.log.append("inner over")

        async def asks() -> None:
            await gated.section(outer(), scope)

        simulation.start(asks(), scope)
        gated.event(steps(gated.log, "kept out", 1))
        await simulation.settle()

    assert [line for line in run(test) if line != "|"] == [
        *("outer's timer before", "inner", "inner over", "outer goes on", "outer's timer after"),
        "kept out0",
    ]


def test_what_a_section_began_goes_on_after_it_with_the_others() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()
        left: list[asyncio.Task[None]] = []

        async def inside() -> None:
            left.append(asyncio.ensure_future(later(gated.log, "left behind")))
            await asyncio.sleep(0)

        async def asks() -> None:
            await gated.section(inside(), scope)

        simulation.start(asks(), scope)
        await simulation.settle()
        assert left[0].done()

    assert run(test)[-2:] == ["left behind after", "|"]


def test_sections_nest_only_so_deep() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def nest(depth: int) -> None:
            if depth < MOST_SECTIONS:
                await gated.section(nest(depth + 1), scope)
            else:
                gated.log.append(f"depth {depth}")
                with pytest.raises(OverflowError):
                    gated.gate.enter(lambda _: None)

        outcome = simulation.start(nest(0), scope)
        await simulation.settle()
        assert outcome == [None]

    assert f"depth {MOST_SECTIONS}" in run(test)


def test_what_waits_at_a_gate_that_is_closed_never_comes() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def asks() -> None:
            gated.section(never, scope)
            gated.gate.close()
            gated.log.append("closed")

        never = later(gated.log, "never")
        simulation.start(asks(), scope)
        await simulation.settle()
        never.close()

    assert run(test) == ["closed", "|"]


def test_a_turn_that_a_run_of_the_loop_cannot_finish_is_finished_in_the_next() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        gated.event(steps(gated.log, "a", 2))
        gated.event(steps(gated.log, "b", 1))
        await simulation.run_until(lambda: gated.log)
        assert gated.log == ["a0"]
        await simulation.settle()

    assert run(test) == ["a0", "a1", "|", "b0", "|"]


def test_what_is_killed_in_a_turn_does_not_go_on() -> None:
    async def test(gated: Gated, simulation: Simulation) -> None:
        scope = gated.scope()

        async def dies() -> None:
            asyncio.ensure_future(steps(gated.log, "never"))  # noqa: RUF006
            simulation.loop.kill(scope)
            gated.log.append("the line runs on")
            await asyncio.sleep(0)
            gated.log.append("never")

        simulation.start(dies(), scope)
        gated.event(steps(gated.log, "b", 1))
        await simulation.settle()

    assert run(test) == ["the line runs on", "|", "b0", "|"]
