"""Every recording of Workflows, and where the emulator is not as recorded; see `deviations.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from comparer import BOTH, Deviation, Difference, NotApplicable, Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRODUCTION: Final[tuple[Profile, ...]] = ("production",)
_MINIFLARE: Final[tuple[Profile, ...]] = ("miniflare",)
_UNDEFINED: Final = {"$": "undefined"}
_OUTPUTS: Final = "result.final.status.ok.__LOCAL_DEV_STEP_OUTPUTS"

# -- reasons ---------------------------------------------------------------------------------------

_NULL: Final = "a Python step that returns nothing has the result null (workflows P9)"
_AGAIN: Final = "the SDK makes an exception of the same class again (workflows P12)"
_OWN_CLASS: Final = (
    "the error of an instance that an exception of Python ended is its class and its text "
    "(workflows P14 leaves it open)"
)
_ONE_INSTANT: Final = "what follows at once is sent at one instant of virtual time"
_TURNS: Final = "instances are independent; here those of one instant take turns as they were made"
_NO_RACE: Final = "an id is taken as soon as one `create` has it, also for one that runs beside it"
_NOT_CLONED: Final = (
    "what cannot be serialised is refused by `create`; the local runtime makes an instance that "
    "stays `queued` for ever"
)
_AT_ONCE: Final = "an operation takes no time, so that the instance has ended before the next one"
_PROTOTYPES: Final = "prototypes and freezing are not provided; `step` is the SDK's object"
_TEST_API: Final = "the local runtime's own test API is not provided; `emulator.workflows` is"
_THROWN: Final = "Python raises exceptions only, which have no properties of JavaScript"
_WEAK: Final = "`js.WeakMap` is not provided"
_PROXY: Final = "an object of a Python class is a proxy to JavaScript, whose class no text names"
_BIG: Final = (
    "Pyodide makes an int of a small BigInt, which goes back as a number: here a large one"
)
_OLD_NULL: Final = "Pyodide 0.26 makes None of null and of undefined"
_CTX: Final = "`ctx.abort` and `ctx.mapVirtualHost` are not provided"

_REAL: Final = "storing megabytes takes real time, and no virtual time"
_WAITING: Final = "production shows `waiting` while nothing runs (workflows I6)"
_NOT_FOUND: Final = "production's text (workflows B10)"
_KEPT: Final = "since 2026-05-14 production keeps the error (workflows E6)"
_DELAY: Final = "production's default delay is 10 s (workflows S5)"
_TYPES: Final = "production checks an event's type (workflows I23)"
_FINITE: Final = "production refuses events to an instance that has ended (workflows I24)"
_LARGE_PARAMS: Final = "production's limit of params is 1 MiB (workflows B15)"
_LARGE: Final = "production's limit of a step's result is 1 MiB (workflows O3)"
_UNITS: Final = (
    "unspecified for production (workflows D2): a unit that is none is refused, which the local "
    "runtime takes for milliseconds"
)
_ROLLED_BACK: Final = "production's status tells of the rollback (workflows I4, K6)"
_WOKEN: Final = (
    "production wakes what a loss interrupted (workflows X5), the local runtime does not"
)
_NO_HANG: Final = "a bug of the local engine (workflows C5), which production is not to have"
_JSON: Final = "the local runtime's status goes through JSON (workflows I5)"


# -- shapes of differences -------------------------------------------------------------------------


def _differ(
    reason: str, ours: Mapping[str, Any], profiles: tuple[Profile, ...] = BOTH
) -> tuple[Deviation, ...]:
    return tuple(Difference(where, value, reason, profiles) for where, value in ours.items())


def _production(reason: str, ours: Mapping[str, Any]) -> tuple[Deviation, ...]:
    return _differ(reason, ours, _PRODUCTION)


def _waiting(*wheres: str) -> tuple[Deviation, ...]:
    return _production(_WAITING, {f"result.{where}.ok.status": "waiting" for where in wheres})


def _error(name: str, message: str) -> dict[str, Any]:
    return {"err": {"name": name, "message": message}}


_NO_INSTANCE: Final = _error("WorkflowError", "(instance.not_found) Instance not found")


def _not_found(*wheres: str) -> tuple[Deviation, ...]:
    return _production(_NOT_FOUND, {f"result.{where}": _NO_INSTANCE for where in wheres})


def _nulls(where: str, *indexes: int) -> tuple[Deviation, ...]:
    return _differ(_NULL, {f"{where}.{index}": None for index in indexes}, _MINIFLARE)


def _preserved(message: str) -> tuple[Deviation, ...]:
    error = {"name": "NonRetryableError", "message": message}
    return _production(_KEPT, {"result.final.status.ok.error": error})


def _too_large_text(name: str) -> dict[str, str]:
    text = f"Step {name}-1 output is too large. Maximum allowed size is 1MiB."
    return {"name": "WorkflowInternalError", "message": text}


def _too_large(*sizes: int) -> tuple[Deviation, ...]:
    return _production(
        _LARGE, {f"events.0.out.{size}": {"err": _too_large_text(f"s{size}")} for size in sizes}
    )


def _caught(kind: str, message: str) -> dict[str, Any]:
    error = {"name": "DataCloneError", "message": message}
    return {"t": 0.0, "kind": f"caught {kind}", "e": error}


def _rolled_back(where: str, error: str | None = None) -> tuple[Deviation, ...]:
    rollback = {"outcome": "complete", "error": None}
    if error is not None:
        rollback = {"outcome": "failed", "error": {"name": "Error", "message": error}}
    return _production(_ROLLED_BACK, {f"result.{where}.ok.rollback": rollback})


_STEP_CONFIG: Final = (
    'Step config for "t1 Second" is in a invalid format. See '
    "https://developers.cloudflare.com/workflows/build/sleeping-and-retrying/"
)
_EVENT_TYPE: Final = _error("WorkflowError", "(workflow.invalid_event_type) Event type is invalid")
_ENDED: Final = _error(
    "WorkflowError",
    "(instance.in_finite_state) Instance reached a finite state, cannot send events to it",
)
_CLONE: Final = _error("DataCloneError", "function(){} could not be cloned.")
_NO_PROXY: Final = "[object Object] could not be cloned."
_EPOCH: Final = "1970-01-01T00:00:00.000Z"
_BAD_DURATION: Final = (
    "Duration must be a number or a string in format '{{number}} {{unit}}'"
    " where unit is second(s), minute(s), etc."
)
_TIMED_OUT: Final = _error("WorkflowTimeoutError", "Execution timed out after 400ms")

WORKFLOW_DEVIATIONS: Final[Mapping[str, tuple[Deviation, ...]]] = {
    # -- instances ---------------------------------------------------------------------------------
    "wf_control_on_finished": (
        *_not_found(*(f"{op}_unknown" for op in ("pause", "resume", "terminate", "restart"))),
    ),
    "wf_create_batch": _not_found("e_status"),
    "wf_create_invalid_ids": (),
    "wf_create_no_options": (),
    "wf_mf5_concurrent_duplicate": _differ(
        _NO_RACE,
        {
            "result.ok.1": _error(
                "Error",
                'WorkflowError: (instance.already_exists) Workflow instance with id "d" '
                "already exists",
            )
        },
        _MINIFLARE,
    )
    + _production(
        _NO_RACE,
        {
            "result.ok.1": _error(
                "WorkflowError",
                '(instance.already_exists) Workflow instance with id "d" already exists',
            )
        },
    ),
    "wf_mf5_create_batch_forms": (),
    "wf_mf5_delete_batch": (),
    "wf_mf5_reserved_ids": (),
    "wf_restart_complete": (
        *_differ(_AT_ONCE, {"result.s.ok.status": "complete", "result.s.ok.output": 1}, _MINIFLARE),
        *_differ(_AT_ONCE, {"result.s.ok.__LOCAL_DEV_STEP_OUTPUTS": [1]}, _MINIFLARE),
        *_production(
            _AT_ONCE, {"result.s.ok": {"status": "complete", "output": 1, "rollback": None}}
        ),
    ),
    "wf_restart_errored": (),
    "wf_restart_running": (),
    "wf_restart_terminated": _waiting("s"),
    "wf_terminate_during_sleep": (),
    "wf_terminate_during_step": (),
    "wf_status_immediately_in_worker": (),
    "wf_status_shapes": _waiting(
        *("sleep_now", "wait_now", "retry_now", "sleep_mid", "wait_mid", "retry_mid")
    ),
    "wf_handle_shapes": (
        *(
            NotApplicable(f"events.0.{field}", _PROTOTYPES)
            for field in ("proto", "ctor", "evFrozen")
        ),
        *_differ(
            _TEST_API,
            {
                "result.ok.wfProto": ["constructor", "create", "createBatch", "deleteBatch", "get"],
                "result.ok.instKeys": ["id"],
                "result.ok.instProto": [
                    *("constructor", "delete", "pause", "restart", "resume", "sendEvent"),
                    *("status", "subscribe", "terminate"),
                ],
            },
        ),
        *_production(
            "production's status (workflows I4)",
            {"result.ok.statusKeys": ["status", "output", "rollback"]},
        ),
    ),
    # -- steps -------------------------------------------------------------------------------------
    "wf_run_output": (),
    "wf_run_not_async_and_missing": (),
    "wf_ctx_contents": (
        *_nulls(_OUTPUTS, 0, 1, 2, 3),
        *_production(
            _DELAY, {f"events.{event}.ctx.config.retries.delay": 10000 for event in (0, 3, 4)}
        ),
    ),
    "wf_step_names": (),
    "wf_step_bad_args": (),
    "wf_step_limit": (),
    "wf_sleep_counts_as_step": (),
    "wf_sensitive_output": (),
    "wf_nested_steps": (),
    "wf_nested_inner_fails": (),
    "wf_nested_sleep": (),
    "wf_parallel_promise_all": (),
    "wf_parallel_one_fails": (),
    "wf_promise_race": (),
    "wf_step_not_awaited": (),
    "wf_two_instances_concurrent": (
        *_differ(
            _TURNS,
            {
                f"events.{2 * turn + second}.kind": f"{id}:{turn}"
                for turn in range(3)
                for second, id in enumerate("xy")
            },
        ),
        *_nulls("result.0.status.ok.__LOCAL_DEV_STEP_OUTPUTS", 0, 1, 2),
        *_nulls("result.1.status.ok.__LOCAL_DEV_STEP_OUTPUTS", 0, 1, 2),
    ),
    "wf_side_channel_waituntil": _differ(
        _CTX, {"events.0.keys": ["constructor", "passThroughOnException", "waitUntil"]}
    ),
    "wf_workflow_uses_queue": _nulls(_OUTPUTS, 0),
    "wf_throw_in_run": (),
    "wf_durability_restart": (
        *_production(
            _WOKEN,
            {
                "events.3": {"t": 0.7, "kind": "run"},
                "events.4": {"t": 1.6, "kind": "-- restarted"},
                "events.5": {"t": 2.0, "kind": "woke"},
                "result.after_3_5s.ok": {"status": "complete", "output": 1, "rollback": None},
            },
        ),
        *_production(_FINITE, {"result.sendEvent": _ENDED}),
        *_waiting("before", "after_restart"),
    ),
    # -- retries -----------------------------------------------------------------------------------
    "wf_retry_constant": (),
    "wf_retry_delay_string": (),
    "wf_retry_exponential": (),
    "wf_retry_limit_zero": (),
    "wf_retry_no_backoff_given": (),
    "wf_retry_then_success": (),
    "wf_retry_partial_config": (),
    "wf_dynamic_delay": (),
    "wf_step_timeout": (),
    "wf_duration_strings": _production(
        _UNITS, {"events.0.out.1 Second": _error("WorkflowFatalError", _STEP_CONFIG)}
    ),
    # -- errors ------------------------------------------------------------------------------------
    "wf_nonretryable_caught": (
        *_differ(_AGAIN, {"events.0.inst": True}),
        *_differ(
            _AGAIN,
            {"events.0.e": {"name": "NonRetryableError", "message": "bad input"}},
            _MINIFLARE,
        ),
    ),
    "wf_nonretryable_custom_name": (
        *_differ(
            _AGAIN,
            {
                f"{where}.msg.err": {"name": "NonRetryableError", "message": "fake"}
                for where in ("events.7.out", "result.status.ok.output")
            },
            _MINIFLARE,
        ),
        *_production(
            _DELAY,
            {
                f"events.{event}.t": at
                for event, at in enumerate((10.0, 30.0, 70.0, 150.0, 310.0, 310.0, 310.0), 1)
            },
        ),
        *_production(_DELAY, {"result.t": 310.0}),
    ),
    "wf_nonretryable_engine_flag": _preserved("bad input"),
    "wf_nonretryable_in_run": _preserved("top"),
    "wf_nonretryable_preserve_flag": (
        *_differ(_OLD_NULL, {"result.final.status.ok.output": _UNDEFINED}, _MINIFLARE),
        *_production(_OLD_NULL, {"result.final.status.ok.rollback": _UNDEFINED}),
    ),
    "wf_nonretryable_uncaught": _preserved("bad input"),
    "wf_failed_step_caught_continue": (),
    "wf_failed_step_status": _differ(
        _OWN_CLASS,
        {"result.final.status.ok.error": {"name": "MyErr", "message": "attempt 2"}},
    ),
    "wf_throw_in_step_kinds": (
        *(
            NotApplicable(f"events.0.out.{where}", _THROWN)
            for where in ("str", "obj", "type.keys", "custom.keys", "syncthrow.keys")
        ),
    ),
    "wf_replay_failed_step": (),
    "wf_pause_after_nonretryable_late": _production(
        _NO_HANG,
        {
            "result.s1.ok.status": "paused",
            "result.f": {
                "t": 3.5,
                "status": {"ok": {"status": "complete", "output": "end", "rollback": None}},
            },
            "events": [
                {"t": 0.0, "kind": "run"},
                {"t": 0.0, "kind": "exec f", "a": 1},
                {"t": 2.4, "kind": "run"},
                {"t": 3.5, "kind": "woke"},
            ],
        },
    ),
    # -- sleeps, events and pauses -----------------------------------------------------------------
    "wf_event_after_wait": _waiting("mid"),
    "wf_event_before_first_run": (),
    "wf_event_before_wait": (),
    "wf_event_never_caught": (),
    "wf_event_never_number": (),
    "wf_event_other_type": (),
    "wf_event_payload_types": (
        *_differ(_ONE_INSTANT, {f"events.0.out.{index}.timestamp.v": "T1" for index in (1, 2, 3)}),
    ),
    "wf_event_same_name_twice": (),
    "wf_event_to_finished": (
        *_not_found("nope", "nope_after"),
        *_production(_FINITE, {f"result.{id}": _ENDED for id in ("ok", "err", "term")}),
    ),
    "wf_event_types_names": (
        *_production(_TYPES, {f"result.s.{index}": _EVENT_TYPE for index in (0, 2, 3, 4, 5, 6)}),
        *_production(
            _TYPES,
            {
                f"{where}.{kind}": _EVENT_TYPE
                for where in ("events.0.out", "result.f.status.ok.output")
                for kind in ("", "len101", "a b", "a.b", "☃", "-a")
            },
        ),
    ),
    "wf_waitforevent_cached_error_replay": _production(
        "an error that is told again has its class", {"events.3.a": _TIMED_OUT}
    ),
    "wf_sleep": _waiting("mid"),
    "wf_sleep_name_reuse": (),
    "wf_sleep_until": _production(
        "production's words for a duration that is none (workflows B12)",
        {
            f"{where}.{case}.err.message": _BAD_DURATION
            for where in ("events.3.out", "result.final.status.ok.output")
            for case in ("str", "nan")
        },
    ),
    "wf_pause_during_retry": (),
    "wf_pause_during_sleep_long": (),
    "wf_pause_during_wait_event": (),
    # -- values ------------------------------------------------------------------------------------
    "wf_params_function": (
        *_differ(_NOT_CLONED, {"result.c": _CLONE}),
        *_differ(_NOT_CLONED, {"result.s": _error("Error", "instance.not_found")}, _MINIFLARE),
        *_production(_NOT_CLONED, {"result.s": _NO_INSTANCE}),
    ),
    "wf_params_large": _production(
        _LARGE_PARAMS,
        {
            f"result.{size}": _error(
                "WorkflowError", "Instance params are too large. Maximum allowed size is 1MiB."
            )
            for size in (1048577, 1500000, 2500000)
        },
    )
    + _production(
        _LARGE_PARAMS,
        {f"result.{size}_status": _NO_INSTANCE for size in (1048577, 1500000, 2500000)},
    ),
    "wf_params_types": _differ(_NOT_CLONED, {"result.fn": _CLONE}),
    "wf_output_types": (
        *_differ(_BIG, {"result.bigint.ok.output.b": "[BigInt(1152921504606846976)]"}, _MINIFLARE),
        *_production(
            _JSON,
            {
                "result.date.ok.output.d": {"$": "Date", "v": "1970-01-01T00:00:00.000Z"},
                "result.map.ok.output": {"$": "Map", "v": [[1, 2]]},
                "result.bytes.ok.output": {"$": "Uint8Array", "v": ["1", "2", "3"]},
            },
        ),
        *_production(_BIG, {"result.bigint.ok.output.b": 2**60}),
        *_production(
            "unconfirmed for production (workflows I5): the function itself cannot be cloned",
            {
                f"result.{kind}.ok.error.message": "function(){} could not be cloned."
                for kind in ("fn", "objfn")
            },
        ),
        *_differ(_PROXY, {"result.cls.ok.error.message": _NO_PROXY}),
        *_production(
            "null is an output, also that of a `run` which returns nothing (workflows P9)",
            {
                f"result.{kind}.ok": {"status": "complete", "output": None, "rollback": None}
                for kind in ("undef", "nul")
            },
        ),
    ),
    "wf_replay_step_value_types": (),
    "wf_step_result_function": (),
    "wf_step_result_unserialisable": (
        NotApplicable("result.weakmap", _WEAK),
        Difference(
            "events",
            [
                _caught("symbol", "Symbol(s) could not be cloned."),
                _caught("promise", "#<Promise> could not be cloned."),
                _caught("cls", _NO_PROXY),
                {"t": 0.0, "kind": "got date", "v": {"$": "Date", "v": _EPOCH}},
            ],
            f"{_WEAK}; {_PROXY}",
        ),
        *_differ(_PROXY, {"result.cls.ok.error.message": _NO_PROXY}),
    ),
    "wf_step_result_large": (
        *_differ(_REAL, {"events.0.t": 0.0, "result.t": 0.0}),
        *_too_large(1048577, 1500000, 2000000, 2200000, 3000000),
    ),
    "wf_step_result_large_uncaught": (
        *_production(
            _LARGE,
            {
                "events": [{"t": at, "kind": "attempt", "a": n} for n, at in ((1, 0.0), (2, 0.05))],
                "result.status.ok": {
                    "status": "errored",
                    "error": _too_large_text("big"),
                    "rollback": None,
                },
                "result.t": 0.05,
            },
        ),
    ),
    "wf_step_result_stream": (),
    "wf_mf5_step_result_huge": (
        *_differ(_REAL, {"events.0.t": 0.0, "result.t": 0.0}),
        *_too_large(3000000, 5000000, 35000000),
        *_differ(
            "the runtime's limit for what one call sends, 32 MiB, is not emulated: the step's own "
            "limit refuses it",
            {
                "events.0.out.35000000.err.message": "WorkflowInternalError: Step s35000000-1 "
                "output is too large. Maximum allowed size is 1MiB."
            },
            _MINIFLARE,
        ),
    ),
    # -- rollbacks ---------------------------------------------------------------------------------
    "wf_rollback_caught": (),
    "wf_rollback_fails": _rolled_back("final.status", "rb b"),
    "wf_rollback_nonretryable": _preserved("nr") + _rolled_back("final.status"),
    "wf_rollback_terminate": (
        *_production(
            "production keeps the error's name (workflows I17)", {"events.0.e.name": "Terminated"}
        ),
        *_rolled_back("s"),
    ),
}
