"""What was done on control pages, as calls of the fixture.

A page's action has a test's call where one does the same. What has none (a pull of a queue's
messages, a change of its settings) is left out of a test, and said to be; a replay repeats it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote

from emulator.recording.literals import Code, call, filled, json_value, octets, text, written
from emulator.recording.mocks import MOST_BODY
from emulator.server.control import PREFIX, TRIGGERS
from emulator.server.rest.queue_shapes import queue_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.config import Settings
    from emulator.recording.entries import Action

_DASHBOARD: Final = f"{PREFIX}/dashboard/"
_ACCOUNTS: Final = f"{PREFIX}/client/v4/accounts/"
_EMAIL: Final = "/cdn-cgi/handler/email"
_REJECTED: Final = b"Worker rejected email"
_VERBS: Final = ("pause", "resume", "terminate", "restart")


class NoCall(Exception):
    """There is no call of the fixture that does it; the text says why."""


class Actions:
    """Turns actions into lines of a test; the settings say what ids stand for."""

    def __init__(self, settings: Settings, variables: Mapping[str, str]) -> None:
        self._queues = {queue_id(queue.name): queue.name for queue in settings.queues}
        self._databases = {
            database.id: database.binding
            for worker in settings.workers
            for database in worker.databases
        }
        self._variables = variables

    def lines(self, action: Action) -> list[str]:
        """Return the statements; raises `NoCall`."""
        if action.missing:
            raise NoCall(f"its body is {action.missing}")
        if len(action.body) > MOST_BODY:
            raise NoCall(f"its body has {len(action.body):,} bytes, and a test holds {MOST_BODY:,}")
        if _is_refused(action):
            raise NoCall(f"it was refused, with {_status(action)}")
        try:
            if action.path == _EMAIL:
                return self._email(action)
            if _triggers(action):
                return self._scheduled(action)
            if action.path == f"{PREFIX}/clock":
                return self._awaited("advance", self._value(_json(action)["advance"]))
            if action.path == f"{PREFIX}/faults":
                clears = action.method == "DELETE"
                return self._plain("faults.clear") if clears else self._arm(action)
            if action.path.startswith(_DASHBOARD):
                return self._dashboard(action, action.path.removeprefix(_DASHBOARD))
            if action.path.startswith(_ACCOUNTS):
                path = action.path.removeprefix(_ACCOUNTS).partition("/")[2]
                return self._rest(action, [unquote(part) for part in path.split("/")])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NoCall(f"it cannot be read: {error!r}") from None
        raise NoCall("the fixture has no call for it")

    # -- what both ways come to ------------------------------------------------------------------

    def _value(self, value: Any) -> Code:
        return json_value(value, self._variables)

    def _awaited(self, name: str, *args: Code, **named: Code | None) -> list[str]:
        return written("await ", call(f"emulator.{name}", *args, **named), indent=1)

    def _plain(self, name: str, *args: Code, **named: Code | None) -> list[str]:
        return written("", call(f"emulator.{name}", *args, **named), indent=1)

    def _scheduled(self, action: Action) -> list[str]:
        query = parse_qs(action.query)
        named: dict[str, Code | None] = {}
        if "cron" in query:
            named["cron"] = text(query["cron"][0])
        if query.get("time"):
            ms = int(query["time"][0])
            rest = f" + timedelta(milliseconds={ms % 1000})" if ms % 1000 else ""
            named["time"] = f"datetime.fromtimestamp({ms // 1000}, UTC){rest}"
        if "worker" in query:
            named["worker"] = text(query["worker"][0])
        good = _status(action) < 400
        lines = written("outcome, _ = await ", call("emulator.scheduled", **named), indent=1)
        return [*lines, f'    assert outcome {"==" if good else "!="} "ok"']

    def _email(self, action: Action) -> list[str]:
        query = parse_qs(action.query)
        names = (("sender", "from"), ("to", "to"), ("worker", "worker"))
        named = {name: text(query[key][0]) for name, key in names if key in query}
        try:
            mail = filled(action.body.decode(), self._variables)
        except UnicodeDecodeError:
            mail = octets(action.body)
        lines = written("receipt = await ", call("emulator.email", mail, **named), indent=1)
        status, body = _status(action), action.answer.body if action.answer is not None else None
        rejects = status == 400 and (body or b"").startswith(_REJECTED)
        outcome = f'    assert receipt.outcome {"==" if status < 500 else "!="} "ok"'
        return [*lines, outcome, f"    assert receipt.rejected is {'not ' * rejects}None"]

    def _send(self, queue: str, body: Any, kind: str, delay: int | None, count: int) -> list[str]:
        name = f"queues[{text(queue)}].send"
        given = text(kind) if kind != "json" else None
        seconds = str(int(delay)) if delay else None
        lines = self._awaited(name, self._value(body), contentType=given, delaySeconds=seconds)
        if count == 1:
            return lines
        return [f"    for _ in range({count}):", *(f"    {line}" for line in lines)]

    # -- the dashboard ---------------------------------------------------------------------------

    def _dashboard(self, action: Action, path: str) -> list[str]:
        asked = _json(action)
        verbs: dict[str, Callable[[], list[str]]] = {
            "clock/advance": lambda: self._awaited("advance", self._value(asked["duration"])),
            "clock/next": list,  # the time of what comes next passes it
            "faults/arm": lambda: self._arm(action),
            "faults/clear": lambda: self._plain("faults.clear"),
            "workers/strike": lambda: self._awaited(_one_of(asked["what"], "crash evict restart")),
            "queue/send": lambda: self._dashboard_send(asked),
            "kv/put": lambda: self._put(
                asked["id"], asked["key"], asked.get("value", ""), asked.get("ttl")
            ),
            "kv/delete": lambda: self._plain(f"kv[{text(asked['id'])}].delete", text(asked["key"])),
            "d1/execute": lambda: self._sql(asked["id"], asked["sql"]),
            "r2/delete": lambda: self._plain(
                f"r2[{text(asked['bucket'])}].delete", text(asked["key"])
            ),
            "workflow/create": lambda: self._create(
                asked["workflow"], asked.get("id") or _made(action, "id"), _parsed(asked, "params")
            ),
        }
        if path in verbs:
            return verbs[path]()
        kind, _, verb = path.partition("/")
        if kind == "queue" and verb in ("purge", "pause", "resume"):
            return self._plain(f"queues[{text(asked['queue'])}].{verb}")
        if kind == "object" and verb in ("run-alarm", "evict", "crash"):
            object_ = f"durable_objects[{text(asked['binding'])}].{verb.replace('-', '_')}"
            return self._awaited(object_, text(asked["id"]))
        if kind == "instance":
            return self._instance(verb, asked)
        raise NoCall("the fixture has no call for it")

    def _dashboard_send(self, asked: Any) -> list[str]:
        kind = asked.get("type", "json")
        body = asked.get("body", "") if kind == "text" else _parsed(asked, "body")
        delay, count = int(asked.get("delay") or 0), int(asked.get("count") or 1)
        return self._send(asked["queue"], body, kind, delay, count)

    def _arm(self, action: Action) -> list[str]:
        armed = _answered(action).get("armed")
        if not armed:
            raise NoCall("it was refused")
        return self._plain("faults.add", *(text(fault) for fault in armed))

    def _put(self, namespace: str, key: str, value: str, ttl: Any) -> list[str]:
        seconds = str(int(ttl)) if ttl else None
        name = f"kv[{text(namespace)}].put"
        return self._plain(name, text(key), self._value(value), expiration_ttl=seconds)

    def _sql(self, id: str, sql: str, params: Sequence[Any] = ()) -> list[str]:
        name = f"d1[{text(self._databases[id])}].execute"
        return self._plain(name, text(sql), *(self._value(param) for param in params))

    def _create(self, workflow: str, id: str | None, params: Any) -> list[str]:
        given = None if params is None else self._value(params)
        name = f"workflows[{text(workflow)}].create"
        return self._awaited(name, id=text(id) if id else None, params=given)

    def _instance(self, verb: str, asked: Any) -> list[str]:
        get = call(f"emulator.workflows[{text(asked['workflow'])}].get", text(asked["id"]))
        if verb == "event":
            payload = _parsed(asked, "payload")
            given = () if payload is None else (self._value(payload),)
            code = call("instance.send_event", text(asked["type"]), *given)
        elif verb == "terminate" and asked.get("rollback"):
            code = call("instance.terminate", rollback="True")
        elif verb in (*_VERBS, "delete") and not asked.get("step"):
            code = call(f"instance.{verb}")
        else:
            raise NoCall("the fixture has no call for it")
        got = written("instance = await ", get, indent=1)
        return [*got, *written("await ", code, indent=1)]

    # -- the REST API ----------------------------------------------------------------------------

    def _rest(self, action: Action, path: list[str]) -> list[str]:
        match action.method, path:
            case "POST", ["queues", id, "messages"]:
                return self._push(id, _json(action), None)
            case "POST", ["queues", id, "messages", "batch"]:
                given = _json(action)
                delay = given.get("delay_seconds")
                pushed = [self._push(id, item, delay) for item in given["messages"]]
                return [line for lines in pushed for line in lines]
            case "POST", ["queues", id, "purge"]:
                return self._plain(f"queues[{text(self._queues[id])}].purge")
            case "PATCH", ["queues", id] if _only(_json(action).get("settings"), "delivery_paused"):
                verb = "pause" if _json(action)["settings"]["delivery_paused"] else "resume"
                return self._plain(f"queues[{text(self._queues[id])}].{verb}")
            case "POST", ["workflows", name, "instances"]:
                given = _json(action) if action.body else {}
                params = given.get("params")
                params = json.loads(params) if isinstance(params, str) else params
                made = (_answered(action).get("result") or {}).get("id")
                return self._create(name, given.get("instance_id") or made, params)
            case "PATCH", ["workflows", name, "instances", id, "status"]:
                given = _json(action)
                if given.get("from"):
                    raise NoCall("the fixture has no call for it")
                asked = {"workflow": name, "id": id, "rollback": given.get("rollback")}
                return self._instance(_one_of(given["status"], " ".join(_VERBS)), asked)
            case "POST", ["workflows", name, "instances", id, "events", kind]:
                asked = {"workflow": name, "id": id, "type": kind}
                payload = action.body.decode()
                return self._instance("event", {**asked, "payload": payload})
            case "PUT", ["storage", "kv", "namespaces", id, "values", *key] if not _form(action):
                ttl = parse_qs(action.query).get("expiration_ttl", [None])[0]
                return self._put(id, "/".join(key), action.body.decode(), ttl)
            case "DELETE", ["storage", "kv", "namespaces", id, "values", *key]:
                return self._plain(f"kv[{text(id)}].delete", text("/".join(key)))
            case "PUT", ["event_notifications", "r2", name, "configuration", "queues", id]:
                rules = _json(action)["rules"]
                return [line for rule in rules for line in self._notify(name, id, rule)]
            case "DELETE", ["event_notifications", "r2", name, "configuration", "queues", id] if (
                not action.body
            ):
                return self._plain(f"r2[{text(name)}].stop_notifying", text(self._queues[id]))
            case "POST", ["d1", "database", id, "query" | "raw"] if "sql" in _json(action):
                given = _json(action)
                return self._sql(id, given["sql"], given.get("params") or [])
        raise NoCall("the fixture has no call for it")

    def _push(self, id: str, item: Any, delay: int | None) -> list[str]:
        own = item.get("delay_seconds", delay)
        kind = item.get("content_type", "json")
        return self._send(self._queues[id], item["body"], kind, own, 1)

    def _notify(self, bucket: str, id: str, rule: Any) -> list[str]:
        named: dict[str, Code | None] = {"event_types": self._value(rule["actions"])}
        for name in ("prefix", "suffix"):
            named[name] = text(rule[name]) if rule.get(name) else None
        return self._plain(f"r2[{text(bucket)}].notify", text(self._queues[id]), **named)


def _status(action: Action) -> int:
    return 200 if action.answer is None else action.answer.status


def _is_refused(action: Action) -> bool:
    """Whether nothing was done; a handler that fails, or rejects a mail, has run."""
    if action.answer is None or action.answer.status < 400:
        return False
    has_run = action.answer.status == 500 or (action.answer.body or b"").startswith(_REJECTED)
    return not (_triggers(action) and has_run)


def _triggers(action: Action) -> bool:
    return action.path in TRIGGERS


def _json(action: Action) -> Any:
    return json.loads(action.body)


def _answered(action: Action) -> Any:
    body = b"" if action.answer is None else action.answer.body
    found = json.loads(body) if body else {}
    return found if isinstance(found, dict) else {}


def _made(action: Action, name: str) -> str | None:
    value = _answered(action).get(name)
    return value if isinstance(value, str) else None


def _parsed(asked: Any, name: str) -> Any:
    given = asked.get(name) or ""
    return json.loads(given) if given.strip() else None


def _one_of(value: object, words: str) -> str:
    if value not in words.split():
        raise NoCall(f"it asks for {value!r}")
    return str(value)


def _only(value: object, name: str) -> bool:
    return isinstance(value, dict) and list(value) == [name]


def _form(action: Action) -> bool:
    kind = dict(action.headers).get("content-type", "")
    return kind.startswith("multipart/") or "expiration=" in action.query
