"""The Python twins of the recordings of Workflows: how each is set up, driven and timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from comparer import FIXTURES
from workflow_drives import (
    batch_forms,
    control_on_finished,
    create_batch,
    custom,
    delete_batch,
    durability,
    each_kind,
    end,
    event_at_once,
    event_to_finished,
    event_types,
    event_while_paused,
    go,
    go_then,
    handle_shapes,
    invalid_ids,
    large_result,
    large_results,
    no_options,
    params_function,
    params_large,
    paused,
    payload_types,
    reserved_ids,
    restart_complete,
    restart_errored,
    restarted,
    rollback_terminate,
    run_output,
    same_name_twice,
    sends,
    sleeps,
    status_shapes,
    terminated,
    two_instances,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparer import Profile
    from workflow_drives import Drive

SOURCE: Final = FIXTURES / "workers" / "recorded_workflows" / "src"


@dataclass(frozen=True)
class Twin:
    """How a recording is repeated.

    `at` are the ideal times of its events, `ends` those in its result, in order; in production
    `at_production` and `ends_production` where these differ. `dates` are the ideals of the run's
    Dates, each once.
    """

    drive: Drive
    at: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()
    at_production: tuple[float, ...] | None = None
    ends_production: tuple[float, ...] | None = None
    dates: tuple[float, ...] = ()
    main: str = "steps"
    class_name: str = "WF"

    def ideal(self, profile: Profile) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The exact times of the events, and those in the result."""
        at, ends = self.at_production, self.ends_production
        if profile == "miniflare":
            return self.at, self.ends
        return (self.at if at is None else at), (self.ends if ends is None else ends)


def _of(main: str, **twins: Twin) -> dict[str, Twin]:
    """Twins of one module of the Worker."""
    return {f"wf_{name}": Twin(**{**vars(twin), "main": main}) for name, twin in twins.items()}


_THREE: Final = (0.0, 0.0, 0.0)

TWINS: Final[Mapping[str, Twin]] = {
    **_of(
        "steps",
        run_output=Twin(run_output, (0,), (0,), dates=(0,)),
        run_not_async_and_missing=Twin(go, (), (0,), class_name="Plain"),
        ctx_contents=Twin(go, (0, 0, 1, 1, 1), (1,)),
        step_names=Twin(go, (0,), (0,)),
        step_bad_args=Twin(go, (0.3,), (0.3,)),
        step_limit=Twin(go, (), (0,)),
        sleep_counts_as_step=Twin(go, (), (0.02,)),
        sensitive_output=Twin(go, (), (0,)),
        nested_steps=Twin(go, (0, 0), (0,)),
        nested_inner_fails=Twin(go, (0, 0, 0.05, 0.1, 0.1, 0.15), (0.15,)),
        nested_sleep=Twin(go, (0, 0.3), (0.3,)),
        parallel_promise_all=Twin(go, (0, 0, 0, 0.1, 0.3, 0.6), (0.6,)),
        parallel_one_fails=Twin(go_then(1.2), (0, 0, 0, 0.1, 0.8), (0.2,)),
        promise_race=Twin(go_then(1.2), (1,), (0.3,)),
        step_not_awaited=Twin(go_then(0.9), (0, 0.4), (0,)),
        two_instances_concurrent=Twin(two_instances, (0, 0, 0.15, 0.15, 0.3, 0.3), (0.45, 0.45)),
        side_channel_waituntil=Twin(go_then(0.7, looking=False), (0, 0.3), (0,)),
        workflow_uses_queue=Twin(go, (0,), (0,)),
        throw_in_run=Twin(go, (), (0,)),
        durability_restart=Twin(
            durability, (0, 0, 0.7, 1.6, 5.1, 5.1), at_production=(0, 0, 0.7, 0.7, 1.6, 2)
        ),
    ),
    **_of(
        "retries",
        retry_constant=Twin(go, (0, 0.5, 1, 1.5, 1.5), (1.5,)),
        retry_delay_string=Twin(go, (0, 1, 1), (1,)),
        retry_exponential=Twin(go, (0, 0.2, 0.6, 1.4, 3, 3), (3,)),
        retry_limit_zero=Twin(go, (0, 0), (0,)),
        retry_no_backoff_given=Twin(go, (0, 0.3, 0.9, 2.1, 2.1), (2.1,)),
        retry_then_success=Twin(go, (0, 0.2, 0.4), (0.4,)),
        dynamic_delay=Twin(go, (0, 0, 0.2, 0.2, 0.6, 0.6, 1.2), (1.2,)),
        step_timeout=Twin(go_then(2.5, looking=False), (0, 0.6, 1.1, 2, 2.6), (1.1,)),
        duration_strings=Twin(go, (0,), (0,)),
        retry_partial_config=Twin(go, (0,), (0,)),
    ),
    **_of(
        "errors",
        nonretryable_caught=Twin(go, (0,), (0,)),
        nonretryable_custom_name=Twin(
            end(400),
            (0, 1, 3, 7, 15, 31, 31, 31),
            (31,),
            at_production=(0, 10, 30, 70, 150, 310, 310, 310),
            ends_production=(310,),
        ),
        nonretryable_engine_flag=Twin(go, (0,), (0,)),
        nonretryable_in_run=Twin(go, (), (0,)),
        nonretryable_preserve_flag=Twin(go, (0,), (0,)),
        nonretryable_uncaught=Twin(go, (0,), (0,)),
        failed_step_caught_continue=Twin(go, (), (0,)),
        failed_step_status=Twin(go, (), (0.05,)),
        throw_in_step_kinds=Twin(go, (0,), (0,)),
        replay_failed_step=Twin(paused(0.4, 0.2), (0, 0, 0.05, 0.05, 0.6, 0.6), (0.85,)),
        pause_after_nonretryable_late=Twin(
            paused(0.4, 2, seen="s1", limit=4),
            (0, 0),
            (6.4,),
            at_production=(0, 0, 2.4, 3.5),
            ends_production=(3.5,),
        ),
    ),
    **_of(
        "waits",
        event_after_wait=Twin(
            sends(0.4, "go", {"n": 1}, seen=True), (0, 0.4), (0.4,), dates=(0.4,)
        ),
        event_before_wait=Twin(sends(0.3, "go", "early"), (0.8, 0.8), (0.8,), dates=(0.3,)),
        event_other_type=Twin(sends(0.2, "other", 1), (0, 1), (1,)),
        event_never_number=Twin(go, (0, 0.7), (0.7,)),
        event_never_caught=Twin(go, (), (0.3,)),
        event_before_first_run=Twin(event_at_once, (0,), (0,)),
        event_same_name_twice=Twin(same_name_twice, (), (0.4,)),
        event_to_finished=Twin(event_to_finished),
        event_types_names=Twin(event_types, (0,), (0,)),
        waitforevent_cached_error_replay=Twin(paused(0.65, 0.2), (0, 0.4, 0.85, 0.85), (1.2,)),
        sleep=Twin(sleeps, (0, 0.5, 1.5), (1.5,)),
        sleep_name_reuse=Twin(go, (0, 0.3, 0.6, 0.62), (0.62,)),
        sleep_until=Twin(go, (0, 0.7, 1, 1), (1,)),
        pause_during_retry=Twin(
            paused(0.3, 1.5, seen="mid", resumed="t"), (0, 0, 1.8, 2.3, 3.1), (1.8, 3.1)
        ),
        pause_during_sleep_long=Twin(paused(0.5, 2, resumed="resumed"), (0, 2.5, 3.5), (2.5, 3.5)),
        pause_during_wait_event=Twin(event_while_paused, (0, 0.8, 0.8), (0.8,)),
    ),
    **_of(
        "values",
        create_no_options=Twin(no_options, (0,), (0,), dates=(0,)),
        params_types=Twin(
            custom("date", "map", "undef", "bytes", "arr", "str", "nul", "fn"),
            (0,) * 7,
            class_name="Raw",
        ),
        params_function=Twin(params_function),
        params_large=Twin(params_large),
        event_payload_types=Twin(payload_types, (0,), (0,), dates=(0,)),
        output_types=Twin(
            each_kind(
                *("date", "map", "undef", "nul", "bigint", "bytes", "fn", "objfn", "cls", "str"),
                *("nan", "big"),
                limit=1.5,
            )
        ),
        replay_step_value_types=Twin(paused(0.25, 0.2), (0, 0.45), (0.7,)),
        step_result_function=Twin(end(4), (0,), (0,)),
        step_result_unserialisable=Twin(
            each_kind("objfn", "symbol", "promise", "cls", "response", "date", limit=2.5),
            (0, 0, 0, 0),
        ),
        step_result_large=Twin(large_results, (0,), (0,)),
        mf5_step_result_huge=Twin(large_results, (0,), (0,)),
        step_result_large_uncaught=Twin(
            large_result, (0,), (0,), at_production=(0, 0.05), ends_production=(0.05,)
        ),
        step_result_stream=Twin(go, (), (0,)),
    ),
    **_of(
        "instances",
        control_on_finished=Twin(control_on_finished, (0, 0, 0, 0)),
        create_batch=Twin(create_batch, (0, 0, 0, 0.4, 0.4)),
        create_invalid_ids=Twin(invalid_ids),
        mf5_reserved_ids=Twin(reserved_ids),
        mf5_create_batch_forms=Twin(batch_forms),
        mf5_delete_batch=Twin(delete_batch),
        mf5_concurrent_duplicate=Twin(custom("two"), (0,)),
        restart_complete=Twin(restart_complete, (0, 0, 1, 1), (0, 1.3)),
        restart_errored=Twin(restart_errored, (0, 0, 0.05, 0.05, 0.05, 0.1), (0.05, 0.45)),
        restart_running=Twin(restarted(0.3), (0, 0, 0.3, 0.3, 1), (1,)),
        restart_terminated=Twin(restarted(0.2, "terminate"), (0, 0.2), (0.8,)),
        terminate_during_sleep=Twin(terminated(0.3, 1.2), (0,)),
        terminate_during_step=Twin(terminated(0.3, 1.5), (0, 0)),
        status_immediately_in_worker=Twin(custom("now")),
        status_shapes=Twin(status_shapes),
        handle_shapes=Twin(handle_shapes, (0,)),
    ),
    **_of(
        "rollbacks",
        rollback_caught=Twin(go, (), (0,)),
        rollback_fails=Twin(go, (0, 0.1), (0.1,)),
        rollback_nonretryable=Twin(go, (0,), (0,)),
        rollback_terminate=Twin(rollback_terminate, (0.4,)),
    ),
}


# -- set-up ----------------------------------------------------------------------------------------


def config(recording: Mapping[str, Any], twin: Twin) -> dict[str, Any]:
    """The recording's options as wrangler writes them."""
    options = recording.get("options", _OPTIONS)
    flags = ["python_workers", *options["compatibilityFlags"]]
    if options["compatibilityDate"] < "2025-08-14":
        # A class is called for requests, and there are Workflows, with these flags only.
        flags += ["python_no_global_handlers", "python_workflows"]
    (given,) = options["workflows"].values()
    workflow = {"binding": "WF", "name": given["name"], "class_name": twin.class_name}
    if "stepLimit" in given:
        workflow["limits"] = {"steps": given["stepLimit"]}
    return {
        "name": "worker",
        "main": str(SOURCE / f"{twin.main}.py"),
        "compatibility_date": options["compatibilityDate"],
        "compatibility_flags": flags,
        "vars": {"RECORDING": recording["name"]},
        "workflows": [workflow],
        **_queues(options),
    }


# Those of the other recordings, for the one that has none.
_OPTIONS: Final = {
    "compatibilityDate": "2026-07-01",
    "compatibilityFlags": [],
    "workflows": {"WF": {"name": "my-wf", "className": "WF"}},
}


def _queues(options: Mapping[str, Any]) -> dict[str, Any]:
    if "queueProducers" not in options:
        return {}
    given = options["queueConsumers"]["q"]
    consumer = {
        "queue": "q",
        "max_batch_size": given["maxBatchSize"],
        "max_batch_timeout": given["maxBatchTimeout"],
    }
    return {"queues": {"producers": [{"binding": "Q", "queue": "q"}], "consumers": [consumer]}}
