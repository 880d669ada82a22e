"""What user code sees of Workflows: the binding, the handle of an instance, and `step`.

Methods do their work at the next turn of the loop, like every call that leaves a Worker; what is
wrong with a call is its promise's error. Letters and numbers such as B4 are rules of the reference
on Cloudflare Workflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.faults.sites import site_name
from emulator.values import UNDEFINED, Function, HostObject, JsException, LiteralMap, to_v8
from emulator.workflows import grammar, texts
from emulator.workflows.model import MILLISECOND, NewInstance, Retention
from emulator.workflows.shown import status_object
from emulator.workflows.subscription import Reader
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from emulator.invocation import Invocation
    from emulator.workflows.model import ItemError
    from emulator.workflows.run import WorkflowRun
    from emulator.workflows.service import Workflows


class WorkflowImpl(HostObject):
    """A Workflow's binding (B1 to B18)."""

    js_class = "WorkflowImpl"
    js_members = frozenset({"create", "createBatch", "get", "deleteBatch"})

    def __init__(self, workflow: str, workflows: Workflows) -> None:
        self._workflow = workflow
        self._workflows = workflows

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._workflows

    def create(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Create an instance; returns its handle before it runs (B1)."""

        def perform(invocation: Invocation) -> Any:
            item = _new_instance(invocation, options)
            self._workflows.create(self._workflow, item)
            return self._handle(item.id)

        return self._call(perform, site="create")

    def createBatch(self, given: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Create up to 100 instances: a list of options, or an object (B6, B9)."""
        if isinstance(given, list):
            return self._call(lambda invocation: self._create_listed(invocation, given), "create")
        return self._call(lambda invocation: self._create_each(invocation, given), "create")

    def _create_listed(self, invocation: Invocation, given: list[Any]) -> list[Any]:
        grammar.check_batch(len(given))
        items = [_new_instance(invocation, options) for options in given]
        return [self._handle(id) for id in self._workflows.create_batch(self._workflow, items)]

    def _create_each(self, invocation: Invocation, given: Any) -> dict[str, Any]:
        options = _mapping(given)
        if "count" in options:
            count = grammar.check_batch_count(options["count"])
            plain = {key: value for key, value in options.items() if key not in ("count", "id")}
            items = [_new_instance(invocation, plain) for _ in range(count)]
            done, errors = self._workflows.create_batch(self._workflow, items), []
        elif isinstance(options.get("instances"), list):
            listed = options["instances"]
            grammar.check_listed_batch(len(listed))
            items = [_new_instance(invocation, one, checked=False) for one in listed]
            result = self._workflows.create_each(self._workflow, items)
            done, errors = result.done, [_item_error(error) for error in result.errors]
        else:
            raise EngineError(*texts.BAD_ARGUMENT)
        return {"created": [self._handle(id) for id in done], "errors": errors}

    def get(self, id: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """The handle of an instance that exists (B10)."""

        def perform(_: Invocation) -> Any:
            self._workflows.engine.instance(self._workflow, str(id))
            return self._handle(str(id))

        return self._call(perform)

    def deleteBatch(self, ids: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Delete up to 100 instances (B11)."""

        def perform(_: Invocation) -> Any:
            if not isinstance(ids, list):
                raise EngineError(*texts.BAD_ARGUMENT)
            result = self._workflows.delete_batch(self._workflow, ids)
            errors = [{"id": e.id, "code": e.code, "message": e.message} for e in result.errors]
            return {"deleted": [{"id": id} for id in result.done], "errors": errors}

        return self._call(perform)

    def _handle(self, id: str) -> InstanceImpl:
        return InstanceImpl(self._workflow, id, self._workflows)

    def _call(self, perform: Callable[[Invocation], Any], site: str = "") -> asyncio.Future[Any]:
        invocation = calls.caller_of()
        if site:
            invocation.effect(f"an instance of the Workflow {self._workflow}")
        name = site_name(site, self._workflow) if site else ""
        return self._workflows.call(invocation, lambda: perform(invocation), site=name)


class InstanceImpl(HostObject):
    """The handle of an instance (I1)."""

    js_class = "InstanceImpl"
    js_members = frozenset(
        {
            *("id", "status", "pause", "resume", "terminate", "restart", "delete"),
            *("sendEvent", "subscribe"),
        }
    )

    def __init__(self, workflow: str, id: str, workflows: Workflows) -> None:
        self._workflow = workflow
        self._workflows = workflows
        self.id = id

    def js_keys(self) -> tuple[str, ...]:
        return ("id",)

    def status(self, *_: Any) -> asyncio.Future[Any]:
        """How it is (I4)."""
        return self._call(self._status)

    def _status(self) -> dict[str, Any]:
        engine = self._workflows.engine
        view = engine.status(self._workflow, self.id)
        steps = engine.steps(self._workflow, self.id)
        history = engine.history(self._workflow, self.id)
        return status_object(self._workflows.profile, view, steps, history)

    def pause(self, *_: Any) -> asyncio.Future[Any]:
        """Let it rest (I9, I10)."""
        return self._verb("pause")

    def resume(self, *_: Any) -> asyncio.Future[Any]:
        """Let it go on (I13, I14)."""
        return self._verb("resume")

    def terminate(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """End it, after rolling back if that is asked for (I16, I17)."""
        return self._verb("terminate", rollback=bool(_mapping(options).get("rollback", False)))

    def restart(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Run it again, from a step if one is named (I19, I20)."""
        return self._verb("restart", **restart_point(_mapping(options).get("from", UNDEFINED)))

    def delete(self, *_: Any) -> asyncio.Future[Any]:
        """Forget it (I18)."""
        return self._verb("delete")

    def sendEvent(self, event: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Send it an event (I23 to I25)."""
        if event is UNDEFINED or event is None:
            text = f"Cannot read properties of {_word(event)} (reading 'payload')"
            return calls.refuse(JsException("TypeError", text))
        given = _mapping(event)
        try:
            data = to_v8(given["payload"]) if "payload" in given else None
        except JsException as error:
            return calls.refuse(error)
        kind = str(given.get("type", "undefined"))
        calls.caller_of().effect(f"an event to {self.id}")
        return self._workflows.send_event(calls.caller_of(), self._workflow, self.id, kind, data)

    def subscribe(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Hear of all that happened to it and will (I26)."""
        given = _mapping(options)
        cursor, wanted = given.get("cursor", UNDEFINED), given.get("filter", UNDEFINED)

        def perform() -> Subscription:
            feed = self._workflows.feed(self._workflow, self.id)
            kinds = frozenset(map(str, wanted)) if isinstance(wanted, list) else None
            at = int(cursor) if isinstance(cursor, (int, float)) else 0
            return Subscription(Reader(feed, cursor=min(at, len(feed.events)), wanted=kinds))

        return self._call(perform)

    def _verb(self, verb: str, /, **options: Any) -> asyncio.Future[Any]:
        return self._call(lambda: self._workflows.control(verb, self._workflow, self.id, **options))

    def _call(self, perform: Callable[[], Any]) -> asyncio.Future[Any]:
        return self._workflows.call(calls.caller_of(), perform)


class Subscription(HostObject):
    """What `subscribe` returns."""

    js_class = "WorkflowSubscription"
    js_members = frozenset({"next", "cursor"})

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def cursor(self) -> int:
        """The number of the last event that was looked at."""
        return self._reader.cursor

    async def next(self, *_: Any) -> dict[str, Any]:
        """The next event, when there is one."""
        while (found := self._reader.take()) is None:
            await self._reader.feed.more()
        return found


class WorkflowStep(HostObject):
    """`step`, as the platform hands it to `run`."""

    js_class = "WorkflowStep"
    js_members = frozenset({"do", "sleep", "sleepUntil", "waitForEvent"})

    def __init__(self, run: WorkflowRun) -> None:
        self._run = run

    def do(self, *arguments: Any) -> asyncio.Future[Any]:
        """Run a step, or return what it returned before (S1)."""
        name = _step_name(arguments)
        config, body, options = _do_arguments(arguments[1:])
        return self._run.ask(lambda: self._run.do(name, config, body, options))

    def sleep(self, *arguments: Any) -> asyncio.Future[Any]:
        """Sleep for a duration (D5)."""
        name, duration = _step_name(arguments), _at(arguments, 1)
        return self._run.ask(lambda: self._run.sleep(name, duration))

    def sleepUntil(self, *arguments: Any) -> asyncio.Future[Any]:
        """Sleep until a Date, or a number of milliseconds since 1970 (D7)."""
        name, moment = _step_name(arguments), _at(arguments, 1)
        return self._run.ask(lambda: self._run.sleep_until(name, moment))

    def waitForEvent(self, *arguments: Any) -> asyncio.Future[Any]:
        """Wait for an event of a type (D9)."""
        name, given = _step_name(arguments), _at(arguments, 1)
        if given is UNDEFINED or given is None:
            text = f"Cannot read properties of {_word(given)} (reading 'timeout')"
            return calls.refuse(JsException("TypeError", text))
        options = _mapping(given)
        kind, timeout = options.get("type", UNDEFINED), options.get("timeout", UNDEFINED)
        return self._run.ask(lambda: self._run.wait(name, str(kind), timeout))


def restart_point(given: Any) -> dict[str, Any]:
    """The step that a restart is to begin with, as the engine takes it."""
    if given is UNDEFINED or given is None:
        return {}
    step = _mapping(given)
    count = step.get("count", UNDEFINED)
    kind = step.get("type", UNDEFINED)
    return {
        "name": str(step.get("name", "")),
        "count": 1 if count is UNDEFINED or count is None else int(count),
        "kind": "do" if kind is UNDEFINED or kind is None else str(kind),
    }


def _new_instance(invocation: Invocation, options: Any, *, checked: bool = True) -> NewInstance:
    """An instance's options; without an id it gets a random one, without params `{}` (B1)."""
    given = _mapping(options)
    id, params = given.get("id", UNDEFINED), given.get("params", UNDEFINED)
    if id is UNDEFINED:
        id = random_id(invocation)
    elif checked:
        id = grammar.check_id(id)
    data = to_v8({} if params is UNDEFINED else params)
    return NewInstance(id, data, retention_of(given.get("retention", UNDEFINED)))


def random_id(invocation: Invocation) -> str:
    """A UUID of version 4, of the emulator's choosing."""
    digits = invocation.kernel.hexadecimal(32)
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _item_error(error: ItemError) -> dict[str, Any]:
    return {
        "index": error.index,
        "id": error.id,
        "code": error.code,
        "message": error.message,
    }


def retention_of(given: Any) -> Retention:
    """How long an instance is kept, by the option of `create` (B12)."""
    options = _mapping(given)
    return Retention(
        _kept(options.get("successRetention", UNDEFINED)),
        _kept(options.get("errorRetention", UNDEFINED)),
    )


def _kept(value: Any) -> int | None:
    if value is UNDEFINED or value is None:
        return None
    return round(grammar.check_duration("production", value) * MILLISECOND)


def _mapping(value: Any) -> Mapping[str, Any]:
    """An options object; what is none has no options."""
    if isinstance(value, LiteralMap):
        return {str(key): item for key, item in value.items()}
    return value if isinstance(value, Mapping) else {}


def _step_name(arguments: tuple[Any, ...]) -> str:
    name = _at(arguments, 0)
    return name if isinstance(name, str) else _word(name)


def _do_arguments(arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Config, body and options of `do`, which may leave out the first and the last (S1)."""
    if arguments and isinstance(arguments[0], Function):
        return None, arguments[0], _at(arguments, 1)
    config = _at(arguments, 0)
    return None if config is UNDEFINED else config, _at(arguments, 1), _at(arguments, 2)


def _at(arguments: tuple[Any, ...], index: int) -> Any:
    return arguments[index] if len(arguments) > index else UNDEFINED


def _word(value: Any) -> str:
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if (value is None or isinstance(value, bool))
        else ("undefined" if value is UNDEFINED else str(value))
    )
