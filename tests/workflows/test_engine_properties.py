"""The engine against a model so naive that it is plainly right.

The model knows nothing of executions, keys, notices or heaps. It keeps what each step has left to
wait, counts it down second by second, and after each event works out from scratch how far the
program of each instance must have come. Both get the same events. Whether a step runs, when, in
which attempt and with what end, and each status, must be equal; now and then the engine is replaced
by one rebuilt from its records, or from a snapshot and the records since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from engine_bench import PENDING, Bench, StepError, lasts
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from emulator.store.records import decode, encode
from emulator.workflows.engine import Engine
from emulator.workflows.model import SECOND, Status
from emulator.workflows.texts import EngineError

FACTORS = {
    "constant": lambda attempt: 1,
    "linear": lambda attempt: attempt,
    "exponential": lambda attempt: 2 ** (attempt - 1),
}
LOST = "Attempt failed due to internal workflows error"


@dataclass(frozen=True)
class Op:
    """One call in a program; `seconds` is a time-out of a do and of a wait, a sleep's duration."""

    kind: str
    name: str
    seconds: int
    limit: int = 0
    delay: int = 0
    backoff: str = "constant"
    undo: str = ""


Program = tuple[tuple[Op, ...], ...]

names = st.sampled_from("ab")
seconds = st.integers(1, 6)
dos = st.builds(
    Op, st.just("do"), names, seconds, st.integers(0, 2), st.integers(0, 3),
    st.sampled_from(sorted(FACTORS)), st.sampled_from(["", "", "ok", "bad"]),
)  # fmt: skip
ops = dos | st.builds(Op, st.sampled_from(["sleep", "waitForEvent"]), names, seconds)
programs = st.lists(st.lists(ops, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)


@dataclass
class ModelStep:
    """What the model knows of a step; `left` is None while nothing runs down."""

    op: Op
    target: str
    state: str
    left: int | None
    attempts: int = 0
    uncharged: int = 0
    error: str | None = None
    value: object = None


@dataclass
class Model:
    """One instance."""

    id: str
    program: list[tuple[Op, ...]]
    catches: bool
    profile: str
    status: str = "running"
    steps: dict[tuple[str, str], ModelStep] = field(default_factory=dict)
    events: dict[str, list[int]] = field(default_factory=dict)
    error: str | None = None
    calls: list[tuple[str, int]] = field(default_factory=list)

    def flying(self) -> list[ModelStep]:
        return [step for step in self.steps.values() if step.state == "running"]

    # How far `run` must have come.

    def work(self) -> None:
        """Draw all consequences at this instant."""
        self._go_on()
        while self.fire():
            self._go_on()

    def _go_on(self) -> None:
        if self.status == "pausing" and not self.flying():
            self.status = "paused"
        if self.status not in ("running", "pausing"):
            return
        counts: dict[tuple[str, str], int] = {}
        for stage in self.program:
            asked = []
            for op in stage:
                told_apart = self._told_apart(op)
                count = counts[op.kind, told_apart] = counts.get((op.kind, told_apart), 0) + 1
                asked.append((op, f"{told_apart}-{count}"))
            if not self._pass(asked):
                return
        if self.status == "running":
            self.status = "complete"

    def _told_apart(self, op: Op) -> str:
        """Locally the duration is part of what a sleep is known by (C2)."""
        local = self.profile == "miniflare" and op.kind == "sleep"
        return f"{op.name}@{op.seconds * 1000}" if local else op.name

    def _pass(self, asked: list[tuple[Op, str]]) -> bool:
        for op, target in asked:
            step = self.steps.get((op.kind, target))
            if self.status == "running":
                if step is None:
                    self._start(op, target)
                elif step.state == "waiting" and op.kind == "do" and not step.left:
                    self._attempt(step)
        seen = [self.steps.get((op.kind, target)) for op, target in asked]
        if not self.catches:
            for step in seen:
                told = step and (self.status == "running" or step.op.kind == "do")
                if step is not None and told and step.state == "errored":
                    self._fail(str(step.error))
                    return False
        return all(step is not None and step.state in ("complete", "errored") for step in seen)

    def _start(self, op: Op, target: str) -> None:
        step = self.steps[op.kind, target] = ModelStep(op, target, "waiting", op.seconds)
        if op.kind == "do":
            self._attempt(step)
        elif op.kind == "waitForEvent":
            self._serve(step)

    def _attempt(self, step: ModelStep) -> None:
        step.attempts += 1
        step.state, step.left = "running", step.op.seconds
        self.calls.append((step.target, step.attempts))

    def _fail(self, error: str) -> None:
        self.error = error.removeprefix("NonRetryableError: ")  # E6: its name
        self.status = "errored"
        self._undo()

    def _undo(self) -> None:
        for step in reversed(list(self.steps.values())):
            if step.op.kind == "do" and step.op.undo:
                self.calls.append((f"rollback {step.target}", 1))
                if step.op.undo == "bad":
                    return

    # What happens to it.

    def tick(self) -> None:
        """A second passes."""
        if self.status not in ("running", "pausing"):
            return
        for step in self.steps.values():
            if step.left:
                step.left -= 1
        self.fire()

    def fire(self) -> bool:
        """What has nothing left to wait falls due, until a pause is complete."""
        fired = False
        if self.status not in ("running", "pausing"):
            return False
        for step in self.steps.values():
            text = f"Execution timed out after {step.op.seconds * 1000}ms"
            if step.left != 0 or (step.state == "waiting" and step.op.kind == "do"):
                continue
            fired = True
            if step.state == "running":
                self.fail_attempt(step, text)
            elif step.op.kind == "sleep":
                step.state, step.left = "complete", None
            else:
                step.state, step.left, step.error = "errored", None, text
            if self.status == "pausing" and not self.flying():
                self.status = "paused"
                break
        return fired

    def succeed(self, step: ModelStep) -> None:
        step.state, step.left, step.value = "complete", None, step.attempts

    def fail_attempt(self, step: ModelStep, error: str, *, delay: bool = True) -> None:
        op = step.op
        if self.status in ("running", "pausing") and step.attempts - step.uncharged <= op.limit:
            step.state = "waiting"
            step.left = op.delay * FACTORS[op.backoff](step.attempts) if delay else 0
        else:
            self.fail_for_good(step, error)

    def fail_for_good(self, step: ModelStep, error: str) -> None:
        step.state, step.left, step.error = "errored", None, error

    def lose(self) -> None:
        if self.status in ("running", "pausing"):
            for step in self.flying():
                if self.profile == "miniflare":
                    step.uncharged += 1
                    step.state, step.left = "waiting", 0
                else:
                    self.fail_attempt(step, LOST, delay=False)

    def send(self, type: str, value: int) -> None:
        self.events.setdefault(type, []).append(value)
        if self.status != "paused":
            for step in self.steps.values():
                self._serve(step)

    def resume(self) -> None:
        if self.status == "paused":
            self.status = "running"
            for step in self.steps.values():
                self._serve(step)
        elif self.status == "pausing":
            self.status = "running"

    def _serve(self, step: ModelStep) -> None:
        if step.op.kind == "waitForEvent" and step.state == "waiting":
            buffered = self.events.get(step.op.name)
            if buffered:
                step.state, step.left, step.value = "complete", None, buffered.pop(0)

    def restart(self, kind: str | None = None, target: str = "") -> None:
        kept: dict[tuple[str, str], ModelStep] = {}
        for key, step in self.steps.items():
            if kind is None or key == (kind, target):
                break
            kept[key] = step
            if step.state == "running":
                step.uncharged += 1
                step.state, step.left = "waiting", 0
        self.steps, self.events, self.error, self.status = kept, {}, None, "running"


def run_of(programs: dict[str, tuple[Program, bool]]) -> Any:
    """User code that does what the program of its instance says."""

    def code(step: Any) -> Any:
        program, catches = programs[step.execution.id]

        def undo(op: Op) -> Any:
            def handler(found: Any) -> None:
                if op.undo == "bad":
                    raise RuntimeError("cannot undo")

            return handler if op.undo else None

        async def one(op: Op) -> None:
            try:
                if op.kind == "sleep":
                    await step.sleep(op.name, op.seconds * 1000)
                elif op.kind == "waitForEvent":
                    await step.wait(op.name, op.name, op.seconds * 1000)
                else:
                    retries = {
                        "limit": op.limit,
                        "delay": op.delay * 1000,
                        "backoff": op.backoff,
                    }
                    config = {"timeout": op.seconds * 1000, "retries": retries}
                    never = {"retries": {"limit": 0, "delay": 0}}
                    await step.do(op.name, lambda _: PENDING, config, undo(op), never)
            except StepError:
                if not catches:
                    raise

        async def run() -> None:
            for stage in program:
                await step.together(*(one(op) for op in stage))

        return run()

    return code


FINITE = ("complete", "errored", "terminated")
LEGAL = {
    "queued": {"running", "terminated"},
    "running": {"waitingForPause", "paused", "queued", *FINITE},
    "waitingForPause": {"paused", "running", "queued", *FINITE},
    "paused": {"queued", "terminated"},
    **{status: {"queued"} for status in FINITE},
}
"""What one record may do to a status (I6, I13 to I19)."""


class Comparison(RuleBasedStateMachine):
    """The engine and the model, side by side."""

    profile: Any = "production"

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[str, tuple[Program, bool]] = {}
        self.bench = Bench(run_of(self.programs), profile=self.profile)
        self.models: list[Model] = []
        self.sent = 0
        self.follower = Engine(self.profile)
        self.followed = 0
        # The attempts and the end of each step that is over, unless a restart forgot it.
        self.saved: dict[tuple[str, str], tuple[int, str]] = {}

    @initialize(
        program=programs,
        others=st.lists(programs, max_size=2),
        catches=st.booleans(),
    )
    def create(self, program: Program, others: list[Program], catches: bool) -> None:
        for number, given_program in enumerate([program, *others]):
            id = f"i{number}"
            self.programs[id] = (given_program, catches)
            self.models.append(Model(id, list(given_program), catches, self.profile))
            self.bench.create(id)
        self._work()

    def _work(self) -> None:
        for model in self.models:
            model.work()

    def _chosen(self, number: int) -> Model:
        return self.models[number % len(self.models)]

    chosen = st.integers(0, 5)

    @rule(which=chosen, index=st.integers(0, 8), outcome=st.sampled_from(["ok", "ok", "bad", "no"]))
    def end_attempt(self, which: int, index: int, outcome: str) -> None:
        flights = [(model, step) for model in self.models for step in model.flying()]
        flights = [pair for pair in flights if self._alive(*pair)]
        if not flights:
            return
        model, step = flights[(which + index) % len(flights)]
        value: object = step.attempts
        if outcome == "no" and self.profile == "miniflare":
            outcome = "bad"  # C5 has a test of its own
        if outcome == "ok":
            model.succeed(step)
        elif outcome == "bad":
            value = RuntimeError("bad")
            model.fail_attempt(step, "bad")
        else:
            value = RuntimeError("NonRetryableError: no")
            model.fail_for_good(step, "NonRetryableError: no")
        self.bench.end(model.id, step.target, value)
        self._work()

    def _alive(self, model: Model, step: ModelStep) -> bool:
        return not self.bench.flights[model.id, step.target][0].dead

    @rule(which=chosen)
    def pause(self, which: int) -> None:
        model = self._chosen(which)
        if model.status == "running":
            model.status = "pausing"
        self.bench.verb("pause", model.id)
        self._work()

    @rule(which=chosen)
    def resume(self, which: int) -> None:
        model = self._chosen(which)
        model.resume()
        self.bench.verb("resume", model.id)
        self._work()

    @rule(which=chosen, rollback=st.booleans())
    def terminate(self, which: int, rollback: bool) -> None:
        model = self._chosen(which)
        if model.status in ("complete", "errored", "terminated"):
            with pytest.raises(EngineError, match="cannot_terminate"):
                self.bench.verb("terminate", model.id, rollback=rollback)
            return
        model.status = "terminated"
        if rollback:
            model._undo()
        self.bench.verb("terminate", model.id, rollback=rollback)

    @rule(which=chosen)
    def restart(self, which: int) -> None:
        model = self._chosen(which)
        self.saved = {pair: end for pair, end in self.saved.items() if pair[0] != model.id}
        model.restart()
        self.bench.verb("restart", model.id)
        self._work()

    @rule(which=chosen, index=st.integers(0, 8))
    def restart_from(self, which: int, index: int) -> None:
        model = self._chosen(which)
        if not model.steps:
            return
        step = list(model.steps.values())[index % len(model.steps)]
        same = [s for s in model.steps.values() if (s.op.kind, s.op.name) == kind_and_name(step)]
        count = same.index(step) + 1
        name = step.op.name
        model.restart(step.op.kind, step.target)
        kept = [(model.id, f"{kind}:{target}") for kind, target in model.steps]
        self.saved = {
            pair: end for pair, end in self.saved.items() if pair[0] != model.id or pair in kept
        }
        arguments = {"name": name, "count": count, "kind": step.op.kind}
        self.bench.verb("restart", model.id, **arguments)
        self._work()

    @rule(which=chosen, type=names)
    def send(self, which: int, type: str) -> None:
        model = self._chosen(which)
        self.sent += 1
        if model.status not in ("complete", "errored", "terminated"):
            model.send(type, self.sent)
        elif self.profile == "production":
            with pytest.raises(EngineError, match="in_finite_state"):
                self.bench.send(type, self.sent, model.id)
            return
        self.bench.send(type, self.sent, model.id)
        self._work()

    @rule(which=chosen)
    def lose(self, which: int) -> None:
        model = self._chosen(which)
        model.lose()
        self.bench.lose(model.id)
        self._work()

    @rule()
    def rebuild(self) -> None:
        for model in self.models:
            model.lose()
        self.bench.restore(wake=True)
        self._work()

    @rule(seconds=st.integers(1, 9))
    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            for model in self.models:
                model.tick()
                model.work()
            self.bench.advance(1)

    # What must be equal, and what must hold whatever the model says.

    @invariant()
    def both_show_the_same(self) -> None:
        for model in self.models:
            view = self.bench.engine.status("w", model.id)
            shown = view.status.value
            expected = {"pausing": "waitingForPause"}.get(model.status, model.status)
            if shown == "waiting":
                assert not model.flying()
                assert self.profile == "production"
                shown = "running"
            assert shown == expected
            if model.status in ("complete", "errored", "terminated"):
                assert (view.error and view.error.message) == model.error
            self._compare_steps(model)

    def _compare_steps(self, model: Model) -> None:
        steps = self.bench.engine.steps("w", model.id)
        assert [step.key for step in steps] == [f"{kind}:{name}" for kind, name in model.steps]
        for step, other in zip(steps, model.steps.values(), strict=True):
            assert (step.state, step.attempts) == (other.state, other.attempts)
            assert (step.error and step.error.message) == other.error
            if step.event is not None:
                assert step.event.payload == str(other.value).encode()
            elif step.output is not None:
                assert step.output == str(other.value).encode()
            running_down = model.status in ("running", "pausing") and step.state == "waiting"
            if running_down and other.left:
                assert step.due == self.bench.instant + other.left * SECOND

    @invariant()
    def both_made_the_same_calls(self) -> None:
        made = sorted((name, number) for _, name, number in self.bench.calls)
        assert made == sorted(call for model in self.models for call in model.calls)

    @invariant()
    def no_step_runs_again_that_is_saved_or_too_often(self) -> None:
        for model in self.models:
            for step in self.bench.engine.steps("w", model.id):
                if step.state in ("complete", "errored"):
                    end = (step.attempts, step.state)
                    assert self.saved.setdefault((model.id, step.key), end) == end
                else:
                    assert (model.id, step.key) not in self.saved
                if step.config is not None:
                    allowed = step.config.limit + 1
                    assert step.attempts <= allowed + self._uncharged(model, step.key)

    def _uncharged(self, model: Model, key: str) -> int:
        """How many attempts a restart from a later step, or a local loss, does not charge."""
        return self.bench.engine._instances["w"][model.id].steps[key].uncharged

    @invariant()
    def a_status_follows_from_the_one_before(self) -> None:
        self.bench.records += self.bench.engine.take_records()
        named = self.follower._instances
        for record in self.bench.records[self.followed :]:
            known = named.get("w", {}).get(record[2])
            before = "queued" if known is None else known.status.value
            self.follower.apply(record)
            after = named["w"][record[2]].status.value
            undoing = record[0] == "rollback" and after == "running"
            assert after == before or after in LEGAL[before] or undoing, (record, before)
        self.followed = len(self.bench.records)

    @invariant()
    def records_rebuild_the_state(self) -> None:
        bench = self.bench
        bench.records += bench.engine.take_records()
        half = len(bench.records) // 2
        first = Engine(self.profile)
        first.replay(stored(bench.records[:half]))
        second = Engine(self.profile)
        second.restore(stored(first.snapshot()))
        second.replay(stored(bench.records[half:]))
        assert stored(second.snapshot()) == stored(bench.engine.snapshot())


def kind_and_name(step: ModelStep) -> tuple[str, str]:
    """What `restart` looks for."""
    return step.op.kind, step.op.name


def stored(payload: Any) -> Any:
    """What a store gives back."""
    return decode(encode(list(payload)), "a test")


@pytest.mark.parametrize("profile", ["production", "miniflare"])
def test_the_engine_does_what_the_model_does(profile: str) -> None:
    """C4, D6, D11 to D15, I9 to I20, K3, K5, R1, R4, S7, X1 to X5."""
    machine = type("Chosen", (Comparison,), {"profile": profile})
    run_state_machine_as_test(machine, settings=settings(settings(), stateful_step_count=25))


@given(
    given_programs=st.lists(programs, min_size=2, max_size=6),
    concurrency=st.integers(1, 3),
    takes=st.integers(0, 4),
)
def test_no_more_run_than_may_and_all_come_to_an_end(
    given_programs: list[Program], concurrency: int, takes: int
) -> None:
    """I6: only running instances have a slot, and one that frees its slot lets another go on."""
    bench: Bench

    def code(step: Any) -> Any:
        program = given_programs[int(step.execution.id[1:])]

        async def one(op: Op) -> None:
            if op.kind == "do":
                await step.do(op.name, lasts(takes))
            else:
                await step.sleep(op.name, op.seconds * 1000)

        async def run() -> None:
            for stage in program:
                await step.together(*(one(op) for op in stage))

        return run()

    bench = Bench(code, concurrency=concurrency)
    for number in range(len(given_programs)):
        bench.create(f"i{number}")
    while bench.now < 600 and len(bench.ended) < len(given_programs):
        busy = [
            any(step.state == "running" for step in bench.engine.steps("w", view.id))
            for view in bench.engine.instances("w")
        ]
        assert sum(busy) <= concurrency
        bench.advance(1)
    assert {view.status for view in bench.engine.instances("w")} == {Status.COMPLETE}
    assert len(bench.ended) == len(given_programs)


def test_the_model_sees_a_wrong_delay() -> None:
    """The comparison can fail: a model that knows another backoff is told."""
    machine = Comparison()
    op = Op("do", "a", 5, limit=1, delay=2)
    machine.create(((op,),), [], catches=False)
    machine.end_attempt(0, 0, "bad")
    machine.models[0].steps["do", "a-1"].left = 3
    with pytest.raises(AssertionError):
        machine.both_show_the_same()
