"""A recording as a pytest test: the same things at the same instants, and what was answered.

The test has the recorded statuses, and the bodies of answers that are short text, as its
assertions: it passes as long as the code does what it did. Each thing that came in is a call of the
fixture; the outside is respx routes with the recorded answers, and how often each was asked. What
cannot be had in a test is left out, said in a comment, and told to the caller.

What was still on its way when the next thing came is started as a task, and awaited where its
answer had come. Requests that came in together are tasks, all of them, started one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import moment
from emulator.recording import literals
from emulator.recording.actions import Actions, NoCall
from emulator.recording.entries import Action, Message, Reload, Request, Restart, Socket, raised
from emulator.recording.literals import Code, call, comment, filled, name_of, text, written
from emulator.recording.masking import has_secret
from emulator.recording.mocks import MOST_BODY, NEVER, content_of, headers_of, json_of, routes
from emulator.recording.seeding import seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from emulator.config import Settings
    from emulator.recording.entries import Answer, Entry, Recording
    from emulator.recording.holdings import Holdings
    from emulator.recording.mocks import Route

MOST_ASSERTED: Final = 2_048
"""The largest body of an answer, in bytes, that a test asserts."""

_MICROSECONDS: Final = 1_000_000
# What httpx and the emulator write themselves.
_OWN: Final = ("host", "content-length", "connection", "transfer-encoding")
_OF_HANDSHAKE: Final = ("upgrade", "sec-websocket-key", "sec-websocket-version",
                        "sec-websocket-extensions", "sec-websocket-protocol")  # fmt: skip
_UNTIL: Final = '''async def until(emulator, seconds):
    """Let time pass up to so many seconds after the start."""
    passed = START + timedelta(seconds=seconds) - emulator.now
    await emulator.advance(max(passed, timedelta()))'''

_NEVER: Final = f'''async def {NEVER}(request):
    """The recording ends before this answer came."""
    await asyncio.Event().wait()'''


@dataclass(frozen=True, slots=True)
class Printed:
    """A test module, and what it lacks of the recording."""

    code: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """Lines of the test, and where they belong."""

    line: int
    at: int
    lines: list[str]
    # What passes the time by itself need not be waited for.
    waits: bool = True
    # Whether it starts a task, which begins when something is waited for; whether it waits for one.
    starts: bool = False
    joins: bool = False


@dataclass(slots=True)
class _Writer:
    recording: Recording
    settings: Settings
    problems: list[str] = field(default_factory=list)
    imports: dict[str, None] = field(default_factory=dict)
    variables: dict[str, str] = field(init=False)
    common: list[tuple[str, str]] = field(init=False)
    actions: Actions = field(init=False)
    # What sets up the state that there was.
    seeds: list[str] = field(default_factory=list)
    # What is said of the state, where nothing is wrong with it.
    beginning: str = ""

    def __post_init__(self) -> None:
        self.variables = _variables(self.settings)
        self.common = _common_headers(self.recording)
        self.actions = Actions(self.settings, self.variables)

    # -- what came in ----------------------------------------------------------------------------

    def steps(self, entry: Entry) -> Iterator[_Step]:
        """Yield what an entry is in the test."""
        match entry:
            case Request():
                yield from self._request(entry)
            case Socket():
                yield from self._socket(entry)
            case Action():
                yield from self._action(entry)
            case Reload():
                yield _Step(entry.line, entry.at, ["    await emulator.reload()"])
            case Restart():
                yield _Step(entry.line, entry.at, ["    await emulator.restart()"])

    def _left_out(self, entry: Request | Socket | Action, why: str) -> _Step:
        told = f"entry {entry.number}, {entry}, is left out: {why}"
        self.problems.append(told)
        return _Step(entry.line, entry.at, [f"    # {comment(told)}"], waits=False)

    def _request(self, entry: Request) -> Iterator[_Step]:
        if entry.missing:
            yield self._left_out(entry, f"its body is {entry.missing}")
            return
        if len(entry.body) > MOST_BODY:
            why = f"its body has {len(entry.body):,} bytes, and a test holds {MOST_BODY:,}"
            yield self._left_out(entry, why)
            return
        fetch = self._fetch(entry)
        if entry.answer is not None and not self._overlaps(entry):
            lines = written("response = await ", fetch, indent=1)
            yield _Step(entry.line, entry.at, [*lines, *self._asserts(entry.answer)])
            return
        self.imports["asyncio"] = None
        name = f"request_{entry.number}"
        started = written(f"{name} = asyncio.create_task(", fetch, ")", indent=1)
        if isinstance(fetch, literals.Group) and len(started) > 1:
            started = written(f"{name} = ", call("asyncio.create_task", fetch), indent=1)
        yield _Step(entry.line, entry.at, started, starts=True)
        if entry.left is not None:
            yield _Step(entry.left.line, entry.left.at, [f"    {name}.cancel()"])
        elif entry.answer is not None:
            lines = [f"    response = await {name}", *self._asserts(entry.answer)]
            yield _Step(entry.answer.line, entry.answer.at, lines, joins=True)

    def _overlaps(self, entry: Request | Action) -> bool:
        """Whether something else came in before the answer had come."""
        if entry.answer is None:
            return False
        before, after = entry.line, entry.answer.line
        if any(before < line < after for line in _lines(self.recording.entries)):
            return True
        return isinstance(entry, Request) and self._joins(entry)

    def _joins(self, entry: Request) -> bool:
        """Whether it came in together with a request before it."""
        return any(
            one.at == entry.at
            and one.line < entry.line
            and self.recording.together(one.line, entry.line)
            for one in self.recording.entries
            if isinstance(one, Request)
        )

    def _fetch(self, entry: Request) -> Code:
        kind = dict(entry.headers).get("content-type", "")
        content, implied = content_of(entry.body, kind, self.variables)
        return call(
            "emulator.fetch",
            filled(entry.url, self.variables),
            method=None if entry.method == "GET" else text(entry.method),
            **content,
            headers=self._headers(entry.headers, implied),
            worker=self._worker(entry.worker),
        )

    def _headers(self, headers: Sequence[tuple[str, str]], implied: Sequence[str]) -> Code | None:
        kept = [
            pair
            for pair in headers
            if pair[0] not in _OWN
            and pair not in self.common
            and not (pair[0] == "content-type" and pair[1] in implied)
        ]
        if not kept:
            return "HEADERS" if self.common else None
        return headers_of(kept, self.variables, spread="HEADERS" if self.common else "")

    def _worker(self, name: str) -> Code | None:
        return None if name == self.settings.workers[0].name else text(name)

    def _asserts(self, answer: Answer) -> list[str]:
        lines = [f"    assert response.status_code == {answer.status}"]
        body = answer.body
        if body is None or not body or len(body) > MOST_ASSERTED:
            return lines
        try:
            shown = body.decode()
        except UnicodeDecodeError:
            return [*lines, *_equal("response.content", literals.octets(body))]
        if has_secret(shown):
            return lines
        if (error := raised(body)) is not None:
            line = f"    assert response.text.rstrip().endswith({text(error)})"
            return [*lines, line] if len(line) <= literals.WIDTH else lines
        if "json" in answer.type and (value := json_of(shown)) is not None:
            return [*lines, *_equal("response.json()", value)]
        return [*lines, *_equal("response.text", text(shown))]

    # -- WebSockets ------------------------------------------------------------------------------

    def _socket(self, entry: Socket) -> Iterator[_Step]:
        name = f"socket_{entry.number}"
        protocols = dict(entry.headers).get("sec-websocket-protocol", "")
        headers = [pair for pair in entry.headers if pair[0] not in _OF_HANDSHAKE]
        wanted = [text(one.strip()) for one in protocols.split(",")] if protocols else []
        connect = call(
            "emulator.websocket",
            filled(entry.url, self.variables),
            headers=self._headers(headers, ()),
            subprotocols=literals.array(wanted) if wanted else None,
            worker=self._worker(entry.worker),
        )
        if entry.answer is None or entry.answer.status != 101:
            self.imports["emulator"] = None
            lines = ["    with pytest.raises(WebSocketRefused):"]
            yield _Step(entry.line, entry.at, lines + written("await ", connect, indent=2))
            return
        yield _Step(entry.line, entry.at, written(f"{name} = await ", connect, indent=1))
        for message in entry.sent:
            yield _Step(message.line, message.at, self._sent(name, message))
        for message in entry.received:
            yield _Step(message.line, message.at, self._received(name, message))

    def _sent(self, name: str, message: Message) -> list[str]:
        match message.data:
            case str():
                code = call(f"{name}.send", filled(message.data, self.variables))
            case bytes():
                code = call(f"{name}.send", literals.octets(message.data))
            case (1006 | 1001 | 1005, _):
                code = call(f"{name}.disconnect")
            case (number, reason):
                code = call(f"{name}.close", str(number), text(str(reason)))
        return written("await ", code, indent=1)

    def _received(self, name: str, message: Message) -> list[str]:
        if isinstance(message.data, tuple):
            return [f"    assert (await {name}.wait_closed()).code == {message.data[0]}"]
        if isinstance(message.data, bytes):
            return _equal(f"await {name}.receive()", literals.octets(message.data))
        if has_secret(message.data):
            return [f"    await {name}.receive()"]
        return _equal(f"await {name}.receive()", text(message.data))

    # -- actions ---------------------------------------------------------------------------------

    def _action(self, entry: Action) -> Iterator[_Step]:
        if entry.moves_clock and self._overlaps(entry):
            return  # time passes to what came while the clock moved
        try:
            yield _Step(entry.line, entry.at, self.actions.lines(entry))
        except NoCall as error:
            yield self._left_out(entry, str(error))

    # -- the module ------------------------------------------------------------------------------

    def module(self, name: str, mark: Mapping[str, Code]) -> str:
        """Return the whole test module."""
        recording = self.recording
        steps = [step for entry in recording.entries for step in self.steps(entry)]
        body: list[str] = []
        passed = recording.head.origin
        started: _Step | None = None
        for step in sorted(steps, key=lambda step: step.line):
            if step.waits and (step.at > passed or self._is_late(started, step)):
                passed = max(step.at, passed)
                body.append(self._until(passed))
                started = None
            body += step.lines
            if step.starts or step.joins:
                started = step if step.starts else None
        # A task that was started last has its turn then, too.
        if recording.last > passed or "asyncio" in self.imports:
            body.append(self._until(recording.last))
        if recording.idle and recording.ended is not None:
            body.append("    await emulator.settle()")
        found = routes(recording.outgoing, self.variables, self.problems)
        if any(route.waits for route in found):
            self.imports["asyncio"] = None
        return "\n".join(self._lines(name, mark, body, found)) + "\n"

    def _is_late(self, started: _Step | None, step: _Step) -> bool:
        """Whether a task that was started has to begin before this step does."""
        if started is None or step.joins:
            return False
        return not (step.starts and self.recording.together(started.line, step.line))

    def _until(self, at: int) -> str:
        self.imports["timedelta"] = None
        return f"    await until(emulator, {(at - self.recording.head.origin) / _MICROSECONDS!r})"

    def _lines(
        self, name: str, mark: Mapping[str, Code], body: list[str], found: list[Route]
    ) -> Iterator[str]:
        yield '"""What a development server was asked, and answered: from a recording of it."""'
        yield ""
        yield from self._imports(body, any(route.uses_httpx for route in found))
        yield from literals.written("START = ", _start(self.recording.head.origin))
        if self.common:
            pairs = [(text(key), filled(value, {})) for key, value in self.common]
            yield from literals.written("HEADERS = ", literals.table(pairs))
        yield from ("", "")
        if "timedelta" in self.imports:
            yield from (*_UNTIL.split("\n"), "", "")
        if any(route.waits for route in found):
            yield from (*_NEVER.split("\n"), "", "")
            # respx counts a call when it is answered.
            yield "@pytest.mark.respx(assert_all_called=False)"
        yield from literals.written("@", call("pytest.mark.emulator", **mark))
        yield f"async def {name}(emulator{', respx_mock' if found else ''}):"
        told = [*self._told(), *([self.beginning] if self.beginning else [])]
        yield from (f"    # {comment(problem)}" for problem in told)
        for route in found:
            yield from route.lines
        yield from self.seeds  # a message that is sent may be delivered at once
        if found or self.seeds:
            yield ""
        yield from body
        if any(not route.waits for route in found):
            yield ""
        counted = [route for route in found if not route.waits]
        yield from (f"    assert {route.name}.call_count == {route.count}" for route in counted)
        if not (body or found or self.seeds):
            yield "    pass"

    def _told(self) -> list[str]:
        return [problem for problem in self.problems if not problem.startswith("entry ")]

    def _imports(self, body: list[str], uses_httpx: bool) -> Iterator[str]:
        if "asyncio" in self.imports:
            yield "import asyncio"
        names = ["UTC", "datetime", *(["timedelta"] if _uses(body, self.imports) else [])]
        yield f"from datetime import {', '.join(names)}"
        yield ""
        if uses_httpx:
            yield "import httpx"
        yield "import pytest"
        if "emulator" in self.imports:
            yield "from emulator import WebSocketRefused"
        yield ""


def print_test(
    recording: Recording,
    settings: Settings,
    *,
    title: str,
    configs: Sequence[str],
    options: Mapping[str, Any],
    held: Holdings,
) -> Printed:
    """Return a recording as a test module.

    `configs` are the paths of the configs as the test is to name them, none for the nearest one;
    `options` are further arguments of the emulator; `held` is what products held at the start.
    """
    writer = _Writer(recording, settings)
    writer.seeds, lacking = seeds(recording, settings, writer.variables, held.stock)
    left = [what for product in lacking for what in held.words.get(product, [product])]
    if left:
        writer.problems.append(
            f"the recording began with state that this test does not set up: {'; '.join(left)}"
        )
    elif not writer.seeds:
        writer.beginning = "The recording began with empty state, as this test does."
    mark: dict[str, Code] = {}
    if configs:
        given = [text(config) for config in configs]
        mark["config"] = given[0] if len(given) == 1 else literals.array(given)
    mark["start"] = "START"
    mark["seed"] = str(recording.head.seed)
    mark |= {name: text(str(value)) for name, value in options.items()}
    code = writer.module(f"test_{name_of(title, 'recording')}", mark)
    return Printed(code, tuple(writer.problems))


def _uses(body: list[str], imports: Mapping[str, None]) -> bool:
    return "timedelta" in imports or any("timedelta(" in line for line in body)


def _equal(value: str, code: Code) -> list[str]:
    """An assertion; a text that is too long for its line has a name of its own."""
    lines = written(f"assert {value} == ", code, indent=1)
    if isinstance(code, str) and len(lines[0]) > literals.WIDTH:
        return [*literals.assigned("expected", code, indent=1), f"    assert {value} == expected"]
    return lines


def _start(origin: int) -> Code:
    at = moment(origin)
    parts = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond]
    return call("datetime", *map(str, parts), tzinfo="UTC")


def _variables(settings: Settings) -> dict[str, str]:
    """The expression for each variable that may have been masked."""
    found: dict[str, str] = {}
    for number, worker in enumerate(settings.workers):
        env = "emulator.env" if number == 0 else f"emulator.envs[{text(worker.name)}]"
        for name in worker.secrets:
            if name.isidentifier():
                found.setdefault(name, f"{env}.{name}")
    return {name: code for name, code in found.items() if '"' not in code}


def _common_headers(recording: Recording) -> list[tuple[str, str]]:
    """The headers that all requests have alike, where there are several requests."""
    asked = [one for one in recording.entries if isinstance(one, Request | Socket)]
    if len(asked) < 2:
        return []
    return [
        pair
        for pair in dict.fromkeys(asked[0].headers)
        if pair[0] not in (*_OWN, "content-type")
        and not has_secret(pair[1])
        and all(one.headers.count(pair) == 1 for one in asked)
        and all(sum(name == pair[0] for name, _ in one.headers) == 1 for one in asked)
    ]


def _lines(entries: Sequence[Entry]) -> Iterator[int]:
    """The lines at which something came in."""
    for entry in entries:
        yield entry.line
        if isinstance(entry, Socket):
            yield from (message.line for message in entry.sent)
