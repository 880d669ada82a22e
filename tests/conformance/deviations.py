"""Every recording, and where the emulator is not as recorded: on purpose, or for Python's sake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from comparer import ABSENT, Deviation, Difference, Joined, NotApplicable, Profile
from workflow_deviations import WORKFLOW_DEVIATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PRODUCTION: Final[tuple[Profile, ...]] = ("production",)
_MINIFLARE: Final[tuple[Profile, ...]] = ("miniflare",)

_UINT8: Final = "production hands over bytes as a Uint8Array (queues 2.6)"
# The calls of py_ffi_probe_workerd2024 that succeed.
_PROBED: Final = (
    *("py_dict", "to_js_default", "obj", "py_str", "py_int", "py_list", "to_js_list", "json_dumps"),
    *("text_ct_kwargs", "text_ct_obj", "bytes_ct", "raw_bytes", "opts_py_dict", "delay_kwargs"),
    "batch_obj",
)


def _batch(at: float, *messages: str, queue: str = "q") -> dict[str, Any]:
    """An event of a batch; a message is `ID1 a #2`, sent at 0."""
    described = []
    for message in messages:
        name, body, attempts = message.split()
        sent = {"rel_s": 0.0}
        told: str | int = int(body) if body.isdecimal() else body
        described.append({"id": name, "body": told, "attempts": int(attempts[1:]), "ts": sent})
    return {"t": at, "kind": "batch", "queue": queue, "n": len(messages), "messages": described}


def _uint8(where: str, *octets: int) -> tuple[Deviation, ...]:
    """A `bytes` body, which the local runtime alone hands over as an ArrayBuffer."""
    ours = {"$": "Uint8Array", "v": [str(octet) for octet in octets]}
    return (Difference(f"{where}.body", ours, _UINT8, _PRODUCTION),)


def _texts(reason: str, texts: Mapping[str, str]) -> tuple[Deviation, ...]:
    """Error texts of production."""
    return tuple(
        Difference(f"result.{case}.err.message", text, reason, _PRODUCTION)
        for case, text in texts.items()
    )


def _refused(reason: str, wheres: Iterable[tuple[str, str]]) -> tuple[Deviation, ...]:
    """What production alone refuses, with an `Error` of this text."""
    return tuple(
        Difference(where, {"err": {"name": "Error", "message": text}}, reason, _PRODUCTION)
        for where, text in wheres
    )


_TRACEBACK: Final = (
    "an exception of Python reaches the runtime as a PythonError with its traceback (recorded for "
    "Python in the 2024 runtime); the recording is of a JavaScript Worker"
)
_STUCK: Final = (
    "the runtime ends a request that can never be answered after a while of real time; a test is "
    "better served by an error that names the line the handler waits on"
)
_ORIGIN: Final = (
    "what answers after passThroughOnException is the zone's origin; where a test mocks none, the "
    "handler's error is answered and the unmocked request is a finding"
)
_BOOM: Final = "Error: PythonError: Traceback\nValueError: {}"
_RACE: Final = "timers due at one instant fell due in different milliseconds of real time"
_ACKED: Final = "production honours an ack although the handler then throws (queues 2.10)"
_INTERNAL: Final = "an error inside the local simulator's own code, which is not copied"
_DELAY: Final = "production names cause and code (queues 1.13); its own text is unconfirmed"
_CONSTRUCTOR: Final = "a JsException has the error's name and message only"
_DEFAULTS: Final = "production's defaults are 10 messages and 5 s (queues 3.1)"
_IGNORED: Final = "production ignores `producers[].delivery_delay` (queues 1.11)"
_CHECKED: Final = "production checks what is sent whether or not anybody consumes (queues 1.12)"
_LIMIT: Final = "production's limit of a batch is 256,000 bytes (queues 1.12)"
_ACK_LINE: Final = "[INFO] QUEUE q 1/1 (Nms)"
_API: Final = "Cloudflare's API refuses the settings at deployment (queues 8.2)"
_INVALID: Final = "The specified consumer settings are invalid."
_LATE: Final = "message delay of {} s is not between 0 and 86400 s ({})"


def _delay_texts(form: Mapping[str, str]) -> dict[str, str]:
    """Production's texts for a delay out of range; `form` is that of the two verbs."""
    cases = {"neg": -1, "over": 86401, "batch_neg": -1, "batch_over": 86401}
    cases |= {"msg_neg": -1, "msg_over": 86401}
    return {
        case: form["sendBatch" if "_" in case else "send"].format(delay)
        for case, delay in cases.items()
    }


DEVIATIONS: Final[Mapping[str, tuple[Deviation, ...]]] = {
    # -- fetch and waitUntil -----------------------------------------------------------------------
    "py_waituntil_workerd2024": (),
    "wu_basic": (),
    "wu_client_disconnect": (),
    "wu_dangling_promise": (),
    "wu_dangling_timer": (),
    "wu_dangling_with_other_waituntil": (),
    "wu_dispose_while_pending": (),
    "wu_error": (),
    "wu_error_immediate": (),
    "wu_handler_returns_nonresponse": (Difference("result./never", "Stuck", _STUCK, _PRODUCTION),),
    "wu_handler_throws": (
        Difference("result.raw.body", _BOOM.format("handler boom"), _TRACEBACK),
        Difference("result.dispatchFetch.text", _BOOM.format("handler boom"), _TRACEBACK),
        Difference("result.html_head.body", _BOOM.format("handler boom"), _TRACEBACK),
    ),
    "wu_handler_throws_after_waituntil": (
        Difference("result.response.body", _BOOM.format("handler boom"), _TRACEBACK),
    ),
    "wu_import_waituntil": (),
    "wu_io_cross_request": (),
    "wu_multiple": (),
    "wu_no_fetch_handler": (),
    "wu_non_promise": (),
    "wu_pass_through_on_exception": (
        Difference(
            "result.raw",
            {"status": 500, "type": "text/plain;charset=UTF-8", "body": _BOOM.format("boom")},
            _ORIGIN,
            _PRODUCTION,
        ),
    ),
    "py_ffi_probe_workerd2024": (
        *(
            Difference(
                f"result./sends.{case}.ok",
                {"type": "JsProxy", "repr": "[object Object]"},
                "newer runtimes resolve to metrics (queues 1.2); so it is here, whatever the date",
            )
            for case in _PROBED
        ),
        *_uint8("events.10", 97, 98),
    ),
    # -- Queues ------------------------------------------------------------------------------------
    "queue_ack_after_return_waituntil": (),
    "queue_ack_some_then_throw": (
        Difference(
            "events",
            [
                _batch(0, "ID1 a #1", "ID2 b #1", "ID3 c #1"),
                _batch(1, "ID2 b #2", "ID3 c #2"),
                _batch(2, "ID2 b #3", "ID3 c #3"),
            ],
            _ACKED,
            _PRODUCTION,
        ),
    ),
    "queue_ackall_then_msg_retry": (),
    "queue_ackall_then_retryall": (),
    "queue_ackall_then_throw": (
        Difference("events.1", ABSENT, _ACKED, _PRODUCTION),
        Difference("events.2", ABSENT, _ACKED, _PRODUCTION),
    ),
    "queue_batch_by_timeout": (),
    "queue_batch_defaults": (
        Difference(
            "events",
            [_batch(0, *(f"ID{number + 1} {number} #1" for number in range(10)))],
            _DEFAULTS,
            _PRODUCTION,
        ),
    ),
    "queue_batch_object_shape": (
        NotApplicable("events.0.frozen", "`js.Object.isFrozen` is not provided"),
        Difference(
            "events.0.ctxKeys",
            ["constructor", "passThroughOnException", "waitUntil"],
            "`ctx.abort` and `ctx.mapVirtualHost` are not provided",
        ),
    ),
    "queue_batch_timeout_zero": (),
    "queue_body_mutation_between_attempts": (),
    "queue_config_errors": (
        Difference(
            "result.batch_size_0",
            {"err": {"key": "max_batch_size", "message": _INVALID}},
            _API,
            _PRODUCTION,
        ),
        *_texts(
            _API,
            dict.fromkeys(
                ("batch_size_101", "batch_timeout_61", "max_retries_101", "retry_delay_86401"),
                _INVALID,
            ),
        ),
        Difference(
            "result.delivery_delay_86401.err.message",
            None,
            "production has no text for a setting that it ignores (queues 1.11)",
            _PRODUCTION,
        ),
    ),
    "queue_content_type_errors_cd2025": (
        Difference(
            "result.v8_fn.err.message",
            "function(){} could not be cloned.",
            "the text quotes the function; JavaScript's view of a Python function has no source",
        ),
        NotApplicable("result.v8_fn.err.ctor", _CONSTRUCTOR),
        NotApplicable("result.v8_symbol.err.ctor", _CONSTRUCTOR),
        Difference("runtime_logs", [_ACK_LINE] * 3, _INTERNAL, _MINIFLARE),
        Difference(
            "result.json_fn.err",
            {
                "name": "TypeError",
                "message": "A value of type function cannot be serialized to JSON",
            },
            "unspecified for production (queues 1.6): refused before it is sent",
            _PRODUCTION,
        ),
        *_texts(
            "the type's name in the runtime's source (queues 1.6)",
            {
                "no_args": "Failed to execute 'send' on 'WorkerQueue': parameter 1 is not of type "
                "'JsValue'."
            },
        ),
    ),
    "queue_content_type_old_compat": (),
    "queue_content_types": (
        Difference(
            "events.16.body.m.v.0.1",
            1,
            "Pyodide makes an int of a small BigInt, which goes back as a number",
        ),
        *_uint8("events.13", 1, 2, 3),
        *_uint8("events.14", 2, 3),
        *_uint8("events.15", 5, 6),
        *(
            Difference(f"events.{index}.isBuf", False, _UINT8, _PRODUCTION)
            for index in (13, 14, 15)
        ),
    ),
    "queue_delay_errors": (
        Difference("runtime_logs", [_ACK_LINE] * 6, _INTERNAL, _MINIFLARE),
        *_texts(
            _DELAY,
            _delay_texts(
                {"send": _LATE.format("{}", 10203), "sendBatch": _LATE.format("{}", 10202)}
            ),
        ),
    ),
    "queue_delay_errors_cd2025": (
        Difference("runtime_logs", [_ACK_LINE] * 6, _INTERNAL, _MINIFLARE),
        *_texts(
            _DELAY,
            _delay_texts(
                {
                    verb: f"Queue {verb} failed: {_LATE.removesuffix(' ({})')}"
                    for verb in ("send", "sendBatch")
                }
            ),
        ),
    ),
    "queue_direct_dispatch_results": (),
    "queue_dlq_basic": (),
    "queue_dlq_chain": (),
    "queue_dlq_content_types": (
        *_uint8("events.0.messages.2", 1, 2, 3),
        *_uint8("events.1.messages.2", 1, 2, 3),
    ),
    "queue_dlq_mixed": (),
    "queue_dlq_no_consumer": (),
    "queue_double_retry_delays": (Joined((1, 2), _RACE),),
    "queue_handler_returns_value": (),
    "queue_implicit_ack": (),
    "queue_max_retries_zero": (),
    "queue_msg_retry_then_ackall": (),
    "queue_multiple_queues": (),
    "queue_no_consumer": _refused(
        _CHECKED,
        [
            ("result.b.0", "message length of 130002 bytes exceeds limit of 128000 (10204)"),
            ("result.b.1", _LATE.format(-1, 10203)),
        ],
    ),
    "queue_order_partial_retry": (),
    "queue_order_partial_retry_timeout0": (),
    "queue_producer_delivery_delay": (
        Difference(
            "events",
            [_batch(0, "ID1 plain #1", "ID2 zero #1"), _batch(2, "ID3 two #1")],
            _IGNORED,
            _PRODUCTION,
        ),
    ),
    "queue_retry_delay_all_and_message": (Joined((1, 2), _RACE),),
    "queue_retry_delay_consumer_setting": (Joined((1, 2), _RACE),),
    "queue_retry_delay_errors": (),
    "queue_retry_delay_setting_overridden": (),
    "queue_retry_negative_delay": (),
    "queue_retry_one_of_three": (),
    "queue_retry_some_then_throw": (
        Difference(
            "events",
            [
                _batch(0, "ID1 a #1", "ID2 b #1", "ID3 c #1"),
                _batch(1, "ID1 a #2", "ID3 c #2"),
                _batch(2, "ID1 a #3", "ID3 c #3"),
            ],
            _ACKED,
            _PRODUCTION,
        ),
    ),
    "queue_retry_then_ack": (),
    "queue_retryall_then_ackall": (),
    "queue_send_delay": (),
    "queue_send_delay_plus_batch_timeout": (),
    "queue_send_inside_consumer": (),
    "queue_send_not_awaited": (),
    "queue_send_return_value": (),
    "queue_sendbatch_delays": (),
    "queue_size_errors_cd2025": (
        *_refused(
            _LIMIT,
            [
                (
                    f"result.batch_{size}",
                    f"Queue sendBatch failed: batch size of {size} bytes exceeds limit of 256000 "
                    "bytes",
                )
                for size in (256001, 288000)
            ],
        ),
        *_texts(
            _LIMIT,
            {
                "batch_288001": "Queue sendBatch failed: batch size of 288001 bytes exceeds limit "
                "of 256000 bytes"
            },
        ),
    ),
    "queue_slow_consumer_serial": (),
    "queue_throw_no_ack": (),
    "queue_throw_then_succeed": (),
    "queue_two_workers": (),
    "queue_waituntil_rejects_in_queue": (),
    **WORKFLOW_DEVIATIONS,
}
