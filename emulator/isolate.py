"""Incarnations of a Worker's code.

A `Worker` is a deployed script: its config, its bindings, its files, and at most one current
`Isolate`. An isolate is what a crash or an eviction takes away: the module globals and the running
invocations. The next event makes a new one, by running the code again.
"""

from __future__ import annotations

from contextvars import Context
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.absent_bindings import absent_bindings
from emulator.config_place import place_of_main
from emulator.entrypoints import Script, discover
from emulator.errors import WorkerLoadError
from emulator.foreign import is_foreign
from emulator.importer import Bundle, ModuleSpace, finder
from emulator.invocation import Invocation
from emulator.kept_memory import Memory
from emulator.location import Location, raised_at, waiting_at
from emulator.runtime.context import ExecutionContext
from emulator.runtime.modules import hidden_from
from emulator.runtime.proxies import wrap_host
from emulator.runtime.rpc import raw_env
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from emulator.absent_bindings import AbsentBinding
    from emulator.config import WorkerConfig
    from emulator.event_record import EventRecord
    from emulator.kernel import Kernel
    from emulator.values import HostObject


class Worker:
    """A deployed script, whatever isolate runs it."""

    def __init__(
        self, kernel: Kernel, config: WorkerConfig, bundle: Bundle, env: dict[str, Any]
    ) -> None:
        self.kernel = kernel
        self.config = config
        self.name = config.name
        self.env = env
        self.folder: Path | None = config.source.parent if config.source else config.root
        self.asset_problems: tuple[str, ...] = ()
        self._bundle = bundle
        self._isolate: Isolate | None = None
        # What makes `ctx.exports`, given what the code exports.
        self.exporter: Callable[[Script], HostObject] | None = None
        # The names of all Workers, for what is said of one that is missing.
        self.beside: tuple[str, ...] = (config.name,)
        # What is told of events that are over, where Workers tail this one.
        self.tailed: Callable[[Invocation, EventRecord], None] | None = None
        # Names of what its memory kept though an isolate was lost, as an object's does. What is
        # frozen for good must not lead to the memory itself.
        self.kept: dict[str, None] = {}
        self.memories: dict[str, Memory] = {}
        self._was_loaded = False
        # Replaced ones whose invocations have not all ended.
        self._retired: list[Isolate] = []

    @cached_property
    def absent(self) -> Mapping[str, AbsentBinding]:
        """What the config declares and nothing here provides, by name."""
        absent = absent_bindings(self.config, self.beside)
        return {name: one for name, one in absent.items() if name not in self.env}

    @property
    def isolate(self) -> Isolate:
        """The current isolate; a new one is loaded if there is none. Raises `WorkerLoadError`."""
        if self._isolate is None:
            self._isolate = self._load(self._bundle)
        return self._isolate

    @property
    def running(self) -> list[Invocation]:
        """The invocations in flight."""
        isolates = [*self._retired, *([self._isolate] if self._isolate is not None else [])]
        return [invocation for isolate in isolates for invocation in isolate.invocations]

    @property
    def script(self) -> Script:
        """The entrypoints of the current isolate's code."""
        return self.isolate.script

    def crash(self) -> None:
        """Power cut of all that runs of this Worker, if anything does."""
        if self._isolate is not None or self.running:
            self.kernel.record("crash", f"worker {self.name}")
            self._kill()

    def close(self) -> None:
        """Stop for good, without a word in the trace but on background work that is lost."""
        self._kill()

    def evict(self) -> None:
        """Let the next event start with fresh memory; what is in flight finishes in the old."""
        if self._isolate is not None:
            self.kernel.record("evict", f"worker {self.name}")
            self._retire()

    def reload(self) -> None:
        """Load the code again; on failure the old code stays. Raises `WorkerLoadError`."""
        self.take(*self.load_again())

    def load_again(self) -> tuple[Bundle, Isolate]:
        """Load the code as it is now, for `take`. Raises `WorkerLoadError`."""
        bundle = Bundle(self.config.root)
        self.memories.pop(self.name, None)
        return bundle, self._load(bundle)

    def take(self, bundle: Bundle, isolate: Isolate) -> None:
        """Let events run in this code from now on."""
        self._retire()
        self._bundle, self._isolate = bundle, isolate
        self.kernel.record("reload", f"worker {self.name}")

    @property
    def replaced(self) -> list[Invocation]:
        """The invocations in flight that began in code that was replaced since."""
        return [invocation for isolate in self._retired for invocation in isolate.invocations]

    def another_isolate(self) -> Isolate:
        """An isolate of the same code beside the current one. Raises `WorkerLoadError`."""
        return self._load(self._bundle)

    def _load(self, bundle: Bundle) -> Isolate:
        isolate = Isolate(self, bundle)
        isolate.load()
        main = self.config.main
        if not isinstance(main, Path):
            self._compare_memory(main)
        return isolate

    def _compare_memory(self, main: ModuleType | type[Any]) -> None:
        """Note what an object's module still holds, where an isolate of it was lost."""
        memory = self.memories.get(self.name)
        if memory is None:
            memory = self.memories[self.name] = Memory(main)
        if self._was_loaded:
            self.kept.update(dict.fromkeys(memory.changed()))
        self._was_loaded = True

    def _retire(self) -> None:
        isolate, self._isolate = self._isolate, None
        self._retired = [old for old in self._retired if old.invocations]
        if isolate is not None and isolate.invocations:
            self._retired.append(isolate)

    def _kill(self) -> None:
        self._retire()
        retired, self._retired = self._retired, []
        for isolate in retired:
            isolate.kill()


class Isolate:
    """One incarnation of a Worker's code, once it is loaded."""

    script: Script

    def __init__(self, worker: Worker, bundle: Bundle) -> None:
        self.worker = worker
        self.kernel = worker.kernel
        self.space = ModuleSpace(bundle, hidden=hidden_from(worker.config.flags))
        # In the order they started.
        self.invocations: dict[Invocation, None] = {}

    @cached_property
    def exports(self) -> HostObject | None:
        """What `ctx.exports` is."""
        exporter = self.worker.exporter
        return None if exporter is None else exporter(self.script)

    def load(self) -> None:
        """Run the main module; raises `WorkerLoadError`."""
        self.script = self.kernel.inside(self._load)

    def handler(
        self, event: str, invocation: Invocation, script: Script | None = None
    ) -> Callable[..., Any]:
        """Return the handler of `event` on a fresh instance; raises what its `__init__` raises.

        `script` is what the event sees of the module, where it is not for the default entrypoint.
        """
        script = script or self.script
        ctx = ExecutionContext(invocation, patched=script.default is not None)
        return script.bind(event, wrap_host(ctx), raw_env())

    def kill(self) -> None:
        """Cut the power: no line of this isolate runs again."""
        for invocation in list(self.invocations):
            invocation.kill()

    def _load(self) -> Script:
        loading = Invocation(self, "import", subject=f"worker {self.worker.name}")
        context = Context()
        context.run(SCOPE.set, loading)
        previous = finder.space
        finder.activate(self.space)
        try:
            main = context.run(self._import)
            loading.forbid_work_in_global_scope()
            return discover(main, self.worker.config.flags)
        except BaseException as error:
            if is_foreign(error):
                raise
            raise self._explain(error) from error
        finally:
            finder.activate(previous)
            loading.end()

    def _import(self) -> ModuleType | type[Any]:
        main = self.worker.config.main
        return self.space.import_main(main) if isinstance(main, Path) else main

    def _explain(self, error: BaseException) -> WorkerLoadError:
        main, source = self.worker.config.main, self.worker.config.source
        if isinstance(main, Path) and not main.is_file():
            # As when it was moved while a server runs: of its lines there are none.
            named = "" if source is None else f", the `main` of {place_of_main(source, main)}"
            gone = f"there is no file {main}{named}"
            return WorkerLoadError(f"the Worker {self.worker.name!r} could not be loaded: {gone}")
        name = main if isinstance(main, Path) else getattr(main, "__name__", main)
        place = _place(error, main)
        lines = [
            f"the Worker {self.worker.name!r} could not be loaded from {name}: "
            f"{type(error).__name__}: {_text(error)}{f' ({place})' if place else ''}",
            *getattr(error, "__notes__", ()),
        ]
        return WorkerLoadError("\n".join(lines))


def _text(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _place(error: BaseException, main: object) -> str:
    """The line on which loading failed, as `file:line`."""
    where = raised_at(error)
    if isinstance(error, SyntaxError) and error.filename:
        where = Location(error.filename, error.lineno or 1)
    if where is None:
        return f"{main}:1" if isinstance(main, Path) else ""
    return f"{where.file}:{where.line}"


def pending_calls(worker: Worker, *, besides: type[Invocation] | None = None) -> list[str]:
    """What the Worker's invocations wait for, one line each; those of a type may be left out."""
    lines = []
    for invocation in worker.running:
        if besides is not None and isinstance(invocation, besides):
            continue
        for task in invocation.tasks:
            where = waiting_at(task.get_coro())
            if where is not None and not task.done():
                lines.append(f"{invocation.subject} waits at {invocation.place(where)}")
    return lines
