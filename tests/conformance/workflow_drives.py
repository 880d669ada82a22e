"""How the Workers of the recordings of Workflows were driven, for their twins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from driving import Run

    Drive = Callable[[Run], Awaitable[Any]]


async def go(run: Run) -> Any:
    """Create `i1`, and wait for its end."""
    return {"create": await run.op("create", id="i1"), "final": await run.done("i1")}


def end(limit: float = 20) -> Drive:
    """As `go`, of which the recording has the end only."""

    async def drive(run: Run) -> Any:
        await run.op("create", id="i1")
        return await run.done("i1", limit)

    return drive


def go_then(wait: float, *, looking: bool = True) -> Drive:
    """As `go`, then some time, and perhaps another look."""

    async def drive(run: Run) -> Any:
        found = await go(run)
        await run.sleep(wait)
        return {"g": found, "later": await run.op("status", id="i1")} if looking else found

    return drive


def custom(*names: str) -> Drive:
    """Calls of the twin's own: of one the answer, of several each by its name."""

    async def drive(run: Run) -> Any:
        found = {name: await run.op("custom", fn=name) for name in names}
        await run.sleep(0.8)
        return found if len(names) > 1 else found[names[0]]

    return drive


def paused(
    before: float, during: float, *, resumed: str = "", seen: str = "", limit: float = 8
) -> Drive:
    """Pause `i1` after some time, resume it after some more, and wait for its end."""

    async def drive(run: Run) -> Any:
        out = {}
        await run.op("create", id="i1")
        await run.sleep(before)
        await run.op("pause", id="i1")
        await run.sleep(during)
        if seen:
            out[seen] = await run.op("status", id="i1")
        if resumed:
            out[resumed] = run.elapsed()
        await run.op("resume", id="i1")
        found = await run.done("i1", limit)
        return {**out, "f": found} if out else found

    return drive


def terminated(before: float, after: float) -> Drive:
    """Terminate `i1` after some time, and look at it."""

    async def drive(run: Run) -> Any:
        await run.op("create", id="i1")
        await run.sleep(before)
        out = {"t": await run.op("terminate", id="i1"), "s": await run.op("status", id="i1")}
        await run.sleep(after)
        return {**out, "later": await run.op("status", id="i1")}

    return drive


def sends(before: float, type: str, payload: Any, *, seen: bool = False) -> Drive:
    """Send `i1` an event after some time, and wait for its end."""

    async def drive(run: Run) -> Any:
        await run.op("create", id="i1")
        await run.sleep(before)
        out = {"mid": await run.op("status", id="i1")} if seen else {}
        out["s"] = await run.op("sendEvent", id="i1", ev={"type": type, "payload": payload})
        return {**out, "f": await run.done("i1")}

    return drive


# -- instances -------------------------------------------------------------------------------------


async def control_on_finished(run: Run) -> Any:
    for key in ("ok", "err"):
        await run.op("create", id=key, params={"k": key})
    for key in ("t1", "run"):
        await run.op("create", id=key, params={"k": "slow"})
    await run.sleep(0.4)
    out = {"terminate_running": await run.op("terminate", id="t1")}
    await run.sleep(0.1)
    for id in ("ok", "err", "t1"):
        for op in ("pause", "resume", "terminate"):
            out[f"{op}_{id}"] = await run.op(op, id=id)
            out[f"{op}_{id}_status"] = (await run.op("status", id=id))["ok"]["status"]
    out["resume_running"] = await run.op("resume", id="run")
    out["pause_running"] = await run.op("pause", id="run")
    await run.sleep(0.1)
    out["pause_paused"] = await run.op("pause", id="run")
    out["terminate_paused"] = await run.op("terminate", id="run")
    out["run_status"] = (await run.op("status", id="run"))["ok"]["status"]
    for op in ("pause", "resume", "terminate", "restart"):
        out[f"{op}_unknown"] = await run.op(op, id="nope")
    return out


async def create_batch(run: Run) -> Any:
    async def create(*items: dict[str, Any]) -> Any:
        return await run.op("createBatch", list=list(items))

    out = {"three": await create({"id": "a", "params": {"n": 1}}, {"id": "b"}, {})}
    await run.sleep(0.4)
    out["dups"] = await create({"id": "c", "params": 1}, {"id": "c", "params": 2})
    out["existing"] = await create({"id": "a", "params": {"n": 9}}, {"id": "d"})
    out["empty"] = await create()
    out["invalid"] = await create({"id": "e"}, {"id": "not ok"})
    await run.sleep(0.3)
    out["e_status"] = await run.op("status", id="e")
    out["n101"] = await create(*({"id": f"n{number}"} for number in range(101)))
    out["notarray"] = await run.op("createBatch", list=5)
    await run.sleep(0.6)
    return out


_IDS: Final[Mapping[str, Any]] = {
    "empty": "",
    "space": "a b",
    "len100": "x" * 100,
    "len101": "x" * 101,
    "dash": "-a",
    "underscore": "_a",
    "dot": "a.b",
    "slash": "a/b",
    "unicode": "é",
    "colon": "a:b",
    "num": 5,
    "nul": None,
    "bool": True,
}


async def invalid_ids(run: Run) -> Any:
    out = {key: await run.op("create", id=id) for key, id in _IDS.items()}
    out["raw_str"] = await run.op("create", raw="str")
    out["raw_unknown_key"] = await run.op("create", raw={"id": "uk", "foo": 1})
    return out


async def reserved_ids(run: Run) -> Any:
    ids = ("batch", "terminate", "terminateAll", "cf_" + "a" * 64)
    return {id: await run.op("create", id=id) for id in ids}


async def no_options(run: Run) -> Any:
    id = (await run.op("create", none=True))["ok"]["id"]
    is_uuid = id[8] == id[13] == id[18] == id[23] == "-" and id[14] == "4"
    return {"id_length": len(id), "is_uuid": is_uuid, "f": await run.done(id)}


_FORMS: Final[Mapping[str, Any]] = {
    "count2": {"count": 2, "params": {"a": 1}},
    "count0": {"count": 0},
    "count101": {"count": 101},
    "inst": {"instances": [{"id": "x"}, {"id": "x"}, {}]},
    "inst_existing": {"instances": [{"id": "x"}, {"id": "y"}]},
    "inst_empty": {"instances": []},
    "inst_bad": {"instances": [{"id": "a b"}]},
    "inst_reserved": {"instances": [{"id": "batch"}]},
    "junk": {},
    "str": "x",
}


async def batch_forms(run: Run) -> Any:
    out = {}
    for key, arg in _FORMS.items():
        out[key] = await run.op("custom", fn="cb", arg=arg)
        await run.sleep(0.06)
    return out


async def delete_batch(run: Run) -> Any:
    for id in ("a", "b"):
        await run.op("create", id=id)
        await run.done(id)
    lists = {"mixed": ["a", "nope", "a"], "empty": [], "invalid": ["b c"]}
    out = {key: await run.op("custom", fn="db", arg=arg) for key, arg in lists.items()}
    out["none"] = await run.op("custom", fn="db")
    return {**out, "object": await run.op("custom", fn="db", arg={"instances": ["b"]})}


async def restart_complete(run: Run) -> Any:
    await run.op("create", id="i1", params={"n": 1})
    out = {"f1": await run.done("i1")}
    await run.sleep(1)
    out["rs"] = await run.op("restart", id="i1")
    out["s"] = await run.op("status", id="i1")
    await run.sleep(0.3)
    return {**out, "f2": await run.done("i1")}


async def restart_errored(run: Run) -> Any:
    await run.op("create", id="i1")
    out = {"f1": await run.done("i1"), "rs": await run.op("restart", id="i1")}
    await run.sleep(0.4)
    return {**out, "f2": await run.done("i1")}


def restarted(before: float, first: str = "") -> Drive:
    """Restart `i1` after some time, and after it was terminated, if that comes first."""

    async def drive(run: Run) -> Any:
        await run.op("create", id="i1")
        await run.sleep(before)
        if first:
            await run.op(first, id="i1")
        out = {"rs": await run.op("restart", id="i1")}
        await run.sleep(0.1)
        out["s"] = await run.op("status", id="i1")
        return {**out, "f": await run.done("i1")}

    return drive


async def status_shapes(run: Run) -> Any:
    async def looks(suffix: str, *ids: str) -> dict[str, Any]:
        return {f"{id}_{suffix}": await run.op("status", id=id) for id in ids}

    kinds = ("step", "sleep", "wait", "err", "ok", "retry")
    out = {}
    for id in kinds:
        out[f"{id}_create"] = await run.op("create", id=id, params={"k": id})
        out |= await looks("now", id)
    for id in ("pz", "tm"):
        await run.op("create", id=id, params={"k": "sleep"})
    await run.sleep(0.5)
    out |= await looks("mid", *kinds)
    await run.op("pause", id="pz")
    await run.op("terminate", id="tm")
    await run.sleep(0.1)
    out["paused"] = await run.op("status", id="pz")
    out["terminated"] = await run.op("status", id="tm")
    await run.sleep(1.5)
    return out | await looks("end", "step", "sleep", "wait", "retry")


async def handle_shapes(run: Run) -> Any:
    await run.op("create", id="i1", params={"x": 1})
    await run.sleep(0.3)
    return await run.op("custom", fn="shape")


async def two_instances(run: Run) -> Any:
    await run.op("createBatch", list=[{"id": "x"}, {"id": "y"}])
    return [await run.done("x"), await run.done("y")]


async def durability(run: Run) -> Any:
    def tell(kind: str) -> None:
        run.events.append({"t": run.elapsed(), "kind": kind})

    await run.op("create", id="i1")
    await run.sleep(0.7)
    out = {"before": await run.op("status", id="i1")}
    tell("-- disposed")
    await run.emulator.restart()
    await run.sleep(0.9)
    tell("-- restarted")
    out["after_restart"] = await run.op("status", id="i1")
    await run.sleep(3.5)
    out["after_3_5s"] = await run.op("status", id="i1")
    out["sendEvent"] = await run.op("sendEvent", id="i1", ev={"type": "x", "payload": 1})
    await run.sleep(2.5)
    return {**out, "after_event_2_5s": await run.op("status", id="i1")}


# -- steps, values and events ----------------------------------------------------------------------


async def run_output(run: Run) -> Any:
    created = await run.op("create", id="i1", params={"hello": "world", "n": 1})
    now = await run.op("status", id="i1")
    return {"c": created, "s0": now, "final": await run.done("i1")}


async def event_to_finished(run: Run) -> Any:
    for key in ("ok", "err", "term"):
        await run.op("create", id=key, params={"k": key})
    await run.sleep(0.5)
    await run.op("terminate", id="term")
    out = {}
    for key in ("ok", "err", "term", "nope"):
        out[key] = await run.op("sendEvent", id=key, ev={"type": "go", "payload": 1})
        await run.sleep(0.1)
        out[f"{key}_after"] = await run.op("status", id=key)
    return out


async def event_types(run: Run) -> Any:
    await run.op("create", id="i1")
    sent = [
        await run.op("sendEvent", id="i1", ev={"type": kind, "payload": f"p{len(kind)}"})
        for kind in ("", "x" * 100, "x" * 101, "a b", "a.b", "☃", "-a")
    ]
    return {"s": sent, "f": await run.done("i1")}


async def same_name_twice(run: Run) -> Any:
    await run.op("create", id="i1")
    for payload in (1, 2):
        await run.sleep(0.2)
        await run.op("sendEvent", id="i1", ev={"type": "go", "payload": payload})
    return await run.done("i1")


async def event_at_once(run: Run) -> Any:
    found = await run.op("custom", fn="ce")
    return {"o": found, "f": await run.done("i1", 4)}


async def payload_types(run: Run) -> Any:
    await run.op("create", id="i1")
    sent = await run.op("custom", fn="ev")
    return {"s": sent, "f": await run.done("i1")}


async def event_while_paused(run: Run) -> Any:
    await run.op("create", id="i1")
    await run.sleep(0.3)
    await run.op("pause", id="i1")
    await run.sleep(0.2)
    event = {"type": "go", "payload": "while paused"}
    out = {"s": await run.op("sendEvent", id="i1", ev=event)}
    await run.sleep(0.3)
    out["mid"] = await run.op("status", id="i1")
    out["rs"] = await run.op("resume", id="i1")
    return {**out, "f": await run.done("i1", 6)}


async def sleeps(run: Run) -> Any:
    await run.op("create", id="i1")
    await run.sleep(0.25)
    return {"mid": await run.op("status", id="i1"), "f": await run.done("i1")}


async def params_function(run: Run) -> Any:
    created = await run.op("custom", fn="fn")
    await run.sleep(0.5)
    return {"c": created, "s": await run.op("status", id="fn")}


async def params_large(run: Run) -> Any:
    out = {}
    for size in (900000, 1048577, 1500000, 2500000):
        out[str(size)] = await run.op("create", id=f"p{size}", params={"s": "x" * size})
        await run.sleep(0.5)
        out[f"{size}_status"] = await run.op("status", id=f"p{size}")
    return out


def each_kind(*kinds: str, limit: float) -> Drive:
    """An instance of each kind; how it ended."""

    async def drive(run: Run) -> Any:
        out = {}
        for kind in kinds:
            await run.op("create", id=kind, params={"k": kind})
            status = (await run.done(kind, limit))["status"]
            output = status["ok"].get("output")
            if isinstance(output, str) and len(output) > 100:
                status["ok"]["output"] = f"LEN {len(output)}"
            out[kind] = status
        return out

    return drive


async def large_results(run: Run) -> Any:
    """Of long texts the recording has the length."""
    await run.op("create", id="i1")
    found = await run.done("i1", 30)
    outputs = found["status"]["ok"].get("__LOCAL_DEV_STEP_OUTPUTS", [])
    outputs[:] = [f"LEN {len(output)}" for output in outputs]
    return found


async def large_result(run: Run) -> Any:
    """Of a long text the recording has the beginning."""
    await run.op("create", id="i1")
    found = await run.done("i1", 5)
    outputs = found["status"]["ok"].get("__LOCAL_DEV_STEP_OUTPUTS", [])
    outputs[:] = [f"{text[:40]}... [string of {len(text)} chars]" for text in outputs]
    return found


async def rollback_terminate(run: Run) -> Any:
    await run.op("create", id="i1")
    await run.sleep(0.4)
    found = await run.op("terminate", id="i1", args=[{"rollback": True}])
    await run.sleep(0.3)
    return {"t": found, "s": await run.op("status", id="i1")}
