"""A Workflow and its instances as tests use them: `emulator.workflows["name"]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from emulator.clock import moment
from emulator.durations import microseconds
from emulator.errors import WorkflowError, WorkflowFailed
from emulator.pump import Goal
from emulator.runtime.host import current
from emulator.runtime.profile import is_modern
from emulator.runtime.rpc import to_canonical
from emulator.runtime.sdk.workflow_errors import step_error
from emulator.values import JsException, from_v8, to_v8
from emulator.values.plain import plain
from emulator.workflows import grammar
from emulator.workflows.bindings import random_id
from emulator.workflows.gates import Gate
from emulator.workflows.mocks import NOTHING, Failure, Mark, Mocks
from emulator.workflows.model import ErrorInfo, InstanceEvent, NewInstance, Status
from emulator.workflows.shown import REDACTED, STREAM, raised, received, stream_text
from emulator.workflows.subscription import Reader
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime, timedelta

    from emulator.caller import Caller
    from emulator.workflows.model import HistoryRow, InstanceView, StepView
    from emulator.workflows.service import Workflows

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True

_YEAR = "365 days"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A started step: `state` is `running`, `waiting`, `complete` or `errored`.

    `attempts` counts started ones, lost ones included; of a wait `output` is the event.
    """

    name: str
    count: int
    kind: str
    state: str
    attempts: int
    output: Any
    error: ErrorInfo | None
    started: datetime
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A row of an instance's history (workflows.md 11)."""

    id: int
    at: datetime
    event: InstanceEvent
    target: str | None
    data: Mapping[str, Any] = field(default_factory=dict)


class Mocking:
    """The test helpers of Cloudflare's vitest plugin, on an instance or for later instances."""

    name: str
    _workflows: Workflows
    _mocked: str | None  # the instance's id, None for all later ones

    @property
    def _mocks(self) -> Mocks:
        key = (self.name, self._mocked)
        return self._workflows.attempts.mocks.setdefault(key, Mocks())

    def mock_step_result(self, name: str, value: Any, index: int = 1) -> None:
        """Let the `index`-th step of this name return a value; its body is not called.

        Falsy values count. Raises `ValueError` if it has a result already, `TypeError` for a value
        that no step could return.
        """
        mock = self._mocks.step(name, index)
        if mock.result is not NOTHING:
            raise ValueError(f"[WorkflowIntrospector] Trying to mock step '{name}' multiple times!")
        mock.result = self._mocked_data(value, f"the result of the step {name!r}")

    def mock_step_error(
        self, name: str, error: Any, times: int | None = None, index: int = 1
    ) -> None:
        """Let attempts of a step fail with an error: the next `times`, or all.

        `error` is an exception, or a mapping with `name` and `message`. Raises `ValueError` if
        the step has a result.
        """
        info = self._error_info(error)
        self._fail(name, index, Failure("error", info, times), "mock error on")

    def force_step_timeout(self, name: str, times: int | None = None, index: int = 1) -> None:
        """Let attempts of a step time out at once: the next `times`, or all."""
        self._fail(name, index, Failure("timeout", None, times), "force timeout on")

    def _fail(self, name: str, index: int, failure: Failure, what: str) -> None:
        mock = self._mocks.step(name, index)
        if mock.result is not NOTHING:
            raise ValueError(
                f"[WorkflowIntrospector] Trying to {what} step '{name}' after mocking its result!"
            )
        mock.failures.append(failure)

    def mock_event(self, type: str, payload: Any = None) -> None:
        """Send an event of this type, now or to each later instance when it is created.

        Raises `TypeError` for a payload that no event could have.
        """
        data = self._mocked_data(payload, f"the payload of the event {type!r}")
        if self._mocked is None:
            self._mocks.events.append((type, data, Mark()))
        else:
            try:
                self._workflows.mock_event(self.name, self._mocked, type, data)
            except EngineError as error:
                raise WorkflowError(error.name, error.message) from None
            self._mocks.events.append((type, data, Mark()))

    def _mocked_data(self, value: Any, what: str) -> bytes:
        try:
            return to_v8(self._inside(lambda: to_canonical(value)))
        except JsException as error:
            raise TypeError(f"{what} cannot be stored: {error}; give plain data") from None

    def force_event_timeout(self, name: str) -> None:
        """Let the event wait of this name time out at once."""
        self._mocks.timed_out.setdefault(name, Mark())
        self._hasten()

    def disable_sleeps(self, *names: str) -> None:
        """Let sleeps take no time: those of these names, or all."""
        for name in names or (None,):
            self._mocks.no_sleeps.setdefault(name, Mark())
        self._hasten()

    def disable_retry_delays(self, *names: str) -> None:
        """Let retries of steps follow at once: of steps of these names, or of all."""
        for name in names or (None,):
            self._mocks.no_delays.setdefault(name, Mark())
        self._hasten()

    def hold_step(self, name: str, index: int = 1) -> Gate:
        """Keep the `index`-th step of this name from starting until the gate is opened."""
        return self._mocks.gates.setdefault((name, index), Gate(self._workflows.kernel, name))

    def _hasten(self) -> None:
        self._workflows.hasten(self.name, self._mocked)

    def _error_info(self, error: Any) -> ErrorInfo:
        if isinstance(error, BaseException):  # what the engine gets of one that the body raises
            seen = step_error(error, modern=self._inside(is_modern))
            return received(self._workflows.profile, seen)
        if hasattr(error, "get"):
            return ErrorInfo(str(error.get("name", "Error")), str(error.get("message", "")))
        return ErrorInfo("Error", str(error))

    def _inside(self, function: Callable[[], Any]) -> Any:
        return self._caller.call(function)

    _caller: Caller


class Instance(Mocking):
    """One instance of a Workflow."""

    def __init__(self, workflows: Workflows, workflow: str, id: str, caller: Caller) -> None:
        self._workflows = workflows
        self._caller = caller
        self.name = workflow
        self.id = id
        self._mocked = id

    # -- looking ---------------------------------------------------------------------------------

    @property
    def _view(self) -> InstanceView:
        try:
            return self._workflows.engine.status(self.name, self.id)
        except EngineError as error:
            raise self._error(error) from None

    def _error(self, error: EngineError) -> WorkflowError:
        seen = raised(self._workflows.profile, error)
        return WorkflowError(seen.name, seen.message)

    @property
    def status(self) -> str:
        """`queued`, `running`, `waiting`, `paused`, `waitingForPause`, `complete`, `errored` or
        `terminated`."""
        return self._view.status.value

    @property
    def output(self) -> Any:
        """What `run` returned; None before, and if it returned nothing."""
        return _plain(self._view.output)

    @property
    def error(self) -> ErrorInfo | None:
        """Why it ended errored: `name` and `message`."""
        return self._view.error

    @property
    def steps(self) -> list[StepRecord]:
        """The started steps, in order of their start."""
        return [_step_record(view) for view in self._workflows.engine.steps(self.name, self.id)]

    @property
    def history(self) -> list[HistoryRecord]:
        """All that happened to it, as the platform logs it."""
        engine = self._workflows.engine
        steps = engine.steps(self.name, self.id)
        hidden = {f"{step.name}-{step.count}" for step in steps if step.sensitive}
        rows = engine.history(self.name, self.id)
        return [_row(row, hidden=row.target in hidden) for row in rows]

    # -- waiting ---------------------------------------------------------------------------------

    async def result(self, limit: timedelta | float | str = _YEAR) -> Any:
        """Wait for its end and return the output; time passes on the way.

        Raises `WorkflowFailed` if it ends errored or terminated, `NotSettled` at `limit`.
        """
        await self._reach("result()", lambda: self._view.status.finite, limit)
        view = self._view
        if view.status is not Status.COMPLETE:
            raise WorkflowFailed(self, view.status.value, view.error)
        return self.output

    async def wait_for(self, status: str, limit: timedelta | float | str = _YEAR) -> None:
        """Wait until it has this status, event by event; time passes on the way.

        Raises `WorkflowFailed` if it comes to another end, `ValueError` for what is no status.
        """
        if status not in {known.value for known in Status}:
            known = ", ".join(known.value for known in Status)
            raise ValueError(f"{status!r} is no status of an instance; there are: {known}")

        def reached() -> bool:
            view = self._view
            return view.status.value == status or view.status.finite

        await self._reach(f"wait_for({status!r})", reached, limit, each_event=True)
        view = self._view
        if view.status.value != status:
            raise WorkflowFailed(self, view.status.value, view.error)

    async def _reach(
        self,
        name: str,
        reached: Callable[[], bool],
        limit: timedelta | float | str,
        *,
        each_event: bool = False,
    ) -> None:
        kernel = self._workflows.kernel
        end = kernel.limit(microseconds(limit))
        goal = Goal(
            f"workflows[{self.name!r}] {self.id}: {name}",
            reached,
            each_event=each_event,
            horizon=end,
            limit=end,
        )
        await kernel.pump.reach(goal)

    # -- verbs -----------------------------------------------------------------------------------

    async def send_event(self, type: str, payload: Any = None) -> None:
        """Send it an event; raises `WorkflowError` as a Worker would get it."""

        def send() -> Any:
            data = to_v8(to_canonical(payload))
            invocation = cast("Any", current())
            return self._workflows.send_event(invocation, self.name, self.id, type, data)

        await self._at_once("send_event", send)

    async def pause(self) -> None:
        """Let it rest; steps that run end first."""
        await self._verb("pause")

    async def resume(self) -> None:
        """Let it go on; what was left of sleeps and time-outs is left still."""
        await self._verb("resume")

    async def terminate(self, rollback: bool = False) -> None:
        """End it, after its rollbacks if these are asked for."""
        await self._verb("terminate", rollback=rollback)

    async def restart(self, from_step: Any = None) -> None:
        """Run it again: all of it, or from a step (`"b"`, or name, count and type)."""
        await self._verb("restart", **_restart_point(from_step))

    async def delete(self) -> None:
        """Forget it."""
        await self._verb("delete")

    async def subscribe(self, cursor: int = 0) -> Events:
        """Go through all that happened to it and will, as its own code could."""
        try:
            feed = self._workflows.feed(self.name, self.id)
        except EngineError as error:
            raise self._error(error) from None
        return Events(self._workflows, Reader(feed, cursor=min(cursor, len(feed.events))))

    async def evict(self) -> None:
        """Drop its memory, its Worker's globals included: `run` starts over."""
        await self._at_once("evict", lambda: self._workflows.evict_instance(self.name, self.id))

    async def crash(self) -> None:
        """Cut its power: attempts in flight are lost, and `run` starts over."""
        await self._at_once("crash", lambda: self._workflows.crash_instance(self.name, self.id))

    async def replay(self) -> list[str]:
        """Run a finished instance's `run` again from its journal; returns what was different.

        No body of a step is called and nothing is stored, but what stands between steps happens
        again. Each difference is the finding `replay_diverged` too. Raises `ValueError` for an
        instance that is not finished, `NotSettled` where `run` itself waits for a year.
        """
        run = await self._at_once("replay", lambda: self._workflows.rehearse(self.name, self.id))
        await self._reach("replay()", lambda: run.over, _YEAR)
        return list(run.differences)

    async def _verb(self, verb: str, **options: Any) -> None:
        def perform() -> Any:
            invocation = cast("Any", current())
            return self._workflows.call(
                invocation,
                lambda: self._workflows.control(verb, self.name, self.id, **options),
            )

        await self._at_once(verb, perform)

    async def _at_once(self, name: str, function: Callable[[], Any]) -> Any:
        return await _at_once(self._caller, f"workflows[{self.name!r}] {self.id}: {name}", function)

    def __repr__(self) -> str:
        return f"<Instance {self.id} of {self.name}>"


class Events:
    """What `subscribe` gives: `next()`, or `async for`; time passes while it waits."""

    def __init__(self, workflows: Workflows, reader: Reader) -> None:
        self._workflows = workflows
        self._reader = reader

    async def next(self) -> dict[str, Any]:
        """The next event, as `value` with `done` false; `done` after the instance's end."""
        reader = self._reader
        while (found := reader.take()) is None:
            goal = Goal("subscription.next()", lambda: len(reader.feed.events) > reader.cursor)
            await self._workflows.kernel.pump.reach(goal)
        return {"value": plain(found["value"]), "done": found["done"]}

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Any:
        item = await self.next()
        if item["done"]:
            raise StopAsyncIteration
        return item["value"]


class Workflow(Mocking):
    """One Workflow as tests use it; get it from `emulator.workflows`."""

    def __init__(self, workflows: Workflows, name: str, caller: Caller) -> None:
        self._workflows = workflows
        self._caller = caller
        self.name = name
        self._mocked = None

    async def create(self, id: str | None = None, params: Any = None) -> Instance:
        """Create an instance; raises `WorkflowError` as a Worker would get it.

        Without `params` the payload is `{}`.
        """
        (instance,) = await self._create([{"id": id, "params": params}], single=True)
        return instance

    async def create_batch(self, items: Iterable[Mapping[str, Any]]) -> list[Instance]:
        """Create several instances (`id`, `params`); those whose id exists are left out."""
        return await self._create(list(items), single=False)

    async def _create(self, items: list[Mapping[str, Any]], *, single: bool) -> list[Instance]:
        def perform() -> Any:
            invocation = cast("Any", current())
            return self._workflows.call(invocation, lambda: self._enter(invocation, items, single))

        ids = await _at_once(self._caller, f"workflows[{self.name!r}].create", perform)
        return [self._instance(id) for id in ids]

    def _enter(self, invocation: Any, items: list[Mapping[str, Any]], single: bool) -> list[str]:
        made = [_new_instance(invocation, item) for item in items]
        if not single:
            return self._workflows.create_batch(self.name, made)
        self._workflows.create(self.name, made[0], trigger="api")
        return [made[0].id]

    async def get(self, id: str) -> Instance:
        """The instance with this id; raises `WorkflowError` if there is none."""
        try:
            self._workflows.engine.instance(self.name, id)
        except EngineError as error:
            seen = raised(self._workflows.profile, error)
            raise WorkflowError(seen.name, seen.message) from None
        return self._instance(id)

    @property
    def instances(self) -> list[Instance]:
        """All instances, in order of creation."""
        return [self._instance(view.id) for view in self._workflows.engine.instances(self.name)]

    def _instance(self, id: str) -> Instance:
        return Instance(self._workflows, self.name, id, self._caller)

    def __repr__(self) -> str:
        return f"<Workflow {self.name}: {len(self.instances)} instances>"


async def _at_once(caller: Caller, name: str, function: Callable[[], Any]) -> Any:
    try:
        return await caller.at_once(name, function)
    except JsException as error:
        refused = WorkflowError(error.name, error.message)
        for note in getattr(error, "__notes__", ()):
            refused.add_note(note)
        raise refused from None


def _new_instance(invocation: Any, item: Mapping[str, Any]) -> NewInstance:
    id, params = item.get("id"), item.get("params")
    checked = random_id(invocation) if id is None else grammar.check_id(id)
    return NewInstance(checked, to_v8({} if params is None else to_canonical(params)))


def _restart_point(step: Any) -> dict[str, Any]:
    if step is None:
        return {}
    if isinstance(step, str):
        return {"name": step}
    return {
        "name": step["name"],
        "count": step.get("count", 1),
        "kind": step.get("type", "do"),
    }


def _step_record(view: StepView) -> StepRecord:
    output: Any = _plain(view.output)
    if view.event is not None:
        output = {
            "type": view.event.type,
            "payload": _plain(view.event.payload),
            "timestamp": moment(view.event.timestamp),
        }
    return StepRecord(
        view.name,
        view.count,
        view.kind,
        view.state,
        view.attempts,
        REDACTED if view.sensitive and view.output is not None else output,
        view.error,
        moment(view.started),
        None if view.ended is None else moment(view.ended),
    )


def _row(row: HistoryRow, *, hidden: bool) -> HistoryRecord:
    data = {key: _shown(item) for key, item in row.data.items()}
    if isinstance(data.get("timestamp"), int):
        data["timestamp"] = moment(data["timestamp"])
    if hidden and "result" in data:
        data["result"] = REDACTED
    return HistoryRecord(row.id, moment(row.at), row.event, row.target, data)


def _shown(item: object) -> Any:
    return _plain(item) if isinstance(item, bytes) else item


def _plain(data: bytes | None) -> Any:
    if data is None:
        return None
    return stream_text(data) if data.startswith(STREAM) else plain(from_v8(data))
