"""Compatibility flags: which are on for a Worker, from its date and the flags it lists.

Cloudflare changes behaviour under a flag and turns the flag on by default from some
`compatibility_date` on. A flag is on if it is listed, if the date has it on, or if another flag
that is on implies it from that date; listing its opposite turns it off. Behaviour is switched
only here: the rest of the emulator asks whether a name is in the Worker's set.

Source: the table inside the runtime itself, workerd 1.20261117.1 (`compatibility-date.capnp`),
and for what each flag does python-api.md 2.4, queues.md 1.4, 1.13, 2.11 and workflows.md E6.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The date of a Worker that has none: the newest that this version of the runtime accepts.
NEWEST_DATE: Final = "2026-11-24"

PYTHON: Final = "python_workers"


class Flag(NamedTuple):
    """A flag, its opposite, the date it is on from, and the flag it then needs, if any."""

    name: str
    opposite: str | None = None
    since: str | None = None
    needs: str | None = None


class Compatibility(NamedTuple):
    """The flags that are on, and what is to be said of those that a config lists.

    `refused` are the texts with which the runtime does not start, `ignored` names of flags that
    production heeds and the emulator does not, each with what it does instead.
    """

    flags: frozenset[str]
    refused: tuple[str, ...]
    unknown: tuple[str, ...]
    ignored: tuple[tuple[str, str], ...]


# Flags that Python code can notice. One that needs another comes after it.
FLAGS: Final = (
    # The Python runtime.
    Flag(PYTHON),
    Flag("python_workers_20250116", "no_python_workers_20250116", "2025-09-29", PYTHON),
    Flag("python_workers_20260610", "no_python_workers_20260610"),
    Flag("python_workers_20260817", "no_python_workers_20260817"),
    Flag("python_workers_development"),
    Flag("python_workers_314", "no_python_workers_314", "2026-09-08", PYTHON),
    Flag("python_no_global_handlers", "disable_python_no_global_handlers", "2025-08-14"),
    Flag("python_workers_force_new_vendor_path", None, "2025-08-11"),
    Flag("python_workflows", "disable_python_workflows", "2025-09-20", PYTHON),
    Flag(
        "python_workflows_implicit_dependencies",
        "no_python_workflows_implicit_dependencies",
        "2026-02-25",
        PYTHON,
    ),
    Flag("enable_python_external_sdk", "disable_python_external_sdk", "2026-04-21"),
    Flag(
        "python_request_headers_preserve_commas",
        "disable_python_request_headers_preserve_commas",
        "2026-02-17",
    ),
    Flag("python_process_pth_files", "disable_python_process_pth_files", "2026-05-26"),
    Flag("python_check_rng_state", "disable_python_check_rng_state", "2025-12-16", PYTHON),
    Flag(
        "python_dedicated_snapshot",
        "disable_python_dedicated_snapshot",
        "2025-10-16",
        "python_workers_20250116",
    ),
    Flag(
        "python_dedicated_snapshot_keep_import_caches",
        "no_python_dedicated_snapshot_keep_import_caches",
    ),
    Flag("python_shared_standard_library", None, "2026-11-19", PYTHON),
    Flag("python_zstd_snapshot"),
    Flag("disallow_importable_env", "allow_importable_env"),
    # Queues.
    Flag("queues_json_messages", "no_queues_json_messages", "2024-03-18"),
    Flag("queue_expose_error_codes", "no_queue_expose_error_codes", "2026-03-12"),
    Flag("queue_consumer_no_wait_for_wait_until", "queue_consumer_wait_for_wait_until"),
    # Workflows.
    Flag(
        "workflows_preserve_non_retryable_error_message",
        "workflows_replace_non_retryable_error_message",
        "2026-05-14",
    ),
    Flag("workflows_step_rollback"),
    Flag(
        "enable_validate_workflow_entrypoint",
        "disable_validate_workflow_entrypoint",
        "2025-09-20",
    ),
    Flag(
        "workflows_enable_fast_engine_creation",
        "workflows_disable_fast_engine_creation",
        "2026-08-11",
    ),
    # Durable Objects.
    Flag(
        "durable_object_fetch_requires_full_url",
        "durable_object_fetch_allows_relative_url",
        "2021-11-10",
    ),
    Flag("delete_all_deletes_alarm", "delete_all_preserves_alarm", "2026-02-24"),
    Flag(
        "durable_object_io_tasks_prevent_eviction",
        "durable_object_io_tasks_do_not_prevent_eviction",
        "2026-10-01",
    ),
    # RPC and service bindings.
    Flag("fetcher_no_get_put_delete", "fetcher_has_get_put_delete", "2024-03-26"),
    Flag("rpc", "no_rpc", "2024-04-03"),
    Flag("rpc_params_dup_stubs", "rpc_params_transfer_stubs", "2026-01-20"),
    Flag("enable_ctx_exports", "disable_ctx_exports", "2025-11-17"),
    Flag("enhanced_error_serialization", "legacy_error_serialization", "2026-04-21"),
    Flag(
        "spec_compliant_dispatch_exceptions",
        "no_spec_compliant_dispatch_exceptions",
        "2026-09-15",
    ),
    Flag("service_binding_extra_handlers"),
    # Requests, responses and what they carry.
    Flag(
        "formdata_parser_supports_files",
        "formdata_parser_converts_files_to_strings",
        "2021-11-03",
    ),
    Flag(
        "fetch_refuses_unknown_protocols",
        "fetch_treats_unknown_protocols_as_http",
        "2021-11-10",
    ),
    Flag("url_standard", "url_original", "2022-10-31"),
    Flag("http_headers_getsetcookie", "no_http_headers_getsetcookie", "2023-03-01"),
    Flag("response_redirect_url_standard", "response_redirect_url_original", "2023-03-14"),
    Flag(
        "urlsearchparams_delete_has_value_arg",
        "no_urlsearchparams_delete_has_value_arg",
        "2023-07-01",
    ),
    Flag("brotli_content_encoding", "no_brotli_content_encoding", "2024-04-29"),
    Flag("blob_standard_mime_type", "blob_legacy_mime_type", "2024-06-03"),
    Flag("fetch_standard_url", "fetch_legacy_url", "2024-06-03"),
    Flag("allow_custom_ports", "ignore_custom_ports", "2024-09-02"),
    Flag("upper_case_all_http_methods", "no_upper_case_all_http_methods", "2024-10-14"),
    Flag("cache_option_enabled", "cache_option_disabled", "2024-11-11"),
    Flag(
        "strip_authorization_on_cross_origin_redirect",
        "retain_authorization_on_cross_origin_redirect",
        "2025-09-01",
    ),
    Flag("fetch_iterable_type_support", "no_fetch_iterable_type_support", "2026-02-19"),
    Flag("strip_bom_in_read_all_text", "do_not_strip_bom_in_read_all_text", "2026-01-13"),
    Flag("enable_request_signal", "disable_request_signal", "2026-11-17"),
    Flag("request_signal_passthrough", "no_request_signal_passthrough"),
    Flag(
        "assets_navigation_prefers_asset_serving",
        "assets_navigation_has_no_effect",
        "2025-04-01",
    ),
    # WebSockets, promises.
    Flag("capture_async_api_throws", "do_not_capture_async_api_throws", "2022-10-31"),
    Flag(
        "websocket_close_reason_byte_limit",
        "no_websocket_close_reason_byte_limit",
        "2026-03-03",
    ),
    Flag("websocket_standard_binary_type", "no_websocket_standard_binary_type", "2026-03-17"),
    Flag("web_socket_auto_reply_to_close", "web_socket_manual_reply_to_close", "2026-04-07"),
    Flag(
        "handle_cross_request_promise_resolution",
        "no_handle_cross_request_promise_resolution",
        "2024-10-14",
    ),
    Flag(
        "unhandled_rejection_after_microtask_checkpoint",
        "no_unhandled_rejection_after_microtask_checkpoint",
        "2026-03-03",
    ),
)

# Of the flags above those that switch nothing here, and whether the emulator always behaves as with
# the flag. A config that asks for the other behaviour is told.
FIXED: Final = {
    "python_workers_20260817": False,  # experimental: production takes it from nobody
    "python_workers_development": False,  # the same
    "python_workers_force_new_vendor_path": True,
    "python_workflows": True,
    "python_process_pth_files": False,
    "python_check_rng_state": False,
    "python_dedicated_snapshot": True,
    "python_dedicated_snapshot_keep_import_caches": True,
    "python_shared_standard_library": True,
    "python_zstd_snapshot": True,
    "workflows_step_rollback": True,
    "enable_validate_workflow_entrypoint": True,
    "workflows_enable_fast_engine_creation": True,
    "durable_object_fetch_requires_full_url": True,
    "durable_object_io_tasks_prevent_eviction": True,
    "fetcher_no_get_put_delete": True,
    "rpc": True,
    "rpc_params_dup_stubs": True,
    "formdata_parser_supports_files": True,
    "fetch_refuses_unknown_protocols": True,
    "url_standard": True,
    "http_headers_getsetcookie": True,
    "response_redirect_url_standard": True,
    "urlsearchparams_delete_has_value_arg": True,
    "brotli_content_encoding": True,
    "blob_standard_mime_type": True,
    "fetch_standard_url": True,
    "allow_custom_ports": True,
    "cache_option_enabled": True,
    "strip_authorization_on_cross_origin_redirect": True,
    "strip_bom_in_read_all_text": True,
    "enable_request_signal": True,
    "request_signal_passthrough": False,
    "handle_cross_request_promise_resolution": True,
    "unhandled_rejection_after_microtask_checkpoint": True,
}

# Flags that only JavaScript can notice, or that change nothing a Worker sees here: known by name
# and, where there is one, opposite, so that a config that lists them is not taken for misspelt.
_WITHOUT_EFFECT: Final = """
allow_eval_during_startup disallow_eval_during_startup
allow_insecure_inefficient_logged_eval
allow_irrevocable_stub_storage
auto_grpc_convert
auto_inject_python_workers no_auto_inject_python_workers
bind_asynclocalstorage_snapshot_to_request do_not_bind_asynclocalstorage_snapshot_to-request
cache_api_compat_flags no_cache_api_compat_flags
cache_api_request_cf_overrides_cache_rules no_cache_api_request_cf_overrides_cache_rules
cache_no_cache_enabled cache_no_cache_disabled
cache_option_preserves_cache_control cache_option_overrides_cache_control
cache_reload_enabled cache_reload_disabled
connect_handler_starttls
connect_pass_through
containers_pid_namespace no_containers_pid_namespace
crypto_preserve_public_exponent no_crypto_preserve_public_exponent
d1_binding_jsrpc
diagnostics_channel_has_subscribers_getter no_diagnostics_channel_has_subscribers_getter
disable_top_level_await_in_require enable_top_level_await_in_require
dont_substitute_null_on_type_error substitute_null_on_type_error
durable_object_alarms
durable_object_get_existing
durable_object_rename
durable_object_snapshots
dynamic_dispatch_tunnel_exceptions dynamic_dispatch_treat_exceptions_as_500
enable_abortsignal_rpc
enable_ctx_version_metadata
enable_d1_with_sessions_api
enable_email_sending_queuing disable_email_sending_queuing
enable_fast_jsg_struct disable_fast_jsg_struct
enable_global_performance_classes disable_global_performance_classes
enable_navigator_language disable_navigator_language
enable_nodejs_child_process_module disable_nodejs_child_process_module
enable_nodejs_cluster_module disable_nodejs_cluster_module
enable_nodejs_console_module disable_nodejs_console_module
enable_nodejs_dgram_module disable_nodejs_dgram_module
enable_nodejs_domain_module disable_nodejs_domain_module
enable_nodejs_fs_module disable_nodejs_fs_module
enable_nodejs_global_timers no_nodejs_global_timers
enable_nodejs_http2_module disable_nodejs_http2_module
enable_nodejs_http_modules disable_nodejs_http_modules
enable_nodejs_http_server_modules disable_nodejs_http_server_modules
enable_nodejs_inspector_local_dev
enable_nodejs_inspector_module disable_nodejs_inspector_module
enable_nodejs_os_module disable_nodejs_os_module
enable_nodejs_perf_hooks_module disable_nodejs_perf_hooks_module
enable_nodejs_process_v2 disable_nodejs_process_v2
enable_nodejs_punycode_module disable_nodejs_punycode_module
enable_nodejs_readline_module disable_nodejs_readline_module
enable_nodejs_repl_module disable_nodejs_repl_module
enable_nodejs_sqlite_module disable_nodejs_sqlite_module
enable_nodejs_stream_wrap_module disable_nodejs_stream_wrap_module
enable_nodejs_trace_events_module disable_nodejs_trace_events_module
enable_nodejs_tty_module disable_nodejs_tty_module
enable_nodejs_v8_module disable_nodejs_v8_module
enable_nodejs_vm_module disable_nodejs_vm_module
enable_nodejs_wasi_module disable_nodejs_wasi_module
enable_nodejs_worker_threads_module disable_nodejs_worker_threads_module
enable_streams_nodejs_v24_compat disable_streams_nodejs_v24_compat
enable_version_api
enable_weak_ref disable_weak_ref
enable_web_file_system
encoder_stream_spec_compliant_backpressure no_encoder_stream_spec_compliant_backpressure
env_module_nullable_support no_env_module_nullable_support
experimental
export_commonjs_default export_commonjs_namespace
expose_draining_reader
expose_global_message_channel no_expose_global_message_channel
expose_serialization_test_class
fetch_iterable_type_support_override_adjustment no_fetch_iterable_type_support_override_adjustment
fixup-transform-stream-backpressure original-transform-stream-backpressure
global_fetch_strictly_public global_fetch_private_origin
global_navigator no_global_navigator
html_rewriter_treats_esi_include_as_void_tag
immutable_api_prototypes mutable_api_prototypes
increase_websocket_message_size
internal_stream_byob_return_view internal_stream_byob_return_undefined
internal_writable_stream_abort_clears_queue internal_writable_stream_abort_does_not_clear_queue
js_rpc
kv_direct_binding
memory_cache_delete
minimal_subrequests no_minimal_subrequests
new_module_registry legacy_module_registry
no_cf_botmanagement_default cf_botmanagement_default
no_cots_on_external_fetch cots_on_external_fetch
no_global_importscripts global_importscripts
no_resizable_array_buffer_in_blob resizable_array_buffer_in_blob
nodejs_als no_nodejs_als
nodejs_compat no_nodejs_compat
nodejs_compat_populate_process_env nodejs_compat_do_not_populate_process_env
nodejs_compat_v2 no_nodejs_compat_v2
nodejs_process_version_24 no_nodejs_process_version_24
nodejs_zlib no_nodejs_zlib
nonclass_entrypoint_reuses_ctx_across_invocations
offpeak_location_hint
pedantic_wpt non_pedantic_wpt
pipe_to_backward_propagation no_pipe_to_backward_propagation
precise_timers no_precise_timers
python_external_packages
python_workers_durable_objects
r2_binding_jsrpc
r2_list_honor_include
r2_public_beta_bindings r2_internal_beta_bindings
remove_nodejs_compat_eol add_nodejs_compat_eol
remove_nodejs_compat_eol_v22 add_nodejs_compat_eol_v22
remove_nodejs_compat_eol_v23 add_nodejs_compat_eol_v23
remove_nodejs_compat_eol_v24 add_nodejs_compat_eol_v24
replica_routing
request_cf_overrides_cache_rules no_request_cf_overrides_cache_rules
require_returns_default_export require_returns_namespace
rpc_dispose_cancels_call
rtti_api
set_event_target_this no_set_event_target_this
set_forwardable_email_full_headers set_forwardable_email_single_headers
set_tostring_tag do_not_set_tostring_tag
spec_compliant_property_attributes no_spec_compliant_property_attributes
streaming_tail_worker
streams_byob_reader_detaches_buffer streams_byob_reader_does_not_detach_buffer
streams_enable_constructors streams_disable_constructors
streams_no_default_auto_allocate_chunk_size streams_auto_allocate_chunk_size_default
strict_compression_checks no_strict_compression_checks
strict_crypto_checks no_strict_crypto_checks
tail_worker_user_spans
tcp_sockets_support
temporal no_temporal
text_decoder_cjk_decoder disable_text_decoder_cjk_decoder
text_decoder_replace_surrogates disable_text_decoder_replace_surrogates
throw_on_not_implemented_tls_options no_throw_on_not_implemented_tls_options
throw_on_unrecognized_import_assertion ignore_unrecognized_import_assertion
transformstream_enable_standard_constructor transformstream_disable_standard_constructor
typescript_implemented_streams
typescript_strip_types
unique_ctx_per_invocation
unsafe_module
unsupported_process_actual_platform
unwrap_custom_thenables no_unwrap_custom_thenables
urlpattern_standard urlpattern_original
vectorize_query_metadata_optional vectorize_query_original
wasm_esm_integration_builtins
wasm_memory_discard
wasm_source_url_support no_wasm_source_url_support
web_socket_compression no_web_socket_compression
webcrypto_modern_algorithms
webgpu
workers_api_getters_setters_on_prototype workers_api_getters_setters_on_instance
workflows_bindings_rpc
writable_stream_spec_compliant_writer no_writable_stream_spec_compliant_writer
"""

_KNOWN: Final = (
    *FLAGS,
    *(Flag(*line.split()) for line in _WITHOUT_EFFECT.split("\n") if line),
)
NAMES: Final = tuple(
    sorted(name for flag in _KNOWN for name in (flag.name, flag.opposite) if name is not None)
)


def resolve(compatibility_date: str, listed: Sequence[str]) -> Compatibility:
    """Say which flags are on for a Worker with this date (`YYYY-MM-DD`) and these flags.

    Flags without effect here are on only where they are listed.

    >>> "queues_json_messages" in resolve("2024-03-18", []).flags
    True
    """
    names = frozenset(listed)
    enabled: set[str] = set()
    for flag in _KNOWN:
        by_date = flag.since is not None and compatibility_date >= flag.since
        if flag.needs is not None:
            by_date = by_date and flag.needs in enabled
        if flag.name in names or (by_date and flag.opposite not in names):
            enabled.add(flag.name)
    return Compatibility(
        flags=frozenset(enabled),
        refused=(*_repetitions(listed), *_contradictions(names)),
        unknown=tuple(name for name in dict.fromkeys(listed) if name not in NAMES),
        ignored=tuple(_ignored(names)),
    )


def generation(flags: frozenset[str]) -> int:
    """Which Pyodide the flags that are on choose: 26, 28 or 314.

    The newest release counts. `python_workers_20260610` was the preview of `python_workers_314`.
    """
    if "python_workers_314" in flags or "python_workers_20260610" in flags:
        return 314
    return 28 if "python_workers_20250116" in flags else 26


def is_date(text: str) -> bool:
    """Whether this is a day as the runtime wants it, `YYYY-MM-DD`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _ignored(names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The flags among these that ask for something else than what is always done here."""
    for flag in FLAGS:
        behaves = FIXED.get(flag.name)
        asked, other = (flag.opposite, flag.name) if behaves else (flag.name, flag.opposite)
        if behaves is not None and asked is not None and asked in names:
            yield asked, f"as with {other}" if behaves else f"as without {asked}"


def _repetitions(listed: Sequence[str]) -> list[str]:
    """The runtime's own text (`compatibility-date.c++`) for a flag that is listed twice."""
    repeated = dict.fromkeys(name for name in listed if listed.count(name) > 1)
    return [f"Compatibility flag specified multiple times: {name}" for name in repeated]


def _contradictions(names: frozenset[str]) -> list[str]:
    """The runtime's own text for a flag that is listed together with its opposite."""
    return [
        f"Compatibility flags are mutually contradictory: {flag.name} vs {flag.opposite}"
        for flag in _KNOWN
        if flag.name in names and flag.opposite in names
    ]
